"""Gates of a model that answers: with random weights, and with those of SmolLM2."""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attncourse import llama
from attncourse.milestones import gates
from attncourse.milestones.gates import (
    MAX_DIFFERENCE,
    difference_message,
    of_shape,
    relative_difference,
)
from attncourse.milestones.language_gates import drawn_as_often
from attncourse.milestones.milestone import Gate

TEXT = (
    "My cat is small, cute, and fluffy. She likes belly rubs. In the evening she sits at the "
    "window and waits for us."
)
RANKS = {
    ("b", "c"): 0, ("a", "b"): 1, ("a", "a"): 2, ("bc", "d"): 3, ("aa", "aa"): 4, ("ab", "e"): 5,
}  # fmt: skip
WORDS_TO_SPLIT = ("abcd", "ababe", "aaaaa", "eabcdaab", "", "e", "bcbcbcd")


@cache
def sample_chat_ids(n: int = 4) -> Tensor:
    """Ids for the small model, ``(n, 11)``."""
    return torch.randint(61, (n, 11), generator=torch.Generator().manual_seed(77))


@cache
def sample_block_input() -> Tensor:
    """Tokens ``(3, 7, 54)`` for one block."""
    return torch.randn(3, 7, 54, generator=torch.Generator().manual_seed(78))


def check_word_pieces(model: Any) -> str:
    """Return how a word is cut otherwise than by our pairs; "" where none is."""
    for word in WORDS_TO_SPLIT:
        got, right = model.merge_pairs(list(word), RANKS), llama.merge_pairs(list(word), RANKS)
        if got != right:
            return f"{word!r} is cut into {' + '.join(got)}, expected {' + '.join(right)}"
    return ""


def check_rms_norm(model: Any) -> str:
    """A row's mean square, and nothing else, is taken out."""
    x, gain = sample_block_input() + 2, torch.linspace(-1, 2, 54)
    for eps in (1e-5, 3.0):
        far = relative_difference(F.rms_norm(x, (54,), gain, eps), model.norm(x, gain, eps))
        if far > MAX_DIFFERENCE:
            return difference_message("rows are not divided by the root of their mean square", far)
    return difference_message("without a gain a row is not at a mean square of 1",
                 relative_difference(F.rms_norm(x, (54,), eps=1e-5), model.norm(x)))  # fmt: skip


def gated(model: Any) -> str:
    """Return how far the layer is from silu of one view times the other; "" where it is not."""
    layer, x = model.blocks[0].feed_forward, sample_block_input()
    right = layer.W_down(F.silu(layer.W_gate(x)) * layer.W_up(x))
    return difference_message(
        "a gated layer is not W_down(silu(W_gate x) · W_up x)", relative_difference(right, layer(x))
    )


def check_rotary_pairs(model: Any) -> str:
    """The rows of W_q and W_k, stored for two halves, stand for pairs."""
    for block, theirs in zip(model.blocks, model.ours.blocks, strict=True):
        for name in ("W_q", "W_k"):
            got = getattr(block.attention, name).weight
            if not torch.equal(got, getattr(theirs.attention, name).weight):
                return f"the rows of {name}, stored in halves, do not become pairs"
    return ""


def logits_for_every_piece(model: Any) -> str:
    """Return what is wrong with the logits' shape; "" for one row a piece."""
    ids = sample_chat_ids()
    return of_shape(model(ids), (*ids.shape, 61))


def check_chat_relative_positions(model: Any) -> str:
    """Further on everything is as before; further apart it is not."""
    block, x = model.blocks[0], sample_block_input()
    near = block(x)
    far = relative_difference(near, block(x, positions=torch.arange(7) + 20))
    if far > MAX_DIFFERENCE:
        return difference_message(
            "a block says something else where all positions are 20 further on", far
        )
    apart_ = relative_difference(near, block(x, positions=5 * torch.arange(7)))
    return "positions five times as far apart change nothing" if apart_ < 0.01 else ""


def check_chat_block_parts(model: Any) -> str:
    """A block is heads that attend, then a gated layer, each read through a norm and added."""
    for block in model.blocks:
        x, places = sample_block_input(), torch.arange(7)
        views = model.views(block, model.norm(x, block.norm_1.gain, 1e-5), places)
        right = x + block.attention.W_o(model.merge(model.attend(*views, model.causal(7))))
        right = right + block.feed_forward(model.norm(right, block.norm_2.gain, 1e-5))
        far = relative_difference(right, block(x))
        if far > MAX_DIFFERENCE:
            return difference_message("a block is not what its heads and its layers say", far)
    return ""


def check_chat_diagonal(model: Any) -> str:
    """Return that a piece does not see itself; "" where each does."""
    return "a piece does not see itself" if not model.causal(8).diagonal().all() else ""


def no_key_no_blend(model: Any) -> str:
    """A row that may see nothing, as padding to the left makes them, takes nothing."""
    mask = torch.ones(7, 7, dtype=torch.bool).tril()
    mask[:, :2] = False
    block, x = model.blocks[0], sample_block_input()
    right = x + block.feed_forward(model.norm(x, block.norm_2.gain, 1e-5))
    return difference_message("a token that may see nothing does not stay what it is",
                 relative_difference(right[:, :2], block(x, mask)[:, :2]))  # fmt: skip


def as_ours(model: Any) -> str:
    """Return how far the logits are from those of our parts; "" where they agree."""
    ids = sample_chat_ids()
    return difference_message(
        "its logits are not those of our parts", relative_difference(model.ours(ids), model(ids))
    )


def check_chat_cache(model: Any) -> str:
    """Read piece by piece, with a cache, a text is what it is read at once."""
    said, caches = [], [None] * len(model.blocks)
    for piece in sample_chat_ids().split([5, 1, 4, 1], dim=1):
        logits, caches = model.with_cache(piece, caches)
        said.append(logits)
    return difference_message("with a cache it says something else than without",
                 relative_difference(model(sample_chat_ids()), torch.cat(said, dim=1)))  # fmt: skip


def check_chat_loss(model: Any) -> str:
    """Return the loss and our own where they differ; "" where they agree."""
    ids = sample_chat_ids()
    logits = model(ids)
    ours = float(F.cross_entropy(logits[:, :-1].mT, ids[:, 1:]))
    theirs = float(model.loss(logits, ids))
    return (
        f"the loss is {theirs:.4g}, our own finds {ours:.4g}"
        if not abs(theirs - ours) < 1e-3
        else ""
    )


# --- with the real weights ------------------------------------------------------------------------


@cache
def ours_on_the_text(model: llama.Llama, ids: tuple[int, ...]) -> Tensor:
    """Return the logits of our parts on a text."""
    return model(torch.tensor(ids))


def theirs_and_ours(model: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the text's ids, the model's logits on it, and those of our parts."""
    ids = model.words.encode(TEXT)
    return ids, model(ids), ours_on_the_text(model.ours, tuple(ids.tolist()))


def same_pieces(model: Any) -> str:
    """Return that the text has other pieces than it should; "" where it has not."""
    got, right = model.encode(TEXT).tolist(), model.words.encode(TEXT).tolist()
    return f"the text has {len(got)} pieces, expected others, {len(right)}" if got != right else ""


def same_logits(model: Any) -> str:
    """To a thousandth, on a text of some thirty pieces."""
    _, theirs, ours = theirs_and_ours(model)
    far = float((theirs - ours).abs().max().nan_to_num(nan=torch.inf))
    return (
        f"SmolLM2's logits through your parts differ from ours by {far:.2g}"
        if not far < 1e-3
        else ""
    )


def same_surprise(model: Any) -> str:
    """Return what the text costs, and ours finds, where these differ; else ""."""
    ids, theirs, ours = theirs_and_ours(model)
    got = float(model.loss(theirs, ids))
    right = float(F.cross_entropy(ours[:-1], ids[1:]))
    return (
        f"the text costs {got:.3f} nats a piece, ours finds {right:.3f}"
        if not abs(got - right) < 1e-3
        else ""
    )


def same_with_a_cache(model: Any) -> str:
    """Return how far logits are off with a cache; "" where they agree."""
    ids, _, ours = theirs_and_ours(model)
    first, caches = model.with_cache(ids[:-2], [None] * len(model.blocks))
    rest, _ = model.with_cache(ids[-2:], caches)
    far = float((torch.cat([first, rest]) - ours).abs().max().nan_to_num(nan=torch.inf))
    return f"with a cache SmolLM2's logits are off by {far:.2g}" if not far < 1e-3 else ""


UNTRAINED = (
    Gate("words in pieces", check_word_pieces),
    Gate("rows of one size", check_rms_norm),
    Gate("a gated layer", gated),
    Gate("rows stored in halves become pairs", check_rotary_pairs),
    Gate("drawn as often as likely", drawn_as_often),
    Gate("logits for every piece", logits_for_every_piece),
    Gate("a piece sees itself", check_chat_diagonal),
    Gate("nothing ahead is seen", gates.nothing_ahead(sample_chat_ids, "pieces")),
    Gate("everything behind is seen", gates.all_behind(sample_chat_ids, "piece")),
    Gate("one text at a time or many", gates.batch_independence_gate(sample_chat_ids, "text")),
    Gate("no batch axis", gates.no_batch_axis_gate(sample_chat_ids, "text")),
    Gate("distances alone", check_chat_relative_positions),
    Gate("blocks are their parts", check_chat_block_parts),
    Gate("nothing to see, nothing taken", no_key_no_blend),
    Gate("logits are ours", as_ours),
    Gate("the loss is our own", check_chat_loss),
    Gate("a cache changes nothing", check_chat_cache),
)
TRAINED = (
    Gate("SmolLM2's pieces", same_pieces),
    Gate("SmolLM2's logits", same_logits),
    Gate("nats a piece on a text", same_surprise),
    Gate("SmolLM2 with a cache", same_with_a_cache),
)
