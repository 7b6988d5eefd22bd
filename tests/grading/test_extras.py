"""Without any extra, every command works or names the extra that it needs in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from attncourse import __version__
from helpers.small_course import make_course, small

# Runs every command, one after the other, as if no extra were installed, and prints its status.
RUN_COMMANDS_SCRIPT = """
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
# Modules that only the extras install.
HIDDEN_MODULES = {
    *("babel", "bleach", "docutils", "fastjsonschema", "jupyter_core", "nbconvert", "nbformat"),
    *("nbgrader", "sqlalchemy", "traitlets", "yaml", "IPython"),
    *("gguf", "regex", "tokenizers", "transformers", "dask", "distributed", "psycopg"),
}
GRADE_EXTRA = "is not installed: pip install 'attncourse[grade]'"
MESSAGE_BY_COMMAND = {
    "--version": "",
    "report 05_kqv": GRADE_EXTRA,
    "feedback 05_kqv": GRADE_EXTRA,
    "export 05_kqv": GRADE_EXTRA,
    "release 05_kqv": GRADE_EXTRA,
    "serve": "no book is in _build/html",
    "solution 05_kqv": "run this in the course's folder or name it: --course",
    "grade 05_kqv": "run this in the course's folder or name it: --course",
    "similar 05_kqv": "run this in the course's folder or name it: --course",
    "collect 05_kqv download.zip": "no assignment is called 05_kqv",
    "extend ada 05_kqv --days 2": "no assignment is called 05_kqv",
    "demo": GRADE_EXTRA,
    "check 05_kqv.ipynb": "there is no file 05_kqv.ipynb",
    "progress": "no notebook with exercises of this course in .",
    "assemble 05_kqv.ipynb": "there is no file 05_kqv.ipynb",
    "milestone recall": "there are no parts in mine",
    "grade 01_small --course small": GRADE_EXTRA,
    "grade 01_small --course small --dask tcp://127.0.0.1:1": (
        "--dask needs dask.distributed: pip install 'attncourse[dask]'"
    ),
    "similar 01_small --course small": "",
    "solution 01_small --course small": "",
}


def test_every_command_works_or_names_its_extra(tmp_path):
    """Four seconds: one Python, in which each command runs as ``attncourse …`` does."""
    make_course(tmp_path / "small", ada=small(), bob=small())
    commands = [command.split() for command in MESSAGE_BY_COMMAND]
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            RUN_COMMANDS_SCRIPT.format(commands=commands, hidden=HIDDEN_MODULES),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={n: v for n, v in os.environ.items() if n != "PYTHONPATH"},
    )
    assert "Traceback" not in process.stderr, process.stderr
    helps, _, _ = process.stdout.rpartition(f"attncourse {__version__}\n")
    assert set(re.findall(r"^status [\w-]+ (\d)$", helps, re.M)) == {"0"}
    errors = process.stderr.splitlines()
    statuses = re.findall(r"^status (\S+) (\d)$", process.stdout[len(helps) :], re.M)
    assert statuses == [
        (c.split()[0], "2" if message else "0") for c, message in MESSAGE_BY_COMMAND.items()
    ]
    for command, message in MESSAGE_BY_COMMAND.items():
        assert not message or any(message in line for line in errors), (command, errors)
    assert all(line.startswith("attncourse: ") for line in errors)
