"""Attention weights and their tokens as the figures take them, or an error that says why not."""

from collections.abc import Sequence

import numpy as np

from attncourse.support.arrays import as_floats

# Weights of bfloat16 have 8 significant bits, and weights typed by hand two digits.
ROW_SUM_TOLERANCE = 0.02


def as_array(weights):
    """Return a NumPy array of an array, of lists, of a torch tensor or of a list of tensors."""
    if hasattr(weights, "detach"):  # a tensor, maybe with a gradient, maybe bfloat16
        return weights.detach().cpu().double().numpy()
    if isinstance(weights, list | tuple) and any(hasattr(part, "detach") for part in weights):
        return np.stack([as_array(part) for part in weights])
    return weights


def as_maps(weights) -> np.ndarray:
    """Return the weights as float64 of shape ``(layers, heads, m, n)``; missing axes become 1.

    weights: ``(m, n)``, ``(heads, m, n)`` or ``(layers, heads, m, n)``. Raises ``ValueError`` for
    another number of axes, NaN, negative weights, and a row that sums neither to 1 nor, as for a
    query that may attend to no key, to 0.
    """
    maps = as_floats("weights", as_array(weights), "... m n").astype(np.float64)
    if maps.ndim > 4:
        raise ValueError(
            "weights: expected shape (m, n), (heads, m, n) or (layers, heads, m, n), "
            f"got {maps.shape}; take one sequence of a batch"
        )
    if maps.min() < -1e-6:
        where = tuple(int(i) for i in np.argwhere(maps < -1e-6)[0])
        raise ValueError(f"weights: expected none below 0, got {maps[where]:.4g} at index {where}")
    sums = maps.sum(axis=-1)
    wrong = (np.abs(sums - 1) > ROW_SUM_TOLERANCE) & (maps > 0).any(axis=-1)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        turned = np.allclose(maps.sum(axis=-2), 1, atol=ROW_SUM_TOLERANCE)
        raise ValueError(
            f"weights: expected every row to sum to 1 (or to be all 0), got {sums[where]:.4g} "
            f"in row {where[-1]}" + ("; the columns sum to 1: transpose it" if turned else "")
        )
    return np.clip(maps, 0, 1).reshape((1,) * (4 - maps.ndim) + maps.shape)


def as_names(name: str, names: Sequence[str] | None, size: int, each: str) -> list[str]:
    """Return the names as a list.

    ``ValueError`` unless there are ``size`` strings, one for each ``each``.

    ``None`` stands for ``each`` with a number from 0.
    """
    if names is None:
        return [f"{each} {i}" for i in range(size)]
    if isinstance(names, str):
        raise ValueError(f"{name}: expected a list of {size} strings, got the string {names!r}")
    names = list(names)
    odd = [part for part in names if not isinstance(part, str)]
    if odd:
        raise ValueError(f"{name}: expected strings, got {odd[0]!r}")
    if len(names) != size:
        raise ValueError(f"{name}: expected {size}, one for each {each}, got {len(names)}")
    return names


def as_tokens(
    tokens: Sequence[str], keys: Sequence[str] | None, m: int, n: int
) -> tuple[list[str], list[str]]:
    """Return the queries' and the keys' tokens; without ``keys`` the tokens are both."""
    queries = as_names("tokens", tokens, m, "query (row of the weights)")
    if keys is None and m != n:
        raise ValueError(f"keys: expected {n} tokens, since there are {m} queries and {n} keys")
    keys = queries if keys is None else keys
    return queries, as_names("keys", keys, n, "key (column of the weights)")


def as_masked(mask, maps: np.ndarray) -> np.ndarray:
    """Return where the maps are masked, of their shape; without a mask nowhere.

    mask: True where attention is allowed. Raises ``ValueError`` for a mask that is not boolean or
    does not broadcast to the maps, and where it forbids what has a weight.
    """
    if mask is None:
        return np.zeros(maps.shape, dtype=bool)
    allowed = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if allowed.dtype != bool:
        raise ValueError(f"mask: expected True and False, got an array of dtype {allowed.dtype}")
    try:
        masked = ~np.broadcast_to(allowed, maps.shape)
    except ValueError:
        raise ValueError(
            f"mask: expected a shape that broadcasts to {maps.shape}, got {allowed.shape}"
        ) from None
    if maps[masked].any():
        where = tuple(int(i) for i in np.argwhere(masked & (maps > 0))[0])
        raise ValueError(
            "mask: expected weights of 0 where it is False (True is where attention is allowed), "
            f"got {maps[where]:.4g} at index {where}"
        )
    return masked


def as_start(start, heads: list[str], queries: list[str]) -> tuple[int, int] | None:
    """Return the head and the query that ``start`` names, as positions.

    start: a query, or ``(head, query)``; the query by its token or its position, the head by its
    name. Raises ``ValueError`` where they are not there, or a token stands there twice.
    """
    if start is None:
        return None
    head, query = start if isinstance(start, tuple) and len(start) == 2 else (heads[0], start)
    if head not in heads:
        raise ValueError(f"start: expected one of the heads {heads}, got {head!r}")
    places = [i for i, token in enumerate(queries) if query in (token, i)]
    if len(places) != 1:
        problem = f"stands at the positions {places}: give one" if places else "is none of them"
        raise ValueError(f"start: expected one of the queries {queries}; {query!r} {problem}")
    return heads.index(head), places[0]
