"""The exercise ``attention_scores``: how well each query and each key fit."""

from attncourse import kqv
from attncourse.bank.kqv.shared import PAIR
from attncourse.checks.exercise import Case, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, normal, once_more, row, standard
from attncourse.checks.writing.decisions import dot
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable(PAIR, how=normal)
ROWS = standard(CASES, d_k=4)
BY_HAND = Case(
    (tensor([[1, 0, 2], [0, 3, 1]]), tensor([[1, 1, 0], [2, 0, 1], [0, 1, 3], [1, 2, 1]])),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    kqv.attention_scores,
    section="Chapter 5, “Who fits whom”",
    difficulty=1,
    minutes=8,
    picture=True,
    criteria=(
        CASES.criterion("every query with every key", 2).on(
            BY_HAND,
            row("m=5 n=5 d_k=4", note="as many queries as keys"),
            row("m=3 n=7 d_k=4"),
        ),
        CASES.criterion("one query, one key, any memory layout", 1).on(
            row("m=1 n=5 d_k=4", note="one query"),
            row("m=5 n=1 d_k=4", note="one key"),
            row("m=7 n=3 d_k=4", turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.contiguous,
            row(
                "m=5 n=7 d_k=4",
                batch=(2,),
                arguments={"key": Drawn("n d_k")},
                note="one for a batch",
            ),
        ),
        CASES.criterion(cases.SCATTERED, 1).on(*ROWS.not_contiguous),
        CASES.criterion("float32, large and small entries", 1).on(
            *ROWS.numbers, once_more(BY_HAND)
        ),
        CASES.criterion("gradients reach query and key", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(dot, *mistakes.OF_A_DOT_PRODUCT),
)
