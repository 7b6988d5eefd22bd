"""A term as the instructors' page has it: each of its commands is run, on a class of five."""

import re
import shlex
import shutil
import zipfile
from pathlib import Path

import pytest

from helpers.forked_commands import command
from helpers.platform_downloads import CLASS, archive, moodle, worksheet
from helpers.project import ROOT
from helpers.small_course import NAME, make_course, small

PAGE = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
TERM = PAGE[PAGE.index("(term)=") : PAGE.index("## From release to grade")]
COMMANDS = re.search(r"```text\n(.*?)```", TERM, re.S)[1].splitlines()
FIVE = CLASS[:5]
ANSWERS = (small(), small(add="def add(a, b): return 0"), small(), small(twice="1 / 0"), small())


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course, and what Moodle gives of its class."""
    made = make_course(tmp_path_factory.mktemp("term"))
    shutil.rmtree(made / "submitted", ignore_errors=True)
    shutil.copy(ROOT / "nbgrader_config.py", made)
    handed_in = zip(FIVE, ANSWERS, strict=True)
    archive(made / "submissions.zip", [(moodle(s, f"{NAME}.ipynb"), data) for s, data in handed_in])
    worksheet(made / "worksheet.csv", {s.id: "" for s in FIVE})
    return made


@pytest.mark.slow
def test_every_command_of_a_term_does_what_the_page_says(course):
    assert len(COMMANDS) == 10
    said = {}
    for line in COMMANDS:
        words = shlex.split(line.replace("05_kqv", NAME))
        ended, said[words[1]] = command(course, *words)
        assert ended == 0, (line, said[words[1]])
    assert (course / "exercises" / NAME / f"{NAME}.ipynb").is_file()
    for student in FIVE:
        assert (course / "submitted" / student.id / NAME / f"{NAME}.ipynb").is_file()
        assert student.id in said["grade"]
    with zipfile.ZipFile(next((course / "reports" / NAME).glob("feedback-moodle.zip"))) as back:
        assert len(back.namelist()) == len(FIVE)
        assert all(any(s.moodle in name for s in FIVE) for name in back.namelist())
    assert list((course / "reports" / NAME).glob("*_solution.ipynb"))
    assert f"{FIVE[2].id}" in (course / "extensions.csv").read_text()
    named = {word for word in re.findall(r"\*(\w+)\*", TERM) if word.islower()}
    assert named == {line.split()[1] for line in COMMANDS}


def test_every_command_that_is_written_down_is_one():
    """On the instructors' page, in the README and the syllabus: names and options."""
    from typer.main import get_command

    from attncourse.grading.cli import app

    known = get_command(app).commands
    pages = [PAGE, *((ROOT / name).read_text() for name in ("README.md", "book/syllabus.md"))]
    found = 0
    for page in pages:
        for block in re.findall(r"```(?:text|bash)\n(.*?)```", page, re.S):
            for line in re.findall(r"(?m)^attncourse (\w.*)", block):
                name, *words = line.partition("  ")[0].split()
                assert name in known, line
                options = {o for p in known[name].params for o in (*p.opts, *p.secondary_opts)}
                assert {w for w in words if w.startswith("--")} <= options, line
                found += 1
    assert found > 30
