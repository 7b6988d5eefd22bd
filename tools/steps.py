"""Words of the text that set a figure: ``{do}`sort by the first <head_explorer: order=first>```.

Behind the name of a moving figure stand steps, with semicolons between them: a control by the name
that it has in the figure gets a value, ``key=3``, or is pressed, ``cut!``. A figure without a name
goes by its title: ``where-does-it-look``. Words about a figure of another page are a link to it,
set so, ``<real_model/real_model: switch0=1>``. ``states.js`` in ``book/assets`` takes the steps.
Without a script, on paper and in notebooks they are words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

ROLE_TEXT = re.compile(
    r"(?P<words>.+?)\s*<((?P<page>\w+)/)?(?P<figure>[\w-]+):\s*(?P<steps>[^<>]+)>", re.DOTALL
)
STEP_ARGUMENT = re.compile(r"[\w-]+(=.+|!)")


class Words(nodes.inline):
    """Words of a sentence that set a figure when they are pressed."""


@dataclass(frozen=True)
class Setting:
    """Words, and what they set: a figure, of this page unless another is named, by steps."""

    words: str
    figure: str
    steps: list[str]
    page: str | None = None

    @property
    def address(self) -> str:
        """The setting as the end of an address."""
        return "&".join(quote(part, safe="=!") for part in (self.figure, *self.steps))


def read_role(text: str) -> Setting:
    """Return what the role's text says; ``ValueError`` where it is not written so."""
    match = ROLE_TEXT.fullmatch(" ".join(text.split()))
    if match is None:
        raise ValueError(f"expected words <figure: step; step>, got {text!r}")
    steps = [step.strip() for step in match["steps"].split(";")]
    wrong = [step for step in steps if not STEP_ARGUMENT.fullmatch(step)]
    if wrong:
        raise ValueError(f"expected steps like key=3 and cut!, got {wrong[0]!r}")
    page = match["page"] and f"book/{match['page']}"
    return Setting(match["words"], match["figure"], steps, page)


def do(name, rawtext, text, lineno, inliner, options=None, content=None):
    """Make a link or a button of a `{do}` role: what it sets in a figure."""
    try:
        setting = read_role(text)
        if setting.page is None:
            return [Words(rawtext, setting.words, address=setting.address)], []
        env = inliner.document.settings.env
        if setting.page not in env.found_docs:
            raise ValueError(f"there is no page {setting.page}")
    except ValueError as problem:
        message = inliner.reporter.error(f"{{do}}: {problem}", line=lineno)
        return [nodes.problematic(rawtext, rawtext)], [message]
    page = env.app.builder.get_relative_uri(env.docname, setting.page)
    return [nodes.reference(rawtext, setting.words, refuri=f"{page}#set={setting.address}")], []


def open_words(writer, node):
    """Write the beginning of words that set a figure."""
    look = {"type": "button", "class": "attn-do", "data-do": node["address"]}
    if "after" in node:
        writer.body.append('<span class="attn-keep">')
    writer.body.append(writer.starttag(node, "button", "", **look))


def close_words(writer, node):
    """Write the end of words that set a figure."""
    writer.body.append("</button>")
    if "after" in node:
        writer.body.append(f"{node['after']}</span>")


class KeepPunctuation(SphinxPostTransform):
    """Keeps a comma with the words before it: a browser may break a line behind a button."""

    default_priority = 900

    def run(self, **_):
        """Hand each button of words the punctuation that follows it."""
        keep_punctuation(self.document)


def keep_punctuation(document: nodes.Element) -> None:
    """Move punctuation behind words that set a figure into them, as ``after``."""
    for words in list(document.findall(Words)):
        siblings = words.parent.children
        follows = siblings.index(words) + 1
        if follows == len(siblings) or not isinstance(siblings[follows], nodes.Text):
            continue
        text = str(siblings[follows])
        rest = text.lstrip(".,;:!?)”")
        if rest != text:
            words["after"] = text[: len(text) - len(rest)]
            words.parent.replace(siblings[follows], nodes.Text(rest))


def setup(app):
    """Register words that set a figure with Sphinx."""
    app.add_role("do", do)
    app.add_node(Words, html=(open_words, close_words))
    app.add_post_transform(KeepPunctuation)
