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

from attncourse.kqv import attention_weights, scaled_dot_product_attention
from attncourse.support.shapes import Count, shaped


class CrossAttention(nn.Module):
    """Attention of one sequence to another: ``softmax(X W_q (Y W_k)ᵀ / √d_k) Y W_v``.

    ``W_q`` maps the d_x features of those who ask to d_k. ``W_k`` and ``W_v`` map the d_y features
    of those who are asked to d_k and d_v. They are ``nn.Linear`` without bias, whose ``weight`` is
    stored as (out, in) and applied transposed. With Y = X this is self-attention.

    Source: Vaswani et al. (2017), section 3.2.3, "encoder-decoder attention", for one head.
    """

    @shaped
    def __init__(self, d_x: Count, d_y: Count, d_k: Count, d_v: Count):
        """Make the layers W_q, from d_x to d_k, W_k, from d_y to d_k, and W_v, from d_y to d_v."""
        super().__init__()
        self.d_x, self.d_y = d_x, d_y
        self.W_q = nn.Linear(d_x, d_k, bias=False)
        self.W_k = nn.Linear(d_y, d_k, bias=False)
        self.W_v = nn.Linear(d_y, d_v, bias=False)

    @shaped
    def forward(
        self,
        x: Float[Tensor, "*#batch m d_x"],
        y: Float[Tensor, "*#batch n d_y"],
        mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    ) -> Float[Tensor, "*batch m d_v"]:
        """Return for each token of x the mix of values of y, ``(..., m, d_v)``.

        x: ``(..., m, d_x)``, who asks. y: ``(..., n, d_y)``, who is asked. Batch axes broadcast.
        mask: boolean, True where attention is allowed, broadcasts to ``(..., m, n)``. A token with
        no allowed key gets 0. Raises ``ValueError`` where x, y or the mask do not fit.
        """
        query, key, value = self.W_q(x), self.W_k(y), self.W_v(y)
        return scaled_dot_product_attention(query, key, value, mask)

    @shaped
    def weights(
        self,
        x: Float[Tensor, "*#batch m d_x"],
        y: Float[Tensor, "*#batch n d_y"],
        mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    ) -> Float[Tensor, "*batch m n"]:
        """The attention map that ``forward`` mixes the values with, ``(..., m, n)``."""
        return attention_weights(self.W_q(x), self.W_k(y), mask)


class AttentionPooling(nn.Module):
    """A few learned questions to all elements of a set: ``softmax(Q (X W_k)ᵀ / √d) X W_v``.

    The questions Q are the parameter ``queries``, ``(n_queries, d)``, the same for every set. They
    start at random, so that no two of them ask the same. ``W_k`` and ``W_v`` are ``nn.Linear(d,
    d)`` without bias. The output is one vector for each query, however many elements there are,
    and their order does not change it.

    Source: the attention of Lee et al. (2019), section 3.2, "pooling by multihead attention", for
    one head, without its projection of the queries, residual connections and feed-forward layer.
    """

    @shaped
    def __init__(self, d: Count, n_queries: Count = 1):
        """Make n_queries learned queries, ``(n_queries, d)``, and the layers W_k and W_v."""
        super().__init__()
        self.d = d
        self.queries = nn.Parameter(torch.randn(n_queries, d))
        self.W_k = nn.Linear(d, d, bias=False)
        self.W_v = nn.Linear(d, d, bias=False)

    @shaped
    def forward(
        self,
        x: Float[Tensor, "*#batch n d"],
        mask: Bool[Tensor, "*#batch #q #n"] | None = None,
    ) -> Float[Tensor, "*batch q d"]:
        """The answer to each query, ``(..., n_queries, d)``; the axis stays with one query too.

        x: ``(..., n, d)``. mask: boolean, True where attention is allowed, broadcasts to
        ``(..., n_queries, n)``; an empty set, which has no allowed element, gets 0. Raises
        ``ValueError`` where x or the mask do not fit.
        """
        query, key, value = self.queries, self.W_k(x), self.W_v(x)
        return scaled_dot_product_attention(query, key, value, mask)

    @shaped
    def weights(
        self,
        x: Float[Tensor, "*#batch n d"],
        mask: Bool[Tensor, "*#batch #q #n"] | None = None,
    ) -> Float[Tensor, "*batch q n"]:
        """The weight of each element in each answer, ``(..., n_queries, n)``."""
        return attention_weights(self.queries, self.W_k(x), mask)
