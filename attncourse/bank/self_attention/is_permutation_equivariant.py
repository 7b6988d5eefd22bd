"""The exercise ``is_permutation_equivariant``: whether a function minds the order of the tokens."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attncourse import self_attention as chapter
from attncourse.bank.self_attention.cases import ROWS, TOKENS
from attncourse.checks.callers import orders_tried, same_orders, several_orders
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import Drawn, Row, once_more, row
from attncourse.checks.writing.numpy_mistakes import within
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


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


def trial_cases(*trials: tuple[str, Row | Case]) -> Callable[[Rng], list[Case]]:
    """Return what makes cases of the exercise, each noting what its function does."""
    return lambda rng: [
        trial(name, case_or_row if isinstance(case_or_row, Case) else TOKENS.case(rng, case_or_row))
        for name, case_or_row in trials
    ]


def trial(name: str, case: Case) -> Case:
    function_text, function = FUNCTIONS[name]

    def f(X):  # the function's own name would say what it is
        return function(X)

    options = "".join(f", {k}={v if k == 'atol' else '…'}" for k, v in case.kwargs.items())
    return replace(
        case,
        args=(f, *case.args),
        note="; ".join(filter(None, (f"{name}: {function_text}", case.note))),
        shown=f"is_permutation_equivariant({name}, X{options})",
    )


def row_with_generator(tokens: int, seed: int, note: str) -> Row:
    """Return a row of tokens with a generator whose first orders are special."""
    arguments = {"rng": np.random.default_rng(seed)}
    return row(f"n={tokens} d=3", arguments=arguments, note=f"a generator {note}")


# What ``rng.permutation`` draws first with these seeds is held by a test.
ORDERS_AS_THEY_ARE = row_with_generator(2, 39449, "that begins with orders that change nothing")
ROTATION_FIRST = row_with_generator(5, 59, "whose first order is a rotation")
ROTATION_SECOND = row_with_generator(5, 142, "whose second order is a rotation")
SWAPS_FIRST = row_with_generator(3, 1338, "that begins with swaps of two")

SEVEN_TOKENS, FIVE_TOKENS = row("n=7 d=3"), row("n=5 d=3")
# With fewer tokens, many an order would be its own inverse, or leave the first in its place.
FIVE_BY_HAND = Case((np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [3.0, 1.0], [2.0, 5.0]]),))
# So many that hardly an order leaves the first in its place.
FALLING_TOKENS = Case((np.arange(202.0)[::-1].reshape(101, 2),))
RISING_TOKENS = Case((np.arange(14.0).reshape(7, 2),))


def spaced_tokens(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return tokens whose features lie ten apart, in any order."""
    return 10.0 * rng.permuted(np.indices(shape)[0], axis=0)


TOKENS_FROM_1_TO_2 = {"X": Drawn("n d", lambda rng, shape: rng.uniform(1, 2, shape))}
PLAIN_CASES = trial_cases(
    ("scaled_features", FIVE_BY_HAND),
    ("numbered", SEVEN_TOKENS),
    ("unchanged", SEVEN_TOKENS),
    ("mixed_by_scores", SEVEN_TOKENS.but("n=2", note="two tokens")),
    ("mean_everywhere", SEVEN_TOKENS.but("d=5")),
    ("first_everywhere", FALLING_TOKENS),
    ("sorted_features", SEVEN_TOKENS),
    ("numbered_in_one_feature", SEVEN_TOKENS.but("d=7")),
)
TRICKY_CASES = trial_cases(
    ("window_mean", SEVEN_TOKENS),
    ("ring_mean", SEVEN_TOKENS),
    ("prefix_mean", SEVEN_TOKENS),
    ("numbered", ORDERS_AS_THEY_ARE),
    ("middle_sorted", RISING_TOKENS),
    ("ring_mean", ROTATION_FIRST),
    ("ring_mean", ROTATION_SECOND),
    ("scaled_features", SWAPS_FIRST),
)
TOLERANCE_CASES = trial_cases(
    ("with_rounding", FIVE_TOKENS.but(note="inside the default tolerance")),
    ("with_rounding", FIVE_TOKENS.but(arguments={"atol": 0.0})),
    ("scaled_features", FIVE_TOKENS.but(arguments={"atol": 0.0})),
    ("drifting", FIVE_TOKENS.but(note="outside the default tolerance")),
    ("drifting", FIVE_TOKENS.but(arguments={"atol": 5e-3})),
    ("first_raised", row("n=101 d=3", arguments={"X": Drawn("n d", spaced_tokens), "atol": 0.5})),
    (
        "numbered",
        FIVE_TOKENS.but(factor=1e7, arguments=TOKENS_FROM_1_TO_2, note="tokens in the millions"),
    ),
    ("weighted", FIVE_TOKENS.but(factor=5e-7, cancel=True, note="small tokens that cancel")),
)
DRAWN_ORDERS = Case(
    (np.arange(34.0).reshape(17, 2), (3, 5)),
    use=orders_tried,
    facts=same_orders,
    shown="is_permutation_equivariant(f, X, rng) with equal generators, and with others",
)
COUNTED_ORDERS = replace(
    DRAWN_ORDERS,
    facts=several_orders,
    shown="is_permutation_equivariant(f, X, rng), counting the orders that f is given",
)
# What is false is so for many tokens: of few, one random order may change nothing.
BATCH_FUNCTIONS = (
    "causal_mean",
    "scaled_features",
    "numbered",
    "mixed_by_scores",
    "mixed_by_scores",
)
CASES_OF_TYPES = trial_cases(
    *zip(BATCH_FUNCTIONS, ROWS.batches, strict=True),
    ("scaled_features", ROWS.integers[0]),
    ("scaled_features", ROWS.single),
    ("scaled_features", once_more(FIVE_BY_HAND)),
)

# --- decisions and mistakes ----------------------------------------------------------------------


def any_orders(count: int):
    """Return a ``draw`` of orders as they come."""
    return lambda n, rng: [rng.permutation(n) for _ in range(count)]


def shuffle_output_anew(draw):
    """Return the ``sides`` in which the output is shuffled in an order of its own."""
    return lambda f, X, p, rng, shuffle: (f(shuffle(X, p)), shuffle(f(X), draw(len(p), rng)))


@composition
def compose_is_permutation_equivariant(
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
    """Return a test of equivariance made of decisions: which orders, what is compared, and how."""

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
    .by(sides=shuffle_output_anew(lambda n, rng: rng.permutation(n)))
    .by(sides=shuffle_output_anew(chapter.random_order)),
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
    .by(length=lambda X: X.shape[1], shuffle=lambda X, p: X[:, p], draw=any_orders(8)),
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
    .by(draw=any_orders(8))
    .by(draw=lambda n, rng: [chapter.random_order(n, rng)])
    .by_any(lambda count: {"draw": any_orders(count)}, (1, 3, 5, 10, 16)),
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

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    chapter.is_permutation_equivariant,
    section="Chapter 4, “Shuffle the sentence”",
    difficulty=2,
    minutes=15,
    criteria=(
        Criterion("tells equivariant functions from others", 3).on(PLAIN_CASES),
        Criterion(
            "not fooled by symmetric functions, orders that change nothing, or a single order", 1
        ).on(lambda rng: [*TRICKY_CASES(rng), COUNTED_ORDERS]),
        Criterion("the orders are drawn from rng", 1).on(lambda rng: [DRAWN_ORDERS]),
        Criterion("equal up to atol", 1).on(TOLERANCE_CASES),
        Criterion("batches, whole numbers, float32", 1).on(CASES_OF_TYPES),
        unchanged(),
    ),
    excludes=(("n of 1", "There are at least two tokens."),),
    mistakes=made(compose_is_permutation_equivariant, *OF_EQUIVARIANCE),
)
