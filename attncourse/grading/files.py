"""Files that are whole or as they were before, and one line where the disk refuses."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attncourse.grading.errors import UserError


def replace_file(
    path: Path,
    text: str,
    *,
    encoding: str = "utf-8",
    errors: str = "backslashreplace",
    way_out: str = "",
) -> Path:
    """Puts a text in the place of a file as ``replace_bytes`` does.

    ``errors`` is for halves of characters, which no file can hold.
    """
    return replace_bytes(path, text.encode(encoding, errors), way_out=way_out)


def replace_bytes(path: Path, content: bytes, *, way_out: str = "") -> Path:
    """Puts a file in the place of another at one stroke, and returns its path.

    The new one has the same name for a while at each run, so that what a killed run has left of
    it goes away with the next.
    """
    made = path.with_name(f".{path.name}.new")
    with explained(path, way_out):
        try:
            try:
                made.write_bytes(content)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.write_bytes(content)
            os.replace(made, path)
        except BaseException:
            with suppress(OSError):
                made.unlink()
            raise
    return path


@contextmanager
def explained(path: Path, way_out: str = "") -> Iterator[None]:
    """Turns what the file system objects to into one line that ends in the way out."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}{way_out}") from error
