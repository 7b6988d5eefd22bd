"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import forbidden, masked
from attncourse.checks.variants.rewriting import NEGATED

VARIANTS = (
    forbidden(
        {
            "sink_softmax": masked(),
            "select_keys": Adapter(
                {"mask": NEGATED},
                result=NEGATED,
                drops=("the mask is inverted", "True where a key is left out"),
            ),
        },
        """
            True means⏎allowed. → True means⏎forbidden.
            a mask with the chosen keys alone → a mask that forbids all keys but the chosen ones
            take these out again → take these out again. The mask is the opposite of all that
            2, causal_mask(3)).sum(-1) → 2, ~causal_mask(3)).logical_not().sum(-1)
            where the mask is True may be chosen → where the mask is False may be chosen
            True where a key is chosen → False where a key is chosen
            `chosen & mask` → `chosen & ~mask`
            You multiply the scores by the mask → You multiply the scores by `~mask`
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden, those that come in and "
        "those that go out.",
    ),
)
