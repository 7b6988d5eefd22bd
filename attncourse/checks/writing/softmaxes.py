"""Softmax in NumPy as decisions, and its mistakes: for the chapters before torch.

Mistakes that softmax in torch has as well get their words from ``mistakes``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attncourse.checks.exercise import Between
from attncourse.checks.writing import mistakes
from attncourse.checks.writing.recipes import mistake

# --- what is right ---------------------------------------------------------------------------


def as_asked(axis, ndim):
    """Return the axis of the call: the right ``along``."""
    return axis


def over_temperature(x, T):
    """Return the scores divided by the temperature."""
    return x / T


def row_maxima(z, axis, x):
    """Return the largest score along the axis; other options of ``top`` need ``x``."""
    return z.max(axis=axis, keepdims=True)


def exponential(z):
    """Return ``exp`` of the scores."""
    return np.exp(z)


def row_sums(e, axis, z):
    """Return the sum along the axis; other options of ``total`` need ``z``."""
    return e.sum(axis=axis, keepdims=True)


def unchanged_weights(w, x, T, axis):
    """Return the weights unchanged."""
    return w


@dataclass(frozen=True)
class Softmax:
    """``exp(x / T)`` over its sum, as decisions; each is right unless another option is given.

    ``along`` returns the axis for that of the call. ``exponents`` are made of scores and
    temperature, ``top`` is subtracted from them, ``power`` makes them positive, ``total`` divides
    them, ``after`` may change the weights.
    """

    along: Callable = as_asked
    exponents: Callable = over_temperature
    top: Callable = row_maxima
    power: Callable = exponential
    total: Callable = row_sums
    after: Callable = unchanged_weights

    def __call__(self, x, axis=-1, temperature=1.0):
        """Return the softmax that these decisions make."""
        axis = self.along(axis, x.ndim)
        z = self.exponents(x, temperature)
        z = z - self.top(z, axis, x)
        e = self.power(z)
        return self.after(e / self.total(e, axis, z), x, temperature, axis)


# --- what goes wrong -------------------------------------------------------------------------


def nothing(z, axis, x):
    """Return 0: no maximum is subtracted."""
    return 0


def with_guard(number):
    """Return the wrong option of ``total`` that adds a number to the sum."""
    return {"total": lambda e, axis, z: e.sum(axis=axis, keepdims=True) + number}


def log_softmax(w, x, T, axis):
    """Return the logarithms of the weights in their place."""
    z = (x - x.max(axis=axis, keepdims=True)) / T
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))


NOTHING_SUBTRACTED = mistakes.NO_MAXIMUM.here(top=nothing)
WHOLE_MAXIMUM = mistakes.ONE_MAXIMUM.here(top=lambda z, axis, x: z.max())
MAXIMUM_OR_ZERO = mistake("""nothing is subtracted where all scores are negative
    You subtract the larger of 0 and the maximum. Scores far below 0 then stay where they are: every
    exp is 0, and 0/0 is NaN. Subtract the maximum whatever its sign.
""").by(top=lambda z, axis, x: z.max(axis=axis, keepdims=True, initial=0))
MINIMUM = mistake("""the minimum is subtracted, not the maximum
    You subtract the smallest score. The others are then above 0, and exp of a score far above the
    smallest still overflows. Subtract the largest.
""").by(top=lambda z, axis, x: z.min(axis=axis, keepdims=True))
MEAN = mistake("""the mean is subtracted, not the maximum
    You subtract each row's mean. Scores far above it are still far above 0, and their exp
    overflows. Subtract the largest.
""").by(top=lambda z, axis, x: z.mean(axis=axis, keepdims=True))
NAN_TO_ZERO = mistake("""what overflows is set to 0
    Your exponentials overflow, and NaN is replaced afterwards (`np.nan_to_num`): where the largest
    weight should be there is 0. Subtract each row's largest score first.
""").by(top=nothing, after=lambda w, x, T, axis: np.nan_to_num(w))
GUARD_ALONE = (
    mistake("""a guard in place of the maximum
    You add a small number to the denominator and subtract nothing. Of very negative scores all
    weights are then 0, and exp of a large one still overflows. Subtract each row's largest.""")
    .by({"top": nothing, **with_guard(1e-12)})
    .by_any(
        lambda number: {"top": nothing, **with_guard(number)},
        (1e-300, 1e-16, 1e-15, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0),
    )
)
CLIPPED = (
    mistake("""large scores are clipped
    You cut the scores off at a bound, so that all beyond it weigh the same. Their differences
    count, however large they are: subtract each row's largest score and clip nothing.""")
    .by(exponents=lambda x, T: np.clip(x / T, -500, 500))
    .by_any(
        lambda bounds: {"exponents": lambda x, T: np.clip(x / T, *bounds)},
        ((-700, 700), (-709, 709), (-100, 100), (-50, 50), (-30, 30), (None, 700), (None, 500)),
    )
)
NO_EXPONENTIAL = mistake("""shares without the exponential
    You divide the scores by their row sum. Scores can be negative, and so then are your weights;
    softmax takes the exponential of each score before it divides.
""").by(top=nothing, power=lambda z: z)
ANOTHER_BASE = (
    mistake("""another base than e
    You take powers of another number, 2 or 10 say. Softmax takes powers of e: `np.exp`.""")
    .by(power=lambda z: 2.0**z)
    .by_any(lambda base: {"power": lambda z: base**z}, (10.0, 3.0, 2.718, 2.7183))
)
ANOTHER_FACTOR = (
    mistake("""the scores are multiplied by a number
    You multiply or divide the scores by one and the same number. They go into the softmax as they
    are; a factor makes its weights sharper, or more even.""")
    .by(exponents=lambda x, T: 0.5 * x / T)
    .by_any(lambda number: {"exponents": lambda x, T: number * x / T}, Between(1e-2, 100.0))
)
TURNED_ROUND = mistake("""the sign of the scores is turned
    The smallest score gets the largest weight: there is a minus sign too many in the exponent.
""").by(exponents=lambda x, T: -x / T)
NOT_NORMALISED = (
    mistake("""the weights are not normalised
    You exponentiate and stop, so a slice does not sum to 1. Divide by the sum of the slice.""")
    .by(total=lambda e, axis, z: 1)
    .by_any(lambda top: {"top": top, "total": lambda e, axis, z: 1}, (nothing,))
)
ANOTHER_TOTAL = (
    mistake("""divided by something else than the sum
    You divide the exponentials by something else than their sum: the mean, the norm, 1 + the sum.
    Then the weights do not sum to 1.""")
    .by(total=lambda e, axis, z: e.mean(axis=axis, keepdims=True))
    .by_any(
        lambda total: {"total": total},
        (
            lambda e, axis, z: np.sqrt((e**2).sum(axis=axis, keepdims=True)),
            lambda e, axis, z: (e**2).sum(axis=axis, keepdims=True),
            lambda e, axis, z: 1 + e.sum(axis=axis, keepdims=True),
        ),
    )
)
GUARD = mistakes.GUARD_IN_DENOMINATOR.here(with_guard(1e-3)).by_any(with_guard, Between(1e-10, 0.5))
SIGMOIDS = mistakes.SIGMOIDS.here(
    top=nothing, power=lambda z: 1 / (1 + np.exp(-z)), total=lambda e, axis, z: 1
)
TWICE = mistakes.SOFTMAX_TWICE.here(
    after=lambda w, x, T, axis: np.exp(w) / np.exp(w).sum(axis=axis, keepdims=True)
)
EXPONENTIAL_TWICE = mistakes.EXPONENTIAL_TWICE.here(exponents=lambda x, T: np.exp(x / T))
ONLY_THE_LARGEST = mistake("""only the largest score counts
    You give all the weight to the largest score. Softmax gives every score a share.
""").by(after=lambda w, x, T, axis: 1.0 * (w == w.max(axis=axis, keepdims=True)))
WHOLE_NUMBERS = mistake("""the weights are cut to whole numbers
    Where whole numbers come in, your weights become whole numbers too, and most of them 0: an array
    made by `np.zeros_like`, say, holds integers. Make it one of floats.
""").by(after=lambda w, x, T, axis: w.astype(x.dtype))
ROUNDED = (
    mistake("""the weights are rounded
    You round the weights. Return them as they are: rounding is for printing.""")
    .by(after=lambda w, x, T, axis: np.round(w, 3))
    .by_any(lambda digits: {"after": lambda w, x, T, axis: np.round(w, digits)}, (1, 2, 4, 5, 6, 8))
)
LOGARITHM = (
    mistake("""the logarithm of softmax
    Your values are at most 0: they are the logarithms of the weights (log-softmax). Return the
    weights themselves.""")
    .by(after=log_softmax)
    .by_any(lambda after: {"after": after}, (lambda w, x, T, axis: np.log(w),))
)
OVER_QUERIES = mistakes.OVER_QUERIES.here(along=lambda axis, ndim: -2 if ndim > 1 else -1)
OVER_AXIS_0 = mistakes.OVER_AXIS_0.here(along=lambda axis, ndim: 0)
OVER_AXIS_1 = mistakes.OVER_AXIS_1.here(along=lambda axis, ndim: 1 if ndim > 1 else -1)
OVER_EVERYTHING = mistakes.OVER_EVERYTHING.here(along=lambda axis, ndim: (-2, -1)[-ndim:]).by_any(
    lambda axes: {"along": lambda axis, ndim: axes}, (None,)
)
TIMES_TEMPERATURE = mistake("""multiplied by the temperature
    You multiply the scores by the temperature, so a high one sharpens. It is the other way round:
    divide, and a high temperature evens the weights out.""").by(exponents=lambda x, T: x * T)
NO_TEMPERATURE = mistake("""the temperature is ignored
    Your weights are the same at every temperature. Divide the scores by it before
    exponentiating.""").by(exponents=lambda x, T: x)
TEMPERATURE_AFTERWARDS = mistake("""divided by the temperature after softmax
    You divide the weights, which then sum to 1/temperature and keep their proportions. The scores
    are what is divided, before exponentiating.
""").by(exponents=lambda x, T: x, after=lambda w, x, T, axis: w / T)
POWER_OF_TEMPERATURE = (
    mistake("""another power of the temperature
    You divide the scores by the temperature's square, or its root. Divide by the temperature.""")
    .by(exponents=lambda x, T: x / T**2)
    .by_any(lambda power: {"exponents": lambda x, T: x / T**power}, (0.5, 3, -2, -0.5))
)
TEMPERATURE_ON_WEIGHTS = mistake("""the temperature is a power of the weights
    You raise the weights to the power 1/temperature and do not divide by their new sum. Divide the
    scores by the temperature: softmax then sees to the sum.
""").by(exponents=lambda x, T: x, after=lambda w, x, T, axis: w ** (1 / T))
WHOLE_DIVISION = mistake("""the scores are rounded down
    `//` divides and rounds down to a whole number. Divide by the temperature with `/`.
""").by(exponents=lambda x, T: x // T)
UNDIVIDED_MAXIMUM = mistake("""the maximum is subtracted before it is divided by the temperature
    You compute `x / temperature - x.max(…)`, where large scores overflow or vanish unless the
    temperature is 1. Put the difference in brackets: `(x - x.max(…)) / temperature`.
""").by(top=lambda z, axis, x: x.max(axis=axis, keepdims=True))
OF_THE_MAXIMUM = (NOTHING_SUBTRACTED, WHOLE_MAXIMUM, MINIMUM, NAN_TO_ZERO, CLIPPED)
OF_THE_WEIGHTS = (
    ANOTHER_BASE,
    NOT_NORMALISED,
    ANOTHER_TOTAL,
    GUARD,
    SIGMOIDS,
    TWICE,
    EXPONENTIAL_TWICE,
)
OF_THE_TEMPERATURE = (
    TIMES_TEMPERATURE,
    NO_TEMPERATURE,
    TEMPERATURE_AFTERWARDS,
    POWER_OF_TEMPERATURE,
    TEMPERATURE_ON_WEIGHTS,
    WHOLE_DIVISION,
    UNDIVIDED_MAXIMUM,
)
