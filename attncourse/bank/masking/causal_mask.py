"""The exercise ``causal_mask``: a mask in which nobody looks ahead."""

import torch

from attncourse import masking
from attncourse.bank.masking.shared import CAUSAL_BY_HAND, FIXED, OF_WHAT_COMES_BACK, finish_mask
from attncourse.checks.exercise import Case, Criterion, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- decisions and mistakes ----------------------------------------------------------------------

THE_FUTURE = (  # the usual first lines of a causal mask, taken for the whole of it
    mistake("""the future in place of the past
    You keep the keys that come later, as `triu` does, and count the queries from 0. They are the
    last m of n positions. Return the past, in booleans, True where attention is allowed:
    `torch.ones(m, n, dtype=torch.bool).tril(n − m)`.""").by(
        *(
            {
                "compare": lambda ahead, k=k: ahead >= k,
                "offset": lambda m, n: 0,
                "kind": lambda mask, dtype=dtype: mask.to(dtype),
            }
            for k in (1, 0)
            for dtype in (torch.float32, torch.float64, torch.int64, torch.bool)
        )
    )
)


@composition
def compose_causal_mask(
    sizes=lambda m, n: (m, n or m),
    offset=lambda m, n: n - m,
    compare=lambda ahead: ahead <= 0,
    **back,
):
    """Return ``causal_mask`` made of decisions; ``compare`` gets how far a key lies ahead."""

    def causal_mask(n_queries, n_keys=None):
        m, n = sizes(n_queries, n_keys)
        ahead = torch.arange(n) - torch.arange(m)[:, None] - offset(m, n)
        return finish_mask(compare(ahead), **back)

    return causal_mask


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    masking.causal_mask,
    section="Chapter 10, “No looking ahead”",
    difficulty=1,
    minutes=10,
    picture=True,
    criteria=(
        Criterion("a token sees itself and what came before", 2).on(
            lambda rng: [CAUSAL_BY_HAND, Case((int(rng.integers(5, 9)),)), Case((2,))]
        ),
        Criterion("fewer queries than keys: the last positions", 2).on(
            lambda rng: [
                Case((2, 5), note="two new queries behind three old positions"),
                Case((m := int(rng.integers(3, 5)), m + int(rng.integers(2, 5)))),
                Case((5, 6)),
                Case((67, 71), note="many tokens"),
            ]
        ),
        FIXED.criterion("one query, one token", 1).on(
            Case((1, 5), note="one query, the last of five positions"),
            Case((1, 2), note="one query, two keys"),
            Case((1,), note="n = 1"),
            Case((4, 4), note="n_keys given, and equal"),
            once_more(CAUSAL_BY_HAND),
        ),
    ),
    mistakes=made(
        compose_causal_mask,
        *OF_WHAT_COMES_BACK,
        THE_FUTURE,
        mistake("""a token does not see itself
            Your mask stops too early: `<` where `<=` belongs, `tril(-1)`, an offset too small. A
            token may attend to itself; without that, the first one has nothing to attend to.""")
        .by(compare=lambda ahead: ahead < 0)
        .by_any(lambda k: {"compare": lambda ahead: ahead <= k}, (-2, -3, -4)),
        mistake("""every token sees the next one
            Your mask reaches too far: `tril(1)`, or an offset that is too large. One step is all
            that a language model needs to read its answer.""")
        .by(compare=lambda ahead: ahead <= 1)
        .by_any(lambda k: {"compare": lambda ahead: ahead <= k}, (2, 3, 4)),
        mistake("""what is allowed is not the past
            Row i is the query, at i + n − m; its keys are its own place and all before it. You
            allow the future (`triu`, or i and j exchanged), the diagonal alone, or all.""")
        .by(compare=lambda ahead: ahead >= 0)
        .by(compare=lambda ahead: ahead == 0)
        .by(compare=lambda ahead: ahead == ahead)
        .by(compare=lambda ahead: (ahead <= 0) | (ahead.shape[0] < ahead.shape[1])),
        mistake("""the diagonal has another offset than n − m
            The queries are the last m of n positions, and each sees itself: query i stands at i + n
            − m, so it is `tril(n − m)`. Your offset is another: none (`.tril()`), a fixed number, m
            − n, or a step too far.""")
        .by(offset=lambda m, n: 0)
        .by(offset=lambda m, n: 1)
        .by(offset=lambda m, n: -1)
        .by(offset=lambda m, n: m - n)
        .by(*({"offset": lambda m, n, k=k: n - m + k * (n > m)} for k in (-1, 1, -2, 2)))
        .by_any(lambda number: {"offset": lambda m, n: number}, (-2, 2, 3)),
        mistake("""the old keys are shut out
            Your first n − m columns are False. What came before the queries is the past of all of
            them: those columns are True.
        """).by(truth=lambda mask: mask.triu(mask.shape[1] - len(mask)).any(0) & mask),
        mistake("""rows and columns are not queries and keys
            The mask is (n_queries, n_keys), the last rows of a square. In yours `n_keys` is
            ignored, or counts the rows too, or the two are exchanged.""")
        .by(sizes=lambda m, n: (m, m))
        .by(sizes=lambda m, n: (n or m, n or m))
        .by(sizes=lambda m, n: (n or m, m))
        .by(form=lambda mask: mask.T),
        mistake("""n_keys=None is not provided for
            Without `n_keys` your function computes with None. As many as queries are meant.
        """).by(sizes=lambda m, n: (m, n + 0)),
    ),
)
