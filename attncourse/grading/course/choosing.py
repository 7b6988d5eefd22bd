"""Choosing, among several files, the notebook that somebody wants graded: by name, then age."""

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from attncourse.grading.harmless import printable

MAX_FILES_NAMED = 5
COPY = r"(?: ?\((\d{1,6})\)|-(\d{1,6}))?(?:\.ipynb|(?:\.ipynb)?\.zip)"
NOTEBOOKS = (".ipynb",), (".zip",)  # and archives, in which one may be
# As these a notebook may be saved as text, the former rather than the latter.
TEXT_SUFFIXES = (".json", ".txt", ".py"), (".md", ".qmd", ".rmd")


class HandedFile(NamedTuple):
    """A file by its path, in the student's folder or in an archive, and when it was changed."""

    path: PurePosixPath
    time: float = 0.0

    @property
    def name(self) -> str:
        """Return the file's name in small letters."""
        return self.path.name.casefold()

    @property
    def shown(self) -> str:
        """Return the path as a message shows it."""
        return printable(str(self.path), 100)


class Ungraded(Exception):
    """A hand-in that is there and is not graded: the text says why, and what to do."""


def choose_file(files: list[HandedFile], name: str) -> HandedFile | None:
    """Return the file that counts: a notebook, else an archive, else a notebook saved as text.

    None if there is none of them. Raises ``Ungraded`` where there are several and nobody can know
    which is meant.
    """
    for endings in (*NOTEBOOKS, *TEXT_SUFFIXES):
        kind = [f for f in files if f.name.endswith(endings)]
        if copies := copies_of_assignment(kind, name):
            return newest_file(copies, name)
        for best in ([f for f in kind if f.name.startswith(name.casefold())], kind):
            if len(best) == 1:
                return best[0]
        if kind and endings in TEXT_SUFFIXES:
            return None
        if kind:
            raise Ungraded(f"several notebooks and none is {name}.ipynb: {listed_paths(kind)}")
    return None


def copy_number(piece: HandedFile, name: str) -> int | None:
    """Return the number that a browser or platform has put behind the assignment's name.

    It is 0 for the name itself, as in ``05_kqv.ipynb``, ``05_kqv (1).ipynb``, ``05_kqv-1.ipynb``,
    and None for another name.
    """
    match = re.fullmatch(re.escape(name.casefold()) + COPY, piece.name)
    return int(match[1] or match[2] or 0) if match else None


def copies_of_assignment(files: list[HandedFile], name: str) -> list[HandedFile]:
    """Return the files that have the assignment's name, with a copy's number or without."""
    return [f for f in files if copy_number(f, name) is not None]


def newest_file(files: list[HandedFile], name: str) -> HandedFile:
    """Return the file that was changed last; of several from one moment, the highest copy."""
    return max(files, key=lambda f: (f.time, copy_number(f, name) or 0))


def listed_paths(files: list[HandedFile]) -> str:
    """Return the paths of files in a line, the first few of many."""
    names = [file.shown for file in files[:MAX_FILES_NAMED]]
    if len(files) > MAX_FILES_NAMED:
        names.append("…")
    return ", ".join(names)
