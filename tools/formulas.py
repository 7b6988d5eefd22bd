r"""Formulas in the book's colours: ``\query{Q}\key{K}^\top`` is blue and orange, as in its figures.

On a page each macro is a class that ``attncourse.css`` colours, in light and in dark. A notebook
has neither the macros nor the style, so there they become plain TeX. And a comma or a full stop
behind a formula stays on its line.
"""

from __future__ import annotations

import re

# As dark as a light page lets them be read, and as light as a dark one does (about 4 to 1 on both).
IN_NOTEBOOKS = {"query": "#1a7fc1", "key": "#c2611f", "value": "#138a67", "weight": None}
MACROS = {"query": "query", "key": "key", "val": "value", "weight": "weight"}
# `html` is the extension that knows classes. It is loaded at once: MathJax would fetch it when it
# meets the first class, and draw the page's formulas a second time.
MATHJAX = {
    "loader": {"load": ["[tex]/html"]},
    "tex": {
        "packages": {"[+]": ["html"]},
        "macros": {name: [rf"\class{{attn-{what}}}{{#1}}", 1] for name, what in MACROS.items()},
    },
}
MACRO = re.compile(rf"\\({'|'.join(MACROS)})(?![A-Za-z])\s*")


def plain(text: str) -> str:
    r"""The text with each macro as TeX that every notebook draws: ``{\color{#1a7fc1}{Q}}``.

    The outer braces are for programs in which ``\color`` colours all that follows, the inner ones
    for those in which it colours one argument. Raises ``ValueError`` where a macro has no braces
    or they stay open.
    """
    found = MACRO.search(text)
    if found is None:
        return text
    end = closing(text, found.end())
    color = IN_NOTEBOOKS[MACROS[found[1]]]
    inside = "{" + plain(text[found.end() + 1 : end]) + "}"
    drawn = rf"{{\color{{{color}}}{inside}}}" if color else inside
    return text[: found.start()] + drawn + plain(text[end + 1 :])


def wrong_place(text: str) -> int:
    """Where the macro begins that has no braces, or braces that stay open; -1 if there is none."""
    for found in MACRO.finditer(text):
        try:
            closing(text, found.end())
        except ValueError:
            return found.start()
    return -1


def closing(text: str, start: int) -> int:
    """The place of the brace that closes the one at `start`."""
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
    """The page with each formula and the signs at its ends in one piece, which does not break."""
    return IN_TEXT.sub(one_piece, html)


def one_piece(found: re.Match) -> str:
    ends = found[1] or found[3]
    return f'<span class="attn-glued">{found[0]}</span>' if ends else found[0]


def glue(app, page, template, context, doctree):
    """Once the page is made."""
    if "body" in context:
        context["body"] = glued(context["body"])


def setup(app):
    app.connect("html-page-context", glue)
