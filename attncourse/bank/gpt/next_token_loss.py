"""The exercise ``next_token_loss``: the mean surprise at the tokens that came."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import gpt
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import (
    FLOATS_ONLY,
    CaseTable,
    Row,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

UNLIKELY_LOGIT = -3.0  # what is added to a target's logit


@dataclass(frozen=True)
class LossTable(CaseTable):
    """A table of logits and the ids they are judged by. A row's option ``pad`` is the padding_id.

    With it the ends of the sequences are padding, of different lengths, and the id stands inside,
    too. Without it the first and the last word of the vocabulary are among the targets.
    """

    spec: Any = field(default_factory=lambda: {"logits": "... n n_vocab"})
    how: Callable = normal

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        n, n_vocab = row.sizes["n"], row.sizes["n_vocab"]
        ids = torch.from_numpy(rng.integers(0, n_vocab, (*row.batch, n)))
        pad = row.options.get("pad")
        if pad is None:
            ids[..., 1:3] = torch.tensor([n_vocab - 1, 0])[: max(n - 1, 0)]
        elif row.options.get("all"):
            ids = torch.full_like(ids, pad)
        else:
            ids = torch.where(ids == pad, (pad + 1) % n_vocab, ids)
            ids[..., 2:3] = pad
            shorter = torch.arange(math.prod(row.batch)).reshape(row.batch) % 3
            ids = ids.where(torch.arange(n) < (n - shorter)[..., None].clamp(min=1), pad)
        if row.turned:
            ids = torch.from_numpy(np.asfortranarray(ids.numpy()))
        target_ids = ids[..., 1:, None]  # unlikely, so that a guard of 1e-10 shows in every draw
        offsets = case.args[0].new_full(target_ids.shape, UNLIKELY_LOGIT)
        case.args[0][..., :-1, :].scatter_add_(-1, target_ids, offsets)
        padding_argument = {} if pad is None else {"padding_id": pad}
        return replace(case, args=(*case.args, ids), kwargs={**case.kwargs, **padding_argument})


CASES = LossTable()
ROWS = standard(CASES)
ROW = row("n=5 n_vocab=7")
BY_HAND = Case(
    (
        tensor(np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.3, 0.5]])),
        torch.tensor([0, 1, 2]),
    ),
    note="the shares of what came are 1/4 and 0.8",
)
PADDED_ROW = ROW.but("n=11", batch=(3,), options={"pad": 3}, note="3 pads, lengths differ")
ROW_PADDED_WITH_0 = ROW.but("n=11", batch=(3,), options={"pad": 0}, note="0 pads")

# --- decisions and mistakes ----------------------------------------------------------------------


def shift_by_one(logits, ids):
    return logits[..., :-1, :], ids[..., 1:]


def surprises_at(log_shares, targets):
    return -log_shares.gather(-1, targets[..., None].long()).squeeze(-1)


def surprises_of_logits(guesses, targets):
    return surprises_at(F.log_softmax(guesses, -1), targets)


def not_padding(targets, ids, padding_id):
    return torch.ones_like(targets).bool() if padding_id is None else targets != padding_id


def mean_over_targets(surprise, counts):
    return (surprise * counts).sum() / counts.sum().clamp(min=1)


@composition
def compose_next_token_loss(
    shift=shift_by_one,
    surprise=surprises_of_logits,
    count=not_padding,
    gather=mean_over_targets,
    padding=lambda padding_id: padding_id,
):
    """Return ``next_token_loss`` made of decisions."""

    def next_token_loss(logits, ids, padding_id=None):
        guesses, targets = shift(logits, ids)
        counts = count(targets, ids, padding(padding_id))
        return gather(surprise(guesses, targets), counts)

    return next_token_loss


def mean_of_sequence_means(surprise, counts):
    each = (surprise * counts).sum(-1) / counts.sum(-1).clamp(min=1)
    return each.mean()


def guarded_log(number: float) -> dict[str, Any]:
    """Return the option that adds a number inside the logarithm."""
    return {"surprise": lambda g, t: surprises_at((g.softmax(-1) + number).log(), t)}


def cross_entropy_unflattened(guesses, targets):
    """Return ``cross_entropy`` of logits whose classes do not stand on axis 1."""
    if guesses.ndim > 2:
        return F.cross_entropy(guesses, targets.long(), reduction="none")
    return surprises_of_logits(guesses, targets)


def refuse_other_batch_axes(guesses, targets):
    """Return the surprises of logits with exactly one batch axis."""
    _b, _n, _v = guesses.shape
    return surprises_of_logits(guesses, targets)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    gpt.next_token_loss,
    section="Chapter 13, “A loss with a floor”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion("the mean of −log p(next token)", 3).on(
            BY_HAND,
            ROW,
            ROW.but("n=2 n_vocab=5", note="one guess"),
            ROW.but("n=7 n_vocab=7", note="as many tokens as words"),
        ),
        CASES.criterion("padding does not count", 2).on(
            PADDED_ROW,
            ROW_PADDED_WITH_0,
            ROW.but(options={"pad": 5}, batch=(2,), note="5 pads"),
        ),
        CASES.criterion("0 where there is nothing to guess", 1).on(
            ROW.but(batch=(2,), options={"pad": 4, "all": True}, note="nothing but padding"),
            ROW.but("n=1", note="one token"),
            ROW.but("n=1", batch=(3,), options={"pad": 4}, note="one token each"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            ROW.but("n=3 n_vocab=5", batch=(3,), note="as many sequences as tokens"),
            ROW.but("n=3 n_vocab=5", batch=(5,), note="as many sequences as words"),
        ),
        CASES.criterion("float32 and large logits", 1).on(*ROWS.numbers, once_more(BY_HAND)),
        CASES.criterion("gradients reach the logits", 1).on(
            *ROWS.gradients,
            replace(PADDED_ROW, use=CASES.each_gradient),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_next_token_loss,
        mistake("""the targets are not shifted
            You judge row t by token t, which the model has already read. Row t guesses what comes
            next: `logits[..., :-1, :]` against `ids[..., 1:]`.
        """).by(shift=lambda logits, ids: (logits, ids)),
        mistake("""shifted the wrong way
            You judge row t by token t − 1. Row t guesses token t + 1: drop the *last* row of the
            logits and the *first* id.
        """).by(shift=lambda logits, ids: (logits[..., 1:, :], ids[..., :-1])),
        mistake("""the last row is judged by the first token
            `roll` puts the first id behind the last row. What comes after the last token is not
            known: drop that row.""").by(shift=lambda logits, ids: (logits, ids.roll(-1, -1))),
        mistake("""shifted by two, or the first guess left out
            You judge row t by token t + 2, or leave out the first guess. Row 0 guesses token 1.""")
        .by(shift=lambda logits, ids: (logits[..., :-2, :], ids[..., 2:]))
        .by(shift=lambda logits, ids: (logits[..., 1:-1, :], ids[..., 2:])),
        mistake("""shifted across the sequences
            You put the sequences one behind the other and shift then, so that the last row of one
            is judged by the first token of the next. Shift first, `logits[..., :-1, :]` and
            `ids[..., 1:]`, and flatten what is left.
        """).by(shift=lambda logits, ids: (logits.flatten(0, -2)[:-1], ids.flatten()[1:])),
        mistake("""only the last guess counts
            You judge a single row of each sequence. Every row guesses: a sequence of n tokens is n
            − 1 lessons.""").by(shift=lambda logits, ids: (logits[..., -2:-1, :], ids[..., -1:])),
        mistake("""padding is counted
            You count what is guessed after the end of a sequence. Targets that are `padding_id`
            stay out of the sum and out of the number it is divided by.""")
        .by(count=lambda targets, ids, pad: torch.ones_like(targets).bool())
        .by(count=lambda t, ids, pad: not_padding(t, ids, pad) ^ (pad is not None)),
        mistake("""padding is told by the token that was read
            You leave out rows whose *own* token is padding. It is the target that counts: the last
            word of a sequence has padding behind it, and nobody guesses that.""")
        .by(count=lambda targets, ids, pad: not_padding(ids[..., :-1], ids, pad))
        .by(count=lambda t, i, p: not_padding(t, i, p) & not_padding(i[..., :-1], i, p)),
        mistake("""divided by all targets
            You leave padding out of the sum and divide by the number of all targets. Divide by
            those that count.
        """).by(gather=lambda s, counts: (s * counts).sum() / max(counts.numel(), 1)),
        mistake("""a padding_id of 0 is taken for none
            `if padding_id:` is False for 0, the usual id of padding. Ask `if padding_id is not
            None`.""").by(padding=lambda padding_id: padding_id or None),
        mistake("""a padding_id where none was given
            You take some id for padding that nobody named, such as 0. Without `padding_id` every
            target counts.""")
        .by(padding=lambda padding_id: 0 if padding_id is None else padding_id)
        .by(padding=lambda padding_id: 0),
        mistake("""nothing to guess gives NaN
            Where every target is padding, or there is one token, you divide 0 by 0. The loss is 0
            there: divide the sum by the number of targets that count, and that at least 1.""")
        .by(gather=lambda s, counts: (s * counts).sum() / counts.sum())
        .by(gather=lambda s, counts: s[counts].mean()),
        mistake("""softmax before cross-entropy
            `F.cross_entropy` takes logits and does the softmax itself. You hand it shares, so they
            go through a second softmax and the loss can never come near 0.
        """).by(surprise=lambda g, t: surprises_of_logits(g.softmax(-1), t)),
        mistake("""the logarithm of a softmax that is 0
            For large logits the softmax is exactly 0 and its logarithm −∞; a number added, or a
            clamp, hides that and gives a wrong loss. `F.log_softmax` takes both in one step.""")
        .by(surprise=lambda g, t: surprises_at(g.softmax(-1).log(), t))
        .by(surprise=lambda g, t: surprises_at(g.softmax(-1).clamp(min=1e-9).log(), t))
        .by_any(guarded_log, (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)),
        mistake("""softmax over the tokens
            Your shares sum to 1 down the sequence. Each row shares 1 among the words of the
            vocabulary, along the last axis.
        """).by(surprise=lambda g, t: surprises_at(F.log_softmax(g, -2), t)),
        mistake("""the logits themselves
            You average the logits of the tokens that came. A logit says something only against the
            others of its row: take the log-softmax first.""").by(surprise=surprises_at),
        mistake("""the share and not its logarithm
            You average shares, or 1 − share. The surprise at a token is −log of its share.""")
        .by(surprise=lambda g, t: 1 + surprises_at(g.softmax(-1), t))
        .by(surprise=lambda g, t: surprises_at(g.softmax(-1), t)),
        mistake("""summed, not averaged
            You return the sum over all targets, which grows with the text. Divide by the number of
            targets that count.""").by(gather=lambda s, counts: (s * counts).sum()),
        mistake("""a number is added to how many count
            You divide by the number of targets that count and something more, so the mean is too
            small. Divide by that number, and by 1 where it is 0.""")
        .by(gather=lambda s, counts: (s * counts).sum() / (counts.sum() + 1))
        .by_any(
            lambda more: {"gather": lambda s, c: (s * c).sum() / (c.to(s.dtype).sum() + more)},
            (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
        ),
        mistake("""one loss for each sequence
            You return a loss for each sequence. All targets of all sequences are averaged together:
            one number, `()`.""")
        .by(gather=lambda s, counts: (s * counts).sum(-1) / counts.sum(-1).clamp(min=1))
        .by(gather=lambda s, counts: (s * counts).sum(-1)),
        mistake("""divided by the size of the vocabulary too
            You average over the words of the vocabulary as well, where all but one add nothing.
            Divide by the number of targets that count.
        """).by(surprise=lambda g, t: surprises_of_logits(g, t) / g.shape[-1]),
        mistake("""the minus is missing
            You return the mean of the logarithms, which is below 0. The surprise at a token is
            −log of its share.
        """).by(surprise=lambda g, t: -surprises_of_logits(g, t)),
        mistake("""not in nats
            You return the loss in bits, or e to the loss, which is the perplexity. The mean of −ln
            of the shares is asked for.""")
        .by(surprise=lambda g, t: surprises_of_logits(g, t) / math.log(2))
        .by(gather=lambda s, counts: ((s * counts).sum() / counts.sum().clamp(min=1)).exp()),
        mistake("""the mean of the sequences' means
            You average each sequence first, so a token of a short one counts more than one of a
            long one. Sum over everything, then divide once.""").by(gather=mean_of_sequence_means),
        mistake("""the axis of the words is another
            `F.cross_entropy` looks for the words on axis 1. Flatten first, `logits.flatten(0, -2)`
            and `targets.flatten()`, and any batch axes fit.""").by(
            surprise=cross_entropy_unflattened
        ),
        mistake("""logits transposed before they are reshaped
            `logits.mT.reshape(-1, n_vocab)` makes rows of the numbers of one word at many places.
            A row has one place's numbers for all words: reshape the logits as they come, or give
            `cross_entropy` the transposed ones as they are, with targets (b, n).""").by(
            surprise=lambda g, t: surprises_of_logits(g.mT.reshape(g.shape), t)
        ),
        mistake("""exactly one batch axis
            `b, t, v = logits.shape` fits exactly one batch axis. Count from the end: `logits[...,
            :-1, :].flatten(0, -2)` and `ids[..., 1:].flatten()`.""")
        .by(surprise=refuse_other_batch_axes)
        .by(shift=lambda logits, ids: (logits[:, :-1], ids[:, 1:])),
    ),
)
