"""The exercise ``filter_logits``: the logits of the likely tokens, and −∞ for the others."""

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from attncourse import gpt
from attncourse.bank.gpt.cases import FILTER_CASES, FILTER_ROWS, LOGITS_BY_HAND, ROWS, SEVEN_TOKENS
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing.cases import FLOATS_ONLY, once_more
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

TOP_3, TOP_P, TOP_4_AND_P = {"top_k": 3}, {"top_p": True}, {"top_k": 4, "top_p": True}
STEEP_AND_FLAT = tensor(np.log([[0.25, 0.72, 0.01, 0.02], [0.3, 0.2, 0.27, 0.23]]))
TIED_LOGITS = tensor([[1, 2, 0, 2, 2], [3, 1, 1, 1, 0]])
LOGITS_WITH_HOLES = tensor(
    [[0.0, -math.inf, 1.0, 2.0, -math.inf], [1.5, 0.5, -math.inf, -1.0, 3.0]]
)

TOP_TWO = Case((LOGITS_BY_HAND,), {"top_k": 2}, note="shares 0.1, 0.5, 0.15, 0.25")

# --- decisions and mistakes ----------------------------------------------------------------------


def lower_ids_first(logits):
    return logits.argsort(dim=-1, descending=True, stable=True)


def rank_below_k(logits, rank, k):
    return rank < k


def shares_before_p(likely, p):
    """Return which of the shares to keep, sorted from the likeliest on."""
    return likely.cumsum(-1) - likely < p


def keep_first_and_shift(likely, p):
    """Return which shares to keep when the first is never tested and the rest lag by one."""
    dropped = likely.cumsum(-1) >= p
    return ~torch.cat([dropped[..., :1], dropped[..., :-1]], -1)


def scatter_to_ids(keep, order):
    return torch.zeros_like(keep).scatter(-1, order, keep)


@composition
def compose_filter_logits(
    order=lower_ids_first,
    keep_k=rank_below_k,
    likely=lambda logits: logits.double().softmax(-1),
    keep_p=shares_before_p,
    put_back=scatter_to_ids,
    place=lambda logits, order: logits,
    fill=lambda logits, keep: logits.masked_fill(~keep, -math.inf),
    steps=lambda top_k, top_p: ("k", "p"),
    measured_logits=lambda logits, original: logits,
    finish=lambda logits, original: logits,
):
    """Return ``filter_logits`` made of decisions; p is measured on ``measured_logits``."""

    def filter_logits(logits, top_k=None, top_p=None):
        original = logits
        for step in steps(top_k, top_p):
            if step == "k" and top_k is not None:
                rank = order(original).argsort(-1)
                logits = fill(logits, keep_k(original, rank, top_k))
            if step == "p" and top_p is not None:
                measured = measured_logits(logits, original)
                by_likely = order(measured)
                shares = likely(measured).gather(-1, by_likely)
                logits = fill(logits, put_back(keep_p(shares, top_p), by_likely))
                logits = place(logits, by_likely)
        return finish(logits, original)

    return filter_logits


def higher_ids_first(logits):
    return logits.shape[-1] - 1 - lower_ids_first(logits.flip(-1))


def last_of_equal_first(logits):
    """Return the order in which, of equally likely tokens, the last id comes first."""
    return (lower_ids_first(logits.roll(1, -1)) - 1) % logits.shape[-1]


def at_least_the_kth(logits, rank, k):
    """Return which logits reach the k-th, ties included."""
    return logits >= logits.topk(k, -1).values[..., -1:]


def fill_with_0(logits, keep):
    """Return the logits with 0 in place of those dropped."""
    return logits.masked_fill(~keep, 0)


def fill_with(number: float) -> dict[str, Any]:
    return {"fill": lambda logits, keep: logits.masked_fill(~keep, number)}


def order_of_ids(logits):
    ids = torch.arange(logits.shape[-1])
    return ids.expand(logits.shape)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    gpt.filter_logits,
    section="Chapter 13, “Which token to take”",
    difficulty=3,
    minutes=25,
    criteria=(
        FILTER_CASES.criterion("top-k keeps the k likeliest, −∞ elsewhere", 2).on(
            TOP_TWO,
            SEVEN_TOKENS.but(arguments=TOP_3),
            ROWS.but(arguments=TOP_3),
            Case((TIED_LOGITS,), {"top_k": 2}, note="ties: the lower id stays"),
            Case((TIED_LOGITS,), {"top_k": 3}, note="ties: the lower id stays"),
        ),
        FILTER_CASES.criterion("top-p keeps the smallest set that reaches p", 3).on(
            Case((LOGITS_BY_HAND,), {"top_p": 0.6}, note="shares 0.1, 0.5, 0.15, 0.25"),
            Case((LOGITS_BY_HAND,), {"top_p": 0.4}, note="the likeliest alone has 0.5"),
            SEVEN_TOKENS.but(arguments=TOP_P),
            ROWS.but(arguments=TOP_P),
            ROWS.but("n_vocab=13", arguments=TOP_P),
        ),
        FILTER_CASES.criterion("both: p is measured on what k left", 2).on(
            Case((LOGITS_BY_HAND,), {"top_k": 2, "top_p": 0.66}, note="of the two, 2/3 and 1/3"),
            SEVEN_TOKENS.but(arguments=TOP_4_AND_P),
            ROWS.but("n_vocab=11", arguments=TOP_4_AND_P),
        ),
        FILTER_CASES.criterion("one token or all; what is −∞ stays so", 1).on(
            SEVEN_TOKENS,
            SEVEN_TOKENS.but(arguments={"top_k": 1}, note="one token"),
            SEVEN_TOKENS.but(arguments={"top_k": 7}, note="all tokens"),
            SEVEN_TOKENS.but(arguments={"top_p": 1.0}, note="all tokens"),
            SEVEN_TOKENS.but(arguments={"top_p": 1e-6}, note="one token always stays"),
            Case((LOGITS_WITH_HOLES,), {"top_k": 2}, note="some are −∞"),
            Case((LOGITS_WITH_HOLES,), {"top_p": 0.8}, note="some are −∞"),
            Case((LOGITS_WITH_HOLES,), {"top_k": 4}, note="some are −∞"),
        ),
        FILTER_CASES.criterion("batches", 1).on(
            *(table_row.but(arguments=TOP_P) for table_row in FILTER_ROWS.batches),
            Case((STEEP_AND_FLAT,), {"top_p": 0.7}, note="one row is steep, one is flat"),
            *(table_row.but(arguments=TOP_3) for table_row in FILTER_ROWS.batches[:3]),
        ),
        FILTER_CASES.criterion("float32, large and small logits", 1).on(
            *(table_row.but(arguments={"top_p": 0.7}) for table_row in FILTER_ROWS.numbers),
            FILTER_ROWS.single.but(arguments=TOP_3),
            once_more(TOP_TWO),
        ),
        FILTER_CASES.criterion("gradients reach what is kept", 1).on(
            *(table_row.but("n_vocab=13", arguments=TOP_3) for table_row in FILTER_ROWS.gradients),
            *(table_row.but("n_vocab=13", arguments=TOP_P) for table_row in FILTER_ROWS.gradients),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_filter_logits,
        mistake("""ties are all kept
            You keep every token that is as likely as the k-th, maybe more than k. Of equal ones the
            lower ids stay: rank them with a stable sort, and keep the ranks below k.
        """).by(keep_k=at_least_the_kth),
        mistake("""ties go to the higher id
            Of tokens that are equally likely you keep those with higher ids. A stable descending
            sort, `argsort(descending=True, stable=True)`, puts the lower ones first.
        """).by(order=higher_ids_first),
        mistake("""ties are left to chance
            Which of equally likely tokens `topk` or an unstable sort puts first is not settled. The
            lower ids are to stay: `argsort(dim=-1, descending=True, stable=True)`.""")
        .by(keep_k=lambda x, rank, k: last_of_equal_first(x).argsort(-1) < k)
        .by(keep_k=lambda x, rank, k: (0 * rank).scatter(-1, x.topk(k).indices, 1).bool()),
        mistake("""p is what is dropped
            You drop the least likely tokens up to a share of p, and keep the rest. It is what is
            kept that has to reach p: drop from behind no more than 1 − p.""")
        .by(keep_p=lambda s, p: (s.flip(-1).cumsum(-1).flip(-1) > p) | (s.cumsum(-1) == s))
        .by(keep_p=lambda s, p: shares_before_p(s, 1 - p)),
        mistake("""the token that crosses p is left out
            You keep tokens while their sum is at most p, so the set stops short of p. Ask what the
            likelier ones have *before* a token: `cumsum − share < p`.""")
        .by(keep_p=lambda likely, p: likely.cumsum(-1) <= p)
        .by(
            keep_p=lambda likely, p: (
                (likely.cumsum(-1) <= p) | (torch.arange(likely.shape[-1]) == 0)
            )
        ),
        mistake("""the likeliest is dropped where it is enough
            You move what is dropped one place on and leave the first place as it was, so where the
            likeliest token reaches p alone, nothing stays. It always does: `remove[..., 0] =
            False`.
        """).by(keep_p=keep_first_and_shift),
        mistake("""one token too many after p
            Your set goes one token beyond the one with which it reaches p. It is to be the smallest
            that does.
        """).by(keep_p=lambda s, p: s.cumsum(-1) - s - F.pad(s, (1, 0))[..., :-1] < p),
        mistake("""p counted in the order of the ids
            You add up the shares as they stand in the row. Sort first: the likeliest are added
            before the others.""")
        .by(order=order_of_ids, keep_k=at_least_the_kth)
        .by(
            likely=lambda x: x.double().softmax(-1),
            order=order_of_ids,
            keep_k=lambda x, rank, k: lower_ids_first(x).argsort(-1) < k,
        ),
        mistake("""the least likely are kept
            You sort in ascending order, and keep the tokens from the wrong end.
            `descending=True`.""")
        .by(order=lambda x: x.argsort(dim=-1, stable=True))
        .by(keep_k=lambda x, rank, k: rank >= x.shape[-1] - k)
        .by(keep_k=lambda x, rank, k: x.argsort(dim=-1, stable=True).argsort(-1) < k),
        mistake("""not put back to the ids
            What you keep is counted along the *sorted* shares and applied to the row as it stands.
            Put it back: `scatter(-1, order, keep)`, or gather by each token's rank.""")
        .by(put_back=lambda keep, order: keep, keep_k=lambda x, rank, k: order_of_ids(x) < k)
        .by(put_back=lambda keep, order: keep)
        .by(put_back=lambda keep, order: keep.gather(-1, order)),
        mistake("""`argsort` taken for the ranks
            `argsort` says which token stands in each place, and you read it as the place of each
            token. The `argsort` of it gives the ranks.
        """).by(keep_k=lambda x, rank, k: lower_ids_first(x) < k),
        mistake("""what should stay is dropped
            You put −∞ where a token is kept. `masked_fill` fills where its mask is True: hand it
            what goes, `~keep`.""")
        .by(fill=lambda logits, keep: logits.masked_fill(keep, -math.inf))
        .by(keep_k=lambda logits, rank, k: rank >= k)
        .by(keep_p=lambda likely, p: ~shares_before_p(likely, p)),
        mistake("""+∞ in place of −∞
            What is dropped gets +∞, and the softmax of that row is NaN. A share of 0 is a logit of
            −∞.""").by(fill=lambda logits, keep: logits.masked_fill(~keep, math.inf)),
        mistake("""a gradient reaches what is dropped
            You add −∞ to the logits that go, say as the logarithm of 0, so that they are part of
            the result and get a gradient. What is dropped has none: `masked_fill`, or
            `torch.where`, puts −∞ in its place.
        """).by(fill=lambda logits, keep: logits + keep.to(logits.dtype).log()),
        mistake("""returned in sorted order
            You return the logits sorted by size. Each keeps its place, which is its token.""")
        .by(finish=lambda x, original: x.sort(-1, descending=True, stable=True).values)
        .by(place=lambda logits, order: logits.gather(-1, order)),
        mistake("""a number in place of −∞
            What is dropped gets a number. With 0 it can still be drawn; with −1e9 too, where all
            logits are low. Use −∞.""")
        .by(fill=fill_with_0)
        .by(fill=lambda x, keep: x * keep)
        .by(*({"fill": lambda x, keep, low=low: x + low * ~keep} for low in (-1e4, -1e9, -1e10)))
        .by(
            *(  # also for what was −∞ before; the lowest number for None
                {"finish": lambda x, original, low=low: x.nan_to_num(neginf=low)}
                for low in (None, 0, -1e4, -1e8, -1e9, -1e10, -1e30)
            )
        )
        .by_any(fill_with, Between(-3.4e38, -1.0)),
        mistake("""shares or their logarithms in place of logits
            You return probabilities, or their logarithms. Logits come in and logits go out: those
            that stay come back as they were.""")
        .by(finish=lambda x, original: x.softmax(-1))
        .by(finish=lambda x, original: x.log_softmax(-1)),
        mistake("""p is measured before k
            With both, you measure p on all tokens. Top-k comes first, and what it leaves is shared
            out anew before p is counted.""")
        .by(measured_logits=lambda x, original: original)
        .by(steps=lambda top_k, top_p: ("p", "k")),
        mistake("""one of the two is ignored
            You use only one of top_k and top_p. Where both are given: first top-k, then top-p on
            the result.""")
        .by(steps=lambda top_k, top_p: ("p",) if top_k is None else ("k",))
        .by(steps=lambda top_k, top_p: "k")
        .by(steps=lambda top_k, top_p: "p"),
        mistake("""k + 1 tokens, or k − 1
            You are off by one: exactly k tokens stay. Ranks count from 0, so it is `rank < k`.""")
        .by(keep_k=lambda x, rank, k: rank <= k)
        .by(keep_k=lambda x, rank, k: rank < max(k - 1, 1)),
        mistake("""p taken for the least share of one token
            You keep tokens whose own share is at least p, or 1 − p, or p times the largest. It is
            the sum of the likeliest that has to reach p.""")
        .by(keep_p=lambda s, p: s >= p)
        .by(keep_p=lambda s, p: s >= 1 - p)
        .by(keep_p=lambda s, p: s >= s[..., :1] * p),
        mistake("""p is counted on what are no shares
            You count p on the logits themselves, or on their exponentials. They are no shares: take
            the softmax first.""")
        .by(likely=lambda x: x.double())
        .by(likely=lambda x: x.double().exp()),
        mistake("""one cut for all rows
            You find one threshold and use it for every row of the batch. Each row is cut by
            itself.""")
        .by(
            keep_k=lambda x, rank, k: x >= x.reshape(-1, x.shape[-1])[0].topk(k).values[-1],
            keep_p=lambda s, p: shares_before_p(s.reshape(-1, s.shape[-1])[:1], p).expand(s.shape),
        )
        .by(keep_k=lambda x, rank, k: x >= x.flatten().topk(k).values[-1]),
    ),
)
