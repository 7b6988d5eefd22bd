"""Controls that a reader moves, sliders, buttons and fields, and pictures that a script redraws.

Every part that a script needs has a name, ``data-part``. Without a script the controls are not
shown, and on paper neither.
"""

from html import escape

from attncourse.figures.diagram import Diagram
from attncourse.figures.ink import arrow_head, paint


def controls(*parts: str) -> str:
    """Return controls in a row, which wraps on a phone."""
    return f'<div class="am-row am-controls">{"".join(parts)}</div>'


def slider_control(
    name: str, label: str, low: float, high: float, value: float, step: float = 1
) -> str:
    """Return a slider with its label before it and its value after it."""
    return (
        f'<label class="am-slider"><span>{label}</span><input type="range" data-part="{name}" '
        f'min="{low:g}" max="{high:g}" step="{step:g}" value="{value:g}" autocomplete="off">'
        f'<output data-part="{name}-now">{value:g}</output></label>'
    )


def button(name: str, label: str, pressed: bool | None = None) -> str:
    """Return a button; one that stays down or up where ``pressed`` is given."""
    state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    return f'<button type="button" data-part="{name}"{state}>{label}</button>'


def choice(name: str, label: str, options: list[str], chosen: int) -> str:
    """Return a group of buttons of which one is down."""
    buttons = "".join(button(name, words, i == chosen) for i, words in enumerate(options))
    return (
        f'<div class="am-row am-choice" role="group" aria-label="{escape(label)}">'
        f"<span>{escape(label)}</span>{buttons}</div>"
    )


def drag_hint(words: str) -> str:
    """Return words that say what can be dragged, which stand only where a script runs."""
    return f'<span class="am-controls">{words}</span>'


def picture_row(*drawings: Diagram) -> str:
    """Return drawings side by side where there is room."""
    return f'<div class="attncourse-diagram">{"".join(drawing.svg() for drawing in drawings)}</div>'


def beside_controls(*parts: str) -> str:
    """Return pictures, and beside them what moves them; one below the other on a phone."""
    picture, *others = parts
    return f'<div class="am-beside">{picture}<div>{"".join(others)}</div></div>'


def role_cell(role: str, strength: float, words: str) -> str:
    """Return a cell in the colour of a role, as strong as its number is large."""
    percent = f"{abs(strength) * 45:.0f}%"
    colour = f"color-mix(in srgb,var(--{role}) {percent},transparent)"
    return f'<td style="background:{colour}">{words}</td>'


def scrolling(rows: str, label: str) -> str:
    """Return a table of coloured cells, which scrolls by itself where a phone is too narrow."""
    return (
        f'<div class="am-wide" tabindex="0" role="group" aria-label="{escape(label)}">'
        f'<table class="am-cells">{rows}</table></div>'
    )


def live(drawing: Diagram, name: str, markup: str = "") -> None:
    """Add a group to the drawing which the script fills anew; until then it holds ``markup``."""
    drawing.parts.append(f'<g data-part="{name}">{markup}</g>')


def svg_arrow(x: float, y: float, to_x: float, to_y: float, role: str, thick: float = 1.5) -> str:
    """Return an arrow between two points, as the scripts draw it."""
    tip = arrow_head((x, y), (to_x, to_y), thick)
    return (
        f'<path style="stroke:{paint(role)};stroke-width:{thick:g}" '
        f'd="M{x:.1f},{y:.1f}L{to_x:.1f},{to_y:.1f}"/>'
        f'<path class="ad-head" style="fill:{paint(role)}" d="{tip}"/>'
    )


def signed(number: float, digits: int) -> str:
    """Return a number as the scripts write it, with a minus sign, and no minus before zero."""
    text = f"{number:.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")
