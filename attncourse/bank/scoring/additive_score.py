"""The exercise ``AdditiveScore``: queries and keys compared by a small network."""

import torch
from torch.nn import functional as F

from attncourse import scoring
from attncourse.bank.scoring.bilinear_score import PAIR
from attncourse.checks.exercise import Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import normal, row, standard
from attncourse.checks.writing.decisions import linear, module_class
from attncourse.checks.writing.modules import ModuleTable, State, module_case, tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def additive_state(rng: Rng, d_q: int, d_k: int, d_hidden: int) -> State:
    """Return weights of order one: sums of both signs, some in the bend of the tanh."""
    shapes = {"W_q": (d_hidden, d_q), "W_k": (d_hidden, d_k), "w": (1, d_hidden)}
    return {f"{name}.weight": tensor(normal(rng, shape)) for name, shape in shapes.items()}


CASES = ModuleTable(PAIR, name="AdditiveScore", build="d_q d_k d_hidden", state=additive_state)
ROWS = standard(CASES)
BY_HAND = module_case(
    "AdditiveScore",
    (2, 2, 2),
    {
        "W_q.weight": tensor([[1, 0], [0, 1]]),
        "W_k.weight": tensor([[1, 0], [0, -1]]),
        "w.weight": tensor([[2, 1]]),
    },
    {"query": tensor([[0, 1], [1, 1]]), "key": tensor([[0, 1], [1, 1], [0, 0]])},
)
ROW = row("m=4 n=6 d_q=3 d_k=5 d_hidden=7")

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_additive_score(
    layers=lambda d_q, d_k, d_h: linear({"W_q": (d_q, d_h), "W_k": (d_k, d_h), "w": (d_h, 1)}),
    project=lambda self, query, key: (self.W_q(query), self.W_k(key)),
    pair=lambda query, key: query.unsqueeze(-2) + key.unsqueeze(-3),
    bend=lambda self, hidden: torch.tanh(hidden),
    last=lambda self, hidden: self.w(hidden),
    finish=lambda scores: scores.squeeze(-1),
    **options,
):
    """Return an ``AdditiveScore`` made of decisions: its layers, and each step of its way."""

    def forward(self, query, key):
        return finish(last(self, bend(self, pair(*project(self, query, key)))))

    return module_class("AdditiveScore", layers, forward=forward, **options)


WITHOUT_BEND = {"bend": lambda self, hidden: hidden}
OTHER_BENDS = (
    *(F.gelu, F.relu, F.sigmoid, F.silu, F.elu, F.leaky_relu, F.softplus, F.softsign, torch.atan),
    *(torch.exp, torch.sin, lambda x: F.gelu(x, approximate="tanh"), lambda x: x.clamp(-1, 1)),
    lambda x: x.softmax(-1),
    lambda x: (x / 2).tanh(),
)


def pair_with_one_batch_axis(query, key):
    """Return the sums of all pairs, of x with exactly one batch axis."""
    b, m, h = query.shape
    return query.reshape(b, m, 1, h) + key.unsqueeze(1)


def repeat_each_in_runs(x, others):
    """Return each row as often in a run as the others have rows."""
    return x.repeat_interleave(others.shape[-2], -2)


def repeat_all_in_turn(x, others):
    """Return all rows, one after the other, as often as the others have rows."""
    return torch.cat([x] * others.shape[-2], -2)


def pair_all_below(repeat, repeat_key):
    """Return the option with all pairs below one another, cut into m rows of n."""

    def pair(query, key):
        hidden = repeat(query, key) + repeat_key(key, query)
        return hidden.unflatten(-2, (query.shape[-2], key.shape[-2]))

    return {"pair": pair}


def pair_equal_places(query, key):
    """Return the sum of query i and key i for every key."""
    hidden = (query + key).unsqueeze(-2)
    return hidden.expand(*hidden.shape[:-2], key.shape[-2], -1)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    scoring.AdditiveScore,
    section="Chapter 6, “A small network for every pair”",
    difficulty=3,
    minutes=25,
    criteria=(
        CASES.criterion("w of the tanh of the sum, for every pair", 3).on(
            BY_HAND,
            row("m=5 n=5 d_q=4 d_k=4 d_hidden=4", note="widths 4, as many queries as keys"),
            row("m=5 n=7 d_q=4 d_k=4 d_hidden=4", then="m=2 n=3", note="all widths 4"),
            ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("d_q, d_k, d_hidden, m and n may all differ", 1).on(
            ROW.but(note="d_q, d_k and d_hidden differ"),
            ROW.but("d_q=5 d_k=2 d_hidden=3", note="d_q, d_k and d_hidden differ"),
        ),
        CASES.criterion("one query, one key, one hidden unit, one feature", 1).on(
            ROW.but("m=1", note="one query"),
            ROW.but("m=6 n=1", note="one key"),
            ROW.but("d_hidden=1", note="one hidden unit"),
            ROW.but("m=2 d_q=1 d_k=1", note="one feature"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32 and large entries", 1).on(
            *ROWS.numbers,
            *(
                ROW.but(zero=(f"{name}.weight",), note=f"{name} is 0")
                for name in ("W_q", "W_k", "w")
            ),
        ),
        CASES.criterion("gradients reach the query and every weight", 2).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_additive_score,
        mistake("""the tanh in another place
            You take the tanh of each projection, of what w returns, or twice. It stands once,
            between the sum and w, where query and key act together.""")
        .by(**WITHOUT_BEND, last=lambda self, hidden: torch.tanh(self.w(hidden)))
        .by(last=lambda self, hidden: torch.tanh(self.w(hidden)))
        .by(bend=lambda self, hidden: torch.tanh(torch.tanh(hidden)))
        .by(**WITHOUT_BEND, project=lambda self, q, k: (self.W_q(q).tanh(), self.W_k(k).tanh()))
        .by(**WITHOUT_BEND, project=lambda self, q, k: (self.W_q(q).tanh(), self.W_k(k)))
        .by(**WITHOUT_BEND, project=lambda self, q, k: (self.W_q(q), self.W_k(k).tanh())),
        mistake("""no tanh
            Without the tanh the score is a number for the query plus a number for the key. The
            query's cancels in the softmax, so that all queries get the same weights.
        """).by(WITHOUT_BEND),
        mistake("""another function in place of tanh
            You bend the sums by another function. The additive score has a tanh, between −1 and 1.
        """).by(*({"bend": lambda self, hidden, bend=bend: bend(hidden)} for bend in OTHER_BENDS)),
        mistake("""query and key added before one projection
            You project the sum q + k, or project both with one layer, which is the same. They need
            a layer each: their features mean different things, and d_q and d_k may differ.""")
        .by(project=lambda self, q, k: (q, k), bend=lambda self, x: torch.tanh(self.W_q(x)))
        .by(project=lambda self, query, key: (self.W_q(query), self.W_q(key))),
        mistake("""the layers are exchanged
            You project the queries by W_k and the keys by W_q. Each has the layer of its name.
        """).by(project=lambda self, query, key: (self.W_k(query), self.W_q(key))),
        mistake("""missing broadcast: only pairs at the same place
            You add query i to key i alone. Put an axis of length 1 into each, (..., m, 1, h) and
            (..., 1, n, h), and every query meets every key.""")
        .by(pair=lambda query, key: query + key)
        .by(pair=pair_equal_places),
        mistake("""the new axes stand the wrong way round
            Your scores are (..., n, m): row j belongs to key j. The queries get their new axis
            behind the m, `unsqueeze(-2)`, the keys before the n, `unsqueeze(-3)`.
        """).by(pair=lambda query, key: query.unsqueeze(-3) + key.unsqueeze(-2)),
        mistake("""axes counted from the front
            `unsqueeze(1)` and `unsqueeze(0)` are right without a batch, `unsqueeze(2)` and
            `unsqueeze(1)` for one batch axis. Count from the end: −2 for queries, −3 for keys.""")
        .by(pair=lambda query, key: query.unsqueeze(1) + key.unsqueeze(0))
        .by(pair=lambda query, key: query.unsqueeze(2) + key.unsqueeze(1))
        .by(pair=lambda query, key: query[:, :, None, :] + key[:, None, :, :])
        .by(pair=lambda query, key: query[:, None, :] + key[None, :, :])
        .by(pair=pair_with_one_batch_axis)
        .by(pair=lambda q, k: q.unsqueeze(2) + k.unsqueeze(1), finish=lambda s: s.squeeze(3)),
        mistake("""the repeated rows do not meet
            You repeat queries and keys, but not so that query i meets every key in row i. Give them
            axes of length 1, (..., m, 1, h) and (..., 1, n, h), and repeat nothing.""")
        .by(pair_all_below(repeat_each_in_runs, repeat_each_in_runs))
        .by(pair_all_below(repeat_all_in_turn, repeat_all_in_turn))
        .by(pair_all_below(repeat_all_in_turn, repeat_each_in_runs)),
        mistake("""the last axis is kept
            `w` makes an axis of length 1, and your scores still have it: (..., m, n, 1). Take it
            away, `.squeeze(-1)`.""")
        .by(finish=lambda scores: scores)
        .by(finish=lambda scores: scores.squeeze(-2)),
        mistake("""squeezed too much
            `.squeeze()` without a number removes *every* axis of length 1, the batch's or the only
            query's too. `.squeeze(-1)` removes the last axis alone.
        """).by(finish=lambda scores: scores.squeeze()),
        mistake("""the hidden units are just added up
            You sum the hidden units, or take their mean. The last step has weights of its own:
            `self.w(…)`.""")
        .by(last=lambda self, hidden: hidden.sum(-1, keepdim=True))
        .by(last=lambda self, hidden: hidden.mean(-1, keepdim=True)),
        mistake("""a dot product of the projections
            You take the dot product of the two projections. In this score they are added, and w
            weighs the hidden units of each pair.""")
        .by(
            **WITHOUT_BEND,
            pair=lambda q, k: (q @ k.mT).unsqueeze(-1),
            last=lambda self, hidden: hidden,
        )
        .by(pair=lambda q, k: (q @ k.mT).unsqueeze(-1), last=lambda self, hidden: hidden),
        mistake("""the projections are not added
            You multiply the projections of query and key, or subtract one from the other. In this
            score they are added, hence its name; W_k can learn the sign.""")
        .by(pair=lambda query, key: query.unsqueeze(-2) * key.unsqueeze(-3))
        .by(pair=lambda query, key: query.unsqueeze(-2) - key.unsqueeze(-3))
        .by(pair=lambda query, key: key.unsqueeze(-3) - query.unsqueeze(-2)),
        mistake("""divided by the root of the width
            You divide by √d_hidden, the score or the sums. That belongs to the dot product; here
            the tanh keeps the hidden units in range.""")
        .by(last=lambda self, hidden: self.w(hidden) / hidden.shape[-1] ** 0.5)
        .by(bend=lambda self, x: torch.tanh(x / x.shape[-1] ** 0.5)),
        mistakes.ALREADY_WEIGHTS.here(finish=lambda scores: scores.squeeze(-1).softmax(-1)),
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN,
    ),
)
