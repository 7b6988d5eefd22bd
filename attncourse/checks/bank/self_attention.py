"""The exercises of chapter 4, self-attention without parameters."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attncourse import self_attention as chapter
from attncourse.checks import softmaxes as soft
from attncourse.checks.cases import Drawn, Row, Table, normal, once_more, row, standard
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Rng,
    composition,
    leaves_arguments_alone,
)
from attncourse.checks.mistakes import Slip, made
from attncourse.checks.softmaxes import Softmax

# --- cases -----------------------------------------------------------------------------------

TOKENS = Table({"X": "... n d"}, tensors=False, how=normal)
ROWS = standard(TOKENS, d=3)
BY_HAND = Case((np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]),))
WHOLE = Case((BY_HAND.args[0].astype(int),), note="whole numbers")
# The first token's score with itself is 9, with the second one 900.
LONGER = Case(
    (np.array([[3.0, 0.0], [300.0, 10.0], [-25.0, 0.0], [0.0, 2.0]]),), note="long tokens"
)


def of_many_lengths(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    directions = rng.normal(size=shape)
    lengths = np.array([[40.0], [35.0], [0.5], [30.0], [45.0]])
    return lengths * directions / np.linalg.norm(directions, axis=-1, keepdims=True)


def criteria_of_tokens(first: str) -> tuple[Criterion, ...]:
    return (
        Criterion(
            first,
            3,
            TOKENS(
                BY_HAND,
                row("n=7 d=3"),
                row("n=5 d=11", factor=0.5, note="more features than tokens"),
            ),
        ),
        Criterion(
            "any number of tokens and features",
            1,
            TOKENS(
                row("n=1 d=3", note="n = 1"),
                row("n=7 d=3", turned=True, note="X not contiguous in memory"),
                row("n=5 d=5", note="as many features as tokens"),
            ),
        ),
        Criterion("batches", 1, TOKENS(*ROWS.batches)),
        Criterion(
            "large, small and whole numbers, float32",
            1,
            TOKENS(
                row(
                    "n=5 d=3",
                    given={"X": Drawn("n d", of_many_lengths)},
                    note="scores in the thousands, one short vector",
                ),
                LONGER,
                WHOLE,
                ROWS.single,
                *ROWS.extreme,
                once_more(BY_HAND),
            ),
        ),
        leaves_arguments_alone(),
    )


# Functions of tokens (..., n, d), for the test of equivariance. Each returns (..., n, d).


def positions(X):
    return np.arange(X.shape[-2])[:, None]  # (n, 1)


def self_attention(X):
    """softmax(X Xᵀ) X."""
    return chapter.self_attention(X)


def unchanged(X):
    """X itself."""
    return X.copy()


def scaled_features(X):
    """Feature c of every token times c + 1."""
    return X * np.arange(1, X.shape[-1] + 1)


def mean_everywhere(X):
    """The mean of all tokens, on every row."""
    return np.broadcast_to(X.mean(-2, keepdims=True), X.shape).copy()


def first_everywhere(X):
    """The first token, on every row."""
    return np.broadcast_to(X[..., :1, :], X.shape).copy()


def causal_mean(X):
    """Row i is the mean of tokens 0 … i."""
    return np.cumsum(X, axis=-2) / (positions(X) + 1)


def sorted_features(X):
    """Each feature sorted over the tokens."""
    return np.sort(X, axis=-2)


def numbered(X):
    """X[i] + i."""
    return X + positions(X)


def weighted(X):
    """X[i] · (i + 1)."""
    return X * (positions(X) + 1)


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


def first_raised(X):
    """X, with 1 added to the first token."""
    return X + (positions(X) == 0)


def middle_sorted(X):
    """X, each feature sorted over the tokens between the first and the last."""
    return np.concatenate([X[..., :1, :], np.sort(X[..., 1:-1, :], -2), X[..., -1:, :]], axis=-2)


def tried(*trials: tuple[Callable, Row | Case]) -> Callable[[Rng], list[Case]]:
    """Cases ``is_permutation_equivariant(f, X, …)``, told with what ``f`` does."""
    return lambda rng: [
        trial(f, one if isinstance(one, Case) else TOKENS.case(rng, one)) for f, one in trials
    ]


def trial(f: Callable, case: Case) -> Case:
    options = "".join(
        f", {name}={value if name == 'atol' else '…'}" for name, value in case.kwargs.items()
    )
    what = f"{f.__name__}: {f.__doc__.rstrip('.')}"
    return replace(
        case,
        args=(f, *case.args),
        note=f"{what}; {case.note}" if case.note else what,
        shown=f"is_permutation_equivariant({f.__name__}, X{options})",
    )


SEVEN, FIVE = row("n=7 d=3"), row("n=5 d=3")
# With fewer tokens, many an order would be its own inverse, or leave the first in its place.
FIVE_BY_HAND = Case((np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [3.0, 1.0], [2.0, 5.0]]),))
FALLING = Case((np.arange(34.0)[::-1].reshape(17, 2),))
RISING = Case((np.arange(14.0).reshape(7, 2),))


MILLIONS = row(
    "n=5 d=3",
    factor=1e7,
    given={"X": Drawn("n d", lambda rng, shape: rng.uniform(1, 2, shape))},
    note="tokens in the millions",
)


def drawing(tokens: int, seed: int, note: str) -> Row:
    """Tokens with a generator whose first orders are special."""
    given = {"rng": np.random.default_rng(seed)}
    return row(f"n={tokens} d=3", given=given, note=f"a generator {note}")


# What ``rng.permutation`` draws first with these seeds is held by a test.
ORDERS_AS_THEY_ARE = drawing(2, 39449, "that begins with orders that change nothing")
ROTATION_FIRST = drawing(5, 59, "whose first order is a rotation")
ROTATION_SECOND = drawing(5, 142, "whose second order is a rotation")
SWAPS = drawing(3, 1338, "that begins with swaps of two")

# --- usual mistakes: self-attention ----------------------------------------------------------


def T(X):
    return np.swapaxes(X, -1, -2)


def scores(X):
    return X @ T(X)


def unit(X):
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def apart(X):
    """The distance of every token from every other."""
    return np.linalg.norm(X[..., :, None, :] - X[..., None, :, :], axis=-1)


def weights_of(compare=scores, scale=lambda S, X: S, hide=lambda S: S, **decisions):
    """The weights as a function of X; decisions that are not named are the softmax's."""
    softmax = Softmax(**decisions)
    return lambda X: softmax(hide(scale(compare(X), X)))


@composition
def weigh(tokens=lambda X: X, finish=lambda A, X: A, **options):
    """``attention_weights`` made of decisions."""
    weights = weights_of(**options)
    return lambda X: finish(weights(tokens(X)), X)


@composition
def attend(tokens=lambda X: X, mix=lambda A, X: A @ X, finish=lambda U, A, X: U, **options):
    """``self_attention`` made of decisions."""
    weights = weights_of(**options)

    def answer(X):
        x = tokens(X)
        A = weights(x)
        return finish(mix(A, x), A, X)

    return answer


def centred(X):
    return X - X.mean(-2, keepdims=True)


def centred_in_place(X):
    X -= X.mean(-2, keepdims=True)
    return X


def where_diagonal(S, there, elsewhere):
    return np.where(np.eye(S.shape[-1], dtype=bool), there, elsewhere)


def one_after_the_other(A, X):
    U = X.astype(float)
    A = Softmax()(scores(U))
    for i in range(X.shape[-2]):
        U[..., i, :] = (A[..., i, :, None] * U).sum(-2)
    return U


def weights_anew_for_each(A, X):
    U = X.astype(float)
    for i in range(X.shape[-2]):
        A = Softmax()(scores(U))
        U[..., i, :] = (A[..., i, :, None] * U).sum(-2)
    return U


COLUMNS = {"along": lambda axis, ndim: -2}
OF_SELF_ATTENTION = (
    soft.NO_EXPONENTIAL,
    Slip(
        "the softmax is missing",
        "The raw scores `X @ Xᵀ` serve as weights. They can be negative and sum to anything; a "
        "softmax over each row makes weights of them.",
        {"after": lambda w, x, T, axis: x},
    ),
    Slip(
        "a scale slipped in",
        "You divide the scores by √d before the softmax. That comes in chapter 5 and has a "
        "chapter of its own later; here the scores are the plain dot products.",
        {"scale": lambda S, X: S / X.shape[-1] ** 0.5},
    ),
    Slip(
        "divided by a number of tokens or features",
        "You divide the scores by n, by d or by a root. Here they are the plain dot products, "
        "divided by nothing.",
        {"scale": lambda S, X: S / X.shape[-1]},
        lambda scale: {"scale": scale},
        (lambda S, X: S / X.shape[-2], lambda S, X: S / X.shape[-2] ** 0.5),
    ),
    Slip(
        "the vectors are made unit vectors first",
        "You compare directions only (the cosine). Here a vector's length counts: the score "
        "is the dot product of the rows as they are.",
        {"compare": lambda X: scores(unit(X))},
        lambda tokens: {"tokens": tokens},
        (unit,),
    ),
    Slip(
        "the tokens are centred first",
        "You subtract the mean of all tokens before you compare them. The score is the dot product "
        "of the rows as they are.",
        {"tokens": centred},
        lambda options: dict([options]),
        (("compare", lambda X: scores(centred(X))),),
    ),
    Slip(
        "the tokens are centred in place",
        "`X -= X.mean(…)` changes the caller's tokens, and the scores with them. The score is the "
        "dot product of the rows as they are.",
        {"tokens": centred_in_place},
    ),
    Slip(
        "distance in place of the dot product",
        "Your weights fall with the squared distance |x_i − x_j|², as in kernel regression. "
        "The score asked for is the dot product; the two agree only where all vectors have "
        "the same length.",
        {"compare": lambda X: -(apart(X) ** 2) / 2},
        lambda compare: {"compare": compare},
        (lambda X: -(apart(X) ** 2), lambda X: -apart(X)),
    ),
    Slip(
        "a token leaves itself out",
        "Your diagonal is 0. Nothing keeps a token from listening to itself: the score of x_i "
        "with x_i is in the softmax like the others.",
        {"hide": lambda S: where_diagonal(S, -np.inf, S)},
        lambda options: dict([options]),
        (("after", lambda w, x, T, axis: where_diagonal(w, 0, w)),),
    ),
    Slip(
        "a token's score with itself is 0",
        "You set the diagonal of the scores to 0, and exp(0) = 1 still counts. The score of x_i "
        "with x_i is |x_i|² and belongs in the softmax.",
        {"hide": lambda S: where_diagonal(S, 0, S)},
    ),
    Slip(
        "negative scores are set to 0",
        "You cut the scores off at 0, or drop their sign. Tokens that point away from each other "
        "have a negative score, and exp makes a small weight of it: leave the scores as they are.",
        {"hide": lambda S: np.maximum(S, 0)},
        lambda hide: {"hide": hide},
        (np.abs,),
    ),
    Slip(
        "later tokens are not heard",
        "Your weights are 0 above the diagonal, as in a causal model. Here every token listens to "
        "all tokens.",
        {"hide": lambda S: np.where(np.tri(S.shape[-1], dtype=bool), S, -np.inf)},
        lambda options: dict([options]),
        (("after", lambda w, x, T, axis: np.tril(w)),),
    ),
    soft.NOTHING_SUBTRACTED.called("large scores overflow"),
    soft.WHOLE_MAXIMUM.called("one maximum for all rows"),
    Slip(
        "a token's score with itself is subtracted",
        "You subtract the diagonal, as if a token were always most like itself. A long token has a "
        "larger score with it, and its exp overflows. Subtract each row's maximum.",
        {"top": lambda S, axis, x: np.diagonal(S, axis1=-2, axis2=-1)[..., None]},
    ),
    soft.MINIMUM,
    soft.NAN_TO_ZERO,
    soft.CLIPPED,
    *soft.OF_THE_WEIGHTS,
    soft.ANOTHER_FACTOR,
    soft.ONLY_THE_LARGEST,
    soft.TURNED_ROUND,
    Slip(
        "`.T` on a batch",
        "`.T` turns all axes round, those of the batch too. To transpose each matrix of a "
        "batch, swap the last two axes only: `np.swapaxes(X, -1, -2)`, or `X.mT`.",
        {"compare": lambda X: X @ X.T},
    ),
    Slip(
        "a product that knows no batch",
        "`np.dot` and `np.inner` pair every sequence of a batch with every other. `@` takes them "
        "one by one.",
        {"compare": lambda X: np.dot(X, T(X))},
        lambda compare: {"compare": compare},
        (lambda X: np.inner(X, X),),
    ),
    soft.OVER_AXIS_0,
    soft.OVER_AXIS_1,
)

# --- usual mistakes: the test of equivariance ------------------------------------------------


def seeded(rng):
    return np.random.default_rng(0) if rng is None else rng


def several(n, rng):
    return [chapter.random_order(n, rng) for _ in range(8)]


def shuffled(X, p):
    return X[..., p, :]


def both_sides(f, X, p, rng, shuffle):
    return f(shuffle(X, p)), shuffle(f(X), p)


def within(a, b, atol):
    return bool((np.abs(a - b) <= atol).all())


@composition
def equivariance(
    generator=seeded,
    length=lambda X: X.shape[-2],
    draw=several,
    shuffle=shuffled,
    sides=both_sides,
    agree=within,
    verdict=all,
):
    """A test of equivariance made of decisions: which orders, what is compared, and how."""

    def test(f, X, rng=None, atol=1e-8):
        rng = generator(rng)
        pairs = (sides(f, X, p, rng, shuffle) for p in draw(length(X), rng))
        return verdict([agree(a, b, atol) for a, b in pairs])

    return test


def in_place(f, X, p, rng, shuffle):
    before = f(X)
    X[:] = shuffle(X, p)
    return f(X), shuffle(before, p)


# --- exercises -------------------------------------------------------------------------------

ATTENTION_WEIGHTS = Exercise(
    target="self_attention.attention_weights",
    reference=chapter.attention_weights,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=criteria_of_tokens("row i is the softmax of token i's scores"),
    misconceptions=made(
        weigh,
        *OF_SELF_ATTENTION,
        soft.OVER_EVERYTHING,
        soft.LOGARITHM,
        soft.ROUNDED,
        soft.WHOLE_NUMBERS,
        Slip(
            "the columns sum to 1, not the rows",
            "You have normalised over the queries: the columns of your weights sum to 1. Row i "
            "belongs to token i as a query and is to sum to 1, so the softmax runs over the last "
            "axis: `softmax(scores, axis=-1)`. If you wrote `.T` behind a right result, that is "
            "the same mistake: the scores are symmetric, so the softmax over columns is the "
            "transposed matrix.",
            COLUMNS,
        ),
        Slip(
            "features are compared, not tokens",
            "You compute `X.T @ X`, the dot products of columns: shape (d, d). The score of tokens "
            "i and j is the dot product of rows i and j: `X @ Xᵀ`, shape (n, n).",
            {"compare": lambda X: T(X) @ X},
        ),
        Slip(
            "the tokens are mixed already",
            "You return `A @ X`, shape (n, d), which is the next exercise. The weights A alone are "
            "asked for, shape (n, n).",
            {"finish": lambda A, X: A @ X},
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
    criteria=criteria_of_tokens("mixes the tokens by their own weights"),
    misconceptions=made(
        attend,
        *OF_SELF_ATTENTION,
        soft.OVER_EVERYTHING.called("all weights together sum to 1"),
        Slip(
            "column i mixes output i, not row i",
            "Your output i takes column i of A as its weights: either the softmax runs over the "
            "columns, or you return `Aᵀ X`. Where scores are symmetric the two are the same "
            "function. Softmax over the last axis, then `A @ X`: row i is what token i listens to.",
            COLUMNS,
        ),
        Slip(
            "stops at the weights",
            "You return the weights A, shape (n, n). One product is missing: `A @ X`, the tokens "
            "mixed by them, shape (n, d).",
            {"finish": lambda U, A, X: A},
        ),
        Slip(
            "the softmax comes after mixing",
            "You mix with the raw scores and take the softmax of the result, so that each output "
            "vector sums to 1. The weights are what has to sum to 1: softmax of the scores first, "
            "then the product with X.",
            {"mix": lambda A, X: Softmax()(scores(X) @ X)},
        ),
        Slip(
            "a softmax of the mixed tokens",
            "You take the softmax of the output once more. What comes back are the mixed tokens, "
            "as `A @ X` gives them.",
            {"finish": lambda U, A, X: Softmax()(U)},
        ),
        Slip(
            "the mixed tokens are divided by their own sum",
            "You mix with the exponentials, then divide each output vector by the sum of its "
            "features. Dividing after mixing is allowed, but by the sum of the weights of row i: "
            "`weights.sum(-1, keepdims=True)`.",
            {"finish": lambda U, A, X: U / U.sum(-1, keepdims=True)},
        ),
        Slip(
            "features listen to each other, not tokens",
            "You compute `X @ softmax(X.T @ X)`: d × d weights that mix columns of X. Tokens are "
            "the rows: `softmax(X @ Xᵀ) @ X`, with n × n weights.",
            {"compare": lambda X: T(X) @ X, "mix": lambda A, X: X @ A},
        ),
        Slip(
            "the tokens themselves are added",
            "You return `X + A @ X`. Adding the input back is a residual connection, which comes "
            "in the chapter on transformers; here the output is the mixture alone.",
            {"finish": lambda U, A, X: X + U},
            lambda part: {"finish": lambda U, A, X: part * (X + U)},
            (0.5,),
        ),
        Slip(
            "one vector for the whole sequence",
            "You add the outputs up into one vector. Every token has its own output: keep the "
            "token axis.",
            {"finish": lambda U, A, X: U.sum(-2)},
            lambda finish: {"finish": finish},
            (lambda U, A, X: U.mean(-2), lambda U, A, X: U.mean(-2, keepdims=True)),
        ),
        Slip(
            "the mixture is averaged once more",
            "You divide by the number of tokens. The weights of a row sum to 1 already: the "
            "weighted sum is the average.",
            {"mix": lambda A, X: A @ X / X.shape[-2]},
        ),
        Slip(
            "tokens are overwritten while they are still needed",
            "You write an output over its token, and the next tokens listen to it. All outputs "
            "are mixtures of the tokens that came in: write them into an array of their own.",
            {"mix": one_after_the_other},
            lambda mix: {"mix": mix},
            (weights_anew_for_each,),
        ),
        Slip(
            "the output is cut to whole numbers",
            "Where X holds whole numbers, your output does too: an array made like X, by "
            "`np.zeros_like` say, holds integers. A mixture has decimals: make it one of floats.",
            {"finish": lambda U, A, X: U.astype(X.dtype)},
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
        Criterion(
            "tells equivariant functions from others",
            4,
            tried(
                (scaled_features, FIVE_BY_HAND),
                (numbered, row("n=4 d=3")),
                (unchanged, SEVEN),
                (self_attention, SEVEN.but("n=2", note="two tokens")),
                (mean_everywhere, SEVEN.but("d=5")),
                (first_everywhere, FALLING),
                (sorted_features, SEVEN),
                (numbered_in_one_feature, SEVEN.but("d=7")),
            ),
        ),
        Criterion(
            "not fooled by symmetric functions, orders that change nothing, or a single order",
            1,
            tried(
                *((f, SEVEN) for f in (window_mean, ring_mean, prefix_mean)),
                (numbered, ORDERS_AS_THEY_ARE),
                (middle_sorted, RISING),
                (ring_mean, ROTATION_FIRST),
                (ring_mean, ROTATION_SECOND),
                (scaled_features, SWAPS),
            ),
        ),
        Criterion(
            "equal up to atol",
            1,
            tried(
                (with_rounding, FIVE.but(note="inside the default tolerance")),
                (with_rounding, FIVE.but(given={"atol": 0.0})),
                (scaled_features, FIVE.but(given={"atol": 0.0})),
                (drifting, FIVE.but(note="outside the default tolerance")),
                (drifting, FIVE.but(given={"atol": 5e-3})),
                (first_raised, row("n=17 d=3", given={"atol": 0.5})),
                (numbered, MILLIONS),
                (weighted, FIVE.but(factor=5e-7, cancel=True, note="small tokens that cancel")),
            ),
        ),
        Criterion(
            "batches, whole numbers, float32",
            1,
            tried(
                *zip(
                    (causal_mean, numbered, self_attention, self_attention, causal_mean),
                    ROWS.batches,
                    strict=True,
                ),
                (scaled_features, ROWS.integers[0]),
                (scaled_features, ROWS.single),
                (scaled_features, once_more(FIVE_BY_HAND)),
            ),
        ),
        leaves_arguments_alone(),
    ),
    excludes=(("n of 1", "There are at least two tokens."),),
    misconceptions=made(
        equivariance,
        Slip(
            "nothing is permuted",
            "Your function says True even for the causal mean. That happens when the permutation "
            "is the identity, `np.arange(n)`, and also when both sides come from the same call, "
            "f(X)[p] against f(X)[p]. Shuffle the input of one side, `f(X[..., p, :])`, the output "
            "of the other, `f(X)[..., p, :]`, and see to it that p moves something.",
            {"draw": lambda n, rng: [np.arange(n)]},
        ),
        Slip(
            "False for everything",
            "Your function says False even of one that returns the tokens as they are. Look at the "
            "two sides that you compare: `f(X[..., p, :])` and `f(X)[..., p, :]`, with one p.",
            {"verdict": lambda answers: False},
        ),
        Slip(
            "True and False are exchanged",
            "You say False of what is equivariant and True of what is not. True where both sides "
            "agree for every order.",
            {"verdict": lambda answers: not all(answers)},
        ),
        Slip(
            "invariance is tested, not equivariance",
            "You compare f of the shuffled tokens with f(X) itself. That asks whether the order "
            "makes no difference at all (invariance). Equivariant means that the output is "
            "shuffled along with the input: compare with `f(X)[..., p, :]`.",
            {"sides": lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), f(X))},
        ),
        Slip(
            "f never sees shuffled tokens",
            "You compare f(X) with f(X) shuffled; both come from the tokens in their old order. "
            "One side has to be f of the shuffled tokens, `f(X[..., p, :])`.",
            {"sides": lambda f, X, p, rng, shuffle: (shuffle(f(X), p), f(X))},
        ),
        Slip(
            "one side lacks f",
            "You compare f of the shuffled tokens with the shuffled tokens. Both sides are outputs "
            "of f: `f(X[..., p, :])` against `f(X)[..., p, :]`.",
            {"sides": lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), shuffle(X, p))},
        ),
        Slip(
            "each side has an order of its own",
            "You draw one order for the tokens and another for the output, and the two have "
            "nothing to do with each other. Draw p once: `f(X[..., p, :])` against "
            "`f(X)[..., p, :]`.",
            {
                "sides": lambda f, X, p, rng, shuffle: (
                    f(shuffle(X, rng.permutation(len(p)))),
                    shuffle(f(X), rng.permutation(len(p))),
                )
            },
            lambda sides: {"sides": sides},
            (
                lambda f, X, p, rng, shuffle: (
                    f(shuffle(X, p)),
                    shuffle(f(X), chapter.random_order(len(p), rng)),
                ),
            ),
        ),
        Slip(
            "the order is applied twice, not undone",
            "To bring the output back you index with p again. Undoing p takes its inverse, "
            "`np.argsort(p)`; only a permutation made of separate swaps is its own inverse. "
            "Simpler: leave the output as it is and compare with `f(X)[..., p, :]`.",
            {"sides": lambda f, X, p, rng, shuffle: (shuffle(f(shuffle(X, p)), p), f(X))},
        ),
        Slip(
            "the features are permuted, not the tokens",
            "You shuffle the last axis, the features. The tokens are the rows, on the second axis "
            "from the end: `X[..., p, :]`.",
            {"length": lambda X: X.shape[-1], "shuffle": lambda X, p: X[..., p]},
        ),
        Slip(
            "the batch is permuted, not the tokens",
            "`X[p]` shuffles the first axis. In a batch that is the axis of the sequences, which "
            "do not know of each other, so the test passes whatever f does. The tokens are on the "
            "second axis from the end: `n = X.shape[-2]` and `X[..., p, :]`.",
            {"length": lambda X: len(X), "shuffle": lambda X, p: X[p]},
        ),
        Slip(
            "the second axis is permuted",
            "`X[:, p]` shuffles the tokens of a single batch; without a batch these are the "
            "features. Count from the end: `n = X.shape[-2]` and `X[..., p, :]`.",
            {
                "length": lambda X: X.shape[1],
                "shuffle": lambda X, p: X[:, p],
                "draw": lambda n, rng: [rng.permutation(n) for _ in range(8)],
            },
        ),
        Slip(
            "the sequences are counted, not the tokens",
            "`len(X)` is the number of tokens of one sequence; of a batch it is that of the "
            "sequences, and your orders leave tokens out. `n = X.shape[-2]`.",
            {"length": lambda X: len(X)},
        ),
        Slip(
            "only the reversed order is tried",
            "You try the reversal alone. A centred window looks the same from both ends and "
            "passes, yet it knows its neighbours. Try several random permutations.",
            {"draw": lambda n, rng: [np.arange(n)[::-1]]},
        ),
        Slip(
            "only rotations are tried",
            "You try cyclic shifts (`np.roll`) alone. A function that mixes each token with the "
            "one before it, on a ring, passes. Try several random permutations.",
            {"draw": lambda n, rng: [np.roll(np.arange(n), k) for k in range(1, n)]},
        ),
        Slip(
            "only the first two tokens are swapped",
            "You exchange the first two tokens and no others. A function that treats just these "
            "two alike passes. Try several random permutations of all tokens.",
            {"draw": lambda n, rng: [np.r_[1, 0, 2:n]]},
        ),
        Slip(
            "a single order is tried",
            "You try one random order. A function may happen to be fooled by it, as one that looks "
            "at its neighbours on a ring is by a rotation. Try several.",
            {"draw": lambda n, rng: [chapter.random_order(n, rng)]},
        ),
        Slip(
            "the identity counts as an order",
            "`rng.permutation(n)` may change nothing, of two tokens every second time, and then f "
            "passes whatever it does. Draw again until the order moves something.",
            {"draw": lambda n, rng: [rng.permutation(n) for _ in range(8)]},
            lambda count: {"draw": lambda n, rng: [rng.permutation(n) for _ in range(count)]},
            (3, 5, 10, 16),
        ),
        Slip(
            "a single order is tried, which may be the identity",
            "You try one random order, and it may change nothing or fool you otherwise. Try "
            "several, and draw again where one is the identity.",
            {"draw": lambda n, rng: [rng.permutation(n)]},
        ),
        Slip(
            "one order that passes is enough",
            "You say True as soon as f passes for one order. It has to pass for every one of them: "
            "`all`.",
            {"verdict": lambda answers: any(answers)},
        ),
        Slip(
            "exact comparison",
            "You compare with `==`. Adding the same numbers in another order changes the last "
            "digits, so an equivariant function fails. Allow a difference of `atol`: "
            "`np.allclose(a, b, rtol=0, atol=atol)`.",
            {"agree": lambda a, b, atol: np.array_equal(a, b)},
        ),
        Slip(
            "atol is not used",
            "You compare with a fixed tolerance and not with the argument `atol`.",
            {"agree": lambda a, b, atol: np.allclose(a, b, rtol=0, atol=1e-8)},
            lambda agree: {"agree": agree},
            (
                lambda a, b, atol: np.allclose(a, b, rtol=0, atol=1e-5),
                lambda a, b, atol: np.allclose(a, b, rtol=0, atol=1e-6),
                lambda a, b, atol: np.allclose(a, b, rtol=0, atol=1e-10),
                lambda a, b, atol: np.allclose(a, b, rtol=0, atol=1e-12),
            ),
        ),
        Slip(
            "the tolerances of np.allclose are used",
            "`np.allclose(a, b)` has tolerances of its own, one of them relative. Hand yours on: "
            "`np.allclose(a, b, rtol=0, atol=atol)`.",
            {"agree": lambda a, b, atol: np.allclose(a, b)},
        ),
        Slip(
            "a relative tolerance on top",
            "`np.allclose` allows, beside `atol`, a difference of a hundred-thousandth of each "
            "entry, so that f passes where its outputs are large. `np.allclose(a, b, rtol=0, "
            "atol=atol)`.",
            {"agree": lambda a, b, atol: np.allclose(a, b, atol=atol)},
        ),
        Slip(
            "an atol of 0 is taken for none",
            "`atol or 1e-8` takes 0 for a tolerance that was not given. The default in the "
            "signature sees to that.",
            {"agree": lambda a, b, atol: np.allclose(a, b, rtol=0, atol=atol or 1e-8)},
        ),
        Slip(
            "a difference of exactly atol is refused",
            "`<` refuses what `atol` still allows, and for an `atol` of 0 it refuses everything. "
            "What no entry may do is differ by *more*: `<=`.",
            {"agree": lambda a, b, atol: (np.abs(a - b) < atol).all()},
        ),
        Slip(
            "the mean difference is compared",
            "You compare the mean of all differences with `atol`. A few tokens that are far off "
            "are lost in it. No single entry may differ by more: the largest counts.",
            {"agree": lambda a, b, atol: np.abs(a - b).mean() <= atol},
            lambda agree: {"agree": agree},
            (lambda a, b, atol: ((a - b) ** 2).mean() <= atol,),
        ),
        Slip(
            "all differences are added up",
            "You compare the sum of all differences, or their length, with `atol`, and many small "
            "ones exceed it. Each entry by itself may differ by that much.",
            {"agree": lambda a, b, atol: np.linalg.norm(a - b) <= atol},
            lambda agree: {"agree": agree},
            (lambda a, b, atol: np.abs(a - b).sum() <= atol,),
        ),
        Slip(
            "differences keep their sign",
            "A difference of −5 is below any tolerance. Take `np.abs` of it first.",
            {"agree": lambda a, b, atol: (a - b).max() <= atol},
        ),
        Slip(
            "differences cancel in a sum",
            "You add the differences up with their signs, or compare sums over the tokens, and "
            "what is too much in one place makes up for another. Compare entry by entry.",
            {"agree": lambda a, b, atol: np.abs((a - b).sum(-2)).max() <= atol},
            lambda agree: {"agree": agree},
            (lambda a, b, atol: abs((a - b).sum()) <= atol,),
        ),
        Slip(
            "the rows are compared in any order",
            "You sort both sides before you compare them, and their order is what it is about. "
            "Compare row by row.",
            {"agree": lambda a, b, atol: within(np.sort(a, axis=-2), np.sort(b, axis=-2), atol)},
        ),
        Slip(
            "only one token is compared",
            "You compare the first row of both sides, or the last. Every token has to agree.",
            {"agree": lambda a, b, atol: within(a[..., 0, :], b[..., 0, :], atol)},
            lambda token: {
                "agree": lambda a, b, atol: within(a[..., token, :], b[..., token, :], atol)
            },
            (-1,),
        ),
        Slip(
            "only one feature is compared",
            "You compare the first feature of both sides. All of them have to agree.",
            {"agree": lambda a, b, atol: within(a[..., 0], b[..., 0], atol)},
        ),
        Slip(
            "one entry that agrees is enough",
            "You use `any` over the entries. A function that leaves one feature alone and numbers "
            "another passes. Every entry has to agree: `all`.",
            {"agree": lambda a, b, atol: (np.abs(a - b) <= atol).any()},
        ),
        Slip(
            "the tokens are shuffled in place",
            "Your answers are right, but the caller's X is in another order afterwards. "
            "`rng.shuffle(X)` and `X[:] = …` write into it; `X[..., p, :]` makes a copy.",
            {"sides": in_place},
        ),
        Slip(
            "rng=None is not provided for",
            "Without a generator your function calls a method of None. Make one where none is "
            "given: `rng = np.random.default_rng() if rng is None else rng`.",
            {"generator": lambda rng: rng},
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
