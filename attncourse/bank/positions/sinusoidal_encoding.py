"""The exercise ``sinusoidal_encoding``: rows of sines and cosines."""

import torch

from attncourse import positions
from attncourse.bank.positions.cases import FIXED, case_in_default_dtype
from attncourse.bank.positions.mistakes import (
    BASE_IGNORED,
    NO_TENSOR,
    ODD_ACCEPTED,
    OF_THE_ANGLES,
    WRONG_ORDER,
    Angles,
    join_as_blocks,
    join_as_neighbours,
)
from attncourse.checks.exercise import Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

BY_HAND = case_in_default_dtype(4, 4, note="two pairs, of frequency 1 and 1/100")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_sinusoidal_encoding(join=join_as_neighbours, finish=lambda PE: PE, **clock):
    """Return a ``sinusoidal_encoding`` made of decisions."""
    clock = Angles(**clock)

    def sinusoidal_encoding(n, d, base=10000.0):
        for_sine, for_cosine = clock.angles(torch.arange(n), d, base)
        return finish(join(for_sine.sin(), for_cosine.cos()).float())

    return sinusoidal_encoding


def sines_in_even_rows(sin, cos):
    """Return sines where the position is even, cosines where it is odd."""
    even = torch.arange(len(sin))[:, None] % 2 == 0
    return torch.where(even, join_as_neighbours(sin, sin), join_as_neighbours(cos, cos))


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
                case_in_default_dtype(5, 10),
                case_in_default_dtype(int(rng.integers(19, 40)), 2 * int(rng.integers(6, 12))),
            ]
        ),
        FIXED.criterion("one position, one pair, any n and d", 1).on(
            case_in_default_dtype(1, 6, note="one position"),
            case_in_default_dtype(2, 8, note="two positions"),
            case_in_default_dtype(7, 2, note="one pair"),
            case_in_default_dtype(6, 6, note="n = d"),
            case_in_default_dtype(3, 16, note="more features than positions"),
            once_more(BY_HAND),
        ),
        Criterion("another base", 1).on(
            lambda rng: [
                case_in_default_dtype(5, 10, base=100.0),
                case_in_default_dtype(5, 8, base=float(rng.uniform(2, 50))),
            ]
        ),
        FIXED.criterion("an odd d is refused", 1).on(
            case_in_default_dtype(5, 7, note="odd d", raises=ValueError),
            case_in_default_dtype(3, 1, raises=ValueError),
        ),
    ),
    mistakes=made(
        compose_sinusoidal_encoding,
        *OF_THE_ANGLES,
        BASE_IGNORED,
        ODD_ACCEPTED,
        mistake("""the angle has a minus
            Your sines have the wrong sign: you take those of −t · base^(−2i/d). The minus belongs
            to the exponent alone.""").by(turn=lambda angles: -angles),
        mistake("""all sines, then all cosines
            You put the sines into one half and the cosines into the other. They take turns here:
            sine in column 2i, cosine in column 2i + 1.""")
        .by(join=join_as_blocks)
        .by(join=lambda sin, cos: join_as_blocks(cos, sin)),
        mistake("""a pair is not sine and cosine
            Column 2i is the sine, column 2i + 1 the cosine, in every row: row 0 is 0, 1, 0, 1.
            Yours are exchanged, or hold the same function twice.""")
        .by(join=lambda sin, cos: join_as_neighbours(cos, sin))
        .by(join=lambda sin, cos: join_as_neighbours(sin, sin))
        .by(join=lambda sin, cos: join_as_neighbours(cos, cos))
        .by(join=sines_in_even_rows),
        WRONG_ORDER,
        mistake("""positions divided by n
            You divide the positions by their number, so that they run from 0 to 1. A position is a
            whole number, and its row is the same in any sequence.""")
        .by(place=lambda t: t / len(t))
        .by(place=lambda t: t / max(len(t) - 1, 1)),
        NO_TENSOR,
    ),
)
