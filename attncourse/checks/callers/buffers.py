"""Buffers that an answer keeps between calls: arrays, tensors and plain memory within its reach.

A call that works in such a buffer makes nothing, and holds all the same. So what the answer can
reach is read before and after the call, and what has changed was held.
"""

import array
import gc
import mmap
import sys
import types
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

MIN_BUFFER_BYTES = 1000  # less is not looked at
BUFFER_TYPES = (bytearray, array.array, mmap.mmap, memoryview)
ATOMIC_TYPES = (int, float, complex, bool, str, bytes, type(None), types.CodeType, types.ModuleType)
HOLDER_MODULES = {"builtins", "collections", "functools", "types"}  # whose objects hold others'
State = dict[int, tuple[int, int]]


def buffer_contents(answer: Any) -> State:
    """Return size, in numbers, and checksum of each buffer that an answer can reach, by address.

    Several arrays that are views of one buffer have one address and count once.
    """
    read: State = {}
    for thing in reachable_buffers(answer):
        with suppress(Exception):  # released, on another device, or of objects
            view, width = memory_of(thing)
            if view.nbytes >= MIN_BUFFER_BYTES:
                where = view.__array_interface__["data"][0]
                count_and_checksum = view.nbytes // width, zlib.crc32(view.data)
                read[where] = max(count_and_checksum, read.get(where, (0, 0)))
    return read


def changed_buffers(before: State, after: State) -> int:
    """Return how many numbers the buffers hold whose contents changed between two readings."""
    return sum(before[where][0] for where in before.keys() & after if after[where] != before[where])


def reachable_buffers(answer: Any) -> Iterator[Any]:
    """Yield the buffers that references lead to from an answer, but for those through libraries."""
    visited, to_search = set(), [answer]
    while to_search:
        thing = to_search.pop()
        if isinstance(thing, ATOMIC_TYPES) or id(thing) in visited:
            continue
        visited.add(id(thing))
        if isinstance(thing, (np.ndarray, *BUFFER_TYPES)) or is_torch(thing, "Tensor"):
            yield thing
        elif is_searched_further(thing):
            to_search += gc.get_referents(thing)


def is_searched_further(thing: Any) -> bool:
    """True if this object's references are followed: a student's own object, or a container."""
    if isinstance(thing, type | types.FunctionType):
        return not is_of_library(thing.__module__)
    module = type(thing).__module__
    return module in HOLDER_MODULES or is_torch(thing, "nn.Module") or not is_of_library(module)


def is_of_library(module: Any) -> bool:
    """True if the module of this name is Python's, this package's or an installed library's."""
    root = str(module).partition(".")[0]
    file = str(getattr(sys.modules.get(root), "__file__", None))
    is_ours_or_pythons = root in ("attncourse", *sys.stdlib_module_names)
    return root != "__main__" and (is_ours_or_pythons or "-packages" in file)


def is_torch(thing: Any, name: str) -> bool:
    """True if an object is a torch "Tensor" or "nn.Module"; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    kinds = {"Tensor": torch.Tensor, "nn.Module": torch.nn.Module} if torch else {}
    return name in kinds and isinstance(thing, kinds[name])


def memory_of(thing: Any) -> tuple[np.ndarray, int]:
    """Return the whole memory that a buffer is part of, as bytes, and the bytes of one number."""
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base
        return thing.reshape(-1, order="A").view(np.uint8), thing.itemsize
    if isinstance(thing, BUFFER_TYPES):
        view = memoryview(thing)
        # Single bytes are raw memory: two, a float16, are the least that a number takes.
        return np.frombuffer(view.cast("B"), np.uint8), max(view.itemsize, 2)
    import torch

    storage = torch.empty(0, dtype=torch.uint8).set_(thing.detach().untyped_storage())
    return storage.numpy(), thing.element_size()
