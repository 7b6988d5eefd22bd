"""Chapter 14: a story, where every head looks from its full stop, and what goes without a head."""

from collections.abc import Sequence
from copy import deepcopy
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from attncourse.figures.ink import wide
from attncourse.figures.moving.controls import button, choice, controls
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.live_model import World, live_model_weights, pack_arrays, percent
from attncourse.support.arrays import as_floats, require_finite

if TYPE_CHECKING:  # numpy alone is enough for the other figures
    from attncourse.gpt import GPT

WHO = ("mary", "john", "the doctor", "the nurse")
LINE = "is small , cute and fluffy ."
WIDE, HIGH, LETTER = 340, 146, 13  # of the drawing, and of its words, in pixels
ABOVE, BELOW, LEAST = 64, 84, 0.02  # where arcs begin, and the least weight that has one
HARD = 0.5  # a head looks hard at the character with more of its attention than that


class StoryHeads(Moving):
    """A story with arcs from its full stop, and a switch for each head of the model that reads it.

    Arcs of layer 0 run above the words, those of later layers below, as thick as the weight. Each
    switch says what the head looks at against what it costs; below stand the probabilities of
    *she*, *he* and all other words, and what they were with all heads on. At first the head is off
    that looks hard at the character and costs least.

    model: a ``GPT`` of at most 150,000 numbers, with exact GELU. world: with the words *she* and
    *he*. looks, costs: ``(layers, heads)``, the mean attention from full stop to character, from 0
    to 1, and the rise of a loss without the head, in nats. who: characters to choose from.

    Raises ``ValueError`` for any other model, and for numbers of another shape or range.
    """

    def __init__(
        self, model: "GPT", world: World, looks, costs, who: Sequence[str] = WHO, line: str = LINE
    ):
        """Make the figure of a model whose heads a reader switches off.

        ``looks`` and ``costs`` are numbers of every head, ``(layers, heads)``.
        """
        weights = live_model_weights(model)
        looks, costs = (
            as_floats(name, x, "layers heads").astype(float)
            for name, x in (("looks", looks), ("costs", costs))
        )
        require_finite(looks=looks, costs=costs)
        shape = model.config.n_layers, model.config.n_heads
        if looks.shape != shape or costs.shape != shape:
            raise ValueError(
                f"looks, costs: expected shape {shape}, a number for each head, got {looks.shape} "
                f"and {costs.shape}"
            )
        if looks.min() < 0 or looks.max() > 1:
            raise ValueError("looks: expected attention, from 0 to 1")
        off, short = surprising(looks, costs), [noun.removeprefix("the ") for noun in who]
        stories = [story_record(world, noun, line) for noun in who]
        maps, now, before = story_maps(model, weights, world, stories[0]["ids"], off)
        settings: dict[str, Any] = {
            "heads": [shape[1]] * shape[0],
            "eps": model.norm.eps,
            "off": off,
        }
        settings |= {"stories": stories, "asked": [world.words.index(w) for w in ("she", "he")]}
        settings |= {"above": ABOVE, "below": BELOW, "least": LEAST}
        settings["shapes"] = [[name, *array.shape] for name, array in weights.items()]
        super().__init__(
            "story_heads",
            "Press a head to switch it off",
            controls(choice("who", "About", short, 0), button("all", "All on"))
            + f'<div class="attncourse-diagram">{drawing(stories[0], maps, off)}</div>'
            + f'<div class="sh-heads">{head_switches(looks, costs, off)}</div>'
            + f'<div class="sh-next" data-part="next">{pronoun_bars(now, before)}</div>',
            "Where JavaScript runs, every head can be switched off, and the character chosen.",
            settings | {"weights": pack_arrays(weights.values())},
            story_sentence(stories[0], maps, now, before, off),
            before=["transformer", "gpt"],
        )


def surprising(looks: np.ndarray, costs: np.ndarray) -> tuple[int, int]:
    """Return the head that costs least among those that look hard, or among all where none does."""
    hard = np.where(looks > HARD, costs, np.inf) if (looks > HARD).any() else costs
    layer, head = np.unravel_index(hard.argmin(), hard.shape)
    return int(layer), int(head)


def story_record(world: World, who: str, line: str) -> dict:
    """Return a story: its ids, its words, their places in the drawing, and its character."""
    ids = world.beginning(f"{who} {line}")
    tokens = [world.words[i] for i in ids]
    widths = [wide(token, LETTER) for token in tokens]
    gap = (WIDE - 6 - sum(widths)) / (len(tokens) - 1)
    if gap < 3:
        raise ValueError(f"line: expected words that fit {WIDE} pixels, got {who!r} with {line!r}")
    starts = 3 + np.cumsum([0, *[w + gap for w in widths[:-1]]])
    places = [round(float(x + w / 2), 1) for x, w in zip(starts, widths, strict=True)]
    mark = len(ids) - len(line.split()) - 1
    return {"ids": list(ids), "tokens": tokens, "x": places, "who": mark}


def story_maps(model: "GPT", weights: dict, world: World, ids: list[int], off: tuple[int, int]):
    """Return every head's map, and p(she), p(he), p(others) without a head and with all."""
    import torch

    from attncourse.interpret import ablate, attention_maps

    whole = deepcopy(model).cpu().double()
    whole.load_state_dict(
        {name: torch.tensor(array) for name, array in weights.items()}, strict=False
    )
    tokens, chances = torch.tensor(ids), []
    with torch.no_grad():
        without = ablate(whole, *off)
        for network in (without, whole):
            p = network(tokens)[-1].softmax(-1)
            pair = [p[world.words.index(word)].item() for word in ("she", "he")]
            chances.append([*pair, 1 - sum(pair)])
        return attention_maps(without, tokens).numpy(), *chances


def story_arc(story: dict, layer: int, j: int, weight: float, lit: bool) -> str:
    """Draw an arc from the full stop to token j: above the words for layer 0, else below."""
    x, to = story["x"][-1], story["x"][j]
    y, up = (ABOVE, -1) if layer == 0 else (BELOW, 1)
    turn = y + up * (8 + 0.2 * (x - to))
    return (
        f'<path class="{"sh-arc" if lit else "sh-arc sh-off"}" '
        f'style="stroke-width:{0.5 + 5 * weight:.2f}" '
        f'd="M{x:.1f},{y}C{x:.1f},{turn:.1f} {to:.1f},{turn:.1f} {to:.1f},{y}"/>'
    )


def drawing(story: dict, maps: np.ndarray, off: tuple[int, int]) -> str:
    """Return the words in a line, and the arcs of every head from the last of them."""
    groups = ""
    for layer, heads in enumerate(maps):
        for head, weights in enumerate(heads):
            arcs = "".join(
                story_arc(story, layer, j, w, (layer, head) != off)
                for j, w in enumerate(weights[-1][:-1])
                if w >= LEAST
            )
            groups += f"<g>{arcs}</g>"
    words = "".join(
        f'<text x="{x}" y="78" text-anchor="middle"{" class=sh-who" if j == story["who"] else ""}>'
        f"{escape(token)}</text>"
        for j, (token, x) in enumerate(zip(story["tokens"], story["x"], strict=True))
    )
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="The story, with arcs from its '
        'full stop to where each head looks" style="max-width:26rem">'
        f'<text x="3" y="14" class="sh-layer">layer 0</text>'
        f'<text x="3" y="{HIGH - 4}" class="sh-layer">layer 1</text>'
        f'<g data-part="arcs">{groups}</g><g data-part="words">{words}</g></svg>'
    )


def head_switches(looks: np.ndarray, costs: np.ndarray, off: tuple[int, int]) -> str:
    """Return a button for each head, with two bars: what it looks at, and what it costs."""
    most, parts = max(costs.max(), 0.01), ""
    for layer, head in np.ndindex(looks.shape):
        look, cost = looks[layer, head], costs[layer, head]
        lines = "".join(
            f'<span class="sh-{name}"><em>{name}</em><i style="width:{long:.1f}%"></i>'
            f"<b>{number}</b></span>"
            for name, long, number in (
                ("looks", 100 * look, f"{look:.2f}"),
                ("costs", 100 * max(cost, 0) / most, cost_in_nats(cost)),
            )
        )
        lit = "false" if (layer, head) == off else "true"
        parts += (
            f'<button type="button" data-part="head" aria-pressed="{lit}">'
            f"<strong>{layer}.{head}</strong>{lines}</button>"
        )
    return parts


def cost_in_nats(cost: float) -> str:
    """Return a cost with two decimals, and no minus before zero."""
    return f"{cost + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def pronoun_bars(now: list[float], before: list[float]) -> str:
    """Return bars for the next word, now and with all heads on."""
    lines = "".join(
        f'<tr><th scope="row">{word}</th><td><i style="width:{100 * p:.2f}%"></i>'
        f'<i class="sh-before" style="width:{100 * q:.2f}%"></i></td>'
        f"<td>{escape(percent(p))}</td><td>{escape(percent(q))}</td></tr>"
        for word, p, q in zip(("she", "he", "others"), now, before, strict=True)
    )
    head = '<th scope="col">next word</th><td></td><th scope="col">now</th>'
    return (
        f'<table><thead><tr>{head}<th scope="col">all on</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def story_sentence(story: dict, maps: np.ndarray, now, before, off: tuple[int, int]) -> str:
    """Return the sentence for the first state."""
    best = int(np.argmax(before[:2]))
    word, character = ("she", "he")[best], story["tokens"][story["who"]]
    weight = maps[off[0], off[1], -1, story["who"]]
    return (
        f"Head {off[0]}.{off[1]} is off. From the full stop it gives “{character}” {weight:.2f} of "
        f"its attention. “{word}”: {percent(before[best])} with all heads, "
        f"{percent(now[best])} now."
    )
