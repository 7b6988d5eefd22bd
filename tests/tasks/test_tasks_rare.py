"""Chapter 8's sets: answers read off the data, bounds by simulation, a layer by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from attncourse.tasks import rare as task
from attncourse.tasks.training import accuracy, count_parameters


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_marked_elements_raised_feature_is_the_kind():
    x, kinds = task.rare(6)(4000, generator())
    assert x.shape == (4000, 6, 11)
    assert kinds.shape == (4000, 1)
    assert ((x[:, :, 10] == 5).sum(dim=1) == 1).all()
    assert ((x[:, :, 10] == 0).sum(dim=1) == 5).all()
    places = x[:, :, 10].argmax(dim=1)
    assert set(places.tolist()) == set(range(6))
    marked = x[torch.arange(4000), places, :10]
    for kind in range(10):
        means = marked[kinds[:, 0] == kind].mean(dim=0)
        assert torch.allclose(means, 5 * torch.eye(10)[kind], atol=0.25)
    others = x[:, :, :10][x[:, :, 10] == 0]
    assert others.mean().abs() < 0.01
    assert others.var() == pytest.approx(1, abs=0.01)


def test_noise_is_that_of_the_others_alone():
    loud, kinds = task.rare(5)(50, generator())
    still, same = task.rare(5, noise=0.0)(50, generator())
    marked = loud[:, :, 10] == 5
    assert torch.equal(kinds, same)
    assert torch.equal(loud[marked], still[marked])
    assert still[~marked].abs().max() == 0


def test_equal_seeds_give_equal_sets_and_none_is_empty():
    first, again, different = (task.rare(3)(7, generator(seed))[0] for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, different)
    with pytest.raises(ValueError, match="one element or more, got 0"):
        task.rare(0)


@pytest.mark.parametrize("n", [4, 64])
def test_the_best_answer_from_the_mean_is_to_name_the_largest(n):
    x, kinds = task.rare(n)(20_000, generator(1))
    named = x.mean(dim=1)[:, :10].argmax(dim=-1) == kinds[:, 0]
    best = task.best_answer(task.STRENGTH / n**0.5)
    assert named.float().mean().item() == pytest.approx(best, abs=0.012)


def test_best_answers_agree_with_an_integral_of_scipys():
    for ratio in (0.0, 0.7, 3.0):
        integral = stats.norm.expect(lambda z, r=ratio: stats.norm.cdf(z + r) ** 9)
        assert task.best_answer(ratio) == pytest.approx(integral, abs=1e-6)
    assert task.best_answer(0.0) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(("score", "n"), [(0.0, 7), (2.0, 50), (6.0, 400)])
def test_share_and_ratio_are_those_of_a_softmax_and_its_blend(score, n):
    weights = torch.zeros(n, dtype=torch.float64)
    weights[0] = score
    weights = weights.softmax(dim=0)
    assert task.share(score, n) == pytest.approx(weights[0].item())
    noise = weights.square().sum().sqrt()  # of independent numbers of variance 1
    assert task.ratio(score, n) == pytest.approx((task.STRENGTH * weights[0] / noise).item())
    assert np.isfinite(task.ratio(np.arange(3.0), n)).all()


def test_the_hand_made_layer_passes_the_marked_element_alone():
    model, (x, _) = task.layer_by_hand(), task.rare(64)(200, generator(2))
    marked = x[x[:, :, 10] == 5][:, :10]  # (200, 10)
    with torch.no_grad():
        assert torch.allclose(64 * model(x)[:, 0], marked.relu(), atol=1e-4)
    best = task.best_answer(task.STRENGTH)
    assert accuracy(model, task.rare(64), 2000) == pytest.approx(best, abs=0.01)


def test_contestants_have_about_equal_parameters():
    builders = task.mean_pooling, task.attention_pooling, task.layer_first
    sizes = [count_parameters(build()) for build in builders]
    assert sizes == [384, 373, 384]
    for build in (*builders, lambda: task.layer_first(task.Sum)):
        model = build()
        for n in (1, 9):
            x, _ = task.rare(n)(3, generator())
            assert model(x).shape == (3, 1, 10)
            assert torch.allclose(model(x), model(x.flip(1)), atol=1e-5)
    x, _ = task.rare(5)(3, generator())
    assert torch.allclose(task.Sum()(x), 5 * task.Mean()(x), atol=1e-5)


def test_the_share_is_the_weight_at_the_marked_element():
    model = task.attention_pooling()
    with torch.no_grad():
        model[0].queries.zero_()  # all weights equal
    assert torch.allclose(task.share_found(model, 8, 20), torch.full((20,), 1 / 8))
    with torch.no_grad():
        model[0].queries[0, 10] = 11**0.5 * 4
        model[0].W_k.weight.copy_(torch.eye(11))  # a score of 20 for the mark
    assert task.share_found(model, 8, 20).min() > 0.999
