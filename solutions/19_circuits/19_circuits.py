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
# # Exercises 19 · Take a real model apart
#
# You write the four tools of this chapter: a mask that keeps the first tokens, single edges cut out
# of a map, the lens that reads a vector before the last layer, and the patch that carries one vector
# from one run into another. Fill in the cells marked *your code* and run the check below each.
#
# Where a shape is written `(..., m, n)`, the dots stand for any number of batch axes, none
# included. Results keep the floating dtype and the precision of what came in, and gradients must be
# able to flow through exercises 2 and 3. Functions leave what they are given as it is.

# %%
import torch

from attncourse.checks import check, examine
from attncourse.llama import Llama, LlamaConfig, rms_norm
from attncourse.masking import causal_mask, masked_softmax, sliding_window_mask

# %% [markdown]
# ## 1 · `sink_mask`
#
# <!-- facts: sink_mask -->
#
# Write `sink_mask(n, width, n_sinks)`, a causal window that keeps the first tokens.
#
# | | | |
# | --- | --- | --- |
# | `n` | a whole number | tokens |
# | `width` | a whole number, 1 or more | keys in the window, the token itself included |
# | `n_sinks` | a whole number, 0 or more | tokens at the beginning that everybody keeps |
# | returns | `(n, n)`, boolean | True where query i may attend to key j |
#
# A token sees itself and the width − 1 tokens before it, and the first `n_sinks` tokens as well. No
# token sees one that comes later, not even a sink. There may be more sinks than tokens, and the
# window may be wider than the sequence.
#
# Raise `ValueError` where `width` is below 1 or `n_sinks` below 0.
#
# <!-- hints: sink_mask -->
#
# 1. Two masks, joined with `|`: the window, and the first columns below the diagonal.
# 2. The window is chapter 10's `sliding_window_mask(n, width, causal=True)`.
# 3. The other one: `causal_mask(n) & (torch.arange(n) < n_sinks)`.


# %% nbgrader={"grade_id": "sink_mask", "solution": true}
def sink_mask(n, width, n_sinks):
    ### BEGIN SOLUTION
    if width < 1 or n_sinks < 0:
        raise ValueError(f"expected a width from 1 and sinks from 0, got {width} and {n_sinks}")
    window = sliding_window_mask(n, width, causal=True)
    first = torch.arange(n) < n_sinks
    return window | (causal_mask(n) & first)
    ### END SOLUTION


# %% [markdown]
# Six tokens, two in the window, one sink. Expect `tensor([1, 2, 3, 3, 3, 3])`:

# %%
sink_mask(6, 2, 1).sum(-1)

# %% nbgrader={"grade_id": "check_sink_mask", "locked": true}
check("circuits.sink_mask", sink_mask)

# %% [markdown]
# ## 2 · `cut_edges`
#
# <!-- facts: cut_edges -->
#
# Write `cut_edges(scores, edges)`: the attention weights of these scores without some edges.
#
# | | shape | |
# | --- | --- | --- |
# | `scores` | `(..., m, n)` | their softmax over the keys would be the whole map |
# | `edges` | a list of pairs `(query, key)` | the same in every map of a batch; perhaps empty |
# | returns | `(..., m, n)` | the weights |
#
# An edge that is cut has weight 0. What is left of its row keeps its proportions and sums to 1
# again. A row without any key left is 0, never NaN. Scores may hold −∞ where a mask has hidden a key:
# it stays hidden.
#
# *Fine print:* numbers come in float64 and in float32; no cut score exceeds those left in its row by
# more than 50.
#
# <!-- hints: cut_edges -->
#
# 1. Make a boolean mask of `(m, n)` that is True everywhere, and set it to False at each edge.
# 2. Chapter 10's `masked_softmax(scores, mask)` gives 0 to a row without a key, and the rest sums
#    to 1.
# 3. It knows of no −∞: leave those keys out of the mask too, `mask & (scores > -torch.inf)`.


# %% nbgrader={"grade_id": "cut_edges", "solution": true}
def cut_edges(scores, edges):
    ### BEGIN SOLUTION
    left = torch.ones(scores.shape[-2:], dtype=torch.bool)
    for query, key in edges:
        left[query, key] = False
    left = left & (scores > -torch.inf)
    # What is hidden is as low as what is left: chapter 10 asked for no −∞, and for nothing above.
    low = scores.detach().masked_fill(~left, torch.inf).amin(dim=-1, keepdim=True)
    low = torch.where(left.any(dim=-1, keepdim=True), low, 0)
    return masked_softmax(torch.where(left, scores, low), left)
    ### END SOLUTION


# %% [markdown]
# Even weights, of which one is cut. Expect `tensor([[0.5000, 0.0000, 0.5000]])`:

# %%
cut_edges(torch.zeros(1, 3), [(0, 1)])

# %% nbgrader={"grade_id": "check_cut_edges", "locked": true}
check("circuits.cut_edges", cut_edges)

# %% [markdown]
# ## 3 · `logit_lens`
#
# <!-- facts: logit_lens -->
#
# Write `logit_lens(hidden, gain, table)`: what the model would say if it stopped at this vector.
#
# | | shape | |
# | --- | --- | --- |
# | `hidden` | `(..., d)` | the residual stream after any block |
# | `gain` | `(d,)` | of the model's last norm |
# | `table` | `(n_vocab, d)` | a row for each token, the last layer |
# | returns | `(..., n_vocab)` | logits, before any softmax |
#
# The vector is normalised as the model does before its last layer, with chapter 18's `rms_norm`
# (eps 1e-5), and multiplied with every row of the table: rms_norm(hidden, gain) · tableᵀ.
#
# *Fine print:* numbers come in float64 and in float32; `eps` is the only guard.
#
# <!-- hints: logit_lens -->
#
# 1. One line: the norm, then a matrix product.
# 2. A row of `table` belongs to a token, so the product is with its transpose, `table.T`.


# %% nbgrader={"grade_id": "logit_lens", "solution": true}
def logit_lens(hidden, gain, table):
    ### BEGIN SOLUTION
    return rms_norm(hidden, gain) @ table.T
    ### END SOLUTION


# %% [markdown]
# Expect `tensor([[0.8485, 2.2627]])`: 3 and 4 are divided by √12.5, and the second is doubled.

# %%
logit_lens(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), torch.eye(2))

# %% nbgrader={"grade_id": "check_logit_lens", "locked": true}
check("circuits.logit_lens", logit_lens)

# %% [markdown]
# ## 4 · `patched`
#
# <!-- facts: patched -->
#
# Write `patched(model, clean, corrupted, layer, position)`: the logits for `corrupted`, with one
# vector of its residual stream taken from the run on `clean`.
#
# | | | |
# | --- | --- | --- |
# | `model` | a `Llama` of chapter 18 | `model.blocks` is a list of blocks that are called as modules |
# | `clean`, `corrupted` | `(..., n)` | ids, of one shape |
# | `layer` | a whole number | the vector is the one *after* block `layer`, from 0 |
# | `position` | a whole number | of a token, from 0 |
# | returns | `(..., n, n_vocab)` | logits of every position |
#
# Run the model on `clean` and keep what comes out of block `layer` at `position`. Run it on
# `corrupted` and put that vector there in place of its own; everything after it is computed from
# what is there then. In a batch each sequence gets the vector of its own clean run. The model stays
# as it is: no hook is left behind.
#
# Raise `ValueError` for a layer or a position that does not exist, a negative one included.
#
# <!-- hints: patched -->
#
# 1. A forward hook sees what a block returns: `hook = block.register_forward_hook(f)`, where
#    `f(block, given, x)` may return another x, which then takes its place. `hook.remove()` ends it.
# 2. First run: a hook that keeps `x[..., position, :]`. Second run: one that returns a copy of x with
#    that vector in it.
# 3. Without hooks: `x = model.tokens(ids)`, then every block in turn, then
#    `model.out(model.norm(x))`.


# %% nbgrader={"grade_id": "patched", "solution": true}
def small_llama(seed=0, **sizes):
    """A small Llama with random weights of order one, to try things out on."""
    torch.manual_seed(seed)
    config = {"n_vocab": 11, "max_length": 8, "d_model": 12, "n_heads": 3, "n_kv_heads": 1}
    model = Llama(LlamaConfig(**config | {"n_layers": 2, "d_ff": 7} | sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


def patched(model, clean, corrupted, layer, position):
    ### BEGIN SOLUTION
    if not 0 <= layer < len(model.blocks):
        raise ValueError(f"expected a layer from 0 to {len(model.blocks) - 1}, got {layer}")
    if not 0 <= position < corrupted.shape[-1]:
        raise ValueError(f"expected a position below {corrupted.shape[-1]}, got {position}")

    def stream(ids, put=None):
        x = model.tokens(ids)
        for i, block in enumerate(model.blocks):
            x = block(x)
            if i == layer:
                if put is None:
                    return x[..., position, :]
                x = x.clone()
                x[..., position, :] = put
        return x

    with torch.no_grad():
        x = stream(corrupted, put=stream(clean))
        return model.out(model.norm(x))
    ### END SOLUTION


# %% [markdown]
# After the last block, the last position's vector decides alone what is said there. Expect
# `(True, True)`:

# %%
small = small_llama()
one, other = torch.tensor([1, 2, 3, 4]), torch.tensor([1, 5, 3, 4])
out = patched(small, one, other, layer=1, position=3)
torch.allclose(out[3], small(one)[3]), torch.allclose(out[:3], small(other)[:3])

# %% nbgrader={"grade_id": "check_patched", "locked": true}
check("circuits.patched", patched)

# %% [markdown] nbgrader={"grade_id": "explain_worth", "grade": true, "solution": true, "points": 4}
# ## 5 · What a map is worth
#
# <!-- facts: explain_worth -->
#
# In fifty sentences of the chapter, head 9.4 looks more at the noun that the pronoun stands for than
# at the other one in 49. A friend writes: *head 9.4 is how the model understands pronouns.* Say in
# three sentences what the chapter measured that speaks against this, what it would take to support it
# (an intervention, and what it is compared with), and what the 49 of 50 do show.
#
# | points | for |
# | --: | --- |
# | 1 | what speaks against it |
# | 1 | an intervention that would support it |
# | 1 | what this intervention is compared with |
# | 1 | what the count does show |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# Without the head the model prefers the right noun as much as with it, so what it says does not hang
# on this head alone. To support the sentence one would switch the head off, or cut its one edge from
# the pronoun to the noun, and find that the preference falls by more than it does without as many
# heads or edges drawn at random. The 49 of 50 show that in such sentences one can read the noun off
# this head's map: the information is there, by whatever way it came, and other heads may carry it too.
#
# For the points, in this order: (1) switched off or cut, it costs next to nothing; (1) an
# intervention on the head or its edge, measured in what the model says (another one counts as well,
# such as carrying what the head writes from one run into another), (1) compared with random heads or
# edges; (1) the map describes: what is looked at, which is not by itself what is needed.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_sink_mask", "grade": true, "locked": true}
examine("circuits.sink_mask", sink_mask).earned

# %% nbgrader={"grade_id": "hidden_sink_mask", "grade": true, "locked": true, "points": 1}
# One more test of sink_mask.
### BEGIN HIDDEN TESTS
for n, width, n_sinks in [(9, 3, 2), (5, 2, 1), (6, 4, 0)]:
    mask = sink_mask(n, width, n_sinks)
    seen = [[j for j in range(n) if mask[i, j]] for i in range(n)]
    expected = [
        [j for j in range(n) if j <= i and (i - j < width or j < n_sinks)] for i in range(n)
    ]
    assert seen == expected, (
        "with 9 tokens, a window of 3 and 2 sinks the last token should see tokens 0, 1, 6, 7 and 8, "
        "and every token itself, the window before it and the sinks"
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_cut_edges", "grade": true, "locked": true}
examine("circuits.cut_edges", cut_edges).earned

# %% nbgrader={"grade_id": "hidden_cut_edges", "grade": true, "locked": true, "points": 1}
# One more test of cut_edges.
### BEGIN HIDDEN TESTS
scores = torch.randn(2, 4, 5)
edges = [(0, 2), (3, 1), (3, 4)]
whole = scores.softmax(-1)
out = cut_edges(scores.clone(), list(edges))
assert out.shape == (2, 4, 5), "the result should have the shape of the scores"
assert torch.allclose(out.sum(-1), torch.ones(2, 4), atol=1e-4), "each row should sum to 1"
assert all(float(out[:, i, j].abs().max()) == 0 for i, j in edges), "cut edges should weigh 0"
assert torch.allclose(out[:, 1:3], whole[:, 1:3], atol=1e-4), (
    "rows without a cut edge should be what the softmax gives"
)
assert torch.allclose(out[:, 3, 0] / out[:, 3, 2], whole[:, 3, 0] / whole[:, 3, 2], atol=1e-3), (
    "what is left of a row should keep its proportions"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_logit_lens", "grade": true, "locked": true}
examine("circuits.logit_lens", logit_lens).earned

# %% nbgrader={"grade_id": "hidden_logit_lens", "grade": true, "locked": true, "points": 1}
# One more test of logit_lens.
### BEGIN HIDDEN TESTS
hidden, gain, table = 2 + torch.randn(3, 4, 6), 1 + torch.rand(6), torch.randn(9, 6)
out = logit_lens(hidden.clone(), gain.clone(), table.clone())
assert out.shape == (3, 4, 9), "the result should have a logit for each of the 9 tokens"
for i in range(3):
    for j in range(4):
        x = hidden[i, j] / (hidden[i, j].square().mean() + 1e-5).sqrt() * gain
        assert torch.allclose(out[i, j], table @ x, atol=1e-3), (
            "each vector should be normalised by its own root mean square, times gain, and then "
            "multiplied with the rows of the table"
        )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_patched", "grade": true, "locked": true}
examine("circuits.patched", patched).earned

# %% nbgrader={"grade_id": "hidden_patched", "grade": true, "locked": true, "points": 1}
# One more test of patched.
### BEGIN HIDDEN TESTS
given, model = small_llama(n_layers=3), Llama(LlamaConfig(11, 8, 12, 3, 1, 3, 7)).eval()
state = {name: torch.randn(p.shape) / 2 for name, p in model.state_dict().items()}
state["out.weight"] = state["tokens.weight"]
given.load_state_dict(state)
model.load_state_dict(state)
one, other = torch.randint(11, (6,)), torch.randint(11, (6,))
first, second = model.tokens(one), model.tokens(other)
for block in list(model.blocks)[:2]:
    first, second = block(first), block(second)
second = second.clone()
second[2] = first[2]
expected = model.out(model.norm(model.blocks[2](second)))
before = given(other)
out = patched(given, one.clone(), other.clone(), 1, 2)
assert out.shape == (6, 11), "logits for every position should come back, (n, n_vocab)"
assert torch.allclose(out, expected, atol=1e-3), (
    "the vector after block 1 at position 2 should come from the clean run, and the last block "
    "should compute with it"
)
assert torch.allclose(given(other), before, atol=1e-4), (
    "the model should say afterwards what it said before"
)
### END HIDDEN TESTS
