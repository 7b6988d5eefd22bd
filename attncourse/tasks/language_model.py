"""Training a language model, with a bar that shows how it goes, and two models to compare with.

A batch is ids ``(b, n)``; a model returns logits ``(b, n, n_vocab)``, and row t scores the token
after t. Losses are in nats a token.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attncourse.gpt import next_token_loss
from attncourse.support.output import someone_looks_on
from attncourse.tasks.adam import Adam
from attncourse.tasks.bar import steps_bar

Loss = Callable[[Tensor, Tensor, int | None], Tensor]
RISE, FALL = 30, 0.8  # steps in which the rate rises, the share of them over which it falls


def train(
    model: nn.Module,
    batches: Iterable[Int[Tensor, "b n"]],
    *,
    rate: float = 0.003,
    padding_id: int | None = None,
    show: bool | None = None,
    loss: Loss = next_token_loss,
    look: Callable[[int], None] = lambda step: None,
) -> list[float]:
    """Train the model with Adam, a step a batch, and return the loss of every batch.

    The rate rises over the first steps and falls to 0 over the last four fifths. A bar shows the
    loss and the seconds. ``show`` says whether; unless given, where somebody looks on: in a
    terminal, in Colab and in Jupyter, not while the book is built. Ctrl-C (in a notebook
    *interrupt*) ends the training and keeps the model as it then is. It is left in ``eval()``.
    ``look`` is called with the number of steps behind it, before each step and at the end.
    Raises ``ValueError`` where there is no batch, or the rate is not above 0.
    """
    batches = batches if isinstance(batches, Tensor | list | tuple) else list(batches)
    if len(batches) == 0:
        raise ValueError("batches: expected one or more, got none")
    if not rate > 0:
        raise ValueError(f"rate: expected a number above 0, got {rate}")
    adam = Adam(model.parameters(), rate, betas=(0.9, 0.98))
    losses: list[float] = []
    model.train()
    show = someone_looks_on() if show is None else show
    with steps_bar(len(batches)) if show else nullcontext() as progress:
        try:
            for step, ids in enumerate(batches):
                look(step)
                share = height(step, len(batches))
                losses.append(training_step(model, ids, adam, share, padding_id, loss))
                if progress is not None:
                    progress.update(progress.task_ids[0], advance=1, loss=losses[-1])
        except KeyboardInterrupt:
            done = f"stopped after {len(losses)} of {len(batches)} steps"
            print(f"{done}; the model stays as it is", file=sys.stderr)
    model.zero_grad()
    model.eval()
    look(len(losses))
    return losses


def training_step(
    model: nn.Module,
    ids: Int[Tensor, "b n"],
    adam: Adam,
    share: float = 1.0,
    padding_id: int | None = None,
    loss: Loss = next_token_loss,
) -> float:
    """Take one step downhill on the loss of a batch, at a share of the rate; return that loss."""
    logits = model(ids)  # (b, n, n_vocab)
    cost = loss(logits, ids, padding_id)
    adam.zero_grad()
    cost.backward()
    adam.step(share)
    return cost.item()


def height(step: int, steps: int) -> float:
    """Return the share of the full rate at a step: it rises, stays, and falls in a line to 0."""
    return min(1, (step + 1) / RISE, (1 - step / steps) / FALL)


@torch.no_grad()
def mean_loss(
    model: nn.Module, ids: Int[Tensor, "b n"], padding_id: int | None = None, batch: int = 500
) -> float:
    """Return the mean loss over all tokens of ids, in nats, read a batch at a time."""
    total, count = 0.0, 0
    for rows in ids.split(batch):
        targets = rows[:, 1:].numel()
        if padding_id is not None:
            targets = int((rows[:, 1:] != padding_id).sum())
        total += targets * next_token_loss(model.eval()(rows), rows, padding_id).item()
        count += targets
    return total / count


class Bigram(nn.Module):
    """A model that looks at one token: a row of logits for each, and nothing else.

    ``scores``, ``(n_vocab, n_vocab)``: row i scores what comes after token i.
    """

    def __init__(self, n_vocab: int):
        super().__init__()
        self.scores = nn.Embedding(n_vocab, n_vocab)
        nn.init.zeros_(self.scores.weight)

    def forward(self, ids: Int[Tensor, "*batch n"]) -> Float[Tensor, "*batch n n_vocab"]:
        """Return logits for the token after each of ids."""
        return self.scores(ids)


class Window(nn.Module):
    """A feed-forward model that looks at the last ``width`` tokens, each by a vector of its own.

    The vectors stand side by side and go through a hidden layer. Before the beginning the window
    sees a token of its own. Source: Bengio et al. (2003), A Neural Probabilistic Language Model.
    """

    def __init__(self, n_vocab: int, width: int = 3, d: int = 16, hidden: int = 128):
        super().__init__()
        self.width, self.outside = width, n_vocab
        self.tokens = nn.Embedding(n_vocab + 1, d)
        self.W_1 = nn.Linear(width * d, hidden)
        self.W_2 = nn.Linear(hidden, n_vocab)

    def forward(self, ids: Int[Tensor, "*batch n"]) -> Float[Tensor, "*batch n n_vocab"]:
        """Return logits for the token after each of ids."""
        ids = F.pad(ids, (self.width - 1, 0), value=self.outside)
        windows = self.tokens(ids.unfold(-1, self.width, 1))  # (..., n, width, d)
        return self.W_2(F.gelu(self.W_1(windows.flatten(-2))))


@dataclass
class LanguageModelRuns:
    """Three trainings or more, at the rate that did best: losses by step, and on fresh text."""

    rate: float
    models: list[nn.Module]
    runs: list[list[float]]
    tested: list[float]

    @property
    def median(self) -> float:
        """The median of the runs' losses on the text for testing."""
        return sorted(self.tested)[len(self.tested) // 2]


def at_its_best(
    build: Callable[[], nn.Module],
    batches: Callable[[int], Int[Tensor, "steps b n"]],
    test: Int[Tensor, "b n"],
    *,
    rates: Sequence[float],
    seeds: int = 3,
    padding_id: int | None = None,
) -> LanguageModelRuns:
    """Return a model trained from several seeds, at the rate with the least loss on a batch.

    ``batches(seed)`` are the texts of one training. The rates are tried with seed 0, and judged by
    the texts of the seed after the last, which neither training nor the test reads.
    """
    unread = batches(seeds)[0]

    def trained(rate: float, seed: int) -> tuple[nn.Module, list[float]]:
        torch.manual_seed(seed)
        model = build()
        return model, train(model, batches(seed), rate=rate, padding_id=padding_id, show=False)

    first = {rate: trained(rate, 0) for rate in rates}
    rate = min(rates, key=lambda rate: mean_loss(first[rate][0], unread, padding_id))
    runs = [first[rate], *(trained(rate, seed) for seed in range(1, seeds))]
    tested = [mean_loss(model, test, padding_id) for model, _ in runs]
    models, losses = zip(*runs, strict=True)
    return LanguageModelRuns(rate, list(models), list(losses), tested)


def floors_of_windows(
    ids: Int[Tensor, "b n"],
    widest: int,
    padding_id: int,
    shares: Float[Tensor, "b"] | None = None,
) -> list[float]:
    """Return the least mean loss of any model that sees 1, 2, … ``widest`` tokens, in nats.

    It is the entropy of the next token given the last ones, with the shares that ids have:
    ``shares`` are those of the rows, equal unless given. Of ids that are a sample it is too low
    where some windows are rare. Before a beginning stands padding.
    """
    kinds = int(ids.max()) + 1
    if kinds ** (widest + 1) > 2**62:
        raise ValueError(f"widest: too wide to be counted with {kinds} tokens, got {widest}")
    before = F.pad(ids, (widest, 0), value=padding_id)
    windows = before.unfold(-1, widest + 1, 1)[:, 1:]  # (b, n - 1, widest + 1), the target last
    codes = torch.zeros(windows.shape[:-1], dtype=torch.int64)
    for column in windows.unbind(-1):  # a number for each window
        codes = codes * kinds + column
    shares = torch.ones(len(ids)) if shares is None else shares
    counts = shares.double()[:, None] * (ids[:, 1:] != padding_id)
    codes, counts = merged(codes.flatten(), counts.flatten() / counts.sum())
    floors = []
    for width in range(1, widest + 1):
        narrow, whole = merged(codes % kinds ** (width + 1), counts)
        seen = merged(narrow // kinds, whole)[1]
        floors.append(float(torch.special.entr(whole).sum() - torch.special.entr(seen).sum()))
    return floors


def merged(codes: Int[Tensor, "n"], counts: Float[Tensor, "n"]) -> tuple[Tensor, Tensor]:
    """Return the different codes, and what each counts in all."""
    different, place = codes.unique(return_inverse=True)
    return different, torch.zeros(len(different), dtype=counts.dtype).index_add(0, place, counts)


def floor_of_window(ids: Int[Tensor, "b n"], width: int, padding_id: int) -> float:
    """Return the least mean loss of any model that sees ``width`` tokens."""
    return floors_of_windows(ids, width, padding_id)[-1]
