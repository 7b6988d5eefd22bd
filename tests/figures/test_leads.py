"""Which box leads to which, in the drawings of mechanisms: what is computed from what."""

from itertools import pairwise

import pytest

from attncourse.figures import Diagram
from attncourse.figures.drawings import (
    cross_attention,
    efficient,
    gpt,
    kqv,
    llama,
    scoring,
    self_attention,
    transformer,
    vision,
)


def chain(*labels: str) -> set[tuple[str, str]]:
    return set(pairwise(labels))


def alike(*columns: str) -> set[tuple[str, str]]:
    """One way to each: from a weight matrix to what it makes."""
    return {(one, other) for one, _, other in (column.partition("→") for column in columns)}


WAYS = {
    "self-attention": (
        self_attention.data_flow,
        0,
        chain("tokens X", "S = X X^T", "A = softmax(S)", "U = A X") | alike("tokens X→U = A X"),
    ),
    "three views": (
        kqv.data_flow,
        0,
        {("tokens X", f"· W_{name}") for name in "qkv"} | alike("· W_q→Q", "· W_k→K", "· W_v→V"),
    ),
    "scores, weights, blend": (
        kqv.data_flow,
        1,
        chain("Q", "scores S", "weights A", "U = A V") | alike("K→scores S", "V→U = A V"),
    ),
    "two sequences": (
        cross_attention.two_sequences,
        0,
        chain("questions X", "· W_q", "Q")
        | chain("words Y", "· W_k", "K")
        | chain("words Y", "· W_v", "V"),
    ),
    "three uses": (
        cross_attention.three_uses,
        0,
        chain("source", "1  self-attention", "memory", "3  cross-attention", "next tokens")
        | chain("target so far", "2  self-attention", "3  cross-attention"),
    ),
    "an encoder": (
        transformer.encoder_decoder,
        0,
        chain("source", "self-attention", "feed-forward", "memory"),
    ),
    "a decoder": (
        transformer.encoder_decoder,
        1,
        chain("target so far", "self-attention", "cross-attention", "feed-forward")
        | alike("memory→cross-attention"),
    ),
    "a norm before each part": (
        transformer.block,
        0,
        alike("norm_1→attention", "norm_2→feed-forward"),
    ),
    "a model that writes": (
        gpt.model,
        0,
        chain("ids", "token + position", "blocks, causal", "logits", "next token", "ids"),
    ),
    "a model of today": (
        llama.model,
        0,
        chain("pieces of words", "a vector each", "30 blocks", "a score a piece")
        | chain("a score a piece", "one is drawn", "pieces of words"),
    ),
    "a model of images": (
        vision.model,
        1,
        chain("patches", "projected", "class token + n", "blocks, no mask", "scores of classes"),
    ),
    "without attention": (
        scoring.bottleneck,
        0,
        chain(*(f"h_{t}" for t in range(5)), *(f"s_{t}" for t in range(5))),
    ),
    "with attention": (
        scoring.bottleneck,
        1,
        chain(*(f"h_{t}" for t in range(5)))
        | chain(*(f"s_{t}" for t in range(5)))
        | alike("s_1→blend"),
    ),
    "one tile": (
        efficient.walk,
        1,
        chain("Q", "a tile of scores", "sum of e^s v", "U")
        | alike("K→a tile of scores", "V→sum of e^s v", "a tile of scores→largest score"),
    ),
}


@pytest.mark.parametrize(("draw", "number", "ways"), WAYS.values(), ids=WAYS)
def test_each_box_leads_where_what_is_in_it_goes(draw, number, ways):
    made = draw()
    diagram = made if isinstance(made, Diagram) else made.drawings[number]
    assert set(diagram.leads()) == ways


def test_each_row_leads_to_the_next_token_and_the_last_to_none():
    leads = gpt.shifted().leads()
    story = list(gpt.STORY)
    assert leads[0::2] == [(token, f"row {t}") for t, token in enumerate(story[:6])]
    assert leads[1::2] == [(f"row {t}", token) for t, token in enumerate(story[1:6])]


def test_the_token_that_each_of_the_ring_names_is_the_next():
    following = [*kqv.RING[1:], kqv.RING[0]]
    assert kqv.ring().leads() == list(zip(kqv.RING, following, strict=True))


def test_arrows_lead_from_the_boxes_they_touch():
    picture = Diagram("a title", "what it says")
    left, right = picture.box(10, 10, "left"), picture.box(200, 10, "right")
    picture.arrow(left, right)
    picture.arrow((86, 20), (195, 20))  # from the rim to five pixels before the other
    picture.arrow((100, 20), right)  # from nowhere
    picture.arrow(left, (150, 100))  # to nowhere
    picture.arrow(left, left, via=((50, 90), (60, 90)))
    assert picture.leads() == [("left", "right")] * 2
