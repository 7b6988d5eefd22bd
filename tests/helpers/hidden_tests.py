"""Hidden tests and what they are called."""

from functools import cache
from pathlib import Path

import pytest

from attncourse.grading.submission.notebook import read_cells
from helpers.project import ROOT

FOLDERS = sorted(path for path in (ROOT / "solutions").iterdir() if path.is_dir())


@cache
def cells_of(folder: Path) -> tuple:
    return read_cells((folder / f"{folder.name}.ipynb").read_bytes())


HIDDEN = [
    (folder, cell.grade_id.removeprefix("hidden_"), cell.source)
    for folder in FOLDERS
    for cell in cells_of(folder)
    if cell.grade_id.startswith("hidden_")
]


NAMED = [pytest.param(*hidden, id=f"{hidden[0].name}-{hidden[1]}") for hidden in HIDDEN]
