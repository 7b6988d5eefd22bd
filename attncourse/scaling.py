"""Chapter 7: how large scores are, what a softmax makes of them, and the division by √d_k.

A score is a dot product of d_k terms. For independent entries of mean 0 and variance 1 its variance
is d_k, so its standard deviation is √d_k, and scores divided by √d_k are of order one at every
width. Scores far apart saturate the softmax: its weights p approach a single 1, their entropy 0,
and its Jacobian diag(p) − p pᵀ approaches 0, and with it what can be learned through it.

The three functions of tensors take any number of leading axes and keep the floating dtype. NaN in
an argument comes out as NaN wherever it takes part.
Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.1, footnote 4.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attncourse.support.arrays import require_count
from attncourse.support.shapes import Count, shaped

# Numbers drawn at a time by score_variance: 4 MB, whatever d_k and n_samples are.
AT_ONCE = 2**20

# How far from 1 a row of weights may sum: bfloat16 has 8 significant bits.
ROW_SUM_TOLERANCE = 0.02


@shaped
def score_variance(d_k: Count, n_samples: int, seed: int) -> float:
    """The sample variance of q · k over ``n_samples`` pairs of independent random vectors.

    Every entry of every q and k is drawn anew from the standard normal distribution. The variance
    is the unbiased one, ``Σ (s − mean)² / (n_samples − 1)``; its expectation is d_k and its
    relative standard deviation ``√((2 + 6/d_k) / n_samples)``, or very nearly. Equal seeds give
    equal results.

    Raises ``ValueError`` for a d_k below 1, fewer than two samples, or a seed that is no whole
    number of at least 0.
    """
    n_samples = require_count("n_samples", n_samples, least=2)
    generator = torch.Generator().manual_seed(require_count("seed", seed, least=0))
    parts = []
    for pairs in torch.arange(n_samples).split(max(1, AT_ONCE // d_k)):
        # query and key: (pairs, d_k)
        query = torch.randn(len(pairs), d_k, generator=generator)
        key = torch.randn(len(pairs), d_k, generator=generator)
        parts.append((query * key).sum(dim=-1))  # (pairs,)
    return torch.cat(parts).double().var().item()  # of n_samples scores


@shaped
def scale_scores(scores: Float[Tensor, "*batch m n"], d_k: Count) -> Float[Tensor, "*batch m n"]:
    """The scores divided by √d_k, where d_k is the width of the queries and keys behind them.

    scores: ``(..., m, n)``, of any size and sign. Returns the same shape. The result has standard
    deviation 1 where q and k have independent entries of mean 0 and variance 1, and no bound.

    Raises ``ValueError`` for a d_k that is no whole number of at least 1. The scores themselves do
    not tell it: their axes are m and n.
    """
    return scores / math.sqrt(d_k)


@shaped
def softmax_jacobian(p: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n n"]:
    """Return how the weights p = softmax(s) move with their scores, ``J = diag(p) − p pᵀ``.

    ``J[..., i, j] = ∂p_i / ∂s_j = p_i (δ_ij − p_j)``, of every row of p by itself. p: ``(..., n)``,
    weights, not scores. Returns ``(..., n, n)``: symmetric, with rows that sum to 0, and with no
    eigenvalue below 0 or above 1/2.

    Raises ``ValueError`` for a row that is no row of weights: see ``require_weights``.
    Source: Bridle (1990).
    """
    require_weights("p", p)
    products = p[..., :, None] * p[..., None, :]  # (..., n, n)
    return torch.diag_embed(p) - products


@shaped
def attention_entropy(weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """Return the entropy of each row of weights, ``H = −Σ_j a_j ln a_j``, in nats.

    It says how widely a row is spread.

    weights: ``(..., n)``; the sum runs over the last axis, the keys. Returns ``(...)``: 0 for a
    single 1, ln n for n equal weights, and exp(H) is the number of equal weights with the same
    entropy. A weight of 0 adds 0, its limit, and so does its gradient (whose limit is infinite,
    and would turn into NaN on its way back through a mask).

    Raises ``ValueError`` for a row that is no row of weights: see ``require_weights``.
    """
    require_weights("weights", weights)
    logs = weights.masked_fill(weights == 0, 1).log()  # ln 1 = 0
    return 0 - (weights * logs).sum(dim=-1)  # 0 − 0 is 0, −(0) is −0


def require_weights(name: str, value: Tensor) -> None:
    """Raises ``ValueError`` unless every row is a row of weights.

    That is: no entry below 0, and a sum of 1, or of 0 for a query that may attend to nothing.
    NaN passes, and shows in what is computed from it.
    """
    if (value < 0).any():
        raise ValueError(f"{name}: expected weights, none below 0, got {value.min():.4g}")
    sums = value.detach().sum(dim=-1)
    wrong = ((sums - 1).abs() > ROW_SUM_TOLERANCE) & (sums != 0)
    if wrong.any():
        raise ValueError(
            f"{name}: expected weights that sum to 1 along the last axis, got a sum of "
            f"{sums[wrong][0]:.4g}; are these scores, or weights that sum to 1 along another axis?"
        )
