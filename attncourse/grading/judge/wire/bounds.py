"""What a submission's words may cost in the trusted process: counted before anything is built.

A few bytes can ask for much: an empty list takes twenty times the memory of its JSON, one buffer
may be named by a thousand arrays, keys with one hash make a set take hours. So what a reply asks
for is taken off an account first. Behind that stands a bound that the kernel keeps, for what tests
make of it: beyond it there is a ``MemoryError``, which costs the submission its test.
"""

import os
import time
from contextlib import suppress

from attncourse.grading.limits import MB

CHECKER = 1000  # MB that the checker may take, beyond what it starts with
SPENT = 300  # MB that a checker has grown by when another one takes its place

TEXT = 16_000_000  # characters of JSON in one frame
PLAIN = 1_000_000  # up to so many, they are not counted first
CONTAINERS = 200_000  # lists and dicts in one frame's JSON
ITEMS = 1_000_000  # items of these
BUFFERS = 50_000  # raw buffers in one frame

# Bytes that things take here, roughly. An item's place in its list is counted with it.
VALUE, CONTAINER, MEMBER, NUMBERS, TENSOR = 40, 64, 64, 200, 1500
HANDLE, CLASS, NAMED, FIELD = 2000, 6000, 8000, 500
KEYS = 400_000  # bytes of keys and members that are no text: ten thousand numbers
PARAMETERS = 255  # of one function, and fields of a named tuple
AXES = 32
DIGITS = 5000  # of one whole number, in hexadecimal
TOO_LARGE = "sent a value that is too large"


class WireError(Exception):
    """What came over the wire is no message, no value, or too large a one."""


class Room:
    """The bytes that what one reply holds may still take; without a limit for what is trusted."""

    def __init__(self, size: float = float("inf")):
        self.left = size
        self.keys = KEYS if size < float("inf") else size

    def take(self, size: float) -> None:
        """Takes so much off; raises ``WireError`` where there is not enough left."""
        self.left -= size
        if self.left < 0:
            raise WireError(TOO_LARGE)

    def take_key(self, size: float) -> None:
        """The same for a key: it takes time as well, with the number of those beside it."""
        self.keys -= size
        if self.keys < 0:
            raise WireError(TOO_LARGE)


def parses_cheaply(text: bytes) -> bool:
    """Whether JSON of this text holds few enough values; strings may be counted for more."""
    if not text.isascii():  # nobody sends other text, which could take four times its length
        return False
    if len(text) <= PLAIN:
        return True
    containers = text.count(b"[") + text.count(b"{")
    return containers <= CONTAINERS and text.count(b",") <= ITEMS


def hold_memory(size: int = CHECKER) -> None:
    """Has the kernel refuse this process more than so many MB beyond what it has."""
    with suppress(ImportError, OSError, ValueError):  # elsewhere than on Linux
        import resource

        most = pages(0) + size * MB
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def resident() -> int:
    """The bytes of memory that this process has; 0 where nobody counts."""
    with suppress(OSError):
        return pages(1)
    return 0


def pages(which: int) -> int:
    """One of the sizes of this process, in bytes: of its addresses, of what lies in memory."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[which]) * os.sysconf("SC_PAGE_SIZE")


class Clock:
    """The time of a process of this machine; once that is gone, its last.

    Without a number, or where other processes have no clock, it stays 0.
    """

    def __init__(self, pid: int = 0):
        self.pid = pid
        self.worked = self.waited = 0.0

    def used(self) -> float:
        """Seconds of processor time."""
        with suppress(OSError, AttributeError, OverflowError):
            self.worked = time.clock_gettime((~self.pid << 3) | 2) if self.pid else 0.0
        return self.worked

    def queued(self) -> float:
        """Seconds for which others have kept the processor from it."""
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{self.pid}/schedstat") as told:
            self.waited = int(told.read().split()[1]) / 1e9
        return self.waited
