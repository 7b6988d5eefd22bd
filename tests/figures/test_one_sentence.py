"""The same in a real model: kept numbers that the model gives, and links to states that exist."""

from __future__ import annotations

import json
import re
import sys
from urllib.parse import unquote

import pytest

from attncourse import STEMS
from attncourse.data import kept
from attncourse.figures import moving
from attncourse.figures.one_sentence import LIVE_STATES, NOTHING, in_percent, same_in_real_model
from helpers.project import ROOT

ANSWER = kept("one_sentence")["answer"]


@pytest.mark.parametrize("stem", LIVE_STATES)
def test_bars_and_words_show_the_stored_numbers(stem):
    shown = same_in_real_model(stem)
    says = shown.drawing.says
    assert f"as it is: {in_percent(ANSWER['p'])}" in says
    if stem in NOTHING:
        assert stem not in ANSWER["undone"]
        assert shown.drawing.parts[-1].count(NOTHING[stem]) == 1
    else:
        row = ANSWER["undone"][stem]
        assert f"{row['undone']}: {in_percent(row['p'])}" in says
        assert ("stays" in says) == (row["first"][0] == ANSWER["answer"])
        longs = re.findall(r"h(-?[\d.]+)Z", "".join(shown.drawing.parts))
        assert [-float(length) for length in longs] == pytest.approx(
            [max(200 * p, 1) for p in (ANSWER["p"], row["p"])], abs=0.06
        )


def test_chapters_5_to_17_end_with_their_own_sentence():
    assert tuple(LIVE_STATES) == tuple(STEMS[4:17])
    for number, stem in enumerate(LIVE_STATES, start=5):
        text = (ROOT / "book" / f"{number:02d}_{stem}.md").read_text(encoding="utf-8")
        assert text.count(f'same_in_real_model("{stem}")') == 1
        assert (
            text.index("## Summary")
            < text.index("same_in_real_model(")
            < text.index("## Exercises")
        )


@pytest.mark.parametrize("stem", LIVE_STATES)
def test_a_link_names_controls_that_the_live_page_has(stem):
    page, _, address = same_in_real_model(stem).address.partition("#set=")
    name, text, *steps = address.split("&")
    assert (page, name, unquote(text)) == (
        "real_model.html",
        "real_model",
        f"text={ANSWER['text']}",
    )
    markup = moving.real_model()._repr_html_()
    for step in steps:
        part, value = re.fullmatch(r"(\w+)(?:=(\w+)|!)", step).groups()
        count = markup.count(f'data-part="{part}"')
        assert count >= 1, step
        assert not part.startswith("switch") or int(value) < count, step


def test_the_stored_numbers_are_the_real_models(real_model):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import one_sentence as benchmark
    finally:
        sys.path.pop(0)
    again = benchmark.chances_of_answer(*real_model)
    assert again["p"] == pytest.approx(ANSWER["p"], abs=2e-3)
    assert again["undone"].keys() == ANSWER["undone"].keys()
    for stem, row in ANSWER["undone"].items():
        assert again["undone"][stem]["p"] == pytest.approx(row["p"], abs=2e-3), stem
    assert json.dumps(ANSWER["text"]) in (ROOT / "attncourse/data/one_sentence.json").read_text()


def test_another_chapter_is_refused():
    with pytest.raises(ValueError, match="stem: expected one of kqv"):
        same_in_real_model("tokens")
