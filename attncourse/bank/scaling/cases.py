"""Cases that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.exercise import Rng
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import row
from attncourse.checks.writing.softmaxes import Softmax


def random_weights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return random weights, none of them 0, that sum to 1 along the last axis."""
    return Softmax()(rng.normal(size=shape))


def saturated_weights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return Softmax()(30 * rng.normal(size=shape))


BATCH_OF_THREE = row("n=5", batch=(3,))
ARE_WEIGHTS = "The entries are weights, none below 0, and their sum is 1."
ONLY_WEIGHTS = (
    cases.FLOATS_ONLY,
    ("a row of very small numbers", ARE_WEIGHTS),
    ("a row of very large numbers", ARE_WEIGHTS),
    ("entries that cancel", ARE_WEIGHTS),
)
