"""Chapter 10's little language: its sentences by another rule, its losses by counting."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest
import torch
from torch import nn

from attncourse.masking import causal_mask, leak
from attncourse.tasks.little_language import (
    NOTHING,
    PAD,
    SENTENCES,
    START,
    TRAINED,
    UNSEEN,
    VALID,
    VOCABULARY_WORDS,
    NextWordReader,
    encode,
    floor,
    from_beginnings,
    guess_next,
    loss_of,
    one_ahead,
    pairs,
    write,
)
from attncourse.tasks.training import train

PRONOUN_OF_NOUN = {"king": "himself", "queen": "herself", "robot": "itself"}
SENTENCE_PATTERN = re.compile(
    r"the (?:(?:old|tall) )?(king|queen|robot)(s?) (?:(?:often|now) )?(?:admire|see|know)(s?) "
    r"(himself|herself|itself|themselves) \."
)


def agrees(sentence: str) -> bool:
    """Whether a sentence has the form, and verb and pronoun agree with the noun."""
    parts = SENTENCE_PATTERN.fullmatch(sentence)
    if parts is None:
        return False
    noun, plural, verb, pronoun = parts.groups()
    return bool(plural) != bool(verb) and pronoun == (
        "themselves" if plural else PRONOUN_OF_NOUN[noun]
    )


def test_the_language_is_all_that_agrees():
    assert len(SENTENCES) == len(VALID) == 3 * 2 * 3 * 3 * 3
    assert all(agrees(sentence) for sentence in VALID)
    assert not agrees("the kings sees himself .")
    assert len(VOCABULARY_WORDS) == 24


def test_ids_spell_sentences_and_parts_are_disjoint():
    parts = []
    for ids in (TRAINED, UNSEEN):
        assert ids.shape[1] == 8
        assert (ids[:, 0] == START).all()
        parts.append(
            {" ".join(VOCABULARY_WORDS[i] for i in row[1:] if i != PAD) for row in ids.tolist()}
        )
    assert [len(part) for part in parts] == [122, 40]
    assert parts[0] | parts[1] == VALID
    assert not parts[0] & parts[1]
    with pytest.raises(ValueError, match="words of the language"):
        encode([["the", "pope"]])


def test_each_target_is_the_next_word_and_padding_has_none():
    read, target = guess_next(200, torch.Generator().manual_seed(0))
    assert read.shape == target.shape == (200, 7)
    known = {tuple(row) for row in TRAINED.tolist()}
    for read_row, target_row in zip(read.tolist(), target.tolist(), strict=True):
        assert (*read_row, PAD if target_row[-1] == NOTHING else target_row[-1]) in known
        for i in range(6):
            assert target_row[i] == (NOTHING if read_row[i + 1] == PAD else read_row[i + 1])


class CountingReader(nn.Module):
    """Knows the sentences to train on: the next word's true share after each beginning."""

    def __init__(self):
        super().__init__()
        self.after: dict[tuple, Counter] = {}
        for row in TRAINED.tolist():
            for i in range(1, 8):
                self.after.setdefault(tuple(row[:i]), Counter())[row[i]] += 1

    def forward(self, ids):
        logits = torch.full((*ids.shape, len(VOCABULARY_WORDS)), -1e4)
        for b, row in enumerate(ids.tolist()):
            for i in range(len(row)):
                counts = self.after.get(tuple(row[: i + 1]), Counter({PAD: 1}))
                for word, count in counts.items():
                    logits[b, i, word] = math.log(count / counts.total())
        return logits


def test_counting_reaches_the_least_loss_and_writes_known_text():
    model = CountingReader()
    read, target = pairs(TRAINED)
    assert loss_of(model(read), target) == pytest.approx(floor(), abs=1e-5)
    assert loss_of(from_beginnings(model, read), target) == pytest.approx(floor(), abs=1e-5)
    known = {" ".join(VOCABULARY_WORDS[i] for i in row[1:] if i != PAD) for row in TRAINED.tolist()}
    texts = write(model, 60)
    assert len(texts) == 60
    assert set(texts) <= known
    assert len(set(texts)) > 20
    assert texts == write(model, 60) != write(model, 60, seed=1)


def test_only_the_right_mask_reads_beginnings_alike():
    torch.manual_seed(0)
    builders = {
        "before": NextWordReader,
        "after": lambda: NextWordReader(after=True),
        "ahead": lambda: NextWordReader(one_ahead),
    }
    for name, build in builders.items():
        model = build()
        read, target = pairs(UNSEEN)
        with torch.no_grad():
            all_logits, alone = model(read), from_beginnings(model, read)
        counted = target != NOTHING
        assert torch.allclose(all_logits[counted], alone[counted], atol=1e-5) == (name == "before")
        x = model.embed(UNSEEN[0, :6]).detach()
        seen = leak(lambda x, m=model: m.logits(x, m.mask(6)), x, causal_mask(6))
        assert (seen == 0) == (name == "before")


def test_only_a_leaking_mask_comes_below_the_floor():
    honest, leaky = (
        train(build, guess_next, rate=0.01, steps=60, batch=32)
        for build in (NextWordReader, lambda: NextWordReader(one_ahead))
    )
    assert min(leaky.losses) < floor() < min(honest.losses)
