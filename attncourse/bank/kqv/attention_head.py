"""The exercise ``AttentionHead``: self-attention with three learned projections."""

import torch

from attncourse import kqv
from attncourse.bank.kqv.shared import CAUSAL, COLUMNS_BLEND, OF_THE_MASK
from attncourse.checks.callers import call_module_with_gradients
from attncourse.checks.exercise import Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import hole, row, standard
from attncourse.checks.writing.decisions import attention_class, linear
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def head_state(
    rng: Rng, d_model: int, d_k: int, d_v: int | None = None, *, bias: bool = False
) -> State:
    """Return random weights of order one for an AttentionHead, and biases that are not zero."""
    sizes = {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}
    state = {}
    for name, size in sizes.items():
        state[f"{name}.weight"] = uniform_values(rng, size, d_model)
        if bias:
            state[f"{name}.bias"] = tensor(rng.uniform(0.5, 1.5, size) * rng.choice([-1, 1], size))
    return state


CASES = ModuleTable(
    {"x": "... n d_model"}, name="AttentionHead", build="d_model d_k d_v", state=head_state
)
ROWS = standard(CASES, left_out="d_v", d_k=4)
ROW = row("n=7 d_model=5 d_k=4")
ROW_WITH_BIAS = ROW.but(options={"bias": True})

# *I am hungry* with small integers: three tokens of three features, d_k = d_v = 4.
HUNGRY_TOKENS = {"x": tensor([[1, 0, 0], [0, 1, 0], [1, 0, 1]])}
HUNGRY_STATE = {
    "W_q.weight": tensor([[1, 0, 1], [0, 2, 0], [0, 0, 0], [1, 0, 0]]),
    "W_k.weight": tensor([[0, 1, 2], [1, 0, 0], [0, 0, 1], [0, 0, 0]]),
    "W_v.weight": tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 1]]),
}
BY_HAND = module_case("AttentionHead", (3, 4), HUNGRY_STATE, HUNGRY_TOKENS)
# The scores are −120 000, 2.4 apart.
SCORES_FAR_BELOW_0 = module_case(
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
MAP_BY_HAND = module_case("AttentionHead", (3, 4), HUNGRY_STATE, HUNGRY_TOKENS, method="weights")

# --- decisions and mistakes ----------------------------------------------------------------------


def layers_of(d_model, d_k, d_v=None, bias=False):
    widths = {"W_q": d_k, "W_k": d_k, "W_v": d_v or d_k}
    return linear({name: (d_model, width) for name, width in widths.items()}, bias)


@composition
def compose_attention_head(
    layers=layers_of,
    query=lambda self, x: self.W_q(x),
    key=lambda self, x: self.W_k(x),
    value=lambda self, x: self.W_v(x),
    **options,
):
    """Return an ``AttentionHead`` made of decisions: its layers, its three views, its attention."""
    return attention_class("AttentionHead", layers, query, key, value, **options)


def share_query_and_key_layer(*sizes, **options):
    layers = layers_of(*sizes, **options)
    return layers | {"W_k": layers["W_q"]}


def views_by_weight(prepare_weight, *views):
    """Return the options in which views use the layers' weights, without their biases."""
    return {
        view: lambda self, x, name=f"W_{view[0]}": x @ prepare_weight(getattr(self, name).weight)
        for view in views
    }


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    kqv.AttentionHead,
    section="Chapter 5, “A module that holds the three views”",
    difficulty=3,
    minutes=25,
    criteria=(
        CASES.criterion("attention between three projections of x", 3).on(
            BY_HAND,
            ROW,
            row("n=11 d_model=7 d_k=16", then="n=5"),
            ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("d_v may differ from d_k; one token", 1).on(
            ROW.but("d_v=7", note="d_v = 7"),
            row("n=1 d_model=3 d_k=4 d_v=11", note="one token, d_v = 11"),
        ),
        CASES.criterion("bias=True adds a bias to each projection", 1).on(
            ROW_WITH_BIAS,
            ROW_WITH_BIAS.but(
                "d_v=7", zero=("W_q.weight", "W_k.bias", "W_v.bias"), note="some are 0"
            ),
            ROW_WITH_BIAS.but(
                zero=("W_q.bias", "W_k.weight", "W_v.weight"), note="the others are 0"
            ),
        ),
        CASES.criterion("a mask, True where attention is allowed", 1).on(
            ROW.but(arguments={"mask": hole("n n")}),
            ROW.but("d_v=3", arguments={"mask": hole("1 n")}, note="one row for all queries"),
            ROW.but(batch=(2,), arguments={"mask": hole("... n n")}, note="a batch of masks"),
            ROW.but(batch=(7,), arguments={"mask": hole("n n")}, note=cases.ONE_MASK),
            SCORES_FAR_BELOW_0,
        ),
        CASES.criterion("weights(x, mask) returns the attention map", 2).on(
            MAP_BY_HAND,
            ROW_WITH_BIAS.but("d_v=7", batch=(2,), method="weights", note="a batch"),
            ROW.but(arguments={"mask": hole("n n")}, method="weights"),
            ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32, large and small numbers", 1).on(
            ROWS.single.but("d_k=3", note="float32, d_k = 3"), *ROWS.extreme
        ),
        CASES.criterion("gradients reach x and every weight", 2).on(
            *(
                table_row.but("d_v=3", options=ROW_WITH_BIAS.options)
                for table_row in ROWS.gradients
            ),
            ROW.but(arguments={"mask": hole("n n")}, use=call_module_with_gradients),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        *made(compose_attention_head, *mistakes.OF_THE_METHODS, *mistakes.OF_THE_PRODUCT),
        *made(
            compose_attention_head,
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
            compose_attention_head,
            mistakes.NO_SUPER_INIT,
            mistakes.LAYERS_HIDDEN,
            mistakes.ONE_VIEW_TO_COMPARE,
            *mistakes.OF_THE_VIEWS,
            COLUMNS_BLEND,
            mistake("""two names share one layer
                You assign one layer to two names, so there is one view less to learn. Make three
                layers, each with `nn.Linear(…)`.""").by(layers=share_query_and_key_layer),
            mistake("""the biases are there and not used
                Your layers have biases, but you multiply by their weights alone. Call the layer,
                `self.W_q(x)`, which adds its bias too.
            """).by(views_by_weight(lambda weight: weight.mT, "query", "key", "value")),
            mistake("""a layer's weight is not turned
                `nn.Linear` stores its weight as (d_out, d_in): `x @ self.W_q.weight` is another
                product, if it fits. Call the layer, `self.W_q(x)`, which turns its weight.""")
            .by(views_by_weight(lambda weight: weight, "query", "key", "value"))
            .by(views_by_weight(lambda weight: weight, "query", "key")),
        ),
    ),
)
