"""Values as JSON and raw bytes, and back: what crosses between checker and worker.

Arrays travel as dtype, shape and bytes, and are rebuilt as plain arrays once these agree. What the
format does not know travels as a handle, a number that only its own side can use.
"""

import math
import sys
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from attncourse.grading.judge.wire.bounds import (
    AXES,
    CLASS,
    CONTAINER,
    DIGITS,
    FIELD,
    HANDLE,
    MEMBER,
    NAMED,
    NUMBERS,
    PARAMETERS,
    TENSOR,
    TOO_LARGE,
    VALUE,
    Room,
    WireError,
)

NUMPY = {d.str: d for d in map(np.dtype, ("?", *"bhilBHIL", *"efdFD"))}
TORCH = {  # each with NumPy's dtype for the same bytes
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"int{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{name: np.dtype(name) for name in ("uint8", "bool", "complex64", "complex128")},
    "bfloat16": np.dtype("int16"),
}
BUILTINS = (bool, int, float, complex, str, bytes, list, tuple, dict, set)
PLAIN_TYPES = {t.__name__: t for t in BUILTINS}
UNFIT = (TypeError, ValueError, LookupError, AttributeError, OverflowError, RuntimeError)
DEPTH = 60
RANGE = 100_000  # numbers in a range that may stand for a loop in a test


class Unsendable(Exception):
    """A value that has no form on the wire."""


class Encoder:
    """Values to JSON and buffers. ``opaque`` names what the format does not know.

    ``known`` maps the identity of arrays to the name of one that the other side has.
    """

    def __init__(self, opaque: Callable[[Any], Any]):
        self.opaque = opaque
        self.known: dict[int, Any] = {}
        self.arrays: list[Any] = []  # in the order they were sent; alive, so that ids stay theirs
        self.buffers: list[bytes] = []
        self.tracked: list[Any] = []  # tensors that require gradients, counted from 1

    def encode(self, value: Any, depth: int = 0) -> Any:
        """The JSON form of a value; its arrays go to ``buffers``."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -(2**53) < value < 2**53 else {"i": big(value)}
        if kind is float:
            return value if math.isfinite(value) else {"f": repr(value)}
        if depth > DEPTH:
            raise Unsendable("a value nested too deeply")
        if id(value) in self.known:
            return self.known[id(value)]
        torch = sys.modules.get("torch")
        if isinstance(value, np.generic) and not isinstance(value, str | bytes):
            return self.array(np.asarray(value), scalar=True)
        if isinstance(value, np.ndarray):
            return self.once(value, self.array(np.asarray(value), scalar=False))
        if torch is not None and isinstance(value, torch.Tensor):
            return self.once(value, self.tensor(torch, value))
        return self.other(torch, value, kind, depth + 1)

    def other(self, torch: Any, value: Any, kind: type, depth: int) -> Any:
        """The form of what is neither a plain value nor an array."""
        if isinstance(value, bool | int | float | str):  # subclasses keep their number, no methods
            return self.encode(plain(value), depth)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return {"N": [kind.__name__, list(kind._fields), self.items(tuple(value), depth)]}
        for mark, container in (("l", list), ("t", tuple), ("s", set), ("z", frozenset)):
            if isinstance(value, container):
                return {mark: self.items(container.__iter__(value), depth)}
        if isinstance(value, dict):
            pairs = list(dict.items(value))
            return {"d": [[self.encode(k, depth), self.encode(v, depth)] for k, v in pairs]}
        if kind is complex:
            return {"c": [self.encode(value.real), self.encode(value.imag)]}
        if kind is bytes:
            return {"b": self.buffer(value)}
        if kind is range and len(value) <= RANGE:
            return {"r": [value.start, value.stop, value.step]}
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return {"sl": [self.encode(part, depth) for part in parts]}
        if value is Ellipsis:
            return {"e": 1}
        if isinstance(value, np.dtype) and value.str in NUMPY:
            return {"D": value.str}
        if torch is not None and isinstance(value, torch.dtype):
            return {"D": str(value)}
        if any(value is t for t in BUILTINS):
            return {"y": value.__name__}
        return {"o": self.opaque(value)}

    def once(self, array: Any, form: Any) -> Any:
        """The form of an array; where it comes again in the message, it is named by number."""
        self.known[id(array)] = {"B": len(self.arrays)}
        self.arrays.append(array)
        return form

    def items(self, values: Any, depth: int) -> list[Any]:
        return [self.encode(value, depth) for value in values]

    def buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def array(self, array: np.ndarray, scalar: bool) -> Any:
        """An array with the order of its axes in memory; one of strings as lists."""
        if array.dtype.kind == "U":
            return {"U": [list(array.shape), [str(s) for s in array.ravel()]]}
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in NUMPY:
            raise Unsendable(f"an array of dtype {array.dtype}")
        form = self.dense(dtype.str, array.astype(dtype, copy=False))
        return {"n": form | ({"g": 1} if scalar else {})}

    def dense(self, name: str, array: np.ndarray) -> dict[str, Any]:
        """The numbers as they lie in memory; "o" has the order of the axes if it is another."""
        if array.flags.c_contiguous:
            return {"d": name, "s": list(array.shape), "x": self.buffer(array.tobytes())}
        order = memory_order(array.strides)
        return self.dense(name, np.ascontiguousarray(array.transpose(order))) | {"o": order}

    def tensor(self, torch: Any, tensor: Any) -> Any:
        """A dense tensor with the order of its axes in memory."""
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in TORCH or tensor.layout != torch.strided or tensor.is_meta:
            raise Unsendable(f"a tensor of {tensor.dtype}, {tensor.layout}")
        form = self.dense(name, numbers_of(tensor))
        if tensor.requires_grad:
            self.tracked.append(tensor)
            form["q"] = len(self.tracked)
        return {"T": form}


class Decoder:
    """JSON and buffers back to values. ``opaque`` gives what a handle stands for.

    What a value takes is taken off ``room`` before it is built.
    """

    def __init__(
        self,
        buffers: list[memoryview],
        opaque: Callable[[Any], Any],
        given: tuple = (),
        room: Room | None = None,
    ):
        self.buffers = buffers
        self.given = given  # the arguments that a reply may name
        self.arrays: list[Any] = []
        self.opaque = opaque
        self.tracked: dict[int, Any] = {}  # as the encoder counted them
        self.room = room or Room()
        self.classes: dict[tuple, type] = {}  # of named tuples

    def decode(self, form: Any, depth: int = 0) -> Any:
        """The value; raises ``WireError`` for what no encoder makes, and for what is too large."""
        if depth > DEPTH + 2:
            raise WireError(TOO_LARGE)
        self.room.take(VALUE)
        if form is None or type(form) in (bool, int, float):
            return form
        if type(form) is str:
            return self.text(form)
        if not isinstance(form, dict) or len(form) != 1:
            raise WireError("sent no value")
        ((mark, body),) = form.items()
        if mark not in READERS:
            raise WireError("sent a value of an unknown kind")
        try:
            return READERS[mark](self, body, depth + 1)
        except UNFIT as error:
            raise WireError(f"sent no value ({type(error).__name__})") from None

    def items(self, forms: Any, depth: int, size: int = 0) -> list[Any]:
        self.room.take(size)
        return [self.decode(form, depth) for form in forms]

    def members(self, forms: Any, depth: int) -> set[Any]:
        self.room.take(CONTAINER)
        return {self.key(form, depth) for form in forms}

    def pairs(self, forms: Any, depth: int) -> dict[Any, Any]:
        self.room.take(CONTAINER)
        return {self.key(k, depth): self.decode(v, depth) for k, v in forms}

    def text(self, text: str) -> str:
        """Half a surrogate pair could not be written to a report."""
        if text.isascii():
            self.room.take(len(text))
            return text
        self.room.take(4 * len(text))
        return text.encode("utf-8", "replace").decode()

    def key(self, form: Any, depth: int) -> Any:
        """A dict's key or a set's member. Only those of text cannot be made to collide."""
        before = self.room.left
        self.room.take(MEMBER)
        key = self.decode(form, depth)
        if type(key) is not str:
            self.room.take_key(VALUE if before == math.inf else before - self.room.left - MEMBER)
        return key

    def strings(self, shape: Any, texts: Any) -> np.ndarray:
        """An array of strings: each takes as much as the longest."""
        if not all(type(text) is str for text in texts):
            raise WireError("sent an array of strings that are none")
        self.room.take(len(texts) * (CONTAINER + 4 * max(map(len, texts), default=0)))
        return np.array(texts, dtype=str).reshape(shape)

    def named(self, name: str, fields: list[str], values: Any, depth: int) -> Any:
        """A tuple with named fields, whose class is made for it, once for a message."""
        if len(fields) > PARAMETERS:
            raise WireError(TOO_LARGE)
        known = (name, *fields)
        if known not in self.classes:
            self.room.take(NAMED + FIELD * len(fields))
            self.classes[known] = namedtuple(name, fields)
        return self.classes[known](*self.items(values, depth))

    def handle(self, told: Any) -> Any:
        self.room.take(cost_of_handle(told))
        return self.opaque(told)

    def integer(self, digits: str) -> int:
        self.room.take(min(len(digits), DIGITS))
        return int(digits[:DIGITS], 16)

    def raw(self, number: Any) -> bytes:
        data = self.buffers[natural(number)]
        self.room.take(len(data))
        return bytes(data)

    def steps(self, parts: Any) -> range | None:
        numbers = range(*parts)
        self.room.take(VALUE * min(len(numbers), RANGE))  # a test will make a list of it
        return numbers if len(numbers) <= RANGE else None

    def array(self, body: dict[str, Any]) -> Any:
        array = self.dense(NUMPY[body["d"]], body)
        if body.get("g") and array.ndim == 0:
            return array[()]
        self.arrays.append(array)
        return array

    def dense(self, dtype: np.dtype, body: dict[str, Any]) -> np.ndarray:
        """A writable array of the sizes that were sent."""
        data = self.buffers[natural(body["x"])]
        self.room.take(NUMBERS + len(data))
        shape, order = [natural(n) for n in body["s"]], body.get("o")
        if len(shape) > AXES or math.prod(shape) * dtype.itemsize != len(data):
            raise WireError("sent an array whose bytes do not fit its shape")
        if dtype.kind == "b":  # a byte of 2 is no truth value
            array = (np.frombuffer(data, np.uint8) != 0).reshape(shape)
        else:
            array = np.frombuffer(data, dtype).reshape(shape).copy()
        if order is None:
            return array
        if [natural(axis) for axis in sorted(order)] != list(range(len(shape))):
            raise WireError("sent an array of axes that do not fit")
        return array.transpose(np.argsort(order))

    def tensor(self, body: dict[str, Any]) -> Any:
        import torch

        name = body["d"]
        self.room.take(TENSOR)
        tensor = torch.from_numpy(self.dense(TORCH[name], body))
        tensor = tensor.view(torch.bfloat16) if name == "bfloat16" else tensor
        if body.get("q"):
            tensor = tensor.requires_grad_()
            self.tracked[natural(body["q"])] = tensor
        self.arrays.append(tensor)
        return tensor

    def dtype(self, name: str) -> Any:
        if name.startswith("torch."):
            import torch

            return getattr(torch, name[6:]) if name[6:] in TORCH else None
        return NUMPY[name]


# How a decoder reads what stands behind each mark.
READERS: dict[Any, Callable[[Decoder, Any, int], Any]] = {
    "l": lambda decoder, body, depth: decoder.items(body, depth, CONTAINER),
    "t": lambda decoder, body, depth: tuple(decoder.items(body, depth, CONTAINER)),
    "s": Decoder.members,
    "z": lambda decoder, body, depth: frozenset(decoder.members(body, depth)),
    "d": Decoder.pairs,
    "n": lambda decoder, body, _: decoder.array(body),
    "T": lambda decoder, body, _: decoder.tensor(body),
    "B": lambda decoder, body, _: decoder.arrays[natural(body)],
    "A": lambda decoder, body, _: decoder.given[natural(body)],
    "o": lambda decoder, body, _: decoder.handle(body),
    "i": lambda decoder, body, _: decoder.integer(body),
    "f": lambda _, body, __: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[body],
    "c": lambda decoder, body, depth: complex(*decoder.items(body, depth)),
    "b": lambda decoder, body, _: decoder.raw(body),
    "r": lambda decoder, body, _: decoder.steps(body),
    "sl": lambda decoder, body, depth: slice(*decoder.items(body, depth)),
    "e": lambda *_: Ellipsis,
    "D": lambda decoder, body, _: decoder.dtype(body),
    "y": lambda _, body, __: PLAIN_TYPES[body],
    "U": lambda decoder, body, _: decoder.strings(*body),
    "N": lambda decoder, body, depth: decoder.named(*body, depth),
}


def cost_of_handle(told: dict[str, Any]) -> int:
    """What the proxy for an object takes: a class and its parameters more than others."""
    parameters = told.get("signature") or ()
    return (CLASS if told.get("kind") == "class" else HANDLE) + FIELD * len(parameters)


def natural(number: Any) -> int:
    """A size or index; negative ones and what is no number are refused."""
    if type(number) is not int or number < 0:
        raise WireError("sent a size that is none")
    return number


def memory_order(strides: tuple[int, ...]) -> list[int]:
    """The axes from the one with the largest steps in memory to the one with the smallest."""
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def plain(value: Any) -> Any:
    """The builtin value inside a subclass, by the builtin's own methods."""
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def big(number: int) -> str:
    if number.bit_length() > 16_000:
        raise Unsendable("an integer of thousands of digits")
    return hex(number)


def content(tensor: Any) -> tuple:
    """What a tensor holds, as something to compare."""
    return tensor.dtype, tensor.shape, tensor.requires_grad, numbers_of(tensor).tobytes()


def numbers_of(tensor: Any) -> np.ndarray:
    """A dense tensor's numbers; those of bfloat16, which NumPy lacks, as 16-bit integers."""
    torch = sys.modules["torch"]
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.detach().view(torch.int16)
    return tensor.numpy(force=True)
