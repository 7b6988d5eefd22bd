"""Chapter 12's drawings: the block and its two norm orders, the parts one by one, the decoder."""

from itertools import pairwise

from attncourse.figures.diagram import Diagram, Drawings, beside

PRE_SAYS = (
    "The stream x, n by d model, runs straight down. Twice a branch leaves it, through a norm and "
    "then attention, through a norm and then the feed-forward layer, and is added to it again. "
    "Nothing stands on the stream itself."
)
POST_SAYS = (
    "The stream x, n by d model, runs down. Twice a branch leaves it, attention and then the "
    "feed-forward layer, and is added to it again. After each sum a norm stands on the stream."
)
STREAM, BRANCH, WIDE = 62, 132, 132  # where the stream runs, where branches begin, their width


def plus(picture: Diagram, y: float):
    """Draw a plus in a circle on the stream."""
    place = picture.dot(STREAM, y, radius=9, hollow=True)
    picture.path(f"M{STREAM - 5:g},{y:g}h10M{STREAM:g},{y - 5:g}v10")
    return place


def stream(pre_norm: bool) -> Diagram:
    """Draw a block from above to below: the stream on the left, its two branches on the right."""
    title = "Pre-norm" if pre_norm else "Post-norm, as in 2017"
    picture = Diagram(title, PRE_SAYS if pre_norm else POST_SAYS, width=272, height=366)
    picture.text(4, 15, title, bold=True, anchor="start")
    last = picture.box(STREAM - 52, 26, "x", "(n, d_{model})", width=104)
    for i, (name, shape, role) in enumerate(
        (("attention", "tokens meet", "value"), ("feed-forward", "each token alone", "ink"))
    ):
        top = 82 + 124 * i
        if pre_norm:
            norm = picture.box(BRANCH, top, f"norm_{i + 1}", width=WIDE)
            branch = picture.box(BRANCH, top + 46, name, shape, role, width=WIDE)
            sum_ = plus(picture, top + 106)
            picture.arrow((STREAM, top + 14), norm)
            picture.arrow(norm, branch)
            picture.arrow(branch, (STREAM + 13, top + 106), via=[(BRANCH + WIDE / 2, top + 106)])
            picture.arrow(last, sum_, thick=3)
            last = sum_
        else:
            branch = picture.box(BRANCH, top - 4, name, shape, role, width=WIDE)
            sum_ = plus(picture, top + 56)
            norm = picture.box(STREAM - 52, top + 82, f"norm_{i + 1}", width=104)
            picture.arrow((STREAM, top + 17), branch)
            picture.arrow(branch, (STREAM + 13, top + 56), via=[(BRANCH + WIDE / 2, top + 56)])
            picture.arrow(last, sum_, thick=3)
            picture.arrow(sum_, norm, thick=3)
            last = norm
    picture.arrow(last, (STREAM, 352), thick=3)
    picture.text(STREAM + 14, 356, "to the next block", "quiet", size=12, anchor="start")
    return picture


def block() -> Drawings:
    """Draw the block with the norms before the branches, and with the norms after the sums."""
    return beside(stream(True), stream(False))


DRAWN_PARTS = ("attention", "residual", "norm", "feed-forward")
PART_CAPTIONS = (
    "Attention alone: x goes in, and what attention returns comes out in its place.",
    "The residual: a line leads x past attention, and a plus adds both.",
    "The norm: x is normalised before it goes into attention, but not on the line past it.",
    "The feed-forward layer: a second branch below, with a norm and a line past it.",
)


def grown() -> Drawings:
    """Draw the block part by part: attention, then residual, norm, feed-forward layer."""
    return beside(*map(stage, range(len(DRAWN_PARTS))))


def stage(number: int) -> Diagram:
    """Draw the block with the first parts of ``DRAWN_PARTS``, the newest one bold."""
    picture = Diagram(
        f"{number + 1}: {DRAWN_PARTS[number]}", PART_CAPTIONS[number], width=152, height=262
    )
    picture.text(4, 15, f"{number + 1}  {DRAWN_PARTS[number]}", bold=True, anchor="start")
    residual, norm, feed = number >= 1, number >= 2, number >= 3
    at = 24 if residual else 97  # where x runs
    picture.text(at, 38, "x", bold=True)
    branches = ("attention", "feed-forward")[: 1 + feed]
    tops = [56 + 98 * i for i in range(len(branches))]
    begin = 43
    for top, name in zip(tops, branches, strict=True):
        first = top + (0 if norm else 20)
        place = picture.box(44, top + 36 if norm else top + 20, name, width=106)
        if norm:
            inner = picture.box(44, first - 6, "norm", width=106, height=24)
            picture.arrow(inner, place)
            into = inner
        else:
            into = place
        if residual:
            picture.arrow((at, first + (6 if norm else 14)), into)
            picture.path(f"M{at},{top + 78}m-8,0a8,8 0 1,0 16,0a8,8 0 1,0 -16,0m3,0h10m-5,-5v10")
            picture.arrow(place, (at + 12, top + 78), via=[(97, top + 78)])
            picture.arrow((at, begin), (at, top + 68), thick=3 if number == 1 else 2)
            begin = top + 87
        else:
            picture.arrow((at, begin), place)
            begin = place.y + place.height
    picture.arrow((at, begin), (at, 254), thick=2)
    return picture


def encoder_decoder() -> Drawings:
    """Draw an encoder and a decoder block beside each other, and the memory between them."""
    left = Diagram(
        "The encoder makes the memory",
        "Source tokens go through encoder blocks, self-attention and feed-forward, to the memory, "
        "one row for each source token, n by d model.",
        width=200,
        height=322,
    )
    left.text(4, 15, "encoder, n tokens", bold=True, anchor="start")
    steps = [left.box(30, 26, "source", "(n, d_{model})", "key", width=140)]
    steps += [left.box(30, 92 + 64 * i, name, width=140) for i, name in
              enumerate(("self-attention", "feed-forward"))]  # fmt: skip
    steps += [left.box(30, 222, "memory", "(n, d_{model})", "key", width=140)]
    for lower, upper in pairwise(steps):
        left.arrow(lower, upper)
    left.text(100, 286, "keys and values", "key")
    left.text(100, 303, "for every decoder block", "key")
    right = Diagram(
        "The decoder block reads it",
        "Target tokens, m by d model, go through causal self-attention, then attention whose "
        "queries come from them and whose keys and values come from the memory, then a "
        "feed-forward layer. Each of the three is a branch that is added to the stream.",
        width=320,
        height=322,
    )
    right.text(120, 15, "decoder, m tokens", bold=True, anchor="start")
    target = right.box(130, 26, "target so far", "(m, d_{model})", "query", width=160)
    self_attention = right.box(130, 92, "self-attention", "causal mask", width=160)
    cross = right.box(130, 160, "cross-attention", "(m, n) weights", width=160)
    feed = right.box(130, 228, "feed-forward", width=160)
    memory = right.box(6, 160, "memory", "(n, d_{model})", "key", width=92)
    for lower, upper in ((target, self_attention), (self_attention, cross), (cross, feed)):
        right.arrow(lower, upper, role="query" if upper is cross else "ink")
    right.arrow(memory, cross, role="key")
    right.arrow(feed, (210, 286))
    right.text(210, 304, "logits for what comes next", size=13)
    return beside(left, right)
