"""The exercises of chapter 5, queries, keys and values.

In float64 cases d_k is a power of 4, so that 1/√d_k is exact in every precision: a scale that was
computed in float32 is no mistake.
"""

import torch
from torch import nn

from attncourse import kqv
from attncourse.checks.drivers import call_module_with_gradients, with_gradients
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import State, module_case, normal, spread, tensor, with_hole
from attncourse.checks.parts import (
    hide,
    no_max_subtracted,
    reversed_axes,
    zero_times_infinity,
)

# --- cases -----------------------------------------------------------------------------------


def project_values(rng: Rng) -> list[Case]:
    x, W = tensor([[1, 0, 2], [0, 3, 1]]), tensor([[1, 2], [0, 1], [3, -1]])
    square = tensor([[1, 2], [0, 1]]), tensor([[1, 1], [0, 2]])
    return [
        Case((x, W)),
        Case(square, note="as many tokens as features in and out"),
        Case((normal(rng, 5, 5), normal(rng, 5, 5)), note="square matrices"),
        Case((normal(rng, 7, 5), normal(rng, 5, 3))),
    ]


def project_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 1, 3), normal(rng, 3, 5)), note="n = 1"),
        Case((normal(rng, 5, 1), normal(rng, 1, 7)), note="one feature"),
        Case((normal(rng, 3, 7).T, normal(rng, 5, 3).T), note="not contiguous in memory"),
    ]


def project_batch(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 2, 5, 3), normal(rng, 3, 7)), note="a batch of 2"),
        Case((normal(rng, 3, 2, 5, 7), normal(rng, 7, 11)), note="two batch axes"),
    ]


def project_numbers(rng: Rng) -> list[Case]:
    x, W = normal(rng, 7, 5), normal(rng, 5, 3)
    return [
        Case((x.float(), W.float()), note="float32"),
        Case((1e6 * x, W), note="large entries"),
    ]


def project_gradients(rng: Rng) -> list[Case]:
    use = with_gradients("x", "weight")
    return [Case((normal(rng, 2, 7, 5), normal(rng, 5, 3)), use=use, note="a batch of 2")]


def scores_values(rng: Rng) -> list[Case]:
    Q, K = tensor([[1, 0, 2], [0, 3, 1]]), tensor([[1, 1, 0], [2, 0, 1], [0, 1, 3], [1, 2, 1]])
    return [
        Case((Q, K)),
        Case((normal(rng, 5, 4), normal(rng, 5, 4)), note="as many queries as keys"),
        Case((normal(rng, 3, 4), normal(rng, 7, 4))),
    ]


def scores_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 1, 4), normal(rng, 5, 4)), note="one query"),
        Case((normal(rng, 5, 4), normal(rng, 1, 4)), note="one key"),
        Case((normal(rng, 4, 7).T, normal(rng, 4, 3).T), note="not contiguous in memory"),
    ]


def scores_batch(rng: Rng) -> list[Case]:
    return [
        # Where the sizes agree, wrong axes give wrong numbers and no error.
        Case((normal(rng, 4, 5, 4), normal(rng, 4, 4, 4)), note="a batch of 4, four keys"),
        Case((normal(rng, 2, 5, 4), normal(rng, 2, 7, 4)), note="a batch of 2"),
        Case((normal(rng, 2, 3, 5, 4), normal(rng, 2, 3, 7, 4)), note="two batch axes"),
        Case((normal(rng, 2, 5, 4), normal(rng, 7, 4)), note="one sequence of keys for a batch"),
    ]


def scores_numbers(rng: Rng) -> list[Case]:
    Q, K = normal(rng, 7, 4), normal(rng, 5, 4)
    return [
        Case((Q.float(), K.float()), note="float32"),
        Case((1e3 * Q, 1e3 * K), note="large entries"),
    ]


def scores_gradients(rng: Rng) -> list[Case]:
    use = with_gradients("query", "key")
    return [Case((normal(rng, 2, 5, 4), normal(rng, 2, 7, 4)), use=use, note="a batch of 2")]


def attention_values(rng: Rng) -> list[Case]:
    Q = tensor([[2, 0, 0, 0], [0, 2, 0, 0]])
    K = tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    V = tensor([[1, 0], [0, 1], [4, 4]])
    Q5, K5, V5 = normal(rng, 5, 4), normal(rng, 5, 4), normal(rng, 5, 4)
    return [
        Case((Q, K, V), note="d_k = 4, so that √d_k = 2"),
        Case((Q5, K5, V5), note="as many queries as keys, d_v = d_k"),
        Case((normal(rng, 3, 16), normal(rng, 7, 16), normal(rng, 7, 16))),
    ]


def attention_shapes(rng: Rng) -> list[Case]:
    return [
        Case(
            (normal(rng, 5, 4), normal(rng, 7, 4), normal(rng, 7, 3)), note="d_v smaller than d_k"
        ),
        Case((normal(rng, 7, 4), normal(rng, 5, 4), normal(rng, 5, 11)), note="d_v above d_k"),
        Case((normal(rng, 1, 4), normal(rng, 5, 4), normal(rng, 5, 3)), note="one query"),
        Case((normal(rng, 5, 4), normal(rng, 1, 4), normal(rng, 1, 3)), note="one key"),
        Case(
            (normal(rng, 4, 5).T, normal(rng, 4, 7).T, normal(rng, 3, 7).T),
            note="not contiguous in memory",
        ),
    ]


def attention_masks(rng: Rng) -> list[Case]:
    Q = tensor([[2, 0, 0, 0], [0, 2, 0, 0]])
    K = tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    V = tensor([[1, 0], [0, 1], [4, 4]])
    mask = torch.tensor([[True, True, False], [False, True, True]])
    batch = normal(rng, 2, 3, 4), normal(rng, 2, 7, 4), normal(rng, 2, 7, 5)
    return [
        Case((Q, K, V, mask)),
        Case((normal(rng, 5, 4), normal(rng, 7, 4), normal(rng, 7, 3), with_hole(rng, 5, 7))),
        Case(
            (normal(rng, 5, 4), normal(rng, 7, 4), normal(rng, 7, 3), with_hole(rng, 1, 7)),
            note="one row of the mask for all queries",
        ),
        Case((*batch, with_hole(rng, 2, 1, 7)), note="a batch of 2, a mask for each"),
        Case((*batch, with_hole(rng, 3, 7)), note="a batch of 2, one mask for both"),
    ]


def attention_scales(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 5, 4), normal(rng, 7, 4), normal(rng, 7, 3)), {"scale": scale})
        for scale in (2.0, 0.125)
    ]


def attention_batch(rng: Rng) -> list[Case]:
    return [
        Case(
            (normal(rng, 4, 5, 4), normal(rng, 4, 4, 4), normal(rng, 4, 4, 3)),
            note="a batch of 4, four keys",
        ),
        Case((normal(rng, 2, 5, 4), normal(rng, 2, 7, 4), normal(rng, 2, 7, 3)), note="batch of 2"),
        Case(
            (normal(rng, 2, 3, 5, 4), normal(rng, 2, 3, 7, 4), normal(rng, 2, 3, 7, 11)),
            note="two batch axes",
        ),
    ]


def attention_numbers(rng: Rng) -> list[Case]:
    Q, K, V = normal(rng, 7, 4), normal(rng, 5, 4), normal(rng, 5, 3)
    return [
        Case((1e3 * Q, K, V), note="scores in the thousands"),
        Case((Q.float(), K.float(), V.float()), note="float32"),
        Case((spread(rng, 3, 7).float(), spread(rng, 5, 7).float(), V.float()), note="d_k = 7"),
    ]


def attention_gradients(rng: Rng) -> list[Case]:
    Q, K, V = normal(rng, 2, 5, 4), normal(rng, 2, 7, 4), normal(rng, 2, 7, 3)
    use = with_gradients("query", "key", "value")
    return [
        Case((Q, K, V), use=use, note="a batch of 2"),
        Case((Q, K, V, with_hole(rng, 5, 7)), use=use, note="with a mask"),
    ]


def head_state(
    rng: Rng, d_model: int, d_k: int, d_v: int | None = None, *, bias: bool = False
) -> State:
    """Random weights of order one for an AttentionHead, and biases that are not zero."""
    sizes = {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}
    state = {}
    for name, size in sizes.items():
        state[f"{name}.weight"] = spread(rng, size, d_model)
        if bias:
            state[f"{name}.bias"] = tensor(rng.uniform(0.5, 1.5, size) * rng.choice([-1, 1], size))
    return state


def head_case(
    rng: Rng,
    shape: tuple[int, ...],
    args: tuple[int, ...],
    mask: torch.Tensor | None = None,
    *,
    bias: bool = False,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    **more,
) -> Case:
    """A head ``AttentionHead(*args)`` with random weights on tokens of this shape."""
    inputs = {"x": factor * spread(rng, *shape).to(dtype)}
    if mask is not None:
        inputs["mask"] = mask
    state = {name: w.to(dtype) for name, w in head_state(rng, *args, bias=bias).items()}
    options = {"bias": True} if bias else {}
    return module_case("AttentionHead", args, state, inputs, options=options, **more)


# *I am hungry* with small integers: three tokens of three features, d_k = d_v = 4.
HUNGRY = tensor([[1, 0, 0], [0, 1, 0], [1, 0, 1]])
HUNGRY_STATE = {
    "W_q.weight": tensor([[1, 0, 1], [0, 2, 0], [0, 0, 0], [1, 0, 0]]),
    "W_k.weight": tensor([[0, 1, 2], [1, 0, 0], [0, 0, 1], [0, 0, 0]]),
    "W_v.weight": tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 1]]),
}


def head_values(rng: Rng) -> list[Case]:
    hungry = module_case("AttentionHead", (3, 4), HUNGRY_STATE, {"x": HUNGRY})
    return [
        hungry,
        head_case(rng, (7, 5), (5, 4)),
        head_case(rng, (11, 7), (7, 16)),
        head_case(rng, (5, 4), (4, 4), note="d_model = d_k"),
    ]


def head_widths(rng: Rng) -> list[Case]:
    return [
        head_case(rng, (7, 5), (5, 4, 3), note="d_v = 3"),
        head_case(rng, (5, 3), (3, 4, 11), note="d_v = 11"),
        head_case(rng, (1, 5), (5, 4, 3), note="one token"),
    ]


def head_bias(rng: Rng) -> list[Case]:
    return [
        head_case(rng, (7, 5), (5, 4), bias=True),
        head_case(rng, (5, 3), (3, 4, 7), bias=True),
    ]


def head_masks(rng: Rng) -> list[Case]:
    return [
        head_case(rng, (7, 5), (5, 4), with_hole(rng, 7, 7)),
        head_case(rng, (7, 5), (5, 4, 3), with_hole(rng, 1, 7), note="one row for all queries"),
        head_case(rng, (2, 5, 3), (3, 4), with_hole(rng, 2, 5, 5), note="a mask for each of 2"),
    ]


def head_maps(rng: Rng) -> list[Case]:
    hungry = module_case("AttentionHead", (3, 4), HUNGRY_STATE, {"x": HUNGRY}, method="weights")
    return [
        hungry,
        head_case(rng, (7, 5), (5, 4), method="weights"),
        head_case(rng, (2, 5, 3), (3, 4, 7), bias=True, method="weights", note="a batch of 2"),
        head_case(rng, (7, 5), (5, 4), with_hole(rng, 7, 7), method="weights"),
    ]


def head_batch(rng: Rng) -> list[Case]:
    return [
        head_case(rng, (4, 4, 3), (3, 4), note="a batch of 4, four tokens"),
        head_case(rng, (2, 5, 3), (3, 4), note="a batch of 2"),
        head_case(rng, (2, 3, 7, 5), (5, 4), note="two batch axes"),
    ]


def head_numbers(rng: Rng) -> list[Case]:
    return [
        head_case(rng, (7, 5), (5, 3), dtype=torch.float32, note="float32"),
        head_case(rng, (7, 5), (5, 4), factor=100, note="scores in the thousands"),
    ]


def head_gradients(rng: Rng) -> list[Case]:
    use = call_module_with_gradients
    return [
        head_case(rng, (2, 7, 5), (5, 4, 3), bias=True, use=use, note="a batch of 2"),
        head_case(rng, (7, 5), (5, 4), with_hole(rng, 7, 7), use=use),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def unscaled(query, key):
    return query @ key.mT


def scaled(query, key, scale=None):
    return query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)


def attend_with(scores, normalize=lambda s: s.softmax(-1), mask_scores=hide):
    """A wrong attention made of wrong parts; each part is right unless given."""

    def attention(query, key, value, mask=None, *, scale=None):
        return normalize(mask_scores(scores(query, key, scale), mask)) @ value

    return attention


def by_size(size):
    """Attention whose scores are multiplied by a wrong default scale, ``size(query, key)``."""
    return attend_with(lambda q, k, s: unscaled(q, k) * (size(q, k) if s is None else s))


def masked_after(renormalize):
    def attention(query, key, value, mask=None, *, scale=None):
        weights = scaled(query, key, scale).softmax(-1)
        return renormalize(weights if mask is None else weights * mask) @ value

    return attention


def with_weights(query, key, value, mask=None, *, scale=None):
    weights = hide(scaled(query, key, scale), mask).softmax(-1)
    return weights @ value, weights


def values_forgotten(query, key, value, mask=None, *, scale=None):
    return hide(scaled(query, key, scale), mask).softmax(-1)


def roles_mixed(query, key, value, mask=None, *, scale=None):
    return hide(scaled(query, value, scale), mask).softmax(-1) @ key


def query_in_place(query, key, value, mask=None, *, scale=None):
    query *= query.shape[-1] ** -0.5 if scale is None else scale
    return hide(unscaled(query, key), mask).softmax(-1) @ value


def scaled_weights(query, key, value, mask=None, *, scale=None):
    weights = hide(unscaled(query, key), mask).softmax(-1)
    return weights * (query.shape[-1] ** -0.5 if scale is None else scale) @ value


RIGHT_ATTENTION = attend_with(scaled)


def wrong_head(attention=None, **changed):
    """A wrong ``AttentionHead``, right but for what is given.

    ``attention(q, k, mask, x)`` makes the weights. ``changed`` replaces methods; None removes one.
    """

    class AttentionHead(nn.Module):
        def __init__(self, d_model, d_k, d_v=None, bias=False):
            super().__init__()
            self.W_q = nn.Linear(d_model, d_k, bias=bias)
            self.W_k = nn.Linear(d_model, d_k, bias=bias)
            self.W_v = nn.Linear(d_model, d_v or d_k, bias=bias)

        def views(self, x):
            return self.W_q(x), self.W_k(x), self.W_v(x)

        def weights(self, x, mask=None):
            q, k, _ = self.views(x)
            if attention is None:
                return hide(scaled(q, k), mask).softmax(-1)
            return attention(q, k, mask, x)

        def forward(self, x, mask=None):
            return self.weights(x, mask) @ self.views(x)[2]

    for name, method in changed.items():
        if method is None:
            delattr(AttentionHead, name)
        else:
            setattr(AttentionHead, name, method)
    return AttentionHead


def built_with(sizes):
    """A head whose layers are made by ``sizes(d_model, d_k, d_v, bias)``: a dict of layers."""

    def __init__(self, d_model, d_k, d_v=None, bias=False):
        nn.Module.__init__(self)
        for name, layer in sizes(d_model, d_k, d_v or d_k, bias).items():
            setattr(self, name, layer)

    return wrong_head(__init__=__init__)


def no_super_init(self, d_model, d_k, d_v=None, bias=False):
    self.W_q = nn.Linear(d_model, d_k, bias=bias)
    self.W_k = nn.Linear(d_model, d_k, bias=bias)
    self.W_v = nn.Linear(d_model, d_v or d_k, bias=bias)


def values_like_tokens(self, d_model, d_k, d_v=None, bias=False):
    nn.Module.__init__(self)
    self.W_q = nn.Linear(d_model, d_k, bias=bias)
    self.W_k = nn.Linear(d_model, d_k, bias=bias)
    self.W_v = nn.Linear(d_model, d_v or d_model, bias=bias)


def in_a_dict(self, d_model, d_k, d_v=None, bias=False):
    nn.Module.__init__(self)
    sizes = {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}
    self.layers = {name: nn.Linear(d_model, size, bias=bias) for name, size in sizes.items()}


def map_scaled_by(size):
    """Weights from scores that are multiplied by ``size(q, x)``."""
    return lambda q, k, mask, x: hide(unscaled(q, k) * size(q, x), mask).softmax(-1)


def forward_with_map(self, x, mask=None):
    weights = self.weights(x, mask)
    return weights @ self.W_v(x), weights


def scores_as_weights(self, x, mask=None):
    return hide(scaled(self.W_q(x), self.W_k(x)), mask)


def map_over_mask(self, x, mask=None):
    return scaled(self.W_q(x), self.W_k(x)).softmax(-1)


def forward_right(self, x, mask=None):
    weights = hide(scaled(self.W_q(x), self.W_k(x)), mask).softmax(-1)
    return weights @ self.W_v(x)


# --- exercises -------------------------------------------------------------------------------

PROJECT = Exercise(
    target="kqv.project",
    reference=kqv.project,
    section="Chapter 5, “Three views of one token”",
    difficulty=1,
    minutes=5,
    criteria=(
        Criterion("a weighted sum of the features for every token", 2, project_values),
        Criterion("one token, one feature, any memory layout", 1, project_shapes),
        Criterion("batches", 1, project_batch),
        Criterion("float32 and large entries", 1, project_numbers),
        Criterion("gradients reach x and weight", 1, project_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the weight is transposed",
            "You multiply by the transposed weight, as `nn.Linear` and `F.linear` do with theirs, "
            "which are stored as (d_out, d_in). Here `weight` is (d_in, d_out): `x @ weight`.",
            lambda x, weight: x @ weight.mT,
        ),
        Misconception(
            "the weight stands on the left",
            "`weight @ x` is how papers write it that keep a token in a column. Here a token is a "
            "row, so the weight stands on the right: `x @ weight`.",
            lambda x, weight: weight @ x,
        ),
        Misconception(
            "both orders mixed",
            "`weight.T @ x` has the weight of the column convention and the tokens of the row "
            "convention, and mixes tokens instead of features. Either `x @ weight`, or transpose "
            "x too: `(weight.T @ x.T).T`.",
            lambda x, weight: weight.mT @ x,
        ),
        Misconception(
            "entries multiplied one by one",
            "`*` multiplies entries at the same place. A projection sums over the features of a "
            "token: that is the matrix product `@`.",
            lambda x, weight: x * weight,
        ),
        Misconception(
            "a matrix product that knows no batch",
            "`torch.mm` takes two matrices and nothing else. `@` (torch.matmul) takes leading axes "
            "along.",
            lambda x, weight: torch.mm(x, weight),
        ),
        Misconception(
            "the batch axes are lost",
            "You flatten all tokens into one long list and do not restore the shape. The result "
            "has the axes of x, with d_out in place of d_in.",
            lambda x, weight: x.reshape(-1, x.shape[-1]) @ weight,
        ),
        Misconception(
            "divided by the root of the width",
            "You divide by √d_in. A projection is the bare product; the scale in attention belongs "
            "to the scores.",
            lambda x, weight: x @ weight / x.shape[-1] ** 0.5,
        ),
        Misconception(
            "a non-linearity on top",
            "You set negative results to 0. A projection is linear: no ReLU here.",
            lambda x, weight: (x @ weight).relu(),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but the result has no history: after `.detach()`, `.data`, "
            "`.numpy()` or inside `torch.no_grad()` nothing can be learned through it. Stay with "
            "torch operations on x and weight themselves.",
            lambda x, weight: x.detach() @ weight.detach(),
        ),
    ),
    hints=(
        "One token, one new feature: output[i, b] is the sum over the features a of "
        "x[i, a] weight[a, b].",
        "The sum runs over the last axis of x and the first of weight: a matrix product.",
        "`@` takes any leading axes of x along.",
    ),
)

SCORES = Exercise(
    target="kqv.attention_scores",
    reference=kqv.attention_scores,
    section="Chapter 5, “Who fits whom”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        Criterion("every query with every key", 2, scores_values),
        Criterion("one query, one key, any memory layout", 1, scores_shapes),
        Criterion("batches", 2, scores_batch),
        Criterion("float32 and large entries", 1, scores_numbers),
        Criterion("gradients reach query and key", 1, scores_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            ".T on a batch",
            "`key.T` turns all axes around, the batch axis too, so a batch (b, n, d_k) becomes "
            "(d_k, n, b). `key.mT`, or `key.transpose(-2, -1)`, swaps the last two only.",
            lambda query, key: query @ reversed_axes(key),
        ),
        Misconception(
            "axes 0 and 1 swapped",
            "`transpose(0, 1)` swaps the first two axes. With a batch in front those are not the "
            "two you mean: count from the end, `key.transpose(-2, -1)`.",
            lambda query, key: query @ key.transpose(0, 1),
        ),
        Misconception(
            "axes 1 and 2 swapped",
            "`transpose(1, 2)` is right for exactly one batch axis and for nothing else. Count "
            "from the end: `key.transpose(-2, -1)` fits any number.",
            lambda query, key: query @ key.transpose(1, 2),
        ),
        Misconception(
            ".t() on a batch",
            "`.t()` takes matrices only. `key.mT` swaps the last two axes behind any batch.",
            lambda query, key: query @ key.t(),
        ),
        Misconception(
            "key and query swapped",
            "You return `key @ query.mT`: row i belongs to key i. Row i is to belong to query i, "
            "shape (..., m, n): `query @ key.mT`.",
            lambda query, key: key @ query.mT,
        ),
        Misconception(
            "the tokens are summed over, not the features",
            "`query.mT @ key` sums over tokens and compares feature a with feature b, shape "
            "(d_k, d_k). A score compares two tokens and sums over their features.",
            lambda query, key: query.mT @ key,
        ),
        Misconception(
            "only pairs at the same place",
            "`(query * key).sum(-1)` compares query i with key i alone. Every query meets every "
            "key: a matrix (..., m, n).",
            lambda query, key: (query * key).sum(-1),
        ),
        Misconception(
            "already divided by √d_k",
            "You scale the scores. Here they are the bare products; the scale is a step of its "
            "own, taken later.",
            lambda query, key: query @ key.mT / query.shape[-1] ** 0.5,
        ),
        Misconception(
            "already divided by d_k",
            "You divide by d_k. Here the scores are the bare products; the scale, by √d_k, is a "
            "step of its own, taken later.",
            lambda query, key: query @ key.mT / query.shape[-1],
        ),
        Misconception(
            "already a softmax",
            "You return weights. Scores come first: any real numbers, before the softmax.",
            lambda query, key: (query @ key.mT).softmax(-1),
        ),
        Misconception(
            "cosine similarity",
            "You divide by the lengths of query and key. A score is the bare dot product: a long "
            "key may count for more.",
            lambda query, key: (
                nn.functional.normalize(query, dim=-1) @ nn.functional.normalize(key, dim=-1).mT
            ),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda query, key: query.detach() @ key.detach().mT,
        ),
    ),
    hints=(
        "One score is a dot product: S[i, j] is the sum over the features a of "
        "query[i, a] key[j, a].",
        "A matrix product sums over the *first* axis of its right factor. Which axis of key has "
        "to come first?",
        "`.mT` swaps the last two axes and leaves any batch axes where they are.",
    ),
)

ATTENTION = Exercise(
    target="kqv.scaled_dot_product_attention",
    reference=kqv.scaled_dot_product_attention,
    section="Chapter 5, “From scores to an answer”",
    difficulty=2,
    minutes=20,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        Criterion("softmax of the scaled scores, times the values", 3, attention_values),
        Criterion("m, n, d_k and d_v may all differ", 1, attention_shapes),
        Criterion("a mask, True where attention is allowed", 2, attention_masks),
        Criterion("another scale", 1, attention_scales),
        Criterion("batches", 1, attention_batch),
        Criterion("large scores and float32", 1, attention_numbers),
        Criterion("gradients reach query, key and value", 1, attention_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "divided by d_k",
            "You divide the scores by d_k. The formula has its root, √d_k: "
            "`scores / math.sqrt(query.shape[-1])`.",
            by_size(lambda q, k: 1 / q.shape[-1]),
        ),
        Misconception(
            "no scale",
            "You take the softmax of the bare scores. Divide them by √d_k first.",
            by_size(lambda q, k: 1),
        ),
        Misconception(
            "multiplied by √d_k",
            "You multiply the scores by √d_k; they are divided by it.",
            by_size(lambda q, k: q.shape[-1] ** 0.5),
        ),
        Misconception(
            "divided by √n",
            "You divide by the root of the number of keys. d_k is the width of a query, the last "
            "axis: `query.shape[-1]`.",
            by_size(lambda q, k: k.shape[-2] ** -0.5),
        ),
        Misconception(
            "scaled after the softmax",
            "You divide the weights by √d_k, and their rows no longer sum to 1. Divide the scores, "
            "then take the softmax.",
            scaled_weights,
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs down the columns, so that each key's column sums to 1. Each query "
            "has a budget of 1: `softmax(dim=-1)`.",
            attend_with(scaled, lambda s: s.softmax(-2)),
        ),
        Misconception(
            "softmax over axis 1",
            "`softmax(dim=1)` is the keys' axis for two axes; with a batch in front it is the "
            "queries' or a batch axis. Count from the end: `dim=-1`.",
            attend_with(scaled, lambda s: s.softmax(1)),
        ),
        Misconception(
            "softmax over axis 0",
            "`softmax(dim=0)` runs over the queries, or over the batch if there is one. The keys "
            "are the last axis: `dim=-1`.",
            attend_with(scaled, lambda s: s.softmax(0)),
        ),
        Misconception(
            "key and query swapped",
            "Your scores are `key @ query.mT`, or your arguments stand in the order key, query, "
            "value. Row i belongs to query i: `query @ key.mT`, and the signature begins with "
            "query.",
            attend_with(lambda q, k, s: scaled(k, q, s)),
        ),
        Misconception(
            "key and value swapped",
            "You compare the queries with the values and return a blend of the keys. Compare with "
            "key, blend value.",
            roles_mixed,
        ),
        Misconception(
            ".T on a batch",
            "`key.T` turns all axes around, the batch axes too. `key.mT` swaps the last two only.",
            attend_with(
                lambda q, k, s: q @ reversed_axes(k) * (q.shape[-1] ** -0.5 if s is None else s)
            ),
        ),
        Misconception(
            "no softmax",
            "You mix the values with the scores themselves. They have to become weights first, "
            "positive and summing to 1: a softmax over the keys.",
            attend_with(scaled, lambda s: s, lambda s, mask: s if mask is None else s * mask),
        ),
        Misconception(
            "no maximum subtracted",
            "exp of a large score overflows, and ∞/∞ is NaN. Subtract each row's largest score "
            "first, or use `torch.softmax`, which does.",
            attend_with(scaled, no_max_subtracted),
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed: fill where the mask is False, "
            "`scores.masked_fill(~mask, -torch.inf)`.",
            attend_with(scaled, mask_scores=lambda s, m: s if m is None else hide(s, ~m)),
        ),
        Misconception(
            "the mask is ignored",
            "Your result is the same with and without the mask. Scores where it is False become "
            "−∞ before the softmax.",
            attend_with(scaled, mask_scores=lambda s, m: s),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1. "
            "Put −∞ into the scores before it, or divide by the row sums afterwards.",
            masked_after(lambda w: w),
        ),
        Misconception(
            "a score of 0 is not −∞",
            "You set masked scores to 0 (by `scores * mask`, or by filling in 1e-9 where -1e9 was "
            "meant). exp(0) = 1, so those keys still get weight. Fill in −∞.",
            attend_with(scaled, mask_scores=lambda s, m: s if m is None else s * m),
        ),
        Misconception(
            "the mask is added to the scores",
            "Adding a boolean adds 1 where it is True and 0 where it is not, which shuts nothing "
            "out. Use `masked_fill(~mask, -torch.inf)`.",
            attend_with(scaled, mask_scores=lambda s, m: s if m is None else s + m),
        ),
        Misconception(
            "0 · ∞ in the mask",
            "You multiply a mask by −∞, and 0 · ∞ is NaN wherever attention is allowed. "
            "`masked_fill` puts −∞ where it belongs and nowhere else.",
            attend_with(scaled, mask_scores=zero_times_infinity),
        ),
        Misconception(
            "scale is ignored",
            "You always use 1/√d_k. When `scale` is given, it takes its place.",
            attend_with(lambda q, k, s: scaled(q, k)),
        ),
        Misconception(
            "scale comes on top of 1/√d_k",
            "You multiply by `scale` and divide by √d_k as well. `scale` takes the place of "
            "1/√d_k.",
            attend_with(lambda q, k, s: scaled(q, k) * (1 if s is None else s)),
        ),
        Misconception(
            "divided by scale",
            "You divide by `scale`. The scores are multiplied by it: its default is 1/√d_k, not "
            "√d_k.",
            attend_with(lambda q, k, s: scaled(q, k, None if s is None else 1 / s)),
        ),
        Misconception(
            "the weights come back too",
            "You return the output and the weights. Functions in this course return one thing, "
            "here the output.",
            with_weights,
        ),
        Misconception(
            "the values are forgotten",
            "You return the weights (..., m, n). Multiply them with the values: `weights @ value`.",
            values_forgotten,
        ),
        Misconception(
            "the query is changed in place",
            "`query *= …` or `query /= …` writes into the caller's tensor. Scale the scores, or "
            "write `query = query * …`, which makes a new tensor.",
            query_in_place,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda query, key, value, mask=None, *, scale=None: RIGHT_ATTENTION(
                query.detach(), key.detach(), value.detach(), mask, scale=scale
            ),
        ),
    ),
    hints=(
        "Four steps, each a line: scores, scale, mask, softmax. Then the weights times the values.",
        "`scores.masked_fill(~mask, -torch.inf)` puts −∞ where the mask is False; exp(−∞) is 0.",
        "The softmax runs over the keys, which is the last axis of (..., m, n).",
    ),
)

HEAD = Exercise(
    target="kqv.AttentionHead",
    reference=kqv.AttentionHead,
    section="Chapter 5, “A module that holds the three views”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("attention between three projections of x", 3, head_values),
        Criterion("d_v may differ from d_k; one token", 1, head_widths),
        Criterion("bias=True adds a bias to each projection", 1, head_bias),
        Criterion("a mask, True where attention is allowed", 1, head_masks),
        Criterion("weights(x, mask) returns the attention map", 2, head_maps),
        Criterion("batches", 1, head_batch),
        Criterion("float32 and large scores", 1, head_numbers),
        Criterion("gradients reach x and every weight", 2, head_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "super().__init__() is missing",
            "`nn.Module` keeps its lists of parameters and layers, and it creates them in its own "
            "`__init__`. Call `super().__init__()` before you assign the first layer.",
            wrong_head(__init__=no_super_init),
        ),
        Misconception(
            "divided by √d_model",
            "You divide the scores by the root of d_model, the width of x. Queries and keys have "
            "d_k features; it is √d_k that keeps their products in range.",
            wrong_head(map_scaled_by(lambda q, x: x.shape[-1] ** -0.5)),
        ),
        Misconception(
            "divided by d_k",
            "You divide the scores by d_k. The formula has its root, √d_k.",
            wrong_head(map_scaled_by(lambda q, x: 1 / q.shape[-1])),
        ),
        Misconception(
            "no scale",
            "You take the softmax of the bare scores. Divide them by √d_k first.",
            wrong_head(map_scaled_by(lambda q, x: 1)),
        ),
        Misconception(
            "divided by √n",
            "You divide by the root of the number of tokens. d_k is the last axis of the queries.",
            wrong_head(map_scaled_by(lambda q, x: x.shape[-2] ** -0.5)),
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs down the columns. Each query has a budget of 1: `softmax(dim=-1)`.",
            wrong_head(lambda q, k, mask, x: hide(scaled(q, k), mask).softmax(-2)),
        ),
        Misconception(
            "key and query swapped",
            "You compare `W_k(x)` as the queries with `W_q(x)` as the keys, so row i says who "
            "looks for token i. Row i belongs to token i as a query.",
            wrong_head(lambda q, k, mask, x: hide(scaled(k, q), mask).softmax(-1)),
        ),
        Misconception(
            ".T on a batch",
            "`.T` turns all axes around, the batch axes too. `.mT` swaps the last two only.",
            wrong_head(
                lambda q, k, mask, x: hide(q @ reversed_axes(k) / q.shape[-1] ** 0.5, mask).softmax(
                    -1
                )
            ),
        ),
        Misconception(
            "d_v assumed equal to d_k",
            "Your `W_v` has d_k outputs. Values may have another width: `nn.Linear(d_model, d_v)`, "
            "where d_v is d_k only if it is not given.",
            built_with(
                lambda d_model, d_k, d_v, bias: {
                    name: nn.Linear(d_model, d_k, bias=bias) for name in ("W_q", "W_k", "W_v")
                }
            ),
        ),
        Misconception(
            "d_v taken to be d_model",
            "Where d_v is not given, your values are as wide as the tokens. They are to be as wide "
            "as the keys then: `d_v = d_k if d_v is None else d_v`.",
            wrong_head(__init__=values_like_tokens),
        ),
        Misconception(
            "in and out exchanged",
            "You built `nn.Linear(d_k, d_model)`. Its first argument is the number of features "
            "that come in: `nn.Linear(d_model, d_k)`.",
            built_with(
                lambda d_model, d_k, d_v, bias: {
                    "W_q": nn.Linear(d_k, d_model, bias=bias),
                    "W_k": nn.Linear(d_k, d_model, bias=bias),
                    "W_v": nn.Linear(d_v, d_model, bias=bias),
                }
            ),
        ),
        Misconception(
            "bias is ignored",
            "Your projections never have a bias. Hand the argument on: "
            "`nn.Linear(d_model, d_k, bias=bias)`.",
            built_with(
                lambda d_model, d_k, d_v, bias: {
                    "W_q": nn.Linear(d_model, d_k, bias=False),
                    "W_k": nn.Linear(d_model, d_k, bias=False),
                    "W_v": nn.Linear(d_model, d_v, bias=False),
                }
            ),
        ),
        Misconception(
            "a bias that was not asked for",
            "`nn.Linear` has a bias unless told otherwise. Hand the argument on: "
            "`nn.Linear(d_model, d_k, bias=bias)`.",
            built_with(
                lambda d_model, d_k, d_v, bias: {
                    "W_q": nn.Linear(d_model, d_k),
                    "W_k": nn.Linear(d_model, d_k),
                    "W_v": nn.Linear(d_model, d_v),
                }
            ),
        ),
        Misconception(
            "bare matrices in place of nn.Linear",
            "You hold the weights as `nn.Parameter`. The exercise asks for `nn.Linear` layers "
            "named W_q, W_k and W_v, which bring weight and bias with them.",
            built_with(
                lambda d_model, d_k, d_v, bias: {
                    "W_q": nn.Parameter(torch.zeros(d_model, d_k)),
                    "W_k": nn.Parameter(torch.zeros(d_model, d_k)),
                    "W_v": nn.Parameter(torch.zeros(d_model, d_v)),
                }
            ),
        ),
        Misconception(
            "the layers are hidden from the module",
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, "
            "`self.W_q = nn.Linear(…)`.",
            wrong_head(__init__=in_a_dict),
        ),
        Misconception(
            "the values are not projected",
            "You mix the tokens themselves. What is mixed is their third view, `self.W_v(x)`.",
            wrong_head(views=lambda self, x: (self.W_q(x), self.W_k(x), x)),
        ),
        Misconception(
            "one view for query and key",
            "You compare `W_q(x)` with itself, so the scores are symmetric. The keys are a view "
            "of their own, `self.W_k(x)`.",
            wrong_head(views=lambda self, x: (self.W_q(x), self.W_q(x), self.W_v(x))),
        ),
        Misconception(
            "one view for key and value",
            "You mix `W_k(x)`. The keys say what can be found, the values what is taken away: "
            "mix `self.W_v(x)`.",
            wrong_head(
                views=lambda self, x: (self.W_q(x), self.W_k(x), self.W_k(x)),
            ),
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed.",
            wrong_head(
                lambda q, k, mask, x: hide(scaled(q, k), None if mask is None else ~mask).softmax(
                    -1
                )
            ),
        ),
        Misconception(
            "the mask is ignored",
            "Your result is the same with and without the mask: hand it on to the attention.",
            wrong_head(lambda q, k, mask, x: scaled(q, k).softmax(-1)),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1. "
            "Put −∞ into the scores before it.",
            wrong_head(
                lambda q, k, mask, x: scaled(q, k).softmax(-1) * (1 if mask is None else mask)
            ),
        ),
        Misconception(
            "weights is missing",
            "The output is right, but there is no method `weights`. It takes the arguments of "
            "`forward` and returns the attention map (..., n, n) that `forward` used.",
            wrong_head(weights=None, forward=forward_right),
        ),
        Misconception(
            "weights returns the scores",
            "Your `weights` returns what goes into the softmax. It is to return what comes out of "
            "it: rows that sum to 1.",
            wrong_head(forward=forward_right, weights=scores_as_weights),
        ),
        Misconception(
            "weights ignores the mask",
            "Your `forward` uses the mask and your `weights` does not. It is to return the map "
            "that `forward` used.",
            wrong_head(forward=forward_right, weights=map_over_mask),
        ),
        Misconception(
            "weights returns the output",
            "Your `weights` returns the mixed values. It is to return the map (..., n, n) that "
            "they were mixed with.",
            wrong_head(forward=forward_right, weights=forward_right),
        ),
        Misconception(
            "the weights come back too",
            "Your `forward` returns output and weights. It returns the output alone; `weights` is "
            "a method of its own.",
            wrong_head(forward=forward_with_map),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
            "`torch.no_grad()` cut the weights' history.",
            wrong_head(
                views=lambda self, x: tuple(f(x).detach() for f in (self.W_q, self.W_k, self.W_v))
            ),
        ),
    ),
    hints=(
        "`__init__` begins with `super().__init__()` and makes three layers; `forward` uses them.",
        "`nn.Linear(d_model, d_k, bias=bias)` maps the last axis and takes any batch along.",
        "Your `scaled_dot_product_attention` does the rest. For `weights`, stop before the values.",
    ),
)

EXERCISES = (PROJECT, SCORES, ATTENTION, HEAD)
