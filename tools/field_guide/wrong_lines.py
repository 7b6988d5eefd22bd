"""The source of a mistake: the wrong line as it stands in the checks.

What to show is of a mistake in a composition the options that it chooses, and of an implementation
that is wrong as a whole its body. A helper that no other mistake of the exercise uses belongs to
this one and is shown below it, unless it is a right answer.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import FunctionType

from attncourse.checks import Exercise, Mistake, chapter
from attncourse.checks.exercise import parts_of
from attncourse.checks.trying.trials import trials_of
from field_guide.check_source import CheckModule, Definition, check_module, names_read_in_order

LISTING_SEED = 0


@dataclass(frozen=True)
class WrongLine:
    """The code of a mistake, and what the course's own helpers in it do, by name."""

    code: str
    helpers: tuple[tuple[str, str], ...]


def wrong_line(exercise: Exercise, mistake: Mistake) -> WrongLine:
    """The code of the mistake. Raises ``LookupError`` where it cannot be found."""
    chosen = mistake_options(mistake)
    if chosen:
        codes = [option_code(name, option) for name, option in chosen.items()]
        below = [line for option in chosen.values() for line in lines_below(option)]
        return WrongLine("\n".join([*codes, *dict.fromkeys(below)]), ())
    module, node = wrong_implementation_node(exercise, mistake)
    if isinstance(node, ast.Lambda):
        code = module.expression(node.body)
    elif isinstance(node, ast.ClassDef):
        code = module.definition(node)
    else:
        code = module.body(node)
    helpers = [module.defined[name] for name in helpers_of(exercise, mistake)]
    known = dict.fromkeys(name for part in (node, *helpers) for name in names_read_in_order(part))
    texts = {
        name: " ".join(doc.split("\n\n")[0].split())
        for name in known
        if (helper := module.defined.get(name)) and (doc := ast.get_docstring(helper))
    }
    return WrongLine("\n\n".join([code, *map(module.definition, helpers)]), tuple(texts.items()))


def mistake_options(mistake: Mistake) -> dict[str, object]:
    """Return the options that a mistake chooses in its composition.

    None for a mistake that is written out.
    """
    parts = parts_of(mistake.wrong)
    return parts.chosen if parts else {}


def option_code(name: str, option: object) -> str:
    """A chosen option: `decision = …`, a function with a name of its own as it stands.

    What it closes over is written where it is read, if a word will do.
    """
    if not is_ours(option):
        return f"{name} = {in_a_word(option) or repr(option)}"
    module, node = by_object(option, name)
    module, node = module.with_words(node, {n: in_a_word(v) for n, v in closed_over(option)})
    if isinstance(node, ast.Lambda):
        return f"{name} = {module.expression(node.body)}"
    return module.definition(node)


def lines_below(option: object) -> list[str]:
    """Return the lines for what an option closes over: functions without a name, True and False."""
    shown = {n: v for n, v in closed_over(option) if isinstance(v, bool) or is_lambda(v)}
    return [f"{n} = {lambda_code(v) if is_lambda(v) else v}" for n, v in shown.items()]


def closed_over(option: object) -> list[tuple[str, object]]:
    """The names of its surroundings that a function of the checks reads, with their values."""
    if not is_ours(option) or not isinstance(option, FunctionType):
        return []
    cells = zip(option.__code__.co_freevars, option.__closure__ or (), strict=True)
    return [(name, cell.cell_contents) for name, cell in cells]


def in_a_word(value: object) -> str:
    """Return a value as a short text; "" where it would not be read easily."""
    if callable(value):
        return "" if is_lambda(value) else getattr(value, "__name__", "")
    parts = value if isinstance(value, tuple) else (value,)
    plain = all(isinstance(p, int | float | str) and not isinstance(p, bool) for p in parts)
    return repr(value) if plain else ""


def is_ours(option: object) -> bool:
    """True if an option is a function of this package."""
    return isinstance(option, FunctionType) and option.__module__.startswith("attncourse.")


def is_lambda(value: object) -> bool:
    """True if a value is a function without a name."""
    return getattr(value, "__name__", "") == "<lambda>"


def lambda_code(value: object) -> str:
    """Return the source of a function without a name."""
    module, node = by_object(value, "a function without a name")
    if not isinstance(node, ast.Lambda):
        raise LookupError(f"{value!r} is a function with a name")
    return module.expression(node)


def helpers_of(exercise: Exercise, mistake: Mistake) -> list[str]:
    """The helpers that no other mistake of the exercise uses, right answers left out."""
    if mistake_options(mistake):
        return []
    module, node = wrong_implementation_node(exercise, mistake)
    others = {
        name
        for mistake_of_exercise in exercise.mistakes
        if mistake_of_exercise is not mistake and not mistake_options(mistake_of_exercise)
        for name in module.reached(wrong_implementation_node(exercise, mistake_of_exercise)[1])
    }
    reached_names = (name for name in dict.fromkeys(module.reached(node)) if name not in others)
    return [name for name in reached_names if not passes_some_exercise(exercise, module, name)]


@cache
def wrong_implementation_node(
    exercise: Exercise, mistake: Mistake
) -> tuple[CheckModule, ast.Lambda | Definition]:
    """The module and the node of the wrong implementation."""
    return by_object(mistake.wrong, f"{exercise.target}: {mistake.name}")


def by_object(wrong: object, whose: str) -> tuple[CheckModule, ast.Lambda | Definition]:
    """Where a function is defined, by its code's positions, or a class, by its name."""
    module = check_module(getattr(wrong, "__module__", ""))
    if isinstance(wrong, type) and wrong.__name__ in module.defined:
        return module, module.defined[wrong.__name__]
    code = getattr(wrong, "__code__", None)
    places = [p for p in code.co_positions() if p[2] != p[3]] if code else []
    matching_nodes = [
        node
        for node in module.functions.get(getattr(wrong, "__name__", ""), ())
        if all(covers(node, place) for place in places)
    ]
    if not matching_nodes or not places:
        raise LookupError(f"{whose}: the source of its `wrong` cannot be found")
    return module, matching_nodes[-1]  # the innermost


def covers(node: ast.Lambda | Definition, place: tuple) -> bool:
    """True if a node's source holds a place."""
    line, end_line, column, end_column = place
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return start <= (line, column) and (end_line, end_column) <= end


@cache
def passes_some_exercise(exercise: Exercise, module: CheckModule, name: str) -> bool:
    """True if a helper would pass one of the chapter's exercises: that is not shown."""
    helper = getattr(sys.modules[module.name], name)
    return any(
        passes(exercise_of_chapter, helper) for exercise_of_chapter in chapter(exercise.stem)
    )


def passes(exercise: Exercise, implementation: Callable) -> bool:
    """True if an implementation gives the right result in every trial."""
    parameters = inspect.signature(exercise.reference).parameters.values()
    try:
        needed = ["x" for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        inspect.signature(implementation).bind(*needed)
    except TypeError:
        return False
    return not any(trial.stands_out for trial in trials_of(exercise, implementation, LISTING_SEED))
