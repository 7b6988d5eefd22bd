"""Cases that several of the chapter's exercises share."""

import numpy as np
import torch

from attncourse.checks.callers.ablation import shapes_of
from attncourse.checks.exercise import Rng
from attncourse.checks.writing.cases import FLOATS_ONLY
from attncourse.checks.writing.modules import State, tensor
from attncourse.gpt import GPT, GPTConfig


def maps_of(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return causal maps: each row sums to 1 over the tokens up to its own."""
    scores = np.exp(2 * rng.normal(size=shape)) * np.tri(shape[-2], shape[-1])
    return scores / scores.sum(-1, keepdims=True)


MAPS_ONLY = (
    FLOATS_ONLY,
    ("a row of very *", "A map's rows sum to 1."),
    ("entries that cancel", "A map's rows sum to 1."),
)

SIZES = {"n_vocab": 11, "max_length": 9, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 7}


def state_of_gpt(rng: Rng, config: dict) -> State:
    """Return parameters of order one for a ``GPT``; of tied layers the first one's."""
    state = {}
    for name, shape in shapes_of(GPT, GPTConfig(**config)).items():
        numbers = rng.uniform(0.4, 1.2, shape) * rng.choice([-1, 1], shape)
        if name.endswith("gain"):
            numbers = np.abs(numbers)
        state[name] = tensor(numbers / (2 if len(shape) == 2 else 1))
    return state


def random_ids(rng: Rng, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, SIZES["n_vocab"], shape))


def model_text(changed: dict) -> str:
    config = SIZES | changed
    return f"GPT(GPTConfig({', '.join(f'{k}={v}' for k, v in config.items())}))"
