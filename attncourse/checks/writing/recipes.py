"""Recipes of mistakes: how a bank describes a mistake before it has an implementation.

A mistake is one or several wrong options in a composition. ``mistake`` returns a ``Recipe``, and
``made`` turns recipes into the mistakes of one composition. A bank adds ways to make a mistake with
``by``, and replaces them with ``here``; ``naming``, ``said`` and ``called`` give another wording.
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

    The first way is the one that is shown, and tried together with other mistakes.
    ``family(number)`` is the way for a number; ``values`` are those to try, or their range.
    """

    name: str
    explanation: str
    ways: tuple[Way, ...] = ()
    family: Callable[[Any], Way] | None = None
    values: Between | tuple = ()

    def by(self, *ways: Way, **options: Any) -> "Recipe":
        """Return the recipe with further ways; ``by(decision=option)`` adds one."""
        return replace(self, ways=(*self.ways, *ways, *([options] if options else ())))

    def by_any(self, family: Callable[[Any], Way], values: Between | tuple) -> "Recipe":
        """Return the recipe with a family: the mistake made with any of the numbers, too."""
        return replace(self, family=family, values=values)

    def here(self, *ways: Way, **options: Any) -> "Recipe":
        """Return a recipe of the same name and explanation with these ways alone.

        It is for another composition, or library.
        """
        return Recipe(self.name, self.explanation).by(*ways, **options)

    def whole(self, wrong: Callable, *also: Callable) -> Mistake:
        """Return the mistake of whole wrong implementations, not of options in a composition."""
        return Mistake(self.name, self.explanation, wrong, also=also)

    def said(self, explanation: str) -> "Recipe":
        """Return the recipe with another explanation, which fits another exercise."""
        return replace(self, explanation=" ".join(explanation.split()))

    def called(self, name: str) -> "Recipe":
        """Return the recipe with another name."""
        return replace(self, name=name)

    def naming(self, **words: str) -> "Recipe":
        """Return the recipe with words replaced in name and explanation: ``naming(d_k="d")``."""
        name, explanation = self.name, self.explanation
        for old, new in words.items():
            name, explanation = name.replace(old, new), explanation.replace(old, new)
        return replace(self, name=name, explanation=explanation)


def mistake(words: str) -> Recipe:
    """Return a recipe: its name is the first line of the words, the explanation all others.

    The explanation's line ends and indentation become blanks. It needs one line at least.
    """
    name, explanation = words.split("\n", 1)
    return Recipe(name, " ".join(explanation.split()))


def family_of(compose: Callable, recipe: Recipe) -> Family | None:
    """Return the family of a recipe in a composition; None if it has none."""
    choose = recipe.family
    if choose is None:
        return None
    return Family(lambda value: compose(**choose(value)), recipe.values)


def made(compose: Any, *recipes: Recipe, beside: tuple[Way, ...] = ()) -> tuple[Mistake, ...]:
    """Return the mistakes that the recipes make in one composition.

    ``beside`` are further wrong options that hide a part of a mistake. Each mistake is also made
    together with each of them, unless it uses the same decision, as one more way to make it.
    """
    decisions = inspect.signature(compose).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in decisions.values())

    def mistake_from(recipe: Recipe) -> Mistake:
        """Return the mistake of one recipe; its first way can be tried in pairs."""
        for name in {name for way in recipe.ways for name in way}:
            if not takes_any and name not in decisions:
                raise TypeError(
                    f"the mistake “{recipe.name}” sets {name!r}, which {compose.__name__} does not "
                    f"decide; it decides {', '.join(decisions)}: give the ways anew with here(…)"
                )
        first, *others = recipe.ways
        # Not by ``compose``: without their options kept, these are not tried in pairs.
        in_part = (compose.__wrapped__(**first, **p) for p in beside if not p.keys() & first.keys())
        family = family_of(compose, recipe)
        also = (*(compose(**way) for way in others), *in_part)
        return Mistake(recipe.name, recipe.explanation, compose(**first), family, also)

    return tuple(map(mistake_from, recipes))
