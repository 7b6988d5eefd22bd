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
# # Exercises 20 · Answer many people
#
# You write four parts of what answers: a batch of questions of different lengths, numbers in fewer
# bits, guesses that are checked, and the gate that chooses a token's experts. Fill in the cells marked
# *your code* and run the check below each.
#
# Where a shape is written `(..., d)`, the dots stand for any number of batch axes, none included.
# Results keep the floating dtype and the precision of what came in, and gradients must be able to
# flow through exercise 4. Functions leave what they are given as it is.

# %%
import torch

from attncourse.checks import check, examine
from attncourse.llama import Llama, LlamaConfig
from attncourse.masking import causal_mask

# %% [markdown]
# ## 1 · `pad_left`
#
# <!-- facts: pad_left -->
#
# Write `pad_left(sequences, pad)`: sequences of different lengths as one batch, padded to the left.
#
# | | | |
# | --- | --- | --- |
# | `sequences` | a list of lists | the ids of each sequence, one or more |
# | `pad` | a whole number | the id that stands where there is no token |
# | returns `ids` | `(b, n)`, int64 | n is the length of the longest |
# | `positions` | `(b, n)`, int64 | counted from 0 at each sequence's first token; 0 on padding |
# | `mask` | `(b, n, n)`, boolean | True where query i may attend to key j |
#
# Return all three, in this order. The tokens of a sequence are the last ones of its row. The mask is
# causal, and no key is padding; so the rows of padding are False throughout. What is padding follows
# from the lengths: the id `pad` may be a token of the text, too.
#
# <!-- hints: pad_left -->
#
# 1. A list times a number repeats it: `[pad] * (n - len(row)) + row`.
# 2. `torch.arange(n)` less the number of paddings is 0 at the first token and negative before it.
# 3. Where that is 0 or more there is a token: `real`, `(b, n)`. Then
#    `causal_mask(n) & real[:, None, :]`.


# %% nbgrader={"grade_id": "pad_left", "solution": true}
def pad_left(sequences, pad):
    ### BEGIN SOLUTION
    lengths = torch.tensor([len(row) for row in sequences])
    n = int(lengths.max())
    ids = torch.tensor([[pad] * (n - len(row)) + list(row) for row in sequences])
    positions = torch.arange(n) - (n - lengths)[:, None]
    real = positions >= 0
    return ids, positions.clamp(min=0), causal_mask(n) & real[:, None, :]
    ### END SOLUTION


# %% [markdown]
# Three tokens and one. Expect `[[5, 6, 7], [0, 0, 8]]`, `[[0, 1, 2], [0, 0, 0]]`, and a single `True`
# in the last mask, in its last corner:

# %%
pad_left([[5, 6, 7], [8]], 0)

# %% nbgrader={"grade_id": "check_pad_left", "locked": true}
check("serving.pad_left", pad_left)

# %% [markdown]
# ## 2 · `quantize`
#
# <!-- facts: quantize -->
#
# Write `quantize(x, bits, block)`: each number as one of $2^\text{bits}$ values, block by block.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., d)` | finite numbers |
# | `bits` | a whole number | from 2 to 8 |
# | `block` | a whole number | so many neighbours along the last axis share a scale |
# | returns `codes` | `(..., d)` | whole numbers from 0 to $2^\text{bits} - 1$, of any dtype |
# | `scale` | `(..., d / block)` | (max − min) / ($2^\text{bits}$ − 1) of each block |
# | `minimum` | `(..., d / block)` | the least number of each block |
#
# Return all three, in this order. A code is (x − minimum) / scale, rounded to the nearest whole number;
# halfway between two it is the even one, as `torch.round` has it. A block of equal numbers has scale 0
# and codes 0, so that minimum + scale · code gives it back as it was.
#
# Raise `ValueError` for bits outside 2 to 8, and where `block` does not divide d.
#
# *Fine print:* numbers come in float64 and in float32; the scale holds no guard.
#
# <!-- hints: quantize -->
#
# 1. `x.unflatten(-1, (-1, block))` is `(..., d / block, block)`; `.flatten(-2)` undoes it.
# 2. Least and greatest along the last axis: `.amin(-1)` and `.amax(-1)`.
# 3. Divide by 1 where the scale is 0: `torch.where(scale > 0, scale, 1.0)`, but return the scale.


# %% nbgrader={"grade_id": "quantize", "solution": true}
def quantize(x, bits, block):
    ### BEGIN SOLUTION
    if not 2 <= bits <= 8:
        raise ValueError(f"expected 2 to 8 bits, got {bits}")
    if x.shape[-1] % block:
        raise ValueError(f"expected a block that divides {x.shape[-1]}, got {block}")
    blocks = x.unflatten(-1, (-1, block))
    minimum = blocks.amin(-1)
    scale = (blocks.amax(-1) - minimum) / (2**bits - 1)
    step = scale.where(scale > 0, 1)
    codes = ((blocks - minimum[..., None]) / step[..., None]).round()
    return codes.flatten(-2).to(torch.uint8), scale, minimum
    ### END SOLUTION


# %% [markdown]
# Two bits, two blocks of four. Expect the codes 0, 2, 1, 3 and 0, 3, 2, 1, the scales 1 and 2 and the
# minima 0 and −5:

# %%
quantize(torch.tensor([0.0, 2, 1, 3, -5, 1, -1, -3]), bits=2, block=4)

# %% nbgrader={"grade_id": "check_quantize", "locked": true}
check("serving.quantize", quantize)

# %% [markdown]
# ## 3 · `speculative_accept`
#
# <!-- facts: speculative_accept -->
#
# Write `speculative_accept(draft, p_draft, p_target, rng)`: which guesses are kept, and one token more.
#
# | | shape | |
# | --- | --- | --- |
# | `draft` | `(k,)`, int64 | ids that were guessed; k may be 0 |
# | `p_draft` | `(k, n_vocab)` | row i: the distribution that guess i was drawn from |
# | `p_target` | `(k + 1, n_vocab)` | row i: what the model says in that place; the last: after them all |
# | `rng` | a `torch.Generator` | all random numbers come from it |
# | returns | `(kept + 1,)`, int64 | the guesses that are kept, and one more id |
#
# Go through the guesses in order. With q and p for what the rows i of `p_draft` and of `p_target` say
# about the guess, keep it with probability min(1, p / q). At the first that is not kept draw an id from
# max(p − q, 0) of the whole rows, divided by its sum; it takes the guess's place, and what was guessed
# behind it is dropped. If all are kept, draw one more from the last row of `p_target`.
#
# *Fine print:* rows come in float64 and in float32 and sum to 1; each guess has a q above 0. Since nobody
# knows in which order you draw, the check calls your function up to 240 times on a case where chance has
# a say; a right answer fails that less than once in a hundred million checks.
#
# <!-- hints: speculative_accept -->
#
# 1. A number between 0 and 1: `u = torch.rand((), generator=rng)`. It is below p / q with that
#    probability, and always where p ≥ q.
# 2. `(p_target[i] - p_draft[i]).clamp(min=0)` is what the target says more often.
# 3. `torch.multinomial(weights, 1, generator=rng)` draws an id, `(1,)`, and divides by the sum itself.
# 4. `torch.cat([draft[:i], new])`: the guesses before i, and the new id.


# %% nbgrader={"grade_id": "speculative_accept", "solution": true}
def rng_of(seed):
    """A generator that begins at this seed."""
    return torch.Generator().manual_seed(seed)


def speculative_accept(draft, p_draft, p_target, rng):
    ### BEGIN SOLUTION
    for i, token in enumerate(draft.tolist()):
        p, q = p_target[i], p_draft[i]
        if torch.rand((), generator=rng) >= p[token] / q[token]:
            missing = (p - q).clamp(min=0)
            return torch.cat([draft[:i], torch.multinomial(missing, 1, generator=rng)])
    return torch.cat([draft, torch.multinomial(p_target[-1], 1, generator=rng)])
    ### END SOLUTION


# %% [markdown]
# The draft says 0 or 1, the target mostly 2. Two thousand first ids, of guesses that were drawn from the
# draft: expect numbers near 0.1, 0.2 and 0.7.


# %%
def share_of_first_ids(n):
    """How often each id comes first in so many calls."""
    counts, rng = torch.zeros(3), rng_of(0)
    q, p = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])
    for _ in range(n):
        guess = torch.multinomial(q[0], 1, generator=rng)
        counts[speculative_accept(guess, q, p, rng)[0]] += 1
    return counts / n


share_of_first_ids(2000)

# %% nbgrader={"grade_id": "check_speculative_accept", "locked": true}
check("serving.speculative_accept", speculative_accept)

# %% [markdown]
# ## 4 · `top_k_gate`
#
# <!-- facts: top_k_gate -->
#
# Write `top_k_gate(logits, k)`: how much each expert counts for a token of which k read it.
#
# | | shape | |
# | --- | --- | --- |
# | `logits` | `(..., n_experts)` | a row for each token |
# | `k` | a whole number | how many experts are chosen |
# | returns | `(..., n_experts)` | weights, 0 for what is not chosen |
#
# The k largest logits of each row are chosen, of equal ones those with the lower index. Their weights are
# the softmax over these k alone, so that they sum to 1. (The softmax over all, with what is left divided
# by its sum, is the same.)
#
# Raise `ValueError` for a k below 1 or above the number of experts.
#
# *Fine print:* numbers come in float64 and in float32; a guard in the sum may be 1e-12 at most.
#
# <!-- hints: top_k_gate -->
#
# 1. `logits.argsort(dim=-1, descending=True, stable=True)[..., :k]` are the indices of the chosen, equal
#    ones in the right order.
# 2. `gather` their logits, take the softmax, and `scatter` it into zeros. Or: −∞ in all other places,
#    and then the softmax.
# 3. Chapter 13's `filter_logits` does the second.


# %% nbgrader={"grade_id": "top_k_gate", "solution": true}
def top_k_gate(logits, k):
    ### BEGIN SOLUTION
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"expected a k from 1 to {logits.shape[-1]}, got {k}")
    chosen = logits.argsort(dim=-1, descending=True, stable=True)[..., :k]
    weights = logits.gather(-1, chosen).softmax(-1)
    return torch.zeros_like(logits).scatter(-1, chosen, weights)
    ### END SOLUTION


# %% [markdown]
# Expect `tensor([[0.7500, 0.2500, 0.0000, 0.0000]])`:

# %%
top_k_gate(torch.tensor([[3.0, 1.0, 0.5, 0.1]]).log(), 2)

# %% nbgrader={"grade_id": "check_top_k_gate", "locked": true}
check("serving.top_k_gate", top_k_gate)

# %% [markdown] nbgrader={"grade_id": "explain_guesses", "grade": true, "solution": true, "points": 4}
# ## 5 · What a cheap draft may cost
#
# <!-- facts: explain_guesses -->
#
# A friend says: *guess and check lets a smaller model write most of the words, so the answers must become
# worse; and the more it guesses at once, the faster it is.* Say in three sentences why the answers are
# distributed as before, what the speed-up depends on, and when guessing more makes it slower.
#
# | points | for |
# | --: | --- |
# | 2 | why the distribution stays what it was |
# | 1 | what the speed-up depends on |
# | 1 | when more guesses make it slower |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# A token comes by way of the draft with probability min(p, q), and by way of a refusal from max(p − q, 0),
# and the two add up to p: whatever the draft says, each word is distributed as the large model has it. How
# much faster it is depends on how many guesses in a row are kept, so on how far the draft agrees with the
# model on this text, and on what a guess costs. The first refusal throws away everything behind it, so
# guesses that are rarely reached are paid for and not used, most of all where a pass is bound by
# arithmetic (a large batch) and reading k more tokens is no longer nearly free.
#
# For the points, in this order: (2) what is kept has min(p, q), and what replaces a refused one fills up
# exactly what is missing to p; (1) how often guesses are kept, and what the draft costs; (1) guesses behind
# a refusal are lost, or reading more tokens costs more where arithmetic is the limit.
# ### END SOLUTION

# %% [markdown]
# ## Put it to work
#
# Nothing is graded here. A small model reads a padded batch of yours, and the logits of each last token
# are those of the sequence alone. Expect `True` twice:


# %%
def small_llama(seed=0):
    """A small Llama with random weights of order one, to try things out on."""
    torch.manual_seed(seed)
    model = Llama(LlamaConfig(11, 16, 12, n_heads=3, n_kv_heads=1, n_layers=2, d_ff=7)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


model, questions = small_llama(), [[1, 2, 3, 4], [5, 6]]
batch, places, seen = pad_left(questions, 0)
last = model(batch, mask=seen, positions=places)[:, -1]
[
    torch.allclose(a, model(torch.tensor(q))[-1], atol=1e-4)
    for a, q in zip(last, questions, strict=True)
]

# %% [markdown]
# SmolLM2 writes with guesses that are looked up in the text, checked by your `speculative_accept`. The
# first time it is fetched, 93 MB. Put this into a cell of its own; it prints how many tokens each pass of
# the model gave:
#
# ```python
# from attncourse import serving
# from attncourse.pretrained.model import load
#
# serving.speculative_accept = speculative_accept  # yours in place of ours
# model, words = load()
# ids = words.encode("red, green, blue, red, green, blue, red, green,")
# new = list(serving.speculative_stream(model, ids, 24, serving.lookup_draft))
# print([len(some) for some in new], words.decode(torch.cat(new)))
# ```

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_pad_left", "grade": true, "locked": true}
examine("serving.pad_left", pad_left).earned

# %% nbgrader={"grade_id": "hidden_pad_left", "grade": true, "locked": true, "points": 1}
# One more test of pad_left.
### BEGIN HIDDEN TESTS
sequences = [[4, 9], [9, 4, 4, 1, 9], [7, 4, 2]]
ids, positions, mask = pad_left(sequences, 4)
right = torch.tensor([[4, 4, 4, 4, 9], [9, 4, 4, 1, 9], [4, 4, 7, 4, 2]])
assert torch.equal(ids, right), (
    "sequences of 2, 5 and 3 tokens should be rows of 5, with the tokens at their ends"
)
right = torch.tensor([[0, 0, 0, 0, 1], [0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
assert torch.equal(positions, right), (
    "positions should be counted from 0 at each sequence's first token, and 0 on padding"
)
right = torch.ones(3, 5, 5, dtype=torch.bool).tril()
right[0, :, :3] = False
right[2, :, :2] = False
assert torch.equal(mask, right), (
    "each token should see the tokens of its sequence up to itself, whatever their ids, and padding "
    "should see nothing"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_quantize", "grade": true, "locked": true}
examine("serving.quantize", quantize).earned

# %% nbgrader={"grade_id": "hidden_quantize", "grade": true, "locked": true, "points": 1}
# One more test of quantize.
### BEGIN HIDDEN TESTS
x = torch.randn(3, 10, dtype=torch.float64)
x[1, 5:] = 0.7
codes, scale, minimum = quantize(x.clone(), 5, 5)
assert tuple(codes.shape) == (3, 10), "there should be a code for each of the 10 numbers of a row"
assert tuple(scale.shape) == tuple(minimum.shape) == (3, 2), (
    "10 numbers in blocks of 5 should have 2 scales and 2 minima a row"
)
back = minimum[..., None] + scale[..., None] * codes.unflatten(-1, (2, 5))
off = (back - x.unflatten(-1, (2, 5))).abs()
assert bool((off <= 0.501 * scale[..., None] + 1e-9).all()), (
    "minimum + scale · code should be at most half a scale away from each number"
)
assert float(codes.max()) == 31 and float(codes.min()) == 0, "5 bits should give codes from 0 to 31"
assert float(off[1, 1].max()) < 1e-12, "a block of equal numbers should come back as it was"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_speculative_accept", "grade": true, "locked": true}
examine("serving.speculative_accept", speculative_accept).earned

# %% nbgrader={"grade_id": "hidden_speculative_accept", "grade": true, "locked": true, "points": 1}
# One more test of speculative_accept.
### BEGIN HIDDEN TESTS
rng = rng_of(int(torch.randint(1 << 30, ())))
one, two = torch.eye(5, dtype=torch.float64)[[3, 1]], torch.eye(5, dtype=torch.float64)[[3, 1, 4]]
kept = speculative_accept(torch.tensor([3, 1]), one.clone(), two.clone(), rng)
assert torch.equal(kept, torch.tensor([3, 1, 4])), (
    "guesses that the target is certain of should be kept, and one more come from the last row"
)
kept = speculative_accept(torch.tensor([3, 1]), one.clone(), two[[0, 2, 1]], rng)
assert torch.equal(kept, torch.tensor([3, 4])), (
    "a guess of which the target says 0 should be replaced by what it is certain of"
)
row = torch.tensor([[0.5, 0.5, 0, 0, 0]], dtype=torch.float64)
target = torch.tensor([[0.25, 0.5, 0.25, 0, 0], [0, 0, 0, 0, 1]], dtype=torch.float64)
refused = 0
for _ in range(300):
    kept = speculative_accept(torch.tensor([0]), row.clone(), target.clone(), rng)
    refused += len(kept) == 1
    assert torch.equal(kept, torch.tensor([2] if len(kept) == 1 else [0, 4])), (
        "with p half of q a guess should be kept, with one more behind it, or replaced by what p has "
        "more of"
    )
assert 75 < refused < 225, "with p half of q a guess should be kept half of the time"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_top_k_gate", "grade": true, "locked": true}
examine("serving.top_k_gate", top_k_gate).earned

# %% nbgrader={"grade_id": "hidden_top_k_gate", "grade": true, "locked": true, "points": 1}
# One more test of top_k_gate.
### BEGIN HIDDEN TESTS
logits = torch.randn(4, 6, dtype=torch.float64)
weights = top_k_gate(logits.clone(), 3)
assert tuple(weights.shape) == (4, 6), "each of the 6 experts should have a weight"
least = logits.sort(-1).values[:, 3:4]
right = logits.masked_fill(logits < least, -torch.inf).softmax(-1)
assert torch.allclose(weights, right, atol=1e-6), (
    "the 3 largest logits of a row should share 1 by their softmax, and the others have 0"
)
ties = top_k_gate(torch.zeros(1, 4), 2)
assert torch.allclose(ties, torch.tensor([[0.5, 0.5, 0, 0]])), (
    "of equal logits those with the lower index should be chosen"
)
### END HIDDEN TESTS
