"""The exercise ``BilinearScore``: queries and keys compared through a learned matrix."""

import torch
from torch import nn

from attncourse import scoring
from attncourse.checks.exercise import Rng, composition, exercise, unchanged
from attncourse.checks.writing import cases, mistakes
from attncourse.checks.writing.cases import normal, row, standard
from attncourse.checks.writing.decisions import Score, module_class
from attncourse.checks.writing.modules import ModuleTable, State, module_case, start_case, tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def bilinear_state(rng: Rng, d_q: int, d_k: int) -> State:
    return {"W": tensor(normal(rng, (d_q, d_k)))}


PAIR = {"query": "... m d_q", "key": "... n d_k"}
CASES = ModuleTable(PAIR, name="BilinearScore", build="d_q d_k", state=bilinear_state)
ROWS = standard(CASES)
BY_HAND = module_case(
    "BilinearScore",
    (2, 3),
    {"W": tensor([[1, 0, 2], [0, 3, 1]])},
    {"query": tensor([[1, 0], [1, 1]]), "key": tensor([[1, 1, 0], [0, 1, 2]])},
)

# --- decisions and mistakes ----------------------------------------------------------------------


@composition
def compose_bilinear_score(
    layers=lambda d_q, d_k: {"W": nn.Parameter(torch.randn(d_q, d_k))}, **options
):
    """Return a ``BilinearScore`` made of decisions: what it holds, how it scores."""
    score = Score.of(options)

    def forward(self, query, key):
        return score(query, key, self.W)

    return module_class("BilinearScore", layers, forward=forward, **options)


KEY_FIRST = mistakes.ROLES_EXCHANGED.by(prepare=lambda query, key: (key, query))

# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    scoring.BilinearScore,
    section="Chapter 6, “A matrix in between”",
    difficulty=2,
    minutes=15,
    forbids=("bilinear",),
    criteria=(
        CASES.criterion("query times W times key, for every pair", 3).on(
            BY_HAND,
            row("m=4 n=4 d_q=5 d_k=5", note="d_q = d_k, as many queries as keys"),
            row("m=3 n=7 d_q=5 d_k=5", note="d_q = d_k", then="m=5 n=2"),
            row("m=3 n=7 d_q=5 d_k=5", then="", note=cases.OTHER_NUMBERS),
        ),
        CASES.criterion("d_q, d_k, m and n may all differ", 1).on(
            row("m=5 n=11 d_q=3 d_k=7", note="d_q = 3, d_k = 7"),
            row("m=5 n=3 d_q=7 d_k=2", note="d_q = 7, d_k = 2"),
        ),
        CASES.criterion("one query, one key, one feature", 1).on(
            row("m=1 n=7 d_q=3 d_k=5", note="one query"),
            row("m=7 n=1 d_q=3 d_k=5", note="one key"),
            row("m=3 n=5 d_q=1 d_k=1", note="one feature"),
        ),
        CASES.criterion("batches", 1).on(*ROWS.batches),
        CASES.criterion("float32 and large entries", 1).on(
            *ROWS.numbers, row("m=7 n=4 d_q=3 d_k=5", zero=("W",), note="a W of 0")
        ),
        CASES.criterion("W starts at random numbers; gradients reach it and the query", 1).on(
            *ROWS.gradients, start_case("BilinearScore", (5, 3), "W")
        ),
        unchanged(),
    ),
    excludes=(cases.FLOATS_ONLY,),
    mistakes=made(
        compose_bilinear_score,
        mistakes.NO_SUPER_INIT,
        mistake("""W lies on its side
            Your W is (d_k, d_q), as if the key stood on the left. Here the query does, `query @ W @
            key.mT`, so W is (d_q, d_k).""")
        .by(
            layers=lambda d_q, d_k: {"W": nn.Parameter(torch.randn(d_k, d_q))},
            through=lambda query, W: query @ W.mT,
        )
        .by(layers=lambda d_q, d_k: {"W": nn.Parameter(torch.randn(d_k, d_q))}),
        mistake("""W does not learn
            You assigned a plain tensor, or a parameter with `requires_grad=False`, so training
            would leave it as it is. Write `self.W = nn.Parameter(…)`.""")
        .by(layers=lambda d_q, d_k: {"W": torch.randn(d_q, d_k)})
        .by(layers=lambda *d: {"W": nn.Parameter(torch.randn(*d), requires_grad=False)}),
        mistakes.not_random("W"),
        mistake("""W is transposed
            You multiply by `W.T`, so that feature a of the query meets what was meant for feature a
            of the key. W is (d_q, d_k) and stands as it is: `query @ W @ key.mT`.
        """).by(through=lambda query, W: query @ W.mT),
        mistake("""W is left out
            Your scores are the dot products. Put W between query and key.
        """).by(through=lambda query, W: query),
        mistake("""query and key are both projected
            You multiply query and key by W both: q W Wᵀ kᵀ, a dot product of two projections. W
            stands between them once.""").by(project=lambda key, W: key @ W),
        mistake("""W multiplies the key one by one
            You use only the diagonal of W. Every feature of the query meets every feature of the
            key: two matrix products, `query @ W @ key.mT`.
        """).by(through=lambda query, W: query * W.diagonal()),
        *(
            s.naming(**{"query @ key.mT": "query @ self.W @ key.mT", "the dot product": "q W kᵀ"})
            for s in (KEY_FIRST, *mistakes.OF_A_SCORE)
            if s not in (mistakes.ROLES_EXCHANGED, mistakes.ALREADY_WEIGHTS, mistakes.SQUASHED)
        ),
        mistakes.SQUASHED.called("a tanh around it").said(
            "You squash the score, into −1 to 1 or 0 to 1. The tanh belongs to the additive score, "
            "inside; this score is linear in query and key."
        ),
        mistakes.ALREADY_WEIGHTS,
    ),
)
