"""The workers of a lane as its loop has them: the zygote makes one ahead, and ends them."""

import os
import socket
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attncourse.grading.judge.budget import Budget
from attncourse.grading.judge.remote.session import Session
from attncourse.grading.judge.wire.frames import receive_packet, send_packet
from attncourse.grading.limits import Limits
from attncourse.support.alarm import Clock


class Refused(Exception):
    """The zygote cannot work here. The message says why."""


class Workers:
    """Fresh processes for a submission's code. ``zygote`` is the socket to who makes them."""

    def __init__(self, zygote: socket.socket, limits: Limits):
        self.zygote = zygote
        self.limits = limits
        self.settled = False
        self.spare: socket.socket | None = None  # the checker's end of the next worker
        self.spare_pid = 0  # once the zygote has named it
        self.spare_clock = Clock()
        self.busy: list[int] = []
        self.used: list[dict[str, Any]] = []  # by those that have ended

    def settle(self) -> None:
        """Wait, the first time, until the zygote has jailed itself."""
        if self.settled:
            return
        answer, _ = self.answer()
        if "error" in answer:
            raise Refused(answer["error"])
        self.settled = True

    def work_within(self, limits: Limits) -> None:
        """Have the workers from now on made with these limits."""
        if self.spare is not None and limits != self.limits:
            self.spare.close()
            self.end(self.made())
            self.spare = None
        self.limits = limits
        if self.spare is None:
            self.begin()

    def launch(self, budget: Budget, seeds: bool) -> Session:
        """Return a conversation with a fresh worker; the next one is made meanwhile."""
        connection = self.spare
        self.end_all()
        self.busy.append(self.made())
        clock = self.spare_clock
        self.begin()
        return Session(connection, self.limits, budget, carry_seed=seeds, clock=clock)

    def end_all(self) -> None:
        """End the workers that nobody talks to any more."""
        self.used += [self.end(pid) for pid in self.busy]
        self.busy.clear()

    def made(self) -> int:
        """Return the process id, in the jail, of the next worker, which exists then."""
        if not self.spare_pid:
            made, fds = self.answer()
            self.spare_pid, self.spare_clock = made["pid"], clock_of(fds, made["outside"])
        return self.spare_pid

    def begin(self) -> None:
        """Have the zygote make a worker; its answer is fetched when the worker is needed."""
        ours, theirs = socket.socketpair()
        send_packet(self.zygote, {"do": "start", "limits": asdict(self.limits)}, [theirs.fileno()])
        theirs.close()
        self.spare, self.spare_pid = ours, 0

    def end(self, pid: int) -> dict[str, Any]:
        """End a worker; return what it used."""
        self.made()  # its answer comes first
        send_packet(self.zygote, {"do": "stop", "pid": pid})
        return self.answer()[0]

    def answer(self) -> tuple[dict[str, Any], list[int]]:
        """Return the zygote's next message."""
        try:
            return receive_packet(self.zygote)
        except EOFError:
            raise SystemExit("the process that starts the workers has ended") from None


def clock_of(fds: list[int], number: int = 0) -> Clock:
    """Return a worker's clock, by its descriptor or by a ``number`` known outside the jail.

    It stands still where neither says anything: then only what passes on the clock counts.
    """
    for fd in fds:
        with suppress(OSError, ValueError, IndexError):
            about = Path(f"/proc/self/fdinfo/{fd}").read_text()
            number = int(about.split("Pid:")[1].split()[0])
        os.close(fd)
    return Clock(max(number, 0))
