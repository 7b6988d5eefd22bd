"""A formula keeps the signs at its ends on its line, and is drawn when its page is made."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from formulas import drawn, glued

MATH = '<span class="math notranslate nohighlight">{}</span>'.format(r"\(a &lt; b\)")


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        (f"<p>so {MATH}, and</p>", f"{MATH},"),
        (f"<p>({MATH})</p>", f"({MATH})"),
        (f"<p>({MATH}, {MATH}).</p>", f"({MATH},"),
        (f"<p>{MATH}.</p>", f"{MATH}."),
    ],
)
def test_punctuation_stays_with_the_formula(text, piece):
    assert f'<span class="attn-glued">{piece}</span>' in glued(text)
    assert glued(text).replace('<span class="attn-glued">', "").count("<span") == text.count(
        "<span"
    )


@pytest.mark.parametrize("text", [f"<p>so {MATH} and</p>", "<p>so, and (b).</p>"])
def test_formulas_without_punctuation_stay(text):
    assert glued(text) == text


PAGE = (
    r'<p>so <span class="math notranslate nohighlight">\(\query{Q}\key{K}^\top &lt; 3\)</span>, '
    "and</p>"
    r'<div class="math notranslate nohighlight" id="eq"><span class="eqno">(5.1)</span>'
    r"\[\begin{split}a &amp; b \\[2pt] c\end{split}\]</div>"
    r'<div class="amsmath math">\begin{align}a &amp;= b\end{align}</div>'
)


def test_formulas_are_drawn_with_their_glyphs_and_mathml():
    wrong = []
    page = BeautifulSoup(drawn(PAGE, wrong.append), "html.parser")
    assert wrong == []
    shown = page.select("mjx-container")
    assert [container["data-tex"] for container in shown] == [
        r"\query{Q}\key{K}^\top < 3",
        r"\begin{split}a & b \\[2pt] c\end{split}",
        r"\begin{align}a &= b\end{align}",
    ]
    assert [container.has_attr("display") for container in shown] == [False, True, True]
    assert all(
        container.select_one("svg use") and container.select_one("math") for container in shown
    )
    glyphs = [path["id"] for path in page.select(".attn-glyphs path")]
    assert len(glyphs) == len(set(glyphs))
    assert {use["href"] for use in page.select("use")} == {f"#{name}" for name in glyphs}
    assert len(page.select("svg .attn-query use")) == len(page.select("math .attn-key")) == 1
    assert page.select_one("#eq .eqno").get_text() == "(5.1)"


@pytest.mark.parametrize("tex", [r"\frac{a}{", r"\nothing", r"a }"])
def test_an_unreadable_formula_is_reported_and_stays(tex):
    wrong = []
    text = rf'<span class="math">\({tex}\)</span>'
    assert drawn(text, wrong.append).startswith(text)
    assert len(wrong) == 1
    assert repr(tex) in wrong[0]


def test_a_page_without_formulas_carries_no_glyphs():
    assert drawn("<p>none</p>") == "<p>none</p>"
