"""One wrong answer, told and paid for alike in Python, in a notebook, by check and by grade."""

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
TELL = """
import json
from attncourse.checks import examine
said = examine({target!r}, {name}, seed={seed})
earned = {{c.name: [c.earned, c.follows] for c in said.criteria}}
print(json.dumps([said.diagnosis and said.diagnosis.name, said.rest, earned]))
"""
# A slip in a published answer of each chapter, which its bank knows: exercise, old code, new.
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


def slipped(stem: str) -> tuple[list[dict], Assignment]:
    """The cells of a chapter's answers with the slip, and the assignment: one test of it."""
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


def as_told(verdict: Verdict) -> list:
    """What has to be the same: the mistake, what is left, what each criterion earns and why."""
    earned = {c.name: [c.earned, c.follows] for c in verdict.criteria}
    return [verdict.diagnosis and verdict.diagnosis.name, verdict.rest, earned]


def by_grading(cells: list[dict], assignment: Assignment, target: str) -> list:
    """The same of a report."""
    report = grade_submission(
        notebook(*cells), assignment, limits=Limits(submission=60), seed=SEED, sandbox=False
    )
    (verdict,) = [v for v in report.verdicts if v["target"] == target]
    told = as_told(verdict_from_row(verdict))
    (cell,) = [c for c in assignment.cells if c.grade]
    assert report.cells[cell.grade_id].points == sum(points for points, _ in told[2].values())
    return told


def own_test(cells: Cells, stem: str, target: str) -> Assignment:
    """What ``attncourse check`` makes of a notebook, with the test of one exercise."""
    whole = own_assignment(cells, stem)
    return replace(
        whole, cells=tuple(c for c in whole.cells if not c.grade or c.grade_id == target)
    )


@pytest.mark.parametrize("stem", SLIPS)
def test_a_slip_is_named_and_paid_alike_everywhere(stem, tmp_path):
    cells, assignment = slipped(stem)
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
    told = as_told(plain)

    ask = TELL.format(target=target, name=name, seed=seed)
    shown = played([*code, ask], tmp_path)["printed"][-1]
    assert json.loads(shown) == told
    assert by_grading(cells, assignment, target) == told
    check = own_test(read_cells(notebook(*cells[:-1])), stem, target)
    assert by_grading(cells[:-1], check, target) == told
