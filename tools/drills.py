"""Makes and proves the drills: right answers with one line changed, as the checks name them.

    python tools/drills.py kqv --seed 5     makes attncourse/practice/drills/kqv.json anew
    python tools/drills.py --prove          proves all that are kept, on three seeds
    python tools/drills.py --count          how many there are, by chapter and kind

A drill keeps its id as long as its code stays the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from course import ROOT, load

sys.path.append(str(ROOT / "tests"))  # the other right answers stand in the chapters' tests

from drill_making.candidates import candidates_of
from drill_making.choosing import chosen_drills, with_ids
from drill_making.proving import drill_problem

from attncourse import STEMS
from attncourse.checks import chapter as exercises_of
from attncourse.practice.drills import drills_file, drills_of, kept_entry

SEED = 5
SEEDS = (11, 12, 13)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stems", nargs="*", help="chapters, by their stems; none: all")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--count", action="store_true")
    given = parser.parse_args()
    unknown = [stem for stem in given.stems if stem not in STEMS]
    if unknown:
        parser.error(f"no chapter is called {unknown[0]}; there are {', '.join(STEMS)}")
    stems = given.stems or list(STEMS)
    if given.prove:
        sys.exit(prove(stems))
    if given.count:
        print_counts(stems)
        return
    for stem in stems:
        make(stem, given.seed)


def make(stem: str, seed: int) -> None:
    """Makes a chapter's drills and writes their file."""
    chapter = next(c for c in load().chapters if c.stem == stem)
    made = []
    for exercise in exercises_of(stem):
        began = time.process_time()
        chosen = chosen_drills(exercise, candidates_of(chapter, exercise, seed), seed)
        made += chosen.drills
        print_made(exercise.target, chosen, time.process_time() - began)
    write(stem, seed, made)


def print_made(target: str, chosen, seconds: float) -> None:
    kinds = len({drill.name for drill in chosen.drills})
    refused = ", ".join(f"{count} {why}" for why, count in chosen.refused.items())
    print(
        f"{target}: {len(chosen.drills)} drills, {kinds} kinds, {chosen.easy} easy, {seconds:.0f} s"
        f" (refused: {refused or 'none'})",
        flush=True,
    )


def write(stem: str, seed: int, made: list) -> None:
    """Writes a chapter's file; drills that were there already keep their ids."""
    file: Path = drills_file(stem)
    setups: list[str] = []
    entries = [kept_entry(drill, setups) for drill in with_ids(made, list(drills_of(stem)))]
    kept = {
        "chapter": stem,
        "date": datetime.now(UTC).date().isoformat(),
        "seed": seed,
        "command": f"python tools/drills.py {stem} --seed {seed}",
        "setups": setups,
    }
    head = json.dumps(kept, ensure_ascii=False, indent=1)[:-2]
    lines = ",\n".join(
        json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries
    )
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{head},\n "drills": [\n{lines}\n]}}\n', encoding="utf-8")
    drills_of.cache_clear()


def prove(stems: list[str]) -> int:
    """Proves every drill of these chapters on three seeds; 1 where one fails."""
    proved, failed = 0, 0
    for stem in stems:
        began = time.process_time()
        for drill in drills_of(stem):
            said = (drill_problem(drill, seed, seed == SEEDS[0]) for seed in SEEDS)
            problems = {why for why in said if why}
            proved += 1
            if problems:
                failed += 1
                print(f"{drill.id}: {'; '.join(sorted(problems))}", flush=True)
        print(
            f"{stem}: {len(drills_of(stem))} drills, {time.process_time() - began:.0f} s",
            flush=True,
        )
    print(f"{proved} drills on {len(SEEDS)} seeds, {failed} fail")
    return int(failed > 0)


def print_counts(stems: list[str]) -> None:
    every = [drill for stem in stems for drill in drills_of(stem)]
    for stem in stems:
        own = drills_of(stem)
        kinds = len({(d.exercise, d.name) for d in own})
        print(f"{stem}: {len(own)} drills, {kinds} kinds, {sum(d.easy for d in own)} easy")
    kinds = len({(d.exercise, d.name) for d in every})
    print(f"all: {len(every)} drills, {kinds} kinds, {sum(d.easy for d in every)} easy")


if __name__ == "__main__":
    main()
