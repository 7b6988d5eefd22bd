"""Follow-ons: answers that are wrong only because they call a wrong one."""

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
REFERENCES = {
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
ASSIGNMENT = Assignment(
    "01_small", read_cells(notebook(*(solution(n, s) for n, s in REFERENCES.items()), *TESTS))
)
FULL_POINTS = {"double": 2, "quad": 5, "eight": 8}
RIGHT_ROWS = """def normalize_rows(A):
    return A / A.sum(axis=-1, keepdims=True)"""
WRONG_DOUBLE = "def double(x):\n    return 3 * x"


def grade_answers(task: Assignment = ASSIGNMENT, before: str = "", **answers: str) -> Report:
    """Return the report on a submission with these answers, and references for the others."""
    cells = [solution(name, answers.get(name, source)) for name, source in REFERENCES.items()]
    data = notebook(*([cell(before)] if before else []), *cells, *TESTS)
    return grade_submission(data, task, limits=Limits(submission=20, cell=4, call=4), seed=5)


def points_by_exercise(report: Report) -> dict[str, float]:
    """Return the sum of each exercise's points in a report."""
    points = dict.fromkeys(FULL_POINTS, 0.0)
    for grade_id, result in report.cells.items():
        points[grade_id.split("_")[1]] += result.points
    return points


HELPER = "def helper(x):\n    return double(x)"
QUAD_THROUGH_HELPER = "def quad(x):\n    return helper(helper(x))"


@pytest.mark.parametrize(
    ("before", "answers", "replaced"),
    [
        ("", {"double": WRONG_DOUBLE}, {"quad": "double", "eight": "double"}),
        ("", {"double": "def double(x:"}, {"quad": "double", "eight": "double"}),
        ("", {"double": "raise NotImplementedError()"}, {"quad": "double", "eight": "double"}),
        (
            HELPER,
            {"double": WRONG_DOUBLE, "quad": QUAD_THROUGH_HELPER},
            {"quad": "double", "eight": "double"},
        ),
        ("", {"quad": "def quad(x):\n    return 5 * x"}, {"eight": "quad"}),
        (
            "",
            {"double": WRONG_DOUBLE, "quad": "def quad(x):\n    return 5 * x"},
            {"eight": "double and quad"},
        ),
    ],
)
def test_a_right_follow_on_earns_its_points(before, answers, replaced):
    report = grade_answers(before=before, **answers)
    wrong = answers.keys() - replaced.keys()
    assert points_by_exercise(report) == {
        n: 0 if n in wrong else full for n, full in FULL_POINTS.items()
    }
    notes = [note for note in report.notes if " is right, given " in note]
    assert notes == [f"{n} is right, given a right {names}" for n, names in replaced.items()]


@pytest.mark.parametrize(
    "answers",
    [
        {"double": WRONG_DOUBLE, "quad": "def quad(x):\n    return double(double(x)) + 1"},
        # The cell binds the replaced answer again.
        {"double": WRONG_DOUBLE, "quad": f"{WRONG_DOUBLE}\n{REFERENCES['quad']}"},
    ],
)
def test_a_wrong_follow_on_earns_nothing(answers):
    report = grade_answers(**answers)
    assert points_by_exercise(report)["double"] == points_by_exercise(report)["quad"] == 0
    assert not any(note.startswith(("double is", "quad is")) for note in report.notes)
    first = "quad calls a wrong double: mend that first"
    assert first in report.notes


@pytest.mark.parametrize("together", [False, True], ids=["cell by cell", "all in one cell"])
def test_answers_are_found_in_cells_without_metadata(together):
    """An editor may keep no metadata, and a student may move code between cells."""
    sources = [WRONG_DOUBLE, REFERENCES["quad"], REFERENCES["eight"]]
    cells = [cell("\n\n".join(sources))] if together else list(map(cell, sources))
    report = grade_submission(
        notebook(*cells, *TESTS), ASSIGNMENT, limits=Limits(submission=20, cell=4, call=4)
    )
    assert points_by_exercise(report) == FULL_POINTS | {"double": 0}
    assert "eight is right, given a right double" in report.notes


def test_a_course_may_give_follow_ons_no_points():
    report = grade_answers(replace(ASSIGNMENT, follow_on=False), double=WRONG_DOUBLE)
    assert points_by_exercise(report) == dict.fromkeys(FULL_POINTS, 0)
    message = "right, given a right double, which earns nothing more in this course"
    assert [report.cells[g].message for g in ("points_quad", "hidden_quad")] == [message, message]
    assert "quad is right, given a right double" in report.notes


# --- an answer that calls a wrong one, and has a slip of its own --------------------------------

WRONG_ROWS = "def normalize_rows(A):\n    return A / 2"
WINDOW_WITH_SLIP = """def window_weights(n, width):
    i = np.arange(n)
    near = np.abs(i[:, None] - i) <= width // 2
    return normalize_rows(near.astype(float))"""  # an even width is not refused


def mixing_with_answers(**answers: str) -> tuple[Assignment, bytes]:
    """Return chapter 2's assignment, and its references handed in, but for these answers."""
    data = (ROOT / "solutions" / "02_mixing" / "02_mixing.ipynb").read_bytes()
    content = json.loads(data)
    for raw_cell in content["cells"]:
        grade_id = raw_cell["metadata"].get("nbgrader", {}).get("grade_id")
        raw_cell["source"] = answers.get(grade_id, raw_cell["source"])
    return Assignment("02_mixing", read_cells(data)), json.dumps(content).encode()


def examine_in_notebook(**answers: str) -> Verdict:
    """Return the verdict on ``window_weights`` in a notebook with these answers."""
    names = {"np": np}
    for source in answers.values():
        exec(source, names)
    return examine("mixing.window_weights", names["window_weights"])


def test_a_slip_beside_a_wrong_call_costs_the_same(tmp_path):
    answers = {"normalize_rows": WRONG_ROWS, "window_weights": WINDOW_WITH_SLIP}
    limits = Limits(submission=30, cell=8, call=8)
    task, data = mixing_with_answers(**answers)
    graded_report = grade_submission(data, task, limits=limits, seed=5)
    own_report = check_cells(tmp_path / "02_mixing.ipynb", data, read_cells(data), limits)
    with_right_rows = examine_in_notebook(**answers | {"normalize_rows": RIGHT_ROWS})
    in_notebook = examine_in_notebook(**answers)
    assert 0 < with_right_rows.earned < with_right_rows.possible
    assert in_notebook.earned == with_right_rows.earned
    assert in_notebook.given == ("normalize_rows",)
    assert own_report.cells["mixing.window_weights"].points == with_right_rows.earned
    cell = graded_report.cells["points_window_weights"]
    assert (cell.points, cell.message) == (with_right_rows.earned, with_right_rows.diagnosis.name)
    verdict = next(v for v in graded_report.verdicts if v["target"] == "mixing.window_weights")
    assert (verdict["mistake"], verdict["given"]) == (
        with_right_rows.diagnosis.name,
        ["normalize_rows"],
    )
    assert f"{with_right_rows.score}, given a right normalize_rows" in verdict["text"]
    note = "window_weights calls a wrong normalize_rows: judged with a right one"
    assert note in graded_report.notes


def test_a_course_may_give_a_follow_on_with_slip_no_points():
    task, data = mixing_with_answers(normalize_rows=WRONG_ROWS, window_weights=WINDOW_WITH_SLIP)
    limits = Limits(submission=30, cell=8, call=8)
    report_without_follow_on = grade_submission(
        data, replace(task, follow_on=False), limits=limits, seed=5
    )
    paid_result = grade_submission(data, task, limits=limits, seed=5).cells["points_window_weights"]
    cell = report_without_follow_on.cells["points_window_weights"]
    assert cell.points < paid_result.points
    score = (
        f"{paid_result.points:g} of {paid_result.maximum:g} points, given a right normalize_rows"
    )
    assert cell.message == f"{score}, which earns nothing more in this course"


def test_a_reference_never_lowers_an_answers_points(tmp_path):
    """The answer corrects the error of the wrong one that it calls."""
    halved_rows = f"{RIGHT_ROWS} / 2"
    answers = {
        "normalize_rows": halved_rows,
        "window_weights": WINDOW_WITH_SLIP.replace("return norm", "return 2 * norm"),
    }
    limits = Limits(submission=30, cell=8, call=8)
    task, data = mixing_with_answers(**answers)
    in_notebook = examine_in_notebook(**answers)
    assert (in_notebook.given, in_notebook.diagnosis.name) == ((), "an even width is accepted")
    own_report = check_cells(tmp_path / "02_mixing.ipynb", data, read_cells(data), limits)
    assert own_report.cells["mixing.window_weights"].points == in_notebook.earned
    cell = grade_submission(data, task, limits=limits, seed=5).cells["points_window_weights"]
    assert cell.points == in_notebook.earned


def reported_verdict(earned: int, mistake: str = "", text: str = "") -> dict:
    """Return a verdict on ``window_weights`` as a report keeps it, every text of it ``text``."""
    exercise = find_exercise("mixing.window_weights")
    passed = [i < earned for i in range(exercise.points)]
    criteria = tuple(
        CriterionVerdict(f"criterion {i}", ok, int(ok), 1, text, text)
        for i, ok in enumerate(passed)
    )
    verdict = Verdict("mixing.window_weights", criteria, 5, example=text, symptom=text)
    diagnosis = {"mistake": mistake, "explanation": text, "rest": text, "worth": 1}
    return describe_verdict(verdict, "points_window_weights") | diagnosis


@pytest.mark.parametrize("mistake", ["", CANARY])
def test_no_text_of_a_process_with_references_is_kept(mistake):
    worth = find_exercise("mixing.window_weights").points
    test_cell = Cell("", grade_id="points_window_weights", grade=True, locked=True, points=worth)
    task = Assignment("02_mixing", (test_cell,))
    first = StepOutcome("number", value=1.0, verdicts=[reported_verdict(1, text="before")])

    def outcomes_with_ours(value: float, row: dict) -> dict:
        second = StepOutcome("number", CANARY, value, verdicts=[row])
        return counted_with_ours({test_cell.grade_id: second}, {test_cell.grade_id: first}, task)

    outcome = outcomes_with_ours(2.0, reported_verdict(2, mistake, CANARY))[test_cell.grade_id]
    assert outcome.value == 2.0
    assert CANARY not in json.dumps(vars(outcome), default=vars)
    assert outcome.verdicts[0]["reason"] == "before"
    assert outcomes_with_ours(1.0, reported_verdict(1, mistake, CANARY)) == {}
    assert outcomes_with_ours(0.0, reported_verdict(0)) == {}
    assert outcomes_with_ours(2.718281828, reported_verdict(2)) == {}  # digits can hold a text
    assert outcomes_with_ours(2.0, reported_verdict(2) | {"variant": "percent"}) == {}
    outcome_of_full_points = outcomes_with_ours(float(worth), reported_verdict(2, mistake, CANARY))
    assert CANARY not in json.dumps(vars(outcome_of_full_points[test_cell.grade_id]), default=vars)


STEALING_ANSWERS = [
    # Tells in an exception what it finds in the reference.
    dedented("""
        def quad(x):
            found = [c for c in double.__code__.co_consts if isinstance(c, str)]
            if found:
                raise ValueError(found)
            return double(double(x))
    """),
    # Tells it in a value of another type, and by printing.
    dedented("""
        def quad(x):
            found = [c for c in double.__code__.co_consts if isinstance(c, str)]
            print(found)
            return found if found else double(double(x))
    """),
    # Writes it to the disk, for a later run to use.
    dedented("""
        import marshal, os
        def quad(x):
            with open('stolen', 'wb') as file:
                file.write(marshal.dumps(double.__code__))
            return double(double(x)) + 1
    """),
]
DOUBLE_FROM_STOLEN = dedented("""
    import marshal, os, types
    def double(x):
        if os.path.exists('stolen'):
            code = marshal.loads(open('stolen', 'rb').read())
            return types.FunctionType(code, globals())(x)
        return 3 * x
""")


@pytest.mark.parametrize("thief", STEALING_ANSWERS)
def test_reading_the_reference_earns_nothing(thief):
    report = grade_answers(double=DOUBLE_FROM_STOLEN, quad=thief)
    assert points_by_exercise(report)["double"] == 0
    assert points_by_exercise(report)["quad"] == 0
    assert CANARY not in json.dumps(to_json(report))


def test_wrong_answers_called_are_found_through_helpers():
    steps = [
        Step("cell double", WRONG_DOUBLE),
        Step("cell 2", "def helper(x):\n    return quad(x)"),
        Step("cell quad", "def quad(x):\n    return 5 * x"),
        Step("cell eight", "def eight(x):\n    return 2 * helper(x)"),
    ]
    everything = ["double", "quad", "eight"]
    assert wrong_answers_called("eight", everything, steps, ASSIGNMENT) == ("double", "quad")
    assert wrong_answers_called("eight", ["quad", "eight"], steps, ASSIGNMENT) == ("quad",)
    assert wrong_answers_called("eight", ["double", "eight"], steps, ASSIGNMENT) == ()
    steps[0] = Step("cell double", "def double(x):\n    return quad(x) / 2")
    assert (
        wrong_answers_called("double", everything, steps, ASSIGNMENT) == ()
    )  # the answer of a later exercise is not given away


@pytest.mark.parametrize(
    ("written", "earns"),
    [("", True), ("c.JudgeExporter.follow_on = False", False)],
)
def test_a_course_sets_what_follow_ons_earn(tmp_path, written, earns):
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{written}\n")
    assert follow_on_earns(tmp_path) is earns


# --- variants: the reference is in another convention than the answer asked for -----------


def fill_variant(stem: str, variant: str, **changed) -> tuple[Assignment, bytes]:
    """Return a chapter's assignment in a variant, and its references with words replaced."""
    path = next(ROOT.glob(f"solutions/*_{stem}/*_{stem}.ipynb"))
    data = notebook_in_variant(path.read_bytes(), variant, path.stem)
    content = json.loads(data)
    for raw_cell in content["cells"]:
        for old, new in changed.get(raw_cell["metadata"].get("nbgrader", {}).get("grade_id"), ()):
            source = "".join(raw_cell["source"])
            assert old in source
            raw_cell["source"] = source.replace(old, new)
    return Assignment(path.stem, read_cells(data)), json.dumps(content).encode()


WITHOUT_NEGATION = ("masked_fill(~mask", "masked_fill(mask")


def test_a_reference_is_adapted_to_the_variant():
    wrong_scale = ("query.shape[-1]", "(query.shape[-2] + 3)")
    task, data = fill_variant(
        "kqv",
        "forbidden",
        scaled_dot_product_attention=[("~mask", "mask"), wrong_scale],
        AttentionHead=[WITHOUT_NEGATION],
    )
    report = grade_submission(data, task, limits=Limits(submission=60, cell=8, call=8), seed=5)
    assert "AttentionHead is right, given a right scaled_dot_product_attention" in report.notes
    results = [c for grade_id, c in report.cells.items() if grade_id.endswith("_AttentionHead")]
    assert [c.message for c in results] == ["", ""]


DEFINITIONS = ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef


def test_calling_the_packages_function_earns_nothing():
    """``causal_mean_weights`` hands on what ``normalize_rows`` returns, whatever its unit."""
    task, data = fill_variant("mixing", "percent")
    report = grade_submission(data, task, limits=Limits(submission=60, cell=8, call=8), seed=5)
    assert sum(c.points for c in report.cells.values()) == 7  # is_row_stochastic is as it was
    assert not any("given a right" in note for note in report.notes)


def test_a_convention_without_a_name_has_no_reference(monkeypatch):
    task, _ = fill_variant("mixing", "percent")
    assert "normalize_rows" in cell_with_our_answer("normalize_rows", task)
    monkeypatch.setattr("attncourse.checks.variants.adapter.NOTATIONS", {})
    assert cell_with_our_answer("normalize_rows", task) == ""
    assert (
        steps_with_ours("mix", ("normalize_rows",), [Step("cell normalize_rows", "")], task) == []
    )


ANSWERS_OF_VARIANTS = [(s, v.name, n) for s in STEMS for v in variants_of(s) for n in v.adapters]


@pytest.mark.parametrize(("stem", "variant", "name"), ANSWERS_OF_VARIANTS)
def test_every_reference_is_right_in_its_variant(stem, variant, name):
    """The cell with our answer runs as text in a namespace without the course's checks."""
    task, _ = fill_variant(stem, variant)
    namespace = {"__name__": "__main__"}
    for raw_cell in task.cells:
        if raw_cell.code and raw_cell.grade_id not in task.graded:
            body = [n for n in ast.parse(raw_cell.source).body if isinstance(n, DEFINITIONS)]
            exec(compile(ast.Module(body, []), "<given>", "exec"), namespace)
    names = {n for s, v, n in ANSWERS_OF_VARIANTS if (s, v) == (stem, variant)}
    namespace |= dict.fromkeys(names)
    exec(cell_with_our_answer(name, task), namespace)
    verdict = judge(find_exercise(f"{stem}.{name}", variant), namespace[name], 5)
    assert verdict.passed, verdict


def test_a_missing_library_is_the_headline():
    """The missing library is the cause, so it replaces the name that is not defined."""
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
