"""Decisions and mistakes that several of the chapter's exercises share."""

from attncourse.checks.writing.recipes import mistake


def cut_into_runs(x, h):
    return x.unflatten(-1, (h, -1))  # (..., n, h, d_head)


def cut_every_h_th(x, h):
    return x.unflatten(-1, (-1, h)).mT


def cut_in_memory_order(x, h):
    """Return x reshaped straight to ``(..., h, n, d_head)``, in the order of memory."""
    return x.reshape(*x.shape[:-2], h, x.shape[-2], -1)


def cut_with_one_batch_axis(x, h):
    b, n, d = x.shape
    return x.reshape(b, n, h, d // h)


def cut_with_batch_in_front(x, h):
    return x.reshape(len(x), -1, h, x.shape[-1] // h)


def move_heads_first(x):
    return x.transpose(-3, -2)


def join_side_by_side(x):
    return x.flatten(-2)


def join_in_memory_order(x):
    """Return x reshaped straight to ``(..., n, h * d_head)``, in the order of memory."""
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def refuse_width(width, h):
    if width % h:
        raise ValueError("width not divisible by n_heads")


def assert_width(width, h):
    assert width % h == 0, "width not divisible by n_heads"


RESHAPED = mistake("""reshaped straight to (h, n, d/h)
    A reshape hands out the numbers in the order in which they lie in memory, so your head 0 gets
    the first tokens, not the first features. Cut the features, `(..., n, h, d/h)`, and then let
    tokens and heads change places.""").by(cut=cut_in_memory_order, move=lambda x: x)
EVERY_H_TH = mistake("""a head takes every h-th feature
    Your head i gets features i, i + h, i + 2h, … It is to get a run of d/h features: the axis of
    the heads comes first when you cut, `(..., n, h, d/h)`.""").by(cut=cut_every_h_th)
WIDTH_FOR_NUMBER = mistake("""n_heads taken for the width of a head
    You make d/h heads of h features. It is h heads of d/h features.
""").by(cut=lambda x, h: x.unflatten(-1, (-1, h)))
AXES_FROM_THE_FRONT = (
    mistake("""axes counted from the front
    `transpose(1, 2)`, `flatten(2)`, `dim=1`, a `permute` of four axes or `b, n, d = x.shape` fit
    exactly one batch axis; `transpose(0, 1)`, or an axis put at the very front, fits no batch.
    Count from the end, `.transpose(-3, -2)`, and unpack `*batch, n, d = x.shape`.""")
    .by(move=lambda x: x.transpose(1, 2))
    .by(move=lambda x: x.permute(0, 2, 1, 3))
    .by(move=lambda x: x.transpose(0, 1))
    .by(move=lambda x: x.permute(1, 0, 2))
)
OTHER_TWO_AXES = (
    mistake("""another two axes change places
    You exchange two axes, but not those of the heads and the tokens alone: a token's features end
    up in several rows. `.transpose(-3, -2)` exchanges these two.""")
    .by(move=lambda x: x.transpose(-2, -1))
    .by(move=lambda x: x.transpose(-3, -1))
    .by(move=lambda x: x.movedim(-3, -1))
)
DIVISION_TURNED_ROUND = mistake("""the division is turned round
    You test whether the width divides n_heads. It is the other way round: `d % n_heads`.
""").by(refuse=lambda width, h: refuse_width(h, width))
WIDTH_NOT_REFUSED = (
    mistake("""no ValueError where n_heads does not divide the width
    `d // n_heads` rounds down: features are lost, or torch fails far from the cause. An `assert`
    raises AssertionError and is skipped under `python -O`. Test it and `raise ValueError(…)`.""")
    .by(refuse=lambda width, h: None)
    .by(refuse=assert_width)
)

AXES_NOT_PUT_BACK = mistake("""the axes are not put back
    You reshape (h, n, d/h) straight to (n, d), so the first rows are made of head 0 alone. First
    let tokens and heads change places again, `.transpose(-3, -2)`, then join the last two axes.
""").by(move=lambda x: x, join=join_in_memory_order)
FEATURES_INTERLEAVED = mistake("""features of the heads interleaved
    Your rows hold feature 0 of every head, then feature 1 of every head. Head 0's features come
    first, all of them.""").by(move=lambda x: x.movedim(-3, -1))
HEADS_ADDED_UP = (
    mistake("""heads averaged or summed
    You average the heads or add them up, which leaves d/h features. Their outputs stand side by
    side; adding comes later, and W_o decides with which weights.""")
    .by(move=lambda x: x.mean(-3), join=lambda x: x)
    .by(move=lambda x: x.sum(-3), join=lambda x: x)
)
