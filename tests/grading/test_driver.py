"""The driver: which submissions run, which files it reads, and what happens on errors."""

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from attncourse.grading import machine
from attncourse.grading.course import folders as course
from attncourse.grading.driver import command, progress, saver
from attncourse.grading.driver import result_key as keys
from attncourse.grading.driver import run as driver
from attncourse.grading.driver.journal import Journal
from attncourse.grading.errors import UserError
from attncourse.grading.files import replace_file
from attncourse.grading.gradebook.connection import find_gradebook, open_gradebook
from attncourse.grading.judge import lanes
from attncourse.grading.limits import Limits
from attncourse.grading.results.class_results import class_results
from helpers.driver_runs import grade, run
from helpers.journal_records import journal_of, records
from helpers.small_course import NAME, hand_in, make_course, released, small


def make_class(folder: Path, number: int = 3) -> Path:
    """Make a course whose submissions differ in length, and so in points."""
    return make_course(folder, **{f"s{n}": small() + b" " * n for n in range(number)})


def status_and_points(outcome: command.Tally) -> dict[str, tuple[str, float]]:
    return {r.student: (r.status, r.points) for r in outcome.reports}


# --- what runs ----------------------------------------------------------------------------------


def test_an_unchanged_submission_does_not_run_again(tmp_path, marker, capsys):
    make_class(tmp_path)
    assert grade(tmp_path).counts == {"run": 3}
    output = capsys.readouterr().out
    assert f"3 graded, 0 from the journal; points are in {tmp_path / 'gradebook.db'}\n" in output
    assert grade(tmp_path).counts == {"journal": 3}
    assert "0 graded, 3 from the journal" in capsys.readouterr().out
    hand_in(tmp_path, "s1", small() + b"     ")
    hand_in(tmp_path, "new", small())
    marker.seen.clear()
    assert grade(tmp_path).counts == {"run": 2, "journal": 2}
    assert sorted(marker.seen) == ["new", "s1"]
    assert grade(tmp_path, force=True).counts == {"run": 4}
    assert grade(tmp_path).counts == {"journal": 4}
    journal_keys = [record["key"] for record in records(tmp_path)]
    assert (len(journal_keys), len(set(journal_keys))) == (9, 5)


def test_a_class_shares_its_seed_and_each_run_draws_another(tmp_path, marker):
    make_class(tmp_path)
    for _ in range(3):
        grade(tmp_path, force=True)
    runs = [set(marker.seeds[start : start + 3]) for start in (0, 3, 6)]
    assert [len(seeds) for seeds in runs] == [1, 1, 1]
    assert len(set().union(*runs)) == 3


def test_grading_one_student_takes_the_seed_of_the_class(tmp_path, marker):
    make_class(tmp_path)
    grade(tmp_path)
    [classes] = set(marker.seeds)
    marker.seeds.clear()
    for _ in range(2):
        grade(tmp_path, student="s1", force=True)
    assert marker.seeds == [classes] * 2
    grade(tmp_path, student="s1", force=True, limits=Limits(submission=99))  # other conditions
    assert marker.seeds[-1] != classes


def test_a_file_in_no_students_folder_is_named(tmp_path, marker, capsys):
    make_class(tmp_path, 1)
    grade(tmp_path)
    assert "no student's folder" not in capsys.readouterr().out
    for name in ("ada.ipynb", "all.zip", ".hidden", "desktop.ini"):
        (tmp_path / "submitted" / name).write_bytes(b"x")
    grade(tmp_path)
    command = f"attncourse collect {NAME} {tmp_path / 'submitted' / 'ada.ipynb'}\n"
    note = "note: in no student's folder and not graded: ada.ipynb, all.zip: "
    assert note + command in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "shown", "typed"),
    [
        (["[bold]y[link=https:evil]z;.zip"], "[bold]y[link=https:evil]z;.zip", 0),
        (["\x1b[31ma.zip", "b c.zip"], "?[31ma.zip, b c.zip", 1),
        (["\x1b[31ma.zip"], "?[31ma.zip", None),
    ],
)
def test_a_file_name_is_shown_as_text_and_quoted(tmp_path, marker, capsys, names, shown, typed):
    make_class(tmp_path, 1)
    for name in names:
        (tmp_path / "submitted" / name).write_bytes(b"x")
    grade(tmp_path)
    line = next(
        output_line
        for output_line in capsys.readouterr().out.splitlines()
        if output_line.startswith("note: in no")
    )
    note, command = line.rsplit(": ", 1)
    assert note == f"note: in no student's folder and not graded: {shown}"
    if typed is None:
        assert command.startswith("give one a name that can be typed")
    else:
        path = str(tmp_path / "submitted" / names[typed])
        assert shlex.split(command) == ["attncourse", "collect", NAME, path]


def test_a_changed_check_assignment_or_limit_regrades(tmp_path, marker, monkeypatch):
    make_class(tmp_path, 2)
    grade(tmp_path)
    assert grade(tmp_path, limits=Limits(call=7)).counts == {"run": 2}
    monkeypatch.setattr(keys, "sources_hash", lambda: "a changed check")
    assert grade(tmp_path).counts == {"run": 2}
    notebook_path = tmp_path / "solutions" / NAME / f"{NAME}.ipynb"
    notebook_path.write_bytes(notebook_path.read_bytes().replace(b"limit = 3", b"limit = 4"))
    assert grade(tmp_path).counts == {"run": 2}
    assert grade(tmp_path).counts == {"journal": 2}


def test_a_result_without_a_sandbox_does_not_count_with_one(tmp_path, marker):
    make_class(tmp_path, 2)
    assert not any(r.sandbox for r in grade(tmp_path, sandbox=False).reports)
    assert grade(tmp_path, sandbox=False).counts == {"journal": 2}
    outcome = grade(tmp_path)
    assert outcome.counts == {"run": 2}
    assert all(r.sandbox for r in outcome.reports)


def test_few_submissions_are_in_memory_at_a_time(tmp_path, marker, monkeypatch):
    students = [f"s{n:03}" for n in range(150)]
    make_course(tmp_path, **dict.fromkeys(students, small()))
    monkeypatch.setattr(saver, "MAX_BATCH", 20)
    read, saved, number_in_memory = [], [], []

    def read_and_count(place, name, student):
        read.append(student)
        number_in_memory.append(len(read) - len(saved))
        return original(place, name, student)

    original = course.read_submission
    monkeypatch.setattr(course, "read_submission", read_and_count)
    save = saver.save_batch
    monkeypatch.setattr(
        saver,
        "save_batch",
        lambda book, name, reports, late: (save(book, name, reports, late), saved.extend(reports))[
            0
        ],
    )
    outcome = grade(tmp_path)
    assert (outcome.counts, len(saved)) == ({"run": 150}, 150)
    assert max(number_in_memory) <= 20 * 2 + 2 * driver.WAITING_PER_LANE + 1
    assert outcome.reports == []  # too many for a table


def test_few_submissions_are_with_the_executor_at_a_time(tmp_path, marker, monkeypatch):
    monkeypatch.setattr(driver, "WAITING_PER_LANE", 3)
    make_course(tmp_path, **{f"s{n:03}": small() for n in range(100)})
    pending, number_pending = set(), []
    submit_to_marker = marker.submit
    with ThreadPoolExecutor(2) as pool:

        def submit(*arguments, **options):
            future = pool.submit(
                lambda: (time.sleep(0.002), submit_to_marker(*arguments, **options))[1].result()
            )
            pending.add(future)
            number_pending.append(len(pending))
            future.add_done_callback(pending.discard)
            return future

        marker.submit = submit
        assert grade(tmp_path).counts == {"run": 100}
    assert 2 < max(number_pending) <= 2 * 3  # of two lanes


def test_a_large_class_is_summarised(tmp_path, marker, capsys):
    make_course(tmp_path, **{f"s{n}": small() for n in range(61)})
    grade(tmp_path)
    output = capsys.readouterr().out
    assert "61 students: 61 graded" in output
    assert f"attncourse report {NAME}" in output
    assert "s17" not in output


# --- what fails ---------------------------------------------------------------------------------


def test_a_lost_lane_is_retried_once_and_then_reported(tmp_path, marker, capsys):
    make_class(tmp_path, 4)
    marker.problem = lambda student, tries: (
        BrokenProcessPool("lane lost")
        if student == "s1" or (student == "s2" and tries == 1)
        else None
    )
    outcome = grade(tmp_path)
    assert outcome.counts == {"run": 3, "failure": 1}
    assert status_and_points(outcome)["s1"] == ("interrupted", 0)
    assert "1 could not be run: grade again" in capsys.readouterr().out
    assert [marker.seen.count(f"s{n}") for n in range(4)] == [1, 2, 2, 1]
    report = json.loads((tmp_path / "reports" / NAME / "s1.json").read_text())
    assert "BrokenProcessPool: lane lost" in " ".join(report["attention"])
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as connection:
        query = "select count(*) from submitted_assignment"
        assert connection.execute(query).fetchone() == (4,)
    marker.problem = lambda *_: None
    assert grade(tmp_path).counts == {"journal": 3, "run": 1}


def test_a_broken_executor_still_reports_every_student(tmp_path, marker, monkeypatch):
    make_class(tmp_path, 30)

    def refuse(*_, **__):
        raise RuntimeError("cannot schedule new futures after shutdown")

    monkeypatch.setattr(marker, "submit", refuse)
    outcome = grade(tmp_path)
    assert outcome.counts == {"failure": 30}
    assert len(outcome.reports) == 30


def test_a_user_error_ends_the_run_and_keeps_the_journal(tmp_path, marker):
    make_class(tmp_path, 5)
    marker.problem = lambda student, _: (
        UserError("a worker cannot import torch") if student == "s3" else None
    )
    with pytest.raises(UserError) as problem:
        grade(tmp_path)
    assert "a worker cannot import torch; 3 of 5 results are in" in str(problem.value)
    assert str(problem.value).endswith("and the same command goes on from there")
    marker.problem = lambda *_: None
    assert grade(tmp_path).counts == {"journal": 3, "run": 2}


def test_a_notebook_that_cannot_be_shown_stops_no_run(tmp_path, marker, monkeypatch):
    make_class(tmp_path)
    make_notebook = saver.autograded_notebook
    unshowable_data = small() + b" "

    def fail_for_one(data, assignment, report):
        if data == unshowable_data:
            raise RecursionError
        return make_notebook(data, assignment, report)

    monkeypatch.setattr(saver, "autograded_notebook", fail_for_one)
    assert grade(tmp_path).counts == {"run": 3}
    report = json.loads((tmp_path / "reports" / NAME / "s1.json").read_text())
    assert "cannot be shown (RecursionError)" in report["attention"][0]
    assert (tmp_path / "autograded" / "s1" / NAME / f"{NAME}.ipynb").is_file()


# --- what is handed in --------------------------------------------------------------------------


def make_class_of_special_files(folder: Path) -> None:
    """Make a class whose submissions are links, pipes, folders and other special files."""
    make_course(folder, plain=small())
    for student in ("pipe", "folder", "link", "huge", "socket", "mac", "stamp", "no time"):
        (folder / "submitted" / student / NAME).mkdir(parents=True)
    submitted = folder / "submitted"
    os.mkfifo(submitted / "pipe" / NAME / f"{NAME}.ipynb")
    (submitted / "folder" / NAME / f"{NAME}.ipynb").mkdir()
    (submitted / "link" / NAME / f"{NAME}.ipynb").symlink_to(
        submitted / "plain" / NAME / f"{NAME}.ipynb"
    )
    with (submitted / "huge" / NAME / f"{NAME}.ipynb").open("wb") as file:
        file.truncate(100_000_001)
    (submitted / "dangling").symlink_to(folder / "nowhere")
    (submitted / "elsewhere").symlink_to(submitted / "plain")
    (submitted / "inside").mkdir()
    (submitted / "inside" / NAME).symlink_to(submitted / "plain" / NAME)
    (submitted / "mac" / NAME / f"._{NAME}.ipynb").write_bytes(b"\0\5\x16\7")
    hand_in(folder, "stamp", small())
    os.mkfifo(submitted / "stamp" / NAME / "timestamp.txt")
    hand_in(folder, "no time", small())
    (submitted / "no time" / NAME / "timestamp.txt").write_text("\x1b[31mnow")
    (submitted / ".hidden").mkdir()
    (submitted / "a file").write_text("no student")


def test_special_files_are_reported_without_blocking(tmp_path, marker):
    make_class_of_special_files(tmp_path)
    outcome = grade(tmp_path)
    full = (2.0 * 3) if len(small()) % 3 == 2 else float(len(small()) % 3) * 3
    assert status_and_points(outcome) == {
        "plain": ("graded", full),
        "stamp": ("graded", full),
        "no time": ("graded", full),
        "mac": ("missing", 0),
        "socket": ("missing", 0),
        **dict.fromkeys(("pipe", "folder", "link", "huge"), ("unreadable", 0)),
        **dict.fromkeys(("dangling", "elsewhere", "inside"), ("unreadable", 0)),
    }
    notes = {r.student: r.notes[0] for r in outcome.reports if r.notes}
    assert "is not a plain file" in notes["pipe"]
    assert "is not a plain file" in notes["folder"] or "directory" in notes["folder"]
    assert "is a symbolic link, not a file" in notes["link"]
    assert "has 100 MB, over 100" in notes["huge"]
    for student in ("dangling", "elsewhere", "inside"):
        assert f"submitted/{student}" in notes[student]
        assert "is a symbolic link, not a folder" in notes[student]
    attention = {r.student: r.attention for r in outcome.reports}
    assert "timestamp.txt: [31mnow is no date" in attention["no time"][0]
    assert attention["stamp"] == ()


def test_a_file_is_replaced_completely_or_not_at_all(tmp_path, monkeypatch):
    path, seen = tmp_path / "deep" / "ada.json", []
    replace_file(path, "old")

    def fail_to_replace(new_path, target):
        seen.append((Path(new_path).read_text(), Path(target).read_text()))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail_to_replace)
    with pytest.raises(UserError, match=r"cannot write .*ada\.json: No space left"):
        replace_file(path, "new")
    assert seen == [("new", "old")]
    assert [p.name for p in path.parent.iterdir()] == ["ada.json"]
    assert path.read_text() == "old"


def test_unusual_names_are_graded_and_bad_ones_reported(tmp_path, marker):
    names = ["Zoë Ångström", "名前", "a b  c", "-rf", "*", "%s", "'; drop table student", "x" * 128]
    make_course(tmp_path, **dict.fromkeys(names, small()))
    bad_names = [b"\xff\xfe", b"line\nbreak", b"\x1b[31mred", b"y" * 129, "🎓".encode() * 60]
    for name in bad_names:
        folder = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"submitted", name)), NAME)
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_bytes(small())
    outcome = grade(tmp_path)
    assert outcome.counts == {"run": len(names), "folder": len(bad_names)}
    assert {
        s for s, (status, _) in status_and_points(outcome).items() if status == "graded"
    } == set(names)
    assert len(status_and_points(outcome)) == len(names) + len(bad_names)
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as connection:
        rows = connection.execute("select id from student").fetchall()
    assert {name for (name,) in rows} == set(names)
    for student in status_and_points(outcome):
        report = json.loads((tmp_path / "reports" / NAME / f"{student}.json").read_text())
        assert report["student"] == student
        assert student.isprintable()


def test_the_hand_in_time_is_kept(tmp_path, marker):
    make_class(tmp_path, 1)
    stamp = tmp_path / "submitted" / "s0" / NAME / "timestamp.txt"
    copied_stamp = tmp_path / "autograded" / "s0" / NAME / "timestamp.txt"
    query = "select timestamp from submitted_assignment"
    for text, expected in (
        ("2026-03-01 12:00:00 UTC\n", "2026-03-01 12:00:00.000000"),
        ("2026-03-02 12:00:00 UTC\n", "2026-03-02 12:00:00.000000"),
    ):
        stamp.write_text(text)
        grade(tmp_path)
        assert copied_stamp.read_text() == text
        with closing(sqlite3.connect(tmp_path / "gradebook.db")) as connection:
            assert connection.execute(query).fetchone() == (expected,)
    stamp.unlink()
    grade(tmp_path)
    assert not copied_stamp.exists()


def test_only_changed_answers_are_scored_again(tmp_path, marker):
    make_class(tmp_path, 2)
    course_gradebook = find_gradebook(tmp_path)
    grade(tmp_path)
    with open_gradebook(course_gradebook) as gradebook:  # as the formgrader does
        for student in ("s0", "s1"):
            row = gradebook.find_grade("points_add", NAME, NAME, student)
            row.manual_score, row.needs_manual_grade = 1.5, False
        gradebook.db.commit()
    for _ in range(2):
        grade(tmp_path)
        assert {r.student: (r.waiting, r.stale) for r in class_results(tmp_path, NAME).results} == {
            "s0": ((), ()),
            "s1": ((), ()),
        }
    hand_in(tmp_path, "s1", small(twice="def twice(a):\n    return a"))
    for _ in range(2):
        grade(tmp_path)
        results = class_results(tmp_path, NAME).by_student
        assert (results["s0"].stale, results["s1"].stale) == ((), ("points_add",))
        assert results["s1"].cells["points_add"].points == 1.5


# --- the gradebook and the disk -----------------------------------------------------------------


def refuses(process: subprocess.CompletedProcess, *words: str) -> None:
    """Assert exit status 2 and one line on standard error, with these words in it."""
    assert (process.returncode, process.stdout) == (2, ""), process
    assert len(process.stderr.splitlines()) == 1, process.stderr
    for word in words:
        assert word in process.stderr


def test_an_unreleased_assignment_is_not_graded(tmp_path, marker):
    make_class(tmp_path, 1)
    shutil.rmtree(tmp_path / "exercises")
    with pytest.raises(UserError, match=f"{NAME} was never released: attncourse release {NAME}"):
        grade(tmp_path)
    assert not (tmp_path / "gradebook.db").exists()
    assert not (tmp_path / "reports").exists()
    process = run("release", NAME, cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == f"exercises/{NAME}/{NAME}.ipynb written\n"
    cells = json.loads((tmp_path / "exercises" / NAME / f"{NAME}.ipynb").read_text())["cells"]
    expected_cells = json.loads(released())["cells"]
    assert ["".join(c["source"]).strip() for c in cells] == [
        c["source"].strip() for c in expected_cells
    ]
    assert grade(tmp_path).counts == {"run": 1}
    shutil.rmtree(tmp_path / "exercises")  # the gradebook knows of it
    assert grade(tmp_path).counts == {"journal": 1}


def test_another_courses_gradebook_is_not_written(tmp_path, marker):
    make_class(tmp_path, 1)
    grade(tmp_path)
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as connection:
        connection.execute("update course set id = 'chemistry' where id = 'attention'")
        connection.execute("update assignment set course_id = 'chemistry'")
        connection.commit()
    before = (tmp_path / "gradebook.db").read_bytes()
    process = run("grade", NAME, cwd=tmp_path)
    refuses(process, "gradebook of another course (chemistry; this one is attention)", "--db")
    assert (tmp_path / "gradebook.db").read_bytes() == before
    process = run("grade", NAME, "--db", "sqlite:///new.db", cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert "points are in new.db" in process.stdout


def test_a_database_without_nbgraders_tables_is_not_written(tmp_path, marker):
    make_class(tmp_path, 1)
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as connection:
        connection.execute("create table recipes (name text)")
    with pytest.raises(UserError, match="holds other tables than nbgrader's"):
        grade(tmp_path)


def test_a_locked_gradebook_is_waited_for_and_reported(tmp_path, marker):
    make_class(tmp_path, 2)
    grade(tmp_path)
    hand_in(tmp_path, "s1", small() + b"    ")
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as holder:
        holder.execute("begin exclusive")
        with pytest.raises(UserError, match=r"database is locked .*another process holds it"):
            grade(tmp_path)
    assert len(records(tmp_path)) == 2
    assert grade(tmp_path).counts == {"journal": 1, "run": 1}


def test_a_gradebook_locked_while_grading_keeps_the_journal(tmp_path, marker):
    make_class(tmp_path, 2)
    grade(tmp_path)
    hand_in(tmp_path, "s1", small() + b"    ")
    holder = sqlite3.connect(tmp_path / "gradebook.db", check_same_thread=False)
    marker.problem = lambda *_: holder.execute("begin exclusive") and None
    with closing(holder), pytest.raises(UserError, match="is locked") as problem:
        grade(tmp_path)
    assert "2 of 2 results are in" in str(problem.value)
    marker.problem = lambda *_: None
    assert grade(tmp_path).counts == {"journal": 2}


def test_a_damaged_gradebook_is_reported_and_keeps_journal(tmp_path, marker):
    make_class(tmp_path, 2)
    grade(tmp_path)
    data = (tmp_path / "gradebook.db").read_bytes()
    for content, message in (
        (b"not a database at all" * 300, "not a database"),
        (data[:4096] + os.urandom(len(data) - 4096), "malformed"),
    ):
        (tmp_path / "gradebook.db").write_bytes(content)
        with pytest.raises(UserError, match=message):
            grade(tmp_path)
        assert len(records(tmp_path)) == 2
    (tmp_path / "gradebook.db").unlink()
    assert grade(tmp_path).counts == {"journal": 2}


def prefix_with_mounts(script: str) -> list[str]:
    """Return a prefix that runs a command in a mount namespace of its own, after this script."""
    prefix = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-ec",
        f'{script}\nexec "$@"',
    ]
    trial = subprocess.run([*prefix, "sh", "true"], capture_output=True, text=True)
    if shutil.which("unshare") is None or trial.returncode:
        pytest.skip(f"no private mounts here: {trial.stderr.strip()}")
    return [*prefix, "sh"]


def test_a_read_only_gradebook_is_reported_before_a_run(tmp_path):
    make_class(tmp_path, 1)
    assert run("release", NAME, cwd=tmp_path).returncode == 0
    book = tmp_path / "gradebook.db"
    prefix = prefix_with_mounts(
        f"mount --bind '{book}' '{book}'; mount -o remount,bind,ro '{book}'"
    )
    refuses(run("grade", NAME, cwd=tmp_path, prefix=prefix), "gradebook.db", "readonly", "writable")
    assert not (journal_of(tmp_path)).exists()
    mount_course = f"mount --bind '{tmp_path}' '{tmp_path}'; mount -o remount,bind,ro '{tmp_path}'"
    prefix = prefix_with_mounts(f"{mount_course}; cd '{tmp_path}'")
    refuses(run("grade", NAME, cwd=tmp_path, prefix=prefix), "cannot write")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kilobytes", "advice"),
    [
        (120, "put this right and grade again"),  # there is no room for a journal
        (170, "the same command"),
        (232, "the same command"),
        (280, "the same command"),
        (330, "the same command"),
    ],
)
def test_a_full_disk_is_reported_and_keeps_the_journal(tmp_path, kilobytes, advice):
    """The course lies on a disk of this size, which fills up at different steps."""
    make_class(tmp_path / "course", 12)
    course_copy = tmp_path / "kept"
    course_copy.mkdir()
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size={kilobytes}k tmpfs '{disk}'\n"
        f"cp -r '{tmp_path}/course/.' '{disk}'\n"
        f'cd \'{disk}\'; trap \'cp -r "{disk}/." "{course_copy}"\' EXIT; "$@"; exit'
    )
    prefix = prefix_with_mounts(script)
    refuses(run("grade", NAME, cwd=tmp_path, prefix=prefix), "cannot write", advice)
    if (journal_of(course_copy)).exists():
        with closing(Journal(journal_of(course_copy), NAME)) as journal:
            assert journal.notes == []
    process = run("grade", NAME, cwd=course_copy)
    assert (process.returncode, process.stderr) == (0, "")
    assert [p for p in course_copy.rglob(".*") if p.name.endswith(".new")] == []
    assert len({r["key"] for r in records(course_copy)}) == len(records(course_copy)) == 12


def test_a_disk_without_room_for_lanes_changes_no_result(tmp_path):
    make_class(tmp_path / "course", 3)
    disk = tmp_path / "disk"
    disk.mkdir()
    prefix = prefix_with_mounts(f"mount -t tmpfs -o size=64k tmpfs '{disk}'")
    full_disk_run = run("grade", NAME, cwd=tmp_path / "course", prefix=prefix, TMPDIR=str(disk))
    refuses(
        full_disk_run, "no lane can start on this machine", "make room there", "the same command"
    )
    assert records(tmp_path / "course") == []
    process = run("grade", NAME, cwd=tmp_path / "course")
    assert (process.returncode, process.stderr) == (0, "")
    assert [record["report"]["status"] for record in records(tmp_path / "course")] == ["graded"] * 3


# --- cores and memory ---------------------------------------------------------------------------


def test_more_lanes_than_memory_allows_are_refused(monkeypatch):
    monkeypatch.setattr(machine, "available_mb", lambda: 3 * machine.LANE_MB + 5)
    monkeypatch.setattr(machine, "usable_cores", lambda: 8)
    assert machine.choose_lanes(3) == 3
    assert machine.choose_lanes(0) == 3
    need, have = 4 * machine.LANE_MB, 3 * machine.LANE_MB + 5
    with pytest.raises(UserError) as problem:
        machine.choose_lanes(4)
    assert f"4 lanes need about {need} MB" in str(problem.value)
    assert f"{have} MB are available: --jobs 3 fits" in str(problem.value)
    monkeypatch.setattr(machine, "available_mb", lambda: 100)
    with pytest.raises(UserError, match="1 lanes need about"):
        machine.choose_lanes(0)
    monkeypatch.setattr(machine, "available_mb", lambda: None)
    assert machine.choose_lanes(0) == 8


def test_the_smallest_memory_limit_counts(tmp_path, monkeypatch):
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable:    4096000 kB\n")
    monkeypatch.setattr(machine, "PROC", proc)
    monkeypatch.setattr(machine, "CGROUPS", groups)
    assert machine.available_mb() == 4000

    def write_group(folder: str, **files: object) -> None:
        (groups / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (groups / folder / name.replace("__", ".")).write_text(f"{content}\n")

    mib = machine.MIB
    (proc / "self" / "cgroup").write_text("0::/user/me\n")
    stat = f"inactive_file {100 * mib}\nanon 5"
    write_group("user/me", memory__max="max", memory__current=0, memory__stat=stat)
    assert machine.available_mb() == 4000
    write_group("user", memory__max=2000 * mib, memory__current=500 * mib, memory__stat=stat)
    assert machine.available_mb() == 1600
    (proc / "self" / "cgroup").write_text("4:cpu:/\n3:memory:/job\n0::/\n")
    version_1_files = {"memory__limit_in_bytes": 900 * mib, "memory__usage_in_bytes": 300 * mib}
    write_group("memory/job", **version_1_files, memory__stat=f"total_inactive_file {50 * mib}")
    assert machine.available_mb() == 650


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/pod", {"pod/cpu.max": "150000 100000"}, 2),
        ("0::/pod", {"pod/cpu.max": "max 100000"}, 16),
        ("0::/pod/in", {"pod/cpu.max": "50000 100000", "pod/in/cpu.max": "800000 100000"}, 1),
        (
            "4:cpu,cpuacct:/job",
            {"cpu/job/cpu.cfs_quota_us": "300000", "cpu/job/cpu.cfs_period_us": "100000"},
            3,
        ),
        ("4:cpu,cpuacct:/job", {"cpu/job/cpu.cfs_quota_us": "-1"}, 16),
    ],
)
def test_a_control_groups_cpu_share_counts_as_cores(
    tmp_path, monkeypatch, membership, files, expected
):
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(f"{membership}\n")
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(f"{text}\n")
    monkeypatch.setattr(machine, "PROC", proc)
    monkeypatch.setattr(machine, "CGROUPS", groups)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(16)))
    assert machine.usable_cores() == expected


def test_a_lane_that_cannot_start_reports_its_last_words(monkeypatch):
    """A Python that finds its libraries by LD_LIBRARY_PATH does not start without it."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/python/lib")
    assert machine.lane_environment()["LD_LIBRARY_PATH"] == "/opt/python/lib"
    failing_code = "import sys; sys.exit('libpython3.11.so.1.0: cannot open shared object file')"

    def launch(modules, ends, errors):
        return subprocess.Popen([sys.executable, "-c", failing_code], stderr=errors)

    monkeypatch.setattr(lanes, "launch_lanes", launch)
    [lane] = lanes.start_processes(["numpy"], 1)
    lane.process.wait()
    with pytest.raises(lanes.LaneLost, match=r"ended \(libpython.*cannot open shared object"):
        lane.ask({"notebook": b"1", "assignment": b"", "limits": {"stretch": 1.0}}, print)
    lane.close()


def test_progress_is_printed_as_lines_without_a_terminal(monkeypatch, capsys):
    clock, waiting, passing = [0.0], threading.Semaphore(0), threading.Semaphore(0)

    class Turn(threading.Event):
        """An event whose waiting ends when the test says so, and that shows when it waits."""

        def wait(self, seconds):
            waiting.release()
            passing.acquire()
            return self.is_set()

        def set(self):
            super().set()
            passing.release()

    def next_line() -> str:
        passing.release()
        assert waiting.acquire(timeout=60)
        return capsys.readouterr().out

    monkeypatch.setattr(progress, "Event", Turn)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    before = threading.enumerate()
    with progress.show_progress(Console(), "grading x", 30) as step:
        assert waiting.acquire(timeout=60)
        assert next_line() == ""  # no step was taken
        for number_done in range(1, 31):
            clock[0] += 5
            step()
            time_left = timedelta(seconds=5 * (30 - number_done))
            assert (
                next_line()
                == f"grading x: {number_done} of 30, 0.2 a second, about {time_left} left\n"
            )
    assert capsys.readouterr().out == ""  # nothing when it is over
    assert threading.enumerate() == before
