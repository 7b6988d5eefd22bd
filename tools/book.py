"""Builds the book: runs the pages whose code is new, in parallel, then Jupyter Book.

    python tools/book.py          what has changed since the last build
    python tools/book.py --run    only run the pages' code: the next call lays them out
    python tools/book.py --all    everything anew

Warnings are errors. A page's outputs are kept in jupyter-cache by its code; they are dropped
when a part of the package that it may import has changed, for then they could be stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course import ROOT, Course, CourseError, load
from environment import unwritable
from execution import (
    drop_outputs,
    for_small_models,
    last_lines,
    page_count_text,
    run_pages,
    without_colours,
)
from progress import status_of

from attncourse.grading.files import reserved
from attncourse.grading.isolation import isolate
from attncourse.pretrained.model import FILE, USE, has_pinned_length, model_folder, within_reach

TRACEBACK_LINES = 15  # lines of a traceback
SOURCES = {".bib", ".css", ".html", ".ipynb", ".js", ".json", ".md", ".png", ".py", ".svg"}


def page_key(course: Course, page: str) -> str:
    """A digest of what the page's outputs depend on besides its own code: package and versions.

    A chapter imports only chapters before it, so the ones after it do not count, nor do other
    chapters' drawings. A page that asks for the real model shows something else without it.
    """
    package, chapter = course.root / "attncourse", course.chapter(page)
    later = {f"{c.stem}.py" for c in course.chapters if chapter and c.number > chapter.number}
    modules = [path for path in package.glob("*.py") if path.name not in later]
    shared = [
        path
        for room in ("data", "figures", "pretrained", "support", "tasks")
        for path in (package / room).rglob("*")
        if "__pycache__" not in path.parts  # others may be writing there at this moment
        if path.is_file()
        if path.parent.name != "drawings" or (chapter and path.stem in (chapter.stem, "__init__"))
    ]
    key = digest_of(sorted([*modules, *shared, course.root / "requirements.txt"]))
    return key + model_for([course.root / f"{page}.md"])


def model_for(pages: Iterable[Path]) -> str:
    """Say if the real model is within reach, where one of these pages asks for it."""
    asks = any("attncourse.pretrained.model" in page.read_text(encoding="utf-8") for page in pages)
    return f", {'with' if within_reach() else 'without'} the model" if asks else ""


def digest_of(files: list[Path]) -> str:
    """Return a digest of files and of the Python that reads them."""
    digest = hashlib.sha256(sys.version.encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def page_keys(course: Course) -> dict[str, str]:
    """Return what each page's outputs depend on, now."""
    return {page: page_key(course, page) for page in course.pages}


def forget_if_stale(course: Course, everything: bool) -> dict[str, str]:
    """Drop the outputs that were computed with another package than today's; return the keys."""
    build = course.root / "_build"
    known, keys = build / ".pages", page_keys(course)
    if everything or not known.exists():
        for name in (".jupyter_cache", "html", ".doctrees"):
            shutil.rmtree(build / name, ignore_errors=True)
    build.mkdir(exist_ok=True)
    before = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    stale = [page for page in course.pages if page in before and before[page] != keys[page]]
    if stale:
        print(f"The package has changed: {page_count_text(stale)} to be run again.")
        drop_outputs(course, stale)
    tools, tasks = course.root / "tools", course.root / "exercises"  # these say what each asks
    drawn = [path for path in tools.rglob("*") if path.suffix in SOURCES]
    drawn += tasks.rglob("*.ipynb")
    loaded = [path for path in (course.root / "book" / "assets").rglob("*") if path.is_file()]
    redrawn, reloaded = (
        files_changed(build / ".tools", drawn),
        files_changed(build / ".assets", loaded),
    )
    if stale or redrawn:
        shutil.rmtree(build / ".doctrees", ignore_errors=True)  # what was executed stays
    if stale or redrawn or reloaded:  # each page names the version of what it loads
        shutil.rmtree(build / "html", ignore_errors=True)
    known.write_text(json.dumps(keys), encoding="utf-8")
    return keys


def files_changed(stamp: Path, files: list[Path]) -> bool:
    """True if files differ from those that the stamp remembers; it remembers these from now on."""
    key = digest_of(sorted(files))
    before = stamp.read_text(encoding="utf-8") if stamp.exists() else ""
    stamp.write_text(key, encoding="utf-8")
    return key != before


def sources_key(root: Path) -> str:
    """A digest of all files that the book is made from."""
    names = ("attncourse", "book", "exercises", "tools")
    files = [p for name in names for p in (root / name).rglob("*") if p.suffix in SOURCES]
    settings = [root / name for name in ("_config.yml", "_toc.yml", "requirements.txt")]
    return digest_of(sorted(files) + settings)


def stamp_holds(stamp: Path, key: str) -> bool:
    """True if a stamp is there and holds this key."""
    return stamp.exists() and stamp.read_text(encoding="utf-8") == key


def book_is_current(root: Path, key: str) -> bool:
    """True if the book that is there was made from the same sources."""
    html = root / "_build" / "html" / "index.html"
    return html.exists() and stamp_holds(root / "_build" / ".book", key)


def run_sphinx(root: Path) -> int:
    """Jupyter Book itself; what it warns about is an error and goes to stderr."""
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", ".", "-n", "-W", "--keep-going"]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            cwd=root,
            env=os.environ | for_small_models(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as building,
    ):
        tell_stages(building.stdout or ())
        building.wait()
        errors.seek(0)
        error_text = errors.read()
    if building.returncode:
        print(build_error(error_text), file=sys.stderr)
        # Sphinx warns only about pages that it reads: the next build must read them all again.
        shutil.rmtree(root / "_build" / ".doctrees", ignore_errors=True)
    return building.returncode


def build_error(error_text: str) -> str:
    """Return what Sphinx objects to; of a build that Jupyter Book itself stopped, its last words.

    Jupyter Book adds its own traceback and a banner to what Sphinx said.
    """
    error_text = without_colours(error_text)
    sphinx_errors = error_text.partition("Traceback (most recent call last)")[0].strip()
    return (
        sphinx_errors
        or "\n".join(error_text.strip().splitlines()[-TRACEBACK_LINES:])
        or "Jupyter Book said nothing."
    )


def tell_stages(lines: Iterable[str]) -> None:
    """A line for each of Sphinx's stages that goes through the pages, when it is through."""
    started = time.perf_counter()
    for line in lines:
        stage = re.match(
            r"(reading sources|writing output)\.\.\. .*\[100%\]", without_colours(line)
        )
        if stage:
            print(f"  {stage[1]}: {time.perf_counter() - started:.0f} s", flush=True)
            started = time.perf_counter()


def copy_model(html: Path) -> None:
    """The real model's file in the book's folder, where it has been fetched: one page runs it.

    It is the same file under a second name where the disk allows that, or a copy.
    """
    source, target = model_folder() / FILE.name, html / "model" / FILE.name
    if (
        os.environ.get(USE) == "no"
        or not has_pinned_length(source, FILE)
        or has_pinned_length(target, FILE)
    ):
        return
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def main() -> int:
    """Build the book; return 1 where a page or a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="forget earlier builds")
    parser.add_argument("--run", action="store_true", help="only run the pages' code")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    started = time.perf_counter()
    isolate(os.environ, arguments.root.resolve() / "_build" / ".jupyter")
    os.environ.setdefault("ATTNCOURSE_MODEL", "kept")  # a page waits for the model, or does without
    try:
        course = load(arguments.root.resolve())
        missing = [page for page in course.pages if not (course.root / f"{page}.md").exists()]
        if missing:
            raise CourseError(f"_toc.yml names pages that do not exist: {', '.join(missing)}")
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    if problem := unwritable(course.root):
        print(problem, file=sys.stderr)
        return 2
    with reserved(course.root / "_build" / "book", lambda line: print(line, flush=True)):
        return build(course, arguments, started)


def build(course: Course, arguments: argparse.Namespace, started: float) -> int:
    """Build what has changed since the last time; the status to end with."""
    start = course.root / "_build" / "html" / "index.html"
    sources, pages = sources_key(course.root), [course.root / f"{page}.md" for page in course.pages]
    key = sources + model_for(pages)
    if book_is_current(course.root, key) and not arguments.all:
        copy_model(start.parent)
        print(f"Nothing has changed since the last build. Open {start}")
        return 0
    have_run = course.root / "_build" / ".jupyter_cache" / ".have_run"  # it goes with the outputs
    if arguments.all or not stamp_holds(have_run, key):
        keys, succeeded = run_new_pages(course, arguments.all)
        if not succeeded:
            return 1
        key = sources + model_for(pages)  # it may have come meanwhile
        if keys == page_keys(course):
            have_run.write_text(key, encoding="utf-8")
    if arguments.run:
        return 0
    print("Laying out the pages …", flush=True)
    from prose_numbers import read_pages

    with ThreadPoolExecutor() as beside:  # Sphinx is a process of its own
        laid_out = beside.submit(run_sphinx, course.root)
        numbers = list(read_pages(course, course.pages))
    if laid_out.result():
        print("The book has warnings or errors: see above.", file=sys.stderr)
        return 1
    for result in numbers:
        for fault in result.faults:
            print(f"  {result.page}: {fault}", file=sys.stderr)
    copy_model(start.parent)
    (course.root / "_build" / ".book").write_text(key, encoding="utf-8")
    print(f"The book is built ({time.perf_counter() - started:.0f} s). Open {start}")
    return 0


def run_new_pages(course: Course, everything: bool) -> tuple[dict[str, str], bool]:
    """Run the pages whose code or package is new; return what outputs depend on, and if all ran."""
    keys = forget_if_stale(course, everything)
    outcome, failures = run_pages(course)
    now = page_keys(course)  # pages may have waited for the real model
    keys |= {page: now[page] for page, result in outcome.items() if result.startswith("executed")}
    (course.root / "_build" / ".pages").write_text(json.dumps(keys), encoding="utf-8")
    cached = [page for page, result in outcome.items() if result == "cached"]
    if len(cached) > 1 and len(cached) == len(outcome):
        cached = [page_count_text(cached)]
    for pages in cached:
        print(f"  {pages}: cached")
    for page, traceback in failures.items():
        print(f"{page}.md failed:\n{last_lines(traceback)}", file=sys.stderr)
    return keys, not failures


if __name__ == "__main__":
    sys.exit(status_of(main))
