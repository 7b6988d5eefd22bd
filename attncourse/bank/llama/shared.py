"""Definitions that several of the chapter's exercises share."""

import torch

from attncourse.checks.exercise import Rng
from attncourse.checks.writing import decisions
from attncourse.checks.writing.modules import State, uniform_values


def linear_weight(rng: Rng, d_out: int, d_in: int) -> torch.Tensor:
    """Return the weight of a linear layer whose output is of order one."""
    return 1.5 * d_in**-0.5 * uniform_values(rng, d_out, d_in)


def gated_state(rng: Rng, d_model: int, d_ff: int) -> State:
    return {
        "W_gate.weight": linear_weight(rng, d_ff, d_model),
        "W_up.weight": linear_weight(rng, d_ff, d_model),
        "W_down.weight": linear_weight(rng, d_model, d_ff),
    }


def mean_of_row(x):
    return x.mean(-1, keepdim=True)


def gated_layers(d_model, d_ff):
    return decisions.linear(
        {"W_gate": (d_model, d_ff), "W_up": (d_model, d_ff), "W_down": (d_ff, d_model)}
    )
