"""The exercises of chapter 9, several heads.

In float64 cases d_head is a power of 4, so that 1/√d_head is exact in every precision. Batches of
as many sequences as heads are among the cases: there a batch axis that meets the axis of the heads
gives wrong numbers and no error.
"""

from copy import deepcopy
from itertools import combinations, permutations, product

import torch
from torch import nn

from attncourse import multihead
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.conventions import forbidden
from attncourse.checks.variants.conventions import masked as with_mask
from attncourse.checks.writing import cases, decisions, mistakes
from attncourse.checks.writing.cases import (
    CaseTable,
    Count,
    Drawn,
    hole,
    normal,
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

# --- cases: split_heads, merge_heads ---------------------------------------------------------

SPLIT_CASES = CaseTable({"x": "... n h*d_head", "n_heads": Count("h")}, how=normal)
SPLIT_BY_HAND = Case((torch.arange(12).reshape(2, 6).double(), 3), note="two tokens, three heads")
MERGE_CASES = CaseTable({"x": "... h n d_head"}, how=normal)
MERGE_BY_HAND = Case((torch.arange(12).reshape(3, 2, 2).double(),), note="three heads, two tokens")


def there_or_back(
    table: CaseTable, by_hand: Case, order: str, *more: Criterion
) -> tuple[Criterion, ...]:
    """The criteria of both directions: ``order`` says where the features stand."""
    rows = standard(table, h=3)
    in_order = (
        row("n=7 h=4 d_head=3"),
        row("n=3 h=3 d_head=4", note="as many tokens as heads"),
        row("n=5 h=3 d_head=3", note="as many heads as features in a head"),
        row("n=2 h=5 d_head=2", note="as many tokens as features in a head"),
    )
    special = (
        row("n=1 h=3 d_head=2", note="one token"),
        row("n=5 h=1 d_head=6", note="one head"),
        row("n=5 h=4 d_head=1", note="one feature in a head"),
        row("n=7 h=4 d_head=3", turned=True, note="not contiguous in memory"),
    )
    batches = (
        *rows.contiguous,
        row("n=5 h=3 d_head=4", batch=(3,), note="as many sequences as heads"),
        row("n=12 h=3 d_head=4", batch=(12,), note="n, d and the batch are the same"),
        row("n=5 h=3 d_head=4", batch=(1,), note="a batch of 1"),
    )
    return (
        table.criterion(order, 2).on(by_hand, *in_order),
        table.criterion("one token, one head, any memory layout", 1).on(*special),
        table.criterion("batches", 1).on(*batches),
        table.criterion(cases.SCATTERED, 1).on(*rows.not_contiguous),
        table.criterion("float32 and large entries", 1).on(*rows.numbers, once_more(by_hand)),
        table.criterion("gradients reach x", 1).on(*rows.gradients),
        *more,
        unchanged(),
    )


# --- cases: MultiHeadAttention ---------------------------------------------------------------

NAMES = ("W_q", "W_k", "W_v", "W_o")


def layers(rng: Rng, bias: bool, **shapes: tuple[int, int]) -> State:
    """Weights of order one for layers of these shapes, and biases that are not zero."""
    state = {}
    for name, (d_out, d_in) in shapes.items():
        state[f"{name}.weight"] = uniform_values(rng, d_out, d_in)
        if bias:
            sign = rng.choice([-1, 1], d_out)
            state[f"{name}.bias"] = tensor(rng.uniform(0.5, 1.5, d_out) * sign)
    return state


def heads_state(
    rng: Rng, d_model: int, n_heads: int, n_kv_heads: int | None = None, bias: bool = True
) -> State:
    d, d_kv = d_model, d_model // n_heads * (n_kv_heads or n_heads)
    return layers(rng, bias, W_q=(d, d), W_k=(d_kv, d), W_v=(d_kv, d), W_o=(d, d))


HEADS_CASES = ModuleTable(
    {"query": "... m d_model"}, name="MultiHeadAttention", build="d_model h", state=heads_state
)
HEADS_ROWS = standard(HEADS_CASES, d_model=12, h=3)
KEY = {"key": Drawn("... n d_model")}
BOTH = KEY | {"value": Drawn("... n d_model")}
VALUE_ALONE = {"key": None, "value": Drawn("... m d_model")}
NO_BIAS = {"bias": False}
ONE = row("m=7 d_model=12 h=3")
TWO = ONE.but(batch=(2,))
THREE = ONE.but(batch=(3,))  # as many sequences as heads
ACROSS = row("m=5 n=7 d_model=12 h=3", given=BOTH)
GROUPED = row("m=5 d_model=16 h=4", options={"n_kv_heads": 2})
WIDE = row("m=5 n=7 d_model=24 h=6", batch=(2,))
CROSSED = row("m=5 n=7 d_model=8 h=2")


def far_off(rng: Rng, shape: tuple[int, ...]):
    """Tokens whose first feature is large, so that the scores of a row lie far from 0."""
    tokens = cases.between(rng, shape)
    tokens[..., 0] = 2e4
    return tokens


FAR_OFF = Drawn("n d_model", far_off)


def masked(axes: str, key: Drawn | None = None) -> dict:
    """A mask, and no value."""
    return {"key": key, "value": None, "mask": hole(axes)}


EACH = masked("... m m")


def not_divisible(d: int, h: int) -> Case:
    built = f"MultiHeadAttention({d}, {h})"
    return Case((d, h), use=callers.type_built, shown=built, raises=ValueError)


# Three tokens of two features and two heads of one: each head sees one number of each token.
SMALL_STATE = {
    "W_q.weight": tensor([[1, 0], [1, 2]]),
    "W_k.weight": tensor([[1, 1], [0, -1]]),
    "W_v.weight": tensor([[1, 0], [0, 10]]),
    "W_o.weight": tensor([[1, 0], [1, 1]]),
}
HEADS_BY_HAND, MAPS_BY_HAND = (
    module_case(
        "MultiHeadAttention",
        (2, 2),
        SMALL_STATE,
        {"query": tensor([[1, 0], [0, 1], [2, 1]])},
        options=NO_BIAS,
        method=method,
        note="each head has one feature",
    )
    for method in ("", "weights")
)
SOME_ARE_0 = [
    ONE.but(zero=zero, note="some weights are 0")
    for zero in (
        ("W_q.weight", "W_k.bias", "W_v.bias", "W_o.weight"),
        ("W_q.bias", "W_k.weight", "W_o.bias"),
        ("W_v.weight",),
    )
]


# --- cases: naive_to_batched -----------------------------------------------------------------

WEIGHTS = tuple(f"{name}.weight" for name in NAMES[:3])
BIASES = tuple(f"{name}.bias" for name in NAMES[:3])


def naive_state(rng: Rng, d_model: int, n_heads: int, bias: bool) -> State:
    """The state of a ``MultiHeadNaive``: float32, like a module as it is built."""
    d_head = d_model // n_heads
    state = layers(rng, bias, W_o=(d_model, d_model))
    for i in range(n_heads):
        parts = layers(rng, bias, **{name: (d_head, d_model) for name in NAMES[:3]})
        state |= {f"heads.{i}.{name}": w for name, w in parts.items()}
    return {name: w.float() for name, w in state.items()}


def naive_case(
    rng: Rng,
    d_model: int,
    n_heads: int,
    names: tuple[str, ...] = (),
    *,
    on: tuple[int, ...] = (),
    bias: bool = True,
    note: str = "",
) -> Case:
    """What is made of a naive module: parameters of these names, an output on an input of a shape.

    Without either, the tensors that it shares with naive.
    """
    use, asked = callers.shared_by_made, {}
    if names:
        use, asked = callers.parameters_made, {"names": names}
    elif on:
        use, asked = (
            callers.output_of_made,
            {"inputs": ("x",), "x": uniform_values(rng, *on).float()},
        )
    built = f"MultiHeadNaive({d_model}, {n_heads}{'' if bias else ', bias=False'})"
    shown = f"naive_to_batched(naive), naive = {built}"
    state = naive_state(rng, d_model, n_heads, bias)
    return Case(kwargs=asked | state, use=use, note=note, shown=shown)


# Whole numbers: two heads of one feature. Their rows are to stand below one another.
SMALL_NAIVE = Case(
    kwargs={"names": WEIGHTS, "W_o.weight": tensor([[1, 2], [3, 4]], torch.float32)}
    | {
        f"heads.{i}.{name}": tensor([[3 * i + k, 3 * i + k + 1]], torch.float32)
        for i in range(2)
        for k, name in enumerate(WEIGHTS)
    },
    use=callers.parameters_made,
    shown="naive_to_batched(naive), naive = MultiHeadNaive(2, 2, bias=False)",
)


# --- decisions -------------------------------------------------------------------------------


def in_runs(x, h):
    return x.unflatten(-1, (h, -1))  # (..., n, h, d_head)


def in_turns(x, h):
    return x.unflatten(-1, (-1, h)).mT


def across_tokens(x, h):
    """In the order of memory, (..., h, n, d_head)."""
    return x.reshape(*x.shape[:-2], h, x.shape[-2], -1)


def by_its_axes(x, h):
    b, n, d = x.shape
    return x.reshape(b, n, h, d // h)


def by_two_axes(x, h):
    n, d = x.shape
    return x.reshape(n, h, d // h)


def by_its_batch(x, h):
    return x.reshape(len(x), -1, h, x.shape[-1] // h)


def heads_first(x):
    return x.transpose(-3, -2)


def side_by_side(x):
    return x.flatten(-2)


def across_heads(x):
    """In the order of memory, (..., n, h * d_head)."""
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def joined_in_turns(x):
    return x.movedim(-3, -1).flatten(-2)


def refused(width, h):
    if width % h:
        raise ValueError("width not divisible by n_heads")


def asserted(width, h):
    assert width % h == 0, "width not divisible by n_heads"


@composition
def splitting(
    asked=lambda x: x.shape[-1],
    refuse=refused,
    take=lambda x, h: x,
    cut=in_runs,
    move=heads_first,
    finish=lambda heads: heads,
):
    """``split_heads`` made of decisions; ``refuse`` sees the width that is ``asked`` for."""

    def split_heads(x, n_heads):
        refuse(asked(x), n_heads)
        return finish(move(cut(take(x, n_heads), n_heads)))

    return split_heads


@composition
def merging(take=lambda x: x, move=heads_first, join=side_by_side, finish=lambda merged: merged):
    """``merge_heads`` made of decisions."""
    return lambda x: finish(join(move(take(x))))


def of_merged(x):
    """The shape (..., n, h * d_head) for x of shape (..., h, n, d_head)."""
    *batch, h, n, d_head = x.shape
    return *batch, n, h * d_head


def one_batch_axis(x):
    b, h, n, d_head = x.shape
    return x.reshape(b, h, n, d_head)


def four_layers(d_model, n_heads, n_kv_heads, bias):
    d_kv = d_model // n_heads * n_kv_heads
    sizes = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    return {name: nn.Linear(d_model, size, bias=bias) for name, size in sizes.items()}


def other_W_o(d_in, *sizes):
    """The four layers, but W_o takes another number of features."""
    d, *_, bias = sizes
    return four_layers(*sizes) | {"W_o": nn.Linear(d_in, d, bias=bias)}


def in_their_places(query, key, value):
    key = query if key is None else key
    return query, key, key if value is None else value


def for_every_head(mask, n_axes):
    """An axis for the heads, where a mask has a batch axis and none of them."""
    return mask.unsqueeze(-3) if mask is not None and 2 < mask.ndim < n_axes else mask


@composition
def heads(
    super_init=decisions.begun,
    refuse=refused,
    layers=four_layers,
    hold=decisions.assigned,
    defaults=in_their_places,
    query=lambda self, x: self.W_q(x),
    key=lambda self, x: self.W_k(x),
    value=lambda self, x: self.W_v(x),
    cut=in_runs,
    move=heads_first,
    share=lambda x, group: x.repeat_interleave(group, -3),
    mask_for=for_every_head,
    mask_order=lambda mask, q: mask,
    merge=multihead.merge_heads,
    mix=lambda self, merged, query: self.W_o(merged),
    finish=lambda self, output, *given: output,
    answer=decisions.mixed,
    shares=decisions.shared_out,
    shown=lambda self, maps, *given: maps,
    **options,
):
    """A ``MultiHeadAttention`` made of decisions, in the order in which they are taken.

    ``answer`` makes what each head returns, ``shares`` the maps that ``weights`` returns, to which
    ``shown`` is done. Other options are decisions of ``Attention``.
    """
    attention = Attention.of(options)

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
            super_init(self)
            refuse(d_model, n_heads)
            self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
            hold(self, layers(d_model, n_heads, self.n_kv_heads, bias))

        def of_heads(self, *given, mask):
            asking, *seen = defaults(*given)
            q = move(cut(query(self, asking), self.n_heads))
            group = self.n_heads // self.n_kv_heads
            k, v = (
                share(move(cut(view(self, x), self.n_kv_heads)), group)
                for view, x in zip((key, value), seen, strict=True)
            )
            return (q, k, v), mask_order(mask_for(mask, q.ndim), q)

        def forward(self, query, key=None, value=None, mask=None):
            heads = self.of_heads(query, key, value, mask=mask)
            output = mix(self, merge(answer(attention, *heads, query)), query)
            return finish(self, output, query, key, value, mask)

        if shares:

            def weights(self, query, key=None, value=None, mask=None):
                heads = self.of_heads(query, key, value, mask=mask)
                return shown(self, shares(attention, *heads, query), query, key, value, mask)

    return MultiHeadAttention


def repeated_the_other_way(mask, q):
    """Heads stand before the batch in one row of both, and the mask's with the batch first."""
    if mask is None or mask.ndim != 4 or mask.shape[1] != 1 or len(mask) != len(q):
        return mask
    batch, n_heads = q.shape[:2]
    rows = mask.expand(-1, n_heads, -1, -1).flatten(0, 1)  # (b h, m, n)
    return rows.unflatten(0, (n_heads, batch)).transpose(0, 1)


def repeated_with_the_batch_first(mask, q):
    """Heads stand behind the batch in one row of both, and the mask's with the heads first."""
    if mask is None or mask.ndim != 4 or mask.shape[1] != 1 or len(mask) != len(q):
        return mask
    return mask[:, 0].repeat(q.shape[1], 1, 1).unflatten(0, q.shape[:2])


def one_bias_for_each_head(self, merged, query):
    more = 0 if self.W_o.bias is None else (self.n_heads - 1) * self.W_o.bias
    return self.W_o(merged) + more


def head_0(mask, n_axes):
    """Of a mask for each head, the first one."""
    return mask[..., :1, :, :] if mask is not None and mask.ndim == n_axes else mask


def interleaved(tensors):
    """Row 0 of every head, then row 1 of every head, and so on."""
    return torch.stack(tensors, dim=1).flatten(0, 1)


def weight_alone(layer, own):
    layer.weight.copy_(own.weight)


def weight_and_bias(layer, own):
    layer.load_state_dict(own.state_dict(), strict=False)


def transposed(layer, own):
    weight_and_bias(layer, own)
    layer.weight.copy_(own.weight.T)


@composition
def converted(
    heads=lambda naive: list(naive.heads),
    number=lambda naive: len(naive.heads),
    biased=lambda naive: naive.W_o.bias is not None,
    weights=torch.cat,
    biases=torch.cat,
    origin=lambda name, part: name,
    copied=NAMES[:3],
    W_o=weight_and_bias,
    finish=lambda made, naive: made,
):
    """A ``naive_to_batched`` made of decisions; ``origin`` names the layer to copy from."""

    def naive_to_batched(naive):
        bias = biased(naive)
        made = multihead.MultiHeadAttention(naive.W_o.in_features, number(naive), bias=bias)
        joins = {"weight": weights, "bias": bias and naive.W_o.bias is not None and biases}
        with torch.no_grad():
            for name, (part, join) in product(copied, joins.items()):
                if join:
                    of = [getattr(getattr(head, origin(name, part)), part) for head in heads(naive)]
                    getattr(getattr(made, name), part).copy_(join(of))
            if W_o is not None:
                W_o(made.W_o, naive.W_o)
        return finish(made, naive)

    return naive_to_batched


def shared_layer(made, naive):
    made.W_o = naive.W_o
    return made


def from_another(choice: tuple) -> dict:
    """Some parameters of projections come from others: which from which, and of what kind."""
    origins, parts = choice
    return {"origin": lambda name, part: dict(origins).get(name, name) if part in parts else name}


ONE_FROM_ONE = [(pair,) for pair in permutations(NAMES[:3], 2)]
EXCHANGED = [((a, b), (b, a)) for a, b in combinations(NAMES[:3], 2)]
ALL_FROM_ONE = [tuple((b, a) for b in NAMES[:3] if b != a) for a in NAMES[:3]]
ORIGINS = [*product(ONE_FROM_ONE + EXCHANGED + ALL_FROM_ONE, (("weight",), ("weight", "bias")))]

OVER_OTHERS = (mistakes.OVER_QUERIES, mistakes.OVER_AXIS_1, mistakes.OVER_AXIS_0)

# --- usual mistakes: of several exercises ----------------------------------------------------

RESHAPED = mistake("""reshaped straight to (h, n, d/h)
    A reshape hands out the numbers in the order in which they lie in memory, so your head 0 gets
    the first tokens, not the first features. Cut the features, `(..., n, h, d/h)`, and then let
    tokens and heads change places.""").by(cut=across_tokens, move=lambda x: x)
EVERY_H_TH = mistake("""a head takes every h-th feature
    Your head i gets features i, i + h, i + 2h, … It is to get a run of d/h features: the axis of
    the heads comes first when you cut, `(..., n, h, d/h)`.""").by(cut=in_turns)
WIDTH_FOR_NUMBER = mistake("""n_heads taken for the width of a head
    You make d/h heads of h features. It is h heads of d/h features.
""").by(cut=lambda x, h: x.unflatten(-1, (-1, h)))
FROM_THE_FRONT = (
    mistake("""axes counted from the front
    `transpose(1, 2)`, `flatten(2)`, `dim=1`, a `permute` of four axes or `b, n, d = x.shape` fit
    exactly one batch axis; `transpose(0, 1)`, or an axis put at the very front, fits no batch.
    Count from the end, `.transpose(-3, -2)`, and unpack `*batch, n, d = x.shape`.""")
    .by(move=lambda x: x.transpose(1, 2))
    .by(move=lambda x: x.permute(0, 2, 1, 3))
    .by(move=lambda x: x.transpose(0, 1))
    .by(move=lambda x: x.permute(1, 0, 2))
)
OTHER_TWO = (
    mistake("""another two axes change places
    You exchange two axes, but not those of the heads and the tokens alone: a token's features end
    up in several rows. `.transpose(-3, -2)` exchanges these two.""")
    .by(move=lambda x: x.transpose(-2, -1))
    .by(move=lambda x: x.transpose(-3, -1))
    .by(move=lambda x: x.movedim(-3, -1))
)
TURNED_ROUND = mistake("""the division is turned round
    You test whether the width divides n_heads. It is the other way round: `d % n_heads`.
""").by(refuse=lambda width, h: refused(h, width))
NOT_REFUSED = (
    mistake("""no ValueError where n_heads does not divide the width
    `d // n_heads` rounds down: features are lost, or torch fails far from the cause. An `assert`
    raises AssertionError and is skipped under `python -O`. Test it and `raise ValueError(…)`.""")
    .by(refuse=lambda width, h: None)
    .by(refuse=asserted)
)


def heads_unfolded_first(x):
    """Batch and heads in one axis, the batch first, taken apart as if the heads came first."""
    *batch, h, n, d = x.shape
    apart = x.reshape(-1, n, d).reshape(h, -1, n, d)
    return apart.permute(1, 2, 0, 3).reshape(*batch, n, h * d)


def heads_folded_first(x):
    """Batch and heads in one axis, the heads first, taken apart as if the batch came first."""
    return multihead.merge_heads(x.movedim(-3, 0).reshape(x.shape))


FOLDED = (
    mistake("""batch and heads folded in one order and unfolded in the other
    You put batch and heads into one axis and take them apart the other way round, so a sequence
    gets heads of others; with one sequence that does not show. Leave both axes as they are: `@`
    takes them along.""")
    .by(merge=heads_unfolded_first)
    .by(merge=heads_folded_first)
)
NOT_PUT_BACK = mistake("""the axes are not put back
    You reshape (h, n, d/h) straight to (n, d), so the first rows are made of head 0 alone. First
    let tokens and heads change places again, `.transpose(-3, -2)`, then join the last two axes.
""").by(move=lambda x: x, join=across_heads)
INTERLEAVED = mistake("""features of the heads interleaved
    Your rows hold feature 0 of every head, then feature 1 of every head. Head 0's features come
    first, all of them.""").by(move=lambda x: x.movedim(-3, -1))
ADDED_UP = (
    mistake("""heads averaged or summed
    You average the heads or add them up, which leaves d/h features. Their outputs stand side by
    side; adding comes later, and W_o decides with which weights.""")
    .by(move=lambda x: x.mean(-3), join=lambda x: x)
    .by(move=lambda x: x.sum(-3), join=lambda x: x)
)
OF_ATTENTION = (
    mistake("""divided by √d_model or √h
        You divide the scores by the root of d_model, or of the number of heads. The dot products
        are taken within a head and have d_head terms: divide by √d_head.""")
    .by(factor=lambda q, k, other: other.shape[-1] ** -0.5)
    .by(factor=lambda q, k, other: q.shape[-3] ** -0.5),
    *(s.naming(d_k="d_head") for s in (*mistakes.OF_THE_SCALE, mistakes.SCALED_AFTERWARDS)),
    *(
        one.by(normalize=lambda s: s)
        if one is mistakes.NO_SOFTMAX
        # where a whole column is masked, it matters what was filled in
        else one.by(one.ways[0] | mistakes.filled_with(-1e9))
        if one in OVER_OTHERS
        else one
        for one in mistakes.OF_THE_SOFTMAX
    ),
    mistakes.NEITHER.naming(d_k="d_head"),
    mistake("""softmax over the heads
        Your softmax runs over the axis of the heads, so that they share a budget. Each head has its
        own, over the keys: `softmax(dim=-1)`.""").by(normalize=lambda s: s.softmax(-3)),
    *(s for s in mistakes.OF_THE_MASK if s is not mistakes.NOT_LOW_ENOUGH),
    mistakes.NOT_LOW_ENOUGH.by(mistakes.filled_with(-1e4)),
)

# --- exercises -------------------------------------------------------------------------------

SPLIT = exercise(
    multihead.split_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=2,
    minutes=10,
    criteria=there_or_back(
        SPLIT_CASES,
        SPLIT_BY_HAND,
        "head i gets features i·d/h to (i+1)·d/h − 1 of every token",
        Criterion("refuses a width that n_heads does not divide", 1).on(
            lambda rng: [
                Case((uniform_values(rng, *shape), h), raises=ValueError, note=f"{h} heads")
                for shape, h in (((5, 7), 2), ((6, 8), 3), ((2, 4, 7), 2))
            ]
        ),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        splitting,
        mistake("""the axes are left as they are
            You return (..., n, h, d/h). The heads come before the tokens: `.transpose(-3, -2)`.
        """).by(move=lambda x: x),
        RESHAPED.by(
            cut=lambda x, h: x.reshape(*x.shape[:-2], h, -1, x.shape[-2]).mT, move=lambda x: x
        ),
        EVERY_H_TH,
        WIDTH_FOR_NUMBER,
        FROM_THE_FRONT.by(cut=by_its_axes)
        .by(cut=by_its_batch, move=lambda x: x.transpose(1, 2))
        .by(move=lambda x: x.movedim(-2, 0))
        .by(move=lambda x: x.movedim(-2, 1))
        .by(cut=by_two_axes)
        .by(finish=lambda heads: heads.reshape(-1, *heads.shape[-3:])),
        OTHER_TWO,
        TURNED_ROUND,
        mistake("""heads that are not parts of the features
            Every head sees every token, and d/h of its features. You repeat x for every head, or
            cut the sequence into h pieces.""")
        .by(cut=lambda x, h: x.unsqueeze(-2).expand(*x.shape[:-1], h, -1))
        .by(cut=lambda x, h: torch.stack(x.chunk(h, -2), -3), move=lambda x: x),
        mistake("""a list of heads
            You return a tuple or a list of h tensors. Put them on an axis of their own:
            `torch.stack(parts, dim=-3)`.""").by(finish=lambda heads: heads.unbind(-3)),
        NOT_REFUSED.by(refuse=lambda d, h: None, take=lambda x, h: x[..., : x.shape[-1] // h * h]),
        mistake("""another axis is tested
            Your test for divisibility looks at the tokens, or at the batch. The features are the
            last axis: `x.shape[-1]`.""")
        .by(asked=lambda x: x.shape[-2])
        .by(asked=lambda x: x.shape[1])
        .by(asked=lambda x: x.shape[0]),
    ),
)

MERGE = exercise(
    multihead.merge_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=1,
    minutes=8,
    criteria=there_or_back(
        MERGE_CASES, MERGE_BY_HAND, "the heads' features side by side, head 0 first"
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        merging,
        NOT_PUT_BACK,
        INTERLEAVED,
        ADDED_UP,
        FROM_THE_FRONT.naming(
            **{"b, n, d = x.shape": "b, h, n, d = x.shape", "*batch, n, d =": "*batch, h, n, d ="}
        )
        .by(join=lambda x: x.flatten(2))
        .by(join=lambda x: x.flatten(1))
        .by(join=lambda x: torch.cat(x.unbind(-2), 2))
        .by(take=one_batch_axis)
        .by(move=lambda x: x.transpose(1, 2).reshape(of_merged(x)), join=lambda x: x)
        .by(move=lambda x: torch.cat(x.unbind(1), -1), join=lambda x: x)
        .by(finish=lambda merged: merged.reshape(-1, *merged.shape[-2:])),
        OTHER_TWO.here(move=lambda x: x.mT.reshape(of_merged(x)), join=lambda x: x).by(
            move=lambda x: x.transpose(-3, -1).reshape(of_merged(x)), join=lambda x: x
        ),
        mistake(""".view where the memory is out of order
            `.view` never moves a number, and after the transpose the numbers of a row no longer lie
            together. `.reshape` and `.flatten` copy where they must.
        """).by(join=lambda x: x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])),
        mistake("""a token is not one row
            You return (..., n, h, d/h), or join two other axes, to (..., h·n, d/h) or (..., h,
            n·d/h). Bring the heads behind the tokens, then join the last two: `.flatten(-2)`.""")
        .by(move=lambda x: x, join=lambda x: x.flatten(-3, -2))
        .by(join=lambda x: x)
        .by(join=lambda x: x.flatten(-3, -2))
        .by(move=lambda x: x),
    ),
)

HEADS = exercise(
    multihead.MultiHeadAttention,
    section="Chapter 9, “One projection for all heads”",
    difficulty=4,
    minutes=45,
    forbids=("multi_head_attention_forward",),
    criteria=(
        HEADS_CASES.criterion("attention in every head, merged, and mixed by W_o", 3).on(
            HEADS_BY_HAND,
            ONE,
            ONE.but("m=3", note="as many tokens as heads"),
            row("m=5 d_model=32 h=2", then="m=3", note="d_head = 16"),
            ONE.but(then={}, note=cases.OTHER_NUMBERS),
        ),
        HEADS_CASES.criterion("keys and values from elsewhere", 2).on(
            CROSSED.but(given=KEY, note="no value given: it is the key"),
            ACROSS,
            ACROSS.but("m=19 n=3", given=KEY, note="as many keys as heads"),
            CROSSED.but("m=2 n=17", given=BOTH, note="many keys"),
            CROSSED.but("m=3 n=2", batch=(2,), given=BOTH, note="a batch of 2"),
            ONE.but(given=VALUE_ALONE, note="a value and no key: the key is the query"),
        ),
        HEADS_CASES.criterion("fewer key and value heads, one among them", 2).on(
            GROUPED.but("m=7"),
            GROUPED.but(options={"n_kv_heads": 1}, note="one for all"),
            WIDE.but(options={"n_kv_heads": 2}, note="runs of three, a batch of 2"),
            WIDE.but(options={"n_kv_heads": 3}, given=KEY, note="keys from elsewhere"),
            HEADS_ROWS.batches[1].but("n=4", options={"n_kv_heads": 4}, given=KEY),
        ),
        HEADS_CASES.criterion("bias=False leaves every bias out", 1).on(
            ONE.but(options=NO_BIAS),
            GROUPED.but(options=GROUPED.options | NO_BIAS),
        ),
        HEADS_CASES.criterion("a mask for every head", 2).on(
            ONE.but(given=masked("m m"), note="(m, n)"),
            THREE.but(given=masked("m m"), note="(m, n), a batch of 3"),
            ONE.but(batch=(7,), given=masked("m m"), note=cases.ONE_MASK),
            TWO.but(given=EACH, note="(b, m, n)"),
            THREE.but(given=EACH, note="(b, m, n), as many as heads"),
            CROSSED.but(
                batch=(2,),
                given=masked("... m n", **KEY),
                note="(b, m, n), keys from elsewhere, as many sequences as heads",
            ),
            CROSSED.but("m=11", given=masked("m n", FAR_OFF), note="(m, n), scores far from 0"),
        ),
        HEADS_CASES.criterion("a mask for each head", 1).on(
            TWO.but(given=masked("... h m m"), note="(b, h, m, n)"),
            THREE.but(given=masked("... h m m"), note="(b, h, m, n), b = h"),
            GROUPED.but(batch=(2,), given=masked("... h m m"), note="(b, h, m, n), n_kv_heads"),
        ),
        HEADS_CASES.criterion("weights(...) returns a map for each head", 2).on(
            MAPS_BY_HAND,
            ONE.but(method="weights"),
            ONE.but(then={}, method="weights", note=cases.OTHER_NUMBERS),
            ACROSS.but(batch=(2,), given=KEY, method="weights", note="keys from elsewhere"),
            ACROSS.but(method="weights", note="a value that plays no part"),
            GROUPED.but(method="weights"),
            THREE.but(given=EACH, method="weights", note="(b, m, n), as many as heads"),
            TWO.but(given=masked("... h m m"), method="weights", note="(b, h, m, n)"),
        ),
        HEADS_CASES.criterion("batches", 1).on(
            *HEADS_ROWS.batches,
            row("m=5 d_model=8 h=2", batch=(2, 3), note="two batch axes"),
        ),
        HEADS_CASES.criterion("one head, query or key; float32, large scores, weights of 0", 1).on(
            row("m=5 d_model=4 h=1", note="one head"),
            row("m=1 d_model=8 h=2", note="one token"),
            CROSSED.but("m=1 n=17", given=BOTH, note="one query, many keys"),
            CROSSED.but("m=2 n=1", given=BOTH, note="one key"),
            HEADS_ROWS.single.but("d_model=21", note="float32, d_head = 7"),
            *HEADS_ROWS.extreme,
            *SOME_ARE_0,
        ),
        HEADS_CASES.criterion("gradients reach query, key and every weight", 2).on(
            ACROSS.but(
                batch=(2,),
                use=callers.call_module_with_each_gradient,
                note="a batch of 2, each gradient alone",
            ),
            GROUPED.but(
                "n=7",
                given=masked("m n", **KEY),
                use=callers.call_module_with_gradients,
                note="with a mask, all at once",
            ),
        ),
        Criterion("refuses a d_model that n_heads does not divide", 1).on(
            lambda rng: [not_divisible(7, 2), not_divisible(12, 5)]
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(heads, mistakes.WEIGHTS_WITHOUT_MASK, mistakes.WEIGHTS_ARE_SCORES)
    + made(heads, *OF_ATTENTION, beside=mistakes.IN_ONE_METHOD)
    + made(
        heads,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN,
        RESHAPED.by(RESHAPED.ways[0] | {"merge": across_heads}),
        EVERY_H_TH.by(cut=in_turns, merge=joined_in_turns),
        WIDTH_FOR_NUMBER,
        FROM_THE_FRONT.by(cut=by_its_axes)
        .by(compare=lambda q, k: torch.einsum("bhmd,bhnd->bhmn", q, k))
        .by(cut=by_its_batch, move=lambda x: x.transpose(1, 2))
        .by(share=lambda x, group: x.repeat_interleave(group, 1))
        .by(share=lambda x, group: x.repeat_interleave(group, 0)),
        NOT_PUT_BACK.here(merge=across_heads),
        FOLDED,
        INTERLEAVED.here(merge=joined_in_turns),
        ADDED_UP.here(
            layers=lambda d, h, *more: other_W_o(d // h, d, h, *more), merge=lambda x: x.mean(-3)
        ).said(
            "Your W_o takes d/h features, as if the heads were averaged or added up. Their outputs "
            "stand side by side, d features in all; W_o decides with which weights they are added."
        ),
        mistake("""the heads attend to each other
            You leave the projections as (..., n, h, d_head), without the transpose, so that in each
            token head meets head. Tokens are to meet: `.transpose(-3, -2)` first.
        """).by(move=lambda x: x, merge=side_by_side),
        mistake("""W_o is forgotten
            You return the heads' outputs side by side. W_o comes after that, and it is the only
            place where the heads meet.""").by(mix=lambda self, merged, query: merged),
        mistake("""W_o's bias is added once for each head
            You send each head through its part of W_o and add up, with the bias every time. It is
            added once: put the heads side by side, and call `self.W_o` on all of them.
        """).by(mix=one_bias_for_each_head),
        mistake("""the query is added on top
            You add the query to the output, as the block around this module will. Attention returns
            what W_o makes of the heads, and nothing else.
        """).by(mix=lambda self, merged, query: query + self.W_o(merged)),
        mistake("""one map or one set of keys for all heads
            You mix with the average of the heads' maps, or all heads compare with head 0's keys.
            Each has its own run of features of `W_k(key)`, and its own map.""")
        .by(after=lambda w, mask, factor: w.mean(-3, keepdim=True))
        .by(compare=lambda q, k: q @ k[..., :1, :, :].mT),
        mistakes.ROLES_EXCHANGED,
        mistakes.T_ON_A_BATCH,
        mistakes.COSINE,
        mistakes.QUERIES_NOT_PROJECTED,
        mistakes.ONE_VIEW_TO_COMPARE,
        *mistakes.OF_THE_VIEWS,
        mistake("""the biases are there and not used
            Your layers have biases, but you multiply by their weights alone. Call the layer,
            `self.W_q(query)`, which adds its bias too.""")
        .by(
            query=lambda self, x: x @ self.W_q.weight.mT,
            key=lambda self, x: x @ self.W_k.weight.mT,
            value=lambda self, x: x @ self.W_v.weight.mT,
        )
        .by(mix=lambda self, merged, query: merged @ self.W_o.weight.mT),
        mistake("""key or value is not what was given
            The query stands for a key that is left out, and the key for a value: `key = query if
            key is None else key`, then `value = key if value is None else value`. You use another
            one for key or for value.""")
        .by(defaults=lambda query, key, value: (query, query, query))
        .by(defaults=lambda q, k, v: (q, q, in_their_places(q, k, v)[2]))
        .by(defaults=lambda q, k, v: in_their_places(q, k, None))
        .by(defaults=lambda q, k, v: in_their_places(q, k, None if k is None else v))
        .by(defaults=lambda q, k, v: (q, q if k is None else k, q if v is None else v)),
        mistake("""a tensor taken for True or False
            `key or query` and `if key:` ask a tensor whether it is true, which torch refuses for
            more than one number. Ask `if key is None`.
        """).by(defaults=lambda query, key, value: (query, key or query, value or key or query)),
        mistake("""key/value heads are not repeated in runs
            Each serves a run of neighbouring query heads, 0, 0, 1, 1: `repeat_interleave(n_heads //
            n_kv_heads, dim=-3)`. You take them in turns (`repeat`), or do not repeat them.""")
        .by(share=lambda x, group: torch.cat([x] * group, -3))
        .by(share=lambda x, group: x),
        mistake("""key/value heads are not used each by its own
            With fewer key/value heads you use one of them for all query heads, or their average.
            Each serves the run of query heads that is its own: `repeat_interleave(n_heads //
            n_kv_heads, dim=-3)`.""")
        .by(share=lambda x, group: x[..., :1, :, :] if group > 1 else x)
        .by(share=lambda x, group: x[..., -1:, :, :] if group > 1 else x)
        .by(share=lambda x, group: x.mean(-3, keepdim=True) if group > 1 else x),
        mistake("""n_kv_heads is ignored
            Your W_k and W_v have d_model outputs whatever n_kv_heads says. They are n_kv_heads ·
            d_head wide; that is what is saved.
        """).by(layers=lambda d, h, kv, bias: four_layers(d, h, h, bias)),
        mistake("""bias is not handed on to every layer
            Some layer has a bias with `bias=False`, or none with `bias=True`, the default. All four
            go by it: `nn.Linear(…, bias=bias)`.""")
        .by(layers=lambda d, h, kv, bias: four_layers(d, h, kv, True))
        .by(layers=lambda d, h, kv, bias: four_layers(d, h, kv, False))
        .by(
            *(
                {
                    "layers": lambda d, h, kv, bias, b=b, one=one: (
                        four_layers(d, h, kv, bias)
                        | {f"W_{n}": four_layers(d, h, kv, b)[f"W_{n}"] for n in one}
                    )
                }
                for b, one in product((False, True), ("o", "q", "k", "v", "qkv"))
            )
        ),
        mistake("""the mask's batch axis meets the heads
            A mask (b, m, n) broadcasts against scores (b, h, m, n) from the right, so its batch
            axis meets that of the heads: an error, or, with as many sequences as heads, wrong
            numbers. Give it an axis for the heads first: `mask.unsqueeze(-3)`.""")
        .by(mask_for=lambda mask, n_axes: mask)
        .by(mask_for=lambda mask, n_axes: None if mask is None else mask.unsqueeze(0))
        .by(mask_for=lambda m, n_axes: m[None, None] if m is not None and m.ndim == 2 else m),
        mistake("""an axis for the heads where none is missing
            Only a mask (b, m, n) lacks an axis for the heads. One that is (m, n) broadcasts as it
            is, and one that is (b, h, m, n) has the axis: ask for the number of axes.""")
        .by(mask_for=lambda mask, n_axes: None if mask is None else mask.unsqueeze(-3))
        .by(mask_for=lambda mask, n_axes: None if mask is None else mask.unsqueeze(1))
        .by(mask_for=lambda m, n_axes: m.unsqueeze(1) if m is not None and m.ndim > 2 else m),
        mistake("""heads and batch change places in the mask
            You put heads and batch into one axis, and repeat the mask (b, m, n) in the other order
            of the two: a sentence gets another one's mask. Repeat it in the same order:
            `mask.repeat(h, 1, 1)` where heads come first, `repeat_interleave` where the batch
            does.""")
        .by(mask_order=repeated_the_other_way)
        .by(mask_order=repeated_with_the_batch_first),
        mistake("""head 0's mask for all heads
            Of a mask (b, h, m, n) you use the first head's for all. Each head has its own.
        """).by(mask_for=lambda mask, n_axes: head_0(for_every_head(mask, n_axes), n_axes)),
        mistakes.WEIGHTS_MISSING,
        mistake("""weights averages over the heads
            Your `weights` returns one map, the average (which is what PyTorch's module does
            unless told otherwise), or head 0's. Return all h of them: they were made to differ.""")
        .by(shown=lambda self, maps, *given: maps.mean(-3))
        .by(shown=lambda self, maps, *given: maps[..., 0, :, :]),
        mistake("""weights compares with the query alone
            Your `weights` makes the keys of the query even where a key is given. It is to return
            the maps that `forward` uses: `key = query if key is None else key`.""").by(
            shown=lambda self, maps, query, key, value, mask: (
                maps if key is None else self.weights(query, None, None, mask)
            )
        ),
        mistakes.WEIGHTS_ARE_OUTPUT.here(shown=lambda self, maps, *given: self(*given)),
        mistakes.WEIGHTS_COME_BACK.here(
            finish=lambda self, output, *given: (output, self.weights(*given))
        ),
        NOT_REFUSED,
        TURNED_ROUND,
    ),
)

CONVERT = exercise(
    multihead.naive_to_batched,
    section="Chapter 9, “Both are the same”",
    difficulty=3,
    minutes=20,
    criteria=(
        Criterion("W_q, W_k and W_v hold the heads' weights", 3).on(
            lambda rng: [
                SMALL_NAIVE,
                naive_case(rng, 12, 3, WEIGHTS),
                naive_case(rng, 8, 4, WEIGHTS, bias=False),
            ]
        ),
        Criterion("their biases hold the heads' biases", 1).on(
            lambda rng: [naive_case(rng, 12, 3, BIASES), naive_case(rng, 10, 2, BIASES)]
        ),
        Criterion("W_o is the one of naive", 1).on(
            lambda rng: [
                naive_case(rng, 12, 3, ("W_o.weight", "W_o.bias")),
                naive_case(rng, 8, 4, ("W_o.weight",), bias=False),
            ]
        ),
        Criterion("the module returns what naive returns", 2).on(
            lambda rng: [
                naive_case(rng, 12, 3, on=(7, 12)),
                naive_case(rng, 8, 4, on=(4, 5, 8), note="a batch of 4"),
                naive_case(rng, 10, 2, on=(3, 10), bias=False),
                once_more(SMALL_NAIVE),
            ]
        ),
        Criterion("the module has weights of its own; one head", 1).on(
            lambda rng: [
                naive_case(rng, 5, 1, WEIGHTS, note="one head"),
                naive_case(rng, 12, 3, note="tensors of naive that live on in it"),
                naive_case(rng, 5, 1, note="one head"),
            ]
        ),
        unchanged(),
    ),
    mistakes=(
        *made(
            converted,
            mistake("""the heads' weights side by side
                You join the weights along their second axis, or transpose them first. `nn.Linear`
                stores (out, in), and what stands side by side in the *output* is rows of the
                weight: join them as they are, `torch.cat(weights, dim=0)`.""")
            .by(weights=lambda tensors: torch.cat(tensors, dim=1))
            .by(weights=lambda tensors: torch.cat([w.T for w in tensors], dim=1)),
            mistake("""the heads are not each in their place
                Head i uses the i-th run of features: all rows of head 0 come first, then those of
                head 1. You take the heads backwards, a row of each in turn, or one head everywhere:
                does the loop use its index?""")
            .by(weights=interleaved)
            .by(weights=interleaved, biases=interleaved)
            .by(heads=lambda naive: list(naive.heads)[::-1])
            .by(weights=lambda tensors: torch.cat(tensors[::-1]))
            .by(weights=lambda tensors: torch.cat(tensors[:1] * len(tensors)))
            .by(*({"heads": lambda n, k=k: [n.heads[k] for _ in n.heads]} for k in (0, -1))),
            mistake("""the heads' weights averaged
                You mix the heads' weights, as one average or sum for all. Every head keeps its own
                rows, one head below the other: `torch.cat(weights)`.
            """).by(weights=lambda tensors: sum(tensors).repeat(len(tensors), 1) / len(tensors)),
            mistake("""one projection is filled from another
                One of W_q, W_k and W_v, or two, hold what the heads have in another of these. Each
                of the three has its own source.""")
            .by(origin=lambda name, part: "W_q" if name == "W_k" else name)
            .by(*map(from_another, ORIGINS)),
            mistake("""not all projections are copied
                W_q, W_k or W_v, or some rows of them, are still the random ones that the module was
                built with. Fill all three, from every head: `torch.cat([head.W_q.weight for head in
                naive.heads])`.""")
            .by(copied=())
            .by(*({"copied": two} for two in combinations(NAMES[:3], 2))),
            mistake("""W_o is not copied as it is
                Your W_o, or its bias alone, is still the random one that it was built with, or it
                is transposed. Both modules hold it as an `nn.Linear`: copy weight and bias.""")
            .by(W_o=None)
            .by(W_o=weight_alone)
            .by(W_o=transposed),
            mistake("""W_o is shared, not copied
                The new module holds the very layer `naive.W_o`. Training one would change the
                other: copy the numbers.""").by(finish=shared_layer),
            mistake("""the biases are not those of naive
                The new module has biases exactly where naive has, `bias=naive.W_o.bias is not
                None`. They are the heads' biases, joined like the weights.""")
            .by(biases=None)
            .by(biased=lambda naive: False, W_o=weight_alone)
            .by(biased=lambda naive: True)
            .by(biases=lambda tensors: tensors[0].repeat(len(tensors)))
            .by(biases=lambda tensors: torch.cat(tensors[::-1]))
            .by(biases=lambda tensors: 0 * torch.cat(tensors)),
            mistake("""the number of heads is lost
                All weights are right, but the new module has another number of heads. It needs as
                many as naive: `len(naive.heads)`.""")
            .by(number=lambda naive: 1)
            .by(number=lambda naive: naive.heads[0].W_q.out_features),
        ),
        mistake("""naive itself comes back
            You return the given module, or a copy. Build a `MultiHeadAttention` and fill it.
        """).whole(lambda naive: naive, deepcopy),
        mistake("""nothing comes back
            Your function ends without a `return`, and so returns None. Return the new module.
        """).whole(lambda naive: None),
        mistake("""a state comes back, not a module
            You return a dict of tensors. Load it into a `MultiHeadAttention` and return that.
        """).whole(lambda naive: multihead.naive_to_batched(naive).state_dict()),
    ),
)

EXERCISES = (SPLIT, MERGE, HEADS, CONVERT)

VARIANTS = (forbidden({"MultiHeadAttention": with_mask("forward", "weights")}),)
