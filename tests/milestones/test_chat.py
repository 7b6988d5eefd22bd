"""The milestone chat: a model of random weights shows mistakes, SmolLM2 answers where it is."""

import sys

import pytest
import torch
from matplotlib import pyplot as plt
from torch.nn import functional as F

from attncourse import STEMS, llama
from attncourse.checks import exercises
from attncourse.milestones import parts as places
from attncourse.milestones.chat import MILESTONE, Talker, in_halves
from attncourse.milestones.milestone import MilestoneResult, reach_milestone, try_gates
from attncourse.milestones.parts import Parts
from attncourse.milestones.reaching import NotYet, reach
from attncourse.milestones.talking import shade_piece, talk
from attncourse.pretrained.model import NoModel


@pytest.fixture(autouse=True)
def _taught(monkeypatch):
    """Chapter 18's parts are found, whether its page is there already or not."""
    monkeypatch.setattr(places, "STEMS", (*STEMS, "llama"))


def first_shut(target: str, wrong) -> str:
    """Return the first gate that a wrong part shuts, before the real model is used."""
    from dataclasses import replace

    alone = replace(MILESTONE, train=lambda parts, show: MILESTONE.build(parts), trained=())
    return next(iter(try_gates(alone, Parts({target: wrong}), show=False, first=True)[0]), "")


def test_our_parts_open_every_gate_before_the_real_weights():
    assert first_shut("llama.rms_norm", llama.rms_norm) == ""


class Gelu(llama.SwiGLU):
    def forward(self, x):
        return self.W_down(F.gelu(self.W_gate(x)) * self.W_up(x))


class Exchanged(llama.SwiGLU):
    def forward(self, x):
        return self.W_down(self.W_gate(x) * F.silu(self.W_up(x)))


class StudentBlock(llama.LlamaBlock):
    """A block as a student writes it, with the functions of the chapters before."""

    values = staticmethod(lambda x, places, base: x)
    share = staticmethod(lambda x, group: x.repeat_interleave(group, -3))
    norm = staticmethod(lambda norm, x: norm(x))

    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, base=10000.0):
        super().__init__(d_model, n_heads, n_kv_heads, d_ff, base)
        self.h, self.kv, self.base = n_heads, n_kv_heads, base

    def forward(self, x, mask=None, positions=None):
        n = x.shape[-2]
        positions = self.places(torch.arange(n) if positions is None else positions)
        mask = llama.causal_mask(n) if mask is None else mask
        y, a = self.norm_1(x), self.attention
        q, k = llama.split_heads(a.W_q(y), self.h), llama.split_heads(a.W_k(y), self.kv)
        v = self.values(llama.split_heads(a.W_v(y), self.kv), positions, self.base)
        q, k = llama.apply_rope(q, positions, self.base), llama.apply_rope(k, positions, self.base)
        k, v = self.share(k, self.h // self.kv), self.share(v, self.h // self.kv)
        mask = mask.unsqueeze(-3) if mask.ndim > 2 else mask
        x = x + a.W_o(llama.merge_heads(llama.scaled_dot_product_attention(q, k, v, mask)))
        return x + self.feed_forward(self.norm_2(x))

    def places(self, positions):
        return positions


def block(**wrong) -> type:
    return type("LlamaBlock", (StudentBlock,), {name: staticmethod(f) for name, f in wrong.items()})


class Unplaced(StudentBlock):
    def places(self, positions):
        return torch.arange(len(positions))


def left_to_right(symbols, ranks):
    merged = []
    for symbol in symbols:
        merged.append(symbol)
        while len(merged) > 1 and tuple(merged[-2:]) in ranks:
            merged[-2:] = ["".join(merged[-2:])]
    return merged


def centred(x, gain=None, eps=1e-5):
    return llama.rms_norm(x - x.mean(-1, keepdim=True), gain, eps)


def eps_outside(x, gain=None, eps=1e-5):
    x = x / (x.square().mean(-1, keepdim=True).sqrt() + eps)
    return x if gain is None else gain * x


MISTAKES = {
    "merges from left to right": ("merge_pairs", left_to_right, "words in pieces"),
    "the mean taken off": ("rms_norm", centred, "rows of one size"),
    "eps outside the root": ("rms_norm", eps_outside, "rows of one size"),
    "GELU": ("SwiGLU", Gelu, "a gated layer"),
    "gate and value exchanged": ("SwiGLU", Exchanged, "a gated layer"),
    "the permutation's inverse": ("pairs_from_halves", in_halves, "rows stored in halves"),
    "the rows as they are": ("pairs_from_halves", lambda w, h: w, "rows stored in halves"),
    "heads mixed": (
        "pairs_from_halves", lambda w, h: llama.pairs_from_halves(w, 1), "rows stored in halves",
    ),
    "values turned too": ("LlamaBlock", block(values=llama.apply_rope), "distances alone"),
    "tile for repeat": (
        "LlamaBlock", block(share=lambda x, g: torch.cat([x] * g, -3)), "blocks are their parts",
    ),
    "positions ignored": ("LlamaBlock", Unplaced, "distances alone"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_shuts_the_gate_that_is_about_it(mistake):
    name, wrong, gate = MISTAKES[mistake]
    assert first_shut(f"llama.{name}", wrong).startswith(gate)


def test_a_students_block_opens_every_gate():
    assert first_shut("llama.LlamaBlock", StudentBlock) == ""


# Of what is harmless here: heads are even, lengths are one text's, and nothing is changed in place.
@pytest.mark.parametrize("target", [t for t in MILESTONE.uses if not t.startswith("llama.")])
def test_most_mistakes_of_earlier_chapters_shut_a_gate(target):
    mistakes = [m for m in exercises()[target].mistakes if m.wrong is not None]
    shut = {m.name: first_shut(target, m.wrong) for m in mistakes}
    assert sum(map(bool, shut.values())) > 0.4 * len(shut), shut


def test_without_the_model_one_sentence_says_what_to_do(monkeypatch):
    from attncourse.milestones import chat

    monkeypatch.setenv("ATTNCOURSE_MODEL", "no")
    chat.load_real_model.cache_clear()
    with pytest.raises(NoModel, match="leaves the model out"):
        reach_milestone(MILESTONE, Parts(), show=False, patience=0)


def test_smollm2_answers_through_these_parts(real_model, monkeypatch, capsys):
    from attncourse.milestones import chat

    monkeypatch.setattr(chat, "load_real_model", lambda: real_model)
    outcome = reach_milestone(MILESTONE, Parts(), show=False, patience=0)
    assert outcome.shut == {}
    talk(outcome)
    output = capsys.readouterr().out
    assert "> What is the capital of France?\n  The capital of France is Paris." in output
    pieces = outcome.model.said[1]
    assert [piece for piece, _ in pieces][:3] == ["The", " capital", " of"]
    assert all(0 < probability <= 1 for _, probability in pieces)
    figure = MILESTONE.picture(outcome.model)
    assert figure.axes[0].get_title()
    plt.close(figure)
    wrong = Talker(Parts({"llama.pairs_from_halves": lambda w, h: w}), *real_model)
    with torch.no_grad():
        seen = {gate.name: gate.shut(wrong) for gate in MILESTONE.trained}
    assert "differ from ours by" in seen["SmolLM2's logits"]
    assert "nats a piece" in seen["nats a piece on a text"]


def test_a_notebook_shows_a_sentence_and_no_traceback(monkeypatch):
    from attncourse.milestones import chat

    monkeypatch.setenv("ATTNCOURSE_MODEL", "no")
    chat.load_real_model.cache_clear()
    with pytest.raises(NoModel) as absent:
        reach("chat", rms_norm=lambda x, gain=None, eps=1e-5: llama.rms_norm(x, gain, eps))
    assert absent.value._render_traceback_() == [str(absent.value)]
    with pytest.raises(NotYet) as wrong:
        reach("chat", rms_norm=centred)
    (sentence,) = wrong.value._render_traceback_()
    assert sentence.startswith("✗ chat: SmolLM2, a real model, answers a question")
    assert "✗ rows of one size" in sentence


def test_the_chat_milestone_searches_longer_for_the_wrong_part(monkeypatch):
    """In a notebook; other milestones stand in tests, which have less."""
    from attncourse.milestones import reaching

    patience_of = {}

    def run(made, parts, patience):
        patience_of[made.name] = patience
        raise NotYet

    monkeypatch.setattr(reaching, "run_milestone", run)
    for name in ("chat", "recall"):
        with pytest.raises(NotYet):
            reach(name)
    assert patience_of["chat"] > patience_of["recall"]
    assert patience_of["recall"] <= 10


def test_a_pieces_shade_is_between_white_and_orange():
    assert shade_piece("a", 0.0) == "\x1b[30;48;2;255;255;255ma\x1b[0m"
    assert shade_piece("a", 1.0) == "\x1b[30;48;2;230;159;0ma\x1b[0m"
    assert shade_piece("a\n\nb", 1.0).count("\n") == 2


def test_a_question_must_be_text_to_a_model_that_answers(real_model):
    with pytest.raises(ValueError, match="recall answers no questions"):
        reach("recall", ask="Why?", project=lambda x, weight: x @ weight)
    model = Talker(Parts(), *real_model)
    with pytest.raises(ValueError, match="characters of Unicode, got"):
        talk(MilestoneResult(MILESTONE, Parts(), {}, 0.0, model=model), "caf\udce9?")


def test_without_a_library_one_sentence_says_which(monkeypatch, tmp_path):
    from attncourse.pretrained.model import load

    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(NoModel, match=r"the library gguf is missing: pip install 'attncourse\[mod"):
        load(tmp_path / "a.gguf")
