"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import ONE_SIDE
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "one_side",
        "`width` counts the tokens **on one side** here: token i sees i − width to i + width, "
        "2 · width + 1 tokens in all. In the book it counts the whole window.",
        "width counts one side here",
        "Your answer takes width for all tokens of the window, as the book and its published "
        "answers do. In this assignment it counts those on one side: the window of token i reaches "
        "from i − width to i + width.",
        {
            "windowed_attention": Adapter(
                {"width": ONE_SIDE},
                drops=("width on each side", "one token too many on each side"),
            )
        },
        rewordings("""
            sees the⏎`width` tokens around it, i − width // 2 to i + width // 2, itself included
            → sees⏎`width` tokens on each side, i − width to i + width, and itself
            | `width` | an odd number | how many tokens a window in the middle has |
            → | `width` | a number, 0 or more | how many tokens a window in the middle has on one
                side |
            in the hundreds, `width` 3 or 5) → in the hundreds, `width` 1 or 2)
            [3.0], [12.0]]), 3⏎ → [3.0], [12.0]]), 1⏎
            each token and its neighbours, width in all
            → each token and its neighbours, width on each side
            scores by √width → scores by √(2 · width + 1)
            i − width // 2 to i + width // 2 → i − width to i + width
            You look at the width tokens that → You look at the 2 · width + 1 tokens that
            torch.arange(-half, half + 1)` is `(n, width)`
            → torch.arange(-width, width + 1)` is `(n, 2 * width + 1)`
            `range(i - half, i + half)` leaves out i + half
            → `range(i - width, i + width)` leaves out i + width
        """),
    ),
)
