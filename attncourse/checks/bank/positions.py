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
from attncourse.checks.cases import FLOATS_ONLY, Drawn, Row, Table, normal, once_more, row, standard
from attncourse.checks.drivers import call_in_default_dtype
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Exercise,
    Rng,
    composition,
    leaves_arguments_alone,
)
from attncourse.checks.mistakes import Slip, made
from attncourse.checks.modules import tensor

# --- cases -----------------------------------------------------------------------------------


def plain(*args, note: str = "", raises: type[Exception] | None = None, **kwargs) -> Case:
    """A case whose answer may have torch's default dtype or float64."""
    return Case(args, kwargs, note=note, raises=raises, use=call_in_default_dtype)


SINUSOIDAL_BY_HAND = plain(4, 4, note="two pairs, of frequency 1 and 1/100")
ROTATION_BY_HAND = plain(1, 2, note="one pair")
ALIBI_BY_HAND = plain(2, 2, note="slopes 1/16 and 1/256")


def sinusoidal_values(rng: Rng) -> list[Case]:
    several = plain(int(rng.integers(19, 40)), 2 * int(rng.integers(6, 12)))
    return [SINUSOIDAL_BY_HAND, plain(5, 10), several]


def sinusoidal_bases(rng: Rng) -> list[Case]:
    return [plain(5, 10, base=100.0), plain(5, 8, base=float(rng.uniform(2, 50)))]


def rotation_values(rng: Rng) -> list[Case]:
    far = plain(int(rng.integers(5, 40)), 10)
    two = plain(1, 4, note="two pairs, of frequency 1 and 1/100")
    return [ROTATION_BY_HAND, two, plain(3, 6), far, plain(7, 16), once_more(ROTATION_BY_HAND)]


def rotation_back(rng: Rng) -> list[Case]:
    return [
        plain(0, 4, note="no step"),
        plain(-1, 4, note="one step back"),
        plain(-int(rng.integers(2, 30)), 8),
        plain(-2, 2, note="back, one pair"),
    ]


def from_0(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(*shape)


def from_3(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(*shape) + 3


def anywhere(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Positions in any order, one of them negative at least."""
    return rng.permutation(np.append(rng.permutation(30)[1 : shape[0]], -int(rng.integers(2, 30))))


def far(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(90_000, 110_000, size=shape)


def between_whole(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.permutation(30)[: shape[0]] + rng.uniform(0.55, 0.9, shape)


ROPE_CASES = Table({"x": "... n d", "positions": Drawn("n", from_0)}, how=normal)
ROPE_ROWS = standard(ROPE_CASES, d=6)
ROPE_BY_HAND = Case(
    (tensor([[1, 2], [3, 4]]).float(), tensor([0, math.pi / 2]).float()),
    note="a quarter turn for token 1",
)
IN_FLOAT64 = row("n=7 d=6", note="float64")
ROPE_ROW = row("n=7 d=6", dtype="float32")


def at(places: Callable, note: str, one: Row = ROPE_ROW) -> Row:
    """A row with other positions."""
    return one.but(given={"positions": Drawn("n", places)}, note=note)


def single(*rows: Row) -> tuple[Row, ...]:
    return tuple(one.but(dtype="float32") for one in rows)


# --- decisions -------------------------------------------------------------------------------


def falling(base, i, d, c):
    return base ** (-2 * i / d)


def halved(d):
    if d % 2:
        raise ValueError(f"d is odd: {d}")
    return d // 2


@dataclass(frozen=True)
class Clock:
    """Angles as decisions; each is right unless another option is given.

    ``count`` is the number of pairs, ``frequency`` that of pair i, for the first of its features
    (c = 0) or the second (c = 1). ``base`` and ``place`` say which base and positions are used,
    ``kind`` in which dtype, ``turn`` what is done to the angles.
    """

    count: Callable = halved
    frequency: Callable = falling
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


@composition
def wave(
    pack=in_turns, cut=lambda PE, d: PE[:, :d], axes=lambda PE: PE, finish=lambda PE: PE, **clock
):
    """A ``sinusoidal_encoding`` made of decisions."""
    clock = Clock(**clock)

    def sinusoidal_encoding(n, d, base=10000.0):
        for_sine, for_cosine = clock.angles(torch.arange(n), d, base)
        return finish(axes(cut(pack(for_sine.sin(), for_cosine.cos()), d)).float())

    return sinusoidal_encoding


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
    block=lambda c, s: ((c, s), (-s, c)),
    put=on_the_diagonal,
    step=lambda turned, k: turned(k),
    fill=lambda R, d: R,
    finish=lambda R: R,
    **clock,
):
    """A ``rotation_matrix`` made of decisions; ``block`` makes the entries of a pair's block."""
    clock = Clock(**clock)

    def rotation_matrix(k, d):
        def turned(k):
            angles = clock.angles(torch.tensor(k), d)
            return put([block(a.cos(), a.sin())[row] for row, a in enumerate(angles)])

        return finish(fill(step(turned, k), d).float())

    return rotation_matrix


def above_0(k):
    if k < 0:
        raise ValueError(f"k is negative: {k}")
    return k


def into_the_corner(R, whole):
    m = len(whole) - 1
    whole[:m, :m] = R[:m, :m]
    return whole


def neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def halves(x):
    return x.chunk(2, dim=-1)


@composition
def rope(
    take=lambda x: x,
    align=lambda angles, x: angles,
    cast=lambda wave, x: wave.to(x.dtype),
    cut=neighbours,
    mix=lambda a, b, c, s: (a * c - b * s, a * s + b * c),
    join=in_turns,
    give=lambda turned, x: turned,
    **clock,
):
    """An ``apply_rope`` made of decisions; an odd last feature would stay as it is."""
    clock = Clock(**clock)

    def apply_rope(x, positions, base=10000.0):
        d, given = x.shape[-1], take(x)
        a, b = cut(given[..., : d - d % 2])
        mixed = []
        for c, angles in enumerate(clock.angles(positions, d, base, x.dtype)):
            angles = align(angles, x)
            mixed.append(mix(a, b, cast(angles.cos(), x), cast(angles.sin(), x))[c])
        turned = join(*mixed)
        rest = given[..., d - d % 2 :]
        return give(torch.cat([turned, rest], dim=-1) if d % 2 else turned, x)

    return apply_rope


def along_the_first_axis(angles, x):
    return angles.reshape(len(angles), *[1] * (x.ndim - 2), -1)


def shared_out_over_the_batch(angles, x):
    return angles.repeat_interleave(x[..., 0, 0].numel(), dim=0).reshape(*x.shape[:-1], -1)


def overwritten(a, b, c, s):
    a = a * c - b * s
    return a, a * s + b * c


@composition
def linear(
    slope=lambda h, heads, n: 2.0 ** (-8 * (h + 1) / heads),
    distance=lambda i, j: (i - j).abs(),
    sign=lambda slopes, distance: -slopes * distance,
    later=lambda b: b,
    axes=lambda b: b,
    finish=lambda b: b,
):
    """An ``alibi_bias`` made of decisions."""

    def alibi_bias(n_heads, n):
        slopes = slope(torch.arange(n_heads).double(), n_heads, n)
        place = torch.arange(n).double()
        b = sign(slopes[:, None, None], distance(place[:, None], place))
        return finish(axes(later(b)).float())

    return alibi_bias


def slopes_of_the_paper(h, heads, n):
    # Interpolated where the number of heads is no power of two.
    power = 2 ** int(math.log2(heads))
    first = 2.0 ** (-8 * (h[:power] + 1) / power)
    between = 2.0 ** (-8 * (2 * h[: heads - power] + 1) / (2 * power))
    return torch.cat([first, between])


# --- usual mistakes --------------------------------------------------------------------------

FROM_1 = Slip(
    "frequencies counted from 1",
    "Your frequencies are base^(−2i/d) for i from 1. Count i from 0: the first pair turns by "
    "1 radian a step. Look at the `range` or `arange`, or use 2(i − 1)/d.",
    {"frequency": lambda base, i, d, c: base ** (-2 * (i + 1) / d)},
)
ALL_ALIKE = Slip(
    "one frequency for all pairs",
    "Every pair turns equally fast in your answer. Pair i has its own frequency, base^(−2i/d).",
    {"frequency": lambda base, i, d, c: base ** (0 * i)},
)
A_BLOCK_OF_ANGLES = Slip(
    "the angles of one layout, the pairs of the other",
    "You turn neighbours, but repeat the angles as a block, `torch.cat([a, a], -1)`, so the two "
    "features of a pair get different angles. Repeat each in place: "
    "`a.repeat_interleave(2, dim=-1)`.",
    {"frequency": lambda base, i, d, c: base ** (-2 * ((2 * i + c) % (d // 2)) / d)},
)
COLUMNS = Slip(
    "a frequency for each column",
    "You gave every column j the frequency base^(−j/d), so the sine and the cosine of a pair "
    "belong to different hands. Columns 2i and 2i + 1 share base^(−2i/d): halve the column's "
    "number, `j // 2`, before you use it.",
    {"frequency": lambda base, i, d, c: base ** (-(2 * i + c) / d)},
)
OF_THE_FREQUENCIES = (
    FROM_1,
    Slip(
        "exponent i/d in place of 2i/d",
        "Your exponent is i/d, so the frequencies span only half of their range. Pair i has the "
        "exponent 2i/d; with `torch.arange(0, d, 2)` the 2 is already in it.",
        {"frequency": lambda base, i, d, c: base ** (-i / d)},
    ),
    Slip(
        "exponent 4i/d in place of 2i/d",
        "The 2 of 2i/d is in your exponent twice: `torch.arange(0, d, 2)` already counts 0, 2, 4, "
        "…, so divide it by d and leave the other 2 out.",
        {"frequency": lambda base, i, d, c: base ** (-4 * i / d)},
    ),
    Slip(
        "the exponent has the wrong sign",
        "Your frequencies grow with i. They fall, from 1 towards 1/base: base^(−2i/d), or divide "
        "by base^(2i/d).",
        {"frequency": lambda base, i, d, c: base ** (2 * i / d)},
        also=(
            {
                "frequency": lambda base, i, d, c: base ** (2 * i / d),
                "kind": lambda dtype: torch.float32,
            },
        ),
    ),
    Slip(
        "frequencies that end at 1/base exactly",
        "You spread the exponents from 0 to 1 with both ends, i/(d/2 − 1), as some libraries do. "
        "The formula divides by d: the last exponent is (d − 2)/d.",
        {"frequency": lambda base, i, d, c: base ** (-i / max(d // 2 - 1, 1))},
    ),
    Slip(
        "the exponent is divided by another number than d",
        "Your exponents are 2i divided by something near d, by d − 1 or d + 1 for example. It is d "
        "itself, the number of features: 2i/d.",
        {"frequency": lambda base, i, d, c: base ** (-2 * i / (d - 1))},
        lambda more: {"frequency": lambda base, i, d, c: base ** (-2 * i / (d + more))},
        (-1, 1, 2),
    ),
    Slip(
        "divided by d outside the power",
        "You divide the power by d, not its exponent: `base ** -2 * i / d` and `base ** (-2 * i) "
        "/ d` take the power first. Put the whole exponent in brackets: `base ** (-2 * i / d)`.",
        {"frequency": lambda base, i, d, c: base ** (-2 * i) / d},
        also=({"frequency": lambda base, i, d, c: base**-2 * i / d},),
    ),
    Slip(
        "the slowest pair first",
        "Your frequencies are right, but in the opposite order. Pair 0 turns fastest, by 1 radian "
        "a step.",
        {"frequency": lambda base, i, d, c: base ** (-2 * i / d).flip(0)},
    ),
    ALL_ALIKE,
    Slip(
        "2π in the angle",
        "You multiply the angle by 2π, as if frequencies were rounds per position. They are "
        "radians: the angle is t · base^(−2i/d), and the first wavelength is 2π.",
        {"turn": lambda angles: 2 * math.pi * angles},
    ),
    Slip(
        "all angles times one number",
        "Your angles are the right ones times one and the same number. They are radians, and "
        "neither degrees nor rounds: position · base^(−2i/d) as it is.",
        {"turn": lambda angles: angles * math.pi / 180},
        lambda number: {"turn": lambda angles: number * angles},
        (math.pi / 180, 180 / math.pi, math.pi, math.pi / 2, 1 / (2 * math.pi), 0.1, 0.5, 2, 10),
    ),
    Slip(
        "the logarithm of the base is missing",
        "Your frequencies are exp(−2i/d), whatever the base. base^(−2i/d) is exp(−2i/d · ln base).",
        {"base": lambda base: math.e},
    ),
    Slip(
        "another base",
        "Your frequencies are powers of one and the same number, and it is not 10000. The base is "
        "10000, unless another is given.",
        {"base": lambda base: 1000.0},
        lambda number: {"base": lambda base: number},
        Between(1.5, 9000.0),
        ({"base": lambda base: 1e5}, {"base": lambda base: 5e5}, {"base": lambda base: 1e6}),
    ),
)
ANOTHER_POWER = Slip(
    "all exponents times one number",
    "Your exponents are 2i/d times one number. A logarithm of one base undone by a power of "
    "another does that: `exp` goes with the natural logarithm, `math.log`, and not with "
    "`log10` or `log2`.",
    {"frequency": lambda base, i, d, c: base ** (-2 / math.log(10) * i / d)},
    lambda number: {"frequency": lambda base, i, d, c: base ** (-2 * number * i / d)},
    (1 / math.log(10), 1 / math.log(2), math.log(2), math.log(10), 0.25, 1.5, 3, 4),
)
BASE_IGNORED = Slip(
    "base is ignored",
    "You always use 10000. Use the argument `base`.",
    {"base": lambda base: 10000.0},
)
NO_TENSOR = Slip(
    "a result that is no tensor",
    "The numbers are right, but they come as a NumPy array or as lists. Return a tensor: "
    "`torch.from_numpy`, `torch.tensor`, or torch's own functions from the start.",
    {"finish": lambda result: result.numpy()},
    also=(
        {"finish": lambda result: result.double().numpy()},
        {"finish": lambda result: result.tolist()},
    ),
)


# --- exercises -------------------------------------------------------------------------------

SINUSOIDAL = Exercise(
    target="positions.sinusoidal_encoding",
    reference=positions.sinusoidal_encoding,
    section="Chapter 11, “A clock with many hands”",
    difficulty=1,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("sine and cosine of every position, pair by pair", 3, sinusoidal_values),
        Criterion(
            "one position, one pair, any n and d",
            1,
            lambda rng: [
                plain(1, 6, note="one position"),
                plain(2, 8, note="two positions"),
                plain(7, 2, note="one pair"),
                plain(6, 6, note="n = d"),
                plain(3, 16, note="more features than positions"),
                once_more(SINUSOIDAL_BY_HAND),
            ],
        ),
        Criterion("another base", 1, sinusoidal_bases),
        Criterion(
            "an odd d is refused",
            1,
            lambda rng: [
                plain(5, 7, note="odd d", raises=ValueError),
                plain(3, 1, raises=ValueError),
            ],
        ),
    ),
    misconceptions=made(
        wave,
        *OF_THE_FREQUENCIES,
        ANOTHER_POWER,
        BASE_IGNORED,
        COLUMNS,
        Slip(
            "the column's number taken for the pair's",
            "You put the number of the column, 0 to d − 1, in the place of i, so the frequencies "
            "run from 1 to about 1/base². i counts pairs: it is `j // 2` for column j.",
            {"frequency": lambda base, i, d, c: base ** (-2 * (2 * i + c) / d)},
        ),
        A_BLOCK_OF_ANGLES.called("the angles in two blocks").said(
            "You repeat the angles as a block, `torch.cat([a, a], -1)`, and let sines and cosines "
            "take turns, so the two columns of a pair get different angles. Repeat each in place: "
            "`a.repeat_interleave(2, dim=-1)`."
        ),
        Slip(
            "all sines, then all cosines",
            "You put the sines into the first half and the cosines into the second. They take "
            "turns here: sine in column 2i, cosine in column 2i + 1.",
            {"pack": in_blocks},
        ),
        Slip(
            "cosine before sine",
            "Sine and cosine have changed places. The even columns, from 0, are sines; so row 0 "
            "begins 0, 1, 0, 1.",
            {"pack": lambda sin, cos: in_turns(cos, sin)},
        ),
        Slip(
            "sines only",
            "Both columns of a pair are sines. With the sine alone two positions of one round look "
            "alike; column 2i + 1 is the cosine.",
            {"pack": lambda sin, cos: in_turns(sin, sin)},
        ),
        Slip(
            "cosines only",
            "Both columns of a pair are cosines. With the cosine alone t and −t look alike; column "
            "2i is the sine.",
            {"pack": lambda sin, cos: in_turns(cos, cos)},
        ),
        Slip(
            "sines for even positions, cosines for odd ones",
            "Your rows take turns: sines where t is even, cosines where it is odd. It is the "
            "columns that do: sine in column 2i, cosine in column 2i + 1, in every row.",
            {
                "pack": lambda sin, cos: torch.where(
                    torch.arange(len(sin))[:, None] % 2 == 0, in_turns(sin, sin), in_turns(cos, cos)
                )
            },
        ),
        Slip(
            "a reshape that keeps the wrong order",
            "You stack sines and cosines along a new axis in front and reshape, which brings no "
            "neighbours together. Stack along a last axis: `torch.stack([…, …], "
            "dim=-1).flatten(-2)`.",
            {"pack": lambda sin, cos: torch.stack([sin, cos]).reshape(len(sin), -1)},
        ),
        Slip(
            "positions counted from 1",
            "Your first row is position 1. Positions count from 0, and row 0 is 0, 1, 0, 1, ….",
            {"place": lambda t: t + 1},
        ),
        Slip(
            "the angle has a minus",
            "Your sines have the wrong sign: you take those of −t · base^(−2i/d). The minus "
            "belongs to the exponent alone.",
            {"turn": lambda angles: -angles},
        ),
        Slip(
            "positions divided by n",
            "You divide the positions by their number, so that they run from 0 to 1. A position is "
            "a whole number, and its row is the same in any sequence.",
            {"place": lambda t: t / len(t)},
            also=({"place": lambda t: t / max(len(t) - 1, 1)},),
        ),
        Slip(
            "the last position first",
            "Your rows are in the opposite order. Row t belongs to position t.",
            {"place": lambda t: t.flip(0)},
        ),
        Slip(
            "rows and columns exchanged",
            "Your result is (d, n). Row t belongs to position t: shape (n, d).",
            {"axes": lambda PE: PE.T},
        ),
        Slip(
            "a batch axis in front",
            "You return (1, n, d). The encoding is (n, d); it broadcasts over any batch by itself.",
            {"axes": lambda PE: PE[None]},
        ),
        NO_TENSOR,
        Slip(
            "an odd d is accepted in silence",
            "Features come in pairs, so an odd d has a sine without its cosine. Raise `ValueError` "
            "instead of cutting one off.",
            {"count": lambda d: -(-d // 2)},
            also=(
                {"count": lambda d: d // 2},
                {"count": lambda d: -(-d // 2), "cut": lambda PE, d: PE},
            ),
        ),
    ),
    hints=(
        "First the angles: a matrix (n, d/2) of every position times every frequency.",
        "`torch.arange(n)[:, None] * frequencies` makes it, with d/2 frequencies base^(−2i/d).",
        "Two results of shape (n, d/2) take turns by `torch.stack([…, …], dim=-1).flatten(-2)`, or "
        "by writing into `PE[:, 0::2]` and `PE[:, 1::2]`.",
    ),
)

ROTATION = Exercise(
    target="positions.rotation_matrix",
    reference=positions.rotation_matrix,
    section="Chapter 11, “Moving on is turning”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("leads from every position to the one k places on", 3, rotation_values),
        Criterion("no step, and steps back", 2, rotation_back),
        Criterion(
            "an odd d is refused",
            1,
            lambda rng: [
                plain(2, 5, note="odd d", raises=ValueError),
                plain(0, 1, raises=ValueError),
            ],
        ),
    ),
    excludes=(("base given", "The base is 10000: `rotation_matrix(k, d)`."),),
    misconceptions=made(
        turned_by,
        *OF_THE_FREQUENCIES,
        COLUMNS.said(
            "You gave every row j the frequency base^(−j/d), so the two rows of a block belong to "
            "different angles. Rows 2i and 2i + 1 share base^(−2i/d)."
        ),
        Slip(
            "turned the other way",
            "Your matrix is the transposed one, R(−k): it leads k places back, or is right for "
            "rows in the place of columns. The pair is (sine, cosine), so its block is "
            "[[cos, sin], [−sin, cos]] and not that of the plane in textbooks.",
            {"block": lambda c, s: ((c, -s), (s, c))},
        ),
        Slip(
            "both sines with the same sign",
            "Your blocks are [[cos, sin], [sin, cos]], which is no rotation: lengths change. "
            "One of the sines has a minus: cos(a + b) = cos a cos b − sin a sin b.",
            {"block": lambda c, s: ((c, s), (s, c))},
            also=({"block": lambda c, s: ((c, -s), (-s, c))},),
        ),
        Slip(
            "sine and cosine exchanged",
            "Your blocks have the sine on the diagonal. For k = 0 nothing turns, so R(0) is the "
            "identity: the cosine stands on the diagonal.",
            {"block": lambda c, s: ((s, c), (-c, s))},
            also=(
                {"block": lambda c, s: ((s, c), (c, -s))},
                {"block": lambda c, s: ((s, -c), (c, s))},
            ),
        ),
        Slip(
            "a reflection in place of a rotation",
            "The minus stands before a cosine, so your blocks reflect: R(0) is not the identity. "
            "It belongs to a sine: [[cos, sin], [−sin, cos]].",
            {"block": lambda c, s: ((c, s), (s, -c))},
            also=(
                {"block": lambda c, s: ((-c, s), (s, c))},
                {"block": lambda c, s: ((c, -s), (-s, -c))},
            ),
        ),
        Slip(
            "cosines only",
            "Beside the diagonal you have zeros. A rotation mixes the two features of a pair: the "
            "block is [[cos, sin], [−sin, cos]].",
            {"block": lambda c, s: ((c, 0 * s), (0 * s, c))},
        ),
        Slip(
            "pairs (i, i + d/2)",
            "Your matrix turns feature i together with feature i + d/2. In this encoding sine and "
            "cosine are neighbours: blocks of 2 by 2 along the diagonal.",
            {"put": in_quarters},
        ),
        Slip(
            "blocks one row apart",
            "Your block i begins in row i, so each writes over a part of the one before. It begins "
            "in row 2i: `R[2*i : 2*i + 2, 2*i : 2*i + 2]`.",
            {"put": overlapping},
        ),
        Slip(
            "k counted from 1",
            "Your R(0) is not the identity: you turn by (k + 1) steps. R(k) turns by k.",
            {"place": lambda k: k + 1},
        ),
        Slip(
            "a power entry by entry",
            "`R ** k` raises every entry to the power k. Turning k times is the matrix power, "
            "`torch.linalg.matrix_power(R, k)`; shorter is to multiply the angles by k.",
            {"step": lambda turned, k: turned(1).float() ** k},
        ),
        Slip(
            "k times the matrix",
            "You multiply the entries by k. Turning k times is the matrix power, "
            "`torch.linalg.matrix_power(R, k)`; shorter is to multiply the angles by k.",
            {"step": lambda turned, k: k * turned(1)},
        ),
        Slip(
            "the sign of k is lost",
            "For k below 0 your matrix turns forwards. R(−k) turns by −k: cosines stay, sines "
            "change their sign.",
            {"place": lambda k: k.abs()},
        ),
        Slip(
            "a k below 0 is refused",
            "You raise an error for k below 0. R(k) leads back then: its angle is k · frequency, "
            "which may be negative.",
            {"place": above_0},
        ),
        Slip(
            "nothing happens for k below 0",
            "Your matrix is the identity for every k below 0; a loop over `range(k)` does not run "
            "then. Turn by the angle k · frequency, which may be negative.",
            {"place": lambda k: k.clamp(min=0)},
        ),
        NO_TENSOR,
        Slip(
            "an odd d is accepted in silence",
            "Features come in pairs, so an odd d leaves one that nothing turns with. Raise "
            "`ValueError`.",
            {
                "count": lambda d: d // 2,
                "fill": lambda R, d: into_the_corner(R, torch.eye(d)) if d % 2 else R,
            },
            also=(
                {"count": lambda d: d // 2},
                {
                    "count": lambda d: d // 2,
                    "fill": lambda R, d: into_the_corner(R, torch.zeros(d, d)) if d % 2 else R,
                },
                {"count": lambda d: -(-d // 2)},
            ),
        ),
    ),
    hints=(
        "What has to be done to (sin a, cos a) to get (sin(a + b), cos(a + b))? The addition "
        "theorems say it.",
        "One block of 2 by 2 for each pair, with the angle b = k · 10000^(−2i/d).",
        "`torch.block_diag` puts blocks along a diagonal; a loop that fills "
        "`R[2*i : 2*i + 2, 2*i : 2*i + 2]` does as well.",
    ),
)

ROPE = Exercise(
    target="positions.apply_rope",
    reference=positions.apply_rope,
    section="Chapter 11, “Turning queries and keys”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion(
            "every pair turned by its position",
            3,
            ROPE_CASES(ROPE_BY_HAND, ROPE_ROW.but("d=10")),
        ),
        Criterion(
            "the positions that are given",
            2,
            ROPE_CASES(
                at(from_3, "from position 3 on"),
                at(anywhere, "in any order, negative too"),
                at(between_whole, "not whole"),
            ),
        ),
        Criterion(
            "one token, one pair, large numbers",
            1,
            ROPE_CASES(
                at(from_3, "one token", ROPE_ROW.but("n=1")),
                ROPE_ROW.but("d=2", note="one pair"),
                ROPE_ROW.but("n=6", note="n = d"),
                *single(ROPE_ROWS.extreme[0]),
                once_more(ROPE_BY_HAND),
            ),
        ),
        Criterion("batches", 1, ROPE_CASES(*single(*ROPE_ROWS.batches))),
        Criterion(
            "another base",
            1,
            lambda rng: ROPE_CASES(ROPE_ROW.but(given={"base": float(rng.uniform(2, 50))}))(rng),
        ),
        Criterion(
            "angles in float64, results in the dtype of x",
            1,
            ROPE_CASES(
                IN_FLOAT64,
                at(far, "float32, far from 0"),
                at(far, "float64, far from 0", IN_FLOAT64),
                replace(ROPE_ROWS.extreme[1], note="float64, small, each row adds up to 0"),
            ),
        ),
        Criterion("gradients reach x", 1, ROPE_CASES(*single(*ROPE_ROWS.gradients))),
        Criterion(
            "an odd d is refused",
            1,
            lambda rng: [
                replace(case, raises=ValueError)
                for case in ROPE_CASES(ROPE_ROW.but("d=5", note="odd d"))(rng)
            ],
        ),
        leaves_arguments_alone(),
    ),
    excludes=(FLOATS_ONLY,),
    misconceptions=made(
        rope,
        *OF_THE_FREQUENCIES,
        ANOTHER_POWER,
        BASE_IGNORED,
        COLUMNS.said(
            "You gave every feature j the frequency base^(−j/d), so the two of a pair turn by "
            "different angles. Features 2i and 2i + 1 share base^(−2i/d)."
        ),
        Slip(
            "turned the other way",
            "You turn by −position: the sines have each other's sign. First x_2i cos − x_2i+1 sin, "
            "then x_2i sin + x_2i+1 cos.",
            {"mix": lambda a, b, c, s: (a * c + b * s, b * c - a * s)},
        ),
        Slip(
            "both sines with the same sign",
            "Your pairs become (x cos + y sin, x sin + y cos), which is no rotation: lengths "
            "change. The first has a minus, x cos − y sin.",
            {"mix": lambda a, b, c, s: (a * c + b * s, a * s + b * c)},
        ),
        Slip(
            "a reflection in place of a rotation",
            "Your pairs become (x cos + y sin, x sin − y cos) or the like, which reflects: at "
            "position 0 the second feature has changed its sign. Minus stands before the sine of "
            "the first: x cos − y sin, x sin + y cos.",
            {"mix": lambda a, b, c, s: (a * c + b * s, a * s - b * c)},
            also=({"mix": lambda a, b, c, s: (a * c - b * s, -a * s - b * c)},),
        ),
        Slip(
            "sine and cosine exchanged",
            "You have the sine where the cosine belongs. At position 0 nothing turns: "
            "x cos − y sin is x there.",
            {"mix": lambda a, b, c, s: (a * s - b * c, a * c + b * s)},
            also=({"mix": lambda a, b, c, s: (a * s + b * c, b * s - a * c)},),
        ),
        Slip(
            "only multiplied",
            "You multiply the one feature of a pair by cos and the other by sin. A rotation mixes "
            "the two: each new feature is made of both.",
            {"mix": lambda a, b, c, s: (a * c, b * s)},
        ),
        Slip(
            "the cosines are missing",
            "You return (−y sin, x sin) alone. What is added to it is (x cos, y cos): at position "
            "0 a pair stays as it is.",
            {"mix": lambda a, b, c, s: (-b * s, a * s)},
        ),
        Slip(
            "the first feature is overwritten before it is used",
            "You write the new first feature of a pair and then make the second one of it. Both "
            "are made of the old ones: compute the two before you write either.",
            {"mix": overwritten},
        ),
        Slip(
            "only one feature of a pair is turned",
            "One feature of each pair stays as it was. A rotation changes both: x cos − y sin and "
            "x sin + y cos.",
            {"mix": lambda a, b, c, s: (a * c - b * s, b)},
            also=({"mix": lambda a, b, c, s: (a, a * s + b * c)},),
        ),
        Slip(
            "pairs (i, i + d/2)",
            "You pair the first half of the features with the second, as Llama's programs do. Here "
            "neighbours are a pair: `x[..., 0::2]` with `x[..., 1::2]`.",
            {"cut": halves, "join": in_blocks},
        ),
        Slip(
            "the pairs are not put back",
            "You cut x into even and odd features and join the results half by half, so the "
            "features come back in another order. `torch.stack([…, …], dim=-1).flatten(-2)` lets "
            "them take turns again.",
            {"join": in_blocks},
        ),
        Slip(
            "a reshape that keeps the wrong order",
            "You stack both features of all pairs along a new axis in front and reshape, which "
            "brings no neighbours together. Stack along a last axis: `torch.stack([…, …], "
            "dim=-1).flatten(-2)`.",
            {
                "join": lambda first, second: torch.stack([first, second]).reshape(
                    *first.shape[:-1], -1
                )
            },
        ),
        Slip(
            "halves come back as neighbours",
            "You pair feature i with i + d/2 and then let the results take turns. Neighbours are a "
            "pair on the way in, too: `x[..., 0::2]` and `x[..., 1::2]`.",
            {"cut": halves},
        ),
        A_BLOCK_OF_ANGLES,
        Slip(
            "the angles of neighbours, the pairs of halves",
            "You repeat each angle in place, as neighbours need it, but pair feature i with "
            "i + d/2. The angles are right; neighbours are a pair, too: `x[..., 0::2]` with "
            "`x[..., 1::2]`.",
            {
                "cut": halves,
                "join": in_blocks,
                "frequency": lambda base, i, d, c: base ** (-2 * ((i + c * d // 2) // 2) / d),
            },
        ),
        Slip(
            "the positions are ignored",
            "You turn token t by t, whatever `positions` says. Use the positions that are given; "
            "they may start anywhere.",
            {"place": lambda t: torch.arange(len(t)).double()},
        ),
        Slip(
            "positions counted from the first one",
            "You subtract the first position from all. Position 0 is not turned, whichever token "
            "stands there.",
            {"place": lambda t: t - t[0]},
            also=({"place": lambda t: t - t.min()},),
        ),
        Slip(
            "positions counted from 1",
            "You add 1 to the positions. Position 0 is not turned at all.",
            {"place": lambda t: t + 1},
        ),
        Slip(
            "positions cut to whole numbers",
            "You turn positions into whole numbers. They may be anything in between; make them "
            "floats, `positions.double()`.",
            {"place": lambda t: t.trunc()},
            also=({"place": torch.floor}, {"place": torch.round}),
        ),
        Slip(
            "positions taken for an index",
            "You make a table of angles and look the positions up in it. They may be fractions, "
            "negative or beyond any table: the angle is position · frequency.",
            {"place": lambda t: torch.arange(len(t))[t if t.frac().any() else t.long()].double()},
            also=({"place": lambda t: torch.arange(2048)[t if t.frac().any() else t.long()]},),
        ),
        Slip(
            "the sign of the position is lost",
            "Negative positions turn forwards in your answer. The angle is position · frequency, "
            "with its sign.",
            {"place": lambda t: t.abs()},
        ),
        Slip(
            "nothing is turned at positions below 0",
            "You take negative positions for 0. They turn back: the angle is position · frequency, "
            "which may be negative.",
            {"place": lambda t: t.clamp(min=0)},
        ),
        Slip(
            "positions along the first axis",
            "With a batch in front, axis 0 is the batch. The tokens are the second axis from the "
            "end: angles of shape (n, d/2) broadcast by themselves, without further axes.",
            {"align": along_the_first_axis},
        ),
        Slip(
            "positions along the third axis from the end",
            "Your angles are (n, 1, d/2), which fits where the heads stand between tokens and "
            "features. Here x is (..., n, d): angles of shape (n, d/2) broadcast by themselves.",
            {"align": lambda angles, x: angles[:, None]},
        ),
        Slip(
            "positions shared out over the batch",
            "You flatten the batch and repeat each position in a run, 0 0 1 1 …, so that a "
            "sequence gets the positions of others. Each sequence has them all: 0 1 … 0 1 …, which "
            "is `repeat`; broadcasting does it without either.",
            {"align": shared_out_over_the_batch},
        ),
        Slip(
            "an encoding is added",
            "You add sines and cosines to x. RoPE adds nothing: it turns each pair of features.",
            {"mix": lambda a, b, c, s: (a + s, b + c)},
        ),
        Slip(
            "angles in float32",
            "Your angles are float32, torch's default: at position 100 000 they are wrong by a "
            "thousandth, and float64 queries lose half their digits. `torch.arange(…, "
            "dtype=torch.float64)`, then cast the cosines and sines to x.dtype.",
            {"kind": lambda dtype: torch.float32},
            also=(
                {"kind": lambda dtype: torch.float32, "place": lambda t: t.double()},
                {"turn": lambda angles: angles.float()},
                {
                    "kind": lambda dtype: torch.float32,
                    "frequency": lambda base, i, d, c: 1 / base ** (2 * i / d),
                },
                {
                    "kind": lambda dtype: torch.float32,
                    "frequency": lambda base, i, d, c: (2 * i * (-math.log(base) / d)).exp(),
                },
            ),
        ),
        Slip(
            "angles in the dtype of x",
            "You compute the angles in the dtype of x, and at position 100 000 those of float32 "
            "are wrong by a thousandth. Compute them in float64, whatever x is, then cast the "
            "cosines and sines to x.dtype.",
            {"kind": lambda dtype: dtype},
            also=(
                {
                    "kind": lambda dtype: dtype,
                    "frequency": lambda base, i, d, c: 1 / base ** (2 * i / d),
                },
                {
                    "kind": lambda dtype: dtype,
                    "frequency": lambda base, i, d, c: (2 * i * (-math.log(base) / d)).exp(),
                },
            ),
        ),
        Slip(
            "float32 comes back as float64",
            "The result is float64 where x is float32: the angles' dtype has spread. Cast the "
            "cosines and sines, `.to(x.dtype)`, before they meet x.",
            {"cast": lambda wave, x: wave},
        ),
        Slip(
            "x is changed in place",
            "You write into x, which belongs to the caller. Build a new tensor.",
            {"give": lambda turned, x: x.copy_(turned)},
        ),
        Slip(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            {"take": lambda x: x.detach()},
        ),
        Slip(
            "an odd d is accepted in silence",
            "Features come in pairs, so an odd d leaves one that nothing turns with. Raise "
            "`ValueError`.",
            {"count": lambda d: d // 2},
            also=({"count": lambda d: d // 2, "give": lambda turned, x: turned[..., :-1]},),
        ),
    ),
    hints=(
        "Angles first, shape (n, d/2): every position times every frequency.",
        "`x[..., 0::2]` and `x[..., 1::2]`, each (..., n, d/2), are the two features of all pairs.",
        "Both new features of a pair are made of both old ones. `torch.stack([…, …], "
        "dim=-1).flatten(-2)` lets two results take turns.",
    ),
)

ALIBI = Exercise(
    target="positions.alibi_bias",
    reference=positions.alibi_bias,
    section="Chapter 11, “Farther is less”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion(
            "minus slope times distance, for every head",
            3,
            lambda rng: [
                ALIBI_BY_HAND,
                plain(4, 3, note="slopes 1/4, 1/16, 1/64 and 1/256"),
                plain(8, 5, note="slopes 1/2, 1/4, …, 1/256"),
                plain(16, int(rng.integers(6, 12))),
            ],
        ),
        Criterion(
            "any number of heads and tokens",
            2,
            lambda rng: [
                plain(1, 4, note="one head"),
                plain(3, 7, note="three heads"),
                plain(5, 1, note="one token"),
                plain(7, 2, note="two tokens"),
                plain(6, 6, note="as many heads as tokens"),
                plain(4, 19, note="many tokens"),
                plain(12, 4, note="twelve heads"),
                once_more(ALIBI_BY_HAND),
            ],
        ),
    ),
    misconceptions=made(
        linear,
        Slip(
            "the sign is missing",
            "Your bias grows with the distance, so far tokens are favoured. It is subtracted: "
            "−slope · |i − j|.",
            {"sign": lambda slopes, distance: slopes * distance},
        ),
        Slip(
            "the slope is left out",
            "You return the same −|i − j| for every head. Each has its own slope, "
            "2^(−8(h + 1)/n_heads).",
            {"sign": lambda slopes, distance: -distance.expand(len(slopes), *distance.shape)},
        ),
        Slip(
            "the sign of the distance is kept",
            "You use i − j, which is negative for keys that come later, so those are favoured. The "
            "distance is |i − j|.",
            {"distance": lambda i, j: i - j},
        ),
        Slip(
            "squared distance",
            "You square the distance. ALiBi is linear in it: |i − j|.",
            {"distance": lambda i, j: (i - j) ** 2},
        ),
        Slip(
            "not linear in the distance",
            "Your bias grows more slowly than the distance, as its root or its logarithm. ALiBi is "
            "linear: each step costs the same.",
            {"distance": lambda i, j: (i - j).abs().sqrt()},
            also=({"distance": lambda i, j: (1 + (i - j).abs()).log()},),
        ),
        Slip(
            "distance counted from 1",
            "A token is at distance 0 from itself, and the diagonal of the bias is 0.",
            {"distance": lambda i, j: (i - j).abs() + 1},
            lambda number: {"distance": lambda i, j: (i - j).abs() + number},
            (-1, 0.5, 2),
        ),
        Slip(
            "distance divided by n",
            "You divide the distance by the length. A step costs the same in every sequence, "
            "however long: that is what lets ALiBi go on beyond the trained length.",
            {"distance": lambda i, j: (i - j).abs() / len(j)},
            also=({"distance": lambda i, j: (i - j).abs() / max(len(j) - 1, 1)},),
        ),
        Slip(
            "only the key's place counts",
            "Your rows are all alike: −slope · (n − 1 − j). Under a causal mask softmax cannot "
            "tell that from the distance; without one, later keys win. Use |i − j|.",
            {"distance": lambda i, j: 0 * i + len(j) - 1 - j},
        ),
        Slip(
            "the distance from the first token",
            "Your rows are all alike: −slope · j, so that early keys win, wherever the query is. "
            "The distance is that of the two, |i − j|.",
            {"distance": lambda i, j: 0 * i + j},
        ),
        Slip(
            "only the query's place counts",
            "Each of your rows is one number, −slope · i, which softmax does not see at all. The "
            "distance is that of query and key, |i − j|.",
            {"distance": lambda i, j: i + 0 * j},
        ),
        Slip(
            "the future is shut out",
            "You put −∞ where the key comes after the query. That is a causal mask, a step of its "
            "own; the bias is finite and symmetric.",
            {"later": lambda b: b.masked_fill(torch.ones_like(b).triu(1).bool(), -math.inf)},
        ),
        Slip(
            "the future is left at 0",
            "Above the diagonal your bias is 0, the best score of all. The distance to a later key "
            "counts as that to an earlier one.",
            {"later": torch.tril},
        ),
        Slip(
            "the past is left at 0",
            "Below the diagonal your bias is 0, the best score of all. The distance to an earlier "
            "key counts as that to a later one.",
            {"later": torch.triu},
        ),
        Slip(
            "slopes counted from 0",
            "Your first slope is 1: the exponent is −8h/n_heads. It is −8(h + 1)/n_heads for h "
            "from 0, and the last slope is 1/256.",
            {"slope": lambda h, heads, n: 2.0 ** (-8 * h / heads)},
        ),
        Slip(
            "slopes for eight heads",
            "Your slopes are 1/2, 1/4, 1/8, …, which is right for eight heads and no other number. "
            "The exponent is −8(h + 1)/n_heads.",
            {"slope": lambda h, heads, n: 2.0 ** -(h + 1)},
        ),
        Slip(
            "slopes from 1/2 to 1/256",
            "Your exponents run from −1 to −8, which is right for eight heads only. They are "
            "−8(h + 1)/n_heads: the first slope of four heads is 1/4.",
            {"slope": lambda h, heads, n: 2.0 ** -torch.linspace(1, 8, heads).double()},
        ),
        Slip(
            "the exponent divided without a rest",
            "You divide by n_heads with `//`, so that exponents are whole numbers, which is right "
            "only where n_heads divides 8. Use `/`.",
            {"slope": lambda h, heads, n: 2.0 ** -(8 * (h + 1) // heads)},
            also=({"slope": lambda h, heads, n: 2.0 ** (-8 * (h + 1) // heads)},),
        ),
        Slip(
            "the 8 is missing from the exponent",
            "Your slopes end at 1/2: the exponent is −(h + 1)/n_heads. It has a factor of 8.",
            {"slope": lambda h, heads, n: 2.0 ** (-(h + 1) / heads)},
        ),
        Slip(
            "another last slope",
            "Your slopes fall by equal factors, but end at another number than 1/256. They are "
            "powers of 2, not of e or another number, and the exponent is −8(h + 1)/n_heads.",
            {"slope": lambda h, heads, n: math.e ** (-8 * (h + 1) / heads)},
            lambda number: {"slope": lambda h, heads, n: 2.0 ** (-number * (h + 1) / heads)},
            Between(1.05, 7.9),
            (
                {"slope": lambda h, heads, n: 2.0 ** (-10 * (h + 1) / heads)},
                {"slope": lambda h, heads, n: 2.0 ** (-16 * (h + 1) / heads)},
                {"slope": lambda h, heads, n: 10.0 ** (-8 * (h + 1) / heads)},
            ),
        ),
        Slip(
            "the exponent is divided by another number than n_heads",
            "Your exponents are divided by something near the number of heads. It is n_heads "
            "itself: −8(h + 1)/n_heads, and the last slope is 1/256.",
            {"slope": lambda h, heads, n: 2.0 ** (-8 * (h + 1) / (heads + 1))},
            also=({"slope": lambda h, heads, n: 2.0 ** (-8 * h / max(heads - 1, 1))},),
        ),
        Slip(
            "the exponent is divided by the number of tokens",
            "Your slopes depend on n, the length of the sequence. They belong to the heads: the "
            "exponent is −8(h + 1)/n_heads.",
            {"slope": lambda h, heads, n: 2.0 ** (-8 * (h + 1) / n)},
        ),
        Slip(
            "the power is taken too soon",
            "`2 ** -8 * (h + 1) / n_heads` takes the power first and multiplies afterwards. Put "
            "the whole exponent in brackets: `2 ** (-8 * (h + 1) / n_heads)`.",
            {"slope": lambda h, heads, n: 2.0**-8 * (h + 1) / heads},
        ),
        Slip(
            "the head's number below the line",
            "Your exponent is −8/(h + 1). The number of the head multiplies, n_heads divides: "
            "−8(h + 1)/n_heads.",
            {"slope": lambda h, heads, n: 2.0 ** (-8 / (h + 1))},
        ),
        Slip(
            "the exponent has the wrong sign",
            "Your slopes grow with h, up to 256: the exponent lacks its minus, or you divide by a "
            "slope. They fall, 2^(−8(h + 1)/n_heads).",
            {"slope": lambda h, heads, n: 2.0 ** (8 * (h + 1) / heads)},
        ),
        Slip(
            "slopes evenly spaced",
            "Your slopes fall by equal steps. They fall by equal factors, 2^(−8/n_heads).",
            {"slope": lambda h, heads, n: (heads - h) / heads},
            also=(
                {"slope": lambda h, heads, n: torch.linspace(1 / 2, 1 / 256, heads).double()},
                {"slope": lambda h, heads, n: torch.linspace(1, 1 / 256, heads).double()},
            ),
        ),
        Slip(
            "one slope for all heads",
            "Every head has the same slope in your answer. Head h has its own, "
            "2^(−8(h + 1)/n_heads).",
            {"slope": lambda h, heads, n: 0 * h + 0.5},
            lambda number: {"slope": lambda h, heads, n: 0 * h + number},
            Between(1e-3, 0.9),
            ({"slope": lambda h, heads, n: 0 * h + 2 ** (-8 / heads)},),
        ),
        Slip(
            "the gentlest slope first",
            "Your heads are in the opposite order. Head 0 has the steepest slope, 2^(−8/n_heads).",
            {"slope": lambda h, heads, n: 2.0 ** (-8 * (heads - h) / heads)},
        ),
        Slip(
            "slopes of the authors' program",
            "Where the number of heads is no power of two, the program of the paper takes its "
            "slopes from two sequences. Here one formula serves every number: "
            "2^(−8(h + 1)/n_heads).",
            {"slope": slopes_of_the_paper},
        ),
        Slip(
            "the heads come last",
            "Your shape is (n, n, n_heads). The heads lead, (n_heads, n, n), as they do in scores.",
            {"axes": lambda b: b.permute(1, 2, 0)},
        ),
        Slip(
            "the heads stand in the middle",
            "Your shape is (n, n_heads, n). The heads lead, (n_heads, n, n), as they do in scores.",
            {"axes": lambda b: b.transpose(0, 1)},
        ),
        Slip(
            "no axis of heads",
            "You return one matrix (n, n). Each head has its own, (n_heads, n, n): "
            "`slopes[:, None, None] * distance`.",
            {"axes": lambda b: b[0]},
            also=({"axes": lambda b: b.sum(0)}, {"axes": lambda b: b.mean(0)}),
        ),
        Slip(
            "a batch axis in front",
            "You return (1, n_heads, n, n). The bias is (n_heads, n, n); it broadcasts over any "
            "batch by itself.",
            {"axes": lambda b: b[None]},
        ),
        Slip(
            "already a softmax",
            "You return weights. The bias is added to scores, and the softmax comes after that.",
            {"axes": lambda b: b.softmax(-1)},
        ),
        NO_TENSOR,
    ),
    hints=(
        "Two pieces: n_heads slopes, and a matrix (n, n) of distances.",
        "`torch.arange(n)[:, None] - torch.arange(n)` is i − j for all i and j.",
        "`slopes[:, None, None] * distance` makes (n_heads, n, n).",
    ),
)

EXERCISES = (SINUSOIDAL, ROTATION, ROPE, ALIBI)
