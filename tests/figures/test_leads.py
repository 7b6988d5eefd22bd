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


def arrows_of_chain(*labels: str) -> set[tuple[str, str]]:
    return set(pairwise(labels))


def arrows_by_matrices(*columns: str) -> set[tuple[str, str]]:
    """Return an arrow for each ``matrix→result``: from a weight matrix to what it computes."""
    return {(start, end) for start, _, end in (column.partition("→") for column in columns)}


ARROWS_BY_DRAWING = {
    "self-attention": (
        self_attention.data_flow,
        0,
        arrows_of_chain("tokens X", "S = X X^T", "A = softmax(S)", "U = A X")
        | arrows_by_matrices("tokens X→U = A X"),
    ),
    "three views": (
        kqv.data_flow,
        0,
        {("tokens X", f"· W_{name}") for name in "qkv"}
        | arrows_by_matrices("· W_q→Q", "· W_k→K", "· W_v→V"),
    ),
    "scores, weights, blend": (
        kqv.data_flow,
        1,
        arrows_of_chain("Q", "scores S", "weights A", "U = A V")
        | arrows_by_matrices("K→scores S", "V→U = A V"),
    ),
    "two sequences": (
        cross_attention.two_sequences,
        0,
        arrows_of_chain("questions X", "· W_q", "Q")
        | arrows_of_chain("words Y", "· W_k", "K")
        | arrows_of_chain("words Y", "· W_v", "V"),
    ),
    "three uses": (
        cross_attention.three_uses,
        0,
        arrows_of_chain(
            "source", "1  self-attention", "memory", "3  cross-attention", "next tokens"
        )
        | arrows_of_chain("target so far", "2  self-attention", "3  cross-attention"),
    ),
    "an encoder": (
        transformer.encoder_decoder,
        0,
        arrows_of_chain("source", "self-attention", "feed-forward", "memory"),
    ),
    "a decoder": (
        transformer.encoder_decoder,
        1,
        arrows_of_chain("target so far", "self-attention", "cross-attention", "feed-forward")
        | arrows_by_matrices("memory→cross-attention"),
    ),
    "a norm before each part": (
        transformer.block,
        0,
        arrows_by_matrices("norm_1→attention", "norm_2→feed-forward"),
    ),
    "a model that writes": (
        gpt.model,
        0,
        arrows_of_chain("ids", "token + position", "blocks, causal", "logits", "next token", "ids"),
    ),
    "a model of today": (
        llama.model,
        0,
        arrows_of_chain("pieces of words", "a vector each", "30 blocks", "a score a piece")
        | arrows_of_chain("a score a piece", "one is drawn", "pieces of words"),
    ),
    "a model of images": (
        vision.model,
        1,
        arrows_of_chain(
            "patches", "projected", "class token + n", "blocks, no mask", "scores of classes"
        ),
    ),
    "without attention": (
        scoring.bottleneck,
        0,
        arrows_of_chain(*(f"h_{t}" for t in range(5)), *(f"s_{t}" for t in range(5))),
    ),
    "with attention": (
        scoring.bottleneck,
        1,
        arrows_of_chain(*(f"h_{t}" for t in range(5)))
        | arrows_of_chain(*(f"s_{t}" for t in range(5)))
        | arrows_by_matrices("s_1→blend"),
    ),
    "one tile": (
        efficient.walk,
        1,
        arrows_of_chain("Q", "a tile of scores", "sum of e^s v", "U")
        | arrows_by_matrices(
            "K→a tile of scores", "V→sum of e^s v", "a tile of scores→largest score"
        ),
    ),
}


@pytest.mark.parametrize(
    ("draw", "number", "ways"), ARROWS_BY_DRAWING.values(), ids=ARROWS_BY_DRAWING
)
def test_arrows_lead_where_the_computation_goes(draw, number, ways):
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
