"""Two lookups at once: every token of a ring asks two others, and must keep the answers apart.

After chapter 5's ring (``attncourse.tasks.recall``); the colours are for answers that cannot be
taken apart once they are added.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from attncourse.multihead import MultiHeadAttention, MultiHeadNaive
from attncourse.tasks.recall import shuffled_numbers, unit_rows

HOPS = 1, 3  # around the ring, from a token to the first and the second that it asks
D_MODEL = 32


def two_lookups(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return eight tokens *c5→a,h*: called c, carrying 5, asking for the digits of a and h.

    Returns x ``(batch, 8, 34)``, features of the name (8), the digit (10) and the two names asked
    for (8 each), and the digits asked for, ``(batch, 8, 2)``.
    """
    names, digits = shuffled_numbers(batch, 8, generator), shuffled_numbers(batch, 10, generator)
    names_asked = [names.roll(-step, dims=1) for step in HOPS]
    features = (names, 8), (digits, 10), *((name, 8) for name in names_asked)
    x = torch.cat([unit_rows(what, n) for what, n in features], dim=-1)
    return x, torch.stack([digits.roll(-step, dims=1) for step in HOPS], dim=-1)


def two_colours(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the same with a colour, three numbers from −1 to 1, in place of each digit.

    Returns x ``(batch, 8, 27)``, features of the name (8), the two names asked for (8 each) and the
    colour (3), and the colours asked for, ``(batch, 8, 2, 3)``.
    """
    names = shuffled_numbers(batch, 8, generator)
    colours = 2 * torch.rand(batch, 8, 3, generator=generator) - 1
    x = [unit_rows(names.roll(-step, dims=1), 8) for step in (0, *HOPS)]
    answers = [colours.roll(-step, dims=1) for step in HOPS]
    return torch.cat([*x, colours], dim=-1), torch.stack(answers, dim=-2)


def explained(output: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean squared error, and the share of a colour's variance that answers explain.

    That is 1 for the right colour and 0, on average, for always answering the mean. Both arguments
    are ``(batch, 8, 2, 3)``; returns a number and ``(batch, 8, 2)``.
    """
    error = (output - answers).square()
    return error.mean(), 1 - 3 * error.mean(dim=-1)


def answering(attention: nn.Module, hidden: int = 0, task=two_lookups) -> nn.Sequential:
    """Return a model: 32 features, attention, and a read-out, linear or with hidden units.

    It answers one of the two tasks: logits ``(batch, 8, 2, 10)`` or colours ``(batch, 8, 2, 3)``.
    """
    d_in, n_out = (34, 10) if task is two_lookups else (27, 3)
    last = nn.Linear(hidden or D_MODEL, 2 * n_out)
    read_out = [nn.Linear(D_MODEL, hidden), nn.ReLU(), last] if hidden else [last]
    return nn.Sequential(
        nn.Linear(d_in, D_MODEL), attention, *read_out, nn.Unflatten(-1, (2, n_out))
    )


@torch.no_grad()
def answers(model: nn.Module, sequences: int = 2000, seed: int = 99) -> tuple[Tensor, Tensor]:
    """Return the model's answers on new sequences, and the right ones: ``(sequences, 8, 2)``."""
    x, right = two_lookups(sequences, torch.Generator().manual_seed(seed))
    return model(x).argmax(dim=-1), right


@torch.no_grad()
def shares(model: Any, sequences: int = 2000, seed: int = 99) -> Tensor:
    """Return each head's mean weight on the token asked about first and second, ``(h, 2)``."""
    x, _ = two_lookups(sequences, torch.Generator().manual_seed(seed))
    weights = model[1].weights(model[0](x))  # (sequences, h, 8, 8)
    i = torch.arange(8)
    each = [weights[..., i, (i + step) % 8].mean(dim=(0, -1)) for step in HOPS]
    return torch.stack(each, dim=-1)


def labels(x: Tensor) -> list[str]:
    """Return the eight tokens of one sequence, ``(8, 34)``, in the form *c5→a,h*."""
    names, digit, first, second = (part.argmax(-1).tolist() for part in x.split((8, 10, 8, 8), -1))
    letter = "abcdefgh"
    return [
        f"{letter[i]}{what}→{letter[j]},{letter[k]}"
        for i, what, j, k in zip(names, digit, first, second, strict=True)
    ]


def without(model: Any, off: list[int]) -> nn.Sequential:
    """Return a copy of the model whose W_o takes nothing from these heads."""
    model = copy.deepcopy(model)
    by_head = model[1].W_o.weight.data.unflatten(1, (model[1].n_heads, -1))
    by_head[:, off] = 0  # a view: (d_model, h, d_head)
    return model


def start_alike(naive: MultiHeadNaive, same_place: bool = True) -> MultiHeadNaive:
    """Give every head the numbers of head 0, and if ``same_place`` its rows of W_o too."""
    first, *others = naive.heads
    for head in others:
        head.load_state_dict(first.state_dict())
    if same_place:
        by_head = naive.W_o.weight.data.unflatten(1, (len(naive.heads), -1))
        by_head[:] = by_head[:, :1].clone()
    return naive


def apart(naive: MultiHeadNaive) -> float:
    """Return the largest difference between numbers of head 0 and numbers of another head."""
    first, *others = (torch.cat([p.flatten() for p in h.parameters()]) for h in naive.heads)
    return max((first - other).abs().max().item() for other in others)


def one_key_for_all(batched: MultiHeadAttention) -> MultiHeadAttention:
    """Return a copy in which every head compares with the keys of head 0."""
    batched = copy.deepcopy(batched)
    for p in batched.W_k.parameters():
        p.data = p.data.chunk(batched.n_kv_heads)[0].repeat(batched.n_kv_heads, *[1] * (p.ndim - 1))
    return batched
