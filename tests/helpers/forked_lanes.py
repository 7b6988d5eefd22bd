"""Lanes that part from a process with their libraries, in place of a Python started for each.

They part where ``lane.py`` itself divides into several: libraries loaded, one thread, no course
known. From there each goes on through ``lane.main``. Tests marked ``from_exec`` do without.

``python forked_lanes.py`` listens at the address that its environment names until its standard
input ends. For each set of libraries it has one process, and whoever asks that gets a lane of it.
"""

import atexit
import gc
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import IO

from attncourse.grading.judge import lane, lanes
from attncourse.grading.machine import lane_environment

WHERE = "ATTNCOURSE_TESTS_PARTING"
MOST = 64  # descriptors of one request
STARTED = lanes.launch_lanes


# --- who asks -------------------------------------------------------------------------------------


def adopt(wanted: bool = True) -> None:
    """From now on this process's lanes part from one with their libraries, or do not."""
    lanes.launch_lanes = part if wanted else STARTED


def adopted() -> bool:
    return lanes.launch_lanes is part


@cache
def address() -> str:
    """Where that process listens: the one that this process knows of, or its own."""
    if WHERE not in os.environ:
        os.environ[WHERE] = f"attncourse-parting-{secrets.token_hex(8)}"
        environment = lane_environment() | {WHERE: os.environ[WHERE]}
        command, pipe = [sys.executable, "-P", __file__], subprocess.PIPE
        made = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, start_new_session=True
        )
        made.stdout.readline()  # it listens
        atexit.register(made.communicate)
    return "\0" + os.environ[WHERE]


def part(libraries: Sequence[str], ends: Sequence[tuple[int, int]], errors: IO[bytes]) -> "Parted":
    """Fork a lane, as ``lanes.launch_lanes`` starts one."""
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asking.connect(address())
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    fds = [errors.fileno(), here, *(fd for pair in ends for fd in pair)]
    socket.send_fds(asking, [",".join(libraries).encode() or b","], fds)
    os.close(here)
    return Parted(asking)


class Parted:
    """As much of ``subprocess.Popen`` as a lane's holder uses."""

    def __init__(self, asked: socket.socket):
        self.asked = asked
        self.pid = json.loads(asked.recv(100))
        self.returncode: int | None = None

    def kill(self) -> None:
        if self.returncode is None and not select.select([self.asked], [], [], 0)[0]:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.asked.settimeout(timeout)
            self.returncode = json.loads(self.asked.recv(100) or "-9")
            self.asked.close()
        return self.returncode


# --- what they part from --------------------------------------------------------------------------


def serve(listening: socket.socket) -> None:
    """Hands each request on to the process that has its libraries."""
    nests: dict[bytes, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listening, 0], [], [])
        if 0 in ready:
            return
        asking, _ = listening.accept()
        libraries, fds, _, _ = socket.recv_fds(asking, 1000, MOST)
        if libraries not in nests:
            nests[libraries], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if os.fork() == 0:
                part_lanes(theirs, libraries.decode())
            theirs.close()
        socket.send_fds(nests[libraries], [b"part"], [asking.fileno(), *fds])
        asking.close()
        for fd in fds:
            os.close(fd)


def part_lanes(control: socket.socket, libraries: str) -> None:
    """Makes lanes with these libraries until ``serve`` ends, and tells how each ended."""
    keep_open({0, 1, 2, control.fileno()})
    with suppress(Exception):  # a lane will say what it cannot import
        lane.load_libraries(list(filter(None, libraries.split(","))))
    running: dict[int, tuple[int, socket.socket]] = {}  # by descriptors
    while True:
        for ready in select.select([control, *running], [], [])[0]:
            if ready is not control:
                pid, asking = running.pop(ready)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.close(ready)
                tell(asking, status)
                asking.close()
                continue
            _, fds, _, _ = socket.recv_fds(control, 100, MOST)
            if not fds:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                become(libraries, *fds[1:])
            for fd in fds[1:]:
                os.close(fd)
            asking = socket.socket(fileno=fds[0])
            tell(asking, pid)
            running[os.pidfd_open(pid)] = pid, asking


def become(libraries: str, errors: int, place: int, *ends: int) -> None:
    """Is a lane from now on."""
    os.setsid()
    os.fchdir(place)
    os.dup2(errors, 2)
    keep_open({0, 1, 2, *ends})
    pairs = zip(ends[::2], ends[1::2], strict=True)
    sys.argv[1:] = [libraries, *(f"{fd},{lifeline}" for fd, lifeline in pairs)]
    status = 1
    try:
        lane.main()
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(status)


def keep_open(kept: set[int]) -> None:
    """Closes all other descriptors. Whoever held one must not use it, nor let go of it."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in kept:
            with suppress(OSError):  # that of the list itself is not open any more
                os.close(fd)


def tell(asking: socket.socket, number: int) -> None:
    with suppress(OSError):  # where nobody wants to know any more
        asking.send(str(number).encode())


if __name__ == "__main__":
    gc.disable()
    place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.bind("\0" + os.environ.pop(WHERE))
    place.listen(100)
    print(flush=True)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    serve(place)
