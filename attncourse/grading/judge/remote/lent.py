"""The checker's own functions that a submission's process may call, each for as long as it is lent.

What a test hands over computes with what the test knows. A submission that kept it could ask it for
another test's answers, so it is lent: with a check's cases until the last of them is answered, with
a call until the test is over, or longer where the call made an object that keeps it (a module with
an activation), while the test's names hold that.
"""

import weakref
from collections.abc import Callable
from typing import Any

LENT_FUNCTION_IS_OVER = (
    "a function was called after the test that handed it over: call it while that test runs, or "
    "build the object that calls it anew"
)


class LentFunctions:
    """Functions of the checker's that the process may call, by number. No number is given twice."""

    def __init__(self) -> None:
        self.count = 0
        self.functions: dict[int, Callable] = {}
        self.held: set[int] = set()  # by an object that a test holds

    def __getitem__(self, number: Any) -> Callable:
        """Return the function of that number; raise ``RuntimeError`` once it is released."""
        if number not in self.functions:
            raise RuntimeError(LENT_FUNCTION_IS_OVER)
        return self.functions[number]

    def add(self, function: Callable) -> int:
        """Lend a function and return its number."""
        self.count += 1
        self.functions[self.count] = function
        return self.count

    def keep_while_held(self, since: int, holder: Any) -> None:
        """Keep the functions lent after number ``since`` lent until ``holder`` is gone here.

        ``holder`` is the proxy or copy of an object that a call made or was to change: the object
        may go on calling them. Any other value keeps nothing.
        """
        numbers = self.functions.keys() - self.held - set(range(1, since + 1))
        if numbers and hasattr(type(holder), "attncourse_handle"):
            self.held |= numbers
            weakref.finalize(holder, self.release, numbers).atexit = False

    def release_since(self, since: int = 0) -> None:
        """Release the functions lent after number ``since``, all at 0, except for those kept."""
        self.release({number for number in self.functions if number > since} - self.held)

    def release(self, numbers: set[int]) -> None:
        """Release these functions."""
        self.held -= numbers
        for number in numbers:
            self.functions.pop(number, None)
