"""The exercise ``linear_attention``: attention by a product of features."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import efficient
from attncourse.bank.efficient.shared import (
    ATTENTION_SHAPES,
    MANY_TOKENS,
    SELF_ATTENTION_SHAPES,
    OptionTable,
)
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, normal, once_more, row, standard
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def partly_positive(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return rows whose first feature is above 0, so that elu + 1 is not 0 throughout."""
    x = normal(rng, shape)
    x[..., 0] = np.abs(x[..., 0]) + 0.1
    return x


CASES = OptionTable(ATTENTION_SHAPES, how=partly_positive)
ROWS = standard(CASES)
CAUSAL_CASES = OptionTable(
    SELF_ATTENTION_SHAPES, how=partly_positive, extra={"causal": True}.items()
)
CAUSAL_ROWS = standard(CAUSAL_CASES)
ROW = row("m=5 n=7 d_k=2 d_v=3")
CAUSAL_ROW = row("n=7 d_k=2 d_v=3")
BY_HAND = Case(
    (tensor([[0, 0], [1, 0]]), tensor([[0, 0], [2, 0], [0, 1]]), tensor([[1, 2], [4, 0], [10, 6]])),
    note="features 1, 1 and 2, 1 of the queries; 1, 1 and 3, 1 and 1, 2 of the keys",
)
CAUSAL_BY_HAND = replace(
    BY_HAND,
    args=(*(x[:2] for x in BY_HAND.args[:3]),),
    kwargs={"causal": True},
    note="the first token sees itself alone",
)

# --- decisions and mistakes ----------------------------------------------------------------------


def features(x):
    return F.elu(x) + 1


@composition
def compose_linear_attention(
    of_query=features,
    of_key=features,
    of_value=lambda value: value,
    is_causal=lambda causal: causal,
    so_far=lambda x, axis: x.cumsum(axis),
    values_so_far=None,
    sums=lambda query, key, so_far: (query * so_far).sum(-1, keepdim=True),
    divide=lambda mixed, sums: mixed / sums,
    mix=lambda query, state: query @ state,
):
    """Return ``linear_attention`` made of decisions; ``so_far`` adds up along an axis of tokens.

    ``values_so_far`` does so for the products with the values, where that is another sum.
    """

    def linear_attention(query, key, value, causal=False):
        query, key, value = of_query(query), of_key(key), of_value(value)
        if is_causal(causal):
            add_up = values_so_far or so_far
            states = add_up(key.unsqueeze(-1) * value.unsqueeze(-2), -3)
            mixed = mix(query.unsqueeze(-2), states).squeeze(-2)
            total = so_far(key, -2)
        else:
            mixed, total = mix(query, key.mT @ value), key.sum(-2, keepdim=True)
        return divide(mixed, sums(query, key, total))

    return linear_attention


def sums_before(x, axis):
    """Return sums of what stands before each place."""
    n = x.shape[axis]
    return torch.cat([0 * x.narrow(axis, 0, 1), x.cumsum(axis).narrow(axis, 0, n - 1)], axis)


def sums_from_here(x, axis):
    """Return sums of what stands at each place and behind it."""
    return x.flip(axis).cumsum(axis).flip(axis)


def count_keys(query, key, so_far):
    """Return the number of keys in each sum: those so far, or all."""
    n = so_far.shape[-2]
    n_keys = torch.arange(1, n + 1, dtype=query.dtype)[:, None] if n > 1 else key.shape[-2]
    return n_keys + 0 * so_far.sum(-1, keepdim=True)


def normalise_key_features(key):
    """Return the features of the keys, each divided by its own sum over the keys."""
    mapped = features(key)
    return mapped / mapped.sum(-2, keepdim=True)


def features_of_products(query, key, value, causal=False):
    """Return attention by φ of the products in place of products of φ."""
    weights = features(query @ key.mT)
    weights = weights.tril() if causal else weights
    return weights @ value / weights.sum(-1, keepdim=True)


def softmax_of_features(query, key, value, causal=False):
    """Return softmax attention between the features."""
    return softmax_attention(lambda d_k: 1)(features(query), features(key), value, causal)


def map_both(mapped: Callable) -> dict[str, Callable]:
    return {"of_query": mapped, "of_key": mapped}


def softmax_attention(factor: Callable) -> Callable:
    """Return softmax attention; the scores are multiplied by ``factor(d_k)``."""

    def linear_attention(query, key, value, causal=False):
        scores = query @ key.mT * factor(query.shape[-1])
        if causal:
            is_later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(is_later, -torch.inf)
        return scores.softmax(-1) @ value

    return linear_attention


def multiply_all_pairs(query, key, value, causal=False):
    """Return linear attention by the whole matrix of products."""
    products = features(query) @ features(key).mT
    products = products.tril() if causal else products
    return products @ value / products.sum(-1, keepdim=True)


def elu_plus(number: float) -> dict[str, Any]:
    return map_both(lambda x: F.elu(x) + number)


def guard_sum(number: float) -> dict[str, Any]:
    return {"divide": lambda mixed, sums: mixed / (sums + number)}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    efficient.linear_attention,
    section="Chapter 17, “Sums instead of scores”",
    difficulty=2,
    minutes=25,
    criteria=(
        CASES.criterion("features of the queries with sums over the keys", 3).on(
            BY_HAND,
            ROW,
            ROW.but("m=7 n=5 d_k=5", note="more queries than keys"),
            ROW.but("m=2 n=2", note="two and two"),
        ),
        CAUSAL_CASES.criterion("causal: each token sees those up to itself", 2).on(
            CAUSAL_BY_HAND,
            CAUSAL_ROW,
            CAUSAL_ROW.but("n=17 d_k=3", note="many tokens"),
            *(
                table_row.but(note=f"{table_row.note}, a batch")
                for table_row in CAUSAL_ROWS.contiguous
            ),
        ),
        CASES.criterion("not causal: no tensor of m · n numbers on the way", 1).on(
            MANY_TOKENS,
            MANY_TOKENS.but("m=160 n=150", options={"measured": 160 * 150}),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        Criterion("one query, one key, float32, large and small entries", 1).on(
            lambda rng: [
                *CASES(
                    ROW.but("n=1", note="one key"),
                    ROW.but("m=1", note="one query"),
                    *ROWS.numbers,
                )(rng),
                *CAUSAL_CASES(
                    CAUSAL_ROW.but("n=1", note="one token"),
                    CAUSAL_ROWS.batches[2],
                    CAUSAL_ROWS.single,
                )(rng),
                once_more(BY_HAND),
            ]
        ),
        CASES.criterion("gradients reach query, key and value", 1).on(
            *ROWS.gradients,
        ),
        CAUSAL_CASES.criterion("gradients, causal", 1).on(*CAUSAL_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=(
        *made(
            compose_linear_attention,
            mistake("""the denominators are missing
                You return φ(Q) (φ(K)ᵀ V). The weights φ(q) · φ(k) do not sum to 1: divide each row
                by their sum, φ(q) · Σ φ(k).""").by(divide=lambda mixed, sums: mixed),
            mistake("""divided by the number of keys
                You divide by a number of tokens. What divides row i is φ(q_i) · Σ_j φ(k_j).""")
            .by(sums=lambda q, k, so_far: k.shape[-2] + 0 * so_far.sum(-1, keepdim=True))
            .by(sums=count_keys),
            mistake("""each feature of the keys is shared out
                You divide each feature of the keys by its sum over the keys. It is the weights of a
                query that sum to 1: divide row i by φ(q_i) · Σ_j φ(k_j), at the end.
            """).by(of_key=normalise_key_features, divide=lambda mixed, sums: mixed),
            mistake("""divided feature by feature
                You divide what comes out by its own sum over the features, or take a softmax of
                it. The denominator of row i is φ(q_i) · Σ_j φ(k_j), and knows nothing of the
                values.""")
            .by(divide=lambda mixed, sums: mixed / mixed.sum(-1, keepdim=True))
            .by(divide=lambda mixed, sums: mixed.softmax(-1)),
            mistake("""the denominators have lost their axis
                Your denominators are `(..., m)` and line up with the features of the values, if
                they fit at all. Keep the axis: `.sum(-1, keepdim=True)`.""").by(
                sums=lambda q, k, so_far: (q * so_far).sum(-1)
            ),
            mistake("""divided by the sum of the keys' features alone
                Your denominators do not know the query. They are φ(q_i) · Σ_j φ(k_j), one for each
                query.""").by(sums=lambda q, k, so_far: so_far.sum(-1, keepdim=True)),
            mistake("""divided by the sum of the queries' features
                You add up the features of the query. The denominator is their product with the
                keys', φ(q_i) · Σ_j φ(k_j).
            """).by(sums=lambda q, k, so_far: q.sum(-1, keepdim=True)),
            mistake("""a guard in the denominator
                You add a small number to the denominators, and the weights no longer sum to 1. They
                are above 0 as it is.""")
            .by(guard_sum(0.001))
            .by_any(guard_sum, Between(1e-08, 10.0)),
            mistake("""elu without + 1
                elu goes down to −1, so weights can be negative and denominators 0. φ is elu +
                1.""").by(map_both(F.elu)),
            mistake("""another number added to elu
                You add another number than 1 to elu. φ(x) = elu(x) + 1 is above 0 and comes near
                it.""")
            .by(elu_plus(2.0))
            .by_any(elu_plus, (0.5, 1.5, 1e-06, 1.1, 3.0)),
            mistake("""another feature map
                You use another function than elu + 1 as φ.""")
            .by(map_both(torch.relu))
            .by(map_both(torch.exp))
            .by(map_both(lambda x: x.softmax(-1)))
            .by(map_both(F.softplus))
            .by(map_both(lambda x: torch.sigmoid(x)))
            .by(map_both(lambda x: F.gelu(x) + 1))
            .by(map_both(lambda x: F.relu(x) + 1))
            .by(map_both(lambda x: F.elu(x + 1)))
            .by(map_both(lambda x: F.selu(x) + 1))
            .by(map_both(torch.square))
            .by(map_both(lambda x: F.relu(x) + 1e-6))
            .by(map_both(lambda x: F.relu(x) + 1e-3))
            .by(of_query=lambda x: x.softmax(-1), of_key=lambda x: x.softmax(-2))
            .by(
                of_query=lambda x: x.softmax(-1),
                of_key=lambda x: x.softmax(-2),
                divide=lambda mixed, sums: mixed,
            ),
            mistake("""no feature map
                You use queries and keys as they are. Their products may be negative, and then they
                are no weights: take φ of both first.""").by(map_both(lambda x: x)),
            mistake("""φ of the queries alone
                You take φ of the queries and not of the keys. It is taken of both.
            """).by(of_key=lambda x: x),
            mistake("""φ of the keys alone
                You take φ of the keys and not of the queries. It is taken of both.
            """).by(of_query=lambda x: x),
            mistake("""φ of the values too
                You take φ of the values. They are mixed as they are.""").by(of_value=features),
            mistake("""scaled by √d_k
                You divide the queries, or queries and keys. There is no exp here whose argument
                could grow: φ is taken of queries and keys as they are.""")
            .by(of_query=lambda x: features(x * x.shape[-1] ** (-0.5)))
            .by(map_both(lambda x: features(x * x.shape[-1] ** (-0.25))))
            .by(map_both(lambda x: features(x * x.shape[-1] ** (-0.5)))),
            mistake("""causal is ignored
                With causal=True your tokens still see those behind them. Use running sums, `cumsum`
                along the tokens.""").by(so_far=lambda x, axis: x.sum(axis, keepdim=True)),
            mistake("""always causal
                Without `causal` every query sees all keys.""").by(is_causal=lambda causal: True),
            mistake("""a token does not see itself
                Your running sums stop before the token itself. It belongs to what it may see, and
                the first token has nothing else.""")
            .by(so_far=sums_before)
            .by(so_far=sums_before, divide=lambda mixed, sums: mixed / sums.clamp(1e-9))
            .by(so_far=sums_before, **guard_sum(1e-12))
            .by(so_far=sums_before, divide=lambda mixed, sums: (mixed / sums).nan_to_num()),
            mistake("""the values' sums are not causal
                You divide by what a token may see and mix the values of all tokens. Both sums run
                up to the token: `cumsum` of `key[..., None] * value[..., None, :]`, too.
            """).by(values_so_far=lambda x, axis: x.sum(axis, keepdim=True)),
            mistake("""running sums along another axis
                Your running sums go along the features, or an axis counted from the front. They go
                along the tokens: axis −2 of the keys, −3 of `key[..., None] * value[..., None,
                :]`.""")
            .by(so_far=lambda x, axis: x.cumsum(-2))
            .by(so_far=lambda x, axis: x.cumsum(-1))
            .by(so_far=lambda x, axis: x.cumsum(0))
            .by(so_far=lambda x, axis: x.cumsum(1)),
            mistake("""the future and not the past
                Your running sums come from the end. A token sees those *up to* itself.
            """).by(so_far=sums_from_here),
            mistake("""the denominators are not causal
                You mix what a token may see and divide by the sum over all keys. Both sums run up
                to the token.
            """).by(sums=lambda q, k, so_far: (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)),
            mistake("""φ(K)ᵀ V is transposed
                You multiply by Vᵀ φ(K). The sum over the keys is `(d_k, d_v)`: features of the keys
                are its rows.""").by(mix=lambda q, state: q @ state.mT),
        ),
        mistake("""all scores at once
            Right numbers, but they are made of the whole matrix φ(Q) φ(K)ᵀ. Multiply the other two
            first: φ(Q) (φ(K)ᵀ V).
        """).whole(multiply_all_pairs),
        mistake("""φ of the products
            You take φ of q · k. It is taken of queries and keys, each by itself, and the weights
            are their products, φ(q) · φ(k).""").whole(features_of_products),
        mistake("""softmax attention
            You compute softmax attention, of queries and keys or of their features. Here the
            weights are φ(q) · φ(k) over their sum.
        """).whole(
            softmax_attention(lambda d_k: 1),
            softmax_attention(lambda d_k: d_k ** (-0.5)),
            softmax_attention(lambda d_k: 1 / d_k),
            softmax_of_features,
        ),
    ),
)
