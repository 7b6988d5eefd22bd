"""The files of a download: those of an archive, of archives in it, of a folder, or one file.

Nothing is unpacked to the disk. What is in an archive is counted before anything of it is read, and
read only as far as the bounds that grading has for a file.
"""

import builtins
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from attncourse.grading.collect.schemes import MOODLE
from attncourse.grading.course import handed_in
from attncourse.grading.course.choosing import Ungraded
from attncourse.grading.errors import UserError
from attncourse.grading.files import explained_file_errors
from attncourse.grading.harmless import printable
from attncourse.grading.submission.text import SIGNATURES_OF_FORMATS

Leave = Callable[[str, str], None]  # what is left, and why
MAX_FILES = 50_000  # files in a download
MAX_FILES_OF_ARCHIVE = 5_000  # files in an archive that lies in it
MAX_ARCHIVES_DEEP = 2  # archives in archives
ARCHIVES = tuple(
    (first, kind) for first, kind in SIGNATURES_OF_FORMATS if kind.endswith(" archive")
)
NO_ZIP = "; a download should be a zip archive: make it one, or unpack it and name its folder"
UTF_8 = 0x800  # the flag of a name in an archive that says how it is encoded
UNREADABLE_ERRORS = (*handed_in.BROKEN_ARCHIVE_ERRORS, OSError)


@dataclass
class ArchiveRoom:
    """How many files and bytes the archives in a download may still hold, all together."""

    files: int = MAX_FILES
    bytes: int = 500_000_000

    def read(self, item: "Item") -> "builtins.bytes":
        """Return an archive's bytes, and take them off; raise ``Ungraded`` if there is no room."""
        if min(self.files, self.bytes) <= 0:
            raise Ungraded("the archives in it hold too much: unpack it and name its folder")
        self.bytes -= handed_in.MAX_BYTES_OF_FILE  # what is too large has been read as well
        data = item.read()
        self.bytes += handed_in.MAX_BYTES_OF_FILE - len(data)
        self.files -= data.count(handed_in.ENTRY)
        return data


class Item(NamedTuple):
    """A file of a download. ``read`` returns its bytes, or raises ``Ungraded`` with a reason.

    ``names`` are the paths that the name's bytes may mean: an archive need not say how they are
    encoded. ``time`` is the file's own, which says nothing of when it was handed in.
    """

    names: tuple[PurePosixPath, ...]
    read: Callable[[], bytes]
    time: float = 0.0

    @property
    def shown(self) -> str:
        """Return the path as a message shows it."""
        return printable(str(self.names[0]), 200)


def download_items(path: Path, name: str, stack: ExitStack, leave: Leave) -> Iterator[Item]:
    """Yield the files of a download; ``leave`` hears of those that cannot be read, and why.

    ``stack`` closes what is opened. Raises ``UserError`` for a damaged archive, and for too many
    files.
    """
    if path.is_dir():
        yield from folder_items(path)
        return
    with explained_file_errors(path, doing="read"), path.open("rb") as file:
        start = file.read(8)
    if not start.startswith(handed_in.ZIP) and not (
        path.suffix.casefold() == ".zip" and zipfile.is_zipfile(path)
    ):
        kind = next((kind for first, kind in ARCHIVES if start.startswith(first)), "")
        if kind:
            leave(printable(path.name, 200), f"this is {kind}{NO_ZIP}")
        else:
            yield Item(
                (PurePosixPath(path.name),), lambda: read_dropped_file(path), path.stat().st_mtime
            )
        return
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except UNREADABLE_ERRORS as error:
        raise UserError(f"{path} is a damaged archive ({error}): download it again") from None
    if len(archive.infolist()) > MAX_FILES:
        raise UserError(
            f"{path} holds more than {MAX_FILES} files: is it a download of one assignment?"
        )
    if not archive.infolist():
        leave(printable(path.name, 200), "an archive with nothing in it: download it again")
    yield from files_in_archive(archive, name, leave)


def folder_items(folder: Path) -> Iterator[Item]:
    """Yield the files of a folder that somebody has unpacked; links are left out."""
    count = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if is_put_by_somebody(name))
        for name in sorted(filter(is_put_by_somebody, files)):
            path = Path(place, name)
            if path.is_symlink():
                continue
            if (count := count + 1) > MAX_FILES:
                raise UserError(f"{folder} holds more than {MAX_FILES} files: name fewer")
            where = PurePosixPath(path.relative_to(folder))
            yield Item((where,), lambda path=path: read_dropped_file(path), path.stat().st_mtime)


def read_dropped_file(path: Path) -> bytes:
    """Return the bytes of a file; raise ``Ungraded`` with the reason if it cannot be read."""
    try:
        return handed_in.read_file(path)
    except OSError as error:
        raise Ungraded(error.strerror or str(error)) from None


def files_in_archive(
    archive: zipfile.ZipFile, name: str, leave: Leave, before: PurePosixPath = PurePosixPath()
) -> Iterator[Item]:
    """Yield the files of an archive; ``leave`` hears of those whose paths lead out of it.

    ``before`` is the folder that the archive lies in. ``name`` is the assignment's.
    """
    for member in archive.infolist():
        names = tuple(before / reading for reading in possible_paths(member))
        if member.is_dir() or not all(
            is_put_by_somebody(part) for part in names[0].parts if part != ".."
        ):
            continue
        shown_path = printable(str(names[0]), 200)
        if any(part in ("..", "/") or ":" in part[1:2] for part in names[0].parts):
            leave(shown_path, "its path leads out of the archive")
            continue

        def read_member(member: zipfile.ZipInfo = member) -> bytes:
            """Return the member's bytes; raise ``Ungraded`` if it is damaged."""
            try:
                return handed_in.unpacked_member(archive, member, name)
            except UNREADABLE_ERRORS as error:
                raise Ungraded(f"damaged in the archive ({error})") from None

        yield Item(names, read_member, handed_in.file_of_entry(member).time)


def archive_items(
    item: Item, name: str, depth: int, room: ArchiveRoom, leave: Leave
) -> Iterator[Item] | None:
    """Return the files of an archive inside a download; None if it is no archive at all.

    Raises ``Ungraded`` for one that is damaged, nested too deep, or holds too many files.
    """
    data = room.read(item)
    if not data.startswith(handed_in.ZIP):
        return None
    if depth >= MAX_ARCHIVES_DEEP:
        raise Ungraded("an archive in an archive in an archive")
    if data.count(handed_in.ENTRY) > MAX_FILES_OF_ARCHIVE:
        raise Ungraded(f"an archive of more than {MAX_FILES_OF_ARCHIVE} files")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except UNREADABLE_ERRORS as error:
        raise Ungraded(f"a damaged archive ({error})") from None
    return files_in_archive(archive, name, leave, item.names[0].parent)


def is_put_by_somebody(name: str) -> bool:
    """True if a person has put this file or folder there, and no program.

    A name that begins with a dot is hidden, except for a folder of Moodle's whose student is called
    so.
    """
    hidden = name.startswith("._") or (name.startswith(".") and not MOODLE.match(name))
    return not hidden and name not in handed_in.IGNORED_FILE_NAMES - {"timestamp.txt"}


def possible_paths(member: zipfile.ZipInfo) -> list[PurePosixPath]:
    """Return the paths that an entry's name may mean, the likeliest first.

    Where the archive does not say UTF-8, zipfile reads the code page of the first PCs. macOS
    writes UTF-8 and does not say so; Windows writes its own code page.
    """
    name = member.filename.replace("\\", "/")
    if member.flag_bits & UTF_8 or name.isascii():
        return [PurePosixPath(name)]
    raw, paths = member.filename.encode("cp437").replace(b"\\", b"/"), []
    for encoding in ("utf-8", "cp437", "cp1252"):
        try:
            paths.append(PurePosixPath(raw.decode(encoding)))
        except UnicodeDecodeError:
            continue
    return list(dict.fromkeys(paths))
