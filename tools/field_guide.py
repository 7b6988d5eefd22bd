"""The field guide to attention bugs: every misconception of the checks, as a page.

The directive ``{field-guide}`` lists them under the chapters and exercises of the course, each
folded under its name, after a table from symptoms to mistakes. Nothing on it is typed in: code,
criterion, numbers and explanation are those of the checks. What takes seconds to compute is kept
in `_build/field_guide.json` for as long as the package and these tools are the same.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import dedent

import numpy as np
from course import Chapter, load
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import attncourse
from attncourse.checks import Exercise, Misconception, exercises
from attncourse.checks.verdict import Picture
from attncourse.checks.verdict import inline as with_code

SECTION = "attn-section"
TOOLS = ("course.py", "field_guide.py", "symptoms.py", "wrong_lines.py")


@dataclass(frozen=True)
class Entry:
    """A misconception on the page: where it belongs, how it shows, and what unfolds."""

    id: str
    target: str
    name: str
    symptom: str
    html: str


def name_of_place(text: str) -> str:
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")


# --- computed once ---------------------------------------------------------------------------


def sources() -> list[Path]:
    """What the entries are computed from."""
    package = Path(attncourse.__file__).parent
    modules = [*package.glob("*.py"), *(package / "checks").glob("*.py")]
    return sorted(modules) + [Path(__file__).with_name(name) for name in TOOLS]


def key() -> str:
    digest = hashlib.sha256(f"{sys.version} {np.__version__}".encode())
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def entries(cache: Path | None = None) -> list[Entry]:
    """Every misconception in the order of the course; from the cache where it still holds."""
    now = key()
    if cache is not None and cache.exists():
        kept = json.loads(cache.read_text(encoding="utf-8"))
        if kept["key"] == now:
            return [Entry(**entry) for entry in kept["entries"]]
    found = distinct(entry(e, m) for e in exercises().values() for m in e.misconceptions)
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        kept = {"key": now, "entries": [asdict(one) for one in found]}
        cache.write_text(json.dumps(kept), encoding="utf-8")
    return found


def distinct(found: Iterable[Entry]) -> list[Entry]:
    """The entries, a number behind an id that came before: `by √d_k` is not `by d_k`."""
    seen: Counter[str] = Counter()
    kept = []
    for one in found:
        seen[one.id] += 1
        kept.append(replace(one, id=f"{one.id}-{seen[one.id]}") if seen[one.id] > 1 else one)
    return kept


# --- one entry -------------------------------------------------------------------------------


def entry(exercise: Exercise, misconception: Misconception) -> Entry:
    from symptoms import example
    from wrong_lines import wrong_line

    wrong, shown = wrong_line(exercise, misconception), example(exercise, misconception)
    lines = "line" if "\n" not in wrong.code else "lines"
    helpers = [f"<code>{escape(n)}</code>: {prose(text)}" for n, text in wrong.helpers]
    parts = [
        f"<p><strong>The wrong {lines}</strong></p>",
        f'<pre class="highlight"><code>{coloured(wrong.code)}</code></pre>',
        *(f'<p class="attn-helper">{helper}</p>' for helper in helpers),
        f"<p><strong>Fails first</strong> at “{prose(shown.criterion)}”:</p>",
        f"<pre>{escape(shown.call)}</pre>",
        f"<p>{with_code(told(shown.told))}</p>" if shown.told else "",
        side_by_side(shown.texts) if shown.texts else "",
        pictures(shown.picture) if shown.picture else "",
        f"<p><strong>What to change</strong></p>\n<p>{with_code(misconception.explanation)}</p>",
    ]
    html = "\n".join(part for part in parts if part)
    place = name_of_place(f"{exercise.target} {misconception.name}")
    return Entry(place, exercise.target, misconception.name, shown.symptom, html)


def prose(text: str) -> str:
    return with_code(text.replace("``", "`"))


def told(problem: str) -> str:
    """A verdict's words as a sentence."""
    text = problem.replace("\n", "; ")
    verbs = ("returned", "raised", "changed", "did not", "called", "built")
    text = f"It {text}" if text.startswith(verbs) else text[0].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def coloured(code: str) -> str:
    return highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")


def side_by_side(texts: tuple[str, str]) -> str:
    boxes = (
        f"<div><p>{title}</p><pre>{escape(dedent(text))}</pre></div>"
        for title, text in zip(("returned", "expected"), texts, strict=True)
    )
    return f'<div class="attn-pair">{"".join(boxes)}</div>'


def pictures(picture: Picture) -> str:
    """The two matrices as shaded tables on one scale; what is wrong is underlined too."""
    got, want = picture.got, picture.want
    none = np.zeros(want.shape, bool)
    wrong = np.zeros(got.shape, bool)
    if got.shape == want.shape:
        wrong = ~np.isclose(got, want, rtol=1e-9, atol=1e-9)
    top = float(np.abs(want[np.isfinite(want)]).max(initial=0)) or 1.0
    tables = matrix("returned", got, top, wrong) + matrix("expected", want, top, none)
    return f'<div class="attn-pair">{tables}</div>'


def matrix(title: str, values: np.ndarray, top: float, wrong: np.ndarray) -> str:
    rows = (
        "<tr>" + "".join(cell(x, top, bad) for x, bad in zip(row, marks, strict=True)) + "</tr>"
        for row, marks in zip(values, wrong, strict=True)
    )
    size = " × ".join(map(str, values.shape))
    return f"<table><caption>{title}, {size}</caption>{''.join(rows)}</table>"


def cell(x: float, top: float, wrong: bool) -> str:
    strength = min(abs(float(x)) / top, 1.0) if np.isfinite(x) else 0.0
    text = f"{float(x):.2g}".replace("-", "−")
    return f'<td style="--much:{strength:.2f}">{f"<u>{text}</u>" if wrong else text}</td>'


# --- the page --------------------------------------------------------------------------------


class FieldGuide(SphinxDirective):
    """``{field-guide}``: the symptoms, then the mistakes of every chapter there is."""

    def run(self) -> list[nodes.Node]:
        course = load(Path(self.env.srcdir))
        for path in sources():
            self.env.note_dependency(str(path))
        found = entries(course.root / "_build" / "field_guide.json")
        known = exercises()
        stems = [chapter.stem for chapter in course.chapters]
        found = [one for one in found if known[one.target].stem in stems]
        page = [self.section("symptoms", "By symptom", raw(by_symptom(found)))]
        for chapter in course.chapters:
            parts = [
                self.exercise(chapter, known[target], list(group))
                for target, group in groupby(found, key=lambda one: one.target)
                if known[target].stem == chapter.stem
            ]
            path = course.root / f"{chapter.page}.md"
            self.env.note_dependency(str(path))
            title = re.search(r"(?m)^# (.+)$", path.read_text(encoding="utf-8"))[1]
            page.append(self.section(chapter.stem, f"Chapter {chapter.number} · {title}", *parts))
        return page

    def section(self, name: str, title: str | nodes.Node, *children: nodes.Node) -> nodes.section:
        heading = nodes.title("", "", nodes.Text(title) if isinstance(title, str) else title)
        place = name_of_place(f"guide {name}")
        section = nodes.section("", heading, *children, ids=[place], names=[place])
        self.state.document.note_explicit_target(section)
        return section

    def exercise(self, chapter: Chapter, exercise: Exercise, found: list[Entry]) -> nodes.section:
        parts: list[nodes.Node] = [self.back("Taught in ", chapter, exercise)]
        for one in found:
            head = (
                f'<details class="attn-bug" id="{one.id}"><summary><span>{with_code(one.name)}'
                f"</span> <small>{escape(one.symptom)}</small></summary>"
            )
            again = self.back("Read again: ", chapter, exercise)
            parts += [raw(f"{head}\n{one.html}"), again, raw("</details>")]
        title = nodes.literal("", exercise.target)
        return self.section(exercise.target, title, *parts)

    def back(self, lead: str, chapter: Chapter, exercise: Exercise) -> nodes.paragraph:
        """A link to the section that the exercise names; the build fails where it is not there."""
        target = addnodes.pending_xref(
            "",
            nodes.inline("", exercise.section),
            refdomain="",
            reftype=SECTION,
            reftarget=re.search("“(.+)”", exercise.section)[1],
            refpage=chapter.page,
            refdoc=self.env.docname,
            refwarn=True,
        )
        return nodes.paragraph("", "", nodes.Text(lead), target, nodes.Text("."))


def resolve(app, env, node, content):
    """The place of a chapter's section, told by its heading; None, a warning, if it has none."""
    if node["reftype"] != SECTION:
        return None
    for link in env.tocs[node["refpage"]].findall(nodes.reference):
        if name_of_place(link.astext()) == name_of_place(node["reftarget"]):
            place = link["anchorname"].removeprefix("#")
            return make_refnode(app.builder, node["refdoc"], node["refpage"], place, content)
    return None


def raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def by_symptom(found: list[Entry]) -> str:
    """Each symptom with the mistakes that show it, folded, as links."""
    from symptoms import SYMPTOMS

    blocks = []
    for symptom in SYMPTOMS:
        alike = [one for one in found if one.symptom == symptom]
        if not alike:
            continue
        lines = (
            f"<li><code>{escape(target)}</code>: "
            + "; ".join(f'<a href="#{one.id}">{with_code(one.name)}</a>' for one in group)
            + "</li>"
            for target, group in groupby(alike, key=lambda one: one.target)
        )
        blocks.append(
            f'<details class="attn-symptom"><summary>{escape(symptom[0].upper() + symptom[1:])} '
            f"<small>{len(alike)}</small></summary>\n<ul>{''.join(lines)}</ul></details>"
        )
    return "\n".join(blocks)


def add_files(app, page, template, context, doctree):
    """The guide's own style and script, on its page alone."""
    if 'class="attn-bug"' in context.get("body", ""):
        app.add_css_file("field_guide.css")
        app.add_js_file("field_guide.js")


def setup(app):
    app.add_directive("field-guide", FieldGuide)
    app.connect("missing-reference", resolve)
    app.connect("html-page-context", add_files)
