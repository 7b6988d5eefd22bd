"""Numbers that a page's text states, compared with what the page's code computed.

A hidden cell of the page, with the tags `remove-cell` and `check-prose`, names a phrase of its
prose, a caption or an alt text, and the values that the phrase's numbers stand for:

    check_prose("solves 19 of 20, the root 11", solved, runs, solved_by_root)

The comparison becomes an output of the cell. `tools/prose_numbers.py` reads it when the book is
built, looks whether the phrase still stands in the page, and reports each number that differs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PROSE_TAG = "check-prose"  # of a cell for the build alone: no notebook has it
MIME = "application/vnd.attncourse.prose+json"
NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
IN_WORDS = {word: float(number) for number, word in enumerate(NUMBER_WORDS)}
IN_WORDS |= {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "once": 1.0, "twice": 2.0}
IN_DIGITS = r"(?<![\w.,])[−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][−-]?\d+)?(?!\w|\.\d)"
PER_CENT = r"(?=(?:(?:,| and| to| or|–)\s*[−-]?\d+(?:\.\d+)?)*(?:\s|\\,)?\\?%)"
NUMBER = re.compile(rf"(?P<digits>{IN_DIGITS})|\b(?P<word>{'|'.join(IN_WORDS)})\b", re.IGNORECASE)


class WrittenNumber(NamedTuple):
    """A number as a text writes it: its value, and half a unit of its last digit."""

    text: str
    value: float
    half_unit: float
    is_word: bool


def written_numbers(text: str) -> list[WrittenNumber]:
    """Return the numbers of a text in order, in digits or words; percentages as fractions."""
    numbers = []
    for match in NUMBER.finditer(text):
        if word := match["word"]:
            numbers.append(WrittenNumber(word, IN_WORDS[word.lower()], 0.0, True))
            continue
        plain = match["digits"].replace(",", "").replace("−", "-")
        mantissa, _, exponent = plain.lower().partition("e")
        decimals = len(mantissa.partition(".")[2])
        scale = 10.0 ** int(exponent or 0)
        if re.match(PER_CENT, text[match.end() :]):
            scale /= 100
        half_unit = 0.5 * scale * 10.0**-decimals
        numbers.append(WrittenNumber(match["digits"], float(mantissa) * scale, half_unit, False))
    return numbers


def compare_prose(phrase: str, *values: float, within: float = 0.0) -> list[str]:
    """Return what differs between a phrase's numbers and the values, a sentence for each.

    A whole number agrees with a value that rounds to it, another one, or a percentage, with a value
    less than a unit of its last digit away. ``within`` allows more, relative to the value, where it
    depends on the machine. Numbers in words count where the digits alone are too few.
    """
    numbers = written_numbers(phrase)
    in_digits = [number for number in numbers if not number.is_word]
    stated = in_digits if len(in_digits) == len(values) else numbers
    if len(stated) != len(values):
        numbers_in_phrase = ", ".join(number.text for number in numbers) or "none"
        raise ValueError(
            f"{phrase!r}: expected {len(values)} numbers, its numbers are {numbers_in_phrase}"
        )
    differences = []
    for number, value in zip(stated, map(float, values), strict=True):
        is_whole = number.half_unit == 0.5
        rounding = number.half_unit if is_whole else 2 * number.half_unit
        allowed = max(rounding, within * abs(value)) * (1 + 1e-9) + 1e-12
        if not abs(number.value - value) <= allowed:  # not a number is no number that is near
            differences.append(f"“{number.text}” in “{phrase}” is {value:.6g}")
    return differences


def check_prose(phrase: str, *values: float, within: float = 0.0) -> None:
    """Compare a phrase of the page with values that its code computed, and record the result."""
    record_phrase(phrase, compare_prose(phrase, *values, within=within))


def state_prose(*phrases: str) -> None:
    """Record phrases whose numbers no run here gives: a setting, a source's figure."""
    for phrase in phrases:
        record_phrase(phrase, [])


def record_phrase(phrase: str, differences: list[str]) -> None:
    """Have the page's output hold a phrase, with what differs from its computed numbers."""
    from IPython.display import display

    record = {"phrase": phrase, "differences": differences}
    display({MIME: record, "text/plain": "; ".join(differences) or phrase}, raw=True)
