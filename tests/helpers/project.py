"""Where the project stands, its tools, and copies of it that a test may spoil."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "course"


def run_tool(name: str, *arguments: object) -> subprocess.CompletedProcess:
    """Run `tools/<name>.py` as the Makefile does."""
    command = [sys.executable, ROOT / "tools" / f"{name}.py", *arguments]
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=ROOT, check=False
    )


def copy_course(target: Path, *folders: str, source: Path = ROOT) -> Path:
    """A copy of the sources that the tools read: settings, pages and the named folders."""
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    target.mkdir(parents=True, exist_ok=True)
    for name in ("_config.yml", "requirements.txt"):
        shutil.copy(ROOT / name, target)
    for name in ("_toc.yml", "README.md"):
        if (source / name).exists():
            shutil.copy(source / name, target)
    for name in ("book", *folders):
        shutil.copytree(source / name, target / name, ignore=ignore)
    if source != ROOT:
        shutil.copytree(ROOT / "book" / "assets", target / "book" / "assets")
    return target
