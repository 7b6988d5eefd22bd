"""Chapter 10's drawings: a mask on the scores, and what flows where it is obeyed."""

import numpy as np

from attncourse.figures.diagram import Diagram, Drawings, beside

SENTENCE_WORDS = ("I", "am", "hungry")
GUESSES = ("am", "hungry", ".")
UNMASKED_SHARES = np.array(
    [[1.0, 3.0, 4.0], [2.0, 2.0, 1.0], [1.0, 1.0, 2.0]]
)  # e to the power of a score
HIDDEN_ENTRIES = ~np.tri(3, dtype=bool)


def weights() -> np.ndarray:
    """Return the causal weights of these scores, ``(3, 3)``."""
    visible_shares = np.where(HIDDEN_ENTRIES, 0, UNMASKED_SHARES)
    return visible_shares / visible_shares.sum(axis=1, keepdims=True)


def causal() -> Drawings:
    """Draw the mask on the scores and the weights that remain; then who hears from whom."""
    table = Diagram(
        "A mask on the scores",
        "Three by three scores S of I am hungry; the three cells above the diagonal, where a word "
        "would see a later one, are hatched. The softmax is taken over what is left in each row. "
        "The weights of I are 1; of am 0.5 and 0.5; of hungry 0.25, 0.25 and 0.5. Where the scores "
        "were hatched the weights are 0.",
        height=220,
    )
    table.text(122, 18, "scores S, masked", bold=True)
    scores = table.matrix(
        56,
        52,
        np.log(UNMASKED_SHARES),
        rows=SENTENCE_WORDS,
        columns=SENTENCE_WORDS,
        masked=HIDDEN_ENTRIES,
        cell=(44, 34),
        form=".2f",
    )
    table.text(278, 18, "A = softmax(S)", bold=True)
    weights_box = table.matrix(
        218, 52, weights(), masked=HIDDEN_ENTRIES, cell=(40, 34), shade=True, form=".2f"
    )
    table.arrow(scores, weights_box, thick=2)
    table.hatch(60, 180, 24, 18)
    table.text(92, 194, "not allowed: no part in the softmax", "quiet", size=12, anchor="start")

    flow = Diagram(
        "What flows",
        "The words I, am and hungry below, and above them what each position makes: a guess of the "
        "next word, am, hungry and a full stop. Arrows lead from each word to its own position and "
        "to later ones. A dashed, crossed arrow from hungry back to the position of am is the "
        "leak: there the answer stands written.",
        height=220,
    )
    below = [flow.box(14 + 112 * j, 162, word, role="value", width=88) for j, word in
             enumerate(SENTENCE_WORDS)]  # fmt: skip
    above = [flow.box(14 + 112 * i, 50, f"row {i}", width=88) for i in range(3)]
    for i, guess in enumerate(GUESSES):
        flow.text(58 + 112 * i, 20, f"guess: {guess}", "quiet")
        flow.arrow((58 + 112 * i, 46), (58 + 112 * i, 26), role="quiet")
        for j in range(i + 1):
            flow.arrow(below[j], above[i], role="value", thick=1 + 3 * weights()[i, j])
    flow.arrow((266, 158), (190, 84), role="key", dashed=True)
    x, y = 226, 119
    flow.path(f"M{x - 8},{y - 8}l16,16m0,-16l-16,16", "key", thick=3)
    flow.text(170, 212, "the leak: row 1 would see what it is to guess", "key", size=12)
    return beside(table, flow)
