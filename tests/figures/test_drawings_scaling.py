"""Chapter 7's drawing: where its dots stand, how dark its weights are."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from attncourse.figures.drawings import scaling
from attncourse.figures.drawings.scaling import KEY_WIDTHS, UNIT, ZERO


def scores_and_weights_drawn(diagram) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and weights, ``(3, 16)`` each, read off the drawing."""
    nodes = list(ElementTree.fromstring(diagram.svg()).iter())
    places = [float(node.get("cx")) for node in nodes if node.tag == "circle"]
    shades = [float(n.get("fill-opacity")) for n in nodes if n.get("class") == "ad-weight"]
    return (np.reshape(places, (3, 16)) - ZERO) / UNIT, np.reshape(shades, (3, 16))


def test_dots_are_one_cloud_divided_three_ways():
    plain, by_root, by_width = (
        scores_and_weights_drawn(diagram)[0] for diagram in scaling.clouds().drawings
    )
    for row, d_k in enumerate(KEY_WIDTHS):
        np.testing.assert_allclose(by_root[row], plain[row] / d_k**0.5, atol=0.02)
        np.testing.assert_allclose(by_width[row], plain[row] / d_k, atol=0.02)
    assert (np.diff(plain.std(axis=1)) > 1).all()
    assert np.ptp(by_root.std(axis=1)) < 0.3
    assert (np.diff(by_width.std(axis=1)) < 0).all()


def test_weights_are_the_softmax_of_the_dots():
    for diagram in scaling.clouds().drawings:
        scores, weights = scores_and_weights_drawn(diagram)
        raw = np.exp(scores - scores.max(axis=1, keepdims=True))
        np.testing.assert_allclose(weights, raw / raw.sum(axis=1, keepdims=True), atol=0.02)


def test_the_captions_of_width_64_hold():
    plain, by_root, by_width = (
        scores_and_weights_drawn(diagram)[1][-1] for diagram in scaling.clouds().drawings
    )
    assert plain.max() > 0.99
    assert 0.15 < by_root.max() < 0.5
    assert np.ptp(by_width) < 0.04
