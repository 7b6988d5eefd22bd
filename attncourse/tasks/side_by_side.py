"""Several runs of one model at once: every seed at every rate, as one batch of models.

A small model spends most of a step on starting its operations. Runs that differ in their weights
alone share them: each weight gets an axis for the runs in front, and each run its own batches.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from attncourse.tasks.training import Result, Run, Task, accuracy, classes, last_loss


def train_side_by_side(
    build: Callable[[], nn.Module],
    task: Task,
    *,
    rates: Sequence[float],
    seeds: int = 3,
    steps: int = 100,
    batch: int = 32,
    factor: Callable[[int], float] = lambda step: 1.0,
) -> dict[float, list[Run]]:
    """``train`` from every seed at every rate: the runs by rate, in the order of the seeds.

    The runs are those that ``train`` makes, up to rounding. factor: what every rate is multiplied
    by at a step, counted from 1. The model may not draw random numbers.
    """
    models = [started(build, seed) for _ in rates for seed in range(seeds)]
    generators = [torch.Generator().manual_seed(seed) for _ in rates for seed in range(seeds)]
    rate = torch.tensor(rates).repeat_interleave(seeds)[:, None]  # (runs, 1)
    names = [name for name, _ in models[0].named_parameters()]
    flat = torch.stack([nn.utils.parameters_to_vector(m.parameters()) for m in models]).detach()
    sizes = [p.numel() for p in models[0].parameters()]
    leaves = [
        part.unflatten(1, p.shape).detach().requires_grad_()  # in the memory of flat
        for part, p in zip(flat.split(sizes, 1), models[0].parameters(), strict=True)
    ]
    together = vmap(lambda weights, x: functional_call(models[0], weights, (x,)))
    mean, square = torch.zeros_like(flat), torch.zeros_like(flat)  # of the gradients, by Adam
    seen = []
    for step in range(1, steps + 1):
        x, answer = (
            torch.stack(one) for one in zip(*(task(batch, g) for g in generators), strict=True)
        )
        output = together(dict(zip(names, leaves, strict=True)), x)
        judged = [classes(*one) for one in zip(output, answer, strict=True)]
        losses = torch.stack([loss for loss, _ in judged])
        grads = torch.autograd.grad(losses.sum(), leaves)  # no run shares a weight
        grad = torch.cat([g.flatten(1) for g in grads], dim=1)
        mean.lerp_(grad, 0.1)
        square.lerp_(grad.square(), 0.001)
        size = (square / (1 - 0.999**step)).sqrt() + 1e-8
        flat -= rate * factor(step) * mean / (1 - 0.9**step) / size
        right = torch.stack([hit.float().mean() for _, hit in judged])
        seen.append(torch.stack([right, losses.detach()]))
    curves = torch.stack(seen, dim=-1).tolist()  # right and loss, runs, steps
    for model, weights in zip(models, flat, strict=True):
        nn.utils.vector_to_parameters(weights, model.parameters())
    runs = [Run(*one) for one in zip(models, *curves, strict=True)]
    return {rate: runs[i * seeds : (i + 1) * seeds] for i, rate in enumerate(rates)}


def started(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The model as ``train`` begins with it."""
    torch.manual_seed(seed)
    return build()


def best(by_rate: dict[float, list[Run]], task: Task, sequences: int = 500) -> Result:
    """The runs at the rate whose last losses are least, as ``contest`` chooses it."""
    rate = min(by_rate, key=lambda rate: sum(map(last_loss, by_rate[rate])))
    runs = by_rate[rate]
    return Result(rate, runs, [accuracy(run.model, task, sequences) for run in runs])


def reached(run: Run, share: float = 0.9, over: int = 10) -> int | None:
    """The first step by which so many answers were right, on average over some steps; or None."""
    right: Tensor = torch.tensor(run.right).unfold(0, over, 1).mean(1)
    there = (right >= share).nonzero()
    return int(there[0]) + over if len(there) else None
