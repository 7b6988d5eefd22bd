"""Mistakes in attention that several exercises share: the wrong options of its ``decisions``."""

import math
from dataclasses import replace
from typing import Any

from attncourse.checks.exercise import Between
from attncourse.checks.writing.decisions import Attention, assigned, hide, mixed, shared_out
from attncourse.checks.writing.recipes import Recipe, mistake

# --- what goes wrong with the scale --------------------------------------------------------------


def inverse(scale):
    """Return 1 / scale; infinite for 0, as where tensors are divided."""
    return 1 / scale if scale else math.inf


DIVIDED_BY_D_K = mistake("""divided by d_k
    You divide the scores by d_k. The formula has its root, √d_k: divided by that, scores keep a
    variance of 1.""").by(factor=lambda q, k, other: 1 / q.shape[-1])
NO_SCALE = mistake("""no scale
    You take the scores as they are. Divide them by √d_k.""").by(factor=lambda q, k, other: 1)
MULTIPLIED_BY_ROOT = mistake("""multiplied by √d_k
    You multiply the scores by √d_k; they are divided by it.
""").by(factor=lambda q, k, other: q.shape[-1] ** 0.5)
DIVIDED_BY_ROOT_N = mistake("""divided by √n
    You divide by the root of the number of keys. It is the width of queries and keys that counts:
    √d_k.""").by(factor=lambda q, k, other: k.shape[-2] ** -0.5)
DIVIDED_BY_ROOT_M = mistake("""divided by the root of the number of queries
    You divide by the root of the number of queries. It is their width that counts: √d_k.
""").by(factor=lambda q, k, other: q.shape[-2] ** -0.5)
DIVIDED_BY_OTHER_WIDTH = mistake("""divided by √d_v
    You divide by the root of the values' width. Queries and keys have d_k features; it is √d_k that
    keeps their products in range.""").by(factor=lambda q, k, other: other.shape[-1] ** -0.5)
DIVIDED_BY_ROOT_D_MODEL = DIVIDED_BY_OTHER_WIDTH.called("divided by √d_model").said(
    "You divide the scores by the root of d_model, the width of x. Queries and keys have d_k "
    "features; it is √d_k that keeps their products in range."
)
ANOTHER_POWER = (
    mistake("""another power of d_k
    You multiply the scores by some power of d_k, but not by its power −1/2. Divide by √d_k.""")
    .by(factor=lambda q, k, other: q.shape[-1] ** -0.25)
    .by_any(
        lambda power: {"factor": lambda q, k, other: q.shape[-1] ** power},
        (-0.25, -0.75, -1.5, -2.0, 0.25, 1.0, 2.0),
    )
)
ANOTHER_FACTOR = (
    mistake("""a scale that does not follow d_k
    You multiply the scores by one and the same number, whatever d_k is. Divide by √d_k, the root of
    the width that the queries have.""")
    .by(factor=lambda q, k, other: 0.3)
    .by_any(lambda number: {"factor": lambda q, k, other: number}, Between(1e-3, 1e3))
)
SCALE_IGNORED = mistake("""scale is ignored
    Your scores have one scale whether `scale` is given or not. Where it is given, it takes the
    place of 1/√d_k.
""").by(given_scale=lambda default, scale: default)
SCALE_ON_TOP = mistake("""scale comes on top of 1/√d_k
    You multiply by `scale` and divide by √d_k as well. `scale` takes the place of 1/√d_k.
""").by(given_scale=lambda default, scale: default * (1 if scale is None else scale))
DIVIDED_BY_SCALE = (
    mistake("""divided by scale
    You divide by `scale`. The scores are multiplied by it: its default is 1/√d_k, not √d_k.""")
    .by(given_scale=lambda default, scale: default if scale is None else inverse(scale))
    .by(given_scale=lambda default, scale: default if scale is None else 1 / scale)
)
SCALE_OF_ZERO = mistake("""a scale of 0 is taken for none
    `scale or …` and `if scale:` take 0 for a scale that was not given. Ask `if scale is None`.
""").by(given_scale=lambda default, scale: scale or default)
SCALED_AFTERWARDS = mistake("""scaled after the softmax
    You divide the weights by √d_k, and their rows no longer sum to 1. Divide the scores, then take
    the softmax.""").by(scale=lambda s, factor: s, after=lambda w, mask, factor: w * factor)
OF_THE_SCALE = (
    DIVIDED_BY_D_K,
    NO_SCALE,
    MULTIPLIED_BY_ROOT,
    DIVIDED_BY_ROOT_N,
    ANOTHER_POWER,
    ANOTHER_FACTOR,
)
OF_A_GIVEN_SCALE = (SCALE_IGNORED, SCALE_ON_TOP, DIVIDED_BY_SCALE, SCALE_OF_ZERO)

# --- what goes wrong with the softmax ------------------------------------------------------------


def exponentials(scores):
    """Return ``exp`` of the scores less the largest of their row."""
    return (scores - scores.amax(-1, keepdim=True)).exp()


def shares_of(bent):
    """Return each row divided by its sum."""
    return bent / bent.sum(-1, keepdim=True)


def no_max_subtracted(scores):
    """Return the softmax without a maximum subtracted, which overflows."""
    return shares_of(scores.exp())


def overflowing(number: float) -> dict[str, Any]:
    """Return the wrong option that subtracts no maximum and adds a number to the sum."""
    return {"normalize": lambda s: s.exp() / (s.exp().sum(-1, keepdim=True) + number)}


def guarded(number: float) -> dict[str, Any]:
    """Return the wrong options in which a number is added to the sum of the weights."""

    def normalize(scores):
        e = exponentials(scores)
        return e / (e.sum(-1, keepdim=True) + number)

    return {"normalize": normalize}


OVER_QUERIES = (
    mistake("""softmax over the queries
    Your softmax runs down the columns, so that each key's column sums to 1. Each query has a budget
    of 1: take it along the last axis, −1, which is the keys'.""")
    .by(normalize=lambda s: s.softmax(-2))
    .by(normalize=lambda s: s.softmax(-2).nan_to_num(0.0))
)
OVER_AXIS_1 = mistake("""softmax over axis 1
    Axis 1 is the keys' where there are two axes; with others in front it is another. Count from the
    end: −1.""").by(normalize=lambda s: s.softmax(1))
OVER_AXIS_0 = mistake("""softmax over axis 0
    What axis 0 is depends on what stands in front, and it is never the keys'. Those are the last
    axis: −1.""").by(normalize=lambda s: s.softmax(0))
OVER_EVERYTHING = mistake("""one softmax for the whole matrix
    All your weights together sum to 1. Each row has a budget of its own: take the softmax along the
    last axis, −1.""").by(normalize=lambda s: s.flatten(-2).softmax(-1).reshape(s.shape))
NO_SOFTMAX = (
    mistake("""no softmax
    You mix the values with the scores themselves. They have to become weights first, positive and
    summing to 1: a softmax over the keys.""")
    .by(hide=lambda s, mask: s if mask is None else s * mask, normalize=lambda s: s)
    .by(normalize=lambda s: s)
)
SIGMOIDS = mistake("""a sigmoid in place of the softmax
    You squash each score by itself, and a row no longer sums to 1. The softmax lets the scores of a
    row compete: exp of each, divided by their sum.""").by(normalize=lambda s: s.sigmoid())
SOFTMAX_TWICE = mistake("""a softmax of the softmax
    You take the softmax twice, which evens the weights out: none is then more than e ≈ 2.7 times
    another. Once is enough.""").by(normalize=lambda s: s.softmax(-1).softmax(-1))
EXPONENTIAL_TWICE = mistake("""the exponential is taken twice
    You hand exp(score) to the softmax, which takes the exponential itself. Hand over the score.
""").by(normalize=lambda s: s.exp().softmax(-1))
NO_MAXIMUM = (
    mistake("""no maximum subtracted
    exp of a large score overflows, and ∞/∞ is NaN; far below 0 every exp is 0, and 0/0 is NaN too.
    Subtract each row's largest score first.""")
    .by(normalize=no_max_subtracted)
    .by_any(overflowing, (1e-5, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12))
)
ONE_MAXIMUM = mistake("""one maximum for all rows
    You subtract the largest score of all. In a row that lies far below it every exp is 0, and 0/0
    is NaN. Subtract from each row its own maximum.
""").by(normalize=lambda s: no_max_subtracted(s - s.max()))
NO_KEEPDIM = (
    mistake("""the sums have lost their axis
    You divide by `sum(-1)`, which drops the axis it sums over: the sums then line up with the keys,
    if they fit at all. Keep it: `sum(-1, keepdim=True)`.""")
    .by(normalize=lambda s: exponentials(s) / exponentials(s).sum(-1))
    .by(normalize=lambda s: s.exp() / s.exp().sum(-1))
)
ANOTHER_FUNCTION = (
    mistake("""another function in place of exp
    You share out something else than the exponentials of the scores. A softmax divides e to each
    score by the sum of these over the keys.""")
    .by(normalize=lambda s: shares_of(s.sigmoid()))
    .by(normalize=shares_of)
    .by(normalize=shares_of, hide=lambda s, mask: s if mask is None else s * mask)
    .by(normalize=lambda s: shares_of(s.relu()))
    .by(normalize=lambda s: shares_of(s.square()))
    .by(normalize=lambda s: shares_of(s.abs()))
    .by(normalize=lambda s: shares_of(s.exp().log1p()))
)
IN_SINGLE_PRECISION = mistake("""the softmax is taken in float32
    You convert the scores to float32 for the softmax, which rounds them to seven digits. Leave them
    in the dtype that they have.""").by(normalize=lambda s: s.float().softmax(-1).to(s.dtype))
BEST_ONLY = mistake("""only the best key counts
    You return the value of the key with the largest score: a hard lookup, through which no gradient
    reaches the scores. The softmax gives every key its share.
""").by(normalize=lambda s: (s == s.amax(-1, keepdim=True)).to(s.dtype))
GUARD_IN_DENOMINATOR = (
    mistake("""a guard in the denominator
    You add a small number to the sum of the exponentials, and the weights no longer sum to 1. After
    the largest score is subtracted, the sum is at least 1 and needs no guard.""")
    .by(guarded(1e-3))
    .by_any(guarded, Between(1e-10, 10.0))
)


def floored(floor: float) -> dict[str, Any]:
    """Return the wrong options in which the number subtracted is never below a floor."""
    return {"normalize": lambda s: shares_of((s - s.amax(-1, keepdim=True).clamp(min=floor)).exp())}


FLOORED = (
    mistake("""a floor under the maximum
    You subtract the largest score of a row, but never less than some number. In a row that lies far
    below that number every exponential is 0, and so is their sum. Subtract the largest score
    whatever it is.""")
    .by(floored(0.0))
    .by_any(floored, (-1.0, -10.0, -100.0))
)
BY_FEATURES = (
    mistake("""divided feature by feature
    You blend by the exponentials and divide what comes out by its own sum over the features. The
    weights are what sums to 1, over the keys: divide by the sum of the exponentials of a row.""")
    .by(normalize=exponentials, mix=lambda w, v: shares_of(w @ v))
    .by(mix=lambda w, v: shares_of(w @ v))
)
NEITHER = (
    mistake("""neither softmax nor scale
    You mix the values with the bare products. Divide these by √d_k, and let a softmax over the keys
    make weights of them.""")
    .by(normalize=lambda s: s, factor=lambda q, k, other: 1)
    .by(
        normalize=lambda s: s,
        factor=lambda q, k, other: 1,
        hide=lambda s, mask: s if mask is None else s * mask,
    )
    .by(
        normalize=lambda s: s,
        factor=lambda q, k, other: 1,
        hide=lambda s, mask: s if mask is None else s.masked_fill(~mask, 0),
    )
)
OF_THE_SOFTMAX = (
    OVER_QUERIES,
    OVER_AXIS_1,
    OVER_AXIS_0,
    OVER_EVERYTHING,
    NO_SOFTMAX,
    SIGMOIDS,
    SOFTMAX_TWICE,
    NO_MAXIMUM,
    GUARD_IN_DENOMINATOR,
)
MORE_OF_THE_SOFTMAX = (
    ONE_MAXIMUM,
    NO_KEEPDIM,
    ANOTHER_FUNCTION,
    IN_SINGLE_PRECISION,
    EXPONENTIAL_TWICE,
)

# --- what goes wrong with the product ------------------------------------------------------------


def reversed_axes(x):
    """Return ``x.T`` without torch's warning."""
    return x.permute(*range(x.ndim - 1, -1, -1))


def unit(x):
    """Return every row divided by its length."""
    return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-12)


def squared_distance(query, key):
    """Return |q − k|² for every pair of a query and a key, (..., m, n)."""
    return (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)


def by_letters(query, key):
    """Return ``Q Kᵀ`` by an ``einsum`` that has a letter for one batch axis, and for no more."""
    import torch

    return torch.einsum("bmd,bnd->bmn", query, key)


def one_by_one(query, key):
    """Return ``Q Kᵀ`` by a loop over one batch axis, which is wrong for none and for more."""
    import torch

    return torch.stack([q @ k.T for q, k in zip(query, key, strict=True)])


ROLES_EXCHANGED = mistake("""key and query swapped
    Your scores are `key @ query.mT`, or your signature begins with key. Row i belongs to query i:
    `query @ key.mT`, and query comes first.""").by(compare=lambda q, k: k @ q.mT)
KEYS_BLENDED = mistake("""key and value swapped
    You compare the queries with the values and return a blend of the keys. Compare with key, blend
    value.""").by(roles=lambda q, k, v: (q, v, k))
T_ON_A_BATCH = mistake(""".T on a batch
    `key.T` turns all axes around, the batch axes too. `key.mT` swaps the last two only.
""").by(compare=lambda q, k: q @ reversed_axes(k))
AXES_0_AND_1 = mistake("""axes 0 and 1 swapped
    `transpose(0, 1)` swaps the first two axes. With a batch in front those are not the two you
    mean: count from the end, `key.transpose(-2, -1)`.
""").by(compare=lambda q, k: q @ k.transpose(0, 1))
AXES_1_AND_2 = (
    mistake("""axes 1 and 2 swapped
    `transpose(1, 2)` is right for exactly one batch axis and for nothing else. Count from the end:
    `key.transpose(-2, -1)` fits any number.""")
    .by(compare=lambda q, k: q @ k.transpose(1, 2))
    .by(compare=lambda q, k: q @ k.permute(0, 2, 1))
)
ONE_BATCH_AXIS = (
    mistake("""a product for exactly one batch axis
    `torch.bmm`, an einsum over `b` and a loop over the first axis fit exactly one batch axis. `@`
    takes any number of leading axes and broadcasts them.""")
    .by(compare=lambda q, k: q.bmm(k.transpose(1, 2)), mix=lambda weights, v: weights.bmm(v))
    .by(compare=lambda q, k: q.bmm(k.mT))
    .by(compare=lambda q, k: q.bmm(k.transpose(1, 2)))
    .by(mix=lambda weights, v: weights.bmm(v))
)
OF_THE_PRODUCT = (T_ON_A_BATCH, AXES_0_AND_1, AXES_1_AND_2, ONE_BATCH_AXIS)
COSINE = (
    mistake("""cosine similarity
    You divide by the lengths of query and key. A score is the dot product: a long key may count for
    more.""")
    .by(compare=lambda q, k: unit(q) @ unit(k).mT)
    .by(compare=lambda q, k: unit(q) @ k.mT)
    .by(compare=lambda q, k: q @ unit(k).mT)
)
ALREADY_WEIGHTS = (
    mistake("""already a softmax
    You return weights. Scores come first: any real numbers, before the softmax.""")
    .by(finish=lambda scores, query, key: scores.softmax(-1))
    .by(finish=lambda scores, query, key: scores.softmax(-2))
)
SQUASHED = (
    mistake("""squashed
    You squash the scores, into −1 to 1 or 0 to 1. A score is any real number.""")
    .by(finish=lambda scores, query, key: scores.tanh())
    .by(finish=lambda scores, query, key: scores.sigmoid())
)
ALREADY_SCALED = (
    mistake("""already scaled
    You divide by the width of query and key, or by its root. Here the score is the bare product; a
    scale is a step of its own.""")
    .by(finish=lambda scores, query, key: scores / key.shape[-1] ** 0.5)
    .by(finish=lambda scores, query, key: scores / key.shape[-1])
    .by(finish=lambda scores, query, key: scores / query.shape[-1] ** 0.5)
    .by(finish=lambda s, query, key: s / (query.shape[-1] * key.shape[-1]) ** 0.5)
)
ONLY_PAIRS = mistake("""only pairs at the same place
    You compare query i with key i alone. Every query meets every key, so there are m · n scores: a
    matrix (..., m, n).""").by(compare=lambda q, k: (q * k).sum(-1))
FEATURES_COMPARED = mistake("""the features are compared, not the tokens
    `query.mT @ key` adds up over tokens and compares feature a with feature b. A score compares two
    tokens and adds up over their features: `query @ key.mT`.""").by(compare=lambda q, k: q.mT @ k)
NOT_ADDED_UP = mistake("""the products are not added up
    You multiply every query with every key, feature by feature, and leave it at that: shape (...,
    m, n, d). A dot product adds the products up: `.sum(-1)`.
""").by(compare=lambda q, k: q.unsqueeze(-2) * k.unsqueeze(-3))
ADDED_UP_ELSEWHERE = (
    mistake("""the products are added up along another axis
        You multiply every query with every key, feature by feature, and add up over keys or over
        queries. A dot product adds up over the features, which are last: `.sum(-1)`.""")
    .by(compare=lambda q, k: (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-2))
    .by(compare=lambda q, k: (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-3))
)
A_DISTANCE = (
    mistake("""a distance in place of a product
    You compare by distance, perhaps with a minus sign. A score here is the dot product: multiply
    the features and add up.""")
    .by(compare=squared_distance)
    .by(compare=lambda q, k: -squared_distance(q, k))
    .by(compare=lambda q, k: squared_distance(q, k).sqrt())
    .by(compare=lambda q, k: -squared_distance(q, k).sqrt())
)
OTHER_SEQUENCES = (
    mistake("""queries meet the keys of other sequences
    `torch.inner`, and a product of what `reshape(-1, d)` made, compares every sequence of a batch
    with every other; `key[0]` is the first sequence's. Each has keys of its own: `query @
    key.mT`.""")
    .by(compare=lambda q, k: q @ k.flatten(0, -2).mT)
    .by(compare=lambda q, k: q @ k.reshape(-1, *k.shape[-2:])[0].mT)
    .by(compare=lambda q, k: k.new_tensor(0) + q.inner(k))
    .by(compare=lambda q, k: q.flatten(0, -2) @ k.flatten(0, -2).mT)
)
KEY_NOT_TURNED = mistake("""the key is not turned
    `query @ key` sums over the features of a query and over the tokens of key. A product sums over
    the axis before the last of its right factor: turn the key, `query @ key.mT`.
""").by(compare=lambda q, k: q @ k)
RESHAPED = mistake("""reshaped, not transposed
    `reshape` and `view` fill a new shape in the old order, so the features of one key end up in
    several. `key.mT` exchanges the axes.
""").by(compare=lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]))
NO_BATCH = (
    mistake("""a product that knows no batch
    `torch.mm` and `key.t()` take matrices and nothing else. `@` takes leading axes along, and
    `key.mT` swaps the last two.""")
    .by(compare=lambda q, k: q.mm(k.t()))
    .by(compare=lambda q, k: q @ k.t())
    .by(compare=lambda q, k: q.mm(k.mT))
)
OF_A_SCORE = (
    ONLY_PAIRS,
    ROLES_EXCHANGED,
    KEY_NOT_TURNED,
    RESHAPED,
    T_ON_A_BATCH,
    AXES_0_AND_1,
    AXES_1_AND_2,
    ONE_BATCH_AXIS.here(compare=lambda q, k: q.bmm(k.mT))
    .by(compare=lambda q, k: q.bmm(k.transpose(1, 2)))
    .by(compare=by_letters)
    .by(compare=one_by_one),
    NO_BATCH,
    COSINE.here(prepare=lambda query, key: (unit(query), unit(key)))
    .by(prepare=lambda query, key: (unit(query), key))
    .by(prepare=lambda query, key: (query, unit(key)))
    .by(prepare=lambda query, key: (query.div_(query.norm(dim=-1, keepdim=True)), key))
    .by(*COSINE.ways[1:]),
    ALREADY_SCALED,
    ALREADY_WEIGHTS,
    SQUASHED,
)
OF_A_DOT_PRODUCT = (
    *OF_A_SCORE,
    A_DISTANCE,
    NOT_ADDED_UP,
    ADDED_UP_ELSEWHERE,
    FEATURES_COMPARED,
    OTHER_SEQUENCES,
)

# --- what goes wrong with the mask ---------------------------------------------------------------


def zero_times_infinity(scores, mask):
    """Return the scores plus −∞ times the negated mask: NaN, as 0 · ∞ is, where a key is seen."""
    return scores if mask is None else scores + (~mask) * -math.inf


def filled_with(number: float) -> dict[str, Any]:
    """Return the wrong options in which hidden scores are this number in place of −∞."""
    return {"hide": lambda s, mask: s if mask is None else s.masked_fill(~mask, number)}


def lowered_by(number: float) -> dict[str, Any]:
    """Return the wrong options in which this number is taken off hidden scores, in place of ∞."""
    return {"hide": lambda s, mask: s if mask is None else s - number * ~mask}


def at_places(scores, mask):
    """Return the scores hidden by an index, for which a mask is not broadcast."""
    if mask is not None:
        scores = scores.clone()
        scores[~mask] = -math.inf
    return scores


def guarded_late(number: float) -> dict[str, Any]:
    """Return the wrong option that masks weights and divides them by their sums plus a number."""

    def after(weights, mask, factor):
        masked_weights = weights if mask is None else weights * mask
        return (
            weights
            if mask is None
            else masked_weights / (masked_weights.sum(-1, keepdim=True) + number)
        )

    return {"hide": lambda s, mask: s, "after": after}


MASK_INVERTED = mistake("""the mask is inverted
    You shut out what the mask allows. True means allowed: fill where the mask is False,
    `scores.masked_fill(~mask, -torch.inf)`.
""").by(hide=lambda s, mask: s if mask is None else hide(s, ~mask))
MASK_IGNORED = mistake("""the mask is ignored
    Your result is the same with and without the mask. Scores where it is False become −∞ before the
    softmax.""").by(hide=lambda s, mask: s)
MASKED_LATE = mistake("""masked after the softmax, not renormalised
    You set weights to 0 after the softmax, and the rest of the row sums to less than 1. Put −∞ into
    the scores before it.
""").by(hide=lambda s, mask: s, after=lambda w, mask, f: w if mask is None else w * mask)
ZERO_SCORES = mistake("""a score of 0 is not −∞
    You set masked scores to 0 (by `scores * mask`, or by filling in 1e-9 where -1e9 was meant).
    exp(0) = 1, so those keys take weight from the others. Fill in −∞.
""").by(hide=lambda s, mask: s if mask is None else s * mask)
NOT_LOW_ENOUGH = (
    mistake("""masked scores are not low enough
    You fill masked scores with a number that other scores can come near, so those keys still get
    some weight. Fill in −∞.""")
    .by(filled_with(-5.0))
    .by_any(filled_with, Between(-1000.0, -1e-3))
)
MASK_ADDED = mistake("""the mask is added to the scores
    A mask of booleans that is added adds 1 where it is True and 0 where it is not, which shuts
    nothing out. Only one of numbers, 0 and −∞, can be added. Use `masked_fill(~mask, -torch.inf)`.
""").by(hide=lambda s, mask: s if mask is None else s + mask)
MASK_TRANSPOSED = mistake("""the mask is transposed
    You transpose the mask before you use it. It has a row for each query and a column for each key,
    as the scores have: use it as it comes.
""").by(hide=lambda s, mask: s if mask is None else hide(s, mask.mT))
ZERO_TIMES_INFINITY = mistake("""0 · ∞ in the mask
    You multiply a mask by −∞, and 0 · ∞ is NaN wherever attention is allowed. `masked_fill` puts −∞
    where it belongs and nowhere else.""").by(hide=zero_times_infinity)
TOO_LITTLE_OFF = (
    mistake("""masked scores are lowered too little
    You take a number off masked scores that is too small, so those keys still get some weight. Fill
    in −∞: `scores.masked_fill(~mask, -torch.inf)`.""")
    .by(lowered_by(3.0))
    .by_any(lowered_by, Between(0.1, 15.0))
)
MASK_NOT_BROADCAST = mistake("""the mask is not broadcast
    `scores[~mask] = …` lines the mask up with the first axes of the scores and broadcasts nothing.
    One that is `(1, n)` or `(n,)` is to hold for all rows: `masked_fill` and `torch.where`
    broadcast it.""").by(hide=at_places)
AXIS_ON_THE_MASK = (
    mistake("""an axis is added to the mask
    You put an axis more into every mask. It broadcasts to the scores as it is: add nothing.""")
    .by(hide=lambda s, mask: s if mask is None else hide(s, mask.unsqueeze(-2)))
    .by(hide=lambda s, mask: s if mask is None else hide(s, mask.unsqueeze(1)))
)
GUARD_AFTER_THE_MASK = (
    mistake("""a guard beside the allowed weights
    You mask after the softmax and add a small number to the sum that is left. Where little is left
    the number counts. Put −∞ into the scores before the softmax.""")
    .by(guarded_late(1e-2))
    .by_any(guarded_late, Between(1e-9, 10.0))
)
OF_THE_MASK = (
    MASK_INVERTED,
    MASK_IGNORED,
    MASKED_LATE,
    ZERO_SCORES,
    NOT_LOW_ENOUGH,
    MASK_ADDED,
    MASK_TRANSPOSED,
    ZERO_TIMES_INFINITY,
)
OF_THE_MASKS_SHAPE = (MASK_NOT_BROADCAST, AXIS_ON_THE_MASK)
GRADIENT_CUT = mistake("""the gradient is cut off
    The numbers are right, but nothing can be learned through them: `.detach()`, `.numpy()` or
    `torch.no_grad()` cut the history. Stay with torch operations.
""").by(roles=lambda q, k, v: (q.detach(), k.detach(), v.detach()))

# --- what goes wrong in functions and modules ----------------------------------------------------


def zero_at_start(name: str) -> dict[str, Any]:
    """Return the wrong options in which a new module's parameter is 0."""

    def hold(self, layers):
        assigned(self, layers)
        getattr(self, name).data.zero_()

    return {"hold": hold}


def not_random(name: str) -> Recipe:
    """Return the mistake that a parameter is not random in a new module."""
    return mistake(f"""{name}: not random at the start
        At the start `{name}` holds one or two numbers over and over, or equal rows. The exercise
        asks for random numbers: `torch.randn(…)`.""").by(zero_at_start(name))


NO_SUPER_INIT = mistake("""super().__init__() is missing
    `nn.Module` keeps its lists of parameters and layers, and it creates them in its own `__init__`.
    Call `super().__init__()` before you assign the first one.""").by(super_init=lambda self: None)
LAYERS_HIDDEN = mistake("""the layers are hidden from the module
    Your module has no parameters. Layers in a plain list or dict, or made anew in `forward`, are
    not found: assign each to an attribute in `__init__`, `self.W_q = nn.Linear(…)`.
""").by(hold=lambda self, layers: setattr(self, "layers", layers))
QUERIES_NOT_PROJECTED = mistake("""the queries are not projected
    You compare the tokens themselves with the keys. What asks is a view of them, by `self.W_q`.
""").by(query=lambda self, x, *others: x)
KEYS_NOT_PROJECTED = mistake("""the keys are not projected
    You compare the queries with the tokens themselves. The keys are a view of these,
    `self.W_k`.""").by(key=lambda self, *seen: seen[-1])
VALUES_NOT_PROJECTED = mistake("""the values are not projected
    You mix the tokens themselves. What is mixed is a view of them, `self.W_v`.
""").by(value=lambda self, *seen: seen[-1])
ONE_VIEW_TO_COMPARE = (
    mistake("""one view for query and key
    You make queries and keys with one layer. The keys are a view of their own: queries come from
    `W_q`, keys from `W_k`.""")
    .by(key=lambda self, *seen: self.W_q(seen[-1]))
    .by(query=lambda self, x, *others: self.W_k(x))
)
ONE_VIEW_TO_GIVE = mistake("""one view for key and value
    You mix what `W_k` makes. The keys say what can be found, the values what is taken away: mix
    what `W_v` makes.""").by(value=lambda self, *seen: self.W_k(seen[-1]))
KEYS_AND_VALUES = mistake("""keys and values exchanged
    You compare the queries with what `W_v` makes and mix what `W_k` makes. It is the keys that are
    compared and the values that are mixed.
""").by(key=lambda self, *seen: self.W_v(seen[-1]), value=lambda self, *seen: self.W_k(seen[-1]))
OF_THE_VALUES = (VALUES_NOT_PROJECTED, ONE_VIEW_TO_GIVE)
OF_THE_VIEWS = (*OF_THE_VALUES, KEYS_NOT_PROJECTED, KEYS_AND_VALUES)
WEIGHTS_MISSING = mistake("""weights is missing
    The output is right, but there is no method `weights`. It takes the arguments of `forward` and
    returns the attention map that `forward` used.""").by(shares=None)
WEIGHTS_ARE_SCORES = mistake("""weights returns the scores
    Your `weights` returns what goes into the softmax. It is to return what comes out of it: rows
    that sum to 1.""").by(
    shares=lambda attention, views, mask, other: shared_out(
        replace(attention, normalize=lambda s: s), views, mask, other
    )
)
WEIGHTS_WITHOUT_MASK = mistake("""weights ignores the mask
    Your `forward` uses the mask and your `weights` does not. It is to return the map that `forward`
    used.""").by(
    shares=lambda attention, views, mask, other: shared_out(
        replace(attention, hide=lambda s, mask: s), views, None, other
    )
)
WEIGHTS_ARE_OUTPUT = mistake("""weights returns the output
    Your `weights` returns the mixed values. It is to return the map that they were mixed with.
""").by(shares=mixed)
WEIGHTS_COME_BACK = mistake("""the weights come back too
    You return the output and the weights. Return one thing, the output.""").by(
    answer=lambda attention, views, mask, other: (
        mixed(attention, views, mask, other),
        shared_out(attention, views, mask, other),
    )
)
VALUES_FORGOTTEN = mistake("""the values are forgotten
    You return the attention map. Return the values that it mixes: `weights @ value`.
""").by(answer=shared_out)
OF_THE_METHODS = (
    WEIGHTS_MISSING,
    WEIGHTS_ARE_SCORES,
    WEIGHTS_WITHOUT_MASK,
    WEIGHTS_ARE_OUTPUT,
    WEIGHTS_COME_BACK,
    VALUES_FORGOTTEN,
)
# The same of a function that ends in ``finish(output, weights)``.
OF_THE_RESULT = (
    WEIGHTS_COME_BACK.here(finish=lambda output, weights: (output, weights)),
    VALUES_FORGOTTEN.here(finish=lambda output, weights: weights),
)
# A mistake that only one of the two methods makes.
IN_ONE_METHOD = (
    {"shares": lambda attention, *arguments: shared_out(Attention(), *arguments)},
    {"answer": lambda attention, *arguments: mixed(Attention(), *arguments)},
)
