"""Words that set a figure, as they are written in a page."""

from __future__ import annotations

import pytest
from steps import Setting, read_setting


def test_words_figure_and_steps_are_read():
    assert read_setting("cut it <heads: key=3; cut!>") == Setting(
        "cut it", "heads", ["key=3", "cut!"]
    )
    there = read_setting("so, there <real_model/real_model: text=It is, so; a-b=1>")
    assert there == Setting(
        "so, there", "real_model", ["text=It is, so", "a-b=1"], "book/real_model"
    )
    assert there.address == "real_model&text=It%20is%2C%20so&a-b=1"


@pytest.mark.parametrize("text", ["words", "words <figure>", "words <figure: cut>", "<figure: a!>"])
def test_what_is_written_otherwise_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        read_setting(text)
