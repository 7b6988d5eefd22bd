"""Make and prove the drills: right answers with one line changed, as the checks name them.

    python tools/drills.py kqv --seed 5     adds what is missing to practice/drills/kqv.json
    python tools/drills.py kqv.project      the same of one exercise
    python tools/drills.py --refresh kqv    looks for better examples, and for fairer wrong names
    python tools/drills.py --elsewhere kqv  looks for other lines that mend those there are
    python tools/drills.py --prove          proves all that are kept, on three seeds
    python tools/drills.py --count          how many there are, by chapter and kind

A drill that is still true stays, with its id: lecturers link it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from course import ROOT, load

sys.path.append(str(ROOT / "tests"))  # the other right answers stand in the chapters' tests

from drill_making.candidates import candidates_by_hand, candidates_of
from drill_making.child import Child, ChildEnded
from drill_making.choosing import MIN_DRILLS, DrillChoice, chosen_drills, with_ids
from drill_making.elsewhere import with_other_lines
from drill_making.proving import drill_problem
from drill_making.refreshing import refreshed

from attncourse import STEMS
from attncourse.checks import Exercise, exercises
from attncourse.checks import chapter as exercises_of
from attncourse.practice.drills import Drill, drills_file, drills_of, highest_numbers, kept_entry

DEFAULT_SEED = 5
PROOF_SEEDS = (11, 12, 13)


def main() -> None:
    """Make, prove or count the drills that the command names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="chapters by their stems, exercises; none: all")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--by-hand", action="store_true", help="try no changes by program")
    parser.add_argument("--refresh", action="store_true", help="of drills, too, by their ids")
    parser.add_argument("--elsewhere", action="store_true", help="of drills, too, by their ids")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--count", action="store_true")
    arguments = parser.parse_args()
    takes_ids = arguments.refresh or arguments.elsewhere
    ids = {drill.id for stem in STEMS for drill in drills_of(stem)} if takes_ids else set()
    unknown = [name for name in arguments.names if name not in {*STEMS, *exercises(), *ids}]
    if unknown:
        parser.error(f"no chapter or exercise is called {unknown[0]}; chapters: {', '.join(STEMS)}")
    names = arguments.names or list(STEMS)
    if takes_ids:
        change_drill = refreshed if arguments.refresh else with_other_lines
        change_drills({*names}, change_drill, arguments.seed)
        return
    targets = [target for target in exercises() if {target, target.partition(".")[0]} & {*names}]
    stems = list(dict.fromkeys(target.partition(".")[0] for target in targets))
    if arguments.prove:
        sys.exit(prove_drills(stems, {*targets}))
    if arguments.count:
        print_counts(stems)
        return
    for stem in stems:
        make_drills(stem, {*targets}, arguments.seed, arguments.by_hand)


def make_drills(stem: str, targets: set[str], seed: int, by_hand: bool) -> None:
    """Make the drills that these exercises of a chapter lack; write its file after each."""
    for exercise in exercises_of(stem):
        if exercise.target not in targets:
            continue
        began = time.monotonic()
        chosen = with_missing_drills(exercise, existing_drills(exercise.target), seed, by_hand)
        print_made(exercise.target, chosen, time.monotonic() - began)
        drills_of.cache_clear()  # another process may have written the file meanwhile
        drills = {
            chapter_exercise.target: existing_drills(chapter_exercise.target)
            for chapter_exercise in exercises_of(stem)
        }
        drills[exercise.target] = chosen.drills
        write_drills_file(
            stem, seed, [drill for some_drills in drills.values() for drill in some_drills]
        )


def existing_drills(target: str) -> list[Drill]:
    """Return the drills of an exercise that are kept."""
    return [drill for drill in drills_of(target.partition(".")[0]) if drill.exercise == target]


def with_missing_drills(
    exercise: Exercise, existing: Sequence[Drill], seed: int, by_hand: bool
) -> DrillChoice:
    """Return the drills of an exercise that are still true, with as many new ones as it lacks."""
    still_right = list(drills_still_true(existing, seed))
    if len(still_right) >= MIN_DRILLS:
        return DrillChoice(exercise, seed, still_right)
    chapter = next(c for c in load().chapters if c.stem == exercise.stem)
    chosen = chosen_drills(exercise, candidates_by_hand(chapter, exercise, seed), seed, still_right)
    n_lacking = MIN_DRILLS - len(chosen.drills)
    if n_lacking <= 0 or by_hand:
        return chosen
    names = {drill.name for drill in chosen.drills}
    candidates = candidates_of(chapter, exercise, seed, names, n_lacking)
    return chosen_drills(exercise, candidates, seed, chosen.drills)


def change_drills(names: set[str], change_drill: Callable, seed: int) -> None:
    """Change the drills of these ids, exercises or chapters, and print the changed ones."""
    with Child(change_drill) as child:
        for stem in STEMS:
            changed: dict[str, Drill] = {}
            for drill in drills_of(stem):
                if not {drill.id, drill.exercise, stem} & names:
                    continue
                try:
                    changed_drill = child.ask(drill, seed)
                except ChildEnded:
                    print(f"{drill.id}: it ends the process", flush=True)
                    continue
                if changed_drill != drill:
                    changed[drill.id] = changed_drill
                    print(f"{drill.id} changed", flush=True)
            if changed:
                drills_of.cache_clear()  # another process may have written the file meanwhile
                write_drills_file(
                    stem, seed, [changed.get(drill.id, drill) for drill in drills_of(stem)]
                )


def drills_still_true(drills: Sequence[Drill], seed: int) -> Iterator[Drill]:
    """Yield the drills that the checks still name as they say; print why others go."""
    with Child(drill_problem) as child:
        for drill in drills:
            problem = problem_in_child(child, drill, seed, False)
            if problem:
                print(f"{drill.id} goes: {problem}", flush=True)
            else:
                yield drill


def problem_in_child(child: Child, drill: Drill, seed: int, other_lines: bool) -> str:
    """Return why a drill does not hold, found in a child process; empty where it does."""
    try:
        return child.ask(drill, seed, other_lines)
    except ChildEnded:
        return "it ends the process"


def print_made(target: str, chosen: DrillChoice, seconds: float) -> None:
    """Print a line on what was chosen for an exercise."""
    kinds = len({drill.name for drill in chosen.drills})
    refused = ", ".join(f"{count} {why}" for why, count in chosen.refused.items())
    print(
        f"{target}: {len(chosen.drills)} drills, {kinds} kinds, {chosen.easy} easy, {seconds:.0f} s"
        f" (refused: {refused or 'none'})",
        flush=True,
    )


def write_drills_file(stem: str, seed: int, made: list) -> None:
    """Write a chapter's file of drills; drills with ids keep them.

    With it go the highest numbers that its drills have had, by which no id is given twice.
    """
    file: Path = drills_file(stem)
    setups: list[str] = []
    numbers = highest_numbers(stem)
    entries = [kept_entry(drill, setups) for drill in with_ids(made, numbers)]
    content = {
        "chapter": stem,
        "date": datetime.now(UTC).date().isoformat(),
        "seed": seed,
        "command": f"python tools/drills.py {stem} --seed {seed}",
        "numbers": numbers,
        "setups": setups,
    }
    head = json.dumps(content, ensure_ascii=False, indent=1)[:-2]
    lines = ",\n".join(
        json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries
    )
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{head},\n "drills": [\n{lines}\n]}}\n', encoding="utf-8")
    drills_of.cache_clear()


def prove_drills(stems: list[str], targets: set[str]) -> int:
    """Prove every drill of these exercises on three seeds; return 1 where one fails, else 0."""
    proved, failed = 0, 0
    with Child(drill_problem) as child:
        for stem in stems:
            began = time.monotonic()
            drills = [drill for drill in drills_of(stem) if drill.exercise in targets]
            for drill in drills:
                answers = (
                    problem_in_child(child, drill, seed, seed == PROOF_SEEDS[0])
                    for seed in PROOF_SEEDS
                )
                problems = {why for why in answers if why}
                proved += 1
                if problems:
                    failed += 1
                    print(f"{drill.id}: {'; '.join(sorted(problems))}", flush=True)
            print(f"{stem}: {len(drills)} drills, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{proved} drills on {len(PROOF_SEEDS)} seeds, {failed} fail")
    return int(failed > 0)


def print_counts(stems: list[str]) -> None:
    """Print how many drills there are, by chapter and in all."""
    every = [drill for stem in stems for drill in drills_of(stem)]
    for stem in stems:
        drills = drills_of(stem)
        kinds = len({(d.exercise, d.name) for d in drills})
        print(f"{stem}: {len(drills)} drills, {kinds} kinds, {sum(d.easy for d in drills)} easy")
    kinds = len({(d.exercise, d.name) for d in every})
    print(f"all: {len(every)} drills, {kinds} kinds, {sum(d.easy for d in every)} easy")


if __name__ == "__main__":
    main()
