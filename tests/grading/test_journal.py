"""Results written to the journal are found again, after kills, full disks and damage."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncourse.grading.driver import journal as journals
from attncourse.grading.driver.journal import (
    Journal,
    open_journal,
    remove_student_results,
    students_in_journal,
)
from attncourse.grading.errors import UserError
from attncourse.grading.report import CellResult, report_from_json, to_json
from helpers.journal_records import (
    journal_of,
    key,
    made_report,
    number_of_results,
    query,
    records,
)
from helpers.project import ROOT
from helpers.small_course import NAME

# Written by a version that kept lines: five results, a second of the third, one of zoë.
JOURNAL_OF_LINES = ROOT / "tests" / "fixtures" / "journal_of_lines.jsonl"


@pytest.fixture
def path(tmp_path) -> Path:
    """Make a journal with five results."""
    with open_journal(tmp_path / "reports" / NAME, NAME) as journal:
        for n in range(5):
            journal.write(key(n), made_report(f"s{n}", n / 8))
    return journal_of(tmp_path)


def course_of_journal(path: Path) -> Path:
    return path.parents[2]


def points_and_notes(path: Path, number_of_keys: int = 6) -> tuple[dict[int, float], list[str]]:
    """Return the points that a new run finds, by number of the key, and the journal's notes."""
    with open_journal(path.parent, NAME) as journal:
        reports = {n: journal.find(key(n)) for n in range(number_of_keys)}
        notes = journal.notes
    return {n: report.points for n, report in reports.items() if report is not None}, notes


def points_notes_and_refusal(
    path: Path, number_of_keys: int = 6
) -> tuple[dict[int, float], list[str], str]:
    """Return points, notes, and the error if the journal is refused."""
    try:
        return *points_and_notes(path, number_of_keys), ""
    except UserError as problem:
        return {}, [], str(problem)


def points_without_notes(path: Path) -> dict[int, float]:
    """Return the points that a new run finds, and assert that there is no note."""
    points, notes = points_and_notes(path)
    assert notes == []
    return points


def execute(path: Path, statement: str, *values: object) -> None:
    """Change a journal's file from outside."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


ALL_POINTS = {n: n / 8 for n in range(5)}


def test_a_report_survives_json():
    assert report_from_json(json.loads(json.dumps(to_json(made_report("ada"))))) == made_report(
        "ada"
    )
    with pytest.raises(ValueError, match="schema"):
        report_from_json({**to_json(made_report("ada")), "schema": 1})


@given(points=st.floats(0, 1e300), student=st.text(), note=st.text())
def test_any_text_and_number_is_read_back(tmp_path_factory, points, student, note):
    folder = tmp_path_factory.mktemp("any")
    written = replace(made_report(student, points), notes=(note,))
    with open_journal(folder, NAME) as journal:
        journal.write(key(1), written)
        assert journal.find(key(1)) == written
    with open_journal(folder, NAME) as journal:
        assert journal.find(key(1)) == written
        assert journal.notes == []


def test_a_closed_journal_is_one_file_with_checksums(path):
    results = records(course_of_journal(path))  # which looks at the checksums
    assert [record["student"] for record in results] == ["s0", "s1", "s2", "s3", "s4"]
    assert [record["key"] for record in results] == [key(n) for n in range(5)]
    assert {p.name for p in path.parent.iterdir()} == {"journal.db", "journal.lock"}


def test_the_later_of_two_results_counts(path):
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(2), made_report("s2", 1.0))
        assert journal.find(key(2)) == made_report("s2", 1.0)
        assert len(journal) == 5
    assert points_without_notes(path) == ALL_POINTS | {2: 1.0}


def test_a_class_seed_holds_under_the_same_conditions(path):
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(6), replace(made_report("s6"), seed=11), b"\1" * 32)
        assert journal.class_seed(b"\1" * 32) == 11
        assert journal.class_seed(b"\2" * 32) is None
        journal.write(key(7), replace(made_report("s7"), seed=12), b"\2" * 32)
        assert journal.class_seed(b"\1" * 32) is None
    with open_journal(path.parent, NAME) as journal:
        assert journal.class_seed(b"\2" * 32) == 12


# --- what happens to a process, and to the machine ----------------------------------------------


def write_and_kill(folder: Path, number_of_lines: int) -> None:
    """Start a process that writes results, and kill it once it has reported this many."""
    command = [sys.executable, "-m", "helpers.journal_records", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT / "tests") as process:
        assert process.stdout is not None
        for _ in range(number_of_lines):
            assert process.stdout.readline()
        process.kill()


@pytest.mark.parametrize("number", [1, 7, 300])
def test_results_written_before_a_kill_are_found(tmp_path, number):
    path = journal_of(tmp_path)
    write_and_kill(path.parent, number)
    points, notes = points_and_notes(path, number_of_keys=1000)
    assert notes == []
    assert len(points) >= number
    assert points == {n: n / 8 for n in range(len(points))}


def test_a_truncated_log_keeps_the_results_before_the_cut(tmp_path):
    """A power cut may lose the end of the log, which is flushed only now and then."""
    path = journal_of(tmp_path / "killed")
    write_and_kill(path.parent, 5)
    log = path.with_name("journal.db-wal").read_bytes()
    assert len(log) > 20_000
    numbers_of_results = []
    for length in (*range(0, len(log), len(log) // 40), len(log)):
        copy = journal_of(tmp_path / f"cut-{length}")
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
        copy.with_name("journal.db-wal").write_bytes(log[:length])
        points = points_without_notes(copy)
        assert points == {n: n / 8 for n in range(len(points))}, length
        with open_journal(copy.parent, NAME) as journal:  # and it can be gone on with
            journal.write(key(5), made_report("s5", 1.0))
        assert points_without_notes(copy) == points | {5: 1.0}, length
        numbers_of_results.append(len(points))
    assert numbers_of_results == sorted(numbers_of_results)
    assert numbers_of_results[0] == 0
    assert numbers_of_results[-1] >= 5


def test_a_second_driver_is_refused_with_the_holders_id(path):
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from attncourse.grading.driver.journal import open_journal\n"
        f"with open_journal(Path(sys.argv[1]), {NAME!r}):\n    print('in', flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(path.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"in\n"
        with pytest.raises(UserError, match=f"by process {holder.pid}:"):
            points_without_notes(path)
        holder.kill()
        holder.wait()
        assert points_without_notes(path) == ALL_POINTS  # however it ended


def test_other_readers_see_each_result_at_once(path):
    course = course_of_journal(path)
    with open_journal(path.parent, NAME) as journal:
        for n in range(5, 9):
            journal.write(key(n), made_report(f"s{n}"))
            assert number_of_results(course) == n + 1
            assert students_in_journal(path.parent) == {path: [f"s{m}" for m in range(n + 1)]}


def test_a_full_disk_writes_no_part_of_a_record(path):
    with open_journal(path.parent, NAME) as journal:
        pages = journals.pragma(journal._connection, "page_count")
        journal._connection.execute(f"pragma max_page_count = {pages}")
        large = replace(made_report("s5"), notes=("x" * 100_000,))
        with pytest.raises(UserError, match=r"cannot write .*is full: what is in the journal is"):
            journal.write(key(5), large)
        assert journal.find(key(5)) is None
        assert number_of_results(course_of_journal(path)) == 5
        journal._connection.execute("pragma max_page_count = 1000000")
        journal.write(key(5), replace(large, cells={"a": CellResult(1.0, 2.0)}))
    assert points_without_notes(path) == ALL_POINTS | {5: 1.0}


def test_a_symbolic_link_as_journal_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "journal.db").symlink_to(tmp_path / "precious")
    with pytest.raises(UserError, match="cannot write"), open_journal(tmp_path / "reports", NAME):
        pass
    assert (tmp_path / "precious").read_text() == ""


def test_results_are_flushed_to_the_disk_now_and_then(tmp_path):
    statements = []
    journal = Journal(tmp_path / "journal.db", NAME)
    journal._connection.set_trace_callback(statements.append)
    for n in range(100):
        journal.write(key(n), made_report("s"))
    journal.close()
    inserts = [n for n, statement in enumerate(statements) if statement.startswith("insert")]
    flushed = [n for n in inserts if statements[n - 1] == "pragma synchronous = full"]
    assert len(inserts) == 100
    assert 1 <= len(flushed) < 10
    assert flushed[0] == inserts[0]
    assert {statements[n + 1] for n in flushed} == {"pragma synchronous = normal"}


def test_the_journal_works_without_a_write_ahead_log(path):
    """A folder takes the place of the log's shared memory file."""
    blocked = path.with_name("journal.db-shm")
    blocked.mkdir()
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(5), made_report("s5", 1.0))
        assert not path.with_name("journal.db-wal").exists()
        (note,) = journal.notes
    assert "this file system allows the journal no write-ahead log" in note
    points, notes = points_and_notes(path)
    assert (points, notes) == (ALL_POINTS | {5: 1.0}, [note])
    blocked.rmdir()
    assert points_without_notes(path) == ALL_POINTS | {5: 1.0}


def test_a_log_left_by_a_kill_is_read_without_shared_memory(tmp_path):
    path = journal_of(tmp_path)
    write_and_kill(path.parent, 5)
    blocked = path.with_name("journal.db-shm")
    blocked.unlink()
    blocked.mkdir()
    points, notes = points_and_notes(path, number_of_keys=1000)
    assert len(notes) == 1
    assert len(points) >= 5
    assert points == {n: n / 8 for n in range(len(points))}


# --- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "report = replace(report, '0.25', '0.75')",
        "report = cast(x'ff00ff' as text)",
        "report = 12",
        "student = 'somebody else'",
        "key = zeroblob(32)",
        "key = null",
        "conditions = x'01'",
        "checksum = 'none'",
    ],
)
def test_a_damaged_record_loses_only_itself(path, change):
    execute(path, "pragma writable_schema = on")
    with closing(sqlite3.connect(path)) as connection:  # so that the table accepts a damaged result
        connection.execute("pragma writable_schema = on")
        connection.execute("update sqlite_master set sql = replace(sql, ' not null', '')")
        connection.commit()
    execute(path, f"update result set {change} where number = 3")
    damaged_copy = path.with_name("journal.db.damaged")
    with open_journal(path.parent, NAME) as journal:
        assert journal.notes == [
            "the journal was damaged: 4 results could be read and are kept in it; the damaged file "
            f"is {damaged_copy}"
        ]
        assert journal.find(key(2)) is None
        journal.write(key(2), made_report("s2", 0.25))
    assert len(query(damaged_copy, "select number from result")) == 5
    assert points_without_notes(path) == ALL_POINTS


def test_an_overwritten_page_loses_only_its_results(tmp_path):
    intact, generator = journal_of(tmp_path / "whole"), random.Random(7)
    with open_journal(intact.parent, NAME) as journal:
        for n in range(40):
            journal.write(key(n), replace(made_report(f"s{n}", n / 8), notes=("x" * 9000,)))
    data, size = intact.read_bytes(), journals.BYTES_OF_PAGE
    results_by_page = {}
    for page in range(len(data) // size):
        path = journal_of(tmp_path / str(page))
        path.parent.mkdir(parents=True)
        damaged = data[: page * size] + generator.randbytes(size) + data[(page + 1) * size :]
        path.write_bytes(damaged)
        points, notes, refusal = points_notes_and_refusal(path, number_of_keys=40)
        if refusal:
            assert "move it away (mv " in refusal
            assert path.read_bytes() == damaged
            results_by_page[page] = -1
            continue
        assert points.items() <= {n: n / 8 for n in range(40)}.items()
        results_by_page[page] = len(points)
        assert f"the journal was damaged: {len(points)} results could be read" in notes[0]
        # SQLite's header counts changes, so it may differ.
        assert path.with_name("journal.db.damaged").read_bytes()[100:] == damaged[100:]
        assert points_and_notes(path, number_of_keys=40) == (points, [])
    # Page 0 has the file's header, 1 the assignment, 2 the root of all others.
    assert [results_by_page.pop(page) for page in range(3)] == [-1, -1, 0]
    assert min(results_by_page.values()) == 33  # seven results begin on one page
    assert sum(number == 39 for number in results_by_page.values()) >= 40


def test_a_truncated_journal_keeps_what_can_be_read(path):
    data = path.read_bytes()
    for length in range(journals.BYTES_OF_PAGE, len(data), journals.BYTES_OF_PAGE // 2):
        path.write_bytes(data[:length])
        points, notes, refusal = points_notes_and_refusal(path)
        if refusal:
            assert "move it away (mv " in refusal
            assert path.read_bytes() == data[:length]
        else:
            assert points.items() <= ALL_POINTS.items()
            assert "the journal was damaged" in notes[0]
            assert path.with_name("journal.db.damaged").stat().st_size == length
            assert points_without_notes(path) == points


def write_other_database(path: Path) -> None:
    path.unlink()
    execute(path, "create table student (id)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: execute(path, "pragma user_version = 3"), "of version 3, expected 2"),
        (lambda path: execute(path, "update about set assignment = '02_other'"), "nt 02_other, ex"),
        (lambda path: execute(path, "pragma application_id = 1"), "is not a journal"),
        (write_other_database, "is not a journal"),
        (lambda path: path.write_text("student,points\n"), "is not a journal"),
        (lambda path: path.write_bytes(bytes(4096)), "is not a journal"),
    ],
)
def test_a_foreign_journal_is_refused_and_unchanged(path, change, message):
    change(path)
    content = path.read_bytes()
    with pytest.raises(UserError, match=message) as problem, open_journal(path.parent, NAME):
        pass
    assert "move it away (mv " in str(problem.value)
    assert path.read_bytes() == content
    assert {p.name for p in path.parent.iterdir()} == {"journal.db", "journal.lock"}


# --- a journal of lines -------------------------------------------------------------------------

# Of the third the later result counts.
POINTS_OF_LINES = ALL_POINTS | {2: 1.0}


@pytest.fixture
def old_journal(tmp_path) -> Path:
    """Return a copy of an earlier version's journal of lines, where a run looks for it."""
    journal_path = journal_of(tmp_path).with_name("journal.jsonl")
    journal_path.parent.mkdir(parents=True)
    shutil.copy(JOURNAL_OF_LINES, journal_path)
    return journal_path


def test_a_journal_of_lines_is_taken_over(old_journal):
    path = old_journal.with_name("journal.db")
    points, notes = points_and_notes(path)
    assert points == POINTS_OF_LINES
    copy = old_journal.with_name("journal.jsonl.old")
    assert notes == [
        f"the journal of an earlier version was taken over, 6 results; {copy} is it, and may be "
        "deleted"
    ]
    assert copy.read_bytes() == JOURNAL_OF_LINES.read_bytes()
    assert not old_journal.exists()
    assert points_without_notes(path) == POINTS_OF_LINES
    with open_journal(path.parent, NAME) as journal:
        assert journal.find(key(9)) == made_report("zoë", 2.0)
        assert journal.find(key(0)) == made_report("s0", 0.0)
        assert journal.class_seed(b"\2" * 32) == 7
        assert journal.class_seed(b"\1" * 32) is None


def test_taking_over_twice_overrides_no_newer_result(old_journal):
    """A kill before the old file was renamed leaves it to be taken over once more."""
    path = old_journal.with_name("journal.db")
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(3), made_report("s3", 2.0))
    shutil.copy(JOURNAL_OF_LINES, old_journal)
    assert points_and_notes(path)[0] == POINTS_OF_LINES | {3: 2.0}
    assert number_of_results(course_of_journal(path)) == 7


def test_damaged_lines_are_left_out_and_noted(old_journal):
    lines = JOURNAL_OF_LINES.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"0.125", b"0.625")
    lines[3] = b"\n"
    lines[4] = b'{"key": "short", "student": "x"}\n'
    lines[-1] = lines[-1][:-30]
    old_journal.write_bytes(b"".join(lines))
    points, notes = points_and_notes(old_journal.with_name("journal.db"))
    assert points == {0: 0.0, 2: 1.0, 4: 0.5}
    assert notes[:2] == [
        "the old journal's last record was torn and is left out",
        "damaged records in the old journal that are left out: 3",
    ]
    assert "3 results" in notes[2]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b'{"journal": 2, "assignment": "01_small"}\n', "of version 2, expected 1"),
        (b'{"journal": 1, "assignment": "02_other"}\n', "of assignment 02_other"),
        (b"student,points\n", "is not a journal"),
        (b"[1]\n", "is not a journal"),
        (b"\0\0\0\0\n", "is not a journal"),
    ],
)
def test_foreign_lines_are_refused_and_unchanged(old_journal, header, message):
    old_journal.write_bytes(header + JOURNAL_OF_LINES.read_bytes())
    content = old_journal.read_bytes()
    with pytest.raises(UserError, match=message) as problem, open_journal(old_journal.parent, NAME):
        pass
    assert "move it away (mv " in str(problem.value)
    assert old_journal.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b'{"journal": 1, "assi'])
def test_a_journal_of_lines_may_be_empty(old_journal, content):
    old_journal.write_bytes(content)
    assert points_and_notes(old_journal.with_name("journal.db"))[0] == {}


# --- people who leave ---------------------------------------------------------------------------


def test_nothing_of_a_removed_student_stays_in_a_journal(old_journal):
    path = old_journal.with_name("journal.db")
    with open_journal(path.parent, NAME) as journal:
        for n in range(10, 40):
            journal.write(key(n), replace(made_report(f"t{n % 3}"), notes=(f"t{n % 3} " * 500,)))
    execute(path, "update result set student = 'whoever' where number = 9")  # of t0
    students_by_path = students_in_journal(path.parent)
    assert {place.name: students.count("s2") for place, students in students_by_path.items()} == {
        "journal.db": 1,
        "journal.jsonl.old": 2,
    }
    for student in ("s2", "t1", "t2"):
        for place in students_by_path:
            remove_student_results(place, student)
    for place in path.parent.iterdir():
        data = place.read_bytes()
        assert not any(word in data for word in (b'"s2"', b"t1", b"t2", b"whoever")), place
    points_left, notes = points_and_notes(path, number_of_keys=40)
    assert notes == []
    assert {n: points for n, points in points_left.items() if n < 6} == {
        0: 0,
        1: 0.125,
        3: 0.375,
        4: 0.5,
    }
    assert len(points_left) == 4 + 1 + 9  # of s0 to s4 and zoë, and t0 without the damaged one
