"""The exercise ``sink_softmax``: weights of which a sink takes a part."""

import math
from collections.abc import Callable
from typing import Any

import torch

from attncourse import today
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, hole, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"scores": "... h m n", "sink": "h"})
ROWS = standard(CASES)
ROW = row("h=3 m=5 n=7")
SQUARE_MASK = {"mask": hole("m n")}
OWN_MASK = {"mask": hole("... 1 m n")}
HEAD_MASK = {"mask": hole("... h m n")}
BY_HAND = Case(
    (
        tensor([[[math.log(2), 0, 0], [0, 0, 0]]] * 2),
        tensor([0, math.log(5)]),
    ),
    note="2, 1, 1 and 1, 1, 1, with sinks of 1 and of 5",
)
NO_KEY_MASK = torch.tensor([[True, False, True], [False, False, False]])
NO_KEY_CASES = [
    Case(
        (tensor([[[1, 2, 3], [4, 1, 2]]] * 2), tensor([0.5, -1]), NO_KEY_MASK),
        note="the second query has no key",
    ),
    Case(
        (tensor([[[1, 2, 3]]]), tensor([2.0]), torch.zeros(1, 3, dtype=torch.bool)),
        note="nobody has a key",
    ),
]


def far_from_0_cases(rng: Rng) -> list[Case]:
    """Return cases of scores far from 0, with a sink near them, and one that is not."""
    near = rng.uniform(-1, 1, (2, 3, 5))
    sinks = rng.uniform(-1, 1, 2)
    mask = torch.tensor([[True, True, False, True, True]])
    return [
        Case((tensor(near + 30000), tensor(sinks + 30000)), note="scores near 30000"),
        Case((tensor(near - 30000), tensor(sinks - 30000)), note="scores near −30000"),
        Case((tensor(near - 30000), tensor(sinks)), note="scores near −30000, a sink near 0"),
        Case((tensor(near), tensor(sinks + 30000)), note="a sink near 30000"),
        Case((tensor(near + 40000), tensor(sinks + 40000), mask), note="near 40000, with a mask"),
    ]


# --- decisions and mistakes ----------------------------------------------------------------------


def one_sink_per_head(sink, scores):
    return sink[:, None, None].expand(*scores.shape[:-1], 1)


def softmax_with_sink(scores, column):
    """Return the softmax over the keys and the sink, without the sink's column."""
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1]


@composition
def compose_sink_softmax(
    read=as_it_is,
    read_sink=as_it_is,
    align=one_sink_per_head,
    hide=decisions.hide,
    normalize=softmax_with_sink,
    after=lambda weights, mask: weights,
):
    """Return ``sink_softmax`` made of decisions."""

    def sink_softmax(scores, sink, mask=None):
        scores = read(scores)
        column = align(read_sink(sink), scores)
        return after(normalize(hide(scores, mask), column), mask)

    return sink_softmax


def softmax_by_hand(total: Callable, top: Callable):
    """Return a ``normalize``: exponentials less ``top``, over ``total`` of sum and sink."""

    def normalize(scores, column):
        highest = top(scores, column)
        weights = (scores - highest).exp()
        return weights / total(weights.sum(-1, keepdim=True), column, highest)

    return normalize


def maximum_or_0(scores, column):
    """Return each row's largest score, and 0 for a row that has none."""
    top = scores.amax(-1, keepdim=True)
    return top.masked_fill(top.isneginf(), 0)


def row_maximum(scores, column):
    """Return each row's largest score, −∞ for a row that has none."""
    return scores.amax(-1, keepdim=True)


def maximum_with_sink(scores, column):
    return torch.maximum(scores.amax(-1, keepdim=True), column)


def softmax_without_sink(scores, column):
    """Return a softmax without the sink; a row without a key is 0."""
    return scores.softmax(-1).nan_to_num(0)


def drop_sink_and_renormalise(scores, column):
    """Return the keys' weights, divided by their sum: 0/0 without a key."""
    return mistakes.shares_of(softmax_with_sink(scores, column))


def keep_sink_column(scores, column):
    return torch.cat([scores, column], -1).softmax(-1)


def hand_sink_weight_on(give: Callable):
    """Return a ``normalize`` that gives the sink's weight to keys, as ``give`` says."""

    def normalize(scores, column):
        weights = keep_sink_column(scores, column)
        return give(weights[..., :-1], weights[..., -1:])

    return normalize


def give_to_one_key(place: int):
    def give(weights, rest):
        weights = weights.clone()
        weights[..., place : weights.shape[-1] if place < 0 else place + 1] += rest
        return weights

    return give


def softmax_times_gate(scores, column):
    """Return the softmax times the keys' share of the whole: right where there is a key."""
    gate = (scores.logsumexp(-1, keepdim=True) - column).sigmoid()
    return scores.softmax(-1) * gate


def hide_sink_too(scores, column):
    """Return weights with the sink hidden where all keys are."""
    empty = scores.isneginf().all(-1, keepdim=True)
    return softmax_with_sink(scores, column.masked_fill(empty, -math.inf))


def guard_sum_with_sink(number: float) -> dict[str, Any]:
    def total(sum_of_weights, column, top):
        return sum_of_weights + (column - top).exp() + number

    return {"normalize": softmax_by_hand(total, maximum_with_sink)}


def fill_masked_with(number: float) -> dict[str, Any]:
    return {"hide": lambda s, mask: s if mask is None else s.masked_fill(~mask, number)}


def sink_along_axis(axis: int):
    """Return a ``normalize`` with the sink as one more entry along another axis."""

    def normalize(scores, column):
        sink_entry = column.expand_as(scores).narrow(axis, 0, 1)
        return (
            torch.cat([scores, sink_entry], axis).softmax(axis).narrow(axis, 0, scores.shape[axis])
        )

    return normalize


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    today.sink_softmax,
    section="Chapter 21, “Somewhere to put nothing”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion("the sink takes its part of every row", 3).on(
            BY_HAND, ROW, ROW.but("h=4 m=4 n=4"), ROW.but("h=2 m=3 n=6", batch=(2,))
        ),
        CASES.criterion("with a mask", 2).on(
            ROW.but(arguments=SQUARE_MASK),
            ROW.but("m=6 n=6", arguments=SQUARE_MASK),
            ROW.but("h=2 m=4 n=3", batch=(4,), arguments=SQUARE_MASK, note="one mask for all"),
            ROW.but("h=2", batch=(3,), arguments=OWN_MASK, note="a mask for each sequence"),
            ROW.but("m=5 n=5", batch=(2,), arguments=HEAD_MASK, note="a mask for each head"),
        ),
        Criterion("a query without a key gives 0", 1).on(lambda rng: list(NO_KEY_CASES)),
        Criterion("scores and sinks far from 0", 1).on(far_from_0_cases),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("one query or key, a sink of 0, float32, large and small", 1).on(
            row("h=2 m=1 n=5", note="one query"),
            row("h=2 m=4 n=1", note="one key"),
            row("h=1 m=3 n=2", note="one head, two keys"),
            ROW.but(zero=("sink",), note="sinks of 0"),
            *ROWS.numbers,
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach scores and sinks", 1).on(
            *ROWS.gradients,
            Case(
                (tensor([[[0.3, -0.7]], [[0.9, 0.2]]]), tensor([-0.5, 1500.0])),
                use=CASES.each_gradient,
                note="a sink far above all scores",
            ),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_sink_softmax,
        mistake("""the sink takes nothing
            Your rows sum to 1: you leave the sink out, add it to all scores of a row (which a
            softmax does not notice), or divide by what is left once its weight is taken away. e to
            the sink stands in the sum that each row is divided by, and nowhere else.""")
        .by(normalize=softmax_without_sink)
        .by(normalize=lambda s, column: s.softmax(-1))
        .by(normalize=drop_sink_and_renormalise),
        mistake("""the sink's weight is handed on
            What the sink takes you give to keys, to the first, the last or all of them. It has no
            value: that part of the weight goes nowhere, and rows sum to less than 1.""")
        .by(normalize=hand_sink_weight_on(give_to_one_key(0)))
        .by(normalize=hand_sink_weight_on(give_to_one_key(-1)))
        .by(
            normalize=hand_sink_weight_on(lambda weights, rest: weights + rest / weights.shape[-1])
        ),
        mistake("""the sink's column comes back
            You return n + 1 weights a row, the sink's among them. Drop it: `weights[..., :-1]`.
        """)
        .by(normalize=keep_sink_column)
        .by(normalize=lambda s, column: torch.cat([column, s], -1).softmax(-1)),
        mistake("""the wrong column is dropped
            You put the sink at the end and drop the first column, or the other way round. What goes
            is the sink's.""")
        .by(normalize=lambda s, column: keep_sink_column(s, column)[..., 1:])
        .by(normalize=lambda s, column: torch.cat([column, s], -1).softmax(-1)[..., :-1]),
        mistake("""the sink is not lowered by the maximum
            You subtract each row's largest score in the exponents of the keys, and add e to the
            sink as it is. All terms of the sum are lowered alike: `exp(sink - top)`.""").by(
            normalize=softmax_by_hand(lambda total, column, top: total + column.exp(), maximum_or_0)
        ),
        mistake("""the sink is outside the maximum
            You lower everything by the largest score, among which the sink is not. Where the sink
            is far above, e to it overflows, in the gradient at least. The maximum is taken over the
            scores *and* the sink.""").by(
            normalize=softmax_by_hand(
                lambda total, column, top: total + (column - top).exp(),
                lambda scores, column: maximum_or_0(scores, column).detach(),
            )
        ),
        mistake("""no maximum subtracted
            exp of a large score overflows, and ∞/∞ is NaN; far below 0 every exp is 0, and 0/0 is
            NaN too. Subtract the largest of a row's scores and its sink first.""").by(
            normalize=softmax_by_hand(
                lambda total, column, top: total + column.exp(), lambda scores, column: 0
            )
        ),
        mistake("""the sink is added without its exponential
            You add the sink itself to the sum. It is a logit like the scores: e to it is added.
        """)
        .by(
            normalize=softmax_by_hand(
                lambda total, column, top: total + column, lambda scores, column: 0
            )
        )
        .by(normalize=softmax_by_hand(lambda total, column, top: total + column, maximum_or_0))
        .by(normalize=softmax_by_hand(lambda total, column, top: total + column, row_maximum))
        .by(normalize=softmax_by_hand(lambda total, column, top: total + column - top, row_maximum))
        .by(
            normalize=softmax_by_hand(
                lambda total, column, top: total + column - top, maximum_with_sink
            )
        ),
        mistake("""1 is added, not e to the sink
            You add 1 to the sum, which is a sink of 0 for every head, or 1 after the maximum is
            taken off, which is a sink as high as the best key. Each head has a logit of its own.
        """)
        .by(normalize=lambda s, column: softmax_with_sink(s, 0 * column))
        .by(normalize=softmax_by_hand(lambda total, column, top: total + 1, maximum_or_0)),
        mistake("""the sign of the sink is turned
            You add e to the *negative* sink: a high one then takes little.""").by(
            read_sink=lambda sink: -sink
        ),
        mistake("""the sink counts once for each key
            You add e to the sink for every key of the row, so that it takes more the more keys
            there are. It stands in the sum once.""").by(
            normalize=lambda s, column: softmax_with_sink(s, column + math.log(s.shape[-1]))
        ),
        mistake("""one sink for all heads
            You use the first sink, or the mean of them, for every head. Head i has sink i:
            `sink[:, None, None]`.""")
        .by(align=lambda sink, scores: sink[0].expand(*scores.shape[:-1], 1))
        .by(align=lambda sink, scores: sink.mean().expand(*scores.shape[:-1], 1))
        .by(align=lambda sink, scores: sink.sum().expand(*scores.shape[:-1], 1)),
        mistake("""the sinks stand along another axis
            You line the sinks up with the queries, or with a batch axis. They belong to the heads,
            the third axis from the end: `sink[:, None, None]`.""")
        .by(align=lambda sink, scores: sink[:, None].expand(*scores.shape[:-1], 1))
        .by(align=lambda sink, scores: sink[:, None, None, None].expand(*scores.shape[:-1], 1)),
        mistake("""the softmax runs over another axis
            You take the softmax over the queries, or over the heads. Each query shares out its
            weight among the keys and the sink: the last axis.""")
        .by(normalize=sink_along_axis(-2))
        .by(normalize=sink_along_axis(-3)),
        mistake("""a row without a key gives NaN
            Where no key is allowed you compute −∞ − (−∞), or hide the sink as well. The sink is
            always there, so such a row is 0: everything goes to it.""")
        .by(normalize=softmax_times_gate)
        .by(normalize=hide_sink_too),
        mistake("""the mask is inverted
            You shut out what the mask allows. True means allowed: fill where the mask is False,
            `scores.masked_fill(~mask, -torch.inf)`.""").by(
            hide=lambda s, mask: s if mask is None else decisions.hide(s, ~mask)
        ),
        mistake("""the mask is ignored
            Your result is the same with and without the mask. Scores where it is False become −∞
            before the softmax.""").by(hide=lambda s, mask: s),
        mistake("""masked after the softmax, not renormalised
            You set weights to 0 after the softmax, where hidden keys have taken their part already.
            Put −∞ into the scores before it.""").by(
            hide=lambda s, mask: s, after=lambda w, mask: w if mask is None else w * mask
        ),
        mistake("""the mask is transposed
            You transpose the mask before you use it. It has a row for each query and a column for
            each key, as the scores have: use it as it comes.""").by(
            hide=lambda s, mask: s if mask is None else decisions.hide(s, mask.mT)
        ),
        mistake("""a score of 0 is not −∞
            You set masked scores to 0 (by `scores * mask`), and e⁰ = 1 is a weight like others.
            Fill in −∞.""").by(hide=lambda s, mask: s if mask is None else s * mask),
        mistake("""masked scores are not low enough
            You fill masked scores with a number that other scores can come near, so those keys
            still get some weight. Fill in −∞.""")
        .by(fill_masked_with(-5.0))
        .by_any(fill_masked_with, Between(-1000.0, -1e-3)),
        mistake("""0 · ∞ in the mask
            You multiply a mask by −∞, and 0 · ∞ is NaN wherever attention is allowed. `masked_fill`
            puts −∞ where it belongs and nowhere else.""").by(hide=mistakes.zero_times_infinity),
        mistake("""a guard in the sum
            You add a small number to the sum that the weights are divided by. The sink keeps it
            above 0: no guard is needed.""")
        .by(guard_sum_with_sink(1e-3))
        .by_any(guard_sum_with_sink, Between(1e-9, 0.5)),
        mistake("""a sigmoid in place of the softmax
            You squash each score by itself, against the sink. The scores of a row compete: e to
            each is divided by the sum of all of them and of e to the sink.""")
        .by(normalize=lambda s, column: (s - column).sigmoid())
        .by(normalize=lambda s, column: s.sigmoid()),
        mistake("""the softmax twice
            You take the softmax of weights. Take it once, of scores and sink.""").by(
            after=lambda w, mask: decisions.hide(w, mask).softmax(-1).nan_to_num(0)
        ),
        mistake("""the scores come back
            You return scores. Return weights, between 0 and 1.""").by(
            normalize=lambda s, column: s - column
        ),
        mistake("""the sinks learn nothing
            No gradient reaches the sinks: `.detach()`, `.item()`, `.tolist()` or `float(…)` cut it
            off. Stay with tensors.""").by(read_sink=lambda sink: sink.detach()),
        mistake("""the scores learn nothing
            No gradient reaches the scores: `.detach()`, `.data` or NumPy on the way cut it off.
        """).by(read=lambda scores: scores.detach()),
        mistake("""computed in float32
            You turn the scores into float32, which keeps seven digits of float64. Stay in their
            dtype.""").by(read=lambda scores: scores.float(), read_sink=lambda sink: sink.float()),
        mistake("""the scores are changed
            You write −∞ into the caller's scores: `masked_fill_`, or an assignment. Use
            `masked_fill`, which makes a new tensor.""").by(
            hide=lambda s, mask: s if mask is None else s.data.masked_fill_(~mask, -math.inf)
        ),
    ),
)
