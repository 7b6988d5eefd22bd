"""Chapter 21: the real model reads with fewer keys than it was trained with, layer by layer.

Windows in most layers and all keys in some; or few keys for each query, chosen in several ways. In
nats a token, on chapter 19's texts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attncourse.circuits import sink_mask
from attncourse.gpt import next_token_loss
from attncourse.llama import Llama
from attncourse.masking import causal_mask
from attncourse.tasks.sinks import SINK_TEXTS, SKIPPED
from attncourse.today import layer_kinds, select_keys

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

WIDTH, EVERY = 32, (1, 2, 3, 6, 10)  # of the windows; how often a layer sees all
KS = (8, 16, 32, 64)


@torch.no_grad()
def loss_by_layer_masks(model: Llama, ids: Tensor, masks: Sequence[Tensor]) -> float:
    """Return the mean loss in nats where each layer has a mask of its own."""
    x = model.tokens(ids)
    for block, mask in zip(model.blocks, masks, strict=True):
        x = block(x, mask)
    logits = model.out(model.norm(x))
    return round(float(next_token_loss(logits[SKIPPED:], ids[SKIPPED:])), 3)


@torch.no_grad()
def mean_weights(model: Llama, ids: Tensor) -> list[Tensor]:
    """Return where each layer looks, its heads' mean, ``(n, n)``, where all keys are seen."""
    means, x = [], model.tokens(ids)
    for block in model.blocks:
        means.append(block.attention.weights(block.norm_1(x)).mean(0))
        x = block(x)
    return means


def layered_losses(
    model: Llama, ids: Tensor, width: int = WIDTH, every: Sequence[int] = EVERY
) -> list[dict]:
    """Return nats a token by how many layers see all, the others a window."""
    n, rows = len(ids), []
    whole = causal_mask(n)
    for step in (*every, None):
        n_layers = len(model.blocks)
        kinds = layer_kinds(n_layers, step, width) if step else ["window"] * n_layers
        row: dict = {"whole layers": kinds.count("full")}
        for name, first in (("window", 0), ("window and first", 1)):
            near = sink_mask(n, width, first)
            masks = [whole if kind == "full" else near for kind in kinds]
            row[name] = loss_by_layer_masks(model, ids, masks)
        rows.append(row)
    return rows


def chosen_losses(model: Llama, ids: Tensor, ks: Sequence[int] = KS) -> list[dict]:
    """Return nats a token by how many keys a query sees, and who chooses them.

    Its own weights: the k keys that the layer's heads weigh most on average when all are seen.
    """
    n, n_layers = len(ids), len(model.blocks)
    whole, weights = causal_mask(n), mean_weights(model, ids)
    generator = torch.Generator().manual_seed(0)
    chance = [torch.rand(n, n, generator=generator) for _ in range(n_layers)]
    rows = []
    for k in ks:
        masks = {
            "its own weights": [select_keys(scores, k, whole) for scores in weights],
            "window": [sink_mask(n, k, 0)] * n_layers,
            "window and first": [sink_mask(n, k - 1, 1)] * n_layers,
            "random": [select_keys(scores, k, whole) for scores in chance],
        }
        losses = {
            way: loss_by_layer_masks(model, ids, masks_by_layer)
            for way, masks_by_layer in masks.items()
        }
        rows.append({"k": k, **losses})
    return rows


def measure_some_keys(model: Llama, words: "BytePairs", longest: int | None = None) -> dict:
    """Return what the page shows, for each text; ``longest`` cuts the texts."""
    results = {}
    for name, text in SINK_TEXTS.items():
        ids = words.encode(text)[:longest]
        results[name] = {
            "tokens": len(ids),
            "whole": loss_by_layer_masks(model, ids, [causal_mask(len(ids))] * len(model.blocks)),
            "layers": layered_losses(model, ids),
            "chosen": chosen_losses(model, ids),
        }
    return results
