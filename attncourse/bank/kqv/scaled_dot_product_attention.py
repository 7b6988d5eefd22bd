"""The exercise ``scaled_dot_product_attention``: softmax of the scaled scores, times the values."""

import torch

from attncourse import kqv
from attncourse.bank.kqv.shared import CAUSAL, COLUMNS_BLEND, OF_THE_MASK, PAIR
from attncourse.checks.callers import with_gradients
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import CaseTable, hole, normal, once_more, row, standard
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable(PAIR | {"value": "... n d_v"}, how=normal)
ROWS = standard(CASES, d_k=4)
TWO_QUERIES_THREE_KEYS = (
    tensor([[2, 0, 0, 0], [0, 2, 0, 0]]),
    tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]]),
    tensor([[1, 0], [0, 1], [4, 4]]),
)
BY_HAND = Case(TWO_QUERIES_THREE_KEYS, note="d_k = 4, so that √d_k = 2")
MASK_BY_HAND = torch.tensor([[True, True, False], [False, True, True]])
MASKED_BY_HAND = Case((*TWO_QUERIES_THREE_KEYS, MASK_BY_HAND))
# All scores of a row are far below 0, and near each other: a finite number for −∞ lies above them.
NEAR_KEYS = tensor([[1, 1, 1, 1.0001], [1, 1, 1.0001, 1], [1, 1, 0.9999, 1]])
LOW_QUERIES_AND_KEYS = tensor([[-60000] * 4, [-90000] * 4]), NEAR_KEYS
MASKED_FAR_BELOW = Case(
    (*LOW_QUERIES_AND_KEYS, TWO_QUERIES_THREE_KEYS[2], MASK_BY_HAND),
    note="scores far below −100 000",
)
# What is forbidden is the largest by far: of weights that are masked afterwards nothing is left.
MASKED_FAR_ABOVE = Case(
    (
        tensor([[4000, 2, 0, 0], [2, 4000, 0, 0]]),
        tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]),
        TWO_QUERIES_THREE_KEYS[2],
        torch.tensor([[False, True, True], [True, False, True]]),
    ),
    note="a masked score 2000 above the others",
)
ROW = row("m=5 n=7 d_k=4 d_v=3")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_scaled_dot_product_attention(finish=lambda output, weights: output, **options):
    """Return attention made of decisions; ``finish`` says what is returned."""
    attention = Attention.of(options)

    def answer(query, key, value, mask=None, *, scale=None):
        weights = attention.weights(query, key, value, mask, scale)
        return finish(attention.output(query, key, value, mask, scale), weights)

    return answer


def renormalise_allowed(weights, mask, factor):
    if mask is None:
        return weights
    weights = weights * mask
    return weights / weights.sum(-1, keepdim=True)


RENORMALISED = mistake("""masked after the softmax, then renormalised
    You set weights to 0 after the softmax and divide by what is left. Where a masked score is far
    above the others nothing is left, and 0/0 is NaN. Put −∞ into the scores before the softmax.
""").by(hide=lambda s, mask: s, after=renormalise_allowed)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    kqv.scaled_dot_product_attention,
    section="Chapter 5, “From scores to an answer”",
    difficulty=2,
    minutes=20,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        CASES.criterion("softmax of the scaled scores, times the values", 3).on(
            BY_HAND,
            row("m=5 n=5 d_k=4 d_v=4", note="as many queries as keys, d_v = d_k"),
            row("m=3 n=7 d_k=16 d_v=16"),
        ),
        CASES.criterion("m, n, d_k and d_v may all differ", 1).on(
            ROW.but(note="d_v smaller than d_k"),
            row("m=7 n=1 d_k=4 d_v=11", note="one key, d_v above d_k"),
        ),
        CASES.criterion("a mask, True where attention is allowed", 1).on(
            MASKED_BY_HAND,
            ROW.but(arguments={"mask": hole("m n")}),
            ROW.but(arguments={"mask": hole("1 n")}, note="one row of the mask for all queries"),
            ROW.but(batch=(2,), arguments={"mask": hole("... 1 n")}, note="a batch of masks"),
            ROW.but("n=5", batch=(5,), arguments={"mask": hole("m n")}, note=cases.ONE_MASK),
        ),
        CASES.criterion("masked scores far from the others", 1).on(
            MASKED_FAR_BELOW, MASKED_FAR_ABOVE
        ),
        CASES.criterion("another scale", 1).on(
            ROW.but(arguments={"scale": 3.0}),  # neither √d_k nor d_k, nor one over them
            ROW.but(arguments={"scale": 0.0}),
            ROW.but(batch=(2,), arguments={"mask": hole("m n"), "scale": 0.3}, note="a batch"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32, large and small scores", 1).on(
            ROWS.single.but("d_k=7", note="float32, d_k = 7"),
            *ROWS.extreme,
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach query, key and value", 1).on(
            *ROWS.gradients,
            ROW.but(
                batch=(2,),
                arguments={"mask": hole("m n")},
                use=with_gradients("query", "key", "value"),
                note="a batch of 2, one mask for both",
            ),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_scaled_dot_product_attention,
        *mistakes.OF_THE_SCALE,
        mistakes.DIVIDED_BY_OTHER_WIDTH,
        mistakes.SCALED_AFTERWARDS,
        *mistakes.OF_A_GIVEN_SCALE,
        *mistakes.OF_THE_SOFTMAX,
        *OF_THE_MASK,
        mistakes.ROLES_EXCHANGED,
        mistakes.KEYS_BLENDED,
        mistakes.T_ON_A_BATCH,
        mistakes.COSINE,
        *mistakes.OF_THE_RESULT,
        *mistakes.MORE_OF_THE_SOFTMAX,
        mistakes.FLOORED,
        mistakes.NEITHER,
        mistakes.BY_FEATURES,
        mistakes.BEST_ONLY,
        mistakes.TOO_LITTLE_OFF,
        mistakes.GUARD_AFTER_THE_MASK,
        RENORMALISED,
        *mistakes.OF_THE_MASKS_SHAPE,
        CAUSAL,
        COLUMNS_BLEND,
        mistake("""the logarithm of softmax
            You mix with logarithms of the weights (`log_softmax`), which are below 0. Mix with the
            weights themselves.""").by(normalize=lambda scores: scores.log_softmax(-1)),
        mistake("""the scale is applied twice
            You multiply both query and key by the scale, and their products hold it twice. Multiply
            one of them by it, or the scores.
        """).by(scale=lambda scores, factor: scores * factor**2),
    ),
)
