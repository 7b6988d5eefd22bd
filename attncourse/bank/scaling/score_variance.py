"""The exercise ``score_variance``: how widely products of random vectors scatter.

What an answer returns is random, and students draw from other generators. So the cases run it with
many seeds and keep only what every right answer has in common: its mean to the nearest power of 2,
that a seed repeats it, and whether the seeds scatter. At 16 and 64 d_k, its root and its reciprocal
all lie in the middle between two roundings; 54 lies near the lower edge and 80 near the upper one.
The numbers of seeds and samples are such that a right answer is five and a half standard deviations
from the nearest edge, which one in ten million passes, and that an answer of Python's own loops is
judged in less than a second and a half. The samples are a power of 2, too.
"""

import torch
from torch import Tensor

from attncourse import scaling
from attncourse.checks.callers import numbers_drawn, repeated, scattered, typical_sizes
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise
from attncourse.checks.writing.recipes import made, mistake

N_SEEDS = 32

# --- cases ---------------------------------------------------------------------------------------


def seeds(rng: Rng, number: int = N_SEEDS) -> list[int]:
    """Return different seeds that every generator takes, none next to another, none 0."""
    return (rng.permutation(2**16)[:number] * 2**14 + 1).tolist()


def sizes_case(rng: Rng, n_samples: int, *widths: int) -> Case:
    """Return the case that compares mean variances for these widths."""
    return Case(
        kwargs={"calls": [[d_k, n_samples] for d_k in widths], "seeds": seeds(rng)},
        use=numbers_drawn,
        facts=typical_sizes,
        shown=f"the mean of score_variance(d_k, {n_samples}, seed) over {N_SEEDS} seeds, for each "
        f"d_k in {widths}, rounded to a power of 2",
    )


def call_case(facts, d_k: int, n_samples: int, seeds: list[int], note: str = "") -> Case:
    """Return the case of calls with these seeds, of which ``facts`` are told."""
    seeds_text = "the seeds 0 to 7" if 0 in seeds else f"{len(seeds)} different seeds"
    times = 2 if facts is repeated else 1
    return Case(
        kwargs={"calls": [[d_k, n_samples]] * times, "seeds": seeds},
        use=numbers_drawn,
        facts=facts,
        note=note,
        shown=f"score_variance({d_k}, {n_samples}, seed) with {seeds_text}",
    )


# --- decisions and mistakes ----------------------------------------------------------------------


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def normal_entries(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


@composition
def compose_score_variance(
    generator=seeded,
    number=lambda n_samples: n_samples,
    entries=normal_entries,
    vectors=lambda q, k: (q, k),
    score=lambda q, k: (q * k).sum(-1),
    measure=lambda scores: scores.var(),
):
    """Return the experiment made of decisions, from the seed to the one number that is returned."""

    def score_variance(d_k, n_samples, seed):
        source = generator(seed)
        q, k = (entries(number(n_samples), d_k, generator=source) for _ in range(2))
        result = measure(score(*vectors(q, k)))
        return result.item() if result.ndim == 0 else result

    return score_variance


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
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
        compose_score_variance,
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
