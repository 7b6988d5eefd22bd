"""Small cases of chapter 12: blocks of two or four features with plain weights."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks import callers
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import State, module_case, tensor
from attncourse.transformer import DecoderBlock, EncoderBlock, FeedForward
from drill_making.small_cases.modules import plain_case, plain_values

TWO_TOKENS = ((3, 1), (0, 2))
THREE_TOKENS = ((5, 1, 0), (2, 0, 4), (0, 3, 3))
MEMORY_OF_2_FEATURES, MEMORY_OF_3_FEATURES = ((1, 4), (2, 0)), ((1, 0, 2), (0, 3, 0))
CAUSAL_ROWS = ((1, 0), (1, 1))
POST_NORM_OPTIONS = {"pre_norm": False}


def mask_from_rows(rows: Any) -> torch.Tensor:
    """Return a mask of rows of 0 and 1."""
    return torch.tensor(rows).bool()


def encoder_block_cases() -> list[Case]:
    """Return cases of ``EncoderBlock``: one head, then two of one feature, with and without."""
    cases = []
    for options in ({}, POST_NORM_OPTIONS):
        x, mask = tensor(TWO_TOKENS), mask_from_rows(CAUSAL_ROWS)
        wide = tensor(THREE_TOKENS)
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
                {"x": wide, "mask": mask_from_rows(((1, 0, 0), (1, 1, 0), (1, 1, 1)))},
                options=options,
                W_o=2.0,
            ),
        ]
    return [*cases, dropout_case(EncoderBlock, ("attention.W_o", "feed_forward.W_2"))]


def decoder_block_cases() -> list[Case]:
    """Return cases of ``DecoderBlock``, the memory of another length or the same."""
    cases = []
    for options in ({}, POST_NORM_OPTIONS):
        x, memory = tensor(TWO_TOKENS), tensor(MEMORY_OF_2_FEATURES)
        wide, wide_memory = tensor(THREE_TOKENS), tensor(MEMORY_OF_3_FEATURES)
        wide_inputs = {"x": wide, "memory": wide_memory}
        mask = mask_from_rows(((1, 0, 0), (1, 1, 0), (1, 1, 1)))
        memory_mask = mask_from_rows(((1, 0), (0, 1), (1, 1)))
        cases += [
            plain_case(DecoderBlock, (2, 1, 2), {"x": x, "memory": memory}, options=options),
            plain_case(DecoderBlock, (3, 1, 3), wide_inputs, options=options),
            plain_case(DecoderBlock, (3, 1, 3), wide_inputs, options=options, W_o=2.0, W_2=3.0),
            plain_case(
                DecoderBlock, (3, 1, 3), wide_inputs, options=options, norm_2=2.0, norm_3=3.0
            ),
            plain_case(DecoderBlock, (3, 3, 3), wide_inputs, options=options, W_o=2.0, W_2=3.0),
            plain_case(
                DecoderBlock, (3, 1, 3), wide_inputs | {"mask": mask}, options=options, W_o=2.0
            ),
            plain_case(
                DecoderBlock,
                (3, 1, 3),
                wide_inputs | {"mask": None, "memory_mask": memory_mask},
                options=options,
                W_o=2.0,
            ),
        ]
    last_layers = ("self_attention.W_o", "cross_attention.W_o", "feed_forward.W_2")
    return [*cases, dropout_case(DecoderBlock, last_layers)]


def dropout_case(block: Callable, last_layers: tuple[str, ...]) -> Case:
    """Return the case that looks at what dropout adds: branch i returns 4^i everywhere."""
    shapes = {name: tuple(p.shape) for name, p in block(4, 1, 4).named_parameters()}
    state: State = plain_values(shapes)
    for i, name in enumerate(last_layers):
        state[f"{name}.weight"] = torch.zeros(4, 4).double()
        state[f"{name}.bias"] = torch.full((4,), 4.0**i).double()
    memory = {"memory": tensor(((1, 2, 3, 4), (4, 3, 2, 1)))} if len(last_layers) == 3 else {}
    branches = ", ".join(f"`{name.partition('.')[0]}` {4**i}" for i, name in enumerate(last_layers))
    return module_case(
        block.__name__,
        (4, 1, 4),
        state,
        {"x": tensor(torch.arange(28).reshape(7, 4) % 5)} | memory,
        options={"dropout": 0.5},
        use=callers.added_in_training,
        note=f"in training; the branches return one number everywhere: {branches}",
    )


def feed_forward_cases() -> list[Case]:
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
    "transformer.EncoderBlock": encoder_block_cases,
    "transformer.DecoderBlock": decoder_block_cases,
    "transformer.FeedForward": feed_forward_cases,
}
