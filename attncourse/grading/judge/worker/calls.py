"""What surrounds one call in a worker: seeds, gradients, what it changed."""

import copy
import inspect
import random
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from attncourse.grading.judge.wire.decoding import Decoder
from attncourse.grading.judge.wire.encoding import Encoder, Unsendable, content


def seed(number: int | None) -> None:
    """Seeds every generator that a function may draw from."""
    if number is None:
        return
    random.seed(number)
    np.random.seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(number)


def generator(state: dict[str, Any]) -> np.random.Generator:
    made = np.random.Generator(np.random.PCG64())
    made.bit_generator.state = state
    return made


def gradients(request: dict[str, Any]) -> Any:
    """A context with or without gradients, as the checker has it."""
    if "torch" not in sys.modules or "grad" not in request:
        return nullcontext()
    return sys.modules["torch"].set_grad_enabled(request["grad"])


def unleafed(args: list, kwargs: dict, decoder: Decoder, request: dict) -> tuple:
    """The arguments, with a copy in place of each leaf that is none in the checker; the leaves."""
    leaves = [decoder.tracked[n] for n in sorted(decoder.tracked)]
    inner = {id(leaves[n - 1]): leaves[n - 1].clone() for n in request.get("inner", ())}
    args = [inner.get(id(value), value) for value in args]
    kwargs = {name: inner.get(id(value), value) for name, value in kwargs.items()}
    return args, kwargs, leaves


def is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def image(value: Any) -> Any:
    """Something equal exactly while a mutable argument stays as it is; None for others."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if is_array(value):
        return content(value)
    if not isinstance(value, list | dict | set):
        return None
    encoder = Encoder(lambda other: {"h": id(other)})
    try:
        return encoder.encode(value), encoder.buffers
    except Unsendable:
        return None


USES: dict[str, Callable] = {
    "call": lambda function, *args, **kwargs: function(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "getitem": lambda value, key: value[key],
    "setitem": lambda value, key, item: value.__setitem__(key, item),
    "len": len,
    "iter": iter,
    "next": next,
    "equal": lambda a, b: bool(a == b),
    "isinstance": isinstance,
    "copy": copy.deepcopy,
    "text": repr,
    "source": inspect.getsource,
}
