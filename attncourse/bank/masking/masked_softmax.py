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
from attncourse.bank.masking.shared import additive_mask, as_it_is
from attncourse.checks.callers import with_gradients
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, hole, normal, once_more, row, standard
from attncourse.checks.writing.decisions import Attention, over_keys
from attncourse.checks.writing.mistakes import Between, filled_with
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def mask_with_empty_rows(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask whose first row and another allow no key."""
    mask = cases.holes(rng, shape)
    mask[..., 0, :] = False
    mask[..., int(rng.integers(1, shape[-2])), :] = False
    return mask


def mask_with_unseen_key(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask with a key that no query may see."""
    mask = cases.holes(rng, shape)
    mask[..., 0] = False
    return mask


def mask_with_first_key(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    return mask


def scores_with_largest_first(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return rows below 0 whose first entry is the largest."""
    return -np.sort(-rng.normal(size=shape), axis=-1) - 5


def scores_at_five_levels(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return five rows at very different levels, each with scores close to each other."""
    return rng.normal(size=shape) + rng.permutation([-900.0, -300.0, 0.0, 400.0, 900.0])[:, None]


CASES = CaseTable({"scores": "... m n", "mask": hole("... m n")}, how=normal)
ROWS = standard(CASES)


def case_by_hand(scores: list, mask: list, note: str) -> Case:
    return Case((tensor(scores), torch.tensor(mask).bool()), note=note)


BY_HAND = case_by_hand(
    [[0, 0, 2, 1], [3, 1, 1, 0]], [[1, 1, 0, 0], [0, 1, 1, 0]], "half and half in both rows"
)
EMPTY_BY_HAND = case_by_hand(
    [[0, 0, 2], [1, 4, 0]], [[1, 1, 0], [0, 0, 0]], "the second query may attend to nothing"
)
FIVE_BY_SEVEN = row("m=5 n=7")
SHARED_MASK = {"mask": hole("m n")}
EMPTY_ROWS = {"mask": Drawn("... m n", mask_with_empty_rows)}
UNSEEN_KEY = {"mask": Drawn("m n", mask_with_unseen_key)}
WITH_GRADIENTS = FIVE_BY_SEVEN.but(use=with_gradients("scores"))
IN_FLOAT16 = FIVE_BY_SEVEN.but(dtype="float16", note="float16")
LOW_SCORES = Case(
    (
        torch.tensor([[-4, 3, -4], [-3, -5, 2]], dtype=torch.float16),
        torch.tensor([[True, False, True], [True, True, False]]),
    ),
    note="float16, low scores",
)
SCORES_ABOVE_11 = {"scores": Drawn("m n", lambda rng, shape: normal(rng, shape) + 14)}
ALL_ALLOWED = {"mask": Drawn("m n", lambda rng, shape: np.ones(shape, bool))}
SCORES_FAR_BELOW_0 = {
    "scores": Drawn("m n", lambda rng, shape: normal(rng, shape) - 1e6),
    **ALL_ALLOWED,
}
LARGEST_FIRST = {
    "scores": Drawn("m n", scores_with_largest_first),
    "mask": Drawn("m n", mask_with_first_key),
}

# --- decisions and mistakes ----------------------------------------------------------------------

EMPTY_ROWS_MASKED = {
    "allow_in_empty_rows": lambda mask, has_key: mask
}  # rows with no key are forgotten
EMPTY_ROWS_FORGOTTEN = {**EMPTY_ROWS_MASKED, "finish": lambda weights, has_key: weights}
SCORES_UNMASKED = {"hide": lambda scores, mask: scores}


@composition
def compose_masked_softmax(
    align_mask=lambda mask, scores: mask.broadcast_to(scores.shape),
    cast=as_it_is,
    allow_in_empty_rows=lambda mask, has_key: mask | ~has_key,
    finish=lambda weights, has_key: weights.masked_fill(~has_key, 0),
    **options,
):
    """Return ``masked_softmax`` made of decisions.

    ``allow_in_empty_rows`` keeps rows with no key from becoming rows of −∞; ``finish`` is done
    to the weights.
    """
    attention = Attention.of(options)

    def masked_softmax(scores, mask):
        mask = align_mask(mask, scores)
        has_key = mask.any(-1, keepdim=True)
        hidden = attention.hide(cast(scores), allow_in_empty_rows(mask, has_key))
        return finish(attention.after(attention.normalize(hidden), mask, None), has_key)

    return masked_softmax


def exp_minus_detached_max(scores):
    return (scores - scores.amax(-1, keepdim=True).detach()).exp()


def exp_minus_max(scores):
    return (scores - scores.amax(-1, keepdim=True)).exp()


def masked_shares(weights, mask, factor):
    masked_weights = weights * mask
    return masked_weights / masked_weights.sum(-1, keepdim=True)


def replace_0_by_1(total):
    return total.masked_fill(total == 0, 1)


def write_into_scores(number: float) -> dict:
    """Return the options that write a number into the caller's scores where the mask hides."""

    def hide(scores, mask):
        scores[~mask] = number
        return scores

    return {"allow_in_empty_rows": lambda mask, has_key: mask, "hide": hide}


def fill_and_forget_empty_rows(number: float) -> dict:
    """Return the options in which masked scores become a number in empty rows too."""
    return EMPTY_ROWS_FORGOTTEN | filled_with(number)


def softmax_with_floored_max(scores, floor, total):
    """Return a softmax that subtracts at least ``floor``."""
    e = (scores - scores.amax(-1, keepdim=True).clamp(min=floor)).exp()
    return e / total(e.sum(-1, keepdim=True))


def shares_with_guard(choice: tuple[Callable, float], guard: Callable = torch.add) -> dict:
    """Return the options that mask afterwards and guard the sums of the rows with a number."""
    normalize, number = choice

    def after(weights, mask, factor):
        masked_weights = weights * mask
        return masked_weights / guard(masked_weights.sum(-1, keepdim=True), number)

    return {**EMPTY_ROWS_FORGOTTEN, **SCORES_UNMASKED, "normalize": normalize, "after": after}


shares_with_floor = partial(shares_with_guard, guard=torch.clamp)

OF_EMPTY_ROWS = {  # what shared explanations leave out
    "the sum is at least 1 and needs no guard": "the sum of a row with a key is at least 1 and "
    "needs no guard. In a row without one replace the 0 by 1",
    "Put −∞ into the scores before it": "Put −∞ into the scores before it, and mind the rows with "
    "no key",
    "You mix the values with the scores themselves": "You return the scores themselves",
}
GUARDS = (1e-6, 1e-15, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
MORE_WAYS = {  # other ways to make the catalogue's mistakes, where rows may have no key
    mistakes.NO_MAXIMUM.name: (
        {"normalize": lambda s: s.exp() / replace_0_by_1(s.exp().sum(-1, keepdim=True))},
        {**SCORES_UNMASKED, "normalize": torch.exp, "after": masked_shares},
        *map(shares_with_floor, product((torch.exp,), (1e-12, 1e-9, 1e-8, 1e-6))),
        *(shares_with_guard((torch.exp, number)) for number in (1e-12, 1e-9, 1e-8)),
    ),
    mistakes.FLOORED.name: tuple(
        EMPTY_ROWS_FORGOTTEN
        | {"normalize": partial(softmax_with_floored_max, floor=floor, total=total)}
        for floor in (0.0, -1.0, -10.0, -1e2, -1e3, -1e4, -1e5)
        for total in (
            replace_0_by_1,
            partial(torch.clamp, min=1e-6),
            partial(torch.clamp, min=1e-9),
        )
    ),
    mistakes.ONE_MAXIMUM.name: (
        {
            "normalize": lambda s: (
                (e := (s - s.max()).exp()) / replace_0_by_1(e.sum(-1, keepdim=True))
            )
        },
    ),
    mistakes.MASK_INVERTED.name: (
        {"align_mask": lambda mask, scores: ~mask.broadcast_to(scores.shape)},
    ),
    mistakes.MASK_TRANSPOSED.name: (
        {"align_mask": lambda mask, scores: mask.mT.broadcast_to(scores.shape)},
        {"align_mask": lambda mask, scores: mask.mT},
    ),
    mistakes.MASK_IGNORED.name: (
        {"align_mask": lambda mask, scores: torch.ones_like(scores).bool()},
    ),
    mistakes.TOO_LITTLE_OFF.name: tuple(
        EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask, e=e: s + (mask.to(s.dtype) + e).log()}
        for e in (1e-6, 1e-8, 1e-9, 1e-10, 1e-12)
    ),
    mistakes.OVER_QUERIES.name: (
        {
            "allow_in_empty_rows": lambda mask, has_key: mask | ~mask.any(-2, keepdim=True),
            "normalize": lambda s: s.softmax(-2),
            "after": lambda w, mask, f: w * mask,
        },
    ),
    mistakes.ZERO_SCORES.name: tuple(
        EMPTY_ROWS_FORGOTTEN | {"hide": hide, "after": after}
        for hide in (lambda s, mask: s * mask, lambda s, mask: s.masked_fill(~mask, 1e-9))
        for after in (lambda w, mask, f: w, lambda w, mask, f: w * mask)
    ),
    mistakes.NOT_LOW_ENOUGH.name: (
        filled_with(-1e4),
        filled_with(-1e4) | {"after": lambda w, mask, f: w * mask},
        filled_with(-1e6),
    ),
    mistakes.ZERO_TIMES_INFINITY.name: (
        EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask: s + ~mask * -math.inf},
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
            BY_HAND, FIVE_BY_SEVEN, row("m=5 n=5", note="as many queries as keys")
        ),
        CASES.criterion("one row, one key, one mask for all", 1).on(
            FIVE_BY_SEVEN.but(arguments={"mask": hole("1 n")}, note="one row of the mask for all"),
            row("m=3 n=7", turned=True, note="not contiguous in memory"),
            row("m=1 n=5", note="one query"),
            row("m=5 n=1", arguments=ALL_ALLOWED, note="one key"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            FIVE_BY_SEVEN.but(
                batch=(2,), arguments={"mask": hole("... 1 n")}, note="a mask for each of 2"
            ),
            FIVE_BY_SEVEN.but(batch=(2,), arguments=SHARED_MASK, note="one mask for both"),
            FIVE_BY_SEVEN.but(batch=(5,), arguments=SHARED_MASK, note=cases.ONE_MASK),
        ),
        CASES.criterion("float32, large and small scores", 1).on(
            FIVE_BY_SEVEN.but(
                arguments={"scores": Drawn("m n", scores_at_five_levels), **UNSEEN_KEY},
                note="scores in the hundreds",
            ),
            FIVE_BY_SEVEN.but(
                arguments=LARGEST_FIRST, factor={"scores": 1e7}, note="scores in the millions"
            ),
            FIVE_BY_SEVEN.but(
                arguments=SCORES_FAR_BELOW_0, note="scores near −1000000, all of them allowed"
            ),
            ROWS.extreme[1],
            FIVE_BY_SEVEN.but(
                dtype="float32", arguments=EMPTY_ROWS, note="float32, with empty rows"
            ),
            once_more(BY_HAND),
        ),
        CASES.criterion("rows with no key: all 0", 2).on(
            EMPTY_BY_HAND,
            FIVE_BY_SEVEN.but(arguments=EMPTY_ROWS, note="two queries may attend to nothing"),
            row("m=5 n=3", batch=(2,), arguments=EMPTY_ROWS, note="a batch of 2, with empty rows"),
        ),
        CASES.criterion("float16", 1).on(
            IN_FLOAT16.but(arguments=UNSEEN_KEY),
            LOW_SCORES,
            IN_FLOAT16.but(arguments=EMPTY_ROWS, note="float16, empty rows"),
            IN_FLOAT16.but("m=3 n=5", arguments=SCORES_ABOVE_11, note="float16, large scores"),
        ),
        CASES.criterion("gradients reach the scores, none is NaN", 2).on(
            WITH_GRADIENTS.but(batch=(2,), arguments=UNSEEN_KEY, note="a batch of 2"),
            WITH_GRADIENTS.but(arguments=EMPTY_ROWS, note="with empty rows"),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_masked_softmax,
        mistake("""a row with no key is NaN
            The softmax of a row of nothing but −∞ is NaN, and so is 0/0 where you mask later. Leave
            the scores of such a row as they are, and set its weights to 0 at the end.""")
        .by(EMPTY_ROWS_FORGOTTEN)
        .by(EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask: s + mask.log()})
        .by(EMPTY_ROWS_FORGOTTEN | SCORES_UNMASKED | {"after": masked_shares}),
        mistake("""a row with no key keeps its weights
            You leave the scores of a row with no key as they are, which is right, and return their
            softmax. Its weights are to be 0: fill them in afterwards.
        """).by(finish=lambda weights, has_key: weights),
        mistake("""the gradient of an empty row is NaN
            Your weights are right, but NaN was made on the way and covered up at the end
            (`nan_to_num`, `torch.where`). The way back leads through it: the gradient is NaN. See
            to it that no row of nothing but −∞ reaches the softmax, and none is divided by 0.""")
        .by(
            **EMPTY_ROWS_MASKED,
            hide=lambda s, mask: s + additive_mask(mask).to(s.dtype),
            finish=lambda weights, has_key: weights.nan_to_num(0),
        )
        .by(SCORES_UNMASKED | {"after": masked_shares}),
        mistake("""a low number in place of −∞
            A row with no key becomes a row of equal scores, so its weights are 1/n each and not 0;
            other scores may come near the number, and float16 ends at ±65504. Use −∞, and look
            after empty rows.""")
        .by(EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask: s.masked_fill(~mask, -1e9)})
        .by(EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask: torch.where(mask, s, -1e9)})
        .by(
            EMPTY_ROWS_FORGOTTEN
            | {"hide": lambda s, mask: s.masked_fill(~mask, torch.finfo(s.dtype).min)}
        )
        .by(*map(fill_and_forget_empty_rows, (-100.0, -1e4, -1e6)))
        .by_any(fill_and_forget_empty_rows, Between(-800.0, -1e-3)),
        mistake("""a low number is written into the scores
            `scores[~mask] = …` changes the scores of whoever called, and autograd refuses it for
            scores that are learned. The number is none that every dtype has, either: float16 ends
            at ±65504. `scores.masked_fill(~mask, -math.inf)` makes new scores.
        """)
        .by(write_into_scores(-1e6))
        .by(write_into_scores(-1e6) | {"finish": lambda weights, has_key: weights * has_key})
        .by_any(write_into_scores, (-1e4, -1e9, -math.inf)),
        mistake("""float16 has no −1e9
            Your function breaks down in float16, which reaches to ±65504. Use −∞, which every
            floating dtype has, or `torch.finfo(scores.dtype).min`.
        """).by(hide=lambda s, mask: s.masked_fill(~mask, -1e9)),
        mistake("""−1e9 is added to the scores
            A sum with −1e9 keeps what float32 has room for, steps of 64, and a row with no key
            still gets weights that sum to 1. In float16 it is no float16 any more, or −∞.
            `masked_fill` replaces, it does not add.""")
        .by(EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask: s + ~mask * -1e9})
        .by(EMPTY_ROWS_FORGOTTEN | {"hide": lambda s, mask: s + (1 - mask.to(s.dtype)) * -1e9}),
        mistake("""a guard beside the allowed weights
            You add a small number to the sum of a row, or let the sum be no less. Its weights no
            longer sum to 1, or the number is 0 in float16, as all below 3e-8 are, and 0/0 is NaN.
            Replace a sum of 0 by 1, and leave the others as they are.""")
        .by(shares_with_guard((over_keys, 1e-6)))
        .by(
            *map(
                shares_with_floor, product((over_keys, exp_minus_detached_max), (1e-12, 1e-9, 1e-6))
            )
        )
        .by_any(
            shares_with_guard,
            tuple(product((over_keys, exp_minus_detached_max, exp_minus_max), GUARDS)),
        ),
        mistake("""not divided by the sum
            You return exponentials, and a row does not sum to 1. Divide by the sum of the row.""")
        .by(normalize=exp_minus_detached_max)
        .by(
            {
                **SCORES_UNMASKED,
                "normalize": exp_minus_detached_max,
                "after": lambda w, mask, f: w * mask,
            }
        ),
        mistake("""float16 comes back as float32
            You compute in float32, which is a good idea for float16 alone, and return that. Leave
            float32 and float64 as they are, and end with `.to(scores.dtype)`.""")
        .by(cast=lambda s: s.float() if s.dtype == torch.float16 else s)
        .by(cast=lambda s: s.float()),
        mistakes.MASK_NOT_BROADCAST.here(
            align_mask=lambda mask, scores: mask, hide=mistakes.at_places
        ),
        *(
            recipe.by(*MORE_WAYS.get(recipe.name, ())).naming(**OF_EMPTY_ROWS)
            for recipe in (
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
