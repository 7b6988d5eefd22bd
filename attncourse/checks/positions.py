"""The exercises of chapter 11, positions.

``sinusoidal_encoding``, ``rotation_matrix`` and ``alibi_bias`` get no tensor whose dtype they could
keep, so a float64 answer is rounded before it is compared, and positions stay so small that angles
in float32 are right. ``apply_rope`` gets float32 everywhere but in the criterion about precision.
"""

import math

import torch

from attncourse import positions
from attncourse.checks.drivers import call_in_default_dtype, with_gradients
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import normal, tensor

# --- cases -----------------------------------------------------------------------------------


def plain(*args, note: str = "", raises: type[Exception] | None = None, **kwargs) -> Case:
    """A case whose answer may have torch's default dtype or float64."""
    return Case(args, kwargs, note=note, raises=raises, use=call_in_default_dtype)


def even(rng: Rng, low: int, high: int) -> int:
    return 2 * int(rng.integers(low, high))


def sinusoidal_values(rng: Rng) -> list[Case]:
    return [
        plain(4, 4, note="two pairs, of frequency 1 and 1/100"),
        plain(5, 10),
        plain(int(rng.integers(13, 40)), even(rng, 6, 12)),
    ]


def sinusoidal_shapes(rng: Rng) -> list[Case]:
    return [
        plain(1, 6, note="one position"),
        plain(7, 2, note="one pair"),
        plain(6, 6, note="n = d"),
        plain(3, 16, note="more features than positions"),
    ]


def sinusoidal_bases(rng: Rng) -> list[Case]:
    return [plain(7, 6, base=100.0), plain(5, 8, base=float(rng.uniform(2, 50)))]


def sinusoidal_odd(rng: Rng) -> list[Case]:
    return [plain(5, 7, note="odd d", raises=ValueError), plain(3, 1, raises=ValueError)]


def rotation_values(rng: Rng) -> list[Case]:
    return [
        plain(1, 2, note="one pair"),
        plain(1, 4, note="two pairs, of frequency 1 and 1/100"),
        plain(3, 6),
        plain(int(rng.integers(5, 40)), 10),
    ]


def rotation_back(rng: Rng) -> list[Case]:
    return [
        plain(0, 4, note="no step"),
        plain(-1, 4, note="one step back"),
        plain(-int(rng.integers(2, 30)), 8),
    ]


def rotation_odd(rng: Rng) -> list[Case]:
    return [plain(2, 5, note="odd d", raises=ValueError), plain(0, 1, raises=ValueError)]


def floats(rng: Rng, *shape: int) -> torch.Tensor:
    return normal(rng, *shape).float()


def rope_values(rng: Rng) -> list[Case]:
    quarter = tensor([0, math.pi / 2]).float()
    return [
        Case((tensor([[1, 2], [3, 4]]).float(), quarter), note="a quarter turn for token 1"),
        Case((floats(rng, 5, 4), torch.arange(5))),
        Case((floats(rng, 7, 10), torch.arange(7))),
    ]


def rope_positions(rng: Rng) -> list[Case]:
    anywhere = torch.from_numpy(rng.permutation(40)[:7])
    return [
        Case((floats(rng, 5, 6), torch.arange(5) + 3), note="from position 3 on"),
        Case((floats(rng, 7, 4), anywhere), note="in any order"),
        Case((floats(rng, 5, 8), torch.arange(5) - 9), note="negative"),
        Case((floats(rng, 3, 6), tensor([0.5, 2.25, 7.0]).float()), note="not whole"),
    ]


def rope_shapes(rng: Rng) -> list[Case]:
    return [
        Case((floats(rng, 1, 6), torch.tensor([4])), note="one token"),
        Case((floats(rng, 7, 2), torch.arange(7)), note="one pair"),
        Case((floats(rng, 6, 6), torch.arange(6)), note="n = d"),
        Case((floats(rng, 8, 5).T, torch.arange(5)), note="not contiguous in memory"),
    ]


def rope_batch(rng: Rng) -> list[Case]:
    return [
        Case((floats(rng, 5, 5, 4), torch.arange(5) + 1), note="a batch of 5, five tokens"),
        Case((floats(rng, 2, 7, 6), torch.arange(7)), note="a batch of 2"),
        Case((floats(rng, 2, 3, 5, 8), torch.arange(5) - 2), note="two batch axes"),
    ]


def rope_bases(rng: Rng) -> list[Case]:
    base = float(rng.uniform(2, 50))
    return [Case((floats(rng, 7, 6), torch.arange(7)), {"base": b}) for b in (100.0, base)]


def rope_precision(rng: Rng) -> list[Case]:
    far = torch.from_numpy(rng.integers(90_000, 110_000, size=7))
    return [
        Case((normal(rng, 7, 6), torch.arange(7)), note="float64"),
        Case((floats(rng, 7, 6), far), note="float32, far from 0"),
        Case((normal(rng, 7, 6), far), note="float64, far from 0"),
    ]


def rope_gradients(rng: Rng) -> list[Case]:
    return [Case((floats(rng, 2, 5, 6), torch.arange(5) + 2), use=with_gradients("x"))]


def rope_odd(rng: Rng) -> list[Case]:
    args = floats(rng, 7, 5), torch.arange(7)
    return [Case(args, note="odd d", raises=ValueError)]


def alibi_values(rng: Rng) -> list[Case]:
    return [
        plain(2, 2, note="slopes 1/16 and 1/256"),
        plain(4, 3, note="slopes 1/4, 1/16, 1/64 and 1/256"),
        plain(8, 5, note="slopes 1/2, 1/4, …, 1/256"),
        plain(16, int(rng.integers(6, 12))),
    ]


def alibi_shapes(rng: Rng) -> list[Case]:
    return [
        plain(1, 4, note="one head"),
        plain(3, 7, note="three heads"),
        plain(5, 1, note="one token"),
        plain(6, 6, note="as many heads as tokens"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def pairs(sin, cos):
    """sin, cos, sin, cos, …"""
    return torch.stack([sin, cos], dim=-1).flatten(-2)


def blocks(sin, cos):
    """All sines, then all cosines."""
    return torch.cat([sin, cos], dim=-1)


def hands(d, base, power=lambda i, d: 2 * i / d):
    """Frequencies ``base**-power(i, d)`` for i from 0, of an even number of features."""
    if d % 2:
        raise ValueError(f"d is odd: {d}")
    i = torch.arange(d // 2, dtype=torch.float64)
    return base ** -power(i, d)


# What is said of a wrong frequency, wherever frequencies occur.
COUNTED_FROM_1 = (
    "Your frequencies are base^(−2i/d) for i from 1. Count i from 0: the first pair turns by "
    "1 radian a step. Look at the `range` or `arange`, or use 2(i − 1)/d."
)
HALF_THE_EXPONENT = (
    "Your exponent is i/d, so the frequencies span only half of their range. Pair i has the "
    "exponent 2i/d; with `torch.arange(0, d, 2)` the 2 is already in it."
)
TWICE_THE_EXPONENT = (
    "The 2 of 2i/d is in your exponent twice: `torch.arange(0, d, 2)` already counts 0, 2, 4, …, "
    "so divide it by d and leave the other 2 out."
)
GROWING = (
    "Your frequencies grow with i. They fall, from 1 towards 1/base: base^(−2i/d), or divide by "
    "base^(2i/d)."
)
BOTH_ENDS = (
    "You spread the exponents from 0 to 1 with both ends, i/(d/2 − 1), as some libraries do. The "
    "formula divides by d: the last exponent is (d − 2)/d."
)
ALL_ALIKE = (
    "Every pair turns equally fast in your answer. Pair i has its own frequency, base^(−2i/d)."
)


def wave(power=lambda i, d: 2 * i / d, start=0, pack=pairs, shape=lambda PE: PE, turn=1.0):
    """A wrong ``sinusoidal_encoding`` made of wrong parts; each is right unless given."""

    def sinusoidal_encoding(n, d, base=10000.0):
        angles = turn * (torch.arange(n) + start).double()[:, None] * hands(d, base, power)
        return shape(pack(angles.sin(), angles.cos()).float())

    return sinusoidal_encoding


def each_column_its_own(n, d, base=10000.0):
    hands(d, base)
    angles = torch.arange(n).double()[:, None] * base ** (-torch.arange(d).double() / d)
    return torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos()).float()


def doubled_column(n, d, base=10000.0):
    hands(d, base)
    angles = torch.arange(n).double()[:, None] * base ** (-2 * torch.arange(d).double() / d)
    return torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos()).float()


def base_forgotten(n, d, base=10000.0):
    angles = torch.arange(n).double()[:, None] * hands(d, math.e)
    return pairs(angles.sin(), angles.cos()).float()


def waves_of_odd_width(n, d, base=10000.0):
    omega = base ** (-2 * torch.arange(-(-d // 2)).double() / d)
    angles = torch.arange(n).double()[:, None] * omega
    return pairs(angles.sin(), angles.cos())[:, :d].float()


def turned_by(power=lambda i, d: 2 * i / d, block=None, step=lambda k: k):
    """A wrong ``rotation_matrix``; ``block`` makes the four entries of a pair's block."""
    block = block or (lambda c, s: (c, s, -s, c))

    def rotation_matrix(k, d):
        angles = step(k) * hands(d, 10000.0, power)
        entries = torch.stack(block(angles.cos(), angles.sin()), dim=-1)
        return torch.block_diag(*entries.reshape(-1, 2, 2)).float()

    return rotation_matrix


RIGHT_ROTATION = turned_by()


def rotation_in_halves(k, d):
    angles = k * hands(d, 10000.0)
    cos, sin = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)]).float()


def entrywise_power(k, d):
    return RIGHT_ROTATION(1, d) ** k


def rotation_of_odd_width(k, d):
    angles = k * 10000.0 ** (-2 * torch.arange(d // 2).double() / d)
    entries = torch.stack([angles.cos(), angles.sin(), -angles.sin(), angles.cos()], dim=-1)
    R = torch.eye(d)
    R[: d - d % 2, : d - d % 2] = torch.block_diag(*entries.reshape(-1, 2, 2)).float()
    return R


def angles_of(x, positions, base, power=lambda i, d: 2 * i / d):
    """Angles ``(n, d/2)`` in float64."""
    return positions.double()[:, None] * hands(x.shape[-1], base, power)


def interleaved(x):
    return x[..., 0::2], x[..., 1::2]


def rope(
    power=lambda i, d: 2 * i / d,
    angles=None,
    cut=interleaved,
    turn=lambda a, b, c, s: (a * c - b * s, a * s + b * c),
    join=pairs,
):
    """A wrong ``apply_rope`` made of wrong parts; each is right unless given."""

    def apply_rope(x, positions, base=10000.0):
        a = angles_of(x, positions, base, power) if angles is None else angles(x, positions, base)
        return join(*turn(*cut(x), a.cos().to(x), a.sin().to(x)))

    return apply_rope


RIGHT_ROPE = rope()


def along_the_first_axis(x, positions, base):
    angles = angles_of(x, positions, base)
    return angles.reshape(len(positions), *[1] * (x.ndim - 2), -1)


def shared_out_over_the_batch(x, positions, base):
    times = x[..., 0, 0].numel()
    angles = angles_of(x, positions, base).repeat_interleave(times, dim=0)
    return angles.reshape(*x.shape[:-1], -1)


def half_of_each(x):
    return x.chunk(2, dim=-1)


def mixed_layouts(x, positions, base=10000.0):
    """The angles of one layout on the pairs of the other."""
    a = angles_of(x, positions, base).to(x)
    cos, sin = blocks(a.cos(), a.cos()), blocks(a.sin(), a.sin())
    first, second = interleaved(x)
    return x * cos + pairs(-second, first) * sin


def encoding_added(x, positions, base=10000.0):
    a = angles_of(x, positions, base).to(x)
    return x + pairs(a.sin(), a.cos())


def rope_in_place(x, positions, base=10000.0):
    x.copy_(RIGHT_ROPE(x, positions, base))
    return x


def rope_of_odd_width(x, positions, base=10000.0):
    d = x.shape[-1]
    angles = positions.double()[:, None] * base ** (-2 * torch.arange(d // 2).double() / d)
    first, second = x[..., 0 : d - d % 2 : 2], x[..., 1::2]
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    turned = pairs(first * cos - second * sin, first * sin + second * cos)
    return torch.cat([turned, x[..., d - d % 2 :]], dim=-1)


def angles_in_float32(x, positions, base):
    d = x.shape[-1]
    hands(d, base)
    return positions.float()[:, None] * base ** (-torch.arange(0, d, 2).float() / d)


def rope_in_float64(x, positions, base=10000.0):
    return RIGHT_ROPE(x.double(), positions, base)


def slopes_of(n_heads):
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1).double() / n_heads)


def slopes_of_the_paper(n_heads):
    # Interpolated where n_heads is no power of two.
    power = 2 ** int(math.log2(n_heads))
    if power == n_heads:
        return slopes_of(n_heads)
    return torch.cat([slopes_of(power), slopes_of(2 * power)[0::2][: n_heads - power]])


def apart(n):
    return (torch.arange(n)[:, None] - torch.arange(n)).double()


def linear(slopes=slopes_of, distance=lambda n: apart(n).abs(), finish=lambda b: b):
    """A wrong ``alibi_bias`` made of wrong parts; each is right unless given."""
    return lambda n_heads, n: finish(-slopes(n_heads)[:, None, None] * distance(n)).float()


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
        Criterion("one position, one pair, any n and d", 1, sinusoidal_shapes),
        Criterion("another base", 1, sinusoidal_bases),
        Criterion("an odd d is refused", 1, sinusoidal_odd),
    ),
    misconceptions=(
        Misconception(
            "frequencies counted from 1", COUNTED_FROM_1, wave(lambda i, d: 2 * (i + 1) / d)
        ),
        Misconception("exponent i/d in place of 2i/d", HALF_THE_EXPONENT, wave(lambda i, d: i / d)),
        Misconception(
            "exponent 4i/d in place of 2i/d", TWICE_THE_EXPONENT, wave(lambda i, d: 4 * i / d)
        ),
        Misconception("the exponent has the wrong sign", GROWING, wave(lambda i, d: -2 * i / d)),
        Misconception(
            "frequencies that end at 1/base exactly",
            BOTH_ENDS,
            wave(lambda i, d: i / max(d // 2 - 1, 1)),
        ),
        Misconception("one frequency for all pairs", ALL_ALIKE, wave(lambda i, d: 0 * i)),
        Misconception(
            "a frequency for each column",
            "You gave every column j the frequency base^(−j/d), so the sine and the cosine of a "
            "pair belong to different hands. Columns 2i and 2i + 1 share base^(−2i/d): halve the "
            "column's number, `j // 2`, before you use it.",
            each_column_its_own,
        ),
        Misconception(
            "the column's number taken for the pair's",
            "You put the number of the column, 0 to d − 1, in the place of i, so the frequencies "
            "run from 1 to about 1/base². i counts pairs: it is `j // 2` for column j.",
            doubled_column,
        ),
        Misconception(
            "all sines, then all cosines",
            "You put the sines into the first half and the cosines into the second. They take "
            "turns here: sine in column 2i, cosine in column 2i + 1.",
            wave(pack=blocks),
        ),
        Misconception(
            "cosine before sine",
            "Sine and cosine have changed places. The even columns, from 0, are sines; so row 0 "
            "begins 0, 1, 0, 1.",
            wave(pack=lambda sin, cos: pairs(cos, sin)),
        ),
        Misconception(
            "sines only",
            "Both columns of a pair are sines. With the sine alone two positions of one round look "
            "alike; column 2i + 1 is the cosine.",
            wave(pack=lambda sin, cos: pairs(sin, sin)),
        ),
        Misconception(
            "positions counted from 1",
            "Your first row is position 1. Positions count from 0, and row 0 is 0, 1, 0, 1, ….",
            wave(start=1),
        ),
        Misconception(
            "2π in the angle",
            "You multiply the angle by 2π, as if frequencies were rounds per position. They are "
            "radians: the angle is t · base^(−2i/d), and the first wavelength is 2π.",
            wave(turn=2 * math.pi),
        ),
        Misconception(
            "the logarithm of the base is missing",
            "Your frequencies are exp(−2i/d), whatever the base. base^(−2i/d) is "
            "exp(−2i/d · ln base).",
            base_forgotten,
        ),
        Misconception(
            "base is ignored",
            "You always use 10000. Use the argument `base`.",
            lambda n, d, base=10000.0: wave()(n, d),
        ),
        Misconception(
            "rows and columns exchanged",
            "Your result is (d, n). Row t belongs to position t: shape (n, d).",
            wave(shape=lambda PE: PE.T),
        ),
        Misconception(
            "a batch axis in front",
            "You return (1, n, d). The encoding is (n, d); it broadcasts over any batch by itself.",
            wave(shape=lambda PE: PE[None]),
        ),
        Misconception(
            "an odd d is accepted in silence",
            "Features come in pairs, so an odd d has a sine without its cosine. Raise `ValueError` "
            "instead of cutting one off.",
            waves_of_odd_width,
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
        Criterion("an odd d is refused", 1, rotation_odd),
    ),
    misconceptions=(
        Misconception(
            "frequencies counted from 1", COUNTED_FROM_1, turned_by(lambda i, d: 2 * (i + 1) / d)
        ),
        Misconception(
            "exponent i/d in place of 2i/d", HALF_THE_EXPONENT, turned_by(lambda i, d: i / d)
        ),
        Misconception(
            "exponent 4i/d in place of 2i/d", TWICE_THE_EXPONENT, turned_by(lambda i, d: 4 * i / d)
        ),
        Misconception(
            "the exponent has the wrong sign", GROWING, turned_by(lambda i, d: -2 * i / d)
        ),
        Misconception(
            "frequencies that end at 1/base exactly",
            BOTH_ENDS,
            turned_by(lambda i, d: i / max(d // 2 - 1, 1)),
        ),
        Misconception("one frequency for all pairs", ALL_ALIKE, turned_by(lambda i, d: 0 * i)),
        Misconception(
            "turned the other way",
            "Your matrix is the transposed one, R(−k): it leads k places back, or is right for "
            "rows in the place of columns. The pair is (sine, cosine), so its block is "
            "[[cos, sin], [−sin, cos]] and not that of the plane in textbooks.",
            turned_by(block=lambda c, s: (c, -s, s, c)),
        ),
        Misconception(
            "both sines with the same sign",
            "Your blocks are [[cos, sin], [sin, cos]], which is no rotation: lengths change. "
            "One of the sines has a minus: cos(a + b) = cos a cos b − sin a sin b.",
            turned_by(block=lambda c, s: (c, s, s, c)),
        ),
        Misconception(
            "sine and cosine exchanged",
            "Your blocks have the sine on the diagonal. For k = 0 nothing turns, so R(0) is the "
            "identity: the cosine stands on the diagonal.",
            turned_by(block=lambda c, s: (s, c, -c, s)),
        ),
        Misconception(
            "pairs (i, i + d/2)",
            "Your matrix turns feature i together with feature i + d/2. In this encoding sine and "
            "cosine are neighbours: blocks of 2 by 2 along the diagonal.",
            rotation_in_halves,
        ),
        Misconception(
            "k counted from 1",
            "Your R(0) is not the identity: you turn by (k + 1) steps. R(k) turns by k.",
            turned_by(step=lambda k: k + 1),
        ),
        Misconception(
            "a power entry by entry",
            "`R ** k` raises every entry to the power k. Turning k times is the matrix power, "
            "`torch.linalg.matrix_power(R, k)`; shorter is to multiply the angles by k.",
            entrywise_power,
        ),
        Misconception(
            "the sign of k is lost",
            "For k below 0 your matrix turns forwards. R(−k) turns by −k: cosines stay, sines "
            "change their sign.",
            turned_by(step=abs),
        ),
        Misconception(
            "nothing happens for k below 0",
            "Your matrix is the identity for every k below 0; a loop over `range(k)` does not run "
            "then. Turn by the angle k · frequency, which may be negative.",
            turned_by(step=lambda k: max(k, 0)),
        ),
        Misconception(
            "an odd d is accepted in silence",
            "Features come in pairs, so an odd d leaves one that nothing turns with. Raise "
            "`ValueError`.",
            rotation_of_odd_width,
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
        Criterion("every pair turned by its position", 3, rope_values),
        Criterion("the positions that are given", 2, rope_positions),
        Criterion("one token, one pair, any memory layout", 1, rope_shapes),
        Criterion("batches", 1, rope_batch),
        Criterion("another base", 1, rope_bases),
        Criterion("angles in float64, results in the dtype of x", 1, rope_precision),
        Criterion("gradients reach x", 1, rope_gradients),
        Criterion("an odd d is refused", 1, rope_odd),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "frequencies counted from 1", COUNTED_FROM_1, rope(lambda i, d: 2 * (i + 1) / d)
        ),
        Misconception("exponent i/d in place of 2i/d", HALF_THE_EXPONENT, rope(lambda i, d: i / d)),
        Misconception(
            "exponent 4i/d in place of 2i/d", TWICE_THE_EXPONENT, rope(lambda i, d: 4 * i / d)
        ),
        Misconception("the exponent has the wrong sign", GROWING, rope(lambda i, d: -2 * i / d)),
        Misconception(
            "frequencies that end at 1/base exactly",
            BOTH_ENDS,
            rope(lambda i, d: i / max(d // 2 - 1, 1)),
        ),
        Misconception("one frequency for all pairs", ALL_ALIKE, rope(lambda i, d: 0 * i)),
        Misconception(
            "turned the other way",
            "You turn by −position: the sines have each other's sign. First x_2i cos − x_2i+1 sin, "
            "then x_2i sin + x_2i+1 cos.",
            rope(turn=lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
        ),
        Misconception(
            "both sines with the same sign",
            "Your pairs become (x cos + y sin, x sin + y cos), which is no rotation: lengths "
            "change. The first has a minus, x cos − y sin.",
            rope(turn=lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
        ),
        Misconception(
            "only multiplied",
            "You multiply the one feature of a pair by cos and the other by sin. A rotation mixes "
            "the two: each new feature is made of both.",
            rope(turn=lambda a, b, c, s: (a * c, b * s)),
        ),
        Misconception(
            "pairs (i, i + d/2)",
            "You pair the first half of the features with the second, as Llama's programs do. Here "
            "neighbours are a pair: `x[..., 0::2]` with `x[..., 1::2]`.",
            rope(cut=half_of_each, join=blocks),
        ),
        Misconception(
            "the pairs are not put back",
            "You cut x into even and odd features and join the results half by half, so the "
            "features come back in another order. `torch.stack([…, …], dim=-1).flatten(-2)` lets "
            "them take turns again.",
            rope(join=blocks),
        ),
        Misconception(
            "halves come back as neighbours",
            "You pair feature i with i + d/2 and then let the results take turns. Neighbours are a "
            "pair on the way in, too: `x[..., 0::2]` and `x[..., 1::2]`.",
            rope(cut=half_of_each),
        ),
        Misconception(
            "the angles of one layout, the pairs of the other",
            "You turn neighbours, but repeat the angles as a block, `torch.cat([a, a], -1)`, so "
            "the two features of a pair get different angles. Repeat each in place: "
            "`a.repeat_interleave(2, dim=-1)`.",
            mixed_layouts,
        ),
        Misconception(
            "the positions are ignored",
            "You turn token t by t, whatever `positions` says. Use the positions that are given; "
            "they may start anywhere.",
            rope(angles=lambda x, p, base: angles_of(x, torch.arange(len(p)), base)),
        ),
        Misconception(
            "positions counted from 1",
            "You add 1 to the positions. Position 0 is not turned at all.",
            rope(angles=lambda x, p, base: angles_of(x, p + 1, base)),
        ),
        Misconception(
            "positions cut to whole numbers",
            "You turn positions into whole numbers. They may be anything in between; make them "
            "floats, `positions.double()`.",
            rope(angles=lambda x, p, base: angles_of(x, p.long(), base)),
        ),
        Misconception(
            "the sign of the position is lost",
            "Negative positions turn forwards in your answer. The angle is position · frequency, "
            "with its sign.",
            rope(angles=lambda x, p, base: angles_of(x, p.abs(), base)),
        ),
        Misconception(
            "positions along the first axis",
            "With a batch in front, axis 0 is the batch. The tokens are the second axis from the "
            "end: angles of shape (n, d/2) broadcast by themselves, without further axes.",
            rope(angles=along_the_first_axis),
        ),
        Misconception(
            "positions shared out over the batch",
            "You flatten the batch and repeat each position in a run, 0 0 1 1 …, so that a "
            "sequence gets the positions of others. Each sequence has them all: 0 1 … 0 1 …, which "
            "is `repeat`; broadcasting does it without either.",
            rope(angles=shared_out_over_the_batch),
        ),
        Misconception(
            "an encoding is added",
            "You add sines and cosines to x. RoPE adds nothing: it turns each pair of features.",
            encoding_added,
        ),
        Misconception(
            "base is ignored",
            "You always use 10000. Use the argument `base`.",
            lambda x, positions, base=10000.0: RIGHT_ROPE(x, positions),
        ),
        Misconception(
            "angles in float32",
            "Your angles are float32, torch's default: at position 100 000 they are wrong by a "
            "thousandth, and float64 queries lose half their digits. `torch.arange(…, "
            "dtype=torch.float64)`, then cast the cosines and sines to x.dtype.",
            rope(angles=angles_in_float32),
        ),
        Misconception(
            "float32 comes back as float64",
            "The result is float64 where x is float32: the angles' dtype has spread. Cast the "
            "cosines and sines, `.to(x.dtype)`, before they meet x.",
            rope_in_float64,
        ),
        Misconception(
            "x is changed in place",
            "You write into x, which belongs to the caller. Build a new tensor.",
            rope_in_place,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda x, positions, base=10000.0: RIGHT_ROPE(x.detach(), positions, base),
        ),
        Misconception(
            "an odd d is accepted in silence",
            "Features come in pairs, so an odd d leaves one that nothing turns with. Raise "
            "`ValueError`.",
            rope_of_odd_width,
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
        Criterion("minus slope times distance, for every head", 3, alibi_values),
        Criterion("any number of heads and tokens", 2, alibi_shapes),
    ),
    misconceptions=(
        Misconception(
            "the sign is missing",
            "Your bias grows with the distance, so far tokens are favoured. It is subtracted: "
            "−slope · |i − j|.",
            linear(finish=lambda b: -b),
        ),
        Misconception(
            "the sign of the distance is kept",
            "You use i − j, which is negative for keys that come later, so those are favoured. The "
            "distance is |i − j|.",
            linear(distance=apart),
        ),
        Misconception(
            "squared distance",
            "You square the distance. ALiBi is linear in it: |i − j|.",
            linear(distance=lambda n: apart(n) ** 2),
        ),
        Misconception(
            "distance counted from 1",
            "A token is at distance 0 from itself, and the diagonal of the bias is 0.",
            linear(distance=lambda n: apart(n).abs() + 1),
        ),
        Misconception(
            "distance divided by n",
            "You divide the distance by the length. A step costs the same in every sequence, "
            "however long: that is what lets ALiBi go on beyond the trained length.",
            linear(distance=lambda n: apart(n).abs() / n),
        ),
        Misconception(
            "only the key's place counts",
            "Your rows are all alike: −slope · (n − 1 − j). Under a causal mask softmax cannot "
            "tell that from the distance; without one, later keys win. Use |i − j|.",
            linear(distance=lambda n: (n - 1 - torch.arange(n).double()).expand(n, n)),
        ),
        Misconception(
            "the future is shut out",
            "You put −∞ where the key comes after the query. That is a causal mask, a step of its "
            "own; the bias is finite and symmetric.",
            linear(finish=lambda b: b.masked_fill(apart(b.shape[-1]) < 0, -math.inf)),
        ),
        Misconception(
            "the future is left at 0",
            "Above the diagonal your bias is 0, the best score of all. The distance to a later key "
            "counts as that to an earlier one.",
            linear(finish=torch.tril),
        ),
        Misconception(
            "slopes counted from 0",
            "Your first slope is 1: the exponent is −8h/n_heads. It is −8(h + 1)/n_heads for h "
            "from 0, and the last slope is 1/256.",
            linear(lambda h: 2.0 ** (-8 * torch.arange(h).double() / h)),
        ),
        Misconception(
            "slopes for eight heads",
            "Your slopes are 1/2, 1/4, 1/8, …, which is right for eight heads and no other number. "
            "The exponent is −8(h + 1)/n_heads.",
            linear(lambda h: 2.0 ** -(torch.arange(h).double() + 1)),
        ),
        Misconception(
            "the 8 is missing from the exponent",
            "Your slopes end at 1/2: the exponent is −(h + 1)/n_heads. It has a factor of 8.",
            linear(lambda h: 2.0 ** (-(torch.arange(h).double() + 1) / h)),
        ),
        Misconception(
            "slopes evenly spaced",
            "Your slopes fall by equal steps. They fall by equal factors, 2^(−8/n_heads).",
            linear(lambda h: torch.arange(h, 0, -1).double() / h),
        ),
        Misconception(
            "the gentlest slope first",
            "Your heads are in the opposite order. Head 0 has the steepest slope, 2^(−8/n_heads).",
            linear(lambda h: slopes_of(h).flip(0)),
        ),
        Misconception(
            "slopes of the authors' program",
            "Where the number of heads is no power of two, the program of the paper takes its "
            "slopes from two sequences. Here one formula serves every number: "
            "2^(−8(h + 1)/n_heads).",
            linear(slopes_of_the_paper),
        ),
        Misconception(
            "the heads come last",
            "Your shape is (n, n, n_heads). The heads lead, (n_heads, n, n), as they do in scores.",
            linear(finish=lambda b: b.permute(1, 2, 0)),
        ),
        Misconception(
            "already a softmax",
            "You return weights. The bias is added to scores, and the softmax comes after that.",
            linear(finish=lambda b: b.softmax(-1)),
        ),
    ),
    hints=(
        "Two pieces: n_heads slopes, and a matrix (n, n) of distances.",
        "`torch.arange(n)[:, None] - torch.arange(n)` is i − j for all i and j.",
        "`slopes[:, None, None] * distance` makes (n_heads, n, n).",
    ),
)

EXERCISES = (SINUSOIDAL, ROTATION, ROPE, ALIBI)
