"""Which tests ``make quick`` runs: those near what changed, for as long as there is time."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import quick

from helpers.project import ROOT


@pytest.mark.parametrize(
    ("path", "test", "between"),
    [
        ("attncourse/checks/trying/watch.py", "tests/checks/test_watch.py", 1),
        ("attncourse/grading/spreadsheet.py", "tests/grading/test_export.py", 1),
        ("attncourse/kqv.py", "tests/test_kqv.py", 1),
        ("attncourse/figures/moving/three_weights.js", "tests/figures/test_moving_figures.py", 2),
        ("tests/helpers/small_course.py", "tests/grading/test_plan.py", 1),
        ("tests/checks/test_grid.py", "tests/checks/test_grid.py", 0),
        ("tools/grid.py", "tests/checks/test_grid.py", 1),
    ],
)
def test_a_tests_distance_is_the_number_of_imports_between(path, test, between):
    assert quick.Imports(ROOT).near([path])[test] == between


def test_a_file_nobody_imports_is_near_no_test():
    assert quick.Imports(ROOT).near(["CHANGELOG.md", "book/assets/attncourse.css"]) == {}


def test_the_nearest_are_run_and_the_rest_is_named(monkeypatch):
    monkeypatch.setattr(quick, "seconds", lambda root, test: 10.0)
    run, skipped = quick.chosen(ROOT, ["attncourse/checks/trying/compare.py"], budget=50)
    assert len(run) == 5
    assert len(skipped) > 20
    near = quick.Imports(ROOT).near(["attncourse/checks/trying/compare.py"])
    assert max(near[test] for test in run) <= min(near[test] for test in skipped)
    assert not set(run) & set(skipped)


def test_only_tests_that_fit_the_time_are_run(monkeypatch):
    long = {"tests/test_tokens.py": 1000.0}
    monkeypatch.setattr(quick, "seconds", lambda root, test: long.get(test, 1.0))
    run, skipped = quick.chosen(ROOT, ["tests/test_tokens.py", "tests/test_gpt.py"])
    assert run == ["tests/test_gpt.py"]
    assert skipped == ["tests/test_tokens.py"]


@pytest.mark.parametrize(
    "path",
    [
        "book/05_kqv.md",
        "solutions/05_kqv/05_kqv.py",
        "exercises/05_kqv/05_kqv.ipynb",
        "attncourse/bank/kqv/project.py",
    ],
)
def test_a_chapters_files_are_near_the_chapters_tests(path):
    assert quick.stems([path]) == ["kqv"]
    assert "tests/test_kqv.py" in quick.chosen(ROOT, [path])[0]


def test_a_whole_run_says_how_long_a_file_takes(tmp_path):
    quick.taken.cache_clear()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "seconds.json").write_text(json.dumps({"tests/test_a.py": 7.5}))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_b.py").write_text("@pytest.mark.slow\n")
    (tmp_path / "tests" / "test_c.py").write_text("")
    times = [quick.seconds(tmp_path, f"tests/test_{name}.py") for name in "abc"]
    assert times == [7.5, quick.SLOW, quick.GUESS]


def test_changed_files_include_untracked_ones(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*words):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "kept.py").write_text("")
    (tmp_path / "old.py").write_text("")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@x.org", "commit", "-m", "one")
    (tmp_path / "old.py").write_text("x = 1\n")
    (tmp_path / "new.py").write_text("")
    assert quick.changed(tmp_path, quick.base(tmp_path)) == ["new.py", "old.py"]
    with pytest.raises(
        SystemExit, match=r"git diff --name-only no-such-commit failed \(.*\): make"
    ):
        quick.changed(tmp_path, "no-such-commit")


def test_without_git_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="git, which is not installed: make test needs none"):
        quick.base(tmp_path)


def test_outside_a_repository_git_s_usage_is_not_shown(tmp_path, monkeypatch):
    stderr = "warning: Not a git repository. Use --no-index\nusage: git diff --no-index\n  -p\n"
    answer = subprocess.CompletedProcess(["git", "diff"], 129, "", stderr)
    monkeypatch.setattr(quick, "git", lambda *_: answer)
    with pytest.raises(SystemExit) as ended:
        quick.changed(tmp_path, "HEAD")
    assert "Not a git repository" in str(ended.value)
    assert "usage" not in str(ended.value)


def test_a_test_that_would_begin_too_late_is_skipped(tmp_path):
    environment = {**os.environ, "ATTNCOURSE_TESTS_UNTIL": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0"]
    process = subprocess.run(
        [*command, "tests/tools/test_fastest_python.py"],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert process.returncode == 0
    assert re.search(r"^[1-9]\d* skipped: no time: left to make test$", process.stdout, re.M)
    assert "passed" not in process.stdout
    assert not re.search(r"\bs{3,}", process.stdout)  # no letter for each
