"""A student's notebook where it is not quite where it should be: found, or told of.

What lies in the folder is read and never unpacked to the disk, and no more of it than is needed.
"""

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from attncourse.grading.errors import Unreadable
from attncourse.grading.harmless import printable
from attncourse.grading.submission.notebook import read

LARGEST = 50_000_000  # bytes of a file, or of what is packed in one, that are still read
DEEPEST = 4  # folders within folders
MOST = 2000  # files that are looked at, in a folder and in an archive
SHOWN = 5
NOTHING = "nothing handed in"
ASIDE = {"timestamp.txt", "Thumbs.db", "desktop.ini", "__MACOSX", "__pycache__"}
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others do not unpack in small pieces
ZIP, ENTRY = b"PK\x03\x04", b"PK\x01\x02"
TEXTS = (".json", ".txt", ".py")
KINDS = ((".ipynb",), (".zip",), TEXTS)


class Found(NamedTuple):
    """A notebook's bytes with a note for the student, or None and why there is nothing to grade."""

    data: bytes | None
    note: str = ""
    reason: str = ""
    folder: Path | None = None  # where the time of submission may be written beside it


class Piece(NamedTuple):
    """A file, by its path in the student's folder or in an archive."""

    path: PurePosixPath

    @property
    def name(self) -> str:
        return self.path.name.casefold()

    @property
    def shown(self) -> str:
        return printable(str(self.path), 100)


class Ungraded(Exception):
    """There is something, and it is not graded: the text says why and what to do."""


def find(home: Path, name: str, solutions: Path) -> Found:
    """The notebook that a student handed in for an assignment.

    It counts under its own name; else the only one in the assignment's folder, or the only one
    anywhere whose name begins like the assignment's; as a notebook, else in a zip archive, else
    saved as text. Folders of other assignments, those that are in ``solutions``, are not looked
    into. Raises ``OSError`` for a file that cannot be read.
    """
    exact = home / name / f"{name}.ipynb"
    try:
        if os.path.lexists(exact):
            data, inner = unpacked(read_file(exact), name)
            note = f"the notebook was found in an archive: {inner}" if inner else ""
            return Found(data, note, folder=exact.parent)
        chosen = in_folder(home, name, {path.name for path in solutions.glob("[!.]*")})
        data, inner = unpacked(read_file(home / chosen.path), name)
        if not (inner or chosen.name.endswith(".ipynb")):
            require_notebook(data, chosen, name)
    except Ungraded as problem:
        return Found(None, reason=str(problem))
    if chosen.path.parent == PurePosixPath(name) and not inner:
        note = f"the notebook is called {PurePosixPath(chosen.shown).name}"
    else:
        note = f"the notebook was found at {chosen.shown}" + (inner and f", in it {inner}")
    return Found(data, note, folder=home.joinpath(*chosen.path.parts[:-1][:1]))


def in_folder(home: Path, name: str, others: set[str]) -> Piece:
    """The file of a student's folder that counts; raises ``Ungraded`` where there is none."""
    files = list(pieces(home, {other.casefold() for other in others - {name}}))
    own = name.casefold()
    within = [f for f in files if len(f.path.parts) > 1 and f.path.parts[0].casefold() == own]
    likely = [f for f in files if f not in within and f.name.startswith(own)]
    chosen = choose(within, name) or choose(likely, name)
    if chosen is not None:
        return chosen
    if within:
        raise Ungraded(f"{listing(within)} handed in, and no notebook: hand in {name}.ipynb")
    found = f" as {name}, but {listing(files)}" if files else ""
    raise Ungraded(NOTHING + found)


def pieces(home: Path, skipped: set[str]) -> Iterator[Piece]:
    """The files of a student's folder, but for hidden ones and other assignments'."""
    waiting, left = [PurePosixPath()], MOST
    while waiting and left > 0:
        folder = waiting.pop()
        if not folder.parts and not home.is_dir():
            return
        with os.scandir(home / folder) as entries:
            listed = sorted(islice(entries, left), key=lambda entry: entry.name)
        left -= len(listed)
        for entry in listed:
            path = folder / entry.name
            if entry.name.startswith(".") or entry.name in ASIDE:
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield Piece(path)
            elif len(path.parts) <= DEEPEST and entry.name.casefold() not in skipped:
                waiting.append(path)


def choose(files: list[Piece], name: str) -> Piece | None:
    """The one that counts among files: a notebook, else an archive, else a notebook as text.

    Raises ``Ungraded`` where there are several and nobody can know which.
    """
    for endings in KINDS:
        kind = [f for f in files if f.name.endswith(endings)]
        named = [f for f in kind if f.name.startswith(name.casefold())] if len(kind) > 1 else kind
        exact = [f for f in named if f.name == f"{name}{endings[0]}".casefold()]
        for best in (exact, named, kind):
            if len(best) == 1:
                return best[0]
        if kind and endings != TEXTS:
            raise Ungraded(f"several notebooks and none is {name}.ipynb: {listing(kind)}")
    return None


def listing(files: list[Piece]) -> str:
    return ", ".join(f.shown for f in files[:SHOWN]) + (", …" if len(files) > SHOWN else "")


def require_notebook(data: bytes, piece: Piece, name: str) -> None:
    """Raises ``Ungraded`` where a file that is not called a notebook is none."""
    try:
        read(data)
    except Unreadable as problem:
        raise Ungraded(f"{piece.shown} is no notebook ({problem}): hand in {name}.ipynb") from None


def unpacked(data: bytes, name: str, *, inside: bool = False) -> tuple[bytes, str]:
    """A file's bytes and ""; where it is a zip archive, those of the notebook in it, and its path.

    An archive in the archive is opened, too, and none in that one. What only looks like an
    archive, a text processor's document say, is given back as it is: reading it says what it is.
    """
    if not data.startswith(ZIP):
        return data, ""
    if data.count(ENTRY) > MOST:
        raise Ungraded(f"an archive of more than {MOST} files: hand in {name}.ipynb alone")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {Piece(PurePosixPath(m.filename)): m for m in archive.infolist()}
            files = [f for f, m in members.items() if not m.is_dir() and is_own(f)]
            chosen = choose(files, name)
            if chosen is None:
                return data, ""
            content = unpacked_member(archive, members[chosen], name)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, zlib.error):
        return data, ""
    if not content.startswith(ZIP):
        return content, chosen.shown
    if inside:
        raise Ungraded(f"an archive in an archive in an archive: hand in {name}.ipynb alone")
    content, inner = unpacked(content, name, inside=True)
    return content, f"{chosen.shown}, {inner}"


def is_own(piece: Piece) -> bool:
    """Whether a file in an archive is one that a student has put there."""
    return not any(part.startswith(".") or part in ASIDE for part in piece.path.parts)


def unpacked_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """A file's bytes from an archive, counted as they come, whatever the archive says of them."""
    shown = Piece(PurePosixPath(member.filename)).shown
    if member.flag_bits & 1:
        raise Ungraded(f"{shown} is locked by a password: hand in {name}.ipynb without one")
    if member.compress_type not in PACKED:
        raise Ungraded(f"{shown} is packed in a way that is not read: hand in {name}.ipynb")
    with archive.open(member) as content:
        data = content.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Ungraded(
            f"{shown} has over {LARGEST // 1_000_000} MB: hand it in without its outputs"
        )
    return data


def read_file(path: Path, largest: int = LARGEST) -> bytes:
    """A plain file's bytes. Raises ``OSError`` for what is none, or too large."""
    if path.is_symlink():
        raise OSError(f"{path.name} is a symbolic link, not a file")
    # Without waiting: opening a pipe would wait for somebody to write into it.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(file, "rb") as content:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path.name} is not a plain file")
        if found.st_size > largest:
            raise OSError(f"{path.name} has {found.st_size / 1e6:.0f} MB, over {largest / 1e6:g}")
        return content.read(largest)
