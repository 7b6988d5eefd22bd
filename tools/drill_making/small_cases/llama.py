"""Small cases of chapter 18: blocks of two or four features, few symbols."""

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor
from attncourse.llama import LlamaBlock
from drill_making.small_cases.modules import plain_case

TOKENS_OF_2_FEATURES = ((3, 4), (1, 0))
TOKENS_OF_4_FEATURES = ((3, 1, 0, 4), (1, 0, 2, 0), (0, 2, 2, 1))


def llama_block_cases() -> list[Case]:
    """Return cases of ``LlamaBlock``: one head; two with one key; with a mask, with positions."""
    x, wide = tensor(TOKENS_OF_2_FEATURES), tensor(TOKENS_OF_4_FEATURES)
    mask = torch.tensor(((1, 1, 0), (0, 1, 1), (1, 0, 1))).bool()
    positions = torch.tensor((0, 3))
    return [
        plain_case(LlamaBlock, (2, 1, 1, 2), {"x": x}),
        plain_case(LlamaBlock, (2, 1, 1, 2), {"x": tensor(((3, 4), (1, 0), (0, 2)))}),
        plain_case(
            LlamaBlock, (2, 1, 1, 2), {"x": tensor(((3, 4), (1, 0), (0, 2)))}, W_q=2.0, W_o=3.0
        ),
        plain_case(
            LlamaBlock, (2, 1, 1, 2), {"x": x, "mask": None, "positions": positions}, W_o=3.0
        ),
        plain_case(LlamaBlock, (2, 1, 1, 2), {"x": x}, W_v=2.0),
        plain_case(LlamaBlock, (8, 4, 2, 8), {"x": tensor(((3, 1, 0, 4, 1, 2, 0, 1),))}),
        plain_case(LlamaBlock, (4, 2, 2, 4), {"x": wide}),
        plain_case(LlamaBlock, (4, 2, 1, 4), {"x": wide}),
        plain_case(LlamaBlock, (4, 2, 1, 4), {"x": wide}, W_q=2.0, W_o=3.0),
        plain_case(LlamaBlock, (4, 2, 1, 4), {"x": wide, "mask": mask}),
        plain_case(LlamaBlock, (4, 2, 2, 4), {"x": wide, "mask": mask}, W_q=2.0),
        plain_case(LlamaBlock, (4, 1, 1, 4), {"x": wide}, W_q=2.0),
        plain_case(LlamaBlock, (4, 1, 1, 4), {"x": wide, "mask": mask}, W_q=2.0),
    ]


def merge_pairs_cases() -> list[Case]:
    """Return cases of ``merge_pairs``: ranks that the dictionary has in another order."""
    return [
        Case((["a", "b", "c"], {("b", "c"): 1, ("a", "b"): 0})),
        Case((["a", "b", "c", "b"], {("b", "c"): 1, ("ab", "c"): 2, ("a", "b"): 0})),
    ]


CASES = {"llama.LlamaBlock": llama_block_cases, "llama.merge_pairs": merge_pairs_cases}
