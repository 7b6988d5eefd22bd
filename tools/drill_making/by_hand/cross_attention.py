"""Chapter 8: right answers in steps, and wrong lines for them."""

import math

import torch
from torch import nn


class CrossInSteps(nn.Module):
    def __init__(self, d_x, d_y, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_x, d_k, bias=False)
        self.W_k = nn.Linear(d_y, d_k, bias=False)
        self.W_v = nn.Linear(d_y, d_v, bias=False)

    def weights(self, x, y, mask=None):
        query, key = self.W_q(x), self.W_k(y)
        scores = query @ key.mT / math.sqrt(key.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(dim=-1)

    def forward(self, x, y, mask=None):
        return self.weights(x, y, mask) @ self.W_v(y)


RIGHT_ANSWERS = {"cross_attention.CrossAttention": [CrossInSteps]}
CROSS_SCORES_LINE = "scores = query @ key.mT / math.sqrt(key.shape[-1])"
PROJECTIONS_LINE = "self.W_q(x), self.W_k(y), self.W_v(y), mask"
CROSS_WEIGHTS_LINE = "return attention_weights(self.W_q(x), self.W_k(y), mask)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "cross_attention.CrossAttention": (
        (CROSS_SCORES_LINE, "scores = query @ key.mT / math.sqrt(y.shape[-1])"),
        (CROSS_SCORES_LINE, "scores = query @ key.mT / math.sqrt(key.shape[-2])"),
        (
            "scores = scores.masked_fill(~mask, -torch.inf)",
            "scores = scores.masked_fill(mask, -torch.inf)",
        ),
        (PROJECTIONS_LINE, "self.W_q(x), self.W_k(y), y, mask"),
        (PROJECTIONS_LINE, "self.W_q(x), self.W_v(y), self.W_k(y), mask"),
        (PROJECTIONS_LINE, "self.W_k(x), self.W_q(y), self.W_v(y), mask"),
        (PROJECTIONS_LINE, "self.W_q(x), self.W_k(y), self.W_v(x), mask"),
        (PROJECTIONS_LINE, "self.W_q(x), self.W_k(y), self.W_k(y), mask"),
        (PROJECTIONS_LINE, "self.W_q(x), self.W_k(y), self.W_v(y), ~mask"),
        (CROSS_WEIGHTS_LINE, "return attention_weights(self.W_q(x), self.W_k(y))"),
        (CROSS_WEIGHTS_LINE, "return attention_weights(self.W_q(x), self.W_k(y), mask).mT"),
        (CROSS_WEIGHTS_LINE, "return attention_weights(self.W_k(y), self.W_q(x), mask)"),
        (
            CROSS_WEIGHTS_LINE,
            "return attention_weights(self.W_q(x), self.W_k(y), mask) @ self.W_v(y)",
        ),
        (CROSS_WEIGHTS_LINE, "return attention_weights(self.W_q(x), self.W_k(x), mask)"),
    ),
}
