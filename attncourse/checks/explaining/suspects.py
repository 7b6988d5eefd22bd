"""Wrong implementations to compare an answer with: one mistake, two at once, families."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from attncourse.checks.exercise import Between, Exercise, Family, Mistake, parts_of
from attncourse.checks.trying.compare import difference
from attncourse.checks.trying.outcome import Outcome, copy_of, quiet, run
from attncourse.checks.trying.trials import MAX_KEPT_DRAWS, Trial, draw


class Suspect:
    """A wrong implementation on the cases of a draw; each trial is made when it is first needed."""

    def __init__(self, exercise: Exercise, mistake: Mistake, wrong: Callable, seed: int):
        """Prepare a wrong implementation for the cases of a seed; nothing is called yet."""
        self.exercise = exercise
        self.mistake = mistake
        self.wrong = wrong
        self.parts = parts_of(wrong)
        self.cases = draw(exercise, seed)
        self.trials: dict[int, Trial] = {}
        self.seed = seed
        self.combined: dict[
            Suspect, Suspect | None
        ] = {}  # by the second mistake (combined_suspect)
        self.by_seed: dict[int, Suspect] = {seed: self}

    def on_seed(self, seed: int) -> "Suspect":
        """Return the suspect of the same implementation on the cases of another seed."""
        if seed not in self.by_seed:
            self.by_seed[seed] = Suspect(self.exercise, self.mistake, self.wrong, seed)
        return self.by_seed[seed]

    def trial(self, number: int) -> Trial:
        """Return the trial on the case at a place of the draw, made once."""
        if number not in self.trials:
            criterion, case, expected = self.cases[number]
            outcome = run(self.exercise, self.wrong, case, watched=False)
            trial = Trial(criterion, case, expected, outcome)
            if outcome.kind == "hung":  # not kept: on a busy machine it may return the next time
                return trial
            self.trials[number] = trial
        return self.trials[number]

    def glance(self, number: int) -> Any:
        """Return the value in one case, or what is compared of it; None where it raises.

        There is no time limit and no watch, so it is quick enough for searches among many.
        """
        if number in self.trials:
            return self.trials[number].outcome.value
        _, case, _ = self.cases[number]
        try:
            with quiet():
                value = case.use(self.wrong, *copy_of(case.args), **copy_of(case.kwargs))
                return value if case.facts is None else case.facts(value)
        except Exception:
            return None


@lru_cache(maxsize=MAX_KEPT_DRAWS)
def suspects(exercise: Exercise, seed: int) -> tuple[Suspect, ...]:
    """Return a suspect for each wrong implementation of an exercise's mistakes, but families."""
    return tuple(
        Suspect(exercise, m, wrong, seed)
        for m in exercise.mistakes
        for wrong in (m.wrong, *m.also)
        if wrong is not None
    )


@lru_cache(maxsize=64)
def family_members(
    exercise: Exercise, m: Mistake, family: Family, seed: int
) -> tuple[Suspect, ...]:
    """Return a suspect for each size that a mistake's family lists."""
    return tuple(Suspect(exercise, m, family.make(size), seed) for size in family.values)


def combined_suspect(a: Suspect, b: Suspect, seed: int) -> Suspect | None:
    """Return the suspect that makes two mistakes at once; None if that cannot be composed.

    They have to be of one composition and of different decisions. Its mistake is the first one's.
    """
    if b not in a.combined:
        a.combined[b] = None
        if a.parts and b.parts and a.parts.compose is b.parts.compose:
            compose, chosen = a.parts
            if not chosen.keys() & b.parts.chosen.keys():
                implementation = compose(**chosen, **b.parts.chosen)
                a.combined[b] = Suspect(a.exercise, a.mistake, implementation, seed)
    return a.combined[b]


def least_distance(distance: Callable[[float], float], low: float, high: float) -> list[float]:
    """Return the places between two where a distance is least; [] where it does not fall to 0.

    The best of 41 places is refined by a golden-section search. If several of the 41 are equally
    good, three of these are returned.
    """
    places = [float(x) for x in np.linspace(low, high, 41)]
    distances = [distance(x) for x in places]
    nearest = [x for x, d in zip(places, distances, strict=True) if d <= min(distances) + 1e-12]
    if len(nearest) > 1:
        return [nearest[0], nearest[len(nearest) // 2], nearest[-1]]
    i, width = distances.index(min(distances)), places[1] - places[0]
    golden = (5**0.5 - 1) / 2
    a, b = places[i] - width, places[i] + width
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = distance(c), distance(d)
    beside = min(distances[max(0, i - 1) : i] + distances[i + 1 : i + 2])
    for step in range(60):  # which leave 3e-13 of the interval
        # After 12 steps the interval has a 300th of its width: a distance that is going to be 0
        # has fallen far below that of the neighbouring places.
        if step == 12 and min(at_c, at_d) > beside / 10:
            return []
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = distance(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = distance(d)
    return [(a + b) / 2]


def nearest_sizes(distance: Callable[[float], float], values: Between) -> Iterator[float]:
    """Yield the sizes in a range where a distance is least.

    The search runs over logarithms, so that small sizes are searched as closely as large ones.
    """
    sign = -1.0 if values.low < 0 else 1.0
    low, high = sorted(np.log(np.abs(values)))
    for place in least_distance(lambda x: distance(sign * float(np.exp(x))), low, high):
        yield sign * float(np.exp(place))


def same_behaviour(a: Outcome, b: Outcome) -> bool:
    """True if two calls had the same outcome: an answer's, a, and a wrong implementation's, b.

    Of exceptions the class and the message count, without numbers; but a student's own ``raise``
    may have any message where ``b`` raised by decision.
    """
    if a.kind != b.kind or a.mutated != b.mutated:
        return False
    if a.kind == "raised":
        if a.error is not b.error:
            return False
        if a.text.startswith("your module"):  # a sentence of ours, in which sizes matter
            return a.text == b.text
        if is_raised_by_student(a) and b.decided:
            return True
        return comparable_message(a.text) == comparable_message(b.text)
    if a.kind == "value":
        if a.value is None or b.value is None:
            return a.value is b.value
        return difference(a.value, b.value, brief=True) is None
    return a.kind == "hung"


def is_raised_by_student(outcome: Outcome) -> bool:
    """True if a ``raise`` or ``assert`` in the student's code raised the error."""
    if re.search("truth value of an array|Boolean value of Tensor", outcome.text):
        return False  # the condition before a ``raise`` failed
    return bool(re.search(r"\(in the line `.*\b(raise|assert)\b", outcome.text))


# Messages that numbers do not fill a shape: of ``reshape`` and ``view``, and of ``unflatten``.
SHAPE_MISFIT_PATTERN = (
    r"shape '.*?' is invalid for input of size|unflatten: Provided sizes .* in the input tensor"
)


def comparable_message(text: str) -> str:
    """Return an error's message with "#" for numbers and without the line that raised it.

    That numbers do not fill a shape is one message, whichever function raised it.
    """
    message = text.split(" (in the line")[0]
    return (
        "another shape"
        if re.search(SHAPE_MISFIT_PATTERN, message)
        else re.sub(r"-?\d+", "#", message)
    )
