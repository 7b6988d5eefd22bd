"""Chapter 20's drawings: reading against writing, padding to the left, guess and check, experts."""

from attncourse.figures.diagram import Diagram, Drawings, beside

SIDE = 11  # of a small cell, in pixels
READ, WIDE = 8, 6  # rows of a question; features of a row
LINES = (("Why", "is", "the", "sky", "blue", "?"), ("What", "is", "ink", "?"), ("Hello", "!"))
TEXT, DRAFT = ("one", "two", "three"), ("four", "five", "six", "ten")
KEPT, INSTEAD = 3, "seven"  # drafts that are kept; what is drawn in place of the next
CHOSEN = {1: "0.7", 6: "0.3"}  # experts of the token that is drawn, and their weights


def cells(picture: Diagram, x: float, y: float, rows: int, columns: int, role: str) -> None:
    """Draw a matrix as small cells."""
    for i in range(rows):
        for j in range(columns):
            at = f"M{x + SIDE * j:g},{y + SIDE * i:g}h{SIDE - 1}v{SIDE - 1}h-{SIDE - 1}Z"
            picture.path(at, role, filled=True, thick=1)


def product(title: str, rows: int, says: str, cost: str) -> Diagram:
    """Draw rows times the weights: what is multiplied, and what had to be fetched for it."""
    picture = Diagram(title, says, width=280, height=168)
    picture.text(140, 18, title, bold=True, size=14)
    top = 36 + SIDE * (READ - rows) / 2
    cells(picture, 8, top, rows, WIDE, "query")
    picture.text(92, 36 + SIDE * READ / 2 + 5, "·", bold=True, size=18)
    cells(picture, 110, 36 + SIDE * (READ - WIDE) / 2, WIDE, WIDE, "ink")
    picture.text(194, 36 + SIDE * READ / 2 + 5, "=", bold=True, size=18)
    cells(picture, 210, top, rows, WIDE, "query")
    picture.text(143, 36 + SIDE * WIDE + 32, "fetched once", "quiet", size=12)
    picture.text(140, 160, cost, size=13)
    return picture


def reading_and_writing() -> Drawings:
    """Draw the same weights, fetched for all rows of a question and for one row of an answer."""
    return beside(
        product(
            "Reading",
            READ,
            f"{READ} rows, the tokens of a question, times a square of weights, which is fetched "
            f"once: each weight is used {READ} times.",
            f"each weight is used {READ} times",
        ),
        product(
            "Writing",
            1,
            "One row, the token that came last, times the same square of weights, which is fetched "
            "once: each weight is used once.",
            "each weight is used once",
        ),
    )


def padding() -> Drawings:
    """Draw three questions of different lengths in one batch, filled up behind or in front."""
    return beside(
        padded("Padded to the right", left=False), padded("Padded to the left", left=True)
    )


def padded(title: str, left: bool) -> Diagram:
    """Draw the questions as rows; where the next word of each is to come."""
    n = max(map(len, LINES))
    where = "in front of" if left else "behind"
    picture = Diagram(
        title,
        f"Three questions of {', '.join(str(len(line)) for line in LINES)} tokens as rows, the "
        f"short ones filled up {where} their tokens. Their last tokens stand "
        + ("in one column." if left else "in different columns."),
        width=310,
        height=142,
    )
    picture.text(150, 18, title, bold=True, size=14)
    for i, line in enumerate(LINES):
        empty, y = n - len(line), 30 + 30 * i
        for j in range(n):
            x, k = 4 + 48 * j, j - empty if left else j
            if 0 <= k < len(line):
                last = k == len(line) - 1
                picture.path(f"M{x},{y}h44v24h-44Z", "query", filled=last, thick=2 if last else 1)
                picture.text(x + 22, y + 17, line[k], size=12, bold=last)
            else:
                picture.path(f"M{x},{y}h44v24h-44Z", "quiet", thick=1)
                picture.hatch(x, y, 44, 24)
    picture.text(150, 136, "the next word comes after the filled ones", "quiet", size=12)
    return picture


def guess_and_check() -> Diagram:
    """Draw a draft behind a text, and what one pass of the model makes of it."""
    picture = Diagram(
        "Guess and check",
        f"A text, {' '.join(TEXT)}, and behind it a draft of {len(DRAFT)} words, "
        f"{' '.join(DRAFT)}. The model reads text and draft in one pass and has probabilities for "
        f"the word after each. The first {KEPT} words of the draft are kept, the next is refused "
        f"and {INSTEAD} is drawn in its place.",
        height=226,
    )
    picture.text(4, 18, "the text", "quiet", size=12, anchor="start")
    picture.text(4, 40, " ".join(TEXT), bold=True, size=13, anchor="start")
    picture.text(118, 18, "a draft, made cheaply", "quiet", size=12, anchor="start")
    boxes = []
    for i, word in enumerate(DRAFT):
        boxes.append(picture.box(118 + 56 * i, 24, word, role="key", width=50))
    model = picture.box(4, 84, "the model", "one pass over text and draft", "query", width=332)
    for i, place in enumerate(boxes):
        x = place.middle[0]
        picture.arrow((x, place.y + 30), (x, model.y - 4), role="key")
        is_kept = i < KEPT
        picture.arrow((x, model.y + 45), (x, 152), role="value" if is_kept else "ink")
        if is_kept:
            picture.box(118 + 56 * i, 156, DRAFT[i], role="value", width=50)
        elif i == KEPT:
            picture.box(118 + 56 * i, 156, INSTEAD, role="ink", width=53)
    picture.text(196, 208, f"{KEPT} kept", "value", size=13)
    picture.text(300, 208, "drawn anew", size=13)
    return picture


def experts() -> Diagram:
    """Draw a token, the gate's scores for eight experts, and the two that it goes to."""
    picture = Diagram(
        "Two of eight experts",
        "A token’s row goes into a gate, which scores eight feed-forward layers. The two with the "
        f"largest scores, {' and '.join(map(str, CHOSEN))}, read the row; what they return is "
        f"added with weights {' and '.join(CHOSEN.values())}. The other six do nothing.",
        height=214,
    )
    token = picture.box(122, 4, "a token", "(d,)", width=96)
    boxes = []
    for i in range(8):
        role = "value" if i in CHOSEN else "quiet"
        boxes.append(picture.box(4 + 42 * i, 88, str(i), role=role, width=38))
    out = picture.box(122, 166, "sum", "(d,)", width=96)
    for i, place in enumerate(boxes):
        if i in CHOSEN:
            picture.arrow(token, place, role="value", thick=2)
            picture.arrow(place, out, role="value", thick=2)
            x = (place.middle[0] + out.middle[0]) / 2
            picture.text(x + (-26 if i < 4 else 26), 152, f"· {CHOSEN[i]}", "value", bold=True)
    picture.text(4, 22, "the gate scores", "quiet", size=12, anchor="start")
    picture.text(4, 38, "8, chooses 2", "quiet", size=12, anchor="start")
    return picture
