"""The exercise ``scale_scores``: scores divided by √d_k.

In float64 cases d_k is a power of 4, so that 1/√d_k is exact.
"""

import math

import torch

from attncourse import scaling
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import CaseTable, Count, normal, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"scores": "... m n", "d_k": Count("d_k")}, how=normal)
ROWS = standard(CASES)
BY_HAND = Case((tensor([[2, 4, -8], [6, 0, 2]]), 4), note="√4 = 2")
BATCH_WIDTHS = (16, 4, 64, 256, 4)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_scale_scores(
    factor=decisions.by_root_of_d_k,
    take=lambda scores: scores,
    times=decisions.times,
    finish=lambda scaled: scaled,
):
    """Return the scaling made of decisions; ``factor`` sees empty queries and keys, and d_k."""

    def scale_scores(scores, d_k):
        *batch, m, n = scores.shape
        query, key = (scores.new_empty(*batch, length, d_k) for length in (m, n))
        return finish(times(take(scores), factor(query, key, d_k)))

    return scale_scores


def add_to_root(number):
    return {"factor": lambda q, k, d_k: 1 / (d_k**0.5 + number)}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    scaling.scale_scores,
    section="Chapter 7, “How large is a dot product?”",
    difficulty=1,
    minutes=5,
    criteria=(
        CASES.criterion("divided by the root of d_k", 3).on(
            BY_HAND,
            Case((tensor([[8, 0, 4], [-4, 12, 16]]), 16)),
            row("m=5 n=3 d_k=64"),
            row("m=4 n=4 d_k=256", note="as many queries as keys"),
        ),
        CASES.criterion("one query, one key, any memory layout", 1).on(
            row("m=1 n=5 d_k=16", note="one query"),
            row("m=5 n=1 d_k=16", note="one key"),
            row("m=3 n=7 d_k=1", note="d_k = 1: nothing changes"),
            row("m=7 n=3 d_k=64", turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("batches", 1).on(
            *(r.but(f"d_k={d}") for r, d in zip(ROWS.batches, BATCH_WIDTHS, strict=True)),
            row("m=5 n=3 d_k=16", batch=(2, 3), note="two batch axes"),
        ),
        CASES.criterion("float32, widths without a whole root", 1).on(
            ROWS.single.but("d_k=7", note="float32, d_k = 7"),
            ROWS.single.but("d_k=24", note="float32, d_k = 24"),
            *(table_row.but("d_k=64") for table_row in ROWS.extreme),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach the scores", 1).on(
            *(table_row.but("d_k=16") for table_row in ROWS.gradients)
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_scale_scores,
        *mistakes.OF_THE_SCALE,
        mistakes.DIVIDED_BY_ROOT_M,
        mistake("""`d_k ** 1/2`
            Powers come before divisions: `d_k ** 1/2` is d_k / 2, and `scores / d_k ** 1/2` is
            `(scores / d_k) / 2`. Write `d_k ** 0.5` or `math.sqrt(d_k)`.""")
        .by(factor=lambda q, k, d_k: 1 / d_k**1 / 2)
        .by(factor=lambda q, k, d_k: 1 / (d_k**1 / 2)),
        mistake("""a guard in the divisor
            You add a number to d_k, or to its root, or take one off. A width is at least 1 and
            needs no guard: `math.sqrt(d_k)`.""")
        .by(factor=lambda q, k, d_k: (d_k + 1) ** -0.5)
        .by(factor=lambda q, k, d_k: (d_k - 1) ** -0.5 if d_k > 1 else math.inf)
        .by(*map(add_to_root, (1e-8, 1e-7, 1e-6, 1e-5, 1e-3, 1e-2, 0.1)))
        .by_any(lambda eps: {"factor": lambda q, k, d_k: (d_k + eps) ** -0.5}, Between(1e-7, 10.0)),
        mistake("""the scores are rounded down
            `//` divides and rounds down to a whole number. Divide by √d_k with `/`.
        """).by(times=lambda scores, factor: scores // (1 / factor)),
        mistake("""something near the root of d_k
            You divide by the root cut to a whole number (`int(…)`, `round(…)`, `//`, `math.isqrt`),
            or by a logarithm. Divide by `math.sqrt(d_k)` itself.""")
        .by(factor=lambda q, k, d_k: 1 / math.isqrt(d_k))
        .by(factor=lambda q, k, d_k: 1 / round(d_k**0.5))
        .by(factor=lambda q, k, d_k: 1 / math.ceil(d_k**0.5))
        .by(factor=lambda q, k, d_k: 1 / math.log(d_k))
        .by(factor=lambda q, k, d_k: 1 / math.log2(d_k))
        .by(factor=lambda q, k, d_k: 1 / math.log1p(d_k)),
        mistake("""the scores' own mean, maximum or spread is used
            You divide by the standard deviation of these scores, or subtract their mean or their
            maximum. A scale does not look at the scores: divide by √d_k and do nothing else.""")
        .by(times=lambda scores, factor: scores / scores.std())
        .by(times=lambda scores, factor: scores / scores.std(correction=0))
        .by(times=lambda scores, factor: scores / scores.std(-1, keepdim=True))
        .by(take=lambda scores: scores - scores.mean(-1, keepdim=True))
        .by(take=lambda scores: scores - scores.amax(-1, keepdim=True)),
        mistake("""the scores are changed in place
            `scores /= …` writes into the caller's tensor. `scores / …` makes a new one.
        """).by(times=lambda scores, factor: scores.mul_(factor)),
        mistakes.SQUASHED.here(finish=torch.tanh).by(finish=lambda scaled: scaled.clamp(-1, 1)),
        mistakes.ALREADY_WEIGHTS.here(finish=lambda scaled: scaled.softmax(-1)),
    ),
)
