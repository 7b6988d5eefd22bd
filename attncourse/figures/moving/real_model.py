"""A real model in the page: the reader's own sentence, all heads, the next word, switches.

Nothing is loaded until the reader asks. The file is that of chapter 18, from beside the book's
pages or from the reader's disk; a worker, made from the script that the page carries, computes with
its blocks as they are. ``real_model_file.js`` reads the file and cuts text into pieces,
``real_model_engine.js`` is the model, ``real_model_worker.js`` answers what ``real_model.js``
asks; ``real_model_address.js`` gives a state an address, and sets the state of an address.
"""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from attncourse.data import kept
from attncourse.figures.moving.controls import button, choice, controls, scrolling, slider_control
from attncourse.figures.moving.figure import Moving, lean
from attncourse.figures.theme import read_asset

WORKER = ("real_model_file", "real_model_engine", "real_model_worker")
FILE, SIZE = (
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
)  # as attncourse.pretrained.model has pinned them
MODEL_FOLDER = "model"  # beside the book's pages
KEPT_HINT = (
    "Below is kept what it makes of one text: press words, choose heads. Loaded, it is yours."
)
WANTED = "Load the model: then it is set as you asked."
MEMORY = "200 to 450"  # megabytes, the file among them, by the length of the text; in Chromium
EXAMPLE_PROMPTS = (
    "My cat is small, cute, and fluffy. She",
    "The capital of France is",
    "The baker opened his shop early in the morning. He put the warm bread",
    "Nine grey otters met. Nine grey",
)
# What each decision is called, the page that takes it, and its options: a label, and what it sets.
# In labels {…} are sizes of the model that is loaded.
DECISIONS = (
    ("Scale", "07_scaling", (
        ("÷\u00a0√{dHead}", {"scale": "root"}), ("none", {"scale": "none"}),
        ("÷\u00a0{dHead}", {"scale": "d_k"}), ("÷\u00a0√{d}", {"scale": "d_model"}))),
    ("Mask", "10_masking", (
        ("causal", {"mask": "causal"}), ("none", {"mask": "none"}),
        ("not itself", {"mask": "strict"}))),
    ("Positions", "11_positions", (
        ("turned", {"positions": "rope"}), ("none", {"positions": "none"}))),
    ("Pairs turned", "11_positions", (
        ("neighbours", {"pairing": "pairs"}), ("halves", {"pairing": "halves"}))),
    ("Base", "11_positions", (
        ("{base}", {"base": 0}), ("10,000", {"base": 10000}), ("100", {"base": 100}))),
    ("Norm", "12_transformer", (
        ("RMS", {"norm": "rms"}), ("mean off, too", {"norm": "mean"}), ("none", {"norm": "none"}))),
    ("Window", "17_efficient", (
        ("all", {"window": 0, "sinks": 0}), ("last 8", {"window": 8, "sinks": 0}),
        ("last 8 and first", {"window": 8, "sinks": 1}), ("last 32", {"window": 32, "sinks": 0}),
        ("last 32 and first", {"window": 32, "sinks": 1}))),
)  # fmt: skip
# What chapter 18 undoes and the page can undo, too: a decision, and an option of it.
UNDONE = {
    "no scale": (0, 1),
    "divided by d_k": (0, 2),
    "divided by √d_model": (0, 3),
    "no causal mask": (1, 1),
    "a token does not see itself": (1, 2),
    "no positions": (2, 1),
    "pairs of another file": (3, 1),
    "base 10,000": (4, 1),
    "the mean taken off too": (5, 1),
    "no norm": (5, 2),
}
SECOND = "The capital of Italy is"
ORDERS = {
    "previous": "the word before",
    "first": "the first word",
    "induction": "what came next last time",
    "layer": "layer and head",
}


def real_model(texts: Sequence[str] = EXAMPLE_PROMPTS, seed: int = 0) -> Moving:
    """Return a model that loads when asked, and everything that can be asked of it.

    texts: to try; what the model makes of the first of ``EXAMPLE_PROMPTS`` is kept, and stands
    there before anything is loaded. seed: of what is drawn. Raises ``ValueError`` without a text.
    """
    texts = list(texts)
    if not texts or any(not isinstance(text, str) or not text.strip() for text in texts):
        raise ValueError(f"texts: expected texts to try, got {texts!r}")
    return Moving(
        "real_model",
        "A real model, live",
        loading(texts[0] == EXAMPLE_PROMPTS[0])
        + '<div class="rm-model" data-part="model" hidden>'
        + f"{real_model_beginnings(texts)}"
        + f'<div class="rm-seen">{real_model_text(texts[0])}{real_model_next()}</div>'
        + f"<div>{real_model_maps()}{decision_switches()}"
        + '<p class="rm-head" data-part="about"></p>'
        + controls(button("forget", "Remove the file from this browser"))
        + '</div><p class="rm-strip" data-part="strip" aria-hidden="true"></p></div>',
        "In a browser that runs scripts, a real model can be loaded here, and asked.",
        {
            "worker": "\n".join(lean(read_asset(f"moving/{name}.js")) for name in WORKER),
            "file": f"{MODEL_FOLDER}/{FILE}",
            "memory": MEMORY,
            "seed": seed,
            "decisions": [
                {"name": name, "page": page, "options": options}
                for name, page, options in DECISIONS
            ],
            "orders": ORDERS,
            "kept": kept_text() if texts[0] == EXAMPLE_PROMPTS[0] else None,
        },
        "",
        before=["score_sum", "line_chart", "real_model_address"],
    )


def live_address(undone: str, text: str) -> str | None:
    """Return the live page with a text and a decision of chapter 18's table undone.

    None without a switch.

    The address leads there from another page of the book.
    """
    if undone not in UNDONE:
        return None
    decision, option = UNDONE[undone]
    return f"real_model.html#set=real_model&text={quote(text)}&switch{decision}={option}"


def kept_text() -> dict:
    """Return what the model makes of the first text: its next word, and where all heads look."""
    sizes = {"layers": 30, "heads": 9, "d": 576, "dHead": 64, "base": 100_000, "vocab": 49_152}
    return kept("one_sentence")["first"] | {"about": sizes}


def loading(shows_kept: bool) -> str:
    """Return the part that stands there before the model is loaded."""
    megabytes = f"{SIZE / 1e6:.0f}&nbsp;MB"
    choose = (
        '<label class="rm-file"><span>or choose the file</span> '
        '<input type="file" data-part="file" accept=".gguf"></label>'
    )
    return (
        '<div data-part="loading">'
        + controls(button("load", f"Load the model ({megabytes}, stays in this browser)"), choose)
        + controls(
            '<progress data-part="progress" max="1" value="0" aria-label="Loaded" hidden>'
            "</progress>",
            button("cancel", "Cancel"),
        )
        + f'<p class="am-controls rm-head" data-part="wanted" hidden>{WANTED}</p>'
        + '<p class="am-controls" data-part="memory"></p>'
        + (f'<p class="am-controls">{KEPT_HINT}</p>' if shows_kept else "")
        + "</div>"
    )


def real_model_beginnings(texts: Sequence[str]) -> str:
    """Return how a text is read, and texts to try: each a button with its first words."""
    tried = "".join(
        f'<button type="button" data-part="example" value="{escape(text)}" '
        f'title="{escape(text)}">{escape(first_words(text))}</button>'
        for text in texts
    )
    return (
        '<div class="am-row rm-begin">'
        + controls(choice("kind", "Read it as", ["plain text", "a question in a chat"], 0))
        + controls("Try:", tried)
        + "</div>"
    )


def first_words(text: str, count: int = 3) -> str:
    """Return the first words of a text, with dots where there are more."""
    words = text.split()
    return " ".join(words[:count]) + (" …" if len(words) > count else "")


def real_model_text(text: str) -> str:
    """Return the reader's text, and its pieces with arcs from the chosen one."""
    return (
        controls(
            '<label class="rm-text"><span data-part="asks">Your text</span>'
            '<textarea data-part="text" rows="2" dir="auto" spellcheck="false" autocomplete="off">'
            f"{escape(text)}</textarea></label>"
        )
        + '<p class="rm-out" data-part="out" dir="auto"></p>'
        + '<p class="rm-head">Pieces, and what the chosen one looks at: press a piece, or an arc'
        "</p>"
        '<div class="rm-words" data-part="words" role="group" aria-label="Pieces"></div>'
    )


def real_model_next() -> str:
    """Return the place for the next word, and what writes it."""
    return (
        '<div class="rm-next" data-part="bars"></div>'
        + controls(
            button("next", "Next word"),
            button("on", "Write on"),
            button("anew", "Take all back"),
        )
        + controls(
            slider_control("temperature", "Temperature", 0, 2, 1, 0.1),
            slider_control("topp", "Top-p", 0.05, 1, 1, 0.05),
        )
    )


def real_model_maps() -> str:
    """Return controls: which head is looked at, what is switched off, what each layer would say."""
    sorts = "".join(f'<option value="{key}">{words}</option>' for key, words in ORDERS.items())
    return (
        '<p class="rm-head">Heads</p>'
        + controls(
            f'<label>order heads by <select data-part="order">{sorts}</select></label>',
            button("sort", "Sort anew"),
        )
        + controls(
            '<label>from <span data-part="asker"></span> to <select data-part="key"></select>'
            "</label>",
            button("find", "Which heads look there?"),
        )
        + controls(
            '<label class="am-slider"><span data-part="name">head</span><input type="range" '
            'data-part="rank" min="1" max="1" step="1" value="1" '
            'aria-label="Which head, by its place in this order" autocomplete="off"></label>',
        )
        + '<div class="rm-field" data-part="field" role="img" aria-label="All maps, the first in '
        'this order at the top left"></div>'
        + controls(button("head", "Head off"), button("layer", "Layer off"))
        + controls(
            '<span>The edge <span data-part="edge"></span>:</span>',
            button("cut", "cut in this head", False),
            button("cutall", "cut in all heads", False),
            button("why", "Why this score?", False),
        )
        + '<div data-part="because" hidden><p class="rm-head" data-part="pair"></p>'
        + controls(button("turned", "Rotation", True))
        + '<div class="ss-box" data-part="sum" role="group" aria-label="Why this score"></div>'
        '<p data-part="both"></p></div>'
        + '<div class="am-row am-controls" data-part="changed"></div><div class="rm-first">'
        + controls(slider_control("first", "first heads of this order off", 0, 64, 0))
        + "</div>"
        + controls(button("curve", "Against ten orders by lot"))
        + '<div data-part="curves"></div>'
        + two_texts()
        + '<details class="am-controls" data-part="lens"><summary>What each layer would say '
        "(logit lens)</summary><p>A column is a piece, and a row says what the last norm and the "
        "table would make of its vector after that layer. In the first row it is the piece’s own "
        "vector: nothing is predicted there yet.</p>" + scrolling("", "Logit lens") + "</details>"
    )


def two_texts() -> str:
    """Return a second text, and which of its vectors is carried where."""
    return (
        '<details class="am-controls" data-part="two"><summary>A second text: carry a vector over'
        "</summary>"
        + controls(
            '<label class="rm-text"><span>The second text</span><input type="text" '
            f'data-part="other" dir="auto" spellcheck="false" autocomplete="off" value="{SECOND}">'
            "</label>"
        )
        + controls(
            '<label>its vector at <select data-part="from"></select></label>',
            '<label>goes to <select data-part="to"></select></label>',
            button("carry", "After each layer in turn"),
        )
        + '<div data-part="carried"></div></details>'
    )


def decision_switches() -> str:
    """Return the book's decisions, each with the option that was taken and the others."""
    rows = "".join(
        '<div class="rm-switch">'
        + choice(f"switch{i}", name, [escape(label) for label, _ in options], 0).replace(
            "</span>", f' <a data-page="{page}" hidden>chapter&nbsp;{int(page[:2])}</a></span>', 1
        )
        + "</div>"
        for i, (name, page, options) in enumerate(DECISIONS)
    )
    return (
        '<p class="rm-head">The decisions of this book</p>'
        f'<div class="am-controls">{rows}</div>'
        + controls(button("each", "Undo each in turn"), button("back", "Put everything back"))
        + '<div data-part="tried"></div>'
    )
