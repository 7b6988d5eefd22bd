"""Chapter 21's contests: what each variant is worth at the size of these pages.

A contest has contestants, rates and seeds. `run_together` trains all runs of a contestant as one
batch of models, and measures each; `at_best_rates` keeps each contestant's runs
at the rate whose loss ends lowest.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from attncourse.tasks.adam import Adam
from attncourse.tasks.key_choice import loss_and_right, losses_by_choice, train_indexers
from attncourse.tasks.runs import classes, faded, started
from attncourse.tasks.training import count_parameters
from attncourse.tasks.variant_tasks import (
    N_LETTERS,
    N_TRIGGERS,
    NextLetters,
    backcopy,
    written_twice,
)
from attncourse.tasks.variants import (
    RULES,
    LayerOptions,
    VariantAttention,
    VariantLatent,
    VariantMemory,
    VariantModel,
    seen_keys,
)

Build = Callable[[], nn.Module]
KS = (1, 2, 4, 8, 16)
TEXT_LENGTH = 48
TIMES_LONGER = 4  # the longest text that a model of the next letter reads, over TEXT_LENGTH


@dataclass(frozen=True)
class Contest:
    """Contestants by name, what they are trained on, and what is measured afterwards."""

    builds: dict[str, Build]
    task: Callable
    measure: Callable[[Any], dict]
    rates: tuple[float, ...] = (0.003, 0.01, 0.03)
    seeds: int = 3
    steps: int = 400
    batch: int = 16


def run_together(name: str, contestant: str, text: str, rates: tuple[float, ...]) -> list[dict]:
    """All runs of a contestant at these rates, side by side: losses, what its contest measures."""
    torch.set_num_threads(1)
    contest = contests(text)[name]
    build = contest.builds[contestant]
    ids = letters(text).held_out(8)[0]
    watch = partial(largest_score, ids=ids) if name == "norms" else None
    began = time.perf_counter()
    runs = fit_together(build, contest, rates, watch)
    seconds = (time.perf_counter() - began) / len(runs)
    rows = []
    for job, model, losses, seen in runs:
        last = torch.tensor(losses[-max(1, contest.steps // 10) :]).nan_to_num(nan=99.0)
        row: dict[str, Any] = {
            "contestant": contestant,
            "rate": job[0],
            "seed": job[1],
            "last_loss": round(last.mean().item(), 4),
            "parameters": count_parameters(model),
            "seconds": round(seconds, 1),
        }
        if seen:
            row["seen"] = seen
        rows.append(row | contest.measure(model.eval()))
    return rows


def fit_together(
    build: Build, contest: Contest, rates: tuple[float, ...], watch: Callable | None
) -> list[tuple[tuple[float, int], nn.Module, list[float], list]]:
    """Models from every seed at every rate, trained as one batch of models.

    The runs are those of ``side_by_side``; the rate falls to 0 over the second half. For each run
    (rate, seed), the model, its losses, and what ``watch`` says of it at steps that are powers of 2
    or multiples of 100.
    """
    runs = [(rate, seed) for rate in rates for seed in range(contest.seeds)]
    models = [started(build, seed) for _, seed in runs]
    names = [name for name, _ in models[0].named_parameters()]
    weights = {
        name: torch.stack([model.get_parameter(name).detach() for model in models]).requires_grad_(
            True
        )
        for name in names
    }
    adam = Adam(weights.values(), [rate for rate, _ in runs])
    generators = [torch.Generator().manual_seed(seed) for seed in range(contest.seeds)]

    def loss_of(parameters: dict[str, Tensor], ids: Tensor, answers: Tensor) -> Tensor:
        return classes(functional_call(models[0], parameters, ids), answers)[0]

    together, seen, losses = vmap(loss_of), [[] for _ in runs], []
    for step in range(1, contest.steps + 1):
        batches = [contest.task(contest.batch, generator) for generator in generators]
        ids, answers = (
            torch.stack(list(batch) * len(rates)) for batch in zip(*batches, strict=True)
        )
        losses_now = together(weights, ids, answers)
        adam.zero_grad()
        losses_now.sum().backward()  # no run shares a weight, so each gets its own gradient
        adam.step(faded(step, contest.steps))
        losses.append(losses_now.detach())
        if watch is not None and (step & (step - 1) == 0 or step % 100 == 0):
            copy_weights_back(models, weights)
            for model, row in zip(models, seen, strict=True):
                row.append([step, watch(model)])
    copy_weights_back(models, weights)
    curves = torch.stack(losses, dim=1).tolist()
    return [
        (run, model, curve, row)
        for run, model, curve, row in zip(runs, models, curves, seen, strict=True)
    ]


@torch.no_grad()
def copy_weights_back(models: list[nn.Module], weights: dict[str, Tensor]) -> None:
    """Each model gets its row of the weights."""
    for name, rows in weights.items():
        for model, row in zip(models, rows, strict=True):
            model.get_parameter(name).copy_(row)


def at_best_rates(runs: list[dict]) -> dict[str, list[dict]]:
    """Each contestant's runs at its best rate, in the order of the seeds."""
    best_runs = {}
    for name in dict.fromkeys(run["contestant"] for run in runs):
        contestant_runs = [run for run in runs if run["contestant"] == name]
        rates = {run["rate"] for run in contestant_runs}
        ends = {
            rate: sum(run["last_loss"] for run in contestant_runs if run["rate"] == rate)
            for rate in rates
        }
        best = min(ends, key=ends.__getitem__)
        rows = [run for run in contestant_runs if run["rate"] == best]
        best_runs[name] = sorted(rows, key=lambda run: run["seed"])
    return best_runs


@cache
def letters(text: str) -> NextLetters:
    """The task of the next letter, in this text."""
    return NextLetters(text, n=TEXT_LENGTH)


def text_model(text: str, make: Build, n_layers: int = 2, d_model: int = 32) -> VariantModel:
    """A model of the next letter with so many layers of one kind."""
    n_vocab = letters(text).n_vocab
    return VariantModel(n_vocab, n_vocab, [make] * n_layers, d_model)


def attention_maker(variant: LayerOptions, d_model: int = 32, n_heads: int = 2) -> Build:
    """A maker of attention layers."""
    return lambda: VariantAttention(d_model, n_heads, variant)


@cache
def contests(text: str) -> dict[str, Contest]:
    """All contests, on this text where they read one."""
    on_text = letters(text)
    held_out = partial(text_loss, text=text)
    norms = {"none": None, "each head": "head", "all heads": "width"}
    places = {
        "plain": LayerOptions(),
        "sink": LayerOptions(sink=True),
        "gate": LayerOptions(gate=True),
    }
    return {
        "norms": Contest(
            {
                n: partial(text_model, text, attention_maker(LayerOptions(norm=v)))
                for n, v in norms.items()
            },
            on_text,
            held_out,
            rates=(0.003, 0.01, 0.03, 0.1, 0.3),
            batch=8,
        ),
        "memory": memory_contest(16),
        "memories and whole layers": memories_and_whole_layers(16),
        "lengths": Contest(position_builds(text), on_text, partial(losses_by_place, text=text)),
        "latent": Contest(latent_builds(text), on_text, held_out, batch=8),
        "nothing": Contest(
            {
                n: partial(
                    VariantModel,
                    N_LETTERS + 1,
                    N_LETTERS + 1,
                    [attention_maker(v, n_heads=1)],
                    32,
                    fed=False,
                )
                for n, v in places.items()
            },
            partial(backcopy, n=48),
            backcopy_sinks,
            steps=600,
        ),
        "chosen keys": Contest(
            {"all": partial(text_model, text, attention_maker(LayerOptions()))},
            on_text,
            partial(choices_measured, task=on_text, test=lambda: on_text.held_out(100)),
            rates=(0.01,),
        ),
    }


def memory_contest(keys: int) -> Contest:
    """Who remembers the last value of keys that are written once or twice."""
    vocabulary = keys + 17
    builds: dict[str, Build] = {
        rule: partial(VariantModel, vocabulary, 16, [partial(VariantMemory, 32, 2, rule)], 32)
        for rule in RULES
    }
    builds["softmax"] = partial(
        VariantModel, vocabulary, 16, [partial(VariantAttention, 32, 2)], 32
    )
    task = partial(written_twice, keys=keys)
    return Contest(builds, task, partial(memory_right, task=task))


def memories_and_whole_layers(keys: int) -> Contest:
    """The same task for two layers: corrected memories too narrow for all keys, whole layers."""
    vocabulary = keys + 17
    narrow, wide = (partial(VariantMemory, 32, n_heads, "delta") for n_heads in (4, 2))
    whole = partial(VariantAttention, 32, 4)
    layers = {
        "two memories": [narrow, narrow],
        "memory, whole": [narrow, whole],
        "whole, memory": [whole, narrow],
        "two whole": [whole, whole],
        "two wider memories": [wide, wide],
    }
    task = partial(written_twice, keys=keys)
    builds: dict[str, Build] = {
        name: partial(VariantModel, vocabulary, 16, makers, 32) for name, makers in layers.items()
    }
    return Contest(builds, task, partial(memory_right, task=task))


def position_builds(text: str) -> dict[str, Build]:
    """Four layers on letters: all turned by positions, or every fourth not, or none."""
    n_vocab = letters(text).n_vocab
    turned, unturned = (attention_maker(LayerOptions(turned=turned)) for turned in (True, False))
    layers = {
        "all turned": [turned] * 4,
        "every fourth not": [turned, turned, turned, unturned],
        "none turned": [unturned] * 4,
    }
    return {
        name: partial(VariantModel, n_vocab, n_vocab, makers, 32) for name, makers in layers.items()
    }


def latent_builds(text: str) -> dict[str, Build]:
    """Layers that keep 128 numbers a token, or 32: in fewer heads, or a latent and a turned key."""
    wide = {"d_model": 64, "n_heads": 8}
    makers = {
        "8 key/value heads": attention_maker(LayerOptions(n_kv_heads=8), **wide),
        "2 key/value heads": attention_maker(LayerOptions(n_kv_heads=2), **wide),
        "latent 24 + 8": lambda: VariantLatent(64, 8, 24, 8),
    }
    return {name: partial(text_model, text, make, 2, 64) for name, make in makers.items()}


# --- what is measured -----------------------------------------------------------------------------


@torch.no_grad()
def text_loss(model: nn.Module, text: str) -> dict:
    """The loss on letters that no training saw, in nats; 99 where it is no number."""
    ids, answers = letters(text).held_out(200)
    loss = loss_and_right(model(ids), answers)["loss"]
    return {"held_out": loss if loss == loss else 99.0}


@torch.no_grad()
def losses_by_place(model: VariantModel, text: str) -> dict:
    """The loss in texts longer than those trained on, in nats, by pieces of half that length.

    The longest texts once more as controls: every distance that no training had is turned as the
    farthest that it had (``clipped``), or layers that are turned see only as many keys as in
    training (``window``). Of these the loss of the last letters, as many as a training text has.
    """
    task = NextLetters(text, n=TEXT_LENGTH * TIMES_LONGER)
    ids, answers = task.held_out(200)
    clipped = copy.deepcopy(model)
    layers: list[Any] = list(clipped.attentions)  # each a VariantAttention
    for layer in layers:
        layer.variant = replace(layer.variant, farthest=TEXT_LENGTH - 1)
    masks = [seen_keys(task.n, TEXT_LENGTH if layer.variant.turned else None) for layer in layers]
    outputs = {"places": model(ids), "clipped": clipped(ids), "window": model(ids, masks)}
    losses = {
        name: -logits.log_softmax(-1).gather(-1, answers[..., None])[..., 0].mean(0)
        for name, logits in outputs.items()
    }
    pieces = losses["places"].unflatten(0, (-1, TEXT_LENGTH // 2)).mean(-1)
    figures: dict[str, Any] = {"places": [round(loss, 4) for loss in pieces.tolist()]}
    for control in ("clipped", "window"):
        figures[control] = round(losses[control][-TEXT_LENGTH:].mean().item(), 4)
    return figures


@torch.no_grad()
def largest_score(model: VariantModel, ids: Tensor) -> list[float]:
    """The largest score, by its size, of each layer's heads."""
    layers: list[Any] = list(model.attentions)  # each a VariantAttention
    pairs = zip(layers, model.inputs(ids), strict=True)
    return [round(layer.scores(x).abs().max().item(), 2) for layer, x in pairs]


@torch.no_grad()
def first_token_shares(model: VariantModel, ids: Tensor, rows: Tensor) -> dict:
    """What the given rows put on the first token, on themselves and the one before, and the sums.

    rows: ``(b, n)``, True where a row counts. By layer and head; and the length of the first
    token's value over the others' mean, by layer.
    """
    means_by_kind: dict[str, list] = {
        "first": [],
        "self": [],
        "previous": [],
        "sum": [],
        "value": [],
    }
    layers: list[Any] = list(model.attentions)  # each a VariantAttention
    for layer, x in zip(layers, model.inputs(ids), strict=True):
        weights = layer.weights(x)  # (b, h, n, n)
        before = torch.zeros_like(weights[..., 0])
        before[..., 1:] = weights.diagonal(-1, -2, -1)
        measured = {
            "first": weights[..., 0],
            "self": weights.diagonal(0, -2, -1),
            "previous": before,
            "sum": weights.sum(-1),
        }
        for name, values in measured.items():
            means = [values[:, h][rows].mean().item() for h in range(values.shape[1])]
            means_by_kind[name].append([round(mean, 4) for mean in means])
        length = layer.W_v(x).norm(dim=-1)
        means_by_kind["value"].append(round((length[:, 0].mean() / length[:, 1:].mean()).item(), 4))
    return means_by_kind


def backcopy_sinks(model: VariantModel) -> dict:
    """The loss, and what rows put on the first token where there is nothing to look for, or is."""
    ids, answers = backcopy(400, torch.Generator().manual_seed(1000), n=48)
    late = (torch.arange(ids.shape[1]) >= 16).expand(ids.shape)
    asking = ids < N_TRIGGERS
    with torch.no_grad():
        measured = loss_and_right(model(ids), answers)
    return measured | {
        "nothing": first_token_shares(model, ids, late & ~asking),
        "asking": first_token_shares(model, ids, late & asking),
    }


@torch.no_grad()
def memory_right(model: nn.Module, task: Callable) -> dict:
    """The share of right answers, for keys that were written twice and once."""
    ids, answers = task(2000, torch.Generator().manual_seed(1000))
    right = (model(ids)[:, -answers.shape[1] :].argmax(-1) == answers).float().mean(0)
    half = len(right) // 2
    return {
        "twice": round(right[:half].mean().item(), 4),
        "once": round(right[half:].mean().item(), 4),
    }


def choices_measured(model: VariantModel, task: Callable, test: Callable) -> dict:
    """Losses by who chooses the keys, and how many."""
    indexers = train_indexers(model, task, 32, steps=300, batch=16, rate=0.01)
    ids, answers = test()
    return {"rows": losses_by_choice(model, indexers, ids, answers, KS)}
