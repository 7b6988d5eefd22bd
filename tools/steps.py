"""Words of the text that set a figure: ``{do}`sort by the first <head_explorer: order=first>```.

Behind the name of a moving figure stand steps, with semicolons between them: a control by the name
that it has in the figure gets a value, ``key=3``, or is pressed, ``cut!``. ``states.js`` in
``book/assets`` takes them. Without a script, on paper and in notebooks they are words.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from docutils import nodes

WRITTEN = re.compile(r"(?P<words>.+?)\s*<(?P<figure>\w+):\s*(?P<steps>[^<>]+)>", re.DOTALL)
STEP = re.compile(r"[\w-]+(=.+|!)")


class Words(nodes.inline):
    """Words of a sentence that set a figure when they are pressed."""


def parts(text: str) -> tuple[str, str, list[str]]:
    """The words, the figure's name and the steps; ``ValueError`` where they are not written so."""
    found = WRITTEN.fullmatch(" ".join(text.split()))
    if found is None:
        raise ValueError(f"expected words <figure: step; step>, got {text!r}")
    steps = [step.strip() for step in found["steps"].split(";")]
    wrong = [step for step in steps if not STEP.fullmatch(step)]
    if wrong:
        raise ValueError(f"expected steps like key=3 and cut!, got {wrong[0]!r}")
    return found["words"], found["figure"], steps


def do(name, rawtext, text, lineno, inliner, options=None, content=None):
    """The role."""
    try:
        words, figure, steps = parts(text)
    except ValueError as problem:
        message = inliner.reporter.error(f"{{do}}: {problem}", line=lineno)
        return [nodes.problematic(rawtext, rawtext)], [message]
    address = "&".join(quote(one, safe="=!") for one in (figure, *steps))
    return [Words(rawtext, words, address=address)], []


def open_words(writer, node):
    look = {"type": "button", "class": "attn-do", "data-do": node["address"]}
    writer.body.append(writer.starttag(node, "button", "", **look))


def close_words(writer, node):
    writer.body.append("</button>")


def setup(app):
    app.add_role("do", do)
    app.add_node(Words, html=(open_words, close_words))
