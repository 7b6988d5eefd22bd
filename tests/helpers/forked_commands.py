"""Commands in processes that part from one that has imported nbgrader: start-up is most of them."""

import atexit
import gc
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from attncourse.grading.isolation import NO_CONFIGURATION
from attncourse.grading.judge.lanes import LANES
from helpers import forked_lanes
from helpers.seeding import settle

PARTING = multiprocessing.get_context("forkserver")
PARENT = "tests.helpers.preloaded"
PARTING.set_forkserver_preload([PARENT])  # which says nothing where it fails


def command(course: Path, *words: str) -> tuple[int, str]:
    """The status that `nbgrader …`, `attncourse …` or `python CODE` ends with, and what it says."""
    with tempfile.NamedTemporaryFile() as said:
        settings = {"PYTHONWARNINGS": "ignore"}  # nbgrader's own
        status = act(course, said.name, said.name, os.environ | settings, words)
        return status, Path(said.name).read_text(encoding="utf-8")


def run(*arguments: object, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess:
    """What came of `attncourse ARGUMENTS …`, where each warning is an error.

    ``more`` are variables of its environment.
    """
    words = ("attncourse", *map(str, arguments))
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        environment = {**os.environ, "COLUMNS": "140", **more}
        status = act(cwd or Path.cwd(), out.name, err.name, environment, words)
        said = [Path(file.name).read_text(encoding="utf-8") for file in (out, err)]
    return subprocess.CompletedProcess(words, status, *said)


def act(course: Path, out: str, err: str, environment: dict, words: tuple[str, ...]) -> int:
    """The status of a process that behaves as these words say, and writes into these files."""
    known = {forked_lanes.WHERE: forked_lanes.address().lstrip("\0")}
    about = course, out, err, {**environment, **known}, words, forked_lanes.adopted()
    process = PARTING.Process(target=behave, args=about)
    process.start()
    process.join()
    return process.exitcode


def behave(
    course: Path, out: str, err: str, environment: dict, words: tuple[str, ...], parted: bool
) -> None:
    assert hasattr(sys.modules[PARENT], "READY"), f"{PARENT} failed"
    os.chdir(course)
    os.environ.clear()
    os.environ.update(environment)
    tools = str(Path(sys.executable).parent)  # where `alembic` is
    os.environ["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"
    warnings.simplefilter(environment.get("PYTHONWARNINGS", "error"))
    for number, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), number)
    forked_lanes.adopt(parted)
    settle()
    atexit.register(LANES.end_idle)  # a process that parts forgets what was registered
    sys.argv = list(words)
    if words[0] == "python":
        sys.path.insert(0, str(course))  # as with -c
        exec(words[1], {})
    elif words[0] == "nbgrader":
        from jupyter_core.paths import jupyter_config_dir
        from nbgrader.apps.nbgraderapp import main

        try:
            main()
        finally:  # without configuration Jupyter makes a folder for its own
            if os.environ.get(NO_CONFIGURATION):
                shutil.rmtree(jupyter_config_dir())
    else:
        from attncourse.grading.cli import main

        try:
            main()
        finally:
            gc.collect()  # what was left open is told
