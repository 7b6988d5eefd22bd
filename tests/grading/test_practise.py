"""``attncourse practise``: what the checks named comes first, and nothing is lost."""

import json
import shutil

import pytest

from attncourse.checks.showing.verdict import full_sentence
from attncourse.grading.student.practise import saved_outputs, write_practice
from attncourse.practice import order
from attncourse.practice.drills import drills_of
from helpers.project import ROOT
from helpers.small_class import refuses, run

KQV = drills_of("kqv")
CHAPTER, STEM = "05_kqv", "kqv"


def verdict_text(drill) -> str:
    told = f"What happened: {full_sentence(drill.name)}\n{drill.sentence}"
    return f"✗ {drill.exercise}: 2 of 9 points\n{told}\n  ✗ a criterion (0/3): other numbers"


def saved_notebook(*texts: str, shape: str = "display") -> dict:
    """A notebook of chapter 5 whose checks have put out these texts."""
    outputs = {
        "display": lambda t: {"output_type": "display_data", "data": {"text/plain": t}},
        "stream": lambda t: {"output_type": "stream", "text": t.splitlines(keepends=True)},
        "error": lambda t: {"output_type": "error", "evalue": f"\x1b[31m{t}\x1b[0m"},
    }
    cells = [
        {"cell_type": "code", "source": 'check("kqv.project", project)', "outputs": [made]}
        for made in map(outputs[shape], texts)
    ]
    cells.append({"cell_type": "markdown", "source": "about kqv.project"})
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def put_notebook(place, notebook) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(notebook), encoding="utf-8")


def functions_in(path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["id"].startswith("mend-")]


@pytest.mark.parametrize("shape", ["display", "stream", "error"])
def test_what_the_checks_named_comes_first(tmp_path, shape):
    named = [KQV[1], KQV[-1]]
    put_notebook(
        tmp_path / CHAPTER / "05_kqv.ipynb",
        saved_notebook(*(verdict_text(d) for d in [*named, named[0]]), shape=shape),
    )
    made = write_practice(CHAPTER, 4, "3", tmp_path)
    codes = functions_in(made.path)
    asked = {(d.exercise, d.name) for d in named}
    first = [next(d for d in KQV if "\n".join(d.code) == code) for code in codes]
    kinds = [(d.exercise, d.name) for d in first]
    assert set(kinds[: len(asked)]) == asked
    assert len(codes) == made.drills == 4
    found = saved_outputs(tmp_path, STEM)
    assert found.named[0] == order.NamedMistake(named[0].exercise, named[0].name.lower())


def test_outputs_of_other_verdicts_are_not_taken_together(tmp_path):
    right = "✓ kqv.project: 7 of 7 points"
    unnamed = "✗ kqv.attention_scores: 1 of 7 points\n  ✗ values"
    text = f"{unnamed}\n{verdict_text(KQV[-1])}\n{right}"
    put_notebook(tmp_path / "05_kqv.ipynb", saved_notebook(text, shape="stream"))
    assert [n.target for n in saved_outputs(tmp_path, STEM).named] == [KQV[-1].exercise]


def test_nothing_is_overwritten(tmp_path):
    first = write_practice(CHAPTER, 2, "1", tmp_path)
    before = first.path.read_bytes()
    second = write_practice(CHAPTER, 2, "2", tmp_path)
    assert first.path.name == "05_kqv_practice.ipynb"
    assert second.path.name == "05_kqv_practice_2.ipynb"
    assert first.path.read_bytes() == before
    refuses(run("practise", CHAPTER, "-o", first.path, cwd=tmp_path), "is there already")
    assert first.path.read_bytes() == before


def test_the_same_seed_draws_the_same(tmp_path):
    made = [write_practice(CHAPTER, 3, seed, tmp_path).path.read_bytes() for seed in "778"]
    assert made[0] == made[1] != made[2]


def test_it_says_where_the_drills_come_from(tmp_path):
    (tmp_path / "empty").mkdir()
    put_notebook(tmp_path / "cleared" / "05_kqv.ipynb", saved_notebook())
    put_notebook(tmp_path / "damaged" / "05_kqv.ipynb", saved_notebook())
    (tmp_path / "damaged" / "cut.ipynb").write_text('{"cells": [')
    for name, words in {
        "empty": ("no notebook of 05_kqv in", "--folder"),
        "cleared": ("holds no outputs", "run its checks and save it"),
        "damaged": ("not read:", "download it again"),
    }.items():
        done = run("practise", CHAPTER, "--folder", tmp_path / name, cwd=tmp_path)
        assert done.returncode == 0, done
        assert "6 functions to mend" in done.stdout
        assert all(word in done.stderr for word in words), done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("5_kqv",), ("no chapter is called 5_kqv", "did you mean 05_kqv?")),
        ((CHAPTER, "--seed", "seven"), ("--seed takes a whole number", "'seven'")),
        ((CHAPTER, "--number", "99"), (f"05_kqv has {len(KQV)} drills",)),
        ((CHAPTER, "--folder", "nowhere"), ("there is no folder nowhere", "--folder")),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, words):
    refuses(run("practise", *arguments, cwd=tmp_path), *words)
    assert not [*tmp_path.iterdir()]


def test_what_students_handed_in_counts_in_nobody_s_folder(tmp_path):
    put_notebook(
        tmp_path / "submitted" / "anna" / CHAPTER / "05_kqv.ipynb",
        saved_notebook(verdict_text(KQV[0])),
    )
    assert not saved_outputs(tmp_path, STEM).named


def test_what_is_mended_is_no_answer(tmp_path):
    """Neither progress nor a package counts it; alone, that is said."""
    write_practice(CHAPTER, 2, "1", tmp_path)
    done = run("progress", cwd=tmp_path)
    refuses(done, "no notebook with exercises", "is for practice")
    done = run("assemble", "05_kqv_practice.ipynb", cwd=tmp_path)
    refuses(done, "05_kqv_practice.ipynb is for practice", "name the notebooks of your exercises")


@pytest.mark.slow
def test_it_lies_beside_the_exercises_without_harm(tmp_path):
    """``attncourse assemble *.ipynb`` takes the exercises alone."""
    shutil.copy(ROOT / "exercises" / "02_mixing" / "02_mixing.ipynb", tmp_path)
    write_practice("02_mixing", 2, "1", tmp_path)
    done = run("assemble", "02_mixing.ipynb", "02_mixing_practice.ipynb", cwd=tmp_path)
    assert done.returncode == 0, done
    assert (tmp_path / "mine" / "mixing.py").is_file()
