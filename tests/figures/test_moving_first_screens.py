"""What moves first in chapters 14, 16 and 17: in the page it computes what the package computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attncourse.efficient import kv_cache_bytes
from attncourse.figures.moving import LoopReader, StoryHeads, length_slider
from attncourse.figures.moving.length_slider import (
    CACHE,
    TILE,
    WINDOW,
    count_bytes_and_operations,
    size_in_words,
)
from attncourse.figures.moving.story_heads import cost_in_nats, surprising
from attncourse.gpt import GPT, GPTConfig
from attncourse.interpret import ablate, attention_maps
from attncourse.sequences import ReceptorClassifier
from attncourse.tasks.pronouns import PronounWorld
from attncourse.tasks.receptor_readers import AttentionReader, ablated, telling
from helpers.figure_reader import FigureReader, needs_browser

WORLD = PronounWorld()
RNG = np.random.default_rng(6)
LOOKS, COSTS = RNG.random((2, 3)), RNG.normal(size=(2, 3))
LOOPS = ["CASSIRSSYEQYF", "CASGQGTEAF", "CASLAGKF"]
CLASSES = ("virus A", "virus B", "virus C")


def randomised(model):
    """Give the model random weights large enough for its maps and answers to differ."""
    for parameter in model.parameters():
        parameter.data.normal_(std=0.6)
    return model.eval()


def gpt() -> GPT:
    torch.manual_seed(1)
    return randomised(GPT(GPTConfig(len(WORLD.words), 17, d_model=6, n_heads=3, d_ff=11)))


def classifier(layers: int = 1) -> ReceptorClassifier:
    torch.manual_seed(2)
    return randomised(ReceptorClassifier(3, 15, d_model=8, n_heads=2, n_layers=layers))


FIGURES = {
    "story_heads": lambda: StoryHeads(gpt(), WORLD, LOOKS, COSTS),
    "loop_reader": lambda: LoopReader(classifier(), LOOPS, CLASSES, ("RSS", "GQG")),
    "length_slider": length_slider,
}
every_figure = pytest.mark.parametrize("name", FIGURES)


@pytest.fixture
def opened(browser):
    readers = []

    def opens(figure, **options) -> FigureReader:
        readers.append(FigureReader(browser, figure, **options))
        return readers[-1]

    yield opens
    for reader in readers:
        assert reader.wrong == []
        reader.close()


@every_figure
def test_equal_arguments_equal_bytes_and_nothing_from_outside(name):
    html = FIGURES[name]()._repr_html_()
    assert html == FIGURES[name]()._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert html.count("</script>") == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StoryHeads(gpt(), WORLD, LOOKS[:1], COSTS), r"expected shape \(2, 3\)"),
        (lambda: StoryHeads(gpt(), WORLD, LOOKS + 1, COSTS), "from 0 to 1"),
        (lambda: StoryHeads(gpt(), WORLD, LOOKS, COSTS * math.nan), "NaN"),
        (lambda: StoryHeads(gpt(), WORLD, LOOKS, COSTS, line="small " * 12), "fit 340 pixels"),
        (lambda: StoryHeads(torch.nn.Linear(2, 3), WORLD, LOOKS, COSTS), "a GPT, got Linear"),
        (lambda: LoopReader(torch.nn.Linear(2, 3), LOOPS, CLASSES), "got Linear"),
        (lambda: LoopReader(classifier(0), LOOPS, CLASSES), "with a block"),
        (lambda: LoopReader(classifier(), [], CLASSES), "one loop or more"),
        (lambda: LoopReader(classifier(), "CASF", CLASSES), "one loop or more"),
        (lambda: LoopReader(classifier(), ["CAX"], CLASSES), "amino acids|letters of"),
        (lambda: LoopReader(classifier(), ["C" * 16], CLASSES), "at most 15"),
        (lambda: LoopReader(classifier(), LOOPS, CLASSES[:2]), "expected 3 names"),
        (lambda: length_slider(1000), "a power of 2"),
        (lambda: length_slider(256), "a power of 2"),
        (lambda: length_slider(2.5), "n: "),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_first_head_off_attends_sharply_and_costs_least():
    looks = np.array([[0.9, 0.6, 0.2], [0.7, 0.1, 0.0]])
    costs = np.array([[0.5, 0.3, 0.0], [0.1, -1.0, 0.0]])
    assert surprising(looks, costs) == (1, 0)
    assert surprising(looks / 2, costs) == (1, 1)
    assert [cost_in_nats(x) for x in (-0.001, -0.25, 0.006)] == ["0.00", "−0.25", "0.01"]


def test_bytes_and_operations_of_a_length_are_the_packages():
    for n in (512, 4096, 131072):
        counted = count_bytes_and_operations(n)
        assert counted["cache"] == kv_cache_bytes(n, **CACHE)
        assert counted["map"] == torch.empty(n, n, device="meta").nbytes
        assert counted["window"] == torch.empty(n, WINDOW, device="meta").nbytes
        assert counted["tile"] == torch.empty(TILE, TILE, device="meta").nbytes
        assert counted["operations"] == 2 * n * n * 64 * 2  # two products of 2 n² d
    assert [size_in_words(x) for x in (68.7e9, 1.049e6, 9.96e3, 12)] == [
        "69 GB",
        "1.0 MB",
        "10 kB",
        "12 bytes",
    ]


def test_loops_shown_are_those_that_fail_without_their_motif():
    reader = AttentionReader(model=classifier())
    loops = ["CASRSSAEQF", "CASAERSSQF", "CASAEQRSSF", "CASRSSGTYF"] * 2
    labels = reader.shares(loops).argmax(-1)
    labels[1] = (labels[1] + 1) % 3  # not known, and its twin is
    starts = np.array([3, 5, 6, 3, 3, -1, 6, 3])
    chosen = telling(reader, loops, labels, starts, n=9)
    assert sorted(chosen) == sorted({loops[0], loops[2], loops[3]})


# --- in a browser ---------------------------------------------------------------------------------


@torch.no_grad()
def by_package(model: GPT, ids, off) -> np.ndarray:
    """Return p(she), p(he) and p(all others) without some heads."""
    model = model.double()
    for layer, head in off:
        model = ablate(model, layer, head)
    p = model(torch.tensor(ids))[-1].softmax(-1)
    pair = [p[WORLD.words.index(word)].item() for word in ("she", "he")]
    return np.array([*pair, 1 - sum(pair)])


@needs_browser
def test_heads_of_a_story_are_those_of_the_package(opened):
    reader, off = opened(StoryHeads(gpt(), WORLD, LOOKS, COSTS)), {surprising(LOOKS, COSTS)}
    cards = reader.figure.locator(".am-stage [data-part=head]")
    for pressed, who in ((None, "mary"), (4, "the nurse"), (0, "the nurse"), (4, "john")):
        if pressed is not None:
            cards.nth(pressed).click()
            off ^= {divmod(pressed, 3)}
        reader.button(who.removeprefix("the ")).click()
        now, ids = reader.now, WORLD.beginning(f"{who} is small , cute and fluffy .")
        assert now["ids"] == list(ids)
        np.testing.assert_allclose(now["chances"], by_package(gpt(), ids, off), atol=1e-3)
        np.testing.assert_allclose(now["before"], by_package(gpt(), ids, ()), atol=1e-3)
        states = cards.evaluate_all("all => all.map(one => one.ariaPressed)")
        assert [k for k, s in enumerate(states) if s == "false"] == sorted(
            a * 3 + b for a, b in off
        )
        dashed = reader.figure.locator(".am-stage [data-part=arcs] g:has(.sh-off)").count()
        assert dashed == len(off)
        assert all(f"{a}.{b}" in reader.says for a, b in off)
    maps = attention_maps(gpt(), torch.tensor(WORLD.beginning("john is small , cute and fluffy .")))
    if off.isdisjoint({(0, 0), (0, 1), (0, 2)}):
        np.testing.assert_allclose(np.array(reader.now["maps"])[0], maps[0], atol=1e-3)
    reader.button("All on").click()
    assert "All heads are on" in reader.says


@needs_browser
def test_a_head_that_is_pointed_at_stands_out(opened):
    reader = opened(FIGURES["story_heads"]())
    reader.figure.locator(".am-stage [data-part=head]").nth(2).hover()
    faint = reader.figure.locator(".am-stage [data-part=arcs] g").evaluate_all(
        "all => all.map(one => one.classList.contains('sh-faint'))"
    )
    assert faint == [True, True, False, True, True, True]


@needs_browser
@pytest.mark.parametrize("layers", [1, 2])
def test_a_loop_is_read_as_the_package_reads_it(opened, layers):
    model = classifier(layers)
    reader = opened(LoopReader(model, LOOPS, CLASSES, ("RSS", "GQG")))
    by = AttentionReader(model=model.double())
    for loop in (*LOOPS, "ACDEFGHIKLMNPQR", "W"):
        reader.figure.get_by_label("Loop").fill(loop.lower())
        now, n = reader.now, len(loop)
        chances = by.shares([loop])[0]
        assert now["loop"] == loop
        np.testing.assert_allclose(now["chances"], chances, atol=1e-3)
        np.testing.assert_allclose(now["weights"], by.weights([loop])[0, :n], atol=1e-3)
        falls = ablated(by, [loop], [int(chances.argmax())])[0, :n]
        np.testing.assert_allclose(now["falls"], falls, atol=1e-2)
        assert CLASSES[int(chances.argmax())] in reader.says
        lined = reader.figure.locator(".am-stage [data-part=looks] .lr-motif").count()
        assert lined == 3 * any(motif in loop for motif in ("RSS", "GQG"))


@needs_browser
def test_letters_can_be_exchanged_and_unreadable_loops_say_why(opened):
    reader = opened(FIGURES["loop_reader"](), width=390)
    field = reader.figure.get_by_label("Loop")
    reader.figure.locator(".am-stage [data-part=falls] button").nth(4).click()
    assert field.input_value() == "CASSNRSSYEQYF"
    assert reader.page.evaluate("() => document.activeElement.textContent") == "N"
    before = reader.now
    for text, message in (("", "Write a loop"), ("CAB*", "No amino acid: B, *"), ("A" * 16, "15")):
        field.fill(text)
        assert message in reader.says
        assert field.get_attribute("aria-invalid") == "true"
        assert reader.now == before
    reader.button("2").click()
    assert field.input_value() == LOOPS[1]
    assert field.get_attribute("aria-invalid") == "false"


@needs_browser
def test_the_length_moves_square_and_bars(opened):
    reader = opened(length_slider())
    for exponent in (9, 13, 17):
        reader.figure.locator("[data-part=length]").fill(str(exponent))
        n, now = 2**exponent, reader.now
        expected = count_bytes_and_operations(n)
        assert {name: now[name] for name in expected} == expected
        for name in ("map", "window", "cache", "tile"):
            cell = reader.figure.locator(f".am-stage td[data-part={name}]")
            assert cell.inner_text() == size_in_words(expected[name])
        side = float(reader.figure.locator("[data-part=square]").get_attribute("width"))
        assert side == pytest.approx(max(150 * n / 2**17, 1))
        assert f"{n:,} tokens: {n * n:,} scores" in reader.says


@needs_browser
@every_figure
def test_the_first_state_is_the_same_without_a_script(opened, name):
    moves, still = (opened(FIGURES[name](), java_script_enabled=on) for on in (True, False))
    words = [
        reader.figure.locator(".am-stage :is(td, th, text)").all_text_contents()
        for reader in (moves, still)
    ]
    assert words[0] == words[1]
    assert moves.says == still.says
    assert still.figure.locator(".am-still").is_visible()


@needs_browser
@every_figure
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_whole_figure(opened, name, scheme):
    reader = opened(FIGURES[name](), width=390, color_scheme=scheme)
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    assert reader.figure.bounding_box()["height"] <= 560
