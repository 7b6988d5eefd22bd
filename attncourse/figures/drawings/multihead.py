"""Chapter 9's drawings: heads in parallel, one map for two questions, how features become heads."""

import numpy as np

from attncourse.figures.diagram import Diagram, Drawings, beside

HEAD_TOKENS = ("it", "makes", "me", "happy")
HEAD_QUESTIONS = ("who does it?", "to whom?", "what then?")
LISTENS = ((1, 0), (1, 2), (1, 3))  # in each head: this token listens to that one
FILLS = (("#AA4499", "#fff"), ("#56B4E9", "#000"), ("#E69F00", "#000"))  # a head's, words on it


def example_maps() -> np.ndarray:
    """Return three maps ``(3, 4, 4)``: in each, *makes* finds another token of its sentence."""
    scores = np.zeros((3, 4, 4))
    for head, (query, key) in enumerate(LISTENS):
        scores[head, query, key] = 5.0
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def in_parallel() -> Drawings:
    """Draw three heads on the same tokens, then their outputs side by side, times W_o."""
    heads = Diagram(
        "Three heads at once",
        "The tokens X, n by d model, go into three heads, each with a query, a key and a value "
        "projection of its own. Each has its own map of weights: the row of makes leads to it in "
        "the first, to me in the second, to happy in the third. Each returns n by d head features.",
        height=282,
    )
    x = heads.box(130, 4, "tokens X", "(n, d_{model})", width=116)
    maps = zip(example_maps(), HEAD_QUESTIONS, (38, 140, 242), strict=True)
    for i, (weights, question, left) in enumerate(maps):
        q, k, v = (
            heads.box(left + 33 * j, 76, letter, role=role, width=30)
            for j, (letter, role) in enumerate((("q", "query"), ("k", "key"), ("v", "value")))
        )
        heads.arrow(x, (left + 48, 72), role="quiet")
        rows = HEAD_TOKENS if i == 0 else ()
        place = heads.matrix(left + 24, 122, weights, rows=rows, cell=(13, 17), form="", shade=True)
        heads.arrow(q, (left + 30, 118), role="query")
        heads.arrow(k, (left + 50, 118), role="key")
        heads.box(left, 214, f"H^{{({i})}}", "(n, d_{head})", "value", width=96)
        heads.arrow(place, (left + 50, 210))
        heads.arrow(v, (left + 81, 210), role="value")
        heads.text(left + 48, 276, question, size=13, bold=True)
    mixed = Diagram(
        "Side by side, then mixed",
        "The outputs of the three heads stand side by side, n by d model. A last matrix W o, d "
        "model by d model, mixes them into the output U, n by d model.",
        height=282,
    )
    for i in range(3):
        mixed.box(20 + 100 * i, 30, f"H^{{({i})}}", "(n, d_{head})", "value", width=100)
    mixed.text(170, 20, "concat: side by side, (n, d_{model})", size=13)
    W_o = mixed.box(110, 120, "· W_o", "(d_{model}, d_{model})", width=120)
    for i in range(3):
        mixed.arrow((70 + 100 * i, 76), (140 + 30 * i, 116), role="value")
    output = mixed.box(100, 212, "U", "(n, d_{model})", "value", width=140)
    mixed.arrow(W_o, output)
    mixed.text(170, 276, "what reaches each token, from all heads", "quiet", size=12)
    return beside(heads, mixed)


def triangle() -> Drawings:
    """Draw why one map with a linear read-out cannot answer both questions."""
    x, y, z = np.array([(130.0, 46.0), (34.0, 196.0), (226.0, 196.0)])
    yz, zy, xy, xz = 0.7 * y + 0.3 * z, 0.3 * y + 0.7 * z, 0.6 * x + 0.4 * y, 0.6 * x + 0.4 * z
    pictures = []
    for with_y in (True, False):
        side, lost, wrong = ("y", "x, then y", xy) if with_y else ("z", "x, then z", xz)
        far = 0.45 * x + 0.55 * (z if with_y else y)  # where the cut leaves the triangle
        near = (y + z) / 2
        picture = Diagram(
            f"The cut leaves x with {side}",
            "A triangle whose corners are the values of three digits, x, y and z. On each edge lie "
            "the blends of two digits. A straight cut parts the two orders of y and z. It leaves x "
            f"on the side of {side}, and so the blend for {lost} on the wrong side.",
            width=260,
            height=236,
        )
        says_z = [far, x, y, near] if with_y else [far, y, near]
        picture.path(outline(says_z), thick=0, filled=True)
        picture.path(outline([x, y, z]), "quiet")
        (x0, y0), (x1, y1) = near + 0.12 * (near - far), far + 0.12 * (far - near)
        picture.path(f"M{x0:g},{y0:g}L{x1:g},{y1:g}", dashed=True, thick=2)
        says = ((100, 160), (182, 184)) if with_y else ((76, 184), (160, 150))
        for (a, b), digit in zip(says, "zy", strict=True):
            picture.text(a, b, f"says {digit}", "quiet", size=12)
        picture.text(x[0], 20, f"the cut leaves x with {side}", bold=True)
        for name, (a, b), dx, dy in (("x", x, 0, -8), ("y", y, -16, 6), ("z", z, 16, 6)):
            picture.dot(a, b, "value", radius=5)
            picture.text(a + dx, b + dy, name, "value", size=15, bold=True)
        for name, (a, b), dx, dy, hollow in (
            ("y, z", yz, 0, 20, False), ("z, y", zy, 0, 20, True),
            ("x, y", xy, -24, 0, True), ("x, z", xz, 24, 0, False),
        ):  # fmt: skip
            picture.dot(a, b, radius=4.5, hollow=hollow)
            picture.text(a + dx, b + dy, name, size=13)
        a, b = wrong
        picture.path(f"M{a - 9:g},{b - 9:g}l18,18m0,-18l-18,18", "key", thick=3)
        picture.text(130, 232, f"“{lost}” is on the wrong side", "key", size=13)
        pictures.append(picture)
    return beside(*pictures)


def outline(corners) -> str:
    """Return a closed line through these points, as SVG's ``d``."""
    return "M" + "L".join(f"{a:g},{b:g}" for a, b in corners) + "Z"


def split() -> Drawings:
    """Draw two tokens of six features cut into three heads, rightly and wrongly."""
    memory = np.arange(12).reshape(2, 6)
    right = Diagram(
        "Cut, then change places",
        "Twelve numbered squares, six for each of two tokens, in three colours, two squares each. "
        "After unflatten there are two blocks, one for each token, with a row for each head. After "
        "transpose there are three blocks of one colour, one for each head, with a row for each "
        "token.",
        height=322,
    )
    wrong = Diagram(
        "Reshaped straight: wrong",
        "The same twelve squares, dealt out four to a block in the order of memory. Head 0 gets "
        "four features of token 0, head 1 two of each token, head 2 four of token 1.",
        height=322,
    )
    cut = memory.reshape(2, 3, 2)
    for picture, letter in ((right, "a"), (wrong, "b")):
        picture.text(332, 16, letter, size=15, anchor="end", bold=True)
        words = "x, as it lies in memory: (2, 6)"
        blocks(picture, 2, words, memory[:, None], "token", across=162)
    blocks(right, 92, "x.unflatten(-1, (3, 2)): (2, 3, 2)", cut, "token", across=162)
    blocks(right, 226, "… .transpose(-3, -2): (3, 2, 2)", cut.swapaxes(0, 1), "head")
    blocks(wrong, 92, "x.reshape(3, 2, 2): (3, 2, 2)", memory.reshape(3, 2, 2), "head")
    for line, words in enumerate(
        ("The right shape, and the wrong numbers:", "in head 1 stand the end of token 0",
         "and the beginning of token 1.")
    ):  # fmt: skip
        wrong.text(170, 216 + 20 * line, words, size=13)
    return beside(right, wrong)


def blocks(picture: Diagram, top: float, words: str, parts, each: str, across: float = 112) -> None:
    """Draw Blocks of squares ``(blocks, rows, columns)`` side by side, below a line of words."""
    picture.text(8, top + 14, words, size=13, anchor="start", bold=True)
    for b, rows in enumerate(parts):
        left = 8 + across * b
        picture.text(left, top + 34, f"{each} {b}", "quiet", size=12, anchor="start")
        for (r, c), number in np.ndenumerate(rows):
            square(picture, left + 26 * c, top + 40 + 26 * r, int(number))


def square(picture: Diagram, x: float, y: float, number: int) -> None:
    """Draw A number in the colour of its head, with a frame where it belongs to token 1."""
    fill, ink = FILLS[number % 6 // 2]
    picture.parts.append(
        f'<rect x="{x:g}" y="{y:g}" width="24" height="24" style="stroke:none;fill:{fill}"/>'
    )
    if number >= 6:
        picture.parts.append(
            f'<rect x="{x + 2.5:g}" y="{y + 2.5:g}" width="19" height="19" '
            f'style="stroke:{ink};stroke-width:2"/>'
        )
    picture.parts.append(
        f'<text x="{x + 12:g}" y="{y + 16.5:g}" text-anchor="middle" '
        f'style="font-size:12px;font-weight:600;fill:{ink}">{number}</text>'
    )
