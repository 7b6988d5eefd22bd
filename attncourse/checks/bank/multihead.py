"""The exercises of chapter 9, several heads.

In float64 cases d_head is a power of 4, so that 1/√d_head is exact in every precision. Batches of
as many sequences as heads are among the cases: there a batch axis that meets the axis of the heads
gives wrong numbers and no error.
"""

from dataclasses import replace

import torch
from torch import nn

from attncourse import multihead
from attncourse.checks.cases import (
    FLOATS_ONLY,
    Count,
    Drawn,
    Table,
    hole,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.drivers import (
    call_module_with_each_gradient,
    call_module_with_gradients,
    output_of_made,
    parameters_made,
    shared_by_made,
    type_built,
)
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    composition,
    leaves_arguments_alone,
)
from attncourse.checks.mistakes import (
    ANOTHER_FACTOR,
    ANOTHER_POWER,
    COSINE,
    DIVIDED_BY_D_K,
    DIVIDED_BY_ROOT_D_MODEL,
    DIVIDED_BY_ROOT_N,
    GRADIENT_CUT,
    GUARD,
    MASK_ADDED,
    MASK_IGNORED,
    MASK_INVERTED,
    MASKED_LATE,
    MULTIPLIED_BY_ROOT,
    NO_MAXIMUM,
    NO_SCALE,
    NO_SOFTMAX,
    NOT_LOW_ENOUGH,
    OVER_AXIS_0,
    OVER_AXIS_1,
    OVER_EVERYTHING,
    OVER_QUERIES,
    ROLES_EXCHANGED,
    SCALED_AFTERWARDS,
    SIGMOIDS,
    SOFTMAX_TWICE,
    T_ON_A_BATCH,
    ZERO_SCORES,
    ZERO_TIMES_INFINITY,
    Attention,
    Slip,
    made,
)
from attncourse.checks.modules import ModuleTable, State, module_case, spread, tensor

# --- cases -----------------------------------------------------------------------------------

SPLIT_CASES = Table({"x": "... n h*d_head", "n_heads": Count("h")}, how=normal)
SPLIT_ROWS = standard(SPLIT_CASES, h=3)
SPLIT_BY_HAND = Case((torch.arange(12).reshape(2, 6).double(), 3), note="two tokens, three heads")

MERGE_CASES = Table({"x": "... h n d_head"}, how=normal)
MERGE_ROWS = standard(MERGE_CASES, h=3)
MERGE_BY_HAND = Case((torch.arange(12).reshape(3, 2, 2).double(),), note="three heads, two tokens")


def refusals(rng: Rng) -> list[Case]:
    shapes = (((5, 7), 2), ((6, 8), 3), ((2, 4, 7), 2))
    return [
        Case(
            (tensor(rng.normal(size=shape)), h),
            raises=ValueError,
            note=f"{shape[-1]} features, {h} heads",
        )
        for shape, h in shapes
    ]


def layers(rng: Rng, bias: bool, **shapes: tuple[int, int]) -> State:
    """Weights of order one for layers of these shapes, and biases that are not zero."""
    state = {}
    for name, (d_out, d_in) in shapes.items():
        state[f"{name}.weight"] = spread(rng, d_out, d_in)
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
HEADS_ROW = row("m=7 d_model=12 h=3")
ACROSS = row("m=5 n=7 d_model=12 h=3")  # with keys from elsewhere
KEY = {"key": Drawn("... n d_model")}
BOTH = KEY | {"value": Drawn("... n d_model")}


def sharing(n_kv_heads: int) -> dict[str, int]:
    return {"n_kv_heads": n_kv_heads}


def masked(axes: str) -> dict:
    """A mask where neither key nor value is given."""
    return {"key": None, "value": None, "mask": hole(axes)}


# Three tokens of two features and two heads of one: each head sees one number of each token.
SMALL = {"query": tensor([[1, 0], [0, 1], [2, 1]])}
SMALL_STATE = {
    "W_q.weight": tensor([[1, 0], [1, 2]]),
    "W_k.weight": tensor([[1, 1], [0, -1]]),
    "W_v.weight": tensor([[1, 0], [0, 10]]),
    "W_o.weight": tensor([[1, 0], [1, 1]]),
}
NO_BIAS = {"bias": False}
HEADS_BY_HAND, MAPS_BY_HAND = (
    module_case(
        "MultiHeadAttention",
        (2, 2),
        SMALL_STATE,
        SMALL,
        options=NO_BIAS,
        method=method,
        note="each head has one feature",
    )
    for method in ("", "weights")
)


def heads_refusals(rng: Rng) -> list[Case]:
    return [
        Case((d, h), use=type_built, shown=f"MultiHeadAttention({d}, {h})", raises=ValueError)
        for d, h in ((7, 2), (12, 5))
    ]


NAMES = ("W_q", "W_k", "W_v", "W_o")


def naive_state(rng: Rng, d_model: int, n_heads: int, *, bias: bool = True) -> State:
    """The state of a ``MultiHeadNaive``: float32, like a module as it is built."""
    d_head = d_model // n_heads
    state = {}
    for i in range(n_heads):
        parts = layers(rng, bias, **{name: (d_head, d_model) for name in NAMES[:3]})
        state |= {f"heads.{i}.{name}": w for name, w in parts.items()}
    state |= layers(rng, bias, W_o=(d_model, d_model))
    return {name: w.float() for name, w in state.items()}


def naive_case(
    rng: Rng, d_model: int, n_heads: int, names: tuple[str, ...] = (), *, bias: bool = True, **more
) -> Case:
    """The parameters of these names after a conversion; of another driver what it is for."""
    state = naive_state(rng, d_model, n_heads, bias=bias)
    call = f"naive_to_batched(naive), naive = MultiHeadNaive({d_model}, {n_heads}"
    call += ")" if bias else ", bias=False)"
    kwargs = {"names": names} if names else {}
    return Case(kwargs=kwargs | more.pop("inputs", {}) | state, shown=call, **more)


def small_naive() -> Case:
    """Whole numbers: two heads of one feature. Their rows are to stand below one another."""
    names = [f"heads.{i}.{name}.weight" for i in range(2) for name in NAMES[:3]]
    state = {name: tensor([[k, k + 1]], torch.float32) for k, name in enumerate(names)}
    state["W_o.weight"] = tensor([[1, 2], [3, 4]], torch.float32)
    return Case(
        kwargs={"names": ("W_q.weight", "W_k.weight", "W_v.weight")} | state,
        use=parameters_made,
        shown="naive_to_batched(naive), naive = MultiHeadNaive(2, 2, bias=False)",
    )


def naive_weights(rng: Rng) -> list[Case]:
    names = ("W_q.weight", "W_k.weight", "W_v.weight")
    return [
        small_naive(),
        naive_case(rng, 12, 3, names, use=parameters_made),
        naive_case(rng, 8, 4, names, bias=False, use=parameters_made),
        naive_case(rng, 5, 1, names, use=parameters_made, note="one head"),
    ]


def naive_biases(rng: Rng) -> list[Case]:
    names = ("W_q.bias", "W_k.bias", "W_v.bias")
    return [
        naive_case(rng, 12, 3, names, use=parameters_made),
        naive_case(rng, 10, 2, names, use=parameters_made),
    ]


def naive_outputs(rng: Rng) -> list[Case]:
    return [
        naive_case(rng, 12, 3, ("W_o.weight", "W_o.bias"), use=parameters_made),
        naive_case(rng, 8, 4, ("W_o.weight",), bias=False, use=parameters_made),
    ]


def naive_same(rng: Rng) -> list[Case]:
    def on(*shape: int) -> dict:
        return {"inputs": ("x",), "x": spread(rng, *shape).float()}

    return [
        naive_case(rng, 12, 3, use=output_of_made, inputs=on(7, 12)),
        naive_case(rng, 8, 4, use=output_of_made, inputs=on(4, 5, 8), note="a batch of 4"),
        naive_case(rng, 10, 2, bias=False, use=output_of_made, inputs=on(3, 10)),
        once_more(small_naive()),
    ]


def naive_own(rng: Rng) -> list[Case]:
    return [
        naive_case(rng, 12, 3, use=shared_by_made, note="tensors of naive that live on in it"),
        naive_case(rng, 5, 1, use=shared_by_made, note="one head"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


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


def heads_first(x):
    return x.transpose(-3, -2)


def side_by_side(x):
    return x.flatten(-2)


def across_heads(x):
    """In the order of memory, (..., n, h * d_head)."""
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


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


def one_batch_axis(x):
    b, h, n, d_head = x.shape
    return x.reshape(b, h, n, d_head)


def four_layers(d_model, n_heads, n_kv_heads, bias):
    d_kv = d_model // n_heads * n_kv_heads
    sizes = {"W_q": d_model, "W_k": d_kv, "W_v": d_kv, "W_o": d_model}
    return {name: nn.Linear(d_model, size, bias=bias) for name, size in sizes.items()}


def assigned(self, layers):
    for name, layer in layers.items():
        setattr(self, name, layer)


def in_their_places(query, key, value):
    key = query if key is None else key
    return query, key, key if value is None else value


def projected(self, query, key, value):
    return self.W_q(query), self.W_k(key), self.W_v(value)


def shared_in_runs(x, group):
    return x.repeat_interleave(group, -3)


def for_every_head(mask, n_axes):
    """An axis for the heads, where a mask has a batch axis and none of them."""
    return mask.unsqueeze(-3) if mask is not None and 2 < mask.ndim < n_axes else mask


@composition
def heads(
    begin=nn.Module.__init__,
    refuse=refused,
    layers=four_layers,
    hold=assigned,
    defaults=in_their_places,
    views=projected,
    cut=in_runs,
    move=heads_first,
    share=shared_in_runs,
    mask_for=for_every_head,
    merge=multihead.merge_heads,
    mix=lambda self, merged, query: self.W_o(merged),
    finish=lambda self, output, *given: output,
    seen=lambda mask: mask,
    shown=lambda maps: maps,
    **options,
):
    """A ``MultiHeadAttention`` made of decisions, in the order in which they are taken.

    ``seen`` is the mask that ``weights`` uses, ``shown`` what it returns. Other options are
    decisions of ``Attention``, or replace methods; None removes one.
    """
    attention = Attention.of(options)

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads, n_kv_heads=None, bias=True):
            begin(self)
            refuse(d_model, n_heads)
            self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
            hold(self, layers(d_model, n_heads, self.n_kv_heads, bias))

        def of_heads(self, query, key, value):
            q, k, v = views(self, *defaults(query, key, value))
            group = self.n_heads // self.n_kv_heads
            k, v = (share(move(cut(x, self.n_kv_heads)), group) for x in (k, v))
            return move(cut(q, self.n_heads)), k, v

        def weights(self, query, key=None, value=None, mask=None):
            q, k, _ = self.of_heads(query, key, value)
            return shown(attention.weights(q, k, query, mask_for(seen(mask), q.ndim)))

        def forward(self, query, key=None, value=None, mask=None):
            q, k, v = self.of_heads(query, key, value)
            output = attention.output(q, k, v, mask_for(mask, q.ndim), other=query)
            output = mix(self, merge(output), query)
            return finish(self, output, query, key, value, mask)

    for name, method in options.items():
        if method is None:
            delattr(MultiHeadAttention, name)
        else:
            setattr(MultiHeadAttention, name, method)
    return MultiHeadAttention


RIGHT = Attention()


def scores_as_maps(self, query, key=None, value=None, mask=None):
    q, k, _ = self.of_heads(query, key, value)
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return RIGHT.hide(scores, for_every_head(mask, q.ndim))


def output_as_maps(self, query, key=None, value=None, mask=None):
    return self(query, key, value, mask)


def in_this_chapter(slip: Slip) -> Slip:
    """A slip of one head, in the words of many."""
    words = (("`scores / math.sqrt(query.shape[-1])`", "√d_head"), ("`query.shape[-1]`", "d_head"))
    name, said = slip.name, slip.explanation
    for one, other in (*words, ("`query.shape[-1] ** 0.5`", "√d_head"), ("d_k", "d_head")):
        name, said = name.replace(one, other), said.replace(one, other)
    return replace(slip, name=name, explanation=said)


def stacked(tensors):
    return torch.cat(tensors)


def interleaved(tensors):
    """Row 0 of every head, then row 1 of every head, and so on."""
    return torch.stack(tensors, dim=1).flatten(0, 1)


def weight_and_bias(layer, own):
    weight_alone(layer, own)
    bias_alone(layer, own)


@composition
def converted(
    heads=lambda naive: list(naive.heads),
    number=lambda naive: len(naive.heads),
    biased=lambda naive: naive.W_o.bias is not None,
    weights=stacked,
    biases=stacked,
    weights_of=lambda name: name,
    biases_of=lambda name: name,
    W_o=weight_and_bias,
    finish=lambda made, naive: made,
):
    """A ``naive_to_batched`` made of decisions; ``weights_of`` names the layer to copy from."""

    def naive_to_batched(naive):
        bias = biased(naive)
        made = multihead.MultiHeadAttention(naive.W_o.in_features, number(naive), bias=bias)
        with torch.no_grad():
            for name in NAMES[:3]:
                layer = getattr(made, name)
                of = [getattr(head, weights_of(name)).weight for head in heads(naive)]
                layer.weight.copy_(weights(of))
                if bias and naive.W_o.bias is not None and biases is not None:
                    of = [getattr(head, biases_of(name)).bias for head in heads(naive)]
                    layer.bias.copy_(biases(of))
            if W_o is not None:
                W_o(made.W_o, naive.W_o)
        return finish(made, naive)

    return naive_to_batched


def bias_alone(layer, own):
    if own.bias is not None:
        layer.bias.copy_(own.bias)


def weight_alone(layer, own):
    layer.weight.copy_(own.weight)


def transposed(layer, own):
    layer.weight.copy_(own.weight.T)
    bias_alone(layer, own)


def shared_layer(made, naive):
    made.W_o = naive.W_o
    return made


def keys_and_values_exchanged(name):
    return {"W_k": "W_v", "W_v": "W_k"}.get(name, name)


def keys_from_queries(name):
    return "W_q" if name == "W_k" else name


def one_from_another(pair: tuple[str, str]) -> dict:
    """The options by which one projection is filled from another."""
    place, origin = pair
    other = {place: origin}
    return {
        "weights_of": lambda name: other.get(name, name),
        "biases_of": lambda name: other.get(name, name),
    }


def weights_from_another(pair: tuple[str, str]) -> dict:
    return {"weights_of": one_from_another(pair)["weights_of"]}


# --- exercises -------------------------------------------------------------------------------

EVERY_FEATURE = "the numbers of tokens, features and sequences are the same"
CUT_OFF = (
    "The numbers are right, but nothing can be learned through them: `.detach()`, `.data` or "
    "`.numpy()` cut the history."
)

SPLIT = Exercise(
    target="multihead.split_heads",
    reference=multihead.split_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=2,
    minutes=10,
    criteria=(
        Criterion(
            "head i gets features i·d/h to (i+1)·d/h − 1 of every token",
            2,
            SPLIT_CASES(
                SPLIT_BY_HAND,
                row("n=7 h=4 d_head=3"),
                row("n=3 h=3 d_head=4", note="as many tokens as heads"),
                row("n=5 h=3 d_head=3", note="as many heads as features in a head"),
            ),
        ),
        Criterion(
            "one token, one head, any memory layout",
            1,
            SPLIT_CASES(
                row("n=1 h=3 d_head=2", note="one token"),
                row("n=5 h=1 d_head=6", note="one head"),
                row("n=5 h=4 d_head=1", note="one feature in a head"),
                row("n=7 h=4 d_head=3", turned=True, note="not contiguous in memory"),
            ),
        ),
        Criterion(
            "batches",
            2,
            SPLIT_CASES(
                *SPLIT_ROWS.batches,
                row("n=5 h=3 d_head=4", batch=(3,), note="as many sequences as heads"),
                row("n=7 h=5 d_head=2", batch=(2, 3), note="two batch axes"),
                row("n=12 h=3 d_head=4", batch=(12,), note=EVERY_FEATURE),
            ),
        ),
        Criterion(
            "float32 and large entries",
            1,
            SPLIT_CASES(*SPLIT_ROWS.numbers, once_more(SPLIT_BY_HAND)),
        ),
        Criterion("gradients reach x", 1, SPLIT_CASES(*SPLIT_ROWS.gradients)),
        Criterion("refuses a width that n_heads does not divide", 1, refusals),
        leaves_arguments_alone(),
    ),
    excludes=(FLOATS_ONLY,),
    misconceptions=made(
        splitting,
        Slip(
            "reshaped straight to (h, n, d/h)",
            "A reshape hands out the numbers in the order in which they lie in memory: all of "
            "token 0, then all of token 1. So your head 0 gets the first tokens, not the first "
            "features. Cut the features, `(..., n, h, d/h)`, and then let tokens and heads change "
            "places.",
            {"cut": across_tokens, "move": lambda x: x},
        ),
        Slip(
            "the axes are left as they are",
            "You return (..., n, h, d/h). The heads are to come before the tokens: "
            "`.transpose(-3, -2)`.",
            {"move": lambda x: x},
        ),
        Slip(
            "a head takes every h-th feature",
            "Your head i gets features i, i + h, i + 2h, … It is to get a run of d/h features, so "
            "the axis of the heads comes first when you cut: `(..., n, h, d/h)`.",
            {"cut": in_turns},
        ),
        Slip(
            "n_heads taken for the width of a head",
            "You make d/h heads of h features. It is h heads of d/h features.",
            {"cut": lambda x, h: x.unflatten(-1, (-1, h))},
        ),
        Slip(
            "axes 1 and 2 swapped",
            "`transpose(1, 2)`, or a `permute` of four axes, is right for exactly one batch axis. "
            "Count from the end: `.transpose(-3, -2)`.",
            {"move": lambda x: x.transpose(1, 2)},
            also=({"move": lambda x: x.permute(0, 2, 1, 3)},),
        ),
        Slip(
            "axes 0 and 1 swapped",
            "`transpose(0, 1)` swaps tokens and heads only as long as there is no batch in front. "
            "Count from the end: `.transpose(-3, -2)`.",
            {"move": lambda x: x.transpose(0, 1)},
            also=({"move": lambda x: x.permute(1, 0, 2)},),
        ),
        Slip(
            "the heads come before the batch",
            "Your axis of the heads is the very first. It stands behind the batch, right before "
            "the tokens: `dim=-3`, counted from the end.",
            {"move": lambda x: x.movedim(-2, 0)},
        ),
        Slip(
            "exactly one batch axis",
            "`b, n, d = x.shape` fits one batch axis and nothing else. `*batch, n, d = x.shape` "
            "fits any number, none included.",
            {"cut": by_its_axes},
            also=(
                {
                    "cut": lambda x, h: x.reshape(x.shape[0], -1, h, x.shape[-1] // h),
                    "move": lambda x: x.transpose(1, 2),
                },
            ),
        ),
        Slip(
            "tokens and features of a head swapped",
            "You return (..., h, d/h, n), which is how the keys stand in `query @ key.mT`. Here a "
            "token is a row: (..., h, n, d/h).",
            {"finish": lambda heads: heads.mT},
        ),
        Slip(
            "every head gets all features",
            "You repeat x for every head. The heads share the features out: d/h for each.",
            {"cut": lambda x, h: x.unsqueeze(-2).expand(*x.shape[:-1], h, -1)},
        ),
        Slip(
            "a list of heads",
            "You return a tuple or a list of h tensors. Put them on an axis of their own: "
            "`torch.stack(parts, dim=-3)`.",
            {"finish": lambda heads: heads.unbind(-3)},
        ),
        Slip(
            "the tokens are shared out",
            "You cut the sequence into h pieces. Every head sees every token, and a part of its "
            "features.",
            {
                "cut": lambda x, h: torch.stack(x.chunk(h, dim=-2), dim=-3),
                "move": lambda x: x,
            },
        ),
        Slip(
            "features are dropped in silence",
            "Where h does not divide d, `d // h` rounds down and the last features are lost "
            "without a word. Raise ValueError.",
            {
                "refuse": lambda width, h: None,
                "take": lambda x, h: x[..., : x.shape[-1] // h * h],
            },
        ),
        Slip(
            "not a ValueError",
            "You refuse a width that h does not divide, but by an `assert`, which raises "
            "AssertionError and is skipped under `python -O`. (Torch's own complaint would be a "
            "RuntimeError.) Test it yourself and `raise ValueError(…)`.",
            {"refuse": asserted},
            also=({"refuse": lambda width, h: None},),
        ),
        Slip(
            "another axis is tested",
            "Your test for divisibility looks at the tokens, or at the batch, so that it refuses "
            "sequences whose length h does not divide. The features are the last axis: "
            "`x.shape[-1]`.",
            {"asked": lambda x: x.shape[-2]},
            also=({"asked": lambda x: x.shape[1]}, {"asked": lambda x: x.shape[0]}),
        ),
        Slip(
            "the gradient is cut off",
            CUT_OFF,
            {"take": lambda x, h: x.detach()},
        ),
    ),
    hints=(
        "Two steps: cut the last axis in two, then let two axes change places.",
        "The last axis holds head 0's features, then head 1's: cut it into (h, d/h), not (d/h, h).",
        "`x.reshape(*x.shape[:-1], n_heads, d_head)`, then `.transpose(-3, -2)`.",
    ),
)

MERGE = Exercise(
    target="multihead.merge_heads",
    reference=multihead.merge_heads,
    section="Chapter 9, “One projection for all heads”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion(
            "the heads' features side by side, head 0 first",
            2,
            MERGE_CASES(
                MERGE_BY_HAND,
                row("h=4 n=7 d_head=3"),
                row("h=3 n=3 d_head=4", note="as many tokens as heads"),
                row("h=5 n=2 d_head=2", note="as many tokens as features in a head"),
            ),
        ),
        Criterion(
            "one token, one head, any memory layout",
            1,
            MERGE_CASES(
                row("h=3 n=1 d_head=4", note="one token"),
                row("h=1 n=5 d_head=4", note="one head"),
                row("h=4 n=5 d_head=1", note="one feature in a head"),
                row("h=3 n=5 d_head=4", turned=True, note="not contiguous in memory"),
            ),
        ),
        Criterion(
            "batches",
            2,
            MERGE_CASES(
                *MERGE_ROWS.batches,
                row("h=3 n=5 d_head=4", batch=(3,), note="as many sequences as heads"),
                row("h=5 n=7 d_head=2", batch=(2, 3), note="two batch axes"),
                row("h=3 n=12 d_head=4", batch=(12,), note=EVERY_FEATURE),
                row("h=3 n=5 d_head=4", batch=(1,), note="a batch of 1"),
            ),
        ),
        Criterion(
            "float32 and large entries",
            1,
            MERGE_CASES(*MERGE_ROWS.numbers, once_more(MERGE_BY_HAND)),
        ),
        Criterion("gradients reach x", 1, MERGE_CASES(*MERGE_ROWS.gradients)),
        leaves_arguments_alone(),
    ),
    excludes=(FLOATS_ONLY,),
    misconceptions=made(
        merging,
        Slip(
            "the axes are not put back",
            "You reshape (h, n, d/h) straight to (n, d), so the first rows are made of head 0 "
            "alone. `.contiguous()` does not change that. First let tokens and heads change places "
            "again, `.transpose(-3, -2)`, then join the last two axes.",
            {"move": lambda x: x, "join": across_heads},
        ),
        Slip(
            ".view where the memory is out of order",
            "`.view` never moves a number, and after the transpose the numbers of a row no longer "
            "lie together. `.reshape` and `.flatten` copy where they must.",
            {"join": lambda x: x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])},
        ),
        Slip(
            "heads averaged",
            "You average over the heads, which leaves d/h features and mixes what they found. The "
            "heads' outputs stand side by side.",
            {"move": lambda x: x.mean(-3), "join": lambda x: x},
        ),
        Slip(
            "heads summed",
            "You add the heads up, which leaves d/h features. Their outputs stand side by side; "
            "adding comes later, and W_o decides with which weights.",
            {"move": lambda x: x.sum(-3), "join": lambda x: x},
        ),
        Slip(
            "heads below one another",
            "You return (..., h·n, d/h): all tokens of head 0, then all of head 1. Each token is "
            "to be one row again, (..., n, d).",
            {"move": lambda x: x, "join": lambda x: x.flatten(-3, -2)},
        ),
        Slip(
            "features of the heads interleaved",
            "Your rows hold feature 0 of every head, then feature 1 of every head. Head 0's "
            "features come first, all of them.",
            {"move": lambda x: x.movedim(-3, -1)},
        ),
        Slip(
            "transposed, not joined",
            "You return (..., n, h, d/h). The last two axes are to be one: `.flatten(-2)`.",
            {"join": lambda x: x},
        ),
        Slip(
            "features in rows",
            "You return (..., d, n). A token is a row: (..., n, d).",
            {"finish": lambda merged: merged.mT},
        ),
        Slip(
            "axes 1 and 2 swapped",
            "`transpose(1, 2)` is right for exactly one batch axis. Count from the end: "
            "`.transpose(-3, -2)`.",
            {"move": lambda x: x.transpose(1, 2)},
            also=({"move": lambda x: x.permute(0, 2, 1, 3)},),
        ),
        Slip(
            "axes 0 and 1 swapped",
            "`transpose(0, 1)` is right only without a batch. Count from the end: "
            "`.transpose(-3, -2)`.",
            {"move": lambda x: x.transpose(0, 1)},
            also=({"move": lambda x: x.permute(1, 0, 2)},),
        ),
        Slip(
            "joined from the front",
            "`flatten(2)` or `cat(…, dim=2)` joins the heads with their features for exactly one "
            "batch axis, and `flatten(1)` for none. Count from the end: `.flatten(-2)`.",
            {"join": lambda x: x.flatten(2)},
            also=(
                {"join": lambda x: x.flatten(1)},
                {"join": lambda x: torch.cat(x.unbind(-2), 2)},
            ),
        ),
        Slip(
            "exactly one batch axis",
            "`b, h, n, d_head = x.shape` fits one batch axis and nothing else. "
            "`*batch, h, n, d_head = x.shape` fits any number.",
            {"take": one_batch_axis},
        ),
        Slip(
            "the batch axes run together",
            "Several batch axes come back as one. The result has the batch axes of x: "
            "`*batch, h, n, d_head = x.shape`, and reshape to `(*batch, n, h * d_head)`.",
            {"finish": lambda merged: merged.reshape(-1, *merged.shape[-2:])},
        ),
        Slip(
            "axes of length 1 are dropped",
            "`.squeeze()` takes every axis of length 1 away, and with a single token, or one "
            "feature, that is one too many.",
            {"finish": lambda merged: merged.squeeze()},
        ),
        Slip(
            "the gradient is cut off",
            CUT_OFF,
            {"take": lambda x: x.detach()},
        ),
    ),
    hints=(
        "Undo `split_heads` step by step, the last step first.",
        "First (..., h, n, d/h) to (..., n, h, d/h), then join the last two axes.",
        "`.transpose(-3, -2)`, then `.flatten(-2)`, or `.reshape(*batch, n, h * d_head)`.",
    ),
)

HEADS = Exercise(
    target="multihead.MultiHeadAttention",
    reference=multihead.MultiHeadAttention,
    section="Chapter 9, “One projection for all heads”",
    difficulty=4,
    minutes=45,
    forbids=("multi_head_attention_forward",),
    criteria=(
        Criterion(
            "attention in every head, merged, and mixed by W_o",
            3,
            HEADS_CASES(
                HEADS_BY_HAND,
                HEADS_ROW,
                row("m=3 d_model=12 h=3", note="as many tokens as heads"),
                row("m=5 d_model=4 h=1", note="one head"),
                row("m=5 d_model=32 h=2", then="m=3", note="d_head = 16"),
                row("m=1 d_model=8 h=2", note="one token"),
                *(
                    row("m=7 d_model=12 h=3", zero=zero, note="some weights are 0")
                    for zero in (
                        ("W_q.weight", "W_k.bias", "W_v.bias", "W_o.weight"),
                        ("W_q.bias", "W_k.weight", "W_o.bias"),
                        ("W_v.weight",),
                    )
                ),
            ),
        ),
        Criterion(
            "keys and values from elsewhere",
            2,
            HEADS_CASES(
                row("m=5 n=7 d_model=8 h=2", given=KEY, note="no value given: it is the key"),
                ACROSS.but(given=BOTH),
                row("m=19 n=3 d_model=12 h=3", given=KEY, note="as many keys as heads"),
                row("m=1 n=17 d_model=8 h=2", given=BOTH, note="one query, many keys"),
                row("m=2 n=1 d_model=8 h=2", given=BOTH, note="one key"),
                row("m=3 n=2 d_model=8 h=2", batch=(2,), given=BOTH, note="a batch of 2"),
            ),
        ),
        Criterion(
            "fewer key and value heads",
            2,
            HEADS_CASES(
                row("m=7 d_model=16 h=4", options=sharing(2)),
                row("m=5 d_model=16 h=4", options=sharing(1), note="one for all"),
                row(
                    "m=5 d_model=24 h=6",
                    batch=(2,),
                    options=sharing(2),
                    note="runs of three, a batch of 2",
                ),
                row(
                    "m=5 n=7 d_model=24 h=6",
                    batch=(2,),
                    options=sharing(3),
                    given=KEY,
                    note="keys from elsewhere",
                ),
                row(
                    "m=4 n=4 d_model=4 h=4",
                    batch=(4,),
                    options=sharing(4),
                    given=KEY,
                    note="every axis of length 4",
                ),
            ),
        ),
        Criterion(
            "bias=False leaves every bias out",
            1,
            HEADS_CASES(
                HEADS_ROW.but(options=NO_BIAS),
                row("m=5 d_model=16 h=4", options=sharing(2) | NO_BIAS),
            ),
        ),
        Criterion(
            "a mask for every head",
            2,
            HEADS_CASES(
                HEADS_ROW.but(given=masked("m m"), note="(m, n)"),
                HEADS_ROW.but(batch=(3,), given=masked("m m"), note="(m, n), a batch of 3"),
                HEADS_ROW.but(batch=(2,), given=masked("... m m"), note="(b, m, n)"),
                HEADS_ROW.but(
                    batch=(3,), given=masked("... m m"), note="(b, m, n), as many as heads"
                ),
                row(
                    "m=5 n=7 d_model=8 h=2",
                    batch=(2,),
                    given=KEY | {"value": None, "mask": hole("... m n")},
                    note="(b, m, n), keys from elsewhere, as many sequences as heads",
                ),
            ),
        ),
        Criterion(
            "a mask for each head",
            1,
            HEADS_CASES(
                HEADS_ROW.but(batch=(2,), given=masked("... h m m"), note="(b, h, m, n)"),
                HEADS_ROW.but(batch=(3,), given=masked("... h m m"), note="(b, h, m, n), b = h"),
                row(
                    "m=5 d_model=16 h=4",
                    batch=(2,),
                    options=sharing(2),
                    given=masked("... h m m"),
                    note="(b, h, m, n), n_kv_heads",
                ),
            ),
        ),
        Criterion(
            "weights(...) returns a map for each head",
            2,
            HEADS_CASES(
                MAPS_BY_HAND,
                HEADS_ROW.but(method="weights"),
                ACROSS.but(batch=(2,), given=KEY, method="weights", note="keys from elsewhere"),
                ACROSS.but(given=BOTH, method="weights", note="a value that plays no part"),
                row("m=5 d_model=16 h=4", options=sharing(2), method="weights"),
                HEADS_ROW.but(
                    batch=(3,),
                    given=masked("... m m"),
                    method="weights",
                    note="(b, m, n), as many as heads",
                ),
                HEADS_ROW.but(
                    batch=(2,), given=masked("... h m m"), method="weights", note="(b, h, m, n)"
                ),
            ),
        ),
        Criterion(
            "batches",
            1,
            HEADS_CASES(
                *HEADS_ROWS.batches,
                row("m=5 d_model=8 h=2", batch=(2, 3), note="two batch axes"),
            ),
        ),
        Criterion(
            "float32 and large scores",
            1,
            HEADS_CASES(
                HEADS_ROWS.single.but("d_model=21", note="float32, d_head = 7"),
                *HEADS_ROWS.extreme,
            ),
        ),
        Criterion(
            "gradients reach query, key and every weight",
            2,
            HEADS_CASES(
                ACROSS.but(
                    batch=(2,),
                    given=BOTH,
                    use=call_module_with_each_gradient,
                    note="a batch of 2, each gradient alone",
                ),
                row(
                    "m=5 n=7 d_model=16 h=4",
                    options=sharing(2),
                    given=KEY | {"value": None, "mask": hole("m n")},
                    use=call_module_with_gradients,
                    note="with a mask, all at once",
                ),
            ),
        ),
        Criterion("refuses a d_model that n_heads does not divide", 1, heads_refusals),
        leaves_arguments_alone(),
    ),
    excludes=(FLOATS_ONLY,),
    misconceptions=made(
        heads,
        Slip(
            "super().__init__() is missing",
            "`nn.Module` creates its lists of parameters and layers in its own `__init__`. Call "
            "`super().__init__()` before you assign the first layer.",
            {"begin": lambda self: None},
        ),
        Slip(
            "reshaped straight to (b, h, n, d_head)",
            "You cut the projections by `reshape(b, h, n, d_head)`, which hands the numbers out in "
            "the order of memory: head 0 gets the first tokens with all their features. Cut the "
            "features first, `(b, n, h, d_head)`, then `.transpose(1, 2)`: your `split_heads`.",
            {"cut": across_tokens, "move": lambda x: x},
        ),
        Slip(
            "merged without undoing the transpose",
            "You reshape (b, h, n, d_head) straight to (b, n, d_model), so a row is made of "
            "several tokens of one head. Transpose back first: your `merge_heads`.",
            {"merge": across_heads},
        ),
        Slip(
            "split and merged by reshape alone",
            "Cutting by `reshape` and joining by `reshape` undo each other, so the shapes come out "
            "right, but in between every head attends among mixed-up tokens. Both need the "
            "transpose.",
            {"cut": across_tokens, "move": lambda x: x, "merge": across_heads},
        ),
        Slip(
            "the heads attend to each other",
            "You leave the projections as (..., n, h, d_head), without the transpose, so that in "
            "each token head meets head. Tokens are to meet: `.transpose(-3, -2)` first.",
            {"move": lambda x: x, "merge": side_by_side},
        ),
        Slip(
            "a head takes every h-th feature",
            "Your head i uses features i, i + h, i + 2h, … of the projections. It is to use a run, "
            "i·d_head to (i+1)·d_head − 1; weights from elsewhere would not fit otherwise.",
            {"cut": in_turns, "merge": lambda x: x.movedim(-3, -1).flatten(-2)},
        ),
        Slip(
            "cut in turns, joined in runs",
            "Your heads take every h-th feature of the projections, and their outputs stand side "
            "by side as if each had had a run. Head i is to use features i·d_head to "
            "(i+1)·d_head − 1: your `split_heads`.",
            {"cut": in_turns},
        ),
        Slip(
            "cut in runs, joined in turns",
            "Your heads use their runs of features, but you join feature 0 of every head, then "
            "feature 1 of every head. All of head 0 comes first: your `merge_heads`.",
            {"merge": lambda x: x.movedim(-3, -1).flatten(-2)},
        ),
        Slip(
            "n_heads taken for the width of a head",
            "You cut the projections into d_head heads of n_heads features. It is n_heads heads of "
            "d_model / n_heads features.",
            {"cut": lambda x, h: x.unflatten(-1, (-1, h))},
        ),
        DIVIDED_BY_ROOT_D_MODEL.said(
            "You divide the scores by √d_model. The dot products are taken within a head and have "
            "d_head terms: divide by √d_head."
        ),
        *map(in_this_chapter, (DIVIDED_BY_D_K, NO_SCALE, MULTIPLIED_BY_ROOT)),
        Slip(
            "divided by √h",
            "You divide by the root of the number of heads. It is the width of a head that counts: "
            "√d_head.",
            {"factor": lambda q, k, other: q.shape[-3] ** -0.5},
        ),
        *map(in_this_chapter, (DIVIDED_BY_ROOT_N, ANOTHER_POWER, ANOTHER_FACTOR)),
        in_this_chapter(SCALED_AFTERWARDS),
        replace(NO_SOFTMAX, also=({"normalize": lambda s: s},)),
        SIGMOIDS,
        SOFTMAX_TWICE,
        OVER_EVERYTHING,
        NO_MAXIMUM,
        GUARD,
        OVER_QUERIES.said(
            "Your softmax runs over the queries. Each query has a budget of 1 in each head: "
            "`softmax(dim=-1)`."
        ),
        Slip(
            "softmax over the heads",
            "Your softmax runs over the axis of the heads, so that they share a budget. Each head "
            "has its own, over the keys: `softmax(dim=-1)`.",
            {"normalize": lambda s: s.softmax(-3)},
        ),
        OVER_AXIS_1.said(
            "`softmax(dim=1)` is the heads' axis for one batch axis and the queries' for none. The "
            "keys are the last axis: `dim=-1`."
        ),
        OVER_AXIS_0.said(
            "`softmax(dim=0)` runs over the batch, or over the heads where there is none. The keys "
            "are the last axis: `dim=-1`."
        ),
        Slip(
            "W_o is forgotten",
            "You return the heads' outputs side by side. W_o comes after that, and it is the only "
            "place where the heads meet.",
            {"mix": lambda self, merged, query: merged},
        ),
        Slip(
            "the query is added on top",
            "You add the query to the output, as the block around this module will. Attention "
            "returns what W_o makes of the heads, and nothing else.",
            {"mix": lambda self, merged, query: query + self.W_o(merged)},
        ),
        Slip(
            "the heads are averaged",
            "Your W_o takes d_head features, because you average over the heads. Their outputs "
            "stand side by side, d_model features in all.",
            {
                "layers": lambda d, h, kv, bias: (
                    four_layers(d, h, kv, bias) | {"W_o": nn.Linear(d // h, d, bias=bias)}
                ),
                "merge": lambda x: x.mean(-3),
            },
        ),
        Slip(
            "one map for all heads",
            "You average the heads' maps and mix with the average. Each head mixes its values with "
            "its own map; otherwise there might as well be one.",
            {"after": lambda w, mask, factor: w.mean(-3, keepdim=True)},
        ),
        Slip(
            "every head uses head 0's keys",
            "All your heads compare with the same keys. Each has its own run of features of "
            "`W_k(key)`, unless n_kv_heads says otherwise.",
            {"compare": lambda q, k: q @ k[..., :1, :, :].mT},
        ),
        ROLES_EXCHANGED.said(
            "You compute `k @ q.mT`, so that row i of a map belongs to key i. Row i belongs to "
            "query i: `q @ k.mT`."
        ),
        T_ON_A_BATCH.said(
            "`k.T` turns all axes around, those of the heads and the batch too. `k.mT` swaps the "
            "last two only."
        ),
        COSINE,
        Slip(
            "one view for query and key",
            "You compare `W_q(query)` with `W_q(key)`. The keys are a view of their own: "
            "`self.W_k(key)`.",
            {"views": lambda self, q, k, v: (self.W_q(q), self.W_q(k), self.W_v(v))},
        ),
        Slip(
            "one view for key and value",
            "You mix `W_k(value)`. The keys say what can be found, the values what is taken away: "
            "mix `self.W_v(value)`.",
            {"views": lambda self, q, k, v: (self.W_q(q), self.W_k(k), self.W_k(v))},
        ),
        Slip(
            "W_k and W_v exchanged",
            "You compare with `W_v` and mix what `W_k` makes. The keys are `W_k(key)`, the values "
            "`W_v(value)`.",
            {"views": lambda self, q, k, v: (self.W_q(q), self.W_v(k), self.W_k(v))},
        ),
        Slip(
            "the values are not projected",
            "You mix the tokens themselves. What is mixed is their third view, `self.W_v(value)`.",
            {"views": lambda self, q, k, v: (self.W_q(q), self.W_k(k), v)},
        ),
        Slip(
            "the biases are there and not used",
            "Your layers have biases, but you multiply by their weights alone. Call the layer, "
            "`self.W_q(query)`, which adds its bias too.",
            {
                "views": lambda self, q, k, v: (
                    q @ self.W_q.weight.mT,
                    k @ self.W_k.weight.mT,
                    v @ self.W_v.weight.mT,
                )
            },
            also=({"mix": lambda self, merged, query: merged @ self.W_o.weight.mT},),
        ),
        Slip(
            "key and value are ignored",
            "You use the query for everything, also where keys and values are given. That is "
            "self-attention only.",
            {"defaults": lambda query, key, value: (query, query, query)},
        ),
        Slip(
            "key is ignored",
            "You take keys from the query, also where a key is given. The query takes its place "
            "only if it is left out.",
            {
                "defaults": lambda query, key, value: (
                    query,
                    query,
                    in_their_places(query, key, value)[2],
                )
            },
        ),
        Slip(
            "value is ignored",
            "You project the keys where a value was given: `value` is the key only if it is left "
            "out.",
            {"defaults": lambda query, key, value: in_their_places(query, key, None)},
        ),
        Slip(
            "value defaults to query",
            "Where no value is given you use the query. It is the key that takes its place: what "
            "was found is what is handed over.",
            {
                "defaults": lambda query, key, value: (
                    query,
                    query if key is None else key,
                    query if value is None else value,
                )
            },
        ),
        Slip(
            "a tensor taken for True or False",
            "`key or query` and `if key:` ask a tensor whether it is true, which torch refuses "
            "for more than one number. Ask `if key is None`.",
            {"defaults": lambda query, key, value: (query, key or query, value or key or query)},
        ),
        Slip(
            "key/value heads in turns",
            "You hand the key and value heads out in turns, 0, 1, 0, 1 (`repeat`). Each serves a "
            "run of neighbouring query heads, 0, 0, 1, 1: `repeat_interleave`.",
            {"share": lambda x, group: torch.cat([x] * group, -3)},
        ),
        Slip(
            "key/value heads are not shared",
            "Your query heads outnumber the key and value heads, and broadcasting makes up for "
            "that only where there is one. Repeat each: `repeat_interleave(n_heads // n_kv_heads, "
            "dim=-3)`.",
            {"share": lambda x, group: x},
        ),
        Slip(
            "n_kv_heads is ignored",
            "Your W_k and W_v have d_model outputs whatever n_kv_heads says. They are "
            "n_kv_heads · d_head wide; that is what is saved.",
            {"layers": lambda d, h, kv, bias: four_layers(d, h, h, bias)},
        ),
        Slip(
            "bias is ignored",
            "Your layers have biases even with `bias=False`. Hand it on to each `nn.Linear`.",
            {"layers": lambda d, h, kv, bias: four_layers(d, h, kv, True)},
        ),
        Slip(
            "never a bias",
            "Your layers have no bias, whatever is asked for. With `bias=True`, the default, all "
            "four have one: hand it on to each `nn.Linear`.",
            {"layers": lambda d, h, kv, bias: four_layers(d, h, kv, False)},
        ),
        Slip(
            "no bias in W_o",
            "Your W_o never has a bias. With `bias=True` all four layers have one.",
            {
                "layers": lambda d, h, kv, bias: (
                    four_layers(d, h, kv, bias) | {"W_o": nn.Linear(d, d, bias=False)}
                )
            },
        ),
        Slip(
            "W_o always has a bias",
            "Your W_o has a bias even with `bias=False`. Hand it on to each of the four layers.",
            {
                "layers": lambda d, h, kv, bias: (
                    four_layers(d, h, kv, bias) | {"W_o": nn.Linear(d, d)}
                )
            },
        ),
        Slip(
            "the layers are hidden from the module",
            "Your module has no parameters. Layers in a plain list or dict are not found: assign "
            "each to an attribute in `__init__`, `self.W_q = nn.Linear(…)`.",
            {"hold": lambda self, layers: setattr(self, "layers", layers)},
        ),
        MASK_INVERTED.said(
            "You shut out what the mask allows. True means allowed. (PyTorch's "
            "`nn.MultiheadAttention` has it the other way round.)"
        ),
        MASK_IGNORED.said("Your result is the same with and without the mask."),
        Slip(
            "the mask's batch axis meets the heads",
            "A mask (b, m, n) is broadcast against scores (b, h, m, n) from the right, so its "
            "batch axis meets the axis of the heads: an error, or, with as many sequences as "
            "heads, wrong numbers without one. Give it an axis for the heads first: "
            "`mask.unsqueeze(-3)`.",
            {"mask_for": lambda mask, n_axes: mask},
            also=({"mask_for": lambda mask, n_axes: None if mask is None else mask.unsqueeze(0)},),
        ),
        Slip(
            "an axis for the heads where there is one",
            "You insert an axis for the heads into every mask that has a batch axis. A mask "
            "(b, h, m, n) has one already.",
            {"mask_for": lambda mask, n_axes: None if mask is None else mask.unsqueeze(-3)},
            also=(
                {
                    "mask_for": lambda mask, n_axes: (
                        mask.unsqueeze(1) if mask is not None and mask.ndim > 2 else mask
                    )
                },
            ),
        ),
        Slip(
            "axis 1 of every mask is for the heads",
            "`mask.unsqueeze(1)` or `mask[:, None]` is right for a mask (b, m, n) alone. One that "
            "is (m, n) broadcasts as it is, and one that is (b, h, m, n) has an axis for the "
            "heads: ask for the number of axes.",
            {"mask_for": lambda mask, n_axes: None if mask is None else mask.unsqueeze(1)},
        ),
        Slip(
            "head 0's mask for all heads",
            "Of a mask (b, h, m, n) you use the first head's for all. Each head has its own.",
            {
                "mask_for": lambda mask, n_axes: (
                    mask[..., :1, :, :]
                    if mask is not None and mask.ndim == n_axes
                    else for_every_head(mask, n_axes)
                )
            },
        ),
        MASKED_LATE,
        ZERO_SCORES,
        NOT_LOW_ENOUGH,
        MASK_ADDED,
        ZERO_TIMES_INFINITY,
        Slip(
            "exactly one batch axis",
            "`b, n, d = x.shape`, or `einsum('bhmd,bhnd->bhmn', …)`, fits one batch axis and "
            "nothing else. Reshape with `*x.shape[:-1]` and count axes from the end.",
            {"cut": by_its_axes},
            also=({"compare": lambda q, k: torch.einsum("bhmd,bhnd->bhmn", q, k)},),
        ),
        Slip(
            "weights is missing",
            "The output is right, but there is no method `weights`. It takes the arguments of "
            "`forward` and returns the maps (..., h, m, n).",
            {"weights": None},
        ),
        Slip(
            "weights averages over the heads",
            "Your `weights` returns one map, the average (which is what PyTorch's module does "
            "unless told otherwise). It is to return all h of them: they were made to differ.",
            {"shown": lambda maps: maps.mean(-3)},
        ),
        Slip(
            "weights ignores the mask",
            "Your `forward` uses the mask and your `weights` does not.",
            {"seen": lambda mask: None},
        ),
        Slip(
            "weights returns the scores",
            "Your `weights` returns what goes into the softmax. It is to return what comes out.",
            {"weights": scores_as_maps},
        ),
        Slip(
            "weights returns the output",
            "Your `weights` returns what `forward` does. It is to return the maps (..., h, m, n) "
            "that the values were mixed with.",
            {"weights": output_as_maps},
        ),
        Slip(
            "the maps come back too",
            "Your `forward` returns the output and the maps, as PyTorch's module does. Here it "
            "returns the output alone; `weights` is a method of its own.",
            {"finish": lambda self, output, *given: (output, self.weights(*given))},
        ),
        Slip(
            "d_model not divisible by n_heads is accepted",
            "`d_model // n_heads` rounds down, and features are lost or a shape fails far from the "
            "cause. Raise ValueError when the module is built.",
            {"refuse": lambda width, h: None},
        ),
        Slip(
            "not a ValueError",
            "You refuse a d_model that n_heads does not divide by an `assert`, which raises "
            "AssertionError and is skipped under `python -O`. Raise ValueError.",
            {"refuse": asserted},
        ),
        GRADIENT_CUT.said(
            "The numbers are right, but training would not change all of W_q, W_k and W_v: "
            "`.detach()`, `.data` or `torch.no_grad()` cut the history."
        ),
    ),
    hints=(
        "Project, split, attend, merge, project: five lines, and each exists already.",
        "Attention does not care about an axis for the heads: it is one more batch axis.",
        "Keys and values of n_kv_heads heads: `repeat_interleave(n_heads // n_kv_heads, dim=-3)`.",
        "Only a mask with a batch axis and none for the heads needs `unsqueeze(-3)`.",
    ),
)

CONVERT = Exercise(
    target="multihead.naive_to_batched",
    reference=multihead.naive_to_batched,
    section="Chapter 9, “Both are the same”",
    difficulty=3,
    minutes=20,
    criteria=(
        Criterion("W_q, W_k and W_v hold the heads' weights", 3, naive_weights),
        Criterion("their biases hold the heads' biases", 1, naive_biases),
        Criterion("W_o is the one of naive", 1, naive_outputs),
        Criterion("the module returns what naive returns", 2, naive_same),
        Criterion("the module has weights of its own", 1, naive_own),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        *made(
            converted,
            Slip(
                "the heads' weights side by side",
                "You join the weights along their second axis. `nn.Linear` stores a weight as "
                "(out, in), and what stands side by side in the *output* is rows of the weight: "
                "`torch.cat(weights, dim=0)`.",
                {"weights": lambda tensors: torch.cat(tensors, dim=1)},
            ),
            Slip(
                "the heads' weights transposed",
                "You join the transposed weights side by side, the W of the page's formula (in, "
                "out). `nn.Linear` stores (out, in): join them as they are, one below the other.",
                {"weights": lambda tensors: torch.cat([w.T for w in tensors], dim=1)},
            ),
            Slip(
                "the heads' rows interleaved",
                "You take row 0 of every head, then row 1 of every head. Head i uses a run of "
                "features, so all rows of head 0 come first.",
                {"weights": interleaved},
                also=({"weights": interleaved, "biases": interleaved},),
            ),
            Slip(
                "the heads' weights averaged",
                "You mix the heads' weights, as one average or sum for all. Every head keeps its "
                "own rows, one head below the other: `torch.cat(weights)`.",
                {"weights": lambda tensors: sum(tensors).repeat(len(tensors), 1) / len(tensors)},
            ),
            Slip(
                "head 0 in every place",
                "Every run of rows holds the weights of head 0: does the loop use its index?",
                {"heads": lambda naive: [naive.heads[0] for _ in naive.heads]},
            ),
            Slip(
                "the last head in every place",
                "Every run of rows holds the weights of the last head: is the result written, or "
                "kept, only once the loop is over?",
                {"heads": lambda naive: [naive.heads[-1] for _ in naive.heads]},
            ),
            Slip(
                "heads in reverse order",
                "The last head comes first. Head 0 uses the first run of features, and its output "
                "meets the first columns of W_o.",
                {"heads": lambda naive: list(naive.heads)[::-1]},
            ),
            Slip(
                "W_k is filled from W_q",
                "You copy the heads' W_q into W_k as well. Each of the three has its own source.",
                {"weights_of": keys_from_queries, "biases_of": keys_from_queries},
                also=(weights_from_another(("W_k", "W_q")),),
            ),
            Slip(
                "one projection is filled from another",
                "One of W_q, W_k and W_v holds what the heads have in another of these. Each of "
                "the three has its own source.",
                weights_from_another(("W_v", "W_k")),
                weights_from_another,
                (("W_v", "W_k"), ("W_v", "W_q"), ("W_q", "W_k"), ("W_q", "W_v"), ("W_k", "W_v")),
                also=tuple(
                    one_from_another(pair)
                    for pair in (("W_v", "W_k"), ("W_v", "W_q"), ("W_q", "W_k"), ("W_k", "W_v"))
                ),
            ),
            Slip(
                "keys and values exchanged",
                "W_k holds the heads' W_v and W_v their W_k.",
                {"weights_of": keys_and_values_exchanged, "biases_of": keys_and_values_exchanged},
            ),
            Slip(
                "W_o is not copied",
                "W_o is still what it was built with, at random. Copy it: it needs no rearranging.",
                {"W_o": None},
            ),
            Slip(
                "the bias of W_o is not copied",
                "The weight of W_o is right, its bias is still the random one that it was built "
                "with. Copy both.",
                {"W_o": weight_alone},
            ),
            Slip(
                "W_o is transposed",
                "You copy the transpose of W_o. Both modules hold it as an `nn.Linear`: copy it as "
                "it is.",
                {"W_o": transposed},
            ),
            Slip(
                "W_o is shared, not copied",
                "The new module holds the very layer `naive.W_o`. Training one would change the "
                "other: copy the numbers.",
                {"finish": shared_layer},
            ),
            Slip(
                "the biases are left out",
                "You build the new module without biases, but naive has some. `naive.W_o.bias` is "
                "None only where there are none.",
                {"biased": lambda naive: False, "W_o": weight_alone},
            ),
            Slip(
                "biases where naive has none",
                "The new module has biases, at random, where naive has none. Hand it on: "
                "`bias=naive.W_o.bias is not None`.",
                {"biased": lambda naive: True, "W_o": weight_and_bias},
            ),
            Slip(
                "the biases are not copied",
                "The biases of W_q, W_k and W_v are still what they were built with. Join the "
                "heads' biases, as the weights.",
                {"biases": None},
            ),
            Slip(
                "the number of heads is lost",
                "All weights are right, but the new module has another number of heads. It needs "
                "as many as naive: `len(naive.heads)`.",
                {"number": lambda naive: 1},
                also=({"number": lambda naive: naive.heads[0].W_q.out_features},),
            ),
        ),
        Misconception(
            "naive itself comes back",
            "You return the module that came in. Build a `MultiHeadAttention` and fill it.",
            lambda naive: naive,
        ),
        Misconception(
            "a state comes back, not a module",
            "You return a dictionary of tensors. Load it into a `MultiHeadAttention` and return "
            "that.",
            lambda naive: multihead.naive_to_batched(naive).state_dict(),
        ),
    ),
    hints=(
        "`len(naive.heads)` heads, `naive.W_o.in_features` features; is `naive.W_o.bias` None?",
        "Head i's output stands in columns i·d_head … of the projection: these are rows of its "
        "stored weight.",
        "`torch.cat([head.W_q.weight for head in naive.heads])`, and copy inside "
        "`torch.no_grad()`.",
    ),
)

EXERCISES = (SPLIT, MERGE, HEADS, CONVERT)
