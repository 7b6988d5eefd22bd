"""The exercise ``kernel_regression``: a curve through noisy points."""

from dataclasses import dataclass, replace

import numpy as np

from attncourse import lookup
from attncourse.bank.lookup.shared import OF_AXES
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import numpy_mistakes
from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.cases import CaseTable, Drawn, Row, normal, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.numpy_mistakes import result
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax, nothing

# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveTable(CaseTable):
    """A table of cases of a curve; the bandwidth goes by position, and is 1 unless given."""

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        return replace(case, args=(*case.args, case.kwargs.get("bandwidth", 1.0)), kwargs={})


def scattered_points(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return points in no order along the last axis, at least half a unit apart."""
    return rng.permuted(np.arange(shape[-1]) + rng.uniform(-0.25, 0.25, shape), axis=-1)


def case_of_points(
    x_query: list[float], x: list[float], y: list[float], note: str = "", bandwidth: float = 1.0
) -> Case:
    """Return a case with these numbers."""
    arrays = (np.array(numbers, float) for numbers in (x_query, x, y))
    return Case((*arrays, bandwidth), note=note)


CASES = CurveTable(
    {
        "x_query": Drawn("... m", lambda rng, shape: rng.uniform(0, 3, shape)),
        "x": Drawn("... n", scattered_points),
        "y": Drawn("... n", normal),
    },
    tensors=False,
)
ROWS = standard(CASES, large="x_query")
ROW = row("m=5 n=7")
BY_HAND = case_of_points([0, 1, 3], [0, 1, 2, 4], [1, 3, 2, 6])
LARGE_X = ROW.but(factor={"x": 1e3, "x_query": 1e3}, arguments={"bandwidth": 700.0})

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_kernel_regression(
    roles=lambda x_query, x, y: (x_query, x, y),
    gaps=lambda x_query, x: x_query[..., :, None] - x[..., None, :],
    distance=lambda gaps, h: gaps**2,
    half=2,
    width=lambda h: h**2,
    sign=-1,
    mix=lambda weights, y: (weights * y[..., None, :]).sum(-1),
    finish=result,
    **decisions,
):
    """Return a kernel regression made of decisions: softmax(sign · distance / (half · width))."""
    softmax = Softmax(**decisions)

    def answer(x_query, x, y, bandwidth):
        x_query, x, y = roles(x_query, x, y)
        squares = distance(gaps(x_query, x), bandwidth)
        weights = softmax(sign * squares / (half * width(bandwidth)))
        return finish(mix(weights, y), y, weights, bandwidth)

    return answer


def absolute_gaps(gaps, h):
    return np.abs(gaps)


def first_nearest_if_nan(w, x, T, axis):
    nearest = np.arange(x.shape[-1]) == x.argmax(-1)[..., None]
    return np.where(np.isnan(w), nearest, w)


NOT_NORMALISED = {"top": nothing, "total": lambda e, axis, z: 1}
OF_CURVES = (
    soft.ANOTHER_BASE,
    mistake("""another number than 2 in the exponent
        The exponent is −distance²/(2h²). You leave the 2 out, square it with h or divide by another
        number: your curve is the one for another bandwidth.""")
    .by(half=1)
    .by(half=4)
    .by_any(lambda number: {"half": number}, Between(0.02, 200.0)),
    mistake("""another power of the bandwidth
        Distance and bandwidth have the same unit, so both are squared: distance²/(2h²). You leave h
        out, multiply by it or take another power.""")
    .by(width=lambda h: h)
    .by_any(lambda power: {"width": lambda h: h**power}, (0, 0.5, 3, 4, -1, -2, -4)),
    mistake("""the distance is not squared
        Your weights fall as exp(−|distance|/h), with a sharp peak (a Laplace kernel). The Gaussian
        takes the square: distance²/(2h²).""")
    .by(distance=absolute_gaps, half=1, width=lambda h: h)
    .by_any(
        lambda by: {"distance": absolute_gaps, "half": by[0], "width": lambda h: h ** by[1]},
        ((2, 2), (1, 2), (2, 1)),
    ),
    mistake("""the minus sign is missing
        Your weights grow with the distance: the farthest point counts most. The exponent is
        −distance²/(2h²).""").by(sign=1),
    mistake("""every point within the bandwidth counts the same
        You average the points that are no farther than h. The Gaussian lets every point count, the
        less the farther away: exp(−distance²/(2h²)).
    """).by(distance=lambda gaps, h: np.where(np.abs(gaps) <= h, 0.0, np.inf)),
    soft.NOTHING_SUBTRACTED.called("0/0 far from the points").said(
        "Far from every x all your kernel values are 0, and 0/0 is NaN. Hand the exponents to your "
        "`softmax`: it subtracts the largest, so the nearest point always counts."
    ),
    soft.GUARD_ALONE.said(
        "Far from every x all your kernel values are 0, and 0 over a small number is 0. Hand the "
        "exponents to your `softmax`: it subtracts the largest, so the nearest point always counts."
    ),
    mistake("""the mean, or one nearest y, far from the points
        Far from every x you clip the exponents, or put a mean or one nearest y in place of 0/0.
        Hand the exponents to your `softmax`: all that are near have their share there.""")
    .by(top=nothing, after=lambda w, x, T, axis: np.where(np.isnan(w), 1 / w.shape[-1], w))
    .by(top=nothing, after=first_nearest_if_nan)
    .by_any(lambda bound: {"exponents": lambda x, T: np.maximum(x, bound)}, (-700, -500, -100)),
    soft.WHOLE_MAXIMUM,
    soft.EXPONENTIAL_TWICE,
    mistake("""the weights are not normalised
        You add up kernel × y without dividing by the sum of the kernel, so your curve follows how
        many points are near and falls to 0 far from all. The weights of a query sum to 1.""")
    .by(NOT_NORMALISED)
    .by(**NOT_NORMALISED, finish=lambda u, y, w, h: u / (h * (2 * np.pi) ** 0.5))
    .by(**NOT_NORMALISED, finish=lambda u, y, w, h: u / w.shape[-1]),
    soft.ANOTHER_TOTAL,
    soft.GUARD,
    soft.TWICE,
    *OF_AXES,
    soft.ONLY_THE_LARGEST,
    mistake("""the product in place of the distance
        Your scores are x_query · x. For points on a line that is no measure of nearness: for a
        positive query the largest x wins. Use −(x_query − x)²/(2h²).""")
    .by(gaps=lambda q, x: q[..., None] * x[..., None, :], distance=lambda p, h: -p, half=1)
    .by(gaps=lambda q, x: q[..., None] * x[..., None, :], distance=lambda p, h: -p),
    mistake("""one array is sorted, the others are not
        You sort x, y or x_query alone, so that a place gets the height of another. The points may
        come in any order: nothing needs sorting.""")
    .by(roles=lambda x_query, x, y: (x_query, np.sort(x, axis=-1), y))
    .by(roles=lambda x_query, x, y: (x_query, x, np.sort(y, axis=-1)))
    .by(roles=lambda x_query, x, y: (np.sort(x_query, axis=-1), x, y)),
    mistake("""x and y exchanged
        You compare the queries with y and average x. Weights come from the distance to x; what is
        averaged is y.""").by(roles=lambda x_query, x, y: (x_query, y, x)),
    mistake("""the weights are returned
        You return the matrix of weights, shape (m, n). One step is missing: average y with it,
        which leaves shape (m,).""").by(finish=lambda answer, y, weights, h: weights),
    numpy_mistakes.AVERAGED_AGAIN.here(mix=lambda weights, y: (weights * y[..., None, :]).mean(-1)),
    numpy_mistakes.CUT,
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    lookup.kernel_regression,
    section="Chapter 3, “A curve through noisy points”",
    difficulty=2,
    minutes=20,
    criteria=(
        CASES.criterion("an average of y, weighted by a Gaussian of the distance", 3).on(
            BY_HAND, ROW
        ),
        CASES.criterion("at any bandwidth", 1).on(
            *(ROW.but(arguments={"bandwidth": h}) for h in (0.6, 1.5, 4.0))
        ),
        CASES.criterion("finite far from every x", 2).on(
            case_of_points([60, -50], [0, 1, 2], [5, 7, 9], "queries far from every x"),
            case_of_points([1e4, 1.2, -1e4], [1, 3, 2], [5, 7, 9], "some queries far from every x"),
            case_of_points([50.01, 0.5], [0, 100], [5, 7], "far from two points, nearly half-way"),
            case_of_points(
                [0.4, 2.7], [0, 1, 2, 4], [5, 7, 9, 8], "a bandwidth far below the spacing", 1e-5
            ),
            ROWS.extreme[0],
        ),
        CASES.criterion("any number of queries and points", 1).on(
            row("m=1 n=5", note="m = 1"),
            row("m=3 n=1", note="n = 1: the curve is flat"),
            row("m=11 n=5", arguments={"bandwidth": 0.7}, note="more queries than points"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("large, small and whole numbers, float32", 1).on(
            ROW.but(factor={"y": 1e7}, note="large y"),
            LARGE_X.but(note="large x, with a bandwidth to match"),
            ROWS.single,
            *(table_row.but(arguments={"bandwidth": 9.0}) for table_row in ROWS.integers),
            ROWS.extreme[1].but(factor={"x_query": 1e-7}),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(compose_kernel_regression, *OF_CURVES),
)
