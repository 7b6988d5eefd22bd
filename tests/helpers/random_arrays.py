"""Numbers that the tests of several chapters draw: the same for the same shape and seed."""

import numpy as np
import torch


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.from_numpy(np.random.default_rng([seed, *shape]).normal(size=shape)).to(dtype)


def random_mask(*shape, seed=0):
    """A boolean mask in which every row allows a key and forbids another."""
    mask = normal(*shape, seed=seed) > 0
    mask[..., 0], mask[..., -1] = True, False
    return mask
