"""The exercise ``one_hot``: ids as rows that hold a single 1."""

import numpy as np

from attncourse import tokens
from attncourse.bank.tokens.cases import EMBED_ROWS, IdTable, id_range_criterion
from attncourse.bank.tokens.mistakes import OF_IDS, flatten_axes, row_picker
from attncourse.checks.callers import dtype_of
from attncourse.checks.exercise import Case, Criterion, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing.cases import Count, once_more, row
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = IdTable({"ids": "... n", "n_vocab": Count("v")}, tensors=False)
BY_HAND = Case((np.array([2, 0, 2]), 4))
DTYPE_CASE = Case((np.array([2, 0, 5]), 7), use=dtype_of, shown="one_hot(ids, n_vocab=7).dtype")
SIZE_CASES = CASES(
    row("n=1 v=5", note="n = 1"),
    row("n=3 v=1", note="a vocabulary of one token"),
    Case((np.array([3, 0, 8, 3, 5]), 103), note="a vocabulary much larger than the ids in use"),
    Case((np.array([2, 6, 0], np.int32), 7), note="ids of dtype int32"),
    row("n=5 v=7", note="the sizes of an earlier call, other ids"),
    once_more(BY_HAND),
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_one_hot(width=lambda ids, n_vocab: n_vocab, dtype=float, **decisions):
    """Return ``one_hot`` made of decisions: rows of an identity matrix."""
    rows = row_picker(**decisions)
    return lambda ids, n_vocab: rows(ids, np.eye(width(ids, n_vocab)), n_vocab).astype(dtype)


OF_ONE_HOT = (
    mistake("""the axes of the ids run together
        You put the rows of all sequences below each other, or give each sequence one row. The axes
        of `ids` stay, and one more comes behind them: `(..., n, n_vocab)`.""")
    .by(finish=flatten_axes)
    .by(finish=lambda H, ids: H if ids.ndim == 1 else H.reshape(len(ids), -1, H.shape[-1]).max(1)),
    mistake("""more than one entry of a row is not 0
        Your rows hold other numbers beside the 1: ones up to the id, −1, or a small share. All
        entries but the id's are 0.""")
    .by(finish=lambda H, ids: H[..., ::-1].cumsum(-1)[..., ::-1])
    .by(finish=lambda H, ids: H.cumsum(-1))
    .by(finish=lambda H, ids: 2 * H - 1)
    .by(finish=lambda H, ids: 0.9 * H + 0.1 / H.shape[-1]),
    mistake("""the id is written in place of 1
        Your rows hold the id itself in the id's column, and nothing at all for id 0. An id is a
        name, not a quantity: the entry is 1.""").by(finish=lambda H, ids: H * ids[..., None]),
    mistake("""one row for the whole text
        You put the ones of all ids into a single row, or into every row: which tokens occur, or how
        often, with the order lost. Return one row for each id, with a single 1.""")
    .by(finish=lambda H, ids: 0 * H + H.reshape(-1, H.shape[-1]).max(0))
    .by(finish=lambda H, ids: 0 * H + H.max(-2, keepdims=True))
    .by(finish=lambda H, ids: H.max(-2))
    .by(finish=lambda H, ids: H.sum(-2))
    .by(finish=lambda H, ids: H.reshape(-1, H.shape[-1]).max(0)),
    mistake("""another width than n_vocab
        Your matrix has as many columns as there are ids, as the largest id needs, or one too many.
        There is a column for each token, n_vocab of them, whatever the text.""")
    .by(width=lambda ids, n_vocab: ids.max() + 1)
    .by(width=lambda ids, n_vocab: ids.shape[-1])
    .by(width=lambda ids, n_vocab: len(ids))
    .by(width=lambda ids, n_vocab: n_vocab + 1),
    mistake("""another dtype than float64
        Your entries are whole numbers, truth values or have fewer digits. The row goes into
        products with weights: make it float64, as `np.zeros` and `np.eye` do by themselves.""")
    .by(dtype=int)
    .by(dtype="bool")
    .by(dtype="int8")
    .by(dtype="uint8")
    .by(dtype="int16")
    .by(dtype="int32")
    .by(dtype="uint64")
    .by(dtype="float32")
    .by(dtype="float16"),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    tokens.one_hot,
    section="Chapter 1, “From ids to vectors”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        CASES.criterion("one row for each id, with its 1 in the id's column", 3).on(
            BY_HAND, row("n=5 v=7"), row("n=7 v=5"), row("n=5 v=5")
        ),
        Criterion("any number of ids and tokens", 1).on(SIZE_CASES),
        CASES.criterion("batches", 1).on(*EMBED_ROWS.batches),
        CASES.criterion("the entries are float64", 1).on(DTYPE_CASE),
        id_range_criterion(4),
        unchanged(),
    ),
    mistakes=made(compose_one_hot, *OF_IDS, *OF_ONE_HOT, numpy_mistakes.TRANSPOSED),
)
