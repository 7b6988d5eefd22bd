"""Small cases of chapter 17: blocks of two keys, a mask over three, the largest tensor counted."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attncourse.checks import callers
from attncourse.checks.exercise import Case
from attncourse.checks.trying.outcome import is_tensor
from attncourse.checks.writing.modules import tensor

HIDDEN = float("-inf")


def online_softmax_cases() -> list[Case]:
    """Return cases of ``online_softmax``: blocks of two keys, a first block or a row of −∞."""
    rows = (
        ((HIDDEN, HIDDEN, 1, 0), (2, 0, 1, 3)),
        ((HIDDEN, HIDDEN, HIDDEN, HIDDEN), (2, 0, 1, 3)),
        ((2, 0, 1, 3), (1, 1, 0, 0)),
    )
    return [
        Case(
            (tensor(scores),),
            use=partial(callers.call_in_blocks, 2),
            note="blocks of 2 keys",
            shown="online_softmax(blocks)",
        )
        for scores in rows
    ]


class LargestTensorCounter(TorchDispatchMode):
    """Notes the most numbers that one tensor of the operations inside holds."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Return what the operation returns."""
        out = func(*args, **(kwargs or {}))
        results = out if isinstance(out, tuple | list) else [out]
        for result in filter(is_tensor, results):
            self.numbers = max(self.numbers, result.numel())
        return out


def call_counting_numbers(
    implementation: Callable, query: Any, key: Any, value: Any
) -> dict[str, Any]:
    """Return the output, and how many numbers the largest tensor has that was made for it."""
    with LargestTensorCounter() as counter:
        output = implementation(query, key, value)
    return {"the output": output, "numbers in the largest tensor that was made": counter.numbers}


def linear_attention_cases() -> list[Case]:
    """Return cases of ``linear_attention``: one feature, so that all scores would be the most."""
    arrays = ((0, 1, 0, 2, 1), (1, 0, 0, 1, 2), (4, 0, 2, 6, 8))
    return [
        Case(
            tuple(tensor(numbers).unsqueeze(-1) for numbers in arrays),
            use=call_counting_numbers,
            shown="linear_attention(query, key, value)",
        )
    ]


def tiled_attention_cases() -> list[Case]:
    """Return cases of ``tiled_attention`` and ``windowed_attention`` in few whole numbers."""
    query, key = tensor(((1, 0), (0, 2))), tensor(((1, 0), (0, 1), (1, 1)))
    value = tensor(((6, 0), (0, 3), (9, 9)))
    mask = torch.tensor(((1, 0, 1), (0, 1, 1))).bool()
    far = (tensor(((2000, 0), (0, 1), (0, 3000))), tensor(((1, 0), (0, 1), (0, 1), (1, 0))))
    values = tensor(((6, 0), (0, 3), (9, 9), (2, 4)))
    return [
        Case((query, key, value), {"mask": mask, "block": 2}),
        Case((*far, values), {"block": 2}),
        Case((far[0], far[1][[0, 3, 1, 2]], values), {"block": 2}),
    ]


def windowed_attention_cases() -> list[Case]:
    """Return cases of ``windowed_attention``: four tokens of one feature, windows of three."""
    query, key = tensor(((1,), (0,), (2,), (1,))), tensor(((1,), (2,), (0,), (1,)))
    value = tensor(((6,), (0,), (3,), (12,)))
    return [Case((query, key, value), {"width": 3}), Case((query * 0, key, value), {"width": 3})]


CASES = {
    "efficient.online_softmax": online_softmax_cases,
    "efficient.linear_attention": linear_attention_cases,
    "efficient.tiled_attention": tiled_attention_cases,
    "efficient.windowed_attention": windowed_attention_cases,
}
