"""An assignment's notebook in a variant: its text, its checks, and tests that do not contradict it.

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
    """Return a solved notebook in the variant of this name.

    Raises ``UserError`` where there is none.
    """
    book = json.loads(data)
    cells = book["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
    answers = {m[2]: m[5] for cell in cells for m in CALL.finditer(cell["source"])}
    chosen = variants_called(name, answers, assignment)
    names = {answers[target]: variant for target, variant in chosen.items()}

    def asking(call: re.Match) -> str:
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
                source = one_more(mark["grade_id"], answers)
        elif about in {"", *names}:
            for variant in {
                id(candidate): candidate for candidate in names.values()
            }.values():  # each once
                source = variant.reword(source)
            if about != before:  # the text of the exercise
                source = with_sentence(source, names[about].sentence)
        cell["source"], before = CALL.sub(asking, source), about
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def variants_asked(sources: Iterable[str]) -> dict[str, str]:
    """Return the variant that a notebook's checks ask for, by target."""
    return {m[2]: m[6] for source in sources for m in CALL.finditer(source) if m[6]}


def other_variant(handed_in: Iterable[str], asked_for: Iterable[str]) -> list[str]:
    """Return a sentence where a notebook's checks are in another variant than the assignment's.

    Published answers fail in a variant, and the other way round, though they may be right.
    """
    wanted = {m[2]: m[6] or "" for source in asked_for for m in CALL.finditer(source)}
    theirs: dict[str, set[str]] = {}
    for call in (call for source in handed_in for call in CALL.finditer(source)):
        theirs.setdefault(call[2], set()).add(call[6] or "")
    other = [target for target in wanted.keys() & theirs if wanted[target] not in theirs[target]]
    if not other:
        return []
    was, ought = theirs[other[0]].pop(), wanted[other[0]]
    named = [f"the variant {name}" if name else "the published one" for name in (was, ought)]
    return [f"{OTHER}: {named[0]} in place of {named[1]}; it is graded as {named[1]}"]


def exercise_of_cells(cells: list[dict]) -> list[str]:
    """Return the exercise that each cell is about; "" before all.

    It is about one from the text before its solution on.
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
    """Return the variant of this name for every exercise that has it, by target."""
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
    """Return an exercise's text with what is other than in the book.

    That stands below its heading and its facts.
    """
    parts = re.fullmatch(r"(.*\n)\n?(\*.*\*\n)?\n?((?s:.*))", text + "\n")
    assert parts is not None, "each group may be empty, and the text has a line's end"
    head, facts, rest = parts.groups()
    quote = f"> **Other than in the book.** {sentence}"
    return "\n".join(part for part in (head, facts, quote + "\n", rest) if part).rstrip()


def one_more(grade_id: str, answers: dict[str, str]) -> str:
    """Return a hidden test of the exercise that this one is of, by its check."""
    name = grade_id.split("_", 1)[1]
    target = next(target for target, answer in answers.items() if answer == name)
    return ONE_MORE.format(name=name, target=target)
