"""Mistakes that exercises in NumPy share: rows divided by their sums, numbers compared up to atol.

An exercise shares them by deciding under the same names: ``along`` is the axis of a sum, ``divide``
a quotient, ``close`` and ``gather`` a comparison, ``finish`` what becomes of the result. Those of
softmax stand in ``softmaxes``; ``recipes`` says how one is written.
"""

from typing import Any

import numpy as np

from attncourse.checks.exercise import REFUSED, Between
from attncourse.checks.writing import mistakes
from attncourse.checks.writing.recipes import mistake

# --- what is right ---------------------------------------------------------------------------

EACH_ROW: dict[str, Any] = {"axis": -1, "keepdims": True}


def swapped(X):
    """Return an array with its last two axes exchanged."""
    return np.swapaxes(X, -1, -2)


def over(dividend, divisor):
    """Return a quotient, 0 wherever the divisor is 0."""
    return dividend / np.where(divisor == 0, 1, divisor) * (divisor != 0)


def within(a, b, atol):
    """True entry by entry if two arrays differ by ``atol`` at most."""
    return np.abs(a - b) <= atol


def result(value, *arguments):
    """Return the value as it is: nothing is right to do to a result."""
    return value


def dots(X, Y):
    """Return the dot product of every row of X with every row of Y."""
    return X @ swapped(Y)


def unit(X):
    """Return each row divided by its length."""
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def row_distances(X, Y):
    """Return the distance of every row of X from every row of Y."""
    gaps = X[..., None, :] - (Y if X.ndim == 1 else Y[..., None, :, :])
    return np.linalg.norm(gaps, axis=-1)


def refuse_if(wrong):
    """Raise the ``ValueError`` of an implementation that refuses its arguments."""
    if wrong:
        raise ValueError(REFUSED)


# --- what goes wrong in dividing rows --------------------------------------------------------


def written_over(dividend, divisor):
    """Write the quotients into the dividend, by an index."""
    dividend[...] = dividend / np.where(divisor == 0, 1, divisor)
    return dividend


def divided_in_place(dividend, divisor):
    """Write the quotients into the dividend, by ``/=``."""
    dividend /= np.where(divisor == 0, 1, divisor)
    return dividend


COLUMNS = mistake("""columns are normalised, not rows
    You divide each column by its own sum or length. Each row counts by itself, so these run along
    the last axis: `axis=-1, keepdims=True`.""").by(along={"axis": -2, "keepdims": True})
LOST_AXIS = mistake("""the sums lost their axis
    Without `keepdims=True` the sums or lengths have an axis too few, and dividing by them lines
    that of row i up with column i. With it they stand in a column: one beside each row.
""").by(along={"axis": -1})
WHOLE_MATRIX = (
    mistake("""the whole matrix sums to 1
    You divide by one number, the sum of all entries. Each row has a budget of 1 of its own:
    `axis=-1, keepdims=True`.""")
    .by(along={"axis": (-2, -1), "keepdims": True})
    .by(along={"axis": None})
)
ZERO_BY_ZERO = mistake("""a row of zeros becomes NaN
    A row of zeros has the sum and the length 0, and 0/0 is NaN. Divide by 1 there,
    `np.where(divisor == 0, 1, divisor)`, and the zeros stay zeros.""").by(divide=np.divide)
GUARD = (
    mistake("""a guard that shows in the result
    You add a small number to every divisor, and all results shrink by more than rounding does.
    Replace only those that are 0: `np.where(divisor == 0, 1, divisor)`.""")
    .by(divide=lambda dividend, divisor: dividend / (divisor + 1e-3))
    .by_any(
        lambda guard: {"divide": lambda dividend, divisor: dividend / (divisor + guard)},
        Between(1e-11, 10.0),
    )
)
IN_PLACE = (
    mistake("""the argument is changed in place
    `/=`, `-=` and `x[:] = …` write into the caller's array, which then holds other numbers than
    before, and only such as its dtype can hold. Write `x = x / …`, which makes a new one.""")
    .by(divide=divided_in_place)
    .by(divide=written_over)
)

# --- what goes wrong in comparing up to atol -------------------------------------------------

EXACT = (
    mistake("""exact comparison
    You compare with `==`. Adding the same numbers in another order changes the last digits: allow a
    difference of `atol`.""")
    .by(close=lambda a, b, atol: a == b)
    .by(tolerance=lambda atol: 0)
)
ATOL_UNUSED = (
    mistake("""atol is not used
    You compare with a fixed tolerance and not with the argument `atol`.""")
    .by(tolerance=lambda atol: 1e-8)
    .by_any(
        lambda fixed: {"tolerance": lambda atol: fixed},
        (1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-10, 1e-12),
    )
)
RELATIVE = (
    mistake("""a relative tolerance slips in
    `np.allclose` and `np.isclose` allow a hundred-thousandth of each number besides, unless told
    `rtol=0`. The tolerance is `atol` alone.""")
    .by(close=lambda a, b, atol: np.isclose(a, b, atol=atol))
    .by(close=lambda a, b, atol: np.isclose(a, b))
)
STRICT = mistake("""a difference of exactly atol is refused
    `<` refuses what `atol` still allows, and for an `atol` of 0 it refuses everything. Test
    `<=`.""").by(close=lambda a, b, atol: np.abs(a - b) < atol)
ATOL_OF_ZERO = mistake("""an atol of 0 is taken for none
    `atol or 1e-8` takes 0 for a tolerance that was not given. The default in the signature sees to
    that.""").by(tolerance=lambda atol: atol or 1e-8)
EXCHANGED = mistake("""True and False are exchanged
    You say False where the answer is yes, and True where it is no.
""").by(finish=lambda yes: not yes)
NOTHING_RETURNED = mistake("""nothing is returned where the answer is no
    Where the answer is no your function returns None: it ends without a `return`, or says None in
    one. Return False there.""").by(finish=lambda yes: True if yes else None)
OF_TRUTH = (EXCHANGED, NOTHING_RETURNED)
OF_ATOL = (EXACT, ATOL_UNUSED, RELATIVE, STRICT)

# --- what goes wrong with scores -------------------------------------------------------------

COSINE = (
    mistakes.COSINE.here(compare=lambda query, key: dots(unit(query), unit(key)))
    .by(compare=lambda query, key: dots(query, unit(key)))
    .by(compare=lambda query, key: dots(unit(query), key))
)
DISTANCE = (
    mistake("""distance in place of the dot product
    Your weights fall with the distance, as in kernel regression. The score asked for is the dot
    product; even half the squared distance agrees with it only where all keys are equally long.""")
    .by(compare=lambda query, key: -(row_distances(query, key) ** 2) / 2)
    .by(compare=lambda query, key: -(row_distances(query, key) ** 2))
    .by(compare=lambda query, key: -row_distances(query, key))
)
SCALED = (
    mistake("""a scale slipped in
    You divide the scores by the number of features or of tokens, or its root. Scaling has a chapter
    of its own later; here the scores are the plain dot products.""")
    .by(scale=lambda scores, key: scores / key.shape[-1] ** 0.5)
    .by(scale=lambda scores, key: scores / key.shape[-1])
    .by(scale=lambda scores, key: scores / key.shape[-2] ** 0.5)
    .by(scale=lambda scores, key: scores / key.shape[-2])
)
NO_SOFTMAX = (
    mistake("""the softmax is missing
    The dot products themselves serve as weights. They can be negative and sum to anything; a
    softmax over each row makes weights of them.""")
    .by(after=lambda w, x, T, axis: x)
    .by(after=lambda w, x, T, axis: x / T)
)
OF_SCORES = (COSINE, DISTANCE, SCALED, NO_SOFTMAX)

# --- what goes wrong with the result ---------------------------------------------------------

CUT = mistake("""cut to whole numbers
    Where whole numbers come in, your result holds whole numbers too: an array made like an
    argument, by `np.zeros_like` say, has its dtype. Make it one of floats.
""").by(finish=lambda value, first, *others: np.asarray(value).astype(first.dtype))
AVERAGED_AGAIN = mistake("""averaged once more
    You divide the weighted sum by the number of weights. The weights of a row sum to 1 already: the
    weighted sum is the average.
""").by(mix=lambda weights, values: weights @ values / weights.shape[-1])
INPUT_ADDED = (
    mistake("""the token itself is added
    You return `X + A @ X`, or half of it. Adding the input back is a residual connection, which
    comes in the chapter on transformers; here the output is the mixture alone.""")
    .by(finish=lambda value, first, *others: first + value)
    .by_any(lambda part: {"finish": lambda value, first, *others: part * (first + value)}, (0.5,))
)
TRANSPOSED = mistake("""the result is transposed
    Rows and columns have changed places. Row i of the result belongs to row i, or entry i, of the
    first argument.""").by(finish=lambda value, *arguments: swapped(value))
ONE_VECTOR = mistake("""one vector for the whole sequence
    You add all rows up into one. Every token has a row of its own: keep the token axis.
""").by(finish=lambda value, *arguments: value.sum(-2))
OF_RESULTS = (TRANSPOSED, ONE_VECTOR)
