"""Answers that are wrong only because they call a wrong one: right, given a right one."""

import ast
import json
from dataclasses import replace

import numpy as np
import pytest

from attncourse import STEMS
from attncourse.checks import examine, find_exercise, variants_of
from attncourse.checks.judging import judge
from attncourse.checks.showing.verdict import CriterionVerdict, Verdict
from attncourse.checks.trying.unavailable import FILE_ABSENT
from attncourse.grading.course.settings import follow_on_earns
from attncourse.grading.judge import missing_names
from attncourse.grading.judge.carried_errors import (
    cell_with_our_answer,
    steps_with_ours,
    wrong_answers_called,
)
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.outcomes import StepOutcome, describe_verdict
from attncourse.grading.judge.points_with_ours import counted_with_ours
from attncourse.grading.limits import Limits
from attncourse.grading.report import Report, to_json
from attncourse.grading.student.selfcheck import check_cells
from attncourse.grading.submission.notebook import Assignment, Cell, read_cells
from attncourse.grading.submission.plan import Step
from attncourse.grading.submission.varied import notebook_in_variant
from helpers.dedented_text import dedented
from helpers.project import ROOT
from helpers.small_course import cell, graded, notebook, solution

CANARY = "canary-5512"
OURS = {
    "double": f'def double(x):\n    kind = "{CANARY}"\n    return 2 * x',
    "quad": "def quad(x):\n    return double(double(x))",
    "eight": "def eight(x):\n    return double(quad(x))",
}
TESTS = (
    graded("points_double", "2 * (double(3) == 6)", 2),
    graded("points_quad", "4 * (quad(3) == 12)", 4),
    graded(
        "hidden_quad",
        "### BEGIN HIDDEN TESTS\nassert quad(5) == 20, 'four times'\n### END HIDDEN TESTS",
        1,
    ),
    graded("points_eight", "8 * (eight(3) == 24)", 8),
)
TASK = Assignment(
    "01_small", read_cells(notebook(*(solution(n, s) for n, s in OURS.items()), *TESTS))
)
FULL = {"double": 2, "quad": 5, "eight": 8}
OURS_ROWS = """def normalize_rows(A):
    return A / A.sum(axis=-1, keepdims=True)"""
TRIPLE = "def double(x):\n    return 3 * x"


def judged(task: Assignment = TASK, before: str = "", **answers: str) -> Report:
    """The report on a submission with these answers, and ours for the others."""
    cells = [solution(name, answers.get(name, source)) for name, source in OURS.items()]
    data = notebook(*([cell(before)] if before else []), *cells, *TESTS)
    return grade_submission(data, task, limits=Limits(submission=20, cell=4, call=4), seed=5)


def earned(report: Report) -> dict[str, float]:
    found = dict.fromkeys(FULL, 0.0)
    for grade_id, result in report.cells.items():
        found[grade_id.split("_")[1]] += result.points
    return found


HELPER = "def helper(x):\n    return double(x)"
THROUGH = "def quad(x):\n    return helper(helper(x))"


@pytest.mark.parametrize(
    ("before", "answers", "given"),
    [
        ("", {"double": TRIPLE}, {"quad": "double", "eight": "double"}),
        ("", {"double": "def double(x:"}, {"quad": "double", "eight": "double"}),
        ("", {"double": "raise NotImplementedError()"}, {"quad": "double", "eight": "double"}),
        (HELPER, {"double": TRIPLE, "quad": THROUGH}, {"quad": "double", "eight": "double"}),
        ("", {"quad": "def quad(x):\n    return 5 * x"}, {"eight": "quad"}),
        (
            "",
            {"double": TRIPLE, "quad": "def quad(x):\n    return 5 * x"},
            {"eight": "double and quad"},
        ),
    ],
)
def test_what_is_right_given_a_right_one_earns(before, answers, given):
    report = judged(before=before, **answers)
    wrong = answers.keys() - given.keys()
    assert earned(report) == {n: 0 if n in wrong else full for n, full in FULL.items()}
    told = [note for note in report.notes if " is right, given " in note]
    assert told == [f"{n} is right, given a right {which}" for n, which in given.items()]


@pytest.mark.parametrize(
    "answers",
    [
        {"double": TRIPLE, "quad": "def quad(x):\n    return double(double(x)) + 1"},
        # What is exchanged is bound anew.
        {"double": TRIPLE, "quad": f"{TRIPLE}\n{OURS['quad']}"},
    ],
)
def test_what_is_wrong_all_the_same_earns_nothing(answers):
    report = judged(**answers)
    assert earned(report)["double"] == earned(report)["quad"] == 0
    assert not any(note.startswith(("double is", "quad is")) for note in report.notes)
    first = "quad calls a wrong double: mend that first"
    assert first in report.notes


@pytest.mark.parametrize("together", [False, True], ids=["cell by cell", "all in one cell"])
def test_answers_are_found_in_cells_that_have_lost_their_names(together):
    """As from an editor that keeps no metadata, or by a student who moves code about."""
    sources = [TRIPLE, OURS["quad"], OURS["eight"]]
    cells = [cell("\n\n".join(sources))] if together else list(map(cell, sources))
    report = grade_submission(
        notebook(*cells, *TESTS), TASK, limits=Limits(submission=20, cell=4, call=4)
    )
    assert earned(report) == FULL | {"double": 0}
    assert "eight is right, given a right double" in report.notes


def test_a_course_may_have_it_earn_nothing():
    report = judged(replace(TASK, follow_on=False), double=TRIPLE)
    assert earned(report) == dict.fromkeys(FULL, 0)
    told = "right, given a right double, which earns nothing more in this course"
    assert [report.cells[g].message for g in ("points_quad", "hidden_quad")] == [told, told]
    assert "quad is right, given a right double" in report.notes


# --- an answer that calls a wrong one, and has a slip of its own ----------------------------------

WRONG_ROWS = "def normalize_rows(A):\n    return A / 2"
SLIP = """def window_weights(n, width):
    i = np.arange(n)
    near = np.abs(i[:, None] - i) <= width // 2
    return normalize_rows(near.astype(float))"""  # an even width is not refused


def mixing_with_answers(**answers: str) -> tuple[Assignment, bytes]:
    """The published assignment of chapter 2, and ours handed in, but for these answers."""
    data = (ROOT / "solutions" / "02_mixing" / "02_mixing.ipynb").read_bytes()
    book = json.loads(data)
    for one in book["cells"]:
        grade_id = one["metadata"].get("nbgrader", {}).get("grade_id")
        one["source"] = answers.get(grade_id, one["source"])
    return Assignment("02_mixing", read_cells(data)), json.dumps(book).encode()


def in_the_kernel(**answers: str) -> Verdict:
    """What ``examine`` says of ``window_weights`` in a notebook with these answers."""
    names = {"np": np}
    for source in answers.values():
        exec(source, names)
    return examine("mixing.window_weights", names["window_weights"])


def test_a_slip_beside_a_wrong_call_costs_the_same_everywhere(tmp_path):
    answers = {"normalize_rows": WRONG_ROWS, "window_weights": SLIP}
    limits = Limits(submission=30, cell=8, call=8)
    task, data = mixing_with_answers(**answers)
    graded_report = grade_submission(data, task, limits=limits, seed=5)
    own = check_cells(tmp_path / "02_mixing.ipynb", data, read_cells(data), limits)
    alone = in_the_kernel(**answers | {"normalize_rows": OURS_ROWS})
    there = in_the_kernel(**answers)
    assert 0 < alone.earned < alone.possible
    assert there.earned == alone.earned
    assert there.given == ("normalize_rows",)
    assert own.cells["mixing.window_weights"].points == alone.earned
    cell = graded_report.cells["points_window_weights"]
    assert (cell.points, cell.message) == (alone.earned, alone.diagnosis.name)
    verdict = next(v for v in graded_report.verdicts if v["target"] == "mixing.window_weights")
    assert (verdict["mistake"], verdict["given"]) == (alone.diagnosis.name, ["normalize_rows"])
    assert f"{alone.score}, given a right normalize_rows" in verdict["text"]
    note = "window_weights calls a wrong normalize_rows: judged with a right one"
    assert note in graded_report.notes


def test_a_course_may_have_a_follow_on_earn_nothing():
    task, data = mixing_with_answers(normalize_rows=WRONG_ROWS, window_weights=SLIP)
    limits = Limits(submission=30, cell=8, call=8)
    strict = grade_submission(data, replace(task, follow_on=False), limits=limits, seed=5)
    paid = grade_submission(data, task, limits=limits, seed=5).cells["points_window_weights"]
    cell = strict.cells["points_window_weights"]
    assert cell.points < paid.points
    score = f"{paid.points:g} of {paid.maximum:g} points, given a right normalize_rows"
    assert cell.message == f"{score}, which earns nothing more in this course"


def test_ours_never_lowers_what_an_answer_earns(tmp_path):
    """This one makes up for the wrong one that it calls."""
    halved = f"{OURS_ROWS} / 2"
    answers = {
        "normalize_rows": halved,
        "window_weights": SLIP.replace("return norm", "return 2 * norm"),
    }
    limits = Limits(submission=30, cell=8, call=8)
    task, data = mixing_with_answers(**answers)
    there = in_the_kernel(**answers)
    assert (there.given, there.diagnosis.name) == ((), "an even width is accepted")
    own = check_cells(tmp_path / "02_mixing.ipynb", data, read_cells(data), limits)
    assert own.cells["mixing.window_weights"].points == there.earned
    cell = grade_submission(data, task, limits=limits, seed=5).cells["points_window_weights"]
    assert cell.points == there.earned


def verdict_row(earned: int, mistake: str = "", text: str = "") -> dict:
    """A verdict on ``window_weights`` as a report keeps it, every text of it ``text``."""
    exercise = find_exercise("mixing.window_weights")
    passed = [i < earned for i in range(exercise.points)]
    criteria = tuple(
        CriterionVerdict(f"criterion {i}", ok, int(ok), 1, text, text)
        for i, ok in enumerate(passed)
    )
    verdict = Verdict("mixing.window_weights", criteria, 5, example=text, symptom=text)
    told = {"mistake": mistake, "explanation": text, "rest": text, "worth": 1}
    return describe_verdict(verdict, "points_window_weights") | told


@pytest.mark.parametrize("mistake", ["", CANARY])
def test_of_a_process_that_held_ours_no_text_is_kept(mistake):
    worth = find_exercise("mixing.window_weights").points
    tested = Cell("", grade_id="points_window_weights", grade=True, locked=True, points=worth)
    task = Assignment("02_mixing", (tested,))
    first = StepOutcome("number", value=1.0, verdicts=[verdict_row(1, text="before")])

    def counted(value: float, row: dict) -> dict:
        second = StepOutcome("number", CANARY, value, verdicts=[row])
        return counted_with_ours({tested.grade_id: second}, {tested.grade_id: first}, task)

    kept = counted(2.0, verdict_row(2, mistake, CANARY))[tested.grade_id]
    assert kept.value == 2.0
    assert CANARY not in json.dumps(vars(kept), default=vars)
    assert kept.verdicts[0]["reason"] == "before"
    assert counted(1.0, verdict_row(1, mistake, CANARY)) == {}
    assert counted(0.0, verdict_row(0)) == {}
    assert counted(2.718281828, verdict_row(2)) == {}  # digits can hold a text
    assert counted(2.0, verdict_row(2) | {"variant": "percent"}) == {}
    full = counted(float(worth), verdict_row(2, mistake, CANARY))
    assert CANARY not in json.dumps(vars(full[tested.grade_id]), default=vars)


THIEVES = [
    # Tells what it finds in the exchanged answer, in an exception.
    dedented("""
        def quad(x):
            found = [c for c in double.__code__.co_consts if isinstance(c, str)]
            if found:
                raise ValueError(found)
            return double(double(x))
    """),
    # In a value of another type, and on the screen.
    dedented("""
        def quad(x):
            found = [c for c in double.__code__.co_consts if isinstance(c, str)]
            print(found)
            return found if found else double(double(x))
    """),
    # In what it leaves on the disk, for whatever runs later to be right with.
    dedented("""
        import marshal, os
        def quad(x):
            with open('stolen', 'wb') as file:
                file.write(marshal.dumps(double.__code__))
            return double(double(x)) + 1
    """),
]
LOOKS = dedented("""
    import marshal, os, types
    def double(x):
        if os.path.exists('stolen'):
            code = marshal.loads(open('stolen', 'rb').read())
            return types.FunctionType(code, globals())(x)
        return 3 * x
""")


@pytest.mark.parametrize("thief", THIEVES)
def test_reading_our_answer_earns_nothing(thief):
    report = judged(double=LOOKS, quad=thief)
    assert earned(report)["double"] == 0
    assert earned(report)["quad"] == 0
    assert CANARY not in json.dumps(to_json(report))


def test_what_an_answer_calls_is_found_through_helpers_and_ours():
    steps = [
        Step("cell double", TRIPLE),
        Step("cell 2", "def helper(x):\n    return quad(x)"),
        Step("cell quad", "def quad(x):\n    return 5 * x"),
        Step("cell eight", "def eight(x):\n    return 2 * helper(x)"),
    ]
    everything = ["double", "quad", "eight"]
    assert wrong_answers_called("eight", everything, steps, TASK) == ("double", "quad")
    assert wrong_answers_called("eight", ["quad", "eight"], steps, TASK) == ("quad",)
    assert wrong_answers_called("eight", ["double", "eight"], steps, TASK) == ()
    steps[0] = Step("cell double", "def double(x):\n    return quad(x) / 2")
    assert (
        wrong_answers_called("double", everything, steps, TASK) == ()
    )  # a later exercise's is not shown


@pytest.mark.parametrize(
    ("written", "earns"),
    [("", True), ("c.JudgeExporter.follow_on = False", False)],
)
def test_the_setting_is_the_courses(tmp_path, written, earns):
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{written}\n")
    assert follow_on_earns(tmp_path) is earns


# --- variants: ours is published in another convention than the one asked for ---------------------


def fill_variant(stem: str, variant: str, **changed) -> tuple[Assignment, bytes]:
    """A chapter's assignment in a variant; ours handed in, but for what replaces words of it."""
    path = next(ROOT.glob(f"solutions/*_{stem}/*_{stem}.ipynb"))
    data = notebook_in_variant(path.read_bytes(), variant, path.stem)
    book = json.loads(data)
    for one in book["cells"]:
        for old, new in changed.get(one["metadata"].get("nbgrader", {}).get("grade_id"), ()):
            source = "".join(one["source"])
            assert old in source
            one["source"] = source.replace(old, new)
    return Assignment(path.stem, read_cells(data)), json.dumps(book).encode()


FORBIDDEN = ("masked_fill(~mask", "masked_fill(mask")


def test_in_a_variant_ours_is_given_as_the_variant_asks_for_it():
    wrong = ("query.shape[-1]", "(query.shape[-2] + 3)")
    task, data = fill_variant(
        "kqv",
        "forbidden",
        scaled_dot_product_attention=[("~mask", "mask"), wrong],
        AttentionHead=[FORBIDDEN],
    )
    report = grade_submission(data, task, limits=Limits(submission=60, cell=8, call=8), seed=5)
    assert "AttentionHead is right, given a right scaled_dot_product_attention" in report.notes
    own = [c for grade_id, c in report.cells.items() if grade_id.endswith("_AttentionHead")]
    assert [c.message for c in own] == ["", ""]


DEFINITIONS = ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef


def test_calling_our_function_earns_nothing_in_a_variant():
    """``causal_mean_weights`` hands on what ``normalize_rows`` returns, whatever its unit."""
    task, data = fill_variant("mixing", "percent")
    report = grade_submission(data, task, limits=Limits(submission=60, cell=8, call=8), seed=5)
    assert sum(c.points for c in report.cells.values()) == 7  # is_row_stochastic is as it was
    assert not any("given a right" in note for note in report.notes)


def test_a_convention_without_a_name_has_no_answer_of_ours(monkeypatch):
    task, _ = fill_variant("mixing", "percent")
    assert "normalize_rows" in cell_with_our_answer("normalize_rows", task)
    monkeypatch.setattr("attncourse.checks.variants.adapter.NOTATIONS", {})
    assert cell_with_our_answer("normalize_rows", task) == ""
    assert (
        steps_with_ours("mix", ("normalize_rows",), [Step("cell normalize_rows", "")], task) == []
    )


EVERY = [(s, v.name, n) for s in STEMS for v in variants_of(s) for n in v.adapters]


@pytest.mark.parametrize(("stem", "variant", "name"), EVERY)
def test_what_is_given_is_right_in_every_variant(stem, variant, name):
    """It is text alone, run where there may be wrong answers before it, and none of the checks."""
    task, _ = fill_variant(stem, variant)
    namespace = {"__name__": "__main__"}
    for one in task.cells:
        if one.code and one.grade_id not in task.graded:
            body = [n for n in ast.parse(one.source).body if isinstance(n, DEFINITIONS)]
            exec(compile(ast.Module(body, []), "<given>", "exec"), namespace)
    asked = {n for s, v, n in EVERY if (s, v) == (stem, variant)}
    namespace |= dict.fromkeys(asked)
    exec(cell_with_our_answer(name, task), namespace)
    verdict = judge(find_exercise(f"{stem}.{name}", variant), namespace[name], 5)
    assert verdict.passed, verdict


def test_a_library_that_the_grader_lacks_is_the_headline():
    """What stands above the fold is read: that a name is not defined is what came of it."""
    sentence = f"`einops` {FILE_ABSENT}"
    undefined = "raised NameError: name 'rearrange' is not defined"
    verdict = {
        "reason": undefined,
        "criteria": [{"name": "values", "message": undefined}],
        "symptom": "",
        "mistake": "`rearrange` is not defined",
        "explanation": "What comes from a library is imported first.",
        "text": "What happened: `rearrange` is not defined.\nWhat comes from a library is imported "
        f"first.\n    {undefined}",
    }
    explained = missing_names.explained_verdict(verdict, {"rearrange": sentence})
    headline, _, explanation = sentence.partition(": ")
    assert (explained["mistake"], explained["explanation"]) == (headline, explanation)
    assert explained["criteria"][0]["message"] == explained["reason"] == sentence
    assert explained["text"].startswith(f"What happened: {headline}.\n{explanation}\n")
    assert "not defined" not in explained["text"]
    assert missing_names.explained_verdict(verdict, {"repeat": sentence}) is verdict
