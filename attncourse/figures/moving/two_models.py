"""Chapter 21: two of twelve models, what differs in their blocks, and what a token costs."""

from collections.abc import Mapping
from html import escape
from typing import Any

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import beside_controls, controls, live, picture_row
from attncourse.figures.moving.figure import Moving
from attncourse.today import cache_bytes_of

LENGTHS = (1024, 32_768, 131_072)
COMPARED_PARTS = (
    "norms",
    "queries",
    "keys, values",
    "norm of q, k",
    "positions",
    "softmax",
    "gate",
    "next part",
)
COLOUR_OF_MEMORY = {"full": "ink", "window": "query", "latent": "key", "state": "value"}
KIND_WORDS = {"full": "sees all", "window": "window", "latent": "latent", "state": "memory"}
STRIP, STRIP_TOPS, TOP, ROW = (56, 280), (2, 22), 44, 31  # left and width of a strip; of the rows


def part_words(model: Mapping[str, Any]) -> list[str]:
    """Return what a model has in each part of a block, in the order of COMPARED_PARTS."""
    kinds, cap = model["layers"], model.get("cap")
    caches = []
    if "latent" in kinds:
        caches.append(f"latent of {model['d_latent']}, and {model['d_turned']} apart")
    if "full" in kinds or "window" in kinds:
        caches.append(f"{model['n_kv_heads']} heads of {model['d_head']}")
    if "state" in kinds:
        caches.append("or a memory")
    softmax = "plain"
    if model["sink"]:
        softmax = "with a sink"
    elif cap:
        softmax = f"scores capped at {cap:g}"
    elif model.get("top_k"):
        softmax = f"over {model['top_k']:,} chosen keys"
    experts = model["experts"]
    then = "feed-forward layer"
    if experts:
        always = f"{experts[2]} and " if experts[2] else ""
        then = f"{always}{experts[1]} chosen of {experts[0] + experts[2]} experts"
    gate = "on the output" if "full" in kinds else "on memories"
    base = f", base {model['base']:,}" if model["base"] else ""
    return [
        model["norms"].removesuffix(", and on the latent"),
        f"{model['n_heads']} heads of {model['d_head']}",
        ", ".join(caches).replace(", or", " or"),
        (model["qk_norm"] or "none").split(",")[0],
        model["short_positions"] + base,
        softmax,
        gate if model["gate"] else "none",
        then,
    ]


def token_cost(model: Mapping[str, Any], n_tokens: int) -> dict[str, float]:
    """Return the bytes of cache a token of a text, and the operations for one more token.

    Two bytes a number, an indexer's keys counted. Operations: two for each weight that works on a
    token, and those of attention to the tokens before it: 4 for each feature of a head and key,
    with latents compared and mixed as they are; 7 for each number of a memory, which fades, is
    read, corrected and asked.
    """
    kinds, latents = model["layers"], model["layers"].count("latent")
    index = latents * model.get("d_index", 0)
    operations = 2e9 * model["active"]
    operations += 7 * kinds.count("state") * model.get("d_state", 0)
    for kind in ("full", "window"):
        seen = (
            min(n_tokens, model["window"]) if kind == "window" and "window" in model else n_tokens
        )
        operations += 4 * kinds.count(kind) * seen * model["n_heads"] * model["d_head"]
    if latents:
        seen = min(n_tokens, model.get("top_k", n_tokens))
        width = 2 * model["d_latent"] + model["d_turned"]
        operations += 2 * latents * seen * model["n_heads"] * width
        operations += 2 * index * n_tokens * model.get("n_index_heads", 0)
    return {
        "bytes": cache_bytes_of(model, n_tokens) / n_tokens + 2 * index,
        "operations": operations,
    }


def two_models(
    models: Mapping[str, Mapping[str, Any]],
    first: str = "Llama 3.1 8B",
    second: str = "DeepSeek-V3",
) -> Moving:
    """Return two models chosen from a table: layers, a block's parts, differences, cost.

    models: rows as ``attncourse.today.MODELS`` has them, by name. first, second: what is shown at
    the start. Raises ``ValueError`` for a name that is not in the table.
    """
    for name in (first, second):
        if name not in models:
            raise ValueError(f"expected one of {', '.join(models)}, got {name!r}")
    shown = [models[first], models[second]]
    rows = {
        name: {
            **{key: model[key] for key in SENT if key in model and model[key] is not None},
            "words": part_words(model),
        }
        for name, model in models.items()
    }
    return Moving(
        "two_models",
        "Two models, and what differs",
        controls(model_choice("first", models, first), model_choice("second", models, second))
        + beside_controls(
            picture_row(block_rows(shown)),
            legend_of_layers(),
            f'<table data-part="costs">{cost_table(shown)}</table>',
        ),
        "In a browser that runs scripts, one chooses any two of twelve models.",
        {"models": rows, "lengths": list(LENGTHS), "roles": COLOUR_OF_MEMORY},
        difference_sentence(shown),
    )


SENT = (
    "year", "layers", "active", "n_heads", "n_kv_heads", "d_head", "window", "d_latent", "d_turned",
    "d_state", "d_index", "n_index_heads", "top_k",
)  # fmt: skip


def model_choice(name: str, models: Mapping[str, Mapping[str, Any]], chosen: str) -> str:
    """Return a list to choose a model from."""
    options = "".join(
        f"<option{' selected' if option == chosen else ''}>{escape(option)}</option>"
        for option in models
    )
    return (
        f'<label class="tm-choice"><span>{name}</span>'
        f'<select data-part="{name}" autocomplete="off">{options}</select></label>'
    )


def block_rows(shown: list[Mapping[str, Any]]) -> Diagram:
    """Draw both models' layers as strips, then a block's parts, with both models' words."""
    picture = Diagram(
        "A block of each",
        "Two strips with a cell for each layer; below them eight parts of a block in the order in "
        "which a token passes them, each with what the first and the second model have there. "
        "Parts in which they differ are outlined.",
        width=340,
        height=TOP + ROW * len(COMPARED_PARTS) + 2,
    )
    for y, name in zip(STRIP_TOPS, ("first", "second"), strict=True):
        picture.text(4, y + 13, name, size=13, anchor="start")
    live(picture, "words", word_lines([part_words(model) for model in shown]))
    for i, part in enumerate(COMPARED_PARTS):
        picture.box(4, TOP + ROW * i + 1, part, width=104, height=26)
    live(picture, "strips", layer_strips(shown))
    return picture


def layer_strips(shown: list[Mapping[str, Any]]) -> str:
    """Return a cell for each layer of both models, coloured by its kind; a memory's is low."""
    parts = []
    left, wide = STRIP
    for top, model in zip(STRIP_TOPS, shown, strict=True):
        step = wide / len(model["layers"])
        for i, kind in enumerate(model["layers"]):
            low = 8 if kind in ("window", "state") else 0
            parts.append(
                f'<rect x="{left + i * step:.2f}" y="{top + low}" width="{step - 1:.2f}" '
                f'height="{16 - low}" style="fill:var(--{COLOUR_OF_MEMORY[kind]})"/>'
            )
    return "".join(parts)


def word_lines(words: list[list[str]]) -> str:
    """Return the words of both models beside each part, and a frame where they differ."""
    parts = []
    for i, (first, second) in enumerate(zip(*words, strict=True)):
        y = TOP + ROW * i
        if first == second:
            parts.append(f'<text x="116" y="{y + 18}">{escape(first)}</text>')
            continue
        parts.append(f'<rect class="tm-lit" x="2" y="{y - 1}" width="336" height="30" rx="6"/>')
        parts.append(f'<text x="116" y="{y + 12}">{escape(first)}</text>')
        parts.append(f'<text x="116" y="{y + 25}">{escape(second)}</text>')
    return "".join(parts)


def legend_of_layers() -> str:
    """Return what the colours of the layers mean, as a legend."""
    squares = "".join(
        f'<span><i style="--here:var(--{COLOUR_OF_MEMORY[kind]})"></i>{words}</span>'
        for kind, words in KIND_WORDS.items()
    )
    return f'<p class="tm-legend">{squares}</p>'


def two_digits(number: float) -> str:
    """Return a number with about two digits, as the script writes it."""
    if number >= 9.95:
        return f"{int(number + 0.5):,}"
    return f"{number:.1f}" if number >= 0.995 else f"{number:.2f}"


def cost_table(shown: list[Mapping[str, Any]]) -> str:
    """Return kilobytes of cache a token, and 10⁹ operations, at three lengths, of both models."""
    lengths = "".join(f'<th scope="col">{n // 1024}k</th>' for n in LENGTHS)
    rows = [
        '<thead><tr><td></td><th colspan="3">kB a token</th>'
        f'<th colspan="3">10⁹ operations</th></tr><tr><td></td>{2 * lengths}</tr></thead><tbody>'
    ]
    for name, model in zip(("first", "second"), shown, strict=True):
        costs = [token_cost(model, n) for n in LENGTHS]
        numbers = [cost["bytes"] / 1e3 for cost in costs]
        numbers += [cost["operations"] / 1e9 for cost in costs]
        cells = "".join(f"<td>{two_digits(number)}</td>" for number in numbers)
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    return "".join(rows) + "</tbody>"


def difference_sentence(shown: list[Mapping[str, Any]]) -> str:
    """Return what the figure says of two models."""
    first, second = shown
    differ = sum(a != b for a, b in zip(part_words(first), part_words(second), strict=True))
    whole = [token_cost(model, LENGTHS[-1])["bytes"] * LENGTHS[-1] / 1e9 for model in shown]
    return (
        f"They differ in {differ} of {len(COMPARED_PARTS)} parts. {LENGTHS[-1]:,} tokens take "
        f"{two_digits(whole[0])} and {two_digits(whole[1])} GB."
    )
