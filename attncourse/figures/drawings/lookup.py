"""Chapter 3's drawing: what flows through a soft lookup."""

from attncourse.figures.diagram import Diagram

KEY_SHARES = (0.70, 0.15, 0.10, 0.03, 0.02)
PRICES = (31, 24, 18, 12, 45)


def soft() -> Diagram:
    """Draw a query compared with every key; shares of the values make the answer."""
    drawing = Diagram(
        "A soft lookup",
        "The new car is the query. It is compared with the keys of five known cars, which gives "
        "the weights 0.70, 0.15, 0.10, 0.03 and 0.02. The values, the prices 31, 24, 18, 12 and "
        "45, are blended by these weights to 28.4 thousand.",
        height=232,
    )
    drawing.box(136, 2, "new car", role="query", width=84)
    drawing.text(4, 21, "query", "query", anchor="start", bold=True)
    drawing.text(4, 77, "keys", "key", anchor="start", bold=True)
    drawing.text(4, 121, "weights", anchor="start", bold=True)
    drawing.text(4, 165, "values", "value", anchor="start", bold=True)
    drawing.box(136, 200, "28.4", role="value", width=84)
    drawing.text(4, 219, "answer", anchor="start", bold=True)
    for j, (share, price) in enumerate(zip(KEY_SHARES, PRICES, strict=True)):
        left, near = 66 + j * 55, 178 + (j - 2) * 14
        middle = left + 25.5
        drawing.box(left, 58, f"car {j}", role="key", width=51)
        drawing.arrow((near, 33), (middle, 55), role="query", thick=1)
        drawing.matrix(left + 3, 103, [[share]], cell=(45, 26), shade=True, form=".2f")
        drawing.box(left, 146, str(price), role="value", width=51)
        drawing.arrow((middle, 177), (near, 197), role="value", thick=0.6 + 4 * share)
    return drawing
