"""The exercise ``head_scores``: the attention of a head that falls on a pattern."""

import numpy as np
import torch

from attncourse import interpret
from attncourse.bank.interpret.cases import MAPS_ONLY, maps_of
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def random_pattern(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a pattern with rows of no, one and several cells, on and below the diagonal.

    Of several tokens more ask than are asked for.
    """
    n = shape[-1]
    pattern = np.tril(rng.random(shape) < 0.5)
    pattern[:, 2 : n - 1 if n > 5 else n] = False
    pattern[:, 0] |= np.arange(n) % 2 == 1
    pattern[-1, :2] = True
    if n > 1:
        pattern[[0, n // 2]] = False
        pattern[1, 0] = True
    return pattern


def empty_pattern(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, bool)


def full_pattern(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape, bool)


def pattern_above_diagonal(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return a pattern above the diagonal too: all queries but the last, two keys."""
    pattern = np.zeros(shape, bool)
    pattern[:-1, 1] = True
    pattern[:-1, -1] = rng.permutation(shape[-1] - 1) % 2 == 0
    return pattern


CASES = CaseTable(
    {"maps": "... l h n n", "pattern": Drawn("n n", random_pattern)},
    how=maps_of,
)
ROWS = standard(CASES, l=2, h=3)
BY_HAND = Case(
    (
        tensor(
            [
                [
                    [[1, 0, 0], [0.8, 0.2, 0], [0.5, 0.25, 0.25]],
                    [[1, 0, 0], [0, 1, 0], [0, 1, 0]],
                ],
                [[[1, 0, 0], [1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]],
            ]
        ),
        torch.tensor([[0, 0, 0], [1, 0, 0], [1, 1, 0]]).bool(),
    ),
    note="two layers of two heads, three tokens",
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_head_scores(
    read=as_it_is,
    weight_on=lambda maps, pattern: (maps * pattern).sum(-1),
    is_asked=lambda pattern: pattern.any(-1),
    average=lambda on_pattern, is_asked, pattern: (
        (on_pattern * is_asked).sum(-1) / is_asked.sum().clamp(min=1)
    ),
    divide_by_map=None,
    finish=as_it_is,
):
    """Return ``head_scores`` made of decisions: the weight on the pattern, and its average."""

    def head_scores(maps, pattern):
        pattern = read(pattern)
        if divide_by_map is not None:
            return finish(divide_by_map(weight_on(maps, pattern).sum(-1), maps))
        return finish(average(weight_on(maps, pattern), is_asked(pattern), pattern))

    return head_scores


def divide_sum_by_asked(on_pattern, is_asked, pattern):
    return on_pattern.sum(-1) / is_asked.sum().clamp(min=1)


def largest_is_on_pattern(maps, pattern):
    """Return 1 for each row whose largest entry is one of the pattern's, else 0."""
    best = maps.argmax(-1, keepdim=True)
    return pattern.expand(maps.shape).gather(-1, best)[..., 0].to(maps.dtype)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    interpret.head_scores,
    section="Chapter 14, “A number for each role”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion(
            "the attention on the pattern, averaged over the queries that it asks", 3
        ).on(
            BY_HAND,
            row("l=2 h=3 n=7"),
            row("l=3 h=2 n=5", arguments={"pattern": Drawn("n n", pattern_above_diagonal)}),
        ),
        CASES.criterion("a pattern of everything, and of nothing", 1).on(
            row(
                "l=2 h=3 n=5",
                arguments={"pattern": Drawn("n n", empty_pattern)},
                note="an empty pattern",
            ),
            row(
                "l=2 h=3 n=5",
                arguments={"pattern": Drawn("n n", full_pattern)},
                note="True everywhere",
            ),
            row(
                "l=2 h=3 n=1", arguments={"pattern": Drawn("n n", empty_pattern)}, note="one token"
            ),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            row("l=3 h=2 n=1", batch=(2,), note="one token"),
            row("l=3 h=3 n=5", batch=(2,), note="as many layers as heads"),
            row("l=5 h=3 n=5", batch=(2,), note="as many layers as tokens"),
            row("l=2 h=5 n=5", batch=(2,), note="as many heads as tokens"),
            row("l=2 h=3 n=5", batch=(4,), note="a batch of 4"),
            row("l=2 h=3 n=5", batch=(2,), note="as many sequences as layers"),
            row("l=2 h=3 n=5", batch=(3,), note="as many sequences as heads"),
            row("l=2 h=3 n=5", batch=(5,), note="as many sequences as tokens"),
            row("l=2 h=3 n=2", note="two tokens"),
        ),
        CASES.criterion("one layer, one head, many tokens, float32", 1).on(
            row("l=1 h=5 n=6", note="one layer"),
            row("l=4 h=1 n=6", note="one head a layer"),
            ROWS.single,
            row("l=2 h=3 n=19"),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach the maps", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=MAPS_ONLY,
    mistakes=made(
        compose_head_scores,
        mistake("""averaged over all queries
            You divide by n, or n − 1. Queries for which the pattern is False throughout are not
            asked: average over the others, `pattern.any(dim=-1)`.""")
        .by(average=lambda on_pattern, is_asked, p: on_pattern.mean(-1))
        .by(average=lambda on_pattern, is_asked, p: on_pattern.sum(-1) / max(len(p) - 1, 1)),
        mistake("""averaged over the cells
            You average over the True cells, so that a head that gives two of them half of its
            attention each scores ½. What falls on a query's cells is added up first: then the
            average is over the queries.""")
        .by(average=lambda on_pattern, is_asked, p: on_pattern.sum(-1) / p.sum().clamp(min=1))
        .by(weight_on=lambda maps, p: (maps * p).sum(-1) / p.sum(-1).clamp(min=1)),
        mistake("""divided by all the attention
            You divide by the sum of the whole map, and so by all queries. Those for which the
            pattern is False throughout are not asked: divide by the number of the others.""")
        .by(divide_by_map=lambda hit, maps: hit / maps.sum((-2, -1)))
        .by(divide_by_map=lambda hit, maps: hit / maps.sum((-2, -1)).clamp(min=1e-9)),
        mistake("""added up, not averaged
            You add up over the queries. A score is a share, from 0 to 1: divide by the number of
            queries that are asked.""").by(
            average=lambda on_pattern, is_asked, p: on_pattern.sum(-1)
        ),
        mistake("""a pattern of nothing gives NaN
            Where the pattern is False throughout you divide 0 by 0. The score is 0 there: divide by
            at least 1, `.clamp(min=1)`.""")
        .by(
            average=lambda on_pattern, is_asked, p: (on_pattern * is_asked).sum(-1) / is_asked.sum()
        )
        .by(average=lambda on_pattern, is_asked, p: on_pattern[..., is_asked].mean(-1)),
        mistake("""the pattern is transposed
            Row i of the pattern belongs to query i, as in the maps. You look up pattern[j, i].
        """).by(read=lambda p: p.T),
        mistake("""the pattern is inverted
            You add up what falls where the pattern is False. True is where the head should
            look.""")
        .by(read=lambda p: ~p)
        .by(weight_on=lambda maps, p: (maps * ~p).sum(-1)),
        mistake("""the pattern is not used
            You add up all that a query gives, which is 1 in every row. What falls on the pattern
            counts: `maps * pattern`, then the sum along the row.""")
        .by(weight_on=lambda maps, p: maps.sum(-1))
        .by(weight_on=lambda maps, p: maps.sum(-1), average=divide_sum_by_asked),
        mistake("""the weights are not used
            You count the True cells of the pattern. How much attention falls on them is in the
            maps: `maps * pattern`.""").by(weight_on=lambda maps, p: (p + 0 * maps).sum(-1)),
        mistake("""only rows that are True throughout are asked
            You ask the queries whose whole row of the pattern is True. One True cell is enough:
            `pattern.any(dim=-1)`.""")
        .by(is_asked=lambda p: p.all(-1))
        .by(is_asked=lambda p: p.all(-1), average=divide_sum_by_asked),
        mistake("""a mean where a sum belongs
            Your scores are n times too small: a `.mean()` beside the division. Add up along the row
            and over the queries, then divide once, by how many queries are asked.
        """).by(weight_on=lambda maps, p: (maps * p).mean(-1)),
        mistake("""the largest of the queries, not their average
            You take the query that gives the most. The score is the average over those asked: add
            up, then divide by their number.""")
        .by(
            average=lambda on_pattern, is_asked, p: (
                on_pattern.amax(-1) / is_asked.sum().clamp(min=1)
            )
        )
        .by(average=lambda on_pattern, is_asked, p: on_pattern.amax(-1)),
        mistake("""added up over the heads
            You add up along the heads' axis. Each head has a score of its own: add up along the
            queries, the last axis that is left.
        """).by(
            average=lambda on_pattern, is_asked, p: on_pattern.sum(-2) / is_asked.sum().clamp(min=1)
        ),
        mistake("""the largest, not the sum
            You take the largest weight on the pattern. All that a query puts on it counts: sum
            along the row.""").by(weight_on=lambda maps, p: (maps * p).amax(-1)),
        mistake("""how often the largest weight falls on it
            You count the queries whose largest weight falls on the pattern. Add up how much
            attention falls there: a weight of 0.4 counts 0.4.""").by(
            weight_on=largest_is_on_pattern
        ),
        mistake("""what each key receives
            You add up along the columns, what each token receives. Row i is what query i gives: sum
            over the last axis.""").by(weight_on=lambda maps, p: (maps * p).sum(-2)),
        mistake("""the columns of the pattern are counted
            You divide by the number of columns that have a True. The queries are the rows:
            `pattern.any(dim=-1)`.""").by(
            is_asked=lambda p: p.any(-2), average=divide_sum_by_asked
        ),
        mistake("""averaged over heads, layers or batch
            You average over the heads, or the layers, or the batch. Every head of every layer has a
            score of its own: the result is (..., layers, heads).""")
        .by(finish=lambda scores: scores.mean(-1))
        .by(finish=lambda scores: scores.mean())
        .by(finish=lambda scores: scores.mean(-2))
        .by(finish=lambda scores: scores.flatten(0, -3).mean(0) if scores.ndim > 2 else scores),
        mistake("""one query alone
            You score the last query, or the first that is asked. All that are asked count.""")
        .by(average=lambda on_pattern, is_asked, p: on_pattern[..., -1])
        .by(average=lambda on_pattern, is_asked, p: on_pattern[..., is_asked.int().argmax()]),
        mistake("""counted, not weighed
            You count the weights on the pattern that are large enough. Attention is a share: add it
            up as it is.""")
        .by(weight_on=lambda maps, p: ((maps > 0.5) & p).any(-1).to(maps.dtype))
        .by_any(
            lambda limit: {
                "weight_on": lambda maps, p: ((maps > limit) & p).any(-1).to(maps.dtype)
            },
            (0.1, 0.2, 0.3, 0.4),
        ),
        mistake("""compared with even attention
            You divide by, or take away, what even attention would put on the pattern. That is a
            good question, but another one.""")
        .by(weight_on=lambda maps, p: (maps * p).sum(-1) * p.shape[-1] / p.sum(-1).clamp(min=1))
        .by(weight_on=lambda maps, p: (maps * p).sum(-1) - p.sum(-1) / p.shape[-1]),
    ),
)
