"""The exercise ``project``: a view of every token, by a matrix."""

from attncourse import kqv
from attncourse.checks.exercise import Case, exercise, unchanged
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import CaseTable, normal, once_more, row, standard
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"x": "... n d_in", "weight": "d_in d_out"}, how=normal)
ROWS = standard(CASES)
BY_HAND = Case((tensor([[1, 0, 2], [0, 3, 1]]), tensor([[1, 2], [0, 1], [3, -1]])))
SQUARE = Case(
    (tensor([[1, 2], [0, 1]]), tensor([[1, 1], [0, 2]])),
    note="as many tokens as features in and out",
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    kqv.project,
    section="Chapter 5, “Three views of one token”",
    difficulty=1,
    minutes=5,
    criteria=(
        CASES.criterion("a weighted sum of the features for every token", 2).on(
            BY_HAND, SQUARE, row("n=7 d_in=5 d_out=3")
        ),
        CASES.criterion("one token, one feature, any memory layout", 1).on(
            row("n=1 d_in=3 d_out=5", note="n = 1"),
            row("n=5 d_in=1 d_out=7", note="one feature"),
            row("n=7 d_in=3 d_out=5", turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32, large, small and zero entries", 1).on(
            *ROWS.numbers,
            row("n=7 d_in=5 d_out=3", zero=("weight",), note="a weight of 0"),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach x and weight", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=(
        mistake("""the weight is transposed
            You multiply by the transposed weight, as `nn.Linear` and `F.linear` do with theirs,
            which are stored as (d_out, d_in). Here `weight` is (d_in, d_out): `x @ weight`.
        """).whole(lambda x, weight: x @ weight.mT),
        mistake("""the weight reshaped, not transposed
            `reshape` and `view` hand the numbers of `weight` out anew in the order of memory, so
            that a column holds numbers of several. `nn.Linear`'s layout is the transpose,
            `weight.mT`; here you need none: `x @ weight`.
        """).whole(
            lambda x, weight: x @ weight.reshape(weight.shape[::-1]).mT,
            lambda x, weight: x @ weight.mT.reshape(weight.shape),
        ),
        mistake("""the weight stands on the left
            `weight @ x` is how papers write it that keep a token in a column. Here a token is a
            row, so the weight stands on the right: `x @ weight`.
        """).whole(lambda x, weight: weight @ x),
        mistake("""both orders mixed
            `weight.T @ x` has the weight of the column convention and the tokens of the row
            convention, and mixes tokens instead of features. Either `x @ weight`, or transpose x
            too: `(weight.mT @ x.mT).mT`.
        """).whole(lambda x, weight: weight.mT @ x),
        mistake("""entries multiplied one by one
            `*` multiplies entries at the same place. A projection sums over the features of a
            token: that is the matrix product `@`.
        """).whole(lambda x, weight: x * weight),
        mistake("""the batch axes are lost
            You flatten all tokens into one long list and do not restore the shape. The result has
            the axes of x, with d_out in place of d_in.
        """).whole(lambda x, weight: x.reshape(-1, x.shape[-1]) @ weight),
    ),
)
