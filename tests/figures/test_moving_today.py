"""Chapter 21's moving figure against the table of models, and its drawings."""

import json
import re

import pytest
from chromium import launched

from attncourse.figures import moving
from attncourse.figures.drawings import today as drawings
from attncourse.figures.moving.two_models import (
    COMPARED_PARTS,
    LENGTHS,
    part_words,
    token_cost,
    two_digits,
)
from attncourse.today import MODELS, cache_bytes_of
from helpers.figure_reader import FigureReader, needs_browser

MARKUP_WORD = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(scope="module")
def browser():
    with launched() as chromium:
        yield chromium


@pytest.fixture
def opened(browser):
    readers = []

    def open_page(*figures, **options) -> FigureReader:
        readers.append(FigureReader(browser, *figures, **options))
        return readers[-1]

    yield open_page
    for reader in readers:
        assert reader.wrong == []
        reader.close()


def test_equal_arguments_equal_bytes_and_nothing_from_outside():
    html = moving.two_models(MODELS)._repr_html_()
    assert html == moving.two_models(MODELS)._repr_html_()
    assert " id=" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert html.count("</script>") == 2
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert set(json.loads(data)["models"]) == set(MODELS)


def test_names_of_models_stay_text():
    html = moving.two_models(MODELS | {MARKUP_WORD: MODELS["Qwen3 8B"]}, MARKUP_WORD)._repr_html_()
    assert "<img" not in html
    assert html.count("</script>") == 2


def test_a_model_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="expected one of Llama"):
        moving.two_models(MODELS, "GPT-7")


def test_a_token_costs_what_its_authors_say():
    stated = MODELS["DeepSeek-V3"]["stated"]["bytes_a_token"]
    for n in LENGTHS:
        assert token_cost(MODELS["DeepSeek-V3"], n)["bytes"] == stated == 70_272
    # and by hand: 32 layers of 8 heads, keys and values of 128 numbers, 2 bytes each
    assert token_cost(MODELS["Llama 3.1 8B"], 1024)["bytes"] == 32 * 8 * 2 * 128 * 2


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", LENGTHS)
def test_operations_are_those_of_a_loop_over_layers_and_keys(name, n):
    model, attention = MODELS[name], 0
    for kind in model["layers"]:
        if kind == "state":
            attention += 7 * model["d_state"]
        elif kind == "latent":
            seen = min(n, model.get("top_k") or n)
            compared = model["d_latent"] + model["d_turned"]
            attention += seen * model["n_heads"] * (2 * compared + 2 * model["d_latent"])
            if model.get("d_index"):
                attention += n * model["n_index_heads"] * 2 * model["d_index"]
        else:
            seen = n if kind == "full" else min(n, model["window"])
            attention += seen * model["n_heads"] * 4 * model["d_head"]
    cost = token_cost(model, n)
    assert cost["operations"] == pytest.approx(2e9 * model["active"] + attention)
    indexed = 2 * model["layers"].count("latent") * (model.get("d_index") or 0)
    assert cost["bytes"] == pytest.approx(cache_bytes_of(model, n) / n + indexed)


def test_every_model_has_its_words_and_its_sources():
    for model in MODELS.values():
        words = part_words(model)
        assert len(words) == len(COMPARED_PARTS)
        assert all(words)
        assert set(model["sources"]) == {"sizes", "positions", "parts", "active"}
        assert 2024 <= model["year"] <= 2026
    assert len(MODELS) == 12


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.99, "0.99"), (1.0, "1.0"), (9.94, "9.9"), (9.96, "10"), (2300.5, "2,301")],
)
def test_a_number_has_two_digits_or_is_whole(number, text):
    assert two_digits(number) == text


@needs_browser
def test_any_two_models_are_compared(opened):
    reader = opened(moving.two_models(MODELS))
    first = reader.figure.locator("[data-part=first]")
    second = reader.figure.locator("[data-part=second]")
    assert reader.figure.locator(".tm-lit").count() == 4
    for name, other_name in zip(MODELS, reversed(MODELS), strict=True):
        first.select_option(name)
        second.select_option(other_name)
        pair = [MODELS[name], MODELS[other_name]]
        same = zip(part_words(pair[0]), part_words(pair[1]), strict=True)
        differ = [a != b for a, b in same]
        assert reader.now["differ"] == differ
        assert reader.figure.locator(".tm-lit").count() == sum(differ)
        assert f"differ in {sum(differ)} of 8" in reader.says
        strips = reader.figure.locator("[data-part=strips] rect").count()
        assert strips == sum(len(model["layers"]) for model in pair)
        cells = reader.figure.locator("[data-part=costs] tbody td").all_inner_texts()
        expected = []
        for model in pair:
            costs = [token_cost(model, n) for n in LENGTHS]
            expected += [two_digits(cost["bytes"] / 1e3) for cost in costs]
            expected += [two_digits(cost["operations"] / 1e9) for cost in costs]
        assert cells == expected


@needs_browser
def test_the_script_computes_what_python_does(opened):
    reader = opened(moving.two_models(MODELS))
    for name, model in MODELS.items():
        for n in (1, 777, 131_072):
            assert reader.compute(name, n) == pytest.approx(token_cost(model, n), rel=1e-12)


@needs_browser
def test_a_list_is_moved_by_keys(opened):
    reader = opened(moving.two_models(MODELS))
    reader.figure.locator("[data-part=first]").focus()
    reader.page.keyboard.press("ArrowDown")
    assert reader.now["names"][0] == list(MODELS)[1]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_whole_figure(opened, scheme):
    reader = opened(moving.two_models(MODELS), width=390, color_scheme=scheme)
    assert reader.overflow() <= 0
    assert reader.small_text() == []
    assert reader.figure.bounding_box()["height"] <= 560


def test_drawings_describe_their_arrows():
    assert ("latent c", "keys") in drawings.latent_cache().leads()
    assert ("latent c", "values") in drawings.latent_cache().leads()
    assert ("turned key", "keys") not in drawings.latent_cache().leads()
    assert drawings.mended().leads() == [
        ("memory S", "Sᵀk"), ("Sᵀk", "v − Sᵀk"), ("v", "v − Sᵀk"), ("v − Sᵀk", "memory S"),
    ]  # fmt: skip
    assert len(drawings.changed_places().leads()) == 4
