"""The part of this package that a submission finds: the chapters before its own."""

import re
import shutil
from functools import lru_cache
from pathlib import Path

import attncourse
from attncourse import STEMS
from attncourse.grading.submission.notebook import Assignment

TARGET = re.compile(r"""\b(?:check|examine)\(\s*["'](\w+)\.""")
ALWAYS = ("__init__.py", "arrays.py", "tensors.py", "shapes.py", "tasks", "figures")

# Cells that call check() run on; what they would have shown is found by the judge.
CHECKS = '''\
"""The checks are not here: they run outside, where the grade is made."""


class Verdict:
    passed = False
    earned = possible = 0


def check(target, implementation):
    """Nothing happens here."""


def examine(target, implementation, seed=None):
    return Verdict()


def exercises():
    return {}


def in_place(function):
    return function
'''
LATER = """\
raise ImportError(
    "attncourse.{stem} is not there while your work is graded: this assignment asks you to write it"
)
"""


@lru_cache(maxsize=8)
def taught_before(assignment: Assignment) -> tuple[str, ...]:
    """The chapters before the first that the assignment has exercises of."""
    targets = [stem for cell in assignment.cells for stem in TARGET.findall(cell.source)]
    own = [stem for stem in STEMS if stem in targets or assignment.name.endswith(stem)]
    return STEMS[: STEMS.index(own[0])] if own else STEMS


def make_view(folder: Path, stems: tuple[str, ...]) -> None:
    """Writes the package with these chapters and no other into ``folder``."""
    source, place = Path(attncourse.__file__).parent, folder / "attncourse"
    folder.mkdir(mode=0o755)
    place.mkdir(mode=0o755)
    for name in (*ALWAYS, *(f"{stem}.py" for stem in stems)):
        if (source / name).is_dir():
            shutil.copytree(
                source / name, place / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copyfile(source / name, place / name)
    for name in STEMS:
        if name not in stems:
            (place / f"{name}.py").write_text(LATER.format(stem=name), encoding="utf-8")
    (place / "checks").mkdir(mode=0o755)
    (place / "checks" / "__init__.py").write_text(CHECKS, encoding="utf-8")
