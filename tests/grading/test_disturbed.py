"""A class gets the same points, whatever happens to the machine while it is graded."""

import random
from itertools import islice

import pytest

from helpers.disturbances import class_of_twelve, disturbances, graded, nothing, points

EXPECTED_POINTS = {"points_add": 2, "hidden_add": 1, "points_twice": 4}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the points by student and test of a class graded undisturbed."""
    course = class_of_twelve(tmp_path_factory.mktemp("quiet") / "course")
    graded(course, nothing, random.Random(0))
    points_by_cell = points(course)
    assert {test: points_by_cell["s0-0", test] for test in EXPECTED_POINTS} == EXPECTED_POINTS
    assert len(points_by_cell) == 36
    return points_by_cell


@pytest.mark.slow
def test_disturbances_change_no_points(undisturbed, tmp_path, record_property):
    generator, happened = random.Random(5), []
    for number, disturb in enumerate(islice(disturbances(1, 3, 3), 8)):
        course = class_of_twelve(tmp_path / str(number))
        happened += (names := graded(course, disturb, generator))
        points_by_cell = points(course)
        wrong = {key: (undisturbed[key], points_by_cell.get(key)) for key in undisturbed}
        wrong = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
        assert wrong == {}, names
    record_property("summary", f"a class under disturbances: {', '.join(happened)}")
    assert len(happened) >= 5
