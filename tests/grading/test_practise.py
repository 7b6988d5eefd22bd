"""``attncourse practise`` puts the mistakes that checks named first, and overwrites nothing."""

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
    sentence = f"What happened: {full_sentence(drill.name)}\n{drill.sentence}"
    return f"✗ {drill.exercise}: 2 of 9 points\n{sentence}\n  ✗ a criterion (0/3): other numbers"


def saved_notebook(*texts: str, kind: str = "display") -> dict:
    """Return a notebook of chapter 5 whose checks have put out these texts."""
    outputs = {
        "display": lambda t: {"output_type": "display_data", "data": {"text/plain": t}},
        "stream": lambda t: {"output_type": "stream", "text": t.splitlines(keepends=True)},
        "error": lambda t: {"output_type": "error", "evalue": f"\x1b[31m{t}\x1b[0m"},
    }
    cells = [
        {"cell_type": "code", "source": 'check("kqv.project", project)', "outputs": [output]}
        for output in map(outputs[kind], texts)
    ]
    cells.append({"cell_type": "markdown", "source": "about kqv.project"})
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def put_notebook(path, notebook) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def functions_in(path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["id"].startswith("mend-")]


@pytest.mark.parametrize("kind", ["display", "stream", "error"])
def test_mistakes_named_by_checks_come_first(tmp_path, kind):
    named = [KQV[1], KQV[-1]]
    put_notebook(
        tmp_path / CHAPTER / "05_kqv.ipynb",
        saved_notebook(*(verdict_text(d) for d in [*named, named[0]]), kind=kind),
    )
    practice = write_practice(CHAPTER, 4, "3", tmp_path)
    codes = functions_in(practice.path)
    named_mistakes = {(d.exercise, d.name) for d in named}
    drills = [next(d for d in KQV if "\n".join(d.code) == code) for code in codes]
    kinds = [(d.exercise, d.name) for d in drills]
    assert set(kinds[: len(named_mistakes)]) == named_mistakes
    assert len(codes) == practice.drills == 4
    outputs = saved_outputs(tmp_path, STEM)
    assert outputs.named[0] == order.NamedMistake(named[0].exercise, named[0].name.lower())


def test_outputs_of_other_verdicts_are_not_taken_together(tmp_path):
    right = "✓ kqv.project: 7 of 7 points"
    unnamed = "✗ kqv.attention_scores: 1 of 7 points\n  ✗ values"
    text = f"{unnamed}\n{verdict_text(KQV[-1])}\n{right}"
    put_notebook(tmp_path / "05_kqv.ipynb", saved_notebook(text, kind="stream"))
    assert [n.target for n in saved_outputs(tmp_path, STEM).named] == [KQV[-1].exercise]


def test_a_practice_notebook_overwrites_nothing(tmp_path):
    first = write_practice(CHAPTER, 2, "1", tmp_path)
    before = first.path.read_bytes()
    second = write_practice(CHAPTER, 2, "2", tmp_path)
    assert first.path.name == "05_kqv_practice.ipynb"
    assert second.path.name == "05_kqv_practice_2.ipynb"
    assert first.path.read_bytes() == before
    refuses(run("practise", CHAPTER, "-o", first.path, cwd=tmp_path), "is there already")
    assert first.path.read_bytes() == before


def test_the_same_seed_draws_the_same_drills(tmp_path):
    notebooks = [write_practice(CHAPTER, 3, seed, tmp_path).path.read_bytes() for seed in "778"]
    assert notebooks[0] == notebooks[1] != notebooks[2]


def test_practise_says_where_the_drills_come_from(tmp_path):
    (tmp_path / "empty").mkdir()
    put_notebook(tmp_path / "cleared" / "05_kqv.ipynb", saved_notebook())
    put_notebook(tmp_path / "damaged" / "05_kqv.ipynb", saved_notebook())
    (tmp_path / "damaged" / "cut.ipynb").write_text('{"cells": [')
    for name, words in {
        "empty": ("no notebook of 05_kqv in", "--folder"),
        "cleared": ("holds no outputs", "run its checks and save it"),
        "damaged": ("not read:", "download it again"),
    }.items():
        process = run("practise", CHAPTER, "--folder", tmp_path / name, cwd=tmp_path)
        assert process.returncode == 0, process
        assert "6 functions to mend" in process.stdout
        assert all(word in process.stderr for word in words), process.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("5_kqv",), ("no chapter is called 5_kqv", "did you mean 05_kqv?")),
        ((CHAPTER, "--seed", "seven"), ("--seed takes a whole number", "'seven'")),
        ((CHAPTER, "--number", "99"), (f"05_kqv has {len(KQV)} drills",)),
        ((CHAPTER, "--folder", "nowhere"), ("there is no folder nowhere", "--folder")),
    ],
)
def test_bad_practise_options_are_refused(tmp_path, arguments, words):
    refuses(run("practise", *arguments, cwd=tmp_path), *words)
    assert not [*tmp_path.iterdir()]


def test_submissions_do_not_count_as_own_outputs(tmp_path):
    put_notebook(
        tmp_path / "submitted" / "anna" / CHAPTER / "05_kqv.ipynb",
        saved_notebook(verdict_text(KQV[0])),
    )
    assert not saved_outputs(tmp_path, STEM).named


def test_a_practice_notebook_holds_no_answers(tmp_path):
    """Neither progress nor a package counts it; a folder of it alone is refused."""
    write_practice(CHAPTER, 2, "1", tmp_path)
    process = run("progress", cwd=tmp_path)
    refuses(process, "no notebook with exercises", "is for practice")
    process = run("assemble", "05_kqv_practice.ipynb", cwd=tmp_path)
    refuses(
        process, "05_kqv_practice.ipynb is for practice", "name the notebooks of your exercises"
    )


@pytest.mark.slow
def test_a_practice_notebook_is_left_out_of_a_package(tmp_path):
    """``attncourse assemble *.ipynb`` takes the exercises alone."""
    shutil.copy(ROOT / "exercises" / "02_mixing" / "02_mixing.ipynb", tmp_path)
    write_practice("02_mixing", 2, "1", tmp_path)
    process = run("assemble", "02_mixing.ipynb", "02_mixing_practice.ipynb", cwd=tmp_path)
    assert process.returncode == 0, process
    assert (tmp_path / "mine" / "mixing.py").is_file()
