"""The picture of a conversation: each piece on as much orange as it was probable."""

from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attncourse.figures.style import KEY, QUERY, set_style

LETTER, WIDTH = 0.0117, 1.0  # a letter's width as a share of the line; where a line ends


def draw_chat(model: Any) -> Figure:
    """Draw the last question and its answer; the usual question where none was asked yet."""
    set_style()
    if not model.said:
        list(model.answer())
    question, pieces = model.said
    figure, page = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    page.axis("off")
    page.set_title("SmolLM2 wrote this through your parts. Orange: how probable each piece was.")
    lines = draw_pieces(page, [(question, 0.0)], 0, QUERY)
    lines = draw_pieces(page, pieces, lines + 1, "black")
    page.set(xlim=(0, WIDTH), ylim=(lines + 1, -0.8))
    return figure


def draw_pieces(page, pieces: list[tuple[str, float]], line: float, colour: str) -> float:
    """Draw pieces from a line on, wrapped; return the last line."""
    left = 0.0
    for piece, probability in pieces:
        for number, words in enumerate(piece.split("\n")):
            if number or left + len(words) * LETTER > WIDTH:
                left, line = 0.0, line + 1
            width = len(words) * LETTER
            box = plt.Rectangle((left, line - 0.42), width, 0.84, color=KEY, lw=0)
            box.set_alpha(0.75 * probability)
            page.add_patch(box)
            page.text(left, line, words, va="center", family="monospace", fontsize=9, color=colour)
            left += width
    return line
