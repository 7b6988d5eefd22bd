"""The exercise ``rotation_matrix``: the matrix that leads from a position to another."""

import torch

from attncourse import positions
from attncourse.bank.positions.cases import FIXED, case_in_default_dtype
from attncourse.bank.positions.mistakes import (
    BACKWARDS,
    NO_TENSOR,
    ODD_ACCEPTED,
    OF_THE_ANGLES,
    OF_THE_BLOCK,
    PAIRS_OF_HALVES,
    SIGN_LOST,
    Angles,
    plane,
)
from attncourse.checks.exercise import Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

BY_HAND = case_in_default_dtype(1, 2, note="one pair")

# --- decisions and mistakes ----------------------------------------------------------------------


def blocks_on_diagonal(rows):
    """Return blocks of 2 by 2 on a diagonal; ``rows`` are theirs, of two entries each."""
    return torch.block_diag(*torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2))


def diagonals_in_quarters(rows):
    return torch.cat([torch.cat([torch.diag(entry) for entry in row], dim=1) for row in rows])


def overlapping_blocks(rows):
    """Return blocks that begin in row i, so that each writes over one before."""
    R = torch.zeros(2 * len(rows[0][0]), 2 * len(rows[0][0]), dtype=torch.float64)
    for i in range(len(rows[0][0])):
        R[i : i + 2, i : i + 2] = torch.tensor([[entry[i] for entry in row] for row in rows])
    return R


@composition
def compose_rotation_matrix(
    block=plane,
    place_blocks=blocks_on_diagonal,
    step=lambda rotation_to, k: rotation_to(k),
    finish=lambda R: R,
    **clock,
):
    """Return a ``rotation_matrix`` made of decisions.

    A pair is (sine, cosine) here, so that it turns the other way than the plane.
    """
    clock = Angles(**clock)

    def rotation_matrix(k, d):
        def rotation_to(k):
            angles = clock.angles(torch.tensor(k), d)
            return place_blocks([block(a.cos(), -a.sin())[row] for row, a in enumerate(angles)])

        return finish(step(rotation_to, k).float())

    return rotation_matrix


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    positions.rotation_matrix,
    section="Chapter 11, “Moving on is turning”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("leads from every position to the one k places on", 3).on(
            lambda rng: [
                BY_HAND,
                case_in_default_dtype(1, 4, note="two pairs, of frequency 1 and 1/100"),
                *(
                    case_in_default_dtype(k, d)
                    for k, d in ((3, 6), (int(rng.integers(5, 40)), 10), (7, 16))
                ),
                once_more(BY_HAND),
            ]
        ),
        Criterion("no step, and steps back", 2).on(
            lambda rng: [
                case_in_default_dtype(0, 4, note="no step"),
                case_in_default_dtype(-1, 4, note="one step back"),
                case_in_default_dtype(-int(rng.integers(2, 30)), 8),
                case_in_default_dtype(-2, 2, note="back, one pair"),
            ]
        ),
        FIXED.criterion("an odd d is refused", 1).on(
            case_in_default_dtype(2, 5, note="odd d", raises=ValueError),
            case_in_default_dtype(0, 1, raises=ValueError),
        ),
    ),
    excludes=(("base given", "The base is 10000: `rotation_matrix(k, d)`."),),
    mistakes=made(
        compose_rotation_matrix,
        *OF_THE_ANGLES,
        SIGN_LOST,
        ODD_ACCEPTED,
        BACKWARDS.said(
            "Your matrix is the transposed one, R(−k): it leads k places back, or is right for "
            "rows in the place of columns. The pair is (sine, cosine), so its block is "
            "[[cos, sin], [−sin, cos]] and not that of the plane in textbooks."
        ),
        *OF_THE_BLOCK,
        PAIRS_OF_HALVES.here(place_blocks=diagonals_in_quarters),
        mistake("""blocks one row apart
            Your block i begins in row i, so each writes over a part of the one before. It begins in
            row 2i: `R[2*i : 2*i + 2, 2*i : 2*i + 2]`.""").by(place_blocks=overlapping_blocks),
        mistake("""the entries take k, not the angle
            You multiply the entries by k, or raise each to the power k (`R ** k`). Turning k times
            is `torch.linalg.matrix_power(R, k)`, or k times the angle.""")
        .by(step=lambda turned, k: k * turned(1))
        .by(step=lambda turned, k: turned(1).float() ** k),
        NO_TENSOR,
    ),
)
