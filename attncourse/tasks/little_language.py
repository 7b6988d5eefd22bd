"""A language of 162 sentences, small enough to judge every sentence that a model writes.

Its one form: *the*, perhaps an adjective, a noun in the singular or plural, perhaps an adverb, a
verb and a reflexive pronoun that agree with the noun, a full stop. After Chomsky (1957), Syntactic
Structures, chapter 4, and the agreement tests of Linzen et al. (2016). Read and written by a model
of one attention head.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.kqv import AttentionHead
from attncourse.masking import causal_mask, combine, padding_mask

PAD, START = 0, 1
NOTHING = -100  # the target where there is no next word; cross_entropy does not count it


def grammar() -> Iterator[list[str]]:
    """Yield all sentences, each a list of words."""
    for noun, reflexive in ("king", "himself"), ("queen", "herself"), ("robot", "itself"):
        for many in (False, True):
            for adjective in ([], ["old"], ["tall"]):
                for adverb in ([], ["often"], ["now"]):
                    for verb in ("admire", "see", "know"):
                        subject = ["the", *adjective, noun + "s" * many, *adverb]
                        action = [verb if many else verb + "s", "themselves" if many else reflexive]
                        yield [*subject, *action, "."]


SENTENCES = list(grammar())
VALID = {" ".join(words) for words in SENTENCES}
VOCABULARY_WORDS = ["<pad>", "<start>", *sorted({word for words in SENTENCES for word in words})]
LONGEST_SENTENCE = 1 + max(map(len, SENTENCES))


def encode(sentences: list[list[str]]) -> Tensor:
    """Return ids ``(b, 8)``: start, words, padding. Raises ``ValueError`` for what does not fit."""
    ids = torch.full((len(sentences), LONGEST_SENTENCE), PAD)
    for row, words in zip(ids, sentences, strict=True):
        unknown = [word for word in words if word not in VOCABULARY_WORDS[2:]]
        if unknown or len(words) >= LONGEST_SENTENCE:
            raise ValueError(
                f"expected at most {LONGEST_SENTENCE - 1} words of the language, got {words}"
            )
        row[: len(words) + 1] = torch.tensor([START, *map(VOCABULARY_WORDS.index, words)])
    return ids


def split_sentences() -> tuple[Tensor, Tensor]:
    """Return the sentences as ids, always in the same random order: 122 to train on, 40 to test."""
    order = torch.randperm(len(SENTENCES), generator=torch.Generator().manual_seed(5))
    ids = encode(SENTENCES)[order]
    return ids[:122], ids[122:]


TRAINED, UNSEEN = split_sentences()


def pairs(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return the words to read and the next word to guess at every place, ``(b, n - 1)`` each."""
    return ids[:, :-1], ids[:, 1:].masked_fill(ids[:, 1:] == PAD, NOTHING)


def guess_next(batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the task: sentences drawn from those to train on, and at every place the next word."""
    return pairs(TRAINED[torch.randint(len(TRAINED), (batch,), generator=generator)])


def loss_of(logits: Tensor, target: Tensor) -> float:
    """Return the mean surprise of a guess, in nats; places without a target do not count."""
    return F.cross_entropy(logits.flatten(0, 1), target.flatten()).item()


def floor() -> float:
    """Return the least loss in training of a model that guesses from beginnings, in nats a guess.

    N sentences, equally likely, carry ln N nats each, however their words are guessed in turn.
    """
    guesses = (pairs(TRAINED)[1] != NOTHING).sum().item()
    return len(TRAINED) * math.log(len(TRAINED)) / guesses


def one_ahead(n: int) -> Tensor:
    """Return a causal mask that is wrong by one: each token sees the next one too. ``(n, n)``."""
    return torch.ones(n, n, dtype=torch.bool).tril(1)


class NextWordReader(nn.Module):
    """Guesses each next word: vectors of word and place, plus one head, then a linear layer.

    mask: makes the mask ``(n, n)`` for n tokens. after: whether it is applied after the softmax
    (wrong) in place of before. ``forward`` takes ids ``(b, n)`` and returns ``(b, n, words)``.
    """

    def __init__(self, mask: Callable[[int], Tensor] = causal_mask, after=False, d: int = 32):
        super().__init__()
        self.mask, self.after = mask, after
        self.word, self.place = nn.Embedding(len(VOCABULARY_WORDS), d), nn.Embedding(16, d)
        self.head, self.out = AttentionHead(d, d), nn.Linear(d, len(VOCABULARY_WORDS))

    def embed(self, ids: Tensor) -> Tensor:
        """Return each word's vector plus its place's, ``(b, n, d)``."""
        return self.word(ids) + self.place(torch.arange(ids.shape[-1]))

    def logits(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return a score for each word as the next, ``(b, n, words)``, from ``(b, n, d)``."""
        weights = self.head.weights(x) * mask if self.after else self.head.weights(x, mask)
        return self.out(x + weights @ self.head.W_v(x))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the next word at each place."""
        n = ids.shape[-1]
        real = padding_mask((ids != PAD).sum(-1), n)  # (b, 1, n)
        return self.logits(self.embed(ids), combine(self.mask(n), real))


@torch.no_grad()
def from_beginnings(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the logits of each guess, made with the words before it alone, ``(b, n, words)``."""
    return torch.stack([model(ids[:, : i + 1])[:, -1] for i in range(ids.shape[1])], dim=1)


@torch.no_grad()
def write(model: nn.Module, count: int = 400, seed: int = 0) -> list[str]:
    """Return sentences of at most 12 words, each word drawn from the model's own guess."""
    generator, ids = torch.Generator().manual_seed(seed), torch.full((count, 1), START)
    for _ in range(12):
        guess = model(ids)[:, -1].softmax(-1)  # (count, words)
        ids = torch.cat([ids, torch.multinomial(guess, 1, generator=generator)], dim=1)
    texts = [" ".join(VOCABULARY_WORDS[i] for i in row[1:]) for row in ids.tolist()]
    return [text.split(" .")[0] + " ." if " ." in text else text for text in texts]
