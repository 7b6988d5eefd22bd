"""Small cases of chapter 19: a model of two features, three tokens and one layer or two."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks.callers.ablation import llama_of, shapes_of
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor
from attncourse.llama import Llama, LlamaConfig

TOKEN_VECTORS = ((3.0, 4.0), (1.0, 0.0), (0.0, 2.0))
TIED_NOTE = "the rows of `tokens` are the vectors of the tokens, and of the last layer"
EVEN_ATTENTION_NOTE = (
    "`W_q` is 0, so that every token attends evenly to itself and those before it; `W_v` and `W_o` "
    "are the identity"
)


def model_sizes(n_layers: int) -> dict[str, Any]:
    """Return the sizes of a model."""
    return {
        "n_vocab": 3, "max_length": 4, "d_model": 2, "n_heads": 1, "n_kv_heads": 1,
        "n_layers": n_layers, "d_ff": 1, "tied": True,
    }  # fmt: skip


def call_on_small_model(
    implementation: Callable, n_layers: int, attends: bool, feeds: bool, place: tuple, tokens: Any,
    clean: Any, corrupted: Any,
) -> Any:  # fmt: skip
    """Return what the implementation makes of a model whose layers add little, or nothing."""
    config = model_sizes(n_layers)
    state = {}
    for name, shape in shapes_of(Llama, LlamaConfig(**config)).items():
        value = torch.zeros(shape).double()
        if name.endswith("gain") or (feeds and "feed_forward" in name):
            value = value + 1
        elif attends and name.rpartition(".attention.")[2] in ("W_v.weight", "W_o.weight"):
            value = torch.eye(2).double()
        elif name == "tokens.weight":
            value = tokens.clone()
        state[name] = value
    return implementation(llama_of(config, state), clean, corrupted, *place)


def patch_case(
    layer: int, position: int, n_layers: int, attends: bool, feeds: bool, batch: bool = False
) -> Case:
    """Return the case of one vector of a small model."""
    clean, corrupted = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2])
    if batch:
        clean, corrupted = torch.stack([clean, corrupted]), torch.stack([corrupted, clean])
    notes = [TIED_NOTE, f"{n_layers} layer{'s' if n_layers > 1 else ''}, one head"]
    if attends:
        notes.append(EVEN_ATTENTION_NOTE)
    if feeds:
        notes.append("all weights of the feed-forward layer are 1")
    if not attends and not feeds:
        notes.append("`W_o` and `W_down` are 0: the layers add nothing")
    elif not (attends and feeds):
        notes.append("the other branch adds nothing: its last matrix is 0")
    return Case(
        kwargs={
            "n_layers": n_layers, "attends": attends, "feeds": feeds, "place": (layer, position),
            "tokens": tensor(TOKEN_VECTORS), "clean": clean, "corrupted": corrupted,
        },
        use=call_on_small_model,
        note="; ".join(notes),
        shown=f"patched(model, clean, corrupted, layer={layer}, position={position})",
    )  # fmt: skip


def patched_cases() -> list[Case]:
    """Return cases of ``patched``, those first in which the least happens."""
    return [
        patch_case(0, 0, 1, False, False),
        patch_case(0, 1, 1, False, False),
        patch_case(0, 0, 1, False, True),
        patch_case(0, 1, 1, False, True),
        patch_case(0, 0, 1, True, False),
        patch_case(0, 1, 1, True, False),
        patch_case(0, 0, 2, True, False),
        patch_case(0, 1, 2, True, False),
        patch_case(0, 0, 2, True, True),
        patch_case(0, 1, 2, True, True),
        patch_case(0, 1, 2, True, False, batch=True),
    ]


CASES = {"circuits.patched": patched_cases}
