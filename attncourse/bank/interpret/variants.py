"""The chapter's exercises in other conventions."""

from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import LAST_FIRST
from attncourse.checks.variants.variant import Variant, rewordings

VARIANTS = (
    Variant(
        "last_first",
        "The layers come from the **last to the first** here: `maps[..., 0, :, :, :]` is the layer "
        "next to the output, where in the book it is layer 0.",
        "the last layer comes first here",
        "Your answer takes the first of the maps for layer 0, as the book and its published "
        "answers "
        "do. In this assignment the last layer comes first and layer 0 last: the first of the maps "
        "is the factor on the left.",
        {"rollout": Adapter({"maps": LAST_FIRST}, drops=("the layers in the other order",))},
        rewordings("""
            | `maps` | `(..., layers, heads, n, n)` | layer 0 first; rows sum to 1 |⏎| `residual`
            → | `maps` | `(..., layers, heads, n, n)` | layer 0 last; rows sum to 1 |⏎| `residual`
            rollout(torch.stack([first, second])[:, None])
            → rollout(torch.stack([second, first])[:, None])
            You begin with the second layer, or stop before the last
            → You leave out the layer next to the input, or next to the output
            Layer by layer: `flow → Layer by layer, from the last of the maps: `flow
        """),
    ),
)
