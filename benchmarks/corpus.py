"""The corpus of hostile, damaged and unusual submissions, by nbgrader as it is and by attncourse.

python benchmarks/corpus.py [--only PATTERN] [--side stock|ours] [--json FILE] [--with FILE]

nbgrader grades each submission in a course of its own, in a container that nothing leaves, before
an honest student called ``next``. That takes about half an hour for all of them; ``--with`` takes
what an earlier run wrote with ``--json``.
"""

import argparse
import fnmatch
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import attncourse

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from corpus.assignment import MARK, MIXING, PORT, WORKS, Hostile, Work, keeps  # noqa: E402
from corpus.course import hand_in, lost, make_course, scores, unearned  # noqa: E402
from corpus.hostile import DAMAGE, HONEST, HOSTILE  # noqa: E402

SECONDS = 120  # for one course in nbgrader
CONFIG = """
c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.Execute.timeout = 10
"""
USER = 54_321  # nobody on any machine; the second container's is the next
AT_A_TIME = 2
Course = dict[str, Hostile]  # by student


def course_of(case: Hostile) -> Course:
    """The students of a case's course, in the order in which they are graded."""
    twin = {"b-twin": case} if case.again else {}
    return {"a-case": case, **twin, "next": keeps("honest", "next", "", work=case.work)}


# --- nbgrader ----------------------------------------------------------------------------------


def nbgrader(case: Hostile, template: Path, user: int) -> dict:
    """What nbgrader makes of a case: points by student, and what was left behind."""
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder, "course")
        shutil.copytree(template, course)
        for student, submission in course_of(case).items():
            hand_in(course, student, submission)
        number = str(WORKS.index(case.work))
        command = ["python", "/bench/benchmarks/corpus.py", "--inside", number, str(user)]
        done = subprocess.run(
            [*container(course), *command],
            capture_output=True,
            text=True,
            timeout=SECONDS + 60,
        )
    if done.returncode:  # nothing that a submission does ends what looks after it
        raise RuntimeError(f"{case.name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def container(course: Path) -> list[str]:
    """A bubblewrap command: no network, no other processes, nothing to write but memory."""
    package = Path(attncourse.__file__).parent
    seen = [Path("/usr"), Path(sys.base_prefix), Path(sys.prefix)]
    above = dict.fromkeys(str(p) for path in (*seen, package) for p in reversed(path.parents[:-1]))
    binds = [part for folder in above for part in ("--perms", "0755", "--dir", folder)]
    binds += [part for path in seen for part in ("--ro-bind", str(path), str(path))]
    binds += ["--ro-bind", str(ROOT / "attncourse"), str(package)]
    links = [part for name in ("bin", "lib", "lib64", "sbin") for part in link(name)]
    names = [p for f in ("passwd", "group") for p in ("--ro-bind", f"/etc/{f}", f"/etc/{f}")]
    tmpfs = [p for f in ("/tmp", "/home", "/course", "/dev/shm") for p in memory(f)]
    variables = {
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
        "HOME": "/home/grader",
        "LANG": "C.UTF-8",
        "MIX_ANSWER": MIXING.right["mix"],  # a secret that an instructor's shell may hold
        "OMP_NUM_THREADS": "1",
    }
    return [
        *("bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"),
        *("--perms", "0755", "--dir", "/bench"),
        *binds,
        *links,
        *names,
        *(p for f in ("benchmarks", "tests", "solutions") for p in bench(f)),
        *("--proc", "/proc", "--dev", "/dev"),
        *tmpfs,
        *("--ro-bind", str(course), "/in", "--chdir", "/"),
        *(part for item in variables.items() for part in ("--setenv", *item)),
    ]


def link(name: str) -> list[str]:
    """Return the option that makes one of the machine's links again."""
    place = Path("/", name)
    return ["--symlink", os.readlink(place), str(place)] if place.is_symlink() else []


def bench(folder: str) -> list[str]:
    """Return the option that shows a folder of this repository."""
    return ["--ro-bind", str(ROOT / folder), f"/bench/{folder}"]


def memory(folder: str) -> list[str]:
    """Return the option that mounts a folder in memory."""
    return ["--size", str(10**9), "--perms", "1777", "--tmpfs", folder]


def make_template(folder: Path, work: Work) -> Path:
    """A course that nbgrader has released, without submissions."""
    course = make_course(folder, work, ())
    (course / "nbgrader_config.py").write_text(CONFIG)
    command = [f"{sys.prefix}/bin/nbgrader", "generate_assignment", work.name]
    path = {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
    subprocess.run(command, cwd=course, env=os.environ | path, capture_output=True, check=True)
    return course


# --- inside the container ----------------------------------------------------------------------


def inside(work: Work, user: int) -> None:
    """Runs nbgrader as a user without rights, and prints as JSON what came of it."""
    course = Path("/course/course")
    home = Path(os.environ["HOME"])
    home.mkdir()
    shutil.copytree("/in", course, symlinks=True)
    for path in (home, course, *course.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    heard = listen()
    with open("/course/log", "wb") as log:
        process = subprocess.Popen(
            ["nbgrader", "autograde", work.name],
            cwd=course,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            user=user,
            group=user,
            extra_groups=[],
            preexec_fn=bounded,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS)
    stopped = process.poll() is None
    result = {"left": left_behind(home, course, work, heard, process.pid if stopped else 0)}
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    try:
        result["scores"] = scores(course, work)
    except Exception as error:
        result |= {"scores": {}, "trouble": str(error)}
    print(json.dumps(result))


def bounded() -> None:
    """Limits for nbgrader and everything below it."""
    for name, bound in (
        ("AS", 6 * 10**9),
        ("NPROC", 200),
        ("FSIZE", 8 * 10**8),
        ("CORE", 0),
        ("CPU", 100),
    ):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (bound, bound))


def listen() -> list[str]:
    """Listens as the machine's other services would; what is heard is added to the list."""
    heard: list[str] = []
    tcp = socket.create_server(("127.0.0.1", PORT))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", PORT))
    abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    abstract.bind("\0" + MARK)
    abstract.listen()

    def wait(name: str, hear) -> None:
        while True:
            hear()
            heard.append(name)

    for name, hear in (
        ("tcp", tcp.accept),
        ("udp", lambda: udp.recv(99)),
        ("socket", abstract.accept),
    ):
        threading.Thread(target=wait, args=(name, hear), daemon=True).start()
    return heard


def left_behind(home: Path, course: Path, work: Work, heard: list[str], running: int) -> list[str]:
    """What of a submission is still there, or was felt, outside its own folder."""
    time.sleep(0.5)
    left = sorted(set(heard))
    others = {int(p) for p in os.listdir("/proc") if p.isdigit()} - {1, os.getpid(), running}
    if not running and any(alive(pid) for pid in others):
        left.append("process")
    places = (home, Path("/tmp"), Path("/dev/shm"))
    files = [f for place in places for f in place.rglob("*") if f.name != "README"]
    files = [f for f in files if MARK in f.name or "startup" in f.parts]
    if [f for f in files if f.is_file()]:
        left.append("file")
    source = Path("solutions", work.name, f"{work.name}.ipynb")
    if (course / source).read_bytes() != (Path("/in") / source).read_bytes():
        left.append("assignment changed")
    return left


def alive(pid: int) -> bool:
    """True if a process of the submission's user still runs under this number."""
    with suppress(OSError):
        return "\nUid:\t543" in Path(f"/proc/{pid}/status").read_text()
    return False


# --- attncourse --------------------------------------------------------------------------------


def ours(cases: list[Hostile], work: Work) -> dict[str, dict]:
    """What ``attncourse grade`` makes of a class of all cases, each beside an honest student."""
    students = {}
    for case in (c for c in cases if c.work is work):
        for student, submission in course_of(case).items():
            students[f"{case.name}.{student}"] = submission
    with tempfile.TemporaryDirectory() as folder:
        course = make_course(Path(folder, "course"), work, students.items())
        command = [sys.executable, "-m", "attncourse.grading.cli"]
        secret = {"MIX_ANSWER": MIXING.right["mix"]}
        for step in (["release", work.name], ["grade", work.name, "--timeout", "20"]):
            done = subprocess.run(
                [*command, *step, "--course", str(course)],
                env=os.environ | secret,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                sys.exit(done.stderr)
        student_scores = scores(course, work)
    results: dict[str, dict] = defaultdict(lambda: {"scores": {}})
    for name, points in student_scores.items():
        case, _, student = name.partition(".")
        results[case]["scores"][student] = points
    return results


# --- the table ---------------------------------------------------------------------------------


def summary(case: Hostile, result: dict) -> tuple[str, float, float, bool]:
    """What a side did with a case: in words, points unearned and lost, whether the class ended.

    With a twin the worse of the two counts.
    """
    students = course_of(case)
    got = result["scores"]
    ended = "next" not in got or lost(students["next"], got["next"]) > 0
    rows = [got.get(student) for student in students if student != "next"]
    if None in rows:
        return "no row", 0, case.points, ended
    more = max(unearned(case, row) for row in rows)
    less = max(lost(case, row) for row in rows)
    best = max(rows, key=lambda row: unearned(case, row) + lost(case, row))
    words = f"{sum(best.values()):g}"
    words += f" (+{more:g})" if more else ""
    words += f" (−{less:g})" if less else ""
    if result.get("left"):
        words += ", left: " + ", ".join(result["left"])
    return words + (", class spoiled" if ended else ""), more, less, ended


def table(cases: list[Hostile], sides: dict[str, dict[str, dict]]) -> str:
    """The cases with what each side made of them, and the sums."""
    lines = [f"| case | kind | deserved | {' | '.join(sides)} |"]
    lines.append("| --- | --- | ---: |" + " --- |" * len(sides))
    sums = {side: defaultdict(float) for side in sides}
    for case in cases:
        words = []
        for side, results in sides.items():
            if case.name not in results:
                words.append("–")
                continue
            text, more, less, ended = summary(case, results[case.name])
            words.append(text)
            counts = sums[side]
            counts["unearned credit"] += more
            counts["lost credit"] += less
            counts["submissions with unearned credit"] += more > 0
            counts["submissions with lost credit"] += less > 0
            counts["left no row"] += text == "no row"
            counts["spoiled the next student's grade"] += ended
            counts["left something behind"] += bool(results[case.name].get("left"))
        lines.append(f"| {case.name} | {case.kind} | {case.points:g} | {' | '.join(words)} |")
    lines += ["", f"| of {len(cases)} submissions | {' | '.join(sides)} |"]
    lines.append("| --- |" + " ---: |" * len(sides))
    for name in next(iter(sums.values())):
        lines.append(f"| {name} | {' | '.join(f'{sums[side][name]:g}' for side in sides)} |")
    return "\n".join(lines)


def main() -> None:
    """Print what each case of the corpus earns in stock nbgrader and here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="names of cases, say 'patched-*'")
    parser.add_argument("--side", choices=("stock", "ours"), help="one column only")
    parser.add_argument("--json", type=Path, help="where to write what nbgrader gave")
    parser.add_argument("--with", dest="earlier", type=Path, help="nbgrader's column as written")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        number, user = map(int, options.inside)
        inside(WORKS[number], user)
        return
    cases = [case for case in HOSTILE + DAMAGE + HONEST if fnmatch.fnmatch(case.name, options.only)]
    sides: dict[str, dict[str, dict]] = {}
    if options.side != "ours":
        known = json.loads(options.earlier.read_text()) if options.earlier else {}
        sides["stock nbgrader"] = stock(cases, known, options.json)
    if options.side != "stock":
        both = [ours(cases, work) for work in WORKS if any(c.work is work for c in cases)]
        sides["attncourse"] = {name: result for half in both for name, result in half.items()}
    print(table(cases, sides))


def stock(cases: list[Hostile], known: dict[str, dict], save: Path | None) -> dict[str, dict]:
    """Return what stock nbgrader gives for those cases that are not known yet."""
    if os.geteuid() != 0 or not shutil.which("bwrap"):
        sys.exit("nbgrader's column needs root and bubblewrap: apt install bubblewrap")
    results = dict(known)
    users = [USER + n for n in range(AT_A_TIME)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_A_TIME) as pool:
        wanted = [n for n, work in enumerate(WORKS) if any(c.work is work for c in cases)]
        templates = {n: make_template(Path(folder, str(n)), WORKS[n]) for n in wanted}

        def run(case: Hostile) -> None:
            user = users.pop()
            try:
                results[case.name] = nbgrader(case, templates[WORKS.index(case.work)], user)
            finally:
                users.append(user)
            if save:
                save.write_text(json.dumps(results, indent=1))
            print(f"{case.name}: {summary(case, results[case.name])[0]}", file=sys.stderr)

        list(pool.map(run, [case for case in cases if case.name not in known]))
    return results


if __name__ == "__main__":
    main()
