"""Shapes by signature: a decorated function refuses arguments that do not fit its annotations.

    @shaped(n="one column of A for each row of X")
    def mix(A: Float[np.ndarray, "*#batch m n"], X: Float[np.ndarray, "*#batch n d"]): ...

The annotations are jaxtyping's: an axis is as long wherever its name stands, and the axes of
``*#batch`` broadcast. They are read as text, once, when the function is defined.
"""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import numpy as np

from attncourse.support.arrays import as_floats, require_count, require_positive

Count = Annotated[int, "at least 1"]
Positive = Annotated[float, "finite and above 0"]
MAX_REMEMBERED_CALLS = 1000  # kept of one function
NUMBER_CHECKS = {Count: require_count, Positive: require_positive}


def shaped(function: Callable | None = None, /, **meanings: str) -> Callable:
    """Return the function, with a ``ValueError`` for arguments that its annotations rule out.

    It gets arrays as floating-point arrays and a ``Count`` as ``int``. Tensors have one dtype, in a
    method that of the parameters too. An axis that is called like an attribute of the object is as
    long as that says. ``meanings`` puts into words why arguments share an axis.
    """
    if function is None:
        return partial(shaped, **meanings)
    parameters = inspect.signature(function).parameters
    names = tuple(parameters)
    rules = {n: rule for n in names if (rule := rule_of(parameters[n].annotation))}
    axes = sorted(
        {axis for rule in rules.values() for alternative in rule.axes for axis in alternative}
    )
    agreed: set[tuple] = set()  # what has been seen to agree, which is the same call after call

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(zip(names, args, strict=False), **kwargs)
        if len(arguments) < len(args) + len(kwargs):  # too many, or one twice: Python's TypeError
            return function(*args, **kwargs)
        arrays = {}
        for name, rule in rules.items():
            if name in arguments and not (arguments[name] is None and rule.optional):
                arguments[name] = rule.take(name, arguments[name])
                if rule.axes:
                    arrays[name] = arguments[name], rule
        if arrays and (seen := in_short(arrays, arguments.get("self"), axes)) not in agreed:
            require_agreement(function.__qualname__, arrays, arguments.get("self"), meanings)
            if len(agreed) < MAX_REMEMBERED_CALLS:
                agreed.add(seen)
        return function(**arguments)

    return checked


class Rule(NamedTuple):
    """The demands of an annotation on an argument."""

    take: Callable[[str, Any], Any]  # returns the argument as the function gets it
    optional: bool = False
    axes: tuple[tuple[str, ...], ...] = ()  # from the last to the batch; a union's, longest first
    broadcasts: bool = False
    tensor: bool = False  # of numbers, which has a dtype to share


def rule_of(annotation: Any) -> Rule | None:
    """Return an annotation's demands; None for one that speaks of neither a number nor an array."""
    union = get_origin(annotation) in (Union, UnionType)
    kinds = get_args(annotation) if union else (annotation,)
    optional = NoneType in kinds
    if kinds[0] in NUMBER_CHECKS:
        return Rule(NUMBER_CHECKS[kinds[0]], optional)
    written = [kind.dim_str for kind in kinds if hasattr(kind, "dim_str")]
    axes = tuple(
        tuple(a for a in reversed(alternative.split()) if "*" not in a) for alternative in written
    )
    broadcasts = any("*#" in alternative for alternative in written)
    if written and kinds[0].__name__.startswith("Float"):
        take, tensor = as_floats, kinds[0].array_type is not np.ndarray
        if tensor:
            from attncourse.support.tensors import (
                require_float_tensor as take,  # torch is there already
            )
        text = " | ".join(written).replace("*#batch", "...").replace("*batch", "...")
        return Rule(partial(take, axes=text), optional, axes, broadcasts, tensor)
    if broadcasts:  # a mask: what else it must be is seen where the scores are
        return Rule(lambda name, mask: mask, optional, axes, broadcasts)
    return None


def in_short(arrays: dict, owner: Any, axes: list[str]) -> tuple:
    """Return all that decides whether arrays agree: shapes, dtypes, what the owner says."""
    arrays = {name: array for name, (array, _) in arrays.items()}
    array_facts = [
        (n, getattr(a, "shape", ()), getattr(a, "dtype", None)) for n, a in arrays.items()
    ]
    if owner is None:
        return tuple(array_facts)
    attributes = vars(owner)
    return (*array_facts, *dtype_of_first(owner).values(), *[attributes.get(axis) for axis in axes])


def dtype_of_first(owner: Any) -> dict[str, Any]:
    """Return the dtype of a module's first parameter by its name; nothing where there is none.

    As ``named_parameters`` has it, which makes lists of all modules first, at every call.
    """
    for name, parameter in owner._parameters.items():
        if parameter is not None:
            return {name: parameter.dtype}
    for module in owner._modules.values():
        if module is not None and (first_dtype := dtype_of_first(module)):
            return {"parameters": next(iter(first_dtype.values()))}
    return {}


def require_agreement(caller: str, arrays: dict, owner: Any, meanings: dict[str, str]) -> None:
    """Raise ``ValueError`` unless arrays have one dtype, one length an axis, batches that fit.

    Where the owner of the method has parameters or says how long an axis is, they agree with it.
    """
    shapes = {name: tuple(getattr(array, "shape", ())) for name, (array, _) in arrays.items()}
    dtypes = {name: array.dtype for name, (array, rule) in arrays.items() if rule.tensor}
    if dtypes and owner is not None:
        dtypes |= dtype_of_first(owner)
    if len(set(dtypes.values())) > 1:
        got = ", ".join(f"{name} of {dtype}" for name, dtype in dtypes.items())
        raise ValueError(f"expected one dtype, got {got}")

    lengths, first = vars(owner) if owner is not None else {}, {}
    for name, (_, rule) in arrays.items():
        shape = shapes[name]
        axes = next(
            (alternative for alternative in rule.axes if len(alternative) <= len(shape)), ()
        )
        for axis, length in zip(axes, reversed(shape), strict=False):
            if length != lengths.get(axis, length):
                raise ValueError(
                    f"{name}: expected {axis} = {lengths[axis]} features a token, got shape {shape}"
                )
            other, as_long = first.setdefault(axis, (name, length))
            if length != as_long and "#" not in axis:  # an axis of a mask may be 1 as well
                meaning = meanings.get(axis, f"the same {axis}")
                got = {n: f"{n} of shape {shapes[n]}" for n in (other, name)}
                raise ValueError(f"{caller}: expected {meaning}, got {' and '.join(got.values())}")

    batches = {n: shapes[n][: -len(r.axes[0])] for n, (_, r) in arrays.items() if r.broadcasts}
    if len(set(batches.values())) > 1:
        try:
            np.broadcast_shapes(*batches.values())
        except ValueError:
            got = ", ".join(f"{n} of shape {shapes[n]}" for n in batches)
            raise ValueError(f"expected batch axes that broadcast, got {got}") from None
