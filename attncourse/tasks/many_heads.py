"""Many heads trained side by side on associative recall, to see what their divisor does.

The task is `recall` (a few pairs of a letter and a digit, and a letter whose digit is asked for).
Runs share nothing: each has its own first weights and its own data, along a leading axis ``runs``.
"""

import math
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.tasks.adam import Adam
from attncourse.tasks.recall import ASKED, DIGITS, LETTERS, recall

RUNS = 10


def questions(
    batch: int, generator: torch.Generator, runs: int = RUNS
) -> tuple[Tensor, Tensor, Tensor]:
    """Return fresh recall for each run: what is asked, the pairs, and the right digits.

    Of shape ``(runs, batch, 1, 8)``, ``(runs, batch, 8, 18)`` and ``(runs, batch)``.
    """
    x, answer = recall(runs * batch, generator)  # (runs · batch, 9, 26)
    x = x.unflatten(0, (runs, batch))
    pairs = x[..., :8, LETTERS.start : DIGITS.stop]
    return x[..., 8:, ASKED], pairs, answer.view(runs, batch)


class Lesson:
    """The questions of a training by step: the same for every model with as many runs."""

    def __init__(self, batch: int, runs: int, seed: int):
        self.batch, self.runs = batch, runs
        self.generator = torch.Generator().manual_seed(seed)
        self.steps: list[tuple[Tensor, Tensor, Tensor]] = []

    def at(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``questions`` for a step, counted from 0; each is drawn when it is first needed.

        Features are 0 or 1. They are kept as booleans, a quarter of the size.
        """
        while len(self.steps) <= step:
            questioned, pairs, answer = questions(self.batch, self.generator, self.runs)
            self.steps.append((questioned.bool(), pairs.bool(), answer))
        questioned, pairs, answer = self.steps[step]
        return questioned.float(), pairs.float(), answer


lesson = cache(Lesson)  # chapter 7 trains with one seed, some twenty times


def views(x: Tensor, W: Tensor) -> Tensor:
    """Return every run's x ``(runs, batch, i, f)`` times its own matrix W ``(runs, f, d)``."""
    return torch.einsum("rbif,rfd->rbid", x, W)


def vector_lengths(x: Tensor, W: Tensor) -> Tensor:
    """Return the lengths of the vectors x W, ``(runs, batch, i, 1)``, without making them."""
    return (views(x, W @ W.mT) * x).sum(-1, keepdim=True).sqrt()


class Heads(nn.Module):
    """One head for each run: the letter makes the query, a pair makes a key and ten logits.

    divisor: what scores are divided by. size: the standard deviation of the entries of the first
    queries and keys. normalised: queries and keys are brought to length 1. learned: the divisor is
    only where it starts; each run learns its logarithm, ``log_divisor``.
    """

    def __init__(
        self,
        d_k: int,
        divisor: float,
        *,
        size: float = 1.0,
        normalised: bool = False,
        learned: bool = False,
        runs: int = RUNS,
    ):
        super().__init__()

        def normal(features: int, d: int, std: float) -> nn.Parameter:
            return nn.Parameter(std * torch.randn(runs, features, d))

        self.W_q = normal(8, d_k, size)  # one feature is 1
        self.W_k = normal(18, d_k, size / math.sqrt(2))  # two features are 1
        self.W_v = normal(18, 10, 0.1)
        self.normalised = normalised
        start = torch.full((runs, 1, 1, 1), math.log(divisor))
        self.log_divisor = nn.Parameter(start, requires_grad=learned)

    def scores(self, questioned: Tensor, pairs: Tensor) -> Tensor:
        """Return the scores before they are divided, ``(runs, batch, 1, 8)``."""
        # (asked W_q) (pairs W_k)ᵀ, multiplied out from the middle: the same in fewer steps, since
        # letters and pairs have far fewer features than queries and keys.
        scores = views(questioned, self.W_q @ self.W_k.mT) @ pairs.mT
        if self.normalised:
            scores = scores / (
                vector_lengths(questioned, self.W_q) * vector_lengths(pairs, self.W_k).mT
            )
        return scores

    def weights(self, questioned: Tensor, pairs: Tensor) -> Tensor:
        """Return the attention weights, ``(runs, batch, 1, 8)``."""
        return (self.scores(questioned, pairs) / self.log_divisor.exp()).softmax(-1)

    def forward(self, questioned: Tensor, pairs: Tensor) -> Tensor:
        """Return logits of the ten digits, ``(runs, batch, 10)``."""
        return (self.weights(questioned, pairs) @ views(pairs, self.W_v))[:, :, 0]


def train_heads(
    model: Heads,
    rate: float,
    *,
    steps: int = 200,
    batch: int = 32,
    seed: int = 1,
    divisor_rate: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Train heads with Adam; return right answers and loss (in nats) by step, ``(runs, steps)``.

    Measured on each fresh batch before the step that learns from it. divisor_rate: the learning
    rate of ``log_divisor``, where it is another.
    """
    taught = lesson(batch, len(model.W_q), seed)
    optimizers = [Adam([model.W_q, model.W_k, model.W_v], rate)]
    if model.log_divisor.requires_grad:
        optimizers.append(Adam([model.log_divisor], divisor_rate or rate))
    seen = []
    for step in range(steps):
        questioned, pairs, answer = taught.at(step)
        logits = model(questioned, pairs)
        loss = F.cross_entropy(logits.mT, answer, reduction="none").mean(1)  # (runs,)
        for adam in optimizers:
            adam.zero_grad()
        loss.sum().backward()  # no run shares a weight, so each gets its own gradient
        for adam in optimizers:
            adam.step()
        right = (logits.argmax(-1) == answer).float().mean(1)
        seen.append(torch.stack([right, loss.detach()]))
    right, losses = torch.stack(seen, dim=-1)
    return right, losses
