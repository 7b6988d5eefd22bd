"""The exercise ``perplexity``: how many equally likely tokens would surprise as much."""

import math

import torch

from attncourse import gpt
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def batch_case(rng: Rng, *, tensors: bool = False, size: int = 5, loss: float = 3.0) -> Case:
    losses, counts = rng.uniform(0.5, loss, size), rng.integers(3, 60, size)
    if tensors:
        return Case((torch.from_numpy(losses), torch.from_numpy(counts)), note="tensors")
    return Case((losses.tolist(), counts.tolist()))


BY_HAND = Case(([math.log(2), math.log(8)], [30, 10]), note="of 40 targets 30 are like coins")

# --- decisions and mistakes ----------------------------------------------------------------------


def as_doubles(x):
    return torch.as_tensor(x, dtype=torch.float64)


@composition
def compose_perplexity(
    read=as_doubles,
    counting=lambda losses, counts: counts,
    total=lambda losses, counts: (losses * counts).sum(),
    by=lambda losses, counts: counts.sum(),
    exponential=torch.exp,
    finish=float,
):
    """Return ``perplexity`` made of decisions."""

    def perplexity(losses, counts):
        losses, counts = read(losses), read(counts)
        counts = counting(losses, counts)
        return finish(exponential(total(losses, counts) / by(losses, counts)))

    return perplexity


def mean_of_perplexities(losses, counts):
    """Return the weighted mean of the batches' perplexities."""
    losses, counts = as_doubles(losses), as_doubles(counts)
    return float((losses.exp() * counts).sum() / counts.sum())


def mean_of_perplexities_in_python(losses, counts):
    """Return it by Python's own exponential, which refuses what is too large."""
    pairs = zip(map(float, losses), map(float, counts), strict=True)
    return sum(math.exp(loss) * count for loss, count in pairs) / float(sum(counts))


def unweighted_mean_of_perplexities(losses, counts):
    return float(as_doubles(losses).exp().mean())


def root_of_product(losses, counts):
    """Return the inverse of the root of the product of all shares."""
    total = sum(int(count) for count in counts)
    product = math.prod(
        math.exp(-float(loss)) ** int(count) for loss, count in zip(losses, counts, strict=True)
    )
    return product ** (-1 / total)


MISTAKES = made(
    compose_perplexity,
    mistake("""exp of the summed loss
        You raise e to the loss of the whole text, which grows without end. Weigh each loss by its
        count, add up, divide by the sum of the counts, and then exp.""")
    .by(by=lambda losses, counts: 1)
    .by(total=lambda losses, counts: losses.sum(), by=lambda losses, counts: 1),
    mistake("""all batches count alike
        You average the losses as they are. A batch of few tokens then counts as much as one of
        many: weigh each loss by its count.
    """)
    .by(total=lambda losses, counts: losses.sum(), by=lambda losses, counts: len(losses))
    .by(
        total=lambda losses, counts: losses[counts > 0].sum(),
        by=lambda losses, counts: (counts > 0).sum(),
    ),
    mistake("""divided by the number of batches
        You weigh by the counts and divide by the number of batches. Divide by the sum of the
        counts.""").by(by=lambda losses, counts: len(losses)),
    mistake("""means taken for sums
        You add the losses up and divide by all tokens. Each loss is a mean already: multiply it by
        its count first.""").by(total=lambda losses, counts: losses.sum()),
    mistake("""a batch of loss 0 is left out
        You leave out batches whose loss is 0. What says that a batch counts nothing is its count:
        targets that were certain have a loss of 0 and count.
    """).by(counting=lambda losses, counts: counts * (losses != 0)),
    mistake("""a batch that counts nothing makes NaN
        You divide by each count, and one of them may be 0. Only the sum of the counts is divided
        by.""").by(total=lambda losses, counts: (losses * (counts * counts / counts)).sum()),
    mistake("""one number in an array
        You return an array of one number, and not the number itself: `.item()`, or `float(…)`.""")
    .by(finish=lambda x: x.reshape(1))
    .by(finish=lambda x: x.reshape(1).numpy())
    .by(read=lambda x: as_doubles(x).reshape(1, -1), finish=lambda x: x.reshape(1, 1)),
    mistake("""no exp
        You return the mean loss in nats. The perplexity is e to that power.
    """).by(exponential=lambda x: x),
    mistake("""another base than e
        Losses in nats belong to e. 2 to the power of the loss is right for losses in bits.""")
    .by(exponential=lambda x: 2**x)
    .by(exponential=lambda x: (x / math.log(2)).exp())
    .by(exponential=lambda x: 10**x),
    mistake("""the share and not its inverse
        You return exp(−loss), the mean share. The perplexity is its inverse, at least 1.
    """).by(exponential=lambda x: (-x).exp()),
    mistake("""single precision
        `torch.tensor` makes float32 of Python's numbers, and seven digits are left. Say
        `dtype=torch.float64`, or stay with Python's own numbers and `math.exp`.""")
    .by(read=lambda x: torch.as_tensor(x).float())
    .by(read=lambda x: torch.as_tensor(x).float(), finish=lambda x: x)
    .by(read=torch.as_tensor)
    .by(read=torch.as_tensor, finish=lambda x: x),
    mistake("""the last batch alone
        You return the perplexity of one batch. All of them are asked for.""")
    .by(total=lambda losses, counts: losses[-1], by=lambda losses, counts: 1)
    .by(total=lambda losses, counts: losses[0], by=lambda losses, counts: 1),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    gpt.perplexity,
    section="Chapter 13, “A loss with a floor”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("exp of the mean over all tokens", 3).on(
            lambda rng: [BY_HAND, *(batch_case(rng) for _ in range(3))]
        ),
        Criterion("lists or tensors, one batch or many", 1).on(
            lambda rng: [
                batch_case(rng, tensors=True),
                batch_case(rng, size=1),
                batch_case(rng, size=40),
                Case(([1.5, 2.5, 0.5], [7, 0, 3]), note="a batch in which nothing counts"),
            ]
        ),
        Criterion("long texts and large losses", 1).on(
            lambda rng: [
                Case((rng.uniform(3, 9, 30).tolist(), rng.integers(2000, 9000, 30).tolist())),
                Case(([800.0, 2.0], [1, 4000]), note="one loss of 800"),
                Case(([0.0, 0.0], [5, 7]), note="no surprise at all"),
                Case(([0.0, 1.5], [3, 4]), note="three targets that were certain"),
                once_more(BY_HAND),
            ]
        ),
        unchanged(),
    ),
    mistakes=(
        *MISTAKES,
        mistake("""the mean of perplexities
            You raise e to each loss and average then. The losses are averaged, and exp comes
            last.
        """).whole(
            mean_of_perplexities, mean_of_perplexities_in_python, unweighted_mean_of_perplexities
        ),
        mistake("""all shares are multiplied first
            The product of the shares of a long text is 0 in floating point. Add their logarithms,
            which is what the losses are.
        """).whole(root_of_product),
    ),
)
