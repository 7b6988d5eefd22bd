"""Draws `book/assets/card.png`, the picture that stands beside a shared link to the book.

    python tools/card.py

Made by hand when the title changes; the weights are those of the first page.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from course import ROOT, load

from attncourse.kqv import attention_weights, project

WIDTH, HEIGHT, DPI = 1200, 630, 100  # what messengers ask for
INK, QUERY, KEY = "#1f2328", "#005f99", "#b34700"
CARD_WORDS = ["I", "like", "sushi", "because", "it", "makes", "me", "happy"]


def sentence_weights() -> torch.Tensor:
    """Return who attends to whom in the first page's sentence, by query and key, shape (8, 8)."""
    person, thing, refers, unrelated = torch.eye(4)
    X = torch.stack([person, unrelated, thing, unrelated, refers, unrelated, person, unrelated])
    asks = torch.tensor([[4.0, 0.0], [0.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    answers = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    return attention_weights(project(X, asks), project(X, answers), scale=1.0)


def main() -> None:
    """Draw the picture and write it."""
    course = load()
    figure = plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor="white")
    title = course.title.replace(", ", ",\n")
    figure.text(0.06, 0.66, title, size=46, weight="bold", color=INK, va="center")
    lines = ("A course with code that is tested,", "claims that are measured, exercises")
    about = "\n".join([*lines, "that say what went wrong."])
    figure.text(0.06, 0.30, about, size=21, color=INK, va="center", linespacing=1.5)
    axes = figure.add_axes((0.61, 0.06, 0.36, 0.68))
    axes.imshow(sentence_weights(), cmap="Greys", vmin=0, vmax=1)
    axes.set_xticks(range(len(CARD_WORDS)), CARD_WORDS, rotation=90, size=17, color=KEY)
    axes.set_yticks(range(len(CARD_WORDS)), CARD_WORDS, size=17, color=QUERY)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=6)
    axes.set_xticks([i - 0.5 for i in range(1, len(CARD_WORDS))], minor=True)
    axes.set_yticks([i - 0.5 for i in range(1, len(CARD_WORDS))], minor=True)
    axes.grid(which="minor", color="#d0d7de", linewidth=1)
    axes.tick_params(which="minor", length=0)
    figure.savefig(ROOT / "book" / "assets" / "card.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
