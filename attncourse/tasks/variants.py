"""Chapter 21's small model: blocks of chapter 18's kind whose attention is one of today's variants.

Tokens are ids ``(batch, n)``, or ``(batch, n, 2)`` where a token says two things at once. Attention
is causal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.llama import RMSNorm, SwiGLU
from attncourse.multihead import merge_heads, split_heads

BASE = 10_000.0
RULES = ("sum", "decay", "delta", "delta and decay")


@dataclass(frozen=True)
class LayerOptions:
    """What an attention layer does in one way or another.

    norm: RMS norm of queries and keys before they are turned, over each head (``head``), over all
    heads at once (``width``), or none. sink: a learned score for each head that has no value behind
    it. gate: each head's output times a sigmoid of the token. window: keys that a query sees,
    itself included, or all. turned: by positions. farthest: every distance above it is turned as
    this one. n_kv_heads: as many as of queries unless given.
    """

    norm: str | None = None
    sink: bool = False
    gate: bool = False
    window: int | None = None
    turned: bool = True
    farthest: int | None = None
    n_kv_heads: int | None = None


class VariantAttention(nn.Module):
    """Causal attention with grouped keys and values, and what a `LayerOptions` asks for."""

    def __init__(self, d_model: int, n_heads: int, variant: LayerOptions = LayerOptions()):
        super().__init__()
        self.variant, self.n_heads = variant, n_heads
        self.n_kv_heads = variant.n_kv_heads or n_heads
        self.d_head = d_model // n_heads
        d_kv = self.d_head * self.n_kv_heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_kv, bias=False)
        self.W_v = nn.Linear(d_model, d_kv, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        if variant.norm == "head":
            self.norm_q, self.norm_k = RMSNorm(self.d_head), RMSNorm(self.d_head)
        elif variant.norm == "width":
            self.norm_q, self.norm_k = RMSNorm(d_model), RMSNorm(d_kv)
        if variant.sink:
            self.sinks = nn.Parameter(torch.zeros(n_heads))
        if variant.gate:
            self.W_g = nn.Linear(d_model, d_model, bias=False)

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, ``(b, h, n, d_head)``, normed and turned as the variant asks."""
        query, key = self.unturned_queries_and_keys(x)
        if self.variant.turned:
            query, key = turned(query), turned(key)
        return query, key

    def unturned_queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, ``(b, h, n, d_head)`` each, normed and not turned."""
        query, key = self.W_q(x), self.W_k(x)
        if self.variant.norm == "width":
            query, key = self.norm_q(query), self.norm_k(key)
        query, key = split_heads(query, self.n_heads), split_heads(key, self.n_kv_heads)
        if self.variant.norm == "head":
            query, key = self.norm_q(query), self.norm_k(key)
        return query, key.repeat_interleave(self.n_heads // self.n_kv_heads, dim=-3)

    def scores(self, x: Tensor) -> Tensor:
        """Return scores ``(b, h, n, n)``, over the root of the head's width, before any mask."""
        query, key = self.queries_and_keys(x)
        scores = query @ key.mT
        if self.variant.turned and self.variant.farthest is not None:
            query, key = self.unturned_queries_and_keys(x)
            query = turned(query, torch.full(x.shape[-2:-1], self.variant.farthest))
            near = seen_keys(x.shape[-2], self.variant.farthest + 1, x.device)
            scores = torch.where(near, scores, query @ key.mT)
        return scores / math.sqrt(self.d_head)

    def weights(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return weights ``(b, h, n, n)``; with a sink each row sums to less than 1."""
        if mask is None:
            mask = seen_keys(x.shape[-2], self.variant.window, x.device)
        scores = self.scores(x).masked_fill(~mask, -math.inf)
        if not self.variant.sink:
            return scores.softmax(-1)
        sinks = self.sinks[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output, ``(b, n, d_model)``."""
        value = split_heads(self.W_v(x), self.n_kv_heads)
        value = value.repeat_interleave(self.n_heads // self.n_kv_heads, dim=-3)
        mixed = merge_heads(self.weights(x, mask) @ value)
        if self.variant.gate:
            mixed = mixed * torch.sigmoid(self.W_g(x))
        return self.W_o(mixed)


class VariantLatent(nn.Module):
    """Latent attention: keys and values of all heads from one short row, and one turned key."""

    def __init__(self, d_model: int, n_heads: int, d_latent: int, d_turned: int):
        super().__init__()
        self.n_heads, self.d_head, self.d_turned = n_heads, d_model // n_heads, d_turned
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_c = nn.Linear(d_model, d_latent, bias=False)
        self.norm = RMSNorm(d_latent)
        self.W_k = nn.Linear(d_latent, d_model, bias=False)
        self.W_v = nn.Linear(d_latent, d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.W_qr = nn.Linear(d_model, n_heads * d_turned, bias=False)
        self.W_kr = nn.Linear(d_model, d_turned, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, ``(b, n, d_model)``."""
        short = self.norm(self.W_c(x))
        query, key, value = (
            split_heads(projected, self.n_heads)
            for projected in (self.W_q(x), self.W_k(short), self.W_v(short))
        )
        q_turned = turned(split_heads(self.W_qr(x), self.n_heads))
        k_turned = turned(self.W_kr(x)).unsqueeze(-3)  # one for all heads
        scores = query @ key.mT + q_turned @ k_turned.mT
        scores = scores / math.sqrt(self.d_head + self.d_turned)
        mask = seen_keys(x.shape[-2], device=x.device)
        weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
        return self.W_o(merge_heads(weights @ value))


class VariantMemory(nn.Module):
    """Linear attention whose memory, a matrix for each head, is changed by one of four rules.

    Keys and queries have length one. ``sum`` adds ``k vᵀ``; ``decay`` first shrinks the memory by a
    factor that the token sets for each head; ``delta`` adds ``β k (v − Sᵀk)ᵀ``, the error of what
    the memory holds for this key, with β from the token; or both.
    """

    def __init__(self, d_model: int, n_heads: int, rule: str):
        super().__init__()
        self.n_heads, self.rule = n_heads, rule
        self.W_q, self.W_k, self.W_v, self.W_o = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )
        self.norm = RMSNorm(d_model // n_heads)
        if "decay" in rule:
            self.W_a = nn.Linear(d_model, n_heads)
            nn.init.constant_(self.W_a.bias, 4.0)  # begins at a factor of 0.98
        if "delta" in rule:
            self.W_b = nn.Linear(d_model, n_heads)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, ``(b, n, d_model)``."""
        query, key, value = (
            split_heads(projected, self.n_heads)
            for projected in (self.W_q(x), self.W_k(x), self.W_v(x))
        )
        query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        ones = torch.ones_like(query[..., :1])  # (b, h, n, 1)
        decay = torch.sigmoid(self.W_a(x)).mT[..., None] if "decay" in self.rule else ones
        if "delta" in self.rule:
            step = torch.sigmoid(self.W_b(x)).mT[..., None]
            read = corrected_memory(query, key, value, step, decay)
        else:
            logs = decay.log().cumsum(-2)  # (b, h, n, 1)
            mask = seen_keys(x.shape[-2], device=x.device)
            shrunk = (logs - logs.mT).masked_fill(~mask, -math.inf).exp()
            read = (query @ key.mT * shrunk) @ value
        return self.W_o(merge_heads(self.norm(read)))


def corrected_memory(
    query: Tensor, key: Tensor, value: Tensor, step: Tensor, decay: Tensor
) -> Tensor:
    """Return what queries read from a memory that each token first shrinks and then corrects.

    The errors u of all tokens at once, ``u_t = β_t (v_t − Σ_{j<t} a_tj k_j·k_t u_j)``, are a
    triangular system; a_tj is how much of what j wrote is left at t.
    """
    logs = decay.log().cumsum(-2)  # (b, h, n, 1)
    mask = seen_keys(key.shape[-2], device=key.device)
    left = (logs - logs.mT).masked_fill(~mask, -math.inf).exp()  # (b, h, n, n)
    system = step * (key @ key.mT * left).tril(-1)
    errors = torch.linalg.solve_triangular(
        system + torch.eye(key.shape[-2], device=key.device),
        step * value,
        upper=False,
        unitriangular=True,
    )
    return (query @ key.mT * left) @ errors


class VariantModel(nn.Module):
    """Blocks with a variant of attention each, from ids to a score for every answer.

    layers: makers of attention layers, one a block. fed: with feed-forward layers.
    """

    def __init__(
        self,
        n_vocab: int,
        n_answers: int,
        layers: Sequence[Callable[[], nn.Module]],
        d_model: int = 64,
        fed: bool = True,
    ):
        super().__init__()
        self.fed = fed
        self.table = nn.Embedding(n_vocab, d_model)
        nn.init.normal_(self.table.weight, std=0.5)
        self.attentions = nn.ModuleList([make() for make in layers])
        self.feeds = nn.ModuleList([SwiGLU(d_model, 2 * d_model) for _ in layers if fed])
        self.norms = nn.ModuleList([RMSNorm(d_model) for _ in range(2 * len(layers) + 1)])
        self.W_out = nn.Linear(d_model, n_answers, bias=False)

    def stream(self, ids: Tensor) -> Tensor:
        """Return the token vectors that the first block gets."""
        x = self.table(ids)
        return x.sum(-2) if ids.ndim == 3 else x

    def forward(self, ids: Tensor, masks: Sequence[Tensor] | None = None) -> Tensor:
        """Return scores of the answers, ``(b, n, n_answers)``; masks: one a layer, for its own."""
        x = self.stream(ids)
        for i, attention in enumerate(self.attentions):
            mask = () if masks is None else (masks[i],)
            x = self.after(i, x + attention(self.norms[2 * i](x), *mask))
        return self.W_out(self.norms[-1](x))

    def after(self, i: int, x: Tensor) -> Tensor:
        """Return the stream behind block i's feed-forward layer, if it has one."""
        return x + self.feeds[i](self.norms[2 * i + 1](x)) if self.fed else x

    def inputs(self, ids: Tensor) -> list[Tensor]:
        """Return what each attention layer is given: the stream, normed."""
        x, normed = self.stream(ids), []
        for i, attention in enumerate(self.attentions):
            normed.append(self.norms[2 * i](x))
            x = self.after(i, x + attention(normed[-1]))
        return normed


def turned(x: Tensor, places: Tensor | None = None) -> Tensor:
    """Return chapter 11's `apply_rope` by places ``(n,)``, 0 to n − 1 unless given."""
    n, d = x.shape[-2:]
    places = torch.arange(n) if places is None else places
    steps = BASE ** (-torch.arange(0, d, 2, device=x.device) / d)
    angles = places.to(x.device)[:, None] * steps  # (n, d/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., 0::2], x[..., 1::2]
    pairs = first * cos - second * sin, first * sin + second * cos
    return torch.stack(pairs, dim=-1).flatten(-2)


def seen_keys(
    n: int, window: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Return the mask ``(n, n)``: causal, of the last ``window`` keys where a window is given."""
    mask = torch.ones(n, n, dtype=torch.bool, device=device).tril()
    return mask if window is None else mask & ~mask.tril(-window)
