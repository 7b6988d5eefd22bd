"""The exercise ``windowed_attention``: attention to the tokens nearby, in less work."""

from functools import partial

import torch

from attncourse import efficient
from attncourse.bank.efficient.shared import (
    MANY_TOKENS,
    SCALE_MISTAKES,
    SELF_ATTENTION_SHAPES,
    OptionTable,
)
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import mistakes
from attncourse.checks.writing.cases import FLOATS_ONLY, once_more, row, standard
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.mistakes import filled_with
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = OptionTable(SELF_ATTENTION_SHAPES, extra={"width": 3}.items())
ROWS = standard(CASES, d_k=4)
ROW = row("n=11 d_k=4 d_v=3")
BY_HAND = Case(
    (
        tensor([[0, 0, 0, 0]] * 4),
        tensor([[1, 2, 3, 4]] * 4),
        tensor([[6, 1], [0, 3], [3, 2], [12, 6]]),
    ),
    {"width": 3},
    note="queries of 0: plain means of two or three values",
)

# --- decisions and mistakes ----------------------------------------------------------------------


def places_around(i, n, width):
    return i + torch.arange(-(width // 2), width // 2 + 1)


def inside_sequence(places, n):
    return (places >= 0) & (places < n)


@composition
def compose_windowed_attention(
    places=places_around,
    index=lambda places, n: places.clamp(0, n - 1),
    allowed_places=inside_sequence,
    fill=lambda x, inside: x,
    finish=lambda output: output,
    answer=None,
    **options,
):
    """Return ``windowed_attention`` made of decisions; others are those of ``Attention``.

    ``places`` are the tokens of each window, some beyond the ends; ``index`` which are taken for
    them, ``fill`` what is done to those, ``allowed_places`` which of them may be attended to.
    ``answer`` does without any of this.
    """
    attention = Attention.of(options)
    if answer is not None:
        return partial(answer, attention)

    def windowed_attention(query, key, value, width):
        n = key.shape[-2]
        around = places(torch.arange(n)[:, None], n, width)  # (n, width)
        near, exists = index(around, n), inside_sequence(around, n)[..., None]
        keys, values = (fill(x[..., near, :], exists) for x in (key, value))
        allowed = allowed_places(around, n).unsqueeze(-2)  # (n, 1, width)
        output = attention.output(query.unsqueeze(-2), keys, values, allowed)
        return finish(output.squeeze(-2))

    return windowed_attention


def all_places(places, n):
    return torch.ones_like(places, dtype=torch.bool)


def mask_whole_matrix(attention, query, key, value, width):
    i = torch.arange(key.shape[-2])
    return attention.output(query, key, value, (i[:, None] - i).abs() <= width // 2)


def attend_to_slices(attention, query, key, value, width):
    """Attend to a slice of the keys for each query, whatever Python makes of its ends."""
    outputs = []
    for i in range(key.shape[-2]):
        part = slice(i - width // 2, i + width // 2 + 1)
        near = key[..., part, :], value[..., part, :]
        outputs.append(attention.output(query[..., i : i + 1, :], *near))
    return torch.cat(outputs, -2)


def wrap_once(i, n, width):
    """Return a window as wide as the sequence at most, so that no token is in it twice."""
    return places_around(i, n, width) if width <= n else i + torch.arange(-(n // 2), n - n // 2)


def move_inside(i, n, width):
    """Return windows pushed in at the ends, so that they keep their width."""
    first = (i - width // 2).clamp(min=0).minimum(torch.tensor(max(n - width, 0)))
    return first + torch.arange(width)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    efficient.windowed_attention,
    section="Chapter 17, “A window”",
    difficulty=2,
    minutes=25,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        CASES.criterion("each token and its neighbours, width in all", 3).on(
            BY_HAND,
            ROW,
            ROW.but(options={"width": 5}),
            ROW.but("d_k=16 n=13", options={"width": 7}),
        ),
        CASES.criterion("cut off at the ends", 2).on(
            ROW.but("n=3"),
            ROW.but("n=5", options={"width": 5}),
            ROW.but("n=5", options={"width": 13}, note="wider than the sequence"),
        ),
        CASES.criterion("no tensor of n · n numbers on the way", 2).on(
            MANY_TOKENS.but(options={**MANY_TOKENS.options, "width": 5}),
            MANY_TOKENS.but("n=150", options={"measured": 150 * 150, "width": 3}),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches, ROW.but("n=2", batch=(3,), note="two tokens")
        ),
        CASES.criterion("width 1, one token; float32, large and small scores", 1).on(
            ROW.but(options={"width": 1}, note="each token sees itself alone"),
            ROW.but("n=1", options={"width": 3}, note="one token"),
            *ROWS.numbers,
            ROW.but(factor=500.0, note="scores that exp cannot hold"),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach query, key and value", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_windowed_attention,
        *SCALE_MISTAKES,
        mistake("""divided by the root of the width of the window
            You divide the scores by √width. It is the width of queries and keys that counts,
            √d_k.""").by(factor=lambda q, k, other: k.shape[-2] ** -0.5),
        mistakes.NO_SOFTMAX,
        mistakes.NO_MAXIMUM,
        mistakes.ZERO_SCORES,
        mistakes.NOT_LOW_ENOUGH.by(filled_with(-1e4)),
        mistakes.SIGMOIDS,
        mistakes.KEYS_BLENDED,
        mistakes.OVER_QUERIES.here(normalize=lambda s: s.softmax(-3)).said(
            "Your softmax runs over the queries. Each has a budget of 1: take it along the places "
            "of its window, the last axis of the scores."
        ),
        mistake("""all scores at once
            Right numbers, but they are made of a whole matrix of scores, or of a mask of that size.
            Compare each token with those of its window only.""").by(answer=mask_whole_matrix),
        mistake("""a window that begins before the first token
            A slice from a negative number counts from the end: `key[-1:2]` is empty, or other
            tokens. Begin at `max(0, start)`.""").by(answer=attend_to_slices),
        mistake("""width on each side
            Your windows have 2 · width + 1 tokens. width counts all of them: width // 2 on each
            side, and the token itself.
        """).by(places=lambda i, n, width: i + torch.arange(-width, width + 1)),
        mistake("""one token too few on the right
            Your windows stop before the last token: `range(i - half, i + half)` leaves out i +
            half.""")
        .by(places=lambda i, n, width: i + torch.arange(-(width // 2), max(width // 2, 1)))
        .by(places=lambda i, n, width: i + torch.arange(-(width // 2), width // 2)),
        mistake("""one token too few on the left
            Your windows begin one token late. They reach from i − width // 2 to i + width // 2.
        """).by(
            places=lambda i, n, width: i + torch.arange(min(1 - width // 2, 0), width // 2 + 1)
        ),
        mistake("""one token too many on each side
            You round the half up. Of an odd width, width // 2 tokens stand on each side.""").by(
            places=lambda i, n, width: i + torch.arange(-(width + 1) // 2, (width + 1) // 2 + 1)
        ),
        mistake("""the window ends at the token
            You look at the width tokens that end with the token itself. It stands in the
            middle.""").by(places=lambda i, n, width: i + torch.arange(1 - width, 1)),
        mistake("""the window begins at the token
            You look at the width tokens that begin with the token itself. It stands in the
            middle.""").by(places=lambda i, n, width: i + torch.arange(width)),
        mistake("""a token does not see itself
            You leave out the token itself. It belongs to its window.
        """).by(
            allowed_places=lambda places, n: (
                inside_sequence(places, n) & (places != torch.arange(n)[:, None])
            )
        ),
        mistake("""zeros beyond the ends get weight
            You pad keys and values with zeros. A key of zeros has a score of 0, and exp(0) is 1: it
            takes weight from the others. Mask what is beyond the ends, both of them.""")
        .by(fill=lambda x, exists: x * exists, allowed_places=all_places)
        .by(fill=lambda x, exists: x * exists, allowed_places=lambda places, n: places < n)
        .by(fill=lambda x, exists: x * exists, allowed_places=lambda places, n: places >= 0),
        mistake("""the tokens at the ends count more than once
            Beyond the ends you repeat the token that stands there, so it gets its weight several
            times. A window is shorter at the ends.""").by(allowed_places=all_places),
        mistake("""the window goes round
            Beyond one end you go on at the other, as `roll` or a negative index does. The first
            token has no left neighbour.""")
        .by(index=lambda places, n: places % n, allowed_places=all_places)
        .by(places=wrap_once, index=lambda places, n: places % n, allowed_places=all_places),
        mistake("""the window is moved inside
            At the ends you move the window in, so that it keeps its width. It stays around its
            token and is cut off.""").by(places=move_inside),
        mistake("""blocks and not windows
            You cut the sequence into blocks, and all tokens of a block see the same: the block, or
            some beside it too. A window moves along with its token.""")
        .by(places=lambda i, n, width: i // width * width + torch.arange(width))
        .by(
            places=lambda i, n, width: (
                i // width * width + torch.arange(-(width // 2), width + width // 2)
            )
        ),
        mistake("""every second token
            Your windows leave out every second token. They are the nearest ones, side by side.
        """).by(places=lambda i, n, width: i + 2 * torch.arange(-(width // 2), width // 2 + 1)),
        mistake("""a wide window is narrowed
            Where the window is wider than the sequence you cut it down to the sequence's length. It
            keeps its reach on both sides: the first token may see the last one.""").by(
            places=lambda i, n, width: places_around(i, n, min(width, n // 2 * 2 + 1))
        ),
        mistake("""the windows are not used
            Your tokens see the whole sequence.
        """).by(places=lambda i, n, width: torch.arange(n).expand(n, n)),
        mistake("""weights at the ends sum to less than 1
            You take the softmax over the whole window and set what is beyond the ends to 0
            afterwards. What is left has to sum to 1: put −∞ into the scores.
        """).by(hide=lambda s, mask: s, after=lambda w, mask, f: w if mask is None else w * mask),
        mistake("""the windows' axis stays
            You return `(..., n, 1, d_v)`: an axis for the one query of each window is left.
        """).by(finish=lambda output: output.unsqueeze(-2)),
    ),
)
