"""The model of chapters 13 and 14: a small GPT that has read pronoun world."""

from collections.abc import Callable
from functools import partial

import torch

from attncourse.gpt import GPT, GPTConfig
from attncourse.tasks.language_model import train
from attncourse.tasks.pronouns import PAD, PronounWorld


def storyteller(
    world: PronounWorld, seed: int = 0, steps: int = 350, batch: int = 100, rate: float = 0.006
) -> GPT:
    """Return a GPT of two layers of four heads, trained on the world's stories; in ``eval()``.

    About 100,000 numbers. Equal worlds and seeds give equal models. The weights begin wider than
    GPT-2's, which suits a model of this width and 350 steps.
    """
    return taught(world, seed, steps, batch, rate)[0]


def taught(
    world: PronounWorld,
    seed: int = 0,
    steps: int = 350,
    batch: int = 100,
    rate: float = 0.006,
    look: Callable[[GPT, int], None] = lambda gpt, step: None,
) -> tuple[GPT, list[float]]:
    """Return the ``storyteller`` and the loss of each batch before it learned from it.

    ``look`` is shown the model before each step and at the end, with the number of steps behind it.
    """
    torch.manual_seed(seed)
    gpt = GPT(GPTConfig(len(world.words), world.longest))
    gpt.initialise(std=0.16)
    batches = world.sample(steps * batch).unflatten(0, (steps, batch))
    watch = partial(look, gpt)
    losses = train(gpt, batches, rate=rate, padding_id=PAD, look=watch)
    return gpt, losses
