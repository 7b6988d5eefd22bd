"""Chapter 20: sequences of different lengths in one batch, and what a batch is worth.

``paddings`` compares what is said about the next token in a batch with what is said alone, for a
model with turned positions (the real one; five prompts of 5 to 34 tokens) and for one with learned
positions (chapter 13's GPT, trained on pronoun world, three seeds). ``shifted_losses`` gives that
GPT's loss on 2000 stories behind so many tokens of padding.

Measured, by ``python benchmarks/serving.py batches_timed``: seconds of one core until the first
word behind ``LENGTH`` tokens is there, and between two words, by batch, the least of three.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attncourse.gpt import GPT, GPTConfig, next_token_loss
from attncourse.llama import Llama
from attncourse.masking import causal_mask
from attncourse.serving import pad_left
from attncourse.tasks.language_model import train
from attncourse.tasks.lengths import machine
from attncourse.tasks.pronouns import PAD, PronounWorld
from attncourse.tasks.roofline import seconds_of

if TYPE_CHECKING:
    from attncourse.pretrained.byte_pairs import BytePairs

PROMPTS = (
    "Two, four, six,",
    "The capital of France is",
    "My cat is small, cute, and fluffy. She",
    "On the last day of autumn a boy found a map in his grandmother's kitchen, folded into an old",
    "A bicycle stays upright because its rider steers. When it begins to fall to the left, the "
    "front wheel is turned a little to the left as well, and the",
)
BEGUN = (
    "mary is small",
    "today john is quiet and brave . he",
    "the nurse is cute , funny and tall . she likes",
    "every morning vera is clever , small and fluffy . she sells",
)
LENGTH, BATCHES = 64, (1, 2, 4, 8, 16, 32)
STORIES, STEPS, ROOM = 2000, 350, 8  # ROOM: positions of the GPT beyond the longest story


def rows_padded(
    sequences: Sequence[Tensor], pad: int
) -> dict[str, Callable[[], tuple[Tensor, Tensor, Tensor, Tensor]]]:
    """Return five ways to make one batch: ids, positions, mask, and where each answer is."""
    ids, positions, mask = pad_left(sequences, pad)
    n = ids.shape[-1]
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    right = torch.full_like(ids, pad)
    for row, sequence in zip(right, sequences, strict=True):
        row[: len(sequence)] = sequence
    counted, causal = torch.arange(n).expand_as(ids), causal_mask(n).expand_as(mask)
    last = torch.full_like(lengths, n - 1)
    return {
        "left": lambda: (ids, positions, mask, last),
        "left, positions count the padding": lambda: (ids, counted, mask, last),
        "left, mask forgotten": lambda: (ids, positions, causal, last),
        "right, its own last token is read": lambda: (right, counted, causal, lengths - 1),
        "right, the last column is read": lambda: (right, counted, causal, last),
    }


@torch.no_grad()
def paddings(model: Llama | GPT, sequences: Sequence[Tensor], pad: int) -> dict[str, dict]:
    """Return each way's largest difference of a logit from alone, and how many likeliest agree."""
    alone = torch.stack([model(sequence)[-1] for sequence in sequences])  # (b, n_vocab)
    figures = {}
    for name, made in rows_padded(sequences, pad).items():
        ids, positions, mask, places = made()
        logits = model(ids, mask=mask, positions=positions)
        said = logits[torch.arange(len(ids)), places]
        same = said.argmax(-1) == alone.argmax(-1)
        figures[name] = {
            "difference": float(f"{(said - alone).abs().max():.2g}"),
            "same_token": int(same.sum()),
            "of": len(sequences),
        }
    return figures


def roomy_storyteller(seed: int, steps: int = STEPS) -> GPT:
    """Return Chapter 13's GPT after its training, with some positions that no story reaches."""
    world = PronounWorld(1 + seed)
    torch.manual_seed(seed)
    model = GPT(GPTConfig(len(world.words), world.longest + ROOM))
    train(model, world.sample(64 * steps).unflatten(0, (steps, 64)), padding_id=PAD, show=False)
    return model


@torch.no_grad()
def shifted_losses(model: GPT, n: int = STORIES) -> list[float]:
    """Return the mean loss of stories behind 0, 1, … ``ROOM`` tokens of masked padding.

    Positions count the padding.
    """
    stories = PronounWorld(1000).sample(n)
    length = stories.shape[-1]
    mask, losses = causal_mask(length), []
    for more in range(ROOM + 1):  # masked padding is no key: left out, only positions tell of it
        logits = model(stories, mask=mask, positions=torch.arange(length) + more)
        losses.append(round(float(next_token_loss(logits, stories, PAD)), 3))
    return losses


def measure_paddings(
    model: Llama, words: "BytePairs", seeds: Sequence[int] = range(3), steps: int = STEPS
) -> dict:
    """Measure paddings, as the page shows them."""
    if words.end is None:
        raise ValueError("words: expected a piece that ends a text, which pads here")
    prompts = [words.encode(text) for text in PROMPTS]
    world = PronounWorld()
    begun = [torch.tensor(world.beginning(text)) for text in BEGUN]
    learned = []
    for seed in seeds:
        gpt = roomy_storyteller(seed, steps)
        learned.append({"ways": paddings(gpt, begun, PAD), "shifted": shifted_losses(gpt)})
    return {
        "prompts": {text: len(ids) for text, ids in zip(PROMPTS, prompts, strict=True)},
        "turned": paddings(model, prompts, words.end),
        "begun": {text: len(ids) for text, ids in zip(BEGUN, begun, strict=True)},
        "learned": learned,
        "floor": round(world.entropy_rate(), 4),
    }


@torch.no_grad()
def time_batches(model: Llama, batches: Sequence[int] = BATCHES, times: int = 3) -> dict:
    """Return by batch the seconds to the first word and between two, and words a second of all."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for batch in batches:
        ids = torch.randint(model.config.n_vocab, (batch, LENGTH), generator=generator)
        first = seconds_of(lambda: model(ids, []), times)  # noqa: B023
        cache = model(ids, [])[1]
        next_one = seconds_of(lambda: model(ids[:, -1:], cache), times)  # noqa: B023
        rows.append(
            {
                "batch": batch,
                "first_ms": round(1e3 * first, 1),
                "next_ms": round(1e3 * next_one, 1),
                "words_a_second": round(batch / next_one, 1),
            }
        )
    return {"machine": machine(), "length": LENGTH, "rows": rows}
