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
# # Exercises 15 · Images as sentences: patches, class token, windows
#
# You cut images into patches and put them together again, make tokens of the patches, lay the class
# token's attention over the image, and cut a grid of tokens into windows. Fill in the cells marked
# *your code* and run the check below each.
#
# An image is `(..., c, H, W)`: c channels, H rows, W columns of numbers. The dots stand for any
# number of batch axes, none included. Images need not be square. *Reading order* means: along the
# top row from left to right, then the next row. Results keep the floating dtype and the precision
# of what came in, and gradients must be able to flow through everything: no `.detach()`, no
# `.numpy()`. Functions leave what they are given as it is.

# %%
import torch

from attncourse.checks import check, examine

# %% [markdown]
# ## 1 · `patchify`
#
# <!-- facts: patchify -->
#
# Write `patchify(images, patch)`, which cuts each image into squares of `patch` × `patch` pixels and
# makes a row of each. The patches stand in reading order. Inside a row the numbers go by channel,
# row and column: all pixels of channel 0 in reading order, then all of channel 1, and so on.
#
# | | shape | |
# | --- | --- | --- |
# | `images` | `(..., c, H, W)` | |
# | `patch` | a number | the side of a patch, in pixels |
# | returns | `(..., n, c·patch²)` | one patch a row, n = (H / patch) · (W / patch) |
#
# Where `patch` does not divide both H and W, raise `ValueError`.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: patchify -->
#
# 1. Cut height and width into two axes each: which patch, and where in it.
# 2. `x.reshape(*batch, c, H // patch, patch, W // patch, patch)`: five axes for one image.
# 3. Bring the two axes that count patches to the front, then flatten the last three axes, and those
#    two.


# %% nbgrader={"grade_id": "patchify", "solution": true}
def patchify(images, patch):
    ### BEGIN SOLUTION
    *batch, c, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError(f"a patch of {patch} does not divide {H} × {W} pixels")
    x = images.reshape(*batch, c, H // patch, patch, W // patch, patch)
    x = x.movedim((-4, -2), (-5, -4))  # (..., rows, columns, c, patch, patch)
    return x.reshape(*batch, -1, c * patch * patch)
    ### END SOLUTION


# %% [markdown]
# An image of one channel with the numbers 0 to 15. Expect `[0, 1, 4, 5]` first, then
# `[2, 3, 6, 7]`:

# %%
patchify(torch.arange(16.0).reshape(1, 4, 4), 2)

# %% nbgrader={"grade_id": "check_patchify", "locked": true}
check("vision.patchify", patchify)

# %% [markdown]
# ## 2 · `unpatchify`
#
# <!-- facts: unpatchify -->
#
# The way back. Write `unpatchify(patches, patch, height, width)`, which puts every pixel where it
# came from: `unpatchify(patchify(images, p), p, H, W)` equals `images`.
#
# | | shape | |
# | --- | --- | --- |
# | `patches` | `(..., n, c·patch²)` | as `patchify` returns them |
# | `patch` | a number | the side of a patch, in pixels |
# | `height`, `width` | two numbers | H and W of the image, in pixels |
# | returns | `(..., c, H, W)` | |
#
# The patches will always fill the image. How many channels there are follows from the shapes.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: unpatchify -->
#
# 1. Undo `patchify` step by step, the last step first.
# 2. Cut n into (H / patch, W / patch) and a patch into (c, patch, patch): five axes.
# 3. Bring them into the order c, row of patches, row inside, column of patches, column inside; then
#    join two and two.


# %% nbgrader={"grade_id": "unpatchify", "solution": true}
def unpatchify(patches, patch, height, width):
    ### BEGIN SOLUTION
    batch = patches.shape[:-2]
    rows, columns = height // patch, width // patch
    x = patches.reshape(*batch, rows, columns, -1, patch, patch)
    x = x.movedim((-5, -4), (-4, -2))  # (..., c, rows, patch, columns, patch)
    return x.reshape(*batch, -1, height, width)
    ### END SOLUTION


# %% [markdown]
# Expect the numbers 0 to 7 in order, in two rows:

# %%
unpatchify(torch.tensor([[0.0, 1, 4, 5], [2, 3, 6, 7]]), 2, 2, 4)

# %% nbgrader={"grade_id": "check_unpatchify", "locked": true}
check("vision.unpatchify", unpatchify)

# %% [markdown]
# ## 3 · `embed_image`
#
# <!-- facts: embed_image -->
#
# Write `embed_image(images, patch, weight, bias, class_token, positions)`, the tokens that the first
# block of a vision transformer reads. Each patch, as `patchify` returns it, is projected: times
# `weight`, plus `bias`. In front of these n tokens stands the class token, which belongs to no patch
# and is not projected. Then `positions` are added to all n + 1 tokens, row 0 to the class token.
#
# | | shape | |
# | --- | --- | --- |
# | `images` | `(..., c, H, W)` | |
# | `patch` | a number | the side of a patch, which divides H and W |
# | `weight` | `(c·patch², d)` | |
# | `bias`, `class_token` | `(d,)` | the same for every image |
# | `positions` | `(n + 1, d)` | |
# | returns | `(..., n + 1, d)` | |
#
# You may call your `patchify`.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: embed_image -->
#
# 1. Patches first, then the projection: one row `(d,)` for each.
# 2. The class token needs the same batch axes: `class_token.expand(*batch, 1, d)`.
# 3. `torch.cat([first, tokens], dim=-2)`, and the positions are added to all n + 1 at once.


# %% nbgrader={"grade_id": "embed_image", "solution": true}
def embed_image(images, patch, weight, bias, class_token, positions):
    ### BEGIN SOLUTION
    tokens = patchify(images, patch) @ weight + bias  # (..., n, d)
    first = class_token.expand(*tokens.shape[:-2], 1, -1)  # (..., 1, d)
    return torch.cat([first, tokens], dim=-2) + positions
    ### END SOLUTION


# %% [markdown]
# An image of two pixels, patches of one pixel, one feature. Expect 107, then 10 · 3 + 0.5 + 200 and
# 20 · 3 + 0.5 + 300:

# %%
embed_image(
    torch.tensor([[[10.0, 20.0]]]),
    1,
    weight=torch.tensor([[3.0]]),
    bias=torch.tensor([0.5]),
    class_token=torch.tensor([7.0]),
    positions=torch.tensor([[100.0], [200.0], [300.0]]),
)

# %% nbgrader={"grade_id": "check_embed_image", "locked": true}
check("vision.embed_image", embed_image)

# %% [markdown]
# ## 4 · `attention_on_image`
#
# <!-- facts: attention_on_image -->
#
# The class token's row of an attention map has n + 1 weights, which sum to 1: first its weight on
# itself, then those on the patches, in reading order. Write
# `attention_on_image(weights, height, width)`, which leaves the first one out, divides the others by
# their sum, so that they sum to 1 again, and lays them over the image, a number for each patch.
#
# | | shape | |
# | --- | --- | --- |
# | `weights` | `(..., height·width + 1)` | rows of attention weights, the class token's own first |
# | `height`, `width` | two numbers | of the image, in patches |
# | returns | `(..., height, width)` | each picture sums to 1 |
#
# The patches will never have a sum of 0. Every row is divided by a sum of its own.
#
# *Fine print:* numbers come in float64 and in float32; a guard added to the sum may be 1e-12 at
# most.
#
# <!-- hints: attention_on_image -->
#
# 1. Leave the first weight out, then divide by what is left.
# 2. `keepdim=True` keeps an axis of length 1, so that each row is divided by its own sum.
# 3. `shares.unflatten(-1, (height, width))`: reading order is the order of memory.


# %% nbgrader={"grade_id": "attention_on_image", "solution": true}
def attention_on_image(weights, height, width):
    ### BEGIN SOLUTION
    shares = weights[..., 1:]
    shares = shares / shares.sum(dim=-1, keepdim=True)
    return shares.reshape(*weights.shape[:-1], height, width)
    ### END SOLUTION


# %% [markdown]
# Expect `[[0.2, 0.4, 0.2], [0.2, 0.0, 0.0]]`:

# %%
attention_on_image(torch.tensor([0.5, 0.1, 0.2, 0.1, 0.1, 0.0, 0.0]), 2, 3)

# %% nbgrader={"grade_id": "check_attention_on_image", "locked": true}
check("vision.attention_on_image", attention_on_image)

# %% [markdown]
# ## 5 · `window_partition`
#
# <!-- facts: window_partition -->
#
# Tokens that attend only inside a window cost less. Write `window_partition(x, window)`, which cuts a
# grid of tokens into square windows and makes a sequence of each. The windows stand in reading
# order, and so do the tokens inside each window.
#
# | | shape | |
# | --- | --- | --- |
# | `x` | `(..., H, W, d)` | a token for each patch; the features stand last |
# | `window` | a number | the side of a window, in tokens |
# | returns | `(..., n_windows, window², d)` | n_windows = (H / window) · (W / window) |
#
# The batch axes stay as they are. Where `window` does not divide both H and W, raise `ValueError`.
#
# *Fine print:* numbers come in float64 and in float32.
#
# <!-- hints: window_partition -->
#
# 1. It is `patchify` for tokens: the features stay last.
# 2. `x.reshape(*batch, H // window, window, W // window, window, d)`.
# 3. Let the second and third of these five axes change places, then join two and two.


# %% nbgrader={"grade_id": "window_partition", "solution": true}
def window_partition(x, window):
    ### BEGIN SOLUTION
    *batch, H, W, d = x.shape
    if H % window or W % window:
        raise ValueError(f"a window of {window} does not divide {H} × {W} tokens")
    x = x.reshape(*batch, H // window, window, W // window, window, d)
    x = x.transpose(-4, -3)  # (..., rows, columns, window, window, d)
    return x.reshape(*batch, -1, window * window, d)
    ### END SOLUTION


# %% [markdown]
# A grid of 4 × 4 tokens of one feature. Expect `[0, 1, 4, 5]` for window 0, `[2, 3, 6, 7]` for
# window 1:

# %%
window_partition(torch.arange(16.0).reshape(4, 4, 1), 2)[..., 0]

# %% nbgrader={"grade_id": "check_window_partition", "locked": true}
check("vision.window_partition", window_partition)

# %% [markdown] nbgrader={"grade_id": "explain_order", "grade": true, "solution": true, "points": 4}
# ## 6 · A fixed disorder
#
# <!-- facts: explain_order -->
#
# All images of a data set have their patches shuffled in one and the same way. Explain in three
# sentences why a vision transformer learns from them as well as before, why a convolutional
# network does not, and what would be lost without positions.
#
# | points | for |
# | --: | --- |
# | 2 | why the transformer learns as well |
# | 1 | why the convolutional network does not |
# | 1 | what is lost without positions |
#
# Write your answer in place of the line below: double-click this cell.
#
# ### BEGIN SOLUTION
# Attention reads all pairs of patches alike and learns a vector for each place, so a shuffle that
# is always the same only gives the places other names. A convolution looks at neighbouring
# pixels, and across the borders of patches these are no neighbours any more. Without positions
# the transformer would know which patches there are and not where any of them stood.
#
# For the points, in this order: (2) the transformer has no built-in idea of neighbours: a
# position is learned for each place, and a fixed shuffle only renames the places; (1) a
# convolution reads pixels that lie side by side, and the shuffle tears them apart; (1) without
# positions the image is a bag of patches: where each stood is not known at all.
# ### END SOLUTION

# %% [markdown]
# ## Graded cells
#
# Nothing to do here. These cells are run when your notebook is graded. The first of each pair
# counts the points that the check shows; the second holds one more point, for a test on inputs that
# you have not seen.

# %% nbgrader={"grade_id": "points_patchify", "grade": true, "locked": true}
examine("vision.patchify", patchify).earned

# %% nbgrader={"grade_id": "hidden_patchify", "grade": true, "locked": true, "points": 1}
# One more test of patchify.
### BEGIN HIDDEN TESTS
images = torch.randn(2, 3, 6, 9)
corners = [(r, s) for r in (0, 3) for s in (0, 3, 6)]
rows = torch.stack([images[:, :, r : r + 3, s : s + 3].flatten(1) for r, s in corners], dim=1)
patches = patchify(images, 3)
assert patches.shape == (2, 6, 27), (
    "images of shape (2, 3, 6, 9) and patches of 3 should give shape (2, 6, 27)"
)
assert torch.equal(patches, rows), (
    "patches should stand in reading order, and the numbers of each go by channel, row and column"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_unpatchify", "grade": true, "locked": true}
examine("vision.unpatchify", unpatchify).earned

# %% nbgrader={"grade_id": "hidden_unpatchify", "grade": true, "locked": true, "points": 1}
# One more test of unpatchify.
### BEGIN HIDDEN TESTS
patches = torch.randn(2, 6, 27)
second, last = (patches[:, i].clone().reshape(2, 3, 3, 3) for i in (1, 5))
images = unpatchify(patches, 3, 6, 9)
assert images.shape == (2, 3, 6, 9), (
    "6 patches of 27 numbers should give images of shape (2, 3, 6, 9)"
)
assert torch.equal(images[:, :, 3:, 6:], last), "the last patch should lie at the lower right"
assert torch.equal(images[:, :, :3, 3:6], second), (
    "the second patch should lie to the right of the first, its channels and rows in order"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_embed_image", "grade": true, "locked": true}
examine("vision.embed_image", embed_image).earned

# %% nbgrader={"grade_id": "hidden_embed_image", "grade": true, "locked": true, "points": 1}
# One more test of embed_image.
### BEGIN HIDDEN TESTS
images, weight, bias = torch.randn(2, 3, 4, 6), torch.randn(12, 5), torch.randn(5)
class_token, positions = torch.randn(5), torch.randn(7, 5)
first = (class_token + positions[0]).expand(2, 5)
fifth = images[:, :, 2:4, 2:4].flatten(1) @ weight + bias + positions[5]
tokens = embed_image(images, 2, weight, bias, class_token, positions)
assert tokens.shape == (2, 7, 5), "6 patches of 2 × 2 should give 7 tokens, one more than patches"
assert torch.allclose(tokens[:, 0], first, atol=1e-5), (
    "the first token should be the class token plus positions[0], and not be projected"
)
assert torch.allclose(tokens[:, 5], fifth, atol=1e-4), (
    "patch k should be projected, plus bias, plus positions[k + 1]"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_attention_on_image", "grade": true, "locked": true}
examine("vision.attention_on_image", attention_on_image).earned

# %% nbgrader={"grade_id": "hidden_attention_on_image", "grade": true, "locked": true, "points": 1}
# One more test of attention_on_image.
### BEGIN HIDDEN TESTS
maps = torch.randn(2, 4, 16).softmax(dim=-1)
expected = maps[1, 2, 1 + 2 * 5 + 3] / (1 - maps[1, 2, 0])
picture = attention_on_image(maps, 3, 5)
assert picture.shape == (2, 4, 3, 5), (
    "rows of 16 weights on 3 × 5 patches should give shape (2, 4, 3, 5)"
)
assert torch.allclose(picture[1, 2, 2, 3], expected, atol=1e-5), (
    "without the class token's own weight the others should be divided by their sum, in reading order"
)
assert torch.allclose(picture.sum(dim=(-2, -1)), torch.ones(2, 4), atol=1e-5), (
    "each picture should sum to 1"
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "points_window_partition", "grade": true, "locked": true}
examine("vision.window_partition", window_partition).earned

# %% nbgrader={"grade_id": "hidden_window_partition", "grade": true, "locked": true, "points": 1}
# One more test of window_partition.
### BEGIN HIDDEN TESTS
x = torch.randn(2, 6, 9, 5)
fifth = x[:, 3:6, 3:6].clone().reshape(2, 9, 5)
windows = window_partition(x, 3)
assert windows.shape == (2, 6, 9, 5), (
    "a grid of 6 × 9 tokens and windows of 3 should give shape (2, 6, 9, 5)"
)
assert torch.equal(windows[:, 4], fifth), (
    "windows should stand in reading order, and so should the tokens inside each"
)
### END HIDDEN TESTS
