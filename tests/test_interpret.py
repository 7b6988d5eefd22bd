"""Chapter 14: the package against hand-worked numbers, hooks and loops, and other right answers."""

import copy
import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from attncourse import interpret
from attncourse.bank.interpret.ablate import head_outputs
from attncourse.bank.interpret.cases import SIZES, state_of_gpt
from attncourse.checks import examine
from attncourse.checks.callers.ablation import (
    NAME_OF_COPY,
    NAME_OF_MODEL,
    gpt_of,
    logits_of_changed,
)
from attncourse.checks.trying.outcome import Unusable
from attncourse.gpt import GPT, GPTConfig
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from attncourse.interpret import (
    ablate,
    attention_maps,
    first_token_pattern,
    head_scores,
    induction_pattern,
    previous_token_pattern,
    pronoun_bias,
    rollout,
)
from attncourse.masking import causal_mask
from attncourse.multihead import merge_heads
from helpers.project import ROOT
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


def induction_by_loops(ids):
    n = len(ids)
    pattern = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(1, i + 1):
            pattern[i, j] = ids[j - 1] == ids[i]
    return pattern


def induction_by_shift(ids):
    before = torch.cat([ids.new_full((1,), -1), ids[:-1]])
    n = len(ids)
    return (before[None, :] == ids[:, None]) & (torch.arange(n) <= torch.arange(n)[:, None])


def induction_by_lists(ids):
    words, seen, rows = ids.tolist(), {}, []
    for i, word in enumerate(words):
        if i:
            seen.setdefault(words[i - 1], set()).add(i)
        rows.append([j in seen.get(word, ()) for j in range(len(words))])
    return torch.tensor(rows)


def induction_by_numpy(ids):
    ids = ids.numpy()
    same = np.tril(np.equal.outer(ids, ids), -1)  # an earlier token that is equal
    return torch.from_numpy(np.pad(same, ((0, 0), (1, 0)))[:, :-1])


def induction_by_roll(ids):
    pattern = (ids[:, None] == ids.roll(1)).tril()
    pattern[:, 0] = False
    return pattern


def scores_by_loops(maps, pattern):
    rows = [i for i in range(len(pattern)) if pattern[i].any()]
    total = maps[..., 0, 0] * 0
    for i in rows:
        total = total + maps[..., i, pattern[i]].sum(-1)
    return total / len(rows) if rows else total


def scores_by_einsum(maps, pattern):
    n_rows = pattern.any(1).sum()
    totals = torch.einsum("...ij,ij->...", maps, pattern.to(maps.dtype))
    return totals / n_rows if n_rows else totals


def scores_by_rows(maps, pattern):
    rows = pattern.any(-1)
    if not rows.any():
        return maps.new_zeros(maps.shape[:-2]) + 0 * maps.sum((-1, -2))
    return (maps[..., rows, :] * pattern[rows]).sum(-1).mean(-1)


def scores_by_where(maps, pattern):
    falls = torch.where(pattern, maps, 0).sum((-1, -2))
    return falls / max(1, int(pattern.any(-1).sum()))


def scores_in_float64(maps, pattern):
    falls = maps.double().masked_fill(~pattern, 0).flatten(-2).sum(-1)
    return (falls / pattern.any(-1).sum().clamp(min=1)).to(maps.dtype)


def columns_of_head(attention, head):
    d_head = attention.d_model // attention.n_heads
    return slice(head * d_head, (head + 1) * d_head)


def outputs_by_hook(model, layer, ids):
    """What the heads hand to W_o, seen by a hook that is taken away again."""
    seen = []
    W_o = model.blocks[layer].attention.W_o
    hook = W_o.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach()))
    with torch.no_grad():
        model(ids)
    hook.remove()
    return seen[0]


def ablate_by_hook(model, layer, head, how="zero", ids=None):
    """The copy's W_o gets something else; no weight changes."""
    changed = copy.deepcopy(model)
    attention = changed.blocks[layer].attention
    columns, replacement = columns_of_head(attention, head), 0.0
    if how == "mean":
        replacement = outputs_by_hook(changed, layer, ids).flatten(0, -2).mean(0)[columns]

    def replace(module, inputs):
        heads = inputs[0].clone()
        heads[..., columns] = replacement
        return (heads,)

    attention.W_o.register_forward_pre_hook(replace)
    return changed


class WithoutHead(nn.Module):
    """The model itself inside, with a hook on for as long as it runs."""

    def __init__(self, model, layer, head, replacement):
        super().__init__()
        self.inner, self.layer, self.head, self.said = model, layer, head, replacement

    def forward(self, ids):
        attention = self.inner.blocks[self.layer].attention
        columns = columns_of_head(attention, self.head)

        def replace(module, inputs):
            heads = inputs[0].clone()
            heads[..., columns] = self.said
            return (heads,)

        hook = attention.W_o.register_forward_pre_hook(replace)
        try:
            return self.inner(ids)
        finally:
            hook.remove()


def ablate_by_wrapper(model, layer, head, how="zero", ids=None):
    replacement = 0.0
    if how == "mean":
        columns = columns_of_head(model.blocks[layer].attention, head)
        replacement = outputs_by_hook(model, layer, ids)[..., columns].flatten(0, -2).mean(0)
    return WithoutHead(model, layer, head, replacement)


def ablate_by_values(model, layer, head, how="zero", ids=None):
    """Values of nothing but a bias: weights that sum to 1 hand that on."""
    changed = copy.deepcopy(model)
    attention = changed.blocks[layer].attention
    columns = columns_of_head(attention, head)
    if attention.W_v.bias is None:
        attention.W_v.bias = nn.Parameter(torch.zeros_like(attention.W_v.weight[:, 0]))
    with torch.no_grad():
        attention.W_v.weight[columns] = 0
        attention.W_v.bias[columns] = 0
        if how == "mean":
            mean = outputs_by_hook(model, layer, ids).flatten(0, -2).mean(0)
            attention.W_v.bias[columns] = mean[columns]
    return changed


def ablate_by_new_layer(model, layer, head, how="zero", ids=None):
    """A new W_o in a copy made of a state."""
    changed = GPT(model.config).to(model.tokens.weight.dtype)
    changed.load_state_dict(model.state_dict())
    attention = changed.blocks[layer].attention
    keep = torch.ones(attention.d_model, dtype=attention.W_o.weight.dtype)
    keep[columns_of_head(attention, head)] = 0
    old, bias = attention.W_o.weight.detach(), attention.W_o.bias
    add = torch.zeros(attention.d_model, dtype=old.dtype) if bias is None else bias.detach()
    if how == "mean":
        mean = outputs_by_hook(model, layer, ids).reshape(-1, attention.d_model).mean(0)
        add = add + old @ (mean * (1 - keep))
    attention.W_o = nn.Linear(attention.d_model, attention.d_model, dtype=old.dtype)
    attention.W_o.weight = nn.Parameter(old * keep)
    attention.W_o.bias = nn.Parameter(add)
    return changed.eval()


def ablate_by_forward(model, layer, head, how="zero", ids=None):
    """The copy's attention gets another forward."""
    changed = copy.deepcopy(model)
    attention = changed.blocks[layer].attention
    columns = columns_of_head(attention, head)
    mean = None
    if how == "mean":
        mean = outputs_by_hook(model, layer, ids).flatten(end_dim=-2).mean(0)[columns]

    def forward(query, key=None, value=None, mask=None):
        q, k, v = attention.views(query, key, value)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        heads = merge_heads(weights @ v)
        keep = torch.ones(heads.shape[-1], dtype=heads.dtype)
        keep[columns] = 0
        heads = heads * keep
        if mean is not None:
            heads[..., columns] += mean
        return attention.W_o(heads)

    attention.forward = forward
    return changed


def rollout_by_loops(maps, residual=0.5):
    *batch, n_layers, _, n, _ = maps.shape
    flow = torch.eye(n, dtype=maps.dtype).expand(*batch, n, n)
    for i in range(n_layers):
        layer = maps[..., i, :, :, :].mean(dim=-3)
        flow = residual * flow + (1 - residual) * torch.matmul(layer, flow)
    return flow


def rollout_by_heads(maps, residual=0.5):
    """Each head with its share of the stream; then their mean."""
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    layers = (residual * eye + (1 - residual) * maps).mean(-3)
    return (
        torch.linalg.multi_dot([*layers.unbind(0)[::-1], eye])
        if layers.ndim == 3
        else product(layers)
    )


def product(layers):
    flow = layers[..., -1, :, :]
    for i in range(layers.shape[-3] - 2, -1, -1):  # from the last one down
        flow = flow @ layers[..., i, :, :]
    return flow


def rollout_renormalised(maps, residual=0.5):
    """As the authors' code does: rows are brought back to 1, which they are already."""
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    layers = (1 - residual) * maps.mean(-3) + residual * eye
    return product(layers / layers.sum(-1, keepdim=True))


def rollout_by_einsum(maps, residual=0.5):
    flow = torch.eye(maps.shape[-1], dtype=maps.dtype).expand(*maps.shape[:-4], -1, -1)
    for i in range(maps.shape[-4]):
        mixed = torch.einsum("...hij,...jk->...ik", maps[..., i, :, :, :], flow)
        flow = residual * flow + (1 - residual) * mixed / maps.shape[-3]
    return flow


def rollout_recursively(maps, residual=0.5):
    if maps.ndim > 4:
        return torch.stack([rollout_recursively(model_maps, residual) for model_maps in maps])
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    below = eye if len(maps) == 1 else rollout_recursively(maps[:-1], residual)
    return torch.lerp(maps[-1].mean(0), eye, residual) @ below


def bias_by_logits(model, contexts, she, he):
    with torch.no_grad():
        last = torch.stack([model(context)[-1] for context in contexts])
    return (last[:, she] - last[:, he]).mean().item()


def bias_by_probabilities(model, contexts, she, he):
    log_ratios = []
    for context in contexts:
        p = torch.softmax(model(context).detach(), dim=-1)[len(context) - 1]
        log_ratios.append(math.log(p[she]) - math.log(p[he]))
    return float(np.mean(log_ratios))


def bias_by_two_means(model, contexts, she, he):
    with torch.no_grad():
        logs = [torch.log_softmax(model(c[None])[0, -1], -1) for c in contexts]
    return sum(x[she].item() for x in logs) / len(logs) - sum(x[he].item() for x in logs) / len(
        logs
    )


def bias_by_padding(model, contexts, she, he):
    """All at once, padded behind, where a causal model does not look."""
    n = torch.tensor([len(c) for c in contexts])
    ids = torch.zeros(len(contexts), int(n.max()), dtype=torch.long)
    for row, c in zip(ids, contexts, strict=True):
        row[: len(c)] = c
    with torch.no_grad():
        last = model(ids)[torch.arange(len(n)), n - 1]
    return (last[:, she] - last[:, he]).mean()


def bias_by_odds(model, contexts, she, he):
    with torch.no_grad():
        pairs = torch.stack([model(c)[-1, [she, he]] for c in contexts]).softmax(-1)
    return float(torch.log(pairs[:, 0] / pairs[:, 1]).sum() / len(pairs))


def induction_by_memory(ids):
    """What came after each token so far, in a dictionary that grows from row to row."""
    came_after, rows = {}, []
    for i, token in enumerate(ids.tolist()):
        if i:
            came_after.setdefault(int(ids[i - 1]), set()).add(i)
        rows.append([j in came_after.get(token, ()) for j in range(len(ids))])
    return torch.tensor(rows)


def ablate_by_correction(model, layer, head, how="zero", ids=None):
    """What W_o says is put right behind it: the head's part goes, its mean's comes."""
    changed = copy.deepcopy(model)
    attention = changed.blocks[layer].attention
    d_head = attention.W_o.in_features // attention.n_heads
    head_columns = slice(head * d_head, (head + 1) * d_head)
    columns, handed = attention.W_o.weight[:, head_columns].detach(), []
    if how == "mean":
        hook = attention.W_o.register_forward_hook(
            lambda layer, inputs, out: handed.append(inputs[0])
        )
        with torch.no_grad():
            changed(ids)
        hook.remove()
    constant = (
        handed[0][..., head_columns].flatten(0, -2).mean(0) if handed else columns.new_zeros(d_head)
    )
    attention.W_o.register_forward_hook(
        lambda layer, inputs, out: out + (constant - inputs[0][..., head_columns]) @ columns.T
    )
    return changed


RIGHT = {
    "interpret.induction_pattern": [
        induction_by_loops,
        induction_by_shift,
        induction_by_lists,
        induction_by_numpy,
        induction_by_roll,
        induction_by_memory,
    ],
    "interpret.head_scores": [
        scores_by_loops,
        scores_by_einsum,
        scores_by_rows,
        scores_by_where,
        scores_in_float64,
    ],
    "interpret.ablate": [
        ablate_by_hook,
        ablate_by_wrapper,
        ablate_by_values,
        ablate_by_new_layer,
        ablate_by_forward,
        ablate_by_correction,
    ],
    "interpret.rollout": [
        rollout_by_loops,
        rollout_by_heads,
        rollout_renormalised,
        rollout_by_einsum,
        rollout_recursively,
    ],
    "interpret.pronoun_bias": [
        bias_by_logits,
        bias_by_probabilities,
        bias_by_two_means,
        bias_by_padding,
        bias_by_odds,
    ],
}


# --- models ----------------------------------------------------------------------------------


def small(seed=0, **changed):
    config = SIZES | changed
    return gpt_of(config, state_of_gpt(np.random.default_rng(seed), config))


def ids_of(*shape, seed=1):
    return torch.randint(11, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_argument_is_built_afresh_for_each_call(tied):
    config = SIZES | {"tied": tied}
    state = {name: x.float() for name, x in state_of_gpt(np.random.default_rng(5), config).items()}
    built = GPT(GPTConfig(**config)).eval()
    built.load_state_dict(state | ({"out.weight": state["tokens.weight"]} if tied else {}))
    ids = ids_of(2, 6)
    model, second_model = gpt_of(config, state), gpt_of(config, state)
    assert model(ids).equal(built(ids))
    for block in model.blocks:
        block.register_forward_hook(lambda block, inputs, x: 0 * x)
        block.attention.W_o = nn.Identity()
        block.mine = True
    model.positions = nn.Identity()
    model.out.weight = nn.Parameter(torch.zeros_like(model.out.weight))
    assert second_model(ids).equal(built(ids))
    assert gpt_of(config, state)(ids).equal(built(ids))
    assert not any(hasattr(block, "mine") for block in second_model.blocks)


def test_maps_are_those_that_the_blocks_use():
    model, ids = small(n_layers=3), ids_of(2, 5, 7)
    seen = []
    for block in model.blocks:
        block.attention.register_forward_pre_hook(
            lambda attention, inputs, options: seen.append(
                attention.weights(inputs[0], mask=options["mask"])
            ),
            with_kwargs=True,
        )
    model(ids)
    expected = torch.stack(seen, dim=-4)
    maps = attention_maps(model, ids)
    assert maps.shape == (2, 5, 3, 3, 7, 7)
    torch.testing.assert_close(maps, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))
    assert not maps[..., ~causal_mask(7)].any()
    assert attention_maps(model, ids[0, 0]).shape == (3, 3, 7, 7)


def test_maps_of_transformers_gpt2():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=11, n_positions=9, n_embd=12, n_layer=2, n_head=3, attn_implementation="eager"
    )
    library_model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in library_model.parameters():
            parameter.add_(torch.randn_like(parameter) / 3)
    ids = ids_of(2, 7)
    with torch.no_grad():
        expected = torch.stack(library_model(ids, output_attentions=True).attentions, dim=-4)
    torch.testing.assert_close(
        attention_maps(GPT.from_huggingface(library_model), ids), expected, rtol=0, atol=1e-4
    )


# --- patterns and scores ---------------------------------------------------------------------


def test_the_induction_pattern_by_hand():
    pattern = induction_pattern(torch.tensor([7, 2, 9, 7, 7]))
    expected = torch.zeros(5, 5, dtype=torch.bool)
    expected[3, 1] = expected[4, 1] = expected[4, 4] = True
    assert torch.equal(pattern, expected)


def test_the_patterns_of_positions_by_hand():
    assert previous_token_pattern(3).int().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert first_token_pattern(3).int().tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    for pattern in previous_token_pattern(1), first_token_pattern(1):
        assert pattern.tolist() == [[False]]


def test_a_score_by_hand():
    maps = torch.tensor([[1.0, 0, 0], [0.75, 0.25, 0], [0.5, 0.25, 0.25]])[None, None]
    assert head_scores(maps, previous_token_pattern(3)).item() == 0.5  # (0.75 + 0.25) / 2
    assert head_scores(maps, first_token_pattern(3)).item() == 0.625
    nowhere = torch.zeros(3, 3, dtype=torch.bool)
    assert head_scores(maps, nowhere).tolist() == [[0.0]]


# --- ablation --------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("how", ["zero", "mean"])
def test_ablation_is_what_a_hook_on_W_o_does(how, bias):
    model, ids = small(bias=bias), ids_of(2, 7)
    over = ids_of(3, 5, seed=2)
    for layer in range(2):
        for head in range(3):
            arguments = (model, layer, head, how, over)
            expected = ablate_by_hook(*arguments)(ids)
            torch.testing.assert_close(ablate(*arguments)(ids), expected, rtol=0, atol=1e-10)


def test_ablation_does_not_change_the_given_model():
    model, ids = small(), ids_of(2, 7)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    changed = ablate(model, 0, 1, "mean", ids)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert changed.out.weight is changed.tokens.weight is not model.tokens.weight
    shared = {p.data_ptr() for p in model.parameters()}
    assert not shared & {p.data_ptr() for p in changed.parameters()}
    changed.tokens.weight.data.zero_()
    assert torch.equal(model.out.weight, before["out.weight"])


def test_heads_are_independent_of_each_other():
    model, ids = small(n_layers=1), ids_of(7)
    one_by_one = ablate(ablate(ablate(model, 0, 0), 0, 1), 0, 2)
    silent = copy.deepcopy(model)
    silent.blocks[0].attention.W_o.weight.data.zero_()
    torch.testing.assert_close(one_by_one(ids), silent(ids))


def test_replacing_a_token_by_its_own_mean_changes_nothing():
    model, ids = small(n_layers=1), ids_of(1)
    torch.testing.assert_close(ablate(model, 0, 2, "mean", ids)(ids), model(ids))


def test_the_caller_refuses_results_that_are_no_module():
    config = SIZES | {"n_layers": 1}
    state = state_of_gpt(np.random.default_rng(0), config)
    with pytest.raises(Unusable, match="returned int"):
        logits_of_changed(lambda *arguments: 3, config, [(0, 0)], ids_of(4), **state)
    logits = logits_of_changed(ablate, config, [(0, 0)], ids_of(4), **state)
    assert list(logits) == [NAME_OF_COPY, NAME_OF_MODEL]
    assert not torch.allclose(logits[NAME_OF_COPY], logits[NAME_OF_MODEL])


def test_an_answer_that_changes_the_given_model_fails():
    def careless(model, layer, head, how="zero", ids=None):
        model.blocks[layer].attention.W_o.weight.data[:, :4] = 0
        return model

    verdict = examine("interpret.ablate", careless, seed=1)
    assert not verdict.passed
    failed = [c.name for c in verdict.criteria if not c.passed]
    assert "does not change its arguments" in failed


def test_the_banks_maps_are_the_packages():
    model, ids = small(), ids_of(2, 5)
    for layer in range(2):
        expected = interpret.head_output(model, layer, ids)
        torch.testing.assert_close(head_outputs(model, layer, ids), expected)
        torch.testing.assert_close(outputs_by_hook(model, layer, ids), expected)


# --- rollout ---------------------------------------------------------------------------------


def test_rollout_by_hand():
    first, second = torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[1.0, 0], [0.5, 0.5]])
    maps = torch.stack([first, second])[:, None]
    assert rollout(maps).tolist() == [[1.0, 0.0], [0.625, 0.375]]
    assert rollout(maps, residual=0).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert rollout(maps, residual=1).tolist() == torch.eye(2).tolist()


def test_rows_of_rollout_sum_to_1():
    maps = attention_maps(small(n_layers=3), ids_of(4, 7))
    flow = rollout(maps, 0.3)
    torch.testing.assert_close(flow.sum(-1), torch.ones(4, 7).double())
    assert (flow >= 0).all()


# --- pronoun_bias ----------------------------------------------------------------------------


def test_pronoun_bias_by_hand():
    def model(ids):
        return torch.tensor([0.0, 1.0, 3.0]).expand(len(ids), 3) * len(ids)

    bias = pronoun_bias(model, [torch.tensor([0]), torch.tensor([1, 2, 0])], she=1, he=2)
    assert bias == pytest.approx(-4.0)  # the mean of −2 and −6
    assert pronoun_bias(model, [[0, 1]], she=2, he=2) == 0.0


# --- bad input -------------------------------------------------------------------------------

MAPS = torch.rand(2, 3, 5, 5)
BAD_INPUT = [
    (lambda: ablate(small(), 2, 0), "layer: expected a whole number from 0 to 1, got 2"),
    (lambda: ablate(small(), -1, 0), "layer: expected a whole number from 0 to 1, got -1"),
    (lambda: ablate(small(), 0, 3), "head: expected a whole number from 0 to 2, got 3"),
    (lambda: ablate(small(), 0, True), "head: expected a whole number from 0 to 2, got True"),
    (lambda: ablate(small(), 0, 1.0), "head: expected a whole number from 0 to 2, got 1.0"),
    (lambda: ablate(small(), 0, 0, "median"), 'how: expected "zero" or "mean", got'),
    (lambda: ablate(small(), 0, 0, "mean"), "ids: expected tokens to take the mean over"),
    (lambda: ablate(small(), 0, 0, "mean", torch.tensor([11])), "from 0 to 10, got 11"),
    (lambda: ablate(nn.Linear(2, 2), 0, 0), "model: expected a GPT or a Llama, got Linear"),
    (lambda: ablate("gpt", 0, 0), "model: expected a GPT or a Llama, got str"),
    (lambda: attention_maps(small(), torch.zeros(10).long()), "at most 9 tokens, got 10"),
    (lambda: attention_maps(small(), torch.tensor([[3, -1]])), r"got -1 at index \(0, 1\)"),
    (lambda: attention_maps(small(), torch.rand(3)), "ids: expected a tensor of whole numbers"),
    (lambda: attention_maps(3, ids_of(3)), "model: expected a GPT or a Llama, got int"),
    (lambda: head_scores(MAPS, torch.ones(4, 4).bool()), r"expected shape \(5, 5\), got \(4, 4\)"),
    (lambda: head_scores(MAPS, torch.ones(5, 5)), "pattern: expected a boolean tensor, got dtype"),
    (lambda: head_scores(MAPS, [[True]]), "pattern: expected a boolean tensor, got list"),
    (lambda: head_scores(MAPS[0, 0], torch.ones(5, 5).bool()), "maps: expected shape"),
    (lambda: head_scores(torch.rand(2, 3, 5, 4), torch.ones(5, 5).bool()), "the same n"),
    (
        lambda: induction_pattern(torch.rand(3)),
        "ids: expected a tensor of whole numbers, got dtype",
    ),
    (lambda: induction_pattern([1, 2]), "ids: expected a tensor of whole numbers, got list"),
    (lambda: induction_pattern(ids_of(2, 3)), r"ids: expected shape \(n\), got \(2, 3\)"),
    (lambda: induction_pattern(ids_of(0)), r"ids: expected at least one entry .* got \(0,\)"),
    (lambda: previous_token_pattern(0), "n: expected a whole number of at least 1, got 0"),
    (lambda: first_token_pattern(2.5), "n: expected a whole number of at least 1, got 2.5"),
    (lambda: rollout(MAPS, 1.5), "residual: expected a share from 0 to 1, got 1.5"),
    (lambda: rollout(MAPS, math.nan), "residual: expected a share from 0 to 1, got nan"),
    (lambda: rollout(MAPS[0, 0]), "maps: expected shape"),
    (lambda: pronoun_bias(small(), [], 1, 2), "contexts: expected one context or more, got none"),
    (lambda: pronoun_bias(small(), [[]], 1, 2), "expected sequences of one id or more"),
    (lambda: pronoun_bias(small(), [ids_of(2, 3)], 1, 2), r"got shape \(2, 3\)"),
    (
        lambda: pronoun_bias(small(), [[1]], 11, 2),
        "she: expected a whole number from 0 to 10, got 11",
    ),
    (
        lambda: pronoun_bias(small(), [[1]], 1, -1),
        "he: expected a whole number from 0 to 10, got -1",
    ),
    (lambda: pronoun_bias(small(), [[99]], 1, 2), "from 0 to 10, got 99"),
]


test_bad_input_is_refused = refused(BAD_INPUT)


# --- through the judge -----------------------------------------------------------------------

RETURNS_MODEL_ITSELF = "def ablate(model, layer, head, how='zero', ids=None):\n    return model\n"
FOLDER = ROOT / "solutions" / "14_interpret"
HOOK_ANSWER = """
def ablate(model, layer, head, how="zero", ids=None):
    changed = copy.deepcopy(model)
    attention = changed.blocks[layer].attention
    d_head = attention.d_model // attention.n_heads
    own, said, seen = slice(head * d_head, (head + 1) * d_head), 0.0, []
    if how == "mean":
        hook = attention.W_o.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        changed(ids)
        hook.remove()
        said = seen[0].detach().flatten(0, -2).mean(0)[own]

    def replace(module, given):
        heads = given[0].clone()
        heads[..., own] = said
        return (heads,)

    attention.W_o.register_forward_pre_hook(replace)
    return changed
"""


@pytest.mark.parametrize(
    ("answer", "points"), [(HOOK_ANSWER, (10, 1)), (RETURNS_MODEL_ITSELF, (0, 0))]
)
def test_models_can_be_passed_to_graded_answers(answer, points):
    """The model of a check and of a hidden test lives beside the submission, hooks and all."""
    data = (FOLDER / "14_interpret.ipynb").read_bytes()
    assignment, content = Assignment("14_interpret", read_cells(data)), json.loads(data)
    for cell in content["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "ablate":
            cell["source"] = "".join(cell["source"]) + "\n" + answer
    report = grade_submission(
        json.dumps(content).encode(), assignment, limits=Limits(submission=90), seed=3
    )
    earned = tuple(report.cells[f"{kind}_ablate"].points for kind in ("points", "hidden"))
    assert earned == points
    assert report.cells["hidden_pronoun_bias"].points == 1
