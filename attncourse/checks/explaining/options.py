"""Mistakes in one branch: wrong where an option is given, or has some value, and right elsewhere.

``if pre_norm: …`` has two branches, and a mistake in one of them does what the same mistake in both
does, but only there.
"""

import inspect
from collections.abc import Iterator
from functools import lru_cache
from inspect import Parameter
from typing import Any

from attncourse.checks.callers.calls import call_with_each_gradient, call_with_gradients
from attncourse.checks.exercise import call_it
from attncourse.checks.trying.trials import ReferenceOutcome, Trial

MIN_CASES_A_SIDE = 2  # inside and outside of a branch


def options_of(trial: Trial) -> set[str]:
    """Return the options of a call besides its arrays: ``mask is given``, ``pre_norm=False``."""
    kwargs = trial.case.kwargs
    use = trial.case.use
    handed_on = getattr(use, "func", use) in (call_it, call_with_gradients, call_with_each_gradient)
    named = optional_arguments(trial) if handed_on else {}
    for key in ("make", "config"):  # what a module is built from
        made = kwargs.get(key, ())
        all_settings = made if isinstance(made, tuple) else (made,)
        for settings in all_settings:
            named |= settings if isinstance(settings, dict) else {}
    inputs = kwargs.get("inputs", ())
    named |= dict.fromkeys(inputs[1:] if isinstance(inputs, tuple) else (), call_it)
    plain = {f"`{k}={v!r}`" for k, v in named.items() if type(v) in (bool, str, type(None))}
    return plain | {f"`{k}` is given" for k, v in named.items() if v is not None}


def optional_arguments(trial: Trial) -> dict[str, Any]:
    """Return the arguments of a call that it need not have, by position or name, by their names."""
    case, expected = trial.case, trial.expected
    if not isinstance(expected, ReferenceOutcome):
        return dict(case.kwargs)
    signature = signature_of(expected.exercise.reference)
    bound = signature.bind(*case.args, **case.kwargs).arguments
    return {
        n: v for n, v in bound.items() if signature.parameters[n].default is not Parameter.empty
    }


signature_of = lru_cache(maxsize=None)(inspect.signature)


def case_branches(trials: tuple[Trial, ...]) -> Iterator[tuple[str, list[int]]]:
    """Yield each "only where …" outside which every case is right, with the cases it is about.

    In half of these something is wrong at least.
    """
    taken = [options_of(trial) for trial in trials]
    for option in sorted(set().union(*taken)):
        with_option = [i for i, options in enumerate(taken) if option in options]
        elsewhere = [i for i, options in enumerate(taken) if option not in options]
        yield from filled_branch(trials, f"only where {option}", with_option, elsewhere)
        yield from filled_branch(trials, f"except where {option}", elsewhere, with_option)


def filled_branch(
    trials: tuple[Trial, ...], words: str, places: list[int], elsewhere: list[int]
) -> Iterator[tuple[str, list[int]]]:
    """Yield a branch, with its words, if the mistake fills it and nothing is wrong elsewhere.

    At least half of the cases in it are wrong, and ``MIN_CASES_A_SIDE`` cases lie on either side.
    """
    wrong = [i for i in places if trials[i].stands_out]
    if (
        any(trials[i].stands_out for i in elsewhere)
        or min(len(wrong), len(elsewhere)) < MIN_CASES_A_SIDE
    ):
        return
    if 2 * len(wrong) >= len(places):
        yield words, places
