"""Which of the usual mistakes an implementation makes, told by what it does."""

import re
from functools import lru_cache
from itertools import takewhile

import numpy as np

from attncourse.checks.compare import as_numbers, difference
from attncourse.checks.exercise import Exercise, Misconception
from attncourse.checks.outcome import Outcome, run
from attncourse.checks.trials import Trial, draw

PROBES = 3  # wrong trials on which every misconception is tried first


def diagnose(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> Misconception | None:
    """The misconception that does what the implementation did, or None.

    A misconception's outcomes are compared with the implementation's wherever either is wrong.
    Agreement on wrong random numbers does not come about by chance, so a third of the cases is
    enough when some of them agree in that way (a second mistake may blur the rest); agreement
    on NaN, on exceptions or on truth values proves little, so there all must agree.
    """
    wrong = [i for i, t in enumerate(trials) if t.wrong or t.outcome.mutated]
    if all(trials[i].outcome.error is NotImplementedError for i in wrong):
        return None  # not written yet
    attempts = mistakes(exercise, seed)
    telling = [i for i in wrong if tells(trials[i])]
    probes = (telling or wrong)[:PROBES]
    enough = 1 / 3 if telling else 1.0
    best, best_score = None, 0.0
    for attempt in sorted(attempts, key=lambda a: -a.agreement(trials, probes)):
        score = likeness(trials, attempt, max(enough, best_score))
        if score > best_score:
            best, best_score = attempt.misconception, score
        if score == 1:  # no two misconceptions do the same everywhere
            break
    return best


def likeness(trials: tuple[Trial, ...], attempt: "Attempt", enough: float) -> float:
    """How far the implementation did what the attempt did: 0 for not, 1 for exactly.

    Gives up with 0 once it cannot come to ``enough``.
    """
    looked_at = agreed = telling = 0
    for number, trial in enumerate(trials):
        other = attempt.trial(number)
        if not (trial.wrong or trial.outcome.mutated or other.wrong or other.outcome.mutated):
            continue
        looked_at += 1
        if same(trial.outcome, other.outcome):
            agreed += 1
            telling += tells(trial)
        left = len(trials) - number - 1
        if agreed + left < enough * (looked_at + left):
            return 0.0
    if not looked_at or not agreed:
        return 0.0
    score = agreed / looked_at
    return score if score == 1 or (telling and score >= enough) else 0.0


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two calls did the same."""
    if a.kind != b.kind or a.mutated != b.mutated:
        return False
    if a.kind == "raised":
        return a.error is b.error and without_numbers(a.text) == without_numbers(b.text)
    if a.kind == "value":
        if a.value is None or b.value is None:
            return a.value is b.value
        return difference(a.value, b.value, brief=True) is None
    return a.kind == "hung"


def without_numbers(text: str) -> str:
    """An error's message without sizes and without the line that raised it."""
    return re.sub(r"\d+", "#", text.split(" (in the line")[0])


def tells(trial: Trial) -> bool:
    """Whether an outcome is a wrong value that nobody returns by chance."""
    if trial.outcome.kind != "value" or not trial.wrong:
        return False
    value = trial.outcome.value
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    if isinstance(value, list | tuple):
        return len(value) > 2
    array = as_numbers(value) if value is not None else None
    if array is None or array.dtype.kind != "f":
        return False
    distinct = np.unique(array[np.isfinite(array)]).size
    return distinct > 2 or (distinct == 2 and array.size >= 12)


class Attempt:
    """What a misconception does on the cases, tried when it is asked for."""

    def __init__(self, exercise: Exercise, misconception: Misconception, seed: int):
        self.exercise = exercise
        self.misconception = misconception
        self.cases = draw(exercise, seed)
        self.trials: dict[int, Trial] = {}

    def trial(self, number: int) -> Trial:
        """The trial on one case."""
        if number not in self.trials:
            criterion, case, expected = self.cases[number]
            outcome = run(self.exercise, self.misconception.wrong, case)
            self.trials[number] = Trial(criterion, case, expected, outcome)
        return self.trials[number]

    def agreement(self, trials: tuple[Trial, ...], numbers: list[int]) -> int:
        """How many of these cases the implementation did the same in, up to the first other."""
        alike = (same(trials[n].outcome, self.trial(n).outcome) for n in numbers)
        return sum(takewhile(bool, alike))


@lru_cache(maxsize=8)
def mistakes(exercise: Exercise, seed: int) -> tuple[Attempt, ...]:
    """Each misconception with what it does on the cases."""
    return tuple(Attempt(exercise, m, seed) for m in exercise.misconceptions)
