"""Chapter 2's drawings: a matrix product with one row lit."""

import numpy as np

from attncourse.figures.diagram import Diagram

A = np.array([[0.5, 0.0, 0.5], [0.2, 0.6, 0.2], [0.0, 0.25, 0.75]])
X = np.array([[1.0, 0.0], [3.0, 4.0], [-1.0, 8.0]])
TOKEN_NAMES = ("I", "am", "hungry")


def product() -> Diagram:
    """Draw A times X: row *I* of A says how much of each token goes into row *I* of U."""
    drawing = Diagram(
        "One row of A makes one row of U",
        "The matrix A, three by three, times the tokens X, three by two, is U. The first row of A, "
        "0.5, 0, 0.5, is lit. It takes half of the row of I, which is 1, 0, and half of the row of "
        "hungry, which is minus 1, 8, and makes the first row of U, 0, 4.",
        height=158,
    )
    cell = (32, 26)
    drawing.text(116, 16, "A (3, 3)", bold=True)
    drawing.matrix(62, 26, A, rows=TOKEN_NAMES, cell=(36, 26), lit=0, shade=True, form="g")
    drawing.text(180, 66, "·", size=20, bold=True)
    drawing.text(222, 16, "X (3, 2)", bold=True)
    drawing.matrix(190, 26, X, cell=cell)
    drawing.text(262, 66, "=", size=16, bold=True)
    drawing.text(304, 16, "U (3, 2)", bold=True)
    drawing.matrix(272, 26, A @ X, cell=cell, lit=0)
    drawing.text(170, 126, "half of I and half of hungry:", "quiet")
    drawing.text(170, 146, "0.5 · (1, 0) + 0.5 · (−1, 8) = (0, 4)")
    return drawing
