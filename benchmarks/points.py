"""What the banks' wrong answers earn on twenty draws, and which of them depend on the draw.

    python benchmarks/points.py [--draws 20] [stem …]

Every way to make every mistake is tried, of a family the first numbers. The table has a line for
each exercise, and below it a line for each answer whose points vary.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from attncourse import STEMS
from attncourse.checks import chapter
from attncourse.checks.exercise import Between, Mistake
from attncourse.checks.judging import points_of_answer


def ways_of(mistake: Mistake) -> Iterator[Callable]:
    """The wrong answers of a mistake."""
    if mistake.wrong is not None:
        yield mistake.wrong
    yield from mistake.also
    if mistake.family is not None:
        values = mistake.family.values
        yield from map(
            mistake.family.make, values if isinstance(values, Between) else islice(values, 3)
        )


def main() -> None:
    """Print what the banks' wrong answers earn on several draws."""
    parser = argparse.ArgumentParser(description="Points of the banks' wrong answers.")
    parser.add_argument("stems", nargs="*", default=STEMS)
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    tried = varied = 0
    for exercise in (e for stem in options.stems for e in chapter(stem)):
        lines = []
        answers = [(m.name, way) for m in exercise.mistakes for way in ways_of(m)]
        for name, way in answers:
            earned = Counter(points_of_answer(exercise, way, draw) for draw in range(options.draws))
            if len(earned) > 1:
                times = ", ".join(f"{p} × {n}" for p, n in sorted(earned.items()))
                lines.append(f"    {name}: {times} of {exercise.points}")
        tried, varied = tried + len(answers), varied + len(lines)
        print(f"{exercise.target}: {len(lines)} of {len(answers)} vary", *lines, sep="\n")
    print(f"{varied} of {tried} wrong answers vary over {options.draws} draws")


if __name__ == "__main__":
    main()
