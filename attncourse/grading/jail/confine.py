"""Confining one process: its user, its limits, its open files."""

import math
import os
import signal
from pathlib import Path
from typing import NoReturn

from attncourse.grading.jail import kernel
from attncourse.grading.jail.layers import JailError
from attncourse.grading.limits import MB, Limits

USER_INSIDE = 1000  # the user in the jail
FIRST_LANE_USER = 1_000_000_000  # on the machine: users from here on, which nobody is
STACK_BYTES = 8 * 2**20
CPU_GRACE_SECONDS = 2  # of processor time between the warning signal and the end


def require_confinable() -> None:
    """Raise ``JailError`` for threads or shared memory of this process, which namespaces leave."""
    if len(os.listdir("/proc/self/task")) > 1:
        raise JailError("no jail: expected a process of one thread: set OMP_NUM_THREADS=1")
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.split()[1][1::2] == "ws":  # writable and shared, as in "rw-s"
            name = line.split(maxsplit=5)[5:] or ["that has no name"]
            raise JailError(f"no jail: expected no shared memory, got {name[0]}: open it later")


def unused_outer_id() -> int | None:
    """Return, for root, the number of a user and group that nobody has on this machine.

    Each lane has its own. None for another user, and for root in a namespace without such numbers.
    """
    if os.geteuid() != 0:
        return None
    # By the lane's own number; in a container only the first 65,536 users may exist.
    candidates = (FIRST_LANE_USER + os.getppid(), 60_000 + os.getppid() % 5_000)
    maps = [Path(f"/proc/self/{kind}_map").read_text().splitlines() for kind in ("uid", "gid")]
    ranges = [[tuple(map(int, line.split())) for line in lines] for lines in maps]
    for candidate in candidates:
        if all(any(a <= candidate < a + n for a, _, n in spans) for spans in ranges):
            return candidate
    return None


def wait_in_place_of(child: int, lane: int) -> NoReturn:
    """End with the exit status of ``child``, or at once if the lane has ended; never return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the lane decides
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == lane:  # else it ended before this was set
        kernel.close_all_but(())  # a socket held open here would never tell that the other end went
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    os._exit(1)


def set_limits(limits: Limits, size: int, data: int, libraries: int = 0) -> None:
    """Set the kernel's limits on this process.

    It has ``size`` bytes of addresses as it is, ``data`` of them for what it may write. Addresses
    for ``libraries`` bytes more are for libraries that it has yet to import: its memory, which is
    what it writes, has a limit of its own.
    """
    import resource  # not on Windows

    seconds = math.ceil(limits.cpu)
    bounds = {
        "AS": (size + limits.memory * MB + libraries,) * 2,
        "DATA": (data + limits.memory * MB,) * 2,
        "CPU": (seconds, seconds + CPU_GRACE_SECONDS),
        # Of the user in the jail: the kernel binds nobody who is really root (``unused_outer_id``).
        "NPROC": (limits.threads + limits.processes - 1,) * 2,
        "NOFILE": (limits.files,) * 2,
        "FSIZE": (limits.disk * MB,) * 2,
        "STACK": (STACK_BYTES, STACK_BYTES),
        "MEMLOCK": (2**16, 2**16),
        "SIGPENDING": (128, 128),
        **dict.fromkeys(("CORE", "MSGQUEUE", "NICE", "RTPRIO"), (0, 0)),
    }
    for name, (soft, hard) in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        highest = resource.getrlimit(kind)[1]
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        resource.setrlimit(kind, (soft, hard))


def replace_descriptors(keep: tuple[int, ...]) -> None:
    """Close all descriptors except ``keep``; the standard three become /dev/null."""
    if any(descriptor <= 2 for descriptor in keep):
        raise ValueError(f"keep: expected descriptors above 2, got {keep}")
    kernel.close_all_but(keep)
    for _ in range(3):
        os.open("/dev/null", os.O_RDWR)
