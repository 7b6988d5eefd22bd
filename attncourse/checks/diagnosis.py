"""Which of the usual mistakes an implementation makes, told by what it does.

A mistake is named where it does what the implementation did: in every case, or, where a second
mistake spoils some, in enough of them. Mistakes of one composition are also tried two at a time.
What none explains gets a symptom (see ``symptoms``), or nothing.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from attncourse.checks.compare import as_numbers, difference
from attncourse.checks.exercise import (
    Between,
    Exercise,
    Family,
    Misconception,
    parts_of,
)
from attncourse.checks.options import branches
from attncourse.checks.outcome import Outcome, Unusable, copy_of, is_unwritten, quiet, run
from attncourse.checks.signatures import other_signature
from attncourse.checks.symptoms import (
    changed_throughout,
    close,
    digits_alone,
    lies_over,
    may_be_changed,
    pairs,
    symptom_of,
)
from attncourse.checks.trials import Trial, draw, numbers_in

SECONDS = 1.5  # of processor time for what takes many tries
TRIES, LONGEST = 3000, 6.0  # or as long as so many tries take, where one takes long
ENOUGH = 1 / 3  # of the cases that stand out, for a mistake beside another one
Again = Callable[[int], tuple[Trial, ...]]  # the implementation on the cases of another seed


@dataclass(frozen=True)
class Finding:
    """What a diagnosis found: a mistake, or else a symptom, or nothing.

    ``rest`` is what is still wrong once the mistake is mended, and ``mended`` are the trials as
    they would be then.
    """

    mistake: Misconception | None = None
    rest: str = ""
    mended: tuple[Trial, ...] = ()
    symptom: str = ""


def diagnose(
    exercise: Exercise,
    trials: tuple[Trial, ...],
    seed: int,
    again: Again,
    default: Callable[[], Misconception | None],
) -> Finding:
    """What the implementation did wrong; ``trials`` are what it made of the cases of ``seed``.

    ``default`` looks for a default that is another one.
    """
    looks = [is_unwritten(t.outcome) for t in trials if t.stands_out]
    if all(looks):
        return Finding()  # not written yet
    search = Search(exercise, trials, seed)
    mistake = search.single()
    if mistake is not None:
        return Finding(mistake.misconception)
    if search.one_truth():
        return Finding(symptom=f"the answer is {trials[0].outcome.value}, whatever comes in")
    if other := other_signature(exercise, trials):
        beneath = search.beneath()
        told = (beneath.misconception.name, search.called(beneath)) if beneath else ("", ())
        return Finding(other, *told)
    if other := default():
        return Finding(other)
    branch = search.branch()
    if branch is not None:
        attempt, where = branch
        told = f"{attempt.misconception.explanation} Here that is so {where}."
        return Finding(replace(attempt.misconception, explanation=told))
    layers = search.layers()
    if layers is not None:
        attempt, over = layers
        return Finding(attempt.misconception, over, search.mended(attempt))
    pair = search.pair() if search.worth_trying() else None
    if pair is not None:
        first, second = sorted(pair, key=lambda a: -search.damage(a))
        return Finding(first.misconception, f"{second.misconception.name}", second.all_trials())
    plainly = changed_throughout(pairs(trials))  # the right result, and no mistake's
    changed = None if plainly else search.changed()
    if changed is not None:
        attempt, rest = changed
        return Finding(attempt.misconception, f"the result is {rest}", search.mended(attempt))
    with search.resting():
        whole = symptom_of(trials, lambda n: again(seed + n))
    if whole and whole.mistake and whole.sure:
        return Finding(whole.mistake)
    if whole and whole.sure:
        return Finding(symptom=whole.text)
    apart = search.in_different_cases()
    if apart is not None:
        first, second = apart
        return Finding(first.misconception, second.misconception.name, search.mended(first))
    part = search.part() if search.worth_trying() else None
    if part is not None:
        found = symptom_of(search.beside(part), None)
        return Finding(part.misconception, found.text if found else "", search.mended(part))
    if whole and whole.mistake:
        return Finding(whole.mistake)
    return Finding(symptom=whole.text if whole else "")


class Search:
    """A search among the mistakes of an exercise for what an implementation did."""

    def __init__(self, exercise: Exercise, trials: tuple[Trial, ...], seed: int):
        self.exercise = exercise
        self.trials = trials
        self.seed = seed
        self.attempts = mistakes(exercise, seed)
        self.started = time.thread_time()
        self.wrong = [i for i, t in enumerate(trials) if t.stands_out]
        self.right = [i for i, t in enumerate(trials) if not t.stands_out]
        # What tells most first: of the same numbers, as many as possible.
        self.telling = [i for i in self.wrong if tells(trials[i])]
        self.order = [*self.telling, *(i for i in self.wrong if i not in self.telling), *self.right]
        tries = [self.seconds_of(attempt) for attempt in self.attempts[:3]]
        self.seconds = min(max(SECONDS, TRIES * min(tries, default=0.0)), LONGEST)

    def seconds_of(self, attempt: "Attempt") -> float:
        """How long an attempt takes for one case."""
        began = time.thread_time()
        attempt.trial(self.order[0])
        return time.thread_time() - began

    def in_time(self, share: float = 1.0) -> bool:
        """Whether there is time left, of which a search may use a share with those before it."""
        return time.thread_time() < self.started + share * self.seconds

    @contextmanager
    def resting(self) -> Iterator[None]:
        """What is done meanwhile takes none of the search's time."""
        began = time.thread_time()
        yield
        self.started += time.thread_time() - began

    def worth_trying(self) -> bool:
        """Whether anything is known that returns what it returned, or raises what it raised."""
        if any(self.trials[i].outcome.kind != "raised" for i in self.wrong):
            return True
        return any(self.resembles(attempt, self.order[0]) for attempt in self.attempts)

    def exactly(self, attempt: "Attempt") -> bool:
        """Whether an attempt does what the implementation does, in every case."""
        return all(self.agrees(attempt, i) for i in self.order)

    def agrees(self, attempt: "Attempt", i: int) -> bool:
        """Whether both do the same in a case, or both are right."""
        other, trial = attempt.trial(i), self.trials[i]
        if not trial.stands_out:
            return not other.stands_out
        if trial.case.raises is not None and other.outcome.kind == trial.outcome.kind == "raised":
            return other.outcome.error is trial.outcome.error  # in whatever words it refuses
        return same(trial.outcome, other.outcome)

    def single(self) -> "Attempt | None":
        """The mistake that does the same everywhere, of a family that of the right size."""
        for attempt in self.attempts:
            if self.exactly(attempt):
                return attempt
        near = []
        for attempt in self.members():
            if self.exactly(attempt):
                return attempt
            near += [attempt] if self.agrees(attempt, self.order[0]) else []
        self.attempts = (*self.attempts, *near)  # a size that fits may stand beside another mistake
        return None

    def beneath(self) -> "Attempt | None":
        """The mistake in what is returned, of an answer that cannot be called in every case."""
        returned = [i for i in self.order if i in self.wrong and is_value(self.trials[i])]
        if not any(i in self.telling for i in returned):
            return None
        for attempt in self.attempts:
            if all(self.agrees(attempt, i) for i in returned) and self.fits(attempt):
                return attempt
        return None

    def called(self, attempt: "Attempt") -> tuple[Trial, ...]:
        """The trials as they would be if the attempt answered where nothing was returned."""
        return tuple(
            t if is_value(t) else replace(t, outcome=attempt.trial(i).outcome)
            for i, t in enumerate(self.trials)
        )

    def branch(self) -> tuple["Attempt", str] | None:
        """A mistake that does the same in one branch, and in the other nothing is wrong."""
        for where, there in branches(self.trials):
            for attempt in self.attempts:
                if not self.in_time(0.3):
                    return None
                if all(self.agrees(attempt, i) for i in [*self.order_in(there), *there]):
                    return attempt, where
        return None

    def order_in(self, there: list[int]) -> list[int]:
        """Of some cases those that tell most, first."""
        return [i for i in self.order[:4] if i in there]

    def members(self) -> Iterator["Attempt"]:
        """Mistakes of the exercise's families: all that are listed, or the one that fits."""
        for m in self.exercise.misconceptions:
            if m.family is None or not self.in_time():
                continue
            if isinstance(m.family.values, Between):
                yield from self.fitted(m, m.family)
            else:
                yield from members(self.exercise, m, self.seed)

    def fitted(self, m: Misconception, family: Family) -> "Iterator[Attempt]":
        """The members of a family that come nearest to the implementation in one case."""
        plain = [i for i in self.wrong if is_plain(self.trials[i].outcome.value)]
        plain.sort(key=lambda i: i not in self.telling)
        if not plain:
            return
        single = [as_numbers(self.trials[i].outcome.value).dtype != np.float64 for i in plain]
        i = plain[single.index(min(single))]  # in double precision, if there is any
        got = as_numbers(self.trials[i].outcome.value).astype(float)

        def distance(size: float) -> float:
            made = Attempt(self.exercise, m, family.make(size), self.seed).glance(i)
            value = None if made is None else as_numbers(made)
            if value is None or value.shape != got.shape:
                return np.inf
            with np.errstate(all="ignore"):
                apart = np.abs(value.astype(float) - got).max(initial=0.0)
            return float(apart) if np.isfinite(apart) else np.inf

        sign, (low, high) = (
            (-1, [-v for v in family.values]) if family.values.low < 0 else (1, family.values)
        )
        low, high = sorted((np.log(low), np.log(high)))
        for place in nearest(lambda x: distance(sign * float(np.exp(x))), low, high):
            made = family.make(float(sign * np.exp(place)))
            attempt = Attempt(self.exercise, m, made, self.seed)
            if self.agrees(attempt, i):
                yield attempt

    # --- two mistakes ---------------------------------------------------------------------------

    def fits(self, attempt: "Attempt") -> bool:
        """Whether an attempt is right wherever the implementation is."""
        return not any(attempt.trial(i).stands_out for i in self.right)

    def pair(self) -> "tuple[Attempt, Attempt] | None":
        """Two mistakes of one composition that together do the same everywhere.

        Where one hides the other in some case, that other alone does not fit there.
        """
        composed = [a for a in self.likeliest() if a.parts is not None]
        probe, hidden = self.order[0], None
        seen = [a for a in composed if a.trial(probe).stands_out]
        if self.trials[probe].outcome.kind == "raised":  # which one of the two does alone
            seen = [a for a in seen if self.resembles(a, probe)]
        for a, b in product(seen, composed):  # one of the two shows in the first case
            if not self.in_time(0.6):
                break
            both = together(a, b, self.seed)
            if both is None or not self.hints_at(both, probe) or not self.exactly(both):
                continue
            fitting = self.fits(a) + self.fits(b)
            if fitting == 2:
                return a, b
            hidden = hidden or ((a, b) if fitting else None)
        return hidden

    def likeliest(self) -> "list[Attempt]":
        """The attempts, those first that do the same in most of a few small cases."""
        small = sorted(self.wrong, key=lambda i: numbers_in(self.trials[i]))
        small = small[: max(4, len(small) // 2)]
        some = small[:: max(1, len(small) // 4)][:4]
        return sorted(self.attempts, key=lambda a: -sum(self.agrees(a, i) for i in some))

    def hints_at(self, attempt: "Attempt", i: int) -> bool:
        """Whether an attempt returns in one case what the implementation returned."""
        if self.trials[i].outcome.kind != "value":
            return self.agrees(attempt, i)
        value = attempt.glance(i)
        got = self.trials[i].outcome.value
        return value is not None and difference(got, value, brief=True) is None

    def damage(self, attempt: "Attempt") -> int:
        """In how many cases a mistake shows."""
        return sum(t.stands_out for t in attempt.all_trials())

    def in_different_cases(self) -> tuple["Attempt", "Attempt"] | None:
        """Two mistakes of which in every case one does the same and the other does not show."""
        first = self.order[0]
        for a in [a for a in self.attempts if self.agrees(a, first) and self.fits(a)]:
            by_a = {i for i in self.wrong if self.agrees(a, i)}
            left = [i for i in self.order if i in self.wrong and i not in by_a]
            if any(a.trial(i).stands_out for i in left):
                continue
            for b in self.attempts:
                if not self.in_time(0.8):
                    return None
                if not all(self.agrees(b, i) for i in left) or not self.fits(b):
                    continue
                if not any(b.trial(i).stands_out for i in by_a if not self.agrees(b, i)):
                    return (a, b) if 2 * len(by_a) >= len(self.wrong) else (b, a)
        return None

    def layers(self) -> tuple["Attempt", str] | None:
        """A mistake, and over it one that leaves its numbers alone and can be made anywhere.

        The second is told as in any exercise, with the mistake's results for the right ones.
        """
        values = [i for i in self.order if self.trials[i].wrong and is_value(self.trials[i])]
        if digits_alone(self.trials):
            return None
        for attempt in self.attempts if values else ():
            if not self.in_time():
                return None
            there = pairs(self.beside(attempt, values[:1]))
            if not there or not close(there[0]) or not self.fits(attempt):
                continue
            if not any(self.shows(attempt, i) for i in values):
                continue
            raised = [i for i, t in enumerate(attempt.all_trials()) if t.outcome.kind != "value"]
            found = lies_over(self.beside(attempt))
            if found and all(self.agrees(attempt, i) for i in raised):
                return attempt, found.mistake.name
        return None

    def shows(self, attempt: "Attempt", i: int) -> bool:
        """Whether a mistake shows in the result of a case: one in gradients alone does not."""
        trial = attempt.trial(i)
        return trial.outcome.kind != "value" or any(not p.right for p in pairs((trial,)))

    def changed(self) -> tuple["Attempt", str] | None:
        """A mistake whose result, changed in one way throughout, is the implementation's."""
        if len(self.telling) < 2 or len(self.telling) < len(self.wrong) / 2:
            return None
        for attempt in self.attempts:
            if not self.in_time(0.7):
                return None
            first = pairs(self.beside(attempt, self.telling[:1]))
            if not first or not may_be_changed(first[0]) or not self.fits(attempt):
                continue
            shows = sum(self.shows(attempt, i) for i in self.telling)
            there = pairs(self.beside(attempt, self.telling))
            if shows <= len(self.telling) / 2 or len(there) < len(self.telling):
                continue
            words = changed_throughout(there)
            if words:
                return attempt, words
        return None

    # --- a mistake beside something else --------------------------------------------------------

    def part(self) -> "Attempt | None":
        """The mistake that explains most of what is wrong, if that is enough to be sure.

        It must be right wherever the implementation is, and do the same in cases that no other
        mistake shares: numbers that nobody returns by chance, or any outcome of its own.
        """
        best, most = None, 0.0
        for attempt in self.likeliest():
            if not self.in_time():
                break
            if not self.fits(attempt):
                continue
            agreed = [i for i in self.wrong if self.resembles(attempt, i)]
            share = len(agreed) / len(self.wrong)
            if share < ENOUGH or share <= most:
                continue
            surely = [i for i in agreed if self.agrees(attempt, i)]
            told = sum(tells(self.trials[i]) for i in surely)
            if (
                told >= min(2, len(self.telling))  # one may agree by chance
                and (told or self.alone(attempt, surely))
            ) or (share == 1 and self.refuses(attempt)):
                best, most = attempt, share
        return best

    def one_truth(self) -> bool:
        """Whether every call said True, or False: that agrees with many mistakes by chance."""
        values = [t.outcome.value for t in self.trials if not t.outcome.mutated]
        alike = len(values) == len(self.trials) and all(v is values[0] for v in values)
        return alike and type(values[0]) in (bool, np.bool_)

    def resembles(self, attempt: "Attempt", i: int) -> bool:
        """Whether both do the same in a case, or fail with an exception of the same class.

        Of an answer that cannot be used, the message says why: there only the same will do.
        """
        a, b = self.trials[i].outcome, attempt.trial(i).outcome
        alike = a.kind == b.kind == "raised" and a.error is b.error
        return self.agrees(attempt, i) or (alike and not issubclass(a.error, Unusable))

    def alone(self, attempt: "Attempt", agreed: list[int]) -> bool:
        """Whether of all mistakes this one alone does the same in these cases."""
        others = (a for a in self.attempts if a.misconception is not attempt.misconception)
        return bool(agreed) and not any(
            all(self.agrees(other, i) for i in agreed) for other in others
        )

    def refuses(self, attempt: "Attempt") -> bool:
        """Whether all that is wrong are refusals, in words of one's own, that it alone makes."""
        others = (a for a in self.attempts if a.misconception is not attempt.misconception)
        return all(self.trials[i].outcome.error is ValueError for i in self.wrong) and not any(
            self.fits(other) and all(self.resembles(other, i) for i in self.wrong)
            for other in others
        )

    def beside(self, attempt: "Attempt", numbers: list[int] | None = None) -> tuple[Trial, ...]:
        """The trials as if what the attempt does were right."""
        numbers = range(len(self.trials)) if numbers is None else numbers
        return tuple(
            replace(self.trials[i], expected=attempt.trial(i).outcome)
            for i in numbers
            if attempt.trial(i).outcome.kind == "value"
        )

    def mended(self, attempt: "Attempt") -> tuple[Trial, ...]:
        """The trials as they would be without the mistake."""
        return tuple(
            replace(t, outcome=t.expected) if self.agrees(attempt, i) else t
            for i, t in enumerate(self.trials)
        )


class Attempt:
    """What a wrong implementation does on the cases, tried when it is asked for."""

    def __init__(
        self, exercise: Exercise, misconception: Misconception, wrong: Callable, seed: int
    ):
        self.exercise = exercise
        self.misconception = misconception
        self.wrong = wrong
        self.parts = parts_of(wrong)
        self.cases = draw(exercise, seed)
        self.trials: dict[int, Trial] = {}
        self.beside: dict[Attempt, Attempt | None] = {}  # with another mistake

    def trial(self, number: int) -> Trial:
        """The trial on one case."""
        if number not in self.trials:
            criterion, case, expected = self.cases[number]
            outcome = run(self.exercise, self.wrong, case, watched=False)
            trial = Trial(criterion, case, expected, outcome)
            if outcome.kind == "hung":  # another time it may not be
                return trial
            self.trials[number] = trial
        return self.trials[number]

    def glance(self, number: int) -> Any:
        """What is returned in one case, looked up quickly; None for what raises.

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

    def all_trials(self) -> tuple[Trial, ...]:
        return tuple(self.trial(number) for number in range(len(self.cases)))


@lru_cache(maxsize=8)
def mistakes(exercise: Exercise, seed: int) -> tuple[Attempt, ...]:
    """Each misconception, and each other way to make it, with what it does on the cases."""
    return tuple(
        Attempt(exercise, m, wrong, seed)
        for m in exercise.misconceptions
        for wrong in (m.wrong, *m.also)
    )


@lru_cache(maxsize=64)
def members(exercise: Exercise, m: Misconception, seed: int) -> tuple[Attempt, ...]:
    """The members of a misconception's family."""
    return tuple(Attempt(exercise, m, m.family.make(v), seed) for v in m.family.values)


def together(a: Attempt, b: Attempt, seed: int) -> Attempt | None:
    """The attempt that makes two mistakes at once; None where they are one decision."""
    if b not in a.beside:
        compose, chosen = a.parts
        apart = b.parts.compose is compose and not chosen.keys() & b.parts.chosen.keys()
        both = compose(**chosen, **b.parts.chosen) if apart else None
        a.beside[b] = Attempt(a.exercise, a.misconception, both, seed) if apart else None
    return a.beside[b]


def nearest(distance: Callable[[float], float], low: float, high: float) -> list[float]:
    """Where a distance is least: the best of a few places, then ever closer around it.

    Where it is equally small in many places, some of them.
    """
    places = [float(x) for x in np.linspace(low, high, 41)]
    far = [distance(x) for x in places]
    alike = [x for x, d in zip(places, far, strict=True) if d <= min(far) + 1e-12]
    if len(alike) > 1:
        return [alike[0], alike[len(alike) // 2], alike[-1]]
    best, step = alike[0], places[1] - places[0]
    golden = (5**0.5 - 1) / 2
    a, b = best - step, best + step
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = distance(c), distance(d)
    for _ in range(60):
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = distance(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = distance(d)
    return [(a + b) / 2]


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two calls did the same."""
    if a.kind != b.kind or a.mutated != b.mutated:
        return False
    if a.kind == "raised":
        if a.error is not b.error:
            return False
        if a.text.startswith("your module"):  # in our own words, in which sizes say what is wrong
            return a.text == b.text
        both = by_hand(a) and b.decided  # in whatever words
        return both or without_numbers(a.text) == without_numbers(b.text)
    if a.kind == "value":
        if a.value is None or b.value is None:
            return a.value is b.value
        return difference(a.value, b.value, brief=True) is None
    return a.kind == "hung"


def by_hand(outcome: Outcome) -> bool:
    """Whether the student's own code raised the error: its words are nobody else's."""
    if re.search("truth value of an array|Boolean value of Tensor", outcome.text):
        return False  # the condition before a ``raise`` failed
    return bool(re.search(r"\(in the line `.*\b(raise|assert)\b", outcome.text))


def without_numbers(text: str) -> str:
    """An error's message without sizes and without the line that raised it."""
    return re.sub(r"-?\d+", "#", text.split(" (in the line")[0])


def is_value(trial: Trial) -> bool:
    return trial.outcome.kind == "value"


def is_plain(value: object) -> bool:
    """Whether a value is one array of numbers that are not all whole."""
    array = as_numbers(value) if value is not None else None
    return array is not None and array.dtype.kind == "f"


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
