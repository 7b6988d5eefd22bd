"""How a test asks to see what a function changes in place.

Where a submission runs in another process, as in grading, a call gets copies of a test's arrays,
and the test's own stay as they are. So no answer can make a test true by changing what it compares
with. Three things ask for the changes: a call whose result is thrown away (``fill(x, 0.5)`` as a
line of its own), one whose result is only compared with None (``assert fill(x, 0.5) is None``), and
``out = in_place(fill)(x, 0.5)``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_asking: list[bool] = []  # one for each ``with`` block that a call is made in


def in_place(function: Callable) -> Callable:
    """Return ``function`` such that a grader brings back what a call changes in place."""

    def asking_function(*args: Any, **kwargs: Any) -> Any:
        with asking():
            return function(*args, **kwargs)

    return asking_function


@contextmanager
def asking() -> Iterator[None]:
    """Have calls inside the ``with`` block bring back what they change in place."""
    _asking.append(True)
    try:
        yield
    finally:
        _asking.pop()


def is_asked_back() -> bool:
    """True if a call made now has to bring back its changed arguments."""
    return bool(_asking)
