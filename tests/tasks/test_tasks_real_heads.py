"""The experiments of chapter 19, and that what is kept of them is what they give."""

import json
from types import SimpleNamespace

import pytest
import torch

from attncourse.data import kept
from attncourse.llama import Llama, LlamaConfig
from attncourse.tasks import explored, facts, professions, pronoun_heads, said_twice, sinks
from helpers.project import ROOT


def small_llama() -> Llama:
    torch.manual_seed(0)
    model = Llama(LlamaConfig(41, 64, 12, 3, 1, 2, 7))
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model


class GrowingWords:
    """A token for each word, as far as the model's 41 go."""

    def __init__(self):
        self.known: dict[str, int] = {}

    def encode(self, text: str) -> torch.Tensor:
        pieces = text.replace(".", " .").replace(",", " ,").split()
        ids = [self.known.setdefault(piece, len(self.known) % 41) for piece in pieces]
        return torch.tensor(ids, dtype=torch.int64)

    def decode(self, ids) -> str:
        return next(word for word, i in self.known.items() if i == ids[0])


# --- by themselves -------------------------------------------------------------------------------


def test_no_noun_position_is_always_the_right_one():
    sentences = [
        SimpleNamespace(kind=kind, first=first)
        for kind, openings in pronoun_heads.OPENINGS.items()
        for _ in openings
        for first in (True, False)
    ]
    assert len(sentences) == 50
    assert sum(sentence.first for sentence in sentences) == 25
    pronouns = [set(o[3:]) for openings in pronoun_heads.OPENINGS.values() for o in openings]
    assert all(len(pair) == 2 for pair in pronouns)


def test_choosing_by_position_is_right_in_half():
    attention = torch.zeros(50, 2, 1, 2)
    first = torch.tensor([True, False]).repeat(25)
    attention[:, 0, 0, 0] = first.float()  # head 0 looks at the first noun
    attention[:, 1, 0, 0] = (~first).float()
    attention[:, 0, 0, 1] = 1  # head 1 at the right one
    assert pronoun_heads.hits(attention).mean(0).tolist() == [[0.5, 1.0]]
    assert pronoun_heads.chosen_on_half(attention, draws=20) == 1.0


def test_the_gap_is_the_same_from_any_layer_on():
    model = small_llama()
    sentences = [
        pronoun_heads.Sentence("k", "t", True, torch.tensor(ids), 1, 3, torch.tensor(more), 5, 7)
        for ids, more in (([1, 5, 2, 7, 9], [3]), ([4, 5, 8, 7], [3, 6]))
    ]
    stream = pronoun_heads.residual_stream(model, pronoun_heads.prompts(sentences)[0])
    gaps = pronoun_heads.noun_log_gaps(model, sentences)
    for layer in range(3):
        torch.testing.assert_close(
            pronoun_heads.noun_log_gaps(model, sentences, stream, layer), gaps
        )
    for sentence, gap in zip(sentences, gaps.tolist(), strict=True):
        logits = model(torch.cat([sentence.ids, sentence.question]))[-1]
        assert gap == pytest.approx((logits[5] - logits[7]).item(), abs=1e-5)
    heads = [(1, 0)]
    assert pronoun_heads.gap_without(model, sentences, heads, stream) == pytest.approx(
        pronoun_heads.gap_without(model, sentences, heads), abs=2e-3
    )


def test_tokens_said_twice_can_be_copied_and_not_guessed():
    ids = said_twice.twice(1000, 3, length=6, rows=2)
    assert ids.shape == (2, 12)
    assert torch.equal(ids[:, :6], ids[:, 6:])
    assert all(len(set(row[:6].tolist())) == 6 for row in ids)

    class SixBack(torch.nn.Module):
        """Sure of what came six tokens ago, and of nothing before."""

        def forward(self, ids):
            logits = torch.zeros(*ids.shape, 1000)
            for i in range(5, 11):
                logits[:, i] = 50 * torch.nn.functional.one_hot(ids[:, i - 5], 1000).float()
            return logits

    first, second = said_twice.both_times(SixBack(), ids).tolist()
    assert first > 6  # one step of the first half is guessed wrongly, four evenly
    assert second == pytest.approx(0, abs=1e-6)


def test_windows_are_as_wide_as_they_say():
    assert sinks.hidden_first(4).int().tolist() == [
        [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1],
    ]  # fmt: skip
    assert sinks.kept_token(4, 1, 1).int().tolist() == [
        [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1],
    ]  # fmt: skip
    model, ids = small_llama(), torch.arange(20)
    rows = sinks.window_losses(model, ids, (3, 30))
    assert (
        rows[1]["window"]
        == rows[1]["first"]
        == pytest.approx(sinks.masked_loss(model, ids), abs=1e-3)
    )
    before = sinks.masked_loss(model, ids)
    assert sinks.silenced(model, ids, 0) != before
    assert sinks.masked_loss(model, ids) == before


def test_a_patch_of_the_last_vector_brings_everything():
    words, model = GrowingWords(), small_llama()
    pair = ("France", "Italy")
    for word in (*pair, "Paris", "Rome"):
        words.encode(word)
    patches = facts.patch_map(model, words, pair)
    assert len(patches["map"]) == 2
    assert patches["map"][-1][-1] == pytest.approx(1, abs=1e-3)
    assert patches["map"][0][:3] == [0, 0, 0]  # before the country both runs are alike


def test_words_of_several_tokens_are_refused():
    words = GrowingWords()
    with pytest.raises(ValueError, match="'New York': expected a word of one token, got 2"):
        facts.answer_of(words, "New York")
    with pytest.raises(ValueError, match="'sales person': expected a word of one token"):
        professions.pronoun_log_gaps(small_llama(), words, "sales person", ("The {} said",))
    with pytest.raises(ValueError, match="'the c': expected one token that stands once"):
        pronoun_heads.noun_place(words, words.encode("a c c"), "the c")
    with pytest.raises(ValueError, match="2 to 18 tokens, got 19"):
        explored.explored(small_llama(), words, "a " * 19)
    with pytest.raises(ValueError, match="'She': expected one token that stands once"):
        explored.explored(small_llama(), words, "a b c", "She", "b")


def test_random_edges_come_from_other_heads():
    held = kept("circuits")["pronouns"]
    finders = [tuple(map(int, finder["head"].split("."))) for finder in held["finders"]]
    every = [(layer, head) for layer in range(30) for head in range(9)]
    drawn_heads = pronoun_heads.draw_heads(every, finders, 10, 1)[0]
    assert len(set(drawn_heads)) == 10
    assert not set(drawn_heads) & set(finders)
    assert set(held["gap_without_random_edge"]) == set(map(pronoun_heads.head_name, drawn_heads))


# --- with the real model -------------------------------------------------------------------------


def test_stored_heads_say_how_they_were_measured():
    about = kept("circuits")["about"]
    assert about["command"] == "python benchmarks/circuits.py"
    assert {"date", "model", "licence", "versions"} <= set(about)
    assert (ROOT / "attncourse" / "data" / "circuits.json").stat().st_size < 150_000
    assert (ROOT / "book" / "assets" / "real_heads.js").stat().st_size < 900_000


def test_stored_gaps_are_those_of_the_model(real_model):
    model, words = real_model
    held = kept("circuits")
    before = held["professions"]
    for who in ("nurse", "soldier"):
        now = professions.pronoun_log_gaps(model, words, who, before["templates"][:2])
        assert now == pytest.approx(before["gaps"][who][:2], abs=0.01)
    sentences = pronoun_heads.sentences(words)
    assert [sentence.text for sentence in sentences] == [
        stored["text"] for stored in held["pronouns"]["sentences"]
    ]
    looks = pronoun_heads.pronoun_attention(model, sentences[:4])
    for finder in held["pronouns"]["finders"][:3]:
        layer, head = map(int, finder["head"].split("."))
        assert pronoun_heads.hits(looks)[:, layer, head].tolist() == finder["hits"][:4]
    now = pronoun_heads.noun_log_gaps(model, sentences[:4]).tolist()
    assert now == pytest.approx(held["pronouns"]["gap"][:4], abs=0.02)


def test_stored_runs_are_those_of_the_model(real_model):
    model, words = real_model
    held = kept("circuits")
    first = held["facts"]["lens"][0]
    now = facts.lens(model, words, first["text"], first["answer"])
    assert now["first"] == first["first"]
    assert now["probability"][-1] == pytest.approx(first["probability"][-1], abs=0.01)
    patch = held["facts"]["patches"][0]
    now = facts.patch_map(model, words, tuple(patch["pair"]), [10, 29])
    assert now["map"][0] == pytest.approx(patch["map"][10], abs=0.02)
    assert now["map"][1] == pytest.approx(patch["map"][29], abs=0.02)
    ids = said_twice.twice(model.config.n_vocab, 0)
    now = said_twice.both_times(model, ids).tolist()
    assert now == pytest.approx(held["said_twice"]["as_it_is"][0], abs=0.02)
    text = next(iter(sinks.SINK_TEXTS))
    ids = words.encode(sinks.SINK_TEXTS[text])
    assert sinks.masked_loss(model, ids) == pytest.approx(
        held["sinks"]["found"][text]["whole"], abs=0.01
    )


def test_stored_maps_are_those_of_the_model(real_model):
    model, words = real_model
    text = (ROOT / "book" / "assets" / "real_heads.js").read_text(encoding="utf-8")
    sentences = json.loads(text[text.index("=") + 1 : text.rindex(";")])["sentences"]
    assert len(sentences) == len(explored.SENTENCES)
    i = 1
    now = explored.explored(model, words, *explored.SENTENCES[i])
    assert now["tokens"] == sentences[i]["tokens"]
    n, sizes = len(now["tokens"]), (len(model.blocks), model.config.n_heads)
    difference = explored.unpack_maps(now["maps"], n, *sizes) - explored.unpack_maps(
        sentences[i]["maps"], n, *sizes
    )
    assert abs(difference).max() < 0.02
