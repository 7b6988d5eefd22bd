"""Small cases of chapter 2: several matrices at once, since True alone tells little."""

from collections.abc import Callable

import numpy as np

from attncourse.checks.exercise import Case

ROWS_OF_SUM_1 = ((0.5, 0.5), (0.25, 0.75))
FIRST_COLUMN_ALONE = ((1.0, 0.0), (1.0, 0.0))
SUM_BELOW_1 = ((0.5, 0.5), (0.25, 0.5))
SUM_ABOVE_1 = ((0.5, 0.75), (0.5, 0.5))
ENTRY_BELOW_0 = ((1.5, -0.5), (0.0, 1.0))
ENTRY_SLIGHTLY_BELOW_0 = ((1.125, -0.125), (0.5, 0.5))
SUM_SLIGHTLY_ABOVE_1 = ((0.5, 0.625), (0.5, 0.5))
SUM_ROUNDED_BELOW_1 = ((0.7, 0.2, 0.1),)


def caller_for_matrices(**options: float) -> Callable:
    """Return the caller that asks of three matrices, one after the other."""

    def call_on_each(implementation: Callable, A, B, C) -> list:
        return [implementation(M, **options) for M in (A, B, C)]

    return call_on_each


def three_matrices_case(A: tuple, B: tuple, C: tuple, note: str = "", **options: float) -> Case:
    """Return the case of three matrices."""
    options_text = "".join(f", {name}={value}" for name, value in options.items())
    return Case(
        tuple(np.array(rows) for rows in (A, B, C)),
        use=caller_for_matrices(**options),
        note=note,
        shown=f"[is_row_stochastic(M{options_text}) for M in (A, B, C)]",
    )


def is_row_stochastic_cases() -> list[Case]:
    """Return cases of ``is_row_stochastic``: rows and columns, both sides of 1, below 0, atol."""
    rounding_note = "0.7 + 0.2 + 0.1 is 0.9999999999999999 here"
    return [
        three_matrices_case(ROWS_OF_SUM_1, SUM_BELOW_1, ENTRY_BELOW_0),
        three_matrices_case(ROWS_OF_SUM_1, SUM_BELOW_1, SUM_ABOVE_1),
        three_matrices_case(FIRST_COLUMN_ALONE, SUM_BELOW_1, ENTRY_BELOW_0),
        three_matrices_case(ROWS_OF_SUM_1, ENTRY_BELOW_0, SUM_ABOVE_1),
        three_matrices_case(FIRST_COLUMN_ALONE, SUM_ABOVE_1, SUM_ROUNDED_BELOW_1, rounding_note),
        three_matrices_case(ROWS_OF_SUM_1, SUM_BELOW_1, SUM_ROUNDED_BELOW_1, rounding_note),
        three_matrices_case(ROWS_OF_SUM_1, ENTRY_SLIGHTLY_BELOW_0, SUM_SLIGHTLY_ABOVE_1, atol=0.25),
        three_matrices_case(ENTRY_SLIGHTLY_BELOW_0, ENTRY_BELOW_0, SUM_SLIGHTLY_ABOVE_1, atol=0.25),
        three_matrices_case(ENTRY_SLIGHTLY_BELOW_0, SUM_BELOW_1, SUM_SLIGHTLY_ABOVE_1, atol=0.125),
        three_matrices_case(ROWS_OF_SUM_1, FIRST_COLUMN_ALONE, SUM_BELOW_1, atol=0.0),
    ]


CASES = {"mixing.is_row_stochastic": is_row_stochastic_cases}
