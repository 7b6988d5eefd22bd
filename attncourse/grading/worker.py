"""The process in which one submission runs: ``python -m attncourse.grading.worker``.

It reads ``{"steps": [...], "cell_limit": seconds}`` from standard input and writes one line of
JSON when a step begins and one when it ends, so that what was earned is known even if a later
step ends the process. What the submission prints goes nowhere.
"""

import ast
import ctypes
import json
import linecache
import numbers
import os
import signal
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

MESSAGE = 2000  # characters of an error's text that are worth keeping


class CellTimeout(BaseException):
    """Raised in a cell that runs too long. Not an ``Exception``: ``except`` cannot keep it."""


def main() -> None:
    die_with_parent()
    order = json.load(sys.stdin)
    results = take_over_stdout()
    sys.path.append(os.getcwd())
    module = types.ModuleType("__main__")
    module.__dict__["display"] = lambda *values, **options: None
    sys.modules["__main__"] = module
    for number, step in enumerate(order["steps"]):
        say(results, {"begin": number})
        say(results, {"end": number, **run(step, module.__dict__, order["cell_limit"])})
    say(results, {"done": True})
    results.flush()
    os._exit(0)  # threads or exit handlers of the submission have no say in this


def say(results: TextIO, event: dict[str, Any]) -> None:
    results.write(json.dumps(event) + "\n")
    results.flush()


def run(step: dict[str, str], namespace: dict[str, Any], limit: float) -> dict[str, Any]:
    """What came of one step: ``kind`` is "number", "none", "other", "error" or "timeout"."""
    if not step["grade_id"]:
        return outcome(step, namespace, limit)
    from attncourse.checks import observe

    with observe() as verdicts:
        found = outcome(step, namespace, limit)
    return {**found, "verdicts": [describe(verdict) for verdict in verdicts]}


def outcome(step: dict[str, str], namespace: dict[str, Any], limit: float) -> dict[str, Any]:
    try:
        with time_limit(limit):
            return value_of(execute(step["source"], f"<{step['name']}>", namespace))
    except CellTimeout:
        return {"kind": "timeout", "message": f"did not end within {limit:g} s"}
    except BaseException as error:  # SystemExit and KeyboardInterrupt end a cell, not the rest
        return {"kind": "error", "message": text_of(error)[:MESSAGE]}


def value_of(value: Any) -> dict[str, Any]:
    if value is None:
        return {"kind": "none"}
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return {"kind": "number", "value": float(value)}
    return {"kind": "other", "message": f"a value of type {type(value).__name__}"}


def execute(source: str, filename: str, namespace: dict[str, Any]) -> Any:
    """Runs a cell; the value of its last line where that is an expression, else None."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # for inspect.getsource
    tree = ast.parse(source, filename)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, filename, "exec", dont_inherit=True), namespace)
    if last is None:
        return None
    code = compile(ast.Expression(last.value), filename, "eval", dont_inherit=True)
    return eval(code, namespace)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises ``CellTimeout`` inside the block after ``seconds``, and again if it is swallowed."""
    if not hasattr(signal, "setitimer"):  # Windows: the driver's own limit has to do
        yield
        return
    running = True

    def ring(signum: int, frame: object) -> None:
        if running:
            raise CellTimeout

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def describe(verdict: Any) -> dict[str, Any]:
    """What a report keeps of a verdict."""
    diagnosis = verdict.diagnosis
    failed = [c for c in verdict.criteria if not c.passed]
    return {
        "target": verdict.target,
        "passed": bool(verdict.passed),
        "earned": verdict.earned,
        "possible": verdict.possible,
        "misconception": diagnosis.name if diagnosis else "",
        "failed": [c.name for c in failed],
        "reason": failed[0].message.splitlines()[-1] if failed and failed[0].message else "",
        "seed": verdict.seed,
        "text": str(verdict),
    }


def text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a submission's own exception may refuse to be shown
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def take_over_stdout() -> TextIO:
    """The pipe to the driver; afterwards what is printed, by whatever means, is dropped."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return pipe


def die_with_parent() -> None:
    """On Linux: when the driver is killed outright, this process goes with it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


if __name__ == "__main__":
    main()
