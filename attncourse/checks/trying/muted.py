"""Muting what an answer prints, draws and displays while it is judged.

A check calls it hundreds of times, and a notebook would show as many lines and plots.
"""

import io
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from typing import Any

from attncourse.checks.trying.watch import body_calling, replace_body

# True where what is displayed is a check's own and is shown although answers are muted.
_shown_anyway: ContextVar[bool] = ContextVar("_aloud", default=False)


class ByteSink(io.RawIOBase):
    """A binary stream that drops what is written to it."""

    def writable(self) -> bool:
        """Return True: callers may ask before they write."""
        return True

    def write(self, data: Any) -> int:
        """Drop the bytes; return how many there were."""
        return len(data)


class MutedStream(io.TextIOBase):
    """A text stream that drops what is written to it and notes whether anything was."""

    was_used = False  # True once something was written
    encoding = "utf-8"
    buffer = ByteSink()

    def writable(self) -> bool:
        """Return True: callers may ask before they write."""
        return True

    def write(self, text: str) -> int:
        """Drop the text, and note that there was one; return its length."""
        self.was_used = True
        return len(text)


@contextmanager
def muted() -> Iterator[MutedStream]:
    """Show nothing that is printed, drawn or displayed inside the ``with`` block.

    Yields the stream that replaces standard output; its ``was_used`` says whether that was printed
    on.
    """
    out = MutedStream()
    with redirect_stdout(out), redirect_stderr(MutedStream()), close_new_figures(), block_display():
        yield out


@contextmanager
def show_anyway() -> Iterator[None]:
    """Show what this thread displays inside the ``with`` block, although others are muted."""
    before = _shown_anyway.set(True)
    try:
        yield
    finally:
        _shown_anyway.reset(before)


@contextmanager
def close_new_figures() -> Iterator[None]:
    """Close the figures that are opened inside the ``with`` block; none is shown or waited for.

    The functions' code is replaced, so that an answer that imported ``show`` by name is muted, too.
    """
    pyplot = sys.modules.get("matplotlib.pyplot")
    before = set(pyplot.get_fignums()) if pyplot else set()
    with ExitStack() as stack:
        if pyplot:
            for name in ("show", "pause"):
                function = getattr(pyplot, name, None)
                # A function with a closure takes no body that has none.
                if isinstance(function, types.FunctionType) and function.__closure__ is None:
                    stack.enter_context(replace_body(function, body_calling(ignore_call)))
        try:
            yield
        finally:
            pyplot = sys.modules.get("matplotlib.pyplot")  # an answer may have been the first
            if pyplot:
                for number in set(pyplot.get_fignums()) - before:
                    pyplot.close(number)


def ignore_call(*args: Any, **kwargs: Any) -> None:
    """Do nothing: stands in for functions that only show something."""


@contextmanager
def block_display() -> Iterator[None]:
    """Display nothing in a notebook inside the ``with`` block except inside ``show_anyway``."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    publisher = getattr(shell, "display_pub", None)
    if publisher is None:
        yield
        return
    with ExitStack() as stack:
        for name in ("publish", "clear_output"):
            stack.enter_context(block_method(publisher, name))
        yield


@contextmanager
def block_method(publisher: Any, name: str) -> Iterator[None]:
    """Have a publisher's method do nothing inside the block, except inside ``show_anyway``."""
    # A method that somebody else has replaced on the object is put back, not deleted.
    method, is_patched = getattr(publisher, name), name in vars(publisher)

    def call_if_shown(*args: Any, **kwargs: Any) -> Any:
        """Return the method's result inside ``show_anyway``; elsewhere do nothing."""
        return method(*args, **kwargs) if _shown_anyway.get() else None

    setattr(publisher, name, call_if_shown)
    try:
        yield
    finally:
        if is_patched:
            setattr(publisher, name, method)
        else:
            delattr(publisher, name)
