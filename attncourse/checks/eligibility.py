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
from attncourse.checks.substitution import exchange_names, functions_of, names_called, namespace_of
from attncourse.checks.trying.muted import muted
from attncourse.checks.trying.unavailable import block_own_solutions, hide_names, why_unavailable
from attncourse.support.limited_thread import is_slowed_down

ChapterExercises = tuple[Exercise, ...]
WRITE_IN_CELL_HINT = "Write it in the answer's cell, run that, then this check."


def why_unjudged(
    exercise: Exercise,
    implementation: Any,
    chapter_exercises: ChapterExercises,
    *,
    graded: bool = False,
) -> Unjudged | None:
    """Return why an answer cannot be judged; None where it can.

    ``graded`` is True for a grader, who runs all cells in order, so that only whether the answer
    can be called is asked.
    """
    cell_runs = None if graded else cells_here()
    name = exercise.name
    if cell_runs is not None:
        is_current = implementation is cell_runs.names.get(name, NOT_THERE)
        if is_current and (why := cell_runs.why_unjudged(name, implementation)):
            return why
        if sentence := why_unavailable(exercise.stem, implementation, cell_runs.may_have_written):
            return Unjudged(sentence, WRITE_IN_CELL_HINT)
        for other_name, value in names_used(implementation, chapter_exercises).items():
            if (
                why := cell_runs.why_unjudged(other_name, value)
                if functions_of(value)
                else cell_runs.why_gone(other_name)
            ):
                return Unjudged(f"{why.why} (`{name}` calls it)", why.to_do)
    if callable(implementation):
        return None
    return Unjudged(
        f"`{name}` is {kind_of(implementation)}, nothing that can be called", WRITE_IN_CELL_HINT
    )


def settled_answer(
    exercise: Exercise, implementation: Any, chapter_exercises: ChapterExercises
) -> Any:
    """Return the answer that a grader will find; its cell, and those of names it reads, may rerun.

    If it comes from this package, its cell runs once more without the package; the value that this
    gives, if any, is the answer. In a script the answer comes back as it is.
    """
    cell_runs = cells_here()
    if cell_runs is None or implementation is not cell_runs.names.get(exercise.name, NOT_THERE):
        return implementation
    with muted():
        # The answer's own cell first: what it makes now says which names it reads.
        settle_name(exercise.name, exercise.stem, cell_runs)
        implementation = cell_runs.names.get(exercise.name, NOT_THERE)
        for name in names_used(implementation, chapter_exercises):
            settle_name(name, exercise.stem, cell_runs)
    return implementation


def settle_name(name: str, stem: str, cell_runs: CellRuns) -> None:
    """Set a notebook's name to what its cell makes for a grader; the cell may run once more.

    If the value comes from this package or from a file that a grader lacks, the cell runs without
    these. A value that can be graded then stays under the name, and the run gets a note on that.
    """
    cell_runs.complete_newest(name)
    value = cell_runs.names.get(name, NOT_THERE)
    if value is NOT_THERE or not (
        sentence := why_unavailable(stem, value, cell_runs.may_have_written)
    ):
        return
    with block_own_solutions(stem):
        run = cell_runs.run_again(name)
    if run and not why_unavailable(stem, cell_runs.names[name], cell_runs.may_have_written):
        run.note = f"{sentence}; what its cell defines without it was judged"


def note_on_rerun(
    exercise: Exercise, implementation: Any, chapter_exercises: ChapterExercises
) -> str:
    """Return the notes on runs that gave an answer, and names it reads, in another way; else ""."""
    cell_runs = cells_here()
    if cell_runs is None or implementation is not cell_runs.names.get(exercise.name, NOT_THERE):
        return ""
    names = [exercise.name, *names_used(implementation, chapter_exercises)]
    return "; ".join(dict.fromkeys(filter(None, map(cell_runs.note, names))))


def names_used(implementation: Any, chapter_exercises: ChapterExercises) -> dict[str, Any]:
    """Return name and value of the notebook's names that an answer reads.

    The chapter's exercises are left out. Empty where the answer is not from this notebook.
    """
    cell_runs = cells_here()
    names = namespace_of(implementation)
    if cell_runs is None or names is not cell_runs.names:
        return {}
    exercise_names = {e.name for e in chapter_exercises}
    return {
        name: names[name]
        for name in names_called(implementation, names, exercise_names) - exercise_names
    }


@contextmanager
def hide_ungraded_names(
    exercise: Exercise, implementation: Any, chapter_exercises: ChapterExercises
) -> Iterator[None]:
    """Hide, inside the ``with`` block, names that an answer reads and a grader's machine lacks."""
    values = names_used(implementation, chapter_exercises)
    cell_runs = cells_here()
    # In a script nothing is known of cells, and every file counts as one that was written.
    writes = cell_runs.may_have_written if cell_runs else lambda file: True
    sentences = {
        name: why_unavailable(exercise.stem, value, writes) for name, value in values.items()
    }
    with hide_names(
        namespace_of(implementation), {n: text for n, text in sentences.items() if text}
    ):
        yield


def why_other_than_graded(exercise: Exercise, implementation: Any) -> Unjudged | None:
    """Return why an answer is not judged that is not the one to be graded; None if it is that.

    Graded is what the notebook holds under the exercise's name. In a script every answer is judged.
    """
    cell_runs = cells_here()
    name = exercise.name
    if cell_runs is None or implementation is cell_runs.names.get(name, NOT_THERE):
        return None
    why = f"what is graded is `{name}`, and this check was given something else"
    return Unjudged(why, f"Call your answer `{name}`, run its cell, then check that.")


def why_slowed_down() -> Unjudged | None:
    """Return why nothing is judged while an endless earlier call still runs; None if none does."""
    if not is_slowed_down():
        return None
    why = "an earlier answer's call still runs, and nothing here can end it"
    return Unjudged(why, "Restart the kernel, run the cells above this one, then this check.")


def verdict_without_judging(exercise: Exercise, why: Unjudged) -> Verdict:
    """Return the verdict of an answer that was not judged: no points, and the reason ``why``."""
    criteria = tuple(
        CriterionVerdict(
            c.name, passed=False, earned=0, possible=c.points, message=why.why, brief=why.why
        )
        for c in exercise.criteria
    )
    about = {"section": exercise.section, "variant": exercise.variant, "unwritten": why.open}
    if why.stub:  # an unfinished cell: the same verdict as on a function that is not written
        read = index()[exercise.target].address if exercise.target in index() else ""
        return Verdict(exercise.target, criteria, 0, read=read, **about)
    return Verdict(exercise.target, criteria, 0, unjudged=why.why, to_do=why.to_do, **about)


# --- a name that something else has taken ---------------------------------------------------------


def judged_with_name_put_back(
    wrong: Verdict, implementation: Any, judge: Callable[[Any], Verdict]
) -> Verdict:
    """Return the verdict on a wrong answer with the statement that overwrote a name it reads.

    A statement is blamed if the answer earns more with the name's earlier value; if none is,
    ``wrong`` comes back as it is.
    """
    cell_runs = cells_here()
    names = namespace_of(implementation)
    if cell_runs is None or names is not cell_runs.names:
        return wrong
    # Sorted, since the first name that helps is told: a set has another order in every process.
    for name in sorted(names_called(implementation, names, set())):
        binding = cell_runs.binding_of(name) or star_import_taking(name, cell_runs)
        if binding is None or isinstance(names[name], types.FunctionType | type | types.ModuleType):
            continue
        starred = built_ins_overwritten(binding[1].node)
        if starred:  # all names that it took are put back together: the answer may read several
            candidates = iter([{n: getattr(builtins, n) for n in starred if n in names}])
        else:
            candidates = ({name: value} for value in earlier_values(name, cell_runs, binding))
        for earlier in candidates:
            with exchange_names(names, earlier):
                mended = judge(implementation)
            if mended.passed or mended.earned > wrong.earned:
                return verdict_on_taken_name(wrong, mended, name, binding)
    return wrong


def verdict_on_taken_name(
    wrong: Verdict, mended: Verdict, name: str, taken: tuple[CellRun, Statement]
) -> Verdict:
    """Return the wrong verdict with its cause: another statement overwrote a ``name`` it needs.

    ``mended`` is the verdict with the name put back; ``taken`` is that statement, with its run.
    """
    run, statement = taken
    mistake = taken_name_mistake(name, str(statement), run.place)
    rest = "" if mended.passed else mended.in_short
    return replace(
        wrong, diagnosis=mistake, symptom="", rest=rest, worth=mended.earned - wrong.earned
    )


def taken_name_mistake(name: str, statement: str, place: str) -> Mistake:
    """Return the mistake that a statement in ``place`` overwrote a name; a grader uses it, too."""
    cure = f"Give that another name, and run again the cell where `{name}` comes from."
    if statement.endswith("import *"):
        cure = "Import what you need by its name, and restart the kernel before you run all cells."
    return Mistake(
        f"the name `{name}` was overwritten",
        f"`{statement}` in {place} took the name `{name}`. {cure}",
    )


def star_import_taking(name: str, cell_runs: CellRuns) -> tuple[CellRun, Statement] | None:
    """Return the newest ``from … import *`` that overwrote a built-in, with its run; or None."""
    for run in reversed(cell_runs.runs):
        for statement in reversed(run.statements):
            if name in built_ins_overwritten(statement.node):
                return run, statement
    return None


def built_ins_overwritten(node: ast.stmt) -> set[str]:
    """Return the built-in names that ``from … import *`` overwrites; none for another statement.

    Its module is not imported to find out: one that is not loaded overwrites none.
    """
    if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
        return set()
    module = sys.modules.get(node.module or "")
    if not module:
        return set()
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return {n for n in names if hasattr(builtins, n)}


def earlier_values(
    name: str, cell_runs: CellRuns, taken: tuple[CellRun, Statement]
) -> Iterator[Any]:
    """Yield the value that a name had before a statement took it, if one can be found.

    It is what the newest earlier import or definition gives when it is executed again; where there
    is none, the built-in of that name.
    """
    run, statement = taken
    for earlier in reversed(cell_runs.runs[: cell_runs.runs.index(run) + 1]):
        for candidate in reversed(earlier.statements):
            if (
                candidate is not statement
                and name in candidate.stores
                and isinstance(candidate.node, BINDING_STATEMENTS)
            ):
                # A copy: the notebook's own names stay as they are.
                namespace = dict(cell_runs.names)
                try:
                    exec(compile(ast.Module([candidate.node], []), "<cell>", "exec"), namespace)
                except Exception:  # a file that is gone, a base that has changed
                    continue
                yield namespace[name]
                return
    if hasattr(builtins, name):
        yield getattr(builtins, name)


BINDING_STATEMENTS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
