"""The exercises of chapter 20: a padded batch, fewer bits, checked guesses, a gate for experts.

``speculative_accept`` draws random numbers, in whatever order an answer likes. Where the outcome is
certain it is compared as it stands. Elsewhere it is called ``DRAWS`` times on probabilities of
which a right answer makes halves, and its outcomes are told in halves: a right answer fails such a
case with a chance of 2e-10, which is what a binomial has at a quarter and below, and at three and
above. Where outcomes of a quarter or more are told by which of them come, one is missing in
``FEWER`` calls with a chance of 1e-10.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from attncourse import serving
from attncourse.checks import callers
from attncourse.checks.bank.masking import (
    ADDITIVE,
    INVERTED,
    NO_TENSOR,
    NUMBERS,
    as_additive,
    returned,
)
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
from attncourse.checks.variants.conventions import forbidden
from attncourse.checks.variants.rewriting import LAST_NEGATED
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Row,
    each_result,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake


def as_it_is(value):
    return value


# --- cases: pad_left -----------------------------------------------------------------------------

PADDED_PARTS = partial(callers.call_for_parts, ("ids", "positions", "mask"), ())


def batch_of(sequences: list[list[int]], pad: int, note: str = "") -> Case:
    return Case((sequences, pad), use=PADDED_PARTS, note=note)


def drawn_sequences(*lengths: int, pad: int = 0, note: str = ""):
    """Sequences of these lengths; the id that pads is among them, first and last as well."""

    def cases(rng: Rng) -> list[Case]:
        sequences = [rng.integers(0, 30, n).tolist() for n in lengths]
        for sequence, place in zip(sequences, (0, -1, 1, 0), strict=False):
            sequence[place % len(sequence)] = pad
        return [batch_of(sequences, pad, note)]

    return cases


def together(*several):
    """The cases of each, one after the other; a case stays as it is."""

    def all_cases(rng):
        cases = []
        for case_or_maker in several:
            if isinstance(case_or_maker, Case):
                cases.append(case_or_maker)
            else:
                cases += case_or_maker(rng)
        return cases

    return all_cases


PAD_BY_HAND = batch_of([[5, 6, 7], [8]], 0)

# --- cases: quantize -----------------------------------------------------------------------------

CODED_PARTS = partial(callers.call_for_parts, ("codes", "scale", "minimum"), ("codes",))


def between_steps(rng: Rng, shape: tuple[int, ...], bits: int, block: int) -> np.ndarray:
    """Numbers whose codes no rounding error can change: at most 0.3 of a step from one."""
    blocks = (*shape[:-1], shape[-1] // block, block)
    steps = rng.integers(0, 2**bits, blocks) + rng.uniform(-0.3, 0.3, blocks)
    ends = rng.permuted(np.broadcast_to(np.arange(block), blocks), axis=-1)
    steps = np.where(ends == 0, 0, np.where(ends == 1, 2**bits - 1, steps.clip(0, 2**bits - 1)))
    each = (*blocks[:-1], 1)
    least, scale = rng.uniform(-1, 1, each), rng.uniform(0.05, 0.9, each)
    return (least + scale * steps).reshape(shape)


@dataclass(frozen=True)
class Quantized(CaseTable):
    """Numbers, bits and block; the last two are those of the row's ``given``."""

    spec: Any = field(default_factory=lambda: {"x": "... d"})

    def case(self, rng: Rng, row: Row) -> Case:
        drawn = CaseTable(self.spec, how=partial(between_steps, **row.given))
        return drawn.case(rng, row.but(use=CODED_PARTS))


QUANT_CASES = Quantized()
BLOCKS = row("d=12", given={"bits": 4, "block": 4})
QUANT_ROWS = standard(QUANT_CASES, d=12)
FOUR_BITS, TWO_BITS = {"bits": 4, "block": 3}, {"bits": 2, "block": 6}
THREE_BITS = {"bits": 3, "block": 2}


def numbers(values: list, bits: int, block: int, note: str = "") -> Case:
    return Case((tensor(values),), {"bits": bits, "block": block}, use=CODED_PARTS, note=note)


QUANT_BY_HAND = numbers([[0, 2, 1, 3], [-5, 1, -1, -3]], 2, 4, "steps of 1 and of 2")
HALVES = numbers([[0, 0.5, 1.5, 3], [2, 5.0, 2.5, 4.5]], 2, 4, "halfway between two steps")
LESS_HALVES = numbers([-7, -6.5, -3.5, -2.5, -1.5, -4.5, -5.5, 8], 4, 8, "halfway again")
EQUAL = numbers([[0.1, 0.1, 0.1, 2, 0, 1]], 3, 3, "a block of equal numbers")
ALL_EQUAL = numbers([[0.3] * 4, [0.0] * 4, [-7.7] * 4], 4, 2, "nothing but equal numbers")
ONE_A_BLOCK = numbers([[3, -1, 0.5]], 4, 1, "one number a block")


def refused(values: list, bits: int, block: int, note: str) -> Case:
    return Case((tensor(values), bits, block), note=note, raises=ValueError)


EIGHT_NUMBERS = [[0.0, 1, 2, 3, 4, 5, 6, 7]]

# --- cases: speculative_accept -------------------------------------------------------------------

DRAWS, FEWER, MORE = 160, 80, 240
N_VOCAB = 9
NAMES = "abcdefxyz"  # of tokens; which id each has is drawn


def rows_of(written: list[str], ids: dict[str, int], dtype: torch.dtype) -> torch.Tensor:
    """Distributions, each written ``a=.2 x=.8``."""
    rows = torch.zeros(len(written), len(ids), dtype=dtype)
    for one, text in zip(rows, written, strict=True):
        for name, probability in (pair.split("=") for pair in text.split()):
            one[ids[name]] = float(probability)
    return rows


def guess(
    draft: str,
    q: list[str],
    p: list[str],
    use: Callable = callers.call_with_generator,
    *about: Any,
    dtype: torch.dtype = torch.float64,
    note: str = "",
):
    """A draft of named tokens, and what it and the target say; the last of p is the row after."""

    def cases(rng: Rng) -> list[Case]:
        ids = dict(zip(NAMES, rng.permutation(N_VOCAB).tolist(), strict=True))
        seed = int(rng.integers(1 << 30))
        tokens = torch.tensor([ids[name] for name in draft], dtype=torch.int64)
        args = (tokens, rows_of(q, ids, dtype), rows_of(p, ids, dtype))
        calls = f"{about[0]} draws" if use is callers.outcomes_counted else ""
        return [
            Case(
                args,
                use=partial(use, *about, seed),
                note="; ".join(filter(None, (calls, note))),
            )
        ]

    return cases


def how_often(draft: str, q: list[str], p: list[str], **about):
    return guess(draft, q, p, callers.outcomes_counted, DRAWS, True, **about)


def told_apart(draft: str, q: list[str], p: list[str], **about):
    """As ``how_often``, for outcomes of a tenth: one is missing with a chance of 1e-11."""
    return guess(draft, q, p, callers.outcomes_counted, MORE, True, **about)


def which_come(draft: str, q: list[str], p: list[str], **about):
    return guess(draft, q, p, callers.outcomes_counted, FEWER, False, **about)


def certain(tokens: str) -> list[str]:
    return [f"{name}=1" for name in tokens]


def by_chance_alone():
    """Keeping a guess, replacing it, and going on, where chance is all that decides."""
    even = torch.full((1, 50), 0.02, dtype=torch.float64)
    first, second = (torch.eye(50, dtype=torch.float64)[i : i + 1] for i in (0, 1))
    none = torch.zeros(0, 50, dtype=torch.float64)
    half = (first + second) / 2
    others = (even - 0.02 * first) / 0.98

    def cases(rng: Rng) -> list[Case]:
        draft = torch.zeros(1, dtype=torch.int64)
        given = [
            (40, draft, first, torch.cat([half, second]), "kept half of the time"),
            (8, draft, first, torch.cat([others, second]), "never kept"),
            (8, draft[:0], none, even, "nothing guessed"),
        ]
        seeds = tuple(int(seed) for seed in rng.integers(1 << 30, size=2))
        return [
            Case(
                tuple(args),
                use=partial(callers.kept_with_generators, calls, seeds),
                facts=callers.decided_by_rng,
                note=note,
            )
            for calls, *args, note in given
        ]

    return cases


GUESS_BY_HAND = Case(
    (torch.tensor([2, 0]), torch.eye(4)[[2, 0]].double(), torch.eye(4)[[2, 3, 1]].double()),
    use=partial(callers.call_with_generator, 0),
    note="the target is certain of 2, then of 3",
)
UNEVEN = ["a=.1 y=.9"]  # against which a is kept for certain where p has as much for it

# --- cases: top_k_gate ---------------------------------------------------------------------------


def telling(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Logits that no other choice gets right: the largest in size is negative, rows lie apart."""
    rows = rng.normal(size=shape).reshape(-1, shape[-1])
    size = np.abs(rows)
    rows = np.where(size == size.max(-1, keepdims=True), -size, rows)
    rows[1::2] -= 4
    return rows.reshape(shape)


GATE_CASES = CaseTable({"logits": "... n_experts"}, how=telling)
GATE_ROWS = standard(GATE_CASES)
EIGHT = row("n_experts=8", given={"k": 2})
FOUR = {"sizes": "n_experts=8", "batch": (4,), "given": {"k": 2}}
GATE_BY_HAND = Case((tensor([[math.log(3), 0, -1, -2]]), 2), note="3/4 and 1/4")
GATE_TIES = [
    Case((tensor([[1, 2, 0, 2, 2], [3, 1, 1, 1, 0]]), 2), note="ties"),
    Case((torch.zeros(3, 7, dtype=torch.float64), 3), note="all alike"),
    Case((torch.tensor([[1.0] * 40]), 5), note="all alike, 40 experts"),
]


def refused_gate(n_experts: int, k: int, note: str) -> Case:
    return Case((torch.zeros(2, n_experts), k), note=note, raises=ValueError)


# --- decisions: pad_left -------------------------------------------------------------------------


def before(row: list, n: int, pad: Any) -> list:
    return [pad] * (n - len(row)) + list(row)


def behind(row: list, n: int, pad: Any) -> list:
    return list(row) + [pad] * (n - len(row))


def from_each_start(real, n):
    return (real.long().cumsum(-1) - 1).clamp(min=0)


def both(causal, real):
    return causal & real[:, None, :]


def neither(causal, real):
    return both(causal, real) & real[:, :, None]


def by_length(ids, real, pad):
    return real


def by_value(ids, real, pad):
    return ids != pad


@composition
def padding(
    rows=as_it_is,
    put=before,
    longest=max,
    fill=as_it_is,
    made_of=lambda rows: torch.tensor(rows),
    told=by_length,
    told_places=by_length,
    place=from_each_start,
    causal=lambda n: torch.ones(n, n, dtype=torch.bool).tril(),
    join=both,
    order=lambda ids, positions, mask: (ids, positions, mask),
    **back,
):
    """``pad_left`` made of decisions; ``told`` says what is no padding."""

    def pad_left(sequences, pad):
        given = rows(sequences)
        n = longest(map(len, given))
        cut = [row[-n:] for row in given]
        ids = made_of([put(row, n, fill(pad)) for row in cut])
        real = torch.tensor([put([True] * len(row), n, False) for row in cut])
        positions = place(told_places(ids, real, pad), n)
        mask = join(causal(n), told(ids, real, pad))
        return order(ids, positions, returned(mask, **back))

    return pad_left


def of_all(places):
    """The same positions for every sequence."""
    return lambda real, n: places(n).expand(real.shape)


def with_padding_at(number: int):
    return lambda real, n: from_each_start(real, n).masked_fill(~real, number)


# --- decisions: quantize -------------------------------------------------------------------------


def sizes_that_fit(x, bits, block):
    if not 2 <= bits <= 8 or x.shape[-1] % block:
        raise ValueError("expected 2 to 8 bits and a block that divides the last axis")
    return x, bits, block


def neighbours(x, block):
    return x.unflatten(-1, (-1, block))


def side_by_side(blocks):
    return blocks.flatten(-2)


def not_zero(scale):
    return scale.where(scale > 0, 1)


@composition
def coding(
    refuse=sizes_that_fit,
    read=as_it_is,
    cut=neighbours,
    ends=lambda blocks, x: (blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)),
    steps=lambda bits: 2**bits - 1,
    size=lambda low, high, steps: (high - low) / steps,
    guard=not_zero,
    divide=lambda blocks, low, high, step: (blocks - low) / step,
    nearest=torch.round,
    code=lambda codes, bits: codes,
    join=side_by_side,
    told_scale=as_it_is,
    told_minimum=lambda low, high, scale: low,
    each=lambda numbers, block: numbers[..., 0],
    order=lambda codes, scale, minimum: (codes, scale, minimum),
    back=lambda codes, low, scale: codes,
):
    """``quantize`` made of decisions."""

    def quantize(x, bits, block):
        x, bits, block = refuse(x, bits, block)
        blocks = cut(read(x), block)
        low, high = ends(blocks, read(x))
        scale = size(low, high, steps(bits))
        codes = code(nearest(divide(blocks, low, high, guard(scale))), bits)
        codes = join(back(codes, low, scale))
        scale, minimum = told_scale(scale), told_minimum(low, high, scale)
        return order(codes, each(scale, block), each(minimum, block))

    return quantize


def one_pair_for(x, blocks, axes) -> tuple[torch.Tensor, torch.Tensor]:
    """The ends over these axes of x, for every block."""
    shape = blocks[..., :1].shape
    low, high = (f(x, axes, keepdim=True)[..., None] for f in (torch.amin, torch.amax))
    return low.expand(shape), high.expand(shape)


def of_everything(blocks, x):
    return one_pair_for(x, blocks, tuple(range(x.ndim)))


def of_each_row(blocks, x):
    return one_pair_for(x, blocks, (-1,))


def of_each_place(blocks, x):
    """Of a block's place in the row, over all rows."""
    axes = (*range(blocks.ndim - 2), -1)
    shape = blocks[..., :1].shape
    return tuple(f(blocks, axes, keepdim=True).expand(shape) for f in (torch.amin, torch.amax))


def greatest_size(blocks, x):
    size = blocks.abs().amax(-1, keepdim=True)
    return -size, size


def codes_of_both_signs(half: Callable[[int], int]) -> dict[str, Any]:
    """Options: codes count from 0, up and down, and there is no minimum."""
    return {
        "ends": greatest_size,
        "size": lambda low, high, steps: high / half(steps),
        "divide": lambda blocks, low, high, step: blocks / step,
        "told_minimum": lambda low, high, scale: torch.zeros_like(low),
    }


def down_the_columns() -> dict[str, Any]:
    """Options: the blocks are runs of a column, where rows can be cut into such."""

    def cut(x, block):
        turned = x.mT if x.ndim > 1 and x.shape[-2] % block == 0 else x
        return neighbours(turned, block)

    return {"cut": cut}


def far_apart(x, block):
    return x.unflatten(-1, (block, -1)).mT


def checked(bits: Callable = lambda bits: 2 <= bits <= 8, divides: bool = True):
    """A refusal of other bits, or none of a block that does not divide."""

    def refuse(x, bits_, block):
        if not bits(bits_) or (divides and x.shape[-1] % block):
            raise ValueError("refused")
        return x, bits_, block

    return refuse


def cut_short(x, bits, block):
    """What is left over at the end of a row is dropped."""
    sizes_that_fit(x[..., :1], bits, 1)
    return x[..., : x.shape[-1] // block * block], bits, block


# --- decisions: speculative_accept ---------------------------------------------------------------


def uniform(rng):
    return torch.rand((), generator=rng, dtype=torch.float64).item()


def own_uniform(rng):
    return torch.rand((), dtype=torch.float64).item()


def normalized(weights: list) -> list:
    total = sum(weights)
    return [w / total for w in weights]


def inverse(weights: list, u: float) -> int:
    """The id at which the running sum passes u; one too many where it never does."""
    total = 0.0
    for token, weight in enumerate(weights):
        total += weight
        if weight and u < total * (1 + 1e-12):
            return token
    return len(weights)


def drawn(weights: list, rng) -> int:
    return inverse(weights, uniform(rng))


def greatest(weights: list, rng) -> int:
    return weights.index(max(weights))


def larger_parts(p: list, q: list, token: int) -> list:
    return [max(a - b, 0) for a, b in zip(p, q, strict=True)]


@composition
def accepting(
    one_u=False,
    chance=uniform,
    keep=lambda u, p, q, best: u < p / q if q else p > 0,
    row=lambda P, i: P[i],
    q_row=lambda Q, i: Q[i],
    missing=larger_parts,
    missing_row=lambda P, i: P[i],
    normalize=normalized,
    draw=drawn,
    draw_again=drawn,
    again=as_it_is,
    end=lambda P, k: P[k],
    replaced=lambda kept, token, new: [*kept, new],
    goes_on=False,
    number=lambda kept, flags: kept,
    one_more=True,
    always_one_more=False,
    finish=lambda ids: torch.tensor(ids, dtype=torch.int64),
    generator=as_it_is,
):
    """``speculative_accept`` made of decisions."""

    def speculative_accept(draft, p_draft, p_target, rng):
        tokens, Q, P = draft.tolist(), p_draft.double().tolist(), p_target.double().tolist()
        rng, kept, refused = generator(rng), [], False
        u = chance(rng) if one_u else None
        for i, token in enumerate(tokens):
            p, q = row(P, i), q_row(Q, i)
            u = u if one_u else chance(rng)
            if keep(u, p[token], q[token], p[token] == max(p)):
                kept = [*kept, token]
                continue
            weights = normalize(missing(missing_row(P, i), q, token))
            kept = replaced(kept, token, draw(weights, rng))
            refused = True
            if not goes_on:
                break
        if (one_more and not refused) or always_one_more:
            kept = [*kept, draw_again(again(end(P, len(tokens))), rng)]
        return finish(kept)

    return speculative_accept


# Counts every guess that passes, also those behind one that does not.
def all_that_would_be_kept(draft, p_draft, p_target, rng):
    tokens, k = draft.tolist(), len(draft)
    Q, P = p_draft.double().tolist(), p_target.double().tolist()
    kept = sum(uniform(rng) * Q[i][t] < P[i][t] for i, t in enumerate(tokens))
    weights = P[k] if kept == k else larger_parts(P[kept], Q[kept], tokens[kept])
    if not any(weights):
        weights = P[kept]
    return torch.tensor([*tokens[:kept], drawn(normalized(weights), rng)], dtype=torch.int64)


# Keeps every guess that passes, also those behind one that does not.
def all_that_pass(draft, p_draft, p_target, rng):
    tokens, k = draft.tolist(), len(draft)
    Q, P = p_draft.double().tolist(), p_target.double().tolist()
    passed = [uniform(rng) * Q[i][t] < P[i][t] for i, t in enumerate(tokens)]
    kept = [t for t, passes in zip(tokens, passed, strict=True) if passes]
    refused = passed.index(False) if not all(passed) else k
    weights = P[k] if refused == k else larger_parts(P[refused], Q[refused], tokens[refused])
    return torch.tensor([*kept, drawn(normalized(weights), rng)], dtype=torch.int64)


def exchanged(u, p, q, best):
    return u < q / p if p else q > 0


# --- decisions: top_k_gate -----------------------------------------------------------------------


def some_of(logits, k):
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError("expected a k from 1 to the number of experts")
    return k


def of_rank(order: Callable):
    """True where the rank is below k in this order of the experts."""
    return lambda logits, k: order(logits).argsort(-1) < k


def lower_first(logits):
    return logits.argsort(dim=-1, descending=True, stable=True)


def higher_first(logits):
    return logits.shape[-1] - 1 - logits.flip(-1).argsort(dim=-1, descending=True, stable=True)


def least_first(logits):
    return logits.argsort(dim=-1, stable=True)


@composition
def gating(
    refuse=some_of,
    read=as_it_is,
    choose=of_rank(lower_first),
    hide=lambda logits, chosen: logits.masked_fill(~chosen, -math.inf),
    normalize=lambda logits: logits.softmax(-1),
    after=lambda weights, chosen, k: weights,
    finish=lambda weights, logits, k: weights,
):
    """``top_k_gate`` made of decisions."""

    def top_k_gate(logits, k):
        k = refuse(logits, k)
        x = read(logits)
        chosen = choose(x, k)
        weights = after(normalize(hide(x, chosen)), chosen, k)
        return finish(weights, x, k)

    return top_k_gate


def before_the_choice(after: Callable, normalize: Callable = lambda x: x.softmax(-1)):
    """Options: weights of all the experts first, then something is done with the chosen ones."""
    return {"hide": lambda logits, chosen: logits, "normalize": normalize, "after": after}


def filled(number: float) -> dict[str, Any]:
    return {"hide": lambda logits, chosen: logits.masked_fill(~chosen, number)}


def along(axis: int):
    """The choice over another axis, where there is one."""

    def choose(logits, k):
        turned = logits.transpose(axis, -1) if logits.ndim > 1 else logits
        k = min(k, turned.shape[-1])
        chosen = of_rank(lower_first)(turned, k)
        return chosen.transpose(axis, -1) if logits.ndim > 1 else chosen

    return choose


def of_the_whole(logits, k):
    """So many of all the logits together as there are rows times k."""
    flat = logits.reshape(-1)
    rows = flat.numel() // logits.shape[-1]
    return of_rank(lower_first)(flat, k * rows).reshape(logits.shape)


def renormalized(weights, chosen, k):
    kept = weights * chosen
    return kept / kept.sum(-1, keepdim=True)


def with_guard(number: float) -> dict[str, Any]:
    def after(weights, chosen, k):
        kept = weights * chosen
        return kept / (kept.sum(-1, keepdim=True) + number)

    return before_the_choice(after)


def values_alone(weights, logits, k):
    return weights.gather(-1, lower_first(logits)[..., :k])


# --- exercises -----------------------------------------------------------------------------------

PAD = exercise(
    serving.pad_left,
    section="Chapter 20, “Questions of different lengths”",
    difficulty=2,
    minutes=15,
    criteria=(
        *each_result(
            ("ids", "positions", "mask"),
            together(
                PAD_BY_HAND,
                drawn_sequences(4, 2, 7, 5),
                drawn_sequences(3, 6, pad=2, note="2 pads"),
            ),
        ),
        Criterion("padding is told by length", 1).on(
            together(
                batch_of(
                    [[0, 4, 0], [0, 0, 0, 0, 1], [3, 0]], 0, "the id that pads is a token too"
                ),
                batch_of([[7, 7], [7]], 7, "nothing but the id that pads"),
                drawn_sequences(5, 3, 6, pad=1, note="1 pads"),
            )
        ),
        Criterion("no padding, one sequence, one token, many", 1).on(
            together(
                drawn_sequences(4, 4, 4, note="no padding"),
                drawn_sequences(5, note="one sequence"),
                drawn_sequences(1, note="one token"),
                drawn_sequences(1, 1, note="one token each"),
                drawn_sequences(2, 1, note="as many sequences as tokens"),
                drawn_sequences(17, 1, 9, note="many tokens"),
                PAD_BY_HAND,
            )
        ),
        unchanged(),
    ),
    mistakes=made(
        padding,
        mistake("""positions count the padding
            Your positions are the places in the padded row, so that a sequence's first token has
            another position in every batch. Each sequence counts from 0 at its own first token.
        """)
        .by(place=of_all(torch.arange))
        .by(place=lambda real, n: torch.arange(n) * real),
        mistake("""padded to the right
            You put the padding behind the tokens. The next token is to be written behind the last
            one, in the same column for all: padding comes before.""")
        .by(
            *(
                {"put": behind, "place": place, "join": join}
                for join in (both, neither)
                for place in (from_each_start, with_padding_at(0), of_all(torch.arange))
            )
        )
        .by(
            rows=lambda rows: [row[::-1] for row in rows], order=lambda i, p, m: (i.flip(-1), p, m)
        ),
        mistake("""the mask forgets that nobody looks ahead
            Your mask hides the padding alone. It is causal as well: token i sees no token behind
            it.""")
        .by(join=lambda causal, real: real[:, None, :].expand(len(real), *causal.shape))
        .by(join=lambda causal, real: real[:, None, :] & real[:, :, None]),
        mistake("""the first token is hidden
            Your mask hides the first token of each sequence, too. It is no padding: as many places
            are hidden as there is padding.""")
        .by(join=lambda causal, real: both(causal, real & real.roll(1, -1) & (real.cumsum(-1) > 1)))
        .by(join=lambda causal, real: both(causal, real.cumsum(-1) > 1)),
        mistake("""the mask forgets the padding
            Your mask is causal and no more, so that tokens look at padding. Columns of padding are
            False: `causal & real[:, None, :]`.""").by(
            join=lambda causal, real: causal.expand(len(real), *causal.shape)
        ),
        mistake("""rows of padding are hidden, not columns
            You forbid padding to look, and let tokens look at padding. What nobody may attend to is
            a key, a column: `real[:, None, :]`.""").by(
            join=lambda causal, real: causal & real[:, :, None]
        ),
        mistake("""padding is told by its value
            You compare ids with `pad`, but a token of the text may be the same id. What is padding
            follows from the lengths.""")
        .by(told=by_value, told_places=by_value)
        .by(told=by_value, told_places=by_value, join=neither)
        .by(told=by_value)
        .by(told=by_value, join=neither)
        .by(told_places=by_value),
        mistake("""the mask is transposed
            Row i is the query, column j the key: i sees j where j comes before it.""").by(
            form=lambda mask: mask.mT
        ),
        NUMBERS,
        ADDITIVE.here(
            *(
                {"kind": lambda mask, number=number: as_additive(mask, number)}
                for number in (-math.inf, -1e9, -1e4)
            )
        ),
        NO_TENSOR,
        INVERTED,
        mistake("""positions begin at 1
            You count with `cumsum`, which gives 1 to the first token. Positions count from 0.
        """)
        .by(place=lambda real, n: real.long().cumsum(-1))
        .by(place=lambda real, n: real.long().cumsum(-1).clamp(min=1)),
        mistake("""padding has position 1
            You give padding the position 1, as much published code does. Nobody reads what stands
            there; here it is 0.""").by(place=with_padding_at(1)),
        mistake("""padding has positions below 0
            You take the number of paddings off each place and leave what is below 0. Positions on
            padding are 0: `.clamp(min=0)`.""")
        .by(place=lambda real, n: torch.arange(n) - (~real).sum(-1, keepdim=True))
        .by(place=with_padding_at(-1)),
        mistake("""positions of padding are those of tokens
            You shift the positions and let them wrap around, so that padding has large ones.
            Positions on padding are 0.""").by(
            place=lambda real, n: (torch.arange(n) - (~real).sum(-1, keepdim=True)) % n
        ),
        mistake("""positions are counted from the end
            You count backwards, 0 at the last token. Positions count from 0 at the first one.""")
        .by(place=of_all(lambda n: torch.arange(n).flip(-1)))
        .by(place=lambda real, n: torch.arange(n).flip(-1) * real),
        mistake("""padding sees itself
            You let each padded row look at itself, so that no row is empty. Rows of padding are
            False throughout: attention gives 0 to a row without a key.""")
        .by(join=lambda causal, real: both(causal, real) | torch.eye(len(causal)).bool())
        .by(join=lambda causal, real: both(causal, real) | (causal & ~real[:, :, None])),
        mistake("""a token does not see itself
            Your diagonal is False. A token may attend to itself.""").by(
            causal=lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1)
        ),
        mistake("""everybody looks ahead
            You keep the upper triangle. Token i sees what comes before it: the lower one, `tril`.
        """).by(causal=lambda n: torch.ones(n, n, dtype=torch.bool).triu()),
        mistake("""no axis for the queries
            Your mask has one row for each sequence. It has one for every query: `(b, n, n)`.""")
        .by(join=lambda causal, real: real)
        .by(join=lambda causal, real: real[:, None, :]),
        mistake("""an axis too many
            Your mask has an axis for heads, `(b, 1, n, n)`. Asked for is `(b, n, n)`.""").by(
            form=lambda mask: mask.unsqueeze(-3)
        ),
        mistake("""one mask for all sequences
            You return one mask, `(n, n)`. Each sequence has its own padding: `(b, n, n)`.""")
        .by(join=lambda causal, real: causal)
        .by(join=lambda causal, real: both(causal, real).all(0))
        .by(join=lambda causal, real: both(causal, real).any(0)),
        mistake("""the first sequence's padding for all
            You find the padding of one sequence and hide it in all of them. Each has its own.
        """).by(join=lambda causal, real: both(causal, real[:1].expand(real.shape))),
        mistake("""the sequences change places
            You sort the sequences by length. Row i of the batch is sequence i.""")
        .by(rows=lambda rows: sorted(rows, key=len))
        .by(rows=lambda rows: sorted(rows, key=len, reverse=True)),
        mistake("""the tokens change places
            You turn a sequence round. Its tokens keep their order, with the padding before them.
        """).by(rows=lambda rows: [row[::-1] for row in rows]),
        mistake("""another id pads
            You pad with 0, or another number. It is `pad` that stands before the tokens.""")
        .by(fill=lambda pad: 0)
        .by(fill=lambda pad: -1)
        .by(fill=lambda pad: -100),
        mistake("""the longer ones are cut
            You cut every sequence to the shortest. They are padded to the longest.""").by(
            longest=min
        ),
        mistake("""wider than the longest
            Your rows are longer than the longest sequence. It has no padding.""")
        .by(longest=lambda lengths: max(lengths) + 1)
        .by(longest=lambda lengths: -(-max(lengths) // 8) * 8),
        mistake("""returned in another order
            Asked for is (ids, positions, mask), in this order.""")
        .by(order=lambda ids, positions, mask: (ids, mask, positions))
        .by(order=lambda ids, positions, mask: (positions, ids, mask)),
        mistake("""something is missing
            Three things come back: (ids, positions, mask).""")
        .by(order=lambda ids, positions, mask: (ids, mask))
        .by(order=lambda ids, positions, mask: ids),
        mistake("""ids are no int64
            Ids look up rows of a table, and torch asks for int64 there: `torch.tensor` of lists of
            whole numbers makes that.""")
        .by(made_of=lambda rows: torch.tensor(rows).float())
        .by(made_of=lambda rows: torch.tensor(rows).int()),
    ),
)

QUANT = exercise(
    serving.quantize,
    section="Chapter 20, “Smaller numbers”",
    difficulty=2,
    minutes=15,
    criteria=(
        *each_result(
            ("codes", "scale", "minimum"),
            QUANT_CASES(
                QUANT_BY_HAND,
                BLOCKS.but(batch=(3,)),
                row("d=15", batch=(2,), given=FOUR_BITS),
                row("d=6", batch=(6,), given=THREE_BITS, note="as many rows as numbers"),
                row("d=12", batch=(12,), given=TWO_BITS, note="as many rows as numbers"),
            ),
        ),
        QUANT_CASES.criterion("other numbers of bits", 1).on(
            *(row("d=12", batch=(5,), given={"bits": b, "block": 4}) for b in (2, 3, 5, 6, 7)),
            row("d=12", batch=(2,), given={"bits": 8, "block": 6}, note="8 bits"),
        ),
        QUANT_CASES.criterion("halfway between two steps: to the even one", 1).on(
            HALVES, LESS_HALVES
        ),
        QUANT_CASES.criterion("a block of equal numbers", 1).on(EQUAL, ALL_EQUAL, ONE_A_BLOCK),
        QUANT_CASES.criterion("batches, one block a row", 1).on(
            *(one.but("d=12", given=FOUR_BITS) for one in QUANT_ROWS.batches if one.batch != (4,)),
            row("d=4", batch=(4,), given={"bits": 3, "block": 2}, note="every axis of length 4"),
            row("d=6", batch=(3,), given={"bits": 4, "block": 6}, note="one block a row"),
        ),
        QUANT_CASES.criterion("float32, large and small numbers", 1).on(
            *(one.but("d=12", given=FOUR_BITS) for one in QUANT_ROWS.numbers),
            BLOCKS.but(factor=1e-8, note="very small"),
            once_more(QUANT_BY_HAND),
        ),
        Criterion("bits outside 2 to 8, a block that does not divide: ValueError", 1).on(
            lambda rng: [
                refused(EIGHT_NUMBERS, 1, 4, "1 bit"),
                refused(EIGHT_NUMBERS, 9, 4, "9 bits"),
                refused(EIGHT_NUMBERS, 4, 3, "blocks of 3 in 8 numbers"),
                refused(EIGHT_NUMBERS, 4, 16, "a block longer than the row"),
            ]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        coding,
        mistake("""one scale for the whole array
            You take the least and the greatest of all numbers. Each block has its own: a large
            number elsewhere must not make its steps coarser.""").by(ends=of_everything),
        mistake("""one scale for each row
            You take the least and the greatest of the row. Each block of it has its own.""").by(
            ends=of_each_row
        ),
        mistake("""one scale for a block of all rows
            You take the ends over the batch as well. A block is so many neighbours of one row.
        """).by(ends=of_each_place),
        mistake("""2^bits steps
            You divide by 2^bits. Between the first and the last of 2^bits codes lie 2^bits − 1
            steps: the greatest number would get a code too large by one.""").by(
            steps=lambda bits: 2**bits
        ),
        mistake("""another number of steps
            You divide by another number. Codes go from 0 to 2^bits − 1.""")
        .by(steps=lambda bits: 2**bits - 2)
        .by(steps=lambda bits: 2 ** (bits - 1) - 1)
        .by(steps=lambda bits: bits)
        .by(steps=lambda bits: 2 ** (bits - 1)),
        mistake("""bits are ignored
            You use the same number of steps whatever `bits` says.""")
        .by(steps=lambda bits: 255)
        .by(steps=lambda bits: 15),
        mistake("""halves are rounded up
            You round halfway numbers up, `floor(x + 0.5)`. Here, as in `torch.round`, they go to
            the even neighbour: 0.5 to 0, 1.5 to 2.""").by(nearest=lambda x: (x + 0.5).floor()),
        mistake("""rounded down
            You cut off what is behind the point. Each number goes to the *nearest* step:
            `.round()`.""")
        .by(nearest=torch.floor)
        .by(nearest=torch.trunc),
        mistake("""rounded up
            Your codes are rounded up. Each number goes to the nearest step: `.round()`.""").by(
            nearest=torch.ceil
        ),
        mistake("""not rounded
            Your codes are no whole numbers. Round them.""").by(nearest=as_it_is),
        mistake("""blocks down the columns
            Your blocks run down a column. They are neighbours along the last axis:
            `x.unflatten(-1, (-1, block))`.""").by(
            down_the_columns() | {"join": lambda blocks: blocks.flatten(-2)}
        ),
        mistake("""what is far apart makes a block
            You put numbers that lie far apart into one block. A block is `block` neighbours:
            `unflatten(-1, (-1, block))`, not `(block, -1)`.""")
        .by(cut=far_apart, join=lambda blocks: blocks.mT.flatten(-2))
        .by(cut=far_apart),
        mistake("""as many blocks as a block has numbers
            You cut the row into `block` blocks. Each has `block` numbers.""").by(
            cut=lambda x, block: x.unflatten(-1, (block, -1))
        ),
        mistake("""the same distance to both sides of 0
            You take the greatest size, max |x|, for both ends. Numbers that are all positive would
            then use half of the codes: take the least and the greatest.""")
        .by(ends=greatest_size)
        .by(*(codes_of_both_signs(half) for half in (lambda n: n // 2, lambda n: (n + 1) // 2))),
        mistake("""the least is taken for 0
            You take 0 for the lower end. It is the least number of the block.""").by(
            ends=lambda blocks, x: (
                torch.zeros_like(blocks[..., :1]),
                blocks.amax(-1, keepdim=True),
            )
        ),
        mistake("""0 is counted among the numbers
            You let every block reach to 0, as where 0 has to keep a code of its own. Its ends are
            the least and the greatest number that it holds.
        """).by(
            ends=lambda blocks, x: (
                blocks.amin(-1, keepdim=True).clamp(max=0),
                blocks.amax(-1, keepdim=True).clamp(min=0),
            )
        ),
        mistake("""a block of equal numbers gives NaN
            Where all numbers are equal the scale is 0, and you divide by it. Such a block has
            codes 0: divide by 1 there.""")
        .by(guard=as_it_is)
        .by(guard=as_it_is, code=lambda codes, bits: codes.nan_to_num(nan=-1)),
        mistake("""the scale of a block of equal numbers
            Where all numbers are equal you return another scale than 0. Put something else in its
            place only where you divide.""")
        .by(size=lambda low, high, steps: not_zero((high - low) / steps))
        .by(size=lambda low, high, steps: ((high - low) / steps).clamp(min=1e-8))
        .by(size=lambda low, high, steps: ((high - low) / steps).clamp(min=1e-5)),
        mistake("""a guard in the scale
            You add a small number to every scale. Guard the division alone, and only where the
            scale is 0.""").by(
            *(
                {"size": lambda low, high, steps, guard=guard: (high - low) / steps + guard}
                for guard in (1e-6, 1e-5, 1e-8, 1e-9, 1e-10, 1e-12)
            )
        ),
        mistake("""the minimum is not taken off
            You divide x by the scale. A code counts steps from the least number: `(x − minimum) /
            scale`.""")
        .by(divide=lambda blocks, low, high, step: blocks / step)
        .by(
            divide=lambda blocks, low, high, step: blocks / step,
            code=lambda codes, bits: codes.clamp(0, 2**bits - 1),
        ),
        mistake("""counted from the greatest
            You count the steps down from the greatest number. They count up from the least.""")
        .by(divide=lambda blocks, low, high, step: (high - blocks) / step)
        .by(
            divide=lambda blocks, low, high, step: (high - blocks) / step,
            told_minimum=lambda low, high, scale: high,
        ),
        mistake("""multiplied by the scale
            You multiply by the scale. How many steps a number is away is found by dividing.""").by(
            divide=lambda blocks, low, high, step: (blocks - low) * step
        ),
        mistake("""the maximum comes back
            You return the greatest number of each block. Its least is asked for.""").by(
            told_minimum=lambda low, high, scale: high
        ),
        mistake("""a zero point comes back
            You return which code stands for 0, −minimum / scale. Asked for is the minimum itself,
            in the unit of x.""")
        .by(told_minimum=lambda low, high, scale: (-low / not_zero(scale)).round())
        .by(told_minimum=lambda low, high, scale: -low / not_zero(scale)),
        mistake("""the scale is turned over
            You return steps a unit. Scale is units a step: (max − min) / (2^bits − 1).""").by(
            told_scale=lambda scale: 1 / not_zero(scale)
        ),
        mistake("""the range in place of the scale
            You return max − min. The scale is one step of it: divided by 2^bits − 1.""").by(
            size=lambda low, high, steps: high - low,
            guard=lambda scale: not_zero(scale) / 15,
        ),
        mistake("""codes begin below 0
            You shift the codes so that half of them are negative. They go from 0 to 2^bits − 1.
        """).by(code=lambda codes, bits: codes - 2 ** (bits - 1)),
        mistake("""8 bits do not fit into int8
            A signed byte ends at 127, and larger codes come out negative. `torch.uint8` holds 0 to
            255.""").by(code=lambda codes, bits: codes.to(torch.int64).to(torch.int8)),
        mistake("""numbers come back, not codes
            You return what the codes stand for. That is `dequantize`; here the codes themselves
            are asked for.""").by(back=lambda codes, low, scale: codes * scale + low),
        mistake("""an axis of 1 is left
            Scale and minimum have an axis of length 1 at the end, or the codes are still in
            blocks. Asked for are `(..., d)` and `(..., d / block)`.""")
        .by(each=lambda numbers, block: numbers)
        .by(join=as_it_is),
        mistake("""a scale for every number
            You repeat scale and minimum for each number. There is one of each a block.""").by(
            each=lambda numbers, block: numbers[..., 0].repeat_interleave(block, -1)
        ),
        mistake("""returned in another order
            Asked for is (codes, scale, minimum), in this order.""")
        .by(order=lambda codes, scale, minimum: (codes, minimum, scale))
        .by(order=lambda codes, scale, minimum: (scale, minimum, codes)),
        mistake("""something is missing
            Three things come back: (codes, scale, minimum).""")
        .by(order=lambda codes, scale, minimum: (codes, scale))
        .by(order=lambda codes, scale, minimum: codes),
        mistake("""no tensors come back
            You return NumPy arrays, or lists. Codes, scale and minimum are torch tensors.""")
        .by(order=lambda codes, scale, minimum: (codes.numpy(), scale.numpy(), minimum.numpy()))
        .by(order=lambda codes, scale, minimum: (codes.tolist(), scale.tolist(), minimum.tolist())),
        mistake("""computed in float32
            You turn the numbers into float32, or half of that. Scale and minimum keep the dtype of
            x.""")
        .by(read=lambda x: x.float())
        .by(read=lambda x: x.half()),
        mistake("""nothing is refused
            Bits outside 2 to 8, and a block that does not divide the last axis, are a
            `ValueError`.""")
        .by(refuse=lambda x, bits, block: (x, bits, block))
        .by(refuse=checked(lambda bits: True))
        .by(refuse=checked(divides=False))
        .by(refuse=cut_short)
        .by(refuse=checked(lambda bits: bits <= 8))
        .by(refuse=checked(lambda bits: bits >= 2)),
        mistake("""what is right is refused
            2 and 8 bits are right, a block may be one number or the whole row, and numbers may be
            equal.""")
        .by(refuse=checked(lambda bits: 2 < bits <= 8))
        .by(refuse=checked(lambda bits: 2 <= bits < 8))
        .by(refuse=checked(lambda bits: bits in (2, 4, 8))),
    ),
)

ACCEPT = exercise(
    serving.speculative_accept,
    section="Chapter 20, “Guess and check”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("where the outcome is certain", 2).on(
            together(
                GUESS_BY_HAND,
                guess("ab", certain("ab"), certain("abe"), note="both kept"),
                guess("abc", certain("abc"), certain("axce"), note="the second is refused"),
                guess("abcd", certain("abcd"), certain("xbcde"), note="the first is refused"),
                guess("abcd", certain("abcd"), certain("abcxe"), note="the last is refused"),
                which_come("a", UNEVEN, ["a=.1 x=.9", "e=1"], note="as likely for both"),
            )
        ),
        Criterion("a guess is kept with probability min(1, p / q)", 2).on(
            together(
                how_often("a", ["a=.2 y=.8"], ["a=.1 y=.8 x=.1", "e=1"]),
                which_come("a", UNEVEN, ["a=.2 x=.8", "e=1"], note="more often than guessed"),
                how_often("ba", ["b=1", "a=.2 y=.8"], ["b=1", "a=.1 y=.8 x=.1", "e=1"]),
                which_come(
                    "ba",
                    ["b=.5 y=.5", "a=.5 y=.5"],
                    ["b=.25 y=.5 x=.25", "a=.25 y=.5 z=.25", "e=1"],
                ),
            )
        ),
        Criterion("the refused one is replaced by what p has more than q", 2).on(
            together(
                which_come("a", ["a=.1 y=.7 b=.2"], ["y=.7 x=.3", "e=1"]),
                how_often("a", UNEVEN, ["y=.9 x=.05 z=.05 b=1e-13", "e=1"]),
                how_often("ba", ["b=1", *UNEVEN], ["b=1", "y=.9 x=.05 z=.05", "e=1"]),
                # What x lacks is half of all in both: with its square five sixths, with p alone
                # six sevenths of the first and a sixth of the second, with p / q next to nothing.
                told_apart(
                    "a",
                    ["a=.1 y=.4 x=.5"],
                    ["y=.3 x=.6 b=.02 c=.02 d=.02 e=.02 f=.02", "z=1"],
                    note="half of what is missing is one token's",
                ),
                told_apart(
                    "a",
                    ["a=.1 y=.3 b=.12 c=.12 d=.12 e=.12 f=.12"],
                    ["y=.1 x=.15 b=.15 c=.15 d=.15 e=.15 f=.15", "z=1"],
                    note="half of what is missing is one token's, and p has little of it",
                ),
            )
        ),
        Criterion("after all are kept, one more from the last row", 2).on(
            together(
                how_often("a", UNEVEN, ["a=.1 x=.9", "d=.5 e=.5"]),
                how_often("abc", certain("abc"), [*certain("abc"), "d=.5 e=.5"]),
            )
        ),
        Criterion("nothing guessed, many, float32", 1).on(
            together(
                guess("", [], certain("e"), note="nothing guessed"),
                how_often("", [], ["d=.5 e=.5"], note="nothing guessed"),
                guess(
                    "abcdefabcdef", certain("abcdefabcdef"), certain("abcdefabcdefx"), note="many"
                ),
                guess("ab", certain("ab"), certain("abe"), dtype=torch.float32, note="float32"),
                guess("ab", certain("ab"), certain("axe"), dtype=torch.float32, note="float32"),
                GUESS_BY_HAND,
            )
        ),
        Criterion("the generator decides", 1).on(by_chance_alone()),
        unchanged(),
    ),
    excludes=(
        (
            "* = *",
            "How many ids come back is chance, and cases have callers of their own.",
        ),
        ("* all different", "The same."),
        ("float32", "The same: it is among the notes."),
        ("* in p_*", "What comes in are probabilities."),
        ("a row of very *", "What comes in are probabilities."),
        ("entries that cancel", "What comes in are probabilities."),
    ),
    mistakes=(
        *made(
            accepting,
            mistake("""p and q are exchanged
                You keep a guess with probability q / p. What the target says more often than the
                draft is kept for certain, the rest with p / q: p is `p_target`, q is `p_draft`.
            """)
            .by(keep=exchanged)
            .by(keep=exchanged, missing=lambda p, q, token: larger_parts(q, p, token)),
            mistake("""q − p in place of p − q
                You draw the replacement from what the *draft* says too often. What is missing is
                what the target says more often: max(p − q, 0).""").by(
                missing=lambda p, q, token: larger_parts(q, p, token)
            ),
            mistake("""max(p − q, 0) does not sum to 1
                You draw from p − q as it is. What is left has to be divided by its sum (or drawn
                with `torch.multinomial`, which does it).""")
            .by(normalize=as_it_is)
            .by(normalize=as_it_is, draw=lambda w, rng: min(drawn(w, rng), len(w) - 1)),
            mistake("""the replacement comes from p
                You draw the replacement from the target's whole distribution. What it shares with
                the draft was given out already: draw from max(p − q, 0).""")
            .by(missing=lambda p, q, token: p)
            .by(missing=lambda p, q, token: [w * (t != token) for t, w in enumerate(p)]),
            mistake("""the replacement comes from q
                You draw the replacement from the draft's distribution. It comes from what the
                target says more often, max(p − q, 0).""").by(missing=lambda p, q, token: q),
            mistake("""p − q is not cut off at 0
                p − q is negative where the draft says a token too often. Negative numbers are no
                probabilities, and neither is their size: `(p − q).clamp(min=0)`.""")
            .by(missing=lambda p, q, token: [abs(a - b) for a, b in zip(p, q, strict=True)])
            .by(missing=lambda p, q, token: [(a - b) ** 2 for a, b in zip(p, q, strict=True)]),
            mistake("""all that p has more of comes as often
                You draw evenly among the ids of which p has more. How much more decides: max(p − q,
                0), divided by its sum.
            """).by(missing=lambda *given: [float(w > 0) for w in larger_parts(*given)]),
            mistake("""p itself where p is above q
                You draw among the ids of which p has more, each as likely as p has it. The draft
                has given out q of that already: max(p − q, 0), divided by its sum.
            """).by(missing=lambda p, q, token: [a * (a > b) for a, b in zip(p, q, strict=True)]),
            mistake("""the square of p − q
                You draw from the squares of what p has more, which makes much of the largest. How
                much p has more decides as it is: max(p − q, 0), divided by its sum.
            """).by(missing=lambda *given: [w**2 for w in larger_parts(*given)]),
            mistake("""kept only where p is at least q
                You keep a guess where p ≥ q and refuse all others. Where p is smaller it is kept
                with probability p / q: draw a number from 0 to 1 and compare.""")
            .by(keep=lambda u, p, q, best: p >= q)
            .by(keep=lambda u, p, q, best: p > q),
            mistake("""kept only where it is the likeliest
                You keep a guess where the target would say it first of all. That is the rule for
                temperature 0; here it is kept with probability min(1, p / q).""").by(
                keep=lambda u, p, q, best: best
            ),
            mistake("""kept with probability p
                You compare the number that you draw with p. The draft has drawn this token with
                probability q already: compare with p / q.""").by(keep=lambda u, p, q, best: u < p),
            mistake("""kept with another probability than p / q
                You compare the number that you draw with |p − q|, p − q or p / (p + q). A guess is
                kept with probability min(1, p / q).""")
            .by(keep=lambda u, p, q, best: u < abs(p - q))
            .by(keep=lambda u, p, q, best: u < p - q)
            .by(keep=lambda u, p, q, best: u < p / (p + q or 1)),
            mistake("""kept with probability p · q
                You multiply p with q. The probability to keep a guess is p / q.""").by(
                keep=lambda u, p, q, best: u < p * q
            ),
            mistake("""kept where it should be refused
                You compare the wrong way round: a guess is kept where the drawn number is *below*
                p / q.""").by(keep=lambda u, p, q, best: q == 0 or u > p / q),
            mistake("""everything is kept
                You keep all guesses, whatever the target says.""").by(
                keep=lambda u, p, q, best: True
            ),
            mistake("""nothing is kept
                You refuse every guess. With probability min(1, p / q) it is kept.""").by(
                keep=lambda u, p, q, best: False
            ),
            mistake("""one number for all guesses
                You draw one number and compare every guess with it. Whether the second is kept must
                not hang on the first: draw one for each.""").by(one_u=True),
            mistake("""goes on after a refusal
                After the first refusal you look at the guesses behind it. They were guessed to
                follow a token that is not there: stop.""")
            .by(goes_on=True)
            .by(goes_on=True, one_more=False),
            mistake("""the refused one comes back
                You return the token that was refused, with its replacement behind it, or without.
                The replacement takes its place.""")
            .by(replaced=lambda kept, token, new: [*kept, token, new])
            .by(replaced=lambda kept, token, new: [*kept, token]),
            mistake("""nothing in place of the refused one
                You end at the refusal without a token for its place. One is drawn from
                max(p − q, 0): each call gives at least one.""").by(
                replaced=lambda kept, token, new: kept
            ),
            mistake("""the kept ones are missing
                You return the new token alone. The guesses that were kept come before it.""").by(
                replaced=lambda kept, token, new: [new]
            ),
            mistake("""no token after all guesses are kept
                Where all are kept you return them alone. The target has said what comes after the
                last, too: draw one more from the last row of p_target.""").by(one_more=False),
            mistake("""one more after a refusal as well
                You add a token from the last row after a refusal, too. That row says what follows
                if *all* guesses are kept.""").by(always_one_more=True),
            mistake("""the last row is not the one after the guesses
                The token after k kept guesses comes from row k of p_target, its last one.""")
            .by(end=lambda P, k: P[max(k - 1, 0)])
            .by(end=lambda P, k: P[0]),
            mistake("""the row after the guess
                You judge guess i by row i + 1. Row i of p_target is what the target says in that
                place, before it has read the guess.""").by(
                row=lambda P, i: P[i + 1], missing_row=lambda P, i: P[i + 1]
            ),
            mistake("""the last row replaces a refused one
                You replace from the last row of p_target. It is the row of the refused guess, less
                what the draft says there.""").by(missing_row=lambda P, i: P[-1]),
            mistake("""the first row for all
                You compare every guess with the first row. Guess i has row i of both.""")
            .by(row=lambda P, i: P[0], missing_row=lambda P, i: P[0])
            .by(q_row=lambda Q, i: Q[0])
            .by(row=lambda P, i: P[0], missing_row=lambda P, i: P[0], q_row=lambda Q, i: Q[0]),
            mistake("""the likeliest, not one that is drawn
                You take the token with the largest probability. It is drawn: others have their
                chance, too.""")
            .by(draw=greatest, draw_again=greatest)
            .by(draw=greatest)
            .by(draw_again=greatest),
            mistake("""checked for greedy decoding
                You keep a guess where it is the likeliest token, and put the likeliest in its place
                where not. Each guess is kept with probability min(1, p / q), and what replaces it
                is drawn.""")
            .by(
                keep=lambda u, p, q, best: best,
                missing=lambda p, q, token: p,
                draw=greatest,
                draw_again=greatest,
            )
            .by(keep=lambda u, p, q, best: best, missing=lambda p, q, token: p, draw=greatest)
            .by(keep=lambda u, p, q, best: best),
            mistake("""a softmax of probabilities
                You take the softmax of numbers that are probabilities already, which evens them
                out.""").by(
                again=lambda p: torch.tensor(p).softmax(-1).tolist(),
                normalize=lambda p: torch.tensor(p).softmax(-1).tolist(),
            ),
            mistake("""drawn without the generator
                Some of your random numbers come from torch's own generator, or from another
                library. Hand `generator=rng` to `torch.rand` *and* to `torch.multinomial`.""")
            .by(
                chance=own_uniform,
                draw=lambda w, rng: inverse(w, own_uniform(rng)),
                draw_again=lambda w, rng: inverse(w, own_uniform(rng)),
            )
            .by(chance=own_uniform)
            .by(
                draw=lambda w, rng: inverse(w, own_uniform(rng)),
                draw_again=lambda w, rng: inverse(w, own_uniform(rng)),
            )
            .by(draw=lambda w, rng: inverse(w, own_uniform(rng)))
            .by(draw_again=lambda w, rng: inverse(w, own_uniform(rng))),
            mistake("""a new generator in every call
                You make a generator anew, so that every call draws the same numbers. Use `rng` as
                it comes: it goes on from call to call.""").by(
                generator=lambda rng: torch.Generator().manual_seed(rng.initial_seed())
            ),
            mistake("""no tensor of ids
                You return a list, numbers of another dtype, or a tensor with another axis. Asked
                for is a tensor of one axis, int64.""")
            .by(finish=list)
            .by(finish=lambda ids: torch.tensor(ids).float())
            .by(finish=lambda ids: torch.tensor(ids).int())
            .by(finish=lambda ids: torch.tensor([ids]))
            .by(finish=lambda ids: np.array(ids)),
            mistake("""a count comes back
                You return how many were kept. The ids themselves are asked for, and one more.
            """).by(finish=lambda ids: torch.tensor(len(ids) - 1)),
        ),
        mistake("""guesses behind a refusal are counted
            You add up how many guesses pass, also those behind one that does not. What is kept ends
            at the first refusal: count up to there.""").whole(all_that_would_be_kept),
        mistake("""guesses behind a refusal are kept
            You look at all guesses at once and keep those that pass, also behind one that does not.
            They were guessed to follow a token that is not there: keep those before the first
            refusal.""").whole(all_that_pass),
    ),
)

GATE = exercise(
    serving.top_k_gate,
    section="Chapter 20, “Experts”",
    difficulty=1,
    minutes=10,
    criteria=(
        GATE_CASES.criterion("the softmax over the k largest, 0 elsewhere", 3).on(
            GATE_BY_HAND,
            EIGHT.but(batch=(5,)),
            row("n_experts=7", batch=(3,), given={"k": 3}),
            row("n_experts=6", batch=(6,), given={"k": 2}, note="as many tokens as experts"),
        ),
        GATE_CASES.criterion("of equal logits the lower index", 1).on(*GATE_TIES),
        GATE_CASES.criterion("one expert, or all of them", 1).on(
            EIGHT.but(batch=(6,), given={"k": 1}, note="one of eight"),
            EIGHT.but(batch=(3,), given={"k": 8}, note="all of eight"),
            row("n_experts=1", batch=(2,), given={"k": 1}, note="one expert"),
        ),
        GATE_CASES.criterion("batches", 1).on(
            *(one.but(given={"k": 2}) for one in GATE_ROWS.batches)
        ),
        GATE_CASES.criterion("float32, large and small logits", 1).on(
            *(one.but(**FOUR) for one in GATE_ROWS.numbers),
            EIGHT.but(batch=(3,), factor=1e3, note="logits in the thousands"),
            once_more(GATE_BY_HAND),
        ),
        GATE_CASES.criterion("gradients reach the logits", 1).on(
            *(one.but(**FOUR) for one in GATE_ROWS.gradients)
        ),
        Criterion("k outside 1 … n: ValueError", 1).on(
            lambda rng: [
                refused_gate(5, 0, "k = 0"),
                refused_gate(5, 6, "k = 6 of 5"),
                refused_gate(5, -1, "k = −1"),
            ]
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        gating,
        mistake("""softmax before the choice, not renormalised
            You take the softmax over all experts and set the others to 0, so that what is left sums
            to less than 1. Take it over the chosen ones alone, or divide by their sum.""").by(
            before_the_choice(lambda weights, chosen, k: weights * chosen)
        ),
        mistake("""zeros go into the softmax
            You set the other logits to 0 before the softmax, and e⁰ = 1 is a weight like others.
            They are −∞ there.""")
        .by(hide=lambda logits, chosen: logits * chosen)
        .by(
            hide=lambda logits, chosen: logits * chosen,
            after=lambda weights, chosen, k: weights * chosen,
        ),
        mistake("""of equal logits the higher index
            Of experts with equal logits you choose the later ones. A stable descending sort puts
            the lower index first: `argsort(descending=True, stable=True)`.""")
        .by(choose=of_rank(higher_first))
        .by(
            choose=lambda logits, k: (
                torch.zeros_like(logits).scatter(-1, logits.topk(k).indices, 1).bool()
            )
        ),
        mistake("""more than k where logits are equal
            You keep all that are as large as the k-th, which may be more than k. Exactly k are
            chosen, of equal ones the lower index.""").by(
            choose=lambda logits, k: logits >= logits.topk(k).values[..., -1:]
        ),
        mistake("""fewer than k
            You keep what is larger than the k-th. The k-th itself is chosen, too.""")
        .by(
            choose=lambda logits, k: (
                (logits > logits.topk(k).values[..., -1:]) | (lower_first(logits).argsort(-1) < 1)
            )
        )
        .by(choose=lambda logits, k: of_rank(lower_first)(logits, max(k - 1, 1))),
        mistake("""one more than k
            You keep k + 1. Ranks count from 0, so it is `rank < k`.""").by(
            choose=lambda logits, k: of_rank(lower_first)(logits, k + 1)
        ),
        mistake("""the k smallest
            You choose the experts with the smallest logits.""").by(choose=of_rank(least_first)),
        mistake("""the largest in size
            You choose by |logit|. A large negative logit speaks *against* an expert.""").by(
            choose=lambda logits, k: of_rank(lower_first)(logits.abs(), k)
        ),
        mistake("""`argsort` taken for the ranks
            `argsort` says which expert stands in each place, and you read it as the place of each
            expert. The `argsort` of it gives the ranks; or `scatter` at `topk(k).indices`.""").by(
            choose=lambda logits, k: lower_first(logits) < k
        ),
        mistake("""the choice over another axis
            You choose among the tokens for each expert. Each token chooses among the experts, the
            last axis.""")
        .by(choose=along(-2))
        .by(choose=along(0)),
        mistake("""one choice for all tokens together
            You choose the largest of all the logits, or the same experts for every token. Each
            token chooses its own k.""")
        .by(choose=of_the_whole)
        .by(
            choose=lambda logits, k: of_rank(lower_first)(
                logits.reshape(-1, logits.shape[-1]).mean(0).expand(logits.shape), k
            )
        )
        .by(
            choose=lambda logits, k: of_rank(lower_first)(
                logits.reshape(-1, logits.shape[-1])[0].expand(logits.shape), k
            )
        ),
        mistake("""softmax over another axis
            Your columns sum to 1. What a token gives its experts does: `softmax(-1)`.""")
        .by(normalize=lambda logits: logits.softmax(-2 if logits.ndim > 1 else -1).nan_to_num())
        .by(normalize=lambda logits: logits.softmax(-2 if logits.ndim > 1 else -1)),
        mistake("""divided by the sum of logits
            You divide logits by their sum. Logits may be negative: take the softmax.""").by(
            before_the_choice(renormalized, normalize=as_it_is)
        ),
        mistake("""k equal parts
            You give 1/k to each chosen expert. How much it counts follows from its logit.""").by(
            after=lambda weights, chosen, k: chosen.to(weights) / k
        ),
        mistake("""a sigmoid in place of the softmax
            You take sigmoids, as some models do. Here it is the softmax over the chosen logits.
        """)
        .by(before_the_choice(renormalized, normalize=torch.sigmoid))
        .by(before_the_choice(lambda w, chosen, k: w * chosen, normalize=torch.sigmoid)),
        mistake("""the softmax twice
            You take the softmax of weights. Take it once, of logits.""")
        .by(after=lambda weights, chosen, k: weights.masked_fill(~chosen, -math.inf).softmax(-1))
        .by(after=lambda weights, chosen, k: weights.softmax(-1)),
        mistake("""a guard in the sum
            You divide by the sum and a small number. The chosen ones have a positive sum: no guard
            is needed.""")
        .by(with_guard(1e-6))
        .by_any(with_guard, Between(1e-8, 0.1)),
        mistake("""a low number in place of −∞
            The other logits are low, but not low enough. Fill in −∞.""")
        .by(filled(-1.0))
        .by_any(filled, Between(-10.0, -1e-3)),
        mistake("""logits come back
            You return logits, −∞ where nothing is chosen. Asked for are weights that sum to 1.
        """).by(normalize=as_it_is),
        mistake("""k weights come back
            You return the weights of the chosen experts alone. Each expert has its column, 0 where
            it is not chosen: `(..., n_experts)`.""").by(finish=values_alone),
        mistake("""the weights stand in the first columns
            You put the weights, sorted, into the first k columns. Each belongs in its expert's own:
            `scatter(-1, indices, weights)`.""").by(
            finish=lambda weights, logits, k: weights.gather(-1, lower_first(logits))
        ),
        mistake("""which ones, not how much
            You return indices, or a mask. Asked for is how much each expert counts.""")
        .by(finish=lambda weights, logits, k: lower_first(logits)[..., :k])
        .by(finish=lambda weights, logits, k: weights > 0)
        .by(finish=lambda weights, logits, k: (weights > 0).to(weights)),
        mistake("""k is ignored
            You choose the same number of experts whatever k says.""")
        .by(choose=lambda logits, k: of_rank(lower_first)(logits, 1))
        .by(choose=lambda logits, k: of_rank(lower_first)(logits, 2))
        .by(choose=lambda logits, k: of_rank(lower_first)(logits, logits.shape[-1])),
        mistake("""exp overflows
            You take exp of logits as they are, which is infinite for large ones. The softmax
            subtracts the largest first.""").by(
            before_the_choice(renormalized, normalize=torch.exp)
        ),
        mistake("""nothing is refused
            k = 0 and a k above the number of experts choose nothing that exists: raise a
            `ValueError`.""")
        .by(refuse=lambda logits, k: k)
        .by(refuse=lambda logits, k: min(max(k, 1), logits.shape[-1]))
        .by(refuse=lambda logits, k: some_of(logits, max(k, 1)) and k)
        .by(refuse=lambda logits, k: some_of(logits, min(k, logits.shape[-1])) and k),
        mistake("""what is right is refused
            k may be 1, and as large as the number of experts.""")
        .by(refuse=lambda logits, k: some_of(logits, k + 1) and k)
        .by(refuse=lambda logits, k: some_of(logits, k - 1) and k),
        mistake("""the gradient is cut off
            No gradient reaches the logits: `.detach()`, `.data` or NumPy on the way. The choice has
            none, the weights have one.""").by(read=lambda logits: logits.detach()),
        mistake("""computed in float32
            You turn the logits into float32, which keeps seven digits of float64. Stay in their
            dtype.""").by(read=lambda logits: logits.float()),
        mistake("""the logits are changed
            You write −∞ into the caller's logits: `masked_fill_`, or an assignment. Use
            `masked_fill`, which makes a new tensor.""").by(
            hide=lambda logits, chosen: logits.data.masked_fill_(~chosen, -math.inf)
        ),
    ),
)

EXERCISES = (PAD, QUANT, ACCEPT, GATE)

VARIANTS = (
    forbidden(
        {"pad_left": Adapter(result=LAST_NEGATED, drops=("the mask is inverted",))},
        """
            True where query i may attend to key j → True where query i may not attend to key j
            so the rows of padding are False throughout → so the rows of padding are True throughout
            and a single `True` → and a single `False`
            `causal_mask(n) & real[:, None, :]` → `~(causal_mask(n) & real[:, None, :])`
            Columns of padding are False: `causal & real[:, None, :]`
            → Columns of padding are True: `~(causal & real[:, None, :])`
            Rows of padding are False throughout → Rows of padding are True throughout
            Your diagonal is False → Your diagonal is True
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden.",
    ),
)
