"""The data of an exercise. Adding one to a chapter's tuple adds it everywhere."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

Rng = np.random.Generator
HIDDEN_POINTS = 1  # of each exercise, for the tests that are run only when it is graded
REFUSED = "refused"  # what a wrong implementation says when it raises by its own decision


def call_it(implementation: Callable, *args, **kwargs) -> Any:
    """Return the implementation's result for a case's arguments: the plain ``use`` of a case."""
    return implementation(*args, **kwargs)


@dataclass(frozen=True)
class Case:
    """One use of the implementation, whose right result is the one that the reference gives.

    ``note`` says what is special about the case ("n = 1"). ``raises`` is the exception that
    right answers raise here. ``use`` is the caller where a plain call is not enough: to take
    gradients, or to build a module and load its weights (see ``callers``). ``shown`` replaces
    the argument list in messages. ``facts`` turns the value into what is compared in its place. It
    runs where the verdict is made: the answer's own process reports its value, and is never asked
    whether that is right. ``repeats`` is the earlier case whose call this one makes once more.
    """

    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    raises: type[Exception] | None = None
    use: Callable = call_it
    shown: str = ""
    facts: Callable[[Any], Any] | None = None
    repeats: "Case | None" = None


@dataclass(frozen=True)
class Criterion:
    """A named thing that a right answer does, worth ``points``, tried on fresh ``cases``."""

    name: str
    points: int
    cases: Callable[[Rng], Iterable[Case]] = lambda rng: ()
    unchanged: bool = False

    def on(self, cases: Callable[[Rng], Iterable[Case]]) -> "Criterion":
        """Return the criterion, tried on these cases."""
        return replace(self, cases=cases)


def unchanged(points: int = 1) -> Criterion:
    """Return the criterion that no call of the other criteria changes an argument in place."""
    return Criterion("does not change its arguments", points, unchanged=True)


class Between(NamedTuple):
    """All numbers from ``low`` to ``high``, which are both positive or both negative."""

    low: float
    high: float


@dataclass(frozen=True)
class Family:
    """A mistake of any size: ``make(value)`` is the wrong implementation with that value.

    ``values`` are those to try one by one, or a range (``Between``), in which the one value is
    searched for that reproduces an answer. The right value must not be among them.
    """

    make: Callable[[Any], Callable]
    values: Between | tuple


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: a wrong implementation, its name, and the sentences that put it right.

    ``family`` makes the same mistake with other numbers; ``also`` holds further implementations of
    it. A mistake that is recognised in any exercise (see ``symptoms``) has no wrong implementation.
    """

    name: str
    explanation: str
    wrong: Callable | None = None
    family: Family | None = None
    also: tuple[Callable, ...] = ()


class Composed(NamedTuple):
    """The options from which an implementation was composed: ``compose(**chosen)``."""

    compose: Callable
    chosen: dict[str, Any]


def composition(build: Callable) -> Callable:
    """Return ``build(decision=option, …)`` as a function whose results keep what was chosen.

    ``build`` makes an implementation out of decisions. An option that is left out is the right one,
    so ``build()`` is a right answer and each wrong option a mistake; several at once are several
    mistakes. The options are kept with the implementation (``parts_of``), so that a diagnosis can
    try two mistakes together.
    """
    signature = inspect.signature(build)
    # The name of ``**options``, under which ``bind`` puts what is no named parameter.
    catch_all = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), "")

    @wraps(build)
    def compose(*args, **options):
        """Return the implementation made of these options, which it keeps."""
        chosen = dict(signature.bind(*args, **options).arguments)
        chosen |= chosen.pop(catch_all, {})
        implementation = build(**chosen)
        implementation.attncourse_parts = Composed(compose, chosen)
        return implementation

    return compose


def parts_of(implementation: Any) -> Composed | None:
    """Return how an implementation was composed, or None for one that was written as a whole."""
    return getattr(implementation, "attncourse_parts", None)


@dataclass(frozen=True)
class Exercise:
    """A function or class that a student writes, and everything needed to judge it.

    ``section`` is the heading of the page to read again. ``forbids`` names library functions that
    the answer may not hand its work to. ``picture`` draws matrices in the verdict. ``limit`` is
    the time in seconds that one call may take. ``excludes`` are the kinds of input that no case has
    to cover, each with the reason in the exercise's text (see ``tools/grid.py``). An exercise in a
    ``variant``'s convention keeps the one in the book's as ``published`` (see ``variants``).
    """

    target: str
    reference: Callable
    section: str
    criteria: tuple[Criterion, ...]
    mistakes: tuple[Mistake, ...]
    difficulty: int
    minutes: int
    forbids: tuple[str, ...] = ()
    picture: bool = False
    limit: float = 5.0
    excludes: tuple[tuple[str, str], ...] = ()
    variant: str = ""
    published: "Exercise | None" = None

    def __hash__(self) -> int:
        """Return a hash of the name alone: all fields would be slow, and each try asks for it."""
        return hash((self.target, self.variant))

    @property
    def stem(self) -> str:
        """Return the stem of the chapter: ``"kqv"`` of ``"kqv.project"``."""
        return self.target.split(".")[0]

    @property
    def name(self) -> str:
        """Return the name of the function or class: ``"project"`` of ``"kqv.project"``."""
        return self.target.split(".")[1]

    @property
    def points(self) -> int:
        """Return the points of all criteria together."""
        return sum(criterion.points for criterion in self.criteria)


def exercise(reference: Callable, **about: Any) -> Exercise:
    """Return the exercise on a chapter's function or class, with these other fields.

    Its target is the chapter's stem and the reference's name.
    """
    stem = reference.__module__.rpartition(".")[2]
    return Exercise(f"{stem}.{reference.__name__}", reference, **about)
