"""Symptoms in how calls behave: what they change, keep, cut off or do not return."""

import re
from dataclasses import dataclass

import numpy as np

from attncourse.checks.callers.modules import NAMES_OF_CALLS
from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.symptoms.nearly_right import only_dtype_differs
from attncourse.checks.explaining.symptoms.pairs import Pair, number_pairs, pairs_of_results
from attncourse.checks.explaining.symptoms.symptom import Symptom, names_in_words
from attncourse.checks.trying.compare import equal_but_for_rounding, type_name
from attncourse.checks.trying.trials import Trial

MAX_NAMES_IN_SENTENCE = 2

# In torch's error about a gradient, and in NumPy's about dtypes.
IN_PLACE = re.compile("in-?place operation|Cannot cast ufunc")

NO_GRADIENT = "no gradient reaches "  # the beginning of a caller's message (``gradients_of_sum``)


def only_arguments_changed(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every result is right, but arguments were changed; or None.

    Calls that the change breaks count as right: a library refuses to go on, or a later call of the
    same case gets changed arguments.
    """
    wrong = [t for t in trials if t.wrong]
    if not all(raised_for_change_in_place(t) or may_have_changed_arguments(t) for t in wrong):
        return None
    changed_names = dict.fromkeys(t.outcome.mutated for t in trials if t.outcome.mutated)
    if not changed_names:
        return None
    if any("." in name for name in changed_names):  # parameters of a model made of arguments
        names = "the model"
    elif len(changed_names) <= MAX_NAMES_IN_SENTENCE:
        names = names_in_words(changed_names)
    else:
        names = "more than one argument"
    mistake = Mistake(
        f"{names} {'are' if ' and ' in names else 'is'} changed in place",
        f"Your results are right, but the call changes {names}. What is handed over belongs to the "
        "caller: assign to a new name, or work on a copy.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake)


def raised_for_change_in_place(trial: Trial) -> bool:
    """True if torch or NumPy raised because an array was changed in place."""
    return trial.outcome.kind == "raised" and bool(IN_PLACE.search(trial.outcome.text))


def may_have_changed_arguments(trial: Trial) -> bool:
    """True if a case made several calls, and a later one may have got changed arguments.

    Of two results the first, from before any change, has to be right.
    """
    if not trial.outcome.mutated or not isinstance(expected := trial.expected.value, dict):
        return False
    return len(expected) > 2 or all(p.right for p in number_pairs((trial,)))


def cut_gradients(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that results are right, but some gradient is cut off; or None.

    Other wrong cases may differ in dtype: an answer that goes through NumPy does both.
    """
    wrong = [t for t in trials if t.wrong]
    cut = [t for t in wrong if t.outcome.text.startswith(NO_GRADIENT)]
    if not cut or not only_dtype_differs(
        [t for t in wrong if not t.outcome.text.startswith(NO_GRADIENT)]
    ):
        return None
    names = names_in_words(
        dict.fromkeys(t.outcome.text.removeprefix(NO_GRADIENT).split(":")[0] for t in cut)
    )
    mistake = Mistake(
        f"the gradient of {names} is cut off",
        f"The numbers are right, but nothing can be learned through {names}: `.detach()`, "
        "`.data`, `.numpy()`, `torch.tensor(…)` or `torch.no_grad()` cut the history. Stay with "
        "torch operations on the tensors themselves.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake)


def first_call_right(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that an object's first call is right, and a later one is not; or None.

    Cases without several calls may raise, as a gradient does through what was kept.
    """
    wrong = [t for t in trials if t.wrong]
    calls = [c for t in wrong if (c := repeated_calls(t)) is not None]
    others = [t for t in wrong if repeated_calls(t) is None]
    if not calls or not all(c.first.right and c.is_stale for c in calls):
        return None
    if any(t.outcome.kind != "raised" for t in others):
        return None
    mistake = Mistake(
        "something is kept from an earlier call",
        "The first call of an object is right, and a later one works with what an earlier one "
        "left. `self` holds the layers; what is made of the input belongs in a plain name, and is "
        "made anew in every call.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake)


@dataclass(frozen=True)
class RepeatedCalls:
    """One object's results, beside the right ones: for inputs, for others, and the first again."""

    first: Pair
    second: Pair
    again: Pair

    @property
    def is_stale(self) -> bool:
        """True if a later call is wrong, and nothing but an earlier call explains that."""
        is_same_shape = self.first.expected.shape == self.second.expected.shape
        return not self.again.right or (is_same_shape and not self.second.right)


def repeated_calls(trial: Trial) -> RepeatedCalls | None:
    """Return the three calls of one object in a case of ``call_module_twice``; None in others."""
    returned = trial.outcome.value
    if not isinstance(returned, dict) or not isinstance(trial.expected.value, dict):
        return None
    expected = trial.expected.value
    if tuple(expected) != NAMES_OF_CALLS:
        return None
    pairs_by_call = [
        pairs_of_results(returned.get(name), expected[name], trial) for name in NAMES_OF_CALLS
    ]
    return RepeatedCalls(*(pairs[0] for pairs in pairs_by_call)) if all(pairs_by_call) else None


def nothing_returned(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every call that does not raise returns None; or None."""
    ended = [t for t in trials if t.wrong and t.outcome.kind == "value" and t.case.raises is None]
    if not ended or any(t.outcome.value is not None or t.expected.value is None for t in ended):
        return None
    if any(not t.wrong for t in trials if t.case.raises is None):
        return None
    mistake = Mistake(
        "nothing is returned",
        "Your function gives None back. Is there a `return` at the end, and on every way through "
        "it? What works in place, `list.sort()` say, gives None back as well.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake, all=False)


def nothing_run_yet(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every call returns a generator or a coroutine; or None."""
    kinds = {type_name(t.outcome.value) for t in trials if t.outcome.kind == "value"}
    if len(kinds) != 1 or not (name_and_explanation := UNRUN_RESULTS.get(*kinds)):
        return None
    name, explanation = name_and_explanation
    mistake = Mistake(name, explanation)
    return Symptom(mistake.name, sure=True, mistake=mistake, all=False)


UNRUN_RESULTS = {
    "generator": (
        "a generator comes back",
        "With a `yield` in it, a call only makes a generator, and none of the code has run yet. "
        "Write `return`.",
    ),
    "coroutine": (
        "a coroutine comes back",
        "A call of an `async def` only makes a coroutine, and none of the code has run yet. Write "
        "`def`, and no `await`.",
    ),
}


def varying_results(trials: tuple[Trial, ...], repeated: tuple[Trial, ...]) -> str:
    """Return the symptom that the same calls gave other results when ``repeated``; or ""."""
    is_varying = any(
        a.returned.shape != b.returned.shape
        or not np.array_equal(a.returned, b.returned, equal_nan=True)
        for a, b in zip(number_pairs(trials), number_pairs(repeated), strict=False)
    )
    return "the same call gives other numbers each time" if is_varying else ""


def constant_results(trials: tuple[Trial, ...], fresh: tuple[Trial, ...]) -> str:
    """Return the symptom that calls with other numbers, ``fresh``, gave the same results; or ""."""
    pairs = [
        (a, b)
        for a, b in zip(number_pairs(trials), number_pairs(fresh), strict=False)
        if a.expected.shape == b.expected.shape and a.returned.shape == b.returned.shape
    ]
    varied = [
        (a, b)
        for a, b in pairs
        if a.expected.size > 1 and not equal_but_for_rounding(a.expected, b.expected)
    ]
    is_constant = len(varied) > 1 and all(
        equal_but_for_rounding(a.returned, b.returned) for a, b in varied
    )
    return "the result does not depend on the numbers that come in" if is_constant else ""
