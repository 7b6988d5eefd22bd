"""The exercise ``leak``: how far a function looks where it must not."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from attncourse import masking
from attncourse.bank.masking.shared import as_it_is
from attncourse.checks.callers import call_on_function
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases
from attncourse.checks.writing.cases import (
    CaseTable,
    Drawn,
    Row,
    hole,
    normal,
    once_more,
    row,
    standard,
)
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------

FORMULAS = {
    "linear_mix": "f(x) = A x W",
    "squashed_mix": "f(x) = tanh(A x W)",
    "mixed_product": "f(x) = (A x) · (B x), entry by entry",
    "small_attention": "f(x) = softmax(x W_q (x W_k)ᵀ) x W_v, over the allowed keys",
    "small_attention_masked_late": "f(x) = (softmax(x W_q (x W_k)ᵀ) · allowed) x W_v",
}
MIX_TENSORS, PROJECTION_TENSORS = (
    {"A": "m n", "W": "d 2"},
    {"W_q": "d 2", "W_k": "d 2", "W_v": "d 3"},
)
TENSORS = {
    "squashed_mix": MIX_TENSORS,
    "linear_mix": MIX_TENSORS,
    "mixed_product": {"A": "m n", "B": "m n"},
    "small_attention": PROJECTION_TENSORS,
    "small_attention_masked_late": PROJECTION_TENSORS,
}


def leak_case(kind: str, x: torch.Tensor, mask: torch.Tensor, note: str = "", **tensors) -> Case:
    """Return a case of ``leak(f, x, mask)``; ``kind`` names f among ``LENT_FUNCTIONS``."""
    note_text = "; ".join(text for text in (FORMULAS[kind], note) if text)
    return Case(
        (kind, x, mask), tensors, use=call_on_function, note=note_text, shown="leak(f, x, mask)"
    )


def lower_triangle(n: int, above: int = 0) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril(above)


@dataclass(frozen=True)
class LeakTable(CaseTable):
    """A table of cases of ``leak``; a row's options are f's name and its mask's reach ahead."""

    def case(self, rng: Rng, row: Row) -> Case:
        x, mask = self.arguments(rng, {**self.spec, **row.arguments}, row).values()
        kind = row.options.get("f", "squashed_mix")
        plain = Row(row.sizes)
        tensors = {
            name: self.argument(rng, name, Drawn(axes, cases.between), plain)
            for name, axes in TENSORS[kind].items()
        }
        if "ahead" in row.options:
            tensors["allowed"] = lower_triangle(row.sizes["n"], row.options["ahead"])
        return leak_case(kind, x, mask, row.note, **tensors)


CASES = LeakTable({"x": "... n d", "mask": hole("m n")}, how=normal)
ROWS = standard(CASES)


def linear_case(x: list, A: list, W: list, note: str = "", dtype=torch.float64) -> Case:
    """Return a case of A x W by hand, in which no token may look ahead."""
    weights = {"A": tensor(A, dtype), "W": tensor(W, dtype)}
    return leak_case("linear_mix", tensor(x, dtype), lower_triangle(len(x)), note, **weights)


BY_HAND = linear_case(
    [[1, 2], [0, 1], [3, -1]], [[1, 2, 0], [0, 1, -5], [9, 0, 1]], [[1, 0], [-1, 2]]
)
NO_LEAK = linear_case([[1, 2], [3, 4]], [[2, 0], [3, -4]], [[1, 1], [0, 5]])
ONE_FEATURE = linear_case(
    [[1], [2], [4]],
    [[1, -3, 2], [0, 1, 1], [7, 0, 1]],
    [[2]],
    "one feature, float32",
    torch.float32,
)
SQUARE_ROW = row(
    "m=5 n=5 d=3",
    arguments={"mask": Drawn("m n", lambda rng, shape: np.tri(shape[0], shape[1]) > 0)},
)
ALL_ALLOWED = {"mask": Drawn("m n", lambda rng, shape: np.ones(shape, bool))}
NOTHING_ALLOWED = {"mask": Drawn("m n", lambda rng, shape: np.zeros(shape, bool))}
PRODUCT_OPTIONS, ATTENTION_OPTIONS = {"f": "mixed_product"}, {"f": "small_attention"}
LATE_MASK_OPTIONS = {"f": "small_attention_masked_late", "ahead": 0}

# --- decisions and mistakes ----------------------------------------------------------------------


def derivatives(f: Callable, x: torch.Tensor) -> torch.Tensor:
    """Return ∂ out_ia / ∂ x_jc of each sequence, ``(..., m, d', n, d)``."""
    x = x.detach().clone().requires_grad_()
    out = f(x)
    rows = [
        torch.stack(
            [
                torch.autograd.grad(output.sum(), x, retain_graph=True)[0]
                for output in row.unbind(-1)
            ],
            -3,
        )
        for row in out.unbind(-2)
    ]
    return torch.stack(rows, -4)


def masked_pairs(mask: torch.Tensor, J: torch.Tensor) -> torch.Tensor:
    """Return where pairs are masked, ``(..., m, 1, n, 1)``."""
    return (~mask).broadcast_to(*J.shape[:-3], J.shape[-2])[..., :, None, :, None]


def at_hidden_pairs(J, hidden):
    return J.masked_fill(~hidden, 0)


@composition
def compose_leak(
    at=as_it_is,
    derive=derivatives,
    outputs=as_it_is,
    tokens=as_it_is,
    size=torch.abs,
    pairs=masked_pairs,
    gather=lambda J, hidden: at_hidden_pairs(J, hidden).max(),
    give=float,
):
    """Return ``leak`` made of decisions: where to differentiate, what to sum, which pairs count."""

    def leak(f, x, mask):
        J = tokens(outputs(derive(f, at(x))))
        return give(gather(size(J), pairs(mask, J)))

    return leak


def pairs_row_by_row(mask, J):
    """Return the masked pairs, of masks read row by row with an index."""
    rows = [mask[..., i, :] for i in range(J.shape[-4])]
    return masked_pairs(torch.stack(rows, -2), J)


def largest_of_first_n_rows(J, hidden):
    """Return the largest derivative in as many rows as there are tokens."""
    hidden_derivatives = at_hidden_pairs(J, hidden)
    return torch.stack([hidden_derivatives[..., i, :, :, :] for i in range(J.shape[-2])]).max()


def output_changes(f, x, change):
    """Return how far outputs move when a feature of a token changes, ``(..., m, d', n, d)``."""
    steps = []
    for j, c in product(range(x.shape[-2]), range(x.shape[-1])):
        changed = x.clone()
        change(changed, j, c)
        steps.append(f(changed) - f(x))
    return torch.stack(steps, -1).unflatten(-1, x.shape[-2:])


def finite_differences(step: float) -> dict:
    return {
        "derive": lambda f, x: output_changes(f, x, lambda x, j, c: x[..., j, c].add_(step)) / step
    }


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    masking.leak,
    section="Chapter 10, “The leak test”",
    difficulty=3,
    minutes=25,
    criteria=(
        CASES.criterion("the largest derivative over the masked pairs", 3).on(
            BY_HAND,
            SQUARE_ROW,
            SQUARE_ROW.but(options=PRODUCT_OPTIONS),
            SQUARE_ROW.but(arguments={}),
        ),
        # Of several, the largest derivative is a negative one somewhere, and of a later query.
        CASES.criterion("finds attention that looks ahead", 1).on(
            *[
                SQUARE_ROW.but(
                    options=ATTENTION_OPTIONS | {"ahead": 1}, note="one step ahead is allowed"
                )
            ]
            * 4
        ),
        CASES.criterion("finds what a mask after the softmax leaks", 1).on(
            *[SQUARE_ROW.but(options=LATE_MASK_OPTIONS, note="masked after the softmax")] * 4
        ),
        CASES.criterion("0 where nothing leaks", 1).on(
            NO_LEAK,
            SQUARE_ROW.but(options=ATTENTION_OPTIONS | {"ahead": 0}, note="allowed is the mask"),
            SQUARE_ROW.but(
                options={"f": "linear_mix"}, arguments=ALL_ALLOWED, note="nothing is masked"
            ),
        ),
        CASES.criterion("any number of queries, keys and features, of any size", 1).on(
            row("m=2 n=5 d=3", note="two queries, five keys"),
            row("m=5 n=3 d=4", arguments={"mask": hole("1 n")}, note="one row of the mask for all"),
            row(
                "m=1 n=1 d=3", arguments=NOTHING_ALLOWED, note="one token, which may not see itself"
            ),
            ONE_FEATURE,
            *(table_row.but(options=PRODUCT_OPTIONS) for table_row in ROWS.extreme),
            once_more(BY_HAND),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches[:3],
            *(
                table_row.but("n=3") for table_row in ROWS.batches[3:]
            ),  # one key would hide a mistake
            SQUARE_ROW.but(batch=(2,), arguments={"mask": hole("... 1 n")}, note="a mask for each"),
        ),
        unchanged(),
    ),
    excludes=(("integers in x", "A derivative is taken by x, which holds real numbers."),),
    mistakes=made(
        compose_leak,
        mistake("""the wrong pairs are measured
            Only pairs where the mask is False count, and row i of it belongs to output i. You
            measure those that are allowed, or all, or look up mask[j, i].""")
        .by(pairs=lambda mask, J: masked_pairs(~mask, J))
        .by(pairs=lambda mask, J: torch.ones_like(J, dtype=torch.bool))
        .by(pairs=lambda mask, J: masked_pairs(mask, J).movedim((-4, -2), (-2, -4))),
        mistake("""outputs do not have their rows of the mask
            Each of the `out.shape[-2]` outputs has a row of the mask, and one row may stand for
            all: `mask.broadcast_to(*out.shape[:-1], n)`. You take rows as they come, or go through
            as many outputs as x has tokens.""")
        .by(pairs=pairs_row_by_row)
        .by(gather=largest_of_first_n_rows),
        mistake("""the sign is kept
            You take the maximum of the derivatives themselves. A large negative one is as much a
            leak: take the absolute value first.""")
        .by(size=as_it_is)
        .by(size=lambda J: J.clamp(min=0)),
        mistake("""the features are not taken one by one
            You add up or average over the features of an output (`out[i].sum()`) or of a token, or
            look at the first alone. Derivatives can cancel in a sum: every single one counts.""")
        .by(outputs=lambda J: J.sum(-3, keepdim=True))
        .by(outputs=lambda J: J.mean(-3, keepdim=True))
        .by(outputs=lambda J: J[..., :1, :, :])
        .by(tokens=lambda J: J.sum(-1, keepdim=True))
        .by(tokens=lambda J: J.mean(-1, keepdim=True))
        .by(tokens=lambda J: J[..., :1])
        .by(tokens=lambda J: J.abs().sum(-1, keepdim=True))
        .by(tokens=lambda J: J.abs().mean(-1, keepdim=True)),
        mistake("""several outputs in one gradient
            `f(x).sum()` has one gradient for all outputs, and `backward()` adds to what `x.grad`
            holds. Each out[..., i, a] has its own: `torch.autograd.grad` adds nothing up.""")
        .by(outputs=lambda J: J.sum((-4, -3), keepdim=True).expand_as(J))
        .by(outputs=lambda J: J.flatten(-4, -3).cumsum(-3).unflatten(-3, J.shape[-4:-2]))
        .by(outputs=lambda J: J.cumsum(-3)),
        mistake("""something else than the largest
            You average what leaks, add it up, or take the norm of a block. One leaking pair among a
            thousand is a leak: the largest single derivative is asked for.""")
        .by(gather=lambda J, h: at_hidden_pairs(J, h).sum() / h.expand_as(J).sum().clamp(min=1))
        .by(gather=lambda J, h: at_hidden_pairs(J, h).mean())
        .by(gather=lambda J, h: at_hidden_pairs(J, h).sum())
        .by(
            *(
                {
                    "gather": lambda J, h, a=axes: (
                        at_hidden_pairs(J, h).norm(dim=a, keepdim=True).max()
                    )
                }
                for axes in ((-3, -1), -1, -3)
            )
        ),
        mistake("""only one query is tested
            You return after the first output, or keep what the last one gave. The largest of all
            outputs is asked for: `worst = max(worst, …)`.""")
        .by(gather=lambda J, hidden: at_hidden_pairs(J, hidden)[..., :1, :, :, :].max())
        .by(gather=lambda J, hidden: at_hidden_pairs(J, hidden)[..., -1:, :, :, :].max())
        .by(gather=lambda J, hidden: at_hidden_pairs(J, hidden)[..., -1:, -1:, :, :].max()),
        mistake("""only one sequence is tested
            Of a batch you look at one sequence alone, the first or the last. The largest derivative
            of all sequences is asked for.""")
        .by(gather=lambda J, hidden: at_hidden_pairs(J, hidden).reshape(-1, *J.shape[-4:])[0].max())
        .by(
            gather=lambda J, hidden: at_hidden_pairs(J, hidden).reshape(-1, *J.shape[-4:])[-1].max()
        ),
        mistake("""divided by the number of sequences
            You average over the batch, `out[..., i, a].mean()`, and the derivative of each sequence
            is divided by how many there are. Add up, `.sum()`: no sequence depends on another.""")
        .by(outputs=lambda J: J / max(J.shape[:-4].numel(), 1))
        .by(outputs=lambda J: J.reshape(-1, *J.shape[-4:]).mean(0)),
        mistake("""nothing masked is not provided for
            Where no pair is masked, there is nothing to take the largest of, and `max` raises an
            error, or gives −∞ or less than 0. The answer is 0 there.""")
        .by(gather=lambda J, hidden: J[hidden.expand_as(J)].max())
        .by(gather=lambda J, hidden: max(J[hidden.expand_as(J)].tolist()))
        .by(gather=lambda J, hidden: J.masked_fill(~hidden, -math.inf).max())
        .by(gather=lambda J, hidden: J.masked_fill(~hidden, -1).max()),
        mistake("""the derivative is taken elsewhere
            You differentiate at zeros, or at numbers of your own. The derivative at x is asked for;
            elsewhere it is another.""")
        .by(at=torch.zeros_like)
        .by(at=torch.ones_like),
        mistake("""not one number
            You return whether there is a leak, or a number for each sequence. The answer is one
            number: the largest absolute derivative of all, 0.0 where nothing leaks.""")
        .by(give=lambda worst: bool(worst > 0))
        .by(give=lambda worst: float(worst > 0))
        .by(
            gather=lambda J, hidden: at_hidden_pairs(J, hidden).amax((-4, -3, -2, -1)),
            give=as_it_is,
        ),
        mistake("""a difference in place of the derivative
            You move a token a little, or set it to 0, and see how far the outputs move. The
            derivative at x itself is asked for: `torch.autograd.grad` gives it exactly.""")
        .by(finite_differences(1e-3))
        .by(derive=lambda f, x: output_changes(f, x, lambda x, j, c: x[..., j, :].zero_()))
        .by_any(finite_differences, (0.1, 1e-2, 1e-4, 1e-5, 1e-6)),
        mistake("""x does not ask for a gradient
            Nothing can be differentiated by x as it comes. Make a copy that can: `x =
            x.detach().clone().requires_grad_()`.
        """).by(derive=lambda f, x: torch.autograd.grad(f(x)[..., 0, 0].sum(), x)[0]),
    ),
)
