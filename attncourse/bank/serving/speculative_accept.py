"""The exercise ``speculative_accept``: guesses that are kept as if the target had drawn them.

An answer draws random numbers, in whatever order it likes. Where the outcome is certain it is
compared as it stands. Elsewhere it is called ``N_DRAWS`` times on probabilities of which a right
answer makes halves, and its outcomes are told in halves: a right answer fails such a case with a
chance of 2e-10, which is what a binomial has at a quarter and below, and at three and above. Where
outcomes of a quarter or more are told by which of them come, one is missing in ``N_FEWER_DRAWS``
calls with a chance of 1e-10.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from attncourse import serving
from attncourse.bank.serving.cases import all_cases_of
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

N_DRAWS, N_FEWER_DRAWS, N_MORE_DRAWS = 160, 80, 240
N_VOCAB = 9
NAMES: str = "abcdefxyz"  # of tokens; which id each has is drawn


def rows_of(row_texts: list[str], ids: dict[str, int], dtype: torch.dtype) -> torch.Tensor:
    """Return distributions, each written ``a=.2 x=.8``."""
    rows = torch.zeros(len(row_texts), len(ids), dtype=dtype)
    for row, text in zip(rows, row_texts, strict=True):
        for name, probability in (pair.split("=") for pair in text.split()):
            row[ids[name]] = float(probability)
    return rows


def draft_cases(
    draft: str,
    q: list[str],
    p: list[str],
    use: Callable = callers.call_with_generator,
    *about: Any,
    dtype: torch.dtype = torch.float64,
    note: str = "",
):
    """Return what makes the case of a draft of named tokens, with its and the target's rows.

    ``p`` has one row more than ``q``: that behind the last guess.
    """

    def cases(rng: Rng) -> list[Case]:
        ids = dict(zip(NAMES, rng.permutation(N_VOCAB).tolist(), strict=True))
        seed = int(rng.integers(1 << 30))
        tokens = torch.tensor([ids[name] for name in draft], dtype=torch.int64)
        args = (tokens, rows_of(q, ids, dtype), rows_of(p, ids, dtype))
        calls = f"{about[0]} draws" if use is callers.outcomes_counted else ""
        return [
            Case(
                args,
                use=partial(use, *about, seed),
                note="; ".join(filter(None, (calls, note))),
            )
        ]

    return cases


def counted_outcomes(draft: str, q: list[str], p: list[str], **about):
    """Return what makes a case that counts outcomes in halves."""
    return draft_cases(draft, q, p, callers.outcomes_counted, N_DRAWS, True, **about)


def counted_rare_outcomes(draft: str, q: list[str], p: list[str], **about):
    """Return ``counted_outcomes`` of a tenth: one is missing with a chance of 1e-11."""
    return draft_cases(draft, q, p, callers.outcomes_counted, N_MORE_DRAWS, True, **about)


def possible_outcomes(draft: str, q: list[str], p: list[str], draws: int = N_FEWER_DRAWS, **about):
    """Return what makes a case that tells which outcomes come, not how often."""
    return draft_cases(draft, q, p, callers.outcomes_counted, draws, False, **about)


def certain_rows(tokens: str) -> list[str]:
    return [f"{name}=1" for name in tokens]


def generator_cases():
    """Return what makes cases in which chance alone decides: kept, replaced, gone on."""
    even = torch.full((1, 50), 0.02, dtype=torch.float64)
    first, second = (torch.eye(50, dtype=torch.float64)[i : i + 1] for i in (0, 1))
    none = torch.zeros(0, 50, dtype=torch.float64)
    half = (first + second) / 2
    others = (even - 0.02 * first) / 0.98

    def cases(rng: Rng) -> list[Case]:
        draft = torch.zeros(1, dtype=torch.int64)
        call_rows = [
            (40, draft, first, torch.cat([half, second]), "kept half of the time"),
            (8, draft, first, torch.cat([others, second]), "never kept"),
            (8, draft[:0], none, even, "nothing guessed"),
        ]
        seeds = tuple(int(seed) for seed in rng.integers(1 << 30, size=2))
        return [
            Case(
                tuple(args),
                use=partial(callers.kept_with_generators, calls, seeds),
                facts=callers.decided_by_rng,
                note=note,
            )
            for calls, *args, note in call_rows
        ]

    return cases


BY_HAND = Case(
    (torch.tensor([2, 0]), torch.eye(4)[[2, 0]].double(), torch.eye(4)[[2, 3, 1]].double()),
    use=partial(callers.call_with_generator, 0),
    note="the target is certain of 2, then of 3",
)
UNEVEN_DRAFT = ["a=.1 y=.9"]  # against which a is kept for certain where p has as much for it

# --- decisions and mistakes ----------------------------------------------------------------------


def uniform(rng):
    return torch.rand((), generator=rng, dtype=torch.float64).item()


def uniform_without_rng(rng):
    return torch.rand((), dtype=torch.float64).item()


def normalized(weights: list) -> list:
    total = sum(weights)
    return [w / total for w in weights]


def id_at_cumulative_sum(weights: list, u: float) -> int:
    """Return the id at which the running sum passes u; one too many where it never does."""
    total = 0.0
    for token, weight in enumerate(weights):
        total += weight
        if weight and u < total * (1 + 1e-12):
            return token
    return len(weights)


def draw_id(weights: list, rng) -> int:
    return id_at_cumulative_sum(weights, uniform(rng))


def likeliest_id(weights: list, rng) -> int:
    return weights.index(max(weights))


def draws_by_torch() -> dict[str, Callable]:
    """Return the options in which numbers and tokens are drawn as most answers draw them.

    Where a token that never should come may come by chance, it comes in the same calls as there.
    """

    def multinomial(weights: list, rng) -> int:
        return int(torch.multinomial(torch.tensor(weights).double(), 1, generator=rng))

    def chance(rng):
        return torch.rand((), generator=rng).item()

    return {"chance": chance, "draw": multinomial, "draw_again": multinomial}


def absolute_differences(p: list, q: list, token: int) -> list:
    return [abs(a - b) for a, b in zip(p, q, strict=True)]


def positive_differences(p: list, q: list, token: int) -> list:
    return [max(a - b, 0) for a, b in zip(p, q, strict=True)]


@composition
def compose_speculative_accept(
    one_u=False,
    chance=uniform,
    keep=lambda u, p, q, best: u < p / q if q else p > 0,
    row=lambda P, i: P[i],
    q_row=lambda Q, i: Q[i],
    missing=positive_differences,
    missing_row=lambda P, i: P[i],
    normalize=normalized,
    draw=draw_id,
    draw_again=draw_id,
    again=as_it_is,
    end=lambda P, k: P[k],
    replaced=lambda accepted, token, new: [*accepted, new],
    goes_on=False,
    number=lambda accepted, flags: accepted,
    one_more=True,
    always_one_more=False,
    finish=lambda ids: torch.tensor(ids, dtype=torch.int64),
    generator=as_it_is,
):
    """Return ``speculative_accept`` made of decisions."""

    def speculative_accept(draft, p_draft, p_target, rng):
        tokens, Q, P = draft.tolist(), p_draft.double().tolist(), p_target.double().tolist()
        rng, accepted, refused = generator(rng), [], False
        u = chance(rng) if one_u else None
        for i, token in enumerate(tokens):
            p, q = row(P, i), q_row(Q, i)
            u = u if one_u else chance(rng)
            if keep(u, p[token], q[token], p[token] == max(p)):
                accepted = [*accepted, token]
                continue
            weights = normalize(missing(missing_row(P, i), q, token))
            accepted = replaced(accepted, token, draw(weights, rng))
            refused = True
            if not goes_on:
                break
        if (one_more and not refused) or always_one_more:
            accepted = [*accepted, draw_again(again(end(P, len(tokens))), rng)]
        return finish(accepted)

    return speculative_accept


# Counts every guess that passes, also those behind one that does not.
def count_all_that_pass(draft, p_draft, p_target, rng):
    tokens, k = draft.tolist(), len(draft)
    Q, P = p_draft.double().tolist(), p_target.double().tolist()
    accepted = sum(uniform(rng) * Q[i][t] < P[i][t] for i, t in enumerate(tokens))
    weights = (
        P[k] if accepted == k else positive_differences(P[accepted], Q[accepted], tokens[accepted])
    )
    if not any(weights):
        weights = P[accepted]
    return torch.tensor([*tokens[:accepted], draw_id(normalized(weights), rng)], dtype=torch.int64)


# Keeps every guess that passes, also those behind one that does not.
def keep_all_that_pass(draft, p_draft, p_target, rng):
    tokens, k = draft.tolist(), len(draft)
    Q, P = p_draft.double().tolist(), p_target.double().tolist()
    passed = [uniform(rng) * Q[i][t] < P[i][t] for i, t in enumerate(tokens)]
    accepted = [t for t, passes in zip(tokens, passed, strict=True) if passes]
    refused = passed.index(False) if not all(passed) else k
    weights = (
        P[k] if refused == k else positive_differences(P[refused], Q[refused], tokens[refused])
    )
    return torch.tensor([*accepted, draw_id(normalized(weights), rng)], dtype=torch.int64)


def accept_by_inverse_ratio(u, p, q, best):
    """Return whether u is below q / p, in place of p / q."""
    return u < q / p if p else q > 0


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    serving.speculative_accept,
    section="Chapter 20, “Guess and check”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("where the outcome is certain", 2).on(
            all_cases_of(
                BY_HAND,
                draft_cases("ab", certain_rows("ab"), certain_rows("abe"), note="both kept"),
                draft_cases(
                    "abc", certain_rows("abc"), certain_rows("axce"), note="the second is refused"
                ),
                draft_cases(
                    "abcd", certain_rows("abcd"), certain_rows("xbcde"), note="the first is refused"
                ),
                draft_cases(
                    "abcd", certain_rows("abcd"), certain_rows("abcxe"), note="the last is refused"
                ),
                possible_outcomes(
                    "a", UNEVEN_DRAFT, ["a=.1 x=.9", "e=1"], note="as likely for both"
                ),
            )
        ),
        Criterion("a guess is kept with probability min(1, p / q)", 2).on(
            all_cases_of(
                # Where the replacement comes from p, one of 20 is an id that should not come.
                counted_rare_outcomes("a", ["a=.2 y=.8"], ["a=.1 y=.8 x=.1", "e=1"]),
                possible_outcomes(
                    "a", UNEVEN_DRAFT, ["a=.2 x=.8", "e=1"], note="more often than guessed"
                ),
                counted_rare_outcomes("ba", ["b=1", "a=.2 y=.8"], ["b=1", "a=.1 y=.8 x=.1", "e=1"]),
                possible_outcomes(
                    "ba",
                    ["b=.5 y=.5", "a=.5 y=.5"],
                    ["b=.25 y=.5 x=.25", "a=.25 y=.5 z=.25", "e=1"],
                    draws=N_DRAWS,  # a sixteenth, where the replacement comes from p, is not missed
                ),
            )
        ),
        Criterion("the refused one is replaced by what p has more than q", 2).on(
            all_cases_of(
                possible_outcomes("a", ["a=.1 y=.7 b=.2"], ["y=.7 x=.3", "e=1"]),
                counted_outcomes("a", UNEVEN_DRAFT, ["y=.9 x=.05 z=.05 b=1e-13", "e=1"]),
                counted_outcomes("ba", ["b=1", *UNEVEN_DRAFT], ["b=1", "y=.9 x=.05 z=.05", "e=1"]),
                # What x lacks is half of all in both: with its square five sixths, with p where it
                # is above q two thirds of the first and a sixth of the second. Drawn from p or q
                # itself, no id comes nearly as often as once or three times in four, where the
                # words for how often change.
                counted_rare_outcomes(
                    "a",
                    ["a=.16 y=.6 x=.16 z=.08"],
                    ["y=.36 x=.36 z=.08 b=.04 c=.04 d=.04 e=.04 f=.04", "z=1"],
                    note="half of what is missing is one token's",
                ),
                counted_rare_outcomes(
                    "a",
                    ["a=.1 y=.3 b=.12 c=.12 d=.12 e=.12 f=.12"],
                    ["y=.1 x=.15 b=.15 c=.15 d=.15 e=.15 f=.15", "z=1"],
                    note="half of what is missing is one token's, and p has little of it",
                ),
            )
        ),
        Criterion("after all are kept, one more from the last row", 2).on(
            all_cases_of(
                counted_outcomes("a", UNEVEN_DRAFT, ["a=.1 x=.9", "d=.5 e=.5"]),
                counted_outcomes("abc", certain_rows("abc"), [*certain_rows("abc"), "d=.5 e=.5"]),
            )
        ),
        Criterion("nothing guessed, many, float32", 1).on(
            all_cases_of(
                draft_cases("", [], certain_rows("e"), note="nothing guessed"),
                counted_outcomes("", [], ["d=.5 e=.5"], note="nothing guessed"),
                draft_cases(
                    "abcdefabcdef",
                    certain_rows("abcdefabcdef"),
                    certain_rows("abcdefabcdefx"),
                    note="many",
                ),
                draft_cases(
                    "ab",
                    certain_rows("ab"),
                    certain_rows("abe"),
                    dtype=torch.float32,
                    note="float32",
                ),
                draft_cases(
                    "ab",
                    certain_rows("ab"),
                    certain_rows("axe"),
                    dtype=torch.float32,
                    note="float32",
                ),
                BY_HAND,
            )
        ),
        Criterion("the generator decides", 1).on(generator_cases()),
        unchanged(),
    ),
    excludes=(
        (
            "* = *",
            "How many ids come back is chance, and cases have callers of their own.",
        ),
        ("* all different", "The same."),
        ("float32", "The same: it is among the notes."),
        ("* in p_*", "What comes in are probabilities."),
        ("a row of very *", "What comes in are probabilities."),
        ("entries that cancel", "What comes in are probabilities."),
    ),
    mistakes=(
        *made(
            compose_speculative_accept,
            mistake("""p and q are exchanged
                You keep a guess with probability q / p. What the target says more often than the
                draft is kept for certain, the rest with p / q: p is `p_target`, q is `p_draft`.
            """)
            .by(keep=accept_by_inverse_ratio)
            .by(
                keep=accept_by_inverse_ratio,
                missing=lambda p, q, token: positive_differences(q, p, token),
            ),
            mistake("""q − p in place of p − q
                You draw the replacement from what the *draft* says too often. What is missing is
                what the target says more often: max(p − q, 0).""").by(
                missing=lambda p, q, token: positive_differences(q, p, token)
            ),
            mistake("""max(p − q, 0) does not sum to 1
                You draw from p − q as it is. What is left has to be divided by its sum (or drawn
                with `torch.multinomial`, which does it).""")
            .by(normalize=as_it_is)
            .by(normalize=as_it_is, draw=lambda w, rng: min(draw_id(w, rng), len(w) - 1)),
            mistake("""the replacement comes from p
                You draw the replacement from the target's whole distribution. What it shares with
                the draft was given out already: draw from max(p − q, 0).""")
            .by(missing=lambda p, q, token: p)
            .by(missing=lambda p, q, token: [w * (t != token) for t, w in enumerate(p)]),
            mistake("""the replacement comes from q
                You draw the replacement from the draft's distribution. It comes from what the
                target says more often, max(p − q, 0).""").by(missing=lambda p, q, token: q),
            mistake("""p − q is not cut off at 0
                p − q is negative where the draft says a token too often. Negative numbers are no
                probabilities, and neither is their size: `(p − q).clamp(min=0)`.""")
            .by(missing=absolute_differences)
            .by(missing=absolute_differences, **draws_by_torch())
            .by(missing=lambda p, q, token: [(a - b) ** 2 for a, b in zip(p, q, strict=True)]),
            mistake("""all that p has more of comes as often
                You draw evenly among the ids of which p has more. How much more decides: max(p − q,
                0), divided by its sum.
            """).by(missing=lambda *args: [float(w > 0) for w in positive_differences(*args)]),
            mistake("""p itself where p is above q
                You draw among the ids of which p has more, each as likely as p has it. The draft
                has given out q of that already: max(p − q, 0), divided by its sum.
            """).by(missing=lambda p, q, token: [a * (a > b) for a, b in zip(p, q, strict=True)]),
            mistake("""the square of p − q
                You draw from the squares of what p has more, which makes much of the largest. How
                much p has more decides as it is: max(p − q, 0), divided by its sum.
            """).by(missing=lambda *args: [w**2 for w in positive_differences(*args)]),
            mistake("""kept only where p is at least q
                You keep a guess where p ≥ q and refuse all others. Where p is smaller it is kept
                with probability p / q: draw a number from 0 to 1 and compare.""")
            .by(keep=lambda u, p, q, best: p >= q)
            .by(keep=lambda u, p, q, best: p > q),
            mistake("""kept only where it is the likeliest
                You keep a guess where the target would say it first of all. That is the rule for
                temperature 0; here it is kept with probability min(1, p / q).""").by(
                keep=lambda u, p, q, best: best
            ),
            mistake("""kept with probability p
                You compare the number that you draw with p. The draft has drawn this token with
                probability q already: compare with p / q.""").by(keep=lambda u, p, q, best: u < p),
            mistake("""kept with another probability than p / q
                You compare the number that you draw with |p − q|, p − q or p / (p + q). A guess is
                kept with probability min(1, p / q).""")
            .by(keep=lambda u, p, q, best: u < abs(p - q))
            .by(keep=lambda u, p, q, best: u < p - q)
            .by(keep=lambda u, p, q, best: u < p / (p + q or 1)),
            mistake("""kept with probability p · q
                You multiply p with q. The probability to keep a guess is p / q.""").by(
                keep=lambda u, p, q, best: u < p * q
            ),
            mistake("""kept where it should be refused
                You compare the wrong way round: a guess is kept where the drawn number is *below*
                p / q.""").by(keep=lambda u, p, q, best: q == 0 or u > p / q),
            mistake("""everything is kept
                You keep all guesses, whatever the target says.""").by(
                keep=lambda u, p, q, best: True
            ),
            mistake("""nothing is kept
                You refuse every guess. With probability min(1, p / q) it is kept.""").by(
                keep=lambda u, p, q, best: False
            ),
            mistake("""one number for all guesses
                You draw one number and compare every guess with it. Whether the second is kept must
                not hang on the first: draw one for each.""").by(one_u=True),
            mistake("""goes on after a refusal
                After the first refusal you look at the guesses behind it. They were guessed to
                follow a token that is not there: stop.""")
            .by(goes_on=True)
            .by(goes_on=True, one_more=False),
            mistake("""the refused one comes back
                You return the token that was refused, with its replacement behind it, or without.
                The replacement takes its place.""")
            .by(replaced=lambda accepted, token, new: [*accepted, token, new])
            .by(replaced=lambda accepted, token, new: [*accepted, token]),
            mistake("""nothing in place of the refused one
                You end at the refusal without a token for its place. One is drawn from
                max(p − q, 0): each call gives at least one.""").by(
                replaced=lambda accepted, token, new: accepted
            ),
            mistake("""the kept ones are missing
                You return the new token alone. The guesses that were kept come before it.""").by(
                replaced=lambda accepted, token, new: [new]
            ),
            mistake("""no token after all guesses are kept
                Where all are kept you return them alone. The target has said what comes after the
                last, too: draw one more from the last row of p_target.""").by(one_more=False),
            mistake("""one more after a refusal as well
                You add a token from the last row after a refusal, too. That row says what follows
                if *all* guesses are kept.""").by(always_one_more=True),
            mistake("""the last row is not the one after the guesses
                The token after k kept guesses comes from row k of p_target, its last one.""")
            .by(end=lambda P, k: P[max(k - 1, 0)])
            .by(end=lambda P, k: P[0]),
            mistake("""the row after the guess
                You judge guess i by row i + 1. Row i of p_target is what the target says in that
                place, before it has read the guess.""").by(
                row=lambda P, i: P[i + 1], missing_row=lambda P, i: P[i + 1]
            ),
            mistake("""the last row replaces a refused one
                You replace from the last row of p_target. It is the row of the refused guess, less
                what the draft says there.""").by(missing_row=lambda P, i: P[-1]),
            mistake("""the first row for all
                You compare every guess with the first row. Guess i has row i of both.""")
            .by(row=lambda P, i: P[0], missing_row=lambda P, i: P[0])
            .by(q_row=lambda Q, i: Q[0])
            .by(row=lambda P, i: P[0], missing_row=lambda P, i: P[0], q_row=lambda Q, i: Q[0]),
            mistake("""the likeliest, not one that is drawn
                You take the token with the largest probability. It is drawn: others have their
                chance, too.""")
            .by(draw=likeliest_id, draw_again=likeliest_id)
            .by(draw=likeliest_id)
            .by(draw_again=likeliest_id),
            mistake("""checked for greedy decoding
                You keep a guess where it is the likeliest token, and put the likeliest in its place
                where not. Each guess is kept with probability min(1, p / q), and what replaces it
                is drawn.""")
            .by(
                keep=lambda u, p, q, best: best,
                missing=lambda p, q, token: p,
                draw=likeliest_id,
                draw_again=likeliest_id,
            )
            .by(keep=lambda u, p, q, best: best, missing=lambda p, q, token: p, draw=likeliest_id)
            .by(keep=lambda u, p, q, best: best),
            mistake("""a softmax of probabilities
                You take the softmax of numbers that are probabilities already, which evens them
                out.""").by(
                again=lambda p: torch.tensor(p).softmax(-1).tolist(),
                normalize=lambda p: torch.tensor(p).softmax(-1).tolist(),
            ),
            mistake("""drawn without the generator
                Some of your random numbers come from torch's own generator, or from another
                library. Hand `generator=rng` to `torch.rand` *and* to `torch.multinomial`.""")
            .by(
                chance=uniform_without_rng,
                draw=lambda w, rng: id_at_cumulative_sum(w, uniform_without_rng(rng)),
                draw_again=lambda w, rng: id_at_cumulative_sum(w, uniform_without_rng(rng)),
            )
            .by(chance=uniform_without_rng)
            .by(
                draw=lambda w, rng: id_at_cumulative_sum(w, uniform_without_rng(rng)),
                draw_again=lambda w, rng: id_at_cumulative_sum(w, uniform_without_rng(rng)),
            )
            .by(draw=lambda w, rng: id_at_cumulative_sum(w, uniform_without_rng(rng)))
            .by(draw_again=lambda w, rng: id_at_cumulative_sum(w, uniform_without_rng(rng))),
            mistake("""a new generator in every call
                You make a generator anew, so that every call draws the same numbers. Use `rng` as
                it comes: it goes on from call to call.""").by(
                generator=lambda rng: torch.Generator().manual_seed(rng.initial_seed())
            ),
            mistake("""no tensor of ids
                You return a list, numbers of another dtype, or a tensor with another axis. Asked
                for is a tensor of one axis, int64.""")
            .by(finish=list)
            .by(finish=lambda ids: torch.tensor(ids).float())
            .by(finish=lambda ids: torch.tensor(ids).int())
            .by(finish=lambda ids: torch.tensor([ids]))
            .by(finish=lambda ids: np.array(ids)),
            mistake("""a count comes back
                You return how many were kept. The ids themselves are asked for, and one more.
            """).by(finish=lambda ids: torch.tensor(len(ids) - 1)),
        ),
        mistake("""guesses behind a refusal are counted
            You add up how many guesses pass, also those behind one that does not. What is kept ends
            at the first refusal: count up to there.""").whole(count_all_that_pass),
        mistake("""guesses behind a refusal are kept
            You look at all guesses at once and keep those that pass, also behind one that does not.
            They were guessed to follow a token that is not there: keep those before the first
            refusal.""").whole(keep_all_that_pass),
    ),
)
