"""Which of the usual mistakes an implementation makes, judged by its results.

A mistake is named if its wrong implementation gives the results that the answer gave: in every
case, or in enough of them if a second mistake changes the others. Mistakes of one composition are
also tried two at a time. An answer that none explains gets a symptom (see ``symptoms``), or
nothing.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from attncourse.checks.exercise import Exercise, Mistake
from attncourse.checks.explaining.defaults import SHARED_DEFAULT
from attncourse.checks.explaining.search import Search
from attncourse.checks.explaining.signatures import wrong_signature
from attncourse.checks.explaining.suspects import Suspect, combined_suspect
from attncourse.checks.explaining.symptoms.calls import constant_results, varying_results
from attncourse.checks.explaining.symptoms.exceptions import unknown_name
from attncourse.checks.explaining.symptoms.looks import first_symptom, symptom_in_form
from attncourse.checks.explaining.symptoms.nearly_right import PRECISION_INSIDE
from attncourse.checks.explaining.symptoms.pairs import number_pairs
from attncourse.checks.explaining.symptoms.symptom import Symptom
from attncourse.checks.explaining.symptoms.transformations import change_of_all
from attncourse.checks.trying.outcome import is_unwritten
from attncourse.checks.trying.trials import N_FURTHER_DRAWS, Trial, constant_number


@dataclass(frozen=True)
class Finding:
    """The result of a diagnosis: a mistake, or else a symptom, or neither.

    ``rest`` says what is still wrong once the mistake is mended, and ``mended`` are the trials as
    they would be then. ``all`` says that nothing else is wrong. If two known mistakes are all that
    is wrong, ``alone`` holds the trials with each of them by itself; the second may be the form in
    which the numbers come. ``in_form`` says that all numbers are right and only their form is not:
    their dtype or shape, say. ``in_branch`` says that the mistake is made in one branch only. If
    ``shown_by`` holds trials, the example is one of them.
    """

    mistake: Mistake | None = None
    rest: str = ""
    mended: tuple[Trial, ...] = ()
    symptom: str = ""
    all: bool = False
    alone: tuple[tuple[Trial, ...], ...] = ()
    in_form: bool = False
    in_branch: bool = False
    shown_by: tuple[Trial, ...] = ()


class Answer(Protocol):
    """What a diagnosis may ask of an implementation besides its results on the cases."""

    may_run_again: bool  # every call came back in time

    def run_again(self, seed: int, among: Collection[int] | None = None) -> tuple[Trial, ...]:
        """Return the trials on the cases of a seed, or only on those ``among`` these places."""

    def default_mistake(self, trials: tuple[Trial, ...]) -> Mistake | None:
        """Return the mistake of a wrong default, or of one that calls share; None without one."""

    def repaired_place(self) -> Mistake | None:
        """Return the mistake that names the place where one change mends everything, or None."""

    def ignored_symptom(self) -> str:
        """Return the symptom that other numbers in some arguments change nothing, or ""."""


def diagnose(
    exercise: Exercise,
    trials: tuple[Trial, ...],
    seed: int,
    answer: Answer,
    before_search: Callable[[], None] | None = None,
    known_only: bool = False,
) -> Finding:
    """Return what the implementation did wrong; an empty finding if nothing is found.

    ``trials`` are its results on the cases of ``seed``.

    One mistake that the exercise knows, or two together, are looked for first, since they change
    the points. Then ``before_search`` is called, and everything else is looked for, unless
    ``known_only``. A finding has to hold in fresh draws of all cases, too. An answer that hung is
    not called again, and its first claim is the finding. Nothing is found once the budget is spent.
    """
    if all(is_unwritten(t.outcome) for t in trials if t.stands_out):
        return Finding()  # not written yet
    search = Search(exercise, trials, seed)
    draws: dict[tuple[int, bool], Search] = {}

    def further_draws(among: Collection[int] | None) -> Iterator[Search]:
        """Yield a search in each further draw; each is made once, when a claim first needs it.

        In the first of them all cases are tried, in the others those ``among`` these places: a case
        that was right by chance may be wrong in another draw.
        """
        for draw_seed in range(seed + 1, seed + 1 + N_FURTHER_DRAWS if answer.may_run_again else 0):
            places_tried = None if draw_seed == seed + 1 else among
            if (key := (draw_seed, places_tried is None)) not in draws:
                new_trials = answer.run_again(draw_seed, places_tried)
                draws[key] = Search(exercise, new_trials, draw_seed, search.effort, places_tried)
                places = range(len(trials)) if places_tried is None else places_tried
                for place in places:
                    draws[key].effort.count_tries(place, 2)  # by the answer, and by the reference
            yield draws[key]

    def first_finding(claims: Iterator[Claim]) -> Finding | None:
        """Return the finding of the first claim that holds in all further draws.

        An empty finding if the budget is spent before, None if no claim holds.
        """
        for claim in claims:
            if all(claim.holds(draw) for draw in further_draws(claim.among)):
                return claim.finding
            if search.effort.is_over():
                return Finding()
        return None

    finding = first_finding(known_claims(search, answer))
    if finding is None and not known_only:
        if before_search:
            before_search()
        finding = first_finding(further_claims(search, answer))
    return finding or Finding()


@dataclass(frozen=True)
class Claim:
    """A finding that may be reported, and the ``test`` that it has to pass in every draw of cases.

    The test is a function of a search and of the ``suspects`` that the claim is about, on its
    cases. ``among`` are the places that it needs: in the second and later further draws only these
    cases are tried; None for all.
    """

    finding: Finding
    test: Callable[..., bool]
    suspects: tuple[Suspect, ...] = ()
    among: Collection[int] | None = None

    def holds(self, search: Search) -> bool:
        """True if the claim passes its test in the draw of a search."""
        return self.test(search, *(suspect.on_seed(search.seed) for suspect in self.suspects))


def known_claims(search: Search, answer: Answer) -> Iterator[Claim]:
    """Yield the claims that one or two known mistakes are all that is wrong, and what goes first.

    The first claim that holds in every draw is the finding, and none after it is looked for. So
    each step, here and in ``further_claims``, stands before those that would explain less of the
    same answer, or that would hold for it by chance.
    """
    # A name that is not defined: what else is wrong shows only once that is mended.
    if missing := unknown_name(search.trials):
        finding = Finding(missing.mistake, all=missing.all)
        yield Claim(finding, lambda s: unknown_name(s.trials) == missing)
    # One known mistake that gives the same in every case: nothing is left to explain.
    for suspect in search.single():
        yield Claim(
            Finding(suspect.mistake, all=True),
            Search.agrees_at_any_size,
            (suspect,),
            search.wrong_cases,
        )
    trials = search.trials
    # An answer that always gives True agrees with many mistakes by chance: no evidence below.
    if search.is_one_truth_value():
        text = f"the answer is {trials[0].outcome.value}, whatever comes in"
        yield Claim(Finding(symptom=text), Search.is_one_truth_value)
        return
    # Calls that the signature refuses have no results, which all steps below compare.
    if signature := wrong_signature(search.exercise, trials):
        if beneath := search.mistake_in_returned():
            finding = Finding(signature, beneath.mistake.name, search.trials_if_called(beneath))
            yield Claim(finding, Search.agrees_where_returned, (beneath,))
        yield Claim(Finding(signature), lambda s: bool(wrong_signature(s.exercise, s.trials)))
        return
    # Proved by handing the right default over: "a mistake in one branch" would say less.
    if default := answer.default_mistake(trials):
        finding = Finding(default, all=default.name == SHARED_DEFAULT)
        yield Claim(finding, lambda s: answer.default_mistake(s.trials) == default)
    # One number for every input agrees with pairs of mistakes by chance.
    if constant_number(trials) is not None:
        return
    # Still one known mistake and nothing else: before two, which explain the same with more.
    if branch := search.mistake_in_branch():
        suspect, where = branch
        text = f"{suspect.mistake.explanation} Here that is so {where}."
        mistake = replace(suspect.mistake, explanation=text)
        finding = Finding(mistake, all=True, in_branch=True)
        yield Claim(finding, lambda s, a: s.agrees_in_branch(a, where), (suspect,))
    # A second mistake that any exercise knows is surer than one of this exercise, and cheaper:
    # every mistake is tried once here, and with every other below.
    yield from claims_of_mistake_and_layer(search)
    # Two known mistakes explain every case: before a mistake and a change of its result, since the
    # second has a name here and only a description there.
    if search.worth_trying():
        yield from claims_of_two_mistakes(search)
    # Numbers that are all right, in another form: that changes the points, too.
    if symptom := symptom_in_form(trials):
        finding = Finding(symptom.mistake, all=True, in_form=True)
        yield Claim(finding, lambda s: symptom_in_form(s.trials) == symptom)


def claims_of_mistake_and_layer(search: Search) -> Iterator[Claim]:
    """Yield the claim that a known mistake lies under one that any exercise knows, if it does."""
    layers = search.mistake_and_layer()
    if layers is None:
        return
    suspect, over = layers
    finding = Finding(suspect.mistake, over, search.mended_trials(suspect))
    # A form costs as much as in an answer whose numbers are right, and the mistake is another.
    if form := search.form_alone(suspect):
        finding = replace(finding, alone=(search.all_trials(suspect), form))
        if over != PRECISION_INSIDE:  # how the right numbers would be rounded is not known
            finding = replace(finding, mended=form)
    yield Claim(finding, lambda s, a: s.layer_over(a) == over, (suspect,))


def claims_of_two_mistakes(search: Search) -> Iterator[Claim]:
    """Yield the claims that two known mistakes are all that is wrong.

    The finding names the one that is wrong in more cases, and the other one as its rest. A mistake
    that a third one could replace is not named; if that is so of both, there is no claim.
    """
    for pair in search.pairs_of_mistakes():
        first, second = sorted(pair, key=lambda a: -search.count_wrong(a))
        if search.has_rival(first, second):
            if search.has_rival(second, first):
                continue  # each of the two could be another mistake as well
            first, second = second, first
        finding = Finding(first.mistake, mended=search.all_trials(second))
        if not search.has_rival(second, first):
            alone = search.all_trials(first), search.all_trials(second)
            finding = replace(finding, rest=second.mistake.name, alone=alone)
        if combined := combined_suspect(*pair, search.seed):
            yield Claim(finding, Search.agrees_everywhere, (combined,), search.wrong_cases)


def further_claims(search: Search, answer: Answer) -> Iterator[Claim]:
    """Yield the claims about an answer of which no known mistakes explain every case."""
    trials = search.trials
    if search.is_one_truth_value() or wrong_signature(search.exercise, trials):
        return  # ``known_claims`` has made the only claims about these
    number = constant_number(trials)
    if number is None:
        yield from changed_mistake_claims(search)
    # From here on no known mistake explains everything. What leaves no doubt of a mistake comes
    # before the search of the code, which takes long and finds where, not what.
    symptom = first_symptom(trials)
    if symptom and symptom.sure and symptom.mistake:
        yield symptom_claim(symptom)
    # One change of the code that makes everything right: a place says more than any description of
    # the result, so it comes before all that follow.
    if place := answer.repaired_place():
        yield from place_claims(place, symptom)
        return
    # A description that fits every case, before mistakes that fit some each.
    if symptom and symptom.sure:
        yield symptom_claim(symptom)
    if number is not None:
        text = f"every number that comes back is {number:g}, whatever comes in"
        yield Claim(Finding(symptom=text), lambda s: constant_number(s.trials) == number)
        return
    yield from partial_claims(search, symptom)
    # What takes further calls of the answer, and tells least: chance, and inputs that do not count.
    if answer.may_run_again:
        yield from repeated_call_claims(search, answer)


def changed_mistake_claims(search: Search) -> Iterator[Claim]:
    """Yield the claim of a mistake whose result was changed in one way throughout.

    None if the right result, changed in one way, is what came: that is a simpler explanation.
    """
    if change_of_all(number_pairs(search.trials)):
        return
    if changed := search.changed_mistake():
        suspect, how = changed
        finding = Finding(suspect.mistake, f"the result is {how}", search.mended_trials(suspect))
        yield Claim(finding, lambda s, a: s.change_of_results(a) == how, (suspect,))


def symptom_claim(symptom: Symptom) -> Claim:
    """Return the claim of a symptom; it holds if it is the first one in every draw."""
    text = "" if symptom.mistake else symptom.text
    is_all = bool(symptom.mistake) and symptom.all
    finding = Finding(symptom.mistake, symptom=text, all=is_all, shown_by=symptom.shown_by)
    return Claim(finding, first_symptom_test(symptom))


def first_symptom_test(symptom: Symptom) -> Callable[[Search], bool]:
    """Return the test that a search's first symptom is this one, in the same words."""

    def is_first_symptom(search: Search) -> bool:
        """True if the first symptom of a search's trials has the same text."""
        first = first_symptom(search.trials)
        return first is not None and first.text == symptom.text

    return is_first_symptom


def place_claims(place: Mistake, symptom: Symptom | None) -> Iterator[Claim]:
    """Yield the claims of a place in the code: with a symptom of the result first, then without.

    The place needs no test: the search for it has tried the mended answer on fresh cases.
    """
    if symptom and symptom.of_result:
        end = "" if symptom.text.endswith("?") else "."
        text = f"{symptom.text[:1].upper()}{symptom.text[1:]}{end} {place.explanation}"
        finding = Finding(replace(place, explanation=text), all=True)
        yield Claim(finding, first_symptom_test(symptom))
    yield Claim(Finding(place, all=True), lambda s: True)


def partial_claims(search: Search, symptom: Symptom | None) -> Iterator[Claim]:
    """Yield the claims of mistakes that explain some cases, and of a symptom that fits some."""
    # Two mistakes that explain every case, some by one and some by the other, come first.
    if pair_apart := search.pair_in_different_cases():
        first, second = pair_apart
        finding = Finding(first.mistake, second.mistake.name, search.mended_trials(first))
        yield Claim(finding, Search.explain_apart, pair_apart)
    # One that explains enough, unless what is left speaks against it: a cause comes before the
    # looks of the result.
    part = search.worth_trying() and search.partial_mistake()
    if part and not search.is_refuted(part):
        for rest in dict.fromkeys((search.rest_beside(part), "")):
            finding = Finding(part.mistake, rest, search.mended_trials(part))
            yield Claim(finding, lambda s, a, rest=rest: s.stands_beside(a, rest), (part,))
    # A description that fits some cases.
    if symptom and not symptom.sure:
        yield symptom_claim(symptom)
    # The mistake that was refuted is told as a likeness only.
    if part:
        mistake = part.mistake
        words = f"“{mistake.name}. {mistake.explanation.removesuffix('.')}”"
        text = f"where it is wrong, it often does what this mistake does: {words}"
        yield Claim(Finding(symptom=text), lambda s, a: s.share_explained(a) > 0, (part,))


def repeated_call_claims(search: Search, answer: Answer) -> Iterator[Claim]:
    """Yield the claims that results change by chance, or do not depend on some arguments."""
    trials = search.trials
    if text := varying_results(trials, answer.run_again(search.seed)):
        yield Claim(Finding(symptom=text), lambda s: True)
    if text := constant_results(trials, answer.run_again(search.seed + 1)):
        yield Claim(Finding(symptom=text), lambda s: constant_results(trials, s.trials) == text)
    if text := answer.ignored_symptom():
        yield Claim(Finding(symptom=text), lambda s: True)
