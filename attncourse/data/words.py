"""Real word vectors: what a language model's table of embeddings holds for some hundred words."""

import base64
from functools import cache

import numpy as np

from attncourse.data import kept


class WordVectors:
    """Words of a real model with a vector each, for chapters that work with real meaning.

    ``words[i]`` has the vector ``vectors[i]``; ``vectors`` is ``(n, 48)``, float64. Each is a row
    of the table of SmolLM2-135M-Instruct with the mean of all 49,152 rows taken off, turned so that
    48 numbers keep the share ``variance`` of the squared distances of these words from that mean.
    ``ids[i]`` is the word's id in the model, whose pieces are numbered roughly from frequent to
    rare. The file says how it was made.
    """

    def __init__(self):
        record = kept("word_vectors")
        self.words: list[str] = record["words"].split()
        self.ids = np.array(record["ids"].split(), dtype=int)  # (n,)
        half = np.frombuffer(base64.b64decode(record["vectors"]), "<f2")
        self.vectors = half.reshape(len(self.words), -1).astype(float)  # (n, 48)
        self.variance: float = record["variance"]
        self.whole: dict[str, list] = record["whole"]  # a word's nearest by all 576, and its cosine

    def __call__(self, *words: str) -> np.ndarray:
        """Return the vectors of these words, ``(len(words), 48)``; one text is read word by word.

        Raises ``ValueError`` for a word that is not among them.
        """
        words_asked = words[0].split() if len(words) == 1 else words
        for word in words_asked:
            if word not in self.words:
                raise ValueError(f"no vector is kept for {word!r}; .words lists those that are")
        return self.vectors[[self.words.index(word) for word in words_asked]]

    def nearest(self, word: str, k: int = 5, among: list[str] | None = None) -> list[tuple]:
        """Return the k other words whose cosine with this one is largest, each with its cosine."""
        others = [w for w in (among or self.words) if w != word]
        (x,), Y = self(word), self(*others) if len(others) > 1 else self(others[0])
        cosines = Y @ x / (np.linalg.norm(Y, axis=1) * np.linalg.norm(x))
        best = np.argsort(-cosines)[:k]
        return [(others[i], float(cosines[i])) for i in best]


@cache
def word_vectors() -> WordVectors:
    """Return the words and vectors that come with the package, read once."""
    return WordVectors()
