"""One drill after the other in a notebook: ``mend("kqv")``."""

import sys
from collections.abc import Iterator

from attncourse import STEMS
from attncourse.practice.cells import check_line, task_text
from attncourse.practice.drills import Drill, drills_of
from attncourse.practice.order import ordered_drills

_waiting: dict[tuple[str, int], Iterator[Drill]] = {}  # what this session has not shown yet


def mend(chapter: str, seed: int = 0) -> None:
    """Show the next function with one wrong line of a chapter, say ``mend("kqv")``.

    In a notebook its code and its check come in a new cell below. After the last one it begins
    anew. Raises ``ValueError`` for what is no chapter, for one without drills, and for a seed that
    is no whole number.
    """
    stem = stem_of(chapter)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ValueError(f"seed: expected a whole number, got {seed!r}")
    drill = next_drill(stem, seed)
    code = "\n".join(["from attncourse.checks import check", drill.setup, "", *drill.code])
    show_drill(drill, f"{code}\n\n{check_line(drill)}")


def next_drill(stem: str, seed: int) -> Drill:
    """Return the drill of a chapter that this session shows next."""
    every = drills_of(stem)
    if not every:
        raise ValueError(f"chapter {STEMS.index(stem) + 1} has no drills yet")
    drill = next(_waiting.get((stem, seed), iter(())), None)
    if drill is None:
        _waiting[stem, seed] = iter(ordered_drills(every, seed=seed))
        drill = next(_waiting[stem, seed])
    return drill


def stem_of(chapter: str) -> str:
    """Return the stem of a chapter that was named: ``kqv`` or ``05_kqv``."""
    stem = chapter.strip("/").partition("_")[2] if str(chapter)[:1].isdigit() else chapter
    if stem not in STEMS:
        raise ValueError(f"expected a chapter ({', '.join(STEMS)}), got {chapter!r}")
    return stem


def show_drill(drill: Drill, code: str) -> None:
    """Show what is to be mended; in a notebook the code is put into the next cell."""
    text = f"**Mend it**: one line is wrong. {task_text(drill)}"
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        print(f"{text}\n\n{code}")
        return
    from IPython.display import Markdown, display

    display(Markdown(text))
    shell.set_next_input(code, replace=False)
