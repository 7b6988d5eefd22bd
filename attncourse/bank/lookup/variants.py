"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import COLUMNS
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "columns",
        "The keys are **columns** here, one each: `keys` has the shape `(d, n)`, or `(..., d, n)`, "
        "where in the book they are rows. Values are as in the book.",
        "keys are columns here",
        "Your answer takes a key for a row, as the book and its published answers do. In this "
        "assignment every column of `keys`, shape (d, n), is a key: `query @ keys` has the scores.",
        {"soft_lookup": Adapter({"keys": COLUMNS})},
        rewordings("""
            | `(d,)` | `(n, d)` | → | `(d,)` | `(d, n)` |
            | `(m, d)` | `(n, d)` | → | `(m, d)` | `(d, n)` |
            `(..., n, d)` or `(n, d)` | `(..., n, d_v)`
            → `(..., d, n)` or `(d, n)` | `(..., n, d_v)`
            np.array([[0.0, 2.0], [np.log(3), 5.0]]) → np.array([[0.0, np.log(3)], [2.0, 5.0]])
            `query @ np.swapaxes(keys, -1, -2)` → `query @ keys`
            `keys.T` reverses all axes, the batch's too, and `np.dot` → `np.dot`
            `keys @ query.T` has a row for each key → `(query @ keys).T` has a row for each key
            and `query * keys` pairs → and `query * keys.T` pairs
        """),
    ),
)
