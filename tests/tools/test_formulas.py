"""A formula in a line of text keeps the signs at its ends on its line."""

from __future__ import annotations

import pytest
from formulas import glued

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
def test_signs_stay_with_the_formula(text, piece):
    assert f'<span class="attn-glued">{piece}</span>' in glued(text)
    assert glued(text).replace('<span class="attn-glued">', "").count("<span") == text.count(
        "<span"
    )


@pytest.mark.parametrize("text", [f"<p>so {MATH} and</p>", "<p>so, and (b).</p>"])
def test_what_has_no_sign_at_its_ends_stays(text):
    assert glued(text) == text
