"""The exercises of chapter 5, queries, keys and values.

In float64 cases d_k is a power of 4, so that 1/√d_k is exact in every precision: a scale that was
computed in float32 is no mistake.
"""

import torch

from attncourse import kqv
from attncourse.checks.callers import call_module_with_gradients, with_gradients
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.variants.conventions import columns, forbidden, masked, with_columns
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, hole, normal, once_more, row, standard
from attncourse.checks.writing.decisions import Attention, attention_class, dot, linear
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import made, mistake

# --- cases -----------------------------------------------------------------------------------

PROJECT_CASES = CaseTable({"x": "... n d_in", "weight": "d_in d_out"}, how=normal)
PROJECT_ROWS = standard(PROJECT_CASES)
PROJECT_BY_HAND = Case((tensor([[1, 0, 2], [0, 3, 1]]), tensor([[1, 2], [0, 1], [3, -1]])))
PROJECT_SQUARE = Case(
    (tensor([[1, 2], [0, 1]]), tensor([[1, 1], [0, 2]])),
    note="as many tokens as features in and out",
)

PAIR = {"query": "... m d_k", "key": "... n d_k"}
SCORES_CASES = CaseTable(PAIR, how=normal)
SCORES_ROWS = standard(SCORES_CASES, d_k=4)
SCORES_BY_HAND = Case(
    (tensor([[1, 0, 2], [0, 3, 1]]), tensor([[1, 1, 0], [2, 0, 1], [0, 1, 3], [1, 2, 1]])),
)

ATTENTION_CASES = CaseTable(PAIR | {"value": "... n d_v"}, how=normal)
ATTENTION_ROWS = standard(ATTENTION_CASES, d_k=4)
TWO_ASK_THREE = (
    tensor([[2, 0, 0, 0], [0, 2, 0, 0]]),
    tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]]),
    tensor([[1, 0], [0, 1], [4, 4]]),
)
ATTENTION_BY_HAND = Case(TWO_ASK_THREE, note="d_k = 4, so that √d_k = 2")
TWO_EACH = torch.tensor([[True, True, False], [False, True, True]])
MASKED_BY_HAND = Case((*TWO_ASK_THREE, TWO_EACH))
# All scores of a row are far below 0, and near each other: a finite number for −∞ lies above them.
NEAR = tensor([[1, 1, 1, 1.0001], [1, 1, 1.0001, 1], [1, 1, 0.9999, 1]])
LOW = tensor([[-60000] * 4, [-90000] * 4]), NEAR
MASKED_FAR_BELOW = Case((*LOW, TWO_ASK_THREE[2], TWO_EACH), note="scores far below −100 000")
# What is forbidden is the largest by far: of weights that are masked afterwards nothing is left.
MASKED_FAR_ABOVE = Case(
    (
        tensor([[4000, 2, 0, 0], [2, 4000, 0, 0]]),
        tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
        TWO_ASK_THREE[2],
        torch.tensor([[False, True, True], [True, False, True]]),
    ),
    note="a masked score 2000 above the others",
)
NARROW = row("m=5 n=7 d_k=4 d_v=3")


def head_state(
    rng: Rng, d_model: int, d_k: int, d_v: int | None = None, *, bias: bool = False
) -> State:
    """Random weights of order one for an AttentionHead, and biases that are not zero."""
    sizes = {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}
    state = {}
    for name, size in sizes.items():
        state[f"{name}.weight"] = uniform_values(rng, size, d_model)
        if bias:
            state[f"{name}.bias"] = tensor(rng.uniform(0.5, 1.5, size) * rng.choice([-1, 1], size))
    return state


HEAD_CASES = ModuleTable(
    {"x": "... n d_model"}, name="AttentionHead", build="d_model d_k d_v", state=head_state
)
HEAD_ROWS = standard(HEAD_CASES, left_out="d_v", d_k=4)
HEAD_ROW = row("n=7 d_model=5 d_k=4")
BIASED = HEAD_ROW.but(options={"bias": True})

# *I am hungry* with small integers: three tokens of three features, d_k = d_v = 4.
HUNGRY = {"x": tensor([[1, 0, 0], [0, 1, 0], [1, 0, 1]])}
HUNGRY_STATE = {
    "W_q.weight": tensor([[1, 0, 1], [0, 2, 0], [0, 0, 0], [1, 0, 0]]),
    "W_k.weight": tensor([[0, 1, 2], [1, 0, 0], [0, 0, 1], [0, 0, 0]]),
    "W_v.weight": tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 1]]),
}
HEAD_BY_HAND = module_case("AttentionHead", (3, 4), HUNGRY_STATE, HUNGRY)
# The scores are −120 000, 2.4 apart.
FAR_BELOW = module_case(
    "AttentionHead",
    (2, 4),
    {
        "W_q.weight": tensor([[-6, 0]] * 4),
        "W_k.weight": tensor([[1, 0.002]] * 4),
        "W_v.weight": tensor([[0, 1], [1, 0], [1, 1], [0, 2]]),
    },
    {
        "x": tensor([[100, 0], [100, 1], [100, -1]]),
        "mask": torch.tensor([[True, True, False], [False, True, True], [True, False, True]]),
    },
    note="scores far below −100 000",
)
MAP_BY_HAND = module_case("AttentionHead", (3, 4), HUNGRY_STATE, HUNGRY, method="weights")


# --- usual mistakes --------------------------------------------------------------------------


@composition
def attend(finish=lambda output, weights: output, **options):
    """Attention made of decisions; ``finish`` says what is returned."""
    attention = Attention.of(options)

    def answer(query, key, value, mask=None, *, scale=None):
        weights = attention.weights(query, key, value, mask, scale)
        return finish(attention.output(query, key, value, mask, scale), weights)

    return answer


def causal(scores):
    return torch.ones_like(scores, dtype=torch.bool).tril()


CAUSAL = (
    mistake("""causal where nobody asked for it
    You hide later keys without a mask, or besides it. `None` allows everything; which keys a query
    may see is for the caller to say.""")
    .by(hide=lambda s, mask: decisions.hide(s, causal(s) if mask is None else mask))
    .by(hide=lambda s, mask: decisions.hide(decisions.hide(s, mask), causal(s)))
)


def renormalised(weights, mask, factor):
    if mask is None:
        return weights
    weights = weights * mask
    return weights / weights.sum(-1, keepdim=True)


RENORMALISED = mistake("""masked after the softmax, then renormalised
    You set weights to 0 after the softmax and divide by what is left. Where a masked score is far
    above the others nothing is left, and 0/0 is NaN. Put −∞ into the scores before the softmax.
""").by(hide=lambda s, mask: s, after=renormalised)
OF_THE_MASK = (
    *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
    mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
)
COLUMNS_BLEND = mistake("""column i blends output i, not row i
    You mix with the transposed weights. Row i holds the weights of query i: leave it a row.
""").by(mix=lambda weights, value: weights.mT @ value)


def layers_of(d_model, d_k, d_v=None, bias=False):
    widths = {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}
    return linear({name: (d_model, width) for name, width in widths.items()}, bias)


@composition
def head(
    layers=layers_of,
    query=lambda self, x: self.W_q(x),
    key=lambda self, x: self.W_k(x),
    value=lambda self, x: self.W_v(x),
    **options,
):
    """An ``AttentionHead`` made of decisions: its layers, its three views, its attention."""
    return attention_class("AttentionHead", layers, query, key, value, **options)


def shared(*sizes, **options):
    layers = layers_of(*sizes, **options)
    return layers | {"W_k": layers["W_q"]}


def by_weights(turned, *views):
    """Views by the layers' weights, without the layers' biases."""
    return {
        view: lambda self, x, name=f"W_{view[0]}": x @ turned(getattr(self, name).weight)
        for view in views
    }


# --- exercises -------------------------------------------------------------------------------

PROJECT = exercise(
    kqv.project,
    section="Chapter 5, “Three views of one token”",
    difficulty=1,
    minutes=5,
    criteria=(
        PROJECT_CASES.criterion("a weighted sum of the features for every token", 2).on(
            PROJECT_BY_HAND, PROJECT_SQUARE, row("n=7 d_in=5 d_out=3")
        ),
        PROJECT_CASES.criterion("one token, one feature, any memory layout", 1).on(
            row("n=1 d_in=3 d_out=5", note="n = 1"),
            row("n=5 d_in=1 d_out=7", note="one feature"),
            row("n=7 d_in=3 d_out=5", turned=True, note="not contiguous in memory"),
        ),
        PROJECT_CASES.criterion("batches", 1).on(*PROJECT_ROWS.batches),
        PROJECT_CASES.criterion("float32, large, small and zero entries", 1).on(
            *PROJECT_ROWS.numbers,
            row("n=7 d_in=5 d_out=3", zero=("weight",), note="a weight of 0"),
            once_more(PROJECT_BY_HAND),
        ),
        PROJECT_CASES.criterion("gradients reach x and weight", 1).on(*PROJECT_ROWS.gradients),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        mistake("""the weight is transposed
            You multiply by the transposed weight, as `nn.Linear` and `F.linear` do with theirs,
            which are stored as (d_out, d_in). Here `weight` is (d_in, d_out): `x @ weight`.
        """).whole(lambda x, weight: x @ weight.mT),
        mistake("""the weight stands on the left
            `weight @ x` is how papers write it that keep a token in a column. Here a token is a
            row, so the weight stands on the right: `x @ weight`.
        """).whole(lambda x, weight: weight @ x),
        mistake("""both orders mixed
            `weight.T @ x` has the weight of the column convention and the tokens of the row
            convention, and mixes tokens instead of features. Either `x @ weight`, or transpose x
            too: `(weight.mT @ x.mT).mT`.
        """).whole(lambda x, weight: weight.mT @ x),
        mistake("""entries multiplied one by one
            `*` multiplies entries at the same place. A projection sums over the features of a
            token: that is the matrix product `@`.
        """).whole(lambda x, weight: x * weight),
        mistake("""the batch axes are lost
            You flatten all tokens into one long list and do not restore the shape. The result has
            the axes of x, with d_out in place of d_in.
        """).whole(lambda x, weight: x.reshape(-1, x.shape[-1]) @ weight),
    ),
)

SCORES = exercise(
    kqv.attention_scores,
    section="Chapter 5, “Who fits whom”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        SCORES_CASES.criterion("every query with every key", 2).on(
            SCORES_BY_HAND,
            row("m=5 n=5 d_k=4", note="as many queries as keys"),
            row("m=3 n=7 d_k=4"),
        ),
        SCORES_CASES.criterion("one query, one key, any memory layout", 1).on(
            row("m=1 n=5 d_k=4", note="one query"),
            row("m=5 n=1 d_k=4", note="one key"),
            row("m=7 n=3 d_k=4", turned=True, note="not contiguous in memory"),
        ),
        SCORES_CASES.criterion("batches", 1).on(
            *SCORES_ROWS.contiguous,
            row("m=5 n=7 d_k=4", batch=(2,), given={"key": Drawn("n d_k")}, note="one for a batch"),
        ),
        SCORES_CASES.criterion(cases.SCATTERED, 1).on(*SCORES_ROWS.not_contiguous),
        SCORES_CASES.criterion("float32, large and small entries", 1).on(
            *SCORES_ROWS.numbers, once_more(SCORES_BY_HAND)
        ),
        SCORES_CASES.criterion("gradients reach query and key", 1).on(*SCORES_ROWS.gradients),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(dot, *mistakes.OF_A_DOT_PRODUCT),
)

ATTENTION = exercise(
    kqv.scaled_dot_product_attention,
    section="Chapter 5, “From scores to an answer”",
    difficulty=2,
    minutes=20,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        ATTENTION_CASES.criterion("softmax of the scaled scores, times the values", 3).on(
            ATTENTION_BY_HAND,
            row("m=5 n=5 d_k=4 d_v=4", note="as many queries as keys, d_v = d_k"),
            row("m=3 n=7 d_k=16 d_v=16"),
        ),
        ATTENTION_CASES.criterion("m, n, d_k and d_v may all differ", 1).on(
            NARROW.but(note="d_v smaller than d_k"),
            row("m=7 n=1 d_k=4 d_v=11", note="one key, d_v above d_k"),
        ),
        ATTENTION_CASES.criterion("a mask, True where attention is allowed", 1).on(
            MASKED_BY_HAND,
            NARROW.but(given={"mask": hole("m n")}),
            NARROW.but(given={"mask": hole("1 n")}, note="one row of the mask for all queries"),
            NARROW.but(batch=(2,), given={"mask": hole("... 1 n")}, note="a batch of masks"),
            NARROW.but("n=5", batch=(5,), given={"mask": hole("m n")}, note=cases.ONE_MASK),
        ),
        ATTENTION_CASES.criterion("masked scores far from the others", 1).on(
            MASKED_FAR_BELOW, MASKED_FAR_ABOVE
        ),
        ATTENTION_CASES.criterion("another scale", 1).on(
            NARROW.but(given={"scale": 3.0}),  # neither √d_k nor d_k, nor one over them
            NARROW.but(given={"scale": 0.0}),
            NARROW.but(batch=(2,), given={"mask": hole("m n"), "scale": 0.3}, note="a batch"),
        ),
        ATTENTION_CASES.criterion("batches", 1).on(*ATTENTION_ROWS.batches),
        ATTENTION_CASES.criterion("float32, large and small scores", 1).on(
            ATTENTION_ROWS.single.but("d_k=7", note="float32, d_k = 7"),
            *ATTENTION_ROWS.extreme,
            once_more(ATTENTION_BY_HAND),
        ),
        ATTENTION_CASES.criterion("gradients reach query, key and value", 1).on(
            *ATTENTION_ROWS.gradients,
            NARROW.but(
                batch=(2,),
                given={"mask": hole("m n")},
                use=with_gradients("query", "key", "value"),
                note="a batch of 2, one mask for both",
            ),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        attend,
        *mistakes.OF_THE_SCALE,
        mistakes.DIVIDED_BY_OTHER_WIDTH,
        mistakes.SCALED_AFTERWARDS,
        *mistakes.OF_A_GIVEN_SCALE,
        *mistakes.OF_THE_SOFTMAX,
        *OF_THE_MASK,
        mistakes.ROLES_EXCHANGED,
        mistakes.KEYS_BLENDED,
        mistakes.T_ON_A_BATCH,
        mistakes.COSINE,
        *mistakes.OF_THE_RESULT,
        *mistakes.MORE_OF_THE_SOFTMAX,
        mistakes.FLOORED,
        mistakes.NEITHER,
        mistakes.BY_FEATURES,
        mistakes.BEST_ONLY,
        mistakes.TOO_LITTLE_OFF,
        mistakes.GUARD_AFTER_THE_MASK,
        RENORMALISED,
        *mistakes.OF_THE_MASKS_SHAPE,
        CAUSAL,
        COLUMNS_BLEND,
        mistake("""the logarithm of softmax
            You mix with logarithms of the weights (`log_softmax`), which are below 0. Mix with the
            weights themselves.""").by(normalize=lambda scores: scores.log_softmax(-1)),
        mistake("""the scale is applied twice
            You multiply both query and key by the scale, and their products hold it twice. Multiply
            one of them by it, or the scores.
        """).by(scale=lambda scores, factor: scores * factor**2),
    ),
)

HEAD = exercise(
    kqv.AttentionHead,
    section="Chapter 5, “A module that holds the three views”",
    difficulty=3,
    minutes=25,
    criteria=(
        HEAD_CASES.criterion("attention between three projections of x", 3).on(
            HEAD_BY_HAND,
            HEAD_ROW,
            row("n=11 d_model=7 d_k=16", then="n=5"),
            HEAD_ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        HEAD_CASES.criterion("d_v may differ from d_k; one token", 1).on(
            row("n=1 d_model=3 d_k=4 d_v=11", note="one token, d_v = 11")
        ),
        HEAD_CASES.criterion("bias=True adds a bias to each projection", 1).on(
            BIASED,
            BIASED.but("d_v=7", zero=("W_q.weight", "W_k.bias", "W_v.bias"), note="some are 0"),
            BIASED.but(zero=("W_q.bias", "W_k.weight", "W_v.weight"), note="the others are 0"),
        ),
        HEAD_CASES.criterion("a mask, True where attention is allowed", 1).on(
            HEAD_ROW.but(given={"mask": hole("n n")}),
            HEAD_ROW.but("d_v=3", given={"mask": hole("1 n")}, note="one row for all queries"),
            HEAD_ROW.but(batch=(2,), given={"mask": hole("... n n")}, note="a batch of masks"),
            HEAD_ROW.but(batch=(7,), given={"mask": hole("n n")}, note=cases.ONE_MASK),
            FAR_BELOW,
        ),
        HEAD_CASES.criterion("weights(x, mask) returns the attention map", 2).on(
            MAP_BY_HAND,
            BIASED.but("d_v=7", batch=(2,), method="weights", note="a batch"),
            HEAD_ROW.but(given={"mask": hole("n n")}, method="weights"),
            HEAD_ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
        ),
        HEAD_CASES.criterion("batches", 1).on(*HEAD_ROWS.batches),
        HEAD_CASES.criterion("float32, large and small numbers", 1).on(
            HEAD_ROWS.single.but("d_k=3", note="float32, d_k = 3"), *HEAD_ROWS.extreme
        ),
        HEAD_CASES.criterion("gradients reach x and every weight", 2).on(
            *(one.but("d_v=3", options=BIASED.options) for one in HEAD_ROWS.gradients),
            HEAD_ROW.but(given={"mask": hole("n n")}, use=call_module_with_gradients),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        *made(head, *mistakes.OF_THE_METHODS, *mistakes.OF_THE_PRODUCT),
        *made(
            head,
            *mistakes.OF_THE_SCALE,
            mistakes.DIVIDED_BY_ROOT_D_MODEL,
            mistakes.DIVIDED_BY_OTHER_WIDTH.here(
                other=lambda self, x: self.W_v(x),
                factor=lambda q, k, other: other.shape[-1] ** -0.5,
            ),
            mistakes.SCALED_AFTERWARDS,
            *mistakes.OF_THE_SOFTMAX,
            mistakes.NEITHER,
            *OF_THE_MASK,
            CAUSAL,
            mistakes.ROLES_EXCHANGED.said(
                "You compare `W_k(x)` as the queries with `W_q(x)` as the keys, so row i says who "
                "looks for token i. Row i belongs to token i as a query."
            ),
            beside=mistakes.IN_ONE_METHOD,
        ),
        *made(
            head,
            mistakes.NO_SUPER_INIT,
            mistakes.LAYERS_HIDDEN,
            mistakes.ONE_VIEW_TO_COMPARE,
            *mistakes.OF_THE_VIEWS,
            COLUMNS_BLEND,
            mistake("""two names share one layer
                You assign one layer to two names, so there is one view less to learn. Make three
                layers, each with `nn.Linear(…)`.""").by(layers=shared),
            mistake("""the biases are there and not used
                Your layers have biases, but you multiply by their weights alone. Call the layer,
                `self.W_q(x)`, which adds its bias too.
            """).by(by_weights(lambda weight: weight.mT, "query", "key", "value")),
            mistake("""a layer's weight is not turned
                `nn.Linear` stores its weight as (d_out, d_in): `x @ self.W_q.weight` is another
                product, if it fits. Call the layer, `self.W_q(x)`, which turns its weight.""")
            .by(by_weights(lambda weight: weight, "query", "key", "value"))
            .by(by_weights(lambda weight: weight, "query", "key")),
        ),
    ),
)

EXERCISES = (PROJECT, SCORES, ATTENTION, HEAD)

VARIANTS = (
    forbidden(
        {"scaled_dot_product_attention": masked(), "AttentionHead": masked("forward", "weights")}
    ),
    columns(
        {
            "scaled_dot_product_attention": with_columns("query", "key", "value"),
            "AttentionHead": with_columns("x", methods=("forward", "weights")),
        },
        r"""
            A token is a row. Where → In exercises 1 and 2 a token is a row, then a column. Where
            | `query` | `(..., m, d_k)` | | → | `query` | `(..., d_k, m)` | |
            | `key` | `(..., n, d_k)` | | → | `key` | `(..., d_k, n)` | |
            | `value` | `(..., n, d_v)` | one for each key |
            → | `value` | `(..., d_v, n)` | one for each key |
            | returns | `(..., m, d_v)` | the output alone, one row for each query |
            → | returns | `(..., d_v, m)` | the output alone, one column for each query |
            \left(\frac{Q K^\top}{\sqrt{d_k}}\right) V .$$
            → \left(\frac{Q K^\top}{\sqrt{d_k}}\right) V ,$$⏎⏎where $Q$, $K$, $V$ and $U$ hold what
                comes in and what is returned as rows.
            Expect `tensor([[3.4320, 2.8719]])` → Expect 3.4320 and 2.8719, one below the other
            torch.tensor([[0.0, 1.0]]),⏎ → torch.tensor([[0.0, 1.0]]).mT,⏎
            torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]),⏎
            → torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]]).mT,⏎
            torch.tensor([[4.0, 0.0], [2.0, 2.0], [4.0, 4.0]]),⏎
            → torch.tensor([[4.0, 0.0], [2.0, 2.0], [4.0, 4.0]]).mT,⏎
            `x`, `(..., n, d_model)`, are → `x`, `(..., d_model, n)`, are
            the output alone, `(..., n, d_v)` → the output alone, `(..., d_v, n)`
            Expect `torch.Size([2, 7, 3])` → Expect `torch.Size([2, 3, 7])`
            sequences = torch.ones(2, 7, 5) → sequences = torch.ones(2, 5, 7)
            `query @ key.mT` → `query.mT @ key`
            `key @ query.mT` → `key.mT @ query`
            `key.T` turns all axes around, the batch axes too. `key.mT` swaps
            → `query.T` turns all axes around, the batch axes too. `query.mT` swaps
            `key.transpose(-2, -1)` → `query.transpose(-2, -1)`
            the values that it mixes: `weights @ value`
            → the values that it mixes: `value @ weights.mT`
            `nn.Linear(d_model, d_k, bias=bias)` maps the last axis
            → `nn.Linear(d_model, d_k, bias=bias)` maps the last axis, which features are in `x.mT`,
        """,
        inputs="of every input but the mask",
    ),
)
