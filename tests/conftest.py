"""What several test files share: the course, and copies of it that a test may spoil."""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from attncourse.grading.isolation import isolate
from helpers import forked_lanes
from helpers.project import ROOT, run_tool
from helpers.seeding import SEED, settle

os.environ.setdefault("OMP_NUM_THREADS", "1")  # all cores have test processes of their own
os.environ.setdefault("ATTNCOURSE_MODEL", "kept")  # no test fetches 93 MB
if len(tempfile.gettempdir()) > 60:  # a socket's path has 108 characters at most
    os.environ["TMPDIR"], tempfile.tempdir = "/tmp", None
# A test writes into no gradebook of a user's own, and no kernel runs what a user has set up.
# IPython keeps its history in a database that two processes do not share: each has its own.
IPYTHON_FOLDER = Path(tempfile.mkdtemp(prefix="attncourse-ipython-"))
atexit.register(shutil.rmtree, IPYTHON_FOLDER, ignore_errors=True)
isolate(os.environ, IPYTHON_FOLDER)
gc.disable()  # what is imported for the tests stays: the collector would go through it for nothing
settings.register_profile(  # a busy machine is no mistake
    "course", deadline=None, derandomize=not SEED, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("course")

MIN_FILES_OF_WHOLE_RUN = 100  # files: so many are no run of a few
# One process alone would be long at these.
FILES_DEALT_BY_CHAPTER = ("tests/checks/test_checks.py", "tests/checks/test_diagnosis.py")
MANY_TESTS = 1000  # tests of a file, which take as long as slow ones
# The time from which `make quick` begins no more tests; 0: no limit.
NO_TEST_AFTER = float(os.environ.get("ATTNCOURSE_TESTS_UNTIL", "0"))
NO_TIME = "no time: left to make test"


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the built book's folder; after `make test` has built it, no page runs again."""
    if NO_TEST_AFTER:
        pytest.skip("what needs the book is left to make test")
    folder = ROOT / "_build"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait
        process = run_tool("book")
    assert process.returncode == 0, process.stdout + process.stderr
    return folder / "html"


@pytest.fixture(scope="session")
def real_model():
    """Return the real model of Part V and its tokenizer, or skip where they are not fetched."""
    from attncourse.pretrained.model import NoModel, load

    try:
        return load()
    except NoModel as reason:
        pytest.skip(f"no real model: {reason}")


@pytest.fixture(scope="session")
def transformers():
    """Return the library, or skip the tests that compare the package's models with its."""
    return pytest.importorskip("transformers")


@pytest.fixture
def marker(monkeypatch):
    """Replace the executor of every run by one that runs nothing and gives points."""
    from helpers.driver_runs import marking

    return marking(monkeypatch)


@pytest.fixture(scope="module")
def browser():
    """Yield a Chromium for the figures of one test file."""
    from chromium import launched

    with launched() as made:
        yield made


@pytest.fixture
def opened(browser):
    """Yield a function that opens figures; afterwards no figure has had an error."""
    from helpers.figure_reader import FigureReader

    readers = []

    def opens(*figures, **options) -> FigureReader:
        readers.append(FigureReader(browser, *figures, **options))
        return readers[-1]

    yield opens
    for reader in readers:
        assert reader.wrong == []
        reader.close()


@pytest.fixture(scope="session")
def course():
    import course as settings

    return settings.load(ROOT)


@pytest.fixture(scope="module", autouse=True)
def from_exec(request):
    """Fork lanes from a process with their libraries loaded, except in files marked otherwise."""
    from attncourse.grading.judge.lanes import LANES

    started = request.node.get_closest_marker("from_exec") is not None
    if started:
        LANES.end_idle()  # that waited
    forked_lanes.adopt(not started)
    yield
    if started:
        LANES.end_idle()


def pytest_collection_modifyitems(items):
    """Files with slow tests or with very many go first: no worker is left with a long one alone.

    In a file, what tries one exercise runs together, since its cases are drawn once then.
    """
    many = Counter(item.path for item in items)
    slow = {i.path for i in items if i.get_closest_marker("slow") or many[i.path] > MANY_TESTS}
    items.sort(key=lambda item: (item.path not in slow, -many[item.path], item.path))
    at = [number for number, item in enumerate(items) if exercise_of(item)]
    places = {}
    for number in at:
        places.setdefault(exercise_of(items[number]), len(places))
    tried = sorted((items[n] for n in at), key=lambda item: places[exercise_of(item)])
    for number, item in zip(at, tried, strict=True):
        items[number] = item


def pytest_xdist_make_scheduler(config, log):
    """Run a file's tests in one process, of ``FILES_DEALT_BY_CHAPTER`` those of one chapter."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            chapter = re.search(r"\[(\w+)\.", test) if file in FILES_DEALT_BY_CHAPTER else None
            return file + (f"[{chapter[1]}]" if chapter else "")

    return ByFile(config, log)


def exercise_of(item) -> tuple | None:
    """Return the file and the exercise of a test that has one among its parameters."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return (item.path, parameters["exercise"].target) if "exercise" in parameters else None


def pytest_collection():
    """Seed the generators before test files are imported: some draw then."""
    settle()


def pytest_runtest_setup(item):
    """Seed the generators before each test; skip it if `make quick` has no time left."""
    settle()
    if NO_TEST_AFTER and time.monotonic() > NO_TEST_AFTER:
        pytest.skip(NO_TIME)


def pytest_report_teststatus(report):
    """Print no letter for tests that are skipped for want of time: there may be thousands."""
    if report.skipped and isinstance(report.longrepr, tuple) and NO_TIME in report.longrepr[2]:
        return "skipped", "", ""
    return None


def pytest_collection_finish():
    """Turn the garbage collector on for what tests make, with a larger threshold than 700."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """Print the summary lines of tests at the end of the run."""
    passed = terminalreporter.getreports("passed")
    properties = [item for report in passed for item in report.user_properties]
    counted = Counter(counted_thing for name, counted_thing in properties if name == "counted")
    for line in (line for name, line in properties if name == "summary"):
        terminalreporter.write_line(line)
    for counted_thing, number in counted.items():
        terminalreporter.write_line(f"{number} {counted_thing}")
    from attncourse.pretrained.model import within_reach

    tell_the_slowest(terminalreporter)
    for reason, number in skipped_by_reason(terminalreporter.getreports("skipped")).most_common():
        terminalreporter.write_line(f"{number} skipped: {reason}")
    reachable = "yes" if within_reach() else "no; attncourse model fetches it, and its tests run"
    terminalreporter.write_line(f"real model: {reachable}")


def skipped_by_reason(reports: list) -> Counter[str]:
    """Return how many tests were skipped for each reason, without the folder of this checkout."""
    reasons = (report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple))
    return Counter(
        " ".join(reason.removeprefix("Skipped: ").replace(f"{ROOT}/", "").split())
        for reason in reasons
    )


def tell_the_slowest(terminalreporter):
    """Print a whole run's ten slowest files, and save all files' seconds for `make quick`."""
    taken: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                file = report.nodeid.partition("::")[0]
                taken[file] = taken.get(file, 0.0) + report.duration
    if len(taken) < MIN_FILES_OF_WHOLE_RUN:
        return
    slowest = sorted(taken.items(), key=lambda entry: -entry[1])[:10]
    slowest_files = ", ".join(
        f"{file.removeprefix('tests/')} {seconds:.0f}" for file, seconds in slowest
    )
    terminalreporter.write_line(f"slowest, in seconds: {slowest_files}")
    seconds_by_file = {file: round(seconds, 1) for file, seconds in sorted(taken.items())}
    if (ROOT / ".venv").is_dir():
        (ROOT / ".venv" / "seconds.json").write_text(
            json.dumps(seconds_by_file, indent=0), encoding="utf-8"
        )
