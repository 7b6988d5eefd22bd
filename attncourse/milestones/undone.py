"""Chapter 18: what a real model loses where one decision of chapters 2 to 12 is undone.

Each row of ``ROWS`` changes one decision in a trained ``Llama``: for a while another option, most
often a wrong one of the course's own checks, stands in the place of the model's own. ``nats`` says
what the model then loses a token, ``write_greedily`` how it goes on. ``python
benchmarks/undone.py`` tries all and keeps what comes out in ``attncourse/data/undone.json``.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from attncourse import llama as chapter
from attncourse.checks import exercises
from attncourse.checks.exercise import parts_of
from attncourse.checks.writing import mistakes, recipes
from attncourse.checks.writing.decisions import Attention
from attncourse.gpt import generate, next_token_loss
from attncourse.kqv import scaled_dot_product_attention
from attncourse.llama import Llama, RotaryAttention
from attncourse.positions import apply_rope
from attncourse.pretrained.byte_pairs import BytePairs
from attncourse.transformer import layer_norm

Places = dict[str, Any]  # what stands where, by its name in chapter 18's module

TEXTS = {
    "a story": (
        "Every evening the lighthouse keeper climbed the stairs with a small tin of oil. He knew "
        "each step by its sound. One night the ninth step was silent, and when he looked down, a "
        "grey cat was sleeping on it. He sat beside her until the lamp above had almost gone out."
    ),
    "facts": (
        "Bees tell each other where flowers are by dancing. The angle of the dance shows the "
        "direction of the food against the sun, and its length shows how far it is. A colony of "
        "forty thousand bees visits millions of flowers to make a single jar of honey."
    ),
    "a dialogue": (
        '"Did you lock the door?" asked Tom. "I thought that you did," said his sister. "I had '
        'the bread, the lamp and the dog." Tom looked at the dog, and the dog looked away. "Then '
        'we had better go back," he said, "before the soup begins to boil."'
    ),
}
BEGUN_TEXT = "The baker opened his shop early in the morning. He put the warm bread"
N_NEW_TOKENS = 12  # tokens that are written behind it


@dataclass(frozen=True)
class UndoneDecision:
    """One decision, the chapter that took it, and what stands in its place.

    ``places`` gives what stands where, from the model. ``entry``: the mistake of the checks that it
    is, as (target, name), for the field guide; None where it is a right function in a wrong place.
    """

    name: str
    stem: str
    places: Callable[[Llama], Places] = lambda model: {}
    entry: tuple[str, str] | None = None


def mistaken(target: str, name: str) -> Any:
    """Return the wrong implementation of a mistake that the checks know."""
    wrong_functions = [m.wrong for m in exercises()[target].mistakes if m.name == name]
    if not wrong_functions or wrong_functions[0] is None:
        raise ValueError(f"{target}: the checks know no mistake called {name!r}")
    return wrong_functions[0]


def option(target: str, name: str, decision: str) -> Callable:
    """Return the wrong option that makes a mistake of a composition."""
    parts = parts_of(mistaken(target, name))
    if parts is None:
        raise ValueError(f"{target}: {name} is written as a whole, without decisions")
    return parts.chosen[decision]


def attention(**options: Any) -> Places:
    """Return attention with wrong options, in the place of chapter 5's."""
    made = Attention(**options)
    return {"scaled_dot_product_attention": lambda q, k, v, mask: made.output(q, k, v, mask)}


def of_attention(name: str, stem: str, recipe: recipes.Recipe) -> UndoneDecision:
    """Return a decision that a recipe's wrong option of attention undoes."""
    entry = ("kqv.scaled_dot_product_attention", recipe.name)
    return UndoneDecision(name, stem, lambda model: attention(**recipe.ways[0]), entry)


def by_mistake(name: str, place: str, target: str, called: str) -> UndoneDecision:
    """Return a decision that a known mistake of an exercise undoes.

    ``called`` is the mistake's name; ``place`` is where the model calls the exercise's function.
    """
    return UndoneDecision(
        name,
        target.split(".")[0],
        lambda model: {place: mistaken(target, called)},
        (target, called),
    )


def by_root_of_d_model(model: Llama) -> Places:
    """Return places for a scale of √d_model, of the tokens that the heads' queries come from."""
    wrong = option("multihead.MultiHeadAttention", "divided by √d_model or √h", "factor")
    x = torch.empty(1, model.config.d_model)
    return attention(factor=lambda query, key, other: wrong(query, key, x))


def uniform(model: Llama) -> Places:
    """Return places for a scale of 0: each token takes the mean of all it may see (chapter 2)."""
    return {"scaled_dot_product_attention": partial(scaled_dot_product_attention, scale=0.0)}


def values_turned(model: Llama) -> Places:
    """Return an attention that turns its values by their places as well."""

    def turned(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(value.shape[-2])
        value = apply_rope(value, places, model.config.base)
        return scaled_dot_product_attention(query, key, value, mask)

    return {"scaled_dot_product_attention": turned}


def in_turns(model: Llama) -> Places:
    """Return places for key/value heads 0, 1, 2, 0, 1, 2 in place of 0, 0, 1, 1."""
    share = option(
        "multihead.MultiHeadAttention", "key/value heads are not repeated in runs", "share"
    )
    group = model.config.n_heads // model.config.n_kv_heads
    return {"RotaryAttention.for_queries": lambda self, x: share(x, group)}


def one_for_all(self: RotaryAttention, x: Tensor) -> Tensor:
    """Return the mean key or value of all heads, for each query head."""
    return x.mean(-3, keepdim=True).expand(*x.shape[:-3], self.n_heads, *x.shape[-2:])


def zero_branch(module: Any, x: Tensor, *arguments: Any) -> Tensor:
    """Return a branch that adds nothing."""
    return torch.zeros_like(x)


def without_a_stream(self: Any, x: Tensor, mask=None, positions=None, cache=None) -> Tensor:
    """Return what a block without a stream gives: each branch reads the one before."""
    return self.feed_forward(self.norm_2(self.attention(self.norm_1(x), mask, positions)))


SDPA, HEADS = "kqv.scaled_dot_product_attention", "multihead.MultiHeadAttention"
ROWS = (
    UndoneDecision("as it is", "llama"),
    UndoneDecision("uniform weights", "mixing", uniform),
    of_attention("softmax over the queries", "kqv", mistakes.OVER_QUERIES),
    of_attention("queries and keys exchanged", "kqv", mistakes.ROLES_EXCHANGED),
    of_attention("no scale", "scaling", mistakes.NO_SCALE),
    of_attention("divided by d_k", "scaling", mistakes.DIVIDED_BY_D_K),
    UndoneDecision("divided by √d_model", "scaling", by_root_of_d_model,
        (HEADS, "divided by √d_model or √h")),
    UndoneDecision("one key/value head for all", "multihead",
        lambda model: {"RotaryAttention.for_queries": one_for_all}),
    UndoneDecision("key/value heads in turns", "multihead", in_turns,
        (HEADS, "key/value heads are not repeated in runs")),
    of_attention("no causal mask", "masking", mistakes.MASK_IGNORED),
    by_mistake("a token does not see itself", "causal_mask",
               "masking.causal_mask", "a token does not see itself"),
    UndoneDecision("no positions", "positions",
        lambda model: {"apply_rope": lambda x, positions, base: x}),
    by_mistake("pairs of another file", "apply_rope",
               "positions.apply_rope", "pairs (i, i + d/2)"),
    by_mistake("base 10,000", "apply_rope", "positions.apply_rope", "base is ignored"),
    UndoneDecision("values turned too", "positions", values_turned),
    UndoneDecision("no norm", "transformer",
        lambda model: {"rms_norm": lambda x, gain, eps: x}),
    UndoneDecision("the mean taken off too", "transformer",
        lambda model: {"rms_norm": lambda x, gain, eps: layer_norm(x, gain, eps=eps)}),
    UndoneDecision("nothing is added to a stream", "transformer",
        lambda model: {"LlamaBlock.forward": without_a_stream},
        ("transformer.EncoderBlock", "the residual is missing")),
    UndoneDecision("no attention", "transformer",
        lambda model: {"RotaryAttention.forward": zero_branch},
        ("transformer.EncoderBlock", "no attention")),
    UndoneDecision("no feed-forward layer", "transformer",
        lambda model: {"SwiGLU.forward": zero_branch},
        ("transformer.EncoderBlock", "no feed-forward layer")),
)  # fmt: skip


@contextmanager
def undone(row: UndoneDecision, model: Llama) -> Iterator[Llama]:
    """Undo this decision in the model inside the ``with`` block."""
    with ExitStack() as stack:
        for place, wrong in row.places(model).items():
            *owner, name = place.split(".")
            where = getattr(chapter, owner[0]) if owner else chapter
            stack.enter_context(patch.object(where, name, wrong))
        yield model


@torch.no_grad()
def nats(model: Llama, words: BytePairs, text: str) -> float:
    """Return the mean surprise at a token of the text, in nats; NaN where no numbers come out."""
    ids = words.encode(text)
    try:
        return float(next_token_loss(model(ids), ids))
    except ValueError:  # chapter 5's attention refuses to hide NaN
        return math.nan


def write_greedily(model: Llama, words: BytePairs, text: str, n_new: int = N_NEW_TOKENS) -> str:
    """Return the likeliest words behind a text, token by token, without a cache."""
    ids = words.encode(text)
    return words.decode(generate(model, ids, n_new)[len(ids) :])


def try_undone(row: UndoneDecision, model: Llama, words: BytePairs) -> dict[str, Any]:
    """Undo one decision in the model; return its losses, and what it writes.

    There is one loss for each text, in nats a token.
    """
    with undone(row, model):
        losses = {name: round(nats(model, words, text), 4) for name, text in TEXTS.items()}
        mean = sum(losses.values()) / len(losses)
        # Of logits that are no numbers none is the likeliest.
        said = "" if math.isnan(mean) else write_greedily(model, words, BEGUN_TEXT)
    return {"name": row.name, "stem": row.stem, "entry": row.entry, "nats": losses,
            "mean": round(mean, 4), "writes": said}  # fmt: skip
