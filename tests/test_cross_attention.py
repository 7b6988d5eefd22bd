"""Chapter 8: the package against PyTorch itself, and other right answers to its exercises."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attncourse.checks import examine, exercises
from attncourse.checks.judging import call_text
from attncourse.checks.trying.trials import draw
from attncourse.cross_attention import AttentionPooling, CrossAttention
from attncourse.kqv import AttentionHead, attention_weights, scaled_dot_product_attention
from helpers.random_arrays import normal
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


class CrossByFunctions(nn.Module):
    def __init__(self, d_x, d_y, d_k, d_v):
        super().__init__()
        self.W_v = nn.Linear(d_y, d_v, bias=False)
        self.W_k = nn.Linear(d_y, d_k, bias=False)
        self.W_q = nn.Linear(d_x, d_k, bias=False)

    def forward(self, x, y, mask=None):
        return scaled_dot_product_attention(self.W_q(x), self.W_k(y), self.W_v(y), mask)

    def weights(self, x, y, mask=None):
        return attention_weights(self.W_q(x), self.W_k(y), mask)


class CrossBigNegative(CrossByFunctions):
    def forward(self, x, y, mask=None):
        return self.weights(x, y, mask) @ self.W_v(y)

    def weights(self, x, y, mask=None):
        scores = self.W_q(x) @ self.W_k(y).transpose(-2, -1) / math.sqrt(self.W_q.out_features)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return F.softmax(scores, dim=-1)


class CrossEinops(CrossByFunctions):
    """Keeps a buffer, and the map of its last call."""

    def __init__(self, d_x, d_y, d_k, d_v):
        super().__init__(d_x, d_y, d_k, d_v)
        self.register_buffer("root", torch.tensor(float(d_k)).sqrt())

    def forward(self, x, y, mask=None):
        from einops import einsum

        q, k, v = self.W_q(x), self.W_k(y), self.W_v(y)
        scores = einsum(q, k, "... i c, ... j c -> ... i j") / self.root
        if mask is not None:
            scores = torch.where(mask, scores, float("-inf"))
        self.map = scores.softmax(-1)
        return einsum(self.map, v, "... i j, ... j c -> ... i c")

    def weights(self, x, y, mask=None):
        self.forward(x, y, mask)
        return self.map


class CrossOfTheLibrary(CrossBigNegative):
    def forward(self, x, y, mask=None):
        return F.scaled_dot_product_attention(self.W_q(x), self.W_k(y), self.W_v(y), attn_mask=mask)


class CrossByLoops(CrossByFunctions):
    """One question after the other, one key after the other."""

    def weights(self, x, y, mask=None):
        m, n = x.shape[-2], y.shape[-2]
        batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        mask = torch.ones(m, n, dtype=torch.bool) if mask is None else mask
        mask = mask.broadcast_to(*batch, m, n)
        rows = []
        for i in range(m):
            q = self.W_q(x[..., i, :])
            scores = [(q * self.W_k(y[..., j, :])).sum(-1) / q.shape[-1] ** 0.5 for j in range(n)]
            scores = torch.stack(scores, dim=-1).where(mask[..., i, :], -torch.inf)
            e = (scores - scores.max(-1, keepdim=True).values).exp()
            rows.append(e / e.sum(-1, keepdim=True))
        return torch.stack(rows, dim=-2)

    def forward(self, x, y, mask=None):
        weights, value = self.weights(x, y, mask), self.W_v(y)
        parts = [weights[..., j, None] * value[..., j, None, :] for j in range(y.shape[-2])]
        return sum(parts)


class CrossInDouble(CrossByFunctions):
    """float64 inside, the scale on the queries, masked after the softmax with renormalisation."""

    def weights(self, x, y, mask=None):
        return self.in_double(x, y, mask).to(x.dtype)

    def in_double(self, x, y, mask):
        q = (self.W_q(x) * self.W_q.out_features**-0.5).double()
        weights = (q @ self.W_k(y).double().mT).softmax(-1)
        if mask is not None:
            weights = weights * mask
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-12)
        return weights

    def forward(self, x, y, mask=None):
        return (self.in_double(x, y, mask) @ self.W_v(y).double()).to(x.dtype)


class CrossProjectingLate(CrossBigNegative):
    """Mixes the tokens of y first and projects the mixture; scores by one bilinear form."""

    def forward(self, x, y, mask=None):
        return self.W_v(self.weights(x, y, mask) @ y)

    def weights(self, x, y, mask=None):
        form = self.W_q.weight.T @ self.W_k.weight / len(self.W_q.weight) ** 0.5
        scores = x @ form @ y.mT
        if mask is not None:
            scores = scores + torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -torch.inf)
        return scores.log_softmax(-1).exp()


class PoolByFunctions(nn.Module):
    def __init__(self, d, n_queries=1):
        super().__init__()
        self.W_k = nn.Linear(d, d, bias=False)
        self.W_v = nn.Linear(d, d, bias=False)
        self.queries = nn.Parameter(torch.randn(n_queries, d))

    def forward(self, x, mask=None):
        return scaled_dot_product_attention(self.queries, self.W_k(x), self.W_v(x), mask)

    def weights(self, x, mask=None):
        return attention_weights(self.queries, self.W_k(x), mask)


class PoolBigNegative(PoolByFunctions):
    """Queries expanded to every batch axis."""

    def forward(self, x, mask=None):
        return torch.matmul(self.weights(x, mask), self.W_v(x))

    def weights(self, x, mask=None):
        queries = self.queries.expand(*x.shape[:-2], -1, -1)
        scores = queries @ self.W_k(x).transpose(-1, -2) / math.sqrt(x.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return torch.softmax(scores, dim=-1)


class PoolEinops(PoolByFunctions):
    def forward(self, x, mask=None):
        from einops import einsum

        return einsum(self.weights(x, mask), self.W_v(x), "... q n, ... n d -> ... q d")

    def weights(self, x, mask=None):
        from einops import einsum

        scores = einsum(self.queries, self.W_k(x), "q d, ... n d -> ... q n") * x.shape[-1] ** -0.5
        if mask is not None:
            scores = torch.where(mask, scores, -torch.inf)
        return scores.softmax(-1)


class PoolByLoops(PoolByFunctions):
    """One query after the other, elements weighed and added."""

    def weights(self, x, mask=None):
        key, rows = self.W_k(x), []
        q = len(self.queries)
        if mask is not None:
            mask = mask.broadcast_to(*x.shape[:-2], q, x.shape[-2])
        for i in range(q):
            scores = (key * self.queries[i]).sum(-1) / key.shape[-1] ** 0.5
            if mask is not None:
                scores = scores.masked_fill(~mask[..., i, :], -torch.inf)
            e = (scores - scores.amax(-1, keepdim=True)).exp()
            rows.append(e / e.sum(-1, keepdim=True))
        return torch.stack(rows, dim=-2)

    def forward(self, x, mask=None):
        value, weights = self.W_v(x), self.weights(x, mask)
        return torch.stack(
            [(weights[..., i, :, None] * value).sum(-2) for i in range(len(self.queries))], dim=-2
        )


class PoolOfTheLibrary(PoolBigNegative):
    def forward(self, x, mask=None):
        queries = self.queries.expand(*x.shape[:-2], -1, -1)
        return F.scaled_dot_product_attention(queries, self.W_k(x), self.W_v(x), attn_mask=mask)


class PoolInDouble(PoolByFunctions):
    def in_double(self, x, mask):
        scores = self.queries.double() @ self.W_k(x).double().mT / x.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights * mask
            weights = weights / weights.sum(-1, keepdim=True)
        return weights

    def weights(self, x, mask=None):
        return self.in_double(x, mask).to(x.dtype)

    def forward(self, x, mask=None):
        return (self.in_double(x, mask) @ self.W_v(x).double()).to(x.dtype)


class PoolByOneVector(PoolBigNegative):
    """The query and W_k folded into one vector; the elements pooled before they are projected."""

    def forward(self, x, mask=None):
        return self.W_v(self.weights(x, mask) @ x)

    def weights(self, x, mask=None):
        asks = F.linear(self.queries, self.W_k.weight.T) / len(self.W_k.weight) ** 0.5
        scores = F.linear(x, asks).mT
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)


RIGHT = {
    "cross_attention.CrossAttention": [
        CrossByFunctions,
        CrossBigNegative,
        CrossEinops,
        CrossOfTheLibrary,
        CrossByLoops,
        CrossInDouble,
        CrossProjectingLate,
    ],
    "cross_attention.AttentionPooling": [
        PoolByFunctions,
        PoolBigNegative,
        PoolEinops,
        PoolByLoops,
        PoolOfTheLibrary,
        PoolInDouble,
        PoolByOneVector,
    ],
}

# --- the package -----------------------------------------------------------------------------


def randomised(module, seed=0):
    """The module in float64, with weights of order one."""
    for i, parameter in enumerate(module.double().parameters()):
        parameter.data = normal(*parameter.shape, seed=seed + i)
    return module


def test_cross_attention_by_hand():
    """Scores 2 ln 2 · 1, 0 and 0 over √4 make the weights 1/2, 1/4 and 1/4."""
    cross = CrossAttention(1, 2, 4, 3)
    cross.W_q.weight.data = torch.tensor([[2 * math.log(2)], [0.0], [0.0], [0.0]])
    cross.W_k.weight.data = torch.tensor([[1.0, 0.0], [5.0, 5.0], [0.0, 3.0], [0.0, 7.0]])
    cross.W_v.weight.data = torch.tensor([[4.0, 0.0], [0.0, 8.0], [4.0, 4.0]])
    x, y = torch.tensor([[1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    torch.testing.assert_close(cross.weights(x, y), torch.tensor([[0.5, 0.25, 0.25]]))
    torch.testing.assert_close(cross(x, y), torch.tensor([[2.0, 2.0, 3.0]]))
    pool = AttentionPooling(4)
    pool.queries.data = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
    pool.W_k.weight.data = torch.eye(4)
    pool.W_v.weight.data = 4 * torch.eye(4)
    torch.testing.assert_close(pool.weights(torch.eye(4)[:2]), torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(pool(torch.eye(4)[:2]), torch.tensor([[3.0, 1.0, 0.0, 0.0]]))


@settings(deadline=None)
@given(m=st.integers(1, 7), n=st.integers(1, 7), batch=st.sampled_from([(), (2,), (3, 2)]))
def test_cross_against_the_library(m, n, batch):
    cross, x, y = randomised(CrossAttention(5, 3, 4, 2)), normal(*batch, m, 5), normal(*batch, n, 3)
    mask = normal(*batch, m, n) > 0
    mask[..., 0] = True
    query, key, value = (
        s @ W.weight.T for s, W in ((x, cross.W_q), (y, cross.W_k), (y, cross.W_v))
    )
    for broadcast_mask in (None, mask, mask[..., :1, :]):
        expected = F.scaled_dot_product_attention(query, key, value, attn_mask=broadcast_mask)
        torch.testing.assert_close(cross(x, y, broadcast_mask), expected, rtol=0, atol=1e-12)
        assert cross.weights(x, y, broadcast_mask).shape == (*batch, m, n)
        torch.testing.assert_close(
            cross.weights(x, y, broadcast_mask) @ value, expected, rtol=0, atol=1e-12
        )


@settings(deadline=None)
@given(m=st.integers(1, 7), n=st.integers(1, 7))
def test_cross_against_multihead_attention_with_one_head(m, n):
    """With d_x = d_k = d_v and W_o = I, torch's module with kdim and vdim is ours."""
    cross = randomised(CrossAttention(5, 3, 5, 5))
    library_layer = nn.MultiheadAttention(
        5, 1, bias=False, kdim=3, vdim=3, batch_first=True
    ).double()
    with torch.no_grad():
        library_layer.q_proj_weight.copy_(cross.W_q.weight)
        library_layer.k_proj_weight.copy_(cross.W_k.weight)
        library_layer.v_proj_weight.copy_(cross.W_v.weight)
        library_layer.out_proj.weight.copy_(torch.eye(5))
    x, y = normal(2, m, 5), normal(2, n, 3)
    allowed = normal(2, n) > 0
    allowed[:, 0] = True
    out, weights = library_layer(
        x, y, y, key_padding_mask=~allowed
    )  # theirs is True where forbidden
    torch.testing.assert_close(cross(x, y, allowed[:, None]), out, rtol=0, atol=1e-12)
    torch.testing.assert_close(cross.weights(x, y, allowed[:, None]), weights, rtol=0, atol=1e-12)


@torch.no_grad()
def test_pooling_by_a_loop_in_float64():
    pool, x = randomised(AttentionPooling(5, n_queries=3)), normal(2, 7, 5)
    mask = normal(2, 1, 7) > -0.5
    mask[..., 0] = True
    for b in range(2):
        for q in range(3):
            scores = [float(pool.queries[q] @ (pool.W_k.weight @ e)) / math.sqrt(5) for e in x[b]]
            raw = [math.exp(s) * bool(a) for s, a in zip(scores, mask[b, 0], strict=True)]
            share = torch.tensor(raw, dtype=torch.float64) / sum(raw)
            expected = sum(share[j] * (pool.W_v.weight @ x[b, j]) for j in range(7))
            torch.testing.assert_close(pool(x, mask)[b, q], expected, rtol=0, atol=1e-12)
            torch.testing.assert_close(pool.weights(x, mask)[b, q], share, rtol=0, atol=1e-12)


def test_self_attention_is_the_case_of_one_sequence():
    head, cross = randomised(AttentionHead(5, 3, 2)), CrossAttention(5, 5, 3, 2).double()
    cross.load_state_dict(head.state_dict())
    x, mask = normal(2, 7, 5), torch.ones(7, 7, dtype=torch.bool).tril()
    torch.testing.assert_close(cross(x, x, mask), head(x, mask), rtol=0, atol=0)
    torch.testing.assert_close(cross.weights(x, x, mask), head.weights(x, mask), rtol=0, atol=0)


@settings(deadline=None)
@given(n=st.integers(2, 11), q=st.integers(1, 3), order=st.randoms(use_true_random=False))
def test_the_order_of_the_keys_does_not_matter(n, q, order):
    p = order.sample(range(n), n)
    pool, x = randomised(AttentionPooling(5, q)), normal(n, 5)
    torch.testing.assert_close(pool(x[p]), pool(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(pool.weights(x[p]), pool.weights(x)[:, p], rtol=0, atol=1e-12)
    cross, asks = randomised(CrossAttention(3, 5, 4, 2)), normal(n, 3)
    torch.testing.assert_close(cross(asks, x[p]), cross(asks, x), rtol=0, atol=1e-12)
    torch.testing.assert_close(cross(asks[p], x), cross(asks, x)[p], rtol=0, atol=1e-12)
    torch.testing.assert_close(cross(asks[:1], x), cross(asks, x)[:1], rtol=0, atol=1e-12)


def test_a_query_of_zeros_pools_by_the_mean():
    pool, x = randomised(AttentionPooling(5)), normal(7, 5)
    nn.init.zeros_(pool.queries)
    torch.testing.assert_close(pool(x), pool.W_v(x).mean(0, keepdim=True))


def test_padding_changes_nothing_where_it_is_masked():
    pool, cross = randomised(AttentionPooling(5, 2)), randomised(CrossAttention(3, 5, 4, 2))
    y, x = normal(3, 5), normal(7, 3)
    padded = torch.cat([y, normal(4, 5, seed=1)])
    is_token = torch.arange(7) < 3
    torch.testing.assert_close(pool(padded, is_token), pool(y), rtol=0, atol=1e-12)
    torch.testing.assert_close(cross(x, padded, is_token), cross(x, y), rtol=0, atol=1e-12)
    torch.testing.assert_close(pool.weights(padded, is_token)[:, 3:], torch.zeros(2, 4).double())
    padded.requires_grad_()
    (cross(x, padded, is_token).sum() + pool(padded, is_token).sum()).backward()
    assert (padded.grad[3:] == 0).all()
    assert (padded.grad[:3] != 0).any()


def test_pooling_an_empty_set_gives_zero():
    pool, cross = randomised(AttentionPooling(5, 2)), randomised(CrossAttention(3, 5, 4, 2))
    nobody = torch.tensor([[[False] * 7], [[True] * 7]])
    out = pool(normal(2, 7, 5), nobody)
    assert out[0].tolist() == [[0] * 5] * 2
    assert (out[1] != 0).all()
    assert cross(normal(2, 3, 3), normal(2, 7, 5), nobody)[0].tolist() == [[0, 0]] * 3
    assert cross.weights(normal(2, 3, 3), normal(2, 7, 5), nobody)[0].sum() == 0


def test_parameters_have_their_shapes_and_number():
    cross, pool = CrossAttention(3, 7, 5, 2), AttentionPooling(5, n_queries=3)
    shapes = {name: tuple(p.shape) for name, p in cross.named_parameters()}
    assert shapes == {"W_q.weight": (5, 3), "W_k.weight": (5, 7), "W_v.weight": (2, 7)}
    assert sum(p.numel() for p in cross.parameters()) == 3 * 5 + 7 * (5 + 2)
    shapes = {name: tuple(p.shape) for name, p in pool.named_parameters()}
    assert shapes == {"queries": (3, 5), "W_k.weight": (5, 5), "W_v.weight": (5, 5)}
    assert AttentionPooling(5).queries.shape == (1, 5)
    assert (pool.queries[0] != pool.queries[1]).all(), "no two queries start alike"


def test_batch_axes_broadcast():
    cross = randomised(CrossAttention(3, 5, 4, 2))
    x, y = normal(2, 1, 7, 3), normal(3, 11, 5)
    out = cross(x, y)
    assert out.shape == (2, 3, 7, 2)
    torch.testing.assert_close(out[1, 2], cross(x[1, 0], y[2]))
    pool, x = randomised(AttentionPooling(5)), normal(3, 2, 7, 5)
    assert pool(x).shape == (3, 2, 1, 5)
    torch.testing.assert_close(pool(x)[2, 1], pool(x[2, 1]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    x, y = normal(7, 3, dtype=dtype), normal(5, 3, dtype=dtype)
    mask = torch.ones(7, 5, dtype=torch.bool)
    cross, pool = CrossAttention(3, 3, 4, 2).to(dtype), AttentionPooling(3).to(dtype)
    assert cross(x, y, mask).dtype == cross.weights(x, y, mask).dtype == dtype
    assert pool(x).dtype == pool.weights(x).dtype == dtype


def test_gradients_pass_gradcheck():
    cross, pool = randomised(CrossAttention(3, 2, 4, 2)), randomised(AttentionPooling(3, 2))
    x, y = normal(3, 3).requires_grad_(), normal(5, 2).requires_grad_()
    assert torch.autograd.gradcheck(cross, (x, y))
    assert torch.autograd.gradcheck(pool, (x, torch.tensor([True, False, True])))
    (cross(x, y).square().sum() + pool(x).square().sum()).backward()
    for parameter in [*cross.parameters(), *pool.parameters()]:
        assert (parameter.grad != 0).any()


def test_nan_appears_in_the_result_or_is_refused():
    pool, cross = randomised(AttentionPooling(5)), randomised(CrossAttention(3, 5, 4, 2))
    x, y = normal(7, 3), normal(3, 5)
    y[2, 0] = torch.nan
    assert pool(y).isnan().all()
    assert cross(x, y).isnan().all()
    is_token = torch.tensor([True, True, False])
    with pytest.raises(ValueError, match=r"the mask hides NaN at \(0, 2\)"):
        pool(y, is_token)
    with pytest.raises(ValueError, match=r"the mask hides NaN at \(0, 2\)"):
        cross.weights(x, y, is_token)


X, Y = torch.ones(7, 3), torch.ones(5, 2)
MASK = torch.ones(7, 5, dtype=torch.bool)
CROSS, POOL = CrossAttention(3, 2, 4, 2), AttentionPooling(3, 2)


test_bad_input_is_refused = refused(
    [
        (lambda: CrossAttention(0, 2, 4, 2), "d_x: expected a whole number", "got 0"),
        (lambda: CrossAttention(3, -2, 4, 2), "d_y: expected a whole number", "-2"),
        (lambda: CrossAttention(3, 2, 4.0, 2), "d_k: expected a whole number", "4.0"),
        (lambda: CrossAttention(3, 2, 4, None), "d_v: expected a whole number", "None"),
        (lambda: CROSS(Y, X), "x: expected d_x = 3 features", r"\(5, 2\)"),
        (lambda: CROSS(X, X), "y: expected d_y = 2 features", r"\(7, 3\)"),
        (lambda: CROSS.weights(X, X), "y: expected d_y = 2 features", r"\(7, 3\)"),
        (lambda: CROSS(X[0], Y), r"x: expected shape \(\.\.\., m, d_x\)", r"\(3,\)"),
        (lambda: CROSS(X, Y[0]), r"y: expected shape \(\.\.\., n, d_y\)", r"\(2,\)"),
        (lambda: CROSS(X, Y[:0]), "at least one entry", r"\(0, 2\)"),
        (lambda: CROSS(X.long(), Y), "x: expected a floating-point tensor", "int64"),
        (lambda: CROSS(X, Y.double()), "one dtype", "y of torch.float64, parameters of"),
        (lambda: CROSS(X, Y.numpy()), "y: expected a torch tensor", "ndarray"),
        (
            lambda: CROSS(X.expand(2, 7, 3), Y.expand(3, 5, 2)),
            "batch axes that broadcast",
            r"x of shape \(2, 7, 3\), y of shape \(3, 5, 2\)",
        ),
        (lambda: CROSS(X, Y, MASK.float()), "boolean tensor", "float32"),
        (lambda: CROSS(X, Y, MASK[:, :4]), r"5 along axis -1 \(the keys\)", "got 4"),
        (lambda: CROSS(X, Y, MASK.T), r"5 along axis -1 \(the keys\)", "got 7"),
        (lambda: CROSS.weights(X, Y, MASK[:3]), r"7 along axis -2 \(the queries\)", "got 3"),
        (lambda: AttentionPooling(0), "d: expected a whole number", "got 0"),
        (lambda: AttentionPooling(3, 0), "n_queries: expected a whole number", "got 0"),
        (lambda: AttentionPooling(3, True), "n_queries: expected a whole number", "True"),
        (lambda: POOL(Y), "x: expected d = 3 features", r"\(5, 2\)"),
        (lambda: POOL.weights(X[0]), r"x: expected shape \(\.\.\., n, d\)", r"\(3,\)"),
        (lambda: POOL(X[:0]), "at least one entry", r"\(0, 3\)"),
        (lambda: POOL(X.double()), "one dtype", "x of torch.float64"),
        (lambda: POOL(X, MASK[0]), r"7 along axis -1 \(the keys\)", "got 5"),
        (lambda: POOL(X, MASK.T[:3]), r"2 along axis -2 \(the queries\)", "got 3"),
    ]
)


# --- the checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_masked_score_is_50_above_the_allowed(seed):
    tested = 0
    for target in RIGHT:
        for _, case, _ in draw(exercises()[target], seed):
            arguments, mask = case.kwargs, case.kwargs.get("mask")
            if mask is None:
                continue
            if "y" in arguments:
                query, others = arguments["x"] @ arguments["W_q.weight"].T, arguments["y"]
            else:
                query, others = arguments["queries"], arguments["x"]
            scores = query @ (others @ arguments["W_k.weight"].T).mT / query.shape[-1] ** 0.5
            tested += gap_is_small(scores, mask)
    assert tested >= 15


def gap_is_small(scores, mask) -> bool:
    mask = mask.broadcast_to(scores.shape)
    assert mask.any(-1).all(), "every query has a key"
    allowed = scores.masked_fill(~mask, -math.inf).amax(-1)
    hidden = scores.masked_fill(mask, -math.inf).amax(-1)
    return bool((hidden - allowed < 50).all())


@pytest.mark.parametrize("target", RIGHT)
def test_without_weights_only_its_criterion_is_lost(target):
    (missing,) = (m for m in exercises()[target].mistakes if m.name == "weights is missing")
    verdict = examine(target, missing.wrong, seed=0)
    assert verdict.possible - verdict.earned == 2


def test_an_examples_call_reads_like_the_modules_call():
    exercise = exercises()["cross_attention.CrossAttention"]
    texts = [call_text(exercise, case) for _, case, _ in draw(exercise, 0)]
    assert texts[0].startswith("CrossAttention(3, 4, 4, 3)(x, y), in float64, where\nx =\n")
    assert any(text.startswith("CrossAttention(5, 3, 4, 2).weights(x, y, mask)") for text in texts)


def test_gradients_are_asked_of_every_input_but_the_mask():
    exercise = exercises()["cross_attention.CrossAttention"]
    (criterion,) = (c for c in exercise.criteria if c.name.startswith("gradients"))
    expected = {"the output", *(f"the gradient of {n}" for n in ("x", "y", "W_q.weight",
              "W_k.weight", "W_v.weight"))}  # fmt: skip
    outcomes = [outcome for c, _, outcome in draw(exercise, 0) if c is criterion]
    assert len(outcomes) == 2
    assert all(set(outcome.value) == expected for outcome in outcomes)
