"""No test depends on luck: see tests/helpers/seeding.py."""

import random
import secrets

import numpy as np
import torch

from helpers.seeding import settle


def first_draws() -> list[float]:
    from_the_shared = random.random(), np.random.normal(), torch.rand(()).item()
    fresh = secrets.randbits(32), secrets.randbelow(10**9), np.random.default_rng().normal()
    return [*from_the_shared, *fresh]


def test_every_test_begins_with_the_same_random_state():
    first, then = first_draws(), first_draws()
    assert all(a != b for a, b in zip(first, then, strict=True))
    settle()
    assert first_draws() == first
