"""The exercise ``top_k_gate``: which experts a token goes to, and with what weight."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attncourse import serving
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def telling_logits(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return logits that no other choice gets right: the largest in size is negative."""
    rows = rng.normal(size=shape).reshape(-1, shape[-1])
    size = np.abs(rows)
    rows = np.where(size == size.max(-1, keepdims=True), -size, rows)
    rows[1::2] -= 4
    return rows.reshape(shape)


CASES = CaseTable({"logits": "... n_experts"}, how=telling_logits)
ROWS = standard(CASES)
ROW = row("n_experts=8", arguments={"k": 2})
FOUR_ROWS = {"sizes": "n_experts=8", "batch": (4,), "arguments": {"k": 2}}
BY_HAND = Case((tensor([[math.log(3), 0, -1, -2]]), 2), note="3/4 and 1/4")
TIE_CASES = [
    Case((tensor([[1, 2, 0, 2, 2], [3, 1, 1, 1, 0]]), 2), note="ties"),
    Case((torch.zeros(3, 7, dtype=torch.float64), 3), note="all alike"),
    Case((torch.tensor([[1.0] * 40]), 5), note="all alike, 40 experts"),
]


def refused_gate(n_experts: int, k: int, note: str) -> Case:
    return Case((torch.zeros(2, n_experts), k), note=note, raises=ValueError)


# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_bad_k(logits, k):
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError("expected a k from 1 to the number of experts")
    return k


def rank_below_k(order: Callable):
    """Return a ``choose``: True where the rank is below k in this order of the experts."""
    return lambda logits, k: order(logits).argsort(-1) < k


def lower_id_first(logits):
    return logits.argsort(dim=-1, descending=True, stable=True)


def higher_id_first(logits):
    return logits.shape[-1] - 1 - logits.flip(-1).argsort(dim=-1, descending=True, stable=True)


def least_likely_first(logits):
    return logits.argsort(dim=-1, stable=True)


@composition
def compose_top_k_gate(
    refuse=refuse_bad_k,
    read=as_it_is,
    choose=rank_below_k(lower_id_first),
    hide=lambda logits, chosen: logits.masked_fill(~chosen, -math.inf),
    normalize=lambda logits: logits.softmax(-1),
    after=lambda weights, chosen, k: weights,
    finish=lambda weights, logits, k: weights,
):
    """Return ``top_k_gate`` made of decisions."""

    def top_k_gate(logits, k):
        k = refuse(logits, k)
        x = read(logits)
        chosen = choose(x, k)
        weights = after(normalize(hide(x, chosen)), chosen, k)
        return finish(weights, x, k)

    return top_k_gate


def softmax_before_choice(after: Callable, normalize: Callable = lambda x: x.softmax(-1)):
    """Return the options that take weights of all experts first, then change the chosen."""
    return {"hide": lambda logits, chosen: logits, "normalize": normalize, "after": after}


def fill_others(number: float) -> dict[str, Any]:
    return {"hide": lambda logits, chosen: logits.masked_fill(~chosen, number)}


def choose_along(axis: int):
    """Return a ``choose`` over another axis, where there is one."""

    def choose(logits, k):
        moved = logits.transpose(axis, -1) if logits.ndim > 1 else logits
        k = min(k, moved.shape[-1])
        chosen = rank_below_k(lower_id_first)(moved, k)
        return chosen.transpose(axis, -1) if logits.ndim > 1 else chosen

    return choose


def choose_among_all(logits, k):
    """Choose as many of all the logits together as there are rows times k."""
    flat = logits.reshape(-1)
    rows = flat.numel() // logits.shape[-1]
    return rank_below_k(lower_id_first)(flat, k * rows).reshape(logits.shape)


def renormalize(weights, chosen, k):
    chosen_weights = weights * chosen
    return chosen_weights / chosen_weights.sum(-1, keepdim=True)


def renormalize_with_guard(number: float) -> dict[str, Any]:
    def after(weights, chosen, k):
        chosen_weights = weights * chosen
        return chosen_weights / (chosen_weights.sum(-1, keepdim=True) + number)

    return softmax_before_choice(after)


def chosen_weights_only(weights, logits, k):
    """Return k weights for each row, in place of one for each expert."""
    return weights.gather(-1, lower_id_first(logits)[..., :k])


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    serving.top_k_gate,
    section="Chapter 20, “Experts”",
    difficulty=1,
    minutes=10,
    criteria=(
        CASES.criterion("the softmax over the k largest, 0 elsewhere", 3).on(
            BY_HAND,
            ROW.but(batch=(5,)),
            row("n_experts=7", batch=(3,), arguments={"k": 3}),
            row("n_experts=6", batch=(6,), arguments={"k": 2}, note="as many tokens as experts"),
        ),
        CASES.criterion("of equal logits the lower index", 1).on(*TIE_CASES),
        CASES.criterion("one expert, or all of them", 1).on(
            ROW.but(batch=(6,), arguments={"k": 1}, note="one of eight"),
            ROW.but(batch=(3,), arguments={"k": 8}, note="all of eight"),
            row("n_experts=1", batch=(2,), arguments={"k": 1}, note="one expert"),
        ),
        CASES.criterion("batches", 1).on(
            *(table_row.but(arguments={"k": 2}) for table_row in ROWS.batches)
        ),
        CASES.criterion("float32, large and small logits", 1).on(
            *(table_row.but(**FOUR_ROWS) for table_row in ROWS.numbers),
            ROW.but(batch=(3,), factor=1e3, note="logits in the thousands"),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach the logits", 1).on(
            *(table_row.but(**FOUR_ROWS) for table_row in ROWS.gradients)
        ),
        Criterion("k outside 1 … n: ValueError", 1).on(
            lambda rng: [
                refused_gate(5, 0, "k = 0"),
                refused_gate(5, 6, "k = 6 of 5"),
                refused_gate(5, -1, "k = −1"),
            ]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_top_k_gate,
        mistake("""softmax before the choice, not renormalised
            You take the softmax over all experts and set the others to 0, so that what is left sums
            to less than 1. Take it over the chosen ones alone, or divide by their sum.""").by(
            softmax_before_choice(lambda weights, chosen, k: weights * chosen)
        ),
        mistake("""zeros go into the softmax
            You set the other logits to 0 before the softmax, and e⁰ = 1 is a weight like others.
            They are −∞ there.""")
        .by(hide=lambda logits, chosen: logits * chosen)
        .by(
            hide=lambda logits, chosen: logits * chosen,
            after=lambda weights, chosen, k: weights * chosen,
        ),
        mistake("""of equal logits the higher index
            Of experts with equal logits you choose the later ones. A stable descending sort puts
            the lower index first: `argsort(descending=True, stable=True)`.""")
        .by(choose=rank_below_k(higher_id_first))
        .by(
            choose=lambda logits, k: (
                torch.zeros_like(logits).scatter(-1, logits.topk(k).indices, 1).bool()
            )
        ),
        mistake("""more than k where logits are equal
            You keep all that are as large as the k-th, which may be more than k. Exactly k are
            chosen, of equal ones the lower index.""").by(
            choose=lambda logits, k: logits >= logits.topk(k).values[..., -1:]
        ),
        mistake("""fewer than k
            You keep what is larger than the k-th. The k-th itself is chosen, too.""")
        .by(
            choose=lambda logits, k: (
                (logits > logits.topk(k).values[..., -1:])
                | (lower_id_first(logits).argsort(-1) < 1)
            )
        )
        .by(choose=lambda logits, k: rank_below_k(lower_id_first)(logits, max(k - 1, 1))),
        mistake("""one more than k
            You keep k + 1. Ranks count from 0, so it is `rank < k`.""").by(
            choose=lambda logits, k: rank_below_k(lower_id_first)(logits, k + 1)
        ),
        mistake("""the k smallest
            You choose the experts with the smallest logits.""").by(
            choose=rank_below_k(least_likely_first)
        ),
        mistake("""the largest in size
            You choose by |logit|. A large negative logit speaks *against* an expert.""").by(
            choose=lambda logits, k: rank_below_k(lower_id_first)(logits.abs(), k)
        ),
        mistake("""`argsort` taken for the ranks
            `argsort` says which expert stands in each place, and you read it as the place of each
            expert. The `argsort` of it gives the ranks; or `scatter` at `topk(k).indices`.""").by(
            choose=lambda logits, k: lower_id_first(logits) < k
        ),
        mistake("""the choice over another axis
            You choose among the tokens for each expert. Each token chooses among the experts, the
            last axis.""")
        .by(choose=choose_along(-2))
        .by(choose=choose_along(0)),
        mistake("""one choice for all tokens together
            You choose the largest of all the logits, or the same experts for every token. Each
            token chooses its own k.""")
        .by(choose=choose_among_all)
        .by(
            choose=lambda logits, k: rank_below_k(lower_id_first)(
                logits.reshape(-1, logits.shape[-1]).mean(0).expand(logits.shape), k
            )
        )
        .by(
            choose=lambda logits, k: rank_below_k(lower_id_first)(
                logits.reshape(-1, logits.shape[-1])[0].expand(logits.shape), k
            )
        ),
        mistake("""softmax over another axis
            Your columns sum to 1. What a token gives its experts does: `softmax(-1)`.""")
        .by(normalize=lambda logits: logits.softmax(-2 if logits.ndim > 1 else -1).nan_to_num())
        .by(normalize=lambda logits: logits.softmax(-2 if logits.ndim > 1 else -1)),
        mistake("""divided by the sum of logits
            You divide logits by their sum. Logits may be negative: take the softmax.""").by(
            softmax_before_choice(renormalize, normalize=as_it_is)
        ),
        mistake("""k equal parts
            You give 1/k to each chosen expert. How much it counts follows from its logit.""").by(
            after=lambda weights, chosen, k: chosen.to(weights) / k
        ),
        mistake("""a sigmoid in place of the softmax
            You take sigmoids, as some models do. Here it is the softmax over the chosen logits.
        """)
        .by(softmax_before_choice(renormalize, normalize=torch.sigmoid))
        .by(softmax_before_choice(lambda w, chosen, k: w * chosen, normalize=torch.sigmoid)),
        mistake("""the softmax twice
            You take the softmax of weights. Take it once, of logits.""")
        .by(after=lambda weights, chosen, k: weights.masked_fill(~chosen, -math.inf).softmax(-1))
        .by(after=lambda weights, chosen, k: weights.softmax(-1)),
        mistake("""a guard in the sum
            You divide by the sum and a small number. The chosen ones have a positive sum: no guard
            is needed.""")
        .by(renormalize_with_guard(1e-6))
        .by_any(renormalize_with_guard, Between(1e-8, 0.1)),
        mistake("""a low number in place of −∞
            The other logits are low, but not low enough. Fill in −∞.""")
        .by(fill_others(-1.0))
        .by_any(fill_others, Between(-10.0, -1e-3)),
        mistake("""logits come back
            You return logits, −∞ where nothing is chosen. Asked for are weights that sum to 1.
        """).by(normalize=as_it_is),
        mistake("""k weights come back
            You return the weights of the chosen experts alone. Each expert has its column, 0 where
            it is not chosen: `(..., n_experts)`.""").by(finish=chosen_weights_only),
        mistake("""the weights stand in the first columns
            You put the weights, sorted, into the first k columns. Each belongs in its expert's own:
            `scatter(-1, indices, weights)`.""").by(
            finish=lambda weights, logits, k: weights.gather(-1, lower_id_first(logits))
        ),
        mistake("""which ones, not how much
            You return indices, or a mask. Asked for is how much each expert counts.""")
        .by(finish=lambda weights, logits, k: lower_id_first(logits)[..., :k])
        .by(finish=lambda weights, logits, k: weights > 0)
        .by(finish=lambda weights, logits, k: (weights > 0).to(weights)),
        mistake("""k is ignored
            You choose the same number of experts whatever k says.""")
        .by(choose=lambda logits, k: rank_below_k(lower_id_first)(logits, 1))
        .by(choose=lambda logits, k: rank_below_k(lower_id_first)(logits, 2))
        .by(choose=lambda logits, k: rank_below_k(lower_id_first)(logits, logits.shape[-1])),
        mistake("""exp overflows
            You take exp of logits as they are, which is infinite for large ones. The softmax
            subtracts the largest first.""").by(
            softmax_before_choice(renormalize, normalize=torch.exp)
        ),
        mistake("""what is to be refused is not
            k = 0 and a k above the number of experts choose nothing that exists: raise a
            `ValueError`.""")
        .by(refuse=lambda logits, k: k)
        .by(refuse=lambda logits, k: min(max(k, 1), logits.shape[-1]))
        .by(refuse=lambda logits, k: refuse_bad_k(logits, max(k, 1)) and k)
        .by(refuse=lambda logits, k: refuse_bad_k(logits, min(k, logits.shape[-1])) and k),
        mistake("""what is right is refused
            k may be 1, and as large as the number of experts.""")
        .by(refuse=lambda logits, k: refuse_bad_k(logits, k + 1) and k)
        .by(refuse=lambda logits, k: refuse_bad_k(logits, k - 1) and k),
        mistake("""the gradient is cut off
            No gradient reaches the logits: `.detach()`, `.data` or NumPy on the way. The choice has
            none, the weights have one.""").by(read=lambda logits: logits.detach()),
        mistake("""computed in float32
            You turn the logits into float32, which keeps seven digits of float64. Stay in their
            dtype.""").by(read=lambda logits: logits.float()),
        mistake("""the logits are changed
            You write −∞ into the caller's logits: `masked_fill_`, or an assignment. Use
            `masked_fill`, which makes a new tensor.""").by(
            hide=lambda logits, chosen: logits.data.masked_fill_(~chosen, -math.inf)
        ),
    ),
)
