"""Chapter 8's drawings: arrows between two sequences, the transformer's three uses, pooling."""

import numpy as np

from attncourse.figures.diagram import Diagram, Drawings, beside
from attncourse.figures.moving import Moving, other_sentence

QUERY_QUESTIONS = ("who?", "did what?")
ANSWER_WORDS = ("The", "man", "walked", "the", "dog")
QUERIES = np.array([[2.0, 0.0], [0.0, 3.0]])  # being, action, as worked out on the page
KEYS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 0.0], [1.0, 0.0]])
WORD_VALUES = np.array(
    [[0.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
)  # alive, human, deed
SOURCE, TARGET = 5, 4  # tokens, in the outline of the transformer


def weights() -> np.ndarray:
    """Return the page's map of two questions to five words, ``(2, 5)``."""
    exponentials = np.exp(QUERIES @ KEYS.T / np.sqrt(2))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def ask_the_sentence() -> Moving:
    """Return the page's two questions to the five words, one that asks nothing, and any other."""
    queries = np.vstack([QUERIES, [0.0, 0.0]])
    features, parts = ("being", "action"), ("alive", "human", "deed")
    return other_sentence(
        queries, KEYS, WORD_VALUES, (*QUERY_QUESTIONS, "nothing"), ANSWER_WORDS, features, parts
    )


def two_sequences() -> Drawings:
    """Draw queries from one sequence, keys and values from another; lines as thick as weights."""
    flow = Diagram(
        "Who asks, who is asked",
        "The questions X, m by d x, go through W q and become the queries Q, m by d k. The words "
        "Y, n by d y, go through W k and W v and become the keys K, n by d k, and the values V, n "
        "by d v.",
        height=222,
    )
    x = flow.box(4, 6, "questions X", "(m, d_x)", "query", width=104)
    y = flow.box(172, 6, "words Y", "(n, d_y)", width=116)
    columns = (
        (4, "q", "query", x, "Q", "(m, d_k)", "asks"),
        (124, "k", "key", y, "K", "(n, d_k)", "is found by"),
        (244, "v", "value", y, "V", "(n, d_v)", "hands over"),
    )
    for left, letter, role, origin, name, shape, does in columns:
        matrix = flow.box(left + 8, 84, f"· W_{letter}", role=role, width=76)
        view = flow.box(left, 142, name, shape, role, width=92)
        flow.arrow(origin, matrix, role=role)
        flow.arrow(matrix, view, role=role)
        flow.text(left + 46, 208, does)

    across = Diagram(
        "Two questions to five words",
        "The questions who? and did what? stand above the words The man walked the dog. From each "
        "question a line leads to each word, as thick as its weight: from who? a thick one to man, "
        "0.70, and a thinner one to dog, 0.17; from did what? a thick one to walked, 0.95. No line "
        "begins at a word.",
        height=222,
    )
    asking = [
        across.box(x, 30, q, role="query", width=96)
        for x, q in zip((44, 200), QUERY_QUESTIONS, strict=True)
    ]
    key_boxes = [
        across.box(3 + 68 * j, 150, w, role="key", width=62) for j, w in enumerate(ANSWER_WORDS)
    ]
    across.text(170, 16, "who asks: m = 2", size=12)
    across.text(170, 216, "who is asked: n = 5; weights (2, 5)", size=12)
    for question, row in zip(asking, weights(), strict=True):
        for word, weight in zip(key_boxes, row, strict=True):
            (x0, _), (x1, _) = question.middle, word.middle
            across.path(f"M{x0:g},61L{x1:g},147", "query", thick=0.6 + 9 * weight)
            if weight > 0.1:
                across.text(x1, 194, f"{weight:.2f}", "query", size=12)
    return beside(flow, across)


def three_uses() -> Drawings:
    """Draw the first transformer in outline, and beside it the shapes of its three maps."""
    outline = Diagram(
        "Three uses of attention",
        "Left the encoder: the source, n by d, goes into encoder self-attention, 1, and becomes "
        "the memory, n by d. Right the decoder: the target so far, m by d, goes into masked "
        "self-attention, 2. What comes out asks, in 3, cross-attention: its queries come from the "
        "decoder, its keys and values from the memory. The result, m by d, predicts next tokens.",
        height=318,
    )
    outline.text(76, 16, "encoder", bold=True)
    outline.text(262, 16, "decoder", bold=True)
    source = outline.box(16, 268, "source", "(n, d)", width=120)
    encoder_self = outline.box(1, 178, "1  self-attention", "n ask n", width=150)
    memory = outline.box(16, 92, "memory", "(n, d)", width=120)
    target = outline.box(202, 268, "target so far", "(m, d)", width=120)
    decoder_self = outline.box(187, 178, "2  self-attention", "m ask m, masked", width=150)
    three = outline.box(187, 92, "3  cross-attention", "m ask n", width=152)
    result = outline.box(202, 24, "next tokens", width=120)
    for asks, where in ((source, encoder_self), (target, decoder_self)):
        x = asks.middle[0]
        for shift, role in ((-24, "query"), (0, "key"), (24, "value")):
            outline.arrow((x + shift, asks.y - 3), (x + shift, where.y + 47), role=role)
    outline.arrow(encoder_self, memory)
    outline.arrow(decoder_self, three, "asks", role="query")
    outline.arrow((139, 104), (182, 104), role="key")
    outline.arrow((139, 122), (182, 122), role="value")
    outline.arrow(three, result)

    maps = Diagram(
        "Their maps",
        "Three grids of weights. 1: five by five, source to source. 2: four by four, target to "
        "target, hatched above the diagonal, where a token would see a later one. 3: four by "
        "five, a row for each target token and a column for each source token, nothing hatched.",
        height=318,
    )
    later = np.triu(np.ones((TARGET, TARGET), dtype=bool), 1)
    grids = (
        (20, 36, "1  (n, n)", "source asks source", SOURCE, SOURCE, None),
        (196, 36, "2  (m, m)", "target asks target", TARGET, TARGET, later),
        (20, 206, "3  (m, n)", "target asks source", TARGET, SOURCE, None),
    )
    for x, y, name, says, m, n, masked in grids:
        maps.text(x, y - 10, name, anchor="start", bold=True)
        maps.matrix(x, y, np.zeros((m, n)), cell=(20, 20), form="", masked=masked)
        maps.text(x, y + 20 * m + 18, says, anchor="start", size=12)
    maps.text(196, 226, "row: who asks", anchor="start", size=12)
    maps.text(196, 246, "column: who is asked", anchor="start", size=12)
    maps.hatch(196, 260, 20, 20)
    maps.text(224, 275, "later tokens", anchor="start", size=12)
    return beside(outline, maps)


def pooling() -> Drawings:
    """Draw how a set becomes one vector: by its mean, and by a learned question."""
    return beside(pooled(False), pooled(True))


def pooled(by_query: bool) -> Diagram:
    """Return the drawing of pooling: by a learned query, or by the mean."""
    name = "attention pooling" if by_query else "mean"
    more = (
        "A learned query points at the elements; the line from the one that carries the mark, a "
        "star, is thick, and the others are thin."
        if by_query
        else "All lines are equally thick, 1/7 each; one element carries a mark, a star."
    )
    picture = Diagram(
        name.capitalize(),
        f"Seven elements of a set, and lines from each to one vector, as thick as the weights. "
        f"{more}",
        width=320,
        height=206,
    )
    picture.text(160, 16, name, bold=True)
    shares = np.full(7, 0.02 if by_query else 1 / 7)
    shares[4] = 1 - shares.sum() + shares[4] if by_query else shares[4]
    for j, share in enumerate(shares):
        x = 22 + 46 * j
        element = picture.box(x - 17, 84, "★" if j == 4 else "", role="key", width=34, height=30)
        picture.path(f"M{x:g},{element.y + 33:g}L160,159", "value", thick=0.6 + 8 * share)
    if by_query:
        query = picture.box(78, 28, "query, a parameter", role="query", width=164)
        picture.arrow(query, (206, 80), role="query")
    picture.box(108, 160, "one vector", "(1, d)", "value", width=104)
    return picture
