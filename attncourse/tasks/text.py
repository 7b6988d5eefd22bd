"""A text as characters, for a model that learns to spell: any file that a reader brings."""

from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from attncourse.support.tensors import require_ids

MOST_CHARACTERS = 4_000_000  # characters that are read of a file; a longer one is cut there
LEAST = 1000  # characters without which nothing can be learned
N_BYTES = 256  # different characters at most


class Text:
    """A text as ids of its characters, the last tenth set aside for testing.

    ``characters`` are the text's own, sorted; ``train`` and ``test`` are ids, ``(n,)``. Raises
    ``ValueError`` for a text of fewer than 1000 characters, or of more than 256 different ones.
    """

    def __init__(self, text: str, name: str = "text"):
        if not text.strip():
            raise ValueError(f"{name}: expected a text, got none: it is empty")
        if len(text) < LEAST:
            raise ValueError(f"{name}: expected at least {LEAST} characters, got {len(text)}")
        self.characters = sorted(set(text))
        if len(self.characters) > N_BYTES:
            raise ValueError(
                f"{name}: expected at most {N_BYTES} different characters, got "
                f"{len(self.characters)}: a language with letters learns best"
            )
        self.places = {character: i for i, character in enumerate(self.characters)}
        ids = self.encode(text)
        cut = len(ids) * 9 // 10
        self.train, self.test = ids[:cut], ids[cut:]

    @classmethod
    def from_file(cls, path: str | Path) -> "Text":
        """Return the text of a file in UTF-8, at most its first 4 million characters.

        Raises ``ValueError`` where there is no such file, or it is empty, binary, or too short.
        """
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"{path}: expected a text file, found none")
        with path.open("rb") as file:  # bounded: a line may have any length
            data = file.read(4 * MOST_CHARACTERS + 4)
        if b"\0" in data:
            raise ValueError(f"{path.name}: expected a text, got a binary file (it holds zeros)")
        whole = len(data) <= 4 * MOST_CHARACTERS
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if whole or error.start < len(data) - 4:  # else a character that the end cuts
                raise ValueError(
                    f"{path.name}: expected a text in UTF-8, got byte {data[error.start]:#x} at "
                    f"{error.start}: is it a binary file, or another encoding?"
                ) from None
            text = data[: error.start].decode("utf-8-sig")
        return cls(text.replace("\r\n", "\n")[:MOST_CHARACTERS], path.name)

    def encode(self, text: str) -> Int[Tensor, "n"]:
        """Return the ids of a text's characters. Raises ``ValueError`` for one that is unknown."""
        unknown = [c for c in text if c not in self.places]
        if unknown:
            raise ValueError(f"expected characters of the text, got {unknown[0]!r}")
        return torch.tensor([self.places[c] for c in text])

    def decode(self, ids: Int[Tensor, "n"]) -> str:
        """Return the characters that ids stand for."""
        ids = require_ids(ids, len(self.characters))
        return "".join(self.characters[i] for i in ids.tolist())

    def batches(
        self, steps: int, batch: int, length: int, seed: int = 0
    ) -> Int[Tensor, "steps batch length"]:
        """Return pieces of ``length`` characters from anywhere in what is for training.

        Raises ``ValueError`` where the text is shorter than a piece.
        """
        if length > len(self.train):
            raise ValueError(f"length: expected at most {len(self.train)}, got {length}")
        generator = torch.Generator().manual_seed(seed)
        starts = torch.randint(len(self.train) - length + 1, (steps, batch), generator=generator)
        return self.train[starts[..., None] + torch.arange(length)]

    def test_pieces(self, length: int) -> Int[Tensor, "pieces length"]:
        """Return the test text in pieces of ``length`` characters; the rest of it is left out."""
        whole = len(self.test) // length
        if not whole:
            raise ValueError(f"length: expected at most {len(self.test)}, got {length}")
        return self.test[: whole * length].view(whole, length)
