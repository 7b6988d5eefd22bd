"""The two assignments of the corpus, and how a submission to them is put together.

``02_mixing`` needs NumPy alone; ``05_kqv`` is for what only a torch answer can try. They are
called like the course's own assignments, so that the chapter they belong to is one that a
submission must not be able to import.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from attncourse.grading.sample import CLASS
from helpers.small_course import RIGHT as SMALL_RIGHT
from helpers.small_course import STUB, cell, graded, notebook, small, solution

SOLVED = Path(__file__).resolve().parents[2] / "solutions" / "05_kqv" / "05_kqv.ipynb"

# A word that stands in the instructor's notebook alone. What gets to see it has spied.
CANARY = "canary-7c1d9e"
# The name of everything that a hostile submission leaves behind, if it can.
MARK = "corpus-was-here"
# Where test and benchmark listen, and what a submission must not reach.
PORT = 47613

IMPORTS = "import math\nimport numpy as np\nfrom attncourse.checks import check, examine\n"
TORCH_IMPORTS = IMPORTS + "import torch\nfrom torch import nn\n"

RIGHT = {
    "center": "def center(x):\n    return np.asarray(x) - np.mean(x, axis=-1, keepdims=True)",
    "rank": "def rank(values):\n    return [int(i) for i in np.argsort(np.argsort(values))]",
    "words": """\
def words(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts""",
    "fill": "def fill(x, value):\n    x[np.isnan(x)] = value",
    "first": """\
def first(items, n):
    if not 0 <= n <= len(items):
        raise ValueError(f"cannot take {n} of {len(items)} items")
    return items[:n]""",
    "halve": "def halve(number):\n    return number / 2",
    "power": "def power(n):\n    return lambda x: x**n",
    "double": "def double(x):\n    return 2 * x",
    "mix": "def mix(A, X):\n    return A @ X",
}
TORCH_RIGHT = {
    "squash": "def squash(x):\n    return x / (1 + x.abs())",
    "scaled_dot_product_attention": """\
def scaled_dot_product_attention(query, key, value, mask=None, *, scale=None):
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value""",
    "AttentionHead": """\
class AttentionHead(nn.Module):
    def __init__(self, d_model, d_k, d_v=None, bias=False):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=bias)
        self.W_k = nn.Linear(d_model, d_k, bias=bias)
        self.W_v = nn.Linear(d_model, d_k if d_v is None else d_v, bias=bias)

    def weights(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).mT / self.W_q.out_features**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1)

    def forward(self, x, mask=None):
        return self.weights(x, mask) @ self.W_v(x)""",
}


def hidden(grade_id: str, source: str) -> dict:
    """A graded cell worth one point, of which the release shows a comment only."""
    task = grade_id.removeprefix("hidden_")
    begin, end = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
    return graded(
        grade_id,
        f"# More tests of {task}.\n{begin}\n# {CANARY}\n{dedent(source).strip()}\n{end}",
        1,
    )


def task(name: str, right: str, *tests: dict) -> list[dict]:
    """One exercise: its solution cell and the tests below it."""
    answer = f"### BEGIN SOLUTION\n# {CANARY}\n{right}\n### END SOLUTION"
    return [cell(f"## {name}", code=False), solution(name, answer), *tests]


def locked(grade_id: str, source: str) -> dict:
    return cell(source, grade_id, locked=True)


CENTER = """\
x = np.random.normal(size=(5, 3))
expected = x - x.mean(axis=-1, keepdims=True)
assert np.allclose(center(x), expected)
assert center(np.ones((2, 7))).shape == (2, 7)"""
HIDDEN_CENTER = """
x = np.random.uniform(size=(3, 5))
steps = np.diff(x)
got = center(x)
assert isinstance(got, np.ndarray)
np.testing.assert_allclose(np.diff(got), steps, atol=1e-12)
assert abs(got.sum(axis=-1)).max() < 1e-9
"""
RANK = """\
cases = [([3, 1, 2], [2, 0, 1]), ([5], [0]), ([4, 6], [0, 1]), ([2, 9, 4, 7], [0, 3, 1, 2])]
sum(rank(values) == ranks for values, ranks in cases)"""
HIDDEN_RANK = """
ranks = np.random.permutation(11).tolist()
got = rank([7 + 3 * n for n in ranks])
assert sorted(got) == list(range(11))
assert got == ranks == rank(ranks)
"""
WORDS = """\
found = words("a b a")
assert found == {"a": 2, "b": 1}
assert sum(words("to be or not to be").values()) == 6"""
FILL = """\
x = np.array([1.0, np.nan, 3.0])
assert fill(x, 0.5) is None
assert x.tolist() == [1.0, 0.5, 3.0]"""
FIRST = """\
assert first(["a", "b", "c"], 2) == ["a", "b"]
try:
    first([1], 2)
except ValueError as error:
    assert "2" in str(error)
else:
    raise AssertionError("more items than there are: expected a ValueError")
np.testing.assert_raises(ValueError, first, [1, 2], -1)"""
HALVE = """\
numbers = [3.0, 8.0, -1.0]
for number, half in zip(numbers, map(halve, numbers)):
    assert half == number / 2"""
HIDDEN_HALVE = """
number = float(np.random.normal())
assert abs(halve(number) - number / 2) < 1e-12
"""
# Tests as people write them: what is expected is worked out after the call.
DOUBLE = """\
x = np.random.normal(size=(4, 3))
out = double(x)
assert np.allclose(out, 2 * x)"""
HIDDEN_DOUBLE = """
x = np.random.uniform(1, 9, size=(3, 5))
assert np.allclose(double(x), 2 * x)
assert (double(x) == x + x).all()
"""
POWER = "cube = power(3)\nassert cube(2) == 8\nassert power(2)(cube(2)) == 64"

NUMPY = notebook(
    cell("# Mixing", code=False),
    cell(IMPORTS),
    *task("center", RIGHT["center"], graded("points_center", CENTER, 2)),
    hidden("hidden_center", HIDDEN_CENTER),
    *task("rank", RIGHT["rank"], graded("points_rank", RANK, 4)),
    hidden("hidden_rank", HIDDEN_RANK),
    *task("words", RIGHT["words"], graded("points_words", WORDS, 2)),
    *task("fill", RIGHT["fill"], graded("points_fill", FILL, 2)),
    *task("first", RIGHT["first"], graded("points_first", FIRST, 2)),
    *task("halve", RIGHT["halve"], graded("points_halve", HALVE, 1)),
    hidden("hidden_halve", HIDDEN_HALVE),
    *task("double", RIGHT["double"], graded("points_double", DOUBLE, 1)),
    hidden("hidden_double", HIDDEN_DOUBLE),
    *task("power", RIGHT["power"], graded("points_power", POWER, 1)),
    *task("mix", RIGHT["mix"], locked("check_mix", 'check("mixing.mix", mix)')),
    graded("points_mix", 'examine("mixing.mix", mix).earned', 7),
)

SQUASH = """\
x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
size = 1 + x.detach().abs()
out = squash(x)
assert torch.allclose(out, x.detach() / size)
(gradient,) = torch.autograd.grad(out.sum(), x)
assert torch.allclose(gradient, size**-2)"""
ATTENTION = 'examine("kqv.scaled_dot_product_attention", scaled_dot_product_attention).earned'
HIDDEN_HEAD = """
zeros, W = torch.zeros(4, 5), torch.randn(3, 5)
head = AttentionHead(5, 4, 3)
assert isinstance(head, nn.Module)
state = {"W_q.weight": zeros, "W_k.weight": zeros, "W_v.weight": W}
head.load_state_dict(state, strict=False)
x = torch.randn(7, 5)
expected = (x @ W.T).mean(0).expand(7, 3)
assert torch.allclose(head(x), expected, atol=1e-5)
"""

TORCH = notebook(
    cell("# Queries, keys and values", code=False),
    cell(TORCH_IMPORTS),
    *task("squash", TORCH_RIGHT["squash"], graded("points_squash", SQUASH, 2)),
    *task(
        "scaled_dot_product_attention",
        TORCH_RIGHT["scaled_dot_product_attention"],
        graded("points_scaled_dot_product_attention", ATTENTION, 11),
    ),
    *task("AttentionHead", TORCH_RIGHT["AttentionHead"]),
    locked("check_AttentionHead", 'check("kqv.AttentionHead", AttentionHead)'),
    graded("points_AttentionHead", 'examine("kqv.AttentionHead", AttentionHead).earned', 13),
    hidden("hidden_AttentionHead", HIDDEN_HEAD),
)


@dataclass(frozen=True)
class Work:
    """One of the assignments: its name, the instructor's notebook and the right answers."""

    name: str
    source: bytes
    right: dict[str, str]

    @property
    def points(self) -> dict[str, float]:
        """Return the maximum of each automatically graded cell."""
        marks = [c["metadata"].get("nbgrader", {}) for c in json.loads(self.source)["cells"]]
        tests = [m for m in marks if m.get("grade") and not m.get("solution")]
        return {m["grade_id"]: m["points"] for m in tests}

    def cells_of(self, task: str) -> list[str]:
        """Return the graded cells of one exercise."""
        return [grade_id for grade_id in self.points if grade_id.split("_", 1)[1] == task]

    def released(self) -> dict:
        """Return the notebook that students get, without answers and hidden tests."""
        content = json.loads(self.source)
        for released_cell in content["cells"]:
            released_cell["source"] = "".join(released_cell["source"])
            if released_cell["metadata"].get("nbgrader", {}).get("solution"):
                released_cell["source"] = STUB
            released_cell["source"] = released_cell["source"].split("### BEGIN HIDDEN")[0].rstrip()
        return content


MIXING = Work("02_mixing", NUMPY, RIGHT)
KQV = Work("05_kqv", TORCH, TORCH_RIGHT)
# What the damaged ones were before: the small assignment of other tests, and chapter 5's own.
SMALL = Work("01_small", small(), dict(zip(("add", "twice"), SMALL_RIGHT, strict=True)))
CHAPTER_5 = Work("05_kqv", SOLVED.read_bytes(), CLASS["amara-matrices"])
WORKS = (MIXING, KQV, SMALL, CHAPTER_5)


@dataclass(frozen=True)
class Hostile:
    """One submission, what it tries and the points it deserves, by graded cell.

    ``answers`` are the sources of solution cells; the others hold the right ones if ``honest``,
    else they are as released. ``edit`` changes the finished notebook, ``files`` lie beside it,
    and with ``link`` it is no file but a link to that path. With ``damage``, that is what happened
    to it last. ``again``: it counts, too, what a second, equal submission gets when it is graded
    after the first. ``slow``: it runs into a limit.
    """

    name: str
    kind: str
    why: str
    deserves: dict[str, float]
    answers: dict[str, str] = field(default_factory=dict)
    honest: bool = False
    edit: Callable[[dict], None] | None = None
    files: dict[str, str] = field(default_factory=dict)
    link: str = ""
    damage: Callable[[bytes], bytes] | None = None
    again: bool = False
    slow: bool = False
    work: Work = MIXING

    @property
    def points(self) -> float:
        return sum(self.deserves.values())

    def notebook(self) -> bytes:
        """Return the notebook that the student hands in."""
        content = self.work.released()
        answers = (self.work.right if self.honest else {}) | self.answers
        for notebook_cell in content["cells"]:
            grade_id = notebook_cell["metadata"].get("nbgrader", {}).get("grade_id")
            notebook_cell["source"] = answers.get(grade_id, notebook_cell["source"])
        if self.edit:
            self.edit(content)
        data = json.dumps(content, indent=1).encode()
        return self.damage(data) if self.damage else data


def tries(
    kind: str, name: str, why: str, earns: dict | None = None, *, work: Work = MIXING, **arguments
) -> Hostile:
    """A submission that has no other answer than its trick: it deserves nothing but ``earns``."""
    deserves = dict.fromkeys(work.points, 0) | (earns or {})
    return Hostile(name, kind, why, deserves, work=work, **fields_and_answers(arguments))


def spoils(
    kind: str, name: str, why: str, earns: dict | None = None, *, work: Work = MIXING, **arguments
) -> Hostile:
    """A submission that is right but for the exercises it gives answers to.

    Of those it deserves ``earns``; all others have to keep their points.
    """
    known = fields_and_answers(arguments)
    lost = [grade_id for task in known["answers"] for grade_id in work.cells_of(task)]
    deserves = work.points | dict.fromkeys(lost, 0) | (earns or {})
    return Hostile(name, kind, why, deserves, honest=True, work=work, **known)


def keeps(kind: str, name: str, why: str, *, work: Work = MIXING, **arguments) -> Hostile:
    """A submission whose answers are all right, whatever else they do: it deserves everything."""
    return Hostile(
        name, kind, why, work.points, honest=True, work=work, **fields_and_answers(arguments)
    )


def fields_and_answers(arguments: dict) -> dict:
    """Split arguments into fields of ``Hostile`` and answers by exercise, without indentation."""
    fields = {name: arguments[name] for name in arguments if name in Hostile.__dataclass_fields__}
    answers = {name: dedent(arguments[name]).strip() for name in arguments if name not in fields}
    return {**fields, "answers": answers}
