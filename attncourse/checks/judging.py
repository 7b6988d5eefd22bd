"""From an implementation to a verdict: run the cases, judge the criteria, find the mistake."""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from attncourse.checks.compare import as_numbers, difference, indent
from attncourse.checks.exercise import Case, Criterion, Exercise, Misconception
from attncourse.checks.outcome import Outcome, Unusable, argument_names, is_tensor, run
from attncourse.checks.verdict import CriterionVerdict, Picture, Verdict

NOT_WRITTEN = "not written yet: replace `raise NotImplementedError()` by your code"


@dataclass(frozen=True)
class Trial:
    """A case, what the reference made of it and what the implementation did."""

    criterion: Criterion
    case: Case
    expected: Outcome
    outcome: Outcome

    @cached_property
    def problem(self) -> str | None:
        """What is wrong with the outcome, apart from changed arguments; None if it is right."""
        return problem_with(self.criterion, self.case, self.expected, self.outcome)


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


@lru_cache(maxsize=8)
def draw(exercise: Exercise, seed: int) -> tuple[tuple[Criterion, Case, Outcome], ...]:
    """Every case of every criterion, with what the reference makes of it.

    Each criterion has its own stream of random numbers.
    """
    streams = np.random.SeedSequence(seed).spawn(len(exercise.criteria))
    return tuple(
        (criterion, case, run(exercise, exercise.reference, case))
        for criterion, stream in zip(exercise.criteria, streams, strict=True)
        for case in criterion.cases(np.random.default_rng(stream))
    )


def try_out(exercise: Exercise, implementation: Callable, seed: int) -> tuple[Trial, ...]:
    """The implementation on each case. After a call that hangs, the rest are skipped."""
    trials: list[Trial] = []
    for criterion, case, expected in draw(exercise, seed):
        hung = trials and trials[-1].outcome.kind in ("hung", "skipped")
        outcome = Outcome("skipped") if hung else run(exercise, implementation, case)
        trials.append(Trial(criterion, case, expected, outcome))
    return tuple(trials)


@lru_cache(maxsize=8)
def mistakes(exercise: Exercise, seed: int) -> tuple[tuple[Misconception, tuple[Trial, ...]], ...]:
    """Each misconception with what it does on the cases."""
    return tuple((m, try_out(exercise, m.wrong, seed)) for m in exercise.misconceptions)


def problem_with(
    criterion: Criterion, case: Case, expected: Outcome, outcome: Outcome
) -> str | None:
    """What is wrong with an outcome, in words; None if it is right."""
    if outcome.kind == "hung":
        return "did not return in time: is there a loop that never ends?"
    if outcome.kind == "skipped":
        return "not tried, because an earlier call did not return in time"
    if case.raises is not None:
        wanted = case.raises.__name__
        if outcome.kind == "value":
            return f"returned a value, expected it to raise {wanted}"
        ok = outcome.error is not None and issubclass(outcome.error, case.raises)
        return None if ok else f"raised {outcome.text}, expected {wanted}"
    if outcome.kind == "raised":
        if outcome.error is NotImplementedError:
            return NOT_WRITTEN
        told = outcome.error is not None and issubclass(outcome.error, Unusable)
        return outcome.text if told else f"raised {outcome.text}"
    problem = difference(outcome.value, expected.value)
    if problem is None or criterion.holds is None:
        return problem
    # A property is judged by itself, once type and shape are those of the reference.
    got, want = as_numbers(outcome.value), as_numbers(expected.value)
    if got is None or want is None or got.shape != want.shape:
        return problem
    return criterion.holds(got, case)


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


def diagnose(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> Misconception | None:
    """The misconception that does what the implementation did, or None.

    A misconception's outcomes are compared with the implementation's wherever either is wrong.
    Agreement on wrong random numbers does not come about by chance, so a third of the cases is
    enough when some of them agree in that way (a second mistake may blur the rest); agreement
    on NaN, on exceptions or on truth values proves little, so there all must agree.
    """
    best, best_score = None, 0.0
    for misconception, made in mistakes(exercise, seed):
        score = likeness(trials, made)
        if score > best_score:
            best, best_score = misconception, score
    return best


def likeness(trials: tuple[Trial, ...], made: tuple[Trial, ...]) -> float:
    """How far the implementation did what made ``made``: 0 for not, 1 for exactly."""
    looked_at = agreed = telling = 0
    for trial, other in zip(trials, made, strict=True):
        if not (trial.problem or trial.outcome.mutated or other.problem or other.outcome.mutated):
            continue
        looked_at += 1
        if same(trial.outcome, other.outcome):
            agreed += 1
            telling += tells(trial)
    if not looked_at or not agreed:
        return 0.0
    score = agreed / looked_at
    return score if score == 1 or (telling and score >= 1 / 3) else 0.0


def same(a: Outcome, b: Outcome) -> bool:
    """Whether two calls did the same."""
    if a.kind != b.kind or a.mutated != b.mutated:
        return False
    if a.kind == "raised":
        return a.error is b.error and without_numbers(a.text) == without_numbers(b.text)
    if a.kind == "value":
        return b.value is None if a.value is None else difference(a.value, b.value) is None
    return a.kind == "hung"


def without_numbers(text: str) -> str:
    """An error's message without sizes and without the line that raised it."""
    return re.sub(r"\d+", "#", text.split(" (in the line")[0])


def tells(trial: Trial) -> bool:
    """Whether an outcome is a wrong value that nobody returns by chance."""
    if trial.outcome.kind != "value" or not trial.problem:
        return False
    value = trial.outcome.value
    if isinstance(value, dict):
        value = next(iter(value.values()), None)
    if isinstance(value, list | tuple):
        return len(value) > 2
    array = as_numbers(value) if value is not None else None
    if array is None or array.dtype.kind != "f":
        return False
    distinct = np.unique(array[np.isfinite(array)]).size
    return distinct > 2 or (distinct == 2 and array.size >= 12)


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
