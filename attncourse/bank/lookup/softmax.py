"""The exercise ``softmax``: numbers of any size as weights that sum to 1."""

from dataclasses import replace

import numpy as np

from attncourse import lookup
from attncourse.bank.lookup.shared import OTHER_MAXIMUM, TWO_ROWS
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import mistakes, numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.cases import CaseTable, Drawn, normal, once_more, row, standard
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax, nothing

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"x": "... n"}, tensors=False, how=normal)
ROWS = standard(CASES)
BY_HAND = Case((np.array([0.0, 1.0, 2.0]),))
SCORES_FAR_APART = np.array(
    [[0.0, 5000.0, 4999.0, 0.0], [0.0, 0.0, 900.0, 0.0], [-5000.0, 1.0, 2.0, 0.0]]
)


def scores_near_levels(axes: str, *levels: float) -> dict[str, Drawn]:
    """Return a ``how``: scores near a level, each row near one of its own."""
    level = levels[0] if len(levels) == 1 else np.array(levels)[:, None]
    return {"x": Drawn(axes, lambda rng, shape: level + rng.normal(size=shape))}


# --- decisions and mistakes ----------------------------------------------------------------------

KEEP_AXIS = {"keepdims": True}


@composition
def compose_softmax(**decisions):
    """Return ``softmax`` made of decisions."""
    chosen = Softmax(**decisions)
    return lambda x, axis=-1, temperature=1.0: chosen(x, axis, temperature)


def subtract_in_place(x, T):
    x -= x.max()
    return x / T


def exp_of_difference(x, T, axis):
    return np.exp((x - x.max(axis, **KEEP_AXIS)) / T)


SLICES = {  # which run along any axis
    "Subtract each row's largest score first": "First subtract the largest of each slice, "
    "`x.max(axis=axis, keepdims=True)`",
    "ubtract each row's largest score": "ubtract the largest of each slice",
    "Subtract each row's largest.": "Subtract the largest of each slice.",
    "Subtract from each row its own": "Subtract from each slice its own",
    "In a row that lies": "In a slice that lies",
    "each row's mean": "each slice's mean",
}
OF_SOFTMAX = (
    *(s.naming(**SLICES) for s in (*soft.OF_THE_MAXIMUM, soft.MAXIMUM_OR_ZERO, soft.MEAN)),
    *soft.OF_THE_TEMPERATURE,
    *soft.OF_THE_WEIGHTS,
    soft.NO_EXPONENTIAL,
    soft.ONLY_THE_LARGEST,
    soft.ANOTHER_FACTOR,
    soft.TURNED_ROUND,
    soft.LOGARITHM,
    soft.ROUNDED,
    soft.GUARD_ALONE.naming(**SLICES),
    soft.WHOLE_NUMBERS,
    numpy_mistakes.IN_PLACE.here(exponents=subtract_in_place).by(
        exponents=numpy_mistakes.divided_in_place
    ),
    mistakes.IN_SINGLE_PRECISION.here(exponents=lambda x, T: (x / T).astype(np.float32)).by(
        exponents=lambda x, T: x.astype(np.float32) / T
    ),
    mistake("""the largest size is subtracted, not the maximum
        You subtract the largest absolute value. Very negative scores are then farther below 0 than
        before, all terms are 0, and 0/0 is NaN. Subtract the maximum.
    """).by(top=lambda z, axis, x: np.abs(z).max(axis=axis, keepdims=True)),
    mistake("""the argument axis is ignored
        You take the sum, the maximum or both always along the last axis, or the first, or the
        second. Both run along the argument `axis`, −1 unless given.""")
    .by(along=lambda axis, ndim: -1)
    .by(along=lambda axis, ndim: 0)
    .by(along=lambda axis, ndim: min(1, ndim - 1))
    .by(total=lambda e, axis, z: e.sum(axis=-1, keepdims=True))
    .by(top=lambda z, axis, x: z.max(axis=-1, keepdims=True)),
    mistake("""the whole array sums to 1
        You divide by the sum of all entries. In a matrix each slice along `axis` has a budget of 1
        of its own: `sum(axis=axis, keepdims=True)`.""")
    .by(along=lambda axis, ndim: None)
    .by(total=lambda e, axis, z: e.sum()),
    mistake("""the sums or the maxima lost their axis
        `e.sum(axis=axis)` and `x.max(axis=axis)` have one axis less than `e`; `[:, None]` mends
        that for rows alone. `keepdims=True` keeps the axis.""")
    .by(total=lambda e, axis, z: e.sum(axis))
    .by(top=lambda z, axis, x: z.max(axis))
    .by(top=lambda z, axis, x: z.max(axis)[:, None], total=lambda e, axis, z: e.sum(axis)[:, None]),
    OTHER_MAXIMUM,
    mistake("""numerator and denominator do not match
        You divide by the temperature, or subtract the maximum, above the fraction bar or below it
        and not on both sides. Do both to the scores, and take the exponentials once.""")
    .by(
        after=lambda w, x, T, axis: (
            exp_of_difference(x, T, axis) / exp_of_difference(x, 1, axis).sum(axis, **KEEP_AXIS)
        )
    )
    .by(
        after=lambda w, x, T, axis: (
            exp_of_difference(x, 1, axis) / exp_of_difference(x, T, axis).sum(axis, **KEEP_AXIS)
        )
    )
    .by(
        after=lambda w, x, T, axis: (
            exp_of_difference(x, T, axis) / np.exp(x / T).sum(axis, **KEEP_AXIS)
        )
    )
    .by(
        after=lambda w, x, T, axis: (
            np.exp(x / T) / exp_of_difference(x, T, axis).sum(axis, **KEEP_AXIS)
        )
    ),
    mistake("""the maximum alone is divided by the temperature
        In `x - x.max(…) / temperature` the division comes first, and x stays undivided. Put the
        difference in brackets: `(x - x.max(…)) / temperature`.""").by(
        exponents=lambda x, T: x,
        after=lambda w, x, T, axis: Softmax(top=nothing)(x - x.max(axis, **KEEP_AXIS) / T, axis),
    ),
    mistake("""the axes are not moved back
        You move the axis to the end or the front, and leave it there. Exchange the axes of the
        weights once more, or work along `axis` where it is.""")
    .by(after=lambda w, x, T, axis: np.swapaxes(w, axis, -1))
    .by(after=lambda w, x, T, axis: np.moveaxis(w, axis, -1))
    .by(after=lambda w, x, T, axis: np.moveaxis(w, axis, 0)),
    mistake("""divided by the maximum
        You divide the scores by the largest one, which changes their differences and with them the
        weights. Subtract the largest of each slice.""")
    .by(top=lambda z, axis, x: z - z / x.max(axis=axis, keepdims=True))
    .by(top=lambda z, axis, x: z - z / z.max(axis=axis, keepdims=True)),
    mistake("""divided by another sum
        You divide by the sum of the scores, or by exp of it. The denominator is the sum of the
        exponentials: exponentiate first, then sum.""")
    .by(total=lambda e, axis, z: z.sum(axis, **KEEP_AXIS))
    .by(total=lambda e, axis, z: np.exp(z.sum(axis, **KEEP_AXIS)))
    .by(total=lambda e, axis, z: z.sum(axis, **KEEP_AXIS), top=nothing)
    .by(total=lambda e, axis, z: np.exp(z.sum(axis, **KEEP_AXIS)), top=nothing),
    mistake("""divided by the root of the length
        You divide the scores by the root of their number. Only the temperature divides them.""")
    .by(exponents=lambda x, T: x / T / x.shape[-1] ** 0.5)
    .by_any(lambda power: {"exponents": lambda x, T: x / T * x.shape[-1] ** power}, (-1, 0.5)),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    lookup.softmax,
    section="Chapter 3, “Softmax turns scores into weights”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        CASES.criterion("weights in proportion to exp(x), summing to 1", 3).on(
            BY_HAND,
            Case((TWO_ROWS,), note="two rows"),
            row("n=7", arguments={"x": Drawn("5 n", normal)}),
        ),
        CASES.criterion("along any axis", 2).on(
            Case((np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]),), {"axis": 0}),
            row("n=7", batch=(3, 5), arguments={"axis": 1}),
            row("n=7", batch=(3, 5), arguments={"axis": -3}),
        ),
        CASES.criterion("at any temperature", 2).on(
            replace(BY_HAND, kwargs={"temperature": 0.5}),
            row("n=7", batch=(5,), arguments={"temperature": 3.0}),
            row("n=5", batch=(3,), arguments={"axis": 0, "temperature": 0.2}),
        ),
        CASES.criterion("finite for large scores", 2).on(
            row("n=5", arguments=scores_near_levels("n", 1e4), note="scores near 10000"),
            row("n=5", arguments=scores_near_levels("2 n", -1e4), note="scores near −10000"),
            row("n=5", arguments=scores_near_levels("3 n", 1e4, 0, -1e4), note="rows far apart"),
            Case((SCORES_FAR_APART,), note="scores thousands apart in one row"),
            row(
                "n=5",
                arguments=scores_near_levels("3 n", 1e4) | {"temperature": 0.5},
                note="large and divided",
            ),
            ROWS.extreme[0],
        ),
        CASES.criterion("batches, memory layout, whole numbers, float32", 1).on(
            *ROWS.batches,
            row("n=1", batch=(2, 3, 5), note="n = 1"),
            ROWS.single.but(batch=(5,)),
            *ROWS.integers,
            ROWS.extreme[1],
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(compose_softmax, *OF_SOFTMAX),
)
