"""Chapter 19: random tokens said twice, with and without the heads that look at what came next.

Nothing but the first time tells what comes the second time.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from attncourse.circuits import Head, without_heads
from attncourse.interpret import (
    attention_maps,
    head_scores,
    induction_pattern,
    previous_token_pattern,
)
from attncourse.llama import Llama
from attncourse.tasks.pronoun_heads import draw_heads, head_name

LENGTH, ROWS = 40, 4


def twice(n_vocab: int, seed: int, length: int = LENGTH, rows: int = ROWS) -> Int[Tensor, "r n"]:
    """Return rows of different random tokens, each said twice."""
    generator = torch.Generator().manual_seed(seed)
    once = torch.stack([torch.randperm(n_vocab, generator=generator)[:length] for _ in range(rows)])
    return torch.cat([once, once], dim=-1)


@torch.no_grad()
def both_times(model: Llama, ids: Int[Tensor, "r n"]) -> Float[Tensor, "2"]:
    """Return nats a token the first time and the second, the first token of each left out."""
    loss = F.cross_entropy(model(ids)[:, :-1].mT, ids[:, 1:], reduction="none")  # (r, n − 1)
    half = ids.shape[-1] // 2
    return torch.stack([loss[:, : half - 1].mean(), loss[:, half:].mean()])


def induction_scores(model: Llama, ids: Int[Tensor, "r n"]) -> Float[Tensor, "l h"]:
    """Return how much each head looks at what came after the same token, averaged over the rows."""
    scores = [head_scores(attention_maps(model, row), induction_pattern(row)) for row in ids]
    return torch.stack(scores).mean(0)


def previous_scores(model: Llama, ids: Int[Tensor, "r n"]) -> Float[Tensor, "l h"]:
    """Return how much each head looks at the token before, averaged over the rows."""
    pattern = previous_token_pattern(ids.shape[-1])
    return torch.stack([head_scores(attention_maps(model, row), pattern) for row in ids]).mean(0)


def measure_repeats(
    model: Llama,
    seeds: Sequence[int] = range(5),
    draws: int = 10,
    n_off: Sequence[int] = (1, 2, 4, 8, 16),
) -> dict:
    """Measure repeats, as the page shows them. Heads are chosen on other rows than those tried."""
    n_vocab = model.config.n_vocab
    chosen_on = twice(n_vocab, seed=1000)
    scores = induction_scores(model, chosen_on)
    previous = previous_scores(model, chosen_on)
    n_heads = scores.shape[-1]
    order = scores.flatten().argsort(descending=True).tolist()
    every: list[Head] = [divmod(i, n_heads) for i in range(scores.numel())]
    best = [every[i] for i in order[: max(n_off)]]
    before = [every[i] for i in previous.flatten().argsort(descending=True).tolist()[:3]]
    runs = [twice(n_vocab, seed) for seed in seeds]

    def tried(heads: Sequence[Head]) -> list[list[float]]:
        with without_heads(model, heads):
            return [[round(x, 3) for x in both_times(model, ids).tolist()] for ids in runs]

    return {
        "scores": [[round(x, 3) for x in row] for row in scores.tolist()],
        "heads": [head_name(head) for head in best],
        "as_it_is": tried([]),
        "without": {str(n): tried(best[:n]) for n in n_off},
        "previous": {
            head_name(head): {"score": round(previous[head].item(), 3), "nats": tried([head])}
            for head in before
        },
        "random": {
            str(n): [
                {"heads": [head_name(head) for head in drawn], "nats": tried(drawn)}
                for drawn in draw_heads(every, best, n, draws)
            ]
            for n in n_off
            if n >= 4
        },
    }
