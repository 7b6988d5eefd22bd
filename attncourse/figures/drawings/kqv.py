"""Chapter 5's drawings: what flows through one head, and who is found by whom."""

from attncourse.figures.diagram import Diagram, Drawings, beside


def data_flow() -> Drawings:
    """One head: three views of the tokens, scores, weights, blend."""
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
        "Queries and keys meet: each score is the dot product of a query with a key, divided by "
        "the root of d k. A softmax along each row makes weights. The weights mix the values into "
        "the output U, of shape n by d v.",
        height=220,
    )
    q = blend.box(4, 6, "Q", "(n, d_k)", "query", width=92)
    k = blend.box(124, 6, "K", "(n, d_k)", "key", width=92)
    v = blend.box(244, 6, "V", "(n, d_v)", "value", width=92)
    scores = blend.box(38, 84, "scores", "Q K^T / √d_k", width=144)
    weights = blend.box(38, 156, "weights A", "softmax, (n, n)", width=144)
    output = blend.box(230, 156, "U = A V", "(n, d_v)", "value", width=106)
    blend.arrow(q, (86, 80), role="query")
    blend.arrow(k, (140, 80), role="key")
    blend.arrow(scores, weights)
    blend.arrow(weights, output)
    blend.arrow(v, (290, 151), role="value")
    return beside(views, blend)


def one_way() -> Drawings:
    """With one view a score holds in both directions; with two it need not."""
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
