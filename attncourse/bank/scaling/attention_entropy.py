"""The exercise ``attention_entropy``: how widely the weights of a row are spread."""

import math

import numpy as np
import torch

from attncourse import scaling
from attncourse.bank.scaling.cases import (
    BATCH_OF_THREE,
    ONLY_WEIGHTS,
    random_weights,
    saturated_weights,
)
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax

# --- cases ---------------------------------------------------------------------------------------


def steep_weights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights of every size, each 1/e of the next, in any order."""
    return Softmax()(-1.0 * rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1))


def weights_with_zeros(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights of which every row has some that are 0, and none that is small."""
    place = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    weights = np.where(place < 2, 0, rng.uniform(1, 2, shape))
    return weights / weights.sum(-1, keepdims=True)


CASES = CaseTable({"weights": "... n"}, how=random_weights)
ROWS = standard(CASES)
BY_HAND = Case((tensor([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]),), note="two keys, equal: ln 2")

TWO_AXES = row("n=5", batch=(2, 3), note="two batch axes")

# --- decisions and mistakes ----------------------------------------------------------------------


def guarded_shares(guard):
    return {"take": lambda weights: (weights + guard) / (weights + guard).sum(-1, keepdim=True)}


@composition
def compose_attention_entropy(
    take=lambda weights: weights,
    log=lambda a: a.masked_fill(a == 0, 1).log(),  # ln a, and 0 where a is 0
    weigh=lambda weights, logs: weights * logs,
    total=lambda terms: terms.sum(-1),
    sign=-1,
    unit=lambda h, weights: h,
):
    """Return the entropy made of decisions, in the order in which they are taken."""

    def attention_entropy(weights):
        taken = take(weights)
        return unit(sign * total(weigh(taken, log(taken))), weights)

    return attention_entropy


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    scaling.attention_entropy,
    section="Chapter 7, “What large scores do to a softmax”",
    difficulty=2,
    minutes=12,
    forbids=("special_entr",),
    criteria=(
        CASES.criterion("−Σ a ln a over each row", 3).on(
            BY_HAND,
            Case((tensor([0.5, 0.25, 0.25]),)),
            row("n=7"),
            row("n=3", batch=(5,)),
            row("n=4", batch=(4,), note="as many queries as keys"),
        ),
        CASES.criterion("a weight of 0 adds 0", 2).on(
            Case((tensor([[1, 0, 0], [0.5, 0, 0.5]]),), note="weights of 0"),
            BATCH_OF_THREE.but(
                arguments={"weights": Drawn("... n", weights_with_zeros)}, note="weights of 0"
            ),
        ),
        CASES.criterion("one query, one key, any memory layout", 1).on(
            Case((tensor([[1], [1], [1]]),), note="one key"),
            row("n=7", batch=(1,), note="one query"),
            row("n=3", batch=(7,), turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches, TWO_AXES),
        CASES.criterion("float32, tiny weights, many keys", 1).on(
            ROWS.single.but(batch=(3,)),
            BATCH_OF_THREE.but(
                "n=7", arguments={"weights": Drawn("... n", saturated_weights)}, note="saturated"
            ),
            BATCH_OF_THREE.but(
                "n=24", arguments={"weights": Drawn("... n", steep_weights)}, note="1/2 to 1e-10"
            ),
            row("n=500", batch=(2,), note="500 keys"),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach the weights", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=ONLY_WEIGHTS,
    mistakes=made(
        compose_attention_entropy,
        mistake("""0 · ln 0 is NaN
            ln 0 is −∞ and 0 · (−∞) is NaN. The limit of a ln a at 0 is 0: put a 1 in place of each
            weight of 0 inside the logarithm, or use `torch.xlogy(weights, weights)`.
        """).by(log=lambda weights: weights.log()),
        mistake("""logarithms to another base
            Your entropy is in bits (`log2`), 1/ln 2 ≈ 1.44 times as large, or your logarithm is
            `log10`. Use nats: `torch.log`, the natural logarithm.""")
        .by(unit=lambda h, weights: h / math.log(2))
        .by(unit=lambda h, weights: h / math.log(10)),
        mistake("""the minus is missing
            Logarithms of numbers below 1 are negative, and an entropy is not: H = −Σ a ln a, with a
            minus in front.""").by(sign=1),
        mistake("""summed over another axis
            Each query has an entropy: sum over its keys, the last axis, `sum(dim=-1)`. The axis −2
            is the queries', and what 0 and 1 are depends on the batch.""")
        .by(total=lambda terms: terms.sum(-2))
        .by(total=lambda terms: terms.sum(1))
        .by(total=lambda terms: terms.sum(0)),
        mistake("""averaged over the keys
            You take the mean over the keys, so that your result is n times too small. The weights
            in the formula are the average already: sum.""").by(total=lambda terms: terms.mean(-1)),
        mistake("""one number for the whole map
            You sum or average over the queries too (as `weights[weights > 0]` does, which flattens
            all rows). Each query has an entropy of its own: sum over the last axis.""")
        .by(total=lambda terms: terms.sum())
        .by(total=lambda terms: terms.sum(-1).mean())
        .by(total=lambda terms: terms.sum(1).mean())
        .by(total=lambda terms: terms.sum(0).mean())
        .by(total=lambda terms: terms.mean()),
        mistake("""an axis of length 1 is left
            `keepdim=True` leaves an axis of length 1 where the keys were. The result has one number
            for each row, shape (...): `sum(dim=-1)`.
        """).by(total=lambda terms: terms.sum(-1, keepdim=True)),
        mistake("""a row with a zero counts 0
            Where one weight of a row is 0 your entropy is 0, as of NaN that is replaced after the
            sum, and what the other weights add is lost. Only the term of the weight that is 0 is 0:
            `torch.xlogy(weights, weights)`.
        """).by(log=lambda weights: weights.log(), total=lambda terms: terms.sum(-1).nan_to_num()),
        mistake("""small weights are dropped
            You take small weights for 0, and what they add is lost. Only a weight of 0 adds 0.""")
        .by(log=lambda weights: weights.masked_fill(weights < 1e-3, 1).log())
        .by_any(
            lambda bound: {"log": lambda weights: weights.masked_fill(weights < bound, 1).log()},
            (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-2),
        ),
        mistake("""not summed at all
            You return the terms −a ln a, one for each key. The entropy of a query is their sum over
            the keys, the last axis.""").by(total=lambda terms: terms),
        mistake("""divided by ln n, or taken from it
            The largest possible entropy is ln n. You divide by it, or return the distance from it.
            Asked for is the entropy itself.""")
        .by(unit=lambda h, weights: h / math.log(weights.shape[-1]))
        .by(unit=lambda h, weights: h / (math.log(weights.shape[-1]) or 1))
        .by(unit=lambda h, weights: math.log(weights.shape[-1]) - h),
        mistake("""another softmax
            You apply a softmax, or `log_softmax` in place of the logarithm. `weights` have been
            through one: they sum to 1.""")
        .by(take=lambda weights: weights.softmax(-1))
        .by(log=lambda weights: weights.log_softmax(-1)),
        mistake("""the logarithms are not weighted
            You sum −ln a alone. Each logarithm counts as much as its weight: −Σ a ln a.""")
        .by(weigh=lambda weights, logs: weights.log())
        .by(weigh=lambda weights, logs: logs),
        mistake("""each weight and its rest
            You add −(1 − a) ln(1 − a) for every weight, as for a coin that falls on either side.
            The keys of a row are the sides of one die: −Σ a ln a is all.
        """).by(weigh=lambda a, logs: a * logs + torch.xlogy(1 - a, 1 - a)),
        mistake("""ln(1 + a)
            `log1p(a)`, or `log(a + 1)`, is finite at 0, but it is another function. Take care of
            the zeros and leave the others as they are.""").by(log=lambda weights: weights.log1p()),
        mistake("""a guard that shows
            You add a small number inside the logarithm, and it lowers every entropy. Treat the
            zeros apart (`torch.xlogy`, `torch.where`), or make the guard 1e-12 or less.""")
        .by(log=lambda weights: (weights + 1e-9).log())
        .by_any(lambda guard: {"log": lambda a: (a + guard).log()}, Between(1e-10, 0.5)),
        mistake("""a floor that shows
            You lift small weights inside the logarithm (`clamp(min=…)`), and they count too little.
            Treat the zeros apart (`torch.xlogy`), or put the floor at 1e-12 or less.""")
        .by(log=lambda weights: weights.clamp(min=1e-6).log())
        .by_any(lambda floor: {"log": lambda a: a.clamp(min=floor).log()}, Between(1e-7, 0.1)),
        mistake("""a guard on the weights themselves
            You add a small number to the weights, outside of the logarithm too, so that a weight of
            0 adds something. Let them be: `torch.xlogy(weights, weights)`.""")
        .by(take=lambda weights: weights + 1e-9)
        .by(*map(guarded_shares, (1e-10, 1e-9, 1e-8, 1e-7, 1e-6)))
        .by_any(lambda guard: {"take": lambda weights: weights + guard}, Between(1e-9, 0.5)),
        mistake("""small weights are lifted
            You lift small weights (`clamp(min=…)`), outside of the logarithm too, so that a weight
            of 0 adds something. Let them be: `torch.xlogy(weights, weights)`.""")
        .by(take=lambda weights: weights.clamp(min=1e-6))
        .by_any(lambda floor: {"take": lambda a: a.clamp(min=floor)}, Between(1e-9, 0.1)),
        mistake("""the zeros are overwritten
            `weights[weights == 0] = …` writes into the caller's tensor.
            `weights.masked_fill(weights == 0, 1)` makes a new one.
        """).by(take=lambda weights: weights.masked_fill_(weights == 0, 1)),
        mistake("""another gradient
            Your entropies are right, their gradient is not: you divide the weights by their sum
            first, as `torch.distributions.Categorical` does, or detach the logarithm.""")
        .by(take=lambda weights: weights / weights.sum(-1, keepdim=True))
        .by(weigh=lambda weights, logs: weights * logs.detach()),
        mistake("""another measure of spread
            You return 1 − Σ a², −ln Σ a², −ln of the largest weight, or e to the entropy. These
            measure spread too, but asked for is −Σ a ln a.""")
        .by(unit=lambda h, weights: 1 - weights.square().sum(-1))
        .by(unit=lambda h, weights: -weights.amax(-1).log())
        .by(unit=lambda h, weights: -weights.square().sum(-1).log())
        .by(unit=lambda h, weights: h.exp()),
    ),
)
