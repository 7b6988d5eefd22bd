"""The exercise ``normed_scores``: scores of normed queries and keys."""

import numpy as np
import torch

from attncourse import today
from attncourse.bank.today.mistakes import mean_square, normed_rows
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def gains(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


CASES = CaseTable(
    {
        "query": "... m d",
        "key": "... n d",
        "gain_q": Drawn("d", gains),
        "gain_k": Drawn("d", gains),
    }
)
FLOAT_CASES = CaseTable({"query": "... m d", "key": "... n d", "gain_q": "d", "gain_k": "d"})
ROWS, FLOAT_ROWS = standard(CASES), standard(FLOAT_CASES)
ROW = row("m=5 n=7 d=4")
BY_HAND = Case(
    (
        tensor([[1, 1, 1, 1], [0, 6, 0, 0]]),
        tensor([[5, 5, 5, 5], [2, 0, 0, 0]]),
        tensor([1, 1, 1, 1]),
        tensor([1, 2, 3, 4]),
    ),
    note="d = 4: vectors of equal numbers become ones",
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_normed_scores(
    sides=(True, True),
    prepare=as_it_is,
    average=mean_square,
    guess=as_it_is,
    root=lambda square, eps: (square + eps).sqrt(),
    divide=lambda x, size: x / size,
    scale=lambda x, gain: gain * x,
    gains=lambda gain_q, gain_k: (gain_q, gain_k),
    after=as_it_is,
    compare=decisions.products,
    factor=decisions.by_root_of_d_k,
    finish=lambda scores, query, key: scores,
):
    """Return ``normed_scores`` made of decisions; ``sides`` says which of the two are normed."""

    def normed(x, gain, eps, is_normed):
        x = prepare(x)
        x = divide(x, root(average(x), eps)) if is_normed else x
        return after(scale(x, gain))

    def normed_scores(query, key, gain_q, gain_k, eps=1e-6):
        eps, both_gains = guess(eps), gains(gain_q, gain_k)
        query, key = (
            normed(x, gain, eps, is_normed)
            for x, gain, is_normed in zip((query, key), both_gains, sides, strict=True)
        )
        return finish(compare(query, key) * factor(query, key, key), query, key)

    return normed_scores


def rotate_by_place(x):
    """Turn x by chapter 11's rotation at the places 0, 1, …; an odd feature stays."""
    half = x.shape[-1] // 2
    place = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
    angle = place * 10000.0 ** (-torch.arange(half, dtype=x.dtype) / max(half, 1))
    first, second = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    pairs = torch.stack(
        [
            first * angle.cos() - second * angle.sin(),
            first * angle.sin() + second * angle.cos(),
        ],
        -1,
    )
    return torch.cat([pairs.flatten(-2), x[..., 2 * half :]], -1)


def variance_for_mean_square(correction: int):
    return lambda x: x.var(-1, correction=correction, keepdim=True)


def subtract_mean(x):
    return x - x.mean(-1, keepdim=True)


def mean_square_over_heads(x):
    """Return the mean square over the axis of the heads, too, where there is one."""
    return x.square().mean((-3, -1) if x.ndim > 2 else -1, keepdim=True)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    today.normed_scores,
    section="Chapter 21, “Scores with a bound”",
    difficulty=1,
    minutes=10,
    criteria=(
        CASES.criterion("queries and keys through their norms, then the scores", 3).on(
            BY_HAND, ROW, row("m=6 n=6 d=5"), row("m=3 n=4 d=8")
        ),
        CASES.criterion("each norm has its own gain", 1).on(
            ROW.but(zero=("gain_q",), note="gain_q of 0"),
            ROW.but(zero=("gain_k",), note="gain_k of 0"),
            ROW.but(factor={"gain_q": 3.0}),
        ),
        CASES.criterion("eps where it is given", 1).on(
            ROW.but(arguments={"eps": 0.5}), ROW.but(arguments={"eps": 1e-3}, batch=(2,))
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one query or key, one feature, float32, large and small", 1).on(
            row("m=1 n=5 d=3", note="one query"),
            row("m=4 n=1 d=3", note="one key"),
            row("m=4 n=3 d=1", note="one feature"),
            *ROWS.numbers,
            once_more(BY_HAND),
        ),
        FLOAT_CASES.criterion("gradients reach queries, keys and gains", 1).on(
            *FLOAT_ROWS.gradients
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_normed_scores,
        mistake("""only one of the two is normalised
            You normalise the queries and take the keys as they come, or the other way round. Both
            go through a norm: one that is left out can still make a score as large as it likes.""")
        .by(sides=(True, False))
        .by(sides=(False, True)),
        mistake("""no norm
            You multiply by the gains and compare. Before that each vector is divided by the root of
            its mean square.""").by(sides=(False, False)),
        mistake("""the norm runs over the sequence
            You average over the tokens of a feature. A norm belongs to one vector: average over its
            features, the last axis, `dim=-1`.""")
        .by(average=lambda x: x.square().mean(-2, keepdim=True))
        .by(average=lambda x: x.square().mean(0, keepdim=True)),
        mistake("""one norm for all heads
            You average over the axis of the heads as well, as a norm over all of them at once does.
            Here each head's vector is a row of its own: average over the last axis alone.""").by(
            average=mean_square_over_heads
        ),
        mistake("""one norm for everything
            You divide all vectors by one number. Each has its own mean square, over the last
            axis.""")
        .by(average=lambda x: x.square().mean())
        .by(average=lambda x: x.square().mean((-2, -1), keepdim=True)),
        mistake("""vectors of length 1
            You divide by the length, the root of the *sum* of squares, which gives cosines. An RMS
            norm divides by the root of their mean: lengths become √d.""").by(
            average=lambda x: x.square().sum(-1, keepdim=True)
        ),
        mistake("""the mean is taken off
            You subtract the mean of the features first, as a layer norm does. An RMS norm takes
            nothing off.""")
        .by(prepare=subtract_mean)
        .by(average=variance_for_mean_square(0))
        .by(average=variance_for_mean_square(1)),
        mistake("""divided by the mean square
            You divide by the mean square itself. It is its root that has the unit of the
            vector.""").by(root=lambda square, eps: square + eps),
        mistake("""the mean of the sizes
            You divide by the mean of the absolute values. It is the root of the mean *square*.
        """).by(
            average=lambda x: x.abs().mean(-1, keepdim=True), root=lambda size, eps: size + eps
        ),
        mistake("""eps is added after the root
            You add eps to the root. It belongs under it: `(mean_square + eps).sqrt()`.""").by(
            root=lambda square, eps: square.sqrt() + eps
        ),
        mistake("""another eps
            You add another number than 1e-6 under the root, or none, whatever `eps` is.""")
        .by(guess=lambda eps: 1e-5)
        .by(guess=lambda eps: 0.0)
        .by(guess=lambda eps: 1e-8)
        .by(guess=lambda eps: 1e-12),
        mistake("""eps is ignored
            Your norms add 1e-6 also where another eps is given. Use the argument.""").by(
            guess=lambda eps: 1e-6
        ),
        mistake("""one gain for both
            You multiply queries and keys by the same gain. Each has its own: `gain_q` for the
            queries, `gain_k` for the keys.""")
        .by(gains=lambda gain_q, gain_k: (gain_q, gain_q))
        .by(gains=lambda gain_q, gain_k: (gain_k, gain_k)),
        mistake("""the gains are left out
            You normalise and compare. What is normalised is multiplied by its gain, feature by
            feature.""")
        .by(scale=lambda x, gain: x)
        .by(gains=lambda gain_q, gain_k: (gain_q, torch.ones_like(gain_k)))
        .by(gains=lambda gain_q, gain_k: (torch.ones_like(gain_q), gain_k)),
        mistake("""the gain comes before the norm
            You multiply by the gain and normalise then. The norm comes first: `gain · (x / rms)`.
        """).by(prepare=as_it_is, divide=lambda x, size: x, scale=lambda x, g: normed_rows(g * x)),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1.
        """).by(scale=lambda x, gain: (1 + gain) * x),
        mistake("""gain is added
            You add the gain. The normalised vector is multiplied by it.""").by(
            scale=lambda x, gain: x + gain
        ),
        mistake("""turned by their places
            You turn queries and keys by their positions as well. A model does that after the norm,
            where it has positions; this function gets vectors and returns their scores.""")
        .by(after=rotate_by_place)
        .by(prepare=rotate_by_place),
        mistake("""the scores are normalised
            You compare the vectors as they come and normalise each row of scores. It is queries and
            keys that go through the norm, before their products.""").by(
            sides=(False, False), finish=lambda scores, query, key: normed_rows(scores)
        ),
        *(recipe.naming(d_k="d") for recipe in mistakes.OF_THE_SCALE),
        mistakes.DIVIDED_BY_ROOT_M,
        mistakes.ALREADY_WEIGHTS,
        mistakes.SQUASHED,
        mistakes.ROLES_EXCHANGED,
        mistakes.ONLY_PAIRS,
        mistakes.T_ON_A_BATCH,
        mistakes.AXES_0_AND_1,
        mistakes.AXES_1_AND_2,
        mistakes.NO_BATCH,
        mistakes.RESHAPED,
        mistakes.OTHER_SEQUENCES,
        mistake("""the norm has no gradient
            You take the root of the mean square as a constant: `.detach()` or `.item()`. The
            numbers are right, their gradients are not: the norm is part of what is learned
            through.""").by(divide=lambda x, size: x / size.detach()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of the queries.""").by(
            prepare=lambda x: x.float(), scale=lambda x, gain: gain.float() * x
        ),
        mistake("""queries and keys are changed
            You divide in place (`/=`, `div_`), which changes the vectors of whoever called. Make
            new ones.""").by(divide=lambda x, size: x.data.div_(size)),
    ),
)
