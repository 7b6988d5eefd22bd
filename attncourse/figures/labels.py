"""Where the names of curves stand: each beside its own curve, clear of all the others."""

import numpy as np

from attncourse.figures.svg import BOTTOM, LEFT, RIGHT, TOP

LETTER, HIGH = 6.6, 12  # of the letters, in pixels
NEAR, CLEAR = 4, 9  # from its own curve a name is this far, from others at least that
STEEP = 14  # how much a curve may rise or fall beside its name
ENOUGH = 30  # more room than this makes a place no better
STEP = 6  # pixels from a place that is tried to the next

Spot = tuple[float, float] | None


def spots(names: list[str], frames: list[np.ndarray], marks: list[np.ndarray]) -> list[list[Spot]]:
    """Return for each name and frame the middle of its base line, in pixels; ``None`` without room.

    frames: the curves' y at each pixel from ``LEFT`` to ``RIGHT``, ``(curves, pixels)`` each.
    marks: the middles of what else is drawn in each frame, ``(p, 2)``.
    """
    spots_by_frame: list[list[Spot]] = [[None] * len(names)]
    for heights, others in zip(frames, marks, strict=True):
        spots_by_frame.append(beside_curves(names, heights, others, spots_by_frame[-1]))
    return [list(places) for places in zip(*spots_by_frame[1:], strict=True)]


def beside_curves(names: list[str], heights: np.ndarray, marks, before: list[Spot]) -> list[Spot]:
    """Return the spots in one frame: with the most room, but as before where that is still good."""
    chosen: list[Spot] = []
    taken: list[tuple] = []
    for i, name in enumerate(names):
        best, most, where = None, 0.0, ()
        others = np.delete(heights, i, axis=0)
        for spot, box in candidates(heights[i], LETTER * len(name)):
            room = min([distance(box, others), *(box_distance(box, other) for other in taken)])
            if room < CLEAR or box_covers_mark(box, marks):
                continue
            last = before[i]
            stays = last is not None and last[0] == spot[0]
            good = min(room, ENOUGH) + ENOUGH * stays
            if good > most:
                best, most, where = spot, good, box
        chosen.append(best)
        if best:
            taken.append(where)
    return chosen


def candidates(curve: np.ndarray, width: float):
    """Yield spots above and below a curve, from the right, and the boxes that names would fill."""
    for left in np.arange(RIGHT - width - 3, LEFT + 4, -STEP):
        beside = curve[int(left - LEFT) : int(left - LEFT + width) + 1]
        low, high = beside.max(), beside.min()  # y grows downwards
        if low - high > STEEP:
            continue
        for bottom in (high - NEAR, low + NEAR + HIGH):
            if bottom - HIGH >= TOP and bottom <= BOTTOM - 3:
                middle = round(float(left + width / 2), 1), round(float(bottom - 2), 1)
                yield middle, (left, bottom - HIGH, left + width, bottom)


def distance(box, heights: np.ndarray) -> float:
    """Return the distance from a box to the nearest of some curves above or below it."""
    left, top, right, bottom = box
    beside = heights[:, int(left - LEFT) : int(right - LEFT) + 1]
    return float(np.maximum(beside - bottom, top - beside).min(initial=np.inf))


def box_distance(box, other) -> float:
    """Return the distance between two boxes, along the axis where it is larger."""
    left, top, right, bottom = box
    return max(left - other[2], other[0] - right, top - other[3], other[1] - bottom)


def box_covers_mark(box, marks: np.ndarray) -> bool:
    """True if a mark lies in a box or touches it."""
    left, top, right, bottom = box
    x, y = marks.T
    return bool(((x > left - 6) & (x < right + 6) & (y > top - 6) & (y < bottom + 6)).any())
