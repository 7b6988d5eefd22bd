"""Blocks of a transformer: in training, after ``eval()``, and with an activation by name.

Random numbers come from a seed of the caller's own, so that an answer that is wrong by chance is
wrong in the same way each time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attncourse.checks.callers.modules import build_module, call_module
from attncourse.checks.trying.outcome import is_tensor, plain_tensor

SEED, MAX_NUMBERS = 12, 32
NOTE_IF_MANY = " (none of them where they are many)"


def call_module_in_training(implementation: Callable, make, method: str, inputs, **tensors):
    """Return the output, in training mode, of the module with its weights loaded."""
    with seed_torch():
        return call_module(implementation, make, method, inputs, **tensors)


def call_module_in_evaluation(implementation: Callable, make, method: str, inputs, **tensors):
    """Return the output, after ``eval()``, of the module with its weights loaded."""

    def build_for_evaluation(*args, **options):
        """Return the module that the implementation builds, in evaluation mode."""
        return implementation(*args, **options).eval()

    with seed_torch():
        return call_module(build_for_evaluation, make, method, inputs, **tensors)


def call_module_activated(implementation: Callable, make, method: str, inputs, **tensors):
    """Return the output of a module whose option ``activation`` is named: "relu", for example.

    The function of that name is looked up in this process, the submission's: through one that was
    called across the processes no gradient would flow.
    """
    from torch.nn import functional as F  # chapters on NumPy do without

    args, options = make
    changed_options = {**options, "activation": getattr(F, options["activation"])}
    return call_module(implementation, (args, changed_options), method, inputs, **tensors)


def added_in_training(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """Return the different numbers, sorted, that a module in training adds to its first input.

    If every branch returns one number everywhere, dropout leaves few different sums, and the same
    ones for all random numbers. Where they are more than ``MAX_NUMBERS``, none are returned.
    """
    with seed_torch():
        module, values = build_module(implementation, make, inputs, tensors)
        numbers = distinct_if_few(branch_output(module.train(), values).mul(1e6).round().div(1e6))
    return {f"the numbers that are added to x{NOTE_IF_MANY}": numbers}


def multiplied_in_training(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """Return the different factors, sorted, by which dropout multiplies what a module adds.

    If only one branch adds something, and dropout is applied to its output, they are 0 and
    1 / (1 − share). Where they are more than ``MAX_NUMBERS``, none are returned. The numbers
    without dropout come from a module with the option 0, not from ``eval()``: one that stays random
    after ``eval()`` makes one mistake and is to lose one criterion.
    """
    args, options = make
    with seed_torch():
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
    """Return the different numbers, sorted; an empty tensor for more than ``MAX_NUMBERS``."""
    different = numbers.unique()
    return different[:0] if len(different) > MAX_NUMBERS else different


@contextmanager
def seed_torch() -> Iterator[None]:
    """Seed torch's numbers with ``SEED`` inside the ``with`` block, and restore them after it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        yield
