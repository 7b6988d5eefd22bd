"""Chapter 1: words as arrows to drag, their cosines, and where the means of two sentences lie."""

from collections.abc import Sequence
from html import escape

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    beside_controls,
    choice,
    controls,
    live,
    picture_row,
    slider_control,
    svg_arrow,
)
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats

WIDTH, HEIGHT, UNIT = 330, 216, 56  # of the picture, and of 1, in pixels
FAR, UP = 2.5, 1.75  # how far from the middle an arrow may end
MEANS_DESCRIPTION = (
    "Arrows from one point, one for each word. A dot marks the mean of the first sentence’s words, "
    "a ring that of the second’s."
)


def two_means(
    words: Sequence[str], vectors: np.ndarray, sentences: Sequence[Sequence[int]]
) -> Moving:
    """Return words as arrows in the plane, and the means of a first sentence and of another one.

    vectors: ``(n, 2)``, one for each of 2 to 4 words, at most 2.5 to the side and 1.75 up or down.
    sentences: two or three lists of words' numbers: the first is marked by a dot, of the others the
    reader chooses which the ring marks. Raises ``ValueError`` for others.
    """
    V = as_floats("vectors", vectors, "n two").astype(float)
    if not 2 <= len(words) <= 4 or V.shape != (len(words), 2):
        raise ValueError(f"expected 2 to 4 words with 2 numbers each, got {list(words)}, {V.shape}")
    if not (np.abs(V) <= [FAR, UP]).all():
        raise ValueError(f"vectors: expected numbers up to {FAR} and {UP}, got {V.tolist()}")
    if not 2 <= len(sentences) <= 3 or not all(
        s and all(0 <= i < len(words) for i in s) for s in sentences
    ):
        raise ValueError(f"sentences: expected 2 or 3 lists of words' numbers, got {sentences}")
    said = [" ".join(words[i] for i in sentence) for sentence in sentences]
    picture = Diagram("Words as arrows", MEANS_DESCRIPTION, width=WIDTH, height=HEIGHT)
    live(picture, "arrows", "".join(word_arrows(words, V)))
    live(picture, "reaches", "".join(word_reaches(V)))
    first, other = (word_pixels(V[list(s)].mean(axis=0)) for s in sentences[:2])
    live(
        picture,
        "means",
        f'<circle cx="{first[0]:.1f}" cy="{first[1]:.1f}" r="5" class="am-dot"/>'
        f'<circle cx="{other[0]:.1f}" cy="{other[1]:.1f}" r="10" class="am-ring"/>',
    )
    return Moving(
        "two_means",
        "Two sentences, two means",
        beside_controls(
            picture_row(picture),
            f'<p><span class="am-value">●</span> mean of <i>{escape(said[0])}</i></p>',
            controls(
                "Drag an arrow by its tip, or:",
                choice("ring", "○ of", [escape(words) for words in said[1:]], 0),
                choice("word", "Move", [escape(word) for word in words], 0),
                slider_control("x", "right", -FAR, FAR, V[0, 0], 0.05),
                slider_control("y", "up", -UP, UP, V[0, 1], 0.05),
            ),
        ),
        "In a browser that runs scripts, every arrow can be dragged, and the cosines and means are "
        "computed anew.",
        {
            "words": list(words),
            "vectors": V.tolist(),
            "sentences": [list(s) for s in sentences],
            "said": said,
            "middle": [WIDTH / 2, HEIGHT / 2],
            "unit": UNIT,
            "far": [FAR, UP],
        },
        "A dot in a ring: both sentences have one mean."
        if np.allclose(first, other)
        else "The dot is one sentence’s mean, the ring the other’s.",
    )


def word_pixels(point: np.ndarray) -> np.ndarray:
    """Return a point in pixels; the second feature grows upwards."""
    return np.array([WIDTH, HEIGHT]) / 2 + UNIT * point * [1, -1]


def word_arrows(words: Sequence[str], V: np.ndarray):
    """Yield an arrow to each word's vector, with its name behind the tip."""
    for i, (word, v) in enumerate(zip(words, V, strict=True)):
        (x, y), way = word_pixels(v), v / (np.linalg.norm(v) or 1)
        yield svg_arrow(WIDTH / 2, HEIGHT / 2, x, y, *(("quiet", 2) if i else ("ink", 3)))
        yield (
            f'<text x="{x + 16 * way[0]:.1f}" y="{y - 14 * way[1] + 4:.1f}" '
            f'text-anchor="{"start" if way[0] > 0.3 else "end" if way[0] < -0.3 else "middle"}">'
            f"{escape(word)}</text>"
        )


def word_reaches(V: np.ndarray):
    """Yield for each arrow's tip the disc by which it is dragged."""
    for i, (x, y) in enumerate(map(word_pixels, V)):
        yield f'<circle class="am-reach" cx="{x:.1f}" cy="{y:.1f}" r="20" data-word="{i}"/>'
