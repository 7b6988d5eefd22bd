"""Chapter 21: the real model with fewer keys, on a small one; and what is kept of it."""

import pytest
import torch

from attncourse.circuits import sink_mask
from attncourse.data import kept
from attncourse.llama import Llama, LlamaConfig
from attncourse.tasks import some_keys
from attncourse.tasks.sinks import SINK_TEXTS, masked_loss
from attncourse.tasks.variant_contests import at_best_rates
from helpers.project import ROOT

IDS = torch.randint(41, (23,), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def model() -> Llama:
    torch.manual_seed(2)
    made = Llama(LlamaConfig(41, 32, 12, 6, 2, 4, 17))
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return made.eval().requires_grad_(False)


def test_one_mask_for_all_layers_equals_the_models_mask(model):
    mask = sink_mask(23, 5, 1)
    expected = masked_loss(model, IDS, mask)
    assert some_keys.loss_by_layer_masks(model, IDS, [mask] * 4) == pytest.approx(
        expected, abs=1e-3
    )


def test_unrestricted_layers_change_no_loss(model):
    rows = some_keys.layered_losses(model, IDS, width=5, every=(1, 2, 4))
    assert [row["whole layers"] for row in rows] == [4, 2, 1, 0]
    full_loss = masked_loss(model, IDS)
    assert rows[0]["window"] == pytest.approx(full_loss, abs=1e-3)
    assert rows[0]["window and first"] == pytest.approx(full_loss, abs=1e-3)
    near = masked_loss(model, IDS, sink_mask(23, 5, 0))
    assert rows[-1]["window"] == pytest.approx(near, abs=1e-3)
    assert len({row["window"] for row in rows}) == 4


def test_choosing_all_keys_changes_no_loss(model):
    full_loss = masked_loss(model, IDS)
    few, all_keys = some_keys.chosen_losses(model, IDS, (3, 23))
    for way in ("its own weights", "window", "random"):
        assert all_keys[way] == pytest.approx(full_loss, abs=1e-3)
        assert few[way] != pytest.approx(full_loss, abs=1e-3)


def test_choosing_by_weight_keeps_the_keys_with_most_weight(model):
    masks = []
    for weights in some_keys.mean_weights(model, IDS):
        mask = torch.zeros(23, 23, dtype=torch.bool)
        for query in range(23):
            order = sorted(range(query + 1), key=weights[query].tolist().__getitem__)
            mask[query, order[-3:]] = True
        masks.append(mask)
    (row,) = some_keys.chosen_losses(model, IDS, (3,))
    assert row["its own weights"] == some_keys.loss_by_layer_masks(model, IDS, masks)


def test_weights_are_those_of_the_unrestricted_run(model):
    first = some_keys.mean_weights(model, IDS)[0]
    block = model.blocks[0]
    expected = block.attention.weights(block.norm_1(model.tokens(IDS))).mean(0)
    assert torch.allclose(first, expected)
    assert torch.allclose(first.sum(-1), torch.ones(23))


def test_stored_runs_are_complete_and_of_three_seeds():
    held = kept("today")
    assert held["about"]["command"] == "python benchmarks/today.py"
    assert (ROOT / "attncourse" / "data" / "today.json").stat().st_size < 100_000
    contests = {"norms": 3, "memory": 5, "nothing": 3, "latent": 3}
    contests |= {"memories and whole layers": 5, "lengths": 3}
    for name, contestants in contests.items():
        best = at_best_rates(held[name])
        assert len(best) == contestants
        assert {tuple(run["seed"] for run in runs) for runs in best.values()} == {(0, 1, 2)}
        for contestant in best:
            assert len({run["rate"] for run in held[name] if run["contestant"] == contestant}) >= 3
    assert set(held["some_keys"]["texts"]) == set(SINK_TEXTS)
    for text in held["some_keys"]["texts"].values():
        assert text["layers"][0]["whole layers"] == 30
        assert text["layers"][0]["window"] == text["whole"]


def test_sinks_take_weight_where_no_key_matches():
    """What the page says of the kept runs, as a property of them."""
    for run in at_best_rates(kept("today")["nothing"])["sink"]:
        (((nothing,),), ((asking,),)) = (run[where]["sum"] for where in ("nothing", "asking"))
        assert nothing < 0.2
        assert asking > 0.95


def test_a_corrected_memory_knows_the_last_value():
    best = at_best_rates(kept("today")["memory"])
    for run in best["sum"]:
        assert run["twice"] == pytest.approx(0.5, abs=0.05)
    for run in best["delta"]:
        assert run["twice"] > 0.99


def test_a_whole_layer_makes_small_memories_surer():
    best = at_best_rates(kept("today")["memories and whole layers"])
    worst = {
        name: min(min(run["once"], run["twice"]) for run in runs) for name, runs in best.items()
    }
    assert worst.pop("two memories") < 0.9
    assert min(worst.values()) > 0.97


def test_rotary_layers_fail_at_untrained_distances():
    best = at_best_rates(kept("today")["lengths"])
    level = best.pop("none turned")
    for run in [run for runs in best.values() for run in runs]:
        trained, end = run["places"][1], sum(run["places"][-2:]) / 2
        assert trained < min(level_run["places"][1] for level_run in level) - 0.3
        assert end > max(level_run["places"][-1] for level_run in level) + 0.2
        assert run["clipped"] < trained + 0.2
