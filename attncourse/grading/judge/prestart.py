"""Lanes that start before anything else is loaded, since their libraries take longest."""

import re
from contextlib import suppress
from pathlib import Path

from attncourse.grading.errors import UserError
from attncourse.grading.judge.lanes import LANES
from attncourse.grading.machine import require_linux

TORCH = re.compile(rb'^[\s"]*(import|from) torch\b', re.M)


def start_ahead(path: Path, lanes: int = 1) -> None:
    """Start as many lanes as asked for, with the libraries that this notebook most likely needs.

    Lanes of a wrong guess are ended unused. An unreadable file, or no Linux, is told of later.
    """
    with suppress(OSError, UserError):
        require_linux()
        LANES.start_expected(likely_libraries(path.read_bytes()), lanes)


def likely_libraries(notebook: bytes) -> tuple[str, ...]:
    """Return the libraries that a notebook's lane starts with, guessed from its file's bytes."""
    return ("numpy", "torch") if TORCH.search(notebook) else ("numpy",)
