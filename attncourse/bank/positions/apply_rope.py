"""The exercise ``apply_rope``: queries or keys turned by their positions.

An answer gets float32 everywhere but in the criterion about precision.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from attncourse import positions
from attncourse.bank.positions.mistakes import (
    BACKWARDS,
    BASE_IGNORED,
    ODD_ACCEPTED,
    OF_THE_ANGLES,
    OF_THE_BLOCK,
    PAIRS_OF_HALVES,
    SIGN_LOST,
    WRONG_ORDER,
    Angles,
    halves,
    join_as_blocks,
    join_as_neighbours,
    plane,
)
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Drawn,
    Row,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def positions_from(first: int) -> Callable:
    return lambda rng, shape: first + np.arange(*shape)


def scattered_positions(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return positions in any order, one of them negative at least."""
    return rng.permutation(np.append(rng.permutation(30)[1 : shape[0]], -int(rng.integers(2, 30))))


def far_positions(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(90_000, 110_000, size=shape)


def fractional_positions(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.permutation(30)[: shape[0]] + rng.uniform(0.55, 0.9, shape)


TOKENS = CaseTable({"x": "... n d", "positions": Drawn("n", positions_from(0))}, how=normal)
ROWS = standard(TOKENS, d=6)
BY_HAND = Case(
    (tensor([[1, 2], [3, 4]]).float(), tensor([0, math.pi / 2]).float()),
    note="a quarter turn for token 1",
)
IN_FLOAT64 = row("n=7 d=6", note="float64")
ROW = row("n=7 d=6", dtype="float32")


def row_at(places: Callable, note: str, table_row: Row = ROW) -> Row:
    """Return the row with other positions."""
    return table_row.but(arguments={"positions": Drawn("n", places)}, note=note)


def in_float32(*rows: Row) -> tuple[Row, ...]:
    return tuple(table_row.but(dtype="float32") for table_row in rows)


# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_apply_rope(
    align=lambda angles, x: angles,
    cut=lambda x: (x[..., 0::2], x[..., 1::2]),
    block=plane,
    mix=lambda a, b, block: [p * a + q * b for p, q in block],
    join=join_as_neighbours,
    **clock,
):
    """Return an ``apply_rope`` made of decisions; an odd last feature would stay as it is."""
    clock = Angles(**clock)

    def apply_rope(x, positions, base=10000.0):
        d = x.shape[-1]
        a, b = cut(x[..., : d - d % 2])
        angles = [align(angle, x) for angle in clock.angles(positions, d, base, x.dtype)]
        turns = [block(angle.cos().to(x.dtype), angle.sin().to(x.dtype)) for angle in angles]
        turned = join(*(mix(a, b, turn)[feature] for feature, turn in enumerate(turns)))
        return torch.cat([turned, x[..., -1:]], dim=-1) if d % 2 else turned

    return apply_rope


def repeat_over_batch(angles, x):
    """Return the angles repeated over batch and heads as one axis."""
    return angles.repeat_interleave(x[..., 0, 0].numel(), dim=0).reshape(*x.shape[:-1], -1)


def overwrite_first(a, b, block):
    """Return both features, the second made of the first one's new value."""
    (p, q), (r, s) = block
    a = p * a + q * b
    return a, r * a + s * b


def look_up_positions(length: int | None) -> Callable:
    """Return a ``place`` that looks whole positions up in a table, of n rows unless given."""
    return lambda t: torch.arange(length or len(t))[t if t.frac().any() else t.long()].double()


OTHER_WAYS = (  # to compute the frequencies, rounded differently
    {"frequency": lambda base, i, d, c: 1 / base ** (2 * i / d)},
    {"frequency": lambda base, i, d, c: (2 * i * (-math.log(base) / d)).exp()},
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    positions.apply_rope,
    section="Chapter 11, “Turning queries and keys”",
    difficulty=3,
    minutes=25,
    criteria=(
        TOKENS.criterion("every pair turned by its position", 3).on(BY_HAND, ROW.but("d=10")),
        TOKENS.criterion("the positions that are given", 2).on(
            row_at(positions_from(3), "from position 3 on"),
            row_at(scattered_positions, "in any order, negative too"),
            row_at(fractional_positions, "not whole"),
        ),
        TOKENS.criterion("one token, one pair, large numbers", 1).on(
            row_at(positions_from(3), "one token", ROW.but("n=1")),
            ROW.but("d=2", note="one pair"),
            ROW.but("n=6", note="n = d"),
            *in_float32(ROWS.extreme[0]),
            once_more(BY_HAND),
        ),
        TOKENS.criterion("batches", 1).on(*in_float32(*ROWS.batches)),
        Criterion("another base", 1).on(
            lambda rng: TOKENS(ROW.but(arguments={"base": float(rng.uniform(2, 50))}))(rng)
        ),
        TOKENS.criterion("angles in float64, results in the dtype of x", 1).on(
            IN_FLOAT64,
            row_at(far_positions, "float32, far from 0"),
            row_at(far_positions, "float64, far from 0", IN_FLOAT64),
            replace(ROWS.extreme[1], note="float64, small, each row adds up to 0"),
        ),
        TOKENS.criterion("gradients reach x", 1).on(*in_float32(*ROWS.gradients)),
        Criterion("an odd d is refused", 1).on(
            lambda rng: [replace(TOKENS.case(rng, ROW.but("d=5", note="odd d")), raises=ValueError)]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_apply_rope,
        *OF_THE_ANGLES,
        BASE_IGNORED,
        SIGN_LOST,
        ODD_ACCEPTED,
        BACKWARDS,
        *OF_THE_BLOCK,
        mistake("""the first feature is overwritten before it is used
            You write the new first feature of a pair and then make the second one of it. Both are
            made of the old ones: compute the two before you write either.""").by(
            mix=overwrite_first
        ),
        mistake("""an encoding is added
            You add sines and cosines to x. RoPE adds nothing: it turns each pair of features.
        """).by(mix=lambda a, b, block: (a + block[1][0], b + block[0][0])),
        PAIRS_OF_HALVES,
        mistake("""neighbours on one side, halves on the other
            You cut x into even and odd features and join half by half, or the other way round, so
            that features change places. Both in turns: `x[..., 0::2]` and `x[..., 1::2]`, then
            `torch.stack([…, …], dim=-1).flatten(-2)`.""")
        .by(join=join_as_blocks)
        .by(cut=halves),
        WRONG_ORDER,
        mistake("""positions of its own
            You turn token t by t, or count from the first position that is given, or on from it.
            They may start anywhere and come in any order: position 0 is not turned, whichever token
            stands there.""")
        .by(place=lambda t: torch.arange(len(t)).double())
        .by(place=lambda t: t - t[0])
        .by(place=lambda t: t - t.min())
        .by(place=lambda t: t[0] + torch.arange(len(t)))
        .by(place=lambda t: t[0].trunc() + torch.arange(len(t))),
        mistake("""positions taken for whole numbers
            You cut positions to whole numbers, or look them up in a table. They may be between,
            negative, or beyond any table: `positions.double()` times the frequency.""")
        .by(place=lambda t: t.trunc())
        .by(place=torch.floor)
        .by(place=torch.round)
        .by(*({"place": look_up_positions(length)} for length in (None, 2048))),
        mistake("""positions along another axis
            The tokens are the second axis from the end, and every sequence has all positions:
            angles of shape (n, d/2) broadcast by themselves. Yours run along the first axis or the
            third from the end, or are shared out over the batch.""")
        .by(align=lambda angles, x: angles.reshape(len(angles), *[1] * (x.ndim - 2), -1))
        .by(align=lambda angles, x: angles[:, None])
        .by(align=repeat_over_batch),
        mistake("""angles in float32
            Your angles are float32, torch's default, or have the dtype of x: at position 100 000
            they are wrong by a thousandth. `torch.arange(…, dtype=torch.float64)`, then cast the
            cosines and sines to x.dtype.""")
        .by(kind=lambda dtype: torch.float32)
        .by(kind=lambda dtype: torch.float32, place=lambda t: t.double())
        .by(turn=lambda angles: angles.float())
        .by(align=lambda angles, x: angles.to(x.dtype))
        .by(
            *(
                {"kind": kind} | way
                for kind in (lambda dtype: torch.float32, lambda dtype: dtype)
                for way in ({}, *OTHER_WAYS)
            )
        ),
    ),
)
