"""Which of the usual mistakes an implementation makes, told by what it does.

A mistake is named where it does what the implementation did: in every case, or, where a second
mistake spoils some, in enough of them. Mistakes of one composition are also tried two at a time.
What none explains gets a symptom (see ``symptoms``), or nothing.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from attncourse.checks.exercise import Exercise, Mistake
from attncourse.checks.explaining.defaults import SHARED_DEFAULT
from attncourse.checks.explaining.search import Search
from attncourse.checks.explaining.signatures import other_signature
from attncourse.checks.explaining.suspects import Suspect, combined_suspect
from attncourse.checks.explaining.symptoms.calls import constant_results, varying_results
from attncourse.checks.explaining.symptoms.exceptions import unknown_name
from attncourse.checks.explaining.symptoms.looks import first_that_holds, right_but_for
from attncourse.checks.explaining.symptoms.nearly_right import PRECISION_INSIDE
from attncourse.checks.explaining.symptoms.pairs import number_pairs
from attncourse.checks.explaining.symptoms.symptom import Symptom
from attncourse.checks.explaining.symptoms.transformations import changed_throughout
from attncourse.checks.trying.outcome import is_unwritten
from attncourse.checks.trying.trials import N_FURTHER_DRAWS, Trial, one_number


@dataclass(frozen=True)
class Finding:
    """The result of a diagnosis: a mistake, or else a symptom, or neither.

    ``rest`` is what is still wrong once the mistake is mended, and ``mended`` are the trials as
    they would be then. Nothing is wrong then where the mistake is ``all`` that there is. ``alone``
    are the trials with each of two known mistakes by itself, where these are all that is wrong; the
    second may be the form in which right numbers come.
    Of a mistake ``in_form`` every number that came is right but for it, whatever the exercise. One
    ``in_branch`` is made where an option is given, say, and not elsewhere. What is ``shown_by``
    some trials alone has its example among these.
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
    """Further questions to an implementation, besides its results on the cases."""

    ended: bool  # every call came back, so that it may be called again

    def again(self, seed: int, among: Collection[int] | None = None) -> tuple[Trial, ...]:
        """Return the trials on the cases of another seed, or on those at some places."""

    def default(self, trials: tuple[Trial, ...]) -> Mistake | None:
        """Return a default that is another one than the exercise's."""

    def place(self) -> Mistake | None:
        """Return the place in its code where one change makes everything right."""

    def ignored(self) -> str:
        """Return the symptom that other numbers in some argument change nothing, or ""."""


def diagnose(
    exercise: Exercise,
    trials: tuple[Trial, ...],
    seed: int,
    answer: Answer,
    before_search: Callable[[], None] | None = None,
    known_only: bool = False,
) -> Finding:
    """Return what the implementation did wrong.

    ``trials`` are its results on the cases of ``seed``.

    One mistake that the exercise knows, or two together, are looked for first, since points hang on
    them. Then ``before_search`` is called, before anything else is looked for, and with
    ``known_only`` nothing else is. What is told holds in fresh draws of all cases as well. What
    hangs is not called again: of that, the first claim is told as it is. Nothing is told once so
    much was tried that no time is left.
    """
    if all(is_unwritten(t.outcome) for t in trials if t.stands_out):
        return Finding()  # not written yet
    search, draws = Search(exercise, trials, seed), {}

    def fresh(among: Collection[int] | None) -> Iterator[Search]:
        """Yield a search in each further draw, made when the first claim comes to it.

        In the first one all is tried: what was right by chance may be wrong there.
        """
        for other in range(seed + 1, seed + 1 + N_FURTHER_DRAWS if answer.ended else 0):
            places_tried = None if other == seed + 1 else among
            if (key := (other, places_tried is None)) not in draws:
                new_trials = answer.again(other, places_tried)
                draws[key] = Search(exercise, new_trials, other, search.effort, places_tried)
                places = range(len(trials)) if places_tried is None else places_tried
                for place in places:
                    draws[key].effort.tried(place, 2)  # the answer's, and those of ours
            yield draws[key]

    def first_that_holds_in(claims: Iterator[Claim]) -> Finding | None:
        for claim in claims:
            if all(claim.holds(draw) for draw in fresh(claim.among)):
                return claim.finding
            if search.effort.is_over():
                return Finding()
        return None

    finding = first_that_holds_in(known_claims(search, answer))
    if finding is None and not known_only:
        if before_search:
            before_search()
        finding = first_that_holds_in(further_claims(search, answer))
    return finding or Finding()


@dataclass(frozen=True)
class Claim:
    """A finding that may be reported, and the ``test`` that it has to pass in every draw of cases.

    The test is a function of a search and of the ``suspects`` that the claim is about. It looks at
    all cases, or in draws after the first further one only at those ``among`` these places.
    """

    finding: Finding
    test: Callable[..., bool]
    suspects: tuple[Suspect, ...] = ()
    among: Collection[int] | None = None

    def holds(self, search: Search) -> bool:
        """True if the claim passes its test in the draw of a search."""
        return self.test(search, *(suspect.on(search.seed) for suspect in self.suspects))


def known_claims(search: Search, answer: Answer) -> Iterator[Claim]:
    """Yield the claims that one known mistake is all that is wrong, or two, and what comes before.

    What explains most is claimed first. A claim that holds in every draw is told, and none after it
    is looked for. So each step, here and in ``further_claims``, stands before those that would tell
    less of the same answer, or something that only looks true of it.
    """
    # A name that nothing stands for: what is wrong beside it is seen when that is mended.
    if missing := unknown_name(search.trials):
        finding = Finding(missing.mistake, all=missing.all)
        yield Claim(finding, lambda s: unknown_name(s.trials) == missing)
    # One known mistake that does the same in every case: there is nothing left to explain.
    for suspect in search.single():
        yield Claim(Finding(suspect.mistake, all=True), Search.does, (suspect,), search.wrong)
    trials = search.trials
    # One that always says True agrees with many mistakes by chance: no step below is evidence.
    if search.one_truth():
        text = f"the answer is {trials[0].outcome.value}, whatever comes in"
        yield Claim(Finding(symptom=text), Search.one_truth)
        return
    # Calls that never begin say nothing of results, which all steps below go by.
    if other := other_signature(search.exercise, trials):
        if beneath := search.beneath():
            finding = Finding(other, beneath.mistake.name, search.called(beneath))
            yield Claim(finding, Search.is_beneath, (beneath,))
        yield Claim(Finding(other), lambda s: bool(other_signature(s.exercise, s.trials)))
        return
    # Proved by handing the right default over; as a mistake in a branch it would be told less well.
    if other := answer.default(trials):
        finding = Finding(other, all=other.name == SHARED_DEFAULT)
        yield Claim(finding, lambda s: answer.default(s.trials) == other)
    # One number for every input agrees with much by chance, too: two mistakes are no evidence.
    if one_number(trials) is not None:
        return
    # Still one known mistake and nothing else: before two, which explain the same with more.
    if branch := search.branch():
        suspect, where = branch
        text = f"{suspect.mistake.explanation} Here that is so {where}."
        mistake = replace(suspect.mistake, explanation=text)
        finding = Finding(mistake, all=True, in_branch=True)
        yield Claim(finding, lambda s, a: s.in_branch(a, where), (suspect,))
    # A second mistake that any exercise knows is surer than one of this exercise, and cheaper:
    # every mistake is tried once here, and with every other below.
    if layers := search.layers():
        suspect, over = layers
        finding = Finding(suspect.mistake, over, search.mended(suspect))
        # A form costs as much as in an answer whose numbers are right, and the mistake is another.
        if form := search.form_alone(suspect):
            finding = replace(finding, alone=(search.all_trials(suspect), form))
            if over != PRECISION_INSIDE:  # how the right numbers would be rounded is not known
                finding = replace(finding, mended=form)
        yield Claim(finding, lambda s, a: s.lies_beneath(a) == over, (suspect,))
    # Two known mistakes explain every case: before a mistake and a change of its result, since the
    # second has a name here and only a description there.
    if search.worth_trying():
        yield from claims_of_two_mistakes(search)
    # Numbers that are all right, in another form: points hang on that, too.
    if symptom := right_but_for(trials):
        finding = Finding(symptom.mistake, all=True, in_form=True)
        yield Claim(finding, lambda s: right_but_for(s.trials) == symptom)


def claims_of_two_mistakes(search: Search) -> Iterator[Claim]:
    """Yield the claims that two known mistakes are all that is wrong, that of more damage first."""
    for pair in search.two_at_once():
        first, second = sorted(pair, key=lambda a: -search.damage(a))
        if search.rivals(first, second):
            if search.rivals(second, first):
                continue  # either may be another mistake
            first, second = second, first
        finding = Finding(first.mistake, mended=search.all_trials(second))
        if not search.rivals(second, first):
            alone = search.all_trials(first), search.all_trials(second)
            finding = replace(finding, rest=second.mistake.name, alone=alone)
        if both := combined_suspect(*pair, search.seed):
            yield Claim(finding, Search.exactly, (both,), search.wrong)


def further_claims(search: Search, answer: Answer) -> Iterator[Claim]:
    """Yield what may be told where no known mistakes explain every case."""
    trials = search.trials
    if search.one_truth() or other_signature(search.exercise, trials):
        return  # what was claimed of these is all that can be said
    number = one_number(trials)
    if number is None:
        yield from changed_mistake_claims(search)
    # From here on no known mistake explains everything. What leaves no doubt of a mistake comes
    # before the search of the code, which takes long and finds where, not what.
    symptom = first_that_holds(trials)
    if symptom and symptom.sure and symptom.mistake:
        yield symptom_claim(symptom)
    # One change of the code that makes everything right: a place says more than any description of
    # the result, so it comes before all that follow.
    if place := answer.place():
        yield from place_claims(place, symptom)
        return
    # A description that fits every case, before mistakes that fit some each.
    if symptom and symptom.sure:
        yield symptom_claim(symptom)
    if number is not None:
        text = f"every number that comes back is {number:g}, whatever comes in"
        yield Claim(Finding(symptom=text), lambda s: one_number(s.trials) == number)
        return
    yield from partial_claims(search, symptom)
    # What takes further calls of the answer, and tells least: chance, and inputs that do not count.
    if answer.ended:
        yield from repeated_call_claims(search, answer)


def changed_mistake_claims(search: Search) -> Iterator[Claim]:
    """Yield the claim of a mistake whose result was changed in one way.

    Only where the right result, changed in one way, is not what came: that is simpler.
    """
    plainly = changed_throughout(number_pairs(search.trials))
    if changed := None if plainly else search.changed():
        suspect, how = changed
        finding = Finding(suspect.mistake, f"the result is {how}", search.mended(suspect))
        yield Claim(finding, lambda s, a: s.changed_in(a) == how, (suspect,))


def symptom_claim(symptom: Symptom) -> Claim:
    """Return the claim of a symptom, which has to be the first in every draw, in the same words."""
    text = "" if symptom.mistake else symptom.text
    is_all = bool(symptom.mistake) and symptom.all
    finding = Finding(symptom.mistake, symptom=text, all=is_all, shown_by=symptom.shown_by)
    return Claim(finding, shows_first(symptom))


def shows_first(symptom: Symptom) -> Callable[[Search], bool]:
    """Return the test that a draw's first symptom is this one."""

    def test(search: Search) -> bool:
        first = first_that_holds(search.trials)
        return first is not None and first.text == symptom.text

    return test


def place_claims(place: Mistake, symptom: Symptom | None) -> Iterator[Claim]:
    """Yield the claims of a place in the code, first with what the result looks like.

    Mended there, the answer is right in fresh cases: nothing is left to ask of other draws.
    """
    if symptom and symptom.of_result:
        end = "" if symptom.text.endswith("?") else "."
        text = f"{symptom.text[:1].upper()}{symptom.text[1:]}{end} {place.explanation}"
        finding = Finding(replace(place, explanation=text), all=True)
        yield Claim(finding, shows_first(symptom))
    yield Claim(Finding(place, all=True), lambda s: True)


def partial_claims(search: Search, symptom: Symptom | None) -> Iterator[Claim]:
    """Yield the claims of mistakes that explain a part, and of a symptom that fits some cases."""
    # Two mistakes that between them explain every case, before one that explains a part.
    if pair_apart := search.in_different_cases():
        first, second = pair_apart
        finding = Finding(first.mistake, second.mistake.name, search.mended(first))
        yield Claim(finding, Search.are_apart, pair_apart)
    # One that explains enough, unless what is left speaks against it: a cause comes before the
    # looks of the result.
    part = search.worth_trying() and search.part()
    if part and not search.refuted(part):
        for rest in dict.fromkeys((search.left(part), "")):
            finding = Finding(part.mistake, rest, search.mended(part))
            yield Claim(finding, lambda s, a, rest=rest: s.stands_beside(a, rest), (part,))
    # A description that fits some cases.
    if symptom and not symptom.sure:
        yield symptom_claim(symptom)
    # The mistake that was refuted, told as what it is: a likeness.
    if part:
        mistake = part.mistake
        words = f"“{mistake.name}. {mistake.explanation.removesuffix('.')}”"
        text = f"where it is wrong, it often does what this mistake does: {words}"
        yield Claim(Finding(symptom=text), lambda s, a: s.explained(a) > 0, (part,))


def repeated_call_claims(search: Search, answer: Answer) -> Iterator[Claim]:
    """Yield the claims that results change by chance, or do not depend on what comes in."""
    trials = search.trials
    if text := varying_results(trials, answer.again(search.seed)):
        yield Claim(Finding(symptom=text), lambda s: True)
    if text := constant_results(trials, answer.again(search.seed + 1)):
        yield Claim(Finding(symptom=text), lambda s: constant_results(trials, s.trials) == text)
    if text := answer.ignored():
        yield Claim(Finding(symptom=text), lambda s: True)
