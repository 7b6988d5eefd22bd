"""The text of a submitted file's bytes: its encoding, sides of a merge conflict, or no text."""

import codecs
import re
from contextlib import suppress

from attncourse.grading.errors import Unreadable

MEGABYTE = 1_000_000
MAX_FILE_BYTES = 100 * MEGABYTE
LARGE_FILE_BYTES = 10 * MEGABYTE  # what is told
ZIP = "a zip archive"
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Without a mark: which of the first four bytes are not zero, where they are ASCII's characters.
UTF16_WITHOUT_MARK: dict[tuple[bool, ...], str] = {
    (True, False, True, False): "utf-16-le",
    (False, True, False, True): "utf-16-be",
}
# The first bytes of what is handed in by mistake, and what it is called.
SIGNATURES_OF_FORMATS = (
    (b"PK\x03\x04", ZIP),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"RIFF", "a picture or a sound"),
    (b"bplist", "a macOS bookmark"),
    (b"\x00\x05\x16\x07", "what macOS notes beside a file, under a name that begins with ._"),
    (b"\x93NUMPY", "an array of NumPy's"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"version https://git-lfs", "a Git LFS pointer to the notebook"),
)
INSIDE = b"ftyp"  # of a picture or a film, after four bytes of length
ZIPS = (
    (b"word/", "a Word document"),
    (b"xl/", "an Excel sheet"),
    (b"ppt/", "a presentation"),
    (b"opendocument", "an OpenDocument file"),
    (b".iwa", "a Pages or Numbers document"),
    (b"data.pkl", "a file of torch's"),
    (b".npy", "arrays of NumPy's"),
)
HTML = re.compile(
    r"\s*(?:<!--.{0,500}?-->\s*|<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html)", re.I
)
WINDOWS = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
# Those of Japan and China, in which a character may end in the byte of a backslash, and by what it
# is seen that a text is not in another one: halves of characters, backslashes that mean nothing.
CODE_PAGES = ("cp932", "gbk", "big5hkscs")
BROKEN = re.compile(r"\ufffd|(?<!\\)(?:\\\\)*+\\[^\\\"/bfnrtu]")
LINE_ENDS = re.compile(r"\r\n?")


def to_text(data: bytes) -> tuple[str, list[str]]:
    """Return a file's text with plain line ends, and notes on what had to be guessed.

    Raises ``Unreadable`` for what is no text, and says what it is.
    """
    if len(data) > MAX_FILE_BYTES:
        raise Unreadable(
            f"the file has {len(data) / MEGABYTE:.0f} MB, and at most "
            f"{MAX_FILE_BYTES // MEGABYTE} MB are read: clear the notebook's outputs and hand it "
            "in again"
        )
    content = data[:MEGABYTE].strip(b"\x00 \t\r\n") or data.strip(b"\x00 \t\r\n")
    if not content:
        raise Unreadable("the file is empty" + (" (zero bytes alone)" if b"\x00" in data else ""))
    refuse_other_formats(data, content)
    text, notes = decode_bytes(data)
    if HTML.match(text):
        raise Unreadable("this is an HTML page, not a notebook: download the notebook, as .ipynb")
    if len(data) > LARGE_FILE_BYTES:
        notes.append(f"the file has {len(data) / MEGABYTE:.0f} MB: its outputs were dropped")
    if "\x00" in text:
        text = text.replace("\x00", "")
        notes.append("zero bytes in the file were left out")
    return LINE_ENDS.sub("\n", text) if "\r" in text else text, notes


def refuse_other_formats(data: bytes, content: bytes) -> None:
    """Raise ``Unreadable`` with the name of the format if a file is no text at all.

    ``content`` is the file's start without zeros and spaces before it.
    """
    starts = (data[:20], content)
    name = next(
        (name for start, name in SIGNATURES_OF_FORMATS if any(s.startswith(start) for s in starts)),
        "",
    )
    if data[4:8] == INSIDE:
        name = "a picture or a film"
    if data[257:262] == b"ustar":
        name = "a tar archive"
    if name == ZIP:
        name = next((name for part, name in ZIPS if part in data), ZIP)
    if name:
        raise Unreadable(f"this is {name}, not a notebook: hand in the .ipynb file itself")


def decode_bytes(data: bytes) -> tuple[str, list[str]]:
    """Return bytes as text, and notes on their encoding.

    If they are no valid UTF-8, they are read byte by byte as Windows reads them, or in a code page.
    """
    mark, encoding = next(
        (pair for pair in BOMS if data.startswith(pair[0])),
        (b"", UTF16_WITHOUT_MARK.get(tuple(map(bool, data[:4])), "utf-8")),
    )
    data = data[len(mark) :]
    if encoding != "utf-8":
        note = f"the file was saved as {encoding[:6].upper()} instead of UTF-8"
        return data.decode(encoding, "replace"), [note]
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    text, name = data.decode("utf-8", "surrogateescape").translate(WINDOWS), "Windows-1252"
    if BROKEN.search(text):
        for encoding in CODE_PAGES:
            with suppress(UnicodeDecodeError):
                candidate = data.decode(encoding)
                if BROKEN.search(candidate) is None:
                    text, name = candidate, encoding
                    break
    return text, [f"line {line} of the file is not UTF-8: it was read as {name}"]


def conflict_sides(text: str) -> tuple[str, str] | None:
    """Return both sides of a text with merge conflicts; None for a text without."""
    if "<<<<<<<" not in text or ">>>>>>>" not in text:
        return None
    our_lines: list[str] = []
    their_lines: list[str] = []
    state, is_conflict = "both", False
    for line in text.split("\n"):
        # A mark of git's is seven signs, alone in its line or before the name of a version.
        mark = line[:7] if line[7:8] in ("", " ") else ""
        if mark == "<<<<<<<" and state == "both":
            state = "ours"
        elif mark == "|||||||" and state == "ours":
            state = "base"
        elif mark == "=======" and state in ("ours", "base"):
            state = "theirs"
        elif mark == ">>>>>>>" and state == "theirs":
            state, is_conflict = "both", True
        else:
            if state in ("both", "ours"):
                our_lines.append(line)
            if state in ("both", "theirs"):
                their_lines.append(line)
    return (
        ("\n".join(our_lines), "\n".join(their_lines)) if is_conflict and state == "both" else None
    )
