"""The hidden tests of every assignment: no degenerate answer passes one, every right one does.

They are run as a stock notebook would run them, in one process with the answer, and some through
the judge. A degenerate answer is made of the right one: it returns something of the same kind.
"""

import importlib
import json
import random
from functools import cache
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch

from attncourse.checks import exercises
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.hidden_tests import HIDDEN, NAMED, cells_of
from helpers.project import ROOT

SEEDS = (0, 1, 20261122)


STATEMENTS_TO_RUN = (
    "import ",
    "from ",
    "class ",
    "def ",
)  # begins what the answers are given to build on


@cache
def solved(folder: Path) -> dict:
    """Return the namespace of an assignment's notebook after the right answers have run."""
    names: dict = {"display": print}
    for cell in cells_of(folder):
        if cell.code and (cell.solution or cell.source.startswith(STATEMENTS_TO_RUN)):
            exec(cell.source, names)
    return names


def passes(folder: Path, source: str, seed: int, **answers) -> bool:
    """True if a hidden test passes with these answers."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    try:
        with np.errstate(all="ignore"):
            exec(source, solved(folder) | answers)
    except Exception:
        return False
    return True


# --- degenerate answers ---------------------------------------------------------------------------


def filled_like(value, number):
    """Return a value of the same form with every entry set to ``number``."""
    if isinstance(value, torch.Tensor):
        return torch.full(value.shape, number).to(value.dtype)
    if isinstance(value, np.ndarray):
        return np.full(value.shape, number)
    if isinstance(value, torch.nn.Module):
        for parameter in value.parameters():
            parameter.data.fill_(number)
        return value
    if isinstance(value, list):
        return [filled_like(item, number) for item in value]
    return type(value)(number) if isinstance(value, bool | float) else number


def average(value) -> float:
    """Return the mean of an array's numbers; for a single number, another one."""
    if not isinstance(value, np.ndarray | torch.Tensor):
        return 0.5
    numbers = np.asarray(value.detach() if isinstance(value, torch.Tensor) else value, dtype=float)
    return float(numbers.mean()) if numbers.std() > 1e-9 else 0.5


def reshaped(value, *shape):
    """Return zeros of the same library in another shape."""
    if isinstance(value, torch.Tensor):
        return torch.zeros(shape).to(value.dtype)
    return [] if isinstance(value, list | str) else np.zeros(shape)


def destroy(things, number=0) -> bool:
    """Overwrite all arrays and modules in place; True if there were any."""
    arrays = [t for t in things if isinstance(t, torch.nn.Module | torch.Tensor | np.ndarray)]
    for thing in arrays:
        if isinstance(thing, torch.nn.Module):
            filled_like(thing, number)
        elif isinstance(thing, torch.Tensor):
            thing.detach().fill_(number)
        else:
            thing[...] = number
    return bool(arrays)


def destroying_answer(number):
    """Return an answer that overwrites its arguments and returns the same number everywhere."""

    def spoilt(right, args, kwargs):
        value = filled_like(right(*args, **kwargs), number)
        destroy([*args, *kwargs.values()], number)
        return value

    return spoilt


def right_after_destroying(number):
    """Return an answer that overwrites its arguments and is right for the overwritten ones."""

    def spoilt(right, args, kwargs):
        value = right(*args, **kwargs)
        changed = destroy([*args, *kwargs.values()], number)
        return right(*args, **kwargs) if changed else filled_like(value, number)

    return spoilt


SPOILT_RESULTS = {  # what comes of the right answer and its arguments
    "zeros": lambda right, args, kwargs: filled_like(right(*args, **kwargs), 0),
    "ones": lambda right, args, kwargs: filled_like(right(*args, **kwargs), 1),
    "NaN": lambda right, args, kwargs: filled_like(right(*args, **kwargs), float("nan")),
    "its own mean": lambda right, args, kwargs: filled_like(
        value := right(*args, **kwargs), average(value)
    ),
    "one number": lambda right, args, kwargs: average(right(*args, **kwargs)),
    "empty": lambda right, args, kwargs: reshaped(right(*args, **kwargs), 0, 1, 1),
    "empty rows": lambda right, args, kwargs: reshaped(right(*args, **kwargs), 0),
    "None": lambda right, args, kwargs: None,
    "first argument": lambda right, args, kwargs: args[0],
    "last argument": lambda right, args, kwargs: args[-1],
    "destroys and returns zeros": destroying_answer(0),
    "destroys and returns ones": destroying_answer(1),
    "zeros its arguments, then is right": right_after_destroying(0),
    "fills its arguments, then is right": right_after_destroying(1),
}


def answer_of(right, spoil):
    """Return the right answer with its results spoilt: a function, or a class with such methods."""
    if not isinstance(right, type):
        return lambda *args, **kwargs: spoil(right, args, kwargs)

    def method(name):
        def called(self, *args, **kwargs):
            def without_self(*inner, **options):
                return getattr(right, name)(self, *inner, **options)

            return spoil(without_self, args, kwargs)

        return called

    methods = {name: method(name) for name in ("forward", "weights") if hasattr(right, name)}
    return type(right.__name__, (right,), methods)


def answer_from_example(folder: Path, name: str):
    """Return an answer that always returns the result of the text's example."""
    right, seen = solved(folder)[name], []

    def listening(right, args, kwargs):
        seen.append(right(*args, **kwargs))
        return seen[-1]

    names = solved(folder) | {name: answer_of(right, listening)}
    for cell in cells_of(folder):
        if cell.code and not (cell.solution or cell.grade or cell.locked or "pip" in cell.source):
            exec(cell.source, names)
    assert seen, f"no example of {name}"
    return answer_of(right, lambda right, args, kwargs: seen[-1])


@pytest.mark.parametrize(("folder", "name", "source"), NAMED)
def test_no_degenerate_answer_passes(folder, name, source):
    right = solved(folder)[name]
    answers = {kind: answer_of(right, spoil) for kind, spoil in SPOILT_RESULTS.items()}
    assert [
        (kind, seed)
        for kind, answer in answers.items()
        for seed in SEEDS
        if passes(folder, source, seed, **{name: answer})
    ] == []


@pytest.mark.parametrize(("folder", "name", "source"), NAMED)
def test_answers_from_the_texts_example_fail(folder, name, source):
    answer = answer_from_example(folder, name)
    assert not passes(folder, source, 0, **{name: answer})


MODULES = [p for p in NAMED if isinstance(solved(p.values[0])[p.values[1]], type)]


@pytest.mark.parametrize(("folder", "name", "source"), MODULES)
def test_a_module_that_changes_itself_passes_nothing(folder, name, source):
    right = solved(folder)[name]

    class Emptied(right):
        def forward(self, *args, **kwargs):
            value = super().forward(*args, **kwargs)
            destroy([self, *args])
            return torch.zeros_like(value)

    assert not passes(folder, source, 0, **{name: Emptied})


# --- right answers --------------------------------------------------------------------------------


def right_answers() -> list:
    cases = []
    for folder, name, source in HIDDEN:
        stem = folder.name.split("_", 1)[1]
        target = next(t for t in exercises() if t == f"{stem}.{name}")
        alternatives = importlib.import_module(f"test_{stem}").RIGHT[target]
        for number, answer in enumerate([solved(folder)[name], *alternatives]):
            cases.append(pytest.param(folder, name, source, answer, id=f"{target}-{number}"))
    return cases


@pytest.mark.parametrize(("folder", "name", "source", "answer"), right_answers())
def test_every_right_answer_passes(folder, name, source, answer):
    for seed in (*SEEDS, 41, 42):
        assert passes(folder, source, seed, **{name: answer}), seed


@pytest.mark.parametrize(("folder", "name", "source"), NAMED)
def test_a_hidden_test_draws_from_the_seeded_generators_alone(folder, name, source):
    """So that a report can be made again."""
    assert "default_rng()" not in source
    assert "Generator()" not in source


# --- through the judge ----------------------------------------------------------------------------

FUNCTION = """
right_{name} = {name}
def {name}(*args, **kwargs):
    value = right_{name}(*args, **kwargs)
    {body}
"""
MODULE = """
class {name}({name}):
    def forward(self, *args, **kwargs):
        value = super().forward(*args, **kwargs)
        {body}
"""
NUMPY = {
    "zeros": "return 0 * np.asarray(value)",
    "empty": "return np.zeros((0, 1, 1))",
    "destroys": "[a.fill(0) for a in args if hasattr(a, 'fill')]; return 0 * np.asarray(value)",
    "first": "return args[0]",
}
TORCH = {
    "zeros": "return torch.zeros_like(value)",
    "empty": "return torch.zeros(0, 1, 1)",
    "destroys": "[a.zero_() for a in args if hasattr(a, 'zero_')]; return torch.zeros_like(value)",
    "first": "return args[0]",
}
JUDGED_ANSWERS = [
    *(("02_mixing", body) for body in NUMPY.values()),
    *(("05_kqv", body) for body in TORCH.values()),
    ("08_cross_attention", TORCH["destroys"]),
    ("11_positions", TORCH["empty"]),
]


@pytest.mark.parametrize(("folder", "body"), JUDGED_ANSWERS)
def test_the_judge_gives_no_points_for_a_degenerate_answer(folder, body):
    data = (ROOT / "solutions" / folder / f"{folder}.ipynb").read_bytes()
    cells = tuple(c for c in read_cells(data) if not c.grade_id.startswith("points_"))
    assignment, content = Assignment(folder, cells), json.loads(data)  # without what explains
    right = solved(ROOT / "solutions" / folder)
    assert points_hidden(data, assignment) == {1.0}
    for cell in content["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution") and cell["cell_type"] == "code":
            name = marks["grade_id"]
            shape = MODULE if isinstance(right[name], type) else FUNCTION
            cell["source"] = "".join(cell["source"]) + dedent(shape).format(name=name, body=body)
    assert points_hidden(json.dumps(content).encode(), assignment) == {0.0}


def points_hidden(data: bytes, assignment: Assignment) -> set[float]:
    report = grade_submission(data, assignment, limits=Limits(submission=60), seed=3)
    return {cell.points for name, cell in report.cells.items() if name.startswith("hidden_")}
