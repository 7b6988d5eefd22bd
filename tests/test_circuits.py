"""Chapter 19: interventions against runs by hand, on a ``Llama`` and on chapter 13's ``GPT``."""

import copy
import math
import re

import numpy as np
import pytest
import torch
from torch import nn

from attncourse.checks import examine
from attncourse.circuits import (
    cut_edges,
    gap_interval,
    logit_lens,
    patched,
    sink_mask,
    without_edges,
    without_heads,
)
from attncourse.gpt import GPT, GPTConfig
from attncourse.interpret import ablate, attention_maps, residual_stream
from attncourse.llama import Llama, LlamaConfig
from helpers.random_arguments import randomised

N_VOCAB, HEADS, LAYERS = 29, 3, 4


def llama() -> Llama:
    torch.manual_seed(3)
    sizes = {"n_heads": HEADS, "n_kv_heads": 1, "n_layers": LAYERS, "d_ff": 17, "base": 100.0}
    return randomised(Llama(LlamaConfig(N_VOCAB, 23, 12, **sizes))).double()


def gpt() -> GPT:
    torch.manual_seed(3)
    return randomised(GPT(GPTConfig(N_VOCAB, 23, 12, n_heads=HEADS, n_layers=LAYERS))).double()


@pytest.fixture(params=[llama, gpt], ids=["Llama", "GPT"])
def model(request) -> nn.Module:
    return request.param()


def some_ids(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(N_VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def assert_equal(computed: torch.Tensor, right: torch.Tensor) -> None:
    torch.testing.assert_close(computed, right, atol=1e-9, rtol=1e-9)


# --- masks and maps ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "width", "n_sinks"), [(7, 3, 1), (5, 9, 2), (11, 1, 0), (1, 1, 4)])
def test_a_sink_mask_allows_a_window_and_the_first_tokens(n, width, n_sinks):
    right = [[j <= i and (i - j < width or j < n_sinks) for j in range(n)] for i in range(n)]
    mask = sink_mask(n, width, n_sinks)
    assert mask.dtype == torch.bool
    assert mask.tolist() == right


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_the_remaining_edges_of_a_row_sum_to_1(batch):
    scores = torch.randn(*batch, 5, 7, dtype=torch.float64)
    edges = [(0, 3), (0, 6), (4, 0), *((2, j) for j in range(7))]
    original = scores.clone()
    weights = cut_edges(scores, edges)
    right = scores.softmax(-1)
    for query, key in edges:
        right[..., query, key] = 0
    remainder = right.sum(-1, keepdim=True)
    assert_equal(weights, torch.where(remainder > 0, right / remainder, 0.0))
    assert_equal(scores, original)


def test_hidden_keys_have_no_weight_and_finite_gradients():
    scores = torch.tensor([[0.0, 1.0, -math.inf], [2.0, -math.inf, -math.inf]]).requires_grad_()
    weights = cut_edges(scores, [(1, 0)])
    e = math.e / (1 + math.e)
    torch.testing.assert_close(weights, torch.tensor([[1 - e, e, 0.0], [0.0, 0.0, 0.0]]))
    weights[0, 1].backward()
    assert scores.grad.isfinite().all()


# --- parts switched off --------------------------------------------------------------------------


def test_heads_switched_off_are_those_whose_columns_are_0(model):
    ids, heads = some_ids(2, 7), [(0, 1), (3, 0), (3, 2)]
    before = model(ids)
    right = model
    for layer, head in heads:
        right = ablate(right, layer, head)
    with without_heads(model, heads) as changed:
        logits = changed(ids)
    assert_equal(logits, right(ids))
    assert (logits - before).abs().max() > 1e-3
    assert_equal(model(ids), before)  # and it is as it was


def test_hooks_are_removed_where_a_run_fails(model):
    before = model(some_ids(5))
    for context in (without_heads(model, [(0, 0)]), without_edges(model, {(0, 0): [(9, 9)]})):
        with pytest.raises(ValueError, match="expected"), context:
            model(some_ids(5) - N_VOCAB)
    assert_equal(model(some_ids(5)), before)


def stream_with_edges_cut(
    model: nn.Module, ids: torch.Tensor, layer: int, head: int, edges
) -> torch.Tensor:
    """The stream after a layer, one of whose heads is without some edges, from its map."""
    block = model.blocks[layer]
    x = residual_stream(model, ids)[layer]
    read = block.norm_1(x)
    maps = attention_maps(model, ids)[..., layer, :, :, :]
    maps[..., head, :, :] = cut_edges(maps[..., head, :, :].log(), edges)
    if isinstance(model, Llama):
        value = block.attention.for_queries(block.attention.views(read, None)[2])
    else:
        value = block.attention.views(read, None, None)[2]
    x = x + block.attention.W_o((maps @ value).transpose(-3, -2).flatten(-2))
    return x + block.feed_forward(block.norm_2(x))


@pytest.mark.parametrize("batch", [(), (2,)])
def test_cutting_edges_changes_one_head_alone(model, batch):
    ids, edges = some_ids(*batch, 6), [(5, 2), (3, 0)]
    before = model(ids)
    with torch.no_grad(), without_edges(model, {(2, 1): edges}) as changed:
        stream = residual_stream(changed, ids)[3]
    with torch.no_grad():
        assert_equal(stream, stream_with_edges_cut(model, ids, 2, 1, edges))
    assert_equal(model(ids), before)


def test_an_edge_may_be_cut_under_another_mask():
    model, ids = llama(), some_ids(7)
    window = sink_mask(7, 3, 1)
    with without_edges(model, {(0, h): [(6, 0)] for h in range(HEADS)}) as changed:
        logits = changed(ids, mask=window)
    later = model(ids, mask=window)
    assert torch.equal(logits[:6], later[:6])
    assert (logits[6] - later[6]).abs().max() > 1e-3


# --- the residual stream -------------------------------------------------------------------------


def test_the_stream_is_what_runs_from_block_to_block(model):
    ids = some_ids(2, 7)
    stream = residual_stream(model, ids)
    assert stream.shape == (LAYERS + 1, 2, 7, 12)
    x = stream[0]
    for layer, block in enumerate(model.blocks):
        x = block(x, torch.ones(7, 7, dtype=torch.bool).tril())
        assert_equal(stream[layer + 1], x)
    assert_equal(model.out(model.norm(x)), model(ids))


def test_maps_are_those_that_the_model_uses(model):
    ids = some_ids(2, 7)
    maps = attention_maps(model, ids)
    assert maps.shape == (2, LAYERS, HEADS, 7, 7)
    assert_equal(maps.sum(-1), torch.ones(2, LAYERS, HEADS, 7).double())
    with torch.no_grad():
        assert_equal(stream_with_edges_cut(model, ids, 1, 0, []), residual_stream(model, ids)[2])


def test_the_lens_after_the_last_block_is_the_model():
    model, ids = llama(), some_ids(2, 7)
    last = residual_stream(model, ids)[-1]
    assert_equal(logit_lens(last, model.norm.gain, model.out.weight), model(ids))
    x = torch.tensor([[3.0, 4.0]])
    logits = logit_lens(x, torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    torch.testing.assert_close(logits, torch.tensor([[3.0, 8.0]]) / math.sqrt(12.5 + 1e-5))


@pytest.mark.parametrize("layer", range(LAYERS))
@pytest.mark.parametrize("position", [0, 3, 5])
def test_patching_exchanges_one_vector(model, layer, position):
    clean, corrupted = some_ids(2, 6), some_ids(2, 6, seed=1)
    original_state = copy.deepcopy(model.state_dict())
    x = residual_stream(model, corrupted)[layer + 1]
    x[..., position, :] = residual_stream(model, clean)[layer + 1][..., position, :]
    for block in model.blocks[layer + 1 :]:
        x = block(x, torch.ones(6, 6, dtype=torch.bool).tril())
    before = model(corrupted)
    assert_equal(patched(model, clean, corrupted, layer, position), model.out(model.norm(x)))
    assert_equal(model(corrupted), before)
    assert all(torch.equal(original_state[name], p) for name, p in model.state_dict().items())


def test_patching_the_last_vector_gives_the_clean_answer():
    model, clean, corrupted = llama(), some_ids(6), some_ids(6, seed=1)
    logits = patched(model, clean, corrupted, LAYERS - 1, 5)
    assert_equal(logits[5], model(clean)[5])
    assert_equal(logits[:5], model(corrupted)[:5])


# --- intervals -----------------------------------------------------------------------------------


def test_a_95_percent_interval_covers_in_about_93_percent():
    """30 templates of normal gaps: a percentile interval of 95 % covers in 93 % or so."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        shared = rng.normal(size=30)  # what a template does to both words
        gaps, base = shared + rng.normal(0.7, 0.3, 30), shared + rng.normal(0.2, 0.3, 30)
        mean, low, high = gap_interval(gaps, base, n_resamples=300, rng=rng)
        assert low < mean < high
        assert high - low < 0.6  # not that of the templates, 2 · 1.96 · √2/√30 = 1.0
        covered += low <= 0.5 <= high
    assert 0.88 < covered / 300 < 0.98


def test_the_same_generator_gives_the_same_interval():
    gaps = [0.3, 1.2, -0.4, 0.8]
    first, again = (gap_interval(gaps, rng=np.random.default_rng(5)) for _ in range(2))
    assert first == again
    assert first[0] == pytest.approx(0.475)


# --- bad input -----------------------------------------------------------------------------------

IDS = some_ids(6)
BAD_INPUT = {
    "a window of 0": (lambda: sink_mask(5, 0, 1), "width: expected a whole number"),
    "sinks below 0": (
        lambda: sink_mask(5, 2, -1),
        "n_sinks: expected a whole number of at least 0",
    ),
    "a query that is not there": (
        lambda: cut_edges(torch.zeros(2, 3), [(2, 0)]),
        "the query of an edge: expected a whole number from 0 to 1, got 2",
    ),
    "a key that is not there": (
        lambda: cut_edges(torch.zeros(2, 3), [(0, -1)]),
        "the key of an edge: expected a whole number from 0 to 2, got -1",
    ),
    "no pairs": (lambda: cut_edges(torch.zeros(2, 3), [3]), "edges: expected pairs (query, key)"),
    "another layer": (
        lambda: without_heads(llama(), [(LAYERS, 0)]).__enter__(),
        "layer: expected a whole number from 0 to 3, got 4",
    ),
    "another head": (
        lambda: without_edges(llama(), {(0, HEADS): []}).__enter__(),
        "head: expected a whole number from 0 to 2, got 3",
    ),
    "a patch after no block": (
        lambda: patched(llama(), IDS, IDS, -1, 0),
        "layer: expected a whole number from 0 to 3, got -1",
    ),
    "a patch behind the end": (
        lambda: patched(llama(), IDS, IDS, 0, 6),
        "position: expected a whole number from 0 to 5, got 6",
    ),
    "runs of different lengths": (
        lambda: patched(llama(), IDS, IDS[:5], 0, 0),
        "clean, corrupted: expected ids of one shape, got (6,) and (5,)",
    ),
    "a gain of another width": (
        lambda: logit_lens(torch.zeros(3, 4), torch.ones(5), torch.zeros(7, 4)),
        "gain",
    ),
    "no model": (lambda: patched(nn.Linear(2, 2), IDS, IDS, 0, 0), "expected a GPT or a Llama"),
    "one template": (lambda: gap_interval([0.3]), "two templates or more"),
    "a number for pairs": (lambda: cut_edges(torch.zeros(2, 3), 5), "(query, key), got 5"),
    "a score of infinity": (
        lambda: cut_edges(torch.full((2, 3), math.inf), []),
        "scores: expected numbers or −∞, got ∞ at index (0, 0)",
    ),
    "a head alone": (
        lambda: without_heads(llama(), [2]).__enter__(),
        "heads: expected pairs (layer, head), got 2",
    ),
    "heads in no mapping": (
        lambda: without_edges(llama(), [(0, 0)]).__enter__(),
        "edges: expected a mapping from (layer, head) to edges, got list",
    ),
    "a run that is a list": (
        lambda: patched(llama(), [1, 2], IDS, 0, 0),
        "clean: expected a tensor of whole numbers, got list",
    ),
    "a run without tokens": (lambda: patched(llama(), IDS[:0], IDS[:0], 0, 0), "clean: expected"),
    "a gap that is no number": (
        lambda: gap_interval([0.3, math.nan]),
        "gaps: expected finite numbers, got nan at index (1,)",
    ),
    "a baseline of words": (lambda: gap_interval([0.3, 1.0], ["a", "b"]), "baseline: expected"),
    "a level in words": (lambda: gap_interval([0.3, 1.0], level="0.95"), "level: expected"),
    "torch's generator": (
        lambda: gap_interval([0.3, 1.0], rng=torch.Generator()),
        "rng: expected a generator of NumPy, got Generator",
    ),
    "another number in the baseline": (lambda: gap_interval([0.3, 1.0], [0.2]), "(2,) and (1,)"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gets_a_clear_error(case):
    call, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# --- right answers in other styles ---------------------------------------------------------------


def sinks_by_loops(n, width, n_sinks):
    if width < 1:
        raise ValueError("width")
    if n_sinks < 0:
        raise ValueError("n_sinks")
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(i + 1):
            mask[i, j] = i - j < width or j < n_sinks
    return mask


def sinks_by_slices(n, width, n_sinks):
    if not (width > 0 and n_sinks >= 0):
        raise ValueError("expected a window")
    mask = torch.ones(n, n).tril() - torch.ones(n, n).tril(-width)
    mask[:, :n_sinks] = 1
    return mask.tril().bool()


def sinks_by_numpy(n, width, n_sinks):
    if min(width - 1, n_sinks) < 0:
        raise ValueError("expected a window")
    i, j = np.indices((n, n))
    return torch.from_numpy((j <= i) & ((i < j + width) | (j < n_sinks)))


def sinks_by_rows(n, width, n_sinks):
    if width <= 0 or n_sinks <= -1:
        raise ValueError("expected a window")
    rows = []
    for i in range(n):
        seen = {*range(max(0, i - width + 1), i + 1), *range(min(n_sinks, i + 1))}
        rows.append([j in seen for j in range(n)])
    return torch.tensor(rows)


def edges_after_softmax(scores, edges):
    weights = scores.softmax(-1)
    keep = torch.ones_like(weights)
    for query, key in edges:
        keep[..., query, key] = 0
    remaining = weights * keep
    total = remaining.sum(-1, keepdim=True)
    return torch.where(total > 0, remaining / torch.where(total > 0, total, 1), 0)


def edges_by_rows(scores, edges):
    m, n = scores.shape[-2:]
    rows = []
    for i in range(m):
        keys = [j for j in range(n) if (i, j) not in set(edges)]
        row = torch.zeros_like(scores[..., i, :])
        if keys:
            share = scores[..., i, keys].softmax(-1).nan_to_num(0.0)
            row = row.index_add(-1, torch.tensor(keys), share)
        rows.append(row)
    return torch.stack(rows, dim=-2)


def edges_by_index(scores, edges):
    cut = scores.clone()
    if edges:
        query, key = torch.tensor(edges).T
        cut[..., query, key] = -math.inf
    return cut.softmax(-1).nan_to_num(0.0)


def edges_by_exponentials(scores, edges):
    mask = torch.ones_like(scores)
    for query, key in edges:
        mask[..., query, key] = 0
    hidden = scores.masked_fill(mask == 0, -math.inf)
    top = hidden.detach().amax(-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0)
    e = (hidden - top).exp()
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)


def lens_by_library(hidden, gain, table):
    return torch.nn.functional.linear(
        torch.nn.functional.rms_norm(hidden, hidden.shape[-1:], gain, 1e-5), table
    )


def lens_by_einsum(hidden, gain, table):
    size = torch.sqrt((hidden**2).mean(-1) + 1e-5)
    return torch.einsum("...d,d,vd->...v", hidden, gain, table) / size[..., None]


def lens_into_the_table(hidden, gain, table):
    normed = hidden * torch.rsqrt(hidden.pow(2).mean(dim=-1, keepdim=True) + 1e-5)
    return normed @ (table * gain).T


def lens_word_by_word(hidden, gain, table):
    x = hidden / (hidden.square().mean(-1, keepdim=True) + 1e-5) ** 0.5 * gain
    return torch.stack([(x * row).sum(-1) for row in table], dim=-1)


def require_place(model, corrupted, layer, position):
    if layer not in range(len(model.blocks)) or position not in range(corrupted.shape[-1]):
        raise ValueError("no such place")


def patched_by_hooks(model, clean, corrupted, layer, position):
    require_place(model, corrupted, layer, position)
    stored = {}
    block = model.blocks[layer]
    hook = block.register_forward_hook(lambda m, a, x: stored.update(x=x[..., position, :].clone()))
    model(clean)
    hook.remove()

    def write_vector(module, inputs, x):
        x = x.clone()
        x[..., position, :] = stored["x"]
        return x

    hook = block.register_forward_hook(write_vector)
    try:
        return model(corrupted).detach()
    finally:
        hook.remove()


def patched_before_the_next(model, clean, corrupted, layer, position):
    """Block by block; the vector is exchanged by a mask over the positions."""
    require_place(model, corrupted, layer, position)
    clean_stream, corrupted_stream = model.tokens(clean), model.tokens(corrupted)
    at_position = (torch.arange(corrupted.shape[-1]) == position)[:, None]
    for i, block in enumerate(model.blocks):
        clean_stream, corrupted_stream = block(clean_stream), block(corrupted_stream)
        if i == layer:
            corrupted_stream = torch.where(at_position, clean_stream, corrupted_stream)
    return model.out(model.norm(corrupted_stream))


def patched_in_one_batch(model, clean, corrupted, layer, position):
    require_place(model, corrupted, layer, position)

    def exchange_vector(module, inputs, x):
        clean_stream, corrupted_stream = x.unbind(0)
        parts = (
            corrupted_stream[..., :position, :],
            clean_stream[..., position, None, :],
            corrupted_stream[..., position + 1 :, :],
        )
        return torch.stack([clean_stream, torch.cat(parts, dim=-2)])

    hook = model.blocks[layer].register_forward_hook(exchange_vector)
    try:
        return model(torch.stack([clean, corrupted]))[1]
    finally:
        hook.remove()


def patched_by_difference(model, clean, corrupted, layer, position):
    """What differs at the one place is added there."""
    require_place(model, corrupted, layer, position)
    streams = []
    for ids in (clean, corrupted):
        x = model.tokens(ids)
        for block in list(model.blocks)[: layer + 1]:
            x = block(x)
        streams.append(x)
    at_position = torch.zeros(corrupted.shape[-1], 1, dtype=streams[0].dtype)
    at_position[position] = 1
    x = streams[1] * (1 - at_position) + streams[0] * at_position
    for block in list(model.blocks)[layer + 1 :]:
        x = block(x)
    return model.out(model.norm(x))


RIGHT = {
    "circuits.sink_mask": [sinks_by_loops, sinks_by_slices, sinks_by_numpy, sinks_by_rows],
    "circuits.cut_edges": [
        edges_after_softmax,
        edges_by_rows,
        edges_by_index,
        edges_by_exponentials,
    ],
    "circuits.logit_lens": [
        lens_by_library,
        lens_by_einsum,
        lens_into_the_table,
        lens_word_by_word,
    ],
    "circuits.patched": [
        patched_by_hooks,
        patched_before_the_next,
        patched_in_one_batch,
        patched_by_difference,
    ],
}


@pytest.mark.parametrize(
    ("target", "answer"),
    [(target, answer) for target, answers in RIGHT.items() for answer in answers],
)
@pytest.mark.parametrize("seed", range(3))
def test_other_right_answers_pass(target, answer, seed):
    verdict = examine(target, answer, seed=seed)
    assert verdict.passed, str(verdict)


def plain_without_edges(scores, edges):
    """A row of nothing but −∞ is NaN where no edge is cut."""
    return edges_by_exponentials(scores, edges) if edges else scores.softmax(-1)


def sinks_are_queries(n, width, n_sinks):
    if width < 1 or n_sinks < 0:
        raise ValueError("no such mask")
    i, j = torch.arange(n)[:, None], torch.arange(n)
    return (j <= i) & ((i - j < width) | (i < n_sinks))


def patched_with_a_hook_left(model, clean, corrupted, layer, position):
    """The hook that listens to the first run goes on listening."""
    require_place(model, corrupted, layer, position)
    model.blocks[layer].register_forward_hook(lambda block, inputs, x: None)
    return patched_by_hooks(model, clean, corrupted, layer, position)


def patched_and_cleared(model, clean, corrupted, layer, position):
    """Somebody else's hooks go, too."""
    logits = patched_by_hooks(model, clean, corrupted, layer, position)
    model.blocks[layer]._forward_hooks.clear()
    return logits


def patched_at_negatives(model, clean, corrupted, layer, position):
    """Only what is too large is refused."""
    n_layers, n = len(model.blocks), corrupted.shape[-1]
    if layer >= n_layers or position >= n:
        raise ValueError("no such place")
    return patched_by_hooks(model, clean, corrupted, layer % n_layers, position % n)


NAMED_MISTAKES = [
    ("circuits.cut_edges", plain_without_edges, "a row without a key gives NaN"),
    ("circuits.sink_mask", sinks_are_queries, "the sinks are queries"),
    ("circuits.patched", patched_with_a_hook_left, "the hooks are others afterwards"),
    ("circuits.patched", patched_and_cleared, "the hooks are others afterwards"),
    ("circuits.patched", patched_at_negatives, "what is to be refused is not"),
]


@pytest.mark.parametrize(("target", "answer", "name"), NAMED_MISTAKES)
def test_wrong_answers_get_the_name_of_their_mistake(target, answer, name):
    verdict = examine(target, answer, seed=1)
    assert not verdict.passed
    assert verdict.diagnosis, str(verdict)
    assert verdict.diagnosis.name == name
