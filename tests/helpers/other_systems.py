"""A Python as it is on Windows or macOS, with its consoles and files in cp1252 on the former."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Other packages have forms of their own for those systems: they are imported first.
LIBRARIES = ("numpy", "torch")
COMMANDS = (*LIBRARIES, "matplotlib.pyplot", "networkx", "rich.console", "rich.progress", "typer")

# What Python lacks there is taken away before the package is imported. This module alone keeps what
# it takes to start a process: on those systems it has other ways.
WITHOUT = """
import builtins, ctypes, importlib, io, os, pkgutil, select, signal, socket, subprocess, sys, types
for name in os.environ["ELSEWHERE_FIRST"].split(","):
    importlib.import_module(name)
os.environ["ELSEWHERE_FIRST"] = "numpy,torch"  # for the processes that this one starts
for module in (os, signal):
    copy = types.ModuleType(module.__name__)
    vars(copy).update(vars(module))
    setattr(subprocess, module.__name__, copy)
sys.platform = os.environ["ELSEWHERE"]
sys.modules["resource"] = None
names = ["pidfd_open", "sched_getaffinity", "O_PATH", "memfd_create", "fork"]
if sys.platform == "win32":
    sys.modules |= dict.fromkeys(["fcntl", "pwd", "grp", "termios", "readline"])
    names += ["setsid", "geteuid", "getuid", "waitpid", "O_NOFOLLOW", "killpg", "sysconf"]
    del signal.SIGKILL, signal.SIGALRM, signal.setitimer, signal.alarm, signal.pthread_kill
    del socket.AF_UNIX, socket.send_fds

    def open_in_cp1252(file, mode="r", buffering=-1, encoding=None, *args, **kwargs):
        if encoding in (None, "locale") and "b" not in mode:
            encoding = "cp1252"
        return python_open(file, mode, buffering, encoding, *args, **kwargs)

    python_open = io.open
    builtins.open = io.open = open_in_cp1252
import time
del time.clock_gettime
for name in names:
    delattr(os, name)
del select.poll, socket.SOCK_SEQPACKET
"""
RUN = """
import sys
from attncourse.grading.cli import main
for command in {commands!r}:
    sys.argv[1:] = command
    try:
        main()
    except SystemExit as end:
        print("status", end.code, flush=True)
    else:
        print("status", 0, flush=True)
"""


def run_elsewhere(
    system: str, code: str, folder: Path, first: Sequence[str] = LIBRARIES
) -> subprocess.CompletedProcess:
    """Run code in a Python as on ``system``, win32 or darwin; the processes that it starts, too."""
    place = folder / f"python of {system}"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(WITHOUT)
    encoding = "cp1252" if system == "win32" else "utf-8"
    more = {
        "ELSEWHERE": system,
        "ELSEWHERE_FIRST": ",".join(first),
        "PYTHONPATH": str(place),
        "PYTHONIOENCODING": encoding,
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        encoding=encoding,
        cwd=folder,
        env=os.environ | more,
        check=False,
        timeout=900,
    )


def run_commands(
    system: str, commands: Sequence[Sequence[str]], folder: Path
) -> subprocess.CompletedProcess:
    """Run attncourse commands one after the other in one such Python; each tells its status."""
    return run_elsewhere(system, RUN.format(commands=commands), folder, COMMANDS)
