"""Chapter 6: right answers in steps, and wrong lines for them."""

import math

import torch
from torch import nn

from drill_making.by_hand.kqv import RIGHT_ANSWERS as KQV_RIGHT_ANSWERS
from drill_making.by_hand.kqv import SCORES_WRONG_LINES


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


RIGHT_ANSWERS = {
    "scoring.dot_score": KQV_RIGHT_ANSWERS["kqv.attention_scores"],
    "scoring.BilinearScore": [BilinearInSteps, BilinearByAxes],
}
PARAMETER_LINE = "self.W = nn.Parameter(spread * torch.randn(d_q, d_k))"
TRANSPOSED_KEY_LINE = "turned = key.transpose(-2, -1)"
SUMMED_PRODUCTS_LINE = "return (queries * keys).sum(dim=-1)"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "scoring.dot_score": SCORES_WRONG_LINES,
    "scoring.BilinearScore": (
        (PARAMETER_LINE, "self.W = nn.Parameter(spread * torch.randn(d_k, d_q))"),
        (PARAMETER_LINE, "self.W = spread * torch.randn(d_q, d_k)"),
        (PARAMETER_LINE, "self.W = nn.Parameter(torch.full((d_q, d_k), spread))"),
        (TRANSPOSED_KEY_LINE, "turned = key.transpose(0, 1)"),
        (TRANSPOSED_KEY_LINE, "turned = key.transpose(1, 2)"),
        (
            TRANSPOSED_KEY_LINE,
            "turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])",
        ),
        (TRANSPOSED_KEY_LINE, "turned = key.T"),
        ("projected = query @ self.W", "projected = query"),
        ("projected = query @ self.W", "projected = query @ self.W.T"),
        ("projected = query @ self.W", "projected = (query @ self.W).tanh()"),
        ("return projected @ turned", "return torch.tanh(projected @ turned)"),
        ("return projected @ turned", "return (projected @ turned).softmax(dim=-1)"),
        ("return projected @ turned", "return projected @ turned / math.sqrt(query.shape[-1])"),
        ("return projected @ turned", "return projected @ turned / math.sqrt(key.shape[-1])"),
        ("return projected @ turned", "return (projected @ turned).mT"),
        (SUMMED_PRODUCTS_LINE, "return (queries * keys).sum(dim=-2)"),
        (SUMMED_PRODUCTS_LINE, "return torch.cosine_similarity(queries, keys, dim=-1)"),
        (SUMMED_PRODUCTS_LINE, "return torch.tanh((queries * keys).sum(dim=-1))"),
        (SUMMED_PRODUCTS_LINE, "return (queries * keys).sum(dim=-1).softmax(dim=-1)"),
        ("keys = projected[..., None, :, :]", "keys = projected[..., :, None, :]"),
        ("projected = torch.matmul(key, self.W.T)", "projected = key"),
        ("projected = torch.matmul(key, self.W.T)", "projected = torch.matmul(key, self.W)"),
    ),
}
