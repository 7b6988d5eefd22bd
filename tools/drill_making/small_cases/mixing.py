"""Small cases of chapter 2: several matrices at once, since True alone tells little."""

from collections.abc import Callable

import numpy as np

from attncourse.checks.exercise import Case

HALVES = ((0.5, 0.5), (0.25, 0.75))
FIRST_COLUMN = ((1.0, 0.0), (1.0, 0.0))
TOO_LITTLE = ((0.5, 0.5), (0.25, 0.5))
TOO_MUCH = ((0.5, 0.75), (0.5, 0.5))
BELOW_0 = ((1.5, -0.5), (0.0, 1.0))
A_LITTLE_BELOW_0 = ((1.125, -0.125), (0.5, 0.5))
A_LITTLE_MORE = ((0.5, 0.625), (0.5, 0.5))
ROUNDED = ((0.7, 0.2, 0.1),)


def of_each(**options: float) -> Callable:
    """Return the caller that asks of three matrices, one after the other."""

    def of_three(implementation: Callable, A, B, C) -> list:
        return [implementation(M, **options) for M in (A, B, C)]

    return of_three


def three(A: tuple, B: tuple, C: tuple, note: str = "", **options: float) -> Case:
    """Return the case of three matrices."""
    given = "".join(f", {name}={value}" for name, value in options.items())
    return Case(
        tuple(np.array(rows) for rows in (A, B, C)),
        use=of_each(**options),
        note=note,
        shown=f"[is_row_stochastic(M{given}) for M in (A, B, C)]",
    )


def matrices() -> list[Case]:
    """Return cases of ``is_row_stochastic``: rows and columns, both sides of 1, below 0, atol."""
    rounding = "0.7 + 0.2 + 0.1 is 0.9999999999999999 here"
    return [
        three(HALVES, TOO_LITTLE, BELOW_0),
        three(HALVES, TOO_LITTLE, TOO_MUCH),
        three(FIRST_COLUMN, TOO_LITTLE, BELOW_0),
        three(HALVES, BELOW_0, TOO_MUCH),
        three(FIRST_COLUMN, TOO_MUCH, ROUNDED, rounding),
        three(HALVES, TOO_LITTLE, ROUNDED, rounding),
        three(HALVES, A_LITTLE_BELOW_0, A_LITTLE_MORE, atol=0.25),
        three(A_LITTLE_BELOW_0, BELOW_0, A_LITTLE_MORE, atol=0.25),
        three(A_LITTLE_BELOW_0, TOO_LITTLE, A_LITTLE_MORE, atol=0.125),
        three(HALVES, FIRST_COLUMN, TOO_LITTLE, atol=0.0),
    ]


CASES = {"mixing.is_row_stochastic": matrices}
