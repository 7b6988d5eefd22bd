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
# # Exercises 14 · What the heads learned
#
# You write the instruments of chapter 14: a pattern to look for in a map, a number that says how
# well a head follows it, a switch for one head, a way to add maps up over the layers, and a measure
# of what a model expects. Fill in the cells marked *your code* and run the check below each.
#
# Row i of a map belongs to token i, which attends; column j to token j, which is attended to. Where
# a shape is written `(..., n, n)`, the dots stand for any number of axes, none included. Layers and
# heads count from 0. Numbers made of maps have the maps' dtype and are computed in it, and gradients
# must be able to flow through them. Functions leave what they are given as it is.

# %%
import copy

import torch
from torch import nn

from attncourse.checks import check, examine
from attncourse.gpt import GPT, GPTConfig

# %% [markdown]
# ## 1 · `induction_pattern`
#
# <!-- facts: induction_pattern -->
#
# *7 2 9 7*: what comes next? Last time a 2 followed the 7. A head that knows this looks, from the
# second 7, at the 2. Write `induction_pattern(ids)`, the pattern of all such pairs: True at (i, j)
# where 1 ≤ j ≤ i and token j − 1 is token i.
#
# | | shape | |
# | --- | --- | --- |
# | `ids` | `(n,)` | a tensor of whole numbers |
# | returns | `(n, n)` | a boolean tensor; row i says where token i should look |
#
# Where a token has come several times, every place behind one of them is True. Where it comes twice
# in a row, the second of the two is what followed the first: there j = i is True.
#
# <!-- hints: induction_pattern -->
#
# 1. Compare all with all first: `ids[:, None] == ids` is True at (i, k) where token k is token i.
# 2. What followed token k stands at k + 1: the columns move one place to the right, and column 0 is
#    empty.
# 3. `same[:, :-1]` becomes `pattern[:, 1:]`; then `.tril()`.


# %% nbgrader={"grade_id": "induction_pattern", "solution": true}
def induction_pattern(ids):
    ### BEGIN SOLUTION
    same = ids[:, None] == ids  # (n, n), token k is token i
    pattern = torch.zeros_like(same)
    pattern[:, 1:] = same[:, :-1]  # what followed stands one place further right
    return pattern.tril()
    ### END SOLUTION


# %% [markdown]
# Expect True in row 3 at column 1 alone, and in row 4 at column 2 alone:

# %%
induction_pattern(torch.tensor([7, 2, 9, 7, 2])).int()

# %% nbgrader={"grade_id": "check_induction_pattern", "locked": true}
check("interpret.induction_pattern", induction_pattern)

# %% [markdown]
# ## 2 · `head_scores`
#
# <!-- facts: head_scores -->
#
# Write `head_scores(maps, pattern)`: how much of its attention each head puts where the pattern is
# True. For one query that is the sum of its weights on its True places. The score is the average
# of these sums over the queries that have any True. Queries without one are not asked; where no
# query has one, the score is 0.
#
# | | shape | |
# | --- | --- | --- |
# | `maps` | `(..., layers, heads, n, n)` | weights, rows sum to 1 |
# | `pattern` | `(n, n)` | boolean |
# | returns | `(..., layers, heads)` | from 0 to 1, of the maps' dtype |
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most.
#
# <!-- hints: head_scores -->
#
# 1. `maps * pattern` is what falls on the pattern, `(..., layers, heads, n, n)`; add it up along
#    each row.
# 2. Which queries are asked? `pattern.any(dim=-1)`, `(n,)`. The others have 0 in that sum anyway:
#    only the divisor must not count them.
# 3. An empty pattern asks nobody. `asked.sum().clamp(min=1)` keeps 0 / 0 away.


# %% nbgrader={"grade_id": "head_scores", "solution": true}
def head_scores(maps, pattern):
    ### BEGIN SOLUTION
    found = (maps * pattern).sum(dim=-1)  # (..., layers, heads, n)
    asked = pattern.any(dim=-1)  # (n,)
    return found.sum(dim=-1) / asked.sum().clamp(min=1)
    ### END SOLUTION


# %% [markdown]
# One head that looks at all tokens alike; the pattern asks queries 1 and 2 for token 0. Expect
# (1/2 + 1/3) / 2 = 0.4167:

# %%
even = torch.ones(3, 3).tril()
even = even / even.sum(dim=-1, keepdim=True)
at_first = torch.tensor([[False, False, False], [True, False, False], [True, False, False]])
head_scores(even[None, None], at_first)

# %% nbgrader={"grade_id": "check_head_scores", "locked": true}
check("interpret.head_scores", head_scores)

# %% [markdown]
# ## 3 · `ablate`
#
# <!-- facts: ablate -->
#
# Write `ablate(model, layer, head, how="zero", ids=None)`, which returns a *changed copy* of a
# `GPT` of chapter 13; the model that it is given stays as it is. In the copy one head of the layer
# `model.blocks[layer].attention` says the same, whatever it reads:
#
# - with `how="zero"` it hands zeros to `W_o`;
# - with `how="mean"` it hands over its mean: the average, over every token of every sequence of
#   `ids`, `(..., n)`, of what this head hands to `W_o` while the model reads ids.
#
# | of `model.blocks[layer].attention` | | |
# | --- | --- | --- |
# | `n_heads` | h | |
# | `W_q`, `W_k`, `W_v`, `W_o` | `nn.Linear`, d_model to d_model | all with a bias, or none |
# | `views(x, None, None)` | queries, keys and values of all heads, `(..., h, n, d_head)` | |
# | `weights(x, mask=mask)` | the maps of all heads, `(..., h, n, n)` | |
#
# Head i has the features i·d_head to (i + 1)·d_head − 1 of what goes into `W_o`. A block reads
# `norm_1(x)`. Biases are nobody's head: the others and `W_o`'s own stay. How you do it is up to you
# (change weights, hook, or wrap the model): what counts is what the model that you return says,
# `changed(ids)`, and that the given one says what it said before. All heads, layers and ways that
# you are asked for exist.
#
# <!-- hints: ablate -->
#
# 1. `copy.deepcopy(model)`, then the layer `blocks[layer].attention.W_o` of the copy.
# 2. d_head = d_model / n_heads. Which columns of `W_o.weight` meet the head's features?
# 3. For the mean, let the block read ids: a forward hook on `attention.W_o` sees what all heads
#    hand to it, side by side.
# 4. `W_o.weight[:, own] @ mean` is what the mean adds to every output, whatever is read: that is a
#    bias. Compute it before the columns become 0.


# %% nbgrader={"grade_id": "ablate", "solution": true}
def small_gpt(seed=0, **sizes):
    """A small GPT with random weights of order one, to try things out on."""
    torch.manual_seed(seed)
    config = {"n_vocab": 11, "max_length": 9, "d_model": 12, "n_heads": 3, "d_ff": 7} | sizes
    model = GPT(GPTConfig(**config)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) / 2)
    return model


def ablate(model, layer, head, how="zero", ids=None):
    ### BEGIN SOLUTION
    changed = copy.deepcopy(model)
    attention = changed.blocks[layer].attention
    W_o, d_head = attention.W_o, attention.d_model // attention.n_heads
    own = slice(head * d_head, (head + 1) * d_head)
    with torch.no_grad():
        if how == "mean":
            seen = []
            hook = W_o.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
            changed(ids)
            hook.remove()
            mean = seen[0][..., own].flatten(0, -2).mean(dim=0)  # (d_head,)
            said = W_o.weight[:, own] @ mean  # (d_model,)
            W_o.bias = nn.Parameter(said if W_o.bias is None else W_o.bias + said)
        W_o.weight[:, own] = 0
    return changed
    ### END SOLUTION


# %% [markdown]
# Expect `False True`: the copy says something else, the model what it said.

# %%
model, ids = small_gpt(), torch.tensor([3, 1, 4, 1, 5])
before = model(ids)
after = ablate(model, 1, 2)(ids)
print(torch.allclose(after, before), torch.equal(model(ids), before))

# %% nbgrader={"grade_id": "check_ablate", "locked": true}
check("interpret.ablate", ablate)

# %% [markdown]
# ## 4 · `rollout`
#
# <!-- facts: rollout -->
#
# Write `rollout(maps, residual=0.5)`: attention followed through the layers. In each layer the maps
# of the heads are averaged to A, `(..., n, n)`; beside it runs the residual stream, in which every
# token keeps what it has: residual · I + (1 − residual) · A. These matrices are multiplied from the
# first layer up, later layers on the left.
#
# | | shape | |
# | --- | --- | --- |
# | `maps` | `(..., layers, heads, n, n)` | layer 0 first; rows sum to 1 |
# | `residual` | a number | from 0 to 1, the stream's share |
# | returns | `(..., n, n)` | row i: how much of each input is in output i |
#
# *Fine print:* numbers come in float64 and in float32; rows sum to 1 as they come; a guard where
# you divide them by their sums all the same may be 1e-12 at most.
#
# <!-- hints: rollout -->
#
# 1. `maps.mean(dim=-3)` leaves one map for each layer, `(..., layers, n, n)`.
# 2. Begin with the identity: before the first layer, each token holds itself.
# 3. Layer by layer: `flow = (residual * I + (1 - residual) * A) @ flow`.


# %% nbgrader={"grade_id": "rollout", "solution": true}
def rollout(maps, residual=0.5):
    ### BEGIN SOLUTION
    stay = torch.eye(maps.shape[-1], dtype=maps.dtype)
    flow = stay
    for layer in maps.mean(dim=-3).unbind(dim=-3):
        flow = (residual * stay + (1 - residual) * layer) @ flow
    return flow
    ### END SOLUTION


# %% [markdown]
# Two layers of one head: in the first, token 1 looks at token 0; in the second, at itself. Expect
# `[[1.0, 0.0], [0.5, 0.5]]`:

# %%
first, second = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.eye(2)
rollout(torch.stack([first, second])[:, None]).tolist()

# %% nbgrader={"grade_id": "check_rollout", "locked": true}
check("interpret.rollout", rollout)

# %% [markdown]
# ## 5 · `pronoun_bias`
#
# <!-- facts: pronoun_bias -->
#
# Write `pronoun_bias(model, contexts, she, he)`: how much rather the model goes on with *she* than
# with *he*. For each context that is log p(she) − log p(he), in nats, for the token after it; the
# result is the mean over the contexts, a float. 0 is no preference, a negative number prefers *he*.
#
# | | |
# | --- | --- |
# | `model` | a `GPT`: `model(ids)` are logits, `(n,)` to `(n, n_vocab)` |
# | `contexts` | a list of 1-D tensors of ids, of different lengths |
# | `she`, `he` | the ids of the two tokens |
# | returns | a float |
#
# *Fine print:* the model's numbers are float64 or float32, and the result keeps their precision; a
# guard inside a logarithm may be 1e-12 at most.
#
# <!-- hints: pronoun_bias -->
#
# 1. `model(context)` returns logits `(n, n_vocab)`. Which row says what comes next?
# 2. `log_softmax` of that row, at she minus at he. (Its normaliser is the same for both.)
# 3. One number a context; their mean, as a float: `.item()`.


# %% nbgrader={"grade_id": "pronoun_bias", "solution": true}
def pronoun_bias(model, contexts, she, he):
    ### BEGIN SOLUTION
    ratios = []
    with torch.no_grad():
        for context in contexts:
            logs = model(context)[-1].log_softmax(dim=-1)  # (n_vocab,)
            ratios.append((logs[she] - logs[he]).item())
    return sum(ratios) / len(ratios)
    ### END SOLUTION


# %% [markdown]
# Exchanging the two tokens turns the sign. Expect two numbers that are opposite:

# %%
contexts = [torch.tensor([3, 1, 4]), torch.tensor([2, 7])]
pronoun_bias(small_gpt(), contexts, she=5, he=9), pronoun_bias(small_gpt(), contexts, 9, 5)

# %% nbgrader={"grade_id": "check_pronoun_bias", "locked": true}
check("interpret.pronoun_bias", pronoun_bias)

# %% [markdown] nbgrader={"grade_id": "explain_evidence", "grade": true, "solution": true, "points": 4}
# ## 6 · A beautiful map
#
# <!-- facts: explain_evidence -->
#
# A head puts 90 % of the pronoun's weight on the right name. Explain in three sentences why this
# does not show that the model needs the head, which experiment says more, and what remains open
# if that experiment changes nothing.
#
# | points | for |
# | --: | --- |
# | 1 | what a map says, and what it leaves open |
# | 2 | the experiment, and what is measured |
# | 1 | what remains open if nothing changes |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# The weights say where the head looks; whether the value found there changes the answer depends
# on $W_v$, on $W_o$ and on all other heads. To ablate the head, with its columns of $W_o$ at 0 or
# its output at its mean, and to measure the pronoun's probability again shows what the model
# loses. If it loses nothing, others may stand in for the head, so one would remove them together
# before calling it useless.
#
# For the points, in this order: (1) a map says where a head looks, not whether what it hands over
# (values, $W_o$) reaches the answer; (2) ablation: its columns of $W_o$ become 0, or it hands
# over its mean, and the loss or the pronoun's probability is measured again; (1) if nothing
# changes, another head may have done the same job: several have to go together.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_induction_pattern", "grade": true, "locked": true}
examine("interpret.induction_pattern", induction_pattern).earned

# %% nbgrader={"grade_id": "hidden_induction_pattern", "grade": true, "locked": true, "points": 1}
# One more test of induction_pattern.
### BEGIN HIDDEN TESTS
half = torch.randperm(50)[:7]
pattern = induction_pattern(torch.cat([half, half]))
expected = torch.zeros(14, 14, dtype=torch.bool)
for i in range(7, 14):
    expected[i, i - 6] = True  # what followed, seven places ago
assert pattern.shape == (14, 14), "14 ids should give shape (14, 14)"
assert pattern.dtype == torch.bool, "the pattern should be boolean, not numbers"
assert torch.equal(pattern, expected), (
    "seven tokens said twice: token i should look at what followed it the first time, i - 6"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_head_scores", "grade": true, "locked": true}
examine("interpret.head_scores", head_scores).earned

# %% nbgrader={"grade_id": "hidden_head_scores", "grade": true, "locked": true, "points": 1}
# One more test of head_scores.
### BEGIN HIDDEN TESTS
maps = torch.randn(2, 3, 2, 6, 6).softmax(dim=-1)
wanted = torch.rand(6, 6) < 0.4
wanted[2], wanted[4] = False, True
expected = torch.zeros(2, 3, 2)
rows = [i for i in range(6) if wanted[i].any()]
for i in rows:
    for j in range(6):
        if wanted[i, j]:
            expected += maps[..., i, j].clone() / len(rows)
scores = head_scores(maps, wanted)
assert scores.shape == (2, 3, 2), (
    "maps of shape (2, 3, 2, 6, 6) should give a score for each head of each layer, (2, 3, 2)"
)
assert torch.allclose(scores, expected, atol=1e-5), (
    "a score should be the weight on True places, averaged over the queries that have any"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_ablate", "grade": true, "locked": true}
examine("interpret.ablate", ablate).earned

# %% nbgrader={"grade_id": "hidden_ablate", "grade": true, "locked": true, "points": 1}
# One more test of ablate.
### BEGIN HIDDEN TESTS
config = GPTConfig(n_vocab=11, max_length=9, d_model=12, n_heads=3, d_ff=7)
given, expected, ids = small_gpt(), GPT(config).eval(), torch.randint(11, (2, 6))
state = {name: torch.randn(w.shape) / 2 for name, w in expected.state_dict().items()}
state["out.weight"] = state["tokens.weight"]
given.load_state_dict(state)
expected.load_state_dict(state)
with torch.no_grad():
    whole = expected(ids).clone()
    expected.blocks[1].attention.W_o.weight[:, 4:8] = 0
    silenced = expected(ids).clone()
    out = ablate(given, 1, 1)(ids)
    again = given(ids)
assert out.shape == (2, 6, 11), "the changed copy should return logits of shape (2, 6, 11)"
assert torch.allclose(out, silenced, atol=1e-4), (
    "head 1 of layer 1 should hand zeros to W_o, and all else stay as it is"
)
assert torch.allclose(again, whole, atol=1e-4), (
    "the model that is given should say what it said before"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_rollout", "grade": true, "locked": true}
examine("interpret.rollout", rollout).earned

# %% nbgrader={"grade_id": "hidden_rollout", "grade": true, "locked": true, "points": 1}
# One more test of rollout.
### BEGIN HIDDEN TESTS
maps = torch.randn(2, 3, 4, 5, 5).softmax(dim=-1)
A = 0.7 * maps.mean(dim=2) + 0.3 * torch.eye(5)  # (2, 3, 5, 5)
expected = A[:, 2] @ A[:, 1] @ A[:, 0]
flow = rollout(maps, 0.3)
assert flow.shape == (2, 5, 5), (
    "maps of shape (2, 3, 4, 5, 5) should give shape (2, 5, 5): heads and layers are gone"
)
assert torch.allclose(flow, expected, atol=1e-5), (
    "it should be (0.3 I + 0.7 A) of the three layers multiplied, the last layer on the left"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_pronoun_bias", "grade": true, "locked": true}
examine("interpret.pronoun_bias", pronoun_bias).earned

# %% nbgrader={"grade_id": "hidden_pronoun_bias", "grade": true, "locked": true, "points": 1}
# One more test of pronoun_bias.
### BEGIN HIDDEN TESTS
config = GPTConfig(n_vocab=11, max_length=9, d_model=12, n_heads=3, d_ff=7)
given, own = small_gpt(), GPT(config).eval()
state = {name: torch.randn(w.shape) / 2 for name, w in own.state_dict().items()}
state["out.weight"] = state["tokens.weight"]
given.load_state_dict(state)
own.load_state_dict(state)
contexts = [torch.randint(11, (n,)) for n in (5, 2, 7)]
expected = 0.0
with torch.no_grad():
    for context in contexts:
        p = own(context)[-1].double().softmax(dim=-1)
        expected += (p[4].log() - p[7].log()).item() / 3
assert abs(float(pronoun_bias(given, contexts, 4, 7)) - expected) < 1e-3, (
    "the mean of log p(she) - log p(he) after the last token of each context should come out"
)
### END HIDDEN TESTS
