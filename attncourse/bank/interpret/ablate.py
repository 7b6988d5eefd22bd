"""The exercise ``ablate``: a model without one of its heads."""

import copy
from collections.abc import Callable

import torch

from attncourse import interpret
from attncourse.bank.interpret.cases import SIZES, built, some_ids, state_of_gpt
from attncourse.checks.callers import logits_of_changed
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.recipes import made, mistake
from attncourse.masking import causal_mask
from attncourse.multihead import merge_heads

# --- cases ---------------------------------------------------------------------------------------


def ablate_case(
    rng: Rng, *calls: tuple, on: tuple[int, ...] = (2, 7), note: str = "", **changed
) -> Case:
    """A case that ablates for each call's layer, head and so on; ``on`` is the ids' shape."""
    config = SIZES | changed
    told = " and ".join(
        f"ablate(model, {', '.join('ids' if torch.is_tensor(x) else repr(x) for x in call)})"
        for call in calls
    )
    return Case(
        kwargs={"config": config, "calls": calls, "ids": some_ids(rng, *on)}
        | {name: x.float() for name, x in state_of_gpt(rng, config).items()},
        use=logits_of_changed,
        note=note,
        shown=f"{told}, model = {built(changed)}",
    )


# --- decisions and mistakes ----------------------------------------------------------------------


def in_runs(head, d_head, h):
    return torch.arange(head * d_head, (head + 1) * d_head)


def no_columns(attention, own):
    attention.W_o.weight[:, own] = 0


def without_bias(model, layer):
    attention = model.blocks[layer].attention
    if attention.W_o.bias is not None:
        torch.nn.init.zeros_(attention.W_o.bias)
    return attention


def no_rows(attention, own):
    attention.W_o.weight[own] = 0


def others(attention, own):
    return torch.tensor([i for i in range(attention.d_model) if i not in own.tolist()])


def projection(*names: str, biases: bool = True) -> Callable:
    """The head's rows of these projections become 0."""

    def silence(attention, own):
        for name in names:
            layer = getattr(attention, name)
            layer.weight[own] = 0
            if biases and layer.bias is not None:
                layer.bias[own] = 0

    return silence


def and_no_bias(attention, own):
    no_columns(attention, own)
    if attention.W_o.bias is not None:
        attention.W_o.bias.zero_()


def louder_others(attention, own):
    no_columns(attention, own)
    if attention.n_heads > 1:
        attention.W_o.weight.mul_(attention.n_heads / (attention.n_heads - 1))


def outputs(
    model, layer, ids, masked: bool = True, normed: bool = True, weighed: bool = True, through=False
):
    """Return what the heads of a layer return for ids, side by side: ``(..., n, d_model)``."""
    n = ids.shape[-1]
    mask = causal_mask(n)
    x = model.positions(model.tokens(ids), torch.arange(n))
    for number, block in enumerate(model.blocks):
        if number == layer:
            attention = block.attention
            read = block.norm_1(x) if normed else x
            weights = attention.weights(read, mask=mask if masked else None)
            value = attention.views(read, None, None)[2]
            merged = merge_heads(weights @ value if weighed else value)
            return attention.W_o(merged) if through else merged
        x = block(x, mask)


def heard(model, layer, ids):
    """Return what goes into W_o while the model reads, with the hooks that it has."""
    found = []
    hook = model.blocks[layer].attention.W_o.register_forward_pre_hook(
        lambda layer, inputs: found.append(inputs[0])
    )
    model(ids)
    hook.remove()
    return found[0]


def over_all(said):
    return said.flatten(0, -2).mean(0)


def into_bias(attention, own, mean):
    said = attention.W_o.weight[:, own] @ mean[own]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(said if bias is None else bias + said)


def by_columns(attention, own, mean):
    """All that the mean asks for."""
    into_bias(attention, own, mean)
    no_columns(attention, own)


def into_bias_by_rows(attention, own, mean):
    said = mean[own] @ attention.W_o.weight[own]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(said if bias is None else bias + said)


def hooked(value, before=True):
    """The head's features become a value whenever the copy reads, before W_o or behind it.

    ``value(handed, mean)`` makes it of what is there and of the mean, None without one.
    """

    def change(attention, own, mean=None):
        part = slice(own[0], own[-1] + 1)
        mean = None if mean is None else mean[..., part]

        def hand(layer, inputs, *output):
            handed = (output or inputs)[0].clone()
            handed[..., part] = value(handed[..., part], mean)
            return handed if output else (handed,)

        W_o = attention.W_o
        (W_o.register_forward_pre_hook if before else W_o.register_forward_hook)(hand)

    return change


def zero_or_mean(handed, mean):
    return 0.0 if mean is None else mean


def of_each_position(handed, said):
    """The mean over the sequences at each position; the last one's for those behind."""
    if said is None:
        return 0.0
    means = said.reshape(-1, *said.shape[-2:]).mean(0)
    places = torch.arange(handed.shape[-2]).clamp(max=len(means) - 1)
    return means[places]


def one_at_a_time(before=True, **more):
    """Options for hooks: either the mean or zeros."""
    change = hooked(zero_or_mean, before)
    return {"say": change, "silence": change, "silenced": lambda how: how != "mean"} | more


def over_bias(attention, own, mean):
    attention.W_o.bias = torch.nn.Parameter(attention.W_o.weight[:, own] @ mean[own])


def into_a_bias_that_is_there(attention, own, mean):
    attention.W_o.bias += attention.W_o.weight[:, own] @ mean[own]


def into_a_bias_or_nowhere(attention, own, mean):
    if attention.W_o.bias is not None:
        into_a_bias_that_is_there(attention, own, mean)


def into_rows_of_bias(attention, own, mean):
    said = torch.zeros_like(mean)
    said[own] = mean[own]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(said if bias is None else bias + said)


@composition
def compose_ablate(
    copied=copy.deepcopy,
    layer_of=lambda model, layer: model.blocks[layer].attention,
    columns=in_runs,
    silence=no_columns,
    meant=lambda how: how == "mean",
    silenced=lambda how: True,
    said=outputs,
    average=over_all,
    say=into_bias,
    finish=lambda changed, model: changed,
):
    """Return ``ablate`` made of decisions."""

    def ablate(model, layer, head, how="zero", ids=None):
        changed = copied(model)
        attention = layer_of(changed, layer)
        own = columns(head, attention.d_model // attention.n_heads, attention.n_heads)
        with torch.no_grad():
            if meant(how):
                say(attention, own, average(said(model, layer, ids)))
            if silenced(how):
                silence(attention, own)
        return finish(changed, model)

    return ablate


def branch_less(changed, model):
    """Whole attention layers say nothing any more."""
    for block, own in zip(changed.blocks, model.blocks, strict=True):
        if not torch.equal(block.attention.W_o.weight, own.attention.W_o.weight):
            with torch.no_grad():
                block.attention.W_o.weight.zero_()
    return changed


def put_back(changed, model):
    """The copy as it was before anything was changed."""
    return copy.deepcopy(model)


def several(rng: Rng) -> list[Case]:
    return [
        ablate_case(rng, (1, 2), note="the last head of the last layer"),
        ablate_case(rng, (0, 0), on=(7,), note="the first head of the first layer, no batch"),
        ablate_case(rng, (0, 1), note="a head in the middle"),
        ablate_case(rng, (1, 0, "zero"), on=(3, 2, 5), n_layers=3, note="three layers"),
        ablate_case(rng, (0, 3), n_heads=4, d_model=16, tied=False, note="untied, four heads"),
    ]


def means(rng: Rng) -> list[Case]:
    return [
        ablate_case(rng, (1, 2, "mean", some_ids(rng, 4, 6)), note="mean over 4 sequences of 6"),
        ablate_case(rng, (0, 1, "mean", some_ids(rng, 8)), note="mean over one sequence"),
        ablate_case(rng, (1, 0, "mean", some_ids(rng, 2, 3, 5)), note="two batch axes"),
        ablate_case(rng, (0, 2, "mean", some_ids(rng, 3, 7)), tied=False, note="untied"),
        ablate_case(
            rng,
            (1, 1, "mean", some_ids(rng, 2, 6)),
            (0, 2, "mean", some_ids(rng, 5)),
            note="two copies",
        ),
    ]


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    interpret.ablate,
    section="Chapter 14, “Switch it off”",
    difficulty=3,
    minutes=30,
    limit=10.0,
    criteria=(
        Criterion("the head hands zeros to W_o", 3).on(several),
        Criterion("each call has a copy of its own", 2).on(
            lambda rng: [
                ablate_case(rng, (0, 1), (1, 2), (0, 0), note="three copies of one model"),
                ablate_case(rng, (1, 1), (1, 0), n_layers=3, note="two copies of three layers"),
            ]
        ),
        Criterion("or its mean, over batch and positions", 3).on(means),
        Criterion("a model without biases, an only head", 1).on(
            lambda rng: [
                ablate_case(rng, (1, 1), bias=False, note="no biases"),
                ablate_case(rng, (0, 0), n_heads=1, d_model=4, n_layers=1, note="its only head"),
                ablate_case(rng, (0, 2, "mean", some_ids(rng, 3, 5)), bias=False),
                ablate_case(
                    rng, (0, 0, "mean", some_ids(rng, 3, 5)), bias=False, n_layers=1, tied=False
                ),
            ]
        ),
        unchanged(),
    ),
    excludes=(("*", "What it is given is a model; the cases are models, layers and heads."),),
    mistakes=made(
        compose_ablate,
        mistake("""rows, not columns
            `nn.Linear` stores its weight as (out, in). What the head hands *in* belongs to columns
            of W_o, `W_o.weight[:, own]`; rows are outputs, to which every head adds.""")
        .by(silence=no_rows)
        .by(silence=no_rows, silenced=lambda how: how == "zero", say=by_columns)
        .by(say=into_bias_by_rows)
        .by(say=into_bias_by_rows, silence=no_rows),
        mistake("""what comes out of W_o is changed
            You change features of W_o's output, to which every head adds. A head's features are
            those that go *into* W_o: its columns, or a forward *pre*-hook.""")
        .by(one_at_a_time(before=False))
        .by(one_at_a_time(before=False, said=lambda *given: outputs(*given, through=True))),
        mistake("""W_o's bias is silenced too
            You set W_o's bias to 0, or leave it out. It is nobody's head, and stays as it is; a
            mean that is asked for is added to it.""").by(layer_of=without_bias),
        mistake("""the given model is changed
            You change the model that you were given: it has lost a head too, or the next copy
            starts without it. Copy it first, all of it: `copy.deepcopy(model)`.""")
        .by(copied=as_it_is)
        .by(copied=copy.copy)
        .by(one_at_a_time(copied=as_it_is))
        .by(one_at_a_time(copied=as_it_is, said=heard))
        .by(one_at_a_time(copied=copy.copy, said=heard)),
        mistake("""nothing has changed
            The copy says what the model says. Is the change made to a copy of the weights, or to
            the model and then not returned?""")
        .by(finish=put_back)
        .by(silence=lambda attention, own: None, meant=lambda how: False),
        mistake("""another head
            You silence another head. Heads count from 0, and head i has the features i·d_head to (i
            + 1)·d_head − 1.""")
        .by(columns=lambda head, d, h: in_runs((head + 1) % h, d, h))
        .by(columns=lambda head, d, h: in_runs((head - 1) % h, d, h))
        .by(columns=lambda head, d, h: in_runs(h - 1 - head, d, h))
        .by(columns=lambda head, d, h: in_runs(0, d, h)),
        mistake("""not the run of features of this head
            A head is a run of d_head = d_model / h neighbouring features, from head · d_head on.
            You take every h-th feature, a run that is too short or too long, or one that starts at
            another place.""")
        .by(columns=lambda head, d, h: torch.arange(head, d * h, h))
        .by(columns=lambda head, d, h: torch.arange(head * h, min((head + 1) * h, d * h)))
        .by(columns=lambda head, d, h: torch.tensor([head]))
        .by(columns=lambda head, d, h: torch.arange(0, (head + 1) * d))
        .by(columns=lambda head, d, h: torch.arange(head * d, (head + 1) * d - 1))
        .by(columns=lambda head, d, h: torch.arange(head * d, h * d)),
        mistake("""another layer
            You silence the head in another layer. Layers count from 0, `model.blocks[layer]`.""")
        .by(layer_of=lambda model, layer: model.blocks[-1 - layer].attention)
        .by(layer_of=lambda model, layer: model.blocks[-1].attention)
        .by(layer_of=lambda model, layer: model.blocks[0].attention)
        .by(layer_of=lambda model, layer: model.blocks[layer - 1].attention)
        .by(
            *(
                {
                    "layer_of": lambda model, layer, i=i: model.blocks[i].attention,
                    "said": lambda model, layer, ids, i=i: outputs(
                        model, range(len(model.blocks))[i], ids
                    ),
                }
                for i in (0, -1)
            )
        ),
        mistake("""the whole layer is silent
            No head of this layer says anything any more. Only one is asked for: its columns of W_o,
            and no others.""").by(finish=branch_less),
        mistake("""the others are silent
            You keep the head and silence the others of its layer. It is the other way round.
        """).by(silence=lambda attention, own: no_columns(attention, others(attention, own))),
        mistake("""its queries or keys are 0
            With queries or keys of 0 all scores are 0, so the head looks at all tokens alike and
            hands on their mean. It is to hand on zeros.""")
        .by(silence=projection("W_q"))
        .by(silence=projection("W_k"))
        .by(silence=projection("W_q", "W_k")),
        mistake("""the bias of its values is left
            You set the head's rows of W_v to 0, but W_v has a bias, which the head still hands on.
            Set that to 0 too, or the columns of W_o.""")
        .by(silence=projection("W_v", biases=False))
        .by(one_at_a_time(silence=projection("W_v", biases=False))),
        mistake("""the bias of W_o is gone
            W_o's bias belongs to no head. It stays.""").by(silence=and_no_bias),
        mistake("""the other heads are made louder
            You scale the other heads up, as dropout does. They stay as they are.
        """).by(silence=louder_others),
        mistake("""the mean is not there
            With `how="mean"` the head hands its mean to W_o. You hand zeros, as without.
        """).by(meant=lambda how: False),
        mistake("""the mean comes on top
            You add the mean, and the head still says what it said. Its columns become 0 as
            well.""")
        .by(silence=lambda attention, own: None)
        .by(silenced=lambda how: how != "mean"),
        mistake("""the mean does not go through W_o
            The mean is what the head hands *to* W_o. What is added to the output is `W_o.weight[:,
            own] @ mean`, all d_model features of it.""").by(say=into_rows_of_bias),
        mistake("""the mean takes the bias's place
            You put the mean where W_o's bias was. It is added to the bias.""").by(say=over_bias),
        mistake("""no bias to add to
            W_o may have been built without a bias. Give it one then: `W_o.bias =
            nn.Parameter(…)`.""")
        .by(say=into_a_bias_that_is_there)
        .by(say=into_a_bias_or_nowhere),
        mistake("""not the mean over batch and positions
            The mean is over every token of every sequence of ids, one number for each of the
            head's features. You take one sequence or one token, add up, keep a mean for each
            position, or average over the features too.""")
        .by(average=lambda said: said.flatten(0, -3)[0].mean(0) if said.ndim > 2 else said[0])
        .by(average=lambda said: said.flatten(0, -2)[-1])
        .by(average=lambda said: said[..., -1, :].reshape(-1, said.shape[-1]).mean(0))
        .by(average=lambda said: said.flatten(0, -2).sum(0))
        .by(average=lambda said: said.mean().expand(said.shape[-1]))
        .by(average=lambda said: said.flatten(0, -2).median(0).values)
        .by(
            *(
                one_at_a_time(
                    average=as_it_is, say=hooked(lambda handed, said, a=axes: said.mean(a))
                )
                for axes in (None, 0, 1, (0, 1), -2)
            )
        )
        .by(one_at_a_time(average=as_it_is, say=hooked(of_each_position))),
        mistake("""the mean of something else
            The mean is of what the head hands to W_o: its causal weights times its values, of what
            this block reads (after `norm_1`). You leave the mask out, or the norm, or average the
            values themselves, or what comes out of W_o.""")
        .by(said=lambda *given: outputs(*given, masked=False))
        .by(said=lambda *given: outputs(*given, normed=False))
        .by(said=lambda *given: outputs(*given, weighed=False))
        .by(said=lambda *given: outputs(*given, through=True)),
        mistake("""the mean of what is read just now
            Your mean is taken anew from whatever the copy reads. It is the mean over `ids`, taken
            once: then the head says the same, whatever it reads.""")
        .by(one_at_a_time(say=hooked(lambda handed, mean: handed.mean(-2, keepdim=True))))
        .by(one_at_a_time(say=hooked(lambda handed, mean: over_all(handed)))),
    ),
)
