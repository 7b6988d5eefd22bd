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
# # Exercises 21 · Attention today
#
# You write six parts of models of 2024 and 2025: scores with a bound, a softmax with a sink, scores
# against keys that are never made, a memory that can be corrected, a choice of keys, and the bytes that
# each kind of layer keeps. Fill in the cells marked *your code* and run the check below each.
#
# Where a shape is written `(..., n, d)`, the dots stand for any number of batch axes, none included.
# Results keep the floating dtype and the precision of what came in, and gradients must be able to
# flow through exercises 1 to 4. Functions leave what they are given as it is.

# %%
import math

import torch

from attncourse.checks import check, examine
from attncourse.llama import rms_norm
from attncourse.masking import causal_mask

# %% [markdown]
# ## 1 · `normed_scores`
#
# <!-- facts: normed_scores -->
#
# Write `normed_scores(query, key, gain_q, gain_k, eps=1e-6)`: the scores of queries and keys that each
# went through an RMS norm.
#
# | | shape | |
# | --- | --- | --- |
# | `query` | `(..., m, d)` | the queries of one head |
# | `key` | `(..., n, d)` | its keys |
# | `gain_q`, `gain_k` | `(d,)` | the gain of each norm |
# | `eps` | a number above 0 | stands under the root of both norms |
# | returns | `(..., m, n)` | scores |
#
# Each vector is divided by the root of the mean of its squares, over its d features, and multiplied by
# its gain, feature by feature. Then come the dot products, divided by √d. There are no positions here: a
# model that has them turns queries and keys after the norm.
#
# *Fine print:* numbers come in float64 and in float32. You may call `rms_norm`, which is imported above.
# What is in the dots may be heads; each head's vector goes through the norm by itself.
#
# <!-- hints: normed_scores -->
#
# 1. `rms_norm(x, gain, eps)` is chapter 18's, with another default for eps.
# 2. Chapter 5's scores: `query @ key.mT`, over the root of `query.shape[-1]`.


# %% nbgrader={"grade_id": "normed_scores", "solution": true}
def normed_scores(query, key, gain_q, gain_k, eps=1e-6):
    ### BEGIN SOLUTION
    query = rms_norm(query, gain_q, eps)
    key = rms_norm(key, gain_k, eps)
    return query @ key.mT / math.sqrt(query.shape[-1])
    ### END SOLUTION


# %% [markdown]
# One query of length 1 and one of length 1000, and the same two as keys. The score of each with itself is
# √d whatever its length. Expect `[[2., 0.], [0., 2.]]`:

# %%
pair = torch.tensor([[1.0, 0, 0, 0], [0, 1000, 0, 0]])
normed_scores(pair, pair, torch.ones(4), torch.ones(4)).round(decimals=3)

# %% nbgrader={"grade_id": "check_normed_scores", "locked": true}
check("today.normed_scores", normed_scores)

# %% [markdown]
# ## 2 · `sink_softmax`
#
# <!-- facts: sink_softmax -->
#
# Write `sink_softmax(scores, sink, mask=None)`: weights of which a part goes to a sink that has no value.
#
# | | shape | |
# | --- | --- | --- |
# | `scores` | `(..., h, m, n)` | a map for each head |
# | `sink` | `(h,)` | one logit for each head |
# | `mask` | boolean | True where attention is allowed; broadcasts to `(..., h, m, n)` |
# | returns | `(..., h, m, n)` | weights over the keys |
#
# $$A_{ij} = \frac{e^{S_{ij}}}{\sum_l e^{S_{il}} + e^{\text{sink}}}$$
#
# with the sum over the keys that are allowed, and 0 for the others. So rows sum to less than 1, and a
# query without a key gives 0 everywhere.
#
# *Fine print:* numbers come in float64 and in float32; a guard in the sum may be 1e-12 at most. Scores and
# sinks may be tens of thousands, above 0 and below; the result is finite.
#
# <!-- hints: sink_softmax -->
#
# 1. The sink is one more score in every row. `torch.cat([scores, column], dim=-1)`, the softmax, and the
#    last column dropped.
# 2. `column` is `(..., h, m, 1)`: `sink[:, None, None].expand(*scores.shape[:-1], 1)`.
# 3. Masked scores become −∞ before that, `scores.masked_fill(~mask, -torch.inf)`. Since the sink is never
#    masked, no row is empty.


# %% nbgrader={"grade_id": "sink_softmax", "solution": true}
def sink_softmax(scores, sink, mask=None):
    ### BEGIN SOLUTION
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    column = sink[:, None, None].expand(*scores.shape[:-1], 1)
    return torch.cat([scores, column], dim=-1).softmax(-1)[..., :-1]
    ### END SOLUTION


# %% [markdown]
# Two heads, three equal scores each, sinks of log 1 and log 5. Expect 0.25 three times, and 0.125:

# %%
sink_softmax(torch.zeros(2, 1, 3), torch.tensor([1.0, 5.0]).log())

# %% nbgrader={"grade_id": "check_sink_softmax", "locked": true}
check("today.sink_softmax", sink_softmax)

# %% [markdown]
# ## 3 · `absorbed_scores`
#
# <!-- facts: absorbed_scores -->
#
# Write `absorbed_scores(q_content, q_turned, latent, k_turned, W_uk)`: the scores of latent attention,
# without the keys.
#
# | | shape | |
# | --- | --- | --- |
# | `q_content` | `(..., h, m, d_c)` | what each head's queries ask of the content |
# | `q_turned` | `(..., h, m, d_r)` | their part that is turned by position |
# | `latent` | `(..., n, d_latent)` | one small vector for each token, for all heads |
# | `k_turned` | `(..., n, d_r)` | the turned part of the keys, one for all heads |
# | `W_uk` | `(h, d_latent, d_c)` | for each head what makes content keys: `latent @ W_uk[i]` |
# | returns | `(..., h, m, n)` | scores |
#
# The score of a query and a token is the product of the query's content with the content key, plus the
# product of the turned parts, divided by √(d_c + d_r). It can be had without the content keys, since
# q · (c W) = (q Wᵀ) · c: take the *query* to the latents.
#
# *Fine print:* numbers come in float64 and in float32. Make no tensor of as many numbers as the keys of all
# heads have, h · n · d_c; the check looks. (The chapter writes d_head for d_c and d_turned for d_r.)
#
# <!-- hints: absorbed_scores -->
#
# 1. `q_content @ W_uk.mT` is `(..., h, m, d_latent)`: each query as the latents see it.
# 2. The latents need an axis for the heads, `latent.unsqueeze(-3)`, and so do the turned keys.
# 3. The width in the root is that of a whole query, whatever the width of the latent.


# %% nbgrader={"grade_id": "absorbed_scores", "solution": true}
def absorbed_scores(q_content, q_turned, latent, k_turned, W_uk):
    ### BEGIN SOLUTION
    absorbed = q_content @ W_uk.mT
    content = absorbed @ latent.unsqueeze(-3).mT
    turned = q_turned @ k_turned.unsqueeze(-3).mT
    return (content + turned) / math.sqrt(q_content.shape[-1] + q_turned.shape[-1])
    ### END SOLUTION


# %% [markdown]
# One head, one query, two tokens whose latents are (1, 0) and (0, 1). The query becomes (3, 6); with the
# turned parts that is 3 + 3 and 6 + 6, over √4. Expect `[[[3., 6.]]]`:

# %%
absorbed_scores(
    torch.tensor([[[1.0, 0.0, 2.0]]]),
    torch.tensor([[[3.0]]]),
    torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
    torch.tensor([[1.0], [2.0]]),
    torch.tensor([[[1.0, 5.0, 1.0], [0.0, 7.0, 3.0]]]),
)

# %% nbgrader={"grade_id": "check_absorbed_scores", "locked": true}
check("today.absorbed_scores", absorbed_scores)

# %% [markdown]
# ## 4 · `delta_rule`
#
# <!-- facts: delta_rule -->
#
# Write `delta_rule(query, key, value, beta)`: what each query reads from a memory that every token
# corrects first.
#
# | | shape | |
# | --- | --- | --- |
# | `query`, `key` | `(..., n, d_k)` | taken as they come, whatever their lengths |
# | `value` | `(..., n, d_v)` | what a key should answer from now on |
# | `beta` | `(..., n)` | how much of the error is mended, from 0 to 1 |
# | returns | `(..., n, d_v)` | what each query reads |
#
# The memory is a matrix S, `(d_k, d_v)`, of zeros at first. Token by token,
#
# $$S \leftarrow S + \beta\, k\, (v - S^\top k)^\top, \qquad \text{out} = S^\top q$$
#
# so a token is written first and then its query reads. $S^\top k$ is what the memory answers to k
# already; only the difference to v is written. No scale, no softmax, no sum to divide by.
#
# *Fine print:* numbers come in float64 and in float32. A state that is changed in place may lose its
# gradients; `state = state + …`, a list of outputs and `torch.cat` do not.
#
# <!-- hints: delta_rule -->
#
# 1. Begin with `torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :])`, which has the batch axes,
#    too.
# 2. In the loop: `k = key[..., t, :, None]` is a column, `v = value[..., t, None, :]` a row.
# 3. `k.mT @ state` is what the memory answers, a row; the error is `v` less that.
# 4. `state = state + b * k * error` with `b = beta[..., t, None, None]`; then `query[..., t, None, :] @ state`.


# %% nbgrader={"grade_id": "delta_rule", "solution": true}
def delta_rule(query, key, value, beta):
    ### BEGIN SOLUTION
    state = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :])
    outputs = []
    for t in range(key.shape[-2]):
        k, v = key[..., t, :, None], value[..., t, None, :]
        error = v - k.mT @ state
        state = state + beta[..., t, None, None] * k * error
        outputs.append(query[..., t, None, :] @ state)
    return torch.cat(outputs, dim=-2)
    ### END SOLUTION


# %% [markdown]
# One key, written three times: 4 with β = 1, then 8 with β = 1, then 0 with β = 1/4. Expect 4, 8 and 6:

# %%
one_key = torch.tensor([[1.0, 0.0]] * 3)
delta_rule(one_key, one_key, torch.tensor([[4.0], [8.0], [0.0]]), torch.tensor([1.0, 1.0, 0.25]))

# %% nbgrader={"grade_id": "check_delta_rule", "locked": true}
check("today.delta_rule", delta_rule)

# %% [markdown]
# ## 5 · `select_keys`
#
# <!-- facts: select_keys -->
#
# Write `select_keys(index_scores, k, mask)`: for each query the k keys that it will look at.
#
# | | shape | |
# | --- | --- | --- |
# | `index_scores` | `(..., m, n)` | what an indexer says of each key |
# | `k` | a whole number | how many keys a query gets |
# | `mask` | boolean | True where attention is allowed; broadcasts to `(..., m, n)` |
# | returns | `(..., m, n)`, boolean | a mask with the chosen keys alone |
#
# Chosen are the k highest index scores among the keys that a query may attend to. Where these are k or
# fewer, all of them are; of equal scores the earlier key is. In the result as in `mask`, True means
# allowed.
#
# Raise `ValueError` for a k below 1.
#
# *Fine print:* scores come in float64 and in float32. k may be more than there are keys.
#
# <!-- hints: select_keys -->
#
# 1. Keys that are not allowed get a score of −∞, so that they come last.
# 2. `argsort(dim=-1, descending=True, stable=True)` puts the highest first, and of equal ones the earlier.
#    `topk` does not say which of equal ones it takes.
# 3. `torch.zeros(…, dtype=torch.bool).scatter(-1, order[..., :k], True)` marks the first k of each row.
# 4. Where fewer than k are allowed, the first k hold others as well: take these out again.


# %% nbgrader={"grade_id": "select_keys", "solution": true}
def select_keys(index_scores, k, mask):
    ### BEGIN SOLUTION
    if k < 1:
        raise ValueError(f"expected a k of 1 or more, got {k}")
    hidden = torch.where(mask, index_scores, -torch.inf)
    order = hidden.argsort(dim=-1, descending=True, stable=True)
    nothing = torch.zeros_like(index_scores, dtype=torch.bool)
    return nothing.scatter(-1, order[..., :k], True) & mask
    ### END SOLUTION


# %% [markdown]
# The past of three tokens, two keys each. How many keys does each query get? Expect 1, 2 and 2:

# %%
select_keys(torch.tensor([[3.0, 9, 9], [1, 2, 9], [5, 5, 5]]), 2, causal_mask(3)).sum(-1)

# %% nbgrader={"grade_id": "check_select_keys", "locked": true}
check("today.select_keys", select_keys)

# %% [markdown]
# ## 6 · `cache_bytes_of`
#
# <!-- facts: cache_bytes_of -->
#
# Write `cache_bytes_of(config, n_tokens, bytes_per_number=2)`: the bytes that a model keeps of a text,
# over all of its layers.
#
# | in `config` | | |
# | --- | --- | --- |
# | `layers` | a list of names | the kind of each layer: `"full"`, `"window"`, `"latent"` or `"state"` |
# | `n_kv_heads`, `d_head` | whole numbers | heads of keys and values, and their width |
# | `window` | a whole number | how many tokens a window layer sees |
# | `d_latent`, `d_turned` | whole numbers | widths of a latent, and of the turned key beside it |
# | `d_state` | a whole number | the numbers of one layer's state |
#
# | kind of layer | numbers that it keeps |
# | --- | --- |
# | `"full"` | 2 · n_kv_heads · d_head for each token |
# | `"window"` | the same, for at most `window` tokens |
# | `"latent"` | d_latent + d_turned for each token |
# | `"state"` | d_state in all, however long the text |
#
# Each number takes `bytes_per_number` bytes.
#
# Raise `ValueError` unless there is one token or more.
#
# <!-- hints: cache_bytes_of -->
#
# 1. Add up over `config["layers"]`, one kind after the other.
# 2. A window keeps `min(n_tokens, config["window"])` tokens.


# %% nbgrader={"grade_id": "cache_bytes_of", "solution": true}
def cache_bytes_of(config, n_tokens, bytes_per_number=2):
    ### BEGIN SOLUTION
    if n_tokens < 1:
        raise ValueError(f"expected one token or more, got {n_tokens}")
    heads = 2 * config["n_kv_heads"] * config["d_head"]
    numbers = {
        "full": heads * n_tokens,
        "window": heads * min(n_tokens, config["window"]),
        "latent": (config["d_latent"] + config["d_turned"]) * n_tokens,
        "state": config["d_state"],
    }
    return bytes_per_number * sum(numbers[kind] for kind in config["layers"])
    ### END SOLUTION


# %% [markdown]
# A layer of each kind, ten tokens. Expect 320, 96, 160 and 40 bytes:

# %%
sizes = {"n_kv_heads": 2, "d_head": 4, "window": 3, "d_latent": 6, "d_turned": 2, "d_state": 20}
[cache_bytes_of({"layers": [kind], **sizes}, 10) for kind in ("full", "window", "latent", "state")]

# %% nbgrader={"grade_id": "check_cache_bytes_of", "locked": true}
check("today.cache_bytes_of", cache_bytes_of)

# %% [markdown] nbgrader={"grade_id": "explain_smaller_caches", "grade": true, "solution": true, "points": 4}
# ## 7 · What a smaller cache costs
#
# <!-- facts: explain_smaller_caches -->
#
# A model has full layers with 8 key/value heads of width 128. Three remedies are proposed against its
# cache: windows of 1,024 tokens in five of six layers; a latent of 512 numbers with a turned key of 64 in
# every layer; the delta rule in three of four layers, with a state of 500,000 numbers a layer.
#
# Say in three sentences, one for each of the three, what it saves at which length of text, and what the
# model cannot do any more or has to do more of.
#
# | points | for |
# | --: | --- |
# | 1 | the windows |
# | 1 | the latent |
# | 2 | the delta rule: what it saves, and what it loses |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# Windows save nothing in a text of at most 1,024 tokens and nearly five sixths in a long one, but what
# stands further back reaches a window layer only by way of other layers, the full ones above all. A latent
# keeps 576 numbers a token where the heads keep 2,048, at every length, and is paid for with arithmetic:
# keys and values are made anew from it, or each query is compared with all 512 numbers in place of a key's
# 128. A state of 500,000 numbers is as large as the cache of 244 tokens, so such a layer keeps more below
# that length and next to nothing in comparison far above it, and what it holds is a fixed number of
# associations: with keys of width d_k no more than d_k can be kept apart, and later ones overwrite or blur
# earlier ones, which the full layer in four has to make up for.
#
# For the points, in this order: (1) nothing below the window's length and about five sixths far above it,
# and far tokens only by way of other layers; (1) 576 in place of 2,048 at any length, and more arithmetic;
# (2) saves from about 244 tokens on and nearly everything in a long text, but cannot keep more than a fixed
# number of keys apart, so that what was written is lost or blurred.
# ### END SOLUTION

# %% [markdown]
# ## Put it to work
#
# Nothing is graded here. Eight keys are written four times each, always with another value; then the
# memory is asked for all eight. With your `delta_rule` each key answers what was written last. The second
# number is for a memory that only adds up, as linear attention does: keys answer the sum of all four.
# Expect an error near 0, and one above 1:


# %%
def errors_of_last_values(seed=0):
    """The mean distance to the values that were written last: corrected, and added up."""
    torch.manual_seed(seed)
    each, nothing = torch.eye(8), torch.zeros(8, 5)
    keys, values = each.repeat(4, 1), torch.randn(32, 5)
    # With β = 0 the last eight tokens write nothing: they only ask.
    strength = torch.cat([torch.ones(32), torch.zeros(8)])
    asked = torch.cat([keys, each])
    corrected = delta_rule(asked, asked, torch.cat([values, nothing]), strength)[-8:]
    added = each @ (keys.T @ values)
    return [float((answer - values[-8:]).norm(dim=-1).mean()) for answer in (corrected, added)]


errors_of_last_values()

# %% [markdown]
# Twelve models that are in use, and what each keeps of a text of 1,000 and of 128,000 tokens, by your
# `cache_bytes_of`. Put this into a cell of its own; it prints megabytes:
#
# ```python
# from attncourse.today import MODELS
#
# needless = dict.fromkeys(["n_kv_heads", "d_head", "window", "d_latent", "d_turned", "d_state"], 1)
# for name, config in MODELS.items():
#     known = needless | {key: value for key, value in config.items() if value is not None}
#     print(name, [cache_bytes_of(known, n) / 1e6 for n in (1000, 128_000)])
# ```

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_normed_scores", "grade": true, "locked": true}
examine("today.normed_scores", normed_scores).earned

# %% nbgrader={"grade_id": "hidden_normed_scores", "grade": true, "locked": true, "points": 1}
# One more test of normed_scores.
### BEGIN HIDDEN TESTS
query, key = torch.randn(2, 3, 6, dtype=torch.float64), torch.randn(2, 5, 6, dtype=torch.float64)
gain_q, gain_k = torch.rand(6, dtype=torch.float64) + 0.5, torch.rand(6, dtype=torch.float64) + 0.5
scores = normed_scores(query.clone(), key.clone(), gain_q.clone(), gain_k.clone())
assert tuple(scores.shape) == (2, 3, 5), (
    "3 queries and 5 keys in a batch of 2 should give (2, 3, 5)"
)
unit_q, unit_k = (x / x.square().mean(-1, keepdim=True).sqrt() for x in (query, key))
right = (gain_q * unit_q) @ (gain_k * unit_k).mT / 6**0.5
assert torch.allclose(scores, right, atol=1e-4), (
    "each vector should go through its RMS norm and its gain before the products, divided by √6"
)
longer = normed_scores(100 * query, 1000 * key, gain_q.clone(), gain_k.clone())
assert torch.allclose(longer, scores, atol=1e-4), (
    "vectors a hundred and a thousand times as long should have the same scores"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_sink_softmax", "grade": true, "locked": true}
examine("today.sink_softmax", sink_softmax).earned

# %% nbgrader={"grade_id": "hidden_sink_softmax", "grade": true, "locked": true, "points": 1}
# One more test of sink_softmax.
### BEGIN HIDDEN TESTS
scores, sink = torch.randn(3, 4, 5, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
weights = sink_softmax(scores.clone(), sink.clone())
right = scores.exp() / (scores.exp().sum(-1, keepdim=True) + sink.exp()[:, None, None])
assert tuple(weights.shape) == (3, 4, 5), "the sink should have no column in what is returned"
assert torch.allclose(weights, right, atol=1e-6), (
    "each head's sink should stand in the sum that its rows are divided by"
)
far = sink_softmax(scores - 20000, sink - 20000)
assert torch.allclose(far, right, atol=1e-6), (
    "scores and sinks that are all lower by 20,000 should give the same weights"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_absorbed_scores", "grade": true, "locked": true}
examine("today.absorbed_scores", absorbed_scores).earned

# %% nbgrader={"grade_id": "hidden_absorbed_scores", "grade": true, "locked": true, "points": 1}
# One more test of absorbed_scores.
### BEGIN HIDDEN TESTS
q_content, q_turned = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 2)
latent, k_turned, W_uk = torch.randn(2, 6, 7), torch.randn(2, 6, 2), torch.randn(3, 7, 5)
given = q_content.clone(), q_turned.clone(), latent.clone(), k_turned.clone(), W_uk.clone()
scores = absorbed_scores(*given)
assert tuple(scores.shape) == (2, 3, 4, 6), (
    "3 heads with 4 queries and 6 tokens in a batch of 2 should give (2, 3, 4, 6)"
)
for i in range(3):
    content_keys = latent @ W_uk[i]
    right = q_content[:, i] @ content_keys.mT + q_turned[:, i] @ k_turned.mT
    assert torch.allclose(scores[:, i], right / 7**0.5, atol=1e-3), (
        "a head's scores should be those against its own content keys and the shared turned keys"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_delta_rule", "grade": true, "locked": true}
examine("today.delta_rule", delta_rule).earned

# %% nbgrader={"grade_id": "hidden_delta_rule", "grade": true, "locked": true, "points": 1}
# One more test of delta_rule.
### BEGIN HIDDEN TESTS
keys = torch.eye(3, dtype=torch.float64)[[0, 1, 0, 2]]
values, ones = torch.randn(4, 2, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
read = delta_rule(keys[[0, 0, 1, 0]].clone(), keys.clone(), values.clone(), ones.clone())
assert tuple(read.shape) == (4, 2), "4 tokens with values of width 2 should give (4, 2)"
assert torch.allclose(read, values[[0, 0, 1, 2]], atol=1e-6), (
    "with β = 1 a key should answer the value that was written with it last"
)
half = delta_rule(keys[[0, 0, 0, 0]].clone(), keys.clone(), values.clone(), ones / 2)
assert torch.allclose(half[-1], values[0] / 4 + values[2] / 2, atol=1e-6), (
    "with β = 1/2 half of the error should be mended each time a key comes"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_select_keys", "grade": true, "locked": true}
examine("today.select_keys", select_keys).earned

# %% nbgrader={"grade_id": "hidden_select_keys", "grade": true, "locked": true, "points": 1}
# One more test of select_keys.
### BEGIN HIDDEN TESTS
scores = torch.stack([torch.randperm(7) for _ in range(7)]).double()
mask = torch.ones(7, 7, dtype=torch.bool).tril()
chosen = select_keys(scores.clone(), 3, mask.clone())
assert chosen.dtype == torch.bool and tuple(chosen.shape) == (7, 7), (
    "7 queries and 7 keys should give a boolean mask (7, 7)"
)
assert not bool((chosen & ~mask).any()), "no key should be chosen that the mask forbids"
assert chosen.sum(-1).tolist() == [1, 2, 3, 3, 3, 3, 3], (
    "each query should get three of its keys, or all where it has no more"
)
for i in range(3, 7):
    best = scores[i, : i + 1].topk(3).indices.sort().values
    assert torch.equal(chosen[i].nonzero()[:, 0], best), (
        "the chosen keys should be those with the highest scores among the allowed ones"
    )
equal = select_keys(torch.ones(1, 40), 5, torch.ones(1, 40, dtype=torch.bool))
assert equal[0, :5].all() and equal.sum() == 5, "of equal scores the earlier keys should be chosen"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_cache_bytes_of", "grade": true, "locked": true}
examine("today.cache_bytes_of", cache_bytes_of).earned

# %% nbgrader={"grade_id": "hidden_cache_bytes_of", "grade": true, "locked": true, "points": 1}
# One more test of cache_bytes_of.
### BEGIN HIDDEN TESTS
layers = ["window", "window", "full", "latent", "state"]
model = {
    "layers": layers, "n_kv_heads": 3, "d_head": 5, "window": 100, "d_latent": 11, "d_turned": 7,
    "d_state": 1000,
}  # fmt: skip
assert cache_bytes_of(dict(model), 1000) == 2 * (30 * 1200 + 18000 + 1000), (
    "1,000 tokens should be counted whole by the full and the latent layer, 100 by each window"
)
assert cache_bytes_of(dict(model), 50, 1) == 30 * 150 + 18 * 50 + 1000, (
    "50 tokens, at a byte a number, should be counted whole by every layer but the state's"
)
### END HIDDEN TESTS
