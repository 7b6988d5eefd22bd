"""Small cases of chapter 12: blocks of two or four features with plain weights."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks import callers
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import State, module_case, tensor
from attncourse.transformer import DecoderBlock, EncoderBlock, FeedForward
from drill_making.small_cases.modules import plain_case, plain_values

TWO = ((3, 1), (0, 2))
THREE = ((5, 1, 0), (2, 0, 4), (0, 3, 3))
MEMORY, LONGER = ((1, 4), (2, 0)), ((1, 0, 2), (0, 3, 0))
CAUSAL = ((1, 0), (1, 1))
POST = {"pre_norm": False}


def mask_of(rows: Any) -> torch.Tensor:
    """Return a mask of rows of 0 and 1."""
    return torch.tensor(rows).bool()


def encoders() -> list[Case]:
    """Return cases of ``EncoderBlock``: one head, then two of one feature, with and without."""
    cases = []
    for options in ({}, POST):
        x, mask = tensor(TWO), mask_of(CAUSAL)
        wide = tensor(THREE)
        cases += [
            plain_case(EncoderBlock, (2, 1, 2), {"x": x}, options=options),
            plain_case(EncoderBlock, (3, 1, 3), {"x": wide}, options=options),
            plain_case(EncoderBlock, (3, 1, 3), {"x": wide}, options=options, W_o=2.0, W_2=3.0),
            plain_case(EncoderBlock, (3, 1, 3), {"x": wide}, options=options, norm_2=2.0),
            plain_case(EncoderBlock, (3, 3, 3), {"x": wide}, options=options, W_o=2.0, W_2=3.0),
            plain_case(EncoderBlock, (2, 1, 2), {"x": x, "mask": mask}, options=options),
            plain_case(
                EncoderBlock,
                (3, 1, 3),
                {"x": wide, "mask": mask_of(((1, 0, 0), (1, 1, 0), (1, 1, 1)))},
                options=options,
                W_o=2.0,
            ),
        ]
    return [*cases, dropped(EncoderBlock, ("attention.W_o", "feed_forward.W_2"))]


def decoders() -> list[Case]:
    """Return cases of ``DecoderBlock``, the memory of another length or the same."""
    cases = []
    for options in ({}, POST):
        x, memory = tensor(TWO), tensor(MEMORY)
        wide, longer = tensor(THREE), tensor(LONGER)
        both = {"x": wide, "memory": longer}
        mask = mask_of(((1, 0, 0), (1, 1, 0), (1, 1, 1)))
        of_memory = mask_of(((1, 0), (0, 1), (1, 1)))
        cases += [
            plain_case(DecoderBlock, (2, 1, 2), {"x": x, "memory": memory}, options=options),
            plain_case(DecoderBlock, (3, 1, 3), both, options=options),
            plain_case(DecoderBlock, (3, 1, 3), both, options=options, W_o=2.0, W_2=3.0),
            plain_case(DecoderBlock, (3, 1, 3), both, options=options, norm_2=2.0, norm_3=3.0),
            plain_case(DecoderBlock, (3, 3, 3), both, options=options, W_o=2.0, W_2=3.0),
            plain_case(DecoderBlock, (3, 1, 3), both | {"mask": mask}, options=options, W_o=2.0),
            plain_case(
                DecoderBlock,
                (3, 1, 3),
                both | {"mask": None, "memory_mask": of_memory},
                options=options,
                W_o=2.0,
            ),
        ]
    outs = ("self_attention.W_o", "cross_attention.W_o", "feed_forward.W_2")
    return [*cases, dropped(DecoderBlock, outs)]


def dropped(block: Callable, outs: tuple[str, ...]) -> Case:
    """Return the case that looks at what dropout adds: branch i returns 4^i everywhere."""
    shapes = {name: tuple(p.shape) for name, p in block(4, 1, 4).named_parameters()}
    state: State = plain_values(shapes)
    for i, name in enumerate(outs):
        state[f"{name}.weight"] = torch.zeros(4, 4).double()
        state[f"{name}.bias"] = torch.full((4,), 4.0**i).double()
    memory = {"memory": tensor(((1, 2, 3, 4), (4, 3, 2, 1)))} if len(outs) == 3 else {}
    branches = ", ".join(f"`{name.partition('.')[0]}` {4**i}" for i, name in enumerate(outs))
    return module_case(
        block.__name__,
        (4, 1, 4),
        state,
        {"x": tensor(torch.arange(28).reshape(7, 4) % 5)} | memory,
        options={"dropout": 0.5},
        use=callers.added_in_training,
        note=f"in training; the branches return one number everywhere: {branches}",
    )


def feeds() -> list[Case]:
    """Return cases of ``FeedForward``: another activation, one bias or none."""
    x = tensor(((2, -1), (-3, 1)))
    shapes = {name: tuple(p.shape) for name, p in FeedForward(2, 2).named_parameters()}
    state = plain_values(shapes)
    weights = {
        "W_1.weight": tensor(((1, 0), (1, 1))), "W_1.bias": tensor((1, 0)),
        "W_2.weight": tensor(((2, 0), (1, 3))), "W_2.bias": tensor((0, 5)),
    }  # fmt: skip
    relu: dict[str, Any] = {"activation": "relu"}
    return [
        module_case(
            "FeedForward",
            (2, 2),
            state | weights,
            {"x": x},
            options=relu,
            use=callers.call_module_activated,
            note="activation=F.relu; `W_1` is [[1, 0], [1, 1]] with bias [1, 0], "
            "`W_2` is [[2, 0], [1, 3]] with bias [0, 5]",
        )
    ]


CASES = {
    "transformer.EncoderBlock": encoders,
    "transformer.DecoderBlock": decoders,
    "transformer.FeedForward": feeds,
}
