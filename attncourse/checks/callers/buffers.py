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
    """Return how many numbers each buffer that an answer can reach holds, and their checksum.

    The key is where it lies: several arrays that show one buffer are one.
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
    """Return how many numbers stand in the buffers whose contents changed between two readings."""
    return sum(before[where][0] for where in before.keys() & after if after[where] != before[where])


def reachable_buffers(answer: Any) -> Iterator[Any]:
    """Yield the buffers among what a student's code leads to. Libraries are not looked into."""
    seen, waiting = set(), [answer]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, ATOMIC_TYPES) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, (np.ndarray, *BUFFER_TYPES)) or is_torch(thing, "Tensor"):
            yield thing
        elif leads_on(thing):
            waiting += gc.get_referents(thing)


def leads_on(thing: Any) -> bool:
    """True if the search for buffers goes on into this object: a student's own, or a container."""
    if isinstance(thing, type | types.FunctionType):
        return not is_of_library(thing.__module__)
    of = type(thing).__module__
    return of in HOLDER_MODULES or is_torch(thing, "nn.Module") or not is_of_library(of)


def is_of_library(module: Any) -> bool:
    """True if a module belongs to Python, to this package or to an installed library."""
    root = str(module).partition(".")[0]
    file = str(getattr(sys.modules.get(root), "__file__", None))
    ours = root in ("attncourse", *sys.stdlib_module_names)
    return root != "__main__" and (ours or "-packages" in file)


def is_torch(thing: Any, name: str) -> bool:
    """True if an object is of this class of torch's; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    kinds = {"Tensor": torch.Tensor, "nn.Module": torch.nn.Module} if torch else {}
    return name in kinds and isinstance(thing, kinds[name])


def memory_of(thing: Any) -> tuple[np.ndarray, int]:
    """Return the whole memory behind a buffer as bytes, and how many make a number there."""
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base
        return thing.reshape(-1, order="A").view(np.uint8), thing.itemsize
    if isinstance(thing, BUFFER_TYPES):
        view = memoryview(thing)
        return np.frombuffer(view.cast("B"), np.uint8), max(view.itemsize, 2)
    import torch

    whole = torch.empty(0, dtype=torch.uint8).set_(thing.detach().untyped_storage())
    return whole.numpy(), thing.element_size()
