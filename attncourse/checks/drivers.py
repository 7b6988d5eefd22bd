"""How cases use an implementation: call it, differentiate it, build or convert a module with it.

A grader runs these beside the submission, in its process, and finds them by name: a case's ``use``
is one of ``DRIVERS``, or a ``partial`` of one. They know no right answer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attncourse.checks.compare import as_numbers, wrong_type
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


def call_module_with_all_gradients(
    implementation: Callable, make, method: str, inputs, **tensors
) -> dict[str, Any]:
    """The output, and its gradients with respect to every input but masks and every weight."""
    module, values = prepare(implementation, make, inputs, tensors)
    values = [v.detach().requires_grad_() if v.is_floating_point() else v for v in values]
    output = (getattr(module, method) if method else module)(*values)
    given = {name: v for name, v in zip(inputs, values, strict=True) if v.requires_grad}
    named = type_of_modules().named_parameters(module)
    learned = {name: p for name, p in named if name in tensors}
    return {"the output": output, **gradients(output, given | learned)}


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


def typical_sizes(implementation: Callable, calls, seeds) -> np.ndarray:
    """How large the random numbers are that the implementation returns: one size for each call.

    It is called as ``implementation(*call, seed)``. The size is the mean over the seeds, rounded
    to a power of 2, so that right answers with other random numbers agree; it is 0 where the
    seeds do not even agree on the sign.
    """
    return np.array([rounded(values_of(implementation, call, seeds)) for call in calls])


def rounded(values: np.ndarray) -> float:
    """The mean, rounded to a power of 2; 0 where the values have not one sign."""
    mean = float(values.mean())
    if not np.isfinite(mean):
        return mean
    if abs(np.sign(values).sum()) < len(values):
        return 0.0
    return float(np.sign(mean) * 2.0 ** round(np.log2(abs(mean))))


def repeated(implementation: Callable, call, seeds) -> dict[str, bool]:
    """Whether the seed, the last argument, and nothing else decides what is returned."""
    values, again = (values_of(implementation, call, seeds) for _ in range(2))
    return {
        "calls with equal seeds return the same number": bool((values == again).all()),
        "calls with other seeds return other numbers": len(set(values)) > 1,
    }


def scattered(implementation: Callable, call, seeds) -> dict[str, bool]:
    """Whether the numbers that different seeds return differ much or little."""
    values = values_of(implementation, call, seeds)
    low, high = float(values.min()), float(values.max())
    return {f"{len(values)} seeds agree within a factor of 2": 0 < low and high < 2 * low}


def values_of(implementation: Callable, call, seeds) -> np.ndarray:
    """The number that ``implementation(*call, seed)`` returns, for each seed."""
    values = []
    for seed in seeds:
        value = implementation(*call, seed)
        number = as_numbers(value)
        if number is None:
            raise Unusable(wrong_type(value, "a number"))
        if number.shape:
            raise Unusable(f"returned shape {number.shape}, expected one number")
        values.append(float(number))
    return np.array(values)


def type_of_modules() -> type:
    """``torch.nn.Module``; chapters on NumPy do without torch."""
    import torch

    return torch.nn.Module


def call_on_function(implementation: Callable, kind: str, *args, **tensors) -> Any:
    """The implementation on a function of a sequence, ``FUNCTIONS[kind]`` with these tensors.

    The function is made here, beside the submission: through one of the checker's own, which is
    called across the processes, no gradient would flow.
    """
    return implementation(partial(FUNCTIONS[kind], **tensors), *args)


def linear_mix(x: Any, A: Any, W: Any) -> Any:
    """A x W, of shape (..., m, d') for x (..., n, d)."""
    return A @ x @ W


def squashed_mix(x: Any, A: Any, W: Any) -> Any:
    """tanh(A x W)."""
    return (A @ x @ W).tanh()


def mixed_product(x: Any, A: Any, B: Any) -> Any:
    """(A x) · (B x), entry by entry."""
    return (A @ x) * (B @ x)


def small_attention(x: Any, W_q: Any, W_k: Any, W_v: Any, allowed: Any) -> Any:
    """softmax(x W_q (x W_k)ᵀ) x W_v, over the allowed keys."""
    scores = x @ W_q @ (x @ W_k).mT
    return scores.masked_fill(~allowed, -float("inf")).softmax(-1) @ (x @ W_v)


def small_attention_masked_late(x: Any, W_q: Any, W_k: Any, W_v: Any, allowed: Any) -> Any:
    """The same, but masked after the softmax: softmax(x W_q (x W_k)ᵀ) · allowed, times x W_v."""
    weights = (x @ W_q @ (x @ W_k).mT).softmax(-1) * allowed
    return weights @ (x @ W_v)


FUNCTIONS = {
    f.__name__: f
    for f in (
        linear_mix,
        squashed_mix,
        mixed_product,
        small_attention,
        small_attention_masked_late,
    )
}

def type_built(implementation: Callable, *args, **kwargs) -> str:
    """The name of the type of what is built."""
    return type(implementation(*args, **kwargs)).__name__


def parameters_made(implementation: Callable, names, **tensors) -> dict[str, Any]:
    """The parameters of these names in the module that the implementation makes of another one.

    The other one is built of the tensors (``module_of``). Raises ``Unusable`` for a parameter that
    is not there, and for one that differs from call to call, as one does that was never filled.
    """
    made, again = (state_of(implementation(module_of(tensors))) for _ in range(2))
    for name in names:
        if name not in made or name not in again:
            has = ", ".join(made) or "none"
            raise Unusable(f"the module you return has no parameter {name}; it has {has}")
        if not same_numbers(made[name], again[name]):
            raise Unusable(
                f"{name} of the module you return holds other numbers at every call: the random "
                "ones that it was built with?"
            )
    return {name: made[name].detach().clone() for name in names}


def output_of_made(implementation: Callable, inputs, **tensors) -> Any:
    """What the module that the implementation makes of another one returns for the inputs."""
    values = [tensors.pop(name) for name in inputs]
    made, again = (implementation(module_of(tensors)) for _ in range(2))
    state_of(made), state_of(again)
    output = made(*values)
    if is_tensor(output) and not same_numbers(output, again(*values)):
        raise Unusable("the module you return gives other numbers whenever it is made")
    return output


def shared_by_made(implementation: Callable, **tensors) -> list[str]:
    """The tensors whose memory the module that the implementation makes of them goes on using."""
    made = state_of(implementation(module_of(tensors)))
    kept = {value.untyped_storage().data_ptr() for value in made.values()}
    return [name for name, x in tensors.items() if x.untyped_storage().data_ptr() in kept]


def state_of(made: Any) -> dict[str, Any]:
    """A module's parameters and buffers by name; ``Unusable`` for what is no module."""
    Module = type_of_modules()
    if not isinstance(made, Module):
        raise Unusable(f"returned {type(made).__name__}, which is not a torch.nn.Module")
    return Module.state_dict(made)


def same_numbers(a: Any, b: Any) -> bool:
    """Whether two tensors are equal, a NaN being equal to itself."""
    return a.shape == b.shape and bool(((a == b) | (a != a) & (b != b)).all())


def module_of(state: dict[str, Any]) -> Any:
    """A module of linear layers and nothing else, at the places that the tensors' names say.

    ``heads.0.W_q.weight`` is the weight of a layer ``W_q`` in the first module of a list ``heads``.
    The tensors themselves become the parameters.
    """
    from torch import nn

    if "weight" in state:
        d_out, d_in = state["weight"].shape
        layer = nn.Linear(d_in, d_out, bias="bias" in state)
        layer.load_state_dict(state, assign=True)
        return layer
    parts: dict[str, dict[str, Any]] = {}
    for name, tensor in state.items():
        first, _, rest = name.partition(".")
        parts.setdefault(first, {})[rest] = tensor
    children = {name: module_of(part) for name, part in parts.items()}
    if all(name.isdigit() for name in children):
        return nn.ModuleList(children.values())
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


DRIVERS = {
    f.__name__: f
    for f in (
        call_it,
        dtype_of,
        call_with_gradients,
        call_module,
        call_module_with_gradients,
        call_module_with_all_gradients,
        call_on_function,
        typical_sizes,
        repeated,
        scattered,
        call_in_default_dtype,
        type_built,
        parameters_made,
        output_of_made,
        shared_by_made,
    )
}
