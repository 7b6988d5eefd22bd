"""The exercises of chapter 17, attention with less memory and with less work.

What an answer makes on its way is watched in cases of their own, which return nothing else: a wrong
result is then told apart from a right one that was made of too large a tensor.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import efficient
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import ONE_SIDE
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    ONE_MASK,
    CaseTable,
    Drawn,
    Row,
    hole,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import Attention, by_root_of_d_k, hide
from attncourse.checks.writing.mistakes import Between, filled_with
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases: online_softmax ---------------------------------------------------------------------


def moving(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Scores whose running maximum moves several times in a row; rows lie below 0, or above it."""
    rows = 3 * normal(rng, shape).reshape(-1, shape[-1])
    rows[0::2] -= 18
    rows[1::2] += 6
    return rows.reshape(shape)


@dataclass(frozen=True)
class InBlocks(CaseTable):
    """Scores ``n_b`` wide in all, handed over in blocks: a row's option ``sizes``, 3 unless given.

    ``measured`` has the tensors watched that are made.
    """

    spec: Any = None
    how: Callable = moving

    def case(self, rng: Rng, row: Row) -> Case:
        sizes = row.options.get("sizes", 3)
        drawn = self.arguments(rng, {"blocks": row.given.get("blocks", "... m n_b")}, row)
        caller = callers.blocks_measured if "measured" in row.options else callers.call_in_blocks
        wide = f"{sizes} keys" if isinstance(sizes, int) else ", ".join(map(str, sizes)) + " keys"
        told = "; ".join(filter(None, (f"blocks of {wide}", row.note)))
        use = partial(caller, sizes)
        return Case((drawn["blocks"],), use=use, note=told, shown="online_softmax(blocks)")


def with_infinities(*places: tuple[int, slice]) -> dict[str, Drawn]:
    """Scores in which −∞ stands at these places of these rows."""

    def how(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
        scores = moving(rng, shape)
        for i, columns in places:
            scores[..., i, columns] = -np.inf
        return scores

    return {"blocks": Drawn("... m n_b", how)}


ONLINE_CASES = InBlocks({"blocks": "... m n_b"})
ONLINE_ROWS = standard(ONLINE_CASES)
SCORES = row("m=5 n_b=11")
ONLINE_BY_HAND = Case(
    (tensor(np.log([[1, 2, 8, 4, 1], [5, 1, 1, 3, 9]])),),
    use=partial(callers.call_in_blocks, 2),
    note="blocks of 2 keys; the logarithms of 1, 2, 8, 4, 1 and of 5, 1, 1, 3, 9",
    shown="online_softmax(blocks)",
)

# --- cases: tiled_attention, windowed_attention, linear_attention --------------------------------


@dataclass(frozen=True)
class Options(CaseTable):
    """Attention with options beside the tensors: those of the row, after ``extra``.

    The option ``measured`` is how many numbers no tensor may hold that the call makes.
    """

    spec: Any = None
    how: Callable = normal
    extra: Any = ()

    def case(self, rng: Rng, row: Row) -> Case:
        options = {**dict(self.extra), **row.options}
        limit = options.pop("measured", None)
        case = super().case(rng, row)
        named = {**case.kwargs, **options}
        told = "; ".join([f"{name}={value}" for name, value in options.items()] + [row.note] * 1)
        note = told.removesuffix("; ")
        if limit is not None:
            return replace(case, kwargs=named, note=note, use=partial(callers.call_measured, limit))
        return replace(case, kwargs=named, note=note)


QKV = {"query": "... m d_k", "key": "... n d_k", "value": "... n d_v"}
SELF = {"query": "... n d_k", "key": "... n d_k", "value": "... n d_v"}
TILED_CASES = Options(QKV, extra={"block": 3}.items())
TILED_ROWS = standard(TILED_CASES, d_k=4)
TILES = row("m=5 n=7 d_k=4 d_v=3")
TWO = row("m=6 n=6 d_k=4 d_v=3", options={"block": 2})
TILED_BY_HAND = Case(
    (
        tensor([[2, 0, 0, 0], [0, 2, 0, 0]]),
        tensor([[0, 0, 0, 0], [1, 0, 0, 0], [0, 3, 0, 0]]),
        tensor([[1, 0], [0, 1], [4, 4]]),
    ),
    {"block": 2},
    note="d_k = 4, so that √d_k = 2; blocks of 2 and 1 keys",
)
FAR_BELOW = Case(
    (
        tensor([[-600.0] * 4, [-900.0] * 4]),
        tensor([[1.0, 1.0, 1.0, 1.01], [1.0, 1.0, 1.01, 1.0], [1.0, 1.0, 0.99, 1.0]]),
        tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0]]),
    ),
    {"block": 1},
    note="scores around −1000",
)
FAR_BELOW_MASKED = Case(
    (100 * FAR_BELOW.args[0], *FAR_BELOW.args[1:]),
    {"mask": torch.tensor([[True, False, True], [False, True, True]]), "block": 2},
    note="scores around −100000, with a mask",
)


def far_keys(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """A mask in which early queries see late keys alone, and late queries early ones."""
    m, n = shape[-2:]
    i, j = np.arange(m)[:, None] / m, np.arange(n) / n
    return np.broadcast_to(np.abs(i + j - 0.9) < 0.35, shape).copy() | (j == j[-1]) & (i < 0.5)


FAR = {"mask": Drawn("m n", far_keys)}
# No tensor of this many numbers: 160 tokens, of 4 features. They take 200 kB, four times what the
# objects take that a loop over tokens makes, and an answer that goes pair by pair ends in seconds.
MANY = row("m=160 n=160 d_k=4 d_v=4", options={"measured": 160 * 160}, note="160 tokens")

WINDOW_CASES = Options(SELF, extra={"width": 3}.items())
WINDOW_ROWS = standard(WINDOW_CASES, d_k=4)
NEAR = row("n=11 d_k=4 d_v=3")
WINDOW_BY_HAND = Case(
    (
        tensor([[0, 0, 0, 0]] * 4),
        tensor([[1, 2, 3, 4]] * 4),
        tensor([[6, 1], [0, 3], [3, 2], [12, 6]]),
    ),
    {"width": 3},
    note="queries of 0: plain means of two or three values",
)


def not_all_negative(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Rows whose first feature is above 0, so that elu + 1 of large ones is not 0 throughout."""
    x = normal(rng, shape)
    x[..., 0] = np.abs(x[..., 0]) + 0.1
    return x


LINEAR_CASES = Options(QKV, how=not_all_negative)
LINEAR_ROWS = standard(LINEAR_CASES)
CAUSAL_CASES = Options(SELF, how=not_all_negative, extra={"causal": True}.items())
CAUSAL_ROWS = standard(CAUSAL_CASES)
LINEAR = row("m=5 n=7 d_k=2 d_v=3")
ALONG = row("n=7 d_k=2 d_v=3")
LINEAR_BY_HAND = Case(
    (tensor([[0, 0], [1, 0]]), tensor([[0, 0], [2, 0], [0, 1]]), tensor([[1, 2], [4, 0], [10, 6]])),
    note="features 1, 1 and 2, 1 of the queries; 1, 1 and 3, 1 and 1, 2 of the keys",
)
CAUSAL_BY_HAND = replace(
    LINEAR_BY_HAND,
    args=(*(x[:2] for x in LINEAR_BY_HAND.args[:3]),),
    kwargs={"causal": True},
    note="the first token sees itself alone",
)

# --- cases: kv_cache_bytes -----------------------------------------------------------------------


def sizes(rng: Rng, **fixed: int) -> Case:
    """A cache of some model."""
    drawn = {
        "n_tokens": int(rng.integers(100, 5000)),
        "n_layers": int(rng.integers(3, 90)),
        "n_kv_heads": int(rng.integers(3, 70)),
        "d_head": int(rng.integers(5, 300)),
    }
    given = drawn | fixed
    named = {name: given.pop(name) for name in ("bytes_per_number",) if name in given}
    return Case(tuple(given.values()), named)


CACHE_BY_HAND = Case((10, 3, 2, 4), note="10 tokens, 3 layers, 2 heads of 4 numbers")

# --- decisions: online_softmax -------------------------------------------------------------------


def largest(scores):
    return scores.amax(-1, keepdim=True)


def higher(old, scores):
    return torch.maximum(old, largest(scores))


def finite(maximum):
    """The maximum, and 0 for −∞."""
    return maximum.masked_fill(maximum == -math.inf, 0)


def shrunk(old, new):
    return (old - new).exp()


def weighed(scores, seen, old):
    return (scores - seen).exp()


def as_it_comes(blocks):
    return list(blocks)


@composition
def online(
    read=as_it_comes,
    begin=-math.inf,
    raise_to=higher,
    seen=finite,
    shrink=shrunk,
    weigh=weighed,
    add_up=lambda weights: weights.sum(-1, keepdim=True),
    join=lambda old, factor, new: old * factor + new,
    told=lambda maximum, seen: maximum,
    finish=lambda maximum, normaliser: (maximum, normaliser),
):
    """``online_softmax`` made of decisions; ``seen`` is what the scores are measured from."""

    def online_softmax(blocks):
        maximum = normaliser = None
        for scores in read(blocks):
            if maximum is None:
                maximum = torch.full_like(largest(scores), begin)
                normaliser = torch.zeros_like(maximum)
            new = raise_to(maximum, scores)
            at = seen(new)
            added = add_up(weigh(scores, at, maximum))
            normaliser = join(normaliser, shrink(maximum, at), added)
            maximum = new
        return finish(told(maximum, seen(maximum)), normaliser)

    return online_softmax


def added(number: float) -> dict[str, Any]:
    return {"finish": lambda maximum, normaliser: (maximum, normaliser + number)}


LOWEST = tuple(torch.finfo(dtype).min for dtype in (torch.float32, torch.float64))


def whole(blocks):
    return [torch.cat(list(blocks), -1)]


def without_a_short_one(blocks):
    blocks = list(blocks)
    return [block for block in blocks if block.shape[-1] >= blocks[0].shape[-1]]


def of_all_rows(old, scores):
    return torch.maximum(old, scores.amax().expand_as(old))


def of_this_block(old, scores):
    return largest(scores)


# The first block's maximum, which no later one raises: NaN says that there is none yet.
NEVER_RENEWED = {
    "begin": math.nan,
    "raise_to": lambda old, scores: torch.where(old.isnan(), largest(scores), old),
    "shrink": lambda old, new: 1.0,
}


def where_all_rows_rise(old, scores):
    return largest(scores) if (largest(scores) > old).all() else old


# --- decisions: tiled_attention ------------------------------------------------------------------


def pieces(n: int, block: int) -> Iterator[slice]:
    return efficient.slices(n, block)


def whole_pieces(n: int, block: int) -> Iterator[slice]:
    """The blocks, without the last one where it is shorter."""
    return (slice(start, start + block) for start in range(0, n - block + 1, block))


def cut(x, part):
    return x[..., part, :]


@composition
def tiles(
    roles=decisions.as_they_come,
    factor=by_root_of_d_k,
    hide=hide,
    size=lambda block, m, n: block,
    cut_queries=pieces,
    cut_keys=lambda n, block, rows: pieces(n, block),
    take=cut,
    tile=lambda mask, rows, columns: mask[..., rows, columns],
    begin=-math.inf,
    raise_to=higher,
    seen=finite,
    shrink=shrunk,
    weigh=weighed,
    keep_total=lambda total, factor: total * factor,
    keep_normaliser=lambda normaliser, factor: normaliser * factor,
    add_up=lambda weights: weights.sum(-1, keepdim=True),
    each=lambda total, normaliser: total,
    divide=lambda total, normaliser: total / normaliser,
    collect=lambda outputs, query: torch.cat(outputs, -2),
):
    """``tiled_attention`` made of decisions."""

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
                at = seen(new)
                weights, less = weigh(scores, at, maximum), shrink(maximum, at)
                normaliser = keep_normaliser(normaliser, less) + add_up(weights)
                total = keep_total(total, less) + weights @ take(value, columns)
                total, maximum = each(total, normaliser), new
            outputs.append(divide(total, normaliser))
        return collect(outputs, query)

    return tiled_attention


def into_query(outputs, query):
    out = torch.zeros_like(query)
    out += torch.cat(outputs, -2)
    return out


def length(part: slice) -> slice:
    return slice(0, part.stop - part.start)


def the_same(old, factor):
    return old


def one_for_the_tile(old, scores):
    return torch.maximum(old, scores.amax((-1, -2), keepdim=True).expand_as(old))


def own_softmax(scores, seen, old):
    return scores.softmax(-1)


def own_softmax_or_nothing(scores, seen, old):
    return scores.softmax(-1).nan_to_num(0.0)


SUM_OF_TILES = {"divide": lambda total, normaliser: total}
MEAN_OF_TILES = {"add_up": lambda weights: torch.ones_like(weights[..., :1])}


def guarded(number: float) -> dict[str, Any]:
    return {"divide": lambda total, normaliser: total / (normaliser + number)}


# --- decisions: windowed_attention ---------------------------------------------------------------


def both_sides(i, n, width):
    return i + torch.arange(-(width // 2), width // 2 + 1)


def inside(places, n):
    return (places >= 0) & (places < n)


@composition
def windows(
    places=both_sides,
    index=lambda places, n: places.clamp(0, n - 1),
    there=inside,
    fill=lambda x, inside: x,
    finish=lambda output: output,
    answer=None,
    **options,
):
    """``windowed_attention`` made of decisions; others are those of ``Attention``.

    ``places`` are the tokens of each window, some beyond the ends; ``index`` which are taken for
    them, ``fill`` what is done to those, ``there`` which of them may be attended to. ``answer``
    does without any of this.
    """
    attention = Attention.of(options)
    if answer is not None:
        return partial(answer, attention)

    def windowed_attention(query, key, value, width):
        n = key.shape[-2]
        around = places(torch.arange(n)[:, None], n, width)  # (n, width)
        near, exists = index(around, n), inside(around, n)[..., None]
        keys, values = (fill(x[..., near, :], exists) for x in (key, value))
        allowed = there(around, n).unsqueeze(-2)  # (n, 1, width)
        output = attention.output(query.unsqueeze(-2), keys, values, allowed)
        return finish(output.squeeze(-2))

    return windowed_attention


def everywhere(places, n):
    return torch.ones_like(places, dtype=torch.bool)


def whole_matrix(attention, query, key, value, width):
    i = torch.arange(key.shape[-2])
    return attention.output(query, key, value, (i[:, None] - i).abs() <= width // 2)


def by_slices(attention, query, key, value, width):
    """A slice of the keys for each query, with whatever Python makes of its ends."""
    outputs = []
    for i in range(key.shape[-2]):
        part = slice(i - width // 2, i + width // 2 + 1)
        near = key[..., part, :], value[..., part, :]
        outputs.append(attention.output(query[..., i : i + 1, :], *near))
    return torch.cat(outputs, -2)


def once_round(i, n, width):
    """A window that is as wide as the sequence at most, so that no token is in it twice."""
    return both_sides(i, n, width) if width <= n else i + torch.arange(-(n // 2), n - n // 2)


def moved_inside(i, n, width):
    """Windows that are pushed in at the ends, so that they keep their width."""
    first = (i - width // 2).clamp(min=0).minimum(torch.tensor(max(n - width, 0)))
    return first + torch.arange(width)


# --- decisions: linear_attention -----------------------------------------------------------------


def features(x):
    return F.elu(x) + 1


@composition
def linear(
    of_query=features,
    of_key=features,
    of_value=lambda value: value,
    given=lambda causal: causal,
    so_far=lambda x, axis: x.cumsum(axis),
    values_so_far=None,
    sums=lambda query, key, so_far: (query * so_far).sum(-1, keepdim=True),
    divide=lambda mixed, sums: mixed / sums,
    mix=lambda query, state: query @ state,
):
    """``linear_attention`` made of decisions; ``so_far`` adds up along an axis of tokens.

    ``values_so_far`` does so for the products with the values, where that is another sum.
    """

    def linear_attention(query, key, value, causal=False):
        query, key, value = of_query(query), of_key(key), of_value(value)
        if given(causal):
            add_up = values_so_far or so_far
            states = add_up(key.unsqueeze(-1) * value.unsqueeze(-2), -3)
            mixed = mix(query.unsqueeze(-2), states).squeeze(-2)
            total = so_far(key, -2)
        else:
            mixed, total = mix(query, key.mT @ value), key.sum(-2, keepdim=True)
        return divide(mixed, sums(query, key, total))

    return linear_attention


def without_own(x, axis):
    """Sums of what stands before each place."""
    n = x.shape[axis]
    return torch.cat([0 * x.narrow(axis, 0, 1), x.cumsum(axis).narrow(axis, 0, n - 1)], axis)


def from_here_on(x, axis):
    return x.flip(axis).cumsum(axis).flip(axis)


def numbers_of_keys(query, key, so_far):
    """How many keys each sum is of: those so far, or all."""
    n = so_far.shape[-2]
    many = torch.arange(1, n + 1, dtype=query.dtype)[:, None] if n > 1 else key.shape[-2]
    return many + 0 * so_far.sum(-1, keepdim=True)


def each_feature_shared_out(key):
    """The features of the keys, each divided by its own sum over the keys."""
    mapped = features(key)
    return mapped / mapped.sum(-2, keepdim=True)


def features_of_products(query, key, value, causal=False):
    """φ of the products in place of the products of φ."""
    weights = features(query @ key.mT)
    weights = weights.tril() if causal else weights
    return weights @ value / weights.sum(-1, keepdim=True)


def softmax_of_features(query, key, value, causal=False):
    """Softmax attention between the features."""
    return softmaxed(lambda d_k: 1)(features(query), features(key), value, causal)


def both(mapped: Callable) -> dict[str, Callable]:
    return {"of_query": mapped, "of_key": mapped}


def softmaxed(factor: Callable) -> Callable:
    """Softmax attention, its scores times a factor that depends on their width."""

    def linear_attention(query, key, value, causal=False):
        scores = query @ key.mT * factor(query.shape[-1])
        if causal:
            behind = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(behind, -torch.inf)
        return scores.softmax(-1) @ value

    return linear_attention


def all_products(query, key, value, causal=False):
    products = features(query) @ features(key).mT
    products = products.tril() if causal else products
    return products @ value / products.sum(-1, keepdim=True)


def plus(number: float) -> dict[str, Any]:
    return both(lambda x: F.elu(x) + number)


def guarded_sum(number: float) -> dict[str, Any]:
    return {"divide": lambda mixed, sums: mixed / (sums + number)}


# --- decisions: kv_cache_bytes -------------------------------------------------------------------


@composition
def counted(
    tokens=lambda n: n,
    layers=lambda n: n,
    heads=lambda n: n,
    width=lambda d, heads: d,
    kinds=2,
    bits=lambda number: number,
    default=2,
    finish=lambda total: total,
):
    """``kv_cache_bytes`` made of decisions."""

    def kv_cache_bytes(n_tokens, n_layers, n_kv_heads, d_head, bytes_per_number=default):
        numbers = tokens(n_tokens) * layers(n_layers) * heads(n_kv_heads)
        numbers = numbers * width(d_head, n_kv_heads)
        return finish(kinds * numbers * bits(bytes_per_number))

    return kv_cache_bytes


def one(n):
    return 1


# --- exercises -----------------------------------------------------------------------------------

ONLINE = exercise(
    efficient.online_softmax,
    section="Chapter 17, “A softmax in pieces”",
    difficulty=2,
    minutes=20,
    criteria=(
        ONLINE_CASES.criterion("largest score and normaliser, whatever the blocks", 3).on(
            ONLINE_BY_HAND,
            SCORES,
            SCORES.but(options={"sizes": 1}),
            SCORES.but("n_b=7", options={"sizes": (4, 1, 2)}),
            SCORES.but("n_b=6", options={"sizes": 20}, note="one block"),
        ),
        ONLINE_CASES.criterion("−∞ among the scores", 2).on(
            SCORES.but(given=with_infinities((0, slice(0, 3))), note="a first block of −∞"),
            SCORES.but(given=with_infinities((1, slice(3, 6))), note="a second block of −∞"),
            SCORES.but(given=with_infinities((2, slice(8, 11))), note="a row that ends in −∞"),
            SCORES.but(given=with_infinities((3, slice(None))), note="a row of −∞"),
        ),
        ONLINE_CASES.criterion("batches", 1).on(*ONLINE_ROWS.batches),
        ONLINE_CASES.criterion("float32, large and small scores", 1).on(
            *ONLINE_ROWS.numbers,
            SCORES.but(factor=1e-7, cancel=True, note="very small scores"),
            SCORES.but(factor=200.0, note="scores that exp cannot hold"),
            SCORES.but("m=2", note="two queries"),
            SCORES.but("m=1", note="one query"),
            SCORES.but("m=17 n_b=5", note="many queries"),
            once_more(ONLINE_BY_HAND),
        ),
        ONLINE_CASES.criterion("one block at a time, never all scores together", 1).on(
            SCORES.but("m=64 n_b=120", options={"sizes": 10, "measured": True}, factor=4.0),
        ),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("a gradient on blocks alone", "No gradient is asked for through these two numbers."),
    ),
    mistakes=made(
        online,
        mistake("""the running sum is not rescaled
            When a larger score comes, what you have summed is still measured from the old maximum.
            Multiply it by exp(old maximum − new maximum) before you add.
        """).by(shrink=lambda old, new: 1.0),
        mistake("""rescaled the wrong way round
            You multiply the sum by exp(new − old). The new maximum is larger, and the old sum has
            to shrink: exp(old − new).""")
        .by(shrink=lambda old, new: (new - finite(old)).exp())
        .by(shrink=lambda old, new: (new - old).exp()),
        mistake("""what was just added is rescaled too
            You add the new block first and rescale then. It is measured from the new maximum
            already: rescale the old sum alone.
        """).by(join=lambda old, factor, new: (old + new) * factor),
        mistake("""each block from its own maximum
            You subtract the block's own maximum from its scores. All that is summed has to be
            measured from one number: the larger of the running maximum and the block's.
        """).by(weigh=lambda s, seen, old: (s - finite(largest(s))).exp()),
        mistake("""from the maximum before
            You measure the new block from the maximum that was there before it. Take the larger one
            first, then both sums are measured from it.""")
        .by(weigh=lambda s, seen, old: (s - finite(old)).exp())
        .by(weigh=lambda s, seen, old: (s - old).exp()),
        mistake("""−∞ − (−∞)
            Where a row has seen nothing but −∞, its maximum is −∞, and −∞ − (−∞) is NaN. Subtract 0
            there.""")
        .by(seen=lambda maximum: maximum)
        .by(
            seen=lambda maximum: maximum,
            finish=lambda maximum, normaliser: (maximum, normaliser.nan_to_num()),
        ),
        mistake("""the maximum begins at a number
            Your running maximum starts at a number, so that of a row below it is wrong, one of −∞
            among them. Start at −∞, or at the first block's.""")
        .by(begin=0.0)
        .by_any(
            lambda number: {"begin": number},
            (-1.0, 1.0, *(-(10.0**n) for n in (2, 3, 4, 5, 6, 9, 10, 12, 20, 30, 38)), *LOWEST),
        ),
        mistake("""a number is added to the sum
            Your sum holds a number that belongs to no key. It begins at 0, and needs no guard.""")
        .by(added(1e-6))
        .by_any(added, (1e-8, 1e-7, 1e-5, 1e-4, 1e-3, 1.0)),
        mistake("""no maximum subtracted
            You sum exp(s) and not exp(s − maximum): for large scores that is ∞.""")
        .by(weigh=lambda s, seen, old: s.exp(), shrink=lambda old, new: 1.0)
        .by(
            weigh=lambda s, seen, old: s.exp(),
            shrink=lambda old, new: 1.0,
            finish=lambda maximum, total: (maximum, total / maximum.exp()),
        ),
        mistake("""one maximum for all queries
            You take the largest score of the whole block. Each row has a maximum of its own.
        """).by(raise_to=of_all_rows),
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
        .by(read=without_a_short_one)
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
        .by(raise_to=of_this_block, join=lambda old, factor, new: new),
        mistake("""the maximum is that of the last block
            You take each block's own maximum for the running one. It never falls:
            `torch.maximum(maximum, scores.amax(…))`.""").by(raise_to=of_this_block),
        mistake("""the maximum is never renewed
            You measure every block from the first one's maximum, and return that. Take the larger
            of the two at each block, and rescale what was summed: `torch.maximum(maximum,
            scores.amax(…))`.""")
        .by(NEVER_RENEWED | {"seen": lambda maximum: maximum})
        .by(NEVER_RENEWED)
        .by(begin=0.0, raise_to=lambda old, scores: old),
        mistake("""the maximum is renewed for all rows or for none
            You ask once for the whole block whether the maximum rises. Each row has a maximum of
            its own, which rises or stays: `torch.maximum` compares entry by entry.
        """).by(raise_to=where_all_rows_rise),
        mistake("""the new block is rescaled, not the sum
            You multiply the new block's sum by exp(old maximum − new maximum). It is measured from
            the new maximum already: what was summed before has to shrink.""").by(
            join=lambda old, factor, new: old + factor * new
        ),
        mistake("""the first block counts twice
            You start with the first block's sum and go through all blocks then, the first one too.
            Start from 0 and −∞, or go on with the second block.
        """).by(read=lambda blocks: [*(kept := list(blocks))[:1], *kept]),
        mistake("""computed in float32
            You convert the scores to float32, or keep both numbers in it. They have the dtype of
            the scores: `torch.full_like`, or `dtype=scores.dtype`.""")
        .by(read=lambda blocks: [block.float() for block in blocks])
        .by(finish=lambda maximum, normaliser: (maximum.float(), normaliser.float())),
        mistake("""all blocks joined first
            You put all scores together and take the softmax's sum in one go. Right numbers, but all
            of them at once are what is to be avoided: look at one block at a time.
        """).by(read=whole),
        mistake("""a second pass over blocks that are gone
            You look for the largest score first and go through the blocks again. They come once:
            the second time there are none.""").by(join=lambda old, factor, new: 0 * new),
        mistake("""−∞ is hidden in the result
            For a row of nothing but −∞ you return 0 as its largest score. It is −∞; only where you
            subtract it does 0 take its place.""").by(told=lambda maximum, seen: seen),
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

SCALES = (
    mistakes.DIVIDED_BY_D_K,
    mistakes.NO_SCALE,
    mistakes.MULTIPLIED_BY_ROOT,
    mistakes.ANOTHER_POWER,
    mistakes.ANOTHER_FACTOR,
)
TILED = exercise(
    efficient.tiled_attention,
    section="Chapter 17, “Tile by tile”",
    difficulty=3,
    minutes=40,
    limit=20.0,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        TILED_CASES.criterion("softmax(QKᵀ/√d_k) V, whatever the block", 3).on(
            TILED_BY_HAND,
            TWO,
            TWO.but("d_k=16", options={"block": 1}),
            TWO.but(options={"block": 6}, note="one tile"),
            TILES.but("m=7 n=5", options={"block": 20}, note="a block longer than both"),
            TILES.but("d_v=9", options={"block": 128}),
        ),
        TILED_CASES.criterion("last blocks may be shorter", 2).on(
            TILES,
            TILES.but("m=6", note="of the keys"),
            TILES.but("n=6", note="of the queries"),
            TILES.but("m=11 n=13", options={"block": 4}),
        ),
        TILED_CASES.criterion("a mask, also where a tile has no key for a query", 2).on(
            TWO.but("m=8 n=8", given=FAR),
            TILES.but("m=8 n=8", given=FAR),
            TILES.but(given={"mask": hole("m n")}),
            TILES.but(batch=(2,), given={"mask": hole("m n")}, note="one mask for a batch"),
            TILES.but(batch=(5,), given={"mask": hole("m n")}, note=ONE_MASK),
            TILES.but(batch=(2,), given={"mask": hole("... m n")}, note="a batch of masks"),
        ),
        TILED_CASES.criterion("no tensor of m · n numbers on the way", 3).on(
            MANY.but(options={**MANY.options, "block": 24}),
            MANY.but("m=160 n=150", options={"measured": 160 * 150, "block": 20}),
        ),
        TILED_CASES.criterion("batches", 1).on(*TILED_ROWS.batches),
        TILED_CASES.criterion("one key; float32, large, small and distant scores", 1).on(
            TILES.but("n=1", note="one key"),
            *TILED_ROWS.numbers,
            FAR_BELOW,
            FAR_BELOW_MASKED,
            TILES.but(factor=500.0, note="scores that exp cannot hold"),
            once_more(TILED_BY_HAND),
        ),
        TILED_CASES.criterion("gradients reach query, key and value", 2).on(
            *TILED_ROWS.gradients,
            TILES.but("m=8 n=8", given=FAR, use=TILED_CASES.each_gradient),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        tiles,
        *SCALES,
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
        """).by(tile=lambda mask, r, c: mask[..., length(r), length(c)]),
        mistake("""the mask is not cut along with the scores
            You use all rows of the mask, or all its columns, on a tile that has a part of them. Cut
            both axes as you cut the scores, `mask[..., rows, columns]`.""")
        .by(tile=lambda mask, r, c: mask)
        .by(tile=lambda mask, r, c: mask[..., c])
        .by(tile=lambda mask, r, c: mask[..., r, :]),
        mistake("""the mask's rows do not move along
            You cut the mask's columns and always take its first rows. Rows of the mask belong to
            queries: cut both axes, `mask[..., rows, columns]`.
        """).by(tile=lambda mask, r, c: mask[..., length(r), c]),
        mistake("""the mask's columns do not move along
            You cut the mask's rows and always take its first columns. Columns of the mask belong to
            keys: cut both axes, `mask[..., rows, columns]`.
        """).by(tile=lambda mask, r, c: mask[..., r, length(c)]),
        mistake("""the mask's tile is transposed
            You cut the mask with keys as rows. Its axes are those of the scores: queries, then
            keys.""")
        .by(tile=lambda mask, r, c: mask[..., c, r].mT)
        .by(tile=lambda mask, r, c: mask[..., c, r]),
        mistake("""−∞ − (−∞)
            A query may see no key of a tile. Its largest score is −∞ there, and −∞ − (−∞) is NaN.
            Subtract 0 while a row has seen nothing else.""").by(seen=lambda maximum: maximum),
        mistake("""nothing is rescaled when the maximum moves
            When a larger score comes, both running sums are still measured from the old maximum.
            Multiply them by exp(old − new) before you add.""").by(shrink=lambda old, new: 1.0),
        mistake("""the output is not rescaled
            You rescale the normaliser when the maximum moves, and not the running sum of values.
            Both are measured from the maximum: multiply both.""").by(keep_total=the_same),
        mistake("""the normaliser is not rescaled
            You rescale the running sum of values when the maximum moves, and not the normaliser.
            Both are measured from the maximum: multiply both.""").by(keep_normaliser=the_same),
        mistake("""rescaled the wrong way round
            You multiply by exp(new − old). The new maximum is larger, and what was summed before
            has to shrink: exp(old − new).""")
        .by(shrink=lambda old, new: (new - finite(old)).exp())
        .by(shrink=lambda old, new: (new - old).exp()),
        mistake("""each tile from its own maximum
            You subtract the tile's own maximum. All that is summed for a row has to be measured
            from one number, the running maximum.
        """).by(weigh=lambda s, seen, old: (s - finite(largest(s))).exp()),
        mistake("""the maximum begins at a number
            Your running maximum starts at a number. For scores far below that every exp is 0, and
            0/0 is NaN. Start at −∞.""")
        .by(begin=0.0)
        .by_any(lambda number: {"begin": number}, tuple(-(10.0**n) for n in range(5))),
        mistake("""the maximum is that of the last tile
            You take each tile's own maximum for the running one. It never falls:
            `torch.maximum(maximum, scores.amax(…))`.""").by(raise_to=of_this_block),
        mistake("""the maximum is never renewed
            You measure every tile from the first one's maximum. A later score may be far above it:
            take the larger of the two, and rescale both sums.""")
        .by(NEVER_RENEWED | {"seen": lambda maximum: maximum})
        .by(NEVER_RENEWED),
        mistake("""the new tile is rescaled, not the sums
            You multiply what the new tile adds by exp(old maximum − new maximum). It is measured
            from the new maximum already: both sums from before have to shrink.""").by(
            weigh=lambda s, seen, old: (s - seen).exp() * shrunk(old, seen),
            shrink=lambda old, new: 1.0,
        ),
        mistake("""no maximum subtracted
            exp of a large score overflows, and far below 0 it vanishes. Measure every score from
            its row's running maximum.""").by(seen=torch.zeros_like, shrink=lambda old, new: 1.0),
        mistake("""one maximum for the whole tile
            You subtract the tile's largest score from all its rows. In a row far below it every exp
            is 0. Each row has its own maximum.""").by(raise_to=one_for_the_tile),
        mistake("""a softmax in every tile
            You take a softmax of each tile and add the results up, or average them. A row shares 1
            among all keys: sum exp first, and divide once at the end.""")
        .by(weigh=own_softmax, shrink=lambda old, new: 1.0)
        .by(weigh=own_softmax_or_nothing, shrink=lambda old, new: 1.0)
        .by(
            *(
                {"weigh": weigh, "shrink": lambda old, new: 1.0, **joined}
                for weigh in (own_softmax, own_softmax_or_nothing)
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
        .by(guarded(1e-3))
        .by_any(guarded, Between(1e-8, 10.0)),
        mistake("""the last keys are dropped
            You leave out the last block of keys where it is shorter than the others: `range(0, n,
            block)` reaches it, `n // block` blocks do not.""")
        .by(cut_keys=lambda n, block, rows: whole_pieces(n, block))
        .by(cut_keys=lambda n, block, rows: whole_pieces(n, min(n, block))),
        mistake("""the last queries are dropped
            You leave out the last block of queries where it is shorter than the others. Every query
            gets a row.""").by(cut_queries=whole_pieces),
        mistake("""a query sees the keys of its own block alone
            You walk along the diagonal. Each block of queries meets *every* block of keys.
        """).by(cut_keys=lambda n, block, rows: [rows]),
        mistake("""the later keys are left out
            You stop at the tile on the diagonal. Without a mask a query sees all keys.""").by(
            cut_keys=lambda n, block, rows: (
                part for part in pieces(n, block) if part.start <= rows.start
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
        """).by(collect=into_query),
        mistakes.ROLES_EXCHANGED.here(roles=lambda q, k, v: (k, q, v)),
        mistakes.KEYS_BLENDED,
    ),
)

WINDOWED = exercise(
    efficient.windowed_attention,
    section="Chapter 17, “A window”",
    difficulty=2,
    minutes=25,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        WINDOW_CASES.criterion("each token and its neighbours, width in all", 3).on(
            WINDOW_BY_HAND,
            NEAR,
            NEAR.but(options={"width": 5}),
            NEAR.but("d_k=16 n=13", options={"width": 7}),
        ),
        WINDOW_CASES.criterion("cut off at the ends", 2).on(
            NEAR.but("n=3"),
            NEAR.but("n=5", options={"width": 5}),
            NEAR.but("n=5", options={"width": 13}, note="wider than the sequence"),
        ),
        WINDOW_CASES.criterion("no tensor of n · n numbers on the way", 2).on(
            MANY.but(options={**MANY.options, "width": 5}),
            MANY.but("n=150", options={"measured": 150 * 150, "width": 3}),
        ),
        WINDOW_CASES.criterion("batches", 1).on(
            *WINDOW_ROWS.batches, NEAR.but("n=2", batch=(3,), note="two tokens")
        ),
        WINDOW_CASES.criterion("width 1, one token; float32, large and small scores", 1).on(
            NEAR.but(options={"width": 1}, note="each token sees itself alone"),
            NEAR.but("n=1", options={"width": 3}, note="one token"),
            *WINDOW_ROWS.numbers,
            NEAR.but(factor=500.0, note="scores that exp cannot hold"),
            once_more(WINDOW_BY_HAND),
        ),
        WINDOW_CASES.criterion("gradients reach query, key and value", 1).on(
            *WINDOW_ROWS.gradients
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        windows,
        *SCALES,
        mistake("""divided by the root of the width of the window
            You divide the scores by √width. It is the width of queries and keys that counts,
            √d_k.""").by(factor=lambda q, k, other: k.shape[-2] ** -0.5),
        mistakes.NO_SOFTMAX,
        mistakes.NO_MAXIMUM,
        mistakes.ZERO_SCORES,
        mistakes.NOT_LOW_ENOUGH.by(filled_with(-1e4)),
        mistakes.SIGMOIDS,
        mistakes.KEYS_BLENDED,
        mistakes.OVER_QUERIES.here(normalize=lambda s: s.softmax(-3)).said(
            "Your softmax runs over the queries. Each has a budget of 1: take it along the places "
            "of its window, the last axis of the scores."
        ),
        mistake("""all scores at once
            Right numbers, but they are made of a whole matrix of scores, or of a mask of that size.
            Compare each token with those of its window only.""").by(answer=whole_matrix),
        mistake("""a window that begins before the first token
            A slice from a negative number counts from the end: `key[-1:2]` is empty, or other
            tokens. Begin at `max(0, start)`.""").by(answer=by_slices),
        mistake("""width on each side
            Your windows have 2 · width + 1 tokens. width counts all of them: width // 2 on each
            side, and the token itself.
        """).by(places=lambda i, n, width: i + torch.arange(-width, width + 1)),
        mistake("""one token too few on the right
            Your windows stop before the last token: `range(i - half, i + half)` leaves out i +
            half.""")
        .by(places=lambda i, n, width: i + torch.arange(-(width // 2), max(width // 2, 1)))
        .by(places=lambda i, n, width: i + torch.arange(-(width // 2), width // 2)),
        mistake("""one token too few on the left
            Your windows begin one token late. They reach from i − width // 2 to i + width // 2.
        """).by(
            places=lambda i, n, width: i + torch.arange(min(1 - width // 2, 0), width // 2 + 1)
        ),
        mistake("""one token too many on each side
            You round the half up. Of an odd width, width // 2 tokens stand on each side.""").by(
            places=lambda i, n, width: i + torch.arange(-(width + 1) // 2, (width + 1) // 2 + 1)
        ),
        mistake("""the window ends at the token
            You look at the width tokens that end with the token itself. It stands in the
            middle.""").by(places=lambda i, n, width: i + torch.arange(1 - width, 1)),
        mistake("""the window begins at the token
            You look at the width tokens that begin with the token itself. It stands in the
            middle.""").by(places=lambda i, n, width: i + torch.arange(width)),
        mistake("""a token does not see itself
            You leave out the token itself. It belongs to its window.
        """).by(there=lambda places, n: inside(places, n) & (places != torch.arange(n)[:, None])),
        mistake("""zeros beyond the ends get weight
            You pad keys and values with zeros. A key of zeros has a score of 0, and exp(0) is 1: it
            takes weight from the others. Mask what is beyond the ends, both of them.""")
        .by(fill=lambda x, exists: x * exists, there=everywhere)
        .by(fill=lambda x, exists: x * exists, there=lambda places, n: places < n)
        .by(fill=lambda x, exists: x * exists, there=lambda places, n: places >= 0),
        mistake("""the last token counts more than once
            Beyond the ends you repeat the token that stands there, so it gets its weight several
            times. A window is shorter at the ends.""").by(there=everywhere),
        mistake("""the window goes round
            Beyond one end you go on at the other, as `roll` or a negative index does. The first
            token has no left neighbour.""")
        .by(index=lambda places, n: places % n, there=everywhere)
        .by(places=once_round, index=lambda places, n: places % n, there=everywhere),
        mistake("""the window is moved inside
            At the ends you move the window in, so that it keeps its width. It stays around its
            token and is cut off.""").by(places=moved_inside),
        mistake("""blocks and not windows
            You cut the sequence into blocks, and all tokens of a block see the same: the block, or
            some beside it too. A window moves along with its token.""")
        .by(places=lambda i, n, width: i // width * width + torch.arange(width))
        .by(
            places=lambda i, n, width: (
                i // width * width + torch.arange(-(width // 2), width + width // 2)
            )
        ),
        mistake("""every second token
            Your windows leave out every second token. They are the nearest ones, side by side.
        """).by(places=lambda i, n, width: i + 2 * torch.arange(-(width // 2), width // 2 + 1)),
        mistake("""a wide window is narrowed
            Where the window is wider than the sequence you cut it down to the sequence's length. It
            keeps its reach on both sides: the first token may see the last one.""").by(
            places=lambda i, n, width: both_sides(i, n, min(width, n // 2 * 2 + 1))
        ),
        mistake("""the windows are not used
            Your tokens see the whole sequence.
        """).by(places=lambda i, n, width: torch.arange(n).expand(n, n)),
        mistake("""weights at the ends sum to less than 1
            You take the softmax over the whole window and set what is beyond the ends to 0
            afterwards. What is left has to sum to 1: put −∞ into the scores.
        """).by(hide=lambda s, mask: s, after=lambda w, mask, f: w if mask is None else w * mask),
        mistake("""the windows' axis stays
            You return `(..., n, 1, d_v)`: an axis for the one query of each window is left.
        """).by(finish=lambda output: output.unsqueeze(-2)),
    ),
)

LINEAR_EXERCISE = exercise(
    efficient.linear_attention,
    section="Chapter 17, “Sums instead of scores”",
    difficulty=2,
    minutes=25,
    criteria=(
        LINEAR_CASES.criterion("features of the queries with sums over the keys", 3).on(
            LINEAR_BY_HAND,
            LINEAR,
            LINEAR.but("m=7 n=5 d_k=5", note="more queries than keys"),
            LINEAR.but("m=2 n=2", note="two and two"),
        ),
        CAUSAL_CASES.criterion("causal: each token sees those up to itself", 2).on(
            CAUSAL_BY_HAND,
            ALONG,
            ALONG.but("n=17 d_k=3", note="many tokens"),
            *(one.but(note=f"{one.note}, a batch") for one in CAUSAL_ROWS.contiguous),
        ),
        LINEAR_CASES.criterion("not causal: no tensor of m · n numbers on the way", 1).on(
            MANY,
            MANY.but("m=160 n=150", options={"measured": 160 * 150}),
        ),
        LINEAR_CASES.criterion("batches", 1).on(*LINEAR_ROWS.batches),
        Criterion("one query, one key, float32, large and small entries", 1).on(
            lambda rng: [
                *LINEAR_CASES(
                    LINEAR.but("n=1", note="one key"),
                    LINEAR.but("m=1", note="one query"),
                    *LINEAR_ROWS.numbers,
                )(rng),
                *CAUSAL_CASES(
                    ALONG.but("n=1", note="one token"),
                    CAUSAL_ROWS.batches[2],
                    CAUSAL_ROWS.single,
                )(rng),
                once_more(LINEAR_BY_HAND),
            ]
        ),
        LINEAR_CASES.criterion("gradients reach query, key and value", 1).on(
            *LINEAR_ROWS.gradients,
        ),
        CAUSAL_CASES.criterion("gradients, causal", 1).on(*CAUSAL_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=(
        *made(
            linear,
            mistake("""the denominators are missing
                You return φ(Q) (φ(K)ᵀ V). The weights φ(q) · φ(k) do not sum to 1: divide each row
                by their sum, φ(q) · Σ φ(k).""").by(divide=lambda mixed, sums: mixed),
            mistake("""divided by the number of keys
                You divide by a number of tokens. What divides row i is φ(q_i) · Σ_j φ(k_j).""")
            .by(sums=lambda q, k, so_far: k.shape[-2] + 0 * so_far.sum(-1, keepdim=True))
            .by(sums=numbers_of_keys),
            mistake("""each feature of the keys is shared out
                You divide each feature of the keys by its sum over the keys. It is the weights of a
                query that sum to 1: divide row i by φ(q_i) · Σ_j φ(k_j), at the end.
            """).by(of_key=each_feature_shared_out, divide=lambda mixed, sums: mixed),
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
            .by(guarded_sum(0.001))
            .by_any(guarded_sum, Between(1e-08, 10.0)),
            mistake("""elu without + 1
                elu goes down to −1, so weights can be negative and denominators 0. φ is elu +
                1.""").by(both(F.elu)),
            mistake("""another number added to elu
                You add another number than 1 to elu. φ(x) = elu(x) + 1 is above 0 and comes near
                it.""")
            .by(plus(2.0))
            .by_any(plus, (0.5, 1.5, 1e-06, 1.1, 3.0)),
            mistake("""another feature map
                You use another function than elu + 1 as φ.""")
            .by(both(torch.relu))
            .by(both(torch.exp))
            .by(both(lambda x: x.softmax(-1)))
            .by(both(F.softplus))
            .by(both(lambda x: torch.sigmoid(x)))
            .by(both(lambda x: F.gelu(x) + 1))
            .by(both(lambda x: F.relu(x) + 1))
            .by(both(lambda x: F.elu(x + 1)))
            .by(both(lambda x: F.selu(x) + 1))
            .by(both(torch.square))
            .by(both(lambda x: F.relu(x) + 1e-6))
            .by(both(lambda x: F.relu(x) + 1e-3))
            .by(of_query=lambda x: x.softmax(-1), of_key=lambda x: x.softmax(-2))
            .by(
                of_query=lambda x: x.softmax(-1),
                of_key=lambda x: x.softmax(-2),
                divide=lambda mixed, sums: mixed,
            ),
            mistake("""no feature map
                You use queries and keys as they are. Their products may be negative, and then they
                are no weights: take φ of both first.""").by(both(lambda x: x)),
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
            .by(both(lambda x: features(x * x.shape[-1] ** (-0.25))))
            .by(both(lambda x: features(x * x.shape[-1] ** (-0.5)))),
            mistake("""causal is ignored
                With causal=True your tokens still see those behind them. Use running sums, `cumsum`
                along the tokens.""").by(so_far=lambda x, axis: x.sum(axis, keepdim=True)),
            mistake("""always causal
                Without `causal` every query sees all keys.""").by(given=lambda causal: True),
            mistake("""a token does not see itself
                Your running sums stop before the token itself. It belongs to what it may see, and
                the first token has nothing else.""")
            .by(so_far=without_own)
            .by(so_far=without_own, divide=lambda mixed, sums: mixed / sums.clamp(1e-9))
            .by(so_far=without_own, **guarded_sum(1e-12))
            .by(so_far=without_own, divide=lambda mixed, sums: (mixed / sums).nan_to_num()),
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
            """).by(so_far=from_here_on),
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
        """).whole(all_products),
        mistake("""φ of the products
            You take φ of q · k. It is taken of queries and keys, each by itself, and the weights
            are their products, φ(q) · φ(k).""").whole(features_of_products),
        mistake("""softmax attention
            You compute softmax attention, of queries and keys or of their features. Here the
            weights are φ(q) · φ(k) over their sum.
        """).whole(
            softmaxed(lambda d_k: 1),
            softmaxed(lambda d_k: d_k ** (-0.5)),
            softmaxed(lambda d_k: 1 / d_k),
            softmax_of_features,
        ),
    ),
)

CACHE = exercise(
    efficient.kv_cache_bytes,
    section="Chapter 17, “What a cache weighs”",
    difficulty=1,
    minutes=5,
    criteria=(
        Criterion("keys and values of every token, layer and head", 2).on(
            lambda rng: [CACHE_BY_HAND, *(sizes(rng) for _ in range(4))]
        ),
        Criterion("numbers of any size in bytes", 1).on(
            lambda rng: [
                sizes(rng, bytes_per_number=4),
                sizes(rng, bytes_per_number=1),
                sizes(rng, bytes_per_number=8),
            ]
        ),
        Criterion("no tokens, one head, long texts", 1).on(
            lambda rng: [
                sizes(rng, n_tokens=0),
                sizes(rng, n_kv_heads=1),
                sizes(rng, n_kv_heads=8, d_head=8),
                sizes(rng, n_tokens=3_000_000),
                once_more(CACHE_BY_HAND),
            ]
        ),
    ),
    mistakes=made(
        counted,
        mistake("""keys or values alone
            You count one number for each feature. Keys *and* values are kept: twice as many.
        """).by(kinds=1),
        mistake("""queries too
            You count queries, keys and values. A query is used once and thrown away.
        """).by(kinds=3),
        mistake("""bits
            You count bits. A number of 2 bytes has 16 bits; bytes are asked for.
        """).by(bits=lambda number: 8 * number),
        mistake("""divided by 8
            You divide by 8 as if `bytes_per_number` were bits.""")
        .by(bits=lambda number: number / 8)
        .by(bits=lambda number: number // 8),
        mistake("""numbers and not bytes
            You count numbers. Each takes `bytes_per_number` bytes.""").by(bits=one),
        mistake("""the same number of bytes, whatever is given
            You take two bytes for each number, or four. `bytes_per_number` says how many.""")
        .by(bits=lambda number: 2)
        .by(bits=lambda number: 4),
        mistake("""another size unless told
            Unless told, a number takes 2 bytes.""")
        .by(default=4)
        .by(default=1)
        .by(default=8),
        mistake("""one layer
            You count one layer. Each has keys and values of its own.""").by(layers=one),
        mistake("""one head
            You count one head, or divide `d_head` by their number. Each of the `n_kv_heads` has
            keys and values of its own, of `d_head` numbers each.""")
        .by(heads=one)
        .by(width=lambda d, heads: d // heads),
        mistake("""one feature
            You leave out `d_head`: a key has that many numbers.""").by(width=lambda d, heads: 1),
        mistake("""one token
            You leave out the tokens.""").by(tokens=one),
        mistake("""pairs of tokens
            You count n². Scores are for pairs of tokens, and nobody keeps them; keys and values are
            for single tokens.""").by(tokens=lambda n: n * n),
        mistake("""megabytes or gigabytes
            You divide to get larger units. Bytes are asked for.""")
        .by(finish=lambda total: total / 1e9)
        .by(
            *(
                {"finish": lambda total, unit=unit: total / unit}
                for unit in (1e3, 1e6, 1024, 2**20, 2**30)
            )
        ),
    ),
)

EXERCISES = (ONLINE, TILED, WINDOWED, LINEAR_EXERCISE, CACHE)

VARIANTS = (
    Variant(
        "one_side",
        "`width` counts the tokens **on one side** here: token i sees i − width to i + width, "
        "2 · width + 1 tokens in all. In the book it counts the whole window.",
        "width counts one side here",
        "Your answer takes width for all tokens of the window, as the book and its published "
        "answers do. In this assignment it counts those on one side: the window of token i reaches "
        "from i − width to i + width.",
        {
            "windowed_attention": Adapter(
                {"width": ONE_SIDE},
                drops=("width on each side", "one token too many on each side"),
            )
        },
        rewordings("""
            sees the⏎`width` tokens around it, i − width // 2 to i + width // 2, itself included
            → sees⏎`width` tokens on each side, i − width to i + width, and itself
            | `width` | an odd number | how many tokens a window in the middle has |
            → | `width` | a number, 0 or more | how many tokens a window in the middle has on one
                side |
            in the hundreds, `width` 3 or 5) → in the hundreds, `width` 1 or 2)
            [3.0], [12.0]]), 3⏎ → [3.0], [12.0]]), 1⏎
            each token and its neighbours, width in all
            → each token and its neighbours, width on each side
            scores by √width → scores by √(2 · width + 1)
            i − width // 2 to i + width // 2 → i − width to i + width
            You look at the width tokens that → You look at the 2 · width + 1 tokens that
            torch.arange(-half, half + 1)` is `(n, width)`
            → torch.arange(-width, width + 1)` is `(n, 2 * width + 1)`
            `range(i - half, i + half)` leaves out i + half
            → `range(i - width, i + width)` leaves out i + width
        """),
    ),
)
