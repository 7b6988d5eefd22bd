"""Which drills come first, and what a notebook of them says."""

import json
import subprocess
import sys

import pytest

from attncourse.practice import session
from attncourse.practice.cells import notebook_text, practice_notebook, value_text
from attncourse.practice.drills import drills_of
from attncourse.practice.order import (
    EXACT,
    OTHER,
    RELATED,
    NamedMistake,
    nearness,
    one_for_each_function,
    ordered_drills,
)

KQV = drills_of("kqv")


def test_what_was_named_comes_first_then_relatives_then_others():
    named = [NamedMistake("kqv.scaled_dot_product_attention", "divided by d_k")]
    near = [nearness(drill, named) for drill in ordered_drills(KQV, named, seed=3)]
    assert near == sorted(near)
    assert {EXACT, RELATED, OTHER} == set(near)


def test_each_kind_comes_before_a_second_one_of_it():
    order = [(d.exercise, d.name) for d in ordered_drills(drills_of("masking"), seed=4)]
    kinds = len(set(order))
    assert kinds < len(order)
    assert len(set(order[:kinds])) == kinds


def test_the_seed_decides_the_order_alone():
    assert ordered_drills(KQV, seed=5) == ordered_drills(KQV, seed=5)
    assert ordered_drills(KQV, seed=5) != ordered_drills(KQV, seed=6)
    assert sorted(d.id for d in ordered_drills(KQV, seed=5)) == sorted(d.id for d in KQV)


def test_one_for_each_function():
    first = one_for_each_function(KQV)
    assert len({d.exercise for d in KQV}) == len(first)
    assert first[0] is KQV[0]


def test_a_notebook_s_right_lines_pass_its_own_checks(tmp_path):
    """Its cells run as they stand, with the mended code in place of the broken."""
    chosen = ordered_drills(KQV, seed=7)[:3]
    notebook = json.loads(notebook_text(practice_notebook("kqv", chosen)))
    code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    for drill in chosen:
        place = code.index("\n".join(drill.code))
        code[place] = "\n".join(drill.right)
    (tmp_path / "run.py").write_text("\n".join(code))
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("✓ kqv.") == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([[1, 2], [3, "nan"]], "[[1, 2], [3, nan]]"),
        ({"shape": [2, 7, 3]}, "an array of shape (2, 7, 3)"),
        ({"raised": "ValueError"}, "ValueError"),
        ({"changed": "x"}, "the right result, and changes x in place"),
        ({"parts": [1, {"name": "b", "value": [2]}]}, "1; b: [2]"),
        (None, "None"),
    ],
)
def test_values_in_words(value, text):
    assert value_text(value) == text


def test_mend_shows_one_after_the_other(capsys):
    session._waiting.clear()
    shown = []
    for _ in range(len(KQV) + 1):
        session.mend("05_kqv", seed=2)
        shown.append(capsys.readouterr().out)
    assert len(set(shown[:-1])) == len(KQV)
    assert shown[-1] == shown[0]
    assert 'check("kqv.' in shown[0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [(("nothing",), "expected a chapter"), (("kqv", "x"), "expected a whole number")],
)
def test_mend_refuses_in_a_sentence(asked, said):
    with pytest.raises(ValueError, match=said):
        session.mend(*asked)


def test_mend_says_that_a_chapter_has_no_drills(monkeypatch):
    monkeypatch.setattr(session, "drills_of", lambda stem: ())
    with pytest.raises(ValueError, match="chapter 5 has no drills yet"):
        session.mend("kqv")
