"""Settings of the whole process that a student's cell may have changed, put back for a test.

A test expects them as a fresh notebook has them. What an answer may rely on stays as the student
left it: the folder, the environment, a higher limit on recursion.
"""

import sys
import warnings
from typing import Any

import numpy as np

# torch's: how to look, and how to put back what a process starts with.
TORCH = (
    ("get_default_dtype", "set_default_dtype", "float32"),
    ("is_grad_enabled", "set_grad_enabled", True),
    ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms", False),
    ("is_anomaly_enabled", "set_anomaly_enabled", False),
    ("get_float32_matmul_precision", "set_float32_matmul_precision", "highest"),
)


_left: list[Any] = []


class Settings:
    """How things stand at a process's start; ``put_back`` has them stand so again."""

    def __init__(self) -> None:
        self.errors = np.geterr()
        self.filters = list(warnings.filters)
        self.depth = sys.getrecursionlimit()

    def put_back(self) -> None:
        if np.geterr() != self.errors:
            np.seterr(**self.errors)
        if warnings.filters != self.filters:
            warnings.filters[:] = self.filters
            warnings._filters_mutated()
        if sys.getrecursionlimit() < self.depth:
            sys.setrecursionlimit(self.depth)
        if "torch" in sys.modules:
            put_back_torch(sys.modules["torch"])


def put_back_torch(torch: Any) -> None:
    """torch's settings, as a process starts with them."""
    if torch.is_inference_mode_enabled():
        _left.append(torch.inference_mode(False))  # kept, or it would end with this line
        _left[-1].__enter__()
    for look, put, value in TORCH:
        wanted = torch.float32 if value == "float32" else value
        if getattr(torch, look)() != wanted:
            getattr(torch, put)(wanted)
    if torch.is_autocast_enabled("cpu"):
        torch.set_autocast_enabled("cpu", False)
    device = sys.modules.get("torch.utils._device")
    if device is not None and device.CURRENT_DEVICE is not None:
        torch.set_default_device(None)
