"""Chapter 8: attention whose questions come from another sequence, or from nobody.

Cross-attention takes its queries from the m tokens of X ``(m, d_x)`` and its keys and values from
the n tokens of Y ``(n, d_y)``. Attention pooling takes its queries from no sequence: they are
parameters, and sum up any number of elements in as many vectors as there are queries. The weights
are ``(m, n)`` in both, and row i belongs to query i.

Every function takes any number of leading batch axes and keeps the floating dtype. NaN in an
argument comes out as NaN wherever it takes part; where a mask would hide one, that is an error.
Sources: Vaswani et al. (2017), Attention Is All You Need, section 3.2.3; Lee et al. (2019), Set
Transformer, section 3.2; Jaegle et al. (2021), Perceiver, section 3.1.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attncourse.arrays import require_count
from attncourse.kqv import attention_weights, scaled_dot_product_attention
from attncourse.tensors import require_features, require_same_batch


class CrossAttention(nn.Module):
    """Attention of one sequence to another: ``softmax(X W_q (Y W_k)ᵀ / √d_k) Y W_v``.

    ``W_q`` maps the d_x features of those who ask to d_k. ``W_k`` and ``W_v`` map the d_y features
    of those who are asked to d_k and d_v. They are ``nn.Linear`` without bias, whose ``weight`` is
    stored as (out, in) and applied transposed. With Y = X this is self-attention.

    Source: Vaswani et al. (2017), section 3.2.3, "encoder-decoder attention", for one head.
    """

    def __init__(self, d_x: int, d_y: int, d_k: int, d_v: int):
        super().__init__()
        d_x, d_y = require_count("d_x", d_x), require_count("d_y", d_y)
        d_k, d_v = require_count("d_k", d_k), require_count("d_v", d_v)
        self.W_q = nn.Linear(d_x, d_k, bias=False)
        self.W_k = nn.Linear(d_y, d_k, bias=False)
        self.W_v = nn.Linear(d_y, d_v, bias=False)

    def forward(
        self,
        x: Float[Tensor, "*batch m d_x"],
        y: Float[Tensor, "*batch n d_y"],
        mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    ) -> Float[Tensor, "*batch m d_v"]:
        """What each token of x takes away from y, ``(..., m, d_v)``.

        x: ``(..., m, d_x)``, who asks. y: ``(..., n, d_y)``, who is asked. Batch axes broadcast.
        mask: boolean, True where attention is allowed, broadcasts to ``(..., m, n)``. A token with
        no allowed key gets 0. Raises ``ValueError`` where x, y or the mask do not fit.
        """
        self.require_inputs(x, y)
        query, key, value = self.W_q(x), self.W_k(y), self.W_v(y)
        return scaled_dot_product_attention(query, key, value, mask)

    def weights(
        self,
        x: Float[Tensor, "*batch m d_x"],
        y: Float[Tensor, "*batch n d_y"],
        mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    ) -> Float[Tensor, "*batch m n"]:
        """The attention map that ``forward`` mixes the values with, ``(..., m, n)``."""
        self.require_inputs(x, y)
        return attention_weights(self.W_q(x), self.W_k(y), mask)

    def require_inputs(self, x: Tensor, y: Tensor) -> None:
        """Raises ``ValueError`` where x or y has other features, dtypes or batch axes."""
        require_features("x", x, self.W_q, "m d_x")
        require_features("y", y, self.W_k, "n d_y")
        require_same_batch(x=x, y=y)


class AttentionPooling(nn.Module):
    """A few learned questions to all elements of a set: ``softmax(Q (X W_k)ᵀ / √d) X W_v``.

    The questions Q are the parameter ``queries``, ``(n_queries, d)``, the same for every set. They
    start at random, so that no two of them ask the same. ``W_k`` and ``W_v`` are ``nn.Linear(d,
    d)`` without bias. The output is one vector for each query, however many elements there are,
    and their order does not change it.

    Source: Lee et al. (2019), section 3.2, "pooling by multihead attention", for one head.
    """

    def __init__(self, d: int, n_queries: int = 1):
        super().__init__()
        d, n_queries = require_count("d", d), require_count("n_queries", n_queries)
        self.queries = nn.Parameter(torch.randn(n_queries, d))
        self.W_k = nn.Linear(d, d, bias=False)
        self.W_v = nn.Linear(d, d, bias=False)

    def forward(
        self,
        x: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "*#batch #q #n"] | None = None,
    ) -> Float[Tensor, "*batch q d"]:
        """The answer to each query, ``(..., n_queries, d)``; the axis stays with one query too.

        x: ``(..., n, d)``. mask: boolean, True where attention is allowed, broadcasts to
        ``(..., n_queries, n)``; an empty set, which has no allowed element, gets 0. Raises
        ``ValueError`` where x or the mask do not fit.
        """
        require_features("x", x, self.W_k, "n d")
        return scaled_dot_product_attention(self.queries, self.W_k(x), self.W_v(x), mask)

    def weights(
        self,
        x: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "*#batch #q #n"] | None = None,
    ) -> Float[Tensor, "*batch q n"]:
        """The share of each element in each answer, ``(..., n_queries, n)``."""
        require_features("x", x, self.W_k, "n d")
        return attention_weights(self.queries, self.W_k(x), mask)
