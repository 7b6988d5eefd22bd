"""The exercise ``tiled_attention``: attention without the matrix of scores."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from attncourse import efficient
from attncourse.bank.efficient.shared import (
    ATTENTION_SHAPES,
    MANY_TOKENS,
    MAXIMUM_OF_FIRST_BLOCK,
    SCALE_MISTAKES,
    OptionTable,
    exponentials,
    finite_maximum,
    maximum_of_block,
    raise_maximum,
    row_maximum,
    shrink_factor,
)
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    ONE_MASK,
    Drawn,
    hole,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import by_root_of_d_k, hide
from attncourse.checks.writing.mistakes import Between, filled_with
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = OptionTable(ATTENTION_SHAPES, extra={"block": 3}.items())
ROWS = standard(CASES, d_k=4)
ROW = row("m=5 n=7 d_k=4 d_v=3")
BLOCKS_OF_TWO = row("m=6 n=6 d_k=4 d_v=3", options={"block": 2})
BY_HAND = Case(
    (
        tensor([[2, 0, 0, 0], [0, 2, 0, 0]]),
        tensor([[0, 0, 0, 0], [1, 0, 0, 0], [0, 3, 0, 0]]),
        tensor([[1, 0], [0, 1], [4, 4]]),
    ),
    {"block": 2},
    note="d_k = 4, so that √d_k = 2; blocks of 2 and 1 keys",
)
SCORES_FAR_BELOW_0 = Case(
    (
        tensor([[-600.0] * 4, [-900.0] * 4]),
        tensor([[1.0, 1.0, 1.0, 1.01], [1.0, 1.0, 1.01, 1.0], [1.0, 1.0, 0.99, 1.0]]),
        tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0]]),
    ),
    {"block": 1},
    note="scores around −1000",
)
MASKED_FAR_BELOW_0 = Case(
    (100 * SCORES_FAR_BELOW_0.args[0], *SCORES_FAR_BELOW_0.args[1:]),
    {"mask": torch.tensor([[True, False, True], [False, True, True]]), "block": 2},
    note="scores around −100000, with a mask",
)


def far_keys(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask in which early queries see late keys alone, and late queries early ones."""
    m, n = shape[-2:]
    i, j = np.arange(m)[:, None] / m, np.arange(n) / n
    return np.broadcast_to(np.abs(i + j - 0.9) < 0.35, shape).copy() | (j == j[-1]) & (i < 0.5)


MASK_OF_FAR_KEYS = {"mask": Drawn("m n", far_keys)}

# --- decisions and mistakes ----------------------------------------------------------------------


def cut_into_blocks(n: int, block: int) -> Iterator[slice]:
    return efficient.slices(n, block)


def whole_blocks_only(n: int, block: int) -> Iterator[slice]:
    """Return the blocks, without the last one where it is shorter."""
    return (slice(start, start + block) for start in range(0, n - block + 1, block))


def take_block(x, part):
    return x[..., part, :]


@composition
def compose_tiled_attention(
    roles=decisions.as_they_come,
    factor=by_root_of_d_k,
    hide=hide,
    size=lambda block, m, n: block,
    cut_queries=cut_into_blocks,
    cut_keys=lambda n, block, rows: cut_into_blocks(n, block),
    take=take_block,
    tile=lambda mask, rows, columns: mask[..., rows, columns],
    begin=-math.inf,
    raise_to=raise_maximum,
    reference=finite_maximum,
    shrink=shrink_factor,
    weigh=exponentials,
    keep_total=lambda total, factor: total * factor,
    keep_normaliser=lambda normaliser, factor: normaliser * factor,
    add_up=lambda weights: weights.sum(-1, keepdim=True),
    each=lambda total, normaliser: total,
    divide=lambda total, normaliser: total / normaliser,
    collect=lambda outputs, query: torch.cat(outputs, -2),
):
    """Return ``tiled_attention`` made of decisions."""

    def tiled_attention(query, key, value, mask=None, block=128):
        scale = factor(query, key, value)
        query, key, value = roles(query, key, value)
        m, n = query.shape[-2], key.shape[-2]
        block, outputs = size(block, m, n), []
        for rows in cut_queries(m, block):
            q = take(query, rows)
            maximum = torch.full_like(q[..., :1], begin)
            normaliser, total = torch.zeros_like(maximum), 0 * q[..., :1] * value[..., :1, :]
            for columns in cut_keys(n, block, rows):
                scores = q @ take(key, columns).mT * scale
                if mask is not None:
                    scores = hide(scores, tile(mask, rows, columns))
                new = raise_to(maximum, scores)
                subtracted = reference(new)
                weights, shrinkage = weigh(scores, subtracted, maximum), shrink(maximum, subtracted)
                normaliser = keep_normaliser(normaliser, shrinkage) + add_up(weights)
                total = keep_total(total, shrinkage) + weights @ take(value, columns)
                total, maximum = each(total, normaliser), new
            outputs.append(divide(total, normaliser))
        return collect(outputs, query)

    return tiled_attention


def write_into_query(outputs, query):
    """Return the outputs in a tensor of the query's shape and dtype."""
    out = torch.zeros_like(query)
    out += torch.cat(outputs, -2)
    return out


def slice_from_0(part: slice) -> slice:
    """Return a slice of the part's length that begins at 0."""
    return slice(0, part.stop - part.start)


def keep_unchanged(old, factor):
    return old


def maximum_of_tile(old, scores):
    return torch.maximum(old, scores.amax((-1, -2), keepdim=True).expand_as(old))


def softmax_of_block(scores, reference, old):
    """Return each block's own softmax in place of exponentials."""
    return scores.softmax(-1)


def softmax_of_block_or_0(scores, reference, old):
    return scores.softmax(-1).nan_to_num(0.0)


SUM_OF_TILES = {"divide": lambda total, normaliser: total}
MEAN_OF_TILES = {"add_up": lambda weights: torch.ones_like(weights[..., :1])}


def guard_normaliser(number: float) -> dict[str, Any]:
    return {"divide": lambda total, normaliser: total / (normaliser + number)}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    efficient.tiled_attention,
    section="Chapter 17, “Tile by tile”",
    difficulty=3,
    minutes=40,
    limit=20.0,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        CASES.criterion("softmax(QKᵀ/√d_k) V, whatever the block", 3).on(
            BY_HAND,
            BLOCKS_OF_TWO,
            BLOCKS_OF_TWO.but("d_k=16", options={"block": 1}),
            BLOCKS_OF_TWO.but(options={"block": 6}, note="one tile"),
            ROW.but("m=7 n=5", options={"block": 20}, note="a block longer than both"),
            ROW.but("d_v=9", options={"block": 128}),
        ),
        CASES.criterion("last blocks may be shorter", 2).on(
            ROW,
            ROW.but("m=6", note="of the keys"),
            ROW.but("n=6", note="of the queries"),
            ROW.but("m=11 n=13", options={"block": 4}),
        ),
        CASES.criterion("a mask, also where a tile has no key for a query", 2).on(
            BLOCKS_OF_TWO.but("m=8 n=8", arguments=MASK_OF_FAR_KEYS),
            ROW.but("m=8 n=8", arguments=MASK_OF_FAR_KEYS),
            ROW.but(arguments={"mask": hole("m n")}),
            ROW.but(batch=(2,), arguments={"mask": hole("m n")}, note="one mask for a batch"),
            ROW.but(batch=(5,), arguments={"mask": hole("m n")}, note=ONE_MASK),
            ROW.but(batch=(2,), arguments={"mask": hole("... m n")}, note="a batch of masks"),
        ),
        CASES.criterion("no tensor of m · n numbers on the way", 3).on(
            MANY_TOKENS.but(options={**MANY_TOKENS.options, "block": 24}),
            MANY_TOKENS.but("m=160 n=150", options={"measured": 160 * 150, "block": 20}),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one key; float32, large, small and distant scores", 1).on(
            ROW.but("n=1", note="one key"),
            *ROWS.numbers,
            SCORES_FAR_BELOW_0,
            MASKED_FAR_BELOW_0,
            ROW.but(factor=500.0, note="scores that exp cannot hold"),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach query, key and value", 2).on(
            *ROWS.gradients,
            ROW.but("m=8 n=8", arguments=MASK_OF_FAR_KEYS, use=CASES.each_gradient),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_tiled_attention,
        *SCALE_MISTAKES,
        mistakes.DIVIDED_BY_ROOT_N,
        mistakes.DIVIDED_BY_OTHER_WIDTH,
        mistakes.MASK_INVERTED,
        mistakes.MASK_TRANSPOSED,
        mistakes.MASK_IGNORED,
        mistakes.ZERO_SCORES,
        mistakes.NOT_LOW_ENOUGH.by(filled_with(-1e4)),
        mistakes.MASK_ADDED,
        mistakes.ZERO_TIMES_INFINITY,
        mistake("""every tile has the first tile's mask
            You take the same corner of the mask for every tile. The tile of these rows and columns
            needs `mask[..., rows, columns]`.
        """).by(tile=lambda mask, r, c: mask[..., slice_from_0(r), slice_from_0(c)]),
        mistake("""the mask is not cut along with the scores
            You use all rows of the mask, or all its columns, on a tile that has a part of them. Cut
            both axes as you cut the scores, `mask[..., rows, columns]`.""")
        .by(tile=lambda mask, r, c: mask)
        .by(tile=lambda mask, r, c: mask[..., c])
        .by(tile=lambda mask, r, c: mask[..., r, :]),
        mistake("""the mask's rows do not move along
            You cut the mask's columns and always take its first rows. Rows of the mask belong to
            queries: cut both axes, `mask[..., rows, columns]`.
        """).by(tile=lambda mask, r, c: mask[..., slice_from_0(r), c]),
        mistake("""the mask's columns do not move along
            You cut the mask's rows and always take its first columns. Columns of the mask belong to
            keys: cut both axes, `mask[..., rows, columns]`.
        """).by(tile=lambda mask, r, c: mask[..., r, slice_from_0(c)]),
        mistake("""the mask's tile is transposed
            You cut the mask with keys as rows. Its axes are those of the scores: queries, then
            keys.""")
        .by(tile=lambda mask, r, c: mask[..., c, r].mT)
        .by(tile=lambda mask, r, c: mask[..., c, r]),
        mistake("""−∞ − (−∞)
            A query may see no key of a tile. Its largest score is −∞ there, and −∞ − (−∞) is NaN.
            Subtract 0 while a row has seen nothing else.""").by(reference=lambda maximum: maximum),
        mistake("""nothing is rescaled when the maximum moves
            When a larger score comes, both running sums are still measured from the old maximum.
            Multiply them by exp(old − new) before you add.""").by(shrink=lambda old, new: 1.0),
        mistake("""the output is not rescaled
            You rescale the normaliser when the maximum moves, and not the running sum of values.
            Both are measured from the maximum: multiply both.""").by(keep_total=keep_unchanged),
        mistake("""the normaliser is not rescaled
            You rescale the running sum of values when the maximum moves, and not the normaliser.
            Both are measured from the maximum: multiply both.""").by(
            keep_normaliser=keep_unchanged
        ),
        mistake("""rescaled the wrong way round
            You multiply by exp(new − old). The new maximum is larger, and what was summed before
            has to shrink: exp(old − new).""")
        .by(shrink=lambda old, new: (new - finite_maximum(old)).exp())
        .by(shrink=lambda old, new: (new - old).exp()),
        mistake("""each tile from its own maximum
            You subtract the tile's own maximum. All that is summed for a row has to be measured
            from one number, the running maximum.
        """).by(weigh=lambda s, reference, old: (s - finite_maximum(row_maximum(s))).exp()),
        mistake("""the maximum begins at a number
            Your running maximum starts at a number. For scores far below that every exp is 0, and
            0/0 is NaN. Start at −∞.""")
        .by(begin=0.0)
        .by_any(lambda number: {"begin": number}, tuple(-(10.0**n) for n in range(5))),
        mistake("""the maximum is that of the last tile
            You take each tile's own maximum for the running one. It never falls:
            `torch.maximum(maximum, scores.amax(…))`.""").by(raise_to=maximum_of_block),
        mistake("""the maximum is never renewed
            You measure every tile from the first one's maximum. A later score may be far above it:
            take the larger of the two, and rescale both sums.""")
        .by(MAXIMUM_OF_FIRST_BLOCK | {"reference": lambda maximum: maximum})
        .by(MAXIMUM_OF_FIRST_BLOCK),
        mistake("""the new tile is rescaled, not the sums
            You multiply what the new tile adds by exp(old maximum − new maximum). It is measured
            from the new maximum already: both sums from before have to shrink.""").by(
            weigh=lambda s, reference, old: (s - reference).exp() * shrink_factor(old, reference),
            shrink=lambda old, new: 1.0,
        ),
        mistake("""no maximum subtracted
            exp of a large score overflows, and far below 0 it vanishes. Measure every score from
            its row's running maximum.""").by(
            reference=torch.zeros_like, shrink=lambda old, new: 1.0
        ),
        mistake("""one maximum for the whole tile
            You subtract the tile's largest score from all its rows. In a row far below it every exp
            is 0. Each row has its own maximum.""").by(raise_to=maximum_of_tile),
        mistake("""a softmax in every tile
            You take a softmax of each tile and add the results up, or average them. A row shares 1
            among all keys: sum exp first, and divide once at the end.""")
        .by(weigh=softmax_of_block, shrink=lambda old, new: 1.0)
        .by(weigh=softmax_of_block_or_0, shrink=lambda old, new: 1.0)
        .by(
            *(
                {"weigh": weigh, "shrink": lambda old, new: 1.0, **joined}
                for weigh in (softmax_of_block, softmax_of_block_or_0)
                for joined in (SUM_OF_TILES, MEAN_OF_TILES)
            )
        ),
        mistake("""not divided by the normaliser
            You return the sums of exp(s) v. At the end each row is divided by its normaliser.
        """).by(divide=lambda total, normaliser: total),
        mistake("""divided in every tile
            You divide by the normaliser after each tile, so what came first is divided again and
            again. Divide once, after the last one.""")
        .by(each=lambda total, z: total / z, divide=lambda total, z: total)
        .by(each=lambda total, z: total / z)
        .by(each=lambda x, z: x / z.clamp(min=1e-30), divide=lambda total, z: total),
        mistake("""a guard in the denominator
            You add a small number to the normaliser, and the weights no longer sum to 1. It is at
            least 1 and needs no guard.""")
        .by(guard_normaliser(1e-3))
        .by_any(guard_normaliser, Between(1e-8, 10.0)),
        mistake("""the last keys are dropped
            You leave out the last block of keys where it is shorter than the others: `range(0, n,
            block)` reaches it, `n // block` blocks do not.""")
        .by(cut_keys=lambda n, block, rows: whole_blocks_only(n, block))
        .by(cut_keys=lambda n, block, rows: whole_blocks_only(n, min(n, block))),
        mistake("""the last queries are dropped
            You leave out the last block of queries where it is shorter than the others. Every query
            gets a row.""").by(cut_queries=whole_blocks_only),
        mistake("""a query sees the keys of its own block alone
            You walk along the diagonal. Each block of queries meets *every* block of keys.
        """).by(cut_keys=lambda n, block, rows: [rows]),
        mistake("""the later keys are left out
            You stop at the tile on the diagonal. Without a mask a query sees all keys.""").by(
            cut_keys=lambda n, block, rows: (
                part for part in cut_into_blocks(n, block) if part.start <= rows.start
            )
        ),
        mistake("""only the last tile counts
            You start anew with every block of keys, with both sums or with one. They go on along
            the row.""")
        .by(keep_total=lambda x, factor: 0 * x, keep_normaliser=lambda x, factor: 0 * x)
        .by(keep_total=lambda x, factor: 0 * x)
        .by(keep_normaliser=lambda x, factor: 0 * x),
        mistake("""all scores at once
            Right numbers, but they are made of a whole matrix of scores, or of a mask of that size.
            Make one tile at a time, and keep sums only.""").by(size=lambda block, m, n: max(m, n)),
        mistake("""axes counted from the front
            `query[rows]` cuts the first axis, which is the batch's if there is one. Count from the
            end: `query[..., rows, :]`.""")
        .by(take=lambda x, part: x[part])
        .by(take=lambda x, part: x[:, part]),
        mistake("""the mask's axes counted from the front
            `mask[rows, columns]` cuts the first two axes, and one of them is the batch's if the
            mask has one. Count from the end: `mask[..., rows, columns]`.""")
        .by(tile=lambda mask, r, c: mask[r, c])
        .by(tile=lambda mask, r, c: mask[:, r, c]),
        mistake("""the blocks are joined along another axis
            You join blocks of queries along axis 0 or 1, counted from the front, or along the
            features. Rows are axis −2: `torch.cat(outputs, dim=-2)`.""")
        .by(collect=lambda outputs, query: torch.cat(outputs))
        .by(collect=lambda outputs, query: torch.cat(outputs, 1))
        .by(collect=lambda outputs, query: torch.cat(outputs, -1)),
        mistake("""the output has the query's shape
            You fill a tensor like `query`. A row of the output has d_v numbers, as a value has.
        """).by(collect=write_into_query),
        mistakes.ROLES_EXCHANGED.here(roles=lambda q, k, v: (k, q, v)),
        mistakes.KEYS_BLENDED,
    ),
)
