"""What a project of the field has at its top: security, citation, issue forms, hooks, metadata."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import yaml
from trove_classifiers import classifiers

from helpers.project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_classifiers_are_those_of_the_index():
    assert PROJECT["classifiers"] == sorted(set(PROJECT["classifiers"]) & classifiers)


def test_the_citation_names_what_the_project_names():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    settings = yaml.safe_load((ROOT / "_config.yml").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["title"] == settings["title"]
    assert [author["name"] for author in citation["authors"]] == [settings["author"]]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_sound(path):
    form = yaml.safe_load(path.read_text())
    if path.stem == "config":
        assert all({"name", "url", "about"} == link.keys() for link in form["contact_links"])
        return
    assert {"name", "description", "body"} <= form.keys()
    names = [field["id"] for field in form["body"]]
    assert len(names) == len(set(names))
    for field in form["body"]:
        assert field["type"] in ("input", "textarea")
        assert field["attributes"]["label"]


def test_a_wrong_verdict_comes_with_its_cell_and_seed():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/wrong_verdict.yml").read_text())
    required = {field["id"] for field in form["body"] if field["validations"]["required"]}
    assert {"target", "cell", "seed"} <= required


def test_the_commit_hooks_run_what_make_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    makefile = (ROOT / "Makefile").read_text()
    entries = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    for entry in entries:
        tool, *words = shlex.split(entry)
        command = " ".join([tool.replace(".venv/bin", "$(BIN)"), *words[:1]])
        assert command in makefile, entry


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_states_its_permissions(path):
    assert yaml.safe_load(path.read_text())["permissions"]


@pytest.mark.parametrize("name", ["SECURITY.md", "STABILITY.md"])
def test_a_link_leads_to_a_file(name):
    text = (ROOT / name).read_text()
    places = re.findall(r"\]\((?!https:)([^)#]+)\)", text) + re.findall(r"`([\w/]+/[\w.]+)`", text)
    assert (ROOT / "README.md").read_text().count(f"({name})") == 1
    assert [p for p in places if not (ROOT / p).exists() and not p.endswith("*.json")] == []


def test_type_ignores_are_few_and_each_says_why():
    rooms = (ROOT / "attncourse", ROOT / "tools")
    lines = [line for room in rooms for path in sorted(room.rglob("*.py"))
             for line in path.read_text().splitlines() if "pyrefly: ignore" in line]  # fmt: skip
    assert len(lines) <= 30
    assert [x for x in lines if not re.search(r"pyrefly: ignore \[[\w-]+\]  \w.{5,}", x)] == []
