"""Chapter 19: does a head of a real model find what a pronoun stands for, and who needs it?

Twenty-five openings with two nouns, each read with the pronoun of one and of the other: the first
noun and the nearest are right in half of the fifty sentences each, and what a head or the model
thinks of a noun by itself cancels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attncourse.circuits import Head, without_edges, without_heads
from attncourse.interpret import attention_maps, residual_stream
from attncourse.llama import Llama

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

OPENINGS = {
    "number": (
        ("the man", "saw", "the cats", "He", "They"),
        ("the girls", "followed", "the boy", "They", "He"),
        ("the queen", "heard", "the birds", "She", "They"),
        ("the dogs", "found", "the woman", "They", "She"),
        ("the teacher", "met", "the students", "She", "They"),
        ("the horses", "watched", "the farmer", "They", "He"),
    ),
    "gender": (
        ("the boy", "met", "the queen", "He", "She"),
        ("the mother", "called", "the king", "She", "He"),
        ("the uncle", "visited", "the girl", "He", "She"),
        ("the sister", "found", "the brother", "She", "He"),
        ("the husband", "heard", "the wife", "He", "She"),
        ("the princess", "followed", "the man", "She", "He"),
    ),
    "names": (
        ("Anna", "met", "Peter", "She", "He"),
        ("John", "called", "Maria", "He", "She"),
        ("Sarah", "visited", "David", "She", "He"),
        ("Thomas", "saw", "Mary", "He", "She"),
        ("Alice", "heard", "Robert", "She", "He"),
        ("Paul", "found", "Laura", "He", "She"),
        ("Emma", "followed", "James", "She", "He"),
    ),
    "thing": (
        ("the woman", "bought", "the lamp", "She", "It"),
        ("the book", "surprised", "the man", "It", "He"),
        ("the girl", "cleaned", "the chair", "She", "It"),
        ("the car", "missed", "the boy", "It", "He"),
        ("the king", "opened", "the door", "He", "It"),
        ("the letter", "reached", "the aunt", "It", "She"),
    ),
}


@dataclass(frozen=True)
class Sentence:
    """A sentence up to its pronoun: ids, the places of its noun and the other, the question."""

    kind: str
    text: str
    first: bool  # whether the pronoun's noun is the first of the two
    ids: Tensor
    noun: int
    other: int
    question: Tensor  # ids that go on from there, up to the word that is asked for
    right: int
    wrong: int

    @property
    def pronoun(self) -> int:
        """The place of the pronoun, which is the last token."""
        return len(self.ids) - 1


def sentences(words: "BytePairs") -> list[Sentence]:
    """Return the fifty sentences, in pairs with one opening."""
    return [
        make_sentence(words, kind, opening, first)
        for kind, openings in OPENINGS.items()
        for opening in openings
        for first in (True, False)
    ]


def make_sentence(words: "BytePairs", kind: str, opening: Sequence[str], first: bool) -> Sentence:
    """Return one of the sentences. Raises ``ValueError`` for a noun that is no single token."""
    first_noun, verb, second_noun, *pronouns = opening
    pronoun = pronouns[0 if first else 1]
    text = f"Today {first_noun} {verb} {second_noun}. {pronoun}"
    ids = words.encode(text)
    places = [noun_place(words, ids, noun) for noun in (first_noun, second_noun)]
    noun, other = places if first else places[::-1]
    question = words.encode(", that is," + ("" if kind == "names" else " the"))
    return Sentence(kind, text, first, ids, noun, other, question, int(ids[noun]), int(ids[other]))


def noun_place(words: "BytePairs", ids: Tensor, noun: str) -> int:
    """Return where the last word of a noun stands."""
    token = words.encode(" " + noun.split()[-1])
    places = (ids == token[0]).nonzero().flatten().tolist()
    if len(token) != 1 or len(places) != 1:
        raise ValueError(f"{noun!r}: expected one token that stands once in the sentence")
    return places[0]


# --- where heads look -------------------------------------------------------------------------


def pronoun_attention(model: Llama, sentences: Sequence[Sentence]) -> Float[Tensor, "s 2 l h"]:
    """Return the attention of each head from the pronoun to its noun, and to the other."""
    rows = []
    for sentence in sentences:
        row = attention_maps(model, sentence.ids)[..., -1, :]  # (l, h, n)
        rows.append(torch.stack([row[..., sentence.noun], row[..., sentence.other]]))
    return torch.stack(rows)


def hits(weights: Float[Tensor, "s 2 l h"]) -> Float[Tensor, "s l h"]:
    """Return 1 where the noun gets more than the other, else 0."""
    return (weights[:, 0] > weights[:, 1]).double()


def chosen_on_half(weights: Float[Tensor, "s 2 l h"], draws: int = 500, seed: int = 0) -> float:
    """Return how often the best head of half of the openings is right in the other, on average."""
    right = hits(weights).flatten(1).numpy().reshape(-1, 2, weights.shape[-2] * weights.shape[-1])
    weight = weights[:, 0].flatten(1).numpy().reshape(right.shape)
    rng, shares = np.random.default_rng(seed), []
    for _ in range(draws):
        order = rng.permutation(len(right))
        half, rest = order[: len(order) // 2], order[len(order) // 2 :]
        # Of heads that are right equally often, the one that looks there most.
        score = right[half].mean((0, 1)) + 1e-3 * weight[half].mean((0, 1))
        shares.append(right[rest].mean((0, 1))[score.argmax()])
    return float(np.mean(shares))


# --- what it is worth -------------------------------------------------------------------------


@torch.no_grad()
def noun_log_gaps(
    model: Llama, texts: Sequence[Sentence], stream: Tensor | None = None, layer: int = 0
) -> Float[Tensor, "s"]:
    """Return log p(noun) − log p(other) for what comes after *He, that is, the*, in nats.

    stream: what runs from block to block where nothing is changed, of which the model goes on
    before ``layer``; read anew unless given.
    """
    ids, last = prompts(texts)
    x = model.tokens(ids) if stream is None else stream[layer]
    for block in model.blocks[layer:]:
        x = block(x)
    logits = model.out(model.norm(x[torch.arange(len(ids)), last]))
    right = torch.tensor([[sentence.right] for sentence in texts])
    wrong = torch.tensor([[sentence.wrong] for sentence in texts])
    return (logits.gather(1, right) - logits.gather(1, wrong))[:, 0]


def prompts(examples: Sequence[Sentence]) -> tuple[Tensor, Tensor]:
    """Return the texts as ids of one length, and the place of each one's own last token.

    What is behind a text's end is seen by nobody before it.
    """
    texts = [torch.cat([sentence.ids, sentence.question]) for sentence in examples]
    n = max(map(len, texts))
    ids = torch.stack([torch.cat([text, text.new_zeros(n - len(text))]) for text in texts])
    return ids, torch.tensor([len(text) - 1 for text in texts])


def gap_without(
    model: Llama, texts: Sequence[Sentence], heads: Sequence[Head], stream: Tensor | None = None
) -> float:
    """Return the mean gap while these heads are switched off."""
    first = 0 if stream is None else min(layer for layer, _ in heads)
    with without_heads(model, heads):
        return round(noun_log_gaps(model, texts, stream, first).mean().item(), 3)


def gaps_without_edge(
    model: Llama, texts: Sequence[Sentence], head: Head, to: str = "noun"
) -> Float[Tensor, "s"]:
    """Return the gaps with one entry of a head's map cut: from the pronoun to a noun."""
    gaps = []
    for sentence in texts:
        edge = sentence.pronoun, getattr(sentence, to)
        with without_edges(model, {head: [edge]}):
            gaps.append(noun_log_gaps(model, [sentence]))
    return torch.cat(gaps)


def measure_pronoun_heads(
    model: Llama, words: "BytePairs", heads: Sequence[Head] | None = None
) -> dict:
    """Measure pronoun heads, as the page shows them; ablations for these heads alone."""
    texts = sentences(words)
    weights = pronoun_attention(model, texts)
    right = hits(weights)
    stream = residual_stream(model, prompts(texts)[0])
    as_it_is = noun_log_gaps(model, texts, stream, len(model.blocks))
    every = [(layer, head) for layer in range(weights.shape[2]) for head in range(weights.shape[3])]
    best = right.mean(0).flatten() + 1e-3 * weights[:, 0].mean(0).flatten()
    finders = [every[i] for i in best.argsort(descending=True)[:8].tolist()]
    alone, cut_at = (every, finders[:4]) if heads is None else (heads, heads)
    return {
        "sentences": [
            {"kind": sentence.kind, "text": sentence.text, "first": sentence.first}
            for sentence in texts
        ],
        "finders": [
            {
                "head": head_name(head),
                "hits": [int(x) for x in right[:, head[0], head[1]]],
                "noun": round(weights[:, 0, head[0], head[1]].mean().item(), 3),
                "other": round(weights[:, 1, head[0], head[1]].mean().item(), 3),
            }
            for head in finders
        ],
        "hits_of_all": [round(x, 2) for x in right.mean(0).flatten().tolist()],
        "chosen_on_half": round(chosen_on_half(weights), 3),
        "gap": [round(x, 2) for x in as_it_is.tolist()],
        "gap_without_head": {
            head_name(head): gap_without(model, texts, [head], stream) for head in alone
        },
        "gap_without_edge": {
            head_name(head): {
                to: round(gaps_without_edge(model, texts, head, to).mean().item(), 3)
                for to in ("noun", "other")
            }
            for head in cut_at
        },
        "gap_without_random_edge": {
            head_name(head): round(gaps_without_edge(model, texts, head).mean().item(), 3)
            for head in draw_heads(every, finders, 10 if heads is None else 1, 1)[0]
        },
        "gap_without_finders": {
            str(n): gap_without(model, texts, finders[:n], stream) for n in (2, 4, 8)
        },
        "gap_without_random": [
            gap_without(model, texts, drawn, stream)
            for drawn in draw_heads(every, finders, 8, 10 if heads is None else 1)
        ],
    }


def draw_heads(every: Sequence[Head], but: Sequence[Head], n: int, times: int, seed: int = 0):
    """Return so many draws of n heads that are not among some."""
    rng, rest = np.random.default_rng(seed), [head for head in every if head not in but]
    return [[rest[i] for i in rng.choice(len(rest), n, replace=False)] for _ in range(times)]


def head_name(head: Head) -> str:
    """Return layer and head with a point between them: 13.8."""
    return f"{head[0]}.{head[1]}"
