"""The exercise ``ablate``: a model without one of its heads."""

import copy
from collections.abc import Callable

import torch

from attncourse import interpret
from attncourse.bank.interpret.cases import SIZES, model_text, random_ids, state_of_gpt
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
    """Return the case that ablates with each call's arguments; ``on`` is the ids' shape."""
    config = SIZES | changed
    calls_text = " and ".join(
        f"ablate(model, {', '.join('ids' if torch.is_tensor(x) else repr(x) for x in call)})"
        for call in calls
    )
    return Case(
        kwargs={"config": config, "calls": calls, "ids": random_ids(rng, *on)}
        | {name: x.float() for name, x in state_of_gpt(rng, config).items()},
        use=logits_of_changed,
        note=note,
        shown=f"{calls_text}, model = {model_text(changed)}",
    )


# --- decisions and mistakes ----------------------------------------------------------------------


def features_of_head(head, d_head, h):
    return torch.arange(head * d_head, (head + 1) * d_head)


def zero_columns(attention, features):
    attention.W_o.weight[:, features] = 0


def layer_without_bias(model, layer):
    """Return the layer with W_o's bias set to 0."""
    attention = model.blocks[layer].attention
    if attention.W_o.bias is not None:
        torch.nn.init.zeros_(attention.W_o.bias)
    return attention


def zero_rows(attention, features):
    attention.W_o.weight[features] = 0


def features_of_other_heads(attention, features):
    return torch.tensor([i for i in range(attention.d_model) if i not in features.tolist()])


def zero_projections(*names: str, biases: bool = True) -> Callable:
    """Return a ``silence`` that sets the head's rows of these projections to 0."""

    def silence(attention, features):
        for name in names:
            layer = getattr(attention, name)
            layer.weight[features] = 0
            if biases and layer.bias is not None:
                layer.bias[features] = 0

    return silence


def zero_columns_and_bias(attention, features):
    zero_columns(attention, features)
    if attention.W_o.bias is not None:
        attention.W_o.bias.zero_()


def scale_other_heads_up(attention, features):
    zero_columns(attention, features)
    if attention.n_heads > 1:
        attention.W_o.weight.mul_(attention.n_heads / (attention.n_heads - 1))


def head_outputs(
    model,
    layer,
    ids,
    masked: bool = True,
    normed: bool = True,
    weighted: bool = True,
    through_W_o=False,
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
            merged = merge_heads(weights @ value if weighted else value)
            return attention.W_o(merged) if through_W_o else merged
        x = block(x, mask)


def inputs_of_W_o(model, layer, ids):
    """Return what goes into W_o while the model reads, with the hooks that it has."""
    recorded = []
    hook = model.blocks[layer].attention.W_o.register_forward_pre_hook(
        lambda layer, inputs: recorded.append(inputs[0])
    )
    model(ids)
    hook.remove()
    return recorded[0]


def mean_over_tokens(outputs):
    return outputs.flatten(0, -2).mean(0)


def add_mean_to_bias(attention, features, mean):
    contribution = attention.W_o.weight[:, features] @ mean[features]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(contribution if bias is None else bias + contribution)


def add_mean_and_zero_columns(attention, features, mean):
    """Do all that ``how="mean"`` asks for, in W_o's columns and bias."""
    add_mean_to_bias(attention, features, mean)
    zero_columns(attention, features)


def add_mean_by_rows(attention, features, mean):
    """Add the mean through rows of W_o, not columns, to the bias."""
    contribution = mean[features] @ attention.W_o.weight[features]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(contribution if bias is None else bias + contribution)


def replacing_hook(value, before=True):
    """Return what replaces the head's features whenever the copy reads, before W_o or behind.

    ``value(head_output, mean)`` makes the new ones; the mean is None where there is none.
    """

    def change(attention, features, mean=None):
        part = slice(features[0], features[-1] + 1)
        mean = None if mean is None else mean[..., part]

        def replace_features(layer, inputs, *output):
            replaced = (output or inputs)[0].clone()
            replaced[..., part] = value(replaced[..., part], mean)
            return replaced if output else (replaced,)

        W_o = attention.W_o
        (W_o.register_forward_pre_hook if before else W_o.register_forward_hook)(replace_features)

    return change


def zero_or_mean(head_output, mean):
    return 0.0 if mean is None else mean


def mean_at_each_position(head_output, outputs):
    """Return the mean over the sequences at each position; behind the last, the last one's."""
    if outputs is None:
        return 0.0
    means = outputs.reshape(-1, *outputs.shape[-2:]).mean(0)
    places = torch.arange(head_output.shape[-2]).clamp(max=len(means) - 1)
    return means[places]


def mean_or_zeros_by_hook(before=True, **more):
    """Return the options in which hooks put in either the mean or zeros."""
    change = replacing_hook(zero_or_mean, before)
    return {"add_mean": change, "silence": change, "uses_zeros": lambda how: how != "mean"} | more


def replace_bias_with_mean(attention, features, mean):
    attention.W_o.bias = torch.nn.Parameter(attention.W_o.weight[:, features] @ mean[features])


def add_mean_to_existing_bias(attention, features, mean):
    attention.W_o.bias += attention.W_o.weight[:, features] @ mean[features]


def add_mean_if_bias_exists(attention, features, mean):
    if attention.W_o.bias is not None:
        add_mean_to_existing_bias(attention, features, mean)


def add_mean_to_bias_rows(attention, features, mean):
    """Add the mean itself to the head's entries of the bias."""
    contribution = torch.zeros_like(mean)
    contribution[features] = mean[features]
    bias = attention.W_o.bias
    attention.W_o.bias = torch.nn.Parameter(contribution if bias is None else bias + contribution)


@composition
def compose_ablate(
    copy_model=copy.deepcopy,
    layer_of=lambda model, layer: model.blocks[layer].attention,
    features_of=features_of_head,
    silence=zero_columns,
    uses_mean=lambda how: how == "mean",
    uses_zeros=lambda how: True,
    outputs_of=head_outputs,
    average=mean_over_tokens,
    add_mean=add_mean_to_bias,
    finish=lambda changed, model: changed,
):
    """Return ``ablate`` made of decisions."""

    def ablate(model, layer, head, how="zero", ids=None):
        changed = copy_model(model)
        attention = layer_of(changed, layer)
        features = features_of(head, attention.d_model // attention.n_heads, attention.n_heads)
        with torch.no_grad():
            if uses_mean(how):
                add_mean(attention, features, average(outputs_of(model, layer, ids)))
            if uses_zeros(how):
                silence(attention, features)
        return finish(changed, model)

    return ablate


def zero_changed_layers(changed, model):
    """Set W_o to 0 in every layer that was changed."""
    for block, original in zip(changed.blocks, model.blocks, strict=True):
        if not torch.equal(block.attention.W_o.weight, original.attention.W_o.weight):
            with torch.no_grad():
                block.attention.W_o.weight.zero_()
    return changed


def undo_change(changed, model):
    """Return a copy in which nothing was changed."""
    return copy.deepcopy(model)


def zero_cases(rng: Rng) -> list[Case]:
    return [
        ablate_case(rng, (1, 2), note="the last head of the last layer"),
        ablate_case(rng, (0, 0), on=(7,), note="the first head of the first layer, no batch"),
        ablate_case(rng, (0, 1), note="a head in the middle"),
        ablate_case(rng, (1, 0, "zero"), on=(3, 2, 5), n_layers=3, note="three layers"),
        ablate_case(rng, (0, 3), n_heads=4, d_model=16, tied=False, note="untied, four heads"),
    ]


def mean_cases(rng: Rng) -> list[Case]:
    return [
        ablate_case(rng, (1, 2, "mean", random_ids(rng, 4, 6)), note="mean over 4 sequences of 6"),
        ablate_case(rng, (0, 1, "mean", random_ids(rng, 8)), note="mean over one sequence"),
        ablate_case(rng, (1, 0, "mean", random_ids(rng, 2, 3, 5)), note="two batch axes"),
        ablate_case(rng, (0, 2, "mean", random_ids(rng, 3, 7)), tied=False, note="untied"),
        ablate_case(
            rng,
            (1, 1, "mean", random_ids(rng, 2, 6)),
            (0, 2, "mean", random_ids(rng, 5)),
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
        Criterion("the head hands zeros to W_o", 3).on(zero_cases),
        Criterion("each call has a copy of its own", 2).on(
            lambda rng: [
                ablate_case(rng, (0, 1), (1, 2), (0, 0), note="three copies of one model"),
                ablate_case(rng, (1, 1), (1, 0), n_layers=3, note="two copies of three layers"),
            ]
        ),
        Criterion("or its mean, over batch and positions", 3).on(mean_cases),
        Criterion("a model without biases, an only head", 1).on(
            lambda rng: [
                ablate_case(rng, (1, 1), bias=False, note="no biases"),
                ablate_case(rng, (0, 0), n_heads=1, d_model=4, n_layers=1, note="its only head"),
                ablate_case(rng, (0, 2, "mean", random_ids(rng, 3, 5)), bias=False),
                ablate_case(
                    rng, (0, 0, "mean", random_ids(rng, 3, 5)), bias=False, n_layers=1, tied=False
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
        .by(silence=zero_rows)
        .by(
            silence=zero_rows,
            uses_zeros=lambda how: how == "zero",
            add_mean=add_mean_and_zero_columns,
        )
        .by(add_mean=add_mean_by_rows)
        .by(add_mean=add_mean_by_rows, silence=zero_rows),
        mistake("""what comes out of W_o is changed
            You change features of W_o's output, to which every head adds. A head's features are
            those that go *into* W_o: its columns, or a forward *pre*-hook.""")
        .by(mean_or_zeros_by_hook(before=False))
        .by(
            mean_or_zeros_by_hook(
                before=False, outputs_of=lambda *args: head_outputs(*args, through_W_o=True)
            )
        ),
        mistake("""W_o's bias is silenced too
            You set W_o's bias to 0, or leave it out. It is nobody's head, and stays as it is; a
            mean that is asked for is added to it.""").by(layer_of=layer_without_bias),
        mistake("""the given model is changed
            You change the model that you were given: it has lost a head too, or the next copy
            starts without it. Copy it first, all of it: `copy.deepcopy(model)`.""")
        .by(copy_model=as_it_is)
        .by(copy_model=copy.copy)
        .by(mean_or_zeros_by_hook(copy_model=as_it_is))
        .by(mean_or_zeros_by_hook(copy_model=as_it_is, outputs_of=inputs_of_W_o))
        .by(mean_or_zeros_by_hook(copy_model=copy.copy, outputs_of=inputs_of_W_o)),
        mistake("""nothing has changed
            The copy says what the model says. Is the change made to a copy of the weights, or to
            the model and then not returned?""")
        .by(finish=undo_change)
        .by(silence=lambda attention, features: None, uses_mean=lambda how: False),
        mistake("""another head
            You silence another head. Heads count from 0, and head i has the features i·d_head to (i
            + 1)·d_head − 1.""")
        .by(features_of=lambda head, d, h: features_of_head((head + 1) % h, d, h))
        .by(features_of=lambda head, d, h: features_of_head((head - 1) % h, d, h))
        .by(features_of=lambda head, d, h: features_of_head(h - 1 - head, d, h))
        .by(features_of=lambda head, d, h: features_of_head(0, d, h)),
        mistake("""not the run of features of this head
            A head is a run of d_head = d_model / h neighbouring features, from head · d_head on.
            You take every h-th feature, a run that is too short or too long, or one that starts at
            another place.""")
        .by(features_of=lambda head, d, h: torch.arange(head, d * h, h))
        .by(features_of=lambda head, d, h: torch.arange(head * h, min((head + 1) * h, d * h)))
        .by(features_of=lambda head, d, h: torch.tensor([head]))
        .by(features_of=lambda head, d, h: torch.arange(0, (head + 1) * d))
        .by(features_of=lambda head, d, h: torch.arange(head * d, (head + 1) * d - 1))
        .by(features_of=lambda head, d, h: torch.arange(head * d, h * d)),
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
                    "outputs_of": lambda model, layer, ids, i=i: head_outputs(
                        model, range(len(model.blocks))[i], ids
                    ),
                }
                for i in (0, -1)
            )
        ),
        mistake("""the whole layer is silent
            No head of this layer says anything any more. Only one is asked for: its columns of W_o,
            and no others.""").by(finish=zero_changed_layers),
        mistake("""the others are silent
            You keep the head and silence the others of its layer. It is the other way round.
        """).by(
            silence=lambda attention, features: zero_columns(
                attention, features_of_other_heads(attention, features)
            )
        ),
        mistake("""its queries or keys are 0
            With queries or keys of 0 all scores are 0, so the head looks at all tokens alike and
            hands on their mean. It is to hand on zeros.""")
        .by(silence=zero_projections("W_q"))
        .by(silence=zero_projections("W_k"))
        .by(silence=zero_projections("W_q", "W_k")),
        mistake("""the bias of its values is left
            You set the head's rows of W_v to 0, but W_v has a bias, which the head still hands on.
            Set that to 0 too, or the columns of W_o.""")
        .by(silence=zero_projections("W_v", biases=False))
        .by(mean_or_zeros_by_hook(silence=zero_projections("W_v", biases=False))),
        mistake("""the bias of W_o is gone
            W_o's bias belongs to no head. It stays.""").by(silence=zero_columns_and_bias),
        mistake("""the other heads are made louder
            You scale the other heads up, as dropout does. They stay as they are.
        """).by(silence=scale_other_heads_up),
        mistake("""the mean is not there
            With `how="mean"` the head hands its mean to W_o. You hand zeros, as without.
        """).by(uses_mean=lambda how: False),
        mistake("""the mean comes on top
            You add the mean, and the head still says what it said. Its columns become 0 as
            well.""")
        .by(silence=lambda attention, features: None)
        .by(uses_zeros=lambda how: how != "mean"),
        mistake("""the mean does not go through W_o
            The mean is what the head hands *to* W_o. What is added to the output is `W_o.weight[:,
            own] @ mean`, all d_model features of it.""").by(add_mean=add_mean_to_bias_rows),
        mistake("""the mean takes the bias's place
            You put the mean where W_o's bias was. It is added to the bias.""").by(
            add_mean=replace_bias_with_mean
        ),
        mistake("""no bias to add to
            W_o may have been built without a bias. Give it one then: `W_o.bias =
            nn.Parameter(…)`.""")
        .by(add_mean=add_mean_to_existing_bias)
        .by(add_mean=add_mean_if_bias_exists),
        mistake("""not the mean over batch and positions
            The mean is over every token of every sequence of ids, one number for each of the
            head's features. You take one sequence or one token, add up, keep a mean for each
            position, or average over the features too.""")
        .by(
            average=lambda outputs: (
                outputs.flatten(0, -3)[0].mean(0) if outputs.ndim > 2 else outputs[0]
            )
        )
        .by(average=lambda outputs: outputs.flatten(0, -2)[-1])
        .by(average=lambda outputs: outputs[..., -1, :].reshape(-1, outputs.shape[-1]).mean(0))
        .by(average=lambda outputs: outputs.flatten(0, -2).sum(0))
        .by(average=lambda outputs: outputs.mean().expand(outputs.shape[-1]))
        .by(average=lambda outputs: outputs.flatten(0, -2).median(0).values)
        .by(
            *(
                mean_or_zeros_by_hook(
                    average=as_it_is,
                    add_mean=replacing_hook(lambda head_output, outputs, a=axes: outputs.mean(a)),
                )
                for axes in (None, 0, 1, (0, 1), -2)
            )
        )
        .by(
            mean_or_zeros_by_hook(average=as_it_is, add_mean=replacing_hook(mean_at_each_position))
        ),
        mistake("""the mean of something else
            The mean is of what the head hands to W_o: its causal weights times its values, of what
            this block reads (after `norm_1`). You leave the mask out, or the norm, or average the
            values themselves, or what comes out of W_o.""")
        .by(outputs_of=lambda *args: head_outputs(*args, masked=False))
        .by(outputs_of=lambda *args: head_outputs(*args, normed=False))
        .by(outputs_of=lambda *args: head_outputs(*args, weighted=False))
        .by(outputs_of=lambda *args: head_outputs(*args, through_W_o=True)),
        mistake("""the mean of what is read just now
            Your mean is taken anew from whatever the copy reads. It is the mean over `ids`, taken
            once: then the head says the same, whatever it reads.""")
        .by(
            mean_or_zeros_by_hook(
                add_mean=replacing_hook(
                    lambda head_output, mean: head_output.mean(-2, keepdim=True)
                )
            )
        )
        .by(
            mean_or_zeros_by_hook(
                add_mean=replacing_hook(lambda head_output, mean: mean_over_tokens(head_output))
            )
        ),
    ),
)
