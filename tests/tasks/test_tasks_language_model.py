"""What chapter 13 trains: stories with known odds, the training loop, the models beside it."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch import nn

from attncourse.gpt import next_token_loss
from attncourse.tasks import language_model
from attncourse.tasks.language_model import (
    Bigram,
    Window,
    at_its_best,
    floor_of_window,
    floors_of_windows,
    mean_loss,
    someone_looks_on,
    train,
)
from attncourse.tasks.pronouns import FOODS, MEN, PAD, START, TRAITS, WOMEN, PronounWorld
from attncourse.tasks.storyteller import storyteller, taught

WORLD = PronounWorld(seed=1)
STORIES = WORLD.sample(20_000)


# --- pronoun world ---------------------------------------------------------------------------


def test_mean_surprise_of_stories_is_the_entropy():
    stories = [WORLD.decode(row[1:]) for row in STORIES[:5000]]
    surprises = [WORLD.surprise(story) for story in stories]
    assert max(surprises) < math.inf
    lengths = (STORIES[:, 1:] != PAD).sum(1).double()
    assert lengths.mean() == pytest.approx(WORLD.mean_length(), rel=0.01)
    rate = sum(surprises) / len(surprises) / WORLD.mean_length()
    assert rate == pytest.approx(WORLD.entropy_rate(), rel=0.01)


def test_the_entropy_by_hand_for_one_profession():
    world = PronounWorld(men={"doctor": 1.0})
    choices = math.log(3) + math.log(2) + math.log(12) / 2 + math.log(3) + math.log(3) + math.log(6)
    traits = (math.log(8) + math.log(8 * 7) + math.log(8 * 7 * 6)) / 3
    assert world.entropy_rate() * world.mean_length() == pytest.approx(choices + traits)


def test_choices_have_the_frequencies_of_the_world():
    words = [WORLD.decode(row[1:]).split() for row in STORIES]
    assert all(row[0] == START for row in STORIES)
    openings = Counter(story[0] if story[0] in ("today", "every") else "" for story in words)
    assert all(abs(n / len(words) - 1 / 3) < 0.02 for n in openings.values())
    for profession, share in WORLD.men.items():
        is_he = [("he" in story) for story in words if profession in story]
        assert abs(len(is_he) / len(words) - 1 / 6) < 0.02
        assert abs(sum(is_he) / len(is_he) - share) < 0.03
    for story in words[:3000]:
        assert not ("he" in story and set(story) & set(WOMEN))
        assert not ("she" in story and set(story) & set(MEN))
    counts = Counter(sum(word in TRAITS for word in story) for story in words)
    assert set(counts) == {1, 2, 3}
    assert all(abs(n / len(words) - 1 / 3) < 0.02 for n in counts.values())
    foods = Counter(food for story in words for food in set(story) & set(FOODS))
    assert all(abs(n / len(words) - 1 / 6) < 0.02 for n in foods.values())


def test_equal_seeds_give_equal_stories():
    assert torch.equal(PronounWorld(5).sample(20), PronounWorld(5).sample(20))
    assert not torch.equal(PronounWorld(5).sample(20), PronounWorld(6).sample(20))
    again = WORLD.encode([WORLD.decode(row[1:]).split() for row in STORIES[:50]])
    assert torch.equal(again, STORIES[:50])


@pytest.mark.parametrize(
    "story",
    [
        "",
        "mary is small . he likes sushi .",
        "mary is small and small . she likes sushi .",
        "mary is sushi . she likes sushi .",
        "mary is small . she likes mary .",
        "the mary is small . she likes sushi .",
        "doctor is small . she likes sushi .",
        "mary is small , cute . she likes sushi .",
        "mary is small . she likes sushi",
    ],
)
def test_impossible_stories_have_infinite_surprise(story):
    assert WORLD.surprise(story) == math.inf


def test_the_surprise_of_a_story_by_hand():
    story = "today the doctor is small and cute . he likes sushi ."
    chances = 1 / 3 * 1 / 2 * 1 / 3 * 0.9 * 1 / 3 * 1 / 56 * 1 / 3 * 1 / 6
    assert WORLD.surprise(story) == pytest.approx(-math.log(chances))


def test_a_world_refuses_impossible_settings():
    with pytest.raises(ValueError, match=r"doctor: 1\.2"):
        PronounWorld(men={"doctor": 1.2})
    with pytest.raises(ValueError, match="got none"):
        PronounWorld(men={})
    with pytest.raises(ValueError, match="'tom'"):
        WORLD.beginning("tom is")
    with pytest.raises(ValueError, match="at most 15 words"):
        WORLD.encode([["mary"] * 16])


# --- training --------------------------------------------------------------------------------


def test_the_storyteller_learns_the_same_from_equal_seeds():
    short = {"steps": 60, "batch": 32}
    model, losses = taught(PronounWorld(0), 0, **short)
    same_model = storyteller(PronounWorld(0), 0, **short)
    assert losses[0] > 3
    assert sum(losses[-10:]) / 10 < 1.4
    assert not model.training
    for a, b in zip(model.parameters(), same_model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_another_seed_comes_near_the_entropy_too():
    world = PronounWorld(2)
    gpt = storyteller(world, 2)
    test = PronounWorld(500).sample(2000)
    known = [world.surprise(world.decode(row[1:])) for row in test]
    floor = sum(known) / int((test[:, 1:] != PAD).sum())  # of these very stories
    assert floor < mean_loss(gpt, test, PAD) < 1.012 * floor
    assert sum(p.numel() for p in gpt.parameters()) < 110_000


def batches(steps: int = 5):
    return WORLD.sample(8 * steps).unflatten(0, (steps, 8))


def test_the_learning_rate_rises_then_falls_to_0():
    heights = [language_model.height(step, 400) for step in range(400)]
    assert heights[0] < 0.05
    assert max(heights) == 1
    assert heights[-1] < 0.01
    assert all(a >= b for a, b in pairwise(heights[80:]))


def test_watchers_are_called_before_each_step_and_at_the_end():
    seen = []

    def look(step):
        seen.append((step, mean_loss(model, stories[0], PAD)))

    model, stories = Bigram(len(WORLD.words)), PronounWorld(3).sample(60).split(20)
    losses = train(model, stories, rate=0.1, padding_id=PAD, show=False, look=look)
    assert [step for step, _ in seen] == [0, 1, 2, 3]
    assert seen[0][1] == pytest.approx(losses[0])  # nothing learned yet
    assert seen[3][1] < seen[1][1] < seen[0][1]


def test_the_progress_bar_shows_loss_and_seconds_unless_silent(capsys):
    train(Bigram(45), batches(), rate=0.1, padding_id=PAD, show=True)
    shown = capsys.readouterr().out
    assert "5/5" in shown
    assert "loss 3." in shown
    assert "0:00:0" in shown
    train(Bigram(45), batches(), rate=0.1, padding_id=PAD)
    assert capsys.readouterr() == ("", "")


def test_in_a_notebook_training_shows_a_progress_bar(monkeypatch):
    assert not someone_looks_on()
    monkeypatch.setenv("JPY_SESSION_NAME", "notebook.ipynb")
    assert someone_looks_on()


@pytest.mark.parametrize("show", [True, False])
def test_ctrl_c_ends_the_training_and_keeps_the_model(capsys, show):
    class StoppedBigram(Bigram):
        calls = 0

        def forward(self, ids):
            StoppedBigram.calls += 1
            if StoppedBigram.calls == 4:
                raise KeyboardInterrupt
            return super().forward(ids)

    StoppedBigram.calls = 0
    model = StoppedBigram(45)
    losses = train(model, batches(), rate=0.1, padding_id=PAD, show=show)
    assert len(losses) == 3
    assert "stopped after 3 of 5 steps" in capsys.readouterr().err
    assert model.scores.weight.abs().max() > 0
    assert not model.training


def test_training_refuses_no_batches_and_a_rate_of_0():
    with pytest.raises(ValueError, match="got none"):
        train(Bigram(45), [])
    with pytest.raises(ValueError, match="above 0, got 0"):
        train(Bigram(45), batches(), rate=0)


def test_the_mean_loss_counts_every_token_once():
    torch.manual_seed(0)
    model = Window(45)
    loss = next_token_loss(model(STORIES[:700]), STORIES[:700], PAD).item()
    assert mean_loss(model, STORIES[:700], PAD, batch=300) == pytest.approx(loss, rel=1e-5)


# --- models to compare with ------------------------------------------------------------------


@pytest.mark.parametrize(("build", "width"), [(Bigram, 1), (Window, 3)])
def test_a_window_model_sees_only_its_window(build, width):
    torch.manual_seed(0)
    model = build(45)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    ids = STORIES[:2, :9]
    for t in range(9):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] + 1) % 45
        differs = (model(ids) != model(changed)).any(-1).any(0)
        assert differs.nonzero().flatten().tolist() == list(range(t, min(t + width, 9)))


def test_short_windows_do_not_reach_the_entropy():
    floor = WORLD.entropy_rate()
    least = [floor_of_window(STORIES, width, PAD) / floor - 1 for width in (1, 2, 3)]
    assert least[0] > 0.2
    assert 0.03 < least[2] <= least[1] < 0.06
    result = at_its_best(
        lambda: Bigram(45),
        lambda seed: PronounWorld(seed).sample(64 * 60).unflatten(0, (60, 64)),
        STORIES[:2000],
        rates=(0.01, 0.3),
        padding_id=PAD,
    )
    assert result.rate == 0.3
    assert len(result.runs) == len(result.tested) == 3
    assert result.tested == [mean_loss(model, STORIES[:2000], PAD) for model in result.models]
    assert all(x > floor * 1.2 for x in result.tested)
    assert result.median == sorted(result.tested)[1]


def test_the_least_loss_of_a_window_by_hand():
    ids = torch.tensor([[1, 2, 3], [1, 2, 4], [1, 5, 3], [1, 5, 3]])
    # after 1, four times, 2 or 5; after 2, twice, 3 or 4; after 5 always 3
    exact = (4 * math.log(2) + 2 * math.log(2)) / 8
    assert floor_of_window(ids, 1, 0) == pytest.approx(exact, rel=1e-5)
    with pytest.raises(ValueError, match="too wide"):
        floor_of_window(ids, 40, 0)


def test_the_least_losses_of_all_windows_are_exact():
    ids, chances = WORLD.every()
    floors = floors_of_windows(ids, 8, PAD, chances)
    assert floors == pytest.approx(sorted(floors, reverse=True))
    assert floors[6] > WORLD.entropy_rate() * 1.01  # the name stands up to eight tokens back
    assert floors[7] == pytest.approx(WORLD.entropy_rate(), rel=1e-9)
    sample = PronounWorld(seed=5).sample(50_000)
    assert floor_of_window(sample, 2, PAD) == pytest.approx(floors[1], rel=0.003)


def test_rows_are_weighted_by_their_shares():
    ids = torch.tensor([[1, 2, 3], [1, 2, 4], [1, 5, 3]])
    repeated = torch.cat([ids[[0]], ids[[1]].repeat(2, 1), ids[[2]].repeat(3, 1)])
    shares = torch.tensor([1.0, 2.0, 3.0]) / 6
    counted = floors_of_windows(ids, 2, 0, shares)
    assert counted == pytest.approx(floors_of_windows(repeated, 2, 0))
    assert counted != pytest.approx(floors_of_windows(ids, 2, 0))


def test_every_story_occurs_once_with_its_probability():
    world = PronounWorld(men={"doctor": 0.75, "nurse": 0.0})
    ids, chances = world.every()
    assert len(ids.unique(dim=0)) == len(ids) == 3 * 400 * 18 * (12 + 2 + 1)
    assert chances.sum().item() == pytest.approx(1)
    for row in torch.randint(len(ids), (200,), generator=torch.Generator().manual_seed(0)):
        words = world.decode(ids[row, 1:])
        assert math.exp(-world.surprise(words)) == pytest.approx(chances[row].item())
        assert torch.equal(world.encode([words.split()])[0], ids[row])
