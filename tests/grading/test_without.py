"""Whatever a kernel or a Python lacks ends in a jail that holds, or in one true sentence."""

import errno
import json
import os
import subprocess
import sys
from functools import partial

import pytest

from attncourse.grading.jail import layers
from helpers.jail_without_layers import calls, functions, refuse
from helpers.project import ROOT
from helpers.small_course import NAME, make_course, small

DRIVER = ROOT / "tests/helpers/jail_without_layers.py"
HARMLESS = {"keyctl", "ppoll", "symlinkat", "mkdirat"}  # tried only, or not called on x86-64
CLONE3 = 435  # on every machine
if os.geteuid() != 0:  # an ordinary user stays this user
    HARMLESS |= {"setgroups", "setresgid", "setresuid"}


def fault_of(case: str, text: str) -> str:
    """What is wrong with what the probe tells, or an empty string."""
    name = case.split()[0].removeprefix("os.")
    lines = text.splitlines()
    if len(lines) == 1 and lines[0].startswith(
        ("OSError: ", "PermissionError: ", "AttributeError: ")
    ):
        return ""  # it did not start: that is the sentence
    try:
        [told] = map(json.loads, lines)
    except ValueError:
        return f"expected layers or one line, got {text!r}"
    gone = [layer for layer in told if not layer["in_force"]]
    if {layer["name"] for layer in told} != set(layers.PROTECTS):
        return "expected each layer once"
    if not all(layer["detail"] and layer["remedy"] for layer in gone):
        return f"expected what is missing and what to do, got {gone}"
    # A helper that cannot read ends: that it did is what is told.
    if case.startswith("os.") and gone and name != "read" and f"'{name}'" not in gone[0]["detail"]:
        return f"expected the name of the function, got {gone[0]}"
    if not gone and not case.startswith("os.") and name not in HARMLESS:
        return "expected a layer that is missing: the call is needed for it"
    return ""


def test_each_missing_call_leaves_a_jail_or_a_sentence():
    done = subprocess.run([sys.executable, str(DRIVER)], capture_output=True, text=True)
    cases = dict(json.loads(line) for line in done.stdout.splitlines())
    assert len(cases) == 2 * len(calls()) + len(functions()), done.stderr
    faults = {case: fault_of(case, text) for case, text in cases.items()}
    assert {case: fault for case, fault in faults.items() if fault} == {}


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [(errno.ENOSYS, 0, "1 graded"), (errno.EPERM, 2, "no thread can be started here: ")],
)
def test_a_filter_without_threads_is_told_before_grading(tmp_path, error, status, words):
    """The C library takes ENOSYS for an old kernel and uses clone, but EPERM for a final answer."""
    make_course(tmp_path, ada=small())
    done = subprocess.run(
        [sys.executable, "-m", "attncourse", "grade", NAME, "--course", str(tmp_path)],
        capture_output=True, text=True, preexec_fn=partial(refuse, CLONE3, error),
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert (done.returncode, words in said, "Traceback" in said) == (status, True, False), said
    if status:
        assert "Docker before 20.10.10" in said
        assert said.count("\n") == 1
