"""Settings of the whole process, made before a session's first check, change no verdict."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from attncourse.checks.trying.settings import as_a_process_starts
from helpers.project import ROOT

# torch's device "lazy" refuses, as a GPU's does, to be mixed with the processor's.
CODE_OF_SETTINGS = {
    "device": """
import torch._lazy, torch._lazy.ts_backend
torch._lazy.ts_backend.init()
torch.set_default_device("lazy")
np.seterr(all="raise")
np.set_printoptions(precision=2, legacy="1.13")
warnings.simplefilter("error")
""",
    "dtype": """
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.autograd.set_detect_anomaly(True)
torch.set_flush_denormal(True)
torch.set_num_threads(3)
torch.manual_seed(0), np.random.seed(0)
""",
    "with": """
stack = contextlib.ExitStack()
stack.enter_context(torch.device("meta"))
stack.enter_context(torch.inference_mode())
stack.enter_context(torch.autocast("cpu"))
""",
}
EVERY_REFERENCE = """
from attncourse.checks import examine, exercises
for target, exercise in exercises().items():
    try:
        verdict = examine(target, exercise.reference, seed=1, explain=False)
        said = "" if verdict.passed else verdict.reason
    except Exception as error:
        said = repr(error)
    if said:
        print(target, said)
print("end")
"""


@pytest.mark.slow
@pytest.mark.parametrize("setting", CODE_OF_SETTINGS)
def test_settings_before_the_first_check_change_no_verdict(setting):
    """Six seconds each: every bank is imported, and every reference is checked."""
    code = "import contextlib, warnings\nimport numpy as np, torch\n"
    code += CODE_OF_SETTINGS[setting] + EVERY_REFERENCE
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert process.stdout == "end\n", process.stdout + process.stderr


def test_settings_are_restored_after_a_check():
    before = np.geterr(), np.get_printoptions()
    with torch.device("meta"), torch.device("cpu"), torch.device("meta"):
        with as_a_process_starts():
            assert torch.zeros(1).device.type == "cpu"
            assert torch.get_default_device().type == "cpu"
        assert torch.zeros(1).device.type == "meta"
    assert torch.zeros(1).device.type == "cpu"
    torch.set_deterministic_debug_mode(1)
    try:
        with as_a_process_starts():
            assert torch.get_deterministic_debug_mode() == 0
        assert torch.get_deterministic_debug_mode() == 1
    finally:
        torch.set_deterministic_debug_mode(0)
    assert (np.geterr(), np.get_printoptions()) == before


WITHOUT_TORCH = """
import importlib, importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
from attncourse import STEMS
from attncourse.checks import bank_of, chapter, examine, progress
for stem in STEMS[:4]:
    importlib.import_module(f"attncourse.{stem}")
    for exercise in chapter(stem):
        assert examine(exercise.target, exercise.reference, explain=False).passed
        assert not examine(exercise.target, lambda *args: 1).passed
    progress(stem)
try:
    chapter("kqv")
except ModuleNotFoundError as problem:
    print(problem)
"""


def test_chapters_1_to_4_need_no_torch_and_the_others_say_so():
    """Two seconds: as on a machine for which there is no torch."""
    process = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True)
    assert process.stdout.splitlines()[-1:] == [
        "chapter 5 takes torch, which is not installed: pip install torch, or, where there is none "
        "for this machine, open Colab"
    ], process.stderr
