"""Cases for torch code: tensors, and modules with weights that the case loads."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attncourse.checks.callers import (
    call_module,
    call_module_twice,
    call_module_with_each_gradient,
    parameters_at_start,
    varied_at_start,
)
from attncourse.checks.exercise import Case, Rng
from attncourse.checks.writing.cases import CaseTable, Row, is_zero

State = dict[str, torch.Tensor]


def tensor(values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return an array or nested lists as a floating-point tensor."""
    return torch.tensor(np.asarray(values), dtype=dtype)


def normal_tensor(rng: Rng, *shape: int) -> torch.Tensor:
    """Return a tensor of normally distributed numbers."""
    return tensor(rng.normal(size=shape))


def uniform_values(rng: Rng, *shape: int) -> torch.Tensor:
    """Return a tensor of numbers between −1 and 1, so that scores stay below 50."""
    return tensor(rng.uniform(-1, 1, shape))


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
    others: State | None = None,
) -> Case:
    """Return a case that builds ``name(*args, **options)``, loads ``state`` and calls it.

    ``method`` is called in place of the module itself. With ``others``, inputs of a second call, it
    is called three times (``call_module_twice``). ``use`` is the caller, chosen so unless given.
    """
    options, others = options or {}, others or {}
    built = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())])
    called = f".{method}" if method else ""
    arguments = ", ".join("None" if value is None else key for key, value in inputs.items())
    call_text = f"{name}({built}){called}({arguments})"
    second = {"others": tuple(others)} if others else {}
    return Case(
        kwargs={"make": (args, options), "method": method, "inputs": tuple(inputs)}
        | second
        | inputs
        | others
        | state,
        use=use or (call_module_twice if others else call_module),
        note=note,
        shown=f"{call_text}, then ({', '.join(others)}) and ({', '.join(inputs)})"
        if others
        else call_text,
    )


def start_case(name: str, sizes: tuple[int, ...], *parameters: str) -> Case:
    """Return a case that builds ``name(*sizes)`` and asks whether these parameters are random."""
    return Case(
        kwargs={"make": (sizes, {}), "names": parameters},
        use=parameters_at_start,
        facts=varied_at_start,
        note="as it is when it is new",
        shown=f"{name}({', '.join(map(str, sizes))})",
    )


@dataclass(frozen=True)
class ModuleTable(CaseTable):
    """The cases of a module: ``spec`` are the inputs of its call.

    ``build`` names the axes whose lengths the constructor gets; one that a row does not name is
    left out. ``state(rng, *sizes, **options)`` draws the weights for the constructor's arguments.
    """

    name: str = ""
    build: str = ""
    state: Callable[..., State] = dict

    def case(self, rng: Rng, row: Row) -> Case:
        """Return the case that builds the module of a row, loads drawn weights and calls it."""
        args = tuple(row.sizes[axis] for axis in self.build.split() if axis in row.sizes)
        state = {
            name: (torch.zeros_like(weight) if is_zero(name, row) else weight).to(
                getattr(torch, row.dtype)
            )
            for name, weight in self.state(rng, *args, **row.options).items()
        }
        return module_case(
            self.name,
            args,
            state,
            self.arguments(rng, {**self.spec, **row.arguments}, row),
            options=dict(row.options),
            method=row.method,
            use=row.use,
            note=row.note,
            others=self.second_inputs(rng, row),
        )

    def second_inputs(self, rng: Rng, row: Row) -> State:
        """Return the inputs of a second call, without a batch, named ``…_2``; {} without one."""
        if row.then is None:
            return {}
        second_row = replace(row, sizes={**row.sizes, **row.then}, batch=())
        drawn = self.arguments(rng, self.spec, second_row)
        return {f"{name}_2": value for name, value in drawn.items()}

    @property
    def axes(self) -> list[str]:
        """Return the names of the axes of inputs and constructor, each once."""
        return list(dict.fromkeys([*super().axes, *self.build.split()]))

    @property
    def each_gradient(self) -> Callable:
        """Return the caller for the gradient with respect to each input and weight by itself."""
        return call_module_with_each_gradient
