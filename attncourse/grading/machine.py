"""What this machine has for grading: cores, memory and speed."""

import os
import platform
import sys
import time
from functools import cache
from pathlib import Path

from attncourse.grading.errors import UserError

LANE_MB = 700  # what is counted for one lane: it takes some 200, and one that fills its memory more
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
MIB = 2**20
REFERENCE = 0.006  # seconds for the errand below on a machine at the lower end of the usual
SLOWEST = 4.0  # times as long: the limits stretch no further


def is_linux() -> bool:
    """True where there are jails, and what the judge of classes is made of."""
    return sys.platform == "linux"


def system_name() -> str:
    """Return what people call this machine's operating system."""
    return {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, platform.system())


def require_linux() -> None:
    """Raises ``UserError`` where classes cannot be judged: the judge forks, as Linux does."""
    if not is_linux():
        raise UserError(
            f"{system_name()} has no jail and none of what classes are judged with: do this on "
            "Linux, in WSL 2 or in a container. attncourse check runs your own notebook here"
        )


def choose_lanes(jobs: int) -> int:
    """How many submissions to grade at a time: ``jobs``, or with 0 one per core that has room.

    Raises ``UserError`` where there is not enough memory for them.
    """
    available = available_mb()
    room = available // LANE_MB if available is not None else max(jobs, cores())
    wanted = jobs or min(cores(), max(room, 1))
    if wanted > room:
        way_out = f"--jobs {room} fits" if room else "free some, or use another machine"
        raise UserError(
            f"{wanted} lanes need about {wanted * LANE_MB} MB of memory, "
            f"{available} MB are available: {way_out}"
        )
    return wanted


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_mb() -> int | None:
    """The memory that is free, of the machine and within this process's limits; None: unknown."""
    found = [machine_mb(), *cgroup_mb()]
    return min((mb for mb in found if mb is not None), default=None)


def machine_mb() -> int | None:
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
    except OSError:
        return None
    kb = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kb[0] // 1024 if kb else None


def cgroup_mb() -> list[int | None]:
    """What each control group around this process has left, in both versions of the interface."""
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            names, roots = ("memory.max", "memory.current"), (CGROUPS, CGROUPS / "unified")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            roots = (CGROUPS / "memory",)
        else:
            continue
        for root in roots:
            folder = root / path.strip("/")
            around = (f for f in (folder, *folder.parents) if f.is_relative_to(root))
            left += [room(place, *names) for place in around]
    return left


def room(folder: Path, limit: str, usage: str) -> int | None:
    """The MB a control group has left; pages of files that it can drop count as free."""
    try:
        most = int((folder / limit).read_text())  # "max" where there is no limit
        used = int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    cached = int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))
    return max(0, most - used + cached) // MIB


@cache
def slowness() -> float:
    """How many times as long as usual this machine takes for what it does, from 1 on.

    Of a few runs of a small errand the fastest counts, and of that the processor time: other work
    on the machine is no reason for more of it.
    """
    return min(max(1.0, min(errand() for _ in range(4)) / REFERENCE), SLOWEST)


def errand() -> float:
    """The processor time of a fixed small computation: calls, numbers and memory."""
    began = time.process_time()
    table = {str(n): n * n for n in range(15_000)}
    sum(table[str(n)] % 7 for n in range(15_000))
    return time.process_time() - began
