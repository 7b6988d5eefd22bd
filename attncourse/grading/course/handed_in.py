"""Finding a student's notebook, though it may not be quite where it should be.

What lies in the folder is read and never unpacked to the disk, and no more of it than is needed.
"""

import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath

from attncourse.grading.course.choosing import (
    NOTEBOOKS,
    HandedFile,
    Ungraded,
    choose_file,
    copies_of_assignment,
    listed_paths,
    newest_file,
)
from attncourse.grading.errors import Unreadable
from attncourse.grading.harmless import printable
from attncourse.grading.submission.notebook import read_submission_cells

MAX_BYTES_OF_FILE = 100_000_000  # bytes of a file, or of what is packed in one, that are still read
MAX_FOLDERS_DEEP = 4  # folders within folders
MAX_FILES_LOOKED_AT = 2000  # files that are looked at, in a folder and in an archive
IGNORED_FILE_NAMES = {"timestamp.txt", "Thumbs.db", "desktop.ini", "__MACOSX", "__pycache__"}
# The others do not unpack in small pieces.
ZIP_METHODS_READ = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
BROKEN_ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError)
ZIP, ENTRY = b"PK\x03\x04", b"PK\x01\x02"
LISTED_ENDINGS = sum(NOTEBOOKS, ())  # what somebody may have wanted graded
LINK = re.compile(rb"""(?:url=|href=)["']?(https?://[^"'<> ]+)""", re.IGNORECASE)


class NothingThere(Ungraded):
    """Nothing was handed in that could be meant."""


def find_notebook(home: Path, name: str, solutions: Path) -> tuple[bytes, str, Path]:
    """Return a student's notebook for an assignment, a note for the student, and a folder.

    In the folder the time of submission may be written beside the notebook.

    The notebook counts under its own name, in the assignment's folder or one level too high, and
    there the newest of it and of what a browser calls *(1)*; else the only one in the assignment's
    folder, or the only one anywhere whose name begins like the assignment's; as a notebook, else in
    a zip archive, else saved as text. Folders of other assignments, those that are in
    ``solutions``, are not looked into. The note names notebooks and archives that do not count, and
    folders that cannot be read. Raises ``Ungraded`` where there is nothing to grade, and
    ``OSError`` for a file that counts and cannot be read.
    """
    exact = PurePosixPath(name, f"{name}.ipynb")
    others = {path.name.casefold() for path in solutions.glob("[!.]*") if path.name != name}
    closed: list[HandedFile] = []
    files = list(files_below(home, others, closed))
    try:
        if os.path.lexists(home / exact):
            files_near = [f for f in files if f.path.parent in (exact.parent, PurePosixPath())]
            chosen = newest_file([HandedFile(exact), *copies_of_assignment(files_near, name)], name)
        else:
            chosen = handed_file(home, files, name)
        data, inner = unpack_notebook(read_file(home / chosen.path), name)
        if not (inner or chosen.name.endswith(".ipynb")):
            require_notebook(data, chosen, name)
    except Ungraded as problem:
        kind = Ungraded if closed else type(problem)
        raise kind("; ".join([*unseen_folders(closed), str(problem)])) from None
    other_files = [f for f in files if f.path != chosen.path and f.name.endswith(LISTED_ENDINGS)]
    notes = [place_in_words(chosen, name, inner)] if chosen.path != exact or inner else []
    if other_files:
        notes.append(f"also there and not graded: {listed_paths(other_files)}")
    notes += unseen_folders(closed)
    return data, "; ".join(notes), home.joinpath(*chosen.path.parts[:-1][:1])


def place_in_words(chosen: HandedFile, name: str, inner: str) -> str:
    """Return a sentence on where a notebook was found that is not in its place.

    ``inner`` is its path in an archive, or "".
    """
    if chosen.path == PurePosixPath(name, f"{name}.ipynb"):
        return f"the notebook was found in an archive: {inner}"
    if chosen.path.parent == PurePosixPath(name) and not inner:
        return f"the notebook is called {PurePosixPath(chosen.shown).name}"
    return f"the notebook was found at {chosen.shown}" + (inner and f", in it {inner}")


def handed_file(home: Path, files: list[HandedFile], name: str) -> HandedFile:
    """Return the file of a student's folder that counts; raise ``Ungraded`` if there is none."""
    folded_name = name.casefold()
    within = [
        f for f in files if len(f.path.parts) > 1 and f.path.parts[0].casefold() == folded_name
    ]
    likely = [f for f in files if f not in within and f.name.startswith(folded_name)]
    chosen = choose_file(within, name) or choose_file(likely, name)
    if chosen is not None:
        return chosen
    if within:
        kind = kind_in_words(home / within[0].path)
        raise Ungraded(
            f"{listed_paths(within)} handed in, and no notebook{kind}: hand in {name}.ipynb"
        )
    instead = f" as {name}, but {listed_paths(files)}" if files else ""
    raise NothingThere(f"nothing handed in{instead}")


def kind_in_words(path: Path) -> str:
    """Return, in brackets, what a file is that is no notebook, as far as its bytes say; or ""."""
    try:
        data = read_file(path)
        link = LINK.search(data)
        if link is not None:
            return f" but a link ({printable(link[1].decode('utf-8', 'replace'), 80)})"
        read_submission_cells(data)
    except (OSError, Unreadable) as problem:
        return f" ({re.split('[,:]', str(problem))[0]})"
    return ""


def unseen_folders(closed: list[HandedFile]) -> list[str]:
    """Return a line on folders that could not be read, where something may be; none without any."""
    return [f"not looked into, permission denied: {listed_paths(closed)}"] if closed else []


def files_below(home: Path, skipped: set[str], closed: list[HandedFile]) -> Iterator[HandedFile]:
    """Yield the files in and below a student's folder, except hidden and other assignments' ones.

    Folders that this process may not read are appended to ``closed``.
    """
    waiting, entries_left = [PurePosixPath()], MAX_FILES_LOOKED_AT
    while waiting and entries_left > 0:
        folder = waiting.pop()
        if not folder.parts and not home.is_dir():
            return
        try:
            entries = folder_entries(home / folder, entries_left)
        except PermissionError:
            closed.append(HandedFile(folder if folder.parts else PurePosixPath(home.name)))
            continue
        entries_left -= len(entries)
        for entry, time in entries:
            path = folder / entry.name
            if entry.name.startswith(".") or entry.name in IGNORED_FILE_NAMES:
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield HandedFile(path, time)
            elif len(path.parts) <= MAX_FOLDERS_DEEP and entry.name.casefold() not in skipped:
                waiting.append(path)


def folder_entries(folder: Path, most: int) -> list[tuple[os.DirEntry, float]]:
    """Return a folder's entries by name, ``most`` at the most, with the time of each plain file."""
    with os.scandir(folder) as entries:
        listed = sorted(islice(entries, most), key=lambda entry: entry.name)
    return [(e, e.stat().st_mtime if e.is_file(follow_symlinks=False) else 0.0) for e in listed]


def require_notebook(data: bytes, piece: HandedFile, name: str) -> None:
    """Raise ``Ungraded`` if a file whose name is not a notebook's holds none."""
    try:
        read_submission_cells(data)
    except Unreadable as problem:
        raise Ungraded(f"{piece.shown} is no notebook ({problem}): hand in {name}.ipynb") from None


def unpack_notebook(data: bytes, name: str, *, inside: bool = False) -> tuple[bytes, str]:
    """Return a file's bytes and "" or, of a zip archive, those of the notebook in it and its path.

    An archive in the archive is opened, too, and none in that one. What only looks like an archive,
    a text processor's document say, is returned as it is: reading it says what it is.
    """
    if not data.startswith(ZIP):
        return data, ""
    if data.count(ENTRY) > MAX_FILES_LOOKED_AT:
        raise Ungraded(
            f"an archive of more than {MAX_FILES_LOOKED_AT} files: hand in {name}.ipynb alone"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {file_of_entry(m): m for m in archive.infolist()}
            files = [f for f, m in members.items() if not m.is_dir() and is_put_in_by_student(f)]
            chosen = choose_file(files, name)
            if chosen is None:
                return data, ""
            content = unpacked_member(archive, members[chosen], name)
    except BROKEN_ARCHIVE_ERRORS:
        return data, ""
    if not content.startswith(ZIP):
        return content, chosen.shown
    if inside:
        raise Ungraded(f"an archive in an archive in an archive: hand in {name}.ipynb alone")
    content, inner = unpack_notebook(content, name, inside=True)
    return content, f"{chosen.shown}, {inner}"


def file_of_entry(member: zipfile.ZipInfo, path: str | None = None) -> HandedFile:
    """Return an archive's entry as a file with its time, by its path there or by another one."""
    try:
        time = datetime(*member.date_time).timestamp()
    except (ValueError, OverflowError):
        time = 0.0
    return HandedFile(PurePosixPath(member.filename if path is None else path), time)


def is_put_in_by_student(piece: HandedFile) -> bool:
    """True if a student has put this file into the archive, and no program."""
    return not any(part.startswith(".") or part in IGNORED_FILE_NAMES for part in piece.path.parts)


def unpacked_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """Return the bytes of a file in an archive, counted as they come, whatever the archive says."""
    shown_path = HandedFile(PurePosixPath(member.filename)).shown
    if member.flag_bits & 1:
        raise Ungraded(f"{shown_path} is locked by a password: hand in {name}.ipynb without one")
    if member.compress_type not in ZIP_METHODS_READ:
        raise Ungraded(f"{shown_path} is packed in a way that is not read: hand in {name}.ipynb")
    with archive.open(member) as content:
        data = content.read(MAX_BYTES_OF_FILE + 1)
    if len(data) > MAX_BYTES_OF_FILE:
        raise Ungraded(
            f"{shown_path} has over {MAX_BYTES_OF_FILE // 1_000_000} MB: hand it in without outputs"
        )
    return data


def read_file(path: Path, largest: int = MAX_BYTES_OF_FILE) -> bytes:
    """Return a plain file's bytes; raise ``OSError`` if it is none, or larger than ``largest``."""
    if path.is_symlink():
        raise OSError(f"{path.name} is a symbolic link, not a file")
    # Without waiting: opening a pipe would wait for somebody to write into it.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(file, "rb") as content:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path.name} is not a plain file")
        if status.st_size > largest:
            raise OSError(f"{path.name} has {status.st_size / 1e6:.0f} MB, over {largest / 1e6:g}")
        return content.read(largest)
