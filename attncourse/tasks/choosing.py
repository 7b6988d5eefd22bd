"""Digits that ask for one of two others: what each part of a block is good for.

A position has to find its two predecessors by where they stand, compare what it finds, and answer
with one digit or another. The model is built of chapter 12's blocks, with a part taken out.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attncourse.positions import sinusoidal_encoding
from attncourse.transformer import EncoderBlock, LayerNorm

N_DIGITS = 5
REMOVABLE_PARTS = (
    "residual",
    "norm",
    "feed-forward",
    "heads",
    "positions",
)  # what can be taken out


def choosing(batch: int, generator: torch.Generator, n: int = 8) -> tuple[Tensor, Tensor]:
    """Say your own digit if the one before you is larger than the one before that, else the latter.

    Returns ids ``(batch, n)``, digits from 0 to 4, and the answers of all positions but the first
    two, ``(batch, n - 2)``.
    """
    ids = torch.randint(N_DIGITS, (batch, n), generator=generator)
    two_before, before, last = ids[:, :-2], ids[:, 1:-1], ids[:, 2:]
    return ids, torch.where(before > two_before, last, two_before)


class PartialBlock(EncoderBlock):
    """An encoder block without ``"residual"``, ``"norm"`` or ``"feed-forward"`` layer."""

    def __init__(self, d_model: int, n_heads: int, without: str = "", **options):
        super().__init__(d_model, n_heads, **options)
        self.without = without
        if without == "norm":
            # pyrefly: ignore [bad-override]  a block without one of its parts
            self.norm_1 = self.norm_2 = nn.Identity()
        if without == "feed-forward":
            # pyrefly: ignore [bad-override]  the same
            self.feed_forward = self.norm_2 = None

    def add(self, x: Tensor, branch, norm) -> Tensor:
        """Add a branch as a whole block does; or return it alone, or x alone."""
        if branch is None:
            return x
        return branch(norm(x)) if self.without == "residual" else super().add(x, branch, norm)


class Chooser(nn.Module):
    """Digits with positions, blocks, a last norm, a read-out; without one of ``REMOVABLE_PARTS``.

    ``forward`` takes ids ``(batch, n)`` and returns logits ``(batch, n, 5)``. Without ``"heads"``
    there is one head, as wide as all were together.
    """

    def __init__(
        self,
        without: str = "",
        d: int = 16,
        heads: int = 4,
        layers: int = 2,
        pre_norm: bool = True,
    ):
        super().__init__()
        if without not in ("", *REMOVABLE_PARTS):
            raise ValueError(
                f"without: expected one of {', '.join(REMOVABLE_PARTS)}, got {without!r}"
            )
        self.without = without
        heads = 1 if without == "heads" else heads
        self.digits = nn.Embedding(N_DIGITS, d)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            block = PartialBlock(d, heads, without, pre_norm=pre_norm)
            self.blocks.append(block)
        self.norm = nn.Identity() if without == "norm" else LayerNorm(d)
        self.read_out = nn.Linear(d, N_DIGITS)

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n digits"]:
        """Return the logits of a digit at each place."""
        x = self.digits(ids)  # (b, n, d)
        if self.without != "positions":
            x = x + sinusoidal_encoding(ids.shape[1], x.shape[-1])
        for block in self.blocks:
            x = block(x)
        return self.read_out(self.norm(x))
