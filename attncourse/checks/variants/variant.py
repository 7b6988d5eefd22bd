"""Variants of exercises by convention: masks True where forbidden, tokens as columns.

A variant is an adapter around an exercise. The reference and every mistake are given their
arguments in the published convention and what they return is written in the variant's; the cases
are written in the variant's once. So a variant is judged, explained and diagnosed like the exercise
that it is made of, and an answer to that exercise, which is published, does not fit it.
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

    ``sentence`` says it in the exercises' text. ``published`` names the mistake of an answer in the
    published convention, and ``explanation`` puts it right. ``reworded`` is what has to be said
    otherwise, in the text and in what the checks say: pairs of old and new words.
    """

    name: str
    sentence: str
    published: str
    explanation: str
    adapters: Mapping[str, Adapter]
    reworded: tuple[tuple[str, str], ...] = ()

    def reword(self, text: str) -> str:
        """Return the text in the variant's words; where two old ones begin, the longer counts."""
        new = dict(self.reworded)
        old = "|".join(re.escape(words) for words in sorted(new, key=len, reverse=True))
        return re.sub(old, lambda match: new[match[0]], text) if new else text


def rewordings(text: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of old and new words from ``old → new``, whose arrow may begin a line.

    A line that stands farther in goes on with the one before. ``⏎`` is the end of a line.
    """
    lines = textwrap.dedent(text).strip("\n")
    pairs = re.sub(r"\n +|\n(?=→)", " ", lines).split("\n")
    halves = (pair.replace("⏎", "\n").split(" → ") for pair in pairs if pair)
    return tuple((old, new) for old, new in halves)


def exercise_in_variant(exercise: Exercise, variant: Variant) -> Exercise:
    """Return the exercise in the variant's convention."""
    adapter = variant.adapters[exercise.name]

    @cache
    def composed(compose: Callable) -> Callable:
        return lambda **chosen: ours(compose(**chosen))

    def ours(implementation: Callable) -> Callable:
        made: Any = adapted_implementation(implementation, adapter, exercise)
        if parts := parts_of(implementation):
            made.attncourse_parts = Composed(composed(parts.compose), parts.chosen)
        return made

    def mistake(m: Mistake) -> Mistake:
        family = m.family and replace(m.family, make=lambda size: ours(m.family.make(size)))
        return Mistake(
            m.name,
            variant.reword(m.explanation),
            m.wrong and ours(m.wrong),
            family,
            tuple(map(ours, m.also)),
        )

    def criterion(c: Criterion) -> Criterion:
        def cases(rng):
            for case in c.cases(rng):
                yield case_in_variant(case, exercise, adapter, variant)

        return replace(c, name=variant.reword(c.name), cases=cases)

    applicable = [m for m in exercise.mistakes if m.name not in adapter.drops]
    published = Mistake(variant.published, variant.explanation, exercise.reference)
    return replace(
        exercise,
        reference=ours(exercise.reference),
        criteria=tuple(map(criterion, exercise.criteria)),
        mistakes=(published, *map(mistake, applicable)),
        variant=variant.name,
        published=exercise,
    )


def case_in_variant(case: Case, exercise: Exercise, adapter: Adapter, variant: Variant) -> Case:
    """Return the case with its arguments in the variant's convention.

    A module's inputs are named, those of a second call with a ``_2``.
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
