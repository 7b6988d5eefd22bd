"""The exercise ``pronoun_bias``: how much a model prefers *she* to *he*."""

import math
from dataclasses import replace

import torch

from attncourse import interpret
from attncourse.bank.interpret.cases import SIZES, model_text, random_ids, state_of_gpt
from attncourse.checks.callers import call_on_gpt
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def bias_case(
    rng: Rng, *lengths: int, she: int = 3, he: int = 8, note: str = "", **changed
) -> Case:
    """Return a case of contexts of these lengths."""
    config = SIZES | changed
    contexts = [random_ids(rng, n) for n in lengths]
    return Case(
        kwargs={"config": config, "args": (contexts, she, he)} | state_of_gpt(rng, config),
        use=call_on_gpt,
        note=note or f"contexts of {', '.join(map(str, lengths))} tokens",
        shown=f"pronoun_bias(model, contexts, {she}, {he}), model = {model_text(changed)}",
    )


def with_exchanged_words(case: Case) -> list[Case]:
    """Return the case, and the same with she and he exchanged: one result is below 0."""
    contexts, she, he = case.kwargs["args"]
    shown = case.shown.replace(f"contexts, {she}, {he}", f"contexts, {he}, {she}")
    kwargs = {**case.kwargs, "args": (contexts, he, she)}
    return [case, replace(case, kwargs=kwargs, note=f"{case.note}, exchanged", shown=shown)]


def repeated_cases(rng: Rng) -> list[Case]:
    first = bias_case(rng, 4, 6)
    return [*with_exchanged_words(first), bias_case(rng, 3, 5, 2), once_more(first)]


# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_pronoun_bias(
    prepare=list,
    row_of=lambda logits: logits[-1],
    score=lambda row: row.log_softmax(-1),
    compare=lambda scores, she, he: scores[she] - scores[he],
    average=lambda preferences, contexts: sum(preferences) / len(preferences),
    finish=float,
):
    """Return ``pronoun_bias`` made of decisions: which row, which scores, how they are compared."""

    def pronoun_bias(model, contexts, she, he):
        with torch.no_grad():
            contexts = prepare(contexts)
            preferences = [compare(score(row_of(model(c))), she, he) for c in contexts]
            return finish(average(preferences, contexts))

    return pronoun_bias


def all_rows(logits):
    return logits


def pad_contexts(contexts):
    longest = max(map(len, contexts))
    return [torch.cat([c, c.new_zeros(longest - len(c))]) for c in contexts]


def cut_to_shortest(contexts):
    return [c[: min(map(len, contexts))] for c in contexts]


def drop_last_token(contexts):
    return [c[:-1] if len(c) > 1 else c for c in contexts]


def weigh_by_length(preferences, contexts):
    return sum(f * len(c) for f, c in zip(preferences, contexts, strict=True)) / sum(
        map(len, contexts)
    )


def ratio_of_means(score=lambda row: row.softmax(-1)) -> dict:
    """Return the options that take the log of the ratio of the mean probabilities."""
    return {
        "score": score,
        "compare": lambda p, she, he: torch.stack([p[she], p[he]]),
        "average": lambda preferences, contexts: torch.stack(list(preferences)).mean(0),
        "finish": lambda both: float(both[0].log() - both[1].log()),
    }


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    interpret.pronoun_bias,
    section="Chapter 14, “A stereotype of known strength”",
    difficulty=2,
    minutes=15,
    limit=10.0,
    criteria=(
        Criterion("the mean of log p(she) − log p(he)", 3).on(
            lambda rng: [bias_case(rng, 6), *with_exchanged_words(bias_case(rng, 5, 5, 5))]
        ),
        Criterion("contexts of different lengths", 2).on(
            lambda rng: [
                *with_exchanged_words(bias_case(rng, 3, 7, 5)),
                bias_case(rng, 9, 2, 6, 4),
            ]
        ),
        Criterion("any two tokens, any model, a context of one token", 1).on(
            lambda rng: [
                bias_case(rng, 4, 1, 3),
                *with_exchanged_words(bias_case(rng, 1, note="one token")),
                bias_case(rng, 3, 5, she=10, he=0, note="ids 10 and 0"),
                bias_case(rng, 2, 6, she=0, he=5, tied=False, bias=False, n_layers=1),
                bias_case(rng, 4, 2, she=6, he=6, note="the same token twice"),
            ]
        ),
        Criterion("again, after others", 1).on(repeated_cases),
        unchanged(),
    ),
    excludes=(("*", "What it is given is a model and sequences of ids."),),
    mistakes=made(
        compose_pronoun_bias,
        mistake("""he minus she
            Your sign is the wrong way round: log p(she) − log p(he) is positive where she is
            expected.""").by(compare=lambda s, she, he: s[he] - s[she]),
        mistake("""a difference of probabilities
            You subtract probabilities. 0.02 against 0.01 is twice as likely, 0.51 against 0.5 is
            not: compare their logs.""").by(score=lambda row: row.softmax(-1)),
        mistake("""a guard in the log
            You add a small number to the probabilities. They are above 0 as they are, and
            `log_softmax` takes the log without a detour.""")
        .by(score=lambda row: (row.softmax(-1) + 1e-3).log())
        .by_any(
            lambda eps: {"score": lambda row: (row.softmax(-1) + eps).log()}, Between(1e-8, 1.0)
        ),
        mistake("""a ratio, without its log
            You return p(she) / p(he). Its mean is ruled by the contexts in which it is large; the
            log makes both directions count alike.
        """).by(compare=lambda s, she, he: (s[she] - s[he]).exp()),
        mistake("""a probability, or its log, not a log ratio
            You return the probability of *she* among the two, or its log. Return the log of the
            ratio, 0 where both are alike.""")
        .by(compare=lambda s, she, he: (s[she] - s[he]).sigmoid())
        .by(compare=lambda s, she, he: torch.nn.functional.logsigmoid(s[she] - s[he])),
        mistake("""the average comes before the log
            You average probabilities, or their ratios, over the contexts, and take the log then.
            Take the log in each context, and average the differences.""")
        .by(ratio_of_means())
        .by(compare=lambda s, she, he: (s[she] - s[he]).exp(), finish=lambda mean: math.log(mean)),
        mistake("""another base
            The log is the natural one, in nats: `torch.log`, or `log_softmax`.""")
        .by(compare=lambda s, she, he: (s[she] - s[he]) / math.log(2))
        .by(compare=lambda s, she, he: (s[she] - s[he]) / math.log(10)),
        mistake("""not the last row of the logits
            What comes after the context is in the *last* row of the logits, `logits[-1]`. You read
            another row, or average over the rows of each context, or over those of all.""")
        .by(
            row_of=all_rows,
            compare=lambda s, she, he: s[:, she] - s[:, he],
            average=lambda preferences, contexts: torch.cat(preferences).mean(),
        )
        .by(row_of=lambda logits: logits[0])
        .by(prepare=drop_last_token)
        .by(row_of=lambda logits: logits[-2] if len(logits) > 1 else logits[-1])
        .by(row_of=lambda logits: logits[-2])
        .by(row_of=lambda logits: logits.mean(0))
        .by(row_of=lambda logits: logits.sum(0)),
        mistake("""softmax over the tokens of the context
            Your softmax runs over the positions. It runs over the vocabulary, the last axis.
        """).by(row_of=lambda logits: logits.log_softmax(0)[-1], score=as_it_is),
        mistake("""added up, not averaged
            You add up over the contexts. Divide by their number.
        """).by(average=lambda preferences, contexts: sum(preferences)),
        mistake("""one context alone
            You return after the first context, or keep what the last one gave. The mean of all is
            asked for.""")
        .by(average=lambda preferences, contexts: preferences[0])
        .by(average=lambda preferences, contexts: preferences[-1])
        .by(average=lambda preferences, contexts: preferences[-1] / len(preferences)),
        mistake("""averaged over the tokens
            Long contexts count more in your average. Each context counts once.
        """).by(average=weigh_by_length),
        mistake("""the padding is asked what comes next
            You fill the contexts up to one length and read the last row, which then belongs to
            padding. Read the row of each context's own last token, or one context at a time.
        """).by(prepare=pad_contexts),
        mistake("""the contexts are cut
            You cut the contexts to one length, or leave their last token out. The model is to read
            the whole of each.""")
        .by(prepare=cut_to_shortest)
        .by(prepare=lambda contexts: [c[:-1] if len(c) > 1 else c for c in contexts]),
        mistake("""without a sign
            You take the absolute value. The sign says who is expected.""")
        .by(compare=lambda s, she, he: (s[she] - s[he]).abs())
        .by(finish=lambda mean: abs(float(mean))),
        mistake("""counted, not weighed
            You count the contexts in which she is the likelier one. How much likelier is asked.""")
        .by(compare=lambda s, she, he: (s[she] > s[he]).double())
        .by(compare=lambda s, she, he: (s[she] - s[he]).sign()),
        mistake("""only one of the two
            You return log p of one token. A context may make both unlikely: only the difference
            says which is preferred.""")
        .by(compare=lambda s, she, he: s[she])
        .by(compare=lambda s, she, he: -s[he]),
    ),
)
