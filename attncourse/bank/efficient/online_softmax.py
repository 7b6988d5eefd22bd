"""The exercise ``online_softmax``: a softmax's largest score and normaliser in one pass."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from attncourse import efficient
from attncourse.bank.efficient.shared import (
    MAXIMUM_OF_FIRST_BLOCK,
    exponentials,
    finite_maximum,
    maximum_of_block,
    raise_maximum,
    row_maximum,
    shrink_factor,
)
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Drawn,
    Row,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def rising_scores(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return scores whose running maximum moves several times; rows lie below 0, or above."""
    rows = 3 * normal(rng, shape).reshape(-1, shape[-1])
    rows[0::2] -= 18
    rows[1::2] += 6
    return rows.reshape(shape)


@dataclass(frozen=True)
class BlockTable(CaseTable):
    """A table of scores ``n_b`` wide, handed over in blocks of a row's ``sizes``, or of 3.

    ``measured`` has the tensors watched that are made.
    """

    spec: Any = None
    how: Callable = rising_scores

    def case(self, rng: Rng, row: Row) -> Case:
        sizes = row.options.get("sizes", 3)
        drawn = self.arguments(rng, {"blocks": row.arguments.get("blocks", "... m n_b")}, row)
        caller = callers.blocks_measured if "measured" in row.options else callers.call_in_blocks
        widths = f"{sizes} keys" if isinstance(sizes, int) else ", ".join(map(str, sizes)) + " keys"
        note_text = "; ".join(filter(None, (f"blocks of {widths}", row.note)))
        use = partial(caller, sizes)
        return Case((drawn["blocks"],), use=use, note=note_text, shown="online_softmax(blocks)")


def with_infinities(*places: tuple[int, slice]) -> dict[str, Drawn]:
    """Return the argument that has −∞ at these places of these rows."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
        scores = rising_scores(rng, shape)
        for i, columns in places:
            scores[..., i, columns] = -np.inf
        return scores

    return {"blocks": Drawn("... m n_b", draw)}


CASES = BlockTable({"blocks": "... m n_b"})
ROWS = standard(CASES)
ROW = row("m=5 n_b=11")
BY_HAND = Case(
    (tensor(np.log([[1, 2, 8, 4, 1], [5, 1, 1, 3, 9]])),),
    use=partial(callers.call_in_blocks, 2),
    note="blocks of 2 keys; the logarithms of 1, 2, 8, 4, 1 and of 5, 1, 1, 3, 9",
    shown="online_softmax(blocks)",
)

# --- decisions and mistakes ----------------------------------------------------------------------


def list_blocks(blocks):
    return list(blocks)


@composition
def compose_online_softmax(
    read=list_blocks,
    begin=-math.inf,
    raise_to=raise_maximum,
    reference=finite_maximum,
    shrink=shrink_factor,
    weigh=exponentials,
    add_up=lambda weights: weights.sum(-1, keepdim=True),
    join=lambda old, factor, new: old * factor + new,
    returned_maximum=lambda maximum, reference: maximum,
    finish=lambda maximum, normaliser: (maximum, normaliser),
):
    """Return ``online_softmax`` made of decisions; ``reference`` is subtracted from scores."""

    def online_softmax(blocks):
        maximum = normaliser = None
        for scores in read(blocks):
            if maximum is None:
                maximum = torch.full_like(row_maximum(scores), begin)
                normaliser = torch.zeros_like(maximum)
            new = raise_to(maximum, scores)
            subtracted = reference(new)
            block_sum = add_up(weigh(scores, subtracted, maximum))
            normaliser = join(normaliser, shrink(maximum, subtracted), block_sum)
            maximum = new
        return finish(returned_maximum(maximum, reference(maximum)), normaliser)

    return online_softmax


def add_to_normaliser(number: float) -> dict[str, Any]:
    """Return the option that adds a number to the normaliser."""
    return {"finish": lambda maximum, normaliser: (maximum, normaliser + number)}


LOWEST_NUMBERS = tuple(torch.finfo(dtype).min for dtype in (torch.float32, torch.float64))


def join_blocks(blocks):
    return [torch.cat(list(blocks), -1)]


def drop_short_blocks(blocks):
    """Return the blocks without those that are shorter than the first."""
    blocks = list(blocks)
    return [block for block in blocks if block.shape[-1] >= blocks[0].shape[-1]]


def maximum_of_all_rows(old, scores):
    return torch.maximum(old, scores.amax().expand_as(old))


def raise_if_all_rows_rise(old, scores):
    """Return the block's maxima only where every row's rises."""
    return row_maximum(scores) if (row_maximum(scores) > old).all() else old


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    efficient.online_softmax,
    section="Chapter 17, “A softmax in pieces”",
    difficulty=2,
    minutes=20,
    criteria=(
        CASES.criterion("largest score and normaliser, whatever the blocks", 3).on(
            BY_HAND,
            ROW,
            ROW.but(options={"sizes": 1}),
            ROW.but("n_b=7", options={"sizes": (4, 1, 2)}),
            ROW.but("n_b=6", options={"sizes": 20}, note="one block"),
        ),
        CASES.criterion("−∞ among the scores", 2).on(
            ROW.but(arguments=with_infinities((0, slice(0, 3))), note="a first block of −∞"),
            ROW.but(arguments=with_infinities((1, slice(3, 6))), note="a second block of −∞"),
            ROW.but(arguments=with_infinities((2, slice(8, 11))), note="a row that ends in −∞"),
            ROW.but(arguments=with_infinities((3, slice(None))), note="a row of −∞"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32, large and small scores", 1).on(
            *ROWS.numbers,
            ROW.but(factor=1e-7, cancel=True, note="very small scores"),
            ROW.but(factor=200.0, note="scores that exp cannot hold"),
            ROW.but("m=2", note="two queries"),
            ROW.but("m=1", note="one query"),
            ROW.but("m=17 n_b=5", note="many queries"),
            once_more(BY_HAND),
        ),
        CASES.criterion("one block at a time, never all scores together", 1).on(
            ROW.but("m=64 n_b=120", options={"sizes": 10, "measured": True}, factor=4.0),
        ),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("a gradient on blocks alone", "No gradient is asked for through these two numbers."),
    ),
    mistakes=made(
        compose_online_softmax,
        mistake("""the running sum is not rescaled
            When a larger score comes, what you have summed is still measured from the old maximum.
            Multiply it by exp(old maximum − new maximum) before you add.
        """).by(shrink=lambda old, new: 1.0),
        mistake("""rescaled the wrong way round
            You multiply the sum by exp(new − old). The new maximum is larger, and the old sum has
            to shrink: exp(old − new).""")
        .by(shrink=lambda old, new: (new - finite_maximum(old)).exp())
        .by(shrink=lambda old, new: (new - old).exp()),
        mistake("""what was just added is rescaled too
            You add the new block first and rescale then. It is measured from the new maximum
            already: rescale the old sum alone.
        """).by(join=lambda old, factor, new: (old + new) * factor),
        mistake("""each block from its own maximum
            You subtract the block's own maximum from its scores. All that is summed has to be
            measured from one number: the larger of the running maximum and the block's.
        """).by(weigh=lambda s, reference, old: (s - finite_maximum(row_maximum(s))).exp()),
        mistake("""from the maximum before
            You measure the new block from the maximum that was there before it. Take the larger one
            first, then both sums are measured from it.""")
        .by(weigh=lambda s, reference, old: (s - finite_maximum(old)).exp())
        .by(weigh=lambda s, reference, old: (s - old).exp()),
        mistake("""−∞ − (−∞)
            Where a row has seen nothing but −∞, its maximum is −∞, and −∞ − (−∞) is NaN. Subtract 0
            there.""")
        .by(reference=lambda maximum: maximum)
        .by(
            reference=lambda maximum: maximum,
            finish=lambda maximum, normaliser: (maximum, normaliser.nan_to_num()),
        ),
        mistake("""the maximum begins at a number
            Your running maximum starts at a number. A row whose scores all lie below it never gets
            its own maximum; nor does a row of −∞. Start at −∞, or at the first block's.""")
        .by(begin=0.0)
        .by_any(
            lambda number: {"begin": number},
            (
                -1.0,
                1.0,
                *(-(10.0**n) for n in (2, 3, 4, 5, 6, 9, 10, 12, 20, 30, 38)),
                *LOWEST_NUMBERS,
            ),
        ),
        mistake("""a number is added to the sum
            Your sum holds a number that belongs to no key. It begins at 0, and needs no guard.""")
        .by(add_to_normaliser(1e-6))
        .by_any(add_to_normaliser, (1e-8, 1e-7, 1e-5, 1e-4, 1e-3, 1.0)),
        mistake("""no maximum subtracted
            You sum exp(s) and not exp(s − maximum): for large scores that is ∞.""")
        .by(weigh=lambda s, reference, old: s.exp(), shrink=lambda old, new: 1.0)
        .by(
            weigh=lambda s, reference, old: s.exp(),
            shrink=lambda old, new: 1.0,
            finish=lambda maximum, total: (maximum, total / maximum.exp()),
        ),
        mistake("""one maximum for all queries
            You take the largest score of the whole block. Each row has a maximum of its own.
        """).by(raise_to=maximum_of_all_rows),
        mistake("""the smallest score
            You keep the smallest score. Subtracting the largest keeps exp in range.""").by(
            raise_to=lambda old, s: torch.minimum(
                old.masked_fill(old == -math.inf, math.inf), s.amin(-1, keepdim=True)
            )
        ),
        mistake("""the last axis is gone
            You return `(..., m)`. Both are `(..., m, 1)`, so that they fit the scores:
            `keepdim=True`.
        """).by(finish=lambda maximum, normaliser: (maximum[..., 0], normaliser[..., 0])),
        mistake("""the last block is left out
            You stop one block early, or leave out one that is shorter than the others.""")
        .by(read=drop_short_blocks)
        .by(read=lambda blocks: list(blocks)[:-1]),
        mistake("""the first block is left out
            You start from the first block's maximum and forget to count its scores.
        """).by(read=lambda blocks: list(blocks)[1:]),
        mistake("""only the first block counts
            You return after the first block: is the `return` inside the loop? All blocks count.
        """).by(read=lambda blocks: list(blocks)[:1]),
        mistake("""only the last block counts
            You start anew with every block. The sum goes on.""")
        .by(join=lambda old, factor, new: new)
        .by(raise_to=maximum_of_block, join=lambda old, factor, new: new),
        mistake("""the maximum is that of the last block
            You take each block's own maximum for the running one. It never falls:
            `torch.maximum(maximum, scores.amax(…))`.""").by(raise_to=maximum_of_block),
        mistake("""the maximum is never renewed
            You measure every block from the first one's maximum, and return that. Take the larger
            of the two at each block, and rescale what was summed: `torch.maximum(maximum,
            scores.amax(…))`.""")
        .by(MAXIMUM_OF_FIRST_BLOCK | {"reference": lambda maximum: maximum})
        .by(MAXIMUM_OF_FIRST_BLOCK)
        .by(begin=0.0, raise_to=lambda old, scores: old),
        mistake("""the maximum is renewed for all rows or for none
            You ask once for the whole block whether the maximum rises. Each row has a maximum of
            its own, which rises or stays: `torch.maximum` compares entry by entry.
        """).by(raise_to=raise_if_all_rows_rise),
        mistake("""the new block is rescaled, not the sum
            You multiply the new block's sum by exp(old maximum − new maximum). It is measured from
            the new maximum already: what was summed before has to shrink.""").by(
            join=lambda old, factor, new: old + factor * new
        ),
        mistake("""the first block counts twice
            You start with the first block's sum and go through all blocks then, the first one too.
            Start from 0 and −∞, or go on with the second block.
        """).by(read=lambda blocks: [*(all_blocks := list(blocks))[:1], *all_blocks]),
        mistake("""computed in float32
            You convert the scores to float32, or keep both numbers in it. They have the dtype of
            the scores: `torch.full_like`, or `dtype=scores.dtype`.""")
        .by(read=lambda blocks: [block.float() for block in blocks])
        .by(finish=lambda maximum, normaliser: (maximum.float(), normaliser.float())),
        mistake("""all blocks joined first
            You put all scores together and take the softmax's sum in one go. Right numbers, but all
            of them at once are what is to be avoided: look at one block at a time.
        """).by(read=join_blocks),
        mistake("""a second pass over blocks that are gone
            You look for the largest score first and go through the blocks again. They come once:
            the second time there are none.""").by(join=lambda old, factor, new: 0 * new),
        mistake("""−∞ is hidden in the result
            For a row of nothing but −∞ you return 0 as its largest score. It is −∞; only where you
            subtract it does 0 take its place.""").by(
            returned_maximum=lambda maximum, reference: reference
        ),
        mistake("""the logarithm of the normaliser
            You return log of the sum, or the logsumexp. The sum itself is asked for.""")
        .by(finish=lambda maximum, normaliser: (maximum, normaliser.log()))
        .by(finish=lambda maximum, normaliser: (maximum, maximum + normaliser.log()))
        .by(finish=lambda maximum, normaliser: (maximum, normaliser * maximum.exp())),
        mistake("""the two change places
            You return (normaliser, maximum). The maximum comes first.
        """).by(finish=lambda maximum, normaliser: (normaliser, maximum)),
        mistake("""a mean and not a sum
            You average exp over the block. The normaliser is the sum over all keys.
        """).by(add_up=lambda weights: weights.mean(-1, keepdim=True)),
    ),
)
