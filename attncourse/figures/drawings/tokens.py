"""Chapter 1's drawings: text to rows of numbers, and the lookup as a product."""

from attncourse.figures.diagram import Diagram

TOKENS = ("the", "man", "walked", "the", "dog")
IDS = (1, 2, 3, 1, 4)
TABLE = ((0.1, -0.1), (0.6, 0.1), (-0.5, 0.4), (1.3, 0.9), (-0.7, -1.3))
NAMES = ("<unk>", "the", "man", "walked", "dog")


def text_to_rows() -> Diagram:
    """Text is cut into tokens, tokens are numbered, numbers are exchanged for rows of a table."""
    drawing = Diagram(
        "From text to rows",
        "The text The man walked the dog is cut into five tokens: the, man, walked, the, dog. They "
        "have the ids 1, 2, 3, 1, 4. Each id is exchanged for a row of a table, two numbers, drawn "
        "upright; the vectors of the, the first and the fourth, are equal.",
        height=232,
    )
    text = drawing.box(66, 2, "The man walked the dog", width=208)
    for words, line in (("text", 21), ("tokens", 81), ("ids (n,)", 135), ("vectors", 192)):
        drawing.text(2, line, words, "quiet", anchor="start", size=12)
    for i, (token, number) in enumerate(zip(TOKENS, IDS, strict=True)):
        left = 66 + i * 55
        cut = drawing.box(left, 62, token, width=53)
        drawing.arrow(text, cut, thick=1)
        name = drawing.box(left + 10, 116, str(number), width=32)
        drawing.arrow(cut, name, thick=1)
        rows = drawing.matrix(left + 6, 172, [[x] for x in TABLE[number]], cell=(40, 26))
        drawing.arrow(name, rows, thick=1)
    return drawing


def lookup() -> Diagram:
    """One-hot rows times the table: each row of H has a single 1, and picks a row of E."""
    drawing = Diagram(
        "A lookup is a product",
        "H, five by five, has one 1 in each row: in the columns the, man, walked, the, dog. Times "
        "the table E, five by two, it is X, five by two. The row of man is lit: its 1 stands in "
        "the column of id 2, and the row of man in E comes out.",
        height=188,
    )
    cell = (24, 24)
    hot = [[float(j == i) for j in range(5)] for i in IDS]
    drawing.text(112, 16, "H (n, n_{vocab})", bold=True)
    drawing.matrix(52, 44, hot, rows=TOKENS, columns="01234", cell=cell, lit=1, shade=True)
    drawing.text(189, 108, "·", size=20, bold=True)
    drawing.text(230, 16, "E (n_{vocab}, d)", bold=True)
    drawing.matrix(200, 44, TABLE, cell=(29, 24), lit=2)
    drawing.text(268, 108, "=", size=16, bold=True)
    drawing.text(308, 16, "X (n, d)", bold=True)
    drawing.matrix(278, 44, [TABLE[i] for i in IDS], cell=(29, 24), lit=1)
    drawing.text(112, 182, "columns: ids", "quiet", size=12)
    drawing.text(230, 182, "rows: ids", "quiet", size=12)
    return drawing
