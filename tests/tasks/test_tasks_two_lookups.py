"""The two lookups of chapter 9: answers by dictionaries, heads switched off and started alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attncourse.multihead import MultiHeadAttention, MultiHeadNaive
from attncourse.tasks import two_lookups as task
from attncourse.tasks.training import classes, contest, train


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def ring_of(sequence) -> list[int]:
    """The names in the order in which the first question leads around, from token 0."""
    names, first = sequence[:, :8].argmax(-1).tolist(), sequence[:, -16:-8].argmax(-1).tolist()
    leads, ring = dict(zip(names, first, strict=True)), [names[0]]
    while leads[ring[-1]] != names[0]:
        ring.append(leads[ring[-1]])
    return ring


def test_both_digits_are_those_of_the_tokens_named():
    x, answers = task.two_lookups(50, generator())
    assert x.shape == (50, 8, 34)
    assert answers.shape == (50, 8, 2)
    assert (x.sum(-1) == 4).all()  # a name, a digit and two names, each once
    for sequence, right in zip(x, answers.tolist(), strict=True):
        read = [task.labels(sequence)[i] for i in range(8)]
        digit_of = {token[0]: int(token[1]) for token in read}
        assert len(digit_of) == len(set(digit_of.values())) == 8
        for token, (first, second) in zip(read, right, strict=True):
            assert token[0] != token[3] != token[5] != token[0]
            assert (digit_of[token[3]], digit_of[token[5]]) == (first, second)
        assert len(ring_of(sequence)) == 8  # one ring, not several


def test_both_colours_are_those_of_the_tokens_named():
    x, answers = task.two_colours(50, generator())
    assert x.shape == (50, 8, 27)
    assert answers.shape == (50, 8, 2, 3)
    assert answers.abs().max() <= 1
    assert answers.square().mean() == pytest.approx(1 / 3, abs=0.03)  # the variance that is used
    for sequence, right in zip(x, answers, strict=True):
        colour_of = {int(token[:8].argmax()): token[-3:] for token in sequence}
        for token, pair in zip(sequence, right, strict=True):
            for question, colour in zip((token[8:16], token[16:24]), pair, strict=True):
                assert torch.equal(colour_of[int(question.argmax())], colour)


@pytest.mark.parametrize("make", [task.two_lookups, task.two_colours])
def test_equal_seeds_give_equal_data(make):
    first, again, different = (make(7, generator(seed)) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], different[0])


def test_an_answer_of_two_parts_is_right_where_both_are():
    output = torch.zeros(1, 3, 2, 10)
    output[0, :, 0, 4] = output[0, :, 1, 7] = 1.0
    answers = torch.tensor([[[4, 7], [4, 6], [3, 7]]])
    loss, right = classes(output, answers)
    assert right.tolist() == [[True, False, False]]
    each = -output.log_softmax(-1).gather(-1, answers[..., None])
    assert loss.item() == pytest.approx(each.mean().item())


def test_explained_variance_is_1_for_colours_0_for_the_mean():
    _, colours = task.two_colours(2000, generator())
    assert torch.equal(task.explained(colours, colours)[1], torch.ones(2000, 8, 2))
    assert task.explained(0 * colours, colours)[1].mean().abs() < 0.02
    half = torch.stack([colours[:, :, 0], 0 * colours[:, :, 1]], dim=2)
    assert task.explained(half, colours)[1].mean() == pytest.approx(0.5, abs=0.02)


class RingHeads(nn.Module):
    """Heads of a ring that looks ``steps`` ahead, in its order: maps that are known."""

    def __init__(self, *steps):
        super().__init__()
        self.steps = steps

    def weights(self, x):
        return torch.stack([torch.eye(8).roll(s, 1).expand(len(x), 8, 8) for s in self.steps], 1)


def test_shares_are_the_weights_on_the_two_tokens_asked_about():
    model = nn.Sequential(nn.Identity(), RingHeads(1, 3, 2))
    assert task.shares(model, 5).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_without_a_head_the_sum_of_the_others_is_left():
    torch.manual_seed(0)
    model = task.answering(MultiHeadAttention(32, 4, bias=False))
    x, attention = torch.randn(2, 8, 32), model[1]
    alone = [
        task.without(model, [j for j in range(4) if j != i])[1](x) for i in range(4)
    ]  # what each head adds
    assert torch.allclose(sum(alone), attention(x), atol=1e-6)
    assert torch.allclose(task.without(model, [1, 3])[1](x), alone[0] + alone[2], atol=1e-6)
    assert all(output.abs().max() > 0.01 for output in alone)


def test_equal_heads_stay_equal_without_positions():
    def build(same_place):
        return lambda: task.answering(task.start_alike(MultiHeadNaive(32, 2), same_place))

    same, with_positions = (
        train(build(same_place), task.two_lookups, rate=0.01, steps=30, batch=8).model
        for same_place in (True, False)
    )
    assert task.apart(build(False)()[1]) == 0
    assert task.apart(same[1]) == 0
    W_o = same[1].W_o.weight
    assert torch.equal(W_o[:, :16], W_o[:, 16:])
    assert not torch.equal(W_o, build(True)()[1].W_o.weight)  # it has learned something
    assert task.apart(with_positions[1]) > 0.01


def test_one_key_for_all_leaves_the_model_as_it_was():
    torch.manual_seed(1)
    before = MultiHeadAttention(12, 3)
    after, x = task.one_key_for_all(before), torch.randn(2, 5, 12)
    _, key, _ = after.views(x, None, None)  # (2, 3, 5, 4)
    assert torch.equal(key[:, 0], before.views(x, None, None)[1][:, 0])
    assert torch.equal(key, key[:, :1].expand_as(key))
    assert not torch.equal(after(x), before(x))


def test_two_heads_learn_what_one_does_not():
    def contestant(h):
        return lambda: task.answering(MultiHeadAttention(32, h))

    results = contest(
        task.two_lookups,
        {h: contestant(h) for h in (1, 2)},
        rates=(0.01,), seeds=1, steps=200, batch=32,
    )  # fmt: skip
    assert results[1].median < 0.3
    assert results[2].median > 0.9
    answers, right = task.answers(results[2].runs[0].model)
    assert (answers == right).all(-1).float().mean() > 0.9


def test_colours_are_answered_with_three_numbers_each():
    model = task.answering(MultiHeadAttention(32, 2), hidden=64, task=task.two_colours)
    x, colours = task.two_colours(4, generator())
    assert model(x).shape == colours.shape
    assert task.answering(MultiHeadAttention(32, 1))(task.two_lookups(4, generator())[0]).shape == (
        4, 8, 2, 10,
    )  # fmt: skip
