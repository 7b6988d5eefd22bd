"""The exercise ``is_row_stochastic``: whether a matrix holds mixing weights."""

import numpy as np

from attncourse import mixing
from attncourse.bank.mixing.shared import case_of_matrix
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import CaseTable, once_more, row, standard
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, within
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def exact_weights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return random weights whose rows sum to 1 without any rounding."""
    return rng.multinomial(4096, np.full(shape[-1], 1 / shape[-1]), shape[:-1]) / 4096


def case_off_by(by, note, **kwargs) -> Case:
    """Return a case of weights with one entry larger by a number."""
    return case_of_matrix([0.5, 0.25, 0.25], [0.125, 0.25, 0.625 + by], note=note, **kwargs)


WEIGHTS = CaseTable({"A": "... m n"}, tensors=False, how=exact_weights)
ROWS = standard(WEIGHTS)
BY_HAND = case_of_matrix([0.5, 0.5], [0.1, 0.9])
THREE_ROWS = np.array([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75], [0.5, 0.375, 0.125]])

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_is_row_stochastic(
    low=lambda A, atol: (A >= -atol).all(),
    total=np.sum,
    along=EACH_ROW,
    close=within,
    gather=np.all,
    tolerance=lambda atol: atol,
    finish=bool,
):
    """Return ``is_row_stochastic`` made of decisions."""

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
    .by(close=lambda sums, target, atol: True),
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
    .by(close=lambda sums, target, atol: sums - target <= atol)
    .by(close=lambda sums, target, atol: sums - target < atol)
    .by(close=lambda sums, target, atol: sums >= target - atol),
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

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    mixing.is_row_stochastic,
    section="Chapter 2, “Two constraints make it a mixture”",
    difficulty=2,
    minutes=10,
    criteria=(
        WEIGHTS.criterion("rows that sum to 1, and others", 2).on(
            BY_HAND,
            case_of_matrix([0.5, 0.1], [0.5, 0.9], note="its columns sum to 1"),
            Case((np.eye(3),), note="entries of 0 are allowed"),
            row("m=5 n=5"),
            Case((THREE_ROWS * [[1], [0.9], [1]],), note="one row sums to 0.9"),
            Case((THREE_ROWS * 1.3,), note="every row sums to 1.3"),
            Case((THREE_ROWS * [[1], [0.5], [0.5]],), note="the first row alone sums to 1"),
            Case((THREE_ROWS * [[1.2], [1], [1]],), note="the first row sums to 1.2"),
            case_of_matrix([1.5, 0.5], [0.25, 0.25], note="the rows sum to 2 and to 0.5"),
        ),
        WEIGHTS.criterion("negative entries", 1).on(
            case_of_matrix(
                [1.8, -0.8], [0.5, 0.5], note="the rows sum to 1, one entry is negative"
            ),
            case_of_matrix([0.5, 0.5], [1.8, -0.8], note="one entry of the second row is negative"),
            case_of_matrix([0.7, 0.2, 0.1], note="a row sum of 1 up to rounding"),
            case_of_matrix([0.5, -0.5, 0.0], note="entries that cancel"),
        ),
        WEIGHTS.criterion("the tolerance is absolute", 1).on(
            case_off_by(5e-9, "a row sum of 1 + 5e-9, inside the default tolerance"),
            case_off_by(1e-6, "a row sum of 1 + 1e-6, outside the default tolerance"),
            case_off_by(-1e-6, "a row sum of 1 − 1e-6, outside the default tolerance"),
            case_off_by(5e-4, "a row sum of 1 + 5e-4", atol=1e-3),
            case_off_by(1.5e-3, "a row sum of 1 + 1.5e-3", atol=1e-3),
            case_of_matrix([1 + 1.5e-3, -8e-4, -7e-4], note="an entry of 1 + 1.5e-3", atol=1e-3),
            case_off_by(5e-9, "a row sum of 1 + 5e-9", atol=1e-10),
            case_of_matrix([0.5, 0.5], [0.25, 0.75], atol=0, note="no tolerance"),
            case_off_by(5e-9, "a row sum of 1 + 5e-9", atol=0),
            case_of_matrix([1 + 5e-9, 0.0], [0.5, 0.5], note="an entry of 1 + 5e-9"),
            case_of_matrix([0.6, 0.4 + 5e-9, -5e-9], note="an entry of −5e-9"),
            case_of_matrix([1 + 1e-6, -1e-6], note="an entry of −1e-6"),
        ),
        WEIGHTS.criterion("batches and NaN", 1).on(
            *ROWS.batches,
            case_of_matrix(np.eye(3), np.eye(3), np.eye(3) / 2, note="a batch of 3"),
            case_of_matrix(np.eye(3), np.eye(3), note="a batch of 2 identities"),
            case_of_matrix([0.5, 0.5], [1.0, np.nan], note="NaN in one entry"),
            case_of_matrix([1.0], [1.0], note="one column"),
            case_of_matrix([0, 1], [1, 0], note="whole numbers"),
            Case((np.array([[0.5, 0.5], [0.25, 0.75]], np.float32),), note="float32"),
            *ROWS.extreme,
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=(
        *made(compose_is_row_stochastic, *OF_TESTING),
        mistake("""an answer for every row
            You return an array of truth values, one a row. The question is about the whole matrix:
            reduce with `.all()` and return one bool.
        """).whole(lambda A, atol=1e-8: (-atol <= A).all(-1) & (np.abs(A.sum(-1) - 1) <= atol)),
    ),
)
