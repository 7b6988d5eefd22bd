"""What an exercise is: data. Adding one to a chapter's tuple adds it everywhere."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Rng = np.random.Generator


def call_it(implementation: Callable, *args, **kwargs) -> Any:
    """The ordinary way to use an implementation: call it with the case's arguments."""
    return implementation(*args, **kwargs)


@dataclass(frozen=True)
class Case:
    """One use of the implementation. What it should return is what the reference returns.

    ``note`` says what is special about the case ("n = 1"). ``raises`` is the exception that
    right answers raise here. ``use`` is the driver where a plain call is not enough: to take
    gradients, or to build a module and load its weights (see ``drivers``). ``shown`` replaces
    the argument list in messages.
    """

    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    raises: type[Exception] | None = None
    use: Callable = call_it
    shown: str = ""


@dataclass(frozen=True)
class Criterion:
    """A named thing that a right answer does, worth ``points``, tried on fresh ``cases``.

    ``holds`` replaces the comparison with the reference by a property: it gets the returned
    value (NumPy) and the case, and returns what is wrong, or None.
    """

    name: str
    points: int
    cases: Callable[[Rng], Iterable[Case]] = lambda rng: ()
    holds: Callable[[Any, Case], str | None] | None = None
    unchanged: bool = False


def leaves_arguments_alone(points: int = 1) -> Criterion:
    """The criterion that no call, in any other criterion, changed an argument in place."""
    return Criterion("does not change its arguments", points, unchanged=True)


@dataclass(frozen=True)
class Misconception:
    """A usual mistake: a wrong implementation, its name, and the sentences that put it right."""

    name: str
    explanation: str
    wrong: Callable


@dataclass(frozen=True)
class Exercise:
    """A function or class that a student writes, and everything needed to judge it.

    ``section`` is the heading of the page to read again. ``forbids`` names library functions that
    the answer may not hand its work to. ``picture`` draws matrices in the verdict. ``limit`` is
    the time in seconds that one call may take.
    """

    target: str
    reference: Callable
    section: str
    criteria: tuple[Criterion, ...]
    misconceptions: tuple[Misconception, ...]
    hints: tuple[str, ...]
    difficulty: int
    minutes: int
    forbids: tuple[str, ...] = ()
    picture: bool = False
    limit: float = 5.0

    @property
    def stem(self) -> str:
        return self.target.split(".")[0]

    @property
    def name(self) -> str:
        return self.target.split(".")[1]

    @property
    def points(self) -> int:
        return sum(criterion.points for criterion in self.criteria)
