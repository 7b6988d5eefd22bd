"""Right answers fit together: the published ones, and every other one of the tests in its turn.

An exercise that uses another leans on nothing that the other's text does not ask for.
"""

import importlib
import random
from dataclasses import replace

import pytest

from attncourse import STEMS
from attncourse.checks import exercises
from attncourse.checks.judging import points_of_answer
from attncourse.checks.substitution import names_called, namespace_of
from attncourse.grading.student.package import ChapterParts, definitions_in, write_package
from attncourse.grading.submission.notebook import read_cells
from attncourse.milestones import MILESTONE_NAMES
from attncourse.milestones import find_milestone as milestone
from attncourse.milestones.milestone import try_gates
from attncourse.milestones.parts import Parts, read_parts
from helpers.project import ROOT

EXERCISES = exercises()
NAMES_OF_ALL = {e.name for e in EXERCISES.values()}


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Parts:
    """Return the package of all published answers, as ``attncourse assemble`` writes it."""
    chapters = []
    for number, stem in enumerate(STEMS, 1):
        path = next(ROOT.glob(f"solutions/{number:02}_{stem}/*.ipynb"))
        why = {e.name: "" for e in EXERCISES.values() if e.stem == stem}
        chapters.append(
            ChapterParts(stem, path, definitions_in(read_cells(path.read_bytes())), why)
        )
    folder = tmp_path_factory.mktemp("published") / "mine"
    write_package(folder, chapters)
    return read_parts(folder)


def uses_between_answers(parts: Parts) -> list[tuple[str, str]]:
    """Return pairs (using answer, used answer), read from their code."""
    targets = {id(parts[target]): target for target in EXERCISES}
    pairs = []
    for target in EXERCISES:
        names = namespace_of(parts[target])
        values = {n: names.get(n) for n in names_called(parts[target], names, NAMES_OF_ALL)}
        others = [targets[id(v)] for v in values.values() if id(v) in targets]
        pairs += [(target, used) for used in others if used != target]
    return pairs


def test_published_answers_are_right_with_each_other(published):
    """Those that use no other are tried with the banks."""
    pairs = uses_between_answers(published)
    assert ("llama.LlamaBlock", "kqv.scaled_dot_product_attention") in pairs
    assert len(pairs) > 20
    later = sorted({target for target, _ in pairs})
    wrong = [
        t for t in later if points_of_answer(EXERCISES[t], published[t], 1) != EXERCISES[t].points
    ]
    assert not wrong, f"passes alone, and not with the other published answers: {wrong}"


def test_every_right_answer_serves_the_answers_that_use_it(published, monkeypatch):
    wrong = []
    for target, used in uses_between_answers(published):
        stem, name = used.split(".")
        for answer in importlib.import_module(f"test_{stem}").RIGHT.get(used, ()):
            with monkeypatch.context() as patch:
                for module in published.modules:
                    if vars(module).get(name) is published[used]:
                        patch.setattr(module, name, answer)
                if (
                    points_of_answer(EXERCISES[target], published[target], 2)
                    != EXERCISES[target].points
                ):
                    wrong.append(f"{target} leans on more than is asked of {used}: {answer}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", MILESTONE_NAMES)
def test_milestones_stand_with_the_published_answers(name, published):
    """Before training: all gates on the parts themselves."""
    assert shut_gates(name, published) == {}
    assert {published.owner(target) for target in milestone(name).uses} == {"yours"}


def shut_gates(name: str, parts: Parts) -> dict[str, str]:
    """Return the gates that stay shut before training, with each one's message."""
    made = milestone(name)
    untrained = replace(made, train=lambda parts, show: made.build(parts), trained=())
    return try_gates(untrained, parts, show=False)[0]


@pytest.mark.parametrize("name", MILESTONE_NAMES)
def test_milestones_stand_with_other_right_answers(name):
    """Of each part another right answer, drawn once; a failure names the one that causes it."""
    rng, others = random.Random(name), {}
    for target in milestone(name).uses:
        stem = target.partition(".")[0]
        if answers := importlib.import_module(f"test_{stem}").RIGHT.get(target):
            others[target] = rng.choice(answers)
    assert len(others) > len(milestone(name).uses) / 2
    if shut := shut_gates(name, Parts(others)):
        alone = [t for t in others if shut_gates(name, Parts({t: others[t]}))]
        pytest.fail(f"{shut}; with one other answer alone: {alone or 'none, it takes several'}")
