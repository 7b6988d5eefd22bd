"""Examples of drills: they can be followed, and work against every wrong name."""

import re
from dataclasses import replace

import pytest
from drill_making.example_choice import best_example, example_case, possible_examples
from drill_making.examples import (
    LONGEST_CALL,
    UNSHOWN,
    arguments_as_typed,
    example_of,
    example_problem,
    number_shown,
)
from drill_making.proving import implementation_of
from drill_making.refreshing import refreshed
from drill_making.small_cases import small_cases_of, with_small_cases
from drill_making.small_cases.gpt import N_DRAWS
from drill_making.wrong_names import WANTED, wrong_names

from attncourse import STEMS
from attncourse.checks import exercises
from attncourse.checks.trying.trials import try_out
from attncourse.practice.drills import DrillExample, drills_of

EVERY = [drill for stem in STEMS for drill in drills_of(stem)]
MADE_WITH = 5  # the seed of ``tools/drills.py``
GOOD = DrillExample("f(x, n=2)", "two tokens", [{"name": "x", "value": [[1, 0]]}], [1], [2])


@pytest.mark.parametrize("stem", STEMS)
def test_every_example_can_be_followed(stem):
    said = {drill.id: example_problem(drill.example) for drill in drills_of(stem)}
    assert {name: why for name, why in said.items() if why} == {}


@pytest.mark.parametrize("stem", STEMS)
def test_no_wrong_name_gives_an_example_s_result(stem):
    """The case is found again, and the mistake of each wrong name makes something else of it."""
    for drill in drills_of(stem):
        case = example_case(drill, MADE_WITH)
        assert case is not None, f"{drill.id}: no case is its example"
        assert case.twins(drill.wrong_names) == [], drill.id
        assert case.twins([drill.name]) in ([drill.name], []), drill.id


def test_a_name_that_gives_the_result_is_told():
    drill = next(d for d in EVERY if d.id == "mixing-is_row_stochastic-4")
    case = example_case(drill, MADE_WITH)
    assert case.twins([drill.name, *drill.wrong_names]) == [drill.name]


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        ({"got": {"text": "at [2, 1] returned 0.5, expected 1"}}, "its result is told, not shown"),
        ({"want": {"shape": [7, 5]}}, "an array is shown by its shape alone"),
        ({"inputs": [{"name": "x", "value": {"shape": [9, 9]}}]}, "by its shape alone"),
        ({"got": {"parts": [{"name": "the copy", "value": {"shape": [9]}}]}}, "its shape alone"),
        ({"inputs": [{"name": "x", "value": [[0.5] * 30]}]}, ""),
        ({"inputs": [{"name": "x", "value": [[0.5] * 30, [2] * 30]}]}, ""),
        ({"inputs": [{"name": n, "value": [[0.5] * 30]} for n in "qk"]}, "so many numbers"),
        ({"note": f"one head; {UNSHOWN}"}, "its weights are not shown"),
        ({"note": "how often each came, in sixths"}, "need not sum to the whole"),
        ({"got": [0.30001], "want": [0.300011]}, ""),
        ({"got": [8.31e-7], "want": [8.32e-7]}, "both its results read the same"),
        ({"call": f"f({'x, ' * LONGEST_CALL})"}, "its call is too long"),
        ({"call": "f(n=2, x)"}, "its call is no Python"),
        ({"call": "f(x) of 12"}, ""),
        ({"call": "the mean of f(d_k, 128) over 32 seeds"}, ""),
        ({}, ""),
    ],
)
def test_an_example_that_nobody_can_follow_is_told(spoiled, said):
    assert said in (problem := example_problem(replace(GOOD, **spoiled)))
    assert bool(problem) == bool(said)


def test_arguments_behind_a_named_one_are_named():
    import numpy as np

    x = np.zeros(2)
    assert arguments_as_typed([("x", x), ("n", 2), ("mask", x)]) == ["x", "n=2", "mask=mask"]
    assert arguments_as_typed([("x", x), ("mask", x)]) == ["x", "mask"]


def test_a_whole_number_is_shown_whole():
    assert number_shown(516780, 4) == 516780
    assert number_shown(516780.4, 4) == 516800


def test_counts_of_draws_are_counts():
    drawn = [d for d in drills_of("gpt") if "how often each token came" in d.example.note]
    assert len(drawn) > 5
    for drill in drawn:
        assert f"in {N_DRAWS} draws" in drill.example.note
        assert sum(drill.example.got) == sum(drill.example.want) == N_DRAWS


@pytest.mark.parametrize("stem", [stem for stem in STEMS if small_cases_of(stem)])
def test_small_cases_are_right_and_can_be_followed(stem):
    for target in small_cases_of(stem):
        exercise = exercises()[target]
        small = with_small_cases(exercise, exercise.reference)
        for trial in try_out(small, exercise.reference, MADE_WITH):
            assert not trial.stands_out, (target, trial.said)
            assert trial.outcome.kind == ("raised" if trial.case.raises else "value")
            assert not example_problem(DrillExample(**example_of(small, trial))), trial.case.shown


def test_what_a_small_case_s_note_says_is_not_shown_again():
    """Of a block with plain weights the note says which; of others they are all there."""
    block = example_case_of("transformer-EncoderBlock-10").example
    assert [one["name"] for one in block.inputs] == ["x"]
    assert "every matrix is the identity" in block.note
    head = example_case_of("kqv-AttentionHead-2").example
    assert {one["name"] for one in head.inputs} > {"W_q.weight", "W_k.weight", "W_v.weight"}


def example_case_of(drill_id: str):
    return example_case(next(d for d in EVERY if d.id == drill_id), MADE_WITH)


def test_a_name_with_the_same_result_gives_way():
    drill = next(d for d in drills_of("kqv") if d.name == "no scale")
    case = example_case(drill, MADE_WITH)
    outcomes = case.outcomes([m.name for m in exercises()[drill.exercise].mistakes])
    twin = {**outcomes, drill.wrong_names[0]: case.trial.outcome}

    class First:
        def sample(self, names, number):
            return list(names)[:number]

    names = wrong_names(case.trial, twin, First(), drill.wrong_names)
    assert len(names) == WANTED
    assert drill.wrong_names[0] not in names
    assert set(drill.wrong_names[1:]) <= set(names)
    only = {name: twin[name] for name in drill.wrong_names}
    assert drill.wrong_names[0] in wrong_names(case.trial, only, First(), drill.wrong_names)


def test_a_case_that_refutes_names_goes_before_a_quicker_one():
    """In the one that is read most quickly, a sum above 1 alone would give the same result."""
    drill = next(d for d in EVERY if d.id == "mixing-is_row_stochastic-2")
    exercise = exercises()[drill.exercise]
    wrong, right = (
        implementation_of(drill.function, drill.setup, "\n".join(lines))
        for lines in (drill.code, drill.right)
    )
    cases = [*possible_examples(exercise, wrong, right, (MADE_WITH,))]
    quickest = min(cases, key=lambda case: case.effort)
    names = ["the difference counts in one direction only", *drill.wrong_names[1:]]
    assert quickest.twins(names)
    assert not best_example(cases, names, [], wrong).twins(names)


def test_a_drill_whose_example_tells_enough_stays_as_it_is():
    drill = next(d for d in drills_of("kqv") if d.name == "no scale")
    assert refreshed(drill, MADE_WITH) is drill


def test_an_example_without_weights_gets_another():
    drill = next(d for d in drills_of("transformer") if d.exercise.endswith("EncoderBlock"))
    dim = replace(drill, example=replace(drill.example, note=UNSHOWN, inputs=[]))
    again = refreshed(dim, MADE_WITH)
    assert not example_problem(again.example)
    assert not example_case(again, MADE_WITH).twins(again.wrong_names)


def test_no_example_tells_a_line_of_a_helper():
    assert not [d.id for d in EVERY if re.search(r"in the line `", str(d.example.got))]
