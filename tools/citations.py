"""Citations as author and year in round brackets, and the list of what they name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from docutils import nodes
from pybtex.backends import plaintext
from pybtex.plugin import register_plugin as remember_plugin
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def round_brackets() -> BracketStyle:
    """Return the brackets that citations stand in."""
    return BracketStyle(left="(", right=")", sep="; ", sep2="; ", last_sep="; ")


@dataclass
class AuthorYearRound(AuthorYearReferenceStyle):
    """(Vaswani et al., 2017) and Vaswani et al. (2017)."""

    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)


def link_arxiv(app, doctree, page):
    """Link a paper's number at arXiv, unless the entry has an address already."""
    for entry in doctree.findall(nodes.citation):
        for text in list(entry.findall(nodes.Text)):
            if isinstance(text.parent, nodes.reference):
                continue
            parts = ARXIV.split(text)  # text, number, text, number, …, text
            if len(parts) == 1:
                continue
            new: list[nodes.Node] = [nodes.Text(parts[0])]
            for number, after in zip(parts[1::2], parts[2::2], strict=True):
                target = f"https://arxiv.org/abs/{number}"
                link = nodes.reference("", f"arXiv:{number}", refuri=target, internal=False)
                new += [link, nodes.Text(after)]
            text.parent.replace(text, new)


def setup(app):
    """Register the style of citations with Sphinx."""
    register_plugin(
        "sphinxcontrib.bibtex.style.referencing", "author_year_round", AuthorYearRound, force=True
    )
    # Looked up for every citation, and each time among all that is installed.
    remember_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
    app.connect("doctree-resolved", link_arxiv)
