"""Whatever a kernel or a Python lacks, the jail holds or one true sentence says why not."""

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

PROBING_PROGRAM = ROOT / "tests/helpers/jail_without_layers.py"
CALLS_NOT_NEEDED = {
    "keyctl",
    "ppoll",
    "symlinkat",
    "mkdirat",
}  # tried only, or not called on x86-64
CLONE3 = 435  # on every machine
if os.geteuid() != 0:  # an ordinary user stays this user
    CALLS_NOT_NEEDED |= {"setgroups", "setresgid", "setresuid"}


def fault_of(case: str, text: str) -> str:
    """Return what is wrong with the probe's output, or an empty string."""
    name = case.split()[0].removeprefix("os.")
    lines = text.splitlines()
    if len(lines) == 1 and lines[0].startswith(
        ("OSError: ", "PermissionError: ", "AttributeError: ")
    ):
        return ""  # the program did not start, and says why
    try:
        [found_layers] = map(json.loads, lines)
    except ValueError:
        return f"expected layers or one line, got {text!r}"
    missing = [layer for layer in found_layers if not layer["in_force"]]
    if {layer["name"] for layer in found_layers} != set(layers.PROTECTS):
        return "expected each layer once"
    if not all(layer["detail"] and layer["remedy"] for layer in missing):
        return f"expected what is missing and what to do, got {missing}"
    # A helper without ``read`` just ends, so the detail says only that.
    if (
        case.startswith("os.")
        and missing
        and name != "read"
        and f"'{name}'" not in missing[0]["detail"]
    ):
        return f"expected the name of the function, got {missing[0]}"
    if not missing and not case.startswith("os.") and name not in CALLS_NOT_NEEDED:
        return "expected a layer that is missing: the call is needed for it"
    return ""


def test_each_missing_call_leaves_a_jail_or_a_sentence():
    process = subprocess.run([sys.executable, str(PROBING_PROGRAM)], capture_output=True, text=True)
    cases = dict(json.loads(line) for line in process.stdout.splitlines())
    assert len(cases) == 2 * len(calls()) + len(functions()), process.stderr
    faults = {case: fault_of(case, text) for case, text in cases.items()}
    assert {case: fault for case, fault in faults.items() if fault} == {}


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [(errno.ENOSYS, 0, "1 graded"), (errno.EPERM, 2, "no thread can be started here: ")],
)
def test_a_filter_without_threads_is_reported_first(tmp_path, error, status, words):
    """The C library takes ENOSYS for an old kernel and uses clone, but EPERM for a final answer."""
    make_course(tmp_path, ada=small())
    process = subprocess.run(
        [sys.executable, "-m", "attncourse", "grade", NAME, "--course", str(tmp_path)],
        capture_output=True, text=True, preexec_fn=partial(refuse, CLONE3, error),
    )  # fmt: skip
    output = process.stdout + process.stderr
    assert (process.returncode, words in output, "Traceback" in output) == (status, True, False), (
        output
    )
    if status:
        assert "Docker before 20.10.10" in output
        assert output.count("\n") == 1
