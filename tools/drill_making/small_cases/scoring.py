"""Small cases of chapter 6: vectors of two or three features, one weight matrix."""

from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import module_case, tensor


def bilinear_score_cases() -> list[Case]:
    """Return cases of ``BilinearScore``: a batch of two."""
    query = tensor([[[1, 0]], [[0, 2]]])
    key = tensor([[[1, 0, 1], [0, 1, 0], [2, 0, 0]], [[0, 1, 1], [1, 1, 0], [0, 0, 3]]])
    W = tensor([[1, 2, 0], [0, 1, 3]])
    return [
        module_case("BilinearScore", (2, 3), {"W": W}, {"query": query, "key": key}),
        module_case("BilinearScore", (2, 3), {"W": W}, {"query": query[0], "key": key[0]}),
    ]


def attend_cases() -> list[Case]:
    """Return cases of ``attend``: two rows of scores, three values."""
    scores = tensor([[0, 1, 2], [1, 0, 0]])
    values = tensor([[6, 0], [0, 3], [1, 1]])
    square = tensor([[4, 0, 0], [0, 2, 0], [1, 1, 1]])
    return [Case((scores, values)), Case((tensor([[0, 1, 2], [1, 0, 0], [0, 3, 0]]), square))]


CASES = {"scoring.BilinearScore": bilinear_score_cases, "scoring.attend": attend_cases}
