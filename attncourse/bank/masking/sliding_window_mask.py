"""The exercise ``sliding_window_mask``: a mask of the tokens around each token."""

import math
from collections.abc import Callable

import torch

from attncourse import masking
from attncourse.bank.masking.shared import (
    FIXED,
    OF_WHAT_COMES_BACK,
    WINDOW_BY_HAND,
    band,
    finish_mask,
)
from attncourse.checks.exercise import Case, Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CAUSAL = {"causal": True}

# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_even_width(n, width, causal):
    if not causal and width % 2 == 0:
        raise ValueError("expected an odd width")
    return width


def window_around(n, width):
    return band(n, n, -(width // 2), width // 2)


def window_behind(n, width):
    return band(n, n, 1 - width, 0)


@composition
def compose_sliding_window_mask(
    refuse=refuse_even_width, around=window_around, behind=window_behind, **back
):
    """Return ``sliding_window_mask`` made of decisions; ``refuse`` checks and returns the width."""

    def sliding_window_mask(n, width, causal=False):
        width = refuse(n, width, causal)
        return finish_mask((behind if causal else around)(n, width), **back)

    return sliding_window_mask


def refuse_wider_than_n(n, width, causal):
    if width > n:
        raise ValueError("expected a width of at most n")
    return refuse_even_width(n, width, causal)


def wrapped_window(n, back, ahead):
    """Return a window that goes on at the other end of the sequence."""
    steps = (torch.arange(n) - torch.arange(n)[:, None]) % n
    return (steps <= ahead) | (steps >= n - back)


def blocks_of_width(n, width):
    """Return blocks of tokens in place of windows."""
    number = torch.arange(n) // width
    return number[:, None] == number


def window_by_slice(n, back, ahead):
    """Return a window by slices, whose negative starts count from the end."""
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, i - back : i + ahead + 1] = True
    return mask


def windows_reaching(decision: str, *reaches: Callable) -> tuple[dict, ...]:
    """Return options in which windows end elsewhere: how far back and ahead for a width."""
    return tuple({decision: lambda n, w, reach=reach: band(n, n, *reach(w))} for reach in reaches)


def in_one_or_both(around: Callable, behind: Callable) -> tuple[dict, ...]:
    """Return the options for a mistake around each token and behind it, then in one alone."""
    return {"around": around, "behind": behind}, {"around": around}, {"behind": behind}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    masking.sliding_window_mask,
    section="Chapter 10, “Windows”",
    difficulty=2,
    minutes=12,
    picture=True,
    criteria=(
        Criterion("width tokens, centred on each", 2).on(
            lambda rng: [
                WINDOW_BY_HAND,
                Case((8, 5)),
                Case((int(rng.integers(7, 12)), 2 * int(rng.integers(1, 3)) + 1)),
                Case((17, 7), note="many tokens"),
            ]
        ),
        Criterion("causal: width tokens that end with each", 2).on(
            lambda rng: [
                Case((5, 3), CAUSAL),
                Case((7, 4), CAUSAL, note="an even width"),
                Case((int(rng.integers(6, 9)), 2), CAUSAL),
                Case((8, 5), CAUSAL),
            ]
        ),
        FIXED.criterion("width 1, and wider than the sequence", 1).on(
            Case((4, 1), note="width 1"),
            Case((4, 1), CAUSAL, note="width 1"),
            Case((3, 7), note="wider than the sequence"),
            Case((3, 6), CAUSAL, note="wider than the sequence"),
            Case((2, 3), note="n = 2"),
            Case((1, 3), note="n = 1"),
            once_more(WINDOW_BY_HAND),
        ),
        FIXED.criterion("an even width has no centre: ValueError", 1).on(
            Case((7, 4), note="even width", raises=ValueError),
            Case((5, 2), note="even width", raises=ValueError),
        ),
    ),
    mistakes=made(
        compose_sliding_window_mask,
        *OF_WHAT_COMES_BACK,
        mistake("""a token does not see itself
            Your diagonal is False. The window counts the token itself.
        """).by(truth=lambda mask: mask & ~torch.eye(len(mask), dtype=torch.bool)),
        mistake("""the centred window has another reach
            Without `causal` the window reaches width // 2 to each side, as far forward as back: `|i
            − j| <= width // 2`. The width counts the whole window, the token included.""")
        .by(around=lambda n, w: band(n, n, -w, w))
        .by(
            *windows_reaching(
                "around",
                lambda w: (1 - w, w - 1),
                lambda w: (1 - w // 2, w // 2 - 1),
                lambda w: (-(w // 2), w // 2 - 1),
                lambda w: (1 - w // 2, w // 2),
                lambda w: (1 - w, 0),
                lambda w: (-(w // 2), 0),
                lambda w: (0, w - 1),
                lambda w: (0, w // 2),
            )
        ),
        mistake("""blocks in place of a window
            Your tokens share blocks (`i // width == j // width`). A window moves with its token.
        """).by(*in_one_or_both(blocks_of_width, lambda n, w: blocks_of_width(n, w).tril())),
        mistake("""the window wraps around
            Your first token sees the last, or a slice starts below 0 (`mask[i, i − width + 1:]`)
            and counts from the end. At the edges it is cut off: |i − j|, or `max(0, …)`.""").by(
            *in_one_or_both(
                lambda n, w: wrapped_window(n, w // 2, w // 2),
                lambda n, w: wrapped_window(n, w - 1, 0),
            ),
            *in_one_or_both(
                lambda n, w: window_by_slice(n, w // 2, w // 2),
                lambda n, w: window_by_slice(n, w - 1, 0),
            ),
        ),
        mistake("""causal is ignored
            Your result is the same with `causal=True`. Then the window ends with the token.""")
        .by(behind=window_around, refuse=lambda n, w, causal: w)
        .by(behind=window_around)
        .by(behind=window_around, refuse=lambda n, w, causal: refuse_even_width(n, w, False)),
        mistake("""the causal window has another reach
            With `causal` the window holds the token itself and width − 1 before it, and none that
            comes later: `0 <= i − j < width`, both sides of it.""")
        .by(behind=lambda n, w: band(n, n, -(w // 2), 0))
        .by(
            *windows_reaching(
                "behind",
                lambda w: (-w, 0),
                lambda w: (2 - w, 0),
                lambda w: (-w, -1),
                lambda w: (1 - w, -1),
                lambda w: (-math.inf, 0),
                lambda w: (0, w - 1),
                lambda w: (1 - w, math.inf),
                lambda w: (1 - w, w - 1),
            )
        ),
        mistake("""even widths are let through
            A centred window of even width has no centre. The exercise asks for a ValueError there;
            with `causal` every width is right.""")
        .by(refuse=lambda n, w, causal: w)
        .by(refuse=lambda n, w, causal: w if causal or w % 2 else w + 1)
        .by(refuse=lambda n, w, causal: w if causal or w % 2 else w - 1)
        .by(refuse=lambda n, w, causal: w, around=lambda n, w: band(n, n, -((w - 1) // 2), w // 2)),
        mistake("""a width that is right is refused
            Only a centred window needs an odd width: with `causal=True` any will do. And a window
            may be wider than the sequence, then it allows all that it reaches.""")
        .by(refuse=lambda n, w, causal: refuse_even_width(n, w, False))
        .by(refuse=refuse_wider_than_n)
        .by(refuse=lambda n, w, causal: refuse_even_width(n, w + 1, causal) - 1),
        mistake("""a wide window is narrowed
            You use at most n for the width. In a window that is much wider than the sequence the
            first token sees the last: its reach is still `width // 2`.
        """).by(refuse=lambda n, w, causal: min(refuse_even_width(n, w, causal), n)),
    ),
)
