"""torch's and NumPy's settings for the whole process: an answer is judged under a fresh one's.

A cell may change them for all that follows. A grader puts them back before each call, and a
notebook's check has to find what a grader finds. What a bank makes when it is imported is made
under them as well.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

# How to look, and how to put back what a process starts with.
TORCH_SETTINGS = (
    ("get_default_dtype", "set_default_dtype", "float32"),
    ("is_grad_enabled", "set_grad_enabled", True),
    ("get_deterministic_debug_mode", "set_deterministic_debug_mode", 0),
    ("is_anomaly_enabled", "set_anomaly_enabled", False),
    ("get_float32_matmul_precision", "set_float32_matmul_precision", "highest"),
)
NUMPY_ERROR_DEFAULTS: dict[str, Any] = {
    "divide": "warn",
    "over": "warn",
    "under": "ignore",
    "invalid": "warn",
}
NUMPY_PRINT_DEFAULTS: dict[str, Any] = {
    "edgeitems": 3,
    "floatmode": "maxprec",
    "formatter": None,
    "infstr": "inf",
    "legacy": False,
    "linewidth": 75,
    "nanstr": "nan",
    "precision": 8,
    "sign": "-",
    "suppress": False,
    "threshold": 1000,
}
SUBNORMAL_NUMBER = 1e-40  # which float32 can hold, unless such numbers are flushed to zero


def put_back_torch(torch: Any, undo: ExitStack) -> None:
    """Give torch the settings that a process starts with; ``undo`` undoes that."""
    put_back_modes(torch, undo)
    if torch.is_inference_mode_enabled():
        undo.enter_context(torch.inference_mode(False))
    for look, put, value in TORCH_SETTINGS:
        wanted, current = torch.float32 if value == "float32" else value, getattr(torch, look)()
        if current != wanted:
            getattr(torch, put)(wanted)
            undo.callback(getattr(torch, put), current)
    if torch.is_autocast_enabled("cpu"):
        torch.set_autocast_enabled("cpu", False)
        undo.callback(torch.set_autocast_enabled, "cpu", True)
    if torch.full((), SUBNORMAL_NUMBER).mul(1).item() == 0:
        torch.set_flush_denormal(False)
        undo.callback(torch.set_flush_denormal, True)


def put_back_modes(torch: Any, undo: ExitStack) -> None:
    """Lay aside what stands between a call and torch: a default device, set or by ``with``."""
    overrides = torch.overrides
    modes = [overrides._pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    for mode in modes:  # the last that is pushed was the first to go
        undo.callback(overrides._push_mode, mode)
    device: Any = sys.modules.get("torch.utils._device")
    if device is not None and device.CURRENT_DEVICE is not None:
        undo.callback(setattr, device, "CURRENT_DEVICE", device.CURRENT_DEVICE)
        device.CURRENT_DEVICE = None


@contextmanager
def as_a_process_starts() -> Iterator[None]:
    """Have torch and NumPy set as in a fresh process, and afterwards as they were."""
    with ExitStack() as undo:
        undo.enter_context(np.errstate(**NUMPY_ERROR_DEFAULTS))
        undo.enter_context(np.printoptions(**NUMPY_PRINT_DEFAULTS))
        if torch := sys.modules.get("torch"):
            put_back_torch(torch, undo)
        yield


@contextmanager
def as_a_process_imports() -> Iterator[None]:
    """Have an import run as in a fresh process: no warning that a student made an error ends it."""
    with as_a_process_starts(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
