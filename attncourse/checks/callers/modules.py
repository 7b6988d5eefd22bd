"""Modules: build them, load weights of our own, call them, and differentiate what they return."""

from collections.abc import Callable
from typing import Any

from attncourse.checks.callers.calls import gradients_of_sum
from attncourse.checks.trying.outcome import Unusable, is_tensor, plain_tensor


def type_built(implementation: Callable, *args, **kwargs) -> str:
    """Return the name of the class of the object that the implementation builds."""
    return type(implementation(*args, **kwargs)).__name__


def call_module(implementation: Callable, make, method: str, inputs, **tensors) -> Any:
    """Return the output of a module with its weights loaded.

    ``make`` holds its arguments and options, ``method`` is called on it ("" for the module itself),
    ``inputs`` names the tensors that the call gets; all other tensors are weights.
    """
    module, values = build_module(implementation, make, inputs, tensors)
    return (getattr(module, method) if method else module)(*values)


def call_module_twice(
    implementation: Callable, make, method: str, inputs, others, **tensors
) -> dict[str, Any]:
    """Return one module's outputs for the inputs, for others, and for the first inputs again."""
    names = (*inputs, *others)
    module, values = build_module(implementation, make, names, tensors)
    call = getattr(module, method) if method else module
    first, second = values[: len(inputs)], values[len(inputs) :]
    return {
        name: call(*arguments)
        for name, arguments in zip(NAMES_OF_CALLS, (first, second, first), strict=True)
    }


NAMES_OF_CALLS = ("the first call", "the second call", "the first call once more")


def call_module_with_gradients(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """Return the output, and its gradients for all weights and inputs of real numbers."""
    module, values = build_module(implementation, make, inputs, tensors)
    values = [leaf_of(value) for value in values]
    output = (getattr(module, method) if method else module)(*values)
    return {
        "the output": output,
        **gradients_of_sum(output, gradient_leaves(module, inputs, values, tensors)),
    }


def call_module_with_each_gradient(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """Return output and gradients, with a call for each gradient, in which all others are frozen.

    If none were frozen, an answer that cuts off one could still pass on gradients through others.
    """
    module, values = build_module(implementation, make, inputs, tensors)
    values = [leaf_of(value) for value in values]
    leaves = gradient_leaves(module, inputs, values, tensors)
    results: dict[str, Any] = {}
    for name, leaf in leaves.items():
        for each_leaf in leaves.values():
            each_leaf.requires_grad_(each_leaf is leaf)
        output = (getattr(module, method) if method else module)(*values)
        results |= {"the output": output, **gradients_of_sum(output, {name: leaf})}
    return results


def parameters_at_start(implementation: Callable, make, names) -> dict[str, Any]:
    """Return the named parameters of a new module; ``Unusable`` if one is missing."""
    args, options = make
    parameters = module_state(implementation(*args, **options))
    for name in names:
        if name not in parameters:
            raise Unusable(missing_parameter(name, parameters))
    return {name: plain_tensor(parameters[name]) for name in names}


def varied_at_start(tensors: dict[str, Any]) -> dict[str, bool]:
    """Return, for each parameter of a new module, whether its numbers look random.

    They do if there are more than two different ones, and no two rows are equal.
    """
    return {
        f"{name} holds random numbers at the start": x.unique().numel() > 2
        and len(x.unique(dim=0)) == len(x)
        for name, x in ((name, plain_tensor(value)) for name, value in tensors.items())
    }


def gradient_leaves(module: Any, inputs, values: list, tensors: dict[str, Any]) -> dict[str, Any]:
    """Return, by name, the inputs that require a gradient, and the loaded weights."""
    input_leaves = {
        name: value
        for name, value in zip(inputs, values, strict=True)
        if is_tensor(value) and value.requires_grad
    }
    parameters = type_of_modules().named_parameters(module)
    return input_leaves | {name: p for name, p in parameters if name in tensors}


def leaf_of(value: Any) -> Any:
    """Return a tensor of real numbers as a new leaf that requires a gradient; others unchanged."""
    real = is_tensor(value) and value.is_floating_point()
    return value.detach().requires_grad_() if real else value


def build_module(
    implementation: Callable, make, inputs, tensors: dict[str, Any]
) -> tuple[Any, list]:
    """Return the module that ``make`` describes, with its weights loaded, and its call's inputs."""
    args, options = make
    module = implementation(*args, **options)
    load_weights(module, {name: value for name, value in tensors.items() if name not in inputs})
    return module, [tensors[name] for name in inputs]


def load_weights(module: Any, state: dict[str, Any]) -> None:
    """Make the tensors a module's parameters, in their own dtype; ``Unusable`` if they do not fit.

    A module may have buffers of its own, but no further parameters: nothing would set them. torch's
    methods are called on the class, so that an answer cannot override them.
    """
    Module, parameters = type_of_modules(), module_state(module)
    for name, value in state.items():
        if name not in parameters:
            raise Unusable(missing_parameter(name, parameters))
        if parameters[name].shape != value.shape:
            raise Unusable(
                f"your module has {name} of shape {tuple(parameters[name].shape)}, "
                f"expected {tuple(value.shape)}"
            )
    named_parameters = dict(Module.named_parameters(module))
    n_learned = sum(p.numel() for p in named_parameters.values() if p.requires_grad)
    n_expected = sum(value.numel() for value in state.values())
    if n_learned > n_expected:
        extra = ", ".join(name for name in named_parameters if name not in state)
        raise Unusable(f"your module has parameters that nobody asked for: {extra}")
    if n_learned < n_expected:
        raise Unusable(
            f"your module learns {n_learned} numbers, expected {n_expected}: do two names share "
            "one layer, or is a weight not an nn.Parameter?"
        )
    for name, value in state.items():
        set_parameter(module, name, value)


def set_parameter(module: Any, name: str, value: Any) -> None:
    """Make a tensor a module's parameter or buffer: quicker than ``load_state_dict``."""
    from torch import nn

    owner, _, last = name.rpartition(".")
    place = nn.Module.get_submodule(module, owner)
    if last in place._buffers:
        place._buffers[last] = value
    else:
        old = place._parameters[last]
        place._parameters[last] = nn.Parameter(value, old is not None and old.requires_grad)


def module_state(module: Any) -> dict[str, Any]:
    """Return a module's parameters and buffers, by name; ``Unusable`` for what is no module."""
    Module = type_of_modules()
    if not isinstance(module, Module):
        raise Unusable(f"built {type(module).__name__}, which is not a torch.nn.Module")
    return Module.state_dict(module)


def missing_parameter(name: str, parameters: dict[str, Any]) -> str:
    """Return the sentence on a parameter that is not among a module's ``parameters``."""
    has = f"it has {', '.join(parameters)}" if parameters else "it has none"
    return f"your module has no parameter {name}; {has}"


def type_of_modules() -> type:
    """Return ``torch.nn.Module``, imported here: chapters on NumPy do without torch."""
    import torch

    return torch.nn.Module
