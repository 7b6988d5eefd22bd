"""Symptoms in results: how they, or parts of them, differ from the right ones."""

import re

from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.symptoms.pairs import (
    Pair,
    number_pairs,
    pairs_of_results,
    returned_and_expected,
)
from attncourse.checks.explaining.symptoms.symptom import Symptom, names_in_words, result_is
from attncourse.checks.explaining.symptoms.transformations import transformation
from attncourse.checks.trying.compare import difference
from attncourse.checks.trying.trials import Trial
from attncourse.checks.trying.watch import Unusable


def broken_facts(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that facts about the results are wrong, and nothing else is; or None."""
    wrong = [t for t in trials if t.wrong]
    if not wrong or not all(map(gave_named_results, wrong)):
        return None
    pairs = [(t.outcome.value, t.expected.value) for t in wrong]
    parts = [(f, returned.get(f), expected[f]) for returned, expected in pairs for f in expected]
    broken = dict.fromkeys(
        f for f, returned, expected in parts if difference(returned, expected, brief=True)
    )
    if any(type(expected) is not bool and f in broken for f, _, expected in parts):
        return None
    plain = any(not compares_facts_alone(t) for t in trials if t.case.raises is None)
    rest = "every result is right, but" if plain else "of what is asked"
    return Symptom(f"{rest} this does not hold: {'; '.join(broken)}", sure=True)


def some_facts_broken(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that some facts do not hold, whatever else is wrong; or None."""
    wrong = [t for t in trials if t.wrong and compares_facts_alone(t)]
    pairs = [(t.outcome.value, t.expected.value) for t in wrong]
    broken = dict.fromkeys(
        f for returned, expected in pairs for f in expected if returned.get(f) is not expected[f]
    )
    return Symptom(f"this does not hold: {'; '.join(broken)}", sure=False) if broken else None


def compares_facts_alone(trial: Trial) -> bool:
    """True if a case compares nothing but facts, which are True or False."""
    values = trial.expected.value.values() if gave_named_results(trial) else ()
    return bool(values) and all(type(v) is bool for v in values)


def first_result_right(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that the first of named results is right, some others not; or None."""
    wrong = [t for t in trials if t.wrong]
    if not wrong or not all(map(gave_named_results, wrong)):
        return None
    parts: dict[str, list[Pair]] = {}
    for t in filter(gave_named_results, trials):  # each result may have trials of its own
        for key, expected in t.expected.value.items():
            parts.setdefault(key, []).extend(
                pairs_of_results(t.outcome.value.get(key), expected, t)
            )
    if not all(p.right for p in next(iter(parts.values()))):
        return None
    names = [key for key, pairs in parts.items() if not all(p.right for p in pairs)]
    transformations = {transformation([p for p in parts[key]]) for key in names}
    words = transformations.pop() if len(transformations) == 1 else None
    verb = "is" if len(names) == 1 else "are each"
    how = f"{verb} {words}" if words else f"{verb} wrong"
    right = [key for key in parts if key not in names]
    wrong_names = names_in_words(first_names(names))
    if all(key.startswith("the gradient") for key in [*parts][1:]):
        return Symptom(f"every result is right, but {wrong_names} {how}", True)
    if len(right) > MAX_NAMES:
        return Symptom(f"{wrong_names} {how}, and all else is right", True)
    many = "are" if len(right) > 1 else "is"
    return Symptom(f"{names_in_words(right)} {many} right, but {wrong_names} {how}", True)


def first_names(names: list[str]) -> list[str]:
    """Return a few names as they are; of many the first ones, and how many others there are."""
    if len(names) <= MAX_NAMES:
        return names
    return [*names[: MAX_NAMES - 1], f"{len(names) - MAX_NAMES + 1} others"]


def result_in_tuple(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that wrong results are tuples that begin with the right one; or None."""
    wrong = [t for t in trials if t.wrong]
    pairs = [returned_and_expected(t) for t in wrong if t.outcome.kind == "value"]
    if len(pairs) < 2 or any(
        type(returned) is not tuple or type(expected) is tuple for returned, expected in pairs
    ):
        return None
    if any(
        len(returned) < 2 or difference(returned[0], expected, brief=True)
        for returned, expected in pairs
    ):
        return None
    stopped = [t.outcome.error for t in wrong if t.outcome.kind != "value"]
    if not all(error and issubclass(error, Unusable) for error in stopped):
        return None
    mistake = Mistake(
        "more than the result comes back",
        "You return a tuple. Its first part is the result that is asked for: return that alone.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake)


def gave_named_results(trial: Trial) -> bool:
    """True if named results were expected, and a dict came."""
    return isinstance(trial.outcome.value, dict) and isinstance(trial.expected.value, dict)


MAX_NAMES = 3  # in one sentence: a block has dozens of weights, and a gradient of each
ORDINALS = ("first", "second", "third", "fourth")


def letters_in_other_case(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that lists of strings are right but for capital letters; or None."""
    wrong = [t for t in trials if t.wrong]
    if not wrong or any(type(t.outcome.value) is not list for t in wrong):
        return None  # before any right result is worked out, which takes time
    pairs = [(t.outcome.value, t.expected.value) for t in wrong]
    if any(type(expected) is not list for _, expected in pairs):
        return None
    if any(
        [str(s).lower() for s in returned] != [s.lower() for s in expected]
        for returned, expected in pairs
    ):
        return None
    return result_is("right but for small and capital letters", sure=True)


COUNTED = re.compile(r"(\[[\d, ]*\])( \D+)?")  # ids that came, and how often


def wrong_frequencies(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that random ids, or how often they come, are wrong, and how; or None."""
    wrong = [t for t in trials if t.wrong and t.outcome.kind == "value"]
    pairs = [(outcomes_in(t.outcome.value), outcomes_in(t.expected.value)) for t in wrong]
    counted_pairs = [(returned, expected) for returned, expected in pairs if returned and expected]
    if not counted_pairs:
        return None
    too_many = any(returned - expected for returned, expected in counted_pairs)
    too_few = any(expected - returned for returned, expected in counted_pairs)
    if too_many and too_few:
        sentence = "ids come that a right answer never gives there, and others that it gives do not"
    elif too_many:
        sentence = "beside what may come, ids come that a right answer never gives there"
    elif too_few:
        sentence = "of the ids that a right answer gives there some never come"
    else:
        sentence = "the right ids come and no others, but more or less often than they should"
    return Symptom(f"where chance decides, {sentence}", sure=False)


def outcomes_in(value: object) -> set[str]:
    """Return the ids in the list of ``outcomes_counted``; an empty set for any other value."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        return set()
    matches = [COUNTED.fullmatch(text) for text in value]
    return {match[1] for match in matches if match} if all(matches) else set()


def some_parts_wrong(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that of several results some are always right, the others not; or None."""
    pairs = [
        (*returned_and_expected(t), t)
        for t in trials
        if isinstance(t.outcome.value, tuple | list | dict)
    ]
    values = [
        (returned, expected, t)
        for returned, expected, t in pairs
        if isinstance(returned, tuple | list) and isinstance(expected, tuple | list)
    ]
    if len([t for *_, t in values if t.wrong]) < max(1, sum(t.wrong for t in trials)):
        return None
    lengths = {len(v) for returned, expected, _ in values for v in (returned, expected)}
    if len(lengths) > 1 or not 1 < min(lengths) <= len(ORDINALS):
        return None
    parts = [
        [
            (returned[n], expected[n], t)
            for returned, expected, t in values
            if expected[n] is not None
        ]
        for n in range(min(lengths))
    ]
    wrong_places = [n for n, part in enumerate(parts) if any(difference(a, b) for a, b, _ in part)]
    if not 0 < len(wrong_places) < len(parts):
        return None
    names = names_in_words(ORDINALS[n] for n in wrong_places)
    how = transformation(
        [p for a, b, t in parts[wrong_places[0]] for p in pairs_of_results(a, b, t)]
    )
    verb = "are wrong"
    if len(wrong_places) == 1:
        verb = f"is {how}" if how else "is wrong"
    rest = "the others are" if len(parts) - len(wrong_places) > 1 else "the other is"
    return Symptom(f"of the results, the {names} {verb}, and {rest} right", sure=True)


def transformed_result(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that one change of the right results gives the returned ones; or None.

    If some calls, at most half as many, raise, the symptom adds that and is not sure.
    """
    pairs = number_pairs(trials)
    raised = [t for t in trials if t.wrong and t.outcome.kind == "raised"]
    if len(pairs) + len(raised) < sum(t.wrong for t in trials) or len(raised) > len(pairs) / 2:
        return None
    words = transformation(pairs)
    if words is None:
        return None
    beside = f"; besides, {raised[0].said}" if raised else ""
    return result_is(f"{words}{beside}", not raised)
