"""Cases for torch code: tensors, and modules with weights of our own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attncourse.checks.drivers import call_module
from attncourse.checks.exercise import Case, Rng

State = dict[str, torch.Tensor]


def tensor(values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A floating-point tensor of a NumPy array or of nested lists."""
    return torch.tensor(np.asarray(values), dtype=dtype)


def normal(rng: Rng, *shape: int) -> torch.Tensor:
    return tensor(rng.normal(size=shape))


def spread(rng: Rng, *shape: int) -> torch.Tensor:
    """Numbers of order one between −1 and 1, for scores that stay below 50."""
    return tensor(rng.uniform(-1, 1, shape))


def with_hole(rng: Rng, *shape: int) -> torch.Tensor:
    """A random boolean mask in which every row allows some key and forbids another."""
    mask = torch.from_numpy(rng.random(shape) < 0.6)
    some = torch.from_numpy(rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1))
    mask[some == 0] = True
    mask[some == 1] = False
    return mask


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
