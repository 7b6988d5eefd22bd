"""Chapter 16: a receptor's loop, where a trained network looks, and what its answer depends on."""

from collections.abc import Sequence
from copy import deepcopy
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from attncourse.figures.moving.controls import choice, controls
from attncourse.figures.moving.figure import Moving
from attncourse.figures.moving.live_model import carried, pack_arrays, percent

if TYPE_CHECKING:  # numpy alone is enough for the other figures
    from attncourse.sequences import ReceptorClassifier

TURNS = (4, 8, 12, 16)  # how far in the alphabet the letters stand that take another's place


class LoopReader(Moving):
    """A loop whose letters can be exchanged, read by the network in the page.

    Two rows show the same letters: on the blue of the pooling query's attention, and on the orange
    of what the answer depends on, the fall of log p of the answer where the letter is exchanged for
    four others. Motifs are underlined, and every class has a bar for its probability.

    model: a ``ReceptorClassifier`` of at most 150,000 numbers, with exact GELU. loops: to begin
    from, the first one shown. classes: their names. motifs: pieces to underline.

    Raises ``ValueError`` for any other model, and for loops that it does not read.
    """

    def __init__(
        self,
        model: "ReceptorClassifier",
        loops: Sequence[str],
        classes: Sequence[str],
        motifs: Sequence[str] = (),
    ):
        """Make the figure of a classifier, with loops to read and motifs to mark in them."""
        from attncourse.sequences import ALPHABET, encode_cdr3

        weights = loop_reader_weights(model)
        longest = len(model.positions.table)
        if isinstance(loops, str) or not loops:
            raise ValueError(f"loops: expected one loop or more, got {loops!r}")
        for loop in loops:
            encode_cdr3(loop, longest)
        if len(classes) != len(weights["out.bias"]):
            raise ValueError(
                f"classes: expected {len(weights['out.bias'])} names, one for each class of the "
                f"model, got {len(classes)}"
            )
        chances, looks, falls = classify_loop(model, weights, loops[0])
        settings = {
            "alphabet": ALPHABET,
            "turns": TURNS,
            "most": longest,
            "loops": list(loops),
            "motifs": list(motifs),
            "classes": list(classes),
            "heads": [block.attention.n_heads for block in model.blocks],
            "eps": model.blocks[0].norm_1.eps,
            "shapes": [[name, *array.shape] for name, array in weights.items()],
        }
        field = (
            '<label class="lr-field"><span>Loop</span><input type="text" data-part="loop" '
            f'value="{escape(loops[0])}" maxlength="{longest + 5}" autocomplete="off" '
            'autocapitalize="characters" spellcheck="false"></label>'
        )
        super().__init__(
            "loop_reader",
            "Which virus? Press a letter to exchange it",
            controls(field, choice("given", "or", [str(k + 1) for k in range(len(loops))], 0))
            + "<p>Where it <b class='am-query'>looks</b></p>"
            + shaded_letters("looks", loops[0], looks, motifs)
            + "<p>What the answer <b class='am-key'>depends on</b></p>"
            + shaded_letters("falls", loops[0], falls, motifs)
            + f'<div class="lr-bars" data-part="bars">{loop_class_bars(classes, chances)}</div>',
            "Where JavaScript runs, the loop is yours, and every letter can be exchanged.",
            settings | {"weights": pack_arrays(weights.values())},
            loop_sentence(loops[0], looks, falls, classes, chances),
            before=["transformer"],
        )


def loop_reader_weights(model: "ReceptorClassifier") -> dict[str, np.ndarray]:
    """Return the model's weights by name, rounded as the page carries them.

    ``ValueError`` for others.
    """
    from attncourse.sequences import ReceptorClassifier

    if not isinstance(model, ReceptorClassifier) or not len(model.blocks):
        raise ValueError(
            f"model: expected a ReceptorClassifier with a block, got {type(model).__name__}"
        )
    return carried(model)


def classify_loop(model: "ReceptorClassifier", weights: dict, loop: str):
    """Return the classes' probabilities, the attention, and the fall of log p by letter."""
    import torch

    from attncourse.sequences import ALPHABET, encode_cdr3

    same, n = deepcopy(model).cpu().double(), len(loop)
    same.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    changed = [
        loop[:k] + ALPHABET[(ALPHABET.index(loop[k]) + turn) % 20] + loop[k + 1 :]
        for k in range(n)
        for turn in TURNS
    ]
    ids = torch.stack(
        [encode_cdr3(sequence, len(same.positions.table)) for sequence in [loop, *changed]]
    )
    with torch.no_grad():
        p, looks = same(ids).softmax(-1).numpy(), same.weights(ids[:1])[0, :n].numpy()
    logs = np.log(p[:, p[0].argmax()] + 1e-12)
    return p[0], looks, logs[0] - logs[1:].reshape(n, len(TURNS)).mean(1)


def motif_places(loop: str, motifs: Sequence[str]) -> set[int]:
    """Return the places that belong to a motif."""
    return {
        at + k
        for motif in motifs
        for at in range(len(loop) - len(motif) + 1)
        if loop.startswith(motif, at)
        for k in range(len(motif))
    }


def shaded_letters(part: str, loop: str, strength, motifs: Sequence[str]) -> str:
    """Return the letters in a row, each on a ground as strong as its number is large."""
    strength = np.maximum(strength, 0)
    strength, lined = strength / max(strength.max(), 1e-9), motif_places(loop, motifs)
    tiles = "".join(
        f'<button type="button" data-part="letter" style="--strong:{s:.3f}"'
        f"{' class=lr-motif' if k in lined else ''}>{letter}</button>"
        for k, (letter, s) in enumerate(zip(loop, strength, strict=True))
    )
    return f'<div class="lr-letters lr-{part}" data-part="{part}">{tiles}</div>'


def loop_class_bars(classes: Sequence[str], chances) -> str:
    """Return a line for each class, with its probability."""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><i style="width:{100 * p:.2f}%"></i></td>'
        f"<td>{escape(percent(p))}</td></tr>"
        for name, p in zip(classes, chances, strict=True)
    )
    return f"<table><tbody>{lines}</tbody></table>"


def loop_sentence(loop: str, looks, falls, classes: Sequence[str], chances) -> str:
    """Return the sentence for the first state."""
    best, look, fall = int(chances.argmax()), int(looks.argmax()), int(np.argmax(falls))
    return (
        f"It says {classes[best]}, {percent(chances[best])}. It looks most at {loop[look]} "
        f"(place {look}), and the answer depends most on {loop[fall]} (place {fall})."
    )
