"""The figures that chapters share: what they show, what they refuse, and that markup stays text."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attncourse import figures
from attncourse.figures import (
    attention_html,
    attention_table,
    attention_view,
    curve_with_spread,
    head_grid,
    theme,
    token_graph,
)

WORDS = ["I", "like", "sushi", "because", "it", "makes", "me", "happy", "and", "full", "today", "."]
STYLE_SHEET = "attention_view.css"
VOID_ELEMENTS = {"br", "img", "input", "hr", "meta", "link"}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def random_weights(*shape: int, seed: int = 0) -> np.ndarray:
    raw = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return raw / raw.sum(axis=-1, keepdims=True)


def numbered_tokens(n: int, letter: str = "t") -> list[str]:
    return [f"{letter}{i}" for i in range(n)]


class ViewElements(HTMLParser):
    """The elements of a view as a browser without JavaScript finds them."""

    def __init__(self, view) -> None:
        super().__init__()
        self.open: list[str] = []
        self.starts: list[tuple[str, dict]] = []
        self.tables: list[list[list[str]]] = []
        self.styles: list[tuple[float, list[str]]] = []  # of the cells with numbers, in order
        self.text: dict[str, str] = {}
        self.feed(view._repr_html_())
        self.close()
        assert self.open == []
        (root,) = [a for _, a in self.starts if "data-view" in a]
        self.data = json.loads(root["data-view"])

    def handle_starttag(self, tag, attrs):
        self.starts.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            if "style" in dict(attrs):
                weight = float(re.fullmatch(r"--w:(\d+)%", dict(attrs)["style"])[1]) / 100
                self.styles.append((weight, dict(attrs).get("class", "").split()))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "tr" in self.open:
            self.tables[-1][-1][-1] += data
        self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data

    def numbers(self, which: int = 0) -> np.ndarray:
        return np.array([[float(cell) for cell in row[1:]] for row in self.tables[which][1:]])

    def weights(self) -> np.ndarray:
        """Return the weights that the script reads from the view."""
        data = self.data
        keys = data["keys"] or data["queries"]
        shape = [len(data["layers"]), len(data["heads"]), len(data["queries"]), len(keys)]
        pairs = re.findall("..", data["weights"])
        steps = np.array([np.nan if pair == "zz" else int(pair, 36) for pair in pairs])
        return steps.reshape(shape) / data["unit"]  # NaN where it is masked


# The table, which is what a reader without JavaScript and a printer have


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 13), st.integers(1, 11), st.integers(0, 99))
def test_the_table_and_the_data_hold_the_weights(m, n, seed):
    weights = random_weights(m, n, seed=seed)
    page = ViewElements(attention_view(weights, numbered_tokens(m), numbered_tokens(n, "k")))
    (table,) = page.tables
    assert table[0][1:] == numbered_tokens(n, "k")
    assert [row[0] for row in table[1:]] == numbered_tokens(m)
    assert np.abs(page.numbers() - weights).max() <= 0.005 + 1e-12
    np.testing.assert_array_equal(page.weights()[0, 0], page.numbers())


def test_every_head_of_every_layer_has_its_table_and_name():
    weights = random_weights(2, 3, 5, 7)
    page = ViewElements(
        attention_view(weights, numbered_tokens(5), numbered_tokens(7, "k"), heads=["a", "b", "c"])
    )
    assert len(page.tables) == 6
    for place, (layer, head) in enumerate(np.ndindex(2, 3)):
        assert np.abs(page.numbers(place) - weights[layer, head]).max() <= 0.005 + 1e-12
    assert page.text["caption"] == "".join(f"layer {i} · {c}" for i in (0, 1) for c in "abc")
    np.testing.assert_allclose(page.weights(), weights, atol=0.005 + 1e-12)
    assert (page.data["layers"], page.data["heads"]) == (["layer 0", "layer 1"], ["a", "b", "c"])


def test_headers_have_scopes_and_the_box_is_reachable():
    page = ViewElements(
        attention_view(
            random_weights(5, 7), numbered_tokens(5), numbered_tokens(7, "k"), title="Who"
        )
    )
    scopes = [attrs["scope"] for tag, attrs in page.starts if tag == "th"]
    assert scopes == ["col"] * 7 + ["row"] * 5
    (box,) = [attrs for _, attrs in page.starts if attrs.get("class") == "av-scroll"]
    assert (box["tabindex"], box["role"], box["aria-label"]) == ("0", "group", "Who: table")
    assert page.starts[0][1]["class"].startswith("attncourse-")
    assert any(attrs.get("role") == "status" for _, attrs in page.starts)


def luminance(rgb: np.ndarray) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(colour: np.ndarray, other_colour: np.ndarray) -> float:
    low, high = sorted([luminance(colour), luminance(other_colour)])
    return (high + 0.05) / (low + 0.05)


def colours(mode: str) -> dict[str, np.ndarray]:
    """The theme's colours by name, in light or dark mode."""
    rgb_by_name = {}
    for name, digits in re.findall(r"--(\w+): #(\w+)", getattr(theme, mode.upper())):
        digits = digits * 2 if len(digits) == 3 else digits
        rgb_by_name[name] = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return rgb_by_name


def mixed_colour(share: float, top: np.ndarray, ground: np.ndarray) -> np.ndarray:
    return share * top + (1 - share) * ground


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_numbers_can_be_read_on_every_shade(mode):
    first = np.linspace(0, 1, 101)
    styles = [
        style
        for part in np.array_split(first, 4)
        for style in ViewElements(
            attention_view(
                np.stack([part, 1 - part], axis=-1), numbered_tokens(len(part)), ["a", "b"]
            )
        ).styles[::2]
    ]
    np.testing.assert_allclose([weight for weight, _ in styles], first)
    named = colours(mode)
    shades = [mixed_colour(weight, named["ink"], named["page"]) for weight, _ in styles]
    steps = np.diff([luminance(shade) for shade in shades])
    assert (steps < 0).all() if mode == "light" else (steps > 0).all()  # more ink, in every colour
    # As in attention_view.css.
    black, white = np.zeros(3), np.ones(3)
    low, high = (black, white) if mode == "light" else (white, black)
    for shade, (_, kinds) in zip(shades, styles, strict=True):
        figures = high if "c" in kinds else black if "b" in kinds else low
        assert contrast(figures, shade) >= 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_names_can_be_read_on_the_page_and_where_they_are_lit(mode):
    named = colours(mode)
    lit = (
        float(re.search(r"\.av-on \{.*currentColor (\d+)%", theme.read_asset(STYLE_SHEET))[1]) / 100
    )
    for role in ("query", "key", "ink"):
        assert contrast(named[role], named["page"]) >= 4.5
        assert contrast(named[role], mixed_colour(lit, named[role], named["page"])) >= 4.5
    assert contrast(named["quiet"], named["page"]) >= 4.5


def test_the_style_sheet_has_the_figures_that_were_tested():
    assert "--low: light-dark(#000, #fff); --high: light-dark(#fff, #000);" in theme.read_asset(
        STYLE_SHEET
    )
    assert "color-mix(in srgb, var(--ink) var(--w), var(--page))" in theme.read_asset(STYLE_SHEET)


def test_python_and_javascript_round_weights_alike():
    script = attention_html.script("fan")
    assert f'["b", t >= {attention_table.DARK_FROM}]' in script
    assert f'["c", t >= {attention_table.LIGHT_FROM}]' in script


# What a view may show besides


def test_masked_cells_are_hatched_and_have_no_number():
    weights = np.tril(random_weights(2, 5, 5))
    weights /= weights.sum(axis=-1, keepdims=True)
    view = attention_view(weights, numbered_tokens(5), mask=torch.ones(5, 5).tril().bool())
    page = ViewElements(view)
    future = np.triu(np.ones((5, 5), dtype=bool), k=1)
    np.testing.assert_array_equal(np.isnan(page.weights()[0]), [future, future])
    for table in page.tables:
        shown = np.array([row[1:] for row in table[1:]])
        np.testing.assert_array_equal(shown == "–", future)
    kinds = [attrs.get("class") for tag, attrs in page.starts if tag == "td"]
    assert kinds.count("x") == 2 * future.sum()
    assert "Hatched weights are masked." in page.text["p"]
    plain = ViewElements(attention_view(weights, numbered_tokens(5)))
    assert not np.isnan(plain.weights()).any()  # a weight of 0 alone is not masked
    assert "Hatched" not in plain.text["p"]
    second = np.stack([np.ones((5, 5), dtype=bool), ~future])
    assert attention_view(weights, numbered_tokens(5), mask=second).masked.sum() == future.sum()


def test_start_chooses_the_map_and_the_query():
    weights, words = random_weights(3, 7, 7), [*numbered_tokens(6), "t0"]
    assert ViewElements(attention_view(weights, words)).data["start"] is None
    options = {"heads": ["a", "b", "c"]}
    assert ViewElements(attention_view(weights, words, start="t4", **options)).data["start"] == [
        0,
        4,
    ]
    assert ViewElements(attention_view(weights, words, start=("c", 6), **options)).data[
        "start"
    ] == [
        2,
        6,
    ]
    large = random_weights(2, 40, 40)
    page = ViewElements(attention_view(large, numbered_tokens(40), start=("head 1", "t3")))
    assert page.text["caption"] == "head 1"  # the table of the map that is shown first
    best = int(large[1, 0].argmax())
    assert page.tables[0][1][1].startswith(f"“t{best}” {large[1, 0, best]:.3f}")


def test_a_compact_view_folds_its_table_only_with_scripts():
    page = ViewElements(
        attention_view(random_weights(5, 5), numbered_tokens(5), arcs=True, compact=True)
    )
    (details,) = [attrs for tag, attrs in page.starts if tag == "details"]
    assert "open" in details
    assert page.text["summary"] == "All weights as a table"
    assert len(page.tables[0]) == 6
    assert not any(tag == "details" for tag, _ in ViewElements(attention_view([[1]], ["a"])).starts)


# One self-contained piece


def test_a_map_of_twelve_tokens_is_small_and_self_contained():
    html = attention_view(random_weights(12, 12), WORDS)._repr_html_()
    assert len(html.encode()) < 20_000
    addresses = re.findall(r"\w+://[^\s\"']+", html)
    assert addresses == ["http://www.w3.org/2000/svg"]
    drawn = attention_view(random_weights(12, 12), WORDS, arcs=True, compact=True)._repr_html_()
    assert len(drawn.encode()) < 24_000
    page = ViewElements(attention_view(random_weights(12, 12), WORDS))
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in page.starts}
    assert not any({"src", "href", "id"} & set(attrs) for _, attrs in page.starts)


def test_the_same_arguments_give_the_same_bytes():
    code = (
        "import numpy as np; from attncourse.figures import attention_view as v; import hashlib;"
        "h = v(np.full((2, 3, 3), 1 / 3), ['a', 'b', 'a'])._repr_html_();"
        "print(hashlib.sha256(h.encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    view = attention_view(random_weights(3, 3), numbered_tokens(3))
    assert view._repr_html_() == view._repr_html_()
    assert view._repr_png_() == view._repr_png_()


def test_the_script_holds_nothing_that_ends_it_early():
    for display in attention_html.DISPLAYS:
        assert not re.search(r"</script|<!--|<script", attention_html.script(display), re.I)
        assert not re.search("DISPLAY|DRAWING|KIND", attention_html.script(display))


MARKUP_WORDS = [
    "<script>alert(1)</script>",
    "</script><!--",
    "\" onmouseover='x'",
    "a&amp;b",
    "\u2028",
    "שלום",
    " ",
    "",
    "\\u003c",
]


def test_markup_is_shown_and_never_run():
    n = len(MARKUP_WORDS)
    plain = ViewElements(
        attention_view(random_weights(2, n, n), numbered_tokens(n), title="t", heads=["a", "b"])
    )
    view = attention_view(
        random_weights(2, n, n), MARKUP_WORDS, title=MARKUP_WORDS[0], heads=MARKUP_WORDS[1:3]
    )
    page = ViewElements(view)
    bare = [(tag, sorted(attrs)) for tag, attrs in plain.starts]
    assert [(tag, sorted(attrs)) for tag, attrs in page.starts] == bare
    assert page.text["script"] == plain.text["script"]
    shown = [token if token.strip() else f"‘{token}’" for token in MARKUP_WORDS]
    assert page.tables[0][0][1:] == shown
    assert page.data["queries"] == MARKUP_WORDS
    assert page.text["caption"] == MARKUP_WORDS[1] + MARKUP_WORDS[2]
    assert page.starts[0][1]["aria-label"] == MARKUP_WORDS[0]
    tokens_outside_bdi = re.findall(r"<th [^>]*>(?!<bdi>)", view._repr_html_())
    assert tokens_outside_bdi == []


# Large and small


def test_one_token_has_a_map_of_one_weight():
    assert ViewElements(attention_view([[1]], ["one"])).numbers() == [[1.0]]


def test_two_hundred_tokens_have_a_picture():
    weights = random_weights(200, 200)
    view = attention_view(weights, numbered_tokens(200))
    html = view._repr_html_()
    assert len(html.encode()) < 150_000
    assert "200 queries × 200 keys are too many for numbers and lines" in html
    page = ViewElements(view)
    (table,) = page.tables
    assert len(table) == 201
    for i in (0, 117, 199):
        best = np.argsort(-np.rint(1000 * weights[i]), kind="stable")[:3]
        assert table[i + 1] == [f"t{i}", ", ".join(f"“t{j}” {weights[i, j]:.3f}" for j in best)]
    assert np.abs(page.weights()[0, 0] - weights).max() <= 0.0005 + 1e-12
    assert view.figure().axes[0].images[0].get_array().shape == (200, 200)


def test_many_heads_write_out_one_table_and_say_so():
    page = ViewElements(attention_view(random_weights(4, 5, 13, 13), numbered_tokens(13)))
    assert len(page.tables) == 1
    assert page.text["noscript"] == "The other 19 maps need JavaScript."
    assert page.weights().shape == (4, 5, 13, 13)


def test_a_query_that_may_attend_to_nothing_has_zeros():
    page = ViewElements(attention_view([[1, 0], [0, 0]], ["a", "b"]))
    np.testing.assert_array_equal(page.numbers(), [[1, 0], [0, 0]])
    large = np.zeros((40, 40))
    large[0, 3] = 1
    assert ViewElements(attention_view(large, numbered_tokens(40))).tables[0][2] == ["t1", "no key"]


# What weights may be


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_tensors_of_every_precision_with_and_without_gradients(dtype):
    scores = torch.randn(3, 5, 31, generator=torch.Generator().manual_seed(0)).to(dtype)
    weights = torch.softmax(scores.requires_grad_(), dim=-1)
    page = ViewElements(attention_view(weights, numbered_tokens(5), numbered_tokens(31, "k")))
    np.testing.assert_allclose(page.weights()[0], weights.detach().double(), atol=0.0051)
    listed = attention_view([weights, weights], numbered_tokens(5), numbered_tokens(31, "k"))
    assert listed.weights.shape == (2, 3, 5, 31)


def test_the_view_keeps_its_own_copy():
    weights = np.eye(3)
    view = attention_view(weights, numbered_tokens(3))
    weights[0] = 7
    np.testing.assert_array_equal(view.weights[0, 0], np.eye(3))


def test_figures_do_not_import_torch():
    code = "import sys, attncourse.figures as f; f.attention_view([[1]], ['a'])._repr_html_()"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)


@pytest.mark.parametrize(
    ("weights", "labels", "message"),
    [
        (np.eye(3), numbered_tokens(2), "tokens: expected 3, one for each query .*, got 2"),
        (
            random_weights(3, 5),
            numbered_tokens(3),
            "keys: expected 5 tokens, since there are 3 queries",
        ),
        (np.eye(3), "abc", "tokens: expected a list of 3 strings, got the string 'abc'"),
        (np.eye(2), ["a", 7], "tokens: expected strings, got 7"),
        ([[1, np.nan], [0, 1]], numbered_tokens(2), r"expected numbers, got NaN at index \(0, 1\)"),
        ([[0.5, 0.4], [0, 1]], numbered_tokens(2), "every row to sum to 1 .*, got 0.9 in row 0"),
        ([[1.5, -0.5], [0, 1]], numbered_tokens(2), r"none below 0, got -0.5 at index \(0, 1\)"),
        (random_weights(5, 5).T, numbered_tokens(5), "the columns sum to 1: transpose it"),
        (np.zeros((0, 0)), [], "at least one entry along every axis"),
        ([1.0], ["a"], r"expected shape \(\.\.\., m, n\), got \(1,\)"),
        (random_weights(2, 2, 2, 3, 3), numbered_tokens(3), "take one sequence of a batch"),
        ([["a"]], ["a"], "expected real numbers"),
        ([[1, np.inf], [0, 1]], numbered_tokens(2), "got inf in row 0"),
        (np.full((1001, 1000), 1e-3), numbered_tokens(1001), "at most 1000000 in all, got 1001000"),
    ],
)
def test_weights_of_wrong_shape_say_what_was_expected_and_given(weights, labels, message):
    with pytest.raises(ValueError, match=message):
        attention_view(weights, labels)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"keys": numbered_tokens(2)}, "keys: expected 3, one for each key .*, got 2"),
        ({"heads": ["a"]}, "heads: expected 2, one for each head, got 1"),
        ({"layers": ["a", "b"]}, "layers: expected 1, one for each layer, got 2"),
        ({"title": " "}, "title: expected some words"),
        ({"mask": np.ones((3, 3))}, "mask: expected True and False, got .* dtype float64"),
        ({"mask": [True, False]}, r"broadcasts to \(1, 2, 3, 3\), got \(2,\)"),
        ({"mask": ~np.eye(3, dtype=bool)}, r"weights of 0 where it is False .* \(0, 0, 0, 0\)"),
        ({"start": "t3"}, "start: expected one of the queries .*; 't3' is none of them"),
        ({"start": 3}, "start: expected one of the queries .*; 3 is none of them"),
        ({"start": ("head 2", "t0")}, "start: expected one of the heads .*, got 'head 2'"),
        (
            {"keys": numbered_tokens(3, "k"), "arcs": True},
            "both queries and keys, got 3 queries and 3 keys",
        ),
    ],
)
def test_names_that_do_not_fit_are_refused(more, message):
    with pytest.raises(ValueError, match=message):
        attention_view(random_weights(2, 3, 3), numbered_tokens(3), **more)


def test_arcs_and_starts_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"at most 12 tokens .*, got 13 queries and 13 keys"):
        attention_view(random_weights(13, 13), numbered_tokens(13), arcs=True)
    with pytest.raises(ValueError, match=r"'a' stands at the positions \[0, 2\]: give one"):
        attention_view(random_weights(3, 3), ["a", "b", "a"], start="a")


# Static figures


def test_outside_html_a_view_is_a_figure():
    weights = random_weights(5, 7)
    view = attention_view(weights, numbered_tokens(5), numbered_tokens(7, "k"), title="Who")
    (ax,) = view.figure().axes
    np.testing.assert_array_equal(ax.images[0].get_array(), weights)
    assert [label.get_text() for label in ax.get_yticklabels()] == numbered_tokens(5)
    assert ax.get_title() == "Who"
    assert view._repr_png_().startswith(b"\x89PNG")
    assert repr(view) == "<attention view: 1 × 1 maps of 5 queries × 7 keys>"
    several = attention_view(random_weights(2, 3, 5, 5), numbered_tokens(5)).figure()
    assert isinstance(several, Figure)
    assert plt.get_fignums() == []  # none of them is left open to be shown twice


def test_head_grid_draws_every_head_in_its_place():
    weights = random_weights(5, 7, 3)
    fig = head_grid(weights, numbered_tokens(7), numbered_tokens(3, "k"))
    maps = [ax for ax in fig.axes if ax.images]
    assert [ax.get_title() for ax in maps] == [f"head {i}" for i in range(5)]
    for ax, head in zip(maps, weights, strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), head)
    rows = [round(ax.figure.bbox.y0 / fig.bbox.height, 2) for ax in maps]
    assert rows == [0.5, 0.5, 0.5, 0.5, 0]
    names = [label.get_text() for ax in maps for label in ax.get_yticklabels()]
    assert names == 5 * numbered_tokens(7)
    weights = random_weights(2, 3, 7, 7)
    layered = head_grid(weights, numbered_tokens(7), layers=["low", "high"])
    maps = [ax for ax in layered.axes if ax.images]
    for ax, head in zip(maps, weights.reshape(6, 7, 7), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), head)
    titles = [ax.get_title() for ax in maps]
    assert titles == [f"{layer}, head {i}" for layer in ("low", "high") for i in range(3)]
    with pytest.raises(ValueError, match="tokens: expected 7"):
        head_grid(weights, numbered_tokens(5))


@pytest.mark.parametrize(("n_layers", "n_heads"), [(5, 7), (1, 29)])
def test_very_many_heads_stand_in_an_overview(n_layers, n_heads):
    weights = random_weights(n_layers, n_heads, 5, 5)
    fig = head_grid(weights, numbered_tokens(5), layers=[f"L{i}" for i in range(n_layers)])
    maps = [ax for ax in fig.axes if ax.images]
    for ax, head in zip(maps, weights.reshape(-1, 5, 5), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), head)
    assert [ax.get_title() for ax in maps][:n_heads] == [f"head {i}" for i in range(n_heads)]
    if n_layers > 1:
        names = [ax.get_ylabel() for ax in maps if ax.get_ylabel()]
        assert names == [f"L{i}" for i in range(n_layers)]
    fig.draw_without_rendering()
    boxes = [ax.get_tightbbox() for ax in maps]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert min(box.x0 for box in boxes) >= 0
    assert max(box.y1 for box in boxes) <= fig.bbox.y1


def test_token_graph_draws_an_arrow_for_each_large_weight():
    weights = np.array([[0.5, 0.5, 0.0], [0.05, 0.0, 0.95], [0.1, 0.9, 0.0]])
    ax = token_graph(weights, ["a", "b", "a"], threshold=0.1)
    place = [(0, 1), (np.cos(-np.pi / 6), -0.5), (-np.cos(-np.pi / 6), -0.5)]
    arrows = {}
    for text in ax.texts:
        if arrow := getattr(text, "arrow_patch", None):
            ends = [
                int(np.argmin(np.linalg.norm(np.subtract(place, end), axis=1)))
                for end in (text.get_position(), text.xy)
            ]
            arrows[tuple(ends)] = arrow.get_linewidth() / 8
    assert arrows == pytest.approx({(0, 1): 0.5, (1, 2): 0.95, (2, 0): 0.1, (2, 1): 0.9})
    assert [patch.get_linewidth() for patch in ax.patches] == [4.0]  # the loop
    names = [text.get_text() for text in ax.texts if text.get_text()]
    assert names == ["a\n0", "b\n1", "a\n2"]
    with pytest.raises(ValueError, match=r"expected shape \(n, n\), got \(2, 3\)"):
        token_graph(random_weights(2, 3), numbered_tokens(2))


def test_curve_with_spread_draws_centre_and_band():
    x, runs = [0, 1, 2], np.array([[1.0, 2, 3], [2, 4, 9], [6, 3, 3]])
    ax = curve_with_spread(x, runs, label="ours")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), [2, 3, 3])
    assert line.get_label() == "ours (median and range of 3 runs)"
    band = ax.collections[0].get_paths()[0].vertices
    assert band[band[:, 0] == 2][:, 1].min() == 3
    assert band[band[:, 0] == 2][:, 1].max() == 9
    _, axes = plt.subplots()
    curve_with_spread(x, runs, label="ours", centre="mean", ax=axes)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [3, 3, 5])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[band[:, 0] == 1][:, 1].max() == pytest.approx(4)  # 3 and a deviation of 1
    assert axes.lines[0].get_label() == "ours (mean and ± 1 s.d. of 3 runs)"
    _, half = plt.subplots()
    five = np.array([[9.0], [0], [5], [4], [1]]).repeat(3, axis=1)
    curve_with_spread(x, five, label="ours", half=True, ax=half)
    band = half.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1, 5)  # without the lowest and the highest
    assert half.lines[0].get_label() == "ours (median and middle half of 5 runs)"
    curve_with_spread(x, five, label="ours", brief=True, ax=half)
    assert half.lines[1].get_label() == "ours"
    for wrong in (runs[:1], runs[:, :2], runs[0]):
        with pytest.raises(ValueError, match=r"expected shape \(seeds, n\)"):
            curve_with_spread(x, wrong, label="ours")
    with pytest.raises(ValueError, match="got 'mode'"):
        curve_with_spread(x, runs, label="ours", centre="mode")
    with pytest.raises(ValueError, match=r'"median" for the middle half, got .mean.'):
        curve_with_spread(x, runs, label="ours", centre="mean", half=True)


def test_every_exported_name_exists():
    assert all(hasattr(figures, name) for name in figures.__all__)
