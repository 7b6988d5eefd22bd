"""What a verdict says of the line of a student's code that raised an error."""

import linecache

import numpy as np
import pytest
import torch
from torch import nn

from attncourse.checks import examine
from attncourse.checks.reading.lines import line_behind, sizes_in_words


def function_of(source: str):
    """Return a function from its source, whose lines can be looked up as in a notebook."""
    name = "<answer>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made = {"torch": torch, "np": np, "nn": nn}
    exec(compile(source, name, "exec"), made)
    return list(made.values())[-1]


A, B = np.zeros((3, 4), "f4"), torch.zeros(2, 5)
LINES_AND_SIZES = [
    ("return A @ B", ", where A is (3, 4) and B is (2, 5)"),
    ("C = A @ B.mT + unknown", ", where A is (3, 4) and B is (2, 5)"),
    ("for row in A:", ", where A is (3, 4)"),
    ("A += B", ", where A is (3, 4) and B is (2, 5)"),
    ("A = B", ", where B is (2, 5)"),  # what is written is not read
    ("x = A[..., i] if mask else B", ", where A is (3, 4), i is 7, mask is None and B is (2, 5)"),
    ("return mask.shape", ", where mask is None"),
    ("y = self.W @ A + self.gone", ", where self.W is (6, 4) and A is (3, 4)"),
    ("return i + 1", ""),  # no sizes
    ("A, B, text]", ""),  # a part of a statement
    ("return half @ whole", ", where half is (2,) of float32 and whole is (2,) of float64"),
    ("return picks[ids]", ", where picks is (2,) and ids is (2,)"),  # whole numbers beside others
]


@pytest.mark.parametrize(("line", "sizes"), LINES_AND_SIZES, ids=lambda x: x)
def test_names_read_in_a_line_are_shown_with_their_sizes(line, sizes):
    layer = nn.Module()
    layer.W = nn.Parameter(torch.zeros(6, 4))
    halves = {"half": torch.zeros(2), "whole": torch.zeros(2).double()}
    ids = {"picks": np.zeros(2), "ids": np.arange(2)}
    namespace = {"A": A, "B": B, "i": 7, "mask": None, "self": layer, "text": "A", **halves, **ids}
    assert sizes_in_words(line, namespace) == sizes


def test_an_error_of_dtypes_shows_the_dtypes():
    product = function_of("def product(keep, order):\n    return keep @ order\n")
    with pytest.raises(RuntimeError) as caught:
        product(torch.ones(3, dtype=torch.bool), torch.ones(3, dtype=torch.long))
    line = "`return keep @ order`, where keep is (3,) of bool and order is (3,) of int64"
    assert line_behind(caught.value, "<answer>".__eq__) == line


class RaisesOnAccess:
    def __getattribute__(self, name):
        raise RuntimeError("looked at")

    shape = property(lambda self: 1 / 0)


class RaisesInTorch(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("looked at")


def test_no_code_of_a_students_class_runs():
    namespace = {
        "x": RaisesOnAccess(),
        "y": torch.zeros(2).as_subclass(RaisesInTorch),
        "z": np.zeros(3),
    }
    assert sizes_in_words("x.shape + y @ x.grid @ z", namespace) == ", where z is (3,)"


def test_an_error_without_a_traceback_has_no_line():
    hide = function_of(
        "class Hidden(ValueError):\n"
        "    __traceback__ = args = property(lambda self: 1 / 0)\n"
        "def hide(x):\n"
        "    raise Hidden('no')\n"
    )
    with pytest.raises(ValueError, match="no") as caught:
        hide(torch.zeros(3))
    assert line_behind(caught._excinfo[1], "<answer>".__eq__) == "`raise Hidden('no')`"


def test_the_students_last_line_is_shown():
    source = "def inner(x):\n    return torch.cat(x, 0)\n\ndef outer(x):\n    return inner(x)\n"
    outer = function_of(source)
    with pytest.raises(TypeError) as caught:
        outer(torch.zeros(3))
    is_answers_file = "<answer>".__eq__
    assert line_behind(caught.value, is_answers_file) == "`return torch.cat(x, 0)`, where x is (3,)"
    assert line_behind(caught.value, "elsewhere".__eq__) == ""


def test_an_answer_that_always_stops_names_the_line():
    gather = function_of(
        "def next_token_loss(logits, ids, padding_id=None):\n"
        "    shares = logits.log_softmax(-1)\n"
        "    targets = ids[..., 1:]\n"
        "    return -shares.gather(-1, targets).mean()\n"
    )
    verdict = examine("gpt.next_token_loss", gather, seed=3)
    line = "return -shares.gather(-1, targets).mean()"
    assert verdict.symptom == f"mostly, it stops with a RuntimeError in the line `{line}`"
    assert "the same error" in str(verdict)
    assert str(verdict).count(line) == 2  # where it stops, and with the sizes in the example
    assert "where shares is (3, 3) and targets is (2,)" in str(verdict)


def test_refusing_valid_input_is_a_symptom():
    shy = function_of(
        "def next_token_loss(logits, ids, padding_id=None):\n"
        "    if logits.ndim > 1:\n"
        "        raise ValueError('expected one row')\n"
    )
    symptom = "it refuses what it should take, in the line `raise ValueError('expected one row')`"
    assert examine("gpt.next_token_loss", shy, seed=3).symptom == symptom
