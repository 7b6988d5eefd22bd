"""Chapter 21's small models against the package and loops, its tasks against what they say."""

import math

import pytest
import torch
from torch.nn import functional as F

from attncourse.kqv import scaled_dot_product_attention
from attncourse.llama import RotaryAttention
from attncourse.masking import causal_mask
from attncourse.positions import apply_rope
from attncourse.tasks import key_choice, variant_contests, variant_tasks
from attncourse.tasks.variants import (
    RULES,
    LayerOptions,
    VariantAttention,
    VariantLatent,
    VariantMemory,
    VariantModel,
    corrected_memory,
    seen_keys,
    turned,
)
from attncourse.today import LatentAttention, gated_delta_rule, normed_scores, sink_softmax

TEXT = "the cat sat on the mat, and the rat ran. " * 300


def random_tensor(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_plain_variants_are_chapter_18s_attention():
    torch.manual_seed(3)
    variant, package_layer = (
        VariantAttention(24, 6, LayerOptions(n_kv_heads=2)),
        RotaryAttention(24, 6, 2),
    )
    package_layer.load_state_dict(variant.state_dict())
    x = random_tensor(1, 2, 11, 24)
    assert torch.allclose(variant(x), package_layer(x), atol=1e-5)


def test_rotations_are_chapter_11s():
    x = random_tensor(2, 3, 13, 10)
    assert torch.allclose(turned(x), apply_rope(x, torch.arange(13)), atol=1e-5)


def test_distances_above_the_farthest_are_clipped_to_it():
    torch.manual_seed(26)
    layer = VariantAttention(8, 2, LayerOptions(farthest=3))
    x = random_tensor(27, 1, 7, 8)
    q, k = (tensor[0] for tensor in layer.unturned_queries_and_keys(x))  # (h, n, d_head)
    scores = layer.scores(x)[0]
    for i in range(7):
        for j in range(i + 1):
            query = apply_rope(q[:, i : i + 1], torch.tensor([min(i - j, 3)]))[:, 0]
            expected = (query * k[:, j]).sum(-1) / 2  # the root of d_head
            assert torch.allclose(scores[:, i, j], expected, atol=1e-5)


def test_clipping_at_an_unused_distance_changes_nothing():
    torch.manual_seed(28)
    layer, x = VariantAttention(8, 2), random_tensor(29, 2, 7, 8)
    expected = layer(x)
    layer.variant = LayerOptions(farthest=6)
    assert torch.allclose(layer(x), expected, atol=1e-6)


def test_norms_and_sinks_are_the_packages():
    torch.manual_seed(4)
    layer, x = (
        VariantAttention(12, 3, LayerOptions(norm="head", sink=True, turned=False)),
        random_tensor(5, 2, 7, 12),
    )
    with torch.no_grad():
        for parameter in (layer.norm_q.gain, layer.norm_k.gain, layer.sinks):
            parameter.copy_(random_tensor(6, *parameter.shape).abs() + 0.1)
    q, k = (w(x).unflatten(-1, (3, 4)).transpose(-2, -3) for w in (layer.W_q, layer.W_k))
    scores = normed_scores(q, k, layer.norm_q.gain, layer.norm_k.gain, 1e-5)
    assert torch.allclose(layer.scores(x), scores, atol=1e-5)
    expected = sink_softmax(scores, layer.sinks, causal_mask(7))
    assert torch.allclose(layer.weights(x), expected, atol=1e-6)


def test_the_norm_over_all_heads_leaves_one_head_free():
    """Its sum over heads is bounded, a single head's score is not by √d."""
    layer = VariantAttention(12, 3, LayerOptions(norm="width", turned=False))
    with torch.no_grad():
        for w in (layer.W_q, layer.W_k):
            w.weight.zero_()
            w.weight[0, 0] = 100.0
    x = torch.ones(1, 2, 12)
    assert layer.scores(x).abs().max() > math.sqrt(4) * 2


def test_latents_are_the_packages():
    torch.manual_seed(7)
    variant, package_layer = VariantLatent(12, 3, 5, 2), LatentAttention(12, 3, 5, 2)
    with torch.no_grad():
        q = torch.cat([variant.W_q.weight.view(3, 4, 12), variant.W_qr.weight.view(3, 2, 12)], 1)
        package_layer.W_q.weight.copy_(q.flatten(0, 1))
        package_layer.W_c.weight.copy_(variant.W_c.weight)
        package_layer.W_kr.weight.copy_(variant.W_kr.weight)
        package_layer.W_o.weight.copy_(variant.W_o.weight)
        package_layer.W_uk.copy_(variant.W_k.weight.view(3, 4, 5).mT)
        package_layer.W_uv.copy_(variant.W_v.weight.view(3, 4, 5).mT)
    x = random_tensor(8, 2, 9, 12)
    assert torch.allclose(variant(x), package_layer(x), atol=1e-5)


def test_the_parallel_form_of_a_memory_equals_its_loop():
    q, k, v = (random_tensor(seed, 2, 3, 11, 5).double() for seed in (9, 10, 11))
    b, a = (torch.sigmoid(random_tensor(seed, 2, 3, 11, 1)).double() for seed in (12, 13))
    k = F.normalize(k, dim=-1)
    expected = gated_delta_rule(q, k, v, b[..., 0], a[..., 0])
    assert torch.allclose(corrected_memory(q, k, v, b, a), expected, atol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_no_memory_depends_on_later_tokens(rule):
    torch.manual_seed(14)
    layer, x = VariantMemory(12, 3, rule), random_tensor(15, 1, 8, 12)
    changed_later = x.clone()
    changed_later[:, 5:] += 1
    assert torch.allclose(layer(x)[:, :5], layer(changed_later)[:, :5], atol=1e-5)


def test_a_window_sees_its_last_keys():
    assert seen_keys(5, 2).sum(-1).tolist() == [1, 2, 2, 2, 2]
    assert torch.equal(seen_keys(5), causal_mask(5))


def test_queries_ask_for_the_value_written_last():
    ids, answers = variant_tasks.written_twice(
        20, torch.Generator().manual_seed(16), keys=6, n_asked=4
    )
    for row, expected in zip(ids.tolist(), answers.tolist(), strict=True):
        last = {key: value - 6 for key, value in row[:9]}
        asks = [key for key, _ in row[9:]]
        assert [last[key] for key in asks] == expected
        times = [sum(key == ask for key, _ in row[:9]) for ask in asks]
        assert times == [2, 2, 1, 1]


def test_triggers_ask_for_the_letter_before_them():
    ids, after = variant_tasks.backcopy(30, torch.Generator().manual_seed(18), n=24)
    asking = (ids[:, 2:] < variant_tasks.N_TRIGGERS).nonzero()
    assert len(asking) > 10
    for row, t in asking.tolist():
        assert after[row, t + 2] == ids[row, t + 1]


def test_test_letters_are_in_no_training_text():
    task = variant_tasks.NextLetters(TEXT, n=16, rare=5, held=3)
    ids, after = task(5, torch.Generator().manual_seed(19))
    assert torch.equal(ids[:, 1:], after[:, :-1])
    assert len(task.train) + len(task.test) == len(TEXT) // 2000
    assert len(task.test) == len(TEXT) // 2000 // 3


def test_choosing_all_keys_is_full_attention():
    torch.manual_seed(20)
    model = VariantModel(11, 7, [lambda: VariantAttention(8, 2)] * 2, 8)
    indexers = torch.nn.ModuleList([key_choice.Indexer(8) for _ in range(2)])
    ids = torch.randint(11, (3, 9), generator=torch.Generator().manual_seed(21))
    rows = key_choice.losses_by_choice(model, indexers, ids, ids % 7, (2, 9))
    full_loss = rows[0]["loss"]
    for row in rows[5:]:
        assert row["loss"] == pytest.approx(full_loss, abs=1e-4)
    assert {row["way"] for row in rows[1:5]} == set(key_choice.CHOOSERS)


def test_an_indexer_learns_where_a_model_looks():
    torch.manual_seed(22)
    model = VariantModel(11, 7, [lambda: VariantAttention(8, 2)], 8).requires_grad_(False)
    with torch.no_grad():
        model.attentions[0].W_q.weight *= 6

    def task(batch, generator):
        ids = torch.randint(11, (batch, 12), generator=generator)
        return ids, ids % 7

    ids, _ = task(50, torch.Generator().manual_seed(23))
    (target,) = key_choice.looked_at(model, model.inputs(ids))
    caught = []
    for steps in (1, 150):
        (indexer,) = key_choice.train_indexers(model, task, 8, steps=steps, batch=16, rate=0.02)
        index = indexer(model.inputs(ids)[0])
        chosen = key_choice.select_keys(index, 3, seen_keys(12))
        caught.append((target * chosen).sum(-1).mean().item())
    assert caught[1] > caught[0] + 0.05


def test_runs_fitted_together_equal_runs_fitted_alone():
    contest = variant_contests.Contest(
        {"small": lambda: VariantModel(33, 16, [lambda: VariantAttention(8, 2)], 8)},
        lambda batch, generator: variant_tasks.written_twice(batch, generator, keys=16),
        dict,
        seeds=2,
        steps=3,
        batch=4,
    )
    both = variant_contests.fit_together(contest.builds["small"], contest, (0.01, 0.03), None)
    single = variant_contests.fit_together(contest.builds["small"], contest, (0.03,), None)
    assert [run[0] for run in both] == [(0.01, 0), (0.01, 1), (0.03, 0), (0.03, 1)]
    assert both[3][2] == pytest.approx(single[1][2], rel=1e-4)


def test_each_contestant_is_reported_at_its_best_rate():
    runs = [
        {"contestant": name, "rate": rate, "seed": seed, "last_loss": loss}
        for name, losses in {"a": {0.1: 1.0, 0.2: 3.0}, "b": {0.1: 2.0, 0.2: 1.5}}.items()
        for rate, loss in losses.items()
        for seed in (1, 0)
    ]
    best = variant_contests.at_best_rates(runs)
    assert {name: rows[0]["rate"] for name, rows in best.items()} == {"a": 0.1, "b": 0.2}
    assert [row["seed"] for row in best["a"]] == [0, 1]


def test_weights_times_values_give_the_output():
    torch.manual_seed(24)
    layer, x = VariantAttention(12, 3), random_tensor(25, 2, 7, 12)
    q, k = layer.queries_and_keys(x)
    v = layer.W_v(x).unflatten(-1, (3, 4)).transpose(-2, -3)
    mixed = scaled_dot_product_attention(q, k, v, causal_mask(7))
    assert torch.allclose(layer(x), layer.W_o(mixed.transpose(-2, -3).flatten(-2)), atol=1e-5)


def test_a_window_of_48_keys_has_the_loss_of_48_letters():
    """A layer that sees its last 48 keys says of a letter what it says of the last 48 letters."""
    torch.manual_seed(30)
    text = TEXT * 2  # long enough for a piece that no training sees
    n_vocab = variant_contests.letters(text).n_vocab
    model = VariantModel(n_vocab, n_vocab, [lambda: VariantAttention(8, 2)], 8)
    losses = variant_contests.losses_by_place(model, text)
    ids, answers = variant_tasks.NextLetters(text, n=192).held_out(200)
    with torch.no_grad():
        mean_loss = key_choice.loss_and_right(model(ids), answers)["loss"]
        ends = model(ids[:, 1:].unfold(1, 48, 1)[:, -48:].flatten(0, 1))[:, -1]
    assert len(losses["places"]) == 8
    assert sum(losses["places"]) / 8 == pytest.approx(mean_loss, abs=2e-4)
    near = F.cross_entropy(ends, answers[:, -48:].flatten()).item()
    assert losses["window"] == pytest.approx(near, abs=2e-4)
    assert model.attentions[0].variant == LayerOptions()  # the control changes a copy


def test_without_rotation_no_control_changes_the_loss():
    torch.manual_seed(31)
    text = TEXT * 2
    build = variant_contests.position_builds(text)["none turned"]
    losses = variant_contests.losses_by_place(build(), text)
    for control in ("clipped", "window"):
        assert losses[control] == pytest.approx(sum(losses["places"][-2:]) / 2, abs=2e-4)


def test_the_layer_without_rotation_is_the_last_of_four():
    turns = {
        name: [layer.variant.turned for layer in build().attentions]
        for name, build in variant_contests.position_builds(TEXT).items()
    }
    assert turns == {
        "all turned": [True, True, True, True],
        "every fourth not": [True, True, True, False],
        "none turned": [False, False, False, False],
    }


def test_memories_and_whole_layers_are_equally_wide():
    contest = variant_contests.memories_and_whole_layers(16)
    for build in contest.builds.values():
        model = build()
        for layer in model.attentions:
            assert layer.W_q.weight.shape == (32, 32)
            wider = layer.n_heads == 2
            assert wider == (build is contest.builds["two wider memories"])
        ids, answers = contest.task(3, torch.Generator().manual_seed(32))
        assert model(ids).shape == (3, 32, 16)
        assert answers.shape == (3, 8)
