"""Decisions and mistakes that several of the chapter's exercises share."""


def mean_square(x):
    return x.square().mean(-1, keepdim=True)


def normed_rows(x, eps=1e-6):
    return x / (mean_square(x) + eps).sqrt()
