"""The exercises of chapter 8, cross-attention and attention pooling.

In float64 cases d_k, and the width of what is pooled, is a power of 4, so that its root is exact in
every precision: a scale that was computed in float32 is no mistake.
"""

import torch
from torch import nn

from attncourse import cross_attention
from attncourse.checks.drivers import call_module_with_gradients
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import State, module_case, spread, tensor, with_hole
from attncourse.checks.parts import hide, reversed_axes

# --- cases -----------------------------------------------------------------------------------

# The page's two questions to five words, with d_k = 4.
QUESTIONS = tensor([[1, 0, 0], [0, 1, 1]])
WORDS = tensor([[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
QUESTIONS_STATE = {
    "W_q.weight": tensor([[2, 0, 0], [0, 2, 1], [0, 0, 1], [1, 0, 0]]),
    "W_k.weight": tensor([[2, 1, 0, 0], [0, 0, 2, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
    "W_v.weight": tensor([[1, 1, 0, 0], [1, 0, 0, 2], [0, 0, 1, 0]]),
}
# One question to three elements.
THREE = tensor([[1, 0, 0, 2], [0, 1, 0, 0], [1, 1, 1, 0]])
THREE_STATE = {
    "queries": tensor([[2, 0, 0, 1]]),
    "W_k.weight": tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 2, 0, 1]]),
    "W_v.weight": tensor([[1, 0, 0, 1], [0, 2, 0, 0], [0, 0, 1, 0], [1, 0, 3, 0]]),
}


def cross_case(
    rng: Rng,
    sizes: tuple[int, int, int, int],
    m: int,
    n: int,
    mask: torch.Tensor | None = None,
    *,
    batch: tuple[int, ...] = (),
    batch_y: tuple[int, ...] | None = None,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    **more,
) -> Case:
    """``CrossAttention(*sizes)`` with random weights, m tokens that ask n tokens."""
    d_x, d_y, d_k, d_v = sizes
    inputs = {
        "x": factor * spread(rng, *batch, m, d_x).to(dtype),
        "y": spread(rng, *(batch if batch_y is None else batch_y), n, d_y).to(dtype),
    }
    if mask is not None:
        inputs["mask"] = mask
    shapes = {"W_q": (d_k, d_x), "W_k": (d_k, d_y), "W_v": (d_v, d_y)}
    state = {f"{name}.weight": 1.5 * spread(rng, *shape) for name, shape in shapes.items()}
    state = {name: w.to(dtype) for name, w in state.items()}
    return module_case("CrossAttention", sizes, state, inputs, **more)


def cross_values(rng: Rng) -> list[Case]:
    inputs = {"x": QUESTIONS, "y": WORDS}
    return [
        module_case("CrossAttention", (3, 4, 4, 3), QUESTIONS_STATE, inputs),
        # Where the sizes agree, the wrong sequence gives wrong numbers and no error.
        cross_case(rng, (5, 5, 4, 4), 7, 7, note="m = n, d_x = d_y and d_k = d_v"),
        cross_case(rng, (5, 5, 16, 7), 3, 11, note="d_x = d_y"),
        cross_case(rng, (7, 5, 4, 4), 5, 3, note="more questions than keys, d_k = d_v"),
    ]


def cross_shapes(rng: Rng) -> list[Case]:
    case = cross_case(rng, (5, 3, 4, 2), 7, 11, note="not contiguous in memory")
    for name in ("x", "y"):
        case.kwargs[name] = case.kwargs[name].T.contiguous().T
    return [
        cross_case(rng, (3, 7, 4, 11), 5, 2, note="d_v above d_k"),
        cross_case(rng, (7, 3, 16, 5), 2, 5, note="d_v below d_k"),
        cross_case(rng, (3, 5, 4, 7), 1, 11, note="one question"),
        cross_case(rng, (3, 5, 4, 7), 11, 1, note="one key"),
        case,
    ]


def cross_masks(rng: Rng) -> list[Case]:
    mask = torch.tensor([[True, True, False, False, True], [False, True, True, True, True]])
    inputs = {"x": QUESTIONS, "y": WORDS, "mask": mask}
    return [
        module_case("CrossAttention", (3, 4, 4, 3), QUESTIONS_STATE, inputs),
        cross_case(rng, (5, 5, 4, 4), 7, 7, with_hole(rng, 7, 7), note="m = n"),
        cross_case(rng, (3, 7, 4, 5), 5, 11, with_hole(rng, 1, 11), note="one row for all"),
        cross_case(
            rng, (5, 3, 4, 2), 3, 7, with_hole(rng, 2, 1, 7), batch=(2,), note="padding, batch of 2"
        ),
        cross_case(
            rng, (5, 3, 4, 2), 7, 3, with_hole(rng, 2, 7, 3), batch=(2,), note="a mask for each"
        ),
    ]


def cross_maps(rng: Rng) -> list[Case]:
    inputs = {"x": QUESTIONS, "y": WORDS}
    sizes, weights = (3, 4, 4, 3), {"method": "weights"}
    return [
        module_case("CrossAttention", sizes, QUESTIONS_STATE, inputs, **weights),
        cross_case(rng, (5, 7, 4, 3), 3, 11, **weights),
        cross_case(rng, (7, 5, 4, 2), 5, 3, batch=(2,), note="a batch of 2", **weights),
        cross_case(rng, (3, 5, 4, 7), 5, 7, with_hole(rng, 5, 7), **weights),
    ]


def cross_batch(rng: Rng) -> list[Case]:
    return [
        cross_case(rng, (3, 5, 4, 4), 4, 4, batch=(4,), note="a batch of 4, m = n = 4"),
        cross_case(rng, (5, 3, 4, 7), 5, 7, batch=(2,), note="a batch of 2"),
        cross_case(rng, (3, 5, 4, 2), 7, 3, batch=(2, 3), note="two batch axes"),
        cross_case(rng, (3, 5, 4, 2), 3, 7, batch=(2,), batch_y=(), note="one y for a batch of x"),
    ]


def cross_numbers(rng: Rng) -> list[Case]:
    return [
        cross_case(rng, (5, 7, 3, 2), 7, 11, dtype=torch.float32, note="float32"),
        cross_case(rng, (5, 3, 4, 7), 7, 5, factor=1e5, note="scores in the thousands and more"),
    ]


def cross_gradients(rng: Rng) -> list[Case]:
    use = call_module_with_gradients
    return [
        cross_case(rng, (5, 3, 4, 7), 7, 11, batch=(2,), use=use, note="a batch of 2"),
        cross_case(rng, (3, 5, 4, 2), 5, 7, with_hole(rng, 5, 7), use=use),
    ]


def pool_state(rng: Rng, d: int, n_queries: int) -> State:
    shapes = {"queries": (n_queries, d), "W_k.weight": (d, d), "W_v.weight": (d, d)}
    return {name: 1.5 * spread(rng, *shape) for name, shape in shapes.items()}


def pool_case(
    rng: Rng,
    shape: tuple[int, ...],
    n_queries: int = 1,
    mask: torch.Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    **more,
) -> Case:
    """``AttentionPooling`` with random weights on elements of this shape."""
    inputs = {"x": factor * spread(rng, *shape).to(dtype)}
    if mask is not None:
        inputs["mask"] = mask
    state = {name: w.to(dtype) for name, w in pool_state(rng, shape[-1], n_queries).items()}
    args = (shape[-1],) if n_queries == 1 else (shape[-1], n_queries)
    return module_case("AttentionPooling", args, state, inputs, **more)


def pool_values(rng: Rng) -> list[Case]:
    return [
        module_case("AttentionPooling", (4,), THREE_STATE, {"x": THREE}),
        pool_case(rng, (7, 4)),
        pool_case(rng, (11, 16)),
        pool_case(rng, (1, 4), note="one element"),
    ]


def pool_queries(rng: Rng) -> list[Case]:
    case = pool_case(rng, (7, 4), 2, note="not contiguous in memory")
    case.kwargs["x"] = case.kwargs["x"].T.contiguous().T
    return [
        pool_case(rng, (7, 4), 3),
        pool_case(rng, (5, 16), 7, note="more queries than elements"),
        pool_case(rng, (1, 4), 5, note="one element"),
        case,
    ]


def pool_masks(rng: Rng) -> list[Case]:
    mask = torch.tensor([True, False, True])
    return [
        module_case("AttentionPooling", (4,), THREE_STATE, {"x": THREE, "mask": mask}),
        pool_case(rng, (7, 4), 3, with_hole(rng, 3, 7), note="a row for each query"),
        pool_case(rng, (7, 4), 3, with_hole(rng, 1, 7), note="one row for all queries"),
        pool_case(rng, (2, 7, 4), 1, with_hole(rng, 2, 1, 7), note="padding, a batch of 2"),
        pool_case(rng, (2, 5, 4), 3, with_hole(rng, 2, 1, 5), note="padding, a batch of 2"),
        pool_case(rng, (2, 5, 4), 3, with_hole(rng, 2, 3, 5), note="a mask for each"),
    ]


def pool_maps(rng: Rng) -> list[Case]:
    inputs, weights = {"x": THREE}, {"method": "weights"}
    return [
        module_case("AttentionPooling", (4,), THREE_STATE, inputs, **weights),
        pool_case(rng, (7, 4), 3, **weights),
        pool_case(rng, (2, 5, 4), 1, note="a batch of 2", **weights),
        pool_case(rng, (7, 4), 3, with_hole(rng, 3, 7), **weights),
    ]


def pool_batch(rng: Rng) -> list[Case]:
    return [
        pool_case(rng, (4, 4, 4), 4, note="a batch of 4, four elements, four queries"),
        pool_case(rng, (2, 5, 4), note="a batch of 2"),
        pool_case(rng, (1, 5, 4), 3, note="a batch of 1"),
        pool_case(rng, (2, 3, 7, 4), 5, note="two batch axes"),
    ]


def pool_numbers(rng: Rng) -> list[Case]:
    return [
        pool_case(rng, (7, 5), 3, dtype=torch.float32, note="float32, d = 5"),
        pool_case(rng, (5, 4), 2, factor=1e5, note="scores in the thousands and more"),
    ]


def pool_gradients(rng: Rng) -> list[Case]:
    use = call_module_with_gradients
    return [
        pool_case(rng, (2, 7, 4), 3, use=use, note="a batch of 2"),
        pool_case(rng, (7, 4), 1, with_hole(rng, 1, 7), use=use),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def scaled(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


def shares(query, key, mask=None):
    """The softmax of the scaled scores, over the keys that the mask allows."""
    return hide(scaled(query, key), mask).softmax(-1)


def inverted(query, key, mask):
    return shares(query, key, None if mask is None else ~mask)


def mask_ignored(query, key, mask):
    return scaled(query, key).softmax(-1)


def not_renormalised(query, key, mask):
    weights = scaled(query, key).softmax(-1)
    return weights if mask is None else weights * mask


def zeroed_scores(query, key, mask):
    scores = scaled(query, key)
    return (scores if mask is None else scores * mask).softmax(-1)


def over_queries(query, key, mask):
    return hide(scaled(query, key), mask).softmax(-2)


def no_scale(query, key, mask):
    return hide(query @ key.mT, mask).softmax(-1)


def no_maximum(query, key, mask):
    e = hide(scaled(query, key), mask).exp()
    return e / e.sum(-1, keepdim=True)


def all_axes_turned(query, key, mask):
    return hide(query @ reversed_axes(key) / query.shape[-1] ** 0.5, mask).softmax(-1)


def divided_by_width(query, key, mask):
    return hide(query @ key.mT / query.shape[-1], mask).softmax(-1)


def divided_by_keys(query, key, mask):
    return hide(query @ key.mT / key.shape[-2] ** 0.5, mask).softmax(-1)


def assembled(name, parts, changed):
    """A module class of ``parts``, with those replaced that ``changed`` names; None removes one."""
    parts = {k: f for k, f in (parts | changed).items() if f is not None}
    return type(name, (nn.Module,), parts)


def wrong_cross(attention=shares, **changed):
    """A wrong ``CrossAttention``, right but for what is given.

    ``attention(query, key, mask)`` makes the weights. ``changed`` replaces methods: ``views(x, y)``
    returns queries, keys and values, ``layers(d_x, d_y, d_k, d_v)`` the layers by name.
    """

    def __init__(self, d_x, d_y, d_k, d_v):
        nn.Module.__init__(self)
        for name, layer in type(self).layers(d_x, d_y, d_k, d_v).items():
            setattr(self, name, layer)

    def weights(self, x, y, mask=None):
        query, key, _ = self.views(x, y)
        return attention(query, key, mask)

    def forward(self, x, y, mask=None):
        query, key, value = self.views(x, y)
        return attention(query, key, mask) @ value

    parts = {
        "__init__": __init__,
        "layers": layers_of(lambda d_x, d_y, d_k, d_v: ((d_x, d_k), (d_y, d_k), (d_y, d_v))),
        "views": lambda self, x, y: (self.W_q(x), self.W_k(y), self.W_v(y)),
        "weights": weights,
        "forward": forward,
    }
    return assembled("CrossAttention", parts, changed)


def layers_of(sizes, bias=False):
    """Layers W_q, W_k and W_v of the (in, out) that ``sizes`` returns."""

    def layers(*widths):
        pairs = zip(("W_q", "W_k", "W_v"), sizes(*widths), strict=True)
        return {name: nn.Linear(*size, bias=bias) for name, size in pairs}

    return staticmethod(layers)


def cross_no_super(self, d_x, d_y, d_k, d_v):
    self.W_q = nn.Linear(d_x, d_k, bias=False)
    self.W_k = nn.Linear(d_y, d_k, bias=False)
    self.W_v = nn.Linear(d_y, d_v, bias=False)


def both_sequences(self, x, y):
    everyone = torch.cat([x, y], dim=-2)
    return self.W_q(x), self.W_k(everyone), self.W_v(everyone)


def cross_with_map(self, x, y, mask=None):
    weights = self.weights(x, y, mask)
    return weights @ self.W_v(y), weights


def cross_output(self, x, y, mask=None):
    return shares(self.W_q(x), self.W_k(y), mask) @ self.W_v(y)


def cross_scores(self, x, y, mask=None):
    return hide(scaled(self.W_q(x), self.W_k(y)), mask)


def cross_map_over_mask(self, x, y, mask=None):
    return shares(self.W_q(x), self.W_k(y))


def divided_by_input(self, x, y, mask=None):
    scores = self.W_q(x) @ self.W_k(y).mT / x.shape[-1] ** 0.5
    return hide(scores, mask).softmax(-1) @ self.W_v(y)


def wrong_pool(attention=shares, **changed):
    """A wrong ``AttentionPooling``, right but for what is given.

    ``attention(query, key, mask)`` makes the weights. ``changed`` replaces methods: ``views(x)``
    returns queries, keys and values, ``finish(out)`` is done to the output, ``build(d,
    n_queries)`` makes the parameter ``queries``, ``layers(d)`` the layers.
    """

    def __init__(self, d, n_queries=1):
        nn.Module.__init__(self)
        self.queries = type(self).build(d, n_queries)
        for name, layer in type(self).layers(d).items():
            setattr(self, name, layer)

    def weights(self, x, mask=None):
        query, key, _ = self.views(x)
        return attention(query, key, mask)

    def forward(self, x, mask=None):
        query, key, value = self.views(x)
        return self.finish(attention(query, key, mask) @ value)

    parts = {
        "__init__": __init__,
        "build": staticmethod(lambda d, n_queries: nn.Parameter(torch.zeros(n_queries, d))),
        "layers": square_layers(bias=False),
        "views": lambda self, x: (self.queries, self.W_k(x), self.W_v(x)),
        "finish": lambda self, out: out,
        "weights": weights,
        "forward": forward,
    }
    return assembled("AttentionPooling", parts, changed)


def square_layers(bias):
    def layers(d):
        return {name: nn.Linear(d, d, bias=bias) for name in ("W_k", "W_v")}

    return staticmethod(layers)


def built_as(make):
    """A pooling whose ``queries`` are ``make(d, n_queries)``."""
    return wrong_pool(build=staticmethod(make))


def pool_no_super(self, d, n_queries=1):
    self.queries = nn.Parameter(torch.zeros(n_queries, d))
    self.W_k = nn.Linear(d, d, bias=False)
    self.W_v = nn.Linear(d, d, bias=False)


def pool_with_query_layer(self, d, n_queries=1):
    nn.Module.__init__(self)
    self.queries = nn.Parameter(torch.zeros(n_queries, d))
    self.W_q = nn.Linear(d, d, bias=False)
    self.W_k = nn.Linear(d, d, bias=False)
    self.W_v = nn.Linear(d, d, bias=False)


def pool_output(self, x, mask=None):
    return shares(self.queries, self.W_k(x), mask) @ self.W_v(x)


def pool_scores(self, x, mask=None):
    return hide(scaled(self.queries, self.W_k(x)), mask)


def pool_map_over_mask(self, x, mask=None):
    return shares(self.queries, self.W_k(x))


def pool_with_map(self, x, mask=None):
    weights = self.weights(x, mask)
    return weights @ self.W_v(x), weights


def pool_squeezed_map(self, x, mask=None):
    return shares(self.queries, self.W_k(x), mask).squeeze(-2)


def gates(query, key, mask):
    weights = scaled(query, key).sigmoid()
    return weights if mask is None else weights * mask


def plain_mean(query, key, mask):
    return hide(0 * scaled(query, key), mask).softmax(-1)


def best_match_only(query, key, mask):
    best = hide(scaled(query, key), mask).argmax(-1)
    return nn.functional.one_hot(best, key.shape[-2]).to(key.dtype)


def padding_zeroed(self, x, mask=None):
    if mask is not None:
        seen = mask if mask.ndim == 1 else mask.any(dim=-2)
        x = x * seen.unsqueeze(-1)
    return pool_output(self, x)


def tokens_then_mean(self, x, mask=None):
    return (shares(x, self.W_k(x), mask) @ self.W_v(x)).mean(dim=-2, keepdim=True)


def one_batch_axis(self, x):
    queries = self.queries.unsqueeze(0).expand(x.shape[0], -1, -1)
    return queries, self.W_k(x), self.W_v(x)


# --- exercises -------------------------------------------------------------------------------

CROSS = Exercise(
    target="cross_attention.CrossAttention",
    reference=cross_attention.CrossAttention,
    section="Chapter 8, “A module with two inputs”",
    difficulty=2,
    minutes=20,
    criteria=(
        Criterion("queries from x, keys and values from y", 3, cross_values),
        Criterion("all sizes may differ; one question, one key", 1, cross_shapes),
        Criterion("a mask, True where attention is allowed", 2, cross_masks),
        Criterion("weights(x, y, mask) returns the attention map", 2, cross_maps),
        Criterion("batches", 1, cross_batch),
        Criterion("float32 and large scores", 1, cross_numbers),
        Criterion("gradients reach x, y and every weight", 2, cross_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "keys from x",
            "You compare the queries with `W_k(x)`. Those who are asked are the tokens of y: keys "
            "and values are both made from y.",
            wrong_cross(views=lambda self, x, y: (self.W_q(x), self.W_k(x), self.W_v(y))),
        ),
        Misconception(
            "values from x",
            "You mix `W_v(x)`. The weights say how much of each token of y to take, so it is "
            "`W_v(y)` that they mix.",
            wrong_cross(views=lambda self, x, y: (self.W_q(x), self.W_k(y), self.W_v(x))),
        ),
        Misconception(
            "y is never asked",
            "You make queries, keys and values from x alone. That is self-attention of x; keys and "
            "values come from y.",
            wrong_cross(views=lambda self, x, y: (self.W_q(x), self.W_k(x), self.W_v(x))),
        ),
        Misconception(
            "queries from y too",
            "You make all three views from y, so there are n answers. The queries come from x, and "
            "there are m of them.",
            wrong_cross(views=lambda self, x, y: (self.W_q(y), self.W_k(y), self.W_v(y))),
        ),
        Misconception(
            "x and y exchanged",
            "You let y ask and x answer, so your output has length n. The first argument asks: "
            "queries from x, keys and values from y, output of length m.",
            wrong_cross(views=lambda self, x, y: (self.W_q(y), self.W_k(x), self.W_v(x))),
        ),
        Misconception(
            "x is among those who are asked",
            "You join x and y and attend to both. In cross-attention only y is asked: n keys, not "
            "m + n.",
            wrong_cross(views=both_sequences),
        ),
        Misconception(
            "layers sized for x",
            "Your `W_k` takes d_x features. It is applied to y, and so is `W_v`: "
            "`nn.Linear(d_y, d_k)` and `nn.Linear(d_y, d_v)`.",
            wrong_cross(
                layers=layers_of(lambda d_x, d_y, d_k, d_v: ((d_x, d_k), (d_x, d_k), (d_x, d_v)))
            ),
        ),
        Misconception(
            "d_v assumed equal to d_k",
            "Your `W_v` has d_k outputs. Values have a width of their own: `nn.Linear(d_y, d_v)`.",
            wrong_cross(
                layers=layers_of(lambda d_x, d_y, d_k, d_v: ((d_x, d_k), (d_y, d_k), (d_y, d_k)))
            ),
        ),
        Misconception(
            "in and out exchanged",
            "You built `nn.Linear(d_k, d_x)`. Its first argument is the number of features that "
            "come in: `nn.Linear(d_x, d_k)`.",
            wrong_cross(
                layers=layers_of(lambda d_x, d_y, d_k, d_v: ((d_k, d_x), (d_k, d_y), (d_v, d_y)))
            ),
        ),
        Misconception(
            "a bias that was not asked for",
            "`nn.Linear` has a bias unless told otherwise: `nn.Linear(d_x, d_k, bias=False)`, and "
            "the same for the other two.",
            wrong_cross(
                layers=layers_of(
                    lambda d_x, d_y, d_k, d_v: ((d_x, d_k), (d_y, d_k), (d_y, d_v)), bias=True
                )
            ),
        ),
        Misconception(
            "super().__init__() is missing",
            "`nn.Module` keeps its lists of parameters and layers, and it creates them in its own "
            "`__init__`. Call `super().__init__()` before you assign the first layer.",
            wrong_cross(__init__=cross_no_super),
        ),
        Misconception(
            "the values are not projected",
            "You mix the tokens of y themselves. What is mixed is a view of them, `self.W_v(y)`.",
            wrong_cross(views=lambda self, x, y: (self.W_q(x), self.W_k(y), y)),
        ),
        Misconception(
            "one view for key and value",
            "You mix `W_k(y)`. The keys say what can be found, the values what is taken away: mix "
            "`self.W_v(y)`.",
            wrong_cross(views=lambda self, x, y: (self.W_q(x), self.W_k(y), self.W_k(y))),
        ),
        Misconception(
            "divided by √d_x",
            "You divide by the root of the width of x. After the projections queries and keys have "
            "d_k features, and it is √d_k that keeps their products in range.",
            wrong_cross(forward=divided_by_input),
        ),
        Misconception(
            "divided by d_k",
            "You divide the scores by d_k. The formula has its root, √d_k.",
            wrong_cross(divided_by_width),
        ),
        Misconception(
            "divided by √n",
            "You divide by the root of the number of keys. The root in the formula is that of d_k, "
            "the last axis of the queries.",
            wrong_cross(divided_by_keys),
        ),
        Misconception(
            "no scale",
            "You take the softmax of the bare scores. Divide them by √d_k first.",
            wrong_cross(no_scale),
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs down the columns, so that the questions share out each key. Each "
            "question has a budget of 1 for all keys: `softmax(dim=-1)`.",
            wrong_cross(over_queries),
        ),
        Misconception(
            ".T on a batch",
            "`.T` turns all axes around, the batch axes too. `.mT` swaps the last two only.",
            wrong_cross(all_axes_turned),
        ),
        Misconception(
            "no maximum subtracted",
            "exp of a large score overflows, and ∞/∞ is NaN. Use `torch.softmax`, which subtracts "
            "each row's largest score first.",
            wrong_cross(no_maximum),
        ),
        Misconception(
            "padding is attended to",
            "Your result is the same with and without the mask. Scores where it is False become −∞ "
            "before the softmax; a key of zeros has the score 0, and still gets weight.",
            wrong_cross(mask_ignored),
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed, here and in "
            "`F.scaled_dot_product_attention`; in `nn.MultiheadAttention` it is the reverse.",
            wrong_cross(inverted),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1. "
            "Put −∞ into the scores before it.",
            wrong_cross(not_renormalised),
        ),
        Misconception(
            "a score of 0 is not −∞",
            "You set masked scores to 0. exp(0) = 1, so those keys still get weight. Fill in −∞.",
            wrong_cross(zeroed_scores),
        ),
        Misconception(
            "weights is missing",
            "The output is right, but there is no method `weights`. It takes the arguments of "
            "`forward` and returns the attention map (..., m, n) that `forward` used.",
            wrong_cross(weights=None),
        ),
        Misconception(
            "weights returns the scores",
            "Your `weights` returns what goes into the softmax. It is to return what comes out of "
            "it: rows that sum to 1.",
            wrong_cross(weights=cross_scores),
        ),
        Misconception(
            "weights ignores the mask",
            "Your `forward` uses the mask and your `weights` does not. It is to return the map "
            "that `forward` used.",
            wrong_cross(weights=cross_map_over_mask),
        ),
        Misconception(
            "weights returns the output",
            "Your `weights` returns the mixed values. It is to return the map (..., m, n) that "
            "they were mixed with.",
            wrong_cross(weights=cross_output),
        ),
        Misconception(
            "the weights come back too",
            "Your `forward` returns output and weights. It returns the output alone; `weights` is "
            "a method of its own.",
            wrong_cross(forward=cross_with_map),
        ),
        Misconception(
            "y is cut off from the gradient",
            "The numbers are right, but nothing that made y can learn from them: there is a "
            "`.detach()` or a `torch.no_grad()` around y. In a translator it is the encoder that "
            "would stop learning.",
            wrong_cross(
                views=lambda self, x, y: (
                    self.W_q(x),
                    self.W_k(y.detach()),
                    self.W_v(y.detach()),
                )
            ),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
            "`torch.no_grad()` cut the weights' history.",
            wrong_cross(
                views=lambda self, x, y: (
                    self.W_q(x).detach(),
                    self.W_k(y).detach(),
                    self.W_v(y).detach(),
                )
            ),
        ),
    ),
    hints=(
        "Three layers: one takes d_x features, two take d_y. Which of them are applied to y?",
        "Scores are (..., m, d_k) @ (..., d_k, n). The softmax runs over the n keys.",
        "Chapter 5's `scaled_dot_product_attention(query, key, value, mask)` does the rest. For "
        "`weights`, stop before the values.",
    ),
)

POOLING = Exercise(
    target="cross_attention.AttentionPooling",
    reference=cross_attention.AttentionPooling,
    section="Chapter 8, “A question that nobody asks”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("one learned question to every element", 3, pool_values),
        Criterion("several questions", 1, pool_queries),
        Criterion("a mask, True where attention is allowed", 2, pool_masks),
        Criterion("weights(x, mask) returns the attention map", 2, pool_maps),
        Criterion("batches", 1, pool_batch),
        Criterion("float32 and large scores", 1, pool_numbers),
        Criterion("gradients reach x, the queries and every weight", 2, pool_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the axis of the queries is squeezed away",
            "You return (..., d) for one query. The output keeps its axis, (..., 1, d), so that "
            "one query and many are the same code.",
            wrong_pool(finish=lambda self, out: out.squeeze(-2)),
        ),
        Misconception(
            "squeezed along every axis",
            "`squeeze()` without an axis drops every axis of length 1, a batch of 1 too. The "
            "output is (..., n_queries, d), never squeezed.",
            wrong_pool(finish=lambda self, out: out.squeeze()),
        ),
        Misconception(
            "only the first answer is kept",
            "You return the answer to query 0 alone. There is one row for each query, "
            "(..., n_queries, d).",
            wrong_pool(finish=lambda self, out: out[..., :1, :]),
        ),
        Misconception(
            "the answers are averaged",
            "You take the mean of the answers. Each query has an answer of its own: return all of "
            "them, (..., n_queries, d).",
            wrong_pool(finish=lambda self, out: out.mean(dim=-2, keepdim=True)),
        ),
        Misconception(
            "mean pooling",
            "Every element gets the same weight, whatever the queries are. The weights are a "
            "softmax of the queries' scores with the keys.",
            wrong_pool(plain_mean),
        ),
        Misconception(
            "the elements ask, not the queries",
            "You let the elements attend to each other and average the result. Those who ask are "
            "the learned `queries`.",
            wrong_pool(forward=tokens_then_mean),
        ),
        Misconception(
            "only the best match",
            "You return the value with the largest score. A hard choice has no gradient and learns "
            "nothing; the softmax gives every element its share.",
            wrong_pool(best_match_only),
        ),
        Misconception(
            "gates in place of shares",
            "You weigh each element by a sigmoid of its own score, so the weights do not sum to 1 "
            "and the output grows with the set. Elements compete: a softmax over all of them.",
            wrong_pool(gates),
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs over the queries. With one query every weight is then 1, and the "
            "output is a sum. Each query shares 1 among the elements: `softmax(dim=-1)`.",
            wrong_pool(over_queries),
        ),
        Misconception(
            "the queries are projected too",
            "You send the queries through `W_k`. They are compared as they are: only the elements "
            "are projected.",
            wrong_pool(
                views=lambda self, x: (self.W_k(self.queries), self.W_k(x), self.W_v(x)),
            ),
        ),
        Misconception(
            "the keys are not projected",
            "You compare the queries with x itself. The keys are a view of it, `self.W_k(x)`.",
            wrong_pool(views=lambda self, x: (self.queries, x, self.W_v(x))),
        ),
        Misconception(
            "the values are not projected",
            "You mix the elements themselves. What is mixed is a view of them, `self.W_v(x)`.",
            wrong_pool(views=lambda self, x: (self.queries, self.W_k(x), x)),
        ),
        Misconception(
            "one view for key and value",
            "You mix `W_k(x)`. The keys say what can be found, the values what is taken away: mix "
            "`self.W_v(x)`.",
            wrong_pool(views=lambda self, x: (self.queries, self.W_k(x), self.W_k(x))),
        ),
        Misconception(
            "keys and values exchanged",
            "You compare the queries with `W_v(x)` and mix `W_k(x)`. It is the keys that are "
            "compared and the values that are mixed.",
            wrong_pool(views=lambda self, x: (self.queries, self.W_v(x), self.W_k(x))),
        ),
        Misconception(
            "one batch axis is assumed",
            "You expand the queries to `x.shape[0]` copies, which is right for exactly one batch "
            "axis. Leave them (n_queries, d): a product with (..., d, n) takes them along.",
            wrong_pool(views=one_batch_axis),
        ),
        Misconception(
            "queries is a plain tensor",
            "`queries` is a tensor that the module does not know as its own: it would neither be "
            "learned nor saved. Wrap it: `self.queries = nn.Parameter(torch.randn(n_queries, d))`.",
            built_as(lambda d, n_queries: torch.zeros(n_queries, d)),
        ),
        Misconception(
            "queries is a layer",
            "You made `queries` an `nn.Linear` or `nn.Embedding`. It is a single parameter of "
            "shape (n_queries, d): `nn.Parameter(torch.randn(n_queries, d))`.",
            built_as(lambda d, n_queries: nn.Linear(d, n_queries, bias=False)),
        ),
        Misconception(
            "a batch axis in the parameter",
            "Your `queries` have the shape (1, n_queries, d). They are (n_queries, d), and "
            "broadcasting adds the batch axes, however many there are.",
            built_as(lambda d, n_queries: nn.Parameter(torch.zeros(1, n_queries, d))),
        ),
        Misconception(
            "a single query as a vector",
            "Your `queries` have the shape (d,). Also for one query it is (n_queries, d), that is "
            "(1, d).",
            built_as(lambda d, n_queries: nn.Parameter(torch.zeros(d))),
        ),
        Misconception(
            "n_queries is ignored",
            "You always make one query. Hand the argument on: "
            "`nn.Parameter(torch.randn(n_queries, d))`.",
            built_as(lambda d, n_queries: nn.Parameter(torch.zeros(1, d))),
        ),
        Misconception(
            "a layer for the queries",
            "Your module has a `W_q`. The queries are learned as they are; to multiply them by a "
            "learned matrix would add parameters and nothing else.",
            wrong_pool(__init__=pool_with_query_layer),
        ),
        Misconception(
            "a bias that was not asked for",
            "`nn.Linear` has a bias unless told otherwise: `nn.Linear(d, d, bias=False)`.",
            wrong_pool(layers=square_layers(bias=True)),
        ),
        Misconception(
            "super().__init__() is missing",
            "`nn.Module` keeps its lists of parameters and layers, and it creates them in its own "
            "`__init__`. Call `super().__init__()` before you assign the first parameter.",
            wrong_pool(__init__=pool_no_super),
        ),
        Misconception(
            "no scale",
            "You take the softmax of the bare scores. Divide them by √d first.",
            wrong_pool(no_scale),
        ),
        Misconception(
            "divided by d",
            "You divide the scores by d. The formula has its root, √d.",
            wrong_pool(divided_by_width),
        ),
        Misconception(
            "divided by √n",
            "You divide by the root of the number of elements. The root in the formula is that of "
            "d, the width of a query.",
            wrong_pool(divided_by_keys),
        ),
        Misconception(
            ".T on a batch",
            "`.T` turns all axes around, the batch axes too. `.mT` swaps the last two only.",
            wrong_pool(all_axes_turned),
        ),
        Misconception(
            "no maximum subtracted",
            "exp of a large score overflows, and ∞/∞ is NaN. Use `torch.softmax`, which subtracts "
            "each row's largest score first.",
            wrong_pool(no_maximum),
        ),
        Misconception(
            "padding is attended to",
            "Your result is the same with and without the mask. Scores where it is False become −∞ "
            "before the softmax.",
            wrong_pool(mask_ignored),
        ),
        Misconception(
            "padding is zeroed and still attended to",
            "You set the masked elements of x to 0. Their keys then have the score 0, and exp(0) = "
            "1, so they take weight from the others. Put −∞ into the scores.",
            wrong_pool(forward=padding_zeroed),
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed, here and in "
            "`F.scaled_dot_product_attention`; in `nn.MultiheadAttention` it is the reverse.",
            wrong_pool(inverted),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1. "
            "Put −∞ into the scores before it.",
            wrong_pool(not_renormalised),
        ),
        Misconception(
            "a score of 0 is not −∞",
            "You set masked scores to 0. exp(0) = 1, so those elements still get weight. Fill in "
            "−∞.",
            wrong_pool(zeroed_scores),
        ),
        Misconception(
            "weights is missing",
            "The output is right, but there is no method `weights`. It takes the arguments of "
            "`forward` and returns the map (..., n_queries, n) that `forward` used.",
            wrong_pool(weights=None),
        ),
        Misconception(
            "weights returns the scores",
            "Your `weights` returns what goes into the softmax. It is to return what comes out of "
            "it: rows that sum to 1.",
            wrong_pool(weights=pool_scores),
        ),
        Misconception(
            "weights ignores the mask",
            "Your `forward` uses the mask and your `weights` does not. It is to return the map "
            "that `forward` used.",
            wrong_pool(weights=pool_map_over_mask),
        ),
        Misconception(
            "weights is squeezed",
            "Your `weights` drops the axis of a single query. Like the output it keeps it: "
            "(..., 1, n).",
            wrong_pool(weights=pool_squeezed_map),
        ),
        Misconception(
            "weights returns the output",
            "Your `weights` returns the mixed values. It is to return the map (..., n_queries, n) "
            "that they were mixed with.",
            wrong_pool(weights=pool_output),
        ),
        Misconception(
            "the weights come back too",
            "Your `forward` returns output and weights. It returns the output alone; `weights` is "
            "a method of its own.",
            wrong_pool(forward=pool_with_map),
        ),
        Misconception(
            "the queries do not learn",
            "The numbers are right, but no gradient reaches `queries`: `.detach()` or `.data` cut "
            "their history. The question is what is to be learned.",
            wrong_pool(
                views=lambda self, x: (self.queries.detach(), self.W_k(x), self.W_v(x)),
            ),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
            "`torch.no_grad()` cut the weights' history.",
            wrong_pool(
                views=lambda self, x: (
                    self.queries.detach(),
                    self.W_k(x).detach(),
                    self.W_v(x).detach(),
                )
            ),
        ),
    ),
    hints=(
        "`self.queries = nn.Parameter(torch.randn(n_queries, d))` takes the place of a projected "
        "sequence.",
        "`queries` are (n_queries, d), the keys (..., n, d). `queries @ key.mT` broadcasts to "
        "(..., n_queries, n).",
        "Chapter 5's `scaled_dot_product_attention(query, key, value, mask)` takes it from there. "
        "For `weights`, stop before the values.",
    ),
)

EXERCISES = (CROSS, POOLING)
