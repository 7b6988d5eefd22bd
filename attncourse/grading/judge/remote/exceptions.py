"""The exceptions that stand in the checker for those of a submission."""

import builtins
import re
from typing import Any

from attncourse.checks.watch import Forbidden, Unusable

OURS = {kind.__name__: kind for kind in (Forbidden, Unusable)}  # raised beside a submission
# Their raising ends a loop or a generator of the caller's as if all were well.
ENDS_LOOPS = {"StopIteration", "StopAsyncIteration", "GeneratorExit"}
NAME = re.compile(r"[A-Za-z_]\w{0,99}")
ABOVE = 20  # classes above an exception's that are looked at


def known_name(kind: type[BaseException]) -> str:
    """The name of an exception's class; of one that was made here, of the builtin above it."""
    return next(c.__name__ for c in kind.__mro__ if c.__module__ != __name__)


def exception_class(name: Any, above: Any) -> type[Exception]:
    """An exception class of that name, below the builtin it is derived from.

    What would end a loop of the caller's, or is no ``Exception``, comes as a ``RuntimeError``.
    """
    if isinstance(name, str) and name in OURS:
        return OURS[name]
    safe = name if isinstance(name, str) and NAME.fullmatch(name) else "Error"
    for base in above[:ABOVE] if isinstance(above, list) else ():
        known = getattr(builtins, base, None) if isinstance(base, str) else None
        if not isinstance(known, type) or not issubclass(known, BaseException):
            continue
        if base in ENDS_LOOPS or not issubclass(known, Exception):
            return type(safe, (RuntimeError,), {})
        if issubclass(known, UnicodeError | ExceptionGroup):  # they want other arguments
            return type(safe, (ValueError if issubclass(known, ValueError) else Exception,), {})
        return known if known.__name__ == safe else type(safe, (known,), {})
    return type(safe, (Exception,), {})
