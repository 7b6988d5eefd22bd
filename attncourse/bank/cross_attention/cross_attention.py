"""The exercise ``CrossAttention``: queries from one sequence, keys and values from another."""

import torch

from attncourse import cross_attention
from attncourse.bank.cross_attention.shared import (
    OF_BOTH_MODULES,
    OF_THE_PRODUCT,
    PADDING_MASK,
    WEIGHTS_TRANSPOSED,
    products_by_einsum,
    tokens_far_from_0,
)
from attncourse.checks.callers import call_module_with_gradients
from attncourse.checks.exercise import Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import Drawn, hole, row, standard
from attncourse.checks.writing.decisions import attention_class, linear, mixed
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def cross_state(rng: Rng, d_x: int, d_y: int, d_k: int, d_v: int) -> State:
    shapes = {"W_q": (d_k, d_x), "W_k": (d_k, d_y), "W_v": (d_v, d_y)}
    return {f"{name}.weight": 1.5 * uniform_values(rng, *shape) for name, shape in shapes.items()}


CASES = ModuleTable(
    {"x": "... m d_x", "y": "... n d_y"},
    name="CrossAttention",
    build="d_x d_y d_k d_v",
    state=cross_state,
)
ROWS = standard(CASES, d_k=4)
ROW = row("m=5 n=7 d_x=5 d_y=3 d_k=4 d_v=2")
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


def case_of_questions(method: str = "", **mask):
    state = QUESTIONS_STATE
    return module_case("CrossAttention", (3, 4, 4, 3), state, QUESTIONS | mask, method=method)


# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_cross_attention(
    layers=lambda d_x, d_y, d_k, d_v: linear(
        {"W_q": (d_x, d_k), "W_k": (d_y, d_k), "W_v": (d_y, d_v)}
    ),
    query=lambda self, x, y: self.W_q(x),
    key=lambda self, x, y: self.W_k(y),
    value=lambda self, x, y: self.W_v(y),
    **options,
):
    """Return a ``CrossAttention`` made of decisions: its layers, its three views, its attention."""
    return attention_class("CrossAttention", layers, query, key, value, 2, **options)


def divided_by_root_of(width, other):
    return mistake(f"""divided by √{width}
        You divide by the root of {width}. After the projections queries and keys have d_k features,
        and it is √d_k that keeps their products in range.
    """).by(factor=lambda q, k, other: other.shape[-1] ** -0.5, other=other)


def first_sequences(x, y):
    """Return the first sequences of y, until it has no more axes than x."""
    while y.ndim > x.ndim:
        y = y[0]
    return y


def expand_like(x, y):
    """Return y with the batch axes of x."""
    return y.expand(*x.shape[:-2], *y.shape[-2:])


def add_x_where_it_fits(attention, *args):
    output, x = mixed(attention, *args), args[2]
    return output + x if output.shape == x.shape else output


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    cross_attention.CrossAttention,
    section="Chapter 8, “A module with two inputs”",
    difficulty=2,
    minutes=20,
    criteria=(
        CASES.criterion("queries from x, keys and values from y", 3).on(
            case_of_questions(),
            # Where the sizes agree, the wrong sequence gives wrong numbers and no error.
            row("m=7 n=7 d_x=5 d_y=5 d_k=4 d_v=4", note="m = n, d_x = d_y and d_k = d_v"),
            row("m=3 n=11 d_x=5 d_y=5 d_k=16 d_v=7", then="m=2 n=5", note="d_x = d_y"),
            ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("all sizes may differ; one question, one key", 1).on(
            row("m=5 n=2 d_x=7 d_y=3 d_k=4 d_v=11", turned=True, note="more questions"),
            row("m=1 n=11 d_x=3 d_y=5 d_k=4 d_v=7", note="one question"),
            row("m=11 n=1 d_x=3 d_y=5 d_k=4 d_v=7", note="one key"),
        ),
        CASES.criterion("a mask, True where attention is allowed", 2).on(
            case_of_questions(**QUESTIONS_MASK),
            ROW.but(arguments={"mask": hole("n")}, note="a mask (n,) for all questions"),
            ROW.but(batch=(2,), arguments=PADDING_MASK, note="padding"),
            ROW.but("n=5", batch=(5,), arguments={"mask": hole("m n")}, note=cases.ONE_MASK),
            ROW.but(
                "m=11",
                arguments={"y": Drawn("n d_y", tokens_far_from_0), "mask": hole("m n")},
                note="scores far from 0",
            ),
        ),
        CASES.criterion("weights(x, y, mask) returns the attention map", 2).on(
            case_of_questions("weights"),
            case_of_questions("weights", **QUESTIONS_MASK),
            ROW.but(batch=(2,), arguments=PADDING_MASK, method="weights", note="padding"),
            ROW.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            ROW.but(batch=(2,), arguments={"y": Drawn("n d_y")}, note="one y for a batch"),
            ROW.but(batch=(2,), arguments={"x": Drawn("m d_x")}, note="one x for a batch"),
        ),
        CASES.criterion("float32, large scores and weights of 0", 1).on(
            ROWS.single.but("d_k=3", note="float32, d_k = 3"),
            *ROWS.extreme,
            ROWS.extreme[0],
            ROW.but(zero=("W_q.weight", "W_v.weight"), note="zeros"),
            ROW.but(zero=("W_k.weight",), note="W_k is 0"),
        ),
        CASES.criterion("gradients reach x, y and every weight", 2).on(
            *ROWS.gradients,
            ROW.but(arguments={"mask": hole("m n")}, use=call_module_with_gradients),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        *made(
            compose_cross_attention, *mistakes.OF_THE_METHODS, WEIGHTS_TRANSPOSED, *OF_THE_PRODUCT
        ),
        *made(compose_cross_attention, products_by_einsum("bmd,bnd->bmn")),
        *made(
            compose_cross_attention,
            *OF_BOTH_MODULES,
            divided_by_root_of("d_x", lambda self, x, y: x),
            divided_by_root_of("d_y", lambda self, x, y: y),
            divided_by_root_of("d_v", lambda self, x, y: self.W_v(y)),
            mistakes.ROLES_EXCHANGED.called("the scores are transposed").said(
                "Your scores are `key @ query.mT`: row j belongs to token j of y. Row i belongs to "
                "token i of x, who asks: `query @ key.mT`."
            ),
            beside=mistakes.IN_ONE_METHOD,
        ),
        *made(
            compose_cross_attention,
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
                key=lambda self, x, y: self.W_k(first_sequences(x, y)),
                value=lambda self, x, y: self.W_v(first_sequences(x, y)),
            ),
            mistake("""one is expanded to the batch of the other
                You give y the batch axes of x, or x those of y. The other may have more of them:
                leave both as they are, and `@` broadcasts them.""")
            .by(
                key=lambda self, x, y: self.W_k(expand_like(x, y)),
                value=lambda self, x, y: self.W_v(expand_like(x, y)),
            )
            .by(query=lambda self, x, y: self.W_q(expand_like(y, x))),
            mistake("""the layers of query and key exchanged
                You use `W_k(x)` as the queries and `W_q(y)` as the keys. Queries are `W_q(x)`, keys
                `W_k(y)`.
            """).by(query=lambda self, x, y: self.W_k(x), key=lambda self, x, y: self.W_q(y)),
            mistake("""x is added to the output
                You add x to what was mixed. A residual belongs to the layer around attention, not
                here: return the mixed values alone.""")
            .by(answer=lambda attention, *args: mixed(attention, *args) + args[2])
            .by(answer=add_x_where_it_fits),
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
