"""Chapter 9: the package against PyTorch's modules and against loops, and other right answers."""

import copy
import math

import pytest
import torch
from einops import rearrange
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attncourse import multihead
from attncourse.checks import examine, exercises
from attncourse.checks.callers import module_of, parameters_made, shared_by_made
from attncourse.checks.judging import call_text
from attncourse.checks.trying.outcome import Unusable
from attncourse.checks.trying.trials import draw
from attncourse.multihead import (
    MultiHeadAttention,
    MultiHeadNaive,
    load_torch_weights,
    merge_heads,
    naive_to_batched,
    split_heads,
)
from attncourse.tasks.training import count_parameters
from helpers.random_arrays import normal, random_mask
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def divided(d, h):
    if d % h != 0:
        raise ValueError(f"{d} features, {h} heads")
    return d // h


def split_einops(x, n_heads):
    divided(x.shape[-1], n_heads)
    return rearrange(x, "... n (h e) -> ... h n e", h=n_heads)


def split_loops(x, n_heads):
    d_head = divided(x.shape[-1], n_heads)
    parts = [x[..., i * d_head : (i + 1) * d_head] for i in range(n_heads)]
    return torch.stack(parts, dim=-3)


def split_view_permute(x, n_heads):
    d_head = divided(x.size(-1), n_heads)
    x = x.contiguous().view(*x.shape[:-1], n_heads, d_head)
    axes = list(range(x.ndim))
    axes[-3], axes[-2] = axes[-2], axes[-3]
    return x.permute(axes).contiguous()


def split_by_index(x, n_heads):
    d_head = divided(x.shape[-1], n_heads)
    picks = torch.arange(n_heads * d_head).reshape(n_heads, d_head)
    return x[..., picks].transpose(-2, -3)


def split_by_products(x, n_heads):
    """Each head by a matrix that picks its features; in float64 inside."""
    picks = torch.eye(x.shape[-1]).double().split(divided(x.shape[-1], n_heads))
    return torch.stack([(x.double() @ pick.T).to(x.dtype) for pick in picks], dim=-3)


def merge_loops(x):
    return torch.cat([x[..., i, :, :] for i in range(x.shape[-3])], dim=-1)


def merge_permute_view(x):
    *batch, h, n, d_head = x.shape
    return x.transpose(-2, -3).contiguous().view(*batch, n, h * d_head)


def merge_by_place(x):
    *batch, h, n, d_head = x.shape
    out = x.new_zeros(*batch, n, h * d_head)
    for i in range(h):
        out[..., i * d_head : (i + 1) * d_head] = x[..., i, :, :]
    return out


def split_recursively(x, n_heads):
    if x.ndim > 2:
        return torch.stack([split_recursively(sequence, n_heads) for sequence in x])
    d_head = divided(x.shape[-1], n_heads)
    return x.T.reshape(n_heads, d_head, -1).permute(0, 2, 1)


def merge_recursively(x):
    if x.ndim > 3:
        return torch.stack([merge_recursively(sequence) for sequence in x])
    return torch.hstack([*x])


class HeadsByLoops(nn.Module):
    """One head after the other, from slices of the projections; −1e9 where masked."""

    def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
        super().__init__()
        self.d_head = divided(d_model, n_heads)
        self.h, self.kv = n_heads, n_kv_heads or n_heads
        for name, heads in (("W_o", self.h), ("W_v", self.kv), ("W_k", self.kv), ("W_q", self.h)):
            self.add_module(name, nn.Linear(d_model, heads * self.d_head, bias=bias))

    def slice_of(self, x, i):
        return x[..., i * self.d_head : (i + 1) * self.d_head]

    def map_of(self, i, query, key, mask):
        q = self.slice_of(self.W_q(query), i)
        k = self.slice_of(self.W_k(key), i // (self.h // self.kv))
        scores = q @ k.transpose(-1, -2) / self.d_head**0.5
        if mask is not None:
            head_mask = mask[..., i, :, :] if mask.dim() == 4 else mask
            scores = scores.masked_fill(head_mask == 0, -1e9)
        return torch.softmax(scores, dim=-1)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        values = self.W_v(key if value is None else value)
        outputs = [
            self.map_of(i, query, key, mask) @ self.slice_of(values, i // (self.h // self.kv))
            for i in range(self.h)
        ]
        return self.W_o(torch.cat(outputs, dim=-1))

    def weights(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        maps = [self.map_of(i, query, key, mask) for i in range(self.h)]
        return torch.stack(maps, dim=-3)


class HeadsByEinops(HeadsByLoops):
    """Groups of query heads on an axis of their own: nothing is repeated."""

    def maps(self, query, key, mask):
        q = rearrange(self.W_q(query), "... m (g r e) -> ... g r m e", g=self.kv, e=self.d_head)
        k = rearrange(self.W_k(key), "... n (g e) -> ... g n e", g=self.kv)
        scores = torch.einsum("...grme,...gne->...grmn", q, k) * self.d_head**-0.5
        if mask is not None and mask.ndim == 4:
            mask = rearrange(mask, "b (g r) m n -> b g r m n", g=self.kv)
        elif mask is not None and mask.ndim == 3:
            mask = mask[:, None, None]
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        v = rearrange(
            self.W_v(key if value is None else value), "... n (g e) -> ... g n e", g=self.kv
        )
        out = torch.einsum("...grmn,...gne->...grme", self.maps(query, key, mask), v)
        return self.W_o(rearrange(out, "... g r m e -> ... m (g r e)"))

    def weights(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        return self.maps(query, key, mask).flatten(-4, -3)


class HeadsOfTheLibrary(HeadsByLoops):
    """The library's scaled dot-product attention, which is allowed here."""

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q = split_loops(self.W_q(query), self.h)
        k, v = (split_loops(W(x), self.kv) for W, x in ((self.W_k, key), (self.W_v, value)))
        k, v = (x.repeat_interleave(self.h // self.kv, dim=-3) for x in (k, v))
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(1)
        return self.W_o(merge_loops(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


class HeadsAsSums(HeadsByLoops):
    """Each head straight to its share of the output; the maps renormalised after masking."""

    def map_of(self, i, query, key, mask):
        weights = super().map_of(i, query, key, None)
        if mask is None:
            return weights
        weights = weights * (mask[..., i, :, :] if mask.dim() == 4 else mask)
        return weights / weights.sum(-1, keepdim=True)

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        values = self.W_v(key if value is None else value)
        out = 0 if self.W_o.bias is None else self.W_o.bias
        for i in range(self.h):
            mixed = self.map_of(i, query, key, mask) @ self.slice_of(values, i * self.kv // self.h)
            out = out + mixed @ self.slice_of(self.W_o.weight, i).T
        return out


class HeadsInFloat64(nn.Module):
    """Keeps its maps from the last call, and a buffer; computes in float64 inside."""

    def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
        super().__init__()
        d_head = divided(d_model, n_heads)
        self.heads = (n_heads, n_heads if n_kv_heads is None else n_kv_heads)
        self.register_buffer("root", torch.tensor(float(d_head)).double().sqrt())
        self.W_q, self.W_o = (nn.Linear(d_model, d_model, bias) for _ in range(2))
        self.W_k, self.W_v = (nn.Linear(d_model, d_head * self.heads[1], bias) for _ in range(2))

    def forward(self, query, key=None, value=None, mask=None):
        key = query if key is None else key
        value = key if value is None else value
        h, kv = self.heads
        parts = ((self.W_q, query, h), (self.W_k, key, kv), (self.W_v, value, kv))
        q, k, v = (split_view_permute(W(x).double(), heads) for W, x, heads in parts)
        group = torch.arange(h) // (h // kv)
        scores = q @ k[..., group, :, :].mT / self.root
        if mask is not None:
            mask = mask[:, None] if mask.ndim == 3 else mask
            scores = torch.where(mask, scores, -torch.inf)
        exp = (scores - scores.amax(-1, keepdim=True)).exp()
        self.maps = (exp / exp.sum(-1, keepdim=True)).to(query.dtype)
        mixed = (self.maps.double() @ v[..., group, :, :]).to(query.dtype)
        return self.W_o(merge_permute_view(mixed))

    def weights(self, query, key=None, value=None, mask=None):
        self.forward(query, key, value, mask)
        return self.maps


def sizes_of(naive):
    return naive.W_o.in_features, len(naive.heads), naive.W_o.bias is not None


def convert_by_copy(naive):
    d_model, h, bias = sizes_of(naive)
    made = MultiHeadAttention(d_model, h, bias=bias)
    with torch.no_grad():
        for name in ("W_q", "W_k", "W_v"):
            layers = [getattr(head, name) for head in naive.heads]
            getattr(made, name).weight.copy_(torch.cat([layer.weight for layer in layers]))
            if bias:
                getattr(made, name).bias.copy_(torch.cat([layer.bias for layer in layers]))
        made.W_o.load_state_dict(naive.W_o.state_dict())
    return made


def convert_by_loops(naive):
    d_model, h, bias = sizes_of(naive)
    made, d_head = MultiHeadAttention(d_model, h, bias=bias), d_model // h
    for i, head in enumerate(naive.heads):
        rows = slice(i * d_head, (i + 1) * d_head)
        for name in ("W_q", "W_k", "W_v"):
            layer, head_layer = getattr(made, name), getattr(head, name)
            layer.weight.data[rows] = head_layer.weight.data
            if bias:
                layer.bias.data[rows] = head_layer.bias.data
    made.W_o = copy.deepcopy(naive.W_o)
    return made


def convert_by_parameters(naive):
    made = MultiHeadAttention(*sizes_of(naive)[:2], bias=sizes_of(naive)[2])
    for name in ("W_q", "W_k", "W_v"):
        layer = getattr(made, name)
        columns = [getattr(head, name).weight.detach().T for head in naive.heads]
        layer.weight = nn.Parameter(torch.hstack(columns).T.contiguous())
        if layer.bias is not None:
            biases = [getattr(head, name).bias.detach() for head in naive.heads]
            layer.bias = nn.Parameter(torch.hstack(biases))
    made.W_o.weight = nn.Parameter(naive.W_o.weight.detach().clone())
    if made.W_o.bias is not None:
        made.W_o.bias = nn.Parameter(naive.W_o.bias.detach().clone())
    return made


def convert_by_einops(naive):
    made = MultiHeadAttention(*sizes_of(naive)[:2], bias=sizes_of(naive)[2])
    naive_state = naive.state_dict()
    state = {name: naive_state[name] for name in naive_state if name.startswith("W_o")}
    for name in made.state_dict().keys() - state.keys():
        parts = [naive_state[f"heads.{i}.{name}"] for i in range(len(naive.heads))]
        state[name] = rearrange(parts, "h out ... -> (h out) ...")
    made.load_state_dict(state)
    return made


def convert_by_outputs(naive):
    """Reads the weights off the heads' outputs for unit vectors; in float64 inside."""
    d_model, h, bias = sizes_of(naive)
    made = MultiHeadAttention(d_model, h, bias=bias)
    unit, zero = torch.eye(d_model).double(), torch.zeros(1, d_model).double()
    for name in ("W_q", "W_k", "W_v", "W_o"):
        layers = [naive.W_o] if name == "W_o" else [getattr(head, name) for head in naive.heads]
        layers = [copy.deepcopy(layer).double() for layer in layers]
        at_zero = torch.cat([layer(zero) for layer in layers], dim=-1)  # (1, d_model)
        at_unit = torch.cat([layer(unit) for layer in layers], dim=-1)  # (d_model, d_model)
        layer = getattr(made, name)
        layer.weight.data = (at_unit - at_zero).T.float().detach()
        if bias:
            layer.bias.data = at_zero[0].float().detach()
    return made


RIGHT = {
    "multihead.split_heads": [
        split_einops,
        split_loops,
        split_view_permute,
        split_by_index,
        split_by_products,
        split_recursively,
    ],
    "multihead.merge_heads": [
        merge_loops,
        merge_permute_view,
        merge_by_place,
        merge_recursively,
        lambda x: rearrange(x, "... h n e -> ... n (h e)"),
        lambda x: x.movedim(-3, -2).flatten(start_dim=-2),
        lambda x: torch.cat(x.double().unbind(-3), dim=-1).to(x.dtype),
    ],
    "multihead.MultiHeadAttention": [
        HeadsByLoops,
        HeadsByEinops,
        HeadsOfTheLibrary,
        HeadsAsSums,
        HeadsInFloat64,
    ],
    "multihead.naive_to_batched": [
        convert_by_copy,
        convert_by_loops,
        convert_by_parameters,
        convert_by_einops,
        convert_by_outputs,
    ],
}

# --- the package -----------------------------------------------------------------------------


def randomised(module, dtype=torch.float64, seed=0):
    """The module with weights of order one, d_model of them in a sum, and biases of order one."""
    for i, parameter in enumerate(module.to(dtype).parameters()):
        scale = parameter.shape[-1] ** -0.5 if parameter.ndim == 2 else 1
        parameter.data = scale * normal(*parameter.shape, dtype=dtype, seed=seed + i)
    return module


def assert_close(a, b, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


def test_two_heads_by_hand():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert split_heads(x, 2).tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    assert merge_heads(split_heads(x, 2)).tolist() == x.tolist()
    # Scores 0 everywhere: each head averages its own feature, and W_o adds the second to the first.
    attention = MultiHeadAttention(2, 2, bias=False)
    state = {"W_q.weight": torch.zeros(2, 2), "W_k.weight": torch.eye(2)}
    state |= {"W_v.weight": torch.eye(2), "W_o.weight": torch.tensor([[1.0, 1.0], [0.0, 1.0]])}
    attention.load_state_dict(state)
    assert attention(torch.tensor([[2.0, 10.0], [4.0, 30.0]])).tolist() == [[23, 20], [23, 20]]


@given(
    n=st.integers(1, 7),
    h=st.integers(1, 5),
    d_head=st.integers(1, 5),
    batch=st.sampled_from([(), (2,), (5, 3)]),
)
def test_split_and_merge_are_inverse(n, h, d_head, batch):
    x = normal(*batch, n, h * d_head)
    heads = split_heads(x, h)
    assert heads.shape == (*batch, h, n, d_head)
    assert heads.equal(rearrange(x, "... n (h e) -> ... h n e", h=h))
    assert merge_heads(heads).equal(x)
    back = normal(*batch, h, n, d_head)
    assert split_heads(merge_heads(back), h).equal(back)


def test_split_heads_returns_a_view():
    x = normal(3, 5, 6)
    assert split_heads(x, 3).data_ptr() == x.data_ptr()
    assert split_heads(x.mT, 5).data_ptr() == x.data_ptr()


@settings(deadline=None, max_examples=30)
@given(
    m=st.integers(1, 7),
    n=st.integers(1, 7),
    h=st.sampled_from([1, 2, 3, 6]),
    b=st.integers(1, 3),
    bias=st.booleans(),
)
def test_multihead_attention_agrees_with_torch(m, n, h, b, bias):
    library_layer = nn.MultiheadAttention(12, h, bias=bias, batch_first=True)
    query, key, value = normal(b, m, 12), normal(b, n, 12, seed=1), normal(b, n, 12, seed=2)
    mask = normal(b, h, m, n) > 0
    mask[..., 0] = True
    for dtype, atol in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        library_layer = randomised(library_layer, dtype)
        layer = load_torch_weights(library_layer)
        q, k, v = (x.to(dtype) for x in (query, key, value))
        options = {"need_weights": True, "average_attn_weights": False}
        for args, inputs in (((q, q, q), (q,)), ((q, k, k), (q, k)), ((q, k, v), (q, k, v))):
            out, maps = library_layer(*args, **options)
            assert_close(layer(*inputs), out, atol)
            assert_close(layer.weights(*inputs), maps, atol)
        out, maps = library_layer(q, k, v, attn_mask=~mask.flatten(0, 1), **options)
        assert_close(layer(q, k, v, mask), out, atol)
        assert_close(layer.weights(q, k, v, mask), maps, atol)
        assert_close(
            layer(q, k, v, mask[0, 0]), library_layer(q, k, v, attn_mask=~mask[0, 0])[0], atol
        )
        assert layer(q).dtype == dtype


def test_it_agrees_with_torch_without_a_batch():
    library_layer = randomised(nn.MultiheadAttention(12, 3))
    query, key = normal(5, 12), normal(7, 12)
    assert_close(load_torch_weights(library_layer)(query, key), library_layer(query, key, key)[0])


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 7), h=st.sampled_from([1, 2, 3, 6]), bias=st.booleans())
def test_naive_and_batched_heads_agree(n, h, bias):
    for dtype, atol in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        naive = randomised(MultiHeadNaive(6, h, bias=bias), dtype)
        batched = naive_to_batched(naive)
        assert all(p.dtype == dtype for p in batched.parameters())
        for shape in ((n, 6), (h, n, 6), (2, 3, n, 6)):
            x = normal(*shape, dtype=dtype)
            assert_close(batched(x), naive(x), atol)
            assert_close(batched.weights(x), naive.weights(x), atol)
        x = normal(3, n, 6, dtype=dtype)
        for mask in (normal(n, n) > 0, normal(3, n, n) > 0):
            mask[..., 0] = True
            assert_close(batched(x, mask=mask), naive(x, mask), atol)
            assert_close(batched.weights(x, mask=mask), naive.weights(x, mask), atol)


def test_the_batched_module_has_weights_of_its_own():
    naive = MultiHeadNaive(6, 3)
    x, before = normal(5, 6).float(), naive.state_dict()
    before = {name: w.clone() for name, w in before.items()}
    batched = naive_to_batched(naive)
    assert all(p.requires_grad and p.is_leaf for p in batched.parameters())
    batched(x).sum().backward()
    torch.optim.SGD(batched.parameters(), lr=1.0).step()
    assert all(w.equal(before[name]) for name, w in naive.state_dict().items())
    library_layer = nn.MultiheadAttention(6, 3)
    layer, original = load_torch_weights(library_layer), library_layer.in_proj_weight.clone()
    layer.W_q.weight.data.zero_()
    assert library_layer.in_proj_weight.equal(original)


@pytest.mark.parametrize("kv", [1, 2, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_grouped_heads_are_repeated_heads(kv, bias):
    grouped = randomised(MultiHeadAttention(24, 6, kv, bias=bias))
    full = MultiHeadAttention(24, 6, bias=bias).double()
    state = grouped.state_dict()
    for name in state:
        if name[:3] in ("W_k", "W_v"):
            by_head = state[name].unflatten(0, (kv, 4))
            state[name] = torch.cat([by_head[i * kv // 6] for i in range(6)])
    full.load_state_dict(state)
    query, key, mask = normal(2, 5, 24), normal(2, 7, 24), random_mask(2, 6, 5, 7)
    assert_close(grouped(query, key, mask=mask), full(query, key, mask=mask))
    assert_close(grouped.weights(query, key), full.weights(query, key))
    q, k, v = (split_heads(W(x), h) for W, x, h in (
        (grouped.W_q, query, 6), (grouped.W_k, key, kv), (grouped.W_v, key, kv)))  # fmt: skip
    out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert_close(grouped(query, key), grouped.W_o(merge_heads(out)))


def test_grouped_heads_save_parameters():
    assert count_parameters(MultiHeadAttention(64, 8, 8)) == count_parameters(
        MultiHeadAttention(64, 8)
    )
    assert count_parameters(MultiHeadAttention(64, 8, 2, bias=False)) == 2 * 64 * 64 + 2 * 64 * 16
    assert count_parameters(MultiHeadAttention(64, 8, 1)) == 2 * 65 * 64 + 2 * 65 * 8


@pytest.mark.parametrize("h", [1, 2, 4, 8, 64])
def test_the_number_of_parameters_does_not_depend_on_h(h):
    assert count_parameters(MultiHeadAttention(64, h)) == 4 * 64 * 64 + 4 * 64
    assert count_parameters(MultiHeadNaive(64, h)) == 4 * 64 * 64 + 4 * 64


def test_count_parameters():
    layer = nn.Linear(3, 5)
    assert count_parameters(nn.Sequential(layer, nn.ReLU(), layer)) == 20
    layer.bias.requires_grad_(False)
    assert count_parameters(layer) == 15
    assert count_parameters(nn.BatchNorm1d(7)) == 14  # buffers are not learned


# --- masks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [2, 3])
def test_a_mask_for_each_sequence_holds_for_every_head(b):
    """Also with as many sequences as heads, where the axes could be mistaken for each other."""
    attention, x, mask = (
        randomised(MultiHeadAttention(12, 3)),
        normal(b, 5, 12),
        random_mask(b, 5, 5),
    )
    out, maps = attention(x, mask=mask), attention.weights(x, mask=mask)
    for i in range(b):
        assert_close(out[i], attention(x[i], mask=mask[i]))
        assert (maps[i][:, ~mask[i]] == 0).all()
        assert (maps[i][:, mask[i]] != 0).all()


@pytest.mark.parametrize("b", [2, 3])
def test_a_mask_for_each_head(b):
    attention, x, mask = (
        randomised(MultiHeadAttention(12, 3)),
        normal(b, 5, 12),
        random_mask(b, 3, 5, 5),
    )
    out, maps = attention(x, mask=mask), attention.weights(x, mask=mask)
    for i in range(b):
        assert_close(out[i], attention(x[i], mask=mask[i]))  # (h, m, n) for a single sequence
        for head in range(3):
            expected = attention.weights(x[i], mask=mask[i, head])[head]
            assert_close(maps[i, head], expected)
    assert_close(attention(x, mask=mask[:, :1]), attention(x, mask=mask[:, 0]))
    assert_close(attention(x, mask=mask[:1, :1]), attention(x, mask=mask[0, 0]))


def test_masks_behind_two_batch_axes():
    attention, x = randomised(MultiHeadAttention(12, 3)), normal(2, 3, 5, 12)
    for shape in ((5, 5), (3, 5, 5), (2, 3, 5, 5), (2, 1, 5, 5)):
        mask = random_mask(*shape)
        every, out = mask.expand(2, 3, 5, 5), attention(x, mask=mask)
        assert_close(out[1, 2], attention(x[1, 2], mask=every[1, 2]))
    mask = random_mask(2, 3, 3, 5, 5)
    assert_close(attention(x, mask=mask)[1, 2], attention(x[1, 2], mask=mask[1, 2]))


def test_one_sequence_of_keys_for_a_batch_of_queries():
    attention, query, key = randomised(MultiHeadAttention(12, 3)), normal(3, 5, 12), normal(7, 12)
    assert_close(attention(query, key)[2], attention(query[2], key))
    mask = random_mask(3, 5, 7)
    assert_close(attention(query, key, mask=mask)[2], attention(query[2], key, mask=mask[2]))
    assert_close(attention(query[0], key.expand(3, 7, 12), mask=mask)[2], attention(query[0], key,
          mask=mask[2]))  # fmt: skip


def test_a_keyless_query_gets_the_output_bias():
    attention, x = randomised(MultiHeadAttention(12, 3)), normal(3, 12)
    mask = torch.tensor([[True, True, False], [False, False, False], [False, True, True]])
    assert_close(attention(x, mask=mask)[1], attention.W_o.bias.detach())
    assert attention.weights(x, mask=mask)[:, 1].eq(0).all()


# --- properties ------------------------------------------------------------------------------


def test_the_output_is_a_sum_over_the_heads():
    attention, x = randomised(MultiHeadAttention(12, 3)), normal(7, 12)
    maps, total = attention.weights(x), attention.W_o.bias
    for i in range(3):
        columns = slice(4 * i, 4 * i + 4)
        total = total + maps[i] @ attention.W_v(x)[:, columns] @ attention.W_o.weight[:, columns].T
    assert_close(attention(x), total)


def test_rows_of_maps_sum_to_1_and_the_order_is_free():
    attention, x, order = randomised(MultiHeadAttention(12, 3)), normal(2, 7, 12), torch.randperm(7)
    maps = attention.weights(x)
    assert (maps >= 0).all()
    assert_close(maps.sum(-1), torch.ones(2, 3, 7, dtype=torch.float64))
    assert_close(attention(x[:, order]), attention(x)[:, order])
    assert_close(attention(x, x[:, order]), attention(x))


def test_value_defaults_to_key_and_key_to_query():
    attention, query = randomised(MultiHeadAttention(12, 3)), normal(5, 12)
    key, value = normal(5, 12, seed=1), normal(5, 12, seed=2)
    assert attention(query).equal(attention(query, query, query))
    assert attention(query, key).equal(attention(query, key, key))
    assert attention(query, value=value).equal(attention(query, query, value))
    assert not torch.allclose(attention(query, key), attention(query, key, value))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    x = normal(3, 5, 12, dtype=dtype)
    assert split_heads(x, 3).dtype == merge_heads(x).dtype == dtype
    for module in (MultiHeadAttention(12, 3, 1), MultiHeadNaive(12, 3)):
        module = module.to(dtype)
        assert module(x).dtype == module.weights(x).dtype == dtype


def test_gradients_pass_gradcheck():
    attention = randomised(MultiHeadAttention(4, 2, 1))
    query, key = normal(3, 4).requires_grad_(), normal(5, 4).requires_grad_()
    mask = random_mask(2, 3, 5)
    assert torch.autograd.gradcheck(lambda q, k: attention(q, k, mask=mask), (query, key))


def test_nan_appears_in_the_result_or_is_refused():
    attention, x = randomised(MultiHeadAttention(12, 3)), normal(5, 12)
    x[4, 0] = torch.nan
    assert attention(x).isnan().all()
    with pytest.raises(ValueError, match="the mask hides NaN"):
        attention(x, mask=random_mask(5, 5))
    assert attention(normal(5, 12), normal(5, 12), x).isnan().all()


X = torch.ones(5, 12)
MASK = torch.ones(5, 5, dtype=torch.bool)
HEADS, NAIVE = MultiHeadAttention(12, 3), MultiHeadNaive(12, 3)


test_bad_input_is_refused = refused(
    [
        (lambda: split_heads(X, 5), "n_heads: expected a divisor of the width of x, 12", "got 5"),
        (lambda: split_heads(X, 24), "expected a divisor", "got 24"),
        (lambda: split_heads(X, 0), "n_heads: expected a whole number of at least 1", "got 0"),
        (lambda: split_heads(X, 3.0), "n_heads: expected a whole number", "3.0"),
        (lambda: split_heads(X[0], 3), r"x: expected shape \(\.\.\., n, d\)", r"\(12,\)"),
        (lambda: split_heads(X.long(), 3), "floating-point tensor", "int64"),
        (lambda: split_heads(X.numpy(), 3), "x: expected a torch tensor", "ndarray"),
        (lambda: merge_heads(X), r"x: expected shape \(\.\.\., h, n, d_head\)", r"\(5, 12\)"),
        (lambda: merge_heads(X[None, :0]), "at least one entry", r"\(1, 0, 12\)"),
        (lambda: MultiHeadAttention(12, 5), "n_heads: expected a divisor of d_model, 12", "got 5"),
        (lambda: MultiHeadNaive(12, 5), "n_heads: expected a divisor of d_model, 12", "got 5"),
        (lambda: MultiHeadAttention(12, -3), "n_heads: expected a whole number", "-3"),
        (lambda: MultiHeadAttention(12.0, 3), "d_model: expected a whole number", "12.0"),
        (
            lambda: MultiHeadAttention(12, 6, 4),
            "n_kv_heads: expected a divisor of n_heads, 6",
            "got 4",
        ),
        (lambda: MultiHeadAttention(12, 3, 6), "expected a divisor of n_heads, 3", "got 6"),
        (lambda: MultiHeadAttention(12, 3, 0), "n_kv_heads: expected a whole number", "got 0"),
        (lambda: HEADS(X[:, :9]), "query: expected d_model = 12 features", r"\(5, 9\)"),
        (lambda: HEADS(X, X[:, :9]), "key: expected d_model = 12 features", r"\(5, 9\)"),
        (lambda: HEADS(X, X, X[:, :9]), "value: expected d_model = 12 features", r"\(5, 9\)"),
        (lambda: HEADS(X, X[:4], X), "one value for each key", r"\(4, 12\).*\(5, 12\)"),
        (lambda: HEADS(X.double()), "one dtype", "query of torch.float64"),
        (
            lambda: HEADS(X.expand(2, 5, 12), X.expand(3, 5, 12)),
            "batch axes that broadcast",
            r"query of shape \(2, 5, 12\), key of shape \(3, 5, 12\)",
        ),
        (lambda: HEADS(X, mask=MASK[:4]), r"along axis -2 \(the queries\)", "got 4"),
        (lambda: HEADS(X, mask=MASK[:, :4]), r"along axis -1 \(the keys\)", "got 4"),
        (lambda: HEADS(X, mask=MASK.float()), "boolean tensor", "torch.float32"),
        (lambda: HEADS(X, mask=MASK.tolist()), "boolean tensor", "list"),
        (
            lambda: HEADS(X.expand(2, 5, 12), mask=MASK.expand(3, 5, 5)),
            r"batch axes that broadcast with those of the scores, \(2,\)",
            r"\(3, 5, 5\)",
        ),
        (
            lambda: HEADS(X.expand(2, 5, 12), mask=MASK.expand(2, 2, 5, 5)),
            r"expected 1 or 3 along axis -3 \(the heads\)",
            r"got 2 in a mask of .*\(2, 2, 5, 5\)",
        ),
        (
            lambda: HEADS.weights(X.expand(2, 5, 12), mask=MASK.expand(5, 3, 5, 5)),
            "batch axes that broadcast",
            r"\(5, 3, 5, 5\)",
        ),
        (
            lambda: NAIVE(X, MASK.expand(3, 5, 5)),
            "one mask for all heads, at most 2 axes",
            r"got shape \(3, 5, 5\)",
        ),
        (lambda: NAIVE.weights(X, MASK.expand(3, 5, 5)), "one mask for all heads", "3, 5, 5"),
        (lambda: NAIVE(X[:, :9]), "d_model = 12 features", r"\(5, 9\)"),
        (lambda: count_parameters(3), "module: expected an nn.Module", "got int"),
        (lambda: naive_to_batched(nn.Linear(3, 3)), "expected a MultiHeadNaive", "got Linear"),
        (lambda: load_torch_weights(NAIVE), "an nn.MultiheadAttention", "got MultiHeadNaive"),
        (
            lambda: load_torch_weights(nn.MultiheadAttention(12, 3, kdim=7)),
            "kdim = vdim = embed_dim = 12",
            "kdim = 7 and vdim = 12",
        ),
        (lambda: load_torch_weights(nn.MultiheadAttention(12, 3, vdim=7)), "vdim", "vdim = 7"),
        (
            lambda: load_torch_weights(nn.MultiheadAttention(12, 3, add_bias_kv=True)),
            "add_bias_kv=False",
            "bias_k and bias_v",
        ),
        (
            lambda: load_torch_weights(nn.MultiheadAttention(12, 3, add_zero_attn=True)),
            "add_zero_attn=False",
            "adds a zero key",
        ),
    ]
)


def test_no_argument_is_changed():
    attention, x, mask = (
        randomised(MultiHeadAttention(12, 3)),
        normal(3, 5, 12),
        random_mask(3, 5, 5),
    )
    originals = x.clone(), mask.clone()
    split_heads(x, 3), merge_heads(x)
    attention(x, mask=mask).add_(1)
    attention.weights(x, mask=mask).add_(1)
    assert x.equal(originals[0])
    assert mask.equal(originals[1])


# --- the checks ------------------------------------------------------------------------------

TARGET = "multihead.MultiHeadAttention"


@pytest.mark.parametrize("seed", range(12))
def test_no_masked_score_is_50_above_the_allowed(seed):
    tested = 0
    for _, case, _ in draw(exercises()[TARGET], seed):
        kwargs = case.kwargs
        if kwargs.get("mask") is None:
            continue
        (d, h), options = kwargs["make"]
        attention = MultiHeadAttention(d, h, **options).double()
        state = {name: w for name, w in kwargs.items() if name.startswith("W_")}
        attention.load_state_dict(state)
        q, k, _ = attention.views(kwargs["query"], kwargs["key"], kwargs["value"])
        scores = q @ k.mT / math.sqrt(d / h)
        mask = multihead.mask_over_heads(kwargs["mask"], q, k).broadcast_to(scores.shape)
        assert mask.any(-1).all(), "every query has a key"
        allowed = scores.masked_fill(~mask, -math.inf).amax(-1)
        hidden = scores.masked_fill(mask, -math.inf).amax(-1)
        assert (hidden - allowed < 50).all()
        tested += 1
    assert tested >= 11


def by_library(d_model, n_heads, n_kv_heads=None, bias=True):
    class Wrapped(HeadsByLoops):
        def forward(self, query, key=None, value=None, mask=None):
            layer = nn.MultiheadAttention(d_model, n_heads, bias=bias, dtype=query.dtype)
            layer.train(self.training)
            key = query if key is None else key
            return layer(query, key, key if value is None else value)[0]

    return Wrapped(d_model, n_heads, n_kv_heads, bias)


def by_library_in_evaluation(*args, **options):
    """There, and without gradients, PyTorch's module has a faster way."""

    class Evaluated(type(by_library(*args, **options))):
        def forward(self, *inputs):
            with torch.no_grad():
                return super().forward(*inputs)

    return Evaluated(*args, **options).eval()


@pytest.mark.parametrize("answer", [by_library, by_library_in_evaluation])
def test_calling_the_librarys_function_is_caught(answer):
    verdict = examine(TARGET, answer, seed=0)
    message = "called multi_head_attention_forward, which this exercise asks you to build"
    assert message in str(verdict)
    failed = {c.name for c in verdict.criteria if not c.passed}
    assert "gradients reach query, key and every weight" in failed
    assert "batches" in failed


def test_right_weights_earn_points_with_a_wrong_forward(monkeypatch):
    """In the notebook the module is the student's own, and may be wrong."""

    class Unwritten(MultiHeadAttention):
        def forward(self, *args, **options):
            raise NotImplementedError

    monkeypatch.setattr(f"{__name__}.MultiHeadAttention", Unwritten)
    verdict = examine("multihead.naive_to_batched", convert_by_copy, seed=0)
    failed = [c.name for c in verdict.criteria if not c.passed]
    assert failed == ["the module returns what naive returns"]
    assert verdict.possible - verdict.earned == 2


def test_layers_are_built_from_tensor_names():
    naive = MultiHeadNaive(6, 3)
    state = {name: w.clone() for name, w in naive.state_dict().items()}
    built = module_of(state)
    assert built.state_dict().keys() == state.keys()
    assert isinstance(built.heads, nn.ModuleList)
    x = torch.randn(5, 6)
    assert built.heads[2].W_k(x).equal(F.linear(x, state["heads.2.W_k.weight"],
                                                state["heads.2.W_k.bias"]))  # fmt: skip
    assert built.W_o.weight.data_ptr() == state["W_o.weight"].data_ptr()
    assert shared_by_made(lambda module: module, **state) == list(state)
    assert shared_by_made(copy.deepcopy, **state) == []
    with pytest.raises(Unusable, match=r"no parameter W_q.weight; it has heads.0.W_q.weight"):
        parameters_made(lambda module: module, ("W_q.weight",), **state)
    with pytest.raises(Unusable, match=r"W_o.weight of the module you return holds other numbers"):
        parameters_made(lambda module: MultiHeadNaive(6, 3), ("W_o.weight",), **state)
    with pytest.raises(Unusable, match="returned OrderedDict, which is not"):
        parameters_made(lambda module: module.state_dict(), ("W_o.weight",), **state)


def test_an_examples_call_reads_like_the_modules_call():
    texts = [call_text(exercises()[TARGET], case) for _, case, _ in draw(exercises()[TARGET], 0)]
    assert texts[0].startswith("MultiHeadAttention(2, 2, bias=False)(query) (each head has one")
    assert any(t.startswith("MultiHeadAttention(8, 2)(query, key, None, mask)") for t in texts)
    assert any(t.startswith("MultiHeadAttention(16, 4, n_kv_heads=2)(query)") for t in texts)
    assert "MultiHeadAttention(7, 2)" in texts
    convert = exercises()["multihead.naive_to_batched"]
    first = call_text(convert, draw(convert, 0)[0][1])
    assert first.startswith("naive_to_batched(naive), naive = MultiHeadNaive(2, 2, bias=False)")
    assert "heads.1.W_v.weight =\n    [[5. 6.]]" in first
