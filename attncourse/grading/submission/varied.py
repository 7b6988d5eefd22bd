"""A solved notebook in a variant: its text, its checks, and no tests that contradict it.

The published convention's hidden tests call an answer in that convention. Those of an exercise that
is asked for otherwise, and those that use its answer, give way to one more check of the variant.
"""

import json
import re
from collections.abc import Iterable
from itertools import accumulate

from attncourse.checks import variants_of
from attncourse.checks.variants.variant import Variant
from attncourse.grading.errors import UserError
from attncourse.grading.submission.notebook import HIDDEN_TESTS_MARK

VARIANT = ', variant="{}"'
OTHER = "another version of the exercises was handed in than was asked for"
BADGE = re.compile(r"\[!\[[^\]]*\]\([^)]*\)\]\([^)]*/exercises/[^)]*\)\n*")  # the published one's
CALL = re.compile(
    r"""\b(check|examine)\(\s*["']((\w+)\.(\w+))["'],\s*(\w+)(?=[,)])"""
    r"""(?:.*?\bvariant=["'](\w+)["'])?"""
)
ONE_MORE = """\
# One more test of {name}.
### BEGIN HIDDEN TESTS
import random

assert examine("{target}", {name}, seed=random.randrange(2**32)).passed, "the same on other numbers"
### END HIDDEN TESTS"""


def notebook_in_variant(data: bytes, name: str, assignment: str) -> bytes:
    """Return a solved notebook in the variant ``name``; raise ``UserError`` if it has none."""
    book = json.loads(data)
    cells = book["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
    answers = {m[2]: m[5] for cell in cells for m in CALL.finditer(cell["source"])}
    chosen = variants_called(name, answers, assignment)
    names = {answers[target]: variant for target, variant in chosen.items()}

    def call_with_variant(call: re.Match) -> str:
        """Return a check's call, which asks for the variant if its exercise has it."""
        return call[0] + (VARIANT.format(name) if call[2] in chosen else "")

    cells[0]["source"] = BADGE.sub("", cells[0]["source"])
    before = ""
    for cell, about in zip(cells, exercise_of_cells(cells), strict=True):
        mark = cell["metadata"].get("nbgrader", {})
        source = cell["source"]
        if mark.get("solution"):
            continue
        if HIDDEN_TESTS_MARK in source:
            if names.keys() & set(re.findall(r"\w+", source)):
                source = one_more_hidden_test(mark["grade_id"], answers)
        elif about in {"", *names}:
            distinct_variants = {id(variant): variant for variant in names.values()}
            for variant in distinct_variants.values():
                source = variant.reword(source)
            if about != before:  # the text of the exercise
                source = with_sentence(source, names[about].sentence)
        cell["source"], before = CALL.sub(call_with_variant, source), about
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def variants_asked(sources: Iterable[str]) -> dict[str, str]:
    """Return, by target, the variants that checks in these sources ask for."""
    return {m[2]: m[6] for source in sources for m in CALL.finditer(source) if m[6]}


def other_variant(handed_in: Iterable[str], asked_for: Iterable[str]) -> list[str]:
    """Return a sentence if a notebook's checks ask for another variant than the assignment's.

    The list is empty if they do not. Published answers fail in a variant, and the other way round,
    though they may be right.
    """
    asked_variants = {m[2]: m[6] or "" for source in asked_for for m in CALL.finditer(source)}
    used_variants: dict[str, set[str]] = {}
    for call in (call for source in handed_in for call in CALL.finditer(source)):
        used_variants.setdefault(call[2], set()).add(call[6] or "")
    differing = [
        target
        for target in asked_variants  # in the assignment's order, which is the same everywhere
        if asked_variants[target] not in used_variants.get(target, {asked_variants[target]})
    ]
    if not differing:
        return []
    used, asked = min(used_variants[differing[0]]), asked_variants[differing[0]]
    used, asked = (f"the variant {name}" if name else "the published one" for name in (used, asked))
    return [f"{OTHER}: {used} in place of {asked}; it is graded as {asked}"]


def exercise_of_cells(cells: list[dict]) -> list[str]:
    """Return the exercise that each cell is about; "" for cells before the first.

    A cell is about an exercise from the text before its solution on.
    """
    begins, text = {}, 0
    for number, cell in enumerate(cells):
        mark = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown":
            text = number
        elif mark.get("solution"):
            begins[text] = mark["grade_id"]
    about = (begins.get(number, "") for number in range(len(cells)))
    return list(accumulate(about, lambda before, section: section or before))


def variants_called(name: str, answers: Iterable[str], assignment: str) -> dict[str, Variant]:
    """Return, by target, the variant of this name of each exercise that has it.

    Raises ``UserError`` if none has.
    """
    known = {stem: variants_of(stem) for stem in {target.split(".")[0] for target in answers}}
    chosen = {
        target: variant
        for target in answers
        for variant in known[target.split(".")[0]]
        if variant.name == name and target.split(".")[1] in variant.adapters
    }
    if not chosen:
        names = sorted({variant.name for several in known.values() for variant in several})
        has = f"it has {', '.join(names)}" if names else "it has none"
        raise UserError(f"{assignment} has no variant {name}: {has}")
    return chosen


def with_sentence(text: str, sentence: str) -> str:
    """Return an exercise's text with a sentence on what differs from the book.

    It is put below the text's heading and facts.
    """
    parts = re.fullmatch(r"(.*\n)\n?(\*.*\*\n)?\n?((?s:.*))", text + "\n")
    assert parts is not None, "each group may be empty, and the text has a line's end"
    head, facts, rest = parts.groups()
    quote = f"> **Other than in the book.** {sentence}"
    return "\n".join(part for part in (head, facts, quote + "\n", rest) if part).rstrip()


def one_more_hidden_test(grade_id: str, answers: dict[str, str]) -> str:
    """Return a hidden test by an exercise's check, in place of the hidden test ``grade_id``."""
    name = grade_id.split("_", 1)[1]
    target = next(target for target, answer in answers.items() if answer == name)
    return ONE_MORE.format(name=name, target=target)
