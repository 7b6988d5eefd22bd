"""The key of a result in the journal: a hash of all that the result depends on."""

import hashlib
import json
import platform
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path

from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment

HASHED_PACKAGES = ("numpy", "torch")  # whose versions a result depends on


def hash_of_conditions(assignment: Assignment, limits: Limits, sandbox: bool) -> bytes:
    """Return a hash of what all submissions of a run share: task, checks, limits, versions."""
    shared = {
        "assignment": asdict(assignment),
        "limits": asdict(limits),
        "sandbox": sandbox,
        "python": platform.python_version(),
        "packages": {name: library_version(name) for name in HASHED_PACKAGES},
        "sources": sources_hash(),
    }
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).digest()


def result_key(shared: bytes, student: str, notebook: bytes) -> str:
    """Return the key of one submission's result, 64 hexadecimal digits.

    ``shared`` is ``hash_of_conditions``. The student's name is hashed first: so it has one length,
    and cannot run into the notebook.
    """
    digest = hashlib.sha256(shared)
    digest.update(hashlib.sha256(student.encode()).digest())
    digest.update(notebook)
    return digest.hexdigest()


def library_version(name: str) -> str:
    """Return the version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


@cache
def sources_hash() -> str:
    """Return a hash of the installed package's sources: chapters, checks and grading."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()
