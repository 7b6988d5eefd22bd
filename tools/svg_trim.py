"""A drawing without what a page does not need: fewer bytes, and ids that cannot clash."""

from __future__ import annotations

import re
from itertools import count
from xml.etree.ElementTree import Element

REFERENCE = re.compile(r"(?:^|url\()#([\w.-]+)")
REFERRING = ("href", "clip-path", "mask", "style")
LONG = re.compile(r"-?\d+\.\d{2,}")
MOVES = re.compile(r"(translate|rotate)\([^)]*\)")
PATH_STEP = re.compile(r"[A-Za-z]|-?[\d.]+(?:e-?\d+)?")
TAKES = {"M": 2, "L": 2, "Q": 4, "C": 6, "z": 0, "Z": 0}  # numbers after a path's letter


def tidy(element: Element) -> None:
    """Leave out what cannot be seen, and digits below a hundredth of a point."""
    for child in list(element):
        tidy(child)
        if unseen(child, element):
            element.remove(child)
            continue
        if child.get("id", "").startswith(("cells_", "QuadMesh_")):
            child.set("shape-rendering", "crispEdges")  # no hairlines between neighbours
        for key in {"d", "x", "y", "width", "height"} & child.attrib.keys():
            child.set(key, LONG.sub(short, child.attrib[key]))
        if "d" in child.attrib:
            child.set("d", brief(child.attrib["d"]))
        if "transform" in child.attrib:  # in a scale all digits count
            mended = MOVES.sub(lambda move: LONG.sub(short, move[0]), child.attrib["transform"])
            child.set("transform", mended.replace(" 0)", ")") if "," not in mended else mended)
        if "href" in child.attrib:
            child.set("href", "".join(child.attrib["href"].split()))


def unseen(child: Element, parent: Element) -> bool:
    """True for metadata, the white background, frames without a line, and groups of such."""
    empty = child.tag in ("g", "defs") and not len(child)
    blank = child.tag == "path" and child.get("style") == "fill:none"
    background = child.get("id") == "patch_1" and parent.get("id") == "figure_1"
    return child.tag in ("metadata", "style") or empty or blank or background


def short(number: re.Match) -> str:
    """Return a number with two decimals at most."""
    return f"{round(float(number[0]), 2) + 0:.2f}".rstrip("0").rstrip(".")  # never -0


def brief(path: str) -> str:
    """Return the same path in fewer letters; one of another kind than matplotlib's as it is."""
    steps, at, text = PATH_STEP.findall(path), ("", ""), ""
    while steps:
        letter = steps.pop(0)
        if letter not in TAKES:
            return path
        numbers, steps = steps[: TAKES[letter]], steps[TAKES[letter] :]
        x, y = numbers[-2:] or at
        if letter == "L" and y == at[1]:
            letter, numbers = "H", [x]
        elif letter == "L" and x == at[0]:
            letter, numbers = "V", [y]
        text += letter + " ".join(numbers)
        at = (x, y)
    return text


def rename(root: Element, name: str) -> None:
    """Drop ids that nothing refers to; the others become ``name`` with a number."""
    used = {
        target
        for element in root.iter()
        for key in REFERRING
        for target in REFERENCE.findall(element.get(key, ""))
    }
    numbers, new = count(1), {}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in used:
            new[old] = f"{name}-{next(numbers)}"
            element.set("id", new[old])

    def renamed(match: re.Match) -> str:
        return match[0].replace(match[1], new.get(match[1], match[1]))

    for element in root.iter():
        for key in set(REFERRING) & element.attrib.keys():
            element.set(key, REFERENCE.sub(renamed, element.attrib[key]))


def unwrap(element: Element) -> None:
    """Take groups apart that say nothing about what is in them."""
    children = []
    for child in element:
        unwrap(child)
        if child.tag == "g" and not child.attrib:
            children += list(child)
        else:
            children.append(child)
    element[:] = children
