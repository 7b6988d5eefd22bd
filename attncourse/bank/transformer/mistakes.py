"""Decisions and mistakes that several of the chapter's exercises share."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import torch
from torch import nn
from torch.nn import functional as F

from attncourse import transformer
from attncourse.bank.transformer.cases import OUTPUT_PARAMETERS, POST_NORM, dropout_cases
from attncourse.checks import callers
from attncourse.checks.exercise import Criterion
from attncourse.checks.writing import decisions, mistakes
from attncourse.checks.writing.cases import CaseTable, Row
from attncourse.checks.writing.modules import State
from attncourse.checks.writing.recipes import Recipe, Way, mistake
from attncourse.multihead import MultiHeadAttention


def norm_before_branch(x, branch, norm, first):
    return x + branch(norm(x))


def norm_after_sum(x, branch, norm, first):
    return norm(x + branch(x))


def branch_of_normed(x, branch, norm, first):
    return branch(norm(x))


def norm_of_branch(x, branch, norm, first):
    return norm(branch(x))


def add_to_normed(x, branch, norm, first):
    return norm(x) + branch(norm(x))


def twice_branch_of_normed(x, branch, norm, first):
    return 2 * branch(norm(x))


def norm_of_twice_branch(x, branch, norm, first):
    return norm(2 * branch(x))


def run_in_turn(x, steps):
    for step in steps:
        x = step(x)
    return x


def run_side_by_side(x, steps):
    return x + sum(step(x) - x for step in steps)


def drop_sum_of_branches(x, steps):
    """Return the sum of branches side by side, with one dropout on it."""
    return x + drop_output(steps[0].func.__self__, run_side_by_side(x, steps) - x)


def run_last_two_side_by_side(x, steps):
    """Return the stream after a last branch that reads what the one before it read."""
    read = run_in_turn(x, steps[:-2])
    block, (_, branch, norm, _) = steps[-1].func.__self__, steps[-1].args
    stream = steps[-2](read)
    return stream + branch(norm(read)) if block.pre_norm else norm(stream + branch(read))


def read_normed_first_input(x, branch, norm, first):
    return x + branch(norm(first))


def read_first_input(x, branch, norm, first):
    return norm(x + branch(first))


def add_to_first_input(x, branch, norm, first):
    return first + branch(norm(x))


def norm_sum_with_first_input(x, branch, norm, first):
    return norm(first + branch(x))


def norm_before_and_after(x, branch, norm, first):
    return norm(x + branch(norm(x)))


def norm_some_inputs(query, key, value):
    """Return a pre-norm step in which the norm falls on some of attention's inputs only."""

    def step(x, branch, norm, first):
        read = [norm(x) if part else x for part in (query, key, value)]
        return x + branch(*read)

    return step


def drop_output(self, output):
    return F.dropout(output, self.rate, self.training)


def drop_hidden_units(self, x):
    """Return the feed-forward layer's output, with dropout on its hidden units."""
    layer = self.feed_forward
    return layer.W_2(drop_output(self, layer.activation(layer.W_1(x))))


def drop_attention_input(attention):
    """Return self-attention with dropout on what it reads."""
    return lambda self, x, mask: getattr(self, attention)(drop_output(self, x), mask=mask)


def drop_every_sum(x, steps):
    """Return the stream with dropout on every sum, in post-norm before its norm."""
    for step in steps:
        block, (_, branch, norm, _) = step.func.__self__, step.args
        if block.pre_norm:
            x = drop_output(block, x + branch(norm(x)))
        else:
            x = norm(drop_output(block, x + branch(x)))
    return x


def drop_sums_where(pre_norm: bool) -> Way:
    """Return the options in which dropout falls on the sums in pre-norm alone, or in post-norm."""

    def walk(x, steps):
        block = steps[0].func.__self__
        return drop_every_sum(x, steps) if block.pre_norm == pre_norm else run_in_turn(x, steps)

    def drop(self, output):
        return output if self.pre_norm == pre_norm else drop_output(self, output)

    return {"walk": walk, "drop": drop}


def drop_branches_where(pre_norm: bool) -> Way:
    """Return the option in which the branches are dropped in pre-norm alone, or in post-norm."""
    return {
        "drop": lambda self, output: (
            drop_output(self, output) if self.pre_norm == pre_norm else output
        )
    }


def decoder_layers(d_model, n_heads, d_ff):
    return {
        "self_attention": MultiHeadAttention(d_model, n_heads),
        "cross_attention": MultiHeadAttention(d_model, n_heads),
        "feed_forward": transformer.FeedForward(d_model, d_ff),
        **{f"norm_{i}": transformer.LayerNorm(d_model) for i in (1, 2, 3)},
    }


def step_of_branch(number, pre_norm, usual, odd, bare):
    """Return how this branch's output is put into the stream."""
    if own_way := odd(number):
        return own_way[not pre_norm]
    if bare(number):
        return branch_of_normed if pre_norm else norm_of_branch
    return usual


def encoder_forward(self, x, mask=None):
    return self.run(x, mask)


def decoder_forward(self, x, memory, mask=None, memory_mask=None):
    return self.run(x, memory, mask, memory_mask)


FORWARD_METHODS = {"EncoderBlock": encoder_forward, "DecoderBlock": decoder_forward}


def block_class(
    name,
    branches,
    layers,
    super_init=decisions.begun,
    sizes=lambda d_model, n_heads, d_ff: (d_model, n_heads, d_ff),
    hold=decisions.assigned,
    pick=lambda pre_norm: pre_norm,
    pre=norm_before_branch,
    post=norm_after_sum,
    bare=lambda number: False,
    odd=lambda number: None,
    unnormed=lambda number: False,
    norms=lambda names: names,
    drop=drop_output,
    spared=lambda number: False,
    take=lambda self, x: x,
    walk=run_in_turn,
    finish=lambda self, x: x,
):
    """Return a block's class made of decisions.

    ``branches(self, *inputs)`` are its branches in order, ``pre`` and ``post`` how one is put
    into the stream, ``odd`` how else one of them is, by pre-norm and post-norm; ``bare`` which
    lack a residual, ``unnormed`` a norm and ``spared`` dropout, ``drop`` what becomes of an
    output, ``walk`` how they follow each other.
    """

    class Block(nn.Module):
        def __init__(self, d_model, n_heads, d_ff=None, pre_norm=True, dropout=0.0):
            super_init(self)
            self.pre_norm, self.rate = pick(pre_norm), dropout
            hold(self, layers(*sizes(d_model, n_heads, d_ff)))

        def run(self, x, *args):
            usual = pre if self.pre_norm else post
            x = take(self, x)
            own_branches = branches(self, *args)
            norm_names = norms([f"norm_{i + 1}" for i in range(len(own_branches))])
            steps = [
                partial(
                    self.step_into_stream,
                    step_of_branch(number, self.pre_norm, usual, odd, bare),
                    branch if spared(number) else partial(self.branch_with_dropout, branch),
                    nn.Identity() if unnormed(number) else getattr(self, norm),
                    x,
                )
                for number, (branch, norm) in enumerate(zip(own_branches, norm_names, strict=True))
            ]
            return finish(self, walk(x, steps))

        def branch_with_dropout(self, branch, *read):
            return drop(self, branch(*read))

        def step_into_stream(self, step, branch, norm, first, x):
            return step(x, branch, norm, first)

    Block.forward = FORWARD_METHODS[name]
    Block.__name__ = name
    return Block


def causal_mask_for(self, x):
    n = x.shape[-2]
    return torch.ones(n, n, dtype=torch.bool).tril()


def with_other_sizes(**changed):
    """Return the option that changes some of the sizes."""

    def sizes(d_model, n_heads, d_ff):
        right_sizes = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff}
        return tuple(
            {**right_sizes, **{n: make(**right_sizes) for n, make in changed.items()}}.values()
        )

    return {"sizes": sizes}


def with_library_norms(layers):
    """Return the layers with PyTorch's norms in place of ours."""

    def other_layers(d_model, n_heads, d_ff):
        right_layers = layers(d_model, n_heads, d_ff)
        return {
            n: nn.LayerNorm(d_model) if "norm" in n else layer for n, layer in right_layers.items()
        }

    return {"layers": other_layers}


def with_one_norm(layers):
    """Return the layers with one norm under all names."""

    def other_layers(d_model, n_heads, d_ff):
        right_layers = layers(d_model, n_heads, d_ff)
        return {
            n: right_layers["norm_1"] if "norm" in n else layer for n, layer in right_layers.items()
        }

    return {"layers": other_layers}


SUM_TEXT = "`x + self.dropout(branch)`"

ENCODER_BRANCHES = ("attention", "feed-forward")
DECODER_BRANCHES = ("self-attention", "cross-attention", "feed-forward")


def other_orders(branches: tuple[str, ...]) -> Iterator[Recipe]:
    """Yield a mistake for each wrong order of the branches, which says the order that was written.

    The norms go with their branches, or are taken in the order in which they are used.
    """
    for order in list(permutations(range(len(branches))))[1:]:
        written = ", ".join(branches[i] for i in order)
        by_use = {"norms": lambda names, o=order: [names[o.index(i)] for i in range(len(o))]}
        walk = {"walk": lambda x, steps, o=order: run_in_turn(x, [steps[i] for i in o])}
        yield (
            mistake(f"""the branches in another order: {written}
                You take the branches in the order {written}. It is {", ".join(branches)}.""")
            .by(**walk)
            .by(**walk, **by_use)
        )


# For so many branches: the norms that a block calls for them in place of its own.
OTHER_NORMS = {
    2: ([1, 0],),
    3: ([0, 2, 1], [0, 0, 1], [0, 0, 2], [0, 1, 1], [2, 1, 0], [1, 0, 2]),
}


def in_one_place(branches, ways):
    """Return the options that have one branch put into the stream in one of these ways."""
    return [
        {"odd": lambda number, i=i: ways if number == i else None} for i in range(len(branches))
    ]


OF_PRE_NORM = (
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
)


def of_the_residual(branches: tuple[str, ...]) -> tuple[Recipe, ...]:
    """Return mistakes in how a branch is added to what it read."""
    return (
        mistake("""the residual is missing
            A branch's output takes the place of x. It is to be added to what the branch read: x +
            branch(…), for every branch.""")
        .by(pre=branch_of_normed, post=norm_of_branch)
        .by(pre=branch_of_normed)
        .by(post=norm_of_branch)
        .by(*({"bare": lambda number, i=i: number == i} for i in range(len(branches))))
        .by(*in_one_place(branches, (branch_of_normed, norm_after_sum)))
        .by(*in_one_place(branches, (norm_before_branch, norm_of_branch))),
        mistake("""x += changes what was handed over
            `x += …` writes into the caller's x, which then holds other numbers, and gradients may
            fail. Write `x = x + …`, which makes a new tensor.""")
        .by(pre=lambda x, branch, norm, first: x.add_(branch(norm(x))))
        .by(post=lambda x, branch, norm, first: norm(x.add_(branch(x)))),
        mistake("""the residual begins behind the norm
            You normalise x and then add the branch to the normalised x. The stream itself is not
            normalised in pre-norm: x + branch(norm(x)), with the x from before the norm.
        """)
        .by(pre=add_to_normed)
        .by(*in_one_place(branches, (add_to_normed, norm_after_sum))),
        mistake("""a branch is added to itself
            You keep what the branch returns under the name of the stream, and then add the stream:
            it is the branch's output twice. Add what the branch *read*, x + branch(…), under a name
            that still has it.""")
        .by(pre=twice_branch_of_normed, post=norm_of_twice_branch)
        .by(pre=twice_branch_of_normed)
        .by(post=norm_of_twice_branch)
        .by(*in_one_place(branches, (twice_branch_of_normed, norm_of_twice_branch)))
        .by(*in_one_place(branches, (twice_branch_of_normed, norm_after_sum)))
        .by(*in_one_place(branches, (norm_before_branch, norm_of_twice_branch))),
        mistake("""normalised before the sum, not after it
            In post-norm you normalise before you add: what the branch returns, x, or both x and
            what the branch reads. The norm comes after the addition: norm(x + branch(x)).""")
        .by(post=lambda x, branch, norm, first: x + norm(branch(x)))
        .by(post=lambda x, branch, norm, first: norm(x) + branch(x))
        .by(post=lambda x, branch, norm, first: norm(x) + branch(norm(x)))
        .by(
            *in_one_place(
                branches, (norm_before_branch, lambda x, branch, norm, first: x + norm(branch(x)))
            )
        ),
        mistake("""the norm behind the branch in pre-norm
            With pre_norm=True you normalise what a branch returns. What it reads is normalised: x +
            branch(norm(x)).""").by(pre=lambda x, branch, norm, first: x + norm(branch(x))),
        mistake("""every residual from the block's first input
            You add a later branch to the x that came into the block, and what earlier branches
            added is lost. Each is added to what it read, the x so far.""")
        .by(pre=add_to_first_input, post=norm_sum_with_first_input)
        .by(pre=add_to_first_input)
        .by(post=norm_sum_with_first_input)
        .by(*in_one_place(branches, (add_to_first_input, norm_sum_with_first_input))[1:])
        .by(*in_one_place(branches, (add_to_first_input, norm_after_sum))[1:])
        .by(*in_one_place(branches, (norm_before_branch, norm_sum_with_first_input))[1:]),
    )


def of_the_norms(layers, branches: tuple[str, ...]) -> tuple[Recipe, ...]:
    """Return mistakes in which norm stands where."""
    at_the_end = (
        mistake("""a norm at the end
            You normalise once more before you return. The norm behind the last block belongs to the
            stack of blocks, not to a block.""")
        .by(finish=lambda self, x: self.norm_1(x))
        .by(finish=lambda self, x: self.norm_2(x))
        .by(finish=lambda self, x: F.layer_norm(x, x.shape[-1:]))
    )
    if branches == DECODER_BRANCHES:
        at_the_end = at_the_end.by(finish=lambda self, x: self.norm_3(x))
    return (
        mistake("""not all that attention reads is normalised
            In pre-norm your norm falls on the queries alone, or leaves one of query, key and value
            out. Self-attention reads one thing, norm(x), for all three.""").by(
            *(
                {"odd": lambda number, s=step: None if number else (s, norm_after_sum)}
                for step in map(norm_some_inputs, (1, 0, 1, 0), (0, 1, 1, 1), (0, 1, 0, 0))
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
        .by(*({"unnormed": lambda number, i=i: number == i} for i in range(len(branches)))),
        mistake("""normalised twice
            You normalise before the branch and after the sum. A block does one of the two: pre_norm
            says which.""")
        .by(pre=norm_before_and_after, post=norm_before_and_after)
        .by(pre=norm_before_and_after)
        .by(post=norm_before_and_after)
        .by(*in_one_place(branches, (norm_before_and_after, norm_before_and_after))),
        at_the_end,
        mistake("""a norm at the wrong branch
            `norm_1` belongs to the first branch, `norm_2` to the second, and so on. You exchange
            them, or use one for all.""")
        .by(norms=lambda names: names[::-1])
        .by(norms=lambda names: [names[0]] * len(names))
        .by(norms=lambda names: [names[-1]] * len(names))
        .by(
            *(
                {"norms": lambda names, o=o: [names[i] for i in o]}
                for o in OTHER_NORMS[len(branches)]
            )
        ),
        mistake("""one norm shared by all branches
            Your norms are one and the same layer under several names. Each branch needs one of its
            own: call `LayerNorm(d_model)` once for each.""").by(with_one_norm(layers)),
        mistake("""PyTorch's norm, with other names
            `nn.LayerNorm` calls its parameters weight and bias, and the check puts in gain and
            bias. Use `LayerNorm`, which is given above.""").by(with_library_norms(layers)),
    )


def of_the_order(branches: tuple[str, ...]) -> tuple[Recipe, ...]:
    """Return mistakes in how the branches follow each other."""
    side_by_side = (
        mistake("""branches side by side
            You compute branches side by side, from the same x, and add them all. Here they come one
            after the other: each reads what those before it have added.""")
        .by(walk=run_side_by_side)
        .by(walk=drop_sum_of_branches, drop=lambda self, output: output)
        .by(*in_one_place(branches, (read_normed_first_input, read_first_input))[1:])
    )
    if branches == DECODER_BRANCHES:
        side_by_side = side_by_side.by(walk=run_last_two_side_by_side).by(
            pre=read_normed_first_input, post=read_first_input
        )
    return (
        side_by_side,
        *other_orders(branches),
        mistake("""no feed-forward layer
            You have it and do not use it. Every token goes through it after attention, with a
            residual and a norm of its own.""").by(
            walk=lambda x, steps: run_in_turn(x, steps[:-1])
        ),
    )


OF_THE_SIZES = (
    mistake("""d_ff is ignored
        Your hidden layer has the same width whatever d_ff says. Hand it on:
        `FeedForward(d_model, d_ff)`.""").by(with_other_sizes(d_ff=lambda d_ff, **_: None)),
    mistake("""another width where d_ff is left out
        Without d_ff the hidden layer is 4·d_model wide. `FeedForward` knows that: hand d_ff on
        as it is, also when it is None.""")
    .by(with_other_sizes(d_ff=lambda d_ff, d_model, **_: d_ff or d_model))
    .by(with_other_sizes(d_ff=lambda d_ff, d_model, **_: d_ff or 2 * d_model))
    .by(with_other_sizes(d_ff=lambda d_ff, **_: d_ff or 2048)),
    mistake("""n_heads is ignored
        Your attention has the same number of heads whatever n_heads says. Hand it on:
        `MultiHeadAttention(d_model, n_heads)`.""")
    .by(with_other_sizes(n_heads=lambda **_: 1))
    .by(with_other_sizes(n_heads=lambda d_model, **_: d_model)),
)


def of_the_dropout(number_of_branches: int, reads: Way) -> tuple[Recipe, ...]:
    """Return mistakes in what is dropped, and when."""
    return (
        mistake(f"""no dropout on what the branches return
            You use no dropout, or only on what a branch reads. In training every branch's output
            loses that share of its numbers before it is added: {SUM_TEXT}, with an
            `nn.Dropout(dropout)`.""")
        .by(drop=lambda self, output: output)
        .by(*(drop_branches_where(pre_norm) for pre_norm in (True, False))),
        mistake(f"""dropout on some of the branches
            One branch loses numbers and another does not. In training dropout falls on what every
            branch returns: {SUM_TEXT} each time.""")
        .by(spared=lambda number: number > 0)
        .by(*({"spared": lambda number, i=i: number == i} for i in range(number_of_branches)))
        .by(*({"spared": lambda number, i=i: number != i} for i in range(1, number_of_branches))),
        mistake(f"""a second dropout inside a branch
            Numbers are dropped within a branch, too: of what it reads, or of its hidden units. Here
            dropout falls once on each branch, on what it returns: {SUM_TEXT}.""")
        .by(feed=lambda self, x: self.feed_forward(drop_output(self, x)))
        .by(feed=drop_hidden_units)
        .by(reads),
        mistake("""dropout stays on in eval()
            Your block is still random after `eval()`. `nn.Dropout` knows the mode; `F.dropout(x,
            p)` does not unless you tell it: `F.dropout(x, p, self.training)`.
        """).by(drop=lambda self, output: F.dropout(output, self.rate)),
        mistake(f"""dropout of the stream
            Your dropout falls on x itself, or on the sum. It belongs to the branch alone, before it
            is added: {SUM_TEXT}. What is in the stream stays.""")
        .by(finish=drop_output, drop=lambda self, output: output)
        .by(take=drop_output, drop=lambda self, output: output)
        .by(finish=drop_output)
        .by(take=drop_output)
        .by(walk=drop_every_sum, drop=lambda self, output: output)
        .by(drop_sums_where(True), drop_sums_where(False))
        .by(
            drop=lambda self, output: output,
            walk=lambda x, steps: run_in_turn(
                x, [lambda y, s=s: drop_output(s.func.__self__, s(y)) for s in steps]
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


def of_the_stream(layers, branches: tuple[str, ...], reads: Way) -> tuple[Recipe, ...]:
    """Return the mistakes around the branches, whatever these are.

    reads: the option in which dropout falls on what self-attention reads.
    """
    return (
        *OF_PRE_NORM,
        *of_the_residual(branches),
        *of_the_norms(layers, branches),
        *of_the_order(branches),
        *OF_THE_SIZES,
        *of_the_dropout(len(branches), reads),
    )


def of_the_mask(decision: str, attention: str, more) -> tuple[Recipe, ...]:
    """Return mistakes with the mask of a self-attention."""

    def call(self, *args, **named):
        return getattr(self, attention)(*args, **named)

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
                    self, x, mask=causal_mask_for(self, x) if mask is None else mask
                )
            }
        )
        .by(
            {
                decision: lambda self, x, mask: call(
                    self,
                    x,
                    mask=causal_mask_for(self, x)
                    if mask is None
                    else mask & causal_mask_for(self, x),
                )
            }
        ),
        *more,
    )


def dropout_criteria(
    points: int, name: str, table: CaseTable, plain: Row, state: Callable[..., State], *last: str
) -> tuple[Criterion, Criterion]:
    """Return the criteria on dropout: in training on each branch, after ``eval()`` on none.

    Those that are named last have it also behind them.
    """

    def rows(share: float, **more) -> list[Row]:
        return [plain.but(options={"dropout": share, **norm}, **more) for norm in ({}, POST_NORM)]

    nothing_added = table(
        *rows(
            0.5,
            zero=OUTPUT_PARAMETERS,
            use=callers.call_module_in_training,
            note="in training, where the branches add nothing",
        )
    )
    in_evaluation = rows(0.3, use=callers.call_module_in_evaluation, note="after eval()")
    added = dropout_cases(name, state, last)
    return (
        Criterion("dropout on each branch, in training", points).on(
            lambda rng: [*added(rng), *nothing_added(rng)]
        ),
        table.criterion("no dropout in eval()", 1).on(*in_evaluation),
    )
