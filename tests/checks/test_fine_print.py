"""What a check judges by, an exercise's text says: told from the cases and from the mistakes."""

import re
from functools import cache

import pytest
from grid import covered

from attncourse.checks import examine, exercises
from attncourse.llama import merge_pairs
from helpers.project import ROOT

EXERCISES = exercises()


@cache
def texts(stem: str) -> dict[str, str]:
    """Return the text on each exercise of a chapter's notebook, before the hints."""
    (path,) = ROOT.glob(f"solutions/*_{stem}/*_{stem}.py")
    lines = path.read_text(encoding="utf-8").replace("\n# ", "\n").replace("\n#\n", "\n\n")
    notes = re.findall(r"<!-- facts: (\w+) -->(.*?)<!-- hints: \1 -->", lines, re.DOTALL)
    return {name: " ".join(text.split()) for name, text in notes}


def owed_phrases(exercise) -> dict[str, str]:
    """Return the phrases that an exercise's text must contain, by the reason."""
    cells = covered(exercise)
    owed = {f"cases hold {c}": "whole numbers" for c in cells if c.startswith("integers in ")}
    if "float32" in cells and exercise.stem not in NUMPY_CHAPTERS:
        owed["results keep their dtype"] = "float64"
    guards = [m.name for m in exercise.mistakes if "guard" in f"{m.name} {m.explanation}"]
    owed |= {name: "guard" for name in guards}
    if any("ValueError" in c.name for c in exercise.criteria):
        owed["something is refused"] = "ValueError"
    return owed | {
        f"{name} may not be called": name.removeprefix("special_") for name in exercise.forbids
    }


NUMPY_CHAPTERS = ("tokens", "mixing", "lookup", "self_attention")


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.target)
def test_the_text_says_all_that_is_judged(exercise):
    text = texts(exercise.stem)[exercise.name]
    unsaid = {why: word for why, word in owed_phrases(exercise).items() if word not in text}
    assert unsaid == {}


def test_a_guard_that_is_accepted_has_its_size_in_the_text():
    for exercise in EXERCISES.values():
        text = texts(exercise.stem)[exercise.name]
        for size in re.findall(r"guard[^.;]* may be (\S+) at most", text):
            assert size == "1e-12", exercise.target


def test_a_text_that_says_too_little_is_named():
    owed = owed_phrases(EXERCISES["tokens.cosine_similarity"])
    assert owed["cases hold integers in X"] == "whole numbers"
    assert "guard" in owed.values()
    assert (
        owed_phrases(EXERCISES["transformer.layer_norm"])["layer_norm may not be called"]
        == "layer_norm"
    )


def as_tuple(symbols, ranks):
    return tuple(merge_pairs(symbols, ranks))


def as_it_came(symbols, ranks):
    merged = merge_pairs(symbols, ranks)
    return symbols if merged == symbols else merged


@pytest.mark.parametrize(
    ("answer", "word"), [(as_tuple, "tuple"), (as_it_came, "the list that came in")]
)
def test_a_promised_new_list_is_not_the_argument(answer, word):
    assert "a new list" in texts("llama")["merge_pairs"]
    verdict = examine("llama.merge_pairs", answer, seed=1)
    assert 0 < verdict.earned < verdict.possible
    assert word in str(verdict)
