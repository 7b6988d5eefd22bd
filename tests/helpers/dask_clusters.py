"""Dask clusters of this machine, for as long as a test needs one."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


@contextmanager
def running(*arguments: str):
    """A process of dask's command line; ended with its children."""
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@contextmanager
def cluster(folder, workers: int):
    """A scheduler's address, and the worker processes."""
    with running("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard") as first:
        address = next(
            found[0]
            for line in first.stdout
            if (found := re.search(r"tcp://127\.0\.0\.1:\d+", line))
        )
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        place = ("--local-directory", str(folder))
        made = [running("dask_worker", address, *options, *place) for _ in range(workers)]
        try:
            started = [context.__enter__() for context in made]
            for process in started:
                next(line for line in process.stdout if "Registered to" in line)
            yield address, started
        finally:
            for context in made:
                context.__exit__(None, None, None)
