"""Decisions and mistakes that several of the chapter's exercises share."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.recipes import mistake


def pairs_in(d):
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

    count: Callable = pairs_in
    frequency: Callable = lambda base, i, d, c: base ** (-2 * i / d)
    base: Callable = lambda base: base
    place: Callable = lambda t: t
    kind: Callable = lambda dtype: torch.float64
    turn: Callable = lambda angles: angles

    def angles(self, t, d, base=10000.0, dtype=torch.float32):
        """Return angles ``(…, d/2)`` for the first feature of every pair, and for the second."""
        kind = self.kind(dtype)
        i, t = torch.arange(self.count(d)).to(kind), self.place(t.to(kind))
        return [self.turn(t[..., None] * self.frequency(self.base(base), i, d, c)) for c in (0, 1)]


def join_as_neighbours(first, second):
    """Return the first and the second features of all pairs as neighbours."""
    return torch.stack([first, second], dim=-1).flatten(-2)


def join_as_blocks(first, second):
    return torch.cat([first, second], dim=-1)


def plane(c, s):
    """Return the rows of a turn of the plane: ``(x c - y s, x s + y c)``."""
    return (c, -s), (s, c)


def refuse_below_0(k):
    if (k < 0).any():
        raise ValueError(f"k is negative: {k}")
    return k


def halves(x):
    return x.chunk(2, dim=-1)


def both_directions(block: Callable) -> tuple[dict, dict]:
    """Return the options for this block, turned in either direction."""
    return {"block": block}, {"block": lambda c, s: block(c, -s)}


OF_THE_ANGLES = (
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
    mistake("""the exponent is not divided by d
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
    .by(place=refuse_below_0)
)
BACKWARDS = mistake("""turned the other way
    You turn by −position: the sines have each other's sign. First x cos − y sin, then x sin + y
    cos, for features x and y of a pair.""").by(block=lambda c, s: plane(c, -s))
OF_THE_BLOCK = (
    mistake("""both sines with the same sign
        That is no rotation: lengths change. One of the two sines has a minus, the other has none:
        cos(a + b) = cos a cos b − sin a sin b.""")
    .by(block=lambda c, s: ((c, s), (s, c)))
    .by(*both_directions(lambda c, s: ((c, -s), (-s, c)))),
    mistake("""a reflection in place of a rotation
        A cosine has a minus, so your pairs are reflected: an angle of 0 changes a sign. Both
        cosines are as they are, and one of the sines has a minus.""")
    .by(block=lambda c, s: ((c, s), (s, -c)))
    .by(*both_directions(lambda c, s: ((c, s), (s, -c))))
    .by(*both_directions(lambda c, s: ((-c, s), (s, c)))),
    mistake("""sine and cosine exchanged
        You have the sine where the cosine belongs. An angle of 0 turns nothing, and its cosine is
        1: a feature keeps itself times the cosine.""")
    .by(block=lambda c, s: ((s, -c), (c, s)))
    .by(*both_directions(lambda c, s: ((s, c), (-c, s))))
    .by(*both_directions(lambda c, s: ((s, c), (c, -s))))
    .by(*both_directions(lambda c, s: ((c, -s), (c, s))))
    .by(*both_directions(lambda c, s: ((s, -c), (s, c)))),
    mistake("""parts of the rotation are missing
        A rotation mixes the two features of a pair: each new one is made of both, one times a
        cosine and one times a sine, and one of the sines has a minus. Some of this is missing.""")
    .by(block=lambda c, s: ((c, 0 * s), (0 * s, c)))
    .by(*both_directions(lambda c, s: ((c, 0 * s), (0 * c, s))))
    .by(*both_directions(lambda c, s: ((0 * c, -s), (s, 0 * c))))
    .by(*both_directions(lambda c, s: ((c, -s), (0 * s, 1 + 0 * c))))
    .by(*both_directions(lambda c, s: ((1 + 0 * c, 0 * s), (s, c))))
    .by(*both_directions(lambda c, s: ((1 + 0 * c, -s), (s, 1 + 0 * c)))),
)
PAIRS_OF_HALVES = (
    mistake("""pairs (i, i + d/2)
    You turn feature i with feature i + d/2, as `transformers` does for Llama. Here neighbours are a
    pair: `x[..., 0::2]` with `x[..., 1::2]`, or blocks of 2 by 2 along the diagonal.""")
    .by(cut=halves, join=join_as_blocks)
    .by(
        cut=halves,
        join=join_as_blocks,
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
