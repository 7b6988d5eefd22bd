"""In a notebook: an answer that is wrong only because it calls a wrong one."""

import pytest

from attncourse import mixing
from attncourse.checks import CheckFailed, check, exercises
from attncourse.checks.showing.chapter_progress import progress_row
from attncourse.checks.substitution import names_called

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
    monkeypatch.setattr("attncourse.checks.last_verdicts", made)
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
    row = progress_row(exercises()["mixing.causal_mean_weights"], verdict)
    assert (row.state, row.said) == ("done", "given a right normalize_rows")


@pytest.mark.parametrize(
    ("call", "early"), [("3 * mixing.normalize_rows", True), ("3 * normalize_rows", False)]
)
def test_points_are_said_early_only_if_final(seen, capsys, call, early):
    names = answers(call)
    names["mixing"] = mixing
    with pytest.raises(CheckFailed) as failed:
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    first = str(failed.value).splitlines()[0]
    assert failed.value.said == (first if early else "")
    assert capsys.readouterr().out == (f"{first}\n" if early else "")


def test_it_is_right_also_where_what_it_calls_was_not_checked(seen):
    check("mixing.causal_mean_weights", answers()["causal_mean_weights"])
    assert list(seen) == ["mixing.causal_mean_weights"]


@pytest.mark.parametrize(
    ("call", "given", "symptom"),
    [
        ("3 * normalize_rows", ("normalize_rows",), "the result is the expected one times 3"),
        ("(lambda A: A.T.sum(0, keepdims=True) / normalize_rows(A))", ("normalize_rows",), ""),
        ("3 * mixing.normalize_rows", (), "the result is the expected one times 3"),
    ],
)
def test_each_mistake_is_told_as_if_the_others_were_mended(seen, call, given, symptom):
    names = answers(call)
    names["mixing"] = mixing
    own = names["normalize_rows"]
    with pytest.raises(CheckFailed) as failed:
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    verdict = failed.value.verdict
    assert verdict.given == given
    assert verdict.symptom.startswith(symptom)
    assert ("examine(" in str(verdict)) == (given == ())
    assert ("given a right normalize_rows" in str(verdict)) == (given != ())
    assert names["normalize_rows"] is own


def test_where_right_ones_change_nothing_it_stays_as_it_is(seen):
    names = answers("(lambda A: normalize_rows(A) * float('nan'))")
    with pytest.raises(CheckFailed) as failed:
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    assert failed.value.verdict.given == ()


def test_what_is_called_is_read_off_functions_and_classes():
    names = answers("helper")
    exec("class Head:\n    def forward(self):\n        return [helper(x) for x in self]", names)
    assert names_called(names["Head"], names, set()) >= {"helper", "normalize_rows"}
    assert names_called(names["Head"], names, {"helper"}) == {"helper"}
    assert names_called(3, names, set()) == set()
