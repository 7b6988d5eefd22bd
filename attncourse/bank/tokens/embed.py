"""The exercise ``embed``: the table's rows that ids name."""

import numpy as np

from attncourse import tokens
from attncourse.bank.tokens.cases import EMBED_CASES, EMBED_ROWS, id_range_criterion
from attncourse.bank.tokens.mistakes import OF_IDS, flatten_axes, row_picker
from attncourse.checks.exercise import Case, Criterion, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import once_more, row
from attncourse.checks.writing.numpy_mistakes import EACH_ROW, over
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

SMALL_TABLE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
BY_HAND = Case((np.array([2, 0, 2]), SMALL_TABLE))
SIZE_CASES = EMBED_CASES(
    row("n=1 v=5 d=3", note="n = 1"),
    row("n=5 v=7 d=1", note="d = 1"),
    row("n=5 v=7 d=7", note="a square table"),
    row("n=5 v=7 d=3", turned=True, note="not contiguous in memory"),
)
NUMBER_CASES = EMBED_CASES(
    *EMBED_ROWS.numbers,
    row("n=5 v=7 d=3", zero=("table",), note="a table of 0"),
    once_more(BY_HAND),
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_embed(size=len, **decisions):
    """Return ``embed`` made of decisions."""
    rows = row_picker(**decisions)
    return lambda ids, table: rows(ids, table, size(table))


def zero_row_0_in_place(ids, table):
    table[0] = 0
    return table[ids]


OF_EMBED = (
    mistake("""the axes of the ids run together
        You put the vectors of all sequences below each other, or the vectors of a sequence in one
        row, or return the first sequence alone. The axes of `ids` stay, and that of the features
        comes behind them: `(..., n, d)`.""")
    .by(finish=flatten_axes)
    .by(finish=lambda X, ids: X.reshape(*ids.shape[:-1], -1))
    .by(finish=lambda X, ids: X if ids.ndim == 1 else X[0]),
    mistake("""something is done to the vectors
        You take a mean off the table, or add running sums or positions. `embed` is the lookup
        alone: the rows come as they stand in the table.""")
    .by(take=lambda ids, table: (table - table.mean(0))[ids])
    .by(take=lambda ids, table: (table - table.mean(-1, keepdims=True))[ids])
    .by(finish=lambda X, ids: X.cumsum(-2))
    .by(finish=lambda X, ids: X + np.arange(X.shape[-2])[:, None]),
    mistake("""cut to whole numbers
        You write the vectors into an array of whole numbers, say one of the dtype of `ids`. It has
        the dtype of the table: `table[ids]` has it by itself.""").by(
        finish=lambda X, ids: X.astype(ids.dtype)
    ),
    mistake("""the vectors are divided by their lengths
        You give every vector the length 1. `embed` is the lookup alone: rows come as they are.
    """).by(finish=lambda X, ids: over(X, np.linalg.norm(X, **EACH_ROW))),
    mistake("""multiplied by √d
        You multiply the vectors by √d, as the first Transformer does after its lookup. `embed` is
        the lookup alone.""").by(finish=lambda X, ids: X * X.shape[-1] ** 0.5),
    mistake("""columns of the table are taken
        You pick columns, which are features, or single numbers: `table[:, ids]`, `table.T[ids]`,
        `np.take` without `axis=0`. The vectors are the rows: `table[ids]`.""")
    .by(take=lambda ids, table: table[:, ids])
    .by(take=lambda ids, table: table.T[ids])
    .by(take=lambda ids, table: np.take(table, ids)),
    mistake("""id 0 is taken for padding
        You clear row 0, or leave the vector of id 0 empty. Here id 0 is an ordinary token, its
        vector is row 0, and the table belongs to the caller.""")
    .by(take=lambda ids, table: table[ids] * (ids != 0)[..., None])
    .by(take=zero_row_0_in_place),
    mistake("""the range is checked against d
        You compare the ids with the number of columns. There are as many ids as the table has rows:
        `len(table)`, which is `table.shape[0]`.""").by(size=lambda table: table.shape[-1]),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    tokens.embed,
    section="Chapter 1, “From ids to vectors”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(
        EMBED_CASES.criterion("row i is row ids[i] of the table", 3).on(
            BY_HAND, row("n=5 v=7 d=3"), row("n=7 v=5 d=11")
        ),
        Criterion("any number of ids, tokens and features", 1).on(SIZE_CASES),
        EMBED_CASES.criterion("batches", 1).on(*EMBED_ROWS.batches),
        Criterion("large and small entries, whole numbers, float32", 1).on(NUMBER_CASES),
        id_range_criterion(SMALL_TABLE),
        unchanged(),
    ),
    mistakes=made(
        compose_embed,
        *OF_EMBED,
        *(s.naming(n_vocab="len(table)") for s in OF_IDS),
        *numpy_mistakes.OF_RESULTS,
    ),
)
