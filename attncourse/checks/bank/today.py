"""The exercises of chapter 21: norms, a sink, absorbed keys, a memory, chosen keys, bytes.

Of ``absorbed_scores`` the tensors are watched that it makes, in cases of their own: scores against
keys that were made are right scores.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import today
from attncourse.checks import callers
from attncourse.checks.bank.masking import NUMBERS, as_additive
from attncourse.checks.exercise import (
    Between,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import forbidden, masked
from attncourse.checks.variants.rewriting import NEGATED
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Count,
    Drawn,
    Row,
    hole,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake


def as_it_is(value):
    return value


# --- cases: normed_scores ------------------------------------------------------------------------


def gains(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


NORM_CASES = CaseTable(
    {
        "query": "... m d",
        "key": "... n d",
        "gain_q": Drawn("d", gains),
        "gain_k": Drawn("d", gains),
    }
)
NORM_FLOATS = CaseTable({"query": "... m d", "key": "... n d", "gain_q": "d", "gain_k": "d"})
NORM_ROWS, NORM_EACH = standard(NORM_CASES), standard(NORM_FLOATS)
NORMED = row("m=5 n=7 d=4")
NORM_BY_HAND = Case(
    (
        tensor([[1, 1, 1, 1], [0, 6, 0, 0]]),
        tensor([[5, 5, 5, 5], [2, 0, 0, 0]]),
        tensor([1, 1, 1, 1]),
        tensor([1, 2, 3, 4]),
    ),
    note="d = 4: vectors of equal numbers become ones",
)

# --- cases: sink_softmax -------------------------------------------------------------------------

SINK_CASES = CaseTable({"scores": "... h m n", "sink": "h"})
SINK_ROWS = standard(SINK_CASES)
HEADS = row("h=3 m=5 n=7")
SQUARE_MASK = {"mask": hole("m n")}
OWN_MASK = {"mask": hole("... 1 m n")}
HEAD_MASK = {"mask": hole("... h m n")}
SINK_BY_HAND = Case(
    (
        tensor([[[math.log(2), 0, 0], [0, 0, 0]]] * 2),
        tensor([0, math.log(5)]),
    ),
    note="2, 1, 1 and 1, 1, 1, with sinks of 1 and of 5",
)
NO_KEY_MASK = torch.tensor([[True, False, True], [False, False, False]])
NO_KEYS = [
    Case(
        (tensor([[[1, 2, 3], [4, 1, 2]]] * 2), tensor([0.5, -1]), NO_KEY_MASK),
        note="the second query has no key",
    ),
    Case(
        (tensor([[[1, 2, 3]]]), tensor([2.0]), torch.zeros(1, 3, dtype=torch.bool)),
        note="nobody has a key",
    ),
]


def far_scores(rng: Rng) -> list[Case]:
    """Scores far from 0, with a sink that is near them, and one that is not."""
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


# --- cases: absorbed_scores ----------------------------------------------------------------------

ABSORBED_CASES = CaseTable(
    {
        "q_content": "... h m d_c",
        "q_turned": "... h m d_r",
        "latent": "... n d_latent",
        "k_turned": "... n d_r",
        "W_uk": "h d_latent d_c",
    }
)
ABSORBED_ROWS = standard(ABSORBED_CASES)
LATENT = row("h=3 m=5 n=7 d_c=4 d_r=2 d_latent=6")
ABSORBED_BY_HAND = Case(
    (
        tensor([[[1, 0], [0, 1]], [[2, 0], [1, 1]]]),
        tensor([[[1, 0], [0, 2]], [[0, 0], [3, 1]]]),
        tensor([[1, 0, 0], [0, 1, 2], [0, 0, 1]]),
        tensor([[1, 0], [0, 1], [2, 2]]),
        tensor([[[1, 2], [3, 4], [5, 6]], [[0, 1], [1, 0], [2, 2]]]),
    ),
    note="two heads, d_c + d_r = 4",
)
# Keys of all heads would be 8 · 160 · 32 numbers; nothing else comes near a third of that.
MANY = row("h=8 m=1 n=160 d_c=32 d_r=4 d_latent=24", note="160 tokens, 8 heads")
KEYS_OF_ALL_HEADS = 8 * 160 * 32

# --- cases: delta_rule ---------------------------------------------------------------------------


@dataclass(frozen=True)
class MemoryCases(CaseTable):
    """Queries, keys, values and β: keys of lengths from 0.4 to 1.3, β from 0 to 1.

    Longer keys would make the state grow from token to token without a bound.
    """

    def argument(self, rng: Rng, name: str, one: Any, row: Row) -> Any:
        x = super().argument(rng, name, one, row)
        if name == "beta":
            return x.abs().clamp(max=1)
        if name == "key":
            size = x.norm(dim=-1, keepdim=True)
            wanted = torch.from_numpy(rng.uniform(0.4, 1.3, tuple(size.shape))).to(x)
            return x / size.where(size > 0, 1) * wanted
        return x


DELTA_CASES = MemoryCases(
    {"query": "... n d_k", "key": "... n d_k", "value": "... n d_v", "beta": "... n"}
)
DELTA_ROWS = standard(DELTA_CASES)
MEMORY = row("n=7 d_k=3 d_v=4")
DELTA_BY_HAND = Case(
    (
        tensor([[1, 0], [1, 0], [1, 1]]),
        tensor([[1, 0], [1, 0], [0, 2]]),
        tensor([[4, 8], [6, 0], [1, 3]]),
        tensor([1, 0.5, 0.25]),
    ),
    note="one key twice, then one of length 2",
)


def written_twice(rng: Rng) -> list[Case]:
    """Keys of length 1 at right angles, some of which come again with another value."""
    keys = torch.eye(4, dtype=torch.float64)[[0, 1, 2, 1, 0, 3, 0]]
    values = tensor(rng.uniform(-1, 1, (7, 3)))
    ones = torch.ones(7, dtype=torch.float64)
    return [
        Case((keys.roll(2, 0), keys, values, ones), note="keys come again, β = 1"),
        Case((keys, keys, values, ones / 2), note="keys come again, β = 1/2"),
    ]


# --- cases: select_keys --------------------------------------------------------------------------

SELECT_CASES = CaseTable({"index_scores": "... m n", "k": Count("k"), "mask": hole("... m n")})
SELECT_ONE_MASK = CaseTable({"index_scores": "... m n", "k": Count("k"), "mask": hole("m n")})
SELECT_ROWS = standard(SELECT_CASES)


def past(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.tri(*shape[-2:], dtype=bool), shape).copy()


def nearly_all(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """A mask that forbids one key of each row, and none where there is but one."""
    place = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
    return np.ascontiguousarray((place > 0) | (shape[-1] == 1))


SELECT_CAUSAL = CaseTable({"index_scores": "... m n", "k": Count("k"), "mask": Drawn("m n", past)})
SELECT_MOST = CaseTable(
    {"index_scores": "... m n", "k": Count("k"), "mask": Drawn("... m n", nearly_all)}
)
ALL_OF_THREE = torch.ones(2, 3, dtype=torch.bool)
SELECT_BY_HAND = Case(
    (
        tensor([[0.9, 0.1, 0.5, 0.7], [0.2, 0.8, 0.3, 0.6]]),
        2,
        torch.tensor([[False, True, True, True], [True, True, True, True]]),
    ),
    note="the best of the first query is forbidden",
)
FEW_ALLOWED = torch.tensor([[True, False, False, False], [False] * 4, [False, True, True, True]])


def few_allowed(rng: Rng) -> list[Case]:
    scores = tensor(rng.permuted(np.arange(12.0)).reshape(3, 4))
    return [
        Case((scores, 2, FEW_ALLOWED), note="one key, none and three"),
        Case((-scores - 5, 3, FEW_ALLOWED), note="one key, none and three; scores below 0"),
        Case((scores, 9, FEW_ALLOWED), note="k above the number of keys"),
    ]


def equal_scores(rng: Rng) -> list[Case]:
    levels = tensor(rng.integers(0, 3, (4, 40)))
    mask = torch.from_numpy(rng.random((4, 40)) < 0.7)
    return [
        Case(
            (tensor([[1, 2, 0, 2, 2], [3, 1, 1, 1, 0]]), 2, torch.ones(2, 5, dtype=torch.bool)),
            note="ties",
        ),
        Case(
            (
                tensor([[1, 2, 2, 2], [0, 0, 0, 0]]),
                2,
                torch.tensor([[True, False, True, True], [False, True, True, True]]),
            ),
            note="ties",
        ),
        Case((torch.zeros(3, 7, dtype=torch.float64), 3, torch.ones(7, 7).tril()[4:].bool())),
        Case((levels, 20, mask), note="three values, 40 keys"),
    ]


def refused_choice(k: int) -> Case:
    return Case((torch.zeros(2, 3), k, ALL_OF_THREE), note=f"k = {k}", raises=ValueError)


# --- cases: cache_bytes_of -----------------------------------------------------------------------


def config_of(rng: Rng, layers: list[str], **fixed: int) -> dict[str, Any]:
    """A model with these layers, with sizes of which no sum is another's product."""
    drawn = {
        "n_kv_heads": int(rng.integers(3, 20)),
        "d_head": int(rng.integers(21, 90)),
        "window": int(rng.integers(100, 300)),
        "d_latent": int(rng.integers(200, 600)),
        "d_turned": int(rng.integers(30, 90)),
        "d_state": int(rng.integers(1000, 9000)),
    }
    return {"layers": layers} | drawn | fixed


def kept_by(*models: tuple[list[str], str]):
    """Cases of texts longer than any window, for models with these layers."""

    def cases(rng: Rng) -> list[Case]:
        found = []
        for layers, note in models:
            n_tokens = int(rng.integers(400, 5000))
            found.append(Case((config_of(rng, list(layers)), n_tokens), note=note))
        return found

    return cases


SMALL = {
    "n_kv_heads": 2, "d_head": 4, "window": 3, "d_latent": 6, "d_turned": 2, "d_state": 20,
}  # fmt: skip
BYTES_BY_HAND = Case(
    ({"layers": ["full", "full", "full"], **SMALL}, 10), note="10 tokens, 3 layers of 2 heads"
)
FIVE_LAYERS = {"layers": ["window", "full", "latent", "state", "window"], **SMALL}
MIXED_BY_HAND = Case((FIVE_LAYERS, 10), note="a layer of each kind, and a second window")


def short_texts(rng: Rng) -> list[Case]:
    windows = config_of(rng, ["window"] * 3)
    within = int(rng.integers(20, 90))
    return [
        Case((windows, within), note="a text shorter than the window"),
        Case((windows, windows["window"]), note="a text as long as the window"),
        Case((config_of(rng, ["window", "full"], window=1), 1), note="one token"),
    ]


def other_numbers(rng: Rng) -> list[Case]:
    every = ["full", "window", "latent", "state"]
    n_tokens = int(rng.integers(400, 5000))
    return [
        Case((config_of(rng, every), n_tokens), {"bytes_per_number": 1}),
        Case((config_of(rng, every), n_tokens), {"bytes_per_number": 4}),
        Case((config_of(rng, ["state", "latent"]), n_tokens, 2), note="two bytes, said"),
        once_more(BYTES_BY_HAND),
    ]


def refused_text(n_tokens: int) -> Case:
    return Case(
        (FIVE_LAYERS, n_tokens), note=f"{n_tokens} tokens".replace("-", "−"), raises=ValueError
    )


# --- decisions: normed_scores --------------------------------------------------------------------


def mean_square(x):
    return x.square().mean(-1, keepdim=True)


@composition
def norming(
    sides=(True, True),
    prepare=as_it_is,
    average=mean_square,
    guess=as_it_is,
    root=lambda square, eps: (square + eps).sqrt(),
    divide=lambda x, size: x / size,
    scale=lambda x, gain: gain * x,
    gains=lambda gain_q, gain_k: (gain_q, gain_k),
    after=as_it_is,
    compare=decisions.products,
    factor=decisions.by_root_of_d_k,
    finish=lambda scores, query, key: scores,
):
    """``normed_scores`` made of decisions; ``sides`` says which of the two are normalised."""

    def normed(x, gain, eps, do):
        x = prepare(x)
        x = divide(x, root(average(x), eps)) if do else x
        return after(scale(x, gain))

    def normed_scores(query, key, gain_q, gain_k, eps=1e-6):
        eps, own = guess(eps), gains(gain_q, gain_k)
        query, key = (
            normed(x, gain, eps, do) for x, gain, do in zip((query, key), own, sides, strict=True)
        )
        return finish(compare(query, key) * factor(query, key, key), query, key)

    return normed_scores


def turned_by_place(x):
    """What chapter 11's rotation makes of x at the places 0, 1, …; an odd feature stays."""
    half = x.shape[-1] // 2
    place = torch.arange(x.shape[-2], dtype=x.dtype)[:, None]
    angle = place * 10000.0 ** (-torch.arange(half, dtype=x.dtype) / max(half, 1))
    first, second = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    pairs = torch.stack(
        [
            first * angle.cos() - second * angle.sin(),
            first * angle.sin() + second * angle.cos(),
        ],
        -1,
    )
    return torch.cat([pairs.flatten(-2), x[..., 2 * half :]], -1)


def normed_rows(x, eps=1e-6):
    return x / (mean_square(x) + eps).sqrt()


def deviation(correction: int):
    return lambda x: x.var(-1, correction=correction, keepdim=True)


def mean_off(x):
    return x - x.mean(-1, keepdim=True)


def of_all_heads(x):
    """The mean square over the axis of the heads, too, where there is one."""
    return x.square().mean((-3, -1) if x.ndim > 2 else -1, keepdim=True)


# --- decisions: sink_softmax ---------------------------------------------------------------------


def one_a_head(sink, scores):
    return sink[:, None, None].expand(*scores.shape[:-1], 1)


def beside_the_scores(scores, column):
    """The softmax over the keys and the sink, without the sink."""
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1]


@composition
def sinking(
    read=as_it_is,
    read_sink=as_it_is,
    align=one_a_head,
    hide=decisions.hide,
    normalize=beside_the_scores,
    after=lambda weights, mask: weights,
):
    """``sink_softmax`` made of decisions."""

    def sink_softmax(scores, sink, mask=None):
        scores = read(scores)
        column = align(read_sink(sink), scores)
        return after(normalize(hide(scores, mask), column), mask)

    return sink_softmax


def in_terms(total: Callable, top: Callable):
    """Exponentials of scores less ``top``, over what ``total`` makes of their sum and the sink."""

    def normalize(scores, column):
        highest = top(scores, column)
        weights = (scores - highest).exp()
        return weights / total(weights.sum(-1, keepdim=True), column, highest)

    return normalize


def own_top(scores, column):
    """Each row's largest score, and 0 for a row that has none."""
    top = scores.amax(-1, keepdim=True)
    return top.masked_fill(top.isneginf(), 0)


def top_with_sink(scores, column):
    return torch.maximum(scores.amax(-1, keepdim=True), column)


def plain_softmax(scores, column):
    """A softmax without the sink; a row without a key is 0."""
    return scores.softmax(-1).nan_to_num(0)


def with_all_columns(scores, column):
    return torch.cat([scores, column], -1).softmax(-1)


def handed_on(give: Callable):
    """The sink's weight goes to keys, as ``give(weights, rest)`` says."""

    def normalize(scores, column):
        weights = with_all_columns(scores, column)
        return give(weights[..., :-1], weights[..., -1:])

    return normalize


def to_one_key(place: int):
    def give(weights, rest):
        weights = weights.clone()
        weights[..., place : weights.shape[-1] if place < 0 else place + 1] += rest
        return weights

    return give


def times_a_gate(scores, column):
    """Right where there is a key: the share that the keys have of the whole."""
    gate = (scores.logsumexp(-1, keepdim=True) - column).sigmoid()
    return scores.softmax(-1) * gate


def sink_hidden_too(scores, column):
    """The sink is hidden where all keys are."""
    empty = scores.isneginf().all(-1, keepdim=True)
    return beside_the_scores(scores, column.masked_fill(empty, -math.inf))


def guarded_sink(number: float) -> dict[str, Any]:
    def total(sum_of_weights, column, top):
        return sum_of_weights + (column - top).exp() + number

    return {"normalize": in_terms(total, top_with_sink)}


def filled_beside(number: float) -> dict[str, Any]:
    return {"hide": lambda s, mask: s if mask is None else s.masked_fill(~mask, number)}


def over_axis(axis: int):
    """The sink is one more entry along another axis, of which the softmax is taken."""

    def normalize(scores, column):
        more = column.expand_as(scores).narrow(axis, 0, 1)
        return torch.cat([scores, more], axis).softmax(axis).narrow(axis, 0, scores.shape[axis])

    return normalize


# --- decisions: absorbed_scores ------------------------------------------------------------------


def for_all_heads(x):
    """An axis for the heads, which share what it holds."""
    return x.unsqueeze(-3)


def second_axis(x):
    """An axis that is in the right place with one batch axis, and with none."""
    return x.unsqueeze(1 if x.ndim > 2 else 0)


def by_the_latents(q_content, latent, W_uk, absorb, share):
    return absorb(q_content, W_uk) @ share(latent).mT


def by_made_keys(q_content, latent, W_uk, absorb, share):
    return q_content @ (share(latent) @ W_uk).mT


def both_parts(content, turned):
    return content + turned


def by_the_sum_of_widths(content, turned, d_c, d_r, d_latent):
    width = (d_c + d_r) ** -0.5
    return width, width


@composition
def absorbing(
    read=as_it_is,
    matrix=as_it_is,
    absorb=lambda query, W_uk: query @ W_uk.mT,
    content=by_the_latents,
    share=for_all_heads,
    share_turned=for_all_heads,
    turned=lambda q_turned, k_turned, q_content, latent, W_uk: q_turned @ k_turned.mT,
    factors=by_the_sum_of_widths,
    join=both_parts,
    finish=as_it_is,
):
    """``absorbed_scores`` made of decisions; ``factors`` are those of both parts."""

    def absorbed_scores(q_content, q_turned, latent, k_turned, W_uk):
        latent, W = read(latent), matrix(W_uk)
        one = content(q_content, latent, W, absorb, share)
        other = turned(q_turned, share_turned(k_turned), q_content, latent, W)
        widths = q_content.shape[-1], q_turned.shape[-1], latent.shape[-1]
        scale_one, scale_other = factors(one, other, *widths)
        return finish(join(one * scale_one, other * scale_other))

    return absorbed_scores


def both_by(width: Callable):
    """One factor for both parts, by the three widths."""
    return lambda content, turned, d_c, d_r, d_latent: (width(d_c, d_r, d_latent),) * 2


def through_the_matrix(q_turned, k_turned, q_content, latent, W_uk):
    """The turned query, taken to the latents as the content is."""
    return q_turned @ W_uk.mT @ latent.unsqueeze(-3).mT


# --- decisions: delta_rule -----------------------------------------------------------------------


def what_it_lacks(value, state, key):
    """The value less what the state answers to the key, ``(..., 1, d_v)``."""
    return value - key.mT @ state


def mend(state, key, error, beta):
    return state + beta * key * error


@composition
def remembering(
    keys=as_it_is,
    queries=as_it_is,
    values=as_it_is,
    strength=as_it_is,
    begin=lambda key, value: torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]),
    fade=lambda state, key, beta: state,
    error=what_it_lacks,
    write=mend,
    fade_after=lambda state, beta: state,
    seen=lambda old, new: new,
    read=lambda query, state: query @ state,
    finish=lambda outputs, states, query: torch.cat(outputs, -2),
):
    """``delta_rule`` made of decisions; ``seen`` is which of two states a query reads."""

    def delta_rule(query, key, value, beta):
        query, key, value, beta = queries(query), keys(key), values(value), strength(beta)
        state, outputs, states = begin(key, value), [], []
        for t in range(key.shape[-2]):
            k, v = key[..., t, :, None], value[..., t, None, :]
            b = beta[..., t, None, None]
            new = fade(state, k, b)
            new = fade_after(write(new, k, error(v, new, k), b), b)
            outputs.append(read(query[..., t, None, :], seen(state, new)))
            states.append(new)
            state = new
        return finish(outputs, states, query)

    return delta_rule


def fading(alpha: float) -> dict[str, Any]:
    """Options: the state fades before it is corrected."""
    return {"fade": lambda state, key, beta: alpha * state}


def fading_after(alpha: float) -> dict[str, Any]:
    """Options: the state fades with what has just been written."""
    return {"fade_after": lambda state, beta: alpha * state}


def by_sums(outputs, states, query):
    """Outputs divided by the sum of what each query finds in the keys' own sums."""
    out = torch.cat(outputs, -2)
    return out / (out.sum(-1, keepdim=True) + 1e-6)


# --- decisions: select_keys ----------------------------------------------------------------------


def whole_k(scores, k):
    if k < 1:
        raise ValueError("expected a k of 1 or more")
    return k


def earlier_first(scores):
    return scores.argsort(dim=-1, descending=True, stable=True)


def later_first(scores):
    return scores.shape[-1] - 1 - scores.flip(-1).argsort(dim=-1, descending=True, stable=True)


def marked(order, k, mask):
    """True at the first k of each row's order."""
    return torch.zeros_like(mask).scatter(-1, order[..., :k], True)


@composition
def choosing(
    refuse=whole_k,
    see=lambda mask, scores: mask.broadcast_to(scores.shape),
    score=as_it_is,
    hide=lambda scores, mask: scores.masked_fill(~mask, -math.inf),
    order=earlier_first,
    mark=marked,
    after=lambda chosen, mask: chosen & mask,
    truth=as_it_is,
    kind=as_it_is,
    finish=lambda chosen, order, k, scores: chosen,
):
    """``select_keys`` made of decisions."""

    def select_keys(index_scores, k, mask):
        k = refuse(index_scores, k)
        mask = see(mask, index_scores)
        ranked = order(hide(score(index_scores), mask))
        chosen = after(mark(ranked, k, mask), mask)
        return finish(kind(truth(chosen)), ranked, k, index_scores)

    return select_keys


def over_the_queries(scores):
    """The order of the queries for each key, as the answer of a wrong axis."""
    return scores.argsort(dim=-2, descending=True, stable=True)


def marked_in_columns(order, k, mask):
    return torch.zeros_like(mask).scatter(-2, order[..., :k, :], True)


def at_or_above_the_kth(order, k, mask):
    """Marks for scores that the order itself holds: see ``by_threshold``."""
    kth = order.sort(-1, descending=True).values[..., min(k, order.shape[-1]) - 1, None]
    return order >= kth


def above_the_kth(order, k, mask):
    kth = order.sort(-1, descending=True).values[..., min(k, order.shape[-1]) - 1, None]
    return order > kth


def by_threshold(mark: Callable) -> dict[str, Any]:
    """Options: scores are compared with the k-th, in place of an order."""
    return {"order": as_it_is, "mark": mark}


def of_the_whole(order, k, mask):
    """The k best of all queries together."""
    scores = order.flatten(-2)
    best = earlier_first(scores)[..., :k]
    return torch.zeros_like(mask.flatten(-2)).scatter(-1, best, True).reshape(mask.shape)


def to_the_end(order, k, mask):
    """The k best among the last keys that are allowed, where a fill-up goes to later ones."""
    return torch.zeros_like(mask).scatter(-1, order[..., :k], True)


# --- decisions: cache_bytes_of -------------------------------------------------------------------


def some_tokens(n_tokens):
    if n_tokens < 1:
        raise ValueError("expected one token or more")
    return n_tokens


def heads_of(config):
    return config["n_kv_heads"] * config["d_head"]


def windowed(n_tokens, window):
    return min(n_tokens, window)


@composition
def counting(
    refuse=some_tokens,
    layers=as_it_is,
    pair=2,
    width=heads_of,
    full=lambda numbers, n, config: numbers * n,
    window=windowed,
    latent=lambda n, config: n * (config["d_latent"] + config["d_turned"]),
    state=lambda n, config: config["d_state"],
    size=lambda numbers, size: numbers * size,
):
    """``cache_bytes_of`` made of decisions."""

    def cache_bytes_of(config, n_tokens, bytes_per_number=2):
        n, numbers = refuse(n_tokens), 0
        for kind in layers(config["layers"]):
            if kind == "full":
                numbers += full(pair * width(config), n, config)
            elif kind == "window":
                numbers += pair * width(config) * window(n, config["window"])
            elif kind == "latent":
                numbers += latent(n, config)
            else:
                numbers += state(n, config)
        return size(numbers, bytes_per_number)

    return cache_bytes_of


def all_alike(layers):
    """Every layer is taken for what the first is."""
    return [layers[0]] * len(layers)


# --- exercises -----------------------------------------------------------------------------------

NORMED_SCORES = exercise(
    today.normed_scores,
    section="Chapter 21, “Scores that cannot grow”",
    difficulty=1,
    minutes=10,
    criteria=(
        NORM_CASES.criterion("queries and keys through their norms, then the scores", 3).on(
            NORM_BY_HAND, NORMED, row("m=6 n=6 d=5"), row("m=3 n=4 d=8")
        ),
        NORM_CASES.criterion("each norm has its own gain", 1).on(
            NORMED.but(zero=("gain_q",), note="gain_q of 0"),
            NORMED.but(zero=("gain_k",), note="gain_k of 0"),
            NORMED.but(factor={"gain_q": 3.0}),
        ),
        NORM_CASES.criterion("eps where it is given", 1).on(
            NORMED.but(given={"eps": 0.5}), NORMED.but(given={"eps": 1e-3}, batch=(2,))
        ),
        NORM_CASES.criterion("batches", 1).on(*NORM_ROWS.batches),
        NORM_CASES.criterion("one query or key, one feature, float32, large and small", 1).on(
            row("m=1 n=5 d=3", note="one query"),
            row("m=4 n=1 d=3", note="one key"),
            row("m=4 n=3 d=1", note="one feature"),
            *NORM_ROWS.numbers,
            once_more(NORM_BY_HAND),
        ),
        NORM_FLOATS.criterion("gradients reach queries, keys and gains", 1).on(
            *NORM_EACH.gradients
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        norming,
        mistake("""only one of the two is normalised
            You normalise the queries and take the keys as they come, or the other way round. Both
            go through a norm: one that is left out can still make a score as large as it likes.""")
        .by(sides=(True, False))
        .by(sides=(False, True)),
        mistake("""no norm
            You multiply by the gains and compare. Before that each vector is divided by the root of
            its mean square.""").by(sides=(False, False)),
        mistake("""the norm runs over the sequence
            You average over the tokens of a feature. A norm belongs to one vector: average over its
            features, the last axis, `dim=-1`.""")
        .by(average=lambda x: x.square().mean(-2, keepdim=True))
        .by(average=lambda x: x.square().mean(0, keepdim=True)),
        mistake("""one norm for all heads
            You average over the axis of the heads as well, as a norm over all of them at once does.
            Here each head's vector is a row of its own: average over the last axis alone.""").by(
            average=of_all_heads
        ),
        mistake("""one norm for everything
            You divide all vectors by one number. Each has its own mean square, over the last
            axis.""")
        .by(average=lambda x: x.square().mean())
        .by(average=lambda x: x.square().mean((-2, -1), keepdim=True)),
        mistake("""vectors of length 1
            You divide by the length, the root of the *sum* of squares, which gives cosines. An RMS
            norm divides by the root of their mean: lengths become √d.""").by(
            average=lambda x: x.square().sum(-1, keepdim=True)
        ),
        mistake("""the mean is taken off
            You subtract the mean of the features first, as a layer norm does. An RMS norm takes
            nothing off.""")
        .by(prepare=mean_off)
        .by(average=deviation(0))
        .by(average=deviation(1)),
        mistake("""divided by the mean square
            You divide by the mean square itself. It is its root that has the unit of the
            vector.""").by(root=lambda square, eps: square + eps),
        mistake("""the mean of the sizes
            You divide by the mean of the absolute values. It is the root of the mean *square*.
        """).by(
            average=lambda x: x.abs().mean(-1, keepdim=True), root=lambda size, eps: size + eps
        ),
        mistake("""eps is added after the root
            You add eps to the root. It belongs under it: `(mean_square + eps).sqrt()`.""").by(
            root=lambda square, eps: square.sqrt() + eps
        ),
        mistake("""another eps
            You add another number than 1e-6 under the root, or none, whatever `eps` is.""")
        .by(guess=lambda eps: 1e-5)
        .by(guess=lambda eps: 0.0)
        .by(guess=lambda eps: 1e-8)
        .by(guess=lambda eps: 1e-12),
        mistake("""eps is ignored
            Your norms add 1e-6 also where another eps is given. Use the argument.""").by(
            guess=lambda eps: 1e-6
        ),
        mistake("""one gain for both
            You multiply queries and keys by the same gain. Each has its own: `gain_q` for the
            queries, `gain_k` for the keys.""")
        .by(gains=lambda gain_q, gain_k: (gain_q, gain_q))
        .by(gains=lambda gain_q, gain_k: (gain_k, gain_k)),
        mistake("""the gains are left out
            You normalise and compare. What is normalised is multiplied by its gain, feature by
            feature.""")
        .by(scale=lambda x, gain: x)
        .by(gains=lambda gain_q, gain_k: (gain_q, torch.ones_like(gain_k)))
        .by(gains=lambda gain_q, gain_k: (torch.ones_like(gain_q), gain_k)),
        mistake("""the gain comes before the norm
            You multiply by the gain and normalise then. The norm comes first: `gain · (x / rms)`.
        """).by(prepare=as_it_is, divide=lambda x, size: x, scale=lambda x, g: normed_rows(g * x)),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1.
        """).by(scale=lambda x, gain: (1 + gain) * x),
        mistake("""gain is added
            You add the gain. The normalised vector is multiplied by it.""").by(
            scale=lambda x, gain: x + gain
        ),
        mistake("""turned by their places
            You turn queries and keys by their positions as well. A model does that after the norm,
            where it has positions; this function gets vectors and returns their scores.""")
        .by(after=turned_by_place)
        .by(prepare=turned_by_place),
        mistake("""the scores are normalised
            You compare the vectors as they come and normalise each row of scores. It is queries and
            keys that go through the norm, before their products.""").by(
            sides=(False, False), finish=lambda scores, query, key: normed_rows(scores)
        ),
        *(one.naming(d_k="d") for one in mistakes.OF_THE_SCALE),
        mistakes.DIVIDED_BY_ROOT_M,
        mistakes.ALREADY_WEIGHTS,
        mistakes.SQUASHED,
        mistakes.ROLES_EXCHANGED,
        mistakes.ONLY_PAIRS,
        mistakes.T_ON_A_BATCH,
        mistakes.AXES_0_AND_1,
        mistakes.AXES_1_AND_2,
        mistakes.NO_BATCH,
        mistakes.RESHAPED,
        mistakes.OTHER_SEQUENCES,
        mistake("""the norm has no gradient
            You take the root of the mean square as a constant: `.detach()` or `.item()`. The
            numbers are right, their gradients are not: the norm is part of what is learned
            through.""").by(divide=lambda x, size: x / size.detach()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of the queries.""").by(
            prepare=lambda x: x.float(), scale=lambda x, gain: gain.float() * x
        ),
        mistake("""queries and keys are changed
            You divide in place (`/=`, `div_`), which changes the vectors of whoever called. Make
            new ones.""").by(divide=lambda x, size: x.data.div_(size)),
    ),
)

SINK = exercise(
    today.sink_softmax,
    section="Chapter 21, “Somewhere to put nothing”",
    difficulty=2,
    minutes=15,
    criteria=(
        SINK_CASES.criterion("the sink takes its part of every row", 3).on(
            SINK_BY_HAND, HEADS, HEADS.but("h=4 m=4 n=4"), HEADS.but("h=2 m=3 n=6", batch=(2,))
        ),
        SINK_CASES.criterion("with a mask", 2).on(
            HEADS.but(given=SQUARE_MASK),
            HEADS.but("m=6 n=6", given=SQUARE_MASK),
            HEADS.but("h=2 m=4 n=3", batch=(4,), given=SQUARE_MASK, note="one mask for all"),
            HEADS.but("h=2", batch=(3,), given=OWN_MASK, note="a mask for each sequence"),
            HEADS.but("m=5 n=5", batch=(2,), given=HEAD_MASK, note="a mask for each head"),
        ),
        Criterion("a query without a key gives 0", 1).on(lambda rng: list(NO_KEYS)),
        Criterion("scores and sinks far from 0", 1).on(far_scores),
        SINK_CASES.criterion("batches", 1).on(*SINK_ROWS.batches),
        SINK_CASES.criterion("one query or key, a sink of 0, float32, large and small", 1).on(
            row("h=2 m=1 n=5", note="one query"),
            row("h=2 m=4 n=1", note="one key"),
            row("h=1 m=3 n=2", note="one head, two keys"),
            HEADS.but(zero=("sink",), note="sinks of 0"),
            *SINK_ROWS.numbers,
            once_more(SINK_BY_HAND),
        ),
        SINK_CASES.criterion("gradients reach scores and sinks", 1).on(
            *SINK_ROWS.gradients,
            Case(
                (tensor([[[0.3, -0.7]], [[0.9, 0.2]]]), tensor([-0.5, 1500.0])),
                use=SINK_CASES.each_gradient,
                note="a sink far above all scores",
            ),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        sinking,
        mistake("""the sink takes nothing
            Your rows sum to 1: you leave the sink out, add it to all scores of a row (which a
            softmax does not notice), or divide by what is left once its weight is taken away. e to
            the sink stands in the sum that each row is divided by, and nowhere else.""").by(
            normalize=plain_softmax
        ),
        mistake("""the sink's weight is handed on
            What the sink takes you give to keys, to the first, the last or all of them. It has no
            value: that part of the weight goes nowhere, and rows sum to less than 1.""")
        .by(normalize=handed_on(to_one_key(0)))
        .by(normalize=handed_on(to_one_key(-1)))
        .by(normalize=handed_on(lambda weights, rest: weights + rest / weights.shape[-1])),
        mistake("""the sink's column comes back
            You return n + 1 weights a row, the sink's among them. Drop it: `weights[..., :-1]`.
        """)
        .by(normalize=with_all_columns)
        .by(normalize=lambda s, column: torch.cat([column, s], -1).softmax(-1)),
        mistake("""the wrong column is dropped
            You put the sink at the end and drop the first column, or the other way round. What goes
            is the sink's.""")
        .by(normalize=lambda s, column: with_all_columns(s, column)[..., 1:])
        .by(normalize=lambda s, column: torch.cat([column, s], -1).softmax(-1)[..., :-1]),
        mistake("""the sink is not lowered by the maximum
            You subtract each row's largest score in the exponents of the keys, and add e to the
            sink as it is. All terms of the sum are lowered alike: `exp(sink - top)`.""").by(
            normalize=in_terms(lambda total, column, top: total + column.exp(), own_top)
        ),
        mistake("""the sink is outside the maximum
            You lower everything by the largest score, among which the sink is not. Where the sink
            is far above, e to it overflows, in the gradient at least. The maximum is taken over the
            scores *and* the sink.""").by(
            normalize=in_terms(
                lambda total, column, top: total + (column - top).exp(),
                lambda scores, column: own_top(scores, column).detach(),
            )
        ),
        mistake("""no maximum subtracted
            exp of a large score overflows, and ∞/∞ is NaN; far below 0 every exp is 0, and 0/0 is
            NaN too. Subtract the largest of a row's scores and its sink first.""").by(
            normalize=in_terms(
                lambda total, column, top: total + column.exp(), lambda scores, column: 0
            )
        ),
        mistake("""the sink is added without its exponential
            You add the sink itself to the sum. It is a logit like the scores: e to it is added.
        """)
        .by(normalize=in_terms(lambda total, column, top: total + column, lambda scores, column: 0))
        .by(normalize=in_terms(lambda total, column, top: total + column, own_top)),
        mistake("""1 is added, not e to the sink
            You add 1 to the sum, which is a sink of 0 for every head, or 1 after the maximum is
            taken off, which is a sink as high as the best key. Each head has a logit of its own.
        """)
        .by(normalize=lambda s, column: beside_the_scores(s, 0 * column))
        .by(normalize=in_terms(lambda total, column, top: total + 1, own_top)),
        mistake("""the sign of the sink is turned
            You add e to the *negative* sink: a high one then takes little.""").by(
            read_sink=lambda sink: -sink
        ),
        mistake("""the sink counts once for each key
            You add e to the sink for every key of the row, so that it takes more the more keys
            there are. It stands in the sum once.""").by(
            normalize=lambda s, column: beside_the_scores(s, column + math.log(s.shape[-1]))
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
        .by(normalize=over_axis(-2))
        .by(normalize=over_axis(-3)),
        mistake("""a row without a key gives NaN
            Where no key is allowed you compute −∞ − (−∞), or hide the sink as well. The sink is
            always there, so such a row is 0: everything goes to it.""")
        .by(normalize=times_a_gate)
        .by(normalize=sink_hidden_too),
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
        .by(filled_beside(-5.0))
        .by_any(filled_beside, Between(-1000.0, -1e-3)),
        mistake("""0 · ∞ in the mask
            You multiply a mask by −∞, and 0 · ∞ is NaN wherever attention is allowed. `masked_fill`
            puts −∞ where it belongs and nowhere else.""").by(hide=mistakes.zero_times_infinity),
        mistake("""a guard in the sum
            You add a small number to the sum that the weights are divided by. The sink keeps it
            above 0: no guard is needed.""")
        .by(guarded_sink(1e-3))
        .by_any(guarded_sink, Between(1e-9, 0.5)),
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

ABSORBED = exercise(
    today.absorbed_scores,
    section="Chapter 21, “Keys and values from one small vector”",
    difficulty=2,
    minutes=15,
    criteria=(
        ABSORBED_CASES.criterion("content and turned part, over the root of both widths", 3).on(
            ABSORBED_BY_HAND,
            LATENT,
            LATENT.but("h=2 m=6 n=6"),
            LATENT.but("d_c=3 d_r=4 d_latent=5", batch=(2,)),
        ),
        ABSORBED_CASES.criterion("where widths, heads and tokens are as many", 1).on(
            LATENT.but("d_c=6 d_r=6", note="d_c, d_r and d_latent alike"),
            LATENT.but("h=4 m=4 n=4", batch=(4,), note="heads, tokens and batch alike"),
        ),
        ABSORBED_CASES.criterion("no tensor (h, n, d_c) is made", 2).on(
            MANY.but(use=partial(callers.call_measured, KEYS_OF_ALL_HEADS))
        ),
        ABSORBED_CASES.criterion("batches", 1).on(*ABSORBED_ROWS.batches),
        ABSORBED_CASES.criterion("one token, one head, float32, large and small numbers", 1).on(
            LATENT.but("m=1", note="one query"),
            LATENT.but("n=1", note="one token"),
            LATENT.but("h=1 m=2 n=2", note="one head, two tokens"),
            LATENT.but(zero=("W_uk",), note="W_uk of 0"),
            *ABSORBED_ROWS.numbers,
            once_more(ABSORBED_BY_HAND),
        ),
        ABSORBED_CASES.criterion("gradients reach every argument", 1).on(*ABSORBED_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        absorbing,
        mistake("""the keys are made after all
            Your scores are right, but you make the keys of every head, (h, n, d_c), which is what
            the absorbed form does without. Take each query to the latents: `q_content @ W_uk.mT`,
            then compare with `latent`.""").by(content=by_made_keys),
        mistake("""the matrix is not transposed
            `W_uk` takes a latent to a key, (d_latent, d_c). A query goes the other way, through its
            transpose: `q_content @ W_uk.mT`.""").by(absorb=lambda query, W: query @ W),
        mistake("""the matrix is reshaped
            `reshape` and `view` fill a new shape in the old order, so that a feature's numbers end
            up in several. `W_uk.mT` exchanges the axes.""").by(
            absorb=lambda query, W: query @ W.reshape(W.shape[0], W.shape[2], W.shape[1])
        ),
        mistake("""one head's matrix for all
            You use the first matrix, or the mean of them, for every head. Head i has `W_uk[i]`.
        """)
        .by(matrix=lambda W: W[:1].expand_as(W))
        .by(matrix=lambda W: W.mean(0, keepdim=True).expand_as(W)),
        mistake("""the turned part is compressed, too
            You take `q_turned` through `W_uk` and compare it with the latents. A turn depends on
            the place and does not go through that matrix: the turned part has keys of its own,
            `k_turned`.""").by(turned=through_the_matrix),
        mistake("""the turned part is missing
            You compare the contents alone. The positions are in the other part: add `q_turned @
            k_turnedᵀ`.""").by(join=lambda content, turned: content),
        mistake("""the content is missing
            You compare the turned parts alone. To them comes the content, by way of the latents.
        """).by(join=lambda content, turned: turned),
        mistake("""the parts are multiplied
            You multiply the two scores. A dot product over d_c + d_r features is the *sum* of the
            products over both parts.""").by(join=lambda content, turned: content * turned),
        mistake("""the turned part is subtracted
            You subtract the turned part. Both are added.""").by(
            join=lambda content, turned: content - turned
        ),
        mistake("""the shared turned key is lined up with something else
            `k_turned` is `(..., n, d_r)`, one for all heads. It needs an axis for them in the third
            place from the end, `k_turned.unsqueeze(-3)`; without it a batch is taken for heads.""")
        .by(share_turned=as_it_is)
        .by(share_turned=lambda k: k.unsqueeze(0)),
        mistake("""the latents are lined up with something else
            `latent` is `(..., n, d_latent)`, one for all heads. It needs an axis for them in the
            third place from the end, `latent.unsqueeze(-3)`; without it a batch is taken for
            heads.""")
        .by(share=as_it_is)
        .by(share=lambda c: c.unsqueeze(0)),
        mistake("""neither latents nor turned keys have an axis for the heads
            `latent` and `k_turned` are one for all heads, so a batch axis of theirs is lined up
            with the heads. Both get an axis in the third place from the end: `unsqueeze(-3)`.""")
        .by(share=as_it_is, share_turned=as_it_is)
        .by(share=lambda c: c.unsqueeze(0), share_turned=lambda k: k.unsqueeze(0)),
        mistake("""the heads' axis is counted from the front
            `unsqueeze(1)` puts the axis of the heads into the right place for exactly one batch
            axis. Count from the end: `unsqueeze(-3)`.""")
        .by(share=second_axis, share_turned=second_axis)
        .by(share=second_axis)
        .by(share_turned=second_axis),
        mistake("""one turned query for all heads
            You use the turned query of the first head, or the mean of them. The *key* is shared;
            each head asks with its own query.""")
        .by(turned=lambda q, k, *other: (q[..., :1, :, :] @ k.mT).expand(*q.shape[:-1], -1))
        .by(
            turned=lambda q, k, *other: (q.mean(-3, keepdim=True) @ k.mT).expand(*q.shape[:-1], -1)
        ),
        mistake("""divided by the root of one part's width
            You divide by √d_c or √d_r. A query has d_c + d_r features: √(d_c + d_r).""")
        .by(factors=both_by(lambda d_c, d_r, d_latent: d_c**-0.5))
        .by(factors=both_by(lambda d_c, d_r, d_latent: d_r**-0.5)),
        mistake("""divided by the latent's width
            You divide by the root of d_latent, alone or with d_r. How wide the latent is has no say
            in the score: queries and keys have d_c + d_r features.""")
        .by(factors=both_by(lambda d_c, d_r, d_latent: d_latent**-0.5))
        .by(factors=both_by(lambda d_c, d_r, d_latent: (d_latent + d_r) ** -0.5)),
        mistake("""each part has a scale of its own
            You divide the content by √d_c and the turned part by √d_r, or one of them by nothing.
            It is one dot product over d_c + d_r features: divide the sum by √(d_c + d_r).""")
        .by(factors=lambda content, turned, d_c, d_r, d_latent: (d_c**-0.5, d_r**-0.5))
        .by(factors=lambda content, turned, d_c, d_r, d_latent: ((d_c + d_r) ** -0.5, 1.0))
        .by(factors=lambda content, turned, d_c, d_r, d_latent: (1.0, (d_c + d_r) ** -0.5)),
        mistake("""the roots are added
            You divide by √d_c + √d_r. It is the root of the sum: √(d_c + d_r).""").by(
            factors=both_by(lambda d_c, d_r, d_latent: 1 / (d_c**0.5 + d_r**0.5))
        ),
        mistake("""divided by d_c + d_r
            You divide by d_c + d_r. The formula has its root.""").by(
            factors=both_by(lambda d_c, d_r, d_latent: 1 / (d_c + d_r))
        ),
        mistake("""no scale
            You take the sum as it is. Divide it by √(d_c + d_r).""").by(
            factors=both_by(lambda d_c, d_r, d_latent: 1.0)
        ),
        mistake("""multiplied by the root
            You multiply by √(d_c + d_r); the scores are divided by it.""").by(
            factors=both_by(lambda d_c, d_r, d_latent: (d_c + d_r) ** 0.5)
        ),
        mistake("""the latents are normalised
            You normalise the latents first. A model does that when it makes them; here they come
            as they are to be compared.""")
        .by(read=normed_rows)
        .by(read=lambda latent: F.normalize(latent, dim=-1)),
        mistake("""added up over the heads
            You sum the scores of all heads, as an einsum does whose result lacks `h`. Each head has
            its own: `(..., h, m, n)`.""")
        .by(finish=lambda scores: scores.sum(-3))
        .by(finish=lambda scores: scores.mean(-3)),
        mistake("""already a softmax
            You return weights. Scores come first: any real numbers, before the softmax.""")
        .by(finish=lambda scores: scores.softmax(-1))
        .by(finish=lambda scores: scores.softmax(-2)),
        mistake("""queries and keys exchanged
            Your scores have a row for each key. Row i belongs to query i: `(..., h, m, n)`.""").by(
            finish=lambda scores: scores.mT
        ),
        mistake("""the gradient is cut off
            Nothing can be learned through the latents or the matrix: `.detach()`, `.data` or NumPy
            on the way.""")
        .by(matrix=lambda W: W.detach())
        .by(read=lambda latent: latent.detach()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of the queries.""").by(finish=lambda scores: scores.float()),
    ),
)

DELTA = exercise(
    today.delta_rule,
    section="Chapter 21, “A memory that can be corrected”",
    difficulty=2,
    minutes=20,
    criteria=(
        DELTA_CASES.criterion("the error is mended by β, then the state is read", 3).on(
            DELTA_BY_HAND, MEMORY, row("n=5 d_k=4 d_v=4"), row("n=4 d_k=5 d_v=2", batch=(2,))
        ),
        Criterion("a key that comes again is overwritten", 1).on(written_twice),
        DELTA_CASES.criterion("batches", 1).on(*DELTA_ROWS.batches),
        DELTA_CASES.criterion("one token, β of 0 and 1, float32, large and small numbers", 1).on(
            MEMORY.but("n=1", note="one token"),
            MEMORY.but("n=2", note="two tokens"),
            MEMORY.but(zero=("beta",), note="β of 0"),
            MEMORY.but(factor={"beta": 1e9}, note="β of 1"),
            row("n=4 d_k=1 d_v=1", note="one feature"),
            *DELTA_ROWS.numbers,
            once_more(DELTA_BY_HAND),
        ),
        DELTA_CASES.criterion("gradients reach every argument", 1).on(*DELTA_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        remembering,
        mistake("""nothing is corrected
            You add β k vᵀ to the state, whatever it answers to k already. What is added is β k
            times the *error*, v − Sᵀ k.""").by(error=lambda value, state, key: value),
        mistake("""β is on the key
            You multiply the key by β wherever it stands, so that the state is asked with a smaller
            key, too. β stands before the correction: S + β k (v − Sᵀ k)ᵀ.""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: S + b * k * (value - (b * k).mT @ S),
        ),
        mistake("""β is on the value
            You multiply the value by β and subtract the whole of what the state answers. β stands
            before the whole error: β (v − Sᵀ k).""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: S + k * (b * value - k.mT @ S),
        ),
        mistake("""β is on what is forgotten alone
            You subtract β times what the state answers and add the value whole. β stands before
            the whole error: β (v − Sᵀ k).""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: S + k * (value - b * (k.mT @ S)),
        ),
        mistake("""β is left out
            You mend the whole error at every token. β says how much of it: a number from 0 to 1.
        """).by(write=lambda S, k, error, b: S + k * error),
        mistake("""β twice
            You multiply by β twice, or by its square. Once: β k (v − Sᵀ k)ᵀ.""").by(
            write=lambda S, k, error, b: S + b * b * k * error
        ),
        mistake("""read before it is corrected
            A query reads the state as its own token found it. The token is written first: S is
            corrected by token t, then query t reads it.""").by(seen=lambda old, new: old),
        mistake("""the keys are made to length 1
            You divide the keys by their lengths, as layers do before they call this. Here keys are
            taken as they come.""")
        .by(keys=lambda key: F.normalize(key, dim=-1))
        .by(
            keys=lambda key: F.normalize(key, dim=-1),
            queries=lambda query: F.normalize(query, dim=-1),
        ),
        mistake("""the queries are scaled
            You divide the queries by √d_k or by their length. Here they are taken as they come:
            out = Sᵀ q.""")
        .by(queries=lambda query: query / query.shape[-1] ** 0.5)
        .by(queries=lambda query: F.normalize(query, dim=-1)),
        mistake("""the whole state fades by β
            You multiply the state by 1 − β, so that every key is forgotten a little at each token.
            The delta rule forgets along k alone: β k (Sᵀ k)ᵀ is what goes.""").by(
            error=lambda value, state, key: value,
            write=lambda S, k, value, b: (1 - b) * S + b * k * value,
        ),
        mistake("""the state fades
            You multiply the state by a number below 1 before it is corrected. That is the gated
            form, which has a decay for each token; here nothing fades.""")
        .by(fading(0.9))
        .by_any(fading, Between(0.05, 0.999)),
        mistake("""what is new fades, too
            You multiply the state by a number below 1 after the token was written, so that what is
            new fades as well. Here nothing fades; in the gated form the state fades *before* the
            token comes.""")
        .by(fading_after(0.9))
        .by_any(fading_after, Between(0.05, 0.999)),
        mistake("""the error has the other sign
            You add Sᵀ k − v, which makes every error larger. The error is what is wanted less what
            is there: v − Sᵀ k.""").by(error=lambda value, state, key: key.mT @ state - value),
        mistake("""what is there is added
            You add what the state answers to the value. It is subtracted: v − Sᵀ k.""").by(
            error=lambda value, state, key: value + key.mT @ state
        ),
        mistake("""the state is turned round
            You read or ask S where Sᵀ is meant: the state is (d_k, d_v), and `key @ state` gives
            d_v numbers.""")
        .by(read=lambda query, state: query @ state.mT)
        .by(error=lambda value, state, key: value - key.mT @ state.mT),
        mistake("""the state is never carried on
            Every token begins with a state of zeros, so that a query reads its own token alone.
            The state goes on from token to token.""").by(
            fade=lambda state, key, beta: torch.zeros_like(state)
        ),
        mistake("""all queries read the last state
            You write all tokens first and read then. Query t reads the state after token t, and
            knows nothing of later ones.""").by(
            finish=lambda outputs, states, query: query @ states[-1]
        ),
        mistake("""the last token alone
            You return what the last query reads. Each token has its output: `(..., n, d_v)`.""")
        .by(finish=lambda outputs, states, query: outputs[-1])
        .by(finish=lambda outputs, states, query: outputs[-1].squeeze(-2)),
        mistake("""the states come back
            You return states, (d_k, d_v) each. Return what each query reads of them.""").by(
            finish=lambda outputs, states, query: torch.stack(states, -3)
        ),
        mistake("""divided by a sum
            You divide the outputs by a sum, as linear attention does. The delta rule has no
            normaliser: what is read is put out as it is.""")
        .by(finish=by_sums)
        .by(
            read=lambda query, state: query @ state / (state.abs().sum((-2, -1), keepdim=True) + 1)
        ),
        mistake("""features in place of keys
            You take elu + 1, or another function, of queries and keys, as linear attention does.
            Here they are taken as they come.""")
        .by(keys=lambda key: F.elu(key) + 1, queries=lambda query: F.elu(query) + 1)
        .by(keys=lambda key: key.relu(), queries=lambda query: query.relu())
        .by(keys=lambda key: F.silu(key), queries=lambda query: F.silu(query)),
        mistake("""β through a sigmoid
            You take the sigmoid of β. That is how a layer makes it; here it is a number from 0 to 1
            already.""").by(strength=lambda beta: beta.sigmoid()),
        mistake("""one β for all tokens
            You use the first β, or their mean, for all tokens. Token t has β_t.""")
        .by(strength=lambda beta: beta[..., :1].expand_as(beta))
        .by(strength=lambda beta: beta.mean(-1, keepdim=True).expand_as(beta)),
        mistake("""the tokens run backwards
            You go through the tokens from the last to the first. The state begins before the first.
        """).by(
            keys=lambda key: key.flip(-2),
            queries=lambda query: query.flip(-2),
            values=lambda value: value.flip(-2),
            strength=lambda beta: beta.flip(-1),
            finish=lambda outputs, states, query: torch.cat(outputs[::-1], -2),
        ),
        mistake("""the state begins as the identity
            Your state begins with ones. It begins with zeros: nothing is known.""")
        .by(
            begin=lambda key, value: (
                torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :])
                + torch.eye(key.shape[-1], value.shape[-1], dtype=key.dtype)
            )
        )
        .by(
            begin=lambda key, value: torch.ones_like(key[..., 0, :, None] * value[..., 0, None, :])
        ),
        mistake("""the gradient is cut off
            You `.detach()` the state or the error, or take `.data`, so that no token learns from
            what was written before.""")
        .by(fade=lambda state, key, beta: state.detach())
        .by(
            error=lambda value, state, key: (value - key.mT @ state).detach(),
        )
        .by(strength=lambda beta: beta.detach()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of the values.""").by(
            keys=lambda key: key.float(),
            queries=lambda query: query.float(),
            values=lambda value: value.float(),
            strength=lambda beta: beta.float(),
        ),
    ),
)

SELECT = exercise(
    today.select_keys,
    section="Chapter 21, “Choosing keys”",
    difficulty=2,
    minutes=15,
    criteria=(
        SELECT_MOST.criterion("the k highest of the keys that are allowed", 3).on(
            SELECT_BY_HAND,
            row("m=5 n=11 k=3"),
            row("m=6 n=6 k=2"),
            row("m=4 n=9 k=4", factor=10.0, batch=(2,)),
        ),
        Criterion("all that are allowed where they are k or fewer", 2).on(few_allowed),
        SELECT_CAUSAL.criterion("under a causal mask", 1).on(
            row("m=7 n=7 k=3"), row("m=6 n=6 k=2", batch=(6,), note="one mask for all")
        ),
        Criterion("of equal scores the earlier key", 2).on(equal_scores),
        SELECT_CASES.criterion("batches", 1).on(*(one.but("k=2") for one in SELECT_ROWS.batches)),
        SELECT_CASES.criterion("one key, one query or key, float32, large and small scores", 1).on(
            row("m=5 n=7 k=1", note="k = 1"),
            row("m=1 n=7 k=3", note="one query"),
            row("m=3 n=1 k=1", note="one key"),
            row("m=2 n=2 k=1", note="two tokens"),
            *(one.but("k=3") for one in SELECT_ROWS.numbers),
            once_more(SELECT_BY_HAND),
        ),
        Criterion("k below 1: ValueError", 1).on(
            lambda rng: [refused_choice(0), refused_choice(-1), refused_choice(-4)]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        choosing,
        mistake("""chosen before the mask
            You choose k of all keys and take away what is forbidden, later keys for example, so
            that fewer are left than could be. Choose among the allowed ones: −∞ for the others
            first.""").by(hide=lambda scores, mask: scores),
        mistake("""forbidden keys fill up
            Where fewer than k keys are allowed you choose others besides. Of what is forbidden
            nothing may come back: `chosen & mask`.""").by(after=lambda chosen, mask: chosen),
        mistake("""the mask is ignored
            You choose among all keys. Only those where the mask is True may be chosen.""").by(
            hide=lambda scores, mask: scores, after=lambda chosen, mask: chosen
        ),
        mistake("""the mask is inverted
            You choose among the keys that are forbidden. True means allowed.""").by(
            see=lambda mask, scores: ~mask.broadcast_to(scores.shape)
        ),
        mistake("""the mask is transposed
            You transpose the mask before you use it. It has a row for each query and a column for
            each key, as the scores have.""").by(
            see=lambda mask, scores: mask.mT.broadcast_to(scores.shape)
        ),
        mistake("""a score of 0 is no key forbidden
            You multiply the scores by the mask, so that a forbidden key has a score of 0, which is
            more than a negative one. Fill in −∞.""").by(hide=lambda scores, mask: scores * mask),
        mistake("""of equal scores the later key
            Of keys with equal scores you choose the later ones. A stable descending sort puts the
            earlier ones first: `argsort(descending=True, stable=True)`.""").by(order=later_first),
        mistake("""of equal scores by chance
            You use `topk`, or a sort that is not stable, which choose among equal scores as they
            like. `argsort(descending=True, stable=True)` puts the earlier key first.""").by(
            order=lambda scores: scores.topk(scores.shape[-1]).indices
        ),
        mistake("""more than k where scores are equal
            You keep all that are as high as the k-th, which may be more than k. Exactly k are
            chosen, of equal ones the earlier.""").by(by_threshold(at_or_above_the_kth)),
        mistake("""fewer than k
            You keep what is above the k-th, or k − 1. The k-th itself is chosen, too.""")
        .by(by_threshold(above_the_kth))
        .by(mark=lambda order, k, mask: marked(order, k - 1, mask)),
        mistake("""one more than k
            You keep k + 1. The first k of the order are `order[..., :k]`.""").by(
            mark=lambda order, k, mask: marked(order, k + 1, mask)
        ),
        mistake("""the k lowest
            You choose the keys with the lowest scores: `descending=True` is missing.""").by(
            hide=lambda scores, mask: scores.masked_fill(~mask, math.inf),
            order=lambda scores: scores.argsort(dim=-1, stable=True),
        ),
        mistake("""forbidden keys come first
            You sort from the lowest score, and −∞ is lower than all. Sort descending.""").by(
            order=lambda scores: scores.argsort(dim=-1, stable=True)
        ),
        mistake("""the highest in size
            You choose by |score|. A large negative score speaks against a key.""").by(
            score=lambda scores: scores.abs()
        ),
        mistake("""the k last keys
            You keep the latest k keys that are allowed, a window. It is the scores that choose.
        """).by(score=lambda scores: torch.arange(scores.shape[-1]).to(scores).expand_as(scores)),
        mistake("""the k first keys
            You keep the first k keys that are allowed. It is the scores that choose.""").by(
            score=lambda scores: torch.zeros_like(scores)
        ),
        mistake("""the place in the order is taken for the key
            `argsort` says which key stands in each place, and you read it as the place of each key.
            The `argsort` of it gives the places; or `scatter` at `order[..., :k]`.""").by(
            mark=lambda order, k, mask: order < k
        ),
        mistake("""k queries for each key
            You choose along the queries. Each query chooses among the keys, the last axis.""").by(
            order=over_the_queries, mark=marked_in_columns
        ),
        mistake("""k of the whole matrix
            You choose k of all the scores together. Each query chooses its own.""").by(
            by_threshold(of_the_whole)
        ),
        mistake("""the same keys for all queries
            You choose by the scores of the first query, or by their mean. Each query has its own
            row.""")
        .by(score=lambda scores: scores[..., :1, :].expand_as(scores))
        .by(score=lambda scores: scores.mean(-2, keepdim=True).expand_as(scores)),
        mistake("""k is ignored
            You choose the same number of keys whatever k says.""")
        .by(mark=lambda order, k, mask: marked(order, 1, mask))
        .by(mark=lambda order, k, mask: marked(order, 2, mask))
        .by(mark=lambda order, k, mask: marked(order, order.shape[-1], mask)),
        mistake("""indices come back
            You return which keys are chosen. Asked for is a mask, `(..., m, n)`, True where a key
            is chosen.""").by(finish=lambda chosen, order, k, scores: order[..., :k]),
        mistake("""scores come back
            You return scores. Asked for is a mask of booleans, True where a key is chosen.""")
        .by(finish=lambda chosen, order, k, s: s.masked_fill(~chosen, -math.inf))
        .by(finish=lambda chosen, order, k, s: s * chosen)
        .by(finish=lambda chosen, order, k, s: s.masked_fill(~chosen, -math.inf).softmax(-1)),
        mistake("""True where a key is left out
            Your mask is True for the keys that are not chosen. In this course True means allowed.
        """).by(truth=lambda chosen: ~chosen),
        NUMBERS,
        mistake("""0 and −∞
            You return the numbers that would be added to the scores. A boolean mask is asked for,
            True where a key is chosen.""")
        .by(kind=as_additive)
        .by_any(
            lambda number: {"kind": lambda mask: as_additive(mask, number)}, Between(-3.4e38, -1.0)
        ),
        mistake("""nothing is refused
            A k of 0 or below chooses nothing: raise a `ValueError`.""")
        .by(refuse=lambda scores, k: max(k, 0))
        .by(refuse=lambda scores, k: max(k, 1)),
        mistake("""what is right is refused
            k may be 1, and it may be more than there are keys: then all that are allowed are
            chosen.""")
        .by(refuse=lambda scores, k: whole_k(scores, k - 1) and k)
        .by(
            refuse=lambda scores, k: (
                whole_k(scores, scores.shape[-1] - k + 1) and whole_k(scores, k)
            )
        ),
        mistake("""the scores are changed
            You write −∞ into the caller's scores: `masked_fill_`, or an assignment. Use
            `masked_fill`, which makes a new tensor.""").by(
            hide=lambda scores, mask: scores.data.masked_fill_(~mask, -math.inf)
        ),
    ),
)

BYTES = exercise(
    today.cache_bytes_of,
    section="Chapter 21, “What a token costs”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("full layers", 1).on(
            lambda rng: [
                BYTES_BY_HAND,
                *kept_by((["full"] * 4, "four layers"), (["full"], "one layer"))(rng),
            ]
        ),
        Criterion("a window keeps at most that many tokens", 2).on(
            lambda rng: [*kept_by((["window"] * 3, "a long text"))(rng), *short_texts(rng)]
        ),
        Criterion("a latent and a turned key a token", 2).on(
            kept_by((["latent"] * 5, "five layers"), (["latent"], "one layer"))
        ),
        Criterion("a state counts once, however long the text", 1).on(
            kept_by((["state"] * 3, "three layers"), (["state"], "one layer"))
        ),
        Criterion("layers of several kinds", 1).on(
            lambda rng: [
                MIXED_BY_HAND,
                *kept_by(
                    (["window", "window", "full"] * 2, "two windows to one"),
                    (["state", "state", "state", "full"], "three states to one"),
                    (["full", "latent", "window"], "three kinds"),
                )(rng),
            ]
        ),
        Criterion("other bytes a number", 1).on(other_numbers),
        Criterion("no tokens, or fewer: ValueError", 1).on(
            lambda rng: [refused_text(0), refused_text(-1), refused_text(-400)]
        ),
        unchanged(),
    ),
    mistakes=made(
        counting,
        mistake("""every layer counts as full
            You count 2 · n_kv_heads · d_head numbers a token for every layer. Look at its kind:
            `for kind in config["layers"]`.""").by(
            window=lambda n, window: n,
            latent=lambda n, config: 2 * n * heads_of(config),
            state=lambda n, config: 2 * n * heads_of(config),
        ),
        mistake("""every layer counts as the first
            You look at the first layer's kind and multiply by how many there are. Each has its own.
        """).by(layers=all_alike),
        mistake("""one layer alone
            You count the first or the last layer. Add up over all of them.""")
        .by(layers=lambda layers: layers[:1])
        .by(layers=lambda layers: layers[-1:]),
        mistake("""each kind counts once
            You count each kind of layer once, however many there are of it. Go through the list
            itself, not through a set of it.""").by(
            layers=lambda layers: list(dict.fromkeys(layers))
        ),
        mistake("""the windows keep the whole text
            You count every token for a layer with a window. It keeps the last `window` tokens and
            forgets the others: `min(n_tokens, window)`.""").by(window=lambda n, window: n),
        mistake("""a window counts whole in a short text
            You count `window` tokens where the text is shorter. There is no more to keep than there
            are tokens: `min(n_tokens, window)`.""").by(window=lambda n, window: window),
        mistake("""the longer of text and window
            You take the larger of the two: `max`. It is the smaller.""").by(window=max),
        mistake("""keys or values alone
            You count the keys and forget the values. Of a full layer and of a window two vectors
            are kept for each token and head.""").by(pair=1),
        mistake("""the windows keep keys alone
            You count two vectors for full layers and one for windows. A window keeps keys and
            values, too.""").by(window=lambda n, window: min(n, window) / 2),
        mistake("""keys and values of a latent
            You count the latent twice, or once for each head. Keys and values are made of it, for
            all heads: d_latent + d_turned numbers a token.""")
        .by(latent=lambda n, config: 2 * n * (config["d_latent"] + config["d_turned"]))
        .by(latent=lambda n, config: n * (2 * config["d_latent"] + config["d_turned"]))
        .by(
            latent=lambda n, config: (
                n * config["n_kv_heads"] * (config["d_latent"] + config["d_turned"])
            )
        ),
        mistake("""a turned key for each head
            You count the turned key once for each head. One serves all of them.""").by(
            latent=lambda n, config: (
                n * (config["d_latent"] + config["n_kv_heads"] * config["d_turned"])
            )
        ),
        mistake("""the turned key is forgotten
            You count the latent alone. Beside it stands the key that is turned by its position,
            d_turned numbers.""").by(latent=lambda n, config: n * config["d_latent"]),
        mistake("""latents are counted as keys and values
            You count 2 · n_kv_heads · d_head numbers for a latent layer. It keeps none of those
            keys and values: d_latent + d_turned numbers a token.""").by(
            latent=lambda n, config: 2 * n * heads_of(config)
        ),
        mistake("""a state for each token
            You multiply d_state by the tokens. The state is one for the whole text.""").by(
            state=lambda n, config: n * config["d_state"]
        ),
        mistake("""a state for each head
            You multiply d_state by the heads, or by two. It counts all numbers of the layer.""")
        .by(state=lambda n, config: config["n_kv_heads"] * config["d_state"])
        .by(state=lambda n, config: 2 * config["d_state"]),
        mistake("""the states are forgotten
            You count nothing for a layer with a state. It keeps d_state numbers.""").by(
            state=lambda n, config: 0
        ),
        mistake("""the heads are forgotten
            You count one head. Each key/value head keeps a vector of d_head numbers.""").by(
            width=lambda config: config["d_head"]
        ),
        mistake("""heads and width are added
            You add n_kv_heads and d_head. Each head has d_head numbers: multiply.""").by(
            width=lambda config: config["n_kv_heads"] + config["d_head"]
        ),
        mistake("""numbers, not bytes
            You return how many numbers are kept. Each takes `bytes_per_number` bytes.""").by(
            size=lambda numbers, size: numbers
        ),
        mistake("""always two bytes
            You multiply by 2 whatever `bytes_per_number` says.""").by(
            size=lambda numbers, size: 2 * numbers
        ),
        mistake("""bits, not bytes
            You return bits. A byte has eight of them.""").by(
            size=lambda numbers, size: 8 * size * numbers
        ),
        mistake("""thousands of bytes
            You return kilobytes or megabytes. Return bytes.""")
        .by(size=lambda numbers, size: numbers * size / 1024)
        .by(size=lambda numbers, size: numbers * size / 1000)
        .by(size=lambda numbers, size: numbers * size / 2**20)
        .by(size=lambda numbers, size: numbers * size / 1e6),
        mistake("""bytes for one token
            You divide by the tokens. Asked for is what the whole text takes.""").by(
            full=lambda numbers, n, config: numbers,
            window=lambda n, window: min(n, window) / n,
            latent=lambda n, config: config["d_latent"] + config["d_turned"],
            state=lambda n, config: config["d_state"] / n,
        ),
        mistake("""a full layer forgets, too
            You count at most `window` tokens for full layers as well. They keep the whole text.
        """).by(full=lambda numbers, n, config: numbers * min(n, config["window"])),
        mistake("""nothing is refused
            A text of no token, or of a negative number, is a slip of whoever asks: raise a
            `ValueError`.""")
        .by(refuse=as_it_is)
        .by(refuse=lambda n: max(n, 0))
        .by(refuse=abs),
        mistake("""no tokens are let through
            You refuse negative numbers and let 0 through. A text has one token or more.""").by(
            refuse=lambda n: n if n == 0 else some_tokens(n)
        ),
        mistake("""one token is refused
            A text may have one token.""").by(refuse=lambda n: some_tokens(n - 1) and n),
    ),
)

EXERCISES = (NORMED_SCORES, SINK, ABSORBED, DELTA, SELECT, BYTES)

VARIANTS = (
    forbidden(
        {
            "sink_softmax": masked(),
            "select_keys": Adapter(
                {"mask": NEGATED},
                result=NEGATED,
                drops=("the mask is inverted", "True where a key is left out"),
            ),
        },
        """
            True means⏎allowed. → True means⏎forbidden.
            a mask with the chosen keys alone → a mask that forbids all keys but the chosen ones
            take these out again → take these out again. The mask is the opposite of all that
            2, causal_mask(3)).sum(-1) → 2, ~causal_mask(3)).logical_not().sum(-1)
            where the mask is True may be chosen → where the mask is False may be chosen
            True where a key is chosen → False where a key is chosen
            `chosen & mask` → `chosen & ~mask`
            You multiply the scores by the mask → You multiply the scores by `~mask`
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden, those that come in and "
        "those that go out.",
    ),
)
