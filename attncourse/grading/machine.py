"""This machine's resources for grading: cores, memory and speed."""

import _thread
import os
import platform
import secrets
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from attncourse.grading.errors import UserError

LANE_MB = 700  # what is counted for one lane: it takes some 200, and one that fills its memory more
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
MIB = 2**20
REFERENCE_SECONDS = 0.006  # seconds for the errand below on a machine at the lower end of the usual
MAX_SLOWNESS = 4.0  # times as long: the limits stretch no further


def is_linux() -> bool:
    """True on Linux, where there are jails and what the judge of classes is made of."""
    return sys.platform == "linux"


def system_name() -> str:
    """Return what people call this machine's operating system."""
    return {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, platform.system())


def require_linux() -> None:
    """Raise ``UserError`` if this is not Linux: the judge of classes forks, as Linux does."""
    if not is_linux():
        raise UserError(
            f"{system_name()} has no jail and none of what classes are judged with: do this on "
            "Linux, in WSL 2 or in a container. attncourse check runs your own notebook here"
        )


def require_threads() -> None:
    """Raise ``UserError`` if no thread can be started, which every library here needs.

    An old Docker's filter refuses them. Asked before NumPy is imported, which ends by a signal
    there.
    """
    try:
        _thread.start_new_thread(lambda: None, ())
    except RuntimeError:
        raise UserError(
            "no thread can be started here: either a filter refuses the system call clone3 (that "
            "of Docker before 20.10.10: update it, or start the container with --security-opt "
            "seccomp=unconfined), or a limit on processes is reached (ulimit -u, pids.max)"
        ) from None


def choose_lanes(jobs: int) -> int:
    """Return how many submissions to grade at a time: ``jobs``, or with 0 one for each core.

    They are as many as there is memory for; ``UserError`` if there is not enough for ``jobs``.
    """
    available = available_mb()
    room = available // LANE_MB if available is not None else max(jobs, usable_cores())
    lanes = jobs or min(usable_cores(), max(room, 1))
    if lanes > room:
        way_out = f"--jobs {room} fits" if room else "free some, or use another machine"
        raise UserError(
            f"{lanes} lanes need about {lanes * LANE_MB} MB of memory, "
            f"{available} MB are available: {way_out}"
        )
    return lanes


def usable_cores() -> int:
    """Return how many cores this process may use by affinity and control groups, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return min([len(os.sched_getaffinity(0)), *cgroup_cores()])
    return os.cpu_count() or 1


def available_mb() -> int | None:
    """Return the MB of memory that this process may still use; None if nobody says."""
    limits = [machine_mb(), *cgroup_mb()]
    return min((mb for mb in limits if mb is not None), default=None)


def machine_mb() -> int | None:
    """Return the MB of memory that the machine has free; None if it does not say."""
    lines = read_lines(PROC / "meminfo")
    kb = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return kb[0] // 1024 if kb else None


def cgroup_mb() -> list[int | None]:
    """Return the MB that each control group of this process has left (cgroup v2 and v1)."""
    now = [free_megabytes_of_group(place, "memory.max", "memory.current") for place in cgroups("")]
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    return now + [free_megabytes_of_group(place, *names) for place in cgroups("memory")]


def cgroup_cores() -> list[int]:
    """Return the processor time that each control group has, in whole cores, rounded up."""
    quotas = [read_words(place / "cpu.max") for place in cgroups("")]
    for place in cgroups("cpu"):
        quotas.append(
            [*read_words(place / "cpu.cfs_quota_us"), *read_words(place / "cpu.cfs_period_us")]
        )
    counts = []
    for quota in quotas:
        with suppress(ValueError, ZeroDivisionError):
            microseconds, period = map(int, quota)  # "max" where there is no limit
            if microseconds > 0:
                counts.append(max(1, -(-microseconds // period)))
    return counts


def read_words(file: Path) -> list[str]:
    """Return the words in a file; none if it cannot be read."""
    with suppress(OSError):
        return file.read_text().split()
    return []


def cgroups(controller: str) -> list[Path]:
    """Return the folders of this process's control groups; controller "" means version 2."""
    folders = []
    for line in read_lines(PROC / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        roots = [CGROUPS / controller] if controller else [CGROUPS, CGROUPS / "unified"]
        for root in roots:
            folder = root / path.strip("/")
            folders += [f for f in (folder, *folder.parents) if f.is_relative_to(root)]
    return folders


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file; none if it cannot be read."""
    with suppress(OSError):
        return file.read_text().splitlines()
    return []


def free_megabytes_of_group(folder: Path, limit: str, usage: str) -> int | None:
    """Return the MB that a control group has left; None without a limit.

    Pages of files that it can drop count as free.
    """
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
    """Return how many times slower this machine is than the reference, at least 1.

    The fastest of a few runs of a small computation counts, in processor time: other work on the
    machine is no reason for more time.
    """
    return min(
        max(1.0, min(seconds_of_errand() for _ in range(4)) / REFERENCE_SECONDS), MAX_SLOWNESS
    )


def seconds_of_errand() -> float:
    """Return the processor seconds of a fixed small computation: calls, numbers, memory."""
    began = time.process_time()
    table = {str(n): n * n for n in range(15_000)}
    sum(table[str(n)] % 7 for n in range(15_000))
    return time.process_time() - began


# Without these some Pythons do not start, or do not find their own libraries.
NEEDED_TO_START = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


def lane_environment() -> dict[str, str]:
    """Return the environment variables that a lane is started with, no more than it needs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    needed = {name: os.environ[name] for name in NEEDED_TO_START if name in os.environ}
    return needed | {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(cache / "matplotlib"),  # fonts are looked for once, not in each lane
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHDYNAMO_DISABLE": "1",  # torch.compile hands back what it is given
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",  # else it looks through all that is installed
        "PYTHONHASHSEED": str(secrets.randbelow(2**32)),
        # Memory in large pages, where the system has them: a fork then takes half as long.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
