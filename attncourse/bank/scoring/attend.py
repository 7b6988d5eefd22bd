"""The exercise ``attend``: the blend of values, whatever made the scores."""

import math
from dataclasses import replace

import torch

from attncourse import scoring
from attncourse.checks.callers import with_gradients
from attncourse.checks.exercise import Between, Case, composition, exercise, unchanged
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, hole, normal, once_more, row, standard
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"scores": "... m n", "values": "... n d_v"}, how=normal)
ROWS = standard(CASES)
LN2, LN3 = math.log(2), math.log(3)
# Weights 1/4 1/4 1/2 and 1/6 1/2 1/3.
TWO_ROWS = tensor([[0, 0, LN2], [0, LN3, LN2]]), tensor([[12, 0], [0, 12], [12, 12]])
BY_HAND = Case(TWO_ROWS, note="the exponentials are 1, 1, 2 and 1, 3, 2")
MASKED_BY_HAND = Case(
    (*TWO_ROWS, torch.tensor([[True, False, True], [True, True, False]])),
    note="weights 1/3, 2/3 and 1/4, 3/4",
)
HIDDEN_FAVOURITES = Case(
    (tensor([[0, 4, 1], [2, 1, 4]]), TWO_ROWS[1], MASKED_BY_HAND.args[2]),
    note="hidden keys score highest",
)
ROW = row("m=5 n=7 d_v=3")
SCORES_FAR_BELOW_0 = {"scores": Drawn("m n", lambda rng, shape: normal(rng, shape) - 1e6)}

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_attend(
    order=lambda scores, values: (scores, values),
    prepare=lambda scores, values: scores,
    into=lambda scores, hidden, mask: hidden,
    finish=lambda output, weights: output,
    **options,
):
    """Return ``attend`` made of decisions; ``into`` says where the masked scores are written."""
    right_attention = Attention.of(options)
    attention = replace(
        right_attention, hide=lambda s, mask: into(s, right_attention.hide(s, mask), mask)
    )

    def answer(scores, values, mask=None):
        scores, values = order(scores, values)
        weights = attention.shares(prepare(scores, values), mask)
        return finish(attention.mix(weights, values), weights)

    return answer


def add_axis_per_sequence(mask):
    return mask.unsqueeze(1) if mask is not None and mask.ndim == 2 else mask


def lowest_number(scores):
    return scores.masked_fill(scores == -math.inf, math.inf).amin(-1, keepdim=True)


def mean_score(scores):
    seen = scores > -math.inf
    return scores.where(seen, 0).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    scoring.attend,
    section="Chapter 6, “Whatever made the scores”",
    difficulty=2,
    minutes=10,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        CASES.criterion("softmax of each row, then the blend of the values", 2).on(
            BY_HAND,
            row("m=5 n=5 d_v=5", note="as many queries, keys and features"),
            row("m=3 n=7 d_v=5"),
        ),
        CASES.criterion("one query, one key, one feature, any memory layout", 1).on(
            row("m=1 n=5 d_v=3", note="one query"),
            row("m=5 n=1 d_v=3", note="one key"),
            row("m=5 n=7 d_v=1", note="one feature"),
            row("m=5 n=7 d_v=3", turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("a mask, True where attention is allowed", 2).on(
            MASKED_BY_HAND,
            HIDDEN_FAVOURITES,
            ROW.but(arguments={"mask": hole("m n")}),
            ROW.but(arguments={"mask": hole("1 n")}, note="one row of the mask for all"),
            ROW.but(arguments={"mask": hole("n")}, note="a mask (n,)"),
            ROW.but(batch=(2,), arguments={"mask": hole("... 1 n")}, note="batch of masks"),
            ROW.but("n=5", batch=(5,), arguments={"mask": hole("m n")}, note=cases.ONE_MASK),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            ROW.but(batch=(2,), arguments={"values": Drawn("n d_v")}, note="values for all"),
        ),
        CASES.criterion("large scores and float32", 1).on(
            *ROWS.numbers,
            ROW.but(
                arguments=SCORES_FAR_BELOW_0 | {"mask": hole("m n")}, note="scores near −1000000"
            ),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach scores and values", 1).on(
            *ROWS.gradients,
            ROW.but(
                batch=(2,),
                arguments={"mask": hole("m n")},
                use=with_gradients("scores", "values"),
                note="a batch of 2, with a mask",
            ),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_attend,
        *mistakes.OF_THE_SOFTMAX,
        *mistakes.MORE_OF_THE_SOFTMAX,
        mistakes.FLOORED,
        mistakes.BY_FEATURES,
        mistakes.BEST_ONLY,
        mistake("""exponentials that are not shared out
            You blend by the exponentials, or by the logarithms of `log_softmax`. Weights are the
            exponentials of a row divided by their sum.""")
        .by(normalize=lambda s: s.exp())
        .by(normalize=lambda s: (s - s.amax(-1, keepdim=True)).exp())
        .by(normalize=lambda s: s.log_softmax(-1)),
        mistake("""scaled once more
            You divide by the root of the number of keys, or of the width of the values. Any scaling
            there is belongs to the score: `attend` takes the scores as they are.""")
        .by(prepare=lambda scores, values: scores / scores.shape[-1] ** 0.5)
        .by(prepare=lambda scores, values: scores / values.shape[-1] ** 0.5),
        mistake("""scores times a number
            You multiply the scores by a number, −1 it may be, or use another base than e, which is
            the same. `attend` takes the exponentials of the scores as they are.""")
        .by(prepare=lambda scores, values: 0.5 * scores)
        .by(prepare=lambda scores, values: -scores)
        .by_any(
            lambda number: {"prepare": lambda scores, values: number * scores}, Between(1e-3, 1e3)
        ),
        mistake("""the weights do not blend
            You transpose weights or values, or multiply entry by entry. Row i holds query i's
            weights on all keys, and a blend adds up over these: `weights @ values`.""")
        .by(mix=lambda weights, values: weights.mT @ values)
        .by(mix=lambda weights, values: weights * values)
        .by(mix=lambda weights, values: weights @ values.mT),
        mistake("""scores and values exchanged
            You take the softmax of the values and blend the scores. The scores come first.""").by(
            order=lambda scores, values: (values, scores)
        ),
        mistakes.ONE_BATCH_AXIS.here(mix=lambda weights, values: torch.bmm(weights, values))
        .by(mix=lambda weights, v: torch.einsum("bmn,bnd->bmd", weights, v))
        .by(
            normalize=lambda scores: scores.softmax(2),
            mix=lambda weights, v: torch.einsum("bmn,bnd->bmd", weights, v),
        )
        .by(normalize=lambda scores: scores.softmax(2), mix=torch.bmm),
        mistakes.TOO_LITTLE_OFF.by(
            *(mistakes.lowered_by(-math.log(x)) for x in (1e-8, 1e-9, 1e-10))
        ),
        *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
        mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
        *mistakes.OF_THE_MASKS_SHAPE,
        mistakes.GUARD_AFTER_THE_MASK,
        mistake("""an axis is added to a mask of two axes
            You take a mask of two axes for (b, n) and put an axis between them. Such a mask is (m,
            n) here, for every sequence. It broadcasts to the scores as it is: add nothing.
        """).by(hide=lambda s, mask: decisions.hide(s, add_axis_per_sequence(mask))),
        mistake("""another number than the maximum is subtracted
            You subtract each row's smallest score, or its mean. exp of a score far above that still
            overflows: subtract the largest.""")
        .by(normalize=lambda s: mistakes.no_max_subtracted(s - lowest_number(s)))
        .by(normalize=lambda s: mistakes.no_max_subtracted(s - mean_score(s))),
        mistake("""the scores are clipped
            You cut the scores off at a bound, so that all beyond it weigh the same. Their
            differences count, however large they are: subtract each row's largest score.""")
        .by(prepare=lambda scores, values: scores.clamp(-50, 50))
        .by(prepare=lambda scores, values: scores.clamp(max=50))
        .by_any(
            lambda bound: {"prepare": lambda scores, values: scores.clamp(-bound, bound)},
            (10, 20, 30, 80, 88, 100, 500, 700, 1e4),
        ),
        mistake("""the scores are masked in place
            `masked_fill_`, with the underscore, writes −∞ into the caller's scores. `masked_fill`
            makes a new tensor.
        """).by(into=lambda s, hidden, mask: hidden if mask is None else s.copy_(hidden)),
        *mistakes.OF_THE_RESULT,
    ),
)
