"""Runs the pages' code: what is new since the last time, as many pages at once as there are cores.

Outputs are kept in jupyter-cache by a page's code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from course import Course
from progress import Progress

if TYPE_CHECKING:
    from output_cache import OutputCache

READER = {"name": "myst_nb_md", "type": "plugin"}
NO_KERNEL = 2  # jupyter-cache's word for a page that ended otherwise than by an error of its code


def cache_of(course: Course) -> OutputCache:
    """Return the outputs that are kept; to load the class takes a second."""
    from output_cache import OutputCache

    return OutputCache(course.root / "_build" / ".jupyter_cache")


def drop_outputs(course: Course, pages: list[str]) -> None:
    """Drop the outputs of these pages, of whatever text they had."""
    cache, ends = cache_of(course), tuple(f"/{page}.md" for page in pages)
    for record in cache.list_cache_records():
        if Path(record.uri).as_posix().endswith(ends):
            cache.remove_cache(record.pk)


def page_count_text(pages: list[str]) -> str:
    """Return how many pages there are, or the name of the only one."""
    return f"{len(pages)} pages" if len(pages) > 1 else pages[0]


def run_pages(course: Course) -> tuple[dict[str, str], dict[str, str]]:
    """Run the pages with code; return each one's outcome, and the tracebacks.

    An outcome reads `executed in 3.1 s` or `cached`.
    """
    cache, log = cache_of(course), course.root / "_build" / "kernels.log"
    paths = {str(course.root / f"{page}.md"): page for page in course.pages}
    for record in cache.list_project_records():
        cache.remove_nb_from_project(record.pk)
    for path in paths:
        if "```{code-cell}" in Path(path).read_text(encoding="utf-8"):
            cache.add_nb_to_project(path, read_data=READER)
    outcome, failures = {}, {}
    todo = cache.list_unexecuted()
    os.environ |= for_small_models()
    if todo:
        from forked_kernel import LOST, PartedWorker, workers
        from jupyter_cache.executors.basic import ProcessData

        # A fresh machine's first plot builds the font cache and says so on stderr, which would
        # then be part of a page.
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            capture_output=True,
            check=False,
        )
        print(f"Running {page_count_text([paths[record.uri] for record in todo])} …", flush=True)
        config = yaml.safe_load((course.root / "_config.yml").read_text(encoding="utf-8"))
        limit = config["execute"]["timeout"]
        work = [ProcessData(record.pk, record.uri, cache, limit, False) for record in todo]
        work.reverse()  # later chapters take longer: the last to end should be a short one
        progress = Progress(len(work))
        with stderr_into(log), workers([record.uri for record in todo]) as pool:
            lost = []  # whose kernel did not start or live: its ports may have been taken meanwhile
            for status, uri, run in pool.imap_unordered(PartedWorker(), work):
                if status == NO_KERNEL:
                    lost.append(uri)
                else:
                    outcome[paths[uri]] = run
                    progress.done(f"{paths[uri]}: {run}")
            again = [page_work for page_work in work if page_work.uri in lost]
            reasons = {uri: kernel_loss_reason(uri, log, LOST) for uri in lost}
            if lost:
                shutil.copyfile(log, log.with_name("lost-kernels.log"))  # the next build's is empty
            for _, uri, run in pool.imap_unordered(PartedWorker(), again):
                outcome[paths[uri]] = run
                progress.done(f"{paths[uri]}: {run}, at the second try ({reasons[uri]})")
        cache.drop_oldest()
    for record in cache.list_project_records():
        page = paths[record.uri]
        if outcome.setdefault(page, "cached") == "failed":
            failures[page] = record.traceback or log.read_text(encoding="utf-8", errors="replace")
    return outcome, failures


def kernel_loss_reason(uri: str, log: Path, mark: str) -> str:
    """Return why a page's kernel was lost, as the page's process noted it in the log."""
    text = log.read_text(encoding="utf-8", errors="replace")
    notes = re.findall(rf"^{re.escape(mark + uri)}: (.*)", text, re.M)
    return f"{notes[-1] if notes else 'no reason is known'}: see _build/lost-kernels.log"


def for_small_models(cpu: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Return torch's settings in a page's kernel, for models of a few thousand numbers."""
    variables = {
        # As many pages as cores run at once, and sums come out alike anywhere.
        "OMP_NUM_THREADS": "1",
        # A step's memory is kept for the next one (the C library's settings, in bytes).
        "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
        "MALLOC_TRIM_THRESHOLD_": str(512 * 2**20),
    }
    # Rows of eight numbers fill AVX2's registers. Half full, those of AVX-512 are several times
    # slower at a softmax.
    if cpu.is_file() and "avx512" in cpu.read_text(encoding="utf-8"):
        variables["ATEN_CPU_CAPABILITY"] = "avx2"
    return variables


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
    """Return a text without the colours of a terminal."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def last_lines(traceback: str, count: int = 15) -> str:
    """The cell that failed and its error, without nbclient's own frames and colours."""
    start = "An error occurred while executing the following cell:"
    text = without_colours(traceback).rpartition(start)[2]
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join("    " + line for line in lines[-count:])
