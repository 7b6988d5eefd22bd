"""Builds the book: runs the pages whose code is new, in parallel, then Jupyter Book.

    python tools/book.py          what has changed since the last build
    python tools/book.py --all    everything anew

Warnings are errors. A page's outputs are kept in jupyter-cache by its code; they are dropped
when a part of the package that it may import has changed, for then they could be stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from course import ROOT, Course, CourseError, load
from progress import Progress

if TYPE_CHECKING:
    from jupyter_cache.base import JupyterCacheAbstract

SOURCES = {".bib", ".css", ".js", ".json", ".md", ".py", ".svg"}
READER = {"name": "myst_nb_md", "type": "plugin"}


def page_key(course: Course, page: str) -> str:
    """A digest of what the page's outputs depend on besides its own code: package and versions.

    A chapter imports only chapters before it, so the ones after it do not count, nor do other
    chapters' drawings.
    """
    package, own = course.root / "attncourse", course.chapter(page)
    later = {f"{c.stem}.py" for c in course.chapters if own and c.number > own.number}
    modules = [path for path in package.glob("*.py") if path.name not in later]
    shared = [
        path
        for room in ("figures", "tasks")
        for path in (package / room).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
        if path.parent.name != "drawings" or (own and path.stem in (own.stem, "__init__"))
    ]
    return digest_of(sorted([*modules, *shared, course.root / "requirements.txt"]))


def digest_of(files: list[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def forget_if_stale(course: Course, everything: bool) -> None:
    """Drop the outputs that were computed with another package than today's."""
    build, package = course.root / "_build", course.root / "attncourse"
    known, keys = build / ".pages", {page: page_key(course, page) for page in course.pages}
    if everything or not known.exists():
        shutil.rmtree(build, ignore_errors=True)
    build.mkdir(exist_ok=True)
    before = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    stale = [page for page in course.pages if page in before and before[page] != keys[page]]
    if stale:
        print(f"The package has changed: {counted(stale)} to be run again.")
        forget(course, stale)
    drawn = [*(course.root / "tools").rglob("*.py"), *(package / "checks").rglob("*.py")]
    stamp, key = build / ".tools", digest_of(sorted(drawn))
    if stale or not stamp.exists() or stamp.read_text(encoding="utf-8") != key:
        for name in ("html", ".doctrees"):  # what was executed stays
            shutil.rmtree(build / name, ignore_errors=True)
    stamp.write_text(key, encoding="utf-8")
    known.write_text(json.dumps(keys), encoding="utf-8")


def forget(course: Course, pages: list[str]) -> None:
    """Drop the outputs of these pages, of whatever text they had."""
    from jupyter_cache import get_cache

    cache, ends = (
        get_cache(course.root / "_build" / ".jupyter_cache"),
        tuple(f"/{page}.md" for page in pages),
    )
    for record in cache.list_cache_records():
        if Path(record.uri).as_posix().endswith(ends):
            cache.remove_cache(record.pk)


def counted(pages: list[str]) -> str:
    return f"{len(pages)} pages" if len(pages) > 1 else pages[0]


def everything_key(root: Path) -> str:
    """A digest of all that the book is made from."""
    names = ("attncourse", "book", "tools")
    files = [p for name in names for p in (root / name).rglob("*") if p.suffix in SOURCES]
    settings = [root / name for name in ("_config.yml", "_toc.yml", "requirements.txt")]
    return digest_of(sorted(files) + settings)


def unchanged(root: Path, key: str) -> bool:
    """Whether the book that is there was made from the same sources."""
    stamp, html = root / "_build" / ".book", root / "_build" / "html" / "index.html"
    return html.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == key


def run_pages(course: Course) -> tuple[dict[str, str], dict[str, str]]:
    """What became of each page with code (`executed in 3.1 s`, `cached`), and the tracebacks."""
    from jupyter_cache import get_cache
    from jupyter_cache.executors.basic import ExecutionWorkerLocalMProc, ProcessData

    build = course.root / "_build"
    cache, log = get_cache(build / ".jupyter_cache"), build / "kernels.log"
    paths = {str(course.root / f"{page}.md"): page for page in course.pages}
    for record in cache.list_project_records():
        cache.remove_nb_from_project(record.pk)
    for path in paths:
        if "```{code-cell}" in Path(path).read_text(encoding="utf-8"):
            cache.add_nb_to_project(path, read_data=READER)
    outcome, failures = {}, {}
    todo = cache.list_unexecuted()
    if todo:
        # A fresh machine's first plot builds the font cache and says so on stderr, which would
        # then be part of a page.
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            capture_output=True,
            check=False,
        )
        print(f"Running {counted([paths[record.uri] for record in todo])} …", flush=True)
        config = yaml.safe_load((course.root / "_config.yml").read_text(encoding="utf-8"))
        limit = config["execute"]["timeout"]
        # One thread a page: as many pages as cores run at once, and sums come out alike anywhere.
        os.environ["OMP_NUM_THREADS"] = "1"
        work = [ProcessData(record.pk, record.uri, cache, limit, False) for record in todo]
        work.reverse()  # later chapters take longer: the last to end should be a short one
        progress = Progress(len(work))
        with stderr_into(log), multiprocessing.Pool() as pool:
            for _, uri in pool.imap_unordered(ExecutionWorkerLocalMProc(), work):
                outcome[paths[uri]] = run = became(cache, uri)
                progress.done(f"{paths[uri]}: {run}")
    for record in cache.list_project_records():
        page = paths[record.uri]
        if outcome.setdefault(page, "cached") == "failed":
            failures[page] = record.traceback or log.read_text(encoding="utf-8")
    return outcome, failures


def became(cache: JupyterCacheAbstract, uri: str) -> str:
    """What became of a page that has just run."""
    record = cache.get_cached_project_nb(uri)
    return f"executed in {record.data['execution_seconds']:.1f} s" if record else "failed"


@contextmanager
def stderr_into(path: Path) -> Iterator[None]:
    """Send what kernels and their processes say on stderr into a file, for a page that dies."""
    sys.stderr.flush()
    saved = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def last_lines(traceback: str, count: int = 15) -> str:
    """The cell that failed and its error, without nbclient's own frames and colours."""
    start = "An error occurred while executing the following cell:"
    text = without_colours(traceback).rpartition(start)[2]
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join("    " + line for line in lines[-count:])


def sphinx(root: Path) -> int:
    """Jupyter Book itself; what it warns about is an error and goes to stderr."""
    jupyter_book = Path(sys.executable).parent / "jupyter-book"
    command = [jupyter_book, "build", ".", "-n", "-W", "--keep-going"]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=root, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as building,
    ):
        tell_stages(building.stdout)
        building.wait()
        errors.seek(0)
        said = errors.read()
    if building.returncode:
        # Jupyter Book adds its own traceback and a banner to what Sphinx said.
        said = said.partition("Traceback (most recent call last)")[0]
        print(without_colours(said).strip(), file=sys.stderr)
        # Sphinx warns only about pages that it reads: the next build must read them all again.
        shutil.rmtree(root / "_build" / ".doctrees", ignore_errors=True)
    return building.returncode


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="forget earlier builds")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    started = time.perf_counter()
    try:
        course = load(arguments.root.resolve())
        missing = [page for page in course.pages if not (course.root / f"{page}.md").exists()]
        if missing:
            raise CourseError(f"_toc.yml names pages that do not exist: {', '.join(missing)}")
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    start = course.root / "_build" / "html" / "index.html"
    key = everything_key(course.root)
    if unchanged(course.root, key) and not arguments.all:
        print(f"Nothing has changed since the last build. Open {start}")
        return 0
    forget_if_stale(course, arguments.all)
    outcome, failures = run_pages(course)
    for page, what in outcome.items():
        if what == "cached":
            print(f"  {page}: cached")
    for page, traceback in failures.items():
        print(f"{page}.md failed:\n{last_lines(traceback)}", file=sys.stderr)
    if failures:
        return 1
    print("Laying out the pages …", flush=True)
    if sphinx(course.root):
        print("The book has warnings or errors: see above.", file=sys.stderr)
        return 1
    (course.root / "_build" / ".book").write_text(key, encoding="utf-8")
    print(f"The book is built ({time.perf_counter() - started:.0f} s). Open {start}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
