"""Chapter 12's tasks: digits that choose, runs side by side, depth, a translator in parallel."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from attncourse.multihead import MultiHeadAttention
from attncourse.tasks.choosing import REMOVABLE_PARTS, Chooser, PartialBlock, choosing
from attncourse.tasks.days import N_IDS, as_ids, day_lines, days, whole_lines
from attncourse.tasks.depth import gradients_by_depth, relative_residual, size, tokens_by_depth
from attncourse.tasks.parallel_translator import ParallelTranslator
from attncourse.tasks.runs import Run, reached
from attncourse.tasks.side_by_side import train_side_by_side
from attncourse.tasks.training import contest, train
from attncourse.transformer import EncoderBlock


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_each_position_chooses_one_of_two_digits():
    ids, answers = choosing(50, generator())
    assert ids.shape == (50, 8)
    assert answers.shape == (50, 6)
    for row, right in zip(ids.tolist(), answers.tolist(), strict=True):
        for i in range(2, 8):
            assert right[i - 2] == (row[i] if row[i - 1] > row[i - 2] else row[i - 2])
    chose_own_digit = (
        choosing(20000, generator(1))[0][:, 2:] == choosing(20000, generator(1))[1]
    ).float()
    assert chose_own_digit.mean() == pytest.approx(0.52, abs=0.01)


def test_a_partial_block_lacks_the_part_taken_out():
    x = torch.randn(2, 5, 8)
    torch.manual_seed(0)
    full_block = EncoderBlock(8, 2)
    blocks = {}
    for part in REMOVABLE_PARTS[:3]:
        blocks[part] = PartialBlock(8, 2, part)
        state = {n: w for n, w in full_block.state_dict().items() if n in blocks[part].state_dict()}
        blocks[part].load_state_dict(state)
    a, f, n_1, n_2 = (
        full_block.attention,
        full_block.feed_forward,
        full_block.norm_1,
        full_block.norm_2,
    )
    close = torch.testing.assert_close
    close(blocks["residual"](x), f(n_2(a(n_1(x)))))
    y = x + a(x)
    close(blocks["norm"](x), y + f(y))
    close(blocks["feed-forward"](x), x + a(n_1(x)))
    torch.manual_seed(0)
    close(PartialBlock(8, 2)(x), full_block(x))


def test_models_are_built_without_a_part():
    ids = choosing(3, generator())[0]
    models = {part: Chooser(part, d=8, heads=2) for part in ("", *REMOVABLE_PARTS)}
    assert all(model(ids).shape == (3, 8, 5) for model in models.values())
    order = torch.randperm(8)
    for part, model in models.items():
        moves = torch.allclose(model(ids[:, order]), model(ids)[:, order], atol=1e-5)
        assert moves == (part == "positions")
    assert [models[p].blocks[0].attention.n_heads for p in ("", "heads")] == [2, 1]
    assert isinstance(models["norm"].norm, nn.Identity)
    with pytest.raises(ValueError, match=r"expected one of residual, .*got 'head'"):
        Chooser("head")


def test_parallel_runs_equal_single_runs():
    def build():
        return Chooser(d=8, heads=2, layers=1)

    rates = (0.003, 0.02)
    together = train_side_by_side(build, choosing, rates=rates, seeds=2, steps=15, batch=8)
    for rate in rates:
        for seed in range(2):
            alone = train(build, choosing, rate=rate, seed=seed, steps=15, batch=8)
            run = together[rate][seed]
            np.testing.assert_allclose(run.losses, alone.losses, atol=1e-4)
            np.testing.assert_allclose(run.right, alone.right, atol=0.03)
            others = dict(alone.model.named_parameters())
            for name, parameter in run.model.named_parameters():
                if not name.endswith("W_k.bias"):  # its gradient is 0 but for rounding
                    torch.testing.assert_close(parameter, others[name], rtol=0, atol=1e-3)
    more = {"steps": 15, "batch": 8, "sequences": 500}
    result = contest(choosing, {"one": build}, rates=rates, seeds=2, **more)["one"]
    losses = [run.losses for run in together[result.rate]]
    np.testing.assert_allclose([run.losses for run in result.runs], losses)
    assert len(result.accuracies) == 2


def test_a_factor_scales_every_rate():
    def build():
        return Chooser(d=4, heads=1, layers=1)

    still = train_side_by_side(build, choosing, rates=(0.1,), seeds=1, steps=3, batch=4,
                               factor=lambda step: 0.0)  # fmt: skip
    torch.manual_seed(0)
    for parameter, initial in zip(
        still[0.1][0].model.parameters(), build().parameters(), strict=True
    ):
        assert parameter.equal(initial)
    half = train_side_by_side(build, choosing, rates=(0.1,), seeds=1, steps=9, batch=4,
                              factor=lambda step: 0.5)  # fmt: skip
    alone = train(build, choosing, rate=0.05, steps=9, batch=4)
    np.testing.assert_allclose(half[0.1][0].losses, alone.losses, atol=1e-4)


def test_the_step_at_which_a_share_is_reached_is_found():
    assert reached(Run(None, [0.0] * 5 + [1.0] * 20, []), over=10) == 14
    assert reached(Run(None, [0.5] * 30, [])) is None


def test_the_relative_residual_agrees_with_another_minimiser():
    rng = np.random.default_rng(0)
    for n, d in ((4, 2), (6, 3), (9, 2)):
        X = rng.normal(size=(n, d)) + rng.normal(size=d)

        def norm(M):
            return math.sqrt(np.abs(M).sum(0).max() * np.abs(M).sum(1).max())

        starts = [X.mean(0), np.median(X, axis=0), *(X.mean(0) + rng.normal(size=(8, d)))]
        least = min(
            minimize(lambda x, X=X, norm=norm: norm(X - x), start, method="Nelder-Mead").fun
            for start in starts
        )
        distance = relative_residual(torch.tensor(X), steps=800).item() * norm(X)
        assert 0.999 * least < distance < 1.01 * least
        assert relative_residual(torch.tensor(X)).item() * norm(X) < 1.1 * least
        assert size(torch.tensor(X)).item() == pytest.approx(norm(X))


def test_the_relative_residual_of_equal_tokens_is_0():
    equal = torch.randn(5).expand(7, 5)
    assert relative_residual(equal) < 1e-6
    assert relative_residual(torch.ones(2, 3, 4)).tolist() == [0, 0]
    both = relative_residual(torch.stack([torch.randn(7, 5), equal + 1e-4 * torch.randn(7, 5)]))
    assert both[0] > 0.3
    assert 1e-6 < both[1] < 1e-3


def test_stacked_attention_makes_tokens_alike_without_a_skip():
    for feed in (False, True):
        alone = relative_residual(tokens_by_depth(False, feed, depth=5, n=8, d=16))
        beside = relative_residual(tokens_by_depth(True, feed, depth=5, n=8, d=16))
        assert alone[-1] < 1e-6
        assert beside[-1] > 0.1
        assert (alone.diff() < 1e-9).all()
    torch.manual_seed(4)
    first = torch.randn(8, 16).double()
    rows = tokens_by_depth(True, False, depth=1, n=8, d=16, seed=4)
    assert rows[0].equal(first)
    attention = MultiHeadAttention(16, 4)
    for parameter in attention.parameters():
        if parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter)
        else:
            nn.init.zeros_(parameter)
    # The random numbers are drawn in the order of the layers, so the first layer is this one.
    assert rows.shape == (2, 8, 16)
    assert not rows[1].equal(rows[0])


def test_last_blocks_gradients_are_larger_in_post_norm():
    ends = []
    for pre_norm in (True, False):
        norms = torch.stack(
            [gradients_by_depth(pre_norm, depth=8, n=8, d=16, seed=s) for s in range(3)]
        )
        assert norms.shape == (3, 8)
        assert (norms > 0).all()
        ends.append(norms.median(0).values)
    pre, post = ends
    assert pre[-1] < pre[0]
    assert post[-1] > 2 * pre[-1]


def test_the_translator_is_trained_as_the_recurrent_one():
    torch.manual_seed(0)
    model = ParallelTranslator(*N_IDS, 16, 2, 1).double().eval()
    lines, _ = day_lines(6, generator())
    source, target = as_ids(lines)
    logits = model(source, target)
    assert logits.shape == (6, target.shape[1] + 1, N_IDS[1])
    padded = torch.nn.functional.pad(source, (0, 4))
    torch.testing.assert_close(model(padded, target), logits)
    written = model.translate(source, 7)
    before = torch.zeros(6, 0, dtype=torch.int64)
    for i in range(7):
        next_ids = model(source, before)[:, -1].argmax(-1)
        over = (written[:, :i] == 0).any(1)
        assert written[:, i].equal(torch.where(over, 0, next_ids))
        before = torch.cat([before, next_ids[:, None]], dim=1)
        if (before[:, :-1] == 0).any():
            break  # what follows an end is not asked again
    with pytest.raises(ValueError, match="ids from 0 to"):
        model(source + 90, target)


def test_the_translator_learns():
    def build():
        return ParallelTranslator(*N_IDS, 16, 2, 1)

    run = train(build, days, rate=0.01, steps=40, batch=16, judge=whole_lines)
    assert run.losses[-1] < 0.6 * run.losses[0]
