"""The exercise ``pad_left``: sequences as a batch that ends together."""

import math
from functools import partial
from typing import Any

import torch

from attncourse import serving
from attncourse.bank.masking.shared import (
    ADDITIVE_MASK,
    MASK_INVERTED,
    MASK_OF_NUMBERS,
    NO_TENSOR,
    additive_mask,
    finish_mask,
)
from attncourse.bank.serving.cases import all_cases_of
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import each_result
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

PADDED_PARTS = partial(callers.call_for_parts, ("ids", "positions", "mask"), ())


def batch_of(sequences: list[list[int]], pad: int, note: str = "") -> Case:
    return Case((sequences, pad), use=PADDED_PARTS, note=note)


def drawn_sequences(*lengths: int, pad: int = 0, note: str = ""):
    """Return what makes a case of these lengths; the id that pads is among the ids too."""

    def cases(rng: Rng) -> list[Case]:
        sequences = [rng.integers(0, 30, n).tolist() for n in lengths]
        for sequence, place in zip(sequences, (0, -1, 1, 0), strict=False):
            sequence[place % len(sequence)] = pad
        return [batch_of(sequences, pad, note)]

    return cases


BY_HAND = batch_of([[5, 6, 7], [8]], 0)

# --- decisions and mistakes ----------------------------------------------------------------------


def pad_before(row: list, n: int, pad: Any) -> list:
    return [pad] * (n - len(row)) + list(row)


def pad_behind(row: list, n: int, pad: Any) -> list:
    return list(row) + [pad] * (n - len(row))


def positions_from_start(real, n):
    return (real.long().cumsum(-1) - 1).clamp(min=0)


def allow_causal_tokens(causal, real):
    return causal & real[:, None, :]


def allow_token_rows(causal, real):
    """Return the mask with rows of padding that may look at nothing."""
    return allow_causal_tokens(causal, real) & real[:, :, None]


def real_by_length(ids, real, pad):
    return real


def real_by_value(ids, real, pad):
    return ids != pad


@composition
def compose_pad_left(
    rows=as_it_is,
    pad_row=pad_before,
    longest=max,
    fill=as_it_is,
    tensor_of=lambda rows: torch.tensor(rows),
    real_for_mask=real_by_length,
    real_for_positions=real_by_length,
    place=positions_from_start,
    causal=lambda n: torch.ones(n, n, dtype=torch.bool).tril(),
    join=allow_causal_tokens,
    order=lambda ids, positions, mask: (ids, positions, mask),
    **back,
):
    """Return ``pad_left`` made of decisions; ``real_for_…`` say what is no padding."""

    def pad_left(sequences, pad):
        all_rows = rows(sequences)
        n = longest(map(len, all_rows))
        cut = [row[-n:] for row in all_rows]
        ids = tensor_of([pad_row(row, n, fill(pad)) for row in cut])
        real = torch.tensor([pad_row([True] * len(row), n, False) for row in cut])
        positions = place(real_for_positions(ids, real, pad), n)
        mask = join(causal(n), real_for_mask(ids, real, pad))
        return order(ids, positions, finish_mask(mask, **back))

    return pad_left


def same_positions(places):
    """Return the same positions for every sequence."""
    return lambda real, n: places(n).expand(real.shape)


def with_padding_at(number: int):
    return lambda real, n: positions_from_start(real, n).masked_fill(~real, number)


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    serving.pad_left,
    section="Chapter 20, “Questions of different lengths”",
    difficulty=2,
    minutes=15,
    criteria=(
        *each_result(
            ("ids", "positions", "mask"),
            all_cases_of(
                BY_HAND,
                drawn_sequences(4, 2, 7, 5),
                drawn_sequences(3, 6, pad=2, note="2 pads"),
            ),
        ),
        Criterion("padding is told by length", 1).on(
            all_cases_of(
                batch_of(
                    [[0, 4, 0], [0, 0, 0, 0, 1], [3, 0]], 0, "the id that pads is a token too"
                ),
                batch_of([[7, 7], [7]], 7, "nothing but the id that pads"),
                drawn_sequences(5, 3, 6, pad=1, note="1 pads"),
            )
        ),
        Criterion("no padding, one sequence, one token, many", 1).on(
            all_cases_of(
                drawn_sequences(4, 4, 4, note="no padding"),
                drawn_sequences(5, note="one sequence"),
                drawn_sequences(1, note="one token"),
                drawn_sequences(1, 1, note="one token each"),
                drawn_sequences(2, 1, note="as many sequences as tokens"),
                drawn_sequences(17, 1, 9, note="many tokens"),
                BY_HAND,
            )
        ),
        unchanged(),
    ),
    mistakes=made(
        compose_pad_left,
        mistake("""positions count the padding
            Your positions are the places in the padded row, so that the padding moves a sequence's
            first token. Each sequence counts from 0 at its own first token.
        """)
        .by(place=same_positions(torch.arange))
        .by(place=lambda real, n: torch.arange(n) * real),
        mistake("""padded to the right
            You put the padding behind the tokens. The next token is to be written behind the last
            one, in the same column for all: padding comes before.""")
        .by(
            *(
                {"pad_row": pad_behind, "place": place, "join": join}
                for join in (allow_causal_tokens, allow_token_rows)
                for place in (
                    positions_from_start,
                    with_padding_at(0),
                    same_positions(torch.arange),
                )
            )
        )
        .by(
            rows=lambda rows: [row[::-1] for row in rows], order=lambda i, p, m: (i.flip(-1), p, m)
        ),
        mistake("""the mask forgets that nobody looks ahead
            Your mask hides the padding alone. It is causal as well: token i sees no token behind
            it.""")
        .by(join=lambda causal, real: real[:, None, :].expand(len(real), *causal.shape))
        .by(join=lambda causal, real: real[:, None, :] & real[:, :, None]),
        mistake("""the first token is hidden
            Your mask hides the first token of each sequence, too. It is no padding: as many places
            are hidden as there is padding.""")
        .by(
            join=lambda causal, real: allow_causal_tokens(
                causal, real & real.roll(1, -1) & (real.cumsum(-1) > 1)
            )
        )
        .by(join=lambda causal, real: allow_causal_tokens(causal, real.cumsum(-1) > 1)),
        mistake("""the mask forgets the padding
            Your mask is causal and no more, so that tokens look at padding. Columns of padding are
            False: `causal & real[:, None, :]`.""").by(
            join=lambda causal, real: causal.expand(len(real), *causal.shape)
        ),
        mistake("""rows of padding are hidden, not columns
            You forbid padding to look, and let tokens look at padding. What nobody may attend to is
            a key, a column: `real[:, None, :]`.""").by(
            join=lambda causal, real: causal & real[:, :, None]
        ),
        mistake("""padding is told by its value
            You compare ids with `pad`, but a token of the text may be the same id. What is padding
            follows from the lengths.""")
        .by(real_for_mask=real_by_value, real_for_positions=real_by_value)
        .by(real_for_mask=real_by_value, real_for_positions=real_by_value, join=allow_token_rows)
        .by(real_for_mask=real_by_value)
        .by(real_for_mask=real_by_value, join=allow_token_rows)
        .by(real_for_positions=real_by_value),
        mistake("""the mask is transposed
            Row i is the query, column j the key: i sees j where j comes before it.""").by(
            form=lambda mask: mask.mT
        ),
        MASK_OF_NUMBERS,
        ADDITIVE_MASK.here(
            *(
                {"kind": lambda mask, number=number: additive_mask(mask, number)}
                for number in (-math.inf, -1e9, -1e4)
            )
        ),
        NO_TENSOR,
        MASK_INVERTED,
        mistake("""positions begin at 1
            You count with `cumsum`, which gives 1 to the first token. Positions count from 0.
        """)
        .by(place=lambda real, n: real.long().cumsum(-1))
        .by(place=lambda real, n: real.long().cumsum(-1).clamp(min=1)),
        mistake("""padding has position 1
            You give padding the position 1, as much published code does. Nobody reads what stands
            there; here it is 0.""").by(place=with_padding_at(1)),
        mistake("""padding has positions below 0
            You take the number of paddings off each place and leave what is below 0. Positions on
            padding are 0: `.clamp(min=0)`.""")
        .by(place=lambda real, n: torch.arange(n) - (~real).sum(-1, keepdim=True))
        .by(place=with_padding_at(-1)),
        mistake("""positions of padding are those of tokens
            You shift the positions and let them wrap around, so that padding has large ones.
            Positions on padding are 0.""").by(
            place=lambda real, n: (torch.arange(n) - (~real).sum(-1, keepdim=True)) % n
        ),
        mistake("""positions are counted from the end
            You count backwards, 0 at the last token. Positions count from 0 at the first one.""")
        .by(place=same_positions(lambda n: torch.arange(n).flip(-1)))
        .by(place=lambda real, n: torch.arange(n).flip(-1) * real),
        mistake("""padding sees itself
            You let each padded row look at itself, so that no row is empty. Rows of padding are
            False throughout: attention gives 0 to a row without a key.""")
        .by(
            join=lambda causal, real: (
                allow_causal_tokens(causal, real) | torch.eye(len(causal)).bool()
            )
        )
        .by(
            join=lambda causal, real: (
                allow_causal_tokens(causal, real) | (causal & ~real[:, :, None])
            )
        ),
        mistake("""a token does not see itself
            Your diagonal is False. A token may attend to itself.""").by(
            causal=lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1)
        ),
        mistake("""everybody looks ahead
            You keep the upper triangle. Token i sees what comes before it: the lower one, `tril`.
        """).by(causal=lambda n: torch.ones(n, n, dtype=torch.bool).triu()),
        mistake("""no axis for the queries
            Your mask has one row for each sequence. It has one for every query: `(b, n, n)`.""")
        .by(join=lambda causal, real: real)
        .by(join=lambda causal, real: real[:, None, :]),
        mistake("""an axis too many
            Your mask has an axis for heads, `(b, 1, n, n)`. Asked for is `(b, n, n)`.""").by(
            form=lambda mask: mask.unsqueeze(-3)
        ),
        mistake("""one mask for all sequences
            You return one mask, `(n, n)`. Each sequence has its own padding: `(b, n, n)`.""")
        .by(join=lambda causal, real: causal)
        .by(join=lambda causal, real: allow_causal_tokens(causal, real).all(0))
        .by(join=lambda causal, real: allow_causal_tokens(causal, real).any(0)),
        mistake("""the first sequence's padding for all
            You find the padding of one sequence and hide it in all of them. Each has its own.
        """).by(join=lambda causal, real: allow_causal_tokens(causal, real[:1].expand(real.shape))),
        mistake("""the sequences change places
            You sort the sequences by length. Row i of the batch is sequence i.""")
        .by(rows=lambda rows: sorted(rows, key=len))
        .by(rows=lambda rows: sorted(rows, key=len, reverse=True)),
        mistake("""the tokens change places
            You turn a sequence round. Its tokens keep their order, with the padding before them.
        """).by(rows=lambda rows: [row[::-1] for row in rows]),
        mistake("""another id pads
            You pad with 0, or another number. It is `pad` that stands before the tokens.""")
        .by(fill=lambda pad: 0)
        .by(fill=lambda pad: -1)
        .by(fill=lambda pad: -100),
        mistake("""the longer ones are cut
            You cut every sequence to the shortest. They are padded to the longest.""").by(
            longest=min
        ),
        mistake("""wider than the longest
            Your rows are longer than the longest sequence. It has no padding.""")
        .by(longest=lambda lengths: max(lengths) + 1)
        .by(longest=lambda lengths: -(-max(lengths) // 8) * 8),
        mistake("""returned in another order
            Asked for is (ids, positions, mask), in this order.""")
        .by(order=lambda ids, positions, mask: (ids, mask, positions))
        .by(order=lambda ids, positions, mask: (positions, ids, mask)),
        mistake("""something is missing
            Three things come back: (ids, positions, mask).""")
        .by(order=lambda ids, positions, mask: (ids, mask))
        .by(order=lambda ids, positions, mask: ids),
        mistake("""ids are no int64
            Ids look up rows of a table, and torch asks for int64 there: `torch.tensor` of lists of
            whole numbers makes that.""")
        .by(tensor_of=lambda rows: torch.tensor(rows).float())
        .by(tensor_of=lambda rows: torch.tensor(rows).int()),
    ),
)
