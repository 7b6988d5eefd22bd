"""Chapter 18's drawings: a model made of the chapters' parts, two ways to pair, a file's block."""

from itertools import pairwise

from attncourse.figures.diagram import Diagram, Drawings, beside

CODES = (
    0,
    14,
    7,
    3,
    14,
    4,
    1,
    14,
    9,
    7,
    0,
    10,
    12,
    11,
    12,
    8,
    15,
    7,
    13,
    8,
    2,
    13,
    7,
    9,
    10,
    10,
    13,
    13,
    8,
    10,
    15,
    11,
)
WAY = (  # what happens, its shape, by which chapter's part, in which role
    ("pieces of words", "n ids", "18: merges", "ink"),
    ("a vector each", "(n, 576)", "1: a table", "ink"),
    ("30 blocks", "(n, 576)", "9, 10, 11, 12, 18", "ink"),
    ("a score a piece", "(n, 49152)", "13, and 1's table", "ink"),
    ("one is drawn", "1 id", "13: sampling", "ink"),
)


def model() -> Diagram:
    """Draw the way from a text to the next piece of a word, with each step's chapter."""
    picture = Diagram(
        "From text to text",
        "Five steps, one below the other: pieces of words, a vector each, thirty blocks, a score "
        "for each piece, one piece is drawn, which is put behind the text; beside each step stand "
        "its shape and the chapters that it comes from.",
        width=340,
        height=352,
    )
    boxes = []
    for i, (words, shape, chapter, role) in enumerate(WAY):
        boxes.append(picture.box(36, 8 + 68 * i, words, shape, role, width=178))
        picture.text(226, 34 + 68 * i, chapter, "quiet", size=12, anchor="start")
    for upper, lower in pairwise(boxes):
        picture.arrow(upper, lower)
    picture.arrow((36, 301), (36, 28), via=[(12, 301), (12, 28)], dashed=True)
    picture.text(125, 345, "behind the text, and again", "quiet", size=12)
    return picture


def paired(title: str, says: str, pairs: list[tuple[int, int]]) -> Diagram:
    """Draw a head's eight features in a row, those that turn together joined by arcs."""
    picture = Diagram(title, says, width=264, height=136)
    picture.text(4, 15, title, bold=True, anchor="start")
    roles = ("query", "key", "value", "ink")
    for role, pair in zip(roles, pairs, strict=True):
        left, right = (20 + 32 * i for i in pair)
        middle, top = (left + right) / 2, 90 - 9 - 0.34 * (right - left)
        picture.path(f"M{left},90Q{middle},{2 * top - 90:g} {right},90", role, thick=2)
        for i in pair:
            picture.dot(20 + 32 * i, 96, role, radius=7)
            picture.text(20 + 32 * i, 124, str(i), size=13)
    return picture


def two_ways() -> Drawings:
    """Draw which features of a head turn together: neighbours, or one from each half."""
    return beside(
        paired(
            "Pairs side by side",
            "Eight features in a row; 0 and 1, 2 and 3, 4 and 5, 6 and 7 turn together.",
            [(0, 1), (2, 3), (4, 5), (6, 7)],
        ),
        paired(
            "Two halves",
            "Eight features in a row; 0 and 4, 1 and 5, 2 and 6, 3 and 7 turn together.",
            [(0, 4), (1, 5), (2, 6), (3, 7)],
        ),
    )


def file_block() -> Diagram:
    """Draw 32 numbers of a file: a scale, the smallest number, and 32 codes of 4 bits."""
    picture = Diagram(
        "32 numbers in a file",
        "A row of two wide cells, scale and minimum, with 16 bits each, and 32 narrow cells with a "
        "code of 4 bits each, in two rows. A number is minimum plus code times scale.",
        width=340,
        height=150,
    )
    picture.box(4, 8, "scale", "16 bits", "query", width=92)
    picture.box(104, 8, "minimum", "16 bits", "key", width=92)
    picture.text(204, 34, "32 codes of 4 bits", size=13, anchor="start")
    for i in range(32):
        x, y = 4 + 20.6 * (i % 16), 64 + 24 * (i // 16)
        picture.path(f"M{x:g},{y}h18v20h-18Z", "value")
        picture.text(x + 9, y + 15, str(CODES[i]), size=12)
    picture.text(170, 136, "number = minimum + code · scale", bold=True)
    return picture
