"""The checks against their banks: every mistake is caught, named and told apart."""

import copy
import importlib
import re
import sys
from functools import partial
from itertools import cycle
from types import FunctionType

import pytest
from drill_making.by_hand import right_answers_by_hand

from attncourse import STEMS
from attncourse.checks import exercises, judging
from attncourse.checks.callers import CALLERS, call_on_function
from attncourse.checks.exercise import Case
from attncourse.checks.explaining import diagnosis
from attncourse.checks.judging import judge, points_of_answer
from attncourse.checks.showing.verdict import KEEPS_HALF, MAX_TEXT_LINES, Verdict, full_sentence
from attncourse.checks.trying import trials
from attncourse.checks.trying.outcome import Outcome
from attncourse.checks.trying.trials import NoReference, draw, try_out
from helpers.project import ROOT

SEEDS = (0, 1, 2)  # what is told holds on further ones, too, which are kept
EXERCISES = exercises()
# What random draws of an answer's own come to is estimated: these criteria are chances, of which
# the text speaks.
ESTIMATED = {"scaling.score_variance", "sequences.bootstrap_interval"}
# Numbers that come near the tolerance (a guard of 1e-9), and answers that draw numbers of their
# own, may win or lose a criterion from one draw to the next: one point, and few of them do.
ALLOWED, SHARE = 1, 0.02
EARNED: dict[tuple[str, str], set[int]] = {}


def answers_with_seeds(answers: list[tuple]) -> list[tuple]:
    """Return (exercise, answer, seed) of each answer: an exercise's take the seeds in turn."""
    turns = {exercise.target: cycle(SEEDS) for exercise, _ in answers}
    return [(exercise, answer, next(turns[exercise.target])) for exercise, answer in answers]


WRONG_ANSWERS = answers_with_seeds([(e, m) for e in EXERCISES.values() for m in e.mistakes])


def right_answers() -> list:
    """Return (exercise, answer, seed) of each right answer in the chapters' test modules.

    And for those in steps, of which drills are made.
    """
    stems = dict.fromkeys(e.stem for e in EXERCISES.values())
    banks = [importlib.import_module(f"test_{stem}").RIGHT for stem in stems]
    banks += [right_answers_by_hand(stem) for stem in stems]
    assert not (unknown := {t for bank in banks for t in bank} - EXERCISES.keys()), (
        f"RIGHT: no {unknown}"
    )
    return answers_with_seeds(
        [(EXERCISES[target], f) for bank in banks for target, fs in bank.items() for f in fs]
    )


RIGHT_ANSWERS = right_answers()


def case_id(value) -> str:
    if isinstance(value, int):
        return str(value)
    return getattr(value, "target", None) or getattr(value, "name", None) or value.__name__


@pytest.mark.parametrize(
    ("exercise", "seed"), [*zip(EXERCISES.values(), cycle(SEEDS))], ids=case_id
)
def test_the_reference_passes_with_full_points(exercise, seed):
    """In each draw the other right answers agree with it, of which there are four at least."""
    verdict = judge(exercise, exercise.reference, seed)
    assert verdict.passed, verdict
    assert verdict.earned == verdict.possible == exercise.points


@pytest.fixture
def cached_trials(monkeypatch):
    """Try an answer once per draw, whoever asks for its outcomes; suspects have their own."""
    known: dict[tuple, tuple] = {}

    def tried(exercise, implementation, seed, among=None):
        if among is not None:
            return try_out(exercise, implementation, seed, among)
        key = exercise, implementation, seed
        if key not in known:
            known[key] = try_out(*key)
        return known[key]

    monkeypatch.setattr(judging, "try_out", tried)


@pytest.mark.usefixtures("cached_trials")
@pytest.mark.parametrize(("exercise", "mistake", "seed"), WRONG_ANSWERS, ids=case_id)
def test_mistake_is_caught_and_named_in_few_lines(
    exercise, mistake, seed, record_property, monkeypatch
):
    """It earns the same points on another seed's cases, too.

    ``benchmarks/points.py`` tries all ways to make it on twenty draws. Its own name holds in every
    draw; a wrong one has to be refuted in one further draw here, and has three in truth.
    """
    monkeypatch.setattr(diagnosis, "N_FURTHER_DRAWS", 1)
    record_property("counted", "mistakes of the banks caught and named")
    verdict = judge(exercise, mistake.wrong, seed)
    assert not verdict.passed
    assert verdict.diagnosis is not None, verdict
    assert verdict.diagnosis.name == mistake.name, (
        "another name: if both do the same in every case, join them by .by, else add a case that "
        "tells them apart"
    )
    lines = str(verdict).splitlines()
    assert len(lines) <= MAX_TEXT_LINES, "\n".join(lines)
    failing = [c.name for c in verdict.criteria if not c.passed and not c.waits]
    assert [name for name in failing if name not in str(verdict)] == []
    assert lines[1] == f"What happened: {full_sentence(mistake.name)}"
    is_paid_for_once(verdict)
    # What is earned hangs on whether any known mistake does the same, which a further draw leaves.
    monkeypatch.setattr(diagnosis, "N_FURTHER_DRAWS", 0)
    if mistake is exercise.mistakes[0]:
        assert points_of_answer(exercise, mistake.wrong, seed) == verdict.earned  # asked why or not
    if exercise.target not in ESTIMATED:
        earned = {verdict.earned, points_of_answer(exercise, mistake.wrong, seed + 1)}
        EARNED[exercise.target, mistake.name] = earned
        assert max(earned) - min(earned) <= ALLOWED


def is_paid_for_once(verdict: Verdict) -> None:
    """Assert that the first criterion a slip breaks is lost, and of the others half at most."""
    failed = [c for c in verdict.criteria if not c.passed]
    assert failed[0].earned == 0
    follows = [c for c in failed if c.follows]
    if any(c.earned for c in failed):
        assert follows == failed[1:]
        assert sum(c.earned for c in follows) == sum(c.possible for c in follows) // 2
        assert KEEPS_HALF in verdict._repr_html_()


def test_an_answer_wrong_on_every_second_draw_is_noticed():
    """An answer that is wrong on every second draw."""
    exercise = EXERCISES["mixing.mix"]

    def lucky(A, X):
        return exercise.reference(A, X) + (A.flat[-1] > 0.35)

    assert len({points_of_answer(exercise, lucky, draw) for draw in range(6)}) > 1
    assert {points_of_answer(exercise, exercise.reference, draw) for draw in range(6)} == {
        exercise.points
    }


@pytest.mark.parametrize(("exercise", "implementation", "seed"), RIGHT_ANSWERS, ids=case_id)
def test_right_answer_passes(exercise, implementation, seed, record_property):
    record_property("counted", "other right answers accepted")
    verdict = judge(exercise, implementation, seed)
    assert verdict.passed, verdict


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=case_id)
def test_callers_of_cases_are_found_by_name_in_a_grader(exercise):
    """They run beside the submission, in a process that gets a name and no code."""
    for _, case, _ in draw(exercise, 0):
        use = case.use.func if isinstance(case.use, partial) else case.use
        assert CALLERS.get(use.__name__) is use, use


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=case_id)
def test_a_function_in_a_case_reveals_no_chapter_code(exercise):
    """A submission may call it with what it likes and look at it: it runs no line of a chapter."""
    ran = set()

    def watch(frame, event, _):
        ran.add(frame.f_code.co_filename)

    def looked_at(*args, **kwargs):
        for f in filter(callable, (*args, *kwargs.values())):
            assert type(f) is FunctionType, f
            assert (f.__name__, vars(f), f.__defaults__) == ("f", {}, None)
            sys.setprofile(watch)
            try:
                f(args[1])
            finally:
                sys.setprofile(None)
        return exercise.reference(*args, **kwargs)

    handed = [case for _, case, _ in draw(exercise, 0) if hands_over_a_function(case)]
    for case in handed:
        args, kwargs = copy.deepcopy((case.args, case.kwargs))  # others draw from its generator
        case.use(looked_at, *args, **kwargs)
    chapters = {str(ROOT / f"attncourse/{stem}.py") for stem in STEMS}
    assert not chapters & ran
    assert bool(ran) == bool(handed)
    assert bool(handed) == (exercise.name in ("is_permutation_equivariant", "leak"))


def hands_over_a_function(case: Case) -> bool:
    """True if a case hands over a function whose argument is the next one."""
    return case.use is call_on_function or any(
        callable(x) and not isinstance(x, type) for x in (*case.args, *case.kwargs.values())
    )


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=case_id)
def test_the_bank_has_enough_mistakes_and_right_answers(exercise):
    names = [m.name for m in exercise.mistakes]
    assert len(set(names)) == len(names) >= 4
    assert len([f for e, f, _ in RIGHT_ANSWERS if e is exercise]) >= 4


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=case_id)
def test_section_is_a_heading_of_the_chapters_page(exercise):
    chapter, heading = re.fullmatch(r"Chapter (\d+), “(.+)”", exercise.section).groups()
    page = ROOT / f"book/{int(chapter):02d}_{exercise.stem}.md"
    assert f"\n## {heading}\n" in page.read_text(encoding="utf-8")


def test_a_reference_that_did_not_answer_is_not_cached(monkeypatch):
    """For example because the machine was suspended during the call."""
    exercise, run = exercises()["mixing.mix"], trials.run

    def late(exercise, implementation, case, **options):
        if implementation is exercise.reference and not late.done:
            late.done = True
            return Outcome("hung")
        return run(exercise, implementation, case, **options)

    late.done = False
    monkeypatch.setattr(trials, "run", late)
    draw.cache_clear()
    with pytest.raises(NoReference, match=r"result of mix could not be worked out .* once more"):
        judge(exercise, exercise.mistakes[0].wrong, 1)
    assert judge(exercise, exercise.reference, 1).passed


@pytest.mark.parametrize("stem", STEMS, ids="{}.all".format)
def test_points_of_wrong_answers_hardly_depend_on_the_draw(stem):
    """It runs last, in the process in which the chapter's mistakes were tried."""
    expected_count = sum(e.stem == stem and e.target not in ESTIMATED for e, *_ in WRONG_ANSWERS)
    earned = {key: points for key, points in EARNED.items() if key[0].startswith(f"{stem}.")}
    if len(earned) < expected_count:
        pytest.skip("asks for all mistakes of the chapter")
    varied = [key for key, points in earned.items() if len(points) > 1]
    assert len(varied) <= max(1, SHARE * len(earned)), varied
