"""The exercise ``normalize_rows``: rows divided by their sums."""

import numpy as np

from attncourse import mixing
from attncourse.bank.mixing.shared import case_of_matrix
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import CaseTable, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, over, refuse_if
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"A": "... m n"}, tensors=False, how=lambda rng, shape: rng.uniform(1, 9, shape))
ROWS = standard(CASES)
BY_HAND = case_of_matrix([1.0, 3.0, 0.0], [2.0, 2.0, 4.0], [0.0, 5.0, 0.0])

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_normalize_rows(
    refuse=lambda A: (A < 0).any(), prepare=lambda A: A, measure=np.sum, along=EACH_ROW, divide=over
):
    """Return ``normalize_rows`` made of decisions."""

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
        You divide by the sum whatever comes in, or mend what is negative first. One entry below 0
        is a mistake made earlier: raise `ValueError` where `(A < 0).any()`.""")
    .by(refuse=lambda A: False)
    .by(refuse=lambda A: False, prepare=lambda A: np.maximum(A, 0))
    .by(refuse=lambda A: False, prepare=np.abs),
    mistake("""the sums are looked at, not the entries
        You refuse a negative sum. With larger entries beside it a negative one is in a sum above 0:
        raise `ValueError` where any entry is below 0, `(A < 0).any()`.
    """).by(refuse=lambda A: (A.sum(-1) < 0).any()),
    mistake("""only what is negative throughout is refused
        You ask whether `all` entries are below 0. One is enough for `ValueError`: `(A <
        0).any()`.""")
    .by(refuse=lambda A: (A < 0).all())
    .by(refuse=lambda A: (A < 0).all(-1).any()),
    mistake("""entries a little below 0 are accepted
        You let pass what lies just below 0. An amount is 0 or more, without a tolerance: raise
        `ValueError` where `(A < 0).any()`.""").by(refuse=lambda A: (A < -1e-3).any()),
    mistake("""zeros are refused
        You refuse 0 as well. It is an amount like any other: test `A < 0`.
    """).by(refuse=lambda A: (A <= 0).any()),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    mixing.normalize_rows,
    section="Chapter 2, “Two constraints make it a mixture”",
    difficulty=2,
    minutes=10,
    picture=True,
    criteria=(
        CASES.criterion("every row sums to 1, in the old proportions", 3).on(
            BY_HAND, *map(row, ("m=5 n=5", "m=5 n=3", "m=3 n=7"))
        ),
        CASES.criterion("a row of zeros stays zero", 1).on(
            case_of_matrix(
                [1.0, 3.0, 4.0], [0.0, 0.0, 0.0], [2.0, 2.0, 6.0], note="one row of zeros"
            ),
            Case((np.zeros((2, 3)),), note="zeros everywhere"),
        ),
        CASES.criterion("batches, a single row or column, memory layout, float32", 1).on(
            *ROWS.batches,
            row("m=1 n=7", note="one row"),
            row("m=3 n=1", note="one column"),
            row("m=3 n=5", turned=True, note="not contiguous"),
            ROWS.single,
            *ROWS.integers,
            row("m=5 n=3", factor=1e6, note="large entries"),
            row("m=3 n=5", factor=1e-3, note="small entries"),
            case_of_matrix([0.001, 0.0015, 0.0], [1.0, 2.0, 5.0], note="one small row"),
            once_more(BY_HAND),
        ),
        CASES.criterion("refuses a negative entry with ValueError", 1).on(
            case_of_matrix([1.0, 2.0], [3.0, -0.5], note="a negative entry", raises=ValueError),
            case_of_matrix([1.0, 2.0], [0.5, -3.0], note="a negative sum", raises=ValueError),
            case_of_matrix([-1.0, -2.0], note="no entry above 0", raises=ValueError),
            case_of_matrix([1.0, 2.0], [3.0, -1e-6], note="an entry of −1e-6", raises=ValueError),
        ),
        unchanged(),
    ),
    excludes=(
        ("entries that cancel", "No entry is below 0."),
        ("a row of very small numbers", "A row that is not zero sums to 0.001 or more."),
    ),
    mistakes=made(compose_normalize_rows, *OF_NORMALIZING),
)
