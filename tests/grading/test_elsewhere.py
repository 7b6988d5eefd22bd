"""The package where there is no Linux: it is imported; what cannot be done there is one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

# What Python lacks on Windows, or not on macOS, taken away before the package is imported. Other
# packages have forms of their own for those systems: here they are imported first.
WITHOUT = """
import ctypes, importlib, os, pkgutil, select, signal, socket, subprocess, sys
import matplotlib.pyplot, networkx, numpy, rich.console, rich.progress, sklearn, torch, typer
sys.platform = {system!r}
sys.modules["resource"] = sys.modules["fcntl"] = None
if sys.platform == "win32":
    sys.modules |= dict.fromkeys(["pwd", "grp", "termios"])
    for name in ("fork", "setsid", "geteuid", "getuid", "waitpid", "O_NOFOLLOW"):
        delattr(os, name)
    del signal.SIGKILL, signal.SIGALRM, signal.setitimer
    del socket.AF_UNIX, socket.send_fds
del os.pidfd_open, os.sched_getaffinity, os.O_PATH, select.poll, socket.SOCK_SEQPACKET
"""
# All but what runs only within the jail, and nbgrader's side, which has nbgrader's own needs.
IMPORT_ALL = """
import attncourse
LINUX = ("grading.jail.", "grading.judge.worker")
NBGRADER = ("grading.nbgrader", "grading.feedback")
for found in pkgutil.walk_packages(attncourse.__path__, "attncourse."):
    if not found.name.removeprefix("attncourse.").startswith(LINUX + NBGRADER):
        importlib.import_module(found.name)
"""
CHECK = """
from attncourse.checks import examine
from attncourse.tokens import tokenize
print(examine("tokens.tokenize", tokenize).passed)
sys.argv[1:] = ["check", {notebook!r}]
from attncourse.grading.cli import main
main()
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )


@pytest.mark.slow
def test_the_package_is_imported_without_what_only_linux_has():
    """Some seconds: it imports every module and its libraries once more."""
    done = run(WITHOUT.format(system="win32") + IMPORT_ALL, ROOT)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(("system", "name"), [("win32", "Windows"), ("darwin", "macOS")])
def test_checks_work_in_a_notebook_and_the_command_says_what_it_needs(system, name, tmp_path):
    notebook = str(ROOT / "exercises" / "01_tokens" / "01_tokens.ipynb")
    done = run(WITHOUT.format(system=system) + CHECK.format(notebook=notebook), tmp_path)
    assert done.stderr == (
        f"attncourse: {name} has no jail and none of what notebooks are judged with: do this on "
        "Linux, in WSL 2 or in a container. In Jupyter, Run All gives the same verdicts\n"
    )
    assert (done.returncode, done.stdout) == (2, "True\n")
