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
# # Exercises 10 · Masking
#
# You build three masks, the softmax that obeys a mask whatever the mask, and the test that tells
# whether a function obeys it. Fill in the cells marked *your code* and run the check below each.
# It tells you which part of the answer holds, and where one does not, what your code did on a small
# example.
#
# A mask is a boolean tensor and `True` **where attention is allowed**. Row i belongs to query i,
# column j to key j. Positions count from 0. Functions leave what they are given as it is.

# %%
import torch

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `causal_mask`
#
# <!-- facts: causal_mask -->
#
# In a language model nobody looks ahead: a token may attend to itself and to what came before. Write
# `causal_mask(n_queries, n_keys=None)`.
#
# | | | |
# | --- | --- | --- |
# | `n_queries` | a whole number, m | |
# | `n_keys` | a whole number, n, at least m | as many as queries unless it is given |
# | returns | `(m, n)`, boolean | True where query i may attend to key j |
#
# With fewer queries than keys, the queries are the *last* positions of the keys: query 0 stands at
# position n − m, the last query at position n − 1. That is the situation of a model that writes: the
# old tokens are keys only, the new ones are queries too.
#
# <!-- hints: causal_mask -->
#
# 1. Write down the positions of the queries and of the keys. Which comparison of the two is the
#    mask?
# 2. The keys stand at 0 … n−1, the queries at n−m … n−1.
# 3. `torch.arange(a, b)[:, None] >= torch.arange(c)` compares every row with every column.


# %% nbgrader={"grade_id": "causal_mask", "solution": true}
def causal_mask(n_queries, n_keys=None):
    ### BEGIN SOLUTION
    n_keys = n_queries if n_keys is None else n_keys
    queries = torch.arange(n_keys - n_queries, n_keys)  # their positions
    return queries[:, None] >= torch.arange(n_keys)
    ### END SOLUTION


# %% [markdown]
# Two queries and four keys. Expect three `True` in the first row and four in the second:

# %%
causal_mask(2, 4)

# %% nbgrader={"grade_id": "check_causal_mask", "locked": true}
check("masking.causal_mask", causal_mask)

# %% [markdown]
# ## 2 · `padding_mask`
#
# <!-- facts: padding_mask -->
#
# Sequences of a batch are filled up to a common length. Nobody is to attend to what they were filled
# up with. Write `padding_mask(lengths, max_length)`.
#
# | | shape | |
# | --- | --- | --- |
# | `lengths` | `(b,)`, whole numbers | how many tokens each sequence has, from 0 to max_length |
# | `max_length` | a whole number | the length they were filled up to |
# | returns | `(b, 1, max_length)`, boolean | True where the key is a token |
#
# The tokens stand first, the padding behind them. The axis of 1 is for the queries: all of them may
# attend to the same keys. `lengths` may have more axes than one: `(a, b)` gives
# `(a, b, 1, max_length)`, and so on. Do not change `lengths`.
#
# <!-- hints: padding_mask -->
#
# 1. Position j of sequence b is a token if j is less than its length.
# 2. Positions are (max_length,), lengths (b,). Which axes of 1 make them compare to (b, 1,
#    max_length)?
# 3. `lengths[..., None, None]` is (b, 1, 1).


# %% nbgrader={"grade_id": "padding_mask", "solution": true}
def padding_mask(lengths, max_length):
    ### BEGIN SOLUTION
    return torch.arange(max_length) < lengths[..., None, None]
    ### END SOLUTION


# %% [markdown]
# Two sequences, of 3 and of 1 token. Expect `torch.Size([2, 1, 4])`, three `True` and one `True`:

# %%
padding_mask(torch.tensor([3, 1]), 4).shape, padding_mask(torch.tensor([3, 1]), 4)

# %% nbgrader={"grade_id": "check_padding_mask", "locked": true}
check("masking.padding_mask", padding_mask)

# %% [markdown]
# ## 3 · `sliding_window_mask`
#
# <!-- facts: sliding_window_mask -->
#
# In long sequences each token attends to its neighbours only. Write
# `sliding_window_mask(n, width, causal=False)`, which returns an `(n, n)` boolean tensor.
#
# - Without `causal`, the window is centred: token i attends to `width` tokens, itself in the middle,
#   fewer at the edges. `width` is odd; for an even one, raise a `ValueError`.
# - With `causal=True`, the window ends with the token: token i attends to itself and to the
#   `width − 1` tokens before it, fewer at the start. Any width of at least 1 is right.
#
# A window may be wider than the sequence.
#
# <!-- hints: sliding_window_mask -->
#
# 1. What matters is the difference of the positions. Make the matrix of all i − j first.
# 2. A centred window of 5 reaches 2 to each side. How far does one of `width` reach?
# 3. With `causal`, i − j runs from 0 for the token itself to width − 1 for the oldest.


# %% nbgrader={"grade_id": "sliding_window_mask", "solution": true}
def sliding_window_mask(n, width, causal=False):
    ### BEGIN SOLUTION
    back = torch.arange(n)[:, None] - torch.arange(n)  # how far key j lies behind query i
    if causal:
        return (back >= 0) & (back < width)
    if width % 2 == 0:
        raise ValueError(f"expected an odd width, got {width}")
    return back.abs() <= width // 2
    ### END SOLUTION


# %% [markdown]
# The two kinds of window, each of three tokens. Expect rows of 2, 3, 3, 2 and of 1, 2, 3, 3:

# %%
sliding_window_mask(4, 3).sum(-1), sliding_window_mask(4, 3, causal=True).sum(-1)

# %% nbgrader={"grade_id": "check_sliding_window_mask", "locked": true}
check("masking.sliding_window_mask", sliding_window_mask)

# %% [markdown]
# ## 4 · `masked_softmax`
#
# <!-- facts: masked_softmax -->
#
# Write `masked_softmax(scores, mask)`, the weights that follow from scores when only some keys are
# allowed:
#
# $$A_{ij} = \frac{M_{ij}\, e^{S_{ij}}}{\sum_l M_{il}\, e^{S_{il}}} .$$
#
# | | shape | |
# | --- | --- | --- |
# | `scores` | `(..., m, n)`, any floating dtype | |
# | `mask` | boolean, broadcasts to `(..., m, n)` | True where allowed |
# | returns | `(..., m, n)`, the dtype of the scores | rows sum to 1, or are all 0 |
#
# Three things are asked for beyond the formula. A row in which no key is allowed has weights 0, not
# NaN. No gradient is NaN, not in such rows either. And `scores` of dtype float16 must come out as
# float16: there −1e9 does not exist and large exponentials are infinite. A guard added to the
# denominator may be 1e-12 at most; in float16 that is 0 and guards nothing. `torch.softmax` is
# allowed.
#
# *Fine print:* numbers come in float64, float32 and float16; no masked score exceeds the allowed ones
# of its row by more than 8.
#
# <!-- hints: masked_softmax -->
#
# 1. For rows with a key, `scores.masked_fill(~mask, -torch.inf)` and a softmax are all.
# 2. Which rows have a key? `mask.any(dim=-1, keepdim=True)`. The others must not become rows of
#    nothing but −∞.
# 3. Fill where the mask is False *and* the row has a key; after the softmax fill all masked weights
#    with 0.


# %% nbgrader={"grade_id": "masked_softmax", "solution": true}
def masked_softmax(scores, mask):
    ### BEGIN SOLUTION
    some_key = mask.any(dim=-1, keepdim=True)
    # A row without a key keeps its scores, so that no NaN arises, and loses its weights.
    scores = scores.masked_fill(~mask & some_key, -torch.inf)
    return scores.softmax(dim=-1).masked_fill(~mask, 0)
    ### END SOLUTION


# %% [markdown]
# Expect `[[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]`:

# %%
masked_softmax(
    torch.tensor([[1.0, 1.0, 5.0], [2.0, 0.0, 3.0]]),
    torch.tensor([[True, True, False], [False, False, False]]),
)

# %% nbgrader={"grade_id": "check_masked_softmax", "locked": true}
check("masking.masked_softmax", masked_softmax)

# %% [markdown]
# ## 5 · `leak`
#
# <!-- facts: leak -->
#
# Does a function obey a mask? Where token j has no influence on output i, the derivative of out_i
# by x_j is 0. Write `leak(f, x, mask)`, which returns the largest of these derivatives where there
# should be none, as a number:
#
# $$\max_{(i, j):\, M_{ij} = \text{False}} \;\; \max_{a,\, c} \left|
# \frac{\partial\, \mathrm{out}_{ia}}{\partial\, x_{jc}} \right| ,
# \qquad \mathrm{out} = f(x) .$$
#
# | | shape | |
# | --- | --- | --- |
# | `f` | a function | maps `(..., n, d)` to `(..., m, d')` by torch operations |
# | `x` | `(..., n, d)` | one token per row; it comes without `requires_grad` |
# | `mask` | boolean, broadcasts to `(..., m, n)` | True where output i may depend on token j |
# | returns | a number | 0 where nothing leaks, or nothing is masked |
#
# Every derivative counts by itself: a runs over the features of the output, c over those of the
# token. `f` treats each sequence of a batch by itself, and the largest derivative of all sequences is
# returned.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: leak -->
#
# 1. `x.detach().clone().requires_grad_()` is a copy that derivatives can be taken by.
# 2. `torch.autograd.grad(out[..., i, a].sum(), x, retain_graph=True)[0]` has the shape of x. Which
#    of its rows may be anything but 0?
# 3. Of `gradient.abs()` keep the rows j where mask[..., i, j] is False; remember the largest.


# %% nbgrader={"grade_id": "leak", "solution": true}
def leak(f, x, mask):
    ### BEGIN SOLUTION
    x = x.detach().clone().requires_grad_()
    out = f(x)  # (..., m, d')
    allowed = mask.broadcast_to(*out.shape[:-1], x.shape[-2])  # (..., m, n)
    worst = 0.0
    for i in range(out.shape[-2]):
        for a in range(out.shape[-1]):
            (gradient,) = torch.autograd.grad(out[..., i, a].sum(), x, retain_graph=True)
            seen = gradient.abs().masked_fill(allowed[..., i, :, None], 0)  # (..., n, d)
            worst = max(worst, seen.max().item())
    return worst
    ### END SOLUTION


# %% [markdown]
# A function in which output 0 takes −5 times token 1, which it must not see. Expect `5.0`:

# %%
A = torch.tensor([[1.0, -5.0], [2.0, 1.0]])
leak(lambda x: A @ x, torch.tensor([[1.0], [3.0]]), torch.tensor([[True, False], [True, True]]))

# %% nbgrader={"grade_id": "check_leak", "locked": true}
check("masking.leak", leak)

# %% [markdown] nbgrader={"grade_id": "explain_before", "grade": true, "solution": true, "points": 4}
# ## 6 · Zero afterwards?
#
# <!-- facts: explain_before -->
#
# A classmate computes the softmax of all scores and then sets the forbidden weights to 0. Explain
# in three sentences what is wrong with the rows, what leaks through the denominator, and what
# $-\infty$ before the softmax does in its place.
#
# | points | for |
# | --: | --- |
# | 1 | the sums of the rows |
# | 2 | the leak: what the allowed weights still depend on |
# | 1 | what $-\infty$ does to numerator and denominator |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# The weights that are left sum to less than 1, by what was set to 0. They were divided by a sum
# over all keys, forbidden ones included, so a change in a token that must not be seen changes
# them: that is a leak. With $-\infty$ in place of forbidden scores these terms are $e^{-\infty} =
# 0$ everywhere, and the allowed weights keep their ratios and sum to 1.
#
# For the points, in this order: (1) the rows do not sum to 1 any more; (2) the denominator still
# holds the forbidden scores, so the allowed weights depend on tokens that must not be seen; (1)
# with −∞ the forbidden terms are 0 in numerator and denominator: the allowed weights keep their
# ratios and sum to 1.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_causal_mask", "grade": true, "locked": true}
examine("masking.causal_mask", causal_mask).earned

# %% nbgrader={"grade_id": "hidden_causal_mask", "grade": true, "locked": true, "points": 1}
# One more test of causal_mask.
### BEGIN HIDDEN TESTS
for m, n in ((1, 9), (2, 9), (5, 9), (9, 9), (6, 11)):
    expected = torch.tensor([[j <= i + n - m for j in range(n)] for i in range(m)])
    mask = causal_mask(m, n)
    assert mask.shape == (m, n), "m queries and n keys should give shape (m, n), also for one query"
    assert torch.equal(mask, expected), (
        "with n keys query i should stand at place n - m + i, and see itself and what came before"
    )
assert torch.equal(causal_mask(7), torch.ones(7, 7).tril() > 0), (
    "without n_keys there should be as many keys as queries"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_padding_mask", "grade": true, "locked": true}
examine("masking.padding_mask", padding_mask).earned

# %% nbgrader={"grade_id": "hidden_padding_mask", "grade": true, "locked": true, "points": 1}
# One more test of padding_mask.
### BEGIN HIDDEN TESTS
lengths = torch.cat([torch.tensor([0, 9]), torch.randint(1, 9, (3,))])
expected = torch.tensor([[[j < length for j in range(9)]] for length in lengths.tolist()])
mask = padding_mask(lengths, 9)
assert mask.shape == (5, 1, 9), "5 lengths should give shape (5, 1, 9)"
assert torch.equal(mask, expected), (
    "the first `length` places should be True and the rest False, for lengths 0 and 9 too"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_sliding_window_mask", "grade": true, "locked": true}
examine("masking.sliding_window_mask", sliding_window_mask).earned

# %% nbgrader={"grade_id": "hidden_sliding_window_mask", "grade": true, "locked": true, "points": 1}
# One more test of sliding_window_mask.
### BEGIN HIDDEN TESTS
places = range(11)
centred = torch.tensor([[abs(i - j) <= 2 for j in places] for i in places])
behind = torch.tensor([[0 <= i - j < 4 for j in places] for i in places])
mask = sliding_window_mask(11, 5)
assert mask.shape == (11, 11), "11 tokens should give shape (11, 11)"
assert torch.equal(mask, centred), (
    "with width 5 a token should see itself and two on each side, fewer at the edges"
)
mask = sliding_window_mask(11, 4, causal=True)
assert mask.shape == (11, 11), "with causal=True 11 tokens should give shape (11, 11)"
assert torch.equal(mask, behind), (
    "with causal=True and width 4 a token should see itself and the three before it"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_masked_softmax", "grade": true, "locked": true}
examine("masking.masked_softmax", masked_softmax).earned

# %% nbgrader={"grade_id": "hidden_masked_softmax", "grade": true, "locked": true, "points": 1}
# One more test of masked_softmax.
### BEGIN HIDDEN TESTS
scores, mask = torch.randn(2, 3, 5), torch.rand(3, 5) < 0.5
mask[0], mask[1:, 2] = False, True
odds = scores.exp() * mask
expected = odds / odds.sum(-1, keepdim=True).clamp(min=1e-9)
for given, tolerance in ((scores.clone(), 1e-5), (scores.half(), 4e-3)):
    weights = masked_softmax(given, mask.clone())
    assert weights.shape == (2, 3, 5), (
        "the weights should have the shape of the scores, which the mask broadcasts to"
    )
    assert weights.dtype == given.dtype, (
        "the weights should have the dtype of the scores, float16 too"
    )
    assert torch.allclose(weights.float(), expected, atol=tolerance), (
        "the weights should be exp(score) over the allowed keys of a row, 0 elsewhere and in empty rows"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_leak", "grade": true, "locked": true}
examine("masking.leak", leak).earned

# %% nbgrader={"grade_id": "hidden_leak", "grade": true, "locked": true, "points": 1}
# One more test of leak.
### BEGIN HIDDEN TESTS
# A case of a check, since through a function of this cell no gradient would reach the notebook.
from dataclasses import replace

from attncourse.checks import exercises
from attncourse.checks.exercise import Criterion
from attncourse.checks.judging import judge
from attncourse.bank.masking.leak import leak_case


A, W = torch.randn(3, 5).double(), torch.randn(2, 4).double()


def by_hand(f, x, mask):  # out = A x W: the derivative of out_ia by x_jc is A_ij W_ca
    return float(A.abs().masked_fill(mask, 0).max() * W.abs().max())


mask = A.abs() > A.abs().median()
case = leak_case("linear_mix", torch.randn(5, 2).double(), mask, A=A, W=W)
criteria = (Criterion("the largest masked entry of A times that of W", 1, lambda rng: [case]),)
exercise = exercises()["masking.leak"]
exercise = replace(exercise, reference=by_hand, criteria=criteria, mistakes=())  # no name
assert judge(exercise, leak, 0).passed, (
    "for f(x) = A x W it should be the largest masked |A_ij| times the largest |W_ca|"
)
### END HIDDEN TESTS
