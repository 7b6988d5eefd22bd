"""The exercises of chapter 4, self-attention without parameters."""

import numpy as np

from attncourse import self_attention as chapter
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)

# --- cases -----------------------------------------------------------------------------------


def token_values(rng: Rng) -> list[Case]:
    X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    return [
        Case((X,)),
        Case((rng.normal(size=(7, 3)),)),
        Case((0.5 * rng.normal(size=(5, 11)),), note="more features than tokens"),
    ]


def token_shapes(rng: Rng) -> list[Case]:
    return [
        Case((rng.normal(size=(1, 3)),), note="n = 1"),
        Case((rng.normal(size=(3, 7)).T,), note="X not contiguous in memory"),
        Case((rng.normal(size=(5, 5)),), note="as many features as tokens"),
    ]


def token_batch(rng: Rng) -> list[Case]:
    return [
        Case((rng.normal(size=(2, 5, 3)),), note="a batch of 2"),
        Case((rng.normal(size=(2, 3, 7, 5)),), note="two batch axes"),
    ]


def token_numbers(rng: Rng) -> list[Case]:
    directions = rng.normal(size=(5, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    lengths = np.array([[40.0], [35.0], [0.5], [30.0], [45.0]])
    return [
        Case((lengths * directions,), note="scores in the thousands, one short vector"),
        Case((rng.normal(size=(5, 3)).astype(np.float32),), note="float32"),
    ]


# Functions of tokens (..., n, d), for the test of equivariance. Each returns (..., n, d).


def positions(X):
    return np.arange(X.shape[-2])[:, None]  # (n, 1)


def self_attention(X):
    """softmax(X Xᵀ) X."""
    return chapter.self_attention(X)


def scaled_features(X):
    """Feature c of every token times c + 1."""
    return X * np.arange(1, X.shape[-1] + 1)


def mean_everywhere(X):
    """The mean of all tokens, on every row."""
    return np.broadcast_to(X.mean(-2, keepdims=True), X.shape).copy()


def causal_mean(X):
    """Row i is the mean of tokens 0 … i."""
    return np.cumsum(X, axis=-2) / (positions(X) + 1)


def sorted_features(X):
    """Each feature sorted over the tokens."""
    return np.sort(X, axis=-2)


def numbered(X):
    """X[i] + i."""
    return X + positions(X)


def window_mean(X):
    """Row i is the mean of tokens i−1, i, i+1, where they exist."""
    near = (np.abs(positions(X) - positions(X).T) <= 1).astype(float)
    return near / near.sum(-1, keepdims=True) @ X


def ring_mean(X):
    """Row i is the mean of tokens i and i−1; before the first comes the last."""
    return (X + np.roll(X, 1, axis=-2)) / 2


def prefix_mean(X):
    """Row i is the mean of tokens 0 … i, but of at least two."""
    means = causal_mean(X)
    means[..., 0, :] = means[..., 1, :]
    return means


def numbered_in_one_feature(X):
    """X, with i added to the last feature of token i."""
    return np.concatenate([X[..., :-1], X[..., -1:] + positions(X)], axis=-1)


def with_rounding(X):
    """X[i] + i · 1e-12."""
    return X + 1e-12 * positions(X)


def drifting(X):
    """X[i] + i / 1000."""
    return X + 1e-3 * positions(X)


def trial(f, X, note="", **kwargs) -> Case:
    """``is_permutation_equivariant(f, X, …)``, told with what ``f`` does."""
    options = "".join(
        f", {name}={value if name == 'atol' else '…'}" for name, value in kwargs.items()
    )
    what = f"{f.__name__}: {f.__doc__.rstrip('.')}"
    return Case(
        (f, X),
        kwargs,
        note=f"{what}; {note}" if note else what,
        shown=f"is_permutation_equivariant({f.__name__}, X{options})",
    )


def plain_functions(rng: Rng) -> list[Case]:
    # Whole numbers, all distinct: no two tokens are alike and no difference is small.
    X = rng.permutation(12).reshape(4, 3) * 1.0
    return [
        trial(scaled_features, X),
        trial(numbered, X),
        trial(self_attention, rng.normal(size=(7, 3))),
        trial(self_attention, rng.normal(size=(2, 3)), "two tokens"),
        trial(mean_everywhere, rng.normal(size=(7, 5))),
        trial(causal_mean, rng.normal(size=(7, 3))),
        trial(sorted_features, rng.normal(size=(7, 3))),
        trial(numbered_in_one_feature, rng.normal(size=(7, 3))),
    ]


def treacherous_functions(rng: Rng) -> list[Case]:
    return [trial(f, rng.normal(size=(7, 3))) for f in (window_mean, ring_mean, prefix_mean)]


def equivariance_tolerance(rng: Rng) -> list[Case]:
    X = rng.uniform(-1, 1, (5, 3))
    return [
        trial(with_rounding, X, "inside the default tolerance"),
        trial(drifting, X, "outside the default tolerance"),
        trial(drifting, X, atol=1e-2),
    ]


def equivariance_arguments(rng: Rng) -> list[Case]:
    return [
        trial(self_attention, rng.normal(size=(2, 5, 3)), "a batch of 2"),
        trial(causal_mean, rng.normal(size=(2, 5, 3)), "a batch of 2"),
        trial(causal_mean, rng.normal(size=(2, 3, 7, 5)), "two batch axes"),
        trial(self_attention, rng.normal(size=(5, 3)), rng=np.random.default_rng(5)),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def T(X):
    return np.swapaxes(X, -1, -2)


def scores(X):
    return X @ T(X)


def softmax(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def softmax_unshifted(S):
    return np.exp(S) / np.exp(S).sum(-1, keepdims=True)


def softmax_shifted_by_global_max(S):
    E = np.exp(S - S.max())
    return E / E.sum(-1, keepdims=True)


def softmax_over_everything(S):
    E = np.exp(S - S.max((-1, -2), keepdims=True))
    return E / E.sum((-1, -2), keepdims=True)


def shares_without_exp(S):
    return S / S.sum(-1, keepdims=True)


def unit(X):
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def gaussian_weights(X):
    squared = ((X[..., :, None, :] - X[..., None, :, :]) ** 2).sum(-1)
    return softmax(-squared / 2)


def others_only(X):
    S = scores(X)
    return softmax(np.where(np.eye(S.shape[-1], dtype=bool), -np.inf, S))


def attend_with_plain_transpose(X):
    return softmax(X @ X.T) @ X


def divided_by_own_sum(X):
    S = scores(X)
    mixed = np.exp(S - S.max(-1, keepdims=True)) @ X
    return mixed / mixed.sum(-1, keepdims=True)


def orders(n: int, count: int = 20) -> list[np.ndarray]:
    """Random orders for the wrong tests below; the same ones each time."""
    rng = np.random.default_rng(n)
    return [chapter.random_order(n, rng) for _ in range(count)]


def agrees_if(agree, wanted=None):
    """A wrong test of equivariance: ``agree(f, X, p, atol)`` for every order p it tries."""

    def test(f, X, rng=None, atol=1e-8):
        n = X.shape[-2]
        return all(agree(f, X, p, atol) for p in (wanted(n) if wanted else orders(n)))

    return test


def near(a, b, atol) -> bool:
    return np.allclose(a, b, rtol=0, atol=atol)


def really_equivariant(f, X, p, atol):
    return near(f(X[..., p, :]), f(X)[..., p, :], atol)


def order_taken_twice(f, X, p, atol):
    return near(f(X[..., p, :])[..., p, :], f(X), atol)


def permutes_first_axis(f, X, rng=None, atol=1e-8):
    return all(near(f(X[p]), f(X)[p], atol) for p in orders(len(X)))


def permutes_features(f, X, rng=None, atol=1e-8):
    return all(near(f(X[..., p]), f(X)[..., p], atol) for p in orders(X.shape[-1]))


def needs_rng(f, X, rng=None, atol=1e-8):
    n = X.shape[-2]
    return all(really_equivariant(f, X, rng.permutation(n), atol) for _ in range(20))


def shuffles_in_place(f, X, rng=None, atol=1e-8):
    answer = True
    for p in orders(X.shape[-2]):
        U = f(X)
        X[:] = X[..., p, :]
        answer = answer and near(f(X), U[..., p, :], atol)
    return answer


# --- exercises -------------------------------------------------------------------------------

COLUMNS = (
    "You have normalised over the queries: the columns of your weights sum to 1. Row i belongs to "
    "token i as a query and is to sum to 1, so the softmax runs over the last axis: "
    "`softmax(scores, axis=-1)`. "
)

ATTENTION_WEIGHTS = Exercise(
    target="self_attention.attention_weights",
    reference=chapter.attention_weights,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        Criterion("row i is the softmax of token i's scores", 3, token_values),
        Criterion("any number of tokens and features", 1, token_shapes),
        Criterion("batches", 1, token_batch),
        Criterion("large numbers and float32", 1, token_numbers),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the columns sum to 1, not the rows",
            COLUMNS + "If you wrote `.T` behind a right result, that is the same mistake: the "
            "scores are symmetric, so the softmax over columns is the transposed matrix.",
            lambda X: softmax(scores(X), axis=-2),
        ),
        Misconception(
            "features are compared, not tokens",
            "You compute `X.T @ X`, the dot products of columns: shape (d, d). The score of tokens "
            "i and j is the dot product of rows i and j: `X @ Xᵀ`, shape (n, n).",
            lambda X: softmax(T(X) @ X),
        ),
        Misconception(
            "the softmax is missing",
            "You return the scores `X @ Xᵀ`. They can be negative and sum to anything; a softmax "
            "over each row makes weights of them.",
            scores,
        ),
        Misconception(
            "shares without the exponential",
            "You divide the scores by their row sum. Scores can be negative, and so then are your "
            "weights; softmax takes the exponential of each score before it divides.",
            lambda X: shares_without_exp(scores(X)),
        ),
        Misconception(
            "a scale slipped in",
            "You divide the scores by √d before the softmax. That comes in chapter 5 and has a "
            "chapter of its own later; here the scores are the plain dot products.",
            lambda X: softmax(scores(X) / np.sqrt(X.shape[-1])),
        ),
        Misconception(
            "the vectors are made unit vectors first",
            "You compare directions only (the cosine). Here a vector's length counts: the score "
            "is the dot product of the rows as they are.",
            lambda X: softmax(scores(unit(X))),
        ),
        Misconception(
            "distance in place of the dot product",
            "Your weights fall with the squared distance |x_i − x_j|², as in kernel regression. "
            "The score asked for is the dot product; the two agree only where all vectors have "
            "the same length.",
            gaussian_weights,
        ),
        Misconception(
            "the whole matrix sums to 1",
            "Your softmax runs over all n² scores at once. Each row has a budget of 1 of its own: "
            "`axis=-1`.",
            lambda X: softmax_over_everything(scores(X)),
        ),
        Misconception(
            "a token leaves itself out",
            "Your diagonal is 0. Nothing keeps a token from listening to itself: the score of x_i "
            "with x_i is in the softmax like the others.",
            others_only,
        ),
        Misconception(
            "large scores overflow",
            "`np.exp` of a score above 709 is infinite, and ∞/∞ is NaN. Subtract each row's "
            "largest score first, or use `softmax` of chapter 3, which does.",
            lambda X: softmax_unshifted(scores(X)),
        ),
        Misconception(
            "one maximum for all rows",
            "You subtract the largest score of the whole array. In a row whose scores are all much "
            "smaller every exponential is then 0, and 0/0 is NaN. Subtract each row's own maximum: "
            "`scores.max(axis=-1, keepdims=True)`.",
            lambda X: softmax_shifted_by_global_max(scores(X)),
        ),
        Misconception(
            "`.T` on a batch",
            "`.T` turns all axes round, those of the batch too. To transpose each matrix of a "
            "batch, swap the last two axes only: `np.swapaxes(X, -1, -2)`, or `X.mT`.",
            lambda X: softmax(X @ X.T),
        ),
    ),
    hints=(
        "All dot products between rows of X are one matrix product. Which, and what is its shape?",
        "The scores are `X @ np.swapaxes(X, -1, -2)`: for one sequence simply `X @ X.T`.",
        "`softmax` of chapter 3 takes an axis. Row i is to sum to 1, so the sum runs over its "
        "entries: the last axis.",
    ),
)

SELF_ATTENTION = Exercise(
    target="self_attention.self_attention",
    reference=chapter.self_attention,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        Criterion("mixes the tokens by their own weights", 3, token_values),
        Criterion("any number of tokens and features", 1, token_shapes),
        Criterion("batches", 1, token_batch),
        Criterion("large numbers and float32", 1, token_numbers),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "column i mixes output i, not row i",
            "Your output i takes column i of A as its weights: either the softmax runs over the "
            "columns, or you return `Aᵀ X`. Where scores are symmetric the two are the same "
            "function. Softmax over the last axis, then `A @ X`: row i is what token i listens to.",
            lambda X: softmax(scores(X), axis=-2) @ X,
        ),
        Misconception(
            "stops at the weights",
            "You return the weights A, shape (n, n). One product is missing: `A @ X`, the tokens "
            "mixed by them, shape (n, d).",
            lambda X: softmax(scores(X)),
        ),
        Misconception(
            "the softmax comes after mixing",
            "You mix with the raw scores and take the softmax of the result, so that each output "
            "vector sums to 1. The weights are what has to sum to 1: softmax of the scores first, "
            "then the product with X.",
            lambda X: softmax(scores(X) @ X),
        ),
        Misconception(
            "the mixed tokens are divided by their own sum",
            "You mix with the exponentials, then divide each output vector by the sum of its "
            "features. Dividing after mixing is allowed, but by the sum of the weights of row i: "
            "`weights.sum(-1, keepdims=True)`.",
            divided_by_own_sum,
        ),
        Misconception(
            "the softmax is missing",
            "You return `X Xᵀ X`: the raw scores serve as weights. A softmax over each row of the "
            "scores comes before mixing.",
            lambda X: scores(X) @ X,
        ),
        Misconception(
            "shares without the exponential",
            "You divide the scores by their row sum. Scores can be negative, and so then are your "
            "weights; softmax takes the exponential of each score before it divides.",
            lambda X: shares_without_exp(scores(X)) @ X,
        ),
        Misconception(
            "features listen to each other, not tokens",
            "You compute `X @ softmax(X.T @ X)`: d × d weights that mix columns of X. Tokens are "
            "the rows: `softmax(X @ Xᵀ) @ X`, with n × n weights.",
            lambda X: X @ softmax(T(X) @ X),
        ),
        Misconception(
            "a scale slipped in",
            "You divide the scores by √d before the softmax. That comes in chapter 5 and has a "
            "chapter of its own later; here the scores are the plain dot products.",
            lambda X: softmax(scores(X) / np.sqrt(X.shape[-1])) @ X,
        ),
        Misconception(
            "the vectors are made unit vectors first",
            "You compare directions only (the cosine). Here a vector's length counts: the score "
            "is the dot product of the rows as they are.",
            lambda X: softmax(scores(unit(X))) @ X,
        ),
        Misconception(
            "the tokens themselves are added",
            "You return `X + A @ X`. Adding the input back is a residual connection, which comes "
            "in the chapter on transformers; here the output is the mixture alone.",
            lambda X: X + softmax(scores(X)) @ X,
        ),
        Misconception(
            "one vector for the whole sequence",
            "You add the outputs up into one vector. Every token has its own output: keep the "
            "token axis.",
            lambda X: (softmax(scores(X)) @ X).sum(-2),
        ),
        Misconception(
            "all weights together sum to 1",
            "Your softmax runs over all n² scores at once, so the outputs are far too small. Each "
            "row has a budget of 1 of its own: `axis=-1`.",
            lambda X: softmax_over_everything(scores(X)) @ X,
        ),
        Misconception(
            "large scores overflow",
            "`np.exp` of a score above 709 is infinite, and ∞/∞ is NaN. Subtract each row's "
            "largest score first, or use `softmax` of chapter 3, which does.",
            lambda X: softmax_unshifted(scores(X)) @ X,
        ),
        Misconception(
            "`.T` on a batch",
            "`.T` turns all axes round, those of the batch too. To transpose each matrix of a "
            "batch, swap the last two axes only: `np.swapaxes(X, -1, -2)`, or `X.mT`.",
            attend_with_plain_transpose,
        ),
    ),
    hints=(
        "You have the weights already. Which chapter's function mixes tokens with a matrix of "
        "weights?",
        "`A` is (n, n) and `X` is (n, d). There is one product of the two, in one order, that has "
        "shape (n, d) and uses row i of A for output i.",
    ),
)

IS_PERMUTATION_EQUIVARIANT = Exercise(
    target="self_attention.is_permutation_equivariant",
    reference=chapter.is_permutation_equivariant,
    section="Chapter 4, “Shuffle the sentence”",
    difficulty=2,
    minutes=15,
    criteria=(
        Criterion("tells equivariant functions from others", 4, plain_functions),
        Criterion("not fooled by symmetric functions", 1, treacherous_functions),
        Criterion("equal up to atol", 1, equivariance_tolerance),
        Criterion("batches and a generator", 1, equivariance_arguments),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "nothing is permuted",
            "Your function says True even for the causal mean. That happens when the permutation "
            "is the identity, `np.arange(n)`, and also when both sides come from the same call, "
            "f(X)[p] against f(X)[p]. Shuffle the input of one side, `f(X[..., p, :])`, the output "
            "of the other, `f(X)[..., p, :]`, and see to it that p moves something.",
            lambda f, X, rng=None, atol=1e-8: True,
        ),
        Misconception(
            "invariance is tested, not equivariance",
            "You compare f of the shuffled tokens with f(X) itself. That asks whether the order "
            "makes no difference at all (invariance). Equivariant means that the output is "
            "shuffled along with the input: compare with `f(X)[..., p, :]`.",
            agrees_if(lambda f, X, p, atol: near(f(X[..., p, :]), f(X), atol)),
        ),
        Misconception(
            "f never sees shuffled tokens",
            "You compare f(X) with f(X) shuffled; both come from the tokens in their old order. "
            "One side has to be f of the shuffled tokens, `f(X[..., p, :])`.",
            agrees_if(lambda f, X, p, atol: near(f(X)[..., p, :], f(X), atol)),
        ),
        Misconception(
            "one side lacks f",
            "You compare f of the shuffled tokens with the shuffled tokens. Both sides are outputs "
            "of f: `f(X[..., p, :])` against `f(X)[..., p, :]`.",
            agrees_if(lambda f, X, p, atol: near(f(X[..., p, :]), X[..., p, :], atol)),
        ),
        Misconception(
            "the order is applied twice, not undone",
            "To bring the output back you index with p again. Undoing p takes its inverse, "
            "`np.argsort(p)`; only a permutation made of separate swaps is its own inverse. "
            "Simpler: leave the output as it is and compare with `f(X)[..., p, :]`.",
            agrees_if(order_taken_twice),
        ),
        Misconception(
            "the features are permuted, not the tokens",
            "You shuffle the last axis, the features. The tokens are the rows, on the second axis "
            "from the end: `X[..., p, :]`.",
            permutes_features,
        ),
        Misconception(
            "the batch is permuted, not the tokens",
            "`X[p]` shuffles the first axis. In a batch that is the axis of the sequences, which "
            "do not know of each other, so the test passes whatever f does. The tokens are on the "
            "second axis from the end: `n = X.shape[-2]` and `X[..., p, :]`.",
            permutes_first_axis,
        ),
        Misconception(
            "only the reversed order is tried",
            "You try the reversal alone. A centred window looks the same from both ends and "
            "passes, yet it knows its neighbours. Try several random permutations.",
            agrees_if(really_equivariant, lambda n: [np.arange(n)[::-1]]),
        ),
        Misconception(
            "only rotations are tried",
            "You try cyclic shifts (`np.roll`) alone. A function that mixes each token with the "
            "one before it, on a ring, passes. Try several random permutations.",
            agrees_if(
                really_equivariant, lambda n: [np.roll(np.arange(n), k) for k in range(1, n)]
            ),
        ),
        Misconception(
            "only the first two tokens are swapped",
            "You exchange the first two tokens and no others. A function that treats just these "
            "two alike passes. Try several random permutations of all tokens.",
            agrees_if(really_equivariant, lambda n: [np.r_[1, 0, 2:n]]),
        ),
        Misconception(
            "exact comparison",
            "You compare with `==`. Adding the same numbers in another order changes the last "
            "digits, so an equivariant function fails. Allow a difference of `atol`: "
            "`np.allclose(a, b, rtol=0, atol=atol)`.",
            agrees_if(lambda f, X, p, atol: np.array_equal(f(X[..., p, :]), f(X)[..., p, :])),
        ),
        Misconception(
            "atol is not used",
            "You compare with a fixed tolerance and not with the argument `atol`.",
            agrees_if(lambda f, X, p, atol: really_equivariant(f, X, p, 1e-8)),
        ),
        Misconception(
            "one entry that agrees is enough",
            "You use `any` over the entries. A function that leaves one feature alone and numbers "
            "another passes. Every entry has to agree: `all`.",
            agrees_if(
                lambda f, X, p, atol: np.isclose(
                    f(X[..., p, :]), f(X)[..., p, :], rtol=0, atol=atol
                ).any()
            ),
        ),
        Misconception(
            "the tokens are shuffled in place",
            "Your answers are right, but the caller's X is in another order afterwards. "
            "`rng.shuffle(X)` and `X[:] = …` write into it; `X[..., p, :]` makes a copy.",
            shuffles_in_place,
        ),
        Misconception(
            "rng=None is not provided for",
            "Without a generator your function calls a method of None. Make one where none is "
            "given: `rng = np.random.default_rng() if rng is None else rng`.",
            needs_rng,
        ),
    ),
    hints=(
        "Two ways lead from X to a shuffled output: shuffle the tokens, then apply f; or apply f, "
        "then shuffle the rows of the result. Equivariant means that both arrive at the same.",
        "`p = rng.permutation(n)` is an order of 0 … n−1, and `X[..., p, :]` the tokens in that "
        "order, batch or not. The same indexing works on f(X).",
        "What would your test say of the causal mean if p happened to be 0, 1, …, n−1? Draw again "
        "in that case, and try several p.",
    ),
)

EXERCISES = (ATTENTION_WEIGHTS, SELF_ATTENTION, IS_PERMUTATION_EQUIVARIANT)
