"""The journal: what is written is found again, whatever happened to the file in between."""

import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attncourse.grading.driver import journal as keys
from attncourse.grading.driver.journal import Journal, open_journal
from attncourse.grading.errors import UserError
from attncourse.grading.limits import Limits
from attncourse.grading.report import CellResult, Report, report_from_json, to_json
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.project import ROOT
from helpers.small_course import NAME, small

ASSIGNMENT = Assignment(NAME, read_cells(small()))


def report(student: str, points: float = 1.5) -> Report:
    verdict = {"cell": "c", "target": "a.b", "criteria": [{"name": "values", "passed": True}]}
    return Report(
        student,
        NAME,
        "graded",
        {"points_add": CellResult(points, 2.0, "said «why»\n")},
        mistakes=(("a.b", "divided by d"),),
        notes=("one", "two"),
        verdicts=(verdict,),
        seed=7,
        limits={"submission": {"limit": 120.0, "used": 0.25, "met": False}},
    )


def key(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def path(tmp_path):
    """A journal with five results."""
    with open_journal(tmp_path, NAME) as journal:
        for n in range(5):
            journal.write(key(n), report(f"s{n}", n / 8))
    return tmp_path / "journal.jsonl"


def kept(path) -> dict[int, float]:
    """Which of the five a new run finds, and their points."""
    with open_journal(path.parent, NAME) as journal:
        found = {n: journal.find(key(n)) for n in range(6)}
    return {n: r.points for n, r in found.items() if r is not None}


ALL = {n: n / 8 for n in range(5)}


def test_a_report_comes_back_as_it_was():
    assert report_from_json(json.loads(json.dumps(to_json(report("ada"))))) == report("ada")
    with pytest.raises(ValueError, match="schema"):
        report_from_json({**to_json(report("ada")), "schema": 1})


@given(points=st.floats(0, 1e300), student=st.text(), note=st.text())
def test_any_text_and_number_comes_back(tmp_path_factory, points, student, note):
    folder = tmp_path_factory.mktemp("any")
    written = replace(report(student, points), notes=(note,))
    with open_journal(folder, NAME) as journal:
        journal.write(key(1), written)
        assert journal.find(key(1)) == written
    with open_journal(folder, NAME) as journal:
        assert journal.find(key(1)) == written
        assert journal.notes == []


def test_each_line_is_json_with_the_checksum_of_what_stands_before_it(path):
    lines = path.read_bytes().splitlines()
    assert json.loads(lines[0])["assignment"] == NAME
    assert len(lines) == 6
    for line in lines:
        body = line[: line.rindex(b', "sum": ')]
        assert int(json.loads(line)["sum"], 16) == zlib.crc32(body)
    assert [json.loads(line)["student"] for line in lines[1:]] == ["s0", "s1", "s2", "s3", "s4"]


def test_of_two_results_the_later_one_counts(path):
    with open_journal(path.parent, NAME) as journal:
        journal.write(key(2), report("s2", 1.0))
    assert kept(path) == ALL | {2: 1.0}


def test_wherever_the_file_breaks_off_the_whole_records_before_it_are_kept(path):
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole), 13):
        path.write_bytes(whole[:cut])
        records = sum(end <= cut for end in ends[1:])
        assert kept(path) == {n: n / 8 for n in range(records)}, cut
        assert path.read_bytes() == whole[: max([ends[0], *(e for e in ends if e <= cut)])], cut
        with open_journal(path.parent, NAME) as journal:  # and it can be gone on with
            journal.write(key(5), report("s5", 1.0))
        assert kept(path) == {n: n / 8 for n in range(records)} | {5: 1.0}, cut


@pytest.mark.parametrize("what", ["flip", "blank", "junk", "binary"])
def test_a_damaged_record_costs_itself(path, what):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = {
        "flip": lines[3].replace(b"0.25", b"0.75"),
        "blank": b"\n",
        "junk": b'{"key": "short", "student": "x"}\n',
        "binary": bytes(200) + b"\xff\n",
    }[what]
    path.write_bytes(b"".join(lines))
    with open_journal(path.parent, NAME) as journal:
        assert journal.notes == ["damaged records in the journal that are left out: 1"]
        assert journal.find(key(2)) is None
        journal.write(key(2), report("s2", 0.25))
    assert kept(path) == ALL


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b'{"journal": 2, "assignment": "01_small"}\n', "of version 2, expected 1"),
        (b'{"journal": 1, "assignment": "02_other"}\n', "of assignment 02_other"),
        (b"student,points\n", "is not a journal"),
        (b"[1]\n", "is not a journal"),
        (b"\0\0\0\0\n", "is not a journal"),
        (b"no end of line", "is not a journal"),
    ],
)
def test_what_is_no_journal_of_this_version_is_not_touched(path, header, words):
    content = header + path.read_bytes()[40:]
    path.write_bytes(content)
    with pytest.raises(UserError, match=words) as problem, open_journal(path.parent, NAME):
        pass
    assert "move it away (mv " in str(problem.value)
    assert path.read_bytes() == content


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


def test_a_disk_without_room_gets_none_of_a_record(path, monkeypatch):
    whole = path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[: len(line) // 2]))
    with open_journal(path.parent, NAME) as journal:
        with pytest.raises(UserError, match="the disk is full"):
            journal.write(key(5), report("s5"))
        assert path.read_bytes() == whole
        monkeypatch.undo()
        journal.write(key(5), report("s5", 1.0))
    assert kept(path) == ALL | {5: 1.0}


def test_a_link_in_the_journals_place_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "journal.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(UserError, match="cannot write"), open_journal(tmp_path / "reports", NAME):
        pass
    assert (tmp_path / "precious").read_text() == ""


def test_a_record_is_one_write_and_flushed_now_and_then(tmp_path, monkeypatch):
    writes, flushes = [], []
    write, flush = os.write, os.fdatasync
    monkeypatch.setattr(os, "write", lambda *args: (writes.append(args), write(*args))[1])
    monkeypatch.setattr(os, "fdatasync", lambda *args: (flushes.append(args), flush(*args))[1])
    journal = Journal(tmp_path / "journal.jsonl", NAME)
    for n in range(100):
        journal.write(key(n), report("s"))
    journal.close()
    assert len(writes) == 101
    assert 1 <= len(flushes) < 10


# --- keys ---------------------------------------------------------------------------------------


def test_a_key_depends_on_all_that_a_result_depends_on(monkeypatch):
    shared = keys.conditions(ASSIGNMENT, Limits(), True)
    first, *rest = ASSIGNMENT.cells
    others = {
        "points": Assignment(NAME, (*ASSIGNMENT.cells[:-1], replace(first, points=3.0))),
        "a test": Assignment(NAME, (replace(first, source="# changed"), *rest)),
        "name": Assignment("02_other", ASSIGNMENT.cells),
    }
    found = {what: keys.conditions(other, Limits(), True) for what, other in others.items()}
    found["limits"] = keys.conditions(ASSIGNMENT, Limits(call=3), True)
    found["sandbox"] = keys.conditions(ASSIGNMENT, Limits(), False)
    for name in keys.PACKAGES:
        with monkeypatch.context() as other:
            other.setattr(keys, "library_version", lambda n, name=name: "9" if n == name else "1")
            found[name] = keys.conditions(ASSIGNMENT, Limits(), True)
    monkeypatch.setattr(keys, "sources_hash", lambda: "a changed check")
    found["sources"] = keys.conditions(ASSIGNMENT, Limits(), True)
    assert len({shared, *found.values()}) == 1 + len(found)
    made = {keys.result_key(shared, s, data) for s in ("ada", "bob") for data in (b"", b"1", b"2")}
    assert len(made) == 6
    assert all(len(bytes.fromhex(k)) == 32 for k in made)


def test_the_same_conditions_have_the_same_key_in_another_process():
    code = (
        "import sys; from attncourse.grading.driver import journal as keys\n"
        "import test_journal as t\n"
        "shared = keys.conditions(t.ASSIGNMENT, t.Limits(), True)\n"
        "print(keys.result_key(shared, 'ada', b'x'), 'torch' in sys.modules)\n"
    )
    folders = f"{ROOT}/tests/grading{os.pathsep}{ROOT}/tests"
    environment = {**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "3"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    shared = keys.conditions(ASSIGNMENT, Limits(), True)
    assert done.stdout.decode().split() == [keys.result_key(shared, "ada", b"x"), "False"]


def test_every_module_of_the_package_counts_as_a_source(tmp_path, monkeypatch):
    (tmp_path / "checks").mkdir()
    (tmp_path / "grading").mkdir()
    (tmp_path / "checks" / "kqv.py").write_text("a = 1\n")
    monkeypatch.setattr(keys, "__file__", str(tmp_path / "grading" / "driver" / "journal.py"))
    found = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "checks" / "kqv.py").write_text(text)
        keys.sources_hash.cache_clear()
        found.append(keys.sources_hash())
    keys.sources_hash.cache_clear()
    assert found[0] == found[2] != found[1]
