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
# # Exercises 18 · The parts of a language model that people use
#
# You write what SmolLM2-135M has and the models of chapters 12 and 13 have not: words in pieces, the
# RMS norm, the gated layer, turned queries and keys in every block. With what you wrote before they
# run the real model. Fill in the cells marked *your code* and run the check below each.
#
# A token is a row. Where a shape is written `(..., n, d)`, the dots stand for any number of batch
# axes, none included. Results keep the floating dtype and the precision of what came in, and
# gradients must be able to flow through everything but exercise 4: no `.detach()`, no `.numpy()`.
# Functions leave what they are given as it is.

# %%
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from attncourse.checks import check, examine
from attncourse.kqv import scaled_dot_product_attention
from attncourse.masking import causal_mask
from attncourse.multihead import merge_heads, split_heads
from attncourse.positions import apply_rope

# %% [markdown]
# ## 1 · `merge_pairs`
#
# <!-- facts: merge_pairs -->
#
# Write `merge_pairs(symbols, ranks)`, which joins letters to pieces of words.
#
# | | | |
# | --- | --- | --- |
# | `symbols` | a list of strings | the letters of a word, or pieces |
# | `ranks` | a dictionary from pairs of strings to whole numbers | the lower, the earlier |
# | returns | a new list of strings | |
#
# - Of all pairs of neighbours that `ranks` knows, take the one of lowest rank, wherever it stands.
# - Join it to one symbol everywhere it stands in the list, from left to right. A symbol takes part
#   in one pair only: a a a becomes aa a.
# - Do so again and again, the joined symbols included, until no pair of neighbours has a rank.
#
# `ranks` are such as learning gives them: a pair is ranked after the pairs that its two parts were
# made of. Ranks begin at 0. A list of one symbol, or of none, stays as it is.
#
# <!-- hints: merge_pairs -->
#
# 1. The pairs of neighbours: `pairwise(symbols)`. Which of them are in `ranks`?
# 2. `min(known, key=ranks.get)` is the pair to join. Where `known` is empty, you are done.
# 3. To join, walk through the list with an index: where the pair stands, append both as one and go
#    on two further, else append one symbol and go on one further.


# %% nbgrader={"grade_id": "merge_pairs", "solution": true}
def merge_pairs(symbols, ranks):
    ### BEGIN SOLUTION
    symbols = list(symbols)
    while True:
        known = [pair for pair in pairwise(symbols) if pair in ranks]
        if not known:
            return symbols
        lowest = min(known, key=ranks.get)
        joined, i = [], 0
        while i < len(symbols):
            if tuple(symbols[i : i + 2]) == lowest:
                joined.append(symbols[i] + symbols[i + 1])
                i += 2
            else:
                joined.append(symbols[i])
                i += 1
        symbols = joined
    ### END SOLUTION


# %% [markdown]
# First *a n*, which stands twice; then *b an*; then *an a*. Expect `['ban', 'ana']`:

# %%
merge_pairs(list("banana"), {("a", "n"): 0, ("b", "an"): 1, ("an", "a"): 2})

# %% nbgrader={"grade_id": "check_merge_pairs", "locked": true}
check("llama.merge_pairs", merge_pairs)

# %% [markdown]
# ## 2 · `rms_norm`
#
# <!-- facts: rms_norm -->
#
# Write `rms_norm(x, gain=None, eps=1e-5)`. Each row, by itself, is divided by its size, the root of
# the mean of its squares, and multiplied by `gain`:
#
# gain · x / √(mean(x²) + eps)
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., d)` | a token's features in the last axis |
# | `gain` | `(d,)` | may be left out |
# | returns | `(..., d)` | |
#
# No mean is taken off, and there is no bias. `eps` stands under the root.
#
# PyTorch has this as `F.rms_norm`. You may compare with it, but write it yourself: an answer that
# calls `rms_norm` of the library is refused.
#
# *Fine print:* numbers come in float64 and in float32; `eps` is the only guard.
#
# <!-- hints: rms_norm -->
#
# 1. The mean square of each row: `x.square().mean(-1, keepdim=True)`.
# 2. Add eps, take the root, divide; then gain, where it is given (`if gain is not None`).


# %% nbgrader={"grade_id": "rms_norm", "solution": true}
def rms_norm(x, gain=None, eps=1e-5):
    ### BEGIN SOLUTION
    x = x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return x if gain is None else gain * x
    ### END SOLUTION


# %% [markdown]
# The mean square of 1 and 7 is 25. Expect `tensor([0.2000, 1.4000])`:

# %%
rms_norm(torch.tensor([1.0, 7.0]))

# %% nbgrader={"grade_id": "check_rms_norm", "locked": true}
check("llama.rms_norm", rms_norm)

# %% [markdown]
# ## 3 · `SwiGLU`
#
# <!-- facts: SwiGLU -->
#
# Write `SwiGLU(d_model, d_ff)`, an `nn.Module` with three layers, each an `nn.Linear` without bias:
#
# | layer | from | to |
# | --- | --- | --- |
# | `W_gate` | d_model | d_ff |
# | `W_up` | d_model | d_ff |
# | `W_down` | d_ff | d_model |
#
# `forward(x)` takes `(..., n, d_model)` and returns the same shape, for each token by itself:
#
# W_down(silu(W_gate x) · W_up x)
#
# The product is taken number by number, and silu(z) is z · σ(z), `F.silu`.
#
# The check puts weights of its own into your module by the names above.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: SwiGLU -->
#
# 1. Three `nn.Linear(…, bias=False)`, kept under the names of the table.
# 2. One of the two branches is bent by `F.silu`: which one does the formula say?
# 3. `return self.W_down(F.silu(self.W_gate(x)) * self.W_up(x))`.


# %% nbgrader={"grade_id": "SwiGLU", "solution": true}
class SwiGLU(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.W_down(F.silu(self.W_gate(x)) * self.W_up(x))

    ### END SOLUTION


# %% [markdown]
# Expect `(torch.Size([2, 5, 12]), 1152)`:

# %%
layer = SwiGLU(d_model=12, d_ff=32)
layer(torch.ones(2, 5, 12)).shape, sum(p.numel() for p in layer.parameters())

# %% nbgrader={"grade_id": "check_SwiGLU", "locked": true}
check("llama.SwiGLU", SwiGLU)

# %% [markdown]
# ## 4 · `pairs_from_halves`
#
# <!-- facts: pairs_from_halves -->
#
# Some programs turn feature i of a head together with feature i + d_head/2; chapter 11's
# `apply_rope` turns 2i with 2i + 1. Weights made for the first are good for the second once the rows
# of W_q and W_k are put into another order.
#
# Write `pairs_from_halves(weight, n_heads)`, which does so.
#
# | | shape | |
# | --- | --- | --- |
# | `weight` | `(n_heads · d_head, d_in)` | the rows of a head stand together, head after head |
# | returns | `(n_heads · d_head, d_in)` | the same rows in another order |
#
# Of each head, row i of the first half becomes row 2i, and row i of the second half becomes row
# 2i + 1, for i from 0. Return a new tensor.
#
# Raise `ValueError` where n_heads does not divide the number of rows, and where a head has an odd
# number of them.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: pairs_from_halves -->
#
# 1. One head with d_head = 6: rows 0 1 2 3 4 5 are to come in the order 0 3 1 4 2 5.
# 2. Cut the first axis into three, `(n_heads, 2, d_head/2)`, and exchange the last two of these.
# 3. `weight.reshape(n_heads, 2, -1, d_in).transpose(1, 2).reshape(…)`.


# %% nbgrader={"grade_id": "pairs_from_halves", "solution": true}
def pairs_from_halves(weight, n_heads):
    ### BEGIN SOLUTION
    n_rows, d_in = weight.shape
    if n_rows % n_heads or n_rows // n_heads % 2:
        raise ValueError(f"{n_rows} rows make no {n_heads} heads of even width")
    halves = weight.reshape(n_heads, 2, -1, d_in)
    return halves.transpose(1, 2).reshape(n_rows, d_in)
    ### END SOLUTION


# %% [markdown]
# One head of six rows. Expect `tensor([0., 3., 1., 4., 2., 5.])`:

# %%
pairs_from_halves(torch.arange(6.0)[:, None], n_heads=1).flatten()

# %% nbgrader={"grade_id": "check_pairs_from_halves", "locked": true}
check("llama.pairs_from_halves", pairs_from_halves)

# %% [markdown]
# ## 5 · `LlamaBlock`
#
# <!-- facts: LlamaBlock -->
#
# Write `LlamaBlock(d_model, n_heads, n_kv_heads, d_ff, base=10000.0)`, an `nn.Module` with four
# layers:
#
# | name | layer |
# | --- | --- |
# | `attention` | a module that holds `W_q`, `W_k`, `W_v`, `W_o`, each an `nn.Linear` without bias |
# | `feed_forward` | `SwiGLU(d_model, d_ff)`, yours |
# | `norm_1`, `norm_2` | `RMSNorm(d_model)`: exercise 2 with a learned `gain`; it stands in the next cell |
#
# With d_head = d_model / n_heads, `W_q` and `W_o` lead from d_model to d_model, `W_k` and `W_v` from
# d_model to n_kv_heads · d_head.
#
# `forward(x, mask=None, positions=None)` takes `(..., n, d_model)` and returns the same shape: x
# becomes x + attention(norm_1(x)), and then that, called x again, x + feed_forward(norm_2(x)). In
# the attention
#
# - queries, keys and values are cut into heads; then queries and keys, not values, are turned by
#   their positions, `apply_rope(…, positions, base)`, pairs side by side as in chapter 11;
# - `positions` is `(n,)`, 0 … n − 1 unless given;
# - query head h uses key/value head h // (n_heads / n_kv_heads), so that each serves a run of
#   neighbours;
# - scores are divided by √d_head; a token sees itself and those before it unless `mask` is given,
#   which then takes the place of the causal mask. It is boolean, `True` where attention is allowed,
#   `(n, n)` or with the batch axes in front, `(..., n, n)`, and holds for every head;
# - a row without an allowed key gets attention 0, never NaN;
# - the heads are merged and mixed by `W_o`.
#
# Raise `ValueError` in `__init__` where n_heads does not divide d_model, or n_kv_heads not n_heads.
#
# The first cell imports what earlier chapters have for this; you may use your own instead, as far
# as its exercise asked: chapter 5's promised a key for every query.
#
# *Fine print:* numbers come in float64 and in float32; `multi_head_attention_forward`, which stands
# behind `nn.MultiheadAttention`, may not be called; the library's `scaled_dot_product_attention` may,
# but may give NaN to a row without a key: it depends on the version and the machine.
#
# <!-- hints: LlamaBlock -->
#
# 1. Write the attention as a module of its own, with the four layers and a `forward(x, mask,
#    positions)`; the block is then chapter 12's pre-norm block.
# 2. `query = apply_rope(split_heads(self.W_q(x), n_heads), positions, base)`; keys likewise with
#    n_kv_heads heads; values are not turned.
# 3. `key.repeat_interleave(n_heads // n_kv_heads, dim=-3)` gives each query head its key head.
# 4. A mask with batch axes needs an axis for the heads: `mask.unsqueeze(-3)`. Chapter 5's
#    `scaled_dot_product_attention(query, key, value, mask)` is promised a key for every query, so
#    yours may give NaN to a row without one: allow such a row everything, then set it to 0.


# %%
class RMSNorm(nn.Module):
    """What your rms_norm computes, with a gain that is learned."""

    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)


# %% nbgrader={"grade_id": "LlamaBlock", "solution": true}
class LlamaBlock(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, base=10000.0):
        super().__init__()
        if d_model % n_heads or n_heads % n_kv_heads:
            raise ValueError(f"{d_model} features, {n_heads} and {n_kv_heads} heads do not divide")
        d_kv = d_model // n_heads * n_kv_heads
        self.attention = nn.Module()
        self.attention.W_q = nn.Linear(d_model, d_model, bias=False)
        self.attention.W_k = nn.Linear(d_model, d_kv, bias=False)
        self.attention.W_v = nn.Linear(d_model, d_kv, bias=False)
        self.attention.W_o = nn.Linear(d_model, d_model, bias=False)
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm_1 = RMSNorm(d_model)
        self.norm_2 = RMSNorm(d_model)
        self.n_heads, self.n_kv_heads, self.base = n_heads, n_kv_heads, base

    def attend(self, x, mask, positions):
        n, layers = x.shape[-2], self.attention
        positions = torch.arange(n) if positions is None else positions
        query = split_heads(layers.W_q(x), self.n_heads)
        key = split_heads(layers.W_k(x), self.n_kv_heads)
        value = split_heads(layers.W_v(x), self.n_kv_heads)
        query = apply_rope(query, positions, self.base)
        key = apply_rope(key, positions, self.base)
        group = self.n_heads // self.n_kv_heads
        key, value = (part.repeat_interleave(group, dim=-3) for part in (key, value))
        mask = causal_mask(n) if mask is None else mask
        mask = mask.unsqueeze(-3) if mask.ndim > 2 else mask
        empty = ~mask.any(dim=-1, keepdim=True)  # attention is promised a key for every query
        mixed = scaled_dot_product_attention(query, key, value, mask | empty)
        return layers.W_o(merge_heads(mixed.masked_fill(empty, 0)))

    def forward(self, x, mask=None, positions=None):
        x = x + self.attend(self.norm_1(x), mask, positions)
        return x + self.feed_forward(self.norm_2(x))

    ### END SOLUTION


# %% [markdown]
# Expect `(torch.Size([2, 5, 24]), 2304)`:

# %%
block = LlamaBlock(d_model=24, n_heads=6, n_kv_heads=2, d_ff=10)
block(torch.ones(2, 5, 24)).shape, sum(p.numel() for p in block.parameters())

# %% nbgrader={"grade_id": "check_LlamaBlock", "locked": true}
check("llama.LlamaBlock", LlamaBlock)

# %% [markdown] nbgrader={"grade_id": "explain_undone", "grade": true, "solution": true, "points": 4}
# ## 6 · A loss that is too good
#
# <!-- facts: explain_undone -->
#
# In the chapter's table of undone decisions, the model without a causal mask has by far the lowest
# loss, 1.2 nats a token, and yet what it writes soon repeats the text that it was given. A friend
# concludes that the mask makes the model worse. Explain in three sentences why the loss falls, why
# the text is no better for it, and how you would measure the model so that the number says what it
# is worth.
#
# | points | for |
# | --: | --- |
# | 1 | why the loss falls |
# | 2 | why the text is no better |
# | 1 | a measurement that tells |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# Without the mask the vector from which a token is predicted has looked at that very token, so the
# loss measures how well a word is copied, not how well it is guessed. While the model writes,
# there is no later token to look at: what it relied on is not there, and it was trained with rows
# that see only what came before. Measure the probability of each token from the tokens before it
# alone, one token at a time, as it is when the model writes, or look at whether a later token can
# change an earlier output (chapter 10's leak).
#
# For the points, in this order: (1) the token that is asked for is among what is looked at; (2) when
# writing, later tokens do not exist, and the model's weights were learned under the mask, so that it
# now meets another input than it was trained on; (1) score each token from what came before it
# alone, or test for a leak.
# ### END SOLUTION

# %% [markdown]
# ## Have it answer you
#
# Nothing is graded here. SmolLM2 answers a question through your parts, with ours for the rest. The
# first time it is fetched, 93 MB. Put this into a cell of its own, and ask what you like:
#
# ```python
# from attncourse.milestones.reaching import reach
#
# reach("chat", ask="What is a cat?", merge_pairs=merge_pairs, rms_norm=rms_norm, SwiGLU=SwiGLU,
#       pairs_from_halves=pairs_from_halves, LlamaBlock=LlamaBlock)
# ```
#
# Add what you wrote in earlier chapters by name, say `apply_rope=apply_rope`.

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_merge_pairs", "grade": true, "locked": true}
examine("llama.merge_pairs", merge_pairs).earned

# %% nbgrader={"grade_id": "hidden_merge_pairs", "grade": true, "locked": true, "points": 1}
# One more test of merge_pairs.
### BEGIN HIDDEN TESTS
merges = ["h u", "hu g", "g s", "hug s", "u n", "p un", "b un"]
ranks = {tuple(merge.split()): rank for rank, merge in enumerate(merges)}
for word, pieces in {
    "hugs": ["hugs"],
    "puns": ["pun", "s"],
    "mugs": ["m", "u", "gs"],
    "hughug": ["hug", "hug"],
    "bunhugs": ["bun", "hugs"],
}.items():
    assert list(merge_pairs(list(word), dict(ranks))) == pieces, (
        "with the merges h u, hu g, g s, hug s, u n, p un, b un, in this order, hugs should become "
        "hugs, puns pun s, mugs m u gs, hughug hug hug, and bunhugs bun hugs"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_rms_norm", "grade": true, "locked": true}
examine("llama.rms_norm", rms_norm).earned

# %% nbgrader={"grade_id": "hidden_rms_norm", "grade": true, "locked": true, "points": 1}
# One more test of rms_norm.
### BEGIN HIDDEN TESTS
x, gain = 3 + 2 * torch.randn(2, 7, 5), torch.randn(5)
expected = F.rms_norm(x, (5,), gain, 0.01)
out = rms_norm(x.clone(), gain.clone(), 0.01)
assert out.shape == (2, 7, 5), "the result should have the shape of x, (2, 7, 5)"
assert torch.allclose(out, expected, atol=1e-4), (
    "with gain and eps = 0.01 it should be what F.rms_norm returns"
)
assert torch.allclose(rms_norm(100 * x), F.rms_norm(10 * x, (5,)), atol=1e-3), (
    "a row ten times as large should give the same result"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_SwiGLU", "grade": true, "locked": true}
examine("llama.SwiGLU", SwiGLU).earned

# %% nbgrader={"grade_id": "hidden_SwiGLU", "grade": true, "locked": true, "points": 1}
# One more test of SwiGLU.
### BEGIN HIDDEN TESTS
layer, x = SwiGLU(6, 10), torch.randn(3, 4, 6)
state = {"W_gate.weight": torch.randn(10, 6), "W_up.weight": torch.randn(10, 6)}
state |= {"W_down.weight": torch.randn(6, 10)}
layer.load_state_dict(state, strict=False)  # a buffer of your own is fine
out = layer(x.clone())
assert out.shape == (3, 4, 6), "the result should have the shape of x, (3, 4, 6)"
for i in range(3):
    for j in range(4):  # each token by itself
        gate, up = state["W_gate.weight"] @ x[i, j], state["W_up.weight"] @ x[i, j]
        expected = state["W_down.weight"] @ (gate / (1 + torch.exp(-gate)) * up)
        assert torch.allclose(out[i, j], expected, atol=1e-3), (
            "each token should become W_down(silu(W_gate x) · W_up x)"
        )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_pairs_from_halves", "grade": true, "locked": true}
examine("llama.pairs_from_halves", pairs_from_halves).earned

# %% nbgrader={"grade_id": "hidden_pairs_from_halves", "grade": true, "locked": true, "points": 1}
# One more test of pairs_from_halves.
### BEGIN HIDDEN TESTS
weight, x, places = torch.randn(3 * 8, 5), torch.randn(7, 5), torch.arange(7)
first, second = split_heads(x @ weight.T, 3).chunk(2, dim=-1)  # turned by halves
angles = places[:, None] * 10000.0 ** (-torch.arange(4) / 4)
halves = (
    first * angles.cos() - second * angles.sin(),
    first * angles.sin() + second * angles.cos(),
)
paired = pairs_from_halves(weight.clone(), 3)
assert paired.shape == (24, 5), "the result should have the shape of weight, (24, 5)"
turned = apply_rope(split_heads(x @ paired.T, 3), places)
assert torch.allclose(turned[..., 0::2], halves[0], atol=1e-3), (
    "turned by apply_rope, features 2i should be the first half of what is turned by halves"
)
assert torch.allclose(turned[..., 1::2], halves[1], atol=1e-3), (
    "turned by apply_rope, features 2i + 1 should be the second half of what is turned by halves"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_LlamaBlock", "grade": true, "locked": true}
examine("llama.LlamaBlock", LlamaBlock).earned

# %% nbgrader={"grade_id": "hidden_LlamaBlock", "grade": true, "locked": true, "points": 1}
# One more test of LlamaBlock.
### BEGIN HIDDEN TESTS
block, x = LlamaBlock(16, 4, 2, 6, 500.0), torch.randn(2, 6, 16)
sizes = {"W_q": (16, 16), "W_k": (8, 16), "W_v": (8, 16), "W_o": (16, 16)}
state = {f"attention.{name}.weight": torch.randn(size) / 4 for name, size in sizes.items()}
state |= {f"feed_forward.W_{name}.weight": torch.randn(6, 16) / 4 for name in ("gate", "up")}
state |= {"feed_forward.W_down.weight": torch.randn(16, 6) / 2}
state |= {f"norm_{i}.gain": 1 + torch.rand(16) for i in (1, 2)}
block.load_state_dict(state, strict=False)
out = block(x.clone())
assert out.shape == (2, 6, 16), "the result should have the shape of x, (2, 6, 16)"
assert torch.allclose(block(x.clone(), positions=torch.arange(6) + 40), out, atol=1e-3), (
    "40 added to all positions should change nothing: scores depend on distances"
)
far = block(x.clone(), positions=torch.tensor([0, 1, 2, 3, 4, 60]))
assert torch.allclose(far[:, :5], out[:, :5], atol=1e-3), (
    "without a mask, the last token's position should change nothing for those before it"
)
assert not torch.allclose(far[:, 5], out[:, 5], atol=1e-3), (
    "the last token should hear another mixture when it stands further away"
)
alone = block(x[:, 3:].clone())
later = torch.ones(6, 6, dtype=torch.bool).tril()
later[:, :3] = False
padded = block(x.clone(), mask=later, positions=torch.tensor([0, 0, 0, 0, 1, 2]))
assert torch.allclose(padded[:, 3:], alone, atol=1e-3), (
    "with three tokens hidden by the mask, the others should become what they are alone"
)
assert padded.isfinite().all(), "a token that may see nothing should get no NaN"
### END HIDDEN TESTS
