"""The exercises of chapter 6, ways to compare a query with a key."""

import math

import torch
from torch import nn

from attncourse import scoring
from attncourse.checks.drivers import call_module_with_gradients, with_gradients
from attncourse.checks.exercise import (
    Case,
    Criterion,
    Exercise,
    Misconception,
    Rng,
    leaves_arguments_alone,
)
from attncourse.checks.modules import State, module_case, normal, spread, tensor, with_hole
from attncourse.checks.parts import hide, no_max_subtracted, reversed_axes, zero_times_infinity

# --- cases -----------------------------------------------------------------------------------


def dot_values(rng: Rng) -> list[Case]:
    Q, K = tensor([[2, 0, 1], [0, 1, 3]]), tensor([[1, 2, 0], [3, 1, 1], [0, 0, 2], [1, -1, 1]])
    return [
        Case((Q, K)),
        Case((normal(rng, 5, 3), normal(rng, 5, 3)), note="as many queries as keys"),
        Case((normal(rng, 3, 5), normal(rng, 7, 5))),
    ]


def dot_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 1, 5), normal(rng, 7, 5)), note="one query"),
        Case((normal(rng, 7, 5), normal(rng, 1, 5)), note="one key"),
        Case((normal(rng, 3, 1), normal(rng, 5, 1)), note="one feature"),
        Case((normal(rng, 5, 7).T, normal(rng, 5, 3).T), note="not contiguous in memory"),
    ]


def dot_batch(rng: Rng) -> list[Case]:
    return [
        # Where the sizes agree, wrong axes give wrong numbers and no error.
        Case((normal(rng, 5, 7, 5), normal(rng, 5, 5, 5)), note="a batch of 5, five keys"),
        Case((normal(rng, 2, 5, 3), normal(rng, 2, 7, 3)), note="a batch of 2"),
        Case((normal(rng, 2, 3, 5, 7), normal(rng, 2, 3, 11, 7)), note="two batch axes"),
        Case((normal(rng, 2, 5, 3), normal(rng, 7, 3)), note="one sequence of keys for a batch"),
    ]


def dot_numbers(rng: Rng) -> list[Case]:
    Q, K = normal(rng, 7, 3), normal(rng, 5, 3)
    return [
        Case((Q.float(), K.float()), note="float32"),
        Case((1e3 * Q, 1e3 * K), note="large entries"),
    ]


def dot_gradients(rng: Rng) -> list[Case]:
    use = with_gradients("query", "key")
    return [Case((normal(rng, 2, 5, 3), normal(rng, 2, 7, 3)), use=use, note="a batch of 2")]


def score_case(
    name: str,
    rng: Rng,
    args: tuple[int, ...],
    state: State,
    m: tuple[int, ...],
    n: tuple[int, ...],
    *,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    **more,
) -> Case:
    """A module with these weights on random queries ``(*m, d_q)`` and keys ``(*n, d_k)``."""
    d_q, d_k, *_ = args
    inputs = {"query": factor * spread(rng, *m, d_q), "key": factor * spread(rng, *n, d_k)}
    return module_case(
        name,
        args,
        {key: weight.to(dtype) for key, weight in state.items()},
        {key: value.to(dtype) for key, value in inputs.items()},
        **more,
    )


def bilinear_case(rng: Rng, d_q: int, d_k: int, m: tuple, n: tuple, **more) -> Case:
    return score_case("BilinearScore", rng, (d_q, d_k), {"W": normal(rng, d_q, d_k)}, m, n, **more)


def bilinear_values(rng: Rng) -> list[Case]:
    W = {"W": tensor([[1, 0, 2], [0, 3, 1]])}
    inputs = {"query": tensor([[1, 0], [1, 1]]), "key": tensor([[1, 1, 0], [0, 1, 2]])}
    return [
        module_case("BilinearScore", (2, 3), W, inputs),
        bilinear_case(rng, 5, 5, (4,), (4,), note="d_q = d_k, as many queries as keys"),
        bilinear_case(rng, 5, 5, (3,), (7,), note="d_q = d_k"),
    ]


def bilinear_shapes(rng: Rng) -> list[Case]:
    return [
        bilinear_case(rng, 3, 7, (5,), (11,), note="d_q = 3, d_k = 7"),
        bilinear_case(rng, 7, 2, (5,), (3,), note="d_q = 7, d_k = 2"),
        bilinear_case(rng, 3, 5, (1,), (7,), note="one query"),
        bilinear_case(rng, 3, 5, (7,), (1,), note="one key"),
        bilinear_case(rng, 1, 1, (3,), (5,), note="one feature"),
    ]


def bilinear_batch(rng: Rng) -> list[Case]:
    return [
        bilinear_case(rng, 5, 5, (5, 7), (5, 5), note="a batch of 5, five keys"),
        bilinear_case(rng, 3, 5, (2, 7), (2, 11), note="a batch of 2"),
        bilinear_case(rng, 3, 5, (2, 3, 7), (2, 3, 4), note="two batch axes"),
    ]


def bilinear_numbers(rng: Rng) -> list[Case]:
    return [
        bilinear_case(rng, 3, 5, (7,), (4,), dtype=torch.float32, note="float32"),
        bilinear_case(rng, 3, 5, (7,), (4,), factor=1e3, note="large entries"),
    ]


def bilinear_gradients(rng: Rng) -> list[Case]:
    use = call_module_with_gradients
    return [bilinear_case(rng, 3, 5, (2, 7), (2, 4), use=use, note="a batch of 2")]


def additive_state(rng: Rng, d_q: int, d_k: int, d_hidden: int) -> State:
    """Weights of order one: sums of both signs, some in the bend of the tanh."""
    return {
        "W_q.weight": normal(rng, d_hidden, d_q),
        "W_k.weight": normal(rng, d_hidden, d_k),
        "w.weight": normal(rng, 1, d_hidden),
    }


def additive_case(
    rng: Rng, args: tuple[int, int, int], m: tuple[int, ...], n: tuple[int, ...], **more
) -> Case:
    return score_case("AdditiveScore", rng, args, additive_state(rng, *args), m, n, **more)


def additive_values(rng: Rng) -> list[Case]:
    state = {
        "W_q.weight": tensor([[1, 0], [0, 1]]),
        "W_k.weight": tensor([[1, 0], [0, -1]]),
        "w.weight": tensor([[2, 1]]),
    }
    inputs = {"query": tensor([[0, 1]]), "key": tensor([[0, 1], [1, 1], [0, 0]])}
    return [
        module_case("AdditiveScore", (2, 2, 2), state, inputs, note="one query, three keys"),
        additive_case(rng, (4, 4, 4), (5,), (5,), note="all widths 4, as many queries as keys"),
        additive_case(rng, (4, 4, 4), (5,), (7,), note="all widths 4"),
    ]


def additive_shapes(rng: Rng) -> list[Case]:
    return [
        additive_case(rng, (3, 5, 7), (4,), (6,), note="d_q, d_k and d_hidden differ"),
        additive_case(rng, (5, 2, 3), (4,), (6,), note="d_q, d_k and d_hidden differ"),
        additive_case(rng, (3, 5, 7), (1,), (6,), note="one query"),
        additive_case(rng, (3, 5, 7), (6,), (1,), note="one key"),
        additive_case(rng, (3, 5, 1), (4,), (6,), note="one hidden unit"),
    ]


def additive_batch(rng: Rng) -> list[Case]:
    return [
        additive_case(rng, (4, 4, 4), (4, 4), (4, 4), note="a batch of 4, all sizes 4"),
        additive_case(rng, (3, 5, 7), (2, 4), (2, 6), note="a batch of 2"),
        additive_case(rng, (3, 5, 7), (2, 3, 4), (2, 3, 6), note="two batch axes"),
    ]


def additive_numbers(rng: Rng) -> list[Case]:
    return [
        additive_case(rng, (3, 5, 7), (4,), (6,), dtype=torch.float32, note="float32"),
        additive_case(rng, (3, 5, 7), (4,), (6,), factor=1e3, note="large entries"),
    ]


def additive_gradients(rng: Rng) -> list[Case]:
    use = call_module_with_gradients
    return [additive_case(rng, (3, 5, 7), (2, 4), (2, 6), use=use, note="a batch of 2")]


LN2, LN3 = math.log(2), math.log(3)


def attend_values(rng: Rng) -> list[Case]:
    # Weights 1/4 1/4 1/2 and 1/6 1/2 1/3.
    S, V = tensor([[0, 0, LN2], [0, LN3, LN2]]), tensor([[12, 0], [0, 12], [12, 12]])
    return [
        Case((S, V), note="the exponentials are 1, 1, 2 and 1, 3, 2"),
        Case((normal(rng, 5, 5), normal(rng, 5, 5)), note="as many queries, keys and features"),
        Case((normal(rng, 3, 7), normal(rng, 7, 5))),
    ]


def attend_shapes(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 1, 5), normal(rng, 5, 3)), note="one query"),
        Case((normal(rng, 5, 1), normal(rng, 1, 3)), note="one key"),
        Case((normal(rng, 5, 7), normal(rng, 7, 1)), note="one feature"),
        Case((normal(rng, 7, 5).T, normal(rng, 3, 7).T), note="not contiguous in memory"),
    ]


def attend_masks(rng: Rng) -> list[Case]:
    S, V = tensor([[0, 0, LN2], [0, LN3, LN2]]), tensor([[12, 0], [0, 12], [12, 12]])
    mask = torch.tensor([[True, False, True], [True, True, False]])
    return [
        Case((S, V, mask), note="weights 1/3, 2/3 and 1/4, 3/4"),
        Case((normal(rng, 5, 7), normal(rng, 7, 3), with_hole(rng, 5, 7))),
        Case(
            (normal(rng, 5, 7), normal(rng, 7, 3), with_hole(rng, 1, 7)),
            note="one row of the mask for all queries",
        ),
        Case(
            (normal(rng, 2, 3, 7), normal(rng, 2, 7, 5), with_hole(rng, 2, 1, 7)),
            note="a batch of 2, a mask for each",
        ),
    ]


def attend_batch(rng: Rng) -> list[Case]:
    return [
        Case((normal(rng, 4, 4, 4), normal(rng, 4, 4, 4)), note="all sizes 4"),
        Case((normal(rng, 2, 5, 7), normal(rng, 2, 7, 3)), note="a batch of 2"),
        Case((normal(rng, 2, 3, 5, 7), normal(rng, 2, 3, 7, 11)), note="two batch axes"),
        Case((normal(rng, 2, 5, 7), normal(rng, 7, 3)), note="the same values for a batch"),
    ]


def attend_numbers(rng: Rng) -> list[Case]:
    S, V = normal(rng, 5, 7), normal(rng, 7, 3)
    return [
        Case((1e3 * S, V), note="scores in the thousands"),
        Case((S.float(), V.float()), note="float32"),
    ]


def attend_gradients(rng: Rng) -> list[Case]:
    S, V = normal(rng, 2, 5, 7), normal(rng, 2, 7, 3)
    use = with_gradients("scores", "values")
    return [
        Case((S, V), use=use, note="a batch of 2"),
        Case((S, V, with_hole(rng, 5, 7)), use=use, note="with a mask"),
    ]


# --- usual mistakes --------------------------------------------------------------------------


def unit(x):
    """Every row divided by its length."""
    return nn.functional.normalize(x, dim=-1)


def squared_distance(query, key):
    """|q − k|² for every pair, (..., m, n)."""
    return (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)


def query_in_place(query, key):
    query /= query.norm(dim=-1, keepdim=True)
    return query @ key.mT


def wrong_bilinear(score=None, **changed):
    """A wrong ``BilinearScore``, right but for what is given.

    ``score(W, query, key)`` makes the scores. ``changed`` replaces methods.
    """

    class BilinearScore(nn.Module):
        def __init__(self, d_q, d_k):
            super().__init__()
            self.W = nn.Parameter(torch.randn(d_q, d_k))

        def forward(self, query, key):
            if score is None:
                return query @ self.W @ key.mT
            return score(self.W, query, key)

    for name, method in changed.items():
        setattr(BilinearScore, name, method)
    return BilinearScore


def holding(make):
    """A ``BilinearScore`` whose W is made by ``make(d_q, d_k)``."""

    def __init__(self, d_q, d_k):
        nn.Module.__init__(self)
        self.W = make(d_q, d_k)

    return wrong_bilinear(__init__=__init__)


def no_super_init(self, d_q, d_k):
    self.W = nn.Parameter(torch.randn(d_q, d_k))


def on_its_side(self, d_q, d_k):
    nn.Module.__init__(self)
    self.W = nn.Parameter(torch.randn(d_k, d_q))


def with_a_bias(self, d_q, d_k):
    nn.Module.__init__(self)
    self.W = nn.Parameter(torch.randn(d_q, d_k))
    self.bias = nn.Parameter(torch.zeros(1))


def wrong_additive(score=None, **changed):
    """A wrong ``AdditiveScore``, right but for what is given.

    ``score(self, query, key)`` makes the scores. ``changed`` replaces methods.
    """

    class AdditiveScore(nn.Module):
        def __init__(self, d_q, d_k, d_hidden):
            super().__init__()
            self.W_q = nn.Linear(d_q, d_hidden, bias=False)
            self.W_k = nn.Linear(d_k, d_hidden, bias=False)
            self.w = nn.Linear(d_hidden, 1, bias=False)

        def forward(self, query, key):
            if score is None:
                return self.w(torch.tanh(every_pair(self, query, key))).squeeze(-1)
            return score(self, query, key)

    for name, method in changed.items():
        setattr(AdditiveScore, name, method)
    return AdditiveScore


def every_pair(self, query, key):
    """The projections of each query and each key, added: (..., m, n, d_hidden)."""
    return self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)


def with_layers(sizes, bias=False):
    """An ``AdditiveScore`` with layers of other sizes: ``sizes(d_q, d_k, d_hidden)``, by name."""

    def __init__(self, d_q, d_k, d_hidden):
        nn.Module.__init__(self)
        for name, (d_in, d_out) in sizes(d_q, d_k, d_hidden).items():
            setattr(self, name, nn.Linear(d_in, d_out, bias=bias))

    return wrong_additive(__init__=__init__)


def right_sizes(d_q, d_k, d_hidden):
    return {"W_q": (d_q, d_hidden), "W_k": (d_k, d_hidden), "w": (d_hidden, 1)}


def layers_without_super(self, d_q, d_k, d_hidden):
    self.W_q = nn.Linear(d_q, d_hidden, bias=False)
    self.W_k = nn.Linear(d_k, d_hidden, bias=False)
    self.w = nn.Linear(d_hidden, 1, bias=False)


def layers_in_a_dict(self, d_q, d_k, d_hidden):
    nn.Module.__init__(self)
    sizes = {"W_q": (d_q, d_hidden), "W_k": (d_k, d_hidden), "w": (d_hidden, 1)}
    self.layers = {name: nn.Linear(*size, bias=False) for name, size in sizes.items()}


def one_matrix(self, d_q, d_k, d_hidden):
    nn.Module.__init__(self)
    self.W = nn.Linear(d_q + d_k, d_hidden, bias=False)
    self.w = nn.Linear(d_hidden, 1, bias=False)


def w_as_a_vector(self, d_q, d_k, d_hidden):
    nn.Module.__init__(self)
    self.W_q = nn.Linear(d_q, d_hidden, bias=False)
    self.W_k = nn.Linear(d_k, d_hidden, bias=False)
    self.w = nn.Parameter(torch.randn(d_hidden))


def attend_with(normalize=lambda s: s.softmax(-1), mask_scores=hide):
    """A wrong ``attend`` made of wrong parts; each part is right unless given."""

    def attend(scores, values, mask=None):
        return normalize(mask_scores(scores, mask)) @ values

    return attend


def only_the_best(scores):
    return nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


def masked_after(scores, values, mask=None):
    weights = scores.softmax(-1)
    return (weights if mask is None else weights * mask) @ values


def with_weights(scores, values, mask=None):
    weights = hide(scores, mask).softmax(-1)
    return weights @ values, weights


def values_forgotten(scores, values, mask=None):
    return hide(scores, mask).softmax(-1)


def weights_turned(scores, values, mask=None):
    return hide(scores, mask).softmax(-1).mT @ values


def scores_in_place(scores, values, mask=None):
    if mask is not None:
        scores.masked_fill_(~mask, -math.inf)
    return scores.softmax(-1) @ values


def cut_off(scores, values, mask=None):
    return hide(scores.detach(), mask).softmax(-1) @ values.detach()


# --- exercises -------------------------------------------------------------------------------

DOT = Exercise(
    target="scoring.dot_score",
    reference=scoring.dot_score,
    section="Chapter 6, “The dot product, and what it takes for granted”",
    difficulty=1,
    minutes=5,
    picture=True,
    criteria=(
        Criterion("every query with every key", 2, dot_values),
        Criterion("one query, one key, one feature, any memory layout", 1, dot_shapes),
        Criterion("batches", 1, dot_batch),
        Criterion("float32 and large entries", 1, dot_numbers),
        Criterion("gradients reach query and key", 1, dot_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "only pairs at the same place",
            "You compare query i with key i alone. Every query meets every key, so there are "
            "m · n scores: a matrix (..., m, n).",
            lambda query, key: (query * key).sum(-1),
        ),
        Misconception(
            "the products are not added up",
            "You multiply every query with every key, feature by feature, and leave it at that: "
            "shape (..., m, n, d). A dot product adds the products up: `.sum(-1)`.",
            lambda query, key: query.unsqueeze(-2) * key.unsqueeze(-3),
        ),
        Misconception(
            "the mean of the products",
            "You take the mean over the features, which divides the dot product by d. A dot "
            "product is the sum.",
            lambda query, key: (query.unsqueeze(-2) * key.unsqueeze(-3)).mean(-1),
        ),
        Misconception(
            "already scaled by √d",
            "That is the scaled dot product. Here the score is the bare dot product, `query @ "
            "key.mT`.",
            lambda query, key: query @ key.mT / query.shape[-1] ** 0.5,
        ),
        Misconception(
            "cosine similarity",
            "You divide by the lengths of query and key, which is the cosine of chapter 1. In a "
            "dot product a longer key gets a larger score.",
            lambda query, key: unit(query) @ unit(key).mT,
        ),
        Misconception(
            "a distance in place of a product",
            "You return |q − k|², which is small where query and key fit. A dot product is large "
            "there: multiply the features and add up.",
            squared_distance,
        ),
        Misconception(
            "key and query swapped",
            "You return `key @ query.mT`, in which row i belongs to key i. Row i is to belong to "
            "query i, shape (..., m, n).",
            lambda query, key: key @ query.mT,
        ),
        Misconception(
            "the features are compared, not the tokens",
            "`query.mT @ key` adds up over tokens and compares feature a with feature b. A score "
            "compares two tokens and adds up over their features: `query @ key.mT`.",
            lambda query, key: query.mT @ key,
        ),
        Misconception(
            ".T on a batch",
            "`key.T` turns all axes around, the batch axes too. `key.mT` swaps the last two only.",
            lambda query, key: query @ reversed_axes(key),
        ),
        Misconception(
            "axes 0 and 1 swapped",
            "`key.transpose(0, 1)` swaps the first two axes, and with a batch in front those are "
            "the wrong ones. Count from the end: `key.transpose(-2, -1)`.",
            lambda query, key: query @ key.transpose(0, 1),
        ),
        Misconception(
            "a product that knows no batch",
            "`torch.mm` takes two matrices and nothing else. `@` takes leading axes along.",
            lambda query, key: torch.mm(query, key.t()),
        ),
        Misconception(
            "already a softmax",
            "You return weights. A score is any real number; the softmax comes later, in `attend`.",
            lambda query, key: (query @ key.mT).softmax(-1),
        ),
        Misconception(
            "the query is changed in place",
            "`query /= …` writes into the caller's tensor (and a dot product divides by nothing). "
            "Make a new tensor: `query = query / …`.",
            query_in_place,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            lambda query, key: query.detach() @ key.detach().mT,
        ),
    ),
    hints=(
        "One score: S[i, j] is the sum over the features a of query[i, a] key[j, a].",
        "As a product of matrices, (..., m, d) times (..., d, n). Which axes of key change places?",
    ),
)

BILINEAR = Exercise(
    target="scoring.BilinearScore",
    reference=scoring.BilinearScore,
    section="Chapter 6, “A matrix in between”",
    difficulty=2,
    minutes=15,
    forbids=("bilinear",),
    criteria=(
        Criterion("query times W times key, for every pair", 3, bilinear_values),
        Criterion("d_q, d_k, m and n may all differ", 2, bilinear_shapes),
        Criterion("batches", 1, bilinear_batch),
        Criterion("float32 and large entries", 1, bilinear_numbers),
        Criterion("gradients reach the query and W", 1, bilinear_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "super().__init__() is missing",
            "`nn.Module` keeps a list of its parameters, and creates it in its own `__init__`. "
            "Call `super().__init__()` before you assign W.",
            wrong_bilinear(__init__=no_super_init),
        ),
        Misconception(
            "sizes forced equal",
            "Your W is square, (d_q, d_q). Queries and keys may have different widths, which is "
            "what this score is for: W is (d_q, d_k).",
            holding(lambda d_q, d_k: nn.Parameter(torch.randn(d_q, d_q))),
        ),
        Misconception(
            "W lies on its side",
            "Your W has the shape (d_k, d_q), as papers have it that write tokens as columns. With "
            "tokens as rows the query stands on the left of W: `query @ W @ key.mT`, so W is "
            "(d_q, d_k).",
            wrong_bilinear(lambda W, query, key: query @ W.mT @ key.mT, __init__=on_its_side),
        ),
        Misconception(
            "W is an nn.Linear",
            "You hold W as `nn.Linear`, whose matrix is called `W.weight` and is stored the other "
            "way round. Here W is the matrix itself: `nn.Parameter(torch.randn(d_q, d_k))`.",
            holding(lambda d_q, d_k: nn.Linear(d_q, d_k, bias=False)),
        ),
        Misconception(
            "W has an axis in front",
            "Your W is (1, d_q, d_k), as `nn.Bilinear` holds it for several outputs. Here there "
            "is one score: W is (d_q, d_k).",
            holding(lambda d_q, d_k: nn.Parameter(torch.randn(1, d_q, d_k))),
        ),
        Misconception(
            "W is not a parameter",
            "You assigned a plain tensor, which `nn.Module` neither saves nor trains. Wrap it: "
            "`nn.Parameter(…)`.",
            holding(lambda d_q, d_k: torch.randn(d_q, d_k)),
        ),
        Misconception(
            "W is frozen",
            "Your W is a parameter with `requires_grad=False`, so training would leave it as it "
            "is.",
            holding(lambda d_q, d_k: nn.Parameter(torch.randn(d_q, d_k), requires_grad=False)),
        ),
        Misconception(
            "a bias that was not asked for",
            "Your module has a second parameter. A bilinear score has W and nothing else; a bias "
            "would be the same for all keys and cancel in the softmax.",
            wrong_bilinear(__init__=with_a_bias),
        ),
        Misconception(
            "W is transposed",
            "You multiply by `W.T`, so that feature a of the query meets what was meant for "
            "feature a of the key. W is (d_q, d_k) and stands as it is: `query @ W @ key.mT`.",
            wrong_bilinear(lambda W, query, key: query @ W.mT @ key.mT),
        ),
        Misconception(
            "W is left out",
            "Your scores are the dot products. Put W between query and key.",
            wrong_bilinear(lambda W, query, key: query @ key.mT),
        ),
        Misconception(
            "query and key are both projected",
            "You multiply query and key by W both. That is a dot product of two projections, "
            "q W Wᵀ kᵀ, which is symmetric. W stands between them once.",
            wrong_bilinear(lambda W, query, key: (query @ W) @ (key @ W).mT),
        ),
        Misconception(
            "W multiplies the key one by one",
            "You use only the diagonal of W. Every feature of the query meets every feature of "
            "the key: two matrix products, `query @ W @ key.mT`.",
            wrong_bilinear(lambda W, query, key: (query * W.diagonal()) @ key.mT),
        ),
        Misconception(
            "only pairs at the same place",
            "You compare query i with key i alone. Every query meets every key: a matrix "
            "(..., m, n).",
            wrong_bilinear(lambda W, query, key: (query @ W * key).sum(-1)),
        ),
        Misconception(
            "key and query swapped",
            "Row i of your scores belongs to key i. Row i is to belong to query i, (..., m, n).",
            wrong_bilinear(lambda W, query, key: (query @ W @ key.mT).mT),
        ),
        Misconception(
            ".T on a batch",
            "`key.T` turns all axes around, the batch axes too. `key.mT` swaps the last two only.",
            wrong_bilinear(lambda W, query, key: query @ W @ reversed_axes(key)),
        ),
        Misconception(
            "already scaled",
            "You divide by √d_k. W is learned and can make itself as small as it needs to be; the "
            "bilinear score is q W kᵀ.",
            wrong_bilinear(lambda W, query, key: query @ W @ key.mT / key.shape[-1] ** 0.5),
        ),
        Misconception(
            "a tanh around it",
            "You squash the score into −1 to 1. The tanh belongs to the additive score, inside; "
            "this score is linear in query and key.",
            wrong_bilinear(lambda W, query, key: torch.tanh(query @ W @ key.mT)),
        ),
        Misconception(
            "already a softmax",
            "You return weights. A score is any real number; the softmax comes later, in `attend`.",
            wrong_bilinear(lambda W, query, key: (query @ W @ key.mT).softmax(-1)),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
            "`torch.no_grad()` cut the history of W or of the query.",
            wrong_bilinear(lambda W, query, key: query.detach() @ W.detach() @ key.mT),
        ),
    ),
    hints=(
        "`__init__` begins with `super().__init__()` and makes one `nn.Parameter` of shape "
        "(d_q, d_k).",
        "Follow the shapes: (..., m, d_q), (d_q, d_k) and (..., d_k, n) make (..., m, n).",
    ),
)

ADDITIVE = Exercise(
    target="scoring.AdditiveScore",
    reference=scoring.AdditiveScore,
    section="Chapter 6, “A small network for every pair”",
    difficulty=3,
    minutes=25,
    criteria=(
        Criterion("w of the tanh of the sum, for every pair", 3, additive_values),
        Criterion("d_q, d_k, d_hidden, m and n may all differ", 2, additive_shapes),
        Criterion("batches", 1, additive_batch),
        Criterion("float32 and large entries", 1, additive_numbers),
        Criterion("gradients reach the query and every weight", 2, additive_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "tanh after w",
            "You apply w first and the tanh to the finished sum. Then a score is tanh of a number "
            "for the query plus a number for the key, and all queries put the keys in the same "
            "order. The tanh belongs between the sum and w.",
            wrong_additive(lambda self, q, k: torch.tanh(self.w(every_pair(self, q, k))[..., 0])),
        ),
        Misconception(
            "no tanh",
            "Without the tanh the score is a number for the query plus a number for the key. The "
            "query's cancels in the softmax, so that all queries get the same weights.",
            wrong_additive(lambda self, q, k: self.w(every_pair(self, q, k))[..., 0]),
        ),
        Misconception(
            "a tanh for each projection",
            "You take the tanh of query and key apart and add afterwards. Then the query's part "
            "is the same for all keys and cancels in the softmax. Add first, then tanh.",
            wrong_additive(
                lambda self, q, k: (
                    self.w(torch.tanh(self.W_q(q))) + self.w(torch.tanh(self.W_k(k))).mT
                )
            ),
        ),
        Misconception(
            "ReLU in place of tanh",
            "You set negative sums to 0. The additive score has a tanh.",
            wrong_additive(lambda self, q, k: self.w(every_pair(self, q, k).relu())[..., 0]),
        ),
        Misconception(
            "sigmoid in place of tanh",
            "Your hidden units lie between 0 and 1. The additive score has a tanh, which lies "
            "between −1 and 1.",
            wrong_additive(lambda self, q, k: self.w(every_pair(self, q, k).sigmoid())[..., 0]),
        ),
        Misconception(
            "query and key added before one projection",
            "You project the sum q + k, or project both with one layer, which is the same. They "
            "need a layer each: their features mean different things, and d_q and d_k may differ.",
            wrong_additive(
                lambda self, q, k: self.w(
                    torch.tanh(self.W_q(q.unsqueeze(-2) + k.unsqueeze(-3)))
                ).squeeze(-1)
            ),
        ),
        Misconception(
            "missing broadcast: only pairs at the same place",
            "You add query i to key i, which fails unless there are as many of both, and then "
            "compares the diagonal alone. Put an axis of length 1 into each, (..., m, 1, h) and "
            "(..., 1, n, h), and every query meets every key.",
            wrong_additive(
                lambda self, q, k: self.w(torch.tanh(self.W_q(q) + self.W_k(k))).squeeze(-1)
            ),
        ),
        Misconception(
            "the new axes stand the wrong way round",
            "Your scores are (..., n, m): row j belongs to key j. The queries get their new axis "
            "behind the m, `unsqueeze(-2)`, the keys before the n, `unsqueeze(-3)`.",
            wrong_additive(
                lambda self, q, k: self.w(
                    torch.tanh(self.W_q(q).unsqueeze(-3) + self.W_k(k).unsqueeze(-2))
                ).squeeze(-1)
            ),
        ),
        Misconception(
            "axes counted from the front",
            "`unsqueeze(1)` for the queries and `unsqueeze(0)` for the keys is right without a "
            "batch and wrong with one. Count from the end: `unsqueeze(-2)` and `unsqueeze(-3)`.",
            wrong_additive(
                lambda self, q, k: self.w(
                    torch.tanh(self.W_q(q).unsqueeze(1) + self.W_k(k).unsqueeze(0))
                ).squeeze(-1)
            ),
        ),
        Misconception(
            "axes counted for exactly one batch axis",
            "`unsqueeze(2)` for the queries and `unsqueeze(1)` for the keys is right for one batch "
            "axis and for nothing else. Count from the end: `unsqueeze(-2)` and `unsqueeze(-3)`.",
            wrong_additive(
                lambda self, q, k: self.w(
                    torch.tanh(self.W_q(q).unsqueeze(2) + self.W_k(k).unsqueeze(1))
                ).squeeze(-1)
            ),
        ),
        Misconception(
            "an axis of length 1 is left",
            "You return (..., m, n, 1): `w` has one output, and its axis is still there. Take it "
            "away with `.squeeze(-1)`.",
            wrong_additive(lambda self, q, k: self.w(torch.tanh(every_pair(self, q, k)))),
        ),
        Misconception(
            "squeezed too much",
            "`.squeeze()` without a number removes *every* axis of length 1, and with one query "
            "or one key that is theirs. `.squeeze(-1)` removes the last axis only.",
            wrong_additive(lambda self, q, k: self.w(torch.tanh(every_pair(self, q, k))).squeeze()),
        ),
        Misconception(
            "the hidden units are just added up",
            "You sum the hidden units. The last step has weights of its own: `self.w(…)`.",
            wrong_additive(lambda self, q, k: torch.tanh(every_pair(self, q, k)).sum(-1)),
        ),
        Misconception(
            "projections multiplied",
            "You multiply the projections of query and key. In this score they are added, hence "
            "its name.",
            wrong_additive(
                lambda self, q, k: self.w(
                    torch.tanh(self.W_q(q).unsqueeze(-2) * self.W_k(k).unsqueeze(-3))
                ).squeeze(-1)
            ),
        ),
        Misconception(
            "divided by the root of the width",
            "You divide the score by √d_hidden. That belongs to the dot product; here the tanh "
            "keeps the hidden units in range.",
            wrong_additive(
                lambda self, q, k: (
                    self.w(torch.tanh(every_pair(self, q, k))).squeeze(-1) / self.w.in_features**0.5
                )
            ),
        ),
        Misconception(
            "already a softmax",
            "You return weights. A score is any real number; the softmax comes later, in `attend`.",
            wrong_additive(
                lambda self, q, k: self.w(torch.tanh(every_pair(self, q, k)))[..., 0].softmax(-1)
            ),
        ),
        Misconception(
            "super().__init__() is missing",
            "`nn.Module` keeps a list of its layers, and creates it in its own `__init__`. Call "
            "`super().__init__()` before you assign the first layer.",
            wrong_additive(__init__=layers_without_super),
        ),
        Misconception(
            "sizes forced equal",
            "Your `W_k` has d_q inputs. Keys have d_k features, which may be another number.",
            with_layers(
                lambda d_q, d_k, d_hidden: {
                    "W_q": (d_q, d_hidden),
                    "W_k": (d_q, d_hidden),
                    "w": (d_hidden, 1),
                }
            ),
        ),
        Misconception(
            "d_hidden is ignored",
            "Your hidden layer has d_q units. Its width is an argument of its own, d_hidden: both "
            "projections lead there.",
            with_layers(
                lambda d_q, d_k, d_hidden: {"W_q": (d_q, d_q), "W_k": (d_k, d_q), "w": (d_q, 1)}
            ),
        ),
        Misconception(
            "in and out exchanged",
            "You built `nn.Linear(d_hidden, d_q)`. Its first argument is the number of features "
            "that come in: `nn.Linear(d_q, d_hidden, bias=False)`.",
            with_layers(
                lambda d_q, d_k, d_hidden: {
                    "W_q": (d_hidden, d_q),
                    "W_k": (d_hidden, d_k),
                    "w": (1, d_hidden),
                }
            ),
        ),
        Misconception(
            "a bias that was not asked for",
            "`nn.Linear` has a bias unless told otherwise: `bias=False` in all three layers.",
            with_layers(right_sizes, bias=True),
        ),
        Misconception(
            "one layer for the concatenation",
            "You hold one matrix for query and key behind each other. That computes the same, but "
            "the exercise asks for two layers, W_q and W_k, so that each query and each key is "
            "projected once and not once for every pair.",
            wrong_additive(__init__=one_matrix),
        ),
        Misconception(
            "w is a vector",
            "You hold w as `nn.Parameter`. The exercise asks for `nn.Linear(d_hidden, 1, "
            "bias=False)`.",
            wrong_additive(__init__=w_as_a_vector),
        ),
        Misconception(
            "the layers are hidden from the module",
            "Your module has no parameters. Layers in a plain list or dict are not found: assign "
            "each to an attribute in `__init__`, `self.W_q = nn.Linear(…)`.",
            wrong_additive(__init__=layers_in_a_dict),
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but training would change nothing: `.detach()`, `.data` or "
            "`torch.no_grad()` cut the history.",
            wrong_additive(
                lambda self, q, k: self.w(torch.tanh(every_pair(self, q, k)).detach()).squeeze(-1)
            ),
        ),
    ),
    hints=(
        "`__init__` begins with `super().__init__()` and makes three layers without a bias.",
        "For one query and one key: `self.w(torch.tanh(self.W_q(q) + self.W_k(k)))`.",
        "For all pairs, (..., m, 1, d_hidden) + (..., 1, n, d_hidden) is (..., m, n, d_hidden).",
    ),
)

ATTEND = Exercise(
    target="scoring.attend",
    reference=scoring.attend,
    section="Chapter 6, “Whatever made the scores”",
    difficulty=2,
    minutes=10,
    forbids=("scaled_dot_product_attention", "multi_head_attention_forward"),
    criteria=(
        Criterion("softmax of each row, then the blend of the values", 2, attend_values),
        Criterion("one query, one key, one feature, any memory layout", 1, attend_shapes),
        Criterion("a mask, True where attention is allowed", 2, attend_masks),
        Criterion("batches", 1, attend_batch),
        Criterion("large scores and float32", 1, attend_numbers),
        Criterion("gradients reach scores and values", 1, attend_gradients),
        leaves_arguments_alone(),
    ),
    misconceptions=(
        Misconception(
            "no softmax",
            "You blend by the scores themselves, which may be negative and sum to anything. They "
            "become weights first: a softmax over the keys.",
            attend_with(lambda s: s, lambda s, m: s if m is None else s * m),
        ),
        Misconception(
            "scores divided by their sum",
            "You divide each row by its sum. Scores may be negative and may sum to 0; softmax "
            "takes their exponentials first.",
            attend_with(
                lambda s: s / s.sum(-1, keepdim=True), lambda s, m: s if m is None else s * m
            ),
        ),
        Misconception(
            "softmax over the queries",
            "Your softmax runs down the columns. Each query has a budget of 1 to spend on the "
            "keys: `softmax(dim=-1)`.",
            attend_with(lambda s: s.softmax(-2)),
        ),
        Misconception(
            "softmax over axis 1",
            "`softmax(dim=1)` is the keys' axis for two axes; with a batch in front it is the "
            "queries' or a batch axis. Count from the end: `dim=-1`.",
            attend_with(lambda s: s.softmax(1)),
        ),
        Misconception(
            "softmax over axis 0",
            "`softmax(dim=0)` runs over the queries, or over the batch if there is one. The keys "
            "are the last axis: `dim=-1`.",
            attend_with(lambda s: s.softmax(0)),
        ),
        Misconception(
            "softmax over the whole matrix",
            "All queries share one budget of 1 in your weights. Each row is normalised by itself: "
            "`softmax(dim=-1)`.",
            attend_with(lambda s: s.flatten().softmax(0).reshape(s.shape)),
        ),
        Misconception(
            "softmax taken twice",
            "You take the softmax of weights that are a softmax already, which makes them all "
            "but equal. Once is enough.",
            attend_with(lambda s: s.softmax(-1).softmax(-1), hide),
        ),
        Misconception(
            "the logarithm of the weights",
            "`log_softmax` returns the logarithms of the weights. The values are blended by the "
            "weights themselves.",
            attend_with(lambda s: s.log_softmax(-1)),
        ),
        Misconception(
            "only the best key counts",
            "You return the value of the key with the largest score: a hard lookup, through which "
            "no gradient reaches the scores. `attend` blends all values.",
            attend_with(only_the_best),
        ),
        Misconception(
            "no maximum subtracted",
            "exp of a large score overflows, and ∞/∞ is NaN. Subtract each row's largest score "
            "first, or use `torch.softmax`, which does.",
            attend_with(no_max_subtracted),
        ),
        Misconception(
            "scaled once more",
            "You divide by the root of the number of keys. Any scaling there is belongs to the "
            "score; `attend` takes the scores as they are.",
            lambda scores, values, mask=None: (
                hide(scores / scores.shape[-1] ** 0.5, mask).softmax(-1) @ values
            ),
        ),
        Misconception(
            "the weights are transposed",
            "You blend over the queries. Row i of the weights holds query i's weights on all keys: "
            "`weights @ values`, (..., m, n) times (..., n, d_v).",
            weights_turned,
        ),
        Misconception(
            "the mask is inverted",
            "You shut out what the mask allows. True means allowed: fill where the mask is False, "
            "`scores.masked_fill(~mask, -torch.inf)`.",
            attend_with(mask_scores=lambda s, m: s if m is None else hide(s, ~m)),
        ),
        Misconception(
            "the mask is ignored",
            "Your result is the same with and without the mask. Scores where it is False become "
            "−∞ before the softmax.",
            attend_with(mask_scores=lambda s, m: s),
        ),
        Misconception(
            "masked after the softmax, not renormalised",
            "You set weights to 0 after the softmax, and the rest of the row sums to less than 1. "
            "Put −∞ into the scores before it, or divide by the row sums afterwards.",
            masked_after,
        ),
        Misconception(
            "a score of 0 is not −∞",
            "You set masked scores to 0, by `scores * mask` or by filling in 0 or 1e-9. exp(0) = "
            "1, so those keys still get weight. Fill in −∞.",
            attend_with(mask_scores=lambda s, m: s if m is None else s * m),
        ),
        Misconception(
            "the mask is added to the scores",
            "Adding a boolean adds 1 where it is True and 0 where it is not, which shuts nothing "
            "out. Use `masked_fill(~mask, -torch.inf)`.",
            attend_with(mask_scores=lambda s, m: s if m is None else s + m),
        ),
        Misconception(
            "0 · ∞ in the mask",
            "You multiply a mask by −∞, and 0 · ∞ is NaN wherever attention is allowed. "
            "`masked_fill` puts −∞ where it belongs and nowhere else.",
            attend_with(mask_scores=zero_times_infinity),
        ),
        Misconception(
            "the scores are masked in place",
            "`masked_fill_`, with the underscore, writes −∞ into the caller's scores. "
            "`masked_fill` makes a new tensor.",
            scores_in_place,
        ),
        Misconception(
            "the values are forgotten",
            "You return the weights (..., m, n). Multiply them with the values: `weights @ "
            "values`.",
            values_forgotten,
        ),
        Misconception(
            "the weights come back too",
            "You return the output and the weights. Functions in this course return one thing, "
            "here the output.",
            with_weights,
        ),
        Misconception(
            "the gradient is cut off",
            "The numbers are right, but nothing can be learned through them: `.detach()`, "
            "`.numpy()` or `torch.no_grad()` cut the history. Stay with torch operations.",
            cut_off,
        ),
    ),
    hints=(
        "Three steps: the mask, the softmax over the keys, the weights times the values.",
        "`scores.masked_fill(~mask, -torch.inf)` puts −∞ where the mask is False; exp(−∞) is 0.",
    ),
)

EXERCISES = (DOT, BILINEAR, ADDITIVE, ATTEND)
