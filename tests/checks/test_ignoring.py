"""The symptom that a wrong result does not follow from an argument that it should follow from."""

import numpy as np
import pytest
import torch

from attncourse.checks import examine, exercises
from attncourse.checks.explaining.ignoring import ignored_arguments
from attncourse.checks.judging import named_arguments
from attncourse.checks.trying.trials import draw, try_out

TWO_ARRAYS = [
    e
    for e in exercises().values()
    if e.target in ("mixing.mix", "kqv.attention_scores", "gpt.next_token_loss", "lookup.distances")
]


def combined_number(value):
    """Return a number that depends on every entry, on each in another way."""
    flat = torch.as_tensor(np.asarray(value, dtype=float)).ravel()
    return float((flat * torch.arange(1, flat.numel() + 1).sin()).sum())


@pytest.mark.parametrize("exercise", TWO_ARRAYS, ids=lambda e: e.target)
@pytest.mark.parametrize("unused", [0, 1])
def test_an_argument_that_is_not_used_is_named(exercise, unused):
    def answer(*args, **kwargs):
        right = exercise.reference(*args, **kwargs)
        used = [combined_number(a) for i, a in enumerate(args[:2]) if i != unused]
        made = np.zeros(np.shape(right)) + used[0]
        return made if isinstance(right, np.ndarray) else torch.as_tensor(made)

    trials = try_out(exercise, answer, 5)
    names = [name for name, _ in named_arguments(exercise, draw(exercise, 5)[0][1])]
    assert ignored_arguments(exercise, answer, trials, 5) == [names[unused]]


@pytest.mark.parametrize("exercise", TWO_ARRAYS, ids=lambda e: e.target)
def test_an_answer_that_uses_all_arguments_ignores_none(exercise):
    def answer(*args, **kwargs):
        right = exercise.reference(*args, **kwargs)
        made = np.zeros(np.shape(right)) + combined_number(args[0]) * combined_number(args[1])
        return made if isinstance(right, np.ndarray) else torch.as_tensor(made)

    assert ignored_arguments(exercise, answer, try_out(exercise, answer, 5), 5) == []


def test_an_unused_argument_is_reported_if_nothing_else_is():
    def head_scores(maps, pattern):
        return maps.amax(-1).sum(-1) / (maps.shape[-1] + 0.123)

    verdict = examine("interpret.head_scores", head_scores, seed=3)
    assert verdict.diagnosis is None
    assert verdict.symptom == "other numbers in `pattern` do not change the result"
