"""Chapter 18: a language model that people use, run by the functions of chapters 5 to 13.

``Llama`` is a stack of blocks as in chapter 13, of the parts that models have today: an RMS norm, a
gated feed-forward layer, queries and keys that are turned by their positions in every block, and
fewer heads of keys and values than of queries. Attention, heads, masks, rotations and sampling are
those of the chapters before. Words reach it in pieces (``merge_pairs``); ``learn_merges`` and
``BytePairs``, a model's own pieces, are in ``attncourse/pretrained/byte_pairs.py``.

Ids are ``(..., n)``, sequences ``(..., n, d_model)``, masks True where attention is allowed.
Sources: Sennrich et al. (2016), Neural Machine Translation of Rare Words with Subword Units; Zhang
and Sennrich (2019), Root Mean Square Layer Normalization; Shazeer (2020), GLU Variants Improve
Transformer; Su et al. (2021), RoFormer; Touvron et al. (2023), LLaMA;
Ainslie et al. (2023), GQA; Chowdhery et al. (2023), PaLM (no biases).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.gpt import (
    Cache,
    likeliest,
    require_cache,
    require_caches,
    require_chosen,
    require_keys_and_values,
    require_prompt,
)
from attncourse.kqv import attention_weights, scaled_dot_product_attention
from attncourse.masking import causal_mask
from attncourse.multihead import merge_heads, split_heads
from attncourse.positions import apply_rope
from attncourse.support.arrays import require_count, require_divisor, require_positive
from attncourse.support.shapes import Count, Positive, shaped
from attncourse.support.tensors import mask_over_heads, require_ids

if TYPE_CHECKING:
    from attncourse.support.gguf_file import GGUF

Pair = tuple[str, str]

# --- pieces of words ------------------------------------------------------------------------------


def merge_pairs(symbols: Sequence[str], ranks: Mapping[Pair, int]) -> list[str]:
    """The symbols with pairs of neighbours joined, until no pair is left that has a rank.

    Each time it is the pair of lowest rank that stands anywhere, and it is joined wherever it
    stands, from left to right. Returns a new list. Raises ``ValueError`` for symbols that are no
    strings, and for ranks that are no mapping. Source: Sennrich et al. (2016), section 3.2.
    """
    symbols = list(require_symbols(symbols))
    if not isinstance(ranks, Mapping):
        raise ValueError(f"ranks: expected a mapping from pairs, got {type(ranks).__name__}")
    while True:
        known = [pair for pair in pairwise(symbols) if pair in ranks]
        if not known:
            return symbols
        symbols = joined(symbols, min(known, key=ranks.__getitem__))


def joined(symbols: Sequence[str], pair: Pair) -> list[str]:
    """The symbols with this pair joined wherever it stands, from left to right."""
    done: list[str] = []
    at = 0
    while at < len(symbols):
        width = 2 if tuple(symbols[at : at + 2]) == pair else 1
        done.append("".join(symbols[at : at + width]))
        at += width
    return done


# --- norm, gated layer, rotations -----------------------------------------------------------------


@shaped
def rms_norm(
    x: Float[Tensor, "*batch d"], gain: Float[Tensor, "d"] | None = None, eps: Positive = 1e-5
) -> Float[Tensor, "*batch d"]:
    """Each row at a mean square of 1, ``gain · x / √(mean(x²) + eps)``, over the last axis.

    No mean is taken off and there is no bias. gain: ``(d,)``, 1 unless given. Returns the shape of
    x. Source: Zhang and Sennrich (2019), section 4.
    """
    mean_square = x.square().mean(-1, keepdim=True)  # (..., 1)
    x = x / (mean_square + eps).sqrt()
    return x if gain is None else gain * x


class RMSNorm(nn.Module):
    """``rms_norm`` with a learned ``gain``, ``(d,)``, which begins at 1."""

    @shaped
    def __init__(self, d: Count, eps: Positive = 1e-5):
        """Make the gain, ``(d,)``, of ones; ``eps`` is added to the mean square under the root."""
        super().__init__()
        self.d, self.eps = d, eps
        self.gain = nn.Parameter(torch.ones(d))

    @shaped
    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Each row of x, normalised, times gain."""
        return rms_norm(x, self.gain, self.eps)


class SwiGLU(nn.Module):
    """Each token by itself through a gated layer, ``W_down(silu(W_gate x) ⊙ W_up x)``.

    ``silu(z) = z · sigmoid(z)``. ``W_gate`` and ``W_up`` map d_model features to d_ff, ``W_down``
    maps them back; none has a bias. Source: Shazeer (2020), equation 6.
    """

    @shaped
    def __init__(self, d_model: Count, d_ff: Count):
        """Make the layers W_gate and W_up, from d_model to d_ff, and W_down, back."""
        super().__init__()
        self.d_model = d_model
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)

    @shaped
    def forward(self, x: Float[Tensor, "*batch n d_model"]) -> Float[Tensor, "*batch n d_model"]:
        """The output for every token of x; no token sees another."""
        gate = F.silu(self.W_gate(x))  # (..., n, d_ff)
        return self.W_down(gate * self.W_up(x))  # (..., n, d_model)


@shaped
def pairs_from_halves(
    weight: Float[Tensor, "d_out d_in"], n_heads: Count
) -> Float[Tensor, "d_out d_in"]:
    """Rows of W_q or W_k, made to turn two halves, in the order in which pairs are turned.

    ``transformers``' Llama turns feature i of a head with feature i + d_head/2, chapter 11's
    ``apply_rope`` turns 2i with 2i + 1. Row ``i`` of each head goes to ``2i`` and row
    ``i + d_head/2`` to ``2i + 1``, so that scores stay what they were. weight:
    ``(n_heads · d_head, d_in)``. Raises ``ValueError`` where the heads do not divide the rows
    evenly, and for an odd d_head.
    """
    require_divisor("n_heads", n_heads, "the rows of weight", len(weight))
    require_even_width(len(weight) // n_heads)
    halves = weight.unflatten(0, (n_heads, 2, -1))  # (h, 2, d_head/2, d_in)
    pairs = halves.transpose(1, 2)  # (h, d_head/2, 2, d_in)
    return pairs.flatten(0, 2)  # (h · d_head, d_in)


# --- attention, block, model ----------------------------------------------------------------------


class RotaryAttention(nn.Module):
    """Chapter 9's attention of a sequence to itself, with queries and keys that are turned.

    Query head h uses key/value head ``h // (n_heads / n_kv_heads)``; no layer has a bias. A token
    sees those up to itself unless a mask is given, and a row without a key gets 0. Raises
    ``ValueError`` where heads do not divide, and for an odd d_head.
    """

    @shaped
    def __init__(self, d_model: Count, n_heads: Count, n_kv_heads: Count, base: Positive = 10000.0):
        """Make W_q, W_k, W_v and W_o; W_k and W_v make n_kv_heads heads of width d_model / n_heads.

        ``base`` is that of the rotations' frequencies. Raises ``ValueError`` where n_heads does not
        divide d_model, n_kv_heads not n_heads, or the heads' width is odd.
        """
        super().__init__()
        require_divisor("n_heads", n_heads, "d_model", d_model)
        require_divisor("n_kv_heads", n_kv_heads, "n_heads", n_heads)
        self.d_head = require_even_width(d_model // n_heads)
        self.d_model, self.base = d_model, base
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        d_kv = n_kv_heads * self.d_head
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_kv, bias=False)
        self.W_v = nn.Linear(d_model, d_kv, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    @shaped
    def forward(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        positions: Shaped[Tensor, "... n"] | None = None,
        cache: Cache | tuple[()] | None = None,
    ) -> Float[Tensor, "*batch n d_model"] | tuple[Tensor, Cache]:
        """The output for every token of x, ``(..., n, d_model)``.

        positions: ``(n,)`` or ``(..., n)``, 0 … n − 1 unless given. cache: keys, turned, and values
        of the tokens before, ``(..., h_kv, c, d_head)`` each, or () at the beginning; with it
        positions go on from c, and (output, cache) is returned.
        """
        query, key, value = self.views(x, positions, cache)
        mask = self.allowed(mask, query, key)
        heads = scaled_dot_product_attention(
            query, self.for_queries(key), self.for_queries(value), mask
        )
        output = self.W_o(merge_heads(heads))  # (..., n, d_model)
        return output if cache is None else (output, (key, value))

    @shaped
    def weights(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        positions: Shaped[Tensor, "... n"] | None = None,
    ) -> Float[Tensor, "*batch h n n"]:
        """A map for each head, ``(..., h, n, n)``."""
        query, key, _ = self.views(x, positions)
        mask = self.allowed(mask, query, key)
        return attention_weights(query, self.for_queries(key), mask)

    def views(
        self, x: Tensor, positions: Tensor | None, cache: Cache | tuple[()] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries ``(..., h, m, d_head)``; keys and values, ``(..., h_kv, c + m, d_head)``."""
        query = split_heads(self.W_q(x), self.n_heads)
        key = split_heads(self.W_k(x), self.n_kv_heads)
        value = split_heads(self.W_v(x), self.n_kv_heads)
        if cache:
            require_keys_and_values(cache)
        if positions is None:
            past = cache[0].shape[-2] if cache else 0
            places = torch.arange(x.shape[-2], device=x.device)
            positions = past + places
        if not isinstance(positions, Tensor):
            raise ValueError(f"positions: expected a tensor, got {type(positions).__name__}")
        if positions.ndim > 1:  # each sequence its own, the same for all heads
            positions = positions.unsqueeze(-2)
        query = apply_rope(query, positions, self.base)
        key = apply_rope(key, positions, self.base)
        if cache:
            require_cache(cache, key, value)
            key = torch.cat([cache[0], key], dim=-2)
            value = torch.cat([cache[1], value], dim=-2)
        return query, key, value

    def for_queries(self, x: Tensor) -> Tensor:
        """Keys or values, each head repeated for the query heads that it serves."""
        group = self.n_heads // self.n_kv_heads
        return x.repeat_interleave(group, dim=-3)

    def allowed(self, mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
        """The mask, a causal one unless it is given, to broadcast to the heads' scores."""
        if mask is None:
            mask = causal_mask(query.shape[-2], key.shape[-2])
            mask = mask.to(key.device)
        return mask_over_heads(mask, query, key)


class LlamaBlock(nn.Module):
    """Attention, then a gated layer, each added to the stream that it read through an RMS norm.

    ``x = x + attention(norm_1(x)); x = x + feed_forward(norm_2(x))``. Raises ``ValueError`` where
    heads do not divide. Sources: Touvron et al. (2023), section 2.2; for key/value heads shared by
    groups Ainslie et al. (2023), for no biases Chowdhery et al. (2023).
    """

    @shaped
    def __init__(
        self,
        d_model: Count,
        n_heads: Count,
        n_kv_heads: Count,
        d_ff: Count,
        base: Positive = 10000.0,
        eps: Positive = 1e-5,
    ):
        """Make attention, gated layer and two norms."""
        super().__init__()
        heads = n_heads, n_kv_heads
        self.attention = RotaryAttention(d_model, *heads, base)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1 = RMSNorm(d_model, eps)
        self.norm_2 = RMSNorm(d_model, eps)

    def forward(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        positions: Shaped[Tensor, "... n"] | None = None,
        cache: Cache | tuple[()] | None = None,
    ) -> Float[Tensor, "*batch n d_model"] | tuple[Tensor, Cache]:
        """The sequence after this block, ``(..., n, d_model)``; with a cache, that and the cache.

        mask, positions and cache: as for ``RotaryAttention``.
        """
        seen = self.attention(self.norm_1(x), mask, positions, cache)
        seen, cache = (seen, None) if cache is None else seen
        x = x + seen
        x = x + self.feed_forward(self.norm_2(x))
        return x if cache is None else (x, cache)


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes of a ``Llama``.

    ``base``: of the rotations' frequencies; ``tied``: whether the vectors of the tokens are the
    rows of the last layer too. Raises ``ValueError`` for a size that is no whole number from 1 on,
    and for a base or eps that is not above 0.
    """

    n_vocab: int
    max_length: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    n_layers: int
    d_ff: int
    base: float = 10000.0
    eps: float = 1e-5
    tied: bool = True

    def __post_init__(self):
        """Raise ``ValueError`` for a size that is no count, or a base or eps not above 0."""
        for name, size in vars(self).items():
            if name in ("base", "eps"):
                require_positive(name, size)
            elif name != "tied":
                require_count(name, size)


class Llama(nn.Module):
    """A decoder-only transformer of today: token, blocks, an RMS norm, a score a token.

    ``blocks`` is a ``ModuleList`` of ``LlamaBlock``. Source: Touvron et al. (2023), section 2.2;
    the blocks' own.
    """

    blocks: Any  # a list of modules has no type for its elements

    def __init__(self, config: LlamaConfig):
        """Make the layers of these sizes, initialised as torch does."""
        super().__init__()
        self.config, self.max_length = config, config.max_length
        self.tokens = nn.Embedding(config.n_vocab, config.d_model)
        sizes = (config.n_heads, config.n_kv_heads, config.d_ff, config.base, config.eps)
        self.blocks = nn.ModuleList()
        for _ in range(config.n_layers):
            self.blocks.append(LlamaBlock(config.d_model, *sizes))
        self.norm = RMSNorm(config.d_model, config.eps)
        self.out = nn.Linear(config.d_model, config.n_vocab, bias=False)
        if config.tied:
            self.out.weight = self.tokens.weight

    def forward(
        self,
        ids: Int[Tensor, "*batch n"],
        cache: Sequence[Cache] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        positions: Shaped[Tensor, "... n"] | None = None,
    ) -> Float[Tensor, "*batch n n_vocab"] | tuple[Tensor, list[Cache]]:
        """Logits for the token after each of ids, ``(..., n, n_vocab)``.

        cache: what was returned for the c tokens before, a pair for each block, or an empty list at
        the beginning. With it the ids are the new ones, and (logits, cache) is returned. mask:
        ``(..., n, c + n)``, causal unless given. positions: ``(..., n)``, from c on unless given.
        Raises ``ValueError`` for ids outside the vocabulary, and for more than ``max_length``.
        """
        require_caches(cache, len(self.blocks))
        past = cache[0][0].shape[-2] if cache else 0
        require_ids(ids, self.config.n_vocab, longest=self.max_length - past)
        x = self.tokens(ids.long())  # (..., n, d_model)
        if cache is None:
            for block in self.blocks:
                x = block(x, mask, positions)
            return self.out(self.norm(x))
        new = []
        for block, old in zip(self.blocks, cache or [()] * len(self.blocks), strict=True):
            x, longer = block(x, mask, positions, cache=old)
            new.append(longer)
        return self.out(self.norm(x)), new

    def generate(
        self,
        ids: Int[Tensor, "*batch n"],
        n_new: int,
        choose: Callable[[Tensor], Tensor] | None = None,
        stop: int | None = None,
    ) -> Int[Tensor, "*batch n_and_new"]:
        """The ids and ``n_new`` more, each chosen by the logits for what comes next.

        ``choose`` maps logits ``(..., n_vocab)`` to ids ``(...)``, the likeliest unless given. It
        ends before where every sequence has just got the id ``stop``. Raises ``ValueError`` for an
        empty prompt, where it would become longer than ``max_length``, and where ``stop`` or what
        ``choose`` returns is no id.
        """
        return torch.cat([ids, *self.stream(ids, n_new, choose, stop)], dim=-1)

    @torch.no_grad()
    def stream(
        self,
        ids: Int[Tensor, "*batch n"],
        n_new: int,
        choose: Callable[[Tensor], Tensor] | None = None,
        stop: int | None = None,
    ) -> Iterator[Int[Tensor, "*batch 1"]]:
        """The new ids of ``generate`` one by one, ``(..., 1)``, each as soon as it is chosen."""
        require_prompt(ids, n_new)
        if ids.shape[-1] + n_new > self.max_length:
            got = f"{ids.shape[-1]} and {n_new} new ones"
            raise ValueError(f"ids: expected at most {self.max_length} tokens in all, got {got}")
        if stop is not None:
            require_count("stop", stop, least=0, most=self.config.n_vocab - 1)
        unread, cache = ids, []
        for _ in range(n_new):
            logits, cache = self(unread, cache)
            rows = logits[..., -1, :]  # (..., n_vocab)
            unread = require_chosen((choose or likeliest)(rows), rows)[..., None]
            yield unread
            if stop is not None and (unread == stop).all():
                return

    @classmethod
    def from_gguf(cls, file: "str | PathLike | GGUF") -> "Llama":
        """The model in a GGUF file, in float32; its rows stand for pairs already.

        Raises ``ValueError`` for a file that is not whole, for another architecture, and for
        settings that a ``Llama`` lacks. Needs the library ``gguf``.
        """
        from attncourse.support.gguf_file import gguf_sizes, gguf_weights, read_gguf

        file = read_gguf(file)
        sizes = gguf_sizes(file)
        return cls.of(LlamaConfig(**sizes), gguf_weights(file, sizes))

    @classmethod
    def from_huggingface(cls, model: nn.Module) -> "Llama":
        """A ``Llama`` with copies of the weights of ``transformers``', and the same logits.

        Takes a ``LlamaForCausalLM``. Raises ``ValueError`` for any other, and for settings that a
        ``Llama`` lacks.
        """
        from attncourse.support.huggingface import transformers_sizes, transformers_weights

        config = LlamaConfig(**transformers_sizes(model))
        state = transformers_weights(model)
        for name, weight in state.items():
            heads = {"W_q": config.n_heads, "W_k": config.n_kv_heads}.get(name.split(".")[-2])
            state[name] = pairs_from_halves(weight, heads) if heads else weight.clone()
        return cls.of(config, state)

    @classmethod
    def of(cls, config: LlamaConfig, state: dict[str, Tensor]) -> "Llama":
        """The model of this size whose parameters are these tensors themselves, in ``eval()``."""
        with torch.device("meta"):  # no random numbers that are overwritten at once
            llama = cls(config)
        llama.load_state_dict({"out.weight": state["tokens.weight"]} | state, assign=True)
        if config.tied:
            llama.out.weight = llama.tokens.weight
        return llama.eval()


def require_even_width(d_head: int) -> int:
    """d_head; ``ValueError`` for an odd one."""
    if d_head % 2:
        raise ValueError(f"d_head: expected an even number, features turn in pairs, got {d_head}")
    return d_head


def require_symbols(symbols: Sequence[str]) -> Sequence[str]:
    """The symbols; ``ValueError`` unless they are strings."""
    if not isinstance(symbols, Iterable):
        raise ValueError(f"symbols: expected strings, got {symbols!r}")
    for symbol in symbols:
        if not isinstance(symbol, str):
            raise ValueError(f"symbols: expected strings, got {symbol!r}")
    return symbols
