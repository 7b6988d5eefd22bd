"""Parts of attention, right and wrong, that the chapters' mistakes are built of."""

import math


def hide(scores, mask):
    """Scores with −∞ wherever the mask forbids."""
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def reversed_axes(x):
    """What ``x.T`` does, without torch's warning."""
    return x.permute(*range(x.ndim - 1, -1, -1))


def no_max_subtracted(scores):
    e = scores.exp()
    return e / e.sum(-1, keepdim=True)


def zero_times_infinity(scores, mask):
    return scores if mask is None else scores + (~mask) * -math.inf
