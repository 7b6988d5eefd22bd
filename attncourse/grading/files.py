"""Writing files at one stroke, locks, and file errors as one line for the user."""

import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

from attncourse.grading.errors import UserError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None


def replace_file(
    path: Path,
    text: str,
    *,
    encoding: str = "utf-8",
    errors: str = "backslashreplace",
    way_out: str = "",
) -> Path:
    """Put a text in the place of a file, as ``replace_bytes`` does; return its path.

    ``errors`` is for halves of characters, which no file can hold.
    """
    return replace_bytes(path, text.encode(encoding, errors), way_out=way_out)


def replace_bytes(path: Path, content: bytes, *, way_out: str = "") -> Path:
    """Put a file with this content in the place of another at one stroke; return its path.

    The new one has the same temporary name at each run, so that what a killed run has left is
    replaced by the next. Of two that write the same file, one waits for the other.
    """
    new_file = path.with_name(f".{path.name}.new")
    if path.is_dir():
        raise UserError(f"{path} is a folder, and not a file{way_out}")
    with explained_file_errors(path, way_out):
        try:
            file = locked_file(new_file)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = locked_file(new_file)
        with open(file, "wb") as new:
            try:
                new.truncate()
                new.write(content)
                new.flush()
                if fcntl is None:
                    new.close()
                os.replace(new_file, path)
            except BaseException:
                with suppress(OSError):
                    new_file.unlink()
                raise
    return path


def zip_archive(files: Iterable[tuple[str, str | bytes, int]]) -> bytes:
    """Return the bytes of a zip archive of these (path, content, mode), equal for equal files."""
    archive_bytes = BytesIO()
    with zipfile.ZipFile(archive_bytes, "w") as archive:
        for path, content, mode in files:
            info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return archive_bytes.getvalue()


def locked_file(path: Path) -> int:
    """Return the descriptor of a file, opened and locked until it is closed."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        file = os.open(path, flags, 0o666)
        try:
            if fcntl is None:
                return file
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # while it waited, the other has put it in its place
                if os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


@contextmanager
def one_process_at_a_time(path: Path) -> Iterator[None]:
    """Have other processes wait, in the block, that want to read a file and write it anew."""
    with explained_file_errors(path):
        file = locked_file(path.with_name(f".{path.name}.lock"))
    try:
        yield
    finally:
        os.close(file)


@contextmanager
def reserved(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Lock a folder for this process in the block; ``tell`` hears that another one has it."""
    lock = folder.with_name(f".{folder.name}.lock")
    with explained_file_errors(lock, "; is its folder writable?"):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell(f"another process is at work in {folder}: waiting until it ends")
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:  # a file system without locks
                pass
        yield


@contextmanager
def explained_file_errors(path: Path, way_out: str = "", doing: str = "write") -> Iterator[None]:
    """Raise ``UserError`` for an ``OSError`` in the block, in one line that ends in ``way_out``."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot {doing} {path}: {error.strerror or error}{way_out}") from error
