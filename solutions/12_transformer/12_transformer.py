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
# # Exercises 12 · The transformer's layers
#
# You build what stands around attention: the norm, the feed-forward layer, the two kinds of block,
# and the schedule by which the first transformers were trained. Fill in the cells marked *your code*
# and run the check below each.
#
# A token is a row. Where a shape is written `(..., n, d)`, the dots stand for any number of batch
# axes, none included. Results keep the floating dtype and the precision of what came in, and
# gradients must be able to flow through everything: no `.detach()`, no `.numpy()`. Functions leave
# what they are given as it is.

# %%
import torch
from torch import nn
from torch.nn import functional as F

from attncourse.checks import check, examine
from attncourse.multihead import MultiHeadAttention

# %% [markdown]
# ## 1 · `layer_norm`
#
# <!-- facts: layer_norm -->
#
# Write `layer_norm(x, gain=None, bias=None, eps=1e-5)`. Each row, by itself, gets mean 0 and
# variance 1; then it is multiplied by `gain` and `bias` is added:
#
# gain · (x − mean) / √(variance + eps) + bias
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., d)` | a token's features in the last axis |
# | `gain`, `bias` | `(d,)` | each may be left out, also alone |
# | returns | `(..., d)` | |
#
# Mean and variance are those of the d features of a row. The variance is the mean of the squares,
# a division by d, not by d − 1. `eps` stands under the root.
#
# PyTorch has this as `F.layer_norm`, which stands behind `nn.LayerNorm`; group, batch and instance
# norms can be made to do it. You may compare with them. Here you build it, so they may not be
# called, and the check notices.
#
# *Fine print:* numbers come in float64 and in float32; `eps` is the only guard.
#
# <!-- hints: layer_norm -->
#
# 1. Mean and variance of each row: `x.mean(-1, keepdim=True)`, and the mean of the squares of what
#    is left.
# 2. `x.var` divides by d − 1 unless told `unbiased=False`.
# 3. `(x - mean) / (variance + eps).sqrt()`, then gain and bias where they are given.


# %% nbgrader={"grade_id": "layer_norm", "solution": true}
def layer_norm(x, gain=None, bias=None, eps=1e-5):
    ### BEGIN SOLUTION
    x = x - x.mean(dim=-1, keepdim=True)
    x = x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    if gain is not None:
        x = gain * x
    if bias is not None:
        x = x + bias
    return x
    ### END SOLUTION


# %% [markdown]
# A row of mean 2 and variance 1. Expect `tensor([-1.0000,  1.0000])`:

# %%
layer_norm(torch.tensor([1.0, 3.0]))

# %% nbgrader={"grade_id": "check_layer_norm", "locked": true}
check("transformer.layer_norm", layer_norm)

# %% [markdown]
# ## 2 · `FeedForward`
#
# <!-- facts: FeedForward -->
#
# Write `FeedForward(d_model, d_ff=None, activation=F.gelu, bias=True)`, an `nn.Module` with two
# layers, each an `nn.Linear`:
#
# | layer | from | to |
# | --- | --- | --- |
# | `W_1` | d_model | d_ff |
# | `W_2` | d_ff | d_model |
#
# - `d_ff` is 4·d_model unless given. With `bias=True` both layers have a bias, with `bias=False`
#   none has.
# - `forward(x)`: W_2 of the activation of W_1 of x, for each token by itself; `(..., n, d_model)` in
#   and out.
# - `activation` is a function from tensors to tensors, which works on each number by itself. Unless
#   given it is the exact GELU, `F.gelu`.
#
# The check puts weights of its own into your module by the names above.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: FeedForward -->
#
# 1. Two `nn.Linear`, kept as `self.W_1` and `self.W_2`; the activation is a function that you keep
#    too.
# 2. `nn.Linear` works on the last axis and leaves all others alone: no loop over tokens.
# 3. `return self.W_2(self.activation(self.W_1(x)))`.


# %% nbgrader={"grade_id": "FeedForward", "solution": true}
class FeedForward(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, d_ff=None, activation=F.gelu, bias=True):
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.activation = activation
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x):
        return self.W_2(self.activation(self.W_1(x)))

    ### END SOLUTION


# %% [markdown]
# Expect `(torch.Size([2, 5, 12]), 1212)`:

# %%
layer = FeedForward(d_model=12)
layer(torch.ones(2, 5, 12)).shape, sum(p.numel() for p in layer.parameters())

# %% nbgrader={"grade_id": "check_FeedForward", "locked": true}
check("transformer.FeedForward", FeedForward)

# %% [markdown]
# ## 3 · `EncoderBlock`
#
# <!-- facts: EncoderBlock -->
#
# Write `EncoderBlock(d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0)`, an `nn.Module` with
# four layers:
#
# | name | layer |
# | --- | --- |
# | `attention` | `MultiHeadAttention(d_model, n_heads)`, chapter 9's |
# | `feed_forward` | `FeedForward(d_model, d_ff)`, yours |
# | `norm_1`, `norm_2` | `LayerNorm(d_model)`: exercise 1 with a learned `gain` and `bias` |
#
# `MultiHeadAttention` is imported in the first cell, `LayerNorm` stands in the next one.
# (`nn.LayerNorm` has other names for its parameters and does not fit.)
#
# `forward(x, mask=None)` takes `(..., n, d_model)` and returns the same shape:
#
# - With `pre_norm=True` x becomes x + attention(norm_1(x)), and then that, called x again, becomes
#   x + feed_forward(norm_2(x)).
# - With `pre_norm=False` x becomes norm_1(x + attention(x)), and then norm_2(x + feed_forward(x)).
# - There is no further norm at the end.
# - `mask` is boolean, `True` where attention is allowed, and goes to the attention as it is.
# - In training, dropout falls on what each branch returns, before it is added: a share `dropout` of
#   its numbers becomes 0 and the others are divided by 1 − dropout, as `nn.Dropout` does. After
#   `eval()` there is none.
#
# *Fine print:* numbers come in float64 and in float32; `multi_head_attention_forward`, which stands
# behind `nn.MultiheadAttention`, may not be called.
#
# <!-- hints: EncoderBlock -->
#
# 1. Four layers: `attention`, `feed_forward`, `norm_1`, `norm_2`. Write pre-norm first.
# 2. `x = x + self.dropout(self.attention(self.norm_1(x), mask=mask))`, and then the same with the
#    feed-forward layer.
# 3. Post-norm is `x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)))`.
# 4. `nn.Dropout(dropout)` is off after `eval()` by itself.


# %%
class LayerNorm(nn.Module):
    """What your layer_norm computes, with parameters that are learned."""

    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gain, self.bias)


# %% nbgrader={"grade_id": "EncoderBlock", "solution": true}
class EncoderBlock(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.pre_norm = pre_norm

    def forward(self, x, mask=None):
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.norm_1(x), mask=mask))
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))

    ### END SOLUTION


# %% [markdown]
# Expect `(torch.Size([2, 5, 12]), 1884)`:

# %%
block = EncoderBlock(d_model=12, n_heads=3)
block(torch.ones(2, 5, 12)).shape, sum(p.numel() for p in block.parameters())

# %% nbgrader={"grade_id": "check_EncoderBlock", "locked": true}
check("transformer.EncoderBlock", EncoderBlock)

# %% [markdown]
# ## 4 · `DecoderBlock`
#
# <!-- facts: DecoderBlock -->
#
# Write `DecoderBlock(d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0)`, with one branch and
# one norm more:
#
# | branch | layer | norm |
# | --- | --- | --- |
# | 1 | `self_attention`, a `MultiHeadAttention`: x looks at itself | `norm_1` |
# | 2 | `cross_attention`, another one: x asks, `memory` answers | `norm_2` |
# | 3 | `feed_forward` | `norm_3` |
#
# `forward(x, memory, mask=None, memory_mask=None)`: x `(..., m, d_model)`, memory `(..., n, d_model)`,
# returns `(..., m, d_model)`. Norms, residuals and dropout as in exercise 3.
#
# - In branch 2 queries come from x, keys and values from the memory, which is read as it comes: no
#   norm is put on it, with `pre_norm=True` neither.
# - `mask` goes to the self-attention, `memory_mask` to the other. Neither is causal by itself.
#
# *Fine print:* numbers come in float64 and in float32; `multi_head_attention_forward`, which stands
# behind `nn.MultiheadAttention`, may not be called.
#
# <!-- hints: DecoderBlock -->
#
# 1. An encoder block with one more branch in the middle, and a norm for it.
# 2. The middle branch is `self.cross_attention(…, memory, mask=memory_mask)`; only x is normalised.
# 3. A method `add(self, x, branch, norm)` that knows both norm orders leaves three short lines.


# %% nbgrader={"grade_id": "DecoderBlock", "solution": true}
class DecoderBlock(nn.Module):
    ### BEGIN SOLUTION
    def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.pre_norm = pre_norm

    def add(self, x, branch, norm):
        if self.pre_norm:
            return x + self.dropout(branch(norm(x)))
        return norm(x + self.dropout(branch(x)))

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.add(x, lambda x: self.self_attention(x, mask=mask), self.norm_1)
        x = self.add(x, lambda x: self.cross_attention(x, memory, mask=memory_mask), self.norm_2)
        return self.add(x, self.feed_forward, self.norm_3)

    ### END SOLUTION


# %% [markdown]
# Expect `(torch.Size([2, 5, 12]), 2532)`:

# %%
block = DecoderBlock(d_model=12, n_heads=3)
(
    block(torch.ones(2, 5, 12), torch.ones(2, 7, 12)).shape,
    sum(p.numel() for p in block.parameters()),
)

# %% nbgrader={"grade_id": "check_DecoderBlock", "locked": true}
check("transformer.DecoderBlock", DecoderBlock)

# %% [markdown]
# ## 5 · `noam_schedule`
#
# <!-- facts: noam_schedule -->
#
# Write `noam_schedule(step, d_model, warmup)`, the learning rate that the first transformers were
# trained with:
#
# d_model^(−1/2) · min(step^(−1/2), step · warmup^(−3/2))
#
# All three are whole numbers; one number comes back, a float or a tensor of shape `()`. Steps count
# from 1: for a step below 1 raise `ValueError`.
#
# <!-- hints: noam_schedule -->
#
# 1. Two numbers, one that rises with the step and one that falls; the smaller counts.
# 2. At step = warmup both are warmup ** −0.5. Try it before you run the check.
# 3. `d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)`, after a test of step.


# %% nbgrader={"grade_id": "noam_schedule", "solution": true}
def noam_schedule(step, d_model, warmup):
    ### BEGIN SOLUTION
    if step < 1:
        raise ValueError(f"steps count from 1, got {step}")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    ### END SOLUTION


# %% [markdown]
# The peak, 1/√(4 · 100). Expect `0.05`:

# %%
noam_schedule(100, 4, 100)

# %% nbgrader={"grade_id": "check_noam_schedule", "locked": true}
check("transformer.noam_schedule", noam_schedule)

# %% [markdown] nbgrader={"grade_id": "explain_residual", "grade": true, "solution": true, "points": 4}
# ## 6 · What keeps tokens apart
#
# <!-- facts: explain_residual -->
#
# Explain in three sentences what a stack of attention layers alone does to its tokens and why,
# how a residual connection works against it, and what the feed-forward layer can do that attention
# with fixed weights cannot.
#
# | points | for |
# | --: | --- |
# | 1 | what attention alone does to tokens, and why |
# | 2 | how a residual connection works against it |
# | 1 | what the feed-forward layer can do |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# Each attention layer replaces tokens by weighted averages, and after a few layers of averages
# all rows are nearly the same. With a residual connection the average is added to the row that
# was read, so each token carries its own row through the stack. The feed-forward layer works in
# every token by itself and is not linear in its features, while attention adds up values with
# weights.
#
# For the points, in this order: (1) attention returns averages, and averages of averages make all
# tokens alike; (2) a residual connection adds the branch to what it read, so that each token
# keeps its own row and differences survive; (1) the feed-forward layer bends the features of each
# token by itself; attention with fixed weights only mixes values linearly.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_layer_norm", "grade": true, "locked": true}
examine("transformer.layer_norm", layer_norm).earned

# %% nbgrader={"grade_id": "hidden_layer_norm", "grade": true, "locked": true, "points": 1}
# One more test of layer_norm.
### BEGIN HIDDEN TESTS
x, gain, bias = 3 + 2 * torch.randn(2, 7, 5), torch.randn(5), torch.randn(5)
expected = F.layer_norm(x, (5,), gain, bias, 0.01)
out = layer_norm(x, gain, bias, 0.01)
assert out.shape == (2, 7, 5), "the result should have the shape of x, (2, 7, 5)"
assert torch.allclose(out, expected, atol=1e-4), (
    "with gain, bias and eps = 0.01 it should be what F.layer_norm returns"
)
assert torch.allclose(layer_norm(x + 9), layer_norm(x), atol=1e-3), (
    "adding 9 to x should change nothing: the mean is taken away"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_FeedForward", "grade": true, "locked": true}
examine("transformer.FeedForward", FeedForward).earned

# %% nbgrader={"grade_id": "hidden_FeedForward", "grade": true, "locked": true, "points": 1}
# One more test of FeedForward.
### BEGIN HIDDEN TESTS
layer, x = FeedForward(6, 10), torch.randn(3, 4, 6)
state = {"W_1.weight": torch.randn(10, 6), "W_1.bias": torch.randn(10)}
state |= {"W_2.weight": torch.randn(6, 10), "W_2.bias": torch.randn(6)}
layer.load_state_dict(state, strict=False)  # a buffer of your own is fine
out = layer(x.clone())
assert out.shape == (3, 4, 6), "the result should have the shape of x, (3, 4, 6)"
for i in range(3):
    for j in range(4):  # each token by itself
        hidden = F.gelu(state["W_1.weight"] @ x[i, j] + state["W_1.bias"])
        expected = state["W_2.weight"] @ hidden + state["W_2.bias"]
        assert torch.allclose(out[i, j], expected, atol=1e-4), (
            "each token should become W_2 of the GELU of W_1 of it, both with their biases"
        )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_EncoderBlock", "grade": true, "locked": true}
examine("transformer.EncoderBlock", EncoderBlock).earned

# %% nbgrader={"grade_id": "hidden_EncoderBlock", "grade": true, "locked": true, "points": 1}
# One more test of EncoderBlock.
### BEGIN HIDDEN TESTS
for pre_norm in (True, False):
    block, x = EncoderBlock(8, 2, 10, pre_norm, 0.5), torch.randn(3, 5, 8)
    mask = torch.rand(5, 5) < 0.6
    mask |= torch.eye(5, dtype=torch.bool)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 10, 0.0, "gelu", batch_first=True, norm_first=pre_norm
    )
    sizes = {"attention.W_o": (8, 8), "feed_forward.W_1": (10, 8), "feed_forward.W_2": (8, 10)}
    sizes |= {f"attention.{name}": (8, 8) for name in ("W_q", "W_k", "W_v")}
    state = {f"{name}.weight": torch.randn(shape) / 3 for name, shape in sizes.items()}
    state |= {f"{name}.bias": torch.randn(shape[0]) for name, shape in sizes.items()}
    state |= {f"norm_{i}.{part}": torch.rand(8) for i in (1, 2) for part in ("gain", "bias")}
    block.load_state_dict(state, strict=False)
    parts = ("weight", "bias")
    with torch.no_grad():
        for part in parts:
            three = [state[f"attention.W_{name}.{part}"] for name in "qkv"]
            getattr(theirs.self_attn, f"in_proj_{part}").copy_(torch.cat(three))
            for own, name in (
                ("attention.W_o", "self_attn.out_proj"),
                ("feed_forward.W_1", "linear1"),
                ("feed_forward.W_2", "linear2"),
            ):
                getattr(theirs.get_submodule(name), part).copy_(state[f"{own}.{part}"])
        for i, norm in ((1, theirs.norm1), (2, theirs.norm2)):
            norm.weight.copy_(state[f"norm_{i}.gain"])
            norm.bias.copy_(state[f"norm_{i}.bias"])
    expected, out = theirs(x, src_mask=~mask), block.eval()(x, mask)
    assert out.shape == (3, 5, 8), "the result should have the shape of x, (3, 5, 8)"
    assert torch.allclose(out, expected, atol=1e-4), (
        "after eval() a block with 2 heads and a mask should compute what nn.TransformerEncoderLayer does"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_DecoderBlock", "grade": true, "locked": true}
examine("transformer.DecoderBlock", DecoderBlock).earned

# %% nbgrader={"grade_id": "hidden_DecoderBlock", "grade": true, "locked": true, "points": 1}
# One more test of DecoderBlock.
### BEGIN HIDDEN TESTS
block, x, memory = DecoderBlock(8, 2, dropout=0.5), torch.randn(4, 8), torch.randn(6, 8)
later = torch.ones(4, 4, dtype=torch.bool).tril()
seen = torch.tensor([True, True, False, True, False, True])
state = {name: torch.randn(w.shape) / 3 for name, w in block.state_dict().items()}
block.load_state_dict(state)
block.eval()
out = block(x, memory, later, seen[None])
assert out.shape == (4, 8), "the result should have the shape of x, (4, 8)"
assert out.std() > 0, "two tokens of the result should differ: not all of it may be one number"
assert torch.allclose(block(x, memory[seen], later), out, atol=1e-4), (
    "a token of the memory that memory_mask forbids should play no part"
)
other = torch.cat([x[:3], torch.randn(1, 8)])
assert torch.allclose(block(other, memory, later, seen[None])[:3], out[:3], atol=1e-4), (
    "under a causal mask another last token should not change the rows before it"
)
assert not torch.allclose(block(other, memory, later, seen[None])[3], out[3]), (
    "another last token of x should change the last row"
)
assert not torch.allclose(block(x, memory + 1, later, seen[None]), out), (
    "another memory should change the result"
)
y = x + block.self_attention(block.norm_1(x), mask=later)
y = y + block.cross_attention(block.norm_2(y), memory, mask=seen[None])
y = y + block.feed_forward(block.norm_3(y))
assert torch.allclose(out, y, atol=1e-4), (
    "x should get three branches in turn, each added to what it read: itself, the memory, feed_forward"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_noam_schedule", "grade": true, "locked": true}
examine("transformer.noam_schedule", noam_schedule).earned

# %% nbgrader={"grade_id": "hidden_noam_schedule", "grade": true, "locked": true, "points": 1}
# One more test of noam_schedule.
### BEGIN HIDDEN TESTS
rates = [float(noam_schedule(step, 512, 400)) for step in range(1, 2001)]
assert abs(max(rates) - (512 * 400) ** -0.5) < 1e-9, (
    "the largest rate should be (d_model · warmup)^(-1/2)"
)
assert rates.index(max(rates)) == 399, (
    "the largest rate should be that of step warmup, counted from 1"
)
assert abs(rates[199] / rates[399] - 0.5) < 1e-6, (
    "at half of warmup the rate should be half the largest"
)
assert abs(rates[1599] / rates[399] - 0.5) < 1e-6, (
    "at four times warmup the rate should be half the largest"
)
### END HIDDEN TESTS
