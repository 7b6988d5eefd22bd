"""The exercises of chapter 8, cross-attention and attention pooling.

In float64 cases d_k, and the width of what is pooled, is a power of 4, so that its root is exact in
every precision: a scale that was computed in float32 is no mistake.
"""

import math

import torch
from torch import nn

from attncourse import cross_attention
from attncourse.checks.cases import FLOATS_ONLY, Drawn, between, hole, row, standard
from attncourse.checks.drivers import call_module_with_gradients
from attncourse.checks.exercise import (
    Criterion,
    Exercise,
    Rng,
    composition,
    leaves_arguments_alone,
)
from attncourse.checks.mistakes import (
    BEST_ONLY,
    COSINE,
    DIVIDED_BY_D_K,
    DIVIDED_BY_OTHER_WIDTH,
    DIVIDED_BY_ROOT_M,
    DIVIDED_BY_ROOT_N,
    GRADIENT_CUT,
    GUARD_AFTER_THE_MASK,
    IN_ONE_METHOD,
    LAYERS_HIDDEN,
    MASK_IGNORED,
    MASK_INVERTED,
    MORE_OF_THE_SOFTMAX,
    NO_SCALE,
    NO_SUPER_INIT,
    NOT_LOW_ENOUGH,
    OF_THE_MASK,
    OF_THE_MASKS_SHAPE,
    OF_THE_METHODS,
    OF_THE_PRODUCT,
    OF_THE_SCALE,
    OF_THE_SOFTMAX,
    OVER_QUERIES,
    ROLES_EXCHANGED,
    SCALED_AFTERWARDS,
    SIGMOIDS,
    TOO_LITTLE_OFF,
    WEIGHTS_ARE_OUTPUT,
    WEIGHTS_MISSING,
    Slip,
    attention_class,
    filled_with,
    made,
    mixed,
    shared_out,
    zero_at_start,
)
from attncourse.checks.modules import (
    ModuleTable,
    State,
    module_case,
    spread,
    start_case,
    tensor,
)

# --- cases -----------------------------------------------------------------------------------


def cross_state(rng: Rng, d_x: int, d_y: int, d_k: int, d_v: int) -> State:
    shapes = {"W_q": (d_k, d_x), "W_k": (d_k, d_y), "W_v": (d_v, d_y)}
    return {f"{name}.weight": 1.5 * spread(rng, *shape) for name, shape in shapes.items()}


def pool_state(rng: Rng, d: int, n_queries: int = 1) -> State:
    shapes = {"queries": (n_queries, d), "W_k.weight": (d, d), "W_v.weight": (d, d)}
    return {name: 1.5 * spread(rng, *shape) for name, shape in shapes.items()}


def far_off(rng: Rng, shape: tuple[int, ...]):
    """Tokens whose first feature is large, so that the scores of a row lie far from 0."""
    tokens = between(rng, shape)
    tokens[..., 0] = 2e4
    return tokens


CROSS_CASES = ModuleTable(
    {"x": "... m d_x", "y": "... n d_y"},
    name="CrossAttention",
    build="d_x d_y d_k d_v",
    state=cross_state,
)
CROSS_ROWS = standard(CROSS_CASES, d_k=4)
CROSS_ROW = row("m=5 n=7 d_x=5 d_y=3 d_k=4 d_v=2")
# The page's two questions to five words, with d_k = 4.
QUESTIONS = {
    "x": tensor([[1, 0, 0], [0, 1, 1]]),
    "y": tensor([[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]]),
}
QUESTIONS_STATE = {
    "W_q.weight": tensor([[2, 0, 0], [0, 2, 1], [0, 0, 1], [1, 0, 0]]),
    "W_k.weight": tensor([[2, 1, 0, 0], [0, 0, 2, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
    "W_v.weight": tensor([[1, 1, 0, 0], [1, 0, 0, 2], [0, 0, 1, 0]]),
}
QUESTIONS_MASK = {
    "mask": torch.tensor([[True, True, False, False, True], [False, True, True, True, True]])
}


def questions(method: str = "", **mask):
    state = QUESTIONS_STATE
    return module_case("CrossAttention", (3, 4, 4, 3), state, QUESTIONS | mask, method=method)


POOL_CASES = ModuleTable(
    {"x": "... n d"}, name="AttentionPooling", build="d n_queries", state=pool_state
)
POOL_ROWS = standard(POOL_CASES, left_out="n_queries", d=4)
POOL_ROW = row("n=7 d=4 n_queries=3")
# One question to three elements.
THREE = {"x": tensor([[1, 0, 0, 2], [0, 1, 0, 0], [1, 1, 1, 0]])}
THREE_STATE = {
    "queries": tensor([[2, 0, 0, 1]]),
    "W_k.weight": tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 2, 0, 1]]),
    "W_v.weight": tensor([[1, 0, 0, 1], [0, 2, 0, 0], [0, 0, 1, 0], [1, 0, 3, 0]]),
}
THREE_MASK = {"mask": torch.tensor([True, False, True])}


def three(method: str = "", **mask):
    return module_case("AttentionPooling", (4,), THREE_STATE, THREE | mask, method=method)


# --- usual mistakes --------------------------------------------------------------------------


def linear(sizes, biased=()):
    """Layers of these sizes, by name; some with a bias."""
    return {name: nn.Linear(*size, bias=name in biased) for name, size in sizes.items()}


def cross_sizes(d_x, d_y, d_k, d_v):
    return {"W_q": (d_x, d_k), "W_k": (d_y, d_k), "W_v": (d_y, d_v)}


def cross_biases(names):
    return {"layers": lambda *sizes: linear(cross_sizes(*sizes), names)}


@composition
def cross(
    layers=lambda *sizes: linear(cross_sizes(*sizes)),
    query=lambda self, x, y: self.W_q(x),
    key=lambda self, x, y: self.W_k(y),
    value=lambda self, x, y: self.W_v(y),
    **options,
):
    """A ``CrossAttention`` made of decisions: its layers, its three views, its attention."""
    return attention_class("CrossAttention", layers, query, key, value, 2, **options)


def along(x, y):
    """y with the batch axes of x."""
    return y.expand(*x.shape[:-2], *y.shape[-2:])


def pool_layers(d, n_queries, biased=()):
    queries = nn.Parameter(torch.randn(n_queries, d))
    return {"queries": queries, **linear({"W_k": (d, d), "W_v": (d, d)}, biased)}


def pool_biases(names):
    return {"layers": lambda d, n_queries=1: pool_layers(d, n_queries, names)}


def held(queries):
    """What is held where ``queries(d, n_queries)`` makes the parameter of this name."""
    return {
        "layers": lambda d, n_queries=1: (
            pool_layers(d, n_queries) | {"queries": queries(d, n_queries)}
        )
    }


@composition
def pool(
    layers=lambda d, n_queries=1: pool_layers(d, n_queries),
    query=lambda self, x: self.queries,
    key=lambda self, x: self.W_k(x),
    value=lambda self, x: self.W_v(x),
    **options,
):
    """An ``AttentionPooling`` made of decisions: what it holds, its views, its attention."""
    return attention_class("AttentionPooling", layers, query, key, value, **options)


def padding_zeroed(attention, views, mask, other):
    query, key, value = views
    if mask is not None:  # a token of zeros has a key and a value of zeros
        seen = (mask if mask.ndim == 1 else mask.any(dim=-2)).unsqueeze(-1)
        key, value = key * seen, value * seen
    return mixed(attention, (query, key, value), None, other)


def alike(scores):
    """The same weight for every key that the mask allows."""
    allowed = (scores > -math.inf).to(scores.dtype)
    return allowed / allowed.sum(-1, keepdim=True)


PADDING_ATTENDED = MASK_IGNORED.called("padding is attended to")
INVERTED = MASK_INVERTED.said(
    "You shut out what the mask allows. True means allowed, here and in "
    "`F.scaled_dot_product_attention`; in `nn.MultiheadAttention` it is the reverse."
)
OF_BOTH = (
    *(s for s in OF_THE_MASK if s not in (MASK_IGNORED, MASK_INVERTED, NOT_LOW_ENOUGH)),
    NOT_LOW_ENOUGH.likewise(filled_with(-1e2), filled_with(-1e3)),
    TOO_LITTLE_OFF,
    *OF_THE_MASKS_SHAPE,
    GUARD_AFTER_THE_MASK,
    INVERTED,
    *MORE_OF_THE_SOFTMAX,
    SCALED_AFTERWARDS,
    DIVIDED_BY_ROOT_M,
    COSINE,
)


# --- exercises -------------------------------------------------------------------------------

CROSS = Exercise(
    target="cross_attention.CrossAttention",
    reference=cross_attention.CrossAttention,
    section="Chapter 8, “A module with two inputs”",
    difficulty=2,
    minutes=20,
    criteria=(
        Criterion(
            "queries from x, keys and values from y",
            3,
            CROSS_CASES(
                questions(),
                # Where the sizes agree, the wrong sequence gives wrong numbers and no error.
                row("m=7 n=7 d_x=5 d_y=5 d_k=4 d_v=4", note="m = n, d_x = d_y and d_k = d_v"),
                row("m=3 n=11 d_x=5 d_y=5 d_k=16 d_v=7", then="m=2 n=5", note="d_x = d_y"),
            ),
        ),
        Criterion(
            "all sizes may differ; one question, one key",
            1,
            CROSS_CASES(
                row(
                    "m=5 n=2 d_x=7 d_y=3 d_k=4 d_v=11", turned=True, note="more questions than keys"
                ),
                row("m=1 n=11 d_x=3 d_y=5 d_k=4 d_v=7", note="one question"),
                row("m=11 n=1 d_x=3 d_y=5 d_k=4 d_v=7", note="one key"),
            ),
        ),
        Criterion(
            "a mask, True where attention is allowed",
            2,
            CROSS_CASES(
                questions(**QUESTIONS_MASK),
                CROSS_ROW.but(given={"mask": hole("n")}, note="a mask (n,) for all questions"),
                CROSS_ROW.but(batch=(2,), given={"mask": hole("... 1 n")}, note="padding"),
                row(
                    "m=11 n=7 d_x=5 d_y=3 d_k=4 d_v=2",
                    given={"y": Drawn("n d_y", far_off), "mask": hole("m n")},
                    note="scores far from 0",
                ),
            ),
        ),
        Criterion(
            "weights(x, y, mask) returns the attention map",
            2,
            CROSS_CASES(
                questions("weights"),
                questions("weights", **QUESTIONS_MASK),
                CROSS_ROW.but(
                    batch=(2,), given={"mask": hole("... 1 n")}, method="weights", note="padding"
                ),
                CROSS_ROWS.extreme[0].but(method="weights"),
                CROSS_ROW.but(zero=("W_q.weight", "W_v.weight"), method="weights", note="zeros"),
            ),
        ),
        Criterion(
            "batches",
            1,
            CROSS_CASES(
                *CROSS_ROWS.batches,
                CROSS_ROW.but(batch=(2,), given={"y": Drawn("n d_y")}, note="one y for a batch"),
                CROSS_ROW.but(batch=(2,), given={"x": Drawn("m d_x")}, note="one x for a batch"),
            ),
        ),
        Criterion(
            "float32 and large scores",
            1,
            CROSS_CASES(
                CROSS_ROWS.single.but("d_k=3", note="float32, d_k = 3"),
                *CROSS_ROWS.extreme,
                CROSS_ROW.but(zero=("W_k.weight",), note="W_k is 0"),
            ),
        ),
        Criterion(
            "gradients reach x, y and every weight",
            2,
            CROSS_CASES(
                *CROSS_ROWS.gradients,
                CROSS_ROW.but(given={"mask": hole("m n")}, use=call_module_with_gradients),
            ),
        ),
        leaves_arguments_alone(),
    ),
    excludes=(FLOATS_ONLY,),
    misconceptions=(
        *made(cross, *OF_THE_METHODS, *OF_THE_PRODUCT),
        *made(
            cross,
            *OF_THE_SCALE,
            DIVIDED_BY_OTHER_WIDTH.called("divided by √d_x").said(
                "You divide by the root of the width of x. After the projections queries and keys "
                "have d_k features, and it is √d_k that keeps their products in range."
            ),
            Slip(
                "divided by √d_y",
                "You divide by the root of the width of y. After the projections queries and keys "
                "have d_k features, and it is √d_k that keeps their products in range.",
                {
                    "factor": lambda q, k, other: other.shape[-1] ** -0.5,
                    "other": lambda self, x, y: y,
                },
            ),
            Slip(
                "divided by √d_v",
                DIVIDED_BY_OTHER_WIDTH.explanation,
                {
                    "factor": lambda q, k, other: other.shape[-1] ** -0.5,
                    "other": lambda self, x, y: self.W_v(y),
                },
            ),
            *(s for s in OF_THE_SOFTMAX if s is not OVER_QUERIES),
            OVER_QUERIES.said(
                "Your softmax runs down the columns, so that the questions share out each key. "
                "Each question has a budget of 1 for all keys: `softmax(dim=-1)`."
            ),
            BEST_ONLY,
            PADDING_ATTENDED.said(
                "Your result is the same with and without the mask. Scores where it is False "
                "become −∞ before the softmax; a key of zeros has the score 0, and still gets "
                "weight."
            ),
            *OF_BOTH,
            ROLES_EXCHANGED.called("the scores are transposed").said(
                "Your scores are `key @ query.mT`: row j belongs to token j of y. Row i belongs to "
                "token i of x, who asks: `query @ key.mT`."
            ),
            beside=IN_ONE_METHOD,
        ),
        *made(
            cross,
            Slip(
                "keys from x",
                "You compare the queries with `W_k(x)`. Those who are asked are the tokens of y: "
                "keys and values are both made from y.",
                {"key": lambda self, x, y: self.W_k(x)},
            ),
            Slip(
                "values from x",
                "You mix `W_v(x)`. The weights say how much of each token of y to take, so it is "
                "`W_v(y)` that they mix.",
                {"value": lambda self, x, y: self.W_v(x)},
            ),
            Slip(
                "y is never asked",
                "You make queries, keys and values from x alone. That is self-attention of x; keys "
                "and values come from y.",
                {
                    "key": lambda self, x, y: self.W_k(x),
                    "value": lambda self, x, y: self.W_v(x),
                },
            ),
            Slip(
                "queries from y too",
                "You make all three views from y, so there are n answers. The queries come from x, "
                "and there are m of them.",
                {"query": lambda self, x, y: self.W_q(y)},
            ),
            Slip(
                "x and y exchanged",
                "You let y ask and x answer, so your output has length n. The first argument asks: "
                "queries from x, keys and values from y, output of length m.",
                {
                    "query": lambda self, x, y: self.W_q(y),
                    "key": lambda self, x, y: self.W_k(x),
                    "value": lambda self, x, y: self.W_v(x),
                },
            ),
            Slip(
                "x is among those who are asked",
                "You join x and y and attend to both. In cross-attention only y is asked: n keys, "
                "not m + n.",
                {
                    "key": lambda self, x, y: self.W_k(torch.cat([x, y], dim=-2)),
                    "value": lambda self, x, y: self.W_v(torch.cat([x, y], dim=-2)),
                },
            ),
            Slip(
                "y is expanded to the batch of x",
                "You give y the batch axes of x. It may have more of them than x: leave both as "
                "they are, and `@` broadcasts them.",
                {
                    "key": lambda self, x, y: self.W_k(along(x, y)),
                    "value": lambda self, x, y: self.W_v(along(x, y)),
                },
            ),
            Slip(
                "the queries are not projected",
                "You compare the tokens of x themselves. What asks is a view of them, "
                "`self.W_q(x)`.",
                {"query": lambda self, x, y: x},
            ),
            Slip(
                "the keys are not projected",
                "You compare the queries with y itself. The keys are a view of it, `self.W_k(y)`.",
                {"key": lambda self, x, y: y},
            ),
            Slip(
                "the values are not projected",
                "You mix the tokens of y themselves. What is mixed is a view of them, "
                "`self.W_v(y)`.",
                {"value": lambda self, x, y: y},
            ),
            Slip(
                "one view for query and key",
                "You make queries and keys with one layer. Queries are `W_q(x)`, keys `W_k(y)`.",
                {"key": lambda self, x, y: self.W_q(y)},
                also=({"query": lambda self, x, y: self.W_k(x)},),
            ),
            Slip(
                "the layers of query and key exchanged",
                "You use `W_k(x)` as the queries and `W_q(y)` as the keys. Queries are `W_q(x)`, "
                "keys `W_k(y)`.",
                {"query": lambda self, x, y: self.W_k(x), "key": lambda self, x, y: self.W_q(y)},
            ),
            Slip(
                "one view for key and value",
                "You mix `W_k(y)`. The keys say what can be found, the values what is taken away: "
                "mix `self.W_v(y)`.",
                {"value": lambda self, x, y: self.W_k(y)},
            ),
            Slip(
                "keys and values exchanged",
                "You compare the queries with `W_v(y)` and mix `W_k(y)`. It is the keys that are "
                "compared and the values that are mixed.",
                {"key": lambda self, x, y: self.W_v(y), "value": lambda self, x, y: self.W_k(y)},
            ),
            Slip(
                "x is added to the output",
                "You add x to what was mixed. A residual belongs to the layer around attention, "
                "not here: return the mixed values alone.",
                {"answer": lambda attention, *given: mixed(attention, *given) + given[2]},
            ),
            Slip(
                "layers sized for x",
                "Your `W_k` takes d_x features. It is applied to y, and so is `W_v`: "
                "`nn.Linear(d_y, d_k)` and `nn.Linear(d_y, d_v)`.",
                {"layers": lambda d_x, d_y, d_k, d_v: linear(cross_sizes(d_x, d_x, d_k, d_v))},
            ),
            Slip(
                "d_v assumed equal to d_k",
                "Your `W_v` has d_k outputs. Values have a width of their own: "
                "`nn.Linear(d_y, d_v)`.",
                {"layers": lambda d_x, d_y, d_k, d_v: linear(cross_sizes(d_x, d_y, d_k, d_k))},
            ),
            Slip(
                "in and out exchanged",
                "You built `nn.Linear(d_k, d_x)`. Its first argument is the number of features "
                "that come in: `nn.Linear(d_x, d_k)`.",
                {
                    "layers": lambda *sizes: linear(
                        {name: size[::-1] for name, size in cross_sizes(*sizes).items()}
                    )
                },
            ),
            Slip(
                "a bias that was not asked for",
                "`nn.Linear` has a bias unless told otherwise: `nn.Linear(d_x, d_k, bias=False)`, "
                "and the same for the other two.",
                cross_biases(("W_q", "W_k", "W_v")),
                cross_biases,
                (("W_q",), ("W_k",), ("W_v",), ("W_q", "W_k"), ("W_k", "W_v")),
            ),
            NO_SUPER_INIT,
            LAYERS_HIDDEN,
            Slip(
                "y is cut off from the gradient",
                "The numbers are right, but nothing that made y can learn from them, or from a "
                "part of them: there is a `.detach()` or a `torch.no_grad()` around y. In a "
                "translator it is the encoder that would stop learning.",
                {
                    "key": lambda self, x, y: self.W_k(y.detach()),
                    "value": lambda self, x, y: self.W_v(y.detach()),
                },
                also=(
                    {"key": lambda self, x, y: self.W_k(y.data)},
                    {"value": lambda self, x, y: self.W_v(y.data)},
                ),
            ),
            GRADIENT_CUT.said(
                "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
                "`torch.no_grad()` cut the weights' history."
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
        Criterion(
            "one learned question to every element",
            3,
            POOL_CASES(
                three(),
                row("n=7 d=4"),
                row("n=11 d=16", then="n=5"),
                row("n=1 d=4", note="one element"),
            ),
        ),
        Criterion(
            "several questions, random ones at the start",
            1,
            POOL_CASES(
                POOL_ROW,
                row("n=5 d=16 n_queries=7", turned=True, note="seven questions"),
                start_case("AttentionPooling", (4, 3), "queries"),
            ),
        ),
        Criterion(
            "a mask, True where attention is allowed",
            2,
            POOL_CASES(
                three(**THREE_MASK),
                POOL_ROW.but(given={"mask": hole("n_queries n")}, note="a row for each query"),
                row("n=7 d=4", batch=(2,), given={"mask": hole("... 1 n")}, note="padding"),
                POOL_ROW.but(
                    batch=(2,), given={"mask": hole("... n_queries n")}, note="a mask for each"
                ),
                row(
                    "n=7 d=4 n_queries=11",
                    given={"x": Drawn("n d", far_off), "mask": hole("n_queries n")},
                    note="scores far from 0",
                ),
            ),
        ),
        Criterion(
            "weights(x, mask) returns the attention map",
            2,
            POOL_CASES(
                three("weights"),
                three("weights", **THREE_MASK),
                POOL_ROW.but(
                    batch=(2,), given={"mask": hole("... 1 n")}, method="weights", note="padding"
                ),
                POOL_ROWS.extreme[0].but("n_queries=3", method="weights"),
                POOL_ROW.but(zero=("queries", "W_v.weight"), method="weights", note="queries of 0"),
            ),
        ),
        Criterion(
            "batches",
            1,
            POOL_CASES(
                *POOL_ROWS.batches,
                row("n=4 d=4 n_queries=4", batch=(4,), note="every length 4, four queries"),
            ),
        ),
        Criterion(
            "float32 and large scores",
            1,
            POOL_CASES(
                POOL_ROWS.single.but("d=5", note="float32, d = 5"),
                *POOL_ROWS.extreme,
                POOL_ROW.but(zero=("W_k.weight",), note="W_k is 0"),
            ),
        ),
        Criterion(
            "gradients reach x, the queries and every weight",
            2,
            POOL_CASES(
                *POOL_ROWS.gradients,
                POOL_ROW.but(given={"mask": hole("1 n")}, use=call_module_with_gradients),
            ),
        ),
        leaves_arguments_alone(),
    ),
    excludes=(FLOATS_ONLY,),
    misconceptions=(
        *made(
            pool,
            *(s for s in OF_THE_METHODS if s not in (WEIGHTS_MISSING, WEIGHTS_ARE_OUTPUT)),
            WEIGHTS_MISSING.said(
                "The output is right, but there is no method `weights`. It takes the arguments of "
                "`forward` and returns the map (..., n_queries, n) that `forward` used."
            ),
            WEIGHTS_ARE_OUTPUT.said(
                "Your `weights` returns the mixed values. It is to return the map "
                "(..., n_queries, n) that they were mixed with."
            ),
            *OF_THE_PRODUCT,
        ),
        *made(
            pool,
            *(s for s in OF_THE_SCALE if s not in (DIVIDED_BY_D_K, NO_SCALE, DIVIDED_BY_ROOT_N)),
            NO_SCALE.said("You take the softmax of the bare scores. Divide them by √d first."),
            DIVIDED_BY_D_K.called("divided by d").said(
                "You divide the scores by d. The formula has its root, √d."
            ),
            DIVIDED_BY_ROOT_N.said(
                "You divide by the root of the number of elements. The root in the formula is that "
                "of d, the width of a query."
            ),
            *(s for s in OF_THE_SOFTMAX if s not in (OVER_QUERIES, SIGMOIDS)),
            OVER_QUERIES.said(
                "Your softmax runs over the queries. With one query every weight is then 1, and "
                "the output is a sum. Each query shares 1 among the elements: `softmax(dim=-1)`."
            ),
            SIGMOIDS.called("gates in place of shares").said(
                "You weigh each element by a sigmoid of its own score, so the weights do not sum "
                "to 1 and the output grows with the set. Elements compete: a softmax over all of "
                "them."
            ),
            BEST_ONLY.called("only the best match").said(
                "You return the value with the largest score. A hard choice has no gradient and "
                "learns nothing; the softmax gives every element its share."
            ),
            Slip(
                "mean pooling",
                "Every element gets the same weight, whatever the queries are. The weights are a "
                "softmax of the queries' scores with the keys.",
                {"normalize": alike},
            ),
            PADDING_ATTENDED,
            *OF_BOTH,
            beside=IN_ONE_METHOD,
        ),
        *made(
            pool,
            Slip(
                "the axis of the queries is squeezed away",
                "You return (..., d) for one query. The output keeps its axis, (..., 1, d), so "
                "that one query and many are the same code.",
                {"answer": lambda attention, *given: mixed(attention, *given).squeeze(-2)},
                also=(
                    {
                        "answer": lambda attention, *given: mixed(attention, *given).squeeze(-2),
                        "shares": lambda attention, *given: shared_out(attention, *given).squeeze(
                            -2
                        ),
                    },
                ),
            ),
            Slip(
                "squeezed along every axis",
                "`squeeze()` without an axis drops every axis of length 1, a batch of 1 too. The "
                "output is (..., n_queries, d), never squeezed.",
                {"answer": lambda attention, *given: mixed(attention, *given).squeeze()},
            ),
            Slip(
                "only the first answer is kept",
                "You return the answer to query 0 alone. There is one row for each query, "
                "(..., n_queries, d).",
                {"answer": lambda attention, *given: mixed(attention, *given)[..., :1, :]},
                also=({"answer": lambda attention, *given: mixed(attention, *given)[..., 0, :]},),
            ),
            Slip(
                "the answers are averaged",
                "You take the mean of the answers, or add them up. Each query has an answer of its "
                "own: return all of them, (..., n_queries, d).",
                {"answer": lambda attention, *given: mixed(attention, *given).mean(-2, True)},
                also=(
                    {"answer": lambda attention, *given: mixed(attention, *given).mean(-2)},
                    {"answer": lambda attention, *given: mixed(attention, *given).sum(-2, True)},
                    {"answer": lambda attention, *given: mixed(attention, *given).sum(-2)},
                ),
            ),
            Slip(
                "the answers are run together",
                "You put the answers behind each other in one row. Each has a row of its own: "
                "(..., n_queries, d).",
                {"answer": lambda attention, *given: mixed(attention, *given).flatten(-2)},
            ),
            Slip(
                "the queries are added to the output",
                "You add the queries to what was mixed. Return the mixed values alone.",
                {"answer": lambda attention, *given: mixed(attention, *given) + given[0][0]},
            ),
            Slip(
                "the elements ask, not the queries",
                "You let the elements attend to each other and average the result. Those who ask "
                "are the learned `queries`.",
                {
                    "query": lambda self, x: x,
                    "answer": lambda attention, *given: mixed(attention, *given).mean(-2, True),
                },
            ),
            Slip(
                "the queries are projected too",
                "You send the queries through `W_k`. They are compared as they are: only the "
                "elements are projected.",
                {"query": lambda self, x: self.W_k(self.queries)},
            ),
            Slip(
                "the keys are not projected",
                "You compare the queries with x itself. The keys are a view of it, `self.W_k(x)`.",
                {"key": lambda self, x: x},
            ),
            Slip(
                "the values are not projected",
                "You mix the elements themselves. What is mixed is a view of them, `self.W_v(x)`.",
                {"value": lambda self, x: x},
            ),
            Slip(
                "one view for key and value",
                "You mix `W_k(x)`. The keys say what can be found, the values what is taken away: "
                "mix `self.W_v(x)`.",
                {"value": lambda self, x: self.W_k(x)},
            ),
            Slip(
                "keys and values exchanged",
                "You compare the queries with `W_v(x)` and mix `W_k(x)`. It is the keys that are "
                "compared and the values that are mixed.",
                {"key": lambda self, x: self.W_v(x), "value": lambda self, x: self.W_k(x)},
            ),
            Slip(
                "one batch axis is assumed",
                "You expand the queries to `x.shape[0]` copies, which is right for exactly one "
                "batch axis. Leave them (n_queries, d): a product with (..., d, n) takes them "
                "along.",
                {"query": lambda self, x: self.queries.expand(x.shape[0], -1, -1)},
                also=(
                    {
                        "query": lambda self, x: self.queries.expand(x.shape[0], -1, -1),
                        "compare": lambda q, k: q.bmm(k.transpose(1, 2)),
                    },
                ),
            ),
            Slip(
                "queries do not start at random",
                "Your queries begin with the same number everywhere, so that all of them ask the "
                "same and learn the same. Fill them with random numbers: "
                "`nn.Parameter(torch.randn(n_queries, d))`.",
                zero_at_start("queries"),
            ),
            Slip(
                "queries is a plain tensor",
                "`queries` is a tensor that the module does not know as its own: it would neither "
                "be learned nor saved. Wrap it: "
                "`self.queries = nn.Parameter(torch.randn(n_queries, d))`.",
                held(lambda d, n_queries: torch.zeros(n_queries, d)),
            ),
            Slip(
                "queries is a layer",
                "You made `queries` an `nn.Linear` or `nn.Embedding`. It is a single parameter of "
                "shape (n_queries, d): `nn.Parameter(torch.randn(n_queries, d))`.",
                held(lambda d, n_queries: nn.Linear(d, n_queries, bias=False)),
                also=(held(lambda d, n_queries: nn.Linear(d, n_queries)),),
            ),
            Slip(
                "queries lie on their side",
                "Your `queries` have the shape (d, n_queries). A query is a row: (n_queries, d).",
                held(lambda d, n_queries: nn.Parameter(torch.randn(d, n_queries))),
            ),
            Slip(
                "a batch axis in the parameter",
                "Your `queries` have the shape (1, n_queries, d). They are (n_queries, d), and "
                "broadcasting adds the batch axes, however many there are.",
                held(lambda d, n_queries: nn.Parameter(torch.randn(1, n_queries, d))),
            ),
            Slip(
                "a single query as a vector",
                "Your `queries` have the shape (d,). Also for one query it is (n_queries, d), that "
                "is (1, d).",
                held(lambda d, n_queries: nn.Parameter(torch.randn(d))),
            ),
            Slip(
                "n_queries is ignored",
                "You always make one query. Hand the argument on: "
                "`nn.Parameter(torch.randn(n_queries, d))`.",
                held(lambda d, n_queries: nn.Parameter(torch.randn(1, d))),
            ),
            Slip(
                "a layer for the queries",
                "Your module has a `W_q`. The queries are learned as they are; to multiply them by "
                "a learned matrix would add parameters and nothing else.",
                {
                    "layers": lambda d, n_queries=1: {
                        **pool_layers(d, n_queries),
                        "W_q": nn.Linear(d, d, bias=False),
                    }
                },
            ),
            Slip(
                "a bias that was not asked for",
                "`nn.Linear` has a bias unless told otherwise: `nn.Linear(d, d, bias=False)`.",
                pool_biases(("W_k", "W_v")),
                pool_biases,
                (("W_k",), ("W_v",)),
            ),
            NO_SUPER_INIT,
            Slip(
                "padding is zeroed and still attended to",
                "You set the masked elements of x to 0. Their keys then have the score 0, and "
                "exp(0) = 1, so they take weight from the others. Put −∞ into the scores.",
                {"answer": padding_zeroed},
            ),
            Slip(
                "weights is squeezed",
                "Your `weights` drops the axis of a single query. Like the output it keeps it: "
                "(..., 1, n).",
                {"shares": lambda attention, *given: shared_out(attention, *given).squeeze(-2)},
            ),
            Slip(
                "the queries do not learn",
                "The numbers are right, but no gradient reaches `queries`: `.detach()` or `.data` "
                "cut their history. The question is what is to be learned.",
                {"query": lambda self, x: self.queries.detach()},
            ),
            GRADIENT_CUT.said(
                "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
                "`torch.no_grad()` cut the weights' history."
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
