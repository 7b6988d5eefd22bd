"""Cases that several of the chapter's exercises share."""

import torch

from attncourse.checks.exercise import Case, Criterion, unchanged
from attncourse.checks.writing.cases import SCATTERED, CaseTable, Row, once_more, row, standard
from attncourse.checks.writing.modules import uniform_values

IMAGE_SIDES = "rows*patch columns*patch"

COUNTED_NUMBERS = torch.arange(16).double()


def table_rows_of(sizes: str, **special) -> list[Row]:
    """Return a row for each line: lengths, and behind a bar the batch."""
    table_rows = []
    for line in sizes.strip().splitlines():
        lengths, _, batch = line.partition("|")
        table_rows.append(row(lengths, batch=tuple(map(int, batch.split())), **special))
    return table_rows


# Every two axes are as long as each other in one of these; in the first no two are.
IMAGE_SIZES = """
c=3 rows=5 columns=7 patch=2
c=3 rows=2 columns=5 patch=2
c=1 rows=2 columns=2 patch=2
c=4 rows=2 columns=3 patch=2
c=6 rows=2 columns=3 patch=2
c=5 rows=3 columns=2 patch=3
c=1 rows=3 columns=2 patch=2
c=1 rows=2 columns=3 patch=2
"""
IMAGE_SIZES_IN_BATCHES = """
c=3 rows=5 columns=7 patch=2 | 2
c=3 rows=2 columns=3 patch=2 | 3
c=3 rows=2 columns=5 patch=2 | 4
c=3 rows=5 columns=2 patch=2 | 4
c=2 rows=2 columns=3 patch=2 | 6
c=2 rows=2 columns=3 patch=2 | 8
"""
ONE_PATCH = [row("c=3 rows=1 columns=1 patch=5", note="one patch")]
PIXEL_ROWS = table_rows_of(
    "c=3 rows=4 columns=5 patch=1\nc=3 rows=3 columns=4 patch=1", note="patches of one pixel"
)
STRIP_ROWS = table_rows_of(
    "c=2 rows=1 columns=2 patch=2\nc=2 rows=2 columns=1 patch=2\nc=2 rows=1 columns=2 patch=3",
    note="two patches",
)


def moving_criteria(
    table: CaseTable, by_hand: Case, order: str, sizes: str, batches: str, special, *more, **fixed
) -> tuple[Criterion, ...]:
    """Return the criteria of an exercise that moves numbers; ``order`` says where they stand."""
    rows = standard(table, **fixed)
    name = next(iter(table.floats))
    return (
        table.criterion(order, 3).on(by_hand, *table_rows_of(sizes)),
        table.criterion("one patch, one pixel, any memory layout", 1).on(*special),
        table.criterion("batches", 1).on(*rows.contiguous, *table_rows_of(batches)),
        table.criterion(SCATTERED, 1).on(*rows.not_contiguous),
        table.criterion("float32 and large entries", 1).on(*rows.numbers, once_more(by_hand)),
        table.criterion(f"gradients reach {name}", 1).on(*rows.gradients),
        *more,
        unchanged(),
    )


def refusal_criterion(*sizes: tuple, last: tuple = ()) -> Criterion:
    """Return the criterion on heights and widths that the side does not divide."""
    return Criterion("refuses sizes that do not fit", 1).on(
        lambda rng: [
            Case(
                (uniform_values(rng, *shape, *last), side), raises=ValueError, note=f"{side} a side"
            )
            for shape, side in sizes
        ]
    )


SIZES_THAT_DO_NOT_FIT = (
    ((3, 5, 7), 2),
    ((1, 4, 7), 2),
    ((2, 7, 4), 2),
    ((1, 4, 9), 6),
    ((2, 1, 3, 4), 6),
)
