"""Chapter 18: what fewer bits a number cost, and what languages cost in tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.llama import Llama
from attncourse.pretrained.byte_pairs import BytePairs
from attncourse.support.arrays import require_count

BLOCK = 32  # numbers that share a scale, as in the file
BITS = (8, 6, 5, 4, 3, 2)
SCALE_GROUPS = (
    "a block of 32 down a column",
    "a row",
    "a matrix",
)  # who shares a scale and a minimum

# The same three sentences, words apart by blanks; in Chinese by |, which is no part of the text.
LANGUAGES = {
    "English": (
        "My grandmother baked a cake yesterday. All the children of our street came to eat it. "
        "Only the smallest one asked how she had made it."
    ),
    "German": (
        "Meine Großmutter hat gestern einen Kuchen gebacken. Alle Kinder unserer Straße kamen, um "
        "ihn zu essen. Nur das kleinste fragte, wie sie ihn gemacht hatte."
    ),
    "Turkish": (
        "Büyükannem dün bir pasta pişirdi. Sokağımızın bütün çocukları onu yemeye geldi. Yalnızca "
        "en küçüğü onu nasıl yaptığını sordu."
    ),
    "Hindi": (
        "मेरी दादी ने कल एक केक बनाया। हमारी गली के सब बच्चे उसे खाने आए। केवल सबसे छोटे ने पूछा कि "
        "उन्होंने उसे कैसे बनाया था।"
    ),
    "Chinese": (
        "我|的|奶奶|昨天|烤|了|一个|蛋糕。|我们|街上|所有|的|孩子|都|来|吃|它。|只有|最小|的|那个|问|她|是|"
        "怎么|做|的。"
    ),
}


def round_to_bits(weight: Tensor, bits: int, shared: str) -> Tensor:
    """Return the matrix ``(d_out, d_in)`` with ``2^bits`` numbers left to those that share a scale.

    ``minimum + scale · round((w − minimum) / scale)``, ``scale = (max − min) / (2^bits − 1)``.
    Blocks go down the columns: along the rows the file's own blocks lie, and rounding those again
    to as many bits changes nothing. Raises ``ValueError`` for bits outside 2 to 8.
    """
    require_count("bits", bits, least=2, most=8)
    if shared == SCALE_GROUPS[0]:
        groups = weight.T.unflatten(-1, (-1, BLOCK))  # (d_in, d_out / 32, 32)
        return rounded_rows(groups, bits).flatten(-2).T
    if shared == SCALE_GROUPS[1]:
        return rounded_rows(weight, bits)
    if shared == SCALE_GROUPS[2]:
        return rounded_rows(weight.flatten(), bits).view_as(weight)
    raise ValueError(f"shared: expected one of {', '.join(SCALE_GROUPS)}, got {shared!r}")


def rounded_rows(x: Tensor, bits: int) -> Tensor:
    """Return each row's numbers on a grid of ``2^bits`` from its least to its greatest."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    scale = (high - low) / (2**bits - 1)
    codes = ((x - low) / scale.where(scale > 0, 1)).round()
    return low + scale * codes


@contextmanager
def with_fewer_bits(model: Llama, bits: int, shared: str) -> Iterator[None]:
    """Round the matrices of all blocks inside the block, and not the table of tokens."""
    matrices = [layer.weight for layer in model.blocks.modules() if isinstance(layer, nn.Linear)]
    weights = [matrix.data for matrix in matrices]
    try:
        for matrix in matrices:
            matrix.data = round_to_bits(matrix.data, bits, shared).contiguous()
        yield
    finally:
        for matrix, old in zip(matrices, weights, strict=True):
            matrix.data = old


def tokens_a_word(words: BytePairs, language: str) -> dict[str, Any]:
    """Count the words, characters, bytes and tokens of one language's sentences."""
    marked = LANGUAGES[language]
    words_marked = marked.split("|") if "|" in marked else marked.split()
    text = marked.replace("|", "")
    return {
        "language": language,
        "text": text,
        "words": len(words_marked),
        "characters": len(text),
        "bytes": len(text.encode()),
        "tokens": len(words.encode(text)),
    }


@torch.no_grad()
def bits_in_file(model: Llama) -> float:
    """Return the largest change where the file's own blocks are rounded to 4 bits again: 0."""
    first = model.blocks[0].attention.W_q.weight
    again = rounded_rows(first.unflatten(-1, (-1, BLOCK)), 4).flatten(-2)
    return float((again - first).abs().max())
