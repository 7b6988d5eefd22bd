"""Gates of a reader of digits: before it has learned anything, and afterwards."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from attncourse.milestones import blocks, gates
from attncourse.milestones.gates import difference_message, of_shape, relative_difference
from attncourse.milestones.milestone import Gate
from attncourse.tasks.digits import digits, split

PATCH, SIDE = 2, 4  # pixels of a patch's side, patches of an image's
Labelled = tuple[Tensor, Tensor]


@cache
def parts_of_fold() -> tuple[Labelled, Labelled]:
    """Images and what they show: those to learn from, and those held out."""
    images, labels = digits()
    learned, _, test = split(0)
    return (images[learned], labels[learned]), (images[test], labels[test])


@cache
def regression() -> float:
    """The share of held-out digits that logistic regression reads."""
    from sklearn.linear_model import LogisticRegression

    (images, labels), (fresh, right) = (
        (x.flatten(1).numpy(), y.numpy()) for x, y in parts_of_fold()
    )
    return float(LogisticRegression(C=0.05, max_iter=300).fit(images, labels).score(fresh, right))


def sample_images(n: int = 6) -> Tensor:
    """Held-out images, ``(n, 1, 8, 8)``."""
    return parts_of_fold()[1][0][:n]


def logits_for_every_image(model: Any) -> str:
    """Return what is wrong with the logits' shape; "" for ten an image."""
    return of_shape(model(sample_images()), (6, 10))


def patches_are_squares(model: Any) -> str:
    """A pixel is in the patch that covers it, and in no other."""
    images = sample_images(2)
    before, tokens = model.cut(images, PATCH), model.embed(images)
    if before.shape != (2, SIDE * SIDE, PATCH * PATCH):
        shape = (2, SIDE * SIDE, PATCH * PATCH)
        return f"expected patches of shape {shape}, got {tuple(before.shape)}"
    if tokens.shape[:2] != (2, SIDE * SIDE + 1):
        return f"expected 17 tokens an image, got {tuple(tokens.shape)}"
    for row, column in (0, 5), (3, 2), (6, 1), (7, 7):
        changed = images.clone()
        changed[..., row, column] += 1
        where = row // PATCH * SIDE + column // PATCH
        moved = (model.cut(changed, PATCH) - before).abs().sum((0, 2)) > 1e-5
        seen = (model.embed(changed) - tokens).abs().sum((0, 2)) > 1e-5
        if moved.nonzero().flatten().tolist() != [where]:
            return f"pixel ({row}, {column}) is not in patch {where} alone"
        if seen.nonzero().flatten().tolist() != [where + 1]:
            return f"pixel ({row}, {column}) does not change token {where + 1} alone"
    return ""


def pieces_make_the_image(model: Any) -> str:
    """Cut and put together, an image is what it was: a wide one of three channels too."""
    images = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(7))
    for x in sample_images(), images:
        again = model.join(model.cut(x, PATCH), PATCH, *x.shape[-2:])
        if again.shape != x.shape:
            return f"put together, an image of {tuple(x.shape)} is {tuple(again.shape)}"
        if relative_difference(x, again) > 1e-3:
            return difference_message(
                "an image that was cut and put together is another", relative_difference(x, again)
            )
    return ""


def places_count(model: Any) -> str:
    """Every token has a place of its own, the class token too."""
    images = sample_images()
    embedded, n = model.embed(images), SIDE * SIDE + 1
    for place in 0, 1, 7, n - 1:
        old = model.places[place].clone()
        model.places[place] += 1
        moved = (model.embed(images) - embedded).abs().sum((0, 2)) > 1e-5
        model.places[place] = old
        if moved.nonzero().flatten().tolist() != [place]:
            return f"place {place} is not that of token {place} alone"
    far = relative_difference(
        model(images), model(model.in_disorder(images, torch.arange(16).flip(0)))
    )
    return "patches in another order give the same answer" if far < 1e-3 else ""


def answers_with_all(model: Any) -> str:
    """The class token, the same in all images, hears of every patch."""
    images = sample_images()
    first = model.embed(images)[:, 0]
    if relative_difference(first, first[:1].expand_as(first)) > 1e-3:
        return "the first token depends on the image"
    old = model.class_token.clone()
    model.class_token += 1
    moved = relative_difference(first, model.embed(images)[:, 0])
    model.class_token.copy_(old)
    if moved < 1e-3:
        return "the class token is not the first token"
    bias, embedded = model.project.bias.clone(), model.embed(images)
    model.project.bias += 1
    moved = (model.embed(images) - embedded).abs().sum((0, 2)) > 1e-5
    model.project.bias.copy_(bias)
    if moved.tolist() != [False] + [True] * 16:
        return "the bias does not reach every patch and nothing else"
    right = model(images)
    for row, column in (0, 3), (5, 0), (7, 6):
        changed = images.clone()
        changed[..., row, column] += 2
        if relative_difference(right, model(changed)) < 1e-5:
            return f"pixel ({row}, {column}) changes no answer"
    return ""


def laid_over_the_image(model: Any) -> str:
    """Attention stands where its patch is, as shares without the class token's own."""
    weights = torch.tensor([0.5, 0.3, 0, 0, 0, 0.15, 0.05]).expand(3, 7)
    got = model.on_image(weights, 2, 3)
    right = torch.tensor([[0.6, 0, 0], [0, 0.3, 0.1]]).expand(3, 2, 3)
    if got.shape != right.shape:
        return f"six patches of 2 × 3 are laid out as {tuple(got.shape)}"
    return difference_message(
        "attention is not laid where the patches are, as shares", relative_difference(right, got)
    )


# --- once it has learned --------------------------------------------------------------------------


def share_of_digits_right(model: Any, images: Tensor, labels: Tensor) -> float:
    """Return the share of images that are read as the right digit."""
    return float((model(images).argmax(-1) == labels).float().mean())


def reads_digits(model: Any) -> str:
    """Chapter 15's contest ends in a tie, so two points less are no shame."""
    right, theirs = share_of_digits_right(model, *parts_of_fold()[1]), regression()
    return (
        (
            f"{right:.1%} of held-out digits are read, logistic regression reads {theirs:.1%}: "
            "expected no more than 2 points less"
        )
        if right < theirs - 0.02
        else ""
    )


def disorder_is_noticed(model: Any) -> str:
    """With their patches in disorder, digits are no digits."""
    images, labels = parts_of_fold()[1]
    order = torch.randperm(SIDE * SIDE, generator=torch.Generator().manual_seed(5))
    right = share_of_digits_right(model, model.in_disorder(images, order), labels)
    return f"with their patches in disorder it still reads {right:.0%}" if right > 0.5 else ""


UNTRAINED = (
    Gate("logits for every image", logits_for_every_image),
    Gate("one image at a time or many", gates.batch_independence_gate(sample_images, "digit")),
    Gate("no batch axis", gates.no_batch_axis_gate(sample_images, "digit")),
    Gate("patches are squares", patches_are_squares),
    Gate("pieces make the image again", pieces_make_the_image),
    Gate("places count", places_count),
    Gate("the class token answers with all", answers_with_all),
    Gate("maps are shares", blocks.map_rows_gate(sample_images, causal=False)),
    Gate("branches add to the stream", blocks.branches_add(sample_images)),
    Gate("blocks are their parts", blocks.block_parts_gate(sample_images, causal=False)),
    Gate("rows of one size", blocks.norm_rows_gate(sample_images)),
    Gate("attention laid over the image", laid_over_the_image),
)
TRAINED = (
    Gate("digits beside logistic regression", reads_digits),
    Gate("patches in disorder", disorder_is_noticed),
)
