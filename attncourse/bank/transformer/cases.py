"""Cases that several of the chapter's exercises share."""

from collections.abc import Callable

import torch

from attncourse.checks import callers
from attncourse.checks.exercise import Case, Rng
from attncourse.checks.writing.modules import State, module_case, tensor, uniform_values


def layer(rng: Rng, d_out: int, d_in: int, bias: bool = True) -> State:
    """A linear layer whose output is of order one, and a bias that is not 0."""
    state = {"weight": 1.5 * d_in**-0.5 * uniform_values(rng, d_out, d_in)}
    return state | ({"bias": aside(rng, d_out)} if bias else {})


def aside(rng: Rng, d: int) -> torch.Tensor:
    """Numbers from 0.5 to 1 with either sign."""
    return tensor(rng.uniform(0.5, 1, d) * rng.choice([-1, 1], d))


def inside(name: str, state: State) -> State:
    return {f"{name}.{part}": value for part, value in state.items()}


def feed_state(rng: Rng, d_model: int, d_ff: int | None = None, bias: bool = True, **_) -> State:
    d_ff = 4 * d_model if d_ff is None else d_ff
    return inside("W_1", layer(rng, d_ff, d_model, bias)) | inside(
        "W_2", layer(rng, d_model, d_ff, bias)
    )


def attention_state(rng: Rng, d: int) -> State:
    layers = (inside(name, layer(rng, d, d)) for name in ("W_q", "W_k", "W_v", "W_o"))
    return {name: value for one in layers for name, value in one.items()}


def block_state(attentions: tuple[str, ...], norms: int):
    """Return what draws the weights of a block with these attentions and so many norms."""

    def state(rng: Rng, d_model: int, n_heads: int, d_ff: int | None = None, **_) -> State:
        drawn: State = {}
        for name in attentions:
            drawn |= inside(name, attention_state(rng, d_model))
        drawn |= inside("feed_forward", feed_state(rng, d_model, d_ff))
        for i in range(1, norms + 1):
            gain = tensor(rng.uniform(0.5, 1.5, d_model))
            drawn |= inside(f"norm_{i}", {"gain": gain, "bias": aside(rng, d_model)})
        return drawn

    return state


POST = {"pre_norm": False}
RARE = "one head, one token; float32, large and small entries, weights of 0"
OUTPUTS = ("W_o.weight", "W_o.bias", "W_2.weight", "W_2.bias")  # 0 here: the branches add nothing


def weights_of_0(state) -> list[tuple[str, ...]]:
    """Every weight of a block once among others that are 0, never all of them."""
    names = list(state(torch_free_rng(), 4, 1))
    return [tuple(names[i::5]) for i in range(5)]


def torch_free_rng() -> Rng:
    import numpy as np

    return np.random.default_rng(0)


def trained(name: str, state, branches: tuple[str, ...]) -> Callable[[Rng], list[Case]]:
    """Return the cases that look at what dropout adds.

    In one branch i returns 4^i everywhere, in the others one branch alone returns anything.
    """

    def given(rng: Rng) -> dict[str, torch.Tensor]:
        memory = {"memory": uniform_values(rng, 5, 32)} if len(branches) == 3 else {}
        return {"x": uniform_values(rng, 24, 32), **memory}

    def case(rng: Rng, numbers: list[float | None], use: Callable, note: str) -> Case:
        own = state(rng, 32, 2, 8)
        for branch, number in zip(branches, numbers, strict=True):
            if number is not None:
                own[f"{branch}.weight"] = torch.zeros_like(own[f"{branch}.weight"])
                own[f"{branch}.bias"] = torch.full_like(own[f"{branch}.bias"], number)
        options = {"dropout": 0.4}
        return module_case(name, (32, 2, 8), own, given(rng), options=options, use=use, note=note)

    every: list[float | None] = [4.0**i for i in range(len(branches))]
    one = "the numbers that are added to x; every branch returns one number"
    another = "what the numbers are multiplied by that {} adds; the other branches add nothing"

    def cases(rng: Rng) -> list[Case]:
        return [
            case(rng, every, callers.added_in_training, f"in training: {one}"),
            *(
                case(
                    rng,
                    [None if other == branch else 0.0 for other in branches],
                    callers.multiplied_in_training,
                    f"in training: {another.format(branch.split('.')[0])}",
                )
                for branch in branches
            ),
        ]

    return cases
