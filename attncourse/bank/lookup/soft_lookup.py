"""The exercise ``soft_lookup``: values averaged by how well their keys fit a query."""

import numpy as np

from attncourse import lookup
from attncourse.bank.lookup.shared import OF_AXES, OTHER_MAXIMUM, TWO_ROWS
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.cases import CaseTable, Drawn, normal, once_more, row, standard
from attncourse.checks.writing.numpy_mistakes import dots, result, swapped
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable(
    {"query": "... m d", "keys": "... n d", "values": "... n d_v"}, tensors=False, how=normal
)
ROWS = standard(CASES, d=3)
ROW = row("m=5 n=7 d=3 d_v=2")
ONE_QUERY, NUMBERS = {"query": Drawn("d", normal)}, {"values": Drawn("n", normal)}
ONE_DICTIONARY = {"keys": Drawn("n d", normal), "values": Drawn("n d_v", normal)}
BATCH_OF_QUERIES = row("m=3 n=5 d=7 d_v=4", batch=(2,), arguments=ONE_DICTIONARY)
KEYS_BY_HAND = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
BY_HAND = Case((np.array([1.0, 0.0]), KEYS_BY_HAND, np.array([10.0, 20.0, 40.0])))
FAR_SCORES = ROW.but(factor={"query": 100, "keys": 100})
FOUR_FEATURES = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 4.0, 0.0, 1.0], [3.0, 3.0, 0.0, 5.0]])

# --- decisions and mistakes ----------------------------------------------------------------------


def mix_over_new_axis(weights, values):
    return (weights[..., None] * (values if values.ndim < 3 else values[..., None, :, :])).sum(-2)


@composition
def compose_soft_lookup(
    roles=lambda query, keys, values: (query, keys, values),
    compare=dots,
    scale=lambda scores, keys: scores,
    mix=lambda weights, values: weights @ values,
    finish=result,
    **decisions,
):
    """Return a soft lookup made of decisions; those that are not named are the softmax's."""
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
    .by(mix=lambda w, v: mix_over_new_axis(w, v) if w.ndim > 1 else w @ v)
    .by(mix=mix_over_new_axis),
    mistake("""an axis of length 1 too many or too few
        You make a matrix of a single query, or a column of values that are numbers, and its axis
        stays; or you squeeze one that belongs to the result. A query (1, d) gives m = 1.""")
    .by(finish=lambda u, values, w, query: u[None] if query.ndim == 1 else u)
    .by(finish=lambda u, values, w, query: u[..., None] if values.ndim == 1 else u)
    .by(finish=lambda u, values, w, query: u.reshape(*np.atleast_2d(query).shape[:-1], -1))
    .by(finish=lambda u, values, w, query: np.squeeze(u)),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    lookup.soft_lookup,
    section="Chapter 3, “A lookup that returns a blend”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        CASES.criterion("one query, values that are numbers", 2).on(
            BY_HAND, ROW.but(arguments={**ONE_QUERY, **NUMBERS})
        ),
        CASES.criterion("many queries, values that are vectors", 2).on(
            Case((np.array([[1.0, 0.0], [0.0, 2.0]]), KEYS_BY_HAND, FOUR_FEATURES)),
            ROW,
            ROW.but(arguments=NUMBERS, note="many queries, values that are numbers"),
            ROW.but(arguments=ONE_QUERY, note="one query, values that are vectors"),
        ),
        CASES.criterion("at any temperature", 1).on(
            ROW.but(arguments={"temperature": 0.4}),
            ROW.but(arguments={**ONE_QUERY, **NUMBERS, "temperature": 3.0}),
        ),
        CASES.criterion("sizes of 1, memory layout", 1).on(
            row("m=1 n=5 d=7 d_v=2", note="m = 1: the result keeps its axis"),
            row("m=3 n=1 d=7 d_v=2", factor=0.5, note="n = 1"),
            row("m=3 n=5 d=7 d_v=1", turned=True, note="d_v = 1: the result keeps its axis"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches, BATCH_OF_QUERIES.but(note="a batch of queries, one dictionary")
        ),
        CASES.criterion("large, small and whole numbers, float32", 1).on(
            FAR_SCORES.but(note="scores in the thousands"),
            FAR_SCORES.but(arguments={"temperature": 0.5}, note="large and divided"),
            Case(
                (
                    np.array([[-40.0, 0.0], [3.0, 1.0]]),
                    40 * KEYS_BY_HAND[[0, 2]] + KEYS_BY_HAND[:2],
                    TWO_ROWS,
                ),
                note="scores far below 0",
            ),
            ROWS.single,
            Case(tuple(a.astype(int) for a in BY_HAND.args), note="whole numbers"),
            *ROWS.extreme,
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(compose_soft_lookup, *OF_LOOKUP),
)
