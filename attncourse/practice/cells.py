"""Drills as the cells of a notebook: what comes out and what should, the code, its check."""

import json
from collections.abc import Iterable
from typing import Any

from attncourse import STEMS
from attncourse.practice.drills import Drill, DrillExample

INTRODUCTION = (
    "Each function below was right until one line of it was changed. Find the line, mend it where "
    "it stands, run its cell and then the check below. Nothing else has to change."
)
PRACTICE, TO_MEND = "# Practice · chapter ", "# Mend it · chapter "  # titles, to know them by
MAX_CELL_COLUMNS = 76  # columns of a value in one line


def practice_notebook(stem: str, drills: Iterable[Drill]) -> dict[str, Any]:
    """Return a notebook of drills, each with its check, as it is saved."""
    number = STEMS.index(stem) + 1
    cells = [text_cell("title", f"{PRACTICE}{number}\n\n{INTRODUCTION}")]
    cells.append(code_cell("imports", "from attncourse.checks import check"))
    before = ""
    for place, drill in enumerate(drills, 1):
        cells.append(text_cell(f"task-{place}", f"## {place} · {task_text(drill)}"))
        if drill.setup and drill.setup != before:
            cells.append(code_cell(f"given-{place}", drill.setup))
            before = drill.setup
        cells.append(code_cell(f"mend-{place}", "\n".join(drill.code)))
        cells.append(code_cell(f"check-{place}", check_line(drill)))
    return notebook_of(cells)


def notebook_of(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the cells as a notebook for Python."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    language = {"name": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": language},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def is_for_practice(sources: Iterable[str]) -> bool:
    """True if these are the cells of a notebook of drills, whose functions are nobody's answers."""
    return any(source.startswith((PRACTICE, TO_MEND)) for source in sources)


def notebook_text(notebook: dict[str, Any]) -> str:
    """Return a notebook's file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def check_line(drill: Drill) -> str:
    """Return the call that checks a drill's function."""
    return f'check("{drill.exercise}", {drill.function})'


def task_text(drill: Drill) -> str:
    """Return what a notebook says of a drill: the function, the example, the section folded."""
    return (
        f"`{drill.function}`\n\n{example_text(drill.example)}\n\n"
        f"<details><summary>Where to read</summary>\n\n*{drill.heading}*, chapter "
        f"{STEMS.index(drill.stem) + 1}\n\n</details>"
    )


def example_text(example: DrillExample) -> str:
    """Return an example as Markdown: the call, its inputs, what comes out, what should."""
    note = f" ({example.note})" if example.note else ""
    lines = [f"{array['name']} = {value_text(array['value'])}" for array in example.inputs]
    input_block = ["```text", *lines, "```", ""] if lines else []
    head = f"`{example.call}`{note}"
    results = ["```text", f"gives        {value_text(example.got)}"]
    results += [f"should give  {value_text(example.want)}", "```"]
    return "\n".join([f"{head}, where" if lines else head, "", *input_block, *results])


def value_text(value: Any) -> str:
    """Return a value of an example as text; a matrix row below row."""
    if isinstance(value, dict):
        return described(value)
    if isinstance(value, list):
        flat = plain_list(value)
        if len(flat) <= MAX_CELL_COLUMNS or not all(isinstance(row, list) for row in value):
            return flat
        return "[" + ",\n ".join(map(value_text, value)) + "]"
    return str(value)


def plain_list(value: Any) -> str:
    """Return a list's text without quotes."""
    if isinstance(value, list):
        return f"[{', '.join(map(plain_list, value))}]"
    return str(value)


def described(value: dict[str, Any]) -> str:
    """Return in words what is no number or list of numbers."""
    if "shape" in value:
        return f"an array of shape {tuple(value['shape'])}"
    if "raised" in value:
        return value["raised"]
    if "changed" in value:
        return f"the right result, and changes {value['changed']} in place"
    if "parts" in value:
        named = [
            f"{part['name']}: {value_text(part['value'])}"
            if isinstance(part, dict) and "name" in part
            else value_text(part)
            for part in value["parts"]
        ]
        return "; ".join(named)
    return str(value.get("text", ""))


def text_cell(name: str, source: str) -> dict[str, Any]:
    """Return a Markdown cell as a notebook's file holds it."""
    return {
        "cell_type": "markdown",
        "id": name,
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }


def code_cell(name: str, source: str, **metadata: Any) -> dict[str, Any]:
    """Return a code cell as a notebook's file holds it."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": metadata,
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }
