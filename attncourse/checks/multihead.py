"""The exercises of chapter 9, several heads.

In float64 cases d_head is a power of 4, so that 1/√d_head is exact in every precision. Batches of
as many sequences as heads are among the cases: there a batch axis that meets the axis of the heads
gives wrong numbers and no error.
"""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from attncourse import multihead
from attncourse.checks.drivers import (
    call_module_with_gradients,
    output_of_made,
    parameters_made,
    shared_by_made,
    type_built,
    with_gradients,
)
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import State, module_case, normal, spread, tensor, with_hole
from attncourse.checks.parts import hide

# --- cases -----------------------------------------------------------------------------------


def split_values(rng: Rng) -> list[Case]:
    return [
        Case((torch.arange(12).reshape(2, 6).double(), 3), note="two tokens, three heads"),
        Case((normal(rng, 7, 12), 4)),
        Case((normal(rng, 3, 12), 3), note="as many tokens as heads"),
        Case((normal(rng, 5, 9), 3), note="as many heads as features in a head"),
    ]


def split_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 1, 6), 3), note="one token"),
        Case((normal(rng, 5, 6), 1), note="one head"),
        Case((normal(rng, 5, 4), 4), note="one feature in a head"),
        Case((normal(rng, 12, 7).T, 4), note="not contiguous in memory"),
    ]


def split_batch(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 2, 5, 12), 3), note="a batch of 2"),
        Case((normal(rng, 3, 5, 12), 3), note="as many sequences as heads"),
        Case((normal(rng, 2, 3, 7, 10), 5), note="two batch axes"),
        Case((normal(rng, 5, 2, 12).transpose(0, 1), 3), note="a batch, not contiguous in memory"),
    ]


def split_numbers(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 5, 12).float(), 3), note="float32"),
        Case((1e8 * normal(rng, 7, 6), 2), note="large entries"),
    ]


def split_gradients(rng: Rng) -> list[Case]:
    return [Case((normal(rng, 2, 5, 12), 3), use=with_gradients("x"), note="a batch of 2")]


def split_refusals(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 5, 7), 2), raises=ValueError, note="7 features, 2 heads"),
        Case((normal(rng, 6, 8), 3), raises=ValueError, note="8 features, 3 heads"),
    ]


def merge_values(rng: Rng) -> list[Case]:
    return [
        Case((torch.arange(12).reshape(3, 2, 2).double(),), note="three heads, two tokens"),
        Case((normal(rng, 4, 7, 3),)),
        Case((normal(rng, 3, 3, 4),), note="as many tokens as heads"),
        Case((normal(rng, 5, 2, 2),), note="as many tokens as features in a head"),
    ]


def merge_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 3, 1, 4),), note="one token"),
        Case((normal(rng, 1, 5, 4),), note="one head"),
        Case((normal(rng, 4, 5, 1),), note="one feature in a head"),
        Case((normal(rng, 5, 3, 4).transpose(0, 1),), note="not contiguous in memory"),
    ]


def merge_batch(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 2, 3, 5, 4),), note="a batch of 2"),
        Case((normal(rng, 3, 3, 5, 4),), note="as many sequences as heads"),
        Case((normal(rng, 2, 3, 5, 7, 2),), note="two batch axes"),
    ]


def merge_numbers(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 3, 5, 4).float(),), note="float32"),
        Case((1e8 * normal(rng, 2, 7, 3),), note="large entries"),
    ]


def merge_gradients(rng: Rng) -> list[Case]:
    return [Case((normal(rng, 2, 3, 5, 4),), use=with_gradients("x"), note="a batch of 2")]


def layers(rng: Rng, bias: bool, **shapes: tuple[int, int]) -> State:
    """Weights of order one for layers of these shapes, and biases that are not zero."""
    state = {}
    for name, (d_out, d_in) in shapes.items():
        state[f"{name}.weight"] = spread(rng, d_out, d_in)
        if bias:
            sign = rng.choice([-1, 1], d_out)
            state[f"{name}.bias"] = tensor(rng.uniform(0.5, 1.5, d_out) * sign)
    return state


def heads_case(
    rng: Rng,
    shape: tuple[int, ...],
    n_heads: int,
    n_kv_heads: int | None = None,
    *,
    others: tuple[tuple[int, ...], ...] = (),
    mask: torch.Tensor | None = None,
    bias: bool = True,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    **more,
) -> Case:
    """A ``MultiHeadAttention`` of h heads with random weights on a query of this shape.

    ``others`` are the shapes of key and value, where these are given.
    """
    d = shape[-1]
    d_kv = d // n_heads * (n_kv_heads or n_heads)
    state = layers(rng, bias, W_q=(d, d), W_k=(d_kv, d), W_v=(d_kv, d), W_o=(d, d))
    inputs = {"query": factor * spread(rng, *shape)}
    inputs |= {name: spread(rng, *s) for name, s in zip(("key", "value"), others, strict=False)}
    inputs = {name: x.to(dtype) for name, x in inputs.items()}
    if mask is not None:
        inputs = {"query": None, "key": None, "value": None} | inputs | {"mask": mask}
    options = {} if n_kv_heads is None else {"n_kv_heads": n_kv_heads}
    options |= {} if bias else {"bias": False}
    state = {name: w.to(dtype) for name, w in state.items()}
    case = module_case("MultiHeadAttention", (d, n_heads), state, inputs, options=options, **more)
    given = ", ".join("None" if x is None else name for name, x in inputs.items())
    return replace(case, shown=case.shown.replace(f"({', '.join(inputs)})", f"({given})"))


# Three tokens of two features and two heads of one: each head sees one number of each token.
TOKENS = tensor([[1, 0], [0, 1], [2, 1]])
SMALL_STATE = {
    "W_q.weight": tensor([[1, 0], [1, 2]]),
    "W_k.weight": tensor([[1, 1], [0, -1]]),
    "W_v.weight": tensor([[1, 0], [0, 10]]),
    "W_o.weight": tensor([[1, 0], [1, 1]]),
}


def small_case(**more) -> Case:
    options = {"bias": False}
    inputs = {"query": TOKENS}
    return module_case("MultiHeadAttention", (2, 2), SMALL_STATE, inputs, options=options, **more)


def heads_values(rng: Rng) -> list[Case]:
    return [
        small_case(note="each head has one feature"),
        heads_case(rng, (7, 12), 3),
        heads_case(rng, (3, 12), 3, note="as many tokens as heads"),
        heads_case(rng, (5, 4), 1, note="one head"),
        heads_case(rng, (5, 32), 2, note="d_head = 16"),
        heads_case(rng, (1, 8), 2, note="one token"),
    ]


def heads_cross(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (5, 8), 2, others=((7, 8),), note="no value given: it is the key"),
        heads_case(rng, (5, 12), 3, others=((7, 12), (7, 12))),
        heads_case(rng, (5, 12), 3, others=((5, 12),), note="as many keys as queries"),
        heads_case(rng, (1, 8), 2, others=((5, 8), (5, 8)), note="one query"),
        heads_case(rng, (2, 3, 8), 2, others=((2, 7, 8), (2, 7, 8)), note="a batch of 2"),
    ]


def heads_shared(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (7, 16), 4, 2),
        heads_case(rng, (5, 16), 4, 1, note="one key and value head for all"),
        heads_case(rng, (2, 5, 24), 6, 2, note="runs of three, a batch of 2"),
        heads_case(rng, (5, 24), 6, 3, others=((7, 24),), note="keys from elsewhere"),
    ]


def heads_bias(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (7, 12), 3, bias=False),
        heads_case(rng, (5, 16), 4, 2, bias=False),
    ]


def heads_masks(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (7, 12), 3, mask=with_hole(rng, 7, 7), note="(m, n)"),
        heads_case(rng, (3, 7, 12), 3, mask=with_hole(rng, 7, 7), note="(m, n), a batch of 3"),
        heads_case(rng, (2, 7, 12), 3, mask=with_hole(rng, 2, 7, 7), note="(b, m, n)"),
        heads_case(
            rng, (3, 7, 12), 3, mask=with_hole(rng, 3, 7, 7), note="(b, m, n), as many as heads"
        ),
        heads_case(
            rng,
            (2, 5, 8),
            2,
            others=((2, 7, 8),),
            mask=with_hole(rng, 2, 5, 7),
            note="(b, m, n), keys from elsewhere, as many sequences as heads",
        ),
    ]


def heads_own_masks(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (2, 5, 12), 3, mask=with_hole(rng, 2, 3, 5, 5), note="(b, h, m, n)"),
        heads_case(rng, (3, 5, 12), 3, mask=with_hole(rng, 3, 3, 5, 5), note="(b, h, m, n), b = h"),
        heads_case(
            rng, (2, 5, 16), 4, 2, mask=with_hole(rng, 2, 4, 5, 5), note="(b, h, m, n), n_kv_heads"
        ),
    ]


def heads_maps(rng: Rng) -> list[Case]:
    maps = partial(heads_case, rng, method="weights")
    return [
        small_case(method="weights"),
        maps((7, 12), 3),
        maps((2, 5, 12), 3, others=((2, 7, 12),), note="keys from elsewhere, a batch of 2"),
        maps((5, 16), 4, 2),
        maps((3, 7, 12), 3, mask=with_hole(rng, 3, 7, 7), note="(b, m, n), as many as heads"),
        maps((2, 5, 12), 3, mask=with_hole(rng, 2, 3, 5, 5), note="(b, h, m, n)"),
    ]


def heads_batch(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (2, 7, 12), 3, note="a batch of 2"),
        heads_case(rng, (3, 5, 12), 3, note="as many sequences as heads"),
        heads_case(rng, (2, 3, 5, 8), 2, note="two batch axes"),
    ]


def heads_numbers(rng: Rng) -> list[Case]:
    return [
        heads_case(rng, (5, 21), 3, dtype=torch.float32, note="float32, d_head = 7"),
        heads_case(rng, (7, 8), 2, factor=100, note="scores in the thousands"),
    ]


def heads_gradients(rng: Rng) -> list[Case]:
    use = call_module_with_gradients
    return [
        heads_case(rng, (2, 5, 12), 3, use=use, note="a batch of 2"),
        heads_case(rng, (5, 16), 4, 2, others=((7, 16),), mask=with_hole(rng, 5, 7), use=use),
    ]


def heads_refusals(rng: Rng) -> list[Case]:
    return [
        Case((d, h), use=type_built, shown=f"MultiHeadAttention({d}, {h})", raises=ValueError)
        for d, h in ((7, 2), (12, 5))
    ]


NAMES = ("W_q", "W_k", "W_v", "W_o")


def naive_state(rng: Rng, d_model: int, n_heads: int, *, bias: bool = True) -> State:
    """The state of a ``MultiHeadNaive``: float32, like a module as it is built."""
    d_head = d_model // n_heads
    state = {}
    for i in range(n_heads):
        parts = layers(rng, bias, **{name: (d_head, d_model) for name in NAMES[:3]})
        state |= {f"heads.{i}.{name}": w for name, w in parts.items()}
    state |= layers(rng, bias, W_o=(d_model, d_model))
    return {name: w.float() for name, w in state.items()}


def naive_case(
    rng: Rng, d_model: int, n_heads: int, names: tuple[str, ...] = (), *, bias: bool = True, **more
) -> Case:
    """The parameters of these names after a conversion; of another driver what it is for."""
    state = naive_state(rng, d_model, n_heads, bias=bias)
    call = f"naive_to_batched(naive), naive = MultiHeadNaive({d_model}, {n_heads}"
    call += ")" if bias else ", bias=False)"
    kwargs = {"names": names} if names else {}
    return Case(kwargs=kwargs | more.pop("inputs", {}) | state, shown=call, **more)


def small_naive(rng: Rng) -> Case:
    """Whole numbers: two heads of one feature. Their rows are to stand below one another."""
    names = [f"heads.{i}.{name}.weight" for i in range(2) for name in NAMES[:3]]
    state = {name: tensor([[k, k + 1]], torch.float32) for k, name in enumerate(names)}
    state["W_o.weight"] = tensor([[1, 2], [3, 4]], torch.float32)
    return Case(
        kwargs={"names": ("W_q.weight", "W_k.weight", "W_v.weight")} | state,
        use=parameters_made,
        shown="naive_to_batched(naive), naive = MultiHeadNaive(2, 2, bias=False)",
    )


def naive_weights(rng: Rng) -> list[Case]:
    names = ("W_q.weight", "W_k.weight", "W_v.weight")
    return [
        small_naive(rng),
        naive_case(rng, 12, 3, names, use=parameters_made),
        naive_case(rng, 8, 4, names, bias=False, use=parameters_made),
        naive_case(rng, 5, 1, names, use=parameters_made, note="one head"),
    ]


def naive_biases(rng: Rng) -> list[Case]:
    names = ("W_q.bias", "W_k.bias", "W_v.bias")
    return [
        naive_case(rng, 12, 3, names, use=parameters_made),
        naive_case(rng, 10, 2, names, use=parameters_made),
    ]


def naive_outputs(rng: Rng) -> list[Case]:
    return [
        naive_case(rng, 12, 3, ("W_o.weight", "W_o.bias"), use=parameters_made),
        naive_case(rng, 8, 4, ("W_o.weight",), bias=False, use=parameters_made),
    ]


def naive_same(rng: Rng) -> list[Case]:
    def on(*shape: int) -> dict:
        return {"inputs": ("x",), "x": spread(rng, *shape).float()}

    return [
        naive_case(rng, 12, 3, use=output_of_made, inputs=on(7, 12)),
        naive_case(rng, 8, 4, use=output_of_made, inputs=on(4, 5, 8), note="a batch of 4"),
        naive_case(rng, 10, 2, bias=False, use=output_of_made, inputs=on(3, 10)),
    ]


def naive_own(rng: Rng) -> list[Case]:
    return [
        naive_case(rng, 12, 3, use=shared_by_made, note="tensors of naive that live on in it"),
        naive_case(rng, 5, 1, use=shared_by_made, note="one head"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def split(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge(x):
    return x.transpose(-3, -2).flatten(-2)


def refusing(x, n_heads):
    """x; ``ValueError`` where n_heads does not divide its width."""
    if x.shape[-1] % n_heads:
        raise ValueError("width not divisible by n_heads")
    return x


def wrong_split(cut):
    """A wrong ``split_heads`` that refuses what it is to refuse."""
    return lambda x, n_heads: cut(refusing(x, n_heads), n_heads)


def by_assertion(x, n_heads):
    assert x.shape[-1] % n_heads == 0, "width not divisible by n_heads"
    return split(x, n_heads)


def split_one_batch_axis(x, n_heads):
    b, n, d = refusing(x, n_heads).shape
    return x.reshape(b, n, n_heads, d // n_heads).transpose(1, 2)


def merge_one_batch_axis(x):
    b, h, n, d_head = x.shape
    return x.transpose(1, 2).reshape(b, n, h * d_head)


def rest_cut_off(x, n_heads):
    d_head = x.shape[-1] // n_heads
    return split(x[..., : n_heads * d_head], n_heads)


def scores_of(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


def weigh(self, q, k, mask):
    return hide(scores_of(q, k), mask).softmax(-1)


def for_every_head(self, mask, n_axes):
    """An axis for the heads, where a mask has a batch axis and none of them."""
    return mask.unsqueeze(-3) if mask is not None and 2 < mask.ndim < n_axes else mask


def given(query, key, value):
    key = query if key is None else key
    return query, key, key if value is None else value


def wrong_heads(**changed):
    """A wrong ``MultiHeadAttention``, right but for the methods given; None removes one."""

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
            super().__init__()
            if d_model % n_heads:
                raise ValueError("d_model is not divisible by n_heads")
            self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
            d_kv = d_model // n_heads * self.n_kv_heads
            self.W_q = nn.Linear(d_model, d_model, bias=bias)
            self.W_k = nn.Linear(d_model, d_kv, bias=bias)
            self.W_v = nn.Linear(d_model, d_kv, bias=bias)
            self.W_o = nn.Linear(d_model, d_model, bias=bias)

        def given(self, query, key, value):
            return given(query, key, value)

        def split(self, x, n_heads):
            return split(x, n_heads)

        def share(self, x):
            return x.repeat_interleave(self.n_heads // self.n_kv_heads, -3)

        def views(self, query, key, value):
            query, key, value = self.given(query, key, value)
            q = self.split(self.W_q(query), self.n_heads)
            k = self.split(self.W_k(key), self.n_kv_heads)
            v = self.split(self.W_v(value), self.n_kv_heads)
            return q, self.share(k), self.share(v)

        mask_for = for_every_head
        weigh = weigh

        def finish(self, heads):
            return self.W_o(merge(heads))

        def weights(self, query, key=None, value=None, mask=None):
            q, k, _ = self.views(query, key, value)
            return self.weigh(q, k, self.mask_for(mask, q.ndim))

        def forward(self, query, key=None, value=None, mask=None):
            q, k, v = self.views(query, key, value)
            return self.finish(self.weigh(q, k, self.mask_for(mask, q.ndim)) @ v)

    for name, method in changed.items():
        if method is None:
            delattr(MultiHeadAttention, name)
        else:
            setattr(MultiHeadAttention, name, method)
    return MultiHeadAttention


def built_with(make):
    """Heads whose layers are made by ``make(d_model, n_heads, n_kv_heads, bias)``, by name."""

    def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
        nn.Module.__init__(self)
        if d_model % n_heads:
            raise ValueError("d_model is not divisible by n_heads")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
        for name, layer in make(d_model, n_heads, self.n_kv_heads, bias).items():
            setattr(self, name, layer)

    return __init__


def four_layers(d_model, n_heads, n_kv_heads, bias):
    d_kv = d_model // n_heads * n_kv_heads
    sizes = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    return {name: nn.Linear(d_model, size, bias=bias) for name, size in sizes.items()}


def weigh_scaled_by(factor):
    """Weights from scores that are multiplied by ``factor(self, q)``."""
    return lambda self, q, k, mask: hide(q @ k.mT * factor(self, q), mask).softmax(-1)


def asserting(self, d_model, n_heads, n_kv_heads=None, bias=True):
    assert d_model % n_heads == 0, "d_model is not divisible by n_heads"
    built_with(four_layers)(self, d_model, n_heads, n_kv_heads, bias)


def unasked(self, d_model, n_heads, n_kv_heads=None, bias=True):
    nn.Module.__init__(self)
    self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
    for name, layer in four_layers(d_model, n_heads, self.n_kv_heads, bias).items():
        setattr(self, name, layer)


def no_super_init(self, d_model, n_heads, n_kv_heads=None, bias=True):
    self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
    self.W_q = nn.Linear(d_model, d_model, bias=bias)


# Cut and joined in the order in which the numbers lie in memory.


def straight(x, n_heads):
    return x.reshape(*x.shape[:-2], n_heads, x.shape[-2], -1)


def straight_back(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def mean_map(self, q, k, mask):
    return weigh(self, q, k, mask).mean(-3, keepdim=True)


def forward_right(self, query, key=None, value=None, mask=None):
    q, k, v = self.views(query, key, value)
    return self.W_o(merge(weigh(self, q, k, self.mask_for(mask, q.ndim)) @ v))


def forward_with_maps(self, query, key=None, value=None, mask=None):
    maps = self.weights(query, key, value, mask)
    return self.W_o(merge(maps @ self.views(query, key, value)[2])), maps


def mean_of_maps(self, query, key=None, value=None, mask=None):
    q, k, _ = self.views(query, key, value)
    return weigh(self, q, k, self.mask_for(mask, q.ndim)).mean(-3)


def maps_unmasked(self, query, key=None, value=None, mask=None):
    q, k, _ = self.views(query, key, value)
    return scores_of(q, k).softmax(-1)


def maps_as_scores(self, query, key=None, value=None, mask=None):
    q, k, _ = self.views(query, key, value)
    return hide(scores_of(q, k), self.mask_for(mask, q.ndim))


def views_of_a_batch(self, query, key, value):
    query, key, value = given(query, key, value)
    b, m, _ = query.shape
    q = self.W_q(query).reshape(b, m, self.n_heads, -1).transpose(1, 2)
    k = self.W_k(key).reshape(b, key.shape[1], self.n_kv_heads, -1).transpose(1, 2)
    v = self.W_v(value).reshape(b, key.shape[1], self.n_kv_heads, -1).transpose(1, 2)
    return q, self.share(k), self.share(v)


def one_key_for_all(self, query, key, value):
    query, key, value = given(query, key, value)
    q = split(self.W_q(query), self.n_heads)
    k = split(self.W_k(key), self.n_kv_heads)[..., :1, :, :]
    return q, k, self.share(split(self.W_v(value), self.n_kv_heads))


def detached(self, query, key, value):
    query, key, value = given(query, key, value)
    q = split(self.W_q(query), self.n_heads)
    k, v = (split(W(x), self.n_kv_heads) for W, x in ((self.W_k, key), (self.W_v, value)))
    return q.detach(), self.share(k).detach(), self.share(v).detach()


def converted(
    rows=lambda tensors: torch.cat(tensors),
    weight=lambda w: w,
    source=lambda name: name,
    W_o=lambda w: w,
    parts=("weight", "bias"),
    heads=lambda naive: list(naive.heads),
    n_heads=len,
):
    """A wrong ``naive_to_batched`` made of wrong parts; each part is right unless given."""

    def naive_to_batched(naive):
        bias = naive.W_o.bias is not None
        made = multihead.MultiHeadAttention(naive.W_o.in_features, n_heads(naive.heads), bias=bias)
        with torch.no_grad():
            for part in parts if bias else ("weight",):
                getattr(made.W_o, part).copy_(
                    W_o(naive.W_o.weight) if part == "weight" else naive.W_o.bias
                )
                for name in NAMES[:3]:
                    found = [getattr(getattr(h, source(name)), part) for h in heads(naive)]
                    found = [weight(w) for w in found] if part == "weight" else found
                    joined = rows(found) if part == "weight" else torch.cat(found)
                    getattr(getattr(made, name), part).copy_(joined)
        return made

    return naive_to_batched


def output_layer_shared(naive):
    made = multihead.naive_to_batched(naive)
    made.W_o = naive.W_o
    return made


def output_layer_left(naive):
    made = multihead.naive_to_batched(naive)
    fresh = nn.Linear(naive.W_o.in_features, naive.W_o.out_features, naive.W_o.bias is not None)
    made.W_o = fresh
    return made


def without_biases(naive):
    made = multihead.naive_to_batched(naive)
    if naive.W_o.bias is None:
        return made
    bare = multihead.MultiHeadAttention(naive.W_o.in_features, len(naive.heads), bias=False)
    bare.load_state_dict({k: w for k, w in made.state_dict().items() if k.endswith("weight")})
    return bare


def biases_left(naive):
    made = multihead.naive_to_batched(naive)
    if naive.W_o.bias is not None:
        for layer in (made.W_q, made.W_k, made.W_v):
            nn.init.uniform_(layer.bias)
    return made


def interleaved(tensors):
    """Row 0 of every head, then row 1 of every head, and so on."""
    return torch.stack(tensors, dim=1).flatten(0, 1)


# --- exercises -------------------------------------------------------------------------------

SPLIT = Exercise(
    target="multihead.split_heads",
    reference=multihead.split_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=2,
    minutes=10,
    criteria=(
        Criterion("head i gets features i·d/h to (i+1)·d/h − 1 of every token", 2, split_values),
        Criterion("one token, one head, any memory layout", 1, split_shapes),
        Criterion("batches", 2, split_batch),
        Criterion("float32 and large entries", 1, split_numbers),
        Criterion("gradients reach x", 1, split_gradients),
        Criterion("refuses a width that n_heads does not divide", 1, split_refusals),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "reshaped straight to (h, n, d/h)",
            "A reshape hands out the numbers in the order in which they lie in memory: all of "
            "token 0, then all of token 1. So your head 0 gets the first tokens, not the first "
            "features. Cut the features, `(..., n, h, d/h)`, and then let tokens and heads change "
            "places.",
            wrong_split(straight),
        ),
        Misconception(
            "the axes are left as they are",
            "You return (..., n, h, d/h). The heads are to come before the tokens: "
            "`.transpose(-3, -2)`.",
            wrong_split(lambda x, h: x.unflatten(-1, (h, -1))),
        ),
        Misconception(
            "a head takes every h-th feature",
            "Your head i gets features i, i + h, i + 2h, … It is to get a run of d/h features, so "
            "the axis of the heads comes first when you cut: `(..., n, h, d/h)`.",
            wrong_split(lambda x, h: x.unflatten(-1, (-1, h)).movedim(-1, -3)),
        ),
        Misconception(
            "n_heads taken for the width of a head",
            "You make d/h heads of h features. It is h heads of d/h features.",
            wrong_split(lambda x, h: split(x, x.shape[-1] // h)),
        ),
        Misconception(
            "axes 1 and 2 swapped",
            "`transpose(1, 2)`, or a `permute` of four axes, is right for exactly one batch axis. "
            "Count from the end: `.transpose(-3, -2)`.",
            wrong_split(lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2)),
        ),
        Misconception(
            "axes 0 and 1 swapped",
            "`transpose(0, 1)` swaps tokens and heads only as long as there is no batch in front. "
            "Count from the end: `.transpose(-3, -2)`.",
            wrong_split(lambda x, h: x.unflatten(-1, (h, -1)).transpose(0, 1)),
        ),
        Misconception(
            "exactly one batch axis",
            "`b, n, d = x.shape` fits one batch axis and nothing else. `*batch, n, d = x.shape` "
            "fits any number, none included.",
            split_one_batch_axis,
        ),
        Misconception(
            "tokens and features of a head swapped",
            "You return (..., h, d/h, n), which is how the keys stand in `query @ key.mT`. Here a "
            "token is a row: (..., h, n, d/h).",
            wrong_split(lambda x, h: split(x, h).mT),
        ),
        Misconception(
            "every head gets all features",
            "You repeat x for every head. The heads share the features out: d/h for each.",
            wrong_split(lambda x, h: x.unsqueeze(-3).expand(*x.shape[:-2], h, *x.shape[-2:])),
        ),
        Misconception(
            "a list of heads",
            "You return a tuple or a list of h tensors. Put them on an axis of their own: "
            "`torch.stack(parts, dim=-3)`.",
            wrong_split(lambda x, h: x.chunk(h, dim=-1)),
        ),
        Misconception(
            "the tokens are shared out",
            "You cut the sequence into h pieces. Every head sees every token, and a part of its "
            "features.",
            wrong_split(lambda x, h: torch.stack(x.chunk(h, dim=-2), dim=-3)),
        ),
        Misconception(
            "features are dropped in silence",
            "Where h does not divide d, `d // h` rounds down and the last features are lost "
            "without a word. Raise ValueError.",
            rest_cut_off,
        ),
        Misconception(
            "not a ValueError",
            "You refuse a width that h does not divide, but by an `assert`, which raises "
            "AssertionError and is skipped under `python -O`. (Torch's own complaint would be a "
            "RuntimeError.) Test it yourself and `raise ValueError(…)`.",
            by_assertion,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, `.data` "
            "or `.numpy()` cut the history.",
            wrong_split(lambda x, h: split(x.detach(), h)),
        ),
    ),
    hints=(
        "Two steps: cut the last axis in two, then let two axes change places.",
        "The last axis holds head 0's features, then head 1's: cut it into (h, d/h), not (d/h, h).",
        "`x.reshape(*x.shape[:-1], n_heads, d_head)`, then `.transpose(-3, -2)`.",
    ),
)

MERGE = Exercise(
    target="multihead.merge_heads",
    reference=multihead.merge_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("the heads' features side by side, head 0 first", 2, merge_values),
        Criterion("one token, one head, any memory layout", 1, merge_shapes),
        Criterion("batches", 2, merge_batch),
        Criterion("float32 and large entries", 1, merge_numbers),
        Criterion("gradients reach x", 1, merge_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the axes are not put back",
            "You reshape (h, n, d/h) straight to (n, d), so the first rows are made of head 0 "
            "alone. `.contiguous()` does not change that. First let tokens and heads change places "
            "again, `.transpose(-3, -2)`, then join the last two axes.",
            straight_back,
        ),
        Misconception(
            ".view where the memory is out of order",
            "`.view` never moves a number, and after the transpose the numbers of a row no longer "
            "lie together. `.reshape` and `.flatten` copy where they must.",
            lambda x: x.transpose(-3, -2).view(
                *x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1]
            ),
        ),
        Misconception(
            "heads averaged",
            "You average over the heads, which leaves d/h features and mixes what they found. The "
            "heads' outputs stand side by side.",
            lambda x: x.mean(-3),
        ),
        Misconception(
            "heads summed",
            "You add the heads up, which leaves d/h features. Their outputs stand side by side; "
            "adding comes later, and W_o decides with which weights.",
            lambda x: x.sum(-3),
        ),
        Misconception(
            "heads below one another",
            "You return (..., h·n, d/h): all tokens of head 0, then all of head 1. Each token is "
            "to be one row again, (..., n, d).",
            lambda x: x.flatten(-3, -2),
        ),
        Misconception(
            "features of the heads interleaved",
            "Your rows hold feature 0 of every head, then feature 1 of every head. Head 0's "
            "features come first, all of them.",
            lambda x: x.movedim(-3, -1).flatten(-2),
        ),
        Misconception(
            "transposed, not joined",
            "You return (..., n, h, d/h). The last two axes are to be one: `.flatten(-2)`.",
            lambda x: x.transpose(-3, -2),
        ),
        Misconception(
            "features in rows",
            "You return (..., d, n). A token is a row: (..., n, d).",
            lambda x: x.mT.flatten(-3, -2),
        ),
        Misconception(
            "axes 1 and 2 swapped",
            "`transpose(1, 2)` is right for exactly one batch axis. Count from the end: "
            "`.transpose(-3, -2)`.",
            lambda x: x.transpose(1, 2).flatten(-2),
        ),
        Misconception(
            "axes 0 and 1 swapped",
            "`transpose(0, 1)` is right only without a batch. Count from the end: "
            "`.transpose(-3, -2)`.",
            lambda x: x.transpose(0, 1).flatten(-2),
        ),
        Misconception(
            "exactly one batch axis",
            "`b, h, n, d_head = x.shape` fits one batch axis and nothing else. "
            "`*batch, h, n, d_head = x.shape` fits any number.",
            merge_one_batch_axis,
        ),
        Misconception(
            "axes of length 1 are dropped",
            "`.squeeze()` takes every axis of length 1 away, and with a single token, or one "
            "feature, that is one too many.",
            lambda x: merge(x).squeeze(),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, `.data` "
            "or `.numpy()` cut the history.",
            lambda x: merge(x.detach()),
        ),
    ),
    hints=(
        "Undo `split_heads` step by step, the last step first.",
        "First (..., h, n, d/h) to (..., n, h, d/h), then join the last two axes.",
        "`.transpose(-3, -2)`, then `.flatten(-2)`, or `.reshape(*batch, n, h * d_head)`.",
    ),
)

HEADS = Exercise(
    target="multihead.MultiHeadAttention",
    reference=multihead.MultiHeadAttention,
    section="Chapter 9, “One projection for all heads”",
    difficulty=4,
    minutes=45,
    forbids=("multi_head_attention_forward",),
    criteria=(
        Criterion("attention in every head, merged, and mixed by W_o", 3, heads_values),
        Criterion("keys and values from elsewhere", 2, heads_cross),
        Criterion("fewer key and value heads", 2, heads_shared),
        Criterion("bias=False leaves every bias out", 1, heads_bias),
        Criterion("a mask for every head", 2, heads_masks),
        Criterion("a mask for each head", 1, heads_own_masks),
        Criterion("weights(...) returns a map for each head", 2, heads_maps),
        Criterion("batches", 1, heads_batch),
        Criterion("float32 and large scores", 1, heads_numbers),
        Criterion("gradients reach query, key and every weight", 2, heads_gradients),
        Criterion("refuses a d_model that n_heads does not divide", 1, heads_refusals),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "super().__init__() is missing",
            "`nn.Module` creates its lists of parameters and layers in its own `__init__`. Call "
            "`super().__init__()` before you assign the first layer.",
            wrong_heads(__init__=no_super_init),
        ),
        Misconception(
            "reshaped straight to (b, h, n, d_head)",
            "You cut the projections by `reshape(b, h, n, d_head)`, which hands the numbers out in "
            "the order of memory: head 0 gets the first tokens with all their features. Cut the "
            "features first, `(b, n, h, d_head)`, then `.transpose(1, 2)`: your `split_heads`.",
            wrong_heads(split=lambda self, x, h: straight(x, h)),
        ),
        Misconception(
            "merged without undoing the transpose",
            "You reshape (b, h, n, d_head) straight to (b, n, d_model), so a row is made of "
            "several tokens of one head. Transpose back first: your `merge_heads`.",
            wrong_heads(finish=lambda self, heads: self.W_o(straight_back(heads))),
        ),
        Misconception(
            "split and merged by reshape alone",
            "Cutting by `reshape` and joining by `reshape` undo each other, so the shapes come out "
            "right, but in between every head attends among mixed-up tokens. Both need the "
            "transpose.",
            wrong_heads(
                split=lambda self, x, h: straight(x, h),
                finish=lambda self, heads: self.W_o(straight_back(heads)),
            ),
        ),
        Misconception(
            "a head takes every h-th feature",
            "Your head i uses features i, i + h, i + 2h, … of the projections. It is to use a run, "
            "i·d_head to (i+1)·d_head − 1; weights from elsewhere would not fit otherwise.",
            wrong_heads(
                split=lambda self, x, h: x.unflatten(-1, (-1, h)).movedim(-1, -3),
                finish=lambda self, heads: self.W_o(heads.movedim(-3, -1).flatten(-2)),
            ),
        ),
        Misconception(
            "divided by √d_model",
            "You divide the scores by √d_model. The dot products are taken within a head and have "
            "d_head terms: divide by √d_head.",
            wrong_heads(weigh=weigh_scaled_by(lambda self, q: self.W_q.out_features**-0.5)),
        ),
        Misconception(
            "divided by d_head",
            "You divide the scores by d_head. The formula has its root, √d_head.",
            wrong_heads(weigh=weigh_scaled_by(lambda self, q: 1 / q.shape[-1])),
        ),
        Misconception(
            "no scale",
            "You take the softmax of the bare scores. Divide them by √d_head first.",
            wrong_heads(weigh=weigh_scaled_by(lambda self, q: 1)),
        ),
        Misconception(
            "divided by √h",
            "You divide by the root of the number of heads. It is the width of a head that counts: "
            "√d_head.",
            wrong_heads(weigh=weigh_scaled_by(lambda self, q: self.n_heads**-0.5)),
        ),
        Misconception(
            "W_o is forgotten",
            "You return the heads' outputs side by side. W_o comes after that, and it is the only "
            "place where the heads meet.",
            wrong_heads(finish=lambda self, heads: merge(heads)),
        ),
        Misconception(
            "the heads are averaged",
            "Your W_o takes d_head features, because you average over the heads. Their outputs "
            "stand side by side, d_model features in all.",
            wrong_heads(
                __init__=built_with(
                    lambda d, h, kv, bias: (
                        four_layers(d, h, kv, bias) | {"W_o": nn.Linear(d // h, d, bias=bias)}
                    )
                ),
                finish=lambda self, heads: self.W_o(heads.mean(-3)),
            ),
        ),
        Misconception(
            "one map for all heads",
            "You average the heads' maps and mix with the average. Each head mixes its values with "
            "its own map; otherwise there might as well be one.",
            wrong_heads(weigh=mean_map),
        ),
        Misconception(
            "every head uses head 0's keys",
            "All your heads compare with the same keys. Each has its own run of features of "
            "`W_k(key)`, unless n_kv_heads says otherwise.",
            wrong_heads(views=one_key_for_all),
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs over the queries. Each query has a budget of 1 in each head: "
            "`softmax(dim=-1)`.",
            wrong_heads(weigh=lambda self, q, k, mask: hide(scores_of(q, k), mask).softmax(-2)),
        ),
        Misconception(
            "softmax over the heads",
            "Your softmax runs over the axis of the heads, so that they share a budget. Each head "
            "has its own, over the keys: `softmax(dim=-1)`.",
            wrong_heads(weigh=lambda self, q, k, mask: hide(scores_of(q, k), mask).softmax(-3)),
        ),
        Misconception(
            "key and query swapped",
            "You compute `k @ q.mT`, so that row i of a map belongs to key i. Row i belongs to "
            "query i: `q @ k.mT`.",
            wrong_heads(
                weigh=lambda self, q, k, mask: hide(scores_of(q, k).mT, mask).softmax(-1),
            ),
        ),
        Misconception(
            "key and value are ignored",
            "You use the query for everything, also where keys and values are given. That is "
            "self-attention only.",
            wrong_heads(given=lambda self, query, key, value: (query, query, query)),
        ),
        Misconception(
            "value is ignored",
            "You project the keys where a value was given: `value` is the key only if it is left "
            "out.",
            wrong_heads(
                given=lambda self, query, key, value: given(query, key, None),
            ),
        ),
        Misconception(
            "value defaults to query",
            "Where no value is given you use the query. It is the key that takes its place: what "
            "was found is what is handed over.",
            wrong_heads(
                given=lambda self, query, key, value: (
                    query,
                    query if key is None else key,
                    query if value is None else value,
                )
            ),
        ),
        Misconception(
            "key/value heads in turns",
            "You hand the key and value heads out in turns, 0, 1, 0, 1 (`repeat`). Each serves a "
            "run of neighbouring query heads, 0, 0, 1, 1: `repeat_interleave`.",
            wrong_heads(
                share=lambda self, x: torch.cat([x] * (self.n_heads // self.n_kv_heads), -3),
            ),
        ),
        Misconception(
            "n_kv_heads is ignored",
            "Your W_k and W_v have d_model outputs whatever n_kv_heads says. They are "
            "n_kv_heads · d_head wide; that is what is saved.",
            wrong_heads(
                __init__=built_with(lambda d, h, kv, bias: four_layers(d, h, h, bias)),
            ),
        ),
        Misconception(
            "bias is ignored",
            "Your layers have biases even with `bias=False`. Hand it on to each `nn.Linear`.",
            wrong_heads(
                __init__=built_with(lambda d, h, kv, bias: four_layers(d, h, kv, True)),
            ),
        ),
        Misconception(
            "no bias in W_o",
            "Your W_o never has a bias. With `bias=True` all four layers have one.",
            wrong_heads(
                __init__=built_with(
                    lambda d, h, kv, bias: (
                        four_layers(d, h, kv, bias) | {"W_o": nn.Linear(d, d, bias=False)}
                    )
                ),
            ),
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed. (PyTorch's "
            "`nn.MultiheadAttention` has it the other way round.)",
            wrong_heads(
                weigh=lambda self, q, k, mask: weigh(self, q, k, None if mask is None else ~mask)
            ),
        ),
        Misconception(
            "the mask is ignored",
            "Your result is the same with and without the mask.",
            wrong_heads(mask_for=lambda self, mask, n_axes: None),
        ),
        Misconception(
            "the mask's batch axis meets the heads",
            "A mask (b, m, n) is broadcast against scores (b, h, m, n) from the right, so its "
            "batch axis meets the axis of the heads: an error, or, with as many sequences as "
            "heads, wrong numbers without one. Give it an axis for the heads first: "
            "`mask.unsqueeze(-3)`.",
            wrong_heads(mask_for=lambda self, mask, n_axes: mask),
        ),
        Misconception(
            "an axis for the heads where there is one",
            "You insert an axis for the heads into every mask that has a batch axis. A mask "
            "(b, h, m, n) has one already.",
            wrong_heads(
                mask_for=lambda self, mask, n_axes: (
                    mask.unsqueeze(1) if mask is not None and mask.ndim > 2 else mask
                )
            ),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1. "
            "Put −∞ into the scores before it.",
            wrong_heads(
                weigh=lambda self, q, k, mask: (
                    scores_of(q, k).softmax(-1) * (1 if mask is None else mask)
                )
            ),
        ),
        Misconception(
            "exactly one batch axis",
            "`b, n, d = x.shape` fits one batch axis and nothing else. Reshape with "
            "`*x.shape[:-1]` and count axes from the end.",
            wrong_heads(views=views_of_a_batch),
        ),
        Misconception(
            "weights is missing",
            "The output is right, but there is no method `weights`. It takes the arguments of "
            "`forward` and returns the maps (..., h, m, n).",
            wrong_heads(weights=None),
        ),
        Misconception(
            "weights averages over the heads",
            "Your `weights` returns one map, the average (which is what PyTorch's module does "
            "unless told otherwise). It is to return all h of them: they were made to differ.",
            wrong_heads(forward=forward_right, weights=mean_of_maps),
        ),
        Misconception(
            "weights ignores the mask",
            "Your `forward` uses the mask and your `weights` does not.",
            wrong_heads(forward=forward_right, weights=maps_unmasked),
        ),
        Misconception(
            "weights returns the scores",
            "Your `weights` returns what goes into the softmax. It is to return what comes out.",
            wrong_heads(forward=forward_right, weights=maps_as_scores),
        ),
        Misconception(
            "the maps come back too",
            "Your `forward` returns the output and the maps, as PyTorch's module does. Here it "
            "returns the output alone; `weights` is a method of its own.",
            wrong_heads(forward=forward_with_maps),
        ),
        Misconception(
            "d_model not divisible by n_heads is accepted",
            "`d_model // n_heads` rounds down, and features are lost or a shape fails far from the "
            "cause. Raise ValueError when the module is built.",
            wrong_heads(__init__=unasked),
        ),
        Misconception(
            "not a ValueError",
            "You refuse a d_model that n_heads does not divide by an `assert`, which raises "
            "AssertionError and is skipped under `python -O`. Raise ValueError.",
            wrong_heads(__init__=asserting),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but training would change nothing in W_q, W_k and W_v: "
            "`.detach()`, `.data` or `torch.no_grad()` cut the history.",
            wrong_heads(views=detached),
        ),
    ),
    hints=(
        "Project, split, attend, merge, project: five lines, and each exists already.",
        "Attention does not care about an axis for the heads: it is one more batch axis.",
        "Keys and values of n_kv_heads heads: `repeat_interleave(n_heads // n_kv_heads, dim=-3)`.",
        "Only a mask with a batch axis and none for the heads needs `unsqueeze(-3)`.",
    ),
)

CONVERT = Exercise(
    target="multihead.naive_to_batched",
    reference=multihead.naive_to_batched,
    section="Chapter 9, “Both are the same”",
    difficulty=3,
    minutes=20,
    criteria=(
        Criterion("W_q, W_k and W_v hold the heads' weights", 3, naive_weights),
        Criterion("their biases hold the heads' biases", 1, naive_biases),
        Criterion("W_o is the one of naive", 1, naive_outputs),
        Criterion("the module returns what naive returns", 2, naive_same),
        Criterion("the module has weights of its own", 1, naive_own),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the heads' weights side by side",
            "You join the weights along their second axis. `nn.Linear` stores a weight as (out, "
            "in), and what stands side by side in the *output* is rows of the weight: "
            "`torch.cat(weights, dim=0)`.",
            converted(rows=lambda tensors: torch.cat(tensors, dim=1)),
        ),
        Misconception(
            "the heads' weights transposed",
            "You join the transposed weights side by side, the W of the page's formula (in, out). "
            "`nn.Linear` stores (out, in): join them as they are, one below the other.",
            converted(
                rows=lambda tensors: torch.cat(tensors, dim=1),
                weight=lambda w: w.T,
            ),
        ),
        Misconception(
            "the heads' rows interleaved",
            "You take row 0 of every head, then row 1 of every head. Head i uses a run of "
            "features, so all rows of head 0 come first.",
            converted(rows=interleaved),
        ),
        Misconception(
            "head 0 in every place",
            "Every run of rows holds the weights of head 0: does the loop use its index?",
            converted(heads=lambda naive: [naive.heads[0] for _ in naive.heads]),
        ),
        Misconception(
            "heads in reverse order",
            "The last head comes first. Head 0 uses the first run of features, and its output "
            "meets the first columns of W_o.",
            converted(heads=lambda naive: list(naive.heads)[::-1]),
        ),
        Misconception(
            "W_k is filled from W_q",
            "You copy the heads' W_q into W_k as well. Each of the three has its own source.",
            converted(source=lambda name: "W_q" if name == "W_k" else name),
        ),
        Misconception(
            "keys and values exchanged",
            "W_k holds the heads' W_v and W_v their W_k.",
            converted(source=lambda name: {"W_k": "W_v", "W_v": "W_k"}.get(name, name)),
        ),
        Misconception(
            "W_o is not copied",
            "W_o is still what it was built with, at random. Copy it: it needs no rearranging.",
            output_layer_left,
        ),
        Misconception(
            "W_o is transposed",
            "You copy the transpose of W_o. Both modules hold it as an `nn.Linear`: copy it as it "
            "is.",
            converted(W_o=lambda w: w.T),
        ),
        Misconception(
            "W_o is shared, not copied",
            "The new module holds the very layer `naive.W_o`. Training one would change the other: "
            "copy the numbers.",
            output_layer_shared,
        ),
        Misconception(
            "the biases are left out",
            "You build the new module without biases, but naive has some. `naive.W_o.bias` is None "
            "only where there are none.",
            without_biases,
        ),
        Misconception(
            "the biases are not copied",
            "The biases of W_q, W_k and W_v are still what they were built with. Join the heads' "
            "biases, as the weights.",
            biases_left,
        ),
        Misconception(
            "the number of heads is lost",
            "All weights are right, but the new module has one head. It needs as many as naive: "
            "`len(naive.heads)`.",
            converted(n_heads=lambda heads: 1),
        ),
        Misconception(
            "naive itself comes back",
            "You return the module that came in. Build a `MultiHeadAttention` and fill it.",
            lambda naive: naive,
        ),
        Misconception(
            "a state comes back, not a module",
            "You return a dictionary of tensors. Load it into a `MultiHeadAttention` and return "
            "that.",
            lambda naive: multihead.naive_to_batched(naive).state_dict(),
        ),
    ),
    hints=(
        "`len(naive.heads)` heads, `naive.W_o.in_features` features; is `naive.W_o.bias` None?",
        "Head i's output stands in columns i·d_head … of the projection: these are rows of its "
        "stored weight.",
        "`torch.cat([head.W_q.weight for head in naive.heads])`, and copy inside "
        "`torch.no_grad()`.",
    ),
)

EXERCISES = (SPLIT, MERGE, HEADS, CONVERT)
