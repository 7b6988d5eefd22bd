"""What "right" means for every exercise, and what each usual mistake looks like.

``check("mixing.mix", mix)`` in a notebook shows the verdict and raises if the answer is wrong.
``examine("mixing.mix", mix)`` returns the verdict and never raises for a wrong answer.
``exercises()`` maps every target to its exercise.
``in_place(f)(x)`` in a grader's test changes the test's own x, where f does that.
"""

import difflib
import importlib
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from attncourse import STEMS
from attncourse.checks.asking import in_place
from attncourse.checks.exercise import Case, Criterion, Exercise, Misconception
from attncourse.checks.verdict import CheckFailed, Verdict

__all__ = [
    "Case",
    "CheckFailed",
    "Criterion",
    "Exercise",
    "Misconception",
    "Verdict",
    "check",
    "examine",
    "exercises",
    "in_place",
    "observe",
]

_observers: list[list[Verdict]] = []
_seeds: list[int] = []  # of the graders at work, the innermost last


def check(target: str, implementation: Callable) -> None:
    """Shows the verdict on ``implementation``; raises ``CheckFailed`` if it is not fully right."""
    verdict = examine(target, implementation)
    displayed = show(verdict)
    if not verdict.passed:
        raise CheckFailed(verdict, displayed) from None
    if not displayed:
        print(verdict)


def examine(target: str, implementation: Callable, seed: int | None = None) -> Verdict:
    """The verdict on ``implementation``. The same seed gives the same cases.

    Raises ``ValueError`` for a target that is no exercise; never for a wrong answer.
    """
    from attncourse.checks.judging import judge

    if seed is None and _seeds:
        seed = zlib.crc32(f"{_seeds[-1]} {target}".encode())
    verdict = judge(exercise(target), implementation, seed)
    for seen in _observers:
        seen.append(verdict)
    return verdict


def exercises() -> dict[str, Exercise]:
    """Every exercise by its target, ``"stem.name"``, in the order of the course."""
    return {e.target: e for stem in STEMS for e in chapter(stem)}


@contextmanager
def observe(seed: int | None = None) -> Iterator[list[Verdict]]:
    """Collects every verdict made inside the ``with`` block: for graders.

    With a seed, a verdict that asks for fresh cases gets those that follow from it and the target.
    """
    seen: list[Verdict] = []
    _observers.append(seen)
    if seed is not None:
        _seeds.append(seed)
    try:
        yield seen
    finally:
        _observers.pop(next(i for i, other in enumerate(_observers) if other is seen))
        if seed is not None:
            _seeds.pop()


@cache
def chapter(stem: str) -> tuple[Exercise, ...]:
    """One chapter's exercises. Loads that chapter only, so NumPy chapters need no torch."""
    return importlib.import_module(f"attncourse.checks.bank.{stem}").EXERCISES


def exercise(target: str) -> Exercise:
    """The exercise called ``target``; ``ValueError`` with the nearest names if there is none."""
    stem = target.split(".")[0] if isinstance(target, str) else ""
    if stem in STEMS:
        for found in chapter(stem):
            if found.target == target:
                return found
    near = difflib.get_close_matches(str(target), exercises(), n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"no exercise is called {target!r}{hint}")


def show(verdict: Verdict) -> bool:
    """Displays the verdict as HTML where a notebook can show it; says whether it did."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return False
    from IPython.display import display

    display(verdict)
    return True
