"""Gradescope's zip is unpacked and run as there, in a folder that stands for /autograder."""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import attncourse.grading.autograder.bundle as autograder
from attncourse.grading.autograder import run as harness
from attncourse.grading.autograder.bundle import pinned_requirements, write_bundle
from attncourse.grading.course.variants import choose_variant
from attncourse.grading.errors import UserError
from attncourse.grading.jail.layers import Layer
from helpers.gradescope_format import RESULTS
from helpers.project import ROOT
from helpers.small_class import NAME, refuses, run
from helpers.small_course import make_course, small

# Modules that are not installed there.
UNINSTALLED = ("nbgrader", "nbformat", "bleach", "jupyter_core", "fastjsonschema")


@pytest.fixture
def root(tmp_path) -> Path:
    """Unpack the zip as Gradescope does, before anybody hands in."""
    course, autograder_root = make_course(tmp_path / "course"), tmp_path / "autograder"
    path = write_bundle(course, NAME)
    assert path == course / "reports" / NAME / "gradescope-autograder.zip"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(autograder_root / "source")
        for info in archive.infolist():
            (autograder_root / "source" / info.filename).chmod(info.external_attr >> 16)
    (autograder_root / "submission").mkdir()
    (autograder_root / "results").mkdir()
    return autograder_root


def read_results(root: Path) -> dict:
    content = json.loads((root / "results" / "results.json").read_text())
    Draft202012Validator(RESULTS).validate(content)
    return content


def test_the_zip_runs_where_only_its_requirements_are_installed(root):
    for name in UNINSTALLED:
        (root / "source" / f"{name}.py").write_text(f"raise ImportError('{name} is not there')")
    (root / "submission" / "mine (1).ipynb").write_bytes(small(add="def add(a, b):\n    return 0"))
    script = root / "source" / "run_autograder"
    assert script.stat().st_mode & stat.S_IXUSR
    environment = {"AUTOGRADER": str(root), "PYTHON": sys.executable, "PATH": os.environ["PATH"]}
    process = subprocess.run([script], env=environment, cwd=root, capture_output=True, timeout=120)
    assert (process.returncode, process.stderr) == (0, b""), process
    content = read_results(root)
    assert content["score"] == 5
    assert [t["score"] for t in content["tests"]] == [1, 0, 4]
    assert "the notebook is called mine (1).ipynb" in content["output"]
    assert "a hidden test failed" in content["tests"][1]["output"]


def test_without_a_jail_the_zip_grades_and_says_so(root, monkeypatch):
    (root / "submission" / f"{NAME}.ipynb").write_bytes(small())
    layer = Layer("user namespace", False, True, "not permitted")
    monkeypatch.setattr(harness, "missing_required_layers", lambda: [layer])
    harness.main(root)
    assert read_results(root)["score"] == 7
    assert "Graded without a jail" in read_results(root)["output"]
    assert read_results(root)["extra_data"]["sandbox"] is False


def test_nothing_handed_in_earns_no_points(root):
    harness.main(root)
    assert read_results(root)["score"] == 0
    assert "nothing handed in" in read_results(root)["output"]
    (root / "source" / "solutions" / "02_more").mkdir()
    with pytest.raises(UserError, match="one assignment"):
        harness.main(root)


def test_the_zip_is_complete_and_reproducible(tmp_path):
    course = make_course(tmp_path)
    process = run("export", NAME, "--format", "gradescope-autograder", cwd=course)
    assert process.stdout.endswith("written: upload it as the autograder\n")
    path = course / "reports" / NAME / "gradescope-autograder.zip"
    first = path.read_bytes()
    assert write_bundle(course, NAME, tmp_path / "again.zip").read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        pinned = archive.read("requirements.txt").decode().split()
    assert {"setup.sh", "run_autograder", "attncourse/__init__.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "submitted" in name]
    assert pinned == pinned_requirements()
    assert {"einops", "tqdm"} <= {line.split("==")[0] for line in pinned}  # for answers
    assert all("==" in line for line in pinned)
    assert {line.partition("==")[0] for line in pinned} >= {"numpy", "torch", "scikit-learn"}
    setup = tmp_path / "setup.sh"
    setup.write_bytes(zipfile.ZipFile(path).read("setup.sh"))
    assert subprocess.run(["bash", "-n", setup]).returncode == 0
    refuses(run("export", "--all", "--format", "gradescope-autograder", cwd=course), "name it")


def test_scripts_have_a_shells_line_ends(tmp_path, monkeypatch):
    course = make_course(tmp_path)
    for name in autograder.SCRIPTS:
        text = (autograder.HERE / name).read_bytes()
        (tmp_path / name).write_bytes(text.replace(b"\n", b"\r\n"))
    monkeypatch.setattr(autograder, "HERE", tmp_path)
    with zipfile.ZipFile(write_bundle(course, NAME)) as archive:
        scripts = [archive.read(name) for name in autograder.SCRIPTS]
    assert not any(b"\r" in script for script in scripts)
    assert all(script.startswith(b"#!/usr/bin/env bash\n") for script in scripts)


def test_the_zip_grades_the_variant_by_the_courses_settings(tmp_path):
    name = "11_positions"
    course, root = tmp_path / "course", tmp_path / "autograder"
    shutil.copytree(ROOT / "solutions" / name, course / "solutions" / name)
    (course / "nbgrader_config.py").write_text(
        "c = get_config()\nc.JudgeExporter.follow_on = False\n"
    )
    choose_variant(course, name, "halves")
    with zipfile.ZipFile(write_bundle(course, name)) as archive:
        archive.extractall(root / "source")
    assert json.loads((root / "source" / "settings.json").read_text()) == {"follow_on": False}
    (root / "submission").mkdir()
    published = course / "solutions" / name / f"{name}.ipynb"
    shutil.copy(published, root / "submission")
    harness.main(root)
    output = json.dumps(read_results(root))
    assert "pairs stand in two halves here" in output.lower()
    assert read_results(root)["score"] < 24
