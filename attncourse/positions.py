"""Chapter 11: positions, or how attention learns of order.

Attention without positions treats a sequence as a set. A position enters in one of three ways: as
features that are added to a token (``sinusoidal_encoding``, ``LearnedPositions``), as a rotation of
queries and keys (``apply_rope``), or as a number added to the scores (``alibi_bias``).

Positions count from 0 and features come in pairs: pair i is made of features 2i and 2i + 1 and has
the frequency ``base**(-2i / d)``, in radians per position, i from 0. Frequencies and angles are
computed in float64 and rounded once, at the end: in float32 an angle at position 100 000 would be
wrong by a thousandth.
Sources: Vaswani et al. (2017), section 3.5; Su et al. (2021), RoFormer, section 3; Press et al.
(2022), Train Short, Test Long, section 3.
"""

import math
from numbers import Real

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from attncourse.support.shapes import Count, Positive, shaped


@shaped
def sinusoidal_encoding(n: Count, d: Count, base: Positive = 10000.0) -> Float[Tensor, "n d"]:
    """A row of sines and cosines for each position t, ``(n, d)``, in torch's default dtype.

    ``PE[t, 2i] = sin(t · base**(-2i / d))`` and ``PE[t, 2i + 1] = cos(t · base**(-2i / d))``, with
    t and i from 0. Raises ``ValueError`` for an odd d and for n below 1.
    Source: Vaswani et al. (2017), section 3.5.
    """
    places = torch.arange(n).double()[:, None]  # (n, 1)
    angles = places * frequencies(d, base)  # (n, 1) * (d/2,)
    sin, cos = angles.sin(), angles.cos()
    pairs = torch.stack([sin, cos], dim=-1)  # (n, d/2, 2)
    return pairs.flatten(-2).to(torch.get_default_dtype())  # (n, d)


@shaped
def rotation_matrix(k: float, d: Count, base: Positive = 10000.0) -> Float[Tensor, "d d"]:
    """The matrix R(k) that leads from any position to the one k places on.

    ``PE(t + k) = R(k) @ PE(t)`` for every t, where PE(t) is a row of ``sinusoidal_encoding`` as a
    column. R(k) has a block ``[[cos, sin], [-sin, cos]]`` of the angle ``k · base**(-2i / d)`` for
    each pair of features on its diagonal and is 0 elsewhere; k may be negative. Returns ``(d, d)``
    in torch's default dtype. Raises ``ValueError`` for an odd d and for k that is not finite.
    """
    if isinstance(k, bool) or not isinstance(k, Real) or not math.isfinite(k):
        raise ValueError(f"k: expected a finite number, got {k!r}")
    angles = float(k) * frequencies(d, base)  # (d/2,)
    cos, sin = angles.cos(), angles.sin()
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1)  # (d/2, 4)
    matrix = torch.block_diag(*blocks.reshape(-1, 2, 2))  # (d, d)
    return matrix.to(torch.get_default_dtype())


@shaped
def apply_rope(
    x: Float[Tensor, "*batch n d"], positions: Shaped[Tensor, "... n"], base: Positive = 10000.0
) -> Float[Tensor, "*batch n d"]:
    """Queries or keys, each turned by its position, pair by pair (rotary position embedding).

    With ``a = positions[t] · base**(-2i / d)``, features 2i and 2i + 1 of token t become
    ``x[2i] cos a - x[2i + 1] sin a`` and ``x[2i] sin a + x[2i + 1] cos a``. The dot product of a
    query and a key that are both turned depends on their positions only by the difference.

    x: ``(..., n, d)``. positions: ``(n,)``, whole or not, negative too; with batch axes of x in
    front where sequences have their own. Returns ``(..., n, d)`` in the dtype of x. Raises
    ``ValueError`` for an odd d, and where there is not one finite position for each token.
    Source: Su et al. (2021), section 3.4.2.
    """
    require_positions(positions, x)
    places = positions.to("cpu", torch.float64)[..., None]  # (..., n, 1)
    angles = places * frequencies(x.shape[-1], base)  # (..., n, 1) * (d/2,)
    cos, sin = angles.cos().to(x), angles.sin().to(x)  # (..., n, d/2)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., n, d/2)
    turned = first * cos - second * sin, first * sin + second * cos
    return torch.stack(turned, dim=-1).flatten(-2)  # (..., n, d)


@shaped
def alibi_bias(n_heads: Count, n: Count) -> Float[Tensor, "n_heads n n"]:
    """Return what attention with linear biases adds to each head's scores: ``-slope · |i - j|``.

    The slope of head h is ``2**(-8 (h + 1) / n_heads)``, h from 0: a geometric sequence that ends
    at 1/256. Returns ``(n_heads, n, n)`` in torch's default dtype, to be added to scores that are
    scaled already. The source has causal attention and so keys with j ≤ i only. Its formula serves
    every n_heads here; its authors' code, not the paper, takes other slopes where n_heads is no
    power of two. Source: Press et al. (2022), section 3.
    """
    head = torch.arange(1, n_heads + 1).double()
    slopes = 2.0 ** (-8 * head / n_heads)  # (n_heads,)
    place = torch.arange(n)
    distance = (place[:, None] - place).abs()  # (n, n)
    bias = -slopes[:, None, None] * distance  # (n_heads, n, n)
    return bias.to(torch.get_default_dtype())


class LearnedPositions(nn.Module):
    """A table of position vectors, learned like any other weights: row t is added to token t.

    ``table`` is a parameter ``(max_length, d)`` that begins as small random numbers. There is no
    row for a position of ``max_length`` or more.
    """

    @shaped
    def __init__(self, max_length: Count, d: Count):
        """Make the table, ``(max_length, d)``, of random numbers with a deviation of 0.02."""
        super().__init__()
        self.d = d
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d))

    @shaped
    def forward(
        self, x: Float[Tensor, "*batch n d"], positions: Shaped[Tensor, "... n"] | None = None
    ) -> Float[Tensor, "*batch n d"]:
        """Return ``x + table[positions]``.

        The positions are 0 to n - 1 unless given, as whole numbers, ``(n,)`` or with batch axes of
        x in front.

        Raises ``ValueError`` for a position that has no row, and where x does not fit the table.
        """
        rows = len(self.table)
        if positions is None:
            positions = torch.arange(x.shape[-2], device=x.device)
        require_positions(positions, x)
        if positions.is_floating_point():
            raise ValueError(f"positions: expected whole numbers, got dtype {positions.dtype}")
        low, high = int(positions.min()), int(positions.max())
        if low < 0 or high >= rows:
            raise ValueError(
                f"positions: expected 0 to {rows - 1}, the table has {rows} rows, "
                f"got {low if low < 0 else high}"
            )
        return x + self.table[positions]  # (..., n, d) + (n, d)


def frequencies(d: int, base: float) -> Float[Tensor, " pairs"]:
    """The angle that one position is worth, ``base**(-2i / d)`` for pair i from 0, in float64."""
    if d % 2:
        raise ValueError(f"d: expected an even number of features, they come in pairs, got {d}")
    pair = torch.arange(d // 2).double()  # (d/2,)
    return base ** (-2 * pair / d)


def require_positions(positions: Tensor, x: Tensor) -> None:
    """Raise ``ValueError`` unless ``positions`` has a finite number for each token of x.

    The numbers may be the same for all sequences of a batch or their own.
    """
    if not isinstance(positions, Tensor):
        raise ValueError(f"positions: expected a torch tensor, got {type(positions).__name__}")
    if positions.dtype == torch.bool or positions.is_complex():
        raise ValueError(f"positions: expected real numbers, got dtype {positions.dtype}")
    *batch, n = x.shape[:-1]
    try:
        fits = positions.shape[-1:] == (n,)
        positions.expand(*batch, n)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"positions: expected one for each of the {n} tokens, shape ({n},), "
            f"got {tuple(positions.shape)}"
        )
    if not positions.isfinite().all():
        where = tuple((~positions.isfinite()).nonzero()[0].tolist())
        where, got = where[0] if len(where) == 1 else where, positions[where]
        raise ValueError(f"positions: expected finite numbers, got {got} at {where}")
