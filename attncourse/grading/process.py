"""Starting the worker, listening to it, and making sure that nothing of it is left."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attncourse.grading.plan import Step

FLOOD = 16_000_000  # bytes; an honest worker writes a few thousand
GRACE = 3.0  # seconds that a cell may take beyond its limit before its process is killed
START = 60.0  # seconds for Python to start and import on a busy machine


@dataclass
class Run:
    """What a worker told: each finished step's outcome, and how it ended.

    ``ending`` is "done", "died", "stalled", "out of time" or "flooded"; ``during`` is the number
    of the step that was running then.
    """

    outcomes: dict[int, dict[str, Any]] = field(default_factory=dict)
    ending: str = "died"
    during: int | None = None
    errors: str = ""


class Cancelled(Exception):
    """Grading was stopped from outside."""


Lines = queue.SimpleQueue[bytes | None]
_running: set[subprocess.Popen] = set()
_cancelled = threading.Event()


def cancel() -> None:
    """Kills every worker; whoever waits for one gets ``Cancelled``."""
    _cancelled.set()
    for process in list(_running):
        kill(process)


def run_worker(steps: list[Step], cell_limit: float, seconds: float) -> Run:
    """Runs the steps in a process of its own, in a folder of its own, for at most ``seconds``."""
    if _cancelled.is_set():
        raise Cancelled
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="attncourse-", ignore_cleanup_errors=True) as folder:
        work = Path(folder, "work")
        work.mkdir()
        with Path(folder, "stderr").open("w+b") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "attncourse.grading.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=work,
                env=environment(work),
                start_new_session=True,
            )
            _running.add(process)
            order = {"steps": [s.to_json() for s in steps], "cell_limit": cell_limit}
            lines: Lines = queue.SimpleQueue()
            speaking = threading.Thread(
                target=speak, args=(process, json.dumps(order).encode(), lines), daemon=True
            )
            speaking.start()
            try:
                run = listen(process, lines, cell_limit, deadline)
            finally:
                kill(process)
                _running.discard(process)
                speaking.join(1)
            errors.seek(0)
            run.errors = errors.read(2000).decode("utf-8", "replace").strip()
    if _cancelled.is_set():
        raise Cancelled
    return run


def speak(process: subprocess.Popen, order: bytes, lines: Lines) -> None:
    """Sends the order, then passes on the worker's lines; ends with None, or b"" for a flood."""
    with suppress(OSError):  # a worker that cannot start does not read its order
        process.stdin.write(order)
    with suppress(OSError):
        process.stdin.close()
    left = FLOOD
    with suppress(OSError, ValueError):
        while left > 0 and (line := process.stdout.readline(left)):
            left -= len(line)
            lines.put(line)
    lines.put(b"" if left <= 0 else None)
    with suppress(OSError):
        process.stdout.close()


def listen(process: subprocess.Popen, lines: Lines, cell_limit: float, deadline: float) -> Run:
    """Collects events until the worker is done, dead or too slow."""
    run, step_ends = Run(), time.monotonic() + START
    while True:
        now = time.monotonic()
        if now >= min(deadline, step_ends):
            run.ending = "out of time" if now >= deadline else "stalled"
            return run
        try:
            line = lines.get(timeout=min(deadline, step_ends, now + 0.5) - now)
        except queue.Empty:
            if process.poll() is None:
                continue
            line = None  # gone, though something it started holds the pipe open
        if not line:
            run.ending = "died" if line is None else "flooded"
            return run
        event = parse(line)
        if "done" in event:
            run.ending, run.during = "done", None
            return run
        if isinstance(event.get("begin"), int):
            run.during = event["begin"]
            step_ends = time.monotonic() + cell_limit + GRACE
        elif isinstance(event.get("end"), int):
            run.outcomes[event["end"]] = event
            run.during = None


def parse(line: bytes) -> dict[str, Any]:
    """One event; what is none counts as nothing said."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def kill(process: subprocess.Popen) -> None:
    """Ends the worker and everything it started in its process group, and waits for it."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)


def environment(home: Path) -> dict[str, str]:
    """A short environment: one thread, no display, no home but the worker's folder."""
    keep = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT", "VIRTUAL_ENV", "COVERAGE_RCFILE")
    kept = {name: os.environ[name] for name in keep if name in os.environ}
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": cache,  # matplotlib looks for fonts once, not once per submission
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }
