"""The exercise ``masked_softmax``: weights over the allowed keys.

In the cases a masked score exceeds the allowed ones by a few units at most, so that masking after
the softmax, with renormalisation, stays right in float16 too.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import torch

from attncourse import masking
from attncourse.bank.masking.shared import as_additive, as_it_is
from attncourse.checks.callers import with_gradients
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, hole, normal, once_more, row, standard
from attncourse.checks.writing.decisions import Attention, over_keys
from attncourse.checks.writing.mistakes import Between, filled_with
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def empty_rows(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """A mask whose first row and another allow no key."""
    mask = cases.holes(rng, shape)
    mask[..., 0, :] = False
    mask[..., int(rng.integers(1, shape[-2])), :] = False
    return mask


def first_allowed(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    return mask


def falling(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Rows below 0 whose first entry is the largest."""
    return -np.sort(-rng.normal(size=shape), axis=-1) - 5


def heights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Five rows at very different heights; within a row the scores are close to each other."""
    return rng.normal(size=shape) + rng.permutation([-900.0, -300.0, 0.0, 400.0, 900.0])[:, None]


CASES = CaseTable({"scores": "... m n", "mask": hole("... m n")}, how=normal)
ROWS = standard(CASES)


def by_hand(scores: list, mask: list, note: str) -> Case:
    return Case((tensor(scores), torch.tensor(mask).bool()), note=note)


BY_HAND = by_hand(
    [[0, 0, 2, 1], [3, 1, 1, 0]], [[1, 1, 0, 0], [0, 1, 1, 0]], "half and half in both rows"
)
EMPTY_BY_HAND = by_hand(
    [[0, 0, 2], [1, 4, 0]], [[1, 1, 0], [0, 0, 0]], "the second query may attend to nothing"
)
FIVE = row("m=5 n=7")
FOR_ALL = {"mask": hole("m n")}
EMPTY = {"mask": Drawn("... m n", empty_rows)}
LEARNING = FIVE.but(use=with_gradients("scores"))
HALF = FIVE.but(dtype="float16", note="float16")
LOW = Case(
    (
        torch.tensor([[-4, 3, -4], [-3, -5, 2]], dtype=torch.float16),
        torch.tensor([[True, False, True], [True, True, False]]),
    ),
    note="float16, low scores",
)
ABOVE_11 = {"scores": Drawn("m n", lambda rng, shape: normal(rng, shape) + 14)}
FAR_BELOW = {
    "scores": Drawn("m n", lambda rng, shape: normal(rng, shape) - 1e6),
    "mask": Drawn("m n", lambda rng, shape: np.ones(shape, bool)),
}
LARGE = {"scores": Drawn("m n", falling), "mask": Drawn("m n", first_allowed)}

# --- decisions and mistakes ----------------------------------------------------------------------

UNSPARED = {"spare": lambda mask, some: mask}  # rows with no key are forgotten
FORGOTTEN = {**UNSPARED, "finish": lambda weights, some: weights}
NOT_HIDDEN = {"hide": lambda scores, mask: scores}


@composition
def compose_masked_softmax(
    see=lambda mask, scores: mask.broadcast_to(scores.shape),
    cast=as_it_is,
    spare=lambda mask, some: mask | ~some,
    finish=lambda weights, some: weights.masked_fill(~some, 0),
    **options,
):
    """Return ``masked_softmax`` made of decisions.

    ``spare`` keeps rows with no key from becoming rows of −∞, ``finish`` is done to their weights.
    """
    attention = Attention.of(options)

    def masked_softmax(scores, mask):
        mask = see(mask, scores)
        some = mask.any(-1, keepdim=True)
        hidden = attention.hide(cast(scores), spare(mask, some))
        return finish(attention.after(attention.normalize(hidden), mask, None), some)

    return masked_softmax


def exponentials(scores):
    return (scores - scores.amax(-1, keepdim=True).detach()).exp()


def of_differences(scores):
    return (scores - scores.amax(-1, keepdim=True)).exp()


def shares(weights, mask, factor):
    kept = weights * mask
    return kept / kept.sum(-1, keepdim=True)


def no_zero(total):
    return total.masked_fill(total == 0, 1)


def written_below(number: float) -> dict:
    """A number is written where the mask hides, into the scores that came in."""

    def hide(scores, mask):
        scores[~mask] = number
        return scores

    return {"spare": lambda mask, some: mask, "hide": hide}


def nowhere_near(number: float) -> dict:
    """Masked scores become a number, and rows with no key are forgotten."""
    return FORGOTTEN | filled_with(number)


def from_a_floor(scores, floor, total):
    e = (scores - scores.amax(-1, keepdim=True).clamp(min=floor)).exp()
    return e / total(e.sum(-1, keepdim=True))


def guarded_shares(choice: tuple[Callable, float], guard: Callable = torch.add) -> dict:
    """Masked afterwards, and a number is added to the sums of the rows."""
    normalize, number = choice

    def after(weights, mask, factor):
        kept = weights * mask
        return kept / guard(kept.sum(-1, keepdim=True), number)

    return {**FORGOTTEN, **NOT_HIDDEN, "normalize": normalize, "after": after}


floored_shares = partial(guarded_shares, guard=torch.clamp)

OF_EMPTY_ROWS = {  # what shared explanations leave out
    "the sum is at least 1 and needs no guard": "the sum of a row with a key is at least 1 and "
    "needs no guard. In a row without one replace the 0 by 1",
    "Put −∞ into the scores before it": "Put −∞ into the scores before it, and mind the rows with "
    "no key",
    "You mix the values with the scores themselves": "You return the scores themselves",
}
GUARDS = (1e-6, 1e-15, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
MORE = {  # other ways to make the catalogue's mistakes, where rows may have no key
    mistakes.NO_MAXIMUM.name: (
        {"normalize": lambda s: s.exp() / no_zero(s.exp().sum(-1, keepdim=True))},
        {**NOT_HIDDEN, "normalize": torch.exp, "after": shares},
        *map(floored_shares, product((torch.exp,), (1e-12, 1e-9, 1e-8, 1e-6))),
        *(guarded_shares((torch.exp, number)) for number in (1e-12, 1e-9, 1e-8)),
    ),
    mistakes.FLOORED.name: tuple(
        FORGOTTEN | {"normalize": partial(from_a_floor, floor=floor, total=total)}
        for floor in (0.0, -1.0, -10.0, -1e2, -1e3, -1e4, -1e5)
        for total in (no_zero, partial(torch.clamp, min=1e-6), partial(torch.clamp, min=1e-9))
    ),
    mistakes.ONE_MAXIMUM.name: (
        {"normalize": lambda s: (e := (s - s.max()).exp()) / no_zero(e.sum(-1, keepdim=True))},
    ),
    mistakes.MASK_INVERTED.name: ({"see": lambda mask, scores: ~mask.broadcast_to(scores.shape)},),
    mistakes.MASK_TRANSPOSED.name: (
        {"see": lambda mask, scores: mask.mT.broadcast_to(scores.shape)},
        {"see": lambda mask, scores: mask.mT},
    ),
    mistakes.MASK_IGNORED.name: ({"see": lambda mask, scores: torch.ones_like(scores).bool()},),
    mistakes.TOO_LITTLE_OFF.name: tuple(
        FORGOTTEN | {"hide": lambda s, mask, e=e: s + (mask.to(s.dtype) + e).log()}
        for e in (1e-6, 1e-8, 1e-9, 1e-10, 1e-12)
    ),
    mistakes.OVER_QUERIES.name: (
        {
            "spare": lambda mask, some: mask | ~mask.any(-2, keepdim=True),
            "normalize": lambda s: s.softmax(-2),
            "after": lambda w, mask, f: w * mask,
        },
    ),
    mistakes.ZERO_SCORES.name: tuple(
        FORGOTTEN | {"hide": hide, "after": after}
        for hide in (lambda s, mask: s * mask, lambda s, mask: s.masked_fill(~mask, 1e-9))
        for after in (lambda w, mask, f: w, lambda w, mask, f: w * mask)
    ),
    mistakes.NOT_LOW_ENOUGH.name: (
        filled_with(-1e4),
        filled_with(-1e4) | {"after": lambda w, mask, f: w * mask},
        filled_with(-1e6),
    ),
    mistakes.ZERO_TIMES_INFINITY.name: (
        FORGOTTEN | {"hide": lambda s, mask: s + ~mask * -math.inf},
    ),
}

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    masking.masked_softmax,
    section="Chapter 10, “Rows with nothing to attend to”",
    difficulty=3,
    minutes=25,
    criteria=(
        CASES.criterion("weights over the allowed keys, 0 elsewhere", 3).on(
            BY_HAND, FIVE, row("m=5 n=5", note="as many queries as keys")
        ),
        CASES.criterion("one row, one key, one mask for all", 1).on(
            FIVE.but(arguments={"mask": hole("1 n")}, note="one row of the mask for all"),
            row("m=3 n=7", turned=True, note="not contiguous in memory"),
            row("m=1 n=5", note="one query"),
            row("m=5 n=1", note="one key"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            FIVE.but(batch=(2,), arguments={"mask": hole("... 1 n")}, note="a mask for each of 2"),
            FIVE.but(batch=(2,), arguments=FOR_ALL, note="one mask for both"),
            FIVE.but(batch=(5,), arguments=FOR_ALL, note=cases.ONE_MASK),
        ),
        CASES.criterion("float32, large and small scores", 1).on(
            FIVE.but(arguments={"scores": Drawn("m n", heights)}, note="scores in the hundreds"),
            FIVE.but(arguments=LARGE, factor={"scores": 1e7}, note="scores in the millions"),
            FIVE.but(arguments=FAR_BELOW, note="scores near −1000000, all of them allowed"),
            ROWS.extreme[1],
            FIVE.but(dtype="float32", arguments=EMPTY, note="float32, with empty rows"),
            once_more(BY_HAND),
        ),
        CASES.criterion("rows with no key: all 0", 2).on(
            EMPTY_BY_HAND,
            FIVE.but(arguments=EMPTY, note="two queries may attend to nothing"),
            row("m=5 n=3", batch=(2,), arguments=EMPTY, note="a batch of 2, with empty rows"),
        ),
        CASES.criterion("float16", 1).on(
            HALF,
            LOW,
            HALF.but(arguments=EMPTY, note="float16, empty rows"),
            HALF.but("m=3 n=5", arguments=ABOVE_11, note="float16, large scores"),
        ),
        CASES.criterion("gradients reach the scores, none is NaN", 2).on(
            LEARNING.but(batch=(2,), arguments=FOR_ALL, note="a batch of 2"),
            LEARNING.but(arguments=EMPTY, note="with empty rows"),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_masked_softmax,
        mistake("""a row with no key is NaN
            The softmax of a row of nothing but −∞ is NaN, and so is 0/0 where you mask later. Leave
            the scores of such a row as they are, and set its weights to 0 at the end.""")
        .by(FORGOTTEN)
        .by(FORGOTTEN | {"hide": lambda s, mask: s + mask.log()})
        .by(FORGOTTEN | NOT_HIDDEN | {"after": shares}),
        mistake("""a row with no key keeps its weights
            You leave the scores of a row with no key as they are, which is right, and return their
            softmax. Its weights are to be 0: fill them in afterwards.
        """).by(finish=lambda weights, some: weights),
        mistake("""the gradient of an empty row is NaN
            Your weights are right, but NaN was made on the way and covered up at the end
            (`nan_to_num`, `torch.where`). The way back leads through it: the gradient is NaN. See
            to it that no row of nothing but −∞ reaches the softmax, and none is divided by 0.""")
        .by(
            **UNSPARED,
            hide=lambda s, mask: s + as_additive(mask).to(s.dtype),
            finish=lambda weights, some: weights.nan_to_num(0),
        )
        .by(NOT_HIDDEN | {"after": shares}),
        mistake("""a low number in place of −∞
            A row with no key becomes a row of equal scores, so its weights are 1/n each and not 0;
            other scores may come near the number, and float16 ends at ±65504. Use −∞, and look
            after empty rows.""")
        .by(FORGOTTEN | {"hide": lambda s, mask: s.masked_fill(~mask, -1e9)})
        .by(FORGOTTEN | {"hide": lambda s, mask: torch.where(mask, s, -1e9)})
        .by(FORGOTTEN | {"hide": lambda s, mask: s.masked_fill(~mask, torch.finfo(s.dtype).min)})
        .by(*map(nowhere_near, (-100.0, -1e4, -1e6)))
        .by_any(nowhere_near, Between(-800.0, -1e-3)),
        mistake("""a low number is written into the scores
            `scores[~mask] = …` changes the scores of whoever called, and autograd refuses it for
            scores that are learned. The number is none that every dtype has, either: float16 ends
            at ±65504. `scores.masked_fill(~mask, -math.inf)` makes new scores.
        """)
        .by(written_below(-1e6))
        .by(written_below(-1e6) | {"finish": lambda weights, some: weights * some})
        .by_any(written_below, (-1e4, -1e9, -math.inf)),
        mistake("""float16 has no −1e9
            Your function breaks down in float16, which reaches to ±65504. Use −∞, which every
            floating dtype has, or `torch.finfo(scores.dtype).min`.
        """).by(hide=lambda s, mask: s.masked_fill(~mask, -1e9)),
        mistake("""−1e9 is added to the scores
            A sum with −1e9 keeps what float32 has room for, steps of 64, and a row with no key
            still gets weights that sum to 1. In float16 it is no float16 any more, or −∞.
            `masked_fill` replaces, it does not add.""")
        .by(FORGOTTEN | {"hide": lambda s, mask: s + ~mask * -1e9})
        .by(FORGOTTEN | {"hide": lambda s, mask: s + (1 - mask.to(s.dtype)) * -1e9}),
        mistake("""a guard beside the allowed weights
            You add a small number to the sum of a row, or let the sum be no less. Its weights no
            longer sum to 1, or the number is 0 in float16, as all below 3e-8 are, and 0/0 is NaN.
            Replace a sum of 0 by 1, and leave the others as they are.""")
        .by(guarded_shares((over_keys, 1e-6)))
        .by(*map(floored_shares, product((over_keys, exponentials), (1e-12, 1e-9, 1e-6))))
        .by_any(guarded_shares, tuple(product((over_keys, exponentials, of_differences), GUARDS))),
        mistake("""not divided by the sum
            You return exponentials, and a row does not sum to 1. Divide by the sum of the row.""")
        .by(normalize=exponentials)
        .by({**NOT_HIDDEN, "normalize": exponentials, "after": lambda w, mask, f: w * mask}),
        mistake("""float16 comes back as float32
            You compute in float32, which is a good idea for float16 alone, and return that. Leave
            float32 and float64 as they are, and end with `.to(scores.dtype)`.""")
        .by(cast=lambda s: s.float() if s.dtype == torch.float16 else s)
        .by(cast=lambda s: s.float()),
        mistakes.MASK_NOT_BROADCAST.here(see=lambda mask, scores: mask, hide=mistakes.at_places),
        *(
            one.by(*MORE.get(one.name, ())).naming(**OF_EMPTY_ROWS)
            for one in (
                *mistakes.OF_THE_SOFTMAX,
                mistakes.FLOORED,
                mistakes.ONE_MAXIMUM,
                mistakes.IN_SINGLE_PRECISION,
                *mistakes.OF_THE_MASK,
                mistakes.TOO_LITTLE_OFF,
            )
        ),
    ),
)
