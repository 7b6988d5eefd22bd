"""Under *Deeper* each piece is folded: what a curious reader wants and the exercises do not need.

    ## Deeper
    ### The proof
    …

On a page of the book each `###` becomes a fold with its title; a link to something inside opens
it, and so does printing. In a notebook the headings stand as they are.
"""

from __future__ import annotations

from html import escape

from docutils import nodes

DEEPER_TITLE = "Deeper"


class Fold(nodes.Element):
    """A piece whose text shows when its title is chosen."""


def fold_pieces(app, doctree, page):
    """Put every section inside one that is called *Deeper* into a fold of its own."""
    for section in list(doctree.findall(nodes.section)):
        if section.next_node(nodes.title).astext() != DEEPER_TITLE:
            continue
        for piece in [child for child in section.children if isinstance(child, nodes.section)]:
            title = piece.next_node(nodes.title)
            assert title is not None, "a section of a page has a title"
            fold = Fold("", *piece.children[piece.index(title) + 1 :], title=title.astext())
            piece.children = [title, fold]
            fold.parent = piece


def open_fold(writer, node):
    """Write the beginning of a part that is folded."""
    name = escape(f"Read on: {node['title']}")
    writer.body.append(f'<details class="attn-deeper"><summary aria-label="{name}">')
    writer.body.append("Read on</summary>\n")


def close_fold(writer, node):
    """Write the end of a part that is folded."""
    writer.body.append("</details>\n")


def pass_through(writer, node):
    """Write a fold's content alone: formats other than HTML have no folds."""


def setup(app):
    """Register folded parts with Sphinx."""
    app.add_node(
        Fold,
        html=(open_fold, close_fold),
        latex=(pass_through, pass_through),
        text=(pass_through, pass_through),
    )
    app.connect("doctree-resolved", fold_pieces)
