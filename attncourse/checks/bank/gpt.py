"""The exercises of chapter 13, a language model.

Answers that draw tokens are judged by cases in which one token alone can come, and by counts. There
every right share is a whole number of sixths, and 1536 draws are rounded to sixths. By the
inequality of Hoeffding a share is off by a twelfth with a chance below
2·exp(−2 · 1536 / 12²) = 1.1e-9, so a right answer fails one of the 60 shares of a check with a
chance below 1e-7.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import gpt
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.rewriting import BITS
from attncourse.checks.variants.variant import Variant, rewordings
from attncourse.checks.writing import mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Drawn,
    Row,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases: next_token_loss ------------------------------------------------------------------


UNLIKELY = -3.0  # what is added to a target's logit


@dataclass(frozen=True)
class Read(CaseTable):
    """Logits and the ids they are judged by. A row's option ``pad`` is the padding_id.

    With it the ends of the sequences are padding, of different lengths, and the id stands inside,
    too. Without it the first and the last word of the vocabulary are among the targets.
    """

    spec: Any = field(default_factory=lambda: {"logits": "... n n_vocab"})
    how: Callable = normal

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        n, n_vocab = row.sizes["n"], row.sizes["n_vocab"]
        ids = torch.from_numpy(rng.integers(0, n_vocab, (*row.batch, n)))
        pad = row.options.get("pad")
        if pad is None:
            ids[..., 1:3] = torch.tensor([n_vocab - 1, 0])[: max(n - 1, 0)]
        elif row.options.get("all"):
            ids = torch.full_like(ids, pad)
        else:
            ids = torch.where(ids == pad, (pad + 1) % n_vocab, ids)
            ids[..., 2:3] = pad
            shorter = torch.arange(math.prod(row.batch)).reshape(row.batch) % 3
            ids = ids.where(torch.arange(n) < (n - shorter)[..., None].clamp(min=1), pad)
        if row.turned:
            ids = torch.from_numpy(np.asfortranarray(ids.numpy()))
        came = ids[..., 1:, None]  # unlikely, so that a guard of 1e-10 shows in every draw
        less = case.args[0].new_full(came.shape, UNLIKELY)
        case.args[0][..., :-1, :].scatter_add_(-1, came, less)
        named = {} if pad is None else {"padding_id": pad}
        return replace(case, args=(*case.args, ids), kwargs={**case.kwargs, **named})


LOSS_CASES = Read()
LOSS_ROWS = standard(LOSS_CASES)
LOSS = row("n=5 n_vocab=7")
LOSS_BY_HAND = Case(
    (
        tensor(np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.3, 0.5]])),
        torch.tensor([0, 1, 2]),
    ),
    note="the shares of what came are 1/4 and 0.8",
)
PADDED = LOSS.but("n=11", batch=(3,), options={"pad": 3}, note="3 pads, lengths differ")
FIRST_PADS = LOSS.but("n=11", batch=(3,), options={"pad": 0}, note="0 pads")

# --- cases: filter_logits, sample_token ------------------------------------------------------


def apart(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Rows whose entries are at least 0.3 apart, in any order. Every second one is steep."""
    steps = rng.uniform(0.3, 0.4, shape)
    steps.reshape(-1, shape[-1])[::2] += 0.45
    return rng.permuted(steps.cumsum(-1) - 2, axis=-1)


def share_between(rng: Rng, logits: torch.Tensor, top_k: int | None) -> float:
    """A p that no row's cumulative shares come near.

    Where it can be, no row reaches it with its first token, and rows keep more or fewer tokens.
    """
    rows = logits.double().sort(-1, descending=True).values[..., :top_k]
    edges = rows.softmax(-1).cumsum(-1).reshape(-1, rows.shape[-1])
    tried = torch.from_numpy(rng.uniform(0.3, 0.95, 200))
    gaps = (tried[:, None] - edges.flatten()).abs().min(-1).values
    below = (edges < tried[:, None, None]).sum(-1)  # (200, rows), tokens before the last one kept
    fewest, most = below.aminmax(dim=-1)
    telling = (fewest > 0) & ((most > fewest) | (len(edges) == 1)) & (gaps > 0.003)
    return float(tried[(gaps + telling).argmax()])


@dataclass(frozen=True)
class Filtered(CaseTable):
    """Logits and how they are cut; ``top_p`` of True is drawn."""

    spec: Any = field(default_factory=lambda: {"logits": "... n_vocab"})
    how: Callable = apart

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        named = dict(case.kwargs)
        if named.get("top_p") is True:
            named["top_p"] = share_between(rng, case.args[0], named.get("top_k"))
        return replace(case, kwargs=named)


FILTER_CASES = Filtered()
FILTER_ROWS = standard(FILTER_CASES)
SEVEN = row("n_vocab=7")
ROWS = SEVEN.but(batch=(5,), note="five rows")
MANY_ROWS = SEVEN.but(batch=(53,))  # of which one draw or another will go wrong
K3, P, BOTH = {"top_k": 3}, {"top_p": True}, {"top_k": 4, "top_p": True}
SHARES = tensor(np.log([0.1, 0.5, 0.15, 0.25]))  # by hand: likeliest are 1, 3, 2, 0
STEEP_AND_FLAT = tensor(np.log([[0.25, 0.72, 0.01, 0.02], [0.3, 0.2, 0.27, 0.23]]))
TIES = tensor([[1, 2, 0, 2, 2], [3, 1, 1, 1, 0]])
HOLES = tensor([[0.0, -math.inf, 1.0, 2.0, -math.inf], [1.5, 0.5, -math.inf, -1.0, 3.0]])


def with_infinities(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    x = apart(rng, shape)
    x[..., 2] = -np.inf
    return x


# A right answer gets a share rounded to another sixth once in 700,000 verdicts, and one that draws
# row by row is judged within a second.
DRAWS, PARTS = 1024, 6


@dataclass(frozen=True)
class Sampled(Filtered):
    """The same with torch's own random numbers begun anew, so that wrong answers repeat."""

    def case(self, rng: Rng, row: Row) -> Case:
        return replace(super().case(rng, row), use=seeded(int(rng.integers(1 << 30))))


def seeded(seed: int) -> Callable:
    return partial(callers.call_seeded, seed)


SAMPLE_CASES = Sampled()
SAMPLE_BY_HAND = Case(
    (SHARES,), {"temperature": 0}, use=seeded(0), note="shares 0.1, 0.5, 0.15, 0.25"
)


def drawn_case(
    rng: Rng,
    sixths: tuple[int, ...],
    cut: Sequence[float] = (),
    *,
    batch: int = 0,
    seeded: bool = True,
    note: str = "",
    **options: Any,
) -> Case:
    """Logits of which tokens are drawn in these sixths once they are divided and cut.

    ``cut``: how likely those are that a filter takes away, before it, in sixths too.
    """

    def one_row() -> torch.Tensor:
        shares = rng.permutation([*sixths, *cut]).astype(float)
        shift = rng.choice([-3, 3]) + rng.uniform(-0.5, 0.5)  # logits themselves are no such shares
        return tensor(options.get("temperature", 1.0) * (np.log(shares) + shift))

    logits = torch.stack([one_row() for _ in range(batch)]) if batch else one_row()
    seed = int(rng.integers(1 << 30))
    named = ", ".join(f"{name}={value}" for name, value in options.items())
    told = f"{DRAWS} draws, in sixths" + (f"; {note}" if note else "")
    return Case(
        (DRAWS, PARTS, seed, seeded, logits),
        options,
        use=callers.shares_drawn,
        note=told,
        shown=f"sample_token(logits{', ' if named else ''}{named})",
    )


FEW_OF_MANY, ALL_BUT_NONE = (0.1,) * 30, (1e-9,) * 30


def generators(rng: Rng) -> list[Case]:
    """Fifty rows: two generators agree in all of them with a chance below (1/101)⁵⁰."""
    seeds = tuple(int(seed) for seed in rng.integers(1 << 30, size=2))
    case = Case(
        (seeds, torch.zeros(50, 101, dtype=torch.float64)),
        use=callers.drawn_with_generators,
        facts=callers.decided_by_generators,
        shown="sample_token(logits, generator=generator)",
    )
    return [case]


ONE_LEFT = Drawn(
    "... n_vocab",
    lambda rng, shape: (
        np.where(np.arange(shape[-1]) == shape[-1] - 2, 0.0, -np.inf) + np.zeros(shape)
    ),
)

# --- cases: generate -------------------------------------------------------------------------

D, VOCABULARY, LONGEST = 5, 11, 6


@dataclass(frozen=True)
class Written(CaseTable):
    """Prompts of ``n`` tokens, and ``n_new`` more by a model that reads ``LONGEST`` at once."""

    spec: Any = field(default_factory=dict)

    def case(self, rng: Rng, row: Row) -> Case:
        n, n_new = row.sizes["n"], row.sizes["n_new"]
        ids = rng.integers(0, VOCABULARY, (*row.batch, n))
        ids = torch.from_numpy(np.asfortranarray(ids) if row.turned else ids)
        weights = {
            "tokens": normal(rng, (VOCABULARY, D)),
            "positions": normal(rng, (LONGEST, D)),
            "scores": 3 * normal(rng, (D, VOCABULARY)),
        }
        choose = row.options.get("choose", "")
        named = f", choose = {choose}" if choose else ""
        return Case(
            ("small_model", ids, n_new, *([choose] if choose else [])),
            {name: tensor(x) for name, x in weights.items()},
            use=callers.call_on_model,
            note=row.note,
            shown=f"generate(model, ids, {n_new}{named}), model.max_length = {LONGEST}",
        )


WRITTEN_CASES = Written()
WRITE_BY_HAND = Case(
    ("small_model", torch.tensor([2, 0]), 3),
    {
        "tokens": tensor([[1, 0], [0, 1], [1, 1]]),
        "positions": tensor([[1, 1], [1, -1], [-2, 1], [1, 1]]),
        "scores": tensor([[1, 2, -1], [3, -1, 1]]),
    },
    use=callers.call_on_model,
    shown="generate(model, ids, 3), model.max_length = 4",
)
PROMPT = row("n=3 n_new=3")
LEAST = {"choose": "the least likely"}
SECOND = {"choose": "the second most likely"}
POSITIVE = {"choose": "how many are above 0"}

# --- cases: perplexity -----------------------------------------------------------------------


def batches(rng: Rng, *, tensors: bool = False, size: int = 5, loss: float = 3.0) -> Case:
    losses, counts = rng.uniform(0.5, loss, size), rng.integers(3, 60, size)
    if tensors:
        return Case((torch.from_numpy(losses), torch.from_numpy(counts)), note="tensors")
    return Case((losses.tolist(), counts.tolist()))


PERPLEXITY_BY_HAND = Case(
    ([math.log(2), math.log(8)], [30, 10]), note="of 40 targets 30 are like coins"
)

# --- cases: attend_with_cache ----------------------------------------------------------------


@dataclass(frozen=True)
class Cached(CaseTable):
    """New queries, keys and values, and a cache of ``c`` tokens where c is given."""

    spec: Any = field(
        default_factory=lambda: {
            "query": "... m d_k",
            "key": "... m d_k",
            "value": "... m d_v",
        }
    )

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        if "c" not in row.sizes:
            return case
        old = {"old keys": "... c d_k", "old values": "... c d_v"}
        cache = tuple(self.arguments(rng, old, replace(row, zero=(), factor=1.0)).values())
        if row.use is not None:
            return replace(case, args=(*case.args, *cache))
        told = f"attend_with_cache(query, key, value, cache), a cache of {row.sizes['c']} tokens"
        return replace(case, kwargs={"cache": cache}, shown=told)

    @property
    def each_gradient(self) -> Callable:
        return gradients("query", "key", "value")


def gradients(*names: str) -> Callable:
    """The caller that asks for the gradient of one argument after the other."""
    return partial(callers.attend_with_each_gradient, names, tuple(range(len(names))))


CACHE_CASES = Cached()
CACHE_ROWS = standard(CACHE_CASES, d_k=4)
NEW = row("m=3 d_k=4 d_v=5")
ONE_NEW = row("m=1 c=6 d_k=4 d_v=3", note="one new token, six before")
SEVERAL = row("m=3 c=5 d_k=4 d_v=7", note="three new tokens, five before")
CACHE_BY_HAND = Case(
    (tensor([[0, 0]]), tensor([[1, 0]]), tensor([[9, 2]])),
    {"cache": (tensor([[0, 1], [5, 5]]), tensor([[3, 1], [0, 6]]))},
    note="a query of 0 averages the three values",
)
EVERY_GRADIENT = ("query", "key", "value", "the cached keys", "the cached values")


def stepwise(*sizes: int, batch: tuple[int, ...] = ()) -> Callable[[Rng], list[Case]]:
    """A sequence that comes in pieces of these sizes, the first with no cache."""

    def cases(rng: Rng) -> list[Case]:
        n = sum(sizes)
        query, key, value = (tensor(rng.uniform(-1, 1, (*batch, n, d))) for d in (4, 4, 3))
        return [
            Case(
                (sizes, query, key, value),
                use=callers.attend_in_steps,
                note=f"{n} tokens in pieces of {', '.join(map(str, sizes))}",
                shown="attend_with_cache(query, key, value, cache)",
            )
        ]

    return cases


# --- decisions: next_token_loss --------------------------------------------------------------


def shifted(logits, ids):
    return logits[..., :-1, :], ids[..., 1:]


def picked(log_shares, targets):
    return -log_shares.gather(-1, targets[..., None].long()).squeeze(-1)


def surprises(guesses, targets):
    return picked(F.log_softmax(guesses, -1), targets)


def not_padding(targets, ids, padding_id):
    return torch.ones_like(targets).bool() if padding_id is None else targets != padding_id


def mean_of(surprise, counts):
    return (surprise * counts).sum() / counts.sum().clamp(min=1)


@composition
def judged(
    shift=shifted,
    surprise=surprises,
    count=not_padding,
    gather=mean_of,
    given=lambda padding_id: padding_id,
):
    """``next_token_loss`` made of decisions."""

    def next_token_loss(logits, ids, padding_id=None):
        guesses, targets = shift(logits, ids)
        counts = count(targets, ids, given(padding_id))
        return gather(surprise(guesses, targets), counts)

    return next_token_loss


def by_sequence(surprise, counts):
    each = (surprise * counts).sum(-1) / counts.sum(-1).clamp(min=1)
    return each.mean()


def guarded_log(number: float) -> dict[str, Any]:
    return {"surprise": lambda g, t: picked((g.softmax(-1) + number).log(), t)}


def unflattened(guesses, targets):
    if guesses.ndim > 2:
        return F.cross_entropy(guesses, targets.long(), reduction="none")
    return surprises(guesses, targets)


def one_batch_axis_alone(guesses, targets):
    _b, _n, _v = guesses.shape
    return surprises(guesses, targets)


# --- decisions: filter_logits ----------------------------------------------------------------


def lower_ids_first(logits):
    return logits.argsort(dim=-1, descending=True, stable=True)


def first_k(logits, rank, k):
    return rank < k


def up_to_p(likely, p):
    """Of the shares, from the likeliest on, those to keep."""
    return likely.cumsum(-1) - likely < p


def moved_without_the_first(likely, p):
    dropped = likely.cumsum(-1) >= p
    return ~torch.cat([dropped[..., :1], dropped[..., :-1]], -1)


def to_their_ids(keep, order):
    return torch.zeros_like(keep).scatter(-1, order, keep)


@composition
def filtering(
    order=lower_ids_first,
    keep_k=first_k,
    likely=lambda logits: logits.double().softmax(-1),
    keep_p=up_to_p,
    put_back=to_their_ids,
    place=lambda logits, order: logits,
    fill=lambda logits, keep: logits.masked_fill(~keep, -math.inf),
    steps=lambda top_k, top_p: ("k", "p"),
    left=lambda logits, original: logits,
    finish=lambda logits, original: logits,
):
    """``filter_logits`` made of decisions; ``left`` are the logits that p is measured on."""

    def filter_logits(logits, top_k=None, top_p=None):
        original = logits
        for step in steps(top_k, top_p):
            if step == "k" and top_k is not None:
                rank = order(original).argsort(-1)
                logits = fill(logits, keep_k(original, rank, top_k))
            if step == "p" and top_p is not None:
                seen = left(logits, original)
                by_likely = order(seen)
                shares = likely(seen).gather(-1, by_likely)
                logits = fill(logits, put_back(keep_p(shares, top_p), by_likely))
                logits = place(logits, by_likely)
        return finish(logits, original)

    return filter_logits


def higher_ids_first(logits):
    return logits.shape[-1] - 1 - lower_ids_first(logits.flip(-1))


def last_id_first(logits):
    """Of equally likely tokens the last id comes first, and then the others as they stand."""
    return (lower_ids_first(logits.roll(1, -1)) - 1) % logits.shape[-1]


def not_below_the_kth(logits, rank, k):
    return logits >= logits.topk(k, -1).values[..., -1:]


def nothing(logits, keep):
    """Filled with a number."""
    return logits.masked_fill(~keep, 0)


def filled(number: float) -> dict[str, Any]:
    return {"fill": lambda logits, keep: logits.masked_fill(~keep, number)}


def in_order_of_ids(logits):
    ids = torch.arange(logits.shape[-1])
    return ids.expand(logits.shape)


# --- decisions: sample_token -----------------------------------------------------------------


def flat_draw(shares, generator):
    rows = shares.reshape(-1, shares.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).reshape(shares.shape[:-1])


def at_0(logits, temperature):
    """The likeliest token, where temperature is 0; None elsewhere."""
    return logits.argmax(-1) if temperature == 0 else None


def like(x, draw: Callable, generator):
    """Random numbers in the shape of x."""
    return draw(x.shape, generator=generator, dtype=x.dtype)


def largest_with(noise: Callable) -> Callable:
    """The place of the largest logit once such noise is added."""
    return lambda logits, generator: (logits + like(logits, noise, generator)).argmax(-1)


@composition
def drawing(
    greedy=at_0,
    divide=lambda logits, temperature: logits / temperature,
    cut=gpt.filter_logits,
    early=None,
    drawn_from=lambda kept, logits: kept,
    shares=lambda logits: logits.softmax(-1),
    draw=flat_draw,
    late=lambda ids, logits, k, p: ids,
    finish=lambda ids: ids,
):
    """``sample_token`` made of decisions. ``early`` cuts before the logits are divided.

    ``drawn_from`` are the logits whose shares are drawn from, given those that were kept and all.
    """

    def sample_token(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
        best = greedy(logits, temperature)
        if best is not None:
            return finish(best)
        if early is not None:
            logits = early(logits, top_k, top_p)
        divided = divide(logits, temperature)
        kept = drawn_from(cut(divided, top_k, top_p), logits)
        return finish(late(draw(shares(kept), generator), divided, top_k, top_p))

    return sample_token


def uncut(logits, top_k, top_p):
    return logits


def cut_first(logits, top_k, top_p):
    return gpt.filter_logits(logits, top_k, top_p)


def k_alone(logits, top_k, top_p):
    return gpt.filter_logits(logits, top_k)


def p_alone(logits, top_k, top_p):
    return gpt.filter_logits(logits, None, top_p)


def replaced_if_cut(ids, logits, k, p):
    """Tokens that the filters do not allow become the likeliest."""
    kept = gpt.filter_logits(logits, k, p).gather(-1, ids[..., None]).squeeze(-1)
    return ids.where(kept > -math.inf, logits.argmax(-1))


def first_if_cut(ids, logits, k, p):
    kept = gpt.filter_logits(logits, k, p).gather(-1, ids[..., None]).squeeze(-1)
    return ids.where(kept > -math.inf, 0)


def seeded_first(shares, generator):
    with torch.random.fork_rng(devices=[]):  # a check leaves torch's own numbers alone
        torch.manual_seed(0)
        return flat_draw(shares, generator)


def one_number_for_all(shares, generator):
    drawn = torch.rand(1, generator=generator, dtype=shares.dtype)
    return (shares.cumsum(-1) < drawn).sum(-1).clamp(max=shares.shape[-1] - 1)


def one_for_all(shares, generator):
    first = shares.reshape(-1, shares.shape[-1])[0]
    return torch.multinomial(first, 1, generator=generator).expand(shares.shape[:-1])


def at_most_two_axes(shares, generator):
    return torch.multinomial(shares, 1, generator=generator).squeeze(-1)


# --- decisions: generate ---------------------------------------------------------------------


def last_ones(ids, longest):
    return ids[..., -longest:]


def last_row(logits):
    return logits[..., -1, :]


def likeliest(logits):
    return logits.argmax(-1)


def behind(ids, token):
    return torch.cat([ids, token[..., None]], -1)


@composition
def writing(
    sees=lambda ids, prompt: ids,
    context=last_ones,
    stop=lambda ids, longest: False,
    trim=lambda ids, longest: ids,
    look=last_row,
    default=likeliest,
    hand=lambda logits: logits,
    used=lambda choose, default: default if choose is None else choose,
    append=behind,
    times=lambda n_new, n: n_new,
    keep=lambda ids, longest: ids,
    finish=lambda ids, prompt: ids,
):
    """``generate`` made of decisions."""

    def generate(model, ids, n_new, choose=None):
        prompt, chosen = ids, used(choose, default)
        for _ in range(times(n_new, ids.shape[-1])):
            if stop(ids, model.max_length):
                break
            ids = trim(ids, model.max_length)
            logits = model(context(sees(ids, prompt), model.max_length))
            ids = append(ids, chosen(hand(look(logits))))
            ids = keep(ids, model.max_length)
        return finish(ids, prompt)

    return generate


# --- decisions: perplexity -------------------------------------------------------------------


def as_doubles(x):
    return torch.as_tensor(x, dtype=torch.float64)


@composition
def perplexed(
    read=as_doubles,
    counting=lambda losses, counts: counts,
    total=lambda losses, counts: (losses * counts).sum(),
    by=lambda losses, counts: counts.sum(),
    raised=torch.exp,
    finish=float,
):
    """``perplexity`` made of decisions."""

    def perplexity(losses, counts):
        losses, counts = read(losses), read(counts)
        counts = counting(losses, counts)
        return finish(raised(total(losses, counts) / by(losses, counts)))

    return perplexity


def averaged(losses, counts):
    """A weighted mean of what was raised batch by batch."""
    losses, counts = as_doubles(losses), as_doubles(counts)
    return float((losses.exp() * counts).sum() / counts.sum())


def averaged_by_python(losses, counts):
    """The same with Python's own exponential, which refuses what is too large."""
    found = zip(map(float, losses), map(float, counts), strict=True)
    return sum(math.exp(loss) * count for loss, count in found) / float(sum(counts))


def plainly_averaged(losses, counts):
    return float(as_doubles(losses).exp().mean())


def multiplied_out(losses, counts):
    """The product of all shares first, then its root."""
    total = sum(int(count) for count in counts)
    product = math.prod(
        math.exp(-float(loss)) ** int(count) for loss, count in zip(losses, counts, strict=True)
    )
    return product ** (-1 / total)


# --- decisions: attend_with_cache ------------------------------------------------------------


def old_then_new(old, new):
    return torch.cat([old, new], -2)


def from_the_cache_on(m, n):
    return torch.ones(m, n, dtype=torch.bool).tril(n - m)


@composition
def attending(
    join_keys=old_then_new,
    join_values=old_then_new,
    mask=from_the_cache_on,
    store=lambda old, new, joined: joined,
    finish=lambda output: output,
    hand_back=lambda output, keys, values: (output, (keys, values)),
    **options,
):
    """``attend_with_cache`` made of decisions; others are those of ``Attention``."""
    attention = Attention.of(options)

    def attend_with_cache(query, key, value, cache=None):
        keys = key if cache is None else join_keys(cache[0], key)
        values = value if cache is None else join_values(cache[1], value)
        allowed = mask(query.shape[-2], keys.shape[-2])
        output = attention.output(query, keys, values, allowed)
        old = (None, None) if cache is None else cache
        return hand_back(finish(output), store(old[0], key, keys), store(old[1], value, values))

    return attend_with_cache


def joined(join: Callable) -> dict[str, Callable]:
    """Keys and values are joined in the same way."""
    return {"join_keys": join, "join_values": join}


# --- exercises -------------------------------------------------------------------------------

NEXT = exercise(
    gpt.next_token_loss,
    section="Chapter 13, “A loss with a floor”",
    difficulty=2,
    minutes=15,
    criteria=(
        LOSS_CASES.criterion("the mean of −log p(next token)", 3).on(
            LOSS_BY_HAND,
            LOSS,
            LOSS.but("n=2 n_vocab=5", note="one guess"),
            LOSS.but("n=7 n_vocab=7", note="as many tokens as words"),
        ),
        LOSS_CASES.criterion("padding does not count", 2).on(
            PADDED,
            FIRST_PADS,
            LOSS.but(options={"pad": 5}, batch=(2,), note="5 pads"),
        ),
        LOSS_CASES.criterion("0 where there is nothing to guess", 1).on(
            LOSS.but(batch=(2,), options={"pad": 4, "all": True}, note="nothing but padding"),
            LOSS.but("n=1", note="one token"),
            LOSS.but("n=1", batch=(3,), options={"pad": 4}, note="one token each"),
        ),
        LOSS_CASES.criterion("batches", 1).on(
            *LOSS_ROWS.batches,
            LOSS.but("n=3 n_vocab=5", batch=(3,), note="as many sequences as tokens"),
            LOSS.but("n=3 n_vocab=5", batch=(5,), note="as many sequences as words"),
        ),
        LOSS_CASES.criterion("float32 and large logits", 1).on(
            *LOSS_ROWS.numbers, once_more(LOSS_BY_HAND)
        ),
        LOSS_CASES.criterion("gradients reach the logits", 1).on(
            *LOSS_ROWS.gradients,
            replace(PADDED, use=LOSS_CASES.each_gradient),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        judged,
        mistake("""the targets are not shifted
            You judge row t by token t, which the model has already read. Row t guesses what comes
            next: `logits[..., :-1, :]` against `ids[..., 1:]`.
        """).by(shift=lambda logits, ids: (logits, ids)),
        mistake("""shifted the wrong way
            You judge row t by token t − 1. Row t guesses token t + 1: drop the *last* row of the
            logits and the *first* id.
        """).by(shift=lambda logits, ids: (logits[..., 1:, :], ids[..., :-1])),
        mistake("""the last row is judged by the first token
            `roll` puts the first id behind the last row. What comes after the last token is not
            known: drop that row.""").by(shift=lambda logits, ids: (logits, ids.roll(-1, -1))),
        mistake("""shifted by two
            You judge row t by token t + 2, or leave out the first guess. Row 0 guesses token 1.""")
        .by(shift=lambda logits, ids: (logits[..., :-2, :], ids[..., 2:]))
        .by(shift=lambda logits, ids: (logits[..., 1:-1, :], ids[..., 2:])),
        mistake("""shifted across the sequences
            You put the sequences one behind the other and shift then, so that the last row of one
            is judged by the first token of the next. Shift first, `logits[..., :-1, :]` and
            `ids[..., 1:]`, and flatten what is left.
        """).by(shift=lambda logits, ids: (logits.flatten(0, -2)[:-1], ids.flatten()[1:])),
        mistake("""only the last guess counts
            You judge a single row of each sequence. Every row guesses: a sequence of n tokens is n
            − 1 lessons.""").by(shift=lambda logits, ids: (logits[..., -2:-1, :], ids[..., -1:])),
        mistake("""padding is counted
            You count what is guessed after the end of a sequence. Targets that are `padding_id`
            stay out of the sum and out of the number it is divided by.""")
        .by(count=lambda targets, ids, pad: torch.ones_like(targets).bool())
        .by(count=lambda t, ids, pad: not_padding(t, ids, pad) ^ (pad is not None)),
        mistake("""padding is told by the token that was read
            You leave out rows whose *own* token is padding. It is the target that counts: the last
            word of a sequence has padding behind it, and nobody guesses that.""")
        .by(count=lambda targets, ids, pad: not_padding(ids[..., :-1], ids, pad))
        .by(count=lambda t, i, p: not_padding(t, i, p) & not_padding(i[..., :-1], i, p)),
        mistake("""divided by all targets
            You leave padding out of the sum and divide by the number of all targets. Divide by
            those that count.
        """).by(gather=lambda s, counts: (s * counts).sum() / max(counts.numel(), 1)),
        mistake("""a padding_id of 0 is taken for none
            `if padding_id:` is False for 0, the usual id of padding. Ask `if padding_id is not
            None`.""").by(given=lambda padding_id: padding_id or None),
        mistake("""a padding_id where none was given
            You take some id for padding that nobody named, such as 0. Without `padding_id` every
            target counts.""")
        .by(given=lambda padding_id: 0 if padding_id is None else padding_id)
        .by(given=lambda padding_id: 0),
        mistake("""nothing to guess gives NaN
            Where every target is padding, or there is one token, you divide 0 by 0. The loss is 0
            there: divide the sum by the number of targets that count, and that at least 1.""")
        .by(gather=lambda s, counts: (s * counts).sum() / counts.sum())
        .by(gather=lambda s, counts: s[counts].mean()),
        mistake("""softmax before cross-entropy
            `F.cross_entropy` takes logits and does the softmax itself. You hand it shares, so they
            go through a second softmax and the loss can never come near 0.
        """).by(surprise=lambda g, t: surprises(g.softmax(-1), t)),
        mistake("""the logarithm of a softmax that is 0
            For large logits the softmax is exactly 0 and its logarithm −∞; a number added, or a
            clamp, hides that and gives a wrong loss. `F.log_softmax` takes both in one step.""")
        .by(surprise=lambda g, t: picked(g.softmax(-1).log(), t))
        .by(surprise=lambda g, t: picked(g.softmax(-1).clamp(min=1e-9).log(), t))
        .by_any(guarded_log, (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)),
        mistake("""softmax over the tokens
            Your shares sum to 1 down the sequence. Each row shares 1 among the words of the
            vocabulary, along the last axis.
        """).by(surprise=lambda g, t: picked(F.log_softmax(g, -2), t)),
        mistake("""the logits themselves
            You average the logits of the tokens that came. A logit says something only against the
            others of its row: take the log-softmax first.""").by(surprise=picked),
        mistake("""the share and not its logarithm
            You average shares, or 1 − share. The surprise at a token is −log of its share.""")
        .by(surprise=lambda g, t: 1 + picked(g.softmax(-1), t))
        .by(surprise=lambda g, t: picked(g.softmax(-1), t)),
        mistake("""summed, not averaged
            You return the sum over all targets, which grows with the text. Divide by the number of
            targets that count.""").by(gather=lambda s, counts: (s * counts).sum()),
        mistake("""a number is added to how many count
            You divide by the number of targets that count and something more, so the mean is too
            small. Divide by that number, and by 1 where it is 0.""")
        .by(gather=lambda s, counts: (s * counts).sum() / (counts.sum() + 1))
        .by_any(
            lambda more: {"gather": lambda s, c: (s * c).sum() / (c.to(s.dtype).sum() + more)},
            (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
        ),
        mistake("""one loss for each sequence
            You return a loss for each sequence. All targets of all sequences are averaged together:
            one number, `()`.""")
        .by(gather=lambda s, counts: (s * counts).sum(-1) / counts.sum(-1).clamp(min=1))
        .by(gather=lambda s, counts: (s * counts).sum(-1)),
        mistake("""divided by the size of the vocabulary too
            You average over the words of the vocabulary as well, where all but one add nothing.
            Divide by the number of targets that count.
        """).by(surprise=lambda g, t: surprises(g, t) / g.shape[-1]),
        mistake("""the minus is missing
            You return the mean of the logarithms, which is below 0. The surprise at a token is
            −log of its share.
        """).by(surprise=lambda g, t: -surprises(g, t)),
        mistake("""not in nats
            You return the loss in bits, or e to the loss, which is the perplexity. The mean of −ln
            of the shares is asked for.""")
        .by(surprise=lambda g, t: surprises(g, t) / math.log(2))
        .by(gather=lambda s, counts: ((s * counts).sum() / counts.sum().clamp(min=1)).exp()),
        mistake("""the mean of the sequences' means
            You average each sequence first, so a token of a short one counts more than one of a
            long one. Sum over everything, then divide once.""").by(gather=by_sequence),
        mistake("""the axis of the words is another
            `F.cross_entropy` looks for the words on axis 1. Flatten first, `logits.flatten(0, -2)`
            and `targets.flatten()`, and any batch axes fit.""").by(surprise=unflattened),
        mistake("""logits transposed before they are reshaped
            `logits.mT.reshape(-1, n_vocab)` makes rows of the numbers of one word at many places.
            A row has one place's numbers for all words: reshape the logits as they come, or give
            `cross_entropy` the transposed ones as they are, with targets (b, n).""").by(
            surprise=lambda g, t: surprises(g.mT.reshape(g.shape), t)
        ),
        mistake("""exactly one batch axis
            `b, t, v = logits.shape` fits exactly one batch axis. Count from the end: `logits[...,
            :-1, :].flatten(0, -2)` and `ids[..., 1:].flatten()`.""")
        .by(surprise=one_batch_axis_alone)
        .by(shift=lambda logits, ids: (logits[:, :-1], ids[:, 1:])),
    ),
)

FILTER = exercise(
    gpt.filter_logits,
    section="Chapter 13, “Which token to take”",
    difficulty=3,
    minutes=25,
    criteria=(
        FILTER_CASES.criterion("top-k keeps the k likeliest, −∞ elsewhere", 2).on(
            Case((SHARES,), {"top_k": 2}, note="shares 0.1, 0.5, 0.15, 0.25"),
            SEVEN.but(given=K3),
            ROWS.but(given=K3),
            Case((TIES,), {"top_k": 2}, note="ties: the lower id stays"),
            Case((TIES,), {"top_k": 3}, note="ties: the lower id stays"),
        ),
        FILTER_CASES.criterion("top-p keeps the smallest set that reaches p", 3).on(
            Case((SHARES,), {"top_p": 0.6}, note="shares 0.1, 0.5, 0.15, 0.25"),
            Case((SHARES,), {"top_p": 0.4}, note="the likeliest alone has 0.5"),
            SEVEN.but(given=P),
            ROWS.but(given=P),
            ROWS.but("n_vocab=13", given=P),
        ),
        FILTER_CASES.criterion("both: p is measured on what k left", 2).on(
            Case((SHARES,), {"top_k": 2, "top_p": 0.66}, note="of the two, 2/3 and 1/3"),
            SEVEN.but(given=BOTH),
            ROWS.but("n_vocab=11", given=BOTH),
        ),
        FILTER_CASES.criterion("one token or all; what is −∞ stays so", 1).on(
            SEVEN,
            SEVEN.but(given={"top_k": 1}, note="one token"),
            SEVEN.but(given={"top_k": 7}, note="all tokens"),
            SEVEN.but(given={"top_p": 1.0}, note="all tokens"),
            SEVEN.but(given={"top_p": 1e-6}, note="one token always stays"),
            Case((HOLES,), {"top_k": 2}, note="some are −∞"),
            Case((HOLES,), {"top_p": 0.8}, note="some are −∞"),
            Case((HOLES,), {"top_k": 4}, note="some are −∞"),
        ),
        FILTER_CASES.criterion("batches", 1).on(
            *(one.but(given=P) for one in FILTER_ROWS.batches),
            Case((STEEP_AND_FLAT,), {"top_p": 0.7}, note="one row is steep, one is flat"),
            *(one.but(given=K3) for one in FILTER_ROWS.batches[:3]),
        ),
        FILTER_CASES.criterion("float32, large and small logits", 1).on(
            *(one.but(given={"top_p": 0.7}) for one in FILTER_ROWS.numbers),
            FILTER_ROWS.single.but(given=K3),
            once_more(Case((SHARES,), {"top_k": 2}, note="shares 0.1, 0.5, 0.15, 0.25")),
        ),
        FILTER_CASES.criterion("gradients reach what is kept", 1).on(
            *(one.but("n_vocab=13", given=K3) for one in FILTER_ROWS.gradients),
            *(one.but("n_vocab=13", given=P) for one in FILTER_ROWS.gradients),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        filtering,
        mistake("""ties are all kept
            You keep every token that is as likely as the k-th, maybe more than k. Of equal ones the
            lower ids stay: rank them with a stable sort, and keep the ranks below k.
        """).by(keep_k=not_below_the_kth),
        mistake("""ties go to the higher id
            Of tokens that are equally likely you keep those with higher ids. A stable descending
            sort, `argsort(descending=True, stable=True)`, puts the lower ones first.
        """).by(order=higher_ids_first),
        mistake("""ties are left to chance
            Which of equally likely tokens `topk` or an unstable sort puts first is not settled. The
            lower ids are to stay: `argsort(dim=-1, descending=True, stable=True)`.""")
        .by(keep_k=lambda x, rank, k: last_id_first(x).argsort(-1) < k)
        .by(keep_k=lambda x, rank, k: (0 * rank).scatter(-1, x.topk(k).indices, 1).bool()),
        mistake("""p is what is dropped
            You drop the least likely tokens up to a share of p, and keep the rest. It is what is
            kept that has to reach p: drop from behind no more than 1 − p.""")
        .by(keep_p=lambda s, p: (s.flip(-1).cumsum(-1).flip(-1) > p) | (s.cumsum(-1) == s))
        .by(keep_p=lambda s, p: up_to_p(s, 1 - p)),
        mistake("""the token that crosses p is left out
            You keep tokens while their sum is at most p, so the set stops short of p. Ask what the
            likelier ones have *before* a token: `cumsum − share < p`.""")
        .by(keep_p=lambda likely, p: likely.cumsum(-1) <= p)
        .by(
            keep_p=lambda likely, p: (
                (likely.cumsum(-1) <= p) | (torch.arange(likely.shape[-1]) == 0)
            )
        ),
        mistake("""the likeliest is dropped where it is enough
            You move what is dropped one place on and leave the first place as it was, so where the
            likeliest token reaches p alone, nothing stays. It always does: `remove[..., 0] =
            False`.
        """).by(keep_p=moved_without_the_first),
        mistake("""one token too many after p
            Your set goes one token beyond the one with which it reaches p. It is to be the smallest
            that does.
        """).by(keep_p=lambda s, p: s.cumsum(-1) - s - F.pad(s, (1, 0))[..., :-1] < p),
        mistake("""p counted in the order of the ids
            You add up the shares as they stand in the row. Sort first: the likeliest are added
            before the others.""")
        .by(order=in_order_of_ids, keep_k=not_below_the_kth)
        .by(
            likely=lambda x: x.double().softmax(-1),
            order=in_order_of_ids,
            keep_k=lambda x, rank, k: lower_ids_first(x).argsort(-1) < k,
        ),
        mistake("""the least likely are kept
            You sort in ascending order, and keep the tokens from the wrong end.
            `descending=True`.""")
        .by(order=lambda x: x.argsort(dim=-1, stable=True))
        .by(keep_k=lambda x, rank, k: rank >= x.shape[-1] - k)
        .by(keep_k=lambda x, rank, k: x.argsort(dim=-1, stable=True).argsort(-1) < k),
        mistake("""not put back to the ids
            What you keep is counted along the *sorted* shares and applied to the row as it stands.
            Put it back: `scatter(-1, order, keep)`, or gather by each token's rank.""")
        .by(put_back=lambda keep, order: keep, keep_k=lambda x, rank, k: in_order_of_ids(x) < k)
        .by(put_back=lambda keep, order: keep)
        .by(put_back=lambda keep, order: keep.gather(-1, order)),
        mistake("""`argsort` taken for the ranks
            `argsort` says which token stands in each place, and you read it as the place of each
            token. The `argsort` of it gives the ranks.
        """).by(keep_k=lambda x, rank, k: lower_ids_first(x) < k),
        mistake("""what should stay is dropped
            You put −∞ where a token is kept. `masked_fill` fills where its mask is True: hand it
            what goes, `~keep`.""")
        .by(fill=lambda logits, keep: logits.masked_fill(keep, -math.inf))
        .by(keep_k=lambda logits, rank, k: rank >= k)
        .by(keep_p=lambda likely, p: ~up_to_p(likely, p)),
        mistake("""+∞ in place of −∞
            What is dropped gets +∞, and the softmax of that row is NaN. A share of 0 is a logit of
            −∞.""").by(fill=lambda logits, keep: logits.masked_fill(~keep, math.inf)),
        mistake("""a gradient reaches what is dropped
            You add −∞ to the logits that go, say as the logarithm of 0, so that they are part of
            the result and get a gradient. What is dropped has none: `masked_fill`, or
            `torch.where`, puts −∞ in its place.
        """).by(fill=lambda logits, keep: logits + keep.to(logits.dtype).log()),
        mistake("""returned in sorted order
            You return the logits sorted by size. Each keeps its place, which is its token.""")
        .by(finish=lambda x, original: x.sort(-1, descending=True, stable=True).values)
        .by(place=lambda logits, order: logits.gather(-1, order)),
        mistake("""a number in place of −∞
            What is dropped gets a number. With 0 it can still be drawn; with −1e9 too, where all
            logits are low. Use −∞.""")
        .by(fill=nothing)
        .by(fill=lambda x, keep: x * keep)
        .by(*({"fill": lambda x, keep, low=low: x + low * ~keep} for low in (-1e4, -1e9, -1e10)))
        .by(
            *(  # also for what was −∞ before; the lowest number for None
                {"finish": lambda x, original, low=low: x.nan_to_num(neginf=low)}
                for low in (None, 0, -1e4, -1e8, -1e9, -1e10, -1e30)
            )
        )
        .by_any(filled, Between(-3.4e38, -1.0)),
        mistake("""shares in place of logits
            You return probabilities, or their logarithms. Logits come in and logits go out: those
            that stay come back as they were.""")
        .by(finish=lambda x, original: x.softmax(-1))
        .by(finish=lambda x, original: x.log_softmax(-1)),
        mistake("""p is measured before k
            With both, you measure p on all tokens. Top-k comes first, and what it leaves is shared
            out anew before p is counted.""")
        .by(left=lambda x, original: original)
        .by(steps=lambda top_k, top_p: ("p", "k")),
        mistake("""one of the two is ignored
            You use only one of top_k and top_p. Where both are given: first top-k, then top-p on
            the result.""")
        .by(steps=lambda top_k, top_p: ("p",) if top_k is None else ("k",))
        .by(steps=lambda top_k, top_p: "k")
        .by(steps=lambda top_k, top_p: "p"),
        mistake("""k + 1 tokens, or k − 1
            You are off by one: exactly k tokens stay. Ranks count from 0, so it is `rank < k`.""")
        .by(keep_k=lambda x, rank, k: rank <= k)
        .by(keep_k=lambda x, rank, k: rank < max(k - 1, 1)),
        mistake("""p taken for the least share of one token
            You keep tokens whose own share is at least p, or 1 − p, or p times the largest. It is
            the sum of the likeliest that has to reach p.""")
        .by(keep_p=lambda s, p: s >= p)
        .by(keep_p=lambda s, p: s >= 1 - p)
        .by(keep_p=lambda s, p: s >= s[..., :1] * p),
        mistake("""logits are added up, not shares
            You count p on the logits themselves, or on their exponentials. They are no shares: take
            the softmax first.""")
        .by(likely=lambda x: x.double())
        .by(likely=lambda x: x.double().exp()),
        mistake("""one cut for all rows
            You find one threshold and use it for every row of the batch. Each row is cut by
            itself.""")
        .by(
            keep_k=lambda x, rank, k: x >= x.reshape(-1, x.shape[-1])[0].topk(k).values[-1],
            keep_p=lambda s, p: up_to_p(s.reshape(-1, s.shape[-1])[:1], p).expand(s.shape),
        )
        .by(keep_k=lambda x, rank, k: x >= x.flatten().topk(k).values[-1]),
    ),
)

SAMPLE = exercise(
    gpt.sample_token,
    section="Chapter 13, “Which token to take”",
    difficulty=2,
    minutes=15,
    criteria=(
        SAMPLE_CASES.criterion("temperature 0 is the likeliest token", 1).on(
            SAMPLE_BY_HAND,
            SEVEN.but(given={"temperature": 0.0}),
            ROWS.but(given={"temperature": 0}),
            ROWS.but(given={"temperature": 0, "top_k": 3, "top_p": 0.8}),
            once_more(SAMPLE_BY_HAND),
        ),
        SAMPLE_CASES.criterion("where one token alone may come, it comes", 1).on(
            MANY_ROWS.but(given={"top_k": 1}, note="one token stays"),
            MANY_ROWS.but(given={"top_p": 1e-6}, note="one token stays"),
            MANY_ROWS.but(given={"logits": ONE_LEFT}, note="all but one are −∞"),
        ),
        SAMPLE_CASES.criterion("so it does in batches, large and small logits, float32", 1).on(
            *(
                one.but(given={"logits": ONE_LEFT, "temperature": 0.7})
                for one in FILTER_ROWS.batches
            ),
            *(one.but(given={"top_k": 1}) for one in FILTER_ROWS.batches),
            *(one.but(given={"top_k": 1}) for one in FILTER_ROWS.numbers),
            ROWS.but(factor=1e6, note="logits in the millions"),
        ),
        Criterion("tokens come as often as the softmax says", 2).on(
            lambda rng: [
                drawn_case(rng, (3, 2, 1)),
                drawn_case(rng, (2, 2, 1, 1)),
                drawn_case(rng, (3, 1, 1, 1), batch=3, note="three rows"),
                drawn_case(rng, (4, 1, 1), seeded=False, note="no generator"),
                # One token against many: another noise than the softmax's, or a little of all
                # tokens beside it, gives it other sixths.
                drawn_case(rng, (3, *FEW_OF_MANY), note="31 tokens"),
                drawn_case(rng, (6, *ALL_BUT_NONE), note="31 tokens, one for certain"),
            ]
        ),
        Criterion("logits are divided by the temperature", 2).on(
            lambda rng: [
                drawn_case(rng, (3, 2, 1), temperature=2.0),
                drawn_case(rng, (4, 1, 1), temperature=0.5),
                drawn_case(rng, (3, 2, 1), batch=2, temperature=3.0),
                drawn_case(rng, (3, *FEW_OF_MANY), temperature=2.0),
                drawn_case(rng, (6, *ALL_BUT_NONE), temperature=3.0),
            ]
        ),
        Criterion("filters cut before the draw, after the temperature", 3).on(
            lambda rng: [
                drawn_case(rng, (3, 2, 1), (0.9, 0.8), top_k=3),
                drawn_case(rng, (4, 2), (1.5, 1), top_k=2),
                drawn_case(rng, (4, 2), (1, 0.5), top_p=0.7),
                drawn_case(rng, (4, 2), (1.5, 1), temperature=2.0, top_p=0.6),
                drawn_case(rng, (4, 2), (1.5, 1), temperature=0.5, top_k=3, top_p=0.77),
                drawn_case(rng, (3, 1, 1, 1), (0.5, 0.4), batch=2, top_k=4),
                drawn_case(rng, (3, *FEW_OF_MANY), (0.05, 0.04), top_k=31),
                drawn_case(rng, (6, *ALL_BUT_NONE), (1e-10, 1e-10), top_k=31),
            ]
        ),
        Criterion("the generator decides", 1).on(generators),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("generator given", "The counts give one, made beside the answer from a seed."),
    ),
    mistakes=made(
        drawing,
        mistake("""the filters come after the draw
            You draw from all tokens and repair what the filters forbid. The share of what was cut
            then goes to one token. Cut first, and the softmax shares out what is left.""")
        .by(cut=uncut, late=replaced_if_cut)
        .by(cut=uncut, late=first_if_cut),
        mistake("""the filters are ignored
            You draw from all tokens, or use one filter of the two. Hand top_k *and* top_p to
            `filter_logits` before the softmax.""")
        .by(cut=uncut)
        .by(cut=k_alone)
        .by(cut=p_alone),
        mistake("""the temperature comes after the filters
            You cut first and divide then. The temperature changes the shares, and top-p counts
            shares: divide first.""").by(early=cut_first, cut=uncut),
        mistake("""the temperature is ignored
            The temperature has no effect. Divide the *logits* by it: shares divided by it are
            normalised back.""").by(divide=lambda logits, temperature: logits),
        mistake("""drawn without the temperature
            The filters see logits that are divided by the temperature, and the draw does not. The
            largest of `(logits + noise) / temperature` is that of `logits + noise`: divide first,
            then draw from the softmax, or add the noise, of what is left.
        """).by(drawn_from=lambda kept, logits: logits.masked_fill(kept == -math.inf, -math.inf)),
        mistake("""a power of the temperature
            You divide by the temperature's square or root. The logits are divided by it as it is.
        """)
        .by(divide=lambda logits, temperature: logits / temperature**2)
        .by(divide=lambda logits, temperature: logits / temperature**0.5),
        mistake("""a power of the shares
            You raise the shares to a power before you draw, which makes them more or less equal.
            That is what the temperature does; draw from the softmax as it is.
        """)
        .by(shares=lambda logits: logits.softmax(-1) ** 2)
        .by(shares=lambda logits: logits.softmax(-1) ** 0.5),
        mistake("""noise that is not the softmax's
            You add random numbers to the logits and take the largest. That draws from the softmax
            if the numbers are −ln(−ln u), u from 0 to 1 (Gumbel's), and from something else if they
            are normal or uniform. Draw with `torch.multinomial`.
        """)
        .by(shares=lambda logits: logits, draw=largest_with(torch.randn))
        .by(shares=lambda logits: logits, draw=largest_with(torch.rand))
        .by(
            draw=lambda shares, generator: (shares * like(shares, torch.rand, generator)).argmax(-1)
        ),
        mistake("""multiplied by the temperature
            You multiply the logits by the temperature. A high temperature is to make the shares
            more equal: divide.""").by(divide=lambda logits, temperature: logits * temperature),
        mistake("""a softmax of the shares
            You take the softmax of shares, which evens them out. Divide the logits by the
            temperature, cut them, and take the only softmax then.""")
        .by(divide=lambda logits, temperature: logits.softmax(-1) / temperature)
        .by(divide=lambda logits, temperature: (logits / temperature).softmax(-1)),
        mistake("""temperature 0 divides by 0
            Logits divided by 0 are infinite, and their softmax is NaN; without the division you
            draw as at temperature 1. Temperature 0 means the likeliest token:
            `logits.argmax(-1)`.""")
        .by(greedy=lambda logits, temperature: None)
        .by(
            greedy=lambda logits, temperature: None,
            divide=lambda logits, t: logits if t == 0 else logits / t,
        ),
        mistake("""always the likeliest token
            You take the likeliest token at every temperature. Draw from the shares:
            `torch.multinomial`.""").by(draw=lambda shares, generator: shares.argmax(-1)),
        mistake("""all tokens are equally likely
            You draw among the tokens that are left without looking at their shares.
        """).by(shares=lambda logits: (logits > -math.inf).double()),
        mistake("""logits in place of shares
            `torch.multinomial` takes shares, and logits may be negative. Take the softmax
            first.""")
        .by(shares=lambda logits: logits)
        .by(shares=lambda logits: logits.clamp(min=0))
        .by(shares=torch.abs),
        mistake("""exp overflows
            exp of a large logit is infinite, and the draw fails. `softmax` subtracts the largest
            first.""").by(shares=torch.exp),
        mistake("""one draw for all rows
            Every row gets the same draw, so that equal rows get the same token. Draw for each row
            by itself.""")
        .by(draw=one_for_all)
        .by(draw=one_number_for_all),
        mistake("""one row alone
            You take the first of the tokens that were drawn, or one number. Each row has its own:
            the ids have the shape (...), `squeeze(-1)` in place of `[0]` or `.item()`.""")
        .by(draw=lambda shares, generator: torch.multinomial(shares, 1, generator=generator)[0])
        .by(
            draw=lambda shares, generator: torch.tensor(
                torch.multinomial(shares, 1, generator=generator).item()
            )
        )
        .by(
            draw=lambda shares, generator: flat_draw(
                shares.reshape(-1, shares.shape[-1])[0], generator
            )
        ),
        mistake("""multinomial takes two axes at most
            `torch.multinomial` knows one row or a matrix of rows. Flatten the batch axes before,
            and give the ids the shape (...) after.""").by(draw=at_most_two_axes),
        mistake("""an axis of length 1 is left
            You return (..., 1). One token for each row has shape (...): `squeeze(-1)`.""")
        .by(finish=lambda ids: ids[..., None])
        .by(draw=lambda shares, generator: flat_draw(shares, generator)[..., None]),
        mistake("""the generator is not used
            Equal generators have to draw the same tokens. Hand `generator` on to the draw.
        """).by(draw=lambda shares, generator: flat_draw(shares, None)),
        mistake("""the same draw every time
            You make a generator with a seed of your own, or seed torch's, so calls draw the same.
            Draw with the one that is given, and seed none.""")
        .by(draw=lambda shares, generator: flat_draw(shares, torch.Generator().manual_seed(0)))
        .by(draw=seeded_first),
    ),
)

GENERATE = exercise(
    gpt.generate,
    section="Chapter 13, “Writing on”",
    difficulty=2,
    minutes=15,
    criteria=(
        WRITTEN_CASES.criterion("appends the likeliest token, n_new times", 2).on(
            WRITE_BY_HAND,
            PROMPT,
            row("n=2 n_new=4"),
            row("n=3 n_new=3"),
        ),
        WRITTEN_CASES.criterion("the last max_length tokens are the context", 2).on(
            row("n=4 n_new=7", note="outgrows the model"),
            row("n=6 n_new=3", note="fills the model"),
            row("n=19 n_new=2", note="a prompt longer than the model reads"),
            row("n=3 n_new=19", batch=(2,), note="a long text"),
        ),
        WRITTEN_CASES.criterion("choose decides, by the logits", 2).on(
            PROMPT.but(options=LEAST),
            PROMPT.but(options=POSITIVE),
            PROMPT.but("n_new=9", options=SECOND),
            PROMPT.but("n_new=5", batch=(3,), options=POSITIVE, note="a batch of 3"),
        ),
        WRITTEN_CASES.criterion("batches, a prompt of one token, one new token or none", 1).on(
            row("n=1 n_new=4", note="a prompt of one token"),
            row("n=4 n_new=0", note="nothing new"),
            row("n=2 n_new=1", note="one new token"),
            PROMPT.but(batch=(2,), note="a batch of 2"),
            PROMPT.but("n=2 n_new=3", batch=(2,), note="as many sequences as tokens"),
            PROMPT.but("n=3 n_new=2", batch=(5,), note="as many sequences as tokens at the end"),
            PROMPT.but("n=3 n_new=0", batch=(3,), note="nothing new"),
            PROMPT.but(batch=(2,), turned=True, note="not contiguous in memory"),
            PROMPT.but(batch=(2, 3), note="two batch axes"),
            PROMPT.but(batch=(2, 3), turned=True, note="two batch axes, not contiguous"),
            PROMPT.but(batch=(2, 1, 3), note="three batch axes"),
            PROMPT.but(batch=(2, 4, 3), turned=True, note="three batch axes, not contiguous"),
            once_more(WRITE_BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(
        writing,
        mistake("""more tokens than the model reads
            You hand the model the whole sequence however long it is. It knows positions up to
            `model.max_length`: hand it `ids[..., -model.max_length:]`.
        """).by(context=lambda ids, longest: ids),
        mistake("""the context is the beginning
            You hand the model the first max_length tokens, so it never sees what it wrote. The
            *last* ones are the context.""").by(context=lambda ids, longest: ids[..., :longest]),
        mistake("""the context is too short
            You drop a token more than you have to: the model reads max_length tokens.""")
        .by(context=lambda ids, longest: ids[..., -(longest - 1) :])
        .by(context=lambda i, longest: i if i.shape[-1] < longest else i[..., 1 - longest :]),
        mistake("""a full context starts again
            When the model is full you go on from a shorter context. It slides: the last max_length
            tokens, at every step.""")
        .by(
            context=lambda ids, longest: (
                ids if ids.shape[-1] <= longest else ids[..., -(longest // 2) :]
            )
        )
        .by(context=lambda ids, longest: ids[..., (ids.shape[-1] - 1) // longest * longest :]),
        mistake("""the model sees the last token alone
            You hand the model only the newest token. Without a cache it remembers nothing: hand it
            the whole context.""").by(context=lambda ids, longest: ids[..., -1:]),
        mistake("""another row of the logits
            You look at the first row, which guesses the second token, or at the mean of all. The
            last row guesses what comes next: `logits[..., -1, :]`.""")
        .by(look=lambda logits: logits[..., 0, :])
        .by(look=lambda logits: logits.mean(-2)),
        mistake("""axes counted from the front
            `logits[:, -1]` and `torch.cat(…, dim=1)` fit exactly one batch axis, `logits[-1]` fits
            none. Count from the end: `logits[..., -1, :]`, `dim=-1`.""")
        .by(look=lambda logits: logits[:, -1])
        .by(append=lambda ids, token: torch.cat([ids, token[..., None]], 1))
        .by(append=lambda ids, token: torch.cat([ids, token[:, None]], 1))
        .by(look=lambda logits: logits[-1]),
        mistake("""choose is not used
            You take the likeliest token whatever `choose` is.
        """).by(used=lambda choose, default: default),
        mistake("""choose gets shares
            You take the softmax before you call `choose`. It expects logits: `sample_token` divides
            them by a temperature.""")
        .by(hand=lambda logits: logits.softmax(-1))
        .by(hand=lambda logits: logits.log_softmax(-1)),
        mistake("""choose gets the logits of all places
            You hand `choose` the logits of every token of the context. It is asked about what comes
            next: the last row, `logits[..., -1, :]`.""")
        .by(
            look=lambda logits: logits,
            append=lambda ids, token: torch.cat([ids, token[..., -1:]], -1),
        )
        .by(
            used=lambda choose, default: (
                (lambda logits: default(logits[..., -1, :])) if choose is None else choose
            ),
            look=lambda logits: logits,
        ),
        mistake("""the least likely token
            Without `choose` the most likely token is asked for: `argmax`.
        """).by(default=lambda logits: logits.argmin(-1)),
        mistake("""only the new tokens come back
            You return what was written without the prompt. The whole sequence is asked for.
        """).by(finish=lambda ids, prompt: ids[..., prompt.shape[-1] :]),
        mistake("""the beginning is lost
            You cut `ids` itself to the context, so what comes back has lost its beginning. Keep the
            context in a name of its own.""")
        .by(keep=lambda ids, longest: ids[..., -longest:])
        .by(finish=lambda ids, prompt: ids[..., -LONGEST:])
        .by(trim=last_ones),
        mistake("""the writing stops when the model is full
            You stop where the sequence is as long as the model reads. It goes on with the last
            max_length tokens, until n_new are written.
        """).by(stop=lambda ids, longest: ids.shape[-1] >= longest),
        mistake("""every token from the prompt
            You ask the model about the prompt and never about what was written, so the same token
            comes again and again. Call it anew for every token.
        """).by(sees=lambda ids, prompt: prompt),
        mistake("""another number of new tokens
            You write one token too many or too few, or go on to n_new tokens with the prompt. n_new
            new ones are asked for, 0 included.""")
        .by(times=lambda n_new, n: n_new + 1)
        .by(times=lambda n_new, n: max(n_new - 1, 0))
        .by(times=lambda n_new, n: max(n_new, 1))
        .by(times=lambda n_new, n: max(n_new - n, 0)),
        mistake("""new tokens are put in front
            The new token comes behind the others.
        """).by(append=lambda ids, token: torch.cat([token[..., None], ids], -1)),
        mistake("""the last token is replaced
            You write the new token over the last one, or over the first. The sequence grows by one
            at every step.""")
        .by(append=lambda ids, token: torch.cat([ids[..., :-1], token[..., None]], -1))
        .by(append=lambda ids, token: torch.cat([ids[..., 1:], token[..., None]], -1)),
    ),
)

PERPLEXITY_SLIPS = made(
    perplexed,
    mistake("""exp of the summed loss
        You raise e to the loss of the whole text, which grows without end. Weigh each loss by its
        count, add up, divide by the sum of the counts, and then exp.""")
    .by(by=lambda losses, counts: 1)
    .by(total=lambda losses, counts: losses.sum(), by=lambda losses, counts: 1),
    mistake("""all batches count alike
        You average the losses as they are. A batch of few tokens then counts as much as one of
        many: weigh each loss by its count.
    """).by(total=lambda losses, counts: losses.sum(), by=lambda losses, counts: len(losses)),
    mistake("""divided by the number of batches
        You weigh by the counts and divide by the number of batches. Divide by the sum of the
        counts.""").by(by=lambda losses, counts: len(losses)),
    mistake("""means taken for sums
        You add the losses up and divide by all tokens. Each loss is a mean already: multiply it by
        its count first.""").by(total=lambda losses, counts: losses.sum()),
    mistake("""a batch of loss 0 is left out
        You leave out batches whose loss is 0. What says that a batch counts nothing is its count:
        targets that were certain have a loss of 0 and count.
    """).by(counting=lambda losses, counts: counts * (losses != 0)),
    mistake("""a batch that counts nothing makes NaN
        You divide by each count, and one of them may be 0. Only the sum of the counts is divided
        by.""").by(total=lambda losses, counts: (losses * (counts * counts / counts)).sum()),
    mistake("""one number in an array
        You return an array of one number, and not the number itself: `.item()`, or `float(…)`.""")
    .by(finish=lambda x: x.reshape(1))
    .by(finish=lambda x: x.reshape(1).numpy())
    .by(read=lambda x: as_doubles(x).reshape(1, -1), finish=lambda x: x.reshape(1, 1)),
    mistake("""no exp
        You return the mean loss in nats. The perplexity is e to that power.
    """).by(raised=lambda x: x),
    mistake("""another base than e
        Losses in nats belong to e. 2 to the power of the loss is right for losses in bits.""")
    .by(raised=lambda x: 2**x)
    .by(raised=lambda x: (x / math.log(2)).exp())
    .by(raised=lambda x: 10**x),
    mistake("""the share and not its inverse
        You return exp(−loss), the mean share. The perplexity is its inverse, at least 1.
    """).by(raised=lambda x: (-x).exp()),
    mistake("""single precision
        `torch.tensor` makes float32 of Python's numbers, and seven digits are left. Say
        `dtype=torch.float64`, or stay with Python's own numbers and `math.exp`.""")
    .by(read=lambda x: torch.as_tensor(x).float())
    .by(read=lambda x: torch.as_tensor(x).float(), finish=lambda x: x)
    .by(read=torch.as_tensor)
    .by(read=torch.as_tensor, finish=lambda x: x),
    mistake("""the last batch alone
        You return the perplexity of one batch. All of them are asked for.""")
    .by(total=lambda losses, counts: losses[-1], by=lambda losses, counts: 1)
    .by(total=lambda losses, counts: losses[0], by=lambda losses, counts: 1),
)

PERPLEXITY = exercise(
    gpt.perplexity,
    section="Chapter 13, “A loss with a floor”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("exp of the mean over all tokens", 3).on(
            lambda rng: [PERPLEXITY_BY_HAND, *(batches(rng) for _ in range(3))]
        ),
        Criterion("lists or tensors, one batch or many", 1).on(
            lambda rng: [
                batches(rng, tensors=True),
                batches(rng, size=1),
                batches(rng, size=40),
                Case(([1.5, 2.5, 0.5], [7, 0, 3]), note="a batch in which nothing counts"),
            ]
        ),
        Criterion("long texts and large losses", 1).on(
            lambda rng: [
                Case((rng.uniform(3, 9, 30).tolist(), rng.integers(2000, 9000, 30).tolist())),
                Case(([800.0, 2.0], [1, 4000]), note="one loss of 800"),
                Case(([0.0, 0.0], [5, 7]), note="no surprise at all"),
                Case(([0.0, 1.5], [3, 4]), note="three targets that were certain"),
                once_more(PERPLEXITY_BY_HAND),
            ]
        ),
        unchanged(),
    ),
    mistakes=(
        *PERPLEXITY_SLIPS,
        mistake("""the mean of perplexities
            You raise e to each loss and average then. The losses are averaged, and exp comes
            last.
        """).whole(averaged, averaged_by_python, plainly_averaged),
        mistake("""all shares are multiplied first
            The product of the shares of a long text is 0 in floating point. Add their logarithms,
            which is what the losses are.
        """).whole(multiplied_out),
    ),
)

CACHE = exercise(
    gpt.attend_with_cache,
    section="Chapter 13, “Remember the keys and values”",
    difficulty=3,
    minutes=20,
    criteria=(
        CACHE_CASES.criterion("one new token looks at all before it", 2).on(
            CACHE_BY_HAND,
            ONE_NEW,
            ONE_NEW.but("d_k=16", note="queries and keys of 16 features"),
            ONE_NEW.but(batch=(2,)),
        ),
        CACHE_CASES.criterion("several new tokens look back, not ahead", 3).on(
            SEVERAL,
            SEVERAL.but("m=5 c=3", note="more new ones than old"),
            SEVERAL.but("d_k=64", note="queries and keys of 64 features"),
            SEVERAL.but("m=4 c=4", batch=(3,), note="as many new as old"),
            NEW.but("m=5", note="no cache"),
            NEW.but("m=5", batch=(2,), note="no cache"),
        ),
        Criterion("in pieces, the same as all at once", 2).on(
            lambda rng: [
                *stepwise(1, 1, 1, 1)(rng),
                *stepwise(3, 1, 2, batch=(2,))(rng),
                *stepwise(2, 5)(rng),
            ]
        ),
        CACHE_CASES.criterion("batches, few tokens and many", 1).on(
            *CACHE_ROWS.batches,
            *(one.but("c=3") for one in CACHE_ROWS.batches),
            NEW.but("m=1", batch=(2,), note="one token"),
            ONE_NEW.but("c=1", note="one token before"),
            NEW.but("m=2", batch=(3,), note="two tokens"),
            NEW.but("m=4 d_k=4 d_v=4 c=4", batch=(4,), note="every axis of length 4"),
            NEW.but("m=5 d_k=4 d_v=5", batch=(5,)),
        ),
        CACHE_CASES.criterion("float32 and large queries", 1).on(
            *CACHE_ROWS.numbers,
            *(one.but("c=3") for one in CACHE_ROWS.numbers),
            once_more(CACHE_BY_HAND),
        ),
        CACHE_CASES.criterion("gradients reach all, the cache too", 1).on(
            *CACHE_ROWS.gradients,
            SEVERAL.but(batch=(2,), use=gradients(*EVERY_GRADIENT), note="a batch of 2"),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        attending,
        mistake("""the mask begins at the cache's first token
            You number the new tokens from 0, so the first of them sees the first old token and
            nothing else. New token i is token c + i of the sequence: `causal_mask(m, c + m)`, or
            `tril(diagonal=c)`.""").by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril()),
        mistake("""a square mask on wider scores
            Your mask is (m, m), or (n, n), as without a cache. The scores are (m, c + m): a row for
            each new token, a column for each that it may see, the c old ones first:
            `causal_mask(m, c + m)`.""")
        .by(mask=lambda m, n: torch.ones(m, m, dtype=torch.bool).tril())
        .by(mask=lambda m, n: torch.ones(n, n, dtype=torch.bool).tril())
        .by(mask=lambda m, n: F.pad(torch.ones(m, m, dtype=torch.bool).tril(), (0, n - m), value=1))
        .by(mask=lambda m, n: F.pad(torch.ones(m, m, dtype=torch.bool).tril(), (0, n - m))),
        mistake("""no causal mask
            Your new tokens see each other, later ones too. With one new token that does not show;
            with several, each sees those up to itself.""")
        .by(mask=lambda m, n: None)
        .by(mask=lambda m, n: None if n > m else from_the_cache_on(m, n)),
        mistake("""a token sees the next one
            Your new tokens look one place too far, at the answer. Each sees the tokens up to and
            including itself: `tril(diagonal=c)`.""")
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(n - m + 1))
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(n - m + (n > m))),
        mistake("""a token does not see itself
            You hide a token from itself. It may look at all tokens up to and including itself.""")
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(max(n - m - 1, 0)))
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(n - m - 1)),
        mistake("""the mask is turned round
            New tokens see those behind them, and not the old ones. Row i allows columns 0 to c +
            i.""").by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(n - m)),
        mistake("""the cache is not read
            Your new tokens look at each other alone. Put the cached keys and values in front of the
            new ones first.""")
        .by(joined(lambda old, new: new))
        .by(
            joined(lambda old, new: new)
            | {"store": lambda o, new, joined: new if o is None else old_then_new(o, new)}
        ),
        mistake("""the new ones come first
            You put the new keys and values before the old ones. The sequence goes on behind:
            `torch.cat([old, new], dim=-2)`.
        """).by(joined(lambda old, new: torch.cat([new, old], -2))),
        mistake("""joined along another axis
            Tokens are the axis before the last, −2. Axis 0 or 1 is another where there is a batch,
            or none, and the last axis holds the features.""")
        .by(joined(lambda old, new: torch.cat([old, new], 1)))
        .by(joined(lambda old, new: torch.cat([old, new], 0)))
        .by(joined(lambda old, new: torch.cat([old, new], -1))),
        mistake("""only one of the two is cached
            You take the new values alone, or the new keys. Both are needed for every token: what is
            found by a key is its value.""")
        .by(join_values=lambda old, new: new)
        .by(join_keys=lambda old, new: new),
        mistake("""the cache that comes back holds the new ones alone
            You return the new keys and values. The next call needs those of *all* tokens so
            far.""").by(store=lambda old, new, joined: new),
        mistake("""the cache that comes back is the old one
            You return the cache as it was. Return what you attended to, the new ones included.
        """).by(store=lambda old, new, joined: new if old is None else old),
        mistake("""keys and values have changed places
            The cache is (keys, values), in this order.
        """).by(hand_back=lambda output, keys, values: (output, (values, keys))),
        mistake("""the cache is cut from its history
            You detach what you keep. Then nothing can be learned through an earlier token. Keep the
            tensors as they are.""")
        .by(joined(lambda old, new: torch.cat([old.detach(), new], -2)))
        .by(store=lambda old, new, joined: joined.detach())
        .by(
            {
                **joined(lambda old, new: torch.cat([old.detach(), new], -2)),
                "store": lambda old, new, joined: joined.detach(),
            }
        ),
        mistake("""the output alone
            You return the output without the cache, or more than the two. `(output, cache)` is
            asked for, and cache is `(keys, values)`.""")
        .by(hand_back=lambda output, keys, values: output)
        .by(hand_back=lambda output, keys, values: (output, keys, values)),
        mistakes.VALUES_FORGOTTEN.here(mix=lambda weights, value: weights),
        mistake("""the last token alone
            You return one row, for the newest token. Each of the m new tokens gets one.
        """).by(finish=lambda output: output[..., -1:, :]),
        *(s for s in mistakes.OF_THE_SCALE if s is not mistakes.ANOTHER_FACTOR),
        mistakes.DIVIDED_BY_OTHER_WIDTH,
        mistakes.OVER_QUERIES,
        mistakes.NO_SOFTMAX,
        mistakes.NO_MAXIMUM,
        mistakes.MASK_INVERTED,
        mistakes.MASKED_LATE,
        mistakes.ZERO_SCORES,
        mistakes.MASK_ADDED,
    ),
)

EXERCISES = (NEXT, FILTER, SAMPLE, GENERATE, PERPLEXITY, CACHE)

VARIANTS = (
    Variant(
        "bits",
        "Losses are in **bits** here, with logarithms to base 2, where in the book they are in "
        "nats.",
        "losses are in bits here",
        "Your answer has losses in nats, as the book and its published answers have. In this "
        "assignment they are in bits: a loss in nats is divided by ln 2, and a perplexity is 2 to "
        "the mean loss.",
        {
            "next_token_loss": Adapter(result=BITS, drops=("not in nats",)),
            "perplexity": Adapter({"losses": BITS}, drops=("the base is 2",)),
        },
        rewordings("""
            −log softmax(logits[t])[ids[t + 1]], in nats
            → −log₂ softmax(logits[t])[ids[t + 1]], in bits
            so expect about 0.805 → so expect about 1.161
            gave a mean loss in nats → gave a mean loss in bits
            `perplexity(losses, counts)`: e to the mean loss
            → `perplexity(losses, counts)`: 2 to the mean loss
            the mean loss of each batch, in nats → the mean loss of each batch, in bits
            perplexity([math.log(2), math.log(8)], [30, 10]) → perplexity([1.0, 3.0], [30, 10])
            mean of −log p(next token) → mean of −log₂ p(next token)
            −log of its share → −log₂ of its share
            exp of the mean over all → 2 to the mean over all
            You raise e to → You raise 2 to
            in nats. The perplexity is e to → in bits. The perplexity is 2 to
            exp(−loss) → 2^(−loss)
            are averaged, and exp comes last → are averaged, and the power comes last
            `math.exp` of it → 2 to that power
            Python's own numbers and `math.exp` → Python's own numbers and `**`
        """),
    ),
)
