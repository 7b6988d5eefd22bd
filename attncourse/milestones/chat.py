"""After chapter 18: SmolLM2 answers a question through these parts, piece by piece.

The weights are those of the real model (``pretrained/model.py``); what is computed with them is the
student's: pieces of words, norms, rotations, attention, blocks, the cache and the choice of a word.
Before it is loaded, a small model of random weights is held against ours.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from attncourse.llama import Llama, LlamaConfig
from attncourse.milestones.chat_gates import TRAINED, UNTRAINED
from attncourse.milestones.chat_picture import draw_chat
from attncourse.milestones.milestone import Milestone
from attncourse.milestones.parts import Parts
from attncourse.pretrained import model as real

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

QUESTION, LONGEST = "What is the capital of France?", 60  # pieces of an answer
SMALL = LlamaConfig(61, 97, 54, 9, 3, 2, 29, 100.0)
USES = (
    "kqv.scaled_dot_product_attention", "multihead.split_heads", "multihead.merge_heads",
    "masking.causal_mask", "positions.apply_rope", "gpt.next_token_loss", "gpt.sample_token",
    "gpt.attend_with_cache", "llama.merge_pairs", "llama.rms_norm", "llama.SwiGLU",
    "llama.pairs_from_halves", "llama.LlamaBlock",
)  # fmt: skip


class Talker(nn.Module):
    """A model of these parts with the weights of ``ours``, a ``Llama``, which it does not copy.

    ``said``: the last question, and the pieces of its answer with their probabilities.
    """

    blocks: Any  # a list of modules has no type for its elements

    def __init__(self, parts: Parts, ours: Llama, words: "BytePairs | None" = None):
        super().__init__()
        self.attend, self.split, self.merge, self.causal, self.rotate = (
            parts[target] for target in USES[:5]
        )
        self.loss, self.sample, self.attend_with_cache = (parts[target] for target in USES[5:8])
        self.merge_pairs, self.norm = parts["llama.merge_pairs"], parts["llama.rms_norm"]
        self.pairs = parts["llama.pairs_from_halves"]
        self.config, self.words = ours.config, words
        self.said: tuple[str, list[tuple[str, float]]] | tuple[()] = ()
        self.kept = (ours,)  # in a tuple: no part of this model
        config = ours.config
        sizes = (config.d_model, config.n_heads, config.n_kv_heads, config.d_ff, config.base)
        self.blocks = nn.ModuleList()
        for theirs in ours.blocks:
            with patch.object(nn.Linear, "reset_parameters", lambda layer: None):  # read below
                made = parts["llama.LlamaBlock"](*sizes)
                made.feed_forward = parts["llama.SwiGLU"](config.d_model, config.d_ff)
            state = theirs.state_dict()
            for name, heads in (("W_q", config.n_heads), ("W_k", config.n_kv_heads)):
                rows = f"attention.{name}.weight"
                state[rows] = self.pairs(in_halves(state[rows], heads), heads)
            made.load_state_dict(state, assign=True)
            self.blocks.append(made)

    @property
    def ours(self) -> Llama:
        """SmolLM2 of our own parts."""
        return self.kept[0]

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits ``(..., n, pieces)`` for the piece after each of ids ``(..., n)``."""
        x, mask = self.embed(ids), self.causal(ids.shape[-1])
        for block in self.blocks:
            x = block(x, mask)
        return self.read_out(x)

    def embed(self, ids: Tensor) -> Tensor:
        """Return the vectors of the ids' pieces."""
        return self.ours.tokens(ids)

    def read_out(self, x: Tensor) -> Tensor:
        """Return the logits that the last block's vectors stand for."""
        return self.ours.out(self.norm(x, self.ours.norm.gain, self.config.eps))

    def views(self, block: Any, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys, turned, and values, a key/value head for each query head."""
        attention, config = block.attention, self.config
        query = self.split(attention.W_q(x), config.n_heads)
        key = self.split(attention.W_k(x), config.n_kv_heads)
        value = self.split(attention.W_v(x), config.n_kv_heads)
        query = self.rotate(query, positions, config.base)
        key = self.rotate(key, positions, config.base)
        group = config.n_heads // config.n_kv_heads
        return query, key.repeat_interleave(group, -3), value.repeat_interleave(group, -3)

    def with_cache(self, ids: Tensor, caches: list) -> tuple[Tensor, list]:
        """Return logits for the newest pieces, and each block's cache with theirs added."""
        past = caches[0][0].shape[-2] if caches[0] else 0
        places = torch.arange(past, past + ids.shape[-1])
        x, new_caches = self.embed(ids), []
        for block, old in zip(self.blocks, caches, strict=True):
            views = self.views(block, self.norm(x, block.norm_1.gain, self.config.eps), places)
            heads, new = self.attend_with_cache(*views, old)
            x = x + block.attention.W_o(self.merge(heads))
            x = x + block.feed_forward(self.norm(x, block.norm_2.gain, self.config.eps))
            new_caches.append(new)
        return self.read_out(x), new_caches

    def encode(self, text: str) -> Tensor:
        """Return the ids of a text, with their merging of pairs."""
        with patch("attncourse.pretrained.byte_pairs.merge_pairs", self.merge_pairs):
            return self.fresh_words().encode(text)

    def fresh_words(self) -> "BytePairs":
        """Return the words without what another merging has made of them."""
        if self.words is None:
            raise ValueError("words: expected those of the model, to read a text")
        return replace(self.words, _known={})

    @torch.no_grad()
    def answer(self, question: str = QUESTION) -> Iterator[tuple[str, float]]:
        """Yield the pieces of an answer as they come, each with its probability."""
        words = self.fresh_words()
        with patch("attncourse.pretrained.byte_pairs.merge_pairs", self.merge_pairs):
            unread = words.chat(question)
        caches, pieces = [None] * len(self.blocks), []
        self.said = question, pieces
        for _ in range(LONGEST):
            logits, caches = self.with_cache(unread, caches)
            unread = self.sample(logits[-1:], 0)
            if int(unread) == words.end:
                return
            piece = words.decode(unread), float(logits[-1].softmax(-1)[unread])
            pieces.append(piece)
            yield piece


def in_halves(weight: Tensor, n_heads: int) -> Tensor:
    """Return rows of pairs in the order of two halves, as ``transformers`` has them."""
    return weight.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


@cache
def small() -> Llama:
    """Return a Llama of random weights, large enough that every step counts."""
    generator = torch.Generator().manual_seed(5)
    ours = Llama(SMALL).eval()
    with torch.no_grad():
        for weight in ours.parameters():
            weight.normal_(std=0.2, generator=generator).add_(weight.ndim == 1)
    return ours.requires_grad_(False)


@cache
def load_real_model() -> "tuple[Llama, BytePairs]":
    """Return the real model, read once."""
    ours, words = real.load()
    return ours.requires_grad_(False), words


def train_chat(parts: Parts, show: bool = False) -> nn.Module:
    """Return the real model, which others have trained, through these parts."""
    return Talker(parts, *load_real_model())


MILESTONE = Milestone(
    name="chat",
    after="llama",
    what="SmolLM2, a real model, answers a question",
    uses=USES,
    build=lambda parts: Talker(parts, small()),
    train=train_chat,
    untrained=UNTRAINED,
    trained=TRAINED,
    picture=draw_chat,
    answer=Talker.answer,
)
