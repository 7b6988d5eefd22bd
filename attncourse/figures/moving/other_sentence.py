"""Chapter 8: a question from outside meets the words of a sentence, and any numbers are one."""

from collections.abc import Sequence
from html import escape
from math import sqrt

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    choice,
    controls,
    live,
    picture_row,
    signed,
    slider_control,
)
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax
from attncourse.support.arrays import as_floats, require_finite

MOST, WIDE = 4, 340  # of a query's feature; the drawing's width
ASKS, ASKED = 46, 118  # where the question ends and the words begin
SENTENCE_DESCRIPTION = (
    "The question stands above the words of the sentence. A line leads from it to each word, as "
    "thick as the word’s weight, which is written below the word."
)


def other_sentence(
    queries, keys, values, names: Sequence[str], words: Sequence[str], features: Sequence[str],
    parts: Sequence[str],
) -> Moving:  # fmt: skip
    """Return a query that asks the words of another sentence; a reader chooses or makes it.

    queries: ``(k, 2)``, at most 4, to choose from by their names, each number from −4 to 4. keys:
    ``(n, 2)`` and values ``(n, d_v)`` of 2 to 6 words. features: names of a query's two features;
    parts: of a value's. The first query asks at the beginning. What is shown is
    ``softmax(q Kᵀ / √2) V``.

    Raises ``ValueError`` where sizes do not fit together, for other numbers and too many words.
    """
    queries = as_floats("queries", queries, "k d").astype(float)
    keys, values = as_floats("keys", keys, "n d"), as_floats("values", values, "n d")
    require_finite(queries=queries, keys=keys, values=values)
    sizes = (len(names), 2), (len(words), 2), (len(words), len(parts))
    for name, matrix, size in zip(
        ("queries", "keys", "values"), (queries, keys, values), sizes, strict=True
    ):
        if matrix.shape != size:
            raise ValueError(f"{name}: expected shape {size}, got {matrix.shape}")
    if not 2 <= len(words) <= 6 or len(names) > 4 or len(features) != 2:
        raise ValueError(
            f"expected 2 to 6 words, at most 4 names and 2 features, got {len(words)}, "
            f"{len(names)} and {len(features)}"
        )
    if np.abs(queries).max() > MOST:
        raise ValueError(f"queries: expected −{MOST} to {MOST}, got {np.abs(queries).max():g}")
    weights = softmax(keys @ queries[0] / sqrt(2))  # (n,)
    picture = Diagram("A question and five words", SENTENCE_DESCRIPTION, width=WIDE, height=176)
    x = [WIDE * (j + 0.5) / len(words) for j in range(len(words))]
    picture.box(70, 14, "", role="query", width=200, height=32)
    live(picture, "asks", asks(names[0], queries[0]))
    live(picture, "lines", "".join(map(weight_line, x, weights)))
    for at, word in zip(x, words, strict=True):
        picture.box(at - 31, ASKED, word, role="key", width=62)
    live(picture, "weights", "".join(map(weight_label, x, weights)))
    return Moving(
        "other_sentence",
        "A question to another sentence",
        controls(choice("question", "Ask:", [escape(name) for name in names], 0))
        + controls(
            *(
                slider_control(f"feature-{i}", escape(feature), -MOST, MOST, queries[0, i], 0.5)
                for i, feature in enumerate(features)
            )
        )
        + picture_row(picture),
        "Where JavaScript runs, buttons choose the question, and two sliders make any other.",
        {"queries": queries.tolist(), "keys": keys.tolist(), "values": values.tolist(), "x": x}
        | {"names": list(names), "words": list(words), "parts": list(parts), "asks": ASKS}
        | {"asked": ASKED},
        blend_sentence(weights, weights @ values, words, parts),
    )


def asks(name: str, query: np.ndarray) -> str:
    """Return the text of the question's box: its name and its query."""
    numbers = ", ".join(f"{q:g}".replace("-", "−") for q in query)
    return f'<text x="{WIDE / 2:g}" y="35" text-anchor="middle">{escape(name)} ({numbers})</text>'


def weight_line(x: float, weight: float) -> str:
    """Draw a line from the question to a word, as thick as the word's weight."""
    return (
        f'<path class="am-query" d="M{WIDE / 2:g},{ASKS}L{x:.1f},{ASKED}" '
        f'style="stroke-width:{0.6 + 9 * weight:.2f}"/>'
    )


def weight_label(x: float, weight: float) -> str:
    """Return the number below a word."""
    return f'<text x="{x:.1f}" y="{ASKED + 46}" text-anchor="middle">{weight:.2f}</text>'


def blend_sentence(weights: np.ndarray, blend: np.ndarray, words, parts) -> str:
    """Describe the result in a sentence, as the script writes it."""
    most = int(np.argmax(weights))
    blend_in_words = ", ".join(
        f"{part} {signed(b, 2)}" for part, b in zip(parts, blend, strict=True)
    )
    return f"Most weight: “{words[most]}”, {weights[most]:.2f}. The answer: {blend_in_words}."
