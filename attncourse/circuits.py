"""Chapter 19: what the heads of a real model do, and what that is worth.

Chapter 14 describes heads by their maps and takes one away. Here single edges are cut
(``cut_edges``, ``without_edges``), several heads are switched off at once (``without_heads``), the
first tokens of a window are kept (``sink_mask``), the residual stream is read before the last layer
(``logit_lens``) and is carried from one run into another (``patched``). ``residual_stream`` and
``attention_maps`` of chapter 14 read both a ``GPT`` and a ``Llama``.

Layers, heads and positions count from 0. Sources: Xiao et al. (2024), Efficient Streaming Language
Models with Attention Sinks; nostalgebraist (2020), Interpreting GPT: the logit lens; Meng et al.
(2022), Locating and Editing Factual Associations in GPT; Wang et al. (2023), Interpretability in
the Wild.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from numbers import Real
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from torch import Tensor, nn

from attncourse.interpret import DecoderModel, require_head, residual_stream
from attncourse.llama import rms_norm
from attncourse.masking import causal_mask, masked_softmax, sliding_window_mask
from attncourse.support.arrays import require_count, require_finite
from attncourse.support.shapes import Count, shaped
from attncourse.support.tensors import require_whole_numbers

Edge = tuple[int, int]  # of a map: (query, key)
ModelT = TypeVar("ModelT", bound=DecoderModel)
Head = tuple[int, int]  # of a model: (layer, head)

# --- what may be seen, and what is left of a row --------------------------------------------------


@shaped
def sink_mask(n: Count, width: Count, n_sinks: int) -> Bool[Tensor, "n n"]:
    """A causal window that keeps the first tokens: the last ``width`` keys and ``n_sinks`` more.

    Entry (i, j) is ``j <= i and (i - j < width or j < n_sinks)``; the window counts the token
    itself. Returns ``(n, n)``. Raises ``ValueError`` for a width below 1 and a negative number of
    sinks. Source: Xiao et al. (2024), section 3.2.
    """
    require_count("n_sinks", n_sinks, least=0)
    window = sliding_window_mask(n, width, causal=True)
    first = torch.arange(n) < n_sinks  # (n,)
    return window | (causal_mask(n) & first)


@shaped
def cut_edges(
    scores: Float[Tensor, "*batch m n"], edges: Iterable[Edge]
) -> Float[Tensor, "*batch m n"]:
    """The weights of these scores without some edges; what is left of each row sums to 1.

    edges: pairs (query, key). A row without a key left is 0, and scores of −∞ stay without weight.
    scores: ``(..., m, n)``, whose softmax over the keys would be the whole map. Returns
    ``(..., m, n)``. Raises ``ValueError`` for an edge that the map does not have, and for scores
    of +∞.
    """
    require_below_infinity(scores)
    left = edges_left(edges, *scores.shape[-2:]).to(scores.device)
    return masked_softmax(scores, left & (scores != -math.inf))


def edges_left(edges: Iterable[Edge], m: int, n: int) -> Bool[Tensor, "m n"]:
    """A mask that is False at these pairs (query, key)."""
    left = torch.ones(m, n, dtype=torch.bool)
    for edge in require_several("edges", "pairs (query, key)", edges):
        query, key = require_edge(edge, m, n)
        left[query, key] = False
    return left


# --- a model with some of it switched off ---------------------------------------------------------


@contextmanager
def without_heads(model: ModelT, heads: Iterable[Head]) -> Iterator[ModelT]:
    """The model while these heads, pairs (layer, head), hand zeros to W_o.

    Raises ``ValueError`` for a layer or a head that does not exist.
    """
    heads_by_layer: dict[int, list[int]] = {}
    for pair in require_several("heads", "pairs (layer, head)", heads):
        layer, head = require_two("heads", "(layer, head)", pair)
        require_head(model, layer, head)
        heads_by_layer.setdefault(layer, []).append(head)
    with ExitStack() as hooks:
        for layer, switched_off in heads_by_layer.items():
            attention = model.blocks[layer].attention
            hook = attention.W_o.register_forward_pre_hook(
                silencing(switched_off, attention.n_heads)
            )
            hooks.callback(hook.remove)
        yield model


def silencing(heads: Sequence[int], n_heads: int) -> Callable:
    """Return a hook that sets the features of these heads to 0 in the input of W_o."""

    def hook(W_o: nn.Module, args: tuple[Tensor, ...]) -> Tensor:
        parts = args[0].unflatten(-1, (n_heads, -1)).clone()  # (..., n, h, d_head)
        parts[..., list(heads), :] = 0
        return parts.flatten(-2)

    return hook


@contextmanager
def without_edges(model: ModelT, edges: Mapping[Head, Iterable[Edge]]) -> Iterator[ModelT]:
    """The model while single entries of some heads' maps are cut, as ``cut_edges`` cuts them.

    edges: for a head, (layer, head), its pairs (query, key). The model reads whole sequences then,
    without a cache. Raises ``ValueError`` for a head that does not exist, and, when the model is
    called, for an edge that the sequence does not have.
    """
    edges_by_layer: dict[int, dict[int, list[Edge]]] = {}
    if not isinstance(edges, Mapping):
        got = type(edges).__name__
        raise ValueError(f"edges: expected a mapping from (layer, head) to edges, got {got}")
    for place, pairs in edges.items():
        layer, head = require_two("edges", "(layer, head)", place)
        require_head(model, layer, head)
        edges_by_layer.setdefault(layer, {})[head] = require_several(
            "edges", "pairs (query, key)", pairs
        )
    with ExitStack() as hooks:
        for layer, cut in edges_by_layer.items():
            attention = model.blocks[layer].attention
            hook = attention.register_forward_pre_hook(cutting(cut), with_kwargs=True)
            hooks.callback(hook.remove)
        yield model


def cutting(edges: Mapping[int, Sequence[Edge]]) -> Callable:
    """The arguments of an attention module with a mask of its own for these heads."""

    def hook(attention: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        bound = inspect.signature(attention.forward).bind(*args, **kwargs)
        x = next(iter(bound.arguments.values()))
        n = x.shape[-2]
        mask = bound.arguments.get("mask")
        mask = causal_mask(n).to(x.device) if mask is None else mask
        if mask.ndim < x.ndim + 1:  # one for all heads
            mask = mask.unsqueeze(-3)
        heads = mask.expand(*x.shape[:-2], attention.n_heads, n, n).clone()  # (..., h, n, n)
        for head, pairs in edges.items():
            heads[..., head, :, :] &= edges_left(pairs, n, n).to(x.device)
        bound.arguments["mask"] = heads
        return bound.args, bound.kwargs

    return hook


# --- the residual stream, read and replaced -------------------------------------------------------


@shaped
def logit_lens(
    hidden: Float[Tensor, "*batch d"],
    gain: Float[Tensor, "d"],
    table: Float[Tensor, "n_vocab d"],
) -> Float[Tensor, "*batch n_vocab"]:
    """Return the logits if the model stopped here: ``rms_norm(hidden, gain) @ tableᵀ``.

    hidden: the residual stream after any block, ``(..., d)``. gain: of the final norm, ``(d,)``.
    table: a row for each token, ``(n_vocab, d)``. Returns logits, ``(..., n_vocab)``; after the
    last block they are the model's own, where its final norm has an eps of 1e-5 too. Source:
    nostalgebraist (2020).
    """
    return rms_norm(hidden, gain) @ table.mT


@torch.no_grad()
def patched(
    model: DecoderModel,
    clean: Tensor,
    corrupted: Int[Tensor, "*batch n"],
    layer: int,
    position: int,
) -> Float[Tensor, "*batch n n_vocab"]:
    """The logits for ``corrupted`` with one vector of its residual stream taken from ``clean``.

    It is the vector *after* block ``layer`` at ``position``. clean, corrupted: ids of one shape.
    Returns ``(..., n, n_vocab)``. Raises ``ValueError`` for runs of different lengths, and for a
    layer or position that does not exist. Source: Meng et al. (2022), section 2.1.
    """
    require_layer(model, layer)
    for name, ids in (("clean", clean), ("corrupted", corrupted)):
        require_whole_numbers(ids, "... n", name)
    if clean.shape != corrupted.shape:
        raise ValueError(
            f"clean, corrupted: expected ids of one shape, got {tuple(clean.shape)} and "
            f"{tuple(corrupted.shape)}"
        )
    require_count("position", position, least=0, most=corrupted.shape[-1] - 1)
    taken = residual_stream(model, clean)[layer + 1][..., position, :]

    def put(block: nn.Module, args: tuple, x: Tensor) -> Tensor:
        x = x.clone()
        x[..., position, :] = taken
        return x

    hook = model.blocks[layer].register_forward_hook(put)
    try:
        return model(corrupted)
    finally:
        hook.remove()


# --- differences of logarithms --------------------------------------------------------------------


def gap_interval(
    gaps: ArrayLike,
    baseline: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: np.random.Generator | None = None,
) -> tuple[float, float, float]:
    """The mean of some gaps over that of a baseline, and where it falls if templates are redrawn.

    gaps: log p(she) − log p(he), or another difference in nats, one a template. baseline: the same
    templates with another word in the place, taken off template by template; 0 unless given.
    Returns (mean, low, high), a percentile interval as in chapter 16. Raises ``ValueError`` for
    sequences of unequal length, numbers that are not finite, and fewer than two templates.
    """
    gaps = require_gaps("gaps", gaps)
    base = np.zeros_like(gaps) if baseline is None else require_gaps("baseline", baseline)
    if gaps.ndim != 1 or len(gaps) < 2 or base.shape != gaps.shape:
        raise ValueError(
            f"gaps: expected one for each of two templates or more, and as many of the baseline, "
            f"got shapes {gaps.shape} and {base.shape}"
        )
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
    require_count("n_resamples", n_resamples)
    if not isinstance(rng, np.random.Generator | None):
        raise ValueError(f"rng: expected a generator of NumPy, got {type(rng).__name__}")
    more = gaps - base  # (n,)
    rng = np.random.default_rng() if rng is None else rng
    rows = rng.integers(len(more), size=(n_resamples, len(more)))  # templates, drawn anew
    low, high = np.quantile(more[rows].mean(-1), [(1 - level) / 2, (1 + level) / 2])
    return float(more.mean()), float(low), float(high)


# --- refusals -------------------------------------------------------------------------------------


def require_several(name: str, what: str, values: Iterable) -> list:
    """Return ``values`` as a list; ``ValueError`` where it is not iterable."""
    if not isinstance(values, Iterable):
        raise ValueError(f"{name}: expected {what}, got {values!r}")
    return list(values)


def require_two(name: str, what: str, pair: tuple[int, int]) -> tuple[int, int]:
    """The pair; ``ValueError`` unless there are two."""
    try:
        first, second = pair
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected pairs {what}, got {pair!r}") from None
    return first, second


def require_gaps(name: str, gaps: ArrayLike) -> np.ndarray:
    """The numbers as floats; ``ValueError`` unless they are finite."""
    try:
        gaps = np.asarray(gaps, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers, got {error}") from None
    require_finite(**{name: gaps})
    return gaps


def require_below_infinity(scores: Tensor) -> None:
    """Raises ``ValueError`` where a score is +∞: its softmax would be NaN."""
    if (scores == math.inf).any():
        where = tuple((scores == math.inf).nonzero()[0].tolist())
        raise ValueError(f"scores: expected numbers or −∞, got ∞ at index {where}")


def require_edge(edge: Edge, m: int, n: int) -> Edge:
    """The edge; ``ValueError`` unless it is a query and a key of an ``(m, n)`` map."""
    query, key = require_two("edges", "(query, key)", edge)
    require_count("the query of an edge", query, least=0, most=m - 1)
    require_count("the key of an edge", key, least=0, most=n - 1)
    return query, key


def require_layer(model: DecoderModel, layer: int) -> None:
    """Raises ``ValueError`` where there is no such layer."""
    require_head(model, layer, 0)
