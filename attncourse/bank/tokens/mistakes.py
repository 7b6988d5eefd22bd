"""Decisions and mistakes that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.writing.numpy_mistakes import refuse_if, result
from attncourse.checks.writing.recipes import mistake


def any_outside(ids, n):
    return ((ids < 0) | (ids >= n)).any()


def none_outside(ids, n):
    return False


def look_up_by_comparison(ids, table):
    """Return the table's rows; a vector of zeros where no row has the id."""
    return (ids[..., None] == np.arange(len(table))).astype(float) @ table


def row_picker(
    refuse=any_outside, place=lambda ids, n: ids, take=lambda ids, table: table[ids], finish=result
):
    """Return what gives a row of a table for each id, made of decisions."""

    def rows(ids, table, n):
        refuse_if(refuse(ids, n))
        return finish(take(place(ids, n), table), ids)

    return rows


OF_IDS = (
    mistake("""ids are counted from 1
        You take row or column `id − 1`. Ids count from 0, as rows and columns do: id 2 is the
        third.""")
    .by(place=lambda ids, n: ids - 1)
    .by(place=lambda ids, n: ids - 1, take=look_up_by_comparison),
    mistake("""each token only once
        You return one row for each token that occurs, in the order of the vocabulary. A token that
        occurs twice has two rows, in the order of the text.
    """).by(place=lambda ids, n: np.unique(ids)),
    mistake("""ids are not checked
        NumPy takes −1 for the last token and raises IndexError for an id that is too large. First
        raise `ValueError` if `((ids < 0) | (ids >= n_vocab)).any()`.""").by(refuse=none_outside),
    mistake("""only one end of the range is checked
        You refuse negative ids or large ones, not both. Raise `ValueError` if `((ids < 0) | (ids >=
        n_vocab)).any()`.""")
    .by(refuse=lambda ids, n_vocab: (ids >= n_vocab).any())
    .by(refuse=lambda ids, n_vocab: (ids < 0).any())
    .by(refuse=lambda ids, n_vocab: (ids > n_vocab).any()),
    mistake("""n_vocab itself passes
        You refuse ids above n_vocab. They count from 0, so the last one is n_vocab − 1: raise
        `ValueError` if `((ids < 0) | (ids >= n_vocab)).any()`.
    """).by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids > n_vocab)).any()),
    mistake("""a wrong id beside right ones passes
        You look at the first id alone, ask whether `all` are out of range, or whether some are too
        low `and` some too high. One wrong id anywhere is to raise `ValueError`: `((ids < 0) | (ids
        >= n_vocab)).any()`.""")
    .by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab)).all())
    .by(refuse=lambda ids, n_vocab: (ids < 0).all() or (ids >= n_vocab).all())
    .by(refuse=lambda ids, n_vocab: (ids < 0).any() and (ids >= n_vocab).any())
    .by(refuse=lambda ids, n_vocab: any_outside(ids[..., :1], n_vocab))
    .by(
        refuse=lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab)).all(), take=look_up_by_comparison
    ),
    mistake("""an id that exists is refused
        You refuse id 0 or id n_vocab − 1. Both exist: wrong is an id where `(ids < 0) | (ids >=
        n_vocab)`.""")
    .by(refuse=lambda ids, n_vocab: ((ids < 0) | (ids >= n_vocab - 1)).any())
    .by_any(
        lambda off: {"refuse": lambda ids, n: ((ids < off[0]) | (ids >= n - off[1])).any()},
        ((1, 0), (1, 1)),
    ),
    mistake("""an id out of range gets a row all the same
        You give an id that does not exist a row of zeros, the row of the nearest token or that of
        another. A wrong id is a mistake made earlier: raise `ValueError`.""")
    .by(refuse=none_outside, take=look_up_by_comparison)
    .by(refuse=lambda ids, n_vocab: (ids < 0).any(), take=look_up_by_comparison)
    .by(refuse=lambda ids, n_vocab: (ids >= n_vocab).any(), take=look_up_by_comparison)
    .by(refuse=none_outside, place=lambda ids, n: np.clip(ids, 0, n - 1))
    .by(refuse=none_outside, place=lambda ids, n: ids % n),
)


def flatten_axes(rows, ids):
    return rows.reshape(-1, rows.shape[-1])
