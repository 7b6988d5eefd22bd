"""Chapter 15: handwritten digits, three models that read them, and patches in disorder.

The images are scikit-learn's: 1,797 digits of 8 × 8 pixels, each pixel a count of ink from 0 to 16,
written by 13 people (Alpaydin and Kaynak 1998). ``python -m attncourse.tasks.digits`` runs the
chapter's contest, some minutes of one core, and keeps it in ``digits.json``.
"""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.tasks.adam import Adam
from attncourse.tasks.bar import steps_bar
from attncourse.vision import VisionTransformer, patchify, unpatchify

PATCH, FOLDS, BATCH = 2, 4, 32
EPOCHS, RATE, DECAY = 12, 0.01, 0.3  # of the vision transformer
RATES = (0.003, 0.01, 0.03)
DIGITS_FILE = Path(__file__).with_name("digits.json")
Change = Callable[[Tensor, torch.Generator], Tensor]


def digits() -> tuple[Float[Tensor, "1797 1 8 8"], Int[Tensor, "1797"]]:
    """Return all images and what they show. Ink of 0 to 16 is moved and scaled: (ink − 5) / 6."""
    from sklearn.datasets import load_digits

    loaded: Any = load_digits()  # a Bunch, whose fields scikit-learn does not type
    ink = torch.tensor(loaded.images, dtype=torch.float32)[:, None]
    return normalise_ink(ink), torch.tensor(loaded.target)


def normalise_ink(ink: Tensor) -> Tensor:
    """Return ink from 0 to 16 as the models read it, with mean near 0 and variance near 1."""
    return (ink - 5) / 6


def examples() -> Int[Tensor, "10 8 8"]:
    """Return the ink of one image of every digit, in order, from the test part of fold 0."""
    images, labels = digits()
    test = split(0)[2]
    chosen = [test[labels[test] == digit][1] for digit in range(10)]
    return (6 * images[chosen, 0] + 5).round().long()


def split(fold: int, n: int = 1797, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return indices of training (about 1,200), validation (150) and test images (a quarter).

    No image is tested in two folds. Raises ``ValueError`` for a fold that there is not.
    """
    if not 0 <= fold < FOLDS:
        raise ValueError(f"fold: expected 0 to {FOLDS - 1}, got {fold}")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    parts = list(order.tensor_split(FOLDS))
    test = parts.pop(fold)
    rest = torch.cat(parts)
    return rest[150:], rest[:150], test


def vit(positions: bool = True) -> VisionTransformer:
    """Return a vision transformer of 27,000 numbers: two layers, eight heads, 2 × 2 patches.

    Positions and class token begin wider than usual, which suits so short a training. Without
    positions they are 0 and stay so.
    """
    model = VisionTransformer(8, PATCH, 1, 10, d_model=32, n_heads=8, n_layers=2)
    with torch.no_grad():
        model.class_token.mul_(25)
        model.positions.mul_(25 if positions else 0)
    model.positions.requires_grad_(positions)
    return model


def conv_net() -> nn.Sequential:
    """Return two convolutions of 3 × 3, the largest of 2 × 2, a linear layer: 10,000 numbers."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),  # (b, 16, 8, 8)
        nn.GELU(),
        nn.Conv2d(16, 32, 3, padding=1),  # (b, 32, 8, 8)
        nn.GELU(),
        nn.MaxPool2d(2),  # (b, 32, 4, 4)
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def logistic() -> nn.Sequential:
    """Return logistic regression: a weight for every pixel and digit, 650 numbers."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def reorder_patches(images: Tensor, order: Int[Tensor, "*b n"]) -> Tensor:
    """Return the images with patch ``order[i]`` in place i; one order, or a row for each image."""
    patches = patchify(images, PATCH)  # (b, n, 4)
    order = order.expand(patches.shape[:-1])[..., None].expand_as(patches)
    return unpatchify(patches.gather(-2, order), PATCH, *images.shape[-2:])


def fixed(images: Tensor, generator: torch.Generator | None = None, seed: int = 5) -> Tensor:
    """Return all images with their patches in the same disorder."""
    order = torch.randperm(16, generator=torch.Generator().manual_seed(seed))
    return reorder_patches(images, order)


def fresh(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return each image with its patches in a disorder of its own."""
    return reorder_patches(images, torch.rand(len(images), 16, generator=generator).argsort(-1))


def moved_a_pixel(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return the images, each moved by at most a pixel each way; no ink comes in."""
    wide = F.pad(images, (1, 1, 1, 1), value=normalise_ink(torch.tensor(0.0)).item())
    down, right = torch.randint(3, (2, len(images), 1), generator=generator)
    rows, columns = down + torch.arange(8), right + torch.arange(8)  # (b, 8) each
    each = torch.arange(len(images))[:, None, None]
    return wide[each, 0, rows[:, :, None], columns[:, None, :]][:, None]


def unchanged_images(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return the images as they are."""
    return images


def train(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    rate: float = RATE,
    epochs: int = EPOCHS,
    seed: int = 0,
    change: Change = unchanged_images,
    show: bool = False,
) -> list[float]:
    """Train with AdamW and return the loss of each batch, in nats; equal seeds, equal runs.

    The rate rises over 30 steps and falls to 0 over the last four fifths. ``change`` is done to
    every batch. The model is left in ``eval()``. show: a bar with steps, loss and seconds.
    """
    generator, losses = torch.Generator().manual_seed(seed), []
    adam = Adam(model.parameters(), rate, betas=(0.9, 0.98), decay=DECAY)
    steps = epochs * (len(images) // BATCH)
    model.train()
    with steps_bar(steps) if show else nullcontext() as progress:
        while len(losses) < steps:
            for rows in torch.randperm(len(images), generator=generator).split(BATCH):
                step = len(losses)
                if len(rows) < BATCH or step == steps:
                    continue
                loss = F.cross_entropy(model(change(images[rows], generator)), labels[rows])
                adam.zero_grad()
                loss.backward()
                adam.step(min(1, (step + 1) / 30, (1 - step / steps) / 0.8))
                losses.append(loss.item())
                if progress is not None:
                    progress.update(progress.task_ids[0], advance=1, loss=losses[-1])
    model.eval()
    return losses


@torch.no_grad()
def answers(model: nn.Module, images: Tensor, change: Change = unchanged_images) -> Tensor:
    """Return the model's logits for images changed in the same way, with a seed of their own."""
    return model.eval()(change(images, torch.Generator().manual_seed(1000)))


def wilson(right: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return the interval of Wilson for a share of ``right`` out of n, by default of 95 %."""
    if not 0 <= right <= n or n == 0:
        raise ValueError(f"right: expected 0 to n and n above 0, got {right} of {n}")
    share, more = right / n, z * z / n
    middle = (share + more / 2) / (1 + more)
    half = z / (1 + more) * math.sqrt(share * (1 - share) / n + more / (4 * n))
    return middle - half, middle + half


CONTESTANTS: dict[str, tuple[Callable[[], nn.Module], Change]] = {
    "logistic regression": (logistic, unchanged_images),
    "convolutional network": (conv_net, unchanged_images),
    "vision transformer": (vit, unchanged_images),
    "convolutional network, one disorder": (conv_net, fixed),
    "vision transformer, one disorder": (vit, fixed),
    "convolutional network, fresh disorder": (conv_net, fresh),
    "vision transformer, fresh disorder": (vit, fresh),
    "convolutional network, moved": (conv_net, moved_a_pixel),
    "vision transformer, moved": (vit, moved_a_pixel),
    "vision transformer, no positions": (lambda: vit(positions=False), unchanged_images),
}


def digits_contest(
    names: Sequence[str] = tuple(CONTESTANTS),
    *,
    rates: Sequence[float] = RATES,
    folds: int = 3,
    epochs: int = EPOCHS,
) -> dict[str, dict]:
    """Return each contestant at the rate with the least validation loss, mean of the folds.

    Fold f is trained from seed f. For each contestant: its rate, and the images that it got
    wrong in the test part of every fold, by number.
    """
    images, labels = digits()
    results = {}
    for name in names:
        build, change = CONTESTANTS[name]
        tried = {}
        for rate in rates:
            losses, wrong = [], []
            for fold in range(folds):
                part, validation, test = split(fold)
                torch.manual_seed(fold)
                model = build()
                train(
                    model, images[part], labels[part], rate=rate, epochs=epochs, seed=fold,
                    change=change,
                )  # fmt: skip
                held = answers(model, images[validation], change)
                losses.append(F.cross_entropy(held, labels[validation]).item())
                missed = answers(model, images[test], change).argmax(-1) != labels[test]
                wrong.append(sorted(test[missed].tolist()))
            tried[rate] = sum(losses) / folds, wrong
        rate = min(tried, key=lambda rate: tried[rate][0])
        results[name] = {"rate": rate, "wrong": tried[rate][1]}
    return results


def kept() -> dict[str, dict]:
    """Return the contest as it was run once, with its machine's versions under ``made``."""
    return json.loads(DIGITS_FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    results: dict = {"made": {"torch": torch.__version__, "command": "attncourse.tasks.digits"}}
    for name in CONTESTANTS:
        results |= digits_contest([name])
        print(name, results[name]["rate"], list(map(len, results[name]["wrong"])), flush=True)
        DIGITS_FILE.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
