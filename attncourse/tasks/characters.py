"""Texts as ids, a character each: 0 pads and ends, the alphabet's places count from 1."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from attncourse.support.tensors import seen


def to_ids(texts: Sequence[str], alphabet: str) -> Int[Tensor, "b n"]:
    """Return each character's place in the alphabet, from 1; 0 behind the end of the shorter texts.

    Returns ``(len(texts), n)`` with n the length of the longest. Raises ``ValueError`` for no
    texts and for a character that the alphabet does not hold.
    """
    if isinstance(texts, str) or not len(texts):
        raise ValueError(f"texts: expected a list of one text or more, got {texts!r}")
    places = {character: place for place, character in enumerate(alphabet, start=1)}
    missing = next((c for text in texts for c in text if c not in places), None)
    if missing is not None:
        raise ValueError(f"texts: expected characters of {alphabet!r}, got {missing!r}")
    n = max(map(len, texts))
    return torch.tensor([[places[c] for c in text] + [0] * (n - len(text)) for text in texts])


def to_texts(ids: Int[Tensor, "b n"], alphabet: str) -> list[str]:
    """Return the texts that ``to_ids`` made these ids of: each row up to its first 0."""
    require_character_ids("ids", ids, len(alphabet) + 1)
    rows = (ids * (ids != 0).cumprod(dim=1)).tolist()
    return ["".join(alphabet[i - 1] for i in row if i) for row in rows]


def require_character_ids(name: str, ids: Tensor, n_ids: int, *, least: int = 0) -> None:
    """Raise ``ValueError`` unless these are rows of ids below n_ids, zeros at the end only.

    ``least`` is the number of ids that each row has at least.
    """
    if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.ndim != 2 or not len(ids):
        got = f"{ids.dtype} {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(f"{name}: expected ids, an int64 tensor of shape (b, n), got {got}")
    if seen((ids < 0) | (ids >= n_ids)):
        raise ValueError(
            f"{name}: expected ids from 0 to {n_ids - 1}, got {int(ids.min())} to {int(ids.max())}"
        )
    is_character = ids != 0
    if seen(is_character[:, 1:] & ~is_character[:, :-1]):
        raise ValueError(f"{name}: expected 0 at the end of a row only, as padding")
    if least and seen(is_character.sum(dim=1) < least):
        raise ValueError(f"{name}: expected at least {least} id in each row, got only padding")
