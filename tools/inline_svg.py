"""A figure that matplotlib drew, as SVG inside the page: it follows light and dark.

`inline` is a pure function from text to text. Colours become names of the style sheet, ids are the
figure's own, panels (`attncourse.figures.panels`) become pictures that flow, and what a page does
not need is left out.
"""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

import numpy as np
from PIL import Image
from svg_trim import rename, tidy, unwrap

from attncourse.figures import style
from attncourse.figures.panels import PANEL

INK, PAPER = "currentColor", "var(--pst-color-background)"
CSS_COLOURS = {
    style.INK: INK,
    style.PAPER: PAPER,
    style.DEEP: "var(--attn-deep)",
    style.FIXED: "#000",
    style.BLUE: "var(--attn-query)",
    style.ORANGE: "var(--attn-key)",
    style.GREEN: "var(--attn-value)",
    style.PURPLE: "var(--attn-purple)",
    style.SKY: "var(--attn-sky)",
    style.YELLOW: "var(--attn-yellow)",
    style.GREY: "var(--attn-grey)",
}
# Of a figure's own size: on a wide screen at most, and a panel at least before it goes below.
LARGEST, SMALLEST = 1.15, 0.86
PIXELS_PER_POINT = 4 / 3  # of CSS, in a point
HARDLY = 16  # of 255: so little do a grey's red, green and blue differ
COLOUR = re.compile(r"(?<!url\()#[0-9a-f]{6}\b")


class SvgError(ValueError):
    """A figure that cannot be shown inside a page."""


def inline(svg: str, name: str, alt: str) -> str:
    """Return the figure as HTML. name: begins every id, so it has to be unique. alt: what it shows.

    Raises ``SvgError`` for text that is no SVG, for a grey picture of pixels, and where something
    is drawn outside the panels.
    """
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        raise SvgError(f"expected an SVG, got what is no XML: {error}") from error
    for element in root.iter():
        element.tag = local(element.tag)
        element.attrib = {local(key): value for key, value in element.attrib.items()}
    if root.tag != "svg" or not root.get("viewBox"):
        raise SvgError(f"expected an SVG with a viewBox, got <{root.tag}>")
    if any(is_grey(image) for image in root.iter("image")):
        raise SvgError("grey pixels are lost on a dark page: draw attncourse.figures.weight_cells")
    recolour(root)
    parts = {group: area(group) for group in root.iter("g") if is_panel(group)}
    tidy(root)
    rename(root, name)
    if not parts:
        box = tuple(float(part) for part in root.attrib["viewBox"].split())
        look = f"max-width:{LARGEST * PIXELS_PER_POINT * box[2]:.0f}px"
        return svg_text(svg_element(list(root), box, look, {"role": "img", "aria-label": alt}))
    return svg_text(flowing(root, parts, alt))


def local(name: str) -> str:
    """Return a name without its namespace, which HTML does not write."""
    return name.rpartition("}")[2]


def is_grey(image: Element) -> bool:
    """True if a picture of pixels has no colour: on a page of its own brightness it vanishes."""
    pixels = Image.open(io.BytesIO(base64.b64decode(image.attrib["href"].partition(",")[2])))
    return np.ptp(np.asarray(pixels.convert("RGB"), dtype=int), axis=-1).max() <= HARDLY


def recolour(element: Element, pictured: bool = False) -> None:
    """Write colours as the style sheet's names, and greys as ink thinned with paper.

    Beside a picture of pixels, which keeps its colours, greys stay as they are.
    """
    if element.get("id", "").startswith("axes_"):
        pictured = element.find(".//image") is not None
        if pictured:
            element.set("fill", "#000")  # matplotlib does not say where it is black
    if "style" in element.attrib:
        look = COLOUR.sub(lambda match: colour(match[0], pictured), element.attrib["style"])
        element.set("style", re.sub(r"([:;]) ", r"\1", look).strip("; "))
    for child in element:
        recolour(child, pictured)


def colour(code: str, pictured: bool) -> str:
    """Return a colour as one that follows the page's, where it is a shade of grey."""
    red, green, blue = (int(code[i : i + 2], 16) for i in (1, 3, 5))
    if code in CSS_COLOURS:
        return CSS_COLOURS[code]
    if pictured or not red == green == blue:
        return code
    share = round(100 * (255 - red) / 255)
    ends = {100: INK, 0: PAPER}
    return ends.get(share, f"color-mix(in srgb,{INK} {share}%,{PAPER})")


def is_panel(group: Element) -> bool:
    """True for the group of one panel of a figure."""
    return re.fullmatch(rf"{PANEL}_\d+", group.get("id", "")) is not None


def area(panel: Element) -> tuple[float, float, float, float]:
    """Return left, top, width and height of a panel, which its first path outlines."""
    outline = next(panel.iter("path"))
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", outline.attrib["d"])]
    left, top = min(numbers[::2]), min(numbers[1::2])
    return left, top, max(numbers[::2]) - left, max(numbers[1::2]) - top


def flowing(root: Element, parts: dict, alt: str) -> Element:
    """Return the panels as pictures beside and below each other; shared parts go into the first."""
    columns = len({round(box[0]) for box in parts.values()})
    widths = [PIXELS_PER_POINT * box[2] for box in parts.values()]
    most = LARGEST
    if len(parts) > columns:  # one more must not fit
        most = min(LARGEST, SMALLEST * (columns + 1) / columns - 0.01)
    total_width = most * sum(widths[:columns]) + 8 * (columns - 1)
    look = f"max-width:{total_width:.0f}px"
    box = Element("div", {"class": "attn-plots", "role": "img", "aria-label": alt, "style": look})
    for (panel, place), width in zip(parts.items(), widths, strict=True):
        look = (
            f"flex:{width:.0f} 1 min(100%,{SMALLEST * width:.0f}px);"
            f"max-width:{LARGEST * width:.0f}px"
        )
        box.append(svg_element(list(panel), place, look, {}))
        panel.clear()
    shared, outside = [], []
    sort(root, shared, outside)
    if outside:
        raise SvgError(
            "expected everything to be drawn in panels, got something outside of them: "
            "a title or a legend of the whole figure?"
        )
    box[0].extend(shared)
    return box


def sort(element: Element, shared: list[Element], outside: list[Element]) -> None:
    """Find the definitions, and the shapes, that belong to no panel."""
    for child in element:
        if child.tag == "defs":
            shared.append(child)
        elif child.tag == "g":
            sort(child, shared, outside)
        else:
            outside.append(child)


def svg_element(parts: list[Element], box: tuple, look: str, more: dict[str, str]) -> Element:
    """Return parts of a figure as an SVG element of their own."""
    view = " ".join(f"{side:.1f}" for side in box)
    svg = Element("svg", {"class": "attn-plot", "viewBox": view, "style": look, **more})
    svg.set("fill", INK)  # where matplotlib does not say, it is black
    svg.set("stroke-linejoin", "round")  # as matplotlib's own style sheet has it
    svg.extend(parts)
    unwrap(svg)
    return svg


def svg_text(element: Element) -> str:
    """Return an element as text, without space between its parts."""
    for part in element.iter():
        part.text = part.tail = None
    return ET.tostring(element, encoding="unicode")
