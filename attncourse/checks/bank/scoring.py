"""The exercises of chapter 6, ways to compare a query with a key."""

import math
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import scoring
from attncourse.checks.bank import kqv
from attncourse.checks.callers import with_gradients
from attncourse.checks.exercise import Between, Case, Rng, composition, exercise, unchanged
from attncourse.checks.variants.conventions import forbidden, masked
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import CaseTable, Drawn, hole, normal, once_more, row, standard
from attncourse.checks.writing.decisions import Attention, Score, linear, module_class
from attncourse.checks.writing.modules import ModuleTable, State, module_case, start_case, tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases -----------------------------------------------------------------------------------


def bilinear_state(rng: Rng, d_q: int, d_k: int) -> State:
    return {"W": tensor(normal(rng, (d_q, d_k)))}


def additive_state(rng: Rng, d_q: int, d_k: int, d_hidden: int) -> State:
    """Weights of order one: sums of both signs, some in the bend of the tanh."""
    shapes = {"W_q": (d_hidden, d_q), "W_k": (d_hidden, d_k), "w": (1, d_hidden)}
    return {f"{name}.weight": tensor(normal(rng, shape)) for name, shape in shapes.items()}


PAIR = {"query": "... m d_q", "key": "... n d_k"}
BILINEAR_CASES = ModuleTable(PAIR, name="BilinearScore", build="d_q d_k", state=bilinear_state)
BILINEAR_ROWS = standard(BILINEAR_CASES)
BILINEAR_BY_HAND = module_case(
    "BilinearScore",
    (2, 3),
    {"W": tensor([[1, 0, 2], [0, 3, 1]])},
    {"query": tensor([[1, 0], [1, 1]]), "key": tensor([[1, 1, 0], [0, 1, 2]])},
)
ADDITIVE_CASES = ModuleTable(
    PAIR, name="AdditiveScore", build="d_q d_k d_hidden", state=additive_state
)
ADDITIVE_ROWS = standard(ADDITIVE_CASES)
ADDITIVE_BY_HAND = module_case(
    "AdditiveScore",
    (2, 2, 2),
    {
        "W_q.weight": tensor([[1, 0], [0, 1]]),
        "W_k.weight": tensor([[1, 0], [0, -1]]),
        "w.weight": tensor([[2, 1]]),
    },
    {"query": tensor([[0, 1], [1, 1]]), "key": tensor([[0, 1], [1, 1], [0, 0]])},
)
ADDITIVE_ROW = row("m=4 n=6 d_q=3 d_k=5 d_hidden=7")

ATTEND_CASES = CaseTable({"scores": "... m n", "values": "... n d_v"}, how=normal)
ATTEND_ROWS = standard(ATTEND_CASES)
LN2, LN3 = math.log(2), math.log(3)
# Weights 1/4 1/4 1/2 and 1/6 1/2 1/3.
TWO_ROWS = tensor([[0, 0, LN2], [0, LN3, LN2]]), tensor([[12, 0], [0, 12], [12, 12]])
ATTEND_BY_HAND = Case(TWO_ROWS, note="the exponentials are 1, 1, 2 and 1, 3, 2")
MASKED_BY_HAND = Case(
    (*TWO_ROWS, torch.tensor([[True, False, True], [True, True, False]])),
    note="weights 1/3, 2/3 and 1/4, 3/4",
)
HIDDEN_FAVOURITES = Case(
    (tensor([[0, 4, 1], [2, 1, 4]]), TWO_ROWS[1], MASKED_BY_HAND.args[2]),
    note="hidden keys score highest",
)
ATTEND_ROW = row("m=5 n=7 d_v=3")
FAR_BELOW = {"scores": Drawn("m n", lambda rng, shape: normal(rng, shape) - 1e6)}

# --- usual mistakes --------------------------------------------------------------------------


@composition
def bilinear(layers=lambda d_q, d_k: {"W": nn.Parameter(torch.randn(d_q, d_k))}, **options):
    """A ``BilinearScore`` made of decisions: what it holds, how it scores."""
    score = Score.of(options)

    def forward(self, query, key):
        return score(query, key, self.W)

    return module_class("BilinearScore", layers, forward=forward, **options)


KEY_FIRST = mistakes.ROLES_EXCHANGED.by(prepare=lambda query, key: (key, query))


@composition
def additive(
    layers=lambda d_q, d_k, d_h: linear({"W_q": (d_q, d_h), "W_k": (d_k, d_h), "w": (d_h, 1)}),
    project=lambda self, query, key: (self.W_q(query), self.W_k(key)),
    pair=lambda query, key: query.unsqueeze(-2) + key.unsqueeze(-3),
    bend=lambda self, hidden: torch.tanh(hidden),
    last=lambda self, hidden: self.w(hidden),
    finish=lambda scores: scores.squeeze(-1),
    **options,
):
    """An ``AdditiveScore`` made of decisions: its layers, and each step of its way."""

    def forward(self, query, key):
        return finish(last(self, bend(self, pair(*project(self, query, key)))))

    return module_class("AdditiveScore", layers, forward=forward, **options)


@composition
def attend(
    order=lambda scores, values: (scores, values),
    prepare=lambda scores, values: scores,
    into=lambda scores, hidden, mask: hidden,
    finish=lambda output, weights: output,
    **options,
):
    """``attend`` made of decisions; ``into`` says where the masked scores are written."""
    own = Attention.of(options)
    attention = replace(own, hide=lambda s, mask: into(s, own.hide(s, mask), mask))

    def answer(scores, values, mask=None):
        scores, values = order(scores, values)
        weights = attention.shares(prepare(scores, values), mask)
        return finish(attention.mix(weights, values), weights)

    return answer


def with_sequences(mask):
    return mask.unsqueeze(1) if mask is not None and mask.ndim == 2 else mask


def least(scores):
    return scores.masked_fill(scores == -math.inf, math.inf).amin(-1, keepdim=True)


def middle(scores):
    seen = scores > -math.inf
    return scores.where(seen, 0).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)


UNBENT = {"bend": lambda self, hidden: hidden}
OTHER_BENDS = (
    *(F.gelu, F.relu, F.sigmoid, F.silu, F.elu, F.leaky_relu, F.softplus, F.softsign, torch.atan),
    *(torch.exp, torch.sin, lambda x: F.gelu(x, approximate="tanh"), lambda x: x.clamp(-1, 1)),
    lambda x: x.softmax(-1),
    lambda x: (x / 2).tanh(),
)


def by_its_axes(query, key):
    b, m, h = query.shape
    return query.reshape(b, m, 1, h) + key.unsqueeze(1)


def each_in_runs(x, others):
    return x.repeat_interleave(others.shape[-2], -2)


def all_in_turn(x, others):
    return torch.cat([x] * others.shape[-2], -2)


def paired(repeat, repeat_key):
    """All pairs below one another, cut into m rows of n."""

    def pair(query, key):
        hidden = repeat(query, key) + repeat_key(key, query)
        return hidden.unflatten(-2, (query.shape[-2], key.shape[-2]))

    return {"pair": pair}


def one_for_all_keys(query, key):
    hidden = (query + key).unsqueeze(-2)
    return hidden.expand(*hidden.shape[:-2], key.shape[-2], -1)


# --- exercises -------------------------------------------------------------------------------

# Chapter 5's scores under the name that they have among others: asked and judged as there.
DOT = replace(
    kqv.SCORES,
    target="scoring.dot_score",
    reference=scoring.dot_score,
    section="Chapter 6, “The dot product, and what it takes for granted”",
    minutes=5,
)

BILINEAR = exercise(
    scoring.BilinearScore,
    section="Chapter 6, “A matrix in between”",
    difficulty=2,
    minutes=15,
    forbids=("bilinear",),
    criteria=(
        BILINEAR_CASES.criterion("query times W times key, for every pair", 3).on(
            BILINEAR_BY_HAND,
            row("m=4 n=4 d_q=5 d_k=5", note="d_q = d_k, as many queries as keys"),
            row("m=3 n=7 d_q=5 d_k=5", note="d_q = d_k", then="m=5 n=2"),
            row("m=3 n=7 d_q=5 d_k=5", then="", note=cases.OTHER_NUMBERS),
        ),
        BILINEAR_CASES.criterion("d_q, d_k, m and n may all differ", 1).on(
            row("m=5 n=11 d_q=3 d_k=7", note="d_q = 3, d_k = 7"),
            row("m=5 n=3 d_q=7 d_k=2", note="d_q = 7, d_k = 2"),
        ),
        BILINEAR_CASES.criterion("one query, one key, one feature", 1).on(
            row("m=1 n=7 d_q=3 d_k=5", note="one query"),
            row("m=7 n=1 d_q=3 d_k=5", note="one key"),
            row("m=3 n=5 d_q=1 d_k=1", note="one feature"),
        ),
        BILINEAR_CASES.criterion("batches", 1).on(*BILINEAR_ROWS.batches),
        BILINEAR_CASES.criterion("float32 and large entries", 1).on(
            *BILINEAR_ROWS.numbers, row("m=7 n=4 d_q=3 d_k=5", zero=("W",), note="a W of 0")
        ),
        BILINEAR_CASES.criterion(
            "W starts at random numbers; gradients reach it and the query", 1
        ).on(*BILINEAR_ROWS.gradients, start_case("BilinearScore", (5, 3), "W")),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        bilinear,
        mistakes.NO_SUPER_INIT,
        mistake("""W lies on its side
            Your W is (d_k, d_q), as if the key stood on the left. Here the query does, `query @ W @
            key.mT`, so W is (d_q, d_k).""")
        .by(
            layers=lambda d_q, d_k: {"W": nn.Parameter(torch.randn(d_k, d_q))},
            through=lambda query, W: query @ W.mT,
        )
        .by(layers=lambda d_q, d_k: {"W": nn.Parameter(torch.randn(d_k, d_q))}),
        mistake("""W does not learn
            You assigned a plain tensor, or a parameter with `requires_grad=False`, so training
            would leave it as it is. Write `self.W = nn.Parameter(…)`.""")
        .by(layers=lambda d_q, d_k: {"W": torch.randn(d_q, d_k)})
        .by(layers=lambda *d: {"W": nn.Parameter(torch.randn(*d), requires_grad=False)}),
        mistakes.not_random("W"),
        mistake("""W is transposed
            You multiply by `W.T`, so that feature a of the query meets what was meant for feature a
            of the key. W is (d_q, d_k) and stands as it is: `query @ W @ key.mT`.
        """).by(through=lambda query, W: query @ W.mT),
        mistake("""W is left out
            Your scores are the dot products. Put W between query and key.
        """).by(through=lambda query, W: query),
        mistake("""query and key are both projected
            You multiply query and key by W both: q W Wᵀ kᵀ, a dot product of two projections. W
            stands between them once.""").by(project=lambda key, W: key @ W),
        mistake("""W multiplies the key one by one
            You use only the diagonal of W. Every feature of the query meets every feature of the
            key: two matrix products, `query @ W @ key.mT`.
        """).by(through=lambda query, W: query * W.diagonal()),
        *(
            s.naming(**{"query @ key.mT": "query @ self.W @ key.mT", "the dot product": "q W kᵀ"})
            for s in (KEY_FIRST, *mistakes.OF_A_SCORE)
            if s not in (mistakes.ROLES_EXCHANGED, mistakes.ALREADY_WEIGHTS, mistakes.SQUASHED)
        ),
        mistakes.SQUASHED.called("a tanh around it").said(
            "You squash the score, into −1 to 1 or 0 to 1. The tanh belongs to the additive score, "
            "inside; this score is linear in query and key."
        ),
        mistakes.ALREADY_WEIGHTS,
    ),
)

ADDITIVE = exercise(
    scoring.AdditiveScore,
    section="Chapter 6, “A small network for every pair”",
    difficulty=3,
    minutes=25,
    criteria=(
        ADDITIVE_CASES.criterion("w of the tanh of the sum, for every pair", 3).on(
            ADDITIVE_BY_HAND,
            row("m=5 n=5 d_q=4 d_k=4 d_hidden=4", note="widths 4, as many queries as keys"),
            row("m=5 n=7 d_q=4 d_k=4 d_hidden=4", then="m=2 n=3", note="all widths 4"),
            ADDITIVE_ROW.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        ADDITIVE_CASES.criterion("d_q, d_k, d_hidden, m and n may all differ", 1).on(
            ADDITIVE_ROW.but(note="d_q, d_k and d_hidden differ"),
            ADDITIVE_ROW.but("d_q=5 d_k=2 d_hidden=3", note="d_q, d_k and d_hidden differ"),
        ),
        ADDITIVE_CASES.criterion("one query, one key, one hidden unit, one feature", 1).on(
            ADDITIVE_ROW.but("m=1", note="one query"),
            ADDITIVE_ROW.but("m=6 n=1", note="one key"),
            ADDITIVE_ROW.but("d_hidden=1", note="one hidden unit"),
            ADDITIVE_ROW.but("m=2 d_q=1 d_k=1", note="one feature"),
        ),
        ADDITIVE_CASES.criterion("batches", 1).on(*ADDITIVE_ROWS.batches),
        ADDITIVE_CASES.criterion("float32 and large entries", 1).on(
            *ADDITIVE_ROWS.numbers,
            *(
                ADDITIVE_ROW.but(zero=(f"{name}.weight",), note=f"{name} is 0")
                for name in ("W_q", "W_k", "w")
            ),
        ),
        ADDITIVE_CASES.criterion("gradients reach the query and every weight", 2).on(
            *ADDITIVE_ROWS.gradients
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        additive,
        mistake("""the tanh in another place
            You take the tanh of each projection, of what w returns, or twice. It stands once,
            between the sum and w, where query and key act together.""")
        .by(**UNBENT, last=lambda self, hidden: torch.tanh(self.w(hidden)))
        .by(last=lambda self, hidden: torch.tanh(self.w(hidden)))
        .by(bend=lambda self, hidden: torch.tanh(torch.tanh(hidden)))
        .by(**UNBENT, project=lambda self, q, k: (self.W_q(q).tanh(), self.W_k(k).tanh()))
        .by(**UNBENT, project=lambda self, q, k: (self.W_q(q).tanh(), self.W_k(k)))
        .by(**UNBENT, project=lambda self, q, k: (self.W_q(q), self.W_k(k).tanh())),
        mistake("""no tanh
            Without the tanh the score is a number for the query plus a number for the key. The
            query's cancels in the softmax, so that all queries get the same weights.
        """).by(UNBENT),
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
        .by(pair=one_for_all_keys),
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
        .by(pair=by_its_axes)
        .by(pair=lambda q, k: q.unsqueeze(2) + k.unsqueeze(1), finish=lambda s: s.squeeze(3)),
        mistake("""the repeated rows do not meet
            You repeat queries and keys, but not so that query i meets every key in row i. Give them
            axes of length 1, (..., m, 1, h) and (..., 1, n, h), and repeat nothing.""")
        .by(paired(each_in_runs, each_in_runs))
        .by(paired(all_in_turn, all_in_turn))
        .by(paired(all_in_turn, each_in_runs)),
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
        .by(**UNBENT, pair=lambda q, k: (q @ k.mT).unsqueeze(-1), last=lambda self, hidden: hidden)
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

ATTEND = exercise(
    scoring.attend,
    section="Chapter 6, “Whatever made the scores”",
    difficulty=2,
    minutes=10,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        ATTEND_CASES.criterion("softmax of each row, then the blend of the values", 2).on(
            ATTEND_BY_HAND,
            row("m=5 n=5 d_v=5", note="as many queries, keys and features"),
            row("m=3 n=7 d_v=5"),
        ),
        ATTEND_CASES.criterion("one query, one key, one feature, any memory layout", 1).on(
            row("m=1 n=5 d_v=3", note="one query"),
            row("m=5 n=1 d_v=3", note="one key"),
            row("m=5 n=7 d_v=1", note="one feature"),
            row("m=5 n=7 d_v=3", turned=True, note="not contiguous in memory"),
        ),
        ATTEND_CASES.criterion("a mask, True where attention is allowed", 2).on(
            MASKED_BY_HAND,
            HIDDEN_FAVOURITES,
            ATTEND_ROW.but(given={"mask": hole("m n")}),
            ATTEND_ROW.but(given={"mask": hole("1 n")}, note="one row of the mask for all"),
            ATTEND_ROW.but(given={"mask": hole("n")}, note="a mask (n,)"),
            ATTEND_ROW.but(batch=(2,), given={"mask": hole("... 1 n")}, note="batch of masks"),
            ATTEND_ROW.but("n=5", batch=(5,), given={"mask": hole("m n")}, note=cases.ONE_MASK),
        ),
        ATTEND_CASES.criterion("batches", 1).on(
            *ATTEND_ROWS.batches,
            ATTEND_ROW.but(batch=(2,), given={"values": Drawn("n d_v")}, note="values for all"),
        ),
        ATTEND_CASES.criterion("large scores and float32", 1).on(
            *ATTEND_ROWS.numbers,
            ATTEND_ROW.but(given=FAR_BELOW | {"mask": hole("m n")}, note="scores near −1000000"),
            once_more(ATTEND_BY_HAND),
        ),
        ATTEND_CASES.criterion("gradients reach scores and values", 1).on(
            *ATTEND_ROWS.gradients,
            ATTEND_ROW.but(
                batch=(2,),
                given={"mask": hole("m n")},
                use=with_gradients("scores", "values"),
                note="a batch of 2, with a mask",
            ),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        attend,
        *mistakes.OF_THE_SOFTMAX,
        *mistakes.MORE_OF_THE_SOFTMAX,
        mistakes.FLOORED,
        mistakes.BY_FEATURES,
        mistakes.BEST_ONLY,
        mistake("""exponentials that are not shared out
            You blend by the exponentials, or by the logarithms of `log_softmax`. Weights are the
            exponentials of a row divided by their sum.""")
        .by(normalize=lambda s: s.exp())
        .by(normalize=lambda s: (s - s.amax(-1, keepdim=True)).exp())
        .by(normalize=lambda s: s.log_softmax(-1)),
        mistake("""scaled once more
            You divide by the root of the number of keys, or of the width of the values. Any scaling
            there is belongs to the score: `attend` takes the scores as they are.""")
        .by(prepare=lambda scores, values: scores / scores.shape[-1] ** 0.5)
        .by(prepare=lambda scores, values: scores / values.shape[-1] ** 0.5),
        mistake("""scores times a number
            You multiply the scores by a number, −1 it may be, or use another base than e, which is
            the same. `attend` takes the exponentials of the scores as they are.""")
        .by(prepare=lambda scores, values: 0.5 * scores)
        .by(prepare=lambda scores, values: -scores)
        .by_any(
            lambda number: {"prepare": lambda scores, values: number * scores}, Between(1e-3, 1e3)
        ),
        mistake("""the weights do not blend
            You transpose weights or values, or multiply entry by entry. Row i holds query i's
            weights on all keys, and a blend adds up over these: `weights @ values`.""")
        .by(mix=lambda weights, values: weights.mT @ values)
        .by(mix=lambda weights, values: weights * values)
        .by(mix=lambda weights, values: weights @ values.mT),
        mistake("""scores and values exchanged
            You take the softmax of the values and blend the scores. The scores come first.""").by(
            order=lambda scores, values: (values, scores)
        ),
        mistakes.ONE_BATCH_AXIS.here(mix=lambda weights, values: torch.bmm(weights, values))
        .by(mix=lambda weights, v: torch.einsum("bmn,bnd->bmd", weights, v))
        .by(
            normalize=lambda scores: scores.softmax(2),
            mix=lambda weights, v: torch.einsum("bmn,bnd->bmd", weights, v),
        )
        .by(normalize=lambda scores: scores.softmax(2), mix=torch.bmm),
        mistakes.TOO_LITTLE_OFF.by(
            *(mistakes.lowered_by(-math.log(x)) for x in (1e-8, 1e-9, 1e-10))
        ),
        *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
        mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
        *mistakes.OF_THE_MASKS_SHAPE,
        mistakes.GUARD_AFTER_THE_MASK,
        mistake("""an axis is added to a mask of two axes
            You take a mask of two axes for (b, n) and put an axis between them. Such a mask is (m,
            n) here, for every sequence. It broadcasts to the scores as it is: add nothing.
        """).by(hide=lambda s, mask: decisions.hide(s, with_sequences(mask))),
        mistake("""another number than the maximum is subtracted
            You subtract each row's smallest score, or its mean. exp of a score far above that still
            overflows: subtract the largest.""")
        .by(normalize=lambda s: mistakes.no_max_subtracted(s - least(s)))
        .by(normalize=lambda s: mistakes.no_max_subtracted(s - middle(s))),
        mistake("""the scores are clipped
            You cut the scores off at a bound, so that all beyond it weigh the same. Their
            differences count, however large they are: subtract each row's largest score.""")
        .by(prepare=lambda scores, values: scores.clamp(-50, 50))
        .by(prepare=lambda scores, values: scores.clamp(max=50))
        .by_any(
            lambda bound: {"prepare": lambda scores, values: scores.clamp(-bound, bound)},
            (10, 20, 30, 80, 88, 100, 500, 700, 1e4),
        ),
        mistake("""the scores are masked in place
            `masked_fill_`, with the underscore, writes −∞ into the caller's scores. `masked_fill`
            makes a new tensor.
        """).by(into=lambda s, hidden, mask: hidden if mask is None else s.copy_(hidden)),
        *mistakes.OF_THE_RESULT,
    ),
)

EXERCISES = (DOT, BILINEAR, ADDITIVE, ATTEND)

VARIANTS = (forbidden({"attend": masked()}),)
