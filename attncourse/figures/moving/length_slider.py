"""Chapter 17: what attention takes at a length that the reader chooses."""

from math import log2, log10

from attncourse.figures.moving.controls import controls, drag_hint, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import require_count

LOW, HIGH = 9, 17  # lengths are powers of 2: 512 to 131,072 tokens
SIDE = 150  # of the square at the greatest length, in pixels
D_HEAD, WINDOW, TILE = 64, 129, 512
CACHE = {"n_layers": 32, "n_kv_heads": 8, "d_head": 128}  # Llama 3 8B, at 2 bytes a number
LEAST, MOST = 1e5, 1e11  # bytes: the two ends of the bars' logarithmic axis
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
ROWS = {
    "map": "all scores of one head",
    "window": f"a window of {WINDOW} tokens",
    "cache": "keys and values, Llama 3 8B",
    "tile": f"one tile of {TILE} × {TILE}",
}


def length_slider(n: int = 2**HIGH) -> Moving:
    """Return a square of n × n scores, to scale, and the bytes of four things to hold, by n.

    n: tokens at first, a power of 2 from 512 to 131,072. The bars are logarithmic. Raises
    ``ValueError`` for another n.
    """
    require_count("n", n)
    if n not in [2**e for e in range(LOW, HIGH + 1)]:
        raise ValueError(f"n: expected a power of 2 from {2**LOW} to {2**HIGH}, got {n}")
    counts = count_bytes_and_operations(n)
    return Moving(
        "length_slider",
        "How long a text, and what has to be held?",
        controls(slider_control("length", "tokens", LOW, HIGH, log2(n)))
        + f'<div class="ls-parts"><div class="ls-map">{score_square(n)}<p>All scores of one head, '
        f"to scale: half the tokens, a quarter of the square. "
        f"{drag_hint('Drag its corner.')}</p></div>"
        f"<div>{memory_bars(counts)}<p>Each step of the axis is a thousand times as much.</p>"
        "</div></div>",
        "In a browser that runs scripts, a slider changes the length from 512 to 131,072 tokens.",
        {"side": SIDE, "high": HIGH, "d_head": D_HEAD, "window": WINDOW, "tile": TILE}
        | {"cache": CACHE, "least": LEAST, "most": MOST},
        f"{n:,} tokens: {n * n:,} scores, {size_in_words(counts['map'])} for one head of one "
        "layer, and "
        f"{power(counts['operations'])} operations.",
    )


def count_bytes_and_operations(n: int) -> dict[str, int]:
    """Return bytes of each thing at n tokens, in float32 but for the cache, and operations."""
    return {
        "map": 4 * n * n,
        "window": 4 * n * WINDOW,
        "cache": 2 * 2 * n * CACHE["n_layers"] * CACHE["n_kv_heads"] * CACHE["d_head"],
        "tile": 4 * TILE * TILE,
        "operations": 4 * n * n * D_HEAD,
    }


def power(number: float) -> str:
    """Return a number with two figures and a power of ten."""
    digits, exponent = f"{number:.1e}".split("e+")
    return f"{digits}\u00a0·\u00a010" + str(int(exponent)).translate(
        str.maketrans("0123456789", RAISED)
    )


def size_in_words(amount: float) -> str:
    """Return bytes with two figures and a unit."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= unit:
            number = amount / unit
            return f"{number:.0f} {name}" if number >= 9.95 else f"{number:.1f} {name}"
    return f"{amount:.0f} bytes"


def score_square(n: int) -> str:
    """Return the n × n scores, to scale, and the square of the greatest length around them."""
    long = max(SIDE * n / 2**HIGH, 1)
    return (
        f'<svg viewBox="0 0 {SIDE + 4} {SIDE + 4}" role="img" aria-label="A square whose side is '
        f'the number of tokens"><rect class="ls-most" x="2" y="2" width="{SIDE}" height="{SIDE}"/>'
        f'<rect data-part="square" x="2" y="2" width="{long:g}" height="{long:g}"/></svg>'
    )


def memory_bars(counts: dict[str, int]) -> str:
    """Return a line for each thing that is held, on a logarithmic axis."""
    lines = "".join(
        f'<tr><th scope="row">{label}</th>'
        f'<td data-part="{name}">{size_in_words(counts[name])}</td></tr>'
        f'<tr><td colspan="2"><i style="width:{axis_share(counts[name]):.1f}%"></i></td></tr>'
        for name, label in ROWS.items()
    )
    marks = "".join(
        f'<span style="left:{axis_share(at):.1f}%">{name}</span>'
        for at, name in ((1e6, "1 MB"), (1e9, "1 GB"))
    )
    return f'<table>{lines}<tr><td colspan="2"><div class="ls-axis">{marks}</div></td></tr></table>'


def axis_share(amount: float) -> float:
    """Return where an amount stands on the axis, in percent of its length."""
    return 100 * log10(max(amount, LEAST) / LEAST) / log10(MOST / LEAST)
