"""Cleaning a submission's Markdown and HTML: what is left loads nothing and runs nothing."""

import re
from html import escape, unescape
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from attncourse.grading.harmless import ZERO_WIDTH_SPACE

TEXT = "a abbr b blockquote br code del em hr i kbd p pre s span strong sub sup u"
BLOCK = "caption dd details div dl dt h1 h2 h3 h4 h5 h6 li ol summary table tbody td th thead tr ul"
TAGS = {*TEXT.split(), *BLOCK.split()}
WEB = re.compile(r"https?://|mailto:|#")
BOXES = "background border border-collapse border-left color display gap margin max-width padding"
LINES = "flex-wrap font-family font-size line-height list-style opacity overflow-wrap text-align"
STYLES = {*BOXES.split(), *LINES.split(), "white-space", "word-break"}
FORMULA = re.compile(r'<span class="attncourse-formula(-block)?">(.*?)</span>', re.DOTALL)
SIZES = re.compile(r"\\[bB]igg?[lmr]?(?![A-Za-z])")  # of brackets; not known to the converter


def clean_html(html: str, styles: bool = False) -> str:
    """Return HTML with text, tables and web links; other markup is shown as text.

    With ``styles`` it may also have colours and borders of its own.
    """
    allowed: dict[str, Any] = {  # lists, or a function of tag, name and value
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
    """Return Markdown as clean HTML with formulas for MathJax: a filter for the formgrader."""
    return clean_html(MarkdownWithMath(renderer=Renderer(escape=False)).render(source))


def page_markdown(source: str) -> str:
    """Return Markdown as clean HTML with formulas in MathML: a filter for feedback pages."""
    html = clean_html(MarkdownWithMath(renderer=PageRenderer(escape=False)).render(source))
    return FORMULA.sub(lambda match: mathml(unescape(match[2]), bool(match[1])), html)


class Renderer(IPythonRenderer):
    """Renders Markdown without pictures, which would be fetched, and diagrams, which would run."""

    def image(self, text: str, url: str = "", title: str | None = None) -> str:
        """Return a picture's alternative text."""
        return text

    def block_mermaidjs(self, code: str) -> str:
        """Return a diagram's source as text."""
        return f"<pre>{escape(code)}</pre>"

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Return a heading without the link that notebooks add to it."""
        return f"<h{level}>{text}</h{level}>\n"


class PageRenderer(Renderer):
    """Renders Markdown with marks around formulas, which are found again after cleaning."""

    def inline_math(self, body: str) -> str:
        """Return a formula with a mark around it."""
        return f'<span class="attncourse-formula">{escape(body)}</span>'

    def block_math(self, body: str) -> str:
        """Return a formula on a line of its own with a mark around it."""
        return f'<span class="attncourse-formula-block">{escape(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        """Return a LaTeX environment with the mark of a formula around it."""
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def mathml(formula: str, block: bool) -> str:
    """Return a formula in MathML, or as it is written if that fails."""
    from docutils.utils.math.latex2mathml import tex2mathml

    try:
        return str(tex2mathml(SIZES.sub("", formula.replace(ZERO_WIDTH_SPACE, "")), as_block=block))
    except Exception:  # the converter's own errors, and whatever else a student's TeX leads it to
        tag = "pre" if block else "code"
        return f"<{tag}>{escape(formula)}</{tag}>"
