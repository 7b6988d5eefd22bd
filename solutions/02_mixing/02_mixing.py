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
# # Exercises 2 · Mixing
#
# You write the six functions of chapter 2. Fill in the cells marked *your code*, run the check
# below each of them, and read what it says: it tells you which part of the answer holds, and
# where one does not, on which small example and what your function did there. Run a check as often
# as you like; it uses new numbers every time.
#
# A token is a row of `X`, shape `(n, d)`. Row i of `A`, shape `(m, n)`, holds the weights of output
# i. Where a shape is written `(..., n, d)`, the dots stand for any number of batch axes, none
# included. An array of numbers may also hold integers. Functions leave what they are given as it
# is.

# %%
import numpy as np

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `mix`
#
# <!-- facts: mix -->
#
# Every attention of this course ends in one operation: a weighted sum of rows. Output i is
#
# $$U_i = \sum_j A_{ij} X_j .$$
#
# Write `mix(A, X)`, which returns all of these sums at once.
#
# | | shape | |
# | --- | --- | --- |
# | `A` | `(..., m, n)` | one row of weights per output |
# | `X` | `(..., n, d)` | one row per token |
# | returns | `(..., m, d)` | one row per output |
#
# `mix` takes any `A`: whether its rows sum to 1 is not its concern. Batch axes broadcast, so that
# one `A` may serve a batch of `X`.
#
# *Fine print:* `A` and `X` may hold whole numbers.
#
# <!-- hints: mix -->
#
# 1. Write one entry of the result as a sum: U[i, c] is a sum over the tokens j. Which axis of A and
#    which axis of X does j run over?
# 2. A sum over the last axis of one matrix and the second-to-last of the other is a matrix product.
# 3. `np.matmul`, written `@`, takes any leading axes of both along as a batch.


# %% nbgrader={"grade_id": "mix", "solution": true}
def mix(A, X):
    ### BEGIN SOLUTION
    return A @ X
    ### END SOLUTION


# %% [markdown]
# With half of each token in the first output and only the second token in the second output,
# expect `[[4. 6.] [6. 8.]]`:

# %%
mix(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[2.0, 4.0], [6.0, 8.0]]))

# %% nbgrader={"grade_id": "check_mix", "locked": true}
check("mixing.mix", mix)

# %% [markdown]
# ## 2 · `normalize_rows`
#
# <!-- facts: normalize_rows -->
#
# Weights in a mixture are shares: none is negative and those of one output sum to 1. Write
# `normalize_rows(A)`, which turns a matrix of amounts into a matrix of shares by dividing every
# row by its sum. The proportions inside a row stay what they were.
#
# | | shape | |
# | --- | --- | --- |
# | `A` | `(..., m, n)` | no entry below 0 |
# | returns | `(..., m, n)` | every row sums to 1, except that a row of zeros stays a row of zeros |
#
# A negative entry raises `ValueError`. A row that is not zero sums to 0.001 or more. The array that
# was passed in stays as it is.
#
# *Fine print:* `A` may hold whole numbers; a guard added to a sum may be 1e-12 at most.
#
# <!-- hints: normalize_rows -->
#
# 1. First the sum of every row. Which axis disappears when a row is summed?
# 2. `keepdims=True` keeps that axis with length 1, so that dividing lines up with the rows.
# 3. `np.where(sums == 0, 1, sums)` replaces the sums that must not be divided by.


# %% nbgrader={"grade_id": "normalize_rows", "solution": true}
def normalize_rows(A):
    ### BEGIN SOLUTION
    if (A < 0).any():
        raise ValueError("normalize_rows: an entry is negative")
    sums = A.sum(axis=-1, keepdims=True)
    return A / np.where(sums == 0, 1, sums)
    ### END SOLUTION


# %% [markdown]
# Expect `[[0.25 0.75] [0. 0.]]`:

# %%
normalize_rows(np.array([[1.0, 3.0], [0.0, 0.0]]))

# %% nbgrader={"grade_id": "check_normalize_rows", "locked": true}
check("mixing.normalize_rows", normalize_rows)

# %% [markdown]
# ## 3 · `is_row_stochastic`
#
# <!-- facts: is_row_stochastic -->
#
# A matrix whose entries are at least 0 and whose rows sum to 1 is called *row-stochastic*. Write
# `is_row_stochastic(A, atol=1e-8)`, which says whether a matrix is one, up to rounding: no entry
# below `-atol`, no row sum further than `atol` from 1. The tolerance is absolute, the same for all
# matrices; with `atol=0` the sums are 1 exactly. A matrix with a NaN in it is not row-stochastic.
#
# | | shape | |
# | --- | --- | --- |
# | `A` | `(..., m, n)` | any numbers |
# | returns | one `bool` | for a batch: whether all of its matrices are |
#
# *Fine print:* `A` may hold whole numbers.
#
# <!-- hints: is_row_stochastic -->
#
# 1. Two questions, joined by `and`: are all entries at least 0, are all row sums 1?
# 2. Both up to `atol`: an entry may be −atol, a sum may differ from 1 by atol either way.
# 3. Comparisons with NaN are False, so `(A >= -atol).all()` already refuses NaN.


# %% nbgrader={"grade_id": "is_row_stochastic", "solution": true}
def is_row_stochastic(A, atol=1e-8):
    ### BEGIN SOLUTION
    nonnegative = (A >= -atol).all()
    sums_to_one = (np.abs(A.sum(axis=-1) - 1) <= atol).all()
    return bool(nonnegative and sums_to_one)
    ### END SOLUTION


# %% [markdown]
# The first matrix has rows that sum to 1, the second only columns that do. Expect `(True, False)`:

# %%
W = np.array([[0.5, 0.5], [0.1, 0.9]])
is_row_stochastic(W), is_row_stochastic(W.T)

# %% nbgrader={"grade_id": "check_is_row_stochastic", "locked": true}
check("mixing.is_row_stochastic", is_row_stochastic)

# %% [markdown]
# ## 4 · `uniform_weights`
#
# <!-- facts: uniform_weights -->
#
# The simplest mixture gives every token the same share. Write `uniform_weights(n)`, the matrix
# `(n, n)` with which `mix` replaces every one of n tokens by their average.
#
# *Fine print:* the weights are float64.
#
# <!-- hints: uniform_weights -->
#
# 1. n tokens share a budget of 1 evenly. What does each get?
# 2. `np.full(shape, value)` makes an array with the same number everywhere.


# %% nbgrader={"grade_id": "uniform_weights", "solution": true}
def uniform_weights(n):
    ### BEGIN SOLUTION
    return np.full((n, n), 1 / n)
    ### END SOLUTION


# %% [markdown]
# Expect a 4 × 4 matrix of 0.25:

# %%
uniform_weights(4)

# %% nbgrader={"grade_id": "check_uniform_weights", "locked": true}
check("mixing.uniform_weights", uniform_weights)

# %% [markdown]
# ## 5 · `causal_mean_weights`
#
# <!-- facts: causal_mean_weights -->
#
# Someone who reads from left to right can average only what has been read so far. Write
# `causal_mean_weights(n)`, the matrix `(n, n)` with which output i becomes the average of tokens
# 0 … i, token i included.
#
# *Fine print:* the weights are float64.
#
# <!-- hints: causal_mean_weights -->
#
# 1. Write down the matrix for n = 3 by hand. Which entries are 0?
# 2. `np.tril(np.ones((n, n)))` keeps the lower triangle. What is missing?
# 3. Each row still has to sum to 1: you have already written a function for that.


# %% nbgrader={"grade_id": "causal_mean_weights", "solution": true}
def causal_mean_weights(n):
    ### BEGIN SOLUTION
    return normalize_rows(np.tril(np.ones((n, n))))
    ### END SOLUTION


# %% [markdown]
# Expect rows `[1, 0, 0]`, `[1/2, 1/2, 0]`, `[1/3, 1/3, 1/3]`:

# %%
causal_mean_weights(3)

# %% nbgrader={"grade_id": "check_causal_mean_weights", "locked": true}
check("mixing.causal_mean_weights", causal_mean_weights)

# %% [markdown]
# ## 6 · `window_weights`
#
# <!-- facts: window_weights -->
#
# A moving average looks at the neighbours only. Write `window_weights(n, width)`, the matrix
# `(n, n)` with which output i becomes the average of the `width` tokens centred on token i.
#
# `width` counts all tokens in the window, token i included, and is odd; an even width raises
# `ValueError`. At both ends of the sequence a part of the window has no tokens: it is cut off, and
# what remains is averaged, so that those rows sum to 1 too. The window may be wider than the
# sequence.
#
# *Fine print:* the weights are float64.
#
# <!-- hints: window_weights -->
#
# 1. The distance between tokens i and j is |i − j|. Which distances are inside the window?
# 2. `np.arange(n)[:, None] - np.arange(n)[None, :]` holds all differences i − j at once.
# 3. Rows at the edges hold fewer tokens. `normalize_rows` takes care of that.


# %% nbgrader={"grade_id": "window_weights", "solution": true}
def window_weights(n, width):
    ### BEGIN SOLUTION
    if width % 2 == 0:
        raise ValueError("window_weights: the width is even")
    positions = np.arange(n)
    distance = np.abs(positions[:, None] - positions[None, :])
    return normalize_rows((distance <= width // 2).astype(float))
    ### END SOLUTION


# %% [markdown]
# Expect thirds in the middle rows and halves in the first and the last:

# %%
window_weights(5, 3)

# %% nbgrader={"grade_id": "check_window_weights", "locked": true}
check("mixing.window_weights", window_weights)

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_mix", "grade": true, "locked": true}
examine("mixing.mix", mix).earned

# %% nbgrader={"grade_id": "hidden_mix", "grade": true, "locked": true, "points": 1}
# One more test of mix.
### BEGIN HIDDEN TESTS
X, order = np.random.normal(size=(5, 3)), np.random.permutation(5)
A = np.concatenate([np.eye(5)[order], np.full((1, 5), 0.2)])
expected = np.concatenate([X[order], X.mean(axis=0, keepdims=True)])
mixed = np.asarray(mix(A, X))
assert mixed.shape == (6, 3), (
    "an A of 6 rows and an X of 3 columns should give shape (6, 3): one row for each row of A"
)
assert np.allclose(mixed[:5], expected[:5]), (
    "rows of A with a single 1 should pick tokens out, here in another order"
)
assert np.allclose(mixed[5], expected[5]), (
    "a row of A with 1/n everywhere should give the mean of the tokens"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_normalize_rows", "grade": true, "locked": true}
examine("mixing.normalize_rows", normalize_rows).earned

# %% nbgrader={"grade_id": "hidden_normalize_rows", "grade": true, "locked": true, "points": 1}
# One more test of normalize_rows.
### BEGIN HIDDEN TESTS
amounts = np.random.uniform(1, 9, size=(7, 5))
amounts[2] = 0
expected = np.array([[a / max(sum(row), 1) for a in row] for row in amounts])
shares = np.asarray(normalize_rows(amounts))
assert shares.shape == (7, 5), "the shares should have the shape of the amounts, here (7, 5)"
assert np.allclose(shares, expected), (
    "each amount should be divided by the sum of its row, and a row of zeros should stay zeros"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_is_row_stochastic", "grade": true, "locked": true}
examine("mixing.is_row_stochastic", is_row_stochastic).earned

# %% nbgrader={"grade_id": "hidden_is_row_stochastic", "grade": true, "locked": true, "points": 1}
# One more test of is_row_stochastic.
### BEGIN HIDDEN TESTS
shares = np.random.dirichlet(np.ones(5), size=7)
swapped = shares.copy()
swapped[2, 0], swapped[2, 1] = shares[2, 0] + 2, shares[2, 1] - 2
columns = shares.T.copy()
found = [bool(is_row_stochastic(A)) for A in (shares, shares[::2].copy(), swapped, columns)]
assert found[:2] == [True, True], (
    "rows of shares should be row-stochastic: none is below 0 and each row sums to 1"
)
assert found[2] is False, "a negative entry should make it False, also where each row sums to 1"
assert found[3] is False, (
    "a matrix whose columns sum to 1, and whose rows do not, should make it False"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_uniform_weights", "grade": true, "locked": true}
examine("mixing.uniform_weights", uniform_weights).earned

# %% nbgrader={"grade_id": "hidden_uniform_weights", "grade": true, "locked": true, "points": 1}
# One more test of uniform_weights.
### BEGIN HIDDEN TESTS
for n in (1, 7, 13):
    weights = np.asarray(uniform_weights(n))
    assert weights.shape == (n, n), "n tokens should give shape (n, n), also for n = 1"
    assert np.allclose(weights, 1 / n), "every weight should be 1/n"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_causal_mean_weights", "grade": true, "locked": true}
examine("mixing.causal_mean_weights", causal_mean_weights).earned

# %% nbgrader={"grade_id": "hidden_causal_mean_weights", "grade": true, "locked": true, "points": 1}
# One more test of causal_mean_weights.
### BEGIN HIDDEN TESTS
expected = np.array([[1 / (i + 1) if j <= i else 0 for j in range(11)] for i in range(11)])
weights = np.asarray(causal_mean_weights(11))
assert weights.shape == (11, 11), "11 tokens should give shape (11, 11)"
assert np.allclose(weights, expected), "row i should hold 1/(i + 1) up to column i and 0 behind it"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_window_weights", "grade": true, "locked": true}
examine("mixing.window_weights", window_weights).earned

# %% nbgrader={"grade_id": "hidden_window_weights", "grade": true, "locked": true, "points": 1}
# One more test of window_weights.
### BEGIN HIDDEN TESTS
seen = np.array([[float(abs(i - j) <= 2) for j in range(17)] for i in range(17)])
expected = np.array([row / row.sum() for row in seen])
weights = np.asarray(window_weights(17, 5))
assert weights.shape == (17, 17), "17 tokens should give shape (17, 17)"
assert np.allclose(weights, expected), (
    "with width 5 each row should average its token and two on each side, fewer at the edges"
)
### END HIDDEN TESTS
