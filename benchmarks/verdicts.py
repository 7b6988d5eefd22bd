"""How long verdicts take, in processor time: of right answers and of wrong ones, and the first.

    python benchmarks/verdicts.py [--each 3] [--changed 2] [--only '*.mix']
                                  [--save FILE] [--against FILE]

judges, for every exercise, in a warm process and with a draw of its own each: the reference, the
right answers of its tests, ``--each`` of its known mistakes and of the other ways to make them (0
takes all), pairs of mistakes, and answers of the tests with ``--changed`` random changes
of their code, which nobody foresaw. Then it asks for the first check in fresh processes.

``--save`` writes what was measured with what each verdict said. ``--against`` an earlier such file
tells which verdicts are other ones.
"""

import argparse
import ast
import fnmatch
import importlib
import inspect
import json
import linecache
import random
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attncourse.checks import exercises
from attncourse.checks.exercise import Exercise, parts_of
from attncourse.checks.explaining.changes import changes
from attncourse.checks.judging import judge

ROOT = Path(__file__).resolve().parents[1]
WORST = 10
BOUNDS = {"right": (0.3, 1.5), "wrong": (1.0, 3.0), "first": (1.0, 1.0)}  # seconds: 95 %, all
PAIRS, CHANGES = 2, 2  # pairs of an exercise's mistakes, and changes of code at a time
FIRST = """
import sys, time
import attncourse
from attncourse.checks import check, find_exercise
{imports}
began = time.process_time()
answer = find_exercise(sys.argv[1]).reference
try:
    check(sys.argv[1], answer if sys.argv[2] == "right" else lambda *args, **kwargs: args[0])
except Exception as told:
    assert type(told).__name__ == "CheckFailed"
print(time.process_time() - began)
"""

Answer = tuple[str, Callable]


@dataclass(frozen=True)
class Judged:
    """One verdict: on what it was, what it took, what it said."""

    target: str
    answer: str
    passed: bool
    seconds: float
    said: str

    @property
    def kind(self) -> str:
        """The kind of answer, by its verdict: right or wrong."""
        return "right" if self.passed else "wrong"

    @property
    def in_short(self) -> str:
        """What a verdict says happened, on one line."""
        return (self.said.splitlines()[1:2] or [""])[0].strip() if not self.passed else "right"


def right(exercise: Exercise) -> Iterator[Answer]:
    """The reference, and what the tests accept."""
    yield "the reference", exercise.reference
    for answer in of_tests(exercise):
        yield getattr(answer, "__name__", "an answer"), answer


def of_tests(exercise: Exercise) -> list[Callable]:
    """Return the right answers that an exercise's tests know."""
    return importlib.import_module(f"test_{exercise.stem}").RIGHT.get(exercise.target, [])


def known(exercise: Exercise, each: int, rng: random.Random) -> Iterator[Answer]:
    """The mistakes of its bank or some of them, and pairs of those that go together."""
    every = [(m.name, w) for m in exercise.mistakes for w in (m.wrong, *m.also)]
    yield from rng.sample(every, min(each, len(every))) if each else every
    parts = [(name, parts_of_wrong) for name, wrong in every if (parts_of_wrong := parts_of(wrong))]
    rng.shuffle(parts)
    pairs = zip(parts[::2], parts[1::2], strict=False)
    fitting = [
        (f"{first} + {second}", a.compose(**a.chosen, **b.chosen))
        for (first, a), (second, b) in pairs
        if a.compose is b.compose and not a.chosen.keys() & b.chosen.keys()
    ]
    yield from fitting[:PAIRS]


def unforeseen(exercise: Exercise, number: int, rng: random.Random) -> Iterator[Answer]:
    """Answers of the tests with one change of their code, or two."""
    named = [f for f in of_tests(exercise) if inspect.isfunction(f) or inspect.isclass(f)]
    functions = [f for f in named if f.__name__.isidentifier() and f.__name__ != "<lambda>"]
    for place in range(number if functions else 0):
        answer = rng.choice(functions)
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


def judged(exercise: Exercise, answers: list[Answer]) -> Iterator[Judged]:
    """What each verdict took. Its draw follows from what it is about: it is the same again."""
    judge(exercise, exercise.reference)  # warm
    for place, (name, answer) in enumerate(answers):
        seed = zlib.crc32(f"{exercise.target} {name} {place}".encode())
        began = time.process_time()
        verdict = judge(exercise, answer, seed)
        seconds = time.process_time() - began
        verdict_text = f"{verdict}\n\n{verdict.full}"
        yield Judged(exercise.target, f"{name} ({place})", verdict.passed, seconds, verdict_text)


def first(target: str, kind: str) -> float:
    """The processor time of a first check in a fresh process that has imported what it needs."""
    imports = "import numpy\n" + "import torch\n" * needs_torch(target)
    command = [sys.executable, "-c", FIRST.format(imports=imports), target, kind]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def needs_torch(target: str) -> bool:
    """True if a target's chapter uses torch."""
    stem = target.partition(".")[0]
    return "torch" in (ROOT / "attncourse" / f"{stem}.py").read_text(encoding="utf-8")


def main() -> None:
    """Print how long verdicts take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=3, help="known mistakes of each; 0 is all")
    parser.add_argument("--only", default="*", help="targets, say 'transformer.*'")
    parser.add_argument("--changed", type=int, default=2, help="answers with changed code of each")
    parser.add_argument("--save", type=Path, help="a file for what was measured")
    parser.add_argument("--against", type=Path, help="a file that was saved before")
    options = parser.parse_args()
    sys.path += [str(ROOT / "tests"), str(ROOT / "tools")]
    rows: list[Judged] = []
    chosen = [e for e in exercises().values() if fnmatch.fnmatch(e.target, options.only)]
    for exercise in chosen:
        rng = random.Random(exercise.target)
        answers = [*right(exercise), *known(exercise, options.each, rng)]
        answers += unforeseen(exercise, options.changed, rng)
        rows += judged(exercise, answers)
        if options.save:
            options.save.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
    opening = list({e.stem: e.target for e in reversed(chosen)}.values())
    firsts = [(first(t, kind), t, kind) for t in reversed(opening) for kind in ("right", "wrong")]
    report(rows, firsts)
    if options.against:
        compare(rows, [Judged(**row) for row in json.loads(options.against.read_text("utf-8"))])


def quantiles(times: list[float]) -> tuple[int, float, float, float]:
    """How many there are, their median, their 95 % and the longest."""
    times = sorted(times)
    return len(times), times[len(times) // 2], times[int(0.95 * len(times))], times[-1]


def line(kind: str, times: list[float]) -> str:
    """Return a row of the table: how many verdicts of a kind, and their times."""
    number, *seconds = quantiles(times) if times else (0, 0.0, 0.0, 0.0)
    return f"{kind:6} {number:8} " + " ".join(f"{s:8.2f}" for s in seconds)


def report(rows: list[Judged], firsts: list[tuple[float, str, str]]) -> None:
    """Prints the table, every exercise, the slowest first, and the longest ten."""
    print(f"{'kind':6} {'verdicts':>8} {'median':>8} {'95 %':>8} {'worst':>8}  wanted: 95 %, worst")
    taken = {kind: [r.seconds for r in rows if r.kind == kind] for kind in ("right", "wrong")}
    taken["first"] = [seconds for seconds, *_ in firsts]
    for kind, times in taken.items():
        print(line(kind, times) + "  {}, {}".format(*BOUNDS[kind]))
    print(f"\nseconds of all: {sum(r.seconds for r in rows):.0f}")
    print("\neach exercise, the slowest first:")
    of = {target: [r for r in rows if r.target == target] for target in {r.target for r in rows}}
    worst = {
        target: max(r.seconds for r in results_of_target)
        for target, results_of_target in of.items()
    }
    for target in sorted(of, key=lambda t: -worst[t]):
        for kind in ("wrong", "right"):
            print(line(kind, [r.seconds for r in of[target] if r.kind == kind]), f" {target}")
    print("\nthe longest:")
    for r in sorted(rows, key=lambda r: -r.seconds)[:WORST]:
        print(f"{r.seconds:6.2f} s  {r.target}: {r.answer} → {r.in_short}")
    for seconds, target, kind in sorted(firsts, reverse=True)[:WORST]:
        print(f"{seconds:6.2f} s  the first check of a process, {kind}: {target}")


def compare(rows: list[Judged], before: list[Judged]) -> None:
    """Prints which verdicts say something else than before, and what all took."""
    known = {(row.target, row.answer): row for row in before}
    both = [
        (row, known[row.target, row.answer]) for row in rows if (row.target, row.answer) in known
    ]
    others = [(now, was) for now, was in both if now.said != was.said]
    took, had = (sum(pair[place].seconds for pair in both) for place in (0, 1))
    print(f"\nbefore {had:.0f} s, now {took:.0f} s; {len(others)} of {len(both)} verdicts differ")
    for now, was in others:
        print(f"  {now.target}: {now.answer}\n    was {was.in_short}\n    now {now.in_short}")


if __name__ == "__main__":
    main()
