"""Cases that several of the chapter's exercises share."""

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Rng, unchanged
from attncourse.checks.writing.cases import CaseTable, Drawn, normal, once_more, row, standard

TOKENS = CaseTable({"X": "... n d"}, tensors=False, how=normal)
ROWS = standard(TOKENS, d=3)
BY_HAND = Case((np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]),))
# The first token's score with itself is 9, with the second one 900.
LONG_TOKENS = Case((np.array([[3.0, 0], [300, 10], [-25, 0], [0, 2]]),), note="long tokens")


def tokens_of_many_lengths(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    directions = rng.normal(size=shape)
    lengths = np.array([[40.0], [35.0], [0.5], [30.0], [45.0]])
    return lengths * directions / np.linalg.norm(directions, axis=-1, keepdims=True)


TOKENS_OF_MANY_LENGTHS = {"X": Drawn("n d", tokens_of_many_lengths)}


def criteria_of_tokens(first: str) -> tuple[Criterion, ...]:
    return (
        TOKENS.criterion(first, 3).on(
            BY_HAND, row("n=7 d=3"), row("n=5 d=11", factor=0.5, note="more features than tokens")
        ),
        TOKENS.criterion("any number of tokens and features", 1).on(
            row("n=1 d=3", note="n = 1"),
            row("n=7 d=3", turned=True, note="X not contiguous in memory"),
            row("n=5 d=5", note="as many features as tokens"),
        ),
        TOKENS.criterion("batches", 1).on(*ROWS.batches),
        TOKENS.criterion("large, small and whole numbers, float32", 1).on(
            row(
                "n=5 d=3",
                arguments=TOKENS_OF_MANY_LENGTHS,
                note="scores in the thousands, one short vector",
            ),
            LONG_TOKENS,
            Case((BY_HAND.args[0].astype(int),), note="whole numbers"),
            ROWS.single,
            *ROWS.extreme,
            once_more(BY_HAND),
        ),
        unchanged(),
    )
