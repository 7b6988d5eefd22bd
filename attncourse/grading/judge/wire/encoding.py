"""Encoding: values as JSON and raw bytes, the form in which they cross between the processes.

Arrays travel as dtype, shape and bytes. What the format does not know travels as a handle, a number
that only its own side can use.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

NUMPY_DTYPES = {d.str: d for d in map(np.dtype, ("?", *"bhilBHIL", *"efdFD"))}
TORCH_DTYPES = {  # each with NumPy's dtype for the same bytes
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"int{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{name: np.dtype(name) for name in ("uint8", "bool", "complex64", "complex128")},
    "bfloat16": np.dtype("int16"),
}
# Numbers whose bytes differ from machine to machine travel as the nearest double ones.
SHORTENED = {np.dtype("longdouble"): np.float64, np.dtype("clongdouble"): np.complex128}
BUILTIN_TYPES = (bool, int, float, complex, str, bytes, list, tuple, dict, set)
MAX_DEPTH = 60
MAX_RANGE_LENGTH = 100_000  # numbers in a range that may stand for a loop in a test


class Unsendable(Exception):
    """A value that has no form on the wire; the message names its type."""


class Encoder:
    """Makes JSON and buffers of values; ``form_of_object`` gives the form of any other object.

    ``known`` has, by the ids of arrays, the forms that name those which the other side has already.
    """

    def __init__(self, form_of_object: Callable[[Any], Any]):
        self.form_of_object = form_of_object
        self.known: dict[int, Any] = {}
        self.arrays: list[Any] = []  # in the order they were sent; alive, so that ids stay theirs
        self.buffers: list[bytes] = []
        self.tracked: list[Any] = []  # tensors that require gradients, counted from 1

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return the JSON form of a value; its arrays' bytes are appended to ``buffers``."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -(2**53) < value < 2**53 else {"i": as_hexadecimal(value)}
        if kind is float:
            return value if math.isfinite(value) else {"f": repr(value)}
        if depth > MAX_DEPTH:
            raise Unsendable("a value nested too deeply")
        if id(value) in self.known:
            return self.known[id(value)]
        torch = sys.modules.get("torch")
        if isinstance(value, np.generic) and not isinstance(value, str | bytes):
            return self.encode_array(np.asarray(value), scalar=True)
        if isinstance(value, np.ndarray):
            return self.note_array(value, self.encode_array(np.asarray(value), scalar=False))
        if torch is not None and isinstance(value, torch.Tensor):
            return self.note_array(value, self.encode_tensor(torch, value))
        return self.encode_other(torch, value, kind, depth + 1)

    def encode_other(self, torch: Any, value: Any, kind: type, depth: int) -> Any:
        """Return the form of a value that is neither plain nor an array; raise ``Unsendable``."""
        if isinstance(value, bool | int | float | str):  # subclasses keep their number, no methods
            return self.encode(builtin_value(value), depth)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return {
                "N": [kind.__name__, list(kind._fields), self.encode_items(tuple(value), depth)]
            }
        for mark, container in (("l", list), ("t", tuple), ("s", set), ("z", frozenset)):
            if isinstance(value, container):
                # pyrefly: ignore [bad-argument-type]  it is one of its own kind: the line above
                return {mark: self.encode_items(container.__iter__(value), depth)}
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            return {"d": [[self.encode(k, depth), self.encode(v, depth)] for k, v in pairs]}
        if kind is complex:
            return {"c": [self.encode(value.real), self.encode(value.imag)]}
        if kind is bytes:
            return {"b": self.add_buffer(value)}
        if kind is range and len(value) <= MAX_RANGE_LENGTH:
            return {"r": [value.start, value.stop, value.step]}
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return {"sl": [self.encode(part, depth) for part in parts]}
        if value is Ellipsis:
            return {"e": 1}
        if isinstance(value, np.dtype) and value.str in NUMPY_DTYPES:
            return {"D": value.str}
        if torch is not None and isinstance(value, torch.dtype):
            return {"D": str(value)}
        if any(value is t for t in BUILTIN_TYPES):
            return {"y": value.__name__}
        return {"o": self.form_of_object(value)}

    def note_array(self, array: Any, form: Any) -> Any:
        """Return the form of an array; note its number, which names it if it comes again."""
        self.known[id(array)] = {"B": len(self.arrays)}
        self.arrays.append(array)
        return form

    def encode_items(self, values: Any, depth: int) -> list[Any]:
        """Return the forms of several values, as a list."""
        return [self.encode(value, depth) for value in values]

    def add_buffer(self, data: bytes) -> int:
        """Append raw bytes to the message and return the number of their buffer."""
        self.buffers.append(data)
        return len(self.buffers) - 1

    def encode_array(self, array: np.ndarray, scalar: bool) -> Any:
        """Return the form of an array, or of NumPy's ``scalar``; strings travel as lists."""
        if array.dtype.kind == "U":
            return {"U": [list(array.shape), [str(s) for s in array.ravel()]]}
        if short := SHORTENED.get(array.dtype.newbyteorder("=")):
            with np.errstate(over="ignore", under="ignore"):
                array = array.astype(short)
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in NUMPY_DTYPES:
            raise Unsendable(f"an array of dtype {array.dtype}")
        form = self.encode_numbers(dtype.str, array.astype(dtype, copy=False))
        return {"n": form | ({"g": 1} if scalar else {})}

    def encode_numbers(self, name: str, array: np.ndarray) -> dict[str, Any]:
        """Return dtype, shape and number of the buffer of an array, as it lies in memory.

        "o" has the order of the axes in memory where it is not their own.
        """
        if array.flags.c_contiguous:
            return {"d": name, "s": list(array.shape), "x": self.add_buffer(array.tobytes())}
        order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        return self.encode_numbers(name, np.ascontiguousarray(array.transpose(order))) | {
            "o": order
        }

    def encode_tensor(self, torch: Any, tensor: Any) -> Any:
        """Return the form of a dense tensor; one that requires gradients gets a number, "q"."""
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in TORCH_DTYPES or tensor.layout != torch.strided or tensor.is_meta:
            raise Unsendable(f"a tensor of {tensor.dtype}, {tensor.layout}")
        form = self.encode_numbers(name, tensor_numbers(tensor))
        if tensor.requires_grad:
            self.tracked.append(tensor)
            form["q"] = len(self.tracked)
        return {"T": form}


def builtin_value(value: Any) -> Any:
    """Return the builtin value inside an instance of a subclass, by the builtin's own methods."""
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def as_hexadecimal(number: int) -> str:
    """Return the hexadecimal digits of a whole number that JSON cannot hold exactly."""
    if number.bit_length() > 16_000:
        raise Unsendable("an integer of thousands of digits")
    return hex(number)


def tensor_content(tensor: Any) -> tuple:
    """Return what a tensor holds as a tuple that compares equal while it is unchanged."""
    return tensor.dtype, tensor.shape, tensor.requires_grad, tensor_numbers(tensor).tobytes()


def tensor_numbers(tensor: Any) -> np.ndarray:
    """Return a dense tensor's numbers as an array.

    NumPy has no bfloat16: its numbers come as 16-bit integers.
    """
    torch = sys.modules["torch"]
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.detach().view(torch.int16)
    return tensor.numpy(force=True)


# --- what modules hold ----------------------------------------------------------------------------


def tensors_of(module: Any) -> dict[str, Any]:
    """Return a module's own parameters and buffers, those that can be sent, by name.

    A lazy layer's have no numbers yet: that is an error for who uses it, and not for all that comes
    after.
    """
    tensors = {**module._parameters, **module._buffers}
    return {name: tensor for name, tensor in tensors.items() if has_numbers(tensor)}


def has_numbers(tensor: Any) -> bool:
    """True if a parameter or buffer is there and has numbers that can be sent."""
    if tensor is None or tensor.is_meta or hasattr(type(tensor), "materialize"):
        return False
    torch = sys.modules["torch"]
    is_known_dtype = str(tensor.dtype).removeprefix("torch.") in TORCH_DTYPES
    return is_known_dtype and tensor.layout == torch.strided


def describe_tensor(module: Any, name: str, encoder: Encoder) -> dict[str, Any]:
    """Return the form of a module's parameter or buffer, of which its copy can be made."""
    tensor = tensors_of(module)[name]
    about = {"id": id(tensor), "parameter": name in module._parameters}
    return about | {"grad": tensor.requires_grad, "value": encoder.encode(tensor.detach())}


def module_fingerprint(module: Any) -> dict[str, tuple]:
    """Return what changes whenever a module's own tensors, children or mode do."""
    state = {name: (id(t), *tensor_content(t)) for name, t in tensors_of(module).items()}
    children = tuple((name, id(child)) for name, child in module._modules.items())
    return state | {" ": (module.training, *children)}
