"""Lanes, the processes that grade, as the driver holds them: started, asked, watched, ended."""

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
from dataclasses import asdict, dataclass
from typing import IO, Any

from attncourse.grading.judge.wire.frames import receive_frame, send_frame
from attncourse.grading.machine import lane_environment
from attncourse.support.alarm import CLOCK_SECONDS_PER_WORK, Clock, Stopwatch

START_SECONDS = 60.0  # of processor time for a lane to start
MAX_REMOVALS = 50  # of a folder into which somebody still writes
GRACE_SECONDS = 3.0  # beyond what is allowed, until a lane that does not stop is ended
BYTE_FIELDS = ("notebook", "assignment")  # of a request, sent as buffers
_removing = threading.Lock()


class LaneLost(Exception):
    """The lane ended, or took too long; the message says with what, after the words "the judge"."""


@dataclass(frozen=True)
class LaneSettings:
    """The settings that a lane is started with; it grades any submission with the same ones."""

    libraries: tuple[str, ...]
    chapters: tuple[str, ...]  # that a submission may import
    sandbox: bool
    processes: int  # that a worker may be
    hidden: tuple[str, ...]  # the course's folders, which no submission sees


class Lane:
    """A lane's process as the driver holds it. ``core`` is the one it keeps to; None for any."""

    def __init__(self) -> None:
        self.core: int | None = None
        self.work_began = False  # with what it was asked for
        self.closed = False
        self.pid = 0  # once it has said so
        self.process: Any = None  # of the first of those that were started together
        self.errors: IO[bytes]  # of the first lane of those that are started together
        # The lane makes it: one made here would stay if this process were killed before that runs.
        self.folder = f"{tempfile.gettempdir()}/attncourse-lane-{secrets.token_hex(8)}"
        self.connection, self.lane_socket = socket.socketpair()
        # The lane reads its end: however this process ends, the kernel closes ``lifeline``, and the
        # lane ends itself (``lane.end_when_driver_ends``).
        self.lane_lifeline, self.lifeline = os.pipe()

    def send_order(self, settings: LaneSettings, core: int | None) -> None:
        """Send the lane its settings, for which it waits once its libraries are loaded."""
        self.core = core
        order = asdict(settings) | {"core": core, "folder": self.folder}
        with suppress(ConnectionError):  # it has ended, which is told once it is asked
            send_frame(self.connection, order)

    def ask(self, request: dict[str, Any], progress: Any) -> dict[str, Any]:
        """Return the lane's answer; ``progress`` is called with what tests earn meanwhile.

        The lane holds the submission to its limits. It cannot while one instruction keeps itself
        busy, so it announces what it begins and how long that may take: if it takes longer, or
        ends, ``LaneLost`` is raised.
        """
        doing, limit = "its start", START_SECONDS
        watch = Stopwatch(
            START_SECONDS, Clock(self.pid).used, waits=CLOCK_SECONDS_PER_WORK * START_SECONDS
        )
        try:
            # The clock has a say as well: a lane that was stopped uses no processor time.
            self.connection.settimeout(CLOCK_SECONDS_PER_WORK * START_SECONDS)
            buffers = [request[field] for field in BYTE_FIELDS]
            send_frame(self.connection, request | dict.fromkeys(BYTE_FIELDS), buffers)
            while True:
                while not select.select([self.connection], [], [], watch.left())[0]:
                    if not watch.left():
                        words = watch.in_words(limit)
                        raise LaneLost(f"was busy with {doing} for more than {words}")
                message, _ = receive_frame(self.connection)
                # Only now can its processor time be asked for: a lane that is started together with
                # others is a fork of a fork, which nobody here has as a child.
                if "pid" in message:
                    self.pid = message["pid"]
                elif "begins" in message:
                    self.work_began = True
                    progress(message["earned"])
                    doing, used = message["begins"], Clock(self.pid).used
                    # Limits are stretched on a slow machine; a sentence names what they are on
                    # others.
                    limit = message["seconds"] / request["limits"]["stretch"]
                    # More than it said: it may have to wait for its worker.
                    seconds = message["seconds"] + GRACE_SECONDS
                    watch = Stopwatch(seconds, used, waits=CLOCK_SECONDS_PER_WORK * seconds)
                else:
                    return message
        except (EOFError, ConnectionError):
            raise LaneLost(f"ended ({self.last_words()})") from None
        except OSError as problem:
            raise LaneLost(str(problem) or f"did not answer while busy with {doing}") from None

    def has_ended(self) -> bool:
        """True if the lane has ended while it waited for work."""
        # A lane sends nothing unasked but its number at the start: what can be read is its end.
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def last_words(self) -> str:
        """Return the last line that an ended lane wrote to its errors, or else its exit status."""
        if self.process is None:
            return "with those that were started with it"
        with suppress(Exception):
            self.process.wait(2)
        self.errors.seek(0)
        lines = self.errors.read()[-2000:].decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else f"status {self.process.returncode}"

    def close(self) -> None:
        """End the lane and all processes below it, remove its folder; do nothing a second time."""
        if self.closed:
            return
        self.closed = True
        # Twice: now, and again below for what the zygote put there until it was ended.
        remove_folder(self.folder)  # while there is someone to do it, should this process be killed
        os.close(self.lifeline)
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.errors.close()
        elif self.pid and not self.has_ended():
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                select.select([self.connection], [], [], GRACE_SECONDS)  # until it is gone
        self.connection.close()
        remove_folder(self.folder)


def start_processes(modules: Sequence[str], number: int) -> list[Lane]:
    """Start ``number`` lanes with these libraries, whose memory they share."""
    lanes = [Lane() for _ in range(number)]
    ends = [(lane.lane_socket.fileno(), lane.lane_lifeline) for lane in lanes]
    lanes[0].errors = tempfile.TemporaryFile()  # noqa: SIM115, closed with the lane
    lanes[0].process = launch_lanes(modules, ends, lanes[0].errors)
    for lane in lanes:
        lane.lane_socket.close()
        os.close(lane.lane_lifeline)
    return lanes


def launch_lanes(
    modules: Sequence[str], ends: Sequence[tuple[int, int]], errors: IO[bytes]
) -> subprocess.Popen:
    """Start the process that forks into the lanes, with these libraries.

    ``ends`` has for each lane the descriptors of its socket and of its lifeline.
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
    """The lanes of this process, one for each thread that grades, kept for the next submissions.

    Where there is a lane for every core, each keeps to its own: checker and worker take turns, and
    to wake one on another core takes longer than what it is asked for.
    """

    def __init__(self):
        self.max_idle = 4  # lanes that wait for work at a time
        self.cores: list[int] = []  # that no lane keeps to
        self.lock = threading.Condition()
        self.waiting_alone = 0  # threads that wait to be alone
        self.alone: Lane | None = None
        self.expected: list[Lane] = []  # started, and without an order yet
        self.expected_libraries: tuple[str, ...] = ()
        self.idle: list[tuple[LaneSettings, Lane]] = []  # the longest waiting first
        self.busy: set[Lane] = set()
        self.stopped = False

    def take(self, settings: LaneSettings, alone: bool = False) -> Lane:
        """Return a lane with these settings, one that waited for work or else a new one.

        With ``alone``, the call waits until no lane is busy, and no other thread gets one until
        that lane is given back. Raises ``LaneLost`` once the lanes were stopped.
        """
        with self.lock:
            if alone:
                self.waiting_alone += 1
                self.lock.wait_for(lambda: self.stopped or not self.busy)
                self.waiting_alone -= 1
            else:
                self.lock.wait_for(
                    lambda: self.stopped or (not self.waiting_alone and self.alone is None)
                )
            if self.stopped:
                raise LaneLost("was stopped")
            ended = [pair for pair in self.idle if pair[1].has_ended()]
            for pair in ended:
                self.idle.remove(pair)
                self.end_lane(pair[1])
            fitting = [i for i, (idle_for, _) in enumerate(self.idle) if idle_for == settings]
            lane = self.idle.pop(fitting[0])[1] if fitting else self.begin_lanes([settings])[0]
            self.busy.add(lane)
            self.alone = lane if alone else None
        return lane

    def remove_from_busy(self, lane: Lane) -> None:
        """Remove a lane from the busy ones and wake who waits; the caller holds the lock."""
        self.busy.discard(lane)
        if self.alone is lane:
            self.alone = None
        self.lock.notify_all()

    def give_back(self, settings: LaneSettings, lane: Lane) -> None:
        """Keep a lane for another submission with its settings; end the oldest of too many."""
        with self.lock:
            self.remove_from_busy(lane)
            self.idle.append((settings, lane))
            # Ended outside of the lock, which other threads wait for: to end a lane takes a while.
            surplus = self.idle[: -self.max_idle]
            del self.idle[: -self.max_idle]
        for _, old in surplus:
            self.end_lane(old)

    def start_expected(self, libraries: tuple[str, ...], number: int) -> None:
        """Start ``number`` lanes with these libraries before their settings are known.

        ``begin_lanes`` uses them if it is asked for as many with the same libraries, and ends them
        if not.
        """
        self.expected_libraries = libraries
        self.expected = start_processes(libraries, number)

    def begin_lanes(self, all_settings: list[LaneSettings]) -> list[Lane]:
        """Return a lane for each of these settings, all of which name the same libraries."""
        lanes, self.expected = self.expected, []
        if self.expected_libraries != all_settings[0].libraries or len(lanes) != len(all_settings):
            for lane in lanes:
                lane.close()
            lanes = start_processes(all_settings[0].libraries, len(all_settings))
        for lane, settings in zip(lanes, all_settings, strict=True):
            lane.send_order(settings, self.cores.pop(0) if self.cores else None)
        return lanes

    def end_lane(self, lane: Lane) -> None:
        """End a lane; another may keep to its core then."""
        lane.close()
        if lane.core is not None:
            self.cores.append(lane.core)

    def start_missing(self, all_settings: Sequence[LaneSettings]) -> None:
        """Start a lane for each of these settings for which none waits; do not wait for them.

        They load their libraries meanwhile, those with the same ones together.
        """
        with self.lock:
            self.stopped = False
            self.max_idle = max(self.max_idle, len(all_settings))
            # Only before the first lanes: those that are there have their cores or none.
            if not self.idle and not self.busy and hasattr(os, "sched_getaffinity"):
                cores = sorted(os.sched_getaffinity(0))
                self.cores = cores if len(all_settings) >= len(cores) else []
            lacking = Counter(all_settings) - Counter(settings for settings, _ in self.idle)
            for libraries in dict.fromkeys(settings.libraries for settings in lacking):
                with_same_libraries = [
                    each for each in lacking.elements() if each.libraries == libraries
                ]
                self.idle += zip(
                    with_same_libraries, self.begin_lanes(with_same_libraries), strict=True
                )

    def end_busy(self, lane: Lane) -> None:
        """End a lane that was at work."""
        with self.lock:
            self.remove_from_busy(lane)
        self.end_lane(lane)

    def end_idle(self) -> None:
        """End the lanes that wait for work, and those that wait for an order."""
        with self.lock:
            lanes = [lane for _, lane in self.idle] + self.expected
            self.idle.clear()
            self.expected = []
        for lane in lanes:
            self.end_lane(lane)

    def end_all(self) -> None:
        """End every lane, those at work too, and have ``take`` start no more."""
        with self.lock:
            self.stopped = True
            self.lock.notify_all()
        self.end_idle()
        for lane in list(self.busy):
            lane.close()


LANES = Lanes()
atexit.register(LANES.end_idle)


def remove_folder(folder: str) -> None:
    """Remove a lane's folder; of two threads that do so, the second waits for the first.

    It is removed again where a process that is about to end has put something into it meanwhile.
    """
    with _removing:
        for _ in range(MAX_REMOVALS):
            shutil.rmtree(folder, ignore_errors=True)
            if not os.path.lexists(folder):
                return
            time.sleep(0.02)
