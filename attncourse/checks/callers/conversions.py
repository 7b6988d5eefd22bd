"""Functions that make one module of another: what it holds, and what it returns."""

from collections.abc import Callable
from typing import Any

from attncourse.checks.callers.modules import type_of_modules
from attncourse.checks.trying.outcome import Unusable, is_tensor, plain_tensor


def parameters_made(implementation: Callable, names, **tensors) -> dict[str, Any]:
    """Return the named parameters of the module that the implementation makes of another one.

    The other module is built of the tensors (``module_of``). Raises ``Unusable`` for a missing
    parameter, and for one with other numbers at a second call, as if it had never been filled.
    """
    first, second = (state_of(implementation(module_of(tensors))) for _ in range(2))
    for name in names:
        if name not in first or name not in second:
            has = ", ".join(first) or "none"
            raise Unusable(f"the module you return has no parameter {name}; it has {has}")
        if not equal_tensors(first[name], second[name]):
            raise Unusable(
                f"{name} of the module you return holds other numbers at every call: the random "
                "ones that it was built with?"
            )
    return {name: first[name].detach().clone() for name in names}


def output_of_made(implementation: Callable, inputs, **tensors) -> Any:
    """Return the output of the module that the implementation makes of another one.

    ``inputs`` names the tensors that it is called on; the other module is built of the rest. Raises
    ``Unusable`` for a second conversion's other output.
    """
    values = [tensors.pop(name) for name in inputs]
    first, second = (implementation(module_of(tensors)) for _ in range(2))
    state_of(first)  # raises ``Unusable`` for what is no module
    state_of(second)
    output = first(*values)
    if is_tensor(output) and not equal_tensors(output, second(*values)):
        raise Unusable("the module you return gives other numbers whenever it is made")
    return output


def shared_by_made(implementation: Callable, **tensors) -> list[str]:
    """Return the names of the tensors whose memory the module that is made of them shares."""
    state = state_of(implementation(module_of(tensors)))
    addresses = {plain_tensor(value).untyped_storage().data_ptr() for value in state.values()}
    return [name for name, x in tensors.items() if x.untyped_storage().data_ptr() in addresses]


def state_of(module_or_dict: Any) -> dict[str, Any]:
    """Return a module's parameters and buffers by name; ``Unusable`` for what is no module."""
    Module = type_of_modules()
    if not isinstance(module_or_dict, Module):
        raise Unusable(f"returned {type(module_or_dict).__name__}, which is not a torch.nn.Module")
    return Module.state_dict(module_or_dict)


def equal_tensors(a: Any, b: Any) -> bool:
    """True if two tensors are equal; NaN counts as equal to NaN."""
    a, b = plain_tensor(a), plain_tensor(b)
    return a.shape == b.shape and bool(((a == b) | (a != a) & (b != b)).all())


def module_of(state: dict[str, Any]) -> Any:
    """Return a module that is nothing but linear layers, nested as the tensors' names say.

    ``heads.0.W_q.weight`` is the weight of a layer ``W_q`` in the first module of a list ``heads``.
    The tensors themselves become the parameters, without a copy.
    """
    from torch import nn

    if "weight" in state:
        d_out, d_in = state["weight"].shape
        layer = nn.Linear(d_in, d_out, bias="bias" in state)
        layer.load_state_dict(state, assign=True)
        return layer
    parts: dict[str, dict[str, Any]] = {}
    for name, tensor in state.items():
        first, _, rest_of_name = name.partition(".")
        parts.setdefault(first, {})[rest_of_name] = tensor
    children = {name: module_of(part) for name, part in parts.items()}
    if all(name.isdigit() for name in children):
        return nn.ModuleList(children.values())
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module
