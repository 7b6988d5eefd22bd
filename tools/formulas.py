r"""Formulas in the book's colours: ``\query{Q}\key{K}^\top`` is blue and orange, as in its figures.

On a page each macro is a class that ``attncourse.css`` colours, in light and in dark. A notebook
has neither the macros nor the style, so there they become plain TeX. And a comma or a full stop
behind a formula stays on its line.

A page's formulas are drawn when it is made, by MathJax in the Node that the playwright package
brings along: so they are there at once, without a script. Each is a drawing whose glyphs stand once
on the page, MathML for screen readers, and its TeX, which copying gives (``attncourse.js``).
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from html import escape, unescape
from pathlib import Path

from sphinx.util import logging
from vendor import library

LOG = logging.getLogger(__name__)

# As dark as a light page lets them be read, and as light as a dark one does (about 4 to 1 on both).
IN_NOTEBOOKS = {"query": "#1a7fc1", "key": "#c2611f", "value": "#138a67", "weight": None}
MACROS = {"query": "query", "key": "key", "val": "value", "weight": "weight"}
MACRO = re.compile(rf"\\({'|'.join(MACROS)})(?![A-Za-z])\s*")


def with_plain_macros(text: str) -> str:
    r"""Return the text with each macro as TeX that every notebook draws: ``{\color{#1a7fc1}{Q}}``.

    The outer braces are for programs in which ``\color`` colours all that follows, the inner ones
    for those in which it colours one argument. Raises ``ValueError`` where a macro has no braces
    or they stay open.
    """
    match = MACRO.search(text)
    if match is None:
        return text
    end = closing_brace(text, match.end())
    color = IN_NOTEBOOKS[MACROS[match[1]]]
    inside = "{" + with_plain_macros(text[match.end() + 1 : end]) + "}"
    drawn = rf"{{\color{{{color}}}{inside}}}" if color else inside
    return text[: match.start()] + drawn + with_plain_macros(text[end + 1 :])


def wrong_place(text: str) -> int:
    """Return where a macro begins whose braces are missing or stay open; -1 if there is none."""
    for match in MACRO.finditer(text):
        try:
            closing_brace(text, match.end())
        except ValueError:
            return match.start()
    return -1


def closing_brace(text: str, start: int) -> int:
    """Return the place of the brace that closes the one at `start`."""
    if not text.startswith("{", start):
        raise ValueError(f"expected braces after a macro, came {text[start:][:20]!r}")
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text[start:], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0 and brace[0] == "}":
            return start + brace.start()
    raise ValueError(f"expected a closing brace, came the end after {text[start:][:20]!r}")


# A formula in a line of text, with the signs before and behind it.
IN_TEXT = re.compile(r'(\(?)(<span class="math notranslate nohighlight">[^<]*</span>)([,.;:!?)]*)')


def glued(html: str) -> str:
    """Return the page with each formula and the signs at its ends in one unbreakable piece."""
    return IN_TEXT.sub(one_piece, html)


def one_piece(match: re.Match) -> str:
    """Return a formula and the sign beside it, which no line break may part."""
    ends = match[1] or match[3]
    return f'<span class="attn-glued">{match[0]}</span>' if ends else match[0]


# A formula as Sphinx writes it, and the TeX in it; amsmath's environments stand for themselves.
FORMULA_MARKUP = re.compile(
    r'(<(span|div) class="[^"]*\bmath\b[^"]*"[^>]*>)(.*?)(</\2>)', re.DOTALL
)
TEX = re.compile(r"\\\((?P<line>.*)\\\)|\\\[(?P<alone>.*)\\\]|(?P<ams>\\begin\{.*\})", re.DOTALL)


@cache
def artist() -> subprocess.Popen:
    """Start MathJax, which waits for formulas and ends with this process, whose pipe it reads."""
    from playwright._impl._driver import compute_driver_executable

    node, _ = compute_driver_executable()
    macros = {name: [rf"\class{{attn-{role}}}{{#1}}", 1] for name, role in MACROS.items()}
    script = Path(__file__).parent / "web" / "formulas.js"
    command = [node, script, library("mathjax") / "es5", json.dumps(macros)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def draw_formulas(formulas: list[tuple[str, bool]]) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Return each formula's markup, or what is wrong with it, and all glyphs' paths by id."""
    mathjax = artist()
    print(json.dumps(formulas), file=mathjax.stdin, flush=True)
    answer = mathjax.stdout.readline() if mathjax.stdout else ""
    if not answer:
        raise OSError("MathJax, which draws the formulas, has ended")
    answer = json.loads(answer)
    return answer["drawn"], answer["glyphs"]


def page_with_formulas(html: str, complain=LOG.warning) -> str:
    """Return the page with its formulas drawn; what is no TeX is reported and stays."""
    formulas_written = [(match, TEX.search(match[3])) for match in FORMULA_MARKUP.finditer(html)]
    formulas_written = [(match, tex) for match, tex in formulas_written if tex]
    if not formulas_written:
        return html
    requests = [
        (unescape(tex[tex.lastgroup or 0]).strip(), tex.lastgroup != "line")
        for _, tex in formulas_written
    ]
    pictures, glyphs = draw_formulas(requests)
    parts, end = [], 0
    for (match, tex), (source, _), picture in zip(
        formulas_written, requests, pictures, strict=True
    ):
        parts.append(html[end : match.start(3)])
        end = match.start(3)
        if "wrong" in picture:
            complain(f"formula {source!r}: {picture['wrong']}")
            continue
        mark = f' data-tex="{escape(source)}"'
        parts += [
            match[3][: tex.start()],
            picture["markup"].replace("<mjx-container", "<mjx-container" + mark, 1),
            match[3][tex.end() :],
        ]
        end = match.end(3)
    text = "".join([*parts, html[end:]])
    used = sorted(set(re.findall(r'href="#(glyph-[^"]+)"', text)))
    paths = "".join(f'<path id="{name}" d="{glyphs[name]}"/>' for name in used)
    return f'{text}<svg class="attn-glyphs" aria-hidden="true"><defs>{paths}</defs></svg>'


def finish(app, page, template, context, doctree):
    """Draw the formulas of a page once it is made: no script has to come for them."""
    if "body" in context:
        context["body"] = page_with_formulas(
            glued(context["body"]), lambda text: LOG.warning(f"{page}: {text}")
        )
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "mathjax" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def setup(app):
    """Register the drawing of formulas with Sphinx."""
    app.connect("html-page-context", finish, priority=950)
