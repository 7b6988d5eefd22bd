"""From an implementation to a verdict: run the cases, judge the criteria, find the mistake."""

import secrets
from collections.abc import Callable

import numpy as np

from attncourse.checks.compare import as_numbers, indent
from attncourse.checks.diagnosis import diagnose
from attncourse.checks.exercise import Case, Criterion, Exercise
from attncourse.checks.outcome import argument_names, is_tensor
from attncourse.checks.trials import Trial, try_out
from attncourse.checks.verdict import CriterionVerdict, Picture, Verdict


def judge(exercise: Exercise, implementation: Callable, seed: int | None = None) -> Verdict:
    """The verdict on ``implementation``, on cases drawn from ``seed`` (a fresh one if None)."""
    seed = secrets.randbits(32) if seed is None else seed
    trials = try_out(exercise, implementation, seed)
    verdicts = judge_criteria(exercise, trials)
    passed = all(v.passed for v in verdicts)
    return Verdict(
        target=exercise.target,
        criteria=verdicts,
        diagnosis=None if passed else diagnose(exercise, trials, seed),
        seed=seed,
        section=exercise.section,
        picture=None if passed or not exercise.picture else picture(trials),
    )


def judge_criteria(exercise: Exercise, trials: tuple[Trial, ...]) -> tuple[CriterionVerdict, ...]:
    """The verdict on each criterion.

    Changing nothing and refusing what is to be refused are things that an empty answer does too:
    they count once some criterion about values holds.
    """
    messages = {c.name: problem_of_criterion(exercise, c, trials) for c in exercise.criteria}
    refusals = {t.criterion.name for t in trials if t.case.raises is not None}
    values = [c.name for c in exercise.criteria if not c.unchanged and c.name not in refusals]
    if all(messages[name] for name in values):
        for name in messages.keys() - values:
            messages[name] = messages[name] or f"counts once {exercise.name} returns right values"
    return tuple(
        CriterionVerdict(c.name, not message, 0 if message else c.points, c.points, message)
        for c in exercise.criteria
        for message in [messages[c.name]]
    )


def problem_of_criterion(
    exercise: Exercise, criterion: Criterion, trials: tuple[Trial, ...]
) -> str:
    """The first case in which the criterion does not hold, told in full; "" if there is none."""
    if criterion.unchanged:
        for t in trials:
            if t.outcome.mutated:
                call = call_text(exercise, t.case)
                return f"{call}\nchanged its argument {t.outcome.mutated} in place: work on a copy"
        return ""
    for t in trials:
        if t.criterion is criterion and t.problem:
            return f"{call_text(exercise, t.case)}\n{t.problem}"
    return ""


def call_text(exercise: Exercise, case: Case) -> str:
    """The call as a student would write it; small arguments in full, large ones by shape."""
    names = argument_names(exercise)
    named = [*zip(names, case.args, strict=False), *case.kwargs.items()]
    inline = [n if is_array(v) else f"{n}={shown(v)}" for n, v in named]
    head = case.shown or f"{exercise.name}({', '.join(inline)})"
    lines = []
    for name, value in named:
        if is_array(value):
            array = as_numbers(value)
            kind = "" if array.dtype == np.float64 else f", {array.dtype}"
            size = f"{name} of shape {array.shape}{kind}"
            lines.append(f"{name} =\n{indent(array)}" if 0 < array.size <= 16 else size)
    note = f" ({case.note})" if case.note else ""
    return "\n".join([head + note + (", where" if lines else ""), *lines])


def is_array(value) -> bool:
    return isinstance(value, np.ndarray) or is_tensor(value)


def shown(value) -> str:
    """An argument that is no array, as it would be typed."""
    return getattr(value, "__name__", None) or repr(value)


def picture(trials: tuple[Trial, ...]) -> Picture | None:
    """The first wrong matrix beside the right one, if both are small enough to draw."""
    for trial in trials:
        if trial.problem and trial.outcome.kind == "value" and trial.case.raises is None:
            got, want = as_numbers(trial.outcome.value), as_numbers(trial.expected.value)
            drawable = all(
                a is not None and a.ndim == 2 and max(a.shape) <= 12 for a in (got, want)
            )
            if drawable and want.size > 1:
                return Picture(got, want)
    return None
