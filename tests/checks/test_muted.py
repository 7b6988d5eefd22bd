"""What an answer prints, draws and displays while it is judged is seen by nobody."""

from __future__ import annotations

import io
import sys

import IPython
import matplotlib.pyplot as plt
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from attncourse import mixing
from attncourse.checks import check, examine
from attncourse.checks.trying.muted import muted, show_anyway
from attncourse.support.output import keep_what_is_written


@pytest.fixture
def displayed(monkeypatch):
    """Return the list of what a notebook would display."""
    shell = InteractiveShell()
    shell.display_pub = publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(InteractiveShell, "instance", lambda: shell)
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    yield publisher.outputs
    shell.atexit_operations = lambda: None


def noisy(A, X):
    """A right answer that does all that floods a notebook."""
    print("on standard output")
    print("| 3 of 10 |", end="\r", file=sys.stderr)
    sys.stdout.buffer.write(b"as bytes")
    plt.figure()
    plt.plot([1, 2])
    plt.show()
    display("an object")
    return mixing.mix(A, X)


def test_a_right_answer_shows_nothing_and_passes(displayed, monkeypatch, capfd):
    shown = []
    monkeypatch.setattr(plt._get_backend_mod(), "show", lambda **_: shown.append("a window"))
    mine = plt.figure()
    assert examine("mixing.mix", noisy).passed
    assert (displayed, shown, plt.get_fignums()) == ([], [], [mine.number])
    assert capfd.readouterr() == ("", "")
    plt.close(mine)


def test_a_checks_own_output_is_shown(displayed):
    with muted():
        display("of the answer")
        with show_anyway():
            display("of the check")
    display("afterwards")
    assert [o["data"]["text/plain"] for o in displayed] == ["'of the check'", "'afterwards'"]


def test_a_verdict_is_printed_in_encodings_without_its_signs(monkeypatch):
    """As into a file on Windows: the encoding has no ✓."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="cp1252"))
    check("mixing.mix", mixing.mix)
    assert raw.getvalue().startswith(b"? mixing.mix: 7 of 7 points")


def test_a_command_prints_on_in_encodings_without_its_signs():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="iso-8859-1")
    keep_what_is_written(stream, io.StringIO())
    print("✓ 93 %, ä", file=stream, flush=True)
    assert raw.getvalue() == "? 93 %, ä\n".encode("iso-8859-1")
    chosen = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    keep_what_is_written(chosen)
    assert chosen.errors == "backslashreplace"
