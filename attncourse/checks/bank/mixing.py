"""The exercises of chapter 2, fixed linear mixing."""

import numpy as np

from attncourse import mixing
from attncourse.checks.cases import Drawn, Table, normal, once_more, row, standard
from attncourse.checks.exercise import (
    REFUSED,
    Between,
    Case,
    Criterion,
    Exercise,
    Family,
    Misconception,
    Rng,
    composition,
    leaves_arguments_alone,
)

# --- cases -----------------------------------------------------------------------------------


def stochastic(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random weights whose rows sum to 1."""
    A = rng.uniform(0.1, 1, shape)
    return A / A.sum(-1, keepdims=True)


def exactly_stochastic(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random weights whose rows sum to 1 without any rounding."""
    parts = rng.multinomial(4096, np.full(shape[-1], 1 / shape[-1]), shape[:-1])
    return parts / 4096


def amounts(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0, 9, shape)


MIX_CASES = Table({"A": Drawn("... m n", stochastic), "X": "... n d"}, tensors=False, how=normal)
MIX_ROWS = standard(MIX_CASES)
MIX_BY_HAND = Case(
    (
        np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.2, 0.2, 0.6]]),
        np.array([[1.0, 0.0], [3.0, 4.0], [-1.0, 8.0]]),
    )
)
WHOLE_X = Case((MIX_BY_HAND.args[0], np.array([[1, 0], [3, 4], [-1, 8]])), note="integers in X")

AMOUNTS = Table({"A": "... m n"}, tensors=False, how=amounts)
AMOUNT_ROWS = standard(AMOUNTS)
AMOUNTS_BY_HAND = Case((np.array([[1.0, 3.0, 0.0], [2.0, 2.0, 4.0], [0.0, 5.0, 0.0]]),))

WEIGHTS = Table({"A": "... m n"}, tensors=False, how=exactly_stochastic)
WEIGHTS_ROWS = standard(WEIGHTS)
WEIGHTS_BY_HAND = Case((np.array([[0.5, 0.5], [0.1, 0.9]]),))


def matrix(*rows, note="", raises=None, **kwargs) -> Case:
    """A case with this matrix."""
    return Case((np.array(rows),), kwargs, note=note, raises=raises)


def times(factor, rows, note) -> Case:
    """Weights, some rows of which are multiplied by a factor."""
    A = np.array([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75], [0.5, 0.375, 0.125]])
    A[rows] *= factor
    return Case((A,), note=note)


def off(by, note, **kwargs) -> Case:
    """Weights with one entry larger by a number."""
    return matrix([0.5, 0.25, 0.25], [0.125, 0.25, 0.625 + by], note=note, **kwargs)


def counts(rng: Rng) -> list[Case]:
    """Calls with a number of tokens only."""
    numbers = (3, 5, int(rng.integers(6, 12)), 2, 17)
    return [*(Case((n,)) for n in numbers), Case((3,), note="the first call once more")]


def one_token(rng: Rng) -> list[Case]:
    return [Case((1,), note="n = 1")]


def windows(rng: Rng) -> list[Case]:
    drawn = [Case((11, 5)), Case((int(rng.integers(17, 23)), 7)), Case((8, 3))]
    return [Case((5, 3)), *drawn, Case((5, 3), note="the first call once more")]


def window_edges(rng: Rng) -> list[Case]:
    return [
        Case((5, 1), note="width 1: a token sees only itself"),
        Case((5, 5), note="a window as wide as the sequence"),
        Case((3, 7), note="a window wider than the sequence"),
        Case((2, 3), note="two tokens"),
        Case((1, 3), note="n = 1"),
    ]


def window_even(rng: Rng) -> list[Case]:
    sizes = ((7, 4), (3, 2), (3, 8))
    return [Case(size, note="even width", raises=ValueError) for size in sizes]


# --- usual mistakes --------------------------------------------------------------------------


def divide_rows(A, by):
    """A with each row divided by ``by``, rows of zeros left alone."""
    return A / np.where(by == 0, 1, by)


def shares(A):
    return divide_rows(A, A.sum(-1, keepdims=True))


def softmax(A):
    return shares(np.exp(A - A.max(-1, keepdims=True)))


@composition
def mixer(weights=lambda A: A, product=np.matmul, finish=lambda U, X: U):
    """``mix`` made of decisions."""
    return lambda A, X: finish(product(weights(A), X), X)


@composition
def normalizer(
    refuse=lambda A: (A < 0).any(),
    prepare=lambda A: A,
    by=lambda A: A.sum(-1, keepdims=True),
    divide=divide_rows,
):
    """``normalize_rows`` made of decisions."""

    def normalize_rows(A):
        if refuse(A):
            raise ValueError(REFUSED)
        return divide(prepare(A), by(prepare(A)))

    return normalize_rows


def uniform_where_zero(A, sums):
    return np.where(sums == 0, 1 / A.shape[-1], divide_rows(A, sums))


def divide_in_place(A, sums):
    A /= np.where(sums == 0, 1, sums)
    return A


@composition
def stochastic_test(
    low=lambda A, atol: (A >= -atol).all(),
    total=lambda A: A.sum(-1),
    close=lambda sums, atol: np.abs(sums - 1) <= atol,
    gather=np.all,
    tolerance=lambda atol: atol,
    finish=bool,
):
    """``is_row_stochastic`` made of decisions."""

    def is_row_stochastic(A, atol=1e-8):
        atol = tolerance(atol)
        return finish(low(A, atol) and gather(close(total(A), atol)))

    return is_row_stochastic


@composition
def uniform(share=lambda n: 1 / n, shape=lambda n: (n, n), finish=lambda W: W):
    """``uniform_weights`` made of decisions."""
    return lambda n: finish(np.full(shape(n), share(n)))


@composition
def running(seen=lambda n: np.tri(n), normalize=shares):
    """``causal_mean_weights`` made of decisions."""
    return lambda n: normalize(seen(n))


def running_halves(n):
    W = np.eye(n)
    for i in range(1, n):
        W[i] = (W[i - 1] + W[i]) / 2
    return W


@composition
def window(
    refuse=lambda n, width: width % 2 == 0,
    reach=lambda width: width // 2,
    inside=lambda i, j, n, half: abs(i - j) <= half,
    normalize=lambda W, width: shares(W),
):
    """``window_weights`` made of decisions: which widths, how far, which tokens, what share."""

    def window_weights(n, width):
        if refuse(n, width):
            raise ValueError(REFUSED)
        i, j = np.arange(n)[:, None], np.arange(n)[None, :]
        return normalize(inside(i, j, n, reach(width)).astype(float), width)

    return window_weights


def folded(fold):
    """A window that never gets shorter: ``fold(j, n)`` is the token in place of one outside."""

    def window_weights(n, width):
        if width % 2 == 0:
            raise ValueError(REFUSED)
        W = np.zeros((n, n))
        for i in range(n):
            for j in range(i - width // 2, i + width // 2 + 1):
                W[i, fold(j, n)] += 1
        return W / width

    return window_weights


def from_a_negative_start(i, j, n, half):
    start = np.where(i < half, np.maximum(n + i - half, 0), i - half)
    return (start <= j) & (j <= i + half)


def pushed_inside(i, j, n, half):
    start = np.clip(i - half, 0, max(n - 2 * half - 1, 0))
    return (start <= j) & (j <= start + 2 * half)


# --- exercises -------------------------------------------------------------------------------

MIX = Exercise(
    target="mixing.mix",
    reference=mixing.mix,
    section="Chapter 2, “A row of weights for every token”",
    difficulty=1,
    minutes=5,
    criteria=(
        Criterion(
            "mixes tokens with the rows of A",
            3,
            MIX_CASES(MIX_BY_HAND, row("m=7 n=7 d=5"), row("m=5 n=5 d=5")),
        ),
        Criterion(
            "any number of outputs and tokens",
            1,
            MIX_CASES(
                row("m=5 n=7 d=3", note="fewer outputs than tokens"),
                row("m=1 n=1 d=3", note="n = 1"),
                row("m=5 n=7 d=3", turned=True, note="not contiguous in memory"),
            ),
        ),
        Criterion(
            "batches",
            1,
            MIX_CASES(
                *MIX_ROWS.batches,
                row(
                    "m=5 n=5 d=7",
                    batch=(2, 3),
                    given={"A": Drawn("m n", stochastic)},
                    note="two batch axes on X",
                ),
            ),
        ),
        Criterion(
            "any weights and any size of number",
            1,
            MIX_CASES(
                row("m=5 n=5 d=3", given={"A": Drawn("m n", normal)}, note="any A"),
                *MIX_ROWS.numbers,
                WHOLE_X,
                once_more(MIX_BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "A is transposed",
            "Your output i uses column i of A, that is `A.T @ X`. The weights of output i stand in "
            "row i: U[i] is the sum over j of A[i, j] X[j], which is `A @ X`.",
            mixer(weights=lambda A: np.swapaxes(A, -1, -2)),
            also=(mixer(weights=lambda A: A.T),),
        ),
        Misconception(
            "np.dot on a batch",
            "`np.dot` of two batches pairs every matrix of the one with every matrix of the other, "
            "and the result has too many axes. `@` (np.matmul) takes the batch axes together, "
            "one matrix of A for one matrix of X.",
            mixer(product=lambda A, X: np.dot(A, X)),
        ),
        Misconception(
            "X stands on the left",
            "`X @ A` sums over the features of X. The sum runs over tokens, the columns of A and "
            "the rows of X: `A @ X`.",
            mixer(product=lambda A, X: X @ A),
        ),
        Misconception(
            "X is transposed",
            "`A @ X.T` sums over the features of X, which are its columns. Tokens are rows: "
            "`A @ X`.",
            mixer(product=lambda A, X: A @ np.swapaxes(X, -1, -2)),
            also=(mixer(product=lambda A, X: A @ X.T),),
        ),
        Misconception(
            "entries multiplied one by one",
            "`*` multiplies entries at the same place. An output is a sum over tokens: the matrix "
            "product `@`.",
            mixer(product=lambda A, X: A * X),
        ),
        Misconception(
            "the weights are normalised first",
            "You divide the rows of A by their sums before mixing. `mix` takes the weights as they "
            "are; whether they sum to 1 is for the one who made them to see to.",
            mixer(weights=lambda A: divide_rows(A, A.sum(-1, keepdims=True))),
        ),
        Misconception(
            "a softmax of the weights",
            "You make new weights by a softmax. `mix` takes them as they are.",
            mixer(weights=softmax),
        ),
        Misconception(
            "the result is averaged once more",
            "You divide the sum over the tokens by their number. The weights are already shares: "
            "the sum over j of A[i, j] X[j] is the average, nothing is left to divide by.",
            mixer(finish=lambda U, X: U / X.shape[-2]),
        ),
        Misconception(
            "the token itself is added",
            "You return `X + A @ X`. Adding the input back is a residual connection, which comes "
            "in the chapter on transformers; here the output is the mixture alone.",
            mixer(finish=lambda U, X: X + U),
        ),
        Misconception(
            "one vector for the whole sequence",
            "You add the mixed tokens up into one vector. There are as many outputs as rows in A, "
            "one for each: keep the token axis.",
            mixer(finish=lambda U, X: U.sum(-2)),
        ),
        Misconception(
            "fractions are cut off",
            "Your result has the dtype of X, and where X holds whole numbers the mixtures lose "
            "what comes after the point.",
            mixer(finish=lambda U, X: U.astype(X.dtype)),
            also=(mixer(finish=lambda U, X: U.astype(int)),),
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
        Criterion(
            "every row sums to 1, in the old proportions",
            3,
            AMOUNTS(
                AMOUNTS_BY_HAND, row("m=5 n=5"), row("m=5 n=3"), row("m=1 n=7"), row("m=3 n=1")
            ),
        ),
        Criterion(
            "a row of zeros stays zero",
            1,
            AMOUNTS(
                matrix([1.0, 3.0, 4.0], [0.0, 0.0, 0.0], [2.0, 2.0, 6.0], note="one row of zeros"),
                Case((np.zeros((2, 3)),), note="zeros everywhere"),
            ),
        ),
        Criterion(
            "batches, memory layout, float32",
            1,
            AMOUNTS(
                *AMOUNT_ROWS.batches,
                row("m=3 n=5", turned=True, note="not contiguous"),
                AMOUNT_ROWS.single,
                *AMOUNT_ROWS.integers,
                row("m=5 n=3", factor=1e6, note="large entries"),
                row("m=3 n=5", factor=1e-3, note="small entries"),
                once_more(AMOUNTS_BY_HAND),
            ),
        ),
        Criterion(
            "refuses a negative entry with ValueError",
            1,
            AMOUNTS(
                matrix([1.0, 2.0], [3.0, -0.5], note="a negative entry", raises=ValueError),
                matrix([1.0, 2.0], [0.5, -3.0], note="a negative sum", raises=ValueError),
                matrix([-1.0, -2.0], note="no entry above 0", raises=ValueError),
            ),
        ),
        leaves_arguments_alone(),
    ),
    excludes=(
        ("entries that cancel", "No entry is below 0."),
        ("a row of very small numbers", "A row that is not zero sums to 0.001 or more."),
    ),
    misconceptions=(
        Misconception(
            "columns are normalised, not rows",
            "Your columns sum to 1. A row holds one token's weights, so the sum runs over the last "
            "axis: `A.sum(axis=-1, keepdims=True)`.",
            normalizer(by=lambda A: A.sum(-2, keepdims=True)),
        ),
        Misconception(
            "the sums lost their axis",
            "`A.sum(axis=-1)` has shape (m,), and dividing by it lines row sum i up with column i. "
            "`keepdims=True` leaves shape (m, 1), one sum beside each row.",
            normalizer(by=lambda A: A.sum(-1)),
        ),
        Misconception(
            "the whole matrix sums to 1",
            "You divide by the sum of all entries. Each row has a budget of 1 of its own.",
            normalizer(by=lambda A: A.sum()),
            also=(normalizer(by=lambda A: A.sum((-2, -1), keepdims=True)),),
        ),
        Misconception(
            "divided by the largest entry",
            "You divide each row by its maximum, so its largest entry is 1. The row's sum is to "
            "be 1.",
            normalizer(by=lambda A: A.max(-1, keepdims=True)),
        ),
        Misconception(
            "divided by the length",
            "You divide each row by its Euclidean norm: the squares sum to 1. For shares of a "
            "whole the entries themselves sum to 1.",
            normalizer(by=lambda A: np.linalg.norm(A, axis=-1, keepdims=True)),
        ),
        Misconception(
            "divided by the mean or the number of entries",
            "You divide each row by its mean, or by how many entries it has. Divide by their sum.",
            normalizer(by=lambda A: A.mean(-1, keepdims=True)),
            also=(normalizer(by=lambda A: A.shape[-1]),),
        ),
        Misconception(
            "a row of zeros becomes NaN",
            "A row of zeros has the sum 0, and 0/0 is NaN. Divide by 1 in such a row, so that it "
            "stays zero.",
            normalizer(divide=np.divide),
        ),
        Misconception(
            "a row of zeros becomes uniform",
            "You spread a row of zeros evenly. The exercise leaves it zero: no weight was asked "
            "for, none is given.",
            normalizer(divide=uniform_where_zero),
        ),
        Misconception(
            "a guard that shows in the result",
            "You add a small number to every sum, and the rows no longer sum to 1. Replace only "
            "the sums that are 0: `np.where(sums == 0, 1, sums)`.",
            normalizer(divide=lambda A, sums: A / (sums + 1e-3)),
            Family(
                lambda guard: normalizer(divide=lambda A, sums: A / (sums + guard)),
                Between(1e-9, 10.0),
            ),
        ),
        Misconception(
            "the argument is changed in place",
            "`A /= …` writes into the caller's array, which then holds other numbers than before. "
            "`A / …` makes a new one.",
            normalizer(divide=divide_in_place),
        ),
        Misconception(
            "shares have no room in whole numbers",
            "`np.zeros_like(A)` holds whole numbers where A does, and NumPy refuses to write "
            "shares into it. Make it with `np.zeros(A.shape)`.",
            normalizer(
                divide=lambda A, sums: np.divide(A, sums, out=np.zeros_like(A), where=sums != 0)
            ),
        ),
        Misconception(
            "a softmax in place of a division",
            "You exponentiate before dividing. That is a softmax, which comes in chapter 3 and "
            "changes the proportions; here an entry twice as large gets twice the weight.",
            normalizer(prepare=np.exp),
            also=(normalizer(prepare=lambda A: np.exp(A - A.max(-1, keepdims=True))),),
        ),
        Misconception(
            "negative entries are accepted",
            "You divide without looking. A negative share has no meaning in a mixture: raise "
            "`ValueError` where an entry is below 0.",
            normalizer(refuse=lambda A: False),
        ),
        Misconception(
            "only negative sums are refused",
            "You look at the sums. A row of 3 and −0.5 has a positive one: ask for any entry "
            "below 0.",
            normalizer(refuse=lambda A: (A.sum(-1) < 0).any()),
        ),
        Misconception(
            "refused only where every entry is negative",
            "You ask whether `all` entries are below 0. One is enough: `(A < 0).any()`.",
            normalizer(refuse=lambda A: (A < 0).all()),
        ),
        Misconception(
            "zeros are refused",
            "You refuse 0 as well. It is an amount like any other: test `A < 0`.",
            normalizer(refuse=lambda A: (A <= 0).any()),
        ),
        Misconception(
            "negative entries are mended",
            "You set negative entries to 0, or drop their sign. A wrong number is a mistake made "
            "earlier: raise `ValueError`.",
            normalizer(refuse=lambda A: False, prepare=lambda A: np.maximum(A, 0)),
            also=(normalizer(refuse=lambda A: False, prepare=np.abs),),
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
        Criterion(
            "rows that sum to 1, and others",
            2,
            lambda rng: [
                WEIGHTS_BY_HAND,
                matrix([0.5, 0.1], [0.5, 0.9], note="its columns sum to 1"),
                Case((np.eye(3),), note="entries of 0 are allowed"),
                WEIGHTS.case(rng, row("m=5 n=5")),
                times(0.9, 1, "one row sums to 0.9"),
                times(1.3, slice(None), "every row sums to 1.3"),
                times(0.5, slice(1, None), "the first row alone sums to 1"),
                times(1.2, 0, "the first row sums to 1.2"),
            ],
        ),
        Criterion(
            "negative entries",
            1,
            lambda rng: [
                matrix([1.8, -0.8], [0.5, 0.5], note="the rows sum to 1, one entry is negative"),
                matrix([0.7, 0.2, 0.1], note="a row sum of 1 up to rounding"),
                matrix([0.5, -0.5, 0.0], note="entries that cancel"),
            ],
        ),
        Criterion(
            "the tolerance is absolute",
            1,
            lambda rng: [
                off(5e-9, "a row sum of 1 + 5e-9, inside the default tolerance"),
                off(1e-6, "a row sum of 1 + 1e-6, outside the default tolerance"),
                off(-1e-6, "a row sum of 1 − 1e-6, outside the default tolerance"),
                off(5e-4, "a row sum of 1 + 5e-4", atol=1e-3),
                off(5e-9, "a row sum of 1 + 5e-9", atol=1e-10),
                matrix([0.5, 0.5], [0.25, 0.75], atol=0, note="no tolerance"),
                matrix([1 + 5e-9, 0.0], [0.5, 0.5], note="an entry of 1 + 5e-9"),
                matrix([0.6, 0.4 + 5e-9, -5e-9], note="an entry of −5e-9"),
                matrix([1 + 1e-6, -1e-6], note="an entry of −1e-6"),
            ],
        ),
        Criterion(
            "batches and NaN",
            1,
            WEIGHTS(
                *WEIGHTS_ROWS.batches,
                matrix(*np.array([np.eye(3), np.eye(3), np.eye(3) / 2]), note="a batch of 3"),
                matrix(*np.array([np.eye(3), np.eye(3)]), note="a batch of 2 identities"),
                matrix([0.5, 0.5], [1.0, np.nan], note="NaN in one entry"),
                matrix([1.0], [1.0], note="one column"),
                matrix([0, 1], [1, 0], note="whole numbers"),
                Case((np.array([[0.5, 0.5], [0.25, 0.75]], np.float32),), note="float32"),
                *WEIGHTS_ROWS.extreme,
                once_more(WEIGHTS_BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "columns are tested, not rows",
            "You ask whether the columns sum to 1. A row is one token's weights: sum over the last "
            "axis.",
            stochastic_test(total=lambda A: A.sum(-2)),
            also=(stochastic_test(total=lambda A: A.sum(0)),),
        ),
        Misconception(
            "sums over axis 1",
            "`sum(axis=1)` is right for a single matrix; in a batch axis 1 holds the rows. Count "
            "from the end: `axis=-1`.",
            stochastic_test(total=lambda A: A.sum(1)),
        ),
        Misconception(
            "a loop over the first axis",
            "`for row in A` meets whole matrices where A is a batch. `A.sum(axis=-1)` has the sums "
            "of all rows, whatever stands before them.",
            stochastic_test(total=lambda A: A.reshape(len(A), -1).sum(-1)),
        ),
        Misconception(
            "columns are tested too",
            "You ask whether rows and columns sum to 1. The columns are free: a token may be "
            "listened to by all or by none.",
            stochastic_test(total=lambda A: np.concatenate([A.sum(-1).ravel(), A.sum(-2).ravel()])),
        ),
        Misconception(
            "negative entries pass",
            "You look at the sums only. Weights also have to be at least 0 (up to `atol`).",
            stochastic_test(low=lambda A, atol: True),
        ),
        Misconception(
            "negative entries have no tolerance",
            "You ask for entries of at least 0. An entry down to `-atol` passes.",
            stochastic_test(low=lambda A, atol: (A >= 0).all()),
        ),
        Misconception(
            "entries above 1 are refused",
            "You ask for entries of at most 1, without a tolerance. Only the sum of a row has an "
            "upper end.",
            stochastic_test(low=lambda A, atol: ((A >= -atol) & (A <= 1)).all()),
        ),
        Misconception(
            "the sums are not tested",
            "You ask only for entries that are not negative. Each row also has to sum to 1.",
            lambda A, atol=1e-8: bool((A >= -atol).all()),
        ),
        Misconception(
            "exact comparison",
            "You compare floating-point sums with `==`. Ten times 0.1 is not exactly 1; allow a "
            "difference of `atol`.",
            stochastic_test(tolerance=lambda atol: 0),
            also=(stochastic_test(close=lambda sums, atol: sums == 1),),
        ),
        Misconception(
            "a relative tolerance slips in",
            "`np.allclose` and `np.isclose` add a relative tolerance of 1e-5 unless told `rtol=0`. "
            "Here the tolerance is `atol` alone.",
            stochastic_test(close=lambda sums, atol: np.isclose(sums, 1, atol=atol)),
            also=(stochastic_test(close=lambda sums, atol: np.isclose(sums, 1)),),
        ),
        Misconception(
            "sums below 1 pass",
            "You test `sum − 1 <= atol`, which is also true of every sum below 1. The difference "
            "counts in both directions: take its absolute value.",
            stochastic_test(close=lambda sums, atol: sums - 1 <= atol),
            also=(stochastic_test(close=lambda sums, atol: sums - 1 < atol),),
        ),
        Misconception(
            "sums above 1 pass",
            "You test `sum >= 1 − atol`, which is also true of every sum above 1. The difference "
            "counts in both directions: take its absolute value.",
            stochastic_test(close=lambda sums, atol: sums >= 1 - atol),
        ),
        Misconception(
            "zeros are refused",
            "You ask for entries above 0. A weight of 0, a token not listened to, is allowed.",
            stochastic_test(low=lambda A, atol: (A > 0).all()),
        ),
        Misconception(
            "one right row is enough",
            "You use `any` over the rows. Every row has to sum to 1: `all`.",
            stochastic_test(gather=np.any),
        ),
        Misconception(
            "the mean of the sums is tested",
            "You compare the sum of all entries with the number of rows, or the mean of the sums "
            "with 1. Some rows may be above and others below: test each.",
            stochastic_test(total=lambda A: A.sum(-1).mean()),
            also=(stochastic_test(total=lambda A: A.sum() - len(A) + 1),),
        ),
        Misconception(
            "the whole matrix is to sum to 1",
            "You add up all entries. Each row has a sum of its own: `A.sum(axis=-1)`.",
            stochastic_test(total=lambda A: A.sum()),
        ),
        Misconception(
            "only the first row is tested",
            "Your answer is that of the first row. Look at every row before you return True.",
            stochastic_test(total=lambda A: A[..., 0, :].sum(-1)),
            also=(
                lambda A, atol=1e-8: bool((A[0] >= -atol).all() and abs(A[0].sum() - 1) <= atol),
            ),
        ),
        Misconception(
            "atol is not used",
            "You compare with a fixed tolerance and not with the argument `atol`.",
            stochastic_test(tolerance=lambda atol: 1e-8),
            Family(
                lambda fixed: stochastic_test(tolerance=lambda atol: fixed),
                (1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-12),
            ),
        ),
        Misconception(
            "a difference of atol is refused",
            "You test `< atol`, so that with `atol=0` no matrix passes. A difference of `atol` is "
            "allowed: `<=`.",
            stochastic_test(close=lambda sums, atol: np.abs(sums - 1) < atol),
        ),
        Misconception(
            "NaN passes",
            "You return False where something is wrong, and a comparison with NaN is never true. "
            "Ask for what is right instead: `(A >= -atol).all()`.",
            stochastic_test(
                low=lambda A, atol: not (A < -atol).any(),
                close=lambda sums, atol: ~(np.abs(sums - 1) > atol),
            ),
            also=(
                stochastic_test(
                    low=lambda A, atol: not (A < -atol).any(), total=lambda A: np.nansum(A, -1)
                ),
            ),
        ),
        Misconception(
            "True and False are exchanged",
            "You return False for a matrix that is row-stochastic, and True for others.",
            stochastic_test(finish=lambda yes: not yes),
        ),
        Misconception(
            "nothing is returned where the answer is no",
            "Your function ends without a `return` where the matrix fails, and so returns None. "
            "Return False there.",
            stochastic_test(finish=lambda yes: True if yes else None),
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
            uniform(share=lambda n: 1.0),
        ),
        Misconception(
            "the whole matrix sums to 1",
            "Your entries are 1/n², so all of them together sum to 1. Each row has a budget of 1 "
            "of its own.",
            uniform(share=lambda n: 1 / n**2),
        ),
        Misconception(
            "divided by another number than n",
            "Your entries do not follow 1/n. n tokens share a budget of 1.",
            uniform(share=lambda n: 1 / (n + 1)),
            also=(uniform(share=lambda n: n**-0.5), uniform(share=lambda n: 1 / max(n - 1, 1))),
        ),
        Misconception(
            "the same share for every n",
            "Your entries are one and the same number, whatever n is. n tokens share a budget of "
            "1: each gets 1/n.",
            uniform(share=lambda n: 0.25),
            Family(lambda share: uniform(share=lambda n: share), (0.5, 1 / 3, 0.2, 0.1)),
        ),
        Misconception(
            "one row only",
            "You return one row of weights. Every one of the n tokens needs its row: shape (n, n).",
            uniform(shape=lambda n: n),
            also=(uniform(shape=lambda n: (1, n)), uniform(shape=lambda n: (n, 1))),
        ),
        Misconception(
            "a token leaves itself out",
            "Your diagonal is 0 and the rest is 1/(n−1). The plain average includes the token "
            "itself.",
            lambda n: (1 - np.eye(n)) / max(n - 1, 1),
            also=(lambda n: (1 - np.eye(n)) / np.float64(n - 1),),
        ),
        Misconception(
            "every token keeps to itself",
            "You return the identity, which mixes nothing. Uniform means the same weight on every "
            "token.",
            lambda n: np.eye(n),
        ),
        Misconception(
            "a token gives weight to itself alone",
            "Your entries are 1/n on the diagonal and 0 elsewhere. All n entries of a row are 1/n.",
            uniform(finish=lambda W: W * np.eye(len(W))),
        ),
        Misconception(
            "fractions are cut off",
            "Your matrix holds whole numbers, by `dtype=int` or `//`, and 1/n becomes 0.",
            uniform(finish=lambda W: W.astype(int)),
        ),
        Misconception(
            "rounded",
            "You round 1/n, and the rows no longer sum to 1. Leave the numbers as they come.",
            uniform(finish=lambda W: np.round(W, 3)),
            Family(
                lambda digits: uniform(finish=lambda W: np.round(W, digits)), (1, 2, 4, 5, 6, 7, 8)
            ),
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
            running(seen=lambda n: np.tri(n, k=-1)),
            Family(lambda k: running(seen=lambda n: np.tri(n, k=k)), (-2, -3)),
            also=(
                running(seen=lambda n: np.tri(n, k=-1), normalize=lambda W: W / W.sum(-1)[:, None]),
                running(seen=lambda n: np.maximum(np.tri(n, k=-1), np.eye(n, 1) @ np.eye(1, n))),
            ),
        ),
        Misconception(
            "the future, not the past",
            "Your matrix is upper triangular: token i averages what comes after it. Row i may hold "
            "weights in columns 0 … i only, the lower triangle.",
            running(seen=lambda n: np.tri(n).T),
        ),
        Misconception(
            "the columns sum to 1",
            "You divided by the column sums. Each row is one token's average, so each row sums "
            "to 1.",
            running(normalize=lambda W: W / W.sum(-2, keepdims=True)),
        ),
        Misconception(
            "the counts stand along the columns",
            "`W.sum(axis=1)` and `np.arange(1, n + 1)` have shape (n,), and dividing by them "
            "divides column j by j + 1. Behind `[:, None]` or `keepdims=True` they stand beside "
            "the rows.",
            running(normalize=lambda W: W / W.sum(-1)),
        ),
        Misconception(
            "every row divided by n",
            "Row i averages i + 1 tokens, not n: divide each row by its own number of tokens.",
            running(normalize=lambda W: W / len(W)),
        ),
        Misconception(
            "the count is off by one",
            "Rows count from 0, so row i averages i + 1 tokens. Divide by `i + 1`.",
            running(normalize=lambda W: W / np.arange(len(W))[:, None]),
            also=(
                running(normalize=lambda W: W / np.maximum(np.arange(len(W)), 1)[:, None]),
                running(normalize=lambda W: W / (np.arange(len(W))[:, None] + 2)),
            ),
        ),
        Misconception(
            "the rows are not normalised",
            "Your entries are 1, so row i sums to i + 1. Divide each row by its sum.",
            running(normalize=lambda W: W),
        ),
        Misconception(
            "one row too many tokens",
            "Row i of your matrix includes token i + 1, which is in its future. `np.tril` with "
            "k = 0 keeps the diagonal and nothing above it.",
            running(seen=lambda n: np.tri(n, k=1)),
            Family(lambda k: running(seen=lambda n: np.tri(n, k=k)), (2, 3)),
        ),
        Misconception(
            "every token keeps to itself",
            "You return the identity, which averages nothing. Row i averages tokens 0 … i.",
            running(seen=np.eye),
        ),
        Misconception(
            "the future counts too",
            "Every row of yours averages all n tokens. Row i stops at token i.",
            running(seen=lambda n: np.ones((n, n))),
        ),
        Misconception(
            "the first row stays empty",
            "Your loop begins with row 1. Row 0 is the average of token 0 alone: a 1.",
            running(seen=lambda n: np.tri(n) * (np.arange(n) > 0)[:, None]),
        ),
        Misconception(
            "the last row stays empty",
            "Your loop ends before the last row, which averages all n tokens.",
            running(seen=lambda n: np.tri(n) * (np.arange(n) < n - 1)[:, None]),
        ),
        Misconception(
            "a softmax of zeros and ones",
            "exp(0) is 1, so the future gets weight. Divide the rows of zeros and ones by their "
            "sums.",
            running(normalize=softmax),
        ),
        Misconception(
            "the newest token counts half",
            "You average the mean so far with the new token, and older tokens count less and less. "
            "All i + 1 tokens have the same weight.",
            running_halves,
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
            window(normalize=lambda W, width: W / width),
        ),
        Misconception(
            "width taken as the half-width",
            "Your window reaches `width` tokens to each side, or one less, and holds about twice "
            "as many. `width` counts all its tokens, so it reaches `width // 2` to each side.",
            window(reach=lambda width: width),
            also=(window(reach=lambda width: width - 1),),
        ),
        Misconception(
            "one token too few on each side",
            "Your window is two tokens narrower than `width`. A token at distance `width // 2` is "
            "still inside: use `<=`, not `<`.",
            window(inside=lambda i, j, n, half: (abs(i - j) < half) | ((half == 0) & (i == j))),
            also=(window(inside=lambda i, j, n, half: abs(i - j) < half),),
        ),
        Misconception(
            "one token too many on each side",
            "Your window is two tokens wider than `width`. It reaches `width // 2` to each side.",
            window(reach=lambda width: width // 2 + 1),
        ),
        Misconception(
            "one side is a token short",
            "Your slice ends before token i + width // 2, which is still inside: a slice leaves "
            "its end out, `i + width // 2 + 1`.",
            window(inside=lambda i, j, n, half: (i - half <= j) & (j < i + half)),
            also=(window(inside=lambda i, j, n, half: (i - half < j) & (j <= i + half)),),
        ),
        Misconception(
            "the window looks back only",
            "Your window ends with the token itself. Here it is centred: as many tokens after as "
            "before.",
            window(inside=lambda i, j, n, half: (i - j >= 0) & (i - j <= 2 * half)),
            also=(window(inside=lambda i, j, n, half: (i - j >= 0) & (i - j <= half)),),
        ),
        Misconception(
            "the window looks ahead only",
            "Your window begins with the token itself. Here it is centred: as many tokens after "
            "as before.",
            window(inside=lambda i, j, n, half: (j - i >= 0) & (j - i <= 2 * half)),
            also=(window(inside=lambda i, j, n, half: (j - i >= 0) & (j - i <= half)),),
        ),
        Misconception(
            "the window wraps around",
            "At the edges your window goes on at the other end of the sequence. A sequence is not "
            "a ring: cut the window off and renormalise.",
            window(inside=lambda i, j, n, half: np.minimum((i - j) % n, (j - i) % n) <= half),
            also=(folded(lambda j, n: j % n),),
        ),
        Misconception(
            "a negative start counts from the end",
            "`W[i, i - half : …]` with i < half begins near the end of the row, and the first rows "
            "come out empty. Begin at `max(i - half, 0)`.",
            window(inside=from_a_negative_start),
            also=(
                window(inside=from_a_negative_start, normalize=lambda W, w: W / W.sum(1)[:, None]),
            ),
        ),
        Misconception(
            "the window is pushed inside at the edges",
            "Near the ends your window moves so that it keeps its width. It stays centred on its "
            "token and is cut off.",
            window(inside=pushed_inside),
        ),
        Misconception(
            "the ends are repeated",
            "Where your window passes an end, the first or the last token counts several times. "
            "The window is cut off there, and what remains shares the weight.",
            folded(lambda j, n: min(max(j, 0), n - 1)),
        ),
        Misconception(
            "the edges stay empty",
            "Only tokens with a whole window around them get weights. Near the ends the window is "
            "cut off, and what remains is averaged.",
            window(
                inside=lambda i, j, n, half: (abs(i - j) <= half) & (half <= i) & (i < n - half)
            ),
        ),
        Misconception(
            "blocks, not windows",
            "You cut the sequence into blocks of `width` tokens. Each token has a window of its "
            "own, centred on it.",
            window(inside=lambda i, j, n, half: i // (2 * half + 1) == j // (2 * half + 1)),
        ),
        Misconception(
            "the columns sum to 1",
            "You normalised columns, or divided by `W.sum(axis=1)`, which without `keepdims=True` "
            "lines up with them. Each row is one token's average, so each row sums to 1.",
            window(normalize=lambda W, width: W / W.sum(-2, keepdims=True)),
        ),
        Misconception(
            "the rows are not normalised",
            "Your entries are 0 and 1. Divide each row by its sum.",
            window(normalize=lambda W, width: W),
        ),
        Misconception(
            "an even width is accepted",
            "An even window has no middle, so the exercise asks for a `ValueError`; yours returns "
            "a matrix.",
            window(refuse=lambda n, width: False),
            also=(window(refuse=lambda n, width: False, reach=lambda width: (width - 1) // 2),),
        ),
        Misconception(
            "odd widths are refused",
            "You raise `ValueError` for an odd width and take the even ones. It is the other way "
            "round: `width % 2 == 0` is refused.",
            window(refuse=lambda n, width: width % 2 == 1),
        ),
        Misconception(
            "a wide window is refused",
            "You refuse a window that is wider than the sequence. It is allowed: every token then "
            "sees what there is.",
            window(refuse=lambda n, width: width % 2 == 0 or width > n),
            also=(window(refuse=lambda n, width: width % 2 == 0 or width >= n),),
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
