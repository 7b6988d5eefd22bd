"""In a notebook: an answer that is wrong only because it calls a wrong one."""

import pytest

from attncourse import mixing
from attncourse.checks import CheckFailed, check, exercises
from attncourse.checks.provided import called
from attncourse.checks.session import row_of

ANSWERS = """
import numpy as np

def normalize_rows(A):
    return A / 2

def helper(A):
    return normalize_rows(A)

def causal_mean_weights(n):
    return {call}(np.tril(np.ones((n, n))))

def window_weights(n, width):
    raise ValueError("no")
"""


@pytest.fixture
def seen(monkeypatch) -> dict:
    made: dict = {}
    monkeypatch.setattr("attncourse.checks.seen", made)
    return made


def answers(call: str = "normalize_rows") -> dict:
    names: dict = {}
    exec(ANSWERS.format(call=call), names)
    return names


@pytest.mark.parametrize("call", ["normalize_rows", "helper"])
def test_it_is_right_given_a_right_one(seen, capsys, call):
    names = answers(call)
    own = names["normalize_rows"]
    with pytest.raises(CheckFailed):
        check("mixing.normalize_rows", own)
    capsys.readouterr()
    check("mixing.causal_mean_weights", names["causal_mean_weights"])
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "✓ mixing.causal_mean_weights: 4 of 4 points, given a right normalize_rows"
    assert names["normalize_rows"] is own
    assert not seen["mixing.normalize_rows"].passed
    verdict = seen["mixing.causal_mean_weights"]
    assert verdict.given == ("normalize_rows",)
    row = row_of(exercises()["mixing.causal_mean_weights"], verdict)
    assert (row.state, row.said) == ("done", "given a right normalize_rows")


def test_it_is_wrong_where_nothing_that_it_calls_was_seen_to_be_wrong(seen):
    names = answers()
    with pytest.raises(CheckFailed):
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    check("mixing.normalize_rows", mixing.normalize_rows)
    with pytest.raises(CheckFailed):
        check("mixing.causal_mean_weights", names["causal_mean_weights"])


def test_a_mistake_of_its_own_stays_one(seen):
    names = answers("2 * normalize_rows")
    own = names["normalize_rows"]
    for name in ("normalize_rows", "causal_mean_weights"):
        with pytest.raises(CheckFailed) as failed:
            check(f"mixing.{name}", names[name])
    assert failed.value.verdict.given == ()
    assert names["normalize_rows"] is own


def test_what_is_called_is_read_off_functions_and_classes():
    names = answers("helper")
    exec("class Head:\n    def forward(self):\n        return [helper(x) for x in self]", names)
    assert called(names["Head"], names, set()) >= {"helper", "normalize_rows"}
    assert called(names["Head"], names, {"helper"}) == {"helper"}
    assert called(3, names, set()) == set()
