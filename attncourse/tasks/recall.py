"""Looking things up in a sequence of pairs: one asks (recall), or everyone asks (ring).

Sources: Graves et al. (2014), Neural Turing Machines, section 4.3; Ba et al. (2016), Using Fast
Weights to Attend to the Recent Past, section 4.1.
"""

import torch
from torch import Tensor, nn

from attncourse.kqv import attention_weights

# Which of a token's 26 features is what: its letter (or name), its digit, the letter it asks for.
LETTERS, DIGITS, ASKED = slice(0, 8), slice(8, 18), slice(18, 26)


def shuffled_numbers(batch: int, n: int, generator: torch.Generator) -> Tensor:
    """Return eight different numbers below n, in random order: ``(batch, 8)``."""
    return torch.rand(batch, n, generator=generator).argsort(dim=1)[:, :8]


def unit_rows(ids: Tensor, n: int) -> Tensor:
    """Return rows of the unit matrix: 1 at the place of the id, ``(..., n)``."""
    return torch.eye(n)[ids]


def recall(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return eight pairs of a letter and a digit, then a question: *c5 a1 h7 … c?*, answer 5.

    Returns x ``(batch, 9, 26)`` and the digits asked for, ``(batch, 1)``.
    """
    letters, digits = shuffled_numbers(batch, 8, generator), shuffled_numbers(batch, 10, generator)
    pick = torch.randint(8, (batch, 1), generator=generator)
    x = torch.zeros(batch, 9, 26)
    x[:, :8, LETTERS] = unit_rows(letters, 8)
    x[:, :8, DIGITS] = unit_rows(digits, 10)
    x[:, 8:, ASKED] = unit_rows(letters.gather(1, pick), 8)
    return x, digits.gather(1, pick)


def ring(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return eight tokens in a ring: each has a name, a digit, and the next one's name.

    Returns x ``(batch, 8, 26)`` and, for every token, the digit of the one it points at,
    ``(batch, 8)``.
    """
    names, digits = shuffled_numbers(batch, 8, generator), shuffled_numbers(batch, 10, generator)
    features = (names, 8), (digits, 10), (names.roll(-1, dims=1), 8)
    x = torch.cat([unit_rows(what, n) for what, n in features], dim=-1)
    return x, digits.roll(-1, dims=1)


class Views(nn.Module):
    """Attention to the other tokens, with one learned view for each group of roles.

    groups: ``"q k v"`` for three views, ``"qk v"`` where query and key are one, ``"qkv"`` for one
    in all roles. No token attends to itself, since a shared view would find itself first of all.
    """

    def __init__(self, groups: str, d: int = 16, d_model: int = 26):
        super().__init__()
        if sorted(groups.replace(" ", "")) != ["k", "q", "v"]:
            raise ValueError(f"groups: expected each of q, k and v once, got {groups!r}")
        self.views = nn.ModuleDict(
            {group: nn.Linear(d_model, d, bias=False) for group in groups.split()}
        )

    def view(self, role: str, x: Tensor) -> Tensor:
        """Return the view of x, ``(batch, n, d)``, that serves in this role."""
        return self.views[next(group for group in self.views if role in group)](x)

    def weights(self, x: Tensor) -> Tensor:
        """Return the attention map, ``(batch, n, n)``."""
        others = ~torch.eye(x.shape[-2], dtype=torch.bool)  # (n, n)
        return attention_weights(self.view("q", x), self.view("k", x), others)

    def forward(self, x: Tensor) -> Tensor:
        """Return the blends, ``(batch, n, d)``."""
        return self.weights(x) @ self.view("v", x)
