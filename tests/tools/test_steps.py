"""Words that set a figure, as they are written in a page."""

from __future__ import annotations

import pytest
from chromium import ABSENT, BROWSER
from docutils import nodes
from steps import Setting, Words, close_words, keep_punctuation, open_words, read_setting

from helpers.project import ROOT


def test_words_figure_and_steps_are_read():
    assert read_setting("cut it <heads: key=3; cut!>") == Setting(
        "cut it", "heads", ["key=3", "cut!"]
    )
    setting = read_setting("so, there <real_model/real_model: text=It is, so; a-b=1>")
    assert setting == Setting(
        "so, there", "real_model", ["text=It is, so", "a-b=1"], "book/real_model"
    )
    assert setting.address == "real_model&text=It%20is%2C%20so&a-b=1"


@pytest.mark.parametrize("text", ["words", "words <figure>", "words <figure: cut>", "<figure: a!>"])
def test_another_syntax_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        read_setting(text)


def paragraph(*children) -> nodes.Element:
    """A sentence of words that set a figure and of text."""
    made = nodes.paragraph()
    made += [
        Words(child[1:], child[1:], address="f&a!") if child[0] == "*" else nodes.Text(child)
        for child in children
    ]
    keep_punctuation(made)
    return made


def test_punctuation_stays_with_the_words_before_it():
    made = paragraph("Then ", "*open it", ", or ", "*close it", "”). So ", "*on", " and ", "*off")
    words = list(made.findall(Words))
    assert [word.get("after") for word in words] == [",", "”).", None, None]
    texts = [str(child) for child in made.children if isinstance(child, nodes.Text)]
    assert texts == ["Then ", " or ", " So ", " and "]


class PageWriter:
    """What Sphinx's writer gives to the two functions."""

    def __init__(self):
        self.body = []

    def starttag(self, node, tag, end, **look):
        return f"<{tag} " + " ".join(f'{k}="{v}"' for k, v in look.items()) + f">{end}"


@pytest.mark.skipif(BROWSER is None, reason=ABSENT)
def test_no_line_begins_with_a_comma(browser):
    writer = PageWriter()
    for child in paragraph("Then ", "*open a score", ", or change").children:
        if isinstance(child, Words):
            open_words(writer, child)
            writer.body.append(child.astext())
            close_words(writer, child)
        else:
            writer.body.append(str(child))
    page = browser.new_page()
    css = (ROOT / "book" / "assets" / "attncourse.css").read_text()
    page.set_content(f"<style>{css}</style><p style='font: 16px sans-serif'>{''.join(writer.body)}")
    assert page.locator("p").inner_text() == "Then open a score, or change"
    begins = page.evaluate(
        """() => {
            const p = document.querySelector("p"), button = p.querySelector("button");
            const walk = document.createTreeWalker(p, NodeFilter.SHOW_TEXT), range = document.createRange();
            let comma = walk.nextNode(), count = 0;
            while (!comma.data.includes(",")) comma = walk.nextNode();
            const at = comma.data.indexOf(",");
            range.setStart(comma, at);
            range.setEnd(comma, at + 1);
            for (let width = 60; width < 220; width++) {
                p.style.width = `${width}px`;
                if (range.getBoundingClientRect().top > button.getBoundingClientRect().bottom - 4) count++;
            }
            return count;
        }"""  # noqa: E501
    )
    assert begins == 0
    page.close()
