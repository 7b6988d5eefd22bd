"""The tasks of chapter 14: what is known in a sequence, and where a pronoun's evidence lies."""

import pytest
import torch
from torch.nn import functional as F

from attncourse.gpt import GPT, GPTConfig
from attncourse.interpret import ablate, attention_maps, induction_pattern
from attncourse.tasks import antecedents, induction
from attncourse.tasks.pronouns import MEN, PAD, PronounWorld
from attncourse.tasks.storyteller import storyteller


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def world():
    return PronounWorld(0)


@pytest.fixture(scope="module")
def model():
    return storyteller(PronounWorld(0), 0, steps=3, batch=4)


def test_known_tokens_followed_an_earlier_equal_token():
    ids, known = induction.pieces(200, generator())
    assert ids.shape == known.shape == (200, induction.LENGTH)
    assert not known[:, -1].any()
    for sequence, is_known in zip(ids, known, strict=True):
        pattern = induction_pattern(sequence)
        for i in is_known.nonzero().flatten().tolist():
            followed = set(sequence[pattern[i]].tolist())
            assert int(sequence[i + 1]) in followed


def test_a_run_has_no_repeats_and_pieces_begin_anywhere_in_it():
    ids, known = induction.pieces(300, generator(1))
    first = known.int().argmax(dim=-1)  # the first token that is known
    assert set(first.tolist()) == set(range(5, 10))
    for sequence, p in zip(ids, first.tolist(), strict=True):
        assert len(set(sequence[:p].tolist())) == p
        assert set(sequence.tolist()) == set(sequence[:p].tolist())
    distances = {
        i + 1 - int(induction_pattern(sequence)[i].nonzero()[0])
        for sequence, is_known in zip(ids[:50], known[:50], strict=True)
        for i in is_known.nonzero().flatten().tolist()
    }
    assert len(distances) > 8  # no one distance tells the answer


def test_pieces_are_drawn_from_the_generator():
    first, again = (induction.pieces(5, generator(3))[0] for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, induction.pieces(5, generator(4))[0])
    with pytest.raises(ValueError, match="batch: expected a whole number"):
        induction.pieces(0, generator())


def test_attention_only_has_no_feed_forward():
    torch.manual_seed(0)
    model = induction.attention_only(1)
    ids, _ = induction.pieces(3, generator())
    x = model.positions(model.tokens(ids), torch.arange(induction.LENGTH))
    block = model.blocks[0]
    mask = torch.ones(induction.LENGTH, induction.LENGTH).tril().bool()
    expected = model.out(model.norm(x + block.attention(block.norm_1(x), mask=mask)))
    torch.testing.assert_close(model(ids), expected)


def test_the_loss_is_at_known_tokens_alone():
    ids, known = induction.pieces(7, generator())
    logits = torch.randn(*ids.shape, induction.N_VOCAB)
    expected = [-logits[b, i].log_softmax(-1)[ids[b, i + 1]] for b, i in known.nonzero().tolist()]
    torch.testing.assert_close(
        induction.piece_loss(logits, ids, known), torch.stack(expected).mean()
    )


def test_learning_lowers_the_loss_and_is_watched():
    seen = []
    model = induction.learn_pieces(1, 0, steps=30, watch=lambda m, s: seen.append(s), every=10)
    assert seen == [0, 10, 20, 30]
    ids, known = induction.pieces(50, generator(9))
    with torch.no_grad():
        assert induction.piece_loss(model(ids), ids, known) < 2.9
    assert not model.training
    again = induction.learn_pieces(1, 0, steps=30)
    assert torch.equal(model.out.weight, again.out.weight)


def test_scores_and_prices_are_those_of_an_ablated_model():
    torch.manual_seed(0)
    model = induction.attention_only(2)
    ids, known = induction.pieces(6, generator())
    patterns = induction.known_patterns(ids, known)
    maps, expected = attention_maps(model, ids), torch.zeros(2, 2)
    for b in range(6):
        rows = known[b].nonzero().flatten()
        of_rows = [maps[b, ..., i, induction_pattern(ids[b])[i]].sum(-1) for i in rows]
        expected += torch.stack(of_rows).mean(0) / 6
    torch.testing.assert_close(induction.pattern_scores(model, ids, patterns), expected)
    prices = induction.price_list(model, ids, known)
    with torch.no_grad():
        ablated_loss = induction.piece_loss(ablate(model, 1, 0)(ids), ids, known)
        full_loss = induction.piece_loss(model(ids), ids, known)
    torch.testing.assert_close(prices[1, 0], ablated_loss - full_loss)


# --- pronoun world ---------------------------------------------------------------------------


def test_places_of_words_are_their_ids(world):
    ids = world.encode(
        [
            [
                "every",
                "morning",
                "the",
                "nurse",
                "is",
                "small",
                "and",
                "tall",
                ".",
                "she",
                "likes",
                "cake",
                ".",
            ],
            ["john", "is", "cute", ".", "he", "sells", "soup", "."],
        ]
    )
    who, stop = antecedents.places(world, ids)
    assert [world.words[ids[b, t]] for b, t in enumerate(who)] == ["nurse", "john"]
    assert [world.words[ids[b, t + 1]] for b, t in enumerate(stop)] == ["she", "he"]
    pattern = antecedents.antecedent_patterns(world, ids)
    assert pattern.nonzero().tolist() == [[0, int(stop[0]), int(who[0])], [1, 4, 1]]


def test_costs_are_mean_surprises(world, model):
    ids = world.sample(20)
    with torch.no_grad():
        logs = model(ids).log_softmax(-1)
    total, that, which = [], [], []
    she, he = (world.places[w] for w in ("she", "he"))
    for b, story in enumerate(ids.tolist()):
        for t in range(1, len(story)):
            if story[t] != PAD:
                total.append(-logs[b, t - 1, story[t]])
            if story[t] in (she, he):
                both = logs[b, t - 1, [she, he]].exp().sum()
                that.append(-both.log())
                which.append(-(logs[b, t - 1, story[t]].exp() / both).log())
    assert len(that) == 20
    expected = torch.stack([torch.stack(x).mean() for x in (total, that, which)])
    torch.testing.assert_close(antecedents.costs(model, world, ids), expected)


def test_prices_are_costs_without_a_head(world, model):
    ids = world.sample(10)
    prices = antecedents.price_list(model, world, ids)
    assert prices.shape == (2, 4, 3)
    full_costs, ablated_costs = (
        antecedents.costs(m, world, ids) for m in (model, ablate(model, 1, 2))
    )
    torch.testing.assert_close(prices[1, 2], ablated_costs - full_costs)
    two = antecedents.without(model, [(0, 1), (1, 2)])
    with torch.no_grad():
        torch.testing.assert_close(two(ids), ablate(ablate(model, 0, 1), 1, 2)(ids))


def test_the_preference_is_the_models_log_ratio(world, model):
    beginning = "the doctor is brave ."
    ids = torch.tensor(world.beginning(beginning))
    with torch.no_grad():
        preference = antecedents.preference(model, world, model.tokens(ids))
        p = model(ids)[-1].softmax(-1)
    he, she = (p[world.places[w]] for w in ("he", "she"))
    assert preference.item() == pytest.approx((he / she).log().item(), abs=1e-5)
    share = antecedents.he_share(model, world, beginning)
    assert share == pytest.approx((he / (he + she)).item(), abs=1e-6)


def test_a_hidden_token_cannot_be_told_from_another(world, model):
    """Whatever stands at a place that nobody may attend to, the end says the same."""
    preferences = []
    for name in ("mary", MEN[0]):
        ids = torch.tensor(world.beginning(f"{name} is brave ."))
        with torch.no_grad():
            preferences.append(antecedents.preference(model, world, model.tokens(ids), hidden=1))
    assert preferences[0] == preferences[1]


def test_evidence_sums_to_1(world, model):
    stories = antecedents.name_stories(PronounWorld(5), 6)
    for ids in stories:
        assert world.words[ids[-1]] == "."
        evidence = antecedents.evidence(model, world, ids)
        assert tuple(evidence) == antecedents.METHODS
        for shares in evidence.values():
            assert shares.shape == ids.shape
            assert (shares >= 0).all()
            assert shares.sum().item() == pytest.approx(1, abs=1e-5)
    for share, first in antecedents.share_on_character(model, world, stories).values():
        assert 0 <= share <= 1
        assert 0 <= first <= 1


def test_name_stories_end_before_the_pronoun():
    world = PronounWorld(8)
    stories = antecedents.name_stories(world, 40)
    assert len(stories) == 40
    for ids in stories:
        words = [world.words[i] for i in ids]
        assert words[-1] == "."
        assert words.count(".") == 1
        assert words[words.index("is") - 1] not in world.men


def test_gradient_times_input_agrees_with_finite_differences(world, model):
    ids = antecedents.name_stories(PronounWorld(6), 1)[0]
    vectors = model.double().tokens(ids).detach()
    slopes = []
    for j in range(len(ids)):
        step = torch.zeros_like(vectors)
        step[j] = 1e-5 * vectors[j]
        up, down = (antecedents.preference(model, world, vectors + s) for s in (step, -step))
        slopes.append(((up - down) / 2e-5).abs())
    expected = F.normalize(torch.stack(slopes), p=1, dim=0)
    evidence = antecedents.evidence(model, world, ids)["gradient × input"]
    model.float()
    torch.testing.assert_close(evidence, expected, rtol=0, atol=1e-6)


def test_the_probe_of_gpt2_says_why_it_did_not_run(capsys):
    antecedents.probe_gpt2()
    assert "GPT-2 was not asked" in capsys.readouterr().out


class ProbeWords:
    """A tokenizer that knows the words of the probe."""

    known = sorted({w for text in antecedents.PRONOUN_PROMPTS for w in text.split()})

    def encode(self, text):
        return [self.known.index(word) for word in text.split()]

    def decode(self, ids):
        return self.known[ids[0]]


def test_the_probe_reads_the_row_of_the_pronoun(capsys, monkeypatch):
    torch.manual_seed(0)
    small = GPT(GPTConfig(len(ProbeWords.known), 16, d_model=12, n_heads=3, n_layers=2)).eval()
    monkeypatch.setattr(antecedents, "gpt2_from_hub", lambda: (small, ProbeWords()))
    antecedents.probe_gpt2(layer=1, head=2, download=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"layer 1, head 2, from '{who}'" for who in ("She", "He")
    ]
    row = attention_maps(small, torch.tensor(ProbeWords().encode(antecedents.PRONOUN_PROMPTS[0])))[
        1, 2, -1
    ]
    assert f"doctor {row[1]:.2f}, nurse {row[4]:.2f}" in lines[0]
