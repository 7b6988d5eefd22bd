"""The exercises of chapter 10, masking.

Masks hold truth values and compare exactly. In the cases of ``masked_softmax`` a masked score
exceeds the allowed ones by a few units at most, so that masking after the softmax, with
renormalisation, stays right in float16 too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch

from attncourse import masking
from attncourse.checks.callers import call_on_function, with_gradients
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import forbidden, masked
from attncourse.checks.variants.rewriting import NEGATED
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import (
    CaseTable,
    Drawn,
    Row,
    hole,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import Attention, over_keys
from attncourse.checks.writing.mistakes import Between, filled_with
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases: masks ----------------------------------------------------------------------------


def lengths(*numbers: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


def padded(n: int, *batch: int, **special) -> Row:
    """Sequences of any lengths from 0 to n."""
    drawn = Drawn("...", lambda rng, shape: rng.integers(0, n + 1, shape))
    return row(f"n={n}", batch=batch, given={"lengths": drawn}, **special)


CAUSAL_BY_HAND, WINDOW_BY_HAND = Case((3,)), Case((5, 3))
PADDING_BY_HAND = Case((lengths(3, 1, 4), 5))
FIXED = CaseTable({})  # nothing is drawn
PADDING_CASES = CaseTable({"lengths": Drawn("..."), "max_length": cases.Count("n")})
BEHIND = {"causal": True}


# --- cases: masked_softmax -------------------------------------------------------------------


def empty_rows(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """A mask whose first row and another allow no key."""
    mask = cases.holes(rng, shape)
    mask[..., 0, :] = False
    mask[..., int(rng.integers(1, shape[-2])), :] = False
    return mask


def first_allowed(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    mask = rng.random(shape) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    return mask


def falling(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Rows below 0 whose first entry is the largest."""
    return -np.sort(-rng.normal(size=shape), axis=-1) - 5


def heights(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Five rows at very different heights; within a row the scores are close to each other."""
    return rng.normal(size=shape) + rng.permutation([-900.0, -300.0, 0.0, 400.0, 900.0])[:, None]


WEIGHTS_CASES = CaseTable({"scores": "... m n", "mask": hole("... m n")}, how=normal)
WEIGHTS_ROWS = standard(WEIGHTS_CASES)


def by_hand(scores: list, mask: list, note: str) -> Case:
    return Case((tensor(scores), torch.tensor(mask).bool()), note=note)


WEIGHTS_BY_HAND = by_hand(
    [[0, 0, 2, 1], [3, 1, 1, 0]], [[1, 1, 0, 0], [0, 1, 1, 0]], "half and half in both rows"
)
EMPTY_BY_HAND = by_hand(
    [[0, 0, 2], [1, 4, 0]], [[1, 1, 0], [0, 0, 0]], "the second query may attend to nothing"
)
FIVE = row("m=5 n=7")
FOR_ALL = {"mask": hole("m n")}
EMPTY = {"mask": Drawn("... m n", empty_rows)}
LEARNING = FIVE.but(use=with_gradients("scores"))
HALF = FIVE.but(dtype="float16", note="float16")
LOW = Case(
    (
        torch.tensor([[-4, 3, -4], [-3, -5, 2]], dtype=torch.float16),
        torch.tensor([[True, False, True], [True, True, False]]),
    ),
    note="float16, low scores",
)
ABOVE_11 = {"scores": Drawn("m n", lambda rng, shape: normal(rng, shape) + 14)}
FAR_BELOW = {
    "scores": Drawn("m n", lambda rng, shape: normal(rng, shape) - 1e6),
    "mask": Drawn("m n", lambda rng, shape: np.ones(shape, bool)),
}
LARGE = {"scores": Drawn("m n", falling), "mask": Drawn("m n", first_allowed)}

# --- cases: leak -----------------------------------------------------------------------------

FORMULAS = {
    "linear_mix": "f(x) = A x W",
    "squashed_mix": "f(x) = tanh(A x W)",
    "mixed_product": "f(x) = (A x) · (B x), entry by entry",
    "small_attention": "f(x) = softmax(x W_q (x W_k)ᵀ) x W_v, over the allowed keys",
    "small_attention_masked_late": "f(x) = (softmax(x W_q (x W_k)ᵀ) · allowed) x W_v",
}
MIXED, PROJECTED = {"A": "m n", "W": "d 2"}, {"W_q": "d 2", "W_k": "d 2", "W_v": "d 3"}
TENSORS = {
    "squashed_mix": MIXED,
    "linear_mix": MIXED,
    "mixed_product": {"A": "m n", "B": "m n"},
    "small_attention": PROJECTED,
    "small_attention_masked_late": PROJECTED,
}


def leak_case(kind: str, x: torch.Tensor, mask: torch.Tensor, note: str = "", **tensors) -> Case:
    """``leak(f, x, mask)`` with f = ``FUNCTIONS[kind]`` of the callers and these tensors."""
    told = "; ".join(text for text in (FORMULAS[kind], note) if text)
    return Case((kind, x, mask), tensors, use=call_on_function, note=told, shown="leak(f, x, mask)")


def lower(n: int, above: int = 0) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril(above)


@dataclass(frozen=True)
class LeakTable(CaseTable):
    """Cases of ``leak``. A row's options are f's name and how far ahead its own mask looks."""

    def case(self, rng: Rng, row: Row) -> Case:
        x, mask = self.arguments(rng, {**self.spec, **row.given}, row).values()
        kind = row.options.get("f", "squashed_mix")
        plain = Row(row.sizes)
        tensors = {
            name: self.argument(rng, name, Drawn(axes, cases.between), plain)
            for name, axes in TENSORS[kind].items()
        }
        if "ahead" in row.options:
            tensors["allowed"] = lower(row.sizes["n"], row.options["ahead"])
        return leak_case(kind, x, mask, row.note, **tensors)


LEAK_CASES = LeakTable({"x": "... n d", "mask": hole("m n")}, how=normal)
LEAK_ROWS = standard(LEAK_CASES)


def linear_case(x: list, A: list, W: list, note: str = "", dtype=torch.float64) -> Case:
    """A x W by hand, where no token may look ahead."""
    x, A, W = (tensor(numbers, dtype) for numbers in (x, A, W))
    return leak_case("linear_mix", x, lower(len(x)), note, A=A, W=W)


LEAK_BY_HAND = linear_case(
    [[1, 2], [0, 1], [3, -1]], [[1, 2, 0], [0, 1, -5], [9, 0, 1]], [[1, 0], [-1, 2]]
)
NO_LEAK = linear_case([[1, 2], [3, 4]], [[2, 0], [3, -4]], [[1, 1], [0, 5]])
ONE = [[1], [2], [4]], [[1, -3, 2], [0, 1, 1], [7, 0, 1]], [[2]]
ONE_FEATURE = linear_case(*ONE, "one feature, float32", torch.float32)
SQUARE = row("m=5 n=5 d=3", given={"mask": Drawn("m n", lambda rng, shape: np.tri(*shape) > 0)})
ALL = {"mask": Drawn("m n", lambda rng, shape: np.ones(shape, bool))}
NONE = {"mask": Drawn("m n", lambda rng, shape: np.zeros(shape, bool))}
PRODUCT, ATTENTION = {"f": "mixed_product"}, {"f": "small_attention"}
MASKED_LATE = {"f": "small_attention_masked_late", "ahead": 0}

# --- usual mistakes: masks -------------------------------------------------------------------


def as_it_is(mask):
    return mask


def as_additive(mask: torch.Tensor, number: float = -math.inf) -> torch.Tensor:
    return torch.zeros(mask.shape).masked_fill(~mask, number)


def band(m: int, n: int, low: float, high: float) -> torch.Tensor:
    """True where ``low <= j - i <= high``, with positions as rows and columns count them."""
    steps = torch.arange(n) - torch.arange(m)[:, None]
    return (steps >= low) & (steps <= high)


def returned(mask, truth=as_it_is, form=as_it_is, kind=as_it_is):
    """What comes back of a mask: what True means, the axes, the dtype."""
    return kind(form(truth(mask)))


NUMBERS = (
    mistake("""a mask of numbers
    Your mask is right, but it holds numbers, 0 and 1. Masks in this course are boolean (`~` would
    turn a whole 1 into −2): compare (`<=`, `<`), or end with `.bool()`.""")
    .by(kind=lambda mask: mask.float())
    .by(
        *(
            {"kind": lambda mask, dtype=dtype: mask.to(dtype)}
            for dtype in (torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8)
        )
    )
)
ADDITIVE = (
    mistake("""0 and −∞
    You return the numbers that would be added to the scores, 0 and −∞ (or a low number). A boolean
    mask is asked for, True where attention is allowed.""")
    .by(kind=as_additive)
    .by_any(lambda number: {"kind": lambda mask: as_additive(mask, number)}, Between(-3.4e38, -1.0))
)
NO_TENSOR = (
    mistake("""no tensor comes back
    You return a NumPy array, or lists. Masks are torch tensors: `torch.from_numpy(…)` or
    `torch.tensor(…)` makes one.""")
    .by(kind=lambda mask: mask.numpy())
    .by(kind=lambda mask: mask.tolist())
)
THE_FUTURE = (  # the usual first lines of a causal mask, taken for the whole of it
    mistake("""the future in place of the past
    You keep the keys that come later, as `triu` does. Return the past, in booleans, True
    where attention is allowed: `torch.ones(m, n, dtype=torch.bool).tril(n − m)`.""").by(
        *(
            {
                "compare": lambda ahead, k=k: ahead >= k,
                "offset": lambda m, n: 0,
                "kind": lambda mask, dtype=dtype: mask.to(dtype),
            }
            for k in (1, 0)
            for dtype in (torch.float32, torch.float64, torch.int64, torch.bool)
        )
    )
)
INVERTED = mistake("""the mask is inverted
    Your mask is True where attention is forbidden, as in `nn.MultiheadAttention`. In this course,
    and in `F.scaled_dot_product_attention`, True means allowed.""").by(truth=lambda mask: ~mask)
OF_WHAT_COMES_BACK = (NUMBERS, ADDITIVE, NO_TENSOR, INVERTED)


@composition
def causal(
    sizes=lambda m, n: (m, n or m),
    offset=lambda m, n: n - m,
    compare=lambda ahead: ahead <= 0,
    **back,
):
    """``causal_mask`` made of decisions; ``compare`` gets how far ahead of query i key j lies."""

    def causal_mask(n_queries, n_keys=None):
        m, n = sizes(n_queries, n_keys)
        ahead = torch.arange(n) - torch.arange(m)[:, None] - offset(m, n)
        return returned(compare(ahead), **back)

    return causal_mask


@composition
def padding(
    read=as_it_is,
    align=lambda lengths: lengths[..., None, None],
    width=lambda lengths, n: n,
    allow=lambda j, length, n: j < length,
    **back,
):
    """``padding_mask`` made of decisions."""

    def padding_mask(lengths, max_length):
        n = width(lengths, max_length)
        return returned(allow(torch.arange(n), align(read(lengths)), n), **back)

    return padding_mask


def one_by_one(lengths):
    return torch.stack([length if length > 0 else 0 * length for length in lengths])


def odd_unless_causal(n, width, causal):
    if not causal and width % 2 == 0:
        raise ValueError("expected an odd width")
    return width


def centred(n, width):
    return band(n, n, -(width // 2), width // 2)


def behind_each(n, width):
    return band(n, n, 1 - width, 0)


@composition
def window(refuse=odd_unless_causal, around=centred, behind=behind_each, **back):
    """``sliding_window_mask`` made of decisions; ``refuse`` says with which width to go on."""

    def sliding_window_mask(n, width, causal=False):
        width = refuse(n, width, causal)
        return returned((behind if causal else around)(n, width), **back)

    return sliding_window_mask


def at_most_n(n, width, causal):
    if width > n:
        raise ValueError("expected a width of at most n")
    return odd_unless_causal(n, width, causal)


def ringed(n, back, ahead):
    steps = (torch.arange(n) - torch.arange(n)[:, None]) % n
    return (steps <= ahead) | (steps >= n - back)


def in_blocks(n, width):
    number = torch.arange(n) // width
    return number[:, None] == number


def sliced(n, back, ahead):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, i - back : i + ahead + 1] = True
    return mask


def reaching(decision: str, *reaches: Callable) -> tuple[dict, ...]:
    """Windows that end elsewhere: ``reaches`` say how far back and ahead for a width."""
    return tuple({decision: lambda n, w, reach=reach: band(n, n, *reach(w))} for reach in reaches)


def in_either(around: Callable, behind: Callable) -> tuple[dict, ...]:
    """A mistake in the window around each token, in the one behind it, or in both."""
    return {"around": around, "behind": behind}, {"around": around}, {"behind": behind}


# --- usual mistakes: masked_softmax ----------------------------------------------------------


UNSPARED = {"spare": lambda mask, some: mask}  # rows with no key are forgotten
FORGOTTEN = {**UNSPARED, "finish": lambda weights, some: weights}
NOT_HIDDEN = {"hide": lambda scores, mask: scores}


@composition
def weigh(
    see=lambda mask, scores: mask.broadcast_to(scores.shape),
    cast=as_it_is,
    spare=lambda mask, some: mask | ~some,
    finish=lambda weights, some: weights.masked_fill(~some, 0),
    **options,
):
    """``masked_softmax`` made of decisions.

    ``spare`` keeps rows with no key from becoming rows of −∞, ``finish`` is done to their weights.
    """
    attention = Attention.of(options)

    def masked_softmax(scores, mask):
        mask = see(mask, scores)
        some = mask.any(-1, keepdim=True)
        hidden = attention.hide(cast(scores), spare(mask, some))
        return finish(attention.after(attention.normalize(hidden), mask, None), some)

    return masked_softmax


def exponentials(scores):
    return (scores - scores.amax(-1, keepdim=True).detach()).exp()


def of_differences(scores):
    return (scores - scores.amax(-1, keepdim=True)).exp()


def shares(weights, mask, factor):
    kept = weights * mask
    return kept / kept.sum(-1, keepdim=True)


def no_zero(total):
    return total.masked_fill(total == 0, 1)


def written_below(number: float) -> dict:
    """A number is written where the mask hides, into the scores that came in."""

    def hide(scores, mask):
        scores[~mask] = number
        return scores

    return {"spare": lambda mask, some: mask, "hide": hide}


def nowhere_near(number: float) -> dict:
    """Masked scores become a number, and rows with no key are forgotten."""
    return FORGOTTEN | filled_with(number)


def from_a_floor(scores, floor, total):
    e = (scores - scores.amax(-1, keepdim=True).clamp(min=floor)).exp()
    return e / total(e.sum(-1, keepdim=True))


def guarded_shares(choice: tuple[Callable, float], guard: Callable = torch.add) -> dict:
    """Masked afterwards, and a number is added to the sums of the rows."""
    normalize, number = choice

    def after(weights, mask, factor):
        kept = weights * mask
        return kept / guard(kept.sum(-1, keepdim=True), number)

    return {**FORGOTTEN, **NOT_HIDDEN, "normalize": normalize, "after": after}


floored_shares = partial(guarded_shares, guard=torch.clamp)


OF_EMPTY_ROWS = {  # what shared explanations leave out
    "the sum is at least 1 and needs no guard": "the sum of a row with a key is at least 1 and "
    "needs no guard. In a row without one replace the 0 by 1",
    "Put −∞ into the scores before it": "Put −∞ into the scores before it, and mind the rows with "
    "no key",
    "You mix the values with the scores themselves": "You return the scores themselves",
}
GUARDS = (1e-6, 1e-15, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
MORE = {  # other ways to make the catalogue's mistakes, where rows may have no key
    mistakes.NO_MAXIMUM.name: (
        {"normalize": lambda s: s.exp() / no_zero(s.exp().sum(-1, keepdim=True))},
        {**NOT_HIDDEN, "normalize": torch.exp, "after": shares},
        *map(floored_shares, product((torch.exp,), (1e-12, 1e-9, 1e-8, 1e-6))),
        *(guarded_shares((torch.exp, number)) for number in (1e-12, 1e-9, 1e-8)),
    ),
    mistakes.FLOORED.name: tuple(
        FORGOTTEN | {"normalize": partial(from_a_floor, floor=floor, total=total)}
        for floor in (0.0, -1.0, -10.0, -1e2, -1e3, -1e4, -1e5)
        for total in (no_zero, partial(torch.clamp, min=1e-6), partial(torch.clamp, min=1e-9))
    ),
    mistakes.ONE_MAXIMUM.name: (
        {"normalize": lambda s: (e := (s - s.max()).exp()) / no_zero(e.sum(-1, keepdim=True))},
    ),
    mistakes.MASK_INVERTED.name: ({"see": lambda mask, scores: ~mask.broadcast_to(scores.shape)},),
    mistakes.MASK_TRANSPOSED.name: (
        {"see": lambda mask, scores: mask.mT.broadcast_to(scores.shape)},
        {"see": lambda mask, scores: mask.mT},
    ),
    mistakes.MASK_IGNORED.name: ({"see": lambda mask, scores: torch.ones_like(scores).bool()},),
    mistakes.TOO_LITTLE_OFF.name: tuple(
        FORGOTTEN | {"hide": lambda s, mask, e=e: s + (mask.to(s.dtype) + e).log()}
        for e in (1e-6, 1e-8, 1e-9, 1e-10, 1e-12)
    ),
    mistakes.OVER_QUERIES.name: (
        {
            "spare": lambda mask, some: mask | ~mask.any(-2, keepdim=True),
            "normalize": lambda s: s.softmax(-2),
            "after": lambda w, mask, f: w * mask,
        },
    ),
    mistakes.ZERO_SCORES.name: tuple(
        FORGOTTEN | {"hide": hide, "after": after}
        for hide in (lambda s, mask: s * mask, lambda s, mask: s.masked_fill(~mask, 1e-9))
        for after in (lambda w, mask, f: w, lambda w, mask, f: w * mask)
    ),
    mistakes.NOT_LOW_ENOUGH.name: (
        filled_with(-1e4),
        filled_with(-1e4) | {"after": lambda w, mask, f: w * mask},
        filled_with(-1e6),
    ),
    mistakes.ZERO_TIMES_INFINITY.name: (
        FORGOTTEN | {"hide": lambda s, mask: s + ~mask * -math.inf},
    ),
}


# --- usual mistakes: leak --------------------------------------------------------------------


def derivatives(f: Callable, x: torch.Tensor) -> torch.Tensor:
    """∂ out_ia / ∂ x_jc of each sequence, ``(..., m, d', n, d)``."""
    x = x.detach().clone().requires_grad_()
    out = f(x)
    rows = [
        torch.stack(
            [torch.autograd.grad(one.sum(), x, retain_graph=True)[0] for one in row.unbind(-1)], -3
        )
        for row in out.unbind(-2)
    ]
    return torch.stack(rows, -4)


def masked_pairs(mask: torch.Tensor, J: torch.Tensor) -> torch.Tensor:
    """The masked pairs, ``(..., m, 1, n, 1)``."""
    return (~mask).broadcast_to(*J.shape[:-3], J.shape[-2])[..., :, None, :, None]


def only(J, hidden):
    return J.masked_fill(~hidden, 0)


@composition
def leaking(
    at=as_it_is,
    derive=derivatives,
    outputs=as_it_is,
    tokens=as_it_is,
    size=torch.abs,
    pairs=masked_pairs,
    gather=lambda J, hidden: only(J, hidden).max(),
    give=float,
):
    """``leak`` made of decisions: where to differentiate, what is added up, which pairs count."""

    def leak(f, x, mask):
        J = tokens(outputs(derive(f, at(x))))
        return give(gather(size(J), pairs(mask, J)))

    return leak


def row_by_row(mask, J):
    rows = [mask[..., i, :] for i in range(J.shape[-4])]
    return masked_pairs(torch.stack(rows, -2), J)


def as_many_rows_as_tokens(J, hidden):
    kept = only(J, hidden)
    return torch.stack([kept[..., i, :, :, :] for i in range(J.shape[-2])]).max()


def moved(f, x, change):
    """How far the outputs move when a feature of a token is changed, ``(..., m, d', n, d)``."""
    steps = []
    for j, c in product(range(x.shape[-2]), range(x.shape[-1])):
        other = x.clone()
        change(other, j, c)
        steps.append(f(other) - f(x))
    return torch.stack(steps, -1).unflatten(-1, x.shape[-2:])


def differences(step: float) -> dict:
    return {"derive": lambda f, x: moved(f, x, lambda x, j, c: x[..., j, c].add_(step)) / step}


# --- exercises -------------------------------------------------------------------------------

CAUSAL = exercise(
    masking.causal_mask,
    section="Chapter 10, “No looking ahead”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        Criterion("a token sees itself and what came before", 2).on(
            lambda rng: [CAUSAL_BY_HAND, Case((int(rng.integers(5, 9)),)), Case((2,))]
        ),
        Criterion("fewer queries than keys: the last positions", 2).on(
            lambda rng: [
                Case((2, 5), note="two new queries behind three old positions"),
                Case((m := int(rng.integers(3, 5)), m + int(rng.integers(2, 5)))),
                Case((5, 6)),
                Case((67, 71), note="many tokens"),
            ]
        ),
        FIXED.criterion("one query, one token", 1).on(
            Case((1, 5), note="one query, the last of five positions"),
            Case((1, 2), note="one query, two keys"),
            Case((1,), note="n = 1"),
            Case((4, 4), note="n_keys given, and equal"),
            once_more(CAUSAL_BY_HAND),
        ),
    ),
    mistakes=made(
        causal,
        *OF_WHAT_COMES_BACK,
        THE_FUTURE,
        mistake("""a token does not see itself
            Your mask stops too early: `<` where `<=` belongs, `tril(-1)`, an offset too small. A
            token may attend to itself; without that, the first one has nothing to attend to.""")
        .by(compare=lambda ahead: ahead < 0)
        .by_any(lambda k: {"compare": lambda ahead: ahead <= k}, (-2, -3, -4)),
        mistake("""every token sees the next one
            Your mask reaches too far: `tril(1)`, or an offset that is too large. One step is all
            that a language model needs to read its answer.""")
        .by(compare=lambda ahead: ahead <= 1)
        .by_any(lambda k: {"compare": lambda ahead: ahead <= k}, (2, 3, 4)),
        mistake("""what is allowed is not the past
            Row i is the query, at i + n − m; its keys are its own place and all before it. You
            allow the future (`triu`, or i and j exchanged), the diagonal alone, or all.""")
        .by(compare=lambda ahead: ahead >= 0)
        .by(compare=lambda ahead: ahead == 0)
        .by(compare=lambda ahead: ahead == ahead)
        .by(compare=lambda ahead: (ahead <= 0) | (ahead.shape[0] < ahead.shape[1])),
        mistake("""the diagonal does not follow the sizes
            The queries are the last m of n positions, and each sees itself: query i stands at i + n
            − m, so it is `tril(n − m)`. Your offset is another: none (`.tril()`), a fixed number, m
            − n, or a step too far.""")
        .by(offset=lambda m, n: 0)
        .by(offset=lambda m, n: 1)
        .by(offset=lambda m, n: -1)
        .by(offset=lambda m, n: m - n)
        .by(*({"offset": lambda m, n, k=k: n - m + k * (n > m)} for k in (-1, 1, -2, 2)))
        .by_any(lambda number: {"offset": lambda m, n: number}, (-2, 2, 3)),
        mistake("""the old keys are shut out
            Your first n − m columns are False. What came before the queries is the past of all of
            them: those columns are True.
        """).by(truth=lambda mask: mask.triu(mask.shape[1] - len(mask)).any(0) & mask),
        mistake("""rows and columns are not queries and keys
            The mask is (n_queries, n_keys), the last rows of a square. In yours `n_keys` is
            ignored, or counts the rows too, or the two are exchanged.""")
        .by(sizes=lambda m, n: (m, m))
        .by(sizes=lambda m, n: (n or m, n or m))
        .by(sizes=lambda m, n: (n or m, m))
        .by(form=lambda mask: mask.T),
        mistake("""n_keys=None is not provided for
            Without `n_keys` your function computes with None. As many as queries are meant.
        """).by(sizes=lambda m, n: (m, n + 0)),
    ),
)

PADDING = exercise(
    masking.padding_mask,
    section="Chapter 10, “Padding”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("the first lengths[b] keys of sequence b", 2).on(
            lambda rng: [
                PADDING_BY_HAND,
                Case((torch.from_numpy(rng.permutation(np.arange(1, 7))[:4].copy()), 7)),
                Case((lengths(4, 1, 18, 11, 3), 19), note="many tokens"),
            ]
        ),
        FIXED.criterion("full, empty and single sequences", 1).on(
            Case((lengths(5, 2), 5), note="a sequence without padding"),
            Case((lengths(2, 0, 3), 4), note="an empty sequence"),
            Case((lengths(1), 1), note="one sequence of one token"),
            Case((lengths(3, 3, 3), 3), note="no padding at all"),
            Case((lengths(1, 2, 1), 2), note="up to two tokens"),
            Case((lengths(2, 4, 1, dtype=torch.int32), 6), note="lengths of dtype int32"),
        ),
        PADDING_CASES.criterion("two batch axes and more", 1).on(
            padded(5, 2, 3, note="two batch axes"),
            padded(3, 4, 2, turned=True, note="two batch axes, not contiguous in memory"),
            padded(7, 2, 1, 3, note="three batch axes"),
            padded(4, 2, 5, 3, turned=True, note="three batch axes, not contiguous in memory"),
            once_more(PADDING_BY_HAND),
        ),
        unchanged(),
    ),
    excludes=(("one batch axis, not contiguous", "A single axis has one order in memory."),),
    mistakes=made(
        padding,
        *OF_WHAT_COMES_BACK,
        mistake("""positions are not counted from 0
            A sequence of length 3 has the positions 0, 1 and 2: `j < length`. You count one too
            many or too few, or leave out position 0.""")
        .by(allow=lambda j, length, n: j <= length)
        .by(allow=lambda j, length, n: j < length - 1)
        .by(allow=lambda j, length, n: (j > 0) & (j < length))
        .by(allow=lambda j, length, n: (j > 0) & (j <= length)),
        mistake("""no padding or no token is taken for something else
            A slice from −0 or up to −0, `lengths or …` and `clamp(min=1)` make another number of 0:
            a sequence without padding has no False, an empty one no True. Use `j < length`.""")
        .by(allow=lambda j, length, n: (j < length) & (length < n))
        .by(allow=lambda j, length, n: (j < length) | (length == 0))
        .by(read=lambda lengths: lengths.clamp(min=1)),
        mistake("""the axis of 1 does not stand for the queries
            The mask is (b, 1, max_length): the batch, an axis of 1 that stands for all queries, the
            keys. Yours has no such axis, one more, or has it elsewhere.""")
        .by(form=lambda mask: mask[..., 0, :])
        .by(align=lambda lengths: lengths[:, None])
        .by(form=lambda mask: mask.mT)
        .by(form=lambda mask: mask[..., None, :])
        .by(form=lambda mask: mask[..., 0, :][None]),
        mistake("""a row for every query
            You return (b, n, n). An axis of 1 stands for all queries, however many; empty rows for
            padded ones are a risk of NaN, and what those compute is thrown away.""")
        .by(form=lambda mask: mask & mask.mT)
        .by(form=lambda mask: mask.expand(*mask.shape[:-2], mask.shape[-1], -1)),
        mistake("""padding expected on the left
            You allow the *last* lengths[b] keys. Here the tokens stand first, the padding behind.
        """).by(allow=lambda j, length, n: j >= n - length),
        mistake("""max_length is ignored
            Your mask is as wide as the longest sequence. It has max_length columns: perhaps more.
        """).by(width=lambda lengths, n: max(1, int(lengths.max()))),
        mistake("""the lengths are not those of their sequences
            You mask every sequence at one length, or sort them. Each has a row of its own, in the
            order in which they come: compare with `lengths[..., None, None]`.""")
        .by(read=lambda lengths: torch.full_like(lengths, int(lengths.max())))
        .by(read=lambda lengths: torch.full_like(lengths, int(lengths.flatten()[0])))
        .by(read=lambda lengths: lengths.sort(descending=True)[0])
        .by(read=lambda lengths: lengths.sort()[0]),
        mistake("""only one batch axis
            `lengths[:, None, None]`, `unsqueeze(1)`, a loop over the first axis or a flattening fit
            lengths (b,) alone. `lengths[..., None, None]` counts from the end.""")
        .by(align=lambda lengths: lengths[:, None, None])
        .by(align=lambda lengths: lengths.reshape(-1, 1, 1))
        .by(align=lambda lengths: one_by_one(lengths)[:, None, None])
        .by(form=lambda mask: mask[..., 0, :].unsqueeze(1)),
    ),
)

WINDOW = exercise(
    masking.sliding_window_mask,
    section="Chapter 10, “Windows”",
    difficulty=2,
    minutes=12,
    picture=True,
    criteria=(
        Criterion("width tokens, centred on each", 2).on(
            lambda rng: [
                WINDOW_BY_HAND,
                Case((8, 5)),
                Case((int(rng.integers(7, 12)), 2 * int(rng.integers(1, 3)) + 1)),
                Case((17, 7), note="many tokens"),
            ]
        ),
        Criterion("causal: width tokens that end with each", 2).on(
            lambda rng: [
                Case((5, 3), BEHIND),
                Case((7, 4), BEHIND, note="an even width"),
                Case((int(rng.integers(6, 9)), 2), BEHIND),
                Case((8, 5), BEHIND),
            ]
        ),
        FIXED.criterion("width 1, and wider than the sequence", 1).on(
            Case((4, 1), note="width 1"),
            Case((4, 1), BEHIND, note="width 1"),
            Case((3, 7), note="wider than the sequence"),
            Case((3, 6), BEHIND, note="wider than the sequence"),
            Case((2, 3), note="n = 2"),
            Case((1, 3), note="n = 1"),
            once_more(WINDOW_BY_HAND),
        ),
        FIXED.criterion("an even width has no centre: ValueError", 1).on(
            Case((7, 4), note="even width", raises=ValueError),
            Case((5, 2), note="even width", raises=ValueError),
        ),
    ),
    mistakes=made(
        window,
        *OF_WHAT_COMES_BACK,
        mistake("""a token does not see itself
            Your diagonal is False. The window counts the token itself.
        """).by(truth=lambda mask: mask & ~torch.eye(len(mask), dtype=torch.bool)),
        mistake("""the centred window has another reach
            Without `causal` the window reaches width // 2 to each side, as far forward as back: `|i
            − j| <= width // 2`. The width counts the whole window, the token included.""")
        .by(around=lambda n, w: band(n, n, -w, w))
        .by(
            *reaching(
                "around",
                lambda w: (1 - w, w - 1),
                lambda w: (1 - w // 2, w // 2 - 1),
                lambda w: (-(w // 2), w // 2 - 1),
                lambda w: (1 - w // 2, w // 2),
                lambda w: (1 - w, 0),
                lambda w: (-(w // 2), 0),
                lambda w: (0, w - 1),
                lambda w: (0, w // 2),
            )
        ),
        mistake("""blocks in place of a window
            Your tokens share blocks (`i // width == j // width`). A window moves with its token.
        """).by(*in_either(in_blocks, lambda n, w: in_blocks(n, w).tril())),
        mistake("""the window wraps around
            Your first token sees the last, or a slice starts below 0 (`mask[i, i − width + 1:]`)
            and counts from the end. At the edges it is cut off: |i − j|, or `max(0, …)`.""").by(
            *in_either(lambda n, w: ringed(n, w // 2, w // 2), lambda n, w: ringed(n, w - 1, 0)),
            *in_either(lambda n, w: sliced(n, w // 2, w // 2), lambda n, w: sliced(n, w - 1, 0)),
        ),
        mistake("""causal is ignored
            Your result is the same with `causal=True`. Then the window ends with the token.""")
        .by(behind=centred, refuse=lambda n, w, causal: w)
        .by(behind=centred)
        .by(behind=centred, refuse=lambda n, w, causal: odd_unless_causal(n, w, False)),
        mistake("""the causal window has another reach
            With `causal` the window holds the token itself and width − 1 before it, and none that
            comes later: `0 <= i − j < width`, both sides of it.""")
        .by(behind=lambda n, w: band(n, n, -(w // 2), 0))
        .by(
            *reaching(
                "behind",
                lambda w: (-w, 0),
                lambda w: (2 - w, 0),
                lambda w: (-w, -1),
                lambda w: (1 - w, -1),
                lambda w: (-math.inf, 0),
                lambda w: (0, w - 1),
                lambda w: (1 - w, math.inf),
                lambda w: (1 - w, w - 1),
            )
        ),
        mistake("""even widths are let through
            A centred window of even width has no centre. The exercise asks for a ValueError there;
            with `causal` every width is right.""")
        .by(refuse=lambda n, w, causal: w)
        .by(refuse=lambda n, w, causal: w if causal or w % 2 else w + 1)
        .by(refuse=lambda n, w, causal: w if causal or w % 2 else w - 1)
        .by(refuse=lambda n, w, causal: w, around=lambda n, w: band(n, n, -((w - 1) // 2), w // 2)),
        mistake("""a width that is right is refused
            Only a centred window needs an odd width: with `causal=True` any will do. And a window
            may be wider than the sequence, then it allows all that it reaches.""")
        .by(refuse=lambda n, w, causal: odd_unless_causal(n, w, False))
        .by(refuse=at_most_n)
        .by(refuse=lambda n, w, causal: odd_unless_causal(n, w + 1, causal) - 1),
        mistake("""a wide window is narrowed
            You use at most n for the width. In a window that is much wider than the sequence the
            first token sees the last: its reach is still `width // 2`.
        """).by(refuse=lambda n, w, causal: min(odd_unless_causal(n, w, causal), n)),
    ),
)

SOFTMAX = exercise(
    masking.masked_softmax,
    section="Chapter 10, “Rows with nothing to attend to”",
    difficulty=3,
    minutes=25,
    criteria=(
        WEIGHTS_CASES.criterion("weights over the allowed keys, 0 elsewhere", 3).on(
            WEIGHTS_BY_HAND, FIVE, row("m=5 n=5", note="as many queries as keys")
        ),
        WEIGHTS_CASES.criterion("one row, one key, one mask for all", 1).on(
            FIVE.but(given={"mask": hole("1 n")}, note="one row of the mask for all"),
            row("m=3 n=7", turned=True, note="not contiguous in memory"),
            row("m=1 n=5", note="one query"),
            row("m=5 n=1", note="one key"),
        ),
        WEIGHTS_CASES.criterion("batches", 1).on(
            *WEIGHTS_ROWS.batches,
            FIVE.but(batch=(2,), given={"mask": hole("... 1 n")}, note="a mask for each of 2"),
            FIVE.but(batch=(2,), given=FOR_ALL, note="one mask for both"),
            FIVE.but(batch=(5,), given=FOR_ALL, note=cases.ONE_MASK),
        ),
        WEIGHTS_CASES.criterion("float32, large and small scores", 1).on(
            FIVE.but(given={"scores": Drawn("m n", heights)}, note="scores in the hundreds"),
            FIVE.but(given=LARGE, factor={"scores": 1e7}, note="scores in the millions"),
            FIVE.but(given=FAR_BELOW, note="scores near −1000000, all of them allowed"),
            WEIGHTS_ROWS.extreme[1],
            FIVE.but(dtype="float32", given=EMPTY, note="float32, with empty rows"),
            once_more(WEIGHTS_BY_HAND),
        ),
        WEIGHTS_CASES.criterion("rows with no key: all 0", 2).on(
            EMPTY_BY_HAND,
            FIVE.but(given=EMPTY, note="two queries may attend to nothing"),
            row("m=5 n=3", batch=(2,), given=EMPTY, note="a batch of 2, with empty rows"),
        ),
        WEIGHTS_CASES.criterion("float16", 1).on(
            HALF,
            LOW,
            HALF.but(given=EMPTY, note="float16, empty rows"),
            HALF.but("m=3 n=5", given=ABOVE_11, note="float16, large scores"),
        ),
        WEIGHTS_CASES.criterion("gradients reach the scores, none is NaN", 2).on(
            LEARNING.but(batch=(2,), given=FOR_ALL, note="a batch of 2"),
            LEARNING.but(given=EMPTY, note="with empty rows"),
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        weigh,
        mistake("""a row with no key is NaN
            The softmax of a row of nothing but −∞ is NaN, and so is 0/0 where you mask later. Leave
            the scores of such a row as they are, and set its weights to 0 at the end.""")
        .by(FORGOTTEN)
        .by(FORGOTTEN | {"hide": lambda s, mask: s + mask.log()})
        .by(FORGOTTEN | NOT_HIDDEN | {"after": shares}),
        mistake("""a row with no key keeps its weights
            You leave the scores of a row with no key as they are, which is right, and return their
            softmax. Its weights are to be 0: fill them in afterwards.
        """).by(finish=lambda weights, some: weights),
        mistake("""the gradient of an empty row is NaN
            Your weights are right, but NaN was made on the way and covered up at the end
            (`nan_to_num`, `torch.where`). The way back leads through it: the gradient is NaN. See
            to it that no row of nothing but −∞ reaches the softmax, and none is divided by 0.""")
        .by(
            **UNSPARED,
            hide=lambda s, mask: s + as_additive(mask).to(s.dtype),
            finish=lambda weights, some: weights.nan_to_num(0),
        )
        .by(NOT_HIDDEN | {"after": shares}),
        mistake("""a low number in place of −∞
            A row with no key becomes a row of equal scores, so its weights are 1/n each and not 0;
            other scores may come near the number, and float16 ends at ±65504. Use −∞, and look
            after empty rows.""")
        .by(FORGOTTEN | {"hide": lambda s, mask: s.masked_fill(~mask, -1e9)})
        .by(FORGOTTEN | {"hide": lambda s, mask: torch.where(mask, s, -1e9)})
        .by(FORGOTTEN | {"hide": lambda s, mask: s.masked_fill(~mask, torch.finfo(s.dtype).min)})
        .by(*map(nowhere_near, (-100.0, -1e4, -1e6)))
        .by_any(nowhere_near, Between(-800.0, -1e-3)),
        mistake("""a low number is written into the scores
            `scores[~mask] = …` changes the scores of whoever called, and autograd refuses it for
            scores that are learned. The number is none that every dtype has, either: float16 ends
            at ±65504. `scores.masked_fill(~mask, -math.inf)` makes new scores.
        """)
        .by(written_below(-1e6))
        .by(written_below(-1e6) | {"finish": lambda weights, some: weights * some})
        .by_any(written_below, (-1e4, -1e9, -math.inf)),
        mistake("""float16 has no −1e9
            Your function breaks down in float16, which reaches to ±65504. Use −∞, which every
            floating dtype has, or `torch.finfo(scores.dtype).min`.
        """).by(hide=lambda s, mask: s.masked_fill(~mask, -1e9)),
        mistake("""−1e9 is added to the scores
            A sum with −1e9 keeps what float32 has room for, steps of 64, and a row with no key
            still gets weights that sum to 1. In float16 it is no float16 any more, or −∞.
            `masked_fill` replaces, it does not add.""")
        .by(FORGOTTEN | {"hide": lambda s, mask: s + ~mask * -1e9})
        .by(FORGOTTEN | {"hide": lambda s, mask: s + (1 - mask.to(s.dtype)) * -1e9}),
        mistake("""a guard beside the allowed weights
            You add a small number to the sum of a row, or let the sum be no less. Its weights no
            longer sum to 1, or the number is 0 in float16, as all below 3e-8 are, and 0/0 is NaN.
            Replace a sum of 0 by 1, and leave the others as they are.""")
        .by(guarded_shares((over_keys, 1e-6)))
        .by(*map(floored_shares, product((over_keys, exponentials), (1e-12, 1e-9, 1e-6))))
        .by_any(guarded_shares, tuple(product((over_keys, exponentials, of_differences), GUARDS))),
        mistake("""not divided by the sum
            You return exponentials, and a row does not sum to 1. Divide by the sum of the row.""")
        .by(normalize=exponentials)
        .by({**NOT_HIDDEN, "normalize": exponentials, "after": lambda w, mask, f: w * mask}),
        mistake("""float16 comes back as float32
            You compute in float32, which is a good idea for float16 alone, and return that. Leave
            float32 and float64 as they are, and end with `.to(scores.dtype)`.""")
        .by(cast=lambda s: s.float() if s.dtype == torch.float16 else s)
        .by(cast=lambda s: s.float()),
        mistakes.MASK_NOT_BROADCAST.here(see=lambda mask, scores: mask, hide=mistakes.at_places),
        *(
            one.by(*MORE.get(one.name, ())).naming(**OF_EMPTY_ROWS)
            for one in (
                *mistakes.OF_THE_SOFTMAX,
                mistakes.FLOORED,
                mistakes.ONE_MAXIMUM,
                mistakes.IN_SINGLE_PRECISION,
                *mistakes.OF_THE_MASK,
                mistakes.TOO_LITTLE_OFF,
            )
        ),
    ),
)

LEAK = exercise(
    masking.leak,
    section="Chapter 10, “The leak test”",
    difficulty=3,
    minutes=25,
    criteria=(
        LEAK_CASES.criterion("the largest derivative over the masked pairs", 3).on(
            LEAK_BY_HAND,
            SQUARE,
            SQUARE.but(options=PRODUCT),
            SQUARE.but(given={}),
        ),
        # Of several, the largest derivative is a negative one somewhere, and of a later query.
        LEAK_CASES.criterion("finds attention that looks ahead", 1).on(
            *[SQUARE.but(options=ATTENTION | {"ahead": 1}, note="one step ahead is allowed")] * 4
        ),
        LEAK_CASES.criterion("finds what a mask after the softmax leaks", 1).on(
            *[SQUARE.but(options=MASKED_LATE, note="masked after the softmax")] * 4
        ),
        LEAK_CASES.criterion("0 where nothing leaks", 1).on(
            NO_LEAK,
            SQUARE.but(options=ATTENTION | {"ahead": 0}, note="allowed is the mask"),
            SQUARE.but(options={"f": "linear_mix"}, given=ALL, note="nothing is masked"),
        ),
        LEAK_CASES.criterion("any number of queries, keys and features, of any size", 1).on(
            row("m=2 n=5 d=3", note="two queries, five keys"),
            row("m=5 n=3 d=4", given={"mask": hole("1 n")}, note="one row of the mask for all"),
            row("m=1 n=1 d=3", given=NONE, note="one token, which may not see itself"),
            ONE_FEATURE,
            *(one.but(options=PRODUCT) for one in LEAK_ROWS.extreme),
            once_more(LEAK_BY_HAND),
        ),
        LEAK_CASES.criterion("batches", 1).on(
            *LEAK_ROWS.batches[:3],
            *(one.but("n=3") for one in LEAK_ROWS.batches[3:]),  # one key would hide a mistake
            SQUARE.but(batch=(2,), given={"mask": hole("... 1 n")}, note="a mask for each"),
        ),
        unchanged(),
    ),
    excludes=(("integers in x", "A derivative is taken by x, which holds real numbers."),),
    mistakes=made(
        leaking,
        mistake("""the wrong pairs are measured
            Only pairs where the mask is False count, and row i of it belongs to output i. You
            measure those that are allowed, or all, or look up mask[j, i].""")
        .by(pairs=lambda mask, J: masked_pairs(~mask, J))
        .by(pairs=lambda mask, J: torch.ones_like(J, dtype=torch.bool))
        .by(pairs=lambda mask, J: masked_pairs(mask, J).movedim((-4, -2), (-2, -4))),
        mistake("""outputs do not have their rows of the mask
            Each of the `out.shape[-2]` outputs has a row of the mask, and one row may stand for
            all: `mask.broadcast_to(*out.shape[:-1], n)`. You take rows as they come, or go through
            as many outputs as x has tokens.""")
        .by(pairs=row_by_row)
        .by(gather=as_many_rows_as_tokens),
        mistake("""the sign is kept
            You take the maximum of the derivatives themselves. A large negative one is as much a
            leak: take the absolute value first.""")
        .by(size=as_it_is)
        .by(size=lambda J: J.clamp(min=0)),
        mistake("""the features are not taken one by one
            You add up or average over the features of an output (`out[i].sum()`) or of a token, or
            look at the first alone. Derivatives can cancel in a sum: every single one counts.""")
        .by(outputs=lambda J: J.sum(-3, keepdim=True))
        .by(outputs=lambda J: J.mean(-3, keepdim=True))
        .by(outputs=lambda J: J[..., :1, :, :])
        .by(tokens=lambda J: J.sum(-1, keepdim=True))
        .by(tokens=lambda J: J.mean(-1, keepdim=True))
        .by(tokens=lambda J: J[..., :1])
        .by(tokens=lambda J: J.abs().sum(-1, keepdim=True))
        .by(tokens=lambda J: J.abs().mean(-1, keepdim=True)),
        mistake("""several outputs in one gradient
            `f(x).sum()` has one gradient for all outputs, and `backward()` adds to what `x.grad`
            holds. Each out[..., i, a] has its own: `torch.autograd.grad` adds nothing up.""")
        .by(outputs=lambda J: J.sum((-4, -3), keepdim=True).expand_as(J))
        .by(outputs=lambda J: J.flatten(-4, -3).cumsum(-3).unflatten(-3, J.shape[-4:-2]))
        .by(outputs=lambda J: J.cumsum(-3)),
        mistake("""something else than the largest
            You average what leaks, add it up, or take the norm of a block. One leaking pair among a
            thousand is a leak: the largest single derivative is asked for.""")
        .by(gather=lambda J, h: only(J, h).sum() / h.expand_as(J).sum().clamp(min=1))
        .by(gather=lambda J, h: only(J, h).mean())
        .by(gather=lambda J, h: only(J, h).sum())
        .by(
            *(
                {"gather": lambda J, h, a=axes: only(J, h).norm(dim=a, keepdim=True).max()}
                for axes in ((-3, -1), -1, -3)
            )
        ),
        mistake("""only one query is tested
            You return after the first output, or keep what the last one gave. The largest of all
            outputs is asked for: `worst = max(worst, …)`.""")
        .by(gather=lambda J, hidden: only(J, hidden)[..., :1, :, :, :].max())
        .by(gather=lambda J, hidden: only(J, hidden)[..., -1:, :, :, :].max())
        .by(gather=lambda J, hidden: only(J, hidden)[..., -1:, -1:, :, :].max()),
        mistake("""only one sequence is tested
            Of a batch you look at one sequence alone, the first or the last. The largest derivative
            of all sequences is asked for.""")
        .by(gather=lambda J, hidden: only(J, hidden).reshape(-1, *J.shape[-4:])[0].max())
        .by(gather=lambda J, hidden: only(J, hidden).reshape(-1, *J.shape[-4:])[-1].max()),
        mistake("""divided by the number of sequences
            You average over the batch, `out[..., i, a].mean()`, and the derivative of each sequence
            is divided by how many there are. Add up, `.sum()`: no sequence depends on another.""")
        .by(outputs=lambda J: J / max(J.shape[:-4].numel(), 1))
        .by(outputs=lambda J: J.reshape(-1, *J.shape[-4:]).mean(0)),
        mistake("""nothing masked is not provided for
            Where no pair is masked, there is nothing to take the largest of, and `max` raises an
            error, or gives −∞ or less than 0. The answer is 0 there.""")
        .by(gather=lambda J, hidden: J[hidden.expand_as(J)].max())
        .by(gather=lambda J, hidden: max(J[hidden.expand_as(J)].tolist()))
        .by(gather=lambda J, hidden: J.masked_fill(~hidden, -math.inf).max())
        .by(gather=lambda J, hidden: J.masked_fill(~hidden, -1).max()),
        mistake("""the derivative is taken elsewhere
            You differentiate at zeros, or at numbers of your own. The derivative at x is asked for;
            elsewhere it is another.""")
        .by(at=torch.zeros_like)
        .by(at=torch.ones_like),
        mistake("""not one number
            You return whether there is a leak, or a number for each sequence. The answer is one
            number: the largest absolute derivative of all, 0.0 where nothing leaks.""")
        .by(give=lambda worst: bool(worst > 0))
        .by(give=lambda worst: float(worst > 0))
        .by(gather=lambda J, hidden: only(J, hidden).amax((-4, -3, -2, -1)), give=as_it_is),
        mistake("""a difference in place of the derivative
            You move a token a little, or set it to 0, and see how far the outputs move. The
            derivative at x itself is asked for: `torch.autograd.grad` gives it exactly.""")
        .by(differences(1e-3))
        .by(derive=lambda f, x: moved(f, x, lambda x, j, c: x[..., j, :].zero_()))
        .by_any(differences, (0.1, 1e-2, 1e-4, 1e-5, 1e-6)),
        mistake("""x does not ask for a gradient
            Nothing can be differentiated by x as it comes. Make a copy that can: `x =
            x.detach().clone().requires_grad_()`.
        """).by(derive=lambda f, x: torch.autograd.grad(f(x)[..., 0, 0].sum(), x)[0]),
    ),
)

EXERCISES = (CAUSAL, PADDING, WINDOW, SOFTMAX, LEAK)

MADE = Adapter(result=NEGATED, drops=("the mask is inverted", "the future in place of the past"))
VARIANTS = (
    forbidden(
        {
            "causal_mask": MADE,
            "padding_mask": MADE,
            "sliding_window_mask": MADE,
            "masked_softmax": masked(),
            "leak": masked(drops=("the wrong pairs are measured",)),
        },
        r"""
            True where query i may attend to key j → True where query i may not attend to key j
            Expect three `True` in the first row and four in the second
            → Expect one `True`, the last of the first row
            True where the key is a token → True where the key is padding
            Two sequences, of 3 and of 1 token. Expect `torch.Size([2, 1, 4])`, three `True` and one
                `True`
            → Two sequences, of 3 and of 1 token. Expect `torch.Size([2, 1, 4])`, one `True` and
                three `True`
            True where output i may depend on token j → True where output i may not depend on it
            M_{ij} = \text{False} → M_{ij} = \text{True}
            sliding_window_mask(4, 3).sum(-1), sliding_window_mask(4, 3, causal=True).sum(-1)
            → (~sliding_window_mask(4, 3)).sum(-1), (~sliding_window_mask(4, 3,
                causal=True)).sum(-1)
            torch.tensor([[True, True, False], [False, False, False]])
            → torch.tensor([[False, False, True], [True, True, True]])
            torch.tensor([[True, False], [True, True]])
            → torch.tensor([[False, True], [False, False]])
            mask[..., i, j] is False → mask[..., i, j] is True
            `mask.any(dim=-1, keepdim=True)` → `(~mask).any(dim=-1, keepdim=True)`
            (`<=`, `<`) → (`>`, `>=`)
            `<` where `<=` belongs, `tril(-1)` → `>=` where `>` belongs, `triu(0)`
            `tril(1)`, or an offset → `triu(2)`, or an offset
            You allow the future (`triu`, or i and j → You allow the future (`tril`, or i and j
            columns are False. What came → columns are True. What came
            all of them: those columns are True → all of them: those columns are False
            has no False, an empty one no True. Use `j < length`
            → has no True, an empty one no False. Use `j >= length`
            Your diagonal is False → Your diagonal is True
            so it is `tril(n − m)`. Your offset is another: none (`.tril()`)
            → so it is `triu(n − m + 1)`. Your offset is another: none (`.triu(1)`)
            the positions 0, 1 and 2: `j < length` → the positions 0, 1 and 2, padding `j >= length`
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden, as in "
        "`nn.MultiheadAttention`.",
    ),
)
