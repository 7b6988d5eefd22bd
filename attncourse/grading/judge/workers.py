"""The workers of a lane: the zygote forks them, one ahead of need, and ends them."""

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
    """Fresh processes for a submission's code. ``zygote`` is the socket to what forks them."""

    def __init__(self, zygote: socket.socket, limits: Limits):
        self.zygote = zygote
        self.limits = limits
        self.settled = False
        self.spare: socket.socket | None = None  # the checker's end of the next worker
        self.spare_pid = 0  # once the zygote has named it
        self.spare_clock = Clock()
        self.busy: list[int] = []
        self.used: list[dict[str, Any]] = []  # by those that have ended

    def wait_for_zygote(self) -> None:
        """Wait, at the first call, until the zygote is jailed; raise ``Refused`` if it can't be."""
        if self.settled:
            return
        answer, _ = self.next_message()
        if "error" in answer:
            raise Refused(answer["error"])
        self.settled = True

    def use_limits(self, limits: Limits) -> None:
        """Have workers made with these limits from now on; a spare one with others is ended."""
        if self.spare is not None and limits != self.limits:
            self.spare.close()
            self.end_worker(self.spare_worker())
            self.spare = None
        self.limits = limits
        if self.spare is None:
            self.order_worker()

    def launch(self, budget: Budget, seeds: bool) -> Session:
        """Return a session with the spare worker, and order the next one.

        ``seeds`` says whether a test seeds its own generators, so that calls carry a seed.
        """
        connection = self.spare
        self.end_all()
        self.busy.append(self.spare_worker())
        clock = self.spare_clock
        self.order_worker()
        return Session(connection, self.limits, budget, carry_seed=seeds, clock=clock)

    def end_all(self) -> None:
        """End the workers that were launched, and note what each of them used."""
        self.used += [self.end_worker(pid) for pid in self.busy]
        self.busy.clear()

    def spare_worker(self) -> int:
        """Return the process id, inside the jail, of the spare worker, once it exists."""
        if not self.spare_pid:
            message, fds = self.next_message()
            self.spare_pid, self.spare_clock = message["pid"], clock_of(fds, message["outside"])
        return self.spare_pid

    def order_worker(self) -> None:
        """Have the zygote make a spare worker; its answer is read when the worker is needed."""
        checker_end, worker_end = socket.socketpair()
        send_packet(
            self.zygote, {"do": "start", "limits": asdict(self.limits)}, [worker_end.fileno()]
        )
        worker_end.close()
        self.spare, self.spare_pid = checker_end, 0

    def end_worker(self, pid: int) -> dict[str, Any]:
        """End a worker; return its exit status, processor time and memory."""
        self.spare_worker()  # its answer comes first
        send_packet(self.zygote, {"do": "stop", "pid": pid})
        return self.next_message()[0]

    def next_message(self) -> tuple[dict[str, Any], list[int]]:
        """Return the zygote's next message and descriptors; end this process if it has ended."""
        try:
            return receive_packet(self.zygote)
        except EOFError:
            raise SystemExit("the process that starts the workers has ended") from None


def clock_of(fds: list[int], number: int = 0) -> Clock:
    """Return the clock of a worker's processor time; close the descriptors ``fds``.

    The worker is known by a descriptor of its process, or by its ``number`` outside the jail.
    Without either the clock stands still: then only the time that passes is counted.
    """
    for fd in fds:
        with suppress(OSError, ValueError, IndexError):
            about = Path(f"/proc/self/fdinfo/{fd}").read_text()
            number = int(about.split("Pid:")[1].split()[0])
        os.close(fd)
    return Clock(max(number, 0))
