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

HEAD = dedented("""
    import math
    import torch
    from torch import nn
    from attncourse.checks import check
""")
OK = "def project(x, weight):\n    return x @ weight"
BODY = dedented("""
    def project(x, weight):
        {}
        return x @ weight
""")
CHECK = "check('kqv.project', project)"
OURS = CHAPTER_ABSENT.format("kqv")
SCORES = "def attention_scores(query, key):\n    return {}query @ key.mT"
ATTENTION = """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = attention_scores(query, key) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value"""
ROOTED = ATTENTION.replace("query.shape[-1] ** -0.5", "1 / math.sqrt(query.shape[-1])").replace(
    "attention_scores(query, key)", "query @ key.mT"
)
FINISHED = """\
import torch.nn.functional as F
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)"""
BUILD = "called scaled_dot_product_attention, which this exercise asks you to build"
FILE = "import sys\nsys.path.insert(0, {folder!r})\n"
# Nobody hears it in a grade.
INTERRUPTED = dedented("""
    import os
    os.kill(os.getpid(), 2)
    while True:
        pass
""")
INSIDE = OK.replace("\n", "\n    ")
WRONG = OK.replace("@", "*")
UNLESS = dedented("""
    try:
        from attncourse.kqv import {}
    except ImportError:
        {}
""")
MEAN = "def attention_scores(query, key):\n    return mul(query, key.mT)"
DIVIDED = f"ZeroDivisionError: division by zero ({skipped_lines_note(['1 / 0'])})"
MADE = """\
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
    """The versions of each answer's cell, and the sentence that both sides say of the last one.

    ``less``: the grade runs more of the file than a notebook does, and so may give more.
    """

    name: str
    answers: dict[str, tuple[str, ...]]
    says: str = ""
    less: bool = field(default=False, kw_only=True)


def of(name: str, *versions: str, says: str = "", less: bool = False) -> Versions:
    return Versions(name, {"project": versions}, says, less=less)


CASES = [
    # honest
    of("written", OK),
    of("older-was-wrong", OK.replace("@", "*"), OK),
    of("lambda", "project = lambda x, weight: x @ weight"),
    of(
        "another-name-first",
        dedented("""
            def f(x, weight):
                return x @ weight
            project = f
        """),
    ),
    of(
        "object",
        dedented("""
            class P:
                def __call__(self, x, weight):
                    return x @ weight
            project = P()
        """),
    ),
    of("decorated", "def same(f):\n    return lambda *args: f(*args)\n@same\n" + OK),
    of(
        "in-an-if",
        dedented("""
            if True:
                def project(x, weight):
                    return x @ weight
        """),
    ),
    of("timed", f"%%time\n{OK}"),
    of("captured", f"%%capture\n{OK}"),
    of("prints", BODY.format("print(x)")),
    of("fails-below", f"{OK}\n1 / 0", says="ZeroDivisionError: division by zero"),
    of("fails-below-and-wrong", f"{WRONG}\n1 / 0", says="ZeroDivisionError: division by zero"),
    of("of-an-earlier-chapter", f"from attncourse.lookup import softmax\n{OK}"),
    of("imported-unused", f"from attncourse.kqv import attention_scores\n{OK}"),
    of(
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
    of(
        "prepared-for-nobody",
        BODY.format(
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
        {"file": (f"%%writefile own.py\n{OK}",), "project": ("from own import project",)},
    ),
    of("awaits", f"import asyncio\nawait asyncio.sleep(0)\n{OK}"),
    of("awaits-and-fails", f"import asyncio\nawait asyncio.sleep(0)\n1 / 0\n{OK}", says=DIVIDED),
    of("twice", f"{WRONG}\n{OK}"),
    of(
        "made-by-a-function",
        dedented("""
            def made():
                return lambda x, weight: x @ weight
            project = made()
        """),
    ),
    of("by-a-global", f"def make():\n    global project\n    {INSIDE}\nmake()"),
    of("by-exec", f"exec({OK!r})"),
    of("walrus", "(project := lambda x, weight: x @ weight)"),
    of("annotated", "from typing import Any\nproject: Any = lambda x, weight: x @ weight"),
    of("in-a-with", f"with torch.no_grad():\n    {INSIDE}"),
    of("in-a-loop", "for project in [lambda x, weight: x @ weight]:\n    pass"),
    of("star", f"from math import *\n{OK}"),
    of("star-of-an-earlier-chapter", f"from attncourse.lookup import *\n{OK}"),
    of("deletes-another", f"y = 1\ndel y\n{OK}"),
    of("future", f"from __future__ import annotations\n{OK}"),
    of("indented", f"    {INSIDE}"),
    of("command-above", f"!echo pip install torch\n{OK}"),
    of("magics-above", f"%matplotlib inline\n%time y = 3\n{OK}"),
    of("help-below", f"{OK}\nproject?"),
    of("profiled", f"%%prun\n{OK}"),
    of("captured-by-name", f"%%capture out\n{OK}"),
    of("captured-and-fails", f"%%capture\n1 / 0\n{OK}", says=DIVIDED),
    of("timed-and-fails", f"%%time\n1 / 0\n{OK}", says=DIVIDED),
    of("fails-between", f"{WRONG}\n1 / 0\n{OK}", says=DIVIDED),
    of(
        "fails-and-helps",
        f"1 / 0\n{OK.replace('x @ weight', 'mul(x, weight)')}\ndef mul(a, b):\n    return a @ b",
        says=DIVIDED,
    ),
    of("lacks-a-library", f"import no_such_library\n{OK}", says="No module named"),
    of("exits", f"import sys\nsys.exit()\n{OK}"),
    of("ours-if-there", UNLESS.format("project", INSIDE)),
    of("ours-if-there-after-own", OK, f"{OK}\n{UNLESS.format('project', 'pass')}"),
    of(
        "ours-suppressed",
        f"from contextlib import suppress\n{OK}\nwith suppress(ImportError):\n"
        "    from attncourse.kqv import project",
    ),
    of(
        "ours-by-a-flag",
        UNLESS.format("project as ours", "ours = None")
        + f"\nif ours:\n    project = ours\nelse:\n    {INSIDE}",
    ),
    of("ours-if-there-and-wrong", UNLESS.format("project", WRONG.replace("\n", "\n    "))),
    Versions(
        "helper-of-ours-if-there",
        {
            "helper": (UNLESS.format("project as mul", "mul = torch.matmul"),),
            "attention_scores": (MEAN,),
        },
    ),
    Versions(
        "file-that-is-run", {"file": (f"%%writefile own.py\n{OK}",), "project": ("%run own.py",)}
    ),
    Versions("class-of-a-function", {"AttentionHead": (MADE,)}),
    # wrong
    of("twice-wrong-last", f"{OK}\n{WRONG}"),
    of("a-coroutine", f"async {OK}", says="A coroutine comes back."),
    of("a-generator", OK.replace("return", "yield"), says="A generator comes back."),
    of("bash", f"%%bash\n{OK}"),
    of("only-deleted", OK, "del project"),
    of(
        "newer-is-wrong", OK, OK.replace("weight)", "weight)", 1).replace("@ weight", "@ weight.mT")
    ),
    of("not-written", "def project(x, weight):\n    raise NotImplementedError()"),
    of("returns-nothing", "def project(x, weight):\n    pass"),
    # did not run, or is not what its cell says
    of("no-python", OK, f"{OK})", says="SyntaxError: unmatched ')'"),
    of("no-python-alone", f"{OK})", says="SyntaxError: unmatched ')'"),
    of("misspelt", OK, "de" + OK[3:], says="SyntaxError: invalid syntax"),
    of(
        "decorator-fails",
        OK,
        f"def no(f):\n    raise ValueError('no')\n@no\n{OK}",
        says="ValueError: no",
    ),
    of("fails-above", OK, f"1 / 0\n{OK}", says=DIVIDED),
    of("fails-above-and-wrong", OK, f"1 / 0\n{WRONG}"),
    of("fails-within-a-block", OK, f"if True:\n    1 / 0\n    {INSIDE}", says="division by zero"),
    of("keeps-its-names", f"%%timeit -n 1 -r 1\n{OK}", says=TIMEIT_KEEPS_NAMES),
    of("keeps-its-names-and-fails", f"%%timeit -n 1 -r 1\n1 / 0\n{OK}"),
    of("deleted", f"{OK}\ndel project"),
    of("renamed", OK.replace("project", "projekt")),
    of("renamed-after", OK, OK.replace("project", "projekt")),
    of(
        "never-true",
        dedented("""
            if False:
                def project(x, weight):
                    return x @ weight
        """),
    ),
    of(
        "number",
        OK,
        f"{OK}\nproject = 5",
        says="`project` is an int (5), nothing that can be called",
    ),
    of(
        "result",
        f"{OK}\nproject = project(torch.ones(2, 2), torch.ones(2, 2))",
        says="`project` is a Tensor, nothing that can be called",
    ),
    # not the student's
    of("ours", "from attncourse.kqv import project", says=OURS),
    of("ours-after-own", OK, "from attncourse.kqv import project", says=OURS),
    of("ours-all", "from attncourse.kqv import *", says=OURS),
    of(
        "ours-called",
        dedented("""
            from attncourse.kqv import project as p
            def project(x, weight):
                return p(x, weight)
        """),
        says=OURS,
    ),
    of(
        "ours-by-module",
        dedented("""
            from attncourse import kqv
            def project(x, weight):
                return kqv.project(x, weight)
        """),
        says=OURS,
    ),
    of("ours-meanwhile", BODY.format("from attncourse.kqv import project as p"), says=OURS),
    of(
        "ours-by-name",
        dedented("""
            def project(x, weight):
                import importlib
                return importlib.import_module('attncourse.kqv').project(x, weight)
        """),
        says=OURS,
    ),
    of(
        "ours-partly",
        dedented("""
            def project(x, weight):
                if x.ndim > 2:
                    from attncourse.kqv import project
                    return project(x, weight)
                return x @ weight
        """),
    ),
    of(
        "ours-of-the-checks",
        "from attncourse.checks import exercises\nproject = exercises()['kqv.project'].reference",
    ),
    of("from-a-file", f"{FILE}from my_parts import project", says=f"`my_parts` {FILE_ABSENT}"),
    of("run-from-a-file", "%run {folder}/my_parts.py"),
    of(
        "with-a-file",
        f"{FILE}import my_parts\ndef project(x, weight):\n    return 2 * my_parts.half(x) @ weight",
        says=f"`my_parts` {FILE_ABSENT}",
    ),
    of(
        "with-a-file-partly",
        f"{FILE}from my_parts import half\ndef project(x, weight):\n"
        "    return 2 * half(x) @ weight if x.ndim > 2 else x @ weight",
    ),
    # forbidden, and what waits for somebody
    Versions("finished", {"scaled_dot_product_attention": (FINISHED,)}, BUILD),
    Versions(
        "finished-imported",
        {
            "scaled_dot_product_attention": (
                "from torch.nn.functional import scaled_dot_product_attention",
            )
        },
        BUILD,
    ),
    of("asks", BODY.format("input('?')"), says=NOBODY),
    of("stops", BODY.format("breakpoint()"), says=DEBUGGER),
    of("stops-in-pdb", f"import pdb\n{BODY.format('pdb.set_trace()')}", says=DEBUGGER),
    # a name that something else has taken
    *(
        Versions(
            name,
            {"helper": (cell,), "scaled_dot_product_attention": (source,)},
            says,
        )
        for name, cell, source, says in [
            ("taken", "math = 5", ROOTED, "name `math` was overwritten"),
            (
                "taken-by-a-loop",
                "for torch in (1, 2):\n    pass",
                ROOTED,
                "name `torch` was overwritten",
            ),
            (
                "taken-built-in",
                "sum = 3",
                ROOTED.replace("mask is not", "sum and mask is not").replace(
                    "    scores =", "    sum([])\n    scores =", 1
                ),
                "name `sum` was overwritten",
            ),
            ("taken-and-wrong", "math = 5", ROOTED.replace("dim=-1", "dim=-2"), ""),
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
        {"helper": ("math = 5\nimport math",), "scaled_dot_product_attention": (ROOTED,)},
    ),
    # torch's settings are a fresh process's, on both sides
    Versions("gradients-off", {"helper": ("torch.set_grad_enabled(False)",), "project": (OK,)}),
    Versions(
        "inference-only",
        {"helper": ("torch.inference_mode().__enter__()",), "project": (OK,)},
    ),
    Versions(
        "wide-by-default",
        {
            "helper": ("torch.set_default_dtype(torch.float64)",),
            "project": (BODY.format("x = x + torch.zeros(1)"),),
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
    source = f"import torch\n{OK}\ndef half(x):\n    return x / 2\n"
    (place / "my_parts.py").write_text(source, encoding="utf-8")
    return str(place)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_notebook_says_what_the_grade_gives(case, folder, tmp_path):
    filled = {
        name: [v.replace("{folder!r}", repr(folder)).replace("{folder}", folder) for v in versions]
        for name, versions in case.answers.items()
    }
    cells, ran = [cell(HEAD)], [HEAD]
    for name, versions in filled.items():
        check = f'check("kqv.{name}", {name})' if f"kqv.{name}" in exercises() else "0"
        cells += [solution(name, versions[-1]), cell(check, f"check_{name}", locked=True)]
        ran += [*versions, check]
    data = notebook(*cells)
    said = played(ran, tmp_path)["said"]
    report = check_cells(Path("05_kqv.ipynb"), data, read_cells(data), Limits.of(60))
    told = {v["target"]: v for v in report.verdicts}
    asked = filled.keys() - {"file", "helper"}
    for name in asked:
        mine, graded = said[f"kqv.{name}"], report.cells[f"kqv.{name}"]
        if case.less:
            assert mine["earned"] == 0 < graded.points
        else:
            assert mine["earned"] == graded.points
        verdict = told.get(f"kqv.{name}", {"text": ""})
        if len(asked) == 1:
            assert case.says in mine["text"]
            assert case.says in " ".join([verdict["text"], graded.message, *report.notes])
        if "overwritten" in case.says:
            assert mine["in_short"] == verdict["mistake"] == f"the {case.says}"
        if mine["given"]:  # one rule, one sentence
            short = verdict["mistake"] or verdict["symptom"] or verdict["reason"]
            same = (verdict["given"], short, verdict["text"].splitlines()[0])
            assert (mine["given"], mine["in_short"], mine["text"].splitlines()[0]) == same


@pytest.mark.parametrize(("answer", "earned"), [(OK, 7), (WRONG, 3)])
def test_a_cell_that_does_not_end_is_told_in_both(answer, earned, tmp_path):
    source, check = f"{answer}\n{INTERRUPTED}", CHECK
    mine = played([HEAD, source, check], tmp_path)["said"]["kqv.project"]
    cells = [cell(HEAD), solution("project", source), cell(check, "check_project", locked=True)]
    data = notebook(*cells)
    limits = replace(Limits.of(60), cell=1.0)
    report = check_cells(Path("05_kqv.ipynb"), data, read_cells(data), limits)
    assert mine["earned"] == report.cells["kqv.project"].points == earned
    assert "its cell did not end: it was interrupted below the definition" in mine["text"]
    assert any("project: did not end" in note for note in report.notes)


def test_an_answer_in_the_checks_cell_counts_in_both(tmp_path):
    stub, written = "def project(x, weight):\n    raise NotImplementedError()", f"{OK}\n{CHECK}"
    mine = played([HEAD, stub, written], tmp_path)["said"]["kqv.project"]
    data = notebook(
        cell(HEAD), solution("project", stub), cell(written, "check_project", locked=True)
    )
    report = check_cells(Path("05_kqv.ipynb"), data, read_cells(data), Limits.of(60))
    assert mine["earned"] == report.cells["kqv.project"].points == 7


def test_a_failing_check_in_the_answers_cell_does_not_stop_it(tmp_path):
    said = played([HEAD, f"{WRONG}\n{CHECK}", CHECK], tmp_path)["said"]["kqv.project"]
    assert not said["passed"]
    assert "stopped" not in said["text"]


@pytest.mark.parametrize("stem", ["tokens", "lookup", "masking"])
def test_the_published_answers_are_right_in_a_notebook(stem, tmp_path):
    """Nothing in a chapter's checks calls what is not there while an answer runs."""
    (path,) = ROOT.glob(f"solutions/*_{stem}/*_{stem}.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    said = played((source for source in code if "#@title" not in source), tmp_path)["said"]
    assert said.keys() == {t for t, e in exercises().items() if e.stem == stem}
    assert all(verdict["passed"] for verdict in said.values())
