"""Chapter 1: text becomes tokens, tokens become ids, ids become vectors.

A text of n tokens ends up as a matrix ``X`` of shape ``(n, d)``: one row for each token, in the
order of the text. Wherever the course has a text, it starts from such an ``X``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from attncourse.support.arrays import require_axes
from attncourse.support.shapes import Count, shaped

UNKNOWN = "<unk>"


def tokenize(text: str) -> list[str]:
    """The words and punctuation marks of ``text``, in lower case and in order.

    A word is a longest run of word characters: letters of any alphabet, digits and the
    underscore. Each other character is a token by itself; white space only separates.

    Raises ``ValueError`` for anything that is not a string.
    """
    if not isinstance(text, str):
        raise ValueError(f"tokenize: expected a str, got {type(text).__name__}")
    return re.findall(r"\w+|[^\w\s]", text.lower())


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that are known, each with a number of its own, its id.

    ``tokens[i]`` is the token with id i. Id 0 is the unknown token, which stands for all others;
    no text contains it, because ``tokenize`` takes ``<`` and ``>`` apart from ``unk``.
    """

    tokens: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        """Number the tokens; raise ``ValueError`` if UNKNOWN is not first, or one comes twice."""
        if not self.tokens or self.tokens[0] != UNKNOWN:
            first = repr(self.tokens[0]) if self.tokens else "no token"
            raise ValueError(f"Vocabulary: expected {UNKNOWN!r} as the first token, got {first}")
        if len(set(self.tokens)) < len(self.tokens):
            twice = next(t for t in self.tokens if self.tokens.count(t) > 1)
            raise ValueError(f"Vocabulary: expected every token once, got {twice!r} twice")
        ids = {token: i for i, token in enumerate(self.tokens)}
        object.__setattr__(self, "_ids", ids)  # the class is frozen

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "Vocabulary":
        """The vocabulary of these texts. Ids are given in the order of first appearance, from 1.

        Raises ``ValueError`` for a single string in place of a list of texts.
        """
        if isinstance(texts, str):
            raise ValueError("Vocabulary.from_texts: expected a list of texts, got one str")
        tokens = (token for text in texts for token in tokenize(text))
        return cls((UNKNOWN, *dict.fromkeys(tokens)))

    @property
    def size(self) -> int:
        """The number of ids, the unknown token's included."""
        return len(self.tokens)

    def encode(self, text: str) -> Int[np.ndarray, "n"]:
        """The ids of the text's n tokens, shape ``(n,)``; a token not known gets id 0."""
        ids = [self._ids.get(token, 0) for token in tokenize(text)]
        return np.array(ids, dtype=np.int64)  # (n,)

    def decode(self, ids: Int[np.ndarray, "n"]) -> list[str]:
        """The tokens with these ids. White space and capitals are gone for good.

        Raises ``ValueError`` for an id that no token has.
        """
        if np.size(ids) == 0:
            return []
        ids = as_ids("decode", ids, self.size)
        require_axes("ids", ids.shape, "n")
        return [self.tokens[i] for i in ids]


@shaped
def one_hot(
    ids: Int[np.ndarray, "*batch n"], n_vocab: Count
) -> Float[np.ndarray, "*batch n n_vocab"]:
    """One row for each id, 1 in the column of the id and 0 elsewhere: ``H[i, j] = (ids[i] == j)``.

    ids: whole numbers, ``(..., n)``. Returns float64 of shape ``(..., n, n_vocab)``.

    Raises ``ValueError`` for an id below 0 or from ``n_vocab`` on.
    """
    ids = as_ids("one_hot", ids, n_vocab)
    hits = ids[..., None] == np.arange(n_vocab)  # (..., n, n_vocab)
    return hits.astype(np.float64)


@shaped
def embed(
    ids: Int[np.ndarray, "*batch n"], table: Float[np.ndarray, "n_vocab d"]
) -> Float[np.ndarray, "*batch n d"]:
    """The vectors of these ids: row i of the result is row ``ids[i]`` of ``table``.

    It equals ``one_hot(ids, n_vocab) @ table`` without the multiplications.
    ids: whole numbers, ``(..., n)``. table: ``(n_vocab, d)``. Returns ``(..., n, d)``.

    Raises ``ValueError`` for an id below 0 or from ``n_vocab`` on.
    """
    ids = as_ids("embed", ids, len(table))
    return table[ids]  # (..., n, d)


@shaped(d="vectors of the same length d in X and Y")
def cosine_similarity(
    X: Float[np.ndarray, "*#batch n d"], Y: Float[np.ndarray, "*#batch m d"]
) -> Float[np.ndarray, "*batch n m"]:
    """The cosine of the angle between each row of X and each row of Y.

    ``S[i, j] = X[i] · Y[j] / (‖X[i]‖ ‖Y[j]‖)``, from −1 to 1. A vector of zeros has no direction;
    its similarity with everything is 0.

    X: ``(..., n, d)``. Y: ``(..., m, d)``. Returns ``(..., n, m)``; batch axes broadcast.

    Raises ``ValueError`` where X and Y differ in d.
    """
    return unit_rows(X) @ unit_rows(Y).mT  # (..., n, d) @ (..., d, m)


def unit_rows(X: Float[np.ndarray, "*batch n d"]) -> Float[np.ndarray, "*batch n d"]:
    """X with every row divided by its length; a row of zeros stays zero."""
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(X, axis=-1, keepdims=True)  # (..., n, 1)
    if not np.isfinite(lengths).all():
        raise ValueError("unit_rows: expected rows of finite length, got one that is infinite")
    return X / np.where(lengths == 0, 1, lengths)


def as_ids(caller: str, ids, n_vocab: int) -> Int[np.ndarray, "*batch n"]:
    """``ids`` as an array of whole numbers; ``ValueError`` unless all are in 0 … n_vocab − 1."""
    try:
        ids = np.asarray(ids)
    except ValueError as error:
        raise ValueError(f"{caller}: expected an array of ids, got {error}") from None
    if ids.dtype.kind not in "iu":
        raise ValueError(f"{caller}: expected ids that are whole numbers, got dtype {ids.dtype}")
    require_axes("ids", ids.shape, "... n")
    outside = ids[(ids < 0) | (ids >= n_vocab)]
    if outside.size:
        raise ValueError(f"{caller}: expected ids from 0 to {n_vocab - 1}, got {outside[0]}")
    return ids
