"""The exceptions that stand in the checker for those of a submission."""

import builtins
import re
from typing import Any

# Their raising ends a loop or a generator of the caller's as if all were well.
ENDS_LOOPS = {"StopIteration", "StopAsyncIteration", "GeneratorExit"}
NAME = re.compile(r"[A-Za-z_]\w{0,99}")


def exception_class(name: str, above: list[Any]) -> type[Exception]:
    """An exception class of that name, below the builtin it is derived from.

    What would end a loop of the caller's, or is no ``Exception``, comes as a ``RuntimeError``.
    """
    safe = name if NAME.fullmatch(name) else "Error"
    for base in above:
        known = getattr(builtins, str(base), None)
        if not isinstance(known, type) or not issubclass(known, BaseException):
            continue
        if base in ENDS_LOOPS or not issubclass(known, Exception):
            return type(safe, (RuntimeError,), {})
        if issubclass(known, UnicodeError | ExceptionGroup):  # they want other arguments
            return type(safe, (ValueError if issubclass(known, ValueError) else Exception,), {})
        return known if known.__name__ == safe else type(safe, (known,), {})
    return type(safe, (Exception,), {})
