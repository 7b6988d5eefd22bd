"""Chapter 7's drawing: where its dots stand, how dark its weights are."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from attncourse.figures.drawings import scaling
from attncourse.figures.drawings.scaling import KEY_WIDTHS, UNIT, ZERO


def drawn(diagram) -> tuple[np.ndarray, np.ndarray]:
    """Scores and weights, ``(3, 16)`` each, as they can be read off the picture."""
    nodes = list(ElementTree.fromstring(diagram.svg()).iter())
    places = [float(node.get("cx")) for node in nodes if node.tag == "circle"]
    shades = [float(n.get("fill-opacity")) for n in nodes if n.get("class") == "ad-weight"]
    return (np.reshape(places, (3, 16)) - ZERO) / UNIT, np.reshape(shades, (3, 16))


def test_dots_are_one_cloud_divided_three_ways():
    plain, root, whole = (drawn(diagram)[0] for diagram in scaling.clouds().drawings)
    for row, d_k in enumerate(KEY_WIDTHS):
        np.testing.assert_allclose(root[row], plain[row] / d_k**0.5, atol=0.02)
        np.testing.assert_allclose(whole[row], plain[row] / d_k, atol=0.02)
    assert (np.diff(plain.std(axis=1)) > 1).all()
    assert np.ptp(root.std(axis=1)) < 0.3
    assert (np.diff(whole.std(axis=1)) < 0).all()


def test_weights_are_the_softmax_of_the_dots():
    for diagram in scaling.clouds().drawings:
        scores, weights = drawn(diagram)
        raw = np.exp(scores - scores.max(axis=1, keepdims=True))
        np.testing.assert_allclose(weights, raw / raw.sum(axis=1, keepdims=True), atol=0.02)


def test_what_the_pictures_say_of_width_64_is_so():
    plain, root, whole = (drawn(diagram)[1][-1] for diagram in scaling.clouds().drawings)
    assert plain.max() > 0.99
    assert 0.15 < root.max() < 0.5
    assert np.ptp(whole) < 0.04
