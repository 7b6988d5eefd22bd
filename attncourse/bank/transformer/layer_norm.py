"""The exercise ``layer_norm``: rows at mean 0 and variance 1."""

from attncourse import transformer
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.modules import tensor, uniform_values
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"x": "... d"})
FAR_FROM_0 = Drawn("... d", lambda rng, shape: rng.normal(size=shape) + 1e5)
CASES_WITH_GAIN_AND_BIAS = CaseTable({"x": "... d", "gain": "d", "bias": "d"})
ROWS, ROWS_WITH_GAIN_AND_BIAS = standard(CASES), standard(CASES_WITH_GAIN_AND_BIAS)
RANDOM_GAIN = {"gain": Drawn("d")}
RANDOM_GAIN_AND_BIAS = RANDOM_GAIN | {"bias": Drawn("d")}
BY_HAND = Case((tensor([[1, 3], [-3, 5], [5, 7]]), tensor([1, 10])), {"eps": 1.0})
FIVE_ROWS = row("d=7", batch=(5,))


def bias_only_case(rng: Rng, *shape: int, **options) -> Case:
    """Return a case without a gain, which is not a gain of 0."""
    arguments = {"bias": uniform_values(rng, shape[-1])} | options
    return Case((uniform_values(rng, *shape),), arguments, note="no gain")


# --- decisions and mistakes ----------------------------------------------------------------------


def mean_of_row(x):
    return x.mean(-1, keepdim=True)


@composition
def compose_layer_norm(
    centre=mean_of_row,
    around=lambda x, centred: centred,
    average=mean_of_row,
    spread=lambda x, variance: variance,
    power=lambda variance, eps: (variance + eps).sqrt(),
    small=lambda eps: eps,
    divide=lambda centred, size: centred / size,
    scale=lambda x, gain, bias: x if gain is None else gain * x,
    shift=lambda x, gain, bias: x if bias is None else x + bias,
    roles=lambda gain, bias: (gain, bias),
    read=lambda x: x,
    back=lambda normed, x: normed,
):
    """Return ``layer_norm`` made of decisions; the variance is the mean square of ``around``."""

    def layer_norm(x, gain=None, bias=None, eps=1e-5):
        gain, bias = roles(gain, bias)
        original, x = x, read(x)
        centred = x - centre(x)
        variance = spread(x, average(around(x, centred).square()))
        x = back(divide(centred, power(variance, small(eps))), original)
        return shift(scale(x, gain, bias), gain, bias)

    return layer_norm


def average_over(*axes: int):
    """Return the options with mean and variance over these axes."""

    def average(x):
        return x.mean(axes, keepdim=True)

    return {"centre": average, "average": average}


def average_over_sequence() -> dict:
    """Return the options with mean and variance over the last two axes, or the only one."""

    def average(x):
        return x.mean((-2, -1) if x.ndim > 1 else -1, keepdim=True)

    return {"centre": average, "average": average}


def mean_of_all(x):
    return x.mean()


def unbiased_variance(squares):
    return squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)


def with_fixed_eps(number: float) -> dict:
    return {"small": lambda eps: number}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    transformer.layer_norm,
    section="Chapter 12, “Keeping the rows at one size”",
    difficulty=1,
    minutes=10,
    forbids=("layer_norm",),
    criteria=(
        Criterion("each row at mean 0 and variance 1", 3).on(
            lambda rng: [
                BY_HAND,
                *CASES(
                    FIVE_ROWS,
                    row("d=5"),
                    row("d=7", batch=(7,), note="as many tokens as features"),
                    row("d=2", batch=(3,)),
                )(rng),
            ]
        ),
        Criterion("gain and bias, of which one or both may be left out", 2).on(
            lambda rng: [
                *CASES(
                    FIVE_ROWS.but(arguments=RANDOM_GAIN_AND_BIAS),
                    FIVE_ROWS.but(arguments=RANDOM_GAIN, note="no bias"),
                )(rng),
                bias_only_case(rng, 5, 7),
            ]
        ),
        Criterion("eps inside the root", 2).on(
            lambda rng: [
                *CASES(
                    FIVE_ROWS.but(arguments={"eps": 0.1}, note="eps = 0.1"),
                    FIVE_ROWS.but(arguments={"eps": 1e-12}, factor=1e-3, note="eps = 1e-12"),
                    FIVE_ROWS.but(factor=0.003, note="entries near eps"),
                )(rng),
            ]
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32, large, small and equal entries, a gain or bias of 0", 1).on(
            *ROWS.numbers,
            row("d=1", batch=(3,), note="one feature: all become 0"),
            FIVE_ROWS.but(zero=("x",), note="rows of zeros"),
            Case((tensor([[3, 3, 3, 3]]),), note="a row without spread"),
            FIVE_ROWS.but(arguments=RANDOM_GAIN_AND_BIAS, zero=("gain",), note="a gain of 0"),
            FIVE_ROWS.but(arguments=RANDOM_GAIN_AND_BIAS, zero=("bias",), note="a bias of 0"),
            row("d=7", batch=(3,), arguments={"x": FAR_FROM_0}, note="rows far from 0"),
            ROWS.single.but(
                batch=(3,), arguments=RANDOM_GAIN_AND_BIAS, note="float32, with gain and bias"
            ),
            once_more(BY_HAND),
        ),
        CASES_WITH_GAIN_AND_BIAS.criterion("gradients reach x, gain and bias", 2).on(
            *ROWS_WITH_GAIN_AND_BIAS.gradients
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_layer_norm,
        mistake("""unbiased variance
            You divide the sum of squares by d − 1, as `x.var(-1)` and `x.std(-1)` do. A norm
            divides by d: `x.var(-1, unbiased=False)`.""").by(average=unbiased_variance),
        mistake("""the norm runs over the sequence
            You take mean and variance of a feature over the tokens, so a token's output depends on
            the others. Each row is normalised by itself: axis −1.""")
        .by(average_over(-2))
        .by(average_over(0))
        .by(average_over(1))
        .by(centre=average_over(-2)["centre"])
        .by(average=average_over(-2)["average"]),
        mistake("""one mean and variance for all rows
            You take a mean, a variance or both for many rows at once: all of the array, or all of a
            sequence. Every row has its own: `dim=-1, keepdim=True`.""")
        .by(centre=mean_of_all, average=mean_of_all)
        .by(average_over(-2, -1))
        .by(average_over_sequence())
        .by(centre=mean_of_all)
        .by(average=mean_of_all),
        mistake("""eps outside the root
            You add eps to the standard deviation. It is added to the variance, under the root:
            `(variance + eps).sqrt()`.""")
        .by(power=lambda variance, eps: variance.sqrt() + eps)
        .by(power=lambda variance, eps: variance.sqrt() + eps**0.5),
        mistake("""eps is not added to the variance
            You add the square of eps or its root, or take the larger of variance and eps. The root
            is that of their sum: `(variance + eps).sqrt()`.""")
        .by(power=lambda variance, eps: variance.clamp(min=eps).sqrt())
        .by(small=lambda eps: eps**2)
        .by(small=lambda eps: eps**0.5),
        mistake("""no eps
            You leave eps out. A row whose entries are all equal has variance 0, and 0/0 is NaN.
        """).by(small=lambda eps: 0),
        mistake("""another eps
            You add a fixed number where the argument `eps` belongs.""")
        .by(with_fixed_eps(1e-5))
        .by_any(with_fixed_eps, (1e-12, 1e-8, 1e-6, 1e-5, 1e-3)),
        mistake("""divided by the variance
            You divide by the variance itself. It is its root, the standard deviation, that has the
            unit of x.""").by(power=lambda variance, eps: variance + eps),
        mistake("""multiplied by the standard deviation
            You multiply by the root where you should divide: rows that are large are to shrink.
        """).by(divide=lambda centred, size: centred * size),
        mistake("""the mean is not subtracted
            The mean is left in x, or in what you divide by, or in both, which is another norm,
            RMSNorm. Subtract each row's mean first, and use what is left in both places.""")
        .by(centre=lambda x: 0)
        .by(centre=lambda x: 0, around=lambda x, centred: x - mean_of_row(x))
        .by(around=lambda x, centred: x),
        mistake("""the mean is taken off behind the division
            You divide x, and take the mean that it had before off the quotient. Take it off first:
            (x − mean) / √(variance + eps).
        """).by(
            centre=lambda x: 0,
            around=lambda x, centred: x - mean_of_row(x),
            back=lambda normed, x: normed - mean_of_row(x),
        ),
        mistake("""the mean is subtracted, and nothing divided
            Your rows have mean 0 and the size that they came with. Divide by the standard
            deviation.""").by(divide=lambda centred, size: centred),
        mistake("""rows of length 1
            You divide by the length of a row. By its standard deviation the entries get size 1, and
            the row length √d.""").by(average=lambda squares: squares.sum(-1, keepdim=True)),
        mistake("""the mean absolute deviation
            You divide by the mean distance from the mean. The standard deviation is the root of the
            mean *square*.""")
        .by(
            around=lambda x, centred: centred.abs().sqrt(),
            power=lambda deviation, eps: deviation + eps,
        )
        .by(
            around=lambda x, centred: centred.abs().sqrt(),
            power=lambda deviation, eps: (deviation.square() + eps).sqrt(),
        ),
        mistake("""gain and bias exchanged
            You multiply by the bias and add the gain. It is gain · (…) + bias.
        """).by(roles=lambda gain, bias: (bias, gain)),
        mistake("""gain or bias is left out
            You do not use gain, or bias, or neither. Where they are given: gain · (…) + bias.""")
        .by(scale=lambda x, gain, bias: x)
        .by(shift=lambda x, gain, bias: x)
        .by(scale=lambda x, gain, bias: x, shift=lambda x, gain, bias: x),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1:
            multiply by gain.
        """).by(scale=lambda x, gain, bias: x if gain is None else (1 + gain) * x),
        mistake("""the bias is scaled too
            You add the bias before you multiply by gain. It comes last: gain · (…) + bias.""").by(
            scale=lambda x, gain, bias: (
                (x if bias is None else x + bias) * (1 if gain is None else gain)
            ),
            shift=lambda x, gain, bias: x,
        ),
        mistake("""bias only where there is a gain
            You add the bias only if a gain is given too. Each may be left out by itself: ask for
            each.""")
        .by(shift=lambda x, gain, bias: x if gain is None or bias is None else x + bias)
        .by(
            scale=lambda x, gain, bias: x if gain is None or bias is None else gain * x,
            shift=lambda x, gain, bias: x if gain is None or bias is None else x + bias,
        ),
        mistake("""a tensor taken for True or False
            `if gain:` and `gain or 1` ask a tensor whether it is true, which torch refuses for more
            than one number. Ask `if gain is None`.""")
        .by(scale=lambda x, gain, bias: (gain or 1) * x)
        .by(shift=lambda x, gain, bias: x + (bias or 0)),
        mistake("""the means have lost their axis
            `x.mean(-1)` drops the axis it averages over, and the means then line up with the
            features, if they fit at all. Keep it: `x.mean(-1, keepdim=True)`.""")
        .by(centre=lambda x: x.mean(-1), average=lambda x: x.mean(-1))
        .by(centre=lambda x: x.mean(-1))
        .by(average=lambda x: x.mean(-1)),
        mistake("""the variance as a difference of squares
            The mean of the squares less the square of the mean is the variance on paper. In rows
            far from 0 both are large, and the digits that tell them apart are lost: subtract the
            mean first.""").by(
            spread=lambda x, variance: mean_of_row(x.square()) - mean_of_row(x).square()
        ),
        mistake("""computed in float32
            You turn x into float32, which keeps seven digits of float64. Stay in the dtype of
            x.""")
        .by(read=lambda x: x.float())
        .by(read=lambda x: x.float(), back=lambda normed, x: normed.to(x.dtype)),
        mistake("""no gradient through mean and variance
            The numbers are right, but you detach mean or variance, as if they were constants. They
            move with x, and the gradient has to know.""")
        .by(power=lambda variance, eps: (variance.detach() + eps).sqrt())
        .by(
            centre=lambda x: mean_of_row(x).detach(),
            power=lambda variance, eps: (variance.detach() + eps).sqrt(),
        )
        .by(centre=lambda x: mean_of_row(x).detach()),
    ),
)
