"""What a notebook's check says of an answer is what the grade gives, in the same sentence.

Each case runs twice: as a student runs it, cell by cell, with every version of the answer's cell
one after the other; and as the file is graded, which holds the last version.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from attncourse.checks import exercises
from attncourse.checks.reading.cells import TIMEIT_KEEPS_NAMES, skipped_lines_note
from attncourse.checks.trying.unavailable import CHAPTER_ABSENT, DEBUGGER, FILE_ABSENT, NOBODY
from attncourse.grading.limits import Limits
from attncourse.grading.sample import CLASS
from attncourse.grading.student.selfcheck import check_cells
from attncourse.grading.submission.notebook import read_cells
from helpers.dedented_text import dedented
from helpers.project import ROOT
from helpers.small_course import cell, notebook, solution
from helpers.student_cells import played

IMPORT_CELL = dedented("""
    import math
    import torch
    from torch import nn
    from attncourse.checks import check
""")
RIGHT_ANSWER = "def project(x, weight):\n    return x @ weight"
ANSWER_WITH_LINE = dedented("""
    def project(x, weight):
        {}
        return x @ weight
""")
CHECK = "check('kqv.project', project)"
ABSENT_CHAPTER = CHAPTER_ABSENT.format("kqv")
SCORES = "def attention_scores(query, key):\n    return {}query @ key.mT"
ATTENTION = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = attention_scores(query, key) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value"""
ATTENTION_WITH_SQRT = ATTENTION.replace(
    "query.shape[-1] ** -0.5", "1 / math.sqrt(query.shape[-1])"
).replace("attention_scores(query, key)", "query @ key.mT")
ATTENTION_OF_TORCH = """\
import torch.nn.functional as F
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)"""
BUILD_YOURSELF = "called scaled_dot_product_attention, which this exercise asks you to build"
ADD_TO_PATH = "import sys\nsys.path.insert(0, {folder!r})\n"
# A notebook's cell is interrupted; in a grade nothing handles the signal.
INTERRUPT_AND_LOOP = dedented("""
    import os
    os.kill(os.getpid(), 2)
    while True:
        pass
""")
INDENTED_ANSWER = RIGHT_ANSWER.replace("\n", "\n    ")
WRONG_ANSWER = RIGHT_ANSWER.replace("@", "*")
IMPORT_OR_ELSE = dedented("""
    try:
        from attncourse.kqv import {}
    except ImportError:
        {}
""")
SCORES_WITH_MUL = "def attention_scores(query, key):\n    return mul(query, key.mT)"
DIVIDED_BY_ZERO = f"ZeroDivisionError: division by zero ({skipped_lines_note(['1 / 0'])})"
CLASS_FROM_FUNCTION = """\
def made():
    class Made(nn.Module):
        def __init__(self, d_model, d_k, d_v=None, bias=False):
            super().__init__()
            self.W_q = nn.Linear(d_model, d_k, bias=bias)
            self.W_k = nn.Linear(d_model, d_k, bias=bias)
            self.W_v = nn.Linear(d_model, d_v or d_k, bias=bias)
        def weights(self, x, mask=None):
            scores = self.W_q(x) @ self.W_k(x).mT * self.W_q.out_features ** -0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            return torch.softmax(scores, dim=-1).nan_to_num(0.0)
        def forward(self, x, mask=None):
            return self.weights(x, mask) @ self.W_v(x)
    return Made
AttentionHead = made()"""


@dataclass(frozen=True)
class Versions:
    """The versions of each answer's cell, and the sentence that both say of the last version.

    ``less``: the grade runs more of the file than a notebook does, and so may give more.
    """

    name: str
    answers: dict[str, tuple[str, ...]]
    says: str = ""
    less: bool = field(default=False, kw_only=True)


def versions_of_project(name: str, *versions: str, says: str = "", less: bool = False) -> Versions:
    return Versions(name, {"project": versions}, says, less=less)


CASES = [
    # honest
    versions_of_project("written", RIGHT_ANSWER),
    versions_of_project("older-was-wrong", RIGHT_ANSWER.replace("@", "*"), RIGHT_ANSWER),
    versions_of_project("lambda", "project = lambda x, weight: x @ weight"),
    versions_of_project(
        "another-name-first",
        dedented("""
            def f(x, weight):
                return x @ weight
            project = f
        """),
    ),
    versions_of_project(
        "object",
        dedented("""
            class P:
                def __call__(self, x, weight):
                    return x @ weight
            project = P()
        """),
    ),
    versions_of_project(
        "decorated", "def same(f):\n    return lambda *args: f(*args)\n@same\n" + RIGHT_ANSWER
    ),
    versions_of_project(
        "in-an-if",
        dedented("""
            if True:
                def project(x, weight):
                    return x @ weight
        """),
    ),
    versions_of_project("timed", f"%%time\n{RIGHT_ANSWER}"),
    versions_of_project("captured", f"%%capture\n{RIGHT_ANSWER}"),
    versions_of_project("prints", ANSWER_WITH_LINE.format("print(x)")),
    versions_of_project(
        "fails-below", f"{RIGHT_ANSWER}\n1 / 0", says="ZeroDivisionError: division by zero"
    ),
    versions_of_project(
        "fails-below-and-wrong",
        f"{WRONG_ANSWER}\n1 / 0",
        says="ZeroDivisionError: division by zero",
    ),
    versions_of_project(
        "of-an-earlier-chapter", f"from attncourse.lookup import softmax\n{RIGHT_ANSWER}"
    ),
    versions_of_project(
        "imported-unused", f"from attncourse.kqv import attention_scores\n{RIGHT_ANSWER}"
    ),
    versions_of_project(
        "prepared",
        dedented("""
            def project(x, weight):
                try:
                    from attncourse.kqv import project as ours
                    return ours(x, weight)
                except ImportError:
                    return x @ weight
        """),
    ),
    versions_of_project(
        "prepared-for-nobody",
        ANSWER_WITH_LINE.format(
            dedented("""
                try:
                        input()
                    except EOFError:
                        pass
            """)
        ),
    ),
    Versions(
        "in-a-file-that-a-cell-writes",
        {"file": (f"%%writefile own.py\n{RIGHT_ANSWER}",), "project": ("from own import project",)},
    ),
    versions_of_project("awaits", f"import asyncio\nawait asyncio.sleep(0)\n{RIGHT_ANSWER}"),
    versions_of_project(
        "awaits-and-fails",
        f"import asyncio\nawait asyncio.sleep(0)\n1 / 0\n{RIGHT_ANSWER}",
        says=DIVIDED_BY_ZERO,
    ),
    versions_of_project("twice", f"{WRONG_ANSWER}\n{RIGHT_ANSWER}"),
    versions_of_project(
        "made-by-a-function",
        dedented("""
            def made():
                return lambda x, weight: x @ weight
            project = made()
        """),
    ),
    versions_of_project(
        "by-a-global", f"def make():\n    global project\n    {INDENTED_ANSWER}\nmake()"
    ),
    versions_of_project("by-exec", f"exec({RIGHT_ANSWER!r})"),
    versions_of_project("walrus", "(project := lambda x, weight: x @ weight)"),
    versions_of_project(
        "annotated", "from typing import Any\nproject: Any = lambda x, weight: x @ weight"
    ),
    versions_of_project("in-a-with", f"with torch.no_grad():\n    {INDENTED_ANSWER}"),
    versions_of_project("in-a-loop", "for project in [lambda x, weight: x @ weight]:\n    pass"),
    versions_of_project("star", f"from math import *\n{RIGHT_ANSWER}"),
    versions_of_project(
        "star-of-an-earlier-chapter", f"from attncourse.lookup import *\n{RIGHT_ANSWER}"
    ),
    versions_of_project("deletes-another", f"y = 1\ndel y\n{RIGHT_ANSWER}"),
    versions_of_project("future", f"from __future__ import annotations\n{RIGHT_ANSWER}"),
    versions_of_project("indented", f"    {INDENTED_ANSWER}"),
    versions_of_project("command-above", f"!echo pip install torch\n{RIGHT_ANSWER}"),
    versions_of_project("magics-above", f"%matplotlib inline\n%time y = 3\n{RIGHT_ANSWER}"),
    versions_of_project("help-below", f"{RIGHT_ANSWER}\nproject?"),
    versions_of_project("profiled", f"%%prun\n{RIGHT_ANSWER}"),
    versions_of_project("captured-by-name", f"%%capture out\n{RIGHT_ANSWER}"),
    versions_of_project(
        "captured-and-fails", f"%%capture\n1 / 0\n{RIGHT_ANSWER}", says=DIVIDED_BY_ZERO
    ),
    versions_of_project("timed-and-fails", f"%%time\n1 / 0\n{RIGHT_ANSWER}", says=DIVIDED_BY_ZERO),
    versions_of_project(
        "fails-between", f"{WRONG_ANSWER}\n1 / 0\n{RIGHT_ANSWER}", says=DIVIDED_BY_ZERO
    ),
    versions_of_project(
        "fails-and-helps",
        f"1 / 0\n{RIGHT_ANSWER.replace('x @ weight', 'mul(x, weight)')}\n"
        "def mul(a, b):\n    return a @ b",
        says=DIVIDED_BY_ZERO,
    ),
    versions_of_project(
        "lacks-a-library", f"import no_such_library\n{RIGHT_ANSWER}", says="No module named"
    ),
    versions_of_project("exits", f"import sys\nsys.exit()\n{RIGHT_ANSWER}"),
    versions_of_project("ours-if-there", IMPORT_OR_ELSE.format("project", INDENTED_ANSWER)),
    versions_of_project(
        "ours-if-there-after-own",
        RIGHT_ANSWER,
        f"{RIGHT_ANSWER}\n{IMPORT_OR_ELSE.format('project', 'pass')}",
    ),
    versions_of_project(
        "ours-suppressed",
        f"from contextlib import suppress\n{RIGHT_ANSWER}\nwith suppress(ImportError):\n"
        "    from attncourse.kqv import project",
    ),
    versions_of_project(
        "ours-by-a-flag",
        IMPORT_OR_ELSE.format("project as ours", "ours = None")
        + f"\nif ours:\n    project = ours\nelse:\n    {INDENTED_ANSWER}",
    ),
    versions_of_project(
        "ours-if-there-and-wrong",
        IMPORT_OR_ELSE.format("project", WRONG_ANSWER.replace("\n", "\n    ")),
    ),
    Versions(
        "helper-of-ours-if-there",
        {
            "helper": (IMPORT_OR_ELSE.format("project as mul", "mul = torch.matmul"),),
            "attention_scores": (SCORES_WITH_MUL,),
        },
    ),
    Versions(
        "file-that-is-run",
        {"file": (f"%%writefile own.py\n{RIGHT_ANSWER}",), "project": ("%run own.py",)},
    ),
    Versions("class-of-a-function", {"AttentionHead": (CLASS_FROM_FUNCTION,)}),
    # wrong
    versions_of_project("twice-wrong-last", f"{RIGHT_ANSWER}\n{WRONG_ANSWER}"),
    versions_of_project("a-coroutine", f"async {RIGHT_ANSWER}", says="A coroutine comes back."),
    versions_of_project(
        "a-generator", RIGHT_ANSWER.replace("return", "yield"), says="A generator comes back."
    ),
    versions_of_project("bash", f"%%bash\n{RIGHT_ANSWER}"),
    versions_of_project("only-deleted", RIGHT_ANSWER, "del project"),
    versions_of_project(
        "newer-is-wrong",
        RIGHT_ANSWER,
        RIGHT_ANSWER.replace("weight)", "weight)", 1).replace("@ weight", "@ weight.mT"),
    ),
    versions_of_project("not-written", "def project(x, weight):\n    raise NotImplementedError()"),
    versions_of_project("returns-nothing", "def project(x, weight):\n    pass"),
    # did not run, or is not what its cell says
    versions_of_project(
        "no-python", RIGHT_ANSWER, f"{RIGHT_ANSWER})", says="SyntaxError: unmatched ')'"
    ),
    versions_of_project("no-python-alone", f"{RIGHT_ANSWER})", says="SyntaxError: unmatched ')'"),
    versions_of_project(
        "misspelt", RIGHT_ANSWER, "de" + RIGHT_ANSWER[3:], says="SyntaxError: invalid syntax"
    ),
    versions_of_project(
        "decorator-fails",
        RIGHT_ANSWER,
        f"def no(f):\n    raise ValueError('no')\n@no\n{RIGHT_ANSWER}",
        says="ValueError: no",
    ),
    versions_of_project(
        "fails-above", RIGHT_ANSWER, f"1 / 0\n{RIGHT_ANSWER}", says=DIVIDED_BY_ZERO
    ),
    versions_of_project("fails-above-and-wrong", RIGHT_ANSWER, f"1 / 0\n{WRONG_ANSWER}"),
    versions_of_project(
        "fails-within-a-block",
        RIGHT_ANSWER,
        f"if True:\n    1 / 0\n    {INDENTED_ANSWER}",
        says="division by zero",
    ),
    versions_of_project(
        "keeps-its-names", f"%%timeit -n 1 -r 1\n{RIGHT_ANSWER}", says=TIMEIT_KEEPS_NAMES
    ),
    versions_of_project("keeps-its-names-and-fails", f"%%timeit -n 1 -r 1\n1 / 0\n{RIGHT_ANSWER}"),
    versions_of_project("deleted", f"{RIGHT_ANSWER}\ndel project"),
    versions_of_project("renamed", RIGHT_ANSWER.replace("project", "projekt")),
    versions_of_project("renamed-after", RIGHT_ANSWER, RIGHT_ANSWER.replace("project", "projekt")),
    versions_of_project(
        "never-true",
        dedented("""
            if False:
                def project(x, weight):
                    return x @ weight
        """),
    ),
    versions_of_project(
        "number",
        RIGHT_ANSWER,
        f"{RIGHT_ANSWER}\nproject = 5",
        says="`project` is an int (5), nothing that can be called",
    ),
    versions_of_project(
        "result",
        f"{RIGHT_ANSWER}\nproject = project(torch.ones(2, 2), torch.ones(2, 2))",
        says="`project` is a Tensor, nothing that can be called",
    ),
    # not the student's
    versions_of_project("ours", "from attncourse.kqv import project", says=ABSENT_CHAPTER),
    versions_of_project(
        "ours-after-own", RIGHT_ANSWER, "from attncourse.kqv import project", says=ABSENT_CHAPTER
    ),
    versions_of_project("ours-all", "from attncourse.kqv import *", says=ABSENT_CHAPTER),
    versions_of_project(
        "ours-called",
        dedented("""
            from attncourse.kqv import project as p
            def project(x, weight):
                return p(x, weight)
        """),
        says=ABSENT_CHAPTER,
    ),
    versions_of_project(
        "ours-by-module",
        dedented("""
            from attncourse import kqv
            def project(x, weight):
                return kqv.project(x, weight)
        """),
        says=ABSENT_CHAPTER,
    ),
    versions_of_project(
        "ours-meanwhile",
        ANSWER_WITH_LINE.format("from attncourse.kqv import project as p"),
        says=ABSENT_CHAPTER,
    ),
    versions_of_project(
        "ours-by-name",
        dedented("""
            def project(x, weight):
                import importlib
                return importlib.import_module('attncourse.kqv').project(x, weight)
        """),
        says=ABSENT_CHAPTER,
    ),
    versions_of_project(
        "ours-partly",
        dedented("""
            def project(x, weight):
                if x.ndim > 2:
                    from attncourse.kqv import project
                    return project(x, weight)
                return x @ weight
        """),
    ),
    versions_of_project(
        "ours-of-the-checks",
        "from attncourse.checks import exercises\nproject = exercises()['kqv.project'].reference",
    ),
    versions_of_project(
        "from-a-file",
        f"{ADD_TO_PATH}from my_parts import project",
        says=f"`my_parts` {FILE_ABSENT}",
    ),
    versions_of_project("run-from-a-file", "%run {folder}/my_parts.py"),
    versions_of_project(
        "with-a-file",
        f"{ADD_TO_PATH}import my_parts\n"
        "def project(x, weight):\n    return 2 * my_parts.half(x) @ weight",
        says=f"`my_parts` {FILE_ABSENT}",
    ),
    versions_of_project(
        "with-a-file-partly",
        f"{ADD_TO_PATH}from my_parts import half\ndef project(x, weight):\n"
        "    return 2 * half(x) @ weight if x.ndim > 2 else x @ weight",
    ),
    # forbidden, and what waits for somebody
    Versions("finished", {"scaled_dot_product_attention": (ATTENTION_OF_TORCH,)}, BUILD_YOURSELF),
    Versions(
        "finished-imported",
        {
            "scaled_dot_product_attention": (
                "from torch.nn.functional import scaled_dot_product_attention",
            )
        },
        BUILD_YOURSELF,
    ),
    versions_of_project("asks", ANSWER_WITH_LINE.format("input('?')"), says=NOBODY),
    versions_of_project("stops", ANSWER_WITH_LINE.format("breakpoint()"), says=DEBUGGER),
    versions_of_project(
        "stops-in-pdb", f"import pdb\n{ANSWER_WITH_LINE.format('pdb.set_trace()')}", says=DEBUGGER
    ),
    # a name that something else has taken
    *(
        Versions(
            name,
            {"helper": (cell,), "scaled_dot_product_attention": (source,)},
            says,
        )
        for name, cell, source, says in [
            ("taken", "math = 5", ATTENTION_WITH_SQRT, "name `math` was overwritten"),
            (
                "taken-by-a-loop",
                "for torch in (1, 2):\n    pass",
                ATTENTION_WITH_SQRT,
                "name `torch` was overwritten",
            ),
            (
                "taken-built-in",
                "sum = 3",
                ATTENTION_WITH_SQRT.replace("mask is not", "sum and mask is not").replace(
                    "    scores =", "    sum([])\n    scores =", 1
                ),
                "name `sum` was overwritten",
            ),
            ("taken-and-wrong", "math = 5", ATTENTION_WITH_SQRT.replace("dim=-1", "dim=-2"), ""),
        ]
    ),
    *(
        Versions(
            f"taken-by-a-star-of-{library}",
            {
                "helper": (f"from {library} import *",),
                "project": (
                    dedented("""
                        def project(x, weight):
                            rows = range(len(weight))
                            return sum([x[..., i, None] * weight[i] for i in rows])
                    """),
                ),
            },
            f"name `{taken}` was overwritten",
        )
        for library, taken in (("numpy", "sum"), ("torch", "range"))
    ),
    Versions(
        "not-taken",
        {
            "helper": ("math = 5\nimport math",),
            "scaled_dot_product_attention": (ATTENTION_WITH_SQRT,),
        },
    ),
    # torch's settings are a fresh process's, on both sides
    Versions(
        "gradients-off", {"helper": ("torch.set_grad_enabled(False)",), "project": (RIGHT_ANSWER,)}
    ),
    Versions(
        "inference-only",
        {"helper": ("torch.inference_mode().__enter__()",), "project": (RIGHT_ANSWER,)},
    ),
    Versions(
        "wide-by-default",
        {
            "helper": ("torch.set_default_dtype(torch.float64)",),
            "project": (ANSWER_WITH_LINE.format("x = x + torch.zeros(1)"),),
        },
    ),
    # what calls others
    *(
        Versions(name, {"attention_scores": scores, "scaled_dot_product_attention": (caller,)})
        for name, scores, caller in [
            ("calls-a-wrong-one", (SCORES.format("2 * "),), ATTENTION),
            ("calls-no-python", (f"{SCORES.format('')})",), ATTENTION),
            ("calls-an-older-one", (SCORES.format(""), f"{SCORES.format('')})"), ATTENTION),
            ("calls-ours", ("from attncourse.kqv import attention_scores",), ATTENTION),
            ("both-wrong", (SCORES.format("2 * "),), ATTENTION.replace("dim=-1", "dim=-2")),
        ]
    ),
    # a class of chapter 5, whole
    *(
        Versions(name, {grade_id: (source,) for grade_id, source in answers.items()})
        for name, answers in CLASS.items()
        if answers and name not in ("goran-crashes", "hana-endless")  # a notebook never hears back
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("files")
    source = f"import torch\n{RIGHT_ANSWER}\ndef half(x):\n    return x / 2\n"
    (place / "my_parts.py").write_text(source, encoding="utf-8")
    return str(place)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_notebook_says_what_the_grade_gives(case, folder, tmp_path):
    filled = {
        name: [v.replace("{folder!r}", repr(folder)).replace("{folder}", folder) for v in versions]
        for name, versions in case.answers.items()
    }
    cells, sources = [cell(IMPORT_CELL)], [IMPORT_CELL]
    for name, versions in filled.items():
        check = f'check("kqv.{name}", {name})' if f"kqv.{name}" in exercises() else "0"
        cells += [solution(name, versions[-1]), cell(check, f"check_{name}", locked=True)]
        sources += [*versions, check]
    data = notebook(*cells)
    verdicts = played(sources, tmp_path)["said"]
    report = check_cells(Path("05_kqv.ipynb"), data, read_cells(data), Limits.of(60))
    verdict_by_target = {v["target"]: v for v in report.verdicts}
    answers = filled.keys() - {"file", "helper"}
    for name in answers:
        notebook_verdict, graded_result = verdicts[f"kqv.{name}"], report.cells[f"kqv.{name}"]
        if case.less:
            assert notebook_verdict["earned"] == 0 < graded_result.points
        else:
            assert notebook_verdict["earned"] == graded_result.points
        verdict = verdict_by_target.get(f"kqv.{name}", {"text": ""})
        if len(answers) == 1:
            assert case.says in notebook_verdict["text"]
            assert case.says in " ".join([verdict["text"], graded_result.message, *report.notes])
        if "overwritten" in case.says:
            assert notebook_verdict["in_short"] == verdict["mistake"] == f"the {case.says}"
        if notebook_verdict["given"]:  # one rule, one sentence
            short = verdict["mistake"] or verdict["symptom"] or verdict["reason"]
            expected = (verdict["given"], short, verdict["text"].splitlines()[0])
            assert (
                notebook_verdict["given"],
                notebook_verdict["in_short"],
                notebook_verdict["text"].splitlines()[0],
            ) == expected


@pytest.mark.parametrize(("answer", "earned"), [(RIGHT_ANSWER, 7), (WRONG_ANSWER, 3)])
def test_a_cell_that_does_not_end_is_reported_in_both(answer, earned, tmp_path):
    source, check = f"{answer}\n{INTERRUPT_AND_LOOP}", CHECK
    notebook_verdict = played([IMPORT_CELL, source, check], tmp_path)["said"]["kqv.project"]
    cells = [
        cell(IMPORT_CELL),
        solution("project", source),
        cell(check, "check_project", locked=True),
    ]
    data = notebook(*cells)
    limits = replace(Limits.of(60), cell=1.0)
    report = check_cells(Path("05_kqv.ipynb"), data, read_cells(data), limits)
    assert notebook_verdict["earned"] == report.cells["kqv.project"].points == earned
    assert (
        "its cell did not end: it was interrupted below the definition" in notebook_verdict["text"]
    )
    assert any("project: did not end" in note for note in report.notes)


def test_an_answer_in_the_checks_cell_counts_in_both(tmp_path):
    stub, written = (
        "def project(x, weight):\n    raise NotImplementedError()",
        f"{RIGHT_ANSWER}\n{CHECK}",
    )
    notebook_verdict = played([IMPORT_CELL, stub, written], tmp_path)["said"]["kqv.project"]
    data = notebook(
        cell(IMPORT_CELL), solution("project", stub), cell(written, "check_project", locked=True)
    )
    report = check_cells(Path("05_kqv.ipynb"), data, read_cells(data), Limits.of(60))
    assert notebook_verdict["earned"] == report.cells["kqv.project"].points == 7


def test_a_failing_check_in_the_answers_cell_does_not_stop_it(tmp_path):
    verdict = played([IMPORT_CELL, f"{WRONG_ANSWER}\n{CHECK}", CHECK], tmp_path)["said"][
        "kqv.project"
    ]
    assert not verdict["passed"]
    assert "stopped" not in verdict["text"]


@pytest.mark.parametrize("stem", ["tokens", "lookup", "masking"])
def test_the_published_answers_are_right_in_a_notebook(stem, tmp_path):
    """No check calls a name that is hidden while an answer runs."""
    (path,) = ROOT.glob(f"solutions/*_{stem}/*_{stem}.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    verdicts = played((source for source in code if "#@title" not in source), tmp_path)["said"]
    assert verdicts.keys() == {t for t, e in exercises().items() if e.stem == stem}
    assert all(verdict["passed"] for verdict in verdicts.values())
