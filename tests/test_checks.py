"""The checks against their banks: every misconception is caught, named and told apart."""

import importlib
import re
from functools import partial
from pathlib import Path

import pytest

from attncourse.checks import exercises
from attncourse.checks.drivers import DRIVERS
from attncourse.checks.judging import judge
from attncourse.checks.trials import draw

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (0, 1, 20261121)
ALL = exercises()
WRONG = [(e, m) for e in ALL.values() for m in e.misconceptions]


def right_answers() -> list:
    """(exercise, implementation) for each right alternative in the chapters' test modules."""
    stems = dict.fromkeys(e.stem for e in ALL.values())
    banks = [importlib.import_module(f"test_{stem}").RIGHT for stem in stems]
    return [(ALL[target], f) for bank in banks for target, fs in bank.items() for f in fs]


RIGHT = right_answers()


def name(value) -> str:
    return getattr(value, "target", None) or getattr(value, "name", None) or value.__name__


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", ALL.values(), ids=name)
def test_reference_passes(exercise, seed):
    verdict = judge(exercise, exercise.reference, seed)
    assert verdict.passed, verdict
    assert verdict.earned == verdict.possible == exercise.points


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("exercise", "misconception"), WRONG, ids=name)
def test_misconception_is_caught_and_named(exercise, misconception, seed):
    verdict = judge(exercise, misconception.wrong, seed)
    assert not verdict.passed
    assert verdict.diagnosis is not None, verdict
    assert verdict.diagnosis.name == misconception.name


@pytest.mark.parametrize(("exercise", "implementation"), RIGHT, ids=name)
def test_right_answer_passes(exercise, implementation):
    for seed in SEEDS:
        verdict = judge(exercise, implementation, seed)
        assert verdict.passed, verdict


@pytest.mark.parametrize("exercise", ALL.values(), ids=name)
def test_a_grader_finds_what_its_cases_do_by_name(exercise):
    """They run beside the submission, in a process that gets a name and no code."""
    for _, case, _ in draw(exercise, 0):
        use = case.use.func if isinstance(case.use, partial) else case.use
        assert DRIVERS.get(use.__name__) is use, use


@pytest.mark.parametrize("exercise", ALL.values(), ids=name)
def test_bank_is_large_enough(exercise):
    names = [m.name for m in exercise.misconceptions]
    assert len(set(names)) == len(names) >= 4
    assert len([f for e, f in RIGHT if e is exercise]) >= 4
    assert len(exercise.hints) >= 2


@pytest.mark.parametrize("exercise", ALL.values(), ids=name)
def test_section_is_a_heading_of_the_chapters_page(exercise):
    chapter, heading = re.fullmatch(r"Chapter (\d+), “(.+)”", exercise.section).groups()
    page = ROOT / f"book/{int(chapter):02d}_{exercise.stem}.md"
    assert f"\n## {heading}\n" in page.read_text(encoding="utf-8")


def test_counts(record_property):
    """The power of the checks, in one line that the test run ends with."""
    caught = named = accepted = 0
    for exercise, misconception in WRONG:
        verdict = judge(exercise, misconception.wrong, seed=7)
        caught += not verdict.passed
        named += verdict.diagnosis is not None and verdict.diagnosis.name == misconception.name
    for exercise, implementation in RIGHT:
        accepted += judge(exercise, implementation, seed=7).passed
    record_property(
        "summary",
        f"checks: {caught} caught and {named} named of {len(WRONG)} misconceptions, "
        f"{accepted} accepted of {len(RIGHT)} right answers, {len(ALL)} exercises",
    )
    assert caught == named == len(WRONG)
    assert accepted == len(RIGHT)
