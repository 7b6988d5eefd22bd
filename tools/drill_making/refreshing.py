"""A drill that stands, with wrong names that are fair and an example that tells more."""

from __future__ import annotations

import random
from dataclasses import replace

from attncourse.checks import find_exercise
from attncourse.practice.drills import Drill, DrillExample
from drill_making.examples import example_of, example_place
from drill_making.overlapping import is_fair_name, overlap
from drill_making.proving import as_checked, fewer_draws, implementation_of, limited, named_mistake
from drill_making.wrong_names import WANTED, draws_of, twins_of, wrong_names


def refreshed(drill: Drill, seed: int) -> Drill:
    """Return a drill with its wrong names that are fair, others added, and an example for them.

    The drill itself where the checks do not name it as it says, or have too few names.
    """
    exercise = limited(find_exercise(drill.exercise))
    wrong = implementation_of(drill.function, drill.setup, "\n".join(drill.code))
    with fewer_draws():
        named = named_mistake(exercise, wrong, seed) if wrong else None
    if wrong is None or named is None or named.mistake.name != drill.name:
        return drill
    names = [
        name
        for name in drill.wrong_names
        if is_fair_name(name, drill.right) and not overlap(name, drill.name)
    ]
    if len(names) < WANTED:
        place = example_place(exercise, named.trials)
        if place is None:
            return drill
        draws = {seed: named.trials, **draws_of(exercise, wrong, (seed + 100,))}
        luck = random.Random(f"{seed} {drill.id}")
        names = wrong_names(exercise, named.mistake, draws, place, luck, drill.right, names)
    if len(names) < WANTED:
        return drill
    twins = twins_of(exercise, named.trials, names, seed)
    with as_checked():
        place = example_place(exercise, named.trials, twins, wrong)
    if place is None:
        return drill
    example = DrillExample(**example_of(exercise, named.trials[place]))
    return replace(drill, wrong_names=tuple(names), example=example)
