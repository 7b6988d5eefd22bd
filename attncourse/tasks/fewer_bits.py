"""Chapter 20: keys, values and weights in fewer bits, in nats a token of the real model.

Three texts of 200 tokens (chapter 19's two, and a dialogue). Weights: the matrices of all blocks,
not the table of tokens. Blocks of weights go down the columns: along the rows lie the file's own
blocks of 32 at 4 bits, and to round those again to 4 bits changes nothing (``again``). Bits a
number count a scale and a minimum of 16 bits each for every block.

Keys and values are as they would lie in the cache, the keys turned, each token's own too, with a
scale for each token and head, or (*down the tokens*, as KIVI does with keys) for each feature and
64 tokens that follow each other. Either way 64 numbers share a scale, half a bit each.

Source: Liu et al. (2024), KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.llama import Llama, RotaryAttention
from attncourse.serving import dequantize, quantize
from attncourse.tasks.sinks import SINK_TEXTS, masked_loss

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

DIALOGUE = (
    '"You are late," said the gatekeeper. "The train was late," said the woman, "and the bridge '
    'was up. I have brought what you asked for." She put a parcel on the table. He did not touch '
    'it. "How do I know that it is the right one?" he asked. "You do not," she said. "Open it." He '
    "took a knife from the drawer, cut the string, and folded the paper back as if it might break. "
    'Inside there was a clock without hands. "It ticks," he said after a while. "It has always '
    'ticked," said the woman. "My mother kept it in the cellar, under the potatoes, because the '
    'sound would not let her sleep." "And the hands?" "My father took them off on the day he left. '
    'He said that it was better not to know." The gatekeeper laughed, but not for long. He held '
    'the clock to his ear. "Then it is the right one," he said, and he unlocked the gate.'
)
LONG_TEXTS = {**SINK_TEXTS, "a dialogue": DIALOGUE}
MOST_TOKENS = 200  # tokens of each text
SCALES = 32  # bits of a scale and a minimum together
N_TOKENS = 64  # that share a scale where it goes down the tokens

Rounded = Callable[[Tensor], Tensor]


def there_and_back(x: Tensor, bits: int, block: int) -> Tensor:
    """Return x in so many bits, blocks along the last axis."""
    return dequantize(*quantize(x, bits, block)).to(x)


def a_matrix(weight: Tensor, bits: int) -> Tensor:
    """Return the weights rounded with one scale for all."""
    return there_and_back(weight.flatten(), bits, weight.numel()).view_as(weight)


def a_row(weight: Tensor, bits: int) -> Tensor:
    """Return the weights rounded with one scale a row."""
    return there_and_back(weight, bits, weight.shape[-1])


def down_a_column(block: int) -> Callable[[Tensor, int], Tensor]:
    """Return a function that rounds weights in blocks of so many down the columns."""
    return lambda weight, bits: there_and_back(weight.T, bits, block).T


def along_a_row(weight: Tensor, bits: int) -> Tensor:
    """Return the weights rounded in blocks of 32 along the rows."""
    return there_and_back(weight, bits, 32)


SHARED: dict[str, Callable[[Tensor, int], Tensor]] = {  # who shares a scale
    "a matrix": a_matrix,
    "a row": a_row,
    **{f"a block of {size}": down_a_column(size) for size in (64, 32)},
}
WEIGHT_BITS = (8, 4, 3, 2)


def bits_a_number(model: Llama, name: str, bits: int) -> float:
    """Return the bits of a weight with its part of a scale and a minimum."""
    matrices = [layer.weight for layer in model.blocks.modules() if isinstance(layer, nn.Linear)]
    if name.startswith("a block of"):
        return bits + SCALES / int(name.split()[-1])
    scales = sum(1 if name == "a matrix" else len(layer) for layer in matrices)
    return round(bits + SCALES * scales / sum(layer.numel() for layer in matrices), 3)


@contextmanager
def with_weights(model: Llama, change: Rounded) -> Iterator[None]:
    """Change the matrices of all blocks inside the ``with`` block."""
    matrices = [layer.weight for layer in model.blocks.modules() if isinstance(layer, nn.Linear)]
    weights = [matrix.data for matrix in matrices]
    try:
        for matrix in matrices:
            matrix.data = change(matrix.data).contiguous()
        yield
    finally:
        for matrix, old in zip(matrices, weights, strict=True):
            matrix.data = old


def a_token(bits: int) -> Rounded:
    """Return a rounding with a scale for each token and head. x: ``(..., h, n, d_head)``."""
    return lambda x: there_and_back(x, bits, x.shape[-1])


def down_the_tokens(bits: int) -> Rounded:
    """Return a rounding with a scale for each feature of a head and ``N_TOKENS`` tokens on end."""

    def rounded(x: Tensor) -> Tensor:
        n = x.shape[-2]
        more = -n % N_TOKENS
        whole = F.pad(x.mT, (0, more), mode="replicate") if more else x.mT
        return there_and_back(whole, bits, N_TOKENS).mT[..., :n, :]

    return rounded


@contextmanager
def with_cache(keys: Rounded | None, values: Rounded | None) -> Iterator[None]:
    """Change the keys and values that every ``RotaryAttention`` sees, inside the ``with`` block."""
    views = RotaryAttention.views

    def changed(self, x, positions, cache=None):
        query, key, value = views(self, x, positions, cache)
        return query, keys(key) if keys else key, values(value) if values else value

    with patch.object(RotaryAttention, "views", changed):
        yield


CACHES: dict[str, tuple[Rounded | None, Rounded | None]] = {
    **{f"{bits} bits": (a_token(bits), a_token(bits)) for bits in (8, 4, 3, 2)},
    "2 bits, keys alone": (a_token(2), None),
    "2 bits, values alone": (None, a_token(2)),
    "2 bits, keys alone, down the tokens": (down_the_tokens(2), None),
    "2 bits, values alone, down the tokens": (None, down_the_tokens(2)),
    "2 bits, keys down the tokens": (down_the_tokens(2), a_token(2)),
}


def texts_as_ids(words: "BytePairs") -> dict[str, Tensor]:
    """Return the ids of the texts, cut to ``MOST_TOKENS``."""
    return {name: words.encode(text)[:MOST_TOKENS] for name, text in LONG_TEXTS.items()}


def losses_by_text(model: Llama, texts: dict[str, Tensor]) -> dict[str, float]:
    """Return the nats a token, text by text."""
    return {name: round(masked_loss(model, ids), 4) for name, ids in texts.items()}


def weights_row(model: Llama, texts: dict[str, Tensor], name: str, bits: int) -> dict:
    """Return the row for weights in so many bits, where ``name`` shares a scale."""
    with with_weights(model, lambda weight: SHARED[name](weight, bits)):
        nats = losses_by_text(model, texts)
    return {"shared": name, "bits": bits, "bits_a_number": bits_a_number(model, name, bits),
            "nats": nats}  # fmt: skip


def cache_row(model: Llama, texts: dict[str, Tensor], name: str) -> dict:
    """Return the row for a cache of ``CACHES``."""
    with with_cache(*CACHES[name]):
        return {"cache": name, "nats": losses_by_text(model, texts)}


def measure_fewer_bits(
    model: Llama, words: "BytePairs", rows: Sequence[tuple[str, int]] = ()
) -> dict:
    """Measure the model as it is, and its weights and cache in fewer bits, as on the page."""
    texts = texts_as_ids(words)
    rows = rows or [(name, bits) for name in SHARED for bits in WEIGHT_BITS]
    with ExitStack() as stack:
        stack.enter_context(with_weights(model, lambda weight: along_a_row(weight, 4)))
        again = losses_by_text(model, texts)
    return {
        "texts": {name: len(ids) for name, ids in texts.items()},
        "as_it_is": losses_by_text(model, texts),
        "again": again,
        "weights": [weights_row(model, texts, *row) for row in rows],
        "cache": [cache_row(model, texts, name) for name in CACHES],
    }
