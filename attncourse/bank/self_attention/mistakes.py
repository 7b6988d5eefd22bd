"""Decisions and mistakes that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.numpy_mistakes import dots, unit
from attncourse.checks.writing.recipes import mistake


def weights_of(compare=dots, scale=lambda S, X: S, hide=lambda S: S, **decisions):
    """Return the weights as a function of X, made of decisions; the others are the softmax's."""
    softmax = soft.Softmax(**decisions)
    return lambda X: softmax(hide(scale(compare(X, X), X)))


def subtract_mean(X):
    return X - X.mean(-2, keepdims=True)


def where_diagonal(S, on_diagonal, elsewhere):
    return np.where(np.eye(S.shape[-1], dtype=bool), on_diagonal, elsewhere)


OVER_COLUMNS = {"along": lambda axis, ndim: -2}
OF_SELF_ATTENTION = (
    soft.NO_EXPONENTIAL,
    *numpy_mistakes.OF_SCORES[1:],
    numpy_mistakes.COSINE.by(tokens=unit),
    mistake("""the tokens are centred first
        You subtract the mean of all tokens before you compare them; `X -= …` changes the caller's
        tokens besides. The score is the dot product of the rows as they are.""")
    .by(tokens=subtract_mean)
    .by(tokens=lambda X: np.subtract(X, X.mean(-2, keepdims=True), out=X))
    .by(compare=lambda X, Y: dots(subtract_mean(X), subtract_mean(Y))),
    mistake("""a token leaves itself out
        Your diagonal is 0, or its scores are (and exp(0) = 1 still counts). A token listens to
        itself too: its score |x_i|² is in the softmax like the others.""")
    .by(hide=lambda S: where_diagonal(S, -np.inf, S))
    .by(hide=lambda S: where_diagonal(S, 0, S))
    .by(after=lambda w, x, T, axis: where_diagonal(w, 0, w)),
    mistake("""negative scores are set to 0
        You cut the scores off at 0, or drop their sign. Tokens that point away from each other have
        a negative score, and exp makes a small weight of it: leave the scores as they are.""")
    .by(hide=lambda S: np.maximum(S, 0))
    .by(hide=np.abs),
    mistake("""later tokens are not heard
        Your weights are 0 above the diagonal, as in a causal model. Here every token hears all.""")
    .by(hide=lambda S: np.where(np.tri(S.shape[-1], dtype=bool), S, -np.inf))
    .by(after=lambda w, x, T, axis: np.tril(w)),
    mistake("""a token's score with itself is subtracted
        You subtract the diagonal, as if a token were always most like itself. A longer token may
        fit better: then the difference is positive, and exp of a large one overflows. Subtract
        each row's maximum.
    """).by(top=lambda S, axis, x: np.diagonal(S, axis1=-2, axis2=-1)[..., None]),
    mistake("""a maximum along another axis
        You subtract from each score the largest of its column, so that the scores of a row are
        moved by different numbers, and their weights change. Subtract each row's own maximum.""")
    .by(top=lambda S, axis, x: S.max(axis=-2, keepdims=True))
    .by(top=lambda S, axis, x: S.max(axis=0)),
    numpy_mistakes.LOST_AXIS.here(total=lambda e, axis, z: e.sum(axis=axis))
    .by(top=lambda S, axis, x: S.max(axis=axis))
    .said(
        "Without `keepdims=True` the sums or the maxima have an axis too few, and that of row i "
        "lines up with column i. With it they stand in a column: one beside each row."
    ),
    *soft.OF_THE_MAXIMUM,
    *soft.OF_THE_WEIGHTS,
    soft.ANOTHER_FACTOR,
    soft.ONLY_THE_LARGEST,
    soft.TURNED_ROUND,
    soft.OVER_AXIS_0,
    soft.OVER_AXIS_1,
    soft.OVER_EVERYTHING,
)
