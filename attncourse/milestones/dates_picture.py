"""The picture of a translator of dates: for each character that it wrote, where it looked."""

import re
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attncourse.figures.style import KEY, QUERY, set_style
from attncourse.milestones.dates_gates import sample_dates
from attncourse.tasks.characters import to_texts
from attncourse.tasks.dates import ISO

SHOWN = (r".*the", r"[a-z]+ \d+,", r".*/")  # one of each of three formats


@torch.no_grad()
def draw_dates(model: Any) -> Figure:
    """Draw three fresh dates: a row for each character written, shaded where it was read."""
    set_style()
    source, _, written = sample_dates(1000)
    chosen = [next(i for i, text in enumerate(written) if re.match(f, text)) for f in SHOWN]
    ids, maps = model.translate(source[chosen])
    figure, axes = plt.subplots(
        3, 1, figsize=(7, 8.5), height_ratios=(1, 1, 1), layout="constrained"
    )
    said = to_texts(ids, ISO)
    for ax, place, text, weights in zip(axes, chosen, said, maps, strict=True):
        letters = written[place]
        seen = weights[:, : len(letters)].numpy()
        ax.imshow(seen, cmap="weights", vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(
            range(len(letters)), list(letters), family="monospace", color=KEY, va="baseline"
        )
        ax.set_yticks(range(len(text)), list(text), family="monospace", color=QUERY)
        ax.tick_params(length=0)
        ax.tick_params(axis="x", pad=14)
        ax.set_title(f"{letters}  →  {text}")
    figure.supxlabel("what it read")
    figure.supylabel("what it wrote")
    return figure
