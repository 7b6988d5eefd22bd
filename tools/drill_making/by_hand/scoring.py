"""Chapter 6: right answers in steps, and wrong lines for them."""

import math

import torch
from torch import nn

from drill_making.by_hand.kqv import RIGHT as CHAPTER_5
from drill_making.by_hand.kqv import SCORES


class BilinearInSteps(nn.Module):
    def __init__(self, d_q, d_k):
        super().__init__()
        spread = 1 / math.sqrt(d_q * d_k)
        self.W = nn.Parameter(spread * torch.randn(d_q, d_k))

    def forward(self, query, key):
        projected = query @ self.W
        turned = key.transpose(-2, -1)
        return projected @ turned


class BilinearByAxes(nn.Module):
    def __init__(self, d_q, d_k):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_q, d_k) / math.sqrt(d_q))

    def forward(self, query, key):
        projected = torch.matmul(key, self.W.T)
        queries = query[..., :, None, :]
        keys = projected[..., None, :, :]
        return (queries * keys).sum(dim=-1)


RIGHT = {
    "scoring.dot_score": CHAPTER_5["kqv.attention_scores"],
    "scoring.BilinearScore": [BilinearInSteps, BilinearByAxes],
}
PARAMETER = "self.W = nn.Parameter(spread * torch.randn(d_q, d_k))"
TURNED = "turned = key.transpose(-2, -1)"
SUMS = "return (queries * keys).sum(dim=-1)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "scoring.dot_score": SCORES,
    "scoring.BilinearScore": (
        (PARAMETER, "self.W = nn.Parameter(spread * torch.randn(d_k, d_q))"),
        (PARAMETER, "self.W = spread * torch.randn(d_q, d_k)"),
        (PARAMETER, "self.W = nn.Parameter(torch.full((d_q, d_k), spread))"),
        (TURNED, "turned = key.transpose(0, 1)"),
        (TURNED, "turned = key.transpose(1, 2)"),
        (TURNED, "turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])"),
        (TURNED, "turned = key.T"),
        ("projected = query @ self.W", "projected = query"),
        ("projected = query @ self.W", "projected = query @ self.W.T"),
        ("projected = query @ self.W", "projected = (query @ self.W).tanh()"),
        ("return projected @ turned", "return torch.tanh(projected @ turned)"),
        ("return projected @ turned", "return (projected @ turned).softmax(dim=-1)"),
        ("return projected @ turned", "return projected @ turned / math.sqrt(query.shape[-1])"),
        ("return projected @ turned", "return projected @ turned / math.sqrt(key.shape[-1])"),
        ("return projected @ turned", "return (projected @ turned).mT"),
        (SUMS, "return (queries * keys).sum(dim=-2)"),
        (SUMS, "return torch.cosine_similarity(queries, keys, dim=-1)"),
        (SUMS, "return torch.tanh((queries * keys).sum(dim=-1))"),
        (SUMS, "return (queries * keys).sum(dim=-1).softmax(dim=-1)"),
        ("keys = projected[..., None, :, :]", "keys = projected[..., :, None, :]"),
        ("projected = torch.matmul(key, self.W.T)", "projected = key"),
        ("projected = torch.matmul(key, self.W.T)", "projected = torch.matmul(key, self.W)"),
    ),
}
