"""The exercise ``SwiGLU``: each token by itself through a gated layer."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import llama
from attncourse.bank.llama.shared import gated_layers, gated_state
from attncourse.checks.exercise import composition, exercise, unchanged
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import FLOATS_ONLY, OTHER_NUMBERS, row, standard
from attncourse.checks.writing.modules import ModuleTable, module_case, tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = ModuleTable({"x": "... n d_model"}, name="SwiGLU", build="d_model d_ff", state=gated_state)
ROWS = standard(CASES)
ROW = row("n=7 d_model=5 d_ff=11")
BY_HAND = module_case(
    "SwiGLU",
    (2, 3),
    {
        "W_gate.weight": tensor([[1, 0], [0, 1], [-1, 1]]),
        "W_up.weight": tensor([[2, 0], [0, -1], [1, 1]]),
        "W_down.weight": tensor([[1, 0, 1], [0, 1, 10]]),
    },
    {"x": tensor([[1, 0], [2, 3]])},
    note="three hidden units",
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_swi_glu(
    super_init=decisions.begun,
    layers=gated_layers,
    hold=decisions.assigned,
    width=lambda d_model, d_ff: d_ff,
    take=lambda x: x,
    gate=lambda self, x: self.W_gate(x),
    up=lambda self, x: self.W_up(x),
    bend=F.silu,
    bend_up=lambda up: up,
    join=lambda gate, up: gate * up,
    down=lambda self, hidden: self.W_down(hidden),
    finish=lambda output, x: output,
):
    """Return a ``SwiGLU`` made of decisions."""

    class SwiGLU(nn.Module):
        def __init__(self, d_model, d_ff):
            super_init(self)
            hold(self, layers(d_model, width(d_model, d_ff)))

        def forward(self, x):
            original, x = x, take(x)
            hidden = join(bend(gate(self, x)), bend_up(up(self, x)))
            return finish(down(self, hidden), original)

    return SwiGLU


def with_biases(*names: str):
    """Return the option in which these layers have a bias."""

    def layers(d_model, d_ff):
        linear_layers = gated_layers(d_model, d_ff)
        for name in names:
            linear_layers[name] = nn.Linear(
                linear_layers[name].in_features, linear_layers[name].out_features
            )
        return linear_layers

    return {"layers": layers}


def identity(gate):
    return gate


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    llama.SwiGLU,
    section="Chapter 18, “The block of today”",
    difficulty=1,
    minutes=10,
    criteria=(
        CASES.criterion("W_down(silu(W_gate x) · W_up x), for each token by itself", 4).on(
            BY_HAND,
            ROW,
            row("n=5 d_model=5 d_ff=5", note="every axis of length 5"),
            row("n=7 d_model=3 d_ff=7", note="as many tokens as hidden units"),
            row("n=7 d_model=11 d_ff=3", then="n=2", note="a narrow hidden layer"),
            ROW.but(then={}, note=OTHER_NUMBERS),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one token; float32, large and small entries, weights of 0", 1).on(
            row("n=1 d_model=3 d_ff=7", note="one token"),
            *ROWS.numbers,
            *(
                ROW.but(zero=(f"{name}.weight",), note=f"{name} is 0")
                for name in ("W_gate", "W_up", "W_down")
            ),
        ),
        CASES.criterion("gradients reach x and every weight", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_swi_glu,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, "
            "`self.W_gate = …`."
        ),
        mistake("""gate and value exchanged
            The activation is on `W_up x`, or the two layers have changed places. It is the gate
            that is bent: silu(W_gate x) · W_up x.""")
        .by(bend=identity, bend_up=F.silu)
        .by(gate=lambda self, x: self.W_up(x), up=lambda self, x: self.W_gate(x)),
        mistake("""the activation on both branches
            You bend both. Only the gate goes through the SiLU; `W_up x` keeps its sign.""").by(
            bend_up=F.silu
        ),
        mistake("""the activation on the product
            You multiply first and bend the product. The gate is bent before it is multiplied:
            silu(W_gate x) · W_up x.""").by(bend=identity, join=lambda gate, up: F.silu(gate * up)),
        mistake("""the activation is missing
            You multiply two linear layers. The gate goes through the SiLU first.""").by(
            bend=identity
        ),
        mistake("""GELU in place of SiLU
            You bend the gate by a GELU, which makes a GEGLU. Here it is the SiLU, x·σ(x):
            `F.silu`.""")
        .by(bend=F.gelu)
        .by(bend=partial(F.gelu, approximate="tanh")),
        mistake("""σ(x) in place of x·σ(x)
            You bend the gate by the logistic function, as the first gated layers did. The SiLU is x
            times it: `F.silu`.""").by(bend=torch.sigmoid),
        mistake("""another function in place of SiLU
            You bend the gate by another function. The SiLU is x·σ(x): `F.silu`.""")
        .by(bend=F.relu)
        .by(bend=torch.tanh)
        .by(bend=F.elu)
        .by(bend=F.hardswish)
        .by(bend=F.mish)
        .by(bend=F.softplus)
        .by(bend=lambda gate: gate * (-gate).sigmoid())
        .by(bend=lambda gate: gate * (1.702 * gate).sigmoid()),
        mistake("""the branches are added
            You add gate and value. They are multiplied, number by number.""").by(
            join=lambda gate, up: gate + up
        ),
        mistake("""one branch is left out
            You use the gate alone, or the value alone. The hidden units are their product.""")
        .by(join=lambda gate, up: gate)
        .by(join=lambda gate, up: up),
        mistake("""one layer for both branches
            Gate and value come from one layer. There are two, W_gate and W_up.""")
        .by(up=lambda self, x: self.W_gate(x))
        .by(gate=lambda self, x: self.W_up(x)),
        mistake("""biases that nobody asked for
            Your layers have biases. All three go without: `nn.Linear(…, bias=False)`.""")
        .by(with_biases("W_gate", "W_up", "W_down"))
        .by(with_biases("W_gate"))
        .by(with_biases("W_up"))
        .by(with_biases("W_down"))
        .by(with_biases("W_gate", "W_up")),
        mistake("""W_down does not lead back
            A layer has another size. W_gate and W_up lead from d_model to d_ff, W_down from d_ff
            back to d_model.""")
        .by(
            layers=lambda d, f: decisions.linear(
                {"W_gate": (d, f), "W_up": (d, f), "W_down": (f, f)}
            )
        )
        .by(
            layers=lambda d, f: decisions.linear(
                {"W_gate": (f, d), "W_up": (f, d), "W_down": (d, f)}
            )
        )
        .by(
            layers=lambda d, f: decisions.linear(
                {"W_gate": (d, f), "W_up": (d, d), "W_down": (f, d)}
            )
        ),
        mistake("""d_ff is ignored
            Your hidden layer has the same width whatever d_ff says. Hand it on.""")
        .by(width=lambda d_model, d_ff: 4 * d_model)
        .by(width=lambda d_model, d_ff: d_model)
        .by(width=lambda d_model, d_ff: 2 * d_ff)
        .by(width=lambda d_model, d_ff: 2 * d_ff // 3),
        mistake("""x is added on top
            You add x to the output, as the block around this layer will. Here it is W_down of the
            hidden units and nothing else.""").by(finish=lambda output, x: x + output),
        mistake("""bent once more at the end
            You bend what comes out of W_down. It has either sign and is returned as it is.""").by(
            finish=lambda output, x: F.silu(output)
        ),
        mistake("""a norm inside
            You normalise, before the layers or after them. The norms belong to the block.""")
        .by(take=lambda x: llama.rms_norm(x))
        .by(finish=lambda output, x: llama.rms_norm(output)),
        mistake("""the gate is shared out
            You take a softmax of the gate. Each hidden unit is bent by itself: `F.silu`.""").by(
            bend=lambda gate: gate.softmax(-1)
        ),
        mistake("""the layer works along the sequence
            You turn x around, so that the layers mix tokens. They mix the features of each token:
            they work on the last axis.""").by(
            take=lambda x: x.mT, finish=lambda output, x: output.mT
        ),
        mistakes.GRADIENT_CUT.here(take=lambda x: x.detach()),
    ),
)
