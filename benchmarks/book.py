"""How long the book takes to build: cold, with one chapter changed, with nothing changed.

``python benchmarks/book.py`` builds a copy of the course in a folder of its own, with the
environment and the web libraries already there. Times are of this machine at this moment.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COURSE = ("attncourse", "book", "tools", "_config.yml", "_toc.yml", "pyproject.toml")


def build(root: Path) -> tuple[float, str]:
    """Seconds of a build, and what it said."""
    started = time.perf_counter()
    command = [sys.executable, str(ROOT / "tools" / "book.py"), "--root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return time.perf_counter() - started, done.stdout


def copy_to(root: Path) -> None:
    """Copy what the book is built from."""
    for name in (*COURSE, "requirements.txt"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, root / name)


def main() -> None:
    """Print how long the book takes to build: cold, unchanged, with a changed chapter."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_to(root)
        seconds, said = build(root)
        ran = re.findall(r"book/(\w+): executed in ([\d.]+) s", said)
        rows.append(("cold", seconds))
        rows.append(("nothing changed", build(root)[0]))
        page = root / "book" / "02_mixing.md"
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("## Summary", "One more sentence.\n\n## Summary"))
        rows.append(("one chapter's text changed", build(root)[0]))
        page.write_text(text.replace("set_style()", "set_style()  # once more"))
        rows.append(("one chapter's code changed", build(root)[0]))
        size = sum(p.stat().st_size for p in (root / "_build" / "html").rglob("*") if p.is_file())
        largest = max((root / "_build" / "html").rglob("*.html"), key=lambda p: p.stat().st_size)
    print("| build | seconds |\n| --- | --: |")
    for name, seconds in rows:
        print(f"| {name} | {seconds:.1f} |")
    print(f"\nPages run: {', '.join(f'{name} {seconds} s' for name, seconds in ran)}.")
    print(f"The site has {size / 1e6:.1f} MB.", end=" ")
    print(f"Largest page: {largest.name}.")


if __name__ == "__main__":
    main()
