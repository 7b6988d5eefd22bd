"""In a notebook: an answer that is wrong only because it calls a wrong one."""

import pytest

from attncourse import mixing
from attncourse.checks import CheckFailed, check, exercises
from attncourse.checks.showing.chapter_progress import progress_row
from attncourse.checks.substitution import names_called

ANSWERS_SOURCE = """
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
def recorded_verdicts(monkeypatch) -> dict:
    made: dict = {}
    monkeypatch.setattr("attncourse.checks.last_verdicts", made)
    return made


def namespace_of_answers(call: str = "normalize_rows") -> dict:
    names: dict = {}
    exec(ANSWERS_SOURCE.format(call=call), names)
    return names


@pytest.mark.parametrize("call", ["normalize_rows", "helper"])
def test_an_answer_is_right_with_the_course_function(recorded_verdicts, capsys, call):
    names = namespace_of_answers(call)
    own_helper = names["normalize_rows"]
    with pytest.raises(CheckFailed):
        check("mixing.normalize_rows", own_helper)
    capsys.readouterr()
    check("mixing.causal_mean_weights", names["causal_mean_weights"])
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "✓ mixing.causal_mean_weights: 4 of 4 points, given a right normalize_rows"
    assert names["normalize_rows"] is own_helper
    assert not recorded_verdicts["mixing.normalize_rows"].passed
    verdict = recorded_verdicts["mixing.causal_mean_weights"]
    assert verdict.given == ("normalize_rows",)
    row = progress_row(exercises()["mixing.causal_mean_weights"], verdict)
    assert (row.state, row.said) == ("done", "given a right normalize_rows")


@pytest.mark.parametrize(
    ("call", "early"), [("3 * mixing.normalize_rows", True), ("3 * normalize_rows", False)]
)
def test_points_are_shown_early_only_if_final(recorded_verdicts, capsys, call, early):
    names = namespace_of_answers(call)
    names["mixing"] = mixing
    with pytest.raises(CheckFailed) as failed:
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    first = str(failed.value).splitlines()[0]
    assert failed.value.said == (first if early else "")
    assert capsys.readouterr().out == (f"{first}\n" if early else "")


def test_an_unchecked_wrong_function_is_substituted_too(recorded_verdicts):
    check("mixing.causal_mean_weights", namespace_of_answers()["causal_mean_weights"])
    assert list(recorded_verdicts) == ["mixing.causal_mean_weights"]


@pytest.mark.parametrize(
    ("call", "substituted", "symptom"),
    [
        ("3 * normalize_rows", ("normalize_rows",), "the result is the expected one times 3"),
        ("(lambda A: A.T.sum(0, keepdims=True) / normalize_rows(A))", ("normalize_rows",), ""),
        ("3 * mixing.normalize_rows", (), "the result is the expected one times 3"),
    ],
)
def test_each_mistake_is_told_with_the_others_substituted(
    recorded_verdicts, call, substituted, symptom
):
    names = namespace_of_answers(call)
    names["mixing"] = mixing
    own_helper = names["normalize_rows"]
    with pytest.raises(CheckFailed) as failed:
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    verdict = failed.value.verdict
    assert verdict.given == substituted
    assert verdict.symptom.startswith(symptom)
    assert ("examine(" in str(verdict)) == (substituted == ())
    assert ("given a right normalize_rows" in str(verdict)) == (substituted != ())
    assert names["normalize_rows"] is own_helper


def test_substitution_that_changes_nothing_is_not_mentioned(recorded_verdicts):
    names = namespace_of_answers("(lambda A: normalize_rows(A) * float('nan'))")
    with pytest.raises(CheckFailed) as failed:
        check("mixing.causal_mean_weights", names["causal_mean_weights"])
    assert failed.value.verdict.given == ()


def test_functions_called_are_read_from_functions_and_classes():
    names = namespace_of_answers("helper")
    exec("class Head:\n    def forward(self):\n        return [helper(x) for x in self]", names)
    assert names_called(names["Head"], names, set()) >= {"helper", "normalize_rows"}
    assert names_called(names["Head"], names, {"helper"}) == {"helper"}
    assert names_called(3, names, set()) == set()
