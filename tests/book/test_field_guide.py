"""The field guide: every mistake once, its own code, links that lead somewhere."""

from __future__ import annotations

import ast
import dis
import html
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from urllib.parse import unquote, urlsplit

import field_guide
import pytest
import yaml
from docutils.core import publish_from_doctree
from docutils.utils import new_document
from field_guide import (
    check_source,
    in_real_model,
    listing,
    raw,
    symptoms,
    undone_in_real_model,
    wrong_lines,
)

from attncourse import STEMS
from attncourse.checks import Mistake, exercises
from attncourse.checks.judging import judge
from attncourse.figures.moving.real_model import UNDONE
from attncourse.milestones import undone
from attncourse.practice.drills import drills_of
from helpers.project import ROOT, copy_course, run_tool

EXERCISES = exercises()
WRONG_ANSWERS = [(e, m) for e in EXERCISES.values() for m in e.mistakes]
each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)


@pytest.fixture(scope="module")
def entries(built) -> list[listing.GuideEntry]:
    """Return the entries that the book was built with."""
    return listing.entries(built.parent / "field_guide.json")


def identity_of(wrong) -> tuple:
    """Return a function's code, names, constants and closure, to compare functions by."""
    if isinstance(wrong, CodeType):
        inner = [identity_of(c) if isinstance(c, CodeType) else repr(c) for c in wrong.co_consts]
        return wrong.co_code, wrong.co_names, wrong.co_varnames, tuple(inner)
    if isinstance(wrong, FunctionType):
        contents = [c.cell_contents for c in wrong.__closure__ or ()]  # super() holds its own class
        cells = tuple(c.__name__ if isinstance(c, type) else identity_of(c) for c in contents)
        code = wrong.__code__
        if wrong.__doc__:
            code = code.replace(co_consts=(None, *code.co_consts[1:]))
        return identity_of(code), cells
    if isinstance(wrong, type):
        methods = {k: v for k, v in vars(wrong).items() if isinstance(v, FunctionType)}
        return tuple((name, identity_of(method)) for name, method in sorted(methods.items()))
    return (repr(wrong),)


def run_in_module(module, statement: str):
    """Return the value of ``again`` after a statement in a module of checks.

    Its imports go first: Python compiles calls of imported names differently.
    """
    scope = dict(vars(module))
    exec(f"{imports_of(module)}\n{statement}", scope)
    return scope["again"]


@cache
def imports_of(module) -> str:
    tree = ast.parse(inspect.getsource(module))
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return ast.unparse(ast.Module(imports, []))


def without_defaults(signature: inspect.Signature) -> inspect.Signature:
    """Return the signature without defaults: the same names and kinds."""
    parameters = [
        p if p.default is p.empty else p.replace(default=None)
        for p in signature.parameters.values()
    ]
    return inspect.Signature(parameters)


@each
def test_the_wrong_line_is_the_mistakes_own_code(exercise):
    for mistake in exercise.mistakes:
        assert_is_the_mistakes_code(exercise, mistake)


def assert_is_the_mistakes_code(exercise, mistake):
    code = wrong_lines.wrong_line(exercise, mistake).code
    chosen = wrong_lines.options(mistake)
    if chosen:
        pieces = [wrong_lines.option_code(*option) for option in chosen.items()]
        below = [line for option in chosen.values() for line in wrong_lines.lines_below(option)]
        assert code == "\n".join([*pieces, *dict.fromkeys(below)])
        for piece, option in zip(pieces, chosen.items(), strict=True):
            assert_is_the_options_code(piece, *option)
        return
    module = importlib.import_module(mistake.wrong.__module__)
    first, *helpers = re.split(r"\n\n(?=def |class )", code)
    wrong = mistake.wrong
    if "<locals>" in wrong.__qualname__:  # its own names are not there
        assert textwrap.indent(first, "    ") in textwrap.dedent(inspect.getsource(wrong))
    else:
        assert identity_of(rebuilt(module, first, wrong)) == identity_of(wrong)
    for helper in helpers:
        name = re.match(r"(?:def|class) (\w+)", helper)[1]
        again = run_in_module(module, f"{helper}\n\nagain = {name}")
        assert identity_of(again) == identity_of(getattr(module, name))
        assert code.count(name) > 1


def rebuilt(module, code: str, function: FunctionType):
    """Return a function with a printed body and another function's signature."""
    signature = str(without_defaults(inspect.signature(function)))
    if function.__name__ == "<lambda>":
        return run_in_module(module, f"again = lambda {signature[1:-1]}: (\n{code}\n)")
    return run_in_module(module, f"def again{signature}:\n{textwrap.indent(code, '    ')}")


def assert_is_the_options_code(piece: str, name: str, option: object):
    if not wrong_lines.is_ours(option):
        assert piece in (f"{name} = {option!r}", f"{name} = {getattr(option, '__name__', '')}")
        return
    module = importlib.import_module(option.__module__)
    if option.__closure__ or "<locals>" in option.__qualname__:  # its own names are not there
        assert option.__name__ == "<lambda>" or f"def {option.__name__}(" in piece
        explained = "\n".join([piece, *wrong_lines.lines_below(option)])
        known = {n.id for n in ast.walk(ast.parse(explained)) if isinstance(n, ast.Name)}
        stored = set(re.findall(r"(?m)^(\w+) = ", explained))
        for outer, value in wrong_lines.closed_over(option):
            if isinstance(value, int | float | str) or wrong_lines.is_lambda(value):
                assert outer not in known or outer in stored, outer
    elif option.__name__ == "<lambda>":
        body = piece.removeprefix(f"{name} = ")
        assert steps_of(rebuilt(module, body, option)) == steps_of(option)
    else:
        again = run_in_module(module, f"{piece}\n\nagain = {option.__name__}")
        assert steps_of(again) == steps_of(option)


def steps_of(function: FunctionType) -> list[tuple[str, str]]:
    """Return a function's bytecode steps; inner functions appear by name."""
    steps = [(i.opname, re.sub(r"<code object (\S+) .*", r"\1", i.argrepr))
             for i in dis.get_instructions(function)]  # fmt: skip
    return [step for step in steps if step[0] not in ("RESUME", "NOP")]


@each
def test_the_example_is_of_the_verdicts_first_failure(exercise, entries):
    """What is shown of each mistake is of the exercise; of the first, what its verdict says."""
    criteria = [listing.prose(c.name) for c in exercise.criteria]
    shown = [entry for entry in entries if entry.target == exercise.target]
    assert len(shown) == len(exercise.mistakes)
    for entry in shown:
        assert entry.symptom in symptoms.SYMPTOMS, entry.id
        assert first_failing_criterion(entry) in criteria, entry.id
        assert re.search("<p>It |<p>[A-Z]|attn-pair", entry.html.partition("Fails first")[2]), (
            entry.id
        )
    verdict = judge(exercise, exercise.mistakes[0].wrong, wrong_lines.SEED)
    first = next(c.name for c in verdict.criteria if not c.passed)
    assert first_failing_criterion(shown[0]) == listing.prose(first)


def first_failing_criterion(entry: listing.GuideEntry) -> str:
    """Return the criterion that an entry says fails first."""
    return re.search("Fails first</strong> at “(.*?)”:</p>", entry.html)[1]


def test_pictures_are_shown_wherever_the_example_has_one(entries):
    tables = [entry for entry in entries if "<table" in entry.html]
    assert tables
    assert all(EXERCISES[entry.target].picture for entry in tables)
    for entry in entries:
        alike = "columns sum to 1, not rows"
        assert entry.symptom != alike or "<table" in entry.html or "attn-pair" in entry.html, (
            entry.id
        )


def test_no_right_answer_is_shown(entries):
    """Neither a reference nor a helper that passes."""
    bodies = {}
    for exercise in EXERCISES.values():
        tree = ast.parse(textwrap.dedent(inspect.getsource(exercise.reference))).body[0]
        statements = tree.body[1:] if ast.get_docstring(tree) else tree.body
        bodies[exercise.target] = "\n".join(ast.unparse(statement) for statement in statements)
    page = text_of("\n".join(entry.html for entry in entries))
    for exercise, mistake in WRONG_ANSWERS:
        line = wrong_lines.wrong_line(exercise, mistake)
        shown = ast.unparse(ast.parse(line.code))
        assert bodies[exercise.target] not in shown
        for name in wrong_lines.helpers_of(exercise, mistake):
            helper = getattr(sys.modules[mistake.wrong.__module__], name)
            assert not wrong_lines.passes(exercise, helper)
    for name in ("cosine", "forward_right", "really_equivariant"):
        assert not re.search(rf"\bdef {name}\b", page)


def text_of(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


@cache
def ids_on(page: Path) -> list[str]:
    return re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8"))


def on_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_right_helper_is_told_from_a_wrong_one(monkeypatch):
    cosine = EXERCISES["tokens.cosine_similarity"]
    module = check_source.source("attncourse.bank.tokens.cosine_similarity")
    checks = importlib.import_module(module.name)
    monkeypatch.setattr(checks, "cosine", cosine.reference, raising=False)
    assert wrong_lines.is_right(cosine, module, "cosine")
    assert not wrong_lines.is_right(cosine, module, "dots")


def test_a_mistake_without_source_is_found_by_its_code():
    exercise = EXERCISES["mixing.mix"]
    made = replace(exercise.mistakes[1], name="made in a loop", explanation="…")
    assert wrong_lines.wrong_line(exercise, made).code == "product = np.dot(A, X)"
    lost = Mistake("lost", "…", len)
    with pytest.raises(LookupError, match=r"mixing\.mix: lost: the source of its `wrong`"):
        wrong_lines.wrong_line(exercise, lost)


def test_the_guide_depends_on_no_machine_and_no_run(entries):
    by_stem = {
        exercise.stem: exercise for exercise in EXERCISES.values()
    }  # the last of each chapter
    for exercise in by_stem.values():
        again = listing.distinct(listing.entry(exercise, m) for m in exercise.mistakes)
        assert again == [entry for entry in entries if entry.target == exercise.target]
    for entry in entries:
        assert not re.search(r"0x[0-9a-f]{6}|/home/|/tmp/|site-packages", entry.html), entry.id
        assert str(ROOT) not in entry.html, entry.id
    assert len({entry.id for entry in entries}) == len(entries)


def test_the_cache_holds_until_the_sources_change(tmp_path, monkeypatch, entries):
    cache = tmp_path / "_build" / "guide.json"
    monkeypatch.setattr(listing, "exercises", lambda: {"tokens.embed": EXERCISES["tokens.embed"]})
    first = listing.entries(cache)
    assert first == [entry for entry in entries if entry.target == "tokens.embed"]

    def computed_again(*_, **__):
        pytest.fail("computed again")

    monkeypatch.setattr(listing, "ProcessPoolExecutor", computed_again)
    assert listing.entries(cache) == first
    monkeypatch.setattr(listing, "key", lambda: "another")
    with pytest.raises(pytest.fail.Exception, match="computed again"):
        listing.entries(cache)


def test_entries_are_worked_out_beside_sphinx(tmp_path, monkeypatch):
    cache_file = tmp_path / "guide.json"
    monkeypatch.setattr(listing, "exercises", lambda: {"tokens.embed": EXERCISES["tokens.embed"]})
    process = listing.work_ahead(cache_file)
    assert listing.work_ahead(cache_file) is process
    process.join()
    assert process.exitcode == 0
    assert {entry["target"] for entry in json.loads(cache_file.read_text())["entries"]} == {
        "tokens.embed"
    }


AFTER_THREADS = """
import os
import signal
import sys
from pathlib import Path

import torch
from field_guide import listing

torch.set_num_threads(4)
torch.randn(2000, 2000).softmax(-1)  # starts them
target = "kqv.scaled_dot_product_attention"
known = listing.exercises()[target]
listing.exercises = lambda: {target: known}
process = listing.work_ahead(Path(sys.argv[1]))
process.join(60)
if process.exitcode is None:
    os.killpg(0, signal.SIGKILL)  # with the processes that hang
sys.exit(process.exitcode)
"""


def test_entries_are_worked_out_beside_threads_of_torch(tmp_path):
    """Sphinx may have used several: a process that parts from them has to do without."""
    environment = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    environment["PYTHONPATH"] = str(ROOT / "tools")
    command = [sys.executable, "-c", AFTER_THREADS, str(tmp_path / "guide.json")]
    process = subprocess.run(command, env=environment, start_new_session=True)
    assert process.returncode == 0
    assert (tmp_path / "guide.json").exists()


def test_sphinx_reads_the_guide_last(monkeypatch):
    course = SimpleNamespace(pages=["index", "book/field_guide", "book/practice"])
    monkeypatch.setattr(field_guide, "loaded", lambda root: course)
    pages = ["book/another", "book/field_guide", "book/practice", "index"]
    field_guide.read_last(SimpleNamespace(srcdir="."), None, pages)
    assert pages == ["book/another", "book/practice", "index", "book/field_guide"]


@pytest.mark.slow
def test_the_courses_own_markup_is_kept_on_the_page():
    document = new_document("a page")
    document += raw("<b>ours</b>")
    assert b"<b>ours</b>" in publish_from_doctree(document, writer_name="html5")


def test_every_mistake_is_once_on_the_page(built):
    built_pages = built / "book"
    page = (built_pages / "field_guide.html").read_text(encoding="utf-8")
    article = page[page.index("<article") : page.index("</article>")]
    assert len(page.encode()) < 2_000 * len(WRONG_ANSWERS)
    heads = re.findall(
        r'<details class="attn-bug" id="([\w-]+)"><summary><span>(.*?)</span>', article
    )
    expected = [(e.target, m.name.replace("`", "")) for e, m in WRONG_ANSWERS]
    shown = [text_of(name) for _, name in heads]
    assert shown == [name for _, name in expected]
    words = on_one_line(text_of(article))
    for _, mistake in WRONG_ANSWERS:
        assert on_one_line(text_of(listing.with_code(mistake.explanation))) in words
    ids = ids_on(built_pages / "field_guide.html")
    assert len(set(ids)) == len(ids)
    levels = [int(level) for level in re.findall(r"<h(\d)[ >]", article)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    by_symptom = article[article.index('id="guide-symptoms"') : article.index('id="guide-tokens"')]
    linked = re.findall(r'href="#([^"]+)" ?>', by_symptom.replace('class="headerlink" ', ""))
    assert sorted(i for i, _ in heads) == sorted(set(linked) - {"guide-symptoms"})
    links = [
        urlsplit(html.unescape(href)) for href in re.findall(r'<a [^>]*href="([^"]+)"', article)
    ]
    to_chapters = to_real_model = 0
    drills = {drill.id for stem in STEMS for drill in drills_of(stem)}
    for link in links:
        if link.scheme:
            continue
        linked_page = built_pages / link.path if link.path else built_pages / "field_guide.html"
        assert linked_page.is_file(), link
        if link.fragment.startswith("set="):
            assert 'data-figure="real_model"' in linked_page.read_text(encoding="utf-8")
            to_real_model += 1
        elif link.path == "practice.html":  # an address of a drill, which the page's script reads
            assert unquote(link.fragment) in drills, link
        elif link.fragment:
            assert unquote(link.fragment) in ids_on(linked_page), link
        to_chapters += bool(re.match(r"\d\d_", link.path)) and bool(link.fragment)
    assert to_chapters >= len(EXERCISES)
    assert to_real_model == sum(row.entry is not None and row.name in UNDONE for row in undone.ROWS)


@pytest.fixture
def guide(tmp_path) -> Path:
    """A book of the guide and of two chapters' headings, which are all that it links to."""
    root = copy_course(tmp_path / "course", "attncourse", "tools")
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    numbered = next(part for part in toc["parts"] if part.get("numbered"))
    shortened_part = numbered | {"chapters": numbered["chapters"][:2]}
    back = {"caption": "Back matter", "chapters": [{"file": "book/field_guide"}]}
    toc |= {"parts": [shortened_part, back]}
    (root / "_toc.yml").write_text(yaml.safe_dump(toc, allow_unicode=True))
    for page in (toc["root"], *(chapter["file"] for chapter in shortened_part["chapters"])):
        path = root / f"{page}.md"
        text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
        path.write_text("\n\n".join(re.findall(r"(?m)^##? .+", text)), encoding="utf-8")
    return root


@pytest.mark.slow
def test_a_section_that_is_gone_fails_the_build(guide, built):
    (guide / "_build").mkdir()
    shutil.copy(built.parent / "field_guide.json", guide / "_build")
    chapter = guide / "book" / "02_mixing.md"
    chapter.write_text(chapter.read_text().replace("## Four matrices", "## Five matrices"))
    spoiled = run_tool("book", "--root", guide)
    assert spoiled.returncode == 1
    assert "Four matrices" in spoiled.stderr
    assert "Five matrices" not in spoiled.stderr


def test_mistakes_that_the_live_page_shows_link_to_it():
    places = undone_in_real_model()
    assert len(places) == sum(row.entry is not None and row.name in UNDONE for row in undone.ROWS)
    ids = {listing.name_of_place(f"{e.target} {m.name}") for e, m in WRONG_ANSWERS}
    assert places.keys() <= ids
    for place, address in places.items():
        assert address.startswith("real_model.html#set=real_model&text=")
        assert address.replace("&", "&amp;") in in_real_model(place)
    assert in_real_model("no-such-entry") == ""
