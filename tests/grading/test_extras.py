"""From the package alone: every command works, or names the extra that it wants in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from attncourse import __version__
from helpers.small_course import make_course, small

# Every command, one after the other, where no extra is installed: what they come to.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
from attncourse.grading.cli import app, main
helps = [[c.name or c.callback.__name__, "--help"] for c in app.registered_commands]
for command in helps + {commands!r}:
    sys.argv[1:] = command
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code
    print("status", command[0], status or 0, flush=True)
"""
# What the extras bring, and nothing that is always needed brings as well.
HIDDEN = {
    *("babel", "bleach", "docutils", "fastjsonschema", "jupyter_core", "nbconvert", "nbformat"),
    *("nbgrader", "sqlalchemy", "traitlets", "yaml", "IPython"),
    *("gguf", "regex", "tokenizers", "transformers", "dask", "distributed", "psycopg"),
}
GRADE = "is not installed: pip install 'attncourse[grade]'"
COMMANDS = {
    "--version": "",
    "report 05_kqv": GRADE,
    "feedback 05_kqv": GRADE,
    "export 05_kqv": GRADE,
    "release 05_kqv": GRADE,
    "serve": "no book is in _build/html",
    "solution 05_kqv": "run this in the course's folder or name it: --course",
    "grade 05_kqv": "run this in the course's folder or name it: --course",
    "similar 05_kqv": "run this in the course's folder or name it: --course",
    "collect 05_kqv download.zip": "no assignment is called 05_kqv",
    "extend ada 05_kqv --days 2": "no assignment is called 05_kqv",
    "demo": GRADE,
    "check 05_kqv.ipynb": "there is no file 05_kqv.ipynb",
    "progress": "no notebook with exercises of this course in .",
    "assemble 05_kqv.ipynb": "there is no file 05_kqv.ipynb",
    "milestone recall": "there are no parts in mine",
    "grade 01_small --course small": GRADE,
    "grade 01_small --course small --dask tcp://127.0.0.1:1": (
        "--dask needs dask.distributed: pip install 'attncourse[dask]'"
    ),
    "similar 01_small --course small": "",
    "solution 01_small --course small": "",
}


def test_every_command_works_or_names_its_extra(tmp_path):
    """Four seconds: one Python, in which each command runs as ``attncourse …`` does."""
    make_course(tmp_path / "small", ada=small(), bob=small())
    commands = [command.split() for command in COMMANDS]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(commands=commands, hidden=HIDDEN)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={n: v for n, v in os.environ.items() if n != "PYTHONPATH"},
    )
    assert "Traceback" not in done.stderr, done.stderr
    helps, _, _ = done.stdout.rpartition(f"attncourse {__version__}\n")
    assert set(re.findall(r"^status [\w-]+ (\d)$", helps, re.M)) == {"0"}
    said = done.stderr.splitlines()
    ended = re.findall(r"^status (\S+) (\d)$", done.stdout[len(helps) :], re.M)
    assert ended == [(c.split()[0], "2" if wanted else "0") for c, wanted in COMMANDS.items()]
    for command, wanted in COMMANDS.items():
        assert not wanted or any(wanted in line for line in said), (command, said)
    assert all(line.startswith("attncourse: ") for line in said)
