"""Training for the pages: a task, contestants, several seeds, each contestant at its best rate.

A task is a function ``task(batch, generator)`` that returns inputs and the right answers, class
numbers of shape ``(batch, asked)``; the last ``asked`` rows of a model's output answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Task = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


def count_parameters(module: nn.Module) -> int:
    """How many numbers a module learns; one that several layers share counts once."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"module: expected an nn.Module, got {type(module).__name__}")
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


@dataclass
class Run:
    """One training: the model, the share of right answers and the loss (in nats) by step."""

    model: nn.Module
    right: list[float]
    losses: list[float]


def train(
    build: Callable[[], nn.Module],
    task: Task,
    *,
    rate: float,
    steps: int = 300,
    batch: int = 64,
    seed: int = 0,
) -> Run:
    """A model trained on fresh batches with Adam; equal arguments give equal runs.

    Right answers and loss are those of a batch before the step that learns from it, so they are
    measured on sequences the model has not seen.
    """
    torch.manual_seed(seed)
    model, generator = build(), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    run = Run(model, [], [])
    for _ in range(steps):
        x, answer = task(batch, generator)
        logits = model(x)[:, -answer.shape[1] :]  # (batch, asked, classes)
        loss = F.cross_entropy(logits.flatten(0, 1), answer.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.right.append((logits.argmax(-1) == answer).float().mean().item())
        run.losses.append(loss.item())
    return run


@torch.no_grad()
def accuracy(model: nn.Module, task: Task, sequences: int = 5000, seed: int = 1000) -> float:
    """The share of right answers on sequences that the model was not trained on, 0 to 1."""
    x, answer = task(sequences, torch.Generator().manual_seed(seed))
    logits = model.eval()(x)[:, -answer.shape[1] :]
    return (logits.argmax(-1) == answer).float().mean().item()


@dataclass
class Result:
    """A contestant's runs, one a seed, at the rate whose runs end with the least loss."""

    rate: float
    runs: list[Run]
    accuracies: list[float]

    @property
    def median(self) -> float:
        return sorted(self.accuracies)[len(self.accuracies) // 2]


def contest(
    task: Task,
    contestants: dict[str, Callable[[], nn.Module]],
    *,
    rates: Sequence[float] = (0.003, 0.01, 0.03),
    seeds: int = 3,
    sequences: int = 5000,
    **training,
) -> dict[str, Result]:
    """Every contestant trained at every rate from every seed, and shown at its best rate.

    The rate is chosen by the loss over the last tenth of the steps, on the mean of the seeds;
    accuracies are of ``sequences`` that neither training nor this choice has seen.
    """
    results = {}
    for name, build in contestants.items():
        by_rate = {
            rate: [train(build, task, rate=rate, seed=seed, **training) for seed in range(seeds)]
            for rate in rates
        }
        rate = min(by_rate, key=lambda rate: sum(map(last_loss, by_rate[rate])))
        runs = by_rate[rate]
        results[name] = Result(rate, runs, [accuracy(run.model, task, sequences) for run in runs])
    return results


def last_loss(run: Run) -> float:
    """The mean loss over the last tenth of the steps; a loss that is not finite counts as worst."""
    last = torch.tensor(run.losses[-max(1, len(run.losses) // 10) :])
    return last.nan_to_num(nan=torch.inf).mean().item()
