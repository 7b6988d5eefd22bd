"""Definitions that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.writing import softmaxes as soft
from attncourse.checks.writing.recipes import mistake

TWO_ROWS = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 3.0, -1.0, 2.0]])

OTHER_MAXIMUM = (
    mistake("""a maximum along another axis
    You subtract from each score the largest of another axis, so that scores which share a sum are
    moved by different numbers, and their weights change. Both run along the same axis.""")
    .by(top=lambda z, axis, x: z.max(axis=0))
    .by(top=lambda z, axis, x: z.max(axis=-2, keepdims=True) if z.ndim > 1 else 0)
)
OF_AXES = (soft.OVER_QUERIES, soft.OVER_AXIS_0, soft.OVER_AXIS_1, soft.OVER_EVERYTHING)
