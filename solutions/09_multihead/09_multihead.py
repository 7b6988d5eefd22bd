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
# # Exercises 9 · Multi-head attention
#
# You give attention several heads: first the two steps that cut the features into heads and join
# them again, then the module that computes all heads at once, then the proof that it does what a
# list of heads does. Fill in the cells marked *your code* and run the check below each.
#
# A token is a row. Where a shape is written `(..., n, d)`, the dots stand for any number of batch
# axes, none included. Results keep the floating dtype and the precision of what came in, and
# gradients must be able to flow through everything: no `.detach()`, no `.numpy()` (except in the
# last exercise, which copies weights). Functions leave what they are given as it is.

# %%
import math

import torch
from torch import nn

from attncourse.checks import check, examine
from attncourse.kqv import AttentionHead

# %% [markdown]
# ## 1 · `split_heads`
#
# <!-- facts: split_heads -->
#
# One projection makes the features of all heads at once, head 0's first. Write
# `split_heads(x, n_heads)`, which gives each head its run of features and puts the axis of the
# heads before the tokens, so that everything behind it is a sequence `(n, d/h)` again.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., n, d)` | one token per row |
# | `n_heads` | a number | h |
# | returns | `(..., h, n, d/h)` | head i holds features i·d/h to (i+1)·d/h − 1 of every token |
#
# Where h does not divide d, raise `ValueError`.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: split_heads -->
#
# 1. Two steps: cut the last axis in two, then let two axes change places.
# 2. The last axis holds head 0's features, then head 1's: cut it into (h, d/h), not (d/h, h).
# 3. `x.reshape(*x.shape[:-1], n_heads, d_head)`, then `.transpose(-3, -2)`.


# %% nbgrader={"grade_id": "split_heads", "solution": true}
def split_heads(x, n_heads):
    ### BEGIN SOLUTION
    *batch, n, d = x.shape
    if d % n_heads:
        raise ValueError(f"{n_heads} heads do not divide {d} features")
    return x.reshape(*batch, n, n_heads, d // n_heads).transpose(-3, -2)
    ### END SOLUTION


# %% [markdown]
# Two tokens of six features, three heads. Expect the numbers 2, 3 and 8, 9 for head 1:

# %%
split_heads(torch.arange(12.0).reshape(2, 6), 3)[1]

# %% nbgrader={"grade_id": "check_split_heads", "locked": true}
check("multihead.split_heads", split_heads)

# %% [markdown]
# ## 2 · `merge_heads`
#
# <!-- facts: merge_heads -->
#
# The way back. Write `merge_heads(x)`, which puts the heads' features side by side again, head 0's
# first.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., h, n, d_head)` | a sequence for each head |
# | returns | `(..., n, h·d_head)` | one token per row |
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: merge_heads -->
#
# 1. Undo `split_heads` step by step, the last step first.
# 2. First (..., h, n, d/h) to (..., n, h, d/h), then join the last two axes.
# 3. `.transpose(-3, -2)`, then `.flatten(-2)`, or `.reshape(*batch, n, h * d_head)`.


# %% nbgrader={"grade_id": "merge_heads", "solution": true}
def merge_heads(x):
    ### BEGIN SOLUTION
    *batch, h, n, d_head = x.shape
    return x.transpose(-3, -2).reshape(*batch, n, h * d_head)
    ### END SOLUTION


# %% [markdown]
# Two heads of one token. Expect `tensor([[1., 2., 3., 4.]])`:

# %%
merge_heads(torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]]))

# %% nbgrader={"grade_id": "check_merge_heads", "locked": true}
check("multihead.merge_heads", merge_heads)

# %% [markdown]
# ## 3 · `MultiHeadAttention`
#
# <!-- facts: MultiHeadAttention -->
#
# Write `MultiHeadAttention(d_model, n_heads, n_kv_heads=None, bias=True)`, an `nn.Module` with four
# layers, each an `nn.Linear`, where d_head = d_model / n_heads:
#
# | layer | from | to | |
# | --- | --- | --- | --- |
# | `W_q` | d_model | d_model | the queries of all heads |
# | `W_k`, `W_v` | d_model | n_kv_heads · d_head | the keys and the values of all heads |
# | `W_o` | d_model | d_model | mixes what the heads return |
#
# With `bias=True` all four have a bias, with `bias=False` none has. `n_kv_heads` is `n_heads` unless
# given. Head i uses features i·d_head to (i+1)·d_head − 1 of each projection. With fewer key and
# value heads each of them serves a run of n_heads / n_kv_heads neighbouring query heads: with 4 and
# 2, query heads 0 and 1 use key and value head 0, query heads 2 and 3 use key and value head 1.
#
# - `forward(query, key=None, value=None, mask=None)`: query `(..., m, d_model)`, key and value
#   `(..., n, d_model)`. Without a key it is the query, without a value it is the key. In each head
#   softmax(QKᵀ/√d_head)V; the heads' outputs stand side by side and go through `W_o`. Returns the
#   output alone, `(..., m, d_model)`.
# - `weights(query, key=None, value=None, mask=None)`: the maps of all heads, `(..., h, m, n)`.
# - `mask`: boolean, `True` where attention is allowed. `(m, n)` or `(b, m, n)` holds for every head;
#   `(b, h, m, n)` has a mask for each head. Every query will be allowed at least one key.
# - Where n_heads does not divide d_model, building the module raises `ValueError`.
#
# PyTorch has a finished module for this. Here you build it, so the function that stands behind
# `nn.MultiheadAttention`, `multi_head_attention_forward` of `torch.nn.functional`, may not be
# called. The check notices. Everything else is allowed, also `scaled_dot_product_attention`, which
# you wrote in chapter 5. The check puts weights of its own into your module by the names above.
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most; a finite number in place of −∞ may be −1e9 or lower.
#
# <!-- hints: MultiHeadAttention -->
#
# 1. Project, split, attend, merge, project: five lines, and each exists already.
# 2. Attention does not care about an axis for the heads: it is one more batch axis.
# 3. Keys and values of n_kv_heads heads: `repeat_interleave(n_heads // n_kv_heads, dim=-3)`.
# 4. Only a mask with a batch axis and none for the heads needs `unsqueeze(-3)`.


# %% nbgrader={"grade_id": "MultiHeadAttention", "solution": true}
class MultiHeadAttention(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        d_kv = self.n_kv_heads * (d_model // n_heads)
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_kv, bias=bias)
        self.W_v = nn.Linear(d_model, d_kv, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)

    def heads_of(self, x):
        """Keys or values, (..., h, n, d_head), each as often as there are queries for it."""
        x = split_heads(x, self.n_kv_heads)
        return x.repeat_interleave(self.n_heads // self.n_kv_heads, dim=-3)

    def weights(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        q, k = split_heads(self.W_q(query), self.n_heads), self.heads_of(self.W_k(key))
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., h, m, n)
        if mask is not None:
            if 2 < mask.ndim < scores.ndim:
                mask = mask.unsqueeze(-3)
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(dim=-1)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        mixed = self.weights(query, key, value, mask) @ self.heads_of(self.W_v(value))
        return self.W_o(merge_heads(mixed))

    ### END SOLUTION


# %% [markdown]
# Expect `torch.Size([2, 5, 12])`, `torch.Size([2, 3, 5, 7])` and `(4, 12)`:

# %%
attention = MultiHeadAttention(d_model=12, n_heads=3)
query, key = torch.ones(2, 5, 12), torch.ones(2, 7, 12)
shared = MultiHeadAttention(d_model=12, n_heads=3, n_kv_heads=1)
attention(query, key).shape, attention.weights(query, key).shape, tuple(shared.W_k.weight.shape)

# %% nbgrader={"grade_id": "check_MultiHeadAttention", "locked": true}
check("multihead.MultiHeadAttention", MultiHeadAttention)

# %% [markdown]
# ## 4 · `naive_to_batched`
#
# <!-- facts: naive_to_batched -->
#
# `MultiHeadNaive`, given in the cell below, is the same attention as a list of heads, each an
# `AttentionHead` of chapter 5 with its own small `W_q`, `W_k` and `W_v`.
#
# Write `naive_to_batched(naive)`, which returns a `MultiHeadAttention` (yours) that computes what
# `naive` computes. Its weights are copies: training the one must not change the other.
#
# What you may use of `naive`: the list `naive.heads`, the layers `W_q`, `W_k` and `W_v` of each head
# (`nn.Linear` from d_model to d_head), and the layer `naive.W_o`. Either all of these have a bias or
# none has. The check hands over a module that holds these layers and nothing else, and looks first
# at the weights of the module that you return, then at what it returns, so a part of the points does
# not depend on your answer to exercise 3.
#
# Mind that `nn.Linear` stores its weight as `(d_out, d_in)`.
#
# <!-- hints: naive_to_batched -->
#
# 1. `len(naive.heads)` heads, `naive.W_o.in_features` features; is `naive.W_o.bias` None?
# 2. Head i's output stands in columns i·d_head … of the projection: these are rows of its stored
#    weight.
# 3. `torch.cat([head.W_q.weight for head in naive.heads])`, and copy inside `torch.no_grad()`.


# %% nbgrader={"grade_id": "naive_to_batched", "solution": true}
class MultiHeadNaive(nn.Module):
    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        d_head = d_model // n_heads
        self.heads = nn.ModuleList(
            AttentionHead(d_model, d_head, bias=bias) for _ in range(n_heads)
        )
        self.W_o = nn.Linear(n_heads * d_head, d_model, bias=bias)

    def forward(self, x, mask=None):
        return self.W_o(torch.cat([head(x, mask) for head in self.heads], dim=-1))


def naive_to_batched(naive):
    ### BEGIN SOLUTION
    bias = naive.W_o.bias is not None
    batched = MultiHeadAttention(naive.W_o.in_features, len(naive.heads), bias=bias)
    state = {f"W_o.{part}": tensor for part, tensor in naive.W_o.state_dict().items()}
    for name in ("W_q", "W_k", "W_v"):
        layers = [getattr(head, name) for head in naive.heads]
        for part in ("weight", "bias") if bias else ("weight",):
            state[f"{name}.{part}"] = torch.cat([getattr(layer, part) for layer in layers])
    batched.load_state_dict(state, strict=False)  # a buffer of its own is fine
    return batched
    ### END SOLUTION


# %% [markdown]
# Expect `True`:

# %%
naive, x = MultiHeadNaive(d_model=12, n_heads=3), torch.randn(2, 7, 12)
torch.allclose(naive(x), naive_to_batched(naive)(x), atol=1e-6)

# %% nbgrader={"grade_id": "check_naive_to_batched", "locked": true}
check("multihead.naive_to_batched", naive_to_batched)

# %% [markdown] nbgrader={"grade_id": "explain_heads", "grade": true, "solution": true, "points": 4}
# ## 5 · Two heads for one
#
# <!-- facts: explain_heads -->
#
# One head of width 64 is replaced by two of width 32, with as many numbers to learn. Explain in
# three sentences what two heads can report that one, with all its weight on two tokens, cannot, why
# a wider head does not make up for it, and what each head pays.
#
# | points | for |
# | --: | --- |
# | 2 | what one head returns for a token, and what two do |
# | 1 | what width decides |
# | 1 | the price |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# A head makes one row of weights for each token, and the average it returns does not say which
# token gave what; two heads ask two questions and put the answers side by side. A wider head
# compares more finely and still returns one average. The price is that each of the two compares
# queries and keys in 32 features in place of 64.
#
# For the points, in this order: (2) a head has one row of weights for a token and returns one
# average, which forgets who answered what; two heads return two averages, side by side; (1) width
# decides how finely queries and keys are compared, not how many maps there are; (1) each head
# compares in half as many features.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_split_heads", "grade": true, "locked": true}
examine("multihead.split_heads", split_heads).earned

# %% nbgrader={"grade_id": "hidden_split_heads", "grade": true, "locked": true, "points": 1}
# One more test of split_heads.
### BEGIN HIDDEN TESTS
x = torch.randn(2, 7, 15)
expected = torch.stack([x[..., 3 * i : 3 * i + 3] for i in range(5)], dim=1)
heads = split_heads(x, 5)
assert heads.shape == (2, 5, 7, 3), (
    "x of shape (2, 7, 15) and 5 heads should give shape (2, 5, 7, 3): the heads before the tokens"
)
assert torch.equal(heads, expected), (
    "head i of 5 should hold features 3i, 3i + 1 and 3i + 2 of every token"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_merge_heads", "grade": true, "locked": true}
examine("multihead.merge_heads", merge_heads).earned

# %% nbgrader={"grade_id": "hidden_merge_heads", "grade": true, "locked": true, "points": 1}
# One more test of merge_heads.
### BEGIN HIDDEN TESTS
heads = torch.randn(2, 5, 7, 3)
expected = torch.cat([heads[:, i] for i in range(5)], dim=-1)
merged = merge_heads(heads)
assert merged.shape == (2, 7, 15), (
    "5 heads of 3 features should give shape (2, 7, 15): one row for each token"
)
assert torch.equal(merged, expected), (
    "the heads' features should stand side by side, head 0's first"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_MultiHeadAttention", "grade": true, "locked": true}
examine("multihead.MultiHeadAttention", MultiHeadAttention).earned

# %% nbgrader={"grade_id": "hidden_MultiHeadAttention", "grade": true, "locked": true, "points": 1}
# One more test of MultiHeadAttention.
### BEGIN HIDDEN TESTS
attention, x = MultiHeadAttention(12, 3, bias=False), torch.randn(2, 7, 12)
state = {f"{name}.weight": torch.randn(12, 12) / 2 for name in ("W_q", "W_k", "W_v", "W_o")}
W_q, W_k, W_v, W_o = state.values()
maps, total = [], 0
for i in range(3):  # each head by itself, straight to its share of the output
    own = slice(4 * i, 4 * i + 4)
    maps.append((x @ W_q[own].T @ W_k[own] @ x.mT / 2).softmax(dim=-1))
    total = total + maps[i] @ x @ W_v[own].T @ W_o[:, own].T
maps = torch.stack(maps, dim=1)
attention.load_state_dict(state, strict=False)  # a buffer of your own is fine
weights, out = attention.weights(x), attention(x)
assert weights.shape == (2, 3, 7, 7), (
    "3 heads and 7 tokens should give weights of shape (2, 3, 7, 7): a map for each head"
)
assert torch.allclose(weights, maps, atol=1e-4), (
    "head i should score with its own features of W_q and W_k, divided by √d_head, here √4"
)
assert out.shape == (2, 7, 12), "the output should have the shape of x, (2, 7, 12)"
assert torch.allclose(out, total, atol=1e-4), (
    "the heads' outputs should stand side by side, head 0's first, and go through W_o"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_naive_to_batched", "grade": true, "locked": true}
examine("multihead.naive_to_batched", naive_to_batched).earned

# %% nbgrader={"grade_id": "hidden_naive_to_batched", "grade": true, "locked": true, "points": 1}
# One more test of naive_to_batched.
### BEGIN HIDDEN TESTS
naive, x = MultiHeadNaive(6, 3), torch.randn(4, 5, 6)
tensors = {name: torch.randn(w.shape) for name, w in naive.state_dict().items()}
found = []
for i in range(3):  # each head by itself
    q, k, v = (
        x @ tensors[f"heads.{i}.{name}.weight"].T + tensors[f"heads.{i}.{name}.bias"]
        for name in ("W_q", "W_k", "W_v")
    )
    found.append((q @ k.mT / math.sqrt(2)).softmax(dim=-1) @ v)
expected = torch.cat(found, dim=-1) @ tensors["W_o.weight"].T + tensors["W_o.bias"]
naive.load_state_dict(tensors)
batched = naive_to_batched(naive)
state, out = batched.state_dict(), batched(x)
assert torch.equal(state["W_v.weight"][4:], tensors["heads.2.W_v.weight"]), (
    "the last rows of W_v.weight should be those of the last head's W_v"
)
assert torch.equal(state["W_k.bias"][2:4], tensors["heads.1.W_k.bias"]), (
    "the biases should stand in the order of the heads, as the weights do"
)
assert out.shape == (4, 5, 6), "the module that is returned should give the shape of x, (4, 5, 6)"
assert torch.allclose(out, expected, atol=1e-4), (
    "the module that is returned should compute what the list of heads computes, W_o included"
)
### END HIDDEN TESTS
