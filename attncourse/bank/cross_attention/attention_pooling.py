"""The exercise ``AttentionPooling``: a few learned questions to a whole set."""

import math

import torch
from torch import nn

from attncourse import cross_attention
from attncourse.bank.cross_attention.shared import (
    OF_BOTH_MODULES,
    OF_THE_PRODUCT,
    PADDING_MASK,
    WEIGHTS_TRANSPOSED,
    change_weights,
    products_by_einsum,
    tokens_far_from_0,
)
from attncourse.checks.callers import call_module_with_gradients
from attncourse.checks.exercise import Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import Drawn, hole, row, standard
from attncourse.checks.writing.decisions import attention_class, linear, mixed
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    start_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def pool_state(rng: Rng, d: int, n_queries: int = 1) -> State:
    shapes = {"queries": (n_queries, d), "W_k.weight": (d, d), "W_v.weight": (d, d)}
    return {name: 1.5 * uniform_values(rng, *shape) for name, shape in shapes.items()}


CASES = ModuleTable(
    {"x": "... n d"}, name="AttentionPooling", build="d n_queries", state=pool_state
)
ROWS = standard(CASES, left_out="n_queries", d=4)
ROW = row("n=7 d=4 n_queries=3")
# One question to three elements.
THREE_ELEMENTS = {"x": tensor([[1, 0, 0, 2], [0, 1, 0, 0], [1, 1, 1, 0]])}
THREE_STATE = {
    "queries": tensor([[2, 0, 0, 1]]),
    "W_k.weight": tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 2, 0, 1]]),
    "W_v.weight": tensor([[1, 0, 0, 1], [0, 2, 0, 0], [0, 0, 1, 0], [1, 0, 3, 0]]),
}
THREE_MASK = {"mask": torch.tensor([True, False, True])}


def case_of_three(method: str = "", **mask):
    return module_case("AttentionPooling", (4,), THREE_STATE, THREE_ELEMENTS | mask, method=method)


# --- decisions and mistakes ----------------------------------------------------------------------


def pool_layers(d, n_queries=1):
    queries = nn.Parameter(torch.randn(n_queries, d))
    return {"queries": queries, **linear({"W_k": (d, d), "W_v": (d, d)})}


@composition
def compose_attention_pooling(
    layers=pool_layers,
    query=lambda self, x: self.queries,
    key=lambda self, x: self.W_k(x),
    value=lambda self, x: self.W_v(x),
    **options,
):
    """Return an ``AttentionPooling`` made of decisions: what it holds, its views, its attention."""
    return attention_class("AttentionPooling", layers, query, key, value, **options)


def zero_padding(attention, views, mask, other):
    """Return attention to padding of zeros in place of a mask."""
    query, key, value = views
    if mask is not None:  # a token of zeros has a key and a value of zeros
        is_allowed = (mask if mask.ndim == 1 else mask.any(dim=-2)).unsqueeze(-1)
        key, value = key * is_allowed, value * is_allowed
    return mixed(attention, (query, key, value), None, other)


def equal_weights(scores):
    """Return one weight for every key that the mask allows."""
    allowed = (scores > -math.inf).to(scores.dtype)
    return allowed / allowed.sum(-1, keepdim=True)


def change_output(change):
    """Return the option that changes what ``forward`` returns."""
    return {"answer": lambda attention, *args: change(mixed(attention, *args))}


def hold_queries_as_buffer(self, layers):
    queries = layers.pop("queries")
    decisions.assigned(self, layers)
    self.register_buffer("queries", queries.data)


WEIGHTS_SQUEEZED = change_weights(lambda maps: maps.squeeze(-2))

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    cross_attention.AttentionPooling,
    section="Chapter 8, “A question that nobody asks”",
    difficulty=3,
    minutes=25,
    criteria=(
        CASES.criterion("one learned question to every element", 3).on(
            case_of_three(),
            row("n=7 d=4"),
            row("n=11 d=16", then="n=5"),
            row("n=7 d=4", then="", note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("several questions, random ones at the start", 1).on(
            ROW,
            row("n=5 d=16 n_queries=7", turned=True, note="seven questions"),
            start_case("AttentionPooling", (4, 3), "queries"),
        ),
        CASES.criterion("a mask, True where attention is allowed", 2).on(
            case_of_three(**THREE_MASK),
            ROW.but(arguments={"mask": hole("n_queries n")}, note="a row for each query"),
            row("n=7 d=4", batch=(2,), arguments=PADDING_MASK, note="padding"),
            ROW.but(
                "n=3", batch=(3,), arguments={"mask": hole("n_queries n")}, note=cases.ONE_MASK
            ),
            ROW.but(
                batch=(2,), arguments={"mask": hole("... n_queries n")}, note="a mask for each"
            ),
            ROW.but(
                "n_queries=11",
                arguments={"x": Drawn("n d", tokens_far_from_0), "mask": hole("n_queries n")},
                note="scores far from 0",
            ),
        ),
        CASES.criterion("weights(x, mask) returns the attention map", 2).on(
            case_of_three("weights"),
            case_of_three("weights", **THREE_MASK),
            ROW.but(batch=(2,), arguments=PADDING_MASK, method="weights", note="padding"),
            ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("batches, one element", 1).on(
            *ROWS.batches,
            row("n=1 d=4", note="one element"),
            row("n=4 d=4 n_queries=4", batch=(4,), note="every length 4, four queries"),
        ),
        CASES.criterion("float32, large scores and weights of 0", 1).on(
            ROWS.single.but("d=5", note="float32, d = 5"),
            *ROWS.extreme,
            ROWS.extreme[0].but("n_queries=3"),
            ROW.but(zero=("queries", "W_v.weight"), note="queries of 0"),
            ROW.but(zero=("W_k.weight",), note="W_k is 0"),
        ),
        CASES.criterion("gradients reach x, the queries and every weight", 2).on(
            *ROWS.gradients,
            ROW.but(arguments={"mask": hole("1 n")}, use=call_module_with_gradients),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        *made(
            compose_attention_pooling, *mistakes.OF_THE_METHODS, WEIGHTS_TRANSPOSED, *OF_THE_PRODUCT
        ),
        *made(compose_attention_pooling, products_by_einsum("md,bnd->bmn")),
        *made(
            compose_attention_pooling,
            *(s.naming(d_k="d") for s in OF_BOTH_MODULES),
            mistake("""mean pooling
                Every element gets the same weight, whatever the queries are. The weights are a
                softmax of the queries' scores with the keys.""").by(normalize=equal_weights),
            beside=mistakes.IN_ONE_METHOD,
        ),
        *made(
            compose_attention_pooling,
            *mistakes.OF_THE_VIEWS,
            mistake("""the axis of the queries is squeezed away
                You drop the axis of a single query, in the output or in `weights`, or by
                `squeeze()` every axis of length 1. Keep it: one and many are the same code.""")
            .by(answer=lambda attention, *args: mixed(attention, *args).squeeze(-2))
            .by(change_output(lambda output: output.squeeze()))
            .by(change_output(lambda output: output.squeeze(-2)) | WEIGHTS_SQUEEZED)
            .by(WEIGHTS_SQUEEZED),
            mistake("""the answers do not stay apart
                You average the answers, add them up, run them together, or keep the first alone, or
                average the queries, or the maps of `weights`. Each query has an answer of its own:
                return all of them, (..., n_queries, d).""")
            .by(answer=lambda attention, *args: mixed(attention, *args).mean(-2, True))
            .by(change_output(lambda output: output.mean(-2)))
            .by(change_output(lambda output: output.sum(-2, True)))
            .by(change_output(lambda output: output.sum(-2)))
            .by(change_output(lambda output: output.flatten(-2)))
            .by(change_output(lambda output: output[..., :1, :]))
            .by(change_output(lambda output: output[..., 0, :]))
            .by(query=lambda self, x: self.queries.mean(0, keepdim=True))
            .by(change_weights(lambda maps: maps.mean(-2)))
            .by(change_weights(lambda maps: maps.mean(-2, True))),
            mistake("""the queries are added to the output
                You add the queries to what was mixed. Return the mixed values alone.
            """).by(answer=lambda attention, *args: mixed(attention, *args) + args[0][0]),
            mistake("""the elements ask, not the queries
                You let the elements attend to each other and average the result. Those who ask are
                the learned `queries`.""").by(
                query=lambda self, x: x,
                answer=lambda attention, *args: mixed(attention, *args).mean(-2, True),
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
            .by(hold=hold_queries_as_buffer),
            mistakes.NO_SUPER_INIT,
            mistake("""padding is zeroed and still attended to
                You set the masked elements of x to 0. Their keys then have the score 0, and exp(0)
                = 1, so they take weight from the others. Put −∞ into the scores.
            """).by(answer=zero_padding),
        ),
    ),
)
