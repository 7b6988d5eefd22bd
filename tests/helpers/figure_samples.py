"""Small inputs that several moving figures are drawn from."""

from __future__ import annotations

import numpy as np

from attncourse.figures import moving
from attncourse.tokens import unit_rows

RNG = np.random.default_rng(5)
CIRCLE = unit_rows(RNG.normal(size=(13, 2)))
WORDS = ["the", "man", "walked", "the", "dog"]
MAPS = RNG.dirichlet(np.ones(5), size=(3, 5))
VALUES, W_O = RNG.normal(size=(3, 5, 2)), RNG.normal(size=(6, 7))


def heads(tokens=WORDS, **more):
    return moving.heads_off(**{"maps": MAPS, "values": VALUES, "W_o": W_O, **more}, tokens=tokens)


TOKENS = ["I", "am", "hungry"]
NUMBERS = {
    "X": [[1, 0, 0], [0, 1, 2], [1, 2, 0]],
    "W_q": [[0, 1], [0, 1], [1, 0]],
    "W_k": [[1, 0], [0, 1], [1, 0]],
    "W_v": [[4, 0], [0, 2], [1, 0]],
}
