"""Chapter 20: guess and check on the real model: which drafts are kept, on which texts.

Four kinds of text, three prompts each; behind each ``NEW`` tokens are written, at temperature 0.
Drafts: what followed the same two tokens earlier in the text (*lookup*), and the same model with
some of its 30 layers left out (``SHORT``), of some lengths k (``DRAFTS``). *Tokens a pass* are what
counts where passes cost alike; *kept* is the fraction of guessed tokens. All must write what the
model writes alone; ``same`` counts the prompts where they do.

Measured, by ``python benchmarks/serving.py guesses_timed``: seconds of one core alone and with a
draft, one after the other on each prompt in one run, as a ratio.

Sources: Leviathan et al. (2023), Fast Inference from Transformers via Speculative Decoding; Saxena
(2023), Prompt Lookup Decoding; Zhang et al. (2024), Draft & Verify: Lossless Large Language Model
Acceleration via Self-Speculative Decoding.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attncourse.llama import Llama
from attncourse.serving import (
    Draft,
    ModelDraft,
    lookup_draft,
    speculative_stream,
    with_layers,
)
from attncourse.tasks.lengths import machine

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

NEW = 32
KINDS: dict[str, tuple[str, ...]] = {
    "plain text": (
        "The old ferry crossed the lake twice a day. On the morning of the fair",
        "Salt was once worth as much as silver, because",
        "When the last guest had left, Clara opened the window and",
    ),
    "code": (
        "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n\n"
        "    def add(self, other):\n        return Point(self.x + other.x, self.y + other.y)\n\n"
        "    def subtract(self, other):\n",
        "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n"
        "    return total / len(values)\n\ndef variance(values):\n",
        "import csv\n\nwith open('people.csv') as file:\n    reader = csv.DictReader(file)\n"
        "    people = [row for row in reader]\n\nfor person in people:\n    print(person['name'], ",
    ),
    "lists that repeat": (
        "Monday: open from 9 to 5.\nTuesday: open from 9 to 5.\nWednesday: open from 9 to 5.\n",
        "1 x 7 = 7\n2 x 7 = 14\n3 x 7 = 21\n4 x 7 =",
        "Dear Anna, thank you for the book. Dear Paul, thank you for the lamp. Dear Eva, thank you",
    ),
    "a text to be copied from": (
        "Text: The museum opens at ten and closes at six. On Mondays it is closed. Children under "
        "twelve pay nothing, students pay half.\nThe same text again: The museum",
        "Text: The red kite builds its nest high in a tree, lines it with wool, and lays two or "
        "three eggs in April.\nQuestion: What does the red kite do in April?\nAnswer, in the words "
        "of the text:",
        "Minutes: Mr. Lopez asked for a new roof. Mrs. Stone said that the roof can wait and the "
        "pipes cannot. It was decided to repair the pipes first.\nSummary: Mr. Lopez",
    ),
}
SHORT: dict[str, tuple[int, ...]] = {  # layers that are left out, of the middle ones
    "24 of 30 layers": (8, 10, 12, 14, 16, 18),
    "20 of 30 layers": (7, 9, 11, 12, 13, 14, 15, 16, 17, 19),
}
LOOKUP = "lookup"
DRAFTS = (  # each with its length
    (LOOKUP, 2), (LOOKUP, 4), (LOOKUP, 8),
    ("24 of 30 layers", 2), ("24 of 30 layers", 4), ("24 of 30 layers", 8),
    ("20 of 30 layers", 4),
)  # fmt: skip


def draft_of(model: Llama, name: str) -> Draft:
    """Return a new draft by its name: ``lookup``, or one of ``SHORT``."""
    if name == LOOKUP:
        return lookup_draft
    layers = [i for i in range(len(model.blocks)) if i not in SHORT[name]]
    return ModelDraft(with_layers(model, layers))


def counting_draft(draft: Draft, guesses: list[int]) -> Draft:
    """Return the draft, which notes how many ids it guesses in each pass."""

    def noting(ids: Tensor, k: int):
        guess = draft(ids, k)
        guesses.append(len(guess[0] if isinstance(guess, tuple) else guess))
        return guess

    return noting


def write_with_draft(model: Llama, ids: Tensor, draft: Draft, k: int, n_new: int) -> dict:
    """Write with a draft; return the text, the passes, the guesses and how many are kept."""
    guesses: list[int] = []
    pieces = list(speculative_stream(model, ids, n_new, counting_draft(draft, guesses), k))
    kept_guesses = sum(len(piece) - 1 for piece in pieces)
    return {
        "new": torch.cat(pieces),
        "passes": len(pieces),
        "kept": kept_guesses,
        "guessed": sum(guesses),
    }


def try_draft(
    model: Llama, prompts: Sequence[Tensor], alone: Sequence[Tensor], name: str, k: int, n_new: int
) -> dict:
    """Return a draft's figures on some prompts: tokens a pass, share kept, same text or not."""
    runs = [write_with_draft(model, ids, draft_of(model, name), k, n_new) for ids in prompts]
    guessed, passes = (sum(run[what] for run in runs) for what in ("guessed", "passes"))
    return {
        "draft": name,
        "k": k,
        "tokens_a_pass": [round(n_new / run["passes"], 2) for run in runs],
        "kept": round(sum(run["kept"] for run in runs) / max(guessed, 1), 3),
        "guessed_a_pass": round(guessed / passes, 2),
        "same": sum(torch.equal(run["new"], text) for run, text in zip(runs, alone, strict=True)),
    }


def measure_guesses(
    model: Llama,
    words: "BytePairs",
    kinds: Sequence[str] = tuple(KINDS),
    drafts: Sequence[tuple[str, int]] = DRAFTS,
    n_new: int = NEW,
) -> dict:
    """Measure guesses by kind of text, draft and its length, as the page shows them."""
    results = {}
    for kind in kinds:
        prompts = [words.encode(text) for text in KINDS[kind]]
        alone = [model.generate(ids, n_new)[len(ids) :] for ids in prompts]
        results[kind] = {
            "prompts": list(KINDS[kind]),
            "writes": [words.decode(ids.tolist()) for ids in alone],
            "rows": [try_draft(model, prompts, alone, *row, n_new) for row in drafts],
        }
    return {"new": n_new, "kinds": results}


def seconds_once(call: Callable) -> float:
    """Return the seconds of processor time that a call takes."""
    began = time.process_time()
    call()
    return time.process_time() - began


def time_drafts(
    model: Llama,
    words: "BytePairs",
    drafts: Sequence[tuple[str, int]] = ((LOOKUP, 4), (LOOKUP, 8), ("24 of 30 layers", 4)),
    n_new: int = NEW,
) -> dict:
    """Return seconds alone over seconds with a draft, by prompt; above 1 the draft is faster."""
    rows = []
    for kind, texts in KINDS.items():
        ratios: dict[str, list[float]] = {f"{name}, k = {k}": [] for name, k in drafts}
        seconds = []
        for text in texts:
            ids = words.encode(text)
            alone = seconds_once(lambda: model.generate(ids, n_new))  # noqa: B023
            seconds.append(round(alone, 2))
            for name, k in drafts:
                draft = draft_of(model, name)
                took = seconds_once(lambda: write_with_draft(model, ids, draft, k, n_new))  # noqa: B023
                ratios[f"{name}, k = {k}"].append(round(alone / took, 2))
        rows.append({"kind": kind, "seconds_alone": seconds, "faster": ratios})
    return {"machine": machine(), "new": n_new, "rows": rows}
