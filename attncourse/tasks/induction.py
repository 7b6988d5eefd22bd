"""Sequences that come back to what they said before, and models that learn to go on with it.

*7 2 9 4 1 | 9 4 1 7 | 2 9 4 1 | …*: some tokens in an order, then pieces of that order, each
beginning anywhere. What comes after the second 9 is what came after the first. How far back that is
is drawn anew for each piece, so no position tells it: a model has to look for the token itself.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.gpt import GPT, GPTConfig
from attncourse.interpret import ablate, attention_maps, head_scores, induction_pattern
from attncourse.support.arrays import require_count
from attncourse.tasks.adam import Adam

N_VOCAB, LENGTH, SPAN, PIECE = 16, 24, (5, 9), 4
STD = 0.2  # of the weights at the start: wide, which suits so small a model


def pieces(
    batch: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch n"], Bool[Tensor, "batch n"]]:
    """Return sequences of a run of tokens and pieces of it, and where the next token is known.

    A run has p different tokens, p drawn from 5 to 9 for each sequence; the sequence says them
    once, and then pieces of four neighbours, each from a place of its own in the run. Returns ids
    ``(batch, 24)`` and True at the tokens, ``(batch, 24)``, that come again and go on as they did:
    all of the pieces but their last ones.
    """
    require_count("batch", batch)
    p = torch.randint(SPAN[0], SPAN[1] + 1, (batch, 1), generator=generator)
    run = torch.rand(batch, N_VOCAB, generator=generator).argsort(dim=-1)  # ids in random order
    t = torch.arange(LENGTH)
    since = (t - p).clamp(min=0)  # (batch, n), tokens since the pieces began
    room = torch.rand(batch, LENGTH, generator=generator) * (p - PIECE + 1)
    starts = room.long().gather(1, since // PIECE)  # from 0 to p − 4
    place = torch.where(t < p, t, starts + since % PIECE)
    known = (t >= p) & (since % PIECE < PIECE - 1) & (t < LENGTH - 1)
    return run.gather(1, place), known


class Nothing(nn.Module):
    """In the place of a branch: it adds 0 to the stream."""

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros, as many as x has."""
        return torch.zeros_like(x)


def attention_only(
    n_layers: int = 2, n_heads: int = 2, d_model: int = 32, n_vocab: int = N_VOCAB
) -> GPT:
    """Return a ``GPT`` whose blocks have attention and no feed-forward layer."""
    gpt = GPT(GPTConfig(n_vocab, LENGTH, d_model, n_heads, n_layers, tied=False))
    gpt.initialise(std=STD)
    for block in gpt.blocks:
        block.feed_forward = Nothing()
    return gpt


def piece_loss(logits: Tensor, ids: Tensor, known: Tensor) -> Tensor:
    """Return the mean surprise, in nats, at the tokens that are known."""
    surprise = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    return surprise[known[:, :-1].flatten()].mean()


def learn_pieces(
    n_layers: int = 2,
    seed: int = 0,
    steps: int = 200,
    batch: int = 32,
    rate: float = 0.01,
    watch: Callable[[GPT, int], None] | None = None,
    every: int = 25,
) -> GPT:
    """Return an attention-only model trained on fresh sequences with Adam; in ``eval()``.

    ``watch`` is called with the model and the number of steps done, before the first step, every
    ``every`` steps and at the end.
    """
    torch.manual_seed(seed)
    model, generator = attention_only(n_layers), torch.Generator().manual_seed(seed)
    adam = Adam(model.parameters(), rate)
    for step in range(steps):
        if watch is not None and step % every == 0:
            watch(model, step)
        ids, known = pieces(batch, generator)
        adam.zero_grad()
        piece_loss(model(ids), ids, known).backward()
        adam.step(min(1, (step + 1) / 30, 2 - 2 * step / steps))
    if watch is not None:
        watch(model, steps)
    return model.eval()


def known_patterns(ids: Tensor, known: Tensor) -> Bool[Tensor, "batch n n"]:
    """Return each sequence's ``induction_pattern``, in the rows whose next token is known."""
    patterns = torch.stack([induction_pattern(row) for row in ids])
    return patterns & known[..., None]


def pattern_scores(model: GPT, ids: Tensor, patterns: Tensor) -> Float[Tensor, "layers heads"]:
    """Return the ``head_scores`` of a pattern for each sequence, averaged over the sequences."""
    maps = attention_maps(model, ids)
    scores = [
        head_scores(map_of_row, pattern) for map_of_row, pattern in zip(maps, patterns, strict=True)
    ]
    return torch.stack(scores).mean(dim=0)


@torch.no_grad()
def price_list(model: GPT, ids: Tensor, known: Tensor) -> Float[Tensor, "layers heads"]:
    """Return by how much ``piece_loss`` rises without each head, in nats."""
    whole = piece_loss(model(ids), ids, known)
    return torch.stack(
        [
            torch.stack(
                [
                    piece_loss(ablate(model, layer, head)(ids), ids, known) - whole
                    for head in range(block.attention.n_heads)
                ]
            )
            for layer, block in enumerate(model.blocks)
        ]
    )
