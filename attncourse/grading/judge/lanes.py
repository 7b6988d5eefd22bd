"""The lanes as the driver holds them: started, asked, watched over, ended."""

import atexit
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from attncourse.grading.judge.wire.frames import receive, send
from attncourse.grading.machine import lane_environment
from attncourse.support.alarm import CLOCK, Clock, Stopwatch

START = 60.0  # seconds of processor time for a lane to start
TRIES = 50  # to remove a folder
GRACE = 3.0  # seconds beyond what is allowed until a lane that does not stop is ended
BOOKS = ("notebook", "assignment")  # of a request, as bytes
_removing = threading.Lock()


class LaneLost(Exception):
    """The lane ended, or went on with something beyond its time; the message says with what."""


class Lane:
    """A lane as the driver holds it. ``core`` is the one that it keeps to, if it does."""

    def __init__(self) -> None:
        self.core: int | None = None
        self.began = False  # with what it was asked for
        self.closed = False
        self.pid = 0  # once it has said so
        self.process: Any = None  # of the first of those that were started together
        self.errors: IO[bytes]  # of the first lane of those that are started together
        # The lane makes it: one made here would stay if this process were killed before that runs.
        self.folder = f"{tempfile.gettempdir()}/attncourse-lane-{secrets.token_hex(8)}"
        self.connection, self.theirs = socket.socketpair()
        # The lane reads ``ended``: however this process ends, the kernel closes ``lifeline``,
        # and the lane ends itself (``lane.end_with``).
        self.ended, self.lifeline = os.pipe()

    def become(self, key: tuple, core: int | None) -> None:
        """Tell the lane what it is for; it waits for that once its libraries are there."""
        _, chapters, sandbox, processes, hidden = key
        self.core = core
        order = {"chapters": chapters, "sandbox": sandbox, "processes": processes}
        order |= {"hidden": hidden, "core": self.core, "folder": self.folder}
        with suppress(ConnectionError):  # it has ended, which is told once it is asked
            send(self.connection, order)

    def ask(self, request: dict[str, Any], progress: Any) -> dict[str, Any]:
        """Return the answer to a request; ``progress`` is called with what was earned meanwhile.

        The lane keeps the submission's limits. It cannot where it is itself kept busy in one
        instruction, so it says what it begins and how long that may take, and is held to it.
        """
        doing, limit = "its start", START
        watch = Stopwatch(START, Clock(self.pid).used, waits=CLOCK * START)
        try:
            # The clock has a say as well: a lane that was stopped uses no processor time.
            self.connection.settimeout(CLOCK * START)
            send(self.connection, request | dict.fromkeys(BOOKS), [request[b] for b in BOOKS])
            while True:
                while not select.select([self.connection], [], [], watch.left())[0]:
                    if not watch.left():
                        words = watch.in_words(limit)
                        raise LaneLost(f"was busy with {doing} for more than {words}")
                message, _ = receive(self.connection)
                # Only now can its processor time be asked for: a lane that is started together with
                # others is a fork of a fork, which nobody here has as a child.
                if "pid" in message:
                    self.pid = message["pid"]
                elif "begins" in message:
                    self.began = True
                    progress(message["earned"])
                    doing, used = message["begins"], Clock(self.pid).used
                    # Limits are stretched on a slow machine; a sentence names what they are on
                    # others.
                    limit = message["seconds"] / request["limits"]["stretch"]
                    seconds = message["seconds"] + GRACE  # it may have to wait for its worker
                    watch = Stopwatch(seconds, used, waits=CLOCK * seconds)
                else:
                    return message
        except (EOFError, ConnectionError):
            raise LaneLost(f"ended ({self.last_words()})") from None
        except OSError as problem:
            raise LaneLost(str(problem) or f"did not answer while busy with {doing}") from None

    def gone(self) -> bool:
        """True if the lane has ended while it waited."""
        # A lane sends nothing unasked: what can be read while it waits is its end.
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def last_words(self) -> str:
        """Return the last line that an ended lane wrote, or its exit status."""
        if self.process is None:
            return "with those that were started with it"
        with suppress(Exception):
            self.process.wait(2)
        self.errors.seek(0)
        lines = self.errors.read()[-2000:].decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else f"status {self.process.returncode}"

    def close(self) -> None:
        """End the lane with everything below it; a second time does nothing."""
        if self.closed:
            return
        self.closed = True
        # Twice: now, and again below for what the zygote put there until it was ended.
        remove(self.folder)  # while there is someone to do it, should this process be killed
        os.close(self.lifeline)
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.errors.close()
        elif self.pid and not self.gone():
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                select.select([self.connection], [], [], GRACE)  # until it is gone
        self.connection.close()
        remove(self.folder)


def start_processes(modules: Sequence[str], number: int) -> list[Lane]:
    """Start so many lanes with these libraries: processes that share what they import."""
    lanes = [Lane() for _ in range(number)]
    ends = [(lane.theirs.fileno(), lane.ended) for lane in lanes]
    lanes[0].errors = tempfile.TemporaryFile()  # noqa: SIM115, closed with the lane
    lanes[0].process = launch(modules, ends, lanes[0].errors)
    for lane in lanes:
        lane.theirs.close()
        os.close(lane.ended)
    return lanes


def launch(
    modules: Sequence[str], ends: Sequence[tuple[int, int]], errors: IO[bytes]
) -> subprocess.Popen:
    """Start the process that becomes the lanes, with these libraries.

    ``ends`` has for each lane its end of the socket and of the lifeline.
    """
    return subprocess.Popen(
        [
            # -P: a file of the folder that grading was started in hides no library.
            *(sys.executable, "-P", "-m", "attncourse.grading.judge.lane", ",".join(modules)),
            *(f"{fd},{lifeline}" for fd, lifeline in ends),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=lane_environment(),
        pass_fds=[fd for pair in ends for fd in pair],
        # an interrupt from the keyboard is the driver's alone
        start_new_session=True,
    )


class Lanes:
    """The lanes of this process, one for each thread that grades, kept for the next submission.

    A key is what a lane starts with: libraries, chapters, sandbox, processes a worker may be, and
    the course's folders, which no submission sees.
    Where there is a lane for every core, each keeps to its own: checker and worker take turns, and
    to wake one on another core takes longer than what it is asked for.
    """

    def __init__(self):
        self.kept = 4  # lanes that may wait
        self.cores: list[int] = []  # that no lane keeps to
        self.lock = threading.Condition()
        self.wishes = 0  # to be alone
        self.alone: Lane | None = None
        self.expected: tuple[Sequence[str], list[Lane]] = (), []  # libraries; have no order yet
        self.idle: list[tuple[tuple, Lane]] = []  # the longest waiting first
        self.busy: set[Lane] = set()
        self.stopped = False

    def take(self, key: tuple, alone: bool = False) -> Lane:
        """Return a lane for this key, a waiting one or a new one.

        With ``alone`` it waits until no other is busy, and nobody else gets one meanwhile.
        """
        with self.lock:
            self.wishes += alone
            self.lock.wait_for(
                lambda: (
                    self.stopped
                    or (not self.busy if alone else not self.wishes and self.alone is None)
                )
            )
            self.wishes -= alone
            if self.stopped:
                raise LaneLost("was stopped")
            ended = [pair for pair in self.idle if pair[1].gone()]
            for pair in ended:
                self.idle.remove(pair)
                self.end(pair[1])
            place = next((i for i, (other, _) in enumerate(self.idle) if other == key), None)
            lane = self.begin([key])[0] if place is None else self.idle.pop(place)[1]
            self.busy.add(lane)
            self.alone = lane if alone else None
        return lane

    def leave(self, lane: Lane) -> None:
        """Take a lane from the busy ones. The lock is held."""
        self.busy.discard(lane)
        if self.alone is lane:
            self.alone = None
        self.lock.notify_all()

    def give_back(self, key: tuple, lane: Lane) -> None:
        """Keep a lane for the next submission with its key; end the oldest beyond the room."""
        with self.lock:
            self.leave(lane)
            self.idle.append((key, lane))
            # Ended outside of the lock, which other threads wait for: to end a lane takes a while.
            surplus = self.idle[: -self.kept]
            del self.idle[: -self.kept]
        for _, old in surplus:
            self.end(old)

    def expect(self, modules: Sequence[str], number: int) -> None:
        """Start so many lanes with these libraries before it is known what for.

        They are the next to begin if those are as many with these; else they end.
        """
        self.expected = modules, start_processes(modules, number)

    def begin(self, keys: list[tuple]) -> list[Lane]:
        """Return a lane for each key, all of which name the same libraries."""
        (modules, lanes), self.expected = self.expected, ((), [])
        if modules != keys[0][0] or len(lanes) != len(keys):
            for lane in lanes:
                lane.close()
            lanes = start_processes(keys[0][0], len(keys))
        for lane, key in zip(lanes, keys, strict=True):
            lane.become(key, self.cores.pop(0) if self.cores else None)
        return lanes

    def end(self, lane: Lane) -> None:
        """End a lane; its core is free again."""
        lane.close()
        if lane.core is not None:
            self.cores.append(lane.core)

    def prepare(self, keys: Sequence[tuple]) -> None:
        """Start a lane for each key, if none waits, before it is needed.

        It loads its libraries meanwhile; those with the same libraries load them once.
        """
        with self.lock:
            self.stopped = False
            self.kept = max(self.kept, len(keys))
            # Only before the first lanes: those that are there have their cores or none.
            if not self.idle and not self.busy and hasattr(os, "sched_getaffinity"):
                cores = sorted(os.sched_getaffinity(0))
                self.cores = cores if len(keys) >= len(cores) else []
            lacking = Counter(keys) - Counter(key for key, _ in self.idle)
            for modules in dict.fromkeys(key[0] for key in lacking):
                alike = [key for key in lacking.elements() if key[0] == modules]
                self.idle += zip(alike, self.begin(alike), strict=True)

    def lose(self, lane: Lane) -> None:
        """End a lane that was at work."""
        with self.lock:
            self.leave(lane)
        self.end(lane)

    def close(self) -> None:
        """End the lanes that wait for work."""
        with self.lock:
            lanes = [lane for _, lane in self.idle] + self.expected[1]
            self.idle.clear()
            self.expected = (), []
        for lane in lanes:
            self.end(lane)

    def stop(self) -> None:
        """End every lane, those at work too; no more are started."""
        with self.lock:
            self.stopped = True
            self.lock.notify_all()
        self.close()
        for lane in list(self.busy):
            lane.close()


LANES = Lanes()
atexit.register(LANES.close)


def remove(folder: str) -> None:
    """Remove the lane's folder: whoever comes second, of two threads that end it, waits.

    Again, where somebody who is about to end put something into it meanwhile.
    """
    with _removing:
        for _ in range(TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.lexists(folder):
                return
            time.sleep(0.02)
