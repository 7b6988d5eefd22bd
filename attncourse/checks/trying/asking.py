"""How a test asks a grader to bring back what a function changes in place.

In grading a submission runs in another process. A call gets copies of a test's arrays, and the
test's own stay as they are, so that no answer makes a test true by changing what it is compared
with. Three things ask for the changes: a call whose result is thrown away (``fill(x, 0.5)`` as a
line of its own), one whose result is only compared with None (``assert fill(x, 0.5) is None``), and
``out = in_place(fill)(x, 0.5)``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_open_blocks: list[bool] = []  # an entry for each block of ``bring_back_changes``


def in_place(function: Callable) -> Callable:
    """Return ``function`` such that a grader brings back what a call changes in place."""

    def asking_function(*args: Any, **kwargs: Any) -> Any:
        """Return the function's result, with its arguments changed as the call changed them."""
        with bring_back_changes():
            return function(*args, **kwargs)

    return asking_function


@contextmanager
def bring_back_changes() -> Iterator[None]:
    """Have calls inside the ``with`` block bring back what they change in place."""
    _open_blocks.append(True)
    try:
        yield
    finally:
        _open_blocks.pop()


def must_bring_back_changes() -> bool:
    """True inside ``bring_back_changes``: a call has to bring back the arguments it changed."""
    return bool(_open_blocks)
