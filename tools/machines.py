"""Runs commands on emulated machines, and prints what came of each, or what it says to do.

    python tools/machines.py                  every state, with quick commands
    python tools/machines.py "no ps" "1 core" these states
    python tools/machines.py --whole          make demo and make test in every state (hours)

A row fails on a traceback, on a command that does not end, on one that ends badly and says nothing,
on grades without a jail, and on a file of the user's own that is written to. A new state is an
entry of `MACHINE_STATES`.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
LIMIT, WHOLE_LIMIT = 180, 7200  # seconds for a command
STEP_LIMITS = {"set-up": 1800, "some tests": 900}  # the first fetches up to 2.8 GB
NOBODY_UID = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups")
QUICK = ("doctor", "check", "grade")
SOME_TESTS = [
    str(ROOT / "tests" / name)
    for name in ("test_mixing.py", "grading/test_two_at_once.py", "grading/test_grading.py")
]
SIXTEEN = "import os; os.cpu_count = lambda: 16; os.sched_getaffinity = lambda _: set(range(16))"
STUDENT_STEPS = ("set-up", "a student's check", "all references")
# Where a Python of a version may be, and those that conda and uv bring, below the home.
PYTHON_VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PYTHONS = {version: (f".pyenv/versions/{version}.*/bin/python",) for version in PYTHON_VERSIONS} | {
    "of conda": tuple(f"{name}3/bin/python" for name in ("miniconda", "miniforge", "anaconda")),
    "of uv": (".local/share/uv/python/cpython-3.*/bin/python3",),
}
COMMANDS = {
    "doctor": "attncourse doctor",
    "check": "attncourse check {course}/solutions/05_kqv/05_kqv.ipynb",
    "grade": "attncourse grade 05_kqv --course {course} --db sqlite:///{course}/own.db",
    "grade in 16 lanes": (
        "attncourse grade 05_kqv --course {course} --db sqlite:///{course}/own.db --jobs 16"
    ),
    "some tests": f"{BIN}/python -m pytest -q -p no:cacheprovider {' '.join(SOME_TESTS)}",
    "demo": f"attncourse demo --course {ROOT} --folder {{course}}/demo",
    "book": f"{sys.executable} {ROOT}/tools/book.py",
    "set-up": "{python} -I {copy}/tools/environment.py",
    "a student's check": "{copy}/.venv/bin/attncourse check {course}/solutions/05_kqv/05_kqv.ipynb",
    "all references": (
        "{copy}/.venv/bin/python -c 'from attncourse.checks import check, exercises as all_of;"
        "[check(name, each.reference) for name, each in all_of().items()]'"
    ),
    "make demo": f"make -C {ROOT} demo MODEL=no",
    "make test": f"make -C {ROOT} test MODEL=no",
}
# Numbers of system calls, for x86-64 and for 64-bit ARM.
CALLS = {
    "unshare": (272, 97),
    "pidfd_open": (434, 434),
    "landlock_create_ruleset": (444, 444),
    "open_tree": (428, 428),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "clone3": (435, 435),
}
PRIVATE_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


@dataclass(frozen=True)
class State:
    """A machine: what is other about it than about this one."""

    name: str
    commands: tuple[str, ...] = QUICK
    refused: tuple[str, ...] = ()  # system calls that a filter answers with EPERM
    startup: str = ""  # Python code that runs when a Python starts, as a .pth does
    environment: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()  # programs that PATH does not have
    before: tuple[str, ...] = ()  # words in front of the command
    folder: str = "course"  # where the course lies
    memory: int = 0  # bytes of address space
    nobody: bool = False  # run by another user
    python: str = ""  # one of PYTHONS: a copy of the course is set up with it


MACHINE_STATES = (
    State("this machine"),
    State("a gradebook in variable and settings", ("demo",)),  # every state has them
    State("no os.pidfd_open", startup="import os; vars(os).pop('pidfd_open', None)"),
    *(State(f"no {call}", ("doctor", "grade"), refused=(call,)) for call in CALLS),
    *(
        State(f"no {name}", startup=f"import sys; sys.modules['{name}'] = None")
        for name in ("ctypes", "readline", "sqlite3", "fcntl", "resource")
    ),
    State("1 core", (*QUICK, "some tests"), before=("taskset", "-c", "0")),
    State("16 cores", ("doctor", "grade", "grade in 16 lanes"), startup=SIXTEEN),
    State("1.5 GB", memory=1536 * 2**20),
    State("no ps", hidden=("ps",)),
    State("no git", hidden=("git",)),
    State("another user", nobody=True),
    State("latin-1", environment={"LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}),
    State("warnings are errors", environment={"PYTHONWARNINGS": "error"}),
    State("optimized", environment={"PYTHONOPTIMIZE": "2"}),
    State("long TMPDIR", environment={"TMPDIR": "{course}/" + "t" * 150}),
    State("space, umlauts and signs", folder="a$b%c[d]e ü'f"),
    State("no /dev/shm", before=(*PRIVATE_MOUNTS, 'umount /dev/shm; exec "$@"', "sh")),
    State(
        "home on a full disk",
        before=(*PRIVATE_MOUNTS, 'mount -t tmpfs -o size=4k none "$HOME"; exec "$@"', "sh"),
    ),
    *(State(f"Python {which}", STUDENT_STEPS, python=which) for which in PYTHONS),
)


@dataclass(frozen=True)
class CommandRun:
    """The end of a command's run: ``status`` is None where it did not end within its time."""

    command: str
    status: int | None
    said: str
    seconds: float
    written: tuple[str, ...] = ()  # files of the user's own that it wrote to
    jailed: bool = True  # whether the state has a jail, as doctor says


def verdict(outcome: CommandRun) -> tuple[bool, str]:
    """Return whether a row holds, and what the table has to say of it."""
    lines = [line.strip() for line in outcome.said.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if outcome.status is None:
        return False, "does not end"
    if outcome.written:
        return False, f"writes to the user's own {', '.join(outcome.written)}"
    if "Traceback (most recent call last)" in outcome.said:
        return False, f"traceback: {last}"
    if outcome.command.startswith("grade") and outcome.status == 0 and not outcome.jailed:
        return False, "grades without a jail, unasked"
    if outcome.status == 0:
        return True, "green"
    if outcome.status < 0:
        return False, f"ended by signal {-outcome.status}"
    return (True, last) if last else (False, f"status {outcome.status}, and not a word")


def refuse(calls: tuple[str, ...]) -> None:
    """Have the kernel answer these system calls with EPERM, in this process and below it."""
    column = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
    load, equal, give = 0x20, 0x15, 0x06
    steps = [(load, 0, 0, 0)]
    for number in (CALLS[call][column] for call in calls):
        steps += [(equal, 0, 1, number), (give, 0, 0, 0x00050000 | 1)]
    steps.append((give, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):  # PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "no filter for system calls here")


def user_files(home: Path) -> dict[str, int]:
    """Return when each file of a home was written to, but for what is a cache."""
    passed_over = {".cache", ".rustup"}  # pip asks rustc for its version, and rustup notes that
    files = [p for p in home.rglob("*") if p.is_file() and not passed_over & {*p.parts}]
    return {str(path.relative_to(home)): path.stat().st_mtime_ns for path in files}


def not_here(state: State) -> str:
    """Return why a state cannot be made on this machine, or an empty text."""
    if state.nobody and (os.geteuid() != 0 or not shutil.which("setpriv")):
        return "only root can become another user"
    if state.nobody and subprocess.run([*AS_NOBODY, "test", "-x", sys.executable]).returncode:
        return f"another user may not start {sys.executable}"
    if state.before and not shutil.which(state.before[0]):
        return f"no {state.before[0]} here"
    if (
        state.before[: len(PRIVATE_MOUNTS)] == PRIVATE_MOUNTS
        and subprocess.run(
            [*PRIVATE_MOUNTS, "mount -t tmpfs none /mnt"], capture_output=True
        ).returncode
    ):
        return "no private mounts here"
    if state.python and not interpreter(state.python):
        return f"no Python {state.python} here"
    return ""


def interpreter(which: str) -> str:
    """Return the newest Python of this version or source on this machine, or an empty text."""
    paths = [path for pattern in PYTHONS[which] for path in Path.home().glob(pattern)]
    sorted_paths = sorted(paths, key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    return str(sorted_paths[-1]) if sorted_paths else shutil.which(f"python{which}") or ""


def copy_course(folder: Path) -> None:
    """Copy what git tracks here, as a clone would bring it, with what is not committed yet."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if (source := ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)


class Machine:
    """A state that was made, in a folder of its own with a home and a course."""

    def __init__(self, state: State, folder: Path):
        self.state, self.folder = state, folder
        self.home, self.course = folder / "home", folder / state.folder
        self.settings = self.home / ".jupyter"
        self.settings.mkdir(parents=True)
        named = f"c = get_config()\nc.CourseDirectory.db_url = 'sqlite:///{self.home}/own.db'\n"
        (self.settings / "nbgrader_config.py").write_text(named)
        self.make_course()
        if state.python:
            copy_course(folder / "copy")
        if state.startup:
            (folder / "startup").mkdir()
            (folder / "startup" / "sitecustomize.py").write_text(state.startup + "\n")
        for name in state.hidden:
            self.hide(name)
        if state.nobody:
            folder.chmod(0o755)
            subprocess.run(["chown", "-R", str(NOBODY_UID), str(folder)], check=True)

    def make_course(self) -> None:
        """Copy the sample class's course, with two of its students."""
        from attncourse.grading.demo import make_course

        make_course(ROOT, self.course)
        students = sorted((self.course / "submitted").iterdir())
        for folder in students[2:]:
            shutil.rmtree(folder)

    def hide(self, name: str) -> None:
        """Put all programs but one into a folder, which is the state's PATH."""
        (self.folder / "bin").mkdir(exist_ok=True)
        for place in os.environ["PATH"].split(os.pathsep):
            for program in Path(place).glob("*"):
                link = self.folder / "bin" / program.name
                if program.name != name and not link.exists():
                    link.symlink_to(program)
        (self.folder / "bin" / name).unlink(missing_ok=True)

    def environment(self) -> dict[str, str]:
        """Return the state's variables, with a gradebook of the user's own among them."""
        path = str(self.folder / "bin") if self.state.hidden else os.environ["PATH"]
        made = os.environ | {
            "HOME": str(self.home),
            "COLUMNS": "300",
            "PATH": f"{BIN}{os.pathsep}{path}",
            "ATTNCOURSE_DB": f"sqlite:///{self.home}/own.db",
            "XDG_CACHE_HOME": str(self.home / ".cache"),
        }
        if self.state.startup:
            made["PYTHONPATH"] = str(self.folder / "startup")
        changed = {n: v.format(course=self.course) for n, v in self.state.environment.items()}
        if "TMPDIR" in changed:
            Path(changed["TMPDIR"]).mkdir(exist_ok=True)
        return made | changed

    def prepare(self) -> None:
        """Bring a new process into the state, before its program starts."""
        if self.state.memory:
            resource.setrlimit(resource.RLIMIT_AS, (self.state.memory, self.state.memory))
        if self.state.refused:
            refuse(self.state.refused)

    def words(self, command: str) -> list[str]:
        """Return a command's words, as they are started in this state."""
        python = interpreter(self.state.python) if self.state.python else sys.executable
        known = {"course": self.course, "python": python, "copy": self.folder / "copy"}
        words = [word.format(**known) for word in shlex.split(COMMANDS[command])]
        return [*(AS_NOBODY if self.state.nobody else ()), *self.state.before, *words]

    def run(self, command: str, limit: float, jailed: bool) -> CommandRun:
        """Run a command in this state, and see what became of the user's own files."""
        before, began = user_files(self.home), time.monotonic()
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                self.words(command), env=self.environment(), cwd=self.folder, stdout=out,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=self.prepare,
                start_new_session=True,
            )  # fmt: skip
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                status = None
            out.seek(0)
            output = out.read().decode("utf-8", "replace")
        after = user_files(self.home)
        written = tuple(sorted(n for n, at in after.items() if before.get(n) != at))
        output = re.sub(r"\x1b\[[\d;]*m", "", output)
        return CommandRun(command, status, output, time.monotonic() - began, written, jailed)


def rows(state: State, full_run: bool) -> Iterator[tuple[str, str, bool, str, float]]:
    """Run a state's commands; a row for each: state, command, whether it holds, words, seconds."""
    if reason := not_here(state):
        yield state.name, "", True, f"not tried: {reason}", 0.0
        return
    jailed = True
    with workplace() as folder:
        machine = Machine(state, folder)
        commands = ("make demo", "make test") if full_run else state.commands
        for command in commands:
            limit = WHOLE_LIMIT if full_run else STEP_LIMITS.get(command, LIMIT)
            outcome = machine.run(command, limit, jailed)
            if command == "doctor":
                jailed = outcome.status == 0
            holds, words = verdict(outcome)
            yield state.name, command, holds, words, outcome.seconds


@contextmanager
def workplace() -> Iterator[Path]:
    """Make a folder that is removed afterwards, whosever its files have become."""
    folder = Path(tempfile.mkdtemp(prefix="attncourse-machine-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Print a row for each command in each state; return 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("states", nargs="*", help="names of states; all, where none is named")
    parser.add_argument("--whole", action="store_true", help="make demo and make test")
    arguments = parser.parse_args()
    unknown = set(arguments.states) - {state.name for state in MACHINE_STATES}
    if unknown:
        parser.error(f"no such state: {', '.join(sorted(unknown))}")
    failed = 0
    print("| state | command | | what it says | s |\n| --- | --- | --- | --- | --- |")
    for state in MACHINE_STATES:
        if arguments.states and state.name not in arguments.states:
            continue
        for name, command, holds, words, seconds in rows(state, arguments.whole):
            mark = "ok" if holds else "FAILS"
            print(f"| {name} | {command} | {mark} | {words[:200]} | {seconds:.0f} |", flush=True)
            failed += not holds
    print(f"{failed} rows fail" if failed else "every row holds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
