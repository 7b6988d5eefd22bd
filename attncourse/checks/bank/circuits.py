"""The exercises of chapter 19: masks that keep a sink, edges that are cut, a lens, a patch.

The model of ``patched`` is chapter 18's, with weights of order one, three layers, and fewer heads
of keys and values than of queries.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from attncourse import circuits
from attncourse.checks.bank.masking import MADE, OF_WHAT_COMES_BACK, band, returned
from attncourse.checks.callers import call_on_llama
from attncourse.checks.callers.ablation import shapes_of
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.conventions import forbidden
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.modules import State, tensor, uniform_values
from attncourse.checks.writing.recipes import made, mistake
from attncourse.llama import Llama, LlamaConfig


def as_it_is(value):
    return value


# --- cases: sink_mask ----------------------------------------------------------------------------

SINK_BY_HAND = Case((6, 2, 1))


def refused(args: tuple, note: str) -> Case:
    return Case(args, note=note, raises=ValueError)


# --- cases: cut_edges ----------------------------------------------------------------------------


def whole_row(query: int, n: int) -> tuple[tuple[int, int], ...]:
    return tuple((query, key) for key in range(n))


EDGE_CASES = CaseTable({"scores": "... m n"})
EDGE_ROWS = standard(EDGE_CASES)
TWO = [(0, 1), (3, 2)]
# Two of one row, one whose turned pair is there too, none in the first or the last row.
SEVERAL = [(1, 2), (1, 4), (3, 0), (2, 3)]


def with_edges(edges, *rows):
    """The table's cases, each with these edges behind its scores."""

    def cases(rng: Rng) -> list[Case]:
        found = []
        for one in EDGE_CASES(*rows)(rng):
            m, n = one.args[0].shape[-2:]
            kept = [(query % m, key % n) for query, key in edges]
            found.append(Case((one.args[0], list(dict.fromkeys(kept))), note=one.note, use=one.use))
        return found

    return cases


EDGE_BY_HAND = Case(
    (tensor([[0, 0, 0], [math.log(2), 0, 0]]), [(0, 1), (1, 2)]), note="one edge of each row"
)
EMPTY_ROW = Case((tensor([[1, 2, 3], [0, 5, 1]]), [(1, 0), (1, 1), (1, 2)]), note="a whole row")
NO_KEY = tensor([[-math.inf, -math.inf, -math.inf], [0, 5, -math.inf]])
HIDDEN_ROWS = [
    Case((NO_KEY, []), note="a row of −∞, no edge"),
    Case((NO_KEY, [(0, 1)]), note="a row of −∞, an edge of it"),
]
ONE_KEY = Case((tensor([[1], [2]]), [(1, 0)]), note="one key")


def hidden_keys(rng: Rng) -> list[Case]:
    """Scores under a causal mask, −∞ above the diagonal."""
    cases = []
    for n, edges in ((5, [(4, 0), (2, 1)]), (4, [(0, 0), (3, 3)])):
        scores = uniform_values(rng, n, n)
        scores[torch.ones(n, n, dtype=torch.bool).triu(1)] = -math.inf
        cases.append(Case((scores, edges), note="−∞ above the diagonal"))
    return cases


# --- cases: logit_lens ---------------------------------------------------------------------------


def gains(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


LENS_CASES = CaseTable({"hidden": "... d", "gain": Drawn("d", gains), "table": "n_vocab d"})
LENS_FLOATS = CaseTable({"hidden": "... d", "gain": "d", "table": "n_vocab d"})
LENS_ROWS, LENS_EACH = standard(LENS_CASES), standard(LENS_FLOATS)
LENS_BY_HAND = Case((tensor([[3, 4], [0, 2]]), tensor([1, 2]), tensor([[1, 0], [0, 1], [1, 1]])))
READ = row("d=5 n_vocab=7", batch=(3,))
FAR = {"hidden": Drawn("... d", lambda rng, shape: rng.normal(size=shape) + 5)}

# --- cases: patched ------------------------------------------------------------------------------

SIZES = {
    "n_vocab": 13, "max_length": 16, "d_model": 12, "n_heads": 3, "n_kv_heads": 1, "n_layers": 3,
    "d_ff": 7, "base": 100.0,
}  # fmt: skip


def state_of_llama(rng: Rng, config: dict) -> State:
    """Parameters of order one for a ``Llama``; of tied layers the first one's."""
    state = {}
    for name, shape in shapes_of(Llama, LlamaConfig(**config)).items():
        numbers = rng.uniform(0.4, 1.2, shape)
        if not name.endswith("gain"):
            numbers = numbers * rng.choice([-1, 1], shape) / 2
        state[name] = tensor(numbers)
    return state


def patch_case(
    rng: Rng, layer: int, position: int, on: tuple[int, ...] = (7,), note: str = "", **changed
) -> Case:
    """The patch of one vector; ``raises`` and ``afterwards`` may be among what is changed."""
    raises, afterwards = changed.pop("raises", None), changed.pop("afterwards", False)
    config = SIZES | changed
    clean, corrupted = (ids_of(rng, config["n_vocab"], on) for _ in range(2))
    told = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return Case(
        kwargs={
            "config": config,
            "args": (clean, corrupted, layer, position),
            "afterwards": afterwards,
        }
        | state_of_llama(rng, config),
        use=call_on_llama,
        note=note,
        raises=raises,
        shown=f"patched(model, clean, corrupted, {layer}, {position}), "
        f"model = Llama(LlamaConfig({told}))",
    )


def ids_of(rng: Rng, n_vocab: int, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, n_vocab, shape))


# --- decisions: sink_mask ------------------------------------------------------------------------


def whole_numbers(n, width, n_sinks):
    if width < 1 or n_sinks < 0:
        raise ValueError("expected a width of 1 or more and no negative number of sinks")
    return width, n_sinks


@composition
def keeping(
    refuse=whole_numbers,
    near=lambda n, width, n_sinks: band(n, n, 1 - width, 0),
    first=lambda n, n_sinks: (torch.arange(n) < n_sinks).expand(n, n),
    together=lambda near, first: near | first,
    reach=lambda mask: mask.tril(),
    **back,
):
    """``sink_mask`` made of decisions."""

    def sink_mask(n, width, n_sinks):
        width, n_sinks = refuse(n, width, n_sinks)
        mask = together(near(n, width, n_sinks), first(n, n_sinks))
        return returned(reach(mask), **back)

    return sink_mask


def last_by_slice(n, n_sinks):
    """``[:, -n_sinks:]``, which is every column where n_sinks is 0."""
    mask = torch.zeros(n, n, dtype=torch.bool)
    mask[:, -n_sinks:] = True
    return mask


def causal_columns(n, n_sinks):
    return (torch.arange(n) < n_sinks).expand(n, n).tril()


# --- decisions: cut_edges ------------------------------------------------------------------------


def everywhere(scores, edges):
    """A mask that is False at the edges, for every map of the batch."""
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
    for query, key in edges:
        mask[query, key] = False
    return mask.expand(scores.shape)


def softmax(scores):
    """Rows that sum to 1, and 0 where there is no key."""
    left = (scores > -math.inf).any(-1, keepdim=True)
    weights = scores.masked_fill(~left, 0).softmax(-1)
    return weights.masked_fill(~left, 0)


@composition
def cutting(
    pairs=list,
    see=everywhere,
    hide=lambda scores, left: scores.masked_fill(~left, -math.inf),
    normalize=softmax,
    after=lambda weights, left: weights,
):
    """``cut_edges`` made of decisions."""

    def cut_edges(scores, edges):
        left = see(scores, pairs(edges))
        return after(normalize(hide(scores, left)), left)

    return cut_edges


def afterwards(after: Callable, normalize: Callable = softmax) -> dict[str, Any]:
    """Options: the whole softmax first, then something is done to the weights."""
    return {"hide": lambda scores, left: scores, "normalize": normalize, "after": after}


def whole(axis: int) -> dict[str, Any]:
    """Options: every entry of the edges' rows or columns is cut."""

    def see(scores, edges):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool)
        for edge in edges:
            if axis:
                mask[:, edge[1]] = False
            else:
                mask[edge[0]] = False
        return mask.expand(scores.shape)

    return {"see": see}


def turned_round(edges):
    return [(key, query) for query, key in edges]


def in_square(see):
    """Edges that the map does not have are left out, as a mask of another shape would."""

    def seen(scores, edges):
        m, n = scores.shape[-2:]
        return see(scores, [(i, j) for i, j in edges if i < m and j < n])

    return seen


def filled(number: float) -> dict[str, Any]:
    return {
        "hide": lambda scores, left: scores.masked_fill(~left, number),
        "normalize": lambda scores: scores.softmax(-1),
    }


def over_all(weights):
    total = weights.sum((-2, -1), keepdim=True)
    return weights / total.masked_fill(total == 0, 1)


def low_throughout(number: float) -> dict[str, Any]:
    """Options as of ``filled``, for keys that were hidden before, too."""
    return filled(number) | {
        "hide": lambda scores, left: scores.masked_fill(~left | scores.isneginf(), number)
    }


def nan_where(empty: Callable):
    """NaN in the rows without a key for which ``empty(left)`` holds."""

    def after(weights, left):
        return weights.masked_fill(empty(left) & (weights.sum(-1, keepdim=True) == 0), math.nan)

    return after


def two_lists(edges):
    """``zip(*edges)`` gives nothing to unpack where there is no edge."""
    queries, keys = zip(*edges, strict=True)
    return list(zip(queries, keys, strict=True))


def shared_by(choose: Callable):
    """What was cut goes in equal parts to the others, those that ``choose`` says."""

    def after(weights, left):
        others = choose(weights, left)
        cut = (weights * ~left).sum(-1, keepdim=True)
        return weights * left + others * cut / others.sum(-1, keepdim=True).clamp(min=1)

    return afterwards(after)


def first_map_alone(scores, edges):
    mask = torch.ones(scores.shape, dtype=torch.bool)
    maps = mask.reshape(-1, *scores.shape[-2:])
    for query, key in edges:
        maps[0, query, key] = False
    return mask


# --- decisions: logit_lens -----------------------------------------------------------------------


@composition
def reading(
    centre=as_it_is,
    average=lambda squares: squares.mean(-1, keepdim=True),
    eps=1e-5,
    root=lambda size: size.sqrt(),
    divide=lambda hidden, size: hidden / size,
    scale=lambda normed, gain: gain * normed,
    rows=as_it_is,
    say=lambda normed, table: normed @ table.mT,
    finish=as_it_is,
):
    """``logit_lens`` made of decisions."""

    def logit_lens(hidden, gain, table):
        x = centre(hidden)
        size = root(average(x.square()) + eps)
        return finish(say(scale(divide(x, size), gain), rows(table)))

    return logit_lens


def eps_outside(hidden, size):
    return hidden / (hidden.square().mean(-1, keepdim=True).sqrt() + 1e-5)


def over_deviation(correction: int):
    return lambda hidden, size: (
        hidden / (hidden.var(-1, correction=correction, keepdim=True) + 1e-5).sqrt()
    )


def normed_to(x):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5)


def mean_off(x):
    return x - x.mean(-1, keepdim=True)


# --- decisions: patched --------------------------------------------------------------------------


def there(model, clean, corrupted, layer, position):
    if not 0 <= layer < len(model.blocks) or not 0 <= position < corrupted.shape[-1]:
        raise ValueError("there is no such layer or position")
    if clean.shape != corrupted.shape:
        raise ValueError("expected two runs of one length")
    return layer, position


def unchecked(model, clean, corrupted, layer, position):
    return layer, position


def streams(model, ids):
    """What runs before the first block, and after each."""
    x = model.tokens(ids)
    found = [x]
    for block in model.blocks:
        x = block(x)
        found.append(x)
    return found


def one_vector(x, taken, position):
    x = x.clone()
    x[..., position, :] = taken[..., position, :]
    return x


def to_all(x, taken, position):
    return taken[..., [position], :].expand(x.shape)


def in_place(x, taken, position):
    x[..., position, :] = taken[..., position, :]
    return x


def from_place(shift: Callable):
    """The vector of another position is taken."""

    def put(x, taken, position):
        x = x.clone()
        x[..., position, :] = taken[..., shift(position, x.shape[-2]), :]
        return x

    return put


def to_place(shift: Callable):
    """Another position gets its own vector of the clean run."""
    return lambda x, taken, position: one_vector(x, taken, shift(position, x.shape[-2]))


def everything(x, taken, position):
    return taken


def from_there_on(x, taken, position):
    return torch.cat([x[..., :position, :], taken[..., position:, :]], dim=-2)


def up_to_there(x, taken, position):
    return torch.cat([taken[..., : position + 1, :], x[..., position + 1 :, :]], dim=-2)


def added(x, taken, position):
    x = x.clone()
    x[..., position, :] += taken[..., position, :]
    return x


def halved(x, taken, position):
    x = x.clone()
    x[..., position, :] = (x[..., position, :] + taken[..., position, :]) / 2
    return x


def first_of_batch(x, taken, position):
    x = x.clone()
    x[..., position, :] = taken.reshape(-1, *taken.shape[-2:])[0, position]
    return x


def batch_for_sequence(x, taken, position):
    x = x.clone()
    x[position] = taken[position]
    return x


def after_block(layer, n_layers):
    return [layer + 1]


@composition
def patching(
    refuse=there,
    runs=lambda clean, corrupted: (clean, corrupted),
    taken_from=streams,
    where=after_block,
    put=one_vector,
    run=lambda block, x, change: change(block(x)),
    norm=lambda model, x: model.norm(x),
    rows=lambda logits, position: logits,
    finish=as_it_is,
    leave=lambda model, layer, position, taken: None,
):
    """``patched`` made of decisions; ``where`` names streams, 0 before all blocks."""

    def patched(model, clean, corrupted, layer, position):
        layer, position = refuse(model, clean, corrupted, layer, position)
        clean, corrupted = runs(clean, corrupted)
        with torch.no_grad():
            taken = taken_from(model, clean)
            places = where(layer, len(model.blocks))
            x = model.tokens(corrupted)
            for i in range(len(model.blocks) + 1):
                change = (
                    partial(put, taken=taken[i], position=position) if i in places else as_it_is
                )
                x = run(model.blocks[i - 1], x, change) if i else change(x)
            leave(model, layer, position, taken)
            return finish(rows(model.out(norm(model, x)), position))

    return patched


def hook_stays(model, layer, position, taken):
    """The hook that puts the vector in is never removed."""
    vector = taken[layer + 1][..., position, :]

    def hook(block, given, x):
        x = x.clone()
        if x.shape[-2] > position:
            x[..., position, :] = vector
        return x

    model.blocks[layer].register_forward_hook(hook)


def first_hook_stays(model, layer, position, taken):
    """The hook that kept the clean vector is never removed."""
    kept = []
    model.blocks[layer].register_forward_hook(lambda block, given, x: kept.append(x))


def all_hooks_go(model, layer, position, taken):
    """With its own hook goes every other."""
    model.blocks[layer]._forward_hooks.clear()


def in_attention(block, x, change):
    x = x + change(block.attention(block.norm_1(x)))
    return x + block.feed_forward(block.norm_2(x))


def in_feed_forward(block, x, change):
    x = x + block.attention(block.norm_1(x))
    return x + change(block.feed_forward(block.norm_2(x)))


def part_of(run: Callable) -> dict[str, Any]:
    """Options: what a part of the block returns is exchanged, in place of the stream."""

    def taken_from(model, ids):
        found = streams(model, ids)
        kept = [found[0]]
        for block, x in zip(model.blocks, found, strict=False):
            run(block, x, lambda part: kept.append(part) or part)
        return kept

    return {"run": run, "taken_from": taken_from}


def by_index(model, clean, corrupted, layer, position):
    """Negative ones count from the end, what is too large is an ``IndexError``."""
    return range(len(model.blocks))[layer], range(corrupted.shape[-1])[position]


def what_is_added(model, ids):
    """In place of each stream what its block has added to it."""
    found = streams(model, ids)
    return [found[0], *(after - before for before, after in pairwise(found))]


def last_norms(model, ids):
    return [model.norm(x) for x in streams(model, ids)]


def no_answer(layer, n_layers):
    return []


# --- exercises -----------------------------------------------------------------------------------

SINK = exercise(
    circuits.sink_mask,
    section="Chapter 19, “Much of it falls on the first token”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        Criterion("the last width keys, and the first ones", 2).on(
            lambda rng: [
                SINK_BY_HAND,
                Case((7, 3, 2)),
                Case((int(rng.integers(8, 12)), int(rng.integers(2, 4)), 1)),
            ]
        ),
        Criterion("many sinks, many tokens", 1).on(
            lambda rng: [
                Case((9, 2, 4), note="more sinks than the window holds"),
                Case((17, 4, 3), note="many tokens"),
            ]
        ),
        Criterion("width 1, no sinks, and more of either than tokens", 1).on(
            lambda rng: [
                Case((5, 1, 1), note="width 1"),
                Case((5, 1, 0), note="width 1, no sinks"),
                Case((6, 3, 0), note="no sinks"),
                Case((4, 9, 1), note="a window wider than the sequence"),
                Case((4, 2, 7), note="more sinks than tokens"),
                Case((1, 1, 1), note="one token"),
                Case((2, 1, 1), note="two tokens"),
                once_more(SINK_BY_HAND),
            ]
        ),
        Criterion("a width below 1, or sinks below 0: ValueError", 1).on(
            lambda rng: [
                refused((5, 0, 1), "width 0"),
                refused((5, -2, 1), "a negative width"),
                refused((5, 2, -1), "a negative number of sinks"),
            ]
        ),
    ),
    mistakes=made(
        keeping,
        *OF_WHAT_COMES_BACK,
        mistake("""a sink inside the window is lost
            Where the window reaches the first tokens, yours forbids them: an exclusive *or*, or a
            sum that is compared with 1. A key is allowed by either of the two, `window | first`.
        """)
        .by(together=lambda near, first: near ^ first)
        .by(together=lambda near, first: near & ~first | first & ~near),
        mistake("""a sink inside the window counts twice
            You add the two masks, so that a first token inside the window is 2. A mask is boolean:
            `window | first`.""")
        .by(together=lambda near, first: near.int() + first.int(), reach=lambda mask: mask.tril())
        .by(together=lambda near, first: near.float() + first.float()),
        mistake("""only what is both
            You allow what is in the window *and* among the first. It is one or the other: `|`.
        """).by(together=lambda near, first: near & first),
        mistake("""the sinks are seen by tokens before them
            The first rows see tokens that come later: with two sinks the first token would see the
            second. The whole mask is causal, sinks included.""").by(reach=as_it_is),
        mistake("""no sinks
            Your mask is the window alone. The first `n_sinks` columns are True as well, for every
            token that comes after them.""").by(
            first=lambda n, n_sinks: torch.zeros(n, n, dtype=torch.bool)
        ),
        mistake("""the sinks are queries
            You let the first tokens see all that is before them: rows. A sink is a key that the
            others see, a column: `torch.arange(n) < n_sinks`.""").by(
            first=lambda n, n_sinks: (torch.arange(n)[:, None] < n_sinks).expand(n, n)
        ),
        mistake("""the last tokens are kept
            You keep the last `n_sinks` columns. The sinks are at the beginning: `[:, :n_sinks]`.
        """)
        .by(first=lambda n, n_sinks: (torch.arange(n) >= n - n_sinks).expand(n, n))
        .by(first=last_by_slice),
        mistake("""always one sink
            You keep the first token, whatever `n_sinks` says: as many are kept as it says, and with
            0 none.""")
        .by(first=lambda n, n_sinks: (torch.arange(n) < 1).expand(n, n))
        .by(first=lambda n, n_sinks: (torch.arange(n) < max(n_sinks, 1)).expand(n, n)),
        mistake("""one sink too many or too few
            The sinks are columns 0 … n_sinks − 1: `j < n_sinks`.""")
        .by(first=lambda n, n_sinks: (torch.arange(n) <= n_sinks).expand(n, n))
        .by(first=lambda n, n_sinks: (torch.arange(n) < n_sinks - 1).expand(n, n))
        .by(first=lambda n, n_sinks: (torch.arange(n) == n_sinks).expand(n, n)),
        mistake("""the n_sinks-th token alone
            You keep one column. All of the first `n_sinks` are kept: `[:, :n_sinks]`.""").by(
            first=lambda n, n_sinks: (torch.arange(n) == n_sinks - 1).expand(n, n)
        ),
        mistake("""the sinks are taken from the window
            Your window is narrower by the sinks. They come on top: `width` keys that end with the
            token itself, and the first ones besides.""")
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - max(width - n_sinks, 1), 0))
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - width + n_sinks, 0)),
        mistake("""the window has another reach
            The window holds the token itself and width − 1 before it: `0 <= i − j < width`.""")
        .by(near=lambda n, width, n_sinks: band(n, n, -width, 0))
        .by(near=lambda n, width, n_sinks: band(n, n, 2 - width, 0))
        .by(near=lambda n, width, n_sinks: band(n, n, -width, -1))
        .by(near=lambda n, width, n_sinks: band(n, n, -(width // 2), 0))
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - width, -1))
        .by(near=lambda n, width, n_sinks: band(n, n, -math.inf, 0)),
        mistake("""the window looks ahead
            Your window reaches to both sides, or forward. It ends with the token: the mask is
            causal.""")
        .by(near=lambda n, width, n_sinks: band(n, n, -(width // 2), width // 2), reach=as_it_is)
        .by(near=lambda n, width, n_sinks: band(n, n, 1 - width, width - 1), reach=as_it_is)
        .by(near=lambda n, width, n_sinks: band(n, n, 0, width - 1), reach=as_it_is)
        .by(
            near=lambda n, width, n_sinks: band(n, n, 1 - width, width - 1),
            first=causal_columns,
            reach=as_it_is,
        )
        .by(
            near=lambda n, width, n_sinks: band(n, n, -(width // 2), width // 2),
            first=causal_columns,
            reach=as_it_is,
        ),
        mistake("""a token does not see itself
            Your diagonal is False, `j < i`. The window holds the token itself, and a first token
            that does not see itself sees nothing.""")
        .by(reach=lambda mask: mask.tril(-1))
        .by(
            near=lambda n, width, n_sinks: band(n, n, -width, -1),
            reach=lambda mask: mask.tril(-1),
        ),
        mistake("""rows and columns are exchanged
            Your mask is the transpose: row i is the query, column j the key.""").by(
            form=lambda mask: mask.T
        ),
        mistake("""nothing is refused
            A window of no token and a negative number of sinks make no sense: raise a
            `ValueError`.""")
        .by(refuse=lambda n, width, n_sinks: (width, n_sinks))
        .by(refuse=lambda n, width, n_sinks: (max(width, 1), max(n_sinks, 0))),
        mistake("""what is right is refused
            A window may be wider than the sequence, there may be more sinks than tokens, and
            n_sinks = 0 is a window without any.""")
        .by(
            refuse=lambda n, width, n_sinks: (
                whole_numbers(n, width, n_sinks - 1) and (width, n_sinks)
            )
        )
        .by(
            refuse=lambda n, width, n_sinks: (
                whole_numbers(n, min(width, n - width + 1), n_sinks) and (width, n_sinks)
            )
        )
        .by(
            refuse=lambda n, width, n_sinks: (
                whole_numbers(n, width, min(n_sinks, n - n_sinks)) and (width, n_sinks)
            )
        ),
    ),
)

EDGES = exercise(
    circuits.cut_edges,
    section="Chapter 19, “Cut one edge”",
    difficulty=2,
    minutes=15,
    criteria=(
        Criterion("without these edges, the rest of each row sums to 1", 3).on(
            lambda rng: [
                EDGE_BY_HAND,
                *with_edges(SEVERAL, row("m=5 n=7"), row("m=6 n=6"))(rng),
                *with_edges(TWO, row("m=4 n=5"))(rng),
            ]
        ),
        Criterion("a row without a key left is 0", 2).on(
            lambda rng: [
                EMPTY_ROW,
                *HIDDEN_ROWS,
                *with_edges(whole_row(2, 4), row("m=3 n=4", batch=(2,), note="a whole row"))(rng),
            ]
        ),
        Criterion("keys that are hidden already stay hidden", 1).on(hidden_keys),
        Criterion("batches", 1).on(with_edges(SEVERAL, *EDGE_ROWS.batches)),
        Criterion("no edge, one query or key, float32, large and small scores", 1).on(
            lambda rng: [
                ONE_KEY,
                *with_edges([], row("m=3 n=5", note="no edge"))(rng),
                *with_edges([(0, 2)], row("m=1 n=5", note="one query"))(rng),
                *with_edges(SEVERAL, EDGE_ROWS.single)(rng),
                *with_edges([], *EDGE_ROWS.extreme)(rng),  # cut scores never stand far above
                once_more(EDGE_BY_HAND),
            ]
        ),
        Criterion("gradients reach the scores", 1).on(with_edges(SEVERAL, *EDGE_ROWS.gradients)),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        cutting,
        mistake("""cut without renormalising
            You set the weights to 0 after the softmax, and what is left of a row sums to less than
            1. Cut the scores (−∞) before the softmax, or divide by what is left.""").by(
            afterwards(lambda weights, left: weights * left)
        ),
        mistake("""a row without a key gives NaN
            Where no key is left you divide 0 by 0, or take the softmax of nothing but −∞. Such a
            row is 0.""")
        .by(normalize=lambda scores: scores.softmax(-1))
        .by(
            afterwards(
                lambda weights, left: weights * left / (weights * left).sum(-1, keepdim=True)
            )
        )
        .by(after=nan_where(lambda left: left.all()))
        .by(after=nan_where(lambda left: left.any(-1, keepdim=True))),
        mistake("""a low number in place of −∞
            Your cut scores are low, but a row that has nothing else becomes a softmax of them. A
            row without a key is 0.""")
        .by(filled(-1e9))
        .by(filled(torch.finfo(torch.float32).min))
        .by(low_throughout(-1e9))
        .by(low_throughout(torch.finfo(torch.float32).min)),
        mistake("""a score of 0 is no cut
            You set the scores to 0, and e⁰ = 1 is a weight like others. A weight of 0 needs a score
            of −∞.""")
        .by(filled(0.0))
        .by(hide=lambda scores, left: scores.masked_fill(~left, 0.0)),
        mistake("""key and query exchanged
            An edge is (query, key), row and column. You cut (key, query).""").by(
            pairs=turned_round, see=in_square(everywhere)
        ),
        mistake("""both directions are cut
            You cut (i, j) and (j, i). An edge leads from one query to one key; the other way round
            is another edge.""").by(
            pairs=lambda edges: [*edges, *turned_round(edges)], see=in_square(everywhere)
        ),
        mistake("""whole rows or columns are cut
            You cut everything that these queries look at, or all that looks at these keys. One
            entry each: `mask[query, key]`.""")
        .by(whole(1))
        .by(whole(0))
        .by(
            see=lambda scores, edges: everywhere(
                scores, [(i, j) for i, _ in edges for _, j in edges]
            )
        ),
        mistake("""only one edge
            You cut the first or the last of the edges. All of them go.""")
        .by(pairs=lambda edges: list(edges)[:1])
        .by(pairs=lambda edges: list(edges)[-1:]),
        mistake("""all but the edges
            You keep the edges and cut the rest: the mask is inverted.""").by(
            see=lambda scores, edges: ~everywhere(scores, edges)
        ),
        mistake("""nothing is cut
            Your result is the softmax of the scores. Did the cut reach what you return?
            `masked_fill` makes a new tensor, `masked_fill_` would change it in place.""").by(
            pairs=lambda edges: []
        ),
        mistake("""only the first map is cut
            You cut the edges in the first map of the batch. They are cut in every one: index from
            the end, `[..., query, key]`.""").by(see=first_map_alone),
        mistake("""softmax over the queries
            Your columns sum to 1. Each row is a query, and its weights over the keys sum to 1:
            `dim=-1`.""").by(normalize=lambda scores: softmax(scores.mT).mT),
        mistake("""the scores come back
            You return scores. Return weights: their softmax over the keys.""").by(
            normalize=as_it_is
        ),
        mistake("""what was cut is shared out evenly
            You give what an edge had to the others of its row in equal parts. The others keep their
            proportions: divide by what is left.""")
        .by(shared_by(lambda weights, left: left))
        .by(shared_by(lambda weights, left: left & (weights > 0))),
        mistake("""divided by the sum of the map
            You divide by the sum of all the weights that are left. Each row is divided by its own:
            `.sum(-1, keepdim=True)`.""")
        .by(afterwards(lambda weights, left: over_all(weights * left)))
        .by(afterwards(lambda weights, left: over_all(weights * left) * weights.shape[-2])),
        mistake("""hidden keys come back
            You put another score where −∞ was, and the key that it hid has a weight again. A score
            of −∞ stays −∞.""").by(
            hide=lambda scores, left: scores.masked_fill(scores.isneginf(), 0).masked_fill(
                ~left, -math.inf
            )
        ),
        mistake("""an empty list of edges stops it
            `edges` may be empty, and `zip(*edges)` gives nothing to unpack then: nothing is cut.
            A loop over the edges has no such case.""").by(pairs=two_lists),
        mistake("""no tensor comes back
            You return a NumPy array, or lists. The weights are a torch tensor, through which
            gradients can flow: stay with torch operations.""")
        .by(after=lambda weights, left: weights.detach().numpy())
        .by(after=lambda weights, left: weights.tolist()),
        mistake("""computed in float32
            You turn the scores into float32, which keeps seven digits of float64. Stay in the dtype
            of the scores.""").by(
            hide=lambda scores, left: scores.float().masked_fill(~left, -math.inf)
        ),
        mistake("""the scores are changed
            You write −∞ into the caller's scores: `masked_fill_`, or an assignment. Work on a copy,
            or use `masked_fill`.""").by(
            hide=lambda scores, left: scores.masked_fill_(~left, -math.inf)
        ),
    ),
)

LENS = exercise(
    circuits.logit_lens,
    section="Chapter 19, “Who knew it when”",
    difficulty=1,
    minutes=8,
    criteria=(
        LENS_CASES.criterion("the norm, then the table", 3).on(
            LENS_BY_HAND,
            READ,
            row("d=5 n_vocab=11"),
            row("d=7 n_vocab=7", batch=(7,), note="as many tokens as features and words"),
            READ.but(given=FAR, note="rows far from 0"),
        ),
        LENS_CASES.criterion("batches", 1).on(*LENS_ROWS.batches),
        LENS_CASES.criterion(
            "one feature, one word, float32, large and small entries, zeros", 1
        ).on(
            row("d=1 n_vocab=3", batch=(2,), note="one feature"),
            row("d=4 n_vocab=1", batch=(3,), note="one word"),
            READ.but(zero=("hidden",), note="rows of zeros"),
            READ.but(zero=("gain",), note="a gain of 0"),
            READ.but(zero=("table",), note="a table of zeros"),
            READ.but(factor={"hidden": 0.003}, note="entries near eps"),
            *LENS_ROWS.numbers,
            once_more(LENS_BY_HAND),
        ),
        LENS_FLOATS.criterion("gradients reach all three", 1).on(*LENS_EACH.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        reading,
        mistake("""no final norm
            You multiply the stream by the table as it is. The model normalises before its last
            layer: `rms_norm(hidden, gain)`.""")
        .by(divide=lambda hidden, size: hidden)
        .by(divide=lambda hidden, size: hidden, scale=lambda normed, gain: normed),
        mistake("""the gain is left out
            You normalise without the gain. The final norm's gain belongs to it: `rms_norm(hidden,
            gain)`.""").by(scale=lambda normed, gain: normed),
        mistake("""the mean is taken off
            You subtract each row's mean, as chapter 12's layer norm does. An RMS norm leaves it
            in.""").by(centre=mean_off),
        mistake("""the norm runs over another axis
            You normalise over the tokens, or all numbers together. Each vector is normalised by
            itself, over its features: axis −1.""")
        .by(average=lambda squares: squares.mean(-2, keepdim=True) if squares.ndim > 1 else squares)
        .by(average=lambda squares: squares.mean(-min(squares.ndim, 2), keepdim=True))
        .by(average=lambda squares: squares.mean()),
        mistake("""rows of length 1
            You divide by the length of a vector, the root of the *sum* of squares. An RMS norm
            divides by the root of their mean.""").by(
            average=lambda squares: squares.sum(-1, keepdim=True)
        ),
        mistake("""divided by the mean square
            You divide by the mean square itself. It is its root that has the unit of the
            vector.""").by(root=as_it_is),
        mistake("""divided by the standard deviation
            You divide by the standard deviation, in which each row's mean is taken off. An RMS norm
            divides by the root of the mean square, mean left in.""")
        .by(divide=over_deviation(1))
        .by(divide=over_deviation(0)),
        mistake("""eps is added after the root
            You add eps to the root. It belongs under it: `(mean_square + eps).sqrt()`.""").by(
            divide=eps_outside
        ),
        mistake("""another eps
            Your norm adds another number than 1e-5, or none, under its root. It is chapter 18's
            `rms_norm` as it stands.""")
        .by(eps=1e-6)
        .by(eps=0.0)
        .by(eps=1e-8),
        mistake("""the table is normalised too
            You normalise the rows of the table, or compare by cosine. The last layer is a plain
            product, in which long rows count more.""")
        .by(rows=lambda table: torch.nn.functional.normalize(table, dim=-1))
        .by(rows=normed_to),
        mistake("""the table is not transposed
            A row of the table belongs to a word, so the logits are `… @ table.T`. You multiply by
            the table itself.""").by(say=lambda normed, table: normed @ table),
        mistake("""probabilities come back
            You return probabilities or their logs. Return logits, before any softmax.""")
        .by(finish=lambda logits: logits.softmax(-1))
        .by(finish=lambda logits: logits.log_softmax(-1)),
        mistake("""words come back
            You return the likeliest word. Return a logit for each.""").by(
            finish=lambda logits: logits.argmax(-1)
        ),
        mistake("""the last token alone
            You return the logits of the last row. Every vector of `hidden` has its own.""").by(
            finish=lambda logits: logits[..., -1, :] if logits.ndim > 1 else logits
        ),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1.
        """).by(scale=lambda normed, gain: (1 + gain) * normed),
        mistake("""gain is added
            You add gain. The normalised vector is multiplied by it.""").by(
            scale=lambda normed, gain: normed + gain
        ),
        mistake("""the gain comes before the norm
            You multiply by gain and normalise then. The norm comes first: `gain · (x / rms)`.
        """)
        .by(scale=lambda normed, gain: normed_to(gain * normed))
        .by(
            divide=lambda hidden, size: hidden, scale=lambda hidden, gain: normed_to(gain * hidden)
        ),
        mistake("""the logits are normalised
            You multiply by the table first and normalise the logits. It is the vector that is
            normalised, before its product with the table.""")
        .by(divide=lambda hidden, size: hidden, finish=normed_to)
        .by(finish=normed_to),
        mistake("""no tensor comes back
            You return a NumPy array, or lists. Logits are a torch tensor, through which gradients
            can flow: stay with torch operations.""")
        .by(finish=lambda logits: logits.detach().numpy())
        .by(finish=lambda logits: logits.tolist()),
        mistake("""computed in float32
            You turn the numbers into float32, which keeps seven digits of float64. Stay in the
            dtype of `hidden`.""").by(
            centre=lambda x: x.float(),
            say=lambda normed, table: normed.float() @ table.float().mT,
        ),
    ),
)


def patches(rng: Rng) -> list[Case]:
    return [
        patch_case(rng, 1, 3),
        patch_case(rng, 0, 4, on=(6,)),
        patch_case(rng, 2, 5, on=(6,), note="after the last block, at the last position"),
        patch_case(rng, 1, 0, on=(5,), note="at the first position"),
    ]


PATCH = exercise(
    circuits.patched,
    section="Chapter 19, “Where the answer is”",
    difficulty=3,
    minutes=25,
    limit=10.0,
    criteria=(
        Criterion("one vector of the clean run in the corrupted one", 3).on(patches),
        Criterion("a batch, other models", 1).on(
            lambda rng: [
                patch_case(rng, 1, 2, on=(2, 5), note="a batch of 2"),
                patch_case(rng, 0, 1, on=(4, 4), note="a batch of 4, four tokens"),
                patch_case(rng, 0, 2, on=(5,), n_layers=1, note="one layer"),
                patch_case(rng, 2, 1, on=(4,), n_heads=2, n_kv_heads=2, tied=False),
                patch_case(rng, 1, 0, on=(1,), note="one token"),
            ]
        ),
        Criterion("the model stays as it is, and no hook is left behind", 1).on(
            lambda rng: [
                patch_case(rng, 0, 2, on=(5,), afterwards=True),
                patch_case(rng, 1, 3, on=(2, 6), n_heads=2, n_kv_heads=2, afterwards=True),
            ]
        ),
        Criterion("a layer or position that does not exist: ValueError", 1).on(
            lambda rng: [
                patch_case(rng, 3, 0, note="a layer too many", raises=ValueError),
                patch_case(rng, -1, 0, note="layer −1", raises=ValueError),
                patch_case(rng, 0, 7, note="a position too many", raises=ValueError),
                patch_case(rng, 0, -1, note="position −1", raises=ValueError),
            ]
        ),
        unchanged(),
    ),
    excludes=(("*", "What it is given is a model and sequences of ids."),),
    mistakes=made(
        patching,
        mistake("""patched the wrong way round
            You run `clean` with a vector of `corrupted`. It is the corrupted run that is asked for,
            with one vector of the clean one in it.""").by(
            runs=lambda clean, corrupted: (corrupted, clean)
        ),
        mistake("""nothing is patched
            Your logits are those of the corrupted run as it is. A hook has to *return* what should
            run on, and a copy that is changed has to be used.""").by(where=no_answer),
        mistake("""the clean run comes back
            You return the logits of `clean`, or put its whole stream in place. One vector alone
            comes from it.""")
        .by(put=everything)
        .by(where=lambda layer, n: [n], put=everything),
        mistake("""before the block, not after it
            You exchange what goes *into* block `layer`. It is what comes out of it: a forward hook,
            not a pre-hook.""")
        .by(where=lambda layer, n: [layer])
        .by(where=lambda layer, n: [layer], taken_from=lambda *given: [*streams(*given)[1:], None]),
        mistake("""another layer
            You exchange the vector after another block. Layers count from 0, `model.blocks[layer]`.
        """)
        .by(where=lambda layer, n: [min(layer + 2, n)])
        .by(where=lambda layer, n: [n - layer]),
        mistake("""nothing is computed from it
            You exchange what comes after the last block, or the logits, so that no block sees the
            clean vector. It goes in after block `layer`; all that follows is computed anew.
        """).by(where=lambda layer, n: [n]),
        mistake("""the token is exchanged
            You put the clean token's id, or its embedding, among the corrupted ones. The vector is
            the one that comes out of block `layer`.""").by(where=lambda layer, n: [0]),
        mistake("""a part of the block
            Your hook sits on the block's attention or on its feed-forward layer. What these return
            is added to the stream; the stream is what the block itself returns.""")
        .by(part_of(in_attention))
        .by(part_of(in_feed_forward)),
        mistake("""in every layer from there on
            You put the clean vector in after each of the later blocks as well. After block `layer`
            alone: what the later ones make of it is the question.""")
        .by(where=lambda layer, n: range(layer + 1, n + 1))
        .by(where=lambda layer, n: range(n + 1))
        .by(where=lambda layer, n: range(layer + 2)),
        mistake("""another position
            You exchange the vector at another position: the one after, the one before, the last, or
            at several, all up to it, from it on or of the sequence.""")
        .by(put=to_place(lambda position, n: min(position + 1, n - 1)))
        .by(put=to_place(lambda position, n: max(position - 1, 0)))
        .by(put=to_place(lambda position, n: n - 1))
        .by(put=from_there_on)
        .by(put=up_to_there)
        .by(put=to_all),
        mistake("""the vector of another position
            At `position` you put the vector that the clean run has somewhere else. It has its own
            there.""")
        .by(put=from_place(lambda position, n: n - 1))
        .by(put=from_place(lambda position, n: 0))
        .by(put=from_place(lambda position, n: min(position + 1, n - 1))),
        mistake("""added, not put in its place
            You add the clean vector, or average the two. It takes the place of the other.""")
        .by(put=added)
        .by(put=halved),
        mistake("""what the block adds, not the stream
            You take what the block *added* in the clean run. The residual stream is all that runs
            on after it, x with everything that was added so far.""").by(taken_from=what_is_added),
        mistake("""a vector that is normalised
            You take the stream through the final norm. It is taken as it runs from block to
            block.""").by(taken_from=last_norms),
        mistake("""no final norm
            Between the last block and the last layer stands the model's norm: `model.out(
            model.norm(x))`.""").by(norm=lambda model, x: x),
        mistake("""the hook stays
            The model goes on patching after your function has returned. Remove the hook, also where
            the run fails: `try … finally: hook.remove()`.""").by(leave=hook_stays),
        mistake("""the hooks are others afterwards
            A hook that kept the clean vector is still there after your function has returned, or
            hooks that somebody else had set are gone. Remove your own: `hook.remove()`.""")
        .by(leave=first_hook_stays)
        .by(leave=all_hooks_go),
        mistake("""one token's logits alone
            You return the row of the last token, or of the one at `position`. Logits for every
            position are asked for, `(..., n, n_vocab)`.""")
        .by(finish=lambda logits: logits[..., -1, :])
        .by(rows=lambda logits, position: logits[..., position, :]),
        mistake("""probabilities come back
            You return probabilities or their logs. Return logits, before any softmax.""")
        .by(finish=lambda logits: logits.softmax(-1))
        .by(finish=lambda logits: logits.log_softmax(-1)),
        mistake("""positions are looked up in the batch
            `x[position]` is a sequence where there is a batch. Positions are on the last axis but
            one: `x[..., position, :]`.""").by(put=batch_for_sequence),
        mistake("""the first sequence for all
            You put the first sequence's vector into all of them. Each gets its own.""").by(
            put=first_of_batch
        ),
        mistake("""what does not exist is let through
            A negative layer or position counts from the end in Python, and one that is too large
            gives another error, or none. Here each is a `ValueError`.""")
        .by(refuse=unchecked)
        .by(refuse=by_index)
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                min(layer, len(model.blocks) - 1),
                min(position, corrupted.shape[-1] - 1),
            )
        ),
        mistake("""what exists is refused
            The first and the last of layers and positions exist, and a sequence may have one token.
        """)
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                there(model, clean, corrupted, layer, position + 1) and (layer, position)
            )
        )
        .by(
            refuse=lambda model, clean, corrupted, layer, position: (
                there(model, clean, corrupted, layer + 1, position) and (layer, position)
            )
        ),
    ),
)

EXERCISES = (SINK, EDGES, LENS, PATCH)

VARIANTS = (
    forbidden(
        {"sink_mask": MADE},
        """
            True where query i may attend to key j → True where query i may not attend to key j
            Two masks, joined with `|`: the window, and the first columns below the diagonal
            → Two masks of what is allowed, joined with `|`: the window, and the first columns below
                the diagonal; then all of it negated, `~(… | …)`
            sink_mask(6, 2, 1).sum(-1) → (~sink_mask(6, 2, 1)).sum(-1)
            `window | first` → `~(window | first)`
            columns are True as well → columns are False as well
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden.",
    ),
)
