"""What an exercise asks for is folded on the page, under a line that names the exercise."""

from __future__ import annotations

import ast
import re

import course as settings
import pytest

from attncourse.checks import exercises
from helpers.page_numbers import numbers_of
from helpers.project import ROOT

CHAPTERS = settings.load(ROOT).chapters
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMPT = re.compile(
    r'code_prompt_show: "One way to write it, which exercises? (.*?) asks? of you: '
)


def names_printed(cell: str) -> list[str]:
    """Return the names of what a cell prints with ``show_source``."""
    code = re.sub(r"\A(?:---\n.*?^---\n|(?::[^\n]*\n)*)", "", cell, flags=re.DOTALL | re.MULTILINE)
    try:
        calls = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call)]
    except SyntaxError:  # a cell with a magic shows no source
        return []
    return [
        ast.unparse(argument).partition(".")[0]
        for call in calls
        if ast.unparse(call.func) == "show_source"
        for argument in call.args
    ]


def faults(page: str, numbers: dict[str, str], targets: set[str]) -> list[str]:
    messages = []
    for cell in CELL.findall(page):
        exercises_shown = [name for name in dict.fromkeys(names_printed(cell)) if name in targets]
        prompt = PROMPT.search(cell)
        if exercises_shown and not ("hide-output" in cell and prompt):
            messages.append(f"{', '.join(exercises_shown)}: printed, not folded")
        elif prompt:
            named = re.findall(r"\d+\.\d+", prompt[1])
            expected = [numbers[name] for name in exercises_shown if name in numbers]
            if sorted(named) != sorted(expected):
                messages.append(
                    f"the fold names {', '.join(named)} and shows {', '.join(expected)}"
                )
    return messages


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_code_that_an_exercise_asks_for_is_folded(chapter):
    page = (ROOT / f"{chapter.page}.md").read_text(encoding="utf-8")
    targets = {e.name for e in exercises().values() if e.stem == chapter.stem}
    assert faults(page, numbers_of(chapter), targets) == []


FOLD = """```{code-cell} ipython3
---
mystnb:
  code_prompt_show: "One way to write it, which exercise 2.1 asks of you: try first"
tags: [remove-input, hide-output]
---
show_source(mix)
```
"""


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (FOLD, None),
        (FOLD.replace(", hide-output", ""), "mix: printed, not folded"),
        (FOLD.replace("2.1", "2.2"), "the fold names 2.2 and shows 2.1"),
        ("```{code-cell} ipython3\n:tags: [remove-input]\nshow_source(mix)\n```\n", "not folded"),
        ("```{code-cell} ipython3\nshow_source(helper)\n```\n", None),
    ],
)
def test_each_fault_of_a_fold_is_reported(page, fault):
    messages = faults(page, {"mix": "2.1", "blend": "2.2"}, {"mix", "blend"})
    assert (messages == []) if fault is None else fault in "; ".join(messages)
