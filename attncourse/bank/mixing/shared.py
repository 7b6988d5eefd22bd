"""Definitions that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Rng
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.numpy_mistakes import over
from attncourse.checks.writing.recipes import mistake


def case_of_matrix(*rows, note="", raises=None, **kwargs) -> Case:
    """Return a case with this matrix."""
    return Case((np.array(rows),), kwargs, note=note, raises=raises)


def repeated_call_cases(rng: Rng) -> list[Case]:
    """Return calls with a number of tokens only, the first once more after the others."""
    three = Case((3,))
    return [three, Case((5,)), once_more(three)]


def any_number_cases(rng: Rng) -> list[Case]:
    return [Case((n,)) for n in (int(rng.integers(6, 12)), 2, 17)]


ANY_NUMBER = Criterion("any number of tokens", 1).on(any_number_cases)
ONE_TOKEN = Criterion("one token", 1).on(lambda rng: [Case((1,), note="n = 1")])


def divide_by_row_number(number):
    """Return the option that divides row i by a number of its own."""
    return {"divide": lambda W, sums, *width: W / number(np.arange(len(W)), *width)[:, None]}


ROWS_NOT_NORMALISED = mistake("""the rows are not normalised
    You give every seen token the whole weight. Divide each row by the number of its tokens.""").by(
    divide=lambda W, *sums: W
)
SHARES_CUT_TO_WHOLE = mistake("""the shares are cut to whole numbers
    `1 // n`, and an array made with `dtype=int`, cut a share down to 0. Divide with `/`, and write
    into an array of floats.""").by(divide=lambda W, *sums: np.floor(over(W, sums[0])))
