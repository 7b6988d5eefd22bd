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
# # Exercises 4 · Self-attention
#
# You write three functions of chapter 4: the weights that tokens give each other, the mixture that
# follows from them, and a test that tells whether a function knows in which order its tokens came.
# Fill in the cells marked *your code* and run the check below each of them. It uses new numbers
# every time and tells you, where something does not hold, on which small example and what your
# function did there.
#
# A token is a row of `X`, shape `(n, d)`. Row i of `A`, shape `(n, n)`, holds the weights that
# token i gives to all tokens. Where a shape is written `(..., n, d)`, the dots stand for any number
# of batch axes, none included. `X` may hold whole numbers. `softmax` and `mix` of the chapters
# before are imported for you; writing your own is welcome. Functions leave what they are given as
# it is.

# %%
import numpy as np

from attncourse.checks import check, examine
from attncourse.lookup import softmax
from attncourse.mixing import mix

# %% [markdown]
# ## 1 · `attention_weights`
#
# <!-- facts: attention_weights -->
#
# In self-attention every token asks, and every token can be listened to. The score of tokens i and
# j is the dot product of their vectors, as it is, divided by nothing, and the scores of one token
# go through a softmax:
#
# $$S = X X^\top, \qquad A_{ij} = \frac{\exp S_{ij}}{\sum_k \exp S_{ik}} .$$
#
# Write `attention_weights(X)`, which returns A. Scores in the thousands must not overflow.
#
# | | shape | |
# | --- | --- | --- |
# | `X` | `(..., n, d)` | one row per token |
# | returns | `(..., n, n)` | row i belongs to token i as the one who asks, and sums to 1 |
#
# *Fine print:* `X` may hold whole numbers; a guard in a denominator may be 1e-12 at most.
#
# <!-- hints: attention_weights -->
#
# 1. All dot products between rows of X are one matrix product. Which, and what is its shape?
# 2. The scores are `X @ np.swapaxes(X, -1, -2)`: for one sequence simply `X @ X.T`.
# 3. `softmax` of chapter 3 takes an axis. Row i is to sum to 1, so the sum runs over its entries:
#    the last axis.


# %% nbgrader={"grade_id": "attention_weights", "solution": true}
def attention_weights(X):
    ### BEGIN SOLUTION
    scores = X @ np.swapaxes(X, -1, -2)
    return softmax(scores, axis=-1)
    ### END SOLUTION


# %% [markdown]
# Two tokens with the scores `[[1, 2], [2, 5]]`. A difference of 1 in the scores gives the odds
# e : 1, a difference of 3 gives e³ : 1, so expect `[[0.269 0.731] [0.047 0.953]]`. The first token
# listens more to the second than to itself:

# %%
np.round(attention_weights(np.array([[1.0, 0.0], [2.0, 1.0]])), 3)

# %% nbgrader={"grade_id": "check_attention_weights", "locked": true}
check("self_attention.attention_weights", attention_weights)

# %% [markdown]
# ## 2 · `self_attention`
#
# <!-- facts: self_attention -->
#
# The weights say who listens to whom; the tokens that are heard are mixed accordingly. Write
# `self_attention(X)`, which returns
#
# $$U_i = \sum_j A_{ij} X_j , \qquad A = \operatorname{softmax}(X X^\top) .$$
#
# | | shape | |
# | --- | --- | --- |
# | `X` | `(..., n, d)` | one row per token |
# | returns | `(..., n, d)` | one new vector per token |
#
# *Fine print:* `X` may hold whole numbers; a guard in a denominator may be 1e-12 at most.
#
# <!-- hints: self_attention -->
#
# 1. You have the weights already. Which chapter's function mixes tokens with a matrix of weights?
# 2. `A` is (n, n) and `X` is (n, d). There is one product of the two, in one order, that has shape
#    (n, d) and uses row i of A for output i.


# %% nbgrader={"grade_id": "self_attention", "solution": true}
def self_attention(X):
    ### BEGIN SOLUTION
    return mix(attention_weights(X), X)
    ### END SOLUTION


# %% [markdown]
# The same two tokens. Their second feature is 0 and 1, so in the output it is the weight each of
# them gives to the second token. Expect `[[1.731 0.731] [1.953 0.953]]`:

# %%
np.round(self_attention(np.array([[1.0, 0.0], [2.0, 1.0]])), 3)

# %% nbgrader={"grade_id": "check_self_attention", "locked": true}
check("self_attention.self_attention", self_attention)

# %% [markdown]
# ## 3 · `is_permutation_equivariant`
#
# <!-- facts: is_permutation_equivariant -->
#
# A function f of a sequence is *permutation equivariant* if shuffling its input shuffles its output
# in the same way, and does nothing else:
#
# $$f(P X) = P f(X) \qquad\text{for every permutation matrix } P .$$
#
# Self-attention is; a causal mean is not. For n tokens there are n! permutations, too many to try,
# but a function that cares about order usually gives itself away after a few. Write
# `is_permutation_equivariant(f, X, rng=None, atol=1e-8)`, which tries *several random*
# permutations of the tokens of `X` and says whether f passed all of them. The identity, the order
# that changes nothing, proves nothing and must not count as one of them.
#
# | | | |
# | --- | --- | --- |
# | `f` | a function | takes `(..., n, d)` and returns one row for each token, `(..., n, d')` |
# | `X` | `(..., n, d)` | at least two tokens; they are on the second axis from the end |
# | `rng` | a `numpy.random.Generator` | the orders are drawn from it; if it is `None`, make one with `np.random.default_rng()` |
# | `atol` | a number | both sides count as equal where no entry differs by more than this |
# | returns | one `bool` | |
#
# The array that was passed in stays as it is.
#
# *Fine print:* `X` may hold whole numbers.
#
# <!-- hints: is_permutation_equivariant -->
#
# 1. Two ways lead from X to a shuffled output: shuffle the tokens, then apply f; or apply f, then
#    shuffle the rows of the result. Equivariant means that both arrive at the same.
# 2. `p = rng.permutation(n)` is an order of 0 … n−1, and `X[..., p, :]` the tokens in that order,
#    batch or not. The same indexing works on f(X).
# 3. What would your test say of the causal mean if p happened to be 0, 1, …, n−1? Draw again in
#    that case, and try several p.


# %% nbgrader={"grade_id": "is_permutation_equivariant", "solution": true}
def is_permutation_equivariant(f, X, rng=None, atol=1e-8):
    ### BEGIN SOLUTION
    rng = np.random.default_rng() if rng is None else rng
    n = X.shape[-2]
    U = f(X)
    tried = 0
    while tried < 8:
        order = rng.permutation(n)
        if (order == np.arange(n)).all():
            continue
        tried += 1
        if not np.allclose(f(X[..., order, :]), U[..., order, :], rtol=0, atol=atol):
            return False
    return True
    ### END SOLUTION


# %% [markdown]
# The first function doubles every token; the second adds each token's number to it. Expect
# `(True, False)`:

# %%
X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 5.0]])
(
    is_permutation_equivariant(lambda X: 2 * X, X),
    is_permutation_equivariant(lambda X: X + np.arange(3)[:, None], X),
)

# %% nbgrader={"grade_id": "check_is_permutation_equivariant", "locked": true}
check("self_attention.is_permutation_equivariant", is_permutation_equivariant)

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_attention_weights", "grade": true, "locked": true}
examine("self_attention.attention_weights", attention_weights).earned

# %% nbgrader={"grade_id": "hidden_attention_weights", "grade": true, "locked": true, "points": 1}
# One more test of attention_weights.
### BEGIN HIDDEN TESTS
X, expected = np.random.normal(size=(5, 3)), np.zeros((5, 5))
for i in range(5):
    odds = [np.exp(np.dot(X[i], X[j]) - np.dot(X[i], X[0])) for j in range(5)]
    expected[i] = [one / sum(odds) for one in odds]
A = np.asarray(attention_weights(X))
assert A.shape == (5, 5), "5 tokens should give shape (5, 5): a weight for every pair"
assert np.allclose(A, expected), (
    "row i should be the softmax of the dot products of token i with all tokens, divided by nothing"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_self_attention", "grade": true, "locked": true}
examine("self_attention.self_attention", self_attention).earned

# %% nbgrader={"grade_id": "hidden_self_attention", "grade": true, "locked": true, "points": 1}
# One more test of self_attention.
### BEGIN HIDDEN TESTS
X, expected = np.random.normal(size=(5, 3)), np.zeros((5, 3))
for i in range(5):
    shares = [np.exp(np.dot(X[i], x)) for x in X]
    expected[i] = sum(share * x for share, x in zip(shares, X, strict=True)) / sum(shares)
U = np.asarray(self_attention(X))
assert U.shape == (5, 3), "5 tokens of 3 features should give shape (5, 3): one vector for each"
assert np.allclose(U, expected), (
    "each output should be the tokens times its row of weights, softmax(X Xᵀ)"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_is_permutation_equivariant", "grade": true, "locked": true}
examine("self_attention.is_permutation_equivariant", is_permutation_equivariant).earned

# %% nbgrader={"grade_id":"hidden_is_permutation_equivariant","grade":true,"locked":true,"points":1}
# One more test of is_permutation_equivariant.
### BEGIN HIDDEN TESTS
X = np.random.normal(size=(7, 3))


def same(f):
    return bool(is_permutation_equivariant(f, X.copy()))


assert same(lambda X: X - X.mean(axis=-2, keepdims=True)), (
    "taking the mean token from every token should be equivariant"
)
assert same(np.cos), "a function of each number by itself, the cosine, should be equivariant"
assert not same(lambda X: X - np.roll(X, 1, axis=-2)), (
    "taking the neighbour from every token should not be equivariant"
)
assert not same(lambda X: X[..., ::-1, :]), (
    "turning the order of the tokens round should not be equivariant"
)
### END HIDDEN TESTS
