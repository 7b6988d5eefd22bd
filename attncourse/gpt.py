"""Chapter 13: a language model, which says how likely each token is to come next.

A ``GPT`` is a stack of pre-norm blocks under a causal mask: ids ``(..., n)`` become logits
``(..., n, n_vocab)``, and row t scores the token at t + 1. Around it stand the loss that trains
it, the choice of a token from its logits, and the cache that spares it from reading again.

Ids count from 0, losses are in nats. Sources: Radford et al. (2019), Language Models are
Unsupervised Multitask Learners; Holtzman et al. (2020), The Curious Case of Neural Text
Degeneration (top-p); Fan et al. (2018), Hierarchical Neural Story Generation (top-k).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.kqv import scaled_dot_product_attention
from attncourse.masking import causal_mask
from attncourse.multihead import MultiHeadAttention, merge_heads
from attncourse.positions import LearnedPositions
from attncourse.support.arrays import require_count
from attncourse.support.shapes import shaped
from attncourse.support.tensors import require_ids
from attncourse.transformer import EncoderBlock, FeedForward, LayerNorm

Cache = tuple[Tensor, Tensor]  # keys and values of all tokens so far, (..., n, d) each


@shaped
def next_token_loss(
    logits: Float[Tensor, "*batch n n_vocab"],
    ids: Int[Tensor, "*#batch n"],
    padding_id: int | None = None,
) -> Float[Tensor, ""]:
    """The mean surprise at the tokens that came, ``−log softmax(logits[t])[ids[t + 1]]``, in nats.

    Row t is judged by the token after it, so the last row is not judged and the first id is not
    guessed. Targets that are ``padding_id`` do not count; with none left the loss is 0. logits:
    ``(..., n, n_vocab)``. ids: ``(..., n)``. Raises ``ValueError`` for an id without a logit.
    """
    require_ids(ids, logits.shape[-1], shape=logits.shape[:-1])
    guesses, targets = logits[..., :-1, :], ids[..., 1:]
    rows, targets = guesses.flatten(0, -2), targets.flatten().long()
    surprise = F.cross_entropy(rows, targets, reduction="none")
    padding_id = -1 if padding_id is None else padding_id  # no id is −1
    counts = targets != padding_id  # (every target,)
    total = surprise.where(counts, 0).sum()
    return total / counts.sum().clamp(min=1)


@shaped
def filter_logits(
    logits: Float[Tensor, "*batch n_vocab"], top_k: int | None = None, top_p: float | None = None
) -> Float[Tensor, "*batch n_vocab"]:
    """The logits of the likely tokens, and −∞ for the others.

    ``top_k`` keeps the k likeliest, of equal ones the lower ids. ``top_p`` keeps the smallest set
    of the likeliest whose probability is at least p. With both, p is measured on what k left. What
    is −∞ stays so. Raises ``ValueError`` for a k that is not from 1 to n_vocab, a p not in (0, 1].
    """
    order = logits.argsort(dim=-1, descending=True, stable=True)
    rank = order.argsort(dim=-1)  # (..., n_vocab), 0 for the likeliest
    if top_k is not None:
        require_count("top_k", top_k, most=logits.shape[-1])
        logits = logits.masked_fill(rank >= top_k, -math.inf)
    if top_p is not None and require_top_p(top_p) < 1:
        likely = logits.double().softmax(dim=-1).gather(-1, order)
        before = likely.cumsum(dim=-1) - likely  # what the likelier ones have together
        keep = (before < top_p).gather(-1, rank)
        logits = logits.masked_fill(~keep, -math.inf)
    return logits.clone()  # a new tensor, also where nothing is cut


@shaped
def sample_token(
    logits: Float[Tensor, "*batch n_vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "*batch"]:
    """A token drawn from ``softmax(filter_logits(logits / temperature))``, for each row.

    Temperature 0 is the likeliest token. logits: ``(..., n_vocab)``. Returns ids ``(...)``. Raises
    ``ValueError`` for a negative temperature and as ``filter_logits`` does.
    """
    require_temperature(temperature)
    if temperature == 0:
        temperature, top_k = 1.0, 1
    # The greatest logit at 0: none grows out of range when divided.
    logits = (logits - logits.amax(-1, keepdim=True)) / temperature
    chances = filter_logits(logits, top_k, top_p).softmax(dim=-1)
    rows = chances.flatten(0, -2) if chances.ndim > 1 else chances
    drawn = torch.multinomial(rows, 1, generator=generator)
    return drawn.reshape(chances.shape[:-1])


def likeliest(logits: Tensor) -> Tensor:
    """The token with the greatest logit, of equal ones the lowest id."""
    return sample_token(logits, temperature=0)


@torch.no_grad()
def generate(
    model: Any,
    ids: Int[Tensor, "*batch n"],
    n_new: int,
    choose: Callable[[Tensor], Tensor] | None = None,
) -> Int[Tensor, "*batch n_and_new"]:
    """The ids and ``n_new`` more, each chosen by the logits for what comes next.

    ``choose`` maps logits ``(..., n_vocab)`` to ids ``(...)``, the likeliest unless given. Read are
    the last ``model.max_length`` tokens. ids: ``(..., n)``. Returns ``(..., n + n_new)``.
    Raises ``ValueError`` for an empty prompt and a negative ``n_new``.
    """
    require_prompt(ids, n_new)
    choose = choose or likeliest
    for _ in range(n_new):
        logits = model(ids[..., -model.max_length :])  # (..., n, n_vocab)
        token = choose(logits[..., -1, :])  # (...)
        ids = torch.cat([ids, token[..., None]], dim=-1)
    return ids


def perplexity(losses: Sequence[float] | Tensor, counts: Sequence[int] | Tensor) -> float:
    """Return ``exp(Σ count · loss / Σ count)``: as many equally likely tokens surprise as much.

    losses: the mean loss of each batch, in nats. counts: how many targets each mean is of. Raises
    ``ValueError`` where there is not one count for each loss, or nothing was counted.
    """
    losses = torch.as_tensor(losses, dtype=torch.float64)
    counts = torch.as_tensor(counts, dtype=torch.float64)
    if losses.shape != counts.shape or losses.ndim != 1:
        got = f"shapes {tuple(losses.shape)} and {tuple(counts.shape)}"
        raise ValueError(f"perplexity: expected one count for each loss, got {got}")
    if (counts < 0).any() or counts.sum() == 0:
        raise ValueError(f"counts: expected some targets, got {counts.tolist()}")
    total = (losses * counts).where(counts > 0, 0).sum()
    return math.exp(total / counts.sum())


def attend_with_cache(
    query: Float[Tensor, "*#batch m d_k"],
    key: Float[Tensor, "*#batch m d_k"],
    value: Float[Tensor, "*#batch m d_v"],
    cache: Cache | None = None,
) -> tuple[Float[Tensor, "*batch m d_v"], Cache]:
    """Causal attention of the m newest tokens to all so far, and the cache with theirs added.

    ``cache`` holds the keys and the values of the tokens before, ``(..., c, d_k)`` and
    ``(..., c, d_v)``; None where there are none. Returns what attention over the whole sequence
    returns for its last m tokens, ``(..., m, d_v)``, and the keys and values of all c + m.
    Raises ``ValueError`` for a cache of another batch or width.
    """
    if cache is not None:
        require_cache(cache, key, value)
        key = torch.cat([cache[0], key], dim=-2)  # (..., c + m, d_k)
        value = torch.cat([cache[1], value], dim=-2)  # (..., c + m, d_v)
    mask = causal_mask(query.shape[-2], key.shape[-2])  # (m, c + m)
    mask = mask.to(key.device)
    output = scaled_dot_product_attention(query, key, value, mask)
    return output, (key, value)


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a ``GPT``.

    ``bias``: of its linear layers; ``tied``: whether the vectors of the tokens are the rows of the
    last layer too.
    """

    n_vocab: int
    max_length: int
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    d_ff: int | None = None
    bias: bool = True
    tied: bool = True


class GPT(nn.Module):
    """A decoder-only transformer: token and position, pre-norm blocks, a norm, a score a token.

    Source: Radford et al. (2019), section 2.3. Weights begin normal, 0.02 wide, and narrower by
    √(2 · n_layers) where a branch ends, as that section says; the released code does not do so.
    """

    blocks: Any  # a list of modules has no type for its elements

    def __init__(self, config: GPTConfig):
        """Make the layers of these sizes and initialise them."""
        super().__init__()
        self.config, self.max_length = config, config.max_length
        d, h, bias = config.d_model, config.n_heads, config.bias
        self.tokens = nn.Embedding(config.n_vocab, d)
        self.positions = LearnedPositions(config.max_length, d)
        self.blocks = nn.ModuleList()
        for _ in range(config.n_layers):
            block = EncoderBlock(d, h)
            block.attention = MultiHeadAttention(d, h, bias=bias)
            block.feed_forward = FeedForward(d, config.d_ff, bias=bias)
            self.blocks.append(block)
        self.norm = LayerNorm(d)
        self.out = nn.Linear(d, config.n_vocab, bias=False)
        if config.tied:
            self.out.weight = self.tokens.weight
        self.initialise()

    def forward(
        self,
        ids: Int[Tensor, "*batch n"],
        cache: Sequence[Cache] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        positions: Int[Tensor, "... n"] | None = None,
    ) -> Float[Tensor, "*batch n n_vocab"] | tuple[Tensor, list[Cache]]:
        """Logits for the token after each of ids, ``(..., n, n_vocab)``.

        cache: what was returned for the tokens before, a pair for each block, or an empty list at
        the beginning. With it the ids are the new ones, and (logits, cache) is returned. mask:
        ``(..., n, n)``, causal unless given; it goes without a cache. positions: ``(..., n)``,
        whole, from c on unless given.
        Raises ``ValueError`` for ids outside the vocabulary, for more than ``max_length``, and for
        a mask with a cache.
        """
        require_caches(cache, len(self.blocks))
        past = cache[0][0].shape[-2] if cache else 0
        n = ids.shape[-1]
        require_ids(ids, self.config.n_vocab, longest=self.max_length - past)
        if positions is None:
            positions = torch.arange(past, past + n, device=ids.device)
        x = self.positions(self.tokens(ids), positions)  # (..., n, d_model)
        if cache is None:
            if mask is None:
                mask = causal_mask(n).to(ids.device)
            for block in self.blocks:
                x = block(x, mask)
            return self.out(self.norm(x))
        if mask is not None:
            raise ValueError("mask: expected none with a cache, which is for causal attention")
        old, new = cache or [None] * len(self.blocks), []
        for block, cache_of_block in zip(self.blocks, old, strict=True):
            x, longer = cached_block(block, x, cache_of_block)
            new.append(longer)
        return self.out(self.norm(x)), new

    @torch.no_grad()
    def generate(
        self,
        ids: Int[Tensor, "*batch n"],
        n_new: int,
        choose: Callable[[Tensor], Tensor] | None = None,
    ) -> Int[Tensor, "*batch n_and_new"]:
        """Return what the function ``generate`` returns, reading each token once.

        Beyond ``max_length`` every token moves to another position, so from there on the last
        ``max_length`` tokens are read anew for each that is written.
        """
        require_prompt(ids, n_new)
        choose = choose or likeliest
        unread, cache = ids[..., -self.max_length :], []
        for _ in range(n_new):
            if ids.shape[-1] > self.max_length:
                unread, cache = ids[..., -self.max_length :], []
            logits, cache = self(unread, cache)
            unread = choose(logits[..., -1, :])[..., None]
            ids = torch.cat([ids, unread], dim=-1)
        return ids

    @torch.no_grad()
    def initialise(self, std: float = 0.02) -> None:
        """Normal weights; with small ones the first guesses are nearly uniform."""
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Embedding):
                nn.init.normal_(layer.weight, std=std)
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)
        for block in self.blocks:
            for last in block.attention.W_o, block.feed_forward.W_2:
                last.weight.div_(math.sqrt(2 * len(self.blocks)))

    @classmethod
    def from_huggingface(cls, model: nn.Module) -> "GPT":
        """A ``GPT`` with copies of the weights of ``transformers``' GPT-2, and the same logits.

        Takes a ``GPT2LMHeadModel``. Raises ``ValueError`` for any other, and for settings that a
        ``GPT`` lacks. Dropout is left out.
        """
        from attncourse.support.huggingface import gpt2_sizes, gpt2_weights

        gpt = cls(GPTConfig(**gpt2_sizes(model)))
        for block in gpt.blocks:
            block.feed_forward.activation = partial(F.gelu, approximate="tanh")
        gpt.load_state_dict(gpt2_weights(model))
        return gpt.eval()


def cached_block(block: EncoderBlock, x: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
    """Return a pre-norm block's output for the newest tokens, and its cache with theirs added.

    Norms, projections and the feed-forward layer see each token by itself: attention alone needs
    those before.
    """
    attention = block.attention
    query, key, value = attention.views(block.norm_1(x), None, None)  # (..., h, m, d_head)
    heads, cache = attend_with_cache(query, key, value, cache)
    x = x + block.dropout(attention.W_o(merge_heads(heads)))
    return block.add(x, block.feed_forward, block.norm_2), cache


def require_temperature(temperature: float) -> float:
    """temperature; ``ValueError`` unless it is a finite number from 0 on."""
    number = isinstance(temperature, Real) and not isinstance(temperature, bool)
    if not number or not 0 <= temperature < math.inf:
        raise ValueError(f"temperature: expected a number from 0 on, got {temperature!r}")
    return temperature


def require_top_p(top_p: float) -> float:
    """top_p; ``ValueError`` unless it is above 0 and at most 1."""
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p: expected a number above 0 and at most 1, got {top_p!r}")
    return top_p


def require_prompt(ids: Tensor, n_new: int) -> None:
    """Raises ``ValueError`` unless there is a token to go on from, and n_new counts from 0."""
    if not isinstance(ids, Tensor) or ids.ndim < 1 or ids.shape[-1] == 0:
        got = f"shape {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"ids: expected one token or more to go on from, got {got}")
    require_count("n_new", n_new, least=0)


def require_chosen(ids: Tensor, logits: Tensor) -> Tensor:
    """ids; ``ValueError`` unless what chose them gave one of the vocabulary for each row."""
    if not isinstance(ids, Tensor) or ids.shape != logits.shape[:-1]:
        got = f"shape {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(
            f"choose: expected to return an id for each row, shape {tuple(logits.shape[:-1])}, "
            f"got {got}"
        )
    require_ids(ids[..., None], logits.shape[-1])
    return ids


def require_keys_and_values(cache: Cache) -> Cache:
    """The cache; ``ValueError`` unless it is keys and values of as many tokens."""
    pair = isinstance(cache, tuple | list) and len(cache) == 2
    if not pair or not all(isinstance(x, Tensor) and x.ndim >= 2 for x in cache):
        got = [type(x).__name__ for x in cache] if pair else repr(cache)[:40]
        raise ValueError(f"cache: expected a pair of tensors, keys and values, got {got}")
    keys, values = (x.shape[-2] for x in cache)
    if keys != values:
        raise ValueError(f"cache: expected as many values as keys, got {values} and {keys}")
    return cache


def require_caches(caches: Sequence[Cache] | None, n_blocks: int) -> None:
    """Raises ``ValueError`` unless each block has one, of as many tokens, or none has."""
    if caches is None or (isinstance(caches, tuple | list) and len(caches) == 0):
        return
    if not isinstance(caches, tuple | list) or len(caches) != n_blocks:
        got = len(caches) if isinstance(caches, tuple | list) else type(caches).__name__
        raise ValueError(f"cache: expected none or a pair for each of {n_blocks} blocks, got {got}")
    lengths = [require_keys_and_values(cache)[0].shape[-2] for cache in caches]
    if len(set(lengths)) > 1:
        raise ValueError(f"cache: expected as many tokens in each block, got {lengths}")


def require_cache(cache: Cache, key: Tensor, value: Tensor) -> None:
    """Raises ``ValueError`` unless the cache fits the new keys and values but for its length."""
    for name, old, new in zip(("keys", "values"), cache, (key, value), strict=True):
        if old.shape[:-2] != new.shape[:-2] or old.shape[-1] != new.shape[-1]:
            expected = (*new.shape[:-2], "any length", new.shape[-1])
            raise ValueError(
                f"cache: expected {name} of shape ({', '.join(map(str, expected))}), "
                f"got {tuple(old.shape)}"
            )
