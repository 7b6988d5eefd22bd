"""Makes and proves the drills: right answers with one line changed, as the checks name them.

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
from drill_making.choosing import WANTED_EACH, DrillChoice, chosen_drills, with_ids
from drill_making.elsewhere import with_other_lines
from drill_making.proving import drill_problem
from drill_making.refreshing import refreshed

from attncourse import STEMS
from attncourse.checks import Exercise, exercises
from attncourse.checks import chapter as exercises_of
from attncourse.practice.drills import Drill, drills_file, drills_of, highest_numbers, kept_entry

SEED = 5
SEEDS = (11, 12, 13)


def main() -> None:
    """Make, prove or count the drills that the command names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="chapters by their stems, exercises; none: all")
    parser.add_argument("--seed", type=int, default=SEED)
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
        one_by_one = refreshed if arguments.refresh else with_other_lines
        change_those_there({*names}, one_by_one, arguments.seed)
        return
    targets = [target for target in exercises() if {target, target.partition(".")[0]} & {*names}]
    stems = list(dict.fromkeys(target.partition(".")[0] for target in targets))
    if arguments.prove:
        sys.exit(prove(stems, {*targets}))
    if arguments.count:
        print_counts(stems)
        return
    for stem in stems:
        make(stem, {*targets}, arguments.seed, arguments.by_hand)


def make(stem: str, targets: set[str], seed: int, by_hand: bool) -> None:
    """Makes the drills that these exercises of a chapter lack, and writes its file after each."""
    for exercise in exercises_of(stem):
        if exercise.target not in targets:
            continue
        began = time.monotonic()
        chosen = with_what_lacks(exercise, of_exercise(exercise.target), seed, by_hand)
        print_made(exercise.target, chosen, time.monotonic() - began)
        drills_of.cache_clear()  # another process may have written the file meanwhile
        drills = {other.target: of_exercise(other.target) for other in exercises_of(stem)}
        drills[exercise.target] = chosen.drills
        write(stem, seed, [drill for some_drills in drills.values() for drill in some_drills])


def of_exercise(target: str) -> list[Drill]:
    """Return the drills of an exercise that are kept."""
    return [drill for drill in drills_of(target.partition(".")[0]) if drill.exercise == target]


def with_what_lacks(
    exercise: Exercise, standing: Sequence[Drill], seed: int, by_hand: bool
) -> DrillChoice:
    """Return the drills of an exercise that are still true, with as many new ones as it lacks."""
    still_right = list(still_true(standing, seed))
    if len(still_right) >= WANTED_EACH:
        return DrillChoice(exercise, seed, still_right)
    chapter = next(c for c in load().chapters if c.stem == exercise.stem)
    chosen = chosen_drills(exercise, candidates_by_hand(chapter, exercise, seed), seed, still_right)
    lacks = WANTED_EACH - len(chosen.drills)
    if lacks <= 0 or by_hand:
        return chosen
    names = {drill.name for drill in chosen.drills}
    candidates = candidates_of(chapter, exercise, seed, names, lacks)
    return chosen_drills(exercise, candidates, seed, chosen.drills)


def change_those_there(names: set[str], one_by_one: Callable, seed: int) -> None:
    """Changes drills, named by their ids, exercises or chapters; prints which are others now."""
    with Child(one_by_one) as child:
        for stem in STEMS:
            changed: dict[str, Drill] = {}
            for drill in drills_of(stem):
                if not {drill.id, drill.exercise, stem} & names:
                    continue
                try:
                    new = child.ask(drill, seed)
                except ChildEnded:
                    print(f"{drill.id}: it ends the process", flush=True)
                    continue
                if new != drill:
                    changed[drill.id] = new
                    print(f"{drill.id} changed", flush=True)
            if changed:
                drills_of.cache_clear()  # another process may have written the file meanwhile
                write(stem, seed, [changed.get(drill.id, drill) for drill in drills_of(stem)])


def still_true(drills: Sequence[Drill], seed: int) -> Iterator[Drill]:
    """The drills that the checks still name as they say; of the others it prints why not."""
    with Child(drill_problem) as child:
        for drill in drills:
            problem = problem_of(child, drill, seed, False)
            if problem:
                print(f"{drill.id} goes: {problem}", flush=True)
            else:
                yield drill


def problem_of(child: Child, drill: Drill, seed: int, other_lines: bool) -> str:
    """Return why a drill does not hold, asked in a child process; empty where it does."""
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


def write(stem: str, seed: int, made: list) -> None:
    """Writes a chapter's file; drills that were there already keep their ids.

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


def prove(stems: list[str], targets: set[str]) -> int:
    """Proves every drill of these exercises on three seeds; 1 where one fails."""
    proved, failed = 0, 0
    with Child(drill_problem) as child:
        for stem in stems:
            began = time.monotonic()
            drills = [drill for drill in drills_of(stem) if drill.exercise in targets]
            for drill in drills:
                said = (problem_of(child, drill, seed, seed == SEEDS[0]) for seed in SEEDS)
                problems = {why for why in said if why}
                proved += 1
                if problems:
                    failed += 1
                    print(f"{drill.id}: {'; '.join(sorted(problems))}", flush=True)
            print(f"{stem}: {len(drills)} drills, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{proved} drills on {len(SEEDS)} seeds, {failed} fail")
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
