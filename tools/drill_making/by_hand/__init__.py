"""Right answers in steps, and wrong lines written by hand: a module a chapter.

They are for exercises of which changes that a program makes give too few drills: their published
answers are a line or two, or each try takes long. ``RIGHT_ANSWERS`` holds functions by exercise.
``WRONG_LINES`` holds by exercise pairs: a line of one of its right answers, as it stands there, and
what somebody might have written in its place. The checks name each and prove it, like every other
change.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent


def module_by_hand(stem: str) -> ModuleType | None:
    """Return a chapter's module; None where it needs none."""
    if not (FOLDER / f"{stem}.py").exists():
        return None
    return importlib.import_module(f"{__name__}.{stem}")


def right_answers_by_hand(stem: str) -> dict[str, list[Callable]]:
    """Return the right answers in steps of a chapter, by exercise."""
    return getattr(module_by_hand(stem), "RIGHT_ANSWERS", {})


def wrong_lines_by_hand(stem: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the pairs of a right line and a wrong one of a chapter, by exercise."""
    return getattr(module_by_hand(stem), "WRONG_LINES", {})
