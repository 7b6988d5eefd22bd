"""Adam for small models: one row of numbers in place of a step for each parameter.

``torch.optim`` makes a page wait. Its first optimizer loads torch's compiler, for more than a
second, and every step starts its operations for each parameter anew, which small models feel.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor


class Adam:
    """Adam on parameters and their gradients, which it lays into one row of memory each.

    rate: a number, or one for each of several runs side by side, ``(runs,)``; then the first axis
    of every parameter is the runs'. decay: how much of itself every number loses in a step, times
    the rate (AdamW). Parameters that need no gradient stay as they are. Sources: Kingma and Ba
    (2015), Adam: A Method for Stochastic Optimization, algorithm 1; Loshchilov and Hutter (2019),
    Decoupled Weight Decay Regularization.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        rate: float | Sequence[float],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        decay: float = 0.0,
    ):
        parameters = [p for p in parameters if p.requires_grad]
        self.betas, self.eps, self.decay, self.steps = betas, eps, decay, 0
        self.numbers = torch.cat([p.detach().flatten() for p in parameters])
        self.gradient, self.mean, self.square = (torch.zeros_like(self.numbers) for _ in range(3))
        sizes = [p.numel() for p in parameters]
        rows = (row.split(sizes) for row in (self.numbers, self.gradient))
        for p, numbers, gradient in zip(parameters, *rows, strict=True):
            p.data, p.grad = numbers.view(p.shape), gradient.view(p.shape)
        self.rate: float | Tensor = (
            rate if isinstance(rate, float | int) else rates_per_number(rate, sizes)
        )

    def zero_grad(self) -> None:
        """Set all gradients to 0."""
        self.gradient.zero_()

    @torch.no_grad()
    def step(self, factor: float = 1.0) -> None:
        """Change the parameters in place by their gradients, at so many times the rate."""
        self.steps += 1
        first, second = (1 - beta**self.steps for beta in self.betas)  # of the means, so far
        self.mean.lerp_(self.gradient, 1 - self.betas[0])
        self.square.mul_(self.betas[1])
        self.square.addcmul_(self.gradient, self.gradient, value=1 - self.betas[1])
        size = self.square.sqrt().add_(self.eps * second**0.5)
        width = factor * second**0.5 / first
        if self.decay:
            self.numbers *= 1 - factor * self.decay * self.rate
        if isinstance(self.rate, Tensor):
            self.numbers.addcdiv_(self.rate * self.mean, size, value=-width)
        else:
            self.numbers.addcdiv_(self.mean, size, value=-width * self.rate)


def rates_per_number(rates: Sequence[float] | Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the rate of each number: every parameter has as many for each of the runs."""
    rates = torch.as_tensor(rates)
    return torch.cat([rates.repeat_interleave(size // len(rates)) for size in sizes])
