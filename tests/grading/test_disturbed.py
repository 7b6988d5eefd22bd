"""Whatever happens to the machine meanwhile, a class has the points that it has on a quiet one."""

import random
from itertools import islice

import pytest

from helpers.disturbances import class_of_twelve, disturbances, graded, nothing, points

PLAIN = {"points_add": 2, "hidden_add": 1, "points_twice": 4}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    course = class_of_twelve(tmp_path_factory.mktemp("quiet") / "course")
    graded(course, nothing, random.Random(0))
    found = points(course)
    assert {test: found["s0-0", test] for test in PLAIN} == PLAIN
    assert len(found) == 36
    return found


@pytest.mark.slow
def test_a_disturbed_class_has_its_points(undisturbed, tmp_path, record_property):
    dice, happened = random.Random(5), []
    for number, disturb in enumerate(islice(disturbances(1, 3, 3), 8)):
        course = class_of_twelve(tmp_path / str(number))
        happened += (found := graded(course, disturb, dice))
        got = points(course)
        wrong = {key: (undisturbed[key], got.get(key)) for key in undisturbed}
        wrong = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
        assert wrong == {}, found
    record_property("summary", f"a class under disturbances: {', '.join(happened)}")
    assert len(happened) >= 5
