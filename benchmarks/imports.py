"""How long imports and checks take, each against a baseline timed in the same run.

python benchmarks/imports.py
"""

import statistics
import subprocess
import sys
import time

from attncourse.checks import exercises
from attncourse.checks.judging import judge

RUNS = 9


def start(statement: str) -> float:
    """Seconds that a fresh interpreter takes to run ``statement``."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - began


def main() -> None:
    """Print the milliseconds that imports take beyond a bare Python."""
    statements = ("import attncourse", "import attncourse.mixing", "import attncourse.kqv")
    times = {s: [] for s in ("pass", *statements)}
    for _ in range(RUNS):  # in turn, so that a slow moment of the machine hits all of them
        for statement, seconds in times.items():
            seconds.append(start(statement))
    bare = statistics.median(times["pass"])
    print(f"{'median of ' + str(RUNS):32} {'ms':>7} {'beyond bare Python':>19} {'× bare':>7}")
    for statement, seconds in times.items():
        median = statistics.median(seconds)
        beyond = 1e3 * (median - bare)
        print(f"{statement:32} {1e3 * median:7.0f} {beyond:19.1f} {median / bare:7.1f}")

    print(f"\n{'one check of the reference':32} {'ms':>7}")
    for target, exercise in exercises().items():
        seconds = []
        for seed in range(RUNS):
            began = time.perf_counter()
            judge(exercise, exercise.reference, seed)
            seconds.append(time.perf_counter() - began)
        print(f"{target:32} {1e3 * statistics.median(seconds):7.1f}")


if __name__ == "__main__":
    main()
