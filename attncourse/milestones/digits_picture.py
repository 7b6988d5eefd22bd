"""The picture of a reader of digits: held-out digits, and where it looked to read them."""

from typing import Any

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from attncourse.figures.style import INK, KEY, PURPLE, set_style
from attncourse.milestones.digits_gates import (
    PATCH,
    parts_of_fold,
    regression,
    share_of_digits_right,
)


@torch.no_grad()
def draw_digits(model: Any) -> Figure:
    """Draw ten digits with what the model says they are, and where the class token looked."""
    set_style()
    images, labels = parts_of_fold()[1]
    chosen = [int((labels == digit).nonzero()[1]) for digit in range(10)]
    looks, said = model.looks(images[chosen]), model(images[chosen]).argmax(-1)
    figure, axes = plt.subplots(2, 5, figsize=(7.5, 3.9), layout="constrained")
    for ax, image, look, digit, right in zip(
        axes.flat, images[chosen], looks, said.tolist(), labels[chosen].tolist(), strict=True
    ):
        ax.imshow(image[0].numpy(), cmap="gray_r")
        shade = look.repeat_interleave(PATCH, 0).repeat_interleave(PATCH, 1)
        ax.imshow(np.ones((8, 8)), cmap=single(KEY), alpha=(0.75 * shade / look.max()).numpy())
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{digit}", color=INK if digit == right else PURPLE)
        ax.set_xlabel("" if digit == right else f"it is a {right}", color=PURPLE)
    score, theirs = share_of_digits_right(model, images, labels), regression()
    figure.suptitle(
        f"Your model reads {score:.1%} of digits that it never saw, logistic regression "
        f"{theirs:.1%}.\nOrange: where it looked."
    )
    return figure


def single(colour: str):
    """Return a colour map of one colour."""
    from matplotlib.colors import ListedColormap

    return ListedColormap([colour])
