"""The exercises of chapter 4, self-attention without parameters."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attncourse import self_attention as chapter
from attncourse.checks.callers import orders_tried, same_orders, several_orders
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import COLUMNS
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.cases import CaseTable, Drawn, Row, normal, once_more, row, standard
from attncourse.checks.writing.numpy_mistakes import dots, result, swapped, unit, within
from attncourse.checks.writing.recipes import made, mistake

# --- cases: self-attention -------------------------------------------------------------------

TOKENS = CaseTable({"X": "... n d"}, tensors=False, how=normal)
ROWS = standard(TOKENS, d=3)
BY_HAND = Case((np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]),))
# The first token's score with itself is 9, with the second one 900.
LONGER = Case((np.array([[3.0, 0], [300, 10], [-25, 0], [0, 2]]),), note="long tokens")


def of_many_lengths(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    directions = rng.normal(size=shape)
    lengths = np.array([[40.0], [35.0], [0.5], [30.0], [45.0]])
    return lengths * directions / np.linalg.norm(directions, axis=-1, keepdims=True)


MANY_LENGTHS = {"X": Drawn("n d", of_many_lengths)}


def criteria_of_tokens(first: str) -> tuple[Criterion, ...]:
    return (
        TOKENS.criterion(first, 3).on(
            BY_HAND, row("n=7 d=3"), row("n=5 d=11", factor=0.5, note="more features than tokens")
        ),
        TOKENS.criterion("any number of tokens and features", 1).on(
            row("n=1 d=3", note="n = 1"),
            row("n=7 d=3", turned=True, note="X not contiguous in memory"),
            row("n=5 d=5", note="as many features as tokens"),
        ),
        TOKENS.criterion("batches", 1).on(*ROWS.batches),
        TOKENS.criterion("large, small and whole numbers, float32", 1).on(
            row("n=5 d=3", given=MANY_LENGTHS, note="scores in the thousands, one short vector"),
            LONGER,
            Case((BY_HAND.args[0].astype(int),), note="whole numbers"),
            ROWS.single,
            *ROWS.extreme,
            once_more(BY_HAND),
        ),
        unchanged(),
    )


# --- cases: the test of equivariance ---------------------------------------------------------


def positions(X):
    return np.arange(X.shape[-2])[:, None]  # (n, 1)


def window_mean(X):
    near = (np.abs(positions(X) - positions(X).T) <= 1).astype(float)
    return near / near.sum(-1, keepdims=True) @ X


def causal_mean(X):
    return np.cumsum(X, axis=-2) / (positions(X) + 1)


# Functions of tokens (..., n, d), each behind what it does. Each returns (..., n, d). None is what
# an exercise asks for: a submission may call it with what it likes.
FUNCTIONS: dict[str, tuple[str, Callable]] = {
    "mixed_by_scores": ("X Xᵀ X", lambda X: X @ np.swapaxes(X, -1, -2) @ X),
    "unchanged": ("X itself", np.copy),
    "scaled_features": (
        "feature c of every token times c + 1",
        lambda X: X * np.arange(1, X.shape[-1] + 1),
    ),
    "mean_everywhere": (
        "the mean of all tokens, on every row",
        lambda X: 0 * X + X.mean(-2, keepdims=True),
    ),
    "first_everywhere": ("the first token, on every row", lambda X: X[..., [0] * X.shape[-2], :]),
    "causal_mean": ("row i is the mean of tokens 0 … i", causal_mean),
    "sorted_features": ("each feature sorted over the tokens", lambda X: np.sort(X, axis=-2)),
    "numbered": ("X[i] + i", lambda X: X + positions(X)),
    "weighted": ("X[i] · (i + 1)", lambda X: X * (positions(X) + 1)),
    "window_mean": ("row i is the mean of tokens i−1, i, i+1, where they exist", window_mean),
    "ring_mean": (
        "row i is the mean of tokens i and i−1; before the first comes the last",
        lambda X: (X + np.roll(X, 1, axis=-2)) / 2,
    ),
    "prefix_mean": (
        "row i is the mean of tokens 0 … i, but of at least two",
        lambda X: causal_mean(X)[..., np.arange(X.shape[-2]).clip(1), :],
    ),
    "numbered_in_one_feature": (
        "X, with i added to the last feature of token i",
        lambda X: X + positions(X) * (np.arange(X.shape[-1]) == X.shape[-1] - 1),
    ),
    "with_rounding": ("X[i] + i · 1e-12", lambda X: X + 1e-12 * positions(X)),
    "drifting": ("X[i] + i / 1000", lambda X: X + 1e-3 * positions(X)),
    "first_raised": ("X, with 1 added to the first token", lambda X: X + (positions(X) == 0)),
    "middle_sorted": (
        "X, each feature sorted over the tokens between the first and the last",
        lambda X: np.concatenate([X[..., :1, :], np.sort(X[..., 1:-1, :], -2), X[..., -1:, :]], -2),
    ),
}


def tried(*trials: tuple[str, Row | Case]) -> Callable[[Rng], list[Case]]:
    """Cases ``is_permutation_equivariant(f, X, …)``, told with what ``f`` does."""
    return lambda rng: [
        trial(name, one if isinstance(one, Case) else TOKENS.case(rng, one)) for name, one in trials
    ]


def trial(name: str, case: Case) -> Case:
    what, function = FUNCTIONS[name]

    def f(X):  # the function's own name would say what it is
        return function(X)

    options = "".join(f", {k}={v if k == 'atol' else '…'}" for k, v in case.kwargs.items())
    return replace(
        case,
        args=(f, *case.args),
        note="; ".join(filter(None, (f"{name}: {what}", case.note))),
        shown=f"is_permutation_equivariant({name}, X{options})",
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

SEVEN, FIVE = row("n=7 d=3"), row("n=5 d=3")
# With fewer tokens, many an order would be its own inverse, or leave the first in its place.
FIVE_BY_HAND = Case((np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [3.0, 1.0], [2.0, 5.0]]),))
# So many that hardly an order leaves the first in its place.
FALLING = Case((np.arange(202.0)[::-1].reshape(101, 2),))
RISING = Case((np.arange(14.0).reshape(7, 2),))


def spaced(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Tokens whose features lie ten apart, in any order: an entry more is none of another's."""
    return 10.0 * rng.permuted(np.indices(shape)[0], axis=0)


ONE_TO_TWO = {"X": Drawn("n d", lambda rng, shape: rng.uniform(1, 2, shape))}
TELLS_APART = tried(
    ("scaled_features", FIVE_BY_HAND),
    ("numbered", SEVEN),
    ("unchanged", SEVEN),
    ("mixed_by_scores", SEVEN.but("n=2", note="two tokens")),
    ("mean_everywhere", SEVEN.but("d=5")),
    ("first_everywhere", FALLING),
    ("sorted_features", SEVEN),
    ("numbered_in_one_feature", SEVEN.but("d=7")),
)
NOT_FOOLED = tried(
    ("window_mean", SEVEN),
    ("ring_mean", SEVEN),
    ("prefix_mean", SEVEN),
    ("numbered", ORDERS_AS_THEY_ARE),
    ("middle_sorted", RISING),
    ("ring_mean", ROTATION_FIRST),
    ("ring_mean", ROTATION_SECOND),
    ("scaled_features", SWAPS),
)
UP_TO_ATOL = tried(
    ("with_rounding", FIVE.but(note="inside the default tolerance")),
    ("with_rounding", FIVE.but(given={"atol": 0.0})),
    ("scaled_features", FIVE.but(given={"atol": 0.0})),
    ("drifting", FIVE.but(note="outside the default tolerance")),
    ("drifting", FIVE.but(given={"atol": 5e-3})),
    ("first_raised", row("n=101 d=3", given={"X": Drawn("n d", spaced), "atol": 0.5})),
    ("numbered", FIVE.but(factor=1e7, given=ONE_TO_TWO, note="tokens in the millions")),
    ("weighted", FIVE.but(factor=5e-7, cancel=True, note="small tokens that cancel")),
)
DRAWN = Case(
    (np.arange(34.0).reshape(17, 2), (3, 5)),
    use=orders_tried,
    facts=same_orders,
    shown="is_permutation_equivariant(f, X, rng) with equal generators, and with others",
)
COUNTED = replace(
    DRAWN,
    facts=several_orders,
    shown="is_permutation_equivariant(f, X, rng), counting the orders that f is given",
)
# What is false is so for many tokens: of few, one random order may change nothing.
IN_BATCHES = ("causal_mean", "scaled_features", "numbered", "mixed_by_scores", "mixed_by_scores")
KINDS = tried(
    *zip(IN_BATCHES, ROWS.batches, strict=True),
    ("scaled_features", ROWS.integers[0]),
    ("scaled_features", ROWS.single),
    ("scaled_features", once_more(FIVE_BY_HAND)),
)

# --- usual mistakes: self-attention ----------------------------------------------------------


def weights_of(compare=dots, scale=lambda S, X: S, hide=lambda S: S, **decisions):
    """The weights as a function of X; decisions that are not named are the softmax's."""
    softmax = soft.Softmax(**decisions)
    return lambda X: softmax(hide(scale(compare(X, X), X)))


@composition
def weigh(tokens=lambda X: X, finish=lambda A, X: A, **options):
    """``attention_weights`` made of decisions."""
    weights = weights_of(**options)
    return lambda X: finish(weights(tokens(X)), X)


@composition
def attend(tokens=lambda X: X, mix=lambda A, X: A @ X, finish=result, **options):
    """``self_attention`` made of decisions."""
    weights = weights_of(**options)

    def answer(X):
        x = tokens(X)
        A = weights(x)
        return finish(mix(A, x), X, A)

    return answer


def centred(X):
    return X - X.mean(-2, keepdims=True)


def where_diagonal(S, there, elsewhere):
    return np.where(np.eye(S.shape[-1], dtype=bool), there, elsewhere)


def one_after_the_other(anew: bool):
    """Each output is written over its token; the weights may be made anew for each."""

    def mix(A, X):
        U = X.astype(float)
        for i in range(X.shape[-2]):
            A = soft.Softmax()(dots(U, U)) if anew else A
            U[..., i, :] = (A[..., i, :, None] * U).sum(-2)
        return U

    return mix


OVER_COLUMNS = {"along": lambda axis, ndim: -2}
OF_SELF_ATTENTION = (
    soft.NO_EXPONENTIAL,
    *numpy_mistakes.OF_SCORES[1:],
    numpy_mistakes.COSINE.by(tokens=unit),
    mistake("""the tokens are centred first
        You subtract the mean of all tokens before you compare them; `X -= …` changes the caller's
        tokens besides. The score is the dot product of the rows as they are.""")
    .by(tokens=centred)
    .by(tokens=lambda X: np.subtract(X, X.mean(-2, keepdims=True), out=X))
    .by(compare=lambda X, Y: dots(centred(X), centred(Y))),
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
        You subtract the diagonal, as if a token were always most like itself. A long token has a
        larger score with it, and its exp overflows. Subtract each row's maximum.
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
OF_THE_WEIGHTS_ALONE = (
    soft.LOGARITHM,
    soft.ROUNDED,
    soft.WHOLE_NUMBERS,
    mistake("""the columns sum to 1, not the rows
        You normalised over the queries, or wrote `.T`, the same where scores are symmetric. Row i
        belongs to token i as a query: `softmax(scores, axis=-1)`.""").by(OVER_COLUMNS),
    mistake("""features are compared, not tokens
        You compute `X.T @ X`, the dot products of columns: shape (d, d). The score of tokens i and
        j is the dot product of rows i and j: `X @ Xᵀ`, shape (n, n).
    """).by(compare=lambda X, Y: swapped(X) @ Y),
    mistake("""the tokens are mixed already
        You return `A @ X`, shape (n, d), which is the next exercise. The weights A alone are asked
        for, shape (n, n).""").by(finish=lambda A, X: A @ X),
)
OF_THE_MIXTURE = (
    mistake("""column i mixes output i, not row i
        Your softmax runs over columns, or you return `Aᵀ X`, the same where scores are symmetric.
        Softmax over the last axis, then `A @ X`: row i is what token i hears.""").by(OVER_COLUMNS),
    mistake("""stops at the weights
        You return the weights A, shape (n, n). One product is missing: `A @ X`, the tokens mixed by
        them, shape (n, d).""").by(finish=lambda U, X, A: A),
    mistake("""the weights come back too
        You return the output and the weights. Return one thing, the output.
    """).by(finish=lambda U, X, A: (U, A)),
    mistake("""mixed twice
        You mix the tokens, and what comes out once more. One product `A @ X` is all.
    """).by(mix=lambda A, X: A @ (A @ X)),
    mistake("""the softmax comes after mixing
        You mix first, then take a softmax of the result or divide it by its sum. It is the weights
        that sum to 1: softmax of the scores, then the product with X.""")
    .by(mix=lambda A, X: soft.Softmax()(dots(X, X) @ X))
    .by(finish=lambda U, X, A: U / U.sum(-1, keepdims=True)),
    mistake("""features listen to each other, not tokens
        You compute `X @ softmax(X.T @ X)`: d × d weights that mix columns of X. Tokens are the
        rows: `softmax(X @ Xᵀ) @ X`, with n × n weights.
    """).by(compare=lambda X, Y: swapped(X) @ Y, mix=lambda A, X: X @ A),
    mistake("""tokens are overwritten while they are still needed
        You write an output over its token, and the next tokens listen to it. All outputs are
        mixtures of the tokens that came in: write them into an array of their own.""")
    .by(mix=one_after_the_other(anew=False))
    .by(mix=one_after_the_other(anew=True)),
    numpy_mistakes.INPUT_ADDED,
    numpy_mistakes.ONE_VECTOR.by(finish=lambda U, X, A: U.mean(-2)).said(
        "You add all rows up into one, or average them. Every token has a row of its own: keep the "
        "token axis."
    ),
    numpy_mistakes.AVERAGED_AGAIN,
    numpy_mistakes.CUT,
)

# --- usual mistakes: the test of equivariance ------------------------------------------------


def unchecked(count: int):
    """Orders as they come."""
    return lambda n, rng: [rng.permutation(n) for _ in range(count)]


def each_its_own(draw):
    """The output is shuffled in an order of its own."""
    return lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), shuffle(f(X), draw(len(p), rng)))


@composition
def equivariance(
    generator=lambda rng: np.random.default_rng(0) if rng is None else rng,
    length=lambda X: X.shape[-2],
    draw=lambda n, rng: [chapter.random_order(n, rng) for _ in range(8)],
    shuffle=lambda X, p: X[..., p, :],
    sides=lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), shuffle(f(X), p)),
    close=within,
    gather=np.all,
    tolerance=lambda atol: atol,
    verdict=all,
    finish=bool,
):
    """A test of equivariance made of decisions: which orders, what is compared, and how."""

    def test(f, X, rng=None, atol=1e-8):
        rng = generator(rng)
        pairs = (sides(f, X, p, rng, shuffle) for p in draw(length(X), rng))
        return finish(verdict(gather(close(a, b, tolerance(atol))) for a, b in pairs))

    return test


OF_EQUIVARIANCE = (
    mistake("""nothing is permuted
        Your function says True even for the causal mean, as it does where p is `np.arange(n)`,
        where both sides come from one call, or where nothing is compared. Compare `f(X[..., p, :])`
        with `f(X)[..., p, :]`, p moving something.""").by(draw=lambda n, rng: [np.arange(n)]),
    mistake("""invariance is tested, not equivariance
        You compare f of the shuffled tokens with f(X): whether the order makes no difference at all
        (invariance). Equivariant means that the output is shuffled along: `f(X)[..., p, :]`.
    """).by(sides=lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), f(X))),
    mistake("""f never sees shuffled tokens
        You compare f(X) with f(X) shuffled; both come from the tokens in their old order. One side
        has to be f of the shuffled tokens, `f(X[..., p, :])`.
    """).by(sides=lambda f, X, p, rng, shuffle: (shuffle(f(X), p), f(X))),
    mistake("""one side lacks f
        You compare f of the shuffled tokens with the shuffled tokens. Both sides are outputs of f:
        `f(X[..., p, :])` against `f(X)[..., p, :]`.
    """).by(sides=lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), shuffle(X, p))),
    mistake("""each side has an order of its own
        You draw one order for the tokens and another for the output. Draw p once: `f(X[..., p, :])`
        against `f(X)[..., p, :]`.""")
    .by(sides=each_its_own(lambda n, rng: rng.permutation(n)))
    .by(sides=each_its_own(chapter.random_order)),
    mistake("""the order is applied twice, not undone
        To bring the output back you index with p again. Its inverse is `np.argsort(p)`; simpler,
        leave the output as it is and compare with `f(X)[..., p, :]`.
    """).by(sides=lambda f, X, p, rng, shuffle: (shuffle(f(shuffle(X, p)), p), f(X))),
    mistake("""another axis than the tokens' is permuted
        `X[..., p]` shuffles features, `X[p]` and `len(X)` take the first axis, a batch's sequences.
        Tokens are second from the end: `n = X.shape[-2]`, `X[..., p, :]`.""")
    .by(length=len)
    .by(length=lambda X: X.shape[-1], shuffle=lambda X, p: X[..., p])
    .by(length=len, shuffle=lambda X, p: X[p])
    .by(length=lambda X: X.shape[1], shuffle=lambda X, p: X[:, p], draw=unchecked(8)),
    mistake("""only orders of one kind are tried
        You try the reversal, rotations or swaps alone, and what is alike under these passes: a
        centred window looks the same from both ends. Try several random permutations.""")
    .by(draw=lambda n, rng: [np.arange(n)[::-1]])
    .by(draw=lambda n, rng: [np.roll(np.arange(n), k) for k in range(1, n)])
    .by(draw=lambda n, rng: [np.r_[1, 0, 2:n]])
    .by(draw=lambda n, rng: [np.r_[:k, k + 1, k, k + 2 : n] for k in range((n - 1) // 2, n - 1)])
    .by(draw=lambda n, rng: [np.roll(np.arange(n), 1)]),
    mistake("""too few orders, or the identity among them
        You try one order, or `rng.permutation(n)` as it comes, which of two tokens every second
        time changes nothing. Try several, and draw again where none moves.""")
    .by(draw=unchecked(8))
    .by(draw=lambda n, rng: [chapter.random_order(n, rng)])
    .by_any(lambda count: {"draw": unchecked(count)}, (1, 3, 5, 10, 16)),
    mistake("""one order that passes is enough
        You say True as soon as f passes for one order. It has to pass for every one of them:
        `all`.""")
    .by(verdict=any)
    .by(verdict=lambda passed: any([*passed])),
    *numpy_mistakes.OF_ATOL,
    numpy_mistakes.ATOL_OF_ZERO,
    *numpy_mistakes.OF_TRUTH,
    mistake("""all differences are taken together
        You compare the mean of all differences with `atol`, in which a large one is lost, or their
        sum, which small ones exceed. Each entry may differ by that much.""")
    .by(close=lambda a, b, atol: np.abs(a - b).mean() <= atol)
    .by(close=lambda a, b, atol: ((a - b) ** 2).mean() <= atol)
    .by(close=lambda a, b, atol: np.linalg.norm(a - b) <= atol)
    .by(close=lambda a, b, atol: np.abs(a - b).sum() <= atol),
    mistake("""differences keep their sign
        A difference of −5 is below any tolerance, and in a sum it makes up for one of 5. Take
        `np.abs` of each difference first, and compare entry by entry.""")
    .by(close=lambda a, b, atol: a - b <= atol)
    .by(close=lambda a, b, atol: np.abs((a - b).sum(-2)) <= atol)
    .by(close=lambda a, b, atol: abs((a - b).sum()) <= atol),
    mistake("""the rows are compared in any order
        You sort both sides before you compare them. Their order is the point: compare row by row.
    """).by(close=lambda a, b, atol: within(np.sort(a, axis=-2), np.sort(b, axis=-2), atol)),
    mistake("""not every entry is compared
        You compare one row or one feature of both sides, or let `any` entry that agrees decide.
        Every entry has to agree: `all`.""")
    .by(close=lambda a, b, atol: within(a[..., 0, :], b[..., 0, :], atol))
    .by(close=lambda a, b, atol: within(a[..., -1, :], b[..., -1, :], atol))
    .by(close=lambda a, b, atol: within(a[..., 0], b[..., 0], atol))
    .by(gather=np.any),
    mistake("""the generator is not used
        You draw the orders from a generator of your own, also where one is handed over. Draw from
        `rng`: who hands it over can then repeat the trial.""")
    .by(generator=lambda rng: np.random.default_rng())
    .by(generator=lambda rng: np.random.default_rng(0)),
    mistake("""rng=None is not provided for
        Without a generator your function calls a method of None. Make one where none is given: `rng
        = np.random.default_rng() if rng is None else rng`.""").by(generator=lambda rng: rng),
)

# --- exercises -------------------------------------------------------------------------------

ATTENTION_WEIGHTS = exercise(
    chapter.attention_weights,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=criteria_of_tokens("row i is the softmax of token i's scores"),
    mistakes=made(weigh, *OF_SELF_ATTENTION, *OF_THE_WEIGHTS_ALONE),
)

SELF_ATTENTION = exercise(
    chapter.self_attention,
    section="Chapter 4, “Every token asks”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=criteria_of_tokens("mixes the tokens by their own weights"),
    mistakes=made(attend, *OF_SELF_ATTENTION, *OF_THE_MIXTURE),
)

IS_PERMUTATION_EQUIVARIANT = exercise(
    chapter.is_permutation_equivariant,
    section="Chapter 4, “Shuffle the sentence”",
    difficulty=2,
    minutes=15,
    criteria=(
        Criterion("tells equivariant functions from others", 3).on(TELLS_APART),
        Criterion(
            "not fooled by symmetric functions, orders that change nothing, or a single order", 1
        ).on(lambda rng: [*NOT_FOOLED(rng), COUNTED]),
        Criterion("the orders are drawn from rng", 1).on(lambda rng: [DRAWN]),
        Criterion("equal up to atol", 1).on(UP_TO_ATOL),
        Criterion("batches, whole numbers, float32", 1).on(KINDS),
        unchanged(),
    ),
    excludes=(("n of 1", "There are at least two tokens."),),
    mistakes=made(equivariance, *OF_EQUIVARIANCE),
)

EXERCISES = (ATTENTION_WEIGHTS, SELF_ATTENTION, IS_PERMUTATION_EQUIVARIANT)

TURNED = "features listen to each other, not tokens"
VARIANTS = (
    Variant(
        "columns",
        "The tokens are **columns** of `X` here, shape `(d, n)` or `(..., d, n)`, where in the "
        "book they are rows. The weights are as in the book: row i of `A` belongs to token i.",
        "tokens are columns here",
        "Your answer takes a token for a row of X, as the book and its published answers do. In "
        "this assignment every column of X, shape (d, n), is a token: the scores are `X.T @ X`, "
        "with the last two axes exchanged for a batch.",
        {
            "attention_weights": Adapter(
                {"X": COLUMNS}, drops=("features are compared, not tokens",)
            ),
            "self_attention": Adapter({"X": COLUMNS}, COLUMNS, drops=(TURNED,)),
        },
        rewordings(r"""
            $$S = X X^\top, \qquad A_{ij} → $$S = X^\top X, \qquad A_{ij}
            | `X` | `(..., n, d)` | one row per token |
            → | `X` | `(..., d, n)` | one column per token |
            | returns | `(..., n, d)` | one new vector → | returns | `(..., d, n)` | one new vector
            A token is a row of `X`, shape `(n, d)`. Row i
            → In exercises 1 and 2 a token is a column of `X`, shape `(d, n)`, in exercise 3 a row.
                Row i
            Two tokens with the scores → Two tokens, (1, 0) and (2, 1), with the scores
            attention_weights(np.array([[1.0, 0.0], [2.0, 1.0]]))
            → attention_weights(np.array([[1.0, 2.0], [0.0, 1.0]]))
            self_attention(np.array([[1.0, 0.0], [2.0, 1.0]]))
            → self_attention(np.array([[1.0, 2.0], [0.0, 1.0]]))
            Expect `[[1.731 0.731] [1.953 0.953]]` → Expect `[[1.731 1.953] [0.731 0.953]]`
            $$U_i = \sum_j A_{ij} X_j , \qquad A = \operatorname{softmax}(X X^\top) .$$
            → $$U_i = \sum_j A_{ij} X_j , \qquad A = \operatorname{softmax}(X^\top X) ,$$⏎⏎where
                $X_j$ is column j of X, and $U_i$ column i of what is returned.
            dot product of the rows as they are → dot product of the columns as they are
            `A @ X`, the tokens mixed by them, shape (n, d)
            → `X @ A.T`, the tokens mixed by them, shape (d, n)
            or you return `Aᵀ X`, the same → or you return `X @ A`, the same
            then `A @ X`: row i is what token i hears
            → then `X @ A.T`: column i is what token i hears
            dot products between rows of X → dot products between columns of X
            `X @ np.swapaxes(X, -1, -2)`: for one sequence simply `X @ X.T`
            → `np.swapaxes(X, -1, -2) @ X`: for one sequence simply `X.T @ X`
            You return `A @ X`, shape (n, d), which → You return `X @ A.T`, shape (d, n), which
            You return `X + A @ X` → You return `X + X @ A.T`
            Every token has a row of its own → Every token has a column of its own
            You add all rows up into one → You add all columns up into one
            `A` is (n, n) and `X` is (n, d). There is one product of the two, in one order, that has
                shape (n, d)
            → `A` is (n, n) and `X` is (d, n). `A` or its transpose, on the right of `X`: one of
                these has shape (d, n)
        """),
    ),
)
