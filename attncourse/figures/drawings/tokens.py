"""Chapter 1's drawings: text to rows of numbers, and the lookup as a product."""

from attncourse.figures.diagram import Diagram

TEXT_TOKENS = ("the", "man", "walked", "the", "dog")
TOKEN_IDS = (1, 2, 3, 1, 4)
TABLE = ((0.1, -0.1), (0.6, 0.1), (-0.5, 0.4), (1.3, 0.9), (-0.7, -1.3))
VOCABULARY_NAMES = ("<unk>", "the", "man", "walked", "dog")


def text_to_rows() -> Diagram:
    """Draw a text cut into tokens, tokens numbered, numbers exchanged for rows of a table."""
    drawing = Diagram(
        "From text to rows",
        "The text The man walked the dog is cut into five tokens: the, man, walked, the, dog. They "
        "have the ids 1, 2, 3, 1, 4. Each id is exchanged for a row of a table, two numbers, drawn "
        "upright; the vectors of the, the first and the fourth, are equal.",
        height=232,
    )
    drawing.box(66, 2, "The man walked the dog", width=270)
    for words, line in (("text", 21), ("tokens", 81), ("ids (n,)", 135), ("vectors", 192)):
        drawing.text(2, line, words, "quiet", anchor="start", size=12)
    left = 66
    for token, number in zip(TEXT_TOKENS, TOKEN_IDS, strict=True):
        wide = 66 if len(token) > 3 else 45
        middle = left + wide / 2
        cut = drawing.box(left, 62, token, width=wide)
        drawing.arrow((middle, 33), (middle, 59), thick=1)
        name = drawing.box(middle - 16, 116, str(number), width=32)
        drawing.arrow(cut, name, thick=1)
        rows = drawing.matrix(middle - 20, 172, [[x] for x in TABLE[number]], cell=(40, 26))
        drawing.arrow(name, rows, thick=1)
        left += wide + 6
    return drawing


def lookup() -> Diagram:
    """Draw one-hot rows times the table: each row of H has a single 1, and picks a row of E."""
    drawing = Diagram(
        "A lookup is a product",
        "H, five by five, has one 1 in each row: in the columns the, man, walked, the, dog. Times "
        "the table E, five by two, it is X, five by two. The row of man is lit: its 1 stands in "
        "the column of id 2, and the row of man in E comes out.",
        height=188,
    )
    cell = (22, 24)
    hot = [[float(j == i) for j in range(5)] for i in TOKEN_IDS]
    drawing.text(107, 16, "H (n, n_{vocab})", bold=True)
    drawing.matrix(52, 44, hot, rows=TEXT_TOKENS, columns="01234", cell=cell, lit=1, shade=True)
    drawing.text(170, 108, "·", size=20, bold=True)
    drawing.text(211, 16, "E (n_{vocab}, d)", bold=True)
    drawing.matrix(178, 44, TABLE, cell=(33, 24), lit=2)
    drawing.text(255, 108, "=", size=16, bold=True)
    drawing.text(299, 16, "X (n, d)", bold=True)
    drawing.matrix(266, 44, [TABLE[i] for i in TOKEN_IDS], cell=(33, 24), lit=1)
    drawing.text(107, 182, "columns: ids", "quiet", size=12)
    drawing.text(211, 182, "rows: ids", "quiet", size=12)
    return drawing
