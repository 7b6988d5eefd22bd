"""Lines of days: read back by other code, kept apart, and judged line by line."""

from __future__ import annotations

import math
import re
from datetime import datetime

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attncourse.tasks.characters import to_texts
from attncourse.tasks.dates import ISO, WRITTEN
from attncourse.tasks.days import as_ids, day_lines, days, whole_lines
from attncourse.tasks.runs import UNASKED
from attncourse.tasks.training import contest, train


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def parse_day(day: str) -> datetime:
    """A day by the library's parser, once *the 3rd of march* has become *3 march*."""
    plain = re.sub(r"the (\d+)(st|nd|rd|th) of", r"\1", day)
    return datetime.strptime(f"{plain} 2024", "%d %B %Y" if "the" in day else "%d %b %Y")


@pytest.mark.parametrize("held_out", [False, True])
def test_lines_and_their_translations_name_the_same_days(held_out):
    lines, kinds = day_lines(3000, generator(), kept=held_out)
    days_of_year = set()
    for (written, translation), kind in zip(lines, kinds.tolist(), strict=True):
        days = [parse_day(day) for day in written.split(", ")]
        assert translation == " ".join(f"{day:%m-%d}" for day in days)
        assert kind == (2 if len(days) == 2 else int(written.startswith("the ")))
        days_of_year |= {day.timetuple().tm_yday for day in days}
    assert days_of_year == {day for day in range(1, 367) if (day % 5 == 3) == held_out}
    shares = kinds.bincount() / 3000
    torch.testing.assert_close(shares, torch.tensor([0.25, 0.25, 0.5]), atol=0.03, rtol=0)


def test_a_line_of_two_equal_days_has_one_translation():
    lines, kinds = day_lines(300, generator(), same=True)
    others, other_kinds = day_lines(300, generator())
    assert torch.equal(kinds, other_kinds)
    for (written, translation), (other_line, _), kind in zip(
        lines, others, kinds.tolist(), strict=True
    ):
        first = other_line.split(", ")[0]
        assert written == ", ".join([first] * (1 + (kind == 2)))
        assert len(set(translation.split(" "))) == 1
    (source, _), _ = days(50, generator(2), same=True)
    lines, _ = day_lines(50, generator(2), same=True)
    assert to_texts(source, WRITTEN) == [written for written, _ in lines]


def test_endings_of_ordinals_are_english():
    lines, kinds = day_lines(4000, generator(1))
    numbers = {
        w.split()[1] for (w, _), kind in zip(lines, kinds.tolist(), strict=True) if kind == 1
    }
    ordinals = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 22: "22nd", 23: "23rd", 31: "31st"}
    assert numbers == {ordinals.get(n, f"{n}th") for n in range(1, 32)}


def test_a_batch_asks_for_every_character_and_one_end():
    (source, target), answer = days(50, generator(2))
    lines, _ = day_lines(50, generator(2))
    assert to_texts(source, WRITTEN) == [written for written, _ in lines]
    for row, (_, translation) in zip(answer.tolist(), lines, strict=True):
        answer_ids = row[: len(translation) + 1]
        assert answer_ids == [ISO.index(c) + 1 for c in translation] + [0]
        assert set(row[len(answer_ids) :]) <= {UNASKED}
    assert target.shape[1] + 1 == answer.shape[1] == 12
    again = as_ids(lines)
    assert torch.equal(again[0], source)
    assert torch.equal(again[1], target)


def test_a_line_is_right_if_no_asked_character_is_wrong():
    answer = torch.tensor([[1, 2, 0], [2, 0, UNASKED], [2, 0, UNASKED]])
    logits = F.one_hot(torch.tensor([[1, 2, 0], [2, 0, 1], [1, 0, 0]]), 3).float()
    loss, right = whole_lines(logits, answer)
    assert right.tolist() == [True, True, False]
    hit, miss = (math.log(math.e + 2) - chosen for chosen in (1, 0))
    assert loss.item() == pytest.approx((6 * hit + miss) / 7)


class ConstantTranslator(nn.Module):
    """Says the same of every line: logits that are learned."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(12, len(ISO) + 1))

    def forward(self, source, target):
        return self.logits[: target.shape[1] + 1].expand(len(source), -1, -1)


def test_training_takes_several_inputs_and_the_rate_fades():
    run = train(ConstantTranslator, days, rate=0.1, steps=60, batch=8, judge=whole_lines, fade=True)
    assert run.losses[-1] < run.losses[0]
    plain = train(ConstantTranslator, days, rate=0.1, steps=60, batch=8, judge=whole_lines)
    assert run.losses[:31] == plain.losses[:31]
    assert run.losses[32:] != plain.losses[32:]


def test_a_contest_tries_every_rate_and_seed():
    built = []

    def build():
        built.append(torch.initial_seed())
        return ConstantTranslator()

    more = {"steps": 5, "batch": 4, "judge": whole_lines, "sequences": 20}
    result = contest(days, {"one": build}, rates=(1e-6, 0.1), **more)["one"]
    assert sorted(built) == [0, 0, 1, 1, 2, 2]
    assert result.rate == 0.1
    assert len(result.runs) == len(result.accuracies) == 3
    full = contest(days, {"one": ConstantTranslator}, rates=(0.1,), **more)["one"]
    for run, alone in zip(result.runs, full.runs, strict=True):
        assert run.losses == pytest.approx(alone.losses, rel=1e-5)
