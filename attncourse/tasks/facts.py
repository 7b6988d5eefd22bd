"""Chapter 19: when a real model knows an answer, and along which way it reaches the last word."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attncourse.circuits import Edge, Head, logit_lens, patched, without_edges
from attncourse.interpret import residual_stream
from attncourse.llama import Llama
from attncourse.tasks.pronoun_heads import head_name

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

FACTS = (
    ("The capital of France is", "Paris"),
    ("The capital of Japan is", "Tokyo"),
    ("The opposite of hot is", "cold"),
    ("The sun rises in the", "east"),
    ("A week has seven", "days"),
    ("Two, four, six,", "eight"),
)
CAPITALS = {
    "France": "Paris",
    "Italy": "Rome",
    "Germany": "Berlin",
    "Spain": "Madrid",
    "England": "London",
    "Japan": "Tokyo",
    "Austria": "Vienna",
    "Russia": "Moscow",
}
# In both directions each: six pairs, twelve runs.
PAIRS = (
    ("France", "Italy"),
    ("Germany", "Spain"),
    ("Japan", "Russia"),
    ("England", "Austria"),
    ("Italy", "Germany"),
    ("Spain", "France"),
)
TEMPLATES = (
    "The capital of {} is",
    "The capital city of {} is called",
    "Q: What is the capital of {}? A: The capital is",
    "She flew to {} and stayed in its capital,",
    "In {}, the largest city is",
)


def answer_of(words: "BytePairs", word: str) -> int:
    """Return the token of a word behind a blank. Raises ``ValueError`` for a word of several."""
    ids = words.encode(" " + word)
    if len(ids) != 1:
        raise ValueError(f"{word!r}: expected a word of one token, got {len(ids)}")
    return int(ids[0])


# --- who knew it when -------------------------------------------------------------------------


def lens(model: Llama, words: "BytePairs", text: str, answer: str) -> dict:
    """Return the answer's probability and rank in the last token's vector after each block."""
    stream = residual_stream(model, words.encode(text))[:, -1]  # (l + 1, d)
    logits = logit_lens(stream, model.norm.gain, model.out.weight)
    token = answer_of(words, answer)
    rank = (logits > logits[:, token : token + 1]).sum(-1)
    return {
        "text": text,
        "answer": answer,
        "probability": [round(x, 4) for x in logits.softmax(-1)[:, token].tolist()],
        "rank": rank.tolist(),
        "first": [words.decode([i]) for i in logits.argmax(-1).tolist()],
    }


# --- where the answer is ----------------------------------------------------------------------


def gap(logits: Float[Tensor, "n n_vocab"], token: int, other: int) -> float:
    """Return log p(token) − log p(other) for what comes next."""
    return (logits[-1, token] - logits[-1, other]).item()


@torch.no_grad()
def patch_map(
    model: Llama, words: "BytePairs", pair: tuple[str, str], layers: Sequence[int] | None = None
) -> dict:
    """Return by layer and position how much of the gap between two capitals one vector brings.

    The first country's run is put into the second's: 0 where nothing changes, 1 where the gap is
    as in the first one's run.
    """
    clean, corrupted = (words.encode(TEMPLATES[0].format(country)) for country in pair)
    capital, other = (answer_of(words, CAPITALS[country]) for country in pair)
    at_best, at_worst = (gap(model(ids), capital, other) for ids in (clean, corrupted))
    layers = range(len(model.blocks)) if layers is None else layers
    rows = []
    for layer in layers:
        row = []
        for position in range(len(clean)):
            patched_gap = gap(patched(model, clean, corrupted, layer, position), capital, other)
            row.append(round((patched_gap - at_worst) / (at_best - at_worst), 3))
        rows.append(row)
    return {"pair": list(pair), "gaps": [round(at_best, 2), round(at_worst, 2)], "map": rows}


# --- which edge carries it --------------------------------------------------------------------


def runs(words: "BytePairs", template: str) -> list[tuple[Tensor, int, int, int]]:
    """Return for each ordered pair ids, where the country stands, its capital and the other's."""
    country_runs = []
    for pair in PAIRS:
        for country_name, other in (pair, pair[::-1]):
            ids = words.encode(template.format(country_name))
            country = answer_of(words, country_name)
            where = (ids == country).nonzero().flatten()
            right, wrong = (answer_of(words, CAPITALS[name]) for name in (country_name, other))
            country_runs.append((ids, int(where[0]), right, wrong))
    return country_runs


@torch.no_grad()
def gaps_without(
    model: Llama,
    country_runs: Sequence[tuple[Tensor, int, int, int]],
    heads: Sequence[Head],
    key=None,
) -> Float[Tensor, "r"]:
    """Return the gaps with the edge from the last token to the country cut in these heads.

    key: another token, by its position, in place of the country.
    """
    ids = torch.stack([right[0] for right in country_runs])
    at = country_runs[0][1] if key is None else key
    edge: Edge = (ids.shape[-1] - 1, at)
    with without_edges(model, {head: [edge] for head in heads}):
        logits = model(ids)[:, -1]
    right, wrong = (torch.tensor([row[i] for row in country_runs])[:, None] for i in (2, 3))
    return (logits.gather(1, right) - logits.gather(1, wrong))[:, 0]


def carriers(
    model: Llama, words: "BytePairs", template: str = TEMPLATES[0], layers: Sequence[int] = ()
) -> Float[Tensor, "l h"]:
    """Return the mean gap without each head's edge from the last token to the country."""
    country_runs = runs(words, template)
    layers = layers or range(len(model.blocks))
    n_heads = model.config.n_heads
    return torch.tensor(
        [
            [gaps_without(model, country_runs, [(layer, h)]).mean().item() for h in range(n_heads)]
            for layer in layers
        ]
    )


def measure_facts(
    model: Llama, words: "BytePairs", pairs=PAIRS, layers: Sequence[int] | None = None
) -> dict:
    """Measure facts, as the page shows them; pairs and layers may be fewer."""
    country_runs = runs(words, TEMPLATES[0])
    left = carriers(model, words, layers=layers or ())
    numbers = list(range(len(model.blocks)) if layers is None else layers)
    order = left.flatten().argsort().tolist()
    best = [(numbers[i // left.shape[1]], i % left.shape[1]) for i in order[:3]]
    as_it_is = gaps_without(model, country_runs, [])
    return {
        "lens": [lens(model, words, *fact) for fact in FACTS],
        "tokens": [words.decode([i]) for i in words.encode(TEMPLATES[0].format("France")).tolist()],
        "patches": [patch_map(model, words, pair, layers) for pair in pairs],
        "gap": [round(x, 3) for x in as_it_is.tolist()],
        "gap_without_edge": [[round(x, 3) for x in row] for row in left.tolist()],
        "carriers": [
            {
                "head": head_name(head),
                "gap": [round(x, 3) for x in gaps_without(model, country_runs, [head]).tolist()],
                "other_keys": [
                    round(gaps_without(model, country_runs, [head], key).mean().item(), 3)
                    for key in range(country_runs[0][1])
                ],
            }
            for head in best
        ],
        "three_together": [round(x, 3) for x in gaps_without(model, country_runs, best).tolist()],
        "templates": [
            {
                "template": template,
                "gap": round(gaps_without(model, runs(words, template), []).mean().item(), 3),
                "without": round(
                    gaps_without(model, runs(words, template), best[:1]).mean().item(), 3
                ),
                "without_three": round(
                    gaps_without(model, runs(words, template), best).mean().item(), 3
                ),
            }
            for template in TEMPLATES
        ],
    }
