"""Chapter 1: right answers in steps, and wrong lines for them."""

import numpy as np


def embed_by_rows(ids, table):
    ids = np.asarray(ids)
    n_tokens = len(table)
    if (ids < 0).any() or (ids >= n_tokens).any():
        raise ValueError(f"ids go from 0 to {n_tokens - 1}")
    rows = ids.reshape(-1)
    vectors = table[rows]
    return vectors.reshape(*ids.shape, table.shape[1])


def embed_one_by_one(ids, table):
    ids = np.asarray(ids)
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        raise ValueError("an id is out of range")
    vectors = np.empty((ids.size, table.shape[1]), dtype=table.dtype)
    for place, token in enumerate(ids.flat):
        vectors[place] = table[token]
    return vectors.reshape(*ids.shape, table.shape[1])


RIGHT_ANSWERS = {"tokens.embed": [embed_by_rows, embed_one_by_one]}
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "tokens.one_hot": (
        ("if not 0 <= k < n_vocab:", "if not 0 < k < n_vocab:"),
        ("if not 0 <= k < n_vocab:", "if k >= n_vocab:"),
        ("H[i, k] = 1", "H[i, : k + 1] = 1"),
        ("return np.eye(n_vocab)[ids]", "return np.tri(n_vocab)[ids]"),
        ("if not 0 <= k < n_vocab:", "if not 0 <= k <= n_vocab - 2:"),
    ),
    "tokens.cosine_similarity": (
        (
            "lengths = np.linalg.norm(Z, axis=-1, keepdims=True)",
            "lengths = np.abs(Z).sum(axis=-1, keepdims=True)",
        ),
        (
            "lengths = np.linalg.norm(Z, axis=-1, keepdims=True)",
            "lengths = np.abs(Z).max(axis=-1, keepdims=True)",
        ),
    ),
    "tokens.embed": (
        ("n_tokens = len(table)", "n_tokens = table.shape[1]"),
        ("n_tokens = len(table)", "n_tokens = len(table) - 1"),
        ("if (ids < 0).any() or (ids >= n_tokens).any():", "if (ids >= n_tokens).any():"),
        (
            "if (ids < 0).any() or (ids >= n_tokens).any():",
            "if (ids < 0).all() or (ids >= n_tokens).all():",
        ),
        (
            "if (ids < 0).any() or (ids >= n_tokens).any():",
            "if (ids < 0).any() and (ids >= n_tokens).any():",
        ),
        ("rows = ids.reshape(-1)", "rows = np.unique(ids)"),
        ("vectors = table[rows]", "vectors = table[rows - 1]"),
        ("vectors = table[rows]", "vectors = table[rows] * np.sqrt(table.shape[1])"),
        ("vectors = table[rows]", "vectors = table[rows] * (rows > 0)[:, None]"),
        (
            "vectors = table[rows]",
            "vectors = table[rows] / np.linalg.norm(table[rows], axis=-1, keepdims=True)",
        ),
        ("return vectors.reshape(*ids.shape, table.shape[1])", "return vectors"),
        (
            "if ids.size and (ids.min() < 0 or ids.max() >= len(table)):",
            "if ids.size and (ids.min() < 1 or ids.max() >= len(table)):",
        ),
        (
            "if ids.size and (ids.min() < 0 or ids.max() >= len(table)):",
            "if ids.size and ids.max() >= len(table):",
        ),
        (
            "if ids.size and (ids.min() < 0 or ids.max() >= len(table)):",
            "if ids.size and (ids.min() < 0 or ids.max() >= table.shape[1]):",
        ),
        (
            "vectors = np.empty((ids.size, table.shape[1]), dtype=table.dtype)",
            "vectors = np.empty((ids.size, table.shape[1]), dtype=ids.dtype)",
        ),
        ("vectors[place] = table[token]", "vectors[place] = table[token - 1]"),
        ("vectors[place] = table[token]", "vectors[place] = table[token] * (token > 0)"),
        ("vectors[place] = table[token]", "vectors[place] = table[token] * np.sqrt(len(table[0]))"),
    ),
    "tokens.tokenize": (
        ("if word:", "if len(word) > 1:"),
        ("return [*found, word] if word else found", "return [*found, word]"),
        (
            "return [*found, word] if word else found",
            "return sorted([*found, word] if word else found)",
        ),
        ("if not character.isspace():", 'if character in ".,":'),
        ("if not character.isspace():", "if not character.isspace() and not word:"),
        ('if character.isalnum() or character == "_":', "if not character.isspace():"),
        ("found.append(word)", "found.insert(0, word)"),
    ),
}
