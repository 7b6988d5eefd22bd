"""Chapters 13 and 14: a trained language model that runs in the page and is the reader's to ask."""

import base64
from collections.abc import Collection, Sequence
from copy import deepcopy
from html import escape
from typing import TYPE_CHECKING, Protocol

import numpy as np

from attncourse.figures.moving.controls import button, controls, scrolling, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import require_count, require_finite

if TYPE_CHECKING:  # numpy alone is enough for the other figures
    from attncourse.gpt import GPT
    from attncourse.sequences import ReceptorClassifier
    from attncourse.vision import VisionTransformer

MAX_MODEL_NUMBERS = 150_000  # numbers of a model: 600 kB of a page
BARS, FEW_BARS = 8, 5  # next tokens that are shown, with the heads and without
BEGINNING = "today the doctor is small and cute ."


class World(Protocol):
    """The world of a figure: words by their ids, and the ids of a story's first words.

    Words in ``<>`` are marks that nobody writes; ``beginning`` puts a mark in front, and raises
    ``ValueError`` for a word that is unknown.
    """

    words: Sequence[str]

    def beginning(self, words: str) -> list[int]:
        """Return the ids of a text with which a model begins to write."""


class LiveModel(Moving):
    """A language model that goes on with what the reader writes, with its heads in view.

    It shows the likeliest next tokens at a temperature, draws one or writes on to the end, and
    shows for each head where a token looks. A head that is switched off puts zeros in place of its
    output, before ``W_o``. The page carries the weights as float32 without the lowest byte, and
    computes with them in float64; its logits are the model's to about 2e-4.

    model: a ``GPT`` of at most 150,000 numbers, with exact GELU. world: whose words it knows, such
    as a ``PronounWorld``. beginning: the first words it goes on from. examples: beginnings to
    choose from. seed: of what is drawn. heads: whether the heads are in view; without them the
    figure is small, and shows fewer words.

    Raises ``ValueError`` for any other model, a world of another size, and beginnings that the
    world does not know or that leave no room for a word.
    """

    def __init__(
        self,
        model: "GPT",
        world: World,
        beginning: str = BEGINNING,
        examples: Sequence[str] | None = None,
        seed: int = 2,
        heads: bool = True,
    ):
        """Make the figure of a model and the world that it was trained on.

        ``beginning`` and ``examples`` are texts, ``seed`` draws what is written, and ``heads`` says
        whether the maps of the heads are shown.
        """
        weights = live_model_weights(model)
        if len(world.words) != model.config.n_vocab:
            raise ValueError(
                f"world: expected {model.config.n_vocab} words, one for each id of the model, got "
                f"{len(world.words)}"
            )
        if examples is None:
            examples = default_examples(world)
        require_short_beginnings((beginning, *examples), model, world)
        ids = world.beginning(beginning)
        logits, maps = live_model_forward(model, weights, ids)
        shown = BARS if heads else FEW_BARS
        tokens, top = [world.words[i] for i in ids], top_tokens(logits, world, shown)
        settings = {"words": list(world.words), "start": ids[0], "most": model.max_length}
        settings |= {"heads": [layer.shape[0] for layer in maps], "eps": model.norm.eps}
        settings |= {
            "beginning": beginning,
            "bars": shown,
            "seed": require_count("seed", seed, least=0),
        }
        settings["shapes"] = [[name, *array.shape] for name, array in weights.items()]
        super().__init__(
            "live_model",
            "A language model at work",
            live_model_controls(beginning, examples, world)
            + '<div class="lm-parts"><div class="lm-next" data-part="bars">'
            + f"{next_token_bars(top)}</div>"
            + f"<div{'' if heads else ' hidden'}>"
            + f'<div class="lm-rows" data-part="rows">{head_rows(tokens, maps)}</div></div></div>'
            + f"<div{'' if heads else ' hidden'}>"
            + f'<div class="lm-layers" data-part="maps">{cards(maps)}</div>'
            + controls(
                "Point at a word; press a map to switch its head off.",
                button("all", "All heads on"),
            )
            + "</div>",
            "Where JavaScript runs, the beginning is yours, and the model goes on with it"
            + (
                ", any token shows where it looks, and every head can be switched off."
                if heads
                else "."
            ),
            settings | {"weights": pack_arrays(weights.values())},
            f"Likeliest next: “{top[0][0]}”, {percent(top[0][1])}.",
            before=["transformer", "gpt"],
        )


def require_short_beginnings(texts: Sequence[str], model: "GPT", world: World) -> None:
    """Raise ``ValueError`` for a text that leaves the model no room for a word."""
    for text in texts:
        if len(world.beginning(text)) >= model.max_length:
            raise ValueError(
                f"beginning: expected at most {model.max_length - 2} words, got {text!r}"
            )


def live_model_weights(model: "GPT") -> dict[str, np.ndarray]:
    """Return the model's weights by name, rounded as the page carries them.

    ``ValueError`` for others.
    """
    from attncourse.gpt import GPT

    if not isinstance(model, GPT):
        raise ValueError(f"model: expected a GPT, got {type(model).__name__}")
    return carried(model, {"out.weight"} if model.config.tied else ())  # the rows of tokens.weight


def carried(
    model: "GPT | ReceptorClassifier | VisionTransformer", but: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """Return a model's numbers by name, as a page carries them: rounded, finite, not many.

    Raises ``ValueError`` where they are not, and for blocks whose activation is not exact GELU.
    """
    from torch.nn.functional import gelu

    if any(block.feed_forward.activation is not gelu for block in model.blocks):
        raise ValueError("model: expected exact GELU in every block, got another activation")
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in but}
    state = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    require_finite(**state)
    count = sum(array.size for array in state.values())
    if count > MAX_MODEL_NUMBERS:
        raise ValueError(
            f"model: expected at most {MAX_MODEL_NUMBERS} numbers, which a page carries, "
            f"got {count}"
        )
    return {name: round_to_16_bits(array) for name, array in state.items()}


def round_to_16_bits(array: np.ndarray) -> np.ndarray:
    """Return numbers as the nearest float32 whose lowest byte is 0: 16 binary digits."""
    bits = np.ascontiguousarray(array, dtype="<f4").view("<u4")
    return ((bits + 128) & ~np.uint32(255)).view("<f4")


def pack_arrays(arrays) -> str:
    """Return the upper three bytes of each number, one after the other, in base64."""
    upper = [array.reshape(-1, 1).view(np.uint8)[:, 1:].tobytes() for array in arrays]
    return base64.b64encode(b"".join(upper)).decode()


def live_model_forward(
    model: "GPT", weights: dict, ids: list[int]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return logits for the next token, ``(n_vocab,)``, and each layer's maps, ``(h, n, n)``."""
    import torch

    from attncourse.masking import causal_mask

    same = deepcopy(model).cpu().double()
    same.load_state_dict(
        {name: torch.tensor(array) for name, array in weights.items()}, strict=False
    )
    mask, maps = causal_mask(len(ids)), []
    with torch.no_grad():
        x = same.positions(same.tokens(torch.tensor(ids)))
        for block in same.blocks:
            maps.append(block.attention.weights(block.norm_1(x), mask=mask).numpy())
            x = block(x, mask)
        return same.out(same.norm(x))[-1].numpy(), maps


def top_tokens(logits: np.ndarray, world: World, count: int) -> list[tuple[str, float]]:
    """Return the likeliest next tokens and their probabilities."""
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    best = np.argsort(-chances, kind="stable")[:count]
    return [(world.words[i], float(chances[i])) for i in best]


def default_examples(world: World) -> list[str]:
    """Return texts where a stereotype is planted, each profession with a trait; otherwise none."""
    return [f"the {who} is cute ." for who in list(getattr(world, "men", ()))[:3]]


def percent(p: float) -> str:
    """Return a probability as the script writes it: a small one is not nothing."""
    if 0 < p < 0.0005:
        return "<\u00a00.1\u00a0%"
    return f"{100 * p:.{1 if 0 < p < 0.0995 else 0}f}\u00a0%"


def live_model_controls(beginning: str, examples: Sequence[str], world: World) -> str:
    """Return the controls: a text field, example texts and words to press."""
    field = (
        '<label class="lm-field"><span>Story so far</span><input type="text" data-part="story" '
        f'value="{escape(beginning)}" dir="auto" autocomplete="off" autocapitalize="none" '
        'spellcheck="false"></label>'
    )
    tried = "".join(button("example", escape(text)) for text in examples)
    offered = "".join(
        button("word", escape(word)) for word in world.words if not word.startswith("<")
    )
    return (
        f'<p class="am-still">Story so far: {escape(beginning)}</p>'
        + controls(field)
        + (controls("Try:", tried) if examples else "")
        + controls(
            button("next", "Next word"),
            button("on", "Write on"),
            button("anew", "Start anew"),
            slider_control("temperature", "Temperature", 0, 2, 1, 0.1),
        )
        + '<details class="am-controls" data-part="known"><summary>Words that it knows'
        f'</summary><div class="am-row lm-known">{offered}</div></details>'
    )


def next_token_bars(top: list[tuple[str, float]]) -> str:
    """Return the likeliest next tokens, a bar for each."""
    lines = "".join(
        f'<tr><th scope="row">{escape(word)}</th><td><i style="width:{100 * share:.2f}%"></i></td>'
        f"<td>{escape(percent(share))}</td><td></td></tr>"
        for word, share in top
    )
    return f"<table><caption>Next word</caption>{lines}</table>"


def head_rows(tokens: list[str], maps: list[np.ndarray]) -> str:
    """Return where the last token looks: a row for each head, darker for more."""
    heads = "".join(f'<th scope="col"><span>{escape(token)}</span></th>' for token in tokens)
    lines = "".join(
        f'<tr><th scope="row">{layer}.{h}</th>'
        + "".join(f'<td style="--weight:{w:.4f}"></td>' for w in weights[-1])
        + "</tr>"
        for layer, heads_of in enumerate(maps)
        for h, weights in enumerate(heads_of)
    )
    table = f"<thead><tr><td></td>{heads}</tr></thead><tbody>{lines}</tbody>"
    return (
        f"<p>Where “<b>{escape(tokens[-1])}</b>” looks, by head: 0.1 is head 1 of layer 0</p>"
        + scrolling(table, "Where one token looks")
    )


def cards(maps: list[np.ndarray]) -> str:
    """Return the whole map of every head, with the asking row framed; layer by layer."""
    return "".join(
        "<div>"
        + "".join(
            f'<div class="lm-head">{map_picture(weights)}<span>{layer}.{h}</span></div>'
            for h, weights in enumerate(heads)
        )
        + "</div>"
        for layer, heads in enumerate(maps)
    )


def map_picture(weights: np.ndarray) -> str:
    """Return a map ``(n, n)`` in cells of ink; weights below one per cent are left white."""
    n = len(weights)
    ink = "".join(
        f'<rect x="{j}" y="{i}" width="1" height="1" fill-opacity="{weights[i, j]:.2f}"/>'
        for i, j in zip(*np.nonzero(weights >= 0.01), strict=True)
    )
    frame = f'<rect class="lm-asks" x="0" y="{n - 1}" width="{n}" height="1"/>'
    return f'<svg viewBox="0 0 {n} {n}" aria-hidden="true">{ink}{frame}</svg>'
