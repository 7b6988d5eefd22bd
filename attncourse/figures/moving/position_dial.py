"""Chapter 11: the hands that tell a position, and queries and keys that turn with theirs."""

import numpy as np

from attncourse.figures.diagram import Diagram
from attncourse.figures.moving.controls import (
    beside_controls,
    button,
    choice,
    controls,
    live,
    picture_row,
    signed,
    slider_control,
    svg_arrow,
)
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import as_floats, require_finite

HANDS = 4  # as many clocks as a phone has room for
LAST_POSITION = 60  # the last position of the sliders
SIZE = 84  # of the longer of q and k, in pixels
UNIT, HIGH, MIDDLE = 2.5, 75, 118  # the curve: a position, the highest score, and where 0 is


def position_dial(
    q=(0.6, 0.9),
    k=(0.9, 0.35),
    s: int = 12,
    t: int = 5,
    base: float = 10000.0,
    brief: bool = False,
) -> Moving:
    """Return hands of the sinusoidal encoding at position s, and a query and a key that turn.

    q, k: ``(2,)``, one pair of features each, of lengths between 0.01 and 100. s, t: the first
    positions of the query and of the key, 0 to 60. base: of the frequencies ``base**(−2i / 8)`` of
    the four hands, radians per position. A reader moves s and t and chooses the frequency by which
    q and k turn; their angle and their score depend on s − t alone, and the curve shows that score.
    brief: the two arrows alone, without hands and curve.

    Raises ``ValueError`` for other vectors, positions or bases.
    """
    pair = require_pair(q, k)
    if not all(isinstance(at, int) and 0 <= at <= LAST_POSITION for at in (s, t)):
        raise ValueError(
            f"s and t: expected whole numbers from 0 to {LAST_POSITION}, got {s!r} and {t!r}"
        )
    if not 1 <= base <= 1e9:
        raise ValueError(f"base: expected a number from 1 to 1e9, got {base!r}")
    pace = base ** (-2 * np.arange(HANDS) / (2 * HANDS))  # (4,) radians per position
    names = [f"{x:.3g}" for x in pace]
    chosen = 1
    (score,) = distance_scores(pair, [s - t], pace[chosen])
    moved = dial_controls(s, t, names, chosen)
    pair_drawn = dial_arrows(pair, s, t, pace[chosen])
    if brief:
        body = beside_controls(picture_row(pair_drawn), *moved)
    else:
        body = beside_controls(
            picture_row(frequency_clocks(s, pace, names, chosen)), *moved
        ) + picture_row(pair_drawn, curve(pair, s - t, pace[chosen]))
    return Moving(
        "position_dial",
        "Positions turn",
        body,
        "In a browser that runs scripts, two sliders move the query and the key to other "
        "positions, and buttons choose how fast they turn.",
        {
            "q": pair[0].tolist(),
            "k": pair[1].tolist(),
            "base": base,
            "hands": HANDS,
            "last": LAST_POSITION,
        }
        | {"chosen": chosen, "names": names, "size": SIZE, "unit": UNIT, "high": HIGH}
        | {"middle": MIDDLE, "brief": brief},
        f"Query at {s}, key at {t}: distance s − t = {s - t}, score {signed(score, 3)}.",
    )


def dial_controls(s: int, t: int, names: list[str], chosen: int) -> list[str]:
    """Return the controls: the positions of query and key, and how fast both turn."""
    return [
        controls(
            "Turn an arrow, or:",
            slider_control("s", '<span class="am-query">query</span> at s', 0, LAST_POSITION, s),
            slider_control("t", '<span class="am-key">key</span> at t', 0, LAST_POSITION, t),
            button("back", "Both back by 1"),
            button("on", "Both on by 1"),
        ),
        controls(choice("pace", "turn by ω =", names, chosen)),
    ]


def require_pair(q, k) -> np.ndarray:
    """Return the query and the key, ``(2, 2)``; others than the dial can draw raise ValueError."""
    pair = as_floats("q and k", [q, k], "two two").astype(float)
    require_finite(q_and_k=pair)
    lengths = np.linalg.norm(pair, axis=1)
    if pair.shape != (2, 2) or lengths.min() < 0.01 or lengths.max() > 100:
        raise ValueError(
            f"q and k: expected two numbers each, of lengths 0.01 to 100, got {q!r} and {k!r}"
        )
    return pair


def rotate_pair(vector: np.ndarray, angle: float) -> np.ndarray:
    """Return a pair of features turned by an angle, as RoPE turns it."""
    (x, y), cos, sin = vector, np.cos(angle), np.sin(angle)
    return np.array([x * cos - y * sin, x * sin + y * cos])


def distance_scores(pair: np.ndarray, distances, pace: float) -> list[float]:
    """Return the score of q and k at distances s − t, turning by ``pace`` at each position."""
    return [float(rotate_pair(pair[0], at * pace) @ pair[1]) for at in distances]


def frequency_clocks(s: int, pace: np.ndarray, names: list[str], chosen: int) -> Diagram:
    """Draw a clock for each frequency: a hand that points at (sin, cos), up at position 0."""
    picture = Diagram(
        "Four clocks",
        "Four clocks, each with a hand that turns with the position, the first fastest.",
        height=154,
    )
    picture.text(170, 15, "PE(s): a hand for each frequency ω", bold=True)
    for i, name in enumerate(names):
        x, angle = 44 + 84 * i, s * pace[i]
        look = "am-clock am-turns" if i == chosen else "am-clock"
        picture.parts.append(
            f'<circle data-part="clock-{i}" cx="{x}" cy="56" r="32" '
            f'class="{look}"/><path data-part="hand-{i}" style="stroke-width:3" '
            f'd="M{x},56l{28 * np.sin(angle):.2f},{-28 * np.cos(angle):.2f}"/>'
        )
        picture.text(x, 107, f"ω = {name}")
        for row, (what, of) in enumerate((("sin", np.sin), ("cos", np.cos))):
            live(picture, f"{what}-{i}", f'<text x="{x}" y="{127 + 18 * row}" '
                 f'text-anchor="middle">{what} {signed(of(angle), 2)}</text>')  # fmt: skip
    return picture


def dial_arrows(pair: np.ndarray, s: int, t: int, pace: float) -> Diagram:
    """Return the query and the key, turned by their positions, and faintly as they were."""
    picture = Diagram(
        "A query and a key that turn",
        "Two arrows from the middle of a circle: the query, turned by s times ω, and the key, "
        "turned by t times ω. Dashed lines show them unturned.",
        height=230,
    )
    size = SIZE / np.linalg.norm(pair, axis=1).max()
    picture.text(170, 15, "q and k, turned by s ω and t ω", bold=True)
    picture.parts.append(f'<circle cx="170" cy="124" r="{SIZE}" class="ad-thin"/>')
    for vector, role, name, at in zip(pair, ("query", "key"), "qk", (s, t), strict=True):
        x, y = vector * size
        picture.path(f"M170,124l{x:.1f},{-y:.1f}", role, thick=1, dashed=True)
        x, y = rotate_pair(vector, at * pace) * size
        far = 1 + 13 / np.hypot(x, y)
        live(
            picture,
            name,
            svg_arrow(170, 124, 170 + x, 124 - y, role, 3) + arrow_label(x, y, far, role),
        )
    live(picture, "arc", angle_arc(rotate_pair(pair[0], s * pace), rotate_pair(pair[1], t * pace)))
    picture.parts.append(f'<circle cx="170" cy="124" r="{SIZE + 20}" class="pd-disc"/>')
    return picture


def angle_arc(query: np.ndarray, key: np.ndarray) -> str:
    """Return the angle from the key to the query, which the distance s − t alone decides."""
    (a, b), (c, d) = (30 * vector / np.linalg.norm(vector) for vector in (key, query))
    wide = int(a * d - b * c < 0)  # more than half a turn, anticlockwise
    way = f"M{170 + a:.1f},{124 - b:.1f}A30,30 0 {wide} 0 {170 + c:.1f},{124 - d:.1f}"
    return f'<path style="stroke:var(--quiet)" d="{way}"/>'


def arrow_label(x: float, y: float, far: float, role: str) -> str:
    """Return the name of an arrow, a little beyond its tip."""
    return (
        f'<text x="{170 + x * far:.1f}" y="{129 - y * far:.1f}" text-anchor="middle" '
        f'style="fill:var(--{role})">{role[0]}</text>'
    )


def curve(pair: np.ndarray, distance: int, pace: float) -> Diagram:
    """Return the score against the distance s − t, with a dot where the sliders are."""
    picture = Diagram(
        "Score against distance",
        f"A wave: the score of q and k for distances s − t from −{LAST_POSITION} to {LAST_POSITION}"
        ", with a dot at the distance that the sliders give.",
        height=230,
    )
    unit = HIGH / np.linalg.norm(pair, axis=1).prod()
    places = np.arange(-LAST_POSITION, LAST_POSITION + 0.25, 0.5)
    heights = MIDDLE - unit * np.array(distance_scores(pair, places, pace))
    line = "L".join(f"{170 + UNIT * x:.1f},{y:.1f}" for x, y in zip(places, heights, strict=True))
    (score,) = distance_scores(pair, [distance], pace)
    picture.text(170, 15, "score q · k against distance s − t", bold=True)
    picture.path(f"M20,{MIDDLE}H320M170,{MIDDLE - HIGH - 8}V{MIDDLE + HIGH + 8}", "quiet", thick=1)
    for x in (-LAST_POSITION, 0, LAST_POSITION):
        picture.text(170 + UNIT * x, 222, signed(x, 0), anchor="end" if x > 0 else "middle")
    picture.parts.append(
        f'<path data-part="curve" d="M{line}"/><circle data-part="dot" r="6" '
        f'cx="{170 + UNIT * distance:g}" cy="{MIDDLE - unit * score:.1f}" class="am-point"/>'
    )
    return picture
