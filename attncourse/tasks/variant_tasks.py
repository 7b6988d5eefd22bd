"""What chapter 21's small models are trained on: letters of a text, and two tasks of recall."""

from collections import Counter

import torch
from torch import Tensor

UNASKED = -100  # what cross-entropy leaves out


class NextLetters:
    """The letters of a text, to be read in windows; what comes next is to be named.

    Letters that occur less than ``rare`` times are one. Every ``held``-th piece of 2,000 letters
    is kept for the test.
    """

    def __init__(self, text: str, n: int = 128, rare: int = 50, held: int = 10):
        counts = Counter(text)
        self.letters = sorted(c for c, times in counts.items() if times >= rare)
        known = {c: i + 1 for i, c in enumerate(self.letters)}
        ids = torch.tensor([known.get(c, 0) for c in text])
        pieces = ids[: len(ids) // 2000 * 2000].unflatten(0, (-1, 2000))
        test = torch.arange(len(pieces)) % held == held - 1
        self.n, self.n_vocab = n, len(self.letters) + 2  # the last stands before every window
        self.train, self.test = pieces[~test], pieces[test]

    def __call__(self, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return ids ``(batch, n)`` and the letters that come next, from pieces for training."""
        return self.windows(self.train, batch, generator)

    def windows(self, pieces: Tensor, batch: int, generator: torch.Generator):
        """Return windows at places that the generator draws."""
        which = torch.randint(len(pieces), (batch, 1), generator=generator)
        start = torch.randint(2001 - self.n, (batch, 1), generator=generator)
        rows = pieces[which, start + torch.arange(self.n)]
        first = torch.full((batch, 1), self.n_vocab - 1)
        return torch.cat([first, rows[:, :-1]], dim=1), rows

    def held_out(self, batch: int, seed: int = 1000) -> tuple[Tensor, Tensor]:
        """Return windows from the pieces for the test."""
        return self.windows(self.test, batch, torch.Generator().manual_seed(seed))


N_LETTERS, N_TRIGGERS = 32, 3


def backcopy_law(seed: int = 0) -> Tensor:
    """Return which letter follows which, about four likely ones each, ``(letters, letters)``."""
    generator = torch.Generator().manual_seed(seed)
    return (4 * torch.randn(N_LETTERS, N_LETTERS, generator=generator)).softmax(-1)


def backcopy(batch: int, generator: torch.Generator, n: int = 64) -> tuple[Tensor, Tensor]:
    """Return a first token, always the same, then letters, each by a law from the one before.

    After each of the first N_TRIGGERS letters the letter *before* it comes again. Ids ``(batch,
    n)`` and what comes next. Source: Guo et al. (2024), Active-Dormant Attention Heads.
    """
    law = backcopy_law()
    rows = torch.full((batch, n + 1), N_LETTERS)
    rows[:, 1] = torch.randint(N_LETTERS, (batch,), generator=generator)
    for t in range(2, n + 1):
        last = rows[:, t - 1]
        new = torch.multinomial(law[last], 1, generator=generator)[:, 0]
        again = (last < N_TRIGGERS) & (rows[:, t - 2] < N_LETTERS)
        rows[:, t] = torch.where(again, rows[:, t - 2], new)
    return rows[:, :-1], rows[:, 1:]


def written_twice(
    batch: int, generator: torch.Generator, keys: int = 16, values: int = 16, n_asked: int = 8
) -> tuple[Tensor, Tensor]:
    """Return pairs of a key and a value, twice as many as keys, then keys that are asked for.

    Each key is written twice or, for every other one, once; the last value counts. A token has two
    ids, ``(batch, 3 · keys / 2 + n_asked, 2)``; what has no value says so. Answers ``(batch,
    n_asked)``; the first half of what is asked was written twice.
    """
    half = keys // 2
    names = torch.rand(batch, keys, generator=generator).argsort(1)  # which are written twice
    written = torch.cat([names, names[:, :half]], dim=1)  # (b, keys + half)
    order = torch.rand(written.shape, generator=generator).argsort(1)
    written = written.gather(1, order)
    value = torch.randint(values, written.shape, generator=generator)
    pick = torch.rand(batch, 2, half, generator=generator).argsort(-1)[..., : n_asked // 2]
    asks = torch.cat(
        [names[:, :half].gather(1, pick[:, 0]), names[:, half:].gather(1, pick[:, 1])], 1
    )
    same = written[:, None] == asks[..., None]  # (b, n_asked, writes)
    last = (same * torch.arange(1, written.shape[1] + 1)).argmax(-1)
    answers = value.gather(1, last)
    nothing = torch.full_like(asks, keys + values)
    pairs = torch.stack([written, keys + value], dim=-1)
    return torch.cat([pairs, torch.stack([asks, nothing], dim=-1)], dim=1), answers
