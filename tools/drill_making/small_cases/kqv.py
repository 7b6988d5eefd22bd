"""Small cases of chapter 5: two or three tokens of two features, whole weights."""

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import module_case, tensor

MASK_ROWS = ((1, 0, 1), (0, 1, 1), (1, 1, 0))


def scaled_dot_product_attention_cases() -> list[Case]:
    """Return cases of ``scaled_dot_product_attention``: three keys, with a mask and without."""
    arrays = (
        tensor(((1, 0), (0, 2))),
        tensor(((1, 0), (0, 1), (1, 1))),
        tensor(((6, 0), (0, 3), (1, 1))),
    )
    mask = torch.tensor(MASK_ROWS[:2]).bool()
    return [Case(arrays), Case(arrays, {"mask": mask})]


def attention_head_cases() -> list[Case]:
    """Return cases of ``AttentionHead``: features one apart, with a mask and without."""
    state = {
        "W_q.weight": tensor(((1, 0), (0, 2), (1, 1))),
        "W_k.weight": tensor(((1, 1), (0, 1), (1, 0))),
        "W_v.weight": tensor(((2, 0), (0, 3), (1, 1))),
    }
    x = tensor(((1, 0), (0, 1), (1, 2)))
    mask = torch.tensor(MASK_ROWS).bool()
    return [
        module_case("AttentionHead", (2, 3), state, {"x": x}),
        module_case("AttentionHead", (2, 3), state, {"x": x, "mask": mask}),
    ]


CASES = {
    "kqv.scaled_dot_product_attention": scaled_dot_product_attention_cases,
    "kqv.AttentionHead": attention_head_cases,
}
