"""How checks use torch code: functions with their gradients, modules with weights of our own.

These drivers construct a class, load a state dict, call the module or one of its methods, read
its parameters and take gradients. They do nothing else with an implementation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attncourse.checks.compare import wrong_type
from attncourse.checks.exercise import Case
from attncourse.checks.outcome import Unusable

State = dict[str, torch.Tensor]


def tensor(values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A floating-point tensor of a NumPy array or of nested lists."""
    return torch.tensor(np.asarray(values), dtype=dtype)


def with_gradients(*names: str) -> Callable:
    """A driver: the output, and its gradients with respect to the first arguments, by name."""

    def use(implementation: Callable, *args, **kwargs) -> dict[str, torch.Tensor]:
        leaves = [arg.detach().requires_grad_() for arg in args[: len(names)]]
        output = implementation(*leaves, *args[len(names) :], **kwargs)
        return {
            "the output": output,
            **gradients(output, dict(zip(names, leaves, strict=True))),
        }

    return use


def gradients(output: Any, leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The gradients of a fixed weighted sum of the output, "the gradient of …" each leaf."""
    if not isinstance(output, torch.Tensor):
        raise Unusable(wrong_type(output, "a torch tensor"))
    weights = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype).reshape(output.shape)
    found: tuple = (None,) * len(leaves)
    if output.requires_grad:
        found = torch.autograd.grad(output, list(leaves.values()), weights, allow_unused=True)
    for name, gradient in zip(leaves, found, strict=True):
        if gradient is None:
            raise Unusable(
                f"no gradient reaches {name}: is there a .detach(), a .numpy() or a "
                "torch.no_grad() on the way, or is it not used at all?"
            )
    return {f"the gradient of {name}": g for name, g in zip(leaves, found, strict=True)}


def module_case(
    name: str,
    args: tuple,
    state: State,
    inputs: State,
    *,
    options: dict[str, Any] | None = None,
    method: str = "",
    use: Callable | None = None,
    note: str = "",
) -> Case:
    """A case that builds ``name(*args, **options)``, loads ``state`` and calls it on ``inputs``.

    ``method`` is called in place of the module itself. ``use`` is ``call_module`` unless given.
    """
    options = options or {}
    built = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())])
    called = f".{method}" if method else ""
    return Case(
        kwargs={"make": (args, options), "method": method, "inputs": tuple(inputs)}
        | inputs
        | state,
        use=use or call_module,
        note=note,
        shown=f"{name}({built}){called}({', '.join(inputs)})",
    )


def call_module(implementation: Callable, make, method: str, inputs, **tensors) -> Any:
    """A driver: what the module, its weights loaded, returns."""
    module, values = prepare(implementation, make, inputs, tensors)
    return (getattr(module, method) if method else module)(*values)


def call_module_with_gradients(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, torch.Tensor]:
    """A driver: the output, and its gradients with respect to the first input and every weight."""
    module, (first, *others) = prepare(implementation, make, inputs, tensors)
    first = first.detach().requires_grad_()
    output = (getattr(module, method) if method else module)(first, *others)
    learned = {k: v for k, v in module.named_parameters() if k in tensors}
    return {"the output": output, **gradients(output, {inputs[0]: first, **learned})}


def prepare(implementation: Callable, make, inputs, tensors: State) -> tuple[Any, list]:
    """The module that ``make`` describes, with its weights loaded, and the inputs to call it on."""
    args, options = make
    module = implementation(*args, **options)
    load(module, {name: value for name, value in tensors.items() if name not in inputs})
    return module, [tensors[name] for name in inputs]


def load(module: Any, state: State) -> None:
    """Loads the weights, in their own dtype. Raises ``Unusable``, in words, where they do not fit.

    A module may hold buffers of its own; further parameters, which nobody would set, may not be.
    """
    if not isinstance(module, torch.nn.Module):
        raise Unusable(f"built {type(module).__name__}, which is not a torch.nn.Module")
    own = module.state_dict()
    has = f"it has {', '.join(own)}" if own else "it has none"
    for name, value in state.items():
        if name not in own:
            raise Unusable(f"your module has no parameter {name}; {has}")
        if own[name].shape != value.shape:
            raise Unusable(
                f"your module has {name} of shape {tuple(own[name].shape)}, "
                f"expected {tuple(value.shape)}"
            )
    learned = sum(p.numel() for p in module.parameters() if p.requires_grad)
    wanted = sum(value.numel() for value in state.values())
    if learned > wanted:
        extra = ", ".join(name for name in own if name not in state)
        raise Unusable(f"your module has parameters that nobody asked for: {extra}")
    if learned < wanted:
        raise Unusable(
            f"your module learns {learned} numbers, expected {wanted}: do two names share one "
            "layer, or is a weight not an nn.Parameter?"
        )
    module.load_state_dict(state, strict=False, assign=True)
