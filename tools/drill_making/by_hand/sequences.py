"""Chapter 16: right answers in steps, and wrong lines for them."""

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


RIGHT = {"sequences.encode_cdr3": [encoded_by_letters, encoded_as_a_list]}
NUMBER = "ids[place] = ALPHABET.index(letter.upper()) + 1"
ENDS = "low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])"
FOUND = "found.append(statistic(*(array[rows] for array in arrays)))"
WRONG_LINES: dict[str, tuple[tuple[str, str], ...]] = {
    "sequences.encode_cdr3": (
        (NUMBER, "ids[place] = ALPHABET.index(letter.upper())"),
        (NUMBER, "ids[max_length - 1 - place] = ALPHABET.index(letter.upper()) + 1"),
        (NUMBER, "ids[place - len(sequence)] = ALPHABET.index(letter.upper()) + 1"),
        (NUMBER, "ids[place] = sequence.index(letter) + 1"),
        (NUMBER, "ids[place] = len(ALPHABET) - ALPHABET.index(letter.upper())"),
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
        (ENDS, "low, high = np.quantile(found, [1 - level, level])"),
        (ENDS, "low, high = np.quantile(found, [level / 2, 1 - level / 2])"),
        (ENDS, "low, high = np.quantile(found, [(1 + level) / 2, (1 - level) / 2])"),
        (ENDS, "low, high = np.percentile(found, [(1 - level) / 2, (1 + level) / 2])"),
        (ENDS, "low, high = np.quantile(found, [0.025, 0.975])"),
        (ENDS, "low, high = (min(found), max(found))"),
        (ENDS, "low, high = np.quantile(found, [0, (1 + level) / 2])"),
        (FOUND, "found.append(statistic(*(a[rng.integers(n, size=n)] for a in arrays)))"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(n - 1, size=n)"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(1, n, size=n)"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(n, size=n // 2)"),
        ("rows = rng.integers(n, size=n)", "rows = rng.integers(n, size=n - 1)"),
        ("n, found = (len(arrays[0]), [])", "n, found = (len(arrays), [])"),
        ("for _ in range(n_resamples):", "for _ in range(1000):"),
    ),
}
