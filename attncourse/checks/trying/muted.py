"""What an answer prints, draws and displays while it is judged: nobody is to see it.

It is called hundreds of times, and a notebook would show as many plots and bars.
"""

import io
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from functools import cache
from typing import Any

from attncourse.checks.trying.watch import body_of, replaced_body

_aloud: ContextVar[bool] = ContextVar("_aloud", default=False)


class Sink(io.RawIOBase):
    """Takes bytes and keeps none."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


class Muted(io.TextIOBase):
    """Takes what an answer prints, call after call, and shows nothing of it."""

    used = False
    encoding = "utf-8"
    buffer = Sink()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
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
        for name in ("show", "pause") if pyplot else ():
            function = getattr(pyplot, name, None)
            if isinstance(function, types.FunctionType) and function.__closure__ is None:
                stack.enter_context(replaced_body(function, body_of(ignore)))
        try:
            yield
        finally:
            pyplot = sys.modules.get("matplotlib.pyplot")  # an answer may have been the first
            for number in set(pyplot.get_fignums()) - before if pyplot else ():
                pyplot.close(number)


def ignore(*args: Any, **kwargs: Any) -> None:
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
    shell.display_pub = muted_publisher()(publisher)
    try:
        yield
    finally:
        shell.display_pub = publisher


@cache
def muted_publisher() -> type:
    """Return the class of a publisher that hands on what is said ``aloud``, and nothing else."""
    from IPython.core.displaypub import DisplayPublisher

    class MutedPublisher(DisplayPublisher):
        def __init__(self, publisher: DisplayPublisher):
            super().__init__(parent=publisher.parent, shell=publisher.shell)
            self.publisher = publisher

        def publish(self, *args: Any, **kwargs: Any) -> None:
            if _aloud.get():
                self.publisher.publish(*args, **kwargs)

        def clear_output(self, wait: bool = False) -> None:
            if _aloud.get():
                self.publisher.clear_output(wait)

    return MutedPublisher
