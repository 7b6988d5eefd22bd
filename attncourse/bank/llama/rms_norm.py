"""The exercise ``rms_norm``: rows at a mean square of 1."""

from attncourse import llama
from attncourse.bank.llama.shared import mean_of_row
from attncourse.checks.exercise import Case, Criterion, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"x": "... d"})
FAR_FROM_0 = Drawn("... d", lambda rng, shape: rng.normal(size=shape) + 100)
CASES_WITH_GAIN = CaseTable({"x": "... d", "gain": "d"})
ROWS, ROWS_WITH_GAIN = standard(CASES), standard(CASES_WITH_GAIN)
RANDOM_GAIN = {"gain": Drawn("d")}
BY_HAND = Case((tensor([[3, 4], [-8, 6], [0, 5]]), tensor([1, 10])), {"eps": 0.5})
FIVE_ROWS = row("d=7", batch=(5,))

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_rms_norm(
    read=lambda x: x,
    centre=lambda x: x,
    square=lambda x: x.square(),
    average=mean_of_row,
    power=lambda size, eps: (size + eps).sqrt(),
    small=lambda eps: eps,
    divide=lambda x, size: x / size,
    scale=lambda x, gain: x if gain is None else gain * x,
    back=lambda normed, x: normed,
):
    """Return ``rms_norm`` made of decisions; ``centre`` is done to x before anything else."""

    def rms_norm(x, gain=None, eps=1e-5):
        original, x = x, centre(read(x))
        size = power(average(square(x)), small(eps))
        return scale(back(divide(x, size), original), gain)

    return rms_norm


def average_over(*axes: int):
    return {"average": lambda x: x.mean(axes, keepdim=True)}


def with_fixed_eps(number: float) -> dict:
    return {"small": lambda eps: number}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    llama.rms_norm,
    section="Chapter 18, “The block of today”",
    difficulty=1,
    minutes=8,
    forbids=("rms_norm",),
    criteria=(
        Criterion("each row at mean square 1", 3).on(
            lambda rng: [
                BY_HAND,
                *CASES(
                    FIVE_ROWS,
                    row("d=5"),
                    row("d=7", batch=(7,), note="as many tokens as features"),
                    row("d=2", batch=(3,)),
                    row("d=7", batch=(3,), arguments={"x": FAR_FROM_0}, note="rows far from 0"),
                )(rng),
            ]
        ),
        Criterion("times gain, which may be left out", 2).on(
            CASES(
                FIVE_ROWS.but(arguments=RANDOM_GAIN),
                row("d=7", batch=(7,), arguments=RANDOM_GAIN, note="as many tokens as features"),
            )
        ),
        Criterion("eps inside the root", 2).on(
            lambda rng: [
                *CASES(
                    FIVE_ROWS.but(arguments={"eps": 0.1}, note="eps = 0.1"),
                    FIVE_ROWS.but(arguments={"eps": 1e-12}, factor=1e-3, note="eps = 1e-12"),
                    FIVE_ROWS.but(factor=0.003, note="entries near eps"),
                )(rng)
            ]
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one feature; float32, large and small entries, zeros", 1).on(
            row("d=1", batch=(3,), note="one feature"),
            FIVE_ROWS.but(zero=("x",), note="rows of zeros"),
            FIVE_ROWS.but(arguments=RANDOM_GAIN, zero=("gain",), note="a gain of 0"),
            *ROWS.numbers,
            ROWS.single.but(batch=(3,), arguments=RANDOM_GAIN, note="float32, with gain"),
            once_more(BY_HAND),
        ),
        CASES_WITH_GAIN.criterion("gradients reach x and gain", 1).on(*ROWS_WITH_GAIN.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_rms_norm,
        mistake("""the mean is taken off
            You subtract each row's mean, as chapter 12's layer norm does. An RMS norm leaves it in:
            the row is divided by the root of its mean square, and nothing else.""")
        .by(centre=lambda x: x - mean_of_row(x))
        .by(square=lambda x: (x - mean_of_row(x)).square())
        .by(
            average=lambda squares: squares.sum(-1, keepdim=True) / squares.shape[-1],
            centre=lambda x: x - mean_of_row(x),
        ),
        mistake("""the norm runs over the sequence
            You take the mean square of a feature over the tokens, so a token's output depends on
            the others. Each row is normalised by itself: axis −1.""")
        .by(average_over(-2))
        .by(average_over(0))
        .by(average_over(1)),
        mistake("""one size for all rows
            You divide the whole array by one number. Every row has its own mean square: `dim=-1,
            keepdim=True`.""")
        .by(average=lambda squares: squares.mean())
        .by(average_over(-2, -1)),
        mistake("""eps outside the root
            You add eps to the root. It is added to the mean square, under the root: `(mean_square +
            eps).sqrt()`.""")
        .by(power=lambda size, eps: size.sqrt() + eps)
        .by(power=lambda size, eps: size.sqrt() + eps**0.5),
        mistake("""eps is not added to the mean square
            You add the square of eps or its root, or take the larger of mean square and eps. The
            root is that of their sum: `(mean_square + eps).sqrt()`.""")
        .by(power=lambda size, eps: size.clamp(min=eps).sqrt())
        .by(small=lambda eps: eps**2)
        .by(small=lambda eps: eps**0.5),
        mistake("""no eps
            You leave eps out. A row of zeros has mean square 0, and 0/0 is NaN.""").by(
            small=lambda eps: 0
        ),
        mistake("""another eps
            You add a fixed number where the argument `eps` belongs.""")
        .by(with_fixed_eps(1e-6))
        .by_any(with_fixed_eps, (1e-12, 1e-8, 1e-6, 1e-5, 1e-3)),
        mistake("""rows of length 1
            You divide by the length of a row, the root of the *sum* of squares. By the root of
            their *mean* the row gets length √d, and its entries size 1.""").by(
            average=lambda squares: squares.sum(-1, keepdim=True)
        ),
        mistake("""divided by d − 1
            You divide the sum of squares by d − 1. A mean divides by d.""").by(
            average=lambda squares: squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)
        ),
        mistake("""divided by the mean square
            You divide by the mean square itself. It is its root that has the unit of x.""").by(
            power=lambda size, eps: size + eps
        ),
        mistake("""multiplied by the size
            You multiply by the root where you should divide: rows that are large are to shrink.
        """).by(divide=lambda x, size: x * size),
        mistake("""the mean absolute value
            You divide by the mean of the absolute values. RMS is the root of the mean *square*.""")
        .by(square=lambda x: x.abs(), power=lambda size, eps: size + eps)
        .by(square=lambda x: x.abs(), power=lambda size, eps: (size.square() + eps).sqrt()),
        mistake("""the square of the mean
            You average first and square then, so that numbers above and below 0 cancel. RMS is the
            root of the mean *square*: square first.
        """).by(square=lambda x: x, power=lambda size, eps: (size.square() + eps).sqrt()),
        mistake("""divided by the largest entry
            You divide each row by its largest absolute value. RMS is the root of the mean square.
        """).by(average=lambda squares: squares.amax(-1, keepdim=True)),
        mistake("""gain is left out
            You do not use gain. Where it is given, the normalised row is multiplied by it.""").by(
            scale=lambda x, gain: x
        ),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1:
            multiply by gain.""").by(scale=lambda x, gain: x if gain is None else (1 + gain) * x),
        mistake("""gain is added
            You add gain. An RMS norm has no bias: the row is multiplied by gain.""").by(
            scale=lambda x, gain: x if gain is None else x + gain
        ),
        mistake("""divided by gain
            You divide by gain, or normalise what gain was multiplied into. The normalised row is
            multiplied by it.""").by(scale=lambda x, gain: x if gain is None else x / gain),
        mistake("""a tensor taken for True or False
            `if gain:` and `gain or 1` ask a tensor whether it is true, which torch refuses for more
            than one number. Ask `if gain is None`.""").by(scale=lambda x, gain: (gain or 1) * x),
        mistake("""the mean squares have lost their axis
            `x.square().mean(-1)` drops the axis it averages over, and the sizes then line up with
            the features, if they fit at all. Keep it: `mean(-1, keepdim=True)`.""").by(
            average=lambda squares: squares.mean(-1)
        ),
        mistake("""computed in float32
            You turn x into float32, which keeps seven digits of float64. Stay in the dtype of
            x.""")
        .by(read=lambda x: x.float())
        .by(read=lambda x: x.float(), back=lambda normed, x: normed.to(x.dtype)),
        mistake("""no gradient through the size
            The numbers are right, but you detach what you divide by, as if it were a constant. It
            moves with x, and the gradient has to know.""").by(
            power=lambda size, eps: (size.detach() + eps).sqrt()
        ),
        mistake("""divided in place
            `x /= …` writes into the caller's x, which then holds other numbers than before. Write
            `x = x / …`, which makes a new tensor.""").by(divide=lambda x, size: x.div_(size)),
    ),
)
