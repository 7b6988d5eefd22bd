"""Chapter 15: a digit to paint, its patches, what a vision transformer reads, where it looks."""

from copy import deepcopy
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from attncourse.figures.moving.controls import button, choice, controls
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.live_model import carried, pack_arrays, percent
from attncourse.support.arrays import as_floats

if TYPE_CHECKING:  # numpy alone is enough for the other figures
    from attncourse.vision import VisionTransformer

INK = 16  # the most of a pixel: 4 × 4 dots
SHIFT, SCALE = 5, 6  # what a model reads is (ink − 5) / 6


class DigitPainter(Moving):
    """A vision transformer that reads what the reader paints, by mouse, finger or keyboard.

    Beside the image stand its patches, on the blue of the class token's attention in the last
    layer, mean of the heads; and the probability of every class. As in the scans that the digits
    were made from, a pixel is 4 × 4 dots, and its ink is how many of them are black. The page
    carries the weights as float32 without the lowest byte.

    model: a ``VisionTransformer`` of one channel, at most 12 pixels a side and at most 150,000
    numbers. presets: images to begin from, ``(k, H, W)``, one for each class, ink of 0 to 16 as
    whole numbers. chosen: the first one shown. Raises ``ValueError`` for anything else.
    """

    def __init__(self, model: "VisionTransformer", presets, chosen: int = 3):
        """Make the figure of a model, and of images to begin with, of which one is ``chosen``."""
        weights = digit_painter_weights(model)
        side, patch = model.image_size, model.patch
        presets = as_floats("presets", presets, "k H W")
        if presets.shape[1:] != (side, side) or not 1 <= len(presets) <= len(weights["out.bias"]):
            raise ValueError(
                f"presets: expected at most {len(weights['out.bias'])} images of {side} × {side} "
                f"pixels, got shape {presets.shape}"
            )
        if (presets != presets.round()).any() or presets.min() < 0 or presets.max() > INK:
            raise ValueError("presets: expected whole numbers from 0 to 16, counts of dots")
        if not 0 <= chosen < len(presets):
            raise ValueError(f"chosen: expected 0 to {len(presets) - 1}, got {chosen}")
        chances, looks = classify_digit(model, weights, presets[chosen])
        best, most, across = int(chances.argmax()), int(looks.argmax()), side // patch
        settings = {
            "side": side,
            "patch": patch,
            "heads": [block.attention.n_heads for block in model.blocks],
            "eps": model.norm.eps,
            "shift": SHIFT,
            "scale": SCALE,
            "chosen": chosen,
            "presets": presets.astype(int).reshape(len(presets), -1).tolist(),
            "shapes": [[name, *array.shape] for name, array in weights.items()],
        }
        super().__init__(
            "digit_painter",
            "Paint a digit",
            controls(choice("preset", "Real digits", [str(i) for i in range(len(presets))], chosen))
            + f'<div class="dp-parts"><div><p>Paint here</p>{pixel_grid(presets[chosen])}</div>'
            f"<div><p>Patches, blue: where it looks</p>{tiles(presets[chosen], looks, patch)}</div>"
            f'<div class="dp-bars"><p>What it reads</p>{digit_bars(chances)}</div></div>'
            + controls(
                button("rub", "Rub out", False), button("clear", "Clear"), button("anew", "Reset")
            ),
            "Where JavaScript runs, you can paint, with the mouse, a finger or the keyboard, and "
            "the model reads along.",
            settings | {"weights": pack_arrays(weights.values())},
            f"It reads a {best}, {percent(chances[best])}. The class token looks most at patch row "
            f"{most // across}, column {most % across}: {percent(looks[most])}.",
            before=["transformer"],
        )


def digit_painter_weights(model: "VisionTransformer") -> dict[str, np.ndarray]:
    """Return the model's weights by name, rounded as the page carries them.

    ``ValueError`` for others.
    """
    from attncourse.vision import VisionTransformer

    if not isinstance(model, VisionTransformer):
        raise ValueError(f"model: expected a VisionTransformer, got {type(model).__name__}")
    if model.n_channels != 1 or model.image_size > 12:
        raise ValueError(
            "model: expected one channel and at most 12 pixels a side, got "
            f"{model.n_channels} and {model.image_size}"
        )
    return carried(model)


def classify_digit(model: "VisionTransformer", weights: dict, ink) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each class, and the patches' shares of attention, row by row."""
    import torch

    from attncourse.vision import attention_on_image

    same = deepcopy(model).cpu().double()
    same.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    image = (torch.as_tensor(ink, dtype=torch.float64)[None] - SHIFT) / SCALE
    across = model.image_size // model.patch
    with torch.no_grad():
        chances = same(image).softmax(-1)
        row = same.weights(image)[-1, :, 0].mean(0)  # (n + 1,)
    return chances.numpy(), attention_on_image(row, across, across).flatten().numpy()


def pixel_grid(ink: np.ndarray) -> str:
    """Return the pixels to paint on."""
    rows = "".join(
        "<tr>" + "".join(f'<td style="--dark:{x / INK:.4f}"></td>' for x in row) + "</tr>"
        for row in ink
    )
    return f'<table class="dp-paint" data-part="paint" aria-label="The image">{rows}</table>'


def tiles(ink: np.ndarray, looks: np.ndarray, patch: int) -> str:
    """Return the patches apart, each on a ground as blue as the class token looks at it."""
    across = len(ink) // patch
    pieces = ""
    for n, share in enumerate(looks):
        r, s = (patch * place for place in divmod(n, across))
        dots = "".join(
            f'<i style="--dark:{x / INK:.4f}"></i>'
            for x in ink[r : r + patch, s : s + patch].flatten()
        )
        pieces += (
            f'<div class="dp-tile" style="--look:{share:.4f};grid-template-columns:'
            f'repeat({patch},1fr)">{dots}</div>'
        )
    columns = f"grid-template-columns:repeat({across},1fr)"
    return f'<div class="dp-tiles" aria-hidden="true" style="{columns}">{pieces}</div>'


def digit_bars(chances: np.ndarray) -> str:
    """Return a line for each class, with its probability."""
    best = int(chances.argmax())
    lines = "".join(
        f'<tr{" class=dp-best" if c == best else ""}><th scope="row">{c}</th>'
        f'<td><i style="width:{100 * p:.2f}%"></i></td><td>{escape(percent(p))}</td></tr>'
        for c, p in enumerate(chances)
    )
    return f"<table>{lines}</table>"
