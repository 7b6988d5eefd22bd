"""A notebook that is not quite in its place is found, or told of; an archive does no harm."""

import errno
import io
import os
import tempfile
import zipfile
from pathlib import Path

import pytest

from attncourse.grading.course.folders import find_students, read_submission, with_remarks
from attncourse.grading.course.handed_in import MAX_BYTES_OF_FILE, MAX_FILES_LOOKED_AT
from attncourse.grading.gradebook.read import Person
from attncourse.grading.results.class_results import from_report
from helpers.small_class import make_report
from helpers.small_course import NAME, make_course, small

GOOD = small()
EXACT = f"{NAME}/{NAME}.ipynb"


def archive(*files: tuple[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", how) as content:
        for name, data in files:
            content.writestr(name, data)
    return made.getvalue()


def handed_in(folder: Path, times: dict[str, float] | None = None, **files: bytes):
    """What is read where these files lie in a student's folder."""
    course = make_course(folder / "course", other=GOOD)
    (course / "solutions" / "02_other").mkdir()
    (course / "submitted" / "alice").mkdir()
    for path, data in files.items():
        place = course / "submitted" / "alice" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        when = (times or {}).get(path, 1_700_000_000)
        os.utime(place, (when, when))
    return read_submission(course, NAME, "alice")


BIG = NAME.upper()
ADD = b"def add(a, b):\n    return a + b\n"
FENCED = b"# Sums\n\n```{python}\n" + ADD + b"```\n"
INNER = archive((f"{NAME}.ipynb", GOOD))
FOUND = {
    f"{NAME}/{BIG}.IPYNB": (GOOD, f"the notebook is called {BIG}.IPYNB"),
    f"{BIG}/{NAME}.ipynb": (GOOD, f"the notebook was found at {BIG}/{NAME}.ipynb"),
    f"{NAME}/{NAME}/{NAME}.ipynb": (GOOD, f"was found at {NAME}/{NAME}/{NAME}.ipynb"),
    f"{NAME}/a/b/homework.ipynb": (GOOD, f"was found at {NAME}/a/b/homework.ipynb"),
    f"{NAME}.ipynb": (GOOD, f"was found at {NAME}.ipynb"),
    f"handed in/{NAME} (1).ipynb": (GOOD, f"was found at handed in/{NAME} (1).ipynb"),
    f"{NAME}/{NAME}.json": (GOOD, f"is called {NAME}.json"),
    f"{NAME}/{NAME}.ipynb.txt": (GOOD, f"is called {NAME}.ipynb.txt"),
    f"{NAME}/{NAME}.py": (ADD, f"is called {NAME}.py"),
    f"{NAME}/{NAME}.qmd": (FENCED, f"is called {NAME}.qmd"),
    f"{NAME}/answers.md": (FENCED, "is called answers.md"),
    f"{NAME}/{NAME}.ipynb.zip": (INNER, f"{NAME}.ipynb.zip, in it {NAME}.ipynb"),
    f"{NAME}/all.zip": (archive((f"x/{NAME}.ipynb", GOOD), ("x/data.csv", b"1")), "in it x/"),
    f"{NAME}.zip": (archive((f"__MACOSX/{NAME}.ipynb", b"."), ("a.ipynb", GOOD)), "in it a.ipynb"),
    f"{NAME}/twice.zip": (archive(("b.zip", INNER)), f"in it b.zip, {NAME}.ipynb"),
    EXACT: (INNER, f"the notebook was found in an archive: {NAME}.ipynb"),
}


@pytest.mark.parametrize("path", FOUND)
def test_it_is_found_and_the_note_says_where(path, tmp_path):
    data, says = FOUND[path]
    found = handed_in(tmp_path, **{path: data})
    assert found.data == (data if path.endswith((".py", ".qmd", ".md")) else GOOD)
    assert says in found.note


def test_a_text_beside_a_script_is_not_the_notebook(tmp_path):
    files = {f"{NAME}/sums.py": ADD, f"{NAME}/README.md": b"# How to run this"}
    assert handed_in(tmp_path, **files).data == ADD
    found = handed_in(tmp_path / "more", **files, **{f"{NAME}/more.py": ADD})
    assert (found.data, "and no notebook" in found.reason) == (None, True)


def test_an_intact_submission_has_no_note(tmp_path):
    found = handed_in(tmp_path, **{EXACT: GOOD, "x.json": b"{}", f"{NAME}/data.csv": b"1"})
    assert (found.data, found.note, found.status) == (GOOD, "", "")


COPIES = (f"{NAME}/{NAME} (1).ipynb", f"{NAME}/{NAME}(2).ipynb", f"{NAME}.ipynb", f"{NAME}.zip")


@pytest.mark.parametrize("last", [EXACT, *COPIES])
def test_of_copies_the_newest_counts_and_the_others_are_named(last, tmp_path):
    newer = small(add="def add(a, b):\n    return b + a")
    files = dict.fromkeys((EXACT, *COPIES), GOOD) | {
        f"{NAME}.zip": archive((f"{NAME}.ipynb", GOOD))
    }
    files[last] = archive((f"{NAME}.ipynb", newer)) if last.endswith("zip") else newer
    found = handed_in(tmp_path, times={last: 2_000_000_000}, **files)
    assert found.data == newer
    assert (f"at {last}" in found.note or f"called {Path(last).name}" in found.note) == (
        last != EXACT
    )
    told = found.note.partition("also there and not graded: ")[2]
    assert sorted(told.split(", ")) == sorted({EXACT, *COPIES} - {last})


def test_of_copies_from_one_moment_the_highest_number_counts(tmp_path):
    files = {
        f"{NAME}/{NAME}{n}.ipynb": small(add=f"a = {n!r}") for n in ("", " (2)", " (10)", "-9")
    }
    found = handed_in(tmp_path, times=dict.fromkeys(files, 2_000_000_000), **files)
    assert found.data == files[f"{NAME}/{NAME} (10).ipynb"]


def test_an_unclaimed_notebook_is_named(tmp_path):
    found = handed_in(tmp_path, **{EXACT: GOOD, "old/try.ipynb": GOOD, "02_other/b.ipynb": GOOD})
    assert (found.data, found.note) == (GOOD, "also there and not graded: old/try.ipynb")
    report = with_remarks(found, make_report("alice", notes=()), None)
    assert from_report(Person("alice"), NAME, report).attention == (found.note,)


def test_the_time_of_submission_is_the_found_folders(tmp_path):
    stamp = {f"{BIG}/timestamp.txt": b"2026-01-02 03:04:05 UTC\n"}
    found = handed_in(tmp_path, **{f"{BIG}/{NAME}.ipynb": GOOD}, **stamp)
    assert found.timestamp == "2026-01-02 03:04:05 UTC"


BOMB = archive((f"{NAME}.ipynb", bytes(MAX_BYTES_OF_FILE + 10)))
UP = archive((f"../../{NAME}.ipynb", GOOD), ("/etc/a.ipynb", b"x"))
TOLD = [
    (
        {f"{NAME}/essay.pdf": b"%PDF"},
        f"{NAME}/essay.pdf handed in, and no notebook (this is a PDF document): hand in",
    ),
    ({f"{NAME}/a.ipynb": GOOD, f"{NAME}/b.ipynb": GOOD}, "several notebooks and none is"),
    ({f"{NAME}/{NAME}.zip": b"PK\x03\x04..."}, "this is a zip archive, not a notebook"),
    (
        {f"{NAME}/{NAME}.txt": b"I could not do it."},
        f"{NAME}.txt is no notebook (this is plain text",
    ),
    ({f"{NAME}/a.zip": archive(("b.zip", archive(("c.zip", INNER))))}, "in an archive in an"),
    ({f"{NAME}/a.zip": archive(("a.ipynb", GOOD), ("b.ipynb", GOOD))}, "several notebooks"),
    (
        {f"{NAME}/a.zip": archive(*((f"{n}.txt", b"") for n in range(MAX_FILES_LOOKED_AT + 1)))},
        "more than 2000",
    ),
    ({f"{NAME}/a.zip": archive(("a.ipynb", GOOD), how=zipfile.ZIP_BZIP2)}, "is not read"),
    ({f"{NAME}/a.zip": BOMB}, "over 100 MB"),
    ({f"{NAME}/a.zip": INNER.replace(b"\x14\x00\x00\x00", b"\x14\x00\x01\x00")}, "password"),
]


@pytest.mark.parametrize(("files", "says"), TOLD, ids=lambda value: value if str(value) else "")
def test_what_is_not_graded_is_told_of(files, says, tmp_path):
    found = handed_in(tmp_path, **files)
    assert found.data is None
    assert found.status == "unreadable"
    assert says in found.reason
    assert len(found.reason) < 400


def test_what_lies_elsewhere_is_named_and_not_graded(tmp_path):
    files = {"02_other/02_other.ipynb": GOOD, "old/homework.ipynb": GOOD}
    found = handed_in(tmp_path, **files)
    assert (found.data, found.status) == (None, "missing")
    assert found.reason == f"nothing handed in as {NAME}, but old/homework.ipynb"
    assert handed_in(tmp_path / "2").reason == "nothing handed in"
    other = handed_in(tmp_path / "3", **{f"02_other/{NAME}.ipynb": GOOD})
    assert other.reason == "nothing handed in"


@pytest.mark.parametrize(
    ("closed", "files", "says"),
    [
        ("old", {EXACT: GOOD, "old/a.txt": b""}, "not looked into, permission denied: old"),
        (f"{NAME}/old", {EXACT: GOOD, f"{NAME}/old/a.txt": b""}, f"denied: {NAME}/old"),
        ("old", {f"{NAME}.ipynb": GOOD, "old/a": b""}, f"{NAME}.ipynb; not looked into"),
        ("old", {"old/a.txt": b""}, "old"),
        (NAME, {f"{NAME}/x.ipynb": GOOD}, NAME),
        ("", {f"{NAME}/x.ipynb": GOOD}, "alice"),
    ],
)
def test_an_unreadable_folder_is_named_and_costs_nothing(
    tmp_path, monkeypatch, closed, files, says
):
    place = tmp_path / "course" / "submitted" / "alice" / closed
    scan = os.scandir

    def scandir(path="."):
        if Path(path) == place:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = handed_in(tmp_path, **files)
    if GOOD in files.values() and closed.endswith("old"):
        assert (found.data, found.status) == (GOOD, "")
        assert says in found.note
    else:  # there may be one in it
        assert (found.data, found.status) == (None, "unreadable")
        assert f"not looked into, permission denied: {says}" in found.reason


@pytest.fixture
def open_folder():
    """A folder that another user may look into."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can be another")
@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("closed", ["old", ""])
def test_a_folder_of_anothers_costs_no_more_than_what_is_in_it(open_folder, mode, closed):
    handed_in(open_folder, **{EXACT: GOOD, "old/a.txt": b""})
    (open_folder / "course/submitted/alice" / closed).chmod(mode)
    os.seteuid(65534)
    try:
        found = read_submission(open_folder / "course", NAME, "alice")
    finally:
        os.seteuid(0)
    if closed:
        assert (found.data, found.note) == (GOOD, "not looked into, permission denied: old")
    else:
        assert (found.data, found.status) == (None, "unreadable")
        assert "permission denied" in found.reason.casefold()


def test_paths_out_of_an_archive_lead_nowhere(tmp_path):
    found = handed_in(tmp_path, **{f"{NAME}/a.zip": UP})
    written = [path for path in tmp_path.rglob("*.ipynb") if "alice" in str(path)]
    assert written == []
    assert found.data in (None, b"x")


def test_links_and_deep_trees_are_left_alone(tmp_path):
    course = make_course(tmp_path, other=GOOD)
    home = course / "submitted" / "alice" / NAME
    home.mkdir(parents=True)
    (home / "loop").symlink_to(home)
    (home / f"{NAME}.IPYNB").symlink_to(course / "solutions" / NAME / f"{NAME}.ipynb")
    found = read_submission(course, NAME, "alice")
    assert (found.data, found.status) == (None, "unreadable")
    (course / "submitted" / "eve").symlink_to("eve")
    assert find_students(course, NAME) == ["alice", "eve", "other"]
    assert "is a symbolic link" in read_submission(course, NAME, "eve").reason
    deep = course / "submitted" / "bob" / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / f"{NAME}.ipynb").write_bytes(GOOD)
    assert read_submission(course, NAME, "bob").reason == "nothing handed in"
