"""The exercises of chapter 18: the parts of a language model of today.

``merge_pairs`` is tried with ranks such as learning gives them: a pair is ranked after those that
its parts are made of. The block is judged on what differs from chapter 12's: turned queries and
keys, shared key/value heads, the norm, the gated layer. d_head is a power of 4 in float64 cases, as
in chapter 9.
"""

from collections import Counter
from functools import partial
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import llama, multihead
from attncourse.checks import callers
from attncourse.checks.exercise import (
    REFUSED,
    Case,
    Criterion,
    Rng,
    composition,
    exercise,
    unchanged,
)
from attncourse.checks.variants.conventions import forbidden, masked
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    ONE_MASK,
    OTHER_NUMBERS,
    CaseTable,
    Count,
    Drawn,
    hole,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import made, mistake
from attncourse.masking import causal_mask
from attncourse.positions import apply_rope

# --- cases: merge_pairs ------------------------------------------------------------------------

Pair = tuple[str, str]


def learned(rng: Rng, letters: str, lengths: list[int], n: int) -> tuple[list[list[str]], dict]:
    """Random words, and n merges that were chosen by chance among the pairs that stood in them."""
    words = [list(map(str, rng.choice(list(letters), length))) for length in lengths]
    texts, ranks = words, {}
    for _ in range(n):
        made_of = {"".join(pair) for pair in ranks} | set(letters)
        pairs = {p for w in texts for p in pairwise(w)}
        new = sorted(p for p in pairs if "".join(p) not in made_of)
        if not new:
            break
        pair = new[rng.integers(len(new))]
        ranks[pair] = len(ranks)
        texts = [joined_everywhere(word, pair) for word in texts]
    return words, ranks


def joined_everywhere(symbols: list[str], pair: Pair) -> list[str]:
    """The symbols with this pair joined wherever it stands, from left to right."""
    out: list[str] = []
    for symbol in symbols:
        if out and (out[-1], symbol) == pair and not isinstance(out[-1], Joined):
            out[-1] = Joined(out[-1] + symbol)
        else:
            out.append(symbol)
    return [str(symbol) for symbol in out]


class Joined(str):
    """A symbol that this round made: it is no part of another pair before the next one."""

    __slots__ = ()


def long_words(rng: Rng) -> list[Case]:
    """Words of few letters with many merges, and other words of the same letters."""
    cases = []
    for letters, lengths, n in (("abc", (23, 29), 9), ("abcd", (31, 19), 14), ("ab", (17, 13), 6)):
        words, ranks = learned(rng, letters, list(lengths), n)
        words += [list(map(str, rng.choice(list(letters), 37)))]
        shuffled = list(ranks)
        rng.shuffle(shuffled)  # a dictionary's order says nothing
        ranks = {tuple(map(str, pair)): ranks[tuple(pair)] for pair in shuffled}
        cases += [Case((word, dict(ranks))) for word in words]
    runs = {("a", "a"): 0, ("a", "b"): 1, ("aa", "ab"): 2}  # in no draw may these be missing
    return [*cases, Case((list("aaab" * 7), runs))]


# Words as letters 0, 1, 2, …, and their merges in the order of ranks.
BY_RANK = (
    ("012", "1+2 0+1", "the lower rank on the right"),
    ("012", "0+1 1+2", "the lower rank on the left"),
    ("012312", "0+1 1+2", "the higher rank twice"),
    ("01234", "2+3 0+1 1+2 01+23", "four merges"),
    ("3120", "1+2 3+1 2+0", "the lowest rank in the middle"),
)
CHAINS = (
    ("0123", "0+1 01+2 012+3", "each joined symbol again"),
    ("4012", "1+2 0+12 4+012", "from the end to the beginning"),
    ("01232", "2+3 1+23 0+123", "and one letter left"),
)


def spelled(*structures: tuple[str, str, str]):
    """Cases: the structures in random letters, which stand in the order of the alphabet."""

    def cases(rng: Rng) -> list[Case]:
        letters = sorted(map(str, rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 5, replace=False)))
        said = str.maketrans("01234", "".join(letters))
        return [
            Case(
                (
                    list(word.translate(said)),
                    {
                        tuple(merge.translate(said).split("+")): rank
                        for rank, merge in enumerate(merges.split())
                    },
                ),
                note=note,
            )
            for word, merges, note in structures
        ]

    return cases


BANANA = {("a", "n"): 0, ("b", "an"): 1, ("an", "a"): 2}
MERGE_BY_HAND = Case((list("banana"), BANANA), note="an, then b + an, then an + a")
UNKNOWN_PAIRS = {("x", "y"): 0, ("y", "z"): 1}
RUN = {("a", "a"): 0}
FEW = (
    Case(([], RUN), use=callers.call_for_new_list, note="no symbol: a new list"),
    Case((["a"], RUN), note="one symbol"),
    Case((list("banana"), {}), use=callers.call_for_new_list, note="no merges: a new list"),
    Case((list("banana"), UNKNOWN_PAIRS), note="no pair of the word is ranked"),
    Case((list("an"), BANANA), use=callers.call_for_new_list, note="one pair: a new list"),
)
RUNS = (
    *(Case((["a"] * n, RUN), note=f"{n} times the same symbol") for n in (2, 3, 4, 5)),
    Case((["a"] * 7, {("a", "a"): 0, ("aa", "aa"): 1}), note="joined symbols are joined again"),
    Case((list("abab"), {("a", "b"): 0, ("ab", "ab"): 1}), note="the same pair twice"),
    Case((list("abcab"), {("a", "b"): 0}), note="the same pair twice, apart"),
)
SPACES = {("Ġ", "t"): 0, ("h", "e"): 1, ("Ġt", "he"): 2, ("Ã", "©"): 3}
TWO_WAYS = {("b", "a"): 0, ("a", "b"): 1, ("a", "ba"): 2}
SIGNS = (
    Case((list("Ġthe"), SPACES), note="a sign that stands for a space"),
    Case((list("ĠcafÃ©"), SPACES), note="a letter of two bytes"),
    Case((["Ġt", "he", "Ġt", "h"], SPACES), note="symbols that are pieces already"),
    Case((["a", "ba", "c", "ab", "a"], TWO_WAYS), note="two pairs, one piece"),
)

# --- cases: rms_norm ---------------------------------------------------------------------------

NORM_CASES = CaseTable({"x": "... d"})
FAR_FROM_0 = Drawn("... d", lambda rng, shape: rng.normal(size=shape) + 100)
ALL_GIVEN = CaseTable({"x": "... d", "gain": "d"})
NORM_ROWS, GIVEN_ROWS = standard(NORM_CASES), standard(ALL_GIVEN)
GAIN = {"gain": Drawn("d")}
NORM_BY_HAND = Case((tensor([[3, 4], [-8, 6], [0, 5]]), tensor([1, 10])), {"eps": 0.5})
SEQUENCES = row("d=7", batch=(5,))

# --- cases: SwiGLU -----------------------------------------------------------------------------


def weight(rng: Rng, d_out: int, d_in: int) -> torch.Tensor:
    """The weight of a linear layer whose output is of order one."""
    return 1.5 * d_in**-0.5 * uniform_values(rng, d_out, d_in)


def gated_state(rng: Rng, d_model: int, d_ff: int) -> State:
    return {
        "W_gate.weight": weight(rng, d_ff, d_model),
        "W_up.weight": weight(rng, d_ff, d_model),
        "W_down.weight": weight(rng, d_model, d_ff),
    }


GATED_CASES = ModuleTable(
    {"x": "... n d_model"}, name="SwiGLU", build="d_model d_ff", state=gated_state
)
GATED_ROWS = standard(GATED_CASES)
GATED = row("n=7 d_model=5 d_ff=11")
GATED_BY_HAND = module_case(
    "SwiGLU",
    (2, 3),
    {
        "W_gate.weight": tensor([[1, 0], [0, 1], [-1, 1]]),
        "W_up.weight": tensor([[2, 0], [0, -1], [1, 1]]),
        "W_down.weight": tensor([[1, 0, 1], [0, 1, 10]]),
    },
    {"x": tensor([[1, 0], [2, 3]])},
    note="three hidden units",
)

# --- cases: pairs_from_halves ------------------------------------------------------------------

ROWS_CASES = CaseTable({"weight": "h*d_head d_in", "n_heads": Count("h")})
EIGHT_ROWS = torch.arange(16).double().reshape(8, 2)
ROWS_BY_HAND = Case((EIGHT_ROWS, 1), note="one head of 8 features")
TWO_HEADS = Case((EIGHT_ROWS, 2), note="two heads of 4 features")


def refused(rows: int, heads: int, note: str) -> Case:
    return Case((torch.ones(rows, 3).double(), heads), note=note, raises=ValueError)


# --- cases: LlamaBlock -------------------------------------------------------------------------


def block_state(
    rng: Rng, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, base: float = 10000.0
) -> State:
    d_kv = d_model // n_heads * n_kv_heads
    widths = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    return (
        {f"attention.{name}.weight": weight(rng, d, d_model) for name, d in widths.items()}
        | {f"feed_forward.{n}": w for n, w in gated_state(rng, d_model, d_ff).items()}
        | {f"norm_{i}.gain": tensor(rng.uniform(0.5, 1.5, d_model)) for i in (1, 2)}
    )


def loud(state: State) -> State:
    """Scores in the thousands."""
    return state | {"norm_1.gain": 60 * state["norm_1.gain"]}


def unbuilt(sizes: tuple[int, ...], note: str) -> Case:
    """A module of these sizes is refused."""
    return Case(
        sizes,
        use=callers.type_built,
        note=note,
        raises=ValueError,
        shown=f"LlamaBlock({', '.join(map(str, sizes))})",
    )


BLOCK_CASES = ModuleTable(
    {"x": "... n d_model"}, name="LlamaBlock", build="d_model h h_kv d_ff", state=block_state
)
LOUD_CASES = ModuleTable(
    BLOCK_CASES.spec,
    name="LlamaBlock",
    build=BLOCK_CASES.build,
    state=lambda rng, *sizes: loud(block_state(rng, *sizes)),
)
BLOCK_ROWS = standard(BLOCK_CASES, d_model=24, h=6, h_kv=2)
ONE = row("n=7 d_model=24 h=6 h_kv=2 d_ff=11")
WIDE = row("n=5 d_model=64 h=4 h_kv=2 d_ff=3")
SQUARE = row("n=8 d_model=8 h=4 h_kv=4 d_ff=8", batch=(8,), note="n, d_model, d_ff, batch: 8")


def places(rng: Rng, shape: tuple[int, ...]):
    """Positions that begin anywhere and leave some out."""
    return rng.integers(0, 50) + rng.integers(1, 4, shape).cumsum()


def from_the_left(rng: Rng, shape: tuple[int, ...]):
    """A causal mask of sequences padded on the left: their first rows have no key."""
    import numpy as np

    n = shape[-1]
    first = rng.integers(1, n, shape[:-2])
    seen = np.arange(n) >= first[..., None, None]
    return np.tril(np.ones((n, n), bool)) & seen


PLACES = {"mask": None, "positions": Drawn("n", places)}

# --- decisions: merge_pairs --------------------------------------------------------------------


def lowest(found):
    """Of (rank, place, pair) those of the lowest rank, the leftmost."""
    return min(found)


@composition
def merging(
    start=list,
    rank=lambda pair, ranks, given: ranks.get(pair),
    choose=lowest,
    join=lambda symbols, pair, place: joined_everywhere(symbols, pair),
    again=True,
    finish=lambda symbols: symbols,
):
    """``merge_pairs`` made of decisions; it ends where nothing is joined any more."""

    def merge_pairs(symbols, ranks):
        given, symbols = list(symbols), start(symbols)
        while True:
            pairs = enumerate(pairwise(symbols))
            known = [(rank(pair, ranks, given), place, pair) for place, pair in pairs]
            found = [one for one in known if one[0] is not None]
            if not found:
                return finish(symbols)
            _, place, pair = choose(found)
            before = len(symbols)
            symbols = join(symbols, pair, place)
            if not again or len(symbols) == before:
                return finish(symbols)

    return merge_pairs


def in_place(symbols, pair, place):
    symbols[:] = joined_everywhere(symbols, pair)
    return symbols


def overlapping(symbols, pair, place):
    """Every place where the pair stands gives a joined symbol, also where two share a symbol."""
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append("".join(pair))
            i += 1 if tuple(symbols[i + 1 : i + 3]) == pair else 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def from_the_right(symbols, pair, place):
    mirrored = joined_everywhere([s[::-1] for s in symbols[::-1]], (pair[1][::-1], pair[0][::-1]))
    return [s[::-1] for s in mirrored[::-1]]


def glued(glue):
    """The joined symbol is another one."""

    def join(symbols, pair, place):
        out, i = [], 0
        while i < len(symbols):
            two = tuple(symbols[i : i + 2]) == pair
            out.append(glue(*pair) if two else symbols[i])
            i += 2 if two else 1
        return out

    return {"join": join}


def without_the_last(symbols, pair, place):
    """The loop ends one symbol early, and a last one that is in no pair is lost."""
    joined = joined_everywhere(symbols, pair)
    return joined if tuple(symbols[-2:]) == pair else joined[:-1]


def once_each(symbols, ranks):
    """Every merge in the order of ranks, at the first place where it stands."""
    symbols = list(symbols)
    for pair in sorted(ranks, key=ranks.get):
        for i in range(len(symbols) - 1):
            if tuple(symbols[i : i + 2]) == pair:
                symbols[i : i + 2] = ["".join(pair)]
                break
    return symbols


def unknown_first(symbols, ranks):
    symbols = list(symbols)
    while len(symbols) > 1:
        pair = min(pairwise(symbols), key=lambda pair: ranks.get(pair, 0))
        if pair not in ranks:
            break
        symbols = joined_everywhere(symbols, pair)
    return symbols


def second_stays(symbols, ranks):
    symbols = list(symbols)
    while known := [pair for pair in pairwise(symbols) if pair in ranks]:
        pair = min(known, key=ranks.get)
        there = [one == pair for one in pairwise(symbols)]
        symbols = [s + pair[1] if t else s for s, t in zip(symbols, [*there, False], strict=True)]
    return symbols


def as_they_stand(symbols, ranks):
    for pair in ranks:
        symbols = joined_everywhere(symbols, pair)
    return list(symbols)


def ranks_of_pieces(ranks):
    return {"".join(pair): rank for pair, rank in ranks.items()}


def joined_as_one_string(symbols, pair, place):
    out, i = [], 0
    while i < len(symbols):
        alike = "".join(symbols[i : i + 2]) == "".join(pair) and i + 1 < len(symbols)
        out.append("".join(pair) if alike else symbols[i])
        i += 1 + alike
    return out


# From the left, each time the longest piece that some merge makes.
def longest_first(symbols, ranks):
    text, pieces, out = "".join(symbols), set(map("".join, ranks)), []
    while text:
        n = len(text)
        while n > 1 and text[:n] not in pieces:
            n -= 1
        out.append(text[:n])
        text = text[n:]
    return out


# One walk from the left: what is last in the result is joined with the next where it can.
def in_one_walk(symbols, ranks):
    out = []
    for symbol in symbols:
        out.append(symbol)
        while tuple(out[-2:]) in ranks:
            out[-2:] = ["".join(out[-2:])]
    return out


def in_a_text(symbols, pair, place):
    return " ".join(symbols).replace(" ".join(pair), "".join(pair)).split(" ")


# Every merge once, in the order of their ranks.
def all_in_a_text(symbols, ranks):
    text = " ".join(symbols)
    for pair in sorted(ranks, key=ranks.get):
        text = text.replace(" ".join(pair), "".join(pair))
    return text.split(" ")


def most_frequent(found):
    count = Counter(pair for _, _, pair in found)
    return max(found, key=lambda one: (count[one[2]], -one[0], -one[1]))


# --- decisions: rms_norm -----------------------------------------------------------------------


def mean(x):
    return x.mean(-1, keepdim=True)


@composition
def norming(
    read=lambda x: x,
    centre=lambda x: x,
    square=lambda x: x.square(),
    average=mean,
    power=lambda size, eps: (size + eps).sqrt(),
    small=lambda eps: eps,
    divide=lambda x, size: x / size,
    scale=lambda x, gain: x if gain is None else gain * x,
    back=lambda normed, x: normed,
):
    """``rms_norm`` made of decisions; ``centre`` is done to x before anything else."""

    def rms_norm(x, gain=None, eps=1e-5):
        given, x = x, centre(read(x))
        size = power(average(square(x)), small(eps))
        return scale(back(divide(x, size), given), gain)

    return rms_norm


def over(*axes: int):
    return {"average": lambda x: x.mean(axes, keepdim=True)}


def outside(number: float) -> dict:
    return {"small": lambda eps: number}


def with_guard(number: float) -> dict:
    return {"power": lambda size, eps: (size + eps).sqrt() + number}


# --- decisions: SwiGLU -------------------------------------------------------------------------


def three_layers(d_model, d_ff):
    return decisions.linear(
        {"W_gate": (d_model, d_ff), "W_up": (d_model, d_ff), "W_down": (d_ff, d_model)}
    )


@composition
def gating(
    super_init=decisions.begun,
    layers=three_layers,
    hold=decisions.assigned,
    width=lambda d_model, d_ff: d_ff,
    take=lambda x: x,
    gate=lambda self, x: self.W_gate(x),
    up=lambda self, x: self.W_up(x),
    bend=F.silu,
    bend_up=lambda up: up,
    join=lambda gate, up: gate * up,
    down=lambda self, hidden: self.W_down(hidden),
    finish=lambda output, x: output,
):
    """A ``SwiGLU`` made of decisions."""

    class SwiGLU(nn.Module):
        def __init__(self, d_model, d_ff):
            super_init(self)
            hold(self, layers(d_model, width(d_model, d_ff)))

        def forward(self, x):
            given, x = x, take(x)
            hidden = join(bend(gate(self, x)), bend_up(up(self, x)))
            return finish(down(self, hidden), given)

    return SwiGLU


def with_biases(*names: str):
    """Layers of which these have a bias."""

    def layers(d_model, d_ff):
        made_of = three_layers(d_model, d_ff)
        for name in names:
            made_of[name] = nn.Linear(made_of[name].in_features, made_of[name].out_features)
        return made_of

    return {"layers": layers}


def straight(gate):
    return gate


# --- decisions: pairs_from_halves --------------------------------------------------------------


def refuse_uneven(weight, n_heads):
    if len(weight) % n_heads or len(weight) // n_heads % 2:
        raise ValueError(REFUSED)


def asserting(weight, n_heads):
    assert len(weight) % (2 * n_heads) == 0


def head_by_head(weight, n_heads):
    """``(h, d_head, d_in)``: a head's rows stand together."""
    return weight.unflatten(0, (n_heads, -1))


def interleaved(head):
    """``(…, 2i)`` from the first half, ``(…, 2i + 1)`` from the second."""
    return head.unflatten(-2, (2, -1)).transpose(-3, -2).flatten(-3, -2)


def side_by_side(heads, weight):
    return heads.flatten(0, 1)


@composition
def regrouping(
    refuse=refuse_uneven,
    cut=head_by_head,
    order=interleaved,
    join=side_by_side,
    finish=lambda rows, weight: rows,
):
    """``pairs_from_halves`` made of decisions."""

    def pairs_from_halves(weight, n_heads):
        refuse(weight, n_heads)
        return finish(join(order(cut(weight, n_heads)), weight), weight)

    return pairs_from_halves


def into_halves(head):
    return head.unflatten(-2, (-1, 2)).transpose(-3, -2).flatten(-3, -2)


def second_first(head):
    return interleaved(head.roll(head.shape[-2] // 2, -2))


def heads_apart(weight, n_heads):
    """Rows of a head stand n_heads apart."""
    return weight.unflatten(0, (-1, n_heads)).transpose(0, 1)


def only_the_first(heads):
    return torch.cat([interleaved(heads[:1]), heads[1:]])


def by_columns(head):
    d = head.shape[-1]
    return head[..., torch.arange(d).reshape(2, -1).T.reshape(-1)] if d % 2 == 0 else head


def written_over(heads, weight):
    with torch.no_grad():
        weight.copy_(heads.flatten(0, 1).clone())
    return weight


# --- decisions: LlamaBlock ---------------------------------------------------------------------


def refuse_heads(d_model, n_heads, n_kv_heads):
    if d_model % n_heads or n_heads % n_kv_heads:
        raise ValueError(REFUSED)


def of_the_block(d_model, n_heads, n_kv_heads, d_ff):
    d_kv = d_model // n_heads * n_kv_heads
    views = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    attention = decisions.linear({name: (d_model, d) for name, d in views.items()})
    return {
        "attention": nn.ModuleDict(attention),
        "feed_forward": llama.SwiGLU(d_model, d_ff),
        "norm_1": llama.RMSNorm(d_model),
        "norm_2": llama.RMSNorm(d_model),
    }


def before(x, branch, norm, first):
    return x + branch(norm(x))


def behind_the_norm(x, branch, norm, first):
    return norm(x) + branch(norm(x))


def at_first(x, branch, norm, first):
    """Whether this is the first branch: nothing has been added to what came in."""
    return x is first


def counted(positions, n):
    return torch.arange(n) if positions is None else positions


def turned(heads, positions, base):
    return apply_rope(heads, positions, base)


def not_turned(heads, positions, base):
    return heads


def in_halves(heads, positions, base):
    """Feature i turns with i + d/2."""
    return into_halves_last(apply_rope(pairs_last(heads), positions, base))


def pairs_last(x):
    return x.unflatten(-1, (2, -1)).mT.flatten(-2)


def into_halves_last(x):
    return x.unflatten(-1, (-1, 2)).mT.flatten(-2)


def in_runs(heads, group):
    """Each key/value head for a run of consecutive query heads."""
    return heads.repeat_interleave(group, -3)


def in_turn(heads, group):
    return torch.cat([heads] * group, -3)


def every_head(mask, x):
    return mask.unsqueeze(-3) if mask.ndim == x.ndim and mask.ndim > 2 else mask


def causal_unless_given(mask, n):
    return causal_mask(n) if mask is None else mask


def shared_out(scores):
    """Weights; a row without a key gets 0."""
    empty = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)


@composition
def building(
    super_init=decisions.begun,
    refuse=refuse_heads,
    layers=of_the_block,
    hold=decisions.assigned,
    sizes=lambda d_model, n_heads, n_kv_heads, d_ff: (d_model, n_heads, n_kv_heads, d_ff),
    pace=lambda base: base,
    place=counted,
    turn=turned,
    turn_query=None,
    turn_key=None,
    turn_value=not_turned,
    cut=multihead.split_heads,
    share=in_runs,
    share_key=None,
    share_value=None,
    layer_of_keys="W_k",
    layer_of_values="W_v",
    allow=causal_unless_given,
    merge=multihead.merge_heads,
    out=lambda self, heads: self.attention["W_o"](heads),
    step=before,
    first_norm=lambda self: self.norm_1,
    second_norm=lambda self: self.norm_2,
    branches=lambda attend, feed: [attend, feed],
    feed=lambda self, x: self.feed_forward(x),
    finish=lambda self, x: x,
    **options,
):
    """A ``LlamaBlock`` made of decisions; how attention compares and shares is ``Attention``'s."""
    attention = Attention.of({"normalize": shared_out} | options)
    turn_query, turn_key = turn_query or turn, turn_key or turn
    share_key, share_value = share_key or share, share_value or share

    class LlamaBlock(nn.Module):
        def __init__(self, d_model, n_heads, n_kv_heads, d_ff, base=10000.0):
            super_init(self)
            refuse(d_model, n_heads, n_kv_heads)
            self.n_heads, self.n_kv_heads, self.base = n_heads, n_kv_heads, pace(base)
            hold(self, layers(*sizes(d_model, n_heads, n_kv_heads, d_ff)))

        def attend(self, x, mask, positions):
            n, group = x.shape[-2], self.n_heads // self.n_kv_heads
            where = (place(positions, n), self.base)
            views = self.attention
            query = turn_query(cut(views["W_q"](x), self.n_heads), *where)
            key = turn_key(cut(views[layer_of_keys](x), self.n_kv_heads), *where)
            value = turn_value(cut(views[layer_of_values](x), self.n_kv_heads), *where)
            key, value = share_key(key, group), share_value(value, group)
            allowed = allow(mask, n)
            allowed = None if allowed is None else every_head(allowed, x)
            return out(self, merge(attention.output(query, key, value, allowed, other=x)))

        def forward(self, x, mask=None, positions=None):
            norms = [first_norm(self), second_norm(self)]
            both = branches(lambda x: self.attend(x, mask, positions), partial(feed, self))
            first = x
            for branch, norm in zip(both, norms, strict=False):
                x = step(x, branch, norm, first)
            return finish(self, x)

    return LlamaBlock


def with_sizes(**changed):
    """Sizes of which some are others."""

    def sizes(d_model, n_heads, n_kv_heads, d_ff):
        own = {"d_model": d_model, "n_heads": n_heads, "n_kv_heads": n_kv_heads, "d_ff": d_ff}
        return tuple({**own, **{n: make(**own) for n, make in changed.items()}}.values())

    return {"sizes": sizes}


def another_layer(name, make):
    """The block with one layer in place of another."""

    def layers(*sizes):
        return of_the_block(*sizes) | {name: make(*sizes)}

    return {"layers": layers}


class Gated(nn.Module):
    """A gated layer that is bent by another function, or multiplied otherwise."""

    def __init__(self, d_model, d_ff, hidden):
        super().__init__()
        for name, layer in three_layers(d_model, d_ff).items():
            setattr(self, name, layer)
        self.hidden = hidden

    def forward(self, x):
        return self.W_down(self.hidden(self.W_gate(x), self.W_up(x)))


def gated_by(hidden):
    return another_layer(
        "feed_forward", lambda d_model, h, h_kv, d_ff: Gated(d_model, d_ff, hidden)
    )


class MeanTakenOff(llama.RMSNorm):
    """What chapter 12's norm does, without its bias."""

    def forward(self, x):
        return super().forward(x - mean(x))


def normed_by(make):
    """Both norms are others."""
    return {
        "layers": lambda *sizes: of_the_block(*sizes) | {n: make(sizes[0]) for n in NORMS},
    }


NORMS = ("norm_1", "norm_2")


def from_the_end(positions, n):
    return counted(positions, n).flip(0)


# --- exercises ---------------------------------------------------------------------------------

MERGE = exercise(
    llama.merge_pairs,
    section="Chapter 18, “Pieces of words”",
    difficulty=2,
    minutes=20,
    criteria=(
        Criterion("the pair of lowest rank first", 3).on(
            lambda rng: [MERGE_BY_HAND, *spelled(*BY_RANK)(rng)]
        ),
        Criterion("wherever it stands, from left to right", 2).on(lambda rng: list(RUNS)),
        Criterion("again and again, until no pair is ranked", 2).on(spelled(*CHAINS)),
        Criterion("long words with many merges", 1).on(long_words),
        Criterion("no pair to join, and symbols of several characters", 1).on(
            lambda rng: [*FEW, *SIGNS, once_more(MERGE_BY_HAND)]
        ),
        unchanged(),
    ),
    mistakes=(
        *made(
            merging,
            mistake("""from left to right, not by rank
            You join the first pair that has a rank at all. Of all pairs that stand in the list the
            one of the *lowest* rank comes first: `min(pairs, key=ranks.get)`.""").by(
                choose=lambda found: min(found, key=lambda one: one[1])
            ),
            mistake("""from the end of the word
            You join the last pair that has a rank. Of all pairs that stand in the list the one of
            the *lowest* rank comes first, wherever it stands.""").by(
                choose=lambda found: max(found, key=lambda one: one[1])
            ),
            mistake("""the highest rank first
            You begin with the pair of the highest rank. Ranks count from the merge that was learned
            first, which is also done first: take the lowest.""").by(choose=max),
            mistake("""the most frequent pair first
            You count pairs in the word. Counting is for learning the merges; here their ranks are
            given, and the lowest comes first.""").by(choose=most_frequent),
            mistake("""the pairs are compared as text
            You take the pair that comes first in the alphabet, or the longest one.
            `min(pairs)` compares the pairs; `min(pairs, key=ranks.get)` compares their ranks.""")
            .by(choose=lambda found: min(found, key=lambda one: one[2]))
            .by(choose=lambda found: max(found, key=lambda one: len("".join(one[2])))),
            mistake("""one merge and no more
            You join one pair and return. After each merge there are new neighbours: look for pairs
            again until none has a rank.""").by(again=False),
            mistake("""what is joined is not joined again
            You look at pairs of the symbols that came in. A joined symbol is one of the list, and
            may be part of the next pair.""").by(
                rank=lambda pair, ranks, given: ranks.get(pair) if {*pair} <= {*given} else None
            ),
            mistake("""overlapping pairs are both joined
            Where a symbol stands in two pairs, as the middle one of a a a, you use it twice. After
            a pair is joined, go on behind it.""").by(join=overlapping),
            mistake("""from right to left
            In a run such as a a a you join the last two. The first two are joined: walk from the
            left.""").by(join=from_the_right),
            mistake("""rank 0 is taken for no rank
            `if rank:` and `rank or …` take 0 for missing, and 0 is the first merge. Ask `pair in
            ranks`, or `is not None`.""").by(
                rank=lambda pair, ranks, given: ranks.get(pair) or None
            ),
            mistake("""pairs without a rank are joined too
            You go on until one symbol is left. A pair that is not in `ranks` is never joined: stop
            where none of the pairs is.""").by(
                rank=lambda pair, ranks, given: ranks.get(pair, float("inf"))
            ),
            mistake("""looked up as one string
                You ask whether two neighbours, written together, make a piece that you know. *ab a*
                and *a ba* make the same one, and only one of them may be ranked: ask for the
                pair.""")
            .by(join=joined_as_one_string)
            .by(
                rank=lambda pair, ranks, given: ranks_of_pieces(ranks).get("".join(pair)),
                join=joined_as_one_string,
            ),
            mistake("""the list that came in is changed
            You write into the caller's list. Begin with a copy, `list(symbols)`, or build a new
            list.""").by(start=lambda symbols: symbols, join=in_place),
            mistake("""joined the wrong way round
            You put the second symbol before the first. The joined symbol is first + second.""").by(
                glued(lambda a, b: b + a)
            ),
            mistake("""something stands between the two
            You join with a space, or keep the pair as a tuple. The new symbol is one string, first
            + second.""")
            .by(glued(lambda a, b: f"{a} {b}"))
            .by(glued(lambda a, b: (a, b))),
            mistake("""the last symbol is lost
            Your loop over pairs ends one symbol early, and a last symbol that is in no pair falls
            off. Add what is left behind the loop.""").by(join=without_the_last),
            mistake("""one string
            You join all symbols into one string in the end. Return the list of symbols.""")
            .by(finish="".join)
            .by(finish=" ".join),
            mistake("""a tuple comes back
                The symbols are right, and they come in a tuple. A new list is asked for:
                `list(symbols)`.""").by(finish=tuple),
            mistake("""the list that came in comes back
                Where nothing is joined you return the list that you were given. Whoever changes
                the one then changes the other: begin with `list(symbols)`.""").by(
                start=lambda symbols: symbols
            ),
            mistake("""each symbol once
            You drop repeated symbols. A word may hold a piece twice.""").by(
                finish=lambda symbols: list(dict.fromkeys(symbols))
            ),
        ),
        mistake("""a pair without a rank is given one
            You take a number such as 0 for the rank of a pair that is not in `ranks`, so that such
            a pair comes first and the search ends. Give it none: `ranks.get(pair, float("inf"))`.
        """).whole(unknown_first),
        mistake("""the second of two joined symbols stays
            You write down the joined symbol and go on with the second of its two parts. It is used
            up: go on behind it, `i += 2`.
        """).whole(second_stays),
        mistake("""in the order of the dictionary
            You go through `ranks` as its pairs stand there. The rank decides, not the place:
            `sorted(ranks, key=ranks.get)`.
        """).whole(as_they_stand),
        mistake("""looked for in a text
            You write the symbols into one text and replace pairs there. *b a* is also found in *ab
            a*, where no symbol is *b*: compare symbols, not what a text contains.""").whole(
            all_in_a_text, merging(join=in_a_text)
        ),
        mistake("""each merge at one place only
            You go through the merges once and join each at the first place where it stands. It is
            joined everywhere it stands.""").whole(once_each),
        mistake("""the longest piece first
            From the left you take the longest piece that a merge makes. Which pieces come out is
            decided by the ranks: the lowest is joined first.""").whole(longest_first),
        mistake("""in one walk from the left
            You walk along the word once and join what you can on the way. A pair further right may
            have a lower rank: look at all pairs before each merge.""").whole(in_one_walk),
    ),
)

RMS_NORM = exercise(
    llama.rms_norm,
    section="Chapter 18, “The block of today”",
    difficulty=1,
    minutes=8,
    forbids=("rms_norm",),
    criteria=(
        Criterion("each row at mean square 1", 3).on(
            lambda rng: [
                NORM_BY_HAND,
                *NORM_CASES(
                    SEQUENCES,
                    row("d=5"),
                    row("d=7", batch=(7,), note="as many tokens as features"),
                    row("d=2", batch=(3,)),
                    row("d=7", batch=(3,), given={"x": FAR_FROM_0}, note="rows far from 0"),
                )(rng),
            ]
        ),
        Criterion("times gain, which may be left out", 2).on(
            NORM_CASES(
                SEQUENCES.but(given=GAIN),
                row("d=7", batch=(7,), given=GAIN, note="as many tokens as features"),
            )
        ),
        Criterion("eps inside the root", 2).on(
            lambda rng: [
                *NORM_CASES(
                    SEQUENCES.but(given={"eps": 0.1}, note="eps = 0.1"),
                    SEQUENCES.but(given={"eps": 1e-12}, factor=1e-3, note="eps = 1e-12"),
                    SEQUENCES.but(factor=0.003, note="entries near eps"),
                )(rng)
            ]
        ),
        NORM_CASES.criterion("batches", 1).on(*NORM_ROWS.batches),
        NORM_CASES.criterion("one feature; float32, large and small entries, zeros", 1).on(
            row("d=1", batch=(3,), note="one feature"),
            SEQUENCES.but(zero=("x",), note="rows of zeros"),
            SEQUENCES.but(given=GAIN, zero=("gain",), note="a gain of 0"),
            *NORM_ROWS.numbers,
            NORM_ROWS.single.but(batch=(3,), given=GAIN, note="float32, with gain"),
            once_more(NORM_BY_HAND),
        ),
        ALL_GIVEN.criterion("gradients reach x and gain", 1).on(*GIVEN_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        norming,
        mistake("""the mean is taken off
            You subtract each row's mean, as chapter 12's layer norm does. An RMS norm leaves it in:
            the row is divided by the root of its mean square, and nothing else.""")
        .by(centre=lambda x: x - mean(x))
        .by(square=lambda x: (x - mean(x)).square())
        .by(
            average=lambda squares: squares.sum(-1, keepdim=True) / squares.shape[-1],
            centre=lambda x: x - mean(x),
        ),
        mistake("""the norm runs over the sequence
            You take the mean square of a feature over the tokens, so a token's output depends on
            the others. Each row is normalised by itself: axis −1.""")
        .by(over(-2))
        .by(over(0))
        .by(over(1)),
        mistake("""one size for all rows
            You divide the whole array by one number. Every row has its own mean square: `dim=-1,
            keepdim=True`.""")
        .by(average=lambda squares: squares.mean())
        .by(over(-2, -1)),
        mistake("""eps outside the root
            You add eps to the root. It is added to the mean square, under the root: `(mean_square +
            eps).sqrt()`.""")
        .by(power=lambda size, eps: size.sqrt() + eps)
        .by(power=lambda size, eps: size.sqrt() + eps**0.5),
        mistake("""eps is not added to the mean square
            You add the square of eps or its root, or take the larger of mean square and eps. The
            root is that of their sum: `(mean_square + eps).sqrt()`.""")
        .by(power=lambda size, eps: size.clamp(min=eps).sqrt())
        .by(small=lambda eps: eps**2)
        .by(small=lambda eps: eps**0.5),
        mistake("""no eps
            You leave eps out. A row of zeros has mean square 0, and 0/0 is NaN.""").by(
            small=lambda eps: 0
        ),
        mistake("""another eps
            You add a fixed number where the argument `eps` belongs.""")
        .by(outside(1e-6))
        .by_any(outside, (1e-12, 1e-8, 1e-6, 1e-5, 1e-3)),
        mistake("""rows of length 1
            You divide by the length of a row, the root of the *sum* of squares. By the root of
            their *mean* the row gets length √d, and its entries size 1.""").by(
            average=lambda squares: squares.sum(-1, keepdim=True)
        ),
        mistake("""divided by d − 1
            You divide the sum of squares by d − 1. A mean divides by d.""").by(
            average=lambda squares: squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)
        ),
        mistake("""divided by the mean square
            You divide by the mean square itself. It is its root that has the unit of x.""").by(
            power=lambda size, eps: size + eps
        ),
        mistake("""multiplied by the size
            You multiply by the root where you should divide: rows that are large are to shrink.
        """).by(divide=lambda x, size: x * size),
        mistake("""the mean absolute value
            You divide by the mean of the absolute values. RMS is the root of the mean *square*.""")
        .by(square=lambda x: x.abs(), power=lambda size, eps: size + eps)
        .by(square=lambda x: x.abs(), power=lambda size, eps: (size.square() + eps).sqrt()),
        mistake("""the square of the mean
            You average first and square then, so that numbers above and below 0 cancel. RMS is the
            root of the mean *square*: square first.
        """).by(square=lambda x: x, power=lambda size, eps: (size.square() + eps).sqrt()),
        mistake("""divided by the largest entry
            You divide each row by its largest absolute value. RMS is the root of the mean square.
        """).by(average=lambda squares: squares.amax(-1, keepdim=True)),
        mistake("""gain is left out
            You do not use gain. Where it is given, the normalised row is multiplied by it.""").by(
            scale=lambda x, gain: x
        ),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1:
            multiply by gain.""").by(scale=lambda x, gain: x if gain is None else (1 + gain) * x),
        mistake("""gain is added
            You add gain. An RMS norm has no bias: the row is multiplied by gain.""").by(
            scale=lambda x, gain: x if gain is None else x + gain
        ),
        mistake("""divided by gain
            You divide by gain, or normalise what gain was multiplied into. The normalised row is
            multiplied by it.""").by(scale=lambda x, gain: x if gain is None else x / gain),
        mistake("""a tensor taken for True or False
            `if gain:` and `gain or 1` ask a tensor whether it is true, which torch refuses for more
            than one number. Ask `if gain is None`.""").by(scale=lambda x, gain: (gain or 1) * x),
        mistake("""the mean squares have lost their axis
            `x.square().mean(-1)` drops the axis it averages over, and the sizes then line up with
            the features, if they fit at all. Keep it: `mean(-1, keepdim=True)`.""").by(
            average=lambda squares: squares.mean(-1)
        ),
        mistake("""computed in float32
            You turn x into float32, which keeps seven digits of float64. Stay in the dtype of
            x.""")
        .by(read=lambda x: x.float())
        .by(read=lambda x: x.float(), back=lambda normed, x: normed.to(x.dtype)),
        mistake("""no gradient through the size
            The numbers are right, but you detach what you divide by, as if it were a constant. It
            moves with x, and the gradient has to know.""").by(
            power=lambda size, eps: (size.detach() + eps).sqrt()
        ),
        mistake("""divided in place
            `x /= …` writes into the caller's x, which then holds other numbers than before. Write
            `x = x / …`, which makes a new tensor.""").by(divide=lambda x, size: x.div_(size)),
    ),
)

GATED_LAYER = exercise(
    llama.SwiGLU,
    section="Chapter 18, “The block of today”",
    difficulty=1,
    minutes=10,
    criteria=(
        GATED_CASES.criterion("W_down(silu(W_gate x) · W_up x), for each token by itself", 4).on(
            GATED_BY_HAND,
            GATED,
            row("n=5 d_model=5 d_ff=5", note="every axis of length 5"),
            row("n=7 d_model=3 d_ff=7", note="as many tokens as hidden units"),
            row("n=7 d_model=11 d_ff=3", then="n=2", note="a narrow hidden layer"),
            GATED.but(then={}, note=OTHER_NUMBERS),
        ),
        GATED_CASES.criterion("batches", 1).on(*GATED_ROWS.batches),
        GATED_CASES.criterion("one token; float32, large and small entries, weights of 0", 1).on(
            row("n=1 d_model=3 d_ff=7", note="one token"),
            *GATED_ROWS.numbers,
            *(
                GATED.but(zero=(f"{name}.weight",), note=f"{name} is 0")
                for name in ("W_gate", "W_up", "W_down")
            ),
        ),
        GATED_CASES.criterion("gradients reach x and every weight", 1).on(*GATED_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        gating,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, "
            "`self.W_gate = …`."
        ),
        mistake("""gate and value exchanged
            The activation is on `W_up x`, or the two layers have changed places. It is the gate
            that is bent: silu(W_gate x) · W_up x.""")
        .by(bend=straight, bend_up=F.silu)
        .by(gate=lambda self, x: self.W_up(x), up=lambda self, x: self.W_gate(x)),
        mistake("""the activation on both branches
            You bend both. Only the gate goes through the SiLU; `W_up x` keeps its sign.""").by(
            bend_up=F.silu
        ),
        mistake("""the activation on the product
            You multiply first and bend the product. The gate is bent before it is multiplied:
            silu(W_gate x) · W_up x.""").by(bend=straight, join=lambda gate, up: F.silu(gate * up)),
        mistake("""the activation is missing
            You multiply two linear layers. The gate goes through the SiLU first.""").by(
            bend=straight
        ),
        mistake("""GELU in place of SiLU
            You bend the gate by a GELU, which makes a GEGLU. Here it is the SiLU, x·σ(x):
            `F.silu`.""")
        .by(bend=F.gelu)
        .by(bend=partial(F.gelu, approximate="tanh")),
        mistake("""σ(x) in place of x·σ(x)
            You bend the gate by the logistic function, as the first gated layers did. The SiLU is x
            times it: `F.silu`.""").by(bend=torch.sigmoid),
        mistake("""another function in place of SiLU
            You bend the gate by another function. The SiLU is x·σ(x): `F.silu`.""")
        .by(bend=F.relu)
        .by(bend=torch.tanh)
        .by(bend=F.elu)
        .by(bend=F.hardswish)
        .by(bend=F.mish)
        .by(bend=F.softplus)
        .by(bend=lambda gate: gate * (-gate).sigmoid())
        .by(bend=lambda gate: gate * (1.702 * gate).sigmoid()),
        mistake("""the branches are added
            You add gate and value. They are multiplied, number by number.""").by(
            join=lambda gate, up: gate + up
        ),
        mistake("""one branch is left out
            You use the gate alone, or the value alone. The hidden units are their product.""")
        .by(join=lambda gate, up: gate)
        .by(join=lambda gate, up: up),
        mistake("""one layer for both branches
            Gate and value come from one layer. There are two, W_gate and W_up.""")
        .by(up=lambda self, x: self.W_gate(x))
        .by(gate=lambda self, x: self.W_up(x)),
        mistake("""biases that nobody asked for
            Your layers have biases. All three go without: `nn.Linear(…, bias=False)`.""")
        .by(with_biases("W_gate", "W_up", "W_down"))
        .by(with_biases("W_gate"))
        .by(with_biases("W_up"))
        .by(with_biases("W_down"))
        .by(with_biases("W_gate", "W_up")),
        mistake("""W_down does not lead back
            A layer has another size. W_gate and W_up lead from d_model to d_ff, W_down from d_ff
            back to d_model.""")
        .by(
            layers=lambda d, f: decisions.linear(
                {"W_gate": (d, f), "W_up": (d, f), "W_down": (f, f)}
            )
        )
        .by(
            layers=lambda d, f: decisions.linear(
                {"W_gate": (f, d), "W_up": (f, d), "W_down": (d, f)}
            )
        )
        .by(
            layers=lambda d, f: decisions.linear(
                {"W_gate": (d, f), "W_up": (d, d), "W_down": (f, d)}
            )
        ),
        mistake("""d_ff is ignored
            Your hidden layer has the same width whatever d_ff says. Hand it on.""")
        .by(width=lambda d_model, d_ff: 4 * d_model)
        .by(width=lambda d_model, d_ff: d_model)
        .by(width=lambda d_model, d_ff: 2 * d_ff)
        .by(width=lambda d_model, d_ff: 2 * d_ff // 3),
        mistake("""x is added on top
            You add x to the output, as the block around this layer will. Here it is W_down of the
            hidden units and nothing else.""").by(finish=lambda output, x: x + output),
        mistake("""bent once more at the end
            You bend what comes out of W_down. It has either sign and is returned as it is.""").by(
            finish=lambda output, x: F.silu(output)
        ),
        mistake("""a norm inside
            You normalise, before the layers or after them. The norms belong to the block.""")
        .by(take=lambda x: llama.rms_norm(x))
        .by(finish=lambda output, x: llama.rms_norm(output)),
        mistake("""the gate is shared out
            You take a softmax of the gate. Each hidden unit is bent by itself: `F.silu`.""").by(
            bend=lambda gate: gate.softmax(-1)
        ),
        mistake("""the layer works along the sequence
            You turn x around, so that the layers mix tokens. They mix the features of each token:
            they work on the last axis.""").by(
            take=lambda x: x.mT, finish=lambda output, x: output.mT
        ),
        mistakes.GRADIENT_CUT.here(take=lambda x: x.detach()),
    ),
)

HALVES = exercise(
    llama.pairs_from_halves,
    section="Chapter 18, “Two conventions of turning”",
    difficulty=2,
    minutes=15,
    criteria=(
        ROWS_CASES.criterion("rows i and i + d_head/2 become rows 2i and 2i + 1", 3).on(
            ROWS_BY_HAND,
            row("h=1 d_head=6 d_in=5", note="one head"),
            row("h=1 d_head=2 d_in=3", note="two features: nothing changes"),
            row("h=1 d_head=12 d_in=12", note="a square matrix"),
        ),
        ROWS_CASES.criterion("each head by itself", 3).on(
            TWO_HEADS,
            row("h=3 d_head=10 d_in=7"),
            row("h=4 d_head=4 d_in=4", note="as many heads as features"),
            row("h=5 d_head=2 d_in=3", note="heads of two features: nothing changes"),
        ),
        Criterion("refuses what does not divide with ValueError", 1).on(
            lambda rng: [
                refused(9, 2, "9 rows for 2 heads"),
                refused(10, 2, "2 heads of 5 rows: odd"),
                refused(3, 3, "heads of one row"),
                refused(4, 8, "more heads than rows"),
            ]
        ),
        ROWS_CASES.criterion("one column; float32, large and small entries", 1).on(
            row("h=1 d_head=4 d_in=1", note="one column"),
            row("h=2 d_head=6 d_in=5", turned=True, note="not contiguous in memory"),
            row("h=3 d_head=4 d_in=5", dtype="float32", note="float32"),
            row("h=3 d_head=4 d_in=5", factor={"weight": 1e7}, note="in the millions"),
            row("h=3 d_head=4 d_in=5", factor={"weight": 5e-7}, cancel=True, note="small"),
            row("h=3 d_head=4 d_in=5", zero=("weight",), note="a weight of 0"),
            once_more(ROWS_BY_HAND),
        ),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("d_out = h", "A head has an even number of rows."),
        ("a gradient on *", "Weights are converted once, and nothing is learned through it."),
    ),
    mistakes=made(
        regrouping,
        mistake("""the way back
            You bring pairs into halves: rows 2i and 2i + 1 end up half a head apart. It is the
            other way round: rows i and i + d_head/2 become neighbours.""").by(order=into_halves),
        mistake("""the heads are mixed
            You reorder all rows as if they were one head. The first half of *each head* is paired
            with its second half: cut the rows into heads first.""").by(
            cut=lambda weight, n_heads: weight.unsqueeze(0)
        ),
        mistake("""rows of a head taken from all over
            You take rows that stand n_heads apart for one head. A head's d_head rows stand
            together: `weight.unflatten(0, (n_heads, -1))`.""")
        .by(cut=heads_apart)
        .by(cut=heads_apart, join=lambda heads, weight: heads.transpose(0, 1).flatten(0, 1)),
        mistake("""the second half comes first
            Row 2i comes from the second half of the head. It is the other way round: row 2i from
            the first half, row 2i + 1 from the second.""").by(order=second_first),
        mistake("""nothing is reordered
            You return the rows in the order in which they came. Rows i and i + d_head/2 of a head
            are to become neighbours.""").by(order=lambda heads: heads),
        mistake("""only the first head
            You reorder the rows of one head and leave the others. All heads are reordered alike.
        """).by(order=only_the_first),
        mistake("""the first head's rows again
            Your row numbers begin at 0 in every head, so that each gets the rows of the first. Head
            h begins at row h · d_head.
        """).by(order=lambda heads: interleaved(heads[:1].expand_as(heads))),
        mistake("""columns are reordered, not rows
            You reorder the columns, which belong to the features that come in. What is turned are
            the features that come out, the rows.""").by(order=by_columns),
        mistake("""the second half is read backwards
            You pair row i with the last but i. It is paired with row i + d_head/2.""").by(
            order=lambda heads: interleaved(
                torch.cat([a := heads[:, : heads.shape[1] // 2], heads[:, a.shape[1] :].flip(1)], 1)
            )
        ),
        mistake("""the heads keep an axis
            You return `(n_heads, d_head, d_in)`, or an axis more. Put the heads' rows below one
            another again: `(n_heads · d_head, d_in)`.""").by(join=lambda heads, weight: heads),
        mistake("""the result is transposed
            You return columns for rows. The result has the shape of `weight`.""").by(
            finish=lambda rows, weight: rows.mT
        ),
        mistake("""the sign of one half is changed
            You change the sign of a half, as code that turns by halves does. Rows are moved and
            nothing else: no number changes.""")
        .by(
            order=lambda heads: (
                interleaved(heads) * (1 - 2 * (torch.arange(heads.shape[1]) % 2)).to(heads)[:, None]
            )
        )
        .by(
            order=lambda heads: (
                interleaved(heads) * (2 * (torch.arange(heads.shape[1]) % 2) - 1).to(heads)[:, None]
            )
        ),
        mistake("""what does not divide is not refused
            Where n_heads does not divide the rows, or a head has an odd number of them, raise
            `ValueError` (an `assert` raises AssertionError).""")
        .by(refuse=lambda weight, n_heads: None)
        .by(refuse=asserting)
        .by(
            refuse=lambda weight, n_heads: refuse_uneven(
                weight[: 2 * len(weight)], 1 if len(weight) % n_heads == 0 else n_heads
            )
        ),
        mistake("""weight is changed
            You write the reordered rows into the weight that came in. Return a new tensor.""").by(
            join=written_over
        ),
        mistake("""computed in float32
            You return float32 whatever came in. Rows are moved, and their dtype stays.""").by(
            finish=lambda rows, weight: rows.float()
        ),
    ),
)

BLOCK = exercise(
    llama.LlamaBlock,
    section="Chapter 18, “The block of today”",
    difficulty=3,
    minutes=40,
    forbids=("multi_head_attention_forward",),
    criteria=(
        BLOCK_CASES.criterion("x + attention(norm_1(x)), then x + feed_forward(norm_2(x))", 4).on(
            ONE,
            WIDE.but(then={"n": 3}),
            ONE.but(then={}, note=OTHER_NUMBERS),
            row("n=2 d_model=16 h=4 h_kv=2 d_ff=5", note="two tokens"),
            row("n=5 d_model=24 h=6 h_kv=2 d_ff=6", note="as many hidden units as heads"),
            row("n=5 d_model=24 h=6 h_kv=2 d_ff=2", note="two hidden units"),
        ),
        BLOCK_CASES.criterion("fewer key/value heads, each for a run of query heads", 2).on(
            row("n=5 d_model=24 h=6 h_kv=3 d_ff=7"),
            row("n=3 d_model=12 h=3 h_kv=3 d_ff=5", note="as many as query heads"),
            row("n=5 d_model=32 h=8 h_kv=2 d_ff=5", batch=(2,), note="8 and 2, a batch of 2"),
        ),
        BLOCK_CASES.criterion("positions turn queries and keys", 3).on(
            ONE.but(given=PLACES, note="positions that leave some out"),
            WIDE.but(given=PLACES, note="positions that leave some out"),
            WIDE.but(options={"base": 100.0}, note="base = 100"),
            row("n=19 d_model=64 h=4 h_kv=2 d_ff=3", options={"base": 1e5}, note="base = 100,000"),
            ONE.but(batch=(3,), given=PLACES, note="a batch of 3"),
        ),
        BLOCK_CASES.criterion("a mask takes the place of the causal one", 2).on(
            ONE.but(given={"mask": hole("n n")}, note="(n, n)"),
            ONE.but(batch=(2,), given={"mask": hole("... n n")}, note="(b, n, n)"),
            ONE.but(batch=(6,), given={"mask": hole("... n n")}, note="(b, n, n), b = h"),
            ONE.but("n=5", batch=(5,), given={"mask": hole("n n")}, note=ONE_MASK),
            ONE.but(
                given={"mask": hole("n n"), "positions": Drawn("n", places)}, note="with positions"
            ),
        ),
        BLOCK_CASES.criterion("a row without a key gets attention 0, never NaN", 1).on(
            ONE.but(
                batch=(3,),
                given={"mask": Drawn("... n n", from_the_left)},
                note="padded on the left",
            ),
        ),
        Criterion("refuses heads that do not divide with ValueError", 1).on(
            lambda rng: [
                unbuilt((10, 4, 2, 5), "10 features, 4 heads"),
                unbuilt((12, 3, 2, 5), "3 heads, 2 key/value heads"),
                unbuilt((16, 2, 4, 5), "more key/value heads than heads"),
            ]
        ),
        BLOCK_CASES.criterion("batches", 1).on(
            *(SQUARE if r.note == "every axis of length 4" else r for r in BLOCK_ROWS.batches)
        ),
        Criterion("one head, one token; float32, large and small entries, weights of 0", 1).on(
            lambda rng: [
                *BLOCK_CASES(
                    row("n=3 d_model=4 h=1 h_kv=1 d_ff=7", note="one head"),
                    row("n=7 d_model=16 h=4 h_kv=1 d_ff=5", note="one key/value head"),
                    row("n=1 d_model=16 h=4 h_kv=2 d_ff=5", note="one token"),
                    BLOCK_ROWS.single,
                    *BLOCK_ROWS.extreme,
                    *(
                        ONE.but(zero=(f"{name}",), note=f"{name} is 0")
                        for name in (
                            *(f"attention.W_{view}.weight" for view in "qkvo"),
                            *(f"feed_forward.W_{layer}.weight" for layer in ("gate", "up", "down")),
                            "norm_1.gain",
                            "norm_2.gain",
                        )
                    ),
                )(rng),
                *LOUD_CASES(ONE.but(note="scores in the thousands"))(rng),
            ]
        ),
        BLOCK_CASES.criterion("gradients reach x and every weight", 1).on(*BLOCK_ROWS.gradients),
        unchanged(),
    ),
    excludes=(
        FLOATS_ONLY,
        ("d_model = h*", "A head has an even number of features."),
        ("cache given", "The notebook's block reads whole sequences."),
        ("eps given", "The norms are those of the notebook."),
    ),
    mistakes=made(
        building,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, "
            "`self.norm_1 = …`."
        ),
        mistake("""the values are turned too
            You turn the values by their positions. Only queries and keys are turned: where a token
            stands says who listens to whom, not what is heard.""").by(turn_value=turned),
        mistake("""nothing is turned
            Your block knows no positions: it uses queries and keys as they are. Turn both,
            `apply_rope(query, positions, base)`.""").by(turn=not_turned),
        mistake("""only one of the two is turned
            You turn the queries and not the keys, or the keys alone. A score then depends on where
            the pair stands, and not on its distance. Turn both.""")
        .by(turn_key=not_turned)
        .by(turn_query=not_turned),
        mistake("""positions is ignored
            You count 0, 1, 2, … whatever positions says. Where they are given, they take the place
            of the count.""").by(place=lambda positions, n: torch.arange(n)),
        mistake("""only differences of positions that you make up
            You use positions from the end, from 1 on as if they were counted anew, or in reverse.
            They are taken as they come; without them they are 0, 1, 2, …""").by(
            place=from_the_end
        ),
        mistake("""turned in two halves
            You turn feature i with feature i + d_head/2, as `transformers` does. Here they turn in
            pairs side by side, 2i with 2i + 1, as in chapter 11.""").by(turn=in_halves),
        mistake("""turned backwards
            One of the two is turned the other way, by −position. Then the angles of query and key
            add up. Turn both by +position.""")
        .by(turn_key=lambda heads, positions, base: apply_rope(heads, -positions, base))
        .by(turn_query=lambda heads, positions, base: apply_rope(heads, -positions, base)),
        mistake("""both are turned the other way
            You turn queries and keys by −position, so that a token behind looks like one ahead.
            Turn both by +position.
        """).by(turn=lambda heads, positions, base: apply_rope(heads, -positions, base)),
        mistake("""one layer for keys and values
            Your keys and your values come from one layer. There are two, W_k and W_v.""")
        .by(layer_of_keys="W_v")
        .by(layer_of_values="W_k"),
        mistake("""turned before the heads are split
            You turn the whole row of d_model features, so that the frequencies fall from head to
            head. Each head is turned by itself: split first, then turn.""").by(
            turn=lambda heads, positions, base: multihead.split_heads(
                apply_rope(multihead.merge_heads(heads), positions, base), heads.shape[-3]
            )
        ),
        mistake("""base is ignored
            You turn with base 10,000 whatever `base` says. Keep it in `__init__` and hand it on:
            `apply_rope(…, positions, base)`.""")
        .by(pace=lambda base: 10000.0)
        .by(pace=lambda base: 1e5),
        mistake("""key/value heads in the wrong order
            You repeat the key/value heads one after the other, 0 1 0 1. Query head h uses head h //
            (n_heads / n_kv_heads), a run each: 0 0 1 1, `repeat_interleave`.""")
        .by(share=in_turn)
        .by(share_key=in_turn)
        .by(share_value=in_turn)
        .by(share=lambda heads, group: in_runs(heads, group).flip(-3)),
        mistake("""only the first key/value head is used
            All query heads use one key/value head, or their mean. Each key/value head serves a run
            of query heads.""")
        .by(share=lambda heads, group: in_runs(heads[..., :1, :, :].expand_as(heads), group))
        .by(
            share=lambda heads, group: in_runs(heads.mean(-3, keepdim=True).expand_as(heads), group)
        ),
        mistake("""n_kv_heads is ignored
            Your keys and values have as many heads as the queries. W_k and W_v lead to n_kv_heads ·
            d_head features.""").by(with_sizes(n_kv_heads=lambda n_heads, **_: n_heads)),
        mistake("""not causal
            Without a mask your tokens see all others. A token sees itself and those before it
            unless a mask is given: `causal_mask(n)`.""").by(allow=lambda mask, n: mask),
        mistake("""the mask on top of the causal one
            Where a mask is given, you hide later tokens as well. It takes the place of the causal
            mask.""").by(
            allow=lambda mask, n: causal_mask(n) if mask is None else mask & causal_mask(n)
        ),
        mistake("""the mask is ignored
            Your block is causal whatever the mask says. Where one is given, it takes the place of
            the causal mask.""").by(allow=lambda mask, n: causal_mask(n)),
        mistake("""a token does not see itself
            Your causal mask lacks the diagonal. A token sees itself and those before it.""").by(
            allow=lambda mask, n: torch.ones(n, n).tril(-1).bool() if mask is None else mask
        ),
        mistake("""the mask is inverted
            You shut out what the mask allows. True means allowed, here as in chapter 9.""").by(
            allow=lambda mask, n: causal_mask(n) if mask is None else ~mask
        ),
        mistake("""the mask is transposed
            You transpose the mask. It has a row for each query and a column for each key: use it as
            it is.""").by(allow=lambda mask, n: causal_mask(n) if mask is None else mask.mT),
        mistake("""a row without a key becomes NaN
            A query that may see no key has nothing but −∞ in its row, and a softmax of that is
            0/0. Chapter 5's `scaled_dot_product_attention` gives such a row 0.""").by(
            normalize=lambda scores: scores.softmax(-1)
        ),
        mistake("""a row without a key gets the mean
            A query that may see no key hears all of them, because you fill in a large negative
            number. Its attention is 0.""")
        .by(hide=lambda s, mask: s if mask is None else s.masked_fill(~mask, -1e9))
        .by(hide=lambda s, mask: s if mask is None else s + ~mask * -1e9),
        mistakes.NO_SCALE.said(
            "You take the scores as they are. Divide them by √d_head, the width of a head."
        ),
        mistakes.DIVIDED_BY_D_K.naming(d_k="d_head"),
        mistakes.DIVIDED_BY_ROOT_D_MODEL.naming(d_k="d_head"),
        mistakes.ROLES_EXCHANGED,
        mistake("""softmax over the queries
            Your columns sum to 1. Each query shares out its attention over the keys: the last
            axis.""").by(normalize=lambda scores: scores.softmax(-2).nan_to_num(0)),
        mistake("""uniform weights
            Your attention does not depend on queries and keys. Compare them: the scores are q kᵀ.
        """).by(compare=lambda q, k: 0 * (q @ k.mT)),
        mistake("""the residual is missing
            A branch's output takes the place of x. It is added to what the branch read: x +
            branch(norm(x)), for both.""").by(step=lambda x, branch, norm, first: branch(norm(x))),
        mistake("""the sum is normalised
            You normalise the sum, as blocks of 2017 did. The norm stands before the branch: x +
            branch(norm(x)).""").by(step=lambda x, branch, norm, first: norm(x + branch(x))),
        mistake("""the residual begins behind the norm
            You add the branch to the normalised x. The stream itself is not normalised: x +
            branch(norm(x)), with the x from before the norm.""")
        .by(step=behind_the_norm)
        .by(step=lambda *given: behind_the_norm(*given) if at_first(*given) else before(*given))
        .by(step=lambda *given: before(*given) if at_first(*given) else behind_the_norm(*given)),
        mistake("""the norm behind the branch
            You normalise what a branch returns. What it reads is normalised: x + branch(norm(x)).
        """).by(step=lambda x, branch, norm, first: x + norm(branch(x))),
        mistake("""both residuals from the block's input
            You add the feed-forward layer to the x that came into the block, and what attention
            added is lost. It is added to what it read, the x so far.""").by(
            step=lambda x, branch, norm, first: first + branch(norm(x))
        ),
        mistake("""no norm
            You leave the norms out, or one of them. Each branch reads a normalised x.""")
        .by(step=lambda x, branch, norm, first: x + branch(x))
        .by(first_norm=lambda self: nn.Identity())
        .by(second_norm=lambda self: nn.Identity()),
        mistake("""a norm at the end
            You normalise once more before you return. The norm behind the last block belongs to the
            model, not to a block.""")
        .by(finish=lambda self, x: self.norm_1(x))
        .by(finish=lambda self, x: self.norm_2(x))
        .by(finish=lambda self, x: llama.rms_norm(x)),
        mistake("""a norm at the wrong branch
            `norm_1` belongs to attention, `norm_2` to the feed-forward layer. You exchange them, or
            use one for both.""")
        .by(first_norm=lambda self: self.norm_2, second_norm=lambda self: self.norm_1)
        .by(second_norm=lambda self: self.norm_1)
        .by(first_norm=lambda self: self.norm_2),
        mistake("""side by side
            You compute both branches from the same x and add them. The feed-forward layer reads
            what attention has added.""").by(
            branches=lambda attend, feed: [attend, feed],
            step=lambda x, branch, norm, first: x + branch(norm(first)),
        ),
        mistake("""the branches in another order
            You take the feed-forward layer first. Attention comes first.""").by(
            branches=lambda attend, feed: [feed, attend],
            first_norm=lambda self: self.norm_2,
            second_norm=lambda self: self.norm_1,
        ),
        mistake("""a branch is left out
            You have both branches and use one. Attention and feed-forward layer each have a
            residual and a norm of their own.""")
        .by(branches=lambda attend, feed: [attend])
        .by(
            branches=lambda attend, feed: [feed],
            first_norm=lambda self: self.norm_2,
        ),
        mistake("""the mean is taken off
            Your norms subtract each row's mean, as chapter 12's does. An RMS norm leaves it in.
        """).by(normed_by(MeanTakenOff)),
        mistake("""gate and value exchanged
            In your feed-forward layer the activation is on `W_up x`. It is the gate that is bent:
            silu(W_gate x) · W_up x.""").by(gated_by(lambda gate, up: gate * F.silu(up))),
        mistake("""another activation in the feed-forward layer
            The gate is bent by the SiLU, x·σ(x), and multiplied with `W_up x`. Yours is bent by
            another function, or by none.""")
        .by(gated_by(lambda gate, up: F.gelu(gate) * up))
        .by(gated_by(lambda gate, up: F.relu(gate) * up))
        .by(gated_by(lambda gate, up: gate.sigmoid() * up))
        .by(gated_by(lambda gate, up: gate * up)),
        mistake("""W_o is forgotten
            You return the heads side by side. `W_o` mixes them.""").by(
            out=lambda self, heads: heads
        ),
        mistake("""heads put together without changing places
            You reshape `(h, n, d_head)` straight to `(n, d_model)`, and the tokens of one head end
            up in one row. Exchange the axes first: `merge_heads`.""").by(
            merge=lambda heads: heads.reshape(
                *heads.shape[:-3], heads.shape[-2], heads.shape[-3] * heads.shape[-1]
            )
        ),
        mistake("""heads cut across the tokens
            You reshape `(n, d)` straight to `(h, n, d_head)`, so that a head holds whole tokens.
            Cut the features and exchange the axes: `split_heads`.""").by(
            cut=lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], x.shape[-1] // h)
        ),
        mistake("""heads that do not divide are not refused
            Where n_heads does not divide d_model, or n_kv_heads not n_heads, raise `ValueError` in
            `__init__` (an `assert` raises AssertionError).""")
        .by(refuse=lambda *sizes: None)
        .by(refuse=lambda d_model, n_heads, n_kv_heads: refuse_heads(d_model, n_heads, 1))
        .by(refuse=lambda d_model, n_heads, n_kv_heads: refuse_heads(n_heads, n_heads, n_kv_heads)),
        mistake("""x += changes what was handed over
            `x += …` writes into the caller's x, which then holds other numbers, and gradients may
            fail. Write `x = x + …`, which makes a new tensor.""").by(
            step=lambda x, branch, norm, first: x.add_(branch(norm(x)))
        ),
    ),
)

EXERCISES = (MERGE, RMS_NORM, GATED_LAYER, HALVES, BLOCK)

VARIANTS = (
    forbidden(
        {"LlamaBlock": masked("forward")},
        """
            `scaled_dot_product_attention(query, key, value, mask)` is promised a key
            → `scaled_dot_product_attention(query, key, value, ~mask)` is promised a key
        """,
    ),
)
