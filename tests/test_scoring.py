"""Chapter 6: the scores against loops and PyTorch, the translator, and other right answers."""

import datetime
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kqv import RIGHT as CHAPTER_5
from torch import nn
from torch.nn import functional as F

from attncourse.checks import examine, exercises
from attncourse.checks.trying.trials import draw
from attncourse.kqv import scaled_dot_product_attention
from attncourse.scoring import AdditiveScore, BilinearScore, attend, dot_score, scaled_dot_score
from attncourse.tasks.characters import to_ids, to_texts
from attncourse.tasks.dates import FORMATS, ISO, MONTHS, WEEKDAYS, WRITTEN, date_pairs
from attncourse.tasks.translator import Seq2Seq
from helpers.random_arrays import normal
from helpers.refusals import refused

# --- right answers in other styles -----------------------------------------------------------


class BilinearEinops(nn.Module):
    def __init__(self, d_q, d_k):
        super().__init__()
        self.W = nn.Parameter(torch.empty(d_q, d_k))
        nn.init.xavier_normal_(self.W)

    def forward(self, query, key):
        from einops import einsum

        return einsum(query, self.W, key, "... m q, q k, ... n k -> ... m n")


class BilinearKeysFirst(nn.Module):
    """Projects the keys, and registers W by name."""

    def __init__(self, d_q, d_k):
        super().__init__()
        self.register_parameter("W", nn.Parameter(torch.randn(d_q, d_k)))

    def forward(self, query, key):
        return query.matmul((key @ self.W.T).transpose(-2, -1))


class BilinearLoops(BilinearEinops):
    def forward(self, query, key):
        rows = []
        for i in range(query.shape[-2]):
            form = query[..., i, :] @ self.W  # (..., d_k)
            rows.append((key * form[..., None, :]).sum(-1))
        return torch.stack(rows, dim=-2)


class BilinearFloat64(BilinearEinops):
    def forward(self, query, key):
        scores = query.double() @ self.W.double() @ key.double().mT
        return scores.to(query.dtype)


class BilinearOuter(BilinearEinops):
    """Every product of two features, weighted and summed."""

    def forward(self, query, key):
        outer = query[..., :, None, :, None] * key[..., None, :, None, :]
        return (outer * self.W).sum(dim=(-2, -1))


class BilinearByLinear(BilinearEinops):
    def forward(self, query, key):
        return torch.einsum("...md,...nd->...mn", F.linear(query, self.W.T), key)


class AdditiveEinops(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w = nn.Linear(d_hidden, 1, bias=False)
        self.W_k = nn.Linear(d_k, d_hidden, bias=False)
        self.W_q = nn.Linear(d_q, d_hidden, bias=False)

    def forward(self, query, key):
        from einops import einsum, rearrange

        rows = rearrange(self.W_q(query), "... m h -> ... m 1 h")
        columns = rearrange(self.W_k(key), "... n h -> ... 1 n h")
        return einsum((rows + columns).tanh(), self.w.weight[0], "... m n h, h -> ... m n")


class AdditiveConcat(AdditiveEinops):
    """Query and key behind each other, for every pair, through one stacked matrix."""

    def forward(self, query, key):
        m, n = query.shape[-2], key.shape[-2]
        q = query.unsqueeze(-2).expand(*query.shape[:-1], n, query.shape[-1])
        k = key.unsqueeze(-3).expand(*key.shape[:-2], m, *key.shape[-2:])
        stacked = torch.cat([self.W_q.weight, self.W_k.weight], dim=1)
        hidden = torch.tanh(torch.cat([q, k], dim=-1) @ stacked.T)
        return (hidden @ self.w.weight.T)[..., 0]


class AdditiveLoops(AdditiveEinops):
    def forward(self, query, key):
        q, k = self.W_q(query), self.W_k(key)
        rows = [
            self.w(torch.tanh(q[..., i : i + 1, :] + k)).squeeze(-1) for i in range(q.shape[-2])
        ]
        return torch.stack(rows, dim=-2)


class AdditiveFloat64(AdditiveEinops):
    def forward(self, query, key):
        weights = (layer.weight.double() for layer in (self.W_q, self.W_k, self.w))
        W_q, W_k, w = weights
        hidden = (query.double() @ W_q.T)[..., :, None, :] + (key.double() @ W_k.T)[..., None, :, :]
        return (torch.tanh(hidden) @ w[0]).to(query.dtype)


class AdditiveExponentials(AdditiveEinops):
    """tanh x = 2 σ(2x) − 1."""

    def forward(self, query, key):
        hidden = self.W_q(query)[..., None, :] + self.W_k(key)[..., None, :, :]
        return (self.w.weight * (2 * torch.sigmoid(2 * hidden) - 1)).sum(-1)


class AdditiveByUnits(AdditiveEinops):
    """One hidden unit after the other, so that no (m, n, d_hidden) is held."""

    def forward(self, query, key):
        q, k, total = self.W_q(query), self.W_k(key), 0
        for unit in range(q.shape[-1]):
            step = torch.tanh(q[..., :, None, unit] + k[..., None, :, unit])
            total = total + self.w.weight[0, unit] * step
        return total


def attend_big_negative(scores, values, mask=None):
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return F.softmax(scores, dim=-1) @ values


def attend_renormalised(scores, values, mask=None):
    weights = torch.softmax(scores, -1)
    if mask is not None:
        weights = weights * mask
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-12)
    return torch.matmul(weights, values)


def attend_float64(scores, values, mask=None):
    s = scores.double()
    s = s if mask is None else torch.where(mask, s, -torch.inf)
    e = (s - s.amax(-1, keepdim=True)).exp()
    return (e @ values.double() / e.sum(-1, keepdim=True)).to(scores.dtype)


def attend_einops(scores, values, mask=None):
    from einops import einsum

    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -torch.inf)
    weights = torch.exp(torch.log_softmax(scores, dim=-1))
    return einsum(weights, values, "... m n, ... n v -> ... m v")


def attend_loops(scores, values, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    e = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    total = sum(e[..., j, None] * values[..., None, j, :] for j in range(e.shape[-1]))
    return total / e.sum(-1, keepdim=True)


def attend_by_chapter_5(scores, values, mask=None):
    from attncourse.kqv import softmax_over_keys

    return softmax_over_keys(scores, mask) @ values


RIGHT = {
    "scoring.dot_score": CHAPTER_5["kqv.attention_scores"],
    "scoring.BilinearScore": [
        BilinearEinops,
        BilinearKeysFirst,
        BilinearLoops,
        BilinearFloat64,
        BilinearOuter,
        BilinearByLinear,
    ],
    "scoring.AdditiveScore": [
        AdditiveEinops,
        AdditiveConcat,
        AdditiveLoops,
        AdditiveFloat64,
        AdditiveExponentials,
        AdditiveByUnits,
    ],
    "scoring.attend": [
        attend_big_negative,
        attend_renormalised,
        attend_float64,
        attend_einops,
        attend_loops,
        attend_by_chapter_5,
    ],
}

# --- the scores ------------------------------------------------------------------------------

SIZES = {
    "m": st.integers(1, 7), "n": st.integers(1, 7), "d_q": st.integers(1, 5),
    "d_k": st.integers(1, 5), "batch": st.sampled_from([(), (2,), (3, 2)]),
}  # fmt: skip


def randomised(module, seed=0):
    """The module in float64, with parameters of order one, biases too."""
    for i, parameter in enumerate(module.double().parameters()):
        parameter.data = normal(*parameter.shape, seed=seed + i)
    return module


def test_scores_by_hand():
    query, keys = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 2.0]])
    assert dot_score(query, keys).tolist() == [[0, 1, 2]]
    assert scaled_dot_score(torch.ones(1, 4), 3 * torch.ones(1, 4)).tolist() == [[6]]
    bilinear = BilinearScore(2, 3)
    bilinear.load_state_dict({"W": torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])})
    scores = bilinear(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]]))
    assert scores.tolist() == [[7, 14]]  # (1, 2) W = (1, 6, 4)
    additive = AdditiveScore(1, 1, 2)
    additive.load_state_dict({
        "W_q.weight": torch.tensor([[1.0], [1.0]]),
        "W_k.weight": torch.tensor([[1.0], [-1.0]]),
        "w.weight": torch.tensor([[1.0, 3.0]]),
    })  # fmt: skip
    scores = additive(torch.tensor([[0.5]]), torch.tensor([[0.5], [-0.5]]))
    torch.testing.assert_close(scores, torch.tensor([[1.0, 3.0]]) * math.tanh(1))
    weights = torch.tensor([[1 / 4, 3 / 4]])
    out = attend(weights.log(), torch.tensor([[4.0, 8.0], [0.0, 4.0]]))
    torch.testing.assert_close(out, torch.tensor([[1.0, 5.0]]))


@settings(deadline=None)
@given(**SIZES)
def test_bilinear_against_the_library(m, n, d_q, d_k, batch):
    score, query, key = (
        randomised(BilinearScore(d_q, d_k)),
        normal(*batch, m, d_q),
        normal(*batch, n, d_k),
    )
    pairs = (
        query.unsqueeze(-2).expand(*batch, m, n, d_q).contiguous(),
        key.unsqueeze(-3).expand(*batch, m, n, d_k).contiguous(),
    )
    library_scores = F.bilinear(*pairs, score.W[None])[..., 0]
    torch.testing.assert_close(score(query, key), library_scores, rtol=0, atol=1e-11)


@settings(deadline=None)
@given(**SIZES, d_hidden=st.integers(1, 5))
def test_additive_against_a_loop_in_float64(m, n, d_q, d_k, batch, d_hidden):
    score = randomised(AdditiveScore(d_q, d_k, d_hidden))
    query, key = normal(*batch, m, d_q), normal(*batch, n, d_k)
    scores = score(query, key).detach().numpy()
    assert scores.shape == (*batch, m, n)
    W_q, W_k, w = (p.detach().numpy() for p in (score.W_q.weight, score.W_k.weight, score.w.weight))
    for place in np.ndindex(scores.shape):
        *b, i, j = place
        q, k = query[(*b, i)].numpy(), key[(*b, j)].numpy()
        expected = sum(w[0, u] * math.tanh(W_q[u] @ q + W_k[u] @ k) for u in range(d_hidden))
        assert abs(scores[place] - expected) < 1e-11


@settings(deadline=None)
@given(**SIZES)
def test_attend_against_the_library(m, n, d_q, d_k, batch):
    query, key, value = normal(*batch, m, d_q), normal(*batch, n, d_q), normal(*batch, n, d_k)
    mask = normal(*batch, m, n) > 0
    mask[..., 0] = True
    for broadcast_mask in (None, mask, mask[..., :1, :]):
        library_output = F.scaled_dot_product_attention(query, key, value, attn_mask=broadcast_mask)
        output = attend(scaled_dot_score(query, key), value, broadcast_mask)
        torch.testing.assert_close(output, library_output, rtol=0, atol=1e-12)
        chapter_5 = scaled_dot_product_attention(query, key, value, broadcast_mask)
        torch.testing.assert_close(output, chapter_5, rtol=0, atol=1e-12)


def test_dot_and_projections_are_bilinear():
    query, key, W_q, W_k = normal(3, 7), normal(5, 7), normal(7, 2), normal(7, 2, seed=1)
    score = BilinearScore(7, 7).double()
    score.W.data = torch.eye(7, dtype=torch.float64)
    torch.testing.assert_close(score(query, key), dot_score(query, key), rtol=0, atol=1e-12)
    score.W.data = W_q @ W_k.T
    torch.testing.assert_close(score(query, key), dot_score(query @ W_q, key @ W_k))


def test_concat_is_additive():
    score, query, key = randomised(AdditiveScore(3, 5, 7)), normal(4, 3), normal(6, 5)
    pairs = torch.cat([query[:, None].expand(4, 6, 3), key[None].expand(4, 6, 5)], dim=-1)
    stacked = torch.cat([score.W_q.weight, score.W_k.weight], dim=1)
    concat = F.linear(torch.tanh(F.linear(pairs, stacked)), score.w.weight)[..., 0]
    torch.testing.assert_close(score(query, key), concat, rtol=0, atol=1e-12)


@given(weights=st.lists(st.floats(0.01, 1), min_size=3, max_size=3), seed=st.integers(0, 99))
def test_a_mixture_of_keys_never_wins_under_a_bilinear_score(weights, seed):
    mixture = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    corners = normal(3, 2, seed=seed)
    score = randomised(BilinearScore(5, 2), seed=seed)
    S = score(normal(11, 5, seed=seed), torch.cat([corners, mixture[None] @ corners]))  # (11, 4)
    assert (S[:, 3] <= S[:, :3].amax(-1) + 1e-12).all()


def test_an_additive_score_finds_the_key_in_the_middle():
    score, places = AdditiveScore(2, 1, 2), torch.arange(-4.0, 5.0)
    score.load_state_dict({
        "W_q.weight": torch.tensor([[-1.0, 1.0], [-1.0, -1.0]]),
        "W_k.weight": torch.ones(2, 1),
        "w.weight": torch.tensor([[1.0, -1.0]]),
    })  # fmt: skip
    queries = torch.stack([places, torch.ones(9)], dim=-1)
    S = score(queries, places[:, None])
    assert S.argmax(-1).tolist() == list(range(9))
    assert torch.linalg.matrix_rank(S) == 9


def test_new_bilinear_scores_have_unit_variance():
    torch.manual_seed(0)
    variances = []
    for _ in range(20):
        scores = BilinearScore(30, 70)(torch.randn(40, 30), torch.randn(40, 70))
        variances.append(scores.var().item())
    assert abs(np.mean(variances) - 1) < 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype):
    query, key = normal(5, 4, dtype=dtype), normal(7, 4, dtype=dtype)
    mask = torch.ones(5, 7, dtype=torch.bool)
    for score in (dot_score, scaled_dot_score, BilinearScore(4, 4).to(dtype),
                  AdditiveScore(4, 4, 3).to(dtype)):  # fmt: skip
        scores = score(query, key)
        assert scores.dtype == dtype
        assert attend(scores, key, mask).dtype == dtype


def test_gradients_pass_gradcheck():
    query, key = normal(2, 3).requires_grad_(), normal(4, 5).requires_grad_()
    assert torch.autograd.gradcheck(randomised(BilinearScore(3, 5)), (query, key))
    assert torch.autograd.gradcheck(randomised(AdditiveScore(3, 5, 7)), (query, key))
    mask = torch.tensor([True, False, True])
    scores, values = normal(2, 3).requires_grad_(), normal(3, 5).requires_grad_()
    assert torch.autograd.gradcheck(attend, (scores, values, mask))


def test_batches_of_one_side_broadcast():
    query, key = normal(2, 1, 3, 5), normal(4, 7, 5)
    for score in (dot_score, randomised(BilinearScore(5, 5)), randomised(AdditiveScore(5, 5, 3))):
        scores = score(query, key)
        assert scores.shape == (2, 4, 3, 7)
        torch.testing.assert_close(scores[1, 2], score(query[1, 0], key[2]))


def test_a_keyless_query_gets_nothing_and_hidden_nan_is_refused():
    scores, values = normal(2, 3), normal(3, 5)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    assert attend(scores, values, mask)[1].tolist() == [0] * 5
    scores[0, 1] = torch.nan
    with pytest.raises(ValueError, match=r"the mask hides NaN at \(0, 1\)"):
        attend(scores, values, mask)


# --- the translator --------------------------------------------------------------------------

IDS = len(WRITTEN) + 1, len(ISO) + 1


def translator(kind="additive", h=5):
    torch.manual_seed(0)
    scores = {"additive": lambda: AdditiveScore(h, 2 * h, 7),
              "bilinear": lambda: BilinearScore(h, 2 * h), "none": lambda: None}  # fmt: skip
    model = Seq2Seq(*IDS, h, scores[kind](), d_embed=3)
    for parameter in model.parameters():
        parameter.data *= 3  # so that outputs differ
    return model


def date_ids(n, seed=0):
    written, iso = zip(*date_pairs(n, seed), strict=True)
    return to_ids(written, WRITTEN), to_ids(iso, ISO)


@pytest.mark.parametrize("kind", ["additive", "bilinear", "none"])
def test_shapes_and_neighbours_in_a_batch_make_no_difference(kind):
    model, (source, target) = translator(kind), date_ids(7)
    logits = model(source, target)
    assert logits.shape == (7, 11, IDS[1])
    assert model.translate(source, 13).shape == (7, 13)
    for i in range(7):
        alone = source[i : i + 1, : int((source[i] != 0).sum())]
        torch.testing.assert_close(model(alone, target[i : i + 1])[0], logits[i])


@pytest.mark.parametrize("kind", ["additive", "bilinear"])
def test_alignment_mixes_characters_and_no_padding(kind):
    model, (source, target) = translator(kind), date_ids(7)
    weights = model.weights(source, target)
    assert weights.shape == (7, 11, source.shape[1])
    torch.testing.assert_close(weights.sum(-1), torch.ones(7, 11))
    assert (weights.transpose(1, 2)[source == 0] == 0).all()
    assert (weights.transpose(1, 2)[source != 0] > 0).all()


def test_later_target_characters_change_nothing_earlier():
    model, (source, target) = translator(), date_ids(3)
    changed = target.clone()
    changed[:, 6] = changed[:, 6] % 10 + 1
    before, after = model(source, target), model(source, changed)
    torch.testing.assert_close(before[:, :7], after[:, :7])
    assert (before[:, 7] != after[:, 7]).any()


@pytest.mark.parametrize("kind", ["additive", "none"])
def test_greedy_decoding_writes_what_it_finds_likeliest(kind):
    """What it writes is what it finds likeliest when given what it wrote."""
    model, (source, _) = translator(kind), date_ids(11)
    written = model.translate(source, 9)
    likeliest = model(source, written[:, :-1]).argmax(-1)
    is_written = torch.cat([torch.ones(11, 1).bool(), written[:, :-1] != 0], dim=1)
    assert (likeliest[is_written] == written[is_written]).all()
    assert (written[~is_written] == 0).all()


def test_each_translation_ends_once():
    """With weights as large as these, translations end at different places, some not at all."""
    model, (source, _) = translator(), date_ids(50)
    for parameter in model.parameters():
        parameter.data *= 2
    model.out.bias.data[0] += 0.8
    written = model.translate(source, 12).tolist()
    ends = [row.index(0) if 0 in row else 12 for row in written]
    assert len(set(ends)) > 2
    assert all(set(row[end:]) <= {0} for row, end in zip(written, ends, strict=True))


@pytest.mark.parametrize("kind", ["additive", "none"])
def test_the_decoder_agrees_with_its_parts(kind):
    """Its first state is made of the encoder's last ones; so is its context, without attention."""
    model, (source, target) = translator(kind), date_ids(5)
    states, last, mask = model.encode(source)
    forward, backward = states.chunk(2, dim=-1)  # (5, n, h) each
    ends = (source != 0).sum(1) - 1
    torch.testing.assert_close(last[:, 0], torch.cat([forward[range(5), ends], backward[:, 0]], -1))
    first = torch.tanh(model.bridge(last[:, 0]))
    query, _ = model.decoder(model.embed_target(F.pad(target, (1, 0))), first[None])
    context = last.expand(5, 11, 10)
    if kind == "additive":
        context = model.score(query, states).masked_fill(~mask, -math.inf).softmax(-1) @ states
    logits = model.out(torch.tanh(model.join(torch.cat([query, context], dim=-1))))
    torch.testing.assert_close(model(source, target), logits)


def test_without_a_score_there_are_no_weights():
    model = translator("none")
    with pytest.raises(ValueError, match="this one has no attention"):
        model.weights(*date_ids(2))
    assert not any("score" in name for name, _ in model.named_parameters())


def test_the_translator_learns_dates():
    torch.manual_seed(0)
    model = Seq2Seq(*IDS, 16, BilinearScore(16, 32), d_embed=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    source, target = date_ids(32)
    losses = []
    for _ in range(30):
        logits = model(source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), F.pad(target, (0, 1)).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    assert all(p.grad is not None for p in model.parameters())


def test_dates_are_right_and_reproducible():
    pairs = date_pairs(500, seed=1)
    assert pairs == date_pairs(500, seed=1) != date_pairs(500, seed=2)
    lengths = {len(written) for written, _ in pairs}
    assert min(lengths) <= 9
    assert max(lengths) >= 34
    for written, iso in pairs:
        date = datetime.date.fromisoformat(iso)
        numbers = [int(number) for number in re.findall(r"\d+", written)]
        assert 1900 <= date.year == numbers[-1] <= 2099
        assert date.day == numbers[0]
        if "/" in written:
            assert numbers[1] == date.month
        else:
            assert MONTHS[date.month - 1][:3] in written
        for name in WEEKDAYS:
            assert (name in written) <= (name == WEEKDAYS[date.weekday()])
        for day, ending in ((1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (12, "12th"),
                            (13, "13th"), (21, "21st"), (22, "22nd"), (30, "30th")):  # fmt: skip
            if date.day == day and " of " in written:
                assert f" {ending} of " in written
        assert set(written) <= set(WRITTEN)
        assert set(iso) <= set(ISO)
    shapes = {re.sub(r"\d+|" + "|".join([*MONTHS, *WEEKDAYS]), "x", w) for w, _ in pairs}
    assert len(shapes) > len(FORMATS)


def test_texts_become_ids_and_back():
    ids = to_ids(["ba", "", "cab"], "abc")
    assert ids.tolist() == [[2, 1, 0], [0, 0, 0], [3, 1, 2]]
    assert to_texts(ids, "abc") == ["ba", "", "cab"]
    written = [w for w, _ in date_pairs(50, seed=3)]
    assert to_texts(to_ids(written, WRITTEN), WRITTEN) == written


X, Y = torch.ones(5, 3), torch.ones(7, 2)
MASK = torch.ones(5, 7, dtype=torch.bool)
MODEL, SOURCE, TARGET = translator(), torch.tensor([[3, 1, 2]]), torch.tensor([[1, 2]])


test_bad_input_is_refused = refused(
    [
        (lambda: dot_score(X, Y), "same width", r"\(5, 3\) and key of shape \(7, 2\)"),
        (lambda: dot_score(X.long(), X), "floating-point tensor", "int64"),
        (lambda: scaled_dot_score(X[0], X), r"query: expected shape \(\.\.\., m, d_k\)", r"\(3,\)"),
        (lambda: BilinearScore(0, 2), "d_q: expected a whole number", "got 0"),
        (lambda: BilinearScore(3, -2), "d_k: expected a whole number", "got -2"),
        (lambda: BilinearScore(3, 2)(Y, Y), "query: expected d_q = 3 features", r"\(7, 2\)"),
        (lambda: BilinearScore(3, 2)(X, X), "key: expected d_k = 2 features", r"\(5, 3\)"),
        (lambda: BilinearScore(3, 2)(X, Y.double()), "one dtype", "key of torch.float64"),
        (lambda: BilinearScore(3, 2)(X, Y.long()), "key: expected a floating", "int64"),
        (
            lambda: BilinearScore(3, 2)(X.expand(2, 5, 3), Y.expand(4, 7, 2)),
            "batch axes that broadcast",
            r"\(2, 5, 3\), key of shape \(4, 7, 2\)",
        ),
        (lambda: AdditiveScore(3, 2, 0), "d_hidden: expected a whole number", "got 0"),
        (lambda: AdditiveScore(3, 2, 5)(X, X), "key: expected d_k = 2 features", r"\(5, 3\)"),
        (lambda: AdditiveScore(3, 2, 5)(X[:0], Y), "at least one entry", r"\(0, 3\)"),
        (lambda: AdditiveScore(3, 2, 5)(X.numpy(), Y), "query: expected a torch", "ndarray"),
        (lambda: AdditiveScore(3, 2, 5).double()(X, Y), "one dtype", "parameters of torch.float64"),
        (lambda: attend(MASK.float(), X), "one value for each key", r"\(5, 7\) .*\(5, 3\)"),
        (lambda: attend(MASK.float(), Y[0]), "values: expected shape", r"\(2,\)"),
        (lambda: attend(MASK.float(), Y.double()), "one dtype", "values of torch.float64"),
        (lambda: attend(MASK.float(), Y, MASK[:, :3]), r"axis -1 \(the keys\)", "got 3"),
        (lambda: attend(MASK.float(), Y, MASK.float()), "boolean tensor", "torch.float32"),
        (lambda: attend(MASK.float().expand(2, 5, 7), Y.expand(3, 7, 2)), "broadcast", r"\(3, 7"),
        (lambda: date_pairs(0, 1), "n: expected a whole number", "got 0"),
        (lambda: date_pairs(3, -1), "seed: expected a whole number", "got -1"),
        (lambda: to_ids(["a!"], "abc"), "expected characters of 'abc'", "got '!'"),
        (lambda: to_ids([], "abc"), "a list of one text or more", r"\[\]"),
        (lambda: to_ids("abc", "abc"), "a list of one text or more", "'abc'"),
        (lambda: to_texts(torch.tensor([[4]]), "abc"), "ids from 0 to 3", "got 4 to 4"),
        (lambda: Seq2Seq(5, 0, 3), "n_target: expected a whole number", "got 0"),
        (lambda: MODEL(SOURCE.float(), TARGET), "source: expected ids, an int64", "float32"),
        (lambda: MODEL(SOURCE[0], TARGET), r"of shape \(b, n\)", r"\(3,\)"),
        (lambda: MODEL(SOURCE, TARGET + 40), "target: expected ids from 0 to 12", "got 41 to 42"),
        (lambda: MODEL(SOURCE - 1, TARGET), "0 at the end of a row only", "as padding"),
        (lambda: MODEL(0 * SOURCE, TARGET), "source: expected at least 1", "only padding"),
        (lambda: MODEL.translate(SOURCE, 0), "max_length: expected a whole number", "got 0"),
        (
            lambda: Seq2Seq(*IDS, 5, AdditiveScore(5, 9, 3))(SOURCE, TARGET),
            "key: expected d_k = 9 features",
            r"\(1, 3, 10\)",
        ),
    ]
)


# --- the checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_masked_score_is_50_above_the_allowed(seed):
    tested = 0
    for _, case, _ in draw(exercises()["scoring.attend"], seed):
        if len(case.args) == 3:
            scores, _, mask = case.args
            mask = mask.broadcast_to(scores.shape)
            assert mask.any(-1).all(), "every query has a key"
            allowed = scores.masked_fill(~mask, -math.inf).amax(-1)
            hidden = scores.masked_fill(mask, -math.inf).amax(-1)
            assert (hidden - allowed < 50).all()
            tested += 1
    assert tested >= 7


class BilinearOfTheLibrary(BilinearEinops):
    def forward(self, query, key):
        m, n = query.shape[-2], key.shape[-2]
        q = query.unsqueeze(-2).expand(*query.shape[:-1], n, -1).contiguous()
        k = key.unsqueeze(-3).expand(*key.shape[:-2], m, *key.shape[-2:]).contiguous()
        return F.bilinear(q, k, self.W[None])[..., 0]


def attend_by_library(scores, values, mask=None):
    keys = torch.eye(scores.shape[-1], dtype=scores.dtype)
    return F.scaled_dot_product_attention(scores, keys, values, attn_mask=mask, scale=1.0)


@pytest.mark.parametrize(
    ("target", "answer", "name"),
    [
        ("scoring.BilinearScore", BilinearOfTheLibrary, "bilinear"),
        ("scoring.attend", attend_by_library, "scaled_dot_product_attention"),
    ],
)
def test_calling_the_librarys_function_is_caught(target, answer, name):
    verdict = examine(target, answer, seed=0)
    assert verdict.earned == 0
    assert f"called {name}, which this exercise asks you to build" in verdict.criteria[0].message


class ScoreOfOneLayer(AdditiveEinops):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__(d_q, d_k, d_hidden)
        if d_q == d_k:
            self.W_k = self.W_q


@pytest.mark.parametrize(
    ("target", "answer", "phrase"),
    [
        ("AdditiveScore", ScoreOfOneLayer, "do two names share one layer"),
        ("AdditiveScore", lambda *sizes: None, "built NoneType, which is not a torch.nn.Module"),
        (
            "BilinearScore",
            lambda d_q, d_k: nn.Linear(d_q, d_k),
            "has no parameter W; it has weight",
        ),
    ],
)
def test_a_module_of_another_form_is_explained(target, answer, phrase):
    messages = [c.message for c in examine(f"scoring.{target}", answer, seed=0).criteria]
    assert any(phrase in message for message in messages)


class BilinearWithScale(BilinearEinops):
    def __init__(self, d_q, d_k):
        super().__init__(d_q, d_k)
        self.scale = nn.Parameter(torch.ones(1))


class BilinearOfOtherName(nn.Module):
    def __init__(self, d_q, d_k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_q, d_k))


class BilinearLonger(BilinearEinops):
    def __init__(self, d_q, d_k):
        super().__init__(d_q, d_k + 1)


def attend_without_default(scores, values, mask):
    return attend(scores, values, mask)


@pytest.mark.parametrize(
    ("target", "answer", "name"),
    [
        ("BilinearScore", BilinearWithScale, "a parameter too many: scale"),
        ("BilinearScore", BilinearOfOtherName, "there is no parameter W"),
        ("BilinearScore", BilinearLonger, "W has another shape"),
        ("attend", attend_without_default, "no default for mask"),
    ],
)
def test_deviations_from_the_tasks_text_are_named(target, answer, name):
    for seed in (0, 5):
        assert examine(f"scoring.{target}", answer, seed=seed).diagnosis.name == name


def test_the_first_additive_case_can_be_read():
    """Its sums are (0, 0), (1, 0), (0, 1) and (1, 0), (2, 0), (1, 1), and w is (2, 1)."""
    _, _, outcome = draw(exercises()["scoring.AdditiveScore"], 0)[0]
    tanh_1, tanh_2 = math.tanh(1), math.tanh(2)
    rows = [[0, 2 * tanh_1, tanh_1], [2 * tanh_1, 2 * tanh_2, 3 * tanh_1]]
    expected = torch.tensor(rows, dtype=torch.float64)
    torch.testing.assert_close(outcome.value, expected, atol=1e-12, rtol=0)
