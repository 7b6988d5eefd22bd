"""How long verdicts take, in processor time of a warm process: of right answers and of wrong ones.

``python benchmarks/verdicts.py [--only '*.mix'] [--each 4] [--changed 8]`` judges, for every
exercise, the right answers of its tests, its reference and ``--each`` of its known mistakes, pairs
of them, and answers of the tests with ``--changed`` random changes of their code, which nobody
foresaw. Every answer has a draw of its own.
"""

import argparse
import ast
import fnmatch
import importlib
import inspect
import linecache
import random
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attncourse.checks import exercises
from attncourse.checks.exercise import Exercise, parts_of
from attncourse.checks.explaining.changes import changes
from attncourse.checks.judging import judge
from attncourse.checks.showing.verdict import Verdict

ROOT = Path(__file__).resolve().parents[1]
WORST = 10
BOUNDS = {"right": (0.3, 1.5), "wrong": (1.0, 3.0)}  # seconds: of 95 %, and of all
PAIRS, CHANGES = 2, 2  # pairs of an exercise's mistakes, and changes of code at a time

Answer = tuple[str, Callable]


def right(exercise: Exercise) -> Iterator[Answer]:
    """The reference, and what the tests accept."""
    yield "the reference", exercise.reference
    for answer in of_tests(exercise):
        yield getattr(answer, "__name__", "an answer"), answer


def of_tests(exercise: Exercise) -> list[Callable]:
    sys.path.insert(0, str(ROOT / "tests"))
    return importlib.import_module(f"test_{exercise.stem}").RIGHT.get(exercise.target, [])


def known(exercise: Exercise, each: int, rng: random.Random) -> Iterator[Answer]:
    """Some of the mistakes of its bank, and pairs of those that go together."""
    every = [(m.name, w) for m in exercise.mistakes for w in (m.wrong, *m.also)]
    chosen = rng.sample(every, min(each, len(every)) if each else len(every))
    yield from chosen
    parts = [(name, found) for name, wrong in every if (found := parts_of(wrong))]
    rng.shuffle(parts)
    pairs = zip(parts[::2], parts[1::2], strict=False)
    fitting = [
        (f"{one} + {two}", a.compose(**a.chosen, **b.chosen))
        for (one, a), (two, b) in pairs
        if a.compose is b.compose and not a.chosen.keys() & b.chosen.keys()
    ]
    yield from fitting[:PAIRS]


def unforeseen(exercise: Exercise, number: int, rng: random.Random) -> Iterator[Answer]:
    """Answers of the tests with one change of their code, or two."""
    named = [f for f in of_tests(exercise) if inspect.isfunction(f) or inspect.isclass(f)]
    there = [f for f in named if f.__name__.isidentifier() and f.__name__ != "<lambda>"]
    for place in range(number if there else 0):
        answer = rng.choice(there)
        source = textwrap.dedent(inspect.getsource(answer))
        for _ in range(1 + place % CHANGES):
            tree = ast.parse(source)
            change = rng.choice(list(changes(tree.body[0])) or [None])
            if change is None:
                break
            change.apply()
            source = ast.unparse(ast.fix_missing_locations(tree))
        if made := defined(source, answer, f"<{exercise.target} {place}>"):
            yield f"{answer.__name__} with other code ({place})", made


def defined(source: str, answer: Any, file: str) -> Callable | None:
    """The answer that the source defines, in a file that can be read like a notebook's cell."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = dict(vars(inspect.getmodule(answer)))
    try:
        exec(compile(source, file, "exec"), names)
    except Exception:  # a change may leave no Python
        return None
    return names[answer.__name__]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="targets, say 'transformer.*'")
    parser.add_argument("--each", type=int, default=0, help="known mistakes of each; 0 is all")
    parser.add_argument("--changed", type=int, default=4, help="answers with changed code of each")
    options = parser.parse_args()
    rng = random.Random(0)
    rows: list[tuple[float, str, str, Verdict]] = []
    for exercise in exercises().values():
        if not fnmatch.fnmatch(exercise.target, options.only):
            continue
        judge(exercise, exercise.reference)  # warm
        answers = [*right(exercise), *known(exercise, options.each, rng)]
        for name, answer in [*answers, *unforeseen(exercise, options.changed, rng)]:
            began = time.process_time()
            verdict = judge(exercise, answer)
            seconds = time.process_time() - began
            rows.append((seconds, exercise.target, name, verdict))
    report(rows)


def of(rows: list[tuple[float, str, str, Verdict]], target: str, passed: bool) -> tuple:
    """Number of an exercise's verdicts, and their median, 95 % and longest."""
    times = sorted(s for s, t, _, v in rows if fnmatch.fnmatch(t, target) and v.passed == passed)
    if not times:
        return 0, 0.0, 0.0, 0.0
    return len(times), times[len(times) // 2], times[int(0.95 * len(times))], times[-1]


def report(rows: list[tuple[float, str, str, Verdict]]) -> None:
    """Prints the table, and the worst ten."""
    print(f"{'processor time':16} {'answers':>8} {'median':>8} {'95 %':>8} {'worst':>8}  bounds")
    for kind, (most, all_) in BOUNDS.items():
        number, *seconds = of(rows, "*", kind == "right")
        told = " ".join(f"{s:8.2f}" for s in seconds)
        print(f"{kind:16} {number:8} {told}  {most}, {all_}")
    print("\nthe slowest exercises:")
    slowest = sorted({target for _, target, _, _ in rows}, key=lambda t: -of(rows, t, False)[1])
    for target in slowest[:WORST]:
        for kind in BOUNDS:
            number, *seconds = of(rows, target, kind == "right")
            print(f"{kind:6} {number:4} " + " ".join(f"{s:6.2f}" for s in seconds) + f"  {target}")
    print("\nthe longest:")
    for seconds, target, name, verdict in sorted(rows, key=lambda row: -row[0])[:WORST]:
        said = "right" if verdict.passed else verdict.in_short
        print(f"{seconds:6.2f} s  {target}: {name} → {said}")


if __name__ == "__main__":
    main()
