"""Exercises in another convention: masks True where forbidden, tokens as columns.

An exercise in a variant is made of the exercise in the book: the reference and every mistake are
wrapped to take and return values in the variant's convention, and the cases are rewritten in it. So
it is judged, explained and diagnosed like the one in the book, whose published answer is wrong in
it.
"""

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from attncourse.checks.exercise import Case, Composed, Criterion, Exercise, Mistake, parts_of
from attncourse.checks.trying.outcome import argument_names
from attncourse.checks.variants.adapter import Adapter, adapted_implementation
from attncourse.checks.variants.rewriting import change_value


@dataclass(frozen=True)
class Variant:
    """A convention for some exercises of a chapter, by their names.

    ``sentence`` describes it in the exercises' text. ``published`` is the name of the mistake that
    an answer in the book's convention makes, ``explanation`` what a student is told of that.
    ``reworded`` are pairs of old and new words, for the exercises' text and the checks' sentences.
    """

    name: str
    sentence: str
    published: str
    explanation: str
    adapters: Mapping[str, Adapter]
    reworded: tuple[tuple[str, str], ...] = ()

    def reword(self, text: str) -> str:
        """Return the text with all rewordings made; where two apply, the longer old words count."""
        new = dict(self.reworded)
        old = "|".join(re.escape(words) for words in sorted(new, key=len, reverse=True))
        return re.sub(old, lambda match: new[match[0]], text) if new else text


def rewordings(text: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of old and new words from lines ``old → new``.

    An indented line, or one that begins with the arrow, continues the line before. ``⏎`` stands for
    the end of a line.
    """
    lines = textwrap.dedent(text).strip("\n")
    pairs = re.sub(r"\n +|\n(?=→)", " ", lines).split("\n")
    halves = (pair.replace("⏎", "\n").split(" → ") for pair in pairs if pair)
    return tuple((old, new) for old, new in halves)


def exercise_in_variant(exercise: Exercise, variant: Variant) -> Exercise:
    """Return the exercise in the variant's convention.

    Its first mistake is that of an answer in the book's convention.
    """
    adapter = variant.adapters[exercise.name]

    @cache
    def adapt_composition(compose: Callable) -> Callable:
        """Return a composition, wrapped: one and the same for all mistakes made of it."""
        return lambda **chosen: adapt(compose(**chosen))

    def adapt(implementation: Callable) -> Callable:
        """Return an implementation of the exercise, wrapped, with the options it is made of."""
        adapted: Any = adapted_implementation(implementation, adapter, exercise)
        if parts := parts_of(implementation):
            adapted.attncourse_parts = Composed(adapt_composition(parts.compose), parts.chosen)
        return adapted

    def adapt_mistake(m: Mistake) -> Mistake:
        """Return a mistake with its implementations wrapped and its explanation reworded."""
        family = m.family and replace(m.family, make=lambda size: adapt(m.family.make(size)))
        return Mistake(
            m.name,
            variant.reword(m.explanation),
            m.wrong and adapt(m.wrong),
            family,
            tuple(map(adapt, m.also)),
        )

    def adapt_criterion(c: Criterion) -> Criterion:
        """Return a criterion with its cases and its name in the variant's convention."""

        def cases(rng):
            """Yield the criterion's cases in the variant's convention."""
            for case in c.cases(rng):
                yield case_in_variant(case, exercise, adapter, variant)

        return replace(c, name=variant.reword(c.name), cases=cases)

    applicable = [m for m in exercise.mistakes if m.name not in adapter.drops]
    published = Mistake(variant.published, variant.explanation, exercise.reference)
    return replace(
        exercise,
        reference=adapt(exercise.reference),
        criteria=tuple(map(adapt_criterion, exercise.criteria)),
        mistakes=(published, *map(adapt_mistake, applicable)),
        variant=variant.name,
        published=exercise,
    )


def case_in_variant(case: Case, exercise: Exercise, adapter: Adapter, variant: Variant) -> Case:
    """Return the case with its arguments and its note in the variant's convention.

    A module's inputs are keywords; those of a second call end in ``_2``.
    """
    names = argument_names(exercise)
    args = tuple(
        change_value(adapter.arguments[name].write, value) if name in adapter.arguments else value
        for name, value in zip(names, case.args, strict=False)
    )
    kwargs = {
        name: change_value(adapter.arguments[argument].write, value)
        if (argument := name.removesuffix("_2")) in adapter.arguments
        else value
        for name, value in case.kwargs.items()
    }
    args += case.args[len(names) :]
    return replace(case, args=args, kwargs=kwargs, note=variant.reword(case.note))
