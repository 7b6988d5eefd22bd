"""The live model of chapters 13 and 14: in the page it says what the package's GPT says."""

from __future__ import annotations

import base64
import json
import math
import re
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
import vendor
from torch.nn import functional as F

from attncourse.figures.moving import LiveModel
from attncourse.figures.moving.figure import lean
from attncourse.figures.moving.live_model import round_to_16_bits
from attncourse.figures.theme import read_asset
from attncourse.gpt import GPT, GPTConfig
from attncourse.masking import causal_mask
from attncourse.tasks.pronouns import PronounWorld
from helpers.figure_reader import FigureReader, needs_browser

WORLD = PronounWorld()
BEGINNING = "today the doctor is small and cute ."
MARKUP_WORD = "<img/src=x/onerror=alert(1)>"


def gpt(seed: int = 0, n_vocab: int = len(WORLD.words), max_length: int = 17, **sizes) -> GPT:
    """Return a GPT with random weights large enough for its maps and logits to differ."""
    torch.manual_seed(seed)
    sizes = {"d_model": 6, "n_heads": 3, "d_ff": 11, **sizes}
    model = GPT(GPTConfig(n_vocab, max_length, **sizes)).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=1.5 / math.sqrt(sizes["d_model"]))
    return model


def constant_gpt(chances: dict[str, float]) -> GPT:
    """Return a GPT with the same next-word probabilities whatever it has read."""
    model = gpt(tied=False)
    model.norm.gain.data.zero_()
    model.norm.bias.data = torch.eye(6)[0]
    model.out.weight.data[:, 0] = -50
    for word, chance in chances.items():
        model.out.weight.data[WORLD.places[word], 0] = math.log(chance)
    return model


def live_figure(model: GPT | None = None, **more) -> LiveModel:
    return LiveModel(gpt() if model is None else model, WORLD, **more)


def ablated(model: GPT, on: list[list[bool]]) -> GPT:
    """Return a copy in float64 in which W_o reads zeros from the heads that are off."""
    model = deepcopy(model).double()
    for block, states in zip(model.blocks, on, strict=True):
        width = model.config.d_model // len(states)
        lit = torch.tensor(states, dtype=torch.float64).repeat_interleave(width)
        block.attention.W_o.register_forward_pre_hook(lambda _, x, lit=lit: (x[0] * lit,))
    return model


@torch.no_grad()
def by_package(model: GPT, ids: list[int], on: list[list[bool]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the package's logits and the maps of all layers."""
    model, seen = ablated(model, on), []
    for block in model.blocks:
        block.attention.register_forward_pre_hook(lambda layer, x: seen.append((layer, x[0])))
    logits = model(torch.tensor(ids))
    maps = [layer.weights(x, mask=causal_mask(len(ids))) for layer, x in seen]
    return logits.numpy(), torch.stack(maps).numpy()


def all_heads_on(model: GPT) -> list[list[bool]]:
    return [[True] * model.config.n_heads for _ in model.blocks]


def assert_close(computed, expected, atol=1e-3) -> None:
    np.testing.assert_allclose(computed, expected, rtol=0, atol=atol)


def assert_shows_story(
    reader: FigureReader, model: GPT, story: str, on: list[list[bool]] | None = None
) -> None:
    """Assert that the page's newest results are the package's for the story."""
    now, on = reader.now, all_heads_on(model) if on is None else on
    assert now["tokens"] == ["<start>", *story.split()]
    assert now["on"] == on
    logits, maps = by_package(model, WORLD.beginning(story), on)
    assert_close(now["logits"], logits)
    assert_close(now["maps"], maps)


def field(reader: FigureReader):
    return reader.figure.get_by_label("Story so far")


def head(reader: FigureReader, name: str):
    return reader.figure.get_by_role("button", name=f"head {name}", exact=True)


def tokens(reader: FigureReader):
    return reader.figure.locator(".am-stage [data-part=token]")


def bars(reader: FigureReader) -> list[list[str]]:
    return reader.figure.locator(".am-stage .lm-next tr").evaluate_all(
        "lines => lines.map(line => [...line.cells].map(cell => cell.textContent).filter(Boolean))"
    )


@pytest.fixture
def opened(browser):
    """Yield a function that opens figures; afterwards no figure has had an error."""
    readers = []

    def opens(*figures, **options) -> FigureReader:
        readers.append(FigureReader(browser, *(figures or [live_figure()]), **options))
        return readers[-1]

    yield opens
    for reader in readers:
        assert reader.wrong == []
        reader.close()


# --- without a browser ----------------------------------------------------------------------------


def test_equal_arguments_equal_bytes_and_nothing_from_outside():
    html = live_figure()._repr_html_()
    assert html == live_figure()._repr_html_()
    assert html != live_figure(gpt(1))._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_the_first_state_is_the_models_for_the_first_text():
    model = gpt()
    html = live_figure(model)._repr_html_()
    logits, maps = by_package(model, WORLD.beginning(BEGINNING), all_heads_on(model))
    chances = torch.tensor(logits[-1]).softmax(-1)
    top = chances.topk(8)
    shown = re.findall(r'<th scope="row">([^<]+)</th><td><i style="width:([\d.]+)%', html)
    assert [word for word, _ in shown] == [WORLD.words[i] for i in top.indices]
    assert_close([float(width) / 100 for _, width in shown], top.values)
    rows = [float(w) for w in re.findall(r"--weight:([\d.]+)", html)]
    assert_close(np.reshape(rows, (2, 3, 9)), maps[:, :, -1])
    assert f"Likeliest next: “{shown[0][0]}”, " in html


def test_the_model_itself_is_left_as_it_was():
    model = gpt()
    before = deepcopy(model.state_dict())
    live_figure(model)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_weights_are_rounded_to_sixteen_binary_digits():
    drawn = np.random.default_rng(0).normal(size=2003) * 10.0 ** np.arange(-9, 9).repeat(112)[:2003]
    exact = np.float32([*drawn, 0, -0.0, 1, 1.9999999])
    rounded = round_to_16_bits(exact)
    assert (rounded.view("<u4") % 256 == 0).all()
    np.testing.assert_allclose(rounded, exact, rtol=2**-16, atol=0)
    np.testing.assert_array_equal(round_to_16_bits(rounded), rounded)


def test_the_page_carries_every_weight_once():
    for tied in (True, False):
        model = gpt(tied=tied)
        figure = live_figure(model)
        packed = np.frombuffer(base64.b64decode(figure.data["weights"]), np.uint8).reshape(-1, 3)
        numbers = np.pad(packed, ((0, 0), (1, 0))).view("<f4").ravel()
        state = dict(model.named_parameters())
        assert [name for name, *_ in figure.data["shapes"]] == list(state)
        exact = np.concatenate([p.detach().numpy().ravel() for p in state.values()])
        np.testing.assert_array_equal(numbers, round_to_16_bits(exact))


def test_the_trained_models_sizes_fit_into_600_kb():
    html = live_figure(gpt(d_model=64, n_heads=4, d_ff=256))._repr_html_()
    assert len(html.encode()) < 600_000
    scripts = [lean(read_asset(f"moving/{name}.js")) for name in ("transformer", "live_model")]
    assert sum(len(script.encode()) for script in scripts) < 9_500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": torch.nn.Linear(2, 3)}, "a GPT, got Linear"),
        ({"model": gpt(n_vocab=44)}, "expected 44 words, one for each id of the model, got 45"),
        ({"model": gpt(d_model=150)}, "at most 150000 numbers"),
        ({"beginning": "the cat is cute ."}, "'cat'"),
        ({"beginning": "the <end>"}, "'<end>'"),
        ({"beginning": "small " * 16}, "at most 15 words"),
        ({"examples": ["the doctor", "the dog"]}, "'dog'"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LiveModel(**{"model": gpt(), "world": WORLD, **arguments})


def test_another_gelu_or_missing_numbers_are_refused():
    tanh, broken = gpt(), gpt()
    tanh.blocks[1].feed_forward.activation = partial(F.gelu, approximate="tanh")
    with pytest.raises(ValueError, match="exact GELU"):
        live_figure(tanh)
    broken.blocks[0].attention.W_k.weight.data[0, 0] = math.nan
    with pytest.raises(ValueError, match=r"W_k\.weight: expected finite"):
        live_figure(broken)


class OddWorld:
    """A world of two words, one of them markup."""

    words = ("<start>", "<end>", MARKUP_WORD.strip("<>") + "</script>", '"&')

    def beginning(self, words: str) -> list[int]:
        return [0, *map(self.words.index, words.split())]


def test_words_are_escaped():
    html = LiveModel(gpt(n_vocab=4), OddWorld(), beginning='"&')._repr_html_()
    assert html.count("</script>") == 2
    assert "<end>" not in html
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(data)["words"] == list(OddWorld.words)


# --- what is computed is what the package computes ------------------------------------------------


@needs_browser
@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"tied": False},
        {"bias": False},
        {"d_model": 5, "n_heads": 1, "n_layers": 3, "d_ff": 7, "tied": False, "bias": False},
        {"d_model": 64, "n_heads": 4, "d_ff": 256},
    ],
)
def test_logits_and_maps_agree_with_any_heads_off(opened, sizes):
    model = gpt(**sizes)
    reader, rng = opened(live_figure(model)), np.random.default_rng(3)
    for n in (1, 2, 17, *rng.integers(1, 18, 9)):
        ids = rng.integers(0, 45, n).tolist()
        on = rng.random((model.config.n_layers, model.config.n_heads)) < 0.7
        computed = reader.compute({"ids": ids, "on": on.tolist()})
        logits, maps = by_package(model, ids, on.tolist())
        assert np.ptp(logits) > 1
        assert_close(computed["logits"], logits)
        assert_close(computed["maps"], maps)


@needs_browser
def test_it_computes_in_double_precision(opened):
    """With weights that three bytes hold exactly nothing is lost, GELU's tails included."""
    model = gpt()
    for parameter in model.parameters():
        parameter.data = torch.tensor(round_to_16_bits(4 * parameter.detach().numpy()))
    ids = [1, *range(3, 19)]
    logits, maps = by_package(model, ids, all_heads_on(model))
    computed = opened(live_figure(model)).compute({"ids": ids, "on": all_heads_on(model)})
    assert_close(computed["logits"], logits, 1e-9)
    assert_close(computed["maps"], maps, 1e-9)


# --- as a reader has it ---------------------------------------------------------------------------

DRAWN_SCRIPT = """(root, stage) => [...root.querySelectorAll(
    `${stage} .lm-parts :is(th, td, i), ${stage} .lm-layers :is(rect, span)`)].map(node =>
        [node.tagName === "RECT" ? "" : node.textContent,
         ...["x", "y", "fill-opacity", "style"].map(key => node.getAttribute(key) ?? "")])"""
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


@needs_browser
def test_the_first_state_is_the_same_with_and_without_a_script(opened):
    reader = opened()
    drawn = reader.figure.evaluate(DRAWN_SCRIPT, ".am-stage")
    says = reader.says
    reader.page.emulate_media(media="print")
    reader.figure.locator(".am-first").wait_for(state="attached")
    first = reader.figure.evaluate(DRAWN_SCRIPT, ".am-first")
    assert len(drawn) == len(first) > 200
    for script_row, html_row in zip(drawn, first, strict=True):
        assert script_row[0] == html_row[0]
        for script_text, html_text in zip(script_row[1:], html_row[1:], strict=True):
            numbers = [list(map(float, NUMBER.findall(text))) for text in (script_text, html_text)]
            assert_close(*numbers, atol=0.011)
    still = opened(java_script_enabled=False)
    assert still.says == says


@needs_browser
def test_without_a_script_and_on_paper_the_first_state_is_shown(opened):
    still = opened(java_script_enabled=False)
    assert f"Story so far: {BEGINNING}" in still.figure.inner_text()
    assert "the beginning is yours" in still.figure.inner_text()
    printed = opened()
    head(printed, "0.1").click()
    printed.page.emulate_media(media="print")
    printed.figure.locator(".am-first").wait_for(state="attached")
    assert not printed.page.is_visible(".am-stage")
    for page in (still.page, printed.page):
        assert page.locator("button:visible, input:visible, details:visible").count() == 0
        assert page.locator(".lm-head svg:visible").count() == 6
        assert page.locator(".lm-next tr:visible").count() == 8


@needs_browser
def test_a_typed_beginning_is_continued(opened):
    model = gpt()
    reader = opened(live_figure(model))
    assert_shows_story(reader, model, BEGINNING)
    for typed, story in (
        ("the nurse is cute .", "the nurse is cute ."),
        ("  Today  MARY is small,cute", "today mary is small , cute"),
        (" ".join(["sushi"] * 16), " ".join(["sushi"] * 16)),
        ("", ""),
    ):
        field(reader).fill(typed)
        assert_shows_story(reader, model, story)
        chances = torch.tensor(reader.now["logits"][-1], dtype=torch.float64).softmax(-1).numpy()
        assert_close(reader.now["chances"], chances, 1e-9)
        best = np.argsort(-chances, kind="stable")[:8]
        assert [line[0] for line in bars(reader)] == [WORLD.words[i] for i in best]
        shown = [float(line[1].removesuffix("\xa0%")) / 100 for line in bars(reader)]
        assert_close(shown, chances[best], 0.0051)
        assert f"“{WORLD.words[best[0]]}”" in reader.says
        assert field(reader).get_attribute("aria-invalid") == "false"
    for profession in ("nurse", "doctor"):
        reader.button(f"the {profession} is cute .").click()
        assert_shows_story(reader, model, f"the {profession} is cute .")


@needs_browser
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("the cat is cute .", "The model does not know “cat”. The 42 words"),
        ("the doc", "It knows “doctor”."),
        ("a", "It knows “and”, “anna”."),
        ("the cat saw a dog", "“cat”, “saw”, “a” and 1 more. The 42"),
        ("the <end>", "“<end>”"),
        ("<img src=x onerror=alert(1)> <script>alert(2)</script>", "“<img”"),
        ("החתול אכל", "“החתול”, “אכל”"),
        ("__proto__ constructor 🦊", "“__proto__”, “constructor”, “🦊”"),
        ("x" * 5000, "“" + "x" * 20 + "…”"),
        ("small " * 17, "The model has room for 16 words, and these are 17. Take some away."),
        ("small " * 9999, "these are 9999"),
    ],
)
def test_what_the_model_cannot_read_gets_a_sentence(opened, typed, says):
    reader = opened(width=390)
    before = reader.now
    field(reader).fill(typed)
    for _ in range(2):
        assert says in re.sub("[\u2068\u2069]", "", reader.says)
        assert reader.now == before
        assert field(reader).get_attribute("aria-invalid") == "true"
        assert reader.overflow() <= 0
        for name in ("Write on", "Next word"):
            reader.button(name).click()
    assert field(reader).input_value() == typed
    assert reader.page.locator(".attncourse-moving img").count() == 0
    reader.button("the nurse is cute .").click()
    assert field(reader).get_attribute("aria-invalid") == "false"


@needs_browser
def test_words_that_are_offered_are_added_and_unknown_ones_go(opened):
    reader = opened()
    field(reader).fill("the cat")
    reader.figure.locator("summary").click()
    offered = reader.figure.locator(".am-stage [data-part=word]").all_inner_texts()
    assert offered == list(WORLD.words[3:])
    for word in ("doctor", "is"):
        reader.figure.locator(".lm-known").get_by_role("button", name=word, exact=True).click()
    assert field(reader).input_value() == "the doctor is"


@needs_browser
def test_it_writes_on_as_generate_does(opened):
    """At temperature 0, until a story ends or the maximum length is reached."""
    ends = []
    for seed in range(4):
        model = gpt(seed)
        model.tokens.weight.data[2] += 0.3  # <end> is now and then the likeliest
        reader = opened(live_figure(model, beginning="the nurse is"))
        reader.figure.get_by_label("Temperature").fill("0")
        with torch.no_grad():
            ids = ablated(model, all_heads_on(model)).generate(
                torch.tensor(WORLD.beginning("the nurse is")), 14
            )
        expected = []
        for i in ids[1:].tolist():
            if i < 3 or len(expected) == 16:
                break
            expected.append(WORLD.words[i])
        for _ in range(2):
            reader.button("Write on").click()
            assert field(reader).input_value() == " ".join(expected)
        ends.append("ends" in reader.says)
        assert ends[-1] or "no room for it" in reader.says
        reader.button("Start anew").click()
        assert_shows_story(reader, model, "the nurse is")
        reader.button("Next word").click()
        assert field(reader).input_value() == " ".join(expected[:4])
    assert len(set(ends)) == 2


@needs_browser
def test_words_are_drawn_as_often_as_the_bars_say(opened):
    reader = opened(live_figure(constant_gpt({"sushi": 0.5, "soup": 0.3, "cake": 0.2}), seed=7))
    draw = "root => Array.from({length: 4000}, () => root.draw(root.now.chances))"
    for temperature, power in ((1, 1), (0.5, 2)):
        reader.figure.get_by_label("Temperature").fill(str(temperature))
        expected = np.array([0.5, 0.3, 0.2]) ** power
        expected /= expected.sum()
        assert [line[1] for line in bars(reader)][:3] == [f"{100 * p:.0f}\xa0%" for p in expected]
        drawn = reader.figure.evaluate(draw)
        counts = np.array([drawn.count(WORLD.places[word]) for word in ("sushi", "soup", "cake")])
        assert counts.sum() == 4000
        assert ((counts - 4000 * expected) ** 2 / (4000 * expected)).sum() < 13.8  # p = 0.001
    reader.figure.get_by_label("Temperature").fill("0")
    assert set(reader.figure.evaluate(draw)) == {WORLD.places["sushi"]}


@needs_browser
def test_equal_seeds_write_equal_stories(opened):
    model = constant_gpt({"sushi": 0.5, "soup": 0.5})
    stories = []
    for seed in (1, 1, 2):
        reader = opened(live_figure(model, seed=seed))
        reader.button("Write on").click()
        stories.append(field(reader).input_value())
    assert stories[0] == stories[1] != stories[2]


@needs_browser
@pytest.mark.parametrize("mark", ["<end>", "<pad>", "<start>"])
def test_an_end_mark_ends_the_story(opened, mark):
    reader = opened(live_figure(constant_gpt({mark: 1.0})))
    for name in ("Next word", "Write on", "Next word"):
        reader.button(name).click()
        assert "The story ends." in reader.says
        assert field(reader).input_value() == BEGINNING
    assert reader.says == "The story ends. Start anew, or write another beginning."
    head(reader, "0.1").click()
    assert f"The story ends. Likeliest next: “{mark}”, 100\xa0% (with" in reader.says
    field(reader).fill("the nurse")
    assert f"Likeliest next: “{mark}”" in reader.says


@needs_browser
def test_bars_say_what_switching_heads_off_changes(opened):
    model = gpt()
    reader, on = opened(live_figure(model)), all_heads_on(model)
    ids = WORLD.beginning(BEGINNING)
    before = torch.tensor(by_package(model, ids, on)[0][-1]).softmax(-1).numpy()
    for layer, h in ((0, 2), (1, 0), (0, 2), (1, 1), (0, 0)):
        name = f"{layer}.{h}"
        head(reader, name).click()
        on[layer][h] = not on[layer][h]
        assert head(reader, name).get_attribute("aria-pressed") == str(on[layer][h]).lower()
        assert_shows_story(reader, model, BEGINNING, on)
        assert_close(reader.now["before"], before)
        chances = np.array(reader.now["chances"])
        best = np.argsort(-np.maximum(chances, before), kind="stable")[:8]
        best = best[np.argsort(-chances[best], kind="stable")]
        lines = bars(reader)
        assert [line[0] for line in lines] == [WORLD.words[i] for i in best]
        for column, shares in ((1, chances), (2, before)):
            shown = [float(line[column].removesuffix("\xa0%")) / 100 for line in lines]
            assert_close(shown, shares[best], 0.0061)
        assert "with all heads on:" in reader.says
        assert reader.figure.locator(".am-stage .lm-before").count() == (before[best] > 0.005).sum()
    reader.button("All heads on").click()
    assert_shows_story(reader, model, BEGINNING)
    assert reader.figure.locator(".am-stage .lm-before").count() == 0
    assert all(len(line) == 2 for line in bars(reader))


@needs_browser
def test_a_token_shows_where_it_looks(opened):
    model = gpt()
    reader = opened(live_figure(model))
    _, maps = by_package(model, WORLD.beginning(BEGINNING), all_heads_on(model))

    def assert_row(i: int) -> None:
        rows = reader.figure.locator(".am-stage .lm-rows tbody td").evaluate_all(
            "cells => cells.map(cell => +cell.style.getPropertyValue('--weight'))"
        )
        assert_close(np.reshape(rows, (2, 3, 9)), maps[:, :, i])
        pressed = tokens(reader).evaluate_all("all => all.map(one => one.ariaPressed)")
        assert [j for j, state in enumerate(pressed) if state == "true"] == [i]
        frames = reader.figure.locator(".am-stage .lm-asks")
        assert frames.evaluate_all("all => all.map(one => one.getAttribute('y'))") == [str(i)] * 6

    assert_row(8)
    tokens(reader).nth(3).hover()
    assert_row(3)
    cell = reader.figure.locator(".am-stage .lm-rows tbody td").nth(9 + 2)
    assert cell.get_attribute("title") == f"the: {maps[0, 1, 3, 2]:.2f}"
    head(reader, "1.1").click()
    head(reader, "1.1").click()
    assert_row(3)
    tokens(reader).nth(5).focus()
    assert_row(5)
    for _ in range(2):
        reader.page.keyboard.press("ArrowRight")
    assert_row(7)
    assert "“cute” looks" in reader.figure.locator(".am-stage .lm-rows").inner_text()


@needs_browser
def test_pointing_moves_nothing_and_neither_does_a_head(opened):
    for width in (390, 1280):
        reader = opened(width=width)
        places = "all => all.map(one => [one.offsetLeft, one.offsetTop])"
        parts = reader.figure.locator(".am-stage :is([data-part=token], .lm-head)")
        before = parts.evaluate_all(places)
        for i in (1, 4, 6):
            tokens(reader).nth(i).hover()
            assert parts.evaluate_all(places) == before
        head(reader, "1.2").click()
        assert parts.evaluate_all(places) == before


@needs_browser
def test_it_works_by_keyboard_alone(opened):
    model = gpt()
    reader = opened(live_figure(model))
    press = reader.page.keyboard.press
    field(reader).focus()
    press("ControlOrMeta+a")
    reader.page.keyboard.type("the nurse")
    assert_shows_story(reader, model, "the nurse")
    parts = []
    for _ in range(19):
        press("Tab")
        parts.append(reader.page.evaluate(
            "() => document.activeElement.dataset.part ?? document.activeElement.ariaLabel"
        ))  # fmt: skip
    assert parts[:7] == ["example"] * 3 + ["next", "on", "anew", "temperature"]
    assert parts[-7:] == [f"head {layer}.{h}" for layer in (0, 1) for h in range(3)] + ["all"]
    assert parts.count("token") == 3
    head(reader, "1.2").focus()
    press("Space")
    assert_shows_story(reader, model, "the nurse", [[True] * 3, [True, True, False]])
    assert reader.page.evaluate("() => document.activeElement.ariaLabel") == "head 1.2"


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_use_it(opened, scheme, width):
    reader = opened(live_figure(gpt(n_heads=2)), width=width, color_scheme=scheme)
    reader.page.evaluate((vendor.library("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    look = """tags => axe.run(document, {runOnly: tags}).then(found => found.violations.map(
        one => [one.id, ...one.nodes.map(node => node.target.join(" "))]))"""
    story = "today the doctor is small , cute and fluffy . he likes sushi . the nurse"
    for moved in (False, True):
        if moved:
            field(reader).fill(story)
            head(reader, "1.1").click()
            head(reader, "0.0").click()
            tokens(reader).nth(14).hover()
            reader.figure.locator("summary").click()
        assert reader.page.evaluate(look, tags) == []
        assert reader.small_text() == []
        assert reader.overflow() <= 0
    assert reader.figure.locator(".am-stage .lm-rows .am-wide").evaluate(
        "box => box.scrollLeft + box.clientWidth >= box.scrollWidth - 1"
    )


@needs_browser
def test_two_models_on_a_page_share_nothing(opened):
    first, second = gpt(1), gpt(2, d_model=4, n_heads=2)
    reader = opened(live_figure(first), live_figure(second, beginning="anna is"))
    head(reader, "0.1").click()
    field(reader).fill("the baker")
    assert_shows_story(reader, first, "the baker", [[True, False, True], [True] * 3])
    reader.figure = reader.page.locator(".attncourse-moving").nth(1)
    assert_shows_story(reader, second, "anna is")
    reader.button("Next word").click()
    assert reader.now["tokens"][:3] == ["<start>", "anna", "is"]


@needs_browser
def test_words_of_markup_are_shown_as_text(opened):
    reader = opened(LiveModel(gpt(n_vocab=4), OddWorld(), beginning='"&'))
    word = OddWorld.words[2].lower()
    field(reader).fill(f'"& {word}')
    reader.button("Write on").click()
    assert word in reader.figure.inner_text()
    assert reader.page.locator("img").count() == 0


@needs_browser
def test_without_its_heads_the_figure_is_small(opened):
    """For a first screen: a phone shows figure and controls at once."""
    reader = opened(live_figure(heads=False), width=390)
    assert reader.figure.bounding_box()["height"] <= 560
    assert reader.overflow() == 0
    assert not reader.figure.locator(".lm-head, .am-stage .lm-rows").first.is_visible()
    assert reader.figure.locator('.am-stage [data-part="bars"] tr').count() == 5
    reader.button("Next word").click()
    assert reader.says.startswith("Drawn: ")


@needs_browser
def test_bars_of_another_story_are_dimmed(opened):
    reader = opened(live_figure())
    story = reader.figure.locator('.am-stage [data-part="story"]')
    bars = reader.figure.locator('.am-stage [data-part="bars"]')
    for words, opacity in (("the cat", 0.4), ("the doctor", 1)):
        story.fill(words)
        assert float(bars.evaluate("bars => getComputedStyle(bars).opacity")) == opacity
