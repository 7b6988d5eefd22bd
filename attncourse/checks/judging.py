"""From an implementation to a verdict: run the cases, judge the criteria, find the mistake."""

import inspect
import secrets
import sys
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Exercise, Mistake
from attncourse.checks.explaining.defaults import other_default, shared_default
from attncourse.checks.explaining.diagnosis import Finding, diagnose
from attncourse.checks.explaining.ignoring import ignored_arguments
from attncourse.checks.explaining.repairs import repaired
from attncourse.checks.explaining.symptoms.symptom import names_in_words
from attncourse.checks.index import guide_address, index
from attncourse.checks.showing.verdict import CriterionVerdict, Picture, Verdict
from attncourse.checks.trying.compare import (
    MAX_NUMBERS_WRITTEN_OUT,
    Problem,
    as_numbers,
    dtype_name,
    indented_array,
    is_array,
    known_numbers,
)
from attncourse.checks.trying.muted import muted
from attncourse.checks.trying.outcome import Outcome, is_tensor, is_unwritten, named_arguments
from attncourse.checks.trying.settings import as_a_process_starts
from attncourse.checks.trying.trials import Trial, count_numbers, one_number, trials_of, try_out
from attncourse.support.alarm import TimeUp

# Seconds of processor time for all cases: what takes longer is not called again.
MAX_SECONDS_TO_ASK_AGAIN = 4.0
# Why a criterion that holds earns nothing.
NO_VALUE_RIGHT = "earns no points as long as every value is wrong"
ONE_NUMBER_FOR_ALL = "earns no points as long as the same number comes back for every input"
MAX_ARRAY_COLUMNS = 72  # in one line
MAX_ARRAYS_IN_EXAMPLE = 3
MAX_ARRAYS_IN_FULL = 6  # where all is told


def judge(
    exercise: Exercise,
    implementation: Callable,
    seed: int | None = None,
    hear: Callable[[Verdict], None] | None = None,
    explain: bool = True,
) -> Verdict:
    """Return the verdict on ``implementation``, on cases drawn from ``seed`` (a fresh one if None).

    ``hear`` is called with what holds and what does not, before the long search for what happened:
    not where it is one mistake that the exercise knows, or two, which change the points. Without
    ``explain`` only these are looked for.
    """
    seed = secrets.randbits(32) if seed is None else seed
    with one_thread(), as_a_process_starts(), muted() as output:
        verdict = checked_verdict(exercise, implementation, seed, hear, explain)
    return replace(verdict, printed=output.used)


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch compute in one thread: several wait for each other on small arrays."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    if torch and before != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch and before != 1:
            torch.set_num_threads(before)


class RepeatableAnswer:
    """Further runs of an answer for its diagnosis, as long as its calls come back.

    One whose trials took many ``seconds`` is not called again either.
    """

    def __init__(
        self,
        exercise: Exercise,
        implementation: Callable,
        trials: tuple[Trial, ...],
        seed: int,
        seconds: float,
    ):
        """Keep the answer, and its trials, which took so many seconds.

        One that did not come back from every call, or took too long, is not asked again.
        """
        self.exercise, self.implementation = exercise, implementation
        self.trials, self.seed = trials, seed
        came_back = all(t.outcome.kind not in ("hung", "skipped") for t in trials)
        self.ended = came_back and seconds < MAX_SECONDS_TO_ASK_AGAIN

    def again(self, seed: int, among: Container[int] | None = None) -> tuple[Trial, ...]:
        """Return the answer's trials on the cases of another seed, or on those at some places."""
        return try_out(self.exercise, self.implementation, seed, among)

    def default(self, trials: tuple[Trial, ...]) -> Mistake | None:
        """Return the mistake that a default of the answer is; None after a call that hangs."""
        arguments = self.exercise, self.implementation, trials
        try:
            return (other_default(*arguments) or shared_default(*arguments)) if self.ended else None
        except TimeUp:
            self.ended = False
            return None

    def place(self) -> Mistake | None:
        """Return the place in the answer's code where one change mends everything, or None."""
        mend = partial(repaired, self.exercise, self.implementation, self.trials, self.seed)
        return mend() if self.ended else None

    def ignored(self) -> str:
        """Return the symptom that other numbers in some argument change nothing, or ""."""
        names = ignored_arguments(self.exercise, self.implementation, self.trials, self.seed)
        in_words = names_in_words(f"`{name}`" for name in names) if names else ""
        return f"other numbers in {in_words} do not change the result" if in_words else ""


def checked_verdict(
    exercise: Exercise,
    implementation: Callable,
    seed: int,
    hear: Callable[[Verdict], None] | None = None,
    explain: bool = True,
) -> Verdict:
    """Return the verdict on ``implementation``, on the cases of this seed.

    ``hear`` is called with the points once they are final, before the long search for the cause.
    """
    began = time.thread_time()
    trials = try_out(exercise, implementation, seed)
    seconds = time.thread_time() - began
    criteria = judge_criteria(exercise, trials)
    if all(c.passed for c in criteria):
        return Verdict(exercise.target, criteria, seed, exercise.section, variant=exercise.variant)
    written = not all(is_unwritten(t.outcome) for t in trials if t.wrong)

    def tell_points() -> None:
        if hear and written:
            hear(
                Verdict(exercise.target, criteria, seed, exercise.section, variant=exercise.variant)
            )

    answer = RepeatableAnswer(exercise, implementation, trials, seed, seconds)
    published = published_finding(exercise, implementation, seed)
    finding = published or diagnose(exercise, trials, seed, answer, tell_points, not explain)
    criteria_if_mended = judge_criteria(exercise, finding.mended) if finding.mended else ()
    paid = with_consequences(criteria, finding, criteria_if_mended)
    if is_one_slip(exercise, finding, trials, seed):
        paid = paid_once(paid)
    elif are_two_slips(exercise, finding, trials, seed):
        paid = paid_once(with_two_shown(exercise, criteria, finding))
    elif error := error_beside_slip(exercise, finding, trials, seed):
        paid = paid_beside_error(criteria, judge_criteria(exercise, error))
    if not explain:
        finding = Finding()
    if finding.mistake and finding.rest == finding.mistake.name:
        finding = replace(finding, rest="")  # it is told already
    mended = once_mended(exercise, finding)
    return Verdict(
        exercise.target,
        paid,
        seed,
        exercise.section,
        diagnosis=finding.mistake,
        symptom=finding.symptom,
        rest=finding.rest,
        worth=sum(c.earned for c in mended) - sum(c.earned for c in paid) if mended else 0,
        example=smallest_example(exercise, due_to(finding, trials)),
        read=index()[exercise.target].address if exercise.target in index() else "",
        guide=guide_address(exercise, finding.mistake),
        picture=first_picture(shown_first(exercise, trials)) if exercise.picture else None,
        variant=exercise.variant,
        unwritten=not written and not any(c.earned for c in paid),
    )


def published_finding(exercise: Exercise, implementation: Callable, seed: int) -> Finding | None:
    """Return the finding that an answer fails a variant because it is right as it was published."""
    if exercise.published is None:
        return None
    trials = try_out(exercise.published, implementation, seed)
    if any(t.stands_out for t in trials):
        return None
    return Finding(exercise.mistakes[0])


def points(exercise: Exercise, implementation: Callable, seed: int) -> int:
    """Return what an answer earns on the cases of this seed, without a word about why."""
    return judge(exercise, implementation, seed, explain=False).earned


def passes_fresh_cases(exercise: Exercise, implementation: Callable) -> bool:
    """True if an answer is right on fresh cases; no mistake is looked for."""
    return points(exercise, implementation, secrets.randbits(32)) == exercise.points


def is_one_slip(exercise: Exercise, finding: Finding, trials: tuple[Trial, ...], seed: int) -> bool:
    """True if one mistake is all that is wrong with an answer.

    That is one that the exercise knows, also in one branch alone, or every number is right, and
    only its form is not. What one change of the code mends is no such thing: a grade has no code in
    which to look for it, so points may not hang on it.
    """
    is_known = finding.in_form or finding.in_branch or finding.mistake in exercise.mistakes
    known = finding.all and is_known
    return known and answers_something(exercise, trials, seed)


def are_two_slips(
    exercise: Exercise, finding: Finding, trials: tuple[Trial, ...], seed: int
) -> bool:
    """True if two mistakes that the exercise knows are all that is wrong, and each is a slip."""
    every = (trials, *finding.alone)
    return bool(finding.alone) and all(answers_something(exercise, each, seed) for each in every)


def error_beside_slip(
    exercise: Exercise, finding: Finding, trials: tuple[Trial, ...], seed: int
) -> tuple[Trial, ...]:
    """Return the trials with that of two known mistakes which only raises; none unless it is one.

    The other one has to be a slip, and both together, too.
    """
    errors = [each for each in finding.alone if not any_wrong_value(each)]
    slips = [each for each in finding.alone if answers_something(exercise, each, seed)]
    together = len(errors) == len(slips) == 1 and answers_something(exercise, trials, seed)
    return errors[0] if together else ()


def any_wrong_value(trials: tuple[Trial, ...]) -> bool:
    """True if an answer returns a value in some case in which it is wrong."""
    return any(t.outcome.kind == "value" for t in trials if t.wrong)


def answers_something(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> bool:
    """True if an answer does more than an empty one: a slip in it is worth looking for.

    An empty one returns one number for everything, or what it was given, or never returns.
    """
    if one_number(trials) is not None:
        return False
    if not any_wrong_value(trials):
        return False
    return inspect.isclass(exercise.reference) or not answers_nothing(exercise, trials, seed)


def answers_nothing(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> bool:
    """True if an answer returns in every case what it was given, or a constant."""
    places = (*range(len(inspect.signature(exercise.reference).parameters)), -1)
    idle = [lambda *args, place=place, **more: [*args, *more.values()][place] for place in places]
    idle += [lambda *args, value=value, **more: value for value in (None, 0.0, 1.0, np.nan)]
    return any(
        all(
            same_outcome(trial.outcome, other.outcome)
            for trial, other in zip(trials, trials_of(exercise, answer, seed), strict=True)
        )
        for answer in idle
    )


def same_outcome(first: Outcome, second: Outcome) -> bool:
    """True if two answers did the same in a case: returned equal values, or raised alike."""
    if first.kind != second.kind or first.kind != "value":
        return first.kind == second.kind and first.error is second.error
    numbers = as_numbers(first.value), as_numbers(second.value)
    if any(n is None for n in numbers):
        return first.value is second.value or repr(first.value) == repr(second.value)
    return np.array_equal(*numbers, equal_nan=True)


def once_mended(exercise: Exercise, finding: Finding) -> tuple[CriterionVerdict, ...]:
    """Return the criteria as they are once the mistake is mended; none where that is not known.

    What is left then may be one slip, which is paid for once.
    """
    if not finding.mended:
        return ()
    criteria = judge_criteria(exercise, finding.mended)
    if not finding.alone and finding.rest not in {m.name for m in exercise.mistakes}:
        return criteria
    failed = [c for c in criteria if not c.passed and not c.waits]
    return paid_once(tuple(replace(c, follows=c in failed[1:]) for c in criteria))


def paid_once(criteria: tuple[CriterionVerdict, ...]) -> tuple[CriterionVerdict, ...]:
    """Return the criteria where one slip is all that is wrong, or two: each is paid for once.

    The first criterion that one breaks shows it, and loses its points. Those that only follow keep
    half of theirs together, in order and as whole points. What waits for a right value waits no
    more.
    """
    left = sum(c.possible for c in criteria if c.follows) // 2
    paid = []
    for criterion in criteria:
        if criterion.waits:
            full = criterion.possible
            criterion = CriterionVerdict(criterion.name, True, full, full)
        elif criterion.follows:
            earned = min(criterion.possible, left)
            left -= earned
            criterion = replace(criterion, earned=earned)
        paid.append(criterion)
    return tuple(paid)


def paid_beside_error(
    criteria: tuple[CriterionVerdict, ...], with_error: tuple[CriterionVerdict, ...]
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria where a slip is all that is wrong beside a mistake that only raises.

    What the latter breaks by itself, ``with_error``, is lost, as in an answer that has it alone. Of
    the others the slip is paid for once. So both together earn no more than either.
    """
    lost = {c.name for c in with_error if not c.passed}
    failed = [c for c in criteria if not c.passed and not c.waits and c.name not in lost]
    marked = tuple(replace(c, follows=c in failed[1:]) for c in criteria)
    others = {c.name: c for c in paid_once(tuple(c for c in marked if c.name not in lost))}
    return tuple(others.get(c.name, c) for c in marked)


def with_two_shown(
    exercise: Exercise, criteria: tuple[CriterionVerdict, ...], finding: Finding
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria where two slips are all that is wrong, with those marked that follow.

    Those are all that fail but two: the first that each mistake breaks by itself shows it, or its
    next one where the first shows the other.
    """
    failed = [c.name for c in criteria if not c.passed and not c.waits]
    shown: set[str] = set()
    for trials in finding.alone:
        broken = {c.name for c in judge_criteria(exercise, trials) if not c.passed}
        shown.update([name for name in failed if name in broken - shown][:1])
    return tuple(replace(c, follows=c.name in failed and c.name not in shown) for c in criteria)


def with_consequences(
    criteria: tuple[CriterionVerdict, ...], finding: Finding, mended: tuple[CriterionVerdict, ...]
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria, with those marked that hold once the mistake is mended.

    All but the first of them, which shows the mistake.
    """
    held = {c.name for c in mended if c.passed}
    due = [c for c in criteria if not c.passed and not c.waits and (finding.all or c.name in held)]
    return (
        tuple(replace(c, follows=c in due[1:]) for c in criteria) if finding.mistake else criteria
    )


def judge_criteria(exercise: Exercise, trials: tuple[Trial, ...]) -> tuple[CriterionVerdict, ...]:
    """Return the verdict on each criterion.

    Changing nothing and refusing what is to be refused are things that an empty answer does too:
    they earn nothing while no criterion about values holds. What returns one number for everything
    earns nothing at all: where it is the right one, that is chance.
    """
    failing = {c.name: first_failing(c, trials) for c in exercise.criteria}
    refusals = {t.criterion.name for t in trials if t.case.raises is not None}
    values = [c.name for c in exercise.criteria if not c.unchanged and c.name not in refusals]
    nothing_right = all(failing[name] for name in values)
    constant = any(failing.values()) and one_number(trials) is not None
    verdicts = []
    for criterion in exercise.criteria:
        reason = ""
        if constant:
            reason = ONE_NUMBER_FOR_ALL
        elif nothing_right and criterion.name not in values:
            reason = NO_VALUE_RIGHT
        verdicts.append(judge_criterion(exercise, criterion, failing[criterion.name], reason))
    return tuple(verdicts)


def judge_criterion(
    exercise: Exercise, criterion: Criterion, trial: Trial | None, reason_for_nothing: str
) -> CriterionVerdict:
    """Return the verdict on one criterion, which fails in this trial, or holds if there is none.

    ``reason_for_nothing`` says why it earns nothing although it holds; empty where it earns.
    """
    name, possible = criterion.name, criterion.points
    if trial is None and not reason_for_nothing:
        return CriterionVerdict(name, True, possible, possible)
    if trial is None:
        reason = reason_for_nothing
        return CriterionVerdict(name, False, 0, possible, reason, reason, waits=True)
    problem = problem_of(criterion, trial)
    message = f"{call_text(exercise, trial.case)}\n{problem}"
    return CriterionVerdict(name, False, 0, possible, message, problem.said)


def first_failing(criterion: Criterion, trials: tuple[Trial, ...]) -> Trial | None:
    """Return the first trial in which a criterion does not hold."""
    if criterion.unchanged:
        return next((t for t in trials if t.outcome.mutated), None)
    return next(failing_trials(criterion, trials), None)


def failing_trials(criterion: Criterion, trials: tuple[Trial, ...]) -> Iterator[Trial]:
    """Yield the trials in which a criterion about results does not hold.

    A call that is made once more says nothing where it was wrong the first time: that is another
    criterion's, and asked again is whether calls in between change the result. No right result is
    worked out before it is looked at, so the first trial costs less than all.
    """
    for trial in trials:
        if trial.criterion is criterion and trial.wrong:
            first = next((t for t in trials if t.case is trial.case.repeats), None)
            if first is None or not first.wrong:
                yield trial


def problem_of(criterion: Criterion, trial: Trial) -> Problem:
    """Return what is wrong in a trial that fails a criterion."""
    if criterion.unchanged:
        said = f"changed its argument {trial.outcome.mutated} in place: work on a copy"
        return Problem("value", said)
    if trial.problem is None:
        raise ValueError(f"nothing is wrong in this trial of {criterion.name}")
    return trial.problem


# --- a case in words ----------------------------------------------------------------------------


def call_head(exercise: Exercise, case: Case) -> str:
    """Return the call as a student would write it, with what is special about it."""
    named = named_arguments(exercise, case)
    inline = [n if is_array(v) else f"{n}={value_as_typed(v)}" for n, v in named]
    note = f" ({case.note})" if case.note else ""
    return (case.shown or f"{exercise.name}({', '.join(inline)})") + note


def call_line(exercise: Exercise, case: Case, more: bool) -> str:
    """Return the line before the arguments, where ``more`` of them follow."""
    head = call_head(exercise, case)
    return head + unusual_dtype(exercise, case, head) + (", where" if more else "")


def call_text(exercise: Exercise, case: Case) -> str:
    """Return the call; small arguments in full, large ones by shape."""
    lines = []
    for name, value in named_arguments(exercise, case):
        if is_array(value):
            array = known_numbers(value)
            small = 0 < array.size <= MAX_NUMBERS_WRITTEN_OUT
            lines.append(
                f"{name} =\n{indented_array(array)}" if small else name_with_shape(name, array)
            )
    return "\n".join(
        [call_line(exercise, case, bool(lines)), *first_sizes(lines, MAX_ARRAYS_IN_FULL)]
    )


def name_with_shape(name: str, array: np.ndarray) -> str:
    """Return an array's name, shape and, where it is not the usual one, dtype."""
    kind = "" if array.dtype == np.float64 else f", {array.dtype}"
    return f"{name} of shape {array.shape}{kind}"


def unusual_dtype(exercise: Exercise, case: Case, said: str) -> str:
    """Return the dtype of a call's numbers, where typed as they are shown they would have another.

    In torch that is float64, in NumPy float32. What is ``said`` already is not told again.
    """
    arrays = [value for _, value in named_arguments(exercise, case) if is_array(value)]
    usual_by_dtype = {
        dtype_name(v): default_float_dtype(v) for v in arrays if "float" in dtype_name(v)
    }
    unusual = [name for name, usual in usual_by_dtype.items() if name != usual and name not in said]
    return f", in {' and '.join(unusual)}" if unusual else ""


def default_float_dtype(value: Any) -> str:
    """Return the dtype of numbers with a point in a value's library."""
    torch = sys.modules.get("torch")
    default = torch.get_default_dtype() if torch and is_tensor(value) else np.float64.__name__
    return str(default).removeprefix("torch.")


def first_sizes(sizes: list[str], most: int = MAX_ARRAYS_IN_EXAMPLE) -> list[str]:
    """Return the first of many, and how many there are besides: a model has dozens of weights."""
    return sizes if len(sizes) <= most + 2 else [*sizes[:most], f"{len(sizes) - most} more"]


def array_in_a_line(array: np.ndarray) -> str:
    """Return an array's numbers in one line; "" where they do not fit."""
    if not 0 < array.size <= MAX_NUMBERS_WRITTEN_OUT:
        return ""
    text = " ".join(indented_array(array).split()).replace("[ ", "[").replace(" ]", "]")
    return text if len(text) <= MAX_ARRAY_COLUMNS else ""


def due_to(finding: Finding, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """Return the trials that are wrong because of the mistake; all where none are."""
    if finding.shown_by:
        return finding.shown_by
    pairs = zip(trials, finding.mended, strict=True) if finding.mended else ()
    due = tuple(trial for trial, mended in pairs if trial.wrong and not mended.wrong)
    return due or trials


def smallest_example(exercise: Exercise, trials: tuple[Trial, ...]) -> str:
    """Return the smallest case that fails, in a few lines.

    It is one of the first criterion that fails, whose cases are the plainest.
    """
    criterion = next((c for c in exercise.criteria if first_failing(c, trials)), None)
    if criterion is None:
        return ""
    if criterion.unchanged:
        failing = [t for t in trials if t.outcome.mutated]
    else:
        failing = list(failing_trials(criterion, trials))
    tried = [t for t in failing if t.outcome.kind != "skipped"]
    trial = min(tried or failing, key=lambda trial: count_numbers(trial.case))
    arguments = named_arguments(exercise, trial.case)
    arrays = [(n, known_numbers(v)) for n, v in arguments if is_array(v)]
    lines = [call_line(exercise, trial.case, bool(arrays))]
    full = [n for n, a in arrays if array_in_a_line(a)][:MAX_ARRAYS_IN_EXAMPLE]
    sizes = [name_with_shape(n, a) for n, a in arrays if n not in full]
    lines += [f"{n} = {array_in_a_line(a)}" for n, a in arrays if n in full]
    if sizes:
        lines.append(", ".join(first_sizes(sizes)))
    problem = problem_of(criterion, trial)
    results = (trial.outcome.value, trial.expected.value)
    got, want = (array_in_a_line(a) if (a := number_array(v)) is not None else "" for v in results)
    if problem.detail and got and want and got != want:
        lines += [f"returned {got}", f"expected {want}"]
    else:
        lines.append(problem.said)
    return "\n".join(lines)


def number_array(value: object) -> np.ndarray | None:
    """Return a value's numbers; None for None and for what holds none."""
    return None if value is None else as_numbers(value)


def value_as_typed(value) -> str:
    """Return an argument that is no array, as it would be typed."""
    return getattr(value, "__name__", None) or repr(value)


def shown_first(exercise: Exercise, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """Return the trial that a notebook shows unfolded: what is drawn is what is told of."""
    failing = (first_failing(criterion, trials) for criterion in exercise.criteria)
    return tuple(trial for trial in failing if trial)[:1]


def first_picture(trials: tuple[Trial, ...]) -> Picture | None:
    """Return the first wrong matrix beside the right one, if both are small enough to draw."""
    for trial in trials:
        if trial.wrong and trial.outcome.kind == "value" and trial.case.raises is None:
            got, want = number_array(trial.outcome.value), number_array(trial.expected.value)
            if got is None or want is None:
                continue
            drawable = all(a.ndim == 2 and max(a.shape) <= 12 for a in (got, want))
            if drawable and want.size > 1:
                return Picture(got, want)
    return None
