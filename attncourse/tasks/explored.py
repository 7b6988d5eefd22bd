"""Chapter 19: the maps of all heads of the real model on a dozen sentences, eight bits a weight."""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attncourse.interpret import attention_maps
from attncourse.llama import Llama

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

# Each with the pronoun and the word that it stands for, where there is one.
SENTENCES = (
    ("My cat is small, cute, and fluffy. She likes belly rubs.", "She", "cat"),
    ("The man walked the dog. It was happy.", "It", "dog"),
    ("I like sushi because it makes me happy.", "it", "sushi"),
    ("Today Anna met Peter. She was late.", "She", "Anna"),
    ("Today Anna met Peter. He was late.", "He", "Peter"),
    ("Today the man saw the cats. They were late.", "They", "cats"),
    ("The nurse told the doctor that she was late.", "she", "nurse"),
    ("The capital of France is Paris.", None, None),
    ("one two three one two three one two three", None, None),
    ("blue fish green tree loud blue fish green tree loud", None, None),
    ("The keys to the cabinet are on the table.", None, None),
    ("def add(a, b): return a + b", None, None),
)
MOST_TOKENS = 18


def explored(
    model: Llama, words: "BytePairs", text: str, pronoun: str | None = None, noun: str | None = None
) -> dict:
    """Return the explorer's data of a sentence: its tokens, its maps, and who stands for whom.

    Raises ``ValueError`` for a sentence that is longer than the figure, and for a pronoun or noun
    that is not one token of it.
    """
    ids = words.encode(text)
    if not 2 <= len(ids) <= MOST_TOKENS:
        raise ValueError(f"{text!r}: expected 2 to {MOST_TOKENS} tokens, got {len(ids)}")
    tokens = [words.decode([i]) for i in ids.tolist()]
    pair = [token_place(tokens, word) for word in (pronoun, noun or "")] if pronoun else None
    return {"tokens": tokens, "pair": pair, "maps": pack_maps(attention_maps(model, ids))}


def token_place(tokens: Sequence[str], word: str) -> int:
    """Return the place of the one token that is this word; ``ValueError`` for others."""
    places = [i for i, token in enumerate(tokens) if token.strip() == word]
    if len(places) != 1:
        raise ValueError(f"{word!r}: expected one token that stands once among {tokens}")
    return places[0]


def pack_maps(maps: Float[Tensor, "l h n n"]) -> str:
    """Return the lower triangles, row by row, as bytes in steps of 1/255, in base 64."""
    n = maps.shape[-1]
    below = maps[..., *torch.tril_indices(n, n)]  # (l, h, n (n + 1) / 2)
    steps = (below * 255).round().to(torch.uint8)
    return base64.b64encode(steps.numpy().tobytes()).decode("ascii")


def unpack_maps(text: str, n: int, n_layers: int, n_heads: int) -> Float[np.ndarray, "l h n n"]:
    """Return the maps again, each weight at most 1/510 from what it was."""
    steps = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    maps = np.zeros((n_layers, n_heads, n, n))
    maps[..., *np.tril_indices(n)] = steps.reshape(n_layers, n_heads, -1) / 255
    return maps
