"""A notebook as a student runs it: cell by cell in an IPython of its own, each in a fork."""

import contextlib
import io
import json
import os
import re
import signal
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from attncourse import checks

checks.exercises()  # loaded once, for all


def played(cells: Iterable[str], folder: Path) -> dict[str, dict]:
    """What the checks of these cells said last, by target, with what each cell printed."""
    for name in ("IPython.core.interactiveshell", "attncourse.checks.judging"):
        import_module(name)  # once, and not in each fork
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        # Tests that run in the background ignore Ctrl-C; a notebook's kernel hears it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(BaseException):
            os.close(here)
            os.chdir(folder)
            sys.path.insert(0, "")
            with os.fdopen(there, "w") as out:
                out.write(json.dumps(run_all(cells)))
        os._exit(0)
    os.close(there)
    with os.fdopen(here) as told:
        text = told.read()
    os.waitpid(child, 0)
    return json.loads(text)


def run_all(cells: Iterable[str]) -> dict[str, dict]:
    from IPython.core.interactiveshell import InteractiveShell

    sys.modules["__main__"].__dict__.clear()
    InteractiveShell.clear_instance()  # of a test before: it would go on where that one was
    shell = InteractiveShell.instance()
    checks.last_verdicts.clear()
    checks.cells_here()
    printed = []
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            shell.run_cell(cell, store_history=True)
        printed.append(re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()))
    said = {target: told(verdict) for target, verdict in checks.last_verdicts.items()}
    return {"said": said, "printed": printed}


def told(verdict: checks.Verdict) -> dict:
    return {
        "earned": verdict.earned,
        "passed": verdict.passed,
        "unjudged": verdict.unjudged,
        "to_do": verdict.to_do,
        "given": verdict.given,
        "in_short": verdict.in_short,
        "reason": verdict.reason,
        "text": str(verdict),
    }
