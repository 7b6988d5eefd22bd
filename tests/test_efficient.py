"""Chapter 17: attention in tiles, in windows and by features, against chapter 5's."""

import itertools
import math

import pytest
import torch
from torch.autograd import grad
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from attncourse.efficient import (
    kv_cache_bytes,
    linear_attention,
    online_softmax,
    tiled_attention,
    windowed_attention,
)
from attncourse.kqv import scaled_dot_product_attention
from attncourse.masking import causal_mask, sliding_window_mask

DOUBLE = {"dtype": torch.float64}
SHAPES = [
    ((7, 5), (11, 5), (11, 3)),
    ((2, 7, 5), (2, 11, 5), (2, 11, 3)),
    ((2, 3, 7, 5), (3, 11, 5), (11, 3)),
    ((1, 5), (1, 5), (1, 2)),
]


def parts(shapes, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(*shape, **DOUBLE).requires_grad_() for shape in shapes]


def with_gradients(attention, given, *rest):
    """The output and the gradient of every argument, for a loss without symmetries."""
    out = attention(*given, *rest)
    weight = torch.linspace(1, 2, out.numel(), **DOUBLE).view_as(out)
    return [out, *grad((weight * out.sin()).sum(), given)]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("block", [1, 3, 4, 11, 128])
def test_tiles_make_the_same_output_and_gradients(shapes, block):
    given = parts(shapes)
    m, n = shapes[0][-2], shapes[1][-2]
    masks = [None, causal_mask(m, n), torch.rand(m, n) > 0.5, torch.zeros(m, n).bool()]
    for mask in masks:
        expected = with_gradients(scaled_dot_product_attention, given, mask)
        got = with_gradients(tiled_attention, given, mask, block)
        for ours, theirs in zip(got, expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_tiles_where_scores_are_far_apart():
    """A larger score in a later tile, and scores that exp cannot hold."""
    query = torch.ones(1, 1, **DOUBLE)
    key = torch.tensor([[-2000.0], [0.0], [1000.0], [999.0]], **DOUBLE)
    value = torch.eye(4, **DOUBLE)
    expected = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(tiled_attention(query, key, value, None, 1), expected)


class Largest(TorchDispatchMode):
    """The most numbers that one tensor of the calls inside holds."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return out


def test_no_tensor_of_queries_by_keys_is_made_forward_or_backward():
    given = parts([(512, 4), (768, 4), (768, 4)])
    with Largest() as tiled:
        with_gradients(tiled_attention, given, None, 64)
    with Largest() as naive:
        with_gradients(scaled_dot_product_attention, given)
    assert naive.numbers == 512 * 768
    assert tiled.numbers <= 64 * 64  # a tile; every argument is smaller


def test_second_pass_is_right_to_the_last_digit_by_finite_differences():
    given = parts([(3, 2), (5, 2), (5, 2)])
    assert torch.autograd.gradcheck(lambda *a: tiled_attention(*a, None, 2), given)


def test_online_softmax_is_one_pass():
    torch.manual_seed(0)
    scores = 30 * torch.randn(2, 3, 17, **DOUBLE)
    scores[0, 1] = -math.inf
    scores[1, 2, :9] = -math.inf
    for size in (1, 4, 17, 40):
        blocks = iter(scores.split(size, dim=-1))  # can be read once
        maximum, normaliser = online_softmax(blocks)
        assert maximum.shape == normaliser.shape == (2, 3, 1)
        torch.testing.assert_close(maximum, scores.amax(-1, keepdim=True))
        total = (maximum + normaliser.log()).squeeze(-1)
        torch.testing.assert_close(total, scores.logsumexp(-1))
    assert normaliser[0, 1] == 0


@pytest.mark.parametrize("width", [1, 3, 7, 25])
def test_windows_are_chapter_tens_mask(width):
    given = parts([(2, 9, 4), (2, 9, 4), (2, 9, 3)])
    mask = sliding_window_mask(9, width)
    expected = with_gradients(scaled_dot_product_attention, given, mask)
    got = with_gradients(windowed_attention, given, width)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_windows_hold_no_matrix_of_scores():
    given = parts([(1024, 2), (1024, 2), (1024, 2)])
    with Largest() as seen:
        windowed_attention(*given, 5)
    assert seen.numbers <= 1024 * 5 * 2


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_a_mean_by_its_weights(causal):
    query, key, value = parts([(2, 7, 5), (2, 7, 5), (2, 7, 3)])
    expected = torch.zeros(2, 7, 3, **DOUBLE)
    for b, i in itertools.product(range(2), range(7)):
        seen = range(i + 1 if causal else 7)
        weights = [(F.elu(query[b, i]) + 1) @ (F.elu(key[b, j]) + 1) for j in seen]
        blend = sum(w * value[b, j] for w, j in zip(weights, seen, strict=True))
        expected[b, i] = blend / sum(weights)
    torch.testing.assert_close(linear_attention(query, key, value, causal), expected)


def test_bytes_of_a_cache():
    # One token of Llama 2 7B (32 layers, 32 heads of 128) in 16 bits: half a megabyte.
    assert kv_cache_bytes(1, 32, 32, 128) == 524_288
    assert kv_cache_bytes(4096, 32, 8, 128, 1) == 4096 * 32 * 8 * 128 * 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: online_softmax([]), "one block of scores or more, got none"),
        (
            lambda: online_softmax([torch.zeros(2, 3), torch.zeros(4, 3)]),
            r"queries \(2,\), got \(4,\)",
        ),
        (lambda: tiled_attention(*parts(SHAPES[0]), None, 0), "block: expected"),
        (lambda: tiled_attention(*parts(SHAPES[0]), torch.ones(7, 11)), "boolean"),
        (lambda: tiled_attention(*parts([(7, 5), (11, 4), (11, 3)])), "same width"),
        (lambda: windowed_attention(*parts([(9, 4), (9, 4), (9, 4)]), 4), "odd number, got 4"),
        (lambda: linear_attention(*parts(SHAPES[0]), True), "as many queries as keys, got 7 and"),
        (lambda: kv_cache_bytes(-1, 1, 1, 1), "n_tokens"),
        (lambda: kv_cache_bytes(1, 1, 0, 1), "n_kv_heads"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
