"""The exercise ``generate``: a text continued token by token."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from attncourse import gpt
from attncourse.checks import callers
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import CaseTable, Row, normal, once_more, row
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

D, VOCABULARY, LONGEST = 5, 11, 6


@dataclass(frozen=True)
class PromptTable(CaseTable):
    """A table of prompts of ``n`` tokens, ``n_new`` more, and a model that reads ``LONGEST``."""

    spec: Any = field(default_factory=dict)

    def case(self, rng: Rng, row: Row) -> Case:
        n, n_new = row.sizes["n"], row.sizes["n_new"]
        ids = rng.integers(0, VOCABULARY, (*row.batch, n))
        ids = torch.from_numpy(np.asfortranarray(ids) if row.turned else ids)
        weights = {
            "tokens": normal(rng, (VOCABULARY, D)),
            "positions": normal(rng, (LONGEST, D)),
            "scores": 3 * normal(rng, (D, VOCABULARY)),
        }
        choose = row.options.get("choose", "")
        choose_text = f", choose = {choose}" if choose else ""
        return Case(
            ("small_model", ids, n_new, *([choose] if choose else [])),
            {name: tensor(x) for name, x in weights.items()},
            use=callers.call_on_model,
            note=row.note,
            shown=f"generate(model, ids, {n_new}{choose_text}), model.max_length = {LONGEST}",
        )


CASES = PromptTable()
BY_HAND = Case(
    ("small_model", torch.tensor([2, 0]), 3),
    {
        "tokens": tensor([[1, 0], [0, 1], [1, 1]]),
        "positions": tensor([[1, 1], [1, -1], [-2, 1], [1, 1]]),
        "scores": tensor([[1, 2, -1], [3, -1, 1]]),
    },
    use=callers.call_on_model,
    shown="generate(model, ids, 3), model.max_length = 4",
)
PROMPT_ROW = row("n=3 n_new=3")
CHOOSE_LEAST = {"choose": "the least likely"}
CHOOSE_SECOND = {"choose": "the second most likely"}
CHOOSE_COUNT = {"choose": "how many are above 0"}

# --- decisions and mistakes ----------------------------------------------------------------------


def last_ids(ids, longest):
    return ids[..., -longest:]


def last_row(logits):
    return logits[..., -1, :]


def likeliest_id(logits):
    return logits.argmax(-1)


def append_behind(ids, token):
    return torch.cat([ids, token[..., None]], -1)


@composition
def compose_generate(
    sees=lambda ids, prompt: ids,
    context=last_ids,
    stop=lambda ids, longest: False,
    trim=lambda ids, longest: ids,
    look=last_row,
    default=likeliest_id,
    hand=lambda logits: logits,
    used=lambda choose, default: default if choose is None else choose,
    append=append_behind,
    times=lambda n_new, n: n_new,
    keep=lambda ids, longest: ids,
    finish=lambda ids, prompt: ids,
):
    """Return ``generate`` made of decisions."""

    def generate(model, ids, n_new, choose=None):
        prompt, chosen = ids, used(choose, default)
        for _ in range(times(n_new, ids.shape[-1])):
            if stop(ids, model.max_length):
                break
            ids = trim(ids, model.max_length)
            logits = model(context(sees(ids, prompt), model.max_length))
            ids = append(ids, chosen(hand(look(logits))))
            ids = keep(ids, model.max_length)
        return finish(ids, prompt)

    return generate


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    gpt.generate,
    section="Chapter 13, “Writing on”",
    difficulty=2,
    minutes=15,
    criteria=(
        CASES.criterion("appends the likeliest token, n_new times", 2).on(
            BY_HAND,
            PROMPT_ROW,
            row("n=2 n_new=4"),
            row("n=3 n_new=3"),
        ),
        CASES.criterion("the last max_length tokens are the context", 2).on(
            row("n=4 n_new=7", note="outgrows the model"),
            row("n=6 n_new=3", note="fills the model"),
            row("n=19 n_new=2", note="a prompt longer than the model reads"),
            row("n=3 n_new=19", batch=(2,), note="a long text"),
        ),
        CASES.criterion("choose decides, by the logits", 2).on(
            PROMPT_ROW.but(options=CHOOSE_LEAST),
            PROMPT_ROW.but(options=CHOOSE_COUNT),
            PROMPT_ROW.but("n_new=9", options=CHOOSE_SECOND),
            PROMPT_ROW.but("n_new=5", batch=(3,), options=CHOOSE_COUNT, note="a batch of 3"),
        ),
        CASES.criterion("batches, a prompt of one token, one new token or none", 1).on(
            row("n=1 n_new=4", note="a prompt of one token"),
            row("n=4 n_new=0", note="nothing new"),
            row("n=2 n_new=1", note="one new token"),
            PROMPT_ROW.but(batch=(2,), note="a batch of 2"),
            PROMPT_ROW.but("n=2 n_new=3", batch=(2,), note="as many sequences as tokens"),
            PROMPT_ROW.but(
                "n=3 n_new=2", batch=(5,), note="as many sequences as tokens at the end"
            ),
            PROMPT_ROW.but("n=3 n_new=0", batch=(3,), note="nothing new"),
            PROMPT_ROW.but(batch=(2,), turned=True, note="not contiguous in memory"),
            PROMPT_ROW.but(batch=(2, 3), note="two batch axes"),
            PROMPT_ROW.but(batch=(2, 3), turned=True, note="two batch axes, not contiguous"),
            PROMPT_ROW.but(batch=(2, 1, 3), note="three batch axes"),
            PROMPT_ROW.but(batch=(2, 4, 3), turned=True, note="three batch axes, not contiguous"),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    mistakes=made(
        compose_generate,
        mistake("""more tokens than the model reads
            You hand the model the whole sequence however long it is. It knows positions up to
            `model.max_length`: hand it `ids[..., -model.max_length:]`.
        """).by(context=lambda ids, longest: ids),
        mistake("""the context is the beginning
            You hand the model the first max_length tokens, so it never sees what it wrote. The
            *last* ones are the context.""").by(context=lambda ids, longest: ids[..., :longest]),
        mistake("""the context is too short
            You drop a token more than you have to: the model reads max_length tokens.""")
        .by(context=lambda ids, longest: ids[..., -(longest - 1) :])
        .by(context=lambda i, longest: i if i.shape[-1] < longest else i[..., 1 - longest :]),
        mistake("""a full context starts again
            When the model is full you go on from a shorter context. It slides: the last max_length
            tokens, at every step.""")
        .by(
            context=lambda ids, longest: (
                ids if ids.shape[-1] <= longest else ids[..., -(longest // 2) :]
            )
        )
        .by(context=lambda ids, longest: ids[..., (ids.shape[-1] - 1) // longest * longest :]),
        mistake("""the model sees the last token alone
            You hand the model only the newest token. Without a cache it remembers nothing: hand it
            the whole context.""").by(context=lambda ids, longest: ids[..., -1:]),
        mistake("""another row of the logits
            You look at the first row, which guesses the second token, or at the mean of all. The
            last row guesses what comes next: `logits[..., -1, :]`.""")
        .by(look=lambda logits: logits[..., 0, :])
        .by(look=lambda logits: logits.mean(-2)),
        mistake("""axes counted from the front
            `logits[:, -1]` and `torch.cat(…, dim=1)` fit exactly one batch axis, `logits[-1]` fits
            none. Count from the end: `logits[..., -1, :]`, `dim=-1`.""")
        .by(look=lambda logits: logits[:, -1])
        .by(append=lambda ids, token: torch.cat([ids, token[..., None]], 1))
        .by(append=lambda ids, token: torch.cat([ids, token[:, None]], 1))
        .by(look=lambda logits: logits[-1]),
        mistake("""choose is not used
            You take the likeliest token whatever `choose` is.
        """).by(used=lambda choose, default: default),
        mistake("""choose gets shares
            You take the softmax before you call `choose`. It expects logits: `sample_token` divides
            them by a temperature.""")
        .by(hand=lambda logits: logits.softmax(-1))
        .by(hand=lambda logits: logits.log_softmax(-1)),
        mistake("""choose gets the logits of all places
            You hand `choose` the logits of every token of the context. It is asked about what comes
            next: the last row, `logits[..., -1, :]`.""")
        .by(
            look=lambda logits: logits,
            append=lambda ids, token: torch.cat([ids, token[..., -1:]], -1),
        )
        .by(
            used=lambda choose, default: (
                (lambda logits: default(logits[..., -1, :])) if choose is None else choose
            ),
            look=lambda logits: logits,
        ),
        mistake("""the least likely token
            Without `choose` the most likely token is asked for: `argmax`.
        """).by(default=lambda logits: logits.argmin(-1)),
        mistake("""only the new tokens come back
            You return what was written without the prompt. The whole sequence is asked for.
        """).by(finish=lambda ids, prompt: ids[..., prompt.shape[-1] :]),
        mistake("""the beginning is lost
            You cut `ids` itself to the context, so what comes back has lost its beginning. Keep the
            context in a name of its own.""")
        .by(keep=lambda ids, longest: ids[..., -longest:])
        .by(finish=lambda ids, prompt: ids[..., -LONGEST:])
        .by(trim=last_ids),
        mistake("""the writing stops when the model is full
            You stop where the sequence is as long as the model reads. It goes on with the last
            max_length tokens, until n_new are written.
        """).by(stop=lambda ids, longest: ids.shape[-1] >= longest),
        mistake("""every token from the prompt
            You ask the model about the prompt and never about what was written, so the same token
            comes again and again. Call it anew for every token.
        """).by(sees=lambda ids, prompt: prompt),
        mistake("""another number of new tokens
            You write one token too many or too few, or go on to n_new tokens with the prompt. n_new
            new ones are asked for, 0 included.""")
        .by(times=lambda n_new, n: n_new + 1)
        .by(times=lambda n_new, n: max(n_new - 1, 0))
        .by(times=lambda n_new, n: max(n_new, 1))
        .by(times=lambda n_new, n: max(n_new - n, 0)),
        mistake("""new tokens are put in front
            The new token comes behind the others.
        """).by(append=lambda ids, token: torch.cat([token[..., None], ids], -1)),
        mistake("""a token is lost for each new one
            You write the new token over the last one, or over the first. The sequence grows by one
            at every step.""")
        .by(append=lambda ids, token: torch.cat([ids[..., :-1], token[..., None]], -1))
        .by(append=lambda ids, token: torch.cat([ids[..., 1:], token[..., None]], -1)),
    ),
)
