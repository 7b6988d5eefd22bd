"""A class of twelve graded on a disturbed machine: whether anybody's points depend on that.

python benchmarks/disturbed.py [--runs 30] [--seed 1]

Processes of the grading are stopped for 1 to 12 seconds at random, or one of them is killed, or
the disk is full, another program holds the gradebook, or a worker of a Dask cluster goes. Where
the grading had no end, the next run goes on. It ends after so many runs in a row that gave the
points of an undisturbed run, or with status 1 after the first that did not.
"""

import argparse
import random
import sys
import tempfile
from itertools import islice
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

from helpers.disturbances import class_of_twelve, disturbances, graded, nothing, points  # noqa: E402


def main() -> int:
    """Grade a class again and again while it is disturbed; return 1 if points differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        quiet = class_of_twelve(Path(folder, "quiet"))
        graded(quiet, nothing, dice)
        expected = points(quiet)
        for number, disturb in enumerate(islice(disturbances(1, 12, 2), options.runs), 1):
            course = class_of_twelve(Path(folder, str(number)))
            happened = "; ".join(graded(course, disturb, dice))
            got = points(course)
            wrong = {k: (p, got.get(k)) for k, p in expected.items() if got.get(k) != p}
            print(f"{number:3} {'differs' if wrong else 'equal'}: {happened}", flush=True)
            if wrong:
                print(wrong)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
