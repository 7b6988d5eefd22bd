"""Limits on what a submission can cost its lane: time, memory, and the lane itself."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from attncourse.grading.errors import UserError
from attncourse.grading.jail import kernel
from attncourse.grading.judge import judge
from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.lane_loop import CHECKER_MB
from attncourse.grading.judge.lanes import LANES, LaneLost, Lanes
from attncourse.grading.judge.outcomes import StepOutcome
from attncourse.grading.judge.plan_runner import LAST_MINUTE_SECONDS, Means, PlanRunner
from attncourse.grading.judge.process import REPLAY_SECONDS
from attncourse.grading.judge.wire.decoding import Decoder, Room
from attncourse.grading.judge.wire.encoding import Encoder
from attncourse.grading.judge.wire.frames import FRAME_HEADER, WireError, unpack_frame
from attncourse.grading.judge.worker.zygote import Zygote
from attncourse.grading.judge.workers import Workers
from attncourse.grading.limits import MB, Limits
from attncourse.grading.machine import slowness
from attncourse.grading.report import CellResult, Report, to_json
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.grading.submission.plan import Step
from corpus.assignment import KQV, MIXING
from corpus.hostile import HONEST
from helpers.dedented_text import dedented
from helpers.small_course import NAME, cell, graded, notebook, small, solution

# --- before anything is built -----------------------------------------------------------------

BUFFER = bytes(8 * 10**6)
LARGE_ARRAY = {"n": {"d": "<f8", "s": [10**6], "o": [0], "x": 0}}


def colliding_integers(number: int = 200_000) -> list[dict]:
    """Return integers that all have the same hash."""
    return [{"i": hex(n * (2**61 - 1))} for n in range(1, number)]


TOO_LARGE_VALUES = {  # functions, since every process that runs tests imports this
    "a set that collides": lambda: {"s": colliding_integers()},
    "a dict that collides": lambda: {"d": [[key, 0] for key in colliding_integers()]},
    "tuples that collide": lambda: {"z": [{"t": [key, 0]} for key in colliding_integers()]},
    "one buffer in many arrays": lambda: {"l": [LARGE_ARRAY] * 100},
    "one buffer in many texts": lambda: {"l": [{"b": 0}] * 100},
    "one long string among many": lambda: {"U": [[100], ["x" * 10**6] + ["y"] * 99]},
    "classes": lambda: {"l": [{"N": [f"A{n}", ["f"], [0]]} for n in range(20_000)]},
    "a class of many fields": lambda: {"N": ["Wide", [f"f{n}" for n in range(9000)], [0] * 9000]},
    "numbers": lambda: {"l": [{"f": "nan"}] * 2_000_000},
    "ranges": lambda: {"l": [{"r": [0, 100_000, 1]}] * 1000},
    "objects": lambda: {"l": [{"o": {"h": n, "kind": "class"}} for n in range(50_000)]},
    "parameters": lambda: {"l": [{"o": {"h": 1, "signature": [["a", 1, 0]] * 250}}] * 5000},
    "wide characters": lambda: {"l": ["\N{GRINNING FACE}" + "x" * 10**6] * 30},
}


@contextmanager
def time_limit(seconds: float = 3.0):
    """Assert that the block takes less processor time than this."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


@pytest.mark.parametrize("kind", TOO_LARGE_VALUES)
def test_a_too_large_value_is_refused_before_it_is_built(kind):
    objects: list[object] = []
    room, encoded = Room(64 * MB), TOO_LARGE_VALUES[kind]()
    with time_limit(), pytest.raises(WireError, match="too large"):
        Decoder([memoryview(BUFFER)], objects.append, (), room).decode(encoded)
    assert len(objects) <= 64 * MB / 2000


def test_a_trusted_decoder_has_no_limit():
    assert Decoder([], None).decode({"s": list(range(20_000))}) == set(range(20_000))


@pytest.mark.parametrize(
    "value",
    [
        [[float(n) for n in range(300)]] * 300,
        {n: str(n) for n in range(5000)},
        {(a, b): 1 for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"},
        {f"word {n}": n for n in range(100_000)},
        np.arange(2.0**22),
        ["a sentence of seven words or eight"] * 50_000,
    ],
    ids=["matrix", "vocabulary", "pairs", "words", "array", "sentences"],
)
def test_usual_return_values_fit(value):
    encoder = Encoder(None)
    encoded = json.loads(json.dumps(encoder.encode(value)))
    decoded = Decoder([memoryview(b) for b in encoder.buffers], None, (), Room(64 * MB)).decode(
        encoded
    )
    assert np.array_equal(decoded, value) if isinstance(value, np.ndarray) else decoded == value


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * 3_000_000 + b"0]",
        b"[" + b"{}," * 3_000_000 + b"0]",
        b"[" + b"1," * 7_000_000 + b"0]",
        '["\N{GRINNING FACE}"]'.encode(),
        b'{"sizes": [' + b"0," * 900_000 + b"0]}",
    ],
    ids=["lists", "dicts", "numbers", "wide", "buffers"],
)
def test_json_of_too_many_values_is_not_parsed(text):
    pieces = [FRAME_HEADER.pack(len(text), 0), text, b""]
    with time_limit(), pytest.raises(WireError):
        unpack_frame(lambda size: pieces.pop(0), 64 * MB)


# --- the process itself -----------------------------------------------------------------------


def grade_answer(answer: str, *tests: str, limits: Limits, **more) -> Report:
    """Return the report on an answer that defines ``f``, by these tests of one point each."""
    cells = [
        cell("import numpy as np", "imports", locked=True),
        solution("answer", "### BEGIN SOLUTION\nf = None\n### END SOLUTION"),
        *(graded(f"t{n}", test, 1) for n, test in enumerate(tests)),
    ]
    assignment = Assignment("01_bounds", read_cells(notebook(*cells)))
    cells[1] = solution("answer", answer)
    return grade_submission(notebook(*cells), assignment, limits=limits, **more)


def points_of_tests(report: Report) -> list[float]:
    return [result.points for result in report.cells.values()]


def peak_memory_by_lane() -> dict[int, float]:
    """Return the peak memory of each waiting lane by its process, in MB."""
    peak_by_pid = {}
    for _, lane in LANES.idle:
        with open(f"/proc/{lane.pid}/status") as status:
            (line,) = (line for line in status if line.startswith("VmHWM"))
        peak_by_pid[lane.pid] = int(line.split()[1]) / 1000
    return peak_by_pid


SHORT_LIMITS = Limits(submission=20, cell=1, call=1, grace=0.5)


@pytest.mark.parametrize(
    ("answer", "test"),
    [
        ("def f():\n    return np.zeros((10**6, 1))", "x = f() + np.ones(10**4)"),
        pytest.param(
            "def f():\n    return np.zeros(7 * 10**6)",
            "x = [f() for _ in range(100)]",
            marks=pytest.mark.slow,
        ),
        ("def f():\n    return [range(10**5)] * 10", "x = np.array(f() * 10**6)"),
        (
            dedented("""
                def f():
                    while True:
                        print('x' * 19_000)
                        yield 1
            """),
            "sum(f())",
        ),
    ],
    ids=["broadcast", "kept", "ranges", "printed"],
)
def test_what_a_test_computes_from_a_result_is_limited(answer, test):
    LANES.end_idle()
    report = grade_answer(answer, test, "assert True", limits=SHORT_LIMITS)
    assert points_of_tests(report) == [0, 1], report
    assert all(peak < CHECKER_MB + 300 for peak in peak_memory_by_lane().values())


def test_a_number_too_long_to_print_fails_only_its_test():
    report = grade_answer(
        "def f():\n    return 2**15_999",
        "assert f() == 3, f()",
        "assert f() > 3",
        limits=SHORT_LIMITS,
    )
    assert points_of_tests(report) == [0, 1], report


def test_a_lane_that_has_grown_is_replaced(monkeypatch):
    grade_answer("f = 1", "assert f", limits=SHORT_LIMITS)
    before = {lane.pid for _, lane in LANES.idle}
    growing_test = dedented("""
        x = np.ones(5 * 10**7)
        import builtins
        builtins.kept = x
        assert f
    """)
    assert points_of_tests(grade_answer("f = 1", growing_test, limits=SHORT_LIMITS)) == [1]
    after = {lane.pid for _, lane in LANES.idle}
    assert len(before - after) == 1
    assert after < before


# --- a lane that does not let go ----------------------------------------------------------------

ENDLESS_TEST = "assert f() > 1\nassert sum(range(f()))"  # one instruction that no alarm interrupts


def test_a_stuck_lane_is_ended_and_keeps_earned_points(monkeypatch):
    monkeypatch.setattr("attncourse.grading.judge.lanes.GRACE_SECONDS", 1.0)  # it works that long
    start = time.monotonic()
    report = grade_answer(
        "def f():\n    return 10**12",
        "assert f()",
        ENDLESS_TEST,
        limits=Limits(submission=20, cell=1, call=1),
    )
    assert time.monotonic() - start < 40
    assert points_of_tests(report) == [1, 0]
    assert report.status == "interrupted"
    assert "twice" in report.notes[0]
    assert "t1" in report.notes[0]
    assert "processor time" in report.notes[0]


# --- a machine that has other things to do ------------------------------------------------------


class ScriptedLane:
    """A lane with prepared answers; ``requests`` are what it was asked, and who else was busy."""

    core, pid, work_began = None, 0, True

    def __init__(self, lanes: Lanes, answers: list):
        self.lanes, self.answers, self.requests = lanes, answers, []

    def ask(self, request, progress):
        seen = {n: request[n] for n in ("seed", "first", "final")}
        self.requests.append(seen | {"others": len(self.lanes.busy) - 1, "alone": self.lanes.alone})
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def has_ended(self):
        return False

    def close(self):
        pass


def lane_answer(points: float, undone: dict | None = None, used: float = 1.0) -> dict:
    """Return a lane's answer to one grading request: the report, and what did not end by itself."""
    time = {"submission": {"limit": 120.0, "used": used, "met": False}}
    report = Report("ann", "a", "graded", {"t": CellResult(points, 1.0)}, seed=7, limits=time)
    return {"report": to_json(report), "undone": undone or {}, "spent": False}


@pytest.fixture
def grade_with_answers(monkeypatch):
    """Return a function that grades with a lane of these answers: the report, and its requests."""
    assignment = Assignment("a", read_cells(notebook(graded("t", "assert f", 1))))

    def run(*answers, **options) -> tuple[Report, list]:
        lanes = Lanes()
        lane = ScriptedLane(lanes, list(answers))
        monkeypatch.setattr(lanes, "begin_lanes", lambda keys: [lane])
        monkeypatch.setattr(judge, "LANES", lanes)
        return grade_submission(b"{}", assignment, **options), lane.requests

    return run


UNDONE = {"0": {"outcomes": {}, "cut": [3]}}
LANE_LOST = LaneLost("was busy with it")


def test_a_cut_submission_runs_once_more_alone(grade_with_answers):
    report, (first_request, second_request) = grade_with_answers(
        lane_answer(0, UNDONE), lane_answer(1, UNDONE), lane_answer(0)
    )
    assert report.points == 1
    assert (first_request["first"], first_request["final"], first_request["alone"]) == (
        {},
        False,
        None,
    )
    assert (second_request["seed"], second_request["first"], second_request["final"]) == (
        first_request["seed"],
        UNDONE,
        True,
    )
    assert second_request["alone"]
    assert second_request["others"] == 0


@pytest.mark.parametrize(
    ("answers_of_lane", "points", "runs"),
    [
        ((lane_answer(0), lane_answer(1)), 0, 1),  # it ended by itself
        ((LANE_LOST, lane_answer(1)), 1, 2),
        ((LANE_LOST, lane_answer(0, UNDONE), lane_answer(1)), 0, 2),
        ((lane_answer(1, UNDONE), LANE_LOST), 1, 2),
        ((LANE_LOST, LANE_LOST, lane_answer(1)), 0, 2),
        ((lane_answer(0, UNDONE, used=240.0), lane_answer(1)), 0, 1),  # twice the time is gone
    ],
)
def test_no_submission_runs_a_third_time(grade_with_answers, answers_of_lane, points, runs):
    report, requests = grade_with_answers(*answers_of_lane)
    assert (report.points, len(requests)) == (points, runs)
    if answers_of_lane[:2] == (LANE_LOST, LANE_LOST):
        assert report.attention == (f"{judge.NOT_RUN_TO_END}: the judge was busy with it",)


def test_a_lane_that_cannot_start_is_a_user_error(grade_with_answers, monkeypatch):
    monkeypatch.setattr(ScriptedLane, "work_began", False)
    with pytest.raises(UserError, match="no lane can start on this machine: the judge was busy"):
        grade_with_answers(LANE_LOST, LANE_LOST)
    assert grade_with_answers(LANE_LOST, lane_answer(1))[0].points == 1


def test_a_submission_that_runs_alone_excludes_others(monkeypatch):
    lanes = Lanes()
    monkeypatch.setattr(lanes, "begin_lanes", lambda keys: [ScriptedLane(lanes, [])])
    order: list[str] = []
    waits, wait_for = threading.Semaphore(0), lanes.lock.wait_for

    def wait_and_signal(holds) -> bool:
        """Wait as before, and release ``waits`` whenever the condition did not hold."""
        return wait_for(lambda: bool(holds() or waits.release()))

    def take_alone() -> None:
        lane = lanes.take(("k",), alone=True)
        order.append(f"alone {len(lanes.busy)}")
        assert waits.acquire(timeout=60)  # the other has looked since
        order.append("alone no more")
        lanes.give_back(("k",), lane)

    def take_and_give_back() -> None:
        lanes.give_back(("k",), lanes.take(("k",)))
        order.append("another")

    first = lanes.take(("k",))
    monkeypatch.setattr(lanes.lock, "wait_for", wait_and_signal)
    threads = [threading.Thread(target=take_alone), threading.Thread(target=take_and_give_back)]
    for thread in threads:
        thread.start()
        assert waits.acquire(timeout=60)
    order.append("first is back")
    lanes.give_back(("k",), first)
    for thread in threads:
        thread.join(60)
    assert order == ["first is back", "alone 1", "alone no more", "another"]


@pytest.fixture
def busy_processes():
    """Start four processes that never pause."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    yield
    for process in spinning:
        process.kill()
        process.wait()


# Work for 0.3 s of the processor in one call: it takes twice as long and more beside four others.
BUSY_ANSWER = """
import time
def f():
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    return 1"""


def test_four_busy_processes_cost_nobody_points(busy_processes):
    """A slow answer, and the honest part of the corpus, where a call has a second."""
    cores = len(os.sched_getaffinity(0))
    cases = [case for case in HONEST if not case.link and case.work in (MIXING, KQV)]
    limits = Limits(submission=20, cell=6, call=1, cpu=20)  # one cell has torch import a library
    limits = limits.stretched(slowness())
    assignments = {id(w): Assignment(w.name, read_cells(w.source)) for w in (MIXING, KQV)}

    def lost_points(case) -> list[str]:
        report = grade_submission(case.notebook(), assignments[id(case.work)], limits=limits)
        return [f"{case.name} {g}" for g, p in case.deserves.items() if report.cells[g].points < p]

    with ThreadPoolExecutor(cores) as pool:
        slow = pool.submit(grade_answer, BUSY_ANSWER, *["assert f()"] * 3, limits=limits)
        assert [name for names in pool.map(lost_points, cases) for name in names] == []
        assert points_of_tests(slow.result()) == [1, 1, 1]


# The message on a sleeping answer, and on a very busy machine on a working one, too.
SLEEP_LIMITS = Limits(submission=4, cell=1, call=0.5, cpu=4)
ON_THE_CLOCK = r"4 s on the clock, with 0\.\d s of processor time"


@pytest.mark.parametrize("jailed", [True, False])
def test_a_worker_has_a_clock_by_its_process_id(monkeypatch, jailed):
    """Without it an endless call ends only by the clock on the wall."""

    def refuse(pid):
        raise OSError(errno.EPERM, "pidfd_open")

    monkeypatch.setattr(kernel, "pidfd_open", refuse)
    zygote, (checker_end, zygote_end) = Zygote.__new__(Zygote), socket.socketpair()
    zygote.jail, zygote.control = jailed, zygote_end
    monkeypatch.setattr(zygote, "fork_worker", lambda fd, limits: os.getpid(), raising=False)
    with checker_end, zygote_end:
        workers = Workers(checker_end, Limits())
        workers.order_worker()
        workers.spare.close()
        checker_end.shutdown(socket.SHUT_WR)
        with pytest.raises(EOFError):
            zygote.serve()
        assert workers.spare_worker() == os.getpid()
    assert (workers.spare_clock.used() > 0) is not jailed


@pytest.mark.parametrize("sandbox", [True, False])
def test_memory_that_the_kernel_does_not_count_is_limited(sandbox):
    """The kernel's limits do not count memory that is written and then made read-only."""
    answer = """
def f():
    import ctypes, mmap
    size, pieces, protect = 50_000_000, [], ctypes.CDLL(None).mprotect
    while len(pieces) < 10:
        piece = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        piece.write(bytes(size))
        start = ctypes.addressof(ctypes.c_char.from_buffer(piece))
        protect(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.PROT_READ)
        pieces.append(piece)
    while True:
        pass
"""
    report = grade_answer(answer, "assert f() is None", limits=Limits(memory=200), sandbox=sandbox)
    assert "used more than 200 MB of memory" in report.cells["t0"].message
    assert points_of_tests(report) == [0]


def test_limits_stretch_with_the_machine():
    limits = Limits.of(40)
    assert limits.stretched(1) == limits
    stretched = limits.stretched(2)
    assert (stretched.submission, stretched.cell, stretched.call, stretched.cpu) == (80, 20, 20, 80)
    assert replace(stretched, submission=40, cell=10, call=10, cpu=40) == limits


def test_repeated_cells_have_more_time_on_a_slow_machine():
    """Both a cell that did not end and deferred tests after the time is over get stretched time."""
    limits, call_limits = Limits().stretched(4), []
    means = Means(Assignment(NAME, ()), 7, limits, Budget(limits.submission), None, None)
    plan = PlanRunner([Step("cell 1", "pass")], means)
    runner = plan.process.runner
    runner.run_cell = lambda step, limit: call_limits.append(limit) or StepOutcome("none")
    runner.present = SimpleNamespace(ended="")
    plan.process.endless.add(0)
    list(plan.process.run_missing_cells(1))
    assert call_limits == [4 * REPLAY_SECONDS]
    runner.present = None
    plan.run_last_minute_tests()
    assert means.budget.seconds == limits.submission + 4 * LAST_MINUTE_SECONDS


@pytest.mark.parametrize(
    ("body", "duration"),
    [
        ("while True: pass", rf"0\.5 s of processor time|{ON_THE_CLOCK}"),
        ("time.sleep(100)", ON_THE_CLOCK),
    ],
)
def test_a_slow_machine_gives_the_same_message(body, duration):
    """The message has the limit as it was set, and a call ends before its test is ended."""
    assignment = Assignment(NAME, read_cells(small()))
    endless = small(twice=f"import time\ndef twice(a):\n    {body}")
    for factor in (1, 1.3):
        report = grade_submission(endless, assignment, limits=SLEEP_LIMITS.stretched(factor))
        message = report.cells["points_twice"].message
        assert re.fullmatch(f"did not end within ({duration})", message)
        assert (report.status, report.notes) == ("graded", (f"twice: {message}",))
