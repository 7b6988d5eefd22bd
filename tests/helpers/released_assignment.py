"""An assignment as a student gets it."""

import json
from pathlib import Path

from helpers.project import ROOT

MIX = "def mix(A, X):\n    # rows of A say how much of each row of X\n    return A @ X"
NORMALIZE = (
    "def normalize_rows(A):\n    if (A < 0).any():\n        raise ValueError('A: negative')\n"
    "    sums = A.sum(axis=-1, keepdims=True)\n    return A / np.where(sums == 0, 1, sums)"
)


def released(folder: Path, number_stem: str, name: str = "", **answers: str) -> Path:
    """The notebook that students get, with these answers in their places."""
    content = json.loads((ROOT / f"exercises/{number_stem}/{number_stem}.ipynb").read_text())
    for raw in content["cells"]:
        marks = raw["metadata"].get("nbgrader", {})
        if marks.get("solution") and marks["grade_id"] in answers:
            raw["source"] = answers[marks["grade_id"]]
    path = folder / (name or f"{number_stem}.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path
