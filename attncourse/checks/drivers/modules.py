"""Modules: build them, load weights of our own, call them, and differentiate what they return."""

from collections.abc import Callable
from typing import Any

from attncourse.checks.drivers.calls import gradients
from attncourse.checks.outcome import Unusable, is_tensor


def type_built(implementation: Callable, *args, **kwargs) -> str:
    """The name of the type of what is built."""
    return type(implementation(*args, **kwargs)).__name__


def call_module(implementation: Callable, make, method: str, inputs, **tensors) -> Any:
    """What the module, its weights loaded, returns."""
    module, values = prepare(implementation, make, inputs, tensors)
    return (getattr(module, method) if method else module)(*values)


def call_module_with_gradients(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """The output, and its gradients with respect to every input but masks and every weight."""
    module, values = prepare(implementation, make, inputs, tensors)
    values = [leaf_of(value) for value in values]
    output = (getattr(module, method) if method else module)(*values)
    given = {
        name: value
        for name, value in zip(inputs, values, strict=True)
        if is_tensor(value) and value.requires_grad
    }
    named = type_of_modules().named_parameters(module)
    learned = {name: p for name, p in named if name in tensors}
    return {"the output": output, **gradients(output, given | learned)}


def leaf_of(value: Any) -> Any:
    """The value; a tensor of real numbers as one whose gradient is asked for."""
    real = is_tensor(value) and value.is_floating_point()
    return value.detach().requires_grad_() if real else value


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
