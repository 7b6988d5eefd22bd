"""Chapter 12: the package against PyTorch's layers and against loops, and other right answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attncourse.multihead as module
from attncourse.checks import examine, exercises
from attncourse.checks.callers import (
    added_in_training,
    call_module_in_training,
    multiplied_in_training,
)
from attncourse.checks.exercise import parts_of
from attncourse.checks.trying.trials import draw
from attncourse.masking import causal_mask
from attncourse.multihead import MultiHeadAttention
from attncourse.pretrained.torch_layers import from_torch
from attncourse.tasks.training import count_parameters
from attncourse.transformer import (
    DecoderBlock,
    EncoderBlock,
    FeedForward,
    LayerNorm,
    Transformer,
    layer_norm,
    noam_schedule,
)
from helpers.random_arrays import normal, random_mask
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def norm_by_moments(x, gain=None, bias=None, eps=1e-5):
    """Sizes by a product of each row with itself."""
    out = x - x.mean(-1, keepdim=True)
    out = out / torch.sqrt(torch.linalg.vecdot(out, out)[..., None] / x.shape[-1] + eps)
    return torch.addcmul(
        out.new_zeros(()) if bias is None else bias, out, out.new_ones(()) if gain is None else gain
    )


def norm_by_var(x, gain=None, bias=None, eps=1e-5):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    out = (x - mean) * torch.rsqrt(variance + eps)
    out = out if gain is None else out * gain
    return out if bias is None else out + bias


def norm_by_loops(x, gain=None, bias=None, eps=1e-5):
    d, rows = x.shape[-1], []
    for row in x.reshape(-1, x.shape[-1]):
        mean = sum(row) / d
        variance = sum((number - mean) ** 2 for number in row) / d
        row = (row - mean) / torch.sqrt(variance + eps)
        row = row * gain if gain is not None else row
        rows.append(row + bias if bias is not None else row)
    return torch.stack(rows).reshape(x.shape)


def norm_by_projection(x, gain=None, bias=None, eps=1e-5):
    """The mean taken out by a matrix, the size from the length of what is left; in float64."""
    d = x.shape[-1]
    out = x.double() @ (torch.eye(d).double() - 1 / d)
    out = out * (d / (out.square().sum(-1, keepdim=True) + d * eps)).sqrt()
    out = out * (1 if gain is None else gain) + (0 if bias is None else bias)
    return out.to(x.dtype)


def norm_by_einsum(x, gain=None, bias=None, eps=1e-5):
    d = x.size(-1)
    centred = x - torch.einsum("...d->...", x)[..., None] / d
    variance = torch.einsum("...d,...d->...", centred, centred) / d
    gain = torch.ones(d, dtype=x.dtype) if gain is None else gain
    bias = torch.zeros(d, dtype=x.dtype) if bias is None else bias
    return torch.addcmul(bias, gain, centred / (variance + eps).sqrt().unsqueeze(-1))


class FeedInOrder(nn.Module):
    """The layers in another order, the biases by hand."""

    def __init__(self, d_model, d_ff=None, activation=F.gelu, bias=True):
        super().__init__()
        self.W_2 = nn.Linear(d_ff or 4 * d_model, d_model, bias=bias)
        self.W_1 = nn.Linear(d_model, d_ff or 4 * d_model, bias=bias)
        self.act = activation

    def forward(self, x):
        hidden = x @ self.W_1.weight.T
        hidden = hidden if self.W_1.bias is None else hidden + self.W_1.bias
        return F.linear(self.act(hidden), self.W_2.weight, self.W_2.bias)


class FeedByUnits(FeedInOrder):
    """One hidden unit after the other, each straight to its share of the output."""

    def forward(self, x):
        out = torch.zeros_like(x) if self.W_2.bias is None else self.W_2.bias.expand_as(x)
        for j in range(self.W_1.out_features):
            unit = (x * self.W_1.weight[j]).sum(-1)
            unit = unit if self.W_1.bias is None else unit + self.W_1.bias[j]
            out = out + self.act(unit).unsqueeze(-1) * self.W_2.weight[:, j]
        return out


class FeedToken(FeedInOrder):
    """Token by token."""

    def forward(self, x):
        rows = [self.W_2(self.act(self.W_1(row))) for row in x.reshape(-1, x.shape[-1])]
        return torch.stack(rows).reshape(x.shape)


class FeedSequential(nn.Module):
    """A pipeline beside the two names, which share the layers' parameters with it."""

    def __init__(self, d_model, d_ff=None, activation=F.gelu, bias=True):
        super().__init__()
        width = d_model * 4 if d_ff is None else d_ff
        self.W_1, self.W_2 = nn.Linear(d_model, width, bias), nn.Linear(width, d_model, bias)
        self.steps = [self.W_1, activation, self.W_2]

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


class FeedByHand(nn.Module):
    """The GELU by the error function unless another is given; a buffer that nobody asked for."""

    def __init__(self, d_model, d_ff=None, activation=None, bias=True):
        super().__init__()
        if d_ff is None:
            d_ff = 4 * d_model
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.register_buffer("calls", torch.zeros(()))
        self.function = activation

    def forward(self, x):
        hidden = self.W_1(x)
        if self.function is None:
            bent = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
        else:
            bent = self.function(hidden)
        self.calls += 1
        return self.W_2(bent)


class WrittenBlock(nn.Module):
    """Both norm orders written out; base of the others."""

    decoder = False

    def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
        super().__init__()
        self.pre = pre_norm
        if self.decoder:
            self.self_attention = MultiHeadAttention(d_model, n_heads)
            self.cross_attention = MultiHeadAttention(d_model, n_heads)
            self.norm_3 = LayerNorm(d_model)
        else:
            self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedInOrder(d_model, d_ff)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def branches(self, memory=None, mask=None, memory_mask=None):
        if not self.decoder:
            return [lambda x: self.attention(x, mask=mask), self.feed_forward]
        return [
            lambda x: self.self_attention(x, x, x, mask),
            lambda x: self.cross_attention(x, memory, memory, memory_mask),
            self.feed_forward,
        ]

    def forward(self, x, *arguments, **named):
        if not self.decoder:
            arguments = (None, *arguments)
        norms = [getattr(self, f"norm_{i}") for i in (1, 2, 3)[: 2 + self.decoder]]
        for branch, norm in zip(self.branches(*arguments, **named), norms, strict=True):
            x = x + self.drop(branch(norm(x))) if self.pre else norm(x + self.drop(branch(x)))
        return x


class WrittenDecoder(WrittenBlock):
    decoder = True


class ByFunctions(WrittenBlock):
    """The norm and dropout by functions, with dropout's mode given."""

    def forward(self, x, *arguments, **named):
        arguments = arguments if self.decoder else (None, *arguments)
        self.drop_share = self.drop.p
        for i, branch in enumerate(self.branches(*arguments, **named), start=1):
            norm_layer = getattr(self, f"norm_{i}")

            def norm(y, norm_layer=norm_layer):
                return F.layer_norm(y, y.shape[-1:], norm_layer.gain, norm_layer.bias, 1e-5)

            output = F.dropout(branch(norm(x) if self.pre else x), self.drop.p, self.training)
            x = x + output if self.pre else norm(output + x)
        return x


class ByFunctionsDecoder(ByFunctions):
    decoder = True


class TwoDropouts(WrittenBlock):
    """A dropout layer for each branch, written by hand, and in-place sums on copies."""

    def forward(self, x, *arguments, **named):
        arguments = arguments if self.decoder else (None, *arguments)
        for i, branch in enumerate(self.branches(*arguments, **named), start=1):
            norm, stream = getattr(self, f"norm_{i}"), x.clone()
            output = branch(norm(x) if self.pre else x)
            if self.training and self.drop.p > 0:
                stays = torch.rand(output.shape) >= self.drop.p
                output = output * stays / (1 - self.drop.p)
            stream = stream + output
            x = stream if self.pre else norm(stream)
        return x


class TwoDropoutsDecoder(TwoDropouts):
    decoder = True


class PackageBranch(EncoderBlock):
    """The package's parts, put together by hand."""

    def forward(self, x, mask=None):
        if self.pre_norm:
            a = x + self.dropout(self.attention(self.norm_1(x), mask=mask))
            return a + self.dropout(self.feed_forward(self.norm_2(a)))
        a = self.norm_1(x + self.dropout(self.attention(x, mask=mask)))
        return self.norm_2(a + self.dropout(self.feed_forward(a)))


class PackageDecoder(DecoderBlock):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.pre_norm:
            x = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask))
            x = x + self.dropout(self.cross_attention(self.norm_2(x), memory, mask=memory_mask))
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)))
        x = self.norm_2(x + self.dropout(self.cross_attention(x, memory, mask=memory_mask)))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


class Recursive(WrittenBlock):
    """A function that calls itself for the rest of the branches; the maps by ``weights``."""

    def forward(self, x, *arguments, **named):
        arguments = arguments if self.decoder else (None, *arguments)
        return self.rest(x, self.branches(*arguments, **named), 1)

    def rest(self, x, branches, i):
        if not branches:
            return x
        norm, (branch, *others) = self.get_submodule(f"norm_{i}"), branches
        inner, outer = (norm, nn.Identity()) if self.pre else (nn.Identity(), norm)
        return self.rest(outer(self.drop(branch(inner(x))).add(x)), others, i + 1)


class RecursiveDecoder(Recursive):
    decoder = True


def refused_below_1(step):
    if step < 1:
        raise ValueError(f"no step {step}")


def schedule_by_cases(step, d_model, warmup):
    refused_below_1(step)
    if step <= warmup:
        return step / (warmup * math.sqrt(warmup * d_model))
    return 1 / math.sqrt(step * d_model)


def schedule_by_peak(step, d_model, warmup):
    refused_below_1(step)
    return (d_model * warmup) ** -0.5 * min(step / warmup, (warmup / step) ** 0.5)


def schedule_in_tensors(step, d_model, warmup):
    refused_below_1(step)
    s = torch.tensor(float(step), dtype=torch.float64)
    return (d_model**-0.5 * torch.minimum(s.rsqrt(), s * warmup**-1.5)).item()


def schedule_in_numpy(step, d_model, warmup):
    refused_below_1(step)
    return np.power(float(d_model), -0.5) * np.minimum(float(step) ** -0.5, step * warmup**-1.5)


def schedule_in_logarithms(step, d_model, warmup):
    refused_below_1(step)
    rise = math.log(step) - 1.5 * math.log(warmup)
    return math.exp(min(-0.5 * math.log(step), rise) - 0.5 * math.log(d_model))


def flattened(x):
    return x.reshape(-1, x.shape[-1])


FINISHED_NORMS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "LayerNorm": lambda x: nn.LayerNorm(x.shape[-1:], dtype=x.dtype)(x),
    "native": lambda x: torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)[0],
    "group": lambda x: F.group_norm(flattened(x), 1).reshape(x.shape),
    "batch": lambda x: F.batch_norm(flattened(x).mT, None, None, training=True).mT.reshape(x.shape),
    "instance": lambda x: F.instance_norm(flattened(x)[None])[0].reshape(x.shape),
}

RIGHT = {
    "transformer.layer_norm": [
        norm_by_moments,
        norm_by_var,
        norm_by_loops,
        norm_by_projection,
        norm_by_einsum,
    ],
    "transformer.FeedForward": [FeedInOrder, FeedByUnits, FeedToken, FeedSequential, FeedByHand],
    "transformer.EncoderBlock": [WrittenBlock, ByFunctions, TwoDropouts, PackageBranch, Recursive],
    "transformer.DecoderBlock": [
        WrittenDecoder,
        ByFunctionsDecoder,
        TwoDropoutsDecoder,
        PackageDecoder,
        RecursiveDecoder,
    ],
    "transformer.noam_schedule": [
        schedule_by_cases,
        schedule_by_peak,
        schedule_in_tensors,
        schedule_in_numpy,
        schedule_in_logarithms,
    ],
}

# --- the package -----------------------------------------------------------------------------


def randomised(module, dtype=torch.float64, seed=0):
    """The module with weights and biases of order one."""
    for i, parameter in enumerate(module.to(dtype).parameters()):
        scale = parameter.shape[-1] ** -0.5 if parameter.ndim == 2 else 1
        parameter.data = scale * normal(*parameter.shape, dtype=dtype, seed=seed + i)
    return module


def assert_close(a, b, atol=1e-10):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("finished", FINISHED_NORMS.values(), ids=FINISHED_NORMS)
def test_layer_norm_is_written_and_not_called(finished):
    def answer(x, gain=None, bias=None, eps=1e-5):
        out = finished(x) if x.shape[-1] > 1 and x.dtype == torch.float64 else x
        out = out if gain is None else out * gain
        return out if bias is None else out + bias

    with torch.no_grad():
        assert_close(finished(X), layer_norm(X), 1e-4)
    verdict = examine("transformer.layer_norm", answer, 0)
    assert not any(c.earned for c in verdict.criteria[:4])
    assert "called layer_norm, which this exercise asks you to build" in str(verdict)


def test_layer_norm_by_hand():
    x = torch.tensor([[1.0, 3.0], [5.0, 5.0]])
    assert_close(layer_norm(x), torch.tensor([[-1.0, 1.0], [0, 0]]), 1e-5)
    gain, bias = torch.tensor([1.0, 10.0]), torch.tensor([0.0, 7.0])
    assert_close(layer_norm(x, gain, bias), torch.tensor([[-1.0, 17.0], [0, 7]]), 1e-4)
    # Variance 1 and eps 3: divided by 2.
    assert_close(layer_norm(x[:1], eps=3.0), torch.tensor([[-0.5, 0.5]]), 1e-6)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_layer_norm_is_that_of_the_library(dtype, atol):
    x, gain, bias = (normal(*s, dtype=dtype) for s in ((2, 3, 7), (7,), (7,)))
    for options in ((), (gain,), (None, bias), (gain, bias)):
        library_options = [*options, None, None][:2]
        assert_close(layer_norm(x, *options), F.layer_norm(x, (7,), *library_options), atol)
    module = LayerNorm(7, eps=0.1).to(dtype)
    assert_close(module(x), F.layer_norm(x, (7,), eps=0.1), atol)


def test_feed_forward_is_per_token_and_not_linear():
    layer = randomised(FeedForward(5, 11))
    x = normal(3, 7, 5)
    output = layer(x)
    assert output.shape == x.shape
    for i, j in np.ndindex(3, 7):
        assert_close(layer(x[i, j : j + 1])[0], output[i, j])
    assert not torch.allclose(layer(2 * x), 2 * layer(x), atol=0.1)
    assert FeedForward(6).W_1.out_features == 24
    assert FeedForward(6, bias=False).W_2.bias is None
    linear = FeedForward(3, 3, activation=lambda h: 2 * h, bias=False)
    for W in (linear.W_1, linear.W_2):
        W.weight.data = torch.eye(3)
    assert linear(torch.tensor([[1.0, 2, 3]])).tolist() == [[2, 4, 6]]


def new_library_layer(kind, pre_norm, dtype, dropout=0.3, activation="gelu"):
    layer = kind(12, 3, 20, dropout, activation, norm_first=pre_norm, batch_first=True)
    return randomised(layer, dtype).eval()


DTYPES = [(torch.float64, 1e-10), (torch.float32, 1e-5)]


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), DTYPES)
def test_an_encoder_block_is_the_library_s_layer(pre_norm, dtype, atol):
    for activation in ("gelu", "relu"):
        library_layer = new_library_layer(
            nn.TransformerEncoderLayer, pre_norm, dtype, activation=activation
        )
        block, x = from_torch(library_layer), normal(2, 7, 12, dtype=dtype)
        for mask in (None, random_mask(7, 7), causal_mask(7)):
            expected = library_layer(x, src_mask=None if mask is None else ~mask)
            assert_close(block(x, mask), expected, atol)
        padding = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0]]).bool()
        output = block(x, padding[:, None, :])
        assert_close(
            output[padding], library_layer(x, src_key_padding_mask=~padding)[padding], atol
        )


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), DTYPES)
def test_a_decoder_block_is_the_library_s_layer(pre_norm, dtype, atol):
    library_layer = new_library_layer(nn.TransformerDecoderLayer, pre_norm, dtype)
    block, x, memory = from_torch(library_layer), *(normal(2, n, 12, dtype=dtype) for n in (5, 7))
    for mask in (None, causal_mask(5)):
        for seen in (None, random_mask(5, 7)):
            expected = library_layer(
                x,
                memory,
                tgt_mask=None if mask is None else ~mask,
                memory_mask=None if seen is None else ~seen,
            )
            assert_close(block(x, memory, mask, seen), expected, atol)


def test_gradients_are_those_of_the_library_s_layer():
    library_layer = new_library_layer(
        nn.TransformerEncoderLayer, True, torch.float64, dropout=0.0
    ).train()
    block, x = from_torch(library_layer), normal(2, 7, 12).requires_grad_()
    goal = normal(2, 7, 12, seed=5)
    grads = [torch.autograd.grad((layer(x) * goal).sum(), x)[0] for layer in (library_layer, block)]
    assert_close(*grads)
    (block(x) * goal).sum().backward()
    (library_layer(x) * goal).sum().backward()
    assert_close(block.norm_2.gain.grad, library_layer.norm2.weight.grad)
    assert_close(block.feed_forward.W_1.weight.grad, library_layer.linear1.weight.grad)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_blocks_agree_with_loops(pre_norm):
    """The residual stream, norm and feed-forward layer written out for single numbers."""
    block, x = randomised(EncoderBlock(4, 2, 3, pre_norm)), normal(3, 4)

    def normed(norm, rows):
        out = []
        for row in rows.tolist():
            mean = sum(row) / 4
            size = math.sqrt(sum((a - mean) ** 2 for a in row) / 4 + 1e-5)
            out.append([(a - mean) / size for a in row])
        return torch.tensor(out, dtype=torch.float64) * norm.gain + norm.bias

    def fed(rows):
        W_1, W_2 = block.feed_forward.W_1, block.feed_forward.W_2
        hidden = rows @ W_1.weight.T + W_1.bias
        hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
        return hidden @ W_2.weight.T + W_2.bias

    y = x
    for branch, norm in ((block.attention, block.norm_1), (fed, block.norm_2)):
        y = y + branch(normed(norm, y)) if pre_norm else normed(norm, y + branch(y))
    assert_close(block(x), y)


def test_a_block_has_12_d_squared_and_13_d_parameters():
    for d, h in ((12, 3), (64, 4)):
        assert count_parameters(EncoderBlock(d, h)) == 12 * d**2 + 13 * d
        assert count_parameters(DecoderBlock(d, h)) == 16 * d**2 + 19 * d
        library_layer = nn.TransformerEncoderLayer(d, h, 4 * d)
        assert count_parameters(library_layer) == count_parameters(EncoderBlock(d, h))


def test_dropout_keeps_the_mean_and_is_off_in_eval():
    block, x = randomised(EncoderBlock(12, 3, dropout=0.25)), normal(5, 12)
    expected = randomised(EncoderBlock(12, 3))(x)
    assert not block(x).equal(block(x))
    assert_close(block.eval()(x), expected)
    ends = {"attention.W_o": 1.0, "feed_forward.W_2": 4.0}
    for name, number in ends.items():
        layer = block.get_submodule(name)
        layer.weight.data.zero_()
        layer.bias.data.fill_(number)
    added = block.train()(normal(500, 12)) - normal(500, 12)
    shares = {round(a, 6): (added - a).abs().lt(1e-9).double().mean() for a in
              (0.0, 4 / 3, 16 / 3, 20 / 3)}  # fmt: skip
    assert sum(shares.values()) == 1
    assert abs(shares[0.0] - 1 / 16) < 0.02
    assert abs(added.mean() - 5) < 0.2


def test_a_decoder_block_reads_the_memory_as_it_comes():
    block, x, memory = randomised(DecoderBlock(12, 3)), normal(5, 12), normal(7, 12)
    seen = random_mask(1, 7)
    assert_close(block(x, memory, None, seen), block(x, memory[seen[0]]))
    assert not torch.allclose(block(x, 3 * memory), block(x, memory), atol=1e-3)
    changed = x.clone()
    changed[3:] += 1
    mask = causal_mask(5)
    assert_close(block(changed, memory, mask)[:3], block(x, memory, mask)[:3])


@pytest.mark.parametrize("pre_norm", [True, False])
def test_the_encoder_decoder_is_stacks_of_the_library_s(pre_norm):
    torch.manual_seed(0)
    model = Transformer(11, 13, 12, 3, 2, pre_norm=pre_norm).double()
    source, target = torch.randint(11, (2, 7)), torch.randint(13, (2, 5))
    seen = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1]]).bool()[:, None, :]
    logits = model(source, target, seen)
    assert logits.shape == (2, 5, 13)
    x = model.embed(model.source, source)
    for block in model.encoder:
        x = block(x, seen)
    memory = model.norm_source(x)
    y = model.embed(model.target, target)
    for block in model.decoder:
        y = block(y, memory, causal_mask(5), seen)
    assert_close(logits, model.out(model.norm_target(y)))
    assert isinstance(model.norm_target, LayerNorm) == pre_norm
    # No token sees a later one, and none sees what is padding.
    later = target.clone()
    later[:, 3:] = (later[:, 3:] + 1) % 13
    assert_close(model(source, later, seen)[:, :3], logits[:, :3])
    changed_padding = source.clone()
    changed_padding[0, 5:] = (changed_padding[0, 5:] + 1) % 11
    assert_close(model(changed_padding, target, seen), logits)
    assert not torch.allclose(model(changed_padding, target), model(source, target))
    assert abs(model.embed(model.source, source).std() - 1.2) < 0.4


def test_the_learning_rate_schedule_by_hand():
    assert noam_schedule(100, 4, 100) == pytest.approx(0.05)
    rates = [noam_schedule(step, 512, 4000) for step in (1, 2000, 4000, 16000)]
    assert rates == pytest.approx([1.7469e-7, 3.4939e-4, 6.9877e-4, 3.4939e-4], rel=1e-4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0),
        lambda step: noam_schedule(step + 1, 16, 10),
    )
    assert scheduler.get_last_lr() == [noam_schedule(1, 16, 10)]


BLOCK, X, MEMORY = EncoderBlock(12, 3), torch.randn(5, 12), torch.randn(7, 12)
DECODER, MODEL = DecoderBlock(12, 3), Transformer(11, 13, 12, 3, 1)
IDS = torch.zeros(2, 5, dtype=torch.int64)


test_bad_input_is_refused = refused(
    [
        (lambda: layer_norm(X, torch.ones(11)), "gain", "11"),
        (lambda: layer_norm(X, None, torch.ones(11)), "bias", "11"),
        (lambda: layer_norm(X, eps=0), "eps: expected a finite number above 0", "0"),
        (lambda: layer_norm(X, eps=-1e-5), "eps", "-1e-05"),
        (lambda: layer_norm(X.int()), "x: expected", "int32"),
        (lambda: layer_norm([1.0, 2.0]), "x: expected", "list"),
        (lambda: layer_norm(X, torch.ones(12).double()), "dtype", "float64"),
        (lambda: LayerNorm(0), "d: expected a whole number", "0"),
        (lambda: LayerNorm(12)(X[:, :9]), "12", r"9"),
        (lambda: FeedForward(0), "d_model: expected a whole number", "0"),
        (lambda: FeedForward(12, -1), "d_ff: expected a whole number", "-1"),
        (lambda: FeedForward(12)(X[:, :9]), "d_model", "9"),
        (lambda: FeedForward(12)(X.double()), "dtype", "float64"),
        (lambda: EncoderBlock(12, 5), "n_heads: expected a divisor of d_model, 12", "got 5"),
        (lambda: DecoderBlock(12, 5), "n_heads: expected a divisor of d_model, 12", "got 5"),
        (lambda: EncoderBlock(12, 3, dropout=1.0), "dropout: expected a share", "got 1.0"),
        (lambda: EncoderBlock(12, 3, dropout=-0.1), "dropout: expected a share", "got -0.1"),
        (lambda: EncoderBlock(12, 3, dropout=math.nan), "dropout: expected a share", "nan"),
        (lambda: BLOCK(X[:, :9]), "12", "9"),
        (lambda: EncoderBlock(12, 3, pre_norm=False)(X[:, :9]), "12", "9"),
        (lambda: BLOCK(X, torch.ones(5, 4).bool()), "the keys", "got 4"),
        (lambda: BLOCK(X, torch.ones(5, 5)), "boolean", "float32"),
        (lambda: DECODER(X, MEMORY[:, :9]), "12", "9"),
        (lambda: DECODER(X, MEMORY, None, torch.ones(5, 5).bool()), "the keys", "got 5"),
        (lambda: DECODER(X, MEMORY, torch.ones(7, 7).bool()), "the queries|the keys", "got 7"),
        (lambda: Transformer(11, 13, 12, 5, 1), "n_heads", "got 5"),
        (lambda: Transformer(11, 13, 12, 3, 0), "n_layers", "0"),
        (lambda: noam_schedule(0, 512, 4000), "step: expected a step from 1 on", "got 0"),
        (lambda: noam_schedule(-2, 512, 4000), "step", "got -2"),
        (lambda: noam_schedule(math.nan, 512, 4000), "step", "got nan"),
        (lambda: noam_schedule(1, 0, 4000), "d_model", "0"),
        (lambda: noam_schedule(1, 512, 0), "warmup", "0"),
        (lambda: from_torch(nn.Linear(3, 3)), "nn.TransformerEncoderLayer", "got Linear"),
        (lambda: from_torch(nn.TransformerEncoderLayer(12, 3, bias=False)), "biases", "False"),
    ]
)


def test_no_argument_is_changed():
    x, memory, mask, seen = normal(5, 12), normal(7, 12), random_mask(5, 5), random_mask(5, 7)
    copies = [a.clone() for a in (x, memory, mask, seen)]
    layer_norm(x).add_(1)
    for pre_norm in (True, False):
        randomised(EncoderBlock(12, 3, pre_norm=pre_norm))(x, mask).add_(1)
        randomised(DecoderBlock(12, 3, pre_norm=pre_norm))(x, memory, mask, seen).add_(1)
    assert all(a.equal(b) for a, b in zip((x, memory, mask, seen), copies, strict=True))


# --- the checks ------------------------------------------------------------------------------

BLOCKS = ("transformer.EncoderBlock", "transformer.DecoderBlock")


@pytest.mark.parametrize("target", BLOCKS)
def test_no_masked_score_is_50_above_the_allowed(target, monkeypatch):
    """Also after softmax and renormalised, as a student's attention may do it."""
    tested = 0

    def attended(query, key, value, mask=None, *, scale=None):
        nonlocal tested
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if mask is not None:
            mask = mask.broadcast_to(scores.shape)
            assert mask.any(-1).all(), "every query has a key"
            allowed = scores.masked_fill(~mask, -math.inf).amax(-1)
            hidden = scores.masked_fill(mask, -math.inf).amax(-1)
            assert (hidden - allowed < 50).all()
            tested += 1
        return original(query, key, value, mask, scale=scale)

    original = module.scaled_dot_product_attention
    monkeypatch.setattr(module, "scaled_dot_product_attention", attended)
    for seed in range(6):
        for _, case, _ in draw(exercises()[target], seed):
            if case.kwargs.get("mask") is not None or case.kwargs.get("memory_mask") is not None:
                make, inputs = case.kwargs["make"], case.kwargs["inputs"]
                block = exercises()[target].reference(*make[0], **make[1]).double()
                state = {n: v for n, v in case.kwargs.items() if "." in n}
                block.load_state_dict(state)
                block(*(case.kwargs[n] for n in inputs))
    assert tested > 20


@pytest.mark.parametrize("target", BLOCKS)
def test_dropout_multiplies_by_0_or_by_one_number(target, monkeypatch):
    every = [case for _, case, _ in draw(exercises()[target], 0)]
    cases = [case for case in every if case.use is multiplied_in_training]
    assert len(cases) == (2 if target.endswith("EncoderBlock") else 3)
    for seed in range(10):
        monkeypatch.setattr("attncourse.checks.callers.blocks.SEED", seed)
        for case in cases:
            (factors,) = case.use(exercises()[target].reference, **case.kwargs).values()
            assert factors.tolist() == pytest.approx([0, 1 / 0.6], abs=1e-4)


@pytest.mark.parametrize("target", BLOCKS)
def test_dropouts_cost_does_not_depend_on_its_draw(target, monkeypatch):
    every = [case for _, case, _ in draw(exercises()[target], 0)]
    (case,) = [case for case in every if case.use is added_in_training]
    totals = []
    for seed in range(20):
        monkeypatch.setattr("attncourse.checks.callers.blocks.SEED", seed)
        numbers = case.use(exercises()[target].reference, **case.kwargs)
        totals += numbers.values()
    branches = 2 if target.endswith("EncoderBlock") else 3
    assert all(numbers.equal(totals[0]) for numbers in totals)
    assert len(totals[0]) == 2**branches
    # That one of the sums never comes up in 40 · 32 places:
    assert 2**branches * (1 - 0.4**branches) ** (40 * 32) < 1e-30


def test_callers_do_not_change_the_global_random_state():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    state = {n: p.detach() for n, p in LayerNorm(12).named_parameters()}
    call_module_in_training(LayerNorm, ((12,), {}), "", ("x",), x=X, **state)
    assert torch.rand(4).equal(expected)


@pytest.mark.parametrize("target", BLOCKS)
def test_pytorchs_own_layer_is_not_accepted(target):
    kind = getattr(nn, f"Transformer{target.split('.')[1].replace('Block', 'Layer')}")

    def answer(d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
        return kind(d_model, n_heads, d_ff or 4 * d_model, dropout, "gelu", norm_first=pre_norm)

    verdict = examine(target, answer, seed=0)
    assert not verdict.earned


def test_every_wrong_block_is_named_on_another_seed():
    """A sample: the rest is in test_diagnosis.py."""
    exercise = exercises()["transformer.EncoderBlock"]
    for mistake in exercise.mistakes[2:27:6]:
        assert parts_of(mistake.wrong)
        verdict = examine(exercise.target, mistake.wrong, seed=77)
        assert verdict.diagnosis.name == mistake.name


class RandomInEvaluation(nn.Dropout):
    """`F.dropout(x, p)` does not know of ``eval()``."""

    def forward(self, x):
        return F.dropout(x, self.p)


class BlockRandomInEvaluation(EncoderBlock):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.dropout = RandomInEvaluation(self.dropout.p)


def test_dropout_that_stays_on_costs_one_point():
    verdict = examine("transformer.EncoderBlock", BlockRandomInEvaluation, seed=1)
    assert [c.name for c in verdict.criteria if not c.passed] == ["no dropout in eval()"]
    assert verdict.possible - verdict.earned == 1
    assert verdict.diagnosis.name == "dropout stays on in eval()"


class CrossAttentionFirst(DecoderBlock):
    """Its norms are numbered as they are used."""

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.add(x, lambda x: self.cross_attention(x, memory, mask=memory_mask), self.norm_1)
        x = self.add(x, lambda x: self.self_attention(x, mask=mask), self.norm_2)
        return self.add(x, self.feed_forward, self.norm_3)


class FeedForwardBetween(DecoderBlock):
    """Its norms stay with their branches."""

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.add(x, lambda x: self.self_attention(x, mask=mask), self.norm_1)
        x = self.add(x, self.feed_forward, self.norm_3)
        return self.add(x, lambda x: self.cross_attention(x, memory, mask=memory_mask), self.norm_2)


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        (CrossAttentionFirst, "cross-attention, self-attention, feed-forward"),
        (FeedForwardBetween, "self-attention, feed-forward, cross-attention"),
    ],
)
def test_branches_are_named_in_the_order_written(answer, written):
    diagnosis = examine("transformer.DecoderBlock", answer, seed=5).diagnosis
    assert diagnosis.explanation == (
        f"You take the branches in the order {written}. "
        "It is self-attention, cross-attention, feed-forward."
    )
