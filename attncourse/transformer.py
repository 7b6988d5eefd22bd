"""Chapter 12: the transformer's layers, made of attention and of what it lacks.

Attention blends rows; a feed-forward layer then works on each row by itself. Each of the two is a
*branch*: what it returns is added to the row it read (the residual stream), and a layer norm keeps
the rows at one size. ``EncoderBlock`` is one such pair, ``DecoderBlock`` also looks at another
sequence, and ``Transformer`` is a stack of both.

Sequences are ``(..., n, d_model)``; masks are boolean, True where attention is allowed, as in
``MultiHeadAttention``. Sources: Vaswani et al. (2017), section 3; Ba et al. (2016), Layer
Normalization; Xiong et al. (2020), On Layer Normalization in the Transformer Architecture.
"""

import math
from collections.abc import Callable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn, ones, zeros
from torch.nn import functional as F

from attncourse.masking import causal_mask
from attncourse.multihead import MultiHeadAttention
from attncourse.positions import sinusoidal_encoding
from attncourse.support.shapes import Count, Positive, shaped


@shaped
def layer_norm(
    x: Float[Tensor, "*batch d"],
    gain: Float[Tensor, "d"] | None = None,
    bias: Float[Tensor, "d"] | None = None,
    eps: Positive = 1e-5,
) -> Float[Tensor, "*batch d"]:
    """Each row at mean 0 and size √d, ``gain · (x − mean) / √(variance + eps) + bias``.

    Mean and variance are those of the row's d features; the variance is the mean square, a division
    by d. gain, bias: ``(d,)``, 1 and 0 unless given. Returns the shape of x. Raises ``ValueError``
    for another width than x has. Source: Ba et al. (2016), section 3.
    """
    x = x - x.mean(-1, keepdim=True)  # (..., d)
    variance = x.square().mean(-1, keepdim=True)  # (..., 1)
    x = x / (variance + eps).sqrt()
    x = x if gain is None else gain * x
    return x if bias is None else x + bias


class LayerNorm(nn.Module):
    """``layer_norm`` with a learned ``gain`` and ``bias``, ``(d,)``, which begin at 1 and 0."""

    @shaped
    def __init__(self, d: Count, eps: Positive = 1e-5):
        """Make gain and bias, ``(d,)``; ``eps`` is added to the variance under the root."""
        super().__init__()
        self.d, self.eps = d, eps
        self.gain = nn.Parameter(ones(d))
        self.bias = nn.Parameter(zeros(d))

    @shaped
    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Each row of x, normalised, times gain plus bias; the library does it in one step."""
        gain, bias = self.gain, self.bias  # (d,)
        return F.layer_norm(x, (self.d,), gain, bias, self.eps)


class FeedForward(nn.Module):
    """Each token by itself through a wider layer, ``W_2 · activation(W_1 · x)``.

    ``W_1`` maps d_model features to d_ff, 4·d_model unless given, and ``W_2`` maps them back.
    Source: Vaswani et al. (2017), section 3.3.
    """

    @shaped
    def __init__(
        self,
        d_model: Count,
        d_ff: Count | None = None,
        activation: Callable[[Tensor], Tensor] = F.gelu,
        bias: bool = True,
    ):
        """Make W_1, from d_model to d_ff, and W_2, back; d_ff is 4 d_model unless given."""
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.d_model = d_model
        self.activation = activation
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)

    @shaped
    def forward(self, x: Float[Tensor, "*batch n d_model"]) -> Float[Tensor, "*batch n d_model"]:
        """The output for every token of x; no token sees another."""
        hidden = self.activation(self.W_1(x))  # (..., n, d_ff)
        return self.W_2(hidden)  # (..., n, d_model)


class Block(nn.Module):
    """A residual stream: a branch's output, after dropout, is added to what the branch read."""

    @shaped
    def __init__(self, d_model: Count, d_ff: Count | None, pre_norm: bool, dropout: float):
        """Make what all blocks have: the feed-forward layer, two norms, dropout.

        ``pre_norm`` puts a norm in front of each branch, and otherwise behind the sum.
        """
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout: expected a share from 0 to below 1, got {dropout}")
        self.pre_norm = pre_norm
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def add(
        self,
        x: Float[Tensor, "*batch n d_model"],
        branch: Callable[[Tensor], Tensor],
        norm: nn.Module,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return x plus what the branch makes of it; the norm is before it or after the sum."""
        if self.pre_norm:
            return x + self.dropout(branch(norm(x)))
        return norm(x + self.dropout(branch(x)))


class EncoderBlock(Block):
    """Attention, then feed-forward, each added to what it read.

    With ``pre_norm`` a branch reads a normalised x, ``x + attention(norm_1(x))``, and the stream
    itself stays as it is; without, the sum is normalised, ``norm_1(x + attention(x))``, as in 2017.
    Dropout is off in ``eval()``. Raises ``ValueError`` where n_heads does not divide d_model.
    """

    @shaped
    def __init__(
        self,
        d_model: Count,
        n_heads: Count,
        d_ff: Count | None = None,
        pre_norm: bool = True,
        dropout: float = 0.0,
    ):
        """Make chapter 9's attention, a feed-forward layer, and two norms."""
        super().__init__(d_model, d_ff, pre_norm, dropout)
        self.attention = MultiHeadAttention(d_model, n_heads)

    def forward(
        self, x: Float[Tensor, "*#batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """The sequence after this block, ``(..., n, d_model)``."""

        def attention(x: Tensor) -> Tensor:
            return self.attention(x, mask=mask)

        x = self.add(x, attention, self.norm_1)
        return self.add(x, self.feed_forward, self.norm_2)


class DecoderBlock(Block):
    """Self-attention, attention to ``memory``, feed-forward, each added to what it read.

    ``memory``, ``(..., n, d_model)``, is what an encoder returned: its keys and values are read as
    it comes, in a pre-norm block too. ``norm_1`` to ``norm_3`` belong to the branches in order.
    Raises ``ValueError`` where n_heads does not divide d_model.
    """

    @shaped
    def __init__(
        self,
        d_model: Count,
        n_heads: Count,
        d_ff: Count | None = None,
        pre_norm: bool = True,
        dropout: float = 0.0,
    ):
        """Make two layers of attention, a feed-forward layer, and three norms."""
        super().__init__(d_model, d_ff, pre_norm, dropout)
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.norm_3 = LayerNorm(d_model)

    def forward(
        self,
        x: Float[Tensor, "*#batch m d_model"],
        memory: Float[Tensor, "*#batch n d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch m d_model"]:
        """The sequence x after this block, ``(..., m, d_model)``.

        mask: which tokens of x each may see. memory_mask: which of the memory's.
        """

        def look(x: Tensor) -> Tensor:
            return self.self_attention(x, mask=mask)

        def read(x: Tensor) -> Tensor:
            return self.cross_attention(x, memory, mask=memory_mask)

        x = self.add(x, look, self.norm_1)
        x = self.add(x, read, self.norm_2)
        return self.add(x, self.feed_forward, self.norm_3)


class Transformer(nn.Module):
    """The encoder–decoder: what comes next in a target, given a source and the target so far.

    ``encoder`` and ``decoder`` are ``n_layers`` blocks each. Ids get vectors, scaled by √d_model,
    and sinusoidal positions; pre-norm stacks end in a norm. n_source, n_target: how many ids.
    Source: Vaswani et al. (2017), section 3; the final norm: Xiong et al. (2020).
    """

    @shaped
    def __init__(
        self,
        n_source: Count,
        n_target: Count,
        d_model: Count,
        n_heads: Count,
        n_layers: Count,
        d_ff: Count | None = None,
        pre_norm: bool = True,
        dropout: float = 0.0,
    ):
        """Make two tables of tokens, n_layers blocks on each side, and the last layer."""
        super().__init__()
        settings = (d_model, n_heads, d_ff, pre_norm, dropout)
        self.source = nn.Embedding(n_source, d_model)
        self.target = nn.Embedding(n_target, d_model)
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        for _ in range(n_layers):
            self.encoder.append(EncoderBlock(*settings))
        for _ in range(n_layers):
            self.decoder.append(DecoderBlock(*settings))
        self.norm_source = LayerNorm(d_model) if pre_norm else nn.Identity()
        self.norm_target = LayerNorm(d_model) if pre_norm else nn.Identity()
        self.out = nn.Linear(d_model, n_target)
        for table in self.source, self.target:  # rows of size 1, so that positions are heard
            nn.init.normal_(table.weight, std=d_model**-0.5)

    def embed(self, table: nn.Embedding, ids: Int[Tensor, "*batch n"]) -> Tensor:
        """Vectors that say what a token is and where it stands, ``(..., n, d_model)``."""
        d = table.embedding_dim
        positions = sinusoidal_encoding(ids.shape[-1], d)  # (n, d_model)
        return math.sqrt(d) * table(ids) + positions.to(table.weight)

    def encode(
        self, source: Int[Tensor, "*batch n"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """The memory: every token of the source, having read the others. mask: as for a block."""
        x = self.embed(self.source, source)
        for block in self.encoder:
            x = block(x, mask)
        return self.norm_source(x)

    def decode(
        self,
        target: Int[Tensor, "*#batch m"],
        memory: Float[Tensor, "*#batch n d_model"],
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch m n_target"]:
        """Logits for the token after each of the target; no token sees a later one."""
        x = self.embed(self.target, target)
        mask = causal_mask(target.shape[-1]).to(x.device)
        for block in self.decoder:
            x = block(x, memory, mask, memory_mask)
        return self.out(self.norm_target(x))

    def forward(
        self,
        source: Int[Tensor, "*#batch n"],
        target: Int[Tensor, "*#batch m"],
        source_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch m n_target"]:
        """Logits ``(..., m, n_target)``. source_mask: True where the source is no padding."""
        memory = self.encode(source, source_mask)  # (..., n, d_model)
        return self.decode(target, memory, source_mask)


@shaped
def noam_schedule(step: float, d_model: Count, warmup: Count) -> float:
    """The learning rate at a step, ``d_model^−½ · min(step^−½, step · warmup^−3/2)``.

    It rises in proportion to the step, has its peak ``(d_model · warmup)^−½`` at step ``warmup``,
    and then falls as 1/√step. Steps count from 1; ``ValueError`` for one below.
    Source: Vaswani et al. (2017), section 5.3.
    """
    if not step >= 1:
        raise ValueError(f"step: expected a step from 1 on, got {step}")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
