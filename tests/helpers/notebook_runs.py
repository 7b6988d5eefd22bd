"""Runs notebooks' code with the Python that runs this, each in a process and a folder of its own.

    python notebook_runs.py FOLDER NOTEBOOK…

Prints a line of JSON for each: its path, where it has the package from, and what went wrong, which
is empty if nothing did. Pages are stopped after some seconds: of the rest, which the book's build
runs, only the imports are tried. What nearly all notebooks import is imported once, before the
processes part, as that takes longer than most of them do.
"""

import ast
import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import matplotlib.pyplot  # noqa: F401
import torch  # noqa: F401
from IPython.core.interactiveshell import InteractiveShell

PAGE = 0.5  # seconds of processor time
AGAIN = 1.0  # seconds until the clock rings again, where it was not heard
CELL = "<ipython-input-"  # how IPython names the file of a cell's code


class PageOutOfTime(BaseException):
    """A page has had its seconds."""


def main(folder: str, *paths: str) -> None:
    gc.freeze()  # none of the processes has to go through what is imported
    for path in map(Path, paths):
        place = Path(folder) / path.parent.parent.name / path.parent.name / path.stem
        place.mkdir(parents=True)
        child = os.fork()
        if child == 0:
            if path.parent.name == "book":
                signal.signal(signal.SIGVTALRM, stop)
                signal.setitimer(signal.ITIMER_VIRTUAL, PAGE, AGAIN)
                sys.unraisablehook = report_unraisable
            run(path, place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        result_file = place.with_suffix(".json")
        result = (
            json.loads(result_file.read_text())
            if result_file.exists()
            else {"wrong": f"ended by {status}"}
        )
        print(json.dumps({"path": str(path)} | result), flush=True)


def stop(_number: int, frame: FrameType | None) -> None:
    """Ends the cell that runs; in the shell's own code, which could not clean up, it waits."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(CELL):
            raise PageOutOfTime
        frame = frame.f_back


def report_unraisable(unraisable: Any) -> None:
    """Says what Python could not raise, but for the clock, which rings again."""
    if not isinstance(unraisable.exc_value, PageOutOfTime):
        sys.__unraisablehook__(unraisable)


def run(path: Path, place: Path) -> None:
    """Runs a notebook in a folder; what came of it is written beside that folder."""
    import attncourse

    os.chdir(place)
    printed, warned = place.with_suffix(".out"), place.with_suffix(".err")
    for number, file in ((1, printed), (2, warned)):
        os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY), number)
    try:
        solved = path.parent.parent.name == "solutions"  # where no answer is wrong
        wrong = problem(json.loads(path.read_text(encoding="utf-8"))["cells"], solved)
    except BaseException:
        wrong = traceback.format_exc()
    sys.stderr.flush()
    if not wrong and warned.stat().st_size:
        wrong = f"writes on stderr: {warned.read_text()}"
    result = {"package": attncourse.__file__, "wrong": wrong}
    place.with_suffix(".json").write_text(json.dumps(result))


def problem(cells: list[dict], solved: bool) -> str:
    """The first error that a notebook does not mean to show; one that is solved means none."""
    shell, in_time = InteractiveShell.instance(), True
    # A traceback of where a page was stopped, wherever that is, can fail itself, and tells nothing.
    shell.set_custom_exc((PageOutOfTime,), lambda *error, tb_offset=None: None)
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if not in_time:
            source = imports(shell.transform_cell(source))
        execution = shell.run_cell(source, store_history=False)
        error = execution.error_before_exec or execution.error_in_exec
        if isinstance(error, PageOutOfTime):
            in_time = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        elif error and (solved or "raises-exception" not in cell["metadata"].get("tags", [])):
            return f"{source}\n{type(error).__name__}: {error}"
    return ""


def imports(source: str) -> str:
    """The import statements of some code."""
    statements = [
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    return "\n".join(map(ast.unparse, statements))


if __name__ == "__main__":
    main(*sys.argv[1:])
