"""Chapter 5's drawings: what flows through one head, and who is found by whom."""

from math import cos, pi, sin

import numpy as np

from attncourse.figures.attention_view import AttentionView, attention_view
from attncourse.figures.diagram import Diagram, Drawings, beside
from attncourse.lookup import softmax

SENTENCE = ["I", "like", "sushi", "because", "it", "makes", "me", "happy"]
# A person, a thing, a word that refers to a thing; 3 is none of these.
KIND = {"I": 0, "me": 0, "sushi": 1, "it": 2}
# A name, a digit, and the name of the token that is pointed at.
RING = ["c5→a", "a1→h", "h7→e", "e0→b", "b9→g", "g2→d", "d4→f", "f3→c"]


def it_and_sushi() -> AttentionView:
    """Return the sentence to touch, opened on *it*: one vector a word, and query and key."""
    X = np.eye(4)[[KIND.get(word, 3) for word in SENTENCE]]  # (8, 4)
    asks, answers = X[:, 2:3] * 4, X[:, 1:2]  # queries and keys, (8, 1)
    maps = [softmax(X @ X.T), softmax(asks @ answers.T)]
    return attention_view(
        np.stack(maps),
        SENTENCE,
        title="Where does “it” look?",
        heads=["one vector", "query and key"],
        start=("one vector", "it"),
        arcs=True,
        compact=True,
    )


def data_flow() -> Drawings:
    """Draw one head: three views of the tokens, scores, weights, blend."""
    views = Diagram(
        "Three views",
        "The tokens X, of shape n by d model, go through three matrices. W q makes the queries Q, "
        "n by d k; W k the keys K, n by d k; W v the values V, n by d v.",
        height=220,
    )
    x = views.box(112, 6, "tokens X", "(n, d_{model})", width=116)
    matrices = []
    for left, letter, role in ((4, "q", "query"), (124, "k", "key"), (244, "v", "value")):
        matrix = views.box(left + 8, 84, f"· W_{letter}", role=role, width=76)
        views.arrow(x, matrix, role=role)
        matrices.append((left, letter, role, matrix))
    for (left, _, role, matrix), (name, shape) in zip(
        matrices, (("Q", "(n, d_k)"), ("K", "(n, d_k)"), ("V", "(n, d_v)")), strict=True
    ):
        view = views.box(left, 142, name, shape, role, width=92)
        views.arrow(matrix, view, role=role)
        views.text(left + 46, 208, {"Q": "looks for", "K": "is found by", "V": "hands over"}[name])

    blend = Diagram(
        "Scores, weights, blend",
        "Queries and keys meet: each score in S is the dot product of a query with a key. The "
        "scores are divided by the root of d k, and a softmax along each row makes weights. The "
        "weights mix the values into the output U, of shape n by d v.",
        height=220,
    )
    q = blend.box(4, 6, "Q", "(n, d_k)", "query", width=92)
    k = blend.box(124, 6, "K", "(n, d_k)", "key", width=92)
    v = blend.box(244, 6, "V", "(n, d_v)", "value", width=92)
    scores = blend.box(38, 84, "scores S", "Q K^T, (n, n)", width=144)
    weights = blend.box(38, 156, "weights A", "softmax(S / √d_k)", width=144)
    output = blend.box(230, 156, "U = A V", "(n, d_v)", "value", width=106)
    blend.arrow(q, (86, 80), role="query")
    blend.arrow(k, (140, 80), role="key")
    blend.arrow(scores, weights)
    blend.arrow(weights, output)
    blend.arrow(v, (290, 151), role="value")
    return beside(views, blend)


def one_way() -> Drawings:
    """Draw that a score of one view holds in both directions; of two views it need not."""
    pictures = []
    for title, symmetric in (("one view", True), ("query and key", False)):
        both = "the same score in both directions"
        picture = Diagram(
            title,
            f"The words it and sushi with {both}."
            if symmetric
            else "An arrow leads from it to sushi, because the query of it fits the key of sushi. "
            "No arrow leads back.",
            width=250,
            height=110,
        )
        picture.text(125, 16, title, bold=True)
        it = picture.box(6, 46, "it", width=70)
        sushi = picture.box(174, 46, "sushi", width=70)
        if symmetric:
            picture.arrow(it, (170, 54), role="quiet")
            picture.arrow(sushi, (80, 66), role="quiet")
            picture.text(125, 100, both, "quiet", size=12)
        else:
            picture.arrow(it, sushi, role="query", thick=3)
            picture.text(125, 50, "q · k", "query")
            picture.text(125, 100, "the score of it with sushi only", "quiet", size=12)
        pictures.append(picture)
    return beside(*pictures)


def ring() -> Diagram:
    """Draw eight tokens, each pointing at the next one; one asks."""
    says = (
        "Eight tokens stand in a circle: "
        + ", ".join(token.replace("→", " points at ") for token in RING)
        + ". An arrow leads from each to the token that it points at. c5 asks, and a1 is the "
        "answer; f3, which points at c5, is the other neighbour."
    )
    picture = Diagram("A ring", says, height=276)
    places = []
    for i, token in enumerate(RING):
        turn = 2 * pi * i / len(RING) - pi / 2
        x, y = 170 + 118 * cos(turn), 140 + 112 * sin(turn)
        role = {0: "query", 1: "value"}.get(i, "ink")
        places.append(picture.box(round(x - 32), round(y - 14), token, role=role, width=64))
    for i, place in enumerate(places):
        picture.arrow(place, places[(i + 1) % len(places)], role="query" if i == 0 else "quiet")
    picture.text(170, 128, "c5 asks: which digit", size=12)
    picture.text(170, 146, "has the one I point at?", size=12)
    picture.text(170, 164, "Answer: 1", "value", bold=True)
    return picture
