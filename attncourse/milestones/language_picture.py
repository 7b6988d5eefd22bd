"""The picture of a model that writes: its stories with where it looked, and how it learned."""

import math

import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from attncourse.figures.style import GREY, KEY, QUERY, VALUE, set_style
from attncourse.milestones.language_gates import some
from attncourse.tasks.language_model import floor_of_window
from attncourse.tasks.pronouns import PAD, PronounWorld

STORIES, LETTER = 5, 0.0117  # how many are shown; a letter's width, as a share of the line


def picture(model: nn.Module) -> Figure:
    """Stories that it wrote, with where the word before *she* or *he* looked, over its losses."""
    set_style()
    figure, (page, curve) = plt.subplots(
        2, 1, figsize=(7.5, 5.5), height_ratios=(STORIES + 1.5, 6), layout="constrained"
    )
    page.axis("off")
    page.set(xlim=(0, 1), ylim=(STORIES + 0.1, -0.6))
    page.set_title("Your model wrote this. It chose the pronoun by looking at the shaded words.")
    for line, ids in enumerate(chosen(model)):
        draw_story(page, model, ids, line)
    draw_losses(curve, model.losses)
    return figure


def chosen(model: nn.Module) -> list[Tensor]:
    """The first stories that it wrote right, all different."""
    world, found = PronounWorld(), {}
    for ids in model.write(60, seed=11):
        text = world.decode(ids[1:])
        if math.isfinite(world.surprise(text)):
            found.setdefault(text, ids)
    return list(found.values())[:STORIES]


@torch.no_grad()
def draw_story(page: Axes, model: nn.Module, ids: Tensor, line: int) -> None:
    """One story, each word on as much orange as the pronoun's choice paid attention to it."""
    world = PronounWorld()
    words = world.decode(ids[1:]).split()
    at = next(i for i, word in enumerate(words) if word in ("she", "he"))
    row = model.maps(ids)[:, :, at, 1 : at + 1]  # (layers, h, words before), the start left out
    look = row.flatten(0, 1)[row.amax(-1).flatten().argmax()]  # of the head that is surest
    shades = [*look.tolist(), *[0.0] * (len(words) - at)]
    left = 0.0
    for place, (word, shade) in enumerate(zip(words, shades, strict=True)):
        colour = QUERY if place == at else "black"
        width = (len(word) + 1.6) * LETTER
        box = plt.Rectangle((left, line - 0.42), width - 0.004, 0.84, color=KEY, lw=0)
        box.set_alpha(min(1, 0.85 * shade))
        page.add_patch(box)
        page.text(left + width / 2, line, word, ha="center", va="center", family="monospace",
                  fontsize=9, color=colour, weight="bold" if place == at else None)  # fmt: skip
        left += width


def draw_losses(curve: Axes, losses: list[float]) -> None:
    """Loss by step, between the least of a model that sees one word and the least of any."""
    curve.plot(losses, "-", color=QUERY)
    steps, pairs = len(losses), floor_of_window(some(1000), 1, PAD)
    levels = (
        (pairs, KEY, "whoever sees one word only"),
        (PronounWorld().entropy_rate(), VALUE, "the least there is"),
    )
    for level, colour, name in levels:
        curve.axhline(level, color=colour, linestyle=":")
        above = level == pairs
        curve.text(steps, level, name, color=colour, ha="right", va="bottom" if above else "top")
    curve.axhline(math.log(len(PronounWorld().words)), color=GREY, linestyle=":")
    curve.text(
        steps, math.log(len(PronounWorld().words)), "guessing", color=GREY, ha="right", va="top"
    )
    curve.set(xlabel="step", ylabel="loss, nats a word", ylim=(0.5, 4.2))
