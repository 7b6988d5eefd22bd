"""Decoding: values out of JSON and raw bytes, each accounted for before it is built.

Arrays are rebuilt as plain arrays once dtype, shape and bytes agree. A few bytes can ask for much:
one buffer may be named by a thousand arrays, keys with one hash make a set take hours. So what a
reply asks for is taken off an account before anything is built. Behind that stands a bound that the
kernel keeps (``lane_loop.limit_memory``), for what tests make of it: beyond it there is a
``MemoryError``, which costs the submission its test.
"""

import builtins
import math
import re
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from attncourse.checks.trying.watch import Forbidden, Unusable
from attncourse.grading.judge.wire.encoding import (
    BUILTIN_TYPES,
    MAX_DEPTH,
    MAX_RANGE_LENGTH,
    NUMPY_DTYPES,
    TORCH_DTYPES,
)
from attncourse.grading.judge.wire.frames import WireError

PLAIN_TYPES = {t.__name__: t for t in BUILTIN_TYPES}
DECODING_ERRORS = (TypeError, ValueError, LookupError, AttributeError, OverflowError, RuntimeError)

# Bytes that things take here, roughly. An item's place in its list is counted with it.
VALUE_BYTES, CONTAINER_BYTES, MEMBER_BYTES, ARRAY_BYTES, TENSOR_BYTES = 40, 64, 64, 200, 1500
HANDLE_BYTES, CLASS_BYTES, NAMED_TUPLE_BYTES, FIELD_BYTES = 2000, 6000, 8000, 500
MAX_KEY_BYTES = 400_000  # of keys and members that are no text: ten thousand numbers
MAX_PARAMETERS = 255  # of one function, and fields of a named tuple
MAX_AXES = 32
MAX_DIGITS = 5000  # of one whole number, in hexadecimal
TOO_LARGE = "sent a value that is too large"


class Room:
    """An account of the bytes that a reply's values may still take; unlimited by default."""

    def __init__(self, size: float = float("inf")):
        self.left = size
        self.keys = MAX_KEY_BYTES if size < float("inf") else size

    def take(self, size: float) -> None:
        """Take ``size`` bytes off; raise ``WireError`` where too few are left."""
        self.left -= size
        if self.left < 0:
            raise WireError(TOO_LARGE)


class Decoder:
    """Makes values of JSON and buffers; ``resolve_handle`` gives the object behind a reference.

    The bytes that a value takes are taken off ``room`` before it is built. ``arguments`` are those
    of the call that is answered, which a reply may name.
    """

    def __init__(
        self,
        buffers: list[memoryview],
        resolve_handle: Callable[[Any], Any],
        arguments: tuple = (),
        room: Room | None = None,
    ):
        self.buffers = buffers
        self.arguments = arguments  # the arguments that a reply may name
        self.arrays: list[Any] = []
        self.resolve_handle = resolve_handle
        self.tracked: dict[int, Any] = {}  # as the encoder counted them
        self.room = room or Room()
        self.classes: dict[tuple, type] = {}  # of named tuples

    def decode(self, form: Any, depth: int = 0) -> Any:
        """Return the value of a form; raise ``WireError`` if there is none, or it is too large."""
        if depth > MAX_DEPTH + 2:
            raise WireError(TOO_LARGE)
        self.room.take(VALUE_BYTES)
        if form is None or type(form) in (bool, int, float):
            return form
        if type(form) is str:
            return self.decode_text(form)
        if not isinstance(form, dict) or len(form) != 1:
            raise WireError("sent no value")
        ((mark, body),) = form.items()
        if mark not in READERS:
            raise WireError("sent a value of an unknown kind")
        try:
            return READERS[mark](self, body, depth + 1)
        except DECODING_ERRORS as error:
            raise WireError(f"sent no value ({type(error).__name__})") from None

    def decode_items(self, forms: Any, depth: int, size: int = 0) -> list[Any]:
        """Return the values of a container's items, a list; the container takes ``size`` bytes."""
        self.room.take(size)
        return [self.decode(form, depth) for form in forms]

    def decode_set(self, forms: Any, depth: int) -> set[Any]:
        """Return the decoded members of a set."""
        self.room.take(CONTAINER_BYTES)
        return {self.decode_key(form, depth) for form in forms}

    def decode_dict(self, forms: Any, depth: int) -> dict[Any, Any]:
        """Return the decoded keys and values of a dict."""
        self.room.take(CONTAINER_BYTES)
        return {self.decode_key(k, depth): self.decode(v, depth) for k, v in forms}

    def decode_text(self, text: str) -> str:
        """Return a text that can be written to a report; half a surrogate pair becomes a ?."""
        if text.isascii():
            self.room.take(len(text))
            return text
        self.room.take(4 * len(text))
        return text.encode("utf-8", "replace").decode()

    def decode_key(self, form: Any, depth: int) -> Any:
        """Return the key of a dict or the member of a set, if those that are no texts are few.

        Python salts the hashes of texts. Others can be made to collide, and take time as their
        square.
        """
        before = self.room.left
        self.room.take(MEMBER_BYTES)
        key = self.decode(form, depth)
        if type(key) is not str:  # it takes time as well, with the number of those beside it
            taken = before - self.room.left - MEMBER_BYTES
            self.room.keys -= VALUE_BYTES if before == math.inf else taken
            if self.room.keys < 0:
                raise WireError(TOO_LARGE)
        return key

    def decode_strings(self, shape: Any, texts: Any) -> np.ndarray:
        """Return an array of strings, in which each takes as much room as the longest."""
        if not all(type(text) is str for text in texts):
            raise WireError("sent an array of strings that are none")
        self.room.take(len(texts) * (CONTAINER_BYTES + 4 * max(map(len, texts), default=0)))
        return np.array(texts, dtype=str).reshape(shape)

    def decode_named_tuple(self, body: Any, depth: int) -> Any:
        """Return a tuple with named fields; its class is made here, once in a message."""
        name, fields, values = body
        if len(fields) > MAX_PARAMETERS:
            raise WireError(TOO_LARGE)
        key = (name, *fields)
        if key not in self.classes:
            self.room.take(NAMED_TUPLE_BYTES + FIELD_BYTES * len(fields))
            self.classes[key] = namedtuple(name, fields)
        return self.classes[key](*self.decode_items(values, depth))

    def decode_handle(self, description: Any) -> Any:
        """Return what stands here for an object of the other process."""
        size = CLASS_BYTES if description.get("kind") == "class" else HANDLE_BYTES
        parameters = description.get("signature") or ()
        self.room.take(size + FIELD_BYTES * len(parameters))
        return self.resolve_handle(description)

    def decode_integer(self, digits: str) -> int:
        """Return a whole number from its digits in hexadecimal, at most ``MAX_DIGITS`` of them."""
        self.room.take(min(len(digits), MAX_DIGITS))
        return int(digits[:MAX_DIGITS], 16)

    def decode_bytes(self, number: Any) -> bytes:
        """Return the bytes in the buffer of this number."""
        data = self.buffers[natural_number(number)]
        self.room.take(len(data))
        return bytes(data)

    def decode_range(self, parts: Any) -> range | None:
        """Return a range; None for one that is too long for a test to loop over."""
        numbers = range(*parts)
        # A test will make a list of it.
        self.room.take(VALUE_BYTES * min(len(numbers), MAX_RANGE_LENGTH))
        return numbers if len(numbers) <= MAX_RANGE_LENGTH else None

    def decode_array(self, body: dict[str, Any]) -> Any:
        """Return an array, or a scalar of NumPy's."""
        array = self.array_of_buffer(NUMPY_DTYPES[body["d"]], body)
        if body.get("g") and array.ndim == 0:
            return array[()]
        self.arrays.append(array)
        return array

    def array_of_buffer(self, dtype: np.dtype, body: dict[str, Any]) -> np.ndarray:
        """Return a writable array of a buffer's bytes; raise ``WireError`` if they don't fit it."""
        data = self.buffers[natural_number(body["x"])]
        self.room.take(ARRAY_BYTES + len(data))
        shape, order = [natural_number(n) for n in body["s"]], body.get("o")
        if len(shape) > MAX_AXES or math.prod(shape) * dtype.itemsize != len(data):
            raise WireError("sent an array whose bytes do not fit its shape")
        if dtype.kind == "b":  # a byte of 2 is no truth value
            array = (np.frombuffer(data, np.uint8) != 0).reshape(shape)
        else:
            array = np.frombuffer(data, dtype).reshape(shape).copy()
        if order is None:
            return array
        if [natural_number(axis) for axis in sorted(order)] != list(range(len(shape))):
            raise WireError("sent an array of axes that do not fit")
        return array.transpose(np.argsort(order))

    def decode_tensor(self, body: dict[str, Any]) -> Any:
        """Return a tensor; one that requires gradients is entered in ``tracked`` by its number."""
        import torch

        name = body["d"]
        self.room.take(TENSOR_BYTES)
        tensor = torch.from_numpy(self.array_of_buffer(TORCH_DTYPES[name], body))
        tensor = tensor.view(torch.bfloat16) if name == "bfloat16" else tensor
        if body.get("q"):
            tensor = tensor.requires_grad_()
            self.tracked[natural_number(body["q"])] = tensor
        self.arrays.append(tensor)
        return tensor

    def decode_dtype(self, name: str) -> Any:
        """Return the dtype, NumPy's or torch's, of that name."""
        if name.startswith("torch."):
            import torch

            return getattr(torch, name[6:]) if name[6:] in TORCH_DTYPES else None
        return NUMPY_DTYPES[name]


# How a decoder reads what stands behind each mark.
READERS: dict[Any, Callable[[Decoder, Any, int], Any]] = {
    "l": lambda decoder, body, depth: decoder.decode_items(body, depth, CONTAINER_BYTES),
    "t": lambda decoder, body, depth: tuple(decoder.decode_items(body, depth, CONTAINER_BYTES)),
    "s": Decoder.decode_set,
    "z": lambda decoder, body, depth: frozenset(decoder.decode_set(body, depth)),
    "d": Decoder.decode_dict,
    "n": lambda decoder, body, _: decoder.decode_array(body),
    "T": lambda decoder, body, _: decoder.decode_tensor(body),
    "B": lambda decoder, body, _: decoder.arrays[natural_number(body)],
    "A": lambda decoder, body, _: decoder.arguments[natural_number(body)],
    "o": lambda decoder, body, _: decoder.decode_handle(body),
    "i": lambda decoder, body, _: decoder.decode_integer(body),
    "f": lambda _, body, __: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[body],
    "c": lambda decoder, body, depth: complex(*decoder.decode_items(body, depth)),
    "b": lambda decoder, body, _: decoder.decode_bytes(body),
    "r": lambda decoder, body, _: decoder.decode_range(body),
    "sl": lambda decoder, body, depth: slice(*decoder.decode_items(body, depth)),
    "e": lambda *_: Ellipsis,
    "D": lambda decoder, body, _: decoder.decode_dtype(body),
    "y": lambda _, body, __: PLAIN_TYPES[body],
    "U": lambda decoder, body, _: decoder.decode_strings(*body),
    "N": lambda decoder, body, depth: decoder.decode_named_tuple(body, depth),
}


def natural_number(number: Any) -> int:
    """Return a size or an index; raise ``WireError`` for what is no whole number from 0 on."""
    if type(number) is not int or number < 0:
        raise WireError("sent a size that is none")
    return number


# --- exceptions that stand in the checker for those of a submission -------------------------------

# Raised beside a submission, by what watches over it.
JUDGE_EXCEPTIONS = {kind.__name__: kind for kind in (Forbidden, Unusable)}
# Their raising ends a loop or a generator of the caller's as if all were well.
ENDS_LOOPS = {"StopIteration", "StopAsyncIteration", "GeneratorExit"}
IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,99}")
MAX_BASES = 20  # classes above an exception's that are looked at


def known_name(kind: type[BaseException]) -> str:
    """Return the name of an exception's class; for one that was made here, its builtin base's."""
    return next(c.__name__ for c in kind.__mro__ if c.__module__ != __name__)


def exception_class(name: Any, above: Any) -> type[Exception]:
    """Return an exception class of that name, derived from the first builtin class in ``above``.

    A name that could end a loop of the caller's, or is no ``Exception``'s, gives a
    ``RuntimeError``.
    """
    if isinstance(name, str) and name in JUDGE_EXCEPTIONS:
        return JUDGE_EXCEPTIONS[name]
    safe = name if isinstance(name, str) and IDENTIFIER.fullmatch(name) else "Error"
    if isinstance(above, list):
        for base in above[:MAX_BASES]:
            builtin = getattr(builtins, base, None) if isinstance(base, str) else None
            if not isinstance(builtin, type) or not issubclass(builtin, BaseException):
                continue
            if base in ENDS_LOOPS or not issubclass(builtin, Exception):
                return type(safe, (RuntimeError,), {})
            if issubclass(builtin, UnicodeError | ExceptionGroup):  # they want other arguments
                return type(
                    safe, (ValueError if issubclass(builtin, ValueError) else Exception,), {}
                )
            return builtin if builtin.__name__ == safe else type(safe, (builtin,), {})
    return type(safe, (Exception,), {})
