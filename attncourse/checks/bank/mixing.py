"""The exercises of chapter 2, fixed linear mixing."""

import numpy as np

from attncourse import mixing
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import PERCENT
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import (
    CaseTable,
    Count,
    Drawn,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.numpy_mistakes import (
    EACH_ROW,
    over,
    refuse_if,
    result,
    swapped,
    within,
)
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax

# --- cases -----------------------------------------------------------------------------------


def stochastic(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random weights whose rows sum to 1."""
    A = rng.uniform(0.1, 1, shape)
    return A / A.sum(-1, keepdims=True)


def exactly_stochastic(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random weights whose rows sum to 1 without any rounding."""
    return rng.multinomial(4096, np.full(shape[-1], 1 / shape[-1]), shape[:-1]) / 4096


def matrix(*rows, note="", raises=None, **kwargs) -> Case:
    """A case with this matrix."""
    return Case((np.array(rows),), kwargs, note=note, raises=raises)


MIX_CASES = CaseTable(
    {"A": Drawn("... m n", stochastic), "X": "... n d"}, tensors=False, how=normal
)
MIX_ROWS = standard(MIX_CASES)
A_BY_HAND = np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.2, 0.2, 0.6]])
X_BY_HAND = np.array([[1, 0], [3, 4], [-1, 8]])
WHOLE_A = np.array([[1, 2, 0], [0, 1, 3], [4, 0, 1]])
MIX_BY_HAND = Case((A_BY_HAND, X_BY_HAND.astype(float)))
ONE_A = {"A": Drawn("m n", stochastic)}

AMOUNTS = CaseTable(
    {"A": "... m n"}, tensors=False, how=lambda rng, shape: rng.uniform(1, 9, shape)
)
AMOUNT_ROWS = standard(AMOUNTS)
AMOUNTS_BY_HAND = matrix([1.0, 3.0, 0.0], [2.0, 2.0, 4.0], [0.0, 5.0, 0.0])


def off(by, note, **kwargs) -> Case:
    """Weights with one entry larger by a number."""
    return matrix([0.5, 0.25, 0.25], [0.125, 0.25, 0.625 + by], note=note, **kwargs)


WEIGHTS = CaseTable({"A": "... m n"}, tensors=False, how=exactly_stochastic)
WEIGHTS_ROWS = standard(WEIGHTS)
WEIGHTS_BY_HAND = matrix([0.5, 0.5], [0.1, 0.9])
THREE_ROWS = np.array([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75], [0.5, 0.375, 0.125]])


def few_tokens(rng: Rng) -> list[Case]:
    """Calls with a number of tokens only, the first once more after the others."""
    return [*(Case((n,)) for n in (3, 5)), once_more(Case((3,)))]


def any_number(rng: Rng) -> list[Case]:
    return [Case((n,)) for n in (int(rng.integers(6, 12)), 2, 17)]


ANY_NUMBER = Criterion("any number of tokens", 1).on(any_number)
ONE_TOKEN = Criterion("one token", 1).on(lambda rng: [Case((1,), note="n = 1")])
WINDOW_CASES = CaseTable({"n": Count("n"), "width": Count("width")})


def windows(rng: Rng) -> list[Case]:
    return [Case((5, 3)), Case((8, 3)), once_more(Case((5, 3)))]


def wider_windows(rng: Rng) -> list[Case]:
    return [Case((11, 5)), Case((int(rng.integers(17, 23)), 7))]


# --- usual mistakes: mixing ------------------------------------------------------------------


@composition
def mixer(weights=lambda A: A, product=np.matmul, finish=result):
    """``mix`` made of decisions."""
    return lambda A, X: finish(product(weights(A), X), X)


OF_MIXING = (
    mistake("""A is transposed
        Your output i uses column i of A, that is `A.T @ X`. The weights of output i stand in row i:
        U[i] is the sum over j of A[i, j] X[j], which is `A @ X`.""")
    .by(weights=swapped)
    .by(weights=lambda A: A.T),
    mistake("""every matrix with every other
        `np.dot` and `np.tensordot` of two batches pair every matrix of the one with every matrix of
        the other. `@` (np.matmul) takes the batch axes together, one matrix of A for one of X.
    """).by(product=lambda A, X: np.dot(A, X)),
    mistake("""the sum runs over the features
        `X @ A` and `A @ X.T` sum over the columns of X, its features. The sum runs over tokens, the
        columns of A and the rows of X: `A @ X`.""")
    .by(product=lambda A, X: X @ A)
    .by(product=lambda A, X: A @ swapped(X))
    .by(product=lambda A, X: A @ X.T)
    .by(product=lambda A, X: X @ swapped(A)),
    mistake("""entries multiplied one by one
        `*` multiplies entries at the same place. An output is a sum over tokens: the matrix
        product `@`.""").by(product=lambda A, X: A * X),
    mistake("""the weights are normalised first
        You divide the rows of A by their sums before mixing, or take their softmax. `mix` takes the
        weights as they are; whether they sum to 1 is for the one who made them to see to.""")
    .by(weights=lambda A: over(A, A.sum(-1, keepdims=True)))
    .by(weights=lambda A: A / A.sum(-1, keepdims=True))
    .by(weights=lambda A: Softmax()(A))
    .by(product=lambda A, X: A @ X / A.sum(-1, keepdims=True)),
    mistake("""not every token is added up
        Your loop overwrites the sum (`=` in place of `+=`), or leaves out the first or the last
        token. Output i adds up A[i, j] X[j] for every j.""")
    .by(product=lambda A, X: A[..., -1:] @ X[..., -1:, :])
    .by(product=lambda A, X: A[..., :-1] @ X[..., :-1, :])
    .by(product=lambda A, X: A[..., 1:] @ X[..., 1:, :]),
    numpy_mistakes.INPUT_ADDED,
    numpy_mistakes.ONE_VECTOR,
    numpy_mistakes.TRANSPOSED,
    numpy_mistakes.CUT.by(product=lambda A, X: (A @ X).astype(A.dtype)),
)

# --- usual mistakes: rows that sum to 1 ------------------------------------------------------


@composition
def normalizer(
    refuse=lambda A: (A < 0).any(), prepare=lambda A: A, measure=np.sum, along=EACH_ROW, divide=over
):
    """``normalize_rows`` made of decisions."""

    def normalize_rows(A):
        refuse_if(refuse(A))
        A = prepare(A)
        return divide(A, measure(A, **along))

    return normalize_rows


OF_NORMALIZING = (
    numpy_mistakes.COLUMNS.by(along={"axis": 0, "keepdims": True}),
    numpy_mistakes.LOST_AXIS.by(along={"axis": -1}, divide=lambda A, s: A / (s + (s == 0))),
    numpy_mistakes.WHOLE_MATRIX,
    numpy_mistakes.ZERO_BY_ZERO,
    numpy_mistakes.GUARD,
    numpy_mistakes.IN_PLACE,
    numpy_mistakes.CUT.here(divide=lambda A, sums: over(A, sums).astype(A.dtype)),
    mistake("""rows of a small sum are left as they are, or cleared
        You divide a row only where its sum is 1 or more, or above some other bound. Every row is
        divided by its sum, however small that is, but for a row of zeros.""")
    .by(divide=lambda A, sums: A / np.maximum(sums, 1))
    .by(divide=lambda A, sums: over(A, sums) * (sums >= 0.005))
    .by(divide=lambda A, sums: over(A, sums) * (sums >= 1))
    .by_any(lambda bound: {"divide": lambda A, s: A / np.maximum(s, bound)}, Between(3e-3, 5.0)),
    mistake("""divided by something else than the sum
        You divide each row by its largest entry, its length, its mean, the number of its entries or
        the sum of their squares. Shares of a whole sum to 1: divide by the sum.""")
    .by(measure=lambda A, **along: A.max(**along))
    .by(measure=lambda A, **along: np.linalg.norm(A, **along))
    .by(measure=lambda A, **along: A.mean(**along))
    .by(measure=lambda A, **along: A.shape[-1])
    .by(measure=lambda A, **along: (A * A).sum(**along)),
    mistake("""a row of zeros becomes uniform
        You spread a row of zeros evenly. The exercise leaves it zero: no weight was asked for, none
        is given.""").by(divide=lambda A, s: np.where(s == 0, 1 / A.shape[-1], over(A, s))),
    mistake("""shares have no room in whole numbers
        `np.zeros_like(A)` holds whole numbers where A does, and NumPy refuses to write shares into
        it. Make it with `np.zeros(A.shape)`.
    """).by(divide=lambda A, s: np.divide(A, s, out=np.zeros_like(A), where=s != 0)),
    mistake("""a softmax in place of a division
        You exponentiate before dividing. That is a softmax, which comes in chapter 3 and changes
        the proportions; here an entry twice as large gets twice the weight.""")
    .by(prepare=np.exp)
    .by(prepare=lambda A: np.exp(A - A.max(-1, keepdims=True))),
    mistake("""negative entries are accepted
        You look at no entry, at the sums or at `all` entries, let a little pass, or mend what is
        negative. One entry below 0 is a mistake made earlier: raise `ValueError` where `(A <
        0).any()`.""")
    .by(refuse=lambda A: False)
    .by(refuse=lambda A: (A.sum(-1) < 0).any())
    .by(refuse=lambda A: (A < 0).all())
    .by(refuse=lambda A: (A < 0).all(-1).any())
    .by(refuse=lambda A: (A < -1e-3).any())
    .by(refuse=lambda A: False, prepare=lambda A: np.maximum(A, 0))
    .by(refuse=lambda A: False, prepare=np.abs),
    mistake("""zeros are refused
        You refuse 0 as well. It is an amount like any other: test `A < 0`.
    """).by(refuse=lambda A: (A <= 0).any()),
)


@composition
def stochastic_test(
    low=lambda A, atol: (A >= -atol).all(),
    total=np.sum,
    along=EACH_ROW,
    close=within,
    gather=np.all,
    tolerance=lambda atol: atol,
    finish=bool,
):
    """``is_row_stochastic`` made of decisions."""

    def is_row_stochastic(A, atol=1e-8):
        atol = tolerance(atol)
        return finish(low(A, atol) and gather(close(total(A, **along), 1, atol)))

    return is_row_stochastic


OF_TESTING = (
    mistake("""columns are tested
        You ask whether the columns sum to 1, in place of the rows or besides. The columns are free;
        a row is one token's weights: sum over the last axis.""")
    .by(along={"axis": -2})
    .by(along={"axis": 0})
    .by(total=lambda A, **along: np.concatenate([A.sum(-1).ravel(), A.sum(-2).ravel()])),
    mistake("""a batch is read as a matrix
        `sum(axis=1)` and `for row in A` find the rows of a single matrix; in a batch axis 1 holds
        the rows, and axis 0 whole matrices. Count from the end: `A.sum(axis=-1)`.""")
    .by(along={"axis": 1})
    .by(total=lambda A, **along: A.reshape(len(A), -1).sum(-1)),
    mistake("""several sums are added up
        You compare the sum of all entries with 1 or with the number of rows. Some rows may be above
        and others below: test the sum of each, `A.sum(axis=-1)`.""")
    .by(total=lambda A, **along: A.sum())
    .by(total=lambda A, **along: A.sum(-1).mean())
    .by(total=lambda A, **along: A.sum() - len(A) + 1),
    mistake("""only one of two things is tested
        Weights are at least 0, up to `atol`, and each row of them sums to 1. You ask for one of the
        two and not for the other.""")
    .by(low=lambda A, atol: True)
    .by(close=lambda sums, one, atol: True),
    mistake("""entries that are allowed are refused
        You ask for entries above 0, of at least 0 without a tolerance, or of at most 1. A weight
        may be 0, or −atol, and only the sum of a row has an upper end: `A >= -atol`.""")
    .by(low=lambda A, atol: (A >= 0).all())
    .by(low=lambda A, atol: (A > 0).all())
    .by(low=lambda A, atol: ((A >= -atol) & (A <= 1)).all())
    .by(low=lambda A, atol: ((A >= 0) & (A <= 1)).all())
    .by(low=lambda A, atol: ((A >= -atol) & (A <= 1 + atol)).all()),
    mistake("""the difference counts in one direction only
        `sum − 1 <= atol` is also true of every sum below 1, and `sum >= 1 − atol` of every sum
        above. Take the absolute value of the difference.""")
    .by(close=lambda sums, one, atol: sums - one <= atol)
    .by(close=lambda sums, one, atol: sums - one < atol)
    .by(close=lambda sums, one, atol: sums >= one - atol),
    *numpy_mistakes.OF_ATOL,
    numpy_mistakes.ATOL_OF_ZERO,
    *numpy_mistakes.OF_TRUTH,
    mistake("""the tolerance is larger than atol
        You allow a multiple of `atol`, or a relative tolerance besides. No sum may differ from 1 by
        more than `atol` itself.""")
    .by(close=lambda a, b, atol: np.abs(a - b) <= 2 * atol)
    .by(close=lambda a, b, atol: np.abs(a - b) <= 3 * atol),
    mistake("""one right matrix of a batch is enough
        You look at the first matrix of a batch alone, or let `any` decide. All of its matrices are
        to be row-stochastic.""")
    .by(gather=lambda right: right.all((-2, -1)).any())
    .by(total=lambda A, **along: A[(0,) * (A.ndim - 2)].sum(-1)),
    mistake("""one right row is enough
        You use `any` over the rows, or look at the first alone. Every row has to sum to 1, with no
        entry below 0: `all`.""")
    .by(gather=np.any)
    .by(low=lambda A, atol: (A[..., 0, :] >= -atol).all())
    .by(total=lambda A, **along: A[..., 0, :].sum(-1))
    .by(low=lambda A, atol: (A[0] >= -atol).all(), total=lambda A, **along: A[0].sum()),
    mistake("""NaN passes
        You return False where something is wrong, and a comparison with NaN is never true; or you
        leave NaN out of the sums. Ask for what is right instead: `(A >= -atol).all()`.""")
    .by(low=lambda A, atol: not (A < -atol).any(), close=lambda a, b, atol: ~(np.abs(a - b) > atol))
    .by(low=lambda A, atol: not (A < -atol).any(), total=np.nansum),
)

# --- usual mistakes: four matrices -----------------------------------------------------------


@composition
def uniform(share=lambda n: 1 / n, shape=lambda n: (n, n), finish=lambda W: W):
    """``uniform_weights`` made of decisions."""
    return lambda n: finish(np.full(shape(n), share(n)))


@composition
def running(seen=np.tri, along=EACH_ROW, divide=over, finish=result):
    """``causal_mean_weights`` made of decisions: who is seen, what the rows are divided by."""

    def causal_mean_weights(n):
        W = seen(n)
        return finish(divide(W, W.sum(**along)))

    return causal_mean_weights


def running_halves(n):
    W = np.eye(n)
    for i in range(1, n):
        W[i] = (W[i - 1] + W[i]) / 2
    return W


def by_row_number(number):
    """Row i is divided by a number of its own."""
    return {"divide": lambda W, sums, *width: W / number(np.arange(len(W)), *width)[:, None]}


@composition
def window(
    refuse=lambda n, width: width % 2 == 0,
    reach=lambda width: width // 2,
    inside=lambda i, j, n, half: abs(i - j) <= half,
    along=EACH_ROW,
    divide=lambda W, sums, width: over(W, sums),
):
    """``window_weights`` made of decisions: which widths, how far, which tokens, what share."""

    def window_weights(n, width):
        refuse_if(refuse(n, width))
        i, j = np.arange(n)[:, None], np.arange(n)[None, :]
        W = inside(i, j, n, reach(width)).astype(float)
        return divide(W, W.sum(**along), width)

    return window_weights


def folded(fold):
    """A window that never gets shorter: ``fold(j, n)`` is the token in place of one outside."""
    return lambda i, j, n, half: np.eye(n)[fold(i + np.arange(-half, half + 1), n)].sum(1)


def from_a_negative_start(i, j, n, half):
    start = np.where(i < half, np.maximum(n + i - half, 0), i - half)
    return (start <= j) & (j <= i + half)


def others(i, j, n, half):
    return (abs(i - j) <= half) & (i != j)


NOT_NORMALISED = mistake("""the rows are not normalised
    You give every seen token the whole weight. Divide each row by the number of its tokens.""").by(
    divide=lambda W, *sums: W
)
CUT_TO_WHOLE = mistake("""the shares are cut to whole numbers
    `1 // n`, and an array made with `dtype=int`, cut a share down to 0. Divide with `/`, and write
    into an array of floats.""").by(divide=lambda W, *sums: np.floor(over(W, sums[0])))
OF_UNIFORM = (
    mistake("""another share than 1/n
        n tokens share a budget of 1, so each gets 1/n. Your entries are 1, one and the same number
        for every n, or do not follow 1/n.""")
    .by(share=lambda n: 1.0)
    .by(share=lambda n: 1 / (n + 1))
    .by(share=lambda n: 1 / max(n - 1, 1))
    .by(share=lambda n: n**-0.5)
    .by_any(lambda number: {"share": lambda n: number}, Between(1e-3, 100.0)),
    mistake("""the whole matrix sums to 1
        Your entries are 1/n², so all of them together sum to 1. Each row has a budget of 1 of its
        own.""").by(share=lambda n: 1 / n**2),
    CUT_TO_WHOLE.here(share=lambda n: 1 // n),
    mistake("""one row only
        You return one row of weights. Every one of the n tokens needs its row: shape (n, n).""")
    .by(shape=lambda n: n)
    .by(shape=lambda n: (1, n))
    .by(shape=lambda n: (n, 1)),
    mistake("""a token leaves itself out, or hears itself alone
        Your diagonal is 0, or all the rest is. The plain average counts every token the same, the
        token itself included: all n entries of a row are 1/n.""")
    .by(finish=lambda W: (1 - np.eye(len(W))) / max(len(W) - 1, 1))
    .by(finish=lambda W: (1 - np.eye(len(W))) / np.float64(len(W) - 1))
    .by(finish=lambda W: W * (1 - np.eye(len(W))))
    .by(finish=lambda W: W * np.eye(len(W)))
    .by(finish=lambda W: np.eye(len(W))),
)
OF_RUNNING = (
    numpy_mistakes.COLUMNS.called("the columns sum to 1"),
    numpy_mistakes.LOST_AXIS,
    numpy_mistakes.TRANSPOSED.said(
        "Your column i holds the weights of output i. They belong in row i."
    ),
    NOT_NORMALISED,
    mistake("""a token does not see itself
        Row i of your matrix stops before token i, and row 0 has nothing to average. The running
        mean includes the token itself.""")
    .by(seen=lambda n: np.tri(n, k=-1))
    .by(seen=lambda n: np.tri(n, k=-2))
    .by(seen=lambda n: np.maximum(np.tri(n, k=-1), np.eye(n, 1) @ np.eye(1, n)))
    .by(seen=lambda n: np.tri(n, k=-1), divide=np.divide),
    mistake("""the future counts too
        Row i averages tokens 0 … i and stops there. Yours includes token i + 1, or all n: `np.tril`
        with k = 0 keeps the diagonal and nothing above it.""")
    .by(seen=lambda n: np.tri(n, k=1))
    .by(**by_row_number(lambda i: i + 1), seen=lambda n: np.ones((n, n)))
    .by_any(lambda k: {"seen": lambda n: np.tri(n, k=k)}, (2, 3, 99)),
    mistake("""a softmax of zeros and ones
        You take the softmax of a matrix of 0 and 1, and exp(0) = 1: later tokens get a weight too.
        Divide the rows of the lower triangle by their sums, or put −∞ in place of 0.""")
    .by(seen=lambda n: np.exp(np.tri(n)))
    .by(seen=lambda n: np.exp(np.tri(n) / np.arange(1, n + 1))),
    CUT_TO_WHOLE,
    mistake("""the future, not the past
        Your matrix is upper triangular: token i averages what comes after it. Row i may hold
        weights in columns 0 … i only, the lower triangle.""").by(seen=lambda n: np.tri(n).T),
    mistake("""every token keeps to itself
        You return the identity, which averages nothing. Row i averages tokens 0 … i.
    """).by(seen=lambda n: np.eye(n)),
    mistake("""a row stays empty
        Your loop begins with row 1 or ends before the last. Row 0 is the average of token 0 alone,
        a 1, and the last row averages all n tokens.""")
    .by(seen=lambda n: np.tri(n) * (np.arange(n) > 0)[:, None])
    .by(seen=lambda n: np.tri(n) * (np.arange(n) < n - 1)[:, None]),
    mistake("""divided by another number than i + 1
        Rows count from 0, so row i averages i + 1 tokens: divide it by `i + 1`, not by n or i.""")
    .by(by_row_number(lambda i: i))
    .by_any(by_row_number, (lambda i: np.maximum(i, 1), lambda i: i + 2, lambda i: 0 * i + len(i))),
    mistake("""the newest token counts half
        You average the mean so far with the new token, and older tokens count less and less. All i
        + 1 tokens have the same weight.""").by(seen=running_halves),
)
OF_WINDOWS = (
    numpy_mistakes.COLUMNS.called("the columns sum to 1").by(along={"axis": -1}),
    NOT_NORMALISED,
    mistake("""the edges are not renormalised
        Your rows near an end sum to less than 1, because you divide by tokens that are not there.
        Divide by the number of those that are in the window.""")
    .by(divide=lambda W, sums, width: W / width)
    # as if the window were cut off at the beginning alone
    .by(by_row_number(lambda i, width: np.minimum(i, width // 2) + 1 + width // 2)),
    mistake("""the window has another width
        `width` counts all the tokens of a window, so it reaches `width // 2` to each side, and a
        token at that distance is inside: `<=`. Yours reaches farther or less far.""")
    .by(reach=lambda width: width)
    .by(reach=lambda width: width - 1)
    .by(reach=lambda width: width // 2 + 1)
    .by(reach=lambda width: width // 2 - 1)
    .by(reach=lambda width: max(width // 2 - 1, 0)),
    mistake("""the window is not centred
        Your window looks back or ahead only, has no end on one side (`abs` is missing), or its
        slice ends before token i + width // 2 (a slice leaves its end out). It reaches `width // 2`
        tokens to each side.""")
    .by(inside=lambda i, j, n, half: (i - j >= 0) & (i - j <= 2 * half))
    .by(inside=lambda i, j, n, half: (i - j >= 0) & (i - j <= half))
    .by(inside=lambda i, j, n, half: (j - i >= 0) & (j - i <= 2 * half))
    .by(inside=lambda i, j, n, half: (j - i >= 0) & (j - i <= half))
    .by(inside=lambda i, j, n, half: (i - half <= j) & (j < i + half))
    .by(inside=lambda i, j, n, half: (i - half < j) & (j <= i + half))
    .by(inside=lambda i, j, n, half: (i - half <= j) & (j < i + max(half, 1)))
    .by(inside=lambda i, j, n, half: (i - max(half, 1) < j) & (j <= i + half))
    .by(inside=lambda i, j, n, half: i - j <= half)
    .by(inside=lambda i, j, n, half: j - i <= half),
    mistake("""a token leaves itself out
        Your window holds the neighbours without token i, its middle. `width` counts it too.""")
    .by(inside=others)
    .by(inside=others, divide=lambda W, sums, width: W / sums),
    mistake("""the window shrinks on both sides
        Near an end you make the window shorter on the other side too, so that it stays centred.
        Only what has no tokens is cut off: row 0 averages tokens 0 … `width // 2`.
    """).by(inside=lambda i, j, n, half: abs(i - j) <= np.minimum(half, np.minimum(i, n - 1 - i))),
    mistake("""a token near an end keeps to itself
        Where the window passes an end you give token i all the weight, or what is left over. It is
        cut off there, and the tokens that remain have equal shares.""")
    .by(inside=lambda i, j, n, half: (abs(i - j) <= half) & (half <= i) & (i < n - half) | (i == j))
    .by(divide=lambda W, sums, width: W / width + np.diag(1 - sums[:, 0] / width)),
    mistake("""the window keeps its width at the edges
        Where your window passes an end it goes on at the other one, repeats the last token, turns
        back or moves inside. It is cut off there, and what remains shares the weight.""")
    .by(inside=lambda i, j, n, half: np.minimum((i - j) % n, (j - i) % n) <= half)
    .by(inside=folded(lambda j, n: j % n))
    .by(inside=folded(lambda j, n: np.clip(j, 0, n - 1)))
    .by(inside=folded(lambda j, n: n - 1 - abs(n - 1 - abs(j))))
    .by(inside=lambda i, j, n, half: abs(np.clip(i, half, max(n - 1 - half, half)) - j) <= half),
    mistake("""rows at the edges stay empty
        Near an end you ask for a whole window, or begin a slice below 0, which counts from the end.
        The window is cut off there: begin at `max(i - half, 0)`.""")
    .by(inside=lambda i, j, n, half: (abs(i - j) <= half) & (half <= i) & (i < n - half))
    .by(inside=from_a_negative_start)
    .by(inside=from_a_negative_start, divide=lambda W, sums, width: W / sums),
    mistake("""blocks, not windows
        You cut the sequence into blocks of `width` tokens. Each token has a window of its own,
        centred on it.
    """).by(inside=lambda i, j, n, half: i // (2 * half + 1) == j // (2 * half + 1)),
    mistake("""an even width is accepted
        An even window has no middle: a `ValueError` is asked for, and yours returns a matrix.""")
    .by(refuse=lambda n, width: False)
    .by(refuse=lambda n, width: False, reach=lambda width: (width - 1) // 2),
    mistake("""a width that is allowed is refused
        You refuse odd widths, or windows as wide as the sequence and wider. Only `width % 2 == 0`
        is refused: in a wide window every token sees what there is.""")
    .by(refuse=lambda n, width: width % 2 == 1)
    .by(refuse=lambda n, width: width % 2 == 0 or width > n)
    .by(refuse=lambda n, width: width % 2 == 0 or width >= n),
)

# --- exercises -------------------------------------------------------------------------------

MIX = exercise(
    mixing.mix,
    section="Chapter 2, “A row of weights for every token”",
    difficulty=1,
    minutes=5,
    criteria=(
        MIX_CASES.criterion("mixes tokens with the rows of A", 3).on(
            MIX_BY_HAND, row("m=7 n=7 d=5"), row("m=5 n=5 d=5")
        ),
        MIX_CASES.criterion("any number of outputs and tokens", 1).on(
            row("m=5 n=7 d=3", note="fewer outputs than tokens"),
            row("m=1 n=1 d=3", note="n = 1"),
            row("m=5 n=7 d=3", turned=True, note="not contiguous in memory"),
        ),
        MIX_CASES.criterion("batches", 1).on(
            *MIX_ROWS.batches,
            row("m=5 n=5 d=7", batch=(2, 3), given=ONE_A, note="two batch axes on X"),
        ),
        MIX_CASES.criterion("any weights and any size of number", 1).on(
            row("m=5 n=5 d=3", given={"A": Drawn("m n", normal)}, note="any A"),
            *MIX_ROWS.numbers,
            Case((A_BY_HAND, X_BY_HAND), note="integers in X"),
            Case((WHOLE_A, X_BY_HAND + 0.5), note="integers in A"),
            once_more(MIX_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(mixer, *OF_MIXING),
)

NORMALIZE_ROWS = exercise(
    mixing.normalize_rows,
    section="Chapter 2, “Two constraints make it a mixture”",
    difficulty=2,
    minutes=10,
    picture=True,
    criteria=(
        AMOUNTS.criterion("every row sums to 1, in the old proportions", 3).on(
            AMOUNTS_BY_HAND, *map(row, ("m=5 n=5", "m=5 n=3", "m=3 n=7"))
        ),
        AMOUNTS.criterion("a row of zeros stays zero", 1).on(
            matrix([1.0, 3.0, 4.0], [0.0, 0.0, 0.0], [2.0, 2.0, 6.0], note="one row of zeros"),
            Case((np.zeros((2, 3)),), note="zeros everywhere"),
        ),
        AMOUNTS.criterion("batches, a single row or column, memory layout, float32", 1).on(
            *AMOUNT_ROWS.batches,
            row("m=1 n=7", note="one row"),
            row("m=3 n=1", note="one column"),
            row("m=3 n=5", turned=True, note="not contiguous"),
            AMOUNT_ROWS.single,
            *AMOUNT_ROWS.integers,
            row("m=5 n=3", factor=1e6, note="large entries"),
            row("m=3 n=5", factor=1e-3, note="small entries"),
            matrix([0.001, 0.0015, 0.0], [1.0, 2.0, 5.0], note="one small row"),
            once_more(AMOUNTS_BY_HAND),
        ),
        AMOUNTS.criterion("refuses a negative entry with ValueError", 1).on(
            matrix([1.0, 2.0], [3.0, -0.5], note="a negative entry", raises=ValueError),
            matrix([1.0, 2.0], [0.5, -3.0], note="a negative sum", raises=ValueError),
            matrix([-1.0, -2.0], note="no entry above 0", raises=ValueError),
            matrix([1.0, 2.0], [3.0, -1e-6], note="an entry of −1e-6", raises=ValueError),
        ),
        unchanged(),
    ),
    excludes=(
        ("entries that cancel", "No entry is below 0."),
        ("a row of very small numbers", "A row that is not zero sums to 0.001 or more."),
    ),
    mistakes=made(normalizer, *OF_NORMALIZING),
)

IS_ROW_STOCHASTIC = exercise(
    mixing.is_row_stochastic,
    section="Chapter 2, “Two constraints make it a mixture”",
    difficulty=2,
    minutes=10,
    criteria=(
        WEIGHTS.criterion("rows that sum to 1, and others", 2).on(
            WEIGHTS_BY_HAND,
            matrix([0.5, 0.1], [0.5, 0.9], note="its columns sum to 1"),
            Case((np.eye(3),), note="entries of 0 are allowed"),
            row("m=5 n=5"),
            Case((THREE_ROWS * [[1], [0.9], [1]],), note="one row sums to 0.9"),
            Case((THREE_ROWS * 1.3,), note="every row sums to 1.3"),
            Case((THREE_ROWS * [[1], [0.5], [0.5]],), note="the first row alone sums to 1"),
            Case((THREE_ROWS * [[1.2], [1], [1]],), note="the first row sums to 1.2"),
            matrix([1.5, 0.5], [0.25, 0.25], note="the rows sum to 2 and to 0.5"),
        ),
        WEIGHTS.criterion("negative entries", 1).on(
            matrix([1.8, -0.8], [0.5, 0.5], note="the rows sum to 1, one entry is negative"),
            matrix([0.5, 0.5], [1.8, -0.8], note="one entry of the second row is negative"),
            matrix([0.7, 0.2, 0.1], note="a row sum of 1 up to rounding"),
            matrix([0.5, -0.5, 0.0], note="entries that cancel"),
        ),
        WEIGHTS.criterion("the tolerance is absolute", 1).on(
            off(5e-9, "a row sum of 1 + 5e-9, inside the default tolerance"),
            off(1e-6, "a row sum of 1 + 1e-6, outside the default tolerance"),
            off(-1e-6, "a row sum of 1 − 1e-6, outside the default tolerance"),
            off(5e-4, "a row sum of 1 + 5e-4", atol=1e-3),
            off(1.5e-3, "a row sum of 1 + 1.5e-3", atol=1e-3),
            matrix([1 + 1.5e-3, -8e-4, -7e-4], note="an entry of 1 + 1.5e-3", atol=1e-3),
            off(5e-9, "a row sum of 1 + 5e-9", atol=1e-10),
            matrix([0.5, 0.5], [0.25, 0.75], atol=0, note="no tolerance"),
            off(5e-9, "a row sum of 1 + 5e-9", atol=0),
            matrix([1 + 5e-9, 0.0], [0.5, 0.5], note="an entry of 1 + 5e-9"),
            matrix([0.6, 0.4 + 5e-9, -5e-9], note="an entry of −5e-9"),
            matrix([1 + 1e-6, -1e-6], note="an entry of −1e-6"),
        ),
        WEIGHTS.criterion("batches and NaN", 1).on(
            *WEIGHTS_ROWS.batches,
            matrix(np.eye(3), np.eye(3), np.eye(3) / 2, note="a batch of 3"),
            matrix(np.eye(3), np.eye(3), note="a batch of 2 identities"),
            matrix([0.5, 0.5], [1.0, np.nan], note="NaN in one entry"),
            matrix([1.0], [1.0], note="one column"),
            matrix([0, 1], [1, 0], note="whole numbers"),
            Case((np.array([[0.5, 0.5], [0.25, 0.75]], np.float32),), note="float32"),
            *WEIGHTS_ROWS.extreme,
            once_more(WEIGHTS_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=(
        *made(stochastic_test, *OF_TESTING),
        mistake("""an answer for every row
            You return an array of truth values, one a row. The question is about the whole matrix:
            reduce with `.all()` and return one bool.
        """).whole(lambda A, atol=1e-8: (-atol <= A).all(-1) & (np.abs(A.sum(-1) - 1) <= atol)),
    ),
)

UNIFORM = exercise(
    mixing.uniform_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(Criterion("every weight is 1/n", 1).on(few_tokens), ANY_NUMBER, ONE_TOKEN),
    mistakes=made(uniform, *OF_UNIFORM),
)

CAUSAL_MEAN = exercise(
    mixing.causal_mean_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        Criterion("row i averages tokens 0 … i", 2).on(few_tokens),
        ANY_NUMBER,
        ONE_TOKEN,
    ),
    mistakes=made(running, *OF_RUNNING),
)

WINDOW = exercise(
    mixing.window_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("a centred window whose rows sum to 1", 2).on(windows),
        Criterion("wider windows", 1).on(wider_windows),
        WINDOW_CASES.criterion("narrow, wide and single", 1).on(
            row("n=5 width=1", note="width 1: a token sees only itself"),
            row("n=5 width=5", note="a window as wide as the sequence"),
            row("n=3 width=7", note="a window wider than the sequence"),
            row("n=2 width=3", note="two tokens"),
            row("n=1 width=3", note="n = 1"),
        ),
        WINDOW_CASES.criterion("refuses an even width with ValueError", 1).on(
            *(Case(s, note="even width", raises=ValueError) for s in ((7, 4), (3, 2), (3, 8)))
        ),
    ),
    mistakes=made(window, *OF_WINDOWS),
)

EXERCISES = (MIX, NORMALIZE_ROWS, IS_ROW_STOCHASTIC, UNIFORM, CAUSAL_MEAN, WINDOW)

SHARES = Adapter(result=PERCENT)
VARIANTS = (
    Variant(
        "percent",
        "Weights are **percentages** here: those of one output sum to 100, where in the book they "
        "sum to 1.",
        "weights are percentages here",
        "Your answer has weights that sum to 1, as the book and its published answers have. In "
        "this assignment they are percentages: half of a token is 50, and a row sums to 100.",
        {
            "mix": Adapter({"A": PERCENT}),
            "normalize_rows": SHARES,
            "uniform_weights": SHARES,
            "causal_mean_weights": SHARES,
            "window_weights": SHARES,
        },
        rewordings(r"""
            U_i = \sum_j A_{ij} X_j . → U_i = \sum_j \frac{A_{ij}}{100} X_j .
            whether its rows sum to 1 is not → whether its rows sum to 100 is not
            mix(np.array([[0.5, 0.5], [0.0, 1.0]]) → mix(np.array([[50, 50], [0, 100]])
            those of one output sum to 1. Write → those of one output sum to 100. Write
            by dividing every⏎row by its sum → by dividing every⏎row by its sum, times 100
            every row sums to 1, except → every row sums to 100, except
            Expect `[[0.25 0.75] [0. 0.]]` → Expect `[[25. 75.] [0. 0.]]`
            Expect a 4 × 4 matrix of 0.25 → Expect a 4 × 4 matrix of 25
            Expect rows `[1, 0, 0]`, `[1/2, 1/2, 0]`, `[1/3, 1/3, 1/3]`
            → Expect rows `[100, 0, 0]`, `[50, 50, 0]`, and three times 33.3
            so that those rows sum to 1 too → so that those rows sum to 100 too
            Expect thirds in the middle rows and halves → Expect 33.3 in the middle rows and 50
            Each row still has to sum to 1 → Each row still has to sum to 100
            row sums to 1 → row sums to 100
            rows sum to 1 → rows sum to 100
            columns sum to 1 → columns sum to 100
            all of them together sum to 1. → all of them together sum to 100.
            whether they sum to 1 is → whether they sum to 100 is
            U[i] is the sum over j of A[i, j] X[j], which is `A @ X`
            → U[i] is the sum over j of A[i, j] X[j] / 100, which is `A @ X / 100`
            `A.T @ X` → `A.T @ X / 100`
            You return `X + A @ X` → You return `X + A @ X / 100`
            the columns of A and the rows of X: `A @ X`
            → the columns of A and the rows of X: `A @ X / 100`
            has a budget of 1 of its own → has a budget of 100 of its own
            share a budget of 1 → share a budget of 100
            every weight is 1/n → every weight is 100/n
            each gets 1/n → each gets 100/n
            or do not follow 1/n → or do not follow 100/n
            Your entries are 1/n² → Your entries are 100/n²
            all n entries of a row are 1/n → all n entries of a row are 100/n
            Your entries are 1, one → Your entries are 100, one
            near an end sum to less than 1 → near an end sum to less than 100
            average of token 0 alone, a 1, → average of token 0 alone, a 100,
            Shares of a whole sum to 1 → Shares of a whole sum to 100
        """),
    ),
)
