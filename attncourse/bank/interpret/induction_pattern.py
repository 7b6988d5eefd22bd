"""The exercise ``induction_pattern``: where a token came right after an equal one."""

import numpy as np
import torch

from attncourse import interpret
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import CaseTable, Drawn, once_more, row
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def repeating_ids(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return ids of few kinds; the first stands twice in front, and again at the end."""
    ids = rng.integers(3, 7, shape)
    if shape[-1] > 4:
        ids[..., [0, 1, -1]] = 3
        ids[..., 2] = 5
        ids[..., -2] = 4
    return ids


def different_ids(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.permutation(shape[-1] + 3)[: shape[-1]]


def equal_ids(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, 4)


CASES = CaseTable({"ids": Drawn("n", repeating_ids)})
BY_HAND = Case((torch.tensor([7, 2, 9, 7, 2]),), note="7 2 9 7 2")

# --- decisions and mistakes ----------------------------------------------------------------------


def shift_ids(ids: torch.Tensor, back: int) -> torch.Tensor:
    """Return the id that stands ``back`` places before each token; −1 where there is none."""
    n = len(ids)
    out = torch.full((n,), -1)
    for j in range(n):
        if 0 <= j - back < n:
            out[j] = ids[j - back]
    return out


def equal_pairs(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return (queries[:, None] == keys) & (keys >= 0) & (queries >= 0)[:, None]


@composition
def compose_induction_pattern(
    queries=as_it_is,
    keys=lambda ids: shift_ids(ids, 1),
    reach=lambda pattern: pattern.tril(),
    finish=as_it_is,
    kind=as_it_is,
):
    """Return ``induction_pattern`` made of decisions.

    ``queries`` says which id a row looks for, ``keys`` which id a column offers.
    """

    def induction_pattern(ids):
        return kind(finish(reach(equal_pairs(queries(ids), keys(ids)))))

    return induction_pattern


def drop_column_0(pattern):
    return pattern.tril() & (torch.arange(len(pattern)) > 0)


def roll_ids(ids):
    """Return the ids one place on; the last one comes first."""
    return ids.roll(1)


def last_in_row(pattern):
    """Return the last True of each row alone."""
    later = pattern.flip(-1).cumsum(-1).flip(-1)
    return pattern & (later == 1)


def first_in_row(pattern):
    return pattern & (pattern.cumsum(-1) == 1)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    interpret.induction_pattern,
    section="Chapter 14, “What came after it last time?”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        CASES.criterion("True where an equal token was followed", 3).on(
            BY_HAND,
            row("n=7"),
            row("n=11"),
            Case((torch.tensor([5, 6, 4, 6, 3, 6, 4]),), note="one token three times"),
        ),
        CASES.criterion("tokens that repeat at once, and that never do", 2).on(
            Case((torch.tensor([8, 8, 2, 2, 2]),), note="8 8 2 2 2"),
            row("n=5", arguments={"ids": Drawn("n", equal_ids)}, note="the same token throughout"),
            row("n=6", arguments={"ids": Drawn("n", different_ids)}, note="no token comes twice"),
            Case((torch.tensor([4, 1, 6, 4]),), note="the last token is the first one"),
        ),
        CASES.criterion("any length", 1).on(
            row("n=1", note="one token"),
            Case((torch.tensor([5, 5]),), note="two tokens, the same"),
            Case((torch.tensor([5, 3]),), note="two tokens"),
            row("n=23"),
            Case((torch.tensor([0, 3, 0, 1, 3]),), note="id 0 among them"),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(
        compose_induction_pattern,
        mistake("""it points at the equal token itself
            Your pattern is True where token j *is* token i. There the head would find the token
            that it has already. It is to find what came behind: column j belongs to the token
            *after* the equal one, `ids[j - 1] == ids[i]`.""")
        .by(keys=as_it_is)
        .by(keys=as_it_is, reach=drop_column_0)
        .by(keys=as_it_is, reach=lambda p: p.tril(-1)),
        mistake("""it points at the token before
            Your pattern is True one place before the equal token. What followed stands one place
            *behind* it: j − 1 is the place of the equal token, not j + 1.""")
        .by(keys=lambda ids: shift_ids(ids, -1))
        .by(
            *(
                {"keys": lambda ids: shift_ids(ids, -1), "reach": lambda p, k=k: p.tril(-k)}
                for k in (1, 2)
            )
        ),
        mistake("""two places behind the equal token
            You look two places behind the equal token. What followed it stands one behind.
        """).by(keys=lambda ids: shift_ids(ids, 2)),
        mistake("""the future is in it
            Your pattern is True at tokens that come after token i, where a causal model cannot
            look. Only 1 ≤ j ≤ i count: `.tril()`.""")
        .by(reach=as_it_is)
        .by(reach=lambda p: p.tril(1)),
        mistake("""the future alone is in it
            You keep the tokens that come after token i, `.triu()`. Only 1 ≤ j ≤ i count:
            `.tril()`.""")
        .by(reach=lambda p: p.triu())
        .by(reach=lambda p: p.triu(1)),
        mistake("""the token itself is left out
            Where a token comes twice in a row, what followed the first is the second, token i
            itself: j = i counts. Your pattern stops before it.""").by(reach=lambda p: p.tril(-1)),
        mistake("""the last token stands before the first
            `roll` brings the last id round to the front, so column 0 is compared with the end of
            the sequence. Nothing comes before token 0: its column is False.""")
        .by(keys=roll_ids)
        .by(keys=roll_ids, reach=lambda p: p.tril(-1)),
        mistake("""rows and columns exchanged
            Row i belongs to the token that asks, column j to the one that is looked at. Yours is
            the transpose.""").by(finish=lambda p: p.T),
        mistake("""the tokens before are compared
            You compare what came *before* token i. Token i itself is looked for: `ids[j - 1] ==
            ids[i]`.""")
        .by(queries=lambda ids: shift_ids(ids, 1))
        .by(queries=lambda ids: shift_ids(ids, 1), keys=as_it_is)
        .by(queries=lambda ids: shift_ids(ids, 1), keys=as_it_is, reach=drop_column_0),
        mistake("""the token after is looked for
            You look for token i + 1, which the model has not seen yet: it is what a head at i is to
            find out. Look for token i.""")
        .by(queries=lambda ids: shift_ids(ids, -1))
        .by(queries=lambda ids: shift_ids(ids, -1), keys=as_it_is),
        mistake("""only one of several is marked
            A token may have come more than once before. Every place behind one of them counts, the
            pattern can be True several times in a row.""")
        .by(finish=last_in_row)
        .by(finish=first_in_row),
        mistake("""the pattern is inverted
            True is to mark where the head should look, and yours marks where it should not.
        """).by(finish=lambda p: ~p),
        mistake("""what followed is not marked
            Token i was there before, and your pattern is False all the same. Is it noted as seen
            before it is looked up, so that it finds itself? Compare `ids[j - 1] == ids[i]`.
        """).by(finish=torch.zeros_like),
        mistake("""the last row or column is left out
            Your last row, or last column, is False throughout. It counts too.""")
        .by(finish=lambda p: torch.cat([p[:-1], torch.zeros_like(p[-1:])]))
        .by(finish=lambda p: torch.cat([p[:, :-1], torch.zeros_like(p[:, -1:])], 1)),
        mistake("""a pattern of numbers
            Your pattern is right, but it holds numbers, 0 and 1. A boolean one is asked for:
            compare with `==` and combine with `&`, or end with `.bool()`.""")
        .by(kind=lambda p: p.float())
        .by(kind=lambda p: p.long())
        .by(kind=lambda p: p.double())
        .by(kind=lambda p: p.int())
        .by(kind=lambda p: p.byte())
        .by(kind=lambda p: p.char())
        .by(kind=lambda p: p.short())
        .by(kind=lambda p: p.half())
        .by(kind=lambda p: p.bfloat16()),
        mistake("""no tensor comes back
            You return a NumPy array, or lists. A torch tensor is asked for.""")
        .by(kind=lambda p: p.numpy())
        .by(kind=lambda p: p.tolist()),
    ),
)
