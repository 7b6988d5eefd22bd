"""Training for the pages: a task, contestants, several seeds, each contestant at its best rate.

A task is a function ``task(batch, generator)`` that returns inputs and the right answers, class
numbers of shape ``(batch, asked)``; the last ``asked`` rows of a model's output answer. An answer
of several parts is ``(batch, asked, parts)``. A task whose answers are no classes brings a judge of
its own, which returns a loss and how right each answer is, from 0 to 1. Inputs are one tensor, or
a tuple of what the model takes.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from attncourse.tasks.adam import Adam
from attncourse.tasks.bar import steps_bar
from attncourse.tasks.runs import Judge, Run, Task, classes, faded, last_loss, started
from attncourse.tasks.side_by_side import train_side_by_side


def count_parameters(module: nn.Module) -> int:
    """Return how many numbers a module learns; one that several layers share counts once."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"module: expected an nn.Module, got {type(module).__name__}")
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def train(
    build: Callable[[], nn.Module],
    task: Task,
    *,
    rate: float,
    steps: int = 300,
    batch: int = 64,
    seed: int = 0,
    judge: Judge = classes,
    fade: bool = False,
    show: bool = False,
) -> Run:
    """Return a model trained on fresh batches with Adam; equal arguments give equal runs.

    Right answers and loss are those of a batch before the step that learns from it, so they are
    measured on sequences the model has not seen. fade: the rate falls to 0 over the second half.
    show: a bar with steps, loss and seconds.
    """
    model, generator = started(build, seed), torch.Generator().manual_seed(seed)
    adam, run = Adam(model.parameters(), rate), Run(model, [], [])
    with steps_bar(steps) if show else nullcontext() as progress:
        for step in range(1, steps + 1):
            x, answer = task(batch, generator)
            loss, right = judge(call_model(model, x), answer)
            adam.zero_grad()
            loss.backward()
            adam.step(faded(step, steps) if fade else 1.0)
            run.right.append(right.float().mean().item())
            run.losses.append(loss.item())
            if progress is not None:
                progress.update(progress.task_ids[0], advance=1, loss=run.losses[-1])
    return run


@torch.no_grad()
def accuracy(
    model: nn.Module,
    task: Task,
    sequences: int = 5000,
    seed: int = 1000,
    judge: Judge = classes,
) -> float:
    """Return the share of right answers on sequences that the model was not trained on, 0 to 1."""
    x, answer = task(sequences, torch.Generator().manual_seed(seed))
    return judge(call_model(model.eval(), x), answer)[1].float().mean().item()


def call_model(model: nn.Module, x: Tensor | tuple) -> Tensor:
    """Return the model's output for one input, or for several."""
    return model(*x) if isinstance(x, tuple) else model(x)


@dataclass
class Result:
    """A contestant's runs, one a seed, at the rate whose runs end with the least loss."""

    rate: float
    runs: list[Run]
    accuracies: list[float]

    @property
    def median(self) -> float:
        """The median of the runs' accuracies."""
        return sorted(self.accuracies)[len(self.accuracies) // 2]


def contest(
    task: Task,
    contestants: dict[str, Callable[[], nn.Module]],
    *,
    rates: Sequence[float] = (0.003, 0.01, 0.03),
    seeds: int = 3,
    steps: int = 300,
    batch: int = 64,
    judge: Judge = classes,
    fade: bool = False,
    sequences: int = 5000,
) -> dict[str, Result]:
    """Train every contestant at every rate from every seed; return each at its best rate.

    The rate is chosen by the loss over the last tenth of the steps, on the mean of the seeds;
    accuracies are of ``sequences`` that neither training nor this choice has seen. What is trained
    are the runs of ``train``, all those of a contestant side by side.
    """
    factor = partial(faded, steps=steps) if fade else lambda step: 1.0
    more = {"steps": steps, "batch": batch, "judge": judge, "factor": factor}
    results = {}
    for name, build in contestants.items():
        by_rate = train_side_by_side(build, task, rates=rates, seeds=seeds, **more)
        rate = min(by_rate, key=lambda rate: sum(map(last_loss, by_rate[rate])))
        runs = by_rate[rate]
        right = [accuracy(run.model, task, sequences, judge=judge) for run in runs]
        results[name] = Result(rate, runs, right)
    return results
