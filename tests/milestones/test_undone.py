"""Chapter 18's kept results: each undone decision is one, and what is kept is what is computed."""

import math

import pytest
import torch

from attncourse import STEMS
from attncourse import llama as chapter
from attncourse.data import kept
from attncourse.milestones import bits, undone
from attncourse.milestones.bits import BITS, LANGUAGES, SCALE_GROUPS, round_to_bits, with_fewer_bits
from attncourse.milestones.undone import BEGUN_TEXT, ROWS, TEXTS, UndoneDecision, nats, try_undone
from helpers.random_llama import llama, some_ids
from helpers.small_byte_pairs import small

WORDS = small(40)
ALL = {row.name: row for row in ROWS}


@pytest.fixture(scope="module")
def model():
    """Random weights; the base is not the one that *base 10,000* puts in its place."""
    return llama(n_vocab=len(WORDS.tokens), max_length=2000, base=100.0)


def logits(model, row: UndoneDecision) -> torch.Tensor:
    with torch.no_grad(), undone.undone(row, model):
        return model(some_ids(2, 11))


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("as it is", "no norm")])
def test_each_decision_undone_is_another_model_and_is_put_back(model, name):
    before = logits(model, ALL["as it is"])
    after = logits(model, ALL[name])
    assert after.shape == before.shape
    assert after.isfinite().all()
    assert (after - before).abs().max() > 1e-3
    assert torch.equal(logits(model, ALL["as it is"]), before)


def test_no_two_rows_are_the_same(model):
    seen = [logits(model, row) for name, row in ALL.items() if name != "no norm"]
    for number, one in enumerate(seen):
        assert all((one - other).abs().max() > 1e-3 for other in seen[:number])


def test_rows_name_chapters_and_mistakes_that_there_are():
    for row in ROWS:
        assert row.stem in (*STEMS, "llama")
        if row.entry:
            assert undone.mistaken(*row.entry) is not None
    with pytest.raises(ValueError, match="the checks know no mistake called 'slept in'"):
        undone.mistaken("kqv.project", "slept in")
    assert chapter.apply_rope.__module__ == "attncourse.positions"  # nothing stays exchanged


def test_what_is_tried_is_the_loss_and_the_likeliest_words(model):
    found = try_undone(ALL["no scale"], model, WORDS)
    with undone.undone(ALL["no scale"], model), torch.no_grad():
        ids = WORDS.encode(TEXTS["facts"])
        rows = model(ids).log_softmax(-1)
        loss = -float(rows[torch.arange(len(ids) - 1), ids[1:]].mean())
        first = int(model(WORDS.encode(BEGUN_TEXT))[-1].argmax())
    assert abs(found["nats"]["facts"] - loss) < 1e-3
    assert found["writes"].startswith(WORDS.decode([first])[:1])
    assert abs(found["mean"] - sum(found["nats"].values()) / 3) < 1e-3


def test_where_no_numbers_come_out_the_loss_is_nan(model):
    broken = UndoneDecision(
        "NaN", "llama", lambda model: {"rms_norm": lambda x, gain, eps: x * math.nan}
    )
    found = try_undone(broken, model, WORDS)
    assert math.isnan(found["mean"])
    assert found["writes"] == ""


# --- bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", BITS)
@pytest.mark.parametrize("shared", SCALE_GROUPS)
def test_numbers_are_rounded_to_a_grid_of_those_who_share_it(n, shared):
    weight = torch.randn(64, 7)
    got = round_to_bits(weight, n, shared)
    groups = {
        SCALE_GROUPS[0]: lambda w: [c for column in w.T for c in column.split(32)],
        SCALE_GROUPS[1]: lambda w: list(w),
        SCALE_GROUPS[2]: lambda w: [w.flatten()],
    }[shared]
    for before, after in zip(groups(weight), groups(got), strict=True):
        step = (before.max() - before.min()) / (2**n - 1)
        assert len(after.unique()) <= 2**n
        assert (after - before).abs().max() <= step / 2 + 1e-6
        torch.testing.assert_close(after.max(), before.max())
    torch.testing.assert_close(
        round_to_bits(got, n, shared), got, atol=1e-5, rtol=0
    )  # once is enough


def test_what_cannot_be_rounded_is_refused():
    with pytest.raises(ValueError, match="bits: expected a whole number from 2 to 8, got 1"):
        round_to_bits(torch.randn(32, 2), 1, SCALE_GROUPS[0])
    with pytest.raises(ValueError, match="shared: expected one of"):
        round_to_bits(torch.randn(32, 2), 4, "a column")
    assert torch.equal(round_to_bits(torch.ones(32, 2), 4, SCALE_GROUPS[1]), torch.ones(32, 2))


def test_a_model_has_its_numbers_back(model):
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with with_fewer_bits(model, 2, "a row"):
        row = model.blocks[0].attention.W_q.weight[3]
        assert len(row.unique()) <= 4
        assert torch.equal(model.tokens.weight, before["tokens.weight"])
    assert all(torch.equal(before[name], w) for name, w in model.state_dict().items())


# --- what is kept ---------------------------------------------------------------------------------


def test_what_is_kept_is_of_these_rows_texts_and_languages():
    found = kept("undone")
    assert [row["name"] for row in found["rows"]] == [row.name for row in ROWS]
    assert [row["stem"] for row in found["rows"]] == [row.stem for row in ROWS]
    assert {name: one["text"] for name, one in found["texts"].items()} == TEXTS
    assert found["begun"] == BEGUN_TEXT
    assert {(one["shared"], one["bits"]) for one in found["bits"]} == {
        (shared, n) for shared in SCALE_GROUPS for n in BITS
    }
    assert [one["language"] for one in found["languages"]] == list(LANGUAGES)
    for one in found["languages"]:
        assert one["text"] == LANGUAGES[one["language"]].replace("|", "")
    for name in ("undone", "merges"):
        assert {"date", "model", "licence", "versions", "command"} <= set(kept(name)["about"])
    with pytest.raises(ValueError, match="nothing is kept as 'dreams': expected one of"):
        kept("dreams")


def test_the_merges_for_the_figure_are_few_and_in_order():
    merges = [tuple(merge.split(" ")) for merge in kept("merges")["merges"]]
    assert len(set(merges)) == len(merges)
    made = set()  # each joins what is a byte's symbol or has been made before
    for one, other in merges:
        assert all(len(part) == 1 or part in made for part in (one, other))
        made.add(one + other)
    from attncourse import data

    path = data.Path(data.__file__).parent / "merges.json"
    assert path.stat().st_size < 80_000


def test_what_is_kept_is_computed_again(real_model):
    model, words = real_model
    found = kept("undone")
    for name in ("as it is", "no positions"):
        row = next(row for row in found["rows"] if row["name"] == name)
        with undone.undone(ALL[name], model):
            assert abs(nats(model, words, TEXTS["facts"]) - row["nats"]["facts"]) < 1e-2
    for one in found["languages"]:
        assert bits.tokens_a_word(words, one["language"]) == one
    ranks = list(words.ranks)
    assert kept("merges")["merges"] == [" ".join(pair) for pair in ranks[:6000]]
    assert bits.bits_in_file(model) < 1e-6
