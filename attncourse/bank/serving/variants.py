"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import forbidden
from attncourse.checks.variants.rewriting import LAST_NEGATED

VARIANTS = (
    forbidden(
        {"pad_left": Adapter(result=LAST_NEGATED, drops=("the mask is inverted",))},
        """
            True where query i may attend to key j → True where query i may not attend to key j
            so the rows of padding are False throughout → so the rows of padding are True throughout
            and a single `True` → and a single `False`
            `causal_mask(n) & real[:, None, :]` → `~(causal_mask(n) & real[:, None, :])`
            Columns of padding are False: `causal & real[:, None, :]`
            → Columns of padding are True: `~(causal & real[:, None, :])`
            Rows of padding are False throughout → Rows of padding are True throughout
            Your diagonal is False → Your diagonal is True
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden.",
    ),
)
