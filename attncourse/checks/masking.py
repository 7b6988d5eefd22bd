"""The exercises of chapter 10, masking.

Masks hold truth values and compare exactly. In the cases of ``masked_softmax`` a masked score
exceeds the allowed ones by a few units at most, so that masking after the softmax, with
renormalisation, stays right in float16 too.
"""

import math
from collections.abc import Callable

import numpy as np
import torch

from attncourse import masking
from attncourse.checks.drivers import FUNCTIONS, call_on_function, with_gradients
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import normal, spread, tensor, with_hole

# --- cases: masks ----------------------------------------------------------------------------


def causal_square(rng: Rng) -> list[Case]:
    return [Case((3,)), Case((int(rng.integers(5, 9)),))]


def causal_last(rng: Rng) -> list[Case]:
    m = int(rng.integers(3, 5))
    return [
        Case((2, 5), note="two new queries behind three old positions"),
        Case((m, m + int(rng.integers(2, 5)))),
        Case((5, 6)),
    ]


def causal_small(rng: Rng) -> list[Case]:
    return [
        Case((1, 5), note="one query, the last of five positions"),
        Case((1,), note="n = 1"),
        Case((4, 4), note="n_keys given, and equal"),
    ]


def lengths(*numbers: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


def padding_values(rng: Rng) -> list[Case]:
    some = torch.from_numpy(rng.permutation(np.arange(1, 7))[:4].copy())
    return [Case((lengths(3, 1, 4), 5)), Case((some, 7))]


def padding_edges(rng: Rng) -> list[Case]:
    return [
        Case((lengths(5, 2), 5), note="a sequence without padding"),
        Case((lengths(2, 0, 3), 4), note="an empty sequence"),
        Case((lengths(1), 1), note="one sequence of one token"),
        Case((lengths(3, 3, 3), 3), note="no padding at all"),
        Case((lengths(2, 4, 1, dtype=torch.int32), 6), note="lengths of dtype int32"),
    ]


def padding_batch(rng: Rng) -> list[Case]:
    some = torch.from_numpy(rng.integers(1, 6, (2, 3)))
    some[0, 0] = 2
    return [Case((some, 5), note="two batch axes")]


def window_values(rng: Rng) -> list[Case]:
    width = 2 * int(rng.integers(1, 3)) + 1
    return [Case((5, 3)), Case((8, 5)), Case((int(rng.integers(7, 12)), width))]


def window_causal(rng: Rng) -> list[Case]:
    return [
        Case((5, 3), {"causal": True}),
        Case((7, 4), {"causal": True}, note="an even width"),
        Case((int(rng.integers(6, 9)), 2), {"causal": True}),
        Case((8, 5), {"causal": True}),
    ]


def window_edges(rng: Rng) -> list[Case]:
    return [
        Case((4, 1), note="width 1"),
        Case((4, 1), {"causal": True}, note="width 1"),
        Case((3, 7), note="wider than the sequence"),
        Case((3, 6), {"causal": True}, note="wider than the sequence"),
        Case((1, 3), note="n = 1"),
    ]


def window_refusals(rng: Rng) -> list[Case]:
    return [
        Case((7, 4), note="even width", raises=ValueError),
        Case((5, 2), note="even width", raises=ValueError),
    ]


# --- cases: masked_softmax -------------------------------------------------------------------


def softmax_values(rng: Rng) -> list[Case]:
    scores = tensor([[0, 0, 2, 1], [3, 1, 1, 0]])
    mask = torch.tensor([[True, True, False, False], [False, True, True, False]])
    return [
        Case((scores, mask), note="half and half in both rows"),
        Case((normal(rng, 5, 7), with_hole(rng, 5, 7))),
        Case((normal(rng, 5, 5), with_hole(rng, 5, 5)), note="as many queries as keys"),
    ]


def softmax_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 5, 7), with_hole(rng, 1, 7)), note="one row of the mask for all"),
        Case((normal(rng, 7, 3).T, with_hole(rng, 3, 7)), note="not contiguous in memory"),
        Case((normal(rng, 1, 5), with_hole(rng, 1, 5)), note="one query"),
        Case((normal(rng, 5, 1), torch.ones(5, 1, dtype=torch.bool)), note="one key"),
    ]


def softmax_batch(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 2, 5, 7), with_hole(rng, 2, 1, 7)), note="a batch of 2, a mask for each"),
        Case((normal(rng, 2, 5, 7), with_hole(rng, 5, 7)), note="a batch of 2, one mask for both"),
        Case((normal(rng, 3, 2, 5, 7), with_hole(rng, 3, 2, 5, 7)), note="two batch axes"),
    ]


def with_empty_rows(rng: Rng, *shape: int) -> torch.Tensor:
    """A mask whose first row and another allow no key."""
    mask = with_hole(rng, *shape)
    mask[..., 0, :] = False
    mask[..., int(rng.integers(1, shape[-2])), :] = False
    return mask


def softmax_empty(rng: Rng) -> list[Case]:
    scores = tensor([[0, 0, 2], [1, 4, 0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    return [
        Case((scores, mask), note="the second query may attend to nothing"),
        Case((normal(rng, 5, 7), with_empty_rows(rng, 5, 7))),
        Case((normal(rng, 2, 5, 3), with_empty_rows(rng, 2, 5, 3)), note="a batch of 2"),
    ]


def softmax_numbers(rng: Rng) -> list[Case]:
    # Rows at very different heights; within a row the scores are close to each other.
    heights = tensor(rng.permutation([-900.0, -300.0, 0.0, 400.0, 900.0]))[:, None]
    return [
        Case((normal(rng, 5, 7).float(), with_empty_rows(rng, 5, 7)), note="float32"),
        Case((normal(rng, 5, 7) + heights, with_hole(rng, 5, 7)), note="scores in the hundreds"),
    ]


def softmax_half(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 5, 7).half(), with_hole(rng, 5, 7)), note="float16"),
        Case((normal(rng, 5, 7).half(), with_empty_rows(rng, 5, 7)), note="float16, empty rows"),
        Case(((normal(rng, 3, 5) + 14).half(), with_hole(rng, 3, 5)), note="float16, large scores"),
    ]


def softmax_gradients(rng: Rng) -> list[Case]:
    use = with_gradients("scores")
    return [
        Case((normal(rng, 2, 5, 7), with_hole(rng, 5, 7)), use=use, note="a batch of 2"),
        Case((normal(rng, 5, 7), with_empty_rows(rng, 5, 7)), use=use, note="with empty rows"),
    ]


# --- cases: leak -----------------------------------------------------------------------------

FORMULAS = {
    "linear_mix": "f(x) = A x W",
    "squashed_mix": "f(x) = tanh(A x W)",
    "mixed_product": "f(x) = (A x) · (B x), entry by entry",
    "small_attention": "f(x) = softmax(x W_q (x W_k)ᵀ) x W_v, over the allowed keys",
    "small_attention_masked_late": "f(x) = (softmax(x W_q (x W_k)ᵀ) · allowed) x W_v",
}


def leak_case(kind: str, x: torch.Tensor, mask: torch.Tensor, note: str = "", **tensors) -> Case:
    """``leak(f, x, mask)`` with f = ``FUNCTIONS[kind]`` and these tensors."""
    assert kind in FUNCTIONS
    formula = FORMULAS[kind]
    return Case(
        (kind, x, mask),
        tensors,
        use=call_on_function,
        note=f"{formula}; {note}" if note else formula,
        shown="leak(f, x, mask)",
    )


def attention_tensors(rng: Rng, d: int, allowed: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "W_q": spread(rng, d, 2),
        "W_k": spread(rng, d, 2),
        "W_v": spread(rng, d, 3),
        "allowed": allowed,
    }


def mixing_tensors(rng: Rng, m: int, n: int, d: int, d_out: int) -> dict[str, torch.Tensor]:
    return {"A": spread(rng, m, n), "W": spread(rng, d, d_out)}


def lower(n: int, above: int = 0) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril(above)


def leak_values(rng: Rng) -> list[Case]:
    A, W = tensor([[1, 2, 0], [0, 1, -5], [9, 0, 1]]), tensor([[1, 0], [-1, 2]])
    x = tensor([[1, 2], [0, 1], [3, -1]])
    n, d = 5, 3
    return [
        leak_case("linear_mix", x, lower(3), A=A, W=W),
        leak_case("squashed_mix", normal(rng, n, d), lower(n), **mixing_tensors(rng, n, n, d, 2)),
        leak_case(
            "mixed_product",
            normal(rng, n, d),
            lower(n),
            A=spread(rng, n, n),
            B=spread(rng, n, n),
        ),
        leak_case(
            "squashed_mix",
            normal(rng, n, d),
            with_hole(rng, n, n),
            **mixing_tensors(rng, n, n, d, 2),
        ),
    ]


def leak_attention(rng: Rng) -> list[Case]:
    n, d = 5, 3
    return [
        leak_case(
            "small_attention",
            normal(rng, n, d),
            lower(n),
            "allowed looks one step ahead",
            **attention_tensors(rng, d, lower(n, 1)),
        ),
        leak_case(
            "small_attention_masked_late",
            normal(rng, n, d),
            lower(n),
            "masked after the softmax",
            **attention_tensors(rng, d, lower(n)),
        ),
    ]


def leak_none(rng: Rng) -> list[Case]:
    n, d = 5, 3
    A, W = tensor([[2, 0], [3, -4]]), tensor([[1, 1], [0, 5]])
    return [
        leak_case("linear_mix", tensor([[1, 2], [3, 4]]), lower(2), A=A, W=W),
        leak_case(
            "small_attention",
            normal(rng, n, d),
            lower(n),
            "allowed is the mask",
            **attention_tensors(rng, d, lower(n)),
        ),
        leak_case(
            "linear_mix",
            normal(rng, n, d),
            torch.ones(n, n, dtype=torch.bool),
            "nothing is masked",
            **mixing_tensors(rng, n, n, d, 2),
        ),
    ]


def leak_shapes(rng: Rng) -> list[Case]:
    return [
        leak_case(
            "squashed_mix",
            normal(rng, 5, 3),
            with_hole(rng, 2, 5),
            "two queries, five keys",
            **mixing_tensors(rng, 2, 5, 3, 4),
        ),
        leak_case(
            "squashed_mix",
            normal(rng, 3, 4),
            with_hole(rng, 1, 3),
            "one row of the mask for all queries",
            **mixing_tensors(rng, 5, 3, 4, 2),
        ),
        leak_case(
            "squashed_mix",
            normal(rng, 1, 3),
            torch.zeros(1, 1, dtype=torch.bool),
            "one token, which may not see itself",
            **mixing_tensors(rng, 1, 1, 3, 2),
        ),
        leak_case(
            "linear_mix",
            tensor([[1], [2], [4]], torch.float32),
            lower(3),
            "one feature, float32",
            A=tensor([[1, -3, 2], [0, 1, 1], [7, 0, 1]], torch.float32),
            W=tensor([[2]], torch.float32),
        ),
    ]


def leak_batch(rng: Rng) -> list[Case]:
    n, d = 5, 3
    return [
        leak_case(
            "squashed_mix",
            normal(rng, 2, n, d),
            lower(n),
            "a batch of 2, one mask for both",
            **mixing_tensors(rng, n, n, d, 2),
        ),
        leak_case(
            "squashed_mix",
            normal(rng, 2, n, d),
            with_hole(rng, 2, 1, n),
            "a batch of 2, a mask for each",
            **mixing_tensors(rng, n, n, d, 2),
        ),
        leak_case(
            "squashed_mix",
            normal(rng, 2, 3, n, d),
            lower(n),
            "two batch axes",
            **mixing_tensors(rng, n, n, d, 2),
        ),
    ]


# --- usual mistakes: masks -------------------------------------------------------------------


def band(m: int, n: int, low: float, high: float) -> torch.Tensor:
    """True where ``low <= j - i <= high``, with positions as rows and columns count them."""
    steps = torch.arange(n) - torch.arange(m)[:, None]
    return (steps >= low) & (steps <= high)


def wrong_causal(make: Callable) -> Callable:
    """A wrong ``causal_mask``; ``make(m, n)`` gets both sizes."""
    return lambda n_queries, n_keys=None: make(n_queries, n_keys or n_queries)


def past(m: int, n: int) -> torch.Tensor:
    """The right mask."""
    return band(m, n, -math.inf, n - m)


def as_additive(mask: torch.Tensor) -> torch.Tensor:
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def needs_n_keys(n_queries, n_keys=None):
    return past(n_queries, n_keys + 0)


def real_keys(lengths, n: int) -> torch.Tensor:
    """The right mask of padding."""
    return torch.arange(n) < lengths[..., None, None]


def lengths_counted_down(lengths, max_length):
    lengths -= 1
    return torch.arange(max_length) <= lengths[..., None, None]


def one_batch_axis(lengths, max_length):
    return torch.stack([torch.arange(max_length) < length for length in lengths])[:, None]


def wrong_window(around: Callable | None = None, behind: Callable | None = None) -> Callable:
    """A wrong ``sliding_window_mask``, right but for what is given: ``(n, width)`` to a mask."""

    def window(n, width, causal=False):
        if causal:
            return behind(n, width) if behind else band(n, n, 1 - width, 0)
        if width % 2 == 0:
            raise ValueError("expected an odd width")
        return around(n, width) if around else band(n, n, -(width // 2), width // 2)

    return window


def changed(change: Callable) -> Callable:
    """A wrong window: the right one, changed."""
    right = wrong_window()
    return lambda n, width, causal=False: change(right(n, width, causal))


def any_width(n, width, causal=False):
    return band(n, n, 1 - width, 0) if causal else band(n, n, -(width // 2), width // 2)


def odd_width_only(n, width, causal=False):
    if width % 2 == 0:
        raise ValueError("expected an odd width")
    return any_width(n, width, causal)


def no_wider_than_n(n, width, causal=False):
    if width > n:
        raise ValueError("expected a width of at most n")
    return wrong_window()(n, width, causal)


def on_a_ring(n, width):
    steps = (torch.arange(n) - torch.arange(n)[:, None]) % n
    return (steps <= width // 2) | (steps >= n - width // 2)


def in_blocks(n, width):
    number = torch.arange(n) // width
    return number[:, None] == number


# --- usual mistakes: masked_softmax ----------------------------------------------------------


def hidden_by(number: Callable) -> Callable:
    """Masked scores are replaced by ``number(scores)``, then a softmax."""
    return lambda scores, mask: scores.masked_fill(~mask, number(scores)).softmax(-1)


def lowest(scores):
    return torch.finfo(scores.dtype).min


def empty_rows_apart(softmax: Callable, mask_scores: Callable | None = None) -> Callable:
    """Right about empty rows, with another softmax, or another way to hide scores."""

    def masked(scores, mask):
        mask = mask.broadcast_to(scores.shape)
        hide = mask_scores or (lambda s, allowed: s.masked_fill(~allowed, -math.inf))
        some = mask.any(-1, keepdim=True)
        return softmax(hide(scores, mask | ~some)).masked_fill(~some, 0)

    return masked


def by_sums(shift: Callable, guard: Callable) -> Callable:
    """``e · mask / guard(Σ e · mask)`` with ``e = exp(scores - shift(scores))``."""

    def masked(scores, mask):
        e = (scores - shift(scores)).exp().masked_fill(~mask, 0)
        return e / guard(e.sum(-1, keepdim=True))

    return masked


def largest(scores):
    return scores.amax(-1, keepdim=True).detach()


def no_zero(total):
    return total.masked_fill(total == 0, 1)


def infinity_added_then_repaired(scores, mask):
    return (scores + as_additive(mask).to(scores.dtype)).softmax(-1).nan_to_num(0)


def renormalised(scores, mask):
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


def in_place(scores, mask):
    scores.masked_fill_(~mask, -math.inf)
    return scores.softmax(-1).masked_fill(~mask, 0)


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


def pairs_of(mask: torch.Tensor, J: torch.Tensor) -> torch.Tensor:
    """The masked pairs, ``(..., m, 1, n, 1)``."""
    return (~mask).broadcast_to(*J.shape[:-3], J.shape[-2])[..., :, None, :, None]


def wrong_leak(measure: Callable) -> Callable:
    """A wrong ``leak``: ``measure(J, hidden)`` of the derivatives and of the masked pairs."""

    def leak(f, x, mask):
        J = derivatives(f, x)
        return float(measure(J, pairs_of(mask, J)))

    return leak


def only(hidden, J):
    return J.masked_fill(~hidden, 0)


def average(J, hidden):
    kept = only(hidden, J).abs()
    return kept.sum() / max(1, int(hidden.expand_as(J).sum()))


def accumulated(J, hidden):
    sums = J.flatten(-4, -3).cumsum(-3).unflatten(-3, J.shape[-4:-2])
    return only(hidden, sums).abs().max()


def transposed(J, hidden):
    return only(hidden.movedim((-4, -2), (-2, -4)), J).abs().max()


def all_outputs_at_once(J, hidden):
    return only(hidden, J.sum((-4, -3), keepdim=True).expand_as(J)).abs().max()


def first_query(J, hidden):
    return only(hidden, J)[..., :1, :, :, :].abs().max()


def by_changing(change: Callable) -> Callable:
    """No derivative: how much out_i moves when x_j becomes ``change(x_j)``, one feature of it or
    all."""

    def leak(f, x, mask):
        out = f(x)
        allowed = mask.broadcast_to(*out.shape[:-1], x.shape[-2])
        worst = 0.0
        for j in range(x.shape[-2]):
            for other, step in change(x, j):
                moved = (f(other) - out).abs() / step
                moved = moved.masked_fill(allowed[..., :, j, None], 0)
                worst = max(worst, float(moved.max()))
        return worst

    return leak


def nudged(x, j):
    for c in range(x.shape[-1]):
        other = x.clone()
        other[..., j, c] += 1e-3
        yield other, 1e-3


def zeroed(x, j):
    other = x.clone()
    other[..., j, :] = 0
    yield other, 1.0


def at_zero(f, x, mask):
    return masking.leak(f, torch.zeros_like(x), mask)


def no_gradient_asked_for(f, x, mask):
    out = f(x)
    return float(torch.autograd.grad(out[..., 0, 0].sum(), x)[0].abs().max())


# --- exercises -------------------------------------------------------------------------------

FLOATS = (
    "Your mask is right, but it holds numbers of a floating dtype. Masks in this course are "
    "boolean: compare (`<=`, `<`) instead of counting, start from "
    "`torch.ones(m, n, dtype=torch.bool)`, or end with `.bool()`."
)
INTEGERS = (
    "Your mask is right, but it holds whole numbers 0 and 1. `~` would turn 1 into −2 there: make "
    "it boolean, with `dtype=torch.bool` or `.bool()`."
)
ADDITIVE = (
    "You return the numbers that would be added to the scores, 0 and −∞. A boolean mask is asked "
    "for, True where attention is allowed; `torch.where(mask, 0.0, -torch.inf)` makes the one of "
    "the other."
)
INVERTED = (
    "Your mask is True where attention is forbidden, as in `nn.MultiheadAttention`. In this "
    "course, and in `F.scaled_dot_product_attention`, True means allowed."
)

CAUSAL = Exercise(
    target="masking.causal_mask",
    reference=masking.causal_mask,
    section="Chapter 10, “No looking ahead”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        Criterion("a token sees itself and what came before", 2, causal_square),
        Criterion("fewer queries than keys: the last positions", 2, causal_last),
        Criterion("one query, one token", 1, causal_small),
    ),
    misconceptions=(
        Misconception("a mask of floats", FLOATS, wrong_causal(lambda m, n: past(m, n).float())),
        Misconception(
            "a mask of whole numbers", INTEGERS, wrong_causal(lambda m, n: past(m, n).long())
        ),
        Misconception("0 and −∞", ADDITIVE, wrong_causal(lambda m, n: as_additive(past(m, n)))),
        Misconception("the mask is inverted", INVERTED, wrong_causal(lambda m, n: ~past(m, n))),
        Misconception(
            "a token does not see itself",
            "Your mask stops one step too early: `<` where `<=` belongs, `tril(-1)`, or an offset "
            "that is one too small. A token may attend to itself; without that, the first one has "
            "nothing to attend to.",
            wrong_causal(lambda m, n: band(m, n, -math.inf, n - m - 1)),
        ),
        Misconception(
            "every token sees the next one",
            "Your mask reaches one step too far: `tril(1)`, or an offset that is one too large. "
            "One step is all that a language model needs to read its answer.",
            wrong_causal(lambda m, n: band(m, n, -math.inf, n - m + 1)),
        ),
        Misconception(
            "the future, not the past",
            "Your mask is True on and above the diagonal (`triu`, or i and j exchanged): each "
            "token sees itself and what comes after. Row i is the query; its keys have j <= i.",
            wrong_causal(lambda m, n: band(m, n, n - m, math.inf)),
        ),
        Misconception(
            "the queries are counted from the first key",
            "With fewer queries than keys you compare i with j as they are, as `.tril()` does, or "
            "keep the first rows of the square mask. The queries are the last m of n positions: "
            "query i stands at position i + n − m.",
            wrong_causal(lambda m, n: band(m, n, -math.inf, 0)),
        ),
        Misconception(
            "the offset has the wrong sign",
            "Your triangle moves to the left where it should move to the right: n − m, not m − n.",
            wrong_causal(lambda m, n: band(m, n, -math.inf, m - n)),
        ),
        Misconception(
            "n_keys is ignored",
            "You always return (n_queries, n_queries). With `n_keys` there are that many columns.",
            wrong_causal(lambda m, n: past(m, m)),
        ),
        Misconception(
            "a row for every key",
            "You return (n_keys, n_keys). There is one row for each query: the last n_queries rows "
            "of that square are the answer.",
            wrong_causal(lambda m, n: past(n, n)),
        ),
        Misconception(
            "rows and columns exchanged",
            "Your matrix has a row for each key. Queries are rows, keys are columns: (m, n).",
            wrong_causal(lambda m, n: past(m, n).T),
        ),
        Misconception(
            "n_keys=None is not provided for",
            "Without `n_keys` your function computes with None. As many keys as queries are meant.",
            needs_n_keys,
        ),
        Misconception(
            "only the token itself",
            "Your mask is the identity: a token sees itself and nothing before it.",
            wrong_causal(lambda m, n: band(m, n, n - m, n - m)),
        ),
        Misconception(
            "an axis too many",
            "Your mask has a batch axis of 1 in front. A mask for all sequences is (m, n); it "
            "broadcasts without further axes.",
            wrong_causal(lambda m, n: past(m, n)[None]),
        ),
    ),
    hints=(
        "Write down the positions of the queries and of the keys. Which comparison of the two is "
        "the mask?",
        "The keys stand at 0 … n−1, the queries at n−m … n−1.",
        "`torch.arange(a, b)[:, None] >= torch.arange(c)` compares every row with every column.",
    ),
)

PADDING = Exercise(
    target="masking.padding_mask",
    reference=masking.padding_mask,
    section="Chapter 10, “Padding”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("the first lengths[b] keys of sequence b", 2, padding_values),
        Criterion("full, empty and single sequences", 1, padding_edges),
        Criterion("two batch axes", 1, padding_batch),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception("a mask of floats", FLOATS, lambda lengths, n: real_keys(lengths, n).float()),
        Misconception(
            "a mask of whole numbers", INTEGERS, lambda lengths, n: real_keys(lengths, n).long()
        ),
        Misconception("0 and −∞", ADDITIVE, lambda lengths, n: as_additive(real_keys(lengths, n))),
        Misconception("the mask is inverted", INVERTED, lambda lengths, n: ~real_keys(lengths, n)),
        Misconception(
            "one key too many",
            "You compare with `<=`. Positions count from 0, so a sequence of length 3 has the "
            "positions 0, 1 and 2: those below its length.",
            lambda lengths, n: torch.arange(n) <= lengths[..., None, None],
        ),
        Misconception(
            "one key too few",
            "The last token of each sequence is masked: you counted positions from 1, or compared "
            "with the length − 1.",
            lambda lengths, n: torch.arange(n) < lengths[..., None, None] - 1,
        ),
        Misconception(
            "no axis for the queries",
            "You return (b, max_length). Beside masks (m, n) that would be read as b queries: put "
            "an axis of 1 in front of the keys, (b, 1, max_length).",
            lambda lengths, n: real_keys(lengths, n)[..., 0, :],
        ),
        Misconception(
            "queries masked in place of keys",
            "You return (b, max_length, 1): padded *queries* see nothing, and everyone sees the "
            "padding. The keys are the last axis: (b, 1, max_length).",
            lambda lengths, n: real_keys(lengths, n).mT,
        ),
        Misconception(
            "padded queries are masked as well",
            "You return (b, n, n), with empty rows for the padded queries. What they compute is "
            "thrown away, and an empty row is a risk of NaN: mask the keys only.",
            lambda lengths, n: real_keys(lengths, n) & real_keys(lengths, n).mT,
        ),
        Misconception(
            "an axis for heads",
            "You return (b, 1, 1, max_length). That fits scores (b, h, m, n); here the mask is "
            "(b, 1, max_length).",
            lambda lengths, n: real_keys(lengths, n)[..., None, :],
        ),
        Misconception(
            "padding expected on the left",
            "You allow the *last* lengths[b] keys. Here the tokens stand first and the padding "
            "behind them.",
            lambda lengths, n: torch.arange(n) >= n - lengths[..., None, None],
        ),
        Misconception(
            "max_length is ignored",
            "Your mask is as wide as the longest sequence. It is to have max_length columns, which "
            "may be more.",
            lambda lengths, n: real_keys(lengths, max(1, int(lengths.max()))),
        ),
        Misconception(
            "one length for all",
            "You mask every sequence at the length of the longest. Each has a row of its own: "
            "compare with `lengths[..., None, None]`.",
            lambda lengths, n: real_keys(torch.full_like(lengths, int(lengths.max())), n),
        ),
        Misconception(
            "only one batch axis",
            "You go through the first axis of `lengths` and take what you meet for a number. With "
            "two batch axes it is a row: index with `lengths[..., None, None]`, or flatten first.",
            one_batch_axis,
        ),
        Misconception(
            "the lengths are changed in place",
            "`lengths -= 1` writes into the caller's tensor. `lengths - 1` makes a new one.",
            lengths_counted_down,
        ),
    ),
    hints=(
        "Position j of sequence b is a token if j is less than its length.",
        "Positions are (max_length,), lengths (b,). Which axes of 1 make them compare to "
        "(b, 1, max_length)?",
        "`lengths[..., None, None]` is (b, 1, 1).",
    ),
)

WINDOW = Exercise(
    target="masking.sliding_window_mask",
    reference=masking.sliding_window_mask,
    section="Chapter 10, “Windows, blocks and gaps”",
    difficulty=2,
    minutes=12,
    picture=True,
    criteria=(
        Criterion("width tokens, centred on each", 2, window_values),
        Criterion("causal: width tokens that end with each", 2, window_causal),
        Criterion("width 1, and wider than the sequence", 1, window_edges),
        Criterion("an even width has no centre: ValueError", 1, window_refusals),
    ),
    misconceptions=(
        Misconception("a mask of floats", FLOATS, changed(lambda mask: mask.float())),
        Misconception("a mask of whole numbers", INTEGERS, changed(lambda mask: mask.long())),
        Misconception("0 and −∞", ADDITIVE, changed(as_additive)),
        Misconception("the mask is inverted", INVERTED, changed(lambda mask: ~mask)),
        Misconception(
            "width taken for the reach",
            "You allow `width` tokens to each side, 2·width + 1 in all. The width counts the whole "
            "window, the token itself included: width // 2 to each side.",
            wrong_window(around=lambda n, w: band(n, n, -w, w)),
        ),
        Misconception(
            "the centred window is one too narrow",
            "You compare the distance with `<`: the outermost token on each side is missing. "
            "`|i − j| <= width // 2`.",
            wrong_window(around=lambda n, w: band(n, n, -(w // 2) + 1, w // 2 - 1)),
        ),
        Misconception(
            "the window is cut to one side",
            "Without `causal` your window reaches back only. It is centred: as far forward as "
            "back.",
            wrong_window(around=lambda n, w: band(n, n, 1 - w, 0)),
        ),
        Misconception(
            "a ring",
            "Your distance wraps around, so that the first token sees the last. At the edges the "
            "window is cut off: use |i − j|.",
            wrong_window(around=on_a_ring),
        ),
        Misconception(
            "blocks in place of a window",
            "Your tokens share fixed blocks (`i // width == j // width`). A window moves along "
            "with its token.",
            wrong_window(around=in_blocks),
        ),
        Misconception(
            "causal is ignored",
            "Your result is the same with `causal=True`. Then the window ends with the token "
            "itself.",
            lambda n, width, causal=False: band(n, n, -(width // 2), width // 2),
        ),
        Misconception(
            "causal keeps half the window",
            "You cut the centred window at the diagonal, which leaves width // 2 + 1 tokens. With "
            "`causal` all `width` tokens lie behind: `0 <= i − j < width`.",
            wrong_window(behind=lambda n, w: band(n, n, -(w // 2), 0)),
        ),
        Misconception(
            "the causal window is one too wide",
            "You compare with `<=` and allow width + 1 tokens. The token itself counts: "
            "`i − j < width`.",
            wrong_window(behind=lambda n, w: band(n, n, -w, 0)),
        ),
        Misconception(
            "the causal window is one too narrow",
            "You allow width − 1 tokens. The token itself and width − 1 before it make `width`.",
            wrong_window(behind=lambda n, w: band(n, n, 2 - w, 0)),
        ),
        Misconception(
            "the causal window leaves out the token itself",
            "You allow the `width` tokens before each token and not the token itself, so the first "
            "one sees nothing. `0 <= i − j < width`.",
            wrong_window(behind=lambda n, w: band(n, n, -w, -1)),
        ),
        Misconception(
            "causal looks ahead",
            "Your causal window begins with the token and reaches forward: i and j are exchanged. "
            "Row i is the query; keys before it have j < i.",
            wrong_window(behind=lambda n, w: band(n, n, 0, w - 1)),
        ),
        Misconception(
            "even widths are let through",
            "A centred window of even width has no centre. The exercise asks for a ValueError "
            "there; with `causal` every width is right.",
            any_width,
        ),
        Misconception(
            "even widths are refused with causal too",
            "Only a centred window needs an odd width. With `causal=True` the window ends with the "
            "token, and any width will do.",
            odd_width_only,
        ),
        Misconception(
            "wide windows are refused",
            "A window may be wider than the sequence: then it allows everything that it reaches.",
            no_wider_than_n,
        ),
        Misconception(
            "a token does not see itself",
            "Your diagonal is False. The window counts the token itself.",
            changed(lambda mask: mask & ~torch.eye(len(mask), dtype=torch.bool)),
        ),
    ),
    hints=(
        "What matters is the difference of the positions. Make the matrix of all i − j first.",
        "A centred window of 5 reaches 2 to each side. How far does one of `width` reach?",
        "With `causal`, i − j runs from 0 for the token itself to width − 1 for the oldest.",
    ),
)

SOFTMAX = Exercise(
    target="masking.masked_softmax",
    reference=masking.masked_softmax,
    section="Chapter 10, “Rows with nothing to attend to”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("weights over the allowed keys, 0 elsewhere", 3, softmax_values),
        Criterion("rows with no key: all 0", 2, softmax_empty),
        Criterion("one row, one key, one mask for all", 1, softmax_shapes),
        Criterion("batches", 1, softmax_batch),
        Criterion("float32 and large scores", 1, softmax_numbers),
        Criterion("float16", 1, softmax_half),
        Criterion("gradients reach the scores, none is NaN", 2, softmax_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "a row with no key is NaN",
            "A row of nothing but −∞ has no largest entry to subtract, and its softmax is NaN. "
            "Leave the scores of such a row as they are and set its weights to 0 afterwards.",
            hidden_by(lambda s: -math.inf),
        ),
        Misconception(
            "the gradient of an empty row is NaN",
            "Your weights are right, but NaN was made on the way and covered up at the end "
            "(`nan_to_num`, `torch.where`). The way back leads through it: the gradient is NaN. "
            "See to it that no row of nothing but −∞ reaches the softmax.",
            infinity_added_then_repaired,
        ),
        Misconception(
            "−1e9 in place of −∞",
            "A row with no key becomes a row of equal scores, so its weights are 1/n each and not "
            "0. And float16 has no −1e9: it reaches to ±65504. Use −∞, and look after empty rows.",
            hidden_by(lambda s: -1e9),
        ),
        Misconception(
            "the lowest finite number in place of −∞",
            "`torch.finfo(dtype).min`, or −1e4, fits every dtype, but a row with no key becomes a "
            "row of equal scores, and its weights are 1/n each. They are to be 0.",
            hidden_by(lowest),
        ),
        Misconception(
            "−1e9 is added to the scores",
            "A sum with −1e9 keeps what float32 has room for, steps of 64, and a row with no key "
            "still gets weights that sum to 1: in float64 those of no mask at all. In float16 the "
            "sum is no float16 any more. `masked_fill` replaces, it does not add.",
            lambda scores, mask: (scores + ~mask * -1e9).softmax(-1),
        ),
        Misconception(
            "0 · ∞ in the mask",
            "You multiply a mask by −∞, and 0 · ∞ is NaN wherever attention is allowed. "
            "`masked_fill` puts −∞ where it belongs and nowhere else.",
            lambda scores, mask: (scores + ~mask * -math.inf).softmax(-1),
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed: fill where the mask is False, "
            "`scores.masked_fill(~mask, -torch.inf)`.",
            lambda scores, mask: empty_rows_apart(lambda s: s.softmax(-1))(scores, ~mask),
        ),
        Misconception(
            "the mask is ignored",
            "Your result is the softmax of all scores. Those where the mask is False take no part.",
            lambda scores, mask: scores.softmax(-1),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1; "
            "what it sums to depends on the hidden scores. Hide them before the softmax.",
            lambda scores, mask: scores.softmax(-1) * mask,
        ),
        Misconception(
            "renormalised by a sum of 0",
            "You mask after the softmax and divide by the row sums. In a row with no key that sum "
            "is 0, and 0/0 is NaN.",
            renormalised,
        ),
        Misconception(
            "a guard too small for float16",
            "You add something like 1e-9 to the sum of a row. The smallest float16 above 0 is "
            "6e-8: the guard is rounded to 0, and 0/0 is NaN. Replace a sum of 0 by 1.",
            by_sums(largest, lambda total: total + 1e-12),
        ),
        Misconception(
            "a score of 0 is not −∞",
            "You multiply the scores by the mask. exp(0) = 1, so a masked key gets the weight of a "
            "score of 0, often more than the allowed ones.",
            empty_rows_apart(lambda s: s.softmax(-1), lambda s, mask: s * mask),
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs down the columns. Each query has a budget of 1: `softmax(dim=-1)`.",
            empty_rows_apart(lambda s: s.softmax(-2)),
        ),
        Misconception(
            "softmax over axis 1",
            "`softmax(dim=1)` is the keys' axis for two axes only. Count from the end: `dim=-1`.",
            empty_rows_apart(lambda s: s.softmax(1)),
        ),
        Misconception(
            "all rows share one budget",
            "Your weights sum to 1 over the whole matrix. Each row sums to 1 by itself.",
            empty_rows_apart(lambda s: s.flatten(-2).softmax(-1).reshape(s.shape)),
        ),
        Misconception(
            "no maximum subtracted",
            "exp of a large score overflows, above 709 in float64 and above 11 in float16, and ∞/∞ "
            "is NaN. Subtract each row's largest score first, or use `torch.softmax`.",
            by_sums(lambda s: 0, no_zero),
        ),
        Misconception(
            "one maximum for all rows",
            "You subtract the largest score of the whole array. A row whose scores are all much "
            "smaller becomes exp(−1000) = 0. Each row has a maximum of its own: `amax(-1, "
            "keepdim=True)`.",
            by_sums(lambda s: s.max().detach(), no_zero),
        ),
        Misconception(
            "float16 comes back as float32",
            "You compute in float32, which is a good idea, and return that. The result keeps the "
            "dtype of the scores: end with `.to(scores.dtype)`.",
            lambda scores, mask: empty_rows_apart(lambda s: s.softmax(-1))(
                scores.float() if scores.dtype == torch.float16 else scores, mask
            ),
        ),
        Misconception(
            "the scores are changed in place",
            "`masked_fill_`, with an underscore at the end, writes into the caller's tensor. "
            "`masked_fill` makes a new one.",
            in_place,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda scores, mask: masking.masked_softmax(scores.detach(), mask),
        ),
    ),
    hints=(
        "For rows with a key, `scores.masked_fill(~mask, -torch.inf)` and a softmax are all.",
        "Which rows have a key? `mask.any(dim=-1, keepdim=True)`. The others must not become rows "
        "of nothing but −∞.",
        "Fill where the mask is False *and* the row has a key; after the softmax fill all masked "
        "weights with 0.",
    ),
)

LEAK = Exercise(
    target="masking.leak",
    reference=masking.leak,
    section="Chapter 10, “The leak test”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("the largest derivative over the masked pairs", 3, leak_values),
        Criterion("finds what attention leaks", 2, leak_attention),
        Criterion("0 where nothing leaks", 1, leak_none),
        Criterion("any number of queries, keys and features", 1, leak_shapes),
        Criterion("batches", 1, leak_batch),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "the allowed pairs are measured",
            "You take the largest derivative where the mask is True: how much is seen that may be "
            "seen. A leak is what is seen where it is False.",
            wrong_leak(lambda J, hidden: only(~hidden, J).abs().max()),
        ),
        Misconception(
            "all pairs are measured",
            "Your result does not depend on the mask. Only pairs where it is False count.",
            wrong_leak(lambda J, hidden: J.abs().max()),
        ),
        Misconception(
            "outputs and tokens exchanged",
            "You look up mask[j, i] for the derivative of output i by token j. Row i of the mask "
            "belongs to output i.",
            wrong_leak(transposed),
        ),
        Misconception(
            "the sign is kept",
            "You take the maximum of the derivatives themselves. A large negative one is as much a "
            "leak: take the absolute value first.",
            wrong_leak(lambda J, hidden: only(hidden, J).max()),
        ),
        Misconception(
            "the features of an output are summed",
            "You differentiate `out[i].sum()`. Derivatives of different features can cancel in "
            "the sum: take them one by one.",
            wrong_leak(lambda J, hidden: only(hidden, J.sum(-3, keepdim=True)).abs().max()),
        ),
        Misconception(
            "the features of a token are summed",
            "You add up the derivatives by the features of token j. They can cancel: the largest "
            "single one counts.",
            wrong_leak(lambda J, hidden: only(hidden, J.sum(-1, keepdim=True)).abs().max()),
        ),
        Misconception(
            "all outputs in one gradient",
            "You differentiate the sum of all outputs, `f(x).sum()`. That tells how much token j "
            "matters to anyone; whether to output i takes a gradient for each i.",
            wrong_leak(all_outputs_at_once),
        ),
        Misconception(
            "the mean in place of the largest",
            "You average over the masked pairs. One leaking pair among a thousand is a leak: the "
            "largest counts.",
            wrong_leak(average),
        ),
        Misconception(
            "the sum in place of the largest",
            "You add up what leaks. The largest single derivative is asked for.",
            wrong_leak(lambda J, hidden: only(hidden, J).abs().sum()),
        ),
        Misconception(
            "the norm of a block",
            "You take the Euclidean norm of the derivatives of out_i by x_j. The largest single "
            "entry is asked for.",
            wrong_leak(lambda J, hidden: only(hidden, J).square().sum((-3, -1)).sqrt().max()),
        ),
        Misconception(
            "gradients pile up in x.grad",
            "`backward()` adds to `x.grad`. After the first output you see sums. Set `x.grad` to "
            "None before each, or use `torch.autograd.grad`, which adds nothing up.",
            wrong_leak(accumulated),
        ),
        Misconception(
            "only the first query is tested",
            "You return after the first output, a `return` inside the loop perhaps. Every output "
            "has a row of the mask.",
            wrong_leak(first_query),
        ),
        Misconception(
            "a difference in place of the derivative",
            "You move a token a little and divide. That is near the derivative and not equal to "
            "it. `torch.autograd.grad` gives it exactly.",
            by_changing(nudged),
        ),
        Misconception(
            "the token is set to 0",
            "You set token j to 0 and see how the outputs change. That finds leaks too, but the "
            "exercise asks for the size of the derivative at x.",
            by_changing(zeroed),
        ),
        Misconception(
            "the derivative is taken elsewhere",
            "You differentiate at zeros, or at numbers of your own. The derivative at x is asked "
            "for; elsewhere it is another.",
            at_zero,
        ),
        Misconception(
            "x does not ask for a gradient",
            "Nothing can be differentiated by x as it comes. Make a copy that can: "
            "`x = x.detach().clone().requires_grad_()`.",
            no_gradient_asked_for,
        ),
        Misconception(
            "yes or no",
            "You return whether there is a leak. Its size is asked for: the largest absolute "
            "derivative, 0.0 where there is none.",
            lambda f, x, mask: masking.leak(f, x, mask) > 0,
        ),
    ),
    hints=(
        "`x.detach().clone().requires_grad_()` is a copy that derivatives can be taken by.",
        "`torch.autograd.grad(out[..., i, a].sum(), x, retain_graph=True)[0]` has the shape of x. "
        "Which of its rows may be anything but 0?",
        "Of `gradient.abs()` keep the rows j where mask[..., i, j] is False; remember the largest.",
    ),
)

EXERCISES = (CAUSAL, PADDING, WINDOW, SOFTMAX, LEAK)
