"""Mistakes written as a class writes them: each has its name, and keeps what it did not touch."""

import numpy as np
import pytest
import torch

from attncourse import transformer
from attncourse.checks import examine, exercises
from attncourse.checks.judging import points_of_answer

EXERCISES = exercises()


@pytest.fixture(autouse=True)
def without_repairs(monkeypatch):
    """Look for no repair in the answer's code, as in a grade."""
    monkeypatch.setattr("attncourse.checks.judging.find_repair", lambda *_: None)


# --- attention without a softmax -----------------------------------------------------------------


def no_softmax(query, key, value, mask=None, *, scale=None):
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores @ value


# --- the sink ------------------------------------------------------------------------------------


def with_sink_column(scores, sink, mask):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    column = sink[:, None, None].expand(*scores.shape[:-1], 1)
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1]


def sink_left_out(scores, sink, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1)


def divided_once_more(scores, sink, mask=None):
    weights = with_sink_column(scores, sink, mask)
    return weights / weights.sum(-1, keepdim=True)


def sink_without_exp(scores, sink, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / (weights.sum(-1, keepdim=True) + sink[:, None, None])


# --- the choice of keys --------------------------------------------------------------------------


def chosen_by_topk(index_scores, k, mask):
    if k < 1:
        raise ValueError("expected a k of 1 or more")
    scores = index_scores.masked_fill(~mask, -torch.inf)
    places = scores.topk(min(k, scores.shape[-1]), dim=-1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, places, True) & mask


def nothing_refused(index_scores, k, mask):
    scores = index_scores.masked_fill(~mask, -torch.inf)
    order = scores.argsort(dim=-1, descending=True, stable=True)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order[..., :k], True) & mask


def lowest_and_nothing_refused(index_scores, k, mask):
    scores = index_scores.masked_fill(~mask, torch.inf)
    order = scores.argsort(dim=-1, stable=True)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order[..., :k], True) & mask


# --- smaller numbers, guesses --------------------------------------------------------------------


def coded_between(x, least, greatest, bits, block):
    if not 2 <= bits <= 8 or x.shape[-1] % block:
        raise ValueError("expected 2 to 8 bits and blocks that divide the last axis")
    scale = (greatest - least) / (2**bits - 1)
    codes = ((x - least) / torch.where(scale > 0, scale, 1.0)).round()
    return codes, scale, least


def one_scale_a_row(x, bits, block):
    return coded_between(x, x.amin(-1, keepdim=True), x.amax(-1, keepdim=True), bits, block)


def one_scale(x, bits, block):
    return coded_between(x, x.min(), x.max(), bits, block)


def difference_by_size(draft, p_draft, p_target, rng):
    accepted = []
    for token, q, p in zip(draft.tolist(), p_draft, p_target, strict=False):
        if torch.rand((), generator=rng) >= p[token] / q[token]:
            missing = (p - q).abs()
            return torch.tensor([*accepted, torch.multinomial(missing, 1, generator=rng).item()])
        accepted.append(token)
    return torch.tensor([*accepted, torch.multinomial(p_target[-1], 1, generator=rng).item()])


def bits_above_8(x, bits, block):
    """More than 8 bits are let through, and all else is refused."""
    if bits < 2 or x.shape[-1] % block:
        raise ValueError("expected 2 bits or more and blocks that divide the last axis")
    blocks = x.unflatten(-1, (-1, block))
    least = blocks.amin(-1, keepdim=True)
    scale = (blocks.amax(-1, keepdim=True) - least) / (2**bits - 1)
    codes = ((blocks - least) / torch.where(scale > 0, scale, 1.0)).round()
    return codes.flatten(-2), scale.squeeze(-1), least.squeeze(-1)


# --- means ---------------------------------------------------------------------------------------


def mean_of_those_before(divisor):
    """Return rows that average tokens 0 … i − 1, by a number that is made of i and n."""

    def causal_mean_weights(n):
        weights = np.zeros((n, n))
        for i in range(n):
            weights[i, :i] = 1 / divisor(i, n)
        return weights

    return causal_mean_weights


# --- rows in another order -----------------------------------------------------------------------


def heads_of_any_number_of_rows(weight, n_heads):
    rows, d_in = weight.shape
    if rows % n_heads:
        raise ValueError("expected a number of heads that divides the rows")
    halves = weight.reshape(n_heads, 2, rows // n_heads // 2, d_in)
    return halves.transpose(1, 2).reshape(rows, d_in)


def the_way_back(weight, n_heads):
    rows, d_in = weight.shape
    if rows % n_heads:
        raise ValueError("expected a number of heads that divides the rows")
    pairs = weight.reshape(n_heads, rows // n_heads // 2, 2, d_in)
    return pairs.transpose(1, 2).reshape(rows, d_in)


# --- a block -------------------------------------------------------------------------------------


class AskingWithTheFirstInput(transformer.DecoderBlock):
    """The attention to the memory reads what came into the block, in both norm orders."""

    def forward(self, x, memory, mask=None, memory_mask=None):
        attended = self.added(x, x, lambda y: self.self_attention(y, mask=mask), self.norm_1)
        told = self.added(
            attended,
            x,
            lambda y: self.cross_attention(y, memory, mask=memory_mask),
            self.norm_2,
        )
        return self.added(told, self.last_read(attended, told), self.feed_forward, self.norm_3)

    def last_read(self, attended, told):
        return told

    def added(self, stream, read, branch, norm):
        """Return the stream with a branch added that reads ``read``."""
        if self.pre_norm:
            return stream + self.dropout(branch(norm(read)))
        return norm(stream + self.dropout(branch(read)))


class FeedingOnTheOwnSequence(AskingWithTheFirstInput):
    """Both later branches read the stream of before the attention to the memory."""

    def added(self, stream, read, branch, norm):
        later = norm is not self.norm_1 and norm is not self.norm_3
        return super().added(stream, stream if later else read, branch, norm)

    def last_read(self, attended, told):
        return attended


class SumsDropped(transformer.EncoderBlock):
    """In pre-norm dropout falls on the sums, in post-norm on the branches."""

    def forward(self, x, mask=None):
        if not self.pre_norm:
            return super().forward(x, mask)
        x = self.dropout(x + self.attention(self.norm_1(x), mask=mask))
        return self.dropout(x + self.feed_forward(self.norm_2(x)))


SLIPS = {
    "no softmax": ("kqv.scaled_dot_product_attention", no_softmax, "no softmax", ""),
    "sink left out": ("today.sink_softmax", sink_left_out, "the sink takes nothing", ""),
    "once more": ("today.sink_softmax", divided_once_more, "the sink takes nothing", ""),
    "no exp": ("today.sink_softmax", sink_without_exp,
               "the sink is added without its exponential", ""),
    "topk": ("today.select_keys", chosen_by_topk, "of equal scores by chance", ""),
    "nothing refused": ("today.select_keys", nothing_refused, "nothing is refused", ""),
    "two slips": ("today.select_keys", lowest_and_nothing_refused,
                  "the k lowest", "nothing is refused"),
    "a scale a row": ("serving.quantize", one_scale_a_row, "one scale for each row", ""),
    "one scale": ("serving.quantize", one_scale, "one scale for the whole array", ""),
    "9 bits": ("serving.quantize", bits_above_8, "what is to be refused is not", ""),
    "by size": ("serving.speculative_accept", difference_by_size,
                "p − q is not cut off at 0", ""),
    "by i + 1": ("mixing.causal_mean_weights", mean_of_those_before(lambda i, n: i + 1),
                 "a token does not see itself", ""),
    "odd heads": ("llama.pairs_from_halves", heads_of_any_number_of_rows,
                  "what does not divide is not refused", ""),
    "way back": ("llama.pairs_from_halves", the_way_back,
                 "the way back", "what does not divide is not refused"),
    "first input": ("transformer.DecoderBlock", AskingWithTheFirstInput,
                    "branches side by side", ""),
    "fed beside": ("transformer.DecoderBlock", FeedingOnTheOwnSequence,
                   "branches side by side", ""),
    "sums dropped": ("transformer.EncoderBlock", SumsDropped, "dropout of the stream", ""),
}  # fmt: skip


@pytest.mark.parametrize(("target", "answer", "name", "rest"), SLIPS.values(), ids=SLIPS)
def test_a_likely_slip_has_its_name_and_keeps_the_rest(target, answer, name, rest):
    for seed in (1, 2):
        verdict = examine(target, answer, seed=seed)
        assert verdict.diagnosis is not None, verdict.full
        assert (verdict.diagnosis.name, verdict.rest) == (name, rest)
        failed = [c for c in verdict.criteria if not c.passed]
        follows = [c for c in failed if c.follows]
        assert len(follows) == len(failed) - (2 if rest else 1)
        assert sum(c.earned for c in follows) == sum(c.possible for c in follows) // 2
        assert 4 * verdict.earned >= verdict.possible
    assert points_of_answer(EXERCISES[target], answer, 2) == verdict.earned  # asked why or not


class NeitherResidualNorDropout(transformer.EncoderBlock):
    """In pre-norm the first branch is not added, and nothing is dropped."""

    def forward(self, x, mask=None):
        if not self.pre_norm:
            return super().forward(x, mask)
        x = self.attention(self.norm_1(x), mask=mask)
        return x + self.feed_forward(self.norm_2(x))


def test_two_mistakes_of_a_block_are_found():
    """Of a hundred ways to be wrong there are thousands of pairs: the likely ones come first."""
    verdict = examine("transformer.EncoderBlock", NeitherResidualNorDropout, seed=7)
    assert verdict.diagnosis.name == "the residual is missing"
    assert verdict.rest == "no dropout on what the branches return"
    assert 4 * verdict.earned >= verdict.possible


def test_both_slips_of_a_mean_of_those_before_are_named():
    answer = mean_of_those_before(lambda i, n: n)
    for seed in (1, 2):
        verdict = examine("mixing.causal_mean_weights", answer, seed=seed)
        assert verdict.diagnosis is not None, verdict.full
        assert verdict.diagnosis.name == "a token does not see itself"
        assert verdict.rest == "divided by another number than i + 1"
