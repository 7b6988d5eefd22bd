"""Code and what it prints, line by line: on a phone a line that is too long wraps, and is marked.

A box of code is one text. Here each of its lines becomes an element of its own and the box learns
how many columns it has, so that the style sheet can make letters smaller where that is enough, and
mark where a line goes on.
"""

from __future__ import annotations

import re
from html import unescape

BOX = re.compile(r'(<div class="highlight"><pre)>(.*?)(</pre>)', re.DOTALL)
NARROW = 40  # columns that fit every phone


def in_rows(html: str) -> str:
    """Return the page with the lines of its boxes of code in rows of their own."""
    return BOX.sub(one_box, html)


def one_box(match: re.Match) -> str:
    """Return a box of code with each line in a row of its own."""
    head, code, tail = match.groups()
    lines = code.removesuffix("\n").split("\n")  # the highlighter ends what it colours at each end
    plain = [unescape(re.sub(r"<[^>]+>", "", line)) for line in lines]
    rows = "".join(map(code_row_html, lines, plain))
    return f'{head} style="--columns:{max(map(len, plain))}">{rows}{tail}'


def code_row_html(line: str, plain: str) -> str:
    """Return a line as a row; a long one says its indent, for its second half to stand below."""
    indent = len(plain) - len(plain.lstrip(" "))
    far = f' style="--in:{indent}"' if indent and len(plain) > NARROW else ""
    return f'<span class="attn-row"{far}>{line}\n</span>'


def lay_out_code(app, page, template, context, doctree):
    """Put code into rows once all else has made the page."""
    if "body" in context:
        context["body"] = in_rows(context["body"])


def setup(app):
    """Register the rows of code with Sphinx."""
    app.connect("html-page-context", lay_out_code, priority=950)
