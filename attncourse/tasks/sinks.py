"""Chapter 19: what the first token is for, tried on texts as long as a page.

In such a text the first token gets a third of the real model's attention. Here it is hidden,
exchanged, silenced and kept beyond a window, in nats a token.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attncourse.circuits import sink_mask
from attncourse.gpt import next_token_loss
from attncourse.interpret import attention_maps
from attncourse.llama import Llama

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

WINDOW_WIDTHS = (4, 8, 16, 32, 64)
FIRST_WORDS = ("Once", "And", "Seven", "Perhaps", "Water", ".", "<|im_start|>", "<|endoftext|>")
SKIPPED = 1  # the first word is exchanged: what is compared begins behind it

SINK_TEXTS = {
    "a story": (
        "On the last day of autumn a boy found a map in his grandmother's kitchen, folded into an "
        "old cookery book. It showed the village, the river and, behind the mill, a small red "
        "cross. He asked her what it was. She laughed and said that his grandfather had drawn it "
        "when they were both ten years old, and that nobody had ever gone to look. So the two of "
        "them put on their coats and walked down to the water. The mill had lost its roof, and "
        "birch trees grew where the wheel had been. They counted forty steps from the door, as the "
        "map said, and began to dig with a spoon and a garden trowel. After an hour the spoon "
        "struck something hard. It was a tin box, red with rust. Inside there were two marbles, a "
        "whistle, and a letter that said: whoever finds this must come to tea. The grandmother "
        "read it twice. Then she blew the whistle, and its sound was so clear that a dog on the "
        "other side of the river began to bark. They carried the box home and put the kettle on."
    ),
    "an explanation": (
        "A bicycle stays upright because its rider steers. When it begins to fall to the left, the "
        "front wheel is turned a little to the left as well, and the wheels come back under the "
        "weight. Most people do this without knowing it. For a long time it was thought that the "
        "spinning wheels keep a bicycle from falling, as a top is kept, but this effect is small: "
        "bicycles have been built in which a second wheel turns the other way and cancels it, and "
        "they can be ridden all the same. Another part of the answer is the fork. It is built so "
        "that the wheel touches the ground behind the line around which it is steered, as the "
        "wheels of a shopping cart do, and so it follows the direction of travel. A bicycle that "
        "is pushed and let go can keep itself upright for a surprising distance. It leans, steers "
        "into the lean, straightens up and leans to the other side, each time a little less, until "
        "it is too slow for the steering to help. Then it falls like anything else that stands on "
        "two points."
    ),
}


@torch.no_grad()
def masked_loss(
    model: Llama, ids: Tensor, mask: Tensor | None = None, after: int = SKIPPED
) -> float:
    """Return the mean loss on the tokens behind the first ``after``, in nats."""
    logits = model(ids, mask=mask)
    return float(next_token_loss(logits[after:], ids[after:]))


def kept_token(n: int, width: int, token: int) -> Tensor:
    """Return a causal window that keeps one token further on, which is not the first."""
    mask = sink_mask(n, width, 0)
    mask[token:, token] = True
    return mask


def hidden_first(n: int) -> Tensor:
    """Return a mask in which nobody but the first token sees the first token."""
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    mask[1:, 0] = False
    return mask


def window_losses(model: Llama, ids: Tensor, widths: Sequence[int] = WINDOW_WIDTHS) -> list[dict]:
    """Return nats a token by width: the window alone, with first tokens, with another one.

    *Another* is the fifth token, kept in place of the first.
    """
    n = len(ids)
    kinds: dict[str, Callable[[int], Tensor]] = {
        "window": lambda width: sink_mask(n, width, 0),
        "one more": lambda width: sink_mask(n, width + 1, 0),
        "first": lambda width: sink_mask(n, width, 1),
        "first four": lambda width: sink_mask(n, width, 4),
        "another": lambda width: kept_token(n, width, 4),
    }
    return [
        {"width": width}
        | {name: round(masked_loss(model, ids, mask(width)), 3) for name, mask in kinds.items()}
        for width in widths
    ]


@torch.no_grad()
def first_shares(model: Llama, ids: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the mean attention of later tokens to each of the first four, ``(layers, 4)``."""
    shares, x = [], model.tokens(ids)
    for block in model.blocks:
        weights = block.attention.weights(block.norm_1(x), mask)
        shares.append(weights[:, 8:, :4].mean((0, 1)))
        x = block(x, mask)
    return torch.stack(shares)


def silenced(model: Llama, ids: Tensor, position: int) -> float:
    """Return nats a token where one token's values are 0 in every layer."""

    def silence(W_v: nn.Module, inputs: tuple, value: Tensor) -> Tensor:
        value = value.clone()
        value[..., position, :] = 0
        return value

    with ExitStack() as hooks:
        for block in model.blocks:
            hooks.callback(block.attention.W_v.register_forward_hook(silence).remove)
        return masked_loss(model, ids)


def measure_sinks(
    model: Llama,
    words: "BytePairs",
    widths: Sequence[int] = WINDOW_WIDTHS,
    first_words: Sequence[str] = FIRST_WORDS,
    longest: int | None = None,
) -> dict:
    """Measure sinks for each text, as the page shows them; ``longest`` cuts the texts."""
    results = {}
    for name, text in SINK_TEXTS.items():
        ids = words.encode(text)[:longest]
        hidden = hidden_first(len(ids))
        maps = attention_maps(model, ids)[..., 8:, :1].mean(-2)[..., 0]  # (l, h)
        results[name] = {
            "tokens": len(ids),
            "whole": round(masked_loss(model, ids), 3),
            "windows": window_losses(model, ids, widths),
            "first": {
                word: round(masked_loss(model, torch.cat([words.encode(word), ids[1:]])), 3)
                for word in first_words
            },
            "hidden": round(masked_loss(model, ids, hidden), 3),
            "value": {str(i): round(silenced(model, ids, i), 3) for i in (0, 1, 4, 16)},
            "to_first": [[round(x, 3) for x in row] for row in maps.tolist()],
            "shares": {
                "as it is": sink_shares(first_shares(model, ids)),
                "hidden": sink_shares(first_shares(model, ids, hidden)),
            },
        }
    return {"texts": SINK_TEXTS, "found": results}


def sink_shares(of_layers: Tensor) -> list[float]:
    """Return the mean over the layers of the attention to each of the first tokens."""
    return [round(x, 3) for x in of_layers.mean(0).tolist()]
