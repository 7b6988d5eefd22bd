"""The line of a student's code that an error came through, and the values of its names."""

import ast
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

MAX_VALUES_IN_WORDS = 4
MAX_SOURCE_CHARACTERS = 200


def line_behind(error: BaseException, is_student_file: Callable[[str], bool]) -> str:
    """Return the innermost line of an error in a student's file, with its values; "" for none.

    ``is_student_file`` is True for the name of a file that is the student's.
    """
    line_and_frame: tuple[str, FrameType] | None = None
    for frame, number in steps_of(error):
        name = frame.f_code.co_filename
        if is_student_file(name) and (line := linecache.getline(name, number).strip()):
            line_and_frame = line, frame
    if line_and_frame is None:
        return ""
    line, frame = line_and_frame
    read: Any = BaseException.args  # read past the error's class, which may be the student's
    first = next(iter(read.__get__(error)), "")
    of_dtypes = type(first) is str and "dtype" in first
    return f"`{line[:MAX_SOURCE_CHARACTERS]}`{sizes_in_words(line, frame.f_locals, of_dtypes)}"


def steps_of(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Return each frame of an error's traceback with its line number, the innermost last."""
    read: Any = BaseException.__traceback__  # past the error's class, which may be the student's
    return traceback.walk_tb(read.__get__(error))


def sizes_in_words(line: str, variables: dict[str, Any], of_dtypes: bool = False) -> str:
    """Return ", where …" with the shapes of the arrays that a line reads, and plain values; or "".

    Dtypes are named if they differ: all of them where the error is ``of_dtypes``, else only those
    of floating-point numbers count.
    """
    values = dict(values_read(line, variables))
    arrays = [v for v in values.values() if is_plain_array(v)]
    if not arrays and None not in values.values():
        return ""  # whole numbers alone explain no error
    kinds = {short_dtype(v) for v in arrays if of_dtypes or "float" in short_dtype(v)}
    descriptions = [
        f"{name} is {value_in_short(value, len(kinds) > 1)}" for name, value in values.items()
    ]
    *first, last = descriptions[:MAX_VALUES_IN_WORDS]
    return f", where {', '.join(first)} and {last}" if first else f", where {last}"


def values_read(line: str, variables: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of what a line reads, for None, bool, int and arrays only.

    Attributes such as ``self.W_q`` are among them; the order is that in the line.
    """
    try:
        tree = ast.parse(f"{line} pass" if line.endswith(":") else line)
    except SyntaxError:  # the line is only a part of its statement
        return
    nodes: list[Any] = [node for node in ast.walk(tree) if hasattr(node, "col_offset")]
    for node in sorted(nodes, key=lambda node: node.col_offset):
        if isinstance(node, ast.AugAssign):
            node = node.target
        elif not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if isinstance(node, ast.Name) and node.id in variables:
            name, value = node.id, variables[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name, value = f"{node.value.id}.{node.attr}", stored_attribute(variables, node)
        else:
            continue
        if value is None or type(value) in (bool, int) or is_plain_array(value):
            yield name, value


def stored_attribute(variables: dict[str, Any], node: ast.Attribute) -> Any:
    """Return an object's own attribute or parameter, or ``NO_VALUE``; no code of its class runs."""
    try:
        attributes = object.__getattribute__(variables[getattr(node.value, "id", "")], "__dict__")
    except (KeyError, AttributeError):
        return NO_VALUE
    if type(attributes) is not dict:
        return NO_VALUE
    if node.attr in attributes:
        return attributes[node.attr]
    parameters = attributes.get("_parameters")  # where a torch module keeps them
    return parameters.get(node.attr, NO_VALUE) if type(parameters) is dict else NO_VALUE


NO_VALUE = object()


def is_plain_array(value: Any) -> bool:
    """True if a value is an array, a tensor or a parameter, and not of a subclass."""
    torch = sys.modules.get("torch")
    kinds = (torch.Tensor, torch.nn.Parameter) if torch else ()
    return type(value) in (np.ndarray, *kinds)


def value_in_short(value: Any, with_dtype: bool) -> str:
    """Return a value in a few characters: a number, or an array's shape, and perhaps its dtype."""
    if not is_plain_array(value):
        return str(value) if abs(value or 0) < 10**9 else "a huge number"
    return f"{tuple(value.shape)}{f' of {short_dtype(value)}' if with_dtype else ''}"


def short_dtype(array: Any) -> str:
    """Return the name of an array's dtype without its library's."""
    return str(array.dtype).removeprefix("torch.")
