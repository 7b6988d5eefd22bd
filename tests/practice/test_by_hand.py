"""Wrong lines written by hand stand for lines that there are, and for each once."""

import course as settings
import pytest
from drill_making.by_hand import right_answers_by_hand, wrong_lines_by_hand
from drill_making.line_changes import changes_by_hand
from drill_making.overlapping import OVERLAPPING_NAMES, names_overlap
from drill_making.sources import right_answers

from attncourse import STEMS
from attncourse.checks import exercises, find_exercise
from helpers.project import ROOT

CHAPTERS = {chapter.stem: chapter for chapter in settings.load(ROOT).chapters}
TARGETS = [target for stem in STEMS for target in wrong_lines_by_hand(stem)]


@pytest.mark.parametrize("target", TARGETS)
def test_each_wrong_line_has_its_right_one(target):
    exercise = find_exercise(target)
    pairs = wrong_lines_by_hand(exercise.stem)[target]
    assert len(set(pairs)) == len(pairs)
    answers = right_answers(CHAPTERS[exercise.stem], exercise)
    made = {
        (c.right.strip(), c.wrong.strip())
        for a in answers
        for c in changes_by_hand(a.text, exercise)
    }
    assert set(pairs) == made
    assert all(right != wrong for right, wrong in pairs)


@pytest.mark.parametrize("stem", STEMS)
def test_every_answer_in_steps_can_be_read(stem):
    """It needs nothing of its file that a notebook would not have, and is of a length to read."""
    for target, answers in right_answers_by_hand(stem).items():
        found = right_answers(CHAPTERS[stem], find_exercise(target))
        names = {answer.origin.rpartition(":")[2] for answer in found}
        assert {answer.__name__ for answer in answers} <= names


def test_names_that_overlap_are_names_of_mistakes():
    known = {mistake.name for exercise in exercises().values() for mistake in exercise.mistakes}
    assert {name for names in OVERLAPPING_NAMES for name in names} <= known
    assert names_overlap("no norm", "a norm is missing")
    assert not names_overlap("no norm", "nothing is permuted")
