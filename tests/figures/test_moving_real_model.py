"""A real model in the page: what JavaScript computes against the package, and what a reader does.

A small random file in the format of the real one serves always; the real one, where it is there.
"""

from __future__ import annotations

import base64
import http.server
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.figure_reader import PAGE, FigureReader, needs_browser
from helpers.small_byte_pairs import texts

pytest.importorskip("gguf")
from attncourse.circuits import logit_lens, patched, sink_mask, without_edges, without_heads
from attncourse.data import kept
from attncourse.figures import moving
from attncourse.figures.moving.figure import lean, lean_sheet
from attncourse.figures.moving.real_model import DECISIONS, FILE, SIZE, WORKER
from attncourse.figures.prose_numbers import compare_prose
from attncourse.figures.theme import read_asset
from attncourse.gpt import filter_logits
from attncourse.interpret import (
    attention_maps,
    first_token_pattern,
    head_scores,
    induction_pattern,
    previous_token_pattern,
    residual_stream,
)
from attncourse.milestones.undone import ROWS, TEXTS, undone
from attncourse.tasks.explored import unpack_maps
from helpers.project import ROOT
from helpers.real_model_page import SENTENCE, ready
from helpers.small_llama import KINDS, WORDS, small_file, small_model

pytestmark = needs_browser
UNCHANGED = {"off": [], "cuts": []}
for _, _, options in DECISIONS:
    UNCHANGED |= options[0][1]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return small_file(tmp_path_factory.mktemp("small") / "small.gguf")


@pytest.fixture(scope="module")
def model(path):
    from attncourse.llama import Llama

    return Llama.from_gguf(path).requires_grad_(False)


@pytest.fixture
def figure(opened, path):
    """Open the figure and load the small model file as a reader does."""
    return load_model_file(opened(moving.real_model([SENTENCE], seed=2)), path)


def load_model_file(reader: FigureReader, path: Path) -> FigureReader:
    reader.figure.locator("[data-part=file]").set_input_files(path)
    ready(reader)
    return reader


def ask_worker(reader: FigureReader, job: str, **inputs):
    """Return the worker's answer to a job, arrays as lists; a refusal is its message."""
    return reader.figure.evaluate(
        """async (root, [job, given]) => {
            if (given.file !== undefined) given.file = new File([Uint8Array.from(atob(given.file), c => c.charCodeAt(0))], "f");
            try {
                return JSON.parse(JSON.stringify(await root.ask(job, given),
                    (_, x) => ArrayBuffer.isView(x) ? [...x].map(y => Number.isNaN(y) ? null : y) : x));
            } catch (error) { return String(error.message); }
        }""",  # noqa: E501
        [job, inputs],
    )


def logits(reader: FigureReader, ids, **changed) -> torch.Tensor:
    ids = torch.as_tensor(ids).tolist()
    return torch.tensor(ask_worker(reader, "logits", ids=ids, way=UNCHANGED | changed)["logits"])


def assert_close(computed, expected, atol=2e-3):
    torch.testing.assert_close(computed, expected.detach(), atol=atol, rtol=0)


# --- what it computes -----------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_the_package(opened, tmp_path, plain, tied):
    model = small_model(tmp_path / "a.gguf", tied=tied)
    reader = opened(moving.real_model())
    content = base64.b64encode((tmp_path / "a.gguf").read_bytes()).decode()
    about = ask_worker(reader, "load", file=content, plain=plain)
    assert (about["fast"], about["layers"], about["heads"], about["base"]) == (not plain, 3, 4, 777)
    for text in texts(6, seed=5):
        ids = WORDS.encode(text + " otters")[-97:]
        expected = model(ids)
        assert expected.std() > 0.5
        assert_close(logits(reader, ids), expected)


def test_further_words_cost_one_pass_each_and_change_nothing(figure, model):
    ids = WORDS.encode(SENTENCE).tolist()
    for end in (9, 10, len(ids)):
        read = ask_worker(figure, "read", ids=ids[:end], way=UNCHANGED)["read"]
        assert read in (0, 1, len(ids) - 10)  # the page has read the sentence already
    other_ids = [*ids[:11], 7, 8]
    assert ask_worker(figure, "read", ids=other_ids, way=UNCHANGED)["read"] == 2
    assert_close(logits(figure, other_ids), model(torch.tensor(other_ids)))
    assert ask_worker(figure, "read", ids=[*other_ids, 9], way=UNCHANGED)["read"] == 1
    assert_close(logits(figure, [*other_ids, 9]), model(torch.tensor([*other_ids, 9])))


UNDONE_SETTINGS = {
    "no scale": {"scale": "none"},
    "divided by d_k": {"scale": "d_k"},
    "divided by √d_model": {"scale": "d_model"},
    "no causal mask": {"mask": "none"},
    "a token does not see itself": {"mask": "strict"},
    "no positions": {"positions": "none"},
    "pairs of another file": {"pairing": "halves"},
    "base 10,000": {"base": 10000},
    "the mean taken off too": {"norm": "mean"},
}


@pytest.mark.parametrize("name", UNDONE_SETTINGS)
def test_a_decision_is_undone_as_the_package_undoes_it(figure, model, name):
    ids = WORDS.encode(SENTENCE)
    with undone(next(row for row in ROWS if row.name == name), model):
        expected = model(ids)
    assert (expected - model(ids)).abs().max() > 0.05
    # Read in two parts, as where a text grows: what is kept must be that of the same switches.
    logits(figure, ids[:5], **UNDONE_SETTINGS[name])
    assert_close(logits(figure, ids, **UNDONE_SETTINGS[name]), expected)
    assert_close(logits(figure, ids), model(ids))


def test_without_a_norm_the_branches_read_the_stream_itself(figure, model):
    ids = WORDS.encode("otters sorted")
    with undone(next(row for row in ROWS if row.name == "no norm"), model):
        expected = model(ids)
    assert_close(
        logits(figure, ids, norm="none"), expected, atol=0.02 + 1e-3 * expected.abs().max().item()
    )


@pytest.mark.parametrize(("width", "sinks"), [(4, 0), (4, 1), (9, 2)])
def test_windows_are_the_masks_of_sink_mask(figure, model, width, sinks):
    ids = WORDS.encode(SENTENCE)
    expected = model(ids, mask=sink_mask(len(ids), width, sinks))
    assert_close(logits(figure, ids, window=width, sinks=sinks), expected)


def test_heads_and_edges_are_removed_as_the_package_does(figure, model):
    ids = WORDS.encode(SENTENCE)
    with without_heads(model, [(0, 1), (2, 3)]):
        assert_close(logits(figure, ids, off=[1, 11]), model(ids))
    edges = {(1, 2): [(7, 3), (9, 9)], (2, 0): [(0, 0)]}
    with without_edges(model, edges):
        expected = model(ids)
    cuts = [[4 * layer + h, i, j] for (layer, h), pairs in edges.items() for i, j in pairs]
    assert (expected - model(ids)).abs().max() > 0.05
    assert_close(logits(figure, ids, cuts=cuts), expected)


def test_maps_and_the_order_of_heads_are_the_packages(figure, model):
    ids = WORDS.encode(SENTENCE)
    n, inputs = len(ids), {"ids": WORDS.encode(SENTENCE).tolist(), "way": UNCHANGED}
    maps = attention_maps(model, ids).flatten(0, 1)  # (12, n, n)
    row = ask_worker(figure, "row", query=8, **inputs)
    assert_close(torch.tensor(row["weights"]).reshape(12, 9), maps[:, 8, :9], atol=1e-4)
    word = torch.zeros(n, n, dtype=torch.bool)
    word[8, 3] = True
    patterns = {
        "previous": previous_token_pattern(n), "first": first_token_pattern(n),
        "induction": induction_pattern(ids), "word": word,
    }  # fmt: skip
    for order, pattern in patterns.items():
        assert pattern.any()
        field = ask_worker(figure, "field", order=order, query=8, key=3, side=n, **inputs)
        scores = head_scores(maps.unflatten(0, (3, 4)), pattern).flatten()
        heads, ranked = zip(*field["ranked"], strict=True)
        assert_close(torch.tensor(ranked), scores[list(heads)], atol=1e-4)
        assert list(ranked) == sorted(ranked, reverse=True)
    assert sorted(heads) == list(range(12))
    pictures = torch.tensor([field["pictures"][str(k)] for k in range(12 * n * n)]) if isinstance(
        field["pictures"], dict) else torch.tensor(field["pictures"])  # fmt: skip
    assert_close(pictures.reshape(12, n, n) / 255, maps, atol=0.005)


@pytest.mark.parametrize("changed", [{}, {"scale": "none"}, {"window": 4, "sinks": 1}])
def test_a_score_is_the_sum_of_products_that_the_package_has(figure, model, changed):
    ids, query = WORDS.encode(SENTENCE), 8
    inputs = {"ids": ids.tolist(), "query": query, "way": UNCHANGED | changed}
    row = torch.tensor(ask_worker(figure, "row", **inputs)["weights"]).reshape(12, -1)
    for head in range(12):
        why = ask_worker(figure, "why", head=head, **inputs)
        keys = torch.tensor(why["turned"]["keys"])
        scores = why["by"] * keys @ torch.tensor(why["turned"]["query"])
        assert_close(scores.softmax(-1), row[head][why["seen"]], atol=1e-4)
    assert why["seen"] == ([0, 5, 6, 7, 8] if "window" in changed else list(range(9)))
    if not changed:
        assert_close(row, attention_maps(model, ids).flatten(0, 1)[:, query, :9], atol=1e-4)
        with undone(next(row for row in ROWS if row.name == "no positions"), model):
            still = attention_maps(model, ids)[0, 2, query, :9]  # the first layer reads the same
        plain = ask_worker(figure, "why", head=2, **inputs)["plain"]
        scores = why["by"] * torch.tensor(plain["keys"]) @ torch.tensor(plain["query"])
        assert (scores.softmax(-1) - row[2]).abs().max() > 0.01
        assert_close(scores.softmax(-1), still, atol=1e-4)


def test_the_lens_is_that_of_the_package(figure, model):
    ids = WORDS.encode(SENTENCE)
    stream = residual_stream(model, ids)  # (4, n, d)
    expected = logit_lens(stream[:, 6], model.norm.gain, model.out.weight).softmax(-1)
    rows = ask_worker(figure, "lens", ids=ids.tolist(), way=UNCHANGED, query=6)["rows"]
    assert [row["id"] for row in rows] == expected.argmax(-1).tolist()
    assert_close(torch.tensor([row["p"] for row in rows]), expected.amax(-1), atol=1e-3)


@pytest.mark.parametrize(("temperature", "top_p"), [(1, 1), (0.6, 1), (1.4, 0.3), (0.8, 0.75)])
def test_probabilities_and_draws_are_those_of_filtered_logits(figure, model, temperature, top_p):
    ids = WORDS.encode(SENTENCE)
    last = model(ids)[-1] / temperature
    expected = filter_logits(last, top_p=top_p).softmax(-1)
    inputs = {"ids": ids.tolist(), "way": UNCHANGED, "temperature": temperature, "topP": top_p}
    nexts = ask_worker(figure, "read", **inputs)["next"]
    assert_close(torch.tensor([word["p"] for word in nexts]), expected.topk(8).values, atol=1e-3)
    place, total = 0.37, expected.cumsum(0)
    drawn = ask_worker(figure, "draw", u=place, **inputs)["id"]
    assert total[drawn] - expected[drawn] - 1e-3 < place < total[drawn] + 1e-3
    likeliest = ask_worker(figure, "draw", **inputs | {"temperature": 0, "u": 0.99})
    assert (likeliest["id"], likeliest["p"]) == (int(last.argmax()), 1)


def pieces_of(reader: FigureReader, several: list[str]):
    return reader.figure.evaluate(
        "(root, all) => Promise.all(all.map(async text => (await root.ask('encode', {text})).ids))",
        several,
    )


def test_pieces_are_those_of_the_package(figure):
    several = [*texts(499, seed=11), SENTENCE]
    for text, ids in zip(several, pieces_of(figure, several), strict=True):
        assert ids == WORDS.encode(text).tolist(), ascii(text)
    for end in range(0, 60, 3):  # within characters, too
        assert ask_worker(figure, "decode", ids=ids[:end])["text"] == WORDS.decode(ids[:end])


# --- files that are none --------------------------------------------------------------------------


def test_other_files_are_refused_in_a_sentence(opened, path, tmp_path):
    reader, whole = opened(moving.real_model()), path.read_bytes()

    def refused(content: bytes) -> str:
        return ask_worker(reader, "load", file=base64.b64encode(content).decode())

    for length in sorted({4, 5, 23, 24, 100, len(whole) - 1, *range(4, len(whole), 4099)}):
        assert "cut off" in refused(whole[:length]), length
    assert "no GGUF file" in refused(b"PK" + whole[2:])
    assert "is empty" in refused(b"")
    for changed, message in (
        ({"kind": "qwen2"}, "The model in this file is a qwen2."),
        ({"block_count": 4}, "lacks the tensor blk.3."),
        ({"feed_forward_length": 128}, "has shape 96,64, expected 128,64"),
        ({"rope.scaling.type": "linear"}, "llama.rope.scaling.type is linear, expected none"),
        ({"kinds": {"blk.1.ffn_up.weight": KINDS.Q4_0}}, "blk.1.ffn_up.weight is stored as"),
    ):
        assert message in refused(small_file(tmp_path / "b.gguf", **changed).read_bytes())
    assert "cut as gpt2, qwen2b" in refused(whole.replace(b"smollm", b"qwen2b"))
    assert ask_worker(reader, "load", file=base64.b64encode(whole).decode())["layers"] == 3


def test_too_little_memory_gets_a_sentence(opened, path):
    reader = figure_without(
        opened, "WebAssembly.Memory = ArrayBuffer = function () { throw new RangeError(); };"
    )
    reader.figure.locator("[data-part=file]").set_input_files(path)
    ready(reader)
    assert "There is not enough memory here for the model" in reader.says


def test_without_webassembly_it_says_so_and_computes(opened, path):
    reader = load_model_file(figure_without(opened, "delete self.WebAssembly;"), path)
    assert "no WebAssembly" in reader.figure.locator("[data-part=about]").inner_text()
    assert "Likeliest next" in reader.says


def figure_without(opened, first: str) -> FigureReader:
    """Open the figure with a worker whose script begins with ``first``, which removes a feature."""
    reader = opened(moving.real_model([SENTENCE]))
    reader.page.evaluate(
        """first => { const Real = Blob; window.Blob = class extends Real {
            constructor(parts, options) { super([first, ...parts], options); } }; }""",
        first,
    )
    return reader


# --- what a reader does ---------------------------------------------------------------------------


def test_the_code_is_small_and_the_file_is_the_pinned_one():
    from attncourse.pretrained.model import FILE as PINNED

    assert (FILE, SIZE) == (PINNED.name, PINNED.size)
    names = (*WORKER, "score_sum", "real_model_address", "real_model")
    scripts = [lean(read_asset(f"moving/{name}.js")) for name in names]
    sheets = [lean_sheet(read_asset(f"moving/{name}.css")) for name in ("score_sum", "real_model")]
    # A tenth of it writes addresses of whole states and sets them in one pass.
    assert sum(map(len, [*scripts, *sheets])) < 84_700
    with pytest.raises(ValueError, match="texts: expected texts to try, got"):
        moving.real_model([" "])


@pytest.mark.parametrize("options", [{}, {"width": 390, "color_scheme": "dark"}])
def test_before_loading_stored_results_of_the_first_text_show(opened, options):
    reader = opened(moving.real_model(), **options)
    first = kept("one_sentence")["first"]
    words = reader.figure.locator(".rm-words button")
    words.last.wait_for()
    ready(reader)
    assert words.all_inner_texts() == first["pieces"]
    assert [[word["id"], word["text"], word["p"]] for word in reader.now["next"]] == first["next"]
    maps = unpack_maps(first["maps"], len(first["ids"]), 30, 9).reshape(270, 11, 11)
    for order, query, rank in (("layer", 10, 126), ("layer", 4, 200)):
        words.nth(query).click()
        ready(reader)
        reader.figure.locator("[data-part=order]").select_option(order)
        ready(reader)
        reader.figure.locator("[data-part=rank]").fill(str(rank))
        assert reader.now["row"] == pytest.approx(maps[rank - 1, query, : query + 1], abs=1e-6)
    reader.figure.locator("[data-part=order]").select_option("first")
    ready(reader)
    head, score = reader.now["ranked"][0]
    scores = maps[:, 1:, 0].mean(1)
    assert (head, score) == (int(scores.argmax()), pytest.approx(scores.max(), abs=1e-6))
    assert reader.overflow() == 0
    assert reader.small_text() == []


def test_what_is_not_stored_asks_for_the_model(opened, path):
    reader = opened(moving.real_model())
    reader.figure.locator(".rm-words button").last.wait_for()
    ready(reader)
    for name in ("halves", "Next word", "cut in all heads", "Why this score?", "Write on"):
        reader.button(name).click()
        ready(reader)
        assert "Load the model" in reader.says, name
        reader.figure.locator(".rm-words button").first.click()  # and it goes on
        ready(reader)
        assert "looks at" in reader.says, name
    assert reader.button("halves").get_attribute("aria-pressed") == "false"
    field = reader.figure.locator("textarea")
    for text, faint in (("Another text", True), (kept("one_sentence")["first"]["text"], False)):
        field.fill(text)
        status = "Load the model" if faint else "Likeliest next"
        reader.page.wait_for_function(
            "said => document.querySelector('[role=status]').textContent.includes(said)", arg=status
        )
        ready(reader)
        assert (reader.figure.locator(".rm-old").count() == 1) == faint
    field.fill(SENTENCE)
    load_model_file(reader, path)
    assert reader.now["ids"] == WORDS.encode(SENTENCE).tolist()
    assert not reader.figure.locator("[data-part=loading]").is_visible()


def test_the_stored_results_are_the_real_models(real_model):
    model, words = real_model
    first = kept("one_sentence")["first"]
    assert words.encode(first["text"]).tolist() == first["ids"]
    maps = torch.tensor(unpack_maps(first["maps"], len(first["ids"]), 30, 9))
    assert_close(maps, attention_maps(model, torch.tensor(first["ids"])).double(), atol=0.003)
    with torch.no_grad():
        chances = model(torch.tensor(first["ids"]))[-1].softmax(-1)
    for i, _, p in first["next"]:
        assert float(chances[i]) == pytest.approx(p, abs=2e-3)


def test_nothing_is_loaded_before_the_reader_asks(opened):
    reader = opened(moving.real_model([SENTENCE]))
    assert not reader.figure.locator("[data-part=model]").is_visible()
    assert "Nothing is loaded before you ask" in reader.figure.inner_text()
    assert reader.figure.get_by_role("button", name="Load the model").is_disabled()  # no server


def test_a_text_is_written_on_and_taken_back(figure):
    assert figure.now["next"][0]["text"] in figure.says or "Likeliest next" in figure.says
    before = len(figure.now["ids"])
    figure.button("Next word").click()
    ready(figure)
    assert figure.says.startswith("Written: “")
    assert figure.now["read"] == 1
    assert len(figure.now["ids"]) == before + 1
    figure.figure.locator(".rm-next button").nth(2).click()  # this one, not the likeliest
    ready(figure)
    assert len(figure.now["ids"]) == before + 2
    assert figure.figure.locator(".rm-words button").count() == before + 2
    assert figure.figure.locator(".rm-out b").inner_text()
    figure.button("Take all back").click()
    ready(figure)
    assert len(figure.now["ids"]) == before
    # pressed by the page itself as the first word appears: a pointer may come after the last
    figure.figure.evaluate(
        """root => new MutationObserver((_, seen) => {
            seen.disconnect();
            [...root.querySelectorAll("button")].find(one => one.textContent === "Stop").click();
        }).observe(root.querySelector(".rm-out"), {childList: true})"""
    )
    figure.button("Write on").click()
    figure.page.wait_for_function(
        "() => document.querySelector('[role=status]').textContent.includes('Stopped')"
    )
    ready(figure)
    assert len(figure.now["ids"]) == before + 1
    assert "Likeliest next" in figure.says
    assert figure.button("Write on").count() == 1


def test_turning_a_phone_does_not_stop_the_writing(figure):
    before = len(figure.now["ids"])
    width = figure.figure.evaluate("root => root.querySelector('[data-part=field]').clientWidth")
    figure.figure.evaluate(
        """root => { root.pieces = 0; new MutationObserver(() => {
            root.pieces += 1;
            root.style.maxWidth = root.pieces % 2 ? "20rem" : "";
        }).observe(root.querySelector(".rm-out"), {childList: true}); }"""
    )
    figure.button("Write on").click()
    figure.page.wait_for_function("() => document.querySelector('.attncourse-moving').pieces > 20")
    figure.button("Stop").click()
    ready(figure)
    assert len(figure.now["ids"]) - before > 20
    figure.figure.evaluate("root => { root.style.maxWidth = '20rem'; }")
    figure.page.wait_for_function(
        """width => { const box = document.querySelector('[data-part=field]');
            return box.clientWidth < width
                && box.firstElementChild.offsetWidth <= box.clientWidth; }""",
        arg=width,
    )
    assert figure.wrong == []


def test_progress_stands_in_the_button_that_was_pressed(figure):
    figure.figure.evaluate(
        """root => { root.read = []; const each = root.querySelector("[data-part=each]");
            new MutationObserver(() => root.read.push(each.textContent)).observe(each,
                {childList: true}); }"""
    )
    figure.button("Undo each in turn").click()
    ready(figure)
    wrong = sum(len(options) - 1 for _, _, options in DECISIONS)
    read = figure.figure.evaluate("root => root.read")
    assert read[:-1] == [f"Undoing {k} of {wrong} …" for k in range(1, wrong + 1)]
    assert figure.button("Undo each in turn").is_visible()


def test_heads_keep_their_order_while_they_are_switched_off(figure):
    figure.figure.locator("[data-part=order]").select_option("induction")
    ready(figure)

    def heads() -> list[int]:
        return [head for head, _ in figure.now["ranked"]]

    before = heads()
    for place in range(3):  # of the first layers: what later ones do changes
        head = next(h for h in before[place:] if h < 4 and h not in figure.now["way"]["off"])
        figure.figure.locator("[data-part=rank]").fill(str(before.index(head) + 1))
        figure.button(f"Switch head {head // 4}.{head % 4} off").click()
        ready(figure)
        assert heads() == before
    scores = [score for _, score in figure.now["ranked"]]
    assert scores != sorted(scores, reverse=True)  # another order, by now
    figure.button("Sort anew").click()
    ready(figure)
    scores = [score for _, score in figure.now["ranked"]]
    assert scores == sorted(scores, reverse=True)
    write_text(figure, "otters met. otters")
    assert [score for _, score in figure.now["ranked"]] == sorted(
        [score for _, score in figure.now["ranked"]], reverse=True
    )


def test_in_a_long_text_the_chosen_piece_is_in_its_box(figure):
    write_text(figure, "Seven otters met. They sorted pebbles. " * 9)
    place = """root => { const box = root.querySelector(".rm-words").getBoundingClientRect();
        const word = root.querySelector(".rm-words [aria-pressed=true]").getBoundingClientRect();
        return [word.top - box.top, box.bottom - word.bottom]; }"""
    high, seen = figure.figure.evaluate(
        """root => { const box = root.querySelector(".rm-words");
            return [box.scrollHeight, box.clientHeight]; }"""
    )
    assert high > seen + 30
    assert min(figure.figure.evaluate(place)) >= 0
    figure.figure.locator(".rm-words button").first.click()
    ready(figure)
    assert min(figure.figure.evaluate(place)) >= 0


def test_results_stay_in_sight(opened, path):
    """Beside the decisions where there is room; else a strip of words, before and now."""
    for width in (1280, 390):
        reader = load_model_file(opened(moving.real_model([SENTENCE]), width=width), path)
        reader.button("halves").scroll_into_view_if_needed()
        reader.button("halves").click()
        ready(reader)
        seen = reader.page.locator(".rm-next table, .rm-words button >> visible=true")
        inside = """all => all.map(one => one.getBoundingClientRect())
            .map(box => box.top >= 0 && box.bottom <= innerHeight)"""
        strip = reader.figure.locator(".rm-strip")
        if width == 1280:
            assert all(seen.evaluate_all(inside))
            assert not strip.is_visible()
        else:
            assert all(strip.evaluate_all(inside))
            nexts = reader.now["next"]
            likeliest_before = max(nexts, key=lambda word: word["before"])
            likeliest_now = next(word for word in nexts if word is not likeliest_before)
            shown = strip.locator("span").all_inner_texts()
            assert [text.split()[0] for text in shown] == [
                (word["text"].strip() or word["text"].replace(" ", "␣"))
                for word in (likeliest_before, likeliest_now)
            ]
            assert all(text.count("→") == 1 and text.endswith("%") for text in shown)
            reader.button("Put all back").click()
            ready(reader)
            assert strip.locator("b").count() == 3
        assert reader.overflow() == 0


@pytest.mark.parametrize("width", [320, 390])
def test_the_strip_never_shortens_a_number(opened, path, width):
    """Long words give way, and what does not fit is left out whole."""
    reader = load_model_file(opened(moving.real_model([SENTENCE]), width=width), path)
    reader.button("halves").click()
    ready(reader)
    strip = reader.figure.locator(".rm-strip")
    assert strip.locator("span").count() == 2
    for word in ("a", "otters", "w" * 40):
        strip.locator("b").evaluate_all("(all, word) => all.map(b => b.textContent = word)", word)
        entries = strip.evaluate(
            """strip => {
                const box = strip.getBoundingClientRect(), range = document.createRange();
                return [...strip.children].map(entry => {
                    range.selectNodeContents(entry.lastChild);
                    const number = range.getBoundingClientRect();
                    return {here: number.top < box.bottom - 4, whole: number.right <= box.right};
                });
            }"""
        )
        assert entries[0]["here"]
        assert all(entry["whole"] for entry in entries if entry["here"])
        assert reader.overflow() == 0


def test_no_arc_or_shade_reaches_words_after_the_chosen_one(figure):
    """No shade and no arc after the chosen piece, for no head."""
    words = figure.figure.locator(".rm-words button")
    words.nth(3).click()
    ready(figure)
    for rank in range(1, 13):
        figure.figure.locator("[data-part=rank]").fill(str(rank))
        assert figure.now["row"][4:] == []
        shades = words.evaluate_all("all => all.slice(4).map(one => one.style.background)")
        assert set(shades) == {""}
        arcs = figure.figure.locator(".rm-press").evaluate_all(
            "all => all.map(a => +a.dataset.key)"
        )
        assert all(key < 3 for key in arcs)


def test_heads_that_attend_from_one_piece_to_another_are_listed(figure):
    figure.page.set_viewport_size({"width": 390, "height": 500})
    figure.figure.locator("[data-part=key]").select_option("2")
    ready(figure)
    figure.button("Which heads look there?").click()
    ready(figure)
    assert figure.figure.locator("[data-part=order]").input_value() == "word"
    last = len(figure.now["ids"]) - 1
    words = figure.figure.locator(".rm-words")
    assert words.evaluate("box => box.getBoundingClientRect().top") >= 0  # the arcs are in sight
    best = max(range(12), key=lambda head: row_weight(figure, head, last, 2))
    assert figure.now["head"] == best
    figure.figure.locator(".rm-words button").nth(last - 3).click()  # from there, the same head
    ready(figure)
    assert (figure.now["query"], figure.now["head"]) == (last - 3, best)
    scores = [score for _, score in figure.now["ranked"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(max(row_weight(figure, h, last - 3, 2) for h in range(12)))


def row_weight(figure: FigureReader, head: int, query: int, key: int) -> float:
    """Return a head's weight from one piece to another."""
    row = ask_worker(figure, "row", ids=figure.now["ids"], way=UNCHANGED, query=query)
    return row["weights"][head * row["length"] + key]


def test_many_heads_off_share_one_button(figure):
    first = figure.figure.locator("[data-part=first]")
    chips = figure.figure.locator("[data-part=changed] button")
    for count, expected in ((3, 4), (7, 2)):
        first.fill(str(count))
        ready(figure)
        assert chips.count() == expected  # with the one that puts all back
    assert chips.first.inner_text() == "7 heads off ×"
    figure.figure.locator("[data-part=order]").select_option("first")
    ready(figure)
    now = figure.figure.locator("[data-part=first-now]")
    assert now.inner_text() == "7 off, not this order’s first"
    figure.button("cut in this head").click()
    ready(figure)
    head = figure.now["head"]
    assert figure.says.startswith(f"Cut in head {head // 4}.{head % 4}: “")
    chips.first.click()
    ready(figure)
    assert (figure.now["way"]["off"], len(figure.now["way"]["cuts"])) == ([], 1)
    assert now.inner_text() == "0"
    assert figure.figure.locator(".rm-cut").count() == 1  # a cut edge is drawn
    figure.button("Put all back").click()
    ready(figure)
    assert figure.now["way"] == UNCHANGED
    assert chips.count() == 0


def test_examples_start_from_a_clean_state_and_say_so(opened, path):
    reader = load_model_file(opened(moving.real_model([SENTENCE, "otters met. otters"])), path)
    example = reader.figure.locator("[data-part=example]").nth(1)
    assert example.inner_text() == "otters met. otters"
    example.click()
    ready(reader)
    clean = reader.now
    for name in ("Switch head", "halves"):
        reader.figure.get_by_role("button", name=name).first.click()
        ready(reader)
    reader.figure.locator("[data-part=temperature]").fill("0.3")
    reader.figure.locator("[data-part=order]").select_option("first")
    ready(reader)
    assert reader.now["next"] != clean["next"]
    example.click()
    ready(reader)
    assert without_times(reader.now) == without_times(clean)
    assert reader.says.startswith("Put back: head ")
    assert "Pairs turned: halves; Temperature 0.3. Likeliest next" in reader.says
    reader.figure.locator("[data-part=temperature]").fill("0.3")
    reader.button("halves").click()
    ready(reader)
    reader.button("Put all back").click()
    ready(reader)
    assert without_times(reader.now) == without_times(clean)
    assert reader.button("halves").get_attribute("aria-pressed") == "false"


def without_times(now: dict) -> dict:
    return {name: value for name, value in now.items() if name not in ("ms", "read")}


def test_the_slider_of_heads_counts_layers_while_it_works(figure):
    figure.figure.evaluate(
        """root => { root.counts = []; const now = root.querySelector("[data-part=first-now]");
            new MutationObserver(() => root.counts.push(now.textContent)).observe(now,
                {childList: true}); }"""
    )
    figure.figure.locator("[data-part=first]").fill("4")
    ready(figure)
    counts = figure.figure.evaluate("root => root.counts")
    assert "4: layer 1 of 3 …" in counts
    assert counts[-1] == "4"


def test_a_goal_of_another_text_is_forgotten(figure):
    key = figure.figure.locator("[data-part=key]")
    key.select_option("2")
    ready(figure)
    write_text(figure, SENTENCE + " pebbles")  # the same beginning: the same piece
    assert key.input_value() == "2"
    write_text(figure, "They sorted pebbles")
    assert key.input_value() == "0"


def test_results_of_another_text_are_dimmed(figure):
    bars = figure.figure.locator(".rm-next")
    field = figure.figure.locator("textarea")
    for text, opacity in (("", "0.4"), (SENTENCE, "1"), ("otters " * 700, "0.4")):
        field.fill(text)
        figure.page.wait_for_function(
            "wanted => getComputedStyle(document.querySelector('.rm-next')).opacity === wanted",
            arg=opacity,
        )
    assert bars.locator("button").count() > 0


def test_texts_of_every_kind_get_a_sentence(figure):
    field = figure.figure.locator("textarea")
    for text, status in (("", "Write something"), ("   ", "Write something"),
                       ("otters " * 700, "pieces, and a text has room for"),
                       ("নীল 圓的 🦦 \x00 ﷽ العربية", "Likeliest next"),
                       ("<b>&amp;</b>", "Likeliest next")):  # fmt: skip
        field.fill(text)
        figure.page.wait_for_function(
            "said => document.querySelector('[role=status]').textContent.includes(said)", arg=status
        )
        ready(figure)
        assert field.get_attribute("aria-invalid") == str(status != "Likeliest next").lower()
    assert figure.figure.locator(".rm-words b").count() == 0


def test_heads_and_layers_are_switched_off_and_edges_are_cut(figure, model):
    ids = WORDS.encode(SENTENCE)
    figure.figure.locator("[data-part=order]").select_option("first")
    ready(figure)
    head = figure.now["head"]
    layer, h = divmod(head, 4)
    figure.button(f"Switch head {layer}.{h} off").click()
    ready(figure)
    with without_heads(model, [(layer, h)]):
        expected = model(ids)[-1].softmax(-1)
    best = figure.now["next"][0]
    assert best["p"] == pytest.approx(float(expected.max()), abs=1e-3)
    assert figure.says.startswith(f"Head {layer}.{h} off. ")
    assert "before the changes" in figure.says
    figure.button(f"Switch all of layer {layer} off").click()
    ready(figure)
    with without_heads(model, [(layer, k) for k in range(4)]):
        expected = model(ids)[-1].softmax(-1)
    assert figure.now["next"][0]["p"] == pytest.approx(float(expected.max()), abs=1e-3)
    figure.button(f"layer {layer} off: take back").click()
    ready(figure)
    assert figure.now["way"]["off"] == []
    figure.figure.locator("[data-part=key]").select_option("2")
    figure.button("cut in all heads").click()
    ready(figure)
    edge = (len(ids) - 1, 2)
    with without_edges(model, {(k // 4, k % 4): [edge] for k in range(12)}):
        expected = model(ids)[-1].softmax(-1)
    assert figure.now["next"][0]["p"] == pytest.approx(float(expected.max()), abs=1e-3)
    assert figure.now["row"][2] == 0
    figure.button("Put everything back").click()
    ready(figure)
    assert figure.now["way"] == UNCHANGED


def test_an_arc_that_is_pressed_says_why(figure):
    figure.figure.locator("[data-part=order]").select_option("layer")
    ready(figure)
    box = figure.figure.get_by_role("group", name="Why this score")
    assert not box.is_visible()
    figure.figure.locator(".rm-words").scroll_into_view_if_needed()
    arc = figure.figure.locator(".rm-press").last  # drawn over the others
    key = int(arc.get_attribute("data-key"))
    middle = arc.evaluate(
        """path => { const at = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(
            path.getScreenCTM()); return [at.x, at.y]; }"""
    )
    figure.page.mouse.click(*middle)  # where a reader sees it
    ready(figure)
    why = figure.figure.evaluate("root => root.why")
    assert why["seen"][why["chosen"]] == key
    assert why["weights"] == pytest.approx(figure.now["row"], abs=1e-4)
    count = len(why["products"])
    assert box.locator("rect").count() == 3 * count
    assert why["sum"] == pytest.approx(sum(why["products"]))
    assert "The score is" in figure.says
    assert "without the rotation" in figure.says
    figure.button("Rotation").focus()
    figure.page.keyboard.press("Enter")
    ready(figure)
    unturned = figure.figure.evaluate("root => root.why")
    assert unturned["products"] != pytest.approx(why["products"], abs=1e-3)
    figure.figure.locator("[data-part=rank]").fill("3")  # another head: the panel follows
    ready(figure)
    assert figure.figure.evaluate("root => root.why.head") == 2
    figure.figure.locator("[data-part=key]").select_option(str(key))
    figure.button("cut in this head").click()
    ready(figure)
    assert "has no score" in box.inner_text()
    assert figure.figure.locator("[data-part=both]").inner_text() == ""
    figure.button("Why this score?").click()
    ready(figure)
    assert not box.is_visible()


def test_a_score_names_its_largest_and_its_least_product(figure):
    """By their numbers, which stand in the picture, too; the line says which score is shown."""
    figure.button("Why this score?").click()
    ready(figure)
    products = np.array(figure.figure.evaluate("root => root.why.products"))
    box = figure.figure.get_by_role("group", name="Why this score")
    most, least = int(products.argmax()), int(products.argmin())
    numbers_named = re.search(
        r"Largest product .* [(]number (\d+)[)], least .* [(]number (\d+)[)]", box.inner_text()
    )
    assert [int(n) for n in numbers_named.groups()] == [most, least]
    assert box.locator("svg g text").all_text_contents() == [str(n) for n in sorted({most, least})]
    before = figure.says
    assert "; without the rotation in this head alone, " in before
    figure.button("Rotation").click()
    ready(figure)
    assert ", without the rotation in this head alone; with it " in figure.says
    numbers = [re.findall(r"[−\d.]+, a weight of [\d.]+", text) for text in (before, figure.says)]
    assert numbers[0] == numbers[1][::-1]
    assert len(numbers[0]) == 2


def test_without_a_goal_the_score_is_that_of_an_arc(figure):
    """The list begins with the first piece; where no arc leads there, the thickest is explained."""
    figure.figure.evaluate("root => root.take(['order=layer'])")
    ready(figure)
    heads = figure.figure.locator("[data-part=rank]")
    for rank in range(1, 5):
        heads.fill(str(rank))
        row = figure.now["row"]
        if row[0] < 0.03:
            break
    else:
        pytest.skip("every head looks at the first piece")
    figure.button("Why this score?").click()
    ready(figure)
    why = figure.figure.evaluate("root => root.why")
    assert why["seen"][why["chosen"]] == int(np.argmax(row))


def test_a_click_before_loading_takes_effect_after_it(opened, path):
    reader = opened(moving.real_model())
    reader.figure.locator(".rm-words button").last.wait_for()
    ready(reader)
    reader.figure.locator(".rm-words button").nth(6).click()
    reader.figure.locator("[data-part=key]").select_option("1")
    ready(reader)
    reader.button("Why this score?").click()
    ready(reader)
    assert reader.says.startswith("Shown is one kept text. Load the model")
    beside = reader.figure.locator("[role=status]").get_by_role("button", name="Load")
    with reader.page.expect_file_chooser() as chooser:  # from a folder; from a server it loads
        beside.click()
    chooser.value.set_files(path)
    reader.page.wait_for_function(
        "() => document.querySelector('[data-part=loading]').hidden", timeout=60_000
    )
    reader.page.wait_for_function(
        "() => document.querySelector('[role=status]').textContent.includes('The score is')"
    )
    ready(reader)
    assert reader.figure.get_by_role("group", name="Why this score").is_visible()
    assert reader.now["query"] == 6
    assert reader.figure.locator("[data-part=key]").input_value() == "1"


def test_an_edge_that_is_cut_shows_in_its_buttons(figure):
    in_this_head, everywhere = figure.button("cut in this head"), figure.button("cut in all heads")
    pressed = lambda: [b.get_attribute("aria-pressed") for b in (in_this_head, everywhere)]  # noqa: E731
    assert pressed() == ["false", "false"]
    everywhere.click()
    ready(figure)
    assert pressed() == ["true", "true"]
    count = len(figure.now["way"]["cuts"])
    in_this_head.click()  # takes the cut back in this head
    ready(figure)
    assert pressed() == ["false", "false"]
    assert len(figure.now["way"]["cuts"]) == count - 1
    assert figure.says.startswith("Taken back in head ")
    everywhere.click()
    ready(figure)
    assert pressed() == ["true", "true"]
    figure.figure.locator("[data-part=key]").select_option("1")  # another edge
    ready(figure)
    assert pressed() == ["false", "false"]
    figure.figure.locator("[data-part=key]").select_option("0")
    ready(figure)
    everywhere.click()
    ready(figure)
    assert figure.now["way"]["cuts"] == []
    assert figure.says.startswith("Taken back in all heads. ")


def test_the_line_says_how_the_words_chance_changed(figure):
    """The line gives a word's probability before and now where another one is the likeliest."""
    for last in range(1, int(figure.figure.locator("[data-part=rank]").get_attribute("max"))):
        figure.figure.evaluate("(root, steps) => root.take(steps)", [f"off=0-{last}"])
        ready(figure)
        nexts = figure.now["next"]
        was = max(nexts, key=lambda word: word["before"])
        if was["id"] != nexts[0]["id"]:
            break
        assert ", now " not in figure.says
    assert was["id"] != nexts[0]["id"]
    row = figure.figure.locator(".rm-next tr").nth(nexts.index(was))
    now, before = row.locator("td").all_inner_texts()[-2:]
    assert figure.says.endswith(f", {before}, now {now}.")


def test_the_table_of_sentences_says_what_is_in_it(figure):
    figure.button("halves").click()
    ready(figure)
    caption = figure.figure.locator(".rm-tried caption").inner_text()
    assert re.fullmatch("The next 12 pieces after .*, the likeliest each time", caption)


def test_an_address_without_a_text_is_the_first_texts(figure):
    write_text(figure, "Seven otters met. They sorted pebbles.")
    figure.figure.evaluate("root => root.take(['temperature=0.5'])")
    ready(figure)
    assert figure.figure.locator("textarea").input_value() == SENTENCE
    assert figure.figure.locator("[data-part=temperature-now]").inner_text() == "0.5"
    write_text(figure, "Seven otters met. They sorted pebbles.")
    figure.figure.evaluate("root => root.take(['each!'])")  # of the reader's own text
    ready(figure)
    assert figure.figure.locator("textarea").input_value().startswith("Seven")


def test_numbers_are_written_alike_and_never_broken(opened, path):
    reader = load_model_file(opened(moving.real_model([SENTENCE]), width=390, has_touch=True), path)
    shown = [
        reader.figure.locator(f"[data-part={n}-now]").inner_text() for n in ("temperature", "topp")
    ]
    assert shown == ["1.0", "1.00"]
    tag = "() => document.activeElement.tagName"
    assert reader.page.evaluate(tag) != "TEXTAREA"  # a phone's keyboard would come
    reader.figure.locator(".rm-words button").nth(2).click()
    ready(reader)
    text = reader.figure.locator("[role=status]").text_content()
    assert "\u00a0%" in text
    assert " %" not in text


def test_the_first_heads_of_an_order_are_compared_with_random(figure, model):
    ids = WORDS.encode(SENTENCE)
    figure.figure.locator("[data-part=order]").select_option("previous")
    ready(figure)
    best = int(model(ids)[-1].argmax())
    figure.button("Against ten orders by lot").click()
    ready(figure)
    curve = figure.figure.evaluate("root => root.curve")
    assert (curve["counts"], curve["id"]) == ([0, 1, 2, 4, 8], best)
    assert curve["orders"][0] == [head for head, _ in figure.now["ranked"]]
    assert len({str(order) for order in curve["orders"]}) == 11
    assert all(sorted(order) == list(range(12)) for order in curve["orders"])
    for order, chances in zip(curve["orders"][:4], curve["curves"][:4], strict=True):
        for count, chance in zip(curve["counts"], chances, strict=True):
            with without_heads(model, [divmod(head, 4) for head in order[:count]]):
                expected = model(ids)[-1].softmax(-1)[best]
            assert chance == pytest.approx(float(expected), abs=1e-3)
    assert figure.figure.locator("[data-part=curves] path").count() == 12  # axes, eleven orders
    assert "by lot" in figure.says
    write_text(figure, "otters")
    assert figure.figure.locator("[data-part=curves] path").count() == 0  # they were another text's
    assert figure.button("Against ten orders by lot").is_visible()


def test_a_slider_switches_the_first_heads_off(figure):
    figure.figure.locator("[data-part=order]").select_option("first")
    ready(figure)
    first = figure.figure.locator("[data-part=first]")
    first.focus()
    for _ in range(3):
        figure.page.keyboard.press("ArrowRight")
        ready(figure)
    assert figure.now["way"]["off"] == sorted(head for head, _ in figure.now["ranked"][:3])
    assert figure.says.startswith("The first 3 heads of this order are off. ")
    figure.figure.locator("[data-part=changed] button").first.click()
    ready(figure)
    assert len(figure.now["way"]["off"]) == 2
    assert first.input_value() == "0"


@pytest.mark.parametrize("second_text", ["otters weren't 7 asleep", "Bettina's stones"])
def test_a_vector_is_carried_over_as_the_package_does(figure, model, second_text):
    text = "Bettina's 7 otters weren't"
    write_text(figure, text)
    figure.figure.locator("summary", has_text="A second text").click()
    ready(figure)
    figure.figure.get_by_label("The second text").fill(second_text)
    figure.button("After each layer in turn").click()
    ready(figure)
    carried = figure.figure.evaluate("root => root.carried")
    ids, source = WORDS.encode(text), WORDS.encode(second_text)
    runs = [model(ids)[-1].softmax(-1), model(source)[-1].softmax(-1)]
    answers = [int(run.argmax()) for run in runs]
    assert [answer["id"] for answer in carried["answers"]] == answers
    assert answers[0] != answers[1]
    assert_close(
        torch.tensor(carried["runs"]), torch.stack([run[answers] for run in runs]), atol=1e-3
    )
    stream = residual_stream(model, source)  # (4, n, d)
    for layer, row in enumerate(carried["rows"]):
        hook = model.blocks[layer].register_forward_hook(
            lambda block, inputs, x, layer=layer: torch.cat(
                [x[: carried["to"]], stream[layer + 1, carried["from"]][None],
                 x[carried["to"] + 1 :]])
        )  # fmt: skip
        expected = model(ids)[-1].softmax(-1)[answers]
        hook.remove()
        assert_close(torch.tensor(row), expected, atol=1e-3)
        if len(ids) == len(source) and carried["from"] == carried["to"]:
            taken = patched(model, source, ids, layer, carried["to"])[-1].softmax(-1)
            assert_close(expected, taken[answers], atol=1e-5)
    assert_close(
        torch.tensor(carried["rows"][-1]),
        runs[1 if carried["to"] == len(ids) - 1 and carried["from"] == len(source) - 1 else 0][
            answers
        ],
        atol=1e-3,
    )
    assert "as it is" in figure.says


def test_a_click_undoes_a_decision_and_writes_the_sentence(figure, model):
    figure.button("halves").click()
    ready(figure)
    assert figure.now["way"] == UNCHANGED | {"pairing": "halves"}
    rows = figure.figure.evaluate("root => root.tried")
    ids = WORDS.encode(SENTENCE)
    with undone(next(row for row in ROWS if row.name == "pairs of another file"), model):
        expected = WORDS.decode(model.generate(ids, 12)[len(ids) :])
    sentences = [row["text"].replace("↵", "\n") for row in rows]
    assert sentences[0] == WORDS.decode(model.generate(ids, 12, stop=0)[len(ids) :]).removesuffix(
        "<|end|>"
    )
    assert sentences[1] in (expected, expected.partition("<|end|>")[0])
    assert rows[1]["words"] == "Pairs turned: halves"
    assert rows[1]["text"] in figure.says
    figure.button("Undo each in turn").click()
    ready(figure)
    wrong = sum(len(options) - 1 for _, _, options in DECISIONS)
    assert figure.figure.locator(".rm-tried tr").count() == wrong + 1


def test_the_table_says_whose_sentences_and_what_was_undone(figure):
    caption = figure.figure.locator(".rm-tried caption")
    changed = "(the text above is another by now)"
    figure.button("halves").click()
    ready(figure)
    assert "links; otters sorted" in caption.inner_text()
    assert changed not in caption.inner_text()
    figure.button("Next word").click()
    ready(figure)
    assert caption.inner_text().endswith(changed)
    figure.button("Take all back").click()
    ready(figure)
    assert changed not in caption.inner_text()
    figure.button("not itself").click()  # the other pairing is still undone
    ready(figure)
    heads = figure.figure.locator(".rm-tried th").all_inner_texts()
    assert heads == ["as it is", "Pairs turned: halves", "Mask: not itself; Pairs turned: halves"]


def write_text(figure: FigureReader, text: str) -> None:
    """Type a text into the field and wait until the model has read it."""
    figure.figure.locator("textarea").fill(text)
    figure.page.wait_for_function(
        "n => document.querySelector('.attncourse-moving').now.ids.length === n",
        arg=len(WORDS.encode(text)),
    )
    ready(figure)


@pytest.mark.parametrize(("text", "hides_none"), [("otters", True), (SENTENCE, False)])
def test_a_window_that_is_wider_than_the_text_says_so(figure, text, hides_none):
    write_text(figure, text)
    figure.figure.evaluate(
        """root => { root.heard = ""; const say = root.querySelector(".am-say");
        new MutationObserver(() => root.heard += say.textContent).observe(say, {childList: true});
        }"""
    )
    figure.button("last 32").click()
    ready(figure)
    heard = figure.figure.evaluate("root => root.heard")
    assert ("so this window hides none of them" in heard) == hides_none
    assert ("Window: last 32 – wider than the text." in figure.says) == hides_none


def test_bars_show_spaces(figure):
    write_text(figure, "links")
    following = [word["text"] for word in figure.now["next"]]
    assert any(text.startswith(" ") and text.strip() for text in following)
    shown = figure.figure.locator(".rm-next button").all_inner_texts()
    assert shown == [text.replace(" ", "␣").replace("\n", "↵") for text in following]


def test_small_chances_are_not_written_as_zero(figure):
    figure.figure.locator("[data-part=temperature]").evaluate(
        "slider => { slider.value = 0.1; slider.dispatchEvent(new Event('input')); }"
    )
    figure.button("not itself").click()
    ready(figure)
    chances = [word[key] for word in figure.now["next"] for key in ("p", "before")]
    little = [0 < p < 0.0005 for p in chances]
    assert any(little)
    shown = figure.figure.locator(".rm-next td:nth-child(n + 3)").all_inner_texts()
    assert [text.replace("\xa0", " ") == "< 0.1 %" for text in shown] == little
    assert "0.0" not in "".join(shown)


def test_it_works_by_keyboard_and_is_described_in_words(figure):
    words = figure.figure.locator(".rm-words button")
    assert [words.nth(i).get_attribute("tabindex") for i in range(3)] == ["-1"] * 3
    words.last.focus()
    figure.page.keyboard.press("ArrowLeft")
    ready(figure)
    assert figure.now["query"] == words.count() - 2
    assert "looks at" in figure.says
    rank = figure.figure.get_by_role("slider", name="Which head, by its place in this order")
    rank.focus()
    figure.page.keyboard.press("ArrowRight")
    assert "Number 2 of 12 in this order" in figure.says
    figure.figure.locator("[data-part=lens] summary").focus()
    figure.page.keyboard.press("Enter")
    figure.page.locator(".rm-lens").wait_for()
    ready(figure)
    assert figure.figure.locator(".rm-lens tbody tr").count() == 4
    assert "the last layer says" in figure.says
    assert figure.figure.locator(".rm-lens td").last.inner_text()


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}])
def test_it_fits_a_phone(opened, path, options):
    reader = load_model_file(
        opened(moving.real_model(), width=390, has_touch=True, **options), path
    )
    reader.figure.locator("[data-part=lens] summary").click()
    reader.page.locator(".rm-lens").wait_for()
    ready(reader)
    reader.figure.locator(".rm-field").tap(position={"x": 40, "y": 8})
    ready(reader)
    assert "Number 3 of 12" in reader.says
    assert reader.overflow() == 0
    assert reader.small_text() == []


# --- from the book's server -----------------------------------------------------------------------


class BookServer(http.server.SimpleHTTPRequestHandler):
    """A folder as a book: its page, and the model beside it, unless it is gone or breaks off."""

    state = "there"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.path.startswith("/model/"):
            return super().do_GET()
        content = Path(self.directory, "small.gguf").read_bytes()
        if self.state == "gone":
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        if self.state == "hangs":
            return self.let_go.wait()
        if self.state != "breaks":
            self.wfile.write(content[half:])
        return None


@contextmanager
def served_folder(folder: Path):
    """Yield the address of the served folder and the server's class, whose behaviour can be set."""

    class Here(BookServer):
        let_go = threading.Event()

        def __init__(self, *arguments, **more):
            super().__init__(*arguments, directory=str(folder), **more)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Here) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/book/page.html", Here
        finally:
            server.shutdown()


def test_the_books_server_hands_over_a_file_kept_in_the_browser(browser, path, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "small.gguf").write_bytes(path.read_bytes())
    html = PAGE.format(moving.real_model([SENTENCE])._repr_html_())
    html = html.replace("<html ", '<html data-content_root="../" ')
    (tmp_path / "book" / "page.html").write_text(html, encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)

    def says(text):
        page.wait_for_function(
            "said => document.querySelector('[role=status]').textContent.includes(said)", arg=text
        )

    with served_folder(tmp_path) as (address, server):
        page.goto(address)
        load = page.locator("[data-part=load]")
        for state, message in (
            ("gone", "(it says 404)"),
            ("breaks", "The connection broke before"),
        ):
            server.state = state
            load.click()
            says(message)
        server.state = "hangs"
        load.click()
        page.wait_for_function("() => document.querySelector('progress').value > 0.4")
        page.get_by_role("button", name="Cancel").click()
        says("Cancelled. Nothing is kept")
        load.click()
        page.wait_for_function("() => document.querySelector('progress').value > 0.4")
        page.goto(address)  # the page is closed while it loads
        page.wait_for_timeout(300)
        assert "stays in this browser" in load.inner_text()
        server.let_go.set()
        server.state = "there"
        load.click()
        says("Likeliest next")
        assert page.locator("[data-part=about]").inner_text().startswith(f"{FILE}: 3 layers")
        link = page.locator(".rm-switch a").first
        assert link.get_attribute("href") == "../book/07_scaling.html"
        server.state = "gone"  # as where one is offline
        page.goto(address)
        page.wait_for_function(
            "() => document.querySelector('[data-part=load]').textContent.includes('(it is in')"
        )
        load.click()
        says("Likeliest next")
        page.get_by_role("button", name="Remove the file").click()
        says("is removed")
        page.goto(address)
        load.click()
        says("has no such file")
        context.set_offline(True)
        load.click()
        says("does not answer")
    context.close()


# --- the real one ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_file():
    from attncourse.pretrained.model import NoModel, model_file

    try:
        return model_file(show=False)
    except NoModel as reason:
        pytest.skip(f"no real model: {reason}")


def test_the_real_model_says_what_the_package_says(opened, real_file, real_model):
    model, words = real_model
    reader = load_model_file(opened(moving.real_model()), real_file)
    several = [*TEXTS.values(), "Naïve? 3.14 圓的 🦦", *texts(496, seed=3, special=["<|im_end|>"])]
    for text, ids in zip(several, pieces_of(reader, several), strict=True):
        assert ids == words.encode(text).tolist(), ascii(text)
    with torch.no_grad():
        for text in several[:4]:
            ids = words.encode(text)
            assert ask_worker(reader, "read", ids=ids.tolist(), way=UNCHANGED)["read"] == len(ids)
            last = ask_worker(reader, "logits", ids=ids.tolist(), way=UNCHANGED, last=1)["logits"]
            assert_close(torch.tensor(last[0]), model(ids)[-1], atol=1e-2)
    chat = ask_worker(reader, "encode", text="Why is the sky blue?", chat=True)["ids"]
    assert chat == words.chat("Why is the sky blue?").tolist()


# Of the page's text: a verb, the sentence behind it, and where its numbers stand.
STATED_NUMBERS = {
    "The capital of France is": ("*Paris* 77 %", " Paris", ["p"]),
    "the first 16 at once": ("*otters* falls from 89 to 46 %", " otters", ["before", "p"]),
    "cut the edge to France in all heads": (
        "*Paris* falls from 77 to 0.2 %", " Paris", ["before", "p"]),
    "In head 23.4 alone": ("it falls to 15 %", " Paris", ["p"]),
    "see the 64 products of this score": ("6.46, a weight of 88 %", None, ["score", "weight"]),
    "turn its rotation off": ("5.57, a weight of 79 %", None, ["score", "weight"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def live_page() -> str:
    return " ".join((ROOT / "book" / "real_model.md").read_text(encoding="utf-8").split())


def test_the_verbs_of_the_page_give_its_numbers(opened, real_file, live_page):
    """Each verb gives its numbers whatever was set before."""
    reader = load_model_file(opened(moving.real_model()), real_file)
    for words, (sentence, piece, places) in STATED_NUMBERS.items():
        reader.figure.locator("[data-part=layer]").click()
        ready(reader)
        reader.figure.locator("[data-part=temperature]").fill("0.3")
        reader.button("halves").click()
        ready(reader)
        setting = re.search(r"\{do\}`" + words + r" <real_model: ([^>]+)>`", live_page)
        assert sentence in live_page[setting.end() : setting.end() + 60], words
        steps = [step.strip() for step in setting[1].split(";")]
        assert reader.figure.evaluate("(root, steps) => root.take(steps)", steps) == []
        if piece is None:
            why = reader.figure.evaluate("root => root.why")
            values = {name: why[f"{name}s"][why["chosen"]] for name in places}
        else:
            values = next(word for word in reader.now["next"] if word["text"] == piece)
        faults = compare_prose(sentence, *(values[name] for name in places))
        assert faults == [], words
