"""Runs the tests that a change can touch, the nearest first, as long as ``make quick`` may take.

A test file is nearer, the fewer imports lie between it and what changed. What a bank changes is
tried on its chapter's exercises alone. What there is no time for, and what no import shows (the
book, notebooks that run, processes that tests start), is left to ``make test``, and that is said.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAKEN = ROOT / ".venv" / "seconds.json"  # by each test file, as the last whole run had it
BUDGET = 200.0  # seconds of tests, which two cores work off in less than two minutes
# Seconds on the clock after which no test begins, however far off the guesses are
MOST_SECONDS = 130.0
GUESS, SLOW = 5.0, 40.0  # of a file that has not been timed, without and with tests marked slow
EVERY_EXERCISE = ("checks/test_checks", "checks/test_grid", "checks/test_fine_print")
SOURCE_ROOTS = {"attncourse": "", "tools": "tools/", "tests": "tests/"}


def changed(root: Path, since: str) -> list[str]:
    """Return the files that differ from a commit, those unknown to git included."""
    commands = (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"])
    processes = [git(root, *command) for command in commands]
    for process in processes:
        if process.returncode:
            why = (process.stderr.strip().splitlines() or ["it says nothing"])[0]
            sys.exit(
                f"What has changed is asked of git, and git {' '.join(process.args[1:])} failed "
                f"({why}): make test runs everything"
            )
    return sorted({line for process in processes for line in process.stdout.splitlines()})


def git(root: Path, *words: str) -> subprocess.CompletedProcess:
    """Run git in a folder; where there is no git, this program ends with one sentence."""
    try:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("What has changed is asked of git, which is not installed: make test needs none")


def base(root: Path) -> str:
    """Return the commit at which this branch began; on the main branch the last one."""
    process = git(root, "merge-base", "HEAD", "origin/main")
    return process.stdout.strip() or "HEAD"


@cache
class Imports:
    """Who imports what, in the package, the tools and the tests, as their sources say."""

    def __init__(self, root: Path):
        self.root = root
        self.files = [p for name in SOURCE_ROOTS for p in sorted((root / name).rglob("*.py"))]
        self.files = [p for p in self.files if "fixtures" not in p.parts]
        self.modules = {self.module(p): self.name(p) for p in self.files}
        self.users: dict[str, set[str]] = defaultdict(set)
        for path in self.files:
            for used in self.used(path):
                self.users[used].add(self.name(path))

    def name(self, path: Path) -> str:
        """Return a file's path below the repository's root."""
        return path.relative_to(self.root).as_posix()

    def module(self, path: Path) -> str:
        """Return the name that a file is imported by: tests and tools are on the path."""
        parts = list(path.relative_to(self.root).with_suffix("").parts)
        if parts[0] == "tests":
            parts = parts[1:] if parts[1] in ("corpus", "helpers") else parts[-1:]
        elif parts[0] == "tools":
            parts = parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def used(self, path: Path) -> set[str]:
        """Return the files that a file imports."""
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                named |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
        return {self.modules[name] for name in named if name in self.modules}

    def near(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the test files that these paths reach, each with the imports that lie between."""
        far = {self.source(path): 0 for path in paths}
        queue = list(far)
        for path in queue:
            for user in self.users.get(path, ()):
                if user not in far:
                    far[user] = far[path] + 1
                    queue.append(user)
        return {path: n for path, n in far.items() if re.search(r"(^|/)test_\w+\.py$", path)}

    def source(self, path: str) -> str:
        """Return the Python file that a script, a style sheet or data beside it belongs to."""
        beside = Path(path).with_suffix(".py").as_posix()
        return beside if beside in self.modules.values() else path


def stems(paths: Iterable[str]) -> list[str]:
    """Return the chapters of which a bank, a page, an answer or a task changed."""
    matches = (re.search(r"(?:bank/|\d\d_)(\w+?)(?:\.py|\.md|\.ipynb|/)", path) for path in paths)
    return sorted({match[1] for match in matches if match})


def seconds(root: Path, test: str) -> float:
    """Return the seconds of a test file in the last whole run, or a guess."""
    if test in (known := taken(root)):
        return known[test]
    return SLOW if "mark.slow" in (root / test).read_text("utf-8") else GUESS


@cache
def taken(root: Path) -> dict[str, float]:
    """Return the seconds that tests took when they last ran, by file."""
    file = root / TAKEN.relative_to(ROOT)
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def chosen(root: Path, paths: list[str], budget: float = BUDGET) -> tuple[list[str], list[str]]:
    """Return the test files to run, and those that are left, the nearest first in both."""
    near = Imports(root).near(paths)
    for stem in stems(paths):
        if (root / f"tests/test_{stem}.py").exists():
            near[f"tests/test_{stem}.py"] = 0
    order = sorted(near, key=lambda test: (near[test], seconds(root, test), test))
    run: list[str] = []
    for test in order:
        if sum(seconds(root, test_file) for test_file in [*run, test]) <= budget:
            run.append(test)
    return run, [test for test in order if test not in run]


def pytest(until: float, *arguments: str) -> int:
    """Run tests until a time is over; return the exit status."""
    command = [sys.executable, "-m", "pytest", "-n", "3", "--dist", "loadscope", *arguments]
    environment = {**os.environ, "ATTNCOURSE_TESTS_UNTIL": str(until)}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def main() -> int:
    """Run the tests near what changed; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", help="a commit; by default where this branch began")
    since = parser.parse_args().since or base(ROOT)
    paths = changed(ROOT, since)
    run, remaining = chosen(ROOT, paths)
    tried = [f"{stem}." for stem in stems(paths)]
    print(f"{len(paths)} files changed; {len(run)} test files are near them", flush=True)
    until = time.monotonic() + MOST_SECONDS  # of the machine: another process reads the same
    status = pytest(until, *run) if run else 0
    if tried:
        files = [f"tests/{name}.py" for name in EVERY_EXERCISE if f"tests/{name}.py" not in run]
        status = max(status, pytest(until, "-k", " or ".join(tried), *files))
    print("Left to make test: generated files, the book, what was skipped above, and all that no")
    print("import shows", end="")
    print(
        f"; and {len(remaining)} test files: {', '.join(remaining[:5])}" if remaining else "",
        end="",
    )
    print(" …" if len(remaining) > 5 else "")
    return status


if __name__ == "__main__":
    sys.exit(main())
