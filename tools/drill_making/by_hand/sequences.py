"""Chapter 16: right answers in steps, and wrong lines for them."""

import numpy as np
import torch

ALPHABET = "ACDEFGHIKLMNPQRSTVWY"


def encoded_by_letters(sequence, max_length):
    if len(sequence) > max_length:
        raise ValueError(f"more than {max_length} letters")
    ids = torch.zeros(max_length, dtype=torch.int64)
    for place, letter in enumerate(sequence):
        if letter not in ALPHABET + ALPHABET.lower():
            raise ValueError(f"{letter!r} is no amino acid")
        ids[place] = ALPHABET.index(letter.upper()) + 1
    return ids


def encoded_as_a_list(sequence, max_length):
    numbers = {letter: i for i, letter in enumerate(ALPHABET, start=1)}
    for letter in ALPHABET:
        numbers[letter.lower()] = numbers[letter]
    if any(letter not in numbers for letter in sequence):
        raise ValueError(f"letters are {ALPHABET}")
    ids = [numbers[letter] for letter in sequence]
    missing = max_length - len(ids)
    if missing < 0:
        raise ValueError(f"more than {max_length} letters")
    return torch.tensor(ids + [0] * missing)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def split_by_groups(sequences, max_distance=1, test_fraction=0.2, seed=0):
    n = len(sequences)
    group = list(range(n))
    for i in range(n):
        for j in range(i):
            if edit_distance(sequences[i], sequences[j]) <= max_distance:
                old, new = group[i], group[j]
                group = [new if g == old else g for g in group]
    names = np.random.default_rng(seed).permutation(sorted(set(group)))
    test = []
    for name in names:
        members = [i for i in range(n) if group[i] == name]
        if len(test) + len(members) <= test_fraction * n:
            test += members
    train = [i for i in range(n) if i not in test]
    return np.array(train, dtype=int), np.array(sorted(test), dtype=int)


RIGHT_ANSWERS = {
    "sequences.encode_cdr3": [encoded_by_letters, encoded_as_a_list],
    "sequences.split_by_similarity": [split_by_groups],
}
LETTER_ID_LINE = "ids[place] = ALPHABET.index(letter.upper()) + 1"
INTERVAL_ENDS_LINE = "low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])"
RESAMPLED_VALUE_LINE = "found.append(statistic(*(array[rows] for array in arrays)))"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "sequences.encode_cdr3": (
        (LETTER_ID_LINE, "ids[place] = ALPHABET.index(letter.upper())"),
        (LETTER_ID_LINE, "ids[max_length - 1 - place] = ALPHABET.index(letter.upper()) + 1"),
        (LETTER_ID_LINE, "ids[place - len(sequence)] = ALPHABET.index(letter.upper()) + 1"),
        (LETTER_ID_LINE, "ids[place] = sequence.index(letter) + 1"),
        (LETTER_ID_LINE, "ids[place] = len(ALPHABET) - ALPHABET.index(letter.upper())"),
        ("if len(sequence) > max_length:", "if len(sequence) >= max_length:"),
        ("if len(sequence) > max_length:", "if len(sequence) > max_length + 1:"),
        (
            "for place, letter in enumerate(sequence):",
            "for place, letter in enumerate(sequence[1:-1]):",
        ),
        (
            "for place, letter in enumerate(sequence):",
            "for place, letter in enumerate(sequence.strip()):",
        ),
        (
            "for place, letter in enumerate(sequence):",
            "for place, letter in enumerate(sorted(sequence)):",
        ),
        ("if letter not in ALPHABET + ALPHABET.lower():", "if letter not in ALPHABET:"),
        ("if letter not in ALPHABET + ALPHABET.lower():", "if not letter.isalpha():"),
        ('raise ValueError(f"{letter!r} is no amino acid")', "continue"),
        ('raise ValueError(f"{letter!r} is no amino acid")', "raise KeyError(letter)"),
        (
            "ids = torch.zeros(max_length, dtype=torch.int64)",
            "ids = torch.zeros(len(sequence), dtype=torch.int64)",
        ),
        ("ids = torch.zeros(max_length, dtype=torch.int64)", "ids = torch.zeros(max_length)"),
        (
            "ids = torch.zeros(max_length, dtype=torch.int64)",
            "ids = torch.full((max_length,), -1, dtype=torch.int64)",
        ),
        ("return ids", "return ids.tolist()"),
        ("return torch.tensor(ids + [0] * missing)", "return torch.tensor([0] * missing + ids)"),
        ("return torch.tensor(ids + [0] * missing)", "return torch.tensor(ids)"),
        ("return torch.tensor(ids + [0] * missing)", "return torch.tensor(ids + [21] * missing)"),
        ("if missing < 0:", "if missing < -1:"),
        ("if missing < 0:", "if missing <= 0:"),
        (
            "numbers = {letter: i for i, letter in enumerate(ALPHABET, start=1)}",
            "numbers = {letter: i for i, letter in enumerate(ALPHABET)}",
        ),
        (
            "numbers = {letter: i for i, letter in enumerate(ALPHABET, start=1)}",
            "numbers = {letter: i for i, letter in enumerate(ALPHABET[::-1], start=1)}",
        ),
        (
            "ids = [numbers[letter] for letter in sequence]",
            "ids = [numbers[a] for a in sequence[1:-1]]",
        ),
        (
            "ids = [numbers[letter] for letter in sequence]",
            "ids = [numbers[letter] for letter in sequence[:max_length]]",
        ),
        (
            "ids = [numbers[letter] for letter in sequence]",
            "ids = [numbers[letter] for letter in reversed(sequence)]",
        ),
    ),
    "sequences.bootstrap_interval": (
        ("tail = 100 * (1 - level) / 2", "tail = 100 * (1 - level)"),
        (
            "return tuple(np.percentile(values, [tail, 100 - tail]))",
            "return tuple(np.percentile(values, [100 - tail, tail]))",
        ),
        (INTERVAL_ENDS_LINE, "low, high = np.quantile(found, [1 - level, level])"),
        (INTERVAL_ENDS_LINE, "low, high = np.quantile(found, [level / 2, 1 - level / 2])"),
        (INTERVAL_ENDS_LINE, "low, high = np.quantile(found, [(1 + level) / 2, (1 - level) / 2])"),
        (
            INTERVAL_ENDS_LINE,
            "low, high = np.percentile(found, [(1 - level) / 2, (1 + level) / 2])",
        ),
        (INTERVAL_ENDS_LINE, "low, high = np.quantile(found, [0.025, 0.975])"),
        (INTERVAL_ENDS_LINE, "low, high = (min(found), max(found))"),
        (INTERVAL_ENDS_LINE, "low, high = np.quantile(found, [0, (1 + level) / 2])"),
        (
            RESAMPLED_VALUE_LINE,
            "found.append(statistic(*(a[rng.integers(n, size=n)] for a in arrays)))",
        ),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(n - 1, size=n)"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(1, n, size=n)"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(n, size=n // 2)"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(n, size=n - 1)"),
        ("n, found = (len(arrays[0]), [])", "n, found = (len(arrays), [])"),
        ("for _ in range(n_resamples):", "for _ in range(1000):"),
    ),
    "sequences.balanced_accuracy": (
        (
            "np.mean(predictions[labels == c] == c) for c in np.unique(labels)",
            "np.mean(labels[predictions == c] == c) for c in np.unique(labels)",
        ),
        (
            "np.mean(predictions[labels == c] == c) for c in np.unique(labels)",
            "np.mean(predictions[labels == c] != c) for c in np.unique(labels)",
        ),
        (
            "np.mean(predictions[labels == c] == c) for c in np.unique(labels)",
            "np.mean(predictions[labels == c] == c) for c in (0, 1)",
        ),
        (
            "np.mean(predictions[labels == c] == c) for c in np.unique(labels)",
            "np.mean(predictions[labels == c] == c) for c in np.unique(labels)[1:]",
        ),
        ("return float(np.mean(recalls))", "return recalls"),
    ),
    "sequences.split_by_similarity": (
        (
            "if edit_distance(sequences[i], sequences[j]) <= max_distance:",
            "if edit_distance(sequences[i], sequences[j]) < max_distance:",
        ),
        (
            "if edit_distance(sequences[i], sequences[j]) <= max_distance:",
            "if edit_distance(sequences[i], sequences[j]) <= max_distance + 1:",
        ),
        (
            "if edit_distance(sequences[i], sequences[j]) <= max_distance:",
            "if edit_distance(sequences[i], sequences[j]) <= 1:",
        ),
        (
            "if edit_distance(sequences[i], sequences[j]) <= max_distance:",
            "if sequences[i] == sequences[j]:",
        ),
        (
            "if edit_distance(sequences[i], sequences[j]) <= max_distance:",
            "if sum(a != b for a, b in zip(sequences[i], sequences[j])) <= max_distance:",
        ),
        ("group = [new if g == old else g for g in group]", "group[i] = new"),
        ("for j in range(i):", "for j in range(max(i - 1, 0), i):"),
        (
            "names = np.random.default_rng(seed).permutation(sorted(set(group)))",
            "names = np.random.default_rng().permutation(sorted(set(group)))",
        ),
        (
            "names = np.random.default_rng(seed).permutation(sorted(set(group)))",
            "names = sorted(set(group))",
        ),
        (
            "if len(test) + len(members) <= test_fraction * n:",
            "if len(test) + len(members) <= 0.2 * n:",
        ),
        (
            "if len(test) + len(members) <= test_fraction * n:",
            "if len(test) + len(members) <= test_fraction * len(names):",
        ),
        (
            "members = [i for i in range(n) if group[i] == name]",
            "members = [i for i in range(n) if group[i] == name][:1]",
        ),
        (
            "train = [i for i in range(n) if i not in test]",
            "train = [i for i in range(n) if group[i] not in test]",
        ),
        (
            "return (np.array(train, dtype=int), np.array(sorted(test), dtype=int))",
            "return (np.array(sorted(test), dtype=int), np.array(train, dtype=int))",
        ),
        (
            "return (np.array(train, dtype=int), np.array(sorted(test), dtype=int))",
            "return (np.array(train, dtype=int), np.array(test, dtype=int))",
        ),
        ("group = list(range(n))", "group = [sequences.index(s) for s in sequences]"),
    ),
}
