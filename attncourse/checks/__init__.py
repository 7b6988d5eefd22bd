"""Checks of the exercises: what a right answer has to do, and what each usual mistake looks like.

``check("mixing.mix", mix)`` in a notebook shows the verdict and raises if the answer is wrong.
``examine("mixing.mix", mix)`` returns the verdict and never raises for a wrong answer.
``exercises()`` maps every target to its exercise.
``check("masking.leak", leak, variant="forbidden")`` asks for an answer in another convention.
``progress("mixing")`` at a notebook's end shows what its checks saw.
``in_place(f)(x)`` in a grader's test changes the test's own x, where f does that.
"""

import difflib
import importlib
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attncourse import STEMS
from attncourse.checks.eligibility import (
    as_graded,
    judged_with_name_put_back,
    not_judged,
    note_on_rerun,
    settled_answer,
    why_not_the_graded_one,
    why_slowed_down,
    why_unjudged,
)
from attncourse.checks.exercise import Case, Criterion, Exercise, Mistake
from attncourse.checks.reading.cells import cells_here
from attncourse.checks.showing.chapter_progress import last_verdicts, progress_of
from attncourse.checks.showing.spinner import watched_check
from attncourse.checks.showing.verdict import CheckFailed, Verdict
from attncourse.checks.showing.verdict_display import VerdictDisplay
from attncourse.checks.substitution import judged_given_right_ones, wrong_ones
from attncourse.checks.trying.asking import in_place
from attncourse.checks.trying.muted import aloud
from attncourse.checks.trying.settings import as_a_process_imports
from attncourse.support.output import write_line

if TYPE_CHECKING:
    from attncourse.checks.variants.variant import Variant

__all__ = [
    "Case",
    "CheckFailed",
    "Criterion",
    "Exercise",
    "Mistake",
    "Verdict",
    "check",
    "examine",
    "exercises",
    "in_place",
    "observe",
    "progress",
    "variants_of",
]

# Libraries that not every installation has, and where a chapter that takes one gets it.
BROUGHT_BY = {
    "torch": "pip install torch, or, where there is none for this machine, open Colab",
    **dict.fromkeys(("gguf", "regex", "tokenizers"), "pip install 'attncourse[model]'"),
}


@dataclass(eq=False)
class Grader:
    """Somebody who grades what is checked: the verdicts so far, and a seed if there is one."""

    verdicts: list[Verdict]
    seed: int | None


_graders: list[Grader] = []  # at work, the innermost last


def is_graded() -> bool:
    """True if a grader is at work: no student waits, and no notebook is here."""
    return bool(_graders)


def grader_seed() -> int | None:
    """Return the seed of the innermost grader that has one."""
    return next((g.seed for g in reversed(_graders) if g.seed is not None), None)


def check(target: str, implementation: Callable, variant: str = "") -> None:
    """Show the verdict on ``implementation``; raise ``CheckFailed`` if it is not fully right.

    How many points there are is shown before the mistake is looked for, where that is final.
    """
    verdict_display, exercise = VerdictDisplay(display_in_notebook), find_exercise(target, variant)
    with watched_by_student(target):
        why = None if is_graded() else why_not_the_graded_one(exercise, implementation)
        hear = None if is_graded() else verdict_display.begin
        verdict = (
            not_judged(exercise, why) if why else examined(exercise, implementation, hear=hear)
        )
    if not is_graded():
        last_verdicts[target] = verdict
    displayed = verdict_display.end(verdict)
    if not verdict.passed:
        raise CheckFailed(verdict, displayed, verdict_display.said) from None
    if not displayed:
        write_line(str(verdict), sys.stdout)


def examine(
    target: str,
    implementation: Callable,
    seed: int | None = None,
    variant: str = "",
    explain: bool = True,
) -> Verdict:
    """Return the verdict on ``implementation``. The same seed gives the same cases.

    Without ``explain`` it says what is right and what is not, and no mistake is looked for.

    In a notebook, without a seed, an answer counts as right that is right, given right ones in
    place of wrong ones that it calls; and one that is wrong then, too, is told its own mistake.

    Raises ``ValueError`` for a target that is no exercise, and for a variant that it has not; never
    for a wrong answer.
    """
    with watched_by_student(target):
        return examined(find_exercise(target, variant), implementation, seed, explain=explain)


def watched_by_student(target: str) -> AbstractContextManager[None]:
    """Return ``watched`` where somebody waits for the check; a grader does not."""
    return nullcontext() if is_graded() else watched_check(target)


def examined(
    exercise: Exercise,
    implementation: Callable,
    seed: int | None = None,
    hear: Callable[[Verdict], None] | None = None,
    explain: bool = True,
) -> Verdict:
    """Return the verdict that ``examine`` returns.

    ``hear`` is called with the points as soon as they are final.
    """
    from attncourse.checks import judging

    judge = partial(judging.judge, explain=explain)

    fresh = seed is None
    if fresh and grader_seed() is not None:
        seed = zlib.crc32(f"{grader_seed()} {exercise.target}".encode())
    around = chapter(exercise.stem)
    if not is_graded():
        implementation = settled_answer(exercise, implementation, around)
    why = why_slowed_down() or why_unjudged(exercise, implementation, around, graded=is_graded())
    if why or is_graded():
        verdict = not_judged(exercise, why) if why else judge(exercise, implementation, seed)
        for grader in _graders:
            grader.verdicts.append(verdict)
        return verdict

    def is_right(other: Exercise, answer: Callable) -> bool:
        answer = settled_answer(other, answer, around)
        return why_unjudged(other, answer, around) is None and judging.passes_fresh_cases(
            other, answer
        )

    @cache
    def others() -> tuple[Exercise, ...]:
        if exercise.variant or not fresh:  # ours are in the book's convention
            return ()
        return wrong_ones(exercise, implementation, around, is_right)

    def first(verdict: Verdict) -> None:
        if hear and not others():
            hear(verdict)

    with as_graded(exercise, implementation, around):
        verdict = judge(exercise, implementation, seed, first)
        if not (verdict.passed or exercise.variant or not fresh):
            verdict = judged_with_name_put_back(
                verdict, implementation, partial(judge, exercise, seed=verdict.seed)
            )
            verdict = judged_given_right_ones(
                verdict, implementation, others(), partial(judge, exercise)
            )
    return replace(verdict, note=note_on_rerun(exercise, implementation, around))


def progress(stem: str) -> None:
    """Show which of a chapter's exercises the checks of this session saw done, and what is next.

    Raises ``ValueError`` for what is no chapter.
    """
    if stem not in STEMS:
        raise ValueError(f"expected a chapter ({', '.join(STEMS)}), got {stem!r}")
    chapter_progress = progress_of(stem, chapter(stem))
    if not display_in_notebook(chapter_progress):
        write_line(str(chapter_progress), sys.stdout)


def exercises() -> dict[str, Exercise]:
    """Return every exercise by its target, ``"stem.name"``, in the order of the course."""
    return {e.target: e for stem in STEMS for e in chapter(stem)}


@contextmanager
def observe(seed: int | None = None) -> Iterator[list[Verdict]]:
    """Collect every verdict made inside the ``with`` block: for graders.

    With a seed, a verdict that asks for fresh cases gets those that follow from it and the target.
    """
    grader = Grader([], seed)
    _graders.append(grader)
    try:
        yield grader.verdicts
    finally:
        _graders.remove(grader)


@cache
def chapter(stem: str) -> tuple[Exercise, ...]:
    """Return one chapter's exercises. Loads that chapter only, so NumPy chapters need no torch."""
    return bank_of(stem).EXERCISES


def bank_of(stem: str, module: str = "") -> Any:
    """Return ``attncourse.bank.<stem>``, or a module in it, imported as in a fresh process.

    Raises ``ModuleNotFoundError`` in one sentence where a library is not there that it takes.
    """
    try:
        with as_a_process_imports():
            return importlib.import_module(f"attncourse.bank.{stem}{module}")
    except ModuleNotFoundError as missing:
        if missing.name not in BROUGHT_BY:
            raise
        number, way = STEMS.index(stem) + 1, BROUGHT_BY[missing.name]
        said = f"chapter {number} takes {missing.name}, which is not installed: {way}"
        raise ModuleNotFoundError(said, name=missing.name) from None


def find_exercise(target: str, variant: str = "") -> Exercise:
    """Return the exercise called ``target``; ``ValueError``, with the nearest names, without one.

    In the convention of a ``variant``, where one is named.
    """
    stem = target.split(".")[0] if isinstance(target, str) else ""
    if stem in STEMS:
        for exercise in chapter(stem):
            if exercise.target == target:
                return find_variant(exercise, variant) if variant else exercise
    near = difflib.get_close_matches(str(target), exercises(), n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"no exercise is called {target!r}{hint}")


@cache
def find_variant(exercise: Exercise, name: str) -> Exercise:
    """Return the exercise in the variant of this name; ``ValueError`` with those that it has."""
    from attncourse.checks.variants.variant import exercise_in_variant

    known = [v for v in variants_of(exercise.stem) if exercise.name in v.adapters]
    for variant in known:
        if variant.name == name:
            return exercise_in_variant(exercise, variant)
    has = f"it has {', '.join(v.name for v in known)}" if known else "it has none"
    raise ValueError(f"{exercise.target} has no variant {name!r}; {has}")


def variants_of(stem: str) -> "tuple[Variant, ...]":
    """Return the variants of a chapter's exercises; they are loaded when somebody asks for one."""
    if find_spec(".variants", bank_of(stem).__name__) is None:
        return ()
    return bank_of(stem, ".variants").VARIANTS


def display_in_notebook(thing: Any, **how: Any) -> Any:
    """Display it as HTML where a notebook can show it; return None where none can."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    with aloud():
        return display(thing, **how) or True


cells_here()  # from here on the runs of a notebook's cells are known
