"""The exercise ``sink_mask``: a causal window that keeps the first tokens."""

import math

import torch

from attncourse import circuits
from attncourse.bank.masking.shared import OF_WHAT_COMES_BACK, band, finish_mask
from attncourse.checks.exercise import Case, Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

BY_HAND = Case((6, 2, 1))


def refused_case(args: tuple, note: str) -> Case:
    return Case(args, note=note, raises=ValueError)


# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_bad_sizes(n, width, n_sinks):
    if width < 1 or n_sinks < 0:
        raise ValueError("expected a width of 1 or more and no negative number of sinks")
    return width, n_sinks


@composition
def compose_sink_mask(
    refuse=refuse_bad_sizes,
    near=lambda n, width, n_sinks: band(n, n, 1 - width, 0),
    first=lambda n, n_sinks: (torch.arange(n) < n_sinks).expand(n, n),
    together=lambda near, first: near | first,
    reach=lambda mask: mask.tril(),
    **back,
):
    """Return ``sink_mask`` made of decisions."""

    def sink_mask(n, width, n_sinks):
        width, n_sinks = refuse(n, width, n_sinks)
        mask = together(near(n, width, n_sinks), first(n, n_sinks))
        return finish_mask(reach(mask), **back)

    return sink_mask


def last_columns(n, n_sinks):
    """Return ``[:, -n_sinks:]``, which is every column where n_sinks is 0."""
    mask = torch.zeros(n, n, dtype=torch.bool)
    mask[:, -n_sinks:] = True
    return mask


def causal_sink_columns(n, n_sinks):
    """Return the sinks' columns, under a causal mask of their own."""
    return (torch.arange(n) < n_sinks).expand(n, n).tril()


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    circuits.sink_mask,
    section="Chapter 19, “Much attention falls on the first token”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        Criterion("the last width keys, and the first ones", 2).on(
            lambda rng: [
                BY_HAND,
                Case((7, 3, 2)),
                Case((int(rng.integers(8, 12)), int(rng.integers(2, 4)), 1)),
            ]
        ),
        Criterion("many sinks, many tokens", 1).on(
            lambda rng: [
                Case((9, 2, 4), note="more sinks than the window holds"),
                Case((17, 4, 3), note="many tokens"),
            ]
        ),
        Criterion("width 1, no sinks, and more of either than tokens", 1).on(
            lambda rng: [
                Case((5, 1, 1), note="width 1"),
                Case((5, 1, 0), note="width 1, no sinks"),
                Case((6, 3, 0), note="no sinks"),
                Case((4, 9, 1), note="a window wider than the sequence"),
                Case((4, 2, 7), note="more sinks than tokens"),
                Case((1, 1, 1), note="one token"),
                Case((2, 1, 1), note="two tokens"),
                once_more(BY_HAND),
            ]
        ),
        Criterion("a width below 1, or sinks below 0: ValueError", 1).on(
            lambda rng: [
                refused_case((5, 0, 1), "width 0"),
                refused_case((5, -2, 1), "a negative width"),
                refused_case((5, 2, -1), "a negative number of sinks"),
            ]
        ),
    ),
    mistakes=made(
        compose_sink_mask,
        *OF_WHAT_COMES_BACK,
        mistake("""a sink inside the window is lost
            Where the window reaches the first tokens, yours forbids them: an exclusive *or*, or a
            sum that is compared with 1. A key is allowed by either of the two, `window | first`.
        """)
        .by(together=lambda near, first: near ^ first)
        .by(together=lambda near, first: near & ~first | first & ~near),
        mistake("""a sink inside the window counts twice
            You add the two masks, so that a first token inside the window is 2. A mask is boolean:
            `window | first`.""")
        .by(together=lambda near, first: near.int() + first.int(), reach=lambda mask: mask.tril())
        .by(together=lambda near, first: near.float() + first.float()),
        mistake("""only what is both
            You allow what is in the window *and* among the first. It is one or the other: `|`.
        """).by(together=lambda near, first: near & first),
        mistake("""the sinks are seen by tokens before them
            The first rows see tokens that come later: with two sinks the first token would see the
            second. The whole mask is causal, sinks included.""").by(reach=as_it_is),
        mistake("""no sinks
            Your mask is the window alone. The first `n_sinks` columns are True as well, for every
            token that comes after them.""").by(
            first=lambda n, n_sinks: torch.zeros(n, n, dtype=torch.bool)
        ),
        mistake("""the sinks are queries
            You let the first tokens see all that is before them: rows. A sink is a key that the
            others see, a column: `torch.arange(n) < n_sinks`.""").by(
            first=lambda n, n_sinks: (torch.arange(n)[:, None] < n_sinks).expand(n, n)
        ),
        mistake("""the last tokens are kept
            You keep the last `n_sinks` columns. The sinks are at the beginning: `[:, :n_sinks]`.
        """)
        .by(first=lambda n, n_sinks: (torch.arange(n) >= n - n_sinks).expand(n, n))
        .by(first=last_columns),
        mistake("""always one sink
            You keep the first token, whatever `n_sinks` says: as many are kept as it says, and with
            0 none.""")
        .by(first=lambda n, n_sinks: (torch.arange(n) < 1).expand(n, n))
        .by(first=lambda n, n_sinks: (torch.arange(n) < max(n_sinks, 1)).expand(n, n)),
        mistake("""one sink too many or too few
            The sinks are columns 0 … n_sinks − 1: `j < n_sinks`.""")
        .by(first=lambda n, n_sinks: (torch.arange(n) <= n_sinks).expand(n, n))
        .by(first=lambda n, n_sinks: (torch.arange(n) < n_sinks - 1).expand(n, n))
        .by(first=lambda n, n_sinks: (torch.arange(n) == n_sinks).expand(n, n)),
        mistake("""the n_sinks-th token alone
            You keep one column. All of the first `n_sinks` are kept: `[:, :n_sinks]`.""").by(
            first=lambda n, n_sinks: (torch.arange(n) == n_sinks - 1).expand(n, n)
        ),
        mistake("""the sinks are taken from the window
            Your window is narrower by the sinks. They come on top: `width` keys that end with the
            token itself, and the first ones besides.""")
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - max(width - n_sinks, 1), 0))
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - width + n_sinks, 0)),
        mistake("""the window has another reach
            The window holds the token itself and width − 1 before it: `0 <= i − j < width`.""")
        .by(near=lambda n, width, n_sinks: band(n, n, -width, 0))
        .by(near=lambda n, width, n_sinks: band(n, n, 2 - width, 0))
        .by(near=lambda n, width, n_sinks: band(n, n, -width, -1))
        .by(near=lambda n, width, n_sinks: band(n, n, -(width // 2), 0))
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - width, -1))
        .by(near=lambda n, width, n_sinks: band(n, n, -math.inf, 0)),
        mistake("""the window looks ahead
            Your window reaches to both sides, or forward. It ends with the token: the mask is
            causal.""")
        .by(near=lambda n, width, n_sinks: band(n, n, -(width // 2), width // 2), reach=as_it_is)
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - width, width - 1), reach=as_it_is)
        .by(near=lambda n, width, n_sinks: band(n, n, 0, width - 1), reach=as_it_is)
        .by(
            near=lambda n, width, n_sinks: band(n, n, 1 - width, width - 1),
            first=causal_sink_columns,
            reach=as_it_is,
        )
        .by(
            near=lambda n, width, n_sinks: band(n, n, -(width // 2), width // 2),
            first=causal_sink_columns,
            reach=as_it_is,
        ),
        mistake("""a token does not see itself
            Your diagonal is False, `j < i`. The window holds the token itself, and a first token
            that does not see itself sees nothing.""")
        .by(reach=lambda mask: mask.tril(-1))
        .by(
            near=lambda n, width, n_sinks: band(n, n, -width, -1),
            reach=lambda mask: mask.tril(-1),
        ),
        mistake("""rows and columns are exchanged
            Your mask is the transpose: row i is the query, column j the key.""").by(
            form=lambda mask: mask.T
        ),
        mistake("""nothing is refused
            A window of no token and a negative number of sinks make no sense: raise a
            `ValueError`.""")
        .by(refuse=lambda n, width, n_sinks: (width, n_sinks))
        .by(refuse=lambda n, width, n_sinks: (max(width, 1), max(n_sinks, 0))),
        mistake("""what is right is refused
            A window may be wider than the sequence, there may be more sinks than tokens, and
            n_sinks = 0 is a window without any.""")
        .by(
            refuse=lambda n, width, n_sinks: (
                refuse_bad_sizes(n, width, n_sinks - 1) and (width, n_sinks)
            )
        )
        .by(
            refuse=lambda n, width, n_sinks: (
                refuse_bad_sizes(n, min(width, n - width + 1), n_sinks) and (width, n_sinks)
            )
        )
        .by(
            refuse=lambda n, width, n_sinks: (
                refuse_bad_sizes(n, width, min(n_sinks, n - n_sinks)) and (width, n_sinks)
            )
        ),
    ),
)
