"""The exercise ``attend_with_cache``: the newest tokens look at all before them, which are kept."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from attncourse import gpt
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing import mistakes
from attncourse.checks.writing.cases import FLOATS_ONLY, CaseTable, Row, once_more, row, standard
from attncourse.checks.writing.decisions import Attention
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CacheTable(CaseTable):
    """A table of new queries, keys and values, and a cache of ``c`` tokens where c is given."""

    spec: Any = field(
        default_factory=lambda: {
            "query": "... m d_k",
            "key": "... m d_k",
            "value": "... m d_v",
        }
    )

    def case(self, rng: Rng, row: Row) -> Case:
        case = super().case(rng, row)
        if "c" not in row.sizes:
            return case
        old = {"old keys": "... c d_k", "old values": "... c d_v"}
        cache = tuple(self.arguments(rng, old, replace(row, zero=(), factor=1.0)).values())
        if row.use is not None:
            return replace(case, args=(*case.args, *cache))
        call_text = (
            f"attend_with_cache(query, key, value, cache), a cache of {row.sizes['c']} tokens"
        )
        return replace(case, kwargs={"cache": cache}, shown=call_text)

    @property
    def each_gradient(self) -> Callable:
        return gradients_of("query", "key", "value")


def gradients_of(*names: str) -> Callable:
    """Return the caller that asks for the gradient of one argument after the other."""
    return partial(callers.attend_with_each_gradient, names, tuple(range(len(names))))


CASES = CacheTable()
ROWS = standard(CASES, d_k=4)
NEW_TOKENS = row("m=3 d_k=4 d_v=5")
ONE_NEW_TOKEN = row("m=1 c=6 d_k=4 d_v=3", note="one new token, six before")
THREE_NEW_TOKENS = row("m=3 c=5 d_k=4 d_v=7", note="three new tokens, five before")
BY_HAND = Case(
    (tensor([[0, 0]]), tensor([[1, 0]]), tensor([[9, 2]])),
    {"cache": (tensor([[0, 1], [5, 5]]), tensor([[3, 1], [0, 6]]))},
    note="a query of 0 averages the three values",
)
EVERY_GRADIENT = ("query", "key", "value", "the cached keys", "the cached values")


def cases_in_steps(*sizes: int, batch: tuple[int, ...] = ()) -> Callable[[Rng], list[Case]]:
    """Return what makes the case of a sequence in pieces of these sizes, the first uncached."""

    def cases(rng: Rng) -> list[Case]:
        n = sum(sizes)
        query, key, value = (tensor(rng.uniform(-1, 1, (*batch, n, d))) for d in (4, 4, 3))
        return [
            Case(
                (sizes, query, key, value),
                use=callers.attend_in_steps,
                note=f"{n} tokens in pieces of {', '.join(map(str, sizes))}",
                shown="attend_with_cache(query, key, value, cache)",
            )
        ]

    return cases


# --- decisions and mistakes ----------------------------------------------------------------------


def old_then_new(old, new):
    return torch.cat([old, new], -2)


def causal_from_cache_on(m, n):
    return torch.ones(m, n, dtype=torch.bool).tril(n - m)


@composition
def compose_attend_with_cache(
    join_keys=old_then_new,
    join_values=old_then_new,
    mask=causal_from_cache_on,
    store=lambda old, new, joined: joined,
    finish=lambda output: output,
    hand_back=lambda output, keys, values: (output, (keys, values)),
    **options,
):
    """Return ``attend_with_cache`` made of decisions; others are those of ``Attention``."""
    attention = Attention.of(options)

    def attend_with_cache(query, key, value, cache=None):
        keys = key if cache is None else join_keys(cache[0], key)
        values = value if cache is None else join_values(cache[1], value)
        allowed = mask(query.shape[-2], keys.shape[-2])
        output = attention.output(query, keys, values, allowed)
        old = (None, None) if cache is None else cache
        return hand_back(finish(output), store(old[0], key, keys), store(old[1], value, values))

    return attend_with_cache


def join_both(join: Callable) -> dict[str, Callable]:
    """Return the options in which keys and values are joined in the same way."""
    return {"join_keys": join, "join_values": join}


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    gpt.attend_with_cache,
    section="Chapter 13, “Remember the keys and values”",
    difficulty=3,
    minutes=20,
    criteria=(
        CASES.criterion("one new token looks at all before it", 2).on(
            BY_HAND,
            ONE_NEW_TOKEN,
            ONE_NEW_TOKEN.but("d_k=16", note="queries and keys of 16 features"),
            ONE_NEW_TOKEN.but(batch=(2,)),
        ),
        CASES.criterion("several new tokens look back, not ahead", 3).on(
            THREE_NEW_TOKENS,
            THREE_NEW_TOKENS.but("m=5 c=3", note="more new ones than old"),
            THREE_NEW_TOKENS.but("d_k=64", note="queries and keys of 64 features"),
            THREE_NEW_TOKENS.but("m=4 c=4", batch=(3,), note="as many new as old"),
            NEW_TOKENS.but("m=5", note="no cache"),
            NEW_TOKENS.but("m=5", batch=(2,), note="no cache"),
        ),
        Criterion("in pieces, the same as all at once", 2).on(
            lambda rng: [
                *cases_in_steps(1, 1, 1, 1)(rng),
                *cases_in_steps(3, 1, 2, batch=(2,))(rng),
                *cases_in_steps(2, 5)(rng),
            ]
        ),
        CASES.criterion("batches, few tokens and many", 1).on(
            *ROWS.batches,
            *(table_row.but("c=3") for table_row in ROWS.batches),
            NEW_TOKENS.but("m=1", batch=(2,), note="one token"),
            ONE_NEW_TOKEN.but("c=1", note="one token before"),
            NEW_TOKENS.but("m=2", batch=(3,), note="two tokens"),
            NEW_TOKENS.but("m=4 d_k=4 d_v=4 c=4", batch=(4,), note="every axis of length 4"),
            NEW_TOKENS.but("m=5 d_k=4 d_v=5", batch=(5,)),
        ),
        CASES.criterion("float32 and large queries", 1).on(
            *ROWS.numbers,
            *(table_row.but("c=3") for table_row in ROWS.numbers),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach all, the cache too", 1).on(
            *ROWS.gradients,
            THREE_NEW_TOKENS.but(
                batch=(2,), use=gradients_of(*EVERY_GRADIENT), note="a batch of 2"
            ),
        ),
        unchanged(),
    ),
    excludes=(FLOATS_ONLY,),
    mistakes=made(
        compose_attend_with_cache,
        mistake("""the mask begins at the cache's first token
            You number the new tokens from 0, so the first of them sees the first old token and
            nothing else. New token i is token c + i of the sequence: `causal_mask(m, c + m)`, or
            `tril(diagonal=c)`.""").by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril()),
        mistake("""a square mask on wider scores
            Your mask is (m, m), or (n, n), as without a cache. The scores are (m, c + m): a row for
            each new token, a column for each that it may see, the c old ones first:
            `causal_mask(m, c + m)`.""")
        .by(mask=lambda m, n: torch.ones(m, m, dtype=torch.bool).tril())
        .by(mask=lambda m, n: torch.ones(n, n, dtype=torch.bool).tril())
        .by(mask=lambda m, n: F.pad(torch.ones(m, m, dtype=torch.bool).tril(), (0, n - m), value=1))
        .by(mask=lambda m, n: F.pad(torch.ones(m, m, dtype=torch.bool).tril(), (0, n - m))),
        mistake("""no causal mask
            Your new tokens see each other, later ones too. With one new token that does not show;
            with several, each sees those up to itself.""")
        .by(mask=lambda m, n: None)
        .by(mask=lambda m, n: None if n > m else causal_from_cache_on(m, n)),
        mistake("""a token sees the next one
            Your new tokens look one place too far, at the answer. Each sees the tokens up to and
            including itself: `tril(diagonal=c)`.""")
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(n - m + 1))
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(n - m + (n > m))),
        mistake("""a token does not see itself
            You hide a token from itself. It may look at all tokens up to and including itself.""")
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(max(n - m - 1, 0)))
        .by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).tril(n - m - 1)),
        mistake("""the mask is turned round
            New tokens see those behind them, and not the old ones. Row i allows columns 0 to c +
            i.""").by(mask=lambda m, n: torch.ones(m, n, dtype=torch.bool).triu(n - m)),
        mistake("""the cache is not read
            Your new tokens look at each other alone. Put the cached keys and values in front of the
            new ones first.""")
        .by(join_both(lambda old, new: new))
        .by(
            join_both(lambda old, new: new)
            | {"store": lambda o, new, joined: new if o is None else old_then_new(o, new)}
        ),
        mistake("""the new ones come first
            You put the new keys and values before the old ones. The sequence goes on behind:
            `torch.cat([old, new], dim=-2)`.
        """).by(join_both(lambda old, new: torch.cat([new, old], -2))),
        mistake("""joined along another axis
            Tokens are the axis before the last, −2. Axis 0 or 1 is another where there is a batch,
            or none, and the last axis holds the features.""")
        .by(join_both(lambda old, new: torch.cat([old, new], 1)))
        .by(join_both(lambda old, new: torch.cat([old, new], 0)))
        .by(join_both(lambda old, new: torch.cat([old, new], -1))),
        mistake("""only one of the two is cached
            You take the new values alone, or the new keys. Both are needed for every token: what is
            found by a key is its value.""")
        .by(join_values=lambda old, new: new)
        .by(join_keys=lambda old, new: new),
        mistake("""the cache that comes back holds the new ones alone
            You return the new keys and values. The next call needs those of *all* tokens so
            far.""").by(store=lambda old, new, joined: new),
        mistake("""the cache that comes back is the old one
            You return the cache as it was. Return what you attended to, the new ones included.
        """).by(store=lambda old, new, joined: new if old is None else old),
        mistake("""keys and values have changed places
            The cache is (keys, values), in this order.
        """).by(hand_back=lambda output, keys, values: (output, (values, keys))),
        mistake("""the cache is cut from its history
            You detach what you keep. Then nothing can be learned through an earlier token. Keep the
            tensors as they are.""")
        .by(join_both(lambda old, new: torch.cat([old.detach(), new], -2)))
        .by(store=lambda old, new, joined: joined.detach())
        .by(
            {
                **join_both(lambda old, new: torch.cat([old.detach(), new], -2)),
                "store": lambda old, new, joined: joined.detach(),
            }
        ),
        mistake("""not the output and the cache
            You return the output without the cache, or more than the two. `(output, cache)` is
            asked for, and cache is `(keys, values)`.""")
        .by(hand_back=lambda output, keys, values: output)
        .by(hand_back=lambda output, keys, values: (output, keys, values)),
        mistakes.VALUES_FORGOTTEN.here(mix=lambda weights, value: weights),
        mistake("""the last token alone
            You return one row, for the newest token. Each of the m new tokens gets one.
        """).by(finish=lambda output: output[..., -1:, :]),
        *(s for s in mistakes.OF_THE_SCALE if s is not mistakes.ANOTHER_FACTOR),
        mistakes.DIVIDED_BY_OTHER_WIDTH,
        mistakes.OVER_QUERIES,
        mistakes.NO_SOFTMAX,
        mistakes.NO_MAXIMUM,
        mistakes.MASK_INVERTED,
        mistakes.MASKED_LATE,
        mistakes.ZERO_SCORES,
        mistakes.MASK_ADDED,
    ),
)
