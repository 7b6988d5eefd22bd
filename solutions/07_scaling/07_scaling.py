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
# # Exercises 7 · Scaling
#
# You measure how large scores are, scale them, and write the two instruments of the chapter: the
# entropy of attention weights and the Jacobian of the softmax. Fill in the cells marked *your code*
# and run the check below each. It tells you which part of the answer holds, and where one does not,
# what your code did on a small example.
#
# Where a shape is written `(..., n)`, the dots stand for any number of axes in front, none
# included. From exercise 2 on, results keep the floating dtype and the precision of what came in,
# and gradients must be able to flow through everything, so stay with torch operations: no
# `.detach()`, no `.numpy()`. Functions leave what they are given as it is.

# %%
import math

import numpy as np
import torch

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `score_variance`
#
# <!-- facts: score_variance -->
#
# An experiment. Draw `n_samples` pairs of a query q and a key k. Each has `d_k` entries, and all
# entries of all vectors are independent standard normal numbers. Each pair has one score, the dot
# product q · k. Write `score_variance(d_k, n_samples, seed)`, which returns the sample variance of
# these `n_samples` scores.
#
# | | | |
# | --- | --- | --- |
# | `d_k` | whole number, at least 1 | entries of each vector |
# | `n_samples` | whole number, at least 2 | number of pairs, and so of scores |
# | `seed` | whole number, at least 0 | equal seeds give equal results |
# | returns | one number | the variance of the scores |
#
# The sum of squared deviations may be divided by n_samples or by n_samples − 1, as you like. You
# may draw with any library and any generator, as long as the seed alone decides what is drawn:
# `torch.Generator().manual_seed(seed)` and `np.random.default_rng(seed)` are made for that. Your
# numbers will therefore differ from other people's. The check calls your function with many seeds
# and judges what must be the same for all: how large the results are on average, that a seed
# repeats its result, and how far the results of different seeds scatter. It rounds averages to a
# power of 2.
#
# <!-- hints: score_variance -->
#
# 1. Three steps: draw q and k, both (n_samples, d_k); one score for each pair; the variance of the
#    scores.
# 2. `generator = torch.Generator().manual_seed(seed)`, then `torch.randn(n_samples, d_k,
#    generator=generator)`, twice.
# 3. `(q * k).sum(dim=-1)` holds the n_samples scores.


# %% nbgrader={"grade_id": "score_variance", "solution": true}
def score_variance(d_k, n_samples, seed):
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(n_samples, d_k, generator=generator)
    key = torch.randn(n_samples, d_k, generator=generator)
    scores = (query * key).sum(dim=-1)  # (n_samples,)
    return scores.var().item()
    ### END SOLUTION


# %% [markdown]
# Expect a number between 55 and 75:

# %%
score_variance(64, 5000, seed=0)

# %% nbgrader={"grade_id": "check_score_variance", "locked": true}
check("scaling.score_variance", score_variance)

# %% [markdown]
# ## 2 · `scale_scores`
#
# <!-- facts: scale_scores -->
#
# Write `scale_scores(scores, d_k)`, which divides scores so that those of independent standard
# normal queries and keys have variance 1 at every width.
#
# | | shape | |
# | --- | --- | --- |
# | `scores` | `(..., m, n)` | of m queries with n keys |
# | `d_k` | whole number | the width of these queries and keys |
# | returns | `(..., m, n)` | |
#
# *Fine print:* numbers come in float64 and in float32; d_k needs no guard, and its root may be a
# float32.
#
# <!-- hints: scale_scores -->
#
# 1. Which number has to divide the scores so that a variance of d_k becomes 1?
# 2. Dividing by c divides the variance by c². `math.sqrt` takes the root of a whole number.


# %% nbgrader={"grade_id": "scale_scores", "solution": true}
def scale_scores(scores, d_k):
    ### BEGIN SOLUTION
    return scores / math.sqrt(d_k)
    ### END SOLUTION


# %% [markdown]
# Expect `tensor([[ 1.,  2., -3.]])`:

# %%
scale_scores(torch.tensor([[2.0, 4.0, -6.0]]), d_k=4)

# %% nbgrader={"grade_id": "check_scale_scores", "locked": true}
check("scaling.scale_scores", scale_scores)

# %% [markdown]
# ## 3 · `attention_entropy`
#
# <!-- facts: attention_entropy -->
#
# How widely does a query spread its weights $a_0, \dots, a_{n-1}$? Write
# `attention_entropy(weights)`, which returns for each row
#
# $$H = -\sum_j a_j \ln a_j ,$$
#
# with the natural logarithm. A weight of 0 adds 0.
#
# | | shape | |
# | --- | --- | --- |
# | `weights` | `(..., n)` | rows of weights, each summing to 1 |
# | returns | `(...)` | one entropy for each row |
#
# The gradient is that of this formula as it stands; it is tried with weights above 0 only. A guard
# inside the logarithm may be 1e-12 at most. PyTorch has the function $-a \ln a$, `torch.special.entr`.
# Here you build it, so it may not be called, and the check notices. `torch.xlogy` is allowed.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: attention_entropy -->
#
# 1. Write −Σ a ln a for one row first; the last axis of `weights` holds a row.
# 2. What is 0 · ln 0 on a computer, and what should it be? ln 1 = 0 may help.
# 3. `weights.masked_fill(weights == 0, 1).log()` is the logarithm with 0 in place of −∞.


# %% nbgrader={"grade_id": "attention_entropy", "solution": true}
def attention_entropy(weights):
    ### BEGIN SOLUTION
    logs = weights.masked_fill(weights == 0, 1).log()
    return -(weights * logs).sum(dim=-1)
    ### END SOLUTION


# %% [markdown]
# The row of the page, two equal weights, and a single one. Expect about 1.0397, 0.6931 and 0 (or
# −0, which is the same number):

# %%
attention_entropy(torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))

# %% nbgrader={"grade_id": "check_attention_entropy", "locked": true}
check("scaling.attention_entropy", attention_entropy)

# %% [markdown]
# ## 4 · `softmax_jacobian`
#
# <!-- facts: softmax_jacobian -->
#
# Let $p = \mathrm{softmax}(s)$. How does each weight change with each score? Write
# `softmax_jacobian(p)`, which returns, for each row of weights p, the matrix of
#
# $$J_{ij} = \frac{\partial p_i}{\partial s_j} = p_i\, (\delta_{ij} - p_j) ,$$
#
# where $\delta_{ij}$ is 1 if i = j and 0 otherwise.
#
# | | shape | |
# | --- | --- | --- |
# | `p` | `(..., n)` | rows of weights: the softmax has been taken |
# | returns | `(..., n, n)` | one matrix for each row |
#
# Compute it from `p`, entry by entry as it stands: its gradient with respect to p is taken in turn.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: softmax_jacobian -->
#
# 1. Entry (i, j) is p_i (δ_ij − p_j). Write it for p = (1/2, 1/4, 1/4) by hand.
# 2. `torch.diag_embed` puts each row of p on the diagonal of a matrix of its own.
# 3. `p[..., :, None] * p[..., None, :]` has p_i p_j in place (i, j), behind any batch.


# %% nbgrader={"grade_id": "softmax_jacobian", "solution": true}
def softmax_jacobian(p):
    ### BEGIN SOLUTION
    return torch.diag_embed(p) - p[..., :, None] * p[..., None, :]
    ### END SOLUTION


# %% [markdown]
# The matrix of the page. Expect the rows 4 −2 −2, −2 3 −1 and −2 −1 3:

# %%
16 * softmax_jacobian(torch.tensor([0.5, 0.25, 0.25]))

# %% nbgrader={"grade_id": "check_softmax_jacobian", "locked": true}
check("scaling.softmax_jacobian", softmax_jacobian)

# %% [markdown] nbgrader={"grade_id": "explain_root", "grade": true, "solution": true, "points": 4}
# ## 5 · Without the root
#
# <!-- facts: explain_root -->
#
# A head of width $d_k = 512$, whose queries and keys have independent entries of mean 0 and
# variance 1, leaves the division out. Explain in three sentences what its scores, its weights and its
# gradients are like when training begins, and what dividing by $\sqrt{512}$ does that dividing by
# 512 does not.
#
# | points | for |
# | --: | --- |
# | 1 | how far the scores spread, as a number |
# | 1 | the weights |
# | 1 | the gradients |
# | 1 | the root against 512 |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# A score is a sum of 512 products of variance 1, so scores spread by $\sqrt{512} \approx 23$, and
# for most queries the softmax gives nearly all weight to one key. Its Jacobian $\mathrm{diag}(p)
# - p\,p^\top$ is then close to 0, and hardly any gradient reaches these queries; those whose
# best keys are not far apart keep theirs. Divided by the root, scores have variance 1 at every
# width; divided by 512 they have 1/512, and all keys start with nearly equal weights.
#
# For the points, in this order: (1) the scores have variance $d_k$, so they spread by about 23;
# (1) the softmax is saturated: for most queries one weight is near 1; (1) its Jacobian
# $\mathrm{diag}(p) - p\,p^\top$ is then near 0, so for most queries hardly any gradient comes
# back; (1) by the root the variance becomes 1; by 512 it becomes 1/512, and all weights are
# nearly equal.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_score_variance", "grade": true, "locked": true}
examine("scaling.score_variance", score_variance).earned

# %% nbgrader={"grade_id": "hidden_score_variance", "grade": true, "locked": true, "points": 1}
# One more test of score_variance.
### BEGIN HIDDEN TESTS
for d_k in (1, 5, 100):
    found = float(score_variance(d_k, 5000, 12345))
    assert 0.75 * d_k < found < 1.3 * d_k, (
        "the variance of 5000 scores should be near d_k, for d_k = 1, 5 and 100"
    )
few = [float(score_variance(3, 2, seed)) for seed in range(100, 120)]
assert max(few) > 2 * min(few), (
    "with 2 samples the variance should differ from seed to seed: it is that of the scores drawn"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_scale_scores", "grade": true, "locked": true}
examine("scaling.scale_scores", scale_scores).earned

# %% nbgrader={"grade_id": "hidden_scale_scores", "grade": true, "locked": true, "points": 1}
# One more test of scale_scores.
### BEGIN HIDDEN TESTS
scores = torch.randn(2, 3, 5)
same, expected = scores.clone(), scores * 7**-0.5
scaled = scale_scores(scores, 1)
assert scaled.shape == (2, 3, 5), "with d_k = 1 there should be one number for each score"
assert torch.allclose(scaled, same), "with d_k = 1 the scores should come back as they were"
scaled = scale_scores(scores, 7)
assert scaled.shape == (2, 3, 5), "with d_k = 7 there should be one number for each score"
assert torch.allclose(scaled, expected, atol=1e-5), (
    "with d_k = 7 the scores should be divided by √7: it is their variance that is 7"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_attention_entropy", "grade": true, "locked": true}
examine("scaling.attention_entropy", attention_entropy).earned

# %% nbgrader={"grade_id": "hidden_attention_entropy", "grade": true, "locked": true, "points": 1}
# One more test of attention_entropy.
### BEGIN HIDDEN TESTS
weights = torch.softmax(torch.randn(2, 3, 5), -1)
padded = torch.cat([weights, torch.zeros(2, 3, 4)], dim=-1)
expected = torch.tensor(
    [[-sum(a * math.log(a) for a in row) for row in rows] for rows in weights.tolist()]
)
for given in (weights, padded):
    entropy = attention_entropy(given)
    assert entropy.shape == (2, 3), (
        "weights of shape (2, 3, n) should give shape (2, 3): one entropy for each row"
    )
    assert torch.allclose(entropy, expected, atol=1e-5), (
        "an entropy should be minus the sum of a ln a, to which a weight of 0 adds 0"
    )
even = attention_entropy(torch.ones(8) / 8)
assert even.shape == (), "one row of weights should give one number, of shape ()"
assert torch.allclose(even, torch.tensor(math.log(8))), (
    "8 equal weights should have the entropy ln 8"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_softmax_jacobian", "grade": true, "locked": true}
examine("scaling.softmax_jacobian", softmax_jacobian).earned

# %% nbgrader={"grade_id": "hidden_softmax_jacobian", "grade": true, "locked": true, "points": 1}
# One more test of softmax_jacobian.
### BEGIN HIDDEN TESTS
s = torch.randn(3, 7, dtype=torch.float64)
p, columns = torch.softmax(s, -1), []
for step in 1e-5 * torch.eye(7, dtype=torch.float64):  # column j: a small change of score j
    columns.append((torch.softmax(s + step, -1) - torch.softmax(s - step, -1)) / 2e-5)
expected = torch.stack(columns, -1)
J = softmax_jacobian(p)
assert J.shape == (3, 7, 7), (
    "3 rows of 7 weights should give shape (3, 7, 7): one matrix for each row"
)
assert torch.allclose(J, expected, atol=1e-7), (
    "J[i, j] should be p_i (1 - p_i) where i = j, and -p_i p_j elsewhere"
)
pair = softmax_jacobian(torch.tensor([0.9, 0.1]))
assert pair.shape == (2, 2), "one row of 2 weights should give shape (2, 2)"
assert torch.allclose(pair, 0.09 * torch.tensor([[1.0, -1.0], [-1.0, 1.0]])), (
    "weights of 0.9 and 0.1 should give 0.09 on the diagonal and -0.09 beside it"
)
### END HIDDEN TESTS
