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
# # Exercises 11 · Positions
#
# You write the three ways in which order enters attention: an encoding that is added to the tokens,
# a rotation of queries and keys, and a bias on the scores. Fill in the cells marked *your code* and
# run the check below each. It tells you which part of the answer holds, and where one does not, what
# your code did on a small example.
#
# Positions, pairs of features and heads all count from 0. The three functions that are given
# numbers alone return torch's default dtype; float64 is right as well. Functions leave what they
# are given as it is.

# %%
import math

import torch

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `sinusoidal_encoding`
#
# <!-- facts: sinusoidal_encoding -->
#
# Write `sinusoidal_encoding(n, d, base=10000.0)`: the vectors for the positions 0 to n − 1, one per
# row, with
#
# $$\mathrm{PE}_{t,\,2i} = \sin(t\,\omega_i), \qquad \mathrm{PE}_{t,\,2i+1} = \cos(t\,\omega_i),
# \qquad \omega_i = \mathrm{base}^{-2i/d}, \qquad i = 0, \ldots, d/2 - 1 .$$
#
# | | | |
# | --- | --- | --- |
# | `n` | a whole number | how many positions |
# | `d` | a whole number | how many features; raise `ValueError` if it is odd |
# | `base` | a number above 0 | |
# | returns | `(n, d)` | row t for position t; sines and cosines take turns |
#
# <!-- hints: sinusoidal_encoding -->
#
# 1. First the angles: a matrix (n, d/2) of every position times every frequency.
# 2. `torch.arange(n)[:, None] * frequencies` makes it, with d/2 frequencies base^(−2i/d).
# 3. Two results of shape (n, d/2) take turns by `torch.stack([…, …], dim=-1).flatten(-2)`, or by
#    writing into `PE[:, 0::2]` and `PE[:, 1::2]`.


# %% nbgrader={"grade_id": "sinusoidal_encoding", "solution": true}
def sinusoidal_encoding(n, d, base=10000.0):
    ### BEGIN SOLUTION
    if d % 2:
        raise ValueError(f"d: expected an even number, got {d}")
    frequencies = base ** (-torch.arange(0, d, 2).double() / d)  # (d/2,)
    angles = torch.arange(n)[:, None] * frequencies  # (n, d/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()
    ### END SOLUTION


# %% [markdown]
# Two pairs, the second a hundred times slower than the first. Expect
# `[[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.9999]]` or so:

# %%
sinusoidal_encoding(2, 4)

# %% nbgrader={"grade_id": "check_sinusoidal_encoding", "locked": true}
check("positions.sinusoidal_encoding", sinusoidal_encoding)

# %% [markdown]
# ## 2 · `rotation_matrix`
#
# <!-- facts: rotation_matrix -->
#
# Write `rotation_matrix(k, d)`: the matrix $R(k)$ of shape `(d, d)` that leads from the encoding of
# any position to that of the position k places on, with base 10000. The encoding stands as a column
# here:
#
# $$\mathrm{PE}(t + k) = R(k)\, \mathrm{PE}(t) \quad\text{for every } t .$$
#
# It turns each pair of features by itself, so that it has blocks of 2 by 2 on its diagonal and zeros
# elsewhere.
#
# | | | |
# | --- | --- | --- |
# | `k` | a whole number | may be 0 or negative |
# | `d` | a whole number | raise `ValueError` if it is odd |
# | returns | `(d, d)` | |
#
# <!-- hints: rotation_matrix -->
#
# 1. What has to be done to (sin a, cos a) to get (sin(a + b), cos(a + b))? The addition theorems
#    say it.
# 2. One block of 2 by 2 for each pair, with the angle b = k · 10000^(−2i/d).
# 3. `torch.block_diag` puts blocks along a diagonal; a loop that fills `R[2*i : 2*i + 2, 2*i : 2*i
#    + 2]` does as well.


# %% nbgrader={"grade_id": "rotation_matrix", "solution": true}
def rotation_matrix(k, d):
    ### BEGIN SOLUTION
    if d % 2:
        raise ValueError(f"d: expected an even number, got {d}")
    R = torch.zeros(d, d)
    for i in range(d // 2):
        b = k * 10000 ** (-2 * i / d)
        block = [[math.cos(b), math.sin(b)], [-math.sin(b), math.cos(b)]]
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(block)
    return R
    ### END SOLUTION


# %% [markdown]
# From position 2 to position 5, by your own encoding. Expect a number below 0.000001:

# %%
PE = sinusoidal_encoding(6, 8)
(rotation_matrix(3, 8).double() @ PE[2].double() - PE[5].double()).abs().max()

# %% nbgrader={"grade_id": "check_rotation_matrix", "locked": true}
check("positions.rotation_matrix", rotation_matrix)

# %% [markdown]
# ## 3 · `apply_rope`
#
# <!-- facts: apply_rope -->
#
# Write `apply_rope(x, positions, base=10000.0)`, which turns queries or keys by their positions.
# Features 2i and 2i + 1 are a pair; with $a = \mathrm{position} \cdot \mathrm{base}^{-2i/d}$,
#
# $$x'_{2i} = x_{2i} \cos a - x_{2i+1} \sin a, \qquad x'_{2i+1} = x_{2i} \sin a + x_{2i+1} \cos a .$$
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., n, d)` | any number of batch axes in front; raise `ValueError` if d is odd |
# | `positions` | `(n,)` | one for each token, the same for the whole batch; integers or floats, in any order, negative too |
# | `base` | a number | |
# | returns | `(..., n, d)` | in the dtype of `x` |
#
# Compute the angles in float64, and cast their cosines and sines to the dtype of `x`: torch makes
# float32 of whole numbers that it has to divide, and at position 100 000 that is not enough. One
# criterion tests this. Gradients must be able to flow to `x`, so stay with torch operations.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: apply_rope -->
#
# 1. Angles first, shape (n, d/2): every position times every frequency.
# 2. `x[..., 0::2]` and `x[..., 1::2]`, each (..., n, d/2), are the two features of all pairs.
# 3. Both new features of a pair are made of both old ones. `torch.stack([…, …],
#    dim=-1).flatten(-2)` lets two results take turns.


# %% nbgrader={"grade_id": "apply_rope", "solution": true}
def apply_rope(x, positions, base=10000.0):
    ### BEGIN SOLUTION
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"x: expected an even number of features, got {d}")
    frequencies = base ** (-torch.arange(0, d, 2).double() / d)  # (d/2,)
    angles = positions.double()[:, None] * frequencies  # (n, d/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]  # (..., n, d/2)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    ### END SOLUTION


# %% [markdown]
# Two tokens of one pair; the second is turned by a quarter. Expect `tensor([[1., 2.], [-4., 3.]])`,
# up to rounding:

# %%
apply_rope(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.0, math.pi / 2]))

# %% nbgrader={"grade_id": "check_apply_rope", "locked": true}
check("positions.apply_rope", apply_rope)

# %% [markdown]
# ## 4 · `alibi_bias`
#
# <!-- facts: alibi_bias -->
#
# Write `alibi_bias(n_heads, n)`: what ALiBi adds to the scores of each head,
#
# $$-m_h\, |i - j|, \qquad m_h = 2^{-8(h+1)/\mathrm{n\_heads}}, \qquad h = 0, \ldots, \mathrm{n\_heads} - 1 ,$$
#
# for query i and key j. This formula serves every number of heads.
#
# | | | |
# | --- | --- | --- |
# | `n_heads` | a whole number | |
# | `n` | a whole number | how many tokens |
# | returns | `(n_heads, n, n)` | |
#
# <!-- hints: alibi_bias -->
#
# 1. Two pieces: n_heads slopes, and a matrix (n, n) of distances.
# 2. `torch.arange(n)[:, None] - torch.arange(n)` is i − j for all i and j.
# 3. `slopes[:, None, None] * distance` makes (n_heads, n, n).


# %% nbgrader={"grade_id": "alibi_bias", "solution": true}
def alibi_bias(n_heads, n):
    ### BEGIN SOLUTION
    slopes = 2 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)  # (n_heads,)
    distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()  # (n, n)
    return -slopes[:, None, None] * distance
    ### END SOLUTION


# %% [markdown]
# Two heads with the slopes 1/16 and 1/256. Expect −0.0625 beside the diagonal of the first:

# %%
alibi_bias(2, 3)

# %% nbgrader={"grade_id": "check_alibi_bias", "locked": true}
check("positions.alibi_bias", alibi_bias)

# %% [markdown] nbgrader={"grade_id": "explain_distance", "grade": true, "solution": true, "points": 4}
# ## 5 · Order by turning
#
# <!-- facts: explain_distance -->
#
# Explain in three sentences why attention without positions and without a mask takes *dog bites
# man* and *man bites dog* for the same, what RoPE does to queries and keys, and why its scores
# depend on positions only by their distance.
#
# | points | for |
# | --: | --- |
# | 1 | why the two sentences look the same |
# | 1 | what RoPE does to queries and keys |
# | 2 | why the distance alone is left, as a product of two rotations |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# Without positions a word's output is a sum over all words that does not ask where they stand, so
# both sentences give every word the same row. RoPE turns the query at position i and the key at
# position j, pair of features by pair, by angles proportional to i and j. In their dot product
# $q^\top R(i)^\top R(j)\,k = q^\top R(j - i)\,k$ only the difference is left.
#
# For the points, in this order: (1) it is permutation equivariant: each word gets the same output
# wherever the words stand; (1) RoPE turns each query and key by angles that are proportional to
# its position; (2) the dot product of two turned vectors depends on the difference of their
# angles alone, $R(i)^\top R(j) = R(j - i)$.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_sinusoidal_encoding", "grade": true, "locked": true}
examine("positions.sinusoidal_encoding", sinusoidal_encoding).earned

# %% nbgrader={"grade_id": "hidden_sinusoidal_encoding", "grade": true, "locked": true, "points": 1}
# One more test of sinusoidal_encoding.
### BEGIN HIDDEN TESTS
expected = torch.zeros(23, 14).double()
for t in range(23):
    for i in range(7):
        angle = t * 10000.0 ** (-2 * i / 14)
        expected[t, 2 * i], expected[t, 2 * i + 1] = math.sin(angle), math.cos(angle)
PE = sinusoidal_encoding(23, 14).double()
assert PE.shape == (23, 14), "23 positions and 14 features should give shape (23, 14)"
assert torch.allclose(PE, expected, atol=1e-5), (
    "features 2i and 2i + 1 should be the sine and the cosine of t · 10000^(-2i/d), here d = 14"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_rotation_matrix", "grade": true, "locked": true}
examine("positions.rotation_matrix", rotation_matrix).earned

# %% nbgrader={"grade_id": "hidden_rotation_matrix", "grade": true, "locked": true, "points": 1}
# One more test of rotation_matrix.
### BEGIN HIDDEN TESTS
for k in (4, -9):
    expected = torch.zeros(12, 12).double()
    for i in range(0, 12, 2):  # a block turns features i and i + 1 by k omega
        c, s = math.cos(k * 10000.0 ** (-i / 12)), math.sin(k * 10000.0 ** (-i / 12))
        expected[i : i + 2, i : i + 2] = torch.tensor([[c, s], [-s, c]])
    R = rotation_matrix(k, 12).double()
    assert R.shape == (12, 12), "d = 12 should give shape (12, 12)"
    assert torch.allclose(R, expected, atol=1e-5), (
        "the block of pair i should lead k places on, by the angle k · 10000^(-2i/d), k below 0 too"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_apply_rope", "grade": true, "locked": true}
examine("positions.apply_rope", apply_rope).earned

# %% nbgrader={"grade_id": "hidden_apply_rope", "grade": true, "locked": true, "points": 1}
# One more test of apply_rope.
### BEGIN HIDDEN TESTS
x, places = torch.randn(2, 9, 6).double(), torch.randint(-50, 90, (9,))
numbers = torch.complex(x[..., 0::2], x[..., 1::2])  # a pair is a complex number
turned = []
for base in (10000.0, 100.0):
    angles = places[:, None] * base ** (-torch.arange(0, 6, 2).double() / 6)
    pairs = numbers * torch.polar(torch.ones(9, 3).double(), angles)
    turned.append(torch.view_as_real(pairs).flatten(-2))
out = apply_rope(x, places)
assert out.shape == (2, 9, 6), "the result should have the shape of x, (2, 9, 6)"
assert torch.allclose(out, turned[0], atol=1e-6), (
    "features 2i and 2i + 1 should turn by position · 10000^(-2i/d), at positions below 0 too"
)
out = apply_rope(x, places, base=100.0)
assert out.shape == (2, 9, 6), "with base=100 the result should have the shape of x, (2, 9, 6)"
assert torch.allclose(out, turned[1], atol=1e-6), (
    "with base=100 the angles should be position · 100^(-2i/d)"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_alibi_bias", "grade": true, "locked": true}
examine("positions.alibi_bias", alibi_bias).earned

# %% nbgrader={"grade_id": "hidden_alibi_bias", "grade": true, "locked": true, "points": 1}
# One more test of alibi_bias.
### BEGIN HIDDEN TESTS
expected = torch.tensor(
    [
        [[-(2 ** (-8 * h / 12)) * abs(i - j) for j in range(7)] for i in range(7)]
        for h in range(1, 13)
    ]
)
bias = alibi_bias(12, 7)
assert bias.shape == (12, 7, 7), "12 heads and 7 tokens should give shape (12, 7, 7)"
assert torch.allclose(bias.float(), expected, atol=1e-5), (
    "head h should add -m |i - j| with m = 2^(-8(h + 1)/n_heads), here n_heads = 12"
)
### END HIDDEN TESTS
