"""A milestone as a graded cell: the judge trains a model on a submission's parts."""

import pytest

from attncourse.grading.limits import Limits
from helpers.judged_cells import judge_answer

IMPORT_REACH = "from attncourse.milestones.reaching import reach\n"
REACH_RECALL = IMPORT_REACH + 'reach("recall", AttentionHead=AttentionHead)'
RIGHT_HEAD = """
import torch
from torch import nn


class AttentionHead(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.W_q, self.W_k = nn.Linear(d_model, d_k, bias=bias), nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_v or d_k, bias=bias)

    def forward(self, x, mask=None):
        return self.weights(x, mask) @ self.W_v(x)

    def weights(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).mT / self.W_q.out_features ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)
"""
FORWARD_LINE = "return self.weights(x, mask) @ self.W_v(x)"


def message_of_milestone(answer: str) -> str:
    return judge_answer(answer, REACH_RECALL, defines=("AttentionHead",), limits=Limits())[0]


def test_right_parts_earn_a_milestone_wrong_ones_a_reason():
    assert message_of_milestone(RIGHT_HEAD) == ""  # 300 training steps, each a call to the worker
    wrong = message_of_milestone(RIGHT_HEAD.replace("** 0.5", "** 0"))
    assert wrong.startswith("NotYet: ✗ recall: a head answers c5 a1 h7")
    assert "✗ scores over √d_k: scores spread 4 times as far" in wrong


# Each solves the task without attention, or tries to decide its own verdict.
CHEATING_BODIES = {
    "it knows the answer": (
        "digits = 9 * x[..., 8:18] * (x[..., :8] * x[..., -1:, 18:26]).sum(-1, keepdim=True)\n"
        "        return digits.sum(-2, keepdim=True).expand(*x.shape[:-1], -1) + 0 * self.W_v(x)",
        "what is forbidden has no influence",
    ),
    "it equals everything": (
        "return type('Yes', (), {'__eq__': lambda *a: True, 'shape': (50, 9, 10)})()",
        "it runs",
    ),
    "it prints a score": ("print('1.0')\n        return 0 * self.W_v(x)", "weights @ values"),
}


@pytest.mark.parametrize("cheat", CHEATING_BODIES)
def test_a_part_that_cheats_earns_nothing(cheat):
    code, gate = CHEATING_BODIES[cheat]
    assert gate in message_of_milestone(RIGHT_HEAD.replace(FORWARD_LINE, code))


def test_a_part_that_ends_its_process_earns_nothing():
    assert (
        message_of_milestone(RIGHT_HEAD.replace(FORWARD_LINE, "import os\n        os._exit(0)"))
        != ""
    )
