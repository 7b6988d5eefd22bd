"""torch's settings for the whole process: an answer is judged under those of a fresh one.

A cell may change them for all that follows. A grader puts them back before each call, and a
notebook's check has to find what a grader finds.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

# How to look, and how to put back what a process starts with.
TORCH = (
    ("get_default_dtype", "set_default_dtype", "float32"),
    ("is_grad_enabled", "set_grad_enabled", True),
    ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms", False),
    ("is_anomaly_enabled", "set_anomaly_enabled", False),
    ("get_float32_matmul_precision", "set_float32_matmul_precision", "highest"),
)


def put_back_torch(torch: Any, undo: ExitStack) -> None:
    """Gives torch the settings that a process starts with; ``undo`` undoes that."""
    if torch.is_inference_mode_enabled():
        undo.enter_context(torch.inference_mode(False))
    for look, put, value in TORCH:
        wanted, found = torch.float32 if value == "float32" else value, getattr(torch, look)()
        if found != wanted:
            getattr(torch, put)(wanted)
            undo.callback(getattr(torch, put), found)
    if torch.is_autocast_enabled("cpu"):
        torch.set_autocast_enabled("cpu", False)
        undo.callback(torch.set_autocast_enabled, "cpu", True)
    device = sys.modules.get("torch.utils._device")
    if device is not None and device.CURRENT_DEVICE is not None:
        undo.callback(torch.set_default_device, device.CURRENT_DEVICE)
        torch.set_default_device(None)


@contextmanager
def as_a_process_starts() -> Iterator[None]:
    """torch as in a fresh process, and afterwards as it was."""
    with ExitStack() as undo:
        if torch := sys.modules.get("torch"):
            put_back_torch(torch, undo)
        yield
