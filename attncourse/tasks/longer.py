"""Chapter 20: texts longer than those of the training, by turning more slowly.

``STRETCHES`` change the angles of RoPE in a trained model, by a factor s of lengths: *interpolated*
divides all positions by s, so every hand is slower; *base changed* takes the base b · s^(d / (d −
2)), so the slowest hand is slower by s and the fastest as it was.

*Letters*: chapter 11's ``Reader`` learns to name the letter before, or three before, in sequences
of 8, and is tried on 32 (s = 4) as it is and changed, each with 0, 20 and 80 steps more of training
at 32; three seeds.

*The real model* was made for 8,192 tokens; to read more takes one core minutes. But a turned model
knows distances alone, so a text of 200 tokens is *torn* (``torn``): its second half stands up to
32,768 positions further on. What that half loses, in nats a token (s = 4, three texts), is what
distances cost that no training has shown. ``bands`` reads a text that is really long.

Sources: Chen et al. (2023), Extending Context Window of Large Language Models via Positional
Interpolation; bloc97 (2023), NTK-Aware Scaled RoPE; Peng et al. (2024), YaRN, section 3.1.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F

from attncourse import llama as chapter_18
from attncourse.llama import Llama
from attncourse.positions import apply_rope
from attncourse.tasks import copying
from attncourse.tasks.adam import Adam
from attncourse.tasks.copying import Reader, copy
from attncourse.tasks.fewer_bits import texts_as_ids
from attncourse.tasks.runs import faded
from attncourse.tasks.training import accuracy, classes, train

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

TRAINED, LONG, BACK, STEPS = 8, 32, 3, 120
MORE = (0, 20, 80)
STRETCHES = ("as it is", "interpolated", "base changed")
FACTOR, PIECE, BAND = 4, 512, 512
GAPS = (0, 4096, 8192, 12288, 16384, 32768)


def slower(way: str, factor: float, x: Tensor, positions: Tensor, base: float = 1e4) -> Tensor:
    """Return ``apply_rope`` as one of ``STRETCHES`` has it. Raises ``ValueError`` for another."""
    if way not in STRETCHES:
        raise ValueError(f"way: expected one of {', '.join(STRETCHES)}, got {way!r}")
    d = x.shape[-1]
    if way == "interpolated":
        positions = positions / factor
    if way == "base changed":
        base = base * factor ** (d / (d - 2))
    return apply_rope(x, positions, base)


@contextmanager
def turn_rope(module: object, way: str, factor: float) -> Iterator[None]:
    """Replace the ``apply_rope`` of a module by one of the ``STRETCHES``, for a while."""
    with patch.object(module, "apply_rope", partial(slower, way, factor)):
        yield


# --- letters --------------------------------------------------------------------------------------


def reader(seed: int, back: int = BACK, steps: int = STEPS) -> Reader:
    """Return a model that has learned to name the letter so many before, in sequences of 8."""
    task = copy(TRAINED, back)
    return train(lambda: Reader("RoPE"), task, rate=0.01, steps=steps, batch=32, seed=seed).model


def trained_more(model: Reader, steps: int, seed: int, back: int = BACK) -> None:
    """Train for some steps at the greater length, at a rate that falls over the second half."""
    task, generator = copy(LONG, back), torch.Generator().manual_seed(100 + seed)
    adam = Adam(model.parameters(), 0.01)
    for step in range(1, steps + 1):
        ids, answer = task(32, generator)
        adam.zero_grad()
        classes(model(ids), answer)[0].backward()
        adam.step(faded(step, steps))


def letters_at_lengths(
    seeds: Sequence[int] = range(3), more: Sequence[int] = MORE, back: int = BACK
) -> dict:
    """Return right answers at 32 letters and at 8, seed by seed, by way and by further steps."""
    rows, readers = [], [reader(seed, back) for seed in seeds]
    for way in STRETCHES:
        for steps in more:
            right: dict[str, list[float]] = {"long": [], "short": []}
            for seed, trained in zip(seeds, readers, strict=True):
                model = deepcopy(trained)
                with turn_rope(copying, way, LONG / TRAINED):
                    trained_more(model, steps, seed, back)
                    for name, n in (("long", LONG), ("short", TRAINED)):
                        right[name].append(round(accuracy(model, copy(n, back), 500), 3))
            rows.append({"way": way, "more": steps, **right})
    return {"trained": TRAINED, "long": LONG, "back": back, "rows": rows}


def letters_by_distance(distances: Sequence[int] = (1, BACK)) -> dict:
    """Return ``letters_at_lengths`` for the letter just before and for the one three before."""
    return {f"{back} back": letters_at_lengths(back=back) for back in distances}


# --- the real model -------------------------------------------------------------------------------


@torch.no_grad()
def bands(model: Llama, ids: Tensor, way: str, factor: float = FACTOR) -> list[float]:
    """Return the nats a token of a long text, by bands of ``BAND`` tokens, read with a cache."""
    cache, losses = [], []
    with turn_rope(chapter_18, way, factor), patch.object(model, "max_length", len(ids)):
        for at in range(0, len(ids) - 1, PIECE):
            piece = ids[at : at + PIECE]
            logits, cache = model(piece, cache)
            targets = ids[at + 1 : at + 1 + len(piece)]
            losses.append(F.cross_entropy(logits[: len(targets)], targets, reduction="none"))
    return [round(float(band.mean()), 3) for band in torch.cat(losses).split(BAND)]


@torch.no_grad()
def torn(model: Llama, ids: Tensor, gap: int, way: str, factor: float = FACTOR) -> float:
    """Return the nats a token of the second half, whose positions lie ``gap`` too far on."""
    half = len(ids) // 2
    positions = torch.arange(len(ids)) + gap * (torch.arange(len(ids)) >= half)
    with turn_rope(chapter_18, way, factor):
        logits = model(ids, positions=positions)
    return round(float(F.cross_entropy(logits[half:-1], ids[half + 1 :])), 3)


@torch.no_grad()
def second_half_alone(model: Llama, ids: Tensor) -> float:
    """Return the nats a token of the same tokens, read without the first half."""
    second_half = ids[len(ids) // 2 :]
    return round(float(F.cross_entropy(model(second_half)[:-1], second_half[1:])), 3)


def torn_texts(model: Llama, words: "BytePairs") -> dict:
    """Measure the real model on each text, each way, each gap, as the page shows it."""
    texts = texts_as_ids(words)
    return {
        "made_for": model.config.max_length,
        "factor": FACTOR,
        "gaps": list(GAPS),
        "alone": {name: second_half_alone(model, ids) for name, ids in texts.items()},
        "rows": [
            {"way": way, "text": name, "nats": [torn(model, ids, gap, way) for gap in GAPS]}
            for way in STRETCHES
            for name, ids in texts.items()
        ],
    }


def bands_of(model: Llama, ids: Tensor, ways: Sequence[str] = STRETCHES) -> dict:
    """Return the figures of one long text in each way, in bands."""
    return {
        "tokens": len(ids),
        "made_for": model.config.max_length,
        "factor": FACTOR,
        "band": BAND,
        "nats": {way: bands(model, ids, way) for way in ways},
    }
