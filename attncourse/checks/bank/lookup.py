"""The exercises of chapter 3, soft lookup."""

from dataclasses import dataclass, replace

import numpy as np

from attncourse import lookup
from attncourse.checks import softmaxes as soft
from attncourse.checks.cases import Drawn, Row, Table, normal, once_more, row, standard
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    composition,
    leaves_arguments_alone,
)
from attncourse.checks.mistakes import Slip, made
from attncourse.checks.softmaxes import Softmax, nothing

# --- cases -----------------------------------------------------------------------------------


SOFTMAX_CASES = Table({"x": "... n"}, tensors=False, how=normal)
SOFTMAX_ROWS = standard(SOFTMAX_CASES)
SOFTMAX_BY_HAND = Case((np.array([0.0, 1.0, 2.0]),))
TWO_ROWS = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, -1.0, 2.0]])
THREE_ROWS = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
FAR_APART = np.array([[0.0, 5000.0, 4999.0, 0.0], [0.0, 0.0, 900.0, 0.0], [-5000.0, 1.0, 2.0, 0.0]])


def near(*levels: float):
    """Scores near a level, each row near one of its own where there are several."""
    level = levels[0] if len(levels) == 1 else np.array(levels)[:, None]
    return lambda rng, shape: level + rng.normal(size=shape)


LOOKUP_CASES = Table(
    {"query": "... m d", "keys": "... n d", "values": "... n d_v"}, tensors=False, how=normal
)
LOOKUP_ROWS = standard(LOOKUP_CASES, d=3)
LOOKUP_ROW = row("m=5 n=7 d=3 d_v=2")
ONE_QUERY, NUMBERS = {"query": Drawn("d", normal)}, {"values": Drawn("n", normal)}
ONE_DICTIONARY = {"keys": Drawn("n d", normal), "values": Drawn("n d_v", normal)}
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
LOOKUP_BY_HAND = Case((np.array([1.0, 0.0]), KEYS, np.array([10.0, 20.0, 40.0])))
WHOLE_NUMBERS_BY_HAND = tuple(a.astype(int) for a in LOOKUP_BY_HAND.args)
LARGE_SCORES = LOOKUP_ROW.but(factor={"query": 100, "keys": 100})
TWO_QUERIES = Case(
    (
        np.array([[1.0, 0.0], [0.0, 2.0]]),
        KEYS,
        np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 4.0, 0.0, 1.0], [3.0, 3.0, 0.0, 5.0]]),
    )
)
VERY_NEGATIVE = Case(
    (np.array([[-40.0, 0.0], [3.0, 1.0]]), 40 * KEYS[[0, 2]] + KEYS[:2], TWO_ROWS),
    note="scores far below 0",
)


@dataclass(frozen=True)
class CurveTable(Table):
    """Cases of a curve; the bandwidth goes by position, and is 1 unless a row gives it."""

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        return replace(case, args=(*case.args, case.kwargs.get("bandwidth", 1.0)), kwargs={})


def between_points(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0, 3, shape)


def spread(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Points in no order along the last axis, at least half a unit apart."""
    return rng.permuted(np.arange(shape[-1]) + rng.uniform(-0.25, 0.25, shape), axis=-1)


CURVE_CASES = CurveTable(
    {
        "x_query": Drawn("... m", between_points),
        "x": Drawn("... n", spread),
        "y": Drawn("... n", normal),
    },
    tensors=False,
)
CURVE_ROWS = standard(CURVE_CASES, large="x_query")
CURVE_ROW = row("m=5 n=7")
CURVE_BY_HAND = Case(
    (np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0, 6.0]), 1.0)
)


def far_apart(x_query: list[float], x: list[float], note: str) -> Case:
    return Case(
        (np.array(x_query), np.array(x), np.array([5.0, 7.0, 9.0][: len(x)]), 1.0), {}, note
    )


# --- usual mistakes --------------------------------------------------------------------------


@composition
def softmax_of(**decisions):
    chosen = Softmax(**decisions)

    def answer(x, axis=-1, temperature=1.0):
        return chosen(x, axis, temperature)

    return answer


def softmax_in_place(x, axis=-1, temperature=1.0):
    x -= x.max(axis=axis, keepdims=True)
    e = np.exp(x / temperature)
    return e / e.sum(axis=axis, keepdims=True)


def softmax_divided_in_place(x, axis=-1, temperature=1.0):
    x /= temperature
    return Softmax()(x, axis)


def swapped(a):
    return np.swapaxes(a, -1, -2)


def dots(query, keys):
    """Dot products of every query with every key."""
    return query @ swapped(keys)


def unit(a):
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def apart(query, keys):
    """Distances of every query from every key."""
    gaps = query[..., None, :] - (keys if query.ndim == 1 else keys[..., None, :, :])
    return np.linalg.norm(gaps, axis=-1)


def over_new_axis(weights, values):
    return (weights[..., None] * (values if values.ndim < 3 else values[..., None, :, :])).sum(-2)


@composition
def look_up(
    roles=lambda query, keys, values: (query, keys, values),
    compare=dots,
    scale=lambda scores, keys: scores,
    mix=lambda weights, values: weights @ values,
    finish=lambda answer, weights, query, values: answer,
    **decisions,
):
    """A soft lookup made of decisions; those that are not named are the softmax's."""
    softmax = Softmax(**decisions)

    def answer(query, keys, values, temperature=1.0):
        query, keys, values = roles(query, keys, values)
        weights = softmax(scale(compare(query, keys), keys), -1, temperature)
        return finish(mix(weights, values), weights, query, values)

    return answer


@composition
def curve(
    roles=lambda x_query, x, y: (x_query, x, y),
    gaps=lambda x_query, x: x_query[..., :, None] - x[..., None, :],
    distance=lambda gaps, h: gaps**2,
    half=2,
    width=lambda h: h**2,
    sign=-1,
    mix=lambda weights, y: (weights * y[..., None, :]).sum(-1),
    finish=lambda answer, weights, y, h: answer,
    **decisions,
):
    """A kernel regression made of decisions: softmax(sign · distance / (half · width))."""
    softmax = Softmax(**decisions)

    def answer(x_query, x, y, bandwidth):
        x_query, x, y = roles(x_query, x, y)
        squares = distance(gaps(x_query, x), bandwidth)
        weights = softmax(sign * squares / (half * width(bandwidth)))
        return finish(mix(weights, y), weights, y, bandwidth)

    return answer


def evened(w, x, T, axis):
    return np.where(np.isnan(w), 1 / w.shape[-1], w)


def first_of_the_nearest(w, x, T, axis):
    nearest = np.arange(x.shape[-1]) == x.argmax(-1)[..., None]
    return np.where(np.isnan(w), nearest, w)


# --- exercises -------------------------------------------------------------------------------

SOFTMAX = Exercise(
    target="lookup.softmax",
    reference=lookup.softmax,
    section="Chapter 3, “Softmax turns scores into weights”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion(
            "weights in proportion to exp(x), summing to 1",
            3,
            SOFTMAX_CASES(
                SOFTMAX_BY_HAND,
                Case((TWO_ROWS,), note="two rows"),
                row("n=7", given={"x": Drawn("5 n", normal)}),
            ),
        ),
        Criterion(
            "along any axis",
            2,
            SOFTMAX_CASES(
                Case((THREE_ROWS,), {"axis": 0}),
                row("n=7", batch=(3, 5), given={"axis": 1}),
                row("n=7", batch=(3, 5), given={"axis": -3}),
            ),
        ),
        Criterion(
            "at any temperature",
            2,
            SOFTMAX_CASES(
                replace(SOFTMAX_BY_HAND, kwargs={"temperature": 0.5}),
                row("n=7", batch=(5,), given={"temperature": 3.0}),
                row("n=5", batch=(3,), given={"axis": 0, "temperature": 0.2}),
            ),
        ),
        Criterion(
            "finite for large scores",
            2,
            SOFTMAX_CASES(
                row("n=5", given={"x": Drawn("n", near(1e4))}, note="scores near 10000"),
                row("n=5", given={"x": Drawn("2 n", near(-1e4))}, note="scores near −10000"),
                row("n=5", given={"x": Drawn("3 n", near(1e4, 0, -1e4))}, note="rows far apart"),
                Case((FAR_APART,), note="scores thousands apart in one row"),
                row(
                    "n=5",
                    given={"x": Drawn("3 n", near(1e4)), "temperature": 0.5},
                    note="large and divided",
                ),
                SOFTMAX_ROWS.extreme[0],
            ),
        ),
        Criterion(
            "batches, memory layout, whole numbers, float32",
            1,
            SOFTMAX_CASES(
                *SOFTMAX_ROWS.batches,
                row("n=1", batch=(2, 3, 5), note="n = 1"),
                SOFTMAX_ROWS.single.but(batch=(5,)),
                *SOFTMAX_ROWS.integers,
                SOFTMAX_ROWS.extreme[1],
                once_more(SOFTMAX_BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        *made(
            softmax_of,
            *soft.OF_THE_MAXIMUM,
            soft.MAXIMUM_OR_ZERO,
            soft.MEAN,
            *soft.OF_THE_TEMPERATURE,
            *soft.OF_THE_WEIGHTS,
            soft.NO_EXPONENTIAL.called("the exponential is missing").said(
                "You divide the scores by their sum. Scores may be negative, or sum to 0: "
                "exponentiate them first, which makes every one positive."
            ),
            soft.ONLY_THE_LARGEST,
            soft.ANOTHER_FACTOR,
            soft.TURNED_ROUND,
            soft.LOGARITHM,
            soft.ROUNDED,
            soft.GUARD_ALONE,
            Slip(
                "float32 in between",
                "You convert the scores to float32, which knows about seven digits: of a score "
                "near 10000 too few are left behind the point. Keep the dtype of x.",
                {"exponents": lambda x, T: (x / T).astype(np.float32)},
                lambda exponents: {"exponents": exponents},
                (lambda x, T: x.astype(np.float32) / T,),
            ),
            Slip(
                "the largest size is subtracted, not the maximum",
                "You subtract the largest absolute value. Very negative scores are then farther "
                "below 0 than before, all terms are 0, and 0/0 is NaN. Subtract the maximum.",
                {"top": lambda z, axis, x: np.abs(z).max(axis=axis, keepdims=True)},
            ),
            soft.WHOLE_NUMBERS,
            Slip(
                "the argument axis is ignored",
                "You always work along the last axis. Take the maximum and the sum along the "
                "argument `axis`.",
                {"along": lambda axis, ndim: -1},
            ),
            Slip(
                "always along the first axis",
                "You normalise along axis 0, so the columns of a matrix sum to 1 (its rows, were "
                "the matrix transposed). Take the maximum and the sum along the argument `axis`, "
                "which is −1, the last, unless the caller says otherwise.",
                {"along": lambda axis, ndim: 0},
            ),
            Slip(
                "the whole array sums to 1",
                "You divide by the sum of all entries. For a single vector that is softmax; in a "
                "matrix each slice along `axis` has a budget of 1 of its own: "
                "`sum(axis=axis, keepdims=True)`.",
                {"along": lambda axis, ndim: None},
                lambda total: {"total": total},
                (lambda e, axis, z: e.sum(),),
            ),
            Slip(
                "the sum runs along the last axis",
                "Your maximum is taken along `axis` and your sum along the last one. The sum runs "
                "along `axis` too.",
                {"total": lambda e, axis, z: e.sum(axis=-1, keepdims=True)},
            ),
            Slip(
                "the maximum is taken along the last axis",
                "What you subtract is the largest along the last axis, and differs within a slice "
                "along `axis`: that changes the weights. Take the maximum along `axis`.",
                {"top": lambda z, axis, x: z.max(axis=-1, keepdims=True)},
            ),
            Slip(
                "the sums lost their axis",
                "`e.sum(axis=axis)` has one axis less than `e`, and dividing by it pairs sums with "
                "the wrong entries, or fails. `keepdims=True` keeps the axis with length 1.",
                {"total": lambda e, axis, z: e.sum(axis=axis)},
            ),
            Slip(
                "the maxima lost their axis",
                "`x.max(axis=axis)` has one axis less than `x`, and subtracting it pairs maxima "
                "with the wrong entries, or fails. `keepdims=True` keeps the axis with length 1.",
                {"top": lambda z, axis, x: z.max(axis=axis)},
            ),
            Slip(
                "a new axis in second place",
                "`[:, None]` gives the axis back that the sum took where that was the second of "
                "two, and nowhere else. `keepdims=True` keeps it, whichever it was.",
                {
                    "top": lambda z, axis, x: z.max(axis=axis)[:, None],
                    "total": lambda e, axis, z: e.sum(axis=axis)[:, None],
                },
            ),
            Slip(
                "summed before exponentiating",
                "Your denominator is exp of the sum of the scores. Softmax has the sum of the "
                "exps: exponentiate first, then sum.",
                {
                    "top": nothing,
                    "total": lambda e, axis, z: np.exp(z.sum(axis=axis, keepdims=True)),
                },
            ),
            Slip(
                "summed before exponentiating, after the shift",
                "You subtract the maximum, as you should, and then divide by exp of the sum. "
                "Softmax has the sum of the exps: exponentiate first, then sum.",
                {"total": lambda e, axis, z: np.exp(z.sum(axis=axis, keepdims=True))},
            ),
            Slip(
                "divided by the sum of the scores",
                "You exponentiate and divide by the sum of the scores themselves. The denominator "
                "is the sum of the exponentials.",
                {"total": lambda e, axis, z: z.sum(axis=axis, keepdims=True)},
                lambda top: {
                    "top": top,
                    "total": lambda e, axis, z: z.sum(axis=axis, keepdims=True),
                },
                (nothing,),
            ),
            Slip(
                "divided by the root of the length",
                "You divide the scores by the root of their number. Nothing but the temperature "
                "divides them.",
                {"exponents": lambda x, T: x / T / x.shape[-1] ** 0.5},
                lambda power: {"exponents": lambda x, T: x / T * x.shape[-1] ** power},
                (-1, 0.5),
            ),
        ),
        Misconception(
            "the argument is changed in place",
            "`x -= …` writes into the caller's array, which then holds other scores than before. "
            "`x = x - …` makes a new one.",
            softmax_in_place,
            also=(softmax_divided_in_place,),
        ),
    ),
    hints=(
        "Three steps: divide by the temperature, exponentiate, divide by the sum along the axis.",
        "`keepdims=True` keeps the summed axis with length 1, so that the division lines up.",
        "exp(10000) is infinity. Which number can you subtract from all scores of a slice without "
        "changing a weight, so that the largest exponent is 0?",
    ),
)

SOFT_LOOKUP = Exercise(
    target="lookup.soft_lookup",
    reference=lookup.soft_lookup,
    section="Chapter 3, “A lookup that returns a blend”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion(
            "one query, values that are numbers",
            2,
            LOOKUP_CASES(LOOKUP_BY_HAND, LOOKUP_ROW.but(given={**ONE_QUERY, **NUMBERS})),
        ),
        Criterion(
            "many queries, values that are vectors",
            2,
            LOOKUP_CASES(
                TWO_QUERIES,
                LOOKUP_ROW.but(),
                LOOKUP_ROW.but(given=NUMBERS, note="many queries, values that are numbers"),
                LOOKUP_ROW.but(given=ONE_QUERY, note="one query, values that are vectors"),
            ),
        ),
        Criterion(
            "at any temperature",
            1,
            LOOKUP_CASES(
                LOOKUP_ROW.but(given={"temperature": 0.4}),
                LOOKUP_ROW.but(given={**ONE_QUERY, **NUMBERS, "temperature": 3.0}),
            ),
        ),
        Criterion(
            "sizes of 1, memory layout",
            1,
            LOOKUP_CASES(
                row("m=1 n=5 d=7 d_v=2", note="m = 1: the result keeps its axis"),
                row("m=3 n=1 d=7 d_v=2", note="n = 1"),
                row("m=3 n=5 d=7 d_v=1", turned=True, note="d_v = 1: the result keeps its axis"),
            ),
        ),
        Criterion(
            "batches",
            1,
            LOOKUP_CASES(
                *LOOKUP_ROWS.batches,
                row(
                    "m=3 n=5 d=7 d_v=4",
                    batch=(2,),
                    given=ONE_DICTIONARY,
                    note="a batch of queries, one dictionary",
                ),
            ),
        ),
        Criterion(
            "large, small and whole numbers, float32",
            1,
            LOOKUP_CASES(
                LARGE_SCORES.but(note="scores in the thousands"),
                LARGE_SCORES.but(given={"temperature": 0.5}, note="large and divided"),
                VERY_NEGATIVE,
                LOOKUP_ROWS.single,
                replace(LOOKUP_BY_HAND, args=WHOLE_NUMBERS_BY_HAND, note="whole numbers"),
                *LOOKUP_ROWS.extreme,
                once_more(LOOKUP_BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    ),
    misconceptions=made(
        look_up,
        *soft.OF_THE_MAXIMUM,
        soft.MAXIMUM_OR_ZERO,
        soft.GUARD_ALONE,
        *soft.OF_THE_TEMPERATURE,
        *soft.OF_THE_WEIGHTS,
        soft.ANOTHER_FACTOR,
        soft.NO_EXPONENTIAL.called("the scores are divided by their sum").said(
            "You divide the dot products by their sum. They may be negative or sum to 0, and then "
            "these are no shares. Softmax exponentiates first."
        ),
        soft.ONLY_THE_LARGEST.called("only the best match is returned").said(
            "You return the value of the key with the highest score: a hard lookup. A soft one "
            "gives every value a share, `softmax(scores) @ values`."
        ),
        soft.TURNED_ROUND,
        soft.OVER_QUERIES,
        soft.OVER_AXIS_0,
        soft.OVER_AXIS_1,
        soft.OVER_EVERYTHING,
        Slip(
            "the scores are the weights",
            "You mix the values with the dot products themselves, which may be negative and do not "
            "sum to 1. Put them through softmax first.",
            {"after": lambda w, x, T, axis: x / T},
        ),
        Slip(
            "cosine similarity in place of the dot product",
            "You divide queries and keys by their lengths. This lookup compares by the plain dot "
            "product: a longer key counts for more.",
            {"compare": lambda query, keys: dots(unit(query), unit(keys))},
            lambda compare: {"compare": compare},
            (lambda q, k: dots(q, unit(k)), lambda q, k: dots(unit(q), k)),
        ),
        Slip(
            "distance in place of the dot product",
            "Your scores are negative squared distances, as in kernel regression. This lookup "
            "compares by the plain dot product, `query @ keys.T`.",
            {"compare": lambda query, keys: -(apart(query, keys) ** 2) / 2},
            lambda compare: {"compare": compare},
            (lambda query, keys: -(apart(query, keys) ** 2), lambda q, k: -apart(q, k)),
        ),
        Slip(
            "the scores are divided by √d",
            "You divide the dot products by the root of the key's length. That scaling comes in a "
            "later chapter; here the score is the plain dot product, over the temperature.",
            {"scale": lambda scores, keys: scores / keys.shape[-1] ** 0.5},
        ),
        Slip(
            "the scores are divided by the number of features",
            "You divide the dot products by d, which makes them means. The score is the plain dot "
            "product, over the temperature.",
            {"scale": lambda scores, keys: scores / keys.shape[-1]},
            lambda power: {"scale": lambda scores, keys: scores * keys.shape[-2] ** power},
            (-1, -0.5),
        ),
        Slip(
            "the keys ask",
            "Your scores are `keys @ query.T`, a row for each key. Row i belongs to query i: "
            "`query @ keys.T`, shape (m, n).",
            {"compare": lambda query, keys: keys @ (query if query.ndim == 1 else swapped(query))},
        ),
        Slip(
            "query i meets key i only",
            "`query * keys` pairs each query with one key, or fails. Every query is compared with "
            "every key: a matrix product, `query @ keys.T`.",
            {"compare": lambda query, keys: (query * keys).sum(-1)},
        ),
        Slip(
            "the keys are blended, not the values",
            "You return `weights @ keys`. The keys are there to be compared with; what comes back "
            "is a blend of the values.",
            {"roles": lambda query, keys, values: (query, keys, keys)},
        ),
        Slip(
            "keys and values exchanged",
            "You compare the queries with the values and blend the keys. Compare with `keys`, "
            "blend `values`.",
            {"roles": lambda query, keys, values: (query, values, keys)},
        ),
        Slip(
            "stops at the weights",
            "You return the weights of the keys. One step is missing: `weights @ values`.",
            {"finish": lambda answer, weights, query, values: weights},
        ),
        Slip(
            "the weights come back too",
            "You return the answer and the weights. The answer alone is asked for.",
            {"finish": lambda answer, weights, query, values: (answer, weights)},
        ),
        Slip(
            ".T on a batch",
            "`keys.T` reverses all axes, the batch's too. Swap the last two only: "
            "`np.swapaxes(keys, -1, -2)`.",
            {"compare": lambda query, keys: query @ keys.T},
        ),
        Slip(
            "np.dot on a batch",
            "`np.dot` pairs every sequence of one batch with every sequence of the other. `@` "
            "takes them one by one.",
            {"mix": lambda weights, values: np.dot(weights, values)},
            lambda compare: {"compare": compare},
            (lambda query, keys: np.dot(query, swapped(keys)),),
        ),
        Slip(
            "numbers as values are spread over a new axis",
            "Values of shape (n,) are one number for each key. A new axis behind your weights "
            "pairs them with the wrong one, and what is summed over are not the keys: "
            "`weights @ values` does for both kinds of values.",
            {"mix": lambda w, v: over_new_axis(w, v) if w.ndim > 1 else w @ v},
            lambda mix: {"mix": mix},
            (over_new_axis,),
        ),
        Slip(
            "axes of length 1 are dropped",
            "You squeeze the result, so that a matrix with a single query, or values with a single "
            "column, lose that axis. A query of shape (1, d) gives a result with m = 1.",
            {"finish": lambda answer, weights, query, values: np.squeeze(answer)},
        ),
        Slip(
            "an axis of length 1 stays",
            "You make a matrix of a single query, or a column of values that are numbers, and the "
            "result keeps the axis that you added. Take it off again.",
            {"finish": lambda u, w, query, values: u[None] if query.ndim == 1 else u},
            lambda finish: {"finish": finish},
            (
                lambda u, w, query, values: u[..., None] if values.ndim == 1 else u,
                lambda u, w, query, values: u.reshape(
                    ((1,) if query.ndim == 1 else ()) + u.shape + ((1,) if values.ndim == 1 else ())
                ),
            ),
        ),
        Slip(
            "the blend is averaged once more",
            "You divide by the number of keys. The weights already sum to 1: the weighted sum is "
            "the average.",
            {"mix": lambda weights, values: weights @ values / weights.shape[-1]},
        ),
        Slip(
            "the answer is cut to whole numbers",
            "Where the values are whole numbers, your answer is cut to whole numbers too: an array "
            "made like `values`, by `np.zeros_like` say, holds integers. A blend has decimals.",
            {"finish": lambda u, w, query, values: np.asarray(u).astype(values.dtype)},
        ),
    ),
    hints=(
        "Three steps: a score for every key, weights from the scores, a weighted sum of values.",
        "`query @ np.swapaxes(keys, -1, -2)` has shape (n,) for a query (d,) and (..., m, n) for "
        "queries (..., m, d).",
        "`weights @ values` does for values (n,) and (n, d_v) alike.",
    ),
)

KERNEL_REGRESSION = Exercise(
    target="lookup.kernel_regression",
    reference=lookup.kernel_regression,
    section="Chapter 3, “A curve through noisy points”",
    difficulty=2,
    minutes=20,
    criteria=(
        Criterion(
            "an average of y, weighted by a Gaussian of the distance",
            3,
            CURVE_CASES(CURVE_BY_HAND, CURVE_ROW.but()),
        ),
        Criterion(
            "at any bandwidth",
            1,
            CURVE_CASES(*(CURVE_ROW.but(given={"bandwidth": h}) for h in (0.6, 1.5, 4.0))),
        ),
        Criterion(
            "finite far from every x",
            2,
            CURVE_CASES(
                far_apart([60.0, -50.0], [0.0, 1.0, 2.0], "queries far from every x"),
                far_apart([1e4, 1.2, -1e4], [1.0, 3.0, 2.0], "some queries far from every x"),
                far_apart([50.01, 0.5], [0.0, 100.0], "far from two points, nearly half-way"),
                CURVE_ROW.but(given={"bandwidth": 1e-5}, note="a bandwidth far below the spacing"),
                CURVE_ROWS.extreme[0],
            ),
        ),
        Criterion(
            "any number of queries and points",
            1,
            CURVE_CASES(
                row("m=1 n=5", note="m = 1"),
                row("m=3 n=1", note="n = 1: the curve is flat"),
                row("m=11 n=5", given={"bandwidth": 0.7}, note="more queries than points"),
            ),
        ),
        Criterion("batches", 1, CURVE_CASES(*CURVE_ROWS.batches)),
        Criterion(
            "large, small and whole numbers, float32",
            1,
            CURVE_CASES(
                CURVE_ROW.but(factor={"y": 1e7}, note="large y"),
                CURVE_ROW.but(
                    factor={"x": 1e3, "x_query": 1e3},
                    given={"bandwidth": 700.0},
                    note="large x, with a bandwidth to match",
                ),
                CURVE_ROWS.single,
                *(one.but(given={"bandwidth": 9.0}) for one in CURVE_ROWS.integers),
                CURVE_ROWS.extreme[1].but(factor={"x_query": 1e-7}),
                once_more(CURVE_BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    ),
    misconceptions=made(
        curve,
        soft.ANOTHER_BASE,
        Slip(
            "the squared distance is not halved",
            "Your weights are exp(−(distance/h)²). The Gaussian has a 2: exp(−distance²/(2h²)). "
            "Without it your curve is the one for a bandwidth of h/√2.",
            {"half": 1},
        ),
        Slip(
            "the 2 is squared with the bandwidth",
            "You divide by (2h)², four times h², where the Gaussian has 2h². Your curve is the one "
            "for a bandwidth of √2·h.",
            {"half": 4},
        ),
        Slip(
            "another number than 2 in the exponent",
            "The exponent is −distance²/(2h²). You divide by another number than 2, which is the "
            "curve for another bandwidth.",
            {"half": 0.5},
            lambda number: {"half": number},
            Between(0.02, 200.0),
        ),
        Slip(
            "the bandwidth is not squared",
            "You divide the squared distance by 2h. Distance and bandwidth have the same unit, so "
            "both are squared: distance²/(2h²).",
            {"width": lambda h: h},
        ),
        Slip(
            "the distance is not squared",
            "Your weights fall as exp(−|distance|/h), with a sharp peak (a Laplace kernel). The "
            "Gaussian takes the square: distance²/(2h²).",
            {"distance": lambda gaps, h: np.abs(gaps), "half": 1, "width": lambda h: h},
            lambda sizes: {
                "distance": lambda gaps, h: np.abs(gaps),
                "half": sizes[0],
                "width": lambda h: h ** sizes[1],
            },
            ((2, 2), (1, 2), (2, 1)),
        ),
        Slip(
            "the minus sign is missing",
            "Your weights grow with the distance: the farthest point counts most. The exponent is "
            "−distance²/(2h²).",
            {"sign": 1},
        ),
        Slip(
            "multiplied by the bandwidth",
            "You multiply the distance by h, so a larger bandwidth makes the window narrower. "
            "Divide by it.",
            {"width": lambda h: 1 / h**2},
            lambda power: {"width": lambda h: h**power},
            (-1, -4),
        ),
        Slip(
            "the bandwidth is ignored",
            "Your curve is the same at every bandwidth. Divide the distance by it.",
            {"width": lambda h: 1},
        ),
        Slip(
            "another power of the bandwidth",
            "You divide the squared distance by the bandwidth's root, or its third or fourth "
            "power. Distance and bandwidth have the same unit: both are squared.",
            {"width": lambda h: h**0.5},
            lambda power: {"width": lambda h: h**power},
            (3, 4),
        ),
        Slip(
            "every point within the bandwidth counts the same",
            "You average the points that are no farther than h. The Gaussian lets every point "
            "count, the less the farther away: exp(−distance²/(2h²)).",
            {"distance": lambda gaps, h: np.where(np.abs(gaps) <= h, 0.0, np.inf)},
        ),
        soft.NOTHING_SUBTRACTED.called("0/0 far from the points").said(
            "Far from every x all your kernel values are 0, and 0/0 is NaN. Hand the exponents to "
            "your `softmax`: it subtracts the largest, so the nearest point always counts."
        ),
        soft.GUARD_ALONE.called("0 far from the points").said(
            "Far from every x all your kernel values are 0, and a guard in the denominator (or "
            "nan_to_num) turns that into the answer 0, which no average of y has to contain. Hand "
            "the exponents to your `softmax`: the nearest point then always counts.",
        ),
        Slip(
            "the mean far from the points",
            "Far from every x you answer with the mean of y, be it that you clip the exponents or "
            "replace 0/0. The nearest point has nearly all of the weight there: hand the exponents "
            "to your `softmax`.",
            {"top": nothing, "after": evened},
            lambda bound: {"exponents": lambda x, T: np.maximum(x, bound)},
            (-700, -500, -100),
        ),
        Slip(
            "the nearest y alone far from the points",
            "Far from every x you answer with the y of one nearest point. Another one that is as "
            "near, or nearly, counts there too: hand the exponents to your `softmax`.",
            {"top": nothing, "after": first_of_the_nearest},
        ),
        soft.WHOLE_MAXIMUM,
        Slip(
            "the weights are not normalised",
            "You add up kernel × y without dividing by the sum of the kernel, so your curve is far "
            "from 0 where points are dense. The weights of a query sum to 1.",
            {"top": nothing, "total": lambda e, axis, z: 1},
            lambda finish: {"top": nothing, "total": lambda e, axis, z: 1, "finish": finish},
            (
                lambda u, w, y, h: u / (h * (2 * np.pi) ** 0.5),
                lambda u, w, y, h: u / w.shape[-1],
            ),
        ),
        soft.ANOTHER_TOTAL,
        soft.GUARD,
        soft.TWICE,
        soft.OVER_QUERIES.said(
            "You normalise along the axis of the queries. Each query has a budget of 1 to spend on "
            "the points: softmax runs along the last axis of (m, n)."
        ),
        soft.OVER_AXIS_0,
        soft.OVER_AXIS_1,
        soft.OVER_EVERYTHING,
        soft.ONLY_THE_LARGEST.called("the nearest y is returned").said(
            "You return the y of the nearest x, a hard lookup. The curve is an average in which "
            "every point has a share."
        ),
        Slip(
            "the product in place of the distance",
            "Your scores are x_query · x. For points on a line that is no measure of nearness: a "
            "large x wins everywhere. Use −(x_query − x)²/2.",
            {
                "gaps": lambda x_query, x: x_query[..., :, None] * x[..., None, :],
                "distance": lambda products, h: -products,
                "half": 1,
            },
        ),
        Slip(
            "x and y exchanged",
            "You compare the queries with y and average x. Weights come from the distance to x; "
            "what is averaged is y.",
            {"roles": lambda x_query, x, y: (x_query, y, x)},
        ),
        Slip(
            "the weights are returned",
            "You return the matrix of weights, shape (m, n). One step is missing: average y with "
            "it, which leaves shape (m,).",
            {"finish": lambda answer, weights, y, h: weights},
        ),
        Slip(
            "a column is returned",
            "Your result has a last axis of length 1, from turning y into a column. Take it off: "
            "`[..., 0]`.",
            {"finish": lambda answer, weights, y, h: answer[..., None]},
        ),
        Slip(
            "the average is averaged once more",
            "You divide by the number of points. The weights already sum to 1: the weighted sum is "
            "the average.",
            {"mix": lambda weights, y: (weights * y[..., None, :]).mean(-1)},
        ),
        Slip(
            "a batch of y is read as a matrix",
            "`weights @ y` takes y of shape (batch, n) for one matrix. Make it a batch of columns, "
            "`(weights @ y[..., None])[..., 0]`, or sum `weights * y[..., None, :]` over the last "
            "axis.",
            {"mix": lambda weights, y: weights @ y},
            lambda mix: {"mix": mix},
            (lambda weights, y: np.dot(weights, y), lambda weights, y: (weights * y).sum(-1)),
        ),
        Slip(
            "the new axes stand in front of the batch",
            "`x_query[:, None] - x[None, :]` puts the new axes among the batch axes. Count from "
            "the end: `x_query[..., :, None] - x[..., None, :]`.",
            {"gaps": lambda x_query, x: x_query[:, None] - x[None, :]},
        ),
        Slip(
            "the answer is cut to whole numbers",
            "Where y are whole numbers, your curve is cut to whole numbers too: an array made like "
            "an argument, by `np.zeros_like` say, holds integers. An average has decimals.",
            {"finish": lambda answer, weights, y, h: answer.astype(y.dtype)},
        ),
    ),
    hints=(
        "All distances at once: `x_query[..., :, None] - x[..., None, :]` has shape (..., m, n).",
        "The Gaussian is an exponential. What do you hand to `softmax` so that its exponential is "
        "the Gaussian?",
        "The result is a weighted average of y along the last axis of the weights.",
    ),
)

EXERCISES = (SOFTMAX, SOFT_LOOKUP, KERNEL_REGRESSION)
