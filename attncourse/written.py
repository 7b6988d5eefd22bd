"""What is written where an encoding lacks signs, as cp1252 lacks ✓: nothing is lost but those."""

import io
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
