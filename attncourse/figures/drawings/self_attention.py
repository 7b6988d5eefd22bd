"""Chapter 4's drawings: what flows where, scores beside weights, shuffled weights."""

import numpy as np

from attncourse.figures.diagram import Diagram, Drawings, beside
from attncourse.lookup import softmax

X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
SENTENCE_TOKENS = ("I", "am", "hungry")


def data_flow() -> Drawings:
    """Draw the tokens as queries, keys and values, and the same with numbers."""
    flow = Diagram(
        "What flows where in self-attention",
        "The tokens X, of shape n by d, go three ways. As queries and as keys they make the "
        "scores S, X times X transposed, n by n. A softmax of each row of S makes the weights A. "
        "As values the tokens are mixed by A, which makes U, n by d.",
        height=222,
    )
    flow.box(112, 6, "tokens X", "(n, d)", width=116)
    scores = flow.box(30, 84, "S = X X^T", "scores (n, n)", width=150)
    weights = flow.box(30, 160, "A = softmax(S)", "each row, (n, n)", width=150)
    output = flow.box(230, 160, "U = A X", "(n, d)", "value", width=106)
    flow.arrow((128, 51), (84, 80), role="query")
    flow.arrow((160, 51), (134, 80), role="key")
    flow.arrow((212, 51), (283, 155), role="value")
    flow.arrow(scores, weights)
    flow.arrow(weights, output)
    flow.text(92, 68, "as queries", "query", anchor="end")
    flow.text(156, 72, "as keys", "key", anchor="start")
    flow.text(258, 100, "as values", "value", anchor="start")

    S, A = X @ X.T, softmax(X @ X.T)
    numbers = Diagram(
        "Self-attention of three tokens",
        "The tokens I, am and hungry are 1, 0; 0, 1; and 2, 1. The scores of I are 1, 0 and 2, and "
        f"the matrix of scores is symmetric. The weights of I are {spoken(A[0])}, its output is "
        f"{spoken((A @ X)[0])}. The weights of hungry are {spoken(A[2])}.",
        height=222,
    )
    numbers.text(88, 16, "X (3, 2)", bold=True)
    tokens = numbers.matrix(60, 26, X, rows=SENTENCE_TOKENS, cell=(28, 24), lit=0)
    numbers.text(258, 16, "S = X X^T", bold=True)
    meet = numbers.matrix(204, 26, S, cell=(36, 24), lit=0)
    numbers.arrow(tokens, meet)
    numbers.text(114, 132, "A = softmax(S)", bold=True)
    shares = numbers.matrix(
        60, 142, A, rows=SENTENCE_TOKENS, cell=(39, 24), lit=0, shade=True, form=".2f"
    )
    numbers.arrow(meet, (172, 136))
    numbers.text(292, 132, "U = A X", "value", bold=True)
    out = numbers.matrix(248, 142, A @ X, "value", cell=(44, 24), lit=0, form=".2f")
    numbers.arrow(shares, out)
    numbers.text(211, 168, "· X", "value")
    return beside(flow, numbers)


def scores_and_weights(X: np.ndarray, tokens: list[str]) -> Drawings:
    """Draw the scores ``X Xᵀ`` beside the weights, ``(n, n)`` both, for tokens ``X`` ``(n, d)``."""
    S, A = X @ X.T, softmax(X @ X.T)
    left = Diagram(
        "Scores S",
        f"The scores of {', '.join(tokens)}: a matrix that is equal to its mirror image across "
        f"the diagonal. The first token’s are {spoken(S[0])}.",
        width=300,
        height=172,
    )
    right = Diagram(
        "Weights A",
        "The weights, darker for more, of which each row sums to 1. They are not symmetric: the "
        f"first token’s are {spoken(A[0])}, the last token’s {spoken(A[-1])}.",
        width=300,
        height=172,
    )
    for drawing, numbers, title, form in (
        (left, S, "scores S", ".1f"),
        (right, A, "weights A", ".2f"),
    ):
        drawing.text(30, 16, title, anchor="start", bold=True)
        drawing.matrix(
            60, 42, numbers, rows=tokens, columns=tokens, cell=(47, 25), form=form,
            shade=drawing is right,
        )  # fmt: skip
    return beside(left, right)


def shuffled() -> Drawings:
    """Draw the weights of three tokens, with their rows in another order, then their columns."""
    order = [2, 0, 1]
    A, moved = softmax(X @ X.T), [SENTENCE_TOKENS[i] for i in order]
    steps = (
        ("A", "The weights of I, am, hungry.", A, SENTENCE_TOKENS, SENTENCE_TOKENS),
        ("P A: rows moved", "The rows in the order hungry, I, am.",
         A[order], moved, SENTENCE_TOKENS),
        ("P A P^T: columns too", "Rows and columns in the order hungry, I, am. The row of I holds "
         "the same numbers as before, in the new order.", A[order][:, order], moved, moved),
    )  # fmt: skip
    drawings = []
    for title, says, numbers, rows, columns in steps:
        drawing = Diagram(title.replace("^T", "ᵀ"), says, width=206, height=128)
        drawing.text(126, 15, title, bold=True)
        drawing.matrix(
            60, 46, numbers, rows=rows, columns=columns, cell=(46, 25), lit=rows.index("I"),
            shade=True, form=".2f",
        )  # fmt: skip
        drawings.append(drawing)
    return beside(*drawings)


def spoken(numbers: np.ndarray) -> str:
    """Return numbers as an alternative text says them, with *minus* for the sign."""
    return ", ".join(f"{number:.2f}".replace("-", "minus ") for number in numbers)
