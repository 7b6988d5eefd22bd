"""What a result depends on, as one number: where it is the same, nothing has to run again."""

import hashlib
import json
import platform
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path

from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment

PACKAGES = ("numpy", "torch")


def conditions(assignment: Assignment, limits: Limits, sandbox: bool) -> bytes:
    """What all submissions of a run share: task, checks, limits, jail and versions, as a hash."""
    shared = {
        "assignment": asdict(assignment),
        "limits": asdict(limits),
        "sandbox": sandbox,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "sources": sources(),
    }
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).digest()


def key(shared: bytes, student: str, notebook: bytes) -> str:
    """The key of one submission's result, 64 digits."""
    found = hashlib.sha256(shared)
    found.update(hashlib.sha256(student.encode()).digest())
    found.update(notebook)
    return found.hexdigest()


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


@cache
def sources() -> str:
    """A hash of the installed package's own text: chapters, checks and grading."""
    root = Path(__file__).resolve().parents[2]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        found.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode())
        found.update(text)
    return found.hexdigest()
