"""What a piece of HTML could do: the tests' own judgement, apart from any sanitiser's."""

import re
from html.parser import HTMLParser

TEXT = "p br hr h1 h2 h3 h4 h5 h6 ul ol li pre code em strong del blockquote span div a s u"
TABLES = "table thead tbody tr td th input details summary sub sup dl dt dd b i"
INERT = {*TEXT.split(), *TABLES.split()}
MATHML = {"math", "mi", "mo", "mn", "mrow", "mtext", "msub", "msup", "msubsup", "mfrac"}
HARMLESS = {"class", "id", "name", "role", "type", "disabled", "checked", "start", "title", "open"}


class Markup(HTMLParser):
    """The tags and attributes of a piece of HTML, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str, str]] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {(tag, name, value or "") for name, value in attrs}

    def handle_data(self, data):
        self.text += data

    handle_startendtag = handle_starttag
    handle_comment = handle_decl = handle_pi = unknown_decl = lambda self, text: self.tags.add("!")


def acts(html: str, *expected: str) -> list:
    """Tags and attributes that do something, but for the expected tags: there should be none."""
    parts = Markup(html)
    found: list = sorted(parts.tags - INERT - MATHML - set(expected))
    for tag, name, value in parts.attributes:
        if tag in expected or name in HARMLESS:
            continue
        if tag in MATHML and name in ("xmlns", "display", "mathvariant", "stretchy", "form"):
            continue
        if name == "style" and "url" not in value and "(" not in value.replace("rgba(", ""):
            continue
        if (tag, name) != ("a", "href") or not re.match(r"https?://|mailto:|#", value):
            found.append((tag, name, value))
    return found
