"""The exercises of chapter 8, cross-attention and attention pooling.

In float64 cases d_k, and the width of what is pooled, is a power of 4, so that its root is exact in
every precision: a scale that was computed in float32 is no mistake.
"""

import math

import torch
from torch import nn

from attncourse import cross_attention
from attncourse.checks.callers import call_module_with_gradients
from attncourse.checks.exercise import Rng, composition, exercise, unchanged
from attncourse.checks.variants.conventions import columns, forbidden, masked, with_columns
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import Drawn, between, hole, row, standard
from attncourse.checks.writing.decisions import attention_class, linear, mixed, shared_out
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    start_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import made, mistake

# --- cases -----------------------------------------------------------------------------------


def cross_state(rng: Rng, d_x: int, d_y: int, d_k: int, d_v: int) -> State:
    shapes = {"W_q": (d_k, d_x), "W_k": (d_k, d_y), "W_v": (d_v, d_y)}
    return {f"{name}.weight": 1.5 * uniform_values(rng, *shape) for name, shape in shapes.items()}


def pool_state(rng: Rng, d: int, n_queries: int = 1) -> State:
    shapes = {"queries": (n_queries, d), "W_k.weight": (d, d), "W_v.weight": (d, d)}
    return {name: 1.5 * uniform_values(rng, *shape) for name, shape in shapes.items()}


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


PADDING = {"mask": hole("... 1 n")}

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


@composition
def cross(
    layers=lambda d_x, d_y, d_k, d_v: linear(
        {"W_q": (d_x, d_k), "W_k": (d_y, d_k), "W_v": (d_y, d_v)}
    ),
    query=lambda self, x, y: self.W_q(x),
    key=lambda self, x, y: self.W_k(y),
    value=lambda self, x, y: self.W_v(y),
    **options,
):
    """A ``CrossAttention`` made of decisions: its layers, its three views, its attention."""
    return attention_class("CrossAttention", layers, query, key, value, 2, **options)


def by_root_of(width, other):
    return mistake(f"""divided by √{width}
        You divide by the root of {width}. After the projections queries and keys have d_k features,
        and it is √d_k that keeps their products in range.
    """).by(factor=lambda q, k, other: other.shape[-1] ** -0.5, other=other)


def first_for(x, y):
    """The first sequences of y, until it has no more axes than x."""
    while y.ndim > x.ndim:
        y = y[0]
    return y


def along(x, y):
    """y with the batch axes of x."""
    return y.expand(*x.shape[:-2], *y.shape[-2:])


def pool_layers(d, n_queries=1):
    queries = nn.Parameter(torch.randn(n_queries, d))
    return {"queries": queries, **linear({"W_k": (d, d), "W_v": (d, d)})}


@composition
def pool(
    layers=pool_layers,
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


def answered(change):
    """The option that changes what ``forward`` returns."""
    return {"answer": lambda attention, *given: change(mixed(attention, *given))}


def shown(change):
    """The option that changes what ``weights`` returns."""
    return {"shares": lambda attention, *given: change(shared_out(attention, *given))}


def by_letters(letters):
    """Products with a letter for one batch axis."""
    return mistakes.ONE_BATCH_AXIS.by(compare=lambda q, k: torch.einsum(letters, q, k)).by(
        compare=lambda q, k: torch.einsum(letters, q, k),
        mix=lambda weights, v: torch.einsum("bmn,bnd->bmd", weights, v),
    )


def added_where_it_fits(attention, *given):
    output, x = mixed(attention, *given), given[2]
    return output + x if output.shape == x.shape else output


def as_a_buffer(self, layers):
    queries = layers.pop("queries")
    decisions.assigned(self, layers)
    self.register_buffer("queries", queries.data)


def with_axis(scores, mask, n_axes):
    """Masked, with an axis for the queries in every mask of so many axes."""
    there = mask is not None and mask.ndim == n_axes
    return decisions.hide(scores, mask.unsqueeze(-2) if there else mask)


SQUEEZED = shown(lambda maps: maps.squeeze(-2))
OVER_OTHERS = (mistakes.OVER_QUERIES, mistakes.OVER_AXIS_1, mistakes.OVER_AXIS_0)
OF_THE_PRODUCT = (
    *(s for s in mistakes.OF_THE_PRODUCT if s is not mistakes.ONE_BATCH_AXIS),
    mistakes.RESHAPED,
    mistakes.KEY_NOT_TURNED,
)
WEIGHTS_TURNED = mistake("""weights is transposed
    Your `weights` returns the map transposed, a row for each key. Return the map that `forward`
    mixes with: row i belongs to query i.""").by(shown(lambda maps: maps.mT))
OF_BOTH = (
    *mistakes.OF_THE_SCALE,
    mistakes.DIVIDED_BY_ROOT_M,
    mistakes.SCALED_AFTERWARDS,
    *(  # where a whole column is masked, it matters what was filled in
        s.by(s.ways[0] | mistakes.filled_with(-1e9)) if s in OVER_OTHERS else s
        for s in mistakes.OF_THE_SOFTMAX
    ),
    *mistakes.MORE_OF_THE_SOFTMAX,
    mistakes.NEITHER,
    mistakes.BEST_ONLY,
    *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
    mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
    mistakes.TOO_LITTLE_OFF,
    *mistakes.OF_THE_MASKS_SHAPE,
    mistake("""an axis is added to a mask of two axes
        You take a mask of two axes for (b, n) and put an axis between them. Such a mask has a row
        for each query here; padding comes as (b, 1, n). It broadcasts as it is: add nothing.""")
    .by(hide=lambda s, mask: with_axis(s, mask, 2))
    .by(hide=lambda s, mask: with_axis(s, mask, s.ndim - 1)),
    mistakes.GUARD_AFTER_THE_MASK,
    mistakes.COSINE,
)


# --- exercises -------------------------------------------------------------------------------

CROSS = exercise(
    cross_attention.CrossAttention,
    section="Chapter 8, “A module with two inputs”",
    difficulty=2,
    minutes=20,
    criteria=(
        CROSS_CASES.criterion("queries from x, keys and values from y", 3).on(
            questions(),
            # Where the sizes agree, the wrong sequence gives wrong numbers and no error.
            row("m=7 n=7 d_x=5 d_y=5 d_k=4 d_v=4", note="m = n, d_x = d_y and d_k = d_v"),
            row("m=3 n=11 d_x=5 d_y=5 d_k=16 d_v=7", then="m=2 n=5", note="d_x = d_y"),
            CROSS_ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        CROSS_CASES.criterion("all sizes may differ; one question, one key", 1).on(
            row("m=5 n=2 d_x=7 d_y=3 d_k=4 d_v=11", turned=True, note="more questions"),
            row("m=1 n=11 d_x=3 d_y=5 d_k=4 d_v=7", note="one question"),
            row("m=11 n=1 d_x=3 d_y=5 d_k=4 d_v=7", note="one key"),
        ),
        CROSS_CASES.criterion("a mask, True where attention is allowed", 2).on(
            questions(**QUESTIONS_MASK),
            CROSS_ROW.but(given={"mask": hole("n")}, note="a mask (n,) for all questions"),
            CROSS_ROW.but(batch=(2,), given=PADDING, note="padding"),
            CROSS_ROW.but("n=5", batch=(5,), given={"mask": hole("m n")}, note=cases.ONE_MASK),
            CROSS_ROW.but(
                "m=11",
                given={"y": Drawn("n d_y", far_off), "mask": hole("m n")},
                note="scores far from 0",
            ),
        ),
        CROSS_CASES.criterion("weights(x, y, mask) returns the attention map", 2).on(
            questions("weights"),
            questions("weights", **QUESTIONS_MASK),
            CROSS_ROW.but(batch=(2,), given=PADDING, method="weights", note="padding"),
            CROSS_ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
        ),
        CROSS_CASES.criterion("batches", 1).on(
            *CROSS_ROWS.batches,
            CROSS_ROW.but(batch=(2,), given={"y": Drawn("n d_y")}, note="one y for a batch"),
            CROSS_ROW.but(batch=(2,), given={"x": Drawn("m d_x")}, note="one x for a batch"),
        ),
        CROSS_CASES.criterion("float32, large scores and weights of 0", 1).on(
            CROSS_ROWS.single.but("d_k=3", note="float32, d_k = 3"),
            *CROSS_ROWS.extreme,
            CROSS_ROWS.extreme[0],
            CROSS_ROW.but(zero=("W_q.weight", "W_v.weight"), note="zeros"),
            CROSS_ROW.but(zero=("W_k.weight",), note="W_k is 0"),
        ),
        CROSS_CASES.criterion("gradients reach x, y and every weight", 2).on(
            *CROSS_ROWS.gradients,
            CROSS_ROW.but(given={"mask": hole("m n")}, use=call_module_with_gradients),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        *made(cross, *mistakes.OF_THE_METHODS, WEIGHTS_TURNED, *OF_THE_PRODUCT),
        *made(cross, by_letters("bmd,bnd->bmn")),
        *made(
            cross,
            *OF_BOTH,
            by_root_of("d_x", lambda self, x, y: x),
            by_root_of("d_y", lambda self, x, y: y),
            by_root_of("d_v", lambda self, x, y: self.W_v(y)),
            mistakes.ROLES_EXCHANGED.called("the scores are transposed").said(
                "Your scores are `key @ query.mT`: row j belongs to token j of y. Row i belongs to "
                "token i of x, who asks: `query @ key.mT`."
            ),
            beside=mistakes.IN_ONE_METHOD,
        ),
        *made(
            cross,
            *mistakes.OF_THE_VIEWS,
            mistakes.QUERIES_NOT_PROJECTED,
            mistakes.ONE_VIEW_TO_COMPARE,
            mistake("""keys or values from x
                You make keys or values from x, as in self-attention. Those who are asked are the
                tokens of y: keys and values are both made from y.""")
            .by(key=lambda self, x, y: self.W_k(x))
            .by(value=lambda self, x, y: self.W_v(x))
            .by(key=lambda self, x, y: self.W_k(x), value=lambda self, x, y: self.W_v(x)),
            mistake("""y asks
                You make the queries from y, so there are n answers. The first argument asks:
                queries from x, keys and values from y, output of length m.""")
            .by(query=lambda self, x, y: self.W_q(y))
            .by(
                query=lambda self, x, y: self.W_q(y),
                key=lambda self, x, y: self.W_k(x),
                value=lambda self, x, y: self.W_v(x),
            ),
            mistake("""x is among those who are asked
                You join x and y and attend to both. Only y is asked: n keys, not m + n.""").by(
                key=lambda self, *both: self.W_k(torch.cat(both, dim=-2)),
                value=lambda self, *both: self.W_v(torch.cat(both, dim=-2)),
            ),
            mistake("""only the first of y's sequences
                Where y has more batch axes than x you take the first of its sequences. Leave both
                as they are: `@` broadcasts the axes that one of them lacks.
            """).by(
                key=lambda self, x, y: self.W_k(first_for(x, y)),
                value=lambda self, x, y: self.W_v(first_for(x, y)),
            ),
            mistake("""y is expanded to the batch of x
                You give y the batch axes of x, or x those of y. The other may have more of them:
                leave both as they are, and `@` broadcasts them.""")
            .by(
                key=lambda self, x, y: self.W_k(along(x, y)),
                value=lambda self, x, y: self.W_v(along(x, y)),
            )
            .by(query=lambda self, x, y: self.W_q(along(y, x))),
            mistake("""the layers of query and key exchanged
                You use `W_k(x)` as the queries and `W_q(y)` as the keys. Queries are `W_q(x)`, keys
                `W_k(y)`.
            """).by(query=lambda self, x, y: self.W_k(x), key=lambda self, x, y: self.W_q(y)),
            mistake("""x is added to the output
                You add x to what was mixed. A residual belongs to the layer around attention, not
                here: return the mixed values alone.""")
            .by(answer=lambda attention, *given: mixed(attention, *given) + given[2])
            .by(answer=added_where_it_fits),
            mistakes.NO_SUPER_INIT,
            mistakes.LAYERS_HIDDEN,
            mistake("""y is cut off from the gradient
                The numbers are right, but what made y cannot learn from them, or not from all:
                there is a `.detach()` or a `torch.no_grad()` around y.""")
            .by(
                key=lambda self, x, y: self.W_k(y.detach()),
                value=lambda self, x, y: self.W_v(y.detach()),
            )
            .by(key=lambda self, x, y: self.W_k(y.data))
            .by(value=lambda self, x, y: self.W_v(y.data)),
        ),
    ),
)

POOLING = exercise(
    cross_attention.AttentionPooling,
    section="Chapter 8, “A question that nobody asks”",
    difficulty=3,
    minutes=25,
    criteria=(
        POOL_CASES.criterion("one learned question to every element", 3).on(
            three(),
            row("n=7 d=4"),
            row("n=11 d=16", then="n=5"),
            row("n=7 d=4", then="", note=cases.OTHER_NUMBERS),
        ),
        POOL_CASES.criterion("several questions, random ones at the start", 1).on(
            POOL_ROW,
            row("n=5 d=16 n_queries=7", turned=True, note="seven questions"),
            start_case("AttentionPooling", (4, 3), "queries"),
        ),
        POOL_CASES.criterion("a mask, True where attention is allowed", 2).on(
            three(**THREE_MASK),
            POOL_ROW.but(given={"mask": hole("n_queries n")}, note="a row for each query"),
            row("n=7 d=4", batch=(2,), given=PADDING, note="padding"),
            POOL_ROW.but(
                "n=3", batch=(3,), given={"mask": hole("n_queries n")}, note=cases.ONE_MASK
            ),
            POOL_ROW.but(
                batch=(2,), given={"mask": hole("... n_queries n")}, note="a mask for each"
            ),
            POOL_ROW.but(
                "n_queries=11",
                given={"x": Drawn("n d", far_off), "mask": hole("n_queries n")},
                note="scores far from 0",
            ),
        ),
        POOL_CASES.criterion("weights(x, mask) returns the attention map", 2).on(
            three("weights"),
            three("weights", **THREE_MASK),
            POOL_ROW.but(batch=(2,), given=PADDING, method="weights", note="padding"),
            POOL_ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
        ),
        POOL_CASES.criterion("batches, one element", 1).on(
            *POOL_ROWS.batches,
            row("n=1 d=4", note="one element"),
            row("n=4 d=4 n_queries=4", batch=(4,), note="every length 4, four queries"),
        ),
        POOL_CASES.criterion("float32, large scores and weights of 0", 1).on(
            POOL_ROWS.single.but("d=5", note="float32, d = 5"),
            *POOL_ROWS.extreme,
            POOL_ROWS.extreme[0].but("n_queries=3"),
            POOL_ROW.but(zero=("queries", "W_v.weight"), note="queries of 0"),
            POOL_ROW.but(zero=("W_k.weight",), note="W_k is 0"),
        ),
        POOL_CASES.criterion("gradients reach x, the queries and every weight", 2).on(
            *POOL_ROWS.gradients,
            POOL_ROW.but(given={"mask": hole("1 n")}, use=call_module_with_gradients),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        *made(pool, *mistakes.OF_THE_METHODS, WEIGHTS_TURNED, *OF_THE_PRODUCT),
        *made(pool, by_letters("md,bnd->bmn")),
        *made(
            pool,
            *(s.naming(d_k="d") for s in OF_BOTH),
            mistake("""mean pooling
                Every element gets the same weight, whatever the queries are. The weights are a
                softmax of the queries' scores with the keys.""").by(normalize=alike),
            beside=mistakes.IN_ONE_METHOD,
        ),
        *made(
            pool,
            *mistakes.OF_THE_VIEWS,
            mistake("""the axis of the queries is squeezed away
                You drop the axis of a single query, in the output or in `weights`, or by
                `squeeze()` every axis of length 1. Keep it: one and many are the same code.""")
            .by(answer=lambda attention, *given: mixed(attention, *given).squeeze(-2))
            .by(answered(lambda output: output.squeeze()))
            .by(answered(lambda output: output.squeeze(-2)) | SQUEEZED)
            .by(SQUEEZED),
            mistake("""the answers do not stay apart
                You average the answers, add them up, run them together, or keep the first alone, or
                average the queries, or the maps of `weights`. Each query has an answer of its own:
                return all of them, (..., n_queries, d).""")
            .by(answer=lambda attention, *given: mixed(attention, *given).mean(-2, True))
            .by(answered(lambda output: output.mean(-2)))
            .by(answered(lambda output: output.sum(-2, True)))
            .by(answered(lambda output: output.sum(-2)))
            .by(answered(lambda output: output.flatten(-2)))
            .by(answered(lambda output: output[..., :1, :]))
            .by(answered(lambda output: output[..., 0, :]))
            .by(query=lambda self, x: self.queries.mean(0, keepdim=True))
            .by(shown(lambda maps: maps.mean(-2)))
            .by(shown(lambda maps: maps.mean(-2, True))),
            mistake("""the queries are added to the output
                You add the queries to what was mixed. Return the mixed values alone.
            """).by(answer=lambda attention, *given: mixed(attention, *given) + given[0][0]),
            mistake("""the elements ask, not the queries
                You let the elements attend to each other and average the result. Those who ask are
                the learned `queries`.""").by(
                query=lambda self, x: x,
                answer=lambda attention, *given: mixed(attention, *given).mean(-2, True),
            ),
            mistake("""the queries are projected too
                You send the queries through `W_k`. They are compared as they are: only the elements
                are projected.""").by(query=lambda self, x: self.W_k(self.queries)),
            mistake("""one batch axis is assumed
                You expand the queries to `x.shape[0]` copies, right for exactly one batch axis.
                Leave them (n_queries, d): a product with (..., d, n) takes them along.""")
            .by(query=lambda self, x: self.queries.expand(x.shape[0], -1, -1))
            .by(
                query=lambda self, x: self.queries.expand(x.shape[0], -1, -1),
                compare=lambda q, k: q.bmm(k.transpose(1, 2)),
            ),
            mistakes.not_random("queries"),
            mistake("""queries is a plain tensor
                `queries` is a tensor that the module does not know as a parameter, or a buffer: it
                would not be learned. Wrap it: `nn.Parameter(torch.randn(n_queries, d))`.""")
            .by(
                layers=lambda d, n_queries=1: {
                    **pool_layers(d, n_queries),
                    "queries": torch.zeros(n_queries, d),
                }
            )
            .by(hold=as_a_buffer),
            mistakes.NO_SUPER_INIT,
            mistake("""padding is zeroed and still attended to
                You set the masked elements of x to 0. Their keys then have the score 0, and exp(0)
                = 1, so they take weight from the others. Put −∞ into the scores.
            """).by(answer=padding_zeroed),
        ),
    ),
)

EXERCISES = (CROSS, POOLING)

VARIANTS = (
    columns(
        {
            "CrossAttention": with_columns("x", "y", methods=("forward", "weights")),
            "AttentionPooling": with_columns("x", methods=("forward", "weights")),
        },
        """
            A token is a row. Where → A token is a column. Where
            | `x` | `(..., m, d_x)` | who asks | → | `x` | `(..., d_x, m)` | who asks |
            | `y` | `(..., n, d_y)` | who is asked → | `y` | `(..., d_y, n)` | who is asked
            | `forward` returns | `(..., m, d_v)` | | → | `forward` returns | `(..., d_v, m)` | |
            the output alone, one row for each token of x
            → the output alone, one column for each token of x
            Expect `torch.Size([2, 3, 6])` and → Expect `torch.Size([2, 6, 3])` and
            torch.ones(2, 3, 7), torch.ones(2, 5, 8) → torch.ones(2, 7, 3), torch.ones(2, 8, 5)
            which returns one row for each query → which returns one column for each query
            | `x` | `(..., n, d)` | one element per row |
            → | `x` | `(..., d, n)` | one element per column |
            | `forward` returns | `(..., n_queries, d)` | with one query too: `(..., 1, d)` |
            → | `forward` returns | `(..., d, n_queries)` | with one query too: `(..., d, 1)` |
            Expect `torch.Size([2, 1, 5])` and `torch.Size([2, 3, 5])`
            → Expect `torch.Size([2, 5, 1])` and `torch.Size([2, 5, 3])`
            sets = torch.ones(2, 7, 5) → sets = torch.ones(2, 5, 7)
            return all of them, (..., n_queries, d) → return all of them, (..., d, n_queries)
        """,
    ),
    forbidden(
        dict.fromkeys(("CrossAttention", "AttentionPooling"), masked("forward", "weights")),
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden. Chapter 5's functions, "
        "which you may call, want True for allowed: hand `~mask` on to them.",
    ),
)
