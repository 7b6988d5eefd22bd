"""Chapter 6's drawings: three circuits that score, and what passes from a reader to a writer."""

from itertools import pairwise

from attncourse.figures.diagram import Diagram, Drawings, beside

READ, WRITTEN = "3 mar", "03-03"
KEY_WEIGHTS = 0.04, 0.06, 0.76, 0.1, 0.04  # the month's second digit looks at *m* most of all


def circuits() -> Drawings:
    """Draw the dot product, the bilinear and the additive score, each with a pair in numbers."""
    return beside(dot(), bilinear(), additive())


def dot() -> Diagram:
    """Return the drawing of the dot product of one query and one key."""
    picture = Diagram(
        "Dot product",
        "The query 0, 1 stands above the key 1, 2. Feature by feature they are multiplied, which "
        "gives 0 and 2, and the products are added: the score is 2.",
        width=150,
        height=300,
    )
    picture.text(100, 16, "dot product", bold=True)
    picture.matrix(66, 48, [0, 1], "query", ["query"])
    key = picture.matrix(66, 110, [1, 2], "key", ["key"])
    products = picture.matrix(66, 172, [0, 2], rows=["products"])
    for column in (83, 117):
        picture.text(column, 96, "×")
        picture.arrow((column, key.y + 27), (column, products.y - 5))
    picture.arrow(products, picture.box(62, 264, "score 2", width=76), "add")
    return picture


def bilinear() -> Diagram:
    """Return the drawing of a score with a matrix between query and key."""
    picture = Diagram(
        "Bilinear score",
        "A matrix W of shape 2 by 3 stands between the query 0, 1, a column at its left, and the "
        "key 0, 1, 2, a row above it. Every entry of W is multiplied by the feature of the query "
        "in its row and the feature of the key in its column. Only the entry of the second row "
        "and the third column is not 0; it is 1, and the score is 1 times 1 times 2, 2.",
        width=178,
        height=300,
    )
    picture.text(121, 16, "bilinear", bold=True)
    picture.text(121, 40, "key", "key")
    picture.matrix(70, 48, [0, 1, 2], "key")
    picture.text(23, 102, "query", "query")
    picture.matrix(6, 110, [[0], [1]], "query")
    matrix = picture.matrix(70, 110, [[0, 0, 0], [0, 0, 1]], lit=1)
    for row in (0, 1):
        picture.text(55, matrix.y + 17 + 24 * row, "×")
    for column in (0, 1, 2):
        picture.text(matrix.x + 17 + 34 * column, 96, "×")
    picture.text(121, 178, "W (d_q, d_k)", size=12)
    picture.arrow((121, 190), picture.box(83, 264, "score 2", width=76))
    picture.text(111, 218, "add up all", size=12, anchor="end")
    picture.text(111, 236, "q_a W_{ab} k_b", size=12, anchor="end")
    return picture


def additive() -> Diagram:
    """Return the drawing of a score by a small network."""
    picture = Diagram(
        "Additive score",
        "The query 0, 1 goes through a matrix W q and stays 0, 1. The key 1, 2 goes through a "
        "matrix W k and becomes 1, minus 2. Their sum is 1, minus 1; the tanh of it 0.76, minus "
        "0.76. A last layer w, here two ones, makes the score 0 of it.",
        width=216,
        height=300,
    )
    picture.text(108, 16, "additive", bold=True)
    picture.text(38, 40, "query", "query")
    picture.text(178, 40, "key", "key")
    query = picture.matrix(4, 48, [0, 1], "query")
    key = picture.matrix(144, 48, [1, 2], "key")
    left = picture.matrix(4, 110, [0, 1], "query")
    right = picture.matrix(144, 110, [1, -2], "key")
    picture.arrow(query, left, "W_q", "query")
    picture.arrow(key, right, "W_k", "key")
    total = picture.matrix(74, 146, [1, -1])
    picture.text(108, 140, "+", bold=True)
    picture.arrow((38, 137), (70, 158), role="query")
    picture.arrow((178, 137), (146, 158), role="key")
    hidden = picture.matrix(62, 204, [0.76, -0.76], cell=(46, 24))
    picture.arrow(total, hidden)
    picture.text(116, 191, "tanh", size=12, anchor="start")
    picture.arrow(hidden, picture.box(70, 264, "score 0", width=76))
    picture.text(116, 249, "w", size=12, anchor="start")
    return picture


def bottleneck() -> Drawings:
    """Draw an encoder and a decoder, joined by one vector, and joined by attention."""
    return beside(translator(False), translator(True))


def translator(attention: bool) -> Diagram:
    """Return the drawing of a translator, with attention or without."""
    more = (
        "Before it writes the second character, the decoder compares its state, the query, with "
        "all states of the encoder, the keys. Lines lead from all of them to a blend, the "
        "thickest from the state at m, and the blend goes into what is written."
        if attention
        else "Only the last state of the encoder is handed to the decoder, by one arrow."
    )
    name = "with attention" if attention else "without attention"
    picture = Diagram(
        name.capitalize(),
        f"{name.capitalize()}: an encoder reads the characters of 3 mar, one state for each. A "
        f"decoder writes 03-03. {more}",
        height=262,
    )
    picture.text(170, 16, name, bold=True)
    writers, readers = [], []
    for at, (to_read, to_write) in enumerate(zip(READ, WRITTEN, strict=True)):
        left = 12 + 66 * at
        asks = attention and at == 1
        writers.append(picture.box(left, 54, f"s_{at}", role="query" if asks else "ink", width=50))
        readers.append(
            picture.box(left, 200, f"h_{at}", role="key" if attention else "ink", width=50)
        )
        picture.text(left + 25, 44, to_write, bold=True)
        picture.text(left + 25, 248, to_read.replace(" ", "␣"), bold=True)
    for row in (writers, readers):
        for state, following in pairwise(row):
            picture.arrow(state, following, role="quiet")
    if attention:
        fan(picture, readers, writers[1])
    else:
        picture.arrow(readers[-1], writers[0], thick=5, via=((301, 142), (37, 142)))
        picture.text(170, 130, "one vector for everything")
    return picture


def fan(picture: Diagram, readers, writer) -> None:
    """Draw Lines from every state that was read to a blend, as thick as their weights, and on.

    The state that is compared lies on the way: the blend passes it by, to what is written.
    """
    blend = picture.box(70, 118, "blend", role="value", width=66)
    for reader, weight in zip(readers, KEY_WEIGHTS, strict=True):
        x, y = reader.middle[0], reader.y - 3
        picture.path(f"M{x:g},{y:g}L103,149", "value", thick=1 + 9 * weight)
    picture.arrow(writer, blend, role="query")
    picture.arrow((136, 132), (112, 40), role="value", via=((136, 40),))
    picture.text(148, 122, "weights: softmax of", size=12, anchor="start")
    picture.text(148, 139, "score(s_1, h_j)", size=12, anchor="start")
