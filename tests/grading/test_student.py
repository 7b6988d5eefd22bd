"""A student's own notebooks: progress, and a package of the right answers."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attncourse import MILESTONES
from attncourse.checks import exercises
from attncourse.checks.index import question_points
from attncourse.grading.cli import progress_text
from attncourse.grading.errors import UserError
from attncourse.grading.limits import Limits
from attncourse.grading.student import selfcheck
from attncourse.grading.student.assemble import assemble_package, cause_of, parts_that_fit
from attncourse.grading.student.package import (
    ChapterParts,
    Definition,
    milestones_reached,
    package_files,
    record_milestone,
)
from attncourse.grading.student.progress import (
    FolderProgress,
    folder_progress,
    progress_table,
    summary,
)
from helpers.command_line import refuses
from helpers.forked_commands import run
from helpers.project import ROOT
from helpers.released_assignment import MIX, NORMALIZE, released
from helpers.small_course import cell, notebook, solution

LIMITS = Limits.of(60)
SELF_ATTENTION = "def self_attention(X):\n    return mix(attention_weights(X), X)"
PROJECT = "def project(x, weight):\n    return x @ weight"
WRONG_WEIGHTS = "def attention_weights(X):\n    return softmax((X @ X.mT).mT * 2)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Make a student's folder, with files that do not count beside the notebooks."""
    work = tmp_path_factory.mktemp("work")
    released(work, "02_mixing", mix=MIX, uniform_weights="def uniform_weights(n):\n    return n")
    released(work, "02_mixing", "old/02_mixing (1).ipynb", normalize_rows=NORMALIZE, mix="x = = 1")
    released(work, "04_self_attention", attention_weights="def attention_weights(X:\n  pass")
    released(work, "06_scoring")
    (work / "02_torn.ipynb").write_text('{"cells": [\n')
    (work / "07_scaling.ipynb").write_bytes((ROOT / "book/07_scaling.ipynb").read_bytes())
    solved = ROOT / "solutions/03_lookup/03_lookup.ipynb"
    (work / "03_lookup.ipynb").write_bytes(solved.read_bytes())
    hidden = work / ".ipynb_checkpoints" / "03_lookup-checkpoint.ipynb"
    hidden.parent.mkdir()
    hidden.write_bytes(solved.read_bytes())
    return work


def evaluate_in_package(package: Path, expression: str) -> list:
    """Return the value of an expression in a process that imports the package as a user would."""
    code = f"import json, numpy as np, mine.self_attention as m; print(json.dumps({expression}))"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=package.parent, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


# --- progress -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def progress_and_calls(folder) -> tuple[FolderProgress, list]:
    """Return the progress of the folder, and the arguments of each announcement."""
    calls: list = []
    return folder_progress(folder, LIMITS, lambda *call: calls.append(call)), calls


def test_every_exercise_is_done_tried_or_open(progress_and_calls):
    states = progress_and_calls[0].states
    assert list(states) == list(exercises())
    assert {t for t, s in states.items() if s == "done"} == {"mixing.mix", "mixing.normalize_rows"}
    tried = {"mixing.uniform_weights", "self_attention.attention_weights"}
    assert {t for t, s in states.items() if s == "tried"} == tried
    assert progress_and_calls[0].count("done", "mixing") == progress_and_calls[0].count("done") == 2


def test_each_notebook_is_announced_once(progress_and_calls):
    assert [call[:2] for call in progress_and_calls[1]] == [(n, 4) for n in (1, 2, 3, 4)]


def test_notebooks_left_out_are_named_with_a_reason(progress_and_calls, folder):
    left_out = progress_and_calls[0].left_out
    assert len(left_out) == 3
    for name, reason in (
        ("02_torn.ipynb", "line 2"),
        ("03_lookup.ipynb", "holds the answers"),
        ("07_scaling.ipynb", "a page's notebook"),
    ):
        assert sum(name in line and reason in line for line in left_out) == 1, name


def test_the_next_exercise_is_a_tried_one_if_there_is_one(progress_and_calls, folder):
    assert summary(progress_and_calls[0]).splitlines() == [
        f"2 of {len(exercises()) + len(question_points())} exercises done, 2 tried",
        f"0 of {len(MILESTONES)} milestones are yours",
        f"next: uniform_weights, in {folder / '02_mixing.ipynb'} (about 5 minutes)",
    ]
    states = dict.fromkeys(progress_and_calls[0].states, "done")
    all_done = FolderProgress(states, {}, waiting=frozenset(question_points()))
    assert all_done.next == ""
    assert "the whole course" in summary(all_done)
    last = list(states)[-1]
    assert replace(all_done, states=states | {last: "open"}).next == last


def test_answered_questions_wait_for_a_person(tmp_path):
    path = released(tmp_path, "05_kqv", project=PROJECT)
    before = folder_progress(tmp_path, Limits.of(60))
    assert summary(before).startswith(
        f"1 of {len(exercises()) + len(question_points())} exercises done"
    )
    assert "explain_views" in table_rows(before)["5 kqv"][3]
    path.write_text(path.read_text().replace("YOUR ANSWER HERE", "Because."))
    after = folder_progress(tmp_path, Limits.of(60))
    assert after.waiting == {"kqv.explain_views"}
    assert "; 4 points for a person\n" in summary(after)
    assert table_rows(after)["5 kqv"][1] == "1 of 5; 4 points for a person"
    assert "explain_views" not in table_rows(after)["5 kqv"][3]
    kqv = {t: "done" for t in after.states if t.startswith("kqv.")}
    assert table_rows(replace(after, states=after.states | kqv))["5 kqv"][1:] == [
        "4 of 5; 4 points for a person",
        "",
        "",
    ]
    all_done = replace(before, states=dict.fromkeys(before.states, "done"))
    assert all_done.next == "kqv.explain_views"
    assert summary(all_done).endswith("next: explain_views, in the notebook of chapter 5")


def table_rows(progress: FolderProgress) -> dict[str, list[str]]:
    """Return the rows of the table by their first cells."""
    columns = [[str(cell) for cell in column.cells] for column in progress_table(progress).columns]
    return {row[0].strip(): list(row) for row in zip(*columns, strict=True)}


def test_a_milestone_is_done_only_with_all_parts(progress_and_calls, tmp_path):
    states = progress_and_calls[0].states | {
        t: "done" for t in progress_and_calls[0].states if t.startswith("kqv.")
    }
    before = FolderProgress(states, {})
    assert [before.milestone(stem) for stem in MILESTONES] == [
        "tried",
        *["open"] * (len(MILESTONES) - 1),
    ]
    assert "then attncourse milestone recall\nnext: " in summary(before)
    record_milestone(tmp_path, "recall", 3)
    assert milestones_reached(tmp_path) == {"recall": 3}
    runs = FolderProgress(states, {}, reached=milestones_reached(tmp_path))
    assert runs.milestone("kqv") == "tried"
    assert f"0 of {len(MILESTONES)} milestones are yours; recall runs, with 3 of ours" in summary(
        runs
    )
    assert table_rows(runs)["milestone recall"][1] == "runs, with 3 of ours"
    record_milestone(tmp_path, "recall", 0)
    after = FolderProgress(states, {}, reached=milestones_reached(tmp_path))
    assert after.milestone("kqv") == "done"
    assert f"1 of {len(MILESTONES)} milestones are yours\nnext: " in summary(after)
    assert table_rows(after)["milestone recall"][1] == "yours"
    (tmp_path / "reached.json").write_text("{torn")
    assert milestones_reached(tmp_path) == milestones_reached(tmp_path / "nowhere") == {}


def test_no_name_is_cut_at_80_columns(progress_and_calls):
    from rich.console import Console

    console = Console(width=80, file=None, record=True, quiet=False)
    with console.capture() as captured:
        console.print(progress_table(progress_and_calls[0]))
    for name in ("uniform_weights", "attention_weights", "is_permutation_equivariant"):
        assert name in captured.get()


def test_progress_on_the_command_line(tmp_path):
    released(tmp_path, "06_scoring")
    process = run("progress", tmp_path)
    assert (process.returncode, process.stderr) == (0, "1 of 1: 06_scoring.ipynb\n")
    assert f"0 of {len(exercises()) + len(question_points())} exercises done" in process.stdout
    refuses(run("progress", tmp_path / "nowhere"), "there is no folder", "nowhere")
    (tmp_path / "empty").mkdir()
    refuses(run("progress", tmp_path / "empty"), "no notebook with exercises")


MIX_WITH_TRACE = "import os\nopen({!r}, 'w').write('ran')\n" + MIX


def test_cells_run_in_a_jail_where_there_is_one(tmp_path):
    trace = tmp_path / "trace"
    path = released(tmp_path, "02_mixing", mix=MIX_WITH_TRACE.format(str(trace)))
    process = run("progress", tmp_path)
    assert (process.returncode, trace.exists()) == (0, False), process
    run("check", path)
    assert not trace.exists()


def test_submissions_of_others_are_not_counted(tmp_path):
    released(tmp_path, "02_mixing", mix=MIX)
    for student in ("amara", "bela"):
        released(tmp_path / "submitted" / student / "03_lookup", "03_lookup", softmax="def softmax")
    progress = folder_progress(tmp_path, LIMITS)
    assert set(progress.places.values()) == {tmp_path / "02_mixing.ipynb"}
    assert progress.left_out == (
        "2 notebooks in submitted/STUDENT/…: students handed them in, and "
        "attncourse grade ASSIGNMENT runs them",
    )
    amara = tmp_path / "submitted" / "amara"
    assert set(folder_progress(amara, LIMITS).places.values()) == {
        amara / "03_lookup/03_lookup.ipynb"
    }
    with pytest.raises(UserError, match="students handed them in"):
        folder_progress(amara.parent, LIMITS)


def test_without_a_jail_no_submission_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(selfcheck, "missing_required_layers", lambda: ["user"])
    trace = tmp_path / "trace"
    place = tmp_path / "submitted" / "amara" / "02_mixing"
    path = released(place, "02_mixing", mix=MIX_WITH_TRACE.format(str(trace)))
    for run_submission in (
        lambda: folder_progress(place.parent, LIMITS),
        lambda: selfcheck.check_file(path, LIMITS),
        lambda: assemble_package([path], tmp_path / "mine", LIMITS),
    ):
        with pytest.raises(UserError, match="handed in by amara, and there is no jail"):
            run_submission()
    assert not trace.exists()
    own_path = released(tmp_path, "02_mixing", mix=MIX)
    assert folder_progress(tmp_path, LIMITS).states["mixing.mix"] == "done"
    assert selfcheck.check_file(own_path, LIMITS).sandbox is False


def test_a_files_name_is_no_markup(tmp_path):
    name = f"[b] [link=https:x] {'longer than a line, ' * 5}03_lookup.ipynb"
    released(tmp_path, "03_lookup", f"a [/{name}", dot="def dot")
    process = run("progress", tmp_path)
    assert (process.returncode, process.stderr) == (0, f"1 of 1: {name}\n")
    assert progress_text(1, 2, "[/] [b]x\x1b").plain == "1 of 2: [/] [b]x\u241b"


TERMINAL_CODES = "x\x1b]0;PWN\x07\x1b[31m"


def test_names_in_a_notebook_cannot_control_a_terminal(tmp_path):
    path = released(tmp_path, "05_kqv")
    content = json.loads(path.read_text())
    question = next(c for c in content["cells"] if c["id"] == "explain_views")
    question["metadata"]["nbgrader"]["grade_id"] = TERMINAL_CODES
    path.write_text(json.dumps(content))
    output = run("check", path).stdout
    assert "x ]0;PWN [31m is not answered yet" in output
    assert "\x1b" not in output
    content["cells"].append(solution(TERMINAL_CODES, "x = 1"))
    path.write_text(json.dumps(content))
    process = run("assemble", path, cwd=tmp_path)
    refuses(process, "asks for x ]0;PWN [31m, which", "does not know")
    assert "\x1b" not in process.stderr


# --- assemble -----------------------------------------------------------------------------------


def test_a_package_has_right_answers_and_references(tmp_path):
    mixing = released(tmp_path, "02_mixing", mix=MIX)
    attention = released(
        tmp_path,
        "04_self_attention",
        attention_weights=WRONG_WEIGHTS,
        self_attention=SELF_ATTENTION,
    )
    package = assemble_package([attention, mixing], tmp_path / "mine", LIMITS)
    first, second = package.chapters
    assert (first.stem, first.mine) == ("mixing", ["mix"])
    assert second.mine == ["self_attention"]
    assert second.ours_needed == {"self_attention": ["attention_weights"]}
    lines = str(package).splitlines()
    assert lines[0] == f"2 of 9 parts are yours, in {tmp_path / 'mine'}"
    assert "self_attention.self_attention is yours: right, given a right attention_weights" in lines
    assert "mixing.normalize_rows is ours: not written yet" in lines
    assert any(line.startswith("self_attention.attention_weights is ours: ") for line in lines)
    text = (tmp_path / "mine" / "self_attention.py").read_text()
    assert "from mine.mixing import mix" in text
    assert "* 2" not in text
    assert "# rows of A say" in (tmp_path / "mine" / "mixing.py").read_text()
    X = [[1.0, 0.0], [2.0, 1.0], [0.0, 5.0]]
    scores = np.exp(np.array(X) @ np.array(X).T)
    expected = scores / scores.sum(axis=1, keepdims=True) @ np.array(X)
    result = evaluate_in_package(tmp_path / "mine", f"m.self_attention(np.array({X})).tolist()")
    np.testing.assert_allclose(result, expected, rtol=1e-9)
    assert evaluate_in_package(tmp_path / "mine", "m.mix.__module__") == "mine.mixing"


def test_an_answer_that_needs_its_notebook_is_replaced(tmp_path):
    """The answer uses a name that the notebook computes, which is no definition of a package."""
    content = notebook(
        cell("import numpy as np\none = float(np.ones(1)[0])"),
        solution("mix", "def mix(A, X):\n    return one * A @ X"),
        solution("uniform_weights", "def uniform_weights(n):\n    return np.full((n, n), 1 / n)"),
    )
    path = tmp_path / "02_mixing.ipynb"
    path.write_bytes(content)
    package = assemble_package([path], tmp_path / "mine", LIMITS)
    chapter = package.chapters[0]
    assert chapter.mine == ["uniform_weights"]
    assert "not with the other parts" in chapter.why["mix"]
    assert "one" in chapter.why["mix"]


def test_cause_of_names_the_part_that_breaks_another(tmp_path):
    narrow_mix = MIX.replace("return", "assert X.ndim == 2\n    return")
    imports = "import numpy as np", "from attncourse.mixing import mix"
    chapters = [
        ChapterParts(
            "mixing", tmp_path, definitions_in("import numpy as np", narrow_mix), {"mix": ""}
        ),
        ChapterParts(
            "self_attention",
            tmp_path,
            definitions_in(*imports, SELF_ATTENTION),
            {"self_attention": "", "attention_weights": "not written yet"},
        ),
    ]
    assert cause_of("self_attention.self_attention", chapters, LIMITS) == "mixing.mix"
    first, second = parts_that_fit(chapters, LIMITS)
    assert first.why["mix"].startswith("passes alone, but not with the other parts: ")
    assert second.mine == ["self_attention"]  # it showed what mix had caused


def definitions_in(*texts: str) -> tuple[Definition, ...]:
    return tuple(Definition(ast.parse(text).body[0], text) for text in texts)


def test_a_file_changed_by_hand_is_backed_up(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    for _ in range(2):
        assert assemble_package([path], tmp_path / "mine", LIMITS).copies == ()
    mine = tmp_path / "mine" / "mixing.py"
    written = mine.read_text()
    for number in (1, 2):
        changed = f"{written}\nmore = {number}\n"
        mine.write_text(changed)
        copy = tmp_path / "mine" / f"mixing.py.{number}.bak"
        package = assemble_package([path], tmp_path / "mine", LIMITS)
        assert package.copies == (copy,)
        assert str(copy) in str(package)
        assert copy.read_text() == changed
        assert mine.read_text() == written


def test_assembled_files_are_reproducible(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX, normalize_rows=NORMALIZE)
    package = assemble_package([path], tmp_path / "mine", LIMITS)
    files = {p.name: p.read_text() for p in (tmp_path / "mine").glob("*.py")}
    assert files == package_files(package.chapters)
    for text in files.values():
        compile(text, "mine", "exec")


def notebooks_of_two_students(folder: Path) -> list[Path]:
    places = [folder / "submitted" / student / "02_mixing" for student in ("amara", "bela")]
    for place in places:
        place.mkdir(parents=True)
    return [released(places[0], "02_mixing"), released(places[1], "03_lookup")]


def two_notebooks_of_one_chapter(folder: Path) -> list[Path]:
    return [released(folder, "02_mixing"), released(folder, "02_mixing", "bob.ipynb")]


def notebook_of_another_version(folder: Path) -> list[Path]:
    path = folder / "02_mixing.ipynb"
    path.write_bytes(notebook(solution("mix", MIX), solution("blend", "def blend(): pass")))
    return [path]


def notebook_of_the_instructor(folder: Path) -> list[Path]:
    return [ROOT / "solutions/02_mixing/02_mixing.ipynb"]


def missing_notebook(folder: Path) -> list[Path]:
    return [folder / "05_kqv.ipynb"]


@pytest.mark.parametrize(
    ("make_notebooks", "words"),
    [
        (notebooks_of_two_students, ("notebooks of amara and bela", "name one student's")),
        (
            two_notebooks_of_one_chapter,
            ("two notebooks of chapter mixing", "bob.ipynb", "name one"),
        ),
        (notebook_of_another_version, ("asks for blend", "does not know", "copy your answers")),
        (notebook_of_the_instructor, ("holds the answers",)),
        (missing_notebook, ("there is no file",)),
    ],
)
def test_a_failed_assembly_writes_nothing(tmp_path, make_notebooks, words):
    with pytest.raises(UserError) as error:
        assemble_package(make_notebooks(tmp_path), tmp_path / "mine", LIMITS)
    for word in words:
        assert word in str(error.value)
    assert not (tmp_path / "mine").exists()


def test_nothing_is_written_into_another_folder(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="something else"):
        assemble_package([path], tmp_path / "mine", LIMITS)
    refuses(run("assemble", path, "-o", tmp_path / "yours"), "called mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("blocked_path", ["mine", "mine/mixing.py"])
def test_an_unwritable_package_is_refused_in_one_line(tmp_path, blocked_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    place = tmp_path / blocked_path
    if blocked_path == "mine":
        place.write_text("dear")
    else:
        place.mkdir(parents=True)
        (tmp_path / "mine" / "__init__.py").write_text("# mine")
    words = ("cannot write", blocked_path, "a directory", "name another folder with -o")
    process = run("assemble", path, cwd=tmp_path)
    process.stderr = process.stderr.removeprefix(
        "1 of 1: 02_mixing.ipynb\n"
    )  # judged, then refused
    refuses(process, *words)


def test_assemble_on_the_command_line(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    process = run("assemble", path, cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "1 of 1: 02_mixing.ipynb\n")
    assert process.stdout.splitlines()[0] == "1 of 6 parts are yours, in mine"
    assert (tmp_path / "mine" / "mixing.py").is_file()
