"""Chapter 18: the block of chapter 12 becomes today's, part by part, and what each part costs."""

from collections.abc import Mapping
from html import escape

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import beside_controls, button, controls, live, picture_row
from attncourse.figures.moving.figure import Moving

PART_LABELS = {  # what a button changes, and its label
    "turned": "turned positions",
    "rms": "RMS norm",
    "shared": "shared key/value heads",
    "gated": "gated layer",
    "bare": "no biases",
}
PLAIN = ("up, GELU, down", "silu(gate) · up, then down")
NORM = ("layer norm: mean taken off, gain, bias", "RMS norm: gain")


def block_labels(sizes: Mapping[str, int]) -> tuple[tuple[str, int, str, str], ...]:
    """Return each label's part, where it stands, and what it says before and after."""
    h, h_kv = sizes["n_heads"], sizes["n_kv_heads"]
    return (
        ("turned", 39, "plus a vector for each position", "nothing is added"),
        ("rms", 78, *NORM),
        (
            "shared",
            134,
            f"{h} heads of keys and values for {h}",
            f"{h_kv} of keys and values for {h}",
        ),
        ("turned", 150, "", "queries and keys are turned"),
        ("rms", 208, *NORM),
        ("gated", 268, *PLAIN),
        ("bare", 318, "every layer has a bias", "no layer has a bias"),
    )


SIZES = ("d_model", "n_heads", "n_kv_heads", "n_layers", "d_ff", "n_vocab", "max_length")
STREAM, LEFT, WIDE = 26, 58, 274


def block_today(sizes: Mapping[str, int]) -> Moving:
    """Return a block to change, part by part, from chapter 12's to today's, its numbers counted.

    sizes: ``d_model``, ``n_heads``, ``n_kv_heads``, ``n_layers``, ``d_ff`` (of the gated layer; the
    plain one has 4·d_model), ``n_vocab`` and ``max_length`` (of the table of positions).

    Raises ``ValueError`` where one is missing, no whole number above 0, or heads do not divide.
    """
    for name in SIZES:
        value = sizes.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"sizes: expected {name}, a whole number above 0, got {value!r}")
    if sizes["d_model"] % sizes["n_heads"] or sizes["n_heads"] % sizes["n_kv_heads"]:
        raise ValueError(f"sizes: expected heads that divide, got {dict(sizes)}")
    now = counted({name: sizes[name] for name in SIZES})
    return Moving(
        "block_today",
        "From chapter 12's block to today’s",
        controls(*(button(f"part-{name}", words, False) for name, words in PART_LABELS.items()))
        + beside_controls(
            picture_row(today_block_diagram(sizes)),
            f'<table data-part="numbers">{parameter_table(now)}</table>',
        ),
        "In a browser that runs scripts, buttons change one part after the other.",
        {
            "sizes": {name: sizes[name] for name in SIZES},
            "labels": [
                [name, y, [block_label(y, words) for words in both]]
                for name, y, *both in block_labels(sizes)
            ],
        },
        "As in chapters 12 and 13. Change a part and look at its numbers.",
    )


def counted(
    sizes: Mapping[str, int], *, turned=False, rms=False, shared=False, gated=False, bare=False
) -> dict[str, int]:
    """Return how many numbers attention, feed-forward layer, norms, tables and all have."""
    d, layers = sizes["d_model"], sizes["n_layers"]
    d_kv = d // sizes["n_heads"] * sizes["n_kv_heads"] if shared else d
    d_ff = sizes["d_ff"] if gated else 4 * d
    attention = 2 * d * d + 2 * d * d_kv + (0 if bare else 2 * d + 2 * d_kv)
    inner = 2 if gated else 1
    feed = (inner + 1) * d * d_ff + (0 if bare else inner * d_ff + d)
    norm = d if rms else 2 * d
    tables = sizes["n_vocab"] * d + (0 if turned else sizes["max_length"] * d)
    return {
        "attention": attention,
        "feed-forward": feed,
        "norms": 2 * norm,
        "tables": tables,
        "all": layers * (attention + feed + 2 * norm) + norm + tables,
    }


def parameter_table(now: Mapping[str, int]) -> str:
    """Return the numbers, one a row."""
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{number:,}</td></tr>' for name, number in now.items()
    )
    return f"<tbody>{rows}</tbody>"


def today_block_diagram(sizes: Mapping[str, int]) -> Diagram:
    """Return the stream on the left, two branches on the right.

    Labels that change are the script's.
    """
    picture = Diagram(
        "The block",
        "A stream runs down. A branch leaves it through a norm and attention and is added again; a "
        "second one through a norm and the feed-forward layer.",
        width=340,
        height=330,
    )
    picture.box(LEFT, 4, "token vectors", width=WIDE, height=40)
    picture.arrow((LEFT, 24), (STREAM, 24))
    tops = (60, 190)
    for top, name in zip(tops, ("attention", "feed-forward layer"), strict=True):
        norm = picture.box(LEFT, top, " ", width=WIDE, height=26)
        branch = picture.box(LEFT, top + 40, name, width=WIDE, height=54)
        picture.arrow((STREAM, top + 13), norm)
        picture.arrow(norm, branch)
        picture.arrow((LEFT, top + 80), (STREAM + 12, top + 110))
    picture.arrow((STREAM, 24), (STREAM, 322), thick=3)
    for top in tops:
        picture.dot(STREAM, top + 110, radius=9, hollow=True)
        picture.path(f"M{STREAM - 5},{top + 110}h10m-5,-5v10")
    for name, y, words, _ in block_labels(sizes):
        live(picture, f"label-{name}-{y}", block_label(y, words))
    return picture


def block_label(y: int, words: str) -> str:
    """Return the SVG of a line of text in the middle of the block, at a height."""
    middle = LEFT + WIDE / 2
    return (
        f'<text x="{middle:g}" y="{y}" text-anchor="middle" style="font-size:13px">'
        f"{escape(words)}</text>"
    )
