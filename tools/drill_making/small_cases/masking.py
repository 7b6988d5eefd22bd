"""Small cases of chapter 10: scores far from 0, three keys."""

import torch

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor


def far_scores() -> list[Case]:
    """Return cases of ``masked_softmax``: allowed scores below a number put in the place of −∞."""
    mask = torch.tensor(((1, 0, 1), (1, 1, 0))).bool()
    return [
        Case((tensor(((-20000, 0, -20000), (-30000, -30001, 5))), mask)),
        Case((tensor(((-2e9, 0, -2e9), (-3e9, -3e9, 5))), mask)),
    ]


CASES = {"masking.masked_softmax": far_scores}
