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
# # Exercises 13 · A language model
#
# A stack of blocks under a causal mask says, for each token, how likely every word is to come next.
# You write what stands around it: the loss that trains it, the choice of a token, the loop that
# writes, the number that says how good it is, and attention that remembers. Fill in the cells
# marked *your code* and run the check below each.
#
# Where a shape is written `(..., n)`, the dots stand for any number of batch axes, none included.
# `n_vocab` is the number of words; ids count from 0. Logits keep their floating dtype and
# precision, and gradients must be able to flow through losses, logits and attention: no
# `.detach()`, no `.numpy()`. Functions leave what they are given as it is.

# %%
import math

import torch
from torch.nn import functional as F

from attncourse.checks import check, examine
from attncourse.kqv import scaled_dot_product_attention
from attncourse.masking import causal_mask

# %% [markdown]
# ## 1 · `next_token_loss`
#
# <!-- facts: next_token_loss -->
#
# Row t of the logits scores the token that comes *after* token t. Write
# `next_token_loss(logits, ids, padding_id=None)`: the mean, over all targets, of
# −log softmax(logits[t])[ids[t + 1]], in nats.
#
# | | shape | |
# | --- | --- | --- |
# | `logits` | `(..., n, n_vocab)` | row t has read tokens 0 to t |
# | `ids` | `(..., n)` | what was read, and what came |
# | `padding_id` | a number or `None` | targets that are this id do not count |
# | returns | `()` | one number, a tensor |
#
# All targets of all sequences count alike: sum over everything, then divide by how many targets
# count. Where none does (nothing but padding, or sequences of one token), the loss is 0. Without a
# `padding_id` every target counts. Logits may be large: no share is too small for its logarithm.
#
# *Fine print:* numbers come in float64 and in float32; no guard stands inside the logarithm.
#
# <!-- hints: next_token_loss -->
#
# 1. Row t has read tokens 0 … t. Which token is it to be judged by?
# 2. `logits[..., :-1, :]` and `ids[..., 1:]` belong together; `F.cross_entropy` wants them
#    flattened.
# 3. With `reduction='none'` you get one number for each target: multiply by where the target is not
#    padding, sum, and divide by how many there are, at least 1.


# %% nbgrader={"grade_id": "next_token_loss", "solution": true}
def next_token_loss(logits, ids, padding_id=None):
    ### BEGIN SOLUTION
    shares = F.log_softmax(logits[..., :-1, :], dim=-1)
    targets = ids[..., 1:]
    surprise = -shares.gather(-1, targets[..., None])[..., 0]
    counts = torch.ones_like(targets) if padding_id is None else (targets != padding_id).long()
    return (surprise * counts).sum() / counts.sum().clamp(min=1)
    ### END SOLUTION


# %% [markdown]
# Two rows are judged. The tokens that came had shares 1/4 and 4/5, so expect about 0.805:

# %%
next_token_loss(
    torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.3, 0.5]]).log(),
    torch.tensor([0, 1, 2]),
)

# %% nbgrader={"grade_id": "check_next_token_loss", "locked": true}
check("gpt.next_token_loss", next_token_loss)

# %% [markdown]
# ## 2 · `filter_logits`
#
# <!-- facts: filter_logits -->
#
# Write `filter_logits(logits, top_k=None, top_p=None)`, which keeps the logits of likely tokens and
# puts −∞ in place of the others.
#
# | | shape | |
# | --- | --- | --- |
# | `logits` | `(..., n_vocab)` | scores of the next token |
# | `top_k` | a whole number or `None` | how many tokens to keep |
# | `top_p` | a number in (0, 1] or `None` | how much probability to keep |
# | returns | `(..., n_vocab)` | the same logits, or −∞ |
#
# - `top_k` keeps exactly k tokens of each row, the likeliest. Of tokens that are equally likely the
#   lower ids stay.
# - `top_p` keeps the smallest set of the likeliest whose probability is at least p. The token with
#   which the set reaches p belongs to it, so one token always stays.
# - With both, top-k comes first, and p is measured on what it left, shared out anew.
# - What is −∞ already stays so. Without either the logits come back as they are.
#
# Dropped tokens are −∞, not a low number, and their gradient is 0. No case lies so near to an edge of p that rounding could
# decide.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: filter_logits -->
#
# 1. A token's *rank* decides: 0 for the likeliest. `argsort` of an `argsort` gives ranks.
# 2. Top-p: sort the shares in descending order. A token stays if those before it have less than p
#    together.
# 3. `order = logits.argsort(descending=True, stable=True)`; what you decide along the sorted row
#    goes back with `torch.zeros_like(keep).scatter(-1, order, keep)`.


# %% nbgrader={"grade_id": "filter_logits", "solution": true}
def filter_logits(logits, top_k=None, top_p=None):
    ### BEGIN SOLUTION
    order = logits.argsort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        keep = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order[..., :top_k], True)
        logits = logits.masked_fill(~keep, -math.inf)
    if top_p is not None:
        shares = logits.softmax(dim=-1).gather(-1, order)
        kept = shares.cumsum(dim=-1) - shares < top_p
        keep = torch.zeros_like(kept).scatter(-1, order, kept)
        logits = logits.masked_fill(~keep, -math.inf)
    return logits
    ### END SOLUTION


# %% [markdown]
# Shares of 0.1, 0.5, 0.15 and 0.25. Expect two tokens in both lines, 1 and 3:

# %%
shares = torch.tensor([0.1, 0.5, 0.15, 0.25])
print(filter_logits(shares.log(), top_k=2))
print(filter_logits(shares.log(), top_p=0.6))

# %% nbgrader={"grade_id": "check_filter_logits", "locked": true}
check("gpt.filter_logits", filter_logits)

# %% [markdown]
# ## 3 · `sample_token`
#
# <!-- facts: sample_token -->
#
# Write `sample_token(logits, temperature=1.0, top_k=None, top_p=None, generator=None)`, which draws
# a token for each row: divide the logits by the temperature, cut them with your `filter_logits`,
# and draw from the softmax of what is left.
#
# | | shape | |
# | --- | --- | --- |
# | `logits` | `(..., n_vocab)` | any number of rows, each drawn by itself |
# | `temperature` | a number from 0 on | 0 is the likeliest token |
# | `generator` | a `torch.Generator` or `None` | what the draw takes its random numbers from |
# | returns | `(...)` | ids, int64, as `argmax` returns them |
#
# Equal generators draw equal tokens. How is a random answer checked? By rows where one token alone
# can come, and by counts: many draws from shares that are whole sixths, rounded to sixths. A right
# answer fails by bad luck less than once in a million checks.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: sample_token -->
#
# 1. Temperature 0 is a case of its own. Else three steps: divide, cut, draw.
# 2. `filter_logits(logits / temperature, top_k, top_p).softmax(-1)` are the shares.
# 3. `torch.multinomial(rows, 1, generator=generator)` draws for each row of a matrix; reshape
#    before and after it.


# %% nbgrader={"grade_id": "sample_token", "solution": true}
def sample_token(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    ### BEGIN SOLUTION
    if temperature == 0:
        return logits.argmax(dim=-1)
    shares = filter_logits(logits / temperature, top_k, top_p).softmax(dim=-1)
    rows = shares.reshape(-1, shares.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).reshape(shares.shape[:-1])
    ### END SOLUTION


# %% [markdown]
# Ten draws of each row. The second row has one token that can come:

# %%
rows = torch.tensor([[0.0, 1.0, 2.0], [-math.inf, 0.0, -math.inf]])
torch.stack([sample_token(rows) for _ in range(10)], dim=1)

# %% nbgrader={"grade_id": "check_sample_token", "locked": true}
check("gpt.sample_token", sample_token)

# %% [markdown]
# ## 4 · `generate`
#
# <!-- facts: generate -->
#
# Write `generate(model, ids, n_new, choose=None)`, which writes `n_new` tokens behind `ids`, one
# after the other, each chosen by the logits for what comes next.
#
# | | shape | |
# | --- | --- | --- |
# | `model` | called as `model(ids)` | ids `(..., n)` → logits `(..., n, n_vocab)` |
# | `model.max_length` | a number | the model reads no more tokens than this at once |
# | `ids` | `(..., n)` | the beginning, at least one token |
# | `choose` | called as `choose(logits)` | logits `(..., n_vocab)` → ids `(...)` |
# | returns | `(..., n + n_new)` | the beginning and what was written |
#
# Without `choose` the likeliest token is taken. Where the sequence outgrows the model, its last
# `max_length` tokens are the context; what is returned is whole all the same.
#
# <!-- hints: generate -->
#
# 1. One step: look at the context, take the last row of the logits, choose, append.
# 2. `model(ids[..., -model.max_length:])[..., -1, :]` are the logits for what comes next.
# 3. `torch.cat([ids, token[..., None]], dim=-1)` appends.


# %% nbgrader={"grade_id": "generate", "solution": true}
def generate(model, ids, n_new, choose=None):
    ### BEGIN SOLUTION
    for _ in range(n_new):
        logits = model(ids[..., -model.max_length :])[..., -1, :]
        token = logits.argmax(dim=-1) if choose is None else choose(logits)
        ids = torch.cat([ids, token[..., None]], dim=-1)
    return ids
    ### END SOLUTION


# %% [markdown]
# A model that always expects the next id. Expect `tensor([3, 4, 5, 6])`:


# %%
def counting(ids):
    return F.one_hot((ids + 1) % 10, 10).double()


counting.max_length = 2
generate(counting, torch.tensor([3]), 3)

# %% nbgrader={"grade_id": "check_generate", "locked": true}
check("gpt.generate", generate)

# %% [markdown]
# ## 5 · `perplexity`
#
# <!-- facts: perplexity -->
#
# A text was read in batches, and each batch gave a mean loss in nats. Write
# `perplexity(losses, counts)`: e to the mean loss of the whole text.
#
# | | | |
# | --- | --- | --- |
# | `losses` | a list or a tensor | the mean loss of each batch, in nats |
# | `counts` | a list or a tensor | how many targets each of these means is of |
# | returns | a `float`, or a tensor `()` | how many equally likely tokens would surprise as much |
#
# A batch may count nothing (its loss is 0 then, as in exercise 1), but not all of them do. Lists
# hold Python's own numbers, and the answer keeps their precision (float64).
#
# <!-- hints: perplexity -->
#
# 1. Of how many tokens is each loss the mean?
# 2. `sum(count · loss) / sum(count)` is the mean over all tokens; `math.exp` of it.


# %% nbgrader={"grade_id": "perplexity", "solution": true}
def perplexity(losses, counts):
    ### BEGIN SOLUTION
    total = sum(float(loss) * int(count) for loss, count in zip(losses, counts, strict=True))
    return math.exp(total / sum(int(count) for count in counts))
    ### END SOLUTION


# %% [markdown]
# Thirty targets like the toss of a coin, ten like one of eight. Expect 2^1.5, about 2.83:

# %%
perplexity([math.log(2), math.log(8)], [30, 10])

# %% nbgrader={"grade_id": "check_perplexity", "locked": true}
check("gpt.perplexity", perplexity)

# %% [markdown]
# ## 6 · `attend_with_cache`
#
# <!-- facts: attend_with_cache -->
#
# Under a causal mask nothing that is new changes the keys and values of old tokens, so they can be
# kept. Write `attend_with_cache(query, key, value, cache=None)`: causal attention of the m newest
# tokens to all tokens so far, softmax(QKᵀ/√d_k)V.
#
# | | shape | |
# | --- | --- | --- |
# | `query`, `key` | `(..., m, d_k)` | of the new tokens |
# | `value` | `(..., m, d_v)` | of the new tokens |
# | `cache` | `None`, or `(keys, values)` | of the c tokens before, `(..., c, d_k)` and `(..., c, d_v)` |
# | returns | `(output, cache)` | output `(..., m, d_v)`, and `(keys, values)` of all c + m tokens |
#
# New token i stands at place c + i: it sees all old tokens, and of the new ones those up to itself.
# Gradients flow into the cache too. You may use what earlier chapters built
# (`scaled_dot_product_attention`, `causal_mask`).
#
# *Fine print:* numbers come in float64 and in float32; a guard in a denominator may be 1e-12 at
# most.
#
# <!-- hints: attend_with_cache -->
#
# 1. Put the cached keys in front of the new ones along axis −2, and the values likewise.
# 2. New token i is token c + i: of the c + m columns, which may it see?
# 3. `causal_mask(m, c + m)` of chapter 10 aligns the queries with the last keys. Return the output
#    and `(keys, values)`, joined.


# %% nbgrader={"grade_id": "attend_with_cache", "solution": true}
def attend_with_cache(query, key, value, cache=None):
    ### BEGIN SOLUTION
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    mask = causal_mask(query.shape[-2], key.shape[-2])
    return scaled_dot_product_attention(query, key, value, mask), (key, value)
    ### END SOLUTION


# %% [markdown]
# A query of zeros averages what it may see. Expect `tensor([[4.]])`, the mean of 3, 0 and 9:

# %%
old = torch.randn(2, 4), torch.tensor([[3.0], [0.0]])
attend_with_cache(torch.zeros(1, 4), torch.randn(1, 4), torch.tensor([[9.0]]), old)[0]

# %% nbgrader={"grade_id": "check_attend_with_cache", "locked": true}
check("gpt.attend_with_cache", attend_with_cache)

# %% [markdown] nbgrader={"grade_id": "explain_cache", "grade": true, "solution": true, "points": 4}
# ## 7 · What may be kept
#
# <!-- facts: explain_cache -->
#
# A model writes one token after another. Explain in three sentences why the keys and values of
# earlier tokens can be kept, why their queries need not be, and what would go wrong if the mask
# were not causal.
#
# | points | for |
# | --: | --- |
# | 2 | why keys and values stay as they are, in every layer |
# | 1 | the queries |
# | 1 | what goes wrong without a causal mask |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# With a causal mask nothing that comes later enters an earlier row, in any layer, so its key and
# value are the same at each step. The next token is read off the newest row, and that needs the
# newest query alone. Without the mask each new token would change the earlier rows after the
# first layer, and the kept keys and values would be those of another text.
#
# For the points, in this order: (2) under a causal mask the row of an earlier token never depends
# on later ones, so in every layer its key and value stay as they are; (1) only the newest token
# asks; what earlier queries asked has been answered; (1) without the mask a new token would
# change the earlier rows from the second layer on, and what was kept would be out of date.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_next_token_loss", "grade": true, "locked": true}
examine("gpt.next_token_loss", next_token_loss).earned

# %% nbgrader={"grade_id": "hidden_next_token_loss", "grade": true, "locked": true, "points": 1}
# One more test of next_token_loss.
### BEGIN HIDDEN TESTS
logits = torch.randn(2, 7, 5, dtype=torch.float64)
ids = torch.randint(5, (2, 7))
loss = next_token_loss(logits.clone(), ids.clone())
shares = torch.softmax(logits, -1)
by_hand = [-math.log(shares[b, t, ids[b, t + 1]]) for b in range(2) for t in range(6)]
assert math.isclose(float(loss), sum(by_hand) / 12, rel_tol=1e-8), (
    "the loss should be the mean of -log softmax(logits[t])[ids[t + 1]] over all rows but the last"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_filter_logits", "grade": true, "locked": true}
examine("gpt.filter_logits", filter_logits).earned

# %% nbgrader={"grade_id": "hidden_filter_logits", "grade": true, "locked": true, "points": 1}
# One more test of filter_logits.
### BEGIN HIDDEN TESTS
logits = torch.randn(3, 11, dtype=torch.float64)
kept = filter_logits(logits.clone(), top_k=4)
assert (torch.isfinite(kept).sum(-1) == 4).all(), (
    "with top_k=4 exactly 4 tokens of each row should stay, the others should be -∞"
)
kept = filter_logits(logits.clone(), top_p=0.5)
assert torch.equal(kept.argmax(-1), logits.argmax(-1)), (
    "with top_p=0.5 the likeliest token of each row should stay"
)
share = torch.softmax(logits, -1)[torch.isfinite(kept)].sum()
assert float(share) >= 3 * 0.5, (
    "with top_p=0.5 the tokens that stay should have half of the probability or more"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_sample_token", "grade": true, "locked": true}
examine("gpt.sample_token", sample_token).earned

# %% nbgrader={"grade_id": "hidden_sample_token", "grade": true, "locked": true, "points": 1}
# One more test of sample_token.
### BEGIN HIDDEN TESTS
logits = torch.randn(3, 7, dtype=torch.float64)
likeliest = sample_token(logits.clone(), temperature=0)
assert torch.equal(likeliest, logits.argmax(-1)), (
    "with temperature 0 the likeliest token of each row should be taken"
)
best = logits.topk(2).indices
drawn = torch.stack([sample_token(logits.clone(), top_k=2) for _ in range(40)])
assert ((drawn == best[:, 0]) | (drawn == best[:, 1])).all(), (
    "with top_k=2 one of the two likeliest tokens should be drawn"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_generate", "grade": true, "locked": true}
examine("gpt.generate", generate).earned


# %% nbgrader={"grade_id": "hidden_generate", "grade": true, "locked": true, "points": 1}
# One more test of generate.
### BEGIN HIDDEN TESTS
def successor(ids):
    """Expects the next id of seven, after at most four tokens."""
    assert ids.shape[-1] <= 4, (
        "the model should get no more than its last max_length tokens at once"
    )
    return F.one_hot((ids + 1) % 7, 7).double()


successor.max_length = 4
start = int(torch.randint(1, 7, ()))
written = generate(successor, torch.tensor([start]), 9)
assert written.tolist() == [(start + i) % 7 for i in range(10)], (
    "each token should follow from the last max_length of those before it, and all be returned"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_perplexity", "grade": true, "locked": true}
examine("gpt.perplexity", perplexity).earned

# %% nbgrader={"grade_id": "hidden_perplexity", "grade": true, "locked": true, "points": 1}
# One more test of perplexity.
### BEGIN HIDDEN TESTS
words = int(torch.randint(5, 50, ()))
value = perplexity([math.log(words)] * 3, [4, 10, 7])
assert math.isclose(float(value), words, rel_tol=1e-9), (
    "batches of 4, 10 and 7 targets with the loss ln n should have the perplexity n"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_attend_with_cache", "grade": true, "locked": true}
examine("gpt.attend_with_cache", attend_with_cache).earned

# %% nbgrader={"grade_id": "hidden_attend_with_cache", "grade": true, "locked": true, "points": 1}
# One more test of attend_with_cache.
### BEGIN HIDDEN TESTS
query, key = torch.randn(2, 7, 5), torch.randn(2, 7, 5)
value = torch.randn(2, 7, 3)
ahead = torch.ones(7, 7, dtype=torch.bool).triu(1)
scores = (query @ key.mT / 5**0.5).masked_fill(ahead, -math.inf)
whole = scores.softmax(-1) @ value
old, new = slice(0, 4), slice(4, 7)
first, cache = attend_with_cache(query[:, old] + 0, key[:, old] + 0, value[:, old] + 0)
last, cache = attend_with_cache(query[:, new] + 0, key[:, new] + 0, value[:, new] + 0, cache)
assert torch.allclose(first, whole[:, old], atol=1e-5), (
    "the first tokens should attend causally: each to itself and to those before it"
)
assert torch.allclose(last, whole[:, new], atol=1e-5), (
    "with a cache each new token should attend to all old ones, and of the new ones up to itself"
)
### END HIDDEN TESTS
