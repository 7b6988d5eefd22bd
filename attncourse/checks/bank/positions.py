"""The exercises of chapter 11, positions.

``sinusoidal_encoding``, ``rotation_matrix`` and ``alibi_bias`` get no tensor whose dtype they could
keep, so a float64 answer is rounded before it is compared, and positions stay so small that angles
in float32 are right. ``apply_rope`` gets float32 everywhere but in the criterion about precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from attncourse import positions
from attncourse.checks.callers import call_in_default_dtype
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import BOTH_AXES, IN_HALVES
from attncourse.checks.variants.variant import Variant, rewordings
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
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases -----------------------------------------------------------------------------------


def plain(*args, note: str = "", raises: type[Exception] | None = None, **kwargs) -> Case:
    """A case whose answer may have torch's default dtype or float64."""
    return Case(args, kwargs, note=note, raises=raises, use=call_in_default_dtype)


FIXED = CaseTable({})  # nothing is drawn
SINUSOIDAL_BY_HAND = plain(4, 4, note="two pairs, of frequency 1 and 1/100")
ROTATION_BY_HAND = plain(1, 2, note="one pair")
ALIBI_BY_HAND = plain(2, 2, note="slopes 1/16 and 1/256")


def counted_from(first: int) -> Callable:
    return lambda rng, shape: first + np.arange(*shape)


def anywhere(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Positions in any order, one of them negative at least."""
    return rng.permutation(np.append(rng.permutation(30)[1 : shape[0]], -int(rng.integers(2, 30))))


def far(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(90_000, 110_000, size=shape)


def between_whole(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.permutation(30)[: shape[0]] + rng.uniform(0.55, 0.9, shape)


TOKENS = CaseTable({"x": "... n d", "positions": Drawn("n", counted_from(0))}, how=normal)
ROWS = standard(TOKENS, d=6)
ROPE_BY_HAND = Case(
    (tensor([[1, 2], [3, 4]]).float(), tensor([0, math.pi / 2]).float()),
    note="a quarter turn for token 1",
)
IN_FLOAT64 = row("n=7 d=6", note="float64")
ROW = row("n=7 d=6", dtype="float32")


def at(places: Callable, note: str, one: Row = ROW) -> Row:
    """A row with other positions."""
    return one.but(given={"positions": Drawn("n", places)}, note=note)


def single(*rows: Row) -> tuple[Row, ...]:
    return tuple(one.but(dtype="float32") for one in rows)


# --- decisions -------------------------------------------------------------------------------


def halved(d):
    if d % 2:
        raise ValueError(f"d is odd: {d}")
    return d // 2


@dataclass(frozen=True)
class Angles:
    """Angles as decisions; each is right unless another option is given.

    ``count`` is the number of pairs, ``frequency`` that of pair i, for the first of its features
    (c = 0) or the second (c = 1). ``base`` and ``place`` say which base and positions are used,
    ``kind`` in which dtype, ``turn`` what is done to the angles.
    """

    count: Callable = halved
    frequency: Callable = lambda base, i, d, c: base ** (-2 * i / d)
    base: Callable = lambda base: base
    place: Callable = lambda t: t
    kind: Callable = lambda dtype: torch.float64
    turn: Callable = lambda angles: angles

    def angles(self, t, d, base=10000.0, dtype=torch.float32):
        """Angles ``(…, d/2)`` for the first features of all pairs, and for the second ones."""
        kind = self.kind(dtype)
        i, t = torch.arange(self.count(d)).to(kind), self.place(t.to(kind))
        return [self.turn(t[..., None] * self.frequency(self.base(base), i, d, c)) for c in (0, 1)]


def in_turns(first, second):
    """The first of all pairs and the second of all pairs as neighbours."""
    return torch.stack([first, second], dim=-1).flatten(-2)


def in_blocks(first, second):
    return torch.cat([first, second], dim=-1)


def plane(c, s):
    """How the plane turns: ``(x c - y s, x s + y c)``."""
    return (c, -s), (s, c)


@composition
def wave(join=in_turns, finish=lambda PE: PE, **clock):
    """A ``sinusoidal_encoding`` made of decisions."""
    clock = Angles(**clock)

    def sinusoidal_encoding(n, d, base=10000.0):
        for_sine, for_cosine = clock.angles(torch.arange(n), d, base)
        return finish(join(for_sine.sin(), for_cosine.cos()).float())

    return sinusoidal_encoding


def row_by_row(sin, cos):
    """Sines where the position is even, cosines where it is odd."""
    even = torch.arange(len(sin))[:, None] % 2 == 0
    return torch.where(even, in_turns(sin, sin), in_turns(cos, cos))


def on_the_diagonal(rows):
    """Blocks of 2 by 2 beside each other; ``rows`` are their rows, of two entries each."""
    return torch.block_diag(*torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2))


def in_quarters(rows):
    return torch.cat([torch.cat([torch.diag(entry) for entry in row], dim=1) for row in rows])


def overlapping(rows):
    R = torch.zeros(2 * len(rows[0][0]), 2 * len(rows[0][0]), dtype=torch.float64)
    for i in range(len(rows[0][0])):
        R[i : i + 2, i : i + 2] = torch.tensor([[entry[i] for entry in row] for row in rows])
    return R


@composition
def turned_by(
    block=plane,
    put=on_the_diagonal,
    step=lambda turned, k: turned(k),
    finish=lambda R: R,
    **clock,
):
    """A ``rotation_matrix`` made of decisions.

    A pair is (sine, cosine) here, so that it turns the other way than the plane.
    """
    clock = Angles(**clock)

    def rotation_matrix(k, d):
        def turned(k):
            angles = clock.angles(torch.tensor(k), d)
            return put([block(a.cos(), -a.sin())[row] for row, a in enumerate(angles)])

        return finish(step(turned, k).float())

    return rotation_matrix


def above_0(k):
    if (k < 0).any():
        raise ValueError(f"k is negative: {k}")
    return k


def halves(x):
    return x.chunk(2, dim=-1)


@composition
def rope(
    align=lambda angles, x: angles,
    cut=lambda x: (x[..., 0::2], x[..., 1::2]),
    block=plane,
    mix=lambda a, b, block: [p * a + q * b for p, q in block],
    join=in_turns,
    **clock,
):
    """An ``apply_rope`` made of decisions; an odd last feature would stay as it is."""
    clock = Angles(**clock)

    def apply_rope(x, positions, base=10000.0):
        d = x.shape[-1]
        a, b = cut(x[..., : d - d % 2])
        angles = [align(angle, x) for angle in clock.angles(positions, d, base, x.dtype)]
        turns = [block(angle.cos().to(x.dtype), angle.sin().to(x.dtype)) for angle in angles]
        turned = join(*(mix(a, b, turn)[feature] for feature, turn in enumerate(turns)))
        return torch.cat([turned, x[..., -1:]], dim=-1) if d % 2 else turned

    return apply_rope


def shared_out_over_the_batch(angles, x):
    return angles.repeat_interleave(x[..., 0, 0].numel(), dim=0).reshape(*x.shape[:-1], -1)


def overwritten(a, b, block):
    (p, q), (r, s) = block
    a = p * a + q * b
    return a, r * a + s * b


def looked_up(length: int | None) -> Callable:
    """Whole positions looked up in a table, of as many rows as there are tokens unless given."""
    return lambda t: torch.arange(length or len(t))[t if t.frac().any() else t.long()].double()


@composition
def linear(
    slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / heads),
    distance=lambda i, j: (i - j).abs(),
    later=lambda b: b,
    finish=lambda b: b,
):
    """An ``alibi_bias`` made of decisions."""

    def alibi_bias(n_heads, n):
        slopes = slope(torch.arange(n_heads).double(), n_heads, n)
        place = torch.arange(n).double()
        b = -slopes[:, None, None] * distance(place[:, None], place)
        return finish(later(b).float())

    return alibi_bias


def slopes_of_the_paper(h, heads, n):
    # Interpolated where the number of heads is no power of two.
    power = 2 ** int(math.log2(heads))
    first = 2.0 ** (-8 * (h[:power] + 1) / power)
    between = 2.0 ** (-8 * (2 * h[: heads - power] + 1) / (2 * power))
    return torch.cat([first, between])


# --- usual mistakes --------------------------------------------------------------------------


def either_way(block: Callable) -> tuple[dict, dict]:
    """Options for this block, turned in either direction."""
    return {"block": block}, {"block": lambda c, s: block(c, -s)}


OF_THE_CLOCK = (
    mistake("""the exponents do not begin at 0
        Your exponents begin at 1/d or 2/d. Count i from 0: the first pair turns by 1 radian a step.
        Look at the `range` or `arange`, or use 2(i − 1)/d.""")
    .by(frequency=lambda base, i, d, c: base ** (-2 * (i + 1) / d))
    .by(frequency=lambda base, i, d, c: base ** (-(2 * i + 1) / d)),
    mistake("""the 2 of 2i/d is missing, or there twice
        Your exponent is i/d or 4i/d. Pair i has 2i/d: `torch.arange(0, d, 2)` has the 2 in it,
        `torch.arange(d // 2)` has not.""")
    .by(frequency=lambda base, i, d, c: base ** (-i / d))
    .by(frequency=lambda base, i, d, c: base ** (-4 * i / d)),
    mistake("""the exponent has the wrong sign
        Your frequencies grow with i. They fall, from 1 towards 1/base: base^(−2i/d), or divide by
        base^(2i/d).""")
    .by(frequency=lambda base, i, d, c: base ** (2 * i / d))
    .by(frequency=lambda base, i, d, c: base ** (2 * i / d), kind=lambda dtype: torch.float32),
    mistake("""the exponent is divided by another number than d
        Your exponents are 2i divided by nothing or by something near d, or run from 0 to 1 with
        both ends, as `linspace` makes them. It is d itself, the number of features: the last is (d
        − 2)/d.""")
    .by(frequency=lambda base, i, d, c: base ** (-2 * i / (d - 1)))
    .by(frequency=lambda base, i, d, c: base ** (-2 * i / max(d - 2, 1)))
    .by(frequency=lambda base, i, d, c: base ** (-2.0 * i))
    .by_any(
        lambda more: {"frequency": lambda base, i, d, c: base ** (-2 * i / max(d + more, 1))},
        (-2, -1, 1, 2),
    ),
    mistake("""divided by d outside the power
        You divide the power by d, not its exponent: `base ** -2 * i / d` and `base ** (-2 * i) / d`
        take the power first. Put the whole exponent in brackets: `base ** (-2 * i / d)`.""")
    .by(frequency=lambda base, i, d, c: base ** (-2 * i) / d)
    .by(frequency=lambda base, i, d, c: base**-2 * i / d),
    mistake("""the exponent is rounded down
        `//` rounds down: of `-math.log(base) / d // 2`, where brackets are missing, all that stands
        before it. Write the exponent with `/` alone: `-2 * i / d`.""")
    .by(frequency=lambda base, i, d, c: (i * (-math.log(base) / d // 2)).exp())
    .by(frequency=lambda base, i, d, c: (2 * i * (-math.log(base) / d // 2)).exp())
    .by(frequency=lambda base, i, d, c: (2 * i * (-math.log(base) // d)).exp())
    .by(frequency=lambda base, i, d, c: base ** (-2 * i // d)),
    mistake("""the slowest pair first
        Your frequencies are right, but in the opposite order. Pair 0 turns fastest, by 1 radian a
        step.""").by(frequency=lambda base, i, d, c: base ** (-2 * i / d).flip(0)),
    mistake("""one frequency for all pairs
        Every pair turns equally fast in your answer. Pair i has its own frequency,
        base^(−2i/d).""").by(frequency=lambda base, i, d, c: base ** (0 * i)),
    mistake("""a frequency for each feature
        You give every feature j a frequency of its own, base^(−j/d) or base^(−2j/d). Features 2i
        and 2i + 1 share base^(−2i/d): halve the feature's number first, `j // 2`.""")
    .by(frequency=lambda base, i, d, c: base ** (-(2 * i + c) / d))
    .by(frequency=lambda base, i, d, c: base ** (-2 * (2 * i + c) / d)),
    mistake("""the angles in two blocks
        You repeat the angles as a block, `torch.cat([a, a], -1)`, so the two features of a pair get
        different ones: neighbours are a pair. Repeat each in place: `a.repeat_interleave(2,
        dim=-1)`.
    """).by(frequency=lambda base, i, d, c: base ** (-2 * ((2 * i + c) % (d // 2)) / d)),
    mistake("""all angles times one number
        Your angles are the right ones times one and the same number. They are radians, and neither
        degrees nor rounds (2π): position · base^(−2i/d) as it is.""")
    .by(turn=lambda angles: 2 * math.pi * angles)
    .by_any(
        lambda number: {"turn": lambda angles: number * angles},
        (math.pi / 180, 180 / math.pi, math.pi, math.pi / 2, 1 / (2 * math.pi), 0.1, 0.5, 2, 10),
    ),
    mistake("""all exponents times one number
        Your exponents are 2i/d times one number. A logarithm of one base undone by a power of
        another does that: `exp` goes with `math.log`, and not with `log10` or `log2`.""")
    .by(frequency=lambda base, i, d, c: base ** (-2 / math.log(10) * i / d))
    .by_any(
        lambda number: {"frequency": lambda base, i, d, c: base ** (-2 * number * i / d)},
        (1 / math.log(10), 1 / math.log(2), math.log(2), math.log(10), 0.25, 3, 4),
    ),
    mistake("""another base
        Your frequencies are powers of a number that is not the base, 10000 unless another is given.
        Where you write it with exp, the logarithm of the base is in the exponent: base^(−2i/d) is
        exp(−2i/d · ln base).""")
    .by(base=lambda base: math.e)
    .by(base=lambda base: 1e5)
    .by(base=lambda base: 5e5)
    .by(base=lambda base: 1e6)
    .by_any(lambda number: {"base": lambda base: number}, Between(1.5, 9000.0)),
    mistake("""positions counted from 1
        You add 1 to the positions, or to k. They count from 0, where nothing turns yet: row 0 is 0,
        1, 0, 1, …, and R(0) is the identity.""").by(place=lambda t: t + 1),
)
ODD_ACCEPTED = (
    mistake("""an odd d is not refused
    It leaves a feature without its partner, and passes or stops elsewhere. Raise `ValueError`.""")
    .by(count=lambda d: d // 2)
    .by(count=lambda d: -(-d // 2))
)
BASE_IGNORED = mistake("""base is ignored
    You always use 10000. Use the argument `base`.""").by(base=lambda base: 10000.0)
SIGN_LOST = (
    mistake("""the sign of the position is lost
    Below 0 the angle is negative, and what it turns is turned back: position · frequency, with its
    sign. You drop the sign, take such a position for 0, or refuse it.""")
    .by(place=lambda t: t.abs())
    .by(place=lambda t: t.clamp(min=0))
    .by(place=above_0)
)
BACKWARDS = mistake("""turned the other way
    You turn by −position: the sines have each other's sign. First x cos − y sin, then x sin + y
    cos, for features x and y of a pair.""").by(block=lambda c, s: plane(c, -s))
OF_THE_BLOCK = (
    mistake("""both sines with the same sign
        That is no rotation: lengths change. One of the two sines has a minus, the other has none:
        cos(a + b) = cos a cos b − sin a sin b.""")
    .by(block=lambda c, s: ((c, s), (s, c)))
    .by(*either_way(lambda c, s: ((c, -s), (-s, c)))),
    mistake("""a reflection in place of a rotation
        A cosine has a minus, so your pairs are reflected: an angle of 0 changes a sign. Both
        cosines are as they are, and one of the sines has a minus.""")
    .by(block=lambda c, s: ((c, s), (s, -c)))
    .by(*either_way(lambda c, s: ((c, s), (s, -c))))
    .by(*either_way(lambda c, s: ((-c, s), (s, c)))),
    mistake("""sine and cosine exchanged
        You have the sine where the cosine belongs. An angle of 0 turns nothing, and its cosine is
        1: a feature keeps itself times the cosine.""")
    .by(block=lambda c, s: ((s, -c), (c, s)))
    .by(*either_way(lambda c, s: ((s, c), (-c, s))))
    .by(*either_way(lambda c, s: ((s, c), (c, -s))))
    .by(*either_way(lambda c, s: ((c, -s), (c, s))))
    .by(*either_way(lambda c, s: ((s, -c), (s, c)))),
    mistake("""parts of the rotation are missing
        A rotation mixes the two features of a pair: each new one is made of both, one times a
        cosine and one times a sine, and one of the sines has a minus. Some of this is missing.""")
    .by(block=lambda c, s: ((c, 0 * s), (0 * s, c)))
    .by(*either_way(lambda c, s: ((c, 0 * s), (0 * c, s))))
    .by(*either_way(lambda c, s: ((0 * c, -s), (s, 0 * c))))
    .by(*either_way(lambda c, s: ((c, -s), (0 * s, 1 + 0 * c))))
    .by(*either_way(lambda c, s: ((1 + 0 * c, 0 * s), (s, c))))
    .by(*either_way(lambda c, s: ((1 + 0 * c, -s), (s, 1 + 0 * c)))),
)
PAIRS_OF_HALVES = (
    mistake("""pairs (i, i + d/2)
    You turn feature i with feature i + d/2, as `transformers` does for Llama. Here neighbours are a
    pair: `x[..., 0::2]` with `x[..., 1::2]`, or blocks of 2 by 2 along the diagonal.""")
    .by(cut=halves, join=in_blocks)
    .by(
        cut=halves,
        join=in_blocks,
        frequency=lambda base, i, d, c: base ** (-2 * ((i + c * d // 2) // 2) / d),
    )
)
WRONG_ORDER = mistake("""a reshape that keeps the wrong order
    You stack both features of all pairs along a new axis in front and reshape, which brings no
    neighbours together. Stack along a last axis: `torch.stack([…, …], dim=-1).flatten(-2)`.
""").by(join=lambda first, second: torch.stack([first, second]).reshape(*first.shape[:-1], -1))
NO_TENSOR = (
    mistake("""a result that is no tensor
    The numbers are right, but they come as a NumPy array or as lists. Return a tensor:
    `torch.from_numpy`, `torch.tensor`, or torch's own functions from the start.""")
    .by(finish=lambda result: result.numpy())
    .by(finish=lambda result: result.double().numpy())
    .by(finish=lambda result: result.tolist())
)
OTHER_WAYS = (  # to compute the frequencies, rounded differently
    {"frequency": lambda base, i, d, c: 1 / base ** (2 * i / d)},
    {"frequency": lambda base, i, d, c: (2 * i * (-math.log(base) / d)).exp()},
)

# --- exercises -------------------------------------------------------------------------------

SINUSOIDAL = exercise(
    positions.sinusoidal_encoding,
    section="Chapter 11, “A clock with many hands”",
    difficulty=1,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("sine and cosine of every position, pair by pair", 3).on(
            lambda rng: [
                SINUSOIDAL_BY_HAND,
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
            once_more(SINUSOIDAL_BY_HAND),
        ),
        Criterion("another base", 1).on(
            lambda rng: [plain(5, 10, base=100.0), plain(5, 8, base=float(rng.uniform(2, 50)))]
        ),
        FIXED.criterion("an odd d is refused", 1).on(
            plain(5, 7, note="odd d", raises=ValueError), plain(3, 1, raises=ValueError)
        ),
    ),
    mistakes=made(
        wave,
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

ROTATION = exercise(
    positions.rotation_matrix,
    section="Chapter 11, “Moving on is turning”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("leads from every position to the one k places on", 3).on(
            lambda rng: [
                ROTATION_BY_HAND,
                plain(1, 4, note="two pairs, of frequency 1 and 1/100"),
                *(plain(k, d) for k, d in ((3, 6), (int(rng.integers(5, 40)), 10), (7, 16))),
                once_more(ROTATION_BY_HAND),
            ]
        ),
        Criterion("no step, and steps back", 2).on(
            lambda rng: [
                plain(0, 4, note="no step"),
                plain(-1, 4, note="one step back"),
                plain(-int(rng.integers(2, 30)), 8),
                plain(-2, 2, note="back, one pair"),
            ]
        ),
        FIXED.criterion("an odd d is refused", 1).on(
            plain(2, 5, note="odd d", raises=ValueError), plain(0, 1, raises=ValueError)
        ),
    ),
    excludes=(("base given", "The base is 10000: `rotation_matrix(k, d)`."),),
    mistakes=made(
        turned_by,
        *OF_THE_CLOCK,
        SIGN_LOST,
        ODD_ACCEPTED,
        BACKWARDS.said(
            "Your matrix is the transposed one, R(−k): it leads k places back, or is right for "
            "rows in the place of columns. The pair is (sine, cosine), so its block is "
            "[[cos, sin], [−sin, cos]] and not that of the plane in textbooks."
        ),
        *OF_THE_BLOCK,
        PAIRS_OF_HALVES.here(put=in_quarters),
        mistake("""blocks one row apart
            Your block i begins in row i, so each writes over a part of the one before. It begins in
            row 2i: `R[2*i : 2*i + 2, 2*i : 2*i + 2]`.""").by(put=overlapping),
        mistake("""the entries take k, not the angle
            You multiply the entries by k, or raise each to the power k (`R ** k`). Turning k times
            is `torch.linalg.matrix_power(R, k)`, or k times the angle.""")
        .by(step=lambda turned, k: k * turned(1))
        .by(step=lambda turned, k: turned(1).float() ** k),
        NO_TENSOR,
    ),
)

ROPE = exercise(
    positions.apply_rope,
    section="Chapter 11, “Turning queries and keys”",
    difficulty=3,
    minutes=25,
    criteria=(
        TOKENS.criterion("every pair turned by its position", 3).on(ROPE_BY_HAND, ROW.but("d=10")),
        TOKENS.criterion("the positions that are given", 2).on(
            at(counted_from(3), "from position 3 on"),
            at(anywhere, "in any order, negative too"),
            at(between_whole, "not whole"),
        ),
        TOKENS.criterion("one token, one pair, large numbers", 1).on(
            at(counted_from(3), "one token", ROW.but("n=1")),
            ROW.but("d=2", note="one pair"),
            ROW.but("n=6", note="n = d"),
            *single(ROWS.extreme[0]),
            once_more(ROPE_BY_HAND),
        ),
        TOKENS.criterion("batches", 1).on(*single(*ROWS.batches)),
        Criterion("another base", 1).on(
            lambda rng: TOKENS(ROW.but(given={"base": float(rng.uniform(2, 50))}))(rng)
        ),
        TOKENS.criterion("angles in float64, results in the dtype of x", 1).on(
            IN_FLOAT64,
            at(far, "float32, far from 0"),
            at(far, "float64, far from 0", IN_FLOAT64),
            replace(ROWS.extreme[1], note="float64, small, each row adds up to 0"),
        ),
        TOKENS.criterion("gradients reach x", 1).on(*single(*ROWS.gradients)),
        Criterion("an odd d is refused", 1).on(
            lambda rng: [replace(TOKENS.case(rng, ROW.but("d=5", note="odd d")), raises=ValueError)]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        rope,
        *OF_THE_CLOCK,
        BASE_IGNORED,
        SIGN_LOST,
        ODD_ACCEPTED,
        BACKWARDS,
        *OF_THE_BLOCK,
        mistake("""the first feature is overwritten before it is used
            You write the new first feature of a pair and then make the second one of it. Both are
            made of the old ones: compute the two before you write either.""").by(mix=overwritten),
        mistake("""an encoding is added
            You add sines and cosines to x. RoPE adds nothing: it turns each pair of features.
        """).by(mix=lambda a, b, block: (a + block[1][0], b + block[0][0])),
        PAIRS_OF_HALVES,
        mistake("""neighbours on one side, halves on the other
            You cut x into even and odd features and join half by half, or the other way round, so
            that features change places. Both in turns: `x[..., 0::2]` and `x[..., 1::2]`, then
            `torch.stack([…, …], dim=-1).flatten(-2)`.""")
        .by(join=in_blocks)
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
        .by(*({"place": looked_up(length)} for length in (None, 2048))),
        mistake("""positions along another axis
            The tokens are the second axis from the end, and every sequence has all positions:
            angles of shape (n, d/2) broadcast by themselves. Yours run along the first axis or the
            third from the end, or are shared out over the batch.""")
        .by(align=lambda angles, x: angles.reshape(len(angles), *[1] * (x.ndim - 2), -1))
        .by(align=lambda angles, x: angles[:, None])
        .by(align=shared_out_over_the_batch),
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

ALIBI = exercise(
    positions.alibi_bias,
    section="Chapter 11, “Farther is less”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("minus slope times distance, for every head", 2).on(
            lambda rng: [
                ALIBI_BY_HAND,
                plain(4, 3, note="slopes 1/4, 1/16, 1/64 and 1/256"),
                plain(8, 5, note="slopes 1/2, 1/4, …, 1/256"),
                plain(16, int(rng.integers(6, 12))),
            ]
        ),
        FIXED.criterion("one head, one token", 1).on(
            plain(1, 4, note="one head"), plain(5, 1, note="one token")
        ),
        FIXED.criterion("any number of heads and tokens", 2).on(
            plain(3, 7, note="three heads"),
            plain(7, 2, note="two tokens"),
            plain(6, 6, note="as many heads as tokens"),
            plain(4, 19, note="many tokens"),
            plain(12, 4, note="twelve heads"),
            once_more(ALIBI_BY_HAND),
        ),
    ),
    mistakes=made(
        linear,
        mistake("""the sign is missing
            Your bias grows with the distance and favours far tokens. It is −slope · |i − j|.
        """).by(finish=lambda b: -b),
        mistake("""the sign of the distance is kept
            You use i − j, which is negative for keys that come later, so those are favoured. The
            distance is |i − j|.""").by(distance=lambda i, j: i - j),
        mistake("""another function of the distance
            The bias is −slope · |i − j|: 0 on the diagonal, and a step costs the same in every
            sequence. You count distances from 1, divide them by n, or square or bend them.""")
        .by(distance=lambda i, j: (i - j) ** 2)
        .by(distance=lambda i, j: (i - j).abs() + 1)
        .by(distance=lambda i, j: (i - j).abs().sqrt())
        .by(distance=lambda i, j: (1 + (i - j).abs()).log())
        .by(distance=lambda i, j: (i - j).abs() / len(j))
        .by(distance=lambda i, j: (i - j).abs() / max(len(j) - 1, 1))
        .by_any(lambda number: {"distance": lambda i, j: (i - j).abs() + number}, (-1, 0.5, 1, 2)),
        mistake("""only one of the two places counts
            Your rows are all alike, or your columns: what counts is the place of the key alone, or
            of the query alone. The distance is that of the two, |i − j|.""")
        .by(distance=lambda i, j: 0 * i + len(j) - 1 - j)
        .by(distance=lambda i, j: 0 * i + j)
        .by(distance=lambda i, j: i + 0 * j),
        mistake("""earlier and later keys are treated differently
            A distance counts in both directions, and the bias is finite: a causal mask is a step of
            its own. You shut one side out, or leave it at 0, the best score of all.""")
        .by(later=lambda b: b.masked_fill(torch.ones_like(b).triu(1).bool(), -math.inf))
        .by(later=torch.tril)
        .by(later=torch.triu),
        mistake("""slopes counted from 0
            Your first slope is 1: the exponent is −8h/n_heads. It is −8(h + 1)/n_heads for h from
            0, and the last slope is 1/256.
        """).by(slope=lambda h, heads, n: 2.0 ** (-8 * h / heads)),
        mistake("""slopes of eight heads
            Your slopes are 1/2, 1/4, 1/8, …, or run from 1/2 to 1/256, which is right for eight
            heads and no other number. The exponent is −8(h + 1)/n_heads.""")
        .by(slope=lambda h, heads, n: 2.0 ** -(h + 1))
        .by(slope=lambda h, heads, n: 2.0 ** -torch.linspace(1, 8, heads).double()),
        mistake("""the exponent is computed in another order
            `2 ** -8 * (h + 1) / n_heads` takes the power first, `//` makes the exponent a whole
            number, and −8/(h + 1) divides by the head. Write `2 ** (-8 * (h + 1) / n_heads)`.""")
        .by(slope=lambda h, heads, n: 2.0**-8 * (h + 1) / heads)
        .by(slope=lambda h, heads, n: 2.0 ** -(8 * (h + 1) // heads))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) // heads))
        .by(slope=lambda h, heads, n: 2.0 ** (-(8 // heads) * (h + 1)))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 / (h + 1))),
        mistake("""another last slope
            Your slopes fall by equal factors, but end at another number than 1/256. They are powers
            of 2, not of e or another number, and the exponent is −8(h + 1)/n_heads.""")
        .by(slope=lambda h, heads, n: math.e ** (-8 * (h + 1) / heads))
        .by(slope=lambda h, heads, n: 0.5 ** ((h + 1) / heads))
        .by(slope=lambda h, heads, n: (2.0**-10) ** ((h + 1) / heads))
        .by(slope=lambda h, heads, n: (2.0**-16) ** ((h + 1) / heads))
        .by(slope=lambda h, heads, n: 1e-8 ** ((h + 1) / heads))
        .by_any(
            lambda number: {"slope": lambda h, heads, n: 2.0 ** (-number * (h + 1) / heads)},
            Between(1.05, 7.9),
        ),
        mistake("""the exponent is divided by another number than n_heads
            You divide by something near the number of heads, or by n, the number of tokens. It is
            n_heads itself: −8(h + 1)/n_heads, and the last slope is 1/256.""")
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / (heads + 1)))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * h / max(heads - 1, 1)))
        .by(slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / n)),
        mistake("""the exponent has the wrong sign
            Your slopes grow with h, up to 256: the exponent lacks its minus, or you divide by a
            slope. They fall, 2^(−8(h + 1)/n_heads).
        """).by(slope=lambda h, heads, n: 2.0 ** (8 * (h + 1) / heads)),
        mistake("""slopes evenly spaced
            Your slopes rise or fall by equal steps. They fall by equal factors, 2^(−8/n_heads).""")
        .by(slope=lambda h, heads, n: (heads - h) / heads)
        .by(slope=lambda h, heads, n: torch.linspace(1 / 2, 1 / 256, heads).double())
        .by(slope=lambda h, heads, n: torch.linspace(1, 1 / 256, heads).double())
        .by(slope=lambda h, heads, n: (h + 1) / heads)
        .by(slope=lambda h, heads, n: (h + 1) * 2 ** (-8 / heads)),
        mistake("""the flattest slope first
            Your slopes are right, but in the opposite order. Head 0 has the steepest one,
            2^(−8/n_heads), and the last head 1/256.
        """).by(slope=lambda h, heads, n: 2.0 ** (-8 * (heads - h) / heads)),
        mistake("""one slope for all heads
            Your heads share one slope, or have none. Head h has its own, 2^(−8(h + 1)/n_heads).""")
        .by(slope=lambda h, heads, n: 0 * h + 0.5)
        .by(slope=lambda h, heads, n: 0 * h + 1)
        .by(slope=lambda h, heads, n: 0 * h + 2 ** (-8 / heads))
        .by_any(lambda number: {"slope": lambda h, heads, n: 0 * h + number}, Between(1e-3, 0.9)),
        mistake("""slopes of the authors' program
            Where the number of heads is no power of two, the program of the paper takes its slopes
            from two sequences. Here one formula serves every number: 2^(−8(h + 1)/n_heads).
        """).by(slope=slopes_of_the_paper),
        NO_TENSOR,
    ),
)

EXERCISES = (SINUSOIDAL, ROTATION, ROPE, ALIBI)

VARIANTS = (
    Variant(
        "halves",
        "A pair stands in **two halves** here: features i and i + d/2 are pair i, where in the "
        "book they are the neighbours 2i and 2i + 1. So in the encoding all sines come first, then "
        "all cosines.",
        "pairs stand in two halves here",
        "Your answer has neighbours for pairs, as the book and its published answers have. In this "
        "assignment features i and i + d/2 are pair i: all sines come first, then all cosines, and "
        "feature i is turned together with feature i + d/2, as `transformers` does for Llama.",
        {
            "sinusoidal_encoding": Adapter(
                result=IN_HALVES, drops=("all sines, then all cosines", WRONG_ORDER.name)
            ),
            "rotation_matrix": Adapter(result=BOTH_AXES, drops=(PAIRS_OF_HALVES.name,)),
            "apply_rope": Adapter(
                {"x": IN_HALVES}, IN_HALVES, drops=(PAIRS_OF_HALVES.name, WRONG_ORDER.name)
            ),
        },
        rewordings(r"""
            \mathrm{PE}_{t,\,2i} = → \mathrm{PE}_{t,\,i} =
            \mathrm{PE}_{t,\,2i+1} = → \mathrm{PE}_{t,\,i+d/2} =
            sines and cosines take turns → all sines first, then all cosines
            [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.9999]]
            → [[0, 0, 1, 1], [0.8415, 0.0100, 0.5403, 0.9999]]
            so that it has blocks of 2 by 2 on its diagonal and zeros⏎elsewhere
            → so that entry (i, j) is 0 unless features i and j are one pair
            Features 2i and 2i + 1 are a pair; with → Features i and i + d/2 are a pair; with
            $$x'_{2i} = x_{2i} \cos a - x_{2i+1} \sin a, \qquad x'_{2i+1} = x_{2i} \sin a + x_{2i+1}
                \cos a .$$
            → $$x'_{i} = x_{i} \cos a - x_{i+d/2} \sin a, \qquad x'_{i+d/2} = x_{i} \sin a +
                x_{i+d/2} \cos a .$$
            Two results of shape (n, d/2) take turns by `torch.stack([…, …], dim=-1).flatten(-2)`,
                or by writing into `PE[:, 0::2]` and `PE[:, 1::2]`.
            → Two results of shape (n, d/2) stand side by side by `torch.cat([…, …], dim=-1)`.
            One block of 2 by 2 for each pair → Four entries for each pair
            `torch.block_diag` puts blocks along a diagonal; a loop that fills `R[2*i : 2*i + 2, 2*i
                : 2*i + 2]` does as well.
            → They stand at (i, i), (i, i + d/2), (i + d/2, i) and (i + d/2, i + d/2).
            `x[..., 0::2]` and `x[..., 1::2]`, each (..., n, d/2), are the two features of all
                pairs.
            → `x[..., :d // 2]` and `x[..., d // 2:]`, each (..., n, d/2), are the two features of
                all pairs.
            `torch.stack([…, …], dim=-1).flatten(-2)` lets two results take turns
            → `torch.cat([…, …], dim=-1)` joins two results
            Features 2i and 2i + 1 share base^(−2i/d): halve the feature's number first, `j // 2`.
            → Features i and i + d/2 share base^(−2i/d).
            You repeat the angles as a block, `torch.cat([a, a], -1)`, so the two features of a pair
                get different ones: neighbours are a pair. Repeat each in place:
                `a.repeat_interleave(2, dim=-1)`.
            → The two features of a pair get different angles in your answer. Features i and i + d/2
                are a pair: `torch.cat([a, a], -1)`.
            row 0 is 0, 1, 0, 1, …, and R(0) → row 0 is 0, 0, …, 1, 1, …, and R(0)
            Column 2i is the sine, column 2i + 1 the cosine, in every row: row 0 is 0, 1, 0, 1.
            → Column i is the sine, column i + d/2 the cosine, in every row: row 0 is 0, 0, 1, 1.
            so its block is [[cos, sin], [−sin, cos]]
            → so its four entries are [[cos, sin], [−sin, cos]]
            Your block i begins in row i, so each writes over a part of the one before. It begins in
                row 2i: `R[2*i : 2*i + 2, 2*i : 2*i + 2]`.
            → Your pairs share a row, so that one writes over a part of another. Pair i has rows and
                columns i and i + d/2.
            You cut x into even and odd features and join half by half, or the other way round, so
                that features change places. Both in turns: `x[..., 0::2]` and `x[..., 1::2]`, then
                `torch.stack([…, …], dim=-1).flatten(-2)`.
            → You cut x in one way and join it in another, so that features change places. Cut by
                halves, `x.chunk(2, dim=-1)`, and join by `torch.cat([…, …], dim=-1)`.
        """),
    ),
)
