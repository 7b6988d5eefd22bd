"""Modules for small cases: every matrix the identity, every bias 0, unless it is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import State, module_case

MATRICES_NOTE, BIASES_NOTE, GAINS_NOTE = (
    "every matrix is the identity",
    "every bias 0",
    "every gain 1",
)


def plain_values(shapes: dict[str, tuple[int, ...]], **factors: float) -> State:
    """Return parameters of these shapes: identities, zeros, and ones for gains.

    ``factors`` are by what some matrices and gains are multiplied, by their layers' names.
    """
    state = {}
    for name, shape in shapes.items():
        factor = factors.get(name.split(".")[-2], 1.0)
        if len(shape) == 2:
            value = torch.eye(*shape) * factor
        elif name.endswith("gain"):
            value = torch.ones(shape) * factor
        else:
            value = torch.zeros(shape)
        state[name] = value.double()
    return state


def plain_case(
    module: Callable,
    sizes: tuple[int, ...],
    inputs: dict[str, Any],
    note: str = "",
    options: dict[str, Any] | None = None,
    **factors: float,
) -> Case:
    """Return the case of a module of ours, of these sizes, with plain weights."""
    built_module = module(*sizes, **(options or {}))
    shapes = {name: tuple(p.shape) for name, p in built_module.named_parameters()}
    state = plain_values(shapes, **factors)
    notes = [MATRICES_NOTE]
    if any(name.endswith("bias") for name in shapes):
        notes.append(BIASES_NOTE)
    if any(name.endswith("gain") for name in shapes):
        notes.append(GAINS_NOTE)
    exceptions = [
        f"the gain of `{name}` is {factor:g}"
        if name.startswith("norm")
        else f"`{name}` is the identity times {factor:g}"
        for name, factor in factors.items()
    ]
    weights_note = ", ".join(notes)
    weights_note += f", except that {' and '.join(exceptions)}" if exceptions else ""
    return module_case(
        module.__name__,
        sizes,
        state,
        inputs,
        options=options,
        note=f"{weights_note}; {note}" if note else weights_note,
    )
