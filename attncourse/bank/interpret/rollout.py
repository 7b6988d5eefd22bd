"""The exercise ``rollout``: how much of each input is in each output."""

from itertools import accumulate

import numpy as np
import torch

from attncourse import interpret
from attncourse.bank.interpret.cases import MAPS_ONLY, maps_of
from attncourse.checks.exercise import Case, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import CaseTable, Drawn, once_more, row, standard
from attncourse.checks.writing.decisions import as_it_is
from attncourse.checks.writing.modules import tensor
from attncourse.checks.writing.recipes import made, mistake

# --- cases ---------------------------------------------------------------------------------------


def full_maps(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Return maps in which nothing is hidden."""
    scores = np.exp(2 * rng.normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


CASES = CaseTable({"maps": "... l h n n"}, how=maps_of)
ROWS = standard(CASES, l=3, h=2)
BY_HAND = Case(
    (tensor([[[[1, 0], [1, 0]], [[1, 0], [0, 1]]], [[[1, 0], [0.5, 0.5]], [[1, 0], [1, 0]]]]),),
    note="two layers of two heads",
)

# --- decisions and mistakes ----------------------------------------------------------------------


def mix_with_residual(layer, identity, share):
    return share * identity + (1 - share) * layer


def mix_and_renormalise(layer, identity, share):
    """Return ``mix_with_residual`` with rows that are brought back to 1."""
    rows = mix_with_residual(layer, identity, share)
    return rows / rows.sum(-1, keepdim=True)


def multiply_from_left(flow, layer, identity, share):
    return layer @ flow


def flows_by_layer(layers):
    """Return, layer by layer, the flow up to it."""
    return accumulate(layers, lambda flow, layer: layer @ flow)


@composition
def compose_rollout(
    over_heads=lambda maps: maps.mean(-3),
    share=as_it_is,
    beside=mix_with_residual,
    pick=lambda layers: layers.unbind(-3),
    first=lambda blended, layer: blended,
    multiply=multiply_from_left,
    finish=lambda flow, layers, share: flow,
):
    """Return ``rollout`` made of decisions: the mean over heads, the residual, the product."""

    def rollout(maps, residual=0.5):
        averaged = over_heads(maps)
        identity = torch.eye(maps.shape[-1], dtype=maps.dtype)
        layers = [beside(layer, identity, share(residual)) for layer in pick(averaged)]
        layers[0] = first(layers[0], pick(averaged)[0])
        flow = identity.expand(layers[0].shape)
        for layer in layers:
            flow = multiply(flow, layer, identity, share(residual))
        return finish(flow, layers, share(residual))

    return rollout


def add_and_halve(layer, identity, share):
    """Return the map plus the residual, brought back to rows of 1: a residual of one half."""
    return (layer + identity) / 2


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    interpret.rollout,
    section="Chapter 14, “Through the layers”",
    difficulty=2,
    minutes=15,
    picture=True,
    criteria=(
        CASES.criterion("heads averaged, the stream beside them, later layers on the left", 3).on(
            BY_HAND,
            row("l=3 h=2 n=5"),
            row("l=2 h=3 n=7", arguments={"maps": Drawn("... l h n n", full_maps)}),
            row("l=5 h=4 n=3", note="five layers"),
        ),
        CASES.criterion("any share for the stream", 2).on(
            row("l=3 h=2 n=5", arguments={"residual": 0.25}, note="residual = 0.25"),
            row("l=2 h=3 n=4", arguments={"residual": 0.8}, note="residual = 0.8"),
        ),
        CASES.criterion("one layer, one head, one token, a share of 0 or 1", 1).on(
            row("l=3 h=2 n=5", arguments={"residual": 0.0}, note="residual = 0"),
            row("l=3 h=2 n=5", arguments={"residual": 1.0}, note="residual = 1"),
            row("l=1 h=3 n=5", note="one layer"),
            row("l=3 h=1 n=5", note="one head"),
            row("l=2 h=3 n=1", note="one token"),
            row("l=2 h=3 n=2", note="two tokens"),
        ),
        CASES.criterion("batches", 1).on(
            *ROWS.batches,
            row("l=3 h=3 n=5", batch=(2,), note="as many layers as heads"),
            row("l=5 h=3 n=5", batch=(2,), note="as many layers as tokens"),
            row("l=2 h=5 n=5", batch=(3,), note="as many heads as tokens"),
            row("l=2 h=3 n=5", batch=(4,), note="a batch of 4"),
            row("l=2 h=3 n=5", batch=(2,), note="as many sequences as layers"),
            row("l=2 h=3 n=5", batch=(3,), note="as many sequences as heads"),
            row("l=2 h=3 n=5", batch=(5,), note="as many sequences as tokens"),
        ),
        CASES.criterion("float32, many tokens", 1).on(
            ROWS.single,
            row("l=2 h=3 n=19"),
            once_more(BY_HAND),
        ),
        unchanged(),
    ),
    excludes=(
        *MAPS_ONLY,
        ("a gradient on maps alone", "Rows that are brought back to 1 have another gradient."),
    ),
    mistakes=made(
        compose_rollout,
        mistake("""the layers in the other order
            The first layer acts first, so it stands on the right: each further layer is multiplied
            from the left, `layer @ flow`.""")
        .by(multiply=lambda flow, layer, identity, share: flow @ layer)
        .by(pick=lambda layers: layers.unbind(-3)[::-1]),
        mistake("""the residual stream is forgotten
            You multiply the maps themselves. Beside attention runs the residual stream, in which
            every token keeps what it has: residual · I + (1 − residual) · A.
        """).by(beside=lambda layer, identity, share: layer),
        mistake("""the shares are exchanged
            `residual` is the share of the stream, I. You give it to the map.
        """).by(
            beside=lambda layer, identity, share: mix_with_residual(layer, identity, 1 - share)
        ),
        mistake("""added, not blended
            You add I to the map, so that rows sum to more than 1. A share of each: residual · I +
            (1 − residual) · A.""")
        .by(beside=lambda layer, identity, share: layer + identity)
        .by(beside=lambda layer, identity, share: layer + share * identity)
        .by(beside=lambda layer, identity, share: identity + (1 - share) * layer),
        mistake("""the share is added to every entry
            You add `residual` as a number, which falls on every entry. In the stream a token keeps
            what is its own: `residual * torch.eye(n)`.
        """).by(beside=lambda layer, identity, share: share + (1 - share) * layer),
        mistake("""residual is ignored
            You give the stream one half, whatever `residual` says.""")
        .by(beside=add_and_halve)
        .by(share=lambda share: 0.5),
        mistake("""the heads are not averaged
            One map stands for a layer: the *mean* over its heads. You add them up, take the largest
            or smallest entry, or one of the heads.""")
        .by(over_heads=lambda maps: maps.sum(-3))
        .by(over_heads=lambda maps: maps.amax(-3))
        .by(over_heads=lambda maps: maps.amin(-3))
        .by(over_heads=lambda maps: maps[..., 0, :, :])
        .by(over_heads=lambda maps: maps[..., -1, :, :])
        .by(over_heads=lambda maps: maps.amax(-3), beside=mix_and_renormalise)
        .by(over_heads=lambda maps: maps.amin(-3), beside=mix_and_renormalise)
        .by(over_heads=lambda maps: maps.sum(-3), beside=mix_and_renormalise),
        mistake("""layers and heads exchanged
            The axes are (..., layers, heads, n, n): the mean is over axis −3, the product over axis
            −4. You average over the layers and multiply the heads.
        """).by(over_heads=lambda maps: maps.mean(-4)),
        mistake("""the layers are averaged or added
            What flows through two layers goes through one *and then* the other: matrices are
            multiplied. You average the layers or add them up.""")
        .by(finish=lambda flow, layers, share: sum(layers) / len(layers))
        .by(finish=lambda flow, layers, share: sum(layers)),
        mistake("""multiplied entry by entry
            `*` multiplies entry by entry. Flow through two layers is a matrix product, `@`.
        """).by(finish=lambda flow, layers, share: torch.stack(layers).prod(0)),
        mistake("""one layer alone
            You return one layer's map, with the stream beside it. All are multiplied.""")
        .by(finish=lambda flow, layers, share: layers[-1])
        .by(finish=lambda flow, layers, share: layers[0]),
        mistake("""a layer is left out
            You begin with the second layer, or stop before the last. All layers take part.""")
        .by(pick=lambda layers: layers.unbind(-3)[1:] or layers.unbind(-3))
        .by(pick=lambda layers: layers.unbind(-3)[:-1] or layers.unbind(-3)),
        mistake("""a layer counts twice
            Your product begins with the first layer, or ends with the last, and takes it once more
            in the loop. Begin with I, or loop over the others.""")
        .by(pick=lambda layers: [layers.unbind(-3)[0], *layers.unbind(-3)])
        .by(pick=lambda layers: [*layers.unbind(-3), layers.unbind(-3)[-1]]),
        mistake("""the stream beside the product only
            The stream runs beside *every* layer: blend I into each map before you multiply, not
            into the product.""")
        .by(
            beside=lambda layer, identity, share: layer,
            finish=lambda flow, layers, share: mix_with_residual(
                flow, torch.eye(flow.shape[-1]).to(flow), share
            ),
        )
        .by(
            beside=lambda layer, identity, share: layer,
            finish=lambda flow, layers, share: (flow + torch.eye(flow.shape[-1])) / 2,
        ),
        mistake("""no stream beside the first layer
            You begin with the first map as it is. The stream runs beside every layer: begin with
            the identity, and blend I into each map.""").by(first=lambda blended, layer: layer),
        mistake("""every layer keeps the tokens as they came in
            You add residual · I to the product, so that a token keeps what it was at the very
            beginning. It keeps what it has by then: (residual · I + (1 − residual) · A) @ flow.
        """).by(
            beside=lambda layer, identity, share: (1 - share) * layer,
            multiply=lambda flow, layer, identity, share: share * identity + layer @ flow,
        ),
        mistake("""each head is followed by itself
            You multiply head 0 with head 0 of the next layer, and average at the end. A head reads
            what *all* heads below wrote: average in each layer, then multiply.""").by(
            over_heads=as_it_is,
            pick=lambda layers: layers.unbind(-4),
            finish=lambda flow, layers, share: flow.mean(-3),
        ),
        mistake("""the result is transposed
            Row i of the result belongs to the output of token i, as in a map. Yours is the
            transpose.""").by(finish=lambda flow, layers, share: flow.mT),
        mistake("""every step comes back, or one row alone
            You return one matrix for each layer, or the last token's row alone. The product of all
            is asked for, (..., n, n).""")
        .by(finish=lambda flow, layers, share: torch.stack(layers, -3))
        .by(finish=lambda flow, layers, share: flow[..., -1, :])
        .by(finish=lambda flow, layers, share: torch.stack([*flows_by_layer(layers)], -3)),
    ),
)
