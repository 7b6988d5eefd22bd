"""Several runs of one model at once: every seed at every rate, as one batch of models.

A small model spends most of a step on starting its operations. Runs that differ in their weights
alone share them: each weight gets an axis for the runs in front. Runs of one seed, which differ in
their rates alone, also share their batches.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from attncourse.tasks.adam import Adam
from attncourse.tasks.runs import UNASKED, Judge, Run, Task, classes, started


def train_side_by_side(
    build: Callable[[], nn.Module],
    task: Task,
    *,
    rates: Sequence[float],
    seeds: int = 3,
    steps: int = 100,
    batch: int = 32,
    judge: Judge = classes,
    factor: Callable[[int], float] = lambda step: 1.0,
) -> dict[float, list[Run]]:
    """Run ``train`` from every seed at every rate; return the runs by rate, in seeds' order.

    The runs are those that ``train`` makes, up to rounding. factor: what every rate is multiplied
    by at a step, counted from 1. The model may not draw random numbers, nor do one thing or another
    by the numbers that it reads.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in range(seeds)]
    models = [started(build, seed) for _ in rates for seed in range(seeds)]
    starts = [dict(model.named_parameters()) for model in models]
    weights = {
        name: torch.stack([start[name].detach() for start in starts]).requires_grad_(learns)
        for name, learns in ((name, weight.requires_grad) for name, weight in starts[0].items())
    }
    adam = Adam(weights.values(), [rate for rate in rates for _ in range(seeds)])
    names = {parameter: name for name, parameter in starts[0].items()}
    everywhere = models[0].named_parameters(remove_duplicate=False)  # one may have two names
    place = {name: names[parameter] for name, parameter in everywhere}

    def judged(weights: dict[str, Tensor], x: Tensor | tuple, answer: Tensor):
        weights_of_run = {name: weights[first] for name, first in place.items()}
        output = functional_call(models[0], weights_of_run, x, tie_weights=False)
        loss, right = judge(output, answer)
        return loss, right.float().mean()

    together = vmap(judged)
    seen = []
    for step in range(1, steps + 1):
        x, answer = stack_runs([task(batch, weight) for weight in generators], len(rates))
        losses, right = together(weights, x, answer)
        adam.zero_grad()
        losses.sum().backward()  # no run shares a weight, so each gets its own gradient
        adam.step(factor(step))
        seen.append(torch.stack([right, losses.detach()]))
    curves = torch.stack(seen, dim=-1).unbind(1)  # of right answers and losses, one pair a run
    for i, start in enumerate(starts):
        for name, parameter in start.items():
            parameter.data = weights[name].detach()[i].clone()
    runs = [Run(model, *curve.tolist()) for model, curve in zip(models, curves, strict=True)]
    return {rate: runs[i * seeds : (i + 1) * seeds] for i, rate in enumerate(rates)}


def stack_runs(batches: list[tuple], times: int) -> tuple[Tensor | tuple, Tensor]:
    """Return the seeds' batches with an axis for the runs in front, all of them so many times."""
    x, answers = zip(*batches, strict=True)
    answers = stacked(answers, times, UNASKED)
    if isinstance(x[0], Tensor):
        return stacked(x, times), answers
    return tuple(stacked(part, times) for part in zip(*x, strict=True)), answers


def stacked(batches: Sequence[Tensor], times: int, padding: int = 0) -> Tensor:
    """Return ``(times · seeds, batch, n, …)``; shorter sequences are padded behind."""
    longest = max(batch.shape[1] for batch in batches)
    whole = [
        F.pad(batch, (0, 0) * (batch.ndim - 2) + (0, longest - batch.shape[1]), value=padding)
        if batch.shape[1] < longest
        else batch
        for batch in batches
    ]
    return torch.stack(whole * times)
