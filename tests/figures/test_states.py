"""Words that set a figure, and the address of a setting: each leads to the same figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from attncourse.figures import attention_view, moving, slider
from attncourse.figures.bars import Bars
from helpers.figure_reader import needs_browser
from helpers.figure_samples import NUMBERS, TOKENS, heads
from helpers.live_model_page import SENTENCE, ready
from helpers.project import ROOT
from helpers.small_llama import small_file

SCRIPT = (ROOT / "book" / "assets" / "states.js").read_text(encoding="utf-8")
pytestmark = needs_browser


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return small_file(tmp_path_factory.mktemp("small") / "small.gguf")


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


def test_the_live_model_is_set_once_it_is_loaded(opened, path):
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


def test_piece_and_score_are_in_the_address(opened, path):
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


PANEL = [Bars(["a"], [[0.1], [0.2], [0.4]], "p", "one bar")]
MASK = {"scores": [[1.0, 0.5], [0.3, 1.0]], "values": [[0, 1], [2, 0]], "tokens": ["a", "b"]}
FIGURES = {
    "mask_painter": lambda: moving.mask_painter(**MASK),
    "attention_stepper": lambda: moving.attention_stepper(**NUMBERS, tokens=TOKENS),
    "width_slider": moving.width_slider,
    "position_dial": moving.position_dial,
    "a-b": lambda: attention_view([[[1, 0], [0.5, 0.5]]] * 2, ["a", "b"], title="A b!", arcs=True),
    "heat-t": lambda: slider("heat T", [1, 2, 4], PANEL, "xyz"),
}
SETTINGS = {
    "mask_painter": ["state=11.01", "state=00.10&layers=2"],
    "attention_stepper": ["asks=1&stage=0&why-2=true", "state=" + ",".join("3" * 27)],
    "width_slider": ["width=2&divisor=1"],
    "position_dial": ["s=3&t=40&pace=0"],
    "a-b": ["map=1", "map=1&word=1"],
    "heat-t": ["at=2"],
}


SHOWN = """() => { const figure = document.querySelector("[role=group]");
    return [figure.innerText, ...figure.querySelectorAll("path")].map(one =>
        one.getAttribute ? [one.getAttribute("d"), getComputedStyle(one).strokeWidth] : one); }"""


EACH = [(name, setting) for name, some in SETTINGS.items() for setting in some]


@pytest.mark.parametrize(("name", "setting"), EACH)
def test_the_setting_of_every_kind_of_figure_has_an_address(opened, name, setting):
    """Set by an address, linked, and set by that link, a figure shows the same."""
    shown, address = [], f"#set={name}&{setting}"
    for _ in range(2):
        reader = opened(FIGURES[name](), Prose())
        first = reader.page.evaluate(SHOWN)
        reader.page.evaluate("to => { location.hash = to; }", address)
        reader.page.wait_for_timeout(60)
        assert "edition" not in reader.page.inner_text("body")
        shown.append(reader.page.evaluate(SHOWN))
        assert shown[-1] != first
        reader.page.get_by_role("button", name="Link").click()
        reader.page.wait_for_function(
            "() => document.querySelector('.attn-copy-link').title.includes('address bar')"
        )
        address = reader.page.evaluate("() => location.hash")
        assert address.startswith(f"#set={name}&")
    assert shown[0] == shown[1]


@pytest.mark.parametrize("old", ["mask_painter&state=111.111", "attention_stepper&state=3,x"])
def test_a_state_of_another_size_is_told(opened, old):
    name = old.partition("&")[0]
    reader = opened(FIGURES[name](), Prose())
    before = reader.now
    reader.page.evaluate("old => { location.hash = `#set=${old}`; }", old)
    reader.page.wait_for_function("() => document.body.innerText.includes('another edition')")
    assert reader.now == before
