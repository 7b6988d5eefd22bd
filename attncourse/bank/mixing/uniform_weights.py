"""The exercise ``uniform_weights``: the weights of the plain average."""

import numpy as np

from attncourse import mixing
from attncourse.bank.mixing.shared import (
    ANY_NUMBER,
    ONE_TOKEN,
    SHARES_CUT_TO_WHOLE,
    repeated_call_cases,
)
from attncourse.checks.exercise import Criterion, composition, exercise
from attncourse.checks.writing.mistakes import Between
from attncourse.checks.writing.recipes import made, mistake

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_uniform_weights(share=lambda n: 1 / n, shape=lambda n: (n, n), finish=lambda W: W):
    """Return ``uniform_weights`` made of decisions."""
    return lambda n: finish(np.full(shape(n), share(n)))


OF_UNIFORM = (
    mistake("""another share than 1/n
        n tokens share a budget of 1, so each gets 1/n. Your entries are 1, one and the same number
        for every n, or do not follow 1/n.""")
    .by(share=lambda n: 1.0)
    .by(share=lambda n: 1 / (n + 1))
    .by(share=lambda n: 1 / max(n - 1, 1))
    .by(share=lambda n: n**-0.5)
    .by_any(lambda number: {"share": lambda n: number}, Between(1e-3, 100.0)),
    mistake("""the whole matrix sums to 1
        Your entries are 1/n², so all of them together sum to 1. Each row has a budget of 1 of its
        own.""").by(share=lambda n: 1 / n**2),
    SHARES_CUT_TO_WHOLE.here(share=lambda n: 1 // n),
    mistake("""one row only
        You return one row of weights. Every one of the n tokens needs its row: shape (n, n).""")
    .by(shape=lambda n: n)
    .by(shape=lambda n: (1, n))
    .by(shape=lambda n: (n, 1)),
    mistake("""a token leaves itself out, or hears itself alone
        Your diagonal is 0, or all the rest is. The plain average counts every token the same, the
        token itself included: all n entries of a row are 1/n.""")
    .by(finish=lambda W: (1 - np.eye(len(W))) / max(len(W) - 1, 1))
    .by(finish=lambda W: (1 - np.eye(len(W))) / np.float64(len(W) - 1))
    .by(finish=lambda W: W * (1 - np.eye(len(W))))
    .by(finish=lambda W: W * np.eye(len(W)))
    .by(finish=lambda W: np.eye(len(W))),
)

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    mixing.uniform_weights,
    section="Chapter 2, “Four matrices”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(Criterion("every weight is 1/n", 1).on(repeated_call_cases), ANY_NUMBER, ONE_TOKEN),
    mistakes=made(compose_uniform_weights, *OF_UNIFORM),
)
