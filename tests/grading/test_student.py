"""What a student's own notebooks amount to: progress, and a package of what is right."""

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
SELF = "def self_attention(X):\n    return mix(attention_weights(X), X)"
PROJECT = "def project(x, weight):\n    return x @ weight"
WRONG = "def attention_weights(X):\n    return softmax((X @ X.mT).mT * 2)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A student's folder, with what else lies about in one."""
    made = tmp_path_factory.mktemp("work")
    released(made, "02_mixing", mix=MIX, uniform_weights="def uniform_weights(n):\n    return n")
    released(made, "02_mixing", "old/02_mixing (1).ipynb", normalize_rows=NORMALIZE, mix="x = = 1")
    released(made, "04_self_attention", attention_weights="def attention_weights(X:\n  pass")
    released(made, "06_scoring")
    (made / "02_torn.ipynb").write_text('{"cells": [\n')
    (made / "07_scaling.ipynb").write_bytes((ROOT / "book/07_scaling.ipynb").read_bytes())
    solved = ROOT / "solutions/03_lookup/03_lookup.ipynb"
    (made / "03_lookup.ipynb").write_bytes(solved.read_bytes())
    hidden = made / ".ipynb_checkpoints" / "03_lookup-checkpoint.ipynb"
    hidden.parent.mkdir()
    hidden.write_bytes(solved.read_bytes())
    return made


def values(package: Path, expression: str) -> list:
    """What an expression is worth where the package is imported as a user would."""
    code = f"import json, numpy as np, mine.self_attention as m; print(json.dumps({expression}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=package.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- progress -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(folder) -> tuple[FolderProgress, list]:
    seen: list = []
    return folder_progress(folder, LIMITS, lambda *told: seen.append(told)), seen


def test_every_exercise_is_done_tried_or_open(found):
    states = found[0].states
    assert list(states) == list(exercises())
    assert {t for t, s in states.items() if s == "done"} == {"mixing.mix", "mixing.normalize_rows"}
    tried = {"mixing.uniform_weights", "self_attention.attention_weights"}
    assert {t for t, s in states.items() if s == "tried"} == tried
    assert found[0].count("done", "mixing") == found[0].count("done") == 2


def test_each_notebook_is_announced_once(found):
    assert [told[:2] for told in found[1]] == [(n, 4) for n in (1, 2, 3, 4)]


def test_what_is_not_counted_is_named(found, folder):
    said = found[0].left_out
    assert len(said) == 3
    for name, why in (
        ("02_torn.ipynb", "line 2"),
        ("03_lookup.ipynb", "holds the answers"),
        ("07_scaling.ipynb", "a page's notebook"),
    ):
        assert sum(name in line and why in line for line in said) == 1, name


def test_what_was_tried_comes_before_what_is_open(found, folder):
    assert summary(found[0]).splitlines() == [
        f"2 of {len(exercises()) + len(question_points())} exercises done, 2 tried",
        f"0 of {len(MILESTONES)} milestones are yours",
        f"next: uniform_weights, in {folder / '02_mixing.ipynb'} (about 5 minutes)",
    ]
    states = dict.fromkeys(found[0].states, "done")
    whole = FolderProgress(states, {}, waiting=frozenset(question_points()))
    assert whole.next == ""
    assert "the whole course" in summary(whole)
    last = list(states)[-1]
    assert replace(whole, states=states | {last: "open"}).next == last


def test_answered_questions_wait_for_a_person(tmp_path):
    path = released(tmp_path, "05_kqv", project=PROJECT)
    before = folder_progress(tmp_path, Limits.of(60))
    assert summary(before).startswith(
        f"1 of {len(exercises()) + len(question_points())} exercises done"
    )
    assert "explain_views" in rows(before)["5 kqv"][3]
    path.write_text(path.read_text().replace("YOUR ANSWER HERE", "Because."))
    after = folder_progress(tmp_path, Limits.of(60))
    assert after.waiting == {"kqv.explain_views"}
    assert "; 4 points for a person\n" in summary(after)
    assert rows(after)["5 kqv"][1] == "1 of 5; 4 points for a person"
    assert "explain_views" not in rows(after)["5 kqv"][3]
    kqv = {t: "done" for t in after.states if t.startswith("kqv.")}
    assert rows(replace(after, states=after.states | kqv))["5 kqv"][1:] == [
        "4 of 5; 4 points for a person",
        "",
        "",
    ]
    done = replace(before, states=dict.fromkeys(before.states, "done"))
    assert done.next == "kqv.explain_views"
    assert summary(done).endswith("next: explain_views, in the notebook of chapter 5")


def rows(found: FolderProgress) -> dict[str, list[str]]:
    """The table's cells, by the first of each row."""
    columns = [[str(cell) for cell in column.cells] for column in progress_table(found).columns]
    return {row[0].strip(): list(row) for row in zip(*columns, strict=True)}


def test_a_milestone_is_yours_only_with_all_parts(found, tmp_path):
    states = found[0].states | {t: "done" for t in found[0].states if t.startswith("kqv.")}
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
    assert rows(runs)["milestone recall"][1] == "runs, with 3 of ours"
    record_milestone(tmp_path, "recall", 0)
    after = FolderProgress(states, {}, reached=milestones_reached(tmp_path))
    assert after.milestone("kqv") == "done"
    assert f"1 of {len(MILESTONES)} milestones are yours\nnext: " in summary(after)
    assert rows(after)["milestone recall"][1] == "yours"
    (tmp_path / "reached.json").write_text("{torn")
    assert milestones_reached(tmp_path) == milestones_reached(tmp_path / "nowhere") == {}


def test_no_name_is_cut_at_80_columns(found):
    from rich.console import Console

    console = Console(width=80, file=None, record=True, quiet=False)
    with console.capture() as captured:
        console.print(progress_table(found[0]))
    for name in ("uniform_weights", "attention_weights", "is_permutation_equivariant"):
        assert name in captured.get()


def test_progress_on_the_command_line(tmp_path):
    released(tmp_path, "06_scoring")
    done = run("progress", tmp_path)
    assert (done.returncode, done.stderr) == (0, "1 of 1: 06_scoring.ipynb\n")
    assert f"0 of {len(exercises()) + len(question_points())} exercises done" in done.stdout
    refuses(run("progress", tmp_path / "nowhere"), "there is no folder", "nowhere")
    (tmp_path / "empty").mkdir()
    refuses(run("progress", tmp_path / "empty"), "no notebook with exercises")


TELLS = "import os\nopen({!r}, 'w').write('ran')\n" + MIX


def test_what_runs_is_in_a_jail_wherever_there_is_one(tmp_path):
    trace = tmp_path / "trace"
    path = released(tmp_path, "02_mixing", mix=TELLS.format(str(trace)))
    done = run("progress", tmp_path)
    assert (done.returncode, trace.exists()) == (0, False), done
    run("check", path)
    assert not trace.exists()


def test_what_students_handed_in_is_not_counted_as_ones_own(tmp_path):
    released(tmp_path, "02_mixing", mix=MIX)
    for student in ("amara", "bela"):
        released(tmp_path / "submitted" / student / "03_lookup", "03_lookup", softmax="def softmax")
    found = folder_progress(tmp_path, LIMITS)
    assert set(found.places.values()) == {tmp_path / "02_mixing.ipynb"}
    assert found.left_out == (
        "2 notebooks in submitted/STUDENT/…: students handed them in, and "
        "attncourse grade ASSIGNMENT runs them",
    )
    amara = tmp_path / "submitted" / "amara"
    assert set(folder_progress(amara, LIMITS).places.values()) == {
        amara / "03_lookup/03_lookup.ipynb"
    }
    with pytest.raises(UserError, match="students handed them in"):
        folder_progress(amara.parent, LIMITS)


def test_without_a_jail_nothing_runs_that_somebody_handed_in(tmp_path, monkeypatch):
    monkeypatch.setattr(selfcheck, "missing_required_layers", lambda: ["user"])
    trace = tmp_path / "trace"
    place = tmp_path / "submitted" / "amara" / "02_mixing"
    path = released(place, "02_mixing", mix=TELLS.format(str(trace)))
    for refused in (
        lambda: folder_progress(place.parent, LIMITS),
        lambda: selfcheck.check_file(path, LIMITS),
        lambda: assemble_package([path], tmp_path / "mine", LIMITS),
    ):
        with pytest.raises(UserError, match="handed in by amara, and there is no jail"):
            refused()
    assert not trace.exists()
    own = released(tmp_path, "02_mixing", mix=MIX)
    assert folder_progress(tmp_path, LIMITS).states["mixing.mix"] == "done"
    assert selfcheck.check_file(own, LIMITS).sandbox is False


def test_a_files_name_is_no_markup(tmp_path):
    name = f"[b] [link=https:x] {'longer than a line, ' * 5}03_lookup.ipynb"
    released(tmp_path, "03_lookup", f"a [/{name}", dot="def dot")
    done = run("progress", tmp_path)
    assert (done.returncode, done.stderr) == (0, f"1 of 1: {name}\n")
    assert progress_text(1, 2, "[/] [b]x\x1b").plain == "1 of 2: [/] [b]x\u241b"


ACTS = "x\x1b]0;PWN\x07\x1b[31m"


def test_a_notebooks_own_names_do_nothing_in_a_terminal(tmp_path):
    path = released(tmp_path, "05_kqv")
    content = json.loads(path.read_text())
    asked = next(c for c in content["cells"] if c["id"] == "explain_views")
    asked["metadata"]["nbgrader"]["grade_id"] = ACTS
    path.write_text(json.dumps(content))
    shown = run("check", path).stdout
    assert "x ]0;PWN [31m is not answered yet" in shown
    assert "\x1b" not in shown
    content["cells"].append(solution(ACTS, "x = 1"))
    path.write_text(json.dumps(content))
    refused = run("assemble", path, cwd=tmp_path)
    refuses(refused, "asks for x ]0;PWN [31m, which", "does not know")
    assert "\x1b" not in refused.stderr


# --- assemble -------------------------------------------------------------------------------------


def test_what_is_right_is_theirs_and_the_rest_is_ours(tmp_path):
    mixing = released(tmp_path, "02_mixing", mix=MIX)
    attention = released(
        tmp_path, "04_self_attention", attention_weights=WRONG, self_attention=SELF
    )
    made = assemble_package([attention, mixing], tmp_path / "mine", LIMITS)
    first, second = made.chapters
    assert (first.stem, first.mine) == ("mixing", ["mix"])
    assert second.mine == ["self_attention"]
    assert second.ours_needed == {"self_attention": ["attention_weights"]}
    lines = str(made).splitlines()
    assert lines[0] == f"2 of 9 parts are yours, in {tmp_path / 'mine'}"
    assert "self_attention.self_attention is yours: right, given a right attention_weights" in lines
    assert "mixing.normalize_rows is ours: not written yet" in lines
    assert any(x.startswith("self_attention.attention_weights is ours: ") for x in lines)
    text = (tmp_path / "mine" / "self_attention.py").read_text()
    assert "from mine.mixing import mix" in text
    assert "* 2" not in text
    assert "# rows of A say" in (tmp_path / "mine" / "mixing.py").read_text()
    X = [[1.0, 0.0], [2.0, 1.0], [0.0, 5.0]]
    scores = np.exp(np.array(X) @ np.array(X).T)
    expected = scores / scores.sum(axis=1, keepdims=True) @ np.array(X)
    got = values(tmp_path / "mine", f"m.self_attention(np.array({X})).tolist()")
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert values(tmp_path / "mine", "m.mix.__module__") == "mine.mixing"


def test_what_passes_only_in_its_notebook_is_ours(tmp_path):
    """What a notebook computes on its way is not a definition."""
    content = notebook(
        cell("import numpy as np\none = float(np.ones(1)[0])"),
        solution("mix", "def mix(A, X):\n    return one * A @ X"),
        solution("uniform_weights", "def uniform_weights(n):\n    return np.full((n, n), 1 / n)"),
    )
    path = tmp_path / "02_mixing.ipynb"
    path.write_bytes(content)
    made = assemble_package([path], tmp_path / "mine", LIMITS)
    chapter = made.chapters[0]
    assert chapter.mine == ["uniform_weights"]
    assert "not with the other parts" in chapter.why["mix"]
    assert "one" in chapter.why["mix"]


def test_a_missing_promise_names_its_part(tmp_path):
    narrow = MIX.replace("return", "assert X.ndim == 2\n    return")
    head = "import numpy as np", "from attncourse.mixing import mix"
    chapters = [
        ChapterParts("mixing", tmp_path, definitions_in("import numpy as np", narrow), {"mix": ""}),
        ChapterParts(
            "self_attention",
            tmp_path,
            definitions_in(*head, SELF),
            {"self_attention": "", "attention_weights": "not written yet"},
        ),
    ]
    assert cause_of("self_attention.self_attention", chapters, LIMITS) == "mixing.mix"
    first, second = parts_that_fit(chapters, LIMITS)
    assert first.why["mix"].startswith("passes alone, but not with the other parts: ")
    assert second.mine == ["self_attention"]  # it showed what mix had caused


def definitions_in(*texts: str) -> tuple[Definition, ...]:
    return tuple(Definition(ast.parse(text).body[0], text) for text in texts)


def test_a_file_that_was_changed_by_hand_is_kept(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    for _ in range(2):
        assert assemble_package([path], tmp_path / "mine", LIMITS).copies == ()
    mine = tmp_path / "mine" / "mixing.py"
    written = mine.read_text()
    for number in (1, 2):
        changed = f"{written}\nmore = {number}\n"
        mine.write_text(changed)
        copy = tmp_path / "mine" / f"mixing.py.{number}.bak"
        made = assemble_package([path], tmp_path / "mine", LIMITS)
        assert made.copies == (copy,)
        assert str(copy) in str(made)
        assert copy.read_text() == changed
        assert mine.read_text() == written


def test_assembling_is_the_same_again(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX, normalize_rows=NORMALIZE)
    made = assemble_package([path], tmp_path / "mine", LIMITS)
    files = {p.name: p.read_text() for p in (tmp_path / "mine").glob("*.py")}
    assert files == package_files(made.chapters)
    for text in files.values():
        compile(text, "mine", "exec")


def two_students(folder: Path) -> list[Path]:
    places = [folder / "submitted" / student / "02_mixing" for student in ("amara", "bela")]
    for place in places:
        place.mkdir(parents=True)
    return [released(places[0], "02_mixing"), released(places[1], "03_lookup")]


def two_of_one_chapter(folder: Path) -> list[Path]:
    return [released(folder, "02_mixing"), released(folder, "02_mixing", "bob.ipynb")]


def of_another_version(folder: Path) -> list[Path]:
    path = folder / "02_mixing.ipynb"
    path.write_bytes(notebook(solution("mix", MIX), solution("blend", "def blend(): pass")))
    return [path]


def an_instructors(folder: Path) -> list[Path]:
    return [ROOT / "solutions/02_mixing/02_mixing.ipynb"]


def nothing(folder: Path) -> list[Path]:
    return [folder / "05_kqv.ipynb"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (two_students, ("notebooks of amara and bela", "name one student's")),
        (two_of_one_chapter, ("two notebooks of chapter mixing", "bob.ipynb", "name one")),
        (of_another_version, ("asks for blend", "does not know", "copy your answers")),
        (an_instructors, ("holds the answers",)),
        (nothing, ("there is no file",)),
    ],
)
def test_a_failed_assembly_writes_nothing(tmp_path, make, words):
    with pytest.raises(UserError) as refused:
        assemble_package(make(tmp_path), tmp_path / "mine", LIMITS)
    for word in words:
        assert word in str(refused.value)
    assert not (tmp_path / "mine").exists()


def test_nothing_is_written_into_another_folder(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="something else"):
        assemble_package([path], tmp_path / "mine", LIMITS)
    refuses(run("assemble", path, "-o", tmp_path / "yours"), "called mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("there", ["mine", "mine/mixing.py"])
def test_what_cannot_be_written_is_one_line(tmp_path, there):
    path = released(tmp_path, "02_mixing", mix=MIX)
    place = tmp_path / there
    if there == "mine":
        place.write_text("dear")
    else:
        place.mkdir(parents=True)
        (tmp_path / "mine" / "__init__.py").write_text("# mine")
    words = ("cannot write", there, "a directory", "name another folder with -o")
    done = run("assemble", path, cwd=tmp_path)
    done.stderr = done.stderr.removeprefix("1 of 1: 02_mixing.ipynb\n")  # judged, then refused
    refuses(done, *words)


def test_assemble_on_the_command_line(tmp_path):
    path = released(tmp_path, "02_mixing", mix=MIX)
    done = run("assemble", path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "1 of 1: 02_mixing.ipynb\n")
    assert done.stdout.splitlines()[0] == "1 of 6 parts are yours, in mine"
    assert (tmp_path / "mine" / "mixing.py").is_file()
