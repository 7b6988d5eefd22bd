"""Symptoms in how calls behave: what they change, keep, cut off or do not return."""

import re
from dataclasses import dataclass

import numpy as np

from attncourse.checks.callers.modules import CALLS
from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.symptoms.nearly_right import only_dtype_differs
from attncourse.checks.explaining.symptoms.pairs import Pair, number_pairs, pairs_of_results
from attncourse.checks.explaining.symptoms.symptom import Symptom, names_in_words
from attncourse.checks.trying.compare import equal_but_for_rounding, type_name
from attncourse.checks.trying.trials import Trial

MAX_NAMES_IN_SENTENCE = 2

# As torch says it of a gradient, NumPy of dtypes.
IN_PLACE = re.compile("in-?place operation|Cannot cast ufunc")

CUT = "no gradient reaches "


def changed_only(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every result is right, but an argument was changed.

    A gradient may break over that.
    """
    wrong = [t for t in trials if t.wrong]
    if not all(raises_in_place(t) or called_again(t) for t in wrong):
        return None
    changed_names = dict.fromkeys(t.outcome.mutated for t in trials if t.outcome.mutated)
    if not changed_names:
        return None
    parts = any("." in name for name in changed_names)  # of a model that is made of arguments
    names = (
        names_in_words(changed_names)
        if len(changed_names) <= MAX_NAMES_IN_SENTENCE
        else "more than one argument"
    )
    names = "the model" if parts else names
    mistake = Mistake(
        f"{names} {'are' if ' and ' in names else 'is'} changed in place",
        f"Your results are right, but the call changes {names}. What is handed over belongs to the "
        "caller: assign to a new name, or work on a copy.",
    )
    return Symptom(mistake.name, True, mistake)


def raises_in_place(trial: Trial) -> bool:
    """True if a library refused to write into an array in place."""
    return trial.outcome.kind == "raised" and bool(IN_PLACE.search(trial.outcome.text))


def called_again(trial: Trial) -> bool:
    """True if a case makes several calls, and a later one got what an earlier one had changed.

    Of two results the first comes before any change: it is right.
    """
    if not trial.outcome.mutated or not isinstance(want := trial.expected.value, dict):
        return False
    return len(want) > 2 or all(p.right for p in number_pairs((trial,)))


def cut_gradients(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that results are right, but some gradient is cut, or the dtype is another.

    The two go together in what goes through NumPy.
    """
    wrong = [t for t in trials if t.wrong]
    cut = [t for t in wrong if t.outcome.text.startswith(CUT)]
    if not cut or not only_dtype_differs([t for t in wrong if not t.outcome.text.startswith(CUT)]):
        return None
    names = names_in_words(
        dict.fromkeys(t.outcome.text.removeprefix(CUT).split(":")[0] for t in cut)
    )
    mistake = Mistake(
        f"the gradient of {names} is cut off",
        f"The numbers are right, but nothing can be learned through {names}: `.detach()`, "
        "`.data`, `.numpy()`, `torch.tensor(…)` or `torch.no_grad()` cut the history. Stay with "
        "torch operations on the tensors themselves.",
    )
    return Symptom(mistake.name, True, mistake)


def first_call_right(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that an object's first call is right, and a later one is not.

    A gradient may break over that.
    """
    wrong = [t for t in trials if t.wrong]
    calls = [c for t in wrong if (c := calls_of(t)) is not None]
    others = [t for t in wrong if calls_of(t) is None]
    if not calls or not all(c.first.right and c.stale for c in calls):
        return None
    if any(t.outcome.kind != "raised" for t in others):
        return None
    mistake = Mistake(
        "something is kept from an earlier call",
        "The first call of an object is right, and a later one works with what an earlier one "
        "left. `self` holds the layers; what is made of the input belongs in a plain name, and is "
        "made anew in every call.",
    )
    return Symptom(mistake.name, True, mistake)


@dataclass(frozen=True)
class Calls:
    """The results of one object: for the inputs, for others, and for the first ones again."""

    first: Pair
    second: Pair
    again: Pair

    @property
    def stale(self) -> bool:
        """True if nothing but an earlier call can make a later one wrong."""
        alike = self.first.want.shape == self.second.want.shape
        return not self.again.right or (alike and not self.second.right)


def calls_of(trial: Trial) -> Calls | None:
    """Return the calls of one object, where a case makes several."""
    got = trial.outcome.value
    if not isinstance(got, dict) or not isinstance(trial.expected.value, dict):
        return None
    want = trial.expected.value
    if tuple(want) != CALLS:
        return None
    three = [pairs_of_results(got.get(name), want[name], trial) for name in CALLS]
    return Calls(*(pairs[0] for pairs in three)) if all(three) else None


def nothing_returned(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every call that does not raise gives None back."""
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
    return Symptom(mistake.name, True, mistake, all=False)


def made_later(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every call gives back something that would have to run first."""
    kinds = {type_name(t.outcome.value) for t in trials if t.outcome.kind == "value"}
    if len(kinds) != 1 or not (name_and_explanation := LATER.get(*kinds)):
        return None
    name, explanation = name_and_explanation
    mistake = Mistake(name, explanation)
    return Symptom(mistake.name, True, mistake, all=False)


LATER = {
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
    """Return the symptom that the same calls once more have other results, or ""."""
    other = any(
        a.got.shape != b.got.shape or not np.array_equal(a.got, b.got, equal_nan=True)
        for a, b in zip(number_pairs(trials), number_pairs(repeated), strict=False)
    )
    return "the same call gives other numbers each time" if other else ""


def constant_results(trials: tuple[Trial, ...], fresh: tuple[Trial, ...]) -> str:
    """Return the symptom that calls with other numbers have the same results, or ""."""
    both = [
        (a, b)
        for a, b in zip(number_pairs(trials), number_pairs(fresh), strict=False)
        if a.want.shape == b.want.shape and a.got.shape == b.got.shape
    ]
    moving = [
        (a, b) for a, b in both if a.want.size > 1 and not equal_but_for_rounding(a.want, b.want)
    ]
    still = len(moving) > 1 and all(equal_but_for_rounding(a.got, b.got) for a, b in moving)
    return "the result does not depend on the numbers that come in" if still else ""
