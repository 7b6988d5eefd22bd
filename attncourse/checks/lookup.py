"""The exercises of chapter 3, soft lookup."""

import numpy as np

from attncourse import lookup
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)

# --- cases: softmax --------------------------------------------------------------------------


def softmax_values(rng: Rng) -> list[Case]:
    return [
        Case((np.array([0.0, 1.0, 2.0]),)),
        Case((np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, -1.0, 2.0]]),), note="two rows"),
        Case((rng.normal(size=(5, 7)),)),
    ]


def softmax_axes(rng: Rng) -> list[Case]:
    return [
        Case((np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]),), {"axis": 0}),
        Case((rng.normal(size=(3, 5, 7)),), {"axis": 1}),
        Case((rng.normal(size=(3, 5, 7)),), {"axis": -3}),
    ]


def softmax_temperatures(rng: Rng) -> list[Case]:
    return [
        Case((np.array([0.0, 1.0, 2.0]),), {"temperature": 0.5}),
        Case((rng.normal(size=(5, 7)),), {"temperature": 3.0}),
        Case((rng.normal(size=(3, 5)),), {"axis": 0, "temperature": 0.2}),
    ]


def softmax_large(rng: Rng) -> list[Case]:
    levels = np.array([[1e4], [0.0], [-1e4]])
    wide = np.array([[0.0, 1000.0, 1001.0], [-1000.0, 2.0, 0.0]])
    return [
        Case((1e4 + rng.normal(size=5),), note="every score near 10000"),
        Case((-1e4 + rng.normal(size=(2, 5)),), note="every score near −10000"),
        Case((levels + rng.normal(size=(3, 5)),), note="rows at very different levels"),
        Case((wide,), note="scores a thousand apart in one row"),
        Case((1e4 + rng.normal(size=(3, 5)),), {"temperature": 0.5}, note="large and divided"),
    ]


def softmax_batches(rng: Rng) -> list[Case]:
    return [
        Case((rng.normal(size=(2, 5, 7)),), note="a batch of 2"),
        Case((rng.normal(size=(2, 3, 5, 1)),), note="two batch axes, n = 1"),
        Case((rng.normal(size=(7, 5)).T,), note="not contiguous in memory"),
        Case((rng.normal(size=(5, 3)).astype(np.float32),), note="float32"),
    ]


# --- cases: soft_lookup ----------------------------------------------------------------------


def dictionary(rng: Rng, m: int, n: int, d: int, d_v: int, *batch: int) -> tuple:
    """A random query of shape (m, d), keys (n, d) and values (n, d_v), behind batch axes."""
    return (
        rng.normal(size=(*batch, m, d)),
        rng.normal(size=(*batch, n, d)),
        rng.normal(size=(*batch, n, d_v)),
    )


def lookup_single(rng: Rng) -> list[Case]:
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    q, k, v = dictionary(rng, 1, 7, 3, 1)
    return [
        Case((np.array([1.0, 0.0]), keys, np.array([10.0, 20.0, 40.0]))),
        Case((q[0], k, v[:, 0])),
    ]


def lookup_many(rng: Rng) -> list[Case]:
    query = np.array([[1.0, 0.0], [0.0, 2.0]])
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    values = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 4.0, 0.0, 1.0], [3.0, 3.0, 0.0, 5.0]])
    q, k, v = dictionary(rng, 5, 7, 3, 2)
    return [
        Case((query, keys, values)),
        Case((q, k, v)),
        Case((q, k, v[:, 0]), note="many queries, values that are numbers"),
        Case((q[0], k, v), note="one query, values that are vectors"),
    ]


def lookup_temperatures(rng: Rng) -> list[Case]:
    q, k, v = dictionary(rng, 5, 7, 3, 2)
    return [
        Case((q, k, v), {"temperature": 0.4}),
        Case((q[0], k, v[:, 0]), {"temperature": 3.0}),
    ]


def lookup_sizes(rng: Rng) -> list[Case]:
    q, k, v = dictionary(rng, 3, 5, 7, 2)
    return [
        Case((q[:1], k, v), note="m = 1: the result keeps its axis"),
        Case((q, k[:1], v[:1]), note="n = 1"),
        Case((q, k, v[:, :1]), note="d_v = 1: the result keeps its axis"),
        Case(
            (q, np.asfortranarray(k), np.asfortranarray(v)[:, ::-1]),
            note="not contiguous in memory",
        ),
    ]


def lookup_batches(rng: Rng) -> list[Case]:
    q, k, v = dictionary(rng, 3, 5, 7, 4, 2)
    return [
        Case((q, k, v), note="a batch of 2"),
        Case(dictionary(rng, 5, 3, 2, 7, 2, 3), note="two batch axes"),
        Case((q, k[0], v[0]), note="a batch of queries, one dictionary"),
    ]


def lookup_numbers(rng: Rng) -> list[Case]:
    q, k, v = dictionary(rng, 5, 7, 3, 2)
    f32 = [a.astype(np.float32) for a in dictionary(rng, 5, 7, 3, 2)]
    return [
        Case((100 * q, 100 * k, v), note="scores in the thousands"),
        Case((q, k, 1e6 * v), note="large values"),
        Case(tuple(f32), note="float32"),
    ]


# --- cases: kernel_regression ----------------------------------------------------------------


def spread(rng: Rng, *shape: int) -> np.ndarray:
    """Points in no order along the last axis, at least half a unit apart."""
    x = np.arange(shape[-1]) + rng.uniform(-0.25, 0.25, shape)
    return rng.permuted(x, axis=-1)


def curve_values(rng: Rng) -> list[Case]:
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0, 6.0])
    return [
        Case((np.array([0.0, 1.0, 3.0]), x, y, 1.0)),
        Case((rng.uniform(0, 6, 5), spread(rng, 7), rng.normal(size=7), 1.0)),
    ]


def curve_bandwidths(rng: Rng) -> list[Case]:
    x_query, x, y = rng.uniform(0, 6, 5), spread(rng, 7), rng.normal(size=7)
    return [Case((x_query, x, y, h)) for h in (0.5, 1.5, 4.0)]


def curve_far(rng: Rng) -> list[Case]:
    x, y = np.array([0.0, 1.0, 2.0]), np.array([5.0, 7.0, 9.0])
    points, heights = spread(rng, 7), rng.normal(size=7)
    mixed = np.array([1e4, 1.2, 3.0, 4.1, -1e4])
    return [
        Case((np.array([60.0, -50.0]), x, y, 1.0), note="queries far from every x"),
        Case((mixed, points, heights, 1.0), note="some queries far from every x"),
        Case((points + 0.1, points, heights, 0.001), note="a bandwidth far below the spacing"),
    ]


def curve_sizes(rng: Rng) -> list[Case]:
    x, y = spread(rng, 5), rng.normal(size=5)
    pairs = np.stack([x, y], axis=1)
    return [
        Case((np.array([1.3]), x, y, 0.7), note="m = 1"),
        Case((rng.uniform(0, 4, 3), x[:1], y[:1], 0.7), note="n = 1: the curve is flat"),
        Case((rng.uniform(0, 4, 11), x, y, 0.7), note="more queries than points"),
        Case(
            (rng.uniform(0, 4, 3), pairs[:, 0], pairs[:, 1], 0.7), note="not contiguous in memory"
        ),
    ]


def curve_batches(rng: Rng) -> list[Case]:
    return [
        Case(
            (rng.uniform(0, 6, (2, 5)), spread(rng, 2, 7), rng.normal(size=(2, 7)), 0.7),
            note="a batch of 2",
        ),
        Case(
            (rng.uniform(0, 4, (2, 3, 7)), spread(rng, 2, 3, 5), rng.normal(size=(2, 3, 5)), 0.7),
            note="two batch axes",
        ),
    ]


def curve_numbers(rng: Rng) -> list[Case]:
    x_query, x, y = rng.uniform(0, 6, 5), spread(rng, 7), rng.normal(size=7)
    f32 = [a.astype(np.float32) for a in (x_query, x, y)]
    return [
        Case((x_query, x, 1e6 * y, 0.7), note="large y"),
        Case((1e3 * x_query, 1e3 * x, y, 700.0), note="large x, with a bandwidth to match"),
        Case((*f32, 0.7), note="float32"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def over_sum(e, axis=-1):
    return e / e.sum(axis=axis, keepdims=True)


def shifted(x, axis=-1, temperature=1.0):
    """exp of the scores over T, each slice's largest subtracted."""
    return np.exp((x - x.max(axis=axis, keepdims=True)) / temperature)


def naive(x, axis=-1, temperature=1.0):
    return over_sum(np.exp(x / temperature), axis)


def softmax_whole_max(x, axis=-1, temperature=1.0):
    return over_sum(np.exp((x - x.max()) / temperature), axis)


def softmax_max_with_zero(x, axis=-1, temperature=1.0):
    top = x.max(axis=axis, keepdims=True, initial=0)
    return over_sum(np.exp((x - top) / temperature), axis)


def softmax_minus_min(x, axis=-1, temperature=1.0):
    return over_sum(np.exp((x - x.min(axis=axis, keepdims=True)) / temperature), axis)


def softmax_undivided_max(x, axis=-1, temperature=1.0):
    return over_sum(np.exp(x / temperature - x.max(axis=axis, keepdims=True)), axis)


def softmax_last_axis(x, axis=-1, temperature=1.0):
    return over_sum(shifted(x, -1, temperature))


def softmax_first_axis(x, axis=-1, temperature=1.0):
    return over_sum(shifted(x, 0, temperature), 0)


def softmax_whole_sum(x, axis=-1, temperature=1.0):
    e = np.exp((x - x.max()) / temperature)
    return e / e.sum()


def softmax_without_keepdims(x, axis=-1, temperature=1.0):
    e = shifted(x, axis, temperature)
    return e / e.sum(axis=axis)


def softmax_times_temperature(x, axis=-1, temperature=1.0):
    return over_sum(shifted(x, axis, 1 / temperature), axis)


def softmax_no_temperature(x, axis=-1, temperature=1.0):
    return over_sum(shifted(x, axis), axis)


def softmax_divided_afterwards(x, axis=-1, temperature=1.0):
    return over_sum(shifted(x, axis), axis) / temperature


def softmax_exp_of_sum(x, axis=-1, temperature=1.0):
    z = x / temperature
    return np.exp(z) / np.exp(z.sum(axis=axis, keepdims=True))


def softmax_exp_of_shifted_sum(x, axis=-1, temperature=1.0):
    z = (x - x.max(axis=axis, keepdims=True)) / temperature
    return np.exp(z) / np.exp(z.sum(axis=axis, keepdims=True))


def softmax_no_exponential(x, axis=-1, temperature=1.0):
    return over_sum(x / temperature, axis)


def softmax_not_normalised(x, axis=-1, temperature=1.0):
    return shifted(x, axis, temperature)


def softmax_logarithm(x, axis=-1, temperature=1.0):
    z = (x - x.max(axis=axis, keepdims=True)) / temperature
    return z - np.log(np.exp(z).sum(axis=axis, keepdims=True))


def softmax_in_place(x, axis=-1, temperature=1.0):
    x -= x.max(axis=axis, keepdims=True)
    return over_sum(np.exp(x / temperature), axis)


def dots(query, keys):
    """Dot products of every query with every key."""
    return query @ np.swapaxes(keys, -1, -2)


def lookup_by(weights):
    """A wrong lookup: ``weights(query, keys, temperature)`` are what the values are mixed with."""

    def wrong(query, keys, values, temperature=1.0):
        return weights(query, keys, temperature) @ values

    return wrong


def lookup_hard(query, keys, values, temperature=1.0):
    best = dots(query, keys).argmax(axis=-1)  # (..., m)
    one_hot = np.eye(keys.shape[-2])[best]
    return one_hot @ values


def over_queries(query, keys, temperature):
    scores = dots(query, keys)
    return lookup.softmax(scores, axis=max(-2, -scores.ndim), temperature=temperature)


def by_cosine(query, keys, temperature):
    unit = [a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (query, keys)]
    return lookup.softmax(dots(*unit), temperature=temperature)


def by_distance(query, keys, temperature):
    gaps = query[..., None, :] - (keys if query.ndim == 1 else keys[..., None, :, :])
    return lookup.softmax(-(gaps**2).sum(-1) / 2, temperature=temperature)


def lookup_keys_returned(query, keys, values, temperature=1.0):
    return lookup.softmax(dots(query, keys), temperature=temperature) @ keys


def lookup_all_axes_reversed(query, keys, values, temperature=1.0):
    return lookup.softmax(query @ keys.T, temperature=temperature) @ values


def lookup_squeezed(query, keys, values, temperature=1.0):
    return np.squeeze(lookup.softmax(dots(query, keys), temperature=temperature) @ values)


def lookup_averaged_again(query, keys, values, temperature=1.0):
    return lookup.softmax(dots(query, keys), temperature=temperature) @ values / keys.shape[-2]


def lookup_result_divided(query, keys, values, temperature=1.0):
    return lookup.softmax(dots(query, keys)) @ values / temperature


def distances(x_query, x):
    return x_query[..., :, None] - x[..., None, :]


def average(A, y):
    return (A * y[..., None, :]).sum(-1)


def curve_by(scores):
    """A wrong curve: ``scores(distance, h)`` are what softmax is taken of."""

    def wrong(x_query, x, y, bandwidth):
        return average(lookup.softmax(scores(distances(x_query, x), bandwidth)), y)

    return wrong


def kernel(x_query, x, bandwidth):
    return np.exp(-(distances(x_query, x) ** 2) / (2 * bandwidth**2))


def curve_raw(x_query, x, y, bandwidth):
    K = kernel(x_query, x, bandwidth)
    return average(K / K.sum(-1, keepdims=True), y)


def curve_zero_when_far(x_query, x, y, bandwidth):
    K = kernel(x_query, x, bandwidth)
    return average(K / (K.sum(-1, keepdims=True) + 1e-12), y)


def curve_not_normalised(x_query, x, y, bandwidth):
    return average(kernel(x_query, x, bandwidth), y)


def curve_over_queries(x_query, x, y, bandwidth):
    z = distances(x_query, x) / bandwidth
    return average(lookup.softmax(-(z**2) / 2, axis=-2), y)


def curve_nearest(x_query, x, y, bandwidth):
    nearest = np.abs(distances(x_query, x)).argmin(-1)  # (..., m)
    return np.take_along_axis(y, nearest, axis=-1)


def curve_of_products(x_query, x, y, bandwidth):
    products = x_query[..., :, None] * x[..., None, :]
    return average(lookup.softmax(products, temperature=bandwidth**2), y)


def curve_weights(x_query, x, y, bandwidth):
    z = distances(x_query, x) / bandwidth
    return lookup.softmax(-(z**2) / 2)


def curve_column(x_query, x, y, bandwidth):
    return lookup.kernel_regression(x_query, x, y, bandwidth)[..., None]


def curve_without_batch(x_query, x, y, bandwidth):
    z = distances(x_query, x) / bandwidth
    return lookup.softmax(-(z**2) / 2) @ y


def curve_first_axes(x_query, x, y, bandwidth):
    z = (x_query[:, None] - x[None, :]) / bandwidth
    return average(lookup.softmax(-(z**2) / 2), y)


# --- exercises -------------------------------------------------------------------------------

SOFTMAX = Exercise(
    target="lookup.softmax",
    reference=lookup.softmax,
    section="Chapter 3, “Softmax turns scores into weights”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("weights in proportion to exp(x), summing to 1", 3, softmax_values),
        Criterion("along any axis", 2, softmax_axes),
        Criterion("at any temperature", 2, softmax_temperatures),
        Criterion("finite for large scores", 2, softmax_large),
        Criterion("batches, memory layout, float32", 1, softmax_batches),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "exp overflows",
            "You exponentiate the scores as they are. exp(10000) is infinity and exp(−10000) is 0, "
            "so the division gives NaN. Subtract each slice's largest score first, "
            "`x - x.max(axis=axis, keepdims=True)`: no weight changes, and every exponent is at "
            "most 0.",
            naive,
        ),
        Misconception(
            "the maximum of the whole array is subtracted",
            "You subtract one maximum from every row. A row far below it then has exponents so low "
            "that all its terms are 0, and 0/0 is NaN. Each slice needs its own maximum: "
            "`x.max(axis=axis, keepdims=True)`.",
            softmax_whole_max,
        ),
        Misconception(
            "nothing is subtracted where all scores are negative",
            "You subtract the larger of 0 and the maximum. A slice of very negative scores then "
            "stays where it is, all its terms are 0, and 0/0 is NaN. Subtract the maximum whatever "
            "its sign.",
            softmax_max_with_zero,
        ),
        Misconception(
            "the minimum is subtracted, not the maximum",
            "After subtracting the smallest score the others are above 0, and exp of a score 1000 "
            "above the smallest still overflows. Subtract the largest.",
            softmax_minus_min,
        ),
        Misconception(
            "the maximum is subtracted before it is divided by the temperature",
            "You compute `x / temperature - x.max(…)`. At temperature 1 this is right; at any "
            "other the maximum of x is not the maximum of x / temperature, and large scores "
            "overflow or vanish. Put the difference in brackets: "
            "`(x - x.max(…)) / temperature`.",
            softmax_undivided_max,
        ),
        Misconception(
            "the argument axis is ignored",
            "You always work along the last axis. Take the maximum and the sum along the argument "
            "`axis`.",
            softmax_last_axis,
        ),
        Misconception(
            "always along the first axis",
            "You normalise along axis 0, so the columns of a matrix sum to 1 (its rows, were the "
            "matrix transposed). Take the maximum and the sum along the argument `axis`, which is "
            "−1, the last, unless the caller says otherwise.",
            softmax_first_axis,
        ),
        Misconception(
            "the whole array sums to 1",
            "You divide by the sum of all entries. For a single vector that is softmax; in a "
            "matrix each slice along `axis` has a budget of 1 of its own: "
            "`sum(axis=axis, keepdims=True)`.",
            softmax_whole_sum,
        ),
        Misconception(
            "the sums lost their axis",
            "`e.sum(axis=axis)` has one axis less than `e`, and dividing by it pairs sums with the "
            "wrong entries, or fails. `keepdims=True` keeps the axis with length 1.",
            softmax_without_keepdims,
        ),
        Misconception(
            "multiplied by the temperature",
            "You multiply the scores by the temperature, so a high one sharpens. It is the other "
            "way round: divide, and a high temperature evens the weights out.",
            softmax_times_temperature,
        ),
        Misconception(
            "the temperature is ignored",
            "Your weights are the same at every temperature. Divide the scores by it before "
            "exponentiating.",
            softmax_no_temperature,
        ),
        Misconception(
            "divided by the temperature after softmax",
            "You divide the weights, which then sum to 1/temperature and keep their proportions. "
            "The scores are what is divided, before exponentiating.",
            softmax_divided_afterwards,
        ),
        Misconception(
            "summed before exponentiating",
            "Your denominator is exp of the sum of the scores. Softmax has the sum of the exps: "
            "exponentiate first, then sum.",
            softmax_exp_of_sum,
        ),
        Misconception(
            "summed before exponentiating, after the shift",
            "You subtract the maximum, as you should, and then divide by exp of the sum. Softmax "
            "has the sum of the exps: exponentiate first, then sum.",
            softmax_exp_of_shifted_sum,
        ),
        Misconception(
            "the exponential is missing",
            "You divide the scores by their sum. Scores may be negative, or sum to 0: exponentiate "
            "them first, which makes every one positive.",
            softmax_no_exponential,
        ),
        Misconception(
            "the weights are not normalised",
            "You exponentiate and stop: the largest weight of every slice is 1. Divide by the sum "
            "of the slice.",
            softmax_not_normalised,
        ),
        Misconception(
            "the logarithm of softmax",
            "Your values are at most 0: they are the logarithms of the weights (log-softmax). "
            "Return the weights themselves.",
            softmax_logarithm,
        ),
        Misconception(
            "the argument is changed in place",
            "`x -= …` writes into the caller's array, which then holds other scores than before. "
            "`x = x - …` makes a new one.",
            softmax_in_place,
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
        Criterion("one query, values that are numbers", 2, lookup_single),
        Criterion("many queries, values that are vectors", 2, lookup_many),
        Criterion("at any temperature", 1, lookup_temperatures),
        Criterion("sizes of 1, memory layout", 1, lookup_sizes),
        Criterion("batches", 1, lookup_batches),
        Criterion("large numbers and float32", 1, lookup_numbers),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "only the best match is returned",
            "You return the value of the key with the highest score: a hard lookup. A soft one "
            "gives every value a share, `softmax(scores) @ values`.",
            lookup_hard,
        ),
        Misconception(
            "softmax over the queries",
            "You normalise along the axis of the queries, so that the weights on one key sum to 1 "
            "over all queries. Every query has a budget of 1 to spend on the keys: softmax runs "
            "along the last axis of the scores (m, n).",
            lookup_by(over_queries),
        ),
        Misconception(
            "the scores are the weights",
            "You mix the values with the dot products themselves, which may be negative and do not "
            "sum to 1. Put them through softmax first.",
            lookup_by(lambda q, k, T: dots(q, k) / T),
        ),
        Misconception(
            "the scores are divided by their sum",
            "You divide the dot products by their sum. They may be negative or sum to 0, and then "
            "these are no shares. Softmax exponentiates first.",
            lookup_by(lambda q, k, T: over_sum(dots(q, k) / T)),
        ),
        Misconception(
            "the weights are not normalised",
            "You mix with exp(score), and the weights of a query do not sum to 1. Divide by their "
            "sum: that is what softmax does.",
            lookup_by(lambda q, k, T: np.exp(dots(q, k) / T)),
        ),
        Misconception(
            "exp overflows",
            "You exponentiate the scores as they are, and exp of a score in the thousands is "
            "infinity. Use your `softmax`, which subtracts the largest score of each row.",
            lookup_by(lambda q, k, T: naive(dots(q, k), temperature=T)),
        ),
        Misconception(
            "multiplied by the temperature",
            "You multiply the scores by the temperature, so a high one sharpens. Divide: a high "
            "temperature evens the weights out.",
            lookup_by(lambda q, k, T: lookup.softmax(dots(q, k), temperature=1 / T)),
        ),
        Misconception(
            "the temperature is ignored",
            "Your answer is the same at every temperature. Hand it on: "
            "`softmax(scores, temperature=temperature)`.",
            lookup_by(lambda q, k, T: lookup.softmax(dots(q, k))),
        ),
        Misconception(
            "the answer is divided by the temperature",
            "You divide the blended value. The scores are what the temperature divides, before "
            "softmax.",
            lookup_result_divided,
        ),
        Misconception(
            "cosine similarity in place of the dot product",
            "You divide queries and keys by their lengths. This lookup compares by the plain dot "
            "product: a longer key counts for more.",
            lookup_by(by_cosine),
        ),
        Misconception(
            "distance in place of the dot product",
            "Your scores are negative squared distances, as in kernel regression. This lookup "
            "compares by the plain dot product, `query @ keys.T`.",
            lookup_by(by_distance),
        ),
        Misconception(
            "the scores are divided by √d",
            "You divide the dot products by the root of the key's length. That scaling comes in a "
            "later chapter; here the score is the plain dot product, over the temperature.",
            lookup_by(
                lambda q, k, T: lookup.softmax(dots(q, k), temperature=T * np.sqrt(q.shape[-1]))
            ),
        ),
        Misconception(
            "the keys are blended, not the values",
            "You return `weights @ keys`. The keys are there to be compared with; what comes back "
            "is a blend of the values.",
            lookup_keys_returned,
        ),
        Misconception(
            ".T on a batch",
            "`keys.T` reverses all axes, the batch's too. Swap the last two only: "
            "`np.swapaxes(keys, -1, -2)`.",
            lookup_all_axes_reversed,
        ),
        Misconception(
            "axes of length 1 are dropped",
            "You squeeze the result, so that a matrix with a single query, or values with a single "
            "column, lose that axis. A query of shape (1, d) gives a result with m = 1.",
            lookup_squeezed,
        ),
        Misconception(
            "the blend is averaged once more",
            "You divide by the number of keys. The weights already sum to 1: the weighted sum is "
            "the average.",
            lookup_averaged_again,
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
        Criterion("an average of y, weighted by a Gaussian of the distance", 3, curve_values),
        Criterion("at any bandwidth", 1, curve_bandwidths),
        Criterion("finite far from every x", 2, curve_far),
        Criterion("any number of queries and points", 1, curve_sizes),
        Criterion("batches", 1, curve_batches),
        Criterion("large numbers and float32", 1, curve_numbers),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the squared distance is not halved",
            "Your weights are exp(−(distance/h)²). The Gaussian has a 2: exp(−distance²/(2h²)). "
            "Without it your curve is the one for a bandwidth of h/√2.",
            curve_by(lambda D, h: -((D / h) ** 2)),
        ),
        Misconception(
            "the bandwidth is not squared",
            "You divide the squared distance by 2h. Distance and bandwidth have the same unit, so "
            "both are squared: distance²/(2h²).",
            curve_by(lambda D, h: -(D**2) / (2 * h)),
        ),
        Misconception(
            "the 2 is squared with the bandwidth",
            "You divide by (2h)², four times h², where the Gaussian has 2h². Your curve is the one "
            "for a bandwidth of √2·h.",
            curve_by(lambda D, h: -((D / (2 * h)) ** 2)),
        ),
        Misconception(
            "the distance is not squared",
            "Your weights fall as exp(−|distance|/h), with a sharp peak (a Laplace kernel). The "
            "Gaussian takes the square: distance²/(2h²).",
            curve_by(lambda D, h: -np.abs(D) / h),
        ),
        Misconception(
            "the minus sign is missing",
            "Your weights grow with the distance: the farthest point counts most. The exponent is "
            "−distance²/(2h²).",
            curve_by(lambda D, h: (D / h) ** 2 / 2),
        ),
        Misconception(
            "multiplied by the bandwidth",
            "You multiply the distance by h, so a larger bandwidth makes the window narrower. "
            "Divide by it.",
            curve_by(lambda D, h: -((D * h) ** 2) / 2),
        ),
        Misconception(
            "the bandwidth is ignored",
            "Your curve is the same at every bandwidth. Divide the distance by it.",
            curve_by(lambda D, h: -(D**2) / 2),
        ),
        Misconception(
            "0/0 far from the points",
            "Far from every x all your kernel values are 0, and 0/0 is NaN. Hand the exponents to "
            "your `softmax`: it subtracts the largest, so the nearest point always counts.",
            curve_raw,
        ),
        Misconception(
            "0 far from the points",
            "Far from every x all your kernel values are 0, and a guard in the denominator (or "
            "nan_to_num) turns that into the answer 0, which no average of y has to contain. Hand "
            "the exponents to your `softmax`: the nearest point then always counts.",
            curve_zero_when_far,
        ),
        Misconception(
            "the weights are not normalised",
            "You add up kernel × y without dividing by the sum of the kernel, so your curve is far "
            "from 0 where points are dense. The weights of a query sum to 1.",
            curve_not_normalised,
        ),
        Misconception(
            "softmax over the queries",
            "You normalise along the axis of the queries. Each query has a budget of 1 to spend on "
            "the points: softmax runs along the last axis of (m, n).",
            curve_over_queries,
        ),
        Misconception(
            "the nearest y is returned",
            "You return the y of the nearest x, a hard lookup. The curve is an average in which "
            "every point has a share.",
            curve_nearest,
        ),
        Misconception(
            "the product in place of the distance",
            "Your scores are x_query · x. For points on a line that is no measure of nearness: a "
            "large x wins everywhere. Use −(x_query − x)²/2.",
            curve_of_products,
        ),
        Misconception(
            "the weights are returned",
            "You return the matrix of weights, shape (m, n). One step is missing: average y with "
            "it, which leaves shape (m,).",
            curve_weights,
        ),
        Misconception(
            "a column is returned",
            "Your result has a last axis of length 1, from turning y into a column. Take it off: "
            "`[..., 0]`.",
            curve_column,
        ),
        Misconception(
            "a batch of y is read as a matrix",
            "`weights @ y` takes y of shape (batch, n) for one matrix. Make it a batch of columns, "
            "`(weights @ y[..., None])[..., 0]`, or sum `weights * y[..., None, :]` over the last "
            "axis.",
            curve_without_batch,
        ),
        Misconception(
            "the new axes stand in front of the batch",
            "`x_query[:, None] - x[None, :]` puts the new axes among the batch axes. Count from "
            "the end: `x_query[..., :, None] - x[..., None, :]`.",
            curve_first_axes,
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
