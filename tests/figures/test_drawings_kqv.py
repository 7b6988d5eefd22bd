"""Chapter 5's drawings: the sentence to touch has the package's weights, the ring closes."""

from __future__ import annotations

import numpy as np
import torch

from attncourse.figures.drawings import kqv as drawings
from attncourse.kqv import attention_weights


def test_with_two_vectors_the_word_it_attends_to_sushi():
    view = drawings.it_and_sushi()
    kinds = {"I": 0, "me": 0, "sushi": 1, "it": 2}
    X = torch.eye(4)[[kinds.get(word, 3) for word in view.queries]]  # (8, 4)
    W_q, W_k = torch.tensor([[0.0], [0], [4], [0]]), torch.tensor([[0.0], [1], [0], [0]])
    expected = attention_weights(X, X, scale=1.0), attention_weights(X @ W_q, X @ W_k)
    np.testing.assert_allclose(view.weights[0], torch.stack(expected), atol=1e-6)
    it_row, sushi_row = view.queries.index("it"), view.queries.index("sushi")
    assert view.start == (0, it_row)
    assert view.weights[0, 0, it_row].argmax() == it_row
    assert view.weights[0, 1, it_row].argmax() == sushi_row
    assert np.ptp(view.weights[0, 1, sushi_row]) < 1e-6  # it does not look back


def test_each_token_of_the_ring_points_at_the_next_ones_name():
    for token, following in zip(drawings.RING, [*drawings.RING[1:], drawings.RING[0]], strict=True):
        assert token[-1] == following[0]
    assert len({token[:1] for token in drawings.RING}) == len(drawings.RING)
    picture = drawings.ring()
    assert picture.svg().count("ad-head") == len(drawings.RING)
    assert f"Answer: {drawings.RING[1][1]}" in picture.svg()
