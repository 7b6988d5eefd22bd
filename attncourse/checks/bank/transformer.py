"""The exercises of chapter 12, what a layer needs besides attention.

The blocks are judged on their own wiring: attention is chapter 9's, norms and feed-forward layers
are looked at through the weights that the check puts into them. d_head is a power of 4 in float64
cases, as in chapter 9. What dropout does in training is told by which numbers it adds, in more
than a thousand places: that one of them never comes up has a chance below 1e-30.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import transformer
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.variants.adapter import Adapter
from attncourse.checks.variants.conventions import columns, forbidden, masked, with_columns
from attncourse.checks.variants.rewriting import NEGATED
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    ONE_MASK,
    OTHER_NUMBERS,
    CaseTable,
    Drawn,
    Row,
    hole,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import (
    ModuleTable,
    State,
    module_case,
    tensor,
    uniform_values,
)
from attncourse.checks.writing.recipes import Recipe, made, mistake
from attncourse.multihead import MultiHeadAttention

# --- cases: layer_norm -----------------------------------------------------------------------

NORM_CASES = CaseTable({"x": "... d"})
FAR_FROM_0 = Drawn("... d", lambda rng, shape: rng.normal(size=shape) + 1e5)
ALL_GIVEN = CaseTable({"x": "... d", "gain": "d", "bias": "d"})
NORM_ROWS, GIVEN_ROWS = standard(NORM_CASES), standard(ALL_GIVEN)
GAIN = {"gain": Drawn("d")}
BOTH = GAIN | {"bias": Drawn("d")}
NORM_BY_HAND = Case((tensor([[1, 3], [-3, 5], [5, 7]]), tensor([1, 10])), {"eps": 1.0})
SEQUENCES = row("d=7", batch=(5,))


def bias_alone(rng: Rng, *shape: int, **options) -> Case:
    """No gain, which is not a gain of 0."""
    named = {"bias": uniform_values(rng, shape[-1])} | options
    return Case((uniform_values(rng, *shape),), named, note="no gain")


# --- cases: modules --------------------------------------------------------------------------


def layer(rng: Rng, d_out: int, d_in: int, bias: bool = True) -> State:
    """A linear layer whose output is of order one, and a bias that is not 0."""
    state = {"weight": 1.5 * d_in**-0.5 * uniform_values(rng, d_out, d_in)}
    return state | ({"bias": aside(rng, d_out)} if bias else {})


def aside(rng: Rng, d: int) -> torch.Tensor:
    """Numbers from 0.5 to 1 with either sign."""
    return tensor(rng.uniform(0.5, 1, d) * rng.choice([-1, 1], d))


def inside(name: str, state: State) -> State:
    return {f"{name}.{part}": value for part, value in state.items()}


def feed_state(rng: Rng, d_model: int, d_ff: int | None = None, bias: bool = True, **_) -> State:
    d_ff = 4 * d_model if d_ff is None else d_ff
    return inside("W_1", layer(rng, d_ff, d_model, bias)) | inside(
        "W_2", layer(rng, d_model, d_ff, bias)
    )


def attention_state(rng: Rng, d: int) -> State:
    layers = (inside(name, layer(rng, d, d)) for name in ("W_q", "W_k", "W_v", "W_o"))
    return {name: value for one in layers for name, value in one.items()}


def block_state(attentions: tuple[str, ...], norms: int):
    """What draws the weights of a block with these attentions and so many norms."""

    def state(rng: Rng, d_model: int, n_heads: int, d_ff: int | None = None, **_) -> State:
        drawn: State = {}
        for name in attentions:
            drawn |= inside(name, attention_state(rng, d_model))
        drawn |= inside("feed_forward", feed_state(rng, d_model, d_ff))
        for i in range(1, norms + 1):
            gain = tensor(rng.uniform(0.5, 1.5, d_model))
            drawn |= inside(f"norm_{i}", {"gain": gain, "bias": aside(rng, d_model)})
        return drawn

    return state


FEED_CASES = ModuleTable(
    {"x": "... n d_model"}, name="FeedForward", build="d_model d_ff", state=feed_state
)
FEED_ROWS = standard(FEED_CASES)
FEED = row("n=7 d_model=5 d_ff=11")
FEED_BY_HAND = module_case(
    "FeedForward",
    (2, 3),
    {
        "W_1.weight": tensor([[1, 0], [0, 2], [-1, 1]]),
        "W_1.bias": tensor([0, -1, 0]),
        "W_2.weight": tensor([[1, 0, 0], [0, 1, 10]]),
        "W_2.bias": tensor([0, 5]),
    },
    {"x": tensor([[1, 0], [2, 3]])},
    note="three hidden units",
)


def activated(row: Row, name: str) -> Row:
    """With another activation, which the check hands over by its name in torch.nn.functional."""
    return row.but(
        options={**row.options, "activation": name},
        use=callers.call_module_activated,
        note=f"activation=F.{name}",
    )


ENCODER_STATE = block_state(("attention",), 2)
ENCODER_CASES = ModuleTable(
    {"x": "... n d_model"}, name="EncoderBlock", build="d_model h d_ff", state=ENCODER_STATE
)
DECODER_STATE = block_state(("self_attention", "cross_attention"), 3)
DECODER_CASES = ModuleTable(
    {"x": "... m d_model", "memory": "... n d_model"},
    name="DecoderBlock",
    build="d_model h d_ff",
    state=DECODER_STATE,
)
POST = {"pre_norm": False}
ENCODER_ROWS = standard(ENCODER_CASES, d_model=12, h=3)
DECODER_ROWS = standard(DECODER_CASES, d_model=12, h=3)
ONE = row("n=7 d_model=12 h=3 d_ff=5")
TWO = row("m=5 n=7 d_model=12 h=3 d_ff=11")
RARE = "one head, one token; float32, large and small entries, weights of 0"
OUTPUTS = ("W_o.weight", "W_o.bias", "W_2.weight", "W_2.bias")  # 0 here: the branches add nothing


def weights_of_0(state) -> list[tuple[str, ...]]:
    """Every weight of a block once among others that are 0, never all of them."""
    names = list(state(torch_free_rng(), 4, 1))
    return [tuple(names[i::5]) for i in range(5)]


def torch_free_rng() -> Rng:
    import numpy as np

    return np.random.default_rng(0)


def trained(name: str, state, branches: tuple[str, ...]) -> Callable[[Rng], list[Case]]:
    """The cases that look at what dropout adds: where branch i returns 4^i everywhere, and where
    one branch alone returns anything.
    """

    def given(rng: Rng) -> dict[str, torch.Tensor]:
        memory = {"memory": uniform_values(rng, 5, 32)} if len(branches) == 3 else {}
        return {"x": uniform_values(rng, 24, 32), **memory}

    def case(rng: Rng, numbers: list[float | None], use: Callable, note: str) -> Case:
        own = state(rng, 32, 2, 8)
        for branch, number in zip(branches, numbers, strict=True):
            if number is not None:
                own[f"{branch}.weight"] = torch.zeros_like(own[f"{branch}.weight"])
                own[f"{branch}.bias"] = torch.full_like(own[f"{branch}.bias"], number)
        options = {"dropout": 0.4}
        return module_case(name, (32, 2, 8), own, given(rng), options=options, use=use, note=note)

    every = [4.0**i for i in range(len(branches))]
    one = "the numbers that are added to x; every branch returns one number"
    another = "what the numbers are multiplied by that {} adds; the other branches add nothing"

    def cases(rng: Rng) -> list[Case]:
        return [
            case(rng, every, callers.added_in_training, f"in training: {one}"),
            *(
                case(
                    rng,
                    [None if other == branch else 0.0 for other in branches],
                    callers.multiplied_in_training,
                    f"in training: {another.format(branch.split('.')[0])}",
                )
                for branch in branches
            ),
        ]

    return cases


# --- decisions: layer_norm -------------------------------------------------------------------


def mean(x):
    return x.mean(-1, keepdim=True)


@composition
def norming(
    centre=mean,
    around=lambda x, centred: centred,
    average=mean,
    spread=lambda x, variance: variance,
    power=lambda variance, eps: (variance + eps).sqrt(),
    small=lambda eps: eps,
    divide=lambda centred, size: centred / size,
    scale=lambda x, gain, bias: x if gain is None else gain * x,
    shift=lambda x, gain, bias: x if bias is None else x + bias,
    roles=lambda gain, bias: (gain, bias),
    read=lambda x: x,
    back=lambda normed, x: normed,
):
    """``layer_norm`` made of decisions; ``around`` is what the variance is the mean square of."""

    def layer_norm(x, gain=None, bias=None, eps=1e-5):
        gain, bias = roles(gain, bias)
        given, x = x, read(x)
        centred = x - centre(x)
        variance = spread(x, average(around(x, centred).square()))
        x = back(divide(centred, power(variance, small(eps))), given)
        return shift(scale(x, gain, bias), gain, bias)

    return layer_norm


def over(*axes: int):
    """Mean and variance over these axes."""

    def averaged(x):
        return x.mean(axes, keepdim=True)

    return {"centre": averaged, "average": averaged}


def of_all(x):
    return x.mean()


def unbiased(squares):
    return squares.sum(-1, keepdim=True) / (squares.shape[-1] - 1)


def outside(number: float) -> dict:
    return {"small": lambda eps: number}


# --- decisions: FeedForward ------------------------------------------------------------------


def two_layers(d_model, d_ff, bias):
    return {
        "W_1": nn.Linear(d_model, d_ff, bias=bias),
        "W_2": nn.Linear(d_ff, d_model, bias=bias),
    }


@composition
def feeding(
    super_init=decisions.begun,
    width=lambda d_model, d_ff: 4 * d_model if d_ff is None else d_ff,
    layers=two_layers,
    hold=decisions.assigned,
    default=F.gelu,
    keep=lambda activation, default: default if activation is None else activation,
    take=lambda x: x,
    first=lambda self, x: self.W_1(x),
    bend=lambda self, hidden: self.activation(hidden),
    second=lambda self, hidden: self.W_2(hidden),
    finish=lambda self, output, x: output,
):
    """A ``FeedForward`` made of decisions."""

    class FeedForward(nn.Module):
        def __init__(self, d_model, d_ff=None, activation=None, bias=True):
            super_init(self)
            self.activation = keep(activation, default)
            hold(self, layers(d_model, width(d_model, d_ff), bias))

        def forward(self, x):
            return finish(self, second(self, bend(self, first(self, take(x)))), x)

    return FeedForward


def biased(one: bool, other: bool):
    """Layers that have a bias or none, whatever was asked for."""
    return {
        "layers": lambda d, d_ff, bias: {
            "W_1": nn.Linear(d, d_ff, bias=bias if one is None else one),
            "W_2": nn.Linear(d_ff, d, bias=bias if other is None else other),
        }
    }


def times_d_model(number: float) -> dict:
    return {"width": lambda d, d_ff: round(number * d) if d_ff is None else d_ff}


def another_activation(function) -> dict:
    return {"default": function}


# --- decisions: blocks -----------------------------------------------------------------------


def before(x, branch, norm, first):
    return x + branch(norm(x))


def after(x, branch, norm, first):
    return norm(x + branch(x))


def norm_and_branch(x, branch, norm, first):
    return branch(norm(x))


def branch_and_norm(x, branch, norm, first):
    return norm(branch(x))


def behind_the_norm(x, branch, norm, first):
    return norm(x) + branch(norm(x))


def twice_after_norm(x, branch, norm, first):
    return 2 * branch(norm(x))


def twice_before_norm(x, branch, norm, first):
    return norm(2 * branch(x))


def in_turn(x, steps):
    for step in steps:
        x = step(x)
    return x


def all_at_once(x, steps):
    return x + sum(step(x) - x for step in steps)


def dropped_at_once(x, steps):
    """Branches side by side, and one dropout on their sum."""
    return x + dropped(steps[0].func.__self__, all_at_once(x, steps) - x)


def from_the_first_input(x, branch, norm, first):
    return first + branch(norm(x))


def normed_from_the_first_input(x, branch, norm, first):
    return norm(first + branch(x))


def normed_twice(x, branch, norm, first):
    return norm(x + branch(norm(x)))


def of_a_part_normed(query, key, value):
    """Pre-norm in which the norm falls on some of what attention reads only."""

    def step(x, branch, norm, first):
        read = [norm(x) if part else x for part in (query, key, value)]
        return x + branch(*read)

    return step


def dropped(self, output):
    return F.dropout(output, self.rate, self.training)


def hidden_dropped(self, x):
    """The feed-forward layer, dropout on its hidden units."""
    layer = self.feed_forward
    return layer.W_2(dropped(self, layer.activation(layer.W_1(x))))


def read_dropped(attention):
    """Dropout on what self-attention reads."""
    return lambda self, x, mask: getattr(self, attention)(dropped(self, x), mask=mask)


def sums_dropped(x, steps):
    """Dropout falls on every sum, in post-norm before its norm."""
    for step in steps:
        block, (_, branch, norm, _) = step.func.__self__, step.args
        if block.pre_norm:
            x = dropped(block, x + branch(norm(x)))
        else:
            x = norm(dropped(block, x + branch(x)))
    return x


def encoder_layers(d_model, n_heads, d_ff):
    return {
        "attention": MultiHeadAttention(d_model, n_heads),
        "feed_forward": transformer.FeedForward(d_model, d_ff),
        **{f"norm_{i}": transformer.LayerNorm(d_model) for i in (1, 2)},
    }


def decoder_layers(d_model, n_heads, d_ff):
    return {
        "self_attention": MultiHeadAttention(d_model, n_heads),
        "cross_attention": MultiHeadAttention(d_model, n_heads),
        "feed_forward": transformer.FeedForward(d_model, d_ff),
        **{f"norm_{i}": transformer.LayerNorm(d_model) for i in (1, 2, 3)},
    }


def block_class(
    name,
    branches,
    layers,
    super_init=decisions.begun,
    sizes=lambda d_model, n_heads, d_ff: (d_model, n_heads, d_ff),
    hold=decisions.assigned,
    pick=lambda pre_norm: pre_norm,
    pre=before,
    post=after,
    bare=lambda number: False,
    odd=lambda number: None,
    unnormed=lambda number: False,
    norms=lambda names: names,
    drop=dropped,
    spared=lambda number: False,
    take=lambda self, x: x,
    walk=in_turn,
    finish=lambda self, x: x,
):
    """A block made of decisions.

    ``branches(self, *given)`` are its branches in order, ``pre`` and ``post`` how one is put into
    the stream, ``odd`` how else one of them is, by pre-norm and post-norm; ``bare`` which lack a
    residual, ``unnormed`` a norm and ``spared`` dropout, ``drop`` what becomes of an output,
    ``walk`` how they follow each other.
    """

    class Block(nn.Module):
        def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
            super_init(self)
            self.pre_norm, self.rate = pick(pre_norm), dropout
            hold(self, layers(*sizes(d_model, n_heads, d_ff)))

        def run(self, x, *given):
            step = pre if self.pre_norm else post
            x = take(self, x)
            own = branches(self, *given)
            named = norms([f"norm_{i + 1}" for i in range(len(own))])
            alone = norm_and_branch if self.pre_norm else branch_and_norm

            def put(number):
                if own_way := odd(number):
                    return own_way[not self.pre_norm]
                return alone if bare(number) else step

            steps = [
                partial(
                    self.one,
                    put(number),
                    branch if spared(number) else partial(self.dropping, branch),
                    nn.Identity() if unnormed(number) else getattr(self, norm),
                    x,
                )
                for number, (branch, norm) in enumerate(zip(own, named, strict=True))
            ]
            return finish(self, walk(x, steps))

        def dropping(self, branch, *read):
            return drop(self, branch(*read))

        def one(self, step, branch, norm, first, x):
            return step(x, branch, norm, first)

    if name == "EncoderBlock":
        Block.forward = lambda self, x, mask=None: self.run(x, mask)
    else:
        Block.forward = lambda self, x, memory, mask=None, memory_mask=None: self.run(
            x, memory, mask, memory_mask
        )
    Block.__name__ = name
    return Block


@composition
def encoding(
    layers=encoder_layers,
    attend=lambda self, x, mask, *seen: self.attention(x, *seen, mask=mask),
    feed=lambda self, x: self.feed_forward(x),
    **options,
):
    """An ``EncoderBlock`` made of decisions."""

    def branches(self, mask):
        return [lambda x, *seen: attend(self, x, mask, *seen), lambda x: feed(self, x)]

    return block_class("EncoderBlock", branches, layers, **options)


@composition
def decoding(
    layers=decoder_layers,
    masks=lambda mask, memory_mask: (mask, memory_mask),
    recall=lambda self, memory: memory,
    look=lambda self, x, mask, *seen: self.self_attention(x, *seen, mask=mask),
    ask=lambda self, x, memory, mask: self.cross_attention(x, memory, mask=mask),
    feed=lambda self, x: self.feed_forward(x),
    **options,
):
    """A ``DecoderBlock`` made of decisions."""

    def branches(self, memory, mask, memory_mask):
        mask, memory_mask = masks(mask, memory_mask)
        memory = recall(self, memory)
        return [
            lambda x, *seen: look(self, x, mask, *seen),
            lambda x: ask(self, x, memory, memory_mask),
            lambda x: feed(self, x),
        ]

    return block_class("DecoderBlock", branches, layers, **options)


def causal(self, x):
    n = x.shape[-2]
    return torch.ones(n, n, dtype=torch.bool).tril()


def with_sizes(**changed):
    """Sizes of which some are others."""

    def sizes(d_model, n_heads, d_ff):
        own = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff}
        return tuple({**own, **{n: make(**own) for n, make in changed.items()}}.values())

    return {"sizes": sizes}


def library_norms(layers):
    """The layers, with PyTorch's norms in place of ours."""

    def made_of(d_model, n_heads, d_ff):
        own = layers(d_model, n_heads, d_ff)
        return {n: nn.LayerNorm(d_model) if "norm" in n else one for n, one in own.items()}

    return {"layers": made_of}


def one_norm(layers):
    """One norm under all names."""

    def made_of(d_model, n_heads, d_ff):
        own = layers(d_model, n_heads, d_ff)
        return {n: own["norm_1"] if "norm" in n else one for n, one in own.items()}

    return {"layers": made_of}


# --- usual mistakes: of both blocks ----------------------------------------------------------

SUM = "`x + self.dropout(branch)`"


ENCODER_BRANCHES = ("attention", "feed-forward")
DECODER_BRANCHES = ("self-attention", "cross-attention", "feed-forward")


def other_orders(branches: tuple[str, ...]) -> Iterator[Recipe]:
    """Yield a mistake for each wrong order of the branches, which says the order that was written.

    The norms go with their branches, or are taken in the order in which they are used.
    """
    for order in list(permutations(range(len(branches))))[1:]:
        written = ", ".join(branches[i] for i in order)
        by_use = {"norms": lambda names, o=order: [names[o.index(i)] for i in range(len(o))]}
        walk = {"walk": lambda x, steps, o=order: in_turn(x, [steps[i] for i in o])}
        yield (
            mistake(f"""the branches in another order: {written}
                You take the branches in the order {written}. It is {", ".join(branches)}.""")
            .by(**walk)
            .by(**walk, **by_use)
        )


def of_the_stream(layers) -> tuple[Recipe, ...]:
    """What goes wrong around the branches, whatever these are."""
    decoder = layers is decoder_layers
    places = range(3 if decoder else 2)
    reads = {
        "look" if decoder else "attend": read_dropped("self_attention" if decoder else "attention")
    }

    def in_one_place(ways):
        return [{"odd": lambda number, i=i: ways if number == i else None} for i in places]

    swaps = ([2, 1, 0], [1, 0, 2]) if layers is decoder_layers else ([1, 0],)
    norms = ([0, 2, 1], [0, 0, 1], [0, 0, 2], [0, 1, 1]) if layers is decoder_layers else ()
    return (
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, "
            "`self.norm_1 = …`."
        ),
        mistake("""pre-norm and post-norm swapped
            With pre_norm=True a branch reads norm(x), and the sum stays as it is. With
            pre_norm=False the branch reads x, and the sum is normalised. You do the other one.
        """).by(pick=lambda pre_norm: not pre_norm),
        mistake("""always pre-norm, or always post-norm
            Your block does the same whatever pre_norm says. Keep it in `__init__` and ask for it in
            `forward`.""")
        .by(pick=lambda pre_norm: True)
        .by(pick=lambda pre_norm: False),
        mistake("""the residual is missing
            A branch's output takes the place of x. It is to be added to what the branch read: x +
            branch(…), for every branch.""")
        .by(pre=norm_and_branch, post=branch_and_norm)
        .by(pre=norm_and_branch)
        .by(post=branch_and_norm)
        .by(*({"bare": lambda number, i=i: number == i} for i in places))
        .by(*in_one_place((norm_and_branch, after)))
        .by(*in_one_place((before, branch_and_norm))),
        mistake("""x += changes what was handed over
            `x += …` writes into the caller's x, which then holds other numbers, and gradients may
            fail. Write `x = x + …`, which makes a new tensor.""")
        .by(pre=lambda x, branch, norm, first: x.add_(branch(norm(x))))
        .by(post=lambda x, branch, norm, first: norm(x.add_(branch(x)))),
        mistake("""the residual begins behind the norm
            You normalise x and then add the branch to the normalised x. The stream itself is not
            normalised in pre-norm: x + branch(norm(x)), with the x from before the norm.
        """)
        .by(pre=behind_the_norm)
        .by(*in_one_place((behind_the_norm, after))),
        mistake("""a branch is added to itself
            You keep what the branch returns under the name of the stream, and then add the stream:
            it is the branch's output twice. Add what the branch *read*, x + branch(…), under a name
            that still has it.""")
        .by(pre=twice_after_norm, post=twice_before_norm)
        .by(pre=twice_after_norm)
        .by(post=twice_before_norm)
        .by(*in_one_place((twice_after_norm, twice_before_norm)))
        .by(*in_one_place((twice_after_norm, after)))
        .by(*in_one_place((before, twice_before_norm))),
        mistake("""the branch is normalised, not the sum
            In post-norm you normalise before you add: what the branch returns, x, or both x and
            what the branch reads. The norm comes after the addition: norm(x + branch(x)).""")
        .by(post=lambda x, branch, norm, first: x + norm(branch(x)))
        .by(post=lambda x, branch, norm, first: norm(x) + branch(x))
        .by(post=lambda x, branch, norm, first: norm(x) + branch(norm(x)))
        .by(*in_one_place((before, lambda x, branch, norm, first: x + norm(branch(x))))),
        mistake("""the norm behind the branch in pre-norm
            With pre_norm=True you normalise what a branch returns. What it reads is normalised: x +
            branch(norm(x)).""").by(pre=lambda x, branch, norm, first: x + norm(branch(x))),
        mistake("""every residual from the block's first input
            You add a later branch to the x that came into the block, and what earlier branches
            added is lost. Each is added to what it read, the x so far.""")
        .by(
            pre=from_the_first_input,
            post=normed_from_the_first_input,
        )
        .by(pre=from_the_first_input)
        .by(post=normed_from_the_first_input)
        .by(*in_one_place((from_the_first_input, normed_from_the_first_input))[1:])
        .by(*in_one_place((from_the_first_input, after))[1:])
        .by(*in_one_place((before, normed_from_the_first_input))[1:]),
        mistake("""not all that attention reads is normalised
            In pre-norm your norm falls on the queries alone, or leaves one of query, key and value
            out. Self-attention reads one thing, norm(x), for all three.""").by(
            *(
                {"odd": lambda number, s=step: None if number else (s, after)}
                for step in map(of_a_part_normed, (1, 0, 1, 0), (0, 1, 1, 1), (0, 1, 0, 0))
            )
        ),
        mistake("""a norm is missing
            You leave the norms out, or one of them. Each branch has its own: before it with
            pre_norm, after the sum without.""")
        .by(
            pre=lambda x, branch, norm, first: x + branch(x),
            post=lambda x, branch, norm, first: x + branch(x),
        )
        .by(pre=lambda x, branch, norm, first: x + branch(x))
        .by(post=lambda x, branch, norm, first: x + branch(x))
        .by(*({"unnormed": lambda number, i=i: number == i} for i in places)),
        mistake("""normalised twice
            You normalise before the branch and after the sum. A block does one of the two: pre_norm
            says which.""")
        .by(
            pre=normed_twice,
            post=normed_twice,
        )
        .by(pre=normed_twice)
        .by(post=normed_twice)
        .by(*in_one_place((normed_twice, normed_twice))),
        mistake("""a norm at the end
            You normalise once more before you return. The norm behind the last block belongs to the
            stack of blocks, not to a block.""")
        .by(finish=lambda self, x: self.norm_1(x))
        .by(finish=lambda self, x: self.norm_2(x))
        .by(finish=lambda self, x: F.layer_norm(x, x.shape[-1:]))
        .by(*(({"finish": lambda self, x: self.norm_3(x)},) if layers is decoder_layers else ())),
        mistake("""a norm at the wrong branch
            `norm_1` belongs to the first branch, `norm_2` to the second, and so on. You exchange
            them, or use one for all.""")
        .by(norms=lambda names: names[::-1])
        .by(norms=lambda names: [names[0]] * len(names))
        .by(norms=lambda names: [names[-1]] * len(names))
        .by(*({"norms": lambda names, o=o: [names[i] for i in o]} for o in (*norms, *swaps))),
        mistake("""one norm shared by all branches
            Your norms are one and the same layer under several names. Each branch needs one of its
            own: call `LayerNorm(d_model)` once for each.""").by(one_norm(layers)),
        mistake("""PyTorch's norm, with other names
            `nn.LayerNorm` calls its parameters weight and bias, and the check puts in gain and
            bias. Use `LayerNorm`, which is given above.""").by(library_norms(layers)),
        mistake("""branches side by side
            You compute branches side by side, from the same x, and add them all. Here they come one
            after the other: each reads what those before it have added.""")
        .by(walk=all_at_once)
        .by(walk=dropped_at_once, drop=lambda self, output: output)
        .by(
            *({"walk": lambda x, steps: steps[2](all_at_once(x, steps[:2]))},)
            if layers is decoder_layers
            else ()
        ),
        *other_orders(DECODER_BRANCHES if decoder else ENCODER_BRANCHES),
        mistake("""no feed-forward layer
            You have it and do not use it. Every token goes through it after attention, with a
            residual and a norm of its own.""").by(walk=lambda x, steps: in_turn(x, steps[:-1])),
        mistake("""d_ff is ignored
            Your hidden layer has the same width whatever d_ff says. Hand it on:
            `FeedForward(d_model, d_ff)`.""").by(with_sizes(d_ff=lambda d_ff, **_: None)),
        mistake("""another width where d_ff is left out
            Without d_ff the hidden layer is 4·d_model wide. `FeedForward` knows that: hand d_ff on
            as it is, also when it is None.""")
        .by(with_sizes(d_ff=lambda d_ff, d_model, **_: d_ff or d_model))
        .by(with_sizes(d_ff=lambda d_ff, d_model, **_: d_ff or 2 * d_model))
        .by(with_sizes(d_ff=lambda d_ff, **_: d_ff or 2048)),
        mistake("""n_heads is ignored
            Your attention has the same number of heads whatever n_heads says. Hand it on:
            `MultiHeadAttention(d_model, n_heads)`.""")
        .by(with_sizes(n_heads=lambda **_: 1))
        .by(with_sizes(n_heads=lambda d_model, **_: d_model)),
        mistake(f"""no dropout on what the branches return
            You use no dropout, or only on what a branch reads. In training every branch's output
            loses that share of its numbers before it is added: {SUM}, with an
            `nn.Dropout(dropout)`.""").by(drop=lambda self, output: output),
        mistake(f"""dropout on some of the branches
            One branch loses numbers and another does not. In training dropout falls on what every
            branch returns: {SUM} each time.""")
        .by(spared=lambda number: number > 0)
        .by(*({"spared": lambda number, i=i: number == i} for i in places))
        .by(*({"spared": lambda number, i=i: number != i} for i in places[1:])),
        mistake(f"""a second dropout inside a branch
            Numbers are dropped within a branch, too: of what it reads, or of its hidden units. Here
            dropout falls once on each branch, on what it returns: {SUM}.""")
        .by(feed=lambda self, x: self.feed_forward(dropped(self, x)))
        .by(feed=hidden_dropped)
        .by(**reads),
        mistake("""dropout stays on in eval()
            Your block is still random after `eval()`. `nn.Dropout` knows the mode; `F.dropout(x,
            p)` does not unless you tell it: `F.dropout(x, p, self.training)`.
        """).by(drop=lambda self, output: F.dropout(output, self.rate)),
        mistake(f"""dropout of the stream
            Your dropout falls on x itself, or on the sum. It belongs to the branch alone, before it
            is added: {SUM}. What is in the stream stays.""")
        .by(finish=dropped, drop=lambda self, output: output)
        .by(take=dropped, drop=lambda self, output: output)
        .by(finish=dropped)
        .by(take=dropped)
        .by(walk=sums_dropped, drop=lambda self, output: output)
        .by(
            drop=lambda self, output: output,
            walk=lambda x, steps: in_turn(
                x, [lambda y, s=s: dropped(s.func.__self__, s(y)) for s in steps]
            ),
        ),
        mistake("""dropout with the share that stays
            You keep the share `dropout` and drop the rest. `dropout` is the share that is set to 0;
            what stays is divided by 1 − dropout.
        """).by(drop=lambda self, output: F.dropout(output, 1 - self.rate, self.training)),
        mistake("""what stays is not scaled up
            You set numbers to 0 and leave the others as they are. They are divided by 1 − dropout,
            so that the expected value is that of eval().""").by(
            drop=lambda self, output: (
                output * (torch.rand_like(output) >= self.rate) if self.training else output
            )
        ),
    )


def of_the_mask(decision: str, attention: str, more) -> tuple[Recipe, ...]:
    """What goes wrong with the mask of a self-attention."""

    def call(self, *given, **named):
        return getattr(self, attention)(*given, **named)

    return (
        mistake(f"""the mask is ignored
            Your result is the same with and without the mask. Hand it on: `self.{attention}(x,
            mask=mask)`.""").by({decision: lambda self, x, mask: call(self, x)}),
        mistake("""the mask is handed over as the key
            `attention(x, mask)` takes the mask for the key, which is its second argument, and the
            third is the value. Say which it is: `mask=mask`.""")
        .by({decision: lambda self, x, mask: call(self, x, mask)})
        .by({decision: lambda self, x, mask: call(self, x, x, mask)}),
        mistake("""the mask is inverted
            You shut out what the mask allows. True means allowed, here as in chapter 9: hand it on
            as it is.""").by(
            {decision: lambda self, x, mask: call(self, x, mask=None if mask is None else ~mask)}
        ),
        mistake("""the mask is transposed
            You transpose the mask. It has a row for each query and a column for each key, as
            chapter 9 wants it: hand it on as it is.""").by(
            {decision: lambda self, x, mask: call(self, x, mask=None if mask is None else mask.mT)}
        ),
        mistake("""a causal mask of its own
            You hide later tokens without being asked. A block hides what `mask` hides, and nothing
            where there is none: the causal mask comes as an argument.""")
        .by(
            {
                decision: lambda self, x, mask: call(
                    self, x, mask=causal(self, x) if mask is None else mask
                )
            }
        )
        .by(
            {
                decision: lambda self, x, mask: call(
                    self, x, mask=causal(self, x) if mask is None else mask & causal(self, x)
                )
            }
        ),
        *more,
    )


# --- decisions: noam_schedule ----------------------------------------------------------------


def from_1_on(step):
    if not step >= 1:
        raise ValueError("steps count from 1")
    return step


@composition
def scheduling(
    start=from_1_on,
    roles=lambda step, warmup: (step, warmup),
    size=lambda d_model: d_model**-0.5,
    rise=lambda step, warmup: step * warmup**-1.5,
    fall=lambda step, warmup: step**-0.5,
    parts=lambda size, rise, fall: (size, rise, fall),
    join=lambda rise, fall, step, warmup: min(rise, fall),
    finish=lambda rate: rate,
):
    """A ``noam_schedule`` made of decisions."""

    def noam_schedule(step, d_model, warmup):
        step, warmup = roles(start(step), warmup)
        factor, *both = parts(size(d_model), rise(step, warmup), fall(step, warmup))
        return finish(factor * join(*both, step, warmup))

    return noam_schedule


def powers(exponent: float) -> dict:
    return {"size": lambda d_model: d_model**exponent}


HALVED = {
    "size": lambda d_model: d_model**-1 / 2,
    "rise": lambda step, warmup: step * warmup**-3 / 2,
    "fall": lambda step, warmup: step**-1 / 2,
}


def asserting(step):
    assert step >= 1, "steps count from 1"
    return step


SCHEDULE_BY_HAND = Case((1, 4, 4), note="d_model 4, warm-up 4: (1/2) · min(1, 1/8)")


def schedules(*steps: float):
    """Cases at these steps, as shares of a warm-up that is drawn."""

    def cases(rng: Rng) -> list[Case]:
        drawn = []
        for share in steps:
            warmup = int(rng.integers(40, 4000))
            step = max(1, round(share * warmup))
            drawn.append(Case((step, int(rng.integers(3, 800)), warmup)))
        return drawn

    return cases


def of_dropout(
    points: int, name: str, table: CaseTable, plain: Row, state: State, *last: str
) -> tuple[Criterion, Criterion]:
    """The criteria on a block's dropout: in training on each branch, after ``eval()`` on none.

    last: the layers that end the branches.
    """

    def rows(share: float, **more) -> list[Row]:
        return [plain.but(options={"dropout": share, **norm}, **more) for norm in ({}, POST)]

    nothing_added = table(
        *rows(
            0.5,
            zero=OUTPUTS,
            use=callers.call_module_in_training,
            note="in training, where the branches add nothing",
        )
    )
    in_evaluation = rows(0.3, use=callers.call_module_in_evaluation, note="after eval()")
    added = trained(name, state, last)
    return (
        Criterion("dropout on each branch, in training", points).on(
            lambda rng: [*added(rng), *nothing_added(rng)]
        ),
        table.criterion("no dropout in eval()", 1).on(*in_evaluation),
    )


# --- exercises -------------------------------------------------------------------------------

NORM = exercise(
    transformer.layer_norm,
    section="Chapter 12, “Keeping the rows at one size”",
    difficulty=1,
    minutes=10,
    forbids=("layer_norm",),
    criteria=(
        Criterion("each row at mean 0 and variance 1", 3).on(
            lambda rng: [
                NORM_BY_HAND,
                *NORM_CASES(
                    SEQUENCES,
                    row("d=5"),
                    row("d=7", batch=(7,), note="as many tokens as features"),
                    row("d=2", batch=(3,)),
                )(rng),
            ]
        ),
        Criterion("gain and bias, of which one or both may be left out", 2).on(
            lambda rng: [
                *NORM_CASES(
                    SEQUENCES.but(given=BOTH),
                    SEQUENCES.but(given=GAIN, note="no bias"),
                )(rng),
                bias_alone(rng, 5, 7),
            ]
        ),
        Criterion("eps inside the root", 2).on(
            lambda rng: [
                *NORM_CASES(
                    SEQUENCES.but(given={"eps": 0.1}, note="eps = 0.1"),
                    SEQUENCES.but(given={"eps": 1e-12}, factor=1e-3, note="eps = 1e-12"),
                    SEQUENCES.but(factor=0.003, note="entries near eps"),
                )(rng),
            ]
        ),
        NORM_CASES.criterion("batches", 1).on(*NORM_ROWS.batches),
        NORM_CASES.criterion("float32, large, small and equal entries, a gain or bias of 0", 1).on(
            *NORM_ROWS.numbers,
            row("d=1", batch=(3,), note="one feature: all become 0"),
            SEQUENCES.but(zero=("x",), note="rows of zeros"),
            Case((tensor([[3, 3, 3, 3]]),), note="a row without spread"),
            SEQUENCES.but(given=BOTH, zero=("gain",), note="a gain of 0"),
            SEQUENCES.but(given=BOTH, zero=("bias",), note="a bias of 0"),
            row("d=7", batch=(3,), given={"x": FAR_FROM_0}, note="rows far from 0"),
            NORM_ROWS.single.but(batch=(3,), given=BOTH, note="float32, with gain and bias"),
            once_more(NORM_BY_HAND),
        ),
        ALL_GIVEN.criterion("gradients reach x, gain and bias", 2).on(*GIVEN_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        norming,
        mistake("""unbiased variance
            You divide the sum of squares by d − 1, as `x.var(-1)` and `x.std(-1)` do. A norm
            divides by d: `x.var(-1, unbiased=False)`.""").by(average=unbiased),
        mistake("""the norm runs over the sequence
            You take mean and variance of a feature over the tokens, so a token's output depends on
            the others. Each row is normalised by itself: axis −1.""")
        .by(over(-2))
        .by(over(0))
        .by(over(1))
        .by(centre=over(-2)["centre"])
        .by(average=over(-2)["average"]),
        mistake("""one mean and variance for all rows
            You normalise the whole array at once. Every row has its own mean and variance: `dim=-1,
            keepdim=True`.""")
        .by(centre=of_all, average=of_all)
        .by(over(-2, -1))
        .by(centre=of_all)
        .by(average=of_all),
        mistake("""eps outside the root
            You add eps to the standard deviation. It is added to the variance, under the root:
            `(variance + eps).sqrt()`.""")
        .by(power=lambda variance, eps: variance.sqrt() + eps)
        .by(power=lambda variance, eps: variance.sqrt() + eps**0.5),
        mistake("""eps is not added to the variance
            You add the square of eps or its root, or take the larger of variance and eps. The root
            is that of their sum: `(variance + eps).sqrt()`.""")
        .by(power=lambda variance, eps: variance.clamp(min=eps).sqrt())
        .by(small=lambda eps: eps**2)
        .by(small=lambda eps: eps**0.5),
        mistake("""no eps
            You leave eps out. A row whose entries are all equal has variance 0, and 0/0 is NaN.
        """).by(small=lambda eps: 0),
        mistake("""another eps
            You add a fixed number where the argument `eps` belongs.""")
        .by(outside(1e-5))
        .by_any(outside, (1e-12, 1e-8, 1e-6, 1e-5, 1e-3)),
        mistake("""divided by the variance
            You divide by the variance itself. It is its root, the standard deviation, that has the
            unit of x.""").by(power=lambda variance, eps: variance + eps),
        mistake("""multiplied by the standard deviation
            You multiply by the root where you should divide: rows that are large are to shrink.
        """).by(divide=lambda centred, size: centred * size),
        mistake("""the mean is not subtracted
            The mean is left in x, or in what you divide by, or in both, which is another norm,
            RMSNorm. Subtract each row's mean first, and use what is left in both places.""")
        .by(centre=lambda x: 0)
        .by(centre=lambda x: 0, around=lambda x, centred: x - mean(x))
        .by(around=lambda x, centred: x),
        mistake("""the mean is taken off behind the division
            You divide x, and take the mean that it had before off the quotient. Take it off first:
            (x − mean) / √(variance + eps).
        """).by(
            centre=lambda x: 0,
            around=lambda x, centred: x - mean(x),
            back=lambda normed, x: normed - mean(x),
        ),
        mistake("""the mean is subtracted, and nothing divided
            Your rows have mean 0 and the size that they came with. Divide by the standard
            deviation.""").by(divide=lambda centred, size: centred),
        mistake("""rows of length 1
            You divide by the length of a row. By its standard deviation the entries get size 1, and
            the row length √d.""").by(average=lambda squares: squares.sum(-1, keepdim=True)),
        mistake("""the mean absolute deviation
            You divide by the mean distance from the mean. The standard deviation is the root of the
            mean *square*.""")
        .by(
            around=lambda x, centred: centred.abs().sqrt(),
            power=lambda deviation, eps: deviation + eps,
        )
        .by(
            around=lambda x, centred: centred.abs().sqrt(),
            power=lambda deviation, eps: (deviation.square() + eps).sqrt(),
        ),
        mistake("""gain and bias exchanged
            You multiply by the bias and add the gain. It is gain · (…) + bias.
        """).by(roles=lambda gain, bias: (bias, gain)),
        mistake("""gain or bias is left out
            You do not use gain, or bias, or neither. Where they are given: gain · (…) + bias.""")
        .by(scale=lambda x, gain, bias: x)
        .by(shift=lambda x, gain, bias: x)
        .by(scale=lambda x, gain, bias: x, shift=lambda x, gain, bias: x),
        mistake("""1 + gain
            You multiply by 1 + gain, as models do whose gain begins at 0. Here it begins at 1:
            multiply by gain.
        """).by(scale=lambda x, gain, bias: x if gain is None else (1 + gain) * x),
        mistake("""the bias is scaled too
            You add the bias before you multiply by gain. It comes last: gain · (…) + bias.""").by(
            scale=lambda x, gain, bias: (
                (x if bias is None else x + bias) * (1 if gain is None else gain)
            ),
            shift=lambda x, gain, bias: x,
        ),
        mistake("""bias only where there is a gain
            You add the bias only if a gain is given too. Each may be left out by itself: ask for
            each.""")
        .by(shift=lambda x, gain, bias: x if gain is None or bias is None else x + bias)
        .by(
            scale=lambda x, gain, bias: x if gain is None or bias is None else gain * x,
            shift=lambda x, gain, bias: x if gain is None or bias is None else x + bias,
        ),
        mistake("""a tensor taken for True or False
            `if gain:` and `gain or 1` ask a tensor whether it is true, which torch refuses for more
            than one number. Ask `if gain is None`.""")
        .by(scale=lambda x, gain, bias: (gain or 1) * x)
        .by(shift=lambda x, gain, bias: x + (bias or 0)),
        mistake("""the means have lost their axis
            `x.mean(-1)` drops the axis it averages over, and the means then line up with the
            features, if they fit at all. Keep it: `x.mean(-1, keepdim=True)`.""")
        .by(centre=lambda x: x.mean(-1), average=lambda x: x.mean(-1))
        .by(centre=lambda x: x.mean(-1))
        .by(average=lambda x: x.mean(-1)),
        mistake("""the variance as a difference of squares
            The mean of the squares less the square of the mean is the variance on paper. In rows
            far from 0 both are large, and the digits that tell them apart are lost: subtract the
            mean first.""").by(spread=lambda x, variance: mean(x.square()) - mean(x).square()),
        mistake("""computed in float32
            You turn x into float32, which keeps seven digits of float64. Stay in the dtype of
            x.""")
        .by(read=lambda x: x.float())
        .by(read=lambda x: x.float(), back=lambda normed, x: normed.to(x.dtype)),
        mistake("""no gradient through mean and variance
            The numbers are right, but you detach mean or variance, as if they were constants. They
            move with x, and the gradient has to know.""")
        .by(power=lambda variance, eps: (variance.detach() + eps).sqrt())
        .by(
            centre=lambda x: mean(x).detach(),
            power=lambda variance, eps: (variance.detach() + eps).sqrt(),
        )
        .by(centre=lambda x: mean(x).detach()),
    ),
)

FEED_FORWARD = exercise(
    transformer.FeedForward,
    section="Chapter 12, “Each token by itself”",
    difficulty=1,
    minutes=10,
    criteria=(
        FEED_CASES.criterion("W_1, the activation, W_2, for each token by itself", 3).on(
            FEED_BY_HAND,
            FEED,
            row("n=5 d_model=5 d_ff=5", note="every axis of length 5"),
            row("n=7 d_model=3 d_ff=7", note="as many tokens as hidden units"),
            row("n=7 d_model=11 d_ff=3", then="n=2", note="a narrow hidden layer"),
            FEED.but(then={}, note=OTHER_NUMBERS),
        ),
        FEED_CASES.criterion("the hidden layer has 4·d_model units unless d_ff is given", 1).on(
            row("n=7 d_model=5"),
            row("n=3 d_model=3", batch=(2,)),
        ),
        FEED_CASES.criterion("another activation", 1).on(
            activated(FEED, "relu"),
            activated(row("n=3 d_model=7", batch=(2,)), "silu"),
        ),
        FEED_CASES.criterion("bias=False leaves both biases out", 1).on(
            FEED.but(options={"bias": False}),
            row("n=3 d_model=4", options={"bias": False}),
        ),
        FEED_CASES.criterion("batches", 1).on(*FEED_ROWS.batches),
        FEED_CASES.criterion("one token; float32, large and small entries, weights of 0", 1).on(
            row("n=1 d_model=3 d_ff=7", note="one token"),
            *FEED_ROWS.numbers,
            *(
                FEED.but(zero=zero, note="some weights are 0")
                for zero in (("W_1.weight", "W_2.bias"), ("W_1.bias",), ("W_2.weight",))
            ),
        ),
        FEED_CASES.criterion("gradients reach x and every weight", 1).on(*FEED_ROWS.gradients),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        feeding,
        mistakes.NO_SUPER_INIT,
        mistakes.LAYERS_HIDDEN.said(
            "Your module has no parameters. Layers in a plain list or dict, or made anew in "
            "`forward`, are not found: assign each to an attribute in `__init__`, `self.W_1 = …`."
        ),
        mistake("""the activation is missing
            W_2 follows straight on W_1, and two linear layers are one. The activation stands
            between them.""").by(bend=lambda self, hidden: hidden),
        mistake("""ReLU in place of GELU
            Unless another activation is given it is the GELU, `F.gelu`. You use the ReLU, as the
            paper of 2017 did.""").by(another_activation(F.relu)),
        mistake("""the GELU's tanh form
            You use an approximation of the GELU: by tanh, as GPT-2 does, which is off by up to
            0.0005, or by x·σ(1.702x), off by up to 0.02. Here it is the exact one, x·Φ(x):
            `F.gelu(x)`.""")
        .by(another_activation(lambda x: F.gelu(x, approximate="tanh")))
        .by(another_activation(lambda x: x * (1.702 * x).sigmoid())),
        mistake("""another function in place of GELU
            Unless another activation is given it is the GELU, x·Φ(x): `F.gelu`.""")
        .by(another_activation(torch.tanh))
        .by(*map(another_activation, (torch.sigmoid, F.silu, F.elu, F.softplus, F.leaky_relu))),
        mistake("""the argument activation is ignored
            Your layer bends by the GELU whatever `activation` says. Keep the function in `__init__`
            and call it in `forward`.""").by(keep=lambda activation, default: default),
        mistake("""the activation is called in `__init__`
            You take `activation` for a class and call it, `activation()`. It is a function from
            tensors to tensors: keep it as it is, and call it in `forward`.
        """).by(keep=lambda activation, default: activation() if activation else default),
        mistake("""the activation in the wrong place
            It stands between the two layers and nowhere else: `W_2(activation(W_1(x)))`. What comes
            out of W_2, and what goes into W_1, has either sign.""")
        .by(
            bend=lambda self, hidden: hidden, finish=lambda self, output, x: self.activation(output)
        )
        .by(finish=lambda self, output, x: self.activation(output))
        .by(first=lambda self, x: self.W_1(self.activation(x)), bend=lambda self, hidden: hidden)
        .by(first=lambda self, x: self.W_1(self.activation(x))),
        mistake("""x is added on top
            You add x to the output, as the block around this layer will. Here it is W_2 of the
            hidden units and nothing else.""").by(finish=lambda self, output, x: x + output),
        mistake("""a norm inside
            You normalise, before the layers or after them. The norms belong to the block.""")
        .by(take=lambda x: F.layer_norm(x, x.shape[-1:]))
        .by(finish=lambda self, output, x: F.layer_norm(output, output.shape[-1:])),
        mistake("""d_ff is ignored
            Your hidden layer has the same width whatever d_ff says. 4·d_model is the width where
            none is given.""")
        .by(width=lambda d_model, d_ff: 4 * d_model)
        .by(width=lambda d_model, d_ff: d_model),
        mistake("""another width where d_ff is left out
            Unless d_ff is given, the hidden layer has 4·d_model units.""")
        .by(times_d_model(1))
        .by(width=lambda d_model, d_ff: 2048 if d_ff is None else d_ff)
        .by_any(times_d_model, (1, 2, 3, 8)),
        mistake("""d_ff is taken for a factor
            You make d_ff · d_model hidden units. d_ff is their number.
        """).by(width=lambda d_model, d_ff: d_model * (4 if d_ff is None else d_ff)),
        mistake("""W_1 and W_2 exchanged
            W_1 comes first and widens, from d_model to d_ff; W_2 brings the token back.""").by(
            layers=lambda d, d_ff, bias: {
                "W_1": nn.Linear(d_ff, d, bias=bias),
                "W_2": nn.Linear(d, d_ff, bias=bias),
            },
            first=lambda self, x: self.W_2(x),
            second=lambda self, hidden: self.W_1(hidden),
        ),
        mistake("""W_2 does not lead back
            Your W_2 maps d_ff to d_ff, or W_1 maps d_model to d_model. The first goes from d_model
            to d_ff, the second from d_ff back to d_model.""")
        .by(
            layers=lambda d, d_ff, bias: {
                "W_1": nn.Linear(d, d_ff, bias=bias),
                "W_2": nn.Linear(d_ff, d_ff, bias=bias),
            }
        )
        .by(
            layers=lambda d, d_ff, bias: {
                "W_1": nn.Linear(d, d, bias=bias),
                "W_2": nn.Linear(d, d_ff, bias=bias),
            }
        ),
        mistake("""bias is not handed on to both layers
            A layer has a bias with `bias=False`, or none with `bias=True`, the default. Both go by
            it: `nn.Linear(…, bias=bias)`.""")
        .by(biased(True, True))
        .by(biased(False, False))
        .by(biased(None, True))
        .by(biased(True, None))
        .by(biased(None, False))
        .by(biased(False, None)),
        mistake("""the biases are there and not used
            Your layers have biases, but you multiply by their weights alone. Call the layer,
            `self.W_1(x)`, which adds its bias too.""")
        .by(first=lambda self, x: x @ self.W_1.weight.mT)
        .by(second=lambda self, hidden: hidden @ self.W_2.weight.mT)
        .by(
            first=lambda self, x: x @ self.W_1.weight.mT,
            second=lambda self, hidden: hidden @ self.W_2.weight.mT,
        ),
        mistake("""the layer works along the sequence
            You turn x around, so that W_1 mixes tokens. It mixes the features of each token:
            `self.W_1(x)` works on the last axis.
        """).by(take=lambda x: x.mT, finish=lambda self, output, x: output.mT),
        mistake("""the hidden units are shared out
            You take a softmax of the hidden units. A feed-forward layer bends each unit by
            itself.""").by(bend=lambda self, hidden: hidden.softmax(-1)),
    ),
)

ENCODER = exercise(
    transformer.EncoderBlock,
    section="Chapter 12, “The block”",
    difficulty=3,
    minutes=30,
    forbids=("multi_head_attention_forward",),
    criteria=(
        ENCODER_CASES.criterion("pre-norm: x + branch(norm(x)), twice", 3).on(
            ONE,
            row("n=12 d_model=12 h=3 d_ff=12", note="n, d_model and d_ff are the same"),
            row("n=5 d_model=32 h=2 d_ff=3", then="n=3"),
            ONE.but(then={}, note=OTHER_NUMBERS),
            ONE.but(options={"pre_norm": True}, note="pre_norm=True is given"),
        ),
        ENCODER_CASES.criterion("post-norm: norm(x + branch(x)), twice", 3).on(
            ONE.but(options=POST),
            row("n=5 d_model=16 h=4 d_ff=6", options=POST, batch=(2,), note="a batch of 2"),
        ),
        ENCODER_CASES.criterion("the hidden layer has 4·d_model units unless d_ff is given", 1).on(
            row("n=5 d_model=8 h=2"),
            row("n=3 d_model=4 h=4", options=POST),
        ),
        ENCODER_CASES.criterion("a mask goes to the attention", 2).on(
            ONE.but(given={"mask": hole("n n")}, note="(n, n)"),
            ONE.but(given={"mask": hole("n n")}, options=POST, note="(n, n), post-norm"),
            ONE.but(batch=(2,), given={"mask": hole("... n n")}, note="(b, n, n)"),
            ONE.but(batch=(3,), given={"mask": hole("... n n")}, note="(b, n, n), b = h"),
            ONE.but("n=5", batch=(5,), given={"mask": hole("n n")}, note=ONE_MASK),
            ONE.but(batch=(2,), given={"mask": hole("... h n n")}, note="(b, h, n, n)"),
        ),
        *of_dropout(
            2,
            "EncoderBlock",
            ENCODER_CASES,
            ONE,
            ENCODER_STATE,
            "attention.W_o",
            "feed_forward.W_2",
        ),
        ENCODER_CASES.criterion("batches", 1).on(*ENCODER_ROWS.batches),
        ENCODER_CASES.criterion(RARE, 1).on(
            row("n=3 d_model=4 h=1 d_ff=7", note="one head"),
            row("n=3 d_model=4 h=1 d_ff=7", options=POST, note="one head"),
            row("n=1 d_model=8 h=2 d_ff=5", note="one token"),
            ONE.but(options=POST, zero=OUTPUTS, note="the branches add nothing"),
            *(
                ONE.but(zero=zero, note="some weights are 0")
                for zero in weights_of_0(ENCODER_STATE)
            ),
            ENCODER_ROWS.single.but("d_model=21", note="float32, d_head = 7"),
            *ENCODER_ROWS.extreme,
            ENCODER_ROWS.extreme[0].but(options=POST, note="x in the millions, post-norm"),
        ),
        ENCODER_CASES.criterion("gradients reach x and every weight", 1).on(
            *ENCODER_ROWS.gradients,
            ONE.but(options=POST, use=callers.call_module_with_gradients, note="post-norm"),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        encoding,
        *of_the_stream(encoder_layers),
        *of_the_mask("attend", "attention", ()),
        mistake("""no attention
            You have it and do not use it: your tokens never meet. It is the first branch.
        """).by(walk=lambda x, steps: in_turn(x, steps[1:])),
    ),
)

ONLY_SELF = {"mask": hole("m m"), "memory_mask": None}
ONLY_MEMORY = {"mask": None, "memory_mask": hole("m n")}
SQUARE = row("m=5 n=5 d_model=12 h=3 d_ff=11", note="as many tokens in the memory")

DECODER = exercise(
    transformer.DecoderBlock,
    section="Chapter 12, “A block that reads another sequence”",
    difficulty=3,
    minutes=25,
    forbids=("multi_head_attention_forward",),
    criteria=(
        DECODER_CASES.criterion(
            "pre-norm: self-attention, attention to the memory, feed-forward", 3
        ).on(
            TWO,
            SQUARE,
            row("m=5 n=3 d_model=32 h=2 d_ff=3", then="m=3 n=2"),
            TWO.but(then={}, note=OTHER_NUMBERS),
            TWO.but(options={"pre_norm": True}, note="pre_norm=True is given"),
        ),
        DECODER_CASES.criterion("post-norm", 2).on(
            TWO.but(options=POST),
            SQUARE.but(options=POST),
            row("m=5 n=3 d_model=16 h=4 d_ff=6", options=POST, batch=(2,), note="a batch of 2"),
        ),
        DECODER_CASES.criterion("the hidden layer has 4·d_model units unless d_ff is given", 1).on(
            row("m=5 n=3 d_model=8 h=2"),
        ),
        DECODER_CASES.criterion("mask for the own sequence, memory_mask for the memory", 3).on(
            TWO.but(given=ONLY_SELF, note="mask alone"),
            TWO.but(given=ONLY_MEMORY, note="memory_mask alone"),
            SQUARE.but(given=ONLY_SELF, note="mask alone, m = n"),
            TWO.but(given=ONLY_SELF | {"memory_mask": hole("1 n")}, note="both"),
            SQUARE.but(given=ONLY_SELF | {"memory_mask": hole("m n")}, note="both, m = n"),
            SQUARE.but(
                given=ONLY_SELF | {"memory_mask": hole("m n")},
                options=POST,
                note="both, m = n, post-norm",
            ),
            TWO.but(
                batch=(2,),
                given={"mask": hole("... m m"), "memory_mask": hole("... 1 n")},
                note="of its own for each sequence",
            ),
            TWO.but(
                "m=5",
                batch=(5,),
                given={"mask": hole("m m"), "memory_mask": hole("m n")},
                note=ONE_MASK,
            ),
        ),
        *of_dropout(
            1,
            "DecoderBlock",
            DECODER_CASES,
            TWO,
            DECODER_STATE,
            "self_attention.W_o",
            "cross_attention.W_o",
            "feed_forward.W_2",
        ),
        DECODER_CASES.criterion("batches", 1).on(*DECODER_ROWS.batches),
        DECODER_CASES.criterion(RARE, 1).on(
            row("m=3 n=5 d_model=4 h=1 d_ff=7", note="one head"),
            row("m=1 n=7 d_model=8 h=2 d_ff=5", note="one token"),
            row("m=7 n=1 d_model=8 h=2 d_ff=5", note="a memory of one token"),
            TWO.but(options=POST, zero=OUTPUTS, note="the branches add nothing"),
            *(
                TWO.but(zero=zero, note="some weights are 0")
                for zero in weights_of_0(DECODER_STATE)
            ),
            DECODER_ROWS.single.but("d_model=21", note="float32, d_head = 7"),
            *DECODER_ROWS.extreme,
            DECODER_ROWS.extreme[0].but(options=POST, note="x in the millions, post-norm"),
        ),
        DECODER_CASES.criterion("gradients reach x, memory and every weight", 1).on(
            *DECODER_ROWS.gradients
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        decoding,
        *of_the_stream(decoder_layers),
        *of_the_mask("look", "self_attention", ()),
        mistake("""the memory is normalised
            You normalise the memory before it is read. It comes from an encoder that has its own
            last norm, and is read as it comes: only x goes through `norm_2`.""")
        .by(recall=lambda self, memory: self.norm_2(memory))
        .by(recall=lambda self, memory: self.norm_1(memory))
        .by(recall=lambda self, memory: self.norm_3(memory))
        .by(recall=lambda self, memory: self.norm_2(memory) if self.pre_norm else memory),
        mistake("""keys and values from x
            Your second attention asks x itself. Queries come from x, keys and values from the
            memory: `self.cross_attention(x, memory, …)`.""")
        .by(ask=lambda self, x, memory, mask: self.cross_attention(x, mask=None))
        .by(ask=lambda self, x, memory, mask: self.cross_attention(x, memory, x, mask=mask))
        .by(ask=lambda self, x, memory, mask: self.cross_attention(x, x, memory, mask=mask)),
        mistake("""the memory asks
            Your queries come from the memory, so the result has its length. x asks, the memory
            answers: `self.cross_attention(x, memory, …)`.""")
        .by(ask=lambda self, x, memory, mask: self.cross_attention(memory, x))
        .by(ask=lambda self, x, memory, mask: self.cross_attention(memory, x, mask=mask))
        .by(
            ask=lambda self, x, memory, mask: self.cross_attention(
                memory, x, mask=None if mask is None else mask.mT
            )
        ),
        mistake("""the masks are exchanged
            `mask` says which tokens of x each may see and belongs to the self-attention,
            `memory_mask` to the attention to the memory.
        """).by(masks=lambda mask, memory_mask: (memory_mask, mask)),
        mistake("""one mask for both attentions
            You use `mask`, or `memory_mask`, in both attentions. Each has its own.""")
        .by(masks=lambda mask, memory_mask: (mask, mask))
        .by(masks=lambda mask, memory_mask: (memory_mask, memory_mask)),
        mistake("""memory_mask is ignored
            Your attention to the memory sees all of it. Hand the mask on: `self.cross_attention(x,
            memory, mask=memory_mask)`.""").by(masks=lambda mask, memory_mask: (mask, None)),
        mistake("""memory_mask is inverted
            You shut out what memory_mask allows. True means allowed: hand it on as it is.""").by(
            masks=lambda mask, memory_mask: (
                mask,
                None if memory_mask is None else ~memory_mask,
            )
        ),
        mistake("""the attentions are exchanged
            x looks at itself with `self_attention` and at the memory with `cross_attention`. You
            use the one for the other.""")
        .by(
            look=lambda self, x, mask: self.cross_attention(x, mask=mask),
            ask=lambda self, x, memory, mask: self.self_attention(x, memory, mask=mask),
        )
        .by(look=lambda self, x, mask: self.cross_attention(x, mask=mask))
        .by(ask=lambda self, x, memory, mask: self.self_attention(x, memory, mask=mask)),
        mistake("""an attention is missing
            x is to look at itself first and at the memory then. You leave one of the two out.""")
        .by(walk=lambda x, steps: in_turn(x, steps[::2]))
        .by(walk=lambda x, steps: in_turn(x, steps[1:])),
    ),
)

SCHEDULE = exercise(
    transformer.noam_schedule,
    section="Chapter 12, “Where the norm stands”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("rises in proportion to the step", 2).on(
            lambda rng: [
                SCHEDULE_BY_HAND,
                *schedules(0.1, 0.5, 0.9)(rng),
                Case((1, 512, 4000), note="the first step"),
                Case((2, 512, 4000), note="the second step"),
            ]
        ),
        Criterion("has its peak at step warmup", 1).on(
            lambda rng: [*schedules(1, 1)(rng), Case((1, 16, 1), note="a warm-up of 1")]
        ),
        Criterion("then falls as 1/√step", 2).on(
            lambda rng: [*schedules(1.2, 3, 50)(rng), once_more(SCHEDULE_BY_HAND)]
        ),
        Criterion("a step below 1 is refused", 1).on(
            lambda rng: [
                Case((0, 64, 100), note="step 0", raises=ValueError),
                Case((-3, 64, 100), note="step −3", raises=ValueError),
            ]
        ),
    ),
    mistakes=made(
        scheduling,
        mistake("""a step below 1 is not refused
            A step below 1 does not raise ValueError (an `assert` raises AssertionError). Steps
            count from 1: test it and `raise ValueError(…)`.""")
        .by(start=lambda step: step, fall=lambda step, warmup: max(step, 1) ** -0.5)
        .by(start=lambda step: step)
        .by(start=lambda step: max(step, 1))
        .by(start=asserting)
        .by(start=lambda step: from_1_on(step or 1))
        .by(start=lambda step: from_1_on(abs(step))),
        mistake("""the first step is refused
            Step 1 is the first one and allowed. Only what lies below it is refused.
        """).by(start=lambda step: from_1_on(step - 1) + 1),
        mistake("""steps counted from 0
            You add 1 to the step, or take 1 off. Steps count from 1, and the first is 1.""")
        .by(roles=lambda step, warmup: (step + 1, warmup))
        .by(roles=lambda step, warmup: (max(step - 1, 1e-9), warmup)),
        mistake("""the larger of the two
            You take the maximum, or the fall before step `warmup` and the rise after it. Of the two
            the smaller one counts.""")
        .by(join=lambda rise, fall, step, warmup: max(rise, fall))
        .by(join=lambda rise, fall, step, warmup: fall if step < warmup else rise),
        mistake("""rise and fall added or multiplied
            You add the two, or multiply them. The smaller of the two counts: `min(…)`.""")
        .by(join=lambda rise, fall, step, warmup: rise + fall)
        .by(join=lambda rise, fall, step, warmup: rise * fall),
        mistake("""no warm-up
            Your rate falls from the first step on. Until step `warmup` it rises: step ·
            warmup^(−3/2).""").by(join=lambda rise, fall, step, warmup: fall),
        mistake("""it never falls
            Your rate goes on rising, or stays at its peak. After step `warmup` it falls as
            step^(−1/2).""")
        .by(join=lambda rise, fall, step, warmup: rise)
        .by(join=lambda rise, fall, step, warmup: min(rise, warmup**-0.5)),
        mistake("""exponents without their brackets
            `step**-1/2` is (1/step)/2, and `warmup**-3/2` is warmup^(−3), halved: the power binds
            first. Put exponents in brackets, `step**(-1/2)`, or write `step**-0.5`.""")
        .by(HALVED)
        .by(HALVED | {"size": lambda d_model: d_model**-0.5})
        .by(*({name: change} for name, change in HALVED.items())),
        mistake("""another power of warmup
            The rise is step · warmup^(−3/2), so that it meets the fall at step `warmup`. You have
            another power of warmup there.""")
        .by(rise=lambda step, warmup: step / warmup)
        .by_any(
            lambda power: {"rise": lambda step, warmup: step * warmup**power},
            (-0.5, -1.0, -2.0, -0.75, -1.25),
        ),
        mistake("""another power of d_model
            The factor in front is d_model^(−1/2), one over its root.""")
        .by(powers(-1))
        .by_any(powers, (-1.0, 0.5, 0.0, -0.25, -1.5, 1.0)),
        mistake("""it falls at another pace
            After the warm-up the rate falls as one over the *root* of the step.""")
        .by(fall=lambda step, warmup: warmup**0.5 / step)
        .by(fall=lambda step, warmup: 1 / step)
        .by(fall=lambda step, warmup: warmup**-0.5 * max(0, 2 - step / warmup))
        .by(fall=lambda step, warmup: step**-0.25),
        mistake("""the fall counts from the end of the warm-up
            You count the steps of the fall from `warmup` on. The same step stands in both parts:
            step^(−1/2).""")
        .by(fall=lambda step, warmup: max(step - warmup, 1) ** -0.5)
        .by(fall=lambda step, warmup: (step - warmup + 1) ** -0.5 if step >= warmup else 1.0),
        mistake("""step and warmup exchanged
            You use the one for the other, everywhere or in the rise. The signature is (step,
            d_model, warmup), and the rise is step · warmup^(−3/2).""")
        .by(roles=lambda step, warmup: (warmup, step))
        .by(rise=lambda step, warmup: warmup * step**-1.5),
        mistake("""d_model in one of the two parts
            d_model^(−1/2) stands before the minimum and counts for rise and fall. You multiply one
            of the two by it.""")
        .by(parts=lambda size, rise, fall: (1, rise, size * fall))
        .by(parts=lambda size, rise, fall: (1, size * rise, fall)),
        mistake("""a peak of 1
            You scale the schedule so that its peak is 1, or d_model^(−1/2). Its peak is (d_model ·
            warmup)^(−1/2).""")
        .by(
            size=lambda d_model: 1,
            rise=lambda step, warmup: step / warmup,
            fall=lambda step, warmup: (warmup / step) ** 0.5,
        )
        .by(
            rise=lambda step, warmup: step / warmup,
            fall=lambda step, warmup: (warmup / step) ** 0.5,
        ),
        mistake("""rounded on the way
            You divide with `//` or round. The rates are small numbers, and whole numbers are 0.""")
        .by(rise=lambda step, warmup: (step // warmup) * warmup**-0.5)
        .by(finish=int)
        .by(finish=lambda rate: round(rate, 4))
        .by(finish=lambda rate: round(rate, 6)),
    ),
)

EXERCISES = (NORM, FEED_FORWARD, ENCODER, DECODER, SCHEDULE)

VARIANTS = (
    columns(
        {
            "EncoderBlock": with_columns("x", methods=("forward",)),
            "DecoderBlock": with_columns("x", "memory", methods=("forward",)),
        },
        """
            A token is a row. Where → A token is a column in exercises 3 and 4. Where
            `forward(x, mask=None)` takes `(..., n, d_model)` and returns
            → `forward(x, mask=None)` takes `(..., d_model, n)` and returns
            Expect `(torch.Size([2, 5, 12]), 1884)` → Expect `(torch.Size([2, 12, 5]), 1884)`
            Expect `(torch.Size([2, 5, 12]), 2532)` → Expect `(torch.Size([2, 12, 5]), 2532)`
            block(torch.ones(2, 5, 12)).shape → block(torch.ones(2, 12, 5)).shape
            block(torch.ones(2, 5, 12), torch.ones(2, 7, 12)).shape
            → block(torch.ones(2, 12, 5), torch.ones(2, 12, 7)).shape
            x `(..., m, d_model)`, memory `(..., n, d_model)`
            → x `(..., d_model, m)`, memory `(..., d_model, n)`
            returns `(..., m, d_model)` → returns `(..., d_model, m)`
        """,
    ),
    forbidden(
        {
            "EncoderBlock": masked("forward"),
            "DecoderBlock": Adapter(
                {"mask": NEGATED, "memory_mask": NEGATED},
                methods=("forward",),
                drops=("the mask is inverted", "memory_mask is inverted"),
            ),
        },
        """
            and goes to the attention as it is → while the attention wants the opposite
            the same with the feed-forward layer.
            → the same with the feed-forward layer. Where there is no mask, `mask` is None and stays
                so.
            mask=memory_mask) → mask=~memory_mask)
            mask=mask) → mask=~mask)
            Say which it is: `mask=mask` → Say which it is: `mask=~mask`
        """,
        explanation="Your answer takes True for allowed, as the book and its published answers do. "
        "In this assignment a mask is True where attention is forbidden, and the attention that "
        "you call wants True for allowed: hand `~mask` on, where there is a mask.",
    ),
)
