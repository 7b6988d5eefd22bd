"""The book builds with warnings as errors, runs only what changed, and counts as Colab does."""

from __future__ import annotations

import html
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import colab
import course as settings
import execution
import nbformat
import pytest

import book
from helpers.project import FIXTURE, ROOT, copy_course, run_tool

pytestmark = pytest.mark.slow
OTHER = "https://github.com/someone/else"


def build(root: Path) -> dict[str, str]:
    """Build a book, which must succeed; return each page's status, cached or executed."""
    process = run_tool("book", "--root", root)
    assert process.returncode == 0, process.stdout + process.stderr
    return dict(re.findall(r"^  ([\w/ ]+): (cached|executed)", process.stdout, re.MULTILINE))


def runs(root: Path) -> int:
    """Return how often pages have been executed: each run leaves one folder in the cache."""
    return len(list((root / "_build" / ".jupyter_cache" / "executed").iterdir()))


def article(root: Path, page: str) -> str:
    """Return a built page's own content."""
    text = (root / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8")
    return text[text.index("<article") : text.index("</article>")]


def loaded(root: Path) -> str:
    """Return a built page's reference to the style sheet."""
    text = (root / "_build" / "html" / "book" / "01_alpha.html").read_text(encoding="utf-8")
    return re.search(r"attncourse\.css[^\"]*", text)[0]


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The fixture course, which holds every piece of the dialect, of another repository."""
    root = copy_course(tmp_path_factory.mktemp("small") / "course", source=FIXTURE)
    bytecode = shutil.ignore_patterns("__pycache__")  # which others may be writing at this moment
    shutil.copytree(ROOT / "tools", root / "tools", ignore=bytecode)
    config = (root / "_config.yml").read_text()
    (root / "_config.yml").write_text(re.sub(r"(?m)^  url: .*", f"  url: {OTHER}", config))
    (root / ".pytest_cache").mkdir()  # a cache that pytest leaves must not become a page
    (root / ".pytest_cache" / "README.md").write_text("# Not a page\n")
    assert build(root) == {"book/01_alpha": "executed", "book/02_beta": "executed"}
    return root


@pytest.fixture(scope="module")
def real_book(built) -> Path:
    """Return the course's own repository, whose book is built."""
    return built.parents[1]


@pytest.mark.parametrize("which", ["small", "real_book"])
def test_numbers_in_the_book_are_those_in_the_notebooks(which, request):
    root = request.getfixturevalue(which)
    course = settings.load(root)
    index = colab.Index(course)
    counted = 0
    for chapter in course.chapters:
        page = article(root, chapter.page)
        equations = re.findall(r'id="equation-([\w-]+)">\s*<span class="eqno">\(([\d.]+)\)', page)
        figures = re.findall(
            r'<figure[^>]* id="([\w-]+)">.*?class="caption-number">Figure ([\d.]+) ', page, re.S
        )
        labels = {
            label.replace("_", "-"): target.text  # as Sphinx writes it
            for label, target in index.targets.items()
            if target.page == chapter.page and target.kind != "section"
        }
        assert labels == dict(equations + figures)
        cells = nbformat.reads(colab.notebook(index, chapter.page), as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert re.findall(r"\\tag\{([\d.]+)\}", text) == [number for _, number in equations]
        assert re.findall(r"\*\*Figure ([\d.]+)\.\*\*", text) == [n for _, n in figures]
        title = re.search(r'<h1><span class="section-number">([\d.]+) ?</span>', page)
        assert text.startswith(f"# {title[1]} ")
        counted += len(labels)
    assert counted >= 5


@pytest.mark.parametrize("which", ["small", "real_book"])
def test_every_figure_says_in_words_what_it_shows(which, request):
    root = request.getfixturevalue(which)
    images = 0
    for chapter in settings.load(root).chapters:
        page = article(root, chapter.page).replace("attn-badges", "")
        separate_plots = re.findall(r"_images/[0-9a-f]{40,}\.svg", page)
        assert separate_plots == [], f"{chapter.page}: plots that do not follow light and dark"
        described = r'<\w+ class="attn-plots?"[^>]* role="img"[^>]*>'
        for tag in re.findall(rf"<img[^>]*_images/[^>]*>|{described}", page):
            alt = re.search(r'(?:alt|aria-label)="([^"]*)"', tag)
            words = html.unescape(alt[1]) if alt else ""
            assert len(words) >= 30, f"{chapter.page}: {tag}"
            assert len(words.split()) >= 5, f"{chapter.page}: not a sentence: {words}"
            assert not re.search(r"[0-9a-f]{16}|\.(png|svg)\b", words), f"{chapter.page}: {words}"
            images += 1
    assert images >= 3


def test_only_a_changed_chapter_runs_in_a_second_build(spoiled):
    before = runs(spoiled)
    process = run_tool("book", "--root", spoiled)
    message = "Nothing has changed since the last build"
    assert (process.returncode, process.stdout.split(".")[0]) == (0, message)
    chapter = settings.load(spoiled).chapters[1]
    path = spoiled / f"{chapter.page}.md"
    path.write_text(path.read_text() + "\n```{code-cell} ipython3\nprint('one more')\n```\n")
    pages = build(spoiled)
    assert pages == dict.fromkeys(pages, "cached") | {chapter.page: "executed"}
    assert runs(spoiled) == before + 1
    assert "one more" in article(spoiled, chapter.page)
    style, older = spoiled / "book" / "assets" / "attncourse.css", loaded(spoiled)
    style.write_text(style.read_text() + "\n/* another style */\n")
    assert build(spoiled) == {f"{len(pages)} pages": "cached"}
    assert runs(spoiled) == before + 1
    built = spoiled / "_build" / "html" / "_static" / "attncourse.css"
    assert "another style" in built.read_text()
    assert loaded(spoiled) != older  # a reader's browser has kept the older one
    # Sphinx reads all pages of a book that was built elsewhere, as this one was; now one only.
    path.write_text(path.read_text() + "\nA last sentence.\n")
    assert build(spoiled) == {f"{len(pages)} pages": "cached"}
    assert "A last sentence." in article(spoiled, chapter.page)


def test_badges_are_built_from_the_repository_setting(small):
    page = article(small, "book/01_alpha")
    colab_host = "https://colab.research.google.com/github/someone/else/blob/main"
    assert f'href="{colab_host}/book/01_alpha.ipynb"' in page
    assert f'href="{colab_host}/exercises/01_alpha/01_alpha.ipynb"' in page
    for name in re.findall(r'src="\.\./(_static/badge[^"]+)"', page):
        assert (small / "_build" / "html" / name).is_file()
    assert page.count("_static/badge") == 2
    assert "attncourse/attncourse" not in page


def test_citations_are_written_as_in_the_notebooks(small):
    words = re.sub(
        r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", article(small, "book/01_alpha")))
    )
    notebook = colab.notebook(colab.Index(settings.load(small)), "book/01_alpha")
    for citation in (
        "See (Müller and Li, 2015; Three et al., 2017), Müller and Li (2015) and Solo (1964).",
        "as (1.1) and Solo (1964) want it.",
    ):
        assert citation in words
        assert citation in notebook.replace('\\n",\n    "', " ")


def test_a_course_of_another_repository_names_its_own(small):
    site = "https://someone.github.io/else/"
    page = (small / "_build" / "html" / "book" / "01_alpha.html").read_text()
    assert f'<link rel="canonical" href="{site}book/01_alpha.html" />' in page
    sitemap = (small / "_build" / "html" / "sitemap.xml").read_text()
    assert f"<loc>{site}book/02_beta.html</loc>" in sitemap


@pytest.mark.parametrize(
    ("url", "base", "site"),
    [
        ("https://github.com/Some-One/else.git", "", "https://some-one.github.io/else/"),
        ("https://github.com/me/me.github.io", "", "https://me.github.io/"),
        ("https://github.com/me/x", "https://books.example/x", "https://books.example/x/"),
        ("https://gitlab.example/me/x", "", ""),
        ("https://github.com.example/me/x", "", ""),
    ],
)
def test_the_books_address_comes_from_its_repository(url, base, site):
    assert settings.site({"repository": {"url": url}, "html": {"baseurl": base}}) == site


def test_no_sitemap_without_the_books_address(spoiled):
    config = spoiled / "_config.yml"
    text = re.sub(r"(?m)^  url: .*", "  url: https://gitlab.example/me/book", config.read_text())
    config.write_text(
        re.sub(r"launch_buttons:\n.*\n", "", text)
    )  # which Colab has for GitHub alone
    process = run_tool("book", "--root", spoiled)
    assert process.returncode == 0, process.stderr
    assert not (spoiled / "_build" / "html" / "sitemap.xml").exists()
    page = (spoiled / "_build" / "html" / "book" / "01_alpha.html").read_text()
    assert 'rel="canonical"' not in page
    assert "og:image" not in page


def test_no_page_declares_thebe_twice(small):
    page = (small / "_build" / "html" / "book" / "01_alpha.html").read_text()
    assert "THEBE_JS_URL" not in page


@pytest.fixture
def spoiled(small, tmp_path) -> Path:
    """A copy of the small book, built, to be spoiled."""
    return Path(shutil.copytree(small, tmp_path / "course"))


def test_a_page_that_raises_fails_the_build_with_its_name(spoiled):
    page = spoiled / "book" / "02_beta.md"
    page.write_text(page.read_text() + "\n```{code-cell} ipython3\n1 / 0\n```\n")
    process = run_tool("book", "--root", spoiled)
    assert process.returncode == 1
    assert "book/02_beta.md failed" in process.stderr
    assert "ZeroDivisionError: division by zero" in process.stderr


def test_warnings_and_stderr_fail_this_build_and_the_next(spoiled):
    page = spoiled / "book" / "02_beta.md"
    code = "```{code-cell} ipython3\nimport sys\nprint('oh', file=sys.stderr)\n```"
    page.write_text(f"{page.read_text()}\n{{eq}}`eq-nowhere`\n\n{code}\n")
    for _ in range(2):
        process = run_tool("book", "--root", spoiled)
        assert process.returncode == 1
        assert "book/02_beta.md" in process.stderr
        assert "eq-nowhere" in process.stderr
        assert "stderr was found in the cell outputs" in process.stderr


DYING = """
```{code-cell} ipython3
import os, pathlib
mark = pathlib.Path("died-once")
if MORE or not mark.exists():
    mark.touch()
    os._exit(1)
```
"""


@pytest.mark.parametrize("more", [False, True])
def test_a_page_whose_kernel_dies_is_run_once_more(spoiled, more):
    page = spoiled / "book" / "02_beta.md"
    page.write_text(page.read_text() + DYING.replace("MORE", str(more)))
    process = run_tool("book", "--root", spoiled)
    assert re.search(
        r"at the second try \(DeadKernelError: .*; its process ended with status 1: see _build/",
        process.stdout,
    )
    assert "DeadKernelError" in (spoiled / "_build" / "lost-kernels.log").read_text()
    assert process.returncode == more
    assert ("book/02_beta.md failed" in process.stderr) == more


def test_caching_a_pages_outputs_drops_no_other_pages(tmp_path):
    """Those that another process keeps at the same moment would be among them."""
    from jupyter_cache.base import CacheBundleIn

    cache = execution.cache_of(SimpleNamespace(root=tmp_path))
    cache.change_cache_limit(1)
    elsewhere = pickle.loads(pickle.dumps(cache))  # as a page's own process has it
    for page in "ab":
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(page)])
        elsewhere.cache_notebook_bundle(CacheBundleIn(notebook, page), check_validity=False)
    assert len(cache.list_cache_records()) == 2


WATCHED_RUN = """
import multiprocessing
import sys
from contextlib import contextmanager
from pathlib import Path

import course as settings
import execution
import forked_kernel
from jupyter_cache.cache.main import JupyterCacheBase

course = settings.load(Path(sys.argv[1]))
parting = []
make_pool, database = forked_kernel.workers, JupyterCacheBase.db


@contextmanager
def watched_pool(pages):
    with make_pool(pages) as pool:
        parting.append(True)
        yield pool
        parting.clear()


def database_of(cache):
    assert not parting or multiprocessing.parent_process(), "asked while pages run"
    return database.fget(cache)


forked_kernel.workers = watched_pool
JupyterCacheBase.db = property(database_of)
outcome, failures = execution.run_pages(course)
print(failures, *sorted(run.partition(" in ")[0] for run in outcome.values()))
"""


def test_the_build_asks_the_cache_nothing_while_pages_run(spoiled):
    """A process that parts in the middle of a read finds the database locked by nobody."""
    course = settings.load(spoiled)
    execution.drop_outputs(course, list(course.pages))
    command = [sys.executable, "-c", WATCHED_RUN, str(spoiled)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == "{} executed executed"


def test_bytecode_is_no_dependency_of_a_page(tmp_path):
    """Other processes import the package while the book is built: such a file comes and goes."""
    copy_course(tmp_path / "course", source=FIXTURE)
    course = settings.load(tmp_path / "course")
    room = course.root / "attncourse" / "figures"
    (room / "__pycache__").mkdir(parents=True)
    drawing = room / "view.py"
    drawing.write_text("one")
    before = book.page_key(course, course.pages[0])
    (room / "__pycache__" / "view.cpython-311.pyc.139915285218224").write_text("half")
    assert book.page_key(course, course.pages[0]) == before
    drawing.write_text("another")
    assert book.page_key(course, course.pages[0]) != before


def test_pages_can_be_run_before_they_are_laid_out(spoiled):
    shutil.rmtree(spoiled / "_build")
    process = run_tool("book", "--run", "--root", spoiled)
    assert process.returncode == 0, process.stdout + process.stderr
    assert not (spoiled / "_build" / "html").exists()
    ran = re.findall(r"^  (book/\w+): executed", process.stdout, re.MULTILINE)
    assert runs(spoiled) == len(ran) > 0
    assert build(spoiled) == {}  # which are not even asked for their outputs again
    assert runs(spoiled) == len(ran)
    assert (spoiled / "_build" / "html" / "index.html").exists()


def test_a_page_changed_before_the_layout_runs_again(spoiled):
    shutil.rmtree(spoiled / "_build")
    assert run_tool("book", "--run", "--root", spoiled).returncode == 0
    page = spoiled / "book" / "01_alpha.md"
    page.write_text(page.read_text() + "\n```{code-cell} python\nprint(6 * 7)\n```\n")
    assert build(spoiled) == {"book/01_alpha": "executed", "book/02_beta": "cached"}
    assert "<span></span>42" in article(spoiled, "book/01_alpha")


def test_outputs_are_dropped_when_imports_change(spoiled):
    before = runs(spoiled)
    (spoiled / "attncourse").mkdir()
    (spoiled / "attncourse" / "beta.py").write_text("x = 1\n")
    assert build(spoiled) == {"book/01_alpha": "cached", "book/02_beta": "executed"}
    (spoiled / "attncourse" / "shared.py").write_text("x = 1\n")
    assert set(build(spoiled).values()) == {"executed"}
    assert runs(spoiled) == before


def test_the_output_of_a_stopped_build_is_shown():
    banner = "Traceback (most recent call last):\n  File x\nRuntimeError: no toc\n=====\n"
    assert "RuntimeError: no toc" in book.build_error(banner)
    assert book.build_error(f"\x1b[31ma.md: WARNING: b\x1b[0m\n{banner}") == "a.md: WARNING: b"
    assert book.build_error("") == "Jupyter Book said nothing."


def test_another_users_build_folder_is_reported(small, monkeypatch, capsys):
    monkeypatch.setattr(book, "unwritable", lambda root: f"{root}/_build belongs to root")
    monkeypatch.setattr(sys, "argv", ["book.py", "--root", str(small)])
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert book.main() == 2
    assert capsys.readouterr().err == f"{small}/_build belongs to root\n"


def test_missing_pages_are_named(spoiled):
    (spoiled / "book" / "notation.md").unlink()
    process = run_tool("book", "--root", spoiled)
    assert process.returncode == 2
    assert "pages that do not exist: book/notation" in process.stderr
