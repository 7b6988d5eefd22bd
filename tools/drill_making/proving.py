"""What the checks say of code with one line changed, and whether another line could mend it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from unittest.mock import patch

from attncourse.checks import Exercise, Mistake, find_exercise
from attncourse.checks.explaining import diagnosis
from attncourse.checks.explaining.diagnosis import diagnose
from attncourse.checks.explaining.search import Search
from attncourse.checks.judging import RepeatableAnswer, one_thread
from attncourse.checks.trying.compare import as_numbers
from attncourse.checks.trying.muted import muted
from attncourse.checks.trying.outcome import quiet, run
from attncourse.checks.trying.settings import as_a_process_starts
from attncourse.checks.trying.trials import Trial, draw, problem_with, trials_of, try_out
from attncourse.checks.trying.watch import forbidding
from attncourse.practice.drills import Drill
from drill_making.line_changes import does_nothing, other_lines_changed
from drill_making.overlapping import is_fair_name, names_overlap
from drill_making.refused import is_refused_line

MAX_CALL_SECONDS_OF_CHANGE = 5.0  # seconds for one call: a change may make a loop that never ends
MIN_CALL_SECONDS = 0.1  # seconds for one call of what may mend a drill
N_FIRST_CASES = 3  # cases that are tried first
CODE_NAME = "<a drill>"


@dataclass(frozen=True)
class Named:
    """A known mistake that code makes, with what it did in each case."""

    mistake: Mistake
    trials: tuple[Trial, ...]

    @property
    def is_easy(self) -> bool:
        """True where the first look gives it away: it crashes, or a shape is another one."""
        wrong = [t for t in self.trials if t.wrong]
        loud = [
            t for t in wrong if t.outcome.kind != "value" or problem_kind(t) in ("shape", "type")
        ]
        return 2 * len(loud) > len(wrong) if wrong else False


def problem_kind(trial: Trial) -> str:
    """Return what kind of problem a case has, "" for none."""
    return trial.problem.kind if trial.problem else ""


@contextmanager
def as_checked() -> Iterator[None]:
    """Run the block under the settings under which answers are judged."""
    with one_thread(), as_a_process_starts(), muted():
        yield


@contextmanager
def fewer_draws() -> Iterator[None]:
    """Run the block with verdicts tried on one further draw, not on three: enough to choose by.

    What is chosen is proved on three seeds, with all further draws of each.
    """
    with patch.object(diagnosis, "N_FURTHER_DRAWS", 1):
        yield


def limited(exercise: Exercise) -> Exercise:
    """Return the exercise with less time for a call."""
    return replace(exercise, limit=min(exercise.limit, MAX_CALL_SECONDS_OF_CHANGE))


def implementation_of(name: str, setup: str, code: str) -> Callable | None:
    """Return what code defines under a name, after its setup; None where it cannot be run."""
    names: dict[str, Any] = {"__name__": "__drill__"}
    try:
        with quiet():
            exec(compile(f"{setup}\n", CODE_NAME, "exec"), names)
            exec(compile(code, CODE_NAME, "exec"), names)
    except Exception:
        return None
    return names.get(name)


def first_trials(exercise: Exercise, implementation: Callable, seed: int) -> tuple[Trial, ...]:
    """Return what an implementation does in the first cases."""
    with as_checked():
        return tuple(islice(trials_of(exercise, implementation, seed), N_FIRST_CASES))


def fingerprint(trials: tuple[Trial, ...]) -> bytes:
    """Return bytes that are equal for implementations that did the same in these cases."""
    parts = []
    for trial in trials:
        numbers = as_numbers(trial.outcome.value)
        value = repr(trial.outcome.value) if numbers is None else numbers.tobytes()
        parts.append(repr((trial.outcome.kind, trial.outcome.error, trial.outcome.mutated, value)))
    return "".join(parts).encode()


def may_be_known(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> bool:
    """True unless the first cases show already that it is no mistake that is known.

    Most changes of a line are none, and a few cases take a fraction of the time of all.
    """
    with as_checked():
        if not any(t.stands_out for t in trials):
            return True
        return next(Search(exercise, trials, seed).single(), None) is not None


def named_mistake(exercise: Exercise, implementation: Callable, seed: int) -> Named | None:
    """Return the one known mistake that explains all; None where the checks name none."""
    with as_checked():
        trials = try_out(exercise, implementation, seed)
        if not any(t.stands_out for t in trials):
            return None
        answer = RepeatableAnswer(exercise, implementation, trials, seed, 0.0)
        diagnosis_made = diagnose(exercise, trials, seed, answer, None, True)
    if not diagnosis_made.all or diagnosis_made.mistake not in exercise.mistakes:
        return None
    return Named(diagnosis_made.mistake, trials)


def is_right(exercise: Exercise, implementation: Callable | None, seeds: tuple[int, ...]) -> bool:
    """True if the code is right in every case of these draws."""
    if implementation is None:
        return False
    with as_checked():
        return all(
            not trial.stands_out
            for seed in seeds
            for trial in trials_of(exercise, implementation, seed)
        )


def mending_places(
    exercise: Exercise,
    right: Callable,
    variants: Iterable[Callable | None],
    trials: tuple[Trial, ...],
    seed: int,
) -> Iterator[int]:
    """Yield the places of those variants of a drill's code that are right in every case.

    One call gets the time that the right code takes for all: of hundreds of changes many make a
    loop that never ends.
    """
    began = time.process_time()
    is_right(exercise, right, (seed,))
    max_seconds = max(time.process_time() - began, MIN_CALL_SECONDS)
    hurried = replace(exercise, limit=min(exercise.limit, max_seconds))
    first = quickest_wrong_cases(exercise, right, trials)
    for place, variant in enumerate(variants):
        if variant and passes_quickly(hurried, variant, seed, first):
            yield place


def quickest_wrong_cases(
    exercise: Exercise, right: Callable, trials: tuple[Trial, ...]
) -> list[int]:
    """Return the places of the cases that came out wrong, those first that right code does soon."""
    spent: dict[int, float] = {}
    with as_checked():
        for place, trial in enumerate(trials):
            if trial.stands_out:
                began = time.process_time()
                run(exercise, right, trial.case, watched=False)
                spent[place] = time.process_time() - began
    return sorted(spent, key=spent.__getitem__)


def passes_quickly(
    exercise: Exercise, implementation: Callable, seed: int, first: list[int]
) -> bool:
    """True if code is right on one draw; the cases at the places in ``first`` are tried first."""
    with as_checked(), forbidding(exercise.forbids):
        cases = draw(exercise, seed)
        other_places = [i for i in range(len(cases)) if i not in first]
        for i in [*first, *other_places]:
            _, case, expected = cases[i]
            outcome = run(exercise, implementation, case, watched=False)
            if outcome.mutated or problem_with(case, expected, outcome, brief=True):
                return False
    return True


def true_names(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> set[str]:
    """Return the names of all mistakes that do in every case what the code did."""
    with as_checked():
        search = Search(exercise, trials, seed)
        return {suspect.mistake.name for suspect in search.single()}


def problem_in_words(drill: Drill) -> str:
    """Return why a drill is unfair as it is written, whatever its code does; empty if it is not."""
    also = [name for name in drill.wrong_names if names_overlap(name, drill.name)]
    if also:
        return f"a wrong name may be true in words: {', '.join(also)}"
    unfair = [name for name in drill.wrong_names if not is_fair_name(name, drill.right)]
    if unfair:
        return f"a wrong name is true of the right code, or of much: {', '.join(unfair)}"
    if does_nothing("\n".join(drill.code), "\n".join(drill.right)):
        return "its line does nothing, which gives it away"
    if is_refused_line(drill.exercise, drill.code[drill.line]):
        return "its line is one of those that readers refused"
    return ""


def drill_problem(drill: Drill, seed: int, other_lines: bool = True) -> str:
    """Return why a drill does not hold on the cases of a seed; empty where it does.

    Its code has to be wrong and get its name, no wrong name may be true, not even in words, the
    mended line has to make everything right, other lines that are kept as mends too, and no known
    change of another line may. That is asked on one seed: a change of which one draw shows that it
    is wrong does not mend. Without ``other_lines`` it is not asked.
    """
    exercise = limited(find_exercise(drill.exercise))
    code = "\n".join(drill.code)
    wrong = implementation_of(drill.function, drill.setup, code)
    right = implementation_of(drill.function, drill.setup, "\n".join(drill.right))
    if wrong is None:
        return "its code cannot be run"
    named = named_mistake(exercise, wrong, seed)
    if named is None:
        return "the check names no mistake of the exercise"
    if named.mistake.name != drill.name:
        return f"the check says: {named.mistake.name}"
    if named.mistake.explanation != drill.sentence:
        return "the check says another sentence"
    also = true_names(exercise, named.trials, seed) & {*drill.wrong_names}
    if also:
        return f"a wrong name is true, too: {', '.join(sorted(also))}"
    if right is None or not is_right(exercise, right, (seed,)):
        return "its mended line does not make it right"
    if problem := problem_in_words(drill):
        return problem
    for mend in drill.elsewhere:
        code_then = "\n".join(mend.applied_to(drill.code))
        mended = implementation_of(drill.function, drill.setup, code_then)
        if drill.line in range(mend.first, mend.last + 1) or not is_right(
            exercise, mended, (seed,)
        ):
            return f"line {mend.first + 1} does not mend it as well"
    if not other_lines:
        return ""
    variants = (
        implementation_of(drill.function, drill.setup, mend)
        for mend in other_lines_changed(code, drill.line)
    )
    if any(True for _ in mending_places(exercise, right, variants, named.trials, seed)):
        return "another line mends it"
    return ""
