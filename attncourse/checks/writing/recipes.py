"""Recipes of mistakes: how a bank writes a mistake before there is an implementation.

A ``mistake`` is a wrong option in a composition, or several. What is written is a ``Recipe`` of it,
and ``made`` carries recipes out in one composition. A bank adds ways to make a mistake with ``by``,
and replaces them with ``here``; where something is called otherwise, ``naming`` and ``said`` put it
in other words.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from attncourse.checks.exercise import Between, Family, Mistake

Way = dict[str, Any]  # the wrong options that make a mistake, by decision


@dataclass(frozen=True)
class Recipe:
    """A recipe of a mistake in a composition: name, explanation, and the ``ways`` to make it.

    The first way is the one that is shown, and tried together with other mistakes. ``family`` gives
    the way for a number, ``values`` are the numbers to try.
    """

    name: str
    explanation: str
    ways: tuple[Way, ...] = ()
    family: Callable[[Any], Way] | None = None
    values: Between | tuple = ()

    def by(self, *ways: Way, **options: Any) -> "Recipe":
        """Return the mistake, made in these ways too: ``by(decision=option)`` is one of them."""
        return replace(self, ways=(*self.ways, *ways, *([options] if options else ())))

    def by_any(self, family: Callable[[Any], Way], values: Between | tuple) -> "Recipe":
        """Return the mistake, made with any of the numbers too."""
        return replace(self, family=family, values=values)

    def here(self, *ways: Way, **options: Any) -> "Recipe":
        """Return the mistake as it is made in another composition or library, by these ways."""
        return Recipe(self.name, self.explanation).by(*ways, **options)

    def whole(self, wrong: Callable, *also: Callable) -> Mistake:
        """Return the mistake that is no wrong option but a whole wrong implementation."""
        return Mistake(self.name, self.explanation, wrong, also=also)

    def said(self, explanation: str) -> "Recipe":
        """Return the same mistake, put right in words that fit another exercise."""
        return replace(self, explanation=" ".join(explanation.split()))

    def called(self, name: str) -> "Recipe":
        """Return the same mistake under another name."""
        return replace(self, name=name)

    def naming(self, **words: str) -> "Recipe":
        """Return the same mistake where something is called otherwise: ``naming(d_k="d")``."""
        name, explanation = self.name, self.explanation
        for old, new in words.items():
            name, explanation = name.replace(old, new), explanation.replace(old, new)
        return replace(self, name=name, explanation=explanation)


def mistake(words: str) -> Recipe:
    """Return the recipe whose name is the first line of the words; the others are told."""
    name, explanation = words.split("\n", 1)
    return Recipe(name, " ".join(explanation.split()))


def made_family(compose: Callable, recipe: Recipe) -> Family | None:
    """Return the family of a mistake of any size; None for a mistake of one."""
    choose = recipe.family
    if choose is None:
        return None
    return Family(lambda value: compose(**choose(value)), recipe.values)


def made(compose: Any, *recipes: Recipe, beside: tuple[Way, ...] = ()) -> tuple[Mistake, ...]:
    """Return the mistakes that the recipes make in one composition.

    ``beside`` are options with which a mistake, where it has none of them itself, shows only in
    part; those are not tried in pairs.
    """
    decisions = inspect.signature(compose).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in decisions.values())

    def carried_out(recipe: Recipe) -> Mistake:
        for name in {name for way in recipe.ways for name in way}:
            if not takes_any and name not in decisions:
                raise TypeError(
                    f"the mistake “{recipe.name}” sets {name!r}, which {compose.__name__} does not "
                    f"decide; it decides {', '.join(decisions)}: give the ways anew with here(…)"
                )
        first, *others = recipe.ways
        in_part = (compose.__wrapped__(**first, **p) for p in beside if not p.keys() & first.keys())
        family = made_family(compose, recipe)
        also = (*(compose(**way) for way in others), *in_part)
        return Mistake(recipe.name, recipe.explanation, compose(**first), family, also)

    return tuple(map(carried_out, recipes))
