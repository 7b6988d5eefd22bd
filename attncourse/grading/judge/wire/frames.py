"""Frames between the judge's processes: two lengths, a JSON text, raw bytes.

Lengths are checked before anything is read, and what the text holds is counted before it is
parsed: an empty list takes twenty times the memory of its JSON. Nothing is ever unpickled.
"""

import json
import socket
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

FRAME_HEADER = struct.Struct("!IQ")
MAX_JSON_CHARS = 16_000_000  # of JSON in one frame
MAX_UNCOUNTED_CHARS = 1_000_000  # up to so many, they are not counted first
MAX_CONTAINERS = 200_000  # lists and dicts in one frame's JSON
MAX_ITEMS = 1_000_000  # items of these
MAX_BUFFERS = 50_000  # raw buffers in one frame
NO_LIMIT = 1 << 40


class WireError(Exception):
    """Something on the wire is no message, no value, or too large."""


def pack_frame(message: dict[str, Any], buffers: Sequence[bytes] = ()) -> bytes:
    """Return the bytes of one frame; the sizes of the buffers are added to ``message``."""
    message["sizes"] = [len(buffer) for buffer in buffers]
    text = json.dumps(message).encode()
    return b"".join((FRAME_HEADER.pack(len(text), sum(message["sizes"])), text, *buffers))


def unpack_frame(read: Callable[[int], Any], limit: int) -> tuple[dict[str, Any], list[memoryview]]:
    """Return the message and the buffers of one frame, by a function that reads from somewhere.

    ``read`` is called with a number of bytes and returns exactly so many. Raises ``WireError`` for
    what is no frame, or takes more than ``limit`` bytes. "bytes" is added to the message: how many
    it took.
    """
    length, total = FRAME_HEADER.unpack(read(FRAME_HEADER.size))
    if length > min(limit, MAX_JSON_CHARS) or total > limit:
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
    if sum(sizes) != total or len(sizes) > MAX_BUFFERS:
        raise WireError("sent buffers of other sizes than it said")
    buffers, start = [], 0
    for size in sizes:
        buffers.append(raw[start : start + size])
        start += size
    return message | {"bytes": length + total}, buffers


def parses_cheaply(text: bytes) -> bool:
    """True if a JSON text holds few enough values to be parsed.

    Brackets and commas are counted, inside of strings as well.
    """
    if not text.isascii():  # nobody sends other text, which could take four times its length
        return False
    if len(text) <= MAX_UNCOUNTED_CHARS:
        return True
    containers = text.count(b"[") + text.count(b"{")
    return containers <= MAX_CONTAINERS and text.count(b",") <= MAX_ITEMS


def send_frame(connection: Any, message: dict[str, Any], buffers: Sequence[bytes] = ()) -> None:
    """Send one frame over a socket that blocks until it is taken."""
    connection.sendall(pack_frame(message, buffers))


def receive_frame(connection: Any) -> tuple[dict[str, Any], list[memoryview]]:
    """Return the next frame of a trusted sender; raise ``EOFError`` if that has hung up."""
    return unpack_frame(partial(receive_exactly, connection), NO_LIMIT)


def send_packet(
    connection: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()
) -> None:
    """Send one packet, with descriptors: a lane and its zygote talk in packets."""
    socket.send_fds(connection, [json.dumps(message).encode()], fds)


def receive_packet(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next packet and its descriptors; raise ``EOFError`` if the sender has hung up."""
    data, fds, _, _ = socket.recv_fds(connection, 1 << 16, 1)
    if not data:
        raise EOFError
    return json.loads(data), fds


def receive_exactly(connection: Any, size: int) -> bytearray:
    """Return exactly ``size`` bytes, once they are there; raise ``EOFError`` at a hang-up."""
    data = bytearray(size)
    unfilled = memoryview(data)
    while unfilled:
        count = connection.recv_into(unfilled)
        if not count:
            raise EOFError
        unfilled = unfilled[count:]
    return data
