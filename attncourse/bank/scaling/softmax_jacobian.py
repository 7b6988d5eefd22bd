"""The exercise ``softmax_jacobian``: how weights move with their scores."""

import torch

from attncourse import scaling
from attncourse.bank.scaling.cases import (
    BATCH_OF_THREE,
    ONLY_WEIGHTS,
    random_weights,
    saturated_weights,
)
from attncourse.checks.exercise import Case, composition, exercise, unchanged
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.mistakes import reversed_axes
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

CASES = CaseTable({"p": "... n"}, how=random_weights)
ROWS = standard(CASES)
BY_HAND = Case((tensor([0.5, 0.25, 0.25]),))

# --- decisions and mistakes ----------------------------------------------------------------------


def outer(p):
    return p[..., :, None] * p[..., None, :]  # (..., n, n)


def eye(p):
    return torch.eye(p.shape[-1], dtype=p.dtype)


@composition
def compose_softmax_jacobian(
    take=lambda p: p,
    first=torch.diag_embed,
    second=outer,
    combine=lambda first, second: first - second,
    finish=lambda J: J,
):
    """Return diag(p) − p pᵀ made of decisions: its two terms, what is done to them and before."""

    def softmax_jacobian(p):
        taken = take(p)
        return finish(combine(first(taken), second(taken)))

    return softmax_jacobian


def entry_by_entry(p):
    """Return J of a single row, by two loops."""
    J = torch.zeros(len(p), len(p), dtype=p.dtype)
    for i in range(len(p)):
        for j in range(len(p)):
            J[i, j] = p[i] * ((i == j) * 1 - p[j])
    return J


def off_diagonal(p):
    return outer(p) * (1 - eye(p))


def all_rows_by_all_rows(J):
    """Return autograd's jacobian of a whole batch: (..., n, ..., n)."""
    jacobian = torch.block_diag(*J.reshape(-1, *J.shape[-2:]))
    return jacobian.reshape(*J.shape[:-1], *J.shape[:-1])


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    scaling.softmax_jacobian,
    section="Chapter 7, “How the weights move with their scores”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        CASES.criterion("diag(p) − p pᵀ of one row", 3).on(BY_HAND, row("n=5")),
        CASES.criterion("of each row of a batch by itself", 1).on(
            Case((tensor([[0.5, 0.25, 0.25], [0.25, 0.75, 0]]),), note="two rows"),
            *ROWS.contiguous,
        ),
        CASES.criterion(cases.SCATTERED, 1).on(*ROWS.not_contiguous),
        CASES.criterion("one weight, one row, any memory layout", 1).on(
            Case((tensor([1]),), note="one weight"),
            row("n=7", batch=(1,), note="one row"),
            row("n=3", batch=(7,), turned=True, note="not contiguous in memory"),
        ),
        CASES.criterion("float32 and saturated weights", 1).on(
            ROWS.single.but(batch=(3,)),
            Case((tensor([[0, 1, 0, 0]]),), note="saturated: J is 0"),
            BATCH_OF_THREE.but(
                arguments={"p": Drawn("... n", saturated_weights)}, note="nearly saturated"
            ),
            once_more(BY_HAND),
        ),
        CASES.criterion("gradients reach p", 1).on(*ROWS.gradients),
        unchanged(),
    ),
    excludes=ONLY_WEIGHTS,
    mistakes=made(
        compose_softmax_jacobian,
        mistake("""a sign is wrong
            It is diag(p) − p pᵀ: with its own score a weight grows, so the diagonal is positive;
            what it gains the others lose, so the rest is negative and every row sums to 0.""")
        .by(combine=lambda first, second: second - first)
        .by(combine=lambda first, second: first + second)
        .by(second=lambda p: outer(p) * (2 * eye(p) - 1)),
        mistake("""a term is missing
            You return diag(p) or −p pᵀ alone. A weight grows with its own score, by p_i, and all of
            them share the sum that they are divided by: diag(p) − p pᵀ.""")
        .by(first=lambda p: 0)
        .by(second=lambda p: 0),
        mistake("""each weight by its own score only
            You return p (1 − p), as a vector or on the diagonal, as for a sigmoid. In a softmax
            every weight depends on every score: off the diagonal stands −p_i p_j.""")
        .by(second=lambda p: torch.diag_embed(p**2))
        .by(finish=lambda J: J.diagonal(dim1=-2, dim2=-1)),
        mistake("""another matrix in place of diag(p)
            Your first term is the identity, or has p in every row or column. It is p_i on the
            diagonal and 0 elsewhere: `torch.diag_embed(p)`.""")
        .by(first=eye)
        .by(first=lambda p: p[..., :, None])
        .by(first=lambda p: p[..., None, :]),
        mistake("""one index twice
            You compute p_i (δ_ij − p_i) or p_j (δ_ij − p_j). The first factor belongs to the weight
            that moves, the second to the score that moves it: p_i (δ_ij − p_j).""")
        .by(second=lambda p: p[..., :, None] ** 2)
        .by(second=lambda p: p[..., None, :] ** 2),
        mistake("""the factor p_i is missing
            You compute δ_ij − p_j, which is how the *logarithm* of a weight moves with the scores.
            The weight itself moves p_i times as much: p_i (δ_ij − p_j).
        """).by(first=eye, second=lambda p: p[..., None, :]),
        mistake("""the diagonal is another
            You are right off the diagonal. On it you return p_i, 1 − p_i, 0 or the like: both terms
            count there, p_i − p_i², which is p_i (1 − p_i).""")
        .by(second=off_diagonal)
        .by(first=lambda p: 0, second=off_diagonal)
        .by(first=lambda p: torch.diag_embed(1 - p), second=off_diagonal)
        .by(first=lambda p: torch.diag_embed(1 - p)),
        mistake("""no outer product
            You take away `p * p`, every entry times itself, or sums of these over the keys or over
            the rows. p pᵀ has every entry times every other, within a row: `p[..., :, None] *
            p[..., None, :]`.""")
        .by(second=lambda p: p * p)
        .by(second=lambda p: (p * p).sum(-1)[..., None, None])
        .by(second=lambda p: p @ reversed_axes(p))
        .by(second=lambda p: reversed_axes(p) @ p)
        .by(second=lambda p: p.mT @ p),
        mistake("""another softmax
            You apply a softmax to p. The argument holds the weights, which went through it.""").by(
            take=lambda p: p.softmax(-1)
        ),
        mistake("""a number of batch axes is assumed
            `torch.diag`, `torch.outer`, `.T` and `p[:, None]` are for a single row, `p[:, :, None]`
            and `torch.bmm` for one batch axis. Count from the end: `p[..., :, None]`.""")
        .by(first=torch.diag, second=lambda p: torch.outer(p, p))
        .by(second=lambda p: torch.bmm(p[:, :, None], p[:, None, :]))
        .by(second=lambda p: torch.einsum("bi,bj->bij", p, p))
        .by(second=lambda p: p.unsqueeze(2) * p.unsqueeze(1))
        .by(second=lambda p: p[:, None] * p[None, :])
        .by(second=lambda p: torch.outer(p.flatten(), p.flatten()))
        .by(first=torch.diag)
        .by(first=entry_by_entry, second=lambda p: 0)
        .by(
            first=lambda p: torch.stack([torch.diag(row) for row in p]),
            second=lambda p: torch.stack([torch.outer(row, row) for row in p]),
        )
        .by(second=lambda p: p[..., None] @ reversed_axes(p[..., None])),
        mistake("""every row by the scores of every row
            Your result is (..., n, ..., n), as of `torch.autograd.functional.jacobian` for a whole
            batch. Rows do not depend on each other: one matrix for each, (..., n, n).
        """).by(finish=all_rows_by_all_rows),
    ),
)
