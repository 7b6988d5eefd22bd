"""What verdicts say of the wrong answers in a folder, and how long they take.

    python tools/wrong_answers.py FOLDER [--only 'kqv_*'] [--odd | --even]
                                   [--quick] [--save FILE] [--against FILE] [--full]

A file ``<stem>_<function>_<number>.py`` holds one wrong answer; its first comment says in words
what is wrong. One whose name begins with ``right_`` is right. It may use what a notebook of its
chapter imports and defines, and the chapter's own functions. Each is judged on two seeds. Where the
first verdict names a mistake, three further seeds are asked whether they name it, too. ``--save``
writes what came, and ``--against`` an earlier such file prints the table of both and the verdicts
that differ. ``--full`` prints every verdict.
"""

import argparse
import ast
import fnmatch
import importlib
import json
import linecache
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from attncourse import STEMS
from attncourse.checks import Verdict, find_exercise
from attncourse.checks.exercise import Exercise
from attncourse.checks.explaining import changes, repairs
from attncourse.checks.judging import judge

ROOT = Path(__file__).resolve().parents[1]
JUDGING_SEEDS = (11, 12)
RIGHT_PREFIX = "right_"
OTHER_SEEDS = (1001, 1002, 1003)  # on which a name has to come again
PLACED_NAMES = {
    text
    for name, text in [*vars(changes).items(), *vars(repairs).items()]
    if name.isupper() and isinstance(text, str)
}
VERDICT_KINDS = ("passed", "named", "placed", "symptom", "no words")


@dataclass(frozen=True)
class SeedResult:
    """One answer's verdict on one seed: its kind, what it said, and the processor time."""

    answer: str
    seed: int
    wrong: str
    kind: str
    words: str
    names: tuple[str, ...]  # the mistake that was named, and what is told beside it
    seconds: float
    further: tuple[str, ...] = ()  # what further seeds named, where a mistake was named


def answered_exercise(file: Path) -> Exercise:
    """Return the exercise that a file's name says it answers."""
    name = file.stem.removeprefix(RIGHT_PREFIX)
    stem = answered_chapter(name)
    return find_exercise(f"{stem}.{name[len(stem) + 1 :].rpartition('_')[0]}")


def answered_chapter(name: str) -> str:
    """Return the chapter of an answer, whose name begins with it."""
    return next(s for s in sorted(STEMS, key=len, reverse=True) if name.startswith(f"{s}_"))


@cache
def names_in_notebook(stem: str) -> dict[str, Any]:
    """Return what an answer finds in its notebook: imports, what is given, the chapter's functions.

    Of the published answers' cells only imports and definitions run.
    """
    module = vars(importlib.import_module(f"attncourse.{stem}"))
    names = {name: value for name, value in module.items() if not name.startswith("__")}
    (file,) = (ROOT / "solutions").glob(f"*_{stem}/*_{stem}.py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if is_import or (is_definition and node.name not in names):
            exec(compile(ast.Module([node], []), str(file), "exec"), names)
    return names


def answer_in(file: Path, exercise: Exercise) -> Callable:
    """Return the answer to an exercise that a file defines."""
    source = file.read_text(encoding="utf-8")
    linecache.cache[str(file)] = (len(source), None, source.splitlines(keepends=True), str(file))
    names: dict[str, Any] = {**names_in_notebook(exercise.stem), "__name__": "answer"}
    exec(compile(source, str(file), "exec"), names)
    return names[exercise.name]


def verdict_kind(verdict: Verdict, exercise: Exercise) -> str:
    """Return which of ``VERDICT_KINDS`` a verdict is."""
    if verdict.passed:
        return "passed"
    if verdict.diagnosis:
        known = {mistake.name for mistake in exercise.mistakes}
        return "placed" if verdict.diagnosis.name in PLACED_NAMES - known else "named"
    return "symptom" if verdict.symptom else "no words"


def told_by(verdict: Verdict) -> str:
    """Return a verdict's name and explanation, or its symptom, in one line."""
    if not verdict.diagnosis:
        return verdict.symptom
    rest = f" (+ {verdict.rest})" if verdict.rest else ""
    return f"{verdict.diagnosis.name}{rest}: {verdict.diagnosis.explanation}"


def results_of(file: Path, quick: bool) -> list[SeedResult]:
    """Return what the verdicts on one answer are, one for each seed; if ``quick``, on one seed."""
    exercise = answered_exercise(file)
    answer = answer_in(file, exercise)
    wrong = next((s for s in file.read_text("utf-8").splitlines() if s.startswith("#")), "")
    results = []
    seeds = JUDGING_SEEDS[:1] if quick else JUDGING_SEEDS
    for seed in seeds:
        began = time.process_time()
        verdict = judge(exercise, answer, seed)
        seconds = time.process_time() - began
        kind, names_on_other_seeds = verdict_kind(verdict, exercise), ()
        if kind == "named" and seed == JUDGING_SEEDS[0] and not quick:
            again = [judge(exercise, answer, other_seed).diagnosis for other_seed in OTHER_SEEDS]
            names_on_other_seeds = tuple(mistake.name if mistake else "" for mistake in again)
        verdict_text = told_by(verdict)
        names = (verdict.diagnosis.name, verdict.rest) if verdict.diagnosis else ()
        results.append(
            SeedResult(
                file.stem,
                seed,
                wrong.lstrip("# "),
                kind,
                verdict_text,
                names,
                seconds,
                names_on_other_seeds,
            )
        )
    return results


def is_refuted(result: SeedResult) -> bool:
    """True if a further seed does not name the mistake that was named, nor the one beside it."""
    return any(other not in result.names for other in result.further)


def print_table(results: list[SeedResult]) -> None:
    """Print how many verdicts are of each kind, by chapter and in all, and their times."""
    print(
        f"{'':18}"
        + "".join(f"{kind:>10}" for kind in VERDICT_KINDS)
        + "   named or placed, with words"
    )
    rows = [(s, [r for r in results if answered_chapter(r.answer) == s]) for s in STEMS]
    for title, rows_of_title in [*rows, ("all", results)]:
        if not rows_of_title:
            continue
        counts = Counter(r.kind for r in rows_of_title)
        explained = counts["named"] + counts["placed"]
        n_rows = len(rows_of_title)
        shares = f"{explained / n_rows:9.1%} {(explained + counts['symptom']) / n_rows:9.1%}"
        print(f"{title:18}" + "".join(f"{counts[kind]:10}" for kind in VERDICT_KINDS) + shares)
    seconds = sorted(r.seconds for r in results)
    middle, late = seconds[len(seconds) // 2], seconds[int(0.95 * len(seconds))]
    print(f"seconds: median {middle:.2f}, 95 % {late:.2f}, longest {seconds[-1]:.2f}")
    refuted = [r for r in results if is_refuted(r)]
    print(f"names that a further seed does not give: {len(refuted)}")
    for r in refuted:
        print(f"    {r.answer}, seed {r.seed}: {r.names[0]} / {' / '.join(r.further)}")


def print_changed(results: list[SeedResult], before: list[SeedResult]) -> None:
    """Print the earlier table and what is told otherwise now."""
    was = {(r.answer, r.seed): r for r in before}
    both = [(r, was[r.answer, r.seed]) for r in results if (r.answer, r.seed) in was]
    print("\nbefore, the same answers:")
    print_table([old for _, old in both])
    for new, old in both:
        if new.words != old.words or new.kind != old.kind:
            print(f"{new.answer}, seed {new.seed}: {new.wrong}")
            print(f"    was {old.kind}: {old.words}\n    now {new.kind}: {new.words}")


def main() -> None:
    """Judge a folder of wrong answers and print what is said of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="answers, say 'kqv_*'")
    half = parser.add_mutually_exclusive_group()
    half.add_argument("--odd", action="store_true", help="those with an odd number alone")
    half.add_argument("--even", action="store_true", help="those with an even number alone")
    parser.add_argument("--save", type=Path, help="a file for what came")
    parser.add_argument("--against", type=Path, help="a file that was saved before")
    parser.add_argument("--quick", action="store_true", help="one seed, names are not tried again")
    parser.add_argument("--full", action="store_true", help="print every verdict")
    options = parser.parse_args()
    results: list[SeedResult] = []
    right: list[SeedResult] = []
    for file in sorted(options.folder.glob("*.py")):
        number = int(file.stem.rpartition("_")[2])
        if not fnmatch.fnmatch(file.stem, options.only) or file.stem.startswith("_"):
            continue
        if (options.odd and number % 2 == 0) or (options.even and number % 2 == 1):
            continue
        is_right = file.name.startswith(RIGHT_PREFIX)
        file_results = results_of(file, options.quick)
        (right if is_right else results).extend(file_results)
        for r in file_results:
            if options.full or (r.kind != "passed" if is_right else r.kind in VERDICT_KINDS[::4]):
                head = f"{r.answer}, seed {r.seed}, {r.seconds:.2f} s: {r.wrong}"
                print(f"{head}\n    {r.kind}: {r.words}", flush=True)
    if not results:
        parser.error(f"no answers in {options.folder}")
    print_table(results)
    if right:
        print(
            f"right answers that passed: {sum(r.kind == 'passed' for r in right)} of {len(right)}"
        )
    if options.save:
        options.save.write_text(json.dumps([asdict(r) for r in results]), encoding="utf-8")
    if options.against:
        earlier = json.loads(options.against.read_text(encoding="utf-8"))
        print_changed(results, [SeedResult(**r) for r in earlier])


if __name__ == "__main__":
    main()
