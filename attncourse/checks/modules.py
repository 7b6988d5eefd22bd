"""Cases for torch code: tensors, and modules with weights of our own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attncourse.checks.drivers import call_module
from attncourse.checks.exercise import Case

State = dict[str, torch.Tensor]


def tensor(values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A floating-point tensor of a NumPy array or of nested lists."""
    return torch.tensor(np.asarray(values), dtype=dtype)


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
