"""The page of the real model, with a small model in its place."""

from __future__ import annotations

from helpers.figure_reader import FigureReader

SENTENCE = "Bettina's 7 otters weren't asleep. They sorted pebbles, größere links; otters sorted"


def ready(reader: FigureReader) -> None:
    """Until nothing is being computed."""
    reader.page.wait_for_function("() => document.querySelector('.attncourse-moving').still?.()")
