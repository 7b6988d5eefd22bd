"""After chapter 8: a translator of dates, *thursday, the 3rd of march 1999* to *1999-03-03*.

A recurrent network reads the characters, attention pooling sums them up, and for each character
that another one writes, cross-attention looks where to read. After Bahdanau et al. (2015); see
``attncourse.tasks.dates``.
"""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attncourse.milestones.dates_gates import ISO_LENGTH, TRAINED, UNTRAINED, dates, sample_dates
from attncourse.milestones.dates_picture import draw_dates
from attncourse.milestones.milestone import Milestone
from attncourse.milestones.parts import Parts
from attncourse.tasks.dates import ISO, WRITTEN
from attncourse.tasks.training import train

D_EMBED, D, D_K, STEPS, BATCH, RATE = 16, 48, 24, 200, 40, 0.01
USES = (
    "kqv.attention_scores", "kqv.scaled_dot_product_attention",
    "cross_attention.AttentionPooling", "cross_attention.CrossAttention",
)  # fmt: skip


class Translator(nn.Module):
    """An encoder–decoder over characters. Ids are ``characters.to_ids``'s; 0 pads and begins."""

    def __init__(self, parts: Parts):
        super().__init__()
        self.read = nn.Embedding(len(WRITTEN) + 1, D_EMBED)
        self.written = nn.Embedding(len(ISO) + 1, D_EMBED)
        self.encoder = nn.GRU(D_EMBED, D // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(D_EMBED, D, batch_first=True)
        self.pool = parts["cross_attention.AttentionPooling"](D)
        self.cross = parts["cross_attention.CrossAttention"](D, D, D_K, D)
        self.join, self.out = nn.Linear(2 * D, D), nn.Linear(D, len(ISO) + 1)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the logits ``(b, t, 14)`` for each of t characters.

        They are made from the source and from the right characters before each.
        """
        states, mask = self.encode(source)
        asks = self.asks(states, mask, target[:, :-1])
        return self.say(asks, self.cross(asks, states, mask))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return every character's state ``(b, n, d)`` and what is no padding ``(b, 1, n)``."""
        lengths = (source != 0).sum(dim=1)
        packed = pack_padded_sequence(
            self.read(source), lengths, batch_first=True, enforce_sorted=False
        )  # so that neither direction reads the padding
        states, _ = pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=source.shape[1]
        )
        return states, (source != 0).unsqueeze(1)

    def asks(self, states: Tensor, mask: Tensor, before: Tensor) -> Tensor:
        """Return the decoder's state ``(b, t, d)`` for each character: it has read those before."""
        summary = self.pool(states, mask)  # (b, 1, d)
        read = self.written(F.pad(before, (1, 0)))
        return self.decoder(read, summary.transpose(0, 1).contiguous())[0]

    def say(self, asks: Tensor, read_from_source: Tensor) -> Tensor:
        """Return the logits for a character, from a state and what it read of the source."""
        return self.out(torch.tanh(self.join(torch.cat([asks, read_from_source], dim=-1))))

    def translate(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return its own translation, ``(b, 10)``, and where it looked, ``(b, 10, n)``."""
        states, mask = self.encode(source)
        ids, maps = source.new_zeros(len(source), 0), None
        for _ in range(ISO_LENGTH):
            asks = self.asks(states, mask, ids)
            said = self.say(asks, self.cross(asks, states, mask))[:, -1:]
            ids, maps = torch.cat([ids, said.argmax(-1)], dim=1), asks
        return ids, self.cross.weights(maps, states, mask)


@cache
def learned_from() -> tuple[Tensor, Tensor]:
    """Return the dates that it learns from; no gate asks for one of them."""
    return dates(8000, seed=1, but=frozenset(sample_dates(1000)[2]))[:2]


def dates_task(batch: int, generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return a batch of dates, the right ones beside them, and what is to come out."""
    source, target = learned_from()
    chosen = torch.randint(len(source), (batch,), generator=generator)
    return (source[chosen], target[chosen]), target[chosen]


def train_dates(parts: Parts, show: bool = False) -> nn.Module:
    """Return a translator of these parts, trained."""
    return train(
        lambda: Translator(parts),
        dates_task,
        rate=RATE,
        steps=STEPS,
        batch=BATCH,
        fade=True,
        show=show,
    ).model


MILESTONE = Milestone(
    name="dates",
    after="cross_attention",
    what="3 mar 1999, written as people do, becomes 1999-03-03",
    uses=USES,
    build=Translator,
    train=train_dates,
    untrained=UNTRAINED,
    trained=TRAINED,
    picture=draw_dates,
)
