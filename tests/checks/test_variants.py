"""Variants of exercises: judged like what they are made of, and published answers do not fit."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import nbformat
import numpy as np
import pytest
import torch
from course import load

from attncourse import STEMS, lookup
from attncourse.checks import examine, find_exercise, variants_of
from attncourse.checks.exercise import parts_of
from attncourse.checks.explaining import diagnosis
from attncourse.checks.judging import judge
from attncourse.checks.trying.trials import trials_of
from attncourse.checks.variants.adapter import Adapter, adapted_implementation
from attncourse.checks.variants.conventions import FORBIDDEN
from attncourse.checks.variants.rewriting import BITS, COLUMNS, NEGATED, PERCENT
from attncourse.grading.course.variants import (
    VARIANTS_FILE,
    choose_variant,
    solved_in_variant,
    variants_in,
)
from attncourse.grading.demo import fill_solution_cells
from attncourse.grading.errors import UserError
from attncourse.grading.limits import Limits
from attncourse.grading.student.selfcheck import check_file
from attncourse.grading.submission.notebook import HIDDEN_TESTS_MARK
from attncourse.grading.submission.varied import CALL, OTHER, notebook_in_variant, other_variant
from exercises import released
from helpers.project import ROOT

SEED = 20261123
LEAK_EXERCISE = find_exercise("masking.leak")
FOLDERS = {stem: f"{number:02d}_{stem}" for number, stem in enumerate(STEMS, start=1)}
VARIANTS = [(stem, variant) for stem in STEMS for variant in variants_of(stem)]
VARIED_EXERCISES = [
    (find_exercise(f"{s}.{case_id}", v.name), v) for s, v in VARIANTS for case_id in v.adapters
]


def case_id(value) -> str:
    return getattr(value, "target", None) or getattr(value, "name", "")


def right_answers(exercise) -> list:
    """Return the right answers to the published exercise in the chapter's test module."""
    return importlib.import_module(f"test_{exercise.stem}").RIGHT[exercise.target]


def solved_notebook(stem: str) -> bytes:
    return (ROOT / "solutions" / FOLDERS[stem] / f"{FOLDERS[stem]}.ipynb").read_bytes()


def sources(data: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(data)["cells"]]


# --- the checks -----------------------------------------------------------------------------------


def test_every_chapter_from_the_second_on_has_a_variant():
    assert [stem for stem in STEMS if not variants_of(stem)] == ["tokens"]


@pytest.mark.parametrize(("exercise", "variant"), VARIED_EXERCISES, ids=case_id)
def test_right_answers_written_in_the_variant_pass(exercise, variant):
    adapter = variant.adapters[exercise.name]
    assert judge(exercise, exercise.reference, SEED).passed
    for answer in right_answers(exercise):
        verdict = judge(exercise, adapted_implementation(answer, adapter, exercise.published), SEED)
        assert verdict.passed, verdict


@pytest.mark.parametrize(("exercise", "variant"), VARIED_EXERCISES, ids=case_id)
def test_published_answers_fail_with_an_explanation(exercise, variant):
    for answer in (exercise.published.reference, *right_answers(exercise)[:2]):  # more take minutes
        verdict = judge(exercise, answer, SEED)
        assert verdict.earned < verdict.possible
        assert verdict.diagnosis.name == variant.published, verdict
        assert verdict.diagnosis.explanation == variant.explanation


@pytest.mark.parametrize(("exercise", "variant"), VARIED_EXERCISES, ids=case_id)
def test_mistakes_made_in_the_variant_are_caught(exercise, variant):
    adapter = variant.adapters[exercise.name]
    expected_names = {m.name for m in exercise.published.mistakes} - set(adapter.drops)
    assert {m.name for m in exercise.mistakes} == expected_names | {variant.published}
    mistakes = exercise.mistakes[:: 6 if adapter.methods else 1]  # modules are slow
    for mistake in mistakes:
        if mistake.wrong is not None:
            assert any(t.stands_out for t in trials_of(exercise, mistake.wrong, SEED)), mistake.name


# All of them take minutes, and are named in the published convention, by the same search.
VARIED_MISTAKES = [(e, m) for e, _ in VARIED_EXERCISES for m in e.mistakes if m.wrong is not None][
    ::16
]


@pytest.mark.parametrize(("exercise", "mistake"), VARIED_MISTAKES, ids=case_id)
def test_mistakes_made_in_the_variant_are_named(exercise, mistake, monkeypatch):
    monkeypatch.setattr(diagnosis, "N_FURTHER_DRAWS", 1)  # enough to refute a wrong name
    assert judge(exercise, mistake.wrong, SEED).diagnosis.name == mistake.name


def test_two_mistakes_at_once_are_found_in_a_variant():
    exercise = find_exercise("positions.apply_rope", "halves")
    names = {"turned the other way", "the slowest pair first"}
    parts = [parts_of(m.wrong) for m in exercise.mistakes if m.name in names]
    both = parts[0].compose(**parts[0].chosen, **parts[1].chosen)
    verdict = judge(exercise, both, SEED)
    assert {verdict.diagnosis.name, verdict.rest} == names


def test_a_published_answer_that_refuses_gets_an_explanation():
    def soft_lookup(query, keys, values, temperature=1.0):
        assert query.shape[-1] == keys.shape[-1], "as wide as the keys"
        return lookup.soft_lookup(query, keys, values, temperature)

    verdict = examine("lookup.soft_lookup", soft_lookup, SEED, "columns")
    assert verdict.diagnosis.name == "keys are columns here"


def test_explanations_are_worded_for_the_variant():
    exercise = find_exercise("masking.masked_softmax", "forbidden")
    ignored = next(m for m in exercise.mistakes if m.name == "the mask is ignored")
    assert "Scores where it is True become −∞" in ignored.explanation
    verdict = judge(exercise, ignored.wrong, SEED)
    assert ignored.explanation in str(verdict)


def test_in_place_changes_reach_the_students_own_arguments():
    def fill(x, mask):
        x += 1
        mask |= x > 0
        return mask

    filled = adapted_implementation(
        fill, Adapter({"mask": NEGATED}), replace(LEAK_EXERCISE, reference=fill)
    )
    for array in (np.array, torch.tensor):
        x, mask = array([-3.0, 1.0, -2.0]), array([False, True, True])
        assert filled(x, mask=mask).tolist() == [True, True, False]
        assert mask.tolist() == [False, False, True]  # the second is allowed now
        assert x.tolist() == [-2, 2, -1]


@pytest.mark.parametrize("change", [NEGATED, COLUMNS, PERCENT, BITS])
def test_a_chosen_variant_is_saved_and_read_back(change):
    for value in (np.arange(6).reshape(2, 3), torch.rand(2, 2, 3), np.array([[True, False]])):
        if value.dtype in (bool, torch.bool) or change is not NEGATED:
            back = change.read(change.write(value))
            assert np.allclose(back, value)
            assert change in (NEGATED, COLUMNS) or change.write(value).shape == value.shape
    assert PERCENT.write(np.array([1, 2])).dtype == PERCENT.read(np.array([100])).dtype == int


def test_the_verdict_can_be_repeated():
    exercise = find_exercise("gpt.perplexity", "bits")
    verdict = examine("gpt.perplexity", exercise.reference, seed=3, variant="bits")
    assert verdict.repeating_call == 'examine("gpt.perplexity", perplexity, seed=3, variant="bits")'
    assert examine("gpt.perplexity", exercise.reference, seed=3, variant="bits") == verdict


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="has no variant 'halved'; it has halves"):
        examine("positions.apply_rope", None, variant="halved")
    with pytest.raises(ValueError, match="has no variant 'halves'; it has none"):
        examine("positions.alibi_bias", None, variant="halves")


# --- the notebook ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("stem", "variant"), VARIANTS, ids=case_id)
def test_every_reworded_text_occurs_in_the_course(stem, variant):
    exercises = [find_exercise(f"{stem}.{name}") for name in variant.adapters]
    texts = sources(solved_notebook(stem))
    texts += [m.explanation for e in exercises for m in e.mistakes]
    texts += [c.name for e in exercises for c in e.criteria]
    reworded = [old for old, _ in variant.reworded if (old, _) not in FORBIDDEN]
    assert [old for old in reworded if not any(old in words for words in texts)] == []


@pytest.mark.parametrize(("stem", "variant"), VARIANTS, ids=case_id)
def test_the_assignment_asks_for_the_variant(stem, variant):
    before = sources(solved_notebook(stem))
    data = notebook_in_variant(solved_notebook(stem), variant.name, FOLDERS[stem])
    nbformat.validate(nbformat.reads(data.decode(), as_version=4))
    after = sources(data)
    assert len(after) == len(before)
    assert sum(variant.sentence in words for words in after) == len(variant.adapters)
    for words in after:
        for call in CALL.finditer(words):
            variant_name = variant.name if call[4] in variant.adapters else None
            assert call[6] == variant_name, words
    for old, new in zip(before, after, strict=True):
        uses = set(re.findall(r"\w+", old)) & variant.adapters.keys()
        if HIDDEN_TESTS_MARK in old:
            assert ("examine(" in new) if uses else old == new


def test_a_variant_has_no_badge_and_is_named_in_the_report():
    published = solved_notebook("positions")
    varied = notebook_in_variant(published, "halves", "11_positions")
    assert "colab-badge" in sources(published)[0]
    assert "colab" not in sources(varied)[0]
    variant_cells, published_cells = sources(varied), sources(published)
    assert (
        other_variant(variant_cells, variant_cells)
        == other_variant(published_cells, published_cells)
        == []
    )
    published_words, halves = "the published one", "the variant halves"
    assert other_variant(published_cells, variant_cells) == [
        f"{OTHER}: {published_words} in place of {halves}; it is graded as {halves}"
    ]
    assert other_variant(variant_cells, published_cells) == [
        f"{OTHER}: {halves} in place of {published_words}; it is graded as {published_words}"
    ]
    assert other_variant(["def f(): pass"], variant_cells) == []  # an answer alone says nothing


def test_the_first_exercise_names_the_variant_handed_in():
    """In the assignment's order: a set's would differ from one process to the next."""
    stems = [f"kqv.f{i}" for i in range(8)]
    asked_for = [f'check("{stem}", f)' for stem in stems]
    handed_in = [f'check("{stem}", f, variant="{stem[-2:]}{v}")' for stem in stems for v in "cba"]
    assert other_variant(handed_in[::-1], asked_for) == [
        f"{OTHER}: the variant f0a in place of the published one; it is graded as the published one"
    ]


def test_texts_of_other_exercises_stay():
    text = "\n".join(
        sources(notebook_in_variant(solved_notebook("mixing"), "percent", "02_mixing"))
    )
    assert "whose rows sum to 1 is called *row-stochastic*" in text
    assert "whether its rows sum to 100 is not" in text
    assert "10000" not in text


@pytest.mark.parametrize(("stem", "variant"), VARIANTS, ids=case_id)
def test_the_instructors_page_says_what_published_answers_keep(stem, variant):
    page = (ROOT / "book/instructors.md").read_text(encoding="utf-8")
    row = re.search(
        rf"^\| {STEMS.index(stem) + 1} \| `{variant.name}` \| .* \| (\d+) of (\d+) \|$", page, re.M
    )
    exercises = [find_exercise(f"{stem}.{name}", variant.name) for name in variant.adapters]
    verdicts = [judge(exercise, exercise.published.reference, SEED) for exercise in exercises]
    points = sum(v.earned for v in verdicts), sum(v.possible for v in verdicts)
    assert tuple(map(int, row.groups())) == points


# --- the course -----------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path):
    place = tmp_path / "solutions" / "02_mixing"
    place.mkdir(parents=True)
    (place / "02_mixing.ipynb").write_bytes(solved_notebook("mixing"))
    (tmp_path / "nbgrader_config.py").write_bytes((ROOT / "nbgrader_config.py").read_bytes())
    return tmp_path


def test_the_variant_is_recorded_and_taken_back(course):
    path = course / "solutions/02_mixing/02_mixing.ipynb"
    assert solved_in_variant(course, path) == path.read_bytes()
    choose_variant(course, "02_mixing", "percent")
    choose_variant(course, "02_mixing", "percent")
    assert variants_in(course) == {"02_mixing": "percent"}
    assert solved_in_variant(course, path) == notebook_in_variant(
        path.read_bytes(), "percent", "02_mixing"
    )
    choose_variant(course, "02_mixing", "published")
    assert variants_in(course) == {}
    assert solved_in_variant(course, path) == path.read_bytes()


def test_submissions_are_not_graded_as_another_variant(course):
    choose_variant(course, "02_mixing", "percent")
    (course / "submitted/ana/02_mixing").mkdir(parents=True)
    choose_variant(course, "02_mixing", "percent")
    message = r"02_mixing was handed in as percent by 1 student, and would"
    with pytest.raises(UserError, match=message):
        choose_variant(course, "02_mixing", "published")
    assert variants_in(course) == {"02_mixing": "percent"}


def test_a_faulty_variant_is_refused_in_one_line(course):
    with pytest.raises(UserError, match=r"02_mixing has no variant halves: it has percent$"):
        choose_variant(course, "02_mixing", "halves")
    assert not (course / VARIANTS_FILE).exists()
    (course / VARIANTS_FILE).write_text('"02_mixing" = percent')
    with pytest.raises(UserError, match=rf"cannot read .*{VARIANTS_FILE}: .*mend it or delete it"):
        variants_in(course)
    (course / VARIANTS_FILE).write_text('"02_mixing" = 3')
    with pytest.raises(UserError, match=r"expected a variant's name for 02_mixing, .*got 3$"):
        variants_in(course)


RIGHT_PERCENT_ANSWERS = {
    "mix": "def mix(A, X):\n    return A @ X / 100",
    "normalize_rows": """\
def normalize_rows(A):
    if (A < 0).any():
        raise ValueError("negative")
    sums = A.sum(axis=-1, keepdims=True)
    return 100 * A / np.where(sums == 0, 1, sums)""",
    "is_row_stochastic": """\
def is_row_stochastic(A, atol=1e-8):
    return bool((A >= -atol).all() and (abs(A.sum(axis=-1) - 1) <= atol).all())""",
    "uniform_weights": "def uniform_weights(n):\n    return np.full((n, n), 100 / n)",
    "causal_mean_weights": """\
def causal_mean_weights(n):
    return normalize_rows(np.tril(np.ones((n, n))))""",
    "window_weights": """\
def window_weights(n, width):
    if width % 2 == 0:
        raise ValueError("even")
    i = np.arange(n)
    return normalize_rows((abs(i[:, None] - i) <= width // 2).astype(float))""",
}


@pytest.mark.slow  # releases through nbgrader and grades in a jail
def test_a_variant_is_released_and_graded(course):
    def attncourse(*arguments: str) -> str:
        command = [sys.executable, "-m", "attncourse.grading.cli", *arguments]
        process = subprocess.run(command, cwd=course, capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    assert "variant: percent" in attncourse("release", "02_mixing", "--variant", "percent")
    text = (course / "exercises/02_mixing/02_mixing.ipynb").read_text()
    assert "### BEGIN" not in text
    assert "return A @ X" not in text
    published = {
        mark["grade_id"]: "".join(cell["source"])
        for cell in json.loads(solved_notebook("mixing"))["cells"]
        if (mark := cell["metadata"].get("nbgrader", {})).get("solution")
    }
    for student, answers in {"copied": published, "right": RIGHT_PERCENT_ANSWERS}.items():
        place = course / "submitted" / student / "02_mixing"
        place.mkdir(parents=True)
        (place / "02_mixing.ipynb").write_text(fill_solution_cells(text, answers))
    assert "variant: percent" in attncourse("release", "02_mixing")  # known without being told
    attncourse("grade", "02_mixing")
    reports = {
        student: json.loads((course / f"reports/02_mixing/{student}.json").read_text())
        for student in ("copied", "right")
    }
    points = {
        student: sum(cell["points"] for cell in report["cells"].values())
        for student, report in reports.items()
    }
    assert points == {"copied": 7, "right": 38}  # is_row_stochastic is as it was
    mistakes = {tuple(pair) for pair in reports["copied"]["mistakes"]}
    varied_ones = variants_of("mixing")[0].adapters
    assert mistakes == {(f"mixing.{name}", "weights are percentages here") for name in varied_ones}
    note = f"{OTHER}: the published one in place of the variant percent"
    plain = course / "submitted/late/02_mixing/02_mixing.ipynb"
    plain.parent.mkdir(parents=True)
    shutil.copy(ROOT / "exercises/02_mixing/02_mixing.ipynb", plain)
    attncourse("grade", "02_mixing", "--student", "late")
    report = json.loads((course / "reports/02_mixing/late.json").read_text())
    assert note in " ".join(report["attention"])
    assert note in " ".join(report["notes"])
    assert not any(
        note in " ".join(report_of_student["notes"]) for report_of_student in reports.values()
    )
    assert attncourse("report", "02_mixing").startswith("02_mixing, variant percent: ")
    page = (course / "reports/02_mixing/index.html").read_text()
    assert "<h1>02_mixing, variant percent</h1>" in page


@pytest.mark.slow  # releases through nbgrader
def test_make_exercises_keeps_the_variant(course):
    choose_variant(course, "02_mixing", "percent")
    answers = {"02_mixing": solved_notebook("mixing").decode()}
    made = released(replace(load(ROOT), root=course), answers)
    assert 'check("mixing.mix", mix, variant="percent")' in made["02_mixing"].replace('\\"', '"')


def test_a_student_checks_the_variant(course):
    data = notebook_in_variant(solved_notebook("mixing"), "percent", "02_mixing").decode()
    path = course / "02_mixing.ipynb"
    path.write_text(fill_solution_cells(data, {"mix": RIGHT_PERCENT_ANSWERS["mix"]}))
    report = check_file(path, Limits())
    assert report.cells["mixing.mix"].points == 7
    assert report.cells["mixing.is_row_stochastic"].points == 6
    mistakes = dict(report.mistakes)
    assert mistakes == dict.fromkeys(
        [
            f"mixing.{name}"
            for name in RIGHT_PERCENT_ANSWERS
            if name not in ("mix", "is_row_stochastic")
        ],
        "weights are percentages here",
    )


def test_a_variant_file_saved_by_an_editor_is_read(tmp_path):
    text = '"02_mixing" = "percent"\r\n"05_kqv" = "published"\r\n'
    (tmp_path / VARIANTS_FILE).write_text(text, encoding="utf-8-sig")
    assert variants_in(tmp_path) == {"02_mixing": "percent"}
