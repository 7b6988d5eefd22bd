"""Small cases of chapter 14: one layer, one or two heads of one feature, two or three tokens."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from attncourse.checks.callers.ablation import gpt_of, shapes_of
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor
from attncourse.gpt import GPT, GPTConfig

LAYERS, SHE, HE = 2, 0, 2
SIZES = {"n_vocab": 3, "max_length": 3, "d_model": 2, "n_heads": 2, "n_layers": LAYERS, "d_ff": 1}
PLAIN = (
    "`W_q` and `W_k` are 0, so that every token attends evenly to itself and those before it; "
    "`W_v` is the identity, the vectors of the positions are 0"
)


# --- maps ----------------------------------------------------------------------------------------


def maps_and(pattern: Sequence, *heads: Sequence) -> Case:
    """Return the case of one layer with some heads, and a pattern."""
    return Case((tensor([heads]), torch.tensor(pattern).bool()))


STRAIGHT = ((1.0, 0.0, 0.0), (0.8, 0.2, 0.0), (0.5, 0.2, 0.3))
BACK = ((1.0, 0.0, 0.0), (0.3, 0.7, 0.0), (0.1, 0.4, 0.5))
FIRST_TOKEN = ((0, 0, 0), (1, 0, 0), (1, 0, 0))
ALL_BEFORE = ((0, 0, 0), (1, 0, 0), (1, 1, 0))
ITSELF_TOO = ((0, 0, 0), (0, 0, 0), (1, 1, 0))
NOTHING = ((0, 0, 0), (0, 0, 0), (0, 0, 0))
EVERY_KEY = ((1, 1, 1), (1, 0, 0), (0, 0, 0))


def patterns() -> list[Case]:
    """Return cases of ``head_scores``: two heads of three tokens."""
    every = (FIRST_TOKEN, ALL_BEFORE, ITSELF_TOO, NOTHING, EVERY_KEY)
    return [maps_and(pattern, STRAIGHT, BACK) for pattern in every]


def two_layers() -> list[Case]:
    """Return cases of ``rollout``: two layers of a head or two, two or three tokens."""
    first, second = ((1.0, 0.0), (0.5, 0.5)), ((1.0, 0.0), (1.0, 0.0))
    third, fourth = ((1.0, 0.0), (0.25, 0.75)), ((1.0, 0.0), (0.0, 1.0))
    return [
        Case((tensor([[first, second], [third, fourth]]),)),
        Case((tensor([[STRAIGHT], [BACK]]),)),
        Case((tensor([[BACK], [STRAIGHT]]),)),
    ]


# --- pronouns ------------------------------------------------------------------------------------


def looked_up(implementation: Callable, table: Any, contexts: list) -> Any:
    """Return what the implementation makes of a model that looks its logits up by the token."""

    class Lookup(torch.nn.Module):
        def forward(self, ids):
            return table[ids]  # (..., n, n_vocab)

    return implementation(Lookup(), contexts, SHE, HE)


def pronouns() -> list[Case]:
    """Return cases of ``pronoun_bias``: the logits after a token are a row of a table."""
    table = tensor([[1, 0, 2], [3, 1, 0], [0, 1, 1]])
    every = ([[1, 0], [0, 2, 1]], [[2, 1], [1, 0, 2]], [[0, 1], [2, 0], [0, 1, 2]])
    return [
        Case(
            (table, [torch.tensor(ids) for ids in contexts]),
            use=looked_up,
            note="the model's logits after token i are row i of the table",
            shown=f"pronoun_bias(model, contexts={contexts}, she={SHE}, he={HE})",
        )
        for contexts in every
    ]


# --- a head less ---------------------------------------------------------------------------------


def layers_out(implementation: Callable, call: tuple, **arrays: Any) -> dict[str, Any]:
    """Return the layers W_o of a changed copy, and of the model that was handed over."""
    model, changed = model_and_copy(implementation, call, arrays)
    said = {}
    for name, one in (("the copy", changed), ("the model, afterwards", model)):
        outs = [block.attention.W_o for block in one.blocks]
        said[f"W_o.weight of each layer, {name}"] = torch.stack([W_o.weight for W_o in outs])
        if one is changed:
            said[f"W_o.bias of each layer, {name}"] = torch.stack([W_o.bias for W_o in outs])
    return {name: value.detach().double() for name, value in said.items()}


def logits_out(implementation: Callable, call: tuple, text: Any, **arrays: Any) -> dict[str, Any]:
    """Return the logits of a changed copy for a text, and of the model that was handed over."""
    model, changed = model_and_copy(implementation, call, arrays)
    with torch.no_grad():
        return {"the copy's logits": changed(text), "the model's, afterwards": model(text)}


def model_and_copy(implementation: Callable, call: tuple, arrays: dict[str, Any]) -> tuple:
    """Return a model with plain weights, and what the implementation makes of it.

    ``arrays`` are the vectors of its tokens, W_o where it is not the identity, and perhaps ids.
    """
    d_model = arrays.get("tokens", arrays.get("W_o_weight")).shape[-1]
    config: dict[str, Any] = SIZES | {"d_model": d_model}
    outs = {"weight": torch.eye(d_model).double(), "bias": torch.zeros(d_model).double()}
    state = {}
    for name, shape in shapes_of(GPT, GPTConfig(**config)).items():
        value = torch.zeros(shape).double()
        owner, _, part = name.rpartition(".")
        if part == "gain":
            value = value + 1
        elif name.endswith("W_v.weight"):
            value = torch.eye(d_model).double()
        elif owner.endswith("W_o"):
            value = arrays.get(f"W_o_{part}", outs[part]).clone()
        elif name == "tokens.weight":
            value = arrays.get("tokens", value).clone()
        state[name] = value
    model = gpt_of(config, state)
    ids = [arrays["ids"]] if "ids" in arrays else []
    return model, implementation(model, *call, *ids)


def head_less(call: tuple, use: Callable, note: str, arrays: dict[str, Any]) -> Case:
    """Return the case of one head less, for what ``use`` looks at."""
    layer, head, *how = call
    given = f", how={how[0]!r}, ids=ids" if how else ""
    text = "(text)" if use is logits_out else ""
    return Case(
        kwargs={"call": call} | arrays,
        use=use,
        note=f"{note}; {PLAIN}" if "tokens" in arrays else note,
        shown=f"ablate(model, layer={layer}, head={head}{given}){text}",
    )


def one_head_less() -> list[Case]:
    """Return cases of ``ablate``: its layers W_o, then the logits of a model of four features."""
    few = {
        "tokens": tensor([[2, 0], [0, 2], [3, 1]]),
        "W_o_weight": tensor([[1, 2], [3, 4]]),
        "W_o_bias": tensor([5, 6]),
    }
    more = {
        "tokens": tensor([[4, 0, 1, 0], [0, 2, 0, 1], [1, 1, 3, 0]]),
        "text": torch.tensor([0, 1]),
    }
    ids = {"ids": torch.tensor([[0, 0, 1], [2, 0, 0]])}
    said = "two layers of two heads with one feature each, both with this `W_o`"
    logits = (
        "two layers of two heads with two features each, and the logits for `text`; `W_o` is the "
        "identity, the feed-forward layers add nothing, `tokens` is the last layer, too"
    )
    places = ((0, 0), (1, 0), (0, 1), (1, 1))
    cases = []
    for use, note, arrays in ((layers_out, said, few), (logits_out, logits, more)):
        bare = {
            name: value for name, value in arrays.items() if name != "tokens" or use is logits_out
        }
        cases += [head_less(place, use, note, bare) for place in places]
        cases += [head_less((*place, "mean"), use, note, arrays | ids) for place in places]
    return cases


CASES = {
    "interpret.head_scores": patterns,
    "interpret.rollout": two_layers,
    "interpret.pronoun_bias": pronouns,
    "interpret.ablate": one_head_less,
}
