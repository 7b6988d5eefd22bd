"""Small cases of chapter 8: two questions of two features, three tokens."""

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import module_case, tensor


def attention_pooling_cases() -> list[Case]:
    """Return cases of ``AttentionPooling``: with a mask and without one."""
    state = {
        "queries": tensor(((1, 0), (2, 1), (0, 1))),
        "W_k.weight": tensor(((1, 0), (1, 1))),
        "W_v.weight": tensor(((2, 0), (0, 3))),
    }
    x = tensor(((1, 0), (0, 2), (1, 1)))
    mask = torch.tensor(((1, 0, 1), (0, 1, 1), (1, 1, 0))).bool()
    return [
        module_case("AttentionPooling", (2, 3), state, {"x": x}),
        module_case("AttentionPooling", (2, 3), state, {"x": x, "mask": mask}),
    ]


def cross_attention_cases() -> list[Case]:
    """Return cases of ``CrossAttention``: four widths, with a mask and without."""
    state = {
        "W_q.weight": tensor(((1, 0), (0, 2), (1, 1), (0, 1))),
        "W_k.weight": tensor(((1, 0, 1), (0, 1, 0), (1, 0, 0), (0, 2, 0))),
        "W_v.weight": tensor(((2, 0, 0), (0, 3, 1))),
    }
    x, y = tensor(((1, 0), (0, 2))), tensor(((1, 0, 0), (0, 1, 0), (1, 1, 1)))
    mask = torch.tensor((1, 0, 1)).bool()
    return [
        module_case("CrossAttention", (2, 3, 4, 2), state, {"x": x, "y": y}),
        module_case("CrossAttention", (2, 3, 4, 2), state, {"x": x, "y": y, "mask": mask}),
    ]


CASES = {
    "cross_attention.CrossAttention": cross_attention_cases,
    "cross_attention.AttentionPooling": attention_pooling_cases,
}
