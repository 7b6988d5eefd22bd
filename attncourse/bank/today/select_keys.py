"""The exercise ``select_keys``: the few keys that each query looks at."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attncourse import today
from attncourse.bank.masking.shared import MASK_OF_NUMBERS, additive_mask
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Count,
    Drawn,
    hole,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"index_scores": "... m n", "k": Count("k"), "mask": hole("... m n")})
ROWS = standard(CASES)


def causal_mask_of(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.tri(*shape[-2:], dtype=bool), shape).copy()


def mask_with_one_hole(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask that forbids one key of each row, and none where there is but one."""
    place = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    return np.ascontiguousarray((place > 0) | (shape[-1] == 1))


CAUSAL_CASES = CaseTable(
    {"index_scores": "... m n", "k": Count("k"), "mask": Drawn("m n", causal_mask_of)}
)
CASES_WITH_ONE_HOLE = CaseTable(
    {"index_scores": "... m n", "k": Count("k"), "mask": Drawn("... m n", mask_with_one_hole)}
)
ALL_ALLOWED = torch.ones(2, 3, dtype=torch.bool)
BY_HAND = Case(
    (
        tensor([[0.9, 0.1, 0.5, 0.7], [0.2, 0.8, 0.3, 0.6]]),
        2,
        torch.tensor([[False, True, True, True], [True, True, True, True]]),
    ),
    note="the best of the first query is forbidden",
)
FEW_ALLOWED = torch.tensor([[True, False, False, False], [False] * 4, [False, True, True, True]])


def few_allowed_cases(rng: Rng) -> list[Case]:
    scores = tensor(rng.permuted(np.arange(12.0)).reshape(3, 4))
    return [
        Case((scores, 2, FEW_ALLOWED), note="one key, none and three"),
        Case((-scores - 5, 3, FEW_ALLOWED), note="one key, none and three; scores below 0"),
        Case((scores, 9, FEW_ALLOWED), note="k above the number of keys"),
    ]


def tie_cases(rng: Rng) -> list[Case]:
    levels = tensor(rng.integers(0, 3, (4, 40)))
    mask = torch.from_numpy(rng.random((4, 40)) < 0.7)
    return [
        Case(
            (tensor([[1, 2, 0, 2, 2], [3, 1, 1, 1, 0]]), 2, torch.ones(2, 5, dtype=torch.bool)),
            note="ties",
        ),
        Case(
            (
                tensor([[1, 2, 2, 2], [0, 0, 0, 0]]),
                2,
                torch.tensor([[True, False, True, True], [False, True, True, True]]),
            ),
            note="ties",
        ),
        Case((torch.zeros(3, 7, dtype=torch.float64), 3, torch.ones(7, 7).tril()[4:].bool())),
        Case((levels, 20, mask), note="three values, 40 keys"),
    ]


def refused_choice(k: int) -> Case:
    return Case((torch.zeros(2, 3), k, ALL_ALLOWED), note=f"k = {k}", raises=ValueError)


# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_small_k(scores, k):
    if k < 1:
        raise ValueError("expected a k of 1 or more")
    return k


def earlier_key_first(scores):
    return scores.argsort(dim=-1, descending=True, stable=True)


def later_key_first(scores):
    return scores.shape[-1] - 1 - scores.flip(-1).argsort(dim=-1, descending=True, stable=True)


def mark_first_k(order, k, mask):
    """Return a mask, True at the first k of each row's order."""
    return torch.zeros_like(mask).scatter(-1, order[..., :k], True)


@composition
def compose_select_keys(
    refuse=refuse_small_k,
    align_mask=lambda mask, scores: mask.broadcast_to(scores.shape),
    score=as_it_is,
    hide=lambda scores, mask: scores.masked_fill(~mask, -math.inf),
    order=earlier_key_first,
    mark=mark_first_k,
    after=lambda chosen, mask: chosen & mask,
    truth=as_it_is,
    kind=as_it_is,
    finish=lambda chosen, order, k, scores: chosen,
):
    """Return ``select_keys`` made of decisions."""

    def select_keys(index_scores, k, mask):
        k = refuse(index_scores, k)
        mask = align_mask(mask, index_scores)
        ranked = order(hide(score(index_scores), mask))
        chosen = after(mark(ranked, k, mask), mask)
        return finish(kind(truth(chosen)), ranked, k, index_scores)

    return select_keys


def order_of_queries(scores):
    """Return the order of the queries for each key."""
    return scores.argsort(dim=-2, descending=True, stable=True)


def mark_first_k_in_columns(order, k, mask):
    return torch.zeros_like(mask).scatter(-2, order[..., :k, :], True)


def mark_from_kth_up(order, k, mask):
    """Return a mask of the scores from the k-th up; see ``mark_by_threshold``."""
    kth = order.sort(-1, descending=True).values[..., min(k, order.shape[-1]) - 1, None]
    return order >= kth


def mark_above_kth(order, k, mask):
    kth = order.sort(-1, descending=True).values[..., min(k, order.shape[-1]) - 1, None]
    return order > kth


def mark_by_threshold(mark: Callable) -> dict[str, Any]:
    """Return the options that compare scores with the k-th, in place of an order."""
    return {"order": as_it_is, "mark": mark}


def mark_top_k(scores, k, mask):
    """Return a mask of the k highest as ``topk`` finds them, which takes any of equal ones."""
    chosen = scores.topk(min(k, scores.shape[-1])).indices
    return torch.zeros_like(mask).scatter(-1, chosen, True)


def mark_best_of_all(order, k, mask):
    """Return a mask of the k best of all queries together."""
    scores = order.flatten(-2)
    best = earlier_key_first(scores)[..., :k]
    return torch.zeros_like(mask.flatten(-2)).scatter(-1, best, True).reshape(mask.shape)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    today.select_keys,
    section="Chapter 21, “Choosing keys”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES_WITH_ONE_HOLE.criterion("the k highest of the keys that are allowed", 3).on(
            BY_HAND,
            row("m=5 n=11 k=3"),
            row("m=6 n=6 k=2"),
            row("m=4 n=9 k=4", factor=10.0, batch=(2,)),
        ),
        Criterion("all that are allowed where they are k or fewer", 2).on(few_allowed_cases),
        CAUSAL_CASES.criterion("under a causal mask", 1).on(
            row("m=7 n=7 k=3"), row("m=6 n=6 k=2", batch=(6,), note="one mask for all")
        ),
        Criterion("of equal scores the earlier key", 2).on(tie_cases),
        CASES.criterion("batches", 1).on(*(table_row.but("k=2") for table_row in ROWS.batches)),
        CASES.criterion("one key, one query or key, float32, large and small scores", 1).on(
            row("m=5 n=7 k=1", note="k = 1"),
            row("m=1 n=7 k=3", note="one query"),
            row("m=3 n=1 k=1", note="one key"),
            row("m=2 n=2 k=1", note="two tokens"),
            *(table_row.but("k=3") for table_row in ROWS.numbers),
            once_more(BY_HAND),
        ),
        Criterion("k below 1: ValueError", 1).on(
            lambda rng: [refused_choice(0), refused_choice(-1), refused_choice(-4)]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_select_keys,
        mistake("""chosen before the mask
            You choose k of all keys and take away what is forbidden, later keys for example, so
            that fewer are left than could be. Choose among the allowed ones: −∞ for the others
            first.""").by(hide=lambda scores, mask: scores),
        mistake("""forbidden keys fill up
            Where fewer than k keys are allowed you choose others besides. Of what is forbidden
            nothing may come back: `chosen & mask`.""").by(after=lambda chosen, mask: chosen),
        mistake("""the mask is ignored
            You choose among all keys. Only those where the mask is True may be chosen.""").by(
            hide=lambda scores, mask: scores, after=lambda chosen, mask: chosen
        ),
        mistake("""the mask is inverted
            You choose among the keys that are forbidden. True means allowed.""").by(
            align_mask=lambda mask, scores: ~mask.broadcast_to(scores.shape)
        ),
        mistake("""the mask is transposed
            You transpose the mask before you use it. It has a row for each query and a column for
            each key, as the scores have.""").by(
            align_mask=lambda mask, scores: mask.mT.broadcast_to(scores.shape)
        ),
        mistake("""a score of 0 is no key forbidden
            You multiply the scores by the mask, so that a forbidden key has a score of 0, which is
            more than a negative one. Fill in −∞.""").by(hide=lambda scores, mask: scores * mask),
        mistake("""of equal scores the later key
            Of keys with equal scores you choose the later ones. A stable descending sort puts the
            earlier ones first: `argsort(descending=True, stable=True)`.""").by(
            order=later_key_first
        ),
        mistake("""of equal scores by chance
            You use `topk`, or a sort that is not stable, which choose among equal scores as they
            like. `argsort(descending=True, stable=True)` puts the earlier key first.""")
        .by(order=lambda scores: scores.topk(scores.shape[-1]).indices)
        .by(mark_by_threshold(mark_top_k)),
        mistake("""more than k where scores are equal
            You keep all that are as high as the k-th, which may be more than k. Exactly k are
            chosen, of equal ones the earlier.""").by(mark_by_threshold(mark_from_kth_up)),
        mistake("""fewer than k
            You keep what is above the k-th, or k − 1. The k-th itself is chosen, too.""")
        .by(mark_by_threshold(mark_above_kth))
        .by(mark=lambda order, k, mask: mark_first_k(order, k - 1, mask)),
        mistake("""one more than k
            You keep k + 1. The first k of the order are `order[..., :k]`.""").by(
            mark=lambda order, k, mask: mark_first_k(order, k + 1, mask)
        ),
        mistake("""the k lowest
            You choose the keys with the lowest scores: `descending=True` is missing.""").by(
            hide=lambda scores, mask: scores.masked_fill(~mask, math.inf),
            order=lambda scores: scores.argsort(dim=-1, stable=True),
        ),
        mistake("""forbidden keys come first
            You sort from the lowest score, and −∞ is lower than all. Sort descending.""").by(
            order=lambda scores: scores.argsort(dim=-1, stable=True)
        ),
        mistake("""the highest in size
            You choose by |score|. A large negative score speaks against a key.""").by(
            score=lambda scores: scores.abs()
        ),
        mistake("""the k last keys
            You keep the latest k keys that are allowed, a window. It is the scores that choose.
        """).by(score=lambda scores: torch.arange(scores.shape[-1]).to(scores).expand_as(scores)),
        mistake("""the k first keys
            You keep the first k keys that are allowed. It is the scores that choose.""").by(
            score=lambda scores: torch.zeros_like(scores)
        ),
        mistake("""the place in the order is taken for the key
            `argsort` says which key stands in each place, and you read it as the place of each key.
            The `argsort` of it gives the places; or `scatter` at `order[..., :k]`.""").by(
            mark=lambda order, k, mask: order < k
        ),
        mistake("""k queries for each key
            You choose along the queries. Each query chooses among the keys, the last axis.""").by(
            order=order_of_queries, mark=mark_first_k_in_columns
        ),
        mistake("""k of the whole matrix
            You choose k of all the scores together. Each query chooses its own.""").by(
            mark_by_threshold(mark_best_of_all)
        ),
        mistake("""the same keys for all queries
            You choose by the scores of the first query, or by their mean. Each query has its own
            row.""")
        .by(score=lambda scores: scores[..., :1, :].expand_as(scores))
        .by(score=lambda scores: scores.mean(-2, keepdim=True).expand_as(scores)),
        mistake("""k is ignored
            You choose the same number of keys whatever k says.""")
        .by(mark=lambda order, k, mask: mark_first_k(order, 1, mask))
        .by(mark=lambda order, k, mask: mark_first_k(order, 2, mask))
        .by(mark=lambda order, k, mask: mark_first_k(order, order.shape[-1], mask)),
        mistake("""indices come back
            You return which keys are chosen. Asked for is a mask, `(..., m, n)`, True where a key
            is chosen.""").by(finish=lambda chosen, order, k, scores: order[..., :k]),
        mistake("""scores come back
            You return scores. Asked for is a mask of booleans, True where a key is chosen.""")
        .by(finish=lambda chosen, order, k, s: s.masked_fill(~chosen, -math.inf))
        .by(finish=lambda chosen, order, k, s: s * chosen)
        .by(finish=lambda chosen, order, k, s: s.masked_fill(~chosen, -math.inf).softmax(-1)),
        mistake("""True where a key is left out
            Your mask is True for the keys that are not chosen. In this course True means allowed.
        """).by(truth=lambda chosen: ~chosen),
        MASK_OF_NUMBERS,
        mistake("""0 and −∞
            You return the numbers that would be added to the scores. A boolean mask is asked for,
            True where a key is chosen.""")
        .by(kind=additive_mask)
        .by_any(
            lambda number: {"kind": lambda mask: additive_mask(mask, number)},
            Between(-3.4e38, -1.0),
        ),
        mistake("""nothing is refused
            A k of 0 or below chooses nothing: raise a `ValueError`.""")
        .by(refuse=lambda scores, k: max(k, 0))
        .by(refuse=lambda scores, k: k)
        .by(refuse=lambda scores, k: max(k, 1)),
        mistake("""what is right is refused
            k may be 1, and it may be more than there are keys: then all that are allowed are
            chosen.""")
        .by(refuse=lambda scores, k: refuse_small_k(scores, k - 1) and k)
        .by(
            refuse=lambda scores, k: (
                refuse_small_k(scores, scores.shape[-1] - k + 1) and refuse_small_k(scores, k)
            )
        ),
        mistake("""the scores are changed
            You write −∞ into the caller's scores: `masked_fill_`, or an assignment. Use
            `masked_fill`, which makes a new tensor.""").by(
            hide=lambda scores, mask: scores.data.masked_fill_(~mask, -math.inf)
        ),
    ),
)
