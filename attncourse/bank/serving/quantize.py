"""The exercise ``quantize``: numbers in a few bits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from attncourse import serving
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Row,
    each_result,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CODED_PARTS = partial(callers.call_for_parts, ("codes", "scale", "minimum"), ("codes",))


def between_steps(rng: Rng, shape: tuple[int, ...], bits: int, block: int) -> np.ndarray:
    """Return numbers whose codes no rounding error can change: at most 0.3 of a step from one."""
    blocks = (*shape[:-1], shape[-1] // block, block)
    steps = rng.integers(0, 2**bits, blocks) + rng.uniform(-0.3, 0.3, blocks)
    ends = rng.permuted(np.broadcast_to(np.arange(block), blocks), axis=-1)
    steps = np.where(ends == 0, 0, np.where(ends == 1, 2**bits - 1, steps.clip(0, 2**bits - 1)))
    each = (*blocks[:-1], 1)
    least, scale = rng.uniform(-1, 1, each), rng.uniform(0.05, 0.9, each)
    return (least + scale * steps).reshape(shape)


@dataclass(frozen=True)
class QuantizeTable(CaseTable):
    """A table of numbers, bits and block; the last two are the row's arguments."""

    spec: Any = field(default_factory=lambda: {"x": "... d"})

    def case(self, rng: Rng, row: Row) -> Case:
        drawn = CaseTable(self.spec, how=partial(between_steps, **row.arguments))
        return drawn.case(rng, row.but(use=CODED_PARTS))


CASES = QuantizeTable()
ROW = row("d=12", arguments={"bits": 4, "block": 4})
ROWS = standard(CASES, d=12)
FOUR_BITS, TWO_BITS = {"bits": 4, "block": 3}, {"bits": 2, "block": 6}
THREE_BITS = {"bits": 3, "block": 2}


def case_of_numbers(values: list, bits: int, block: int, note: str = "") -> Case:
    return Case((tensor(values),), {"bits": bits, "block": block}, use=CODED_PARTS, note=note)


BY_HAND = case_of_numbers([[0, 2, 1, 3], [-5, 1, -1, -3]], 2, 4, "steps of 1 and of 2")
HALFWAY_NUMBERS = case_of_numbers(
    [[0, 0.5, 1.5, 3], [2, 5.0, 2.5, 4.5]], 2, 4, "halfway between two steps"
)
MORE_HALFWAY_NUMBERS = case_of_numbers(
    [-7, -6.5, -3.5, -2.5, -1.5, -4.5, -5.5, 8], 4, 8, "halfway again"
)
EQUAL_NUMBERS = case_of_numbers([[0.1, 0.1, 0.1, 2, 0, 1]], 3, 3, "a block of equal numbers")
ALL_NUMBERS_EQUAL = case_of_numbers(
    [[0.3] * 4, [0.0] * 4, [-7.7] * 4], 4, 2, "nothing but equal numbers"
)
BLOCKS_OF_ONE = case_of_numbers([[3, -1, 0.5]], 4, 1, "one number a block")


def refused_case(values: list, bits: int, block: int, note: str) -> Case:
    return Case((tensor(values), bits, block), note=note, raises=ValueError)


EIGHT_NUMBERS = [[0.0, 1, 2, 3, 4, 5, 6, 7]]

# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_bad_sizes(x, bits, block):
    if not 2 <= bits <= 8 or x.shape[-1] % block:
        raise ValueError("expected 2 to 8 bits and a block that divides the last axis")
    return x, bits, block


def runs_of_row(x, block):
    return x.unflatten(-1, (-1, block))


def join_blocks(blocks):
    return blocks.flatten(-2)


def replace_0_by_1(scale):
    return scale.where(scale > 0, 1)


@composition
def compose_quantize(
    refuse=refuse_bad_sizes,
    read=as_it_is,
    cut=runs_of_row,
    ends=lambda blocks, x: (blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)),
    steps=lambda bits: 2**bits - 1,
    size=lambda low, high, steps: (high - low) / steps,
    guard=replace_0_by_1,
    divide=lambda blocks, low, high, step: (blocks - low) / step,
    nearest=torch.round,
    code=lambda codes, bits: codes,
    join=join_blocks,
    returned_scale=as_it_is,
    returned_minimum=lambda low, high, scale: low,
    each=lambda numbers, block: numbers[..., 0],
    order=lambda codes, scale, minimum: (codes, scale, minimum),
    back=lambda codes, low, scale: codes,
):
    """Return ``quantize`` made of decisions."""

    def quantize(x, bits, block):
        x, bits, block = refuse(x, bits, block)
        blocks = cut(read(x), block)
        low, high = ends(blocks, read(x))
        scale = size(low, high, steps(bits))
        codes = code(nearest(divide(blocks, low, high, guard(scale))), bits)
        codes = join(back(codes, low, scale))
        scale, minimum = returned_scale(scale), returned_minimum(low, high, scale)
        return order(codes, each(scale, block), each(minimum, block))

    return quantize


def ends_over_axes(x, blocks, axes) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ends over these axes of x, for every block."""
    shape = blocks[..., :1].shape
    low, high = (f(x, axes, keepdim=True)[..., None] for f in (torch.amin, torch.amax))
    return low.expand(shape), high.expand(shape)


def ends_of_all(blocks, x):
    return ends_over_axes(x, blocks, tuple(range(x.ndim)))


def ends_of_row(blocks, x):
    return ends_over_axes(x, blocks, (-1,))


def ends_of_place(blocks, x):
    """Return the ends of a block's place in the row, over all rows."""
    axes = (*range(blocks.ndim - 2), -1)
    shape = blocks[..., :1].shape
    return tuple(f(blocks, axes, keepdim=True).expand(shape) for f in (torch.amin, torch.amax))


def symmetric_ends(blocks, x):
    """Return ends at the largest size, below and above 0."""
    size = blocks.abs().amax(-1, keepdim=True)
    return -size, size


def signed_codes(half: Callable[[int], int]) -> dict[str, Any]:
    """Return the options in which codes count from 0, up and down, with no minimum."""
    return {
        "ends": symmetric_ends,
        "size": lambda low, high, steps: high / half(steps),
        "divide": lambda blocks, low, high, step: blocks / step,
        "returned_minimum": lambda low, high, scale: torch.zeros_like(low),
    }


def runs_of_columns() -> dict[str, Any]:
    """Return the option in which blocks are runs of a column, where rows can be cut so."""

    def cut(x, block):
        columns = x.mT if x.ndim > 1 and x.shape[-2] % block == 0 else x
        return runs_of_row(columns, block)

    return {"cut": cut}


def every_nth_number(x, block):
    return x.unflatten(-1, (block, -1)).mT


def refuse_sizes(bits: Callable = lambda bits: 2 <= bits <= 8, divides: bool = True):
    """Return a refusal of other bits, or none of a block that does not divide."""

    def refuse(x, bits_, block):
        if not bits(bits_) or (divides and x.shape[-1] % block):
            raise ValueError("refused")
        return x, bits_, block

    return refuse


def drop_incomplete_block(x, bits, block):
    """Return the numbers without those left over at the end of a row."""
    refuse_bad_sizes(x[..., :1], bits, 1)
    return x[..., : x.shape[-1] // block * block], bits, block


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    serving.quantize,
    section="Chapter 20, “Smaller numbers”",
    difficulty=2,
    minutes=15,
    criteria=(
        *each_result(
            ("codes", "scale", "minimum"),
            CASES(
                BY_HAND,
                ROW.but(batch=(3,)),
                row("d=15", batch=(2,), arguments=FOUR_BITS),
                row("d=6", batch=(6,), arguments=THREE_BITS, note="as many rows as numbers"),
                row("d=12", batch=(12,), arguments=TWO_BITS, note="as many rows as numbers"),
            ),
        ),
        CASES.criterion("other numbers of bits", 1).on(
            *(row("d=12", batch=(5,), arguments={"bits": b, "block": 4}) for b in (2, 3, 5, 6, 7)),
            row("d=12", batch=(2,), arguments={"bits": 8, "block": 6}, note="8 bits"),
        ),
        CASES.criterion("halfway between two steps: to the even one", 1).on(
            HALFWAY_NUMBERS, MORE_HALFWAY_NUMBERS
        ),
        CASES.criterion("a block of equal numbers", 1).on(
            EQUAL_NUMBERS, ALL_NUMBERS_EQUAL, BLOCKS_OF_ONE
        ),
        CASES.criterion("batches, one block a row", 1).on(
            *(
                table_row.but("d=12", arguments=FOUR_BITS)
                for table_row in ROWS.batches
                if table_row.batch != (4,)
            ),
            row(
                "d=4", batch=(4,), arguments={"bits": 3, "block": 2}, note="every axis of length 4"
            ),
            row("d=6", batch=(3,), arguments={"bits": 4, "block": 6}, note="one block a row"),
        ),
        CASES.criterion("float32, large and small numbers", 1).on(
            *(table_row.but("d=12", arguments=FOUR_BITS) for table_row in ROWS.numbers),
            ROW.but(factor=1e-8, note="very small"),
            once_more(BY_HAND),
        ),
        Criterion("bits outside 2 to 8, a block that does not divide: ValueError", 1).on(
            lambda rng: [
                refused_case(EIGHT_NUMBERS, 1, 4, "1 bit"),
                refused_case(EIGHT_NUMBERS, 9, 4, "9 bits"),
                refused_case(EIGHT_NUMBERS, 4, 3, "blocks of 3 in 8 numbers"),
                refused_case(EIGHT_NUMBERS, 4, 16, "a block longer than the row"),
            ]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_quantize,
        mistake("""one scale for the whole array
            You take the least and the greatest of all numbers. Each block has its own: a large
            number elsewhere must not make its steps coarser.""")
        .by(ends=ends_of_all)
        .by(ends=ends_of_all, each=lambda numbers, block: numbers.flatten()[0]),
        mistake("""one scale for each row
            You take the least and the greatest of the row. Each block of it has its own.""")
        .by(ends=ends_of_row)
        .by(ends=ends_of_row, each=lambda numbers, block: numbers[..., :1, 0])
        .by(ends=ends_of_row, each=lambda numbers, block: numbers[..., 0, 0]),
        mistake("""one scale for a block of all rows
            You take the ends over the batch as well. A block is so many neighbours of one row.
        """).by(ends=ends_of_place),
        mistake("""divided by 2^bits
            You divide by 2^bits. Between the first and the last of 2^bits codes lie 2^bits − 1
            steps: the greatest number would get a code too large by one.""")
        .by(steps=lambda bits: 2**bits)
        .by(
            steps=lambda bits: 2**bits,
            code=lambda codes, bits: codes.clamp(max=2**bits - 1),
        ),
        mistake("""bins in place of steps
            You cut the range into 2^bits bins and take the number of the bin. A code is the
            nearest of 2^bits values, of which the first is the least number and the last the
            greatest: divide by 2^bits − 1 and round.""").by(
            steps=lambda bits: 2**bits,
            nearest=torch.floor,
            code=lambda codes, bits: codes.clamp(max=2**bits - 1),
        ),
        mistake("""another number of steps
            You divide by another number. Codes go from 0 to 2^bits − 1.""")
        .by(steps=lambda bits: 2**bits - 2)
        .by(steps=lambda bits: 2 ** (bits - 1) - 1)
        .by(steps=lambda bits: bits)
        .by(steps=lambda bits: 2 ** (bits - 1)),
        mistake("""bits are ignored
            You use the same number of steps whatever `bits` says.""")
        .by(steps=lambda bits: 255)
        .by(steps=lambda bits: 15),
        mistake("""halves are rounded up
            You round halfway numbers up, `floor(x + 0.5)`. Here, as in `torch.round`, they go to
            the even neighbour: 0.5 to 0, 1.5 to 2.""").by(nearest=lambda x: (x + 0.5).floor()),
        mistake("""rounded down
            You cut off what is behind the point. Each number goes to the *nearest* step:
            `.round()`.""")
        .by(nearest=torch.floor)
        .by(nearest=torch.trunc),
        mistake("""rounded up
            Your codes are rounded up. Each number goes to the nearest step: `.round()`.""").by(
            nearest=torch.ceil
        ),
        mistake("""not rounded
            Your codes are no whole numbers. Round them.""").by(nearest=as_it_is),
        mistake("""blocks down the columns
            Your blocks run down a column. They are neighbours along the last axis:
            `x.unflatten(-1, (-1, block))`.""").by(
            runs_of_columns() | {"join": lambda blocks: blocks.flatten(-2)}
        ),
        mistake("""what is far apart makes a block
            You put numbers that lie far apart into one block. A block is `block` neighbours:
            `unflatten(-1, (-1, block))`, not `(block, -1)`.""")
        .by(cut=every_nth_number, join=lambda blocks: blocks.mT.flatten(-2))
        .by(cut=every_nth_number),
        mistake("""as many blocks as a block has numbers
            You cut the row into `block` blocks. Each has `block` numbers.""").by(
            cut=lambda x, block: x.unflatten(-1, (block, -1))
        ),
        mistake("""the same distance to both sides of 0
            You take the greatest size, max |x|, for both ends. Numbers that are all positive would
            then use half of the codes: take the least and the greatest.""")
        .by(ends=symmetric_ends)
        .by(*(signed_codes(half) for half in (lambda n: n // 2, lambda n: (n + 1) // 2))),
        mistake("""the least is taken for 0
            You take 0 for the lower end. It is the least number of the block.""").by(
            ends=lambda blocks, x: (
                torch.zeros_like(blocks[..., :1]),
                blocks.amax(-1, keepdim=True),
            )
        ),
        mistake("""0 is counted among the numbers
            You let every block reach to 0, as where 0 has to keep a code of its own. Its ends are
            the least and the greatest number that it holds.
        """).by(
            ends=lambda blocks, x: (
                blocks.amin(-1, keepdim=True).clamp(max=0),
                blocks.amax(-1, keepdim=True).clamp(min=0),
            )
        ),
        mistake("""a block of equal numbers gives NaN
            Where all numbers are equal the scale is 0, and you divide by it. Such a block has
            codes 0: divide by 1 there.""")
        .by(guard=as_it_is)
        .by(guard=as_it_is, code=lambda codes, bits: codes.nan_to_num(nan=-1)),
        mistake("""the scale of a block of equal numbers
            Where all numbers are equal you return another scale than 0. Put something else in its
            place only where you divide.""")
        .by(size=lambda low, high, steps: replace_0_by_1((high - low) / steps))
        .by(size=lambda low, high, steps: ((high - low) / steps).clamp(min=1e-8))
        .by(size=lambda low, high, steps: ((high - low) / steps).clamp(min=1e-5)),
        mistake("""a guard in the scale
            You add a small number to every scale. Guard the division alone, and only where the
            scale is 0.""").by(
            *(
                {"size": lambda low, high, steps, guard=guard: (high - low) / steps + guard}
                for guard in (1e-6, 1e-5, 1e-8, 1e-9, 1e-10, 1e-12)
            )
        ),
        mistake("""the minimum is not taken off
            You divide x by the scale. A code counts steps from the least number: `(x − minimum) /
            scale`.""")
        .by(divide=lambda blocks, low, high, step: blocks / step)
        .by(
            divide=lambda blocks, low, high, step: blocks / step,
            code=lambda codes, bits: codes.clamp(0, 2**bits - 1),
        ),
        mistake("""counted from the greatest
            You count the steps down from the greatest number. They count up from the least.""")
        .by(divide=lambda blocks, low, high, step: (high - blocks) / step)
        .by(
            divide=lambda blocks, low, high, step: (high - blocks) / step,
            returned_minimum=lambda low, high, scale: high,
        ),
        mistake("""multiplied by the scale
            You multiply by the scale. How many steps a number is away is found by dividing.""").by(
            divide=lambda blocks, low, high, step: (blocks - low) * step
        ),
        mistake("""the maximum comes back
            You return the greatest number of each block. Its least is asked for.""").by(
            returned_minimum=lambda low, high, scale: high
        ),
        mistake("""a zero point comes back
            You return which code stands for 0, −minimum / scale. Asked for is the minimum itself,
            in the unit of x.""")
        .by(returned_minimum=lambda low, high, scale: (-low / replace_0_by_1(scale)).round())
        .by(returned_minimum=lambda low, high, scale: -low / replace_0_by_1(scale)),
        mistake("""the scale is turned over
            You return steps a unit. Scale is units a step: (max − min) / (2^bits − 1).""").by(
            returned_scale=lambda scale: 1 / replace_0_by_1(scale)
        ),
        mistake("""the range in place of the scale
            You return max − min. The scale is one step of it: divided by 2^bits − 1.""").by(
            size=lambda low, high, steps: high - low,
            guard=lambda scale: replace_0_by_1(scale) / 15,
        ),
        mistake("""codes begin below 0
            You shift the codes so that half of them are negative. They go from 0 to 2^bits − 1.
        """).by(code=lambda codes, bits: codes - 2 ** (bits - 1)),
        mistake("""8 bits do not fit into int8
            A signed byte ends at 127, and larger codes come out negative. `torch.uint8` holds 0 to
            255.""").by(code=lambda codes, bits: codes.to(torch.int64).to(torch.int8)),
        mistake("""numbers come back, not codes
            You return what the codes stand for. That is `dequantize`; here the codes themselves
            are asked for.""").by(back=lambda codes, low, scale: codes * scale + low),
        mistake("""an axis too many
            Scale and minimum have an axis of length 1 at the end, or the codes are still in
            blocks. Asked for are `(..., d)` and `(..., d / block)`.""")
        .by(each=lambda numbers, block: numbers)
        .by(join=as_it_is),
        mistake("""a scale for every number
            You repeat scale and minimum for each number. There is one of each a block.""").by(
            each=lambda numbers, block: numbers[..., 0].repeat_interleave(block, -1)
        ),
        mistake("""returned in another order
            Asked for is (codes, scale, minimum), in this order.""")
        .by(order=lambda codes, scale, minimum: (codes, minimum, scale))
        .by(order=lambda codes, scale, minimum: (scale, minimum, codes)),
        mistake("""something is missing
            Three things come back: (codes, scale, minimum).""")
        .by(order=lambda codes, scale, minimum: (codes, scale))
        .by(order=lambda codes, scale, minimum: codes),
        mistake("""no tensors come back
            You return NumPy arrays, or lists. Codes, scale and minimum are torch tensors.""")
        .by(order=lambda codes, scale, minimum: (codes.numpy(), scale.numpy(), minimum.numpy()))
        .by(order=lambda codes, scale, minimum: (codes.tolist(), scale.tolist(), minimum.tolist())),
        mistake("""computed in float32
            You turn the numbers into float32, or half of that. Scale and minimum keep the dtype of
            x.""")
        .by(read=lambda x: x.float())
        .by(read=lambda x: x.half()),
        mistake("""what is to be refused is not
            Bits outside 2 to 8, and a block that does not divide the last axis, are a
            `ValueError`.""")
        .by(refuse=lambda x, bits, block: (x, bits, block))
        .by(refuse=refuse_sizes(lambda bits: True))
        .by(refuse=refuse_sizes(divides=False))
        .by(refuse=drop_incomplete_block)
        .by(refuse=refuse_sizes(lambda bits: bits <= 8))
        .by(refuse=refuse_sizes(lambda bits: bits >= 2)),
        mistake("""what is right is refused
            2 and 8 bits are right, a block may be one number or the whole row, and numbers may be
            equal.""")
        .by(refuse=refuse_sizes(lambda bits: 2 < bits <= 8))
        .by(refuse=refuse_sizes(lambda bits: 2 <= bits < 8))
        .by(refuse=refuse_sizes(lambda bits: bits in (2, 4, 8))),
    ),
)
