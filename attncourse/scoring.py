"""Chapter 6: ways to compare a query with a key.

A score says how well a query fits a key. All scores here map queries ``(..., m, d_q)`` and keys
``(..., n, d_k)`` to ``(..., m, n)``, row i for query i; batch axes broadcast, and the floating
dtype stays. The weights that ``attend`` makes of them are chapter 5's.

Sources: Bahdanau, Cho and Bengio (2015), Neural Machine Translation by Jointly Learning to Align
and Translate; Luong, Pham and Manning (2015), Effective Approaches to Attention-based Neural
Machine Translation, section 3.1.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attncourse.kqv import attention_scores, softmax_over_keys
from attncourse.support.shapes import Count, shaped


def dot_score(
    query: Float[Tensor, "*#batch m d"], key: Float[Tensor, "*#batch n d"]
) -> Float[Tensor, "*batch m n"]:
    """The dot product of every query with every key, ``S[i, j] = query[i] · key[j]``.

    query: ``(..., m, d)``. key: ``(..., n, d)``. Returns ``(..., m, n)``. Raises ``ValueError``
    where queries and keys differ in width.
    """
    return attention_scores(query, key)  # (..., m, d) @ (..., d, n)


def scaled_dot_score(
    query: Float[Tensor, "*#batch m d"], key: Float[Tensor, "*#batch n d"]
) -> Float[Tensor, "*batch m n"]:
    """The dot product divided by the root of the width, ``S[i, j] = query[i] · key[j] / √d``.

    Arguments and errors as for ``dot_score``. Source: Vaswani et al. (2017), section 3.2.1.
    """
    return dot_score(query, key) / math.sqrt(query.shape[-1])


class BilinearScore(nn.Module):
    """The score ``S[i, j] = query[i] W key[j]ᵀ``, with a learned ``W`` of shape ``(d_q, d_k)``.

    For features of mean 0 and variance 1 the new module's scores have variance 1 too: the entries
    of ``W`` are drawn with variance 1/(d_q d_k). Luong et al. (2015) call this score *general*.
    """

    @shaped
    def __init__(self, d_q: Count, d_k: Count):
        """Make W, ``(d_q, d_k)``, of random numbers with a deviation of ``1 / √(d_q d_k)``."""
        super().__init__()
        self.d_q, self.d_k = d_q, d_k
        W = torch.randn(d_q, d_k) / math.sqrt(d_q * d_k)
        self.W = nn.Parameter(W)

    @shaped
    def forward(
        self, query: Float[Tensor, "*#batch m d_q"], key: Float[Tensor, "*#batch n d_k"]
    ) -> Float[Tensor, "*batch m n"]:
        """The scores of every query with every key."""
        query = query @ self.W  # (..., m, d_q) @ (d_q, d_k)
        return query @ key.mT  # (..., m, d_k) @ (..., d_k, n)


class AdditiveScore(nn.Module):
    """The score of a network with one hidden layer, ``S[i, j] = w(tanh(W_q(q_i) + W_k(k_j)))``.

    ``W_q`` maps d_q features to d_hidden, ``W_k`` maps d_k to d_hidden, ``w`` maps d_hidden to 1;
    none has a bias. The hidden layer is ``(..., m, n, d_hidden)``: one for every pair. Source:
    Bahdanau et al. (2015), appendix A.1.2; the *concat* score of Luong et al. (2015) is the same.
    """

    @shaped
    def __init__(self, d_q: Count, d_k: Count, d_hidden: Count):
        """Make the layers W_q and W_k, to d_hidden, and w, from there to one score."""
        super().__init__()
        self.d_q, self.d_k = d_q, d_k
        self.W_q = nn.Linear(d_q, d_hidden, bias=False)
        self.W_k = nn.Linear(d_k, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    @shaped
    def forward(
        self, query: Float[Tensor, "*#batch m d_q"], key: Float[Tensor, "*#batch n d_k"]
    ) -> Float[Tensor, "*batch m n"]:
        """The scores of every query with every key."""
        rows = self.W_q(query).unsqueeze(-2)  # (..., m, 1, d_hidden)
        columns = self.W_k(key).unsqueeze(-3)  # (..., 1, n, d_hidden)
        hidden = torch.tanh(rows + columns)  # (..., m, n, d_hidden)
        return self.w(hidden).squeeze(-1)  # (..., m, n)


@shaped(n="one value for each key")
def attend(
    scores: Float[Tensor, "*#batch m n"],
    values: Float[Tensor, "*#batch n d_v"],
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*batch m d_v"]:
    """The blend of values for each query, ``U = softmax(S) V``, whatever made the scores.

    scores: ``(..., m, n)``. values: ``(..., n, d_v)``. mask: True where attention is allowed,
    broadcasts to the scores. Returns ``(..., m, d_v)``; a query with no allowed key gets 0.

    Raises ``ValueError`` where there is not one value for each key, and for a mask that is not
    boolean, does not broadcast, or hides a NaN score.
    """
    weights = softmax_over_keys(scores, mask)  # (..., m, n)
    return weights @ values  # (..., m, n) @ (..., n, d_v)
