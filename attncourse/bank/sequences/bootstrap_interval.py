"""The exercise ``bootstrap_interval``: how far a statistic moves when rows are drawn again."""

from functools import partial

import numpy as np
import torch

from attncourse import sequences as chapter
from attncourse.checks.callers import (
    drawn_as_asked,
    interval_of,
    interval_repeated,
    intervals_drawn,
    places_taken,
    rows_resampled,
)
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.recipes import made, mistake

RIGHT_NUMBER, RIGHT_SIZE = "as many resamples as asked", "each has as many rows as the sample"
WITH_REPLACEMENT, RESAMPLES_DIFFER = "rows are drawn with replacement", "resamples differ"
ROWS_EQUALLY_LIKELY, ARRAYS_TOGETHER = (
    "every row is drawn as often",
    "the arrays are resampled together",
)


def resampling_case(
    rng: Rng, fact_names: tuple, n: int, kinds: tuple = ("array",), note: str = "", **options
) -> Case:
    options_text = "".join(f", {name}={value}" for name, value in options.items())
    shown = f"bootstrap_interval(statistic, {', '.join(kinds)}{options_text}, rng=rng), {n} rows"
    seed = int(rng.integers(1 << 30))
    facts = partial(drawn_as_asked, fact_names, n, options.get("n_resamples", 1000))
    return Case((n, options, kinds, seed), use=rows_resampled, facts=facts, note=note, shown=shown)


def resampling_cases(rng: Rng) -> list[Case]:
    options = {"n_resamples": 100}
    return [
        resampling_case(rng, (RIGHT_SIZE,), 12, **options),
        resampling_case(rng, (WITH_REPLACEMENT,), 12, **options),
        resampling_case(rng, (RESAMPLES_DIFFER,), 12, **options),
        resampling_case(rng, (ROWS_EQUALLY_LIKELY,), 7, n_resamples=400),
    ]


def joint_resampling_cases(rng: Rng) -> list[Case]:
    options = {"n_resamples": 60}
    return [
        resampling_case(rng, (ARRAYS_TOGETHER,), 12, ("array", "array"), **options),
        resampling_case(
            rng,
            (ARRAYS_TOGETHER, RIGHT_SIZE),
            11,
            ("words", "matrix"),
            "a matrix by rows",
            **options,
        ),
        resampling_case(
            rng, (ARRAYS_TOGETHER, RIGHT_SIZE), 9, ("array", "list", "array"), "a list", **options
        ),
    ]


def resample_count_cases(rng: Rng) -> list[Case]:
    return [
        resampling_case(rng, (RIGHT_NUMBER,), 5, n_resamples=37),
        resampling_case(rng, (RIGHT_NUMBER,), 5, n_resamples=150),
        resampling_case(rng, (RIGHT_NUMBER,), 5, note="1000 unless given"),
    ]


def quantile_case(rng: Rng, level: float | None, n: int = 600, note: str = "") -> Case:
    level_text = "" if level is None else f", level={level}"
    shown = (
        f"bootstrap_interval(statistic{level_text}, n_resamples={n}) where the statistic is "
        f"0, 1, …, {n - 1} in some order, over {n}"
    )
    return Case((n, level, int(rng.integers(1 << 30))), use=places_taken, note=note, shown=shown)


def quantile_cases(rng: Rng) -> list[Case]:
    return [
        quantile_case(rng, 0.9),
        quantile_case(rng, 0.5),
        quantile_case(rng, 0.8, 1200),
        quantile_case(rng, 0.98),
        quantile_case(rng, None, note="0.95 unless given"),
    ]


def known_interval_cases(rng: Rng) -> list[Case]:
    x = np.arange(9.0)
    once = {"n_resamples": 30}
    rows = (
        ("mean", (np.full(7, 2.5),), "all entries are 2.5"),
        ("largest_gap", (x, x), "two arrays that are equal"),
    )
    # Two resamples in three hold the last row.
    rare = (
        "largest",
        (np.array([0.0] * 8 + [1.0]),),
        "0 in one resample of three, 1 in the others",
    )
    return [
        *(interval_case(*row, **once) for row in rows),
        interval_case(*rare, n_resamples=200),
    ]


def interval_case(name: str, arrays: tuple, note: str, **options) -> Case:
    return Case(
        (name, arrays, options, 3),
        use=interval_of,
        note=note,
        shown="bootstrap_interval(statistic, *arrays)",
    )


def edge_cases(rng: Rng) -> list[Case]:
    return [
        resampling_case(rng, (RIGHT_SIZE, ROWS_EQUALLY_LIKELY), 1, note="one row", n_resamples=60),
        interval_case("mean", (np.array([4.0]),), "one row", n_resamples=30),
        interval_case(
            "number_of_rows", (np.arange(9.0),), "the statistic is an int", n_resamples=30
        ),
    ]


def generator_cases(rng: Rng) -> list[Case]:
    seeds = tuple(int(s) for s in rng.integers(1 << 30, size=2))
    shown = "bootstrap_interval(np.mean, x, rng=rng)"
    return [Case((seeds, 41), use=intervals_drawn, facts=interval_repeated, shown=shown)]


def quantile_ends(values, level):
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2])


@composition
def compose_bootstrap_interval(
    generator=lambda rng: np.random.default_rng() if rng is None else rng,
    count_rows=lambda arrays: len(arrays[0]),
    rows=lambda rng, n: rng.integers(n, size=n),
    choose=lambda rng, rows, n, k: [rows(rng, n)] * k,
    pick=lambda array, rows: np.asarray(array)[rows],
    count_resamples=lambda n: n,
    ends=quantile_ends,
    defaults=(0.95, 1000),
    transform=lambda sample_value, values, level: values,
):
    """Return ``bootstrap_interval`` made of decisions."""

    def bootstrap_interval(statistic, *arrays, level=None, n_resamples=None, rng=None):
        level = defaults[0] if level is None else level
        n_resamples = defaults[1] if n_resamples is None else n_resamples
        rng, n, k = generator(rng), count_rows(arrays), len(arrays)
        values = []
        for _ in range(count_resamples(n_resamples)):
            chosen = choose(rng, rows, n, k)
            values.append(statistic(*(pick(a, r) for a, r in zip(arrays, chosen, strict=True))))
        values = np.asarray(transform(lambda: statistic(*arrays), values, level), dtype=float)
        low, high = ends(values, level)
        return float(low), float(high)

    return bootstrap_interval


def mean_and_deviations(values, level):
    half = np.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64))) * values.std()
    return values.mean() - half, values.mean() + half


def mean_and_standard_errors(values, level):
    """Return mean ± 1.96 σ/√k, which shrinks with the number k of resamples."""
    half = 1.96 * values.std() / len(values) ** 0.5
    return values.mean() - half, values.mean() + half


def middle_and_half_width(values, level):
    low, high = quantile_ends(values, level)
    return (low + high) / 2, (high - low) / 2


def move_mean_to(values, sample_value):
    """Return the values, moved so that their mean lies on the other side of the sample's value."""
    values = np.asarray(values, dtype=float)
    return values - (values.mean() - sample_value)


class DrawnOnce:
    """A generator that draws rows once for all resamples of a call."""

    def __init__(self, rng):
        self.rng = np.random.default_rng() if rng is None else rng
        self.rows = None

    def integers(self, n, size):
        if self.rows is None:
            self.rows = self.rng.integers(n, size=size)
        return self.rows


class DrawnFromTheLast:
    """A generator whose rows are those of a resample of the resample before."""

    def __init__(self, rng):
        self.rng = np.random.default_rng() if rng is None else rng
        self.rows = None

    def integers(self, n, size):
        drawn = self.rng.integers(n, size=size)
        self.rows = drawn if self.rows is None else self.rows[drawn]
        return self.rows


EXERCISE = exercise(
    chapter.bootstrap_interval,
    section="Chapter 16, “How sure is a score?”",
    difficulty=3,
    minutes=20,
    excludes=(
        *(
            (f"{name} {how}", "Random: the callers give it or leave it out, by the text's rules.")
            for name in ("level", "n_resamples", "rng")
            for how in ("given", "left out")
        ),
        ("the first call once more, after others", "Each generator is made and used twice."),
    ),
    criteria=(
        Criterion("resamples as many rows as there are, with replacement", 2).on(resampling_cases),
        Criterion("draws the same rows from every array", 2).on(joint_resampling_cases),
        Criterion("n_resamples, 1000 unless given", 1).on(resample_count_cases),
        Criterion("lies between the quantiles of the level", 2).on(quantile_cases),
        Criterion("intervals that are known", 1).on(known_interval_cases),
        Criterion("a sample of one row, a statistic that is an int", 1).on(edge_cases),
        Criterion("the generator decides", 1).on(generator_cases),
        unchanged(),
    ),
    mistakes=made(
        compose_bootstrap_interval,
        mistake("""drawn without replacement
            Your resamples hold every row once, shuffled or not, so the statistic never changes.
            Draw with replacement, `rng.integers(n, size=n)`, and hand over the rows drawn.""")
        .by(rows=lambda rng, n: rng.permutation(n))
        .by(pick=lambda array, rows: np.asarray(array)),
        mistake("""each array has rows of its own
            You draw new rows for every array, or for the first alone, and a prediction meets
            another receptor's label. Draw once for each resample, and pick these rows from all.""")
        .by(choose=lambda rng, rows, n, k: [rows(rng, n) for _ in range(k)])
        .by(choose=lambda rng, rows, n, k: [rows(rng, n), *[np.arange(n)] * (k - 1)]),
        mistake("""the entries are drawn, not the rows
            An array with several axes is flattened, as `np.take` and `np.ravel` do, and you draw
            single numbers of it. Rows are along the first axis: `array[rows]`.
        """).by(pick=lambda array, rows: np.ravel(array)[rows]),
        mistake("""lists, not arrays
            You hand the statistic lists of rows. It gets arrays: `np.asarray(array)[rows]`.
        """).by(pick=lambda array, rows: [array[i] for i in rows]),
        mistake("""mirrored at the sample's own value
            You take 2 · t − quantile, t being the statistic of the sample itself: the basic
            bootstrap. The ends asked for are the quantiles themselves.
        """).by(
            transform=lambda sample_value, values, level: (
                2 * sample_value() - np.asarray(values, dtype=float)
            )
        ),
        mistake("""resamples of another size
            Your resamples have fewer rows than the sample, or more. How much a score varies depends
            on that: draw as many as there are.""")
        .by(rows=lambda rng, n: rng.integers(n, size=max(1, n // 2)))
        .by(rows=lambda rng, n: rng.integers(n, size=max(1, n - 1)))
        .by(rows=lambda rng, n: rng.integers(n, size=max(1, round(0.632 * n))))
        .by(rows=lambda rng, n: rng.permutation(n)[: max(1, n // 2)])
        .by(rows=lambda rng, n: rng.integers(n, size=n // 2 + 1))
        .by(rows=lambda rng, n: rng.integers(n, size=n + 1))
        .by(rows=lambda rng, n: np.delete(np.arange(n), rng.integers(n)) if n > 1 else [0]),
        mistake("""the number of arrays is taken for that of rows
            `len(arrays)` says how many arrays came. The rows are those of each: `len(arrays[0])`.
        """).by(count_rows=len),
        mistake("""a row is never drawn
            `rng.integers(low, high)` excludes its upper end: with `n − 1`, or from 1, one row never
            comes. `rng.integers(n, size=n)` draws 0 to n − 1.""")
        .by(rows=lambda rng, n: rng.integers(max(1, n - 1), size=n))
        .by(rows=lambda rng, n: rng.integers(min(1, n - 1), n, size=n))
        .by(rows=lambda rng, n: rng.integers(n - 1, size=n))
        .by(rows=lambda rng, n: rng.integers(0, n - 1, size=n))
        .by(rows=lambda rng, n: rng.integers(1, n, size=n)),
        mistake("""resamples are not drawn anew from the sample
            You draw rows before the loop, so all resamples are the same, or you draw each resample
            from the one before, so that rows die out. Draw inside the loop, from what came in.""")
        .by(generator=DrawnOnce)
        .by(generator=DrawnFromTheLast),
        mistake("""another number of resamples
            You call the statistic another number of times than `n_resamples`.""")
        .by(count_resamples=lambda n: 1000)
        .by_any(lambda number: {"count_resamples": lambda n: number}, (100, 200, 500, 1000, 2000)),
        mistake("""another default for n_resamples
            Without `n_resamples` there are 1000 resamples.""")
        .by(defaults=(0.95, 100))
        .by(defaults=(0.95, 10000))
        .by(defaults=(0.95, 500))
        .by(defaults=(0.95, 2000)),
        mistake("""another default for the level
            Without `level` it is 0.95.""")
        .by(defaults=(0.9, 1000))
        .by(defaults=(0.99, 1000))
        .by(defaults=(0.68, 1000)),
        mistake("""both tails get the whole of 1 − level
            You cut 1 − level at each end, twice too much. Share it: (1 − level)/2 below and as much
            above.""").by(ends=lambda values, level: np.quantile(values, [1 - level, level])),
        mistake("""1 − level and level are exchanged
            You take the middle (1 − level) of the values. The interval holds `level` of them.
        """).by(ends=lambda values, level: np.quantile(values, [level / 2, 1 - level / 2])),
        mistake("""percent and shares are mixed up
            `np.percentile` counts in percent, from 0 to 100, `np.quantile` from 0 to 1. Yours takes
            nearly the least value.
        """).by(
            ends=lambda values, level: np.percentile(values, [(1 - level) / 2, (1 + level) / 2])
        ),
        mistake("""from the least to the largest
            You return the extremes, which grow apart with the number of resamples. Take
            quantiles.""").by(ends=lambda values, level: (values.min(), values.max())),
        mistake("""mean ± deviations
            You return the mean of the resamples give or take some standard deviations, as for a
            normal distribution. The percentile interval takes their quantiles.""")
        .by(ends=mean_and_deviations)
        .by(
            ends=lambda values, level: (
                values.mean() - 1.96 * values.std(),
                values.mean() + 1.96 * values.std(),
            )
        )
        .by(ends=lambda values, level: (values.mean() - values.std(), values.mean() + values.std()))
        .by(ends=mean_and_standard_errors),
        mistake("""distances in place of values
            You return how far the quantiles lie from the sample's own value, or the middle and half
            of the width. The two ends themselves are asked for, low and high.""")
        .by(
            transform=lambda sample_value, values, level: (
                np.asarray(values, dtype=float) - sample_value()
            )
        )
        .by(ends=middle_and_half_width),
        mistake("""the interval is moved
            You correct the ends by the difference of the resamples' mean and the sample's value.
            The ends asked for are the quantiles as they are.
        """).by(transform=lambda sample_value, values, level: move_mean_to(values, sample_value())),
        mistake("""one tail is cut
            You cut 1 − level off one end and nothing off the other. Each end loses half of it.""")
        .by(ends=lambda values, level: (np.quantile(values, 1 - level), values.max()))
        .by(ends=lambda values, level: (values.min(), np.quantile(values, level))),
        mistake("""the high end first
            You return (high, low). The low end comes first.
        """).by(ends=lambda values, level: quantile_ends(values, level)[::-1]),
        mistake("""the level is not used
            Your interval is the same for every level. Its ends are the quantiles (1 − level)/2 and
            (1 + level)/2.""")
        .by(ends=lambda values, level: np.quantile(values, [0.025, 0.975]))
        .by(ends=lambda values, level: np.quantile(values, [0.05, 0.95])),
        mistake("""the generator is not used
            You draw with a generator of your own, or NumPy's global one, although `rng` is given.
            Draw with `rng`.""").by(generator=lambda rng: np.random.default_rng()),
        mistake("""the same numbers at every call
            Your generator begins at a fixed seed, so every call draws the same rows. Use `rng`
            where it is given, and `np.random.default_rng()` without a seed where not.""")
        .by(generator=lambda rng: np.random.default_rng(0))
        .by(generator=lambda rng: np.random.default_rng(0) if rng is None else rng),
        mistake("""one resample too few
            You draw one resample fewer than `n_resamples`.""").by(count_resamples=lambda n: n - 1),
    ),
)
