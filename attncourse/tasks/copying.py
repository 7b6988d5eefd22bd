"""Copying and reversing letters: what tells one encoding of positions from another.

A sequence is n of 32 letters, all different, so a letter alone says nothing about its place.
Sources: Press et al. (2022), Train Short, Test Long, for the test at greater lengths; Kazemnejad et
al. (2023) for copying and reversing as tasks.
"""

import math

import torch
from torch import Tensor, nn

from attncourse.kqv import attention_scores, softmax_over_keys
from attncourse.positions import alibi_bias, apply_rope, sinusoidal_encoding
from attncourse.tasks.training import Task

LETTERS = 32
ENCODINGS = ("none", "sinusoidal", "RoPE", "ALiBi")


def sequences(batch: int, n: int, generator: torch.Generator) -> Tensor:
    """Return different letters in random order, ``(batch, n)``, with n at most 32."""
    if not 1 <= n <= LETTERS:
        raise ValueError(f"n: expected 1 to {LETTERS} different letters, got {n}")
    return torch.rand(batch, LETTERS, generator=generator).argsort(dim=1)[:, :n]


def copy(n: int = 8, back: int = 1) -> Task:
    """Return the task to name the letter ``back`` positions before, in sequences of n letters.

    It returns ids ``(batch, n)`` and the answers of the last n − back positions, those that have
    one, ``(batch, n - back)``.
    """
    if not 1 <= back < n:
        raise ValueError(f"back: expected 1 to {n - 1} positions, got {back}")

    def task(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        ids = sequences(batch, n, generator)
        return ids, ids[:, :-back]

    return task


def reverse(n: int = 8) -> Task:
    """Return the task to name, at position i, the letter of position n − 1 − i; all n are asked."""

    def task(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        ids = sequences(batch, n, generator)
        return ids, ids.flip(1)

    return task


class Reader(nn.Module):
    """Layers of attention over letters, each added to its input, and a read-out.

    encoding: how it learns of positions, ``"none"``, ``"sinusoidal"``, ``"RoPE"`` or ``"ALiBi"``.
    causal: whether a position sees only itself and what came before. pace: what RoPE multiplies
    positions by. ``forward`` takes ids ``(batch, n)`` and returns logits ``(batch, n, 32)``.
    """

    def __init__(
        self, encoding: str, causal: bool = False, layers: int = 2, d: int = 32, heads: int = 4,
        pace: float = 1.0,
    ):  # fmt: skip
        super().__init__()
        if encoding not in ENCODINGS:
            raise ValueError(f"encoding: expected one of {', '.join(ENCODINGS)}, got {encoding!r}")
        self.encoding, self.causal, self.heads, self.pace = encoding, causal, heads, pace
        self.letters, self.read_out = nn.Embedding(LETTERS, d), nn.Linear(d, LETTERS)
        self.views = nn.ModuleList(nn.Linear(d, 3 * d, bias=False) for _ in range(layers))
        self.back = nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(layers))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of a letter at each place."""
        n, x = ids.shape[1], self.letters(ids)  # (batch, n, d)
        if self.encoding == "sinusoidal":
            x = x + sinusoidal_encoding(n, x.shape[-1])
        bias = alibi_bias(self.heads, n) if self.encoding == "ALiBi" else 0
        mask = torch.ones(n, n, dtype=torch.bool).tril() if self.causal else None
        for views, back in zip(self.views, self.back, strict=True):
            split = views(x).unflatten(-1, (3, self.heads, -1))  # (batch, n, 3, h, d/h)
            qk, v = split.permute(2, 0, 3, 1, 4).split((2, 1))  # (2 and 1, batch, h, n, d/h)
            if self.encoding == "RoPE":
                qk = apply_rope(qk, self.pace * torch.arange(n))
            scores = attention_scores(*qk) / math.sqrt(qk.shape[-1]) + bias
            mixed = softmax_over_keys(scores, mask) @ v[0]  # (batch, h, n, d/h)
            x = x + back(mixed.transpose(1, 2).flatten(2))
        return self.read_out(x)


@torch.no_grad()
def distance_named(model: nn.Module, n: int, first: int = 0, batch: int = 200) -> Tensor:
    """Return how far back the letter stands that a model names, ``(n,)``.

    They are fractions of its answers.

    Counted over positions ``first`` to n − 1; letters that stand later, or not at all in the
    sequence, count nowhere, so the fractions sum to at most 1.
    """
    ids = sequences(batch, n, torch.Generator().manual_seed(99))
    said = model(ids).argmax(-1)  # (batch, n)
    here = said[:, :, None] == ids[:, None, :]  # (batch, n, n): who is named
    named = [here.diagonal(-far, 1, 2)[:, max(0, first - far) :].sum() for far in range(n)]
    return torch.stack(named) / (batch * (n - first))
