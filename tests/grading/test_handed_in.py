"""A misplaced notebook is found or reported, and an archive does no harm."""

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

RIGHT_NOTEBOOK = small()
EXPECTED_PATH = f"{NAME}/{NAME}.ipynb"


def archive(*files: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as content:
        for name, data in files:
            content.writestr(name, data)
    return buffer.getvalue()


def read_files_of_student(folder: Path, times: dict[str, float] | None = None, **files: bytes):
    """Return the submission read from these files in a student's folder."""
    course = make_course(folder / "course", other=RIGHT_NOTEBOOK)
    (course / "solutions" / "02_other").mkdir()
    (course / "submitted" / "alice").mkdir()
    for path, data in files.items():
        full_path = course / "submitted" / "alice" / path
        full_path.parent.mkdir(parents=True, exist_ok=True)
        full_path.write_bytes(data)
        time = (times or {}).get(path, 1_700_000_000)
        os.utime(full_path, (time, time))
    return read_submission(course, NAME, "alice")


UPPER_NAME = NAME.upper()
ADD = b"def add(a, b):\n    return a + b\n"
FENCED_ADD = b"# Sums\n\n```{python}\n" + ADD + b"```\n"
INNER_ARCHIVE = archive((f"{NAME}.ipynb", RIGHT_NOTEBOOK))
FOUND_PATHS = {
    f"{NAME}/{UPPER_NAME}.IPYNB": (RIGHT_NOTEBOOK, f"the notebook is called {UPPER_NAME}.IPYNB"),
    f"{UPPER_NAME}/{NAME}.ipynb": (
        RIGHT_NOTEBOOK,
        f"the notebook was found at {UPPER_NAME}/{NAME}.ipynb",
    ),
    f"{NAME}/{NAME}/{NAME}.ipynb": (RIGHT_NOTEBOOK, f"was found at {NAME}/{NAME}/{NAME}.ipynb"),
    f"{NAME}/a/b/homework.ipynb": (RIGHT_NOTEBOOK, f"was found at {NAME}/a/b/homework.ipynb"),
    f"{NAME}.ipynb": (RIGHT_NOTEBOOK, f"was found at {NAME}.ipynb"),
    f"handed in/{NAME} (1).ipynb": (RIGHT_NOTEBOOK, f"was found at handed in/{NAME} (1).ipynb"),
    f"{NAME}/{NAME}.json": (RIGHT_NOTEBOOK, f"is called {NAME}.json"),
    f"{NAME}/{NAME}.ipynb.txt": (RIGHT_NOTEBOOK, f"is called {NAME}.ipynb.txt"),
    f"{NAME}/{NAME}.py": (ADD, f"is called {NAME}.py"),
    f"{NAME}/{NAME}.qmd": (FENCED_ADD, f"is called {NAME}.qmd"),
    f"{NAME}/answers.md": (FENCED_ADD, "is called answers.md"),
    f"{NAME}/{NAME}.ipynb.zip": (INNER_ARCHIVE, f"{NAME}.ipynb.zip, in it {NAME}.ipynb"),
    f"{NAME}/all.zip": (
        archive((f"x/{NAME}.ipynb", RIGHT_NOTEBOOK), ("x/data.csv", b"1")),
        "in it x/",
    ),
    f"{NAME}.zip": (
        archive((f"__MACOSX/{NAME}.ipynb", b"."), ("a.ipynb", RIGHT_NOTEBOOK)),
        "in it a.ipynb",
    ),
    f"{NAME}/twice.zip": (archive(("b.zip", INNER_ARCHIVE)), f"in it b.zip, {NAME}.ipynb"),
    EXPECTED_PATH: (INNER_ARCHIVE, f"the notebook was found in an archive: {NAME}.ipynb"),
}


@pytest.mark.parametrize("path", FOUND_PATHS)
def test_a_misplaced_notebook_is_found_and_noted(path, tmp_path):
    data, note = FOUND_PATHS[path]
    submission = read_files_of_student(tmp_path, **{path: data})
    assert submission.data == (data if path.endswith((".py", ".qmd", ".md")) else RIGHT_NOTEBOOK)
    assert note in submission.note


def test_a_text_beside_a_script_is_not_the_notebook(tmp_path):
    files = {f"{NAME}/sums.py": ADD, f"{NAME}/README.md": b"# How to run this"}
    assert read_files_of_student(tmp_path, **files).data == ADD
    submission = read_files_of_student(tmp_path / "more", **files, **{f"{NAME}/more.py": ADD})
    assert (submission.data, "and no notebook" in submission.reason) == (None, True)


def test_an_intact_submission_has_no_note(tmp_path):
    submission = read_files_of_student(
        tmp_path, **{EXPECTED_PATH: RIGHT_NOTEBOOK, "x.json": b"{}", f"{NAME}/data.csv": b"1"}
    )
    assert (submission.data, submission.note, submission.status) == (RIGHT_NOTEBOOK, "", "")


PATHS_OF_COPIES = (
    f"{NAME}/{NAME} (1).ipynb",
    f"{NAME}/{NAME}(2).ipynb",
    f"{NAME}.ipynb",
    f"{NAME}.zip",
)


@pytest.mark.parametrize("last", [EXPECTED_PATH, *PATHS_OF_COPIES])
def test_the_newest_copy_counts_and_others_are_named(last, tmp_path):
    newer = small(add="def add(a, b):\n    return b + a")
    files = dict.fromkeys((EXPECTED_PATH, *PATHS_OF_COPIES), RIGHT_NOTEBOOK) | {
        f"{NAME}.zip": archive((f"{NAME}.ipynb", RIGHT_NOTEBOOK))
    }
    files[last] = archive((f"{NAME}.ipynb", newer)) if last.endswith("zip") else newer
    submission = read_files_of_student(tmp_path, times={last: 2_000_000_000}, **files)
    assert submission.data == newer
    assert (f"at {last}" in submission.note or f"called {Path(last).name}" in submission.note) == (
        last != EXPECTED_PATH
    )
    others = submission.note.partition("also there and not graded: ")[2]
    assert sorted(others.split(", ")) == sorted({EXPECTED_PATH, *PATHS_OF_COPIES} - {last})


def test_of_equally_old_copies_the_highest_number_counts(tmp_path):
    files = {
        f"{NAME}/{NAME}{n}.ipynb": small(add=f"a = {n!r}") for n in ("", " (2)", " (10)", "-9")
    }
    submission = read_files_of_student(tmp_path, times=dict.fromkeys(files, 2_000_000_000), **files)
    assert submission.data == files[f"{NAME}/{NAME} (10).ipynb"]


def test_an_unclaimed_notebook_is_named(tmp_path):
    submission = read_files_of_student(
        tmp_path,
        **{
            EXPECTED_PATH: RIGHT_NOTEBOOK,
            "old/try.ipynb": RIGHT_NOTEBOOK,
            "02_other/b.ipynb": RIGHT_NOTEBOOK,
        },
    )
    assert (submission.data, submission.note) == (
        RIGHT_NOTEBOOK,
        "also there and not graded: old/try.ipynb",
    )
    report = with_remarks(submission, make_report("alice", notes=()), None)
    assert from_report(Person("alice"), NAME, report).attention == (submission.note,)


def test_the_hand_in_time_is_read_beside_the_notebook(tmp_path):
    stamp = {f"{UPPER_NAME}/timestamp.txt": b"2026-01-02 03:04:05 UTC\n"}
    submission = read_files_of_student(
        tmp_path, **{f"{UPPER_NAME}/{NAME}.ipynb": RIGHT_NOTEBOOK}, **stamp
    )
    assert submission.timestamp == "2026-01-02 03:04:05 UTC"


ARCHIVE_BOMB = archive((f"{NAME}.ipynb", bytes(MAX_BYTES_OF_FILE + 10)))
CLIMBING_ARCHIVE = archive((f"../../{NAME}.ipynb", RIGHT_NOTEBOOK), ("/etc/a.ipynb", b"x"))
UNGRADED_FILES = [
    (
        {f"{NAME}/essay.pdf": b"%PDF"},
        f"{NAME}/essay.pdf handed in, and no notebook (this is a PDF document): hand in",
    ),
    (
        {f"{NAME}/a.ipynb": RIGHT_NOTEBOOK, f"{NAME}/b.ipynb": RIGHT_NOTEBOOK},
        "several notebooks and none is",
    ),
    ({f"{NAME}/{NAME}.zip": b"PK\x03\x04..."}, "this is a zip archive, not a notebook"),
    (
        {f"{NAME}/{NAME}.txt": b"I could not do it."},
        f"{NAME}.txt is no notebook (this is plain text",
    ),
    (
        {f"{NAME}/a.zip": archive(("b.zip", archive(("c.zip", INNER_ARCHIVE))))},
        "in an archive in an",
    ),
    (
        {f"{NAME}/a.zip": archive(("a.ipynb", RIGHT_NOTEBOOK), ("b.ipynb", RIGHT_NOTEBOOK))},
        "several notebooks",
    ),
    (
        {f"{NAME}/a.zip": archive(*((f"{n}.txt", b"") for n in range(MAX_FILES_LOOKED_AT + 1)))},
        "more than 2000",
    ),
    (
        {f"{NAME}/a.zip": archive(("a.ipynb", RIGHT_NOTEBOOK), compression=zipfile.ZIP_BZIP2)},
        "is not read",
    ),
    ({f"{NAME}/a.zip": ARCHIVE_BOMB}, "over 100 MB"),
    (
        {f"{NAME}/a.zip": INNER_ARCHIVE.replace(b"\x14\x00\x00\x00", b"\x14\x00\x01\x00")},
        "password",
    ),
]


@pytest.mark.parametrize(
    ("files", "reason"), UNGRADED_FILES, ids=lambda value: value if str(value) else ""
)
def test_an_ungraded_file_is_reported_with_a_reason(files, reason, tmp_path):
    submission = read_files_of_student(tmp_path, **files)
    assert submission.data is None
    assert submission.status == "unreadable"
    assert reason in submission.reason
    assert len(submission.reason) < 400


def test_a_notebook_elsewhere_is_named_and_not_graded(tmp_path):
    files = {"02_other/02_other.ipynb": RIGHT_NOTEBOOK, "old/homework.ipynb": RIGHT_NOTEBOOK}
    submission = read_files_of_student(tmp_path, **files)
    assert (submission.data, submission.status) == (None, "missing")
    assert submission.reason == f"nothing handed in as {NAME}, but old/homework.ipynb"
    assert read_files_of_student(tmp_path / "2").reason == "nothing handed in"
    other_submission = read_files_of_student(
        tmp_path / "3", **{f"02_other/{NAME}.ipynb": RIGHT_NOTEBOOK}
    )
    assert other_submission.reason == "nothing handed in"


@pytest.mark.parametrize(
    ("closed", "files", "folder"),
    [
        (
            "old",
            {EXPECTED_PATH: RIGHT_NOTEBOOK, "old/a.txt": b""},
            "not looked into, permission denied: old",
        ),
        (
            f"{NAME}/old",
            {EXPECTED_PATH: RIGHT_NOTEBOOK, f"{NAME}/old/a.txt": b""},
            f"denied: {NAME}/old",
        ),
        ("old", {f"{NAME}.ipynb": RIGHT_NOTEBOOK, "old/a": b""}, f"{NAME}.ipynb; not looked into"),
        ("old", {"old/a.txt": b""}, "old"),
        (NAME, {f"{NAME}/x.ipynb": RIGHT_NOTEBOOK}, NAME),
        ("", {f"{NAME}/x.ipynb": RIGHT_NOTEBOOK}, "alice"),
    ],
)
def test_an_unreadable_folder_is_reported(tmp_path, monkeypatch, closed, files, folder):
    closed_folder = tmp_path / "course" / "submitted" / "alice" / closed
    scan = os.scandir

    def scandir(path="."):
        if Path(path) == closed_folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    submission = read_files_of_student(tmp_path, **files)
    if RIGHT_NOTEBOOK in files.values() and closed.endswith("old"):
        assert (submission.data, submission.status) == (RIGHT_NOTEBOOK, "")
        assert folder in submission.note
    else:  # there may be one in it
        assert (submission.data, submission.status) == (None, "unreadable")
        assert f"not looked into, permission denied: {folder}" in submission.reason


@pytest.fixture
def open_folder():
    """Make a folder that another user may read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can be another")
@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("closed", ["old", ""])
def test_another_users_folder_hides_only_its_own_files(open_folder, mode, closed):
    read_files_of_student(open_folder, **{EXPECTED_PATH: RIGHT_NOTEBOOK, "old/a.txt": b""})
    (open_folder / "course/submitted/alice" / closed).chmod(mode)
    os.seteuid(65534)
    try:
        submission = read_submission(open_folder / "course", NAME, "alice")
    finally:
        os.seteuid(0)
    if closed:
        assert (submission.data, submission.note) == (
            RIGHT_NOTEBOOK,
            "not looked into, permission denied: old",
        )
    else:
        assert (submission.data, submission.status) == (None, "unreadable")
        assert "permission denied" in submission.reason.casefold()


def test_paths_out_of_a_students_archive_are_not_written(tmp_path):
    submission = read_files_of_student(tmp_path, **{f"{NAME}/a.zip": CLIMBING_ARCHIVE})
    written = [path for path in tmp_path.rglob("*.ipynb") if "alice" in str(path)]
    assert written == []
    assert submission.data in (None, b"x")


def test_links_and_deep_folders_are_not_followed(tmp_path):
    course = make_course(tmp_path, other=RIGHT_NOTEBOOK)
    home = course / "submitted" / "alice" / NAME
    home.mkdir(parents=True)
    (home / "loop").symlink_to(home)
    (home / f"{NAME}.IPYNB").symlink_to(course / "solutions" / NAME / f"{NAME}.ipynb")
    submission = read_submission(course, NAME, "alice")
    assert (submission.data, submission.status) == (None, "unreadable")
    (course / "submitted" / "eve").symlink_to("eve")
    assert find_students(course, NAME) == ["alice", "eve", "other"]
    assert "is a symbolic link" in read_submission(course, NAME, "eve").reason
    deep = course / "submitted" / "bob" / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / f"{NAME}.ipynb").write_bytes(RIGHT_NOTEBOOK)
    assert read_submission(course, NAME, "bob").reason == "nothing handed in"
