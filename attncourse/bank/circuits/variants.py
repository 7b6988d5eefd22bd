"""The chapter's exercises in other conventions."""

from attncourse.bank.masking.variants import NEGATED_MASK
from attncourse.checks.variants.conventions import forbidden

VARIANTS = (
    forbidden(
        {"sink_mask": NEGATED_MASK},
        """
            True where query i may attend to key j → True where query i may not attend to key j
            Two masks, joined with `|`: the window, and the first columns below the diagonal
            → Two masks of what is allowed, joined with `|`: the window, and the first columns below
                the diagonal; then all of it negated, `~(… | …)`
            sink_mask(6, 2, 1).sum(-1) → (~sink_mask(6, 2, 1)).sum(-1)
            `window | first` → `~(window | first)`
            columns are True as well → columns are False as well
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden.",
    ),
)
