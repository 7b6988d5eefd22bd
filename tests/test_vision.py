"""Chapter 15: patches and windows against loops, the classifier against transformers'."""

import pytest
import torch
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


def test_tokens_of_an_image():
    images, weight, bias = torch.randn(2, 3, 4, 6), torch.randn(12, 5), torch.randn(5)
    first, positions = torch.randn(5), torch.randn(7, 5)
    tokens = embed_image(images, 2, weight, bias, first, positions)
    assert tokens.shape == (2, 7, 5)
    torch.testing.assert_close(tokens[1, 0], first + positions[0])
    patch = images[1, :, 2:4, 2:4].flatten()  # the fifth in reading order
    torch.testing.assert_close(tokens[1, 5], patch @ weight + bias + positions[5])


def test_shares_of_attention_over_the_image():
    weights = torch.tensor([0.5, 0.1, 0.2, 0.1, 0.1, 0.0, 0.0])
    shares = attention_on_image(weights, 2, 3)
    torch.testing.assert_close(shares, torch.tensor([[0.2, 0.4, 0.2], [0.2, 0.0, 0.0]]))


def test_the_classifier_is_that_of_transformers():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48,
            image_size=6, patch_size=2, num_channels=3, num_labels=5,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    ours = VisionTransformer.from_huggingface(theirs)
    images = torch.randn(4, 3, 6, 6)
    with torch.no_grad():
        expected = theirs(images).logits
        assert expected.std() > 0.1
        torch.testing.assert_close(ours(images), expected, atol=1e-5, rtol=1e-5)


def test_maps_of_all_layers_and_heads():
    model = VisionTransformer(8, 2, 1, 10, 12, 3, 2)
    maps = model.weights(torch.randn(5, 1, 8, 8))
    assert maps.shape == (5, 2, 3, 17, 17)
    torch.testing.assert_close(maps.sum(-1), torch.ones(5, 2, 3, 17))


@pytest.mark.parametrize(
    ("call", "said"),
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
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
