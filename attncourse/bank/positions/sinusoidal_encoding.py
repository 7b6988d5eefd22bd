"""The exercise ``sinusoidal_encoding``: rows of sines and cosines."""

import torch

from attncourse import positions
from attncourse.bank.positions.cases import FIXED, plain
from attncourse.bank.positions.mistakes import (
    BASE_IGNORED,
    NO_TENSOR,
    ODD_ACCEPTED,
    OF_THE_CLOCK,
    WRONG_ORDER,
    Angles,
    in_blocks,
    in_turns,
)
from attncourse.checks.exercise import Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

BY_HAND = plain(4, 4, note="two pairs, of frequency 1 and 1/100")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_sinusoidal_encoding(join=in_turns, finish=lambda PE: PE, **clock):
    """Return a ``sinusoidal_encoding`` made of decisions."""
    clock = Angles(**clock)

    def sinusoidal_encoding(n, d, base=10000.0):
        for_sine, for_cosine = clock.angles(torch.arange(n), d, base)
        return finish(join(for_sine.sin(), for_cosine.cos()).float())

    return sinusoidal_encoding


def row_by_row(sin, cos):
    """Sines where the position is even, cosines where it is odd."""
    even = torch.arange(len(sin))[:, None] % 2 == 0
    return torch.where(even, in_turns(sin, sin), in_turns(cos, cos))


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    positions.sinusoidal_encoding,
    section="Chapter 11, “A clock with many hands”",
    difficulty=1,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("sine and cosine of every position, pair by pair", 3).on(
            lambda rng: [
                BY_HAND,
                plain(5, 10),
                plain(int(rng.integers(19, 40)), 2 * int(rng.integers(6, 12))),
            ]
        ),
        FIXED.criterion("one position, one pair, any n and d", 1).on(
            plain(1, 6, note="one position"),
            plain(2, 8, note="two positions"),
            plain(7, 2, note="one pair"),
            plain(6, 6, note="n = d"),
            plain(3, 16, note="more features than positions"),
            once_more(BY_HAND),
        ),
        Criterion("another base", 1).on(
            lambda rng: [plain(5, 10, base=100.0), plain(5, 8, base=float(rng.uniform(2, 50)))]
        ),
        FIXED.criterion("an odd d is refused", 1).on(
            plain(5, 7, note="odd d", raises=ValueError), plain(3, 1, raises=ValueError)
        ),
    ),
    mistakes=made(
        compose_sinusoidal_encoding,
        *OF_THE_CLOCK,
        BASE_IGNORED,
        ODD_ACCEPTED,
        mistake("""the angle has a minus
            Your sines have the wrong sign: you take those of −t · base^(−2i/d). The minus belongs
            to the exponent alone.""").by(turn=lambda angles: -angles),
        mistake("""all sines, then all cosines
            You put the sines into one half and the cosines into the other. They take turns here:
            sine in column 2i, cosine in column 2i + 1.""")
        .by(join=in_blocks)
        .by(join=lambda sin, cos: in_blocks(cos, sin)),
        mistake("""a pair is not sine and cosine
            Column 2i is the sine, column 2i + 1 the cosine, in every row: row 0 is 0, 1, 0, 1.
            Yours are exchanged, or hold the same function twice.""")
        .by(join=lambda sin, cos: in_turns(cos, sin))
        .by(join=lambda sin, cos: in_turns(sin, sin))
        .by(join=lambda sin, cos: in_turns(cos, cos))
        .by(join=row_by_row),
        WRONG_ORDER,
        mistake("""positions divided by n
            You divide the positions by their number, so that they run from 0 to 1. A position is a
            whole number, and its row is the same in any sequence.""")
        .by(place=lambda t: t / len(t))
        .by(place=lambda t: t / max(len(t) - 1, 1)),
        NO_TENSOR,
    ),
)
