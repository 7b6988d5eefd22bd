"""An answer that does not take the exercise's calls is told the signature that does."""

import inspect

import pytest

from attncourse.checks import examine, exercises
from attncourse.checks.explaining.signatures import default_as_code
from attncourse.checks.judging import judge
from attncourse.multihead import split_heads
from attncourse.scoring import attend

FUNCTIONS = [e for e in exercises().values() if inspect.isfunction(e.reference)]
MODULES = [e for e in exercises().values() if inspect.isclass(e.reference)]
POSITIONAL_OR_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD


def with_parameters(function, change):
    """Return ``function`` with changed parameters; it passes its arguments on by position."""
    before = inspect.signature(function).parameters
    after = change(list(before.values()))
    declared, passed = [], []
    for p in after:
        named = p.kind is p.KEYWORD_ONLY
        declared += ["*"] if named and "*" not in declared else []
        declared += [p.name if p.default is p.empty else f"{p.name}=given[{p.name!r}]"]
        passed += [f"{p.name}={p.name}" if named else p.name] if p.name in before else []
    space = {"given": {p.name: p.default for p in after}, "function": function}
    exec(f"def answer({', '.join(declared)}): return function({', '.join(passed)})", space)
    return space["answer"]


def add_parameter(parameters):
    """Return the parameters with a required one more, before those with a default."""
    needed = [p for p in parameters if p.default is p.empty and p.kind is POSITIONAL_OR_KEYWORD]
    rest = [p for p in parameters if all(p is not n for n in needed)]
    return [*needed, inspect.Parameter("another", POSITIONAL_OR_KEYWORD), *rest]


def remove_parameters(parameters):
    """Return the first parameter alone, or none where there is only one."""
    without_self = parameters[parameters[0].name == "self" :]
    return parameters[: len(parameters) - len(without_self)] + without_self[: len(without_self) > 1]


def remove_defaults(parameters):
    return [p.replace(default=p.empty) for p in parameters]


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda e: e.target)
@pytest.mark.parametrize("change", [add_parameter, remove_parameters])
def test_an_argument_too_many_or_too_few_is_reported(exercise, change):
    verdict = judge(exercise, with_parameters(exercise.reference, change), 1)
    assert not verdict.passed
    assert verdict.diagnosis.name == "the signature is another one"
    first = next(iter(inspect.signature(exercise.reference).parameters))
    assert f"`{exercise.reference.__name__}({first}" in verdict.diagnosis.explanation


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda e: e.target)
def test_a_signature_without_defaults_says_which(exercise):
    parameters = inspect.signature(exercise.reference).parameters.values()
    verdict = judge(exercise, with_parameters(exercise.reference, remove_defaults), 1)
    if verdict.passed:  # every case hands everything over, or there is no default
        return
    assert "no default" in verdict.diagnosis.name
    missing = [p for p in parameters if p.default is not p.empty]
    explanation = verdict.diagnosis.explanation
    assert any(f"{p.name}={default_as_code(p.default)}" in explanation for p in missing)
    assert "<" not in explanation  # no function's address


@pytest.mark.parametrize("exercise", MODULES, ids=lambda e: e.target)
@pytest.mark.parametrize("method", ["__init__", "forward"])
@pytest.mark.parametrize("change", [add_parameter, remove_parameters])
def test_a_modules_methods_have_signatures_too(exercise, method, change):
    reference_method = getattr(exercise.reference, method)
    if change is remove_parameters and len(inspect.signature(reference_method).parameters) < 2:
        pytest.skip("nothing to take away")
    altered = with_parameters(reference_method, change)
    altered.__qualname__ = f"Answer.{method}"
    answer = type("Answer", (exercise.reference,), {method: altered})
    verdict = judge(exercise, answer, 1)
    assert not verdict.passed
    assert verdict.diagnosis.name == "the signature is another one"
    name = exercise.reference.__name__ if method == "__init__" else method
    assert f"`{name}(" in verdict.diagnosis.explanation
    assert "<" not in verdict.diagnosis.explanation


def test_a_wrong_call_inside_an_answer_is_no_wrong_signature():
    def helper(x, h):
        return split_heads(x, h)

    def split(x, n_heads):
        return helper(x)

    verdict = examine("multihead.split_heads", split, seed=1)
    assert verdict.diagnosis is None
    assert "return helper(x)" in str(verdict)


def test_a_further_mistake_is_told_after_the_signature():
    def twice(scores, values, mask):
        return [2 * part for part in attend(scores, values, mask)]

    verdict = examine("scoring.attend", twice, seed=1)
    assert verdict.diagnosis.name == "no default for mask"
    assert "`mask=None`" in verdict.diagnosis.explanation


ATTENTION_EXERCISE = exercises()["kqv.scaled_dot_product_attention"]


def remove_scale(parameters):
    return [p for p in parameters if p.name != "scale"]


@pytest.mark.parametrize("name", ["the mask is inverted", "no scale", "softmax over the queries"])
def test_a_mistake_beneath_another_signature_is_told_after_it(name):
    wrong = next(m.wrong for m in ATTENTION_EXERCISE.mistakes if m.name == name)
    verdict = judge(ATTENTION_EXERCISE, with_parameters(wrong, remove_scale), 1)
    assert verdict.diagnosis.name == "the signature is another one"
    assert verdict.rest == name
    assert f"what is left after it: {name}." in str(verdict)
    assert verdict.worth == judge(ATTENTION_EXERCISE, wrong, 1).earned - verdict.earned


def test_an_answer_that_cannot_be_called_is_told_nothing_more():
    verdict = judge(
        ATTENTION_EXERCISE, with_parameters(ATTENTION_EXERCISE.reference, remove_scale), 1
    )
    assert (verdict.diagnosis.name, verdict.rest) == ("the signature is another one", "")
