"""Every command of a term, as the instructors' page lists them, runs on a class of five."""

import re
import shlex
import shutil
import zipfile
from pathlib import Path

import pytest

from helpers.forked_commands import command
from helpers.platform_downloads import CLASS, moodle_path, write_archive, write_worksheet
from helpers.project import ROOT
from helpers.small_course import NAME, make_course, small

PAGE = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
TERM = PAGE[PAGE.index("(term)=") : PAGE.index("## From release to grade")]
COMMANDS = re.search(r"```text\n(.*?)```", TERM, re.S)[1].splitlines()
STUDENTS = CLASS[:5]
ANSWERS = (small(), small(add="def add(a, b): return 0"), small(), small(twice="1 / 0"), small())


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """Make a course, with Moodle's downloads of its class."""
    folder = make_course(tmp_path_factory.mktemp("term"))
    shutil.rmtree(folder / "submitted", ignore_errors=True)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    files = [
        (moodle_path(student, f"{NAME}.ipynb"), data)
        for student, data in zip(STUDENTS, ANSWERS, strict=True)
    ]
    write_archive(folder / "submissions.zip", files)
    write_worksheet(folder / "worksheet.csv", {student.id: "" for student in STUDENTS})
    return folder


@pytest.mark.slow
def test_every_command_of_a_term_works_as_the_page_says(course):
    assert len(COMMANDS) == 10
    output_by_command = {}
    for line in COMMANDS:
        words = shlex.split(line.replace("05_kqv", NAME))
        status, output_by_command[words[1]] = command(course, *words)
        assert status == 0, (line, output_by_command[words[1]])
    assert (course / "exercises" / NAME / f"{NAME}.ipynb").is_file()
    for student in STUDENTS:
        assert (course / "submitted" / student.id / NAME / f"{NAME}.ipynb").is_file()
        assert student.id in output_by_command["grade"]
    with zipfile.ZipFile(
        next((course / "reports" / NAME).glob("feedback-moodle.zip"))
    ) as feedback_zip:
        assert len(feedback_zip.namelist()) == len(STUDENTS)
        assert all(any(s.moodle in name for s in STUDENTS) for name in feedback_zip.namelist())
    assert list((course / "reports" / NAME).glob("*_solution.ipynb"))
    assert f"{STUDENTS[2].id}" in (course / "extensions.csv").read_text()
    command_names = {word for word in re.findall(r"\*(\w+)\*", TERM) if word.islower()}
    assert command_names == {line.split()[1] for line in COMMANDS}


def test_every_documented_command_exists():
    """The instructors' page, README and syllabus name existing commands and options."""
    from typer.main import get_command

    from attncourse.grading.cli import app

    commands = get_command(app).commands
    pages = [PAGE, *((ROOT / name).read_text() for name in ("README.md", "book/syllabus.md"))]
    number_of_commands = 0
    for page in pages:
        for block in re.findall(r"```(?:text|bash)\n(.*?)```", page, re.S):
            for line in re.findall(r"(?m)^attncourse (\w.*)", block):
                name, *words = line.partition("  ")[0].split()
                assert name in commands, line
                options = {o for p in commands[name].params for o in (*p.opts, *p.secondary_opts)}
                assert {w for w in words if w.startswith("--")} <= options, line
                number_of_commands += 1
    assert number_of_commands > 30
