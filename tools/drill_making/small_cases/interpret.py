"""Small cases of chapter 14: one layer, one or two heads of one feature, two or three tokens."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from attncourse.checks.callers.ablation import gpt_of, shapes_of
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor
from attncourse.gpt import GPT, GPTConfig

N_LAYERS, SHE_ID, HE_ID = 2, 0, 2
MODEL_SIZES = {
    "n_vocab": 3,
    "max_length": 3,
    "d_model": 2,
    "n_heads": 2,
    "n_layers": N_LAYERS,
    "d_ff": 1,
}
PLAIN_MODEL_NOTE = (
    "`W_q` and `W_k` are 0, so that every token attends evenly to itself and those before it; "
    "`W_v` is the identity, the vectors of the positions are 0"
)


# --- maps ----------------------------------------------------------------------------------------


def head_scores_case(pattern: Sequence, *heads: Sequence) -> Case:
    """Return the case of one layer with some heads, and a pattern."""
    return Case((tensor([heads]), torch.tensor(pattern).bool()))


FIRST_MAP = ((1.0, 0.0, 0.0), (0.8, 0.2, 0.0), (0.5, 0.2, 0.3))
SECOND_MAP = ((1.0, 0.0, 0.0), (0.3, 0.7, 0.0), (0.1, 0.4, 0.5))
FIRST_TOKEN_PATTERN = ((0, 0, 0), (1, 0, 0), (1, 0, 0))
EARLIER_TOKENS_PATTERN = ((0, 0, 0), (1, 0, 0), (1, 1, 0))
LAST_QUERY_PATTERN = ((0, 0, 0), (0, 0, 0), (1, 1, 0))
EMPTY_PATTERN = ((0, 0, 0), (0, 0, 0), (0, 0, 0))
EVERY_KEY_PATTERN = ((1, 1, 1), (1, 0, 0), (0, 0, 0))


def head_scores_cases() -> list[Case]:
    """Return cases of ``head_scores``: two heads of three tokens."""
    marked_patterns = (
        FIRST_TOKEN_PATTERN,
        EARLIER_TOKENS_PATTERN,
        LAST_QUERY_PATTERN,
        EMPTY_PATTERN,
        EVERY_KEY_PATTERN,
    )
    return [head_scores_case(pattern, FIRST_MAP, SECOND_MAP) for pattern in marked_patterns]


def rollout_cases() -> list[Case]:
    """Return cases of ``rollout``: two layers of a head or two, two or three tokens."""
    first, second = ((1.0, 0.0), (0.5, 0.5)), ((1.0, 0.0), (1.0, 0.0))
    third, fourth = ((1.0, 0.0), (0.25, 0.75)), ((1.0, 0.0), (0.0, 1.0))
    return [
        Case((tensor([[first, second], [third, fourth]]),)),
        Case((tensor([[FIRST_MAP], [SECOND_MAP]]),)),
        Case((tensor([[SECOND_MAP], [FIRST_MAP]]),)),
    ]


# --- pronouns ------------------------------------------------------------------------------------


def call_on_lookup_model(implementation: Callable, table: Any, contexts: list) -> Any:
    """Return what the implementation makes of a model that looks its logits up by the token."""

    class Lookup(torch.nn.Module):
        def forward(self, ids):
            return table[ids]  # (..., n, n_vocab)

    return implementation(Lookup(), contexts, SHE_ID, HE_ID)


def pronoun_bias_cases() -> list[Case]:
    """Return cases of ``pronoun_bias``: the logits after a token are a row of a table."""
    table = tensor([[1, 0, 2], [3, 1, 0], [0, 1, 1]])
    context_lists = ([[1, 0], [0, 2, 1]], [[2, 1], [1, 0, 2]], [[0, 1], [2, 0], [0, 1, 2]])
    return [
        Case(
            (table, [torch.tensor(ids) for ids in contexts]),
            use=call_on_lookup_model,
            note="the model's logits after token i are row i of the table",
            shown=f"pronoun_bias(model, contexts={contexts}, she={SHE_ID}, he={HE_ID})",
        )
        for contexts in context_lists
    ]


# --- a head less ---------------------------------------------------------------------------------


def output_layers_of_both(implementation: Callable, call: tuple, **arrays: Any) -> dict[str, Any]:
    """Return the layers W_o of a changed copy, and of the model that was handed over."""
    model, changed = model_and_copy(implementation, call, arrays)
    layers = {}
    for name, owner in (("the copy", changed), ("the model, afterwards", model)):
        output_layers = [block.attention.W_o for block in owner.blocks]
        layers[f"W_o.weight of each layer, {name}"] = torch.stack(
            [W_o.weight for W_o in output_layers]
        )
        if owner is changed:
            layers[f"W_o.bias of each layer, {name}"] = torch.stack(
                [W_o.bias for W_o in output_layers]
            )
    return {name: value.detach().double() for name, value in layers.items()}


def logits_of_both(
    implementation: Callable, call: tuple, text: Any, **arrays: Any
) -> dict[str, Any]:
    """Return the logits of a changed copy for a text, and of the model that was handed over."""
    model, changed = model_and_copy(implementation, call, arrays)
    with torch.no_grad():
        return {"the copy's logits": changed(text), "the model's, afterwards": model(text)}


def model_and_copy(implementation: Callable, call: tuple, arrays: dict[str, Any]) -> tuple:
    """Return a model with plain weights, and what the implementation makes of it.

    ``arrays`` are the vectors of its tokens, W_o where it is not the identity, and perhaps ids.
    """
    d_model = arrays.get("tokens", arrays.get("W_o_weight")).shape[-1]
    config: dict[str, Any] = MODEL_SIZES | {"d_model": d_model}
    output_defaults = {"weight": torch.eye(d_model).double(), "bias": torch.zeros(d_model).double()}
    state = {}
    for name, shape in shapes_of(GPT, GPTConfig(**config)).items():
        value = torch.zeros(shape).double()
        owner, _, part = name.rpartition(".")
        if part == "gain":
            value = value + 1
        elif name.endswith("W_v.weight"):
            value = torch.eye(d_model).double()
        elif owner.endswith("W_o"):
            value = arrays.get(f"W_o_{part}", output_defaults[part]).clone()
        elif name == "tokens.weight":
            value = arrays.get("tokens", value).clone()
        state[name] = value
    model = gpt_of(config, state)
    ids = [arrays["ids"]] if "ids" in arrays else []
    return model, implementation(model, *call, *ids)


def ablate_case(call: tuple, use: Callable, note: str, arrays: dict[str, Any]) -> Case:
    """Return the case of one head less, for what ``use`` looks at."""
    layer, head, *how = call
    options_text = f", how={how[0]!r}, ids=ids" if how else ""
    call_text = "(text)" if use is logits_of_both else ""
    return Case(
        kwargs={"call": call} | arrays,
        use=use,
        note=f"{note}; {PLAIN_MODEL_NOTE}" if "tokens" in arrays else note,
        shown=f"ablate(model, layer={layer}, head={head}{options_text}){call_text}",
    )


def ablate_cases() -> list[Case]:
    """Return cases of ``ablate``: its layers W_o, then the logits of a model of four features."""
    layer_arrays = {
        "tokens": tensor([[2, 0], [0, 2], [3, 1]]),
        "W_o_weight": tensor([[1, 2], [3, 4]]),
        "W_o_bias": tensor([5, 6]),
    }
    logit_arrays = {
        "tokens": tensor([[4, 0, 1, 0], [0, 2, 0, 1], [1, 1, 3, 0]]),
        "text": torch.tensor([0, 1]),
    }
    ids = {"ids": torch.tensor([[0, 0, 1], [2, 0, 0]])}
    layers_note = "two layers of two heads with one feature each, both with this `W_o`"
    logits_note = (
        "two layers of two heads with two features each, and the logits for `text`; `W_o` is the "
        "identity, the feed-forward layers add nothing, `tokens` is the last layer, too"
    )
    places = ((0, 0), (1, 0), (0, 1), (1, 1))
    cases = []
    for use, note, arrays in (
        (output_layers_of_both, layers_note, layer_arrays),
        (logits_of_both, logits_note, logit_arrays),
    ):
        shown_arrays = {
            name: value
            for name, value in arrays.items()
            if name != "tokens" or use is logits_of_both
        }
        cases += [ablate_case(place, use, note, shown_arrays) for place in places]
        cases += [ablate_case((*place, "mean"), use, note, arrays | ids) for place in places]
    return cases


CASES = {
    "interpret.head_scores": head_scores_cases,
    "interpret.rollout": rollout_cases,
    "interpret.pronoun_bias": pronoun_bias_cases,
    "interpret.ablate": ablate_cases,
}
