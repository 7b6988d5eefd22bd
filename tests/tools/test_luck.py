"""No test depends on luck: see tests/helpers/seeding.py."""

import random
import secrets

import numpy as np
import torch

from helpers.seeding import settle


def drawn() -> list[float]:
    from_the_shared = random.random(), np.random.normal(), torch.rand(()).item()
    fresh = secrets.randbits(32), secrets.randbelow(10**9), np.random.default_rng().normal()
    return [*from_the_shared, *fresh]


def test_what_is_drawn_begins_with_one_number_in_every_test():
    first, then = drawn(), drawn()
    assert all(a != b for a, b in zip(first, then, strict=True))
    settle()
    assert drawn() == first
