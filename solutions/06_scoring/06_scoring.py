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
# # Exercises 6 · Scoring
#
# You write three scores, ways to compare a query with a key, and the step that turns any of them
# into attention. Fill in the cells marked *your code* and run the check below each. It tells you
# which part of the answer holds, and where one does not, what your code did on a small example.
#
# A token is a row. Where a shape is written `(..., n, d)`, the dots stand for any number of batch
# axes, none included. All scores map queries `(..., m, d_q)` and keys `(..., n, d_k)` to
# `(..., m, n)`, and row i belongs to query i. Results keep the floating dtype and the precision of
# what came in, and gradients must be able to flow through everything, so stay with torch
# operations: no `.detach()`, no `.numpy()`. Functions leave what they are given as it is.

# %%
import math

import torch
from torch import nn

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `dot_score`
#
# <!-- facts: dot_score -->
#
# The shortest comparison multiplies feature by feature and adds up:
#
# $$S_{ij} = \sum_a q_{ia}\, k_{ja} .$$
#
# Write `dot_score(query, key)`, which does this for every query and every key.
#
# | | shape | |
# | --- | --- | --- |
# | `query` | `(..., m, d)` | one query per row |
# | `key` | `(..., n, d)` | one key per row, as wide as a query |
# | returns | `(..., m, n)` | row i holds the scores of query i |
#
# Batch axes broadcast. There is no scaling and no softmax here.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: dot_score -->
#
# 1. One score: S[i, j] is the sum over the features a of query[i, a] key[j, a].
# 2. As a product of matrices, (..., m, d) times (..., d, n). Which axes of key change places?


# %% nbgrader={"grade_id": "dot_score", "solution": true}
def dot_score(query, key):
    ### BEGIN SOLUTION
    return query @ key.mT
    ### END SOLUTION


# %% [markdown]
# The query of *I* and the keys of *I am hungry*. Expect `tensor([[0., 1., 2.]])`:

# %%
dot_score(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]))

# %% nbgrader={"grade_id": "check_dot_score", "locked": true}
check("scoring.dot_score", dot_score)

# %% [markdown]
# ## 2 · `BilinearScore`
#
# <!-- facts: BilinearScore -->
#
# A matrix between the two says which feature of the query goes with which feature of the key:
#
# $$S_{ij} = q_i\, W\, k_j^\top .$$
#
# Write `BilinearScore(d_q, d_k)`, an `nn.Module` with
#
# - one parameter `W`, an `nn.Parameter` of shape `(d_q, d_k)`, filled with random numbers of your
#   choice, and no other parameter;
# - `forward(query, key)`: queries `(..., m, d_q)` and keys `(..., n, d_k)`, where d_q and d_k may
#   differ, give scores `(..., m, n)`.
#
# The check builds your class, puts a `W` of its own into it by this name, and compares what
# `forward` returns.
#
# PyTorch has a finished bilinear form, `torch.nn.functional.bilinear`, which stands behind
# `nn.Bilinear` too. Here you build it, so it may not be called. The check notices.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: BilinearScore -->
#
# 1. `__init__` begins with `super().__init__()` and makes one `nn.Parameter` of shape (d_q, d_k).
# 2. Follow the shapes: (..., m, d_q), (d_q, d_k) and (..., d_k, n) make (..., m, n).


# %% nbgrader={"grade_id": "BilinearScore", "solution": true}
class BilinearScore(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_q, d_k):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_q, d_k) / math.sqrt(d_q * d_k))

    def forward(self, query, key):
        return query @ self.W @ key.mT

    ### END SOLUTION


# %% [markdown]
# Keys with three features. Expect `torch.Size([2, 5, 7])`:

# %%
BilinearScore(d_q=2, d_k=3)(torch.ones(2, 5, 2), torch.ones(2, 7, 3)).shape

# %% nbgrader={"grade_id": "check_BilinearScore", "locked": true}
check("scoring.BilinearScore", BilinearScore)

# %% [markdown]
# ## 3 · `AdditiveScore`
#
# <!-- facts: AdditiveScore -->
#
# A network with one hidden layer of h units compares the two:
#
# $$S_{ij} = \tanh\!\big(q_i W_q + k_j W_k\big)\, w .$$
#
# Write `AdditiveScore(d_q, d_k, d_hidden)`, an `nn.Module` with
#
# - three layers, each an `nn.Linear` without a bias: `W_q` maps d_q features to d_hidden, `W_k` maps
#   d_k features to d_hidden, `w` maps d_hidden features to 1;
# - `forward(query, key)`: queries `(..., m, d_q)` and keys `(..., n, d_k)` give scores
#   `(..., m, n)` in their dtype. Every query meets every key, and the axis of length 1 that `w`
#   makes is gone.
#
# All sizes may differ, and any of them may be 1. The check builds your class, puts weights of its
# own into it by these names, and compares what `forward` returns.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: AdditiveScore -->
#
# 1. `__init__` begins with `super().__init__()` and makes three layers without a bias.
# 2. For one query and one key: `self.w(torch.tanh(self.W_q(q) + self.W_k(k)))`.
# 3. For all pairs, (..., m, 1, d_hidden) + (..., 1, n, d_hidden) is (..., m, n, d_hidden).


# %% nbgrader={"grade_id": "AdditiveScore", "solution": true}
class AdditiveScore(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.W_q = nn.Linear(d_q, d_hidden, bias=False)
        self.W_k = nn.Linear(d_k, d_hidden, bias=False)
        self.w = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, query, key):
        rows = self.W_q(query).unsqueeze(-2)  # (..., m, 1, d_hidden)
        columns = self.W_k(key).unsqueeze(-3)  # (..., 1, n, d_hidden)
        return self.w(torch.tanh(rows + columns)).squeeze(-1)

    ### END SOLUTION


# %% [markdown]
# Expect `torch.Size([2, 5, 7])`, and `torch.Size([1, 7])` for a single query:

# %%
score = AdditiveScore(d_q=2, d_k=3, d_hidden=4)
(
    score(torch.ones(2, 5, 2), torch.ones(2, 7, 3)).shape,
    score(torch.ones(1, 2), torch.ones(7, 3)).shape,
)

# %% nbgrader={"grade_id": "check_AdditiveScore", "locked": true}
check("scoring.AdditiveScore", AdditiveScore)

# %% [markdown]
# ## 4 · `attend`
#
# <!-- facts: attend -->
#
# Whatever made the scores, the rest is the same: weights by a softmax over the keys, and a blend of
# the values,
#
# $$U_i = \sum_j A_{ij}\, v_j, \qquad A_{ij} = \frac{e^{S_{ij}}}{\sum_l e^{S_{il}}} .$$
#
# Write `attend(scores, values, mask=None)`.
#
# | | shape | |
# | --- | --- | --- |
# | `scores` | `(..., m, n)` | any real numbers, large ones too; they are not scaled here |
# | `values` | `(..., n, d_v)` | one for each key |
# | `mask` | broadcasts to `(..., m, n)` | boolean, `True` where allowed; `None` allows everything |
# | returns | `(..., m, d_v)` | the output alone, one row for each query |
#
# Batch axes broadcast. Where the mask is `False` the weight is 0, and the weights that are left sum
# to 1. Every query will be allowed at least one key.
#
# Two finished functions of PyTorch may not be called: `scaled_dot_product_attention`, and
# `multi_head_attention_forward`, which stands behind `nn.MultiheadAttention`. The check notices.
# Everything else is allowed, `torch.softmax` included.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most; a finite number in place of −∞ may be −1e9 or lower.
#
# <!-- hints: attend -->
#
# 1. Three steps: the mask, the softmax over the keys, the weights times the values.
# 2. `scores.masked_fill(~mask, -torch.inf)` puts −∞ where the mask is False; exp(−∞) is 0.


# %% nbgrader={"grade_id": "attend", "solution": true}
def attend(scores, values, mask=None):
    ### BEGIN SOLUTION
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ values
    ### END SOLUTION


# %% [markdown]
# Scores whose exponentials are 1, 1 and 2, so that the weights are ¼, ¼ and ½. Expect
# `tensor([[9., 9.]])`:

# %%
attend(
    torch.tensor([[0.0, 0.0, math.log(2)]]),
    torch.tensor([[12.0, 0.0], [0.0, 12.0], [12.0, 12.0]]),
)

# %% nbgrader={"grade_id": "check_attend", "locked": true}
check("scoring.attend", attend)

# %% [markdown] nbgrader={"grade_id": "explain_hull", "grade": true, "solution": true, "points": 4}
# ## 5 · A key between two others
#
# <!-- facts: explain_hull -->
#
# Of three keys the third is the mean of the other two. Explain in three sentences why under a dot
# product no query gives it a higher score than both others, why a learned matrix between query and
# key does not help, and why an additive score can.
#
# | points | for |
# | --: | --- |
# | 2 | how the third score follows from the other two, and why that forbids it |
# | 1 | the matrix in between |
# | 1 | what the additive score has that the others lack |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# A dot product is linear in the key, so the score of the mean is the mean of the two scores and
# never above both. A matrix $W$ in between turns the query into another one, $qW$, and all
# stays linear in the key. An additive score sends the key through a tanh, and units that rise on
# one side and fall on the other can add up to a peak in the middle.
#
# For the points, in this order: (2) the score is linear in the key, so the third score is the
# mean of the other two, and no mean is above both; (1) with a matrix in between the score is
# still linear in the key: $qW$ is only another query; (1) the tanh of an additive score
# bends: it is not linear in the key and can be highest in the middle.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_dot_score", "grade": true, "locked": true}
examine("scoring.dot_score", dot_score).earned

# %% nbgrader={"grade_id": "hidden_dot_score", "grade": true, "locked": true, "points": 1}
# One more test of dot_score.
### BEGIN HIDDEN TESTS
query, key = torch.randn(3, 5, 4), torch.randn(3, 7, 4)
expected = sum(query[:, :, None, a] * key[:, None, :, a] for a in range(4))
scores = dot_score(query, key)
assert scores.shape == (3, 5, 7), "3 times 5 queries and 7 keys should give shape (3, 5, 7)"
assert torch.allclose(scores, expected, atol=1e-5), (
    "a score should be the plain dot product of its query and its key"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_BilinearScore", "grade": true, "locked": true}
examine("scoring.BilinearScore", BilinearScore).earned

# %% nbgrader={"grade_id": "hidden_BilinearScore", "grade": true, "locked": true, "points": 1}
# One more test of BilinearScore.
### BEGIN HIDDEN TESTS
score, W = BilinearScore(3, 5), torch.randn(3, 5)
query, key = torch.randn(2, 7, 3), torch.randn(2, 4, 5)
expected = sum(
    W[a, b] * query[:, :, None, a] * key[:, None, :, b] for a in range(3) for b in range(5)
)
score.load_state_dict({"W": W}, strict=False)  # a buffer of your own is fine
scores = score(query, key)
assert scores.shape == (2, 7, 4), "2 times 7 queries and 4 keys should give shape (2, 7, 4)"
assert torch.allclose(scores, expected, atol=1e-4), (
    "a score should be q W kᵀ, the sum over a and b of q[a] · W[a, b] · k[b]"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_AdditiveScore", "grade": true, "locked": true}
examine("scoring.AdditiveScore", AdditiveScore).earned

# %% nbgrader={"grade_id": "hidden_AdditiveScore", "grade": true, "locked": true, "points": 1}
# One more test of AdditiveScore.
### BEGIN HIDDEN TESTS
score, query, key = AdditiveScore(2, 3, 4), torch.randn(6, 2), torch.randn(7, 3)
W_q, W_k, w = torch.randn(4, 2), torch.randn(4, 3), torch.randn(1, 4)
units = [torch.tanh((query @ W_q[u])[:, None] + key @ W_k[u]) for u in range(4)]
expected = sum(w[0, u] * units[u] for u in range(4))
state = {"W_q.weight": W_q, "W_k.weight": W_k, "w.weight": w}
score.load_state_dict(state, strict=False)  # a buffer of your own is fine
scores = score(query, key)
assert scores.shape == (6, 7), "6 queries and 7 keys should give shape (6, 7)"
assert torch.allclose(scores, expected, atol=1e-5), (
    "a score should be w times tanh(W_q(q) + W_k(k)), added up over the hidden units"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_attend", "grade": true, "locked": true}
examine("scoring.attend", attend).earned

# %% nbgrader={"grade_id": "hidden_attend", "grade": true, "locked": true, "points": 1}
# One more test of attend.
### BEGIN HIDDEN TESTS
scores, values = torch.randn(5, 7), torch.randn(7, 3)
some = torch.tensor([True, False, True, True, False, True, False])
odds = scores.exp()
everyone = (odds[..., None] * values).sum(1) / odds.sum(1, keepdim=True)
odds = odds[:, some]
few = (odds[..., None] * values[some]).sum(1) / odds.sum(1, keepdim=True)
out = attend(scores, values)
assert out.shape == (5, 3), "5 queries and values of 3 numbers should give shape (5, 3)"
assert torch.allclose(out, everyone, atol=1e-5), (
    "the weights should be exp(score) over the sum of its row"
)
out = attend(scores + 100, values)
assert torch.allclose(out, everyone, atol=1e-4), (
    "adding 100 to all scores should change nothing, nor overflow"
)
out = attend(scores, values, some)
assert out.shape == (5, 3), (
    "with a mask of shape (7,) there should still be a row of 3 for each query"
)
assert torch.allclose(out, few, atol=1e-5), (
    "keys that the mask forbids should have weight 0, and the other weights should sum to 1"
)
### END HIDDEN TESTS
