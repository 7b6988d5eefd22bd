"""Functions: call them, and differentiate what they return."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attncourse.checks.trying.compare import wrong_type
from attncourse.checks.trying.outcome import Unusable, is_tensor


def dtype_of(implementation: Callable, *args, **kwargs) -> str:
    """Return the name of the result's dtype: "float64", for example."""
    return str(np.asarray(implementation(*args, **kwargs)).dtype)


def call_in_default_dtype(implementation: Callable, *args, **kwargs) -> Any:
    """Return the implementation's result; float64 is rounded to torch's default dtype."""
    import torch

    value = implementation(*args, **kwargs)
    wide = is_tensor(value) and value.dtype == torch.float64
    return value.to(torch.get_default_dtype()) if wide else value


def with_gradients(*names: str) -> Callable:
    """Return a caller for the gradients with respect to the first arguments, named so."""
    return partial(call_with_gradients, names)


def each_gradient(**places: int) -> Callable:
    """Return a caller for one gradient at a time: ``query=0`` is that of the first argument."""
    return partial(call_with_each_gradient, tuple(places), tuple(places.values()))


def call_with_gradients(
    names: tuple[str, ...], implementation: Callable, *args, **kwargs
) -> dict[str, Any]:
    """Return the output, and its gradients with respect to the first arguments, by name."""
    return output_and_gradients(names, range(len(names)), implementation, args, kwargs)


def call_with_each_gradient(
    names: tuple[str, ...], places: tuple[int, ...], implementation: Callable, *args, **kwargs
) -> dict[str, Any]:
    """Return the output, and its gradient with respect to one argument after the other.

    In each call only one argument requires a gradient. If all did, an answer that cuts off one of
    them could still pass on gradients through the others.
    """
    results: dict[str, Any] = {}
    for name, place in zip(names, places, strict=True):
        results |= output_and_gradients((name,), (place,), implementation, args, kwargs)
    return results


def output_and_gradients(names, places, implementation: Callable, args, kwargs) -> dict[str, Any]:
    """Return the output, and its gradients with respect to the arguments at these places."""
    arguments = list(args)
    for place in places:
        arguments[place] = arguments[place].detach().requires_grad_()
    output = implementation(*arguments, **kwargs)
    leaves = {name: arguments[place] for name, place in zip(names, places, strict=True)}
    return {"the output": output, **gradients_of_sum(output, leaves)}


def gradients_of_sum(output: Any, leaves: dict[str, Any]) -> dict[str, Any]:
    """Return the gradients of a fixed weighted sum of the output by "the gradient of <leaf>".

    Raises ``Unusable`` for an output that is no tensor, and for a leaf that gets no gradient.
    """
    import torch

    if not is_tensor(output):
        raise Unusable(wrong_type(output, "a torch tensor"))
    weights = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype).reshape(output.shape)
    leaf_gradients: tuple = (None,) * len(leaves)
    if output.requires_grad:
        # A number as the output: with weights beside it, torch would load sympy to compare shapes.
        total = (output * weights).sum()
        leaf_gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    for name, gradient in zip(leaves, leaf_gradients, strict=True):
        if gradient is None:
            raise Unusable(
                f"no gradient reaches {name}: is there a .detach(), a .numpy() or a "
                "torch.no_grad() on the way, or is it not used at all?"
            )
    return {f"the gradient of {name}": g for name, g in zip(leaves, leaf_gradients, strict=True)}
