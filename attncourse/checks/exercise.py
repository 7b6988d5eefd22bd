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
    """Return what an implementation makes of the case's arguments: the ordinary way to use it."""
    return implementation(*args, **kwargs)


@dataclass(frozen=True)
class Case:
    """One use of the implementation. What it should return is what the reference returns.

    ``note`` says what is special about the case ("n = 1"). ``raises`` is the exception that
    right answers raise here. ``use`` is the caller where a plain call is not enough: to take
    gradients, or to build a module and load its weights (see ``callers``). ``shown`` replaces
    the argument list in messages. ``facts`` are what is compared in place of the value, worked out
    of it by who judges: an answer's own process says what came, and never that it is right.
    ``repeats`` is the case of which this is the call, made once more.
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
    """Return the criterion that no call, in any other criterion, changed an argument in place."""
    return Criterion("does not change its arguments", points, unchanged=True)


class Between(NamedTuple):
    """Every positive number from one to another, or with a minus sign from one to another."""

    low: float
    high: float


@dataclass(frozen=True)
class Family:
    """A mistake of any size: ``make(value)`` is the wrong implementation for one.

    ``values`` are those to try, or all ``Between`` two: then the one is found that does what an
    answer does. The right value must not be among them.
    """

    make: Callable[[Any], Callable]
    values: Between | tuple


@dataclass(frozen=True)
class Mistake:
    """A usual mistake: a wrong implementation, its name, and the sentences that put it right.

    ``family`` are the same mistake with other numbers, ``also`` other ways to make it. What is
    recognised in any exercise (see ``symptoms``) has no wrong implementation.
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
    """Mark ``build(decision=option, …)``, which makes an implementation out of decisions.

    An option that is left out is the right one, so ``build()`` is a right answer and each wrong
    option a mistake; several at once are several mistakes. What was chosen is kept with the
    implementation (``parts_of``), so that a diagnosis can try two mistakes together.
    """
    signature = inspect.signature(build)
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), "")

    @wraps(build)
    def compose(*args, **options):
        chosen = dict(signature.bind(*args, **options).arguments)
        chosen |= chosen.pop(rest, {})
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
    to cover, each with the reason in the exercise's text (see ``tools/grid.py``). What a
    ``variant`` makes of an exercise has the ``published`` one with it (see ``variants``).
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
        """Return the hash of the name alone: it is asked for at every try of a case."""
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
    """Return the exercise on a chapter's function or class, which gives it its name."""
    stem = reference.__module__.rpartition(".")[2]
    return Exercise(f"{stem}.{reference.__name__}", reference, **about)
