"""Chapter 5's recall with few features in the keys: a softmax against a product of features.

All runs of a contestant, every rate and every seed, are trained side by side as one batch of
models: Adam treats each number by itself, so none hears of the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.tasks.adam import Adam
from attncourse.tasks.recall import recall

D_MODEL, DIGITS = 26, 10


class Lookers(nn.Module):
    """``runs`` heads side by side, each with its own W_q, W_k (26, d_k) and W_v (26, 10).

    The last token asks the eight others; what comes back are logits of the ten digits.
    """

    W_q: nn.Parameter
    W_k: nn.Parameter
    W_v: nn.Parameter

    def __init__(self, attention: Callable, d_k: int, seeds: Sequence[int]):
        super().__init__()
        self.attention = attention
        drawn = [torch.Generator().manual_seed(seed) for seed in seeds]
        for name, d in (("W_q", d_k), ("W_k", d_k), ("W_v", DIGITS)):
            start = [
                torch.randn(D_MODEL, d, generator=generator) / D_MODEL**0.5 for generator in drawn
            ]
            self.register_parameter(name, nn.Parameter(torch.stack(start)))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits ``(runs, batch, 10)`` for x ``(runs, batch, 9, 26)``."""
        W_q, W_k, W_v = (W.unsqueeze(1) for W in (self.W_q, self.W_k, self.W_v))
        asking, pairs = x[..., 8:, :], x[..., :8, :]
        return self.attention(asking @ W_q, pairs @ W_k, pairs @ W_v).squeeze(-2)


@dataclass
class Recalled:
    """The best rate, the share of right answers of each seed at it, and the heads of those runs."""

    rate: float
    right: list[float]
    heads: Lookers

    @property
    def median(self) -> float:
        """The median of the runs' shares of right answers."""
        return sorted(self.right)[len(self.right) // 2]


def batch_of(runs: int, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return each run's own sequences ``(runs, size, 9, 26)`` and answers ``(runs, size)``."""
    x, answer = recall(runs * size, generator)
    return x.unflatten(0, (runs, size)), answer.view(runs, size)


def losses_by_run(logits: Tensor, answer: Tensor) -> Tensor:
    """Return the mean loss of each run, ``(runs,)``, in nats."""
    each = F.cross_entropy(logits.flatten(0, 1), answer.flatten(), reduction="none")
    return each.view(answer.shape).mean(1)


def learn(
    attention: Callable,
    d_k: int,
    *,
    rates: Sequence[float] = (0.1, 0.3, 1.0),
    seeds: int = 3,
    steps: int = 200,
    batch: int = 32,
    tested: int = 2000,
) -> Recalled:
    """Train heads with Adam at each rate from each seed; return those at the best rate, tested.

    The best rate has the least mean loss over the last tenth of the steps.
    """
    groups = [Lookers(attention, d_k, range(seeds)) for _ in rates]
    optimizers = [Adam(g.parameters(), rate) for g, rate in zip(groups, rates, strict=True)]
    generator = torch.Generator().manual_seed(0)
    last = torch.zeros(len(rates))
    for step in range(steps):
        x, answer = batch_of(seeds, batch, generator)
        losses = torch.stack(
            [losses_by_run(group(x), answer) for group in groups]
        )  # (rates, seeds)
        for adam in optimizers:
            adam.zero_grad()
        losses.sum().backward()
        for adam in optimizers:
            adam.step()
        if step >= steps - max(1, steps // 10):
            last += losses.detach().mean(1)
    best = int(last.nan_to_num(nan=torch.inf).argmin())
    with torch.no_grad():
        x, answer = batch_of(seeds, tested, torch.Generator().manual_seed(1000))
        right = (groups[best](x).argmax(-1) == answer).float().mean(1)
    return Recalled(rates[best], right.tolist(), groups[best])
