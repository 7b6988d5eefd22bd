"""Chapter 12's encoder–decoder as a translator of characters, beside chapter 6's recurrent one."""

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from attncourse.support.shapes import Count, shaped
from attncourse.tasks.characters import require_character_ids
from attncourse.transformer import Transformer


class ParallelTranslator(Transformer):
    """A ``Transformer`` that is called, trained and asked like ``Seq2Seq``.

    Ids are those of ``characters.to_ids``; 0 pads and ends, and stands before the first character.
    """

    # pyrefly: ignore [bad-override]  a target without its beginning
    def forward(self, source: Int[Tensor, "b n"], target: Int[Tensor, "b t"]) -> Tensor:
        """Return logits ``(b, t + 1, n_target)`` for each character of the target and its end.

        Each is predicted from the source and the *right* characters before it.
        """
        require_character_ids("source", source, self.source.num_embeddings, least=1)
        require_character_ids("target", target, self.target.num_embeddings)
        return super().forward(source, F.pad(target, (1, 0)), self.no_padding(source))

    @torch.no_grad()
    @shaped
    def translate(self, source: Int[Tensor, "b n"], max_length: Count) -> Int[Tensor, "b t"]:
        """Return the ids ``(b, max_length)`` that the model writes, the likeliest at each step.

        From its end on a text is padded with 0.
        """
        mask = self.no_padding(source)
        memory = self.encode(source, mask)
        written = source.new_zeros(len(source), 1)  # what was written before: nothing
        for _ in range(max_length):
            logits = self.decode(written, memory, mask)[:, -1:]  # (b, 1, n_target)
            written = torch.cat([written, logits.argmax(dim=-1)], dim=1)
        ids = written[:, 1:]
        return ids * (ids != 0).cumprod(dim=1)

    @staticmethod
    def no_padding(source: Tensor) -> Tensor:
        """True where the source is no padding, ``(b, 1, n)``."""
        return (source != 0).unsqueeze(1)
