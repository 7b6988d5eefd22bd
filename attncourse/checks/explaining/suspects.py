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
    """The results of a wrong implementation on the cases, computed when they are asked for."""

    def __init__(self, exercise: Exercise, mistake: Mistake, wrong: Callable, seed: int):
        """Prepare a wrong implementation for the cases of a seed; nothing is called yet."""
        self.exercise = exercise
        self.mistake = mistake
        self.wrong = wrong
        self.parts = parts_of(wrong)
        self.cases = draw(exercise, seed)
        self.trials: dict[int, Trial] = {}
        self.seed = seed
        self.beside: dict[Suspect, Suspect | None] = {}  # with another mistake
        self.elsewhere: dict[int, Suspect] = {seed: self}

    def on(self, seed: int) -> "Suspect":
        """Return the suspect of the same implementation on the cases of another seed."""
        if seed not in self.elsewhere:
            other = Suspect(self.exercise, self.mistake, self.wrong, seed)
            self.elsewhere[seed] = other
        return self.elsewhere[seed]

    def trial(self, number: int) -> Trial:
        """Return the trial on one case."""
        if number not in self.trials:
            criterion, case, expected = self.cases[number]
            outcome = run(self.exercise, self.wrong, case, watched=False)
            trial = Trial(criterion, case, expected, outcome)
            if outcome.kind == "hung":  # another time it may not be
                return trial
            self.trials[number] = trial
        return self.trials[number]

    def glance(self, number: int) -> Any:
        """Return a suspect's value in one case without a time limit; None where it raises.

        It knows no time limit and no forbidden functions: it is for searches among many.
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
    """Return each mistake, and each other way to make it, with what it does on the cases."""
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
    """Return the members of a mistake's family that lists its sizes."""
    return tuple(Suspect(exercise, m, family.make(size), seed) for size in family.values)


def combined_suspect(a: Suspect, b: Suspect, seed: int) -> Suspect | None:
    """Return the suspect that makes two mistakes at once; None where they are one decision."""
    if b not in a.beside:
        a.beside[b] = None
        if a.parts and b.parts and a.parts.compose is b.parts.compose:
            compose, chosen = a.parts
            if not chosen.keys() & b.parts.chosen.keys():
                both = compose(**chosen, **b.parts.chosen)
                a.beside[b] = Suspect(a.exercise, a.mistake, both, seed)
    return a.beside[b]


def least_distance(distance: Callable[[float], float], low: float, high: float) -> list[float]:
    """Return where a distance is least: the best of a few places, then ever closer around it.

    Where it is equally small in many places, some of them. None where it does not fall to 0.
    """
    places = [float(x) for x in np.linspace(low, high, 41)]
    far = [distance(x) for x in places]
    alike = [x for x, d in zip(places, far, strict=True) if d <= min(far) + 1e-12]
    if len(alike) > 1:
        return [alike[0], alike[len(alike) // 2], alike[-1]]
    i, width = far.index(min(far)), places[1] - places[0]
    golden = (5**0.5 - 1) / 2
    a, b = places[i] - width, places[i] + width
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = distance(c), distance(d)
    beside = min(far[max(0, i - 1) : i] + far[i + 1 : i + 2])
    for step in range(60):
        if step == 12 and min(at_c, at_d) > beside / 10:  # in a three hundredth of the width
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
    """Yield the sizes between two, of one sign, where a distance is least.

    The search goes by logarithms: small numbers are looked at as closely as large ones.
    """
    sign = -1.0 if values.low < 0 else 1.0
    low, high = sorted(np.log(np.abs(values)))
    for place in least_distance(lambda x: distance(sign * float(np.exp(x))), low, high):
        yield sign * float(np.exp(place))


def same_behaviour(a: Outcome, b: Outcome) -> bool:
    """True if two calls had the same outcome."""
    if a.kind != b.kind or a.mutated != b.mutated:
        return False
    if a.kind == "raised":
        if a.error is not b.error:
            return False
        if a.text.startswith("your module"):  # in our own words, in which sizes say what is wrong
            return a.text == b.text
        both = raised_by_hand(a) and b.decided  # in whatever words
        return both or without_numbers(a.text) == without_numbers(b.text)
    if a.kind == "value":
        if a.value is None or b.value is None:
            return a.value is b.value
        return difference(a.value, b.value, brief=True) is None
    return a.kind == "hung"


def raised_by_hand(outcome: Outcome) -> bool:
    """True if the student's own code raised the error, so that its words are nobody else's."""
    if re.search("truth value of an array|Boolean value of Tensor", outcome.text):
        return False  # the condition before a ``raise`` failed
    return bool(re.search(r"\(in the line `.*\b(raise|assert)\b", outcome.text))


# ``reshape`` and ``view`` say the first, ``unflatten`` the second.
MISFITS = (
    r"shape '.*?' is invalid for input of size|unflatten: Provided sizes .* in the input tensor"
)


def without_numbers(text: str) -> str:
    """Return an error's message without sizes and without the line that raised it.

    That numbers do not fill a shape is one message, whichever function says so.
    """
    said = text.split(" (in the line")[0]
    return "another shape" if re.search(MISFITS, said) else re.sub(r"-?\d+", "#", said)
