"""The command ``attncourse``: its output, its exit status, and the demo's grades."""

import errno
import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import attncourse
from attncourse.checks import exercises
from attncourse.grading import demo, sample
from attncourse.grading.course.folders import find_assignment
from attncourse.grading.errors import UserError, missing_module_sentence
from attncourse.grading.files import reserved
from attncourse.grading.gradebook.connection import find_gradebook
from helpers.command_line import refuses
from helpers.forked_commands import run
from helpers.project import ROOT
from helpers.small_course import NAME, STUB, cell, graded, make_course, notebook, small
from helpers.small_course import solution as answer

COMMAND = [sys.executable, "-W", "error", "-m", "attncourse.grading.cli"]


def make_kqv_course(folder: Path) -> Path:
    """Make a course whose one assignment has chapter 5's cells, solved and released."""
    chapter = [exercise for exercise in exercises().values() if exercise.stem == "kqv"]
    for part, sources in (
        ("solutions", sample.sample_answers(sample.MATRICES)),
        ("exercises", dict.fromkeys(sample.MATRICES, STUB)),
    ):
        cells = [cell("from attncourse.checks import check, examine")]
        for exercise in chapter:
            cells.append(answer(exercise.name, sources[exercise.name]))
            cells.append(
                cell(
                    f'check("{exercise.target}", {exercise.name})',
                    f"check_{exercise.name}",
                    locked=True,
                )
            )
        for exercise in chapter:
            test = f'examine("{exercise.target}", {exercise.name}).earned'
            cells.append(graded(f"points_{exercise.name}", test, exercise.points))
            cells.append(graded(f"hidden_{exercise.name}", f"assert callable({exercise.name})", 1))
        assignment_folder = folder / part / "05_kqv"
        assignment_folder.mkdir(parents=True)
        (assignment_folder / "05_kqv.ipynb").write_bytes(notebook(*cells))
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    return folder


# --- errors -----------------------------------------------------------------------------------


def test_help_is_fast_and_loads_no_large_library():
    before = os.times()
    process = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True)
    after = os.times()
    assert process.returncode == 0
    assert after.children_user - before.children_user < 1.5  # 0.2 s of processor time
    for command in ("check", "grade", "demo"):
        assert command in process.stdout
    list_modules = "import sys, attncourse.grading.cli; print(*sys.modules)"
    module_names = subprocess.run(
        [sys.executable, "-c", list_modules], capture_output=True, text=True
    ).stdout
    assert not {"torch", "numpy", "matplotlib", "nbgrader", "nbformat"} & set(module_names.split())


def test_unknown_assignment_names_the_nearest(tmp_path):
    course = make_course(tmp_path, ada=small())
    refuses(run("grade", "01_smal", cwd=course), "01_smal", "did you mean 01_small?")
    refuses(run("grade", "zzz", cwd=course), "zzz", f"There are: {NAME}")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([graded("points_add", "1", 2)], "2 cells are called points_add"),
        (
            [graded("points_more", "def x(:", 2)],
            "the test points_more is no Python: invalid syntax",
        ),
    ],
)
def test_a_wrong_solution_is_refused_before_grading(cells, message, tmp_path):
    course = make_course(tmp_path, ada=small())
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(notebook(*json.loads(path.read_bytes())["cells"], *cells))
    for command in ("grade", "release"):
        refuses(run(command, NAME, cwd=course), f"{NAME}.ipynb: {message}")


def test_missing_folders_are_refused(tmp_path):
    refuses(run("grade", NAME, cwd=tmp_path), "no folder solutions", "--course")
    course = make_course(tmp_path)
    refuses(run("grade", NAME, cwd=course), "no folder submitted", f"submitted/STUDENT/{NAME}")
    (course / "submitted").mkdir()
    refuses(run("grade", NAME, cwd=course), "empty")
    (course / "solutions" / NAME / f"{NAME}.ipynb").unlink()
    refuses(run("grade", NAME, cwd=course), "make exercises")


def test_an_unreadable_solution_is_refused(tmp_path):
    course = make_course(tmp_path, ada=small())
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_text('{"cells":\n[')
    refuses(run("grade", NAME, cwd=course), "line 2")
    path.write_bytes(notebook(cell("x = 1")))
    refuses(run("grade", NAME, cwd=course), "no graded cells")


def test_an_unknown_student_names_the_nearest(tmp_path):
    course = make_course(tmp_path, ada=small())
    refuses(run("grade", NAME, "--student", "adda", cwd=course), "adda", "did you mean ada?")


def test_missing_nbgrader_is_one_line(tmp_path):
    course = make_course(tmp_path, ada=small())
    program = (
        "import sys; sys.modules['nbgrader'] = None; import attncourse.grading.cli as c; c.main()"
    )
    command = [sys.executable, "-c", program, "grade", NAME]
    process = subprocess.run(command, capture_output=True, text=True, cwd=course)
    refuses(process, "nbgrader is not installed: pip install 'attncourse[grade]'")


WITHOUT_EXTRAS = """
import sys
gone = {"nbgrader", "nbconvert", "bleach", "sqlalchemy", "traitlets", "jupyter_core", "docutils"}
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in gone:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
from attncourse.grading import cli
for command in ("report", "feedback", "export"):
    sys.argv = ["attncourse", command, "05_kqv"]
    try: cli.main()
    except SystemExit as end: print(command, end.code)
"""


def test_without_an_extra_every_command_names_it(tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, cwd=tmp_path
    )
    assert process.stdout == "report 2\nfeedback 2\nexport 2\n", process.stderr
    lines = process.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("not installed: pip install 'attncourse[grade]'") for line in lines)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("bleach.css_sanitizer", "bleach is not installed: pip install 'attncourse[grade]'"),
        ("psycopg", "psycopg is not installed: pip install 'attncourse[postgres]'"),
        ("rapidfuzz", "rapidfuzz is not installed: pip install 'attncourse'"),
        ("jupyter_core", "jupyter_core is not installed: pip install 'attncourse[grade]'"),
        ("_ctypes", "was built without _ctypes"),
        ("sqlite3", "was built without sqlite3"),
        ("attncourse.nowhere", ""),
    ],
)
def test_a_missing_module_is_named_with_its_extra(module, expected):
    sentence = missing_module_sentence(module)
    assert expected in sentence
    assert bool(sentence) == bool(expected)


def test_a_file_that_is_no_gradebook_is_refused(tmp_path):
    course = make_course(tmp_path, ada=small())
    (course / "gradebook.db").write_text("not a database, but long enough to be looked at" * 40)
    refuses(run("grade", NAME, cwd=course), "cannot write gradebook.db")


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("nothing.ipynb", None, "there is no file"),
        ("torn.ipynb", '{"cells": [\n', "line 2"),
        ("02_mixing.py", "x = = 1", "line 1"),
        ("poem.ipynb", '{"cells": []}', "cannot tell which exercises"),
    ],
)
def test_check_refuses_what_it_cannot_use(tmp_path, name, content, word):
    if content is not None:
        (tmp_path / name).write_text(content)
    refuses(run("check", tmp_path / name), word)


def test_bad_options_exit_with_status_2():
    assert run("grade").returncode == 2
    assert run("grade", NAME, "--timeout", "soon").returncode == 2
    assert run("marks").returncode == 2


# --- check ------------------------------------------------------------------------------------


def mixing_notebook(mix: str) -> bytes:
    """Return the start of a student's notebook for chapter 2."""
    return notebook(
        answer("mix", mix),
        cell('check("mixing.mix", mix)', "check_mix", locked=True),
        graded("points_mix", "12", 12),
    )


def test_check_gives_a_student_the_verdicts(tmp_path):
    path = tmp_path / "my work.ipynb"  # known by its cells, not by its name
    path.write_bytes(mixing_notebook("def mix(A, X):\n    return A.mT @ X"))
    process = run("check", path)
    mix = exercises()["mixing.mix"]
    names = {m.name.lower() for m in mix.mistakes}
    headlines = [x for x in process.stdout.splitlines() if x.startswith("What happened: ")]
    assert (process.returncode, process.stderr) == (1, "")
    assert headlines[0].removeprefix("What happened: ").rstrip(".").lower() in names
    assert "✗ mixing.mix" in process.stdout
    assert "✗ mixing.normalize_rows: 0 of" in process.stdout
    assert "put back" not in process.stdout
    total, last_line = process.stdout.splitlines()[-2:]
    assert total.startswith("total: ")
    assert "run only when your notebook is graded" in last_line
    assert list(tmp_path.iterdir()) == [path]


def test_check_passes_a_right_notebook_known_by_its_name(tmp_path):
    right = (ROOT / "attncourse" / "mixing.py").read_text()
    path = tmp_path / "02_mixing (1).ipynb"
    path.write_bytes(notebook(cell(right)))
    process = run("check", path)
    total = sum(e.points for e in exercises().values() if e.stem == "mixing")
    assert (process.returncode, process.stderr) == (0, "")
    assert f"total: {total} of {total} points" in process.stdout


# --- grade ------------------------------------------------------------------------------------


def points_in_gradebook(course: Path) -> dict[str, float]:
    """Return each student's points in the gradebook."""
    query = (
        "select s.student_id, sum(g.auto_score) from submitted_assignment s "
        "join submitted_notebook n on n.assignment_id = s.id "
        "join grade g on g.notebook_id = n.id group by s.student_id"
    )
    connection = sqlite3.connect(course / "gradebook.db")
    points = dict(connection.execute(query))
    connection.close()
    return points


def test_grade_shows_a_table_and_writes_the_gradebook(tmp_path):
    course = make_course(tmp_path, ada=small(), bob=small(twice=STUB), torn=b'{"cells": [\n]')
    (course / "submitted" / "nil").mkdir()
    process = run("grade", NAME, cwd=course)
    assert (process.returncode, process.stderr) == (0, "")
    lines = process.stdout.splitlines()
    rows = {x.split()[0]: x for x in lines if "/ 7" in x}
    lines_below = {student: lines[lines.index(row) + 1].strip() for student, row in rows.items()}
    assert list(rows) == ["ada", "bob", "nil", "torn"]
    assert "7 / 7" in rows["ada"]
    assert "3 / 7" in rows["bob"]
    assert "not attempted: twice" in lines_below["bob"]
    assert "nothing handed in" in lines_below["nil"]
    assert "unreadable notebook: line 2" in lines_below["torn"]
    assert points_in_gradebook(course) == {"ada": 7, "bob": 3, "torn": 0}
    assert (course / "autograded" / "bob" / NAME / f"{NAME}.ipynb").is_file()


def test_grading_again_shows_what_changed(tmp_path):
    course = make_course(tmp_path, ada=small(), bob=small(twice=STUB))
    assert run("grade", NAME, cwd=course).returncode == 0
    for student in ("ada", "bob"):
        path = course / "submitted" / student / NAME / f"{NAME}.ipynb"
        path.write_bytes(small(add=STUB))
    process = run("grade", NAME, "--student", "ada", cwd=course)
    assert (process.returncode, process.stderr) == (0, "")
    assert "bob" not in process.stdout
    assert points_in_gradebook(course) == {"ada": 4, "bob": 3}
    path = course / "solutions" / NAME / f"{NAME}.ipynb"
    path.write_bytes(path.read_bytes().replace(b"points_twice", b"points_double"))
    process = run("grade", NAME, cwd=course)
    assert (process.returncode, process.stderr) == (0, "")
    for change in ("points_double is new, 4 points", "points_twice is gone, 4 points"):
        assert f"note: the assignment changed: {change}" in process.stdout
    assert points_in_gradebook(course) == {"ada": 4, "bob": 4}
    assert "the assignment changed" not in run("grade", NAME, cwd=course).stdout


def test_ctrl_c_leaves_no_process_and_says_how_to_go_on(tmp_path):
    course = make_course(tmp_path, ada=small(add="import time\ntime.sleep(60)"))
    # An import that is interrupted leaves its file to Python, which closes it and warns.
    process = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore::ResourceWarning",
            *COMMAND[3:],
            "grade",
            NAME,
        ],
        cwd=course,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Tests that run in the background ignore Ctrl-C, and their children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    lane = wait_for_lane(process.pid)
    journal = course / "reports" / NAME / "journal.db"
    for _ in range(2400):  # lanes start before the gradebook is open
        if journal.exists():
            break
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr.decode()
    assert stderr.decode().splitlines() == [
        f"attncourse: stopped; 0 of 1 results are in reports/{NAME}/journal.db, "
        "and the same command goes on from there"
    ]
    assert not still_runs(lane)
    assert not (course / "autograded").exists()


def run_interrupted(program: str) -> subprocess.CompletedProcess:
    """Run a program that sends itself Ctrl-C, with Python's own handler.

    Tests that run in the background ignore Ctrl-C, and their children inherit that.
    """
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_ctrl_c_while_loading_is_one_sentence():
    """The signal arrives at the first import of a library."""
    program = (
        "import signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from attncourse.__main__ import main\n"
        "main()\n"
    )
    process = run_interrupted(program)
    assert (process.returncode, process.stderr) == (130, "attncourse: stopped; nothing was begun\n")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["scripts"] == {"attncourse": "attncourse.__main__:main"}


def test_ctrl_c_in_an_import_callback_still_stops():
    # The callback of a weak reference stands for importlib's: Python drops what is raised there.
    program = (
        "import signal, time, weakref\n"
        "from attncourse.grading.stopping import ending_at_ctrl_c\n"
        "class Lock: pass\n"
        "lock = Lock()\n"
        "watch = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))\n"
        "with ending_at_ctrl_c('half is done'):\n"
        "    del lock\n"
        "    time.sleep(60)\n"
    )
    process = run_interrupted(program)
    assert (process.returncode, process.stderr) == (130, "attncourse: stopped; half is done\n")


def test_ctrl_c_in_executed_source_has_its_status(tmp_path):
    (tmp_path / "interrupted.py").write_text(
        "from attncourse.grading.stopping import ending_at_ctrl_c\n"
        "with ending_at_ctrl_c('half is done'):\n"
        "    exec('raise KeyboardInterrupt')\n"
    )
    process = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
    )
    assert (process.returncode, process.stderr) == (130, "attncourse: stopped; half is done\n")


def wait_for_lane(parent: int) -> psutil.Process:
    """Return a lane that a process started, once it runs."""
    for _ in range(2400):
        for process in psutil.Process(parent).children():
            with suppress(psutil.Error):
                if "attncourse.grading.judge.lane" in process.cmdline():
                    time.sleep(0.5)
                    return process
        time.sleep(0.05)
    raise AssertionError("no lane was started")


def still_runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


# --- demo -------------------------------------------------------------------------------------


def write_foreign_settings(course: Path) -> dict[str, str]:
    """Return variables, and write files, that name an instructor's gradebook in three ways."""
    (course / "jupyter").mkdir()
    for folder, name in ((course, "real-1.db"), (course / "jupyter", "real-2.db")):
        with (folder / "nbgrader_config.py").open("a") as file:
            file.write(
                f"c = get_config()\nc.CourseDirectory.db_url = 'sqlite:///{course / name}'\n"
            )
    return {
        "ATTNCOURSE_DB": f"sqlite:///{course / 'real-3.db'}",
        "JUPYTER_CONFIG_DIR": str(course / "jupyter"),
        "JUPYTER_NO_CONFIG": "",
    }


def test_a_users_settings_name_the_gradebook(tmp_path, monkeypatch):
    """Without these settings the demo's test would prove nothing."""
    for name, value in write_foreign_settings(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = []
    for unset in ("ATTNCOURSE_DB", "", ""):
        names.append(find_gradebook(tmp_path).file.name)
        monkeypatch.delenv(unset, raising=False)
        if len(names) == 2:
            (tmp_path / "nbgrader_config.py").unlink()
    assert names == ["real-3.db", "real-1.db", "real-2.db"]


def test_a_second_demo_waits_and_says_so(tmp_path):
    lines = []
    holder = (tmp_path / ".demo.lock").open("w")
    fcntl.flock(holder, fcntl.LOCK_EX)

    def add_line(line: str) -> None:
        lines.append(line)
        holder.close()

    with reserved(tmp_path / "demo", add_line):
        assert lines == [f"another process is at work in {tmp_path}/demo: waiting until it ends"]
    with reserved(tmp_path / "demo", add_line):
        assert len(lines) == 1


@pytest.mark.slow
def test_the_demo_gives_the_expected_grades(tmp_path):
    course = make_kqv_course(tmp_path)
    start = time.monotonic()
    process = run("demo", cwd=course, COLUMNS="220", **write_foreign_settings(course))
    assert (process.returncode, process.stderr) == (0, "")
    assert list(course.glob("real*.db")) == []
    assert time.monotonic() - start < 120
    demo_folder = course / "_build" / "demo"
    total = find_assignment(demo_folder, "05_kqv").maximum
    points = {e.name: e.points for e in exercises().values() if e.stem == "kqv"}
    attention, head = points["scaled_dot_product_attention"], points["AttentionHead"]
    points_by_student = points_in_gradebook(demo_folder)
    assert list(points_by_student) == list(sample.CLASS)
    full = [s for s in points_by_student if points_by_student[s] == total]
    assert full == ["amara-matrices", "bela-einsum", "chidi-loops"]
    assert points_by_student["fay-empty"] == 0
    assert points_by_student["goran-crashes"] == total - attention - head - 1
    assert total - attention - 1 <= points_by_student["hana-endless"] <= total - attention
    for name in (
        "scaled_dot_product_attention: divided by d_k",
        "AttentionHead: super().__init__() is missing",
        "attention_scores: .T on a batch",
        "scaled_dot_product_attention: softmax over the queries",
    ):
        assert name in process.stdout
    assert "is there a loop that never ends?" in process.stdout
    second_run = run("demo", "--folder", str(course / "solutions"), cwd=course)
    refuses(second_run, "holds something else than a demo")


@pytest.mark.parametrize("failing_function", ["mkdir", "rmtree"])
def test_an_unwritable_demo_is_refused_in_one_line(tmp_path, monkeypatch, failing_function):
    def fail(self, *anything, **more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    folder = tmp_path / "demo"
    if failing_function == "rmtree":
        for student in sample.CLASS:
            (folder / "submitted" / student).mkdir(parents=True)
    monkeypatch.setattr(Path if failing_function == "mkdir" else shutil, failing_function, fail)
    with pytest.raises(UserError, match=r"cannot write .*demo: Read-only .*with --folder"):
        demo.make_course(ROOT, folder)


def test_the_demo_fits_the_real_assignment():
    released = ROOT / "exercises" / "05_kqv" / "05_kqv.ipynb"
    solved = find_assignment(ROOT, "05_kqv")
    ids = {c.grade_id for c in solved.cells if c.solution and c.code}
    assert released.exists()
    assert ids == set(sample.MATRICES)


def test_the_package_is_a_command_without_its_script():
    process = subprocess.run(
        [sys.executable, "-m", "attncourse", "--version"], capture_output=True, text=True
    )
    assert (process.returncode, process.stdout) == (0, f"attncourse {attncourse.__version__}\n")
