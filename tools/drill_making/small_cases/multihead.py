"""Small cases of chapter 9: two heads of a feature or two, few whole weights."""

from collections.abc import Callable
from typing import Any

import torch

from attncourse.checks.callers.conversions import module_of, shared_by_made, state_of
from attncourse.checks.exercise import Case
from attncourse.checks.writing.modules import tensor
from attncourse.multihead import MultiHeadAttention
from drill_making.small_cases.modules import plain_case


def split_heads_cases() -> list[Case]:
    """Return cases of ``split_heads``: a width that two does not divide."""
    return [Case((tensor(((1, 2, 3), (4, 5, 6))), 2), raises=ValueError)]


def multi_head_attention_cases() -> list[Case]:
    """Return cases of ``MultiHeadAttention``: one head of two features, two of two."""
    two, four = tensor(((1, 0), (2, 1))), tensor(((1, 0, 2, 0), (0, 1, 1, 0)))
    return [
        plain_case(MultiHeadAttention, (2, 1), {"query": two}),
        plain_case(MultiHeadAttention, (2, 1), {"query": two}, W_v=3.0),
        plain_case(MultiHeadAttention, (4, 2), {"query": four}),
        plain_case(MultiHeadAttention, (4, 2), {"query": four}, W_v=3.0),
    ]


def converted_head_parts(implementation: Callable, **tensors: Any) -> dict[str, Any]:
    """Return the number of heads, and W_q, of the module made of one with a class a head."""
    naive = module_of({name: value for name, value in tensors.items() if "." in name})
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        made = implementation(naive)
    state = state_of(made)
    made_parts = {"n_heads of the result": getattr(made, "n_heads", None)}
    for name in ("W_q.weight", "W_q.bias"):
        if name in state:
            made_parts[f"{name} of the result"] = state[name].detach().double()
    return made_parts


def naive_to_batched_cases() -> list[Case]:
    """Return cases of ``naive_to_batched``: three heads of one feature; what is shared, and W_q."""
    state = {}
    for i in range(3):
        for name, factor in (("W_q", 1), ("W_k", 10), ("W_v", 100)):
            state[f"heads.{i}.{name}.weight"] = factor * tensor([[3 * i + 1, 3 * i + 2, 3 * i + 3]])
            state[f"heads.{i}.{name}.bias"] = factor * tensor([i + 1])
    state["W_o.weight"], state["W_o.bias"] = tensor(torch.eye(3)), tensor((7, 8, 9))
    queries = torch.stack([state[f"heads.{i}.W_q.weight"] for i in range(3)])
    biases = torch.stack([state[f"heads.{i}.W_q.bias"] for i in range(3)])
    sharing_case = Case(
        kwargs=state,
        use=shared_by_made,
        note="the tensors of `naive` that the result shares with it: changing one changes both",
        shown="naive_to_batched(naive), naive = MultiHeadNaive(3, 3)",
    )
    return [
        sharing_case,
        Case(
            kwargs=state | {"weights_of_W_q": queries, "biases_of_W_q": biases},
            use=converted_head_parts,
            note="`W_q` of each head of `naive` above each other; what is not filled is random",
            shown="naive_to_batched(naive), naive = MultiHeadNaive(3, 3)",
        ),
    ]


CASES = {
    "multihead.split_heads": split_heads_cases,
    "multihead.MultiHeadAttention": multi_head_attention_cases,
    "multihead.naive_to_batched": naive_to_batched_cases,
}
