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
# # Exercises 17 · Long sequences: what attention costs, and what can be done
#
# Attention over n tokens makes n · n scores. You write the ways around them: a softmax in pieces,
# attention tile by tile with the same result, a window, sums in place of scores, and the size of a
# cache. Fill in the cells marked *your code* and run the check below each.
#
# Where a shape is written `(..., n, d)`, the dots stand for any number of batch axes, none
# included. Results keep the floating dtype and the precision of what came in. Gradients must be
# able to flow through the three kinds of attention: no `.detach()`, no `.numpy()`. Some criteria
# count numbers: there no tensor that your code makes on its way, masks and views included, may hold
# as many as the text says. Functions leave what they are given as it is.

# %%
import math

import torch
from torch.nn import functional as F

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `online_softmax`
#
# <!-- facts: online_softmax -->
#
# A softmax needs two numbers of each row: its largest score, and the normaliser, the sum of
# exp(score − largest). Write `online_softmax(blocks)`, which finds both while the scores come by in
# blocks of keys, each once.
#
# | | shape | |
# | --- | --- | --- |
# | `blocks` | an iterable of `(..., m, n_b)` | scores of the same m queries, some keys at a time |
# | returns | `(maximum, normaliser)` | `(..., m, 1)` each |
#
# - Blocks may have different widths. There is at least one. They come once: a second loop over
#   `blocks` finds nothing.
# - Scores may be −∞ (masked), a whole block of a row too. A row of nothing but −∞ has the maximum −∞
#   and the normaliser 0.
# - Scores may be large: exp must not overflow.
# - Look at one block at a time: no tensor may hold as many numbers as all the blocks together.
#   Keeping the blocks in a list is no crime; joining them is.
#
# No gradient is asked for through these two numbers.
#
# *Fine print:* numbers come in float64 and in float32; no guard is added to the two numbers.
#
# <!-- hints: online_softmax -->
#
# 1. Keep two numbers for each row, the largest score so far and the sum so far.
# 2. If the largest score rises from a to b, every term of the sum has to be multiplied by exp(a −
#    b).
# 3. `larger = torch.maximum(maximum, scores.amax(-1, keepdim=True))`; measure from `larger`, and
#    from 0 where it is −∞.


# %% nbgrader={"grade_id": "online_softmax", "solution": true}
def online_softmax(blocks):
    ### BEGIN SOLUTION
    maximum = None
    for scores in blocks:
        if maximum is None:
            maximum = torch.full_like(scores[..., :1], -math.inf)
            normaliser = torch.zeros_like(maximum)
        larger = torch.maximum(maximum, scores.amax(-1, keepdim=True))
        seen = larger.masked_fill(larger == -math.inf, 0)
        new = (scores - seen).exp().sum(-1, keepdim=True)
        normaliser = normaliser * (maximum - seen).exp() + new
        maximum = larger
    return maximum, normaliser
    ### END SOLUTION


# %% [markdown]
# The logarithms of 1, 2 and of 8, 4. The largest is log 8 = 2.0794, and the normaliser is
# (1 + 2 + 8 + 4) / 8. Expect `tensor([[2.0794]])` and `tensor([[1.8750]])`:

# %%
online_softmax(iter([torch.tensor([[1.0, 2.0]]).log(), torch.tensor([[8.0, 4.0]]).log()]))

# %% nbgrader={"grade_id": "check_online_softmax", "locked": true}
check("efficient.online_softmax", online_softmax)

# %% [markdown]
# ## 2 · `tiled_attention`
#
# <!-- facts: tiled_attention -->
#
# Write `tiled_attention(query, key, value, mask=None, block=128)`: softmax(QKᵀ/√d_k)V, with `block`
# queries and `block` keys at a time.
#
# | | shape | |
# | --- | --- | --- |
# | `query` | `(..., m, d_k)` | |
# | `key`, `value` | `(..., n, d_k)`, `(..., n, d_v)` | the same batch axes |
# | `mask` | `None`, `(m, n)` or `(..., m, n)` | boolean, True where attention is allowed |
# | `block` | a whole number | rows and columns of a tile; the last ones may be shorter |
# | returns | `(..., m, d_v)` | what chapter 5's attention returns |
#
# - `block` may be longer than m and n, or 1, and need not divide them.
# - With a mask, a query may have no key in some tile. It has one somewhere.
# - No tensor may hold m · n numbers or more, when you are called without a mask on one sequence
#   (d_k = d_v = 4, m and n in the hundreds, `block` a sixth of that or less). This is all that is
#   measured: a tile of some queries and all keys is small enough too.
# - Scores may be large or far below 0, and rows far apart: no overflow, no 0/0.
# - Gradients flow to query, key and value. Autograd may keep what it likes: the backward pass is not
#   watched.
#
# You may not call the library's finished `scaled_dot_product_attention` or
# `multi_head_attention_forward`.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most.
#
# <!-- hints: tiled_attention -->
#
# 1. Two loops: over blocks of queries, and inside over blocks of keys. Inside is the online
#    softmax, with a third running quantity, the sum of exp(s) v.
# 2. When a row's maximum rises from a to b, multiply both its sums by exp(a − b).
# 3. `rows = slice(i, i + block)`, `scores = q[..., rows, :] @ k[..., columns, :].mT / √d_k`; the
#    mask of this tile is `mask[..., rows, columns]`.


# %% nbgrader={"grade_id": "tiled_attention", "solution": true}
def tiled_attention(query, key, value, mask=None, block=128):
    ### BEGIN SOLUTION
    outputs = []
    for i in range(0, query.shape[-2], block):
        q = query[..., i : i + block, :] / math.sqrt(query.shape[-1])
        maximum = torch.full_like(q[..., :1], -math.inf)
        normaliser, total = 0.0, 0.0
        for j in range(0, key.shape[-2], block):
            scores = q @ key[..., j : j + block, :].mT
            if mask is not None:
                scores = scores.masked_fill(~mask[..., i : i + block, j : j + block], -math.inf)
            larger = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            seen = larger.masked_fill(larger == -math.inf, 0)
            weights, shrink = (scores - seen).exp(), (maximum - seen).exp()
            normaliser = normaliser * shrink + weights.sum(-1, keepdim=True)
            total = total * shrink + weights @ value[..., j : j + block, :]
            maximum = larger
        outputs.append(total / normaliser)
    return torch.cat(outputs, dim=-2)
    ### END SOLUTION


# %% [markdown]
# A query of zeros averages the three values, whatever the tiles. Expect `tensor([[5.]])`:

# %%
tiled_attention(torch.zeros(1, 4), torch.randn(3, 4), torch.tensor([[3.0], [0.0], [12.0]]), block=2)

# %% nbgrader={"grade_id": "check_tiled_attention", "locked": true}
check("efficient.tiled_attention", tiled_attention)

# %% [markdown]
# ## 3 · `windowed_attention`
#
# <!-- facts: windowed_attention -->
#
# Write `windowed_attention(query, key, value, width)`: softmax(QKᵀ/√d_k)V where token i sees the
# `width` tokens around it, i − width // 2 to i + width // 2, itself included.
#
# | | shape | |
# | --- | --- | --- |
# | `query`, `key` | `(..., n, d_k)` | a query and a key for each token |
# | `value` | `(..., n, d_v)` | |
# | `width` | an odd number | how many tokens a window in the middle has |
# | returns | `(..., n, d_v)` | |
#
# - A window is cut off at the ends of the sequence, where it has fewer tokens. It may be wider than
#   the sequence.
# - No tensor may hold n · n numbers or more, masks included, when you are called on one sequence
#   (d_k = d_v = 4, n in the hundreds, `width` 3 or 5).
# - Scores may be large.
#
# You may not call the library's finished `scaled_dot_product_attention` or
# `multi_head_attention_forward`; what earlier chapters of this course built you may.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most.
#
# <!-- hints: windowed_attention -->
#
# 1. Token i sees tokens i − width // 2 to i + width // 2, as far as they exist.
# 2. `places = torch.arange(n)[:, None] + torch.arange(-half, half + 1)` is `(n, width)`; `key[...,
#    places.clamp(0, n - 1), :]` are the keys of every window.
# 3. Each window is then a sequence with one query, `query[..., None, :]`; mask the places that do
#    not exist. Or loop over blocks of queries with the keys around them.


# %% nbgrader={"grade_id": "windowed_attention", "solution": true}
def windowed_attention(query, key, value, width):
    ### BEGIN SOLUTION
    n, half = key.shape[-2], width // 2
    places = torch.arange(n)[:, None] + torch.arange(-half, half + 1)  # (n, width)
    there = (places >= 0) & (places < n)
    near = places.clamp(0, n - 1)
    keys, values = key[..., near, :], value[..., near, :]  # (..., n, width, d)
    scores = (query.unsqueeze(-2) @ keys.mT).squeeze(-2) / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~there, -math.inf).softmax(-1)  # (..., n, width)
    return (weights.unsqueeze(-2) @ values).squeeze(-2)
    ### END SOLUTION


# %% [markdown]
# Queries of zeros: a moving average. Expect 3, 3, 5 and 7.5:

# %%
windowed_attention(
    torch.zeros(4, 2), torch.randn(4, 2), torch.tensor([[6.0], [0.0], [3.0], [12.0]]), 3
)

# %% nbgrader={"grade_id": "check_windowed_attention", "locked": true}
check("efficient.windowed_attention", windowed_attention)

# %% [markdown]
# ## 4 · `linear_attention`
#
# <!-- facts: linear_attention -->
#
# Replace exp(q · k) by φ(q) · φ(k), with φ(x) = elu(x) + 1 for each number of a query or key. Write
# `linear_attention(query, key, value, causal=False)`: row i is
# Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j).
#
# | | shape | |
# | --- | --- | --- |
# | `query` | `(..., m, d_k)` | |
# | `key`, `value` | `(..., n, d_k)`, `(..., n, d_v)` | |
# | `causal` | True or False | with True, token i sees tokens 0 to i, and m = n |
# | returns | `(..., m, d_v)` | |
#
# - There is no √d_k here.
# - Without `causal` no tensor may hold m · n numbers or more (d_k = d_v = 4, m and n in the hundreds, one
#   sequence). With `causal` nothing is watched.
# - Every query has a feature above 0, so no denominator is 0.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most.
#
# <!-- hints: linear_attention -->
#
# 1. (φ(Q) φ(K)ᵀ) V = φ(Q) (φ(K)ᵀ V), and the right side needs no m × n numbers.
# 2. The denominator of row i is φ(q_i) · Σ_j φ(k_j): sum the keys' features first.
# 3. Causal: the products `key[..., None] * value[..., None, :]` are `(..., n, d_k, d_v)`; their
#    `cumsum` along the tokens is what each token may use.


# %% nbgrader={"grade_id": "linear_attention", "solution": true}
def linear_attention(query, key, value, causal=False):
    ### BEGIN SOLUTION
    query, key = F.elu(query) + 1, F.elu(key) + 1
    if not causal:
        return query @ (key.mT @ value) / (query @ key.sum(-2, keepdim=True).mT)
    states = (key.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)  # (..., n, d_k, d_v)
    sums = (query * key.cumsum(-2)).sum(-1, keepdim=True)
    return (query.unsqueeze(-2) @ states).squeeze(-2) / sums
    ### END SOLUTION


# %% [markdown]
# One feature. φ(0) = 1 and φ(2) = 3, so the second value counts three times. Expect
# `tensor([[7.]])`:

# %%
linear_attention(torch.zeros(1, 1), torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0], [8.0]]))

# %% nbgrader={"grade_id": "check_linear_attention", "locked": true}
check("efficient.linear_attention", linear_attention)

# %% [markdown]
# ## 5 · `kv_cache_bytes`
#
# <!-- facts: kv_cache_bytes -->
#
# Write `kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=2)`: how many bytes
# a cache of keys and values has. Every layer keeps, for every token and each of its `n_kv_heads`, a
# key of `d_head` numbers and a value of `d_head` numbers.
#
# <!-- hints: kv_cache_bytes -->
#
# 1. How many numbers are kept for one token, in one layer, for one head?
# 2. A key and a value: 2 · d_head numbers.


# %% nbgrader={"grade_id": "kv_cache_bytes", "solution": true}
def kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=2):
    ### BEGIN SOLUTION
    return 2 * n_tokens * n_layers * n_kv_heads * d_head * bytes_per_number
    ### END SOLUTION


# %% [markdown]
# One token of a model with 32 layers and 32 heads of 128 numbers. Expect 524288, half a megabyte:

# %%
kv_cache_bytes(1, 32, 32, 128)

# %% nbgrader={"grade_id": "check_kv_cache_bytes", "locked": true}
check("efficient.kv_cache_bytes", kv_cache_bytes)

# %% [markdown] nbgrader={"grade_id": "explain_exact", "grade": true, "solution": true, "points": 4}
# ## 6 · Exact and small
#
# <!-- facts: explain_exact -->
#
# Explain in three sentences how an online softmax computes exact attention without ever holding
# all $n^2$ scores, what it saves and what it does not, and what linear attention gives up in its
# place.
#
# | points | for |
# | --: | --- |
# | 2 | what is kept from block to block, and what happens when a larger score comes |
# | 1 | what is saved, and what is not |
# | 1 | what linear attention gives up |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# The online softmax reads the keys in blocks and keeps the largest score, the sum of exponentials
# and the weighted sum of values so far; where a block brings a larger score, both sums are
# multiplied by one factor. Memory then grows with n and not with $n^2$, while all $n^2$ products
# are still computed. Linear attention saves these by leaving out the softmax, and what is left
# has rank $d_k$ at most: it cannot give each of many queries a key of its own exactly.
#
# For the points, in this order: (2) it goes through the keys block by block with a running
# maximum, sum and weighted sum of values, and rescales what it has by one factor when the maximum
# grows; (1) memory grows with n in place of n²; the number of operations stays; (1) linear
# attention has no softmax: its weights come from a product of rank d_k at most, so it cannot give
# each of many queries a key of its own exactly.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_online_softmax", "grade": true, "locked": true}
examine("efficient.online_softmax", online_softmax).earned

# %% nbgrader={"grade_id": "hidden_online_softmax", "grade": true, "locked": true, "points": 1}
# One more test of online_softmax.
### BEGIN HIDDEN TESTS
scores = 5 * torch.randn(2, 3, 12, dtype=torch.float64)
blocks = [scores[..., 0:5].clone(), scores[..., 5:7].clone(), scores[..., 7:].clone()]
maximum, normaliser = online_softmax(blocks)
size = (maximum + normaliser.log())[..., 0]
assert torch.allclose(size, scores.logsumexp(-1)), (
    "maximum + log(normaliser) should be the logsumexp of all scores, with blocks of 5, 2 and 5"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_tiled_attention", "grade": true, "locked": true}
examine("efficient.tiled_attention", tiled_attention).earned

# %% nbgrader={"grade_id": "hidden_tiled_attention", "grade": true, "locked": true, "points": 1}
# One more test of tiled_attention.
### BEGIN HIDDEN TESTS
query, key = torch.randn(2, 9, 4), torch.randn(2, 13, 4)
value = torch.randn(2, 13, 3)
whole = (query @ key.mT / 2).softmax(-1) @ value
for block in (2, 5, 64):
    tiled = tiled_attention(query.clone(), key.clone(), value.clone(), block=block)
    assert torch.allclose(tiled, whole, atol=1e-5), (
        "the result should be softmax(QKᵀ/√d_k) V, with blocks of 2 and 5, and of 64 for 9 and 13 rows"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_windowed_attention", "grade": true, "locked": true}
examine("efficient.windowed_attention", windowed_attention).earned

# %% nbgrader={"grade_id": "hidden_windowed_attention", "grade": true, "locked": true, "points": 1}
# One more test of windowed_attention.
### BEGIN HIDDEN TESTS
query, key = torch.randn(2, 9, 4), torch.randn(2, 9, 4)
value = torch.randn(2, 9, 3)
far = (torch.arange(9)[:, None] - torch.arange(9)).abs() > 2
whole = (query @ key.mT / 2).masked_fill(far, -math.inf).softmax(-1) @ value
near = windowed_attention(query.clone(), key.clone(), value.clone(), 5)
assert torch.allclose(near, whole, atol=1e-5), (
    "with width 5 token i should see tokens i - 2 to i + 2, fewer at the ends"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_linear_attention", "grade": true, "locked": true}
examine("efficient.linear_attention", linear_attention).earned

# %% nbgrader={"grade_id": "hidden_linear_attention", "grade": true, "locked": true, "points": 1}
# One more test of linear_attention.
### BEGIN HIDDEN TESTS
query, key = torch.randn(2, 7, 4), torch.randn(2, 7, 4)
value = torch.randn(2, 7, 3)
weights = (F.elu(query) + 1) @ (F.elu(key) + 1).mT
for causal in (False, True):
    kept = weights.tril() if causal else weights
    expected = kept / kept.sum(-1, keepdim=True) @ value
    got = linear_attention(query.clone(), key.clone(), value.clone(), causal)
    assert torch.allclose(got, expected, atol=1e-5), (
        "causal or not, row i should be the sum of φ(q)·φ(k) v over that of φ(q)·φ(k) of what it sees"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_kv_cache_bytes", "grade": true, "locked": true}
examine("efficient.kv_cache_bytes", kv_cache_bytes).earned

# %% nbgrader={"grade_id": "hidden_kv_cache_bytes", "grade": true, "locked": true, "points": 1}
# One more test of kv_cache_bytes.
### BEGIN HIDDEN TESTS
keys = torch.zeros(3, 5, 7, 11, dtype=torch.float64)  # layers, heads, tokens, features
values = torch.zeros_like(keys)
size = keys.nelement() * keys.element_size() + values.nelement() * values.element_size()
assert kv_cache_bytes(7, 3, 5, 11, 8) == size, (
    "for bytes_per_number=8 it should be the size of two tensors, of keys and of values"
)
### END HIDDEN TESTS
