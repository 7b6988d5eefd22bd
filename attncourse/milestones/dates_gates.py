"""Gates of a translator of dates: before it has learned anything, and afterwards."""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attncourse.milestones.blocks import made_zero
from attncourse.milestones.gates import difference_message, of_shape, relative_difference
from attncourse.milestones.milestone import Gate
from attncourse.tasks.characters import to_ids
from attncourse.tasks.dates import ISO, WRITTEN, date_pairs

FRESH, ISO_LENGTH = 4242, 10


def dates(n: int, seed: int, but: frozenset = frozenset()) -> tuple[Tensor, Tensor, list[str]]:
    """Dates as ids, written and translated, and as they are written, but for some."""
    pairs = [pair for pair in date_pairs(n, seed) if pair[0] not in but]
    written, iso = zip(*pairs, strict=True)
    return to_ids(written, WRITTEN), to_ids(iso, ISO), list(written)


@cache
def sample_dates(n: int = 12) -> tuple[Tensor, Tensor, list[str]]:
    """Fresh dates, of different lengths."""
    return dates(n, FRESH)


def cross_attention_inputs(model: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Who asks, who is asked and the mask, as its cross-attention gets them."""
    source, target, _ = sample_dates()
    states, mask = model.encode(source)
    return model.asks(states, mask, target[:, :-1]), states, mask


def logits_for_every_character(model: Any) -> str:
    """Return what is wrong with the logits' shape; "" where nothing is."""
    source, target, _ = sample_dates()
    return of_shape(model(source, target), (*target.shape, len(ISO) + 1))


def check_date_padding(model: Any) -> str:
    """Return how far padding changes what is said; "" where it does not."""
    source, target, _ = sample_dates()
    far = relative_difference(model(source, target), model(F.pad(source, (0, 5)), target))
    return difference_message("more padding behind a date changes what is said", far)


def check_date_alone(model: Any) -> str:
    """Return how far a date alone differs from one beside others; "" where not."""
    source, target, _ = sample_dates()
    far = relative_difference(model(source, target)[:1], model(source[:1], target[:1]))
    return difference_message("a date is translated otherwise beside others", far)


def check_date_without_batch(model: Any) -> str:
    """Return how far a date without a batch axis differs; "" where not."""
    asks, states, mask = cross_attention_inputs(model)
    alone = model.cross(asks[0], states[0], mask[0])
    far = max(
        relative_difference(model.cross(asks, states, mask)[0], alone),
        relative_difference(model.pool(states, mask)[0], model.pool(states[0], mask[0])),
    )
    return difference_message("a date without a batch axis is read otherwise", far)


def every_character_is_read(model: Any) -> str:
    """Check that each character of the source has influence on what is said, wherever it stands."""
    asks, states, mask = cross_attention_inputs(model)
    right = model.cross(asks, states, mask)
    for place in range(4):
        changed = states.clone()
        changed[:, place] = states[:, place].roll(1, 0)
        if relative_difference(right, model.cross(asks, changed, mask)) < 1e-4:
            return f"what stands in place {place} of the source changes nothing"
    return ""


def check_date_map_rows(model: Any) -> str:
    """Each row of a map shares out 1 among the characters, and nothing goes to the padding."""
    asks, states, mask = cross_attention_inputs(model)
    for rows, maps in (
        (asks.shape[1], model.cross.weights(asks, states, mask)),
        (1, model.pool.weights(states, mask)),
    ):
        shape = (len(states), rows, states.shape[1])
        if maps.shape != shape:
            return f"expected a map of shape {shape}, got {tuple(maps.shape)}"
        lost = maps.masked_fill(mask, 0).abs().max()
        far = max(float(lost), float((maps.sum(-1) - 1).abs().max()))
        if far > 1e-3:
            return difference_message("weights are no shares of what is no padding", far)
    return ""


def maps_blend(model: Any) -> str:
    """Return how far weights @ values are from what comes out; "" where they agree."""
    asks, states, mask = cross_attention_inputs(model)
    far = relative_difference(
        model.cross(asks, states, mask),
        model.cross.weights(asks, states, mask) @ model.cross.W_v(states),
    )
    summed = model.pool.weights(states, mask) @ model.pool.W_v(states)
    far = max(far, relative_difference(model.pool(states, mask), summed))
    return difference_message("weights @ values is not what comes out", far)


def check_date_scaling(model: Any) -> str:
    """A weight's logarithm is its score over √d_k, but for one number in each row."""
    asks, states = (8 * x for x in cross_attention_inputs(model)[:2])  # scores of order one
    for maps, query, key in (
        (model.cross.weights(asks, states), model.cross.W_q(asks), model.cross.W_k(states)),
        (model.pool.weights(states), model.pool.queries, model.pool.W_k(states)),
    ):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        logs = maps.clamp(min=1e-12).log()
        if logs.shape != scores.shape:
            return f"expected a map of shape {tuple(scores.shape)}, got {tuple(logs.shape)}"
        far = relative_difference(*(x - x.mean(-1, keepdim=True) for x in (scores, logs)))
        if far > 1e-2:
            return f"weights are not the softmax of scores over √d_k, by {far:.2g}"
    return ""


def check_date_large_entries(model: Any) -> str:
    """Return that large entries give NaN or infinity; "" where they do not."""
    asks, states, mask = cross_attention_inputs(model)
    fine = model.cross(1e5 * asks, 1e5 * states, mask).isfinite().all()
    fine = fine and model.pool(1e6 * states, mask).isfinite().all()
    return "" if fine else "large entries give NaN or infinity"


@torch.enable_grad()
def everything_learns(model: Any) -> str:
    """Every parameter gets a gradient, and so does what is read."""
    source, target, _ = sample_dates()
    names = [n for n, _ in model.named_parameters()]
    if "pool.queries" not in names:
        return "the pooling's queries are no parameter"
    states, mask = model.encode(source)
    asks = model.asks(states, mask, target[:, :-1]).detach()
    logits = model.say(asks, model.cross(asks, states, mask))
    through = torch.autograd.grad(logits.square().sum(), states, allow_unused=True)[0]
    if through is None or not through.abs().sum() > 0:
        return "what cross-attention reads gets no gradient"
    loss = F.cross_entropy(model(source, target).mT, target)
    grads = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    still = [n for n, g in zip(names, grads, strict=True) if g is None or not g.abs().sum() > 0]
    return f"no gradient reaches {', '.join(still[:3])}" if still else ""


# --- once it has learned --------------------------------------------------------------------------


def share_of_dates_right(model: Any, n: int = 300) -> float:
    """Return the share of fresh dates that are translated without a mistake."""
    source, target, _ = sample_dates(1000)
    got = model.translate(source[:n])[0]
    return float((got == target[:n]).all(dim=1).float().mean())


def translates(model: Any) -> str:
    """Return the share of fresh dates that are right where it is too small; else ""."""
    right = share_of_dates_right(model)
    return f"{right:.0%} of fresh dates are right, expected 97%" if right < 0.97 else ""


def check_date_attention(model: Any) -> str:
    """With attention made uniform, which no query asks for, it is lost."""
    with made_zero([model.cross.W_q]):
        right = share_of_dates_right(model, 100)
    return (
        f"with uniform attention {right:.0%} of fresh dates are still right" if right > 0.3 else ""
    )


UNTRAINED = (
    Gate("logits for every character", logits_for_every_character),
    Gate("padding has no influence", check_date_padding),
    Gate("one date at a time or many", check_date_alone),
    Gate("no batch axis", check_date_without_batch),
    Gate("every character is read", every_character_is_read),
    Gate("maps are shares", check_date_map_rows),
    Gate("the map is the one that blends", maps_blend),
    Gate("softmax of scores over √d_k", check_date_scaling),
    Gate("large entries", check_date_large_entries),
    Gate("everything learns", everything_learns),
)
TRAINED = (
    Gate("fresh dates", translates),
    Gate("its attention counts", check_date_attention),
)
