"""Commands in processes that part from one that has imported nbgrader: start-up is most of them."""

import multiprocessing
import os
import sys
import tempfile
import warnings
from pathlib import Path

PARTING = multiprocessing.get_context("forkserver")
PARTING.set_forkserver_preload(["tests.grading.parted"])


def command(course: Path, *words: str) -> tuple[int, str]:
    """The status that `nbgrader …`, `attncourse …` or `python CODE` ends with, and what it says."""
    with tempfile.NamedTemporaryFile() as said:
        process = PARTING.Process(target=act, args=(course, said.name, dict(os.environ), *words))
        process.start()
        process.join()
        return process.exitcode, Path(said.name).read_text(encoding="utf-8")


def act(course: Path, said: str, environment: dict[str, str], *words: str) -> None:
    os.chdir(course)
    os.environ.clear()
    os.environ.update(environment)
    tools = str(Path(sys.executable).parent)  # where `alembic` is
    os.environ["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"
    os.environ["PYTHONWARNINGS"] = "ignore"  # nbgrader's own
    warnings.simplefilter("ignore")
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND), number)
    sys.argv = list(words)
    if words[0] == "python":
        sys.path.insert(0, str(course))  # as with -c
        exec(words[1], {})
    elif words[0] == "nbgrader":
        from nbgrader.apps.nbgraderapp import main

        main()
    else:
        from attncourse.grading.cli import main

        main()
