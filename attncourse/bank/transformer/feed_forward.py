"""The exercise ``FeedForward``: each token by itself through a wider layer."""

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import transformer
from attncourse.bank.transformer.cases import feed_state
from attncourse.checks import callers
from attncourse.checks.exercise import composition, exercise, unchanged
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import FLOATS_ONLY, OTHER_NUMBERS, Row, row, standard
from attncourse.checks.writing.modules import ModuleTable, module_case, tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = ModuleTable(
    {"x": "... n d_model"}, name="FeedForward", build="d_model d_ff", state=feed_state
)
ROWS = standard(CASES)
ROW = row("n=7 d_model=5 d_ff=11")
BY_HAND = module_case(
    "FeedForward",
    (2, 3),
    {
        "W_1.weight": tensor([[1, 0], [0, 2], [-1, 1]]),
        "W_1.bias": tensor([0, -1, 0]),
        "W_2.weight": tensor([[1, 0, 0], [0, 1, 10]]),
        "W_2.bias": tensor([0, 5]),
    },
    {"x": tensor([[1, 0], [2, 3]])},
    note="three hidden units",
)


def with_activation(row: Row, name: str) -> Row:
    """Return the row with another activation, handed over by its name in F."""
    return row.but(
        options={**row.options, "activation": name},
        use=callers.call_module_activated,
        note=f"activation=F.{name}",
    )


# --- decisions and mistakes ----------------------------------------------------------------------


def two_layers(d_model, d_ff, bias):
    return {
        "W_1": nn.Linear(d_model, d_ff, bias=bias),
        "W_2": nn.Linear(d_ff, d_model, bias=bias),
    }


@composition
def compose_feed_forward(
    super_init=decisions.begun,
    width=lambda d_model, d_ff: 4 * d_model if d_ff is None else d_ff,
    layers=two_layers,
    hold=decisions.assigned,
    default=F.gelu,
    keep=lambda activation, default: default if activation is None else activation,
    take=lambda x: x,
    first=lambda self, x: self.W_1(x),
    bend=lambda self, hidden: self.activation(hidden),
    second=lambda self, hidden: self.W_2(hidden),
    finish=lambda self, output, x: output,
):
    """Return a ``FeedForward`` made of decisions."""

    class FeedForward(nn.Module):
        def __init__(self, d_model, d_ff=None, activation=None, bias=True):
            super_init(self)
            self.activation = keep(activation, default)
            hold(self, layers(d_model, width(d_model, d_ff), bias))

        def forward(self, x):
            return finish(self, second(self, bend(self, first(self, take(x)))), x)

    return FeedForward


def with_fixed_biases(first_bias: bool | None, second_bias: bool | None):
    """Return the option in which the layers have a bias or none, whatever is asked for."""
    return {
        "layers": lambda d, d_ff, bias: {
            "W_1": nn.Linear(d, d_ff, bias=bias if first_bias is None else first_bias),
            "W_2": nn.Linear(d_ff, d, bias=bias if second_bias is None else second_bias),
        }
    }


def width_times(number: float) -> dict:
    return {"width": lambda d, d_ff: round(number * d) if d_ff is None else d_ff}


def with_default(function) -> dict:
    return {"default": function}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    transformer.FeedForward,
    section="Chapter 12, “Each token by itself”",
    difficulty=1,
    minutes=10,
    criteria=(
        CASES.criterion("W_1, the activation, W_2, for each token by itself", 3).on(
            BY_HAND,
            ROW,
            row("n=5 d_model=5 d_ff=5", note="every axis of length 5"),
            row("n=7 d_model=3 d_ff=7", note="as many tokens as hidden units"),
            row("n=7 d_model=11 d_ff=3", then="n=2", note="a narrow hidden layer"),
            ROW.but(then={}, note=OTHER_NUMBERS),
        ),
        CASES.criterion("the hidden layer has 4·d_model units unless d_ff is given", 1).on(
            row("n=7 d_model=5"),
            row("n=3 d_model=3", batch=(2,)),
        ),
        CASES.criterion("another activation", 1).on(
            with_activation(ROW, "relu"),
            with_activation(row("n=3 d_model=7", batch=(2,)), "silu"),
        ),
        CASES.criterion("bias=False leaves both biases out", 1).on(
            ROW.but(options={"bias": False}),
            row("n=3 d_model=4", options={"bias": False}),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one token; float32, large and small entries, weights of 0", 1).on(
            row("n=1 d_model=3 d_ff=7", note="one token"),
            *ROWS.numbers,
            *(
                ROW.but(zero=zero, note="some weights are 0")
                for zero in (("W_1.weight", "W_2.bias"), ("W_1.bias",), ("W_2.weight",))
            ),
        ),
        CASES.criterion("gradients reach x and every weight", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_feed_forward,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, `self.W_1 = …`."
        ),
        mistake("""the activation is missing
            W_2 follows straight on W_1, and two linear layers are one. The activation stands
            between them.""").by(bend=lambda self, hidden: hidden),
        mistake("""ReLU in place of GELU
            Unless another activation is given it is the GELU, `F.gelu`. You use the ReLU, as the
            paper of 2017 did.""").by(with_default(F.relu)),
        mistake("""an approximation of the GELU
            You use an approximation of the GELU: by tanh, as GPT-2 does, which is off by up to
            0.0005, or by x·σ(1.702x), off by up to 0.02. Here it is the exact one, x·Φ(x):
            `F.gelu(x)`.""")
        .by(with_default(lambda x: F.gelu(x, approximate="tanh")))
        .by(with_default(lambda x: x * (1.702 * x).sigmoid())),
        mistake("""another function in place of GELU
            Unless another activation is given it is the GELU, x·Φ(x): `F.gelu`.""")
        .by(with_default(torch.tanh))
        .by(*map(with_default, (torch.sigmoid, F.silu, F.elu, F.softplus, F.leaky_relu))),
        mistake("""the argument activation is ignored
            Your layer bends by the GELU whatever `activation` says. Keep the function in `__init__`
            and call it in `forward`.""").by(keep=lambda activation, default: default),
        mistake("""the activation is called in `__init__`
            You take `activation` for a class and call it, `activation()`. It is a function from
            tensors to tensors: keep it as it is, and call it in `forward`.
        """).by(keep=lambda activation, default: activation() if activation else default),
        mistake("""the activation in the wrong place
            It stands between the two layers and nowhere else: `W_2(activation(W_1(x)))`. What comes
            out of W_2, and what goes into W_1, has either sign.""")
        .by(
            bend=lambda self, hidden: hidden, finish=lambda self, output, x: self.activation(output)
        )
        .by(finish=lambda self, output, x: self.activation(output))
        .by(first=lambda self, x: self.W_1(self.activation(x)), bend=lambda self, hidden: hidden)
        .by(first=lambda self, x: self.W_1(self.activation(x))),
        mistake("""x is added on top
            You add x to the output, as the block around this layer will. Here it is W_2 of the
            hidden units and nothing else.""").by(finish=lambda self, output, x: x + output),
        mistake("""a norm inside
            You normalise, before the layers or after them. The norms belong to the block.""")
        .by(take=lambda x: F.layer_norm(x, x.shape[-1:]))
        .by(finish=lambda self, output, x: F.layer_norm(output, output.shape[-1:])),
        mistake("""d_ff is ignored
            Your hidden layer has the same width whatever d_ff says. 4·d_model is the width where
            none is given.""")
        .by(width=lambda d_model, d_ff: 4 * d_model)
        .by(width=lambda d_model, d_ff: d_model),
        mistake("""another width where d_ff is left out
            Unless d_ff is given, the hidden layer has 4·d_model units.""")
        .by(width_times(1))
        .by(width_times(2))
        .by(width=lambda d_model, d_ff: 2048 if d_ff is None else d_ff)
        .by_any(width_times, (1, 2, 3, 8)),
        mistake("""d_ff is taken for a factor
            You make d_ff · d_model hidden units. d_ff is their number.
        """).by(width=lambda d_model, d_ff: d_model * (4 if d_ff is None else d_ff)),
        mistake("""W_1 and W_2 exchanged
            W_1 comes first and widens, from d_model to d_ff; W_2 brings the token back.""").by(
            layers=lambda d, d_ff, bias: {
                "W_1": nn.Linear(d_ff, d, bias=bias),
                "W_2": nn.Linear(d, d_ff, bias=bias),
            },
            first=lambda self, x: self.W_2(x),
            second=lambda self, hidden: self.W_1(hidden),
        ),
        mistake("""W_2 does not lead back
            Your W_2 maps d_ff to d_ff, or W_1 maps d_model to d_model. The first goes from d_model
            to d_ff, the second from d_ff back to d_model.""")
        .by(
            layers=lambda d, d_ff, bias: {
                "W_1": nn.Linear(d, d_ff, bias=bias),
                "W_2": nn.Linear(d_ff, d_ff, bias=bias),
            }
        )
        .by(
            layers=lambda d, d_ff, bias: {
                "W_1": nn.Linear(d, d, bias=bias),
                "W_2": nn.Linear(d, d_ff, bias=bias),
            }
        ),
        mistake("""bias is not handed on to both layers
            A layer has a bias with `bias=False`, or none with `bias=True`, the default. Both go by
            it: `nn.Linear(…, bias=bias)`.""")
        .by(with_fixed_biases(True, True))
        .by(with_fixed_biases(False, False))
        .by(with_fixed_biases(None, True))
        .by(with_fixed_biases(True, None))
        .by(with_fixed_biases(None, False))
        .by(with_fixed_biases(False, None)),
        mistake("""the biases are there and not used
            Your layers have biases, but you multiply by their weights alone. Call the layer,
            `self.W_1(x)`, which adds its bias too.""")
        .by(first=lambda self, x: x @ self.W_1.weight.mT)
        .by(second=lambda self, hidden: hidden @ self.W_2.weight.mT)
        .by(
            first=lambda self, x: x @ self.W_1.weight.mT,
            second=lambda self, hidden: hidden @ self.W_2.weight.mT,
        ),
        mistake("""the layer works along the sequence
            You turn x around, so that W_1 mixes tokens. It mixes the features of each token:
            `self.W_1(x)` works on the last axis.
        """).by(take=lambda x: x.mT, finish=lambda self, output, x: output.mT),
        mistake("""the hidden units are shared out
            You take a softmax of the hidden units. A feed-forward layer bends each unit by
            itself.""").by(bend=lambda self, hidden: hidden.softmax(-1)),
    ),
)
