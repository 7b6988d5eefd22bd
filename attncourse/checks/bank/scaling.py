"""The exercises of chapter 7, scaling.

What ``score_variance`` returns is random, and students draw from other generators. So its cases
run it with many seeds and keep only what every right answer has in common: its mean to the nearest
power of 2, that a seed repeats it, and whether the seeds scatter. At 16 and 64 d_k, its root and
its reciprocal all lie in the middle between two roundings; 54 lies near the lower edge and 80 near
the upper one. The numbers of seeds and samples are such that a right answer is five and a half
standard deviations from the nearest edge, which one in ten million passes, and that an answer of
Python's own loops is judged in less than a second and a half. The samples are a power of 2, too.

In float64 cases of ``scale_scores`` d_k is a power of 4 too, so that 1/√d_k is exact.
"""

import math

import numpy as np
import torch
from torch import Tensor

from attncourse import scaling
from attncourse.checks.callers import numbers_drawn, repeated, scattered, typical_sizes
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import BITS
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import (
    CaseTable,
    Count,
    Drawn,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.mistakes import Between, reversed_axes
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake
from attncourse.checks.writing.softmaxes import Softmax

SEEDS = 32

# --- cases -----------------------------------------------------------------------------------


def seeds(rng: Rng, number: int = SEEDS) -> list[int]:
    """Different seeds that every generator takes, none next to another, none 0."""
    return (rng.permutation(2**16)[:number] * 2**14 + 1).tolist()


def sizes_case(rng: Rng, n_samples: int, *widths: int) -> Case:
    return Case(
        kwargs={"calls": [[d_k, n_samples] for d_k in widths], "seeds": seeds(rng)},
        use=numbers_drawn,
        facts=typical_sizes,
        shown=f"the mean of score_variance(d_k, {n_samples}, seed) over {SEEDS} seeds, for each "
        f"d_k in {widths}, rounded to a power of 2",
    )


def call_case(facts, d_k: int, n_samples: int, seeds: list[int], note: str = "") -> Case:
    what = "the seeds 0 to 7" if 0 in seeds else f"{len(seeds)} different seeds"
    times = 2 if facts is repeated else 1
    return Case(
        kwargs={"calls": [[d_k, n_samples]] * times, "seeds": seeds},
        use=numbers_drawn,
        facts=facts,
        note=note,
        shown=f"score_variance({d_k}, {n_samples}, seed) with {what}",
    )


def shares(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random weights, none of them 0, that sum to 1 along the last axis."""
    return Softmax()(rng.normal(size=shape))


def saturated(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return Softmax()(30 * rng.normal(size=shape))


def graded(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Weights of every size, each 1/e of the next, in any order."""
    return Softmax()(-1.0 * rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1))


def with_zeros(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Weights of which every row has some that are 0, at other places, and none that is small."""
    place = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    weights = np.where(place < 2, 0, rng.uniform(1, 2, shape))
    return weights / weights.sum(-1, keepdims=True)


SCALE_CASES = CaseTable({"scores": "... m n", "d_k": Count("d_k")}, how=normal)
SCALE_ROWS = standard(SCALE_CASES)
SCALE_BY_HAND = Case((tensor([[2, 4, -8], [6, 0, 2]]), 4), note="√4 = 2")
BATCH_WIDTHS = (16, 4, 64, 256, 4)

ENTROPY_CASES = CaseTable({"weights": "... n"}, how=shares)
ENTROPY_ROWS = standard(ENTROPY_CASES)
ENTROPY_BY_HAND = Case(
    (tensor([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]),), note="two keys, equal: ln 2"
)

JACOBIAN_CASES = CaseTable({"p": "... n"}, how=shares)
JACOBIAN_ROWS = standard(JACOBIAN_CASES)
JACOBIAN_BY_HAND = Case((tensor([0.5, 0.25, 0.25]),))

THREE = row("n=5", batch=(3,))
TWO_AXES = row("n=5", batch=(2, 3), note="two batch axes")
ARE_WEIGHTS = "The entries are weights, none below 0, and their sum is 1."
ONLY_WEIGHTS = (
    cases.FLOATS_ONLY,
    ("a row of very small numbers", ARE_WEIGHTS),
    ("a row of very large numbers", ARE_WEIGHTS),
    ("entries that cancel", ARE_WEIGHTS),
)


# --- usual mistakes --------------------------------------------------------------------------


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def normal_entries(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


@composition
def experiment(
    generator=seeded,
    number=lambda n_samples: n_samples,
    entries=normal_entries,
    vectors=lambda q, k: (q, k),
    score=lambda q, k: (q * k).sum(-1),
    measure=lambda scores: scores.var(),
):
    """The experiment made of decisions, from the seed to the one number that is returned."""

    def score_variance(d_k, n_samples, seed):
        source = generator(seed)
        q, k = (entries(number(n_samples), d_k, generator=source) for _ in range(2))
        result = measure(score(*vectors(q, k)))
        return result.item() if result.ndim == 0 else result

    return score_variance


@composition
def scaling_by(
    factor=decisions.by_root_of_d_k,
    take=lambda scores: scores,
    times=decisions.times,
    finish=lambda scaled: scaled,
):
    """The scaling made of decisions; ``factor`` sees empty queries and keys, and d_k."""

    def scale_scores(scores, d_k):
        *batch, m, n = scores.shape
        query, key = (scores.new_empty(*batch, length, d_k) for length in (m, n))
        return finish(times(take(scores), factor(query, key, d_k)))

    return scale_scores


def beside_the_root(number):
    return {"factor": lambda q, k, d_k: 1 / (d_k**0.5 + number)}


def guarded_shares(guard):
    return {"take": lambda weights: (weights + guard) / (weights + guard).sum(-1, keepdim=True)}


@composition
def entropy(
    take=lambda weights: weights,
    log=lambda a: a.masked_fill(a == 0, 1).log(),  # ln a, and 0 where a is 0
    weigh=lambda weights, logs: weights * logs,
    total=lambda terms: terms.sum(-1),
    sign=-1,
    unit=lambda h, weights: h,
):
    """The entropy made of decisions, in the order in which they are taken."""

    def attention_entropy(weights):
        taken = take(weights)
        return unit(sign * total(weigh(taken, log(taken))), weights)

    return attention_entropy


def outer(p):
    return p[..., :, None] * p[..., None, :]  # (..., n, n)


def eye(p):
    return torch.eye(p.shape[-1], dtype=p.dtype)


@composition
def jacobian(
    take=lambda p: p,
    first=torch.diag_embed,
    second=outer,
    combine=lambda first, second: first - second,
    finish=lambda J: J,
):
    """diag(p) − p pᵀ made of decisions: its two terms, what is done to them and before."""

    def softmax_jacobian(p):
        taken = take(p)
        return finish(combine(first(taken), second(taken)))

    return softmax_jacobian


def entry_by_entry(p):
    """J of a single row, by two loops."""
    J = torch.zeros(len(p), len(p), dtype=p.dtype)
    for i in range(len(p)):
        for j in range(len(p)):
            J[i, j] = p[i] * ((i == j) * 1 - p[j])
    return J


def off_diagonal(p):
    return outer(p) * (1 - eye(p))


def all_rows_by_all_rows(J):
    """What autograd's jacobian of a whole batch is: (..., n, ..., n)."""
    whole = torch.block_diag(*J.reshape(-1, *J.shape[-2:]))
    return whole.reshape(*J.shape[:-1], *J.shape[:-1])


# --- exercises -------------------------------------------------------------------------------

VARIANCE = exercise(
    scaling.score_variance,
    section="Chapter 7, “How large is a dot product?”",
    difficulty=2,
    minutes=15,
    limit=20.0,
    criteria=(
        Criterion("about d_k, on average over many seeds", 3).on(
            lambda rng: [
                sizes_case(rng, 128, 16, 64),
                sizes_case(rng, 128, 54, 80),
                call_case(scattered, 4, 2, seeds(rng), "d_k itself is no measurement"),
            ]
        ),
        Criterion("the seed decides, and nothing else", 1).on(
            lambda rng: [
                call_case(repeated, 16, 64, seeds(rng)),
                call_case(repeated, 1, 7, seeds(rng), "vectors of one entry"),
                call_case(repeated, 5, 8, [*range(8)], "a seed of 0"),
                call_case(repeated, 4, 2, seeds(rng), "two samples"),
            ]
        ),
        Criterion("as many new pairs as asked for", 3).on(
            lambda rng: [
                call_case(scattered, 4, 1024, seeds(rng), "many samples: little scatter"),
                call_case(scattered, 256, 320, seeds(rng, 10), "wide vectors: little scatter"),
                call_case(scattered, 4, 2, seeds(rng), "two samples: much scatter"),
                call_case(scattered, 256, 16, seeds(rng, 96), "few samples: much scatter"),
            ]
        ),
    ),
    excludes=(
        (
            "the first call once more, after others",
            "The results are random. Each call of the second criterion is made again after others.",
        ),
    ),
    mistakes=made(
        experiment,
        mistake("""the standard deviation
            Your result grows as √d_k: it is a standard deviation. The variance is its square,
            `.var()` in place of `.std()`.""").by(measure=lambda scores: scores.std()),
        mistake("""summed over the samples, not over the features
            Your result grows with n_samples and not with d_k: products are summed over the wrong
            axis, or the sizes are exchanged. A score is a sum over the d_k features of a pair.""")
        .by(score=lambda q, k: (q * k).sum(0))
        .by(score=lambda q, k: (q * k).sum(0), measure=lambda scores: scores.var(correction=0)),
        mistake("""1 whatever d_k is
            Your result does not depend on d_k: the products are never summed, or divided by √d_k
            already. Return the variance of q · k itself.""")
        .by(score=lambda q, k: q * k)
        .by(score=lambda q, k: (q * k).sum(-1) / q.shape[-1] ** 0.5),
        mistake("""1/d_k: vectors or products scaled down
            Your result falls as 1/d_k: you take the mean of the products where a dot product takes
            their sum, or your vectors have length 1. The entries are standard normal.
        """).by(score=lambda q, k: (q * k).mean(-1)),
        mistake("""the mean, not the variance
            Your result is near 0 with either sign: the mean of the scores, or of deviations from
            it. The variance is the mean of the *squared* deviations.
        """).by(measure=lambda scores: scores.mean()),
        mistake("""squares summed, not averaged
            Your result is about n_samples times too large: the squared deviations are added up and
            not divided by their number.""").by(measure=lambda scores: scores.square().sum()),
        mistake("""the fourth power of the scores
            Your result grows as d_k²: the squared deviations are squared once more. The variance is
            their mean.""")
        .by(measure=lambda scores: scores.var() ** 2)
        .by(measure=lambda scores: scores.square().var()),
        mistake("""entries between 0 and 1
            Your entries are uniform between 0 and 1 (`rand`): their mean is 1/2 and their variance
            1/12. Standard normal ones, of mean 0 and variance 1, come from `randn`.
        """).by(entries=torch.rand),
        mistake("""entries between −1 and 1
            Your entries are uniform between −1 and 1. Their mean is 0, as it should be, but their
            variance is 1/3. Standard normal ones come from `randn`.
        """).by(entries=lambda *shape, generator: 2 * torch.rand(shape, generator=generator) - 1),
        mistake("""query and key are the same vector
            Your result is about 2 d_k, the variance of q · q: one vector is used twice, or the
            generator seeded anew for k. (So is that of a sum, q + k in place of q · k.) Draw q and
            k one after the other from one generator.""").by(vectors=lambda q, k: (q, q)),
        mistake("""one query for all keys
            Your average is right, but far too uncertain: you measure the length of the one query,
            or the one key, that all others meet. Every pair has both of its own.
        """).by(vectors=lambda q, k: (q[:1], k)),
        mistake("""every query with every key
            Your average is right, but your results scatter too little. You take all n_samples²
            scores, `q @ k.T`, or add up variances of the single products. Query i meets key i
            alone: one score for each pair, `(q * k).sum(-1)`.""").by(score=lambda q, k: q @ k.T),
        mistake("""the same pair again and again
            Your scores are all alike, and their variance is 0: the generator is seeded anew for
            every pair, or one pair is drawn for all. Seed once, before the first draw.""")
        .by(entries=lambda n, d, generator: normal_entries(1, d, generator=generator))
        .by(vectors=lambda q, k: (q[:1], k[:1])),
        mistake("""too few pairs
            With n_samples = 2 your result is 0 or NaN, as of a single score: you draw fewer pairs
            than asked for, or use a vector in two of them. The n_samples scores come from n_samples
            queries and as many keys.""")
        .by(number=lambda n: n - 1)
        .by(number=lambda n: n - 1, measure=lambda scores: scores.var(correction=0)),
        mistake("""the seed is not used
            Two calls with the same seed return different numbers. Hand the seed to the generator
            that you draw from: `torch.Generator().manual_seed(seed)`.
        """).by(generator=lambda seed: torch.default_generator),
        mistake("""a seed of 0 is taken for none
            With 0 for a seed, two calls return different numbers: `seed or …` and `if seed:` take
            it for a seed that was not given. Hand it on as it is.
        """).by(generator=lambda seed: seeded(seed) if seed else torch.default_generator),
        mistake("""the same number for every seed
            Your result does not depend on the seed: you return the theory's d_k, or your generator
            always has one seed. Return what one sample happens to give.""")
        .by(generator=lambda seed: seeded(0))
        .by(score=lambda q, k: (q.shape[-1] / 2) ** 0.5 * torch.tensor([1.0, -1.0])),
        mistake("""n_samples is ignored
            Your result is as certain with 2 samples as with 1024. Draw exactly n_samples pairs.""")
        .by(number=lambda n_samples: 1000)
        .by(number=lambda n_samples: 10),
        mistake("""many numbers in place of one
            You return an array: the scores, or a variance for each feature. Sum the products over
            the features, one score for each pair, then take the variance of all of these.
        """).by(score=lambda q, k: q * k, measure=lambda products: products.var(dim=0)),
    ),
)

SCALE = exercise(
    scaling.scale_scores,
    section="Chapter 7, “How large is a dot product?”",
    difficulty=1,
    minutes=5,
    criteria=(
        SCALE_CASES.criterion("divided by the root of d_k", 3).on(
            SCALE_BY_HAND,
            Case((tensor([[8, 0, 4], [-4, 12, 16]]), 16)),
            row("m=5 n=3 d_k=64"),
            row("m=4 n=4 d_k=256", note="as many queries as keys"),
        ),
        SCALE_CASES.criterion("one query, one key, any memory layout", 1).on(
            row("m=1 n=5 d_k=16", note="one query"),
            row("m=5 n=1 d_k=16", note="one key"),
            row("m=3 n=7 d_k=1", note="d_k = 1: nothing changes"),
            row("m=7 n=3 d_k=64", turned=True, note="not contiguous in memory"),
        ),
        SCALE_CASES.criterion("batches", 1).on(
            *(r.but(f"d_k={d}") for r, d in zip(SCALE_ROWS.batches, BATCH_WIDTHS, strict=True)),
            row("m=5 n=3 d_k=16", batch=(2, 3), note="two batch axes"),
        ),
        SCALE_CASES.criterion("float32, widths without a whole root", 1).on(
            SCALE_ROWS.single.but("d_k=7", note="float32, d_k = 7"),
            SCALE_ROWS.single.but("d_k=24", note="float32, d_k = 24"),
            *(one.but("d_k=64") for one in SCALE_ROWS.extreme),
            once_more(SCALE_BY_HAND),
        ),
        SCALE_CASES.criterion("gradients reach the scores", 1).on(
            *(one.but("d_k=16") for one in SCALE_ROWS.gradients)
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        scaling_by,
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
        .by(*map(beside_the_root, (1e-8, 1e-7, 1e-6, 1e-5, 1e-3, 1e-2, 0.1)))
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
        mistake("""the scores are standardised
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

ENTROPY = exercise(
    scaling.attention_entropy,
    section="Chapter 7, “What large scores do to a softmax”",
    difficulty=2,
    minutes=12,
    forbids=("special_entr",),
    criteria=(
        ENTROPY_CASES.criterion("−Σ a ln a over each row", 3).on(
            ENTROPY_BY_HAND,
            Case((tensor([0.5, 0.25, 0.25]),)),
            row("n=7"),
            row("n=3", batch=(5,)),
            row("n=4", batch=(4,), note="as many queries as keys"),
        ),
        ENTROPY_CASES.criterion("a weight of 0 adds 0", 2).on(
            Case((tensor([[1, 0, 0], [0.5, 0, 0.5]]),), note="weights of 0"),
            THREE.but(given={"weights": Drawn("... n", with_zeros)}, note="weights of 0"),
        ),
        ENTROPY_CASES.criterion("one query, one key, any memory layout", 1).on(
            Case((tensor([[1], [1], [1]]),), note="one key"),
            row("n=7", batch=(1,), note="one query"),
            row("n=3", batch=(7,), turned=True, note="not contiguous in memory"),
        ),
        ENTROPY_CASES.criterion("batches", 1).on(*ENTROPY_ROWS.batches, TWO_AXES),
        ENTROPY_CASES.criterion("float32, tiny weights, many keys", 1).on(
            ENTROPY_ROWS.single.but(batch=(3,)),
            THREE.but("n=7", given={"weights": Drawn("... n", saturated)}, note="saturated"),
            THREE.but("n=24", given={"weights": Drawn("... n", graded)}, note="1/2 to 1e-10"),
            row("n=500", batch=(2,), note="500 keys"),
            once_more(ENTROPY_BY_HAND),
        ),
        ENTROPY_CASES.criterion("gradients reach the weights", 1).on(*ENTROPY_ROWS.gradients),
        unchanged(),
    ),
    excludes=ONLY_WEIGHTS,
    mistakes=made(
        entropy,
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
        mistake("""compared with ln n
            You divide by ln n, the largest possible entropy, or return the distance from it. Asked
            for is the entropy itself.""")
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

JACOBIAN = exercise(
    scaling.softmax_jacobian,
    section="Chapter 7, “How the weights move with their scores”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        JACOBIAN_CASES.criterion("diag(p) − p pᵀ of one row", 3).on(JACOBIAN_BY_HAND, row("n=5")),
        JACOBIAN_CASES.criterion("of each row of a batch by itself", 1).on(
            Case((tensor([[0.5, 0.25, 0.25], [0.25, 0.75, 0]]),), note="two rows"),
            *JACOBIAN_ROWS.contiguous,
        ),
        JACOBIAN_CASES.criterion(cases.SCATTERED, 1).on(*JACOBIAN_ROWS.not_contiguous),
        JACOBIAN_CASES.criterion("one weight, one row, any memory layout", 1).on(
            Case((tensor([1]),), note="one weight"),
            row("n=7", batch=(1,), note="one row"),
            row("n=3", batch=(7,), turned=True, note="not contiguous in memory"),
        ),
        JACOBIAN_CASES.criterion("float32 and saturated weights", 1).on(
            JACOBIAN_ROWS.single.but(batch=(3,)),
            Case((tensor([[0, 1, 0, 0]]),), note="saturated: J is 0"),
            THREE.but(given={"p": Drawn("... n", saturated)}, note="nearly saturated"),
            once_more(JACOBIAN_BY_HAND),
        ),
        JACOBIAN_CASES.criterion("gradients reach p", 1).on(*JACOBIAN_ROWS.gradients),
        unchanged(),
    ),
    excludes=ONLY_WEIGHTS,
    mistakes=made(
        jacobian,
        mistake("""a sign is wrong
            It is diag(p) − p pᵀ: with its own score a weight grows, so the diagonal is positive;
            what it gains the others lose, so the rest is negative and every row sums to 0.""")
        .by(combine=lambda first, second: second - first)
        .by(combine=lambda first, second: first + second)
        .by(second=lambda p: outer(p) * (2 * eye(p) - 1)),
        mistake("""a term is missing
            You return diag(p) or −p pᵀ alone. A weight grows with its own score, by p_i, and all of
            them share the sum that they are divided by: diag(p) − p pᵀ.""")
        .by(first=lambda p: 0)
        .by(second=lambda p: 0),
        mistake("""each weight by its own score only
            You return p (1 − p), as a vector or on the diagonal, as for a sigmoid. In a softmax
            every weight depends on every score: off the diagonal stands −p_i p_j.""")
        .by(second=lambda p: torch.diag_embed(p**2))
        .by(finish=lambda J: J.diagonal(dim1=-2, dim2=-1)),
        mistake("""another matrix in place of diag(p)
            Your first term is the identity, or has p in every row or column. It is p_i on the
            diagonal and 0 elsewhere: `torch.diag_embed(p)`.""")
        .by(first=eye)
        .by(first=lambda p: p[..., :, None])
        .by(first=lambda p: p[..., None, :]),
        mistake("""one index twice
            You compute p_i (δ_ij − p_i) or p_j (δ_ij − p_j). The first factor belongs to the weight
            that moves, the second to the score that moves it: p_i (δ_ij − p_j).""")
        .by(second=lambda p: p[..., :, None] ** 2)
        .by(second=lambda p: p[..., None, :] ** 2),
        mistake("""the factor p_i is missing
            You compute δ_ij − p_j, which is how the *logarithm* of a weight moves with the scores.
            The weight itself moves p_i times as much: p_i (δ_ij − p_j).
        """).by(first=eye, second=lambda p: p[..., None, :]),
        mistake("""the diagonal is another
            You are right off the diagonal. On it you return p_i, 1 − p_i, 0 or the like: both terms
            count there, p_i − p_i², which is p_i (1 − p_i).""")
        .by(second=off_diagonal)
        .by(first=lambda p: 0, second=off_diagonal)
        .by(first=lambda p: torch.diag_embed(1 - p), second=off_diagonal)
        .by(first=lambda p: torch.diag_embed(1 - p)),
        mistake("""no outer product
            You take away `p * p`, every entry times itself, or sums of these over the keys or over
            the rows. p pᵀ has every entry times every other, within a row: `p[..., :, None] *
            p[..., None, :]`.""")
        .by(second=lambda p: p * p)
        .by(second=lambda p: (p * p).sum(-1)[..., None, None])
        .by(second=lambda p: p @ reversed_axes(p))
        .by(second=lambda p: reversed_axes(p) @ p)
        .by(second=lambda p: p.mT @ p),
        mistake("""another softmax
            You apply a softmax to p. The argument holds the weights, which went through it.""").by(
            take=lambda p: p.softmax(-1)
        ),
        mistake("""a number of batch axes is assumed
            `torch.diag`, `torch.outer`, `.T` and `p[:, None]` are for a single row, `p[:, :, None]`
            and `torch.bmm` for one batch axis. Count from the end: `p[..., :, None]`.""")
        .by(first=torch.diag, second=lambda p: torch.outer(p, p))
        .by(second=lambda p: torch.bmm(p[:, :, None], p[:, None, :]))
        .by(second=lambda p: torch.einsum("bi,bj->bij", p, p))
        .by(second=lambda p: p.unsqueeze(2) * p.unsqueeze(1))
        .by(second=lambda p: p[:, None] * p[None, :])
        .by(second=lambda p: torch.outer(p.flatten(), p.flatten()))
        .by(first=torch.diag)
        .by(first=entry_by_entry, second=lambda p: 0)
        .by(
            first=lambda p: torch.stack([torch.diag(row) for row in p]),
            second=lambda p: torch.stack([torch.outer(row, row) for row in p]),
        )
        .by(second=lambda p: p[..., None] @ reversed_axes(p[..., None])),
        mistake("""every row by the scores of every row
            Your result is (..., n, ..., n), as of `torch.autograd.functional.jacobian` for a whole
            batch. Rows do not depend on each other: one matrix for each, (..., n, n).
        """).by(finish=all_rows_by_all_rows),
    ),
)

EXERCISES = (VARIANCE, SCALE, ENTROPY, JACOBIAN)

VARIANTS = (
    Variant(
        "bits",
        "The entropy is in **bits** here, with the logarithm to base 2, where in the book it is in "
        "nats. The gradient is that of the entropy in bits.",
        "entropies are in bits here",
        "Your entropy is in nats, as in the book and in its published answers. In this assignment "
        "it is in bits: use `torch.log2`, or divide by ln 2.",
        {"attention_entropy": Adapter(result=BITS, drops=("logarithms to another base",))},
        rewordings(r"""
            $$H = -\sum_j a_j \ln a_j ,$$ → $$H = -\sum_j a_j \log_2 a_j ,$$
            with the natural logarithm → with the logarithm to base 2
            Expect about 1.0397, 0.6931 and 0 → Expect about 1.5, 1 and 0
            −Σ a ln a → −Σ a log₂ a
            limit of a ln a at → limit of a log₂ a at
            `torch.xlogy(weights, weights)` → `torch.xlogy(weights, weights)` over ln 2
            You divide by ln n → You divide by log₂ n
            terms −a ln a → terms −a log₂ a
            You sum −ln a alone → You sum −log₂ a alone
            (1 − a) ln(1 − a) → (1 − a) log₂(1 − a)
            1).log()` is the logarithm → 1).log2()` is the logarithm
        """),
    ),
)
