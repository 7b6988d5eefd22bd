"""Chapter 5: the package against PyTorch itself, and other right answers to its exercises."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attncourse.checks import examine, exercises
from attncourse.checks.judging import call_text
from attncourse.checks.trying.trials import draw
from attncourse.kqv import (
    AttentionHead,
    attention_scores,
    attention_weights,
    project,
    scaled_dot_product_attention,
    softmax_over_keys,
)
from helpers.random_arrays import normal
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def project_einops(x, weight):
    from einops import einsum

    return einsum(x, weight, "... i, i o -> ... o")


def project_columns(x, weight):
    return (weight.mT @ x.mT).mT


def project_loops(x, weight):
    columns = [
        sum(x[..., a] * weight[a, b] for a in range(len(weight))) for b in range(weight.shape[1])
    ]
    return torch.stack(columns, dim=-1)


def scores_loops(query, key):
    rows = [[(query[..., i, :] * key[..., j, :]).sum(-1) for j in range(key.shape[-2])]
            for i in range(query.shape[-2])]  # fmt: skip
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def scores_by_features(query, key):
    return sum(query[..., :, None, a] * key[..., None, :, a] for a in range(query.shape[-1]))


def scores_broadcast(query, key):
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(dim=-1)


def attention_big_negative(query, key, value, mask=None, *, scale=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)) if scale is None else (
        query @ key.transpose(-2, -1) * scale)  # fmt: skip
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return F.softmax(scores, dim=-1) @ value


def attention_einsum_float64(query, key, value, mask=None, *, scale=None):
    dtype = query.dtype
    q, k, v = query.double(), key.double(), value.double()
    if scale is None:
        scale = q.shape[-1] ** -0.5
    scores = torch.einsum("...md,...nd->...mn", q, k) * scale
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return torch.einsum("...mn,...nv->...mv", e / (e.sum(-1, keepdim=True) + 1e-12), v).to(dtype)


def attention_additive(query, key, value, mask=None, *, scale=None):
    scale = 1 / query.shape[-1] ** 0.5 if scale is None else scale
    scores = (query * scale) @ key.mT
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -torch.inf)
    return torch.exp(torch.log_softmax(scores, dim=-1)) @ value


def attention_loops(query, key, value, mask=None, *, scale=None):
    batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    m, n = query.shape[-2], key.shape[-2]
    if mask is not None:
        mask = mask.broadcast_to(*batch, m, n)
    if batch:
        masks = mask if mask is not None else [None] * batch[0]
        return torch.stack([
            attention_loops(q, k, v, mask_of_sequence, scale=scale)
            for q, k, v, mask_of_sequence in zip(query, key, value, masks, strict=True)
        ])  # fmt: skip
    scale = query.shape[1] ** -0.5 if scale is None else scale
    rows = []
    for i in range(m):
        allowed = [j for j in range(n) if mask is None or mask[i, j]]
        scores = torch.stack([query[i] @ key[j] * scale for j in allowed])
        weights = (scores - scores.max()).exp()
        rows.append(
            sum(w * value[j] for w, j in zip(weights, allowed, strict=True)) / weights.sum()
        )
    return torch.stack(rows)


class HeadByFunctions(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        d_v = d_k if d_v is None else d_v
        for name, size in (("W_v", d_v), ("W_k", d_k), ("W_q", d_k)):
            self.add_module(name, nn.Linear(d_model, size, bias=bias))

    def forward(self, x, mask=None):
        return self.weights(x, mask) @ self.W_v(x)

    def weights(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).transpose(-1, -2)
        scores = scores / self.W_q.out_features**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return torch.softmax(scores, dim=-1)


class HeadKeepingItsMap(nn.Module):
    """Keeps a buffer, and the map of its last call."""

    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.register_buffer("root", torch.tensor(float(d_k)).sqrt())
        self.W_q = nn.Linear(d_model, d_k, bias)
        self.W_k = nn.Linear(d_model, d_k, bias)
        self.W_v = nn.Linear(d_model, d_v or d_k, bias)

    def forward(self, x, mask=None):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = torch.einsum("...id,...jd->...ij", q, k) / self.root
        if mask is not None:
            scores = torch.where(mask, scores, float("-inf"))
        self.map = scores.softmax(-1)
        return self.map @ v

    def weights(self, x, mask=None):
        self.forward(x, mask)
        return self.map


class HeadOfTheLibrary(HeadByFunctions):
    def forward(self, x, mask=None):
        return F.scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), attn_mask=mask)


class HeadOfParts(HeadByFunctions):
    """Each token in a loop of its own, weights by the matrices themselves."""

    def weights(self, x, mask=None):
        q, k = F.linear(x, self.W_q.weight, self.W_q.bias), self.W_k(x)
        rows = [(q[..., i, None, :] * k).sum(-1) for i in range(x.shape[-2])]
        scores = torch.stack(rows, dim=-2) * q.shape[-1] ** -0.5
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights * mask
            weights = weights / weights.sum(-1, keepdim=True)
        return weights


RIGHT = {
    "kqv.project": [
        project_einops,
        project_columns,
        project_loops,
        lambda x, weight: F.linear(x, weight.T),
        lambda x, weight: torch.tensordot(x, weight, dims=1),
        lambda x, weight: (x.double() @ weight.double()).to(x.dtype),
    ],
    "kqv.attention_scores": [
        scores_loops,
        scores_broadcast,
        lambda query, key: torch.einsum("...md,...nd->...mn", query, key),
        lambda query, key: query.matmul(key.transpose(-2, -1)),
        lambda query, key: (key @ query.mT).mT,
        scores_by_features,
        lambda query, key: (query.double() @ key.double().mT).to(query.dtype),
    ],
    "kqv.scaled_dot_product_attention": [
        attention_big_negative,
        attention_einsum_float64,
        attention_additive,
        attention_loops,
    ],
    "kqv.AttentionHead": [HeadByFunctions, HeadKeepingItsMap, HeadOfTheLibrary, HeadOfParts],
}

# --- the package -----------------------------------------------------------------------------

SIZES = {"m": st.integers(1, 7), "n": st.integers(1, 7), "d": st.integers(1, 5)}


def randomised(head, seed=0):
    """The head in float64, with weights and biases of order one."""
    for i, parameter in enumerate(head.double().parameters()):
        parameter.data = normal(*parameter.shape, seed=seed + i)
    return head


def test_attention_by_hand():
    x, W = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 0.0, 1.0], [1.0, 5.0, 1.0]])
    assert project(x, W).tolist() == [[5, 10, 3]]
    query, key = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 1.0], [0.0, 1.0]])
    assert attention_scores(query, key).tolist() == [[5, 2]]
    weights = attention_weights(query, key, scale=math.log(2))  # 2**5 : 2**2 = 8 : 1
    torch.testing.assert_close(weights, torch.tensor([[8 / 9, 1 / 9]]))
    value = torch.tensor([[9.0, 0.0, 1.0], [0.0, 9.0, 1.0]])
    out = scaled_dot_product_attention(query, key, value, scale=math.log(2))
    torch.testing.assert_close(out, torch.tensor([[8.0, 1.0, 1.0]]))


@settings(deadline=None)
@given(**SIZES, d_v=st.integers(1, 5), batch=st.sampled_from([(), (2,), (3, 2)]))
def test_attention_agrees_with_the_library(m, n, d, d_v, batch):
    query, key, value = normal(*batch, m, d), normal(*batch, n, d), normal(*batch, n, d_v)
    mask = normal(*batch, m, n) > 0
    mask[..., 0] = True
    for options in ({}, {"scale": 0.3}):
        for broadcast_mask in (None, mask, mask[..., :1, :]):
            torch.testing.assert_close(
                scaled_dot_product_attention(query, key, value, broadcast_mask, **options),
                F.scaled_dot_product_attention(
                    query, key, value, attn_mask=broadcast_mask, **options
                ),
                rtol=0,
                atol=1e-12,
            )


@given(**SIZES)
def test_rows_of_weights_sum_to_1(m, n, d):
    weights = attention_weights(normal(m, d), normal(n, d))
    assert weights.shape == (m, n)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(m, dtype=torch.float64))


def test_permuted_keys_change_nothing_queries_the_order():
    query, key, value, order = normal(5, 4), normal(7, 4), normal(7, 3), torch.randperm(7)
    out = scaled_dot_product_attention(query, key, value)
    moved = scaled_dot_product_attention(query.flip(0), key[order], value[order])
    torch.testing.assert_close(moved.flip(0), out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    query, key, value = (normal(5, 4, dtype=dtype, seed=i) for i in range(3))
    mask = torch.eye(5, dtype=torch.bool)
    assert project(query, normal(4, 3, dtype=dtype)).dtype == dtype
    assert attention_scores(query, key).dtype == dtype
    assert attention_weights(query, key, mask).dtype == dtype
    assert scaled_dot_product_attention(query, key, value).dtype == dtype
    assert AttentionHead(4, 3).to(dtype)(query).dtype == dtype


def test_a_row_without_a_key_and_its_gradient_are_zero():
    query, key, value = (normal(3, 4, seed=i).requires_grad_() for i in range(3))
    mask = torch.tensor([[True, True, False], [False, False, False], [False, True, True]])
    assert attention_weights(query, key, mask)[1].tolist() == [0, 0, 0]
    out = scaled_dot_product_attention(query, key, value, mask)
    assert out[1].tolist() == [0, 0, 0, 0]
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        out.sum().backward()  # raises where a NaN stands anywhere on the way back
    assert query.grad[1].tolist() == [0, 0, 0, 0]
    assert all(t.grad.isfinite().all() for t in (query, key, value))


def test_masked_keys_have_no_influence_at_all():
    query, key, value = (normal(5, 4, seed=i).requires_grad_() for i in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    out = scaled_dot_product_attention(query, key, value, mask)
    (gradient,) = torch.autograd.grad(out[2].sum(), value, retain_graph=True)
    assert (gradient[3:] == 0).all()
    assert (gradient[:3] != 0).all()


def test_a_batch_of_masks_on_one_sequence():
    query, key = normal(3, 4), normal(5, 4)
    masks = normal(2, 3, 5) > -1
    masks[..., 0] = True
    both = attention_weights(query, key, masks)
    assert both.shape == (2, 3, 5)
    torch.testing.assert_close(both[1], attention_weights(query, key, masks[1]))


@settings(deadline=None)
@given(n=st.integers(1, 7), d_v=st.integers(1, 5), bias=st.booleans())
def test_head_against_multihead_attention_with_one_head(n, d_v, bias):
    """With d_model = d_k and W_o = I, torch's module with a single head is our head."""
    head = randomised(AttentionHead(5, 5, bias=bias))
    library_layer = nn.MultiheadAttention(5, 1, bias=bias, batch_first=True).double()
    with torch.no_grad():
        library_layer.in_proj_weight.copy_(
            torch.cat([head.W_q.weight, head.W_k.weight, head.W_v.weight])
        )
        library_layer.out_proj.weight.copy_(torch.eye(5))
        if bias:
            library_layer.in_proj_bias.copy_(
                torch.cat([head.W_q.bias, head.W_k.bias, head.W_v.bias])
            )
            library_layer.out_proj.bias.zero_()
    x = normal(2, n, 5)
    out, weights = library_layer(x, x, x)
    torch.testing.assert_close(head(x), out, rtol=0, atol=1e-12)
    torch.testing.assert_close(head.weights(x), weights, rtol=0, atol=1e-12)
    assert AttentionHead(5, 3, d_v)(x.float()).shape == (2, n, d_v)


def test_head_is_made_of_the_functions():
    head, x = randomised(AttentionHead(7, 3, 5)), normal(2, 11, 7)
    query, key, value = (project(x, W.weight.T) for W in (head.W_q, head.W_k, head.W_v))
    torch.testing.assert_close(head(x), scaled_dot_product_attention(query, key, value))
    torch.testing.assert_close(head(x), head.weights(x) @ value)
    assert [tuple(p.shape) for p in head.parameters()] == [(3, 7), (3, 7), (5, 7)]


def test_scores_of_a_head_have_rank_d_k():
    head, x = randomised(AttentionHead(11, 3)), normal(13, 11)
    form = head.W_q.weight.T @ head.W_k.weight  # (d_model, d_model)
    scores = attention_scores(head.W_q(x), head.W_k(x))
    torch.testing.assert_close(scores, x @ form @ x.T, rtol=0, atol=1e-10)
    assert torch.linalg.matrix_rank(form) == 3
    assert torch.linalg.matrix_rank(scores) == 3


def test_gradients_pass_gradcheck():
    query, key, value = (normal(3, 4, seed=i).requires_grad_() for i in range(3))
    mask = torch.tensor([True, False, True])
    assert torch.autograd.gradcheck(scaled_dot_product_attention, (query, key, value, mask))


def test_nan_appears_in_the_result_or_is_refused():
    query, key, value = normal(3, 4), normal(3, 4), normal(3, 4)
    key[2, 0] = torch.nan
    assert attention_weights(query, key).isnan().all()
    hides = torch.tensor([True, True, False])
    with pytest.raises(ValueError, match=r"the mask hides NaN at \(0, 2\)"):
        attention_weights(query, key, hides)
    value[2, 0] = torch.nan
    assert scaled_dot_product_attention(query, query, value, hides)[:, 0].isnan().all()
    query[1, 0] = torch.nan
    assert attention_weights(query, query, torch.ones(3, 3, dtype=torch.bool)).isnan()[1].all()
    infinite = torch.tensor([[torch.inf, -torch.inf, 0.0]])  # no NaN, although their sum is one
    weights = softmax_over_keys(infinite, torch.tensor([False, True, True]))
    assert weights.tolist() == [[0, 0, 1]]


X, W = torch.ones(5, 3), torch.ones(3, 2)
MASK = torch.ones(5, 5, dtype=torch.bool)


test_bad_input_is_refused = refused(
    [
        (lambda: project(X, W.T), "one row of weight for each feature", r"\(5, 3\).*\(2, 3\)"),
        (lambda: project(X, W[0]), r"weight: expected shape \(d_in, d_out\)", r"\(2,\)"),
        (lambda: project(X.numpy(), W), "x: expected a torch tensor", "ndarray"),
        (lambda: project(X.long(), W), "floating-point tensor", "int64"),
        (lambda: project(X.double(), W), "expected one dtype", "x of torch.float64, weight of"),
        (lambda: project(X[:0], W), "at least one entry", r"\(0, 3\)"),
        (lambda: attention_scores(X, W), "same width d_k", r"\(5, 3\) and key of shape \(3, 2\)"),
        (lambda: attention_scores(X[0], X), r"query: expected shape \(\.\.\., m, d_k\)", r"\(3,\)"),
        (
            lambda: attention_scores(X.expand(2, 5, 3), X.expand(3, 5, 3)),
            "batch axes that broadcast",
            r"\(2, 5, 3\).*\(3, 5, 3\)",
        ),
        (lambda: attention_weights(X, X, MASK.float()), "boolean tensor", "torch.float32"),
        (lambda: attention_weights(X, X, MASK.numpy()), "boolean tensor", "ndarray"),
        (lambda: attention_weights(X, X, MASK[:, :4]), r"5 along axis -1 \(the keys\)", "got 4"),
        (lambda: attention_weights(X, X, MASK[:3]), r"5 along axis -2 \(the queries\)", "got 3"),
        (
            lambda: attention_weights(X.expand(2, 5, 3), X, MASK.expand(3, 5, 5)),
            r"2 along axis -3 \(a batch axis\)",
            r"got 3 in a mask of shape \(3, 5, 5\)",
        ),
        (lambda: attention_weights(X, X, scale=math.nan), "finite number or None", "nan"),
        (lambda: attention_weights(X, X, scale="2"), "finite number or None", "'2'"),
        (
            lambda: scaled_dot_product_attention(X, X, X[:4]),
            "one value for each key",
            r"\(5, 3\) and value of shape \(4, 3\)",
        ),
        (lambda: scaled_dot_product_attention(X, X, X.double()), "one dtype", "value of torch.fl"),
        (lambda: scaled_dot_product_attention(X, X, X[0]), r"value: expected shape", r"\(3,\)"),
        (lambda: AttentionHead(0, 3), "d_model: expected a whole number", "got 0"),
        (lambda: AttentionHead(3, 2.0), "d_k: expected a whole number", "2.0"),
        (lambda: AttentionHead(3, 2, -1), "d_v: expected a whole number", "-1"),
        (lambda: AttentionHead(4, 2)(X), "d_model = 4 features", r"\(5, 3\)"),
        (lambda: AttentionHead(3, 2)(X.double()), "one dtype", "x of torch.float64"),
        (lambda: AttentionHead(3, 2).weights(X[0]), r"\(\.\.\., n, d_model\)", r"\(3,\)"),
        (lambda: AttentionHead(3, 2)(X, MASK[:2]), "the queries", "got 2"),
    ]
)


def test_this_is_the_first_chapter_that_needs_torch():
    """With torch out of reach chapters 1 to 4 and their checks work, and chapter 5 does not."""
    program = """
import sys
sys.modules["torch"] = None
from attncourse import lookup, mixing, self_attention, tokens
from attncourse.checks import examine
assert examine("mixing.mix", mixing.mix).passed
assert examine("self_attention.self_attention", self_attention.self_attention).passed
try:
    import attncourse.kqv
except ImportError as error:
    print(error.name)
"""
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (process.stdout.strip(), process.stderr) == ("torch", "")


def test_a_first_call_imports_no_slow_library():
    """``torch.broadcast_shapes`` and gradients given from outside load sympy: 0.3 s and 35 MB."""
    program = """
import sys
from attncourse.checks import examine
from attncourse.kqv import AttentionHead, scaled_dot_product_attention
assert examine("kqv.AttentionHead", AttentionHead).passed
assert examine("kqv.scaled_dot_product_attention", scaled_dot_product_attention).passed
print("sympy" in sys.modules)
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (process.stdout.strip(), process.stderr) == ("False", "")


# --- the checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_masked_score_is_50_above_the_allowed(seed):
    tested = 0
    for _, case, _ in draw(exercises()["kqv.scaled_dot_product_attention"], seed):
        if len(case.args) == 4:
            query, key, _, mask = case.args
            tested += gap_is_small(attention_scores(query, key) / query.shape[-1] ** 0.5, mask)
    for _, case, _ in draw(exercises()["kqv.AttentionHead"], seed):
        mask = case.kwargs.get("mask")
        if mask is not None:
            x, W_q, W_k = (case.kwargs[k] for k in ("x", "W_q.weight", "W_k.weight"))
            scores = (x @ W_q.T) @ (x @ W_k.T).mT / W_q.shape[0] ** 0.5
            tested += gap_is_small(scores, mask)
    assert tested >= 12


def gap_is_small(scores, mask) -> bool:
    mask = mask.broadcast_to(scores.shape)
    assert mask.any(-1).all(), "every query has a key"
    allowed = scores.masked_fill(~mask, -math.inf).amax(-1)
    hidden = scores.masked_fill(mask, -math.inf).amax(-1)
    return bool((hidden - allowed < 50).all())


def by_library(query, key, value, mask=None, *, scale=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


def by_another_name(query, key, value, mask=None, *, scale=None):
    finished = torch._C._nn.scaled_dot_product_attention
    return finished(query, key, value, attn_mask=mask, scale=scale)


def by_multihead(query, key, value, mask=None, *, scale=None):
    layer = nn.MultiheadAttention(query.shape[-1], 1, dtype=query.dtype)
    return layer(query, key, value)[0]


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (by_library, "scaled_dot_product_attention"),
        (by_another_name, "scaled_dot_product_attention"),
        (by_multihead, "multi_head_attention_forward"),
    ],
)
def test_calling_the_librarys_attention_is_caught(answer, name):
    verdict = examine("kqv.scaled_dot_product_attention", answer, seed=0)
    assert verdict.earned == 0
    assert f"called {name}, which this exercise asks you to build" in verdict.criteria[0].message


class NoModule:
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        pass


class OtherNames(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)


class HeadOfOneLayer(HeadByFunctions):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__(d_model, d_k, d_v, bias)
        self.W_k = self.W_q


class OneLayerMore(HeadByFunctions):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__(d_model, d_k, d_v, bias)
        self.W_o = nn.Linear(d_k, d_k, bias=False)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (NoModule, "built NoModule, which is not a torch.nn.Module"),
        (OtherNames, "your module has no parameter W_q.weight; it has query.weight"),
        (HeadOfOneLayer, "do two names share one layer"),
        (OneLayerMore, "parameters that nobody asked for: W_o.weight"),
        (lambda *sizes, **options: None, "built NoneType, which is not"),
    ],
)
def test_a_module_of_another_form_is_explained(answer, message):
    verdict = examine("kqv.AttentionHead", answer, seed=0)
    assert verdict.earned == 0
    assert f"\n{message}" in verdict.criteria[0].message or message in verdict.criteria[0].message


def test_without_weights_only_its_criterion_is_lost():
    (missing,) = (
        m for m in exercises()["kqv.AttentionHead"].mistakes if m.name == "weights is missing"
    )
    verdict = examine("kqv.AttentionHead", missing.wrong, seed=0)
    assert verdict.possible - verdict.earned == 2


def test_an_examples_call_reads_like_the_modules_call():
    exercise = exercises()["kqv.AttentionHead"]
    texts = [call_text(exercise, case) for _, case, _ in draw(exercise, 0)]
    assert texts[0].startswith("AttentionHead(3, 4)(x), in float64, where\nx =\n")
    assert "W_q.weight =\n" in texts[0]
    assert any(text.startswith("AttentionHead(5, 4).weights(x, mask)") for text in texts)


def test_a_mask_is_not_turned_where_it_is_square():
    def turned(query, key, value, mask=None, *, scale=None):
        if mask is not None and mask.ndim > 1 and mask.shape[-1] == mask.shape[-2]:
            mask = mask.mT
        return scaled_dot_product_attention(query, key, value, mask, scale=scale)

    assert not examine("kqv.scaled_dot_product_attention", turned, seed=0).passed
