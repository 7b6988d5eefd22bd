"""The picture of a model that writes: its stories with where it looked, and how it learned."""

import math
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attncourse.figures.style import GREY, KEY, QUERY, VALUE, set_style
from attncourse.milestones.language_gates import sample_stories
from attncourse.tasks.language_model import floor_of_window
from attncourse.tasks.pronouns import PAD, PronounWorld

STORIES, LETTER = 5, 0.0117  # how many are shown; a letter's width, as a share of the line


def draw_language(model: Any) -> Figure:
    """Draw stories that the model wrote, with where a head looked before *she* or *he*."""
    set_style()
    figure, (page, curve) = plt.subplots(
        2, 1, figsize=(7.5, 5.5), height_ratios=(STORIES + 1.5, 6), layout="constrained"
    )
    page.axis("off")
    page.set(xlim=(0, 1), ylim=(STORIES + 0.1, -0.6))
    page.set_title(
        "Your model wrote this. Shaded: where one of its heads looked, just before he or she."
    )
    stories = right_stories(model)
    looks = where_it_looked(model, stories)
    for line, (ids, look) in enumerate(zip(stories, looks, strict=True)):
        draw_story(page, ids, look, line)
    draw_losses(curve, model.losses)
    return figure


def right_stories(model: Any) -> list[Tensor]:
    """Return the first stories that it wrote right, all different."""
    world, stories = PronounWorld(), {}
    for ids in model.write(60, seed=11):
        text = world.decode(ids[1:])
        if math.isfinite(world.surprise(text)):
            stories.setdefault(text, ids)
    return list(stories.values())[:STORIES]


def story_words(ids: Tensor) -> tuple[list[str], int]:
    """Return a story's words, and where its pronoun stands."""
    words = PronounWorld().decode(ids[1:]).split()
    return words, next(i for i, word in enumerate(words) if word in ("she", "he"))


@torch.no_grad()
def where_it_looked(model: Any, stories: list[Tensor]) -> list[Tensor]:
    """Return how much attention each word before the pronoun had, in the head that chose it.

    Shown is one head for all stories: that which looks most at whom they are about.
    """
    rows, names = [], []
    for ids in stories:
        words, at = story_words(ids)
        rows.append(model.maps(ids)[:, :, at, 1 : at + 1].flatten(0, 1))  # (heads, words before)
        names.append(rows[-1][:, words.index("is") - 1])
    head = torch.stack(names).mean(0).argmax()
    return [row[head] for row in rows]


def draw_story(page: Axes, ids: Tensor, look: Tensor, line: int) -> None:
    """Draw one story, each word on as much orange as it had attention."""
    words, at = story_words(ids)
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
    """Draw loss by step, between the least of a model that sees one word and the least of any."""
    curve.plot(losses, "-", color=QUERY)
    steps, pairs = len(losses), floor_of_window(sample_stories(1000), 1, PAD)
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
