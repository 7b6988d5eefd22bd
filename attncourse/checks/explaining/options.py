"""Mistakes in one branch: wrong where an option is given, or has some value, and right elsewhere.

``if pre_norm: …`` has two branches. An answer with a mistake in one of them gives the results of
the known mistake in calls that take this branch, and right results in the others.
"""

import inspect
from collections.abc import Iterator
from functools import lru_cache
from inspect import Parameter
from typing import Any

from attncourse.checks.callers.calls import call_with_each_gradient, call_with_gradients
from attncourse.checks.exercise import call_it
from attncourse.checks.trying.trials import ReferenceOutcome, Trial

MIN_CASES_A_SIDE = 2  # wrong ones inside a branch, right ones outside


def options_of(trial: Trial) -> set[str]:
    """Return a call's options as texts: "`mask` is given", "`pre_norm=False`".

    Those are arguments that a call may leave out, if the case's caller hands its arguments on to
    the answer, and everything with which a module is built.
    """
    kwargs = trial.case.kwargs
    use = trial.case.use
    handed_on = getattr(use, "func", use) in (call_it, call_with_gradients, call_with_each_gradient)
    options_by_name = optional_arguments(trial) if handed_on else {}
    for key in ("make", "config"):  # what a module is built from
        entries = kwargs.get(key, ())
        all_settings = entries if isinstance(entries, tuple) else (entries,)
        for settings in all_settings:
            options_by_name |= settings if isinstance(settings, dict) else {}
    inputs = kwargs.get("inputs", ())
    # Inputs of a module besides the first, a mask say: any value that is not None will do.
    options_by_name |= dict.fromkeys(inputs[1:] if isinstance(inputs, tuple) else (), call_it)
    plain = {
        f"`{k}={v!r}`" for k, v in options_by_name.items() if type(v) in (bool, str, type(None))
    }
    return plain | {f"`{k}` is given" for k, v in options_by_name.items() if v is not None}


def optional_arguments(trial: Trial) -> dict[str, Any]:
    """Return the arguments that a call gives and may leave out, by name.

    Without the reference, whose signature says that, all keywords are taken for such.
    """
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
    """Yield each branch that may hold the mistake, "only where …", with the places of its cases.

    Outside of it every case is right, and at least half of the cases in it are wrong.
    """
    options_by_case = [options_of(trial) for trial in trials]
    for option in sorted(set().union(*options_by_case)):
        inside = [i for i, options in enumerate(options_by_case) if option in options]
        outside = [i for i, options in enumerate(options_by_case) if option not in options]
        yield from filled_branch(trials, f"only where {option}", inside, outside)
        yield from filled_branch(trials, f"except where {option}", outside, inside)


def filled_branch(
    trials: tuple[Trial, ...], words: str, places: list[int], elsewhere: list[int]
) -> Iterator[tuple[str, list[int]]]:
    """Yield a branch, (words, places), if it may hold the mistake; else nothing.

    All cases ``elsewhere`` are right, at least half of those at ``places`` are wrong, and neither
    are fewer than ``MIN_CASES_A_SIDE``.
    """
    if any(trials[i].stands_out for i in elsewhere):
        return
    wrong = [i for i in places if trials[i].stands_out]
    if min(len(wrong), len(elsewhere)) < MIN_CASES_A_SIDE:
        return
    if 2 * len(wrong) >= len(places):
        yield words, places
