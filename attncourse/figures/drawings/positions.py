"""Chapter 11's drawings: where positions enter, hands that turn, adding against side by side."""

import math

from attncourse.figures.diagram import Diagram, Drawings, beside


def ways() -> Diagram:
    """Draw the pipeline of attention and the three places at which a position can enter it."""
    flow = Diagram(
        "Three ways in",
        "Attention from top to bottom: tokens X, then queries, keys and values, then scores, then "
        "weights and blend. Positions can enter at three places: a vector PE is added to each "
        "token, queries and keys are turned by R of their position, or the scores are lowered by "
        "a slope times the distance.",
        height=262,
    )
    tokens = flow.box(190, 4, "tokens X", "(n, d)", width=130)
    query = flow.box(158, 78, "Q", "", "query", width=56)
    key = flow.box(227, 78, "K", "", "key", width=56)
    value = flow.box(296, 78, "V", "", "value", width=40)
    flow.box(158, 142, "scores", "(n, n)", width=125)
    flow.box(190, 216, "A V", "(n, d_v)", "value", width=146)
    for view, role in ((query, "query"), (key, "key"), (value, "value")):
        flow.arrow(tokens, view, role=role)
    flow.arrow(query, (200, 137), role="query")
    flow.arrow(key, (242, 137), role="key")
    flow.arrow((220, 185), (220, 211))
    flow.arrow((316, 107), (316, 211), role="value")
    for y, name, what, to in (
        (25, "added", "X + PE", 185),
        (92, "turned", "Q and K by R(t)", 153),
        (163, "lowered", "by slope · distance", 153),
    ):
        flow.text(4, y - 3, name, anchor="start", bold=True)
        flow.text(4, y + 14, what, "quiet", size=12, anchor="start")
        flow.arrow((116 if to < 180 else 64, y - 2), (to, y - 2))
    flow.text(228, 206, "softmax", "quiet", size=12, anchor="start")
    return flow


def clocks() -> Diagram:
    """Draw three hands at the positions 0 to 4: the fast one tells neighbours apart."""
    rates = (1, 1 / 10, 1 / 100)
    picture = Diagram(
        "A clock with three hands",
        "Five columns, for positions 0 to 4, and three rows, for hands of 1, one tenth and one "
        "hundredth of a radian a position. The first hand has gone more than half round at "
        "position 4, the second is a little off, the third hardly moves.",
        height=262,
    )
    picture.text(196, 16, "position t", bold=True)
    for t in range(5):
        picture.text(92 + 54 * t, 38, str(t))
    for row, (rate, name) in enumerate(zip(rates, ("1", "0.1", "0.01"), strict=True)):
        y = 76 + 70 * row
        picture.text(4, y + 5, f"ω = {name}", anchor="start")
        for t in range(5):
            x, angle = 92 + 54 * t, t * rate
            picture.path(f"M{x - 22},{y}a22,22 0 1 0 44,0a22,22 0 1 0 -44,0", "quiet", thick=1)
            tip = x + 20 * math.sin(angle), y - 20 * math.cos(angle)
            picture.path(f"M{x},{y}L{tip[0]:.1f},{tip[1]:.1f}", thick=3)
    return picture


def turned() -> Drawings:
    """Draw a query and a key at two pairs of positions: at one distance the angle stays."""
    return beside(turned_pair("a", 2, 0), turned_pair("b", 5, 3))


def turned_pair(letter: str, m: int, n: int, rate: float = 0.5, width: int = 210) -> Diagram:
    """Return the query at position m and the key at n, turned by ``rate`` radians a position."""
    picture = Diagram(
        f"Query at {m}, key at {n}",
        f"A circle with two arrows: the query, turned by {m} steps, and the key, turned by {n} "
        f"steps. Dashed lines show both unturned. The angle between the arrows is that of every "
        f"pair whose distance is {m - n}.",
        width=width,
        height=206,
    )
    x, y, long = width / 2, 118, 66
    picture.text(x, 16, f"{letter}: query at {m}, key at {n}", bold=True)
    picture.path(f"M{x - long},{y}a{long},{long} 0 1 0 {2 * long},0a{long},{long} 0 1 0 "
                 f"{-2 * long},0", "quiet", thick=1)  # fmt: skip
    ends = []
    for angle, at, role in ((0.9, m, "query"), (0.3, n, "key")):
        for turn, dashed in ((0, True), (at * rate, False)):
            far = long * math.cos(angle + turn), long * math.sin(angle + turn)
            if dashed:
                picture.path(f"M{x},{y}l{far[0]:.1f},{-far[1]:.1f}", role, thick=1, dashed=True)
            else:
                picture.arrow((x, y), (x + far[0], y - far[1]), role=role, thick=3)
                name = x + 1.2 * far[0], y - 1.2 * far[1] + 5
                picture.text(*name, role[0], role, bold=True)
                ends.append((x + 0.42 * far[0], y - 0.42 * far[1]))
    (a, b), (c, d) = ends[1], ends[0]
    picture.path(f"M{a:.1f},{b:.1f}A28,28 0 0 0 {c:.1f},{d:.1f}", thick=2)
    return picture


def add_or_beside() -> Drawings:
    """Draw adding, then one matrix; side by side, then a matrix with two blocks."""
    cell = (22, 22)
    word, place = [[1, 0, 2, 0]], [[0, 1, 0, 1]]
    added = Diagram(
        "Added",
        "The word x and the position p, four features each, are added and then multiplied by one "
        "matrix W: x W plus p W.",
        width=300,
        height=158,
    )
    added.text(150, 16, "added: the same W for both", bold=True)
    added.text(12, 53, "x", bold=True)
    added.matrix(28, 36, word, cell=cell, form="")
    added.text(12, 91, "+ p", bold=True, anchor="middle")
    added.matrix(28, 74, place, cell=cell, form="", lit=0)
    total = added.box(136, 52, "x + p", "(1, d)", width=66)
    out = added.box(234, 52, "· W", "(d, d_k)", width=62)
    added.arrow((118, 66), (131, 70))
    added.arrow((118, 85), (131, 80))
    added.arrow(total, out)
    added.text(150, 140, "x W + p W", size=14)

    joined = Diagram(
        "Side by side",
        "The word x and the position p stand side by side in one row of eight features. The matrix "
        "has a block W x above a block W p, so the product is x W x plus p W p.",
        width=330,
        height=158,
    )
    joined.text(165, 16, "side by side: a block for each", bold=True)
    joined.text(50, 55, "x", bold=True)
    joined.text(138, 55, "p", bold=True)
    joined.matrix(6, 62, word, cell=cell, form="")
    joined.matrix(94, 62, place, cell=cell, form="", lit=0)
    joined.arrow((186, 73), (214, 73))
    joined.box(222, 32, "W_x", "(d, d_k)", width=100)
    joined.box(222, 76, "W_p", "(d, d_k)", width=100)
    joined.text(165, 140, "x W_x + p W_p", size=14)
    return beside(added, joined)
