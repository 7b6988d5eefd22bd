"""The line of a student's code that an error came through, and what stood in its names."""

import ast
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

MAX_VALUES_IN_WORDS = 4  # names
MAX_SOURCE_CHARACTERS = 200  # characters of a line


def line_behind(error: BaseException, theirs: Callable[[str], bool]) -> str:
    """Return the last line in one of ``theirs`` files, with its shapes; "" where none is."""
    line_and_frame: tuple[str, FrameType] | None = None
    for frame, number in steps_of(error):
        name = frame.f_code.co_filename
        line = linecache.getline(name, number).strip() if theirs(name) else ""
        line_and_frame = (line, frame) if line else line_and_frame
    if line_and_frame is None:
        return ""
    line, frame = line_and_frame
    read: Any = BaseException.args
    first = next(iter(read.__get__(error)), "")  # whatever its class says of it
    of_dtypes = type(first) is str and "dtype" in first
    return f"`{line[:MAX_SOURCE_CHARACTERS]}`{sizes_in_words(line, frame.f_locals, of_dtypes)}"


def steps_of(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames that an error came through, whatever its class says of them."""
    read: Any = BaseException.__traceback__
    return traceback.walk_tb(read.__get__(error))


def sizes_in_words(line: str, names: dict[str, Any], of_dtypes: bool = False) -> str:
    """Return the sizes of the arrays that a line reads, and its other plain values.

    Their dtypes, too, where an error is ``of_dtypes`` or two precisions meet.
    """
    values = dict(values_read(line, names))
    arrays = [v for v in values.values() if is_plain_array(v)]
    if not arrays and None not in values.values():
        return ""  # nothing that an error of sizes is about
    kinds = {short_dtype(v) for v in arrays if of_dtypes or "float" in short_dtype(v)}
    descriptions = [
        f"{name} is {value_in_short(value, len(kinds) > 1)}" for name, value in values.items()
    ]
    *first, last = descriptions[:MAX_VALUES_IN_WORDS]
    return f", where {', '.join(first)} and {last}" if first else f", where {last}"


def values_read(line: str, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names that a line reads, with their values where these can be told in a word."""
    try:
        tree = ast.parse(f"{line} pass" if line.endswith(":") else line)
    except SyntaxError:  # a part of a statement
        return
    nodes: list[Any] = [node for node in ast.walk(tree) if hasattr(node, "col_offset")]
    for node in sorted(nodes, key=lambda node: node.col_offset):
        if isinstance(node, ast.AugAssign):
            node = node.target
        elif not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if isinstance(node, ast.Name) and node.id in names:
            name, value = node.id, names[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name, value = f"{node.value.id}.{node.attr}", stored_attribute(names, node)
        else:
            continue
        if value is None or type(value) in (bool, int) or is_plain_array(value):
            yield name, value


def stored_attribute(names: dict[str, Any], node: ast.Attribute) -> Any:
    """Return an attribute or a parameter that an object holds itself; no code of its class runs."""
    try:
        attributes = object.__getattribute__(names[getattr(node.value, "id", "")], "__dict__")
    except (KeyError, AttributeError):
        return NO_VALUE
    attributes = attributes if type(attributes) is dict else {}
    parameters = attributes.get("_parameters")
    return attributes.get(
        node.attr, parameters.get(node.attr, NO_VALUE) if type(parameters) is dict else NO_VALUE
    )


NO_VALUE = object()


def is_plain_array(value: Any) -> bool:
    """True if a value is an array or a tensor, and of no class of the student's own."""
    torch = sys.modules.get("torch")
    kinds = (torch.Tensor, torch.nn.Parameter) if torch else ()
    return type(value) in (np.ndarray, *kinds)


def value_in_short(value: Any, with_dtype: bool) -> str:
    """Return an argument in a few characters: a number, or an array's shape and dtype."""
    if not is_plain_array(value):
        return str(value) if abs(value or 0) < 10**9 else "a huge number"
    return f"{tuple(value.shape)}{f' of {short_dtype(value)}' if with_dtype else ''}"


def short_dtype(array: Any) -> str:
    """Return the name of an array's dtype without its library's."""
    return str(array.dtype).removeprefix("torch.")
