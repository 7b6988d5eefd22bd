"""torch's and NumPy's settings for the whole process: an answer is judged under a fresh one's.

A notebook's cell may change them for all cells below it. A grader puts them back before each call,
and a check in a notebook has to find what a grader finds. A bank is imported under them as well,
since it makes tensors.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

# torch's function that reads a setting, the one that sets it, and the value in a fresh process.
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


def reset_torch(torch: Any, undo: ExitStack) -> None:
    """Give torch the settings of a fresh process; ``undo`` gets the steps that undo that."""
    reset_torch_modes(torch, undo)
    if torch.is_inference_mode_enabled():
        undo.enter_context(torch.inference_mode(False))
    for read_setting, set_value, value in TORCH_SETTINGS:
        fresh_value = torch.float32 if value == "float32" else value
        current = getattr(torch, read_setting)()
        if current != fresh_value:
            getattr(torch, set_value)(fresh_value)
            undo.callback(getattr(torch, set_value), current)
    if torch.is_autocast_enabled("cpu"):
        torch.set_autocast_enabled("cpu", False)
        undo.callback(torch.set_autocast_enabled, "cpu", True)
    # torch has no function that reads this setting: it shows in what becomes of a tiny number.
    if torch.full((), SUBNORMAL_NUMBER).mul(1).item() == 0:
        torch.set_flush_denormal(False)
        undo.callback(torch.set_flush_denormal, True)


def reset_torch_modes(torch: Any, undo: ExitStack) -> None:
    """Remove torch's function modes, such as a default device, set or by ``with``.

    ``undo`` gets the steps that put them back.
    """
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
    """Give torch and NumPy a fresh process's settings inside the ``with`` block."""
    with ExitStack() as undo:
        undo.enter_context(np.errstate(**NUMPY_ERROR_DEFAULTS))
        undo.enter_context(np.printoptions(**NUMPY_PRINT_DEFAULTS))
        if torch := sys.modules.get("torch"):
            reset_torch(torch, undo)
        yield


@contextmanager
def as_a_process_imports() -> Iterator[None]:
    """Give an import inside the block a fresh process's settings, and ignore its warnings.

    A student may have turned warnings into errors, which would end it.
    """
    with as_a_process_starts(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
