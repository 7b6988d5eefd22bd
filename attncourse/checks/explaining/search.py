"""The search among an exercise's known mistakes, one or two at a time, for what an answer does.

Each question of ``diagnosis`` is a method that answers it for the cases of one draw. A case is
named by its place in the draw, ``i``.
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
    only_precision_wrong,
    symptom_beside_mistake,
    symptom_in_form,
    symptom_over_mistake,
)
from attncourse.checks.explaining.symptoms.pairs import (
    Pair,
    close_in_single_precision,
    number_pairs,
)
from attncourse.checks.explaining.symptoms.transformations import change_of_all, is_changed_result
from attncourse.checks.trying.compare import as_numbers, difference, known_numbers
from attncourse.checks.trying.outcome import Unusable
from attncourse.checks.trying.trials import Trial, count_numbers

N_ALWAYS_TRIED = 8  # of the likeliest mistakes, even if the budget is spent
MIN_SHARE_EXPLAINED = 1 / 3  # of the wrong cases, for a mistake beside another one
# Shares of the budget after which a step of the search begins no further try: earlier steps may
# spend less, so that later ones have something left.
BRANCH_SHARE = 0.3
LAYERS_SHARE = 0.5
VOTES_SHARE = 0.6
PAIRS_SHARE = 0.8  # of two mistakes at once, and of a mistake whose result was changed
TWO_CASES_SHARE = 0.9


class Search:
    """A search among the mistakes of an exercise for one or two that give an answer's results.

    A suspect *agrees* with the answer in a case if both have the same outcome there, or are right.
    A wrong case is *telling* if no two mistakes give its result by chance.
    """

    def __init__(
        self,
        exercise: Exercise,
        trials: tuple[Trial, ...],
        seed: int,
        within: Effort | None = None,
        among: Collection[int] | None = None,
    ):
        """Begin a search in one draw of cases.

        ``trials`` are the answer's on the cases of ``seed``. A search that confirms a claim of
        another one gets its budget, ``within``, and may look only at the cases ``among`` some
        places, where the answer was tried.
        """
        self.exercise = exercise
        self.trials = trials
        self.effort = Effort(exercise, within)
        self.is_confirming = within is not None  # whether it confirms a claim of another search
        self.among = range(len(trials)) if among is None else among
        self.counted_tries: set[tuple[Suspect, int]] = set()
        self.seed = seed
        self.suspects = suspects(exercise, seed)
        self.agreements: dict[tuple[Suspect, int], bool] = {}
        self.changeable_results: dict[tuple, bool] = {}

    @cached_property
    def wrong_cases(self) -> list[int]:
        """Return the places of the wrong cases, those of larger size classes last."""
        return sorted((i for i, t in enumerate(self.trials) if t.stands_out), key=self.size_class)

    @cached_property
    def right_cases(self) -> list[int]:
        """Return the places of the right cases, those of larger size classes last."""
        return sorted(
            (i for i, t in enumerate(self.trials) if not t.stands_out), key=self.size_class
        )

    def size_class(self, i: int) -> int:
        """Return the size class of a case: each step takes about four times as long."""
        return calls_of_case(self.exercise, i).bit_length() // 2

    @cached_property
    def telling_cases(self) -> list[int]:
        """Return the places of the wrong cases whose results no two mistakes share by chance."""
        return [i for i in self.wrong_cases if is_distinctive(self.trials[i])]

    @cached_property
    def cases_in_order(self) -> list[int]:
        """Return the places of all cases: telling ones first, then other wrong ones, then right."""
        return [
            *self.telling_cases,
            *(i for i in self.wrong_cases if i not in self.telling_cases),
            *self.right_cases,
        ]

    def trial(self, suspect: Suspect, i: int) -> Trial:
        """Return a suspect's trial on a case, and count it once for this search.

        It counts even if another search has left it in the cache: else verdicts would depend on
        which answers were judged before.
        """
        if (suspect, i) not in self.counted_tries:
            self.counted_tries.add((suspect, i))
            self.effort.count_tries(i)
        return suspect.trial(i)

    def all_trials(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return a suspect's trials on all cases of the draw."""
        return tuple(self.trial(suspect, i) for i in range(len(self.trials)))

    def worth_trying(self) -> bool:
        """True if the answer returns in a wrong case, or some suspect raises as it does.

        If every wrong case raises, pairs of mistakes are not tried unless a suspect behaves alike
        in the first case: each try of a pair would be for nothing.
        """
        if any(self.trials[i].outcome.kind != "raised" for i in self.wrong_cases):
            return True
        return any(self.resembles(suspect, self.cases_in_order[0]) for suspect in self.suspects)

    def agrees_everywhere(self, suspect: Suspect) -> bool:
        """True if a suspect agrees with the answer in every case that was tried."""
        # To confirm a claim any order will do: most cases agree, and sorting them into right and
        # wrong would work out the right results.
        order = self.among if self.is_confirming else self.cases_in_order
        return all(self.agrees(suspect, i) for i in order)

    def agrees_at_any_size(self, suspect: Suspect) -> bool:
        """True if a suspect, or another size of its family, agrees in every case.

        The size in a family was measured in another draw, and may be more exact in this one.
        """
        if self.agrees_everywhere(suspect):
            return True
        m = suspect.mistake
        if suspect.wrong in (m.wrong, *m.also):  # not of a family
            return False
        return any(self.agrees_everywhere(member) for member in self.fitted_members(m))

    def agrees(self, suspect: Suspect, i: int) -> bool:
        """True if suspect and answer have the same outcome in a case, or are both right; cached."""
        if (suspect, i) not in self.agreements:
            self.effort.count_comparison()
            self.agreements[suspect, i] = self.compare_in_case(suspect, i)
        return self.agreements[suspect, i]

    def compare_in_case(self, suspect: Suspect, i: int) -> bool:
        """True if suspect and answer agree in a case, as ``agrees`` has it; not cached.

        Of an exception that the case asks for the class alone counts.
        """
        suspects_trial, trial = self.trial(suspect, i), self.trials[i]
        if same_behaviour(trial.outcome, suspects_trial.outcome):
            return True
        if not trial.stands_out:
            return not suspects_trial.stands_out
        if (
            trial.case.raises is not None
            and suspects_trial.outcome.kind == trial.outcome.kind == "raised"
        ):
            return suspects_trial.outcome.error is trial.outcome.error  # the message may be any
        return False

    def single(self) -> Iterator[Suspect]:
        """Yield the mistakes that agree with the answer in every case, those of families last.

        Sizes of a family that agree in the first case become suspects for all later steps.
        """
        yield from filter(self.agrees_everywhere, self.suspects)
        family_suspects = []
        for suspect in self.family_suspects():
            if self.agrees_everywhere(suspect):
                yield suspect
            if self.agrees(suspect, self.cases_in_order[0]):
                family_suspects.append(suspect)
        self.suspects = (*self.suspects, *family_suspects)

    def mistake_in_returned(self) -> Suspect | None:
        """Return the mistake in those cases that a wrong signature lets be called, or None."""
        return next((a for a in self.suspects if self.agrees_where_returned(a)), None)

    def agrees_where_returned(self, suspect: Suspect) -> bool:
        """True if a suspect agrees in all wrong cases with a value, and one of these is telling."""
        returned = [
            i for i in self.cases_in_order if i in self.wrong_cases and is_value(self.trials[i])
        ]
        if not any(i in self.telling_cases for i in returned):
            return False
        if not all(self.agrees(suspect, i) for i in returned):
            return False
        return self.fits_right_cases(suspect)

    def trials_if_called(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return the trials with the suspect's outcomes where the answer returned no value."""
        return tuple(
            t if is_value(t) else replace(t, answered=self.trial(suspect, i).outcome)
            for i, t in enumerate(self.trials)
        )

    def mistake_in_branch(self) -> tuple[Suspect, str] | None:
        """Return a mistake that agrees in every case of one branch, and the branch in words.

        Outside of the branch every case is right (see ``case_branches``). None without one.
        """
        for where, places in case_branches(self.trials):
            for suspect in self.suspects:
                if not self.effort.is_left(BRANCH_SHARE):
                    return None
                if all(self.agrees(suspect, i) for i in [*self.order_in(places), *places]):
                    return suspect, where
        return None

    def agrees_in_branch(self, suspect: Suspect, where: str) -> bool:
        """True if a suspect agrees in every case of this branch, and all other cases are right."""
        places = dict(case_branches(self.trials)).get(where)
        return places is not None and all(self.agrees(suspect, i) for i in places)

    def order_in(self, places: list[int]) -> list[int]:
        """Return those of the four most telling cases that are among these places."""
        return [i for i in self.cases_in_order[:4] if i in places]

    def family_suspects(self) -> Iterator[Suspect]:
        """Yield members of the exercise's families: all listed sizes, or those that fit."""
        for m in self.exercise.mistakes:
            if m.family is None or not self.effort.is_left():
                continue
            if isinstance(m.family.values, Between):
                yield from self.fitted_members(m)
            else:
                yield from family_members(self.exercise, m, m.family, self.seed)

    def fitted_members(self, m: Mistake) -> Iterator[Suspect]:
        """Yield the members of a mistake's family whose size, measured in one case, agrees there.

        Nothing for a family that lists its sizes, or if no case can be measured in.
        """
        i, family = self.case_to_measure_in(), m.family
        if i is None or family is None or not isinstance(family.values, Between):
            return

        def member(size: float) -> Suspect:
            """Return the suspect of this size."""
            return Suspect(self.exercise, m, family.make(size), self.seed)

        nearest = nearest_sizes(lambda size: self.distance(member(size), i), family.values)
        yield from (suspect for suspect in map(member, nearest) if self.agrees(suspect, i))

    def case_to_measure_in(self) -> int | None:
        """Return the case in which a size is measured; None if no wrong result is an array.

        Best is one in double precision, with the smallest rounding errors; then a telling one.
        """

        def worst_last(i: int) -> tuple[bool, bool]:
            """Return the key by which the best case comes first."""
            array = known_numbers(self.trials[i].outcome.value)
            return array.dtype != np.float64, i not in self.telling_cases

        plain = [i for i in sorted(self.wrong_cases) if is_plain(self.trials[i].outcome.value)]
        return min(plain, key=worst_last, default=None)

    def distance(self, suspect: Suspect, i: int) -> float:
        """Return the largest difference of a suspect's numbers from the answer's in a case.

        Infinite where it returns no array of the same shape.
        """
        numbers = known_numbers(self.trials[i].outcome.value).astype(float)
        self.effort.count_glance(i)
        result = suspect.glance(i)
        value = None if result is None else as_numbers(result)
        if value is None or value.shape != numbers.shape:
            return np.inf
        with np.errstate(all="ignore"):
            largest = np.abs(value.astype(float) - numbers).max(initial=0.0)
        return float(largest) if np.isfinite(largest) else np.inf

    # --- two mistakes ---------------------------------------------------------------------------

    def fits_right_cases(self, suspect: Suspect) -> bool:
        """True if a suspect is right in all cases in which the answer is right."""
        return not any(self.trial(suspect, i).stands_out for i in self.right_cases)

    def pairs_of_mistakes(self) -> Iterator[tuple[Suspect, Suspect]]:
        """Yield pairs of mistakes of one composition that together agree in every case.

        Last come pairs of which one mistake alone is wrong in a case where the answer is right: the
        other one hides it there.
        """
        composed = [a for a in self.likeliest_first() if a.parts is not None]
        probe = self.cases_in_order[0]
        hidden: list[tuple[Suspect, Suspect]] = []
        showing = [a for a in composed if self.trial(a, probe).stands_out]
        if self.trials[probe].outcome.kind == "raised":  # one of the two raises by itself, too
            showing = [a for a in showing if self.resembles(a, probe)]
        # One of the two shows in the first case. Where it does what the answer does there, the pair
        # is tried first, in a case in which that one alone does not. Where one alone shows and does
        # something else there, so mostly do both: those pairs come last.
        next_cases = {a: self.first_disagreement(a) for a in showing if self.agrees(a, probe)}
        showing_set = set(showing)

        def rank_and_case(pair: tuple[Suspect, Suspect]) -> tuple[int, int]:
            of_pair = [a for a in pair if a in showing_set]  # one or both
            if len(of_pair) == 2:
                return 2, probe
            if of_pair[0] not in next_cases:
                return 3, probe
            return (0 if self.fits_right_cases(of_pair[0]) else 1), next_cases[of_pair[0]]

        for a, b in sorted(
            likely_pairs(showing, composed), key=lambda pair: rank_and_case(pair)[0]
        ):
            if not self.effort.is_left(PAIRS_SHARE):
                break
            combined = combined_suspect(a, b, self.seed)
            case = rank_and_case((a, b))[1]
            if combined is None or not self.seems_to_agree(combined, case):
                continue
            if not self.agrees_everywhere(combined):
                continue
            fitting = self.fits_right_cases(a) + self.fits_right_cases(b)
            if fitting == 2:
                yield a, b
            elif fitting:
                hidden.append((a, b))
        yield from hidden

    def first_disagreement(self, suspect: Suspect) -> int:
        """Return the case that tells most in which a suspect does something else than the answer.

        Where there is none, the case that tells most of all.
        """
        return next(
            (i for i in self.cases_in_order if not self.agrees(suspect, i)), self.cases_in_order[0]
        )

    def has_rival(self, suspect: Suspect, partner: Suspect) -> bool:
        """True if a third mistake beside ``partner`` explains all as well as ``suspect`` does.

        A third one that behaves like the suspect by itself, too, does not count: a scale of 1 and
        no scale are one mistake.
        """
        both_names = {suspect.mistake.name, partner.mistake.name}
        # First the cases that the partner alone does not explain: most third ones fail there.
        order = sorted(self.cases_in_order, key=lambda i: self.agrees(partner, i))
        for third in self.suspects:
            if third.mistake.name in both_names or third.parts is None:
                continue
            combined = combined_suspect(third, partner, self.seed)
            if combined is None or not self.seems_to_agree(combined, order[0]):
                continue
            if not all(self.agrees(combined, i) for i in order):
                continue
            if not all(
                same_behaviour(self.trial(third, i).outcome, self.trial(suspect, i).outcome)
                for i in order
            ):
                return True
        return False

    def likeliest_first(self) -> list[Suspect]:
        """Return the suspects, those first that agree in most of a few small wrong cases.

        The few contain calls with different options, since of two mistakes each may show alone in
        some kind of call.
        """
        size = {
            i: (self.size_class(i), count_numbers(self.trials[i].case)) for i in self.wrong_cases
        }
        by_size = sorted(size, key=size.__getitem__)
        small = by_size[: max(4, len(by_size) // 2)]
        spaced = small[:: max(1, len(small) // 4)]
        kinds: dict[frozenset, list[int]] = {}
        for i in (i for i in by_size if self.size_class(i) <= self.size_class(small[-1]) + 1):
            kinds.setdefault(frozenset(options_of(self.trials[i])), []).append(i)
        usual_kinds = sorted(kinds.values(), key=len, reverse=True)[:3]
        sample = list(dict.fromkeys([small[0], *(of[0] for of in usual_kinds), *spaced]))[:5]
        first_case = self.cases_in_order[0]  # every suspect was tried on it already
        votes = dict.fromkeys(self.suspects, 0)
        for place, i in enumerate(dict.fromkeys([first_case, *sample])):
            # The first two cases are voted on even if the budget is spent.
            if place < 2 or self.effort.is_left(VOTES_SHARE):
                for suspect in self.suspects:
                    votes[suspect] += self.agrees(suspect, i)
        return sorted(self.suspects, key=lambda a: -votes[a])

    def seems_to_agree(self, suspect: Suspect, i: int) -> bool:
        """True if a suspect returns in one case what the answer returned.

        The call has no time limit and no watch, so it is quicker than ``agrees``, which has to
        follow. For an answer without a value there it is ``agrees``.
        """
        if self.trials[i].outcome.kind != "value":
            return self.agrees(suspect, i)
        self.effort.count_glance(i)
        value = suspect.glance(i)
        answer = self.trials[i].outcome.value
        return value is not None and difference(answer, value, brief=True) is None

    def count_wrong(self, suspect: Suspect) -> int:
        """Return in how many cases a mistake is wrong by itself."""
        return sum(t.stands_out for t in self.all_trials(suspect))

    def pair_in_different_cases(self) -> tuple[Suspect, Suspect] | None:
        """Return two mistakes that explain all wrong cases between them, the worse one first.

        In each wrong case one agrees with the answer, and the other one does not show. None without
        such a pair.
        """
        first = self.cases_in_order[0]
        likely = [a for a in self.suspects if self.agrees(a, first) and self.fits_right_cases(a)]
        for a in likely:
            for b in self.suspects:
                if not self.effort.is_left(TWO_CASES_SHARE):
                    return None
                if self.explain_apart(a, b):
                    worse, lesser = sorted((a, b), key=self.count_wrong, reverse=True)
                    return worse, lesser
        return None

    def explain_apart(self, a: Suspect, b: Suspect) -> bool:
        """True if in every wrong case one suspect agrees, and the other one, too, or is right."""

        def explains(first: Suspect, second: Suspect, i: int) -> bool:
            """True if the first one agrees in a case, and the second one, too, or is right."""
            if not self.agrees(first, i):
                return False
            return self.agrees(second, i) or not self.trial(second, i).stands_out

        if not self.fits_right_cases(a) or not self.fits_right_cases(b):
            return False
        wrong_cases = [i for i in self.cases_in_order if i in self.wrong_cases]
        return all(explains(a, b, i) or explains(b, a, i) for i in wrong_cases)

    def mistake_and_layer(self) -> tuple[Suspect, str] | None:
        """Return a known mistake and, in words, a second one that any exercise knows.

        The second leaves the numbers nearly as they are: a lost dtype, for example. None without
        such a pair.
        """
        if not only_precision_wrong(self.trials):
            for suspect in self.suspects:
                if not self.effort.is_left(LAYERS_SHARE):
                    return None
                if over := self.layer_over(suspect):
                    return suspect, over
        return None

    def layer_over(self, suspect: Suspect) -> str:
        """Return, in words, a slip of form with which a suspect's results are the answer's; or "".

        For example: the suspect's mistake, and besides the dtype is lost. The numbers have to agree
        to single precision.
        """
        values = [
            i for i in self.cases_in_order if self.trials[i].wrong and is_value(self.trials[i])
        ]
        # The first wrong value is cheap to look at, and most suspects end here.
        pairs = number_pairs(self.trials_beside(suspect, values[:1]))
        if (
            not pairs
            or not close_in_single_precision(pairs[0])
            or not self.fits_right_cases(suspect)
        ):
            return ""
        if not any(self.shows_in_result(suspect, i) and self.is_near(suspect, i) for i in values):
            return ""
        raised = [i for i, t in enumerate(self.all_trials(suspect)) if t.outcome.kind != "value"]
        symptom = symptom_over_mistake(self.trials_beside(suspect))
        return symptom.text if symptom and all(self.agrees(suspect, i) for i in raised) else ""

    def form_alone(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return trials that expect the suspect's results, if the answer misses their form alone.

        Then the numbers are all the suspect's, and dtype or kind of result are not. () otherwise.
        """
        over = tuple(
            replace(t, expected=suspects_trial.outcome)
            if t.case.raises is None and suspects_trial.outcome.kind == "value"
            else replace(t, answered=None)
            for t, suspects_trial in zip(self.trials, self.all_trials(suspect), strict=True)
        )
        return over if symptom_in_form(over) else ()

    def shows_in_result(self, suspect: Suspect, i: int) -> bool:
        """True if a mistake changes the result of a case, and not only its gradients."""
        trial = self.trial(suspect, i)
        return trial.outcome.kind != "value" or any(not p.right for p in number_pairs((trial,)))

    def is_near(self, suspect: Suspect, i: int) -> bool:
        """True if the answer's numbers in a case are a mistake's up to single precision."""
        return all(map(close_in_single_precision, number_pairs(self.trials_beside(suspect, [i]))))

    def changed_mistake(self) -> tuple[Suspect, str] | None:
        """Return a mistake whose results, changed in one way, are the answer's; and that way."""
        for suspect in self.suspects:
            if not self.effort.is_left(PAIRS_SHARE):
                return None
            if words := self.change_of_results(suspect):
                return suspect, words
        return None

    def change_of_results(self, suspect: Suspect) -> str | None:
        """Return the change of a suspect's results that gives the answer's, in words, or None."""
        if len(self.telling_cases) < 2 or len(self.telling_cases) < len(self.wrong_cases) / 2:
            return None
        first = number_pairs(self.trials_beside(suspect, self.telling_cases[:1]))
        if not first or not self.is_changeable(first[0]) or not self.fits_right_cases(suspect):
            return None
        shows = sum(self.shows_in_result(suspect, i) for i in self.telling_cases)
        pairs = number_pairs(self.trials_beside(suspect, self.telling_cases))
        if shows <= len(self.telling_cases) / 2 or len(pairs) < len(self.telling_cases):
            return None
        return change_of_all(pairs)

    def is_changeable(self, p: Pair) -> bool:
        """True if some change of a mistake's result gives what was returned in a case.

        Kept by that result: many mistakes do not show in one case, and have the same one.
        """
        key = p.expected.shape, p.expected.dtype, p.expected.tobytes()
        if key not in self.changeable_results:
            self.changeable_results[key] = is_changed_result(p)
        return self.changeable_results[key]

    # --- a mistake beside something else --------------------------------------------------------

    def partial_mistake(self) -> Suspect | None:
        """Return the mistake that explains most wrong cases, or None if none explains enough.

        See ``share_explained``.
        """
        best, most = None, 0.0
        for place, suspect in enumerate(self.likeliest_first()):
            if place >= N_ALWAYS_TRIED and not self.effort.is_left():
                break
            share = self.share_explained(suspect, most)
            if share > most:
                best, most = suspect, share
        return best

    def share_explained(self, suspect: Suspect, least: float = 0.0) -> float:
        """Return the share of the wrong cases that a mistake explains; 0 where that is no evidence.

        It has to be more than ``least`` and a third, and the mistake has to be right wherever the
        answer is. Some of the cases have to be telling, or shared with no other mistake.
        """
        enough = max(MIN_SHARE_EXPLAINED, least) * len(self.wrong_cases)
        agreed: list[int] = []
        for place, i in enumerate(self.wrong_cases):
            if len(agreed) + len(self.wrong_cases) - place < enough:  # even if all others agree
                return 0.0
            if self.resembles(suspect, i):
                agreed.append(i)
        share = len(agreed) / max(1, len(self.wrong_cases))
        if share < MIN_SHARE_EXPLAINED or share <= least or not self.fits_right_cases(suspect):
            return 0.0
        surely = [i for i in agreed if self.agrees(suspect, i)]
        n_telling = sum(is_distinctive(self.trials[i]) for i in surely)
        # Two telling cases are wanted, if there are two: in one it may agree by chance.
        is_enough = n_telling >= min(2, len(self.telling_cases))
        if is_enough and (n_telling or self.is_only_one(suspect, surely)):
            return share
        return share if share == 1 and self.is_only_refusal(suspect) else 0.0

    def is_refuted(self, suspect: Suspect) -> bool:
        """True if values that the answer returns speak against a mistake.

        They do where the mistake changes a result and the answer returns something else, unless a
        second mistake explains that: one change of all results, or an option of the call with which
        no case agrees. If only gradients differ there, the answer computes another function.
        """
        agreed = [i for i in self.wrong_cases if self.agrees(suspect, i)]
        others = [
            i
            for i in self.wrong_cases
            if i not in agreed and is_value(self.trials[i]) and self.trial(suspect, i).stands_out
        ]
        usual = set().union(*(call_options(self.trials[i]) for i in agreed))
        others = [i for i in others if call_options(self.trials[i]) <= usual]
        if not others:
            return False
        symptom = symptom_beside_mistake(self.trials_beside(suspect))
        is_right_elsewhere = all(p.right for p in number_pairs(self.trials_beside(suspect, others)))
        return is_right_elsewhere or not (symptom and symptom.sure)

    def stands_beside(self, suspect: Suspect, rest: str) -> bool:
        """True if a mistake explains enough and is not refuted, and ``rest``, if any, is left."""
        if not self.share_explained(suspect) or self.is_refuted(suspect):
            return False
        return not rest or self.rest_beside(suspect) == rest

    def rest_beside(self, suspect: Suspect) -> str:
        """Return in words what is still wrong beside a mistake; "" where nothing can be said.

        If the mistake is that something is not refused, other missing refusals are part of it.
        """
        symptom = symptom_beside_mistake(self.trials_beside(suspect))
        return symptom.text if symptom and not self.refuses_less(suspect) else ""

    def refuses_less(self, suspect: Suspect) -> bool:
        """True if all wrong cases ask for an exception, in criteria in which the mistake shows."""
        affected_trials = [
            self.trials[i] for i in self.wrong_cases if self.trial(suspect, i).stands_out
        ]
        criteria = {t.criterion.name for t in affected_trials}
        return all(
            self.trials[i].case.raises is not None and self.trials[i].criterion.name in criteria
            for i in self.wrong_cases
        )

    def is_one_truth_value(self) -> bool:
        """True if every call returned the same truth value, and changed no argument."""
        values = [t.outcome.value for t in self.trials if not t.outcome.mutated]
        is_one_value = len(values) == len(self.trials) and all(v is values[0] for v in values)
        return is_one_value and type(values[0]) in (bool, np.bool_)

    def resembles(self, suspect: Suspect, i: int) -> bool:
        """True if suspect and answer agree in a case, or raise exceptions of one class.

        An ``Unusable`` has to agree, since its message says what is wrong.
        """
        if self.agrees(suspect, i):
            return True
        a, b = self.trials[i].outcome, self.trial(suspect, i).outcome
        if a.kind != "raised" or b.kind != "raised" or a.error is not b.error:
            return False
        return a.error is not None and not issubclass(a.error, Unusable)

    def is_only_one(self, suspect: Suspect, agreed: list[int]) -> bool:
        """True if no other mistake agrees in all of these cases; False for no cases."""
        others = (a for a in self.suspects if a.mistake is not suspect.mistake)
        return bool(agreed) and not any(
            all(self.agrees(rival, i) for i in agreed) for rival in others
        )

    def is_only_refusal(self, suspect: Suspect) -> bool:
        """True if all wrong cases raise ``ValueError``, as of all mistakes only this one does."""
        others = (a for a in self.suspects if a.mistake is not suspect.mistake)
        if not all(self.trials[i].outcome.error is ValueError for i in self.wrong_cases):
            return False
        return not any(
            self.fits_right_cases(rival) and all(self.resembles(rival, i) for i in self.wrong_cases)
            for rival in others
        )

    def trials_beside(
        self, suspect: Suspect, numbers: list[int] | None = None
    ) -> tuple[Trial, ...]:
        """Return the trials, of all cases or of some, with the suspect's values as the right ones.

        Cases in which the suspect returns no value are left out.
        """
        numbers = list(range(len(self.trials))) if numbers is None else numbers
        return tuple(
            replace(self.trials[i], expected=self.trial(suspect, i).outcome)
            for i in numbers
            if self.trial(suspect, i).outcome.kind == "value"
        )

    def mended_trials(self, suspect: Suspect) -> tuple[Trial, ...]:
        """Return the trials as they would be without the mistake: right wherever it agrees."""
        is_cause_of_all = self.refuses_less(suspect)
        return tuple(
            replace(t, answered=None) if is_cause_of_all or self.agrees(suspect, i) else t
            for i, t in enumerate(self.trials)
        )


def likely_pairs(
    showing: list[Suspect], likeliest: list[Suspect]
) -> Iterator[tuple[Suspect, Suspect]]:
    """Yield each pair of one in ``showing`` and one of ``likeliest`` once, likely pairs first.

    Likely: the product of the two places in ``likeliest`` is small. ``showing`` is a part of it; a
    suspect is paired with itself, too.
    """
    rank = {suspect: place + 1 for place, suspect in enumerate(likeliest)}
    rows, tried = [product([a], likeliest) for a in showing], set()
    for pair in merge(*rows, key=lambda pair: rank[pair[0]] * rank[pair[1]]):
        if (both := frozenset(pair)) not in tried:
            tried.add(both)
            yield pair


def call_options(trial: Trial) -> set:
    """Return a call's options, and how many arguments it gives by position."""
    return options_of(trial) | {len(trial.case.args)}


def is_value(trial: Trial) -> bool:
    """True if a call returned a value."""
    return trial.outcome.kind == "value"


def is_plain(value: object) -> bool:
    """True if a value is one array of floating-point numbers."""
    array = as_numbers(value) if value is not None else None
    return array is not None and array.dtype.kind == "f"


def is_distinctive(trial: Trial) -> bool:
    """True if a trial returned a wrong value that two functions hardly share by chance.

    It has more than two different numbers, or two in an array of at least 12.
    """
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
