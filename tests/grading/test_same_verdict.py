"""A wrong answer has the same verdict in Python, in a notebook, by check and by grade."""

import json
import zlib
from dataclasses import replace

import pytest

from attncourse.checks import find_exercise
from attncourse.checks.judging import judge
from attncourse.checks.showing.verdict import Verdict
from attncourse.grading.judge.judge import grade_submission
from attncourse.grading.judge.outcomes import verdict_from_row
from attncourse.grading.limits import Limits
from attncourse.grading.student.selfcheck import own_assignment
from attncourse.grading.submission.notebook import Assignment, Cells, read_cells
from helpers.project import ROOT
from helpers.small_course import notebook
from helpers.student_cells import played

SEED = 5
EXAMINE_AND_PRINT = """
import json
from attncourse.checks import examine
verdict = examine({target!r}, {name}, seed={seed})
earned = {{c.name: [c.earned, c.follows] for c in verdict.criteria}}
print(json.dumps([verdict.diagnosis and verdict.diagnosis.name, verdict.rest, earned]))
"""
# A known mistake in a published answer of each chapter: exercise, old code, new code.
SLIPS = {
    "tokens": ("one_hot", "(ids >= n_vocab)", "(ids >= n_vocab + 1)"),
    "mixing": ("causal_mean_weights", "np.tril(", "np.triu("),
    "lookup": ("kernel_regression", "softmax(-(distance**2)", "softmax((distance**2)"),
    "self_attention": ("attention_weights", "softmax(scores", "softmax(-scores"),
    "kqv": (
        "scaled_dot_product_attention",
        "1 / math.sqrt(query.shape[-1])",
        "1 / query.shape[-1]",
    ),
    "scoring": ("attend", "dim=-1) @ values", "dim=-1)"),
    "scaling": ("scale_scores", "/ math.sqrt(d_k)", "/ d_k"),
    "cross_attention": ("AttentionPooling", " / math.sqrt(x.shape[-1])", ""),
    "multihead": ("split_heads", "n, n_heads, d // n_heads).transpose(-3, -2)", "n_heads, n, -1)"),
    "masking": ("causal_mask", ">= torch.arange", "> torch.arange"),
    "positions": ("sinusoidal_encoding", "(-torch.arange", "(torch.arange"),
    "transformer": ("layer_norm", "x - x.mean(dim=-1, keepdim=True)", "x"),
    "gpt": ("filter_logits", "descending=True", "descending=False"),
    "interpret": ("rollout", "layer) @ flow", "layer).mT @ flow"),
    "vision": ("attention_on_image", "weights[..., 1:]", "weights[..., :-1]"),
    "sequences": ("balanced_accuracy", "np.mean(recalls)", "np.mean(labels == predictions)"),
    "efficient": ("kv_cache_bytes", "2 * n_tokens", "n_tokens"),
    "llama": ("rms_norm", "x.square().mean(", "x.square().sum("),
    "circuits": ("logit_lens", "rms_norm(hidden, gain)", "hidden"),
    "serving": ("top_k_gate", "gather(-1, chosen).softmax(-1)", "softmax(-1).gather(-1, chosen)"),
}


def cells_with_slip(stem: str) -> tuple[list[dict], Assignment]:
    """Return the cells of a chapter's answers with the slip, and an assignment with its test."""
    name, old, new = SLIPS[stem]
    path = next(ROOT.glob(f"solutions/[0-9][0-9]_{stem}/*.ipynb"))
    code = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in code]
    first = next(n for n, mark in enumerate(marks) if mark.get("solution"))
    cells = [
        cell
        for n, (cell, mark) in enumerate(zip(code, marks, strict=True))
        if (n < first and "import" in "".join(cell["source"]))
        or (mark.get("solution") and not mark.get("grade"))
        or mark.get("grade_id") == f"points_{name}"
    ]
    assignment = Assignment(path.stem, read_cells(notebook(*cells)))
    wrong = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == name:
            assert source.count(old) == 1, f"{old} is not in {name} once"
            source = source.replace(old, new)
        wrong.append(cell | {"source": source})
    return wrong, assignment


def comparable_verdict(verdict: Verdict) -> list:
    """Return what must agree: the mistake, the rest, what each criterion earns and follows."""
    earned = {c.name: [c.earned, c.follows] for c in verdict.criteria}
    return [verdict.diagnosis and verdict.diagnosis.name, verdict.rest, earned]


def graded_verdict(cells: list[dict], assignment: Assignment, target: str) -> list:
    """Return the comparable verdict of a report, and assert that it agrees with the points."""
    report = grade_submission(
        notebook(*cells), assignment, limits=Limits(submission=60), seed=SEED, sandbox=False
    )
    (verdict,) = [v for v in report.verdicts if v["target"] == target]
    row = comparable_verdict(verdict_from_row(verdict))
    (cell,) = [c for c in assignment.cells if c.grade]
    assert report.cells[cell.grade_id].points == sum(points for points, _ in row[2].values())
    return row


def assignment_of_check(cells: Cells, stem: str, target: str) -> Assignment:
    """Return the assignment of ``attncourse check``, with the test of one exercise."""
    assignment = own_assignment(cells, stem)
    return replace(
        assignment, cells=tuple(c for c in assignment.cells if not c.grade or c.grade_id == target)
    )


@pytest.mark.parametrize("stem", SLIPS)
def test_a_slip_has_the_same_verdict_everywhere(stem, tmp_path):
    cells, assignment = cells_with_slip(stem)
    target = f"{stem}.{SLIPS[stem][0]}"
    exercise, name = find_exercise(target), SLIPS[stem][0]
    seed = zlib.crc32(f"{SEED} {target}".encode())  # as a grader draws it
    code = [cell["source"] for cell in cells if "points_" not in cell["id"]]

    names: dict[str, object] = {}
    for source in code:
        exec(source, names)
    plain = judge(exercise, names[name], seed)
    assert plain.diagnosis is not None, str(plain)
    assert plain.diagnosis.name in {mistake.name for mistake in exercise.mistakes}
    expected = comparable_verdict(plain)

    examine_cell = EXAMINE_AND_PRINT.format(target=target, name=name, seed=seed)
    printed = played([*code, examine_cell], tmp_path)["printed"][-1]
    assert json.loads(printed) == expected
    assert graded_verdict(cells, assignment, target) == expected
    check = assignment_of_check(read_cells(notebook(*cells[:-1])), stem, target)
    assert graded_verdict(cells[:-1], check, target) == expected
