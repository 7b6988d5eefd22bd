"""Cases that several of the chapter's exercises share."""

from collections.abc import Callable

import torch

from attncourse.checks import callers
from attncourse.checks.exercise import Case, Rng
from attncourse.checks.writing.modules import State, module_case, tensor, uniform_values


def linear_state(rng: Rng, d_out: int, d_in: int, bias: bool = True) -> State:
    """Return the state of a linear layer whose output is of order one; its bias is not 0."""
    state = {"weight": 1.5 * d_in**-0.5 * uniform_values(rng, d_out, d_in)}
    return state | ({"bias": numbers_away_from_0(rng, d_out)} if bias else {})


def numbers_away_from_0(rng: Rng, d: int) -> torch.Tensor:
    """Return numbers from 0.5 to 1 with either sign."""
    return tensor(rng.uniform(0.5, 1, d) * rng.choice([-1, 1], d))


def prefix_names(name: str, state: State) -> State:
    return {f"{name}.{part}": value for part, value in state.items()}


def feed_state(rng: Rng, d_model: int, d_ff: int | None = None, bias: bool = True, **_) -> State:
    d_ff = 4 * d_model if d_ff is None else d_ff
    return prefix_names("W_1", linear_state(rng, d_ff, d_model, bias)) | prefix_names(
        "W_2", linear_state(rng, d_model, d_ff, bias)
    )


def attention_state(rng: Rng, d: int) -> State:
    layers = (prefix_names(name, linear_state(rng, d, d)) for name in ("W_q", "W_k", "W_v", "W_o"))
    return {name: value for layer_state in layers for name, value in layer_state.items()}


def block_state(attentions: tuple[str, ...], norms: int):
    """Return what draws the weights of a block with these attentions and so many norms."""

    def state(rng: Rng, d_model: int, n_heads: int, d_ff: int | None = None, **_) -> State:
        weights: State = {}
        for name in attentions:
            weights |= prefix_names(name, attention_state(rng, d_model))
        weights |= prefix_names("feed_forward", feed_state(rng, d_model, d_ff))
        for i in range(1, norms + 1):
            gain = tensor(rng.uniform(0.5, 1.5, d_model))
            weights |= prefix_names(
                f"norm_{i}", {"gain": gain, "bias": numbers_away_from_0(rng, d_model)}
            )
        return weights

    return state


POST_NORM = {"pre_norm": False}
RARE_CASES = "one head, one token; float32, large and small entries, weights of 0"
OUTPUT_PARAMETERS = (
    "W_o.weight",
    "W_o.bias",
    "W_2.weight",
    "W_2.bias",
)  # 0 here: the branches add nothing


def groups_of_names(state) -> list[tuple[str, ...]]:
    """Return each weight's name once among others; a case sets each group to 0."""
    names = list(state(fixed_rng(), 4, 1))
    return [tuple(names[i::5]) for i in range(5)]


def fixed_rng() -> Rng:
    import numpy as np

    return np.random.default_rng(0)


def dropout_cases(name: str, state, branches: tuple[str, ...]) -> Callable[[Rng], list[Case]]:
    """Return the cases that look at what dropout adds.

    In one branch i returns 4^i everywhere, in the others one branch alone returns anything.
    """

    def inputs(rng: Rng) -> dict[str, torch.Tensor]:
        memory = {"memory": uniform_values(rng, 5, 32)} if len(branches) == 3 else {}
        return {"x": uniform_values(rng, 24, 32), **memory}

    def case(rng: Rng, numbers: list[float | None], use: Callable, note: str) -> Case:
        weights = state(rng, 32, 2, 8)
        for branch, number in zip(branches, numbers, strict=True):
            if number is not None:
                weights[f"{branch}.weight"] = torch.zeros_like(weights[f"{branch}.weight"])
                weights[f"{branch}.bias"] = torch.full_like(weights[f"{branch}.bias"], number)
        options = {"dropout": 0.4}
        return module_case(
            name, (32, 2, 8), weights, inputs(rng), options=options, use=use, note=note
        )

    all_numbers: list[float | None] = [4.0**i for i in range(len(branches))]
    note_of_sums = "the numbers that are added to x; every branch returns one number"
    note_of_factors = (
        "what the numbers are multiplied by that {} adds; the other branches add nothing"
    )

    def cases(rng: Rng) -> list[Case]:
        return [
            case(rng, all_numbers, callers.added_in_training, f"in training: {note_of_sums}"),
            *(
                case(
                    rng,
                    [None if named_branch == branch else 0.0 for named_branch in branches],
                    callers.multiplied_in_training,
                    f"in training: {note_of_factors.format(branch.split('.')[0])}",
                )
                for branch in branches
            ),
        ]

    return cases
