"""Holds the numbers of the pages' texts against what the pages compute.

    python tools/prose_numbers.py            all pages as they were built last
    python tools/prose_numbers.py 05_kqv     one page

A page's hidden cells compare phrases of its prose, captions and alt texts with computed values
(`attncourse.figures.prose_numbers.check_prose`). Here it is asked whether each such phrase stands
in the page, whether its numbers agreed when the page ran, and which numbers that look computed no
phrase holds. Numbers that no run gives (a setting, a source's figure) are named by `state_prose`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from course import ROOT, Course, load
from execution import cache_of, without_colours

from attncourse.figures.prose_numbers import IN_DIGITS, MIME, PROSE_TAG

CODE_CELLS = re.compile(r"^```\{code-cell\}.*?^```$", re.MULTILINE | re.DOTALL)
SENTENCE_PATTERN = r"(?:(?![.!?]\s|\n\n).)*"
CITED = re.compile(rf"{SENTENCE_PATTERN}\{{cite[:\w]*\}}`[^`]+`{SENTENCE_PATTERN}", re.DOTALL)
# What holds no result of a run: formulas, code, addresses, names of labels and figures, options.
NO_PROSE = re.compile(
    r"\A---\n.*?^---$|^```\{math\}.*?^```$|^\$\$.*?^\$\$[^\n]*$|`[^`\n]*`|\]\([^)]*\)|https?://\S+"
    r"|^:[\w-]+:[^\n]*$|^\([\w-]+\)=$|^ *(?:name|tags|label|code_prompt_show):[^\n]*$|\{[\w:-]+\}"
    r"|\b(?:[Ee]xercises?|Fig\.|[Ff]igures?|[Hh]eads?|[Ss]ections?|layer)\s\d+\.\d+"
    r"(?:(?:,| and| or)\s\d+\.\d+)*|\$[^$]*\$",
    re.MULTILINE | re.DOTALL,
)
NUMBER_IN_MATH = re.compile(r"\$(?:\\approx\s*)?([−-]?[\d.,]+(?:\s?\\?%)?)\$")
UNITS = r"\s?(?:nats?\b|bits\b|ms\b|µs\b|seconds?\b|s\b|[kMG]B\b|times\b)"
LOOKS_COMPUTED = re.compile(
    rf"{IN_DIGITS}(?=(?:(?:,| and| to| or|–)\s*[−-]?\d[\d.]*)*(?:\s?%|{UNITS}))"  # with a unit
    r"|(?<![\w.,])[−-]?\d[\d,]*\.\d+(?!\w|\.\d|\)\s*=)"  # a fraction
    r"|(?<![\w.,])\d+(?= (?:of|in|out of) (?:the )?\d+\b)"  # so many of so many
)


@dataclass
class PageNumbers:
    """The results of comparing one page's numbers."""

    page: str
    held: int = 0
    differences: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Return a sentence for each number that contradicts the page or that nothing holds."""
        return [
            *self.differences,
            *(f"“{phrase}” is checked but does not stand in the page" for phrase in self.missing),
            *(f"nothing holds {number}" for number in self.uncovered),
        ]


def joined_lines(text: str) -> str:
    """Return a text on one line."""
    return re.sub(r"\s+", " ", text)


def prose_of(source: str) -> str:
    """Return a page's source without its code; captions and alt texts stay."""

    def caption(cell: re.Match) -> str:
        lines = cell[0].splitlines()[1:]
        options = lines[1 : lines.index("---", 1)] if lines[:1] == ["---"] else []
        return "\n".join(options)

    return CODE_CELLS.sub(caption, source)


def uncovered_numbers(source: str, phrases: list[str]) -> Iterator[str]:
    """Yield each number of the prose that looks computed and that no phrase covers."""
    text = CITED.sub(" ¦ ", prose_of(source))  # a sentence that names its source
    for phrase in phrases:
        text = re.sub(r"\s+".join(map(re.escape, phrase.split())), " ¦ ", text)
    text = joined_lines(NO_PROSE.sub(" ¦ ", NUMBER_IN_MATH.sub(r"\1", text)))
    for match in LOOKS_COMPUTED.finditer(text):
        yield f"“{match[0]}” in “…{text[max(0, match.start() - 40) : match.end() + 25]}…”"


def read_page(source: str, executed: nbformat.NotebookNode | None, page: str = "") -> PageNumbers:
    """Return what became of a page's numbers, from its source and its last run."""
    cells = [cell for cell in executed.cells if "outputs" in cell] if executed else []
    outputs = [out for cell in cells for out in cell.outputs]
    checks = [cell for cell in cells if PROSE_TAG in cell.metadata.get("tags", ())]
    errors = [out for cell in checks for out in cell.outputs if out.output_type == "error"]
    records = [out["data"][MIME] for out in outputs if MIME in out.get("data", {})]
    phrases = [record["phrase"] for record in records]
    prose = joined_lines(prose_of(source))
    return PageNumbers(
        page,
        len(records),
        [difference for record in records for difference in record["differences"]]
        + [f"a check of the text ended in {error_in_cell(out)}" for out in errors],
        [phrase for phrase in phrases if joined_lines(phrase) not in prose],
        list(uncovered_numbers(source, phrases)),
    )


def error_in_cell(error: nbformat.NotebookNode) -> str:
    """Return an error's name and message, and the line of the cell that raised it."""
    lines = without_colours("\n".join(error.traceback)).splitlines()
    raised = [match[1] for line in lines if (match := re.match(r"-+>\s*\d+ (.*)", line))]
    message = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    return f"{message}, at “{raised[-1].strip()}”" if raised else message


def executed_page(course: Course, page: str) -> nbformat.NotebookNode | None:
    """Return a page as it ran for the last build, None if it holds no code or has not run."""
    cache = cache_of(course)
    record = cache.get_cached_project_nb(str(course.root / f"{page}.md"))
    return cache.get_cache_bundle(record.pk).nb if record else None


def read_pages(course: Course, pages: Iterable[str]) -> Iterator[PageNumbers]:
    """Yield the numbers of those pages that hold any."""
    for page in pages:
        source = (course.root / f"{page}.md").read_text(encoding="utf-8")
        if CODE_CELLS.search(source):
            yield read_page(source, executed_page(course, page), page)


def main() -> int:
    """Print the pages' faults; return 1 where there are any."""
    course = load(ROOT)
    pages = [page for page in course.pages if not sys.argv[1:] or Path(page).name in sys.argv[1:]]
    results = list(read_pages(course, pages))
    for result in results:
        print(f"{result.page}: {result.held} held, {len(result.faults)} faults")
        for fault in result.faults:
            print(f"  {fault}")
    return 1 if any(result.faults for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
