"""The search for what an implementation did among an exercise's mistakes, one at a time or two.

Every question that ``diagnosis`` asks is a method that answers it for the cases of one draw.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property
from heapq import merge
from itertools import product

import numpy as np

from attncourse.checks.exercise import Between, Exercise, Mistake
from attncourse.checks.explaining.effort import Effort, calls_of_case
from attncourse.checks.explaining.options import case_branches, options_of
from attncourse.checks.explaining.suspects import (
    Suspect,
    combined_suspect,
    family_members,
    nearest_sizes,
    same_behaviour,
    suspects,
)
from attncourse.checks.explaining.symptoms.looks import (
    left_beside,
    only_precision_wrong,
    right_but_for,
    symptom_over_mistake,
)
from attncourse.checks.explaining.symptoms.pairs import (
    Pair,
    close_in_single_precision,
    number_pairs,
)
from attncourse.checks.explaining.symptoms.transformations import changed_throughout, may_be_changed
from attncourse.checks.trying.compare import as_numbers, difference, known_numbers
from attncourse.checks.trying.outcome import Unusable
from attncourse.checks.trying.trials import Trial, count_numbers

N_ALWAYS_TRIED = 8  # of the likeliest mistakes, which are tried however much has been tried before
MIN_SHARE_EXPLAINED = 1 / 3  # of the cases that stand out, for a mistake beside another one
# Shares of the budget after which a step of the search begins no further try: what comes before
# others may spend less, so that these have something left.
BRANCH_SHARE = 0.3
LAYERS_SHARE = 0.5
VOTES_SHARE = 0.6
PAIRS_SHARE = 0.8  # of two mistakes at once, and of a mistake whose result was changed
TWO_CASES_SHARE = 0.9


class Search:
    """A search among the mistakes of an exercise for what an implementation did."""

    def __init__(
        self,
        exercise: Exercise,
        trials: tuple[Trial, ...],
        seed: int,
        within: Effort | None = None,
        among: Collection[int] | None = None,
    ):
        """Begin a search in one draw of cases.

        ``trials`` are the answer's on the cases of ``seed``. A search that confirms what another
        one found spends of its budget, ``within``, and may look at the cases ``among`` these places
        only.
        """
        self.exercise = exercise
        self.trials = trials
        self.effort = Effort(exercise, within)
        self.confirms = within is not None  # what another search found
        self.among = range(len(trials)) if among is None else among  # what was tried of these
        self.tried: set[tuple[Suspect, int]] = set()
        self.seed = seed
        self.suspects = suspects(exercise, seed)
        self.compared: dict[tuple[Suspect, int], bool] = {}
        self.changes: dict[tuple, bool] = {}

    @cached_property
    def wrong(self) -> list[int]:
        """Return the cases in which something is wrong, those last that take many times as long."""
        return sorted((i for i, t in enumerate(self.trials) if t.stands_out), key=self.size)

    @cached_property
    def right(self) -> list[int]:
        """Return the places of the cases that are right, those that take longest last."""
        return sorted((i for i, t in enumerate(self.trials) if not t.stands_out), key=self.size)

    def size(self, i: int) -> int:
        """Return the size class of a case: each step takes about four times as long."""
        return calls_of_case(self.exercise, i).bit_length() // 2

    @cached_property
    def telling(self) -> list[int]:
        """Return the wrong cases whose results distinguish mistakes best."""
        return [i for i in self.wrong if is_distinctive(self.trials[i])]

    @cached_property
    def order(self) -> list[int]:
        """Return the cases, those first that tell most."""
        return [*self.telling, *(i for i in self.wrong if i not in self.telling), *self.right]

    def trial(self, suspect: Suspect, i: int) -> Trial:
        """Return a suspect's trial on a case, and count it as tried, even where it was cached.

        The verdict must not depend on what others have asked for.
        """
        if (suspect, i) not in self.tried:
            self.tried.add((suspect, i))
            self.effort.tried(i)
        return suspect.trial(i)

    def all_trials(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return a suspect's trials on all cases of the draw."""
        return tuple(self.trial(suspect, i) for i in range(len(self.trials)))

    def worth_trying(self) -> bool:
        """True if some suspect returns or raises what the implementation did in a case."""
        if any(self.trials[i].outcome.kind != "raised" for i in self.wrong):
            return True
        return any(self.resembles(suspect, self.order[0]) for suspect in self.suspects)

    def exactly(self, suspect: Suspect) -> bool:
        """True if a suspect agrees with the implementation in every case that was tried."""
        # Where it mostly does, in any order: that asks for no right results.
        order = self.among if self.confirms else self.order
        return all(self.agrees(suspect, i) for i in order)

    def does(self, suspect: Suspect) -> bool:
        """True if a suspect agrees in every case; what was measured in it may be measured anew.

        Of a mistake of any size the number was measured in one case of another draw.
        """
        if self.exactly(suspect):
            return True
        m = suspect.mistake
        if suspect.wrong in (m.wrong, *m.also):
            return False
        return any(self.exactly(other) for other in self.fitted_members(m))

    def agrees(self, suspect: Suspect, i: int) -> bool:
        """True if suspect and implementation give the same in a case, or both are right."""
        if (suspect, i) not in self.compared:
            self.effort.compared()
            self.compared[suspect, i] = self.compare(suspect, i)
        return self.compared[suspect, i]

    def compare(self, suspect: Suspect, i: int) -> bool:
        """True if suspect and implementation had one outcome in a case, or both are right there.

        Where an exception is asked for, its class alone counts.
        """
        other, trial = self.trial(suspect, i), self.trials[i]
        if same_behaviour(trial.outcome, other.outcome):
            return True
        if not trial.stands_out:
            return not other.stands_out
        if trial.case.raises is not None and other.outcome.kind == trial.outcome.kind == "raised":
            return other.outcome.error is trial.outcome.error  # in whatever words it refuses
        return False

    def single(self) -> Iterator[Suspect]:
        """Yield the mistakes that do the same everywhere, of a family those of the right size.

        Where several do the same in these cases, other cases tell which it is.
        """
        yield from filter(self.exactly, self.suspects)
        near = []
        for suspect in self.members():
            if self.exactly(suspect):
                yield suspect
            if self.agrees(suspect, self.order[0]):
                near.append(suspect)
        self.suspects = (*self.suspects, *near)  # a size that fits may stand beside another mistake

    def beneath(self) -> Suspect | None:
        """Return the mistake in what an answer returns that cannot be called in every case."""
        return next((a for a in self.suspects if self.is_beneath(a)), None)

    def is_beneath(self, suspect: Suspect) -> bool:
        """True if a suspect agrees with the implementation wherever that returns a value."""
        returned = [i for i in self.order if i in self.wrong and is_value(self.trials[i])]
        if not any(i in self.telling for i in returned):
            return False
        return all(self.agrees(suspect, i) for i in returned) and self.fits(suspect)

    def called(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return the trials as they would be if the suspect answered where nothing was returned."""
        return tuple(
            t if is_value(t) else replace(t, answered=self.trial(suspect, i).outcome)
            for i, t in enumerate(self.trials)
        )

    def branch(self) -> tuple[Suspect, str] | None:
        """Return a mistake that does the same in one branch, and in the other nothing is wrong."""
        for where, places in case_branches(self.trials):
            for suspect in self.suspects:
                if not self.effort.is_left(BRANCH_SHARE):
                    return None
                if all(self.agrees(suspect, i) for i in [*self.order_in(places), *places]):
                    return suspect, where
        return None

    def in_branch(self, suspect: Suspect, where: str) -> bool:
        """True if a suspect agrees with the answer in this branch, and all else is right."""
        places = dict(case_branches(self.trials)).get(where)
        return places is not None and all(self.agrees(suspect, i) for i in places)

    def order_in(self, places: list[int]) -> list[int]:
        """Return those of the most telling cases that are among these."""
        return [i for i in self.order[:4] if i in places]

    def members(self) -> Iterator[Suspect]:
        """Yield mistakes of the exercise's families: all that are listed, or the one that fits."""
        for m in self.exercise.mistakes:
            if m.family is None or not self.effort.is_left():
                continue
            if isinstance(m.family.values, Between):
                yield from self.fitted_members(m)
            else:
                yield from family_members(self.exercise, m, m.family, self.seed)

    def fitted_members(self, m: Mistake) -> Iterator[Suspect]:
        """Yield the members of a mistake's family whose size, measured in one case, fits there.

        None of a family that lists its sizes.
        """
        i, family = self.case_to_measure_in(), m.family
        if i is None or family is None or not isinstance(family.values, Between):
            return

        def member(size: float) -> Suspect:
            return Suspect(self.exercise, m, family.make(size), self.seed)

        nearest = nearest_sizes(lambda size: self.distance(member(size), i), family.values)
        yield from (made for made in map(member, nearest) if self.agrees(made, i))

    def case_to_measure_in(self) -> int | None:
        """Return the case in which a size is measured; None if no wrong result is an array.

        In double precision, if there is one, for there least is lost; then what tells most.
        """

        def worst_last(i: int) -> tuple[bool, bool]:
            array = known_numbers(self.trials[i].outcome.value)
            return array.dtype != np.float64, i not in self.telling

        plain = [i for i in sorted(self.wrong) if is_plain(self.trials[i].outcome.value)]
        return min(plain, key=worst_last, default=None)

    def distance(self, suspect: Suspect, i: int) -> float:
        """Return the largest difference of a suspect's numbers from the answer's in a case.

        Infinite where it returns no array of that shape.
        """
        got = known_numbers(self.trials[i].outcome.value).astype(float)
        self.effort.glanced(i)
        made = suspect.glance(i)
        value = None if made is None else as_numbers(made)
        if value is None or value.shape != got.shape:
            return np.inf
        with np.errstate(all="ignore"):
            largest = np.abs(value.astype(float) - got).max(initial=0.0)
        return float(largest) if np.isfinite(largest) else np.inf

    # --- two mistakes ---------------------------------------------------------------------------

    def fits(self, suspect: Suspect) -> bool:
        """True if a suspect is right wherever the implementation is."""
        return not any(self.trial(suspect, i).stands_out for i in self.right)

    def two_at_once(self) -> Iterator[tuple[Suspect, Suspect]]:
        """Yield two mistakes of one composition that together do the same everywhere.

        Where one hides the other in some case, that other alone does not fit there.
        """
        composed = [a for a in self.likeliest() if a.parts is not None]
        probe, hidden = self.order[0], []
        seen = [a for a in composed if self.trial(a, probe).stands_out]
        if self.trials[probe].outcome.kind == "raised":  # which one of the two does alone
            seen = [a for a in seen if self.resembles(a, probe)]
        # One of the two shows in the first case. Where it does what the answer does there, the pair
        # is tried first, in a case in which that one alone does not. Where one alone shows and does
        # something else there, so mostly do both: those pairs come last.
        next_cases = {a: self.first_disagreement(a) for a in seen if self.agrees(a, probe)}
        shown = set(seen)

        def rank_and_case(pair: tuple[Suspect, Suspect]) -> tuple[int, int]:
            showing = [a for a in pair if a in shown]
            if len(showing) == 2:
                return 2, probe
            if showing[0] not in next_cases:
                return 3, probe
            return (0 if self.fits(showing[0]) else 1), next_cases[showing[0]]

        for a, b in sorted(likely_pairs(seen, composed), key=lambda pair: rank_and_case(pair)[0]):
            if not self.effort.is_left(PAIRS_SHARE):
                break
            both = combined_suspect(a, b, self.seed)
            case = rank_and_case((a, b))[1]
            if both is None or not self.hints_at(both, case) or not self.exactly(both):
                continue
            fitting = self.fits(a) + self.fits(b)
            if fitting == 2:
                yield a, b
            elif fitting:
                hidden.append((a, b))
        yield from hidden

    def first_disagreement(self, suspect: Suspect) -> int:
        """Return the case that tells most in which a suspect does something else than the answer.

        Where there is none, the case that tells most of all.
        """
        return next((i for i in self.order if not self.agrees(suspect, i)), self.order[0])

    def rivals(self, suspect: Suspect, partner: Suspect) -> bool:
        """True if a third mistake beside ``partner`` explains all as well as ``suspect`` does.

        One that does the same by itself, too, is no other: a scale of 1 and no scale.
        """
        both_names = {suspect.mistake.name, partner.mistake.name}
        # Those cases first in which the suspect shows beside its partner: there most others fall.
        order = sorted(self.order, key=lambda i: self.agrees(partner, i))
        return any(
            self.hints_at(both, order[0])
            and all(self.agrees(both, i) for i in order)
            and not all(
                same_behaviour(self.trial(a, i).outcome, self.trial(suspect, i).outcome)
                for i in order
            )
            for a in self.suspects
            if a.mistake.name not in both_names
            and a.parts is not None
            and (both := combined_suspect(a, partner, self.seed)) is not None
        )

    def likeliest(self) -> list[Suspect]:
        """Return the suspects, those first that do the same in most of a few small cases.

        Of two mistakes one alone shows in some kind of call: so one of each kind is among them.
        """
        size = {i: (self.size(i), count_numbers(self.trials[i].case)) for i in self.wrong}
        by_size = sorted(size, key=size.__getitem__)
        small = by_size[: max(4, len(by_size) // 2)]
        spaced = small[:: max(1, len(small) // 4)]
        kinds: dict[frozenset, list[int]] = {}
        for i in (i for i in by_size if self.size(i) <= self.size(small[-1]) + 1):
            kinds.setdefault(frozenset(options_of(self.trials[i])), []).append(i)
        usual = sorted(kinds.values(), key=len, reverse=True)[:3]
        few = list(dict.fromkeys([small[0], *(of[0] for of in usual), *spaced]))[:5]
        known = self.order[0]  # every mistake was tried on it
        votes = dict.fromkeys(self.suspects, 0)
        for place, i in enumerate(dict.fromkeys([known, *few])):
            if place < 2 or self.effort.is_left(VOTES_SHARE):
                for suspect in self.suspects:
                    votes[suspect] += self.agrees(suspect, i)
        return sorted(self.suspects, key=lambda a: -votes[a])

    def hints_at(self, suspect: Suspect, i: int) -> bool:
        """True if a suspect returns in one case what the answer returned, by a quick look."""
        if self.trials[i].outcome.kind != "value":
            return self.agrees(suspect, i)
        self.effort.glanced(i)
        value = suspect.glance(i)
        got = self.trials[i].outcome.value
        return value is not None and difference(got, value, brief=True) is None

    def damage(self, suspect: Suspect) -> int:
        """Return in how many cases a mistake shows."""
        return sum(t.stands_out for t in self.all_trials(suspect))

    def in_different_cases(self) -> tuple[Suspect, Suspect] | None:
        """Return two mistakes of which one does the same in each case, where the other hides."""
        first = self.order[0]
        for a in [a for a in self.suspects if self.agrees(a, first) and self.fits(a)]:
            for b in self.suspects:
                if not self.effort.is_left(TWO_CASES_SHARE):
                    return None
                if self.are_apart(a, b):
                    worse, other = sorted((a, b), key=self.damage, reverse=True)
                    return worse, other
        return None

    def are_apart(self, a: Suspect, b: Suspect) -> bool:
        """True if in every case one suspect agrees with the answer and the other is right."""
        return (
            self.fits(a)
            and self.fits(b)
            and all(
                any(
                    self.agrees(first, i)
                    and (self.agrees(second, i) or not self.trial(second, i).stands_out)
                    for first, second in ((a, b), (b, a))
                )
                for i in self.order
                if i in self.wrong
            )
        )

    def layers(self) -> tuple[Suspect, str] | None:
        """Return a mistake, and what can be made over any other: it leaves the numbers alone.

        The second is told as in any exercise, with the mistake's results for the right ones.
        """
        if not only_precision_wrong(self.trials):
            for suspect in self.suspects:
                if not self.effort.is_left(LAYERS_SHARE):
                    return None
                if over := self.lies_beneath(suspect):
                    return suspect, over
        return None

    def lies_beneath(self, suspect: Suspect) -> str:
        """Return the name of what, made over a suspect, gives what the implementation does."""
        values = [i for i in self.order if self.trials[i].wrong and is_value(self.trials[i])]
        pairs = number_pairs(self.beside(suspect, values[:1]))
        if not pairs or not close_in_single_precision(pairs[0]) or not self.fits(suspect):
            return ""
        if not any(self.shows(suspect, i) and self.is_near(suspect, i) for i in values):
            return ""
        raised = [i for i, t in enumerate(self.all_trials(suspect)) if t.outcome.kind != "value"]
        symptom = symptom_over_mistake(self.beside(suspect))
        return symptom.text if symptom and all(self.agrees(suspect, i) for i in raised) else ""

    def form_alone(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return the trials of the form alone that lies over a mistake; none if it is no form.

        What the mistake does stands for what is right, and every number is right but for the form.
        """
        over = tuple(
            replace(t, expected=other.outcome)
            if t.case.raises is None and other.outcome.kind == "value"
            else replace(t, answered=None)
            for t, other in zip(self.trials, self.all_trials(suspect), strict=True)
        )
        return over if right_but_for(over) else ()

    def shows(self, suspect: Suspect, i: int) -> bool:
        """True if a mistake changes the result of a case, not its gradients alone."""
        trial = self.trial(suspect, i)
        return trial.outcome.kind != "value" or any(not p.right for p in number_pairs((trial,)))

    def is_near(self, suspect: Suspect, i: int) -> bool:
        """True if the implementation returns a mistake's numbers in a case, nearly."""
        return all(map(close_in_single_precision, number_pairs(self.beside(suspect, [i]))))

    def changed(self) -> tuple[Suspect, str] | None:
        """Return a mistake whose result, changed in one way throughout, is the implementation's."""
        for suspect in self.suspects:
            if not self.effort.is_left(PAIRS_SHARE):
                return None
            if words := self.changed_in(suspect):
                return suspect, words
        return None

    def changed_in(self, suspect: Suspect) -> str | None:
        """Return, in words, the one change of a suspect's results that gives the answer's."""
        if len(self.telling) < 2 or len(self.telling) < len(self.wrong) / 2:
            return None
        first = number_pairs(self.beside(suspect, self.telling[:1]))
        if not first or not self.changeable(first[0]) or not self.fits(suspect):
            return None
        shows = sum(self.shows(suspect, i) for i in self.telling)
        pairs = number_pairs(self.beside(suspect, self.telling))
        if shows <= len(self.telling) / 2 or len(pairs) < len(self.telling):
            return None
        return changed_throughout(pairs)

    def changeable(self, p: Pair) -> bool:
        """True if some known change of a result gives what was returned in the most telling case.

        In one case many mistakes do not show: what is found of one result holds of them all.
        """
        key = p.want.shape, p.want.dtype, p.want.tobytes()
        if key not in self.changes:
            self.changes[key] = may_be_changed(p)
        return self.changes[key]

    # --- a mistake beside something else --------------------------------------------------------

    def part(self) -> Suspect | None:
        """Return the mistake that explains most of what is wrong, if that is enough to be sure.

        It must be right wherever the implementation is, and do the same in cases that no other
        mistake shares: numbers that nobody returns by chance, or any outcome of its own.
        """
        best, most = None, 0.0
        for place, suspect in enumerate(self.likeliest()):
            if place >= N_ALWAYS_TRIED and not self.effort.is_left():
                break
            share = self.explained(suspect, most)
            if share > most:
                best, most = suspect, share
        return best

    def explained(self, suspect: Suspect, least: float = 0.0) -> float:
        """Return the share of what is wrong that a mistake explains; 0 where that is not enough."""
        enough, agreed = max(MIN_SHARE_EXPLAINED, least) * len(self.wrong), []
        for place, i in enumerate(self.wrong):
            if len(agreed) + len(self.wrong) - place < enough:
                return 0.0
            if self.resembles(suspect, i):
                agreed.append(i)
        share = len(agreed) / max(1, len(self.wrong))
        if share < MIN_SHARE_EXPLAINED or share <= least or not self.fits(suspect):
            return 0.0
        surely = [i for i in agreed if self.agrees(suspect, i)]
        n_telling = sum(is_distinctive(self.trials[i]) for i in surely)
        if n_telling >= min(2, len(self.telling)) and (n_telling or self.alone(suspect, surely)):
            return share  # one may agree by chance
        return share if share == 1 and self.refuses(suspect) else 0.0

    def refuted(self, suspect: Suspect) -> bool:
        """True if what an implementation returns speaks against a mistake.

        The mistake changes a result, the implementation returns something else, and nothing says
        why.

        What says why is one change of all its results, or an option of the call in which no case
        agrees: a second mistake. Other gradients of the same results are those of another function.
        """
        agreed = [i for i in self.wrong if self.agrees(suspect, i)]
        others = [
            i
            for i in self.wrong
            if i not in agreed and is_value(self.trials[i]) and self.trial(suspect, i).stands_out
        ]
        usual = set().union(*(asked_for(self.trials[i]) for i in agreed))
        others = [i for i in others if asked_for(self.trials[i]) <= usual]
        if not others:
            return False
        symptom = left_beside(self.beside(suspect))
        alike = all(p.right for p in number_pairs(self.beside(suspect, others)))
        return alike or not (symptom and symptom.sure)

    def stands_beside(self, suspect: Suspect, rest: str) -> bool:
        """True if a mistake explains enough, with ``rest`` left beside it."""
        if not self.explained(suspect) or self.refuted(suspect):
            return False
        return not rest or self.left(suspect) == rest

    def left(self, suspect: Suspect) -> str:
        """Describe what is still wrong beside a mistake; "" where nothing is.

        Where the mistake is that something is not refused, other refusals are no further mistake.
        """
        symptom = left_beside(self.beside(suspect))
        return symptom.text if symptom and not self.refuses_less(suspect) else ""

    def refuses_less(self, suspect: Suspect) -> bool:
        """True if all that is wrong, in the answer and in the mistake, is a missing refusal."""
        shown = [self.trials[i] for i in self.wrong if self.trial(suspect, i).stands_out]
        criteria = {t.criterion.name for t in shown}
        return all(
            self.trials[i].case.raises is not None and self.trials[i].criterion.name in criteria
            for i in self.wrong
        )

    def one_truth(self) -> bool:
        """True if every call returned the same truth value, which many mistakes do by chance."""
        values = [t.outcome.value for t in self.trials if not t.outcome.mutated]
        alike = len(values) == len(self.trials) and all(v is values[0] for v in values)
        return alike and type(values[0]) in (bool, np.bool_)

    def resembles(self, suspect: Suspect, i: int) -> bool:
        """True if both do the same in a case, or fail with exceptions of one class.

        Of an answer that cannot be used, the message says why: there only the same will do.
        """
        a, b = self.trials[i].outcome, self.trial(suspect, i).outcome
        alike = a.kind == b.kind == "raised" and a.error is b.error
        return self.agrees(suspect, i) or (
            alike and a.error is not None and not issubclass(a.error, Unusable)
        )

    def alone(self, suspect: Suspect, agreed: list[int]) -> bool:
        """True if of all mistakes this one alone does the same in these cases."""
        others = (a for a in self.suspects if a.mistake is not suspect.mistake)
        return bool(agreed) and not any(
            all(self.agrees(other, i) for i in agreed) for other in others
        )

    def refuses(self, suspect: Suspect) -> bool:
        """True if all that is wrong are the student's own refusals, as this mistake alone has."""
        others = (a for a in self.suspects if a.mistake is not suspect.mistake)
        return all(self.trials[i].outcome.error is ValueError for i in self.wrong) and not any(
            self.fits(other) and all(self.resembles(other, i) for i in self.wrong)
            for other in others
        )

    def beside(self, suspect: Suspect, numbers: list[int] | None = None) -> tuple[Trial, ...]:
        """Return the trials as if what the suspect does were right."""
        numbers = list(range(len(self.trials))) if numbers is None else numbers
        return tuple(
            replace(self.trials[i], expected=self.trial(suspect, i).outcome)
            for i in numbers
            if self.trial(suspect, i).outcome.kind == "value"
        )

    def mended(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return the trials as they would be without the mistake."""
        whole = self.refuses_less(suspect)
        return tuple(
            replace(t, answered=None) if whole or self.agrees(suspect, i) else t
            for i, t in enumerate(self.trials)
        )


def likely_pairs(
    seen: list[Suspect], likeliest: list[Suspect]
) -> Iterator[tuple[Suspect, Suspect]]:
    """Yield each of some suspects with each of all, once; those first of which both are likely."""
    rank = {suspect: place + 1 for place, suspect in enumerate(likeliest)}
    rows, tried = [product([a], likeliest) for a in seen], set()
    for pair in merge(*rows, key=lambda pair: rank[pair[0]] * rank[pair[1]]):
        if (both := frozenset(pair)) not in tried:
            tried.add(both)
            yield pair


def asked_for(trial: Trial) -> set:
    """Return the options of a call, those included that are given by their places."""
    return options_of(trial) | {len(trial.case.args)}


def is_value(trial: Trial) -> bool:
    """True if a call returned a value."""
    return trial.outcome.kind == "value"


def is_plain(value: object) -> bool:
    """True if a value is one array of floating-point numbers."""
    array = as_numbers(value) if value is not None else None
    return array is not None and array.dtype.kind == "f"


def is_distinctive(trial: Trial) -> bool:
    """True if an outcome is a wrong value that two different functions hardly share by chance."""
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
