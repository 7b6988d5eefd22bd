"""Names identify people: marks count as letters, Unicode forms do not, similar names only ask."""

from itertools import product
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncourse.grading.collect.collect import collect_downloads
from attncourse.grading.collect.owners import SPELLING_HINT
from attncourse.grading.collect.roster import Class, Member
from attncourse.grading.feedback.returned import Home, StudentPage, owners_of
from attncourse.grading.gradebook.read import Person
from attncourse.grading.names import (
    NameIndex,
    folder_name_for,
    name_parts,
    name_without_marks,
    same_id,
    spellings,
)
from helpers.platform_downloads import write_archive
from helpers.small_course import NAME, make_course, small

FILE = f"{NAME}.ipynb"
NEAR_NAMES = {  # pairs of people whose names differ only in marks, in many scripts
    "Devanagari": ("करण शर्मा", "किरण शर्मा"),
    "Japanese": ("かき たなか", "かぎ たなか"),
    "Japanese, half": ("ハハ たなか", "ババ たなか"),
    "Thai": ("มา ใจดี", "ม้า ใจดี"),
    "Arabic": ("علي حسن", "عليّ حسن"),
    "Hebrew": ("שרה כהן", "שׂרה כהן"),
    "Vietnamese": ("Nguyễn Văn An", "Nguyễn Văn Ân"),
    "German": ("Jan Muller", "Jan Müller"),
    "German, sharp s": ("Eva Gross", "Eva Groß"),
    "Turkish": ("Isil Kaya", "Işıl Kaya"),
    "Polish": ("Ola Laska", "Ola Łaska"),
    "Korean": ("김 가", "김 각"),
    "Tamil": ("கமல் ராஜ", "காமல் ராஜ"),
    "Cyrillic": ("Андрей Шел", "Андреи Шел"),
}
NORMAL_FORMS = ("NFC", "NFD")


def canvas_name(first: str, last: str) -> str:
    """Return Canvas' sortable name: lower case, only what Ruby has as a word character."""
    return "".join(c for c in f"{last}{first}".lower() if category(c)[0] in "LMN")


def first_and_last(name: str) -> tuple[str, str]:
    first, _, last = name.rpartition(" ")
    return first, last


def class_of_names(*names: str, form: str = "NFC") -> Class:
    """Return a class of students s0, s1, … with these names."""
    members = {}
    for n, name in enumerate(names):
        first, last = (normalize(form, part) for part in first_and_last(name))
        members[f"s{n}"] = Member(Person(f"s{n}", last, first))
    return Class(members, closed=True)


@pytest.mark.parametrize(("roster_form", "platform_form"), [*product(NORMAL_FORMS, NORMAL_FORMS)])
@pytest.mark.parametrize("pair", NEAR_NAMES.values(), ids=NEAR_NAMES)
def test_two_people_with_similar_names_are_distinguished(pair, roster_form, platform_form):
    known = class_of_names(*pair, form=roster_form)
    for n, name in enumerate(pair):
        first, last = first_and_last(normalize(platform_form, name))
        for written in (
            f"{first} {last}",
            f"{last} {first}",
            canvas_name(first, last),
            f" {last}, {first}",
        ):
            assert known.ids_by_name([written]) == {f"s{n}"}, written


@pytest.mark.parametrize(("roster_form", "platform_form"), [*product(NORMAL_FORMS, NORMAL_FORMS)])
@pytest.mark.parametrize("pair", NEAR_NAMES.values(), ids=NEAR_NAMES)
def test_a_similar_name_never_receives_the_work(pair, roster_form, platform_form):
    for roster_name, platform_name in (pair, pair[::-1]):
        known = class_of_names(roster_name, form=roster_form)
        written = normalize(platform_form, platform_name)
        assert known.ids_by_name([written, canvas_name(*first_and_last(written))]) == set()
        assert known.ids_with_similar_name(written) == ["s0"]  # a question for a person
        assert known.ids_meant_by(written) == set()


@pytest.mark.parametrize("script", ["Devanagari", "Japanese", "German", "Turkish"])
def test_collecting_asks_about_a_similar_name(script, tmp_path):
    course = make_course(tmp_path / "course")
    roster_name, platform_name = NEAR_NAMES[script]
    first, last = first_and_last(roster_name)
    roster = tmp_path / "r.csv"
    head = "id,last_name,first_name,email"
    roster.write_text(f"{head}\nann,{last},{first},a@x.org\n")
    path = f"{normalize('NFD', platform_name)}_9_assignsubmission_file/{FILE}"
    zipped = write_archive(tmp_path / "d.zip", [(path, small())])
    collection = collect_downloads(course, NAME, [zipped], roster)
    assert collection.rows == []
    (left_out,) = collection.left
    assert f"; is it ann? {SPELLING_HINT}" in left_out.reason
    roster.write_text(
        f"{head},name\nann,{last},{first},a@x.org,{platform_name}\n"
    )  # as the question suggests
    assert [row.student for row in collect_downloads(course, NAME, [zipped], roster).rows] == [
        "ann"
    ]
    other_first, other_last = first_and_last(platform_name)
    two_members = f"{head}\nann,{last},{first},a@x.org\nbo,{other_last},{other_first},b@x.org\n"
    roster.write_text(two_members)
    files = [(path, small()), (f"{roster_name}_8_assignsubmission_file/{FILE}", small("add = 1"))]
    collection = collect_downloads(course, NAME, [write_archive(tmp_path / "e.zip", files)], roster)
    assert {row.student: row.owned.claim.number for row in collection.rows} == {
        "ann": "8",
        "bo": "9",
    }


def test_a_capital_i_matches_the_dotted_and_the_dotless_i():
    known = class_of_names("IŞIL KAYA", "İBRAHİM ÇELİK")
    assert known.ids_by_name(["Işıl Kaya"]) == {"s0"}
    assert known.ids_by_name(["İbrahim Çelik"]) == known.ids_by_name(["ibrahim çelik"]) == {"s1"}
    assert class_of_names("Işıl Kaya", "Işil Kaya").ids_by_name(["IŞIL KAYA"]) == {"s0", "s1"}


def test_an_exact_spelling_counts_first():
    known = class_of_names("Mary Ann Lee", "Maryann Lee")
    assert known.ids_by_name(["Mary Ann Lee"]) == {"s0"}
    assert known.ids_by_name(["Maryann Lee"]) == {"s1"}
    assert known.ids_by_name(["leemaryann"]) == {"s0", "s1"}  # nobody knows which


LETTERS = st.text(
    st.characters(categories=["Lu", "Ll", "Lo", "Mn", "Mc"], max_codepoint=0xFFFF), min_size=1
)


@given(LETTERS, st.sampled_from(["NFC", "NFD"]), st.sampled_from(["", " ", "-", "’", "."]))
def test_unicode_form_case_and_signs_do_not_matter(name, form, sign):
    written = normalize(form, sign.join((name[:1], name[1:], "x")))
    assert spellings(written) & spellings(normalize("NFC", name + "x"))
    assert "".join(name_parts(written.lower())) in spellings(written)


@given(st.lists(LETTERS, min_size=1, max_size=6, unique_by=name_without_marks), LETTERS)
def test_a_name_index_finds_people_only_by_their_own_name(names, searched_name):
    known = NameIndex()
    for n, name in enumerate(names):
        known.add(str(n), name)
    for n, name in enumerate(names):
        if spellings(name):
            assert str(n) in known.people_called(normalize("NFD", name))
    for student in known.people_called(searched_name):
        assert spellings(searched_name) & spellings(names[int(student)])


def test_folder_names_are_made_of_peoples_names():
    assert folder_name_for(normalize("NFD", "Jürgen Groß")) == "jürgen-groß"
    assert folder_name_for("किरण शर्मा") == "किरण-शर्मा"
    assert folder_name_for("..Ada  Lovelace/") == "ada-lovelace"


def test_ids_are_compared_in_one_form():
    assert same_id(normalize("NFD", "Jörg ")) == "jörg"
    assert same_id("GROSS") != same_id("groß")


@pytest.mark.parametrize("pair", NEAR_NAMES.values(), ids=NEAR_NAMES)
def test_a_page_is_not_returned_to_a_similar_name(pair):
    roster_name, platform_name = pair
    page = StudentPage(
        Person("ann", first_and_last(roster_name)[1], first_and_last(roster_name)[0]), b"1", "page"
    )
    for shown in (platform_name, canvas_name(*first_and_last(platform_name))):
        places = {Home(f"{shown}_9_assignsubmission_file/", shown, f"{shown}_9"): {b"2"}}
        assert owners_of(places, [page], {}) == {}
    own_folder = Home("p/", normalize("NFD", roster_name), "k")
    assert owners_of({own_folder: {b"2"}}, [page], {}) == {"ann": own_folder}
