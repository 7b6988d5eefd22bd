"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import columns, forbidden, masked, with_columns
from attncourse.checks.variants.rewriting import NEGATED

VARIANTS = (
    columns(
        {
            "EncoderBlock": with_columns("x", methods=("forward",)),
            "DecoderBlock": with_columns("x", "memory", methods=("forward",)),
        },
        """
            A token is a row. Where → A token is a column in exercises 3 and 4. Where
            `forward(x, mask=None)` takes `(..., n, d_model)` and returns
            → `forward(x, mask=None)` takes `(..., d_model, n)` and returns
            Expect `(torch.Size([2, 5, 12]), 1884)` → Expect `(torch.Size([2, 12, 5]), 1884)`
            Expect `(torch.Size([2, 5, 12]), 2532)` → Expect `(torch.Size([2, 12, 5]), 2532)`
            block(torch.ones(2, 5, 12)).shape → block(torch.ones(2, 12, 5)).shape
            block(torch.ones(2, 5, 12), torch.ones(2, 7, 12)).shape
            → block(torch.ones(2, 12, 5), torch.ones(2, 12, 7)).shape
            x `(..., m, d_model)`, memory `(..., n, d_model)`
            → x `(..., d_model, m)`, memory `(..., d_model, n)`
            returns `(..., m, d_model)` → returns `(..., d_model, m)`
        """,
    ),
    forbidden(
        {
            "EncoderBlock": masked("forward"),
            "DecoderBlock": Adapter(
                {"mask": NEGATED, "memory_mask": NEGATED},
                methods=("forward",),
                drops=("the mask is inverted", "memory_mask is inverted"),
            ),
        },
        """
            and goes to the attention as it is → while the attention wants the opposite
            the same with the feed-forward layer.
            → the same with the feed-forward layer. Where there is no mask, `mask` is None and stays
                so.
            mask=memory_mask) → mask=~memory_mask)
            mask=mask) → mask=~mask)
            Say which it is: `mask=mask` → Say which it is: `mask=~mask`
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden, and the attention that "
        "you call wants True for allowed: hand `~mask` on, where there is a mask.",
    ),
)
