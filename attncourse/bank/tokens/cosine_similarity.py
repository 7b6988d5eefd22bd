"""The exercise ``cosine_similarity``: how alike the directions of vectors are."""

import numpy as np

from attncourse import tokens
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, dots, over, result
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def long_vectors(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return random directions of lengths 40 to 90, next to which a guard of 1e-8 is nothing."""
    X = rng.normal(size=shape)
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    return X * rng.uniform(40, 90, (*shape[:-1], 1))


def vectors_with_a_zero(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    X = long_vectors(rng, shape)
    X[..., 2, :] = 0
    return X


CASES = CaseTable({"X": "... n d", "Y": "... m d"}, tensors=False, how=long_vectors)
ROWS = standard(CASES)
ROW = row("n=5 m=7 d=3")
BY_HAND = Case(
    (np.array([[30.0, 40.0], [0.0, 50.0]]), np.array([[60.0, 80.0], [50.0, 0.0], [-40.0, 30.0]]))
)
SIZE_CASES = CASES(
    row("n=1 m=5 d=3", note="n = 1"),
    row("n=1 m=1 d=3", note="n = m = 1"),
    row("n=5 m=3 d=1", note="d = 1"),
    ROW.but(turned=True, note="not contiguous in memory"),
)
ZERO_CASES = CASES(
    Case((np.array([[30.0, 40.0], [0.0, 0.0]]),) * 2, note="the second vector is zero"),
    ROW.but(arguments={"X": Drawn("n d", vectors_with_a_zero)}, note="a 0 in X"),
    ROW.but(arguments={"Y": Drawn("m d", vectors_with_a_zero)}, note="a 0 in Y"),
)
NUMBER_CASES = CASES(
    ROWS.single,
    *ROWS.integers,
    ROW.but(factor={"X": 1e7, "Y": 1e3}, note="in the millions"),
    ROW.but(factor={"X": 1e-4}, note="short in X"),
    ROW.but(factor={"Y": 1e-4}, note="short in Y"),
    ROW.but(cancel=True, note="the entries of each add up to 0"),
    once_more(BY_HAND),
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_cosine_similarity(
    prepare=lambda X: X,
    measure=np.linalg.norm,
    along=EACH_ROW,
    divide=over,
    over_x=None,
    over_y=None,
    compare=dots,
    finish=result,
):
    """Return ``cosine_similarity`` made of decisions; ``divide`` is done to X and Y alike."""

    def cosine_similarity(X, Y):
        X, Y = prepare(X), prepare(Y)
        x = (over_x or divide)(X, measure(X, **along))
        return finish(compare(x, (over_y or divide)(Y, measure(Y, **along))), X, Y)

    return cosine_similarity


def keep_undivided(X, lengths):
    return X


def divide_by_paired_lengths(S, X, Y):
    """Return dot products over the products of the lengths, (n,) times (m,)."""
    return over(dots(X, Y), np.linalg.norm(X, axis=-1) * np.linalg.norm(Y, axis=-1))


GUARDS = (1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def length_with_guard(guard):
    return lambda X, **along: np.sqrt((X * X).sum(**along) + guard)


def products_of_lengths(X, Y):
    return dots(np.linalg.norm(X, **EACH_ROW), np.linalg.norm(Y, **EACH_ROW))


def divide_with_guard(guard):
    return lambda S, X, Y: dots(X, Y) / (products_of_lengths(X, Y) + guard)


def length_at_least(bound):
    return lambda X, **along: np.maximum(np.linalg.norm(X, **along), bound)


OF_COSINES = (
    numpy_mistakes.COLUMNS.by(along={"axis": 0, "keepdims": True}),
    numpy_mistakes.LOST_AXIS.called("the lengths lost their axis"),
    numpy_mistakes.WHOLE_MATRIX.called("one length for the whole matrix").said(
        "`np.linalg.norm(X)` without an axis is one number, the root of the sum of all squares. "
        "Each row has a length of its own: `axis=-1, keepdims=True`."
    ),
    numpy_mistakes.ZERO_BY_ZERO.by(over_x=np.divide).by(over_y=np.divide),
    numpy_mistakes.GUARD.by(
        *({"measure": length_with_guard(guard)} for guard in (1e-12, *GUARDS))
    ).by(*({"finish": divide_with_guard(guard)} for guard in GUARDS)),
    mistake("""short vectors are taken for longer ones, or for zero
        You divide by 1, or by some other bound, where a length is less, or return 0 there. A vector
        of length 0.001 counts like any other: only one of 0 gets another divisor.""")
    .by(measure=length_at_least(1.0))
    .by(divide=lambda X, lengths: over(X, lengths) * (lengths >= 0.1))
    .by(finish=lambda S, X, Y: dots(X, Y) / np.maximum(products_of_lengths(X, Y), 1))
    .by_any(lambda bound: {"measure": length_at_least(bound)}, Between(6e-3, 30.0)),
    mistake("""a vector whose entries cancel is taken for zero
        You ask whether the sum of the entries is 0, or their mean, and (1, −1) has that, too. A
        vector of zeros is one whose length is 0.
    """).by(divide=lambda X, lengths: over(X, lengths) * (X.sum(-1, keepdims=True) != 0)),
    mistake("""a vector of zeros has another similarity than 0
        You give a vector of zeros some other number, such as 1. It has no direction, so its
        similarity with everything is 0.
    """).by(finish=lambda S, X, Y: np.where(products_of_lengths(X, Y) == 0, 1, S)),
    mistake("""no similarity is negative
        You cut negative cosines off, drop their sign, square them or move them to 0 … 1. Vectors
        that point away from each other have a cosine below 0, down to −1.""")
    .by(finish=lambda S, X, Y: np.abs(S))
    .by(finish=lambda S, X, Y: np.maximum(S, 0))
    .by(finish=lambda S, X, Y: (S + 1) / 2)
    .by(finish=lambda S, X, Y: S**2),
    numpy_mistakes.CUT.by(divide=lambda X, lengths: over(X, lengths).astype(X.dtype)),
    numpy_mistakes.IN_PLACE,
    numpy_mistakes.TRANSPOSED,
    mistake("""the lengths are multiplied in pairs
        You multiply the lengths (n,) of X with the lengths (m,) of Y entry by entry. Entry [i, j]
        needs the length of X[i] and that of Y[j]: divide the rows of X and Y by theirs first.""")
    .by(finish=divide_by_paired_lengths)
    .by(
        finish=lambda S, X, Y: over(
            dots(X, Y),
            np.linalg.norm(X, axis=-1, keepdims=True) * np.linalg.norm(Y, axis=-1, keepdims=True),
        )
    ),
    mistake("""not divided by both lengths
        The cosine divides the dot product by the length of X[i] and by that of Y[j]. You leave one
        of them out, or both.""")
    .by(divide=keep_undivided)
    .by(over_x=keep_undivided)
    .by(over_y=keep_undivided),
    mistake("""another measure of length
        You measure a vector by its largest entry, a sum, a mean, or the sum of squares. Its length
        is the root of the sum of squares: `np.linalg.norm`.""")
    .by(measure=lambda X, **along: (X * X).sum(**along))
    .by_any(
        lambda measure: {"measure": lambda X, **along: measure(X, along)},
        (
            lambda X, along: np.abs(X).sum(**along),
            lambda X, along: np.sqrt((X * X).mean(**along)),
            lambda X, along: np.abs(X).max(**along),
            lambda X, along: X.max(**along),
            lambda X, along: X.sum(**along),
        ),
    ),
    mistake("""Y is not transposed
        `X @ Y` sums over the columns of X and the rows of Y. A dot product runs over the features
        of both, so Y has to be turned: `X @ np.swapaxes(Y, -1, -2)`.
    """).by(compare=lambda x, y: x @ y),
    mistake("""only row i with row i
        You compare each row of X with the row of Y of the same number. The result has an entry for
        every pair, shape (n, m): a matrix product, X Yᵀ.
    """).by(compare=lambda x, y: (x * y).sum(-1)),
    mistake("""the mean is subtracted first
        You centre every vector before comparing. That is the correlation coefficient; the cosine
        takes the vectors as they are.""").by(prepare=lambda X: X - X.mean(-1, keepdims=True)),
    mistake("""a distance, not a similarity
        You return 1 − cosine or Euclidean distances, 0 for what is alike. The cosine itself is
        asked for: 1 for the same direction, whatever the lengths.""")
    .by(finish=lambda S, X, Y: 1 - S)
    .by(finish=lambda S, X, Y: np.linalg.norm(X[..., :, None, :] - Y[..., None, :, :], axis=-1)),
    mistake("""the angle, not its cosine
        You return the angle. The cosine is wanted, which needs no arccos at all.""")
    .by(finish=lambda S, X, Y: np.arccos(np.clip(S, -1, 1)))
    .by(finish=lambda S, X, Y: np.degrees(np.arccos(np.clip(S, -1, 1)))),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    tokens.cosine_similarity,
    section="Chapter 1, “How alike are two vectors?”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        CASES.criterion("the cosine between every row of X and every row of Y", 3).on(
            BY_HAND,
            row("n=7 m=5 d=3"),
            row("n=5 m=5 d=5", note="as many vectors as entries in each"),
        ),
        Criterion("any number of vectors and features", 1).on(SIZE_CASES),
        Criterion("a zero vector has similarity 0 with everything", 1).on(ZERO_CASES),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        Criterion("large and short vectors, whole numbers, float32", 1).on(NUMBER_CASES),
        unchanged(),
    ),
    excludes=(("a row of very small numbers", "Vectors that are not 0 are at least 0.001 long."),),
    mistakes=made(compose_cosine_similarity, *OF_COSINES),
)
