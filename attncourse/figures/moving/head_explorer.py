"""Chapter 19: the maps of all heads of a real model, to sort and to look at one by one."""

from collections.abc import Sequence
from html import escape

from attncourse.figures.moving.controls import controls
from attncourse.figures.moving.figure import Moving

SCRIPT = "real_heads.js"  # in the book's static folder: the other sentences, loaded when seen
ORDERS = {
    "pronoun": "the pronoun’s noun",
    "previous": "the word before",
    "first": "the first token",
    "induction": "what came next last time",
    "layer": "layer and head",
}


def head_explorer(
    sentence: dict,
    layers: int,
    heads: int,
    sentences: Sequence[str] = (),
    order: str = "pronoun",
    query: int | None = None,
) -> Moving:
    """Return a sentence, all heads' maps as a field, and one head's weights as arcs over the words.

    sentence: as ``explored`` gives it: ``tokens``, ``maps`` (lower triangles, a byte for each
    weight, base 64) and ``pair``, where pronoun and noun stand, or None. sentences: the texts that
    the book's script holds, of which this is the first; without the script only it can be read.
    order: by what the field is sorted. query: the token whose weights are shown, the pronoun unless
    given.

    Raises ``ValueError`` for maps of another size, another order, and a query that is not there.
    """
    from base64 import b64decode

    tokens, n = list(sentence["tokens"]), len(sentence["tokens"])
    pair, held = sentence["pair"], b64decode(sentence["maps"])
    if len(held) != layers * heads * n * (n + 1) // 2:
        raise ValueError(
            f"maps: expected a byte for each of {layers} · {heads} · {n} · {n + 1} / 2 weights, "
            f"got {len(held)}"
        )
    if order not in ORDERS or (order == "pronoun" and not pair):
        raise ValueError(f"order: expected one of {', '.join(ORDERS)}, got {order!r}")
    query = (pair[0] if pair else n - 1) if query is None else query
    if not 0 <= query < n:
        raise ValueError(f"query: expected a token from 0 to {n - 1}, got {query}")
    first = best_for_pair(held, n, pair) if pair else 0
    return Moving(
        "head_explorer",
        f"{layers * heads} heads of a real model",
        controls(sentence_choice(sentences))
        + '<div class="he-words" data-part="words">'
        + f"{shade_sentence(held, n, first, query, tokens)}</div>"
        + controls(order_choice(order), head_slider(layers * heads))
        + '<div class="he-field" data-part="field" role="img" aria-label="All maps, the first in '
        'this order at the top left"></div>',
        "In a browser that runs scripts, any head can be chosen, and any word of the sentence.",
        {
            "layers": layers,
            "heads": heads,
            "one": {"tokens": tokens, "pair": pair, "maps": sentence["maps"]},
            "order": order,
            "query": query,
            "script": SCRIPT,
        },
        f"Head {first // heads}.{first % heads}: the stronger a word’s ground, the more "
        f"“{tokens[query].strip()}” looks at it.",
    )


def sentence_choice(sentences: Sequence[str]) -> str:
    """Return the control that chooses a sentence."""
    options = "".join(
        f'<option value="{i}">{escape(text)}</option>' for i, text in enumerate(sentences)
    )
    return f'<select data-part="sentence" aria-label="Sentence">{options}</select>'


def order_choice(order: str) -> str:
    """Return the control that chooses by what the field is sorted."""
    options = "".join(
        f'<option value="{key}"{" selected" if key == order else ""}>{escape(words)}</option>'
        for key, words in ORDERS.items()
    )
    return f'<label>sorted by <select data-part="order">{options}</select></label>'


def head_slider(n_heads: int) -> str:
    """Return the slider over all heads, in the order that the field is sorted by."""
    return (
        '<label class="am-slider"><span data-part="name">head</span><input type="range" '
        f'data-part="rank" min="1" max="{n_heads}" step="1" value="1" '
        'aria-label="Which head, by its place in this order" autocomplete="off"></label>'
    )


def kept_map_row(held: bytes, n: int, head: int, query: int) -> list[float]:
    """Return a row of one head's map, as it is kept."""
    start = head * (n * (n + 1) // 2) + query * (query + 1) // 2
    return [step / 255 for step in held[start : start + query + 1]]


def best_for_pair(held: bytes, n: int, pair: Sequence[int]) -> int:
    """Return the head that looks most from the pronoun to its noun."""
    count = len(held) // (n * (n + 1) // 2)
    return max(range(count), key=lambda head: kept_map_row(held, n, head, pair[0])[pair[1]])


def shade_sentence(held: bytes, n: int, head: int, query: int, tokens: Sequence[str]) -> str:
    """Return the sentence, each word on a ground as strong as its weight."""
    row = kept_map_row(held, n, head, query) + [0.0] * n
    marks = [" class=am-query" if i == query else "" for i in range(len(tokens))]
    return "".join(
        f'<span{marks[i]} style="background:color-mix(in srgb,var(--key) '
        f'{row[i] * 60:.0f}%,transparent)">{escape(token)}</span>'
        for i, token in enumerate(tokens)
    )
