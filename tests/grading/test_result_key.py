"""The key of a result differs exactly where something differs that the result depends on."""

import os
import subprocess
import sys
from dataclasses import replace

from attncourse.grading.driver import result_key as keys
from attncourse.grading.limits import Limits
from attncourse.grading.submission.notebook import Assignment, read_cells
from helpers.project import ROOT
from helpers.small_course import NAME, small

ASSIGNMENT = Assignment(NAME, read_cells(small()))


def test_a_key_depends_on_everything_a_result_depends_on(monkeypatch):
    shared = keys.hash_of_conditions(ASSIGNMENT, Limits(), True)
    first, *rest = ASSIGNMENT.cells
    changed_assignments = {
        "points": Assignment(NAME, (*ASSIGNMENT.cells[:-1], replace(first, points=3.0))),
        "a test": Assignment(NAME, (replace(first, source="# changed"), *rest)),
        "name": Assignment("02_other", ASSIGNMENT.cells),
    }
    hashes = {
        change: keys.hash_of_conditions(assignment_or_patch, Limits(), True)
        for change, assignment_or_patch in changed_assignments.items()
    }
    hashes["limits"] = keys.hash_of_conditions(ASSIGNMENT, Limits(call=3), True)
    hashes["sandbox"] = keys.hash_of_conditions(ASSIGNMENT, Limits(), False)
    for name in keys.HASHED_PACKAGES:
        with monkeypatch.context() as assignment_or_patch:
            assignment_or_patch.setattr(
                keys, "library_version", lambda n, name=name: "9" if n == name else "1"
            )
            hashes[name] = keys.hash_of_conditions(ASSIGNMENT, Limits(), True)
    monkeypatch.setattr(keys, "sources_hash", lambda: "a changed check")
    hashes["sources"] = keys.hash_of_conditions(ASSIGNMENT, Limits(), True)
    assert len({shared, *hashes.values()}) == 1 + len(hashes)
    result_keys = {
        keys.result_key(shared, s, data) for s in ("ada", "bob") for data in (b"", b"1", b"2")
    }
    assert len(result_keys) == 6
    assert all(len(bytes.fromhex(k)) == 32 for k in result_keys)


def test_equal_conditions_have_equal_keys_in_a_new_process():
    code = (
        "import sys; from attncourse.grading.driver import result_key as keys\n"
        "import test_result_key as t\n"
        "shared = keys.hash_of_conditions(t.ASSIGNMENT, t.Limits(), True)\n"
        "print(keys.result_key(shared, 'ada', b'x'), 'torch' in sys.modules)\n"
    )
    folders = f"{ROOT}/tests/grading{os.pathsep}{ROOT}/tests"
    environment = {**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "3"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    shared = keys.hash_of_conditions(ASSIGNMENT, Limits(), True)
    assert process.stdout.decode().split() == [keys.result_key(shared, "ada", b"x"), "False"]


def test_every_module_of_the_package_counts_as_a_source(tmp_path, monkeypatch):
    (tmp_path / "checks").mkdir()
    (tmp_path / "grading").mkdir()
    (tmp_path / "checks" / "kqv.py").write_text("a = 1\n")
    monkeypatch.setattr(keys, "__file__", str(tmp_path / "grading" / "driver" / "result_key.py"))
    hashes = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "checks" / "kqv.py").write_text(text)
        keys.sources_hash.cache_clear()
        hashes.append(keys.sources_hash())
    keys.sources_hash.cache_clear()
    assert hashes[0] == hashes[2] != hashes[1]
