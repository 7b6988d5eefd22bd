"""Frames between checker and worker: two lengths, a JSON text, raw bytes.

Lengths are checked before anything is read; nothing is ever unpickled.
"""

import json
import struct
from collections.abc import Callable
from typing import Any

from attncourse.grading.judge.wire.bounds import BUFFERS, TEXT, WireError, parses_cheaply

HEAD = struct.Struct("!IQ")


def pack(message: dict[str, Any], buffers: list[bytes]) -> bytes:
    """One frame."""
    message["sizes"] = [len(buffer) for buffer in buffers]
    text = json.dumps(message).encode()
    return b"".join((HEAD.pack(len(text), sum(message["sizes"])), text, *buffers))


def unpack(read: Callable[[int], bytes], limit: int) -> tuple[dict[str, Any], list[memoryview]]:
    """One frame, by a function that reads exactly so many bytes. Raises ``WireError``."""
    length, total = HEAD.unpack(read(HEAD.size))
    if length > min(limit, TEXT) or total > limit:
        raise WireError(f"sent {max(length, total) / 1e6:.0f} MB at once")
    text = read(length)
    if not parses_cheaply(text):
        raise WireError("sent a message that is too large")
    try:
        message = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError):
        raise WireError("sent no message") from None
    del text
    sizes = message.get("sizes") if isinstance(message, dict) else None
    if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
        raise WireError("sent no message")
    raw = memoryview(read(total))
    if sum(sizes) != total or len(sizes) > BUFFERS:
        raise WireError("sent buffers of other sizes than it said")
    buffers, start = [], 0
    for size in sizes:
        buffers.append(raw[start : start + size])
        start += size
    return message | {"bytes": length + total}, buffers
