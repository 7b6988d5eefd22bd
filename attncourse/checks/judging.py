"""From an implementation to a verdict: run the cases, judge the criteria, find the mistake."""

import inspect
import secrets
import sys
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from attncourse.checks.exercise import Case, Criterion, Exercise, Mistake
from attncourse.checks.explaining.defaults import other_default_mistake, shared_default_mistake
from attncourse.checks.explaining.diagnosis import Finding, diagnose
from attncourse.checks.explaining.ignoring import ignored_arguments
from attncourse.checks.explaining.repairs import find_repair
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
from attncourse.checks.trying.trials import (
    Trial,
    constant_number,
    count_numbers,
    trials_of,
    try_out,
)
from attncourse.support.alarm import TimeUp

# Seconds of processor time for all cases: what takes longer is not called again.
MAX_SECONDS_TO_ASK_AGAIN = 4.0
# Why a criterion that holds earns nothing.
NO_VALUE_RIGHT = "earns no points as long as no criterion about values holds"
ONE_NUMBER_FOR_ALL = "earns no points as long as the same number comes back for every input"
MAX_ARRAY_COLUMNS = 72  # in one line
MAX_ARRAYS_IN_EXAMPLE = 3
MAX_ARRAYS_IN_FULL = 6  # where all is told
MAX_PICTURE_ROWS = 12  # and columns


def judge(
    exercise: Exercise,
    implementation: Callable,
    seed: int | None = None,
    on_points: Callable[[Verdict], None] | None = None,
    explain: bool = True,
) -> Verdict:
    """Return the verdict on ``implementation``, on cases drawn from ``seed`` (a fresh one if None).

    ``on_points`` is called with a verdict without a cause before the long search for the cause. It
    is not called where one or two known mistakes are found before: these change the points.
    Without ``explain`` only such mistakes are looked for, and the verdict names no cause.
    """
    seed = secrets.randbits(32) if seed is None else seed
    with one_thread(), as_a_process_starts(), muted() as output:
        verdict = verdict_on_cases(exercise, implementation, seed, on_points, explain)
    return replace(verdict, printed=output.was_used)


@contextmanager
def one_thread() -> Iterator[None]:
    """Have torch compute in one thread inside the ``with`` block: quicker for small arrays."""
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
    """An answer that its diagnosis may call again, unless a call has hung or all took too long."""

    def __init__(
        self,
        exercise: Exercise,
        implementation: Callable,
        trials: tuple[Trial, ...],
        seed: int,
        seconds: float,
    ):
        """Keep an answer and its trials on the cases of ``seed``.

        ``seconds`` is the processor time that these took: after too many, or after a call that
        hung, the answer is not called again.
        """
        self.exercise, self.implementation = exercise, implementation
        self.trials, self.seed = trials, seed
        came_back = all(t.outcome.kind not in ("hung", "skipped") for t in trials)
        self.may_run_again = came_back and seconds < MAX_SECONDS_TO_ASK_AGAIN

    def run_again(self, seed: int, among: Container[int] | None = None) -> tuple[Trial, ...]:
        """Return the answer's trials on the cases of a seed, or on those ``among`` some places."""
        return try_out(self.exercise, self.implementation, seed, among)

    def default_mistake(self, trials: tuple[Trial, ...]) -> Mistake | None:
        """Return the mistake of a wrong default, or of one that calls share; None without one.

        None, too, once the answer is not called again; a call that hangs here has that effect.
        """
        if not self.may_run_again:
            return None
        arguments = self.exercise, self.implementation, trials
        try:
            return other_default_mistake(*arguments) or shared_default_mistake(*arguments)
        except TimeUp:
            self.may_run_again = False
            return None

    def repaired_place(self) -> Mistake | None:
        """Return the place in the answer's code where one change mends everything, or None."""
        if not self.may_run_again:
            return None
        return find_repair(self.exercise, self.implementation, self.trials, self.seed)

    def ignored_symptom(self) -> str:
        """Return the symptom that other numbers in some arguments change nothing, or ""."""
        names = ignored_arguments(self.exercise, self.implementation, self.trials, self.seed)
        if not names:
            return ""
        in_words = names_in_words(f"`{name}`" for name in names)
        return f"other numbers in {in_words} do not change the result"


def verdict_on_cases(
    exercise: Exercise,
    implementation: Callable,
    seed: int,
    on_points: Callable[[Verdict], None] | None = None,
    explain: bool = True,
) -> Verdict:
    """Return the verdict of ``judge``, which has given torch its settings and muted the output.

    ``on_points`` is called with the points once they are final, before the search for the cause.
    """
    began = time.thread_time()
    trials = try_out(exercise, implementation, seed)
    seconds = time.thread_time() - began
    criteria = judge_criteria(exercise, trials)
    if all(c.passed for c in criteria):
        return Verdict(exercise.target, criteria, seed, exercise.section, variant=exercise.variant)
    is_written = not all(is_unwritten(t.outcome) for t in trials if t.wrong)

    def report_points() -> None:
        """Report the points, but not of an answer that is not written yet."""
        if on_points and is_written:
            on_points(
                Verdict(exercise.target, criteria, seed, exercise.section, variant=exercise.variant)
            )

    answer = RepeatableAnswer(exercise, implementation, trials, seed, seconds)
    published = published_finding(exercise, implementation, seed)
    finding = published or diagnose(exercise, trials, seed, answer, report_points, not explain)
    criteria_if_mended = judge_criteria(exercise, finding.mended) if finding.mended else ()
    paid_criteria = criteria_with_consequences(criteria, finding, criteria_if_mended)
    if is_one_slip(exercise, finding, trials, seed):
        paid_criteria = criteria_paid_once(paid_criteria)
    elif are_two_slips(exercise, finding, trials, seed):
        paid_criteria = criteria_paid_once(criteria_with_two_slips(exercise, criteria, finding))
    elif error := error_beside_slip(exercise, finding, trials, seed):
        paid_criteria = criteria_beside_error(criteria, judge_criteria(exercise, error))
    if not explain:
        finding = Finding()
    if finding.mistake and finding.rest == finding.mistake.name:
        finding = replace(finding, rest="")  # it is told already
    mended = criteria_once_mended(exercise, finding)
    return Verdict(
        exercise.target,
        paid_criteria,
        seed,
        exercise.section,
        diagnosis=finding.mistake,
        symptom=finding.symptom,
        rest=finding.rest,
        worth=sum(c.earned for c in mended) - sum(c.earned for c in paid_criteria) if mended else 0,
        example=smallest_example(exercise, trials_due_to(finding, trials)),
        read=index()[exercise.target].address if exercise.target in index() else "",
        guide=guide_address(exercise, finding.mistake),
        picture=first_picture(first_failing_trial(exercise, trials)) if exercise.picture else None,
        variant=exercise.variant,
        unwritten=not is_written and not any(c.earned for c in paid_criteria),
    )


def published_finding(exercise: Exercise, implementation: Callable, seed: int) -> Finding | None:
    """Return the finding that an answer follows the book's convention and not its variant's.

    None unless the exercise is a variant and the answer is right in the convention of the book.
    """
    if exercise.published is None:
        return None
    trials = try_out(exercise.published, implementation, seed)
    if any(t.stands_out for t in trials):
        return None
    return Finding(exercise.mistakes[0])  # a variant's first mistake is this one


def points_of_answer(exercise: Exercise, implementation: Callable, seed: int) -> int:
    """Return the points that an answer earns on the cases of this seed; no cause is told."""
    return judge(exercise, implementation, seed, explain=False).earned


def passes_fresh_cases(exercise: Exercise, implementation: Callable) -> bool:
    """True if an answer earns all points on cases of a fresh seed."""
    return points_of_answer(exercise, implementation, secrets.randbits(32)) == exercise.points


def is_one_slip(exercise: Exercise, finding: Finding, trials: tuple[Trial, ...], seed: int) -> bool:
    """True if one mistake is all that is wrong with an answer that is not an empty one.

    The exercise knows the mistake, which may be made in one branch only, or all numbers are right
    and only their form is wrong. A change of the code that mends everything does not count: a grade
    has no code in which to look for one, and gives the same points.
    """
    is_known = finding.in_form or finding.in_branch or finding.mistake in exercise.mistakes
    is_all_known = finding.all and is_known
    return is_all_known and answers_something(exercise, trials, seed)


def are_two_slips(
    exercise: Exercise, finding: Finding, trials: tuple[Trial, ...], seed: int
) -> bool:
    """True if two known mistakes are all that is wrong, and neither leaves an empty answer.

    ``finding.alone`` has the trials with each of the two by itself; none where there are not two.
    """
    if not finding.alone:
        return False
    return all(answers_something(exercise, each, seed) for each in (trials, *finding.alone))


def error_beside_slip(
    exercise: Exercise, finding: Finding, trials: tuple[Trial, ...], seed: int
) -> tuple[Trial, ...]:
    """Return the trials with the one of two known mistakes that only raises; () without such.

    The other mistake has to leave more than an empty answer, and so do both together.
    """
    errors = [each for each in finding.alone if not any_wrong_value(each)]
    slips = [each for each in finding.alone if answers_something(exercise, each, seed)]
    together = len(errors) == len(slips) == 1 and answers_something(exercise, trials, seed)
    return errors[0] if together else ()


def any_wrong_value(trials: tuple[Trial, ...]) -> bool:
    """True if an answer returns a wrong value in some case, and does not only raise."""
    return any(t.outcome.kind == "value" for t in trials if t.wrong)


def answers_something(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> bool:
    """True if an answer does more than an empty one, so that what is wrong in it is a slip.

    An empty one returns one number for every input, or an argument or a constant, or no value
    wherever it is wrong. A class is never taken for empty where it returns different values.
    """
    if constant_number(trials) is not None:
        return False
    if not any_wrong_value(trials):
        return False
    return inspect.isclass(exercise.reference) or not returns_argument_or_constant(
        exercise, trials, seed
    )


def returns_argument_or_constant(exercise: Exercise, trials: tuple[Trial, ...], seed: int) -> bool:
    """True if an answer returns in every case the same one of its arguments, or a constant."""
    # The last argument, -1, has no fixed place where options stand before it.
    argument_places = (*range(len(inspect.signature(exercise.reference).parameters)), -1)
    empty_answers = [
        lambda *args, place=place, **more: [*args, *more.values()][place]
        for place in argument_places
    ]
    empty_answers += [
        lambda *args, value=value, **more: value for value in (None, 0.0, 1.0, np.nan)
    ]
    return any(
        all(
            same_outcome(trial.outcome, empty_trial.outcome)
            for trial, empty_trial in zip(trials, trials_of(exercise, answer, seed), strict=True)
        )
        for answer in empty_answers
    )


def same_outcome(first: Outcome, second: Outcome) -> bool:
    """True if two answers did the same in a case: equal values, or the same type of exception."""
    if first.kind != second.kind:
        return False
    if first.kind != "value":
        return first.error is second.error
    numbers = as_numbers(first.value), as_numbers(second.value)
    if any(n is None for n in numbers):
        return first.value is second.value or repr(first.value) == repr(second.value)
    return np.array_equal(*numbers, equal_nan=True)


def criteria_once_mended(exercise: Exercise, finding: Finding) -> tuple[CriterionVerdict, ...]:
    """Return the verdicts on the criteria once the mistake is mended; () where that is not known.

    Where one known mistake is all that is left then, it is paid for once, too.
    """
    if not finding.mended:
        return ()
    criteria = judge_criteria(exercise, finding.mended)
    if not finding.alone and finding.rest not in {m.name for m in exercise.mistakes}:
        return criteria
    failed = [c for c in criteria if not c.passed and not c.waits]
    return criteria_paid_once(tuple(replace(c, follows=c in failed[1:]) for c in criteria))


def criteria_paid_once(criteria: tuple[CriterionVerdict, ...]) -> tuple[CriterionVerdict, ...]:
    """Return the criteria with the points of an answer in which one or two slips are all.

    A criterion that ``follows`` from a slip shown by another one keeps points: together they keep
    half of theirs, rounded down, which the first of them use up. One that ``waits`` for a right
    value holds. All others stay as they are.
    """
    points_left = sum(c.possible for c in criteria if c.follows) // 2
    paid = []
    for criterion in criteria:
        if criterion.waits:
            full = criterion.possible
            criterion = CriterionVerdict(criterion.name, passed=True, earned=full, possible=full)
        elif criterion.follows:
            earned = min(criterion.possible, points_left)
            points_left -= earned
            criterion = replace(criterion, earned=earned)
        paid.append(criterion)
    return tuple(paid)


def criteria_beside_error(
    criteria: tuple[CriterionVerdict, ...], with_error: tuple[CriterionVerdict, ...]
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria with the points of an answer with a slip and a mistake that only raises.

    ``with_error`` are the criteria of an answer that has the latter alone: what fails there is lost
    here, too. For the others the slip is paid for once. So both earn no more than either alone.
    """
    lost_names = {c.name for c in with_error if not c.passed}
    failed = [c for c in criteria if not c.passed and not c.waits and c.name not in lost_names]
    marked = tuple(replace(c, follows=c in failed[1:]) for c in criteria)
    others = {
        c.name: c for c in criteria_paid_once(tuple(c for c in marked if c.name not in lost_names))
    }
    return tuple(others.get(c.name, c) for c in marked)


def criteria_with_two_slips(
    exercise: Exercise, criteria: tuple[CriterionVerdict, ...], finding: Finding
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria of an answer with two slips; those that only follow are marked so.

    Each slip is shown by the first failing criterion that it breaks by itself and that does not
    show the other one. All other failing criteria follow.
    """
    failed = [c.name for c in criteria if not c.passed and not c.waits]
    mistakes_shown: set[str] = set()
    for trials in finding.alone:
        broken = {c.name for c in judge_criteria(exercise, trials) if not c.passed}
        first_broken = next((name for name in failed if name in broken - mistakes_shown), None)
        if first_broken is not None:
            mistakes_shown.add(first_broken)
    return tuple(
        replace(c, follows=c.name in failed and c.name not in mistakes_shown) for c in criteria
    )


def criteria_with_consequences(
    criteria: tuple[CriterionVerdict, ...], finding: Finding, mended: tuple[CriterionVerdict, ...]
) -> tuple[CriterionVerdict, ...]:
    """Return the criteria; those that fail only because of the finding's mistake are marked so.

    They hold in ``mended``, the criteria without the mistake. The first of them shows the mistake
    and is not marked. Without a mistake nothing is.
    """
    if not finding.mistake:
        return criteria
    held_names = {c.name for c in mended if c.passed}
    consequences = [
        c
        for c in criteria
        if not c.passed and not c.waits and (finding.all or c.name in held_names)
    ]
    return tuple(replace(c, follows=c in consequences[1:]) for c in criteria)


def judge_criteria(exercise: Exercise, trials: tuple[Trial, ...]) -> tuple[CriterionVerdict, ...]:
    """Return the verdict on each criterion.

    An empty answer, too, leaves its arguments unchanged and may raise where it has to: criteria on
    that earn nothing as long as no criterion about values holds. An answer that returns one number
    for every input earns nothing at all: where that is right, it is by chance.
    """
    failing = {c.name: first_failing(c, trials) for c in exercise.criteria}
    refusals = {t.criterion.name for t in trials if t.case.raises is not None}
    values = [c.name for c in exercise.criteria if not c.unchanged and c.name not in refusals]
    nothing_right = all(failing[name] for name in values)
    constant = any(failing.values()) and constant_number(trials) is not None
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
    """Return the verdict on one criterion, which fails in this trial, or holds if that is None.

    ``reason_for_nothing`` says why it earns no points although it holds; "" where it does.
    """
    name, possible = criterion.name, criterion.points
    if trial is None and not reason_for_nothing:
        return CriterionVerdict(name, passed=True, earned=possible, possible=possible)
    failed = CriterionVerdict(name, passed=False, earned=0, possible=possible)
    if trial is None:
        reason = reason_for_nothing
        return replace(failed, message=reason, brief=reason, waits=True)
    problem = problem_of(criterion, trial)
    message = f"{call_text(exercise, trial.case)}\n{problem}"
    return replace(failed, message=message, brief=problem.said)


def first_failing(criterion: Criterion, trials: tuple[Trial, ...]) -> Trial | None:
    """Return the first trial in which a criterion does not hold; None where it holds in all."""
    if criterion.unchanged:
        return next((t for t in trials if t.outcome.mutated), None)
    return next(failing_trials(criterion, trials), None)


def failing_trials(criterion: Criterion, trials: tuple[Trial, ...]) -> Iterator[Trial]:
    """Yield the trials in which a criterion about results does not hold.

    A case that repeats an earlier call asks whether calls in between changed its result. So it
    counts only where the earlier call was right: if it was wrong, another criterion fails for that.
    It is a generator, since looking at ``wrong`` works out the right result of that trial.
    """
    for trial in trials:
        if trial.criterion is criterion and trial.wrong:
            earlier = next((t for t in trials if t.case is trial.case.repeats), None)
            if earlier is None or not earlier.wrong:
                yield trial


def problem_of(criterion: Criterion, trial: Trial) -> Problem:
    """Return what is wrong in a trial that fails a criterion; ``ValueError`` for a right one."""
    if criterion.unchanged:
        sentence = f"changed its argument {trial.outcome.mutated} in place: work on a copy"
        return Problem("value", sentence)
    if trial.problem is None:
        raise ValueError(f"nothing is wrong in this trial of {criterion.name}")
    return trial.problem


# --- a case in words ----------------------------------------------------------------------------


def call_head(exercise: Exercise, case: Case) -> str:
    """Return the call as a student would write it, arrays by name, with the case's note."""
    arguments = named_arguments(exercise, case)
    inline = [n if is_array(v) else f"{n}={value_as_typed(v)}" for n, v in arguments]
    note = f" ({case.note})" if case.note else ""
    return (case.shown or f"{exercise.name}({', '.join(inline)})") + note


def call_in_a_line(exercise: Exercise, case: Case, arguments_follow: bool) -> str:
    """Return the call in one line, with an unusual dtype, and ", where" if arguments follow."""
    head = call_head(exercise, case)
    return head + unusual_dtype(exercise, case, head) + (", where" if arguments_follow else "")


def call_text(exercise: Exercise, case: Case) -> str:
    """Return the call, and its arrays below: small ones in full, large ones by shape."""
    lines = []
    for name, value in named_arguments(exercise, case):
        if is_array(value):
            array = known_numbers(value)
            if 0 < array.size <= MAX_NUMBERS_WRITTEN_OUT:
                lines.append(f"{name} =\n{indented_array(array)}")
            else:
                lines.append(name_with_shape(name, array))
    return "\n".join(
        [call_in_a_line(exercise, case, bool(lines)), *first_lines(lines, MAX_ARRAYS_IN_FULL)]
    )


def name_with_shape(name: str, array: np.ndarray) -> str:
    """Return an array's name and shape, with its dtype unless it is float64."""
    kind = "" if array.dtype == np.float64 else f", {array.dtype}"
    return f"{name} of shape {array.shape}{kind}"


def unusual_dtype(exercise: Exercise, case: Case, named_in: str) -> str:
    """Return ", in <dtype>" for dtypes that the numbers shown would not get when typed in; or "".

    In torch that is float64, in NumPy float32. A dtype named in ``named_in`` is not named again.
    """
    arrays = [value for _, value in named_arguments(exercise, case) if is_array(value)]
    usual_by_dtype = {
        dtype_name(v): default_float_dtype(v) for v in arrays if "float" in dtype_name(v)
    }
    unusual = [
        name for name, usual in usual_by_dtype.items() if name != usual and name not in named_in
    ]
    return f", in {' and '.join(unusual)}" if unusual else ""


def default_float_dtype(value: Any) -> str:
    """Return the dtype that a value's library gives to numbers with a decimal point."""
    torch = sys.modules.get("torch")
    default = torch.get_default_dtype() if torch and is_tensor(value) else np.float64.__name__
    return str(default).removeprefix("torch.")


def first_lines(lines: list[str], most: int = MAX_ARRAYS_IN_EXAMPLE) -> list[str]:
    """Return the first lines and how many more there are: a model has dozens of weights.

    Two more than ``most`` are still returned in full: a line that counts them would save one line.
    """
    return lines if len(lines) <= most + 2 else [*lines[:most], f"{len(lines) - most} more"]


def array_in_a_line(array: np.ndarray) -> str:
    """Return an array's numbers in one line; "" if there are none or too many for it."""
    if not 0 < array.size <= MAX_NUMBERS_WRITTEN_OUT:
        return ""
    text = " ".join(indented_array(array).split()).replace("[ ", "[").replace(" ]", "]")
    return text if len(text) <= MAX_ARRAY_COLUMNS else ""


def trials_due_to(finding: Finding, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """Return the trials that are wrong only until the mistake is mended; all if none are."""
    if finding.shown_by:
        return finding.shown_by
    pairs = zip(trials, finding.mended, strict=True) if finding.mended else ()
    due = tuple(trial for trial, mended in pairs if trial.wrong and not mended.wrong)
    return due or trials


def smallest_example(exercise: Exercise, trials: tuple[Trial, ...]) -> str:
    """Return the smallest failing case in a few lines: call, arrays, result; "" if none fails.

    It is a case of the first failing criterion, since the first criteria have the plainest cases.
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
    lines = [call_in_a_line(exercise, trial.case, bool(arrays))]
    full = [n for n, a in arrays if array_in_a_line(a)][:MAX_ARRAYS_IN_EXAMPLE]
    sizes = [name_with_shape(n, a) for n, a in arrays if n not in full]
    lines += [f"{n} = {array_in_a_line(a)}" for n, a in arrays if n in full]
    if sizes:
        lines.append(", ".join(first_lines(sizes)))
    problem = problem_of(criterion, trial)
    results = (trial.outcome.value, trial.expected.value)
    returned, expected = (
        array_in_a_line(a) if (a := number_array(v)) is not None else "" for v in results
    )
    if problem.detail and returned and expected and returned != expected:
        lines += [f"returned {returned}", f"expected {expected}"]
    else:
        lines.append(problem.said)
    return "\n".join(lines)


def number_array(value: object) -> np.ndarray | None:
    """Return a value's numbers as an array; None for None and for what holds no numbers."""
    return None if value is None else as_numbers(value)


def value_as_typed(value) -> str:
    """Return an argument that is no array as it would be typed: a function by its name."""
    return getattr(value, "__name__", None) or repr(value)


def first_failing_trial(exercise: Exercise, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """Return the first failing criterion's trial, in a tuple; () if all hold.

    A notebook unfolds that criterion, so its picture is drawn of the same trial.
    """
    failing = (first_failing(criterion, trials) for criterion in exercise.criteria)
    return tuple(trial for trial in failing if trial)[:1]


def first_picture(trials: tuple[Trial, ...]) -> Picture | None:
    """Return the first wrong matrix beside the right one, small enough to draw; None without."""
    for trial in trials:
        if trial.wrong and trial.outcome.kind == "value" and trial.case.raises is None:
            returned, expected = (
                number_array(trial.outcome.value),
                number_array(trial.expected.value),
            )
            if returned is None or expected is None:
                continue
            drawable = all(
                a.ndim == 2 and max(a.shape) <= MAX_PICTURE_ROWS for a in (returned, expected)
            )
            if drawable and expected.size > 1:
                return Picture(returned, expected)
    return None
