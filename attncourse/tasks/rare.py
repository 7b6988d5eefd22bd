"""One element in a set counts: to be found by its mark, among others that carry nothing but noise.

After the bags of Ilse, Tomczak and Welling (2018), Attention-based Deep Multiple Instance Learning,
section 4, of which a few instances decide; here it is one, and the noise has a known size, so that
the best possible probability of a right answer is known too.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.cross_attention import AttentionPooling
from attncourse.tasks.training import Task

KINDS, MARK, STRENGTH = 10, 10, 5.0  # features 0 … 9 say of what kind, feature 10 is the mark
HIDDEN_WIDTH = 17  # gives the two networks 384 and attention pooling 373 parameters


def rare(n: int, noise: float = 1.0) -> Task:
    """Return the task ``(batch, generator) -> x (batch, n, 11), kinds (batch, 1)`` for n elements.

    All features 0 … 9 are random numbers of variance 1. One element of the set has 5 added to that
    of the set's kind, and the mark 5; the mark of the others is 0. noise: the standard deviation
    of the features of the others, 1 unless given. Raises ``ValueError`` for an empty set.
    """
    if n < 1:
        raise ValueError(f"n: expected one element or more, got {n}")

    def task(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x = torch.randn(batch, n, KINDS + 1, generator=generator)
        where = torch.randint(n, (batch,), generator=generator)
        kind = torch.randint(KINDS, (batch,), generator=generator)
        sets = torch.arange(batch)
        others = torch.ones(batch, n, 1)
        others[sets, where] = 0
        x = torch.where(others > 0, noise * x, x)
        x[:, :, MARK] = 0
        x[sets, where, MARK] = STRENGTH
        x[sets, where, kind] += STRENGTH
        return x, kind[:, None]

    return task


class Mean(nn.Module):
    """The average of the elements: ``(..., n, d)`` to ``(..., 1, d)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean of the tokens."""
        return x.mean(dim=-2, keepdim=True)


class Sum(nn.Module):
    """The sum of the elements: ``(..., n, d)`` to ``(..., 1, d)``."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the tokens."""
        return x.sum(dim=-2, keepdim=True)


def mean_pooling(hidden: int = HIDDEN_WIDTH) -> nn.Sequential:
    """Return a model that averages first, and reads the mean with one hidden layer."""
    return nn.Sequential(Mean(), nn.Linear(KINDS + 1, hidden), nn.ReLU(), nn.Linear(hidden, KINDS))


def attention_pooling() -> nn.Sequential:
    """Return a model that pools with one learned question, and reads out in a line."""
    return nn.Sequential(AttentionPooling(KINDS + 1), nn.Linear(KINDS + 1, KINDS))


def layer_first(pool: Callable[[], nn.Module] = Mean) -> nn.Sequential:
    """Return ``mean_pooling`` with the pooling in the middle: a layer sees each element."""
    return nn.Sequential(
        nn.Linear(KINDS + 1, HIDDEN_WIDTH), nn.ReLU(), pool(), nn.Linear(HIDDEN_WIDTH, KINDS)
    )


@torch.no_grad()
def layer_by_hand() -> nn.Sequential:
    """Return ``layer_first`` whose weights silence the unmarked: relu(feature + 2·mark − 10)."""
    model: Any = layer_first()  # the layers of a Sequential have no types of their own
    for parameter in model.parameters():
        parameter.zero_()
    model[0].weight[:KINDS, :KINDS] = torch.eye(KINDS)
    model[0].weight[:KINDS, MARK] = 2.0
    model[0].bias[:KINDS] = -2 * STRENGTH
    model[3].weight[:, :KINDS] = torch.eye(KINDS)
    return model


def best_answer(ratio: float) -> float:
    """Return the largest probability of a right answer for a signal-to-noise ratio, 0.1 to 1.

    It is the probability that a normal number of mean ``ratio`` exceeds nine of mean 0, all of
    variance 1: ∫ φ(z) Φ(z + ratio)⁹ dz.
    """
    z = torch.linspace(-9, 9, 2001, dtype=torch.float64)
    bell = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + torch.erf((z + ratio) / math.sqrt(2)))
    return float((bell * below ** (KINDS - 1)).sum() * (z[1] - z[0]))


def share(score, n):
    """Return the weight of an element that scores ``score`` above n − 1 others that score alike."""
    return 1 / (1 + (n - 1) * math.e**-score)


def ratio(score, n):
    """Return signal to noise after attention pooling, for n ≥ 2; c/√n at a score of 0."""
    a = share(score, n)
    return STRENGTH * a / (a**2 + (1 - a) ** 2 / (n - 1)) ** 0.5


@torch.no_grad()
def share_found(model: Any, n: int, sets: int = 1000, seed: int = 3) -> Tensor:
    """Return the weight that ``attention_pooling`` gives the marked element, ``(sets,)``."""
    x, _ = rare(n)(sets, torch.Generator().manual_seed(seed))
    return model[0].weights(x)[:, 0][x[:, :, MARK] > 0]
