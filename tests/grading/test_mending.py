"""Assignments of functions to mend are released broken, and graded as every other."""

import json
import shutil

import pytest

from attncourse.grading.course.mending import (
    BROKEN,
    functions_to_mend,
    is_in_the_way,
    mend_notebook,
)
from attncourse.grading.errors import UserError
from attncourse.practice.drills import drills_of
from helpers.project import ROOT
from helpers.small_class import refuses, run

CHAPTER, NAME = "05_kqv", "05_kqv_mend"


@pytest.fixture
def course(tmp_path):
    """Make a course of chapter 5 alone."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / CHAPTER, tmp_path / "solutions" / CHAPTER)
    return tmp_path


def notebook_in(course, room: str) -> dict:
    """Return the notebook of the assignment to mend in this folder of the course."""
    return json.loads((course / room / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))


def sources_by_id(notebook: dict) -> dict[str, str]:
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def hand_in(course, student: str, notebook: dict) -> None:
    place = course / "submitted" / student / NAME / f"{NAME}.ipynb"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.mark.slow
def test_broken_functions_are_released_and_graded(course):
    """Broken functions earn nothing, mended ones all; the report names the mistakes."""
    process = run("release", CHAPTER, "--mend", 2, "--seed", 3, "--untested", cwd=course)
    assert process.returncode == 0, process
    chosen = functions_to_mend(CHAPTER, 2, 3)
    released = notebook_in(course, "exercises")
    assert "BEGIN SOLUTION" not in json.dumps(released)
    assert BROKEN not in json.dumps(released)
    mended = json.loads(json.dumps(released))
    for drill in chosen:
        name = f"answer-{drill.function}"
        assert sources_by_id(released)[name] == "\n".join(drill.code)
        cell = next(c for c in mended["cells"] if c["id"] == name)
        cell["source"] = "\n".join(drill.right)
    hand_in(course, "anna", released)
    hand_in(course, "ben", mended)
    exiting = json.loads(json.dumps(mended))
    exiting["cells"][1]["source"] = "import os\nos._exit(0)"
    hand_in(course, "cem", exiting)
    process = run("grade", NAME, cwd=course)
    assert process.returncode == 0, process
    reports = {
        student: json.loads((course / "reports" / NAME / f"{student}.json").read_text())
        for student in ("anna", "ben", "cem")
    }
    points = {s: sum(c["points"] for c in r["cells"].values()) for s, r in reports.items()}
    assert points["anna"] == 0
    assert points["ben"] == 4
    mistakes = {tuple(mistake) for mistake in reports["anna"]["mistakes"]}
    assert mistakes == {(drill.exercise, drill.name) for drill in chosen}
    assert reports["cem"]["status"] in ("graded", "interrupted")
    similar_process = run("similar", NAME, cwd=course)
    assert "says nothing" in similar_process.stdout
    assert "anna" not in similar_process.stdout
    solution_process = run("solution", NAME, cwd=course)
    assert solution_process.returncode == 0
    text = (course / "reports" / NAME / f"{NAME}_solution.ipynb").read_text(encoding="utf-8")
    assert BROKEN not in text
    assert sources_by_id(json.loads(text))[f"answer-{chosen[0].function}"] == "\n".join(
        chosen[0].right
    )


@pytest.mark.slow
def test_releasing_again_changes_nothing(course):
    for _ in range(2):
        process = run("release", CHAPTER, "--mend", 2, "--seed", 3, "--untested", cwd=course)
        assert (process.returncode, process.stderr) == (0, ""), process
    before = (course / "solutions" / NAME / f"{NAME}.ipynb").read_bytes()
    drawn = functions_to_mend(CHAPTER, 2, 3)
    other_seed = next(s for s in range(4, 99) if functions_to_mend(CHAPTER, 2, s) != drawn)
    refuses(
        run("release", CHAPTER, "--mend", 2, "--seed", other_seed, "--untested", cwd=course),
        "is there already, with other functions",
        f"attncourse release {NAME}",
    )
    assert (course / "solutions" / NAME / f"{NAME}.ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((CHAPTER, "--mend", 99), ("05_kqv has drills for", "--mend ")),
        ((CHAPTER, "--mend", 2, "--seed", "b"), ("--seed takes a whole number",)),
        ((CHAPTER, "--seed", 3), ("--seed says which functions are drawn with --mend",)),
        (("--all", "--mend", 2), ("--mend is for one assignment",)),
        (("99_none", "--mend", 2), ("99_none has no drills", CHAPTER)),
        ((CHAPTER, "--mend", 2, "--variant", "forbidden"), ("leave --variant away",)),
    ],
)
def test_bad_mend_options_are_refused_in_one_sentence(course, arguments, words):
    refuses(run("release", *arguments, cwd=course), *words)
    assert not (course / "solutions" / NAME).exists()
    assert not (course / "exercises").exists()


def test_another_seed_draws_other_functions():
    draws = {tuple(d.id for d in functions_to_mend(CHAPTER, 2, seed)) for seed in range(6)}
    assert len(draws) > 1
    assert functions_to_mend(CHAPTER, 2, 1) == functions_to_mend(CHAPTER, 2, 1)


@pytest.mark.parametrize("seed", range(6))
def test_no_function_is_the_answer_to_another(seed):
    chosen = functions_to_mend(CHAPTER, 2, seed)
    assert len({drill.exercise for drill in chosen}) == 2
    assert not is_in_the_way(*chosen)
    defined = [f"{kind} {drill.function}(" for drill in chosen for kind in ("def", "class")]
    assert not any(text in drill.setup for drill in chosen for text in defined)
    order = [drill.exercise for drill in drills_of("kqv")]
    assert [order.index(d.exercise) for d in chosen] == sorted(
        order.index(d.exercise) for d in chosen
    )


def test_a_chapter_without_drills_is_refused(monkeypatch):
    monkeypatch.setattr("attncourse.grading.course.mending.drills_of", lambda stem: ())
    with pytest.raises(UserError, match="05_kqv has no drills"):
        functions_to_mend(CHAPTER, 1, 0)


def test_the_solved_notebook_also_has_the_broken_code():
    chosen = functions_to_mend(CHAPTER, 2, 5)
    cells = mend_notebook(CHAPTER, chosen)["cells"]
    answers = [c for c in cells if BROKEN in c["metadata"]]
    assert [c["metadata"][BROKEN] for c in answers] == ["\n".join(d.code) for d in chosen]
    ids = [c["metadata"]["nbgrader"]["grade_id"] for c in cells if "nbgrader" in c["metadata"]]
    assert len(set(ids)) == len(ids)
