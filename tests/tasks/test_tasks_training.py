"""How pages train: Adam in one row, runs side by side, a GRU for both."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from execution import for_small_models
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attncourse.kqv import AttentionHead, scaled_dot_product_attention
from attncourse.scoring import AdditiveScore
from attncourse.tasks import lengths
from attncourse.tasks.adam import Adam
from attncourse.tasks.copying import Reader, copy
from attncourse.tasks.days import N_IDS, days, whole_lines
from attncourse.tasks.gru import GRU
from attncourse.tasks.little_language import NextWordReader, guess_next
from attncourse.tasks.parallel_translator import ParallelTranslator
from attncourse.tasks.runs import UNASKED, classes, mean_surprise
from attncourse.tasks.side_by_side import train_side_by_side
from attncourse.tasks.training import contest, train
from attncourse.tasks.translator import Seq2Seq
from attncourse.tasks.two_lookups import answering, explained, two_colours
from helpers.project import ROOT


def small_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2, bias=False)).double()


def training_loss(module: nn.Module, seed: int) -> torch.Tensor:
    """A loss to go down, with gradients of order one that differ from step to step."""
    x = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return (module(x) - x[:, :2].exp()).square().sum()


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_adam_is_the_librarys(decay):
    package_net, torch_net = small_network(), small_network()
    package_net[0].bias.requires_grad_(False)
    torch_net[0].bias.requires_grad_(False)
    adam = Adam(package_net.parameters(), 0.05, betas=(0.8, 0.95), eps=1e-3, decay=decay)
    library = torch.optim.AdamW(
        torch_net.parameters(), lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=decay
    )
    for step in range(1, 13):
        library.param_groups[0]["lr"] = 0.05 / step
        for module, optimizer in ((package_net, adam), (torch_net, library)):
            optimizer.zero_grad()
            training_loss(module, step).backward()
        adam.step(1 / step)
        library.step()
    for parameter, library_parameter in zip(
        package_net.parameters(), torch_net.parameters(), strict=True
    ):
        torch.testing.assert_close(parameter, library_parameter)
    assert not package_net[0].weight.equal(small_network()[0].weight)


def test_each_run_has_its_rate():
    start = torch.randn(2, 3, 4, dtype=torch.float64)
    together = start.clone().requires_grad_(), torch.ones(2, 1).double().requires_grad_()
    adam = Adam(together, [0.1, 0.01], decay=0.5)
    alone = [(start[i].clone().requires_grad_(), torch.ones(1).double().requires_grad_())
             for i in range(2)]  # fmt: skip
    others = [
        Adam(single, rate, decay=0.5) for single, rate in zip(alone, (0.1, 0.01), strict=True)
    ]
    for _ in range(5):
        for optimizer, (a, b) in ((adam, together), *zip(others, alone, strict=True)):
            optimizer.zero_grad()
            (a.sin().sum() + (b**3).sum()).backward()
            optimizer.step()
    for i, single in enumerate(alone):
        for stacked, part in zip(together, single, strict=True):
            torch.testing.assert_close(stacked[i], part)


def test_the_mean_surprise_is_the_librarys_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 7, 11, generator=generator, dtype=torch.float64, requires_grad=True)
    answer = torch.randint(11, (5, 7), generator=generator)
    answer[1, 3:] = UNASKED
    surprise = mean_surprise(logits, answer)
    cross_entropy = F.cross_entropy(logits.flatten(0, 1), answer.flatten(), ignore_index=UNASKED)
    torch.testing.assert_close(surprise, cross_entropy)
    (gradient,), (library_gradient,) = (
        torch.autograd.grad(loss, logits) for loss in (surprise, cross_entropy)
    )
    torch.testing.assert_close(gradient, library_gradient)


def test_training_does_not_import_the_compiler():
    code = (
        "import sys, torch; from torch import nn; from attncourse.tasks.training import contest\n"
        "def coin(batch, gen):\n"
        "    x = torch.randn(batch, 3, 1, generator=gen)\n"
        "    return x, (x[:, -1] > 0).long()\n"
        "contest(coin, {'line': lambda: nn.Linear(1, 2)}, steps=3)\n"
        "sys.exit(len({'torch._dynamo', 'sympy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_for_small_models_kernels_use_narrow_registers(tmp_path):
    cpu = tmp_path / "cpuinfo"
    for flags, capability in (("avx2 avx512f", "avx2"), ("avx2 fma", None)):
        cpu.write_text(f"flags : sse {flags}\n")
        assert for_small_models(cpu).get("ATEN_CPU_CAPABILITY") == capability
    assert "ATEN_CPU_CAPABILITY" not in for_small_models(tmp_path / "elsewhere")
    assert for_small_models(cpu)["OMP_NUM_THREADS"] == "1"


def test_measurements_run_without_the_kernel_setting(monkeypatch):
    for name, value in for_small_models().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    seen = []
    completed = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *a, **more: seen.append(more["env"]) or completed)
    assert lengths.measure([("naive", 64)]) == []
    assert "OMP_NUM_THREADS" in seen[0]
    assert not [name for name in seen[0] if name.startswith(("ATEN_", "MALLOC_"))]


def test_no_task_imports_the_librarys_optimizers():
    """Pages that show a training step in the open, or in one piece, use PyTorch's own."""
    sources = list((ROOT / "attncourse" / "tasks").glob("*.py"))
    importing = [
        path.name for path in sources if "torch.optim." in path.read_text(encoding="utf-8")
    ]
    assert len(sources) > 30
    assert importing == []


# What the models of the pages do: masks, several inputs, padding, parts, other measures of right.
TRAINING_CASES = {
    "causal": (lambda: Reader("ALiBi", causal=True, d=8, heads=2), copy(5), classes),
    "padding": (lambda: NextWordReader(d=8), guess_next, classes),
    "recurrent": (
        lambda: Seq2Seq(*N_IDS, 5, AdditiveScore(5, 10, 4), d_embed=3),
        days,
        whole_lines,
    ),
    "parallel": (lambda: ParallelTranslator(*N_IDS, 8, 2, 1), days, whole_lines),
    "colours": (lambda: answering(AttentionHead(32, 32), 0, two_colours), two_colours, explained),
}


@pytest.mark.parametrize("case", TRAINING_CASES)
def test_training_in_parallel_equals_training_one_by_one(case):
    build, task, judge = TRAINING_CASES[case]
    more = {"steps": 6, "batch": 5, "judge": judge}
    together = train_side_by_side(build, task, rates=(0.002, 0.02), seeds=2, **more)
    for rate, runs in together.items():
        for seed, run in zip((0, 1), runs, strict=True):
            alone = train(build, task, rate=rate, seed=seed, **more)
            np.testing.assert_allclose(run.losses, alone.losses, rtol=2e-3)
            np.testing.assert_allclose(run.right, alone.right, atol=0.11)
            assert not any(p.requires_grad and p.grad is not None for p in run.model.parameters())
            for p, single in zip(run.model.parameters(), alone.model.parameters(), strict=True):
                assert p.shape == single.shape


def test_frozen_parameters_stay_in_every_run():
    def build():
        layer = nn.Linear(32, 32)
        layer.bias.requires_grad_(False)
        return nn.Sequential(nn.Embedding(32, 32), layer)

    runs = train_side_by_side(build, copy(5), rates=(0.1, 0.2), seeds=2, steps=3)
    for seed, run in enumerate(runs[0.1]):
        torch.manual_seed(seed)
        fresh = build()
        assert run.model[1].bias.equal(fresh[1].bias)
        assert not run.model[1].weight.equal(fresh[1].weight)


def test_a_contest_is_made_of_the_runs_of_train():
    task, build = copy(5), TRAINING_CASES["causal"][0]
    result = contest(task, {"one": build}, rates=(0.01,), steps=8, batch=6, fade=True)["one"]
    for seed, run in enumerate(result.runs):
        alone = train(build, task, rate=0.01, steps=8, batch=6, fade=True, seed=seed)
        np.testing.assert_allclose(run.losses, alone.losses, rtol=2e-3)


def test_attention_with_a_mask_can_be_mapped_over_runs():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4, 2, 5, 7).double()
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    attend = torch.vmap(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask))
    torch.testing.assert_close(attend(q, k, v), scaled_dot_product_attention(q, k, v, mask))


@pytest.mark.parametrize("both", [False, True])
def test_the_gru_is_the_librarys_with_gradients(both):
    torch.manual_seed(0)
    gru, library_gru = GRU(3, 5, both).double(), nn.GRU(3, 5, batch_first=True, bidirectional=both)
    library_gru = library_gru.double()
    library_gru.load_state_dict(gru.state_dict())
    x = torch.randn(4, 7, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([7, 3, 5, 1])
    states, last = gru(x, lengths=lengths)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    packed, their_last = library_gru(packed)
    their_states, _ = pad_packed_sequence(packed, batch_first=True, total_length=7)
    read = (torch.arange(7) < lengths[:, None])[..., None]
    torch.testing.assert_close(states * read, their_states)
    torch.testing.assert_close(last, their_last)
    heard = torch.randn_like(states)
    of_ours, of_theirs = (
        torch.autograd.grad((s * read * heard).sum() + end.norm(), [x, *layer.parameters()])
        for s, end, layer in ((states, last, gru), (their_states, their_last, library_gru))
    )
    torch.testing.assert_close(of_ours, of_theirs)
    start = torch.randn(1 + both, 4, 5, dtype=torch.float64, requires_grad=True)
    for which in range(2):
        s, library_states = gru(x, start)[which], library_gru(x, start)[which]
        torch.testing.assert_close(s, library_states)
        gradient, library_gradient = (
            torch.autograd.grad(y.cos().sum(), start)[0] for y in (s, library_states)
        )
        torch.testing.assert_close(gradient, library_gradient)
