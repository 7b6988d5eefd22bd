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
    hide_ungraded_names,
    judged_with_name_put_back,
    note_on_rerun,
    settled_answer,
    verdict_without_judging,
    why_other_than_graded,
    why_slowed_down,
    why_unjudged,
)
from attncourse.checks.exercise import Case, Criterion, Exercise, Mistake
from attncourse.checks.reading.cells import cells_here
from attncourse.checks.showing.chapter_progress import last_verdicts, progress_of
from attncourse.checks.showing.spinner import watched_check
from attncourse.checks.showing.verdict import CheckFailed, Verdict
from attncourse.checks.showing.verdict_display import VerdictDisplay
from attncourse.checks.substitution import judged_with_references, wrong_exercises_called
from attncourse.checks.trying.asking import in_place
from attncourse.checks.trying.muted import show_anyway
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
    """A program that collects verdicts: those so far, and its seed, None for fresh cases."""

    verdicts: list[Verdict]
    seed: int | None


_graders: list[Grader] = []  # at work, the innermost last


def is_graded() -> bool:
    """True inside ``observe``: a grader collects verdicts, and no student waits for one."""
    return bool(_graders)


def grader_seed() -> int | None:
    """Return the seed of the innermost grader that has one, or None."""
    return next((g.seed for g in reversed(_graders) if g.seed is not None), None)


def check(target: str, implementation: Callable, variant: str = "") -> None:
    """Show the verdict on ``implementation``; raise ``CheckFailed`` if it is not fully right.

    ``target`` is the exercise, "stem.name". The points are shown before the search for the mistake
    if that cannot change them.
    """
    verdict_display, exercise = VerdictDisplay(display_in_notebook), find_exercise(target, variant)
    with watched_by_student(target):
        why = None if is_graded() else why_other_than_graded(exercise, implementation)
        on_points = None if is_graded() else verdict_display.show_points
        verdict = (
            verdict_without_judging(exercise, why)
            if why
            else examine_exercise(exercise, implementation, on_points=on_points)
        )
    if not is_graded():
        last_verdicts[target] = verdict
    displayed = verdict_display.show_verdict(verdict)
    if not verdict.passed:
        raise CheckFailed(verdict, displayed, verdict_display.first_line) from None
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

    Without ``explain`` it says what is right and what is wrong, and names no mistake.

    In a notebook, without a seed, an answer that calls wrong answers to earlier exercises is judged
    once more with right ones in their place: it may be right then, or its own mistake is named.

    Raises ``ValueError`` if there is no such exercise or variant; never for a wrong answer.
    """
    with watched_by_student(target):
        return examine_exercise(
            find_exercise(target, variant), implementation, seed, explain=explain
        )


def watched_by_student(target: str) -> AbstractContextManager[None]:
    """Return ``watched_check`` where a student waits; for a grader a context that does nothing."""
    return nullcontext() if is_graded() else watched_check(target)


def examine_exercise(
    exercise: Exercise,
    implementation: Callable,
    seed: int | None = None,
    on_points: Callable[[Verdict], None] | None = None,
    explain: bool = True,
) -> Verdict:
    """Return the verdict that ``examine`` returns, and hand it to every grader at work.

    ``on_points`` is called with the points as soon as they are final.
    """
    from attncourse.checks import judging

    judge = partial(judging.judge, explain=explain)
    has_fresh_cases = seed is None
    if has_fresh_cases and grader_seed() is not None:
        seed = zlib.crc32(f"{grader_seed()} {exercise.target}".encode())
    chapter_exercises = chapter(exercise.stem)
    if not is_graded():
        implementation = settled_answer(exercise, implementation, chapter_exercises)
    why = why_slowed_down() or why_unjudged(
        exercise, implementation, chapter_exercises, graded=is_graded()
    )
    if why or is_graded():
        verdict = (
            verdict_without_judging(exercise, why) if why else judge(exercise, implementation, seed)
        )
        for grader in _graders:
            grader.verdicts.append(verdict)
        return verdict

    def is_right(other_exercise: Exercise, answer: Callable) -> bool:
        """True if the answer to another exercise of the chapter can be judged, and passes."""
        answer = settled_answer(other_exercise, answer, chapter_exercises)
        if why_unjudged(other_exercise, answer, chapter_exercises) is not None:
            return False
        return judging.passes_fresh_cases(other_exercise, answer)

    @cache
    def wrong_answers_called() -> tuple[Exercise, ...]:
        """Return the exercises whose wrong answers this one calls; worked out once, if at all."""
        if exercise.variant or not has_fresh_cases:  # ours are in the book's convention
            return ()
        return wrong_exercises_called(exercise, implementation, chapter_exercises, is_right)

    def report_points(verdict: Verdict) -> None:
        """Report the points, unless right answers in place of wrong ones may still change them."""
        if on_points and not wrong_answers_called():
            on_points(verdict)

    with hide_ungraded_names(exercise, implementation, chapter_exercises):
        verdict = judge(exercise, implementation, seed, report_points)
        if not (verdict.passed or exercise.variant or not has_fresh_cases):
            verdict = judged_with_name_put_back(
                verdict, implementation, partial(judge, exercise, seed=verdict.seed)
            )
            verdict = judged_with_references(
                verdict, implementation, wrong_answers_called(), partial(judge, exercise)
            )
    return replace(verdict, note=note_on_rerun(exercise, implementation, chapter_exercises))


def progress(stem: str) -> None:
    """Show which of a chapter's exercises this session's checks found right, and which is next.

    ``stem`` names the chapter. Raises ``ValueError`` if there is no such chapter.
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
    """Yield a list that every verdict made inside the ``with`` block is appended to: for graders.

    With a seed, checks that ask for fresh cases draw them from it and from the exercise's target.
    """
    grader = Grader([], seed)
    _graders.append(grader)
    try:
        yield grader.verdicts
    finally:
        _graders.remove(grader)


@cache
def chapter(stem: str) -> tuple[Exercise, ...]:
    """Return one chapter's exercises. Only that chapter is loaded: NumPy's need no torch."""
    return bank_of(stem).EXERCISES


def bank_of(stem: str, module: str = "") -> Any:
    """Return the module ``attncourse.bank.<stem>``, imported with a fresh process's settings.

    ``module`` names one inside it, with a dot (".variants"). Raises ``ModuleNotFoundError`` in one
    sentence, with how to install it, for an optional library that the chapter needs.
    """
    try:
        with as_a_process_imports():
            return importlib.import_module(f"attncourse.bank.{stem}{module}")
    except ModuleNotFoundError as missing:
        if missing.name not in BROUGHT_BY:
            raise
        number, how_to_install = STEMS.index(stem) + 1, BROUGHT_BY[missing.name]
        sentence = (
            f"chapter {number} takes {missing.name}, which is not installed: {how_to_install}"
        )
        raise ModuleNotFoundError(sentence, name=missing.name) from None


def find_exercise(target: str, variant: str = "") -> Exercise:
    """Return the exercise called ``target``, or its ``variant`` of that name.

    Raises ``ValueError``, with the most similar names, if there is none.
    """
    stem = target.split(".")[0] if isinstance(target, str) else ""
    if stem in STEMS:
        for exercise in chapter(stem):
            if exercise.target == target:
                return find_variant(exercise, variant) if variant else exercise
    similar_targets = difflib.get_close_matches(str(target), exercises(), n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(map(repr, similar_targets))}?" if similar_targets else ""
    raise ValueError(f"no exercise is called {target!r}{hint}")


@cache
def find_variant(exercise: Exercise, name: str) -> Exercise:
    """Return the exercise in the variant of this name; ``ValueError`` names those that exist."""
    from attncourse.checks.variants.variant import exercise_in_variant

    variants = [v for v in variants_of(exercise.stem) if exercise.name in v.adapters]
    for variant in variants:
        if variant.name == name:
            return exercise_in_variant(exercise, variant)
    has = f"it has {', '.join(v.name for v in variants)}" if variants else "it has none"
    raise ValueError(f"{exercise.target} has no variant {name!r}; {has}")


def variants_of(stem: str) -> "tuple[Variant, ...]":
    """Return the variants of a chapter's exercises, () if it has none; loads their module."""
    if find_spec(".variants", bank_of(stem).__name__) is None:
        return ()
    return bank_of(stem, ".variants").VARIANTS


def display_in_notebook(thing: Any, **how: Any) -> Any:
    """Display a thing as HTML in a notebook; return a display's handle or True, None elsewhere.

    Keywords go to ``IPython.display.display``, which returns a handle if one is asked for.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    with show_anyway():
        return display(thing, **how) or True


cells_here()  # from here on the runs of a notebook's cells are known
