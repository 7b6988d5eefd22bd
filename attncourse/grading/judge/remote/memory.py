"""The memory that a process has written, as the kernel counts it.

No trick with addresses hides that. A limit on data is one on what can be written to now: pages that
were made read-only, and those that are shared, are not of it.
"""

from contextlib import suppress
from pathlib import Path

from attncourse.grading.limits import MB

# MB that are neither data nor a process's doing: stacks, and what a library relocates.
SLACK_MB = 64
WRITTEN_FIELDS = ("RssAnon:", "RssShmem:")


class WrittenMemory:
    """The memory that a process of this machine writes from now on; without a number, none."""

    def __init__(self, pid: int = 0):
        self.pid = pid
        self.before = self.sum_of_fields("VmData:")

    def sum_of_fields(self, *fields: str) -> float:
        """Return the sum, in MB, of these fields of the process's status; 0 if it is unreadable."""
        lines: list[str] = []
        with suppress(OSError):
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines() if self.pid else []
        return sum(int(line.split()[1]) * 1024 / MB for line in lines if line.startswith(fields))

    def is_beyond(self, limit: float) -> bool:
        """True if it holds ``limit`` MB, and some slack, more than it could write at the start."""
        return (
            bool(self.pid) and self.sum_of_fields(*WRITTEN_FIELDS) > self.before + limit + SLACK_MB
        )
