"""How cases use an implementation: call it, take its gradients, build a module and call that.

A grader runs these beside the submission, in its process, and finds them by name: a case's ``use``
is one of ``DRIVERS``, or a ``partial`` of one. They know no right answer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attncourse.checks.compare import wrong_type
from attncourse.checks.exercise import call_it
from attncourse.checks.outcome import Unusable, is_tensor


def dtype_of(implementation: Callable, *args, **kwargs) -> str:
    """The name of the dtype of what the implementation returns."""
    return str(np.asarray(implementation(*args, **kwargs)).dtype)


def call_in_default_dtype(implementation: Callable, *args, **kwargs) -> Any:
    """What the implementation returns; float64 where torch's default is less, rounded to that."""
    import torch

    value = implementation(*args, **kwargs)
    wide = is_tensor(value) and value.dtype == torch.float64
    return value.to(torch.get_default_dtype()) if wide else value


def with_gradients(*names: str) -> Callable:
    """``call_with_gradients`` with respect to the first arguments, which have these names."""
    return partial(call_with_gradients, names)


def call_with_gradients(
    names: tuple[str, ...], implementation: Callable, *args, **kwargs
) -> dict[str, Any]:
    """The output, and its gradients with respect to the first arguments, by name."""
    leaves = [arg.detach().requires_grad_() for arg in args[: len(names)]]
    output = implementation(*leaves, *args[len(names) :], **kwargs)
    return {"the output": output, **gradients(output, dict(zip(names, leaves, strict=True)))}


def gradients(output: Any, leaves: dict[str, Any]) -> dict[str, Any]:
    """The gradients of a fixed weighted sum of the output, "the gradient of …" each leaf."""
    import torch

    if not is_tensor(output):
        raise Unusable(wrong_type(output, "a torch tensor"))
    weights = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype).reshape(output.shape)
    found: tuple = (None,) * len(leaves)
    if output.requires_grad:
        # A number as the output: with weights beside it, torch would load sympy to compare shapes.
        total = (output * weights).sum()
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    for name, gradient in zip(leaves, found, strict=True):
        if gradient is None:
            raise Unusable(
                f"no gradient reaches {name}: is there a .detach(), a .numpy() or a "
                "torch.no_grad() on the way, or is it not used at all?"
            )
    return {f"the gradient of {name}": g for name, g in zip(leaves, found, strict=True)}


def call_module(implementation: Callable, make, method: str, inputs, **tensors) -> Any:
    """What the module, its weights loaded, returns."""
    module, values = prepare(implementation, make, inputs, tensors)
    return (getattr(module, method) if method else module)(*values)


def call_module_with_gradients(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """The output, and its gradients with respect to the first input and every weight."""
    module, (first, *others) = prepare(implementation, make, inputs, tensors)
    first = first.detach().requires_grad_()
    output = (getattr(module, method) if method else module)(first, *others)
    named = type_of_modules().named_parameters(module)
    learned = {name: p for name, p in named if name in tensors}
    return {"the output": output, **gradients(output, {inputs[0]: first, **learned})}


def prepare(implementation: Callable, make, inputs, tensors: dict[str, Any]) -> tuple[Any, list]:
    """The module that ``make`` describes, with its weights loaded, and the inputs to call it on."""
    args, options = make
    module = implementation(*args, **options)
    load(module, {name: value for name, value in tensors.items() if name not in inputs})
    return module, [tensors[name] for name in inputs]


def load(module: Any, state: dict[str, Any]) -> None:
    """Loads the weights, in their own dtype. Raises ``Unusable``, in words, where they do not fit.

    A module may hold buffers of its own; further parameters, which nobody would set, may not be.
    A method of the same name that the answer defines has no say in it.
    """
    Module = type_of_modules()
    if not isinstance(module, Module):
        raise Unusable(f"built {type(module).__name__}, which is not a torch.nn.Module")
    own = Module.state_dict(module)
    has = f"it has {', '.join(own)}" if own else "it has none"
    for name, value in state.items():
        if name not in own:
            raise Unusable(f"your module has no parameter {name}; {has}")
        if own[name].shape != value.shape:
            raise Unusable(
                f"your module has {name} of shape {tuple(own[name].shape)}, "
                f"expected {tuple(value.shape)}"
            )
    parameters = [parameter for _, parameter in Module.named_parameters(module)]
    learned = sum(p.numel() for p in parameters if p.requires_grad)
    wanted = sum(value.numel() for value in state.values())
    if learned > wanted:
        extra = ", ".join(name for name in own if name not in state)
        raise Unusable(f"your module has parameters that nobody asked for: {extra}")
    if learned < wanted:
        raise Unusable(
            f"your module learns {learned} numbers, expected {wanted}: do two names share one "
            "layer, or is a weight not an nn.Parameter?"
        )
    Module.load_state_dict(module, state, strict=False, assign=True)


def type_of_modules() -> type:
    """``torch.nn.Module``; chapters on NumPy do without torch."""
    import torch

    return torch.nn.Module


DRIVERS = {
    f.__name__: f
    for f in (
        call_it,
        dtype_of,
        call_in_default_dtype,
        call_with_gradients,
        call_module,
        call_module_with_gradients,
    )
}
