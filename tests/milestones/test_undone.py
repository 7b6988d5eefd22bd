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
ROWS_BY_NAME = {row.name: row for row in ROWS}


@pytest.fixture(scope="module")
def model():
    """Return a small model with random weights and another base than 10,000."""
    return llama(n_vocab=len(WORDS.tokens), max_length=2000, base=100.0)


def logits(model, row: UndoneDecision) -> torch.Tensor:
    with torch.no_grad(), undone.undone(row, model):
        return model(some_ids(2, 11))


@pytest.mark.parametrize(
    "name", [name for name in ROWS_BY_NAME if name not in ("as it is", "no norm")]
)
def test_each_decision_undone_is_another_model_and_is_put_back(model, name):
    before = logits(model, ROWS_BY_NAME["as it is"])
    after = logits(model, ROWS_BY_NAME[name])
    assert after.shape == before.shape
    assert after.isfinite().all()
    assert (after - before).abs().max() > 1e-3
    assert torch.equal(logits(model, ROWS_BY_NAME["as it is"]), before)


def test_no_two_rows_are_the_same(model):
    seen = [logits(model, row) for name, row in ROWS_BY_NAME.items() if name != "no norm"]
    for number, row_logits in enumerate(seen):
        assert all(
            (row_logits - earlier_logits).abs().max() > 1e-3 for earlier_logits in seen[:number]
        )


def test_rows_name_chapters_and_mistakes_that_there_are():
    for row in ROWS:
        assert row.stem in (*STEMS, "llama")
        if row.entry:
            assert undone.mistaken(*row.entry) is not None
    with pytest.raises(ValueError, match="the checks know no mistake called 'slept in'"):
        undone.mistaken("kqv.project", "slept in")
    assert chapter.apply_rope.__module__ == "attncourse.positions"  # nothing stays exchanged


def test_each_row_has_a_loss_and_the_likeliest_words(model):
    result = try_undone(ROWS_BY_NAME["no scale"], model, WORDS)
    with undone.undone(ROWS_BY_NAME["no scale"], model), torch.no_grad():
        ids = WORDS.encode(TEXTS["facts"])
        rows = model(ids).log_softmax(-1)
        loss = -float(rows[torch.arange(len(ids) - 1), ids[1:]].mean())
        first = int(model(WORDS.encode(BEGUN_TEXT))[-1].argmax())
    assert abs(result["nats"]["facts"] - loss) < 1e-3
    assert result["writes"].startswith(WORDS.decode([first])[:1])
    assert abs(result["mean"] - sum(result["nats"].values()) / 3) < 1e-3


def test_where_the_model_gives_nan_the_loss_is_nan(model):
    broken = UndoneDecision(
        "NaN", "llama", lambda model: {"rms_norm": lambda x, gain, eps: x * math.nan}
    )
    result = try_undone(broken, model, WORDS)
    assert math.isnan(result["mean"])
    assert result["writes"] == ""


# --- bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", BITS)
@pytest.mark.parametrize("shared", SCALE_GROUPS)
def test_numbers_that_share_a_grid_are_rounded_to_it(n, shared):
    weight = torch.randn(64, 7)
    rounded = round_to_bits(weight, n, shared)
    groups = {
        SCALE_GROUPS[0]: lambda w: [c for column in w.T for c in column.split(32)],
        SCALE_GROUPS[1]: lambda w: list(w),
        SCALE_GROUPS[2]: lambda w: [w.flatten()],
    }[shared]
    for before, after in zip(groups(weight), groups(rounded), strict=True):
        step = (before.max() - before.min()) / (2**n - 1)
        assert len(after.unique()) <= 2**n
        assert (after - before).abs().max() <= step / 2 + 1e-6
        torch.testing.assert_close(after.max(), before.max())
    torch.testing.assert_close(
        round_to_bits(rounded, n, shared), rounded, atol=1e-5, rtol=0
    )  # once is enough


def test_settings_that_cannot_be_rounded_to_are_refused():
    with pytest.raises(ValueError, match="bits: expected a whole number from 2 to 8, got 1"):
        round_to_bits(torch.randn(32, 2), 1, SCALE_GROUPS[0])
    with pytest.raises(ValueError, match="shared: expected one of"):
        round_to_bits(torch.randn(32, 2), 4, "a column")
    assert torch.equal(round_to_bits(torch.ones(32, 2), 4, SCALE_GROUPS[1]), torch.ones(32, 2))


def test_rounding_restores_the_models_numbers_afterwards(model):
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with with_fewer_bits(model, 2, "a row"):
        row = model.blocks[0].attention.W_q.weight[3]
        assert len(row.unique()) <= 4
        assert torch.equal(model.tokens.weight, before["tokens.weight"])
    assert all(torch.equal(before[name], w) for name, w in model.state_dict().items())


# --- what is kept ---------------------------------------------------------------------------------


def test_stored_results_have_these_rows_texts_and_languages():
    stored = kept("undone")
    assert [row["name"] for row in stored["rows"]] == [row.name for row in ROWS]
    assert [row["stem"] for row in stored["rows"]] == [row.stem for row in ROWS]
    assert {name: record["text"] for name, record in stored["texts"].items()} == TEXTS
    assert stored["begun"] == BEGUN_TEXT
    assert {(record["shared"], record["bits"]) for record in stored["bits"]} == {
        (shared, n) for shared in SCALE_GROUPS for n in BITS
    }
    assert [record["language"] for record in stored["languages"]] == list(LANGUAGES)
    for record in stored["languages"]:
        assert record["text"] == LANGUAGES[record["language"]].replace("|", "")
    for name in ("undone", "merges"):
        assert {"date", "model", "licence", "versions", "command"} <= set(kept(name)["about"])
    with pytest.raises(ValueError, match="nothing is kept as 'dreams': expected one of"):
        kept("dreams")


def test_the_merges_for_the_figure_are_few_and_in_order():
    merges = [tuple(merge.split(" ")) for merge in kept("merges")["merges"]]
    assert len(set(merges)) == len(merges)
    made = set()  # each joins what is a byte's symbol or has been made before
    for first, second in merges:
        assert all(len(part) == 1 or part in made for part in (first, second))
        made.add(first + second)
    from attncourse import data

    path = data.Path(data.__file__).parent / "merges.json"
    assert path.stat().st_size < 80_000


def test_stored_results_are_reproduced(real_model):
    model, words = real_model
    stored = kept("undone")
    for name in ("as it is", "no positions"):
        row = next(row for row in stored["rows"] if row["name"] == name)
        with undone.undone(ROWS_BY_NAME[name], model):
            assert abs(nats(model, words, TEXTS["facts"]) - row["nats"]["facts"]) < 1e-2
    for language_record in stored["languages"]:
        assert bits.tokens_a_word(words, language_record["language"]) == language_record
    ranks = list(words.ranks)
    assert kept("merges")["merges"] == [" ".join(pair) for pair in ranks[:6000]]
    assert bits.bits_in_file(model) < 1e-6
