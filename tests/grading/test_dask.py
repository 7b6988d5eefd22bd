"""Grading on a Dask cluster gives the same points, whatever happens to a worker."""

import json
import os
import signal
import subprocess
import sys

import pytest

from attncourse.grading.driver.executors import open_cluster
from attncourse.grading.errors import UserError
from helpers import forked_commands
from helpers.dask_clusters import ENVIRONMENT, cluster
from helpers.journal_records import records
from helpers.small_course import NAME, make_course, small

pytestmark = pytest.mark.slow


def run_grade(course, *options: str) -> subprocess.CompletedProcess:
    return forked_commands.run("grade", NAME, *options, cwd=course, PYTHONWARNINGS="ignore")


def read_reports(course) -> dict[str, dict]:
    return {
        path.stem: json.loads(path.read_text())
        for path in (course / "reports" / NAME).glob("*.json")
    }


def points_by_cell(report: dict) -> dict[str, float]:
    return {name: cell["points"] for name, cell in report["cells"].items()}


SLEEP = "import time\ntime.sleep(0.1)\n"


def submissions() -> dict[str, bytes]:
    """Return right, partly right and wrong submissions that each take a moment."""
    kinds = [
        small(add=SLEEP + "def add(a, b): return a + b"),
        small(add=SLEEP + "def add(a, b): return 0"),
        small(add=SLEEP, twice="def twice(a): return 3"),
    ]
    return {f"s{i:02d}": kinds[i % 3] for i in range(36)}


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, dict]:
    """Return the class's reports without a cluster."""
    course = make_course(tmp_path_factory.mktemp("here"), **submissions())
    process = run_grade(course)
    assert process.returncode == 0, process.stderr
    return read_reports(course)


HALTING_DRIVER = """
from attncourse.grading import cli
from attncourse.grading.driver.journal import Journal

write, written = Journal.write, []

def halting(self, *result):
    write(self, *result)
    written.append(result)
    if len(written) == 6:
        print("some results are there", flush=True)
        input()

Journal.write = halting
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_dask_worker_that_ends_changes_no_grade(expected, tmp_path, number):
    course_folder = make_course(tmp_path / "there", **submissions())
    with cluster(tmp_path, 2) as (address, workers):
        command = [sys.executable, "-c", HALTING_DRIVER, "grade", NAME, "--dask", address]
        driver = subprocess.Popen(
            command,
            cwd=course_folder,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert driver.stdout.readline() == b"some results are there\n"
        os.killpg(workers[0].pid, number)
        _, errors = driver.communicate(b"go on\n")
        assert driver.returncode == 0, errors.decode()
    reports_with_cluster = read_reports(course_folder)
    assert reports_with_cluster.keys() == expected.keys() == submissions().keys()
    assert {s: points_by_cell(r) for s, r in reports_with_cluster.items()} == {
        s: points_by_cell(r) for s, r in expected.items()
    }
    assert {r["status"] for r in reports_with_cluster.values()} == {"graded"}
    keys = [record["key"] for record in records(course_folder)]
    assert len(set(keys)) == len(keys) == 36


def test_an_absent_scheduler_is_reported_in_one_line(tmp_path):
    course = make_course(tmp_path, ada=small())
    process = run_grade(course, "--dask", "tcp://127.0.0.1:9")
    assert process.returncode == 2
    (line,) = process.stderr.strip().splitlines()
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in line
    assert "dask scheduler" in line


def test_a_scheduler_without_workers_is_reported(tmp_path):
    with (
        cluster(tmp_path, 0) as (address, _),
        pytest.raises(UserError, match="has no workers"),
        open_cluster(address),
    ):
        pass
