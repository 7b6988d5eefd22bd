"""The start page's playground: a sentence of the reader's own, and who listens to whom in it."""

import re
from html import escape

import numpy as np

from attncourse.figures.moving.controls import choice, controls, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.lookup import softmax

MAX_WORDS = 16  # words of a sentence that are shown
SENTENCE: str = "I like sushi because it makes me happy"
OFFERED = [
    SENTENCE,
    "My cat is small and cute. She likes milk",
    "The woman read a book to the child. They love it",
    "The dog chased the mouse because it was hungry",
]
FEATURES = [
    *("person", "thing", "refers", "someone", "action", "quality", "food", "animal", "place")
]
KNOWN = {
    "person": "i me you we us man woman mother father child friend "
    "people who student teacher",
    "thing": "book house car word sentence question answer ball key letter stone train",
    "thing food": "sushi pizza bread apple soup rice cake cheese coffee tea milk",
    "thing animal": "dog cat bird fish horse mouse cow",
    "thing place": "city school park river garden street kitchen",
    "refers": "it this that which its",
    "someone": "he she him her they them",
    "action": "like likes love loves make makes eat eats ate see sees saw is am are was walked "
    "walk run runs read reads write want wants chased sat sleeps rained rains",
    "quality": "happy sad hungry tired good bad big small old new red cute fluffy tasty",
}  # fmt: skip
ASKED = ["a person", "a thing", "an action", "a quality"]  # columns of W_q and W_k
GIVEN = ["can be eaten", "is alive", "is a place", "something is done"]  # columns of W_v
W_Q = {
    "person": "an action", "refers": "a thing", "someone": "a person", "thing": "a quality",
    "action": "a person", "quality": "a person",
}  # fmt: skip
W_K = {
    "person": "a person", "animal": "a person", "thing": "a thing", "action": "an action",
    "quality": "a quality",
}  # fmt: skip
W_V = {"food": GIVEN[0], "animal": GIVEN[1], "person": GIVEN[1], "someone": GIVEN[1],
       "place": GIVEN[2], "action": GIVEN[3]}  # fmt: skip
STRENGTH = 2.0  # of a feature that a word has, and of a question in W_q


def playground() -> Moving:
    """Return attention on a reader's own sentence, with one, two or three views of each word.

    Words are embedded by nine features that were set by hand for some English words, 2
    where a word has the feature; any other word has a feature of its own, one-hot. One view is
    ``softmax(X Xᵀ) X``; two views have queries ``X W_q`` and keys ``X W_k``, three values ``X W_v``
    as well, with small matrices that stand on the figure. It begins with two views, where *it*
    asks for a thing. The first pronoun of a sentence asks, unless the reader has chosen a word that
    is still there. The reader chooses the temperature, the scale 1/√d, and a mask.
    """
    tokens = SENTENCE.split()
    X, unknown_words = feature_rows(tokens)
    kinds = X[:, : len(FEATURES)]
    Q, K = kinds @ feature_matrix(W_Q, ASKED, STRENGTH), kinds @ feature_matrix(W_K, ASKED)
    weights = softmax(Q @ K.T / np.sqrt(len(ASKED)))
    asks = tokens.index("it")
    return Moving(
        "playground",
        "Who listens to whom?",
        moved()
        + chips(tokens, weights[asks], asks)
        + received(weights[asks] @ X, FEATURES + unknown_words, tokens[asks])
        + '<details class="pg-all"><summary>All weights, and what every word receives</summary>'
        '<div class="pg-scroll" tabindex="0" role="region" aria-label="All weights"></div>'
        f"</details>{behind()}",
        "Where JavaScript runs, the sentence is yours, any word may ask, and temperature, scale, "
        "mask and the number of views can be changed.",
        {
            "features": FEATURES, "words": dictionary(), "most": MAX_WORDS, "strength": STRENGTH,
            "W_q": feature_matrix(W_Q, ASKED, STRENGTH).tolist(),
            "W_k": feature_matrix(W_K, ASKED).tolist(),
            "W_v": feature_matrix(W_V, GIVEN).tolist(), "gives": GIVEN,
            "pronouns": [FEATURES.index("refers"), FEATURES.index("someone")],
        },
        f"“it” asks for a thing and listens most to “sushi” ({weights[asks].max():.2f}).",
    )  # fmt: skip


def dictionary() -> dict[str, list[int]]:
    """Return the numbers of the features that each known word has."""
    return {
        word: [FEATURES.index(kind) for kind in kinds.split()]
        for kinds, words in KNOWN.items()
        for word in words.split()
    }


def feature_rows(tokens: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return the words as rows ``(n, 9 + u)``, and the u unknown words of the last columns."""
    words = [re.sub(r"[\W_]", "", token.lower()) for token in tokens]
    known = dictionary()
    unknown = list(dict.fromkeys(word for word in words if word not in known))
    X = np.zeros((len(words), len(FEATURES) + len(unknown)))
    for row, word in zip(X, words, strict=True):
        row[known.get(word) or [len(FEATURES) + unknown.index(word)]] = STRENGTH
    return X, unknown


def feature_matrix(entries: dict[str, str], columns: list[str], value: float = 1.0) -> np.ndarray:
    """Return the matrix ``(9, columns)`` that has ``value`` where a feature meets its column."""
    W = np.zeros((len(FEATURES), len(columns)))
    for feature, column in entries.items():
        W[FEATURES.index(feature), columns.index(column)] = value
    return W


def moved() -> str:
    """Return the controls of the playground."""
    field = (
        '<label class="pg-field"><span>Sentence</span><input type="text" data-part="sentence" '
        f'dir="auto" value="{escape(SENTENCE)}" autocomplete="off" spellcheck="false"></label>'
    )
    offered = "".join(f"<option>{escape(sentence)}</option>" for sentence in OFFERED)
    take = (
        '<label class="pg-field"><span>or take</span>'
        f'<select data-part="offered">{offered}</select></label>'
    )
    views = ["one: X", "two: Q, K", "three: Q, K, V"]
    scale = '<label><input type="checkbox" data-part="scale" checked> ÷ √d</label>'
    return (
        controls(field, take)
        + controls(choice("views", "Views", views, 1))
        + '<details class="pg-all pg-more"><summary>Mask, scale, temperature</summary>'
        + controls(choice("mask", "Mask", ["none", "causal", "window of 3"], 0), scale)
        + controls(slider_control("temperature", "Temperature", 0.1, 4, 1, 0.1))
        + "</details>"
    )


def chips(tokens: list[str], weights: np.ndarray, asks: int) -> str:
    """Return the sentence, each word as dark as the weight that the asking word gives it."""
    words = "".join(
        f'<span class="pg-chip{" pg-asks" if i == asks else ""}" style="--weight:{weight:.4f}">'
        f"<bdi>{escape(token)}</bdi><b>{weight:.2f}</b></span> "
        for i, (token, weight) in enumerate(zip(tokens, weights, strict=True))
    )
    return f'<div class="pg-words" dir="auto">{words}</div>'


def received(output: np.ndarray, names: list[str], token: str) -> str:
    """Return the largest entries of what the asking word receives, as bars."""
    best = np.argsort(-output, kind="stable")[:4]
    bars = "".join(
        f'<tr><th scope="row">{escape(names[f])}</th><td>{output[f]:.2f}</td>'
        f'<td><i style="width:{output[f] * 5:.2f}em"></i></td></tr>'
        for f in best
        if output[f] > 0.005
    )
    caption = f"<caption>“{escape(token)}” receives</caption>"
    return f'<div class="pg-room"><table class="pg-gets">{caption}{bars}</table></div>'


def behind() -> str:
    """Return the embedding and the matrices, in words."""

    def pairs(entries: dict[str, str]) -> str:
        return "; ".join(f"<i>{feature}</i> → {column}" for feature, column in entries.items())

    kinds = "".join(
        f"<li><b>{kind.replace(' ', ', ')}</b>: {words}</li>" for kind, words in KNOWN.items()
    )
    return (
        f'<details class="pg-behind"><summary>The {len(dictionary())} words that it knows, and the '
        "numbers behind them</summary><p>Nothing here is learned. These words have features that "
        "were set by hand. Each feature "
        f"that a word has is {STRENGTH:g}, and all others are 0:</p>"
        f"<ul>{kinds}</ul><p>Any other word has a feature of its own (one-hot), which the matrices "
        f"do not read. Their entries are 0 but for these. W<sub>q</sub>, {STRENGTH:g} each: "
        f"{pairs(W_Q)}. W<sub>k</sub>, 1 each: {pairs(W_K)}. W<sub>v</sub>, 1 each: {pairs(W_V)}. "
        "Scores are divided by √d, where that is chosen, and by the temperature; a window of 3 is "
        "a word and its neighbours.</p></details>"
    )
