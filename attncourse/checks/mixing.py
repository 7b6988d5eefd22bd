"""The exercises of chapter 2, fixed linear mixing."""

import numpy as np

from attncourse import mixing
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)

# --- cases -----------------------------------------------------------------------------------


def stochastic(rng: Rng, *shape: int) -> np.ndarray:
    """Random weights whose rows sum to 1."""
    A = rng.uniform(0.1, 1, shape)
    return A / A.sum(-1, keepdims=True)


def mix_values(rng: Rng) -> list[Case]:
    A = np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.2, 0.2, 0.6]])
    X = np.array([[1.0, 0.0], [3.0, 4.0], [-1.0, 8.0]])
    return [Case((A, X)), Case((stochastic(rng, 7, 7), rng.normal(size=(7, 5))))]


def mix_shapes(rng: Rng) -> list[Case]:
    return [
        Case((stochastic(rng, 5, 7), rng.normal(size=(7, 3))), note="fewer outputs than tokens"),
        Case((stochastic(rng, 1, 1), rng.normal(size=(1, 3))), note="n = 1"),
        Case((stochastic(rng, 7, 5).T, rng.normal(size=(7, 3))), note="A not contiguous in memory"),
    ]


def mix_batch(rng: Rng) -> list[Case]:
    return [
        Case((stochastic(rng, 2, 5, 5), rng.normal(size=(2, 5, 3))), note="a batch of 2"),
        Case((stochastic(rng, 5, 5), rng.normal(size=(2, 3, 5, 7))), note="two batch axes on X"),
    ]


def mix_numbers(rng: Rng) -> list[Case]:
    A, X = rng.normal(size=(5, 5)), rng.normal(size=(5, 3))
    return [
        Case((A, X), note="A is not row-stochastic"),
        Case((stochastic(rng, 5, 5), 1e6 * X), note="large entries"),
        Case((A.astype(np.float32), X.astype(np.float32)), note="float32"),
    ]


def counts(rng: Rng) -> list[Case]:
    """Calls with a number of tokens only."""
    return [Case((n,)) for n in (3, 5, int(rng.integers(6, 12)))]


def one_token(rng: Rng) -> list[Case]:
    return [Case((1,), note="n = 1")]


def windows(rng: Rng) -> list[Case]:
    return [Case((5, 3)), Case((11, 5)), Case((int(rng.integers(12, 20)), 7))]


def window_edges(rng: Rng) -> list[Case]:
    return [
        Case((5, 1), note="width 1: a token sees only itself"),
        Case((3, 7), note="a window wider than the sequence"),
        Case((1, 3), note="n = 1"),
    ]


def window_even(rng: Rng) -> list[Case]:
    return [Case((7, 4), note="even width", raises=ValueError)]


def rows_values(rng: Rng) -> list[Case]:
    A = np.array([[1.0, 3.0, 0.0], [2.0, 2.0, 4.0], [0.0, 5.0, 0.0]])
    return [Case((A,)), Case((rng.uniform(0, 9, (5, 5)),)), Case((rng.uniform(0, 9, (5, 3)),))]


def rows_zero(rng: Rng) -> list[Case]:
    A = np.array([[1.0, 3.0, 4.0], [0.0, 0.0, 0.0], [2.0, 2.0, 6.0]])
    return [Case((A,), note="one row of zeros"), Case((np.zeros((2, 3)),), note="zeros everywhere")]


def rows_batch(rng: Rng) -> list[Case]:
    return [
        Case((rng.uniform(0, 9, (2, 5, 3)),), note="a batch of 2"),
        Case((rng.uniform(0, 9, (2, 3, 5, 7)),), note="two batch axes"),
        Case((rng.uniform(1e5, 9e5, (5, 3)).T,), note="large entries, not contiguous"),
        Case((rng.uniform(0, 9, (5, 3)).astype(np.float32),), note="float32"),
    ]


def rows_negative(rng: Rng) -> list[Case]:
    return [
        Case((np.array([[1.0, 2.0], [3.0, -0.5]]),), note="a negative entry", raises=ValueError)
    ]


def stochastic_or_not(rng: Rng) -> list[Case]:
    A = stochastic(rng, 5, 5)
    short = A.copy()
    short[3] *= 0.9
    return [
        Case((np.array([[0.5, 0.5], [0.1, 0.9]]),)),
        Case((np.array([[0.5, 0.1], [0.5, 0.9]]),), note="its columns sum to 1"),
        Case((np.eye(3),), note="entries of 0 are allowed"),
        Case((A,)),
        Case((short,), note="one row sums to 0.9"),
        Case((A * 1.3,), note="every row sums to 1.3"),
    ]


def stochastic_negative(rng: Rng) -> list[Case]:
    A = stochastic(rng, 5, 5)
    A[2, :2] += [-0.8, 0.8]
    return [
        Case((A,), note="the rows sum to 1, one entry is negative"),
        Case((stochastic(rng, 5, 3),), note="more rows than columns"),
    ]


def stochastic_tolerance(rng: Rng) -> list[Case]:
    def off(by: float) -> np.ndarray:
        A = stochastic(rng, 5, 3)
        A[1, 2] += by
        return A

    barely = np.array([[1.0 + 5e-9, -5e-9], [0.5, 0.5]])
    return [
        Case((off(5e-9),), note="a row sum of 1 + 5e-9, inside the default tolerance"),
        Case((off(1e-6),), note="a row sum of 1 + 1e-6, outside the default tolerance"),
        Case((off(-1e-6),), note="a row sum of 1 − 1e-6, outside the default tolerance"),
        Case((off(5e-4),), {"atol": 1e-3}, note="a row sum of 1 + 5e-4"),
        Case((off(5e-9),), {"atol": 1e-10}, note="a row sum of 1 + 5e-9"),
        Case((barely,), note="an entry of −5e-9, inside the default tolerance"),
    ]


def stochastic_batch(rng: Rng) -> list[Case]:
    good = stochastic(rng, 3, 5, 5)
    bad = good.copy()
    bad[1, 2] *= 1.1
    nan = stochastic(rng, 5, 3)
    nan[2, 1] = np.nan
    return [
        Case((good,), note="a batch of 3"),
        Case((bad,), note="a batch of 3, one row of the second matrix wrong"),
        Case((nan,), note="NaN in one entry"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def divide_rows(A, by):
    """A with each row divided by ``by``, rows of zeros left alone."""
    return A / np.where(by == 0, 1, by)


def refuse_negative(A):
    if (A < 0).any():
        raise ValueError("negative entry")


def rows_by_column_sum(A):
    refuse_negative(A)
    return divide_rows(A, A.sum(-2, keepdims=True))


def rows_without_keepdims(A):
    refuse_negative(A)
    return divide_rows(A, A.sum(-1))


def rows_by_total(A):
    refuse_negative(A)
    return divide_rows(A, A.sum())


def rows_by_max(A):
    refuse_negative(A)
    return divide_rows(A, A.max(-1, keepdims=True))


def rows_by_length(A):
    refuse_negative(A)
    return divide_rows(A, np.linalg.norm(A, axis=-1, keepdims=True))


def rows_unguarded(A):
    refuse_negative(A)
    return A / A.sum(-1, keepdims=True)


def rows_zero_made_uniform(A):
    refuse_negative(A)
    sums = A.sum(-1, keepdims=True)
    return np.where(sums == 0, 1 / A.shape[-1], A / np.where(sums == 0, 1, sums))


def rows_in_place(A):
    refuse_negative(A)
    A /= np.where(A.sum(-1, keepdims=True) == 0, 1, A.sum(-1, keepdims=True))
    return A


def rows_softmax(A):
    refuse_negative(A)
    return divide_rows(np.exp(A), np.exp(A).sum(-1, keepdims=True))


def window_like(inside, normalized=True):
    """A wrong window: ``inside(i, j, n, half)`` says which tokens it holds."""

    def weights(n, width):
        if width % 2 == 0:
            raise ValueError("even width")
        i, j = np.arange(n)[:, None], np.arange(n)[None, :]
        W = inside(i, j, n, width // 2).astype(float)
        return divide_rows(W, W.sum(-1, keepdims=True)) if normalized else W / width

    return weights


def window_even_accepted(n, width):
    return mixing.window_weights(n, width // 2 * 2 + 1)


def window_by_columns(n, width):
    return mixing.window_weights(n, width).T


def window_of_ones(n, width):
    return (mixing.window_weights(n, width) > 0).astype(float)


def causal(n, k=0):
    return np.tril(np.ones((n, n)), k)


def is_stochastic_if(test):
    """A wrong test: ``test(A, atol)`` says whether A passes."""
    return lambda A, atol=1e-8: bool(test(A, atol))


def sums_close(A, atol, axis=-1):
    return (np.abs(A.sum(axis) - 1) <= atol).all()


# --- exercises -------------------------------------------------------------------------------

MIX = Exercise(
    target="mixing.mix",
    reference=mixing.mix,
    section="Chapter 2, “A row of weights for every token”",
    difficulty=1,
    minutes=5,
    criteria=(
        Criterion("mixes tokens with the rows of A", 3, mix_values),
        Criterion("any number of outputs and tokens", 1, mix_shapes),
        Criterion("batches", 1, mix_batch),
        Criterion("any weights and any size of number", 1, mix_numbers),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "A is transposed",
            "Your output i uses column i of A, that is `A.T @ X`. The weights of output i stand in "
            "row i: U[i] is the sum over j of A[i, j] X[j], which is `A @ X`.",
            lambda A, X: np.swapaxes(A, -1, -2) @ X,
        ),
        Misconception(
            "np.dot on a batch",
            "`np.dot` of two batches pairs every matrix of the one with every matrix of the other, "
            "and the result has too many axes. `@` (np.matmul) takes the batch axes together, "
            "one matrix of A for one matrix of X.",
            lambda A, X: np.dot(A, X),
        ),
        Misconception(
            "the weights are normalised first",
            "You divide the rows of A by their sums before mixing. `mix` takes the weights as they "
            "are; whether they sum to 1 is for the one who made them to see to.",
            lambda A, X: divide_rows(A, A.sum(-1, keepdims=True)) @ X,
        ),
        Misconception(
            "the result is averaged once more",
            "You divide the sum over the tokens by their number. The weights are already shares: "
            "the sum over j of A[i, j] X[j] is the average, nothing is left to divide by.",
            lambda A, X: A @ X / X.shape[-2],
        ),
        Misconception(
            "the token itself is added",
            "You return `X + A @ X`. Adding the input back is a residual connection, which comes "
            "in the chapter on transformers; here the output is the mixture alone.",
            lambda A, X: X + A @ X,
        ),
        Misconception(
            "one vector for the whole sequence",
            "You add the mixed tokens up into one vector. There are as many outputs as rows in A, "
            "one for each: keep the token axis.",
            lambda A, X: (A @ X).sum(-2),
        ),
    ),
    hints=(
        "Write one entry of the result as a sum: U[i, c] is a sum over the tokens j. "
        "Which axis of A and which axis of X does j run over?",
        "A sum over the last axis of one matrix and the second-to-last of the other is a matrix "
        "product.",
        "`np.matmul`, written `@`, takes any leading axes of both along as a batch.",
    ),
)

NORMALIZE_ROWS = Exercise(
    target="mixing.normalize_rows",
    reference=mixing.normalize_rows,
    section="Chapter 2, “Two constraints make it a mixture”",
    difficulty=2,
    minutes=10,
    picture=True,
    criteria=(
        Criterion("every row sums to 1, in the old proportions", 3, rows_values),
        Criterion("a row of zeros stays zero", 1, rows_zero),
        Criterion("batches, memory layout, float32", 1, rows_batch),
        Criterion("refuses a negative entry with ValueError", 1, rows_negative),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "columns are normalised, not rows",
            "Your columns sum to 1. A row holds one token's weights, so the sum runs over the last "
            "axis: `A.sum(axis=-1, keepdims=True)`.",
            rows_by_column_sum,
        ),
        Misconception(
            "the sums lost their axis",
            "`A.sum(axis=-1)` has shape (m,), and dividing by it lines row sum i up with column i. "
            "`keepdims=True` leaves shape (m, 1), one sum beside each row.",
            rows_without_keepdims,
        ),
        Misconception(
            "the whole matrix sums to 1",
            "You divide by the sum of all entries. Each row has a budget of 1 of its own.",
            rows_by_total,
        ),
        Misconception(
            "divided by the largest entry",
            "You divide each row by its maximum, so its largest entry is 1. The row's sum is to "
            "be 1.",
            rows_by_max,
        ),
        Misconception(
            "divided by the length",
            "You divide each row by its Euclidean norm: the squares sum to 1. For shares of a "
            "whole the entries themselves sum to 1.",
            rows_by_length,
        ),
        Misconception(
            "a row of zeros becomes NaN",
            "A row of zeros has the sum 0, and 0/0 is NaN. Divide by 1 in such a row, so that it "
            "stays zero.",
            rows_unguarded,
        ),
        Misconception(
            "a row of zeros becomes uniform",
            "You spread a row of zeros evenly. The exercise leaves it zero: no weight was asked "
            "for, none is given.",
            rows_zero_made_uniform,
        ),
        Misconception(
            "the argument is changed in place",
            "`A /= …` writes into the caller's array, which then holds other numbers than before. "
            "`A / …` makes a new one.",
            rows_in_place,
        ),
        Misconception(
            "a softmax in place of a division",
            "You exponentiate before dividing. That is a softmax, which comes in chapter 3 and "
            "changes the proportions; here an entry twice as large gets twice the weight.",
            rows_softmax,
        ),
        Misconception(
            "negative entries are accepted",
            "You divide without looking. A negative share has no meaning in a mixture: raise "
            "`ValueError` where an entry is below 0.",
            lambda A: divide_rows(A, A.sum(-1, keepdims=True)),
        ),
    ),
    hints=(
        "First the sum of every row. Which axis disappears when a row is summed?",
        "`keepdims=True` keeps that axis with length 1, so that dividing lines up with the rows.",
        "`np.where(sums == 0, 1, sums)` replaces the sums that must not be divided by.",
    ),
)

IS_ROW_STOCHASTIC = Exercise(
    target="mixing.is_row_stochastic",
    reference=mixing.is_row_stochastic,
    section="Chapter 2, “Two constraints make it a mixture”",
    difficulty=2,
    minutes=10,
    criteria=(
        Criterion("rows that sum to 1, and others", 2, stochastic_or_not),
        Criterion("negative entries", 1, stochastic_negative),
        Criterion("the tolerance is absolute", 1, stochastic_tolerance),
        Criterion("batches and NaN", 1, stochastic_batch),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "columns are tested, not rows",
            "You ask whether the columns sum to 1. A row is one token's weights: sum over the last "
            "axis.",
            is_stochastic_if(lambda A, atol: (-atol <= A).all() and sums_close(A, atol, -2)),
        ),
        Misconception(
            "negative entries pass",
            "You look at the sums only. Weights also have to be at least 0 (up to `atol`).",
            is_stochastic_if(lambda A, atol: sums_close(A, atol)),
        ),
        Misconception(
            "the sums are not tested",
            "You ask only for entries that are not negative. Each row also has to sum to 1.",
            is_stochastic_if(lambda A, atol: (-atol <= A).all()),
        ),
        Misconception(
            "exact comparison",
            "You compare floating-point sums with `==`. Ten times 0.1 is not exactly 1; allow a "
            "difference of `atol`.",
            is_stochastic_if(lambda A, atol: (A >= 0).all() and (A.sum(-1) == 1).all()),
        ),
        Misconception(
            "a relative tolerance slips in",
            "`np.allclose` and `np.isclose` add a relative tolerance of 1e-5 unless told `rtol=0`. "
            "Here the tolerance is `atol` alone.",
            is_stochastic_if(
                lambda A, atol: (-atol <= A).all() and np.allclose(A.sum(-1), 1, atol=atol)
            ),
        ),
        Misconception(
            "sums below 1 pass",
            "You test `sum − 1 <= atol`, which is also true of every sum below 1. The difference "
            "counts in both directions: take its absolute value.",
            is_stochastic_if(lambda A, atol: (-atol <= A).all() and (A.sum(-1) - 1 <= atol).all()),
        ),
        Misconception(
            "zeros are refused",
            "You ask for entries above 0. A weight of 0, a token not listened to, is allowed.",
            is_stochastic_if(lambda A, atol: (A > 0).all() and sums_close(A, atol)),
        ),
        Misconception(
            "one right row is enough",
            "You use `any` over the rows. Every row has to sum to 1: `all`.",
            is_stochastic_if(
                lambda A, atol: (-atol <= A).all() and (np.abs(A.sum(-1) - 1) <= atol).any()
            ),
        ),
        Misconception(
            "atol is not used",
            "You compare with a fixed tolerance and not with the argument `atol`.",
            is_stochastic_if(lambda A, atol: (A >= -1e-8).all() and sums_close(A, 1e-8)),
        ),
        Misconception(
            "an answer for every row",
            "You return an array of truth values, one a row. The question is about the whole "
            "matrix: reduce with `.all()` and return one bool.",
            lambda A, atol=1e-8: (-atol <= A).all(-1) & (np.abs(A.sum(-1) - 1) <= atol),
        ),
    ),
    hints=(
        "Two questions, joined by `and`: are all entries at least 0, are all row sums 1?",
        "Both up to `atol`: an entry may be −atol, a sum may differ from 1 by atol either way.",
        "Comparisons with NaN are False, so `(A >= -atol).all()` already refuses NaN.",
    ),
)

UNIFORM_WEIGHTS = Exercise(
    target="mixing.uniform_weights",
    reference=mixing.uniform_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(
        Criterion("every weight is 1/n", 2, counts),
        Criterion("one token", 1, one_token),
    ),
    misconceptions=(
        Misconception(
            "the weights do not sum to 1",
            "Your entries are 1. A row of n ones sums to n: divide by n.",
            lambda n: np.ones((n, n)),
        ),
        Misconception(
            "the whole matrix sums to 1",
            "Your entries are 1/n², so all of them together sum to 1. Each row has a budget of 1 "
            "of its own.",
            lambda n: np.full((n, n), 1 / n**2),
        ),
        Misconception(
            "one row only",
            "You return one row of weights. Every one of the n tokens needs its row: shape (n, n).",
            lambda n: np.full(n, 1 / n),
        ),
        Misconception(
            "a token leaves itself out",
            "Your diagonal is 0 and the rest is 1/(n−1). The plain average includes the token "
            "itself.",
            lambda n: (1 - np.eye(n)) / max(n - 1, 1),
        ),
        Misconception(
            "every token keeps to itself",
            "You return the identity, which mixes nothing. Uniform means the same weight on every "
            "token.",
            lambda n: np.eye(n),
        ),
    ),
    hints=(
        "n tokens share a budget of 1 evenly. What does each get?",
        "`np.full(shape, value)` makes an array with the same number everywhere.",
    ),
)

CAUSAL_MEAN_WEIGHTS = Exercise(
    target="mixing.causal_mean_weights",
    reference=mixing.causal_mean_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        Criterion("row i averages tokens 0 … i", 3, counts),
        Criterion("one token", 1, one_token),
    ),
    misconceptions=(
        Misconception(
            "a token does not see itself",
            "Your matrix is strictly lower triangular: row i stops before token i, and row 0 has "
            "nothing to average. The running mean includes the token itself.",
            lambda n: divide_rows(causal(n, -1), causal(n, -1).sum(-1, keepdims=True)),
        ),
        Misconception(
            "the future, not the past",
            "Your matrix is upper triangular: token i averages what comes after it. Row i may hold "
            "weights in columns 0 … i only, the lower triangle.",
            lambda n: divide_rows(causal(n).T, causal(n).T.sum(-1, keepdims=True)),
        ),
        Misconception(
            "the columns sum to 1",
            "You divided by the column sums. Each row is one token's average, so each row sums "
            "to 1.",
            lambda n: causal(n) / causal(n).sum(-2, keepdims=True),
        ),
        Misconception(
            "every row divided by n",
            "Row i averages i + 1 tokens, not n: divide each row by its own number of tokens.",
            lambda n: causal(n) / n,
        ),
        Misconception(
            "the rows are not normalised",
            "Your entries are 1, so row i sums to i + 1. Divide each row by its sum.",
            lambda n: causal(n),
        ),
        Misconception(
            "one row too many tokens",
            "Row i of your matrix includes token i + 1, which is in its future. `np.tril` with "
            "k = 0 keeps the diagonal and nothing above it.",
            lambda n: divide_rows(causal(n, 1), causal(n, 1).sum(-1, keepdims=True)),
        ),
    ),
    hints=(
        "Write down the matrix for n = 3 by hand. Which entries are 0?",
        "`np.tril(np.ones((n, n)))` keeps the lower triangle. What is missing?",
        "Each row still has to sum to 1: you have already written a function for that.",
    ),
)

WINDOW_WEIGHTS = Exercise(
    target="mixing.window_weights",
    reference=mixing.window_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("a centred window whose rows sum to 1", 3, windows),
        Criterion("narrow, wide and single", 1, window_edges),
        Criterion("refuses an even width with ValueError", 1, window_even),
    ),
    misconceptions=(
        Misconception(
            "the edges are not renormalised",
            "Your rows near the edges sum to less than 1, because every weight is 1/width. Fewer "
            "tokens are in the window there: divide by their number.",
            window_like(lambda i, j, n, half: abs(i - j) <= half, normalized=False),
        ),
        Misconception(
            "width taken as the half-width",
            "Your window reaches `width` tokens to each side and holds 2·width + 1. `width` counts "
            "all its tokens, so it reaches `width // 2` to each side.",
            lambda n, width: mixing.window_weights(n, 2 * width + 1 if width % 2 else width),
        ),
        Misconception(
            "one token too few on each side",
            "Your window is two tokens narrower than `width`. A token at distance `width // 2` is "
            "still inside: use `<=`, not `<`.",
            window_like(lambda i, j, n, half: (abs(i - j) < half) | ((half == 0) & (i == j))),
        ),
        Misconception(
            "the window looks back only",
            "Your window ends with the token itself. Here it is centred: as many tokens after as "
            "before.",
            window_like(lambda i, j, n, half: (i - j >= 0) & (i - j <= 2 * half)),
        ),
        Misconception(
            "the window wraps around",
            "At the edges your window goes on at the other end of the sequence. A sequence is not "
            "a ring: cut the window off and renormalise.",
            window_like(lambda i, j, n, half: np.minimum((i - j) % n, (j - i) % n) <= half),
        ),
        Misconception(
            "the columns sum to 1",
            "You normalised columns. Each row is one token's average, so each row sums to 1.",
            window_by_columns,
        ),
        Misconception(
            "the rows are not normalised",
            "Your entries are 0 and 1. Divide each row by its sum.",
            window_of_ones,
        ),
        Misconception(
            "an even width is accepted",
            "An even window has no middle, so the exercise asks for a `ValueError`; yours returns "
            "a matrix.",
            window_even_accepted,
        ),
    ),
    hints=(
        "The distance between tokens i and j is |i − j|. Which distances are inside the window?",
        "`np.arange(n)[:, None] - np.arange(n)[None, :]` holds all differences i − j at once.",
        "Rows at the edges hold fewer tokens. `normalize_rows` takes care of that.",
    ),
)

EXERCISES = (
    MIX,
    NORMALIZE_ROWS,
    IS_ROW_STOCHASTIC,
    UNIFORM_WEIGHTS,
    CAUSAL_MEAN_WEIGHTS,
    WINDOW_WEIGHTS,
)
