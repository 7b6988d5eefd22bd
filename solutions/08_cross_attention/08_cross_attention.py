# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercises 8 · Cross-attention
#
# You build the two modules of the chapter: attention whose queries come from another sequence, and
# attention whose queries come from no sequence at all. Fill in the cells marked *your code* and run
# the check below each. It tells you which part of the answer holds, and where one does not, what
# your code did on a small example.
#
# A token is a row. Where a shape is written `(..., n, d)`, the dots stand for any number of batch
# axes, none included. Results keep the floating dtype and the precision of what came in, and
# gradients must be able to flow to every input and every parameter, so stay with torch operations:
# no `.detach()`, no `.numpy()`.
#
# What you built in chapter 5 you may use again. The package has its own version of it, imported
# here; so has PyTorch. All are allowed. Functions leave what they are given as it is.

# %%
import math

import torch
from torch import nn

from attncourse.checks import check, examine
from attncourse.kqv import attention_weights, scaled_dot_product_attention

# %% [markdown]
# ## 1 · `CrossAttention`
#
# <!-- facts: CrossAttention -->
#
# The m tokens of X ask, the n tokens of Y answer:
#
# $$U = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V ,
# \qquad Q = X W_q, \quad K = Y W_k, \quad V = Y W_v .$$
#
# Write `CrossAttention(d_x, d_y, d_k, d_v)`, an `nn.Module` with
#
# - three layers, each an `nn.Linear` without bias: `W_q` maps d_x features to d_k, `W_k` maps d_y
#   features to d_k, `W_v` maps d_y features to d_v;
# - `forward(x, y, mask=None)`, which returns the output alone, one row for each token of x;
# - `weights(x, y, mask=None)`, which returns the attention map that `forward` mixes with.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., m, d_x)` | who asks |
# | `y` | `(..., n, d_y)` | who is asked; its batch axes and those of x broadcast |
# | `mask` | broadcasts to `(..., m, n)` | boolean, `True` where allowed; `None` allows everything |
# | `forward` returns | `(..., m, d_v)` | |
# | `weights` returns | `(..., m, n)` | row i belongs to query i and sums to 1 |
#
# Every query will be allowed at least one key. The check builds your class, puts weights of its own
# into it by these names, and compares what `forward` and `weights` return.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most; a finite number in place of −∞ may be −1e9 or lower.
#
# <!-- hints: CrossAttention -->
#
# 1. Three layers: one takes d_x features, two take d_y. Which of them are applied to y?
# 2. Scores are (..., m, d_k) @ (..., d_k, n). The softmax runs over the n keys.
# 3. Chapter 5's `scaled_dot_product_attention(query, key, value, mask)` does the rest. For
#    `weights`, stop before the values.


# %% nbgrader={"grade_id": "CrossAttention", "solution": true}
class CrossAttention(nn.Module):
    ### BEGIN SOLUTION
    # Chapter 5 asked its attention for one batch, and for none that broadcasts.
    def __init__(self, d_x, d_y, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_x, d_k, bias=False)
        self.W_k = nn.Linear(d_y, d_k, bias=False)
        self.W_v = nn.Linear(d_y, d_v, bias=False)

    def forward(self, x, y, mask=None):
        x, y = in_one_batch(x, y)
        return scaled_dot_product_attention(self.W_q(x), self.W_k(y), self.W_v(y), mask)

    def weights(self, x, y, mask=None):
        x, y = in_one_batch(x, y)
        return attention_weights(self.W_q(x), self.W_k(y), mask)


def in_one_batch(x, y):
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return x.expand(*batch, *x.shape[-2:]), y.expand(*batch, *y.shape[-2:])

    ### END SOLUTION


# %% [markdown]
# A batch of two: three tokens ask five. Expect `torch.Size([2, 3, 6])` and `torch.Size([2, 3, 5])`:

# %%
cross = CrossAttention(d_x=7, d_y=8, d_k=4, d_v=6)
asking, asked = torch.ones(2, 3, 7), torch.ones(2, 5, 8)
cross(asking, asked).shape, cross.weights(asking, asked).shape

# %% nbgrader={"grade_id": "check_CrossAttention", "locked": true}
check("cross_attention.CrossAttention", CrossAttention)

# %% [markdown]
# ## 2 · `AttentionPooling`
#
# <!-- facts: AttentionPooling -->
#
# Now nobody asks but the model itself. The queries are the rows of a learned matrix Q, the same for
# every set, and the n elements of X are asked:
#
# $$U = \mathrm{softmax}\!\left(\frac{Q\,(X W_k)^\top}{\sqrt{d}}\right) X W_v .$$
#
# Write `AttentionPooling(d, n_queries=1)`, an `nn.Module` with
#
# - a parameter `queries`, an `nn.Parameter` of shape `(n_queries, d)`, with random entries at the
#   start; it is not projected;
# - two layers `W_k` and `W_v`, each an `nn.Linear` from d to d features without bias;
# - `forward(x, mask=None)`, which returns one row for each query;
# - `weights(x, mask=None)`, which returns the map that `forward` mixes with.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., n, d)` | one element per row |
# | `mask` | broadcasts to `(..., n_queries, n)` | boolean, `True` where allowed |
# | `forward` returns | `(..., n_queries, d)` | with one query too: `(..., 1, d)` |
# | `weights` returns | `(..., n_queries, n)` | with one query too: `(..., 1, n)` |
#
# So a mask of shape `(n,)` serves all queries, and `(b, 1, n)` tells a batch of sets where each has
# its padding. Every query will be allowed at least one element.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most; a finite number in place of −∞ may be −1e9 or lower.
#
# <!-- hints: AttentionPooling -->
#
# 1. `self.queries = nn.Parameter(torch.randn(n_queries, d))` takes the place of a projected
#    sequence.
# 2. `queries` are (n_queries, d), the keys (..., n, d). `queries @ key.mT` broadcasts to (...,
#    n_queries, n).
# 3. Chapter 5's `scaled_dot_product_attention(query, key, value, mask)` takes it from there. For
#    `weights`, stop before the values.


# %% nbgrader={"grade_id": "AttentionPooling", "solution": true}
class AttentionPooling(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d, n_queries=1):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(n_queries, d))
        self.W_k = nn.Linear(d, d, bias=False)
        self.W_v = nn.Linear(d, d, bias=False)

    def forward(self, x, mask=None):
        return self.weights(x, mask) @ self.W_v(x)

    def weights(self, x, mask=None):
        scores = self.queries @ self.W_k(x).mT / math.sqrt(x.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)

    ### END SOLUTION


# %% [markdown]
# A batch of two sets of seven elements. Expect `torch.Size([2, 1, 5])` and `torch.Size([2, 3, 5])`:

# %%
sets = torch.ones(2, 7, 5)
AttentionPooling(d=5)(sets).shape, AttentionPooling(d=5, n_queries=3)(sets).shape

# %% nbgrader={"grade_id": "check_AttentionPooling", "locked": true}
check("cross_attention.AttentionPooling", AttentionPooling)

# %% [markdown] nbgrader={"grade_id": "explain_sizes", "grade": true, "solution": true, "points": 4}
# ## 3 · Two sequences, one output
#
# <!-- facts: explain_sizes -->
#
# In cross-attention $X$ has m rows and $Y$ has n. Explain in three sentences which of them
# decides how many rows the output has and why, and what becomes of the output when the rows of
# $X$, and when the rows of $Y$, change places.
#
# | points | for |
# | --: | --- |
# | 1 | how many rows, and from which sequence |
# | 1 | where keys and values come from, and what a row is made of |
# | 1 | rows of $X$ change places |
# | 1 | rows of $Y$ change places, and why |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# The queries come from $X$, and each of the m queries gets one row, a sum over the n values that
# are made from $Y$ with weights from its keys. When rows of $X$ change places, the rows of the
# output change places with them. When rows of $Y$ do, each value keeps its key and its weight, so
# every sum stays what it was.
#
# For the points, in this order: (1) the output has m rows, one for each query, and queries are
# made from X; (1) keys and values are made from Y, and each output row is a sum over all n of
# them; (1) rows of X change places: rows of the output change places in the same way; (1) rows of
# Y change places: nothing changes, because keys and values move together and a sum has no order.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_CrossAttention", "grade": true, "locked": true}
examine("cross_attention.CrossAttention", CrossAttention).earned

# %% nbgrader={"grade_id": "hidden_CrossAttention", "grade": true, "locked": true, "points": 1}
# One more test of CrossAttention.
### BEGIN HIDDEN TESTS
cross, x, y = CrossAttention(3, 5, 4, 2), torch.randn(6, 3), torch.randn(7, 5)
W_q, W_k, W_v = torch.randn(4, 3), torch.randn(4, 5), torch.randn(2, 5)
map_ = (x @ W_q.T @ W_k @ y.T / 2).softmax(-1)  # by the matrix M = W_q' W_k of all pairs
mixed = map_ @ y @ W_v.T  # mixing and projecting values can change places
state = {"W_q.weight": W_q, "W_k.weight": W_k, "W_v.weight": W_v}
cross.load_state_dict(state, strict=False)  # a buffer of your own is fine
weights, out = cross.weights(x, y), cross(x, y)
assert weights.shape == (6, 7), "6 tokens of x and 7 of y should give weights of shape (6, 7)"
assert torch.allclose(weights, map_, atol=1e-4), (
    "weights(x, y) should be softmax(QKᵀ/√d_k), with Q = W_q(x) and K = W_k(y)"
)
assert out.shape == (6, 2), "6 tokens of x and d_v = 2 should give shape (6, 2)"
assert torch.allclose(out, mixed, atol=1e-4), (
    "forward should mix W_v(y) with the map that weights(x, y) returns"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_AttentionPooling", "grade": true, "locked": true}
examine("cross_attention.AttentionPooling", AttentionPooling).earned

# %% nbgrader={"grade_id": "hidden_AttentionPooling", "grade": true, "locked": true, "points": 1}
# One more test of AttentionPooling.
### BEGIN HIDDEN TESTS
pool, x, padding = AttentionPooling(4, n_queries=2), torch.randn(3, 4), torch.randn(2, 4)
queries, W_k, W_v = torch.randn(2, 4), torch.randn(4, 4), torch.randn(4, 4)
map_ = (queries @ W_k @ x.T / 2).softmax(-1)  # (2, 3)
expected = map_ @ x @ W_v.T
pool.load_state_dict({"queries": queries, "W_k.weight": W_k, "W_v.weight": W_v}, strict=False)
padded, there = torch.cat([x, padding]), torch.tensor([True, True, True, False, False])
weights, out, masked = pool.weights(x), pool(x), pool(padded, there)
assert weights.shape == (2, 3), "2 queries and 3 elements should give weights of shape (2, 3)"
assert torch.allclose(weights, map_, atol=1e-4), (
    "weights(x) should be softmax(Q Kᵀ/√d): the queries as they are, K = W_k(x)"
)
assert out.shape == masked.shape == (2, 4), (
    "2 queries should give shape (2, d), with padding and a mask too"
)
assert torch.allclose(out, expected, atol=1e-4), (
    "forward should mix W_v(x) with the map that weights(x) returns"
)
assert torch.allclose(masked, expected, atol=1e-4), (
    "padding that the mask forbids should change nothing"
)
### END HIDDEN TESTS
