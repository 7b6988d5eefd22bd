"""Results whose numbers are right, but not their dtype, last digits, short axes or batches."""

import re

import numpy as np

from attncourse.checks.exercise import Mistake
from attncourse.checks.explaining.symptoms.pairs import (
    Pair,
    close,
    largest_difference,
    number_pairs,
)
from attncourse.checks.explaining.symptoms.symptom import Symptom, result_is
from attncourse.checks.explaining.symptoms.transformations import gives
from attncourse.checks.trying.compare import scale_of
from attncourse.checks.trying.trials import Trial

KEEP_DTYPE = "keep the dtype of what comes in, make arrays with `dtype=x.dtype`, say"
# As torch says it.
TWO_DTYPES = re.compile("same dtype|expected one dtype|expected scalar type|found dtype")

PART = re.compile(r"\w+: ")  # what is said is of one part of a result


def other_dtype(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right but for its dtype, or two dtypes meet where nothing is returned.

    Calls that raise something else are told of beside it, where most do not.
    """
    wrong = [t for t in trials if t.wrong]
    met = [t for t in wrong if t.outcome.kind == "raised" and TWO_DTYPES.search(t.outcome.text)]
    raised = [t for t in wrong if t.outcome.kind == "raised" and not any(t is m for m in met)]
    returned_trials = [t for t in wrong if t.outcome.kind != "raised"]
    if (
        not returned_trials + met
        or not only_dtype_differs(returned_trials)
        or 2 * len(raised) > len(trials)
    ):
        return None
    if raised and not returned_trials:
        return None  # nothing returned a number
    said = (returned_trials or met)[0].said
    if raised:
        text = f"the numbers are right where there are any, but it {said}: {KEEP_DTYPE}"
        return Symptom(f"{text}; besides, {raised[0].said}", False)
    whole = re.search(r"expected (int\d+)", said)
    cure = (
        f"Return whole numbers, of dtype {whole[1]}."
        if whole
        else f"{KEEP_DTYPE[0].upper()}{KEEP_DTYPE[1:]}."
    )
    what = said if PART.match(said) else f"it {said}"
    text = f"The numbers are right, but {what}." if returned_trials else f"It {said}."
    mistake = Mistake("the dtype is another one", f"{text} {cure}")
    return Symptom(mistake.name, True, mistake)


def only_dtype_differs(wrong: list[Trial]) -> bool:
    """True if nothing but the dtype is wrong in these trials."""
    pairs = number_pairs(tuple(wrong))
    problems = [t.problem for t in wrong if t.problem is not None]
    return (
        len(pairs) == len(wrong)
        and all(map(close, pairs))
        and all(p.kind == "dtype" for p in problems)
    )


def right_to_single_precision(trials: tuple[Trial, ...]) -> Symptom | None:
    """Every result is right to single precision only."""
    pairs = number_pairs(trials)
    wrong = [p for p in pairs if not p.right]
    if not wrong or len(wrong) < sum(t.wrong for t in trials) or not all(map(close, pairs)):
        return None
    if not all(
        largest_difference(p) < 1e-6 * scale_of(p.want) and p.want.dtype == np.float64
        for p in wrong
    ):
        return None
    if all(np.array_equal(p.want, np.round(p.want)) for p in wrong):
        return None  # whole numbers have no digits to lose
    if way := all_off_one_way(wrong):
        text = f"right but for its last digits: all too {way}, as where a guard is added to a"
        return result_is(f"{text} divisor, or a number has too few digits", True)
    mistake = Mistake(
        "single precision inside",
        "Your results differ from the right ones by about as much as float32 rounds, where the "
        "arguments are float64. Convert nothing, make arrays with `dtype=x.dtype`, and type "
        "numbers in with all their digits.",
    )
    return Symptom(mistake.name, True, mistake)


def all_off_one_way(wrong: list[Pair]) -> str:
    """Return "small" or "large" if all numbers are off in that direction, else "".

    Numbers that are only rounded lie on both sides.
    """
    signs = np.concatenate([((p.got - p.want) * np.sign(p.want)).ravel() for p in wrong])
    signs = signs[np.abs(signs) > 1e-13 * max(scale_of(p.want) for p in wrong)]
    if len(signs) < 12:
        return ""
    return "small" if (signs < 0).all() else "large" if (signs > 0).all() else ""


def squeezed(trials: tuple[Trial, ...]) -> Symptom | None:
    """Axes of length 1 are gone: those of a batch, or of the only token."""
    wrong = [t for t in trials if t.wrong]
    pairs = number_pairs(tuple(wrong))
    if not pairs or len(pairs) < len(wrong) or not all(1 in p.want.shape for p in pairs):
        return None
    if not all(gives(np.squeeze, p) for p in pairs):
        return None
    mistake = Mistake(
        "the axes of length 1 are gone",
        "The result is the expected one without its axes of length 1: those of a batch of one, or "
        "of the only token. `squeeze` without an axis takes all of them: name the one that is to "
        "go, `.squeeze(-1)`.",
    )
    return Symptom(mistake.name, True, mistake)


def unbatched(trials: tuple[Trial, ...]) -> Symptom | None:
    """Return the symptom that only results with another number of batch axes are wrong."""
    more = [*zip(trials, batch_axes(trials), strict=True)]
    wrong, right = (
        {axes for t, axes in more if t.wrong is bad and t.case.raises is None}
        for bad in (True, False)
    )
    descriptions = [t.case.note + t.criterion.name for t, axes in more if t.wrong and axes]
    if not wrong or not right or wrong & right or not all("batch" in text for text in descriptions):
        return None
    if max(right) > 1 or (min(wrong) <= max(right) and right != {1}):
        return None
    exactly = "exactly" if min(wrong) == 0 else "at most"
    what = "no batch axis is" if max(right) == 0 else f"{exactly} one batch axis is"
    where = (
        "without further axes in front" if max(right) == 0 else f"with {what.removesuffix(' is')}"
    )
    mistake = Mistake(
        f"{what} provided for",
        f"Your results are right {where}. Leading axes are batches, any "
        "number of them: count the axes from the end (`axis=-1` or `dim=-1`, `x[..., i, :]`) and "
        "let `@` and broadcasting take the others along.",
    )
    return Symptom(mistake.name, True, mistake)


def batch_axes(trials: tuple[Trial, ...]) -> list[int]:
    """By how many axes the arguments of each case exceed the smallest case."""
    least: dict[object, int] = {}
    for trial in trials:
        for name, ndim in axis_counts(trial):
            least[name] = min(ndim, least.get(name, ndim))
    return [max((ndim - least[n] for n, ndim in axis_counts(t)), default=0) for t in trials]


def axis_counts(trial: Trial) -> list[tuple[object, int]]:
    """Return how many axes each array argument of a case has."""
    named = [*enumerate(trial.case.args), *trial.case.kwargs.items()]
    return [(name, len(v.shape)) for name, v in named if hasattr(v, "shape")]
