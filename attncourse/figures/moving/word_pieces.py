"""Chapter 18: how a word's letters are joined, merge by merge, by ranks that were learned."""

from collections.abc import Mapping
from html import escape

from attncourse.figures.moving.controls import controls
from attncourse.figures.moving.figure import Moving

MAX_SYMBOLS = 14  # symbols of a word: a phone has room for as many beside each other


def word_pieces(ranks: Mapping[tuple[str, str], int], word: str = " rubs") -> Moving:
    """Return a word to type, and below it a row for each merge, until no pair has a rank.

    ranks: of the pairs that are joined, in symbols of bytes, as ``merge_pairs`` takes them; they
    count from 0 without a gap. word: with the space before it, if it has one; at most 14 bytes.

    Raises ``ValueError`` for a longer or empty word and for other ranks.
    """
    from attncourse.pretrained.byte_pairs import symbols_of  # pages on NumPy do without torch

    order = sorted(ranks, key=ranks.__getitem__)
    if [ranks[pair] for pair in order] != list(range(len(order))):
        raise ValueError("ranks: expected 0, 1, 2, … without a gap, one for each pair")
    if not isinstance(word, str) or not 1 <= len(symbols_of(word)) <= MAX_SYMBOLS:
        raise ValueError(f"word: expected 1 to {MAX_SYMBOLS} bytes, got {word!r}")
    rows = stages(symbols_of(word), ranks)
    field = (
        '<label>A word: <input type="text" data-part="word" autocomplete="off" spellcheck="false" '
        f'autocapitalize="off" size="14" value="{escape(word)}"></label>'
    )
    return Moving(
        "word_pieces",
        "Letters become pieces",
        controls(field)
        + f'<div class="wp-tree" data-part="tree">{"".join(map(symbol_boxes, rows))}</div>',
        "In a browser that runs scripts, another word can be typed.",
        {"merges": "\n".join(" ".join(pair) for pair in order), "longest": MAX_SYMBOLS},
        said(rows),
    )


def stages(symbols: list[str], ranks: Mapping[tuple[str, str], int]) -> list[list[str]]:
    """Return the symbols at the beginning and after each merge."""
    from attncourse.llama import joined

    rows = [list(symbols)]
    while True:
        known = [p for p in zip(rows[-1], rows[-1][1:], strict=False) if p in ranks]
        if not known:
            return rows
        rows.append(joined(rows[-1], min(known, key=ranks.__getitem__)))


def symbol_boxes(symbols: list[str]) -> str:
    """Return a row of boxes, each as wide as it has letters."""
    boxes = "".join(
        f'<span style="flex-grow:{len(symbol)}">{escape(symbol.replace("Ġ", "␣"))}</span>'
        for symbol in symbols
    )
    return f'<div class="wp-row">{boxes}</div>'


def said(rows: list[list[str]]) -> str:
    """Return how many merges were made, and the pieces that they left."""
    pieces = rows[-1]
    count = f"{len(pieces)} piece{'s' if len(pieces) != 1 else ''}"
    merges = f"{len(rows) - 1} merge{'s' if len(rows) != 2 else ''}"
    return f"{merges}, {count}: {' + '.join(pieces).replace('Ġ', '␣')}."
