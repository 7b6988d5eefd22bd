"""Chapter 21's drawings: where a layer has changed, what a latent keeps, a memory mended."""

from itertools import pairwise

from attncourse.figures.diagram import Diagram, Drawings, beside

CHANGED_PLACES = (  # what is in a block, its role, and what has been put there
    ("queries, keys", "query", "a norm of their own"),
    ("the cache", "key", "a latent, a window, a memory"),
    ("which keys", "key", "an indexer chooses"),
    ("softmax", "ink", "a sink beside the keys"),
    ("the output", "value", "a gate"),
)


def changed_places() -> Diagram:
    """Draw the parts of an attention layer in a token's order, and what stands there now."""
    picture = Diagram(
        "Where a layer has changed",
        "Five parts of an attention layer from top to bottom, and what has been put there: queries "
        "and keys have a norm of their own; the cache holds a latent, a window or a memory; an "
        "indexer chooses keys; the softmax has a sink beside the keys; the output has a gate.",
        width=340,
        height=8 + 44 * len(CHANGED_PLACES),
    )
    boxes = []
    for i, (name, role, change) in enumerate(CHANGED_PLACES):
        boxes.append(picture.box(8, 6 + 44 * i, name, role=role, width=112, height=30))
        picture.text(130, 26 + 44 * i, change, size=13, anchor="start")
    for upper, lower in pairwise(boxes):
        picture.arrow(upper, lower)
    return picture


def two_caches() -> Drawings:
    """Draw what grouped heads keep of a token, and what latent attention keeps."""
    return beside(grouped_cache(), latent_cache())


def grouped_cache() -> Diagram:
    """Draw how a token's vector becomes keys and values, which are kept."""
    picture = Diagram(
        "Grouped heads",
        "From a token's vector x go arrows to a key and a value of each key/value head, and these "
        "are kept.",
        width=280,
        height=200,
    )
    picture.text(140, 18, "Grouped heads", bold=True)
    x = picture.box(102, 30, "x", width=76)
    for left, name, role in ((24, "keys", "key"), (164, "values", "value")):
        box = picture.box(left, 104, name, "a head each", role, width=92)
        picture.arrow(x, box)
    picture.path("M12,96h256v62h-256Z", "ink", dashed=True)
    picture.text(140, 182, "kept", "quiet", size=13)
    return picture


def latent_cache() -> Diagram:
    """Draw how a token's vector becomes a latent and a turned key, which are kept."""
    picture = Diagram(
        "Latent attention",
        "From a token's vector x go arrows to a latent c and to one turned key, and these two are "
        "kept; keys and values of all heads are made from the latent anew.",
        width=280,
        height=200,
    )
    picture.text(140, 18, "Latent attention", bold=True)
    x = picture.box(102, 26, "x", width=76)
    latent = picture.box(24, 78, "latent c", role="key", width=92)
    turned = picture.box(164, 78, "turned key", role="key", width=92)
    picture.arrow(x, latent)
    picture.arrow(x, turned)
    picture.path("M12,70h256v44h-256Z", "ink", dashed=True)
    picture.text(238, 130, "kept", "quiet", size=13)
    for left, name, role in ((8, "keys", "key"), (92, "values", "value")):
        picture.arrow(latent, picture.box(left, 148, name, "anew", role, width=76))
    return picture


def mended() -> Diagram:
    """Draw a delta rule's step: a key is asked, and the error of its answer is written."""
    picture = Diagram(
        "The delta rule",
        "A memory S is asked with the key k and answers S-transposed k; that is taken from the new "
        "value v; the error, times beta, is written into S under k.",
        width=340,
        height=142,
    )
    memory = picture.box(10, 52, "memory S", "(d_k, d_v)", width=98)
    answer = picture.box(134, 10, "Sᵀk", "it says so far", "value", width=104)
    error = picture.box(134, 92, "v − Sᵀk", "error", "key", width=104)
    value = picture.box(264, 52, "v", "new", "value", width=66)
    picture.arrow(memory, answer)
    picture.arrow(answer, error)
    picture.arrow(value, error)
    picture.arrow(error, memory)
    picture.text(70, 122, "β k (…)ᵀ", size=12)
    return picture
