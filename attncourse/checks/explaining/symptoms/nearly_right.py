"""Results whose numbers are right, but not their dtype, last digits, short axes or batches."""

import re
from dataclasses import replace
from itertools import starmap

import numpy as np

from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.symptoms.pairs import (
    Pair,
    close_in_single_precision,
    largest_difference,
    number_pairs,
    pairs_of_parts,
)
from attncourse.checks.explaining.symptoms.symptom import Symptom, result_is
from attncourse.checks.explaining.symptoms.transformations import change_explains
from attncourse.checks.trying.compare import equal_but_for_rounding, scale_of
from attncourse.checks.trying.trials import ReferenceOutcome, Trial

KEEP_DTYPE = "keep the dtype of what comes in, make arrays with `dtype=x.dtype`, say"
# In torch's errors about two dtypes.
TWO_DTYPES = re.compile("same dtype|expected one dtype|expected scalar type|found dtype")

RETURNED_DTYPE = re.compile(r"returned dtype (\w+)")
PRECISION_INSIDE = "single precision inside"
# One order of the operations rounds a few times as much as another.
MOST_TIMES_AS_FAR = 10
NAME_OF_PART = re.compile(r"\w+: ")  # at the beginning of a problem in one part of a result


def other_dtype(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that results have a wrong dtype only, or that two dtypes meet; or None.

    If some calls, at most half of all, raise something else, the symptom adds that and is not sure.
    """
    wrong = [t for t in trials if t.wrong]
    two_dtypes = [
        t for t in wrong if t.outcome.kind == "raised" and TWO_DTYPES.search(t.outcome.text)
    ]
    raised = [
        t for t in wrong if t.outcome.kind == "raised" and not any(t is m for m in two_dtypes)
    ]
    returned_trials = [t for t in wrong if t.outcome.kind != "raised"]
    if (
        not returned_trials + two_dtypes
        or not only_dtype_differs(returned_trials)
        or 2 * len(raised) > len(trials)
    ):
        return None
    if raised and not returned_trials:
        return None  # nothing returned a number
    problem_line = (returned_trials or two_dtypes)[0].said
    if raised:
        text = f"the numbers are right where there are any, but it {problem_line}: {KEEP_DTYPE}"
        return Symptom(f"{text}; besides, {raised[0].said}", sure=False)
    cure = f"{KEEP_DTYPE[0].upper()}{KEEP_DTYPE[1:]}."
    if integer_dtype := re.search(r"expected (int\d+)", problem_line):
        cure = f"Return whole numbers, of dtype {integer_dtype[1]}."
    clause = problem_line if NAME_OF_PART.match(problem_line) else f"it {problem_line}"
    narrow = None if has_all_digits(returned_trials) else RETURNED_DTYPE.search(problem_line)
    right = f"right to the digits of {narrow[1]}" if narrow else "right"
    text = f"The numbers are {right}, but {clause}." if returned_trials else f"It {problem_line}."
    mistake = Mistake("the dtype is another one", f"{text} {cure}")
    return Symptom(mistake.name, sure=True, mistake=mistake, all=not two_dtypes)


def only_dtype_differs(wrong: list[Trial]) -> bool:
    """True if nothing but the dtype is wrong in these trials."""
    pairs = number_pairs(tuple(wrong))
    problems = [t.problem for t in wrong if t.problem is not None]
    return (
        len(pairs) == len(wrong)
        and all(map(close_in_single_precision, pairs))
        and all(p.kind == "dtype" for p in problems)
    )


def has_all_digits(wrong: list[Trial]) -> bool:
    """True if no returned number has lost digits, as a narrower dtype would lose."""
    pairs = number_pairs(tuple(wrong))
    return all(largest_difference(pair) <= 1e-9 * scale_of(pair.expected) for pair in pairs)


def right_to_single_precision(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that every result is right to single precision only.

    Some may be further off, as far as ours is on arguments in single precision: where large numbers
    nearly cancel, little is left of seven digits. Most show that they are rounded as they are.
    """
    wrong: list[Pair] = []
    for trial in trials:
        if trial.wrong:
            off = [pair for pair in pairs_of_parts(trial) if not pair.right]
            if not off:
                return None
            wrong += off
    if not wrong:
        return None
    if not all(
        p.expected.dtype == np.float64 and p.returned.shape == p.expected.shape for p in wrong
    ):
        return None
    # float32 rounds a number by up to 6e-8 of it, and a result adds some of these up.
    rounded = [p for p in wrong if largest_difference(p) < 1e-6 * scale_of(p.expected)]
    further_off = [p for p in wrong if not any(p is rounded_pair for rounded_pair in rounded)]
    if 2 * len(further_off) > len(rounded) or not all(map(lost_by_conversion, further_off)):
        return None
    if all(np.array_equal(p.expected, np.round(p.expected)) for p in wrong):
        return None  # whole numbers have no digits to lose
    if not further_off and (direction := all_off_one_way(wrong)):
        text = f"right but for its last digits: all too {direction}, as where a guard is added to a"
        return result_is(f"{text} divisor, or a number has too few digits", sure=True)
    if all(largest_difference(p) < 1e-8 * scale_of(p.expected) for p in wrong):
        return result_is(
            "right but for its last digits, of which float32 would lose more", sure=True
        )
    mistake = Mistake(
        PRECISION_INSIDE,
        "Your results differ from the right ones by about as much as float32 rounds, where the "
        "arguments are float64. Convert nothing, make arrays with `dtype=x.dtype`, and type "
        "numbers in with all their digits.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake)


def lost_by_conversion(p: Pair) -> bool:
    """True if a result is about as far off as ours on the same arguments in single precision."""
    expected = p.trial.expected
    if not isinstance(expected, ReferenceOutcome):
        return False  # what a mistake returned, where another is compared with it
    converted = pairs_of_parts(replace(p.trial, answered=expected.in_single_precision))
    if not converted or converted[p.place].returned.shape != p.expected.shape:
        return False
    lost = largest_difference(converted[p.place])
    return np.isfinite(lost) and largest_difference(p) <= MOST_TIMES_AS_FAR * lost


def all_off_one_way(wrong: list[Pair]) -> str:
    """Return "small" or "large" if all numbers that differ, 12 or more, do so in size; else "".

    Numbers that are only rounded differ in both directions.
    """
    with np.errstate(all="ignore"):  # −∞ less −∞
        signs = np.concatenate(
            [((p.returned - p.expected) * np.sign(p.expected)).ravel() for p in wrong]
        )
    signs = signs[np.abs(signs) > 1e-13 * max(scale_of(p.expected) for p in wrong)]
    if len(signs) < 12:
        return ""
    if (signs < 0).all():
        return "small"
    return "large" if (signs > 0).all() else ""


def axes_squeezed(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that all wrong results lack their axes of length 1; or None."""
    wrong = [t for t in trials if t.wrong]
    pairs = number_pairs(tuple(wrong))
    if not pairs or len(pairs) < len(wrong) or not all(1 in p.expected.shape for p in pairs):
        return None
    if not all(change_explains(np.squeeze, p) for p in pairs):
        return None
    mistake = Mistake(
        "the axes of length 1 are gone",
        "The result is the expected one without its axes of length 1: those of a batch of one, or "
        "of the only token. `squeeze` without an axis takes all of them: name the one that is to "
        "go, `.squeeze(-1)`.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake)


def batch_axes_unprovided(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that the number of batch axes decides what is wrong; or None.

    Beside another mistake it is told only if no wrong result has the right shape: else the numbers
    may be that mistake's with a batch.
    """
    pairs = [*zip(trials, batch_axis_counts(trials), strict=True)]
    results = [(t, axes) for t, axes in pairs if t.case.raises is None]
    wrong = {axes for t, axes in results if t.wrong}
    right = {axes for t, axes in results if not t.wrong}
    descriptions = [t.case.note + t.criterion.name for t, axes in pairs if t.wrong and axes]
    if not wrong or not right or wrong & right or not all("batch" in text for text in descriptions):
        return None
    if max(right) > 1 or (min(wrong) <= max(right) and right != {1}):
        return None
    shaped = [
        (p, axes)
        for t, axes in results
        if t.wrong and axes
        for p in number_pairs((t,))
        if p.returned.shape == p.expected.shape
    ]
    if max(right) == 0:
        axes_provided, how = (
            "no batch axis is",
            "without further axes in front, and wrong with them",
        )
    elif min(wrong) == 0:
        axes_provided, how = (
            "exactly one batch axis is",
            "with exactly one batch axis, and not otherwise",
        )
    else:
        axes_provided, how = (
            "at most one batch axis is",
            "with at most one batch axis, and wrong with more",
        )
    all_shaped = len(shaped) == sum(t.wrong for t, _ in results)
    if max(right) == 0 and all_shaped and all(starmap(is_only_first_right, shaped)):
        mistake = Mistake(
            "only the first of a batch is right",
            f"Your results are right {how}. Of a batch the first is right and those behind it are "
            "not. Is something that is taken from the first, or made of it, used for all? Each of "
            "a batch has its own.",
        )
        return Symptom(mistake.name, sure=True, mistake=mistake, told_beside=False)
    mistake = Mistake(
        f"{axes_provided} provided for",
        f"Your results are right {how}. Leading axes are batches, any "
        "number of them: count the axes from the end (`axis=-1` or `dim=-1`, `x[..., i, :]`) and "
        "let `@` and broadcasting take the others along.",
    )
    return Symptom(mistake.name, sure=True, mistake=mistake, told_beside=not shaped)


def is_only_first_right(p: Pair, axes: int) -> bool:
    """True if only the first of a batch is right; the batch lies along the first ``axes`` axes."""
    if p.expected.ndim < axes:
        return False
    right = [
        equal_but_for_rounding(p.returned[place], p.expected[place])
        for place in np.ndindex(p.expected.shape[:axes])
    ]
    return len(right) > 1 and right[0] and not any(right[1:])


def batch_axis_counts(trials: tuple[Trial, ...]) -> list[int]:
    """Return for each trial how many batch axes it has.

    That is the largest surplus of an argument's axes over the least that this argument has.
    """
    least: dict[object, int] = {}
    for trial in trials:
        for name, ndim in axis_counts(trial):
            least[name] = min(ndim, least.get(name, ndim))
    return [max((ndim - least[n] for n, ndim in axis_counts(t)), default=0) for t in trials]


def axis_counts(trial: Trial) -> list[tuple[object, int]]:
    """Return place, or keyword, and number of axes of each array among a case's arguments."""
    arguments = [*enumerate(trial.case.args), *trial.case.kwargs.items()]
    return [(name, len(v.shape)) for name, v in arguments if hasattr(v, "shape")]
