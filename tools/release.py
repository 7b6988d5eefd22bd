"""Checks that a tag is the version of the sources, and prints what the changelog says of it.

python tools/release.py v0.1.0
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def notes(root: Path, tag: str) -> str:
    """Return the changelog's section on the tag's version; raise SystemExit where they differ."""
    package = (root / "attncourse" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'(?m)^__version__ = "(.*)"$', package)
    if match is None:
        sys.exit("attncourse/__init__.py has no line __version__ = …")
    version = match[1]
    if tag != f"v{version}":
        sys.exit(
            f"the tag is {tag}, attncourse/__init__.py has version {version}: "
            f"tag v{version}, or change it"
        )
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"(?ms)^## (\S+).*?\n(.*?)(?=^## |\Z)", changes))
    if not sections.get(tag[1:], "").strip():
        sys.exit(f"CHANGELOG.md says nothing of {tag[1:]}: add a section ## {tag[1:]}")
    return sections[tag[1:]].strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tag")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    print(notes(arguments.root, arguments.tag))
