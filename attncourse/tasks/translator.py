"""A recurrent translator of characters, with any score of chapter 6 or without attention.

Sources: Bahdanau, Cho and Bengio (2015), Neural Machine Translation by Jointly Learning to Align
and Translate; Luong, Pham and Manning (2015), Effective Approaches to Attention-based Neural
Machine Translation, section 3.
"""

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.kqv import softmax_over_keys
from attncourse.scoring import attend
from attncourse.support.shapes import Count, shaped
from attncourse.tasks.characters import require_character_ids
from attncourse.tasks.gru import GRU


class Seq2Seq(nn.Module):
    """A recurrent encoder–decoder over characters, with attention where a ``score`` is given.

    The encoder, a GRU in both directions, turns n characters into n states of 2·d_hidden features.
    The decoder, a GRU of d_hidden features, starts from the encoder's last states and reads what
    has been written so far. Its state, together with a context, predicts the next character. With
    a score the context is a blend of the encoder's states, by weights that the score of decoder
    state (query, d_hidden) and encoder state (key, 2·d_hidden) makes; without one it is the
    encoder's last states, the same for every character written.

    The state that asks has already read the last character written, and the context goes to the
    output alone. This is Luong et al.'s path, without their input feeding. Bahdanau et al. ask with
    the state before, and their context is an input of the next one.

    Ids are those of ``characters.to_ids``; 0 pads and ends. n_source, n_target: the number of ids.
    """

    @shaped
    def __init__(
        self,
        n_source: Count,
        n_target: Count,
        d_hidden: Count,
        score: nn.Module | None = None,
        d_embed: Count = 32,
    ):
        super().__init__()
        self.embed_source = nn.Embedding(n_source, d_embed)
        self.embed_target = nn.Embedding(n_target, d_embed)
        self.encoder = GRU(d_embed, d_hidden, bidirectional=True)
        self.bridge = nn.Linear(2 * d_hidden, d_hidden)
        self.decoder = GRU(d_embed, d_hidden)
        self.score = score
        self.join = nn.Linear(3 * d_hidden, d_hidden)
        self.out = nn.Linear(d_hidden, n_target)

    def forward(self, source: Int[Tensor, "b n"], target: Int[Tensor, "b t"]) -> Tensor:
        """Return logits ``(b, t + 1, n_target)`` for each character of the target and its end.

        Each is predicted from the source and the *right* characters before it.
        """
        return self.write(self.encode(source), target)[0]

    def weights(self, source: Int[Tensor, "b n"], target: Int[Tensor, "b t"]) -> Tensor:
        """Return where each target character, and its end, looks: ``(b, t + 1, n)``.

        Raises ``ValueError`` for a model without a score.
        """
        weights = self.write(self.encode(source), target)[1]
        if weights is None:
            raise ValueError("weights: expected a model with a score, this one has no attention")
        return weights

    @torch.no_grad()
    @shaped
    def translate(self, source: Int[Tensor, "b n"], max_length: Count) -> Int[Tensor, "b t"]:
        """Return the ids ``(b, max_length)`` that the model writes, the likeliest at each step.

        From its end on a text is padded with 0.
        """
        encoded = self.encode(source)
        last, state = source.new_zeros(len(source), 1), None  # what was written before: nothing
        written = []
        for _ in range(max_length):
            logits, _, state = self.step(encoded, last, state)  # (b, 1, n_target)
            last = logits.argmax(dim=-1)
            written.append(last)
        ids = torch.cat(written, dim=1)  # (b, max_length)
        return ids * (ids != 0).cumprod(dim=1)

    def encode(self, source: Int[Tensor, "b n"]) -> tuple[Tensor, Tensor, Tensor]:
        """Return characters' states ``(b, n, 2·d_hidden)``, the last ones, and what is no padding.

        The last states, one of each direction, are ``(b, 1, 2·d_hidden)``; the mask ``(b, 1, n)``.
        """
        require_character_ids("source", source, self.embed_source.num_embeddings, least=1)
        is_character = source != 0
        read = self.embed_source(source)  # (b, n, d_embed)
        states, last = self.encoder(read, lengths=is_character.sum(dim=1))  # last: (2, b, d_hidden)
        return states, last.transpose(0, 1).flatten(1).unsqueeze(1), is_character.unsqueeze(1)

    def write(self, encoded: tuple, target: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Run ``step`` for a whole target at once, which begins after nothing (id 0)."""
        require_character_ids("target", target, self.embed_target.num_embeddings)
        return self.step(encoded, F.pad(target, (1, 0)))

    def step(
        self, encoded: tuple, before: Int[Tensor, "b t"], state: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return logits ``(b, t, n_target)`` for what follows each id, and the weights.

        ``state`` is the decoder's so far, None at the beginning; the new one is returned too.
        """
        states, last, mask = encoded
        if state is None:
            state = torch.tanh(self.bridge(last))  # (b, 1, d_hidden)
            state = state.transpose(0, 1)
        read = self.embed_target(before)  # (b, t, d_embed)
        query, state = self.decoder(read, state.contiguous())
        # Without a score the context is the same at every step.
        weights, context = None, last.expand(-1, query.shape[1], -1)
        if self.score is not None:
            scores = self.score(query, states)  # (b, t, n)
            weights = softmax_over_keys(scores, mask)
            context = attend(scores, states, mask)  # (b, t, 2·d_hidden)
        both = torch.cat([query, context], dim=-1)
        joined = torch.tanh(self.join(both))  # (b, t, d_hidden)
        return self.out(joined), weights, state
