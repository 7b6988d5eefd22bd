"""The generated notebooks: fresh, plain, without answers, and running away from the repository."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from fractions import Fraction
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from types import SimpleNamespace

import colab
import course as settings
import jupytext
import nbformat
import pytest

from attncourse import __version__
from helpers.notebook_runs import CELL, PageOutOfTime, stop
from helpers.project import FIXTURE, ROOT, copy_course, run_tool

COURSE = settings.load(ROOT)
FOLDERS = [chapter.folder for chapter in COURSE.chapters]
PAGES = [f"book/{folder}.ipynb" for folder in FOLDERS]
SOLVED = [f"solutions/{folder}/{folder}.ipynb" for folder in FOLDERS]
TASKS = [f"exercises/{folder}/{folder}.ipynb" for folder in FOLDERS]

FILE_PATTERN = r"\.{0,2}/.*|[\w./-]+\.(csv|ipynb|json|md|npy|npz|png|pt|py|svg|txt)"

MYST = {
    "directive": r"^\s*>?\s*(`{3,}|:{3,}|~{3,})\s*\{",
    "colon fence": r"^\s*>?\s*:{3,}",
    "role": r"\{[a-z][\w:.-]*\}`[^`\n]+`",
    "label": r"^\([\w.:-]+\)=",
    "front matter": r"\A---$",
    "comment": r"^% ",
    "cell break": r"^\+\+\+",
    "option": r"^\s*>?\s*:(label|name|tags|class|alt):",
    "footnote": r"\[\^\w+\]",
    "substitution": r"\{\{\s*\w+\s*\}\}",
    "macro": r"\\(query|key|val|weight)\b",
}


def read_notebook(path: Path | str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / path, as_version=4)


def myst_in(notebook: nbformat.NotebookNode) -> list[str]:
    """Return every piece of MyST that is left in a notebook's Markdown."""
    pieces = []
    for cell in notebook.cells:
        text = re.sub(r"(?ms)^(> ?)*```.*?^(> ?)*```", "", cell.source)  # code shown as code
        if cell.cell_type == "code":
            text = "\n".join(re.findall(r"(?m)^\s*#(.*)$", cell.source))
        for kind, pattern in MYST.items():
            pieces += [f"{kind}: {m[0]}" for m in re.finditer(pattern, text, re.MULTILINE)]
    return pieces


# The generated files


@pytest.mark.slow
def test_only_stale_files_are_named(tmp_path):
    root = copy_course(tmp_path / "course", "solutions", "exercises")
    answers = root / "solutions" / FOLDERS[0] / f"{FOLDERS[0]}.py"
    answers.write_text(answers.read_text() + "\n# %%\n1 + 1\n")
    page = root / "book" / f"{FOLDERS[1]}.ipynb"
    page.write_text(page.read_text() + "\n")
    stale = run_tool("exercises", "--check", "--root", root)
    assert stale.returncode == 1
    assert re.findall(r"stale: (\S+) \(run make exercises\)", stale.stderr) == [
        f"book/{FOLDERS[1]}.ipynb",
        f"solutions/{FOLDERS[0]}/{FOLDERS[0]}.ipynb",
        f"exercises/{FOLDERS[0]}/{FOLDERS[0]}.ipynb",
    ]


@pytest.mark.parametrize("path", PAGES + SOLVED + TASKS)
def test_a_notebook_begins_with_badge_and_install(path):
    notebook = read_notebook(path)
    assert myst_in(notebook) == []
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    head, install = notebook.cells[:2]
    assert head.source.startswith("# ")
    assert COURSE.badge(path.replace("solutions/", "exercises/")) in head.source
    assert install.source == COURSE.install(Path(path).stem.split("_", 1)[1])
    for cell in notebook.cells:
        assert cell.source.strip()
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_chapters_notebook_holds_the_code_of_its_page(folder):
    page = jupytext.read(ROOT / "book" / f"{folder}.md")
    code = [
        cell.source
        for cell in page.cells
        if cell.cell_type == "code" and "check-prose" not in cell.metadata.get("tags", ())
    ]
    notebook = read_notebook(f"book/{folder}.ipynb")
    install = COURSE.install(folder.split("_", 1)[1])
    assert [c.source for c in notebook.cells if c.cell_type == "code"] == [install, *code]


@pytest.mark.parametrize("path", PAGES)
def test_a_pages_code_reads_no_file_beside_it(path):
    """None is there beside its notebook; where a page is stopped away from here, none is tried."""
    code = "\n".join(c.source for c in read_notebook(path).cells[2:] if c.cell_type == "code")
    named = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
    assert [
        text for text in named if isinstance(text, str) and re.fullmatch(FILE_PATTERN, text)
    ] == []


@pytest.mark.parametrize("path", TASKS)
def test_run_all_goes_on_after_a_wrong_answer(path):
    cells = [cell for cell in read_notebook(path).cells if cell.cell_type == "code"]
    first = next(n for n, cell in enumerate(cells) if cell.metadata.get("nbgrader"))
    tagged = ["raises-exception" in cell.metadata.get("tags", []) for cell in cells]
    assert tagged == [first <= n < len(cells) - 1 for n in range(len(cells))]
    stem = Path(path).stem.split("_", 1)[1]
    assert cells[-1].source == f'from attncourse.checks import progress\n\nprogress("{stem}")'


@pytest.mark.slow
def test_the_repository_setting_moves_every_badge(tmp_path):
    root = copy_course(tmp_path / "course", "solutions", "exercises")
    config = (root / "_config.yml").read_text()
    config = re.sub(r"(?m)^  url: .*", "  url: https://github.com/someone/else", config)
    (root / "_config.yml").write_text(re.sub(r"(?m)^  branch: .*", "  branch: spring", config))
    process = run_tool("exercises", "--root", root)
    assert process.returncode == 0, process.stderr
    for path in [*PAGES, *SOLVED, *TASKS, "README.md"]:
        text = (root / path).read_text()
        assert COURSE.slug not in text
        assert "/github/someone/else/blob/spring/" in text
        if path != "README.md":
            source = "https://github.com/someone/else/releases/download/v"
            assert f'_install(\\"{__version__}\\", \\"{source}' in text


# Answers and hidden tests stay at home


GRAMMAR = r"return \w+|raise \w+(\(\))?|super\(\).__init__\(\)|with torch.no_grad\(\):"


def is_answer_line(line: str) -> bool:
    """True if a line is an answer, and no phrase that any code may share."""
    line = line.strip()
    return (
        len(line) >= 12
        and not line.startswith(("#", "import ", "from ", "def ", "class ", '"""'))
        and re.fullmatch(GRAMMAR, line) is None
    )


def regions(source: str, name: str) -> list[str]:
    """Return the texts between the markers of this name."""
    return re.findall(rf"### BEGIN {name}\n(.*?)### END {name}", source, re.DOTALL)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_answer_and_no_hidden_test_is_released(folder):
    source = (ROOT / "solutions" / folder / f"{folder}.py").read_text()
    text = "\n".join(
        cell.source for cell in read_notebook(f"exercises/{folder}/{folder}.ipynb").cells
    )
    released = {line.strip(" #>`") for line in text.splitlines()}
    for name in ("SOLUTION", "HIDDEN TESTS"):
        parts = regions(source, name)
        assert parts, f"{folder} has no {name} region"
        lines = [x.strip() for part in parts for x in part.splitlines() if is_answer_line(x)]
        assert lines
        assert [line for line in lines if line.strip(" #>`") in released] == []
        assert f"BEGIN {name}" not in text
    to_write = text.count("raise NotImplementedError()") + text.count("YOUR ANSWER HERE")
    assert to_write == len(regions(source, "SOLUTION"))


def test_the_release_holds_notebooks_only():
    files = [path for path in (ROOT / "exercises").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".ipynb"}


TOKEN = re.compile(r"[A-Za-z_]\w*|-?\d+(?:/\d+|\.\d*)?(?:e-?\d+)?")


def shows_expected(shown: str, expected: str) -> bool:
    """True if the output has the expected words and numbers in order, to the digits given."""
    tokens = iter(TOKEN.findall(shown))
    return all(
        any(same_token(word, shown_token) for shown_token in tokens)
        for word in TOKEN.findall(expected)
    )


def same_token(word: str, shown: str) -> bool:
    try:
        digits = 4 if "/" in word else len(word.partition(".")[2])
        return abs(Fraction(word) - Fraction(shown)) <= Fraction(1, 2 * 10**digits)
    except ValueError:
        return word == shown


@pytest.mark.parametrize("path", SOLVED)
def test_an_example_gives_what_its_text_expects(path):
    names, text, compared = {}, "", 0
    for cell in read_notebook(path).cells:
        if cell.cell_type == "markdown":
            text = cell.source.partition("Expect")[2]
        elif not re.match(r"#@title|check\(|progress\(", cell.source) and not cell.metadata.get(
            "nbgrader", {}
        ).get("grade"):
            shown = shown_by(cell.source, names)
            for expected in re.findall("`([^`]+)`", text):
                assert shows_expected(shown, expected), (expected, shown)
                compared += 1
            text = ""
    assert compared or not re.search(
        "Expect[^\n]*`", "".join(c.source for c in read_notebook(path).cells)
    )


def shown_by(source: str, names: dict) -> str:
    """Return what a cell prints and its last line's value, as a notebook shows it."""
    body, printed = ast.parse(source).body, io.StringIO()
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else ""
    return f"{printed.getvalue()} {value!r}"


# The notebooks run where there is no repository


FAILING_NOTEBOOKS = {  # notebooks, and what is said of each
    "odd/failing/error.ipynb": ("1 / 0", "ZeroDivisionError"),
    "odd/failing/stderr.ipynb": ("import sys; print('oh', file=sys.stderr)", "writes on stderr"),
    "odd/failing/file.ipynb": ("open('README.md')", "FileNotFoundError"),
    # A page may be stopped where no traceback can be made, as in a library's code whose lines have
    # no numbers: IPython fails over them.
    "odd/book/endless.ipynb": (
        "def spin():\n    while True:\n        pass\n\n\n"
        "spin.__code__ = spin.__code__.replace(co_linetable=b'')\nspin()",
        "",
    ),
}


@pytest.fixture(scope="module")
def wheel_environment(tmp_path_factory) -> Path:
    """Return a folder with a Python that has the built wheel and not the repository."""
    base = tmp_path_factory.mktemp("elsewhere")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", base, ROOT],
        check=True,
        capture_output=True,
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base / "env"], check=True)
    packages = next((base / "env" / "lib").glob("python3.*")) / "site-packages"
    wheel = next(base.glob("*.whl"))
    shutil.unpack_archive(wheel, packages, format="zip")
    # Python reads no .pth file of a folder that a .pth file adds: the editable install that
    # our own environment holds does not leak into this one.
    dependencies = next((Path(sys.prefix) / "lib").glob("python3.*")) / "site-packages"
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return base


def run_notebooks(wheel_environment: Path, *paths: Path) -> dict[Path, dict[str, str]]:
    """Run each notebook in an empty folder with the wheel's Python; return its results."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    inline = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # as in Jupyter
    process = subprocess.run(
        [
            wheel_environment / "env/bin/python",
            ROOT / "tests/helpers/notebook_runs.py",
            wheel_environment / "empty",
            *paths,
        ],
        cwd=wheel_environment,
        env=environment | inline | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    rows = map(json.loads, process.stdout.splitlines())
    return {Path(row.pop("path")): row for row in rows}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel_environment):
    """So what the book's build runs here finds the same there; READMEs are for who changes it."""
    packages = next((wheel_environment / "env" / "lib").glob("python3.*")) / "site-packages"
    repository_files, wheel_files = (
        {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.name != "README.md"
        }
        for root in (ROOT / "attncourse", packages / "attncourse")
    )
    assert repository_files.keys() == wheel_files.keys()
    assert repository_files == wheel_files


@pytest.fixture(scope="module")
def results(wheel_environment) -> dict[Path, dict[str, str]]:
    """Return the results of all chapters, solved exercises and failing notebooks."""
    paths = [ROOT / path for path in PAGES + SOLVED]
    for name, (code, _) in FAILING_NOTEBOOKS.items():
        paths.append(wheel_environment / name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_text(colab.as_notebook([colab.cell(1, "code", code, {})]))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda n: run_notebooks(wheel_environment, *paths[n::2]), range(2))
    return first | second


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES + SOLVED)
def test_a_notebook_runs_with_the_wheel_alone(path, results, wheel_environment):
    result = results[ROOT / path]
    assert result["wrong"] == ""
    assert Path(result["package"]).is_relative_to(wheel_environment / "env")


def test_the_clock_of_a_page_rings_in_a_cell_only():
    """The shell's own code would leave a coroutine behind, which warns that nobody awaited it."""
    stop(signal.SIGVTALRM, sys._getframe())
    ring = compile("stop(number, sys._getframe())", f"{CELL}1-abc>", "exec")
    with pytest.raises(PageOutOfTime):
        exec(ring, {"stop": stop, "number": signal.SIGVTALRM, "sys": sys})


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILING_NOTEBOOKS)
def test_a_notebook_that_fails_is_reported(name, results, wheel_environment):
    complaint, error = FAILING_NOTEBOOKS[name][1], results[wheel_environment / name]["wrong"]
    assert complaint in error if complaint else error == ""


# What the package imports is what it declares


def imported_modules(path: Path) -> set[str]:
    """Return the top-level modules that a file imports.

    Left out: what it can do without (`try … except ImportError`), and IPython inside a function,
    which is called in a notebook only.
    """
    tree = ast.parse(path.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.module == "IPython.display"
    }
    optional = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try)
        and any("ImportError" in ast.dump(h) or "NotFound" in ast.dump(h) for h in block.handlers)
        for statement in block.body
        for node in ast.walk(statement)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in optional | inside:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"attncourse"}


def test_the_package_declares_what_it_imports():
    projects = packages_distributions()  # sklearn is scikit-learn's
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(lines: list[str]) -> set[str]:
        return {re.match(r"[\w.-]+", line)[0].lower().replace("-", "_") for line in lines}

    declared = names(project["dependencies"])
    extras = project["optional-dependencies"]
    graders = names(extras["grade"] + extras["dask"]) | names(requires("nbgrader"))
    for path in sorted((ROOT / "attncourse").rglob("*.py")):
        allowed = declared | graders if "grading" in path.parts else declared
        if path.name == "pretrained.py":
            allowed = declared | names(extras["gpt2"])
        if path.name in ("byte_pairs.py", "gguf_file.py", "model.py"):
            allowed = declared | names(extras["model"])
        for name in imported_modules(path):
            assert names(projects.get(name, [name])) & allowed, (name, path.relative_to(ROOT))


# The converter, on a small course that holds the whole dialect


@pytest.fixture
def small_course(tmp_path) -> Path:
    return copy_course(tmp_path / "small", source=FIXTURE)


def converted(root: Path, page: str = "book/01_alpha") -> nbformat.NotebookNode:
    return nbformat.reads(colab.notebook(colab.Index(settings.load(root)), page), as_version=4)


def test_the_whole_dialect_becomes_plain_markdown(small_course):
    notebook = converted(small_course)
    assert myst_in(notebook) == []
    text = "\n\n".join(cell.source for cell in notebook.cells)
    blob = "https://github.com/attncourse/attncourse/blob/main/book"
    beta = settings.load(small_course).colab("book/02_beta.ipynb")
    for expected in (
        "# 1. Why $x^2$ comes first\n\n[![Open in Colab](",
        "The sum in (1.1) is taken over rows, as in (1) of",
        f"[Notation]({blob}/notation.md) and [the notation's rows]({blob}/notation.md)",
        "`{eq}` in code",
        "It costs \\$5",
        "See (Müller and Li, 2015; Three et al., 2017), Müller and Li (2015) and Solo (1964).",
        "$$\ns = \\sum_i x_i\n\\tag{1.1}\n$$",
        "An *attention weight* is a number; two *weights* are two.",
        "$$\ny = s^2 \\quad\\text{without a number}\n$$",
        "**Figure 1.1.** A line of slope $2$, as (1.1) and Solo (1964) want it.",
        "drawn as two boxes.](https://github.com/attncourse/attncourse/raw/main/book/assets/",
        "**Figure 1.2.** A badge from a file.",
        "Figure 1.1 comes before Figure 1.2, and\nFigure 2.1 is elsewhere, beyond (2.2).",
        "In colours: ${\\color{#1a7fc1}{Q_{1}}}{\\color{#c2611f}{K}}^\\top$, and",
        "$$\n{A}{\\color{#138a67}{V_{\\text{all}}}}\n$$",
        "| a | $1$ |",
        "> **Note**\n>\n> A note with (1.1) and **bold** text.\n>\n> $$\n> a = b\n> $$",
        "> **Seen in the `wild`**\n>\n> A box around a fold.\n>\n> <details>\n"
        "> <summary><b>What is $1 + 1$ in bold?</b></summary>\n>\n> It is $2$.",
        "> \\tag{1.2}\n> $$\n>\n> </details>",
        '> ```python\n> print("a plain fence, ::: and all")\n> ```',
        f"> Read *Pictures with `code`* and [The end of *it*]({beta}).",
        "- Jörg Müller and Ana Li (2015). *A paper by two*. Journal of Examples. "
        "<https://doi.org/10.1000/example>",
    ):
        assert expected in text, expected
    tags = [cell.metadata.get("tags") for cell in notebook.cells if cell.cell_type == "code"]
    assert tags == [None, ["hide-input"], ["remove-cell"], None]
    assert "mystnb" not in str(notebook)


@pytest.mark.parametrize(
    ("addition", "complaint"),
    [
        ("So $\\query Q$.", "expected braces after a macro, came 'Q$.'"),
        ("So $\\query{Q$.", "expected a closing brace"),
        ("{sup}`2`", "the role {sup} is not part"),
        ("```{list-table}\n```", "{list-table} is not part"),
        ("{eq}`eq-nowhere`", "there is no equation with this label"),
        ("{numref}`eq-beta-one`", "there is no figure with this label"),
        ("{ref}`nowhere`", "there is no section with this label"),
        ("{doc}`nowhere`", "there is no such page"),
        ("{cite:p}`nobody1900`", "'nobody1900' is not in book/references.bib"),
        ("[x](figure.png)", "leads nowhere from a notebook"),
        ("a note[^1]", "a MyST footnote is not allowed"),
        ("{{ name }}", "a MyST substitution is not allowed"),
        ("% hidden", "a MyST comment"),
        ("+++", "a MyST cell break"),
        ("$$ a $$ (eq-a)", "a label after $$"),
        ("  ```{note}\n  ```", "an indented directive"),
        (":::{note}\nno end", "is never closed"),
        (":::{note}\n```{code-cell} ipython3\n1\n```\n:::", "would not be executed"),
        (":::{admonition}\nx\n:::", "has no title"),
        ("```{code-cell} ipython3\n:tags: [odd]\n1\n```", "unknown tags ['odd']"),
        ("```{math}\n:nowrap: true\na\n```", "has an option 'nowrap'"),
        ("```{figure} assets/none.svg\n```", "there is no file book/assets/none.svg"),
        ("```{math}\n:label: eq-beta-one\na\n```", "the label 'eq-beta-one' is used twice"),
    ],
)
def test_other_markup_is_an_error_with_file_and_line(small_course, addition, complaint):
    page = small_course / "book" / "02_beta.md"
    lines = page.read_text().count("\n")
    page.write_text(f"{page.read_text()}\n{addition}\n")
    with pytest.raises(settings.CourseError, match=re.escape(complaint)) as caught:
        converted(small_course, "book/02_beta")
    line = int(re.match(r"book/02_beta\.md:(\d+): ", str(caught.value))[1])
    assert lines + 2 <= line <= lines + 3


# What `make exercises` refuses


SOURCE = """# %% [markdown]
# # Exercises
#
# <!-- facts: double -->
#
# <!-- hints: double -->
#
# 1. Add the number
#    to itself.
# 2. Twice: `2 * x`.
#
# A last word.

# %% nbgrader={"grade_id": "double", "solution": true}
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% nbgrader={"grade_id": "check_double", "locked": true}
check("alpha.double", double)

# %% nbgrader={"grade_id": "points_double", "grade": true, "locked": true}
examine("alpha.double", double).earned

# %% nbgrader={"grade_id": "hidden_double", "grade": true, "locked": true, "points": 1}
### BEGIN HIDDEN TESTS
assert double(2) == 4
### END HIDDEN TESTS
"""


INSTRUCTORS_CELL = """
# %% nbgrader={"grade_id": "own_recall", "grade": true, "locked": true, "points": 5}
assert double(2) == 4
"""


def solve(small_course: Path, source: str) -> nbformat.NotebookNode:
    import exercises

    course = settings.load(small_course)
    path = small_course / "solutions" / "01_alpha" / "01_alpha.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    double = SimpleNamespace(points=3, difficulty=2, minutes=5, section="Chapter 1, “Twice”")
    text = exercises.solved(course, course.chapters[0], {"double": double})
    return nbformat.reads(text, as_version=4)


def test_answers_are_completed_to_what_nbgrader_wants(small_course):
    cells = solve(small_course, SOURCE).cells
    assert [cell.id for cell in cells] == [
        *("cell-1", "install", "double", "check_double", "points_double", "hidden_double"),
        *("progress-title", "progress"),
    ]
    answers = cells[2:-2]
    assert [cell.metadata.nbgrader.get("points") for cell in answers] == [None, None, 3, 1]
    assert "*Difficulty ●●○ · about 5 minutes · 3 points, and 1" in cells[0].source
    folds = "<details>\n<summary>Hint {} of 2</summary>\n\n{}\n\n</details>\n\n"
    folded = folds.format(1, "Add the number to itself.") + folds.format(2, "Twice: `2 * x`.")
    assert cells[0].source.endswith(folded + "A last word.")
    for cell in answers:
        assert cell.metadata.nbgrader.schema_version == 3
        assert cell.metadata.nbgrader.task is False


def test_outputs_of_a_failing_chapter_are_not_called_stray(small_course):
    """A wrong cell is one complaint, and not one about the good files beside it as well."""
    import exercises

    course = settings.load(small_course)
    folder = course.chapters[0].folder
    for name in (f"{folder}.ipynb", "left over.txt", ".ipynb_checkpoints/x.ipynb"):
        path = small_course / "exercises" / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    stray_files = list(exercises.strangers(course, set()))
    assert stray_files == [f"exercises/{folder}/left over.txt comes from no source; delete it"]


def test_an_instructor_adds_a_graded_cell(small_course):
    cells = solve(small_course, SOURCE + INSTRUCTORS_CELL).cells
    marks = cells[-3].metadata.nbgrader
    assert (marks.grade_id, marks.points, marks.locked) == ("own_recall", 5, True)
    assert cells[-3].source == "assert double(2) == 4"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"check_double"', '"test_double"', "'test_double' is none of x, check_x, points_x"),
        ('"points_double"', '"points_triple"', "'points_triple' is none of"),
        ('"check_double"', '"double"', "double has {'locked': True}, it should have"),
        (', "points": 1', "", "a hidden cell is worth 1 point"),
        (', "points": 1', ', "points": 3', "add a graded cell of your own, own_double"),
        ("<!-- facts: double -->", "", "no cell or marker facts: double"),
        (
            "<!-- hints: double -->",
            "<!-- hints: triple -->",
            "the checks have no exercise 'triple'",
        ),
        ("# 2. Twice", "#    Twice", "<!-- hints: double -->: expected two or more behind it"),
        ('# %% nbgrader={"grade_id": "check_double", "locked": true}', "# %%", "check_double"),
        ("# # Exercises", "# Exercises", "begins with the title"),
        (
            INSTRUCTORS_CELL,
            INSTRUCTORS_CELL.replace('true, "p', 'false, "p'),
            "a graded cell of your own has",
        ),
        (
            INSTRUCTORS_CELL,
            INSTRUCTORS_CELL.replace(', "points": 5', ""),
            "a graded cell of your own has",
        ),
        (INSTRUCTORS_CELL, INSTRUCTORS_CELL.replace("5", "0"), "expected points above 0, got 0"),
        (
            INSTRUCTORS_CELL,
            INSTRUCTORS_CELL.replace("5", '"five"'),
            "expected points above 0, got 'five'",
        ),
    ],
)
def test_a_wrong_source_of_answers_is_refused(small_course, old, new, complaint):
    assert old in SOURCE + INSTRUCTORS_CELL
    with pytest.raises(settings.CourseError, match=re.escape(complaint)) as caught:
        solve(small_course, (SOURCE + INSTRUCTORS_CELL).replace(old, new))
    assert "solutions/01_alpha/01_alpha.py" in str(caught.value)
