"""Blocks of a transformer: in training, after ``eval()``, and with an activation by name.

Random numbers come from a seed of the caller's own, so that an answer that is wrong by chance is
wrong in the same way each time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attncourse.checks.callers.modules import build_module, call_module
from attncourse.checks.trying.outcome import is_tensor, plain_tensor

SEED, MANY = 12, 32
NOTE_IF_MANY = " (none of them where they are many)"


def call_module_in_training(implementation: Callable, make, method: str, inputs, **tensors):
    """Load the module's weights and return its output in training mode."""
    with torch_seeded():
        return call_module(implementation, make, method, inputs, **tensors)


def call_module_in_evaluation(implementation: Callable, make, method: str, inputs, **tensors):
    """Load the module's weights and return its output after ``eval()``."""

    def built(*args, **options):
        return implementation(*args, **options).eval()

    with torch_seeded():
        return call_module(built, make, method, inputs, **tensors)


def call_module_activated(implementation: Callable, make, method: str, inputs, **tensors):
    """Return the output of a module whose option ``activation`` is given by name.

    The function is taken here, beside the submission, so that gradients flow through it.
    """
    from torch.nn import functional as F  # chapters on NumPy do without

    args, options = make
    named = {**options, "activation": getattr(F, options["activation"])}
    return call_module(implementation, (args, named), method, inputs, **tensors)


def added_in_training(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """Return which numbers a module in training adds to its first input: each once, in order.

    For branches whose outputs are one number everywhere, dropout leaves few different sums, the
    same whatever its random numbers are. None are told where there are many.
    """
    with torch_seeded():
        module, values = build_module(implementation, make, inputs, tensors)
        numbers = distinct_if_few(branch_output(module.train(), values).mul(1e6).round().div(1e6))
    return {f"the numbers that are added to x{NOTE_IF_MANY}": numbers}


def multiplied_in_training(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """Return by what a module in training multiplies the numbers that it adds without dropout.

    Where one branch alone adds something, and dropout falls on what it returns, that is 0 or
    1 / (1 − share). None are told where there are many. What ``eval()`` does is not asked here: a
    module that stays random there makes one mistake, and loses one criterion.
    """
    args, options = make
    with torch_seeded():
        calm, values = build_module(
            implementation, (args, options | {"dropout": 0.0}), inputs, tensors
        )
        without = branch_output(calm, values)
        module, values = build_module(implementation, make, inputs, tensors)
        factors = distinct_if_few(
            branch_output(module.train(), values).div(without).mul(1e4).round().div(1e4)
        )
    return {f"by what they are multiplied in training{NOTE_IF_MANY}": factors}


def branch_output(module: Callable, values: list) -> Any:
    """Return the module's output minus its first input: what a residual branch adds."""
    output = module(*values)
    return ((plain_tensor(output) if is_tensor(output) else output) - values[0]).detach()


def distinct_if_few(numbers: Any) -> Any:
    """Return each of some numbers once, in order; none where they are many."""
    different = numbers.unique()
    return different[: 0 if len(different) > MANY else None]


@contextmanager
def torch_seeded() -> Iterator[None]:
    """Give torch random numbers from this seed in the block, and those of before behind it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        yield
