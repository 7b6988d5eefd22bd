"""Heads trained side by side: against queries and keys written out, and each run by itself."""

from __future__ import annotations

import math

import pytest
import torch

from attncourse.tasks.many_heads import Heads, Lesson, questions, train_heads


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_answer_is_the_digit_of_the_asked_pair():
    queries, pairs, answer = questions(20, generator(), runs=3)
    assert queries.shape == (3, 20, 1, 8)
    assert pairs.shape == (3, 20, 8, 18)
    assert answer.shape == (3, 20)
    for run in range(3):
        for i in range(20):
            letters = [int(pair[:8].argmax()) for pair in pairs[run, i]]
            digits = [int(pair[8:].argmax()) for pair in pairs[run, i]]
            letter = int(queries[run, i, 0].argmax())
            assert dict(zip(letters, digits, strict=True))[letter] == answer[run, i]
            assert sorted(letters) == list(range(8))


def test_a_lesson_gives_the_same_batch_at_a_step_in_any_order():
    drawn = generator(3)
    batches = [questions(4, drawn, runs=2) for _ in range(3)]
    taught = Lesson(4, 2, seed=3)
    for step in (2, 0, 1, 2):
        for lesson_part, expected in zip(taught.at(step), batches[step], strict=True):
            assert lesson_part.dtype == expected.dtype
            assert torch.equal(lesson_part, expected)


@pytest.mark.parametrize("normalised", [False, True])
def test_weights_and_logits_agree_with_loops(normalised):
    torch.manual_seed(0)
    model = Heads(5, 3.0, normalised=normalised, runs=2)
    queries, pairs, _ = questions(4, generator(), runs=2)
    weights, logits = model.weights(queries, pairs), model(queries, pairs)
    for run in range(2):
        for i in range(4):
            q = queries[run, i, 0] @ model.W_q[run]
            K = pairs[run, i] @ model.W_k[run]
            lengths = q.norm() * K.norm(dim=1) if normalised else 1.0
            a = torch.softmax(K @ q / lengths / 3.0, dim=0)
            torch.testing.assert_close(weights[run, i, 0], a)
            torch.testing.assert_close(logits[run, i], a @ (pairs[run, i] @ model.W_v[run]))


def test_queries_and_keys_have_the_initial_size_asked_for():
    torch.manual_seed(0)
    for size in (1.0, 0.2):
        model = Heads(4096, 1.0, size=size)
        queries, pairs, _ = questions(8, generator())
        query, key = queries[:, :, 0] @ model.W_q, pairs.flatten(1, 2) @ model.W_k
        assert query.std().item() == pytest.approx(size, rel=0.02)
        assert key.std().item() == pytest.approx(size, rel=0.02)


def test_a_run_does_not_depend_on_the_others():
    def first_run(factor: float) -> torch.Tensor:
        torch.manual_seed(0)
        model = Heads(8, math.sqrt(8), runs=2)
        with torch.no_grad():
            model.W_k[1] *= factor
        return train_heads(model, 0.03, steps=10)[1][:, :]

    once, again = first_run(1.0), first_run(5.0)
    torch.testing.assert_close(once[0], again[0])
    assert not torch.allclose(once[1], again[1])


def test_the_heads_learn_and_equal_seeds_give_equal_runs():
    def trained():
        torch.manual_seed(0)
        return train_heads(Heads(32, 32.0, runs=3), 0.03, steps=150, seed=4)

    (right, losses), (again, _) = trained(), trained()
    assert right.shape == losses.shape == (3, 150)
    assert torch.equal(right, again)
    assert right[:, :10].mean() < 0.4
    assert (right[:, -20:].mean(1) > 0.95).all()
    assert (losses[:, -1] < losses[:, 0]).all()


def test_only_a_learned_divisor_moves_and_at_its_own_rate():
    ends = []
    for learned, rate in ((False, 0.1), (True, None), (True, 0.1)):
        torch.manual_seed(0)
        model = Heads(16, 4.0, learned=learned, runs=3)
        train_heads(model, 0.001, steps=5, divisor_rate=rate)
        ends.append((model.log_divisor - math.log(4.0)).abs().max().item())
    assert ends[0] == 0
    assert 0 < ends[1] < 0.006
    assert 0.1 <= ends[2] < 0.6
