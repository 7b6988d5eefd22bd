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
from typing import Any, Protocol

import numpy as np

from attncourse.checks.exercise import (
    Between,
    Exercise,
    Family,
    Misconception,
    parts_of,
)
from attncourse.checks.explaining.options import branches, options_of
from attncourse.checks.explaining.signatures import other_signature
from attncourse.checks.explaining.symptoms import (
    by_lot,
    changed_throughout,
    close,
    digits_alone,
    first_that_holds,
    lies_over,
    may_be_changed,
    pairs,
    unmoved,
)
from attncourse.checks.trying.compare import as_numbers, difference
from attncourse.checks.trying.outcome import Outcome, Unusable, copy_of, is_unwritten, quiet, run
from attncourse.checks.trying.trials import FRESH, Trial, draw, numbers_in

SECONDS = 1.0  # of processor time for what takes many tries
LONGEST = 2.4  # for all, fresh draws and changes of the code included: then what is known is said
FIRST = 8  # of the likeliest mistakes, which are tried however long that takes
ENOUGH = 1 / 3  # of the cases that stand out, for a mistake beside another one


@dataclass(frozen=True)
class Finding:
    """What a diagnosis found: a mistake, or else a symptom, or nothing.

    ``rest`` is what is still wrong once the mistake is mended, and ``mended`` are the trials as
    they would be then. Nothing is wrong then where the mistake is ``all`` that there is.
    """

    mistake: Misconception | None = None
    rest: str = ""
    mended: tuple[Trial, ...] = ()
    symptom: str = ""
    all: bool = False


class Answer(Protocol):
    """What may be asked of the implementation besides what it made of the cases."""

    ended: bool  # every call came back, so that it may be called again

    def again(self, seed: int) -> tuple[Trial, ...]:
        """The trials on the cases of another seed."""

    def default(self, trials: tuple[Trial, ...]) -> Misconception | None:
        """A default that is another one than the exercise's."""

    def place(self) -> Misconception | None:
        """The place in its code where one change makes everything right."""

    def ignored(self) -> str:
        """The symptom that the result does not depend on what it should depend on, or ""."""


def diagnose(exercise: Exercise, trials: tuple[Trial, ...], seed: int, answer: Answer) -> Finding:
    """What the implementation did wrong; ``trials`` are what it made of the cases of ``seed``.

    What is told holds in fresh draws of all cases as well: in one at least, and in as many more as
    there is time for. What hangs is not called again.
    """
    if all(is_unwritten(t.outcome) for t in trials if t.stands_out):
        return Finding()  # not written yet
    draws: list[Search] = []

    def fresh() -> Iterator[Search]:
        for number in range(FRESH if answer.ended else 0):
            if number == len(draws):
                if draws and search.is_late():
                    return
                other = seed + 1 + number
                draws.append(Search(exercise, answer.again(other), other))
            yield draws[number]

    search = Search(exercise, trials, seed)
    for claim in claims(search, answer):
        with search.resting():
            if all(claim.holds(other) for other in fresh()):
                return claim.finding
        if search.is_late():
            break
    return Finding()


@dataclass(frozen=True)
class Claim:
    """What may be told, and the ``test`` that it has to pass in every draw.

    The test is a function of a search and of the ``attempts`` that the claim is about.
    """

    finding: Finding
    test: Callable[..., bool]
    attempts: "tuple[Attempt, ...]" = ()

    def holds(self, search: "Search") -> bool:
        return self.test(search, *(attempt.on(search.seed) for attempt in self.attempts))


def claims(search: "Search", answer: Answer) -> Iterator[Claim]:
    """What may be told of an implementation, what explains most first."""
    trials = search.trials
    for mistake in search.single():
        yield Claim(Finding(mistake.misconception, all=True), Search.does, (mistake,))
    if search.one_truth():
        told = f"the answer is {trials[0].outcome.value}, whatever comes in"
        yield Claim(Finding(symptom=told), Search.one_truth)
        return
    if other := other_signature(search.exercise, trials):
        if beneath := search.beneath():
            finding = Finding(other, beneath.misconception.name, search.called(beneath))
            yield Claim(finding, Search.is_beneath, (beneath,))
        yield Claim(Finding(other), lambda s: bool(other_signature(s.exercise, s.trials)))
        return
    if other := answer.default(trials):
        yield Claim(Finding(other), lambda s: answer.default(s.trials) == other)
    if branch := search.branch():
        attempt, where = branch
        told = f"{attempt.misconception.explanation} Here that is so {where}."
        finding = Finding(replace(attempt.misconception, explanation=told), all=True)
        yield Claim(finding, lambda s, a: s.in_branch(a, where), (attempt,))
    if layers := search.layers():
        attempt, over = layers
        finding = Finding(attempt.misconception, over, search.mended(attempt))
        yield Claim(finding, lambda s, a: s.lies_beneath(a) == over, (attempt,))
    for pair in search.two_at_once() if search.worth_trying() else ():
        first, second = sorted(pair, key=lambda a: -search.damage(a))
        if search.rivals(first, second):
            if search.rivals(second, first):
                continue  # either may be another mistake
            first, second = second, first
        rest = "" if search.rivals(second, first) else second.misconception.name
        finding = Finding(first.misconception, rest, second.all_trials())
        yield Claim(finding, Search.exactly, (together(*pair, search.seed),))
    plainly = changed_throughout(pairs(trials))  # the right result, and no mistake's
    if changed := None if plainly else search.changed():
        attempt, how = changed
        finding = Finding(attempt.misconception, f"the result is {how}", search.mended(attempt))
        yield Claim(finding, lambda s, a: s.changed_in(a) == how, (attempt,))
    with search.resting():
        whole = first_that_holds(trials)
    looks = Finding()
    if whole:
        told = "" if whole.mistake else whole.text
        looks = Finding(whole.mistake, symptom=told, all=bool(whole.mistake) and whole.all)

    def looks_so(s: Search) -> bool:
        found = first_that_holds(s.trials)
        return found is not None and found.text == whole.text

    if whole and whole.sure and whole.mistake:
        yield Claim(looks, looks_so)
    with search.resting():
        place = answer.place()  # mended there, it is right in fresh cases: nothing is left to ask
    if place:
        if whole and whole.text.startswith("the result is"):
            seen = replace(place, explanation=f"T{whole.text[1:]}. {place.explanation}")
            yield Claim(Finding(seen, all=True), looks_so)
        yield Claim(Finding(place, all=True), lambda s: True)
        return
    if whole and whole.sure:
        yield Claim(looks, looks_so)
    if apart := search.in_different_cases():
        first, second = apart
        finding = Finding(first.misconception, second.misconception.name, search.mended(first))
        yield Claim(finding, Search.are_apart, apart)
    part = search.worth_trying() and search.part()
    if part and not search.refuted(part):
        for rest in dict.fromkeys((search.left(part), "")):
            finding = Finding(part.misconception, rest, search.mended(part))
            yield Claim(finding, lambda s, a, rest=rest: s.stands_beside(a, rest), (part,))
    if whole and not whole.sure:
        yield Claim(looks, looks_so)
    if part:
        told = f"where it is wrong, it often does what this mistake does: {part.misconception.name}"
        yield Claim(Finding(symptom=told), lambda s, a: s.explained(a) > 0, (part,))
    if answer.ended:
        if told := by_lot(trials, answer.again(search.seed)):
            yield Claim(Finding(symptom=told), lambda s: True)
        if told := unmoved(trials, answer.again(search.seed + 1)):
            yield Claim(Finding(symptom=told), lambda s: unmoved(trials, s.trials) == told)
        if told := answer.ignored():
            yield Claim(Finding(symptom=told), lambda s: True)


class Search:
    """A search among the mistakes of an exercise for what an implementation did."""

    def __init__(self, exercise: Exercise, trials: tuple[Trial, ...], seed: int):
        self.exercise = exercise
        self.trials = trials
        self.seed = seed
        self.attempts = mistakes(exercise, seed)
        self.compared: dict[tuple[Attempt, int], bool] = {}
        self.began = self.started = time.thread_time()
        self.wrong = [i for i, t in enumerate(trials) if t.stands_out]
        self.right = [i for i, t in enumerate(trials) if not t.stands_out]
        # What tells most first: of the same numbers, as many as possible.
        self.telling = [i for i in self.wrong if tells(trials[i])]
        self.order = [*self.telling, *(i for i in self.wrong if i not in self.telling), *self.right]

    def in_time(self, share: float = 1.0) -> bool:
        """Whether there is time left, of which a search may use a share with those before it."""
        return time.thread_time() < self.started + share * SECONDS and not self.is_late()

    def is_late(self) -> bool:
        """Whether all has taken so long that what is known by now has to do."""
        return time.thread_time() > self.began + LONGEST

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

    def does(self, attempt: "Attempt") -> bool:
        """``exactly``, or where a number was measured, with the number measured here."""
        m = attempt.misconception
        listed = attempt.wrong in (m.wrong, *m.also) or not isinstance(m.family.values, Between)
        return self.exactly(attempt) or (
            not listed and any(self.exactly(other) for other in self.fitted(m, m.family))
        )

    def agrees(self, attempt: "Attempt", i: int) -> bool:
        """Whether both do the same in a case, or both are right."""
        if (attempt, i) not in self.compared:
            self.compared[attempt, i] = self.compare(attempt, i)
        return self.compared[attempt, i]

    def compare(self, attempt: "Attempt", i: int) -> bool:
        other, trial = attempt.trial(i), self.trials[i]
        if not trial.stands_out:
            return not other.stands_out
        if trial.case.raises is not None and other.outcome.kind == trial.outcome.kind == "raised":
            return other.outcome.error is trial.outcome.error  # in whatever words it refuses
        return same(trial.outcome, other.outcome)

    def single(self) -> "Iterator[Attempt]":
        """The mistakes that do the same everywhere, of a family those of the right size.

        Where several do the same in these cases, other cases tell which it is.
        """
        yield from filter(self.exactly, self.attempts)
        near = []
        for attempt in self.members():
            if self.exactly(attempt):
                yield attempt
            near += [attempt] if self.agrees(attempt, self.order[0]) else []
        self.attempts = (*self.attempts, *near)  # a size that fits may stand beside another mistake

    def beneath(self) -> "Attempt | None":
        """The mistake in what is returned, of an answer that cannot be called in every case."""
        return next((a for a in self.attempts if self.is_beneath(a)), None)

    def is_beneath(self, attempt: "Attempt") -> bool:
        """Whether an attempt does what the implementation does where that returns anything."""
        returned = [i for i in self.order if i in self.wrong and is_value(self.trials[i])]
        if not any(i in self.telling for i in returned):
            return False
        return all(self.agrees(attempt, i) for i in returned) and self.fits(attempt)

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

    def in_branch(self, attempt: "Attempt", where: str) -> bool:
        """Whether an attempt does the same in this branch, and nothing is wrong outside it."""
        there = dict(branches(self.trials)).get(where)
        return there is not None and all(self.agrees(attempt, i) for i in there)

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

    def two_at_once(self) -> "Iterator[tuple[Attempt, Attempt]]":
        """Two mistakes of one composition that together do the same everywhere.

        Where one hides the other in some case, that other alone does not fit there.
        """
        composed = [a for a in self.likeliest() if a.parts is not None]
        probe, hidden = self.order[0], []
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
                yield a, b
            elif fitting:
                hidden.append((a, b))
        yield from hidden

    def rivals(self, one: "Attempt", other: "Attempt") -> bool:
        """Whether another mistake in the place of one does the same beside the other.

        One that does the same by itself, too, is no other: a scale of 1 and no scale.
        """
        own = {one.misconception.name, other.misconception.name}
        return any(
            self.hints_at(both, self.order[0])
            and self.exactly(both)
            and not all(same(a.trial(i).outcome, one.trial(i).outcome) for i in self.order)
            for a in self.attempts
            if a.misconception.name not in own
            and a.parts is not None
            and (both := together(a, other, self.seed)) is not None
        )

    def likeliest(self) -> "list[Attempt]":
        """The attempts, those first that do the same in most of a few small cases."""
        small = sorted(self.wrong, key=lambda i: numbers_in(self.trials[i]))
        small = small[: max(4, len(small) // 2)]
        some = small[:: max(1, len(small) // 4)][:4]
        votes = dict.fromkeys(self.attempts, 0)
        for place, i in enumerate(some):
            for attempt in self.attempts if place < 2 or self.in_time(0.4) else ():
                votes[attempt] += self.agrees(attempt, i)
        return sorted(self.attempts, key=lambda a: -votes[a])

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
            for b in self.attempts:
                if not self.in_time(0.8):
                    return None
                if self.are_apart(a, b):
                    return sorted((a, b), key=lambda one: -self.damage(one))
        return None

    def are_apart(self, a: "Attempt", b: "Attempt") -> bool:
        """Whether in every case one does what the implementation does, and the other is right."""
        return (
            self.fits(a)
            and self.fits(b)
            and all(
                any(
                    self.agrees(one, i) and (self.agrees(other, i) or not other.trial(i).stands_out)
                    for one, other in ((a, b), (b, a))
                )
                for i in self.order
                if i in self.wrong
            )
        )

    def layers(self) -> tuple["Attempt", str] | None:
        """A mistake, and over it one that leaves its numbers alone and can be made anywhere.

        The second is told as in any exercise, with the mistake's results for the right ones.
        """
        for attempt in () if digits_alone(self.trials) else self.attempts:
            if not self.in_time():
                return None
            if over := self.lies_beneath(attempt):
                return attempt, over
        return None

    def lies_beneath(self, attempt: "Attempt") -> str:
        """The name of what lies over an attempt, and makes of it what the implementation does."""
        values = [i for i in self.order if self.trials[i].wrong and is_value(self.trials[i])]
        there = pairs(self.beside(attempt, values[:1]))
        if not there or not close(there[0]) or not self.fits(attempt):
            return ""
        if not any(self.shows(attempt, i) for i in values):
            return ""
        raised = [i for i, t in enumerate(attempt.all_trials()) if t.outcome.kind != "value"]
        found = lies_over(self.beside(attempt))
        return found.text if found and all(self.agrees(attempt, i) for i in raised) else ""

    def shows(self, attempt: "Attempt", i: int) -> bool:
        """Whether a mistake shows in the result of a case: one in gradients alone does not."""
        trial = attempt.trial(i)
        return trial.outcome.kind != "value" or any(not p.right for p in pairs((trial,)))

    def changed(self) -> tuple["Attempt", str] | None:
        """A mistake whose result, changed in one way throughout, is the implementation's."""
        for attempt in self.attempts:
            if not self.in_time(0.7):
                return None
            if words := self.changed_in(attempt):
                return attempt, words
        return None

    def changed_in(self, attempt: "Attempt") -> str | None:
        """The one change of an attempt's results that gives the implementation's, in words."""
        if len(self.telling) < 2 or len(self.telling) < len(self.wrong) / 2:
            return None
        first = pairs(self.beside(attempt, self.telling[:1]))
        if not first or not may_be_changed(first[0]) or not self.fits(attempt):
            return None
        shows = sum(self.shows(attempt, i) for i in self.telling)
        there = pairs(self.beside(attempt, self.telling))
        if shows <= len(self.telling) / 2 or len(there) < len(self.telling):
            return None
        return changed_throughout(there)

    # --- a mistake beside something else --------------------------------------------------------

    def part(self) -> "Attempt | None":
        """The mistake that explains most of what is wrong, if that is enough to be sure.

        It must be right wherever the implementation is, and do the same in cases that no other
        mistake shares: numbers that nobody returns by chance, or any outcome of its own.
        """
        best, most = None, 0.0
        for place, attempt in enumerate(self.likeliest()):
            if place >= FIRST and not self.in_time():
                break
            share = self.explained(attempt, most)
            if share > most:
                best, most = attempt, share
        return best

    def explained(self, attempt: "Attempt", least: float = 0.0) -> float:
        """The share of what is wrong that a mistake explains; 0 where that is not enough."""
        enough, agreed = max(ENOUGH, least) * len(self.wrong), []
        for place, i in enumerate(self.wrong):
            if len(agreed) + len(self.wrong) - place < enough:
                return 0.0
            agreed += [i] if self.resembles(attempt, i) else []
        share = len(agreed) / max(1, len(self.wrong))
        if share < ENOUGH or share <= least or not self.fits(attempt):
            return 0.0
        surely = [i for i in agreed if self.agrees(attempt, i)]
        told = sum(tells(self.trials[i]) for i in surely)
        if told >= min(2, len(self.telling)) and (told or self.alone(attempt, surely)):
            return share  # one may agree by chance
        return share if share == 1 and self.refuses(attempt) else 0.0

    def refuted(self, attempt: "Attempt") -> bool:
        """Whether a mistake shows in a result that is another, and nothing says why.

        What says why is one change of all its results, or an option of the call in which no case
        agrees: a second mistake. Other gradients of the same results are those of another function.
        """
        agreed = [i for i in self.wrong if self.agrees(attempt, i)]
        others = [
            i
            for i in self.wrong
            if i not in agreed and is_value(self.trials[i]) and attempt.trial(i).stands_out
        ]
        usual = set().union(*(asked_for(self.trials[i]) for i in agreed))
        others = [i for i in others if asked_for(self.trials[i]) <= usual]
        if not others:
            return False
        found = first_that_holds(self.beside(attempt))
        alike = all(p.right for p in pairs(self.beside(attempt, others)))
        return alike or not (found and found.sure)

    def stands_beside(self, attempt: "Attempt", rest: str) -> bool:
        """Whether a mistake explains enough, with this beside it."""
        if not self.explained(attempt) or self.refuted(attempt):
            return False
        return not rest or self.left(attempt) == rest

    def left(self, attempt: "Attempt") -> str:
        """What the results look like beside a mistake, in words."""
        found = first_that_holds(self.beside(attempt))
        return found.text if found else ""

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
        self.seed = seed
        self.beside: dict[Attempt, Attempt | None] = {}  # with another mistake
        self.elsewhere: dict[int, Attempt] = {seed: self}

    def on(self, seed: int) -> "Attempt":
        """The same on the cases of another seed."""
        if seed not in self.elsewhere:
            other = Attempt(self.exercise, self.misconception, self.wrong, seed)
            self.elsewhere[seed] = other
        return self.elsewhere[seed]

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


def asked_for(trial: Trial) -> set:
    """The options of a call, those included that are given by their places."""
    return options_of(trial) | {len(trial.case.args)}


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
