"""Chapter 21: what the models of the last years changed in attention.

Scores with a bound (``normed_scores``), a place for weight that has nowhere to go
(``sink_softmax``, ``GatedAttention``), keys and values from one small vector (``absorbed_scores``,
``LatentAttention``), layers that see a window (``layer_kinds``), a memory that can be corrected
(``delta_rule``, ``gated_delta_rule``), keys that are chosen (``select_keys``), and the bytes that
each of these keeps (``cache_bytes_of``).

Sequences are ``(..., n, d)``, heads stand before their tokens, ``(..., h, n, d)``, masks are True
where attention is allowed. Sources: Henry et al. (2020), Query-Key Normalization for Transformers;
Xiao et al. (2024), Efficient Streaming Language Models with Attention Sinks; OpenAI (2025),
gpt-oss-120b & gpt-oss-20b Model Card; Qiu et al. (2025), Gated Attention for Large Language Models;
DeepSeek-AI (2024), DeepSeek-V2; DeepSeek-AI (2025), DeepSeek-V3.2; Schlag et al. (2021), Linear
Transformers Are Secretly Fast Weight Programmers; Yang et al. (2025), Gated Delta Networks.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.data import kept
from attncourse.kqv import scaled_dot_product_attention
from attncourse.llama import RMSNorm, RotaryAttention, require_even_width, rms_norm
from attncourse.masking import causal_mask, masked_softmax
from attncourse.multihead import merge_heads, split_heads
from attncourse.positions import apply_rope
from attncourse.support.arrays import require_count, require_divisor
from attncourse.support.shapes import Count, Positive, shaped
from attncourse.support.tensors import ALLOWED, require_boolean, require_mask, seen

# Twelve models by name: the kinds of their layers and their sizes, as ``cache_bytes_of`` reads
# them, and what else is published of each, with its sources.
MODELS: dict[str, dict[str, Any]] = {row["name"]: row for row in kept("models")["models"]}

# --- scores with a bound --------------------------------------------------------------------------


@shaped(d="queries and keys of the same width d, and a gain for each feature")
def normed_scores(
    query: Float[Tensor, "*#batch m d"],
    key: Float[Tensor, "*#batch n d"],
    gain_q: Float[Tensor, "d"],
    gain_k: Float[Tensor, "d"],
    eps: Positive = 1e-6,
) -> Float[Tensor, "*batch m n"]:
    """Scores of queries and keys that each went through an RMS norm.

    ``rms_norm(q, gain_q) · rms_norm(k, gain_k) / √d``, the norm over the features of one head's
    vector. query: ``(..., m, d)``. key: ``(..., n, d)``. gain_q, gain_k: ``(d,)``. Returns
    ``(..., m, n)``; with gains of 1 no score is larger than √d. Positions, if any, are turned
    after the norm, which this function leaves to the caller. Raises ``ValueError`` for widths that
    differ. Source: Henry et al. (2020), section 3, with RMS norms and gains in place of unit
    lengths and one factor, as Qwen3 has it.
    """
    query = rms_norm(query, gain_q, eps)
    key = rms_norm(key, gain_k, eps)
    return query @ key.mT / math.sqrt(query.shape[-1])  # (..., m, n)


# --- somewhere to put nothing ---------------------------------------------------------------------


@shaped(h="one sink for each head")
def sink_softmax(
    scores: Float[Tensor, "*batch h m n"],
    sink: Float[Tensor, "h"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch h m n"]:
    """Weights over the allowed keys, of which a part goes to a sink that has no value.

    ``A_ij = M_ij e^S_ij / (Σ_l M_il e^S_il + e^sink)``, so that rows sum to less than 1; a query
    without a key gives 0 throughout. scores: ``(..., h, m, n)``. sink: one learned logit a head,
    ``(h,)``. mask: broadcasts to the scores. Returns ``(..., h, m, n)``. Raises ``ValueError`` for
    another number of sinks than of heads, a sink that is not finite, and a mask that is not boolean
    or does not broadcast. Source: OpenAI (2025), section 2; Xiao et al. (2024), section 3.3, has a
    sink of 0.
    """
    require_finite_sink(sink)
    if mask is not None:
        mask, scores = require_mask(mask, scores)
        mask, scores = torch.broadcast_tensors(mask, scores)
        mask = F.pad(mask, (0, 1), value=True)  # (..., h, m, n + 1): the sink is always allowed
    column = sink[:, None, None].expand(*scores.shape[:-1], 1)  # (..., h, m, 1)
    logits = torch.cat([scores, column], dim=-1)  # (..., h, m, n + 1)
    if mask is None:
        return logits.softmax(dim=-1)[..., :-1]
    return masked_softmax(logits, mask)[..., :-1]


class GatedAttention(RotaryAttention):
    """Chapter 18's attention with a gate on its output: ``W_o(heads ⊙ sigmoid(W_g x))``.

    ``W_g``, ``nn.Linear`` without bias, gives each feature of the heads its gate from the token
    that asks. Parameters, masks and refusals are those of ``RotaryAttention``. Source: Qiu et al.
    (2025), section 2.2, after the heads and for each feature, which they find to be the best place.
    """

    @shaped
    def __init__(self, d_model: Count, n_heads: Count, n_kv_heads: Count, base: Positive = 10000.0):
        """Make chapter 18's layers, and W_g, from d_model to d_model, for the gate."""
        super().__init__(d_model, n_heads, n_kv_heads, base)
        self.W_g = nn.Linear(d_model, d_model, bias=False)

    @shaped
    def forward(
        self,
        x: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        positions: Shaped[Tensor, "... n"] | None = None,
        cache: Any = None,
    ) -> Any:
        """The output for every token of x; with a cache, (output, cache), as in chapter 18."""
        query, key, value = self.views(x, positions, cache)
        mask = self.allowed(mask, query, key)
        heads = scaled_dot_product_attention(
            query, self.for_queries(key), self.for_queries(value), mask
        )
        output = self.W_o(merge_heads(heads) * self.gate(x))  # (..., n, d_model)
        return output if cache is None else (output, (key, value))

    def gate(self, x: Float[Tensor, "*batch n d_model"]) -> Float[Tensor, "*batch n d_model"]:
        """What each feature of the heads is multiplied by, between 0 and 1."""
        return self.W_g(x).sigmoid()


# --- keys and values from one small vector --------------------------------------------------------


@shaped(
    h="as many heads in q_content, q_turned and W_uk",
    m="the same queries in both parts",
    n="the same tokens in latent and k_turned",
    d_c="a W_uk that makes keys as wide as q_content",
    d_r="turned queries and keys of the same width",
    d_latent="a W_uk with a row for each feature of latent",
)
def absorbed_scores(
    q_content: Float[Tensor, "*#batch h m d_c"],
    q_turned: Float[Tensor, "*#batch h m d_r"],
    latent: Float[Tensor, "*#batch n d_latent"],
    k_turned: Float[Tensor, "*#batch n d_r"],
    W_uk: Float[Tensor, "h d_latent d_c"],
) -> Float[Tensor, "*batch h m n"]:
    """Scores against keys that are never made: each query is taken to the latents instead.

    The content key of token j in head h would be ``c_j W_uk[h]``, so that
    ``q · (c_j W_uk) = (q W_ukᵀ) · c_j``; to it comes the product of the turned parts, of which all
    heads share the key, and the sum is divided by √(d_c + d_r). q_content: ``(..., h, m, d_c)``.
    q_turned: ``(..., h, m, d_r)``. latent: ``(..., n, d_latent)``. k_turned: ``(..., n, d_r)``.
    W_uk: ``(h, d_latent, d_c)``. Returns ``(..., h, m, n)``; no tensor ``(h, n, d_c)`` is made.
    Raises ``ValueError`` for shapes that do not fit each other. Source: DeepSeek-AI (2024),
    sections 2.1.2 and 2.1.3.
    """
    absorbed = q_content @ W_uk.mT  # (..., h, m, d_latent)
    content = absorbed @ latent.unsqueeze(-3).mT  # (..., h, m, n)
    turned = q_turned @ k_turned.unsqueeze(-3).mT  # (..., h, m, n)
    width = q_content.shape[-1] + q_turned.shape[-1]
    return (content + turned) / math.sqrt(width)


class LatentAttention(nn.Module):
    """Attention whose keys and values are made from one small vector a token, the latent.

    ``c = norm(W_c x)`` has ``d_latent`` features, from which ``W_uk`` and ``W_uv``, ``(h, d_latent,
    d_head)``, make the keys and values of each head. Queries and keys have ``d_turned`` features
    more, which are turned by position; that part of the key, ``W_kr x``, is one for all heads. Kept
    of a token would be its d_latent + d_turned numbers. ``d_head`` is d_model / n_heads unless
    given. A token sees those up to itself unless a mask is given, and a row without a key gets 0.
    Raises ``ValueError`` where heads do not divide, for an odd d_turned, and for a latent that is
    wider than x or than the keys and values of all heads together. Source: DeepSeek-AI (2024),
    section 2.1, with queries that are not compressed, as in DeepSeek-V2-Lite.
    """

    @shaped
    def __init__(
        self,
        d_model: Count,
        n_heads: Count,
        d_latent: Count,
        d_turned: Count,
        d_head: Count | None = None,
        base: Positive = 10000.0,
    ):
        """Make W_c, to the latent, W_uk and W_uv, back to n_heads heads, W_q, W_kr and W_o.

        Of each query and key d_turned numbers are turned by their position, and d_head are not;
        d_head is d_model / n_heads unless given. Raises ``ValueError`` where d_turned is odd, or
        the latent is not smaller than what is made of it.
        """
        super().__init__()
        if d_head is None:
            require_divisor("n_heads", n_heads, "d_model", d_model)
            d_head = d_model // n_heads
        require_even_width(d_turned)
        require_narrow_latent(d_latent, d_model, n_heads * d_head)
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, d_head
        self.d_latent, self.d_turned, self.base = d_latent, d_turned, base
        self.W_q = nn.Linear(d_model, n_heads * (d_head + d_turned), bias=False)
        self.W_c = nn.Linear(d_model, d_latent, bias=False)
        self.norm = RMSNorm(d_latent, 1e-6)
        self.W_kr = nn.Linear(d_model, d_turned, bias=False)
        bound = 1 / math.sqrt(d_latent)  # as nn.Linear begins
        self.W_uk = nn.Parameter(torch.empty(n_heads, d_latent, d_head).uniform_(-bound, bound))
        self.W_uv = nn.Parameter(torch.empty(n_heads, d_latent, d_head).uniform_(-bound, bound))
        self.W_o = nn.Linear(n_heads * d_head, d_model, bias=False)

    @shaped
    def forward(
        self, x: Float[Tensor, "*#batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """The output for every token of x, with the keys and values of every head made.

        mask: broadcasts to the heads' scores, causal unless given. Returns ``(..., n, d_model)``.
        """
        q_content, q_turned, latent, k_turned = self.parts(x)
        key = latent.unsqueeze(-3) @ self.W_uk  # (..., h, n, d_head)
        value = latent.unsqueeze(-3) @ self.W_uv  # (..., h, n, d_head)
        shared = k_turned.unsqueeze(-3).expand(*key.shape[:-1], -1)  # (..., h, n, d_turned)
        query = torch.cat([q_content, q_turned], dim=-1)
        key = torch.cat([key, shared], dim=-1)
        mask = self.allowed(mask, q_content)
        heads = scaled_dot_product_attention(query, key, value, mask)  # (..., h, n, d_head)
        return self.W_o(merge_heads(heads))

    @shaped
    def absorbed(
        self, x: Float[Tensor, "*#batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """The same output without a key or a value: latents are compared, and latents are mixed."""
        _, _, latent, _ = self.parts(x)
        mixed = self.weights(x, mask) @ latent.unsqueeze(-3)  # (..., h, n, d_latent)
        return self.W_o(merge_heads(mixed @ self.W_uv))

    @shaped
    def weights(
        self, x: Float[Tensor, "*#batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch h n n"]:
        """A map for each head, ``(..., h, n, n)``, by ``absorbed_scores``."""
        parts = self.parts(x)
        scores = absorbed_scores(*parts, self.W_uk)
        return masked_softmax(scores, self.allowed(mask, parts[0]))

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return both parts of the queries, the latents and the turned keys, before any product."""
        query = split_heads(self.W_q(x), self.n_heads)  # (..., h, n, d_head + d_turned)
        q_content, q_turned = query.split([self.d_head, self.d_turned], dim=-1)
        positions = torch.arange(x.shape[-2], device=x.device)
        q_turned = apply_rope(q_turned, positions, self.base)
        k_turned = apply_rope(self.W_kr(x), positions, self.base)
        return q_content, q_turned, self.norm(self.W_c(x)), k_turned

    def allowed(self, mask: Tensor | None, query: Tensor) -> Tensor:
        """The mask, a causal one unless it is given, to broadcast to the heads' scores."""
        if mask is None:
            mask = causal_mask(query.shape[-2]).to(query.device)
        require_boolean("mask", mask, ALLOWED)
        return mask if mask.ndim < 3 or mask.ndim == query.ndim else mask.unsqueeze(-3)


# --- layers that see a window, and what layers keep -----------------------------------------------


def layer_kinds(n_layers: int, every: int, window: int | None) -> list[str]:
    """The kind of each layer, where every ``every``-th sees all tokens and the others a window.

    ``"full"`` for the layers ``every``, 2 · ``every``, … counted from 1, and ``"window"`` for the
    others; with a window of None all are full. Returns ``n_layers`` names, from the first layer up,
    as ``cache_bytes_of`` reads them. Raises ``ValueError`` for a number that is not whole and at
    least 1. Source: the pattern of Gemma 3 (2025), section 2, with 5 windows to 1 full layer.
    """
    require_count("n_layers", n_layers)
    require_count("every", every)
    if window is not None:
        require_count("window", window)
    kinds = []
    for layer in range(1, n_layers + 1):
        sees_all = window is None or layer % every == 0
        kinds.append("full" if sees_all else "window")
    return kinds


# What each kind of layer reads of a configuration.
NEEDED = {
    "full": ("n_kv_heads", "d_head"),
    "window": ("n_kv_heads", "d_head", "window"),
    "latent": ("d_latent", "d_turned"),
    "state": ("d_state",),
}


def cache_bytes_of(
    config: Mapping[str, Any], n_tokens: int, bytes_per_number: int | float = 2
) -> int | float:
    """The bytes that a model keeps of a text of ``n_tokens``, over all of its layers.

    ``config["layers"]`` names the kind of each layer. ``"full"`` keeps 2 · n_kv_heads · d_head
    numbers a token, ``"window"`` the same for at most ``window`` tokens, ``"latent"`` d_latent +
    d_turned numbers a token, ``"state"`` d_state numbers in all. config may hold more, and may lack
    what none of its layers reads. Raises ``ValueError`` for no layer, one of another kind, a size
    that lacks or is wrong, and for n_tokens or bytes_per_number that is not above 0.
    """
    require_count("n_tokens", n_tokens)
    per_number = require_bytes_per_number(bytes_per_number)
    numbers = 0
    require_kinds(config)
    for kind in config["layers"]:
        require_sizes(config, kind)
        if kind == "state":
            numbers += config["d_state"]
        elif kind == "latent":
            width = config["d_latent"] + config["d_turned"]
            numbers += n_tokens * width
        else:
            near = config["window"] if kind == "window" else n_tokens
            width = config["n_kv_heads"] * config["d_head"]
            numbers += 2 * min(n_tokens, near) * width
    return numbers * per_number


# --- a memory that can be corrected ---------------------------------------------------------------


@shaped(d_k="queries and keys of the same width d_k", n="a query, key, value and β for each token")
def delta_rule(
    query: Float[Tensor, "*#batch n d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    beta: Float[Tensor, "*#batch n"],
) -> Float[Tensor, "*batch n d_v"]:
    """What each query reads from a memory of fixed size that every token corrects first.

    Token by token, from a state S of zeros, ``(d_k, d_v)``: ``S ← S + β k (v − Sᵀ k)ᵀ``, then
    ``out = Sᵀ q``. β says how much of the error is mended: with 1 and a key of length 1 the memory
    then answers v to k, whatever it answered before. Keys are taken as they come. query, key:
    ``(..., n, d_k)``. value: ``(..., n, d_v)``. beta: ``(..., n)``. Returns ``(..., n, d_v)``.
    Raises ``ValueError`` for a β that is not from 0 to 1, and shapes that do not fit. Source:
    Schlag et al. (2021), equation 24.
    """
    no_decay = torch.ones_like(beta)
    return gated_delta_rule(query, key, value, beta, no_decay)


@shaped(d_k="queries and keys of the same width d_k", n="the same n for each token")
def gated_delta_rule(
    query: Float[Tensor, "*#batch n d_k"],
    key: Float[Tensor, "*#batch n d_k"],
    value: Float[Tensor, "*#batch n d_v"],
    beta: Float[Tensor, "*#batch n"],
    decay: Float[Tensor, "*#batch n"],
) -> Float[Tensor, "*batch n d_v"]:
    """``delta_rule`` with a memory that fades first: ``S ← α S``, then the correction by v.

    decay: α of each token, ``(..., n)``, from 0 to 1; what the token itself adds does not fade. All
    else as for ``delta_rule``. Raises ``ValueError`` for an α or β that is not from 0 to 1. Source:
    Yang et al. (2025), equation 10.
    """
    require_fractions("beta", beta)
    require_fractions("decay", decay)
    state = torch.zeros_like(key[..., :1, :].mT * value[..., :1, :])
    outputs = []  # state is S, (..., d_k, d_v)
    for t in range(query.shape[-2]):
        k, v = key[..., t, :, None], value[..., t, None, :]  # (..., d_k, 1), (..., 1, d_v)
        b, a = beta[..., t, None, None], decay[..., t, None, None]
        state = a * state
        error = v - k.mT @ state  # (..., 1, d_v)
        state = state + b * k * error
        outputs.append(query[..., t, None, :] @ state)  # (..., 1, d_v)
    return torch.cat(outputs, dim=-2)


# --- keys that are chosen -------------------------------------------------------------------------


@shaped
def select_keys(
    index_scores: Float[Tensor, "*batch m n"], k: int, mask: Bool[Tensor, "*#batch #m #n"]
) -> Bool[Tensor, "*batch m n"]:
    """A mask of the k allowed keys with the highest index scores, for each query.

    All allowed keys where they are k or fewer; of equal scores the earlier key. index_scores:
    ``(..., m, n)``. mask: boolean, broadcasts to them. Returns ``(..., m, n)``, never True where
    the mask is not. Raises ``ValueError`` for a k that is not a whole number from 1 on, a mask that
    is not boolean or does not broadcast, and a score that is NaN. Source: DeepSeek-AI (2025),
    section 2.1.
    """
    require_count("k", k)
    mask, index_scores = require_mask(mask, index_scores)
    require_no_nan(index_scores)
    mask, index_scores = torch.broadcast_tensors(mask, index_scores)
    order = index_scores.argsort(dim=-1, descending=True, stable=True)  # (..., m, n)
    # A second stable sort, allowed keys first: a score of −∞ may be allowed, too.
    allowed_first = mask.gather(-1, order).to(torch.uint8)
    again = allowed_first.argsort(dim=-1, descending=True, stable=True)
    order = order.gather(-1, again)
    chosen = torch.zeros_like(mask).scatter(-1, order[..., :k], True)
    return chosen & mask


# --- refusals -------------------------------------------------------------------------------------


def require_finite_sink(sink: Tensor) -> None:
    """Raise ``ValueError`` where a sink is NaN or infinite."""
    wrong = ~sink.isfinite()
    if seen(wrong):
        head = int(wrong.nonzero()[0])
        raise ValueError(f"sink: expected finite logits, got {float(sink[head])} for head {head}")


def require_narrow_latent(d_latent: int, d_model: int, d_heads: int) -> None:
    """Raise ``ValueError`` for a latent that compresses neither x nor the keys and values."""
    most = min(d_model, 2 * d_heads)
    if d_latent > most:
        raise ValueError(
            f"d_latent: expected at most {most}, the lesser of x's {d_model} features and the "
            f"{2 * d_heads} of all keys and values, got {d_latent}"
        )


def require_kinds(config: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` where config has no kinds of layers, or one that is not known."""
    if not isinstance(config, Mapping) or "layers" not in config:
        got = f"keys {sorted(config)}" if isinstance(config, Mapping) else type(config).__name__
        raise ValueError(f"config: expected a mapping with the key layers, got {got}")
    layers = config["layers"]
    if isinstance(layers, str) or not isinstance(layers, Sequence) or not layers:
        raise ValueError(f"layers: expected a list with a kind for each layer, got {layers!r}")
    for kind in layers:
        if not isinstance(kind, str) or kind not in NEEDED:
            raise ValueError(f"layers: expected {', '.join(NEEDED)}, got {kind!r}")


def require_sizes(config: Mapping[str, Any], kind: str) -> None:
    """Raise ``ValueError`` where a size that a kind of layer reads lacks or is wrong."""
    for name in NEEDED[kind]:
        if name not in config:
            raise ValueError(f"config: expected {name}, which a layer of kind {kind!r} needs")
        require_count(name, config[name])


def require_bytes_per_number(value: int | float) -> int | float:
    """Return the value; ``ValueError`` unless it is above 0. Four bits are half a byte."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(f"bytes_per_number: expected a finite number above 0, got {value!r}")
    return value


def require_fractions(name: str, x: Tensor) -> None:
    """Raise ``ValueError`` where a number is not from 0 to 1."""
    wrong = ~((x >= 0) & (x <= 1))  # NaN is neither
    if seen(wrong):
        where = tuple(wrong.nonzero()[0].tolist())
        raise ValueError(f"{name}: expected 0 to 1, got {float(x[where])} at index {where}")


def require_no_nan(index_scores: Tensor) -> None:
    """Raise ``ValueError`` where an index score is NaN."""
    wrong = index_scores.isnan()
    if seen(wrong):
        where = tuple(wrong.nonzero()[0].tolist())
        raise ValueError(f"index_scores: expected numbers, got NaN at index {where}")
