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
# # Exercises 5 · Queries, keys and values
#
# You build one attention head: first the two products it is made of, then attention itself, then
# the module that holds its weights. Fill in the cells marked *your code* and run the check below
# each. It tells you which part of the answer holds, and where one does not, what your code did on
# a small example.
#
# From this chapter on arrays are PyTorch tensors. A token is a row. Where a shape is written
# `(..., n, d)`, the dots stand for any number of batch axes, none included. Results keep the
# floating dtype and the precision of what came in, and gradients must be able to flow through
# everything, so stay with torch operations: no `.detach()`, no `.numpy()`. Functions leave what
# they are given as it is.

# %%
import math

import torch
from torch import nn

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `project`
#
# <!-- facts: project -->
#
# A view of a token is a list of new features, each a weighted sum of its old ones. Feature b of
# the view of token i is
#
# $$y_{ib} = \sum_a x_{ia}\, w_{ab} .$$
#
# Write `project(x, weight)`, which does this for every token.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., n, d_in)` | one token per row |
# | `weight` | `(d_in, d_out)` | one column per new feature |
# | returns | `(..., n, d_out)` | |
#
# Mind the order of the axes of `weight`: `nn.Linear` stores its own the other way round.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: project -->
#
# 1. One token, one new feature: output[i, b] is the sum over the features a of x[i, a] weight[a,
#    b].
# 2. The sum runs over the last axis of x and the first of weight: a matrix product.
# 3. `@` takes any leading axes of x along.


# %% nbgrader={"grade_id": "project", "solution": true}
def project(x, weight):
    ### BEGIN SOLUTION
    return x @ weight
    ### END SOLUTION


# %% [markdown]
# The token *am* of the page, and the matrix of its query. Expect `tensor([[2., 1.]])`:

# %%
project(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))

# %% nbgrader={"grade_id": "check_project", "locked": true}
check("kqv.project", project)

# %% [markdown]
# ## 2 · `attention_scores`
#
# <!-- facts: attention_scores -->
#
# A score says how well what one token looks for fits what can be found at another: the dot product
# of the query of the one and the key of the other. Write `attention_scores(query, key)`, which
# returns the scores of all pairs, the matrix $QK^\top$.
#
# | | shape | |
# | --- | --- | --- |
# | `query` | `(..., m, d_k)` | one query per row |
# | `key` | `(..., n, d_k)` | one key per row |
# | returns | `(..., m, n)` | row i holds the scores of query i |
#
# Batch axes broadcast. These are the bare products; the division by √d_k is a step of its own and
# comes in the next exercise.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: attention_scores -->
#
# 1. One score is a dot product: S[i, j] is the sum over the features a of query[i, a] key[j, a].
# 2. A matrix product sums over the *first* axis of its right factor. Which axis of key has to come
#    first?
# 3. `.mT` swaps the last two axes and leaves any batch axes where they are.


# %% nbgrader={"grade_id": "attention_scores", "solution": true}
def attention_scores(query, key):
    ### BEGIN SOLUTION
    return query @ key.mT
    ### END SOLUTION


# %% [markdown]
# One query and three keys. Expect `tensor([[2., 5., 4.]])`:

# %%
attention_scores(torch.tensor([[2.0, 1.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]))

# %% nbgrader={"grade_id": "check_attention_scores", "locked": true}
check("kqv.attention_scores", attention_scores)

# %% [markdown]
# ## 3 · `scaled_dot_product_attention`
#
# <!-- facts: scaled_dot_product_attention -->
#
# Now the whole formula:
#
# $$U = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V .$$
#
# Write `scaled_dot_product_attention(query, key, value, mask=None, *, scale=None)`.
#
# | | shape | |
# | --- | --- | --- |
# | `query` | `(..., m, d_k)` | |
# | `key` | `(..., n, d_k)` | |
# | `value` | `(..., n, d_v)` | one for each key |
# | `mask` | broadcasts to `(..., m, n)` | boolean, `True` where allowed; `None` allows everything |
# | `scale` | a number | takes the place of 1/√d_k if it is given |
# | returns | `(..., m, d_v)` | the output alone, one row for each query |
#
# The softmax runs over the keys. Where the mask is `False` the weight is 0, and the weights that
# are left sum to 1. Every query will be allowed at least one key.
#
# PyTorch has a finished function for this. Here you build it, so two of its functions may not be
# called: `scaled_dot_product_attention` of `torch.nn.functional`, and
# `multi_head_attention_forward`, which stands behind `nn.MultiheadAttention`. The check notices.
# Everything else is allowed, `torch.softmax` included.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most; a finite number in place of −∞ may be −1e9 or lower; a masked score may be far above the
# allowed ones of its row.
#
# <!-- hints: scaled_dot_product_attention -->
#
# 1. Four steps, each a line: scores, scale, mask, softmax. Then the weights times the values.
# 2. `scores.masked_fill(~mask, -torch.inf)` puts −∞ where the mask is False; exp(−∞) is 0.
# 3. The softmax runs over the keys, which is the last axis of (..., m, n).


# %% nbgrader={"grade_id": "scaled_dot_product_attention", "solution": true}
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    ### BEGIN SOLUTION
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    scores = attention_scores(query, key) * scale  # (..., m, n)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value
    ### END SOLUTION


# %% [markdown]
# The query of *I* from the page. Expect `tensor([[3.4320, 2.8719]])`:

# %%
scaled_dot_product_attention(
    torch.tensor([[0.0, 1.0]]),
    torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]),
    torch.tensor([[4.0, 0.0], [2.0, 2.0], [4.0, 4.0]]),
)

# %% nbgrader={"grade_id": "check_scaled_dot_product_attention", "locked": true}
check("kqv.scaled_dot_product_attention", scaled_dot_product_attention)

# %% [markdown]
# ## 4 · `AttentionHead`
#
# <!-- facts: AttentionHead -->
#
# The three matrices have to live somewhere if they are to be learned. Write
# `AttentionHead(d_model, d_k, d_v=None, bias=False)`, an `nn.Module` with
#
# - three layers `W_q`, `W_k` and `W_v`, each an `nn.Linear`: the first two map d_model features to
#   d_k, the third maps them to d_v, which is d_k unless it is given; with `bias=True` each of them
#   has a bias, otherwise none has;
# - `forward(x, mask=None)`: the tokens `x`, `(..., n, d_model)`, are projected three times, and
#   attention mixes the values; it returns the output alone, `(..., n, d_v)`; `mask` is as in
#   exercise 3;
# - `weights(x, mask=None)`: the attention map `(..., n, n)` that `forward` mixes with.
#
# The check builds your class, puts weights of its own into it by these names, and compares what
# `forward` and `weights` return.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most; a finite number in place of −∞ may be −1e9 or lower.
#
# <!-- hints: AttentionHead -->
#
# 1. `__init__` begins with `super().__init__()` and makes three layers; `forward` uses them.
# 2. `nn.Linear(d_model, d_k, bias=bias)` maps the last axis and takes any batch along.
# 3. Your `scaled_dot_product_attention` does the rest. For `weights`, stop before the values.


# %% nbgrader={"grade_id": "AttentionHead", "solution": true}
class AttentionHead(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=bias)
        self.W_k = nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_k if d_v is None else d_v, bias=bias)

    def forward(self, x, mask=None):
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)

    def weights(self, x, mask=None):
        query, key = self.W_q(x), self.W_k(x)
        scores = attention_scores(query, key) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)

    ### END SOLUTION


# %% [markdown]
# Expect `torch.Size([2, 7, 3])` and `torch.Size([2, 7, 7])`:

# %%
head = AttentionHead(d_model=5, d_k=4, d_v=3)
sequences = torch.ones(2, 7, 5)
head(sequences).shape, head.weights(sequences).shape

# %% nbgrader={"grade_id": "check_AttentionHead", "locked": true}
check("kqv.AttentionHead", AttentionHead)

# %% [markdown] nbgrader={"grade_id": "explain_views", "grade": true, "solution": true, "points": 4}
# ## 5 · One view for both?
#
# <!-- facts: explain_views -->
#
# A friend wants to save a matrix and uses one view for queries and keys: $W_q = W_k$. Explain in
# three sentences what such a head cannot express, on an example, and why a token hands over a
# third view, its value.
#
# | points | for |
# | --: | --- |
# | 2 | what one view forces on the scores of two tokens |
# | 1 | an example that needs more |
# | 1 | what the value is for |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# With one view the score of i for j is $q_i \cdot q_j$, which is also the score of j for i. A
# pronoun could not score its noun high without the noun scoring the pronoun as high. The value
# is a view of its own so that a token may be found by some features and hand over others.
#
# For the points, in this order: (2) with one view, token i scores j exactly as high as j scores
# i; (1) a relation that goes one way, such as a
# pronoun that looks for its noun; (1) the value keeps what is handed over apart from what is
# compared.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_project", "grade": true, "locked": true}
examine("kqv.project", project).earned

# %% nbgrader={"grade_id": "hidden_project", "grade": true, "locked": true, "points": 1}
# One more test of project.
### BEGIN HIDDEN TESTS
x, weight = torch.randn(2, 7, 5), torch.randn(5, 3)
expected = (x[..., :, None] * weight).sum(-2)  # feature a times w_ab, added up over a
out = project(x, weight)
assert out.shape == (2, 7, 3), (
    "x of shape (2, 7, 5) and a weight of shape (5, 3) should give shape (2, 7, 3)"
)
assert torch.allclose(out, expected, atol=1e-5), (
    "feature b of a token should be the sum over a of x[a] · weight[a, b]"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_attention_scores", "grade": true, "locked": true}
examine("kqv.attention_scores", attention_scores).earned

# %% nbgrader={"grade_id": "hidden_attention_scores", "grade": true, "locked": true, "points": 1}
# One more test of attention_scores.
### BEGIN HIDDEN TESTS
query, key = torch.randn(3, 5, 4), torch.randn(3, 7, 4)
squares = (query[:, :, None] - key[:, None]).square().sum(-1)  # |q - k|^2 = |q|^2 + |k|^2 - 2 q.k
lengths = query.square().sum(-1)[:, :, None] + key.square().sum(-1)[:, None]
expected = (lengths - squares) / 2
scores = attention_scores(query, key)
assert scores.shape == (3, 5, 7), "3 times 5 queries and 7 keys should give shape (3, 5, 7)"
assert torch.allclose(scores, expected, atol=1e-4), (
    "a score should be the plain dot product of its query and its key"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_scaled_dot_product_attention", "grade": true, "locked": true}
examine("kqv.scaled_dot_product_attention", scaled_dot_product_attention).earned

# %% nbgrader={"grade_id": "hidden_scaled_dot_product_attention", "grade": true, "locked": true, "points": 1}
# One more test of scaled_dot_product_attention.
### BEGIN HIDDEN TESTS
query, key, value = torch.randn(2, 5, 4), torch.randn(2, 7, 4), torch.randn(2, 7, 3)
mask = torch.rand(5, 7) < 0.5
mask[:, 3] = True
products = (query[:, :, None] * key[:, None]).sum(-1)  # (2, 5, 7)
plain, narrow, masked = (products / 2).exp(), (0.3 * products).exp(), mask * (products / 2).exp()
plain, narrow, masked = (
    (odds / odds.sum(-1, keepdim=True))[..., None].mul(value[:, None]).sum(-2)
    for odds in (plain, narrow, masked)
)
out = scaled_dot_product_attention(query, key, value)
assert out.shape == (2, 5, 3), (
    "5 queries and values of 3 features should give a row of 3 for each query"
)
assert torch.allclose(out, plain, atol=1e-5), (
    "without mask or scale it should be softmax(QKᵀ/√d_k) V, here with d_k = 4"
)
out = scaled_dot_product_attention(query, key, value, mask)
assert out.shape == (2, 5, 3), "with a mask there should still be a row of 3 for each query"
assert torch.allclose(out, masked, atol=1e-5), (
    "where the mask is False the weight should be 0, and the other weights should sum to 1"
)
out = scaled_dot_product_attention(query, key, value, scale=0.3)
assert out.shape == (2, 5, 3), "with scale=0.3 there should still be a row of 3 for each query"
assert torch.allclose(out, narrow, atol=1e-5), (
    "with scale=0.3 it should be softmax(0.3 QKᵀ) V: the scale takes the place of 1/√d_k"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_AttentionHead", "grade": true, "locked": true}
examine("kqv.AttentionHead", AttentionHead).earned

# %% nbgrader={"grade_id": "hidden_AttentionHead", "grade": true, "locked": true, "points": 1}
# One more test of AttentionHead.
### BEGIN HIDDEN TESTS
head, x = AttentionHead(5, 4, 3), torch.randn(7, 5)
W_q, W_k, W_v = torch.randn(4, 5), torch.randn(4, 5), torch.randn(3, 5)
map_ = (x @ W_q.T @ W_k @ x.T / 2).softmax(-1)  # by the matrix M = W_q' W_k of all pairs
mixed = map_ @ x @ W_v.T  # mixing and projecting values can change places
state = {"W_q.weight": W_q, "W_k.weight": W_k, "W_v.weight": W_v}
head.load_state_dict(state, strict=False)  # a buffer of your own is fine
weights, out = head.weights(x), head(x)
assert weights.shape == (7, 7), "weights(x) of 7 tokens should have shape (7, 7)"
assert torch.allclose(weights, map_, atol=1e-4), (
    "weights(x) should be softmax(QKᵀ/√d_k), with Q = W_q(x) and K = W_k(x)"
)
assert out.shape == (7, 3), "d_v = 3 and 7 tokens should give shape (7, 3)"
assert torch.allclose(out, mixed, atol=1e-4), (
    "forward should mix W_v(x) with the map that weights(x) returns"
)
### END HIDDEN TESTS
