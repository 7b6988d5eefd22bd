"""Decide whether the answer in a notebook's memory is the one that a grader will find in its cell.

Where it is not, nothing is judged: a verdict would be about other code. In a script, where nothing
is known of cells, and for a grader, who runs them itself, every answer stands.
"""

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from attncourse.checks.exercise import Exercise, Mistake
from attncourse.checks.index import index
from attncourse.checks.reading.cells import (
    NOT_THERE,
    CellRun,
    CellRuns,
    Statement,
    Unjudged,
    cells_here,
    kind_of,
)
from attncourse.checks.showing.verdict import CriterionVerdict, Verdict
from attncourse.checks.substitution import functions_of, names_called, names_exchanged, namespace_of
from attncourse.checks.trying.muted import muted
from attncourse.checks.trying.unavailable import taken_away, why_unavailable, without_ours
from attncourse.support.limited_thread import is_slowed_down

Around = tuple[Exercise, ...]
WRITE_IN_CELL_HINT = "Write it in the answer's cell, run that, then this check."


def why_unjudged(
    exercise: Exercise, implementation: Any, around: Around, *, graded: bool = False
) -> Unjudged | None:
    """Return why an answer cannot be judged; None where it can.

    ``around`` are the chapter's exercises. Where it is ``graded``, a grader has run the cells.
    """
    here = None if graded else cells_here()
    name = exercise.name
    if here is not None:
        is_current = implementation is here.names.get(name, NOT_THERE)
        if is_current and (why := here.why_unjudged(name, implementation)):
            return why
        if said := why_unavailable(exercise.stem, implementation, here.writes):
            return Unjudged(said, WRITE_IN_CELL_HINT)
        for other, value in names_used(implementation, around).items():
            if why := here.why_unjudged(other, value) if functions_of(value) else here.gone(other):
                return Unjudged(f"{why.why} (`{name}` calls it)", why.to_do)
    if callable(implementation):
        return None
    return Unjudged(
        f"`{name}` is {kind_of(implementation)}, nothing that can be called", WRITE_IN_CELL_HINT
    )


def settled_answer(exercise: Exercise, implementation: Any, around: Around) -> Any:
    """Return an answer as a grader finds it; its cell, and those of what it calls, may run again.

    If it comes from this package, its cell runs once more without the package, and what that gives
    is the answer, if it gives anything.
    """
    here = cells_here()
    if here is None or implementation is not here.names.get(exercise.name, NOT_THERE):
        return implementation
    with muted():
        # The answer's own cell first: what it makes now says which names it reads.
        settle_name(exercise.name, exercise.stem, here)
        implementation = here.names.get(exercise.name, NOT_THERE)
        for name in names_used(implementation, around):
            settle_name(name, exercise.stem, here)
    return implementation


def settle_name(name: str, stem: str, here: CellRuns) -> None:
    """Have a name hold what its cell makes in a grader's process, which may run the cell once more.

    Where the value comes from a file that a grader lacks, the cell runs without that file. If the
    name then gets a value that can be graded, that value stays, with a note that says so.
    """
    here.settle(name)
    value = here.names.get(name, NOT_THERE)
    if value is NOT_THERE or not (said := why_unavailable(stem, value, here.writes)):
        return
    with without_ours(stem):
        run = here.again(name)
    if run and not why_unavailable(stem, here.names[name], here.writes):
        run.note = f"{said}; what its cell defines without it was judged"


def note_on_rerun(exercise: Exercise, implementation: Any, around: Around) -> str:
    """Return a note on how an answer was obtained where running its cells alone did not give it."""
    here = cells_here()
    if here is None or implementation is not here.names.get(exercise.name, NOT_THERE):
        return ""
    names = [exercise.name, *names_used(implementation, around)]
    return "; ".join(dict.fromkeys(filter(None, map(here.note, names))))


def names_used(implementation: Any, around: Around) -> dict[str, Any]:
    """Return the notebook's names that an answer reads, without the chapter's exercises."""
    here, names, ends = cells_here(), namespace_of(implementation), {e.name for e in around}
    if here is None or names is not here.names:
        return {}
    return {name: names[name] for name in names_called(implementation, names, ends) - ends}


@contextmanager
def as_graded(exercise: Exercise, implementation: Any, around: Around) -> Iterator[None]:
    """Take away what an answer calls and a grader's machine has not."""
    values = names_used(implementation, around)
    here = cells_here()
    # In a script nothing is known of cells, and every file counts as one that was written.
    writes = here.writes if here else lambda file: True
    said = {name: why_unavailable(exercise.stem, value, writes) for name, value in values.items()}
    with taken_away(namespace_of(implementation), {n: text for n, text in said.items() if text}):
        yield


def why_not_the_graded_one(exercise: Exercise, implementation: Any) -> Unjudged | None:
    """Return why a check does not judge: it was given something else than what is graded.

    What is graded is what the notebook has under the exercise's name. None where that was given.
    """
    here = cells_here()
    name = exercise.name
    if here is None or implementation is here.names.get(name, NOT_THERE):
        return None
    why = f"what is graded is `{name}`, and this check was given something else"
    return Unjudged(why, f"Call your answer `{name}`, run its cell, then check that.")


def why_slowed_down() -> Unjudged | None:
    """Return why nothing can be judged while an earlier call still runs that nothing could end."""
    if not is_slowed_down():
        return None
    why = "an earlier answer's call still runs, and nothing here can end it"
    return Unjudged(why, "Restart the kernel, run the cells above this one, then this check.")


def not_judged(exercise: Exercise, why: Unjudged) -> Verdict:
    """Return the verdict where nothing was judged."""
    criteria = tuple(
        CriterionVerdict(c.name, False, 0, c.points, why.why, why.why) for c in exercise.criteria
    )
    about = {"section": exercise.section, "variant": exercise.variant, "unwritten": why.open}
    if why.stub:  # as of a function that raises when it is called
        read = index()[exercise.target].address if exercise.target in index() else ""
        return Verdict(exercise.target, criteria, 0, read=read, **about)
    return Verdict(exercise.target, criteria, 0, unjudged=why.why, to_do=why.to_do, **about)


# --- a name that something else has taken ---------------------------------------------------------


def judged_with_name_put_back(
    wrong: Verdict, implementation: Any, judge: Callable[[Any], Verdict]
) -> Verdict:
    """Return the verdict on a wrong answer that reads a name which another statement has taken.

    That is said where the answer is better with what the name stood for before.
    """
    here = cells_here()
    names = namespace_of(implementation)
    if here is None or names is not here.names:
        return wrong
    # Sorted, since the first name that helps is told: a set has another order in every process.
    for name in sorted(names_called(implementation, names, set())):
        taken = here.taken(name) or taken_by_star(name, here)
        if taken is None or isinstance(names[name], types.FunctionType | type | types.ModuleType):
            continue
        star = built_ins_of_star(taken[1].node)
        built_in = {
            star_name: getattr(builtins, star_name) for star_name in star if star_name in names
        }
        candidates = [built_in] if star else ({name: v} for v in earlier_values(name, here, taken))
        for before in candidates:
            with names_exchanged(names, before):
                mended = judge(implementation)
            if mended.passed or mended.earned > wrong.earned:
                return verdict_on_taken_name(wrong, mended, name, taken)
    return wrong


def verdict_on_taken_name(
    wrong: Verdict, mended: Verdict, name: str, taken: tuple[CellRun, Statement]
) -> Verdict:
    """Return the wrong verdict with the cause that another statement took a ``name`` it needs.

    ``mended`` is the verdict with the name put back; ``taken`` is the statement, with its run.
    """
    run, statement = taken
    mistake = name_taken(name, str(statement), run.place)
    rest = "" if mended.passed else mended.in_short
    return replace(
        wrong, diagnosis=mistake, symptom="", rest=rest, worth=mended.earned - wrong.earned
    )


def name_taken(name: str, statement: str, place: str) -> Mistake:
    """Return the mistake that a statement took a name, wherever it is found."""
    cure = f"Give that another name, and run again the cell where `{name}` comes from."
    if statement.endswith("import *"):
        cure = "Import what you need by its name, and restart the kernel before you run all cells."
    return Mistake(
        f"the name `{name}` was overwritten",
        f"`{statement}` in {place} took the name `{name}`. {cure}",
    )


def taken_by_star(name: str, here: CellRuns) -> tuple[CellRun, Statement] | None:
    """Return the newest ``from … import *`` that took a name of Python's own."""
    for run in reversed(here.runs):
        for statement in reversed(run.statements):
            if name in built_ins_of_star(statement.node):
                return run, statement
    return None


def built_ins_of_star(node: ast.stmt) -> set[str]:
    """Return the names of Python's own that ``from … import *`` takes of a loaded module."""
    if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
        return set()
    module = sys.modules.get(node.module or "")
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return {n for n in names if hasattr(builtins, n)} if module else set()


def earlier_values(name: str, here: CellRuns, taken: tuple[CellRun, Statement]) -> Iterator[Any]:
    """Yield the earlier values of a name.

    They come from imports and definitions of earlier cells, or are built in.
    """
    run, statement = taken
    for earlier in reversed(here.runs[: here.runs.index(run) + 1]):
        for candidate in reversed(earlier.statements):
            if (
                candidate is not statement
                and name in candidate.stores
                and isinstance(candidate.node, BINDING_STATEMENTS)
            ):
                made = dict(here.names)  # a copy: the notebook's own names stay as they are
                try:
                    exec(compile(ast.Module([candidate.node], []), "<cell>", "exec"), made)
                except Exception:  # a file that is gone, a base that has changed
                    continue
                yield made[name]
                return
    if hasattr(builtins, name):
        yield getattr(builtins, name)


BINDING_STATEMENTS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
