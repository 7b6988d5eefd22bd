"""The exercises of chapter 7, scaling.

What ``score_variance`` returns is random, and students draw from other generators. So its cases
run it with many seeds and keep only what every right answer has in common: its mean to the nearest
power of 2, that a seed repeats it, and whether the seeds scatter. The widths are powers of 4 so
that d_k, its root and its reciprocal all lie in the middle between two roundings, and the numbers
of seeds and samples are such that a right answer is ten standard deviations from the nearest edge.

In float64 cases of ``scale_scores`` d_k is a power of 4 too, so that 1/√d_k is exact.
"""

import math

import torch
from torch import Tensor

from attncourse import scaling
from attncourse.checks.drivers import repeated, scattered, typical_sizes, with_gradients
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import normal, tensor

SEEDS = 32

# --- cases: score_variance -------------------------------------------------------------------


def seeds(rng: Rng) -> list[int]:
    """Different seeds that every generator takes, none next to another."""
    return (rng.permutation(2**16)[:SEEDS] * 2**14 + 1).tolist()


def sizes_case(rng: Rng, *calls: tuple[int, int]) -> Case:
    (_, n_samples), widths = calls[0], ", ".join(str(d_k) for d_k, _ in calls)
    each = f"for each d_k in ({widths})" if len(calls) > 1 else f"with d_k = {widths}"
    return Case(
        kwargs={"calls": [list(call) for call in calls], "seeds": seeds(rng)},
        use=typical_sizes,
        shown=f"the mean of score_variance(d_k, {n_samples}, seed) over {SEEDS} seeds, {each}, "
        "rounded to a power of 2",
    )


def variance_sizes(rng: Rng) -> list[Case]:
    return [sizes_case(rng, (16, 256), (64, 256)), sizes_case(rng, (256, 128))]


def call_case(rng: Rng, use, d_k: int, n_samples: int, note: str = "") -> Case:
    return Case(
        kwargs={"call": [d_k, n_samples], "seeds": seeds(rng)},
        use=use,
        note=note,
        shown=f"score_variance({d_k}, {n_samples}, seed) with {SEEDS} different seeds",
    )


def variance_seeds(rng: Rng) -> list[Case]:
    return [call_case(rng, repeated, 16, 64)]


def variance_samples(rng: Rng) -> list[Case]:
    return [
        call_case(rng, scattered, 4, 2048, "many samples: little scatter"),
        call_case(rng, scattered, 4, 2, "two samples: much scatter"),
    ]


# --- cases: scale_scores ---------------------------------------------------------------------


def scale_values(rng: Rng) -> list[Case]:
    return [
        Case((tensor([[2, 4, -6]]), 4), note="√4 = 2"),
        Case((tensor([[8, 0, 4], [-4, 12, 16]]), 16)),
        Case((normal(rng, 5, 3), 64)),
        Case((normal(rng, 4, 4), 256), note="as many queries as keys"),
    ]


def scale_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 1, 5), 16), note="one query"),
        Case((normal(rng, 5, 1), 16), note="one key"),
        Case((normal(rng, 3, 7), 1), note="d_k = 1: nothing changes"),
        Case((normal(rng, 7, 3).T, 64), note="not contiguous in memory"),
    ]


def scale_batch(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 2, 3, 5), 16), note="a batch of 2"),
        Case((normal(rng, 2, 3, 5, 7), 64), note="two batch axes"),
    ]


def scale_numbers(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 3, 5).float(), 7), note="float32, d_k = 7"),
        Case((normal(rng, 5, 3).float(), 24), note="float32, d_k = 24"),
        Case((1e4 * normal(rng, 3, 5), 16), note="scores in the ten thousands"),
    ]


def scale_gradients(rng: Rng) -> list[Case]:
    return [Case((normal(rng, 2, 3, 5), 16), use=with_gradients("scores"), note="a batch of 2")]


# --- cases: attention_entropy and softmax_jacobian --------------------------------------------


def rows(rng: Rng, *shape: int) -> Tensor:
    """Random weights, none of them 0, that sum to 1 along the last axis."""
    return normal(rng, *shape).softmax(-1)


def entropy_values(rng: Rng) -> list[Case]:
    return [
        Case((tensor([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]),), note="two keys, equal: ln 2"),
        Case((tensor([0.5, 0.25, 0.25]),)),
        Case((rows(rng, 7),)),
        Case((rows(rng, 5, 3),)),
        Case((rows(rng, 4, 4),), note="as many queries as keys"),
    ]


def entropy_zeros(rng: Rng) -> list[Case]:
    holes = rows(rng, 3, 5)
    holes[:, 1] = 0
    holes[0, 3] = 0
    return [
        Case((tensor([[1, 0, 0], [0.5, 0, 0.5]]),), note="weights of 0"),
        Case((holes / holes.sum(-1, keepdim=True),), note="weights of 0"),
    ]


def entropy_shapes(rng: Rng) -> list[Case]:
    return [
        Case((tensor([[1], [1], [1]]),), note="one key"),
        Case((rows(rng, 1, 7),), note="one query"),
        Case((normal(rng, 7, 3).softmax(0).T,), note="not contiguous in memory"),
    ]


def entropy_batch(rng: Rng) -> list[Case]:
    return [
        Case((rows(rng, 2, 3, 5),), note="a batch of 2"),
        Case((rows(rng, 2, 3, 5, 7),), note="two batch axes"),
    ]


def entropy_numbers(rng: Rng) -> list[Case]:
    return [
        Case((rows(rng, 3, 5).float(),), note="float32"),
        Case(((30 * normal(rng, 3, 7)).softmax(-1),), note="saturated, tiny weights"),
        Case(((0.1 * normal(rng, 2, 500)).softmax(-1),), note="500 keys"),
    ]


def entropy_gradients(rng: Rng) -> list[Case]:
    return [Case((rows(rng, 2, 3, 5),), use=with_gradients("weights"), note="a batch of 2")]


def jacobian_values(rng: Rng) -> list[Case]:
    return [
        Case((tensor([0.5, 0.25, 0.25]),)),
        Case((rows(rng, 5),)),
    ]


def jacobian_batch(rng: Rng) -> list[Case]:
    return [
        Case((tensor([[0.5, 0.25, 0.25], [0.25, 0.75, 0]]),), note="two rows"),
        Case((rows(rng, 4, 4),), note="four rows of four weights"),
        Case((rows(rng, 2, 3, 5),), note="a batch of 2"),
        Case((rows(rng, 2, 3, 5, 7),), note="two batch axes"),
    ]


def jacobian_shapes(rng: Rng) -> list[Case]:
    return [
        Case((tensor([1]),), note="one weight"),
        Case((rows(rng, 1, 7),), note="one row"),
        Case((normal(rng, 7, 3).softmax(0).T,), note="not contiguous in memory"),
    ]


def jacobian_numbers(rng: Rng) -> list[Case]:
    return [
        Case((rows(rng, 3, 5).float(),), note="float32"),
        Case((tensor([[0, 1, 0, 0]]),), note="saturated: J is 0"),
        Case(((10 * normal(rng, 3, 5)).softmax(-1),), note="nearly saturated"),
    ]


def jacobian_gradients(rng: Rng) -> list[Case]:
    return [Case((rows(rng, 2, 3, 5),), use=with_gradients("p"), note="a batch of 2")]


# --- usual mistakes --------------------------------------------------------------------------


def normal_entries(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


def sampled(result, entries=normal_entries):
    """A wrong ``score_variance``: ``result(q, k)`` of pairs (n_samples, d_k) with such entries."""

    def variance(d_k, n_samples, seed):
        generator = torch.Generator().manual_seed(seed)
        q, k = (entries(n_samples, d_k, generator=generator) for _ in range(2))
        return result(q, k).item()

    return variance


def dots(q, k):
    return (q * k).sum(-1)


RIGHT_VARIANCE = sampled(lambda q, k: dots(q, k).var())


def many_numbers(d_k, n_samples, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, n_samples, d_k, generator=generator)
    return (q * k).var(dim=0)


def no_seed(d_k, n_samples, seed):
    q, k = torch.randn(2, n_samples, d_k)
    return dots(q, k).var().item()


def in_place(scores, d_k):
    scores /= math.sqrt(d_k)
    return scores


def products(weights):
    """a ln a, and 0 where a is 0."""
    return torch.special.xlogy(weights, weights)


def zeros_replaced_in_place(weights):
    weights[weights == 0] = 1
    return -(weights * weights.log()).sum(-1)


def outer(p):
    return p[..., :, None] * p[..., None, :]  # (..., n, n)


def eye(p):
    return torch.eye(p.shape[-1], dtype=p.dtype)


def right_jacobian(p):
    return torch.diag_embed(p) - outer(p)


def wrong_off_diagonal(p):
    return torch.diag_embed(p - p**2) + outer(p) * (1 - eye(p))


def plain_transpose(p):
    column = p[..., None]
    return torch.diag_embed(p) - column @ column.permute(*range(column.ndim - 1, -1, -1))


def all_rows_by_all_rows(p):
    """What autograd's jacobian of a whole batch is: (..., n, ..., n)."""
    flat = right_jacobian(p).reshape(-1, p.shape[-1], p.shape[-1])
    return torch.block_diag(*flat).reshape(*p.shape, *p.shape)


# --- exercises -------------------------------------------------------------------------------

VARIANCE = Exercise(
    target="scaling.score_variance",
    reference=scaling.score_variance,
    section="Chapter 7, “How large is a dot product?”",
    difficulty=2,
    minutes=15,
    limit=20.0,
    criteria=(
        Criterion("about d_k, on average over many seeds", 4, variance_sizes),
        Criterion("the seed decides, and nothing else", 1, variance_seeds),
        Criterion("as many new pairs as asked for", 2, variance_samples),
    ),
    misconceptions=(
        Misconception(
            "the standard deviation",
            "Your result grows as √d_k: it is a standard deviation. The variance is its square, "
            "`.var()` in place of `.std()`.",
            sampled(lambda q, k: dots(q, k).std()),
        ),
        Misconception(
            "summed over the samples, not over the features",
            "Your result grows with n_samples and not with d_k. Either the products are summed "
            "over the wrong axis, or the two sizes are exchanged. With q and k of shape "
            "(n_samples, d_k) a score is a sum over the last axis, and the variance runs over the "
            "n_samples scores.",
            sampled(lambda q, k: (q * k).sum(0).var()),
        ),
        Misconception(
            "1 whatever d_k is",
            "Your result does not depend on d_k. Either the products q_a k_a are never summed to "
            "scores, so that you have the variance of single products, or you have divided by "
            "√d_k already. Asked for is the variance of q · k itself.",
            sampled(lambda q, k: (q * k).var()),
        ),
        Misconception(
            "1/d_k: vectors or products scaled down",
            "Your result falls as 1/d_k. Either you take the mean of the products where a dot "
            "product takes their sum, or your vectors have length 1. The entries are to be "
            "standard normal, and their products are added up.",
            sampled(lambda q, k: (q * k).mean(-1).var()),
        ),
        Misconception(
            "the mean, not the variance",
            "Your result is near 0 with either sign. That is the mean of the scores, or of their "
            "deviations from the mean. The variance is the mean of the *squared* deviations.",
            sampled(lambda q, k: dots(q, k).mean()),
        ),
        Misconception(
            "squares summed, not averaged",
            "Your result is about n_samples times too large: the squared deviations are added up "
            "and not divided by their number.",
            sampled(lambda q, k: dots(q, k).square().sum()),
        ),
        Misconception(
            "entries between 0 and 1",
            "Your entries are uniform between 0 and 1 (`rand`): their mean is 1/2 and their "
            "variance 1/12. Standard normal ones, of mean 0 and variance 1, come from `randn`.",
            sampled(lambda q, k: dots(q, k).var(), torch.rand),
        ),
        Misconception(
            "entries between −1 and 1",
            "Your entries are uniform between −1 and 1. Their mean is 0, as it should be, but "
            "their variance is 1/3. Standard normal ones come from `randn`.",
            sampled(
                lambda q, k: dots(q, k).var(),
                lambda *shape, generator: 2 * torch.rand(shape, generator=generator) - 1,
            ),
        ),
        Misconception(
            "query and key are the same vector",
            "Your result is about 2 d_k, the variance of q · q. Is one vector used twice, or the "
            "generator seeded anew before the keys? Draw q and k one after the other from one "
            "generator.",
            sampled(lambda q, k: dots(q, q).var()),
        ),
        Misconception(
            "one query for all keys",
            "Your average is right, but far too uncertain: you compare all keys with one query, "
            "and so measure the squared length of that query. Every pair has a query of its own.",
            sampled(lambda q, k: (k @ q[0]).var()),
        ),
        Misconception(
            "the seed is not used",
            "Two calls with the same seed return different numbers. Hand the seed to the generator "
            "that you draw from: `torch.Generator().manual_seed(seed)`.",
            no_seed,
        ),
        Misconception(
            "the same number for every seed",
            "Your result does not depend on the seed: you return the theory's d_k, or your "
            "generator always has the same seed. Asked for is what one sample happens to give.",
            lambda d_k, n_samples, seed: RIGHT_VARIANCE(d_k, n_samples, 0),
        ),
        Misconception(
            "n_samples is ignored",
            "Your result is as certain with 2 samples as with 2048. Draw n_samples pairs, no more "
            "and no fewer.",
            lambda d_k, n_samples, seed: RIGHT_VARIANCE(d_k, 1000, seed),
        ),
        Misconception(
            "many numbers in place of one",
            "You return an array: the scores themselves, or one variance for each feature. Sum the "
            "products over the features to have one score for each pair, then take the variance of "
            "all these scores: one number.",
            many_numbers,
        ),
    ),
    hints=(
        "Three steps: draw q and k, both (n_samples, d_k); one score for each pair; the variance "
        "of the scores.",
        "`generator = torch.Generator().manual_seed(seed)`, then `torch.randn(n_samples, d_k, "
        "generator=generator)`, twice.",
        "`(q * k).sum(dim=-1)` holds the n_samples scores.",
    ),
)

SCALE = Exercise(
    target="scaling.scale_scores",
    reference=scaling.scale_scores,
    section="Chapter 7, “How large is a dot product?”",
    difficulty=1,
    minutes=5,
    criteria=(
        Criterion("divided by the root of d_k", 3, scale_values),
        Criterion("one query, one key, any memory layout", 1, scale_shapes),
        Criterion("batches", 1, scale_batch),
        Criterion("float32, widths without a whole root", 1, scale_numbers),
        Criterion("gradients reach the scores", 1, scale_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "divided by d_k",
            "You divide by d_k. Divided by its root the scores keep a variance of 1; divided by "
            "d_k it becomes 1/d_k.",
            lambda scores, d_k: scores / d_k,
        ),
        Misconception(
            "multiplied by √d_k",
            "You make the scores larger. They grow with d_k by themselves, and the scale takes "
            "that back: divide.",
            lambda scores, d_k: scores * math.sqrt(d_k),
        ),
        Misconception(
            "not scaled",
            "You return the scores as they came.",
            lambda scores, d_k: scores.clone(),
        ),
        Misconception(
            "d_k taken from the axis of the keys",
            "You divide by the root of `scores.shape[-1]`. That axis counts the keys. The scores "
            "no longer show how wide queries and keys were, which is why d_k is an argument.",
            lambda scores, d_k: scores / math.sqrt(scores.shape[-1]),
        ),
        Misconception(
            "d_k taken from the axis of the queries",
            "You divide by the root of `scores.shape[-2]`. That axis counts the queries. Use the "
            "argument d_k.",
            lambda scores, d_k: scores / math.sqrt(scores.shape[-2]),
        ),
        Misconception(
            "`scores / d_k ** 1/2`",
            "Powers come before divisions, so this is `(scores / d_k) / 2`, and there is no root "
            "in it. Write `d_k ** 0.5` or `math.sqrt(d_k)`.",
            lambda scores, d_k: scores / d_k**1 / 2,
        ),
        Misconception(
            "`d_k ** 1/2` in parentheses",
            "`(d_k ** 1/2)` is d_k / 2: the power binds more closely than the division. Write "
            "`d_k ** 0.5` or `math.sqrt(d_k)`.",
            lambda scores, d_k: scores / (d_k**1 / 2),
        ),
        Misconception(
            "the fourth root",
            "You divide by the fourth root of d_k. That is right for queries and keys *each*, "
            "before they are multiplied. These are scores, the product has been taken: √d_k.",
            lambda scores, d_k: scores / d_k**0.25,
        ),
        Misconception(
            "the root is cut to a whole number",
            "Your root is right for 4, 16 and 64 and wrong for 7: `int(…)`, `//` or `math.isqrt` "
            "cut it to a whole number. Divide by `math.sqrt(d_k)` itself.",
            lambda scores, d_k: scores / math.isqrt(d_k),
        ),
        Misconception(
            "the variance is forced to 1",
            "You divide by the standard deviation of these scores. The scale does not look at the "
            "scores: large ones stay larger than small ones. Divide by √d_k.",
            lambda scores, d_k: scores / (scores.std() if scores.numel() > 1 else 1),
        ),
        Misconception(
            "clipped to [−1, 1]",
            "You divide and then cut off at −1 and 1. Scaled scores have a typical size of 1 and "
            "no bound: leave them as they are.",
            lambda scores, d_k: (scores / math.sqrt(d_k)).clamp(-1, 1),
        ),
        Misconception(
            "squeezed by tanh",
            "You apply tanh after dividing, which keeps scores between −1 and 1. Nothing bounds "
            "scaled scores: leave it out.",
            lambda scores, d_k: (scores / math.sqrt(d_k)).tanh(),
        ),
        Misconception(
            "already a softmax",
            "You return weights. The scaled scores are what goes into the softmax.",
            lambda scores, d_k: (scores / math.sqrt(d_k)).softmax(-1),
        ),
        Misconception(
            "the scores are changed in place",
            "`scores /= …` writes into the caller's tensor. `scores / …` makes a new one.",
            in_place,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda scores, d_k: scores.detach() / math.sqrt(d_k),
        ),
    ),
    hints=(
        "Which number has to divide the scores so that a variance of d_k becomes 1?",
        "Dividing by c divides the variance by c². `math.sqrt` takes the root of a whole number.",
    ),
)

ENTROPY = Exercise(
    target="scaling.attention_entropy",
    reference=scaling.attention_entropy,
    section="Chapter 7, “What large scores do to a softmax”",
    difficulty=2,
    minutes=12,
    forbids=("special_entr",),
    criteria=(
        Criterion("−Σ a ln a over each row", 3, entropy_values),
        Criterion("a weight of 0 adds 0", 2, entropy_zeros),
        Criterion("one query, one key, any memory layout", 1, entropy_shapes),
        Criterion("batches", 1, entropy_batch),
        Criterion("float32, tiny weights, many keys", 1, entropy_numbers),
        Criterion("gradients reach the weights", 1, entropy_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "0 · ln 0 is NaN",
            "ln 0 is −∞ and 0 · (−∞) is NaN. The limit of a ln a at 0 is 0: put a 1 in place of "
            "each weight of 0 inside the logarithm, or use `torch.xlogy(weights, weights)`.",
            lambda weights: -(weights * weights.log()).sum(-1),
        ),
        Misconception(
            "logarithms to base 2",
            "Your entropy is in bits, larger by 1/ln 2. Asked for are nats: `torch.log`, the "
            "natural logarithm.",
            lambda weights: -products(weights).sum(-1) / math.log(2),
        ),
        Misconception(
            "logarithms to base 10",
            "Your logarithm is `log10`. Asked for are nats: `torch.log`, the natural logarithm.",
            lambda weights: -products(weights).sum(-1) / math.log(10),
        ),
        Misconception(
            "the minus is missing",
            "Logarithms of numbers below 1 are negative, and an entropy is not: "
            "H = −Σ a ln a, with a minus in front.",
            lambda weights: products(weights).sum(-1),
        ),
        Misconception(
            "summed over the queries",
            "You sum down the columns. Each query has an entropy: sum over its keys, the last "
            "axis.",
            lambda weights: -products(weights).sum(-2),
        ),
        Misconception(
            "averaged over the keys",
            "You take the mean over the keys, so that your result is n times too small. The "
            "weights in the formula are the average already: sum.",
            lambda weights: -products(weights).mean(-1),
        ),
        Misconception(
            "one number for the whole map",
            "You sum over everything. (`weights[weights > 0]` does it by the way: it flattens all "
            "rows into one list.) Each query has an entropy of its own: sum over the last axis.",
            lambda weights: -products(weights).sum(),
        ),
        Misconception(
            "averaged over the queries",
            "You return the mean entropy of all queries. Asked for is one number for each of them, "
            "the shape of `weights` without its last axis.",
            lambda weights: -products(weights).sum(-1).mean(),
        ),
        Misconception(
            "divided by ln n",
            "You divide by the largest possible entropy, which makes the result 1 for equal "
            "weights. Asked for is the entropy itself.",
            lambda weights: -products(weights).sum(-1) / math.log(weights.shape[-1]),
        ),
        Misconception(
            "another softmax",
            "You apply a softmax. `weights` are weights already: they sum to 1.",
            lambda weights: -products(weights.softmax(-1)).sum(-1),
        ),
        Misconception(
            "the number of keys",
            "You return exp(H), the number of keys that the query listens to. Asked for is H.",
            lambda weights: (-products(weights).sum(-1)).exp(),
        ),
        Misconception(
            "the logarithms are not weighted",
            "You sum −ln a alone. Each logarithm counts as much as its weight: −Σ a ln a.",
            lambda weights: -weights.log().sum(-1),
        ),
        Misconception(
            "squares in place of logarithms",
            "You return 1 − Σ a². That measures spread too (Gini's index), but it is not the "
            "entropy −Σ a ln a.",
            lambda weights: 1 - weights.square().sum(-1),
        ),
        Misconception(
            "ln(1 + a)",
            "`log1p(a)`, or `log(a + 1)`, is finite at 0, but it is another function: ln(1 + a). "
            "Take care of the zeros and leave the others as they are.",
            lambda weights: -(weights * weights.log1p()).sum(-1),
        ),
        Misconception(
            "a guard that shows",
            "You add a small number such as 1e-9 inside the logarithm. It lowers every entropy by "
            "n times as much, also where no weight is 0. Treat the zeros apart "
            "(`torch.xlogy`, `torch.where`, `clamp`), or make the guard 1e-12 or less.",
            lambda weights: -(weights * (weights + 1e-9).log()).sum(-1),
        ),
        Misconception(
            "the weights are normalised anew",
            "Your entropies are right, but you divide the weights by their sum first (as "
            "`torch.distributions.Categorical` does), and that adds a term to the gradient. They "
            "sum to 1 already: −Σ a ln a, with nothing around it.",
            lambda weights: -products(weights / weights.sum(-1, keepdim=True)).sum(-1),
        ),
        Misconception(
            "the axis of the keys is kept",
            "Your result has a last axis of length 1 (`keepdim=True`). There is one number for "
            "each query: shape `weights.shape[:-1]`.",
            lambda weights: -products(weights).sum(-1, keepdim=True),
        ),
        Misconception(
            "the zeros are overwritten",
            "Your entropies are right, but `weights[weights == 0] = …` writes into the caller's "
            "tensor. `weights.masked_fill(weights == 0, 1)` makes a new one.",
            zeros_replaced_in_place,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda weights: -products(weights.detach()).sum(-1),
        ),
    ),
    hints=(
        "Write −Σ a ln a for one row first; the last axis of `weights` holds a row.",
        "What is 0 · ln 0 on a computer, and what should it be? ln 1 = 0 may help.",
        "`weights.masked_fill(weights == 0, 1).log()` is the logarithm with 0 in place of −∞.",
    ),
)

JACOBIAN = Exercise(
    target="scaling.softmax_jacobian",
    reference=scaling.softmax_jacobian,
    section="Chapter 7, “How the weights move with their scores”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        Criterion("diag(p) − p pᵀ of one row", 3, jacobian_values),
        Criterion("of each row of a batch by itself", 2, jacobian_batch),
        Criterion("one weight, one row, any memory layout", 1, jacobian_shapes),
        Criterion("float32 and saturated weights", 1, jacobian_numbers),
        Criterion("gradients reach p", 1, jacobian_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the sign off the diagonal",
            "Your diagonal is right, and the rest has the wrong sign. What one key gains the "
            "others lose: off the diagonal stands −p_i p_j, and every row sums to 0.",
            wrong_off_diagonal,
        ),
        Misconception(
            "all signs reversed",
            "You return p pᵀ − diag(p). A higher score means a higher weight: the diagonal is "
            "positive.",
            lambda p: outer(p) - torch.diag_embed(p),
        ),
        Misconception(
            "diag(p) is missing",
            "You return −p pᵀ alone. A weight also grows with its own score: p_i is added on the "
            "diagonal.",
            lambda p: -outer(p),
        ),
        Misconception(
            "p pᵀ is missing",
            "You return diag(p). Raising one score also raises the sum that all weights are "
            "divided by: from diag(p) the products p_i p_j are taken away.",
            lambda p: torch.diag_embed(p),
        ),
        Misconception(
            "each weight by its own score only",
            "Your matrix has p_i (1 − p_i) on the diagonal and 0 elsewhere, as for a sigmoid. In a "
            "softmax every weight depends on every score: off the diagonal stands −p_i p_j.",
            lambda p: torch.diag_embed(p - p**2),
        ),
        Misconception(
            "a vector in place of a matrix",
            "You return p (1 − p), the diagonal alone. There are n weights and n scores, so the "
            "Jacobian is (..., n, n).",
            lambda p: p - p**2,
        ),
        Misconception(
            "the identity in place of diag(p)",
            "You return I − p pᵀ. On the diagonal stands p_i − p_i², not 1 − p_i²: the first "
            "term is p_i δ_ij.",
            lambda p: eye(p) - outer(p),
        ),
        Misconception(
            "p_i twice where p_j belongs",
            "You compute p_i (δ_ij − p_i), so that a row has one number everywhere off the "
            "diagonal. The second factor belongs to the score that moves: p_i (δ_ij − p_j).",
            lambda p: p[..., :, None] * (eye(p) - p[..., :, None]),
        ),
        Misconception(
            "the dot product in place of the outer product",
            "You take away p · p, one number. p pᵀ is a matrix, the products of every entry with "
            "every other: `p[..., :, None] * p[..., None, :]`.",
            lambda p: torch.diag_embed(p) - (p * p).sum(-1)[..., None, None],
        ),
        Misconception(
            "another softmax",
            "You apply a softmax to p. The argument holds the weights, which have been through it.",
            lambda p: right_jacobian(p.softmax(-1)),
        ),
        Misconception(
            "one row only",
            "`torch.diag` and `torch.outer` take a single row. With rows in front, "
            "`torch.diag_embed(p)` makes a matrix of each, and `p[..., :, None] * p[..., None, :]` "
            "the products.",
            lambda p: torch.diag(p) - torch.outer(p, p),
        ),
        Misconception(
            ".T on a batch",
            "`.T` turns all axes around, those of the batch too. `.mT` swaps the last two only.",
            plain_transpose,
        ),
        Misconception(
            "every row by the scores of every row",
            "Your result has the shape (..., n, ..., n), as `torch.autograd.functional.jacobian` "
            "of a whole batch has. Rows do not depend on each other; asked for is one matrix for "
            "each: (..., n, n).",
            all_rows_by_all_rows,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but they have no history: `.detach()`, `.numpy()` or "
            "`torch.no_grad()` cut it, and so does a Jacobian from autograd without "
            "`create_graph=True`. Compute it from p by torch operations.",
            lambda p: right_jacobian(p.detach()),
        ),
    ),
    hints=(
        "Entry (i, j) is p_i (δ_ij − p_j). Write it for p = (1/2, 1/4, 1/4) by hand.",
        "`torch.diag_embed` puts each row of p on the diagonal of a matrix of its own.",
        "`p[..., :, None] * p[..., None, :]` has p_i p_j in place (i, j), behind any batch.",
    ),
)

EXERCISES = (VARIANCE, SCALE, ENTROPY, JACOBIAN)
