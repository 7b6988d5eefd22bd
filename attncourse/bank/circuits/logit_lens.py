"""The exercise ``logit_lens``: what a model would say if it stopped here."""

import numpy as np
import torch

from attncourse import circuits
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def gains(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


CASES = CaseTable({"hidden": "... d", "gain": Drawn("d", gains), "table": "n_vocab d"})
FLOAT_CASES = CaseTable({"hidden": "... d", "gain": "d", "table": "n_vocab d"})
ROWS, FLOAT_ROWS = standard(CASES), standard(FLOAT_CASES)
BY_HAND = Case((tensor([[3, 4], [0, 2]]), tensor([1, 2]), tensor([[1, 0], [0, 1], [1, 1]])))
BATCH_ROW = row("d=5 n_vocab=7", batch=(3,))
HIDDEN_FAR_FROM_0 = {"hidden": Drawn("... d", lambda rng, shape: rng.normal(size=shape) + 5)}

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_logit_lens(
    centre=as_it_is,
    average=lambda squares: squares.mean(-1, keepdim=True),
    eps=1e-5,
    root=lambda size: size.sqrt(),
    divide=lambda hidden, size: hidden / size,
    scale=lambda normed, gain: gain * normed,
    rows=as_it_is,
    say=lambda normed, table: normed @ table.mT,
    finish=as_it_is,
):
    """Return ``logit_lens`` made of decisions."""

    def logit_lens(hidden, gain, table):
        x = centre(hidden)
        size = root(average(x.square()) + eps)
        return finish(say(scale(divide(x, size), gain), rows(table)))

    return logit_lens


def divide_with_eps_outside(hidden, size):
    return hidden / (hidden.square().mean(-1, keepdim=True).sqrt() + 1e-5)


def divide_by_deviation(correction: int):
    """Return a ``divide`` by the standard deviation, not by the root of the mean square."""
    return lambda hidden, size: (
        hidden / (hidden.var(-1, correction=correction, keepdim=True) + 1e-5).sqrt()
    )


def rms_normed(x):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5)


def subtract_mean(x):
    return x - x.mean(-1, keepdim=True)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    circuits.logit_lens,
    section="Chapter 19, “Who knew it when”",
    difficulty=1,
    minutes=8,
    criteria=(
        CASES.criterion("the norm, then the table", 3).on(
            BY_HAND,
            BATCH_ROW,
            row("d=5 n_vocab=11"),
            row("d=7 n_vocab=7", batch=(7,), note="as many tokens as features and words"),
            BATCH_ROW.but(arguments=HIDDEN_FAR_FROM_0, note="rows far from 0"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one feature, one word, float32, large and small entries, zeros", 1).on(
            row("d=1 n_vocab=3", batch=(2,), note="one feature"),
            row("d=4 n_vocab=1", batch=(3,), note="one word"),
            BATCH_ROW.but(zero=("hidden",), note="rows of zeros"),
            BATCH_ROW.but(zero=("gain",), note="a gain of 0"),
            BATCH_ROW.but(zero=("table",), note="a table of zeros"),
            BATCH_ROW.but(factor={"hidden": 0.003}, note="entries near eps"),
            *ROWS.numbers,
            once_more(BY_HAND),
        ),
        FLOAT_CASES.criterion("gradients reach all three", 1).on(*FLOAT_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_logit_lens,
        mistake("""no final norm
            You multiply the stream by the table as it is. The model normalises before its last
            layer: `rms_norm(hidden, gain)`.""")
        .by(divide=lambda hidden, size: hidden)
        .by(divide=lambda hidden, size: hidden, scale=lambda normed, gain: normed),
        mistake("""the gain is left out
            You normalise without the gain. The final norm's gain belongs to it: `rms_norm(hidden,
            gain)`.""").by(scale=lambda normed, gain: normed),
        mistake("""the mean is taken off
            You subtract each row's mean, as chapter 12's layer norm does. An RMS norm leaves it
            in.""").by(centre=subtract_mean),
        mistake("""the norm is not of each vector by itself
            You normalise over the tokens, or all numbers together. Each vector is normalised by
            itself, over its features: axis −1.""")
        .by(average=lambda squares: squares.mean(-2, keepdim=True) if squares.ndim > 1 else squares)
        .by(average=lambda squares: squares.mean(-min(squares.ndim, 2), keepdim=True))
        .by(average=lambda squares: squares.mean()),
        mistake("""rows of length 1
            You divide by the length of a vector, the root of the *sum* of squares. An RMS norm
            divides by the root of their mean.""").by(
            average=lambda squares: squares.sum(-1, keepdim=True)
        ),
        mistake("""divided by the mean square
            You divide by the mean square itself. It is its root that has the unit of the
            vector.""").by(root=as_it_is),
        mistake("""divided by the standard deviation
            You divide by the standard deviation, in which each row's mean is taken off. An RMS norm
            divides by the root of the mean square, mean left in.""")
        .by(divide=divide_by_deviation(1))
        .by(divide=divide_by_deviation(0)),
        mistake("""eps is added after the root
            You add eps to the root. It belongs under it: `(mean_square + eps).sqrt()`.""").by(
            divide=divide_with_eps_outside
        ),
        mistake("""another eps
            Your norm adds another number than 1e-5, or none, under its root. It is chapter 18's
            `rms_norm` as it stands.""")
        .by(eps=1e-6)
        .by(eps=0.0)
        .by(eps=1e-8),
        mistake("""the table is normalised too
            You normalise the rows of the table, or compare by cosine. The last layer is a plain
            product, in which long rows count more.""")
        .by(rows=lambda table: torch.nn.functional.normalize(table, dim=-1))
        .by(rows=rms_normed),
        mistake("""the table is not transposed
            A row of the table belongs to a word, so the logits are `… @ table.T`. You multiply by
            the table itself.""").by(say=lambda normed, table: normed @ table),
        mistake("""probabilities come back
            You return probabilities or their logs. Return logits, before any softmax.""")
        .by(finish=lambda logits: logits.softmax(-1))
        .by(finish=lambda logits: logits.log_softmax(-1)),
        mistake("""words come back
            You return the likeliest word. Return a logit for each.""").by(
            finish=lambda logits: logits.argmax(-1)
        ),
        mistake("""the last token alone
            You return the logits of the last row. Every vector of `hidden` has its own.""").by(
            finish=lambda logits: logits[..., -1, :] if logits.ndim > 1 else logits
        ),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1.
        """).by(scale=lambda normed, gain: (1 + gain) * normed),
        mistake("""gain is added
            You add gain. The normalised vector is multiplied by it.""").by(
            scale=lambda normed, gain: normed + gain
        ),
        mistake("""the gain comes before the norm
            You multiply by gain and normalise then. The norm comes first: `gain · (x / rms)`.
        """)
        .by(scale=lambda normed, gain: rms_normed(gain * normed))
        .by(
            divide=lambda hidden, size: hidden, scale=lambda hidden, gain: rms_normed(gain * hidden)
        ),
        mistake("""the logits are normalised
            You multiply by the table first and normalise the logits. It is the vector that is
            normalised, before its product with the table.""")
        .by(divide=lambda hidden, size: hidden, finish=rms_normed)
        .by(finish=rms_normed),
        mistake("""no tensor comes back
            You return a NumPy array, or lists. Logits are a torch tensor, through which gradients
            can flow: stay with torch operations.""")
        .by(finish=lambda logits: logits.detach().numpy())
        .by(finish=lambda logits: logits.tolist()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of `hidden`.""").by(
            centre=lambda x: x.float(),
            say=lambda normed, table: normed.float() @ table.float().mT,
        ),
    ),
)
