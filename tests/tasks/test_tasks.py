"""What the pages train on: data with known answers, and a fair contest."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from attncourse.tasks.recall import ASKED, DIGITS, LETTERS, Views, recall, ring
from attncourse.tasks.training import accuracy, contest, last_loss, train


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_recall_asks_for_the_digit_of_one_pair():
    x, answer = recall(50, generator())
    assert x.shape == (50, 9, 26)
    assert answer.shape == (50, 1)
    for sequence, digit in zip(x, answer[:, 0].tolist(), strict=True):
        pairs = {
            int(token[LETTERS].argmax()): int(token[DIGITS].argmax()) for token in sequence[:8]
        }
        assert sequence[:8].sum() == 16  # a letter and a digit each, and no question
        assert sequence[8].sum() == 1
        assert len(pairs) == len(set(pairs.values())) == 8
        assert pairs[int(sequence[8, ASKED].argmax())] == digit


def test_every_token_of_a_ring_asks_for_the_digit_of_another():
    x, answer = ring(50, generator())
    assert x.shape == (50, 8, 26)
    for sequence, digits in zip(x, answer.tolist(), strict=True):
        named = {int(token[LETTERS].argmax()): token for token in sequence}
        seen, at = set(), int(sequence[0, LETTERS].argmax())
        while at not in seen:
            seen.add(at)
            at = int(named[at][ASKED].argmax())
        assert len(seen) == 8  # one ring, not several
        for token, digit in zip(sequence, digits, strict=True):
            assert int(named[int(token[ASKED].argmax())][DIGITS].argmax()) == digit


@pytest.mark.parametrize("task", [recall, ring])
def test_equal_seeds_give_equal_data(task):
    first, again, different = (task(7, generator(seed)) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], different[0])


def test_shared_views_have_symmetric_scores():
    torch.manual_seed(0)
    x, _ = ring(5, generator())
    for groups, symmetric in (("q k v", False), ("qk v", True), ("qkv", True), ("q kv", False)):
        model = Views(groups)
        weights = model.weights(x)
        query, key = model.view("q", x), model.view("k", x)
        scores = query @ key.mT
        assert torch.allclose(scores, scores.mT, atol=1e-6) == symmetric
        assert weights.diagonal(dim1=1, dim2=2).abs().max() == 0
        assert torch.allclose(weights.sum(-1), torch.ones(5, 8))
        assert torch.allclose(model(x), weights @ model.view("v", x))
    with pytest.raises(ValueError, match="each of q, k and v once, got 'q k'"):
        Views("q k")


def sign_task(batch: int, gen: torch.Generator):
    """The answer is the sign of the one number, and stands in the last row."""
    x = torch.randn(batch, 3, 1, generator=gen)
    return x, (x[:, -1] > 0).long()


def test_training_is_reproducible_and_measured_before_each_step():
    def build():
        return nn.Linear(1, 2)

    runs = [train(build, sign_task, rate=0.1, steps=40, seed=seed) for seed in (0, 0, 1)]
    assert runs[0].losses == runs[1].losses != runs[2].losses
    torch.manual_seed(0)
    x, answer = sign_task(64, generator(0))
    before = nn.functional.cross_entropy(build()(x)[:, -1], answer[:, 0])
    assert runs[0].losses[0] == pytest.approx(before.item())
    assert accuracy(runs[0].model, sign_task) > 0.95


def test_a_contest_shows_each_contestant_at_its_best_rate():
    results = contest(sign_task, {"line": lambda: nn.Linear(1, 2)}, rates=(1e-5, 0.1), steps=40)
    assert results["line"].rate == 0.1
    assert len(results["line"].runs) == len(results["line"].accuracies) == 3
    assert results["line"].median == sorted(results["line"].accuracies)[1]


def test_a_run_that_diverges_is_never_the_best():
    run = train(lambda: nn.Linear(1, 2), sign_task, rate=0.1, steps=3)
    run.losses[-1] = math.nan
    assert last_loss(run) == math.inf
