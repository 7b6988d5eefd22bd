"""The page that ``nbgrader generate_feedback`` makes for a student: named in nbgrader_config.py.

It is one file that loads nothing and runs nothing: every Markdown cell and every output is
cleaned once more after it has become HTML, formulas are MathML, and the page tells the browser
to refuse scripts and all addresses.
"""

import re
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import bleach
import nbgrader
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import Preprocessor
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import is_grade, is_solution
from traitlets import List

from attncourse.grading.harmless import BREAK

TEXT = "a abbr b blockquote br code del em hr i kbd p pre s span strong sub sup u"
BLOCKS = (
    "caption dd details div dl dt h1 h2 h3 h4 h5 h6 li ol summary table tbody td th thead tr ul"
)
TAGS = {*TEXT.split(), *BLOCKS.split()}
WEB = re.compile(r"https?://|mailto:|#")
BOXES = "background border border-collapse border-left color display gap margin max-width padding"
LINES = "flex-wrap font-family font-size line-height list-style opacity overflow-wrap text-align"
STYLES = {*BOXES.split(), *LINES.split(), "white-space"}
SHOWN = ("text/html", "text/plain", "image/png", "image/jpeg")
FORMULA = re.compile(r'<span class="attncourse-formula(-block)?">(.*?)</span>', re.DOTALL)
SIZES = re.compile(r"\\[bB]igg?[lmr]?(?![A-Za-z])")  # of brackets; not known to the converter


def clean(html: str, styles: bool = False) -> str:
    """HTML with text, tables and links to the web; any other markup is shown as it was written.

    With ``styles`` it may also have colours and borders of its own.
    """
    allowed = {
        "*": ["class", "style"] if styles else ["class"],
        "a": lambda tag, name, value: name == "href" and bool(WEB.match(value)),
        "details": ["open"],
        "ol": ["start"],
    }
    return bleach.clean(
        html,
        tags=TAGS,
        attributes=allowed,
        css_sanitizer=CSSSanitizer(allowed_css_properties=STYLES),
    )


def harmless_markdown(source: str) -> str:
    """Markdown as clean HTML, formulas left to MathJax: a filter for the formgrader."""
    return clean(MarkdownWithMath(renderer=Renderer(escape=False)).render(source))


def page_markdown(source: str) -> str:
    """Markdown as clean HTML with formulas in MathML: a filter for the feedback page."""
    html = clean(MarkdownWithMath(renderer=PageRenderer(escape=False)).render(source))
    return FORMULA.sub(lambda found: mathml(unescape(found[2]), bool(found[1])), html)


class Renderer(IPythonRenderer):
    """Markdown without pictures, which would be fetched, and diagrams, which would be run."""

    def image(self, text: str, url: str = "", title: str | None = None) -> str:
        return text

    def block_mermaidjs(self, code: str) -> str:
        return f"<pre>{escape(code)}</pre>"

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return f"<h{level}>{text}</h{level}>\n"


class PageRenderer(Renderer):
    """Marks formulas, so that they can be found again in HTML that was cleaned."""

    def inline_math(self, body: str) -> str:
        return f'<span class="attncourse-formula">{escape(body)}</span>'

    def block_math(self, body: str) -> str:
        return f'<span class="attncourse-formula-block">{escape(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def mathml(formula: str, block: bool) -> str:
    """A formula in MathML; as it is written where that fails."""
    from docutils.utils.math.latex2mathml import tex2mathml

    try:
        return str(tex2mathml(SIZES.sub("", formula.replace(BREAK, "")), as_block=block))
    except Exception:  # the converter's own errors, and whatever else a student's TeX leads it to
        tag = "pre" if block else "code"
        return f"<{tag}>{escape(formula)}</{tag}>"


class CleanOutputs(Preprocessor):
    """Cleans what cells show, whoever has graded the notebook."""

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        for output in cell.get("outputs", ()):
            output.metadata = {}
            if "data" in output:
                output.data = {kind: output.data[kind] for kind in SHOWN if kind in output.data}
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = clean(output.data["text/html"], styles=True)
        return cell, resources


class HideTests(ClearHiddenTests):
    """Takes hidden tests out of the instructor's cells, where alone there are any."""

    display_data_priority = List(config=True)  # set for all of nbgrader's steps

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        if is_grade(cell) and not is_solution(cell):
            return super().preprocess_cell(cell, resources, index)
        return cell, resources


class FeedbackExporter(HTMLExporter):
    """nbgrader's feedback page in this course's template."""

    @property
    def default_config(self) -> Any:
        found = super().default_config.copy()
        theirs = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
        found.FeedbackExporter.template_name = "attncourse_feedback"
        found.FeedbackExporter.extra_template_basedirs = [
            str(files("attncourse.grading.nbgrader") / "templates"),
            str(theirs),
        ]
        found.FeedbackExporter.extra_template_paths = [str(theirs)]
        found.FeedbackExporter.filters = {"markdown2html": page_markdown}
        return found
