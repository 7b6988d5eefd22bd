"""Measurements of chapter 17: one process a point, and what they are labelled with."""

from __future__ import annotations

import pytest
import torch

from attncourse.tasks import lengths
from attncourse.tasks.narrow_recall import Lookers, learn, losses_by_run


def test_each_point_has_its_row_and_the_naive_memory_is_counted():
    points = [("naive", 1024), ("naive", 512), ("tiled", 1024), ("library", 512)]
    rows = lengths.measure(points)
    assert [(row["method"], row["n"]) for row in rows] == points
    assert all(row["ms"] > 0 for row in rows)
    # Three maps of float32; had both one process, the smaller would seem to take nothing.
    assert rows[0]["peak_mb"] == pytest.approx(3 * 4 * 1024**2 / 1e6, rel=0.35)
    assert rows[1]["peak_mb"] == pytest.approx(3 * 4 * 512**2 / 1e6, rel=0.6)
    assert rows[2]["peak_mb"] < rows[0]["peak_mb"]


def test_a_measurement_that_fails_says_why():
    with pytest.raises(RuntimeError, match="KeyError"):
        lengths.measure([("nobody", 64)])


def test_every_method_returns_a_mixture_of_the_values_shape():
    inputs = [torch.randn(1, 1, 40, lengths.D_HEAD) for _ in range(3)]
    for attend in lengths.METHODS.values():
        assert attend(*inputs).shape == inputs[2].shape


def test_on_a_gpu_it_waits_and_reads_the_gpus_memory(monkeypatch):
    """There is none here: what the measurement asks of one is written down."""
    calls, randn = [], torch.randn

    def most_so_far():
        calls.append("memory")
        return 1_000_000 * calls.count("memory")

    def randn_on_cpu(*shape, device):
        assert device == "cuda"
        return randn(*shape)

    def attend(*inputs):
        calls.append("attend")
        return inputs[2]

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: calls.append("wait"))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", most_so_far)
    monkeypatch.setattr(torch, "randn", randn_on_cpu)
    monkeypatch.setitem(lengths.METHODS, "noted", attend)
    row = lengths.once("noted", 512, "cuda", least=0)
    assert (row["method"], row["n"], row["peak_mb"]) == ("noted", 512, 1.0)
    assert calls[:4] == ["attend", "memory", "attend", "memory"]  # the first one is short
    assert calls[4:] == ["wait", "attend", "wait"] * 3


def test_a_line_has_the_lengths_of_its_method():
    rows = [
        {"method": "naive", "n": 512, "ms": 1.0, "peak_mb": 2.0},
        {"method": "naive", "n": 1024, "ms": 4.0, "peak_mb": 8.0},
        {"method": "tiled", "n": 1024, "ms": 3.0, "peak_mb": 0.0},
    ]
    expected = {"naive": ([512, 1024], [1.0, 4.0]), "tiled": ([1024], [3.0])}
    assert lengths.lines_of(rows, "ms") == expected


def test_operators_distinguish_fused_programs_from_plain_steps():
    x = torch.randn(1, 1, 64, 8)
    names = lengths.operators(lambda: lengths.METHODS["library"](x, x, x))
    assert any("flash" in name for name in names)
    plain = lengths.operators(lambda: lengths.METHODS["naive"](x, x, x))
    assert "_softmax" in plain
    assert not any("flash" in name for name in plain)


def test_the_label_names_the_machine():
    label = lengths.machine()
    assert list(label) == ["machine", "cores", "torch", "date"]
    assert all(label.values())


def test_parallel_runs_have_independent_gradients():
    """The gradient of one run is that of the run alone."""

    def mean(query, key, value):
        return (query @ key.mT).softmax(-1) @ value

    both, alone = Lookers(mean, 3, (4, 9)), Lookers(mean, 3, (9,))
    x, answer = torch.randn(2, 5, 9, 26), torch.randint(10, (2, 5))
    losses_by_run(both(x), answer).sum().backward()
    losses_by_run(alone(x[1:]), answer[1:]).sum().backward()
    for parameter, alone_parameter in zip(both.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad[1:], alone_parameter.grad)


def test_a_softmax_learns_recall_with_two_features():
    def softmax(query, key, value):
        return (query @ key.mT / 2**0.5).softmax(-1) @ value

    best = learn(softmax, 2, rates=(0.1, 1e-9), seeds=1, steps=150, tested=500)
    assert best.rate == 0.1
    assert best.right[0] > 0.9
    assert best.median == best.right[0]
