"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import forbidden, masked
from attncourse.checks.variants.rewriting import NEGATED

NEGATED_MASK = Adapter(
    result=NEGATED, drops=("the mask is inverted", "the future in place of the past")
)
VARIANTS = (
    forbidden(
        {
            "causal_mask": NEGATED_MASK,
            "padding_mask": NEGATED_MASK,
            "sliding_window_mask": NEGATED_MASK,
            "masked_softmax": masked(),
            "leak": masked(drops=("the wrong pairs are measured",)),
        },
        r"""
            True where query i may attend to key j → True where query i may not attend to key j
            Expect three `True` in the first row and four in the second
            → Expect one `True`, the last of the first row
            True where the key is a token → True where the key is padding
            Two sequences, of 3 and of 1 token. Expect `torch.Size([2, 1, 4])`, three `True` and one
                `True`
            → Two sequences, of 3 and of 1 token. Expect `torch.Size([2, 1, 4])`, one `True` and
                three `True`
            True where output i may depend on token j → True where output i may not depend on it
            M_{ij} = \text{False} → M_{ij} = \text{True}
            sliding_window_mask(4, 3).sum(-1), sliding_window_mask(4, 3, causal=True).sum(-1)
            → (~sliding_window_mask(4, 3)).sum(-1), (~sliding_window_mask(4, 3,
                causal=True)).sum(-1)
            torch.tensor([[True, True, False], [False, False, False]])
            → torch.tensor([[False, False, True], [True, True, True]])
            torch.tensor([[True, False], [True, True]])
            → torch.tensor([[False, True], [False, False]])
            mask[..., i, j] is False → mask[..., i, j] is True
            `mask.any(dim=-1, keepdim=True)` → `(~mask).any(dim=-1, keepdim=True)`
            (`<=`, `<`) → (`>`, `>=`)
            `<` where `<=` belongs, `tril(-1)` → `>=` where `>` belongs, `triu(0)`
            `tril(1)`, or an offset → `triu(2)`, or an offset
            You allow the future (`triu`, or i and j → You allow the future (`tril`, or i and j
            columns are False. What came → columns are True. What came
            all of them: those columns are True → all of them: those columns are False
            has no False, an empty one no True. Use `j < length`
            → has no True, an empty one no False. Use `j >= length`
            Your diagonal is False → Your diagonal is True
            so it is `tril(n − m)`. Your offset is another: none (`.tril()`)
            → so it is `triu(n − m + 1)`. Your offset is another: none (`.triu(1)`)
            the positions 0, 1 and 2: `j < length` → the positions 0, 1 and 2, padding `j >= length`
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden, as in "
        "`nn.MultiheadAttention`.",
    ),
)
