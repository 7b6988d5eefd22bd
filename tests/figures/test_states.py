"""Words that set a figure, and the address of a setting: each leads to the same figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from attncourse.figures import attention_view, moving, slider
from attncourse.figures.bars import Bars
from helpers.figure_reader import needs_browser
from helpers.figure_samples import NUMBERS, TOKENS, heads
from helpers.project import ROOT
from helpers.real_model_page import SENTENCE, ready
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
            f'<p>Now <button type="button" class="attn-do" data-do="{address}">do it</button>.</p>'
            for address in self.addresses
        )
        return f"{words}<script>{SCRIPT}</script>"


def switch_states(reader) -> list[str]:
    switches = reader.figure.locator(".am-stage [data-part^=switch]")
    return switches.evaluate_all("all => all.map(one => one.ariaPressed)")


def test_words_set_the_figure_by_mouse_and_key_and_say_so(opened):
    reader = opened(heads(), Prose("heads_off&amp;switch-1=false", "heads_off&amp;all!"))
    assert switch_states(reader) == ["true"] * 3
    words = reader.page.locator(".attn-do")
    words.first.click()
    assert switch_states(reader) == ["true", "false", "true"]
    assert reader.says.startswith("Off:")
    words.first.click()  # what is so already stays
    assert switch_states(reader) == ["true", "false", "true"]
    words.last.focus()
    reader.page.keyboard.press("Enter")
    assert switch_states(reader) == ["true"] * 3


def test_a_link_is_copied_and_leads_to_the_setting(opened):
    reader = opened(heads(), Prose())
    reader.figure.locator(".am-stage [data-part=switch-2]").click()
    reader.figure.locator(".am-stage [data-part=switch-0]").click()
    reader.button("Link").click()
    reader.page.wait_for_function("() => location.hash")
    address = reader.page.evaluate("() => location.hash")
    assert address == "#set=heads_off&switch-0=false&switch-2=false"
    second_reader = opened(heads(), Prose())
    second_reader.page.evaluate("address => { location.hash = address; }", address)
    second_reader.page.wait_for_function(
        "() => document.querySelector('[data-part=switch-2]').ariaPressed === 'false'"
    )
    assert switch_states(second_reader) == ["false", "true", "false"]
    assert second_reader.now == reader.now


@pytest.mark.parametrize("old", ["switch-9=false", "nothing!", "%", "all"])
def test_an_outdated_address_changes_nothing_and_says_so(opened, old):
    reader = opened(heads(), Prose())
    reader.page.evaluate("old => { location.hash = `#set=heads_off&${old}`; }", old)
    reader.page.wait_for_function(
        "() => document.querySelector('.am-say').textContent.includes('another edition')"
    )
    assert switch_states(reader) == ["true"] * 3


def test_the_real_model_is_set_once_it_is_loaded(opened, path):
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
    assert copied == "#set=real_model&text=otters met. otters&order=layer&off=4&chosen=4"


def test_piece_and_score_are_in_the_address(opened, path):
    steps = ["text=otters met. otters", "word=2", "key=1", "order=layer", "chosen=6", "why=true"]
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


TEXT_SETTING = "text=otters met. otters"


def real_model_reader(opened, path, *verbs: str, address: str = ""):
    """Open the real model beside verbs; load it and set it as an address says."""
    reader = opened(
        moving.real_model([SENTENCE]), Prose(*(verb.replace("&", "&amp;") for verb in verbs))
    )
    if address:
        reader.page.evaluate("to => { location.hash = to; }", address)
        reader.page.wait_for_function("() => !document.querySelector('[data-part=wanted]').hidden")
    reader.figure.locator("[data-part=file]").set_input_files(path)
    ready(reader)
    return reader


def displayed_values(reader) -> dict:
    return {name: value for name, value in reader.now.items() if name not in ("ms", "read")}


def copied_address(reader) -> str:
    reader.page.locator(".attn-copy-link").click()
    reader.page.wait_for_function("() => location.hash")
    return reader.page.evaluate("() => decodeURIComponent(location.hash)")


COUNT_JOBS = """() => {
    window.jobs = [];
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (asked) {
        jobs.push(asked.job);
        post.call(this, asked);
    };
}"""
CUT_IN_EACH_HEAD = "&".join(f"rank={head + 1}&key=3&cut!" for head in range(12))


@pytest.mark.parametrize(
    "steps", ["key=3&cutall!", f"order=layer&{CUT_IN_EACH_HEAD}&order=previous"]
)
def test_a_cut_in_all_heads_has_a_short_address(opened, path, steps):
    """An address of today and one of the past each read the model once."""
    reader = real_model_reader(opened, path)
    before = reader.figure.locator(".rm-words button").count()
    reader.figure.locator("textarea").fill("otters met. otters")
    reader.page.wait_for_function(
        "n => document.querySelectorAll('.rm-words button').length !== n", arg=before
    )
    ready(reader)
    reader.figure.locator("[data-part=key]").select_option("3")
    ready(reader)
    reader.button("cut in all heads").click()
    ready(reader)
    last = len(reader.now["ids"]) - 1
    assert copied_address(reader) == f"#set=real_model&{TEXT_SETTING}&key=3&cuts={last}-3"
    for address in (copied_address(reader), f"#set=real_model&{TEXT_SETTING}&{steps}"):
        second_reader = opened(moving.real_model([SENTENCE]), Prose())
        second_reader.page.evaluate(COUNT_JOBS)
        second_reader.page.evaluate("to => { location.hash = to; }", address)
        second_reader.figure.locator("[data-part=file]").set_input_files(path)
        second_reader.page.wait_for_function(
            "() => document.querySelector('.attncourse-moving').now?.way.cuts.length === 12"
        )
        ready(second_reader)
        now, before = displayed_values(second_reader), displayed_values(reader)
        if address.endswith("order=previous"):  # which sorts after the cuts
            assert sorted(now.pop("ranked")) == sorted(before.pop("ranked"))
        assert now == before
        assert second_reader.page.evaluate("() => jobs.filter(job => job === 'read').length") <= 2


STATES = [
    "temperature=0.4&topp=0.6&word=4&key=2&order=word&first=3",
    "written=7.30.31&off=0-3.7.9-10&cuts=5-1_2.4-6~6-6&order=first&chosen=8",
    "key=1&order=induction&switch1=1&switch6=4&off=3.8&chosen=5&why=true&turned=false",
    "word=3&other=They sorted&from=0&to=2",
]


@pytest.mark.parametrize("steps", STATES)
def test_an_address_brings_the_whole_state(opened, path, steps):
    reader = real_model_reader(opened, path, address=f"#set=real_model&{TEXT_SETTING}&{steps}")
    assert copied_address(reader) == f"#set=real_model&{TEXT_SETTING}&{steps}"
    second_reader = real_model_reader(opened, path, address=copied_address(reader))
    assert displayed_values(second_reader) == displayed_values(reader)
    full_state = """root => [root.why, root.tried, root.querySelector(".rm-words").innerHTML,
        ...[...root.querySelectorAll("select, input")].map(one => one.value)]"""
    assert second_reader.figure.evaluate(full_state) == reader.figure.evaluate(full_state)


@pytest.mark.parametrize(
    "steps",
    [
        "word=99",
        "order=constructor",
        "off=0-99999999999",
        "cuts=2",
        "chosen=-1",
        "switch1=7",
        "toString=1",
    ],
)
def test_a_state_that_the_model_does_not_have_is_reported(opened, path, steps):
    reader = real_model_reader(
        opened, path, f"real_model&{TEXT_SETTING}", f"real_model&{TEXT_SETTING}&{steps}"
    )
    verbs = reader.page.locator(".attn-do")
    verbs.first.click()
    ready(reader)
    clean = displayed_values(reader)
    verbs.last.click()
    reader.page.wait_for_function(
        "() => document.querySelector('[role=status]').textContent.includes('another edition')"
    )
    ready(reader)
    assert displayed_values(reader) == clean


VERBS = [
    "key=1&cutall!", "order=layer&rank=5&key=1&cut!", "order=induction&first=5",
    "order=layer&rank=7&key=1&why=true", "order=layer&rank=7&key=1&why=true&turned=false",
    "switch2=1", "temperature=2",
]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_begins_from_a_clean_state(opened, path, verb):
    """Whatever was changed before, a verb sets what it sets on a page just opened."""
    reader = real_model_reader(opened, path, f"real_model&{TEXT_SETTING}&{verb}")
    button = reader.page.locator(".attn-do")
    why = "root => root.querySelector('[data-part=because]').hidden || root.why"
    button.click()
    ready(reader)
    clean, score, sentence = displayed_values(reader), reader.figure.evaluate(why), reader.says
    reader.figure.locator("[data-part=temperature]").fill("0.3")
    reader.figure.locator("[data-part=order]").select_option("first")
    ready(reader)
    for name in ("Switch head", "cut in this head", "halves", "Why this score?"):
        reader.figure.get_by_role("button", name=name).first.click()
        ready(reader)
    reader.button("Write on").click()  # a verb stops it
    reader.page.wait_for_function("() => document.querySelector('.rm-out').textContent")
    button.click()
    reader.page.wait_for_function(
        "() => document.querySelector('[role=status]').textContent.startsWith('Put back: ')"
    )
    ready(reader)
    assert displayed_values(reader) == clean
    assert reader.figure.evaluate(why) == score
    assert reader.says.startswith("Put back: ")
    assert "Temperature 0.3. " in reader.says
    assert reader.says.endswith(sentence)


IS_IN_SIGHT_SCRIPT = """selector => {
    const box = document.querySelector(selector).getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight && box.height > 0; }"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("verb", "result"),
    [
        ("key=1&cutall!", ".rm-next"),
        ("order=layer&rank=7&key=1&why=true", "[data-part=because]"),
        ("other=They sorted&carry!", "[data-part=carried]"),
        ("curve!", "[data-part=curves]"),
    ],
)
def test_the_control_that_a_verb_sets_scrolls_into_sight(opened, path, width, verb, result):
    words = Prose(f"real_model&amp;{TEXT_SETTING}&amp;{verb.replace('&', '&amp;')}")
    reader = opened(moving.real_model([SENTENCE]), words, width=width)
    reader.figure.locator("[data-part=file]").set_input_files(path)
    ready(reader)
    if result in ("[data-part=carried]", "[data-part=curves]"):  # lower than their buttons
        reader.page.set_viewport_size({"width": width, "height": 420})
    reader.page.evaluate("() => document.body.append(document.createElement('div'))")
    reader.page.evaluate("() => { document.body.lastChild.style.height = '900px'; }")
    reader.page.locator(".attn-do").click()
    reader.page.wait_for_function(IS_IN_SIGHT_SCRIPT, arg=result)
    ready(reader)
    assert reader.page.evaluate(IS_IN_SIGHT_SCRIPT, result)


def test_a_link_says_in_its_own_place_that_it_is_copied(opened):
    reader = opened(heads(), Prose())
    reader.page.locator(".attn-copy-link").click()
    reader.page.wait_for_function(
        "() => document.querySelector('.attn-copy-link').textContent.endsWith('✓')"
    )


def test_a_state_asks_for_the_model_beside_its_button(opened):
    reader = opened(
        moving.real_model(), Prose(f"real_model&amp;{TEXT_SETTING}&amp;switch1=1"), width=390
    )
    reader.figure.locator(".rm-words button").last.wait_for()
    ready(reader)
    asks = reader.figure.locator("[data-part=wanted]")
    assert not asks.is_visible()
    reader.page.locator(".attn-do").click()
    for name in ("wanted", "load"):
        assert reader.page.evaluate(IS_IN_SIGHT_SCRIPT, f"[data-part={name}]"), name
    assert reader.figure.locator(".rm-old").count() == 1  # the picture is another state's


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


SHOWN_SCRIPT = """() => { const figure = document.querySelector("[role=group]");
    return [figure.innerText, ...figure.querySelectorAll("path")].map(one =>
        one.getAttribute ? [one.getAttribute("d"), getComputedStyle(one).strokeWidth] : one); }"""


FIGURE_SETTINGS = [(name, setting) for name, settings in SETTINGS.items() for setting in settings]


@pytest.mark.parametrize(("name", "setting"), FIGURE_SETTINGS)
def test_the_setting_of_every_kind_of_figure_has_an_address(opened, name, setting):
    """A figure set by an address, and by the link copied then, shows the same."""
    shown, address = [], f"#set={name}&{setting}"
    for _ in range(2):
        reader = opened(FIGURES[name](), Prose())
        first = reader.page.evaluate(SHOWN_SCRIPT)
        reader.page.evaluate("to => { location.hash = to; }", address)
        reader.page.wait_for_timeout(60)
        assert "edition" not in reader.page.inner_text("body")
        shown.append(reader.page.evaluate(SHOWN_SCRIPT))
        assert shown[-1] != first
        reader.page.get_by_role("button", name="Link").click()
        reader.page.wait_for_function(
            "() => document.querySelector('.attn-copy-link').title.includes('address bar')"
        )
        address = reader.page.evaluate("() => location.hash")
        assert address.startswith(f"#set={name}&")
    assert shown[0] == shown[1]


@pytest.mark.parametrize("old", ["mask_painter&state=111.111", "attention_stepper&state=3,x"])
def test_a_state_of_another_size_is_reported(opened, old):
    name = old.partition("&")[0]
    reader = opened(FIGURES[name](), Prose())
    before = reader.now
    reader.page.evaluate("old => { location.hash = `#set=${old}`; }", old)
    reader.page.wait_for_function("() => document.body.innerText.includes('another edition')")
    assert reader.now == before
