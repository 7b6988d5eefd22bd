"""The exercise ``cut_edges``: weights without some of their edges."""

import math
from collections.abc import Callable
from typing import Any

import torch

from attncourse import circuits
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor, uniform_values
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def edges_of_row(query: int, n: int) -> tuple[tuple[int, int], ...]:
    return tuple((query, key) for key in range(n))


CASES = CaseTable({"scores": "... m n"})
ROWS = standard(CASES)
TWO_EDGES = [(0, 1), (3, 2)]
# Two of one row, one whose turned pair is there too, none in the first or the last row.
SEVERAL_EDGES = [(1, 2), (1, 4), (3, 0), (2, 3)]


def cases_with_edges(edges, *rows):
    """Return the table's cases, each with these edges behind its scores."""

    def cases(rng: Rng) -> list[Case]:
        edge_cases = []
        for case in CASES(*rows)(rng):
            m, n = case.args[0].shape[-2:]
            edges_inside = [(query % m, key % n) for query, key in edges]
            edge_cases.append(
                Case(
                    (case.args[0], list(dict.fromkeys(edges_inside))), note=case.note, use=case.use
                )
            )
        return edge_cases

    return cases


BY_HAND = Case(
    (tensor([[0, 0, 0], [math.log(2), 0, 0]]), [(0, 1), (1, 2)]), note="one edge of each row"
)
EMPTY_ROW = Case((tensor([[1, 2, 3], [0, 5, 1]]), [(1, 0), (1, 1), (1, 2)]), note="a whole row")
NO_KEY = tensor([[-math.inf, -math.inf, -math.inf], [0, 5, -math.inf]])
HIDDEN_ROWS = [
    Case((NO_KEY, []), note="a row of −∞, no edge"),
    Case((NO_KEY, [(0, 1)]), note="a row of −∞, an edge of it"),
]
ONE_KEY = Case((tensor([[1], [2]]), [(1, 0)]), note="one key")


def hidden_keys(rng: Rng) -> list[Case]:
    """Return cases under a causal mask, −∞ above the diagonal."""
    cases = []
    for n, edges in ((5, [(4, 0), (2, 1)]), (4, [(0, 0), (3, 3)])):
        scores = uniform_values(rng, n, n)
        scores[torch.ones(n, n, dtype=torch.bool).triu(1)] = -math.inf
        cases.append(Case((scores, edges), note="−∞ above the diagonal"))
    return cases


# --- decisions and mistakes ----------------------------------------------------------------------


def mask_without_edges(scores, edges):
    """Return a mask that is False at the edges, for every map of the batch."""
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    for query, key in edges:
        mask[query, key] = False
    return mask.expand(scores.shape)


def softmax(scores):
    """Return the softmax over the keys; a row without a key is 0."""
    has_key = (scores > -math.inf).any(-1, keepdim=True)
    weights = scores.masked_fill(~has_key, 0).softmax(-1)
    return weights.masked_fill(~has_key, 0)


@composition
def compose_cut_edges(
    pairs=list,
    mask_of=mask_without_edges,
    hide=lambda scores, mask: scores.masked_fill(~mask, -math.inf),
    normalize=softmax,
    after=lambda weights, mask: weights,
):
    """Return ``cut_edges`` made of decisions."""

    def cut_edges(scores, edges):
        mask = mask_of(scores, pairs(edges))
        return after(normalize(hide(scores, mask)), mask)

    return cut_edges


def cut_after_softmax(after: Callable, normalize: Callable = softmax) -> dict[str, Any]:
    """Return the options that take the softmax first, then change the weights by ``after``."""
    return {"hide": lambda scores, mask: scores, "normalize": normalize, "after": after}


def cut_rows_or_columns(axis: int) -> dict[str, Any]:
    """Return the option that cuts the edges' whole rows (axis 0) or columns (axis 1)."""

    def mask_of(scores, edges):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
        for edge in edges:
            if axis:
                mask[:, edge[1]] = False
            else:
                mask[edge[0]] = False
        return mask.expand(scores.shape)

    return {"mask_of": mask_of}


def exchange_ends(edges):
    return [(key, query) for query, key in edges]


def ignore_edges_outside(mask_of):
    """Return a ``mask_of`` that ignores edges which the map does not have."""

    def mask_of_inner_edges(scores, edges):
        m, n = scores.shape[-2:]
        return mask_of(scores, [(i, j) for i, j in edges if i < m and j < n])

    return mask_of_inner_edges


def fill_cut_scores(number: float) -> dict[str, Any]:
    """Return the options that put a number in place of −∞, before a plain softmax."""
    return {
        "hide": lambda scores, mask: scores.masked_fill(~mask, number),
        "normalize": lambda scores: scores.softmax(-1),
    }


def divide_by_map_sum(weights):
    total = weights.sum((-2, -1), keepdim=True)
    return weights / total.masked_fill(total == 0, 1)


def fill_hidden_scores_too(number: float) -> dict[str, Any]:
    """Return the options of ``fill_cut_scores``, for keys hidden before, too."""
    return fill_cut_scores(number) | {
        "hide": lambda scores, mask: scores.masked_fill(~mask | scores.isneginf(), number)
    }


def nan_in_empty_rows(empty: Callable):
    """Return an ``after`` that puts NaN into rows without a key where ``empty(mask)`` holds."""

    def after(weights, mask):
        return weights.masked_fill(empty(mask) & (weights.sum(-1, keepdim=True) == 0), math.nan)

    return after


def unzip_edges(edges):
    """Return the edges by way of ``zip(*edges)``, which cannot unpack an empty list."""
    queries, keys = zip(*edges, strict=True)
    return list(zip(queries, keys, strict=True))


def share_evenly(choose: Callable):
    """Return the options that share cut weight evenly among the keys that ``choose`` names."""

    def after(weights, mask):
        others = choose(weights, mask)
        cut = (weights * ~mask).sum(-1, keepdim=True)
        return weights * mask + others * cut / others.sum(-1, keepdim=True).clamp(min=1)

    return cut_after_softmax(after)


def mask_of_first_map(scores, edges):
    """Return a mask that is False at the edges in the first map of the batch alone."""
    mask = torch.ones(scores.shape, dtype=torch.bool)
    maps = mask.reshape(-1, *scores.shape[-2:])
    for query, key in edges:
        maps[0, query, key] = False
    return mask


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    circuits.cut_edges,
    section="Chapter 19, “Cut one edge”",
    difficulty=2,
    minutes=15,
    criteria=(
        Criterion("without these edges, the rest of each row sums to 1", 3).on(
            lambda rng: [
                BY_HAND,
                *cases_with_edges(SEVERAL_EDGES, row("m=5 n=7"), row("m=6 n=6"))(rng),
                *cases_with_edges(TWO_EDGES, row("m=4 n=5"))(rng),
            ]
        ),
        Criterion("a row without a key left is 0", 2).on(
            lambda rng: [
                EMPTY_ROW,
                *HIDDEN_ROWS,
                *cases_with_edges(
                    edges_of_row(2, 4), row("m=3 n=4", batch=(2,), note="a whole row")
                )(rng),
            ]
        ),
        Criterion("keys that are hidden already stay hidden", 1).on(hidden_keys),
        Criterion("batches", 1).on(cases_with_edges(SEVERAL_EDGES, *ROWS.batches)),
        Criterion("no edge, one query or key, float32, large and small scores", 1).on(
            lambda rng: [
                ONE_KEY,
                *cases_with_edges([], row("m=3 n=5", note="no edge"))(rng),
                *cases_with_edges([(0, 2)], row("m=1 n=5", note="one query"))(rng),
                *cases_with_edges(SEVERAL_EDGES, ROWS.single)(rng),
                *cases_with_edges([], *ROWS.extreme)(rng),  # cut scores never stand far above
                once_more(BY_HAND),
            ]
        ),
        Criterion("gradients reach the scores", 1).on(
            cases_with_edges(SEVERAL_EDGES, *ROWS.gradients)
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_cut_edges,
        mistake("""cut without renormalising
            You set the weights to 0 after the softmax, and what is left of a row sums to less than
            1. Cut the scores (−∞) before the softmax, or divide by what is left.""").by(
            cut_after_softmax(lambda weights, mask: weights * mask)
        ),
        mistake("""a row without a key gives NaN
            Where no key is left you divide 0 by 0, or take the softmax of nothing but −∞. Such a
            row is 0.""")
        .by(normalize=lambda scores: scores.softmax(-1))
        .by(
            cut_after_softmax(
                lambda weights, mask: weights * mask / (weights * mask).sum(-1, keepdim=True)
            )
        )
        .by(after=nan_in_empty_rows(lambda mask: mask.all()))
        .by(after=nan_in_empty_rows(lambda mask: mask.any(-1, keepdim=True))),
        mistake("""a low number in place of −∞
            Your cut scores are low, but a row that has nothing else becomes a softmax of them. A
            row without a key is 0.""")
        .by(fill_cut_scores(-1e9))
        .by(fill_cut_scores(torch.finfo(torch.float32).min))
        .by(fill_hidden_scores_too(-1e9))
        .by(fill_hidden_scores_too(torch.finfo(torch.float32).min)),
        mistake("""a score of 0 is no cut
            You set the scores to 0, and e⁰ = 1 is a weight like others. A weight of 0 needs a score
            of −∞.""")
        .by(fill_cut_scores(0.0))
        .by(hide=lambda scores, mask: scores.masked_fill(~mask, 0.0)),
        mistake("""key and query exchanged
            An edge is (query, key), row and column. You cut (key, query).""").by(
            pairs=exchange_ends, mask_of=ignore_edges_outside(mask_without_edges)
        ),
        mistake("""both directions are cut
            You cut (i, j) and (j, i). An edge leads from one query to one key; the other way round
            is another edge.""").by(
            pairs=lambda edges: [*edges, *exchange_ends(edges)],
            mask_of=ignore_edges_outside(mask_without_edges),
        ),
        mistake("""whole rows or columns are cut
            You cut everything that these queries look at, or all that looks at these keys. One
            entry each: `mask[query, key]`.""")
        .by(cut_rows_or_columns(1))
        .by(cut_rows_or_columns(0))
        .by(
            mask_of=lambda scores, edges: mask_without_edges(
                scores, [(i, j) for i, _ in edges for _, j in edges]
            )
        ),
        mistake("""only one edge
            You cut the first or the last of the edges. All of them go.""")
        .by(pairs=lambda edges: list(edges)[:1])
        .by(pairs=lambda edges: list(edges)[-1:]),
        mistake("""all but the edges is cut
            You keep the edges and cut the rest: the mask is inverted.""").by(
            mask_of=lambda scores, edges: ~mask_without_edges(scores, edges)
        ),
        mistake("""nothing is cut
            Your result is the softmax of the scores. Did the cut reach what you return?
            `masked_fill` makes a new tensor, `masked_fill_` would change it in place.""").by(
            pairs=lambda edges: []
        ),
        mistake("""only the first map is cut
            You cut the edges in the first map of the batch. They are cut in every one: index from
            the end, `[..., query, key]`.""").by(mask_of=mask_of_first_map),
        mistake("""softmax over the queries
            Your columns sum to 1. Each row is a query, and its weights over the keys sum to 1:
            `dim=-1`.""").by(normalize=lambda scores: softmax(scores.mT).mT),
        mistake("""the scores come back
            You return scores. Return weights: their softmax over the keys.""").by(
            normalize=as_it_is
        ),
        mistake("""what was cut is shared out evenly
            You give what an edge had to the others of its row in equal parts. The others keep their
            proportions: divide by what is left.""")
        .by(share_evenly(lambda weights, mask: mask))
        .by(share_evenly(lambda weights, mask: mask & (weights > 0))),
        mistake("""divided by the sum of the map
            You divide by the sum of all the weights that are left. Each row is divided by its own:
            `.sum(-1, keepdim=True)`.""")
        .by(cut_after_softmax(lambda weights, mask: divide_by_map_sum(weights * mask)))
        .by(
            cut_after_softmax(
                lambda weights, mask: divide_by_map_sum(weights * mask) * weights.shape[-2]
            )
        ),
        mistake("""hidden keys come back
            You put another score where −∞ was, and the key that it hid has a weight again. A score
            of −∞ stays −∞.""").by(
            hide=lambda scores, mask: scores.masked_fill(scores.isneginf(), 0).masked_fill(
                ~mask, -math.inf
            )
        ),
        mistake("""an empty list of edges stops it
            `edges` may be empty, and `zip(*edges)` gives nothing to unpack then: nothing is cut.
            A loop over the edges has no such case.""").by(pairs=unzip_edges),
        mistake("""no tensor comes back
            You return a NumPy array, or lists. The weights are a torch tensor, through which
            gradients can flow: stay with torch operations.""")
        .by(after=lambda weights, mask: weights.detach().numpy())
        .by(after=lambda weights, mask: weights.tolist()),
        mistake("""computed in float32
            You turn the scores into float32, which keeps seven digits of float64. Stay in the dtype
            of the scores.""").by(
            hide=lambda scores, mask: scores.float().masked_fill(~mask, -math.inf)
        ),
        mistake("""the scores are changed
            You write −∞ into the caller's scores: `masked_fill_`, or an assignment. Work on a copy,
            or use `masked_fill`.""").by(
            hide=lambda scores, mask: scores.masked_fill_(~mask, -math.inf)
        ),
    ),
)
