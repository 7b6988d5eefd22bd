"""A drill that stands, with wrong names that are fair and an example that tells them apart."""

from __future__ import annotations

import random
from dataclasses import replace

from attncourse.checks import find_exercise
from attncourse.practice.drills import Drill
from drill_making.example_choice import NamedCode, example_case, names_and_example
from drill_making.examples import example_problem
from drill_making.overlapping import is_fair_name, names_overlap
from drill_making.proving import fewer_draws, implementation_of, limited, named_mistake
from drill_making.wrong_names import N_WRONG_NAMES


def refreshed(drill: Drill, seed: int) -> Drill:
    """Return a drill with its wrong names that are fair, others added, and an example for them.

    The drill itself where its names are fair and its example can be followed and refutes them all,
    where the checks do not name it as it says, or have too few names.
    """
    exercise = limited(find_exercise(drill.exercise))
    wrong = implementation_of(drill.function, drill.setup, "\n".join(drill.code))
    right = implementation_of(drill.function, drill.setup, "\n".join(drill.right))
    if wrong is None or right is None:
        return drill
    fair_names = [
        name
        for name in drill.wrong_names
        if is_fair_name(name, drill.right) and not names_overlap(name, drill.name)
    ]
    if len(fair_names) == N_WRONG_NAMES and is_clear(drill, seed):
        return drill
    with fewer_draws():
        named = named_mistake(exercise, wrong, seed)
    if named is None or named.mistake.name != drill.name:
        return drill
    code = NamedCode(exercise, named, wrong, right, drill.right, seed)
    names_and_case = names_and_example(code, random.Random(f"{seed} {drill.id}"), fair_names)
    if names_and_case is None:
        return drill
    names, case = names_and_case
    return replace(drill, wrong_names=tuple(names), example=case.example)


def is_clear(drill: Drill, seed: int) -> bool:
    """True if a drill's example can be followed, and no wrong name gives its result."""
    if example_problem(drill.example):
        return False
    example = example_case(drill, seed)
    return example is not None and not example.twins(drill.wrong_names)
