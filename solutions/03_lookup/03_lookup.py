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
# # Exercises 3 · Soft lookup
#
# You write the three functions of chapter 3. The other two use the first, so go in order. Fill in
# the cells marked *your code*, run the check below each of them, and read what it says: it tells
# you which part of the answer holds, and where one does not, on which small example and what your
# function did there. Run a check as often as you like; it uses new numbers every time.
#
# Where a shape is written `(..., m, n)`, the dots stand for any number of batch axes, none
# included. Any array that comes in may hold whole numbers, an average of which has decimals.
# Functions leave what they are given as it is.

# %%
import numpy as np

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `softmax`
#
# <!-- facts: softmax -->
#
# Scores can be any numbers; weights are positive and sum to 1. Softmax turns the ones into the
# others:
#
# $$\operatorname{softmax}(x)_i = \frac{\exp(x_i / T)}{\sum_j \exp(x_j / T)} .$$
#
# Write `softmax(x, axis=-1, temperature=1.0)`.
#
# | | | |
# | --- | --- | --- |
# | `x` | an array of any shape, at least one axis | scores, all of them finite |
# | `axis` | an `int`, as NumPy counts axes | the weights along it sum to 1; j runs along it |
# | `temperature` | a number above 0 | the T of the formula |
# | returns | the shape of `x` | |
#
# The weights are to be right for large scores too. Every score may be near 10000, or near −10000,
# and the rows of a matrix may be far apart from each other. The array that was passed in stays as
# it is.
#
# *Fine print:* `x` may hold whole numbers; a guard in a denominator may be 1e-12 at most.
#
# <!-- hints: softmax -->
#
# 1. Three steps: divide by the temperature, exponentiate, divide by the sum along the axis.
# 2. `keepdims=True` keeps the summed axis with length 1, so that the division lines up.
# 3. exp(10000) is infinity. Which number can you subtract from all scores of a slice without
#    changing a weight, so that the largest exponent is 0?


# %% nbgrader={"grade_id": "softmax", "solution": true}
def softmax(x, axis=-1, temperature=1.0):
    ### BEGIN SOLUTION
    weights = np.exp((x - x.max(axis=axis, keepdims=True)) / temperature)
    return weights / weights.sum(axis=axis, keepdims=True)
    ### END SOLUTION


# %% [markdown]
# Scores that are logarithms of 1, 3 and 4 give weights in the proportion 1 : 3 : 4. Expect
# `[0.125 0.375 0.5]`:

# %%
softmax(np.log(np.array([1.0, 3.0, 4.0])))

# %% nbgrader={"grade_id": "check_softmax", "locked": true}
check("lookup.softmax", softmax)

# %% [markdown]
# ## 2 · `soft_lookup`
#
# <!-- facts: soft_lookup -->
#
# A soft lookup compares a query with every key and returns a blend of all values. The score of
# key j is the plain dot product with the query, and softmax at the given temperature T makes
# weights of the scores:
#
# $$a_j = \operatorname{softmax}_j(q \cdot k_j),
# \qquad u = \sum_j a_j\, v_j .$$
#
# Write `soft_lookup(query, keys, values, temperature=1.0)`. There may be one query or many, and a
# value may be a number or a vector:
#
# | `query` | `keys` | `values` | returns |
# | --- | --- | --- | --- |
# | `(d,)` | `(n, d)` | `(n,)` | one number |
# | `(d,)` | `(n, d)` | `(n, d_v)` | `(d_v,)` |
# | `(m, d)` | `(n, d)` | `(n,)` | `(m,)` |
# | `(m, d)` | `(n, d)` | `(n, d_v)` | `(m, d_v)` |
# | `(..., m, d)` | `(..., n, d)` or `(n, d)` | `(..., n, d_v)` or `(n, d_v)` | `(..., m, d_v)` |
#
# The last row is a batch: of dictionaries with their queries, or of queries to one dictionary.
#
# *Fine print:* `query`, `keys` and `values` may hold whole numbers; a guard in a denominator may be
# 1e-12 at most.
#
# <!-- hints: soft_lookup -->
#
# 1. Three steps: a score for every key, weights from the scores, a weighted sum of values.
# 2. `query @ np.swapaxes(keys, -1, -2)` has shape (n,) for a query (d,) and (..., m, n) for queries
#    (..., m, d).
# 3. `weights @ values` does for values (n,) and (n, d_v) alike.


# %% nbgrader={"grade_id": "soft_lookup", "solution": true}
def soft_lookup(query, keys, values, temperature=1.0):
    ### BEGIN SOLUTION
    scores = query @ np.swapaxes(keys, -1, -2)
    return softmax(scores, temperature=temperature) @ values
    ### END SOLUTION


# %% [markdown]
# The query below has the score 0 with the first key and log 3 with the second, so the second value
# gets three quarters. Expect 17.5:

# %%
soft_lookup(np.array([1.0, 0.0]), np.array([[0.0, 2.0], [np.log(3), 5.0]]), np.array([10.0, 20.0]))

# %% nbgrader={"grade_id": "check_soft_lookup", "locked": true}
check("lookup.soft_lookup", soft_lookup)

# %% [markdown]
# ## 3 · `kernel_regression`
#
# <!-- facts: kernel_regression -->
#
# Noisy points $(x_j, y_j)$ are a dictionary as well: ask it for an x between the points, and let it
# answer with an average of the y nearby. The weight of a point falls with its distance from the
# query as a Gaussian of width $h$, the *bandwidth*:
#
# $$\hat y(x^*) = \sum_j a_j\, y_j ,
# \qquad a_j = \frac{\exp\!\big(-(x^* - x_j)^2 / (2h^2)\big)}
#                   {\sum_l \exp\!\big(-(x^* - x_l)^2 / (2h^2)\big)} .$$
#
# Write `kernel_regression(x_query, x, y, bandwidth)`.
#
# | | shape | |
# | --- | --- | --- |
# | `x_query` | `(..., m)` | where the curve is wanted |
# | `x`, `y` | `(..., n)` | the points, in any order |
# | `bandwidth` | a number above 0 | h |
# | returns | `(..., m)` | |
#
# Far from every point all the exponentials round to 0, and 0/0 is not a number. The answer there
# is to be what the formula gives in exact arithmetic: nearly all of the weight is on the nearest
# point, or shared out between two that are as near, or nearly.
#
# *Fine print:* `x_query`, `x` and `y` may hold whole numbers; a guard in a denominator may be 1e-12
# at most.
#
# <!-- hints: kernel_regression -->
#
# 1. All distances at once: `x_query[..., :, None] - x[..., None, :]` has shape (..., m, n).
# 2. The Gaussian is an exponential. What do you hand to `softmax` so that its exponential is the
#    Gaussian?
# 3. The result is a weighted average of y along the last axis of the weights.


# %% nbgrader={"grade_id": "kernel_regression", "solution": true}
def kernel_regression(x_query, x, y, bandwidth):
    ### BEGIN SOLUTION
    distance = x_query[..., :, None] - x[..., None, :]
    weights = softmax(-(distance**2) / (2 * bandwidth**2))
    return (weights * y[..., None, :]).sum(axis=-1)
    ### END SOLUTION


# %% [markdown]
# Half-way between two points the answer is the mean of their heights, whatever the bandwidth, and
# far to the right it is the height of the right one. Expect `[4. 5.]`:

# %%
kernel_regression(np.array([1.0, 90.0]), np.array([0.0, 2.0]), np.array([3.0, 5.0]), 0.7)

# %% nbgrader={"grade_id": "check_kernel_regression", "locked": true}
check("lookup.kernel_regression", kernel_regression)

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_softmax", "grade": true, "locked": true}
examine("lookup.softmax", softmax).earned

# %% nbgrader={"grade_id": "hidden_softmax", "grade": true, "locked": true, "points": 1}
# One more test of softmax.
### BEGIN HIDDEN TESTS
x = np.random.normal(size=(5, 3))
columns = np.stack([np.exp(2 * c) / sum(np.exp(2 * c)) for c in x.T], axis=-1)
rows = np.stack([np.exp(r) / sum(np.exp(r)) for r in x])
far = x + np.array([[3e4], [0.0], [-3e4], [1e4], [5.0]])
p = np.asarray(softmax(x, axis=0, temperature=0.5))
assert p.shape == (5, 3), "softmax along axis 0 should have the shape of the scores, here (5, 3)"
assert np.allclose(p, columns), (
    "with axis=0 and temperature=0.5 each column should be exp(x / 0.5) over the sum of its column"
)
p = np.asarray(softmax(far))
assert p.shape == (5, 3), (
    "rows of scores far apart, near 30000 and -30000, should give the shape of the scores"
)
assert np.allclose(p, rows), (
    "adding a number to a row, 30000 or -30000, should not change its weights"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_soft_lookup", "grade": true, "locked": true}
examine("lookup.soft_lookup", soft_lookup).earned

# %% nbgrader={"grade_id": "hidden_soft_lookup", "grade": true, "locked": true, "points": 1}
# One more test of soft_lookup.
### BEGIN HIDDEN TESTS
amounts, prices = np.random.uniform(1, 9, size=(7, 3)), np.random.normal(size=(7, 2))
# A query that picks out one feature of log(amounts) reads that column's amounts as proportions.
expected = np.array([[np.average(price, weights=a) for price in prices.T] for a in amounts.T])
squared = np.average(prices[:, 0], weights=amounts[:, 1] ** 2)
keys, heights = np.log(amounts), prices[:, 0].copy()
answer = np.asarray(soft_lookup(np.eye(3), keys.copy(), prices))
assert answer.shape == (3, 2), "3 queries and values of 2 numbers should give shape (3, 2)"
assert np.allclose(answer, expected), (
    "weights should be in the proportion of exp(query · key), without a further factor"
)
answer = np.asarray(soft_lookup(np.array([0.0, 1.0, 0.0]), keys, heights, temperature=0.5))
assert answer.shape == (), (
    "one query, and values that are numbers, should give one number, of shape ()"
)
assert np.allclose(answer, squared), (
    "with temperature 0.5 scores should be divided by 0.5, which squares the proportions"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_kernel_regression", "grade": true, "locked": true}
examine("lookup.kernel_regression", kernel_regression).earned

# %% nbgrader={"grade_id": "hidden_kernel_regression", "grade": true, "locked": true, "points": 1}
# One more test of kernel_regression.
### BEGIN HIDDEN TESTS
x_query, h = np.random.uniform(-1, 4, size=11), 1.7
# Between two points the curve is a logistic function with its middle half-way.
expected = -2 + 8 / (1 + np.exp(-(3.0 - 1.0) * (x_query - 2.0) / h**2))
curve = np.asarray(kernel_regression(x_query, np.array([1.0, 3.0]), np.array([-2.0, 6.0]), h))
assert curve.shape == (11,), "11 places should give shape (11,): one height for each"
assert np.allclose(curve, expected), (
    "between two points the curve should follow the formula, with h squared and its factor of 2"
)
places, points = np.array([-500.0, 500.0]), (np.array([3.0, 1.0]), np.array([6.0, -2.0]))
far = np.asarray(kernel_regression(places, *points, h))
assert far.shape == (2,), "2 places should give shape (2,), also far from every point"
assert np.allclose(far, [-2.0, 6.0]), (
    "500 away from every point the answer should be the height of the nearest, not NaN"
)
### END HIDDEN TESTS
