"""Chapter 15: patches and windows against loops, the classifier against transformers'.

The right answers here are those that the checks must accept.
"""

import pytest
import torch
from einops import rearrange
from torch.nn import functional as F

from attncourse.vision import (
    VisionTransformer,
    attention_on_image,
    embed_image,
    patchify,
    unpatchify,
    window_merge,
    window_partition,
)
from helpers.refusals import refused

# --- other right answers --------------------------------------------------------------------


def patchify_by_loops(images, patch):
    *batch, _, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError(f"{patch} does not divide {H} and {W}")
    rows = [
        images[..., r : r + patch, s : s + patch].reshape(*batch, -1)
        for r in range(0, H, patch)
        for s in range(0, W, patch)
    ]
    return torch.stack(rows, dim=-2)


def patchify_by_unfold(images, patch):
    *batch, c, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("no")
    flat = images.reshape(-1, c, H, W)
    return F.unfold(flat, patch, stride=patch).mT.reshape(*batch, -1, c * patch**2)


def patchify_by_einops(images, patch):
    if images.shape[-2] % patch or images.shape[-1] % patch:
        raise ValueError("no")
    return rearrange(images, "... c (r p) (s q) -> ... (r s) (c p q)", p=patch, q=patch)


def patchify_by_views(images, patch):
    if any(side % patch for side in images.shape[-2:]):
        raise ValueError("no")
    x = images.unfold(-2, patch, patch).unfold(-2, patch, patch)  # (..., c, r, s, p, q)
    return x.movedim(-5, -3).flatten(-3).flatten(-3, -2)


def patchify_by_convolution(images, patch):
    """A convolution whose kernels each pick one number."""
    *batch, c, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError("no")
    kernels = torch.eye(c * patch**2, dtype=images.dtype).reshape(-1, c, patch, patch)
    patches = F.conv2d(images.reshape(-1, c, H, W), kernels, stride=patch)
    return patches.flatten(-2).mT.reshape(*batch, -1, c * patch**2)


def patchify_by_index(images, patch):
    *batch, c, H, W = images.shape
    if H % patch + W % patch > 0:
        raise ValueError("no")
    places = torch.arange(c * H * W).reshape(c, H // patch, patch, W // patch, patch)
    places = places.permute(1, 3, 0, 2, 4).reshape(-1)
    n = H * W // patch**2
    return images.reshape(*batch, -1)[..., places].reshape(*batch, n, -1)


def unpatchify_by_loops(patches, patch, height, width):
    *batch, n, p = patches.shape
    images = torch.zeros(*batch, p // patch**2, height, width, dtype=patches.dtype)
    for i in range(n):
        r, s = divmod(i, width // patch)
        one = patches[..., i, :].reshape(*batch, -1, patch, patch)
        images[..., r * patch : (r + 1) * patch, s * patch : (s + 1) * patch] = one
    return images


def unpatchify_by_fold(patches, patch, height, width):
    *batch, n, p = patches.shape
    flat = patches.reshape(-1, n, p).mT
    images = F.fold(flat, (height, width), patch, stride=patch)
    return images.reshape(*batch, -1, height, width)


def unpatchify_by_einops(patches, patch, height, width):
    return rearrange(
        patches, "... (r s) (c p q) -> ... c (r p) (s q)", r=height // patch, p=patch, q=patch
    )


def unpatchify_by_joining(patches, patch, height, width):
    blocks = patches.unflatten(-1, (-1, patch, patch))
    tall = []
    for row in blocks.split(width // patch, dim=-4):
        tall.append(torch.cat(row.unbind(-4), dim=-1))
    return torch.cat(tall, dim=-2)


def windows_by_loops(x, window):
    *batch, H, W, d = x.shape
    if H % window or W % window:
        raise ValueError("no")
    return torch.stack(
        [
            x[..., r : r + window, s : s + window, :].reshape(*batch, -1, d)
            for r in range(0, H, window)
            for s in range(0, W, window)
        ],
        dim=-3,
    )


def windows_by_einops(x, window):
    if x.shape[-3] % window or x.shape[-2] % window:
        raise ValueError("no")
    return rearrange(x, "... (r p) (s q) d -> ... (r s) (p q) d", p=window, q=window)


def windows_by_permute(x, window):
    *batch, H, W, d = x.shape
    if H % window or W % window:
        raise ValueError("no")
    flat = x.reshape(-1, H // window, window, W // window, window, d)
    return flat.permute(0, 1, 3, 2, 4, 5).reshape(*batch, -1, window**2, d)


def windows_as_patches(x, window):
    """Patches of d channels."""
    d = x.shape[-1]
    patches = patchify_by_unfold(x.movedim(-1, -3), window)
    return patches.unflatten(-1, (d, -1)).mT


def windows_by_splitting(x, window):
    if any(side % window for side in x.shape[-3:-1]):
        raise ValueError("no")
    rows = [row.split(window, dim=-2) for row in x.split(window, dim=-3)]
    return torch.stack([block.flatten(-3, -2) for row in rows for block in row], dim=-3)


def embed_by_loops(images, patch, weight, bias, class_token, positions):
    tokens = [class_token.expand(*images.shape[:-3], -1) + positions[0]]
    for i, patch_pixels in enumerate(patchify_by_loops(images, patch).unbind(-2)):
        tokens.append(patch_pixels @ weight + bias + positions[i + 1])
    return torch.stack(tokens, dim=-2)


def embed_by_convolution(images, patch, weight, bias, class_token, positions):
    *batch, c, H, W = images.shape
    kernels = weight.T.reshape(-1, c, patch, patch)
    embedded = F.conv2d(images.reshape(-1, c, H, W), kernels, bias, stride=patch)
    tokens = embedded.flatten(-2).mT.reshape(*batch, -1, weight.shape[1])
    first = class_token.repeat(*batch, 1, 1)
    return torch.cat([first, tokens], -2) + positions


def embed_by_einsum(images, patch, weight, bias, class_token, positions):
    W = weight.unflatten(0, (-1, patch, patch))
    x = images.unflatten(-1, (-1, patch)).unflatten(-3, (-1, patch))
    tokens = torch.einsum("...crpsq,cpqd->...rsd", x, W).flatten(-3, -2)
    with_positions = F.pad(tokens, (0, 0, 1, 0)) + positions
    extra = torch.cat([class_token[None], bias.expand(len(positions) - 1, -1)])
    return with_positions + extra


def embed_with_linear(images, patch, weight, bias, class_token, positions):
    tokens = F.linear(patchify_by_einops(images, patch), weight.T, bias) + positions[1:]
    first = (class_token + positions[0]).broadcast_to(*tokens.shape[:-2], 1, weight.shape[1])
    return torch.cat([first, tokens], dim=-2)


def shares_by_loops(weights, height, width):
    rows = []
    for row in weights.reshape(-1, weights.shape[-1]).unbind(0):
        total = sum(row[1:].unbind(0))
        rows.append(torch.stack([w / total for w in row[1:]]).reshape(height, width))
    return torch.stack(rows).reshape(*weights.shape[:-1], height, width)


def shares_by_the_rest(weights, height, width):
    """What the class token does not give to itself, as the divisor."""
    patches = weights[..., 1:] / (weights.sum(-1, keepdim=True) - weights[..., :1])
    return patches.reshape(*weights.shape[:-1], height, width)


def shares_by_softmax(weights, height, width):
    """The softmax of logarithms divides by the sum."""
    return weights[..., 1:].log().softmax(-1).unflatten(-1, (height, width))


def shares_by_norm(weights, height, width):
    return rearrange(F.normalize(weights[..., 1:], p=1, dim=-1), "... (r s) -> ... r s", r=height)


def shares_laid_out_first(weights, height, width):
    picture = weights.narrow(-1, 1, height * width).unflatten(-1, (height, width))
    return picture / picture.sum((-2, -1), keepdim=True)


RIGHT = {
    "vision.patchify": [
        patchify_by_loops,
        patchify_by_unfold,
        patchify_by_einops,
        patchify_by_views,
        patchify_by_convolution,
        patchify_by_index,
    ],
    "vision.unpatchify": [
        unpatchify_by_loops,
        unpatchify_by_fold,
        unpatchify_by_einops,
        unpatchify_by_joining,
    ],
    "vision.window_partition": [
        windows_by_loops,
        windows_by_einops,
        windows_by_permute,
        windows_as_patches,
        windows_by_splitting,
    ],
    "vision.embed_image": [
        embed_by_loops,
        embed_by_convolution,
        embed_by_einsum,
        embed_with_linear,
    ],
    "vision.attention_on_image": [
        shares_by_loops,
        shares_by_the_rest,
        shares_by_softmax,
        shares_by_norm,
        shares_laid_out_first,
    ],
}


# --- the package -----------------------------------------------------------------------------

GRIDS = [((3, 10, 14), 2), ((1, 5, 5), 5), ((2, 3, 9, 6), 3), ((2, 3, 1, 4, 7), 1)]


@pytest.mark.parametrize(("shape", "patch"), GRIDS)
def test_patches_are_those_of_unfold_and_can_be_put_back(shape, patch):
    images = torch.randn(shape)
    patches = patchify(images, patch)
    flat = images.reshape(-1, *shape[-3:])
    expected = F.unfold(flat, patch, stride=patch).mT.reshape(patches.shape)
    assert torch.equal(patches, expected)
    assert torch.equal(unpatchify(patches, patch, *shape[-2:]), images)


def test_patches_of_an_image_by_hand():
    image = torch.arange(16.0).reshape(1, 4, 4)
    assert patchify(image, 2).tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


@pytest.mark.parametrize("shape", [(6, 9, 5), (2, 6, 3, 1), (2, 2, 3, 3, 4)])
def test_windows_are_blocks_of_the_grid_and_can_be_put_back(shape):
    x, window = torch.randn(shape), 3
    windows = window_partition(x, window)
    height, width = shape[-3:-1]
    places = [(r, c) for r in range(0, height, window) for c in range(0, width, window)]
    assert windows.shape[-3] == len(places)
    for number, (r, c) in enumerate(places):
        block = x[..., r : r + window, c : c + window, :].flatten(-3, -2)
        assert torch.equal(windows[..., number, :, :], block)
    assert torch.equal(window_merge(windows, window, height, width), x)


def test_tokens_of_an_image_are_patches_and_a_class_token():
    images, weight, bias = torch.randn(2, 3, 4, 6), torch.randn(12, 5), torch.randn(5)
    first, positions = torch.randn(5), torch.randn(7, 5)
    tokens = embed_image(images, 2, weight, bias, first, positions)
    assert tokens.shape == (2, 7, 5)
    torch.testing.assert_close(tokens[1, 0], first + positions[0])
    patch = images[1, :, 2:4, 2:4].flatten()  # the fifth in reading order
    torch.testing.assert_close(tokens[1, 5], patch @ weight + bias + positions[5])


def test_shares_of_attention_leave_out_the_class_token():
    weights = torch.tensor([0.5, 0.1, 0.2, 0.1, 0.1, 0.0, 0.0])
    shares = attention_on_image(weights, 2, 3)
    torch.testing.assert_close(shares, torch.tensor([[0.2, 0.4, 0.2], [0.2, 0.0, 0.0]]))


def test_the_classifier_is_that_of_transformers():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    library_model = transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48,
            image_size=6, patch_size=2, num_channels=3, num_labels=5,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        for parameter in library_model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    model = VisionTransformer.from_huggingface(library_model)
    images = torch.randn(4, 3, 6, 6)
    with torch.no_grad():
        expected = library_model(images).logits
        assert expected.std() > 0.1
        torch.testing.assert_close(model(images), expected, atol=1e-5, rtol=1e-5)


def test_maps_of_all_layers_and_heads_are_returned():
    model = VisionTransformer(8, 2, 1, 10, 12, 3, 2)
    maps = model.weights(torch.randn(5, 1, 8, 8))
    assert maps.shape == (5, 2, 3, 17, 17)
    torch.testing.assert_close(maps.sum(-1), torch.ones(5, 2, 3, 17))


test_bad_input_is_refused = refused(
    [
        (lambda: patchify(torch.zeros(3, 8, 9), 4), "the width"),
        (lambda: patchify(torch.zeros(3, 9, 8), 4), "the height"),
        (lambda: unpatchify(torch.zeros(5, 12), 2, 4, 6), "expected 2 × 3 = 6, got 5"),
        (lambda: unpatchify(torch.zeros(6, 10), 2, 4, 6), "patch²"),
        (lambda: window_partition(torch.zeros(7, 6, 2), 3), "the height"),
        (lambda: window_merge(torch.zeros(4, 8, 2), 3, 6, 6), "expected 3 × 3 = 9, got 8"),
        (lambda: window_merge(torch.zeros(3, 9, 2), 3, 6, 6), "expected 2 × 2 = 4, got 3"),
        (lambda: attention_on_image(torch.ones(7), 2, 2), "expected 2 × 2 = 4, got 6"),
        (lambda: VisionTransformer(9, 2, 1, 10, 8, 2, 1), "image_size"),
        (
            lambda: VisionTransformer(8, 2, 1, 10, 8, 2, 1)(torch.zeros(1, 3, 8, 8)),
            r"\(\.\.\., 1, 8, 8\), got \(1, 3, 8, 8\)",
        ),
    ]
)
