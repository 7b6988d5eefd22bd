"""A training and its results: what tasks, judges and runs are, however they are trained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Task = Callable[[int, torch.Generator], tuple[Tensor | tuple, Tensor]]
Judge = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
UNASKED = -100  # an answer that a task does not ask for, where a judge knows of it


def classes(output: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy, in nats, and which answers are right in all their parts.

    output: logits ``(batch, n, classes)``, or ``(batch, n, parts, classes)`` for answers of parts.
    Returns a number and True or False for each answer, ``(batch, asked)``.
    """
    logits = output[:, -answer.shape[1] :]
    loss = mean_surprise(logits, answer)
    parts = (logits.argmax(-1) == answer).reshape(*answer.shape[:2], -1)
    return loss, parts.all(dim=-1)


def mean_surprise(logits: Tensor, answer: Tensor) -> Tensor:
    """Return the mean cross-entropy of the answers but those that are `UNASKED`, in nats.

    It is ``F.cross_entropy``, which is Python code at every step of runs side by side
    (``torch.vmap``), and loads a computer algebra system the first time.
    """
    is_asked = answer != UNASKED
    right = logits.log_softmax(-1).gather(-1, answer.where(is_asked, 0)[..., None]).squeeze(-1)
    return (-right).where(is_asked, 0).sum() / is_asked.sum()


@dataclass
class Run:
    """One training: the model, the share of right answers and the loss (in nats) by step."""

    model: Any
    right: list[float]
    losses: list[float]


def started(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Return the model as a training with this seed begins."""
    torch.manual_seed(seed)
    return build()


def faded(step: int, steps: int) -> float:
    """Return the share of the rate at a step, from 1: it falls to 0 over the second half."""
    return min(1, 2 - 2 * (step - 1) / steps)


def reached(run: Run, share: float = 0.9, over: int = 10) -> int | None:
    """Return the first step by which so many answers were right on average, or None."""
    right: Tensor = torch.tensor(run.right).unfold(0, over, 1).mean(1)
    places = (right >= share).nonzero()
    return int(places[0]) + over if len(places) else None


def last_loss(run: Run) -> float:
    """Return the mean loss over the last tenth of the steps; one that is not finite is worst."""
    last = torch.tensor(run.losses[-max(1, len(run.losses) // 10) :])
    return last.nan_to_num(nan=torch.inf).mean().item()
