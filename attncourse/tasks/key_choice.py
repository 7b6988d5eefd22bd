"""Chapter 21: an indexer learns where a trained model looks, and then chooses its keys.

Source: DeepSeek-AI (2025), DeepSeek-V3.2-Exp, sections 1 and 2.1: the index score, and the warm-up
in which the model stays as it is and the indexer learns from its weights.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.multihead import split_heads
from attncourse.tasks.adam import Adam
from attncourse.tasks.variants import VariantModel, seen_keys, turned
from attncourse.today import select_keys

CHOOSERS = ("its own weights", "indexer", "window", "random")


class Indexer(nn.Module):
    """Index scores ``Σ_j w_j ReLU(q_j · k)`` of a layer: few narrow heads, one key for all."""

    def __init__(self, d_model: int, n_heads: int = 2, d_index: int = 8):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, n_heads * d_index, bias=False)
        self.W_k = nn.Linear(d_model, d_index, bias=False)
        self.W_w = nn.Linear(d_model, n_heads, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return index scores, ``(b, n, n)``."""
        query, key = turned(split_heads(self.W_q(x), self.n_heads)), turned(self.W_k(x))
        scores = (query @ key[:, None].mT).relu()  # (b, h, n, n)
        return (self.W_w(x).mT[..., None] * scores).sum(-3)


def looked_at(model: VariantModel, inputs: list[Tensor]) -> list[Tensor]:
    """Return where each layer looks, its heads' mean, ``(b, n, n)`` each."""
    layers: list[Any] = list(model.attentions)  # each a VariantAttention
    return [layer.weights(x).mean(1) for layer, x in zip(layers, inputs, strict=True)]


def train_indexers(
    model: VariantModel, task: Callable, d_model: int, *, steps: int, batch: int, rate: float
) -> nn.ModuleList:
    """Return an indexer for each layer, taught by the weights of the model, which is kept."""
    torch.manual_seed(0)
    device = next(model.parameters()).device
    indexers = nn.ModuleList([Indexer(d_model) for _ in model.attentions]).to(device)
    adam, generator = Adam(indexers.parameters(), rate), torch.Generator().manual_seed(77)
    for _ in range(steps):
        ids = task(batch, generator)[0].to(device)
        with torch.no_grad():
            inputs = model.inputs(ids)
            targets = looked_at(model, inputs)
        mask = seen_keys(ids.shape[1], device=device)
        loss = torch.zeros((), device=device)
        for indexer, x, target in zip(indexers, inputs, targets, strict=True):
            logs = indexer(x).masked_fill(~mask, -1e9).log_softmax(-1)
            loss = loss - (target * logs).sum(-1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return indexers


@torch.no_grad()
def losses_by_choice(
    model: VariantModel, indexers: nn.ModuleList, ids: Tensor, answers: Tensor, ks: tuple[int, ...]
) -> list[dict]:
    """Return loss, and share of right answers, where every query sees k keys, by their choice.

    Each layer's choice is made from the stream of the model that sees all keys.
    """
    n, generator = ids.shape[1], torch.Generator().manual_seed(78)
    inputs, whole = model.inputs(ids), seen_keys(n, device=ids.device)
    weights = looked_at(model, inputs)
    index = [indexer(x) for indexer, x in zip(indexers, inputs, strict=True)]
    chance = [torch.rand(ids.shape[0], n, n, generator=generator).to(ids.device) for _ in inputs]
    rows = [{"way": "all", "k": n, **loss_and_right(model(ids), answers)}]
    for k in ks:
        masks = {
            "its own weights": [select_keys(scores, k, whole) for scores in weights],
            "indexer": [select_keys(scores, k, whole) for scores in index],
            "window": [seen_keys(n, k, ids.device).expand(ids.shape[0], n, n) for _ in inputs],
            "random": [select_keys(scores, k, whole) for scores in chance],
        }
        for way in CHOOSERS:
            output = model(ids, [mask[:, None] for mask in masks[way]])
            rows.append({"way": way, "k": k, **loss_and_right(output, answers)})
    return rows


def loss_and_right(output: Tensor, answers: Tensor) -> dict[str, float]:
    """Return the loss in nats and the share of right answers, of the last rows."""
    logits = output[:, -answers.shape[1] :]
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
    right = (logits.argmax(-1) == answers).float().mean()
    return {"loss": round(loss.item(), 4), "right": round(right.item(), 4)}
