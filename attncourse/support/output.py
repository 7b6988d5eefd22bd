"""Writing text: does somebody see it, and what if the encoding lacks a sign, as cp1252 lacks ✓?"""

import io
import os
import sys
from typing import TextIO


def keep_what_is_written(*streams: TextIO) -> None:
    """Have these streams write a ? for each sign that their encoding lacks, in place of an error.

    One that somebody gave another way to handle such signs keeps it.
    """
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def write_line(text: str, stream: TextIO) -> None:
    """Write a line now, with a ? for each sign that the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), file=stream, flush=True)


def someone_looks_on() -> bool:
    """True if this runs in a terminal, in Colab, or in a notebook that somebody has open."""
    opened = "google.colab" in sys.modules or "JPY_SESSION_NAME" in os.environ
    return opened or (sys.stderr is not None and sys.stderr.isatty())
