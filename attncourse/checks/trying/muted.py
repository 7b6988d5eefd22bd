"""Muting what an answer prints, draws and displays while it is judged.

It is called hundreds of times, and a notebook would show as many plots and bars.
"""

import io
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from typing import Any

from attncourse.checks.trying.watch import body_of, body_replaced

_aloud: ContextVar[bool] = ContextVar("_aloud", default=False)


class Sink(io.RawIOBase):
    """Takes bytes and keeps none."""

    def writable(self) -> bool:
        """Return True: callers may ask before they write."""
        return True

    def write(self, data: Any) -> int:
        """Drop the bytes; return how many there were."""
        return len(data)


class Muted(io.TextIOBase):
    """Takes what an answer prints, call after call, and shows nothing of it."""

    used = False
    encoding = "utf-8"
    buffer = Sink()

    def writable(self) -> bool:
        """Return True: callers may ask before they write."""
        return True

    def write(self, text: str) -> int:
        """Drop the text, and note that there was one; return its length."""
        self.used = True
        return len(text)


@contextmanager
def muted() -> Iterator[Muted]:
    """Show nothing of what is printed, drawn or displayed inside the ``with`` block.

    Gives what took standard output, which knows whether there was any.
    """
    out = Muted()
    with redirect_stdout(out), redirect_stderr(Muted()), undrawn(), undisplayed():
        yield out


@contextmanager
def aloud() -> Iterator[None]:
    """Have what this thread displays seen all the same: what a check itself tells."""
    before = _aloud.set(True)
    try:
        yield
    finally:
        _aloud.reset(before)


@contextmanager
def undrawn() -> Iterator[None]:
    """Close the figures that are opened inside the ``with`` block; none is shown or waited for."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    before = set(pyplot.get_fignums()) if pyplot else set()
    with ExitStack() as stack:
        if pyplot:
            for name in ("show", "pause"):
                function = getattr(pyplot, name, None)
                if isinstance(function, types.FunctionType) and function.__closure__ is None:
                    stack.enter_context(body_replaced(function, body_of(ignore_call)))
        try:
            yield
        finally:
            pyplot = sys.modules.get("matplotlib.pyplot")  # an answer may have been the first
            if pyplot:
                for number in set(pyplot.get_fignums()) - before:
                    pyplot.close(number)


def ignore_call(*args: Any, **kwargs: Any) -> None:
    """Stand for what only shows something."""


@contextmanager
def undisplayed() -> Iterator[None]:
    """Publish nothing in a notebook inside the ``with`` block, but for what is said ``aloud``."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    publisher = getattr(shell, "display_pub", None)
    if publisher is None:
        yield
        return
    with ExitStack() as stack:
        for name in ("publish", "clear_output"):
            stack.enter_context(only_aloud(publisher, name))
        yield


@contextmanager
def only_aloud(publisher: Any, name: str) -> Iterator[None]:
    """Have a publisher's method do something only for what is said ``aloud``."""
    method, is_patched = getattr(publisher, name), name in vars(publisher)

    def gated(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs) if _aloud.get() else None

    setattr(publisher, name, gated)
    try:
        yield
    finally:
        if is_patched:
            setattr(publisher, name, method)
        else:
            delattr(publisher, name)
