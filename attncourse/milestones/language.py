"""After chapter 13: a language model of two blocks, which writes stories of pronoun world.

*today mary is small and cute . she likes sushi .* The least loss that any model can have is known,
and of every story whether it is one. See ``attncourse.tasks.pronouns``.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.milestones.blocks import make_block, maps_of, widen
from attncourse.milestones.language_gates import TRAINED, UNTRAINED
from attncourse.milestones.language_picture import draw_language
from attncourse.milestones.milestone import Milestone
from attncourse.milestones.parts import Parts
from attncourse.tasks.language_model import train
from attncourse.tasks.pronouns import PAD, START, PronounWorld

D, HEADS, LAYERS, STEPS, BATCH, RATE, WIDE = 32, 4, 2, 150, 64, 0.01, 0.16
USES = (
    "kqv.scaled_dot_product_attention", "multihead.split_heads", "multihead.merge_heads",
    "multihead.MultiHeadAttention", "masking.causal_mask", "transformer.layer_norm",
    "transformer.FeedForward", "transformer.EncoderBlock", "gpt.next_token_loss",
    "gpt.filter_logits", "gpt.sample_token", "gpt.generate", "gpt.perplexity",
    "gpt.attend_with_cache",
)  # fmt: skip


class Writer(nn.Module):
    """A GPT of these parts: a word and its place, two blocks, a norm, a score for each word."""

    blocks: Any  # a list of modules has no type for its elements

    def __init__(self, parts: Parts):
        super().__init__()
        world = PronounWorld()
        self.max_length = world.longest
        self.words = nn.Embedding(len(world.words), D)
        self.places = nn.Embedding(self.max_length, D)
        self.blocks = nn.ModuleList(make_block(parts, D, HEADS) for _ in range(LAYERS))
        self.gain = nn.Parameter(1 + 0.1 * torch.randn(D))
        self.bias = nn.Parameter(0.1 * torch.randn(D))
        self.out = nn.Linear(D, len(world.words), bias=False)
        self.blend = parts["kqv.scaled_dot_product_attention"]
        self.split, self.merge = parts["multihead.split_heads"], parts["multihead.merge_heads"]
        self.causal, self.norm = parts["masking.causal_mask"], parts["transformer.layer_norm"]
        self.loss, self.perplexity = parts["gpt.next_token_loss"], parts["gpt.perplexity"]
        self.likely, self.sample = parts["gpt.filter_logits"], parts["gpt.sample_token"]
        self.go_on, self.attend = parts["gpt.generate"], parts["gpt.attend_with_cache"]
        self.losses: list[float] = []
        self.heads = HEADS
        widen(self, WIDE)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits ``(..., n, words)`` for the word after each of ids ``(..., n)``."""
        x, mask = self.embed(ids), self.causal(ids.shape[-1])
        for block in self.blocks:
            x = block(x, mask)
        return self.read_out(x)

    def embed(self, ids: Tensor, first: int = 0) -> Tensor:
        """Return each word's vector plus its place's, ``(..., n, d)``; the first has place 0."""
        return self.words(ids) + self.places(torch.arange(first, first + ids.shape[-1]))

    def read_out(self, x: Tensor) -> Tensor:
        """Return the logits that the last block's vectors stand for."""
        return self.out(self.norm(x, self.gain, self.bias))

    def with_cache(self, ids: Tensor, caches: list) -> tuple[Tensor, list]:
        """Return logits for the newest words, and each block's cache with theirs added."""
        x, new_caches = self.embed(ids, caches[0][0].shape[-2] if caches[0] else 0), []
        for block, old in zip(self.blocks, caches, strict=True):
            attention, y = block.attention, block.norm_1(x)
            views = (attention.W_q, attention.W_k, attention.W_v)
            query, key, value = (self.split(view(y), HEADS) for view in views)
            heads, new = self.attend(query, key, value, old)
            x = x + attention.W_o(self.merge(heads))
            x = x + block.feed_forward(block.norm_2(x))
            new_caches.append(new)
        return self.read_out(x), new_caches

    def write(self, count: int, seed: int = 0) -> Tensor:
        """Return the ids of stories that it writes from the start on, ``(count, 17)``."""
        ids = torch.full((count, 1), START)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.go_on(self, ids, self.max_length - 1, self.sample)

    def maps(self, ids: Tensor) -> Tensor:
        """Return the attention maps of all blocks and heads, ``(layers, ..., h, n, n)``."""
        return maps_of(self.blocks, self.embed(ids), self.causal(ids.shape[-1]))


@cache
def stories() -> Tensor:
    """Return the stories that it learns from, ``(steps, batch, 17)``."""
    return PronounWorld(seed=1).sample(STEPS * BATCH).unflatten(0, (STEPS, BATCH))


def train_language(parts: Parts, show: bool = False) -> nn.Module:
    """Return a model that learns with the loss that is among its parts."""
    torch.manual_seed(0)
    model = Writer(parts)
    loss = parts["gpt.next_token_loss"]
    model.losses = train(model, stories(), rate=RATE, padding_id=PAD, show=show, loss=loss)
    return model


MILESTONE = Milestone(
    name="language",
    after="gpt",
    what="a model of two blocks writes stories, word by word",
    uses=USES,
    build=Writer,
    train=train_language,
    untrained=UNTRAINED,
    trained=TRAINED,
    picture=draw_language,
)
