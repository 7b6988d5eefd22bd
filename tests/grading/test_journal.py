"""The journal: what is written is found again, whatever happened to the file in between."""

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

# Written by the version that kept lines: five results, another of the third, one of somebody else.
OF_LINES = ROOT / "tests" / "fixtures" / "journal_of_lines.jsonl"


@pytest.fixture
def path(tmp_path) -> Path:
    """A journal with five results."""
    with open_journal(tmp_path / "reports" / NAME, NAME) as journal:
        for n in range(5):
            journal.write(key(n), made_report(f"s{n}", n / 8))
    return journal_of(tmp_path)


def course_of(path: Path) -> Path:
    return path.parents[2]


def reopened(path: Path, most: int = 6) -> tuple[dict[int, float], list[str]]:
    """Which results a new run finds, with their points; and its notes."""
    with open_journal(path.parent, NAME) as journal:
        found = {n: journal.find(key(n)) for n in range(most)}
        notes = journal.notes
    return {n: r.points for n, r in found.items() if r is not None}, notes


def reopened_or_refused(path: Path, most: int = 6) -> tuple[dict[int, float], list[str], str]:
    """The same, and in what words it is refused, if it is."""
    try:
        return *reopened(path, most), ""
    except UserError as problem:
        return {}, [], str(problem)


def kept(path: Path) -> dict[int, float]:
    """The same of a journal of which there is nothing to note."""
    found, notes = reopened(path)
    assert notes == []
    return found


def execute(path: Path, statement: str, *values: object) -> None:
    """Changes a journal behind its back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


ALL = {n: n / 8 for n in range(5)}


def test_a_report_comes_back_as_it_was():
    assert report_from_json(json.loads(json.dumps(to_json(made_report("ada"))))) == made_report(
        "ada"
    )
    with pytest.raises(ValueError, match="schema"):
        report_from_json({**to_json(made_report("ada")), "schema": 1})


@given(points=st.floats(0, 1e300), student=st.text(), note=st.text())
def test_any_text_and_number_comes_back(tmp_path_factory, points, student, note):
    folder = tmp_path_factory.mktemp("any")
    written = replace(made_report(student, points), notes=(note,))
    with open_journal(folder, NAME) as journal:
        journal.write(key(1), written)
        assert journal.find(key(1)) == written
    with open_journal(folder, NAME) as journal:
        assert journal.find(key(1)) == written
        assert journal.notes == []


def test_a_journal_at_rest_is_one_file_with_checksums(path):
    found = records(course_of(path))  # which looks at the checksums
    assert [record["student"] for record in found] == ["s0", "s1", "s2", "s3", "s4"]
    assert [record["key"] for record in found] == [key(n) for n in range(5)]
    assert {p.name for p in path.parent.iterdir()} == {"journal.db", "journal.lock"}


def test_of_two_results_the_later_one_counts(path):
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(2), made_report("s2", 1.0))
        assert journal.find(key(2)) == made_report("s2", 1.0)
        assert len(journal) == 5
    assert kept(path) == ALL | {2: 1.0}


def test_a_class_seed_holds_under_the_same_conditions(path):
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(6), replace(made_report("s6"), seed=11), b"\1" * 32)
        assert journal.class_seed(b"\1" * 32) == 11
        assert journal.class_seed(b"\2" * 32) is None
        journal.write(key(7), replace(made_report("s7"), seed=12), b"\2" * 32)
        assert journal.class_seed(b"\1" * 32) is None
    with open_journal(path.parent, NAME) as journal:
        assert journal.class_seed(b"\2" * 32) == 12


# --- what happens to a process, and to the machine ------------------------------------------------


def killed_writer(folder: Path, number: int) -> None:
    """Writes results until that number of them is told of, and kills the process then."""
    command = [sys.executable, "-m", "helpers.journal_records", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT / "tests") as process:
        assert process.stdout is not None
        for _ in range(number):
            assert process.stdout.readline()
        process.kill()


@pytest.mark.parametrize("number", [1, 7, 300])
def test_what_was_written_before_a_kill_is_there(tmp_path, number):
    path = journal_of(tmp_path)
    killed_writer(path.parent, number)
    found, notes = reopened(path, most=1000)
    assert notes == []
    assert len(found) >= number
    assert found == {n: n / 8 for n in range(len(found))}


def test_of_a_log_that_breaks_off_the_results_before_are_kept(tmp_path):
    """As where a machine loses its power: the log is flushed only now and then."""
    path = journal_of(tmp_path / "killed")
    killed_writer(path.parent, 5)
    log = path.with_name("journal.db-wal").read_bytes()
    assert len(log) > 20_000
    numbers = []
    for cut in (*range(0, len(log), len(log) // 40), len(log)):
        copy = journal_of(tmp_path / f"cut-{cut}")
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
        copy.with_name("journal.db-wal").write_bytes(log[:cut])
        found = kept(copy)
        assert found == {n: n / 8 for n in range(len(found))}, cut
        with open_journal(copy.parent, NAME) as journal:  # and it can be gone on with
            journal.write(key(5), made_report("s5", 1.0))
        assert kept(copy) == found | {5: 1.0}, cut
        numbers.append(len(found))
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] >= 5


def test_a_second_driver_is_told_who_holds_the_journal(path):
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from attncourse.grading.driver.journal import open_journal\n"
        f"with open_journal(Path(sys.argv[1]), {NAME!r}):\n    print('in', flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(path.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(UserError, match=f"by process {other.pid}:"):
            kept(path)
        other.kill()
        other.wait()
        assert kept(path) == ALL  # however it ended


def test_others_read_each_result_as_soon_as_it_is_written(path):
    course = course_of(path)
    with open_journal(path.parent, NAME) as journal:
        for n in range(5, 9):
            journal.write(key(n), made_report(f"s{n}"))
            assert number_of_results(course) == n + 1
            assert students_in_journal(path.parent) == {path: [f"s{m}" for m in range(n + 1)]}


def test_a_disk_without_room_gets_none_of_a_record(path):
    with open_journal(path.parent, NAME) as journal:
        pages = journals.pragma(journal._connection, "page_count")
        journal._connection.execute(f"pragma max_page_count = {pages}")
        large = replace(made_report("s5"), notes=("x" * 100_000,))
        with pytest.raises(UserError, match=r"cannot write .*is full: what is in the journal is"):
            journal.write(key(5), large)
        assert journal.find(key(5)) is None
        assert number_of_results(course_of(path)) == 5
        journal._connection.execute("pragma max_page_count = 1000000")
        journal.write(key(5), replace(large, cells={"a": CellResult(1.0, 2.0)}))
    assert kept(path) == ALL | {5: 1.0}


def test_a_link_in_the_journals_place_is_not_followed(tmp_path):
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
    inserts = [n for n, said in enumerate(statements) if said.startswith("insert")]
    flushed = [n for n in inserts if statements[n - 1] == "pragma synchronous = full"]
    assert len(inserts) == 100
    assert 1 <= len(flushed) < 10
    assert flushed[0] == inserts[0]
    assert {statements[n + 1] for n in flushed} == {"pragma synchronous = normal"}


def test_without_a_log_the_journal_works_all_the_same(path):
    """A folder stands where the memory would be that processes share for the log."""
    blocked = path.with_name("journal.db-shm")
    blocked.mkdir()
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(5), made_report("s5", 1.0))
        assert not path.with_name("journal.db-wal").exists()
        (note,) = journal.notes
    assert "this file system allows the journal no write-ahead log" in note
    found, notes = reopened(path)
    assert (found, notes) == (ALL | {5: 1.0}, [note])
    blocked.rmdir()
    assert kept(path) == ALL | {5: 1.0}


def test_a_log_that_a_kill_left_is_read_where_none_can_be_begun(tmp_path):
    path = journal_of(tmp_path)
    killed_writer(path.parent, 5)
    blocked = path.with_name("journal.db-shm")
    blocked.unlink()
    blocked.mkdir()
    found, notes = reopened(path, most=1000)
    assert len(notes) == 1
    assert len(found) >= 5
    assert found == {n: n / 8 for n in range(len(found))}


# --- damage ---------------------------------------------------------------------------------------


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
def test_a_damaged_record_costs_itself(path, change):
    execute(path, "pragma writable_schema = on")
    with closing(sqlite3.connect(path)) as connection:  # so that it takes what is no result
        connection.execute("pragma writable_schema = on")
        connection.execute("update sqlite_master set sql = replace(sql, ' not null', '')")
        connection.commit()
    execute(path, f"update result set {change} where number = 3")
    aside = path.with_name("journal.db.damaged")
    with open_journal(path.parent, NAME) as journal:
        assert journal.notes == [
            "the journal was damaged: 4 results could be read and are kept in it; the damaged file "
            f"is {aside}"
        ]
        assert journal.find(key(2)) is None
        journal.write(key(2), made_report("s2", 0.25))
    assert len(query(aside, "select number from result")) == 5
    assert kept(path) == ALL


def test_a_page_that_is_overwritten_costs_the_results_on_it(tmp_path):
    whole, dice = journal_of(tmp_path / "whole"), random.Random(7)
    with open_journal(whole.parent, NAME) as journal:
        for n in range(40):
            journal.write(key(n), replace(made_report(f"s{n}", n / 8), notes=("x" * 9000,)))
    data, size = whole.read_bytes(), journals.BYTES_OF_PAGE
    n_kept = {}
    for page in range(len(data) // size):
        path = journal_of(tmp_path / str(page))
        path.parent.mkdir(parents=True)
        damaged = data[: page * size] + dice.randbytes(size) + data[(page + 1) * size :]
        path.write_bytes(damaged)
        found, notes, refusal = reopened_or_refused(path, most=40)
        if refusal:
            assert "move it away (mv " in refusal
            assert path.read_bytes() == damaged
            n_kept[page] = -1
            continue
        assert found.items() <= {n: n / 8 for n in range(40)}.items()
        n_kept[page] = len(found)
        assert f"the journal was damaged: {len(found)} results could be read" in notes[0]
        # But for what the file's header counts.
        assert path.with_name("journal.db.damaged").read_bytes()[100:] == damaged[100:]
        assert reopened(path, most=40) == (found, [])
    # The file's header, whose journal it is, the page from which all others are found.
    assert [n_kept.pop(page) for page in range(3)] == [-1, -1, 0]
    assert min(n_kept.values()) == 33  # seven results begin on one page
    assert sum(number == 39 for number in n_kept.values()) >= 40


def test_of_a_file_that_breaks_off_what_can_be_read_is_kept(path):
    whole = path.read_bytes()
    for cut in range(journals.BYTES_OF_PAGE, len(whole), journals.BYTES_OF_PAGE // 2):
        path.write_bytes(whole[:cut])
        found, notes, refusal = reopened_or_refused(path)
        if refusal:
            assert "move it away (mv " in refusal
            assert path.read_bytes() == whole[:cut]
        else:
            assert found.items() <= ALL.items()
            assert "the journal was damaged" in notes[0]
            assert path.with_name("journal.db.damaged").stat().st_size == cut
            assert kept(path) == found


def other_database(path: Path) -> None:
    path.unlink()
    execute(path, "create table student (id)")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: execute(path, "pragma user_version = 3"), "of version 3, expected 2"),
        (lambda path: execute(path, "update about set assignment = '02_other'"), "nt 02_other, ex"),
        (lambda path: execute(path, "pragma application_id = 1"), "is not a journal"),
        (other_database, "is not a journal"),
        (lambda path: path.write_text("student,points\n"), "is not a journal"),
        (lambda path: path.write_bytes(bytes(4096)), "is not a journal"),
    ],
)
def test_what_is_no_journal_of_this_version_is_not_touched(path, change, words):
    change(path)
    content = path.read_bytes()
    with pytest.raises(UserError, match=words) as problem, open_journal(path.parent, NAME):
        pass
    assert "move it away (mv " in str(problem.value)
    assert path.read_bytes() == content
    assert {p.name for p in path.parent.iterdir()} == {"journal.db", "journal.lock"}


# --- a journal of lines ---------------------------------------------------------------------------

# Of the third the later result counts.
TAKEN_OVER = ALL | {2: 1.0}


@pytest.fixture
def old(tmp_path) -> Path:
    """The journal of lines of an earlier version, in its place."""
    place = journal_of(tmp_path).with_name("journal.jsonl")
    place.parent.mkdir(parents=True)
    shutil.copy(OF_LINES, place)
    return place


def test_a_journal_of_lines_is_taken_over(old):
    path = old.with_name("journal.db")
    found, notes = reopened(path)
    assert found == TAKEN_OVER
    aside = old.with_name("journal.jsonl.old")
    assert notes == [
        f"the journal of an earlier version was taken over, 6 results; {aside} is it, and may be "
        "deleted"
    ]
    assert aside.read_bytes() == OF_LINES.read_bytes()
    assert not old.exists()
    assert kept(path) == TAKEN_OVER
    with open_journal(path.parent, NAME) as journal:
        assert journal.find(key(9)) == made_report("zoë", 2.0)
        assert journal.find(key(0)) == made_report("s0", 0.0)
        assert journal.class_seed(b"\2" * 32) == 7
        assert journal.class_seed(b"\1" * 32) is None


def test_a_journal_that_was_being_taken_over_overrides_nothing(old):
    """A kill between the results and the other name: the old file is there once more."""
    path = old.with_name("journal.db")
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(3), made_report("s3", 2.0))
    shutil.copy(OF_LINES, old)
    assert reopened(path)[0] == TAKEN_OVER | {3: 2.0}
    assert number_of_results(course_of(path)) == 7


def test_damaged_lines_are_left_out_and_told(old):
    lines = OF_LINES.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"0.125", b"0.625")
    lines[3] = b"\n"
    lines[4] = b'{"key": "short", "student": "x"}\n'
    lines[-1] = lines[-1][:-30]
    old.write_bytes(b"".join(lines))
    found, notes = reopened(old.with_name("journal.db"))
    assert found == {0: 0.0, 2: 1.0, 4: 0.5}
    assert notes[:2] == [
        "the old journal's last record was torn and is left out",
        "damaged records in the old journal that are left out: 3",
    ]
    assert "3 results" in notes[2]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b'{"journal": 2, "assignment": "01_small"}\n', "of version 2, expected 1"),
        (b'{"journal": 1, "assignment": "02_other"}\n', "of assignment 02_other"),
        (b"student,points\n", "is not a journal"),
        (b"[1]\n", "is not a journal"),
        (b"\0\0\0\0\n", "is not a journal"),
    ],
)
def test_lines_that_are_no_journal_are_not_touched(old, header, words):
    old.write_bytes(header + OF_LINES.read_bytes())
    content = old.read_bytes()
    with pytest.raises(UserError, match=words) as problem, open_journal(old.parent, NAME):
        pass
    assert "move it away (mv " in str(problem.value)
    assert old.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b'{"journal": 1, "assi'])
def test_a_journal_of_lines_may_hold_no_result(old, content):
    old.write_bytes(content)
    assert reopened(old.with_name("journal.db"))[0] == {}


# --- people who leave -----------------------------------------------------------------------------


def test_nothing_of_a_student_stays_in_any_journal(old):
    path = old.with_name("journal.db")
    with open_journal(path.parent, NAME) as journal:
        for n in range(10, 40):
            journal.write(key(n), replace(made_report(f"t{n % 3}"), notes=(f"t{n % 3} " * 500,)))
    execute(path, "update result set student = 'whoever' where number = 9")  # of t0
    listed = students_in_journal(path.parent)
    assert {place.name: students.count("s2") for place, students in listed.items()} == {
        "journal.db": 1,
        "journal.jsonl.old": 2,
    }
    for student in ("s2", "t1", "t2"):
        for place in listed:
            remove_student_results(place, student)
    for place in path.parent.iterdir():
        data = place.read_bytes()
        assert not any(word in data for word in (b'"s2"', b"t1", b"t2", b"whoever")), place
    found, notes = reopened(path, most=40)
    assert notes == []
    assert {n: points for n, points in found.items() if n < 6} == {0: 0, 1: 0.125, 3: 0.375, 4: 0.5}
    assert len(found) == 4 + 1 + 9  # of s0 to s4 and zoë, and t0 without the damaged one
