"""Whose a name is: marks are letters, one form is as good as another, and likeness is no answer."""

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
from helpers.platform_downloads import archive
from helpers.small_course import NAME, make_course, small

FILE = f"{NAME}.ipynb"
NEAR = {  # pairs of people, in many scripts, whose names differ in marks or in likes of them alone
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
FORMS = ("NFC", "NFD")


def canvas(first: str, last: str) -> str:
    """Canvas' sortable name: small letters, without what is no word character in Ruby."""
    return "".join(c for c in f"{last}{first}".lower() if category(c)[0] in "LMN")


def parted(name: str) -> tuple[str, str]:
    first, _, last = name.rpartition(" ")
    return first, last


def people(*names: str, form: str = "NFC") -> Class:
    made = {}
    for n, name in enumerate(names):
        first, last = (normalize(form, part) for part in parted(name))
        made[f"s{n}"] = Member(Person(f"s{n}", last, first))
    return Class(made, closed=True)


@pytest.mark.parametrize(("ours", "theirs"), [*product(FORMS, FORMS)])
@pytest.mark.parametrize("pair", NEAR.values(), ids=NEAR)
def test_two_people_with_names_alike_are_two(pair, ours, theirs):
    known = people(*pair, form=ours)
    for n, name in enumerate(pair):
        first, last = parted(normalize(theirs, name))
        for said in (
            f"{first} {last}",
            f"{last} {first}",
            canvas(first, last),
            f" {last}, {first}",
        ):
            assert known.ids_by_name([said]) == {f"s{n}"}, said


@pytest.mark.parametrize(("ours", "theirs"), [*product(FORMS, FORMS)])
@pytest.mark.parametrize("pair", NEAR.values(), ids=NEAR)
def test_nobody_gets_the_work_of_somebody_called_alike(pair, ours, theirs):
    for one, other in (pair, pair[::-1]):
        known = people(one, form=ours)
        name = normalize(theirs, other)
        assert known.ids_by_name([name, canvas(*parted(name))]) == set()
        assert known.ids_with_similar_name(name) == ["s0"]  # a question for a person
        assert known.ids_meant_by(name) == set()


@pytest.mark.parametrize("script", ["Devanagari", "Japanese", "German", "Turkish"])
def test_collecting_asks_and_does_not_answer(script, tmp_path):
    course = make_course(tmp_path / "course")
    one, other = NEAR[script]
    first, last = parted(one)
    roster = tmp_path / "r.csv"
    head = "id,last_name,first_name,email"
    roster.write_text(f"{head}\nann,{last},{first},a@x.org\n")
    path = f"{normalize('NFD', other)}_9_assignsubmission_file/{FILE}"
    zipped = archive(tmp_path / "d.zip", [(path, small())])
    found = collect_downloads(course, NAME, [zipped], roster)
    assert found.rows == []
    (left,) = found.left
    assert f"; is it ann? {SPELLING_HINT}" in left.reason
    roster.write_text(f"{head},name\nann,{last},{first},a@x.org,{other}\n")  # which is the way out
    assert [row.student for row in collect_downloads(course, NAME, [zipped], roster).rows] == [
        "ann"
    ]
    two = f"{head}\nann,{last},{first},a@x.org\nbo,{parted(other)[1]},{parted(other)[0]},b@x.org\n"
    roster.write_text(two)
    both = [(path, small()), (f"{one}_8_assignsubmission_file/{FILE}", small("add = 1"))]
    found = collect_downloads(course, NAME, [archive(tmp_path / "e.zip", both)], roster)
    assert {row.student: row.owned.claim.number for row in found.rows} == {
        "ann": "8",
        "bo": "9",
    }


def test_a_capital_i_may_be_of_either_letter():
    known = people("IŞIL KAYA", "İBRAHİM ÇELİK")
    assert known.ids_by_name(["Işıl Kaya"]) == {"s0"}
    assert known.ids_by_name(["İbrahim Çelik"]) == known.ids_by_name(["ibrahim çelik"]) == {"s1"}
    assert people("Işıl Kaya", "Işil Kaya").ids_by_name(["IŞIL KAYA"]) == {"s0", "s1"}


def test_what_is_written_exactly_so_counts_first():
    known = people("Mary Ann Lee", "Maryann Lee")
    assert known.ids_by_name(["Mary Ann Lee"]) == {"s0"}
    assert known.ids_by_name(["Maryann Lee"]) == {"s1"}
    assert known.ids_by_name(["leemaryann"]) == {"s0", "s1"}  # nobody knows which


LETTERS = st.text(
    st.characters(categories=["Lu", "Ll", "Lo", "Mn", "Mc"], max_codepoint=0xFFFF), min_size=1
)


@given(LETTERS, st.sampled_from(["NFC", "NFD"]), st.sampled_from(["", " ", "-", "’", "."]))
def test_form_capitals_and_signs_make_no_other_name(name, form, sign):
    written = normalize(form, sign.join((name[:1], name[1:], "x")))
    assert spellings(written) & spellings(normalize("NFC", name + "x"))
    assert "".join(name_parts(written.lower())) in spellings(written)


@given(st.lists(LETTERS, min_size=1, max_size=6, unique_by=name_without_marks), LETTERS)
def test_names_know_everybody_by_their_own_alone(names, asked):
    known = NameIndex()
    for n, name in enumerate(names):
        known.add(str(n), name)
    for n, name in enumerate(names):
        if spellings(name):
            assert str(n) in known.people_called(normalize("NFD", name))
    for found in known.people_called(asked):
        assert spellings(asked) & spellings(names[int(found)])


def test_folders_are_called_as_people_are():
    assert folder_name_for(normalize("NFD", "Jürgen Groß")) == "jürgen-groß"
    assert folder_name_for("किरण शर्मा") == "किरण-शर्मा"
    assert folder_name_for("..Ada  Lovelace/") == "ada-lovelace"


def test_ids_are_compared_in_one_form():
    assert same_id(normalize("NFD", "Jörg ")) == "jörg"
    assert same_id("GROSS") != same_id("groß")


@pytest.mark.parametrize("pair", NEAR.values(), ids=NEAR)
def test_a_page_is_given_back_to_nobody_called_alike(pair):
    one, other = pair
    page = StudentPage(Person("ann", parted(one)[1], parted(one)[0]), b"1", "page")
    for shown in (other, canvas(*parted(other))):
        places = {Home(f"{shown}_9_assignsubmission_file/", shown, f"{shown}_9"): {b"2"}}
        assert owners_of(places, [page], {}) == {}
    own = Home("p/", normalize("NFD", one), "k")
    assert owners_of({own: {b"2"}}, [page], {}) == {"ann": own}
