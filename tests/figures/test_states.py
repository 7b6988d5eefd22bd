"""Words that set a figure, and the address of a setting: each leads to the same figure."""

from __future__ import annotations

import pytest
from conftest import ROOT
from moving_pages import needs_browser
from test_moving_figures import heads
from test_moving_real_model import SENTENCE, path, ready  # noqa: F401

from attncourse.figures import moving

SCRIPT = (ROOT / "book" / "assets" / "states.js").read_text(encoding="utf-8")
pytestmark = needs_browser


class Prose:
    """Words beside a figure, and the book's script."""

    def __init__(self, *addresses: str):
        self.addresses = addresses

    def _repr_html_(self) -> str:
        words = "".join(
            f'<p>Now <button type="button" class="attn-do" data-do="{one}">do it</button>.</p>'
            for one in self.addresses
        )
        return f"{words}<script>{SCRIPT}</script>"


def states(reader) -> list[str]:
    switches = reader.figure.locator(".am-stage [data-part^=switch]")
    return switches.evaluate_all("all => all.map(one => one.ariaPressed)")


def test_words_set_the_figure_by_mouse_and_key_and_say_so(opened):
    reader = opened(heads(), Prose("heads_off&amp;switch-1=false", "heads_off&amp;all!"))
    assert states(reader) == ["true"] * 3
    words = reader.page.locator(".attn-do")
    words.first.click()
    assert states(reader) == ["true", "false", "true"]
    assert reader.says.startswith("Off:")
    words.first.click()  # what is so already stays
    assert states(reader) == ["true", "false", "true"]
    words.last.focus()
    reader.page.keyboard.press("Enter")
    assert states(reader) == ["true"] * 3


def test_a_link_is_copied_and_leads_to_the_setting(opened):
    reader = opened(heads(), Prose())
    reader.figure.locator(".am-stage [data-part=switch-2]").click()
    reader.figure.locator(".am-stage [data-part=switch-0]").click()
    reader.button("Link").click()
    reader.page.wait_for_function("() => location.hash")
    address = reader.page.evaluate("() => location.hash")
    assert address == "#set=heads_off&switch-0=false&switch-2=false"
    other = opened(heads(), Prose())
    other.page.evaluate("address => { location.hash = address; }", address)
    other.page.wait_for_function(
        "() => document.querySelector('[data-part=switch-2]').ariaPressed === 'false'"
    )
    assert states(other) == ["false", "true", "false"]
    assert other.now == reader.now


@pytest.mark.parametrize("old", ["switch-9=false", "nothing!", "%", "all"])
def test_an_old_address_leaves_the_figure_and_says_so(opened, old):
    reader = opened(heads(), Prose())
    reader.page.evaluate("old => { location.hash = `#set=heads_off&${old}`; }", old)
    reader.page.wait_for_function(
        "() => document.querySelector('.am-say').textContent.includes('another edition')"
    )
    assert states(reader) == ["true"] * 3


def test_the_live_model_is_set_once_it_is_loaded(opened, path):  # noqa: F811
    address = "real_model&amp;text=otters met. otters&amp;order=layer&amp;rank=5&amp;head!"
    reader = opened(moving.real_model([SENTENCE]), Prose(address))
    reader.page.locator(".attn-do").click()
    assert "Load the model" in reader.says
    reader.figure.locator("[data-part=file]").set_input_files(path)
    reader.page.wait_for_function(
        "() => document.querySelector('.attncourse-moving').now?.way.off.length === 1"
    )
    ready(reader)
    assert reader.now["way"]["off"] == [4]
    assert reader.figure.locator("textarea").input_value() == "otters met. otters"
    reader.button("Link").click()
    copied = reader.page.evaluate("() => decodeURIComponent(location.hash)")
    assert copied.startswith(
        "#set=real_model&text=otters met. otters&order=layer&rank=5&head!&order=layer"
    )


def test_the_chosen_piece_and_the_score_that_is_explained_are_in_the_address(opened, path):  # noqa: F811
    steps = ["text=otters met. otters", "word=2", "order=layer", "rank=7", "key=1", "why=true"]
    address = "&amp;".join(["real_model", *steps])
    reader = opened(moving.real_model([SENTENCE]), Prose(address))
    reader.figure.locator("[data-part=file]").set_input_files(path)
    ready(reader)
    reader.page.locator(".attn-do").click()
    reader.page.wait_for_function("() => document.querySelector('.attncourse-moving').why")
    ready(reader)
    assert (reader.now["query"], reader.now["head"]) == (2, 6)
    why = reader.figure.evaluate("root => [root.why.head, root.why.chosen]")
    assert why == [6, 1]
    reader.button("Link").click()
    copied = reader.page.evaluate("() => decodeURIComponent(location.hash)")
    assert copied == f"#set={address}".replace("&amp;", "&")
