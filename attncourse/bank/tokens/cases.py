"""Cases that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Rng
from attncourse.checks.writing.cases import CaseTable, Count, Drawn, Row, normal, standard


def random_ids(rng: Rng, shape: tuple[int, ...], n_vocab: int) -> np.ndarray:
    """Return ids in 0 … n_vocab − 1; the last, twice, and 0 are among several."""
    ids = rng.integers(1, max(n_vocab, 2), shape)
    flat = ids.reshape(-1)
    if flat.size > 3:
        flat[:3] = n_vocab - 1, 0, n_vocab - 1
    return np.minimum(ids, n_vocab - 1)


class IdTable(CaseTable):
    """A table of cases whose ``ids`` are below the row's length v."""

    def argument(self, rng: Rng, name: str, entry: str | Drawn | Count, row: Row):
        if name == "ids" and isinstance(entry, str):
            entry = Drawn(entry, lambda rng, shape: random_ids(rng, shape, row.sizes["v"]))
        return super().argument(rng, name, entry, row)


def id_range_criterion(rest) -> Criterion:
    """Return the criterion that ids out of range are refused; ``rest`` is the other argument."""
    notes = {
        "an id below 0": [1, -1, 0],
        "an id equal to n_vocab": [1, 4, 0],
        "an id above n_vocab": [9, 1, 0],
        "a second id above n_vocab": [1, 9, 0],
        "no id that exists": [-1, 7],
        "no id above 0": [-2, -1],
        "no id below n_vocab": [4, 9],
        "an id below 0 in the first of two sequences": [[0, -1], [1, 2]],
        "an id above n_vocab in the first of two sequences": [[9, 0], [1, 2]],
    }
    cases = [Case((np.array(ids), rest), note=n, raises=ValueError) for n, ids in notes.items()]
    return Criterion("refuses ids out of range with ValueError", 1).on(lambda rng: cases)


EMBED_CASES = IdTable({"ids": "... n", "table": "v d"}, tensors=False, how=normal)
EMBED_ROWS = standard(EMBED_CASES, large="table")
