"""The exercises of chapter 3, soft lookup."""

from dataclasses import dataclass, replace

import numpy as np

from attncourse import lookup
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import COLUMNS
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing import mistakes, numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.cases import CaseTable, Drawn, Row, normal, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.numpy_mistakes import dots, result, swapped
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax, nothing

# --- cases -----------------------------------------------------------------------------------

SOFTMAX_CASES = CaseTable({"x": "... n"}, tensors=False, how=normal)
SOFTMAX_ROWS = standard(SOFTMAX_CASES)
SOFTMAX_BY_HAND = Case((np.array([0.0, 1.0, 2.0]),))
TWO_ROWS = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, -1.0, 2.0]])
FAR_APART = np.array([[0.0, 5000.0, 4999.0, 0.0], [0.0, 0.0, 900.0, 0.0], [-5000.0, 1.0, 2.0, 0.0]])


def near(axes: str, *levels: float) -> dict[str, Drawn]:
    """Scores near a level, each row near one of its own where there are several."""
    level = levels[0] if len(levels) == 1 else np.array(levels)[:, None]
    return {"x": Drawn(axes, lambda rng, shape: level + rng.normal(size=shape))}


LOOKUP_CASES = CaseTable(
    {"query": "... m d", "keys": "... n d", "values": "... n d_v"}, tensors=False, how=normal
)
LOOKUP_ROWS = standard(LOOKUP_CASES, d=3)
LOOKUP_ROW = row("m=5 n=7 d=3 d_v=2")
ONE_QUERY, NUMBERS = {"query": Drawn("d", normal)}, {"values": Drawn("n", normal)}
ONE_DICTIONARY = {"keys": Drawn("n d", normal), "values": Drawn("n d_v", normal)}
BATCH_OF_QUERIES = row("m=3 n=5 d=7 d_v=4", batch=(2,), given=ONE_DICTIONARY)
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
LOOKUP_BY_HAND = Case((np.array([1.0, 0.0]), KEYS, np.array([10.0, 20.0, 40.0])))
FAR_SCORES = LOOKUP_ROW.but(factor={"query": 100, "keys": 100})
FOUR_FEATURES = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 4.0, 0.0, 1.0], [3.0, 3.0, 0.0, 5.0]])


@dataclass(frozen=True)
class CurveTable(CaseTable):
    """Cases of a curve; the bandwidth goes by position, and is 1 unless a row gives it."""

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        return replace(case, args=(*case.args, case.kwargs.get("bandwidth", 1.0)), kwargs={})


def spread(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Points in no order along the last axis, at least half a unit apart."""
    return rng.permuted(np.arange(shape[-1]) + rng.uniform(-0.25, 0.25, shape), axis=-1)


def points(
    x_query: list[float], x: list[float], y: list[float], note: str = "", bandwidth: float = 1.0
) -> Case:
    """A case with these numbers."""
    arrays = (np.array(numbers, float) for numbers in (x_query, x, y))
    return Case((*arrays, bandwidth), note=note)


CURVE_CASES = CurveTable(
    {
        "x_query": Drawn("... m", lambda rng, shape: rng.uniform(0, 3, shape)),
        "x": Drawn("... n", spread),
        "y": Drawn("... n", normal),
    },
    tensors=False,
)
CURVE_ROWS = standard(CURVE_CASES, large="x_query")
CURVE_ROW = row("m=5 n=7")
CURVE_BY_HAND = points([0, 1, 3], [0, 1, 2, 4], [1, 3, 2, 6])
LARGE_X = CURVE_ROW.but(factor={"x": 1e3, "x_query": 1e3}, given={"bandwidth": 700.0})

# --- usual mistakes: softmax -----------------------------------------------------------------

KEPT = {"keepdims": True}


@composition
def softmax_of(**decisions):
    """``softmax`` made of decisions."""
    chosen = Softmax(**decisions)
    return lambda x, axis=-1, temperature=1.0: chosen(x, axis, temperature)


def moved_in_place(x, T):
    x -= x.max()
    return x / T


def power_at(x, T, axis):
    return np.exp((x - x.max(axis, **KEPT)) / T)


OTHER_MAXIMUM = (
    mistake("""a maximum along another axis
    You subtract from each score the largest of another axis, so that scores which share a sum are
    moved by different numbers, and their weights change. Both run along the same axis.""")
    .by(top=lambda z, axis, x: z.max(axis=0))
    .by(top=lambda z, axis, x: z.max(axis=-2, keepdims=True) if z.ndim > 1 else 0)
)
OF_AXES = (soft.OVER_QUERIES, soft.OVER_AXIS_0, soft.OVER_AXIS_1, soft.OVER_EVERYTHING)
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
    numpy_mistakes.IN_PLACE.here(exponents=moved_in_place).by(
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
    .by(after=lambda w, x, T, axis: power_at(x, T, axis) / power_at(x, 1, axis).sum(axis, **KEPT))
    .by(after=lambda w, x, T, axis: power_at(x, 1, axis) / power_at(x, T, axis).sum(axis, **KEPT))
    .by(after=lambda w, x, T, axis: power_at(x, T, axis) / np.exp(x / T).sum(axis, **KEPT))
    .by(after=lambda w, x, T, axis: np.exp(x / T) / power_at(x, T, axis).sum(axis, **KEPT)),
    mistake("""the maximum alone is divided by the temperature
        In `x - x.max(…) / temperature` the division comes first, and x stays undivided. Put the
        difference in brackets: `(x - x.max(…)) / temperature`.""").by(
        exponents=lambda x, T: x,
        after=lambda w, x, T, axis: Softmax(top=nothing)(x - x.max(axis, **KEPT) / T, axis),
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
    .by(total=lambda e, axis, z: z.sum(axis, **KEPT))
    .by(total=lambda e, axis, z: np.exp(z.sum(axis, **KEPT)))
    .by(total=lambda e, axis, z: z.sum(axis, **KEPT), top=nothing)
    .by(total=lambda e, axis, z: np.exp(z.sum(axis, **KEPT)), top=nothing),
    mistake("""divided by the root of the length
        You divide the scores by the root of their number. Only the temperature divides them.""")
    .by(exponents=lambda x, T: x / T / x.shape[-1] ** 0.5)
    .by_any(lambda power: {"exponents": lambda x, T: x / T * x.shape[-1] ** power}, (-1, 0.5)),
)

# --- usual mistakes: soft lookup -------------------------------------------------------------


def over_new_axis(weights, values):
    return (weights[..., None] * (values if values.ndim < 3 else values[..., None, :, :])).sum(-2)


@composition
def look_up(
    roles=lambda query, keys, values: (query, keys, values),
    compare=dots,
    scale=lambda scores, keys: scores,
    mix=lambda weights, values: weights @ values,
    finish=result,
    **decisions,
):
    """A soft lookup made of decisions; those that are not named are the softmax's."""
    softmax = Softmax(**decisions)

    def answer(query, keys, values, temperature=1.0):
        query, keys, values = roles(query, keys, values)
        weights = softmax(scale(compare(query, keys), keys), -1, temperature)
        return finish(mix(weights, values), values, weights, query)

    return answer


OF_LOOKUP = (
    *soft.OF_THE_MAXIMUM,
    soft.MAXIMUM_OR_ZERO,
    soft.GUARD_ALONE,
    *soft.OF_THE_TEMPERATURE,
    *soft.OF_THE_WEIGHTS,
    soft.ANOTHER_FACTOR,
    soft.NO_EXPONENTIAL,
    soft.ONLY_THE_LARGEST,
    soft.TURNED_ROUND,
    *OF_AXES,
    OTHER_MAXIMUM,
    numpy_mistakes.LOST_AXIS.here(total=lambda e, axis, z: e.sum(axis)),
    *numpy_mistakes.OF_SCORES,
    numpy_mistakes.AVERAGED_AGAIN,
    numpy_mistakes.CUT,
    mistake("""row i is not query i with every key
        `keys @ query.T` has a row for each key, and `query * keys` pairs query i with key i alone.
        Every query meets every key: `query @ np.swapaxes(keys, -1, -2)`, shape (m, n).""")
    .by(compare=lambda query, keys: keys @ (query if query.ndim == 1 else swapped(query)))
    .by(compare=lambda query, keys: (query * keys).sum(-1)),
    mistake("""the keys are blended, not the values
        You return a blend of the keys, be it that keys and values are exchanged. Compare with
        `keys`, blend `values`.""")
    .by(roles=lambda query, keys, values: (query, keys, keys))
    .by(roles=lambda query, keys, values: (query, values, keys)),
    mistake("""the weights come back
        You return the weights of the keys, alone or beside the answer. The answer alone is asked
        for: `weights @ values`.""")
    .by(finish=lambda answer, values, weights, query: weights)
    .by(finish=lambda answer, values, weights, query: (answer, weights)),
    mistake("""a product that knows no batch
        `keys.T` reverses all axes, the batch's too, and `np.dot` pairs every sequence of one batch
        with every other. Write `query @ np.swapaxes(keys, -1, -2)` and `weights @ values`.""")
    .by(compare=lambda query, keys: query @ keys.T)
    .by(compare=lambda query, keys: np.dot(query, swapped(keys)))
    .by(mix=lambda weights, values: np.dot(weights, values)),
    mistake("""numbers as values are spread over a new axis
        Values of shape (n,) are one number for each key. A new axis behind your weights pairs them
        with the wrong one: `weights @ values` does for both kinds of values.""")
    .by(mix=lambda w, v: over_new_axis(w, v) if w.ndim > 1 else w @ v)
    .by(mix=over_new_axis),
    mistake("""an axis of length 1 too many or too few
        You make a matrix of a single query, or a column of values that are numbers, and its axis
        stays; or you squeeze one that belongs to the result. A query (1, d) gives m = 1.""")
    .by(finish=lambda u, values, w, query: u[None] if query.ndim == 1 else u)
    .by(finish=lambda u, values, w, query: u[..., None] if values.ndim == 1 else u)
    .by(finish=lambda u, values, w, query: u.reshape(*np.atleast_2d(query).shape[:-1], -1))
    .by(finish=lambda u, values, w, query: np.squeeze(u)),
)

# --- usual mistakes: kernel regression -------------------------------------------------------


@composition
def curve(
    roles=lambda x_query, x, y: (x_query, x, y),
    gaps=lambda x_query, x: x_query[..., :, None] - x[..., None, :],
    distance=lambda gaps, h: gaps**2,
    half=2,
    width=lambda h: h**2,
    sign=-1,
    mix=lambda weights, y: (weights * y[..., None, :]).sum(-1),
    finish=result,
    **decisions,
):
    """A kernel regression made of decisions: softmax(sign · distance / (half · width))."""
    softmax = Softmax(**decisions)

    def answer(x_query, x, y, bandwidth):
        x_query, x, y = roles(x_query, x, y)
        squares = distance(gaps(x_query, x), bandwidth)
        weights = softmax(sign * squares / (half * width(bandwidth)))
        return finish(mix(weights, y), y, weights, bandwidth)

    return answer


def size(gaps, h):
    return np.abs(gaps)


def first_of_the_nearest(w, x, T, axis):
    nearest = np.arange(x.shape[-1]) == x.argmax(-1)[..., None]
    return np.where(np.isnan(w), nearest, w)


UNSHARED = {"top": nothing, "total": lambda e, axis, z: 1}
OF_CURVES = (
    soft.ANOTHER_BASE,
    mistake("""another number than 2 in the exponent
        The exponent is −distance²/(2h²). You leave the 2 out, square it with h or divide by another
        number: your curve is the one for another bandwidth.""")
    .by(half=1)
    .by(half=4)
    .by_any(lambda number: {"half": number}, Between(0.02, 200.0)),
    mistake("""another power of the bandwidth
        Distance and bandwidth have the same unit, so both are squared: distance²/(2h²). You leave h
        out, multiply by it or take another power.""")
    .by(width=lambda h: h)
    .by_any(lambda power: {"width": lambda h: h**power}, (0, 0.5, 3, 4, -1, -2, -4)),
    mistake("""the distance is not squared
        Your weights fall as exp(−|distance|/h), with a sharp peak (a Laplace kernel). The Gaussian
        takes the square: distance²/(2h²).""")
    .by(distance=size, half=1, width=lambda h: h)
    .by_any(
        lambda by: {"distance": size, "half": by[0], "width": lambda h: h ** by[1]},
        ((2, 2), (1, 2), (2, 1)),
    ),
    mistake("""the minus sign is missing
        Your weights grow with the distance: the farthest point counts most. The exponent is
        −distance²/(2h²).""").by(sign=1),
    mistake("""every point within the bandwidth counts the same
        You average the points that are no farther than h. The Gaussian lets every point count, the
        less the farther away: exp(−distance²/(2h²)).
    """).by(distance=lambda gaps, h: np.where(np.abs(gaps) <= h, 0.0, np.inf)),
    soft.NOTHING_SUBTRACTED.called("0/0 far from the points").said(
        "Far from every x all your kernel values are 0, and 0/0 is NaN. Hand the exponents to your "
        "`softmax`: it subtracts the largest, so the nearest point always counts."
    ),
    soft.GUARD_ALONE.said(
        "Far from every x all your kernel values are 0, and 0 over a small number is 0. Hand the "
        "exponents to your `softmax`: it subtracts the largest, so the nearest point always counts."
    ),
    mistake("""the mean, or one nearest y, far from the points
        Far from every x you clip the exponents, or put a mean or one nearest y in place of 0/0.
        Hand the exponents to your `softmax`: all that are near have their share there.""")
    .by(top=nothing, after=lambda w, x, T, axis: np.where(np.isnan(w), 1 / w.shape[-1], w))
    .by(top=nothing, after=first_of_the_nearest)
    .by_any(lambda bound: {"exponents": lambda x, T: np.maximum(x, bound)}, (-700, -500, -100)),
    soft.WHOLE_MAXIMUM,
    soft.EXPONENTIAL_TWICE,
    mistake("""the weights are not normalised
        You add up kernel × y without dividing by the sum of the kernel, so your curve follows how
        many points are near and falls to 0 far from all. The weights of a query sum to 1.""")
    .by(UNSHARED)
    .by(**UNSHARED, finish=lambda u, y, w, h: u / (h * (2 * np.pi) ** 0.5))
    .by(**UNSHARED, finish=lambda u, y, w, h: u / w.shape[-1]),
    soft.ANOTHER_TOTAL,
    soft.GUARD,
    soft.TWICE,
    *OF_AXES,
    soft.ONLY_THE_LARGEST,
    mistake("""the product in place of the distance
        Your scores are x_query · x. For points on a line that is no measure of nearness: for a
        positive query the largest x wins. Use −(x_query − x)²/(2h²).""")
    .by(gaps=lambda q, x: q[..., None] * x[..., None, :], distance=lambda p, h: -p, half=1)
    .by(gaps=lambda q, x: q[..., None] * x[..., None, :], distance=lambda p, h: -p),
    mistake("""one array is sorted, the others are not
        You sort x, y or x_query alone, so that a place gets the height of another. The points may
        come in any order: nothing needs sorting.""")
    .by(roles=lambda x_query, x, y: (x_query, np.sort(x, axis=-1), y))
    .by(roles=lambda x_query, x, y: (x_query, x, np.sort(y, axis=-1)))
    .by(roles=lambda x_query, x, y: (np.sort(x_query, axis=-1), x, y)),
    mistake("""x and y exchanged
        You compare the queries with y and average x. Weights come from the distance to x; what is
        averaged is y.""").by(roles=lambda x_query, x, y: (x_query, y, x)),
    mistake("""the weights are returned
        You return the matrix of weights, shape (m, n). One step is missing: average y with it,
        which leaves shape (m,).""").by(finish=lambda answer, y, weights, h: weights),
    numpy_mistakes.AVERAGED_AGAIN.here(mix=lambda weights, y: (weights * y[..., None, :]).mean(-1)),
    numpy_mistakes.CUT,
)

# --- exercises -------------------------------------------------------------------------------

SOFTMAX = exercise(
    lookup.softmax,
    section="Chapter 3, “Softmax turns scores into weights”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        SOFTMAX_CASES.criterion("weights in proportion to exp(x), summing to 1", 3).on(
            SOFTMAX_BY_HAND,
            Case((TWO_ROWS,), note="two rows"),
            row("n=7", given={"x": Drawn("5 n", normal)}),
        ),
        SOFTMAX_CASES.criterion("along any axis", 2).on(
            Case((np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]),), {"axis": 0}),
            row("n=7", batch=(3, 5), given={"axis": 1}),
            row("n=7", batch=(3, 5), given={"axis": -3}),
        ),
        SOFTMAX_CASES.criterion("at any temperature", 2).on(
            replace(SOFTMAX_BY_HAND, kwargs={"temperature": 0.5}),
            row("n=7", batch=(5,), given={"temperature": 3.0}),
            row("n=5", batch=(3,), given={"axis": 0, "temperature": 0.2}),
        ),
        SOFTMAX_CASES.criterion("finite for large scores", 2).on(
            row("n=5", given=near("n", 1e4), note="scores near 10000"),
            row("n=5", given=near("2 n", -1e4), note="scores near −10000"),
            row("n=5", given=near("3 n", 1e4, 0, -1e4), note="rows far apart"),
            Case((FAR_APART,), note="scores thousands apart in one row"),
            row("n=5", given=near("3 n", 1e4) | {"temperature": 0.5}, note="large and divided"),
            SOFTMAX_ROWS.extreme[0],
        ),
        SOFTMAX_CASES.criterion("batches, memory layout, whole numbers, float32", 1).on(
            *SOFTMAX_ROWS.batches,
            row("n=1", batch=(2, 3, 5), note="n = 1"),
            SOFTMAX_ROWS.single.but(batch=(5,)),
            *SOFTMAX_ROWS.integers,
            SOFTMAX_ROWS.extreme[1],
            once_more(SOFTMAX_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(softmax_of, *OF_SOFTMAX),
)

SOFT_LOOKUP = exercise(
    lookup.soft_lookup,
    section="Chapter 3, “A lookup that returns a blend”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        LOOKUP_CASES.criterion("one query, values that are numbers", 2).on(
            LOOKUP_BY_HAND, LOOKUP_ROW.but(given={**ONE_QUERY, **NUMBERS})
        ),
        LOOKUP_CASES.criterion("many queries, values that are vectors", 2).on(
            Case((np.array([[1.0, 0.0], [0.0, 2.0]]), KEYS, FOUR_FEATURES)),
            LOOKUP_ROW,
            LOOKUP_ROW.but(given=NUMBERS, note="many queries, values that are numbers"),
            LOOKUP_ROW.but(given=ONE_QUERY, note="one query, values that are vectors"),
        ),
        LOOKUP_CASES.criterion("at any temperature", 1).on(
            LOOKUP_ROW.but(given={"temperature": 0.4}),
            LOOKUP_ROW.but(given={**ONE_QUERY, **NUMBERS, "temperature": 3.0}),
        ),
        LOOKUP_CASES.criterion("sizes of 1, memory layout", 1).on(
            row("m=1 n=5 d=7 d_v=2", note="m = 1: the result keeps its axis"),
            row("m=3 n=1 d=7 d_v=2", factor=0.5, note="n = 1"),
            row("m=3 n=5 d=7 d_v=1", turned=True, note="d_v = 1: the result keeps its axis"),
        ),
        LOOKUP_CASES.criterion("batches", 1).on(
            *LOOKUP_ROWS.batches, BATCH_OF_QUERIES.but(note="a batch of queries, one dictionary")
        ),
        LOOKUP_CASES.criterion("large, small and whole numbers, float32", 1).on(
            FAR_SCORES.but(note="scores in the thousands"),
            FAR_SCORES.but(given={"temperature": 0.5}, note="large and divided"),
            Case(
                (np.array([[-40.0, 0.0], [3.0, 1.0]]), 40 * KEYS[[0, 2]] + KEYS[:2], TWO_ROWS),
                note="scores far below 0",
            ),
            LOOKUP_ROWS.single,
            Case(tuple(a.astype(int) for a in LOOKUP_BY_HAND.args), note="whole numbers"),
            *LOOKUP_ROWS.extreme,
            once_more(LOOKUP_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(look_up, *OF_LOOKUP),
)

KERNEL_REGRESSION = exercise(
    lookup.kernel_regression,
    section="Chapter 3, “A curve through noisy points”",
    difficulty=2,
    minutes=20,
    criteria=(
        CURVE_CASES.criterion("an average of y, weighted by a Gaussian of the distance", 3).on(
            CURVE_BY_HAND, CURVE_ROW
        ),
        CURVE_CASES.criterion("at any bandwidth", 1).on(
            *(CURVE_ROW.but(given={"bandwidth": h}) for h in (0.6, 1.5, 4.0))
        ),
        CURVE_CASES.criterion("finite far from every x", 2).on(
            points([60, -50], [0, 1, 2], [5, 7, 9], "queries far from every x"),
            points([1e4, 1.2, -1e4], [1, 3, 2], [5, 7, 9], "some queries far from every x"),
            points([50.01, 0.5], [0, 100], [5, 7], "far from two points, nearly half-way"),
            points(
                [0.4, 2.7], [0, 1, 2, 4], [5, 7, 9, 8], "a bandwidth far below the spacing", 1e-5
            ),
            CURVE_ROWS.extreme[0],
        ),
        CURVE_CASES.criterion("any number of queries and points", 1).on(
            row("m=1 n=5", note="m = 1"),
            row("m=3 n=1", note="n = 1: the curve is flat"),
            row("m=11 n=5", given={"bandwidth": 0.7}, note="more queries than points"),
        ),
        CURVE_CASES.criterion("batches", 1).on(*CURVE_ROWS.batches),
        CURVE_CASES.criterion("large, small and whole numbers, float32", 1).on(
            CURVE_ROW.but(factor={"y": 1e7}, note="large y"),
            LARGE_X.but(note="large x, with a bandwidth to match"),
            CURVE_ROWS.single,
            *(one.but(given={"bandwidth": 9.0}) for one in CURVE_ROWS.integers),
            CURVE_ROWS.extreme[1].but(factor={"x_query": 1e-7}),
            once_more(CURVE_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(curve, *OF_CURVES),
)

EXERCISES = (SOFTMAX, SOFT_LOOKUP, KERNEL_REGRESSION)

VARIANTS = (
    Variant(
        "columns",
        "The keys are **columns** here, one each: `keys` has the shape `(d, n)`, or `(..., d, n)`, "
        "where in the book they are rows. Values are as in the book.",
        "keys are columns here",
        "Your answer takes a key for a row, as the book and its published answers do. In this "
        "assignment every column of `keys`, shape (d, n), is a key: `query @ keys` has the scores.",
        {"soft_lookup": Adapter({"keys": COLUMNS})},
        rewordings("""
            | `(d,)` | `(n, d)` | → | `(d,)` | `(d, n)` |
            | `(m, d)` | `(n, d)` | → | `(m, d)` | `(d, n)` |
            `(..., n, d)` or `(n, d)` | `(..., n, d_v)`
            → `(..., d, n)` or `(d, n)` | `(..., n, d_v)`
            np.array([[0.0, 2.0], [np.log(3), 5.0]]) → np.array([[0.0, np.log(3)], [2.0, 5.0]])
            `query @ np.swapaxes(keys, -1, -2)` → `query @ keys`
            `keys.T` reverses all axes, the batch's too, and `np.dot` → `np.dot`
            `keys @ query.T` has a row for each key → `(query @ keys).T` has a row for each key
            and `query * keys` pairs → and `query * keys.T` pairs
        """),
    ),
)
